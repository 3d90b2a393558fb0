//! Leaves one entry in the file of a client in place of the servers that were imported. What else the file says stays, and the file as it was is
//! kept beside it.

use super::super::super::clients::file::{is_toml, keep, text};
use super::super::super::clients::{JSONC, said};
use super::super::super::setup::cannot;
use super::clients::Client;
use base::paths::canonical;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// The name of the entry that is left.
const ENTRY: &str = "toolcrib";
/// What the name of the file as it was ends with.
const BACKUP: &str = ".toolcrib-backup";

/// The servers that are taken out of a file.
pub(super) struct Taken<'f> {
    pub(super) client: Client,
    /// By the keys that lead to the table they stand in, and their names.
    pub(super) servers: Vec<(&'f [String], &'f str)>,
}

/// Rewrites a file; returns where it is kept as it was.
pub(super) fn rewrite(file: &Path, taken: &Taken) -> Result<PathBuf, Failure> {
    let before = text(file)?.ok_or_else(|| cannot(file, &"it is gone"))?;
    let program = std::env::current_exe().ok().filter(|program| program.is_file());
    let program = program.map_or_else(|| ENTRY.to_owned(), |program| program.display().to_string());
    let after = match is_toml(file) {
        true => toml(&before, taken, &program),
        false => json(&before, taken, &program),
    };
    let after = after.map_err(|why| cannot(file, &why))?;
    // A link stays one, and what it leads to is kept where it lies.
    let found = canonical(file);
    let kept = keep(&found, BACKUP).map_err(|error| cannot(file, &error))?;
    base::dirs::replace(&found, after.as_bytes()).map_err(|error| cannot(file, &error))?;
    Ok(kept)
}

fn json(before: &str, taken: &Taken, program: &str) -> Result<String, String> {
    let root = CstRootNode::parse(before, &JSONC).map_err(|error| said(&error))?;
    let mut is_first = true;
    for table in tables(taken) {
        let mut servers = root.object_value().ok_or("it is not a table")?;
        for key in table {
            // Of a key that is there twice, programs take the last.
            let mut of_key = servers.properties().into_iter().rev();
            let last = of_key.find(|property| property.decoded_name().as_deref() == Some(key));
            servers = last.and_then(|last| last.object_value()).ok_or_else(|| format!("`{key}` is gone"))?;
        }
        for name in of_table(taken, table) {
            while let Some(server) = servers.get(name) {
                server.remove();
            }
        }
        if std::mem::take(&mut is_first) && servers.get(ENTRY).is_none() {
            servers.append(ENTRY, entry(taken.client, program));
        }
    }
    Ok(root.to_string())
}

/// The entry of this program.
fn entry(client: Client, program: &str) -> CstInputValue {
    let text = |text: &str| CstInputValue::from(text);
    let mut fields = vec![("command".to_owned(), text(program)), ("args".to_owned(), vec!["serve"].into())];
    fields.extend(client.entry_type().map(|kind| ("type".to_owned(), text(kind))));
    fields.into()
}

/// The tables that servers are taken out of, each once.
fn tables<'f>(taken: &Taken<'f>) -> Vec<&'f [String]> {
    let mut tables: Vec<&[String]> = Vec::new();
    for (table, _) in &taken.servers {
        if !tables.contains(table) {
            tables.push(table);
        }
    }
    tables
}

fn of_table<'f>(taken: &Taken<'f>, table: &[String]) -> impl Iterator<Item = &'f str> {
    taken.servers.iter().filter(move |(of, _)| *of == table).map(|(_, name)| *name)
}

fn toml(before: &str, taken: &Taken, program: &str) -> Result<String, String> {
    let document = before.parse::<toml_edit::DocumentMut>();
    let mut document = document.map_err(|error| error.message().to_owned())?;
    let mut is_first = true;
    for table in tables(taken) {
        let mut servers = document.as_table_mut() as &mut dyn toml_edit::TableLike;
        for key in table {
            let below = servers.get_mut(key).and_then(toml_edit::Item::as_table_like_mut);
            servers = below.ok_or_else(|| format!("`{key}` is gone"))?;
        }
        for name in of_table(taken, table) {
            servers.remove(name);
        }
        if std::mem::take(&mut is_first) && !servers.contains_key(ENTRY) {
            let mut entry = toml_edit::Table::new();
            entry.insert("command", toml_edit::value(program));
            entry.insert("args", toml_edit::value(toml_edit::Array::from_iter(["serve"])));
            servers.insert(ENTRY, toml_edit::Item::Table(entry));
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_json_keeps_its_comments_and_other_keys_as_they_are_written() {
        let (table, name) = (["mcpServers".to_owned()], "a");
        let taken = Taken { client: Client::ClaudeCode, servers: vec![(&table, name)] };
        let after = |before: &str| json(before, &taken, "/t").unwrap();
        assert_eq!(
            after(r#"{ "cost": 1.10e2, "mcpServers": { "a": {"command":"a"}, "b": {"x": 0.30} }, "z": [1,  2] }"#),
            r#"{ "cost": 1.10e2, "mcpServers": {
    "b": {"x": 0.30},
    "toolcrib": {
      "command": "/t",
      "args": ["serve"]
    }
  }, "z": [1,  2] }"#
        );
        assert_eq!(
            after(
                "{\n  // Mine.\n  \"mcpServers\": {\n    \"a\": {}, // first\n    \"toolcrib\": 1, /* own */\n  },\n}\n"
            ),
            "{\n  // Mine.\n  \"mcpServers\": {\n    \"toolcrib\": 1, /* own */\n  },\n}\n"
        );
        assert_eq!(
            after(r#"{ "mcpServers": { "a": {} }, "mcpServers": { "a": {}, "toolcrib": 1 } }"#),
            r#"{ "mcpServers": { "a": {} }, "mcpServers": { "toolcrib": 1 } }"#
        );
        assert_eq!(json("{}", &taken, "/t").unwrap_err(), "`mcpServers` is gone");
    }

    #[test]
    fn a_file_of_toml_keeps_its_comments() {
        let (table, name) = (["mcp_servers".to_owned()], "a");
        let taken = Taken { client: Client::Codex, servers: vec![(&table, name)] };
        let before =
            "# Mine.\nmodel = \"x\"  # y\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.b]\ncommand = \"b\"\n";
        let after = toml(before, &taken, "/t").unwrap();
        assert!(after.starts_with("# Mine.\nmodel = \"x\"  # y\n"), "{after}");
        assert!(after.contains("[mcp_servers.b]") && !after.contains("[mcp_servers.a]"), "{after}");
        assert!(after.contains("[mcp_servers.toolcrib]\ncommand = \"/t\"\nargs = [\"serve\"]"), "{after}");
    }
}
