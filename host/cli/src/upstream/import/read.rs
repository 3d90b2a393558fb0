//! Reads the files of other clients: bounded, without running what they name, and each on its own, so that a broken one keeps no other from being
//! read.

use super::super::super::setup::usage;
use super::clients::Client;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// Bytes of a file.
const MOST_BYTES: u64 = 4 << 20;

/// JSON with comments and commas before closing brackets, as editors take it.
pub(super) const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

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

/// A file's text; none where it is not there. Links are followed: people keep their settings elsewhere.
pub(super) fn text(file: &Path) -> Result<Option<String>, Failure> {
    let unread = |error: &dyn std::fmt::Display| usage(format!("`{}` cannot be read: {error}", file.display()));
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unread(&error)),
        // A pipe would be waited for.
        Ok(found) if !found.is_file() => return Err(unread(&"it is not a file")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| unread(&error))?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unread(&format!("it is longer than {} MiB", MOST_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| unread(&"it is not UTF-8"))?;
    Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

/// What a file says. An error names the line, and shows nothing of it.
fn parsed(file: &Path, text: &str) -> Result<Value, Failure> {
    let broken = |line: usize, why: &dyn std::fmt::Display| usage(format!("`{}`, line {line}: {why}", file.display()));
    if is_toml(file) {
        let table = toml::from_str::<toml::Table>(text);
        let table = table.map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            broken(text[..at.min(text.len())].matches('\n').count() + 1, &error.message())
        })?;
        return serde_json::to_value(table).map_err(|error| broken(1, &error));
    }
    // An empty file, with which some clients begin, is `null`.
    parse_to_serde_value(text, &JSONC).map_err(|error: ParseError| broken(error.line_display(), &said(&error)))
}

/// Why a text is not JSON, without anything of it.
pub(super) fn said(error: &ParseError) -> String {
    match error.kind() {
        ParseErrorKind::String(_) => "invalid string".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Whether a file is TOML; all others are JSON.
pub(super) fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "toml")
}

fn inputs(whole: &Value) -> BTreeMap<String, bool> {
    let declared = whole.get("inputs").and_then(Value::as_array).into_iter().flatten();
    let read = |input: &Value| {
        let is_password = input.get("password").and_then(Value::as_bool).unwrap_or(false);
        Some((input.get("id")?.as_str()?.to_owned(), is_password))
    };
    declared.filter_map(read).collect()
}
