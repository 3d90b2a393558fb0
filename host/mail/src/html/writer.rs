//! Lines of text in the making, with marks on what is hidden.

use super::TEXT_BYTES;
use std::mem;

/// Characters of hidden text that are shown, of a whole mail.
const HIDDEN_CHARS: usize = 4000;

/// What is between the text so far and the next word. The greater one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Line,
    /// An empty line.
    Blank,
}

/// Lines of text in the making.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) text: String,
    pub(super) words: usize,
    gap: Gap,
    /// Written before the next word: `- ` or `# `.
    mark: &'static str,
    pub(super) verbatim: usize,
    /// A mark of hidden text is open.
    in_hidden: bool,
    pub(super) has_hidden: bool,
    hidden_chars: usize,
    is_hidden_cut: bool,
}

impl Writer {
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Ends the line; a second time in a row, leaves one empty.
    pub(super) fn end_line(&mut self, is_hidden: bool) {
        if self.verbatim > 0 && !is_hidden {
            return self.characters("\n", false);
        }
        self.gap = if self.gap < Gap::Line { Gap::Line } else { Gap::Blank };
    }

    pub(super) fn item(&mut self, mark: &'static str) {
        self.gap(Gap::Line);
        self.mark = mark;
    }

    pub(super) fn end_item(&mut self, gap: Gap) {
        self.mark = "";
        self.gap(gap);
    }

    pub(super) fn characters(&mut self, text: &str, is_hidden: bool) {
        if self.verbatim == 0 || is_hidden {
            return self.flowing(text, is_hidden);
        }
        if !text.is_empty() {
            self.begin_word();
            self.text.push_str(text);
        }
    }

    /// Adds text whose white space means no more than that words end.
    pub(super) fn flowing(&mut self, text: &str, is_hidden: bool) {
        if text.starts_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
        for (index, word) in text.split_whitespace().enumerate() {
            self.gap(if index == 0 { Gap::None } else { Gap::Space });
            if is_hidden {
                self.hide(word);
            } else {
                self.begin_word();
                self.text.push_str(word);
            }
        }
        if text.ends_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
    }

    /// Adds a word to the mark that is open. Nothing in it can end the mark.
    fn hide(&mut self, word: &str) {
        self.has_hidden = true;
        let before = self.hidden_chars;
        self.hidden_chars = before.saturating_add(word.chars().count() + 1);
        if before >= HIDDEN_CHARS && self.in_hidden {
            if !mem::replace(&mut self.is_hidden_cut, true) {
                self.text.push_str(" …");
            }
            return;
        }
        if self.in_hidden {
            self.text.push_str(if mem::take(&mut self.gap) == Gap::None { "" } else { " " });
        } else {
            self.mark = "";
            self.begin_word();
            self.in_hidden = true;
            self.text.push_str("[hidden: ");
        }
        self.words += 1;
        if before >= HIDDEN_CHARS {
            self.is_hidden_cut = true;
            return self.text.push('…');
        }
        let room = HIDDEN_CHARS - before;
        let is_long = word.chars().nth(room).is_some();
        self.is_hidden_cut = is_long;
        let bracket = |c: char| match c {
            '[' => '(',
            ']' => ')',
            c => c,
        };
        self.text.extend(word.chars().take(room).map(bracket).chain(is_long.then_some('…')));
    }

    /// Adds text where the last word ends, before the gap.
    pub(super) fn append(&mut self, text: &str) {
        if self.in_hidden {
            let text = text.replace('[', "%5B").replace(']', "%5D");
            self.hidden_chars = self.hidden_chars.saturating_add(text.len());
            if self.hidden_chars < HIDDEN_CHARS {
                self.text.push_str(&text);
            }
        } else {
            self.text.push_str(text);
        }
    }

    fn begin_word(&mut self) {
        self.words += 1;
        self.end_hidden();
        match mem::take(&mut self.gap) {
            _ if self.text.is_empty() => {}
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            gap => {
                self.text.truncate(self.text.trim_end_matches([' ', '\t', '\n']).len());
                self.text.push_str(if gap == Gap::Line { "\n" } else { "\n\n" });
            }
        }
        self.text.push_str(mem::take(&mut self.mark));
    }

    fn end_hidden(&mut self) {
        if mem::take(&mut self.in_hidden) {
            self.text.push(']');
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.end_hidden();
        self.text.truncate(self.text.floor_char_boundary(TEXT_BYTES));
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}
