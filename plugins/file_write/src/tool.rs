//! `file_write`: writes a whole text file, and makes the directories above it.

use serde::Deserialize;
use toolcrib_sdk::files::{self, LineEndings, Writing};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

pub(crate) struct FileWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File to write: absolute, `~/…`, or relative to the working directory.
    pub(crate) path: String,
    /// The whole new content of the file.
    pub(crate) content: String,
    /// Whether directories above it that are missing are made; they are unless this is false.
    #[serde(default = "yes")]
    pub(crate) create_dirs: bool,
    /// Line endings and byte order mark of a file that is replaced: `keep` them, or write the content `as_given`.
    #[serde(default)]
    pub(crate) line_endings: LineEndings,
    /// Encoding to write in, such as `utf-16le` or `windows-1252`; UTF-8 without it.
    pub(crate) encoding: Option<String>,
}

fn yes() -> bool {
    true
}

impl Tool for FileWrite {
    const NAME: &str = "file_write";
    const TITLE: Option<&str> = Some("Write a file");
    const SUMMARY: &str = "Create a text file or replace all of its content; missing directories are made.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A file must contain the text that you give, whether it is new or replaced as a whole.",
        when_not_to_use: "To change a few lines of a file: what you leave out is gone.",
        disambiguation: "`file_edit` changes a piece; `file_read` shows the present content, so read a file before you replace it.",
        examples: &[r#"{"path":"notes/2026/today.md","content":"- call back at ten\n"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, content, create_dirs, line_endings, encoding }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        if create_dirs && let Some(directory) = above(&path) {
            files::make_directory(directory)?;
        }
        let how = Writing { encoding, keep: line_endings.kept(), revision: None };
        Ok(files::write_encoded(&path, &content, &how)?.said(&path, &content))
    }
}

/// The directory that a path names before its last part, where it names one that may have to be made.
fn above(path: &str) -> Option<&str> {
    let (directory, _) = path.rsplit_once('/')?;
    let directory = directory.trim_end_matches('/');
    (!directory.is_empty() && directory != "~").then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_path_is_refused() {
        let (path, line_endings) = (" \n".into(), LineEndings::Keep);
        let input = Input { path, content: String::new(), create_dirs: true, line_endings, encoding: None };
        assert_eq!(FileWrite::call(input), Err(Failure::invalid("`path` is blank")));
    }

    #[test]
    fn the_directory_above_is_what_comes_before_the_last_part() {
        let made = [
            ("a", None),
            ("/a", None),
            ("~/a", None),
            ("a/b", Some("a")),
            ("/a//b", Some("/a")),
            ("~/a/b", Some("~/a")),
        ];
        for (path, directory) in made {
            assert_eq!(above(path), directory, "{path}");
        }
    }
}
