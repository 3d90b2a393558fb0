//! Which tmux is there, and whether it is enough.

use std::fmt;

/// A version of tmux, as `tmux -V` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    number: (u32, u32),
    text: String,
}

impl Version {
    /// The oldest version that has what is used: clients that do not change a session's size, and variables for one pane.
    pub const OLDEST: &str = "3.2";

    /// Reads `tmux 3.3a`, `tmux next-3.6`, `tmux openbsd-7.4`.
    pub(super) fn read(said: &str) -> Option<Self> {
        let text = said.trim().strip_prefix("tmux ")?;
        let numbers = text.strip_prefix("next-").unwrap_or(text);
        let (major, rest) = numbers.split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let number = match (major.parse(), minor.parse()) {
            (Ok(major), Ok(minor)) => (major, minor),
            // Named after the system that it came with, which has all of it.
            _ => (u32::MAX, 0),
        };
        Some(Self { number, text: text.to_owned() })
    }

    /// It has what is used.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.number >= (3, 2)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tmux_says_is_compared_with_what_is_needed() {
        let is_enough = |said| Version::read(said).map(|version| version.is_enough());
        for (said, enough) in [
            ("tmux 3.3a", true),
            ("tmux 3.2", true),
            ("tmux 10.0", true),
            ("tmux next-3.6", true),
            ("tmux openbsd-7.4", true),
            ("tmux 3.1c", false),
            ("tmux 2.9a", false),
        ] {
            assert_eq!(is_enough(said), Some(enough), "{said}");
        }
        assert_eq!(is_enough("sh: tmux: not found"), None);
    }
}
