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
    /// For `edit`: the text to replace, exactly as it is in the file.
    old_string: Option<String>,
    /// For `edit`: the text that takes its place; empty to remove it.
    new_string: Option<String>,
    /// For `edit`: replace every occurrence. Else there has to be exactly one.
    replace_all: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Shows a text file, whole or by lines.
    Read,
    /// Creates a file or replaces all of it.
    Write,
    /// Replaces one piece of a file.
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
        disambiguation: "`file_read`, `file_write`, `file_edit` and `file_list` do the same, each by its own name. \
            If something cannot be read, do not invent what it contains.",
        examples: &[
            r#"{"action":"read","path":"src/main.rs","offset":120,"limit":40}"#,
            r#"{"action":"edit","path":"src/main.rs","old_string":"port = 80;","new_string":"port = 8080;"}"#,
            r#"{"action":"list","path":"src"}"#,
        ],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        input.check()?;
        let Input { action, path, offset, limit, content, create_dirs, old_string, new_string, replace_all } = input;
        let needed = |value: Option<String>, name: &str| {
            value.ok_or_else(|| Failure::invalid(format!("`{name}` is missing for this `action`")))
        };
        match action {
            Action::Read => {
                FileRead::call(read::Input { path: needed(path, "path")?, offset, limit }).map(Output::Text)
            }
            Action::Write => {
                let (path, content) = (needed(path, "path")?, needed(content, "content")?);
                let create_dirs = create_dirs.unwrap_or(true);
                FileWrite::call(write::Input { path, content, create_dirs }).map(Output::Text)
            }
            Action::Edit => {
                let (path, replace_all) = (needed(path, "path")?, replace_all.unwrap_or(false));
                let (old_string, new_string) = (needed(old_string, "old_string")?, needed(new_string, "new_string")?);
                FileEdit::call(edit::Input { path, old_string, new_string, replace_all }).map(Output::Text)
            }
            Action::List => FileList::call(list::Input { path }).map(Output::Listing),
        }
    }
}

impl Input {
    /// Refuses what belongs to another action: it would be passed over in silence.
    fn check(&self) -> Result<()> {
        let given = [
            ("offset", self.offset.is_some(), Action::Read),
            ("limit", self.limit.is_some(), Action::Read),
            ("content", self.content.is_some(), Action::Write),
            ("create_dirs", self.create_dirs.is_some(), Action::Write),
            ("old_string", self.old_string.is_some(), Action::Edit),
            ("new_string", self.new_string.is_some(), Action::Edit),
            ("replace_all", self.replace_all.is_some(), Action::Edit),
        ];
        match given.into_iter().find(|(_, is_given, of)| *is_given && *of != self.action) {
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
        let (path, offset, limit, content) = (Some("a".into()), None, None, None);
        let (create_dirs, old_string, new_string, replace_all) = (None, None, None, None);
        Input { action, path, offset, limit, content, create_dirs, old_string, new_string, replace_all }
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
