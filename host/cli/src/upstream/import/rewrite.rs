//! Leaves one entry in the file of a client in place of the servers that were imported. What else the file says stays, and the file as it was is
//! kept beside it.

use super::super::super::setup::{cannot, usage};
use super::clients::Client;
use super::jsonc;
use super::read::{is_toml, text};
use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;
use toolcrib::policy::files::canonical;

/// The name of the entry that is left.
const ENTRY: &str = "toolcrib";
/// What the name of the file as it was ends with.
const BACKUP: &str = ".toolcrib-backup";
/// Such files of one file.
const MOST_BACKUPS: usize = 100;

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
        true => toml(&before, taken, &program).map_err(|why| cannot(file, &why))?,
        false => json(file, &before, taken, &program)?,
    };
    // A link stays one, and what it leads to is kept where it lies.
    let found = canonical(file);
    let kept = keep(&found).map_err(|error| cannot(file, &error))?;
    toolcrib::dirs::replace(&found, after.as_bytes()).map_err(|error| cannot(file, &error))?;
    Ok(kept)
}

/// Copies a file beside it, under a name that nothing has.
fn keep(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mode = file.metadata()?.permissions();
    let names = (1..=MOST_BACKUPS).map(|number| match number {
        1 => format!("{name}{BACKUP}"),
        number => format!("{name}{BACKUP}-{number}"),
    });
    for backup in names.map(|name| file.with_file_name(name)) {
        match File::options().write(true).create_new(true).mode(0o600).open(&backup) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(mut copy) => {
                io::copy(&mut File::open(file)?, &mut copy)?;
                copy.set_permissions(mode)?;
                copy.sync_data()?;
                return Ok(backup);
            }
        }
    }
    Err(io::Error::other(format!("{MOST_BACKUPS} files ending in `{BACKUP}` are beside it: remove some")))
}

fn json(file: &Path, before: &str, taken: &Taken, program: &str) -> Result<String, Failure> {
    let plain = jsonc::plain(before);
    if plain.has_comments {
        return Err(usage(format!("`{}` has comments, which would be lost: it stays as it is", file.display())).hint(
            "remove the servers from it by hand, and add one with the command `toolcrib` and the argument `serve`",
        ));
    }
    let mut entry = json!({ "command": program, "args": ["serve"] });
    if let Some(kind) = taken.client.entry_type() {
        entry["type"] = kind.into();
    }
    let mut after = plain.text;
    let mut entry = Some(entry);
    for table in tables(taken) {
        let names: Vec<&str> = of_table(taken, table).collect();
        after = edited(&after, table, &names, entry.take().as_ref(), 0).map_err(|error| cannot(file, &error))?;
    }
    Ok(after + "\n")
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

/// The object without these members of the table below a path, and with the entry. All values beside the path stay as they are written.
fn edited(
    object: &str,
    path: &[String],
    names: &[&str],
    entry: Option<&Value>,
    depth: usize,
) -> serde_json::Result<String> {
    let mut members: IndexMap<String, Box<RawValue>> = serde_json::from_str(object)?;
    match path.split_first() {
        None => {
            members.retain(|name, _| !names.contains(&name.as_str()));
            if let Some(entry) = entry.filter(|_| !members.contains_key(ENTRY)) {
                members.insert(ENTRY.to_owned(), RawValue::from_string(entry.to_string())?);
            }
        }
        Some((key, rest)) => {
            if let Some(value) = members.get_mut(key) {
                *value = RawValue::from_string(edited(value.get(), rest, names, entry, depth + 1)?)?;
            }
        }
    }
    let indent = "  ".repeat(depth);
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{indent}  {}: {}", Value::from(name.as_str()), value.get()))
        .collect();
    Ok(if members.is_empty() { "{}".into() } else { format!("{{\n{}\n{indent}}}", members.join(",\n")) })
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
    fn other_keys_stay_as_they_are_written() {
        let before = r#"{ "cost": 1.10e2, "mcpServers": { "a": {"command":"a"}, "b": {"x": 0.30} }, "z": [1,  2] }"#;
        let path = ["mcpServers".to_owned()];
        let after = edited(before, &path, &["a"], Some(&json!({ "command": "t" })), 0).unwrap();
        assert_eq!(
            after,
            "{\n  \"cost\": 1.10e2,\n  \"mcpServers\": {\n    \"b\": {\"x\": 0.30},\n    \"toolcrib\": {\"command\":\"t\"}\n  },\n  \"z\": [1,  2]\n}"
        );
        let again = edited(&after, &path, &["b", "toolcrib"], None, 0).unwrap();
        assert!(again.contains("\"mcpServers\": {}"), "{again}");
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
