//! Kinds of events, and patterns of them: `message.send`, `message.*`, `*`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// How long a kind may be, in bytes.
const KIND_BYTES: usize = 64;
/// What stands for all kinds, and behind a `.` for all that begin so.
const ALL: &str = "*";

/// Which kinds of events are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindPattern {
    /// This kind.
    Exact(String),
    /// All kinds that begin with these words: `message` is `message.*`.
    Below(String),
    /// All kinds.
    All,
}

impl KindPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = || {
            let shown: String = text.chars().take(KIND_BYTES).collect();
            format!(
                "`{}` is not a kind of events: write `message.send`, `message.*` for all that begin so, or `*`",
                shown.escape_debug()
            )
        };
        if text == ALL {
            return Ok(Self::All);
        }
        let pattern = match text.strip_suffix(".*") {
            Some(above) if are_words(above) => Self::Below(above.to_owned()),
            None if is_kind(text) => Self::Exact(text.to_owned()),
            Some(_) | None => return Err(refused()),
        };
        if text.len() > KIND_BYTES { Err(refused()) } else { Ok(pattern) }
    }

    /// Whether a kind is meant.
    #[must_use]
    pub fn covers(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Exact(exact) => exact == kind,
            Self::Below(above) => is_below(kind, above),
        }
    }

    /// Whether all that is meant is meant by another pattern as well.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::All) => true,
            (Self::All, Self::Exact(_) | Self::Below(_)) => false,
            (Self::Exact(kind), other) => other.covers(kind),
            (Self::Below(_), Self::Exact(_)) => false,
            (Self::Below(above), Self::Below(other)) => above == other || is_below(above, other),
        }
    }
}

/// Whether one of the patterns means a kind.
#[must_use]
pub fn any_covers(patterns: &[KindPattern], kind: &str) -> bool {
    patterns.iter().any(|pattern| pattern.covers(kind))
}

/// Whether a text is a kind: words of `a-z0-9_-`, parted by `.`, two or more of them, 64 bytes in all.
#[must_use]
pub fn is_kind(text: &str) -> bool {
    text.len() <= KIND_BYTES && text.contains('.') && are_words(text)
}

fn are_words(text: &str) -> bool {
    let fits = |char: u8| char.is_ascii_lowercase() || char.is_ascii_digit() || b"_-".contains(&char);
    text.split('.').all(|word| !word.is_empty() && word.bytes().all(fits))
}

fn is_below(kind: &str, above: &str) -> bool {
    kind.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

impl fmt::Display for KindPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str(ALL),
            Self::Exact(kind) => formatter.write_str(kind),
            Self::Below(above) => write!(formatter, "{above}.*"),
        }
    }
}

impl Serialize for KindPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KindPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> KindPattern {
        KindPattern::parse(text).unwrap()
    }

    #[test]
    fn kinds_and_patterns_are_read_and_written() {
        for text in ["message.send", "message.*", "a.b.*", "*", "x_1.y-2"] {
            assert_eq!(pattern(text).to_string(), text);
        }
        for text in ["", "message", ".", "a.", ".a", "a..b", "A.b", "a.*.b", "a*", "**", ".*", "a b.c", "ä.b"] {
            assert!(KindPattern::parse(text).unwrap_err().contains("is not a kind of events"), "{text}");
        }
        assert!(KindPattern::parse(&format!("a.{}", "b".repeat(63))).is_err());
        assert!(!is_kind("message.*") && !is_kind("message") && is_kind("message.send"));
    }

    #[test]
    fn a_pattern_covers_by_whole_words() {
        for (text, kind, expected) in [
            ("message.send", "message.send", true),
            ("message.send", "message.sends", false),
            ("message.*", "message.send", true),
            ("message.*", "messages.send", false),
            ("message.*", "message", false),
            ("a.b.*", "a.b.c", true),
            ("a.b.*", "a.c", false),
            ("*", "a.b", true),
        ] {
            assert_eq!(pattern(text).covers(kind), expected, "{text} {kind}");
        }
    }

    #[test]
    fn a_pattern_lies_within_those_that_mean_as_much() {
        for (one, other, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.*", true),
            ("a.b", "*", true),
            ("a.*", "a.b", false),
            ("a.*", "a.*", true),
            ("a.b.*", "a.*", true),
            ("a.*", "a.b.*", false),
            ("*", "a.*", false),
            ("ab.*", "a.*", false),
        ] {
            assert_eq!(pattern(one).is_within(&pattern(other)), expected, "{one} {other}");
        }
    }
}
