//! What the locks in force leave of what is installed, for `toolcrib policy check` and `policy lock`.

use super::super::screen::Page;
use super::super::setup::Setup;
use super::code;
use ::policy::lock::Code;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolcrib::envelope::Failure;
use toolcrib::tools::manifest::Manifest;
use toolcrib::tools::provider::Refused;

/// What the locks in force leave of what is installed.
pub(super) struct Checked {
    refused: Vec<(Arc<Manifest>, Failure)>,
    /// Plugins that were vetted and have no file, and whether they have to be there.
    missing: Vec<(String, bool)>,
    /// Plugins that were vetted, whose file is there and cannot be used.
    broken: Vec<(String, Refused)>,
    /// Built-in plugins that a lock does not list.
    off: Vec<String>,
    /// Plugins of the user in directories that the policy does not name.
    unread: Vec<PathBuf>,
    /// Revocations that take nothing back.
    idle: Vec<String>,
}

impl Checked {
    pub(super) async fn of(setup: &Setup) -> Self {
        let (tools, policy) = (&setup.context.tools, setup.host.policy());
        let mut refused = Vec::new();
        for plugin in tools.plugins().chain(tools.barred()).filter(|plugin| !plugin.id.is_builtin()) {
            let failure = setup.host.ready(plugin, &setup.context).await.err();
            // What is switched off, or broken, is no lock's doing.
            refused.extend(failure.filter(|failure| code(failure).is_some()).map(|failure| (plugin.clone(), failure)));
        }
        let is_there = |name: &str| tools.plugins().chain(tools.barred()).any(|plugin| plugin.name() == name);
        let file_of = |name: &str| {
            let is_its = |refused: &&Refused| Path::new(&refused.origin).file_stem().is_some_and(|stem| stem == name);
            tools.refused().iter().find(is_its).cloned()
        };
        let (mut missing, mut broken) = (Vec::new(), Vec::new());
        for (name, required) in policy.vetted().into_iter().filter(|(name, _)| !is_there(name)) {
            match file_of(&name) {
                Some(refused) => broken.push((name, refused)),
                None => missing.push((name, required)),
            }
        }
        let is_off = |plugin: &&Arc<Manifest>| {
            policy.check_locks(plugin).is_err_and(|barred| barred.code == Some(Code::BuiltinOff))
        };
        let off = tools.barred().filter(is_off).map(|plugin| plugin.name().to_owned()).collect();
        Self { refused, missing, broken, off, unread: setup.plugins.unread(), idle: policy.idle_revocations() }
    }

    /// Whether nothing is refused, and nothing lacks that has to be there.
    pub(super) fn is_good(&self) -> bool {
        self.refused.is_empty() && self.broken.is_empty() && !self.missing.iter().any(|(_, required)| *required)
    }

    /// How many plugins of this user the locks take away, in words.
    pub(super) fn total(&self) -> String {
        let counts = [
            (self.refused.len(), "refused"),
            (self.unread.len(), "in directories that are not read"),
            (self.off.len(), "built in and off"),
        ];
        let all: usize = counts.iter().map(|(count, _)| count).sum();
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        match all {
            0 => "it takes away no plugin that is installed for you".to_owned(),
            1 => format!("it takes away 1 plugin: {}", parts.join(", ")),
            all => format!("it takes away {all} plugins: {}", parts.join(", ")),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let row = |(plugin, failure): &(Arc<Manifest>, Failure)| json!({ "name": plugin.name(), "origin": plugin.id.origin(), "sha256": plugin.sha256(), "code": code(failure), "reason": failure.message });
        let broken = |(name, Refused { origin, reason }): &(String, Refused)| json!({ "name": name, "origin": origin, "reason": reason });
        json!({
            "refused": self.refused.iter().map(row).collect::<Vec<_>>(),
            "missing": self.missing.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "broken": self.broken.iter().map(broken).collect::<Vec<_>>(),
            "builtin_off": self.off,
            "unread": self.unread,
            "idle_revocations": self.idle,
        })
    }

    pub(super) fn show(&self, page: &mut Page) {
        for (plugin, failure) in &self.refused {
            let code = code(failure).unwrap_or_default();
            page.add(&format!("{}: {code}: {}", plugin.id.origin(), failure.message)).end(2);
        }
        for (name, Refused { origin, reason }) in &self.broken {
            page.add(&format!("{origin}: vetted as `{name}`, and cannot be used: {reason}")).end(2);
        }
        for (name, required) in &self.missing {
            let what = if *required {
                "required, and in no directory of plugins"
            } else {
                "vetted, and in no directory of plugins"
            };
            page.add(&format!("{name}: {what}")).end(2);
        }
        for file in &self.unread {
            page.add(&format!("{}: not read, as the policy names other directories", file.display())).end(2);
        }
        if !self.off.is_empty() {
            page.add(&format!("built in and off: {}", self.off.join(", "))).end(2);
        }
        for idle in &self.idle {
            page.add(idle).end(2);
        }
    }
}
