//! `toolcrib policy explain`: what a call of a tool may do, and which line decides, in the words of the grants themselves.

use super::{Grants, Policy, is_shell};
use crate::config::{Allowlist, Origin, Settings};
use crate::registry::Plugin;
use serde_json::{Value, json};
use std::path::PathBuf;

/// One line of the answer.
pub struct Clause {
    /// What it is about: a capability or a rule.
    pub subject: &'static str,
    /// `allowed`, `asks` or `denied`.
    pub verdict: &'static str,
    /// What exactly.
    pub detail: String,
    /// The setting that decides, and where its value comes from.
    pub decided_by: String,
}

impl Clause {
    /// The clause for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "subject": self.subject, "verdict": self.verdict, "detail": self.detail, "decided_by": self.decided_by })
    }
}

impl Policy {
    /// Explains what `plugin` may do: one clause per capability that it imports, and what else binds it.
    #[must_use]
    pub fn explain(&self, plugin: &Plugin, settings: &Settings) -> Vec<Clause> {
        let grants = self.grants_for(plugin);
        let mut clauses = Vec::new();
        for capability in plugin.capabilities() {
            match capability {
                capability if is_shell(capability) => clauses.extend(self.explain_shell(&grants, plugin, settings)),
                "files" => clauses.extend(explain_files(&grants, plugin, settings)),
                _ => clauses.push(Clause {
                    subject: "events",
                    verdict: "allowed",
                    detail: "says how the call goes, within caps".into(),
                    decided_by: decided(settings, "limits.events"),
                }),
            }
        }
        if clauses.is_empty() {
            let detail = "computes; it imports no capability".into();
            clauses.push(Clause { subject: "nothing", verdict: "allowed", detail, decided_by: "its imports".into() });
        }
        clauses
    }

    fn explain_shell(&self, grants: &Grants, plugin: &Plugin, settings: &Settings) -> Vec<Clause> {
        let own = format!("plugin.{}.shell", plugin.name());
        let grant = match grants.shell() {
            Err(refusal) => {
                return vec![refused("shell", refusal.message, plugin, settings, &["tools.shell_enabled", &own])];
            }
            Ok(grant) => grant,
        };
        let granted = if settings.origins.get(&own).is_some() { decided(settings, &own) } else { "built in".into() };
        let (verdict, detail) = if grant.confirms() {
            ("asks", "a person is shown every command first")
        } else {
            ("allowed", "commands run without a question")
        };
        let patterns = self.config.tools.shell_denylist.join("`, `");
        let denied =
            if patterns.is_empty() { "no command".into() } else { format!("commands that match `{patterns}`") };
        vec![
            Clause { subject: "shell", verdict: "allowed", detail: "may run commands".into(), decided_by: granted },
            Clause {
                subject: "shell",
                verdict,
                detail: detail.into(),
                decided_by: decided(settings, "tools.shell_confirm"),
            },
            Clause {
                subject: "shell",
                verdict: "denied",
                detail: denied,
                decided_by: decided(settings, "tools.shell_denylist"),
            },
        ]
    }
}

fn explain_files(grants: &Grants, plugin: &Plugin, settings: &Settings) -> Vec<Clause> {
    let own = |verb: &str| format!("plugin.{}.files.{verb}", plugin.name());
    let (read, write) = (own("read"), own("write"));
    let grant = match grants.files() {
        Err(refusal) => {
            return vec![refused("files", refusal.message, plugin, settings, &["tools.files_enabled", &read, &write])];
        }
        Ok(grant) => grant,
    };
    let clause = |subject, lists: &[Allowlist], key: &str, otherwise: String| {
        let is_denied = lists.contains(&Allowlist::NOTHING);
        let section = format!("plugin.{}.sha256", plugin.name());
        let decided_by = match settings.origins.get(key) {
            Some(_) => decided(settings, key),
            // The section grants other things, and not this.
            None if is_denied && settings.origins.get(&section).is_some() => {
                format!("no `{key}` beside {}", decided(settings, &section))
            }
            None => otherwise,
        };
        Clause { subject, verdict: if is_denied { "denied" } else { "allowed" }, detail: places(lists), decided_by }
    };
    let protected =
        "built in: all but Toolcrib's state, ~/.ssh, ~/.gnupg, ~/.aws, /proc, /sys, /dev and their like".into();
    vec![
        clause("files.read", grant.readable(), &read, protected),
        clause("files.write", grant.writable(), &write, decided(settings, "tools.files_allowed_paths")),
    ]
}

/// A refusal, with the setting that decides: the first of `keys` that is set to something else than its default, or the section's digest.
fn refused(subject: &'static str, detail: String, plugin: &Plugin, settings: &Settings, keys: &[&str]) -> Clause {
    let section = format!("plugin.{}.sha256", plugin.name());
    let is_set = |key: &&str| settings.origins.get(key).is_some_and(|origin| *origin != Origin::Default);
    let is_other = detail.contains("not the bytes");
    let decided_by =
        match keys.iter().copied().find(|key| !is_other && is_set(key)).or(Some(section.as_str()).filter(is_set)) {
            Some(key) => decided(settings, key),
            None => format!("no [plugin.{}] section", plugin.name()),
        };
    Clause { subject, verdict: "denied", detail, decided_by }
}

fn decided(settings: &Settings, key: &str) -> String {
    settings.origins.get(key).map_or_else(|| key.to_owned(), |origin| format!("{key} ({origin})"))
}

fn places(lists: &[Allowlist]) -> String {
    if lists.contains(&Allowlist::NOTHING) {
        return "nowhere".into();
    }
    let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let named: Vec<String> = lists
        .iter()
        .filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) => Some(shown(paths)),
        })
        .collect();
    if named.is_empty() {
        "everything that is not protected".into()
    } else {
        format!("below {}", named.join(", and also below "))
    }
}
