//! What a request says: the same words at every door, which only lays them out.
//!
//! Headline and summary are the host's own words. Everything else that a person reads comes from outside, and is handed out as such.

use super::{ActionKind, ApprovalRequest, Confined};
use base::envelope::duration;
use base::text::shell_quote;
use config::{RuleSection, Verdict};

/// How the label of a plugin ends that came with Toolcrib; names of plugins hold no space.
const BUILT_IN: &str = " (built in)";

/// The directory of a pane whose shell runs elsewhere, or whose program belongs to another user.
const UNKNOWN: &str = "a directory that is not known here";

/// A text that the host has not written. A door sets each of its rows off from the host's own.
pub struct Foreign<'r> {
    /// What it is called, in at most four letters.
    pub label: &'static str,
    /// Its lines.
    pub text: &'r str,
}

impl ApprovalRequest {
    /// The reason that the model gave; empty where none is asked for.
    #[must_use]
    pub fn why(&self) -> &str {
        self.declaration.as_ref().map_or("", |declaration| &declaration.why)
    }

    /// Who wants to do what on which backend; `strong` sets off who and where.
    pub fn headline(&self, strong: impl Fn(&str) -> String) -> String {
        let declared = self.declaration.as_ref().map(|declaration| {
            let flags = [(declaration.mutation, ", changes something"), (declaration.privesc, ", needs more rights")];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
            format!("; the model says: \"{} risk{flags}\"", declaration.risk.name())
        });
        format!("{} wants to {}{}", self.who(&strong), self.does(&strong), declared.unwrap_or_default())
    }

    /// All that the host has not written itself, in the order in which it is read.
    pub fn foreign(&self) -> impl Iterator<Item = Foreign<'_>> {
        let (action, details) = match self.kind {
            ActionKind::Command => ("run", "with"),
            ActionKind::Request => ("send", "with"),
            // The command only names these.
            ActionKind::Connection => ("to", "also"),
            ActionKind::Signature => ("to", "text"),
            ActionKind::Password => ("to", "with"),
            ActionKind::Write | ActionKind::WriteLater => ("file", "diff"),
            ActionKind::Held => ("to", "made"),
            ActionKind::Look => ("at", "with"),
            ActionKind::Event => ("event", "with"),
            ActionKind::Change => ("to", "with"),
            ActionKind::ToolCall => ("to", "with"),
            ActionKind::Answer => ("asked", "with"),
        };
        let (tool, plugin, landing) = (self.tool.as_str(), self.plugin.as_str(), &self.landing);
        let pane = landing.pane.as_deref();
        let is_namesake = plugin.strip_prefix(tool).is_some_and(|rest| rest.starts_with(' '));
        let parts = [
            ("tool", (!self.is_built_in() && !is_namesake).then_some(tool)),
            ("from", (!self.is_built_in()).then_some(plugin)),
            ("new", self.new.as_deref()),
            ("pane", pane),
            ("in", landing.directory.as_deref().or(pane.map(|_| UNKNOWN))),
            ("why", Some(self.why())),
            (action, Some(self.action.as_str())),
            (details, self.details.as_deref()),
            ("gets", self.secrets.as_deref()),
            // The headline has it in short.
            ("cell", self.cell()),
            // What of it the command printed is a sign that anybody can give.
            ("last", self.refused.as_deref()),
        ];
        let given = parts.into_iter().filter_map(|(label, text)| Some(Foreign { label, text: text? }));
        given.filter(|part| !part.text.is_empty())
    }

    /// Where and how it runs, in parts that can each be compared with those of another question.
    pub(super) fn conditions(&self) -> Vec<String> {
        let place = |label: &str, text: &Option<String>| text.as_ref().map(|text| format!("{label} {text}"));
        let cell = match &self.confinement {
            None => [None, None],
            Some(Confined::No { .. }) => [Some("unconfined".to_owned()), None],
            Some(Confined::Yes { how, bounds }) => [Some(how.clone()), Some(bounds.clone())],
        };
        let needs_more = self.declaration.as_ref().is_some_and(|declaration| declaration.privesc);
        let others = [
            place("in", &self.landing.directory),
            place("in the pane", &self.landing.pane),
            place("gets", &self.secrets),
            needs_more.then(|| "needs more rights".into()),
        ];
        cell.into_iter().chain(others).flatten().filter(|part| !part.is_empty()).collect()
    }

    /// The headline in short with the size of the action: what a person reads last.
    pub fn summary(&self, strong: impl Fn(&str) -> String) -> String {
        let texts = || [Some(&self.action), self.details.as_ref()].into_iter().flatten();
        let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let one = if self.kind == ActionKind::Connection { "server" } else { "line" };
        let lines = counted(texts().map(|text| text.lines().count()).sum(), one);
        let bytes = counted(texts().map(String::len).sum(), "byte");
        let refused = if self.refused.is_some() { "; the last time its cell refused it something" } else { "" };
        format!("{} would {}: {lines}, {bytes}{refused}", self.who(&strong), self.does(&strong))
    }

    /// What an answer covers that lets the command out of its cell; none where nobody is offered that.
    #[must_use]
    pub fn out(&self) -> Option<&'static str> {
        self.refused.as_ref().map(|_| "this once, with all rights of your user")
    }

    /// The command lines that make the rules which answer it always so; none where rules may not.
    #[must_use]
    pub fn rule_lines(&self, verdict: Verdict) -> Vec<String> {
        let line = |rule: &RuleSection| {
            let options = rule.parts().map(|(key, value)| format!(" --{key} {}", shell_quote::readable(value)));
            format!("toolcrib policy rules add {}{}", verdict.name(), options.collect::<String>())
        };
        self.rules.iter().map(line).collect()
    }

    /// What an approval for the session covers.
    #[must_use]
    pub fn all(&self) -> &'static str {
        match self.kind {
            ActionKind::Command => "all commands of this plugin",
            ActionKind::Request => "all requests of this plugin",
            ActionKind::Connection if self.action.contains('\n') || self.details.is_some() => {
                "all connections of this plugin's commands to these hosts and ports"
            }
            ActionKind::Connection => "all connections of this plugin's commands to this host and port",
            ActionKind::Signature => "all signatures by this key for this purpose",
            ActionKind::Password => "this password, each time that a command needs it",
            ActionKind::Write => "all writes of this plugin, but not to files that run later",
            ActionKind::WriteLater => "all writes of this plugin to files that run later",
            ActionKind::Held => "these very things",
            ActionKind::Look => "all looks of this plugin",
            ActionKind::Event => "all events of this kind of this plugin",
            ActionKind::Change => "all changes that this plugin asks about",
            ActionKind::ToolCall => "all calls of this tool of this server",
            ActionKind::Answer => "this very answer to this question of this server",
        }
    }

    /// What is to be said of the cell, beside the headline.
    fn cell(&self) -> Option<&str> {
        self.confinement.as_ref().map(|confined| match confined {
            Confined::No { why } => why.as_str(),
            Confined::Yes { bounds, .. } => bounds,
        })
    }

    fn is_built_in(&self) -> bool {
        self.plugin.ends_with(BUILT_IN)
    }

    /// Who asks. The author of a third-party plugin chose its name, so it does not appear among the host's own words.
    fn who(&self, strong: impl Fn(&str) -> String) -> String {
        match (self.is_built_in(), self.kind) {
            (true, _) => strong(&self.tool) + BUILT_IN,
            // No plugin stands between.
            (false, ActionKind::ToolCall | ActionKind::Answer) => strong("the model"),
            (false, _) => strong("a third-party plugin"),
        }
    }

    fn does(&self, strong: impl Fn(&str) -> String) -> String {
        let does = match self.kind {
            ActionKind::Command => "run on",
            ActionKind::Request => "send from",
            ActionKind::Connection => "connect from",
            ActionKind::Signature => "use a key of yours on",
            ActionKind::Password => "give its command a password of yours on",
            ActionKind::Write => "write on",
            ActionKind::WriteLater => "write what runs later on",
            ActionKind::Held => "keep what its command made on",
            ActionKind::Look => "look at",
            ActionKind::Event => "hand something to",
            ActionKind::Change => "change what is kept in",
            ActionKind::ToolCall => "call a tool of",
            ActionKind::Answer => "answer a question of",
        };
        let delay = self.landing.delay.map(|delay| format!(" after {}", duration(delay))).unwrap_or_default();
        let confined = match &self.confinement {
            None => String::new(),
            Some(Confined::No { .. }) => ", unconfined".into(),
            Some(Confined::Yes { how, .. }) => format!(", {how}"),
        };
        let secrets = if self.secrets.is_some() { ", with a secret" } else { "" };
        format!("{does} {}{delay}{confined}{secrets}", strong(&self.landing.backend))
    }
}
