//! Whether a plugin may be there at all. Asked before it takes a name, again when it has said what it offers, and at every call.

use super::Policy;
use crate::config::Needed;
use crate::envelope::{Failure, Kind};
use crate::tools::manifest::Manifest;

/// That a plugin may be there. Made only here, and the only thing that grants are made of.
pub struct Admission<'m>(&'m Manifest);

impl Admission<'_> {
    /// Who was admitted.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        self.0
    }
}

impl Policy {
    /// Admits a plugin, unless it was switched off.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to change.
    pub fn admit<'m>(&self, plugin: &'m Manifest) -> Result<Admission<'m>, Failure> {
        let name = plugin.name();
        if self.config.is_enabled(name) {
            return Ok(Admission(plugin));
        }
        let key = format!("plugin.{name}.enabled");
        let line = format!("set `enabled = true` under [plugin.{name}], or remove the line");
        Err(Failure::denied(format!("plugin `{name}` is switched off by `{key} = false`"))
            .hint(self.config.remedies().hint(&key, &Needed::On, line)))
    }

    /// Admits what a plugin says of its tools: bytes that were allowed may say nothing else than they did then. `definitions` is the digest
    /// of what it says now.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what to look at.
    pub fn admit_definitions(&self, plugin: &Manifest, definitions: &str) -> Result<(), Failure> {
        let pinned = self.config.pinned_definitions(plugin.name(), plugin.sha256());
        if pinned.is_none_or(|pinned| pinned.eq_ignore_ascii_case(definitions)) {
            return Ok(());
        }
        let (name, file) = (plugin.name(), plugin.id.origin());
        let message = format!("plugin `{name}` was refused: its tool definitions have changed since it was allowed");
        Err(Failure::new(Kind::Unavailable, message)
            .hint(format!("look at it with `toolcrib plugin inspect {file}`, then `toolcrib plugin allow {file}`")))
    }
}
