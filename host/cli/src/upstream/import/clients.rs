//! How the clients' files list servers: under which keys, and which variables each puts in.

use super::super::super::clients::{PROJECT, Places};
use std::path::{Path, PathBuf};

pub(super) use super::super::super::clients::Client;

/// Which variables a client puts into texts.
#[derive(Clone, Copy)]
enum Expansion {
    /// None: a text is meant as it is.
    Nothing,
    /// `${V}` and `${V:-default}`.
    Braces,
    /// `${env:V}`, `${input:ID}` and other words of its own.
    Words,
    /// `$V` and `${V}`, in variables alone.
    Shell,
}

/// A piece of a text, as the client reads it.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    /// A variable of the environment.
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
    /// What the client asks its user for.
    Input(&'t str),
    /// What only the client knows, as it is written.
    Other(&'t str),
}

const SERVERS: &[&str] = &["mcpServers"];
/// The servers in that file that it does not start.
const REFUSED: &str = "disabledMcpjsonServers";

impl Client {
    /// Files in which a user switches off servers of this one, each with the keys that lead to their names.
    pub(super) fn refusals(self, file: &Path, places: &Places) -> Vec<(PathBuf, Vec<String>)> {
        let Places { home, here, .. } = places;
        if self != Self::ClaudeCode || file != here.join(PROJECT) {
            return Vec::new();
        }
        let settings =
            [(here, ".claude/settings.local.json"), (here, ".claude/settings.json"), (home, ".claude/settings.json")];
        let settings = settings.map(|(directory, file)| (directory.join(file), vec![REFUSED.to_owned()]));
        let own = here.to_str().map(|here| ["projects", here, REFUSED].map(str::to_owned).to_vec());
        settings.into_iter().chain(own.map(|keys| (home.join(".claude.json"), keys))).collect()
    }

    /// The keys that lead to its servers, each as a path from the top of a file.
    pub(super) fn tables(self, here: &Path) -> Vec<Vec<String>> {
        let keys = match self {
            Self::Codex => &["mcp_servers"],
            Self::Vscode => &["servers", "mcpServers"][..],
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Windsurf | Self::Gemini => SERVERS,
            // These have entries of another kind, which are not imported.
            Self::Opencode | Self::Goose | Self::Zed => &[],
        };
        let mut tables: Vec<Vec<String>> = keys.iter().map(|key| vec![(*key).to_owned()]).collect();
        if let (Self::ClaudeCode, Some(here)) = (self, here.to_str()) {
            tables.push(["projects", here, SERVERS[0]].map(str::to_owned).to_vec());
        }
        tables
    }

    /// What its entries say besides a program and its arguments.
    pub(super) fn entry_type(self) -> Option<&'static str> {
        match self {
            Self::Vscode => Some("stdio"),
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Codex
            | Self::Cursor
            | Self::Windsurf
            | Self::Gemini
            | Self::Opencode
            | Self::Goose
            | Self::Zed => None,
        }
    }

    /// The pieces of a text. `is_variable` is whether it is the value of a variable of the server.
    pub(super) fn pieces(self, text: &str, is_variable: bool) -> Vec<Piece<'_>> {
        let expansion = match self {
            Self::ClaudeCode => Expansion::Braces,
            Self::ClaudeDesktop | Self::Codex | Self::Opencode | Self::Goose | Self::Zed => Expansion::Nothing,
            Self::Vscode | Self::Cursor | Self::Windsurf => Expansion::Words,
            Self::Gemini if is_variable => Expansion::Shell,
            Self::Gemini => Expansion::Nothing,
        };
        expansion.pieces(text)
    }
}

impl Expansion {
    fn pieces(self, text: &str) -> Vec<Piece<'_>> {
        let (mut pieces, mut begin, mut at) = (Vec::new(), 0, 0);
        while let Some(found) = text[at..].find('$') {
            let dollar = at + found;
            match self.reference(&text[dollar..]) {
                Some((piece, bytes)) => {
                    pieces.extend((begin < dollar).then(|| Piece::Text(&text[begin..dollar])));
                    pieces.push(piece);
                    at = dollar + bytes;
                    begin = at;
                }
                None => at = dollar + 1,
            }
        }
        pieces.extend((begin < text.len()).then(|| Piece::Text(&text[begin..])));
        pieces
    }

    /// What a text that begins with `$` refers to, and how many bytes of it say so.
    fn reference(self, text: &str) -> Option<(Piece<'_>, usize)> {
        let braced = text.strip_prefix("${").and_then(|inner| Some(&inner[..inner.find('}')?]));
        let piece = match (self, braced) {
            (Self::Nothing, _) | (Self::Braces | Self::Words, None) => return None,
            (Self::Words, Some(inner)) => match inner.split_once(':') {
                Some(("env", name)) => Piece::Variable { name, default: None },
                Some(("input", id)) => Piece::Input(id),
                Some(_) | None => Piece::Other(&text[..inner.len() + 3]),
            },
            (Self::Braces, Some(inner)) => {
                let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, text)| (name, Some(text)));
                Piece::Variable { name, default }
            }
            (Self::Shell, Some(name)) => Piece::Variable { name, default: None },
            (Self::Shell, None) => {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = &text[1..];
                let name = &name[..name.find(|c| !is_of_name(c)).unwrap_or(name.len())];
                return ::config::is_variable_name(name)
                    .then_some((Piece::Variable { name, default: None }, name.len() + 1));
            }
        };
        let is_name = match &piece {
            Piece::Variable { name, .. } => ::config::is_variable_name(name),
            Piece::Text(_) | Piece::Input(_) | Piece::Other(_) => true,
        };
        let bytes = braced.map_or(0, str::len) + 3;
        is_name.then_some((piece, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Piece<'_> {
        Piece::Variable { name, default: None }
    }

    #[test]
    fn each_client_has_its_own_variables() {
        let text = "a ${V} $V ${V:-d} ${env:V} ${input:i} ${workspaceFolder}";
        let braces = [
            Piece::Text("a "),
            variable("V"),
            Piece::Text(" $V "),
            Piece::Variable { name: "V", default: Some("d") },
            Piece::Text(" ${env:V} ${input:i} "),
            variable("workspaceFolder"),
        ];
        assert_eq!(Client::ClaudeCode.pieces(text, true), braces);
        let words = [
            Piece::Text("a "),
            Piece::Other("${V}"),
            Piece::Text(" $V "),
            Piece::Other("${V:-d}"),
            Piece::Text(" "),
            variable("V"),
            Piece::Text(" "),
            Piece::Input("i"),
            Piece::Text(" "),
            Piece::Other("${workspaceFolder}"),
        ];
        assert_eq!(Client::Cursor.pieces(text, true), words);
        assert_eq!(Client::Codex.pieces(text, true), [Piece::Text(text)]);
        assert_eq!(
            Client::Gemini.pieces("$A-${B}$", true),
            [variable("A"), Piece::Text("-"), variable("B"), Piece::Text("$"),]
        );
        assert_eq!(Client::Gemini.pieces("$A", false), [Piece::Text("$A")]);
        assert_eq!(Client::ClaudeCode.pieces("${ä", true), [Piece::Text("${ä")]);
    }
}
