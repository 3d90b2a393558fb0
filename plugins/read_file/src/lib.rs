//! `read_file`: returns the text of one file, as much as a model wants to read at once.

use serde::Deserialize;
use toolcrib_sdk::{Captured, Failure, Guidance, JsonSchema, Result, Tool, files, notice, schemars};

const HEAD_CHARS: u32 = 8_000;

struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// File to read: absolute, `~/…`, or relative to the working directory.
    path: String,
    /// Byte to start at; the notice of a truncated result names the next one.
    offset: Option<u64>,
}

impl Tool for ReadFile {
    const NAME: &str = "read_file";
    const TITLE: Option<&str> = Some("Read a file");
    const SUMMARY: &str = "Read a text file, up to 8,000 characters at a time.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You know the path and need the content: source, configuration, a log, the result of an earlier step.",
        when_not_to_use: "To run a file, to change it, to list a directory, or to look into a binary file.",
        disambiguation: "`write_file` replaces content; `run_shell` with `rg`, `sed -n` or `tail` finds the few lines that \
            matter in a large file.",
        examples: &[r#"{"path":"src/main.rs"}"#, r#"{"path":"build.log","offset":8000}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, offset }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        let offset = offset.unwrap_or(0);
        let captured = files::read(&path, offset, HEAD_CHARS)?;
        if let Some(text) = remark(&path, offset, &captured) {
            notice(text);
        }
        Ok(captured.marked())
    }
}

/// Returns what the text itself does not say: how to go on, or why there is none.
fn remark(path: &str, offset: u64, captured: &Captured) -> Option<String> {
    let Captured { text, bytes, truncated, .. } = captured;
    if *truncated {
        let next = offset + text.len() as u64;
        return Some(format!("`{path}` has {bytes} bytes; set `offset` to {next} to read on"));
    }
    (offset > 0 && text.is_empty())
        .then(|| format!("`offset` {offset} is at or past the end: `{path}` has {bytes} bytes"))
}

toolcrib_sdk::export!(ReadFile);

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str, bytes: u64, truncated: bool) -> Captured {
        Captured { text: text.into(), bytes, truncated, stored: None }
    }

    #[test]
    fn a_cut_text_says_how_to_go_on() {
        let remark = remark("a.txt", 10, &captured("🙂b", 20, true));
        assert_eq!(remark.unwrap(), "`a.txt` has 20 bytes; set `offset` to 15 to read on");
    }

    #[test]
    fn an_offset_behind_the_end_is_remarked() {
        let behind = remark("a.txt", 30, &captured("", 20, false));
        assert_eq!(behind.unwrap(), "`offset` 30 is at or past the end: `a.txt` has 20 bytes");
    }

    #[test]
    fn a_whole_or_empty_file_needs_no_remark() {
        assert_eq!(remark("a.txt", 0, &captured("ab", 2, false)), None);
        assert_eq!(remark("a.txt", 0, &captured("", 0, false)), None);
    }
}
