//! `file_read`: the text of a file, or some of its lines with their numbers.

use serde::Deserialize;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, files, notice, schemars};

/// What a model is shown at once, in bytes.
const SHOWN: usize = 50_000;
/// What is read at once, in characters.
const PIECE: u32 = 256 << 10;
/// How far into a file lines are counted, in bytes.
const COUNTED: u64 = 64 << 20;

pub(crate) struct FileRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File to read: absolute, `~/…`, or relative to the working directory.
    pub(crate) path: String,
    /// Line to start at; the first is 1.
    #[schemars(range(min = 1))]
    pub(crate) offset: Option<u64>,
    /// How many lines to show at most.
    #[schemars(range(min = 1))]
    pub(crate) limit: Option<u64>,
    /// Encoding of the file, such as `utf-16le` or `windows-1252`; UTF-8 without it.
    pub(crate) encoding: Option<String>,
    /// Tell the file's revision, for `expected_revision` of `file_edit`.
    #[serde(default)]
    pub(crate) revision: bool,
}

impl Tool for FileRead {
    const NAME: &str = "file_read";
    const TITLE: Option<&str> = Some("Read a file");
    const SUMMARY: &str = "Read a text file, whole or some of its lines with their numbers.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You know the path and need the content, whole or by lines.",
        when_not_to_use: "To list a directory, or to look at an image.",
        disambiguation: "With `offset` or `limit` each line begins with its number and a tab, which are not part of the file. \
            Hidden characters are shown as `\\u{200b}`. If it cannot be read, do not invent what it contains.",
        examples: &[r#"{"path":"src/main.rs"}"#, r#"{"path":"src/main.rs","offset":120,"limit":40}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { path, offset, limit, encoding, revision }: Input) -> Result<String> {
        if path.trim().is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        if offset == Some(0) || limit == Some(0) {
            return Err(Failure::invalid("`offset` and `limit` count from 1"));
        }
        let is_whole = offset.is_none() && limit.is_none();
        let mut lines = Lines::new(offset.unwrap_or(1), limit.unwrap_or(u64::MAX), !is_whole);
        if encoding.is_some() || revision {
            let file = files::read_encoded(&path, encoding.as_deref())?;
            let _ = lines.take(&file.content);
            if revision {
                notice(format!("the `revision` of `{path}` is `{}`", file.revision));
            }
        } else {
            lines.read(&path)?;
        }
        if let Some(text) = lines.remark(&path) {
            notice(text);
        }
        files::show(&path, &lines.text)
    }
}

/// Lines of a text that comes in pieces.
struct Lines {
    from: u64,
    limit: u64,
    is_numbered: bool,
    /// The line that the next character belongs to, and whether it is its first.
    line: u64,
    is_start: bool,
    text: String,
    /// What is not shown any more.
    stop: Option<Stop>,
}

#[derive(Debug, PartialEq)]
enum Stop {
    /// The line that follows was not asked for, or does not fit.
    Before(u64),
    /// The line is longer than all that may be shown.
    Within(u64),
}

impl Lines {
    fn new(from: u64, limit: u64, is_numbered: bool) -> Self {
        Self { from, limit, is_numbered, line: 1, is_start: true, text: String::new(), stop: None }
    }

    /// Takes pieces of a file in, until no more is needed.
    fn read(&mut self, path: &str) -> Result<()> {
        let mut at = 0;
        loop {
            let piece = files::read(path, at, PIECE)?;
            // A byte order mark is no part of the text.
            let text = if at == 0 { piece.text.strip_prefix('\u{feff}').unwrap_or(&piece.text) } else { &piece.text };
            at += piece.text.len() as u64;
            if !self.take(text) || !piece.truncated {
                return Ok(());
            }
            if at > COUNTED {
                let message = format!("line {} of `{path}` is more than {} MiB into it", self.from, COUNTED >> 20);
                return Err(Failure::limit(message).hint("use run_shell with `sed -n`"));
            }
        }
    }

    /// Takes the next piece in; false when no more is needed.
    fn take(&mut self, piece: &str) -> bool {
        for part in piece.split_inclusive('\n') {
            if self.line >= self.from && !self.show(part) {
                return false;
            }
            self.is_start = part.ends_with('\n');
            self.line += u64::from(self.is_start);
        }
        true
    }

    /// Shows a line or a part of it.
    fn show(&mut self, part: &str) -> bool {
        if self.line - self.from >= self.limit {
            self.stop = Some(Stop::Before(self.line));
            return false;
        }
        let number = if self.is_start && self.is_numbered { format!("{}\t", self.line) } else { String::new() };
        let room = SHOWN.saturating_sub(self.text.len() + number.len());
        if part.len() <= room {
            self.text += &number;
            self.text += part;
            return true;
        }
        // Lines before it are whole; one that is too long by itself is cut.
        let begun = self.text.rfind('\n').map_or(0, |end| end + 1);
        let has_others = if self.is_start { !self.text.is_empty() } else { begun > 0 };
        if has_others {
            if !self.is_start {
                self.text.truncate(begun);
            }
            self.stop = Some(Stop::Before(self.line));
        } else {
            self.text += &number;
            self.text += &part[..part.floor_char_boundary(room)];
            self.stop = Some(Stop::Within(self.line));
        }
        false
    }

    /// What the text itself does not say.
    fn remark(&self, path: &str) -> Option<String> {
        match self.stop {
            Some(Stop::Before(next)) => Some(format!("`{path}` goes on; set `offset` to {next} to read on")),
            Some(Stop::Within(line)) => Some(format!(
                "line {line} of `{path}` is longer than {SHOWN} bytes; `read_file` reads on from any byte"
            )),
            None if self.text.is_empty() && self.from > 1 => {
                let lines = self.line - u64::from(self.is_start);
                Some(format!("`offset` {} is past the end: `{path}` has {lines} lines", self.from))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(from: u64, limit: u64, is_numbered: bool, pieces: &[&str]) -> (String, Option<String>) {
        let mut lines = Lines::new(from, limit, is_numbered);
        let _ = pieces.iter().all(|piece| lines.take(piece));
        (lines.text.clone(), lines.remark("f"))
    }

    #[test]
    fn lines_are_numbered_where_some_are_asked_for() {
        let pieces = ["one\ntw", "o\nthree\n", "four"];
        assert_eq!(read(1, u64::MAX, false, &pieces), ("one\ntwo\nthree\nfour".into(), None));
        let on = Some("`f` goes on; set `offset` to 4 to read on".into());
        assert_eq!(read(2, 2, true, &pieces), ("2\ttwo\n3\tthree\n".into(), on));
        assert_eq!(read(4, 9, true, &pieces), ("4\tfour".into(), None));
    }

    #[test]
    fn an_offset_past_the_end_says_how_many_lines_there_are() {
        for text in ["a\nb\n", "a\nb"] {
            let past = Some("`offset` 9 is past the end: `f` has 2 lines".into());
            assert_eq!(read(9, 1, true, &[text]), (String::new(), past));
        }
        assert_eq!(read(1, 1, false, &[""]), (String::new(), None));
    }

    #[test]
    fn what_does_not_fit_is_read_on_by_lines() {
        let long = format!("{}\n", "x".repeat(30_000));
        let (text, remark) = read(1, u64::MAX, false, &[&long, &long[..10], &long[10..]]);
        assert_eq!((text, remark.unwrap().contains("to 2 to")), (long, true));
        let huge = "é".repeat(30_000);
        let (text, remark) = read(1, u64::MAX, false, &[&huge]);
        assert!(text.len() == SHOWN && remark.unwrap().starts_with("line 1 of `f` is longer"));
    }
}
