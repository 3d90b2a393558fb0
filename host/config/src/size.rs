//! Sizes, as settings write them: a whole number and its unit.
//!
//! bytesize 2.7 would replace six lines. It accepts four of the sizes in the tests below that mislead: `4 GB` (3.7 GiB), `4 gib`, `4  GiB` and
//! `1.5 GiB`. It writes 1537 MiB as `1.5 GiB`, which is another bound when it is read again.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

const UNITS: [(&str, u64); 3] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)];
/// The smallest one: a shell and a few small programs need as much.
const LEAST: u64 = 16 << 20;

/// How much memory there may be; none is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBound(Option<u64>);

impl MemoryBound {
    /// Returns the bound, if there is one.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(None));
        }
        let (number, factor) = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
        let number = number.strip_suffix(' ').unwrap_or(number);
        // `parse` would take a sign as well.
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = number.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(*factor)?;
        (LEAST..=i64::MAX.unsigned_abs()).contains(&bytes).then_some(Self(Some(bytes)))
    }

    /// Returns whether it lets no more through than another bound.
    pub(super) fn is_within(self, other: Self) -> bool {
        // None is the least of all options, and here it is the most.
        other.0.is_none_or(|most| self.0.is_some_and(|bytes| bytes <= most))
    }
}

/// Returns a number of bytes as settings write it.
pub fn written(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, factor)| bytes.is_multiple_of(*factor));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, factor)| format!("{} {unit}", bytes / factor))
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |bytes| formatter.write_str(&written(bytes)))
    }
}

impl Serialize for MemoryBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemoryBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = || "must be a size in MiB, GiB or TiB such as \"4 GiB\", at least 16 MiB, or empty for no bound";
        let text = String::deserialize(deserializer).map_err(|_| D::Error::custom(wanted()))?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{}, not \"{}\"", wanted(), text.escape_debug())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_and_is_large_enough() {
        for (text, expected, again) in [
            ("", None, ""),
            ("16 MiB", Some(16 << 20), "16 MiB"),
            ("16MiB", Some(16 << 20), "16 MiB"),
            ("1536 MiB", Some(1536 << 20), "1536 MiB"),
            ("4096 MiB", Some(4 << 30), "4 GiB"),
            ("4 GiB", Some(4 << 30), "4 GiB"),
            ("2 TiB", Some(2 << 40), "2 TiB"),
        ] {
            let bound = MemoryBound::parse(text).unwrap_or_else(|| panic!("`{text}` is a size"));
            assert_eq!((bound.bytes(), bound.to_string().as_str()), (expected, again), "{text}");
            assert_eq!(MemoryBound::parse(again), Some(bound));
        }
        for text in [
            "15 MiB",
            "0 MiB",
            "4",
            "4 GB",
            "4 gib",
            "GiB",
            " 4 GiB",
            "4  GiB",
            "4 GiB ",
            "-4 GiB",
            "+4 GiB",
            "1.5 GiB",
            "8388608 TiB",
            "99999999999999999999 MiB",
            "none",
        ] {
            assert_eq!(MemoryBound::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_bound_is_within_none_and_larger_ones() {
        let bound = |text| MemoryBound::parse(text).expect("a size");
        for (text, other, expected) in [
            ("", "", true),
            ("", "1 GiB", false),
            ("1 GiB", "", true),
            ("1 GiB", "512 MiB", false),
            ("512 MiB", "1 GiB", true),
            ("1024 MiB", "1 GiB", true),
        ] {
            assert_eq!(bound(text).is_within(bound(other)), expected, "{text} within {other}");
        }
    }
}
