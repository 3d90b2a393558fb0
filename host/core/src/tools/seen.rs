//! What components were found to be, kept from one start to the next: a program that starts reads, digests and parses none that it has seen.
//!
//! A file counts as seen while its stamp is the same, which whoever can set this machine's clock could forge. So this is for lists and names:
//! whose code runs is known by its digest (`provider/component.rs`), and under a lock each file is read. The table is kept, authenticated,
//! with the code (`engine/cache.rs`).

use super::provider::Shown;
use base::disk::Stamp;
use guest::sandbox::Sandbox;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Counts the versions of what is looked for in a component, and of what it may import.
const CHECKS: u32 = 3;
/// Components that are remembered; more than that, and those that are not there now are forgotten.
const MOST: usize = 4096;
/// The same in bytes: each start reads all of it.
const MOST_BYTES: usize = 1 << 20;

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct Table {
    /// By which rules it was found out.
    checks: String,
    /// By path: what it was, and the digest of its bytes.
    files: BTreeMap<String, (Stamp, String)>,
    /// By digest: what it shows, or why it cannot be used.
    shown: BTreeMap<String, Result<Shown, String>>,
}

/// The table of a source of plugins.
pub(super) struct Seen {
    /// None where nothing is kept.
    sandbox: Option<Arc<Sandbox>>,
    before: Table,
    /// With what was found since.
    now: Mutex<Table>,
}

impl Seen {
    /// Reads the table; an empty one where there is none.
    pub(super) fn read(sandbox: Option<Arc<Sandbox>>) -> Self {
        let kept = sandbox
            .as_ref()
            .and_then(|sandbox| sandbox.remembered())
            .and_then(|kept| serde_json::from_slice::<Table>(&kept).ok());
        let checks = format!("{} {CHECKS}", env!("CARGO_PKG_VERSION"));
        let before = kept.filter(|kept| kept.checks == checks).unwrap_or(Table { checks, ..Table::default() });
        Self { sandbox, now: Mutex::new(before.clone()), before }
    }

    /// The digest of a file that has not changed since.
    pub(super) fn digest(&self, path: &Path, stamp: &Stamp) -> Option<&str> {
        let (seen, sha256) = self.before.files.get(path.to_str()?)?;
        (seen == stamp).then_some(sha256)
    }

    /// What the component of this digest shows, or why it cannot be used.
    pub(super) fn shown(&self, sha256: &str) -> Option<Result<Shown, String>> {
        self.before.shown.get(sha256).cloned()
    }

    /// Remembers what a component shows.
    pub(super) fn remember(&self, sha256: &str, shown: &Result<Shown, String>) {
        self.now.lock().shown.insert(sha256.into(), shown.clone());
    }

    /// Remembers what a file was when it was read.
    pub(super) fn remember_file(&self, path: &Path, stamp: Stamp, sha256: &str) {
        if let Some(path) = path.to_str().filter(|_| stamp.is_settled()) {
            self.now.lock().files.insert(path.into(), (stamp, sha256.into()));
        }
    }

    /// Keeps the table for the next start. Failing is not an error: that start reads the files.
    pub(super) fn keep(self, there: impl Fn(&str) -> bool) {
        let mut now = self.now.into_inner();
        let Some(sandbox) = self.sandbox.filter(|_| now != self.before) else { return };
        let json = |table: &Table| serde_json::to_vec(table).expect("a table is plain data");
        let mut kept = json(&now);
        if now.shown.len() > MOST || kept.len() > MOST_BYTES {
            // A file that is refused is not among the plugins that are there: it is looked at anew.
            now.shown.retain(|sha256, _| there(sha256));
            now.files.retain(|_, (_, sha256)| there(sha256));
            kept = json(&now);
        }
        sandbox.remember(kept);
    }
}
