//! What several capabilities share: declarations, panes, and text that was cut.

use std::borrow::Cow;

pub use crate::bindings::toolcrib::plugin::types::{Captured, Declaration, Pane, Risk};

/// The end of text that was cut.
const MARK: &str = "...[truncated]";

impl Pane {
    /// Returns the pane that was named, if any was: names are trimmed, blank ones count as absent.
    #[must_use]
    pub fn named(session: Option<String>, pane: Option<String>, target: Option<String>) -> Option<Self> {
        let given = |name: Option<String>| Some(name?.trim().to_owned()).filter(|name| !name.is_empty());
        let named = Self { session: given(session), pane: given(pane), target: given(target) };
        (named != Self::default()).then_some(named)
    }
}

impl Captured {
    /// Returns the text, followed by `...[truncated]` if it was cut.
    #[must_use]
    pub fn marked(&self) -> String {
        if self.truncated { format!("{}{MARK}", self.text) } else { self.text.clone() }
    }
}

/// Returns the first `chars` characters of `text`, followed by `...[truncated]` if there are more.
#[must_use]
pub fn truncated(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((end, _)) => Cow::Owned(format!("{}{MARK}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_characters() {
        assert_eq!(truncated("xxxxxxxxxx", 5), "xxxxx...[truncated]");
        assert_eq!(truncated("xxxxx", 5), "xxxxx");
        assert_eq!(truncated("🙂🙂🙂", 5), "🙂🙂🙂");
        assert_eq!(truncated("🙂🙂🙂", 1), "🙂...[truncated]");
        assert_eq!(truncated("", 0), "");
    }

    #[test]
    fn only_cut_text_is_marked() {
        let whole = Captured { text: "ab".into(), bytes: 2, truncated: false, stored: None };
        assert_eq!(whole.marked(), "ab");
        assert_eq!(Captured { bytes: 3, truncated: true, ..whole }.marked(), "ab...[truncated]");
    }

    #[test]
    fn blank_names_name_no_pane() {
        assert_eq!(Pane::named(None, Some("  ".into()), Some(String::new())), None);
        let build = Pane { session: Some("build".into()), ..Pane::default() };
        assert_eq!(Pane::named(Some(" build\n".into()), None, None), Some(build));
    }
}
