//! `file_list`: what a directory has.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::files::{self, EntryKind, Listing};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// What a model is shown at once.
const ENTRIES: u32 = 500;

pub(crate) struct FileList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Directory to list: absolute, `~/…`, or relative to the working directory. Without it, that directory.
    pub(crate) path: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// At most 500, by name.
    entries: Vec<Entry>,
    /// How many the directory has.
    total: u64,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Entry {
    name: String,
    /// `file`, `directory`, `link` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl From<files::Entry> for Entry {
    fn from(entry: files::Entry) -> Self {
        let kind = match entry.kind {
            EntryKind::File => "file",
            EntryKind::Directory => "directory",
            EntryKind::Link => "link",
            EntryKind::Other => "other",
        };
        Self { name: entry.name, kind, size: (entry.kind == EntryKind::File).then_some(entry.size) }
    }
}

impl Tool for FileList {
    const NAME: &str = "file_list";
    const TITLE: Option<&str> = Some("List a directory");
    const SUMMARY: &str = "List the files and directories in a directory, with their types and sizes.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need to know what is in a directory before you read or write there.",
        when_not_to_use: "To search below a directory, or for the text of a file.",
        disambiguation: "It shows one directory; `file_find` goes into all below.",
        examples: &[r#"{"path":"src"}"#, "{}"],
    };
    type Input = Input;
    type Output = Found;

    fn call(Input { path }: Input) -> Result<Found> {
        let path = path.as_deref().unwrap_or(".");
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let Listing { entries, total } = files::list_directory(path, ENTRIES)?;
        if total > u64::from(ENTRIES) {
            notice(format!(
                "these are the first {ENTRIES} of {total} entries; `run_shell` with `ls` or `find` shows others"
            ));
        }
        Ok(Found { entries: entries.into_iter().map(Entry::from).collect(), total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_have_a_size() {
        let entry = |kind| files::Entry { name: "a".into(), kind, size: 0, modified_ms: None };
        assert_eq!(Entry::from(entry(EntryKind::File)), Entry { name: "a".into(), kind: "file", size: Some(0) });
        assert_eq!(Entry::from(entry(EntryKind::Link)), Entry { name: "a".into(), kind: "link", size: None });
    }

    #[test]
    fn a_blank_path_is_refused() {
        assert_eq!(FileList::call(Input { path: Some(" ".into()) }), Err(Failure::invalid("`path` is blank")));
    }
}
