//! What changed from one version of a plugin to the next, as people read it: for `plugin vet` and `plugin update`.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What changed since the version before.
pub(super) struct Change {
    pub(super) what: String,
    /// Whether the plugin gets more by it.
    pub(super) widens: bool,
}

impl Change {
    pub(super) fn to_json(&self) -> Value {
        json!({ "what": self.what, "widens": self.widens })
    }
}

/// What came to a list, and what went. `widens`: more is more than before.
pub(super) fn changed(what: &str, old: &[impl AsRef<str>], new: &[impl AsRef<str>], widens: bool) -> Vec<Change> {
    let old: BTreeSet<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: BTreeSet<&str> = new.iter().map(AsRef::as_ref).collect();
    let added = new.difference(&old).map(|added| Change { what: format!("{what} + {added}"), widens });
    let gone = old.difference(&new).map(|gone| Change { what: format!("{what} - {gone}"), widens: false });
    added.chain(gone).collect()
}

/// Whether it says something else of its tools, by the digests of what it says.
pub(super) fn definitions(old: Option<&str>, new: &str) -> Option<Change> {
    let what = || "what it says of its tools is not the same".to_owned();
    (old != Some(new)).then(|| Change { what: what(), widens: false })
}

/// One line each.
pub(super) fn lines(changes: &[Change]) -> String {
    let line = |change: &Change| format!("  {}{}\n", change.what, if change.widens { "  widens" } else { "" });
    changes.iter().map(line).collect()
}
