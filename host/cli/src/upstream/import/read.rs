//! The servers that files of other clients list. Nothing that they name is run, and a broken file keeps no other from being read.

use super::super::super::clients::file::{parsed, text};
use super::super::super::setup::usage;
use super::clients::Client;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// A server as a client has it.
pub(super) struct Entry {
    pub(super) client: Client,
    pub(super) file: PathBuf,
    /// The keys that lead to the table that it stands in.
    pub(super) table: Vec<String>,
    /// What the client calls it.
    pub(super) name: String,
    /// None where it is not a table.
    pub(super) fields: Option<Map<String, Value>>,
    /// What the client asks its user for, each with whether it is a password.
    pub(super) inputs: BTreeMap<String, bool>,
    /// Another file of the client has it switched off.
    pub(super) is_refused: bool,
}

/// The servers in a file; none where there is no such file.
pub(super) fn entries(client: Client, file: &Path, here: &Path) -> Result<Option<Vec<Entry>>, Failure> {
    let Some(text) = text(file)? else { return Ok(None) };
    let whole = parsed(file, &text)?;
    let inputs = inputs(&whole);
    let mut entries = Vec::new();
    for table in client.tables(here) {
        let found = table.iter().try_fold(&whole, |value, key| value.get(key));
        match found {
            None | Some(Value::Null) => {}
            Some(Value::Object(servers)) => entries.extend(servers.iter().map(|(name, entry)| Entry {
                client,
                file: file.to_owned(),
                table: table.clone(),
                name: name.clone(),
                fields: entry.as_object().cloned(),
                inputs: inputs.clone(),
                is_refused: false,
            })),
            Some(_) => return Err(usage(format!("`{}`: `{}` is not a table", file.display(), table.join(".")))),
        }
    }
    Ok(Some(entries))
}

/// The names in a list that a file has; none where it has no such list.
pub(super) fn names(file: &Path, keys: &[String]) -> Result<Vec<String>, Failure> {
    let Some(text) = text(file)? else { return Ok(Vec::new()) };
    let whole = parsed(file, &text)?;
    let found = keys.iter().try_fold(&whole, |value, key| value.get(key));
    let listed = found.and_then(Value::as_array).into_iter().flatten();
    Ok(listed.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn inputs(whole: &Value) -> BTreeMap<String, bool> {
    let declared = whole.get("inputs").and_then(Value::as_array).into_iter().flatten();
    let read = |input: &Value| {
        let is_password = input.get("password").and_then(Value::as_bool).unwrap_or(false);
        Some((input.get("id")?.as_str()?.to_owned(), is_password))
    };
    declared.filter_map(read).collect()
}
