//! Which files a plugin may read and write: below the directories of its section, and of the settings.
//!
//! Opening them is `file_access/`.

use crate::explain::words::places;
use crate::explain::{BUILT_IN, Clause, Explained};
use crate::grants::Grant;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use config::{Allowlist, FilesConfirm};
use contract::manifest::Manifest;
use file_access::{CREDENTIALS, FilesGrant, Who};

impl Grant for FilesGrant {
    #[expect(clippy::disallowed_methods, reason = "here grants are made")]
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let rights = &bound.rights;
        let is_nothing = |lists: &[Allowlist]| lists.contains(&Allowlist::NOTHING);
        if is_nothing(&rights.read) && is_nothing(&rights.write) {
            let (verb, option) = match plugin.reads_files() {
                true => ("read", "--read DIR"),
                false => ("write", "--write DIR"),
            };
            let line = format!("files.{verb} = [\"/a/directory\"]");
            return Err(policy.not_granted(plugin, bound, Capability::Files, &line, option));
        }
        let who = Who { name: plugin.name(), label: plugin.id.label(), sha256: plugin.sha256() };
        Ok(Self::new(who, rights, &bound.config, policy.protected.clone(), policy.elsewhere.clone()))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let own = |key: &str| format!("plugin.{}.{key}", explained.plugin.name());
        let (read, write, section) = (own("files.read"), own("files.write"), own("sha256"));
        let clause = |subject, lists: &[Allowlist], key: &str, otherwise: String| {
            let is_denied = lists.contains(&Allowlist::NOTHING);
            let decided_by = match explained.origins.get(key) {
                Some(_) => explained.decided(key),
                // The section grants other things, and not this.
                None if is_denied && explained.origins.get(&section).is_some() => {
                    format!("no `{key}` beside {}", explained.decided(&section))
                }
                None => otherwise,
            };
            Clause { subject, verdict: if is_denied { "denied" } else { "allowed" }, detail: places(lists), decided_by }
        };
        let mut clauses = vec![
            clause("files.read", self.readable(), &read, explained.decided("tools.files_read_paths")),
            clause("files.write", self.writable(), &write, explained.decided("tools.files_allowed_paths")),
        ];
        if !self.readable().contains(&Allowlist::NOTHING) {
            let bounds = self.bounds_of_reading();
            let verdict = if bounds.contains(&Allowlist::NOTHING) { "denied" } else { "allowed" };
            let decided_by = explained.decided("tools.files_read_paths");
            clauses.push(Clause { subject: "files.read", verdict, detail: places(bounds), decided_by });
            let closed = CREDENTIALS.map(|class| class.what).join(", ");
            let detail = format!("Toolcrib's own state, /proc, /sys, /dev, {closed}");
            clauses.push(Clause { subject: "files.read", verdict: "denied", detail, decided_by: BUILT_IN.into() });
        }
        if !self.writable().contains(&Allowlist::NOTHING) {
            clauses.push(explained.writes(self.confirms()));
        }
        clauses
    }
}

impl Explained<'_> {
    /// Which writes a person is asked about.
    fn writes(&self, confirms: FilesConfirm) -> Clause {
        let (verdict, detail) = match confirms {
            FilesConfirm::Never => ("allowed", "no write is asked about"),
            FilesConfirm::RunsLater => ("asks", "a person is shown writes to files that run later"),
            FilesConfirm::Outside => {
                ("asks", "a person is shown writes outside the workspace, and to files that run later")
            }
            FilesConfirm::Always => ("asks", "a person is shown every write"),
        };
        let decided_by = self.decided("tools.files_confirm");
        Clause { subject: "files.write", verdict, detail: detail.into(), decided_by }
    }
}
