//! `write_file`: replaces the whole content of one file.

use serde::Deserialize;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, files, schemars};

struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File to write: absolute, `~/…`, or relative to the working directory. Its directory must exist.
    path: String,
    /// The whole new content of the file.
    content: String,
}

impl Tool for WriteFile {
    const NAME: &str = "write_file";
    const TITLE: Option<&str> = Some("Write a file");
    const SUMMARY: &str = "Create a text file, or replace all of its content.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A file must contain exactly the text that you give, whether it is new or replaced as a whole.",
        when_not_to_use: "To append, or to change a few lines of a large file: what you leave out is gone.",
        disambiguation: "`read_file` shows the present content, so read a file before you replace it; `run_shell` \
            edits in place, makes directories and sets modes.",
        examples: &[r#"{"path":"notes/today.md","content":"- call back at ten\n"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, content }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let bytes = files::write(&path, content)?;
        Ok(format!("Wrote {bytes} bytes to {path}"))
    }
}

toolcrib_sdk::export!(WriteFile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_path_is_refused() {
        let input = Input { path: " \n".into(), content: String::new() };
        assert_eq!(WriteFile::call(input), Err(Failure::invalid("`path` is blank")));
    }
}
