//! What a request says: the same words at every door, which only lays them out.

use super::{ActionKind, ApprovalRequest};
use crate::envelope::duration;
use anstyle::Style;

/// A text that the host has not written, with what it is called. A door sets each of its rows off from the host's own.
pub(crate) struct Foreign<'r> {
    /// A word in front of the text.
    pub(crate) label: &'static str,
    pub(crate) text: &'r str,
}

impl ApprovalRequest {
    /// The reason that the model gave; empty where none is asked for.
    #[must_use]
    pub fn why(&self) -> &str {
        self.declaration.as_ref().map_or("", |declaration| &declaration.why)
    }

    /// Who wants to do what on which backend, with tool and place in one style and the declared risk in another.
    pub(crate) fn headline(&self, strong: Style, risk: Style) -> String {
        let (who, does, backend) = (self.who(strong), self.does(), &self.landing.backend);
        let delay = self.landing.delay.map(|delay| format!(" after {}", duration(delay))).unwrap_or_default();
        let declared = self.declaration.as_ref().map(|declaration| {
            let flags = [(declaration.mutation, ", changes something"), (declaration.privesc, ", needs more rights")];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
            format!(", declared {risk}{} risk{risk:#}{flags}", declaration.risk)
        });
        let declared = declared.unwrap_or_default();
        format!("{who} wants to {does} {strong}{backend}{strong:#}{delay}{declared}")
    }

    /// All that the host has not written itself, in the order in which it is read.
    pub(crate) fn foreign(&self) -> Vec<Foreign<'_>> {
        let landing = &self.landing;
        let (action, details) = match self.kind {
            ActionKind::Command => ("$", "with"),
            ActionKind::Request => (">", "with"),
            ActionKind::Write | ActionKind::WriteLater => ("file", "diff"),
            ActionKind::Look => ("at", "with"),
        };
        let parts = [
            ("pane", landing.pane.as_deref()),
            ("in", landing.directory.as_deref()),
            ("why", Some(self.why())),
            (action, Some(self.action.as_str())),
            (details, self.details.as_deref()),
        ];
        let given = parts.into_iter().filter_map(|(label, text)| Some(Foreign { label, text: text? }));
        given.filter(|part| !part.text.is_empty()).collect()
    }

    /// The headline in short with the size of the action: what a person reads last.
    pub(crate) fn summary(&self, strong: Style) -> String {
        let texts = || [Some(&self.action), self.details.as_ref()].into_iter().flatten();
        let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let lines = counted(texts().map(|text| text.lines().count()).sum(), "line");
        let bytes = counted(texts().map(String::len).sum(), "byte");
        let (who, does, backend) = (self.who(strong), self.does(), &self.landing.backend);
        let delay = self.landing.delay.map(|delay| format!(" after {}", duration(delay))).unwrap_or_default();
        format!("{who} would {does} {strong}{backend}{strong:#}{delay}: {lines}, {bytes}")
    }

    /// What an approval for the session covers.
    pub(crate) fn all(&self) -> &'static str {
        match self.kind {
            ActionKind::Command => "all commands of this plugin",
            ActionKind::Request => "all requests of this plugin",
            ActionKind::Write => "all writes of this plugin, but not to files that run later",
            ActionKind::WriteLater => "all writes of this plugin to files that run later",
            ActionKind::Look => "all looks of this plugin",
        }
    }

    fn who(&self, strong: Style) -> String {
        let Self { tool, plugin, .. } = self;
        let plugin = plugin.strip_prefix(tool.as_str()).map_or_else(|| format!(" of {plugin}"), str::to_owned);
        format!("{strong}{tool}{strong:#}{plugin}")
    }

    fn does(&self) -> &'static str {
        match self.kind {
            ActionKind::Command => "run on",
            ActionKind::Request => "send from",
            ActionKind::Write => "write on",
            ActionKind::WriteLater => "write what runs later on",
            ActionKind::Look => "look at",
        }
    }
}
