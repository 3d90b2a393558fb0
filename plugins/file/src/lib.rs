//! `file`: what `file_read`, `file_write`, `file_edit` and `file_list` do, by one name, for agents that know just that.

#[path = "../../file_edit/src/tool.rs"]
mod edit;
#[path = "../../file_list/src/tool.rs"]
mod list;
#[path = "../../file_read/src/tool.rs"]
mod read;
#[path = "../../file_write/src/tool.rs"]
mod write;

use edit::FileEdit;
use list::{FileList, Found};
use read::FileRead;
use serde::{Deserialize, Serialize};
use toolcrib_sdk::files::LineEndings;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};
use write::FileWrite;

struct File;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    action: Action,
    /// File or directory: absolute, `~/…`, or relative to the working directory. Only `list` does without.
    path: Option<String>,
    /// For `read`: line to start at; the first is 1.
    offset: Option<u64>,
    /// For `read`: how many lines to show at most.
    limit: Option<u64>,
    /// For `write`: the whole new content of the file.
    content: Option<String>,
    /// For `write`: whether directories above it that are missing are made; they are unless this is false.
    create_dirs: Option<bool>,
    /// For `read`: tell the file's revision.
    revision: Option<bool>,
    /// For `write`: `keep` line endings and byte order mark of a file that is replaced, or write the content `as_given`.
    line_endings: Option<LineEndings>,
    /// For `read`, `write`, `edit`: encoding of the file, such as `utf-16le`; UTF-8 without it.
    encoding: Option<String>,
    /// For `edit`: the text to replace, as it was shown.
    old_string: Option<String>,
    /// For `edit`: the text that takes its place; empty to remove it.
    new_string: Option<String>,
    /// For `edit`: replace every occurrence. Else there has to be exactly one.
    replace_all: Option<bool>,
    /// For `edit`: several replacements, made in this order. If one fails, none is made.
    edits: Option<Vec<edit::Edit>>,
    /// For `edit`: the file's `revision` from a read. If the file has changed since, nothing is.
    expected_revision: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Shows a text file, whole or by lines.
    Read,
    /// Creates a file or replaces all of it.
    Write,
    /// Replaces pieces of a file.
    Edit,
    /// Shows what a directory has.
    List,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
enum Output {
    Text(String),
    Listing(Found),
}

impl Tool for File {
    const NAME: &str = "file";
    const TITLE: Option<&str> = Some("Work with a file");
    const SUMMARY: &str = "Read, write, edit or list files, as `action` says.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You know a path, and want to see, replace or change what is there.",
        when_not_to_use: "To search below a directory, or to look into a binary file.",
        disambiguation: "`edit` changes a piece, `write` replaces all. If something cannot be read, do not invent it.",
        examples: &[
            r#"{"action":"read","path":"src/main.rs","offset":120,"limit":40}"#,
            r#"{"action":"edit","path":"a.rs","old_string":"80","new_string":"81"}"#,
        ],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        input.check()?;
        let Input { action, path, encoding, .. } = input;
        let needed = |value: Option<String>, name: &str| {
            value.ok_or_else(|| Failure::invalid(format!("`{name}` is missing for this `action`")))
        };
        match action {
            Action::Read => {
                let (path, revision) = (needed(path, "path")?, input.revision.unwrap_or(false));
                let Input { offset, limit, .. } = input;
                FileRead::call(read::Input { path, offset, limit, encoding, revision }).map(Output::Text)
            }
            Action::Write => {
                let (path, content) = (needed(path, "path")?, needed(input.content, "content")?);
                let create_dirs = input.create_dirs.unwrap_or(true);
                let line_endings = input.line_endings.unwrap_or_default();
                let input = write::Input { path, content, create_dirs, line_endings, encoding };
                FileWrite::call(input).map(Output::Text)
            }
            Action::Edit => {
                let path = needed(path, "path")?;
                let Input { old_string, new_string, replace_all, edits, expected_revision, .. } = input;
                let input =
                    edit::Input { path, old_string, new_string, replace_all, edits, expected_revision, encoding };
                FileEdit::call(input).map(Output::Text)
            }
            Action::List => FileList::call(list::Input { path }).map(Output::Listing),
        }
    }
}

impl Input {
    /// Refuses what belongs to another action: it would be passed over in silence.
    fn check(&self) -> Result<()> {
        use Action::{Edit, Read, Write};
        let given: [(&str, bool, &[Action]); 12] = [
            ("offset", self.offset.is_some(), &[Read]),
            ("limit", self.limit.is_some(), &[Read]),
            ("revision", self.revision.is_some(), &[Read]),
            ("content", self.content.is_some(), &[Write]),
            ("create_dirs", self.create_dirs.is_some(), &[Write]),
            ("line_endings", self.line_endings.is_some(), &[Write]),
            ("encoding", self.encoding.is_some(), &[Read, Write, Edit]),
            ("old_string", self.old_string.is_some(), &[Edit]),
            ("new_string", self.new_string.is_some(), &[Edit]),
            ("replace_all", self.replace_all.is_some(), &[Edit]),
            ("edits", self.edits.is_some(), &[Edit]),
            ("expected_revision", self.expected_revision.is_some(), &[Edit]),
        ];
        match given.into_iter().find(|(_, is_given, of)| *is_given && !of.contains(&self.action)) {
            None => Ok(()),
            Some((name, ..)) => Err(Failure::invalid(format!("`{name}` is not for this `action`")).hint("omit it")),
        }
    }
}

toolcrib_sdk::export!(File);

#[cfg(test)]
mod tests {
    use super::*;

    fn input(action: Action) -> Input {
        let action = format!("{action:?}").to_lowercase();
        serde_json::from_value(serde_json::json!({ "action": action, "path": "a" })).unwrap()
    }

    #[test]
    fn what_belongs_to_another_action_is_refused() {
        let message = |input: Input| File::call(input).unwrap_err().message;
        let odd = Input { content: Some(String::new()), ..input(Action::Read) };
        assert_eq!(message(odd), "`content` is not for this `action`");
        let odd = Input { offset: Some(1), ..input(Action::List) };
        assert_eq!(message(odd), "`offset` is not for this `action`");
        assert_eq!(message(input(Action::Write)), "`content` is missing for this `action`");
        assert_eq!(message(Input { path: None, ..input(Action::Read) }), "`path` is missing for this `action`");
    }
}
