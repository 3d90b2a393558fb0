//! The clients of MCP servers: where their files are. `upstream import` reads these files, and `toolcrib setup` changes them.
//!
//! `rows/` has what a client's files say, one file a client; `plan.rs` makes changes of it; `edit.rs` and the formats beside it change a text;
//! `file.rs` reads and writes files, `undo.rs` takes changes back, `command.rs` is the command.

pub(super) mod command;
mod edit;
pub(super) mod file;
mod json;
mod plan;
mod rows;
mod table;
mod undo;
mod yaml;

pub(super) use json::{JSONC, said};
pub(super) use plan::{Remaining, remaining};

use std::path::{Path, PathBuf};

/// A client of MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Client {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// VS Code and Copilot
    Vscode,
    /// Cursor
    Cursor,
    /// Windsurf
    Windsurf,
    /// Gemini CLI
    Gemini,
    // `upstream import` does not read those below.
    #[value(skip)]
    Opencode,
    #[value(skip)]
    Goose,
    #[value(skip)]
    Zed,
}

/// Where the path of a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Home,
    /// The directory of the user's settings by the XDG rules.
    Config,
    /// The directory of Codex.
    Codex,
    /// The working directory: a project's files.
    Here,
}

/// A file of a client, whether it is there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) Base, pub(super) &'static str);

/// The directories that files are looked for in.
pub(super) struct Places<'p> {
    pub(super) home: &'p Path,
    pub(super) config: &'p Path,
    pub(super) codex: &'p Path,
    pub(super) here: &'p Path,
}

impl Places<'_> {
    pub(super) fn path(&self, Place(base, path): Place) -> PathBuf {
        match base {
            Base::Home => self.home.join(path),
            Base::Config => self.config.join(path),
            // A relative one is below the working directory.
            Base::Codex => self.here.join(self.codex).join(path),
            Base::Here => self.here.join(path),
        }
    }
}

/// The directory of Codex, which a variable can name.
pub(super) fn codex(environment: &[(String, String)], home: &Path) -> PathBuf {
    let set = environment.iter().find(|(name, value)| name == "CODEX_HOME" && !value.is_empty());
    set.map_or_else(|| home.join(".codex"), |(_, directory)| PathBuf::from(directory))
}

/// The file in which a project lists its servers for Claude Code, and for Copilot.
pub(super) const PROJECT: &str = ".mcp.json";

impl Client {
    /// Those whose servers `upstream import` reads.
    pub(super) const IMPORTED: [Self; 7] =
        [Self::ClaudeCode, Self::ClaudeDesktop, Self::Codex, Self::Vscode, Self::Cursor, Self::Windsurf, Self::Gemini];

    /// The name that people use.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
            Self::Zed => "Zed",
        }
    }

    /// The files that list its servers. Those of the project come first, as clients prefer them.
    pub(super) fn files(self, places: &Places) -> Vec<PathBuf> {
        self.places().iter().map(|place| places.path(*place)).collect()
    }

    pub(super) fn places(self) -> &'static [Place] {
        match self {
            Self::ClaudeCode => &[Place(Base::Here, PROJECT), Place(Base::Home, ".claude.json")],
            Self::ClaudeDesktop => &[Place(Base::Config, "Claude/claude_desktop_config.json")],
            Self::Codex => &[Place(Base::Here, ".codex/config.toml"), Place(Base::Codex, "config.toml")],
            Self::Vscode => &[
                Place(Base::Here, ".vscode/mcp.json"),
                Place(Base::Config, "Code/User/mcp.json"),
                Place(Base::Here, PROJECT),
                Place(Base::Home, ".copilot/mcp-config.json"),
            ],
            Self::Cursor => &[Place(Base::Here, ".cursor/mcp.json"), Place(Base::Home, ".cursor/mcp.json")],
            Self::Windsurf => &[Place(Base::Home, ".codeium/windsurf/mcp_config.json")],
            Self::Gemini => &[Place(Base::Here, ".gemini/settings.json"), Place(Base::Home, ".gemini/settings.json")],
            Self::Opencode => &[
                Place(Base::Here, "opencode.json"),
                Place(Base::Here, "opencode.jsonc"),
                Place(Base::Config, "opencode/opencode.json"),
                Place(Base::Config, "opencode/opencode.jsonc"),
            ],
            Self::Goose => &[Place(Base::Config, "goose/config.yaml")],
            Self::Zed => &[Place(Base::Config, "zed/settings.json")],
        }
    }
}
