//! Who calls.

use crate::text::sanitize;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// So many characters of a name are kept.
const LONGEST: usize = 128;

/// Who calls, as the audit trail, the limits of calls, repeats and people know them: one line, such as `cli:agent` or `mcp:http`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Principal(Arc<str>);

impl Principal {
    /// As it is shown and recorded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Principal {
    /// Takes a name; what a line of the trail or a screen cannot show is made visible, and a very long one is cut.
    fn from(name: &str) -> Self {
        Self(sanitize::visible_line(name).chars().take(LONGEST).collect::<String>().into())
    }
}

impl From<String> for Principal {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.0.as_ref().to_owned()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line() {
        assert_eq!(Principal::from("cli:agent").as_str(), "cli:agent");
        assert_eq!(Principal::from("a\nb\u{1b}[2J").as_str().lines().count(), 1);
        assert!(!Principal::from("a\u{1b}b").as_str().contains('\u{1b}'));
        assert_eq!(Principal::from("x".repeat(1000)).as_str().chars().count(), LONGEST);
    }
}
