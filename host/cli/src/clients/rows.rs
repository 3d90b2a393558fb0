//! What the files of each client have to say: its entry of this program, what switches its own tools off, and what allows Toolcrib's. A file for
//! each client names the sources.

mod claude_code;
mod codex;
mod cursor;
mod gemini;
mod goose;
mod opencode;
mod vscode;
mod zed;

use super::edit::Step;
use super::plan::{ENTRY, Scope};
use super::{Client, Place};
use serde_json::Value;

/// Changes, by the files that they are for.
pub(super) type Changes = Vec<(Place, Vec<Change>)>;

/// A client that can be set up.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) client: Client,
    /// The names on the command line; the first is the one that is shown.
    pub(super) words: &'static [&'static str],
    /// The files that are changed if nobody says which.
    pub(super) scope: Scope,
    /// The scopes that it has files for.
    pub(super) scopes: &'static [Scope],
    /// The tools of the client that stay on.
    pub(super) stays: Option<&'static str>,
    /// How it asks, if no setting of a file allows Toolcrib's tools.
    pub(super) asks: Option<&'static str>,
    pub(super) changes: fn(&Wish) -> Changes,
}

/// What is wanted of a client.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) scope: Scope,
    /// The program, and its arguments.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// The project's directory; none if the client starts the program in it.
    pub(super) directory: Option<String>,
    pub(super) is_directory_named: bool,
    /// The client's own tools stay on.
    pub(super) keeps_own: bool,
    /// Toolcrib's tools are allowed.
    pub(super) allows: bool,
    /// The names of the tools that are offered.
    pub(super) tools: Vec<String>,
    /// The directory of the settings of Cursor's command line.
    pub(super) is_cursor_in_config: bool,
}

/// A change, and what it is for.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) purpose: Purpose,
    pub(super) step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Entry,
    /// Switches off tools of the client, such as its shell.
    Own(&'static str),
    /// The same, if the file has what they belong to.
    OwnIfThere(&'static str),
    /// Allows Toolcrib's tools.
    Allow,
}

impl Purpose {
    /// The tools of the client that it switches off.
    pub(super) fn own(self) -> Option<&'static str> {
        match self {
            Self::Own(tools) | Self::OwnIfThere(tools) => Some(tools),
            Self::Entry | Self::Allow => None,
        }
    }
}

/// What the tools of clients are called.
pub(super) const SHELL: &str = "shell";
pub(super) const EDIT: &str = "edit";
pub(super) const READ: &str = "read";
pub(super) const WEB: &str = "web";

const BOTH: &[Scope] = &Scope::ALL;

impl Row {
    const ALL: [Self; 8] =
        [claude_code::ROW, codex::ROW, vscode::ROW, cursor::ROW, gemini::ROW, opencode::ROW, goose::ROW, zed::ROW];

    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// The client of a name on the command line.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|row| row.words.contains(&name.to_ascii_lowercase().as_str()))
    }

    /// The name that is shown.
    pub(super) fn word(&self) -> &'static str {
        self.words.first().copied().unwrap_or_default()
    }
}

impl Wish {
    /// A wish that is only looked at.
    pub(super) fn looking(scope: Scope) -> Self {
        Self {
            scope,
            program: ENTRY.to_owned(),
            arguments: vec!["serve".to_owned()],
            directory: None,
            is_directory_named: false,
            keeps_own: false,
            allows: true,
            tools: Vec::new(),
            is_cursor_in_config: false,
        }
    }

    /// Whether changes for something are wanted.
    pub(super) fn has(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Entry => true,
            Purpose::Own(_) | Purpose::OwnIfThere(_) => !self.keeps_own,
            Purpose::Allow => self.allows,
        }
    }

    /// The arguments, with the directory that is wanted.
    fn arguments_with_directory(&self) -> Vec<String> {
        let named = self.directory.clone().into_iter().flat_map(|directory| ["--directory".to_owned(), directory]);
        self.arguments.iter().cloned().chain(named).collect()
    }

    /// The same, with what a client puts in for a project's directory, for clients that start servers elsewhere.
    fn arguments_in(&self, of_client: &str) -> Vec<String> {
        let of_client = (self.scope == Scope::Project).then(|| of_client.to_owned());
        let named = of_client.filter(|_| self.directory.is_none());
        let named = named.into_iter().flat_map(|directory| ["--directory".to_owned(), directory]);
        self.arguments_with_directory().into_iter().chain(named).collect()
    }
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn entry(of: &[&str], value: Value) -> Change {
    Change { purpose: Purpose::Entry, step: Step::Set(keys(of), value) }
}

fn set(purpose: Purpose, of: &[&str], value: impl Into<Value>) -> Change {
    Change { purpose, step: Step::Set(keys(of), value.into()) }
}

fn add(purpose: Purpose, of: &[&str], item: impl Into<Value>) -> Change {
    Change { purpose, step: Step::Add(keys(of), item.into()) }
}

/// An entry as most clients have it.
fn usual(wish: &Wish, arguments: &[String]) -> Value {
    serde_json::json!({ "command": wish.program, "args": arguments })
}
