//! What is known of a plugin before anything of it runs: who it is, its tools by name, what it asks for.
//!
//! Manifests are values. Policy, listings, approvals and the audit trail know a plugin by its manifest alone, whatever provides it
//! (`provider/`).

use crate::capability::Capability;
use crate::text::names::folded;

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PluginId {
    /// The name of its section in the settings: its file's name without `.wasm`.
    pub name: String,
    /// Digest of what it is made of, in hex: of a component, its bytes.
    pub sha256: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It is part of this program.
    BuiltIn,
    /// A file, as it was found.
    File(String),
}

/// What a plugin shows of itself.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Who it is.
    pub id: PluginId,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Capabilities that it asks for, in the order in which it names them.
    pub capabilities: Vec<Capability>,
    /// The functions of these capabilities that its code calls.
    pub functions: Vec<(Capability, String)>,
}

impl PluginId {
    /// Both would answer to the same name.
    #[must_use]
    pub fn has_name_of(&self, other: &Self) -> bool {
        folded(&self.name) == folded(&other.name)
    }

    /// It came with this program.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::BuiltIn
    }

    /// Its file, or its name when it came with Toolcrib.
    #[must_use]
    pub fn origin(&self) -> &str {
        match &self.origin {
            Origin::BuiltIn => &self.name,
            Origin::File(file) => file,
        }
    }

    /// What approvals call it.
    #[must_use]
    pub fn label(&self) -> String {
        let kind = match self.origin {
            Origin::BuiltIn => "built in",
            Origin::File(_) => "third party",
        };
        format!("{} ({kind})", self.name)
    }

    /// Where it comes from, in words.
    pub(super) fn place(&self) -> String {
        match &self.origin {
            Origin::BuiltIn => "built in".into(),
            Origin::File(file) => format!("from {file}"),
        }
    }
}

impl Manifest {
    /// The name that policy knows it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.id.name
    }

    /// Digest of what it is made of, in hex.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.id.sha256
    }

    /// Its code calls this function of a capability.
    #[must_use]
    pub fn calls(&self, capability: Capability, function: &str) -> bool {
        self.functions.iter().any(|(called, name)| *called == capability && name == function)
    }
}
