//! What is known of a plugin before anything of it runs: who it is, its tools by name, what it asks for.
//!
//! Manifests are values. Policy, listings, approvals and the audit trail know a plugin by its manifest alone, whatever provides it
//! (`provider/`).

use base::builtin::SearchServer;
use base::capability::Capability;
use base::text::names::{folded, is_name};
use base::text::sanitize;
use config::ProgramSection;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Tools of one plugin.
pub const MOST_TOOLS: usize = 64;

/// Who a plugin is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PluginId {
    /// The name of its section in the settings: its file's name without what says the kind of file.
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
    /// A program that the user has declared.
    Program {
        /// Its file.
        path: String,
        /// Digest of all that was declared, in hex.
        declared: String,
    },
    /// A server of the Model Context Protocol that others wrote.
    Upstream {
        /// What is started.
        command: String,
        /// Digest of all that settings say of it, and of what was accepted, in hex.
        declared: String,
    },
}

/// What a plugin shows of itself. Made only with names that can be names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Manifest {
    /// Who it is.
    pub id: PluginId,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Capabilities that it asks for, in the order in which it names them.
    pub capabilities: Vec<Capability>,
    /// The functions of these capabilities that its code calls.
    pub functions: Vec<(Capability, String)>,
    /// Everything that it imports, by the full names.
    pub imports: Vec<String>,
    /// The length of what it is made of, in bytes.
    pub size: u64,
    /// What a component of another world than ours exports that is not a tool, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Those of its capabilities that its language may have brought along, used or not: it is offered without them.
    pub unsure: Vec<Capability>,
    /// Somebody gave its tools names, words or arguments, in a file beside it.
    pub has_words: bool,
    /// Those of its tools that are prompts: people ask for them, and models are not offered them.
    pub prompts: Vec<String>,
    /// The one of its tools by which all is read that a server of others has to read.
    pub reader: Option<String>,
    /// Of a plugin of this program: the family that its tools are listed with on request.
    pub family: Option<&'static str>,
    /// Of a plugin of this program: the server that it searches the web by.
    pub search: Option<SearchServer>,
}

impl PluginId {
    /// Both would answer to the same name.
    #[must_use]
    pub fn has_name_of(&self, other: &Self) -> bool {
        self.folded() == other.folded()
    }

    /// It answers to this name, or one that reads the same.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.folded() == folded(name)
    }

    /// Its name, as those who read it take it.
    pub fn folded(&self) -> String {
        folded(&self.name)
    }

    /// It is a program that the user has declared.
    #[must_use]
    pub fn is_program(&self) -> bool {
        match self.origin {
            Origin::Program { .. } => true,
            Origin::BuiltIn | Origin::File(_) | Origin::Upstream { .. } => false,
        }
    }

    /// It is a server that others wrote.
    #[must_use]
    pub fn is_upstream(&self) -> bool {
        match self.origin {
            Origin::Upstream { .. } => true,
            Origin::BuiltIn | Origin::File(_) | Origin::Program { .. } => false,
        }
    }

    /// What an approval for a session is bound to: a program with other arguments is another one.
    #[must_use]
    pub fn approved_as(&self) -> &str {
        match &self.origin {
            Origin::Program { declared, .. } | Origin::Upstream { declared, .. } => declared,
            Origin::BuiltIn | Origin::File(_) => &self.sha256,
        }
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
            Origin::File(file) | Origin::Program { path: file, .. } | Origin::Upstream { command: file, .. } => file,
        }
    }

    /// What approvals call it.
    #[must_use]
    pub fn label(&self) -> String {
        let kind = match self.origin {
            Origin::BuiltIn => "built in",
            Origin::File(_) => "third party",
            Origin::Program { .. } => "declared program",
            Origin::Upstream { .. } => "server of others",
        };
        format!("{} ({kind})", self.name)
    }

    /// Where it comes from, in words.
    pub fn place(&self) -> String {
        match &self.origin {
            Origin::BuiltIn => "built in".into(),
            Origin::File(file) => format!("from {file}"),
            Origin::Program { path, .. } => format!("declared as {path}"),
            Origin::Upstream { command, .. } => format!("of the server {command}"),
        }
    }
}

impl Manifest {
    /// What a provider found, if its names can be names; an error is the reason to refuse the plugin.
    pub fn new(
        id: PluginId,
        tools: Vec<String>,
        capabilities: Vec<Capability>,
        functions: Vec<(Capability, String)>,
    ) -> Result<Self, String> {
        check_name("plugin", &id.name)?;
        if tools.is_empty() {
            return Err("it names no tools".into());
        }
        if tools.len() > MOST_TOOLS {
            return Err(format!("it names more than {MOST_TOOLS} tools"));
        }
        let mut names = BTreeSet::new();
        for name in &tools {
            check_name("tool", name)?;
            if !names.insert(folded(name)) {
                return Err(format!("it names the tool `{name}` twice, or two that read the same"));
            }
        }
        Ok(Self {
            id,
            tools,
            capabilities,
            functions,
            imports: Vec::new(),
            size: 0,
            left_out: Vec::new(),
            unsure: Vec::new(),
            has_words: false,
            prompts: Vec::new(),
            reader: None,
            family: None,
            search: None,
        })
    }

    /// What a declared program shows, with its usage page.
    pub fn of_program(name: &str, section: &ProgramSection, page: Option<&str>) -> Result<Self, String> {
        if let Some(line) = section.missing() {
            return Err(format!(
                "[program.{name}] says no `{line}`: `toolcrib program inspect FILE` prints a whole section"
            ));
        }
        let said = serde_json::to_vec(&(name, section, page)).expect("a section is plain data");
        let (path, declared) = (section.path.display().to_string(), hex::encode(Sha256::digest(said)));
        let origin = Origin::Program { path, declared };
        let id = PluginId { name: name.to_owned(), sha256: section.sha256.clone(), origin };
        let functions = vec![(Capability::Programs, "[method]run.start".to_owned())];
        Self::new(id, vec![name.to_owned()], vec![Capability::Programs], functions)
    }

    /// Its name, if it is another MCP server.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.id.is_upstream().then(|| self.name())
    }

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

    /// What its tools are summed up under with others: their family, or its name.
    #[must_use]
    pub fn group(&self) -> &str {
        self.family.unwrap_or_else(|| self.name())
    }

    /// Its code reads files.
    #[must_use]
    pub fn reads_files(&self) -> bool {
        ["read", "read-whole", "read-encoded", "read-bytes", "list-directory", "stat", "search", "find", "notation"]
            .iter()
            .any(|function| self.calls(Capability::Files, function))
    }

    /// Its code writes files.
    #[must_use]
    pub fn writes_files(&self) -> bool {
        ["write", "replace", "write-encoded", "append", "make-directory", "undo"]
            .iter()
            .any(|function| self.calls(Capability::Files, function))
    }

    /// Its code calls this function of a capability.
    #[must_use]
    pub fn calls(&self, capability: Capability, function: &str) -> bool {
        self.functions.iter().any(|(called, name)| *called == capability && name == function)
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    if is_name(name) {
        return Ok(());
    }
    let shown = sanitize::beginning(name, 80);
    Err(format!("`{shown}` is not a valid {what} name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"))
}
