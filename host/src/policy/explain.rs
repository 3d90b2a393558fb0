//! `toolcrib policy explain`: what a call of a tool may do, and which line decides, in the words of the grants themselves.

use super::{Grants, Policy};
use crate::config::{Allowlist, Settings};
use crate::registry::Plugin;
use serde_json::{Value, json};

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
                "shell" => clauses.extend(self.explain_shell(&grants, plugin, settings)),
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
        let grant = match grants.shell() {
            Err(refusal) => return vec![refused("shell", refusal.message, plugin, settings, "tools.shell_enabled")],
            Ok(grant) => grant,
        };
        let (verdict, detail) = if grant.confirms() {
            ("asks", "a person is shown every command first")
        } else {
            ("allowed", "commands run without a question")
        };
        let patterns = self.config.tools.shell_denylist.join("`, `");
        vec![
            Clause {
                subject: "shell",
                verdict,
                detail: detail.into(),
                decided_by: decided(settings, "tools.shell_confirm"),
            },
            Clause {
                subject: "shell",
                verdict: "denied",
                detail: if patterns.is_empty() {
                    "no command is on the denylist".into()
                } else {
                    format!("commands that match `{patterns}`")
                },
                decided_by: decided(settings, "tools.shell_denylist"),
            },
        ]
    }
}

fn explain_files(grants: &Grants, plugin: &Plugin, settings: &Settings) -> Vec<Clause> {
    let grant = match grants.files() {
        Err(refusal) => return vec![refused("files", refusal.message, plugin, settings, "tools.files_enabled")],
        Ok(grant) => grant,
    };
    let own = |verb: &str| format!("plugin.{}.files.{verb}", plugin.name());
    let clause = |subject, lists: &[Allowlist], key: String, otherwise: &str| Clause {
        subject,
        verdict: if lists.contains(&Allowlist::NOTHING) { "denied" } else { "allowed" },
        detail: places(lists),
        decided_by: settings
            .origins
            .get(&key)
            .map_or_else(|| otherwise.to_owned(), |origin| format!("{key} ({origin})")),
    };
    let general = decided(settings, "tools.files_allowed_paths");
    vec![
        clause(
            "files.read",
            grant.readable(),
            own("read"),
            "built in: all but Toolcrib's state, ~/.ssh, ~/.gnupg, ~/.aws, /proc, /sys, /dev and their like",
        ),
        clause("files.write", grant.writable(), own("write"), &general),
    ]
}

fn refused(subject: &'static str, detail: String, plugin: &Plugin, settings: &Settings, switch: &str) -> Clause {
    let section = format!("plugin.{}.sha256", plugin.name());
    let is_off = detail.contains("switched off");
    let key = if is_off { switch } else { &section };
    let decided_by = if settings.origins.get(key).is_some() {
        decided(settings, key)
    } else {
        format!("no [plugin.{}] section", plugin.name())
    };
    Clause { subject, verdict: "denied", detail, decided_by }
}

fn decided(settings: &Settings, key: &str) -> String {
    settings.origins.get(key).map_or_else(|| key.to_owned(), |origin| format!("{key} ({origin})"))
}

fn places(lists: &[Allowlist]) -> String {
    let named: Vec<String> = lists
        .iter()
        .filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) if paths.is_empty() => Some("nothing".into()),
            Allowlist::Only(paths) => {
                Some(paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))
            }
        })
        .collect();
    if named.is_empty() {
        "everything that is not protected".into()
    } else {
        format!("below {}", named.join(", and also below "))
    }
}
