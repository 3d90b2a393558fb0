//! `shell` of `[plugin.NAME]`: `true`, or `{ pane = true }`, which may also be written `shell.pane = true`.
//!
//! A command of its own is a process that nothing ran before in. A pane's shell has been shaped by whoever used it: functions, aliases and
//! variables stay there, so only a grant that names panes leads into one.

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Whether a plugin may run commands, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginShell {
    /// Whether it may run commands at all.
    pub commands: bool,
    /// Whether also in panes; none where only commands are spoken of.
    pub pane: Option<bool>,
}

impl PluginShell {
    /// Returns what both allow; what one does not speak of, it does not take.
    pub(super) fn and(self, other: Self) -> Self {
        let pane = match (self.pane, other.pane) {
            (None, Some(true)) => None,
            (None, pane) | (pane, None) => pane,
            (Some(one), Some(other)) => Some(one && other),
        };
        Self { commands: self.commands && other.commands, pane }
    }
}

impl Serialize for PluginShell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.pane.filter(|_| self.commands) {
            None => serializer.serialize_bool(self.commands),
            Some(pane) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("pane", &pane)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for PluginShell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoolOrPane)
    }
}

struct BoolOrPane;

impl<'de> Visitor<'de> for BoolOrPane {
    type Value = PluginShell;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("true, false or { pane = true }")
    }

    fn visit_bool<E>(self, commands: bool) -> Result<PluginShell, E> {
        Ok(PluginShell { commands, pane: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PluginShell, A::Error> {
        let mut pane = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "pane" {
                return Err(A::Error::unknown_field(&key, &["pane"]));
            }
            pane = Some(map.next_value()?);
        }
        pane.map(|pane| PluginShell { commands: true, pane: Some(pane) }).ok_or_else(|| A::Error::missing_field("pane"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_does_not_speak_of_panes_leaves_them_as_they_are() {
        let (yes, no) = (PluginShell { commands: true, pane: None }, PluginShell { commands: false, pane: None });
        let (open, closed) = (PluginShell { pane: Some(true), ..yes }, PluginShell { pane: Some(false), ..yes });
        for (base, by, expected) in [
            (open, yes, open),
            (yes, open, yes),
            (open, closed, closed),
            (closed, open, closed),
            (yes, closed, closed),
            (closed, yes, closed),
            (open, open, open),
        ] {
            assert_eq!(base.and(by), expected, "{base:?} by {by:?}");
        }
        assert!(!open.and(no).commands && !no.and(open).commands);
    }
}
