//! `write_file`: replaces the whole content of one file.

use serde::Deserialize;
use toolcrib_sdk::files::{self, LineEndings, Writing};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File to write: absolute, `~/…`, or relative to the working directory. Its directory must exist.
    path: String,
    /// The whole new content of the file.
    content: String,
    /// Line endings and byte order mark of a replaced file: `keep` them, or write `as_given`.
    #[serde(default)]
    line_endings: LineEndings,
    /// Encoding, such as `utf-16le`; default: UTF-8.
    encoding: Option<String>,
}

impl Tool for WriteFile {
    const NAME: &str = "write_file";
    const TITLE: Option<&str> = Some("Write a file");
    const SUMMARY: &str = "Create a text file, or replace all of its content.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To make a file, or to replace all of it.",
        when_not_to_use: "To change a few lines: use `file_edit`.",
        disambiguation: "The directory must exist; `file_write` makes it.",
        examples: &[r#"{"path":"notes/today.md","content":"- call back at ten\n"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, content, line_endings, encoding }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let how = Writing { encoding, keep: line_endings.kept(), revision: None };
        Ok(files::write_encoded(&path, &content, &how)?.said(&path, &content))
    }
}

toolcrib_sdk::export!(WriteFile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_path_is_refused() {
        let (path, line_endings) = (" \n".into(), LineEndings::Keep);
        let input = Input { path, content: String::new(), line_endings, encoding: None };
        assert_eq!(WriteFile::call(input), Err(Failure::invalid("`path` is blank")));
    }
}
