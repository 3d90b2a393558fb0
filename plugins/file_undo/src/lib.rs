//! `file_undo`: puts files back as they were before a file tool changed them, or a command.

use serde::Deserialize;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, files, schemars};

struct FileUndo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file whose last change is undone. Absent: all that your last call of a file tool changed.
    path: Option<String>,
}

impl Tool for FileUndo {
    const NAME: &str = "file_undo";
    const TITLE: Option<&str> = Some("Undo a change of a file");
    const SUMMARY: &str = "Put a file back as it was before you changed it with a file tool or a command.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Your last change of a file was wrong.",
        when_not_to_use: "To take back all that a command changed: use git.",
        disambiguation: "A second call undoes the change before. A file that was new is removed. A file that has changed since stays, and you \
            see what differs. With `path`, a file that only commands changed comes back as it was before them; ignored files do not.",
        examples: &["{}", r#"{"path":"src/main.rs"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path }: Input) -> Result<String> {
        if path.as_deref().is_some_and(|path| path.trim().is_empty()) {
            return Err(Failure::invalid("`path` is blank").hint("name a file, or omit `path`"));
        }
        report(files::undo(path.as_deref())?)
    }
}

/// One line for each file that was put back; a failure if none was, or if some were not.
fn report(undone: Vec<files::Undone>) -> Result<String> {
    let mut lines = Vec::new();
    let mut refused = None;
    for files::Undone { path, refusal } in undone {
        match refusal {
            None => lines.push(format!("{path} is as it was before")),
            Some(why) => {
                lines.push(why.message.clone());
                refused.get_or_insert(why);
            }
        }
    }
    match refused {
        None => Ok(lines.join("\n")),
        Some(why) => Err(Failure { message: lines.join("\n"), ..why }),
    }
}

toolcrib_sdk::export!(FileUndo);

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(path: &str, refusal: Option<Failure>) -> files::Undone {
        files::Undone { path: path.into(), refusal }
    }

    #[test]
    fn each_file_is_told_and_one_that_stays_is_a_failure() {
        assert_eq!(report(vec![undone("/a", None)]), Ok("/a is as it was before".into()));
        let why = Failure::failed("`/b` has changed since; it was left as it is").hint("make the change yourself");
        let refused = report(vec![undone("/a", None), undone("/b", Some(why))]).expect_err("one stays");
        assert_eq!(refused.message, "/a is as it was before\n`/b` has changed since; it was left as it is");
        assert_eq!(refused.hint.as_deref(), Some("make the change yourself"));
    }
}
