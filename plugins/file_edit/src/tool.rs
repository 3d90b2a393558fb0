//! `file_edit`: replaces one piece of text in a file by another.

use serde::Deserialize;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, files, schemars};

pub(crate) struct FileEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File to change: absolute, `~/…`, or relative to the working directory.
    pub(crate) path: String,
    /// The text to replace, exactly as it is in the file, line breaks and indentation included.
    pub(crate) old_string: String,
    /// The text that takes its place; empty to remove it.
    pub(crate) new_string: String,
    /// Replace every occurrence. Else there has to be exactly one.
    #[serde(default)]
    pub(crate) replace_all: bool,
}

impl Tool for FileEdit {
    const NAME: &str = "file_edit";
    const TITLE: Option<&str> = Some("Change a file");
    const SUMMARY: &str = "Replace one exact piece of text in a file by another.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have read the file and know the exact text that is to change.",
        when_not_to_use: "To create a file or to replace all of it; to change text that you have not seen.",
        disambiguation: "`write_file` replaces the whole content; `read_file` shows it, and `run_shell` with `sed` changes by pattern. \
            Do not guess `old_string`: if it is not found, read the file again.",
        examples: &[r#"{"path":"src/main.rs","old_string":"let port = 80;","new_string":"let port = 8080;"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, old_string, new_string, replace_all }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        check(&old_string, &new_string)?;
        let file = files::read_whole(&path)?;
        let (content, times) = edited(&path, &file.content, &old_string, &new_string, replace_all)?;
        files::replace(&path, content, &file.revision)?;
        let occurrences = if times == 1 { "1 occurrence".to_owned() } else { format!("{times} occurrences") };
        Ok(format!("Replaced {occurrences} in {path}"))
    }
}

fn check(old: &str, new: &str) -> Result<()> {
    if old.is_empty() {
        return Err(Failure::invalid("`old_string` is empty").hint("give the text that is to be replaced"));
    }
    if old == new {
        return Err(Failure::invalid("`old_string` and `new_string` are the same, so nothing would change"));
    }
    Ok(())
}

/// The new content, and how often the text was replaced.
fn edited(path: &str, content: &str, old: &str, new: &str, all: bool) -> Result<(String, usize)> {
    let times = content.matches(old).count();
    match times {
        0 => Err(Failure::failed(format!("`old_string` is not in `{path}`"))
            .hint("read the file again, and give the text exactly as it is there")),
        2.. if !all => Err(Failure::failed(format!("`old_string` is {times} times in `{path}`; nothing was changed"))
            .hint("give more of the text around it, or set `replace_all`")),
        _ => Ok((content.replace(old, new), times)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_occurrence_is_replaced_unless_all_are_to_be() {
        assert_eq!(edited("f", "a b a", "b", "c", false), Ok(("a c a".into(), 1)));
        assert_eq!(edited("f", "a b a", "a", "", true), Ok((" b ".into(), 2)));
        let twice = edited("f", "a b a", "a", "c", false).unwrap_err();
        assert_eq!(twice.message, "`old_string` is 2 times in `f`; nothing was changed");
        assert_eq!(edited("f", "a b a", "x", "c", true).unwrap_err().message, "`old_string` is not in `f`");
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        assert!(check("", "a").is_err() && check("a", "a").is_err() && check("a", "").is_ok());
    }
}
