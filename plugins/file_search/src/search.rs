//! `file_search`: lines that have a pattern, as text in groups by file.

use crate::said;
use serde::Deserialize;
use toolcrib_sdk::files::{self, FoundFile, FoundLine, FoundLines, LineQuery, Pattern, Which};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Lines with the pattern that a model is shown, unless it says how many.
const LINES: u32 = 100;
/// The same at most.
const MOST_LINES: u32 = 1000;
/// Bytes of a line that it is shown.
const LINE_BYTES: u32 = 400;
/// Bytes that it is shown at once.
const SHOWN: usize = 50_000;

pub(crate) struct FileSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Regular expression, for each line.
    pub(crate) pattern: String,
    /// Directory or file; default: the working directory.
    pub(crate) path: Option<String>,
    /// Only files that match: `src/**`, `*.{js,ts}`, `!*.min.js`.
    pub(crate) glob: Option<String>,
    /// Only this type: `rust`, `py`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// `pattern` is plain text.
    #[serde(default)]
    pub(crate) literal: bool,
    /// Ignore upper and lower case.
    #[serde(default)]
    pub(crate) ignore_case: bool,
    /// Lines before and after each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    pub(crate) context: u32,
    /// Hidden files too.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Ignored files too.
    #[serde(default)]
    pub(crate) no_ignore: bool,
    /// Most matches; default: 100.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) limit: Option<u32>,
    /// Matches to skip.
    #[serde(default)]
    #[schemars(range(max = 9000))]
    pub(crate) offset: u32,
}

impl Tool for FileSearch {
    const NAME: &str = "file_search";
    const TITLE: Option<&str> = Some("Search in files");
    const SUMMARY: &str = "Search the contents of files for a regular expression.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You look for text in files.",
        when_not_to_use: "You want files by name: use `file_find`.",
        disambiguation: "Hidden and ignored files are skipped.",
        examples: &[r#"{"pattern":"fn main\\(","type":"rust"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(input: Input) -> Result<String> {
        let path = input.path.as_deref().unwrap_or(".").trim();
        if path.is_empty() {
            return Err(Failure::invalid("`path` is blank"));
        }
        if input.pattern.is_empty() {
            return Err(Failure::invalid("`pattern` is empty").hint("`file_find` lists files"));
        }
        let limit = input.limit.unwrap_or(LINES).clamp(1, MOST_LINES);
        let found = files::search(
            path,
            &LineQuery {
                files: Which {
                    globs: input.glob.into_iter().collect(),
                    types: input.kind.into_iter().collect(),
                    hidden: input.hidden,
                    ignored: input.no_ignore,
                },
                pattern: Pattern { text: input.pattern, literal: input.literal, ignore_case: input.ignore_case },
                before: input.context,
                after: input.context,
                skip: input.offset,
                max: limit,
                line_bytes: LINE_BYTES,
            },
        )?;
        found.notices.iter().for_each(|said| notice(said.as_str()));
        Ok(text(path, &found, input.offset))
    }
}

/// What a model reads.
fn text(path: &str, found: &FoundLines, offset: u32) -> String {
    let mut shown = Shown::default();
    let has_context = found.files.iter().flat_map(|file| &file.lines).any(|line| line.column.is_none());
    let is_whole = found.files.iter().all(|file| shown.file(path, file, has_context));
    let Shown { mut text, matches, files } = shown;
    let count =
        |count: u64, one: &str, more: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {more}") };
    let mut last = Vec::new();
    if matches == 0 && offset > 0 {
        last.push(format!("No match after the first {offset}."));
    } else if matches == 0 {
        last.push(format!("No match in {}.", count(found.looked.files, "file", "files")));
    } else if found.more || !is_whole {
        let next = u64::from(offset) + matches;
        last.push(format!("{} shown. More follow: set `offset` to {next}.", count(matches, "match", "matches")));
    } else {
        last.push(format!("{} in {}.", count(matches, "match", "matches"), count(files, "file", "files")));
    }
    if !found.binary.is_empty() {
        let names: Vec<String> = found.binary.iter().map(|below| said::path(path, below)).collect();
        last.push(format!("Binary files match: {}.", names.join(", ")));
    }
    last.extend(said::remarks(&found.looked, matches == 0));
    text.push_str(&last.join("\n"));
    text
}

/// Files and lines as far as they fit.
#[derive(Default)]
struct Shown {
    text: String,
    matches: u64,
    files: u64,
}

impl Shown {
    /// Adds the lines of a file; false when they do not all fit.
    fn file(&mut self, path: &str, file: &FoundFile, has_context: bool) -> bool {
        let head = format!("{}\n", said::path(path, &file.path));
        let before = self.text.len();
        self.text.push_str(&head);
        let begun = self.text.len();
        let mut last = None;
        let mut is_whole = true;
        for line in &file.lines {
            let is_apart = has_context && last.is_some_and(|last| last + 1 < line.number);
            let row = format!("{}{}\n", if is_apart { "--\n" } else { "" }, row(line));
            // One is shown in any case, so that each call comes further.
            if self.text.len() + row.len() > SHOWN && self.matches > 0 {
                is_whole = false;
                break;
            }
            self.text.push_str(&row);
            self.matches += u64::from(line.column.is_some());
            last = Some(line.number);
        }
        if self.text.len() == begun {
            self.text.truncate(before);
        } else {
            self.files += 1;
            self.text.push('\n');
        }
        is_whole
    }
}

/// `12:` before a line that matches, `12-` before one beside it.
fn row(line: &FoundLine) -> String {
    let mark = if line.column.is_some() { ':' } else { '-' };
    let (from, to) = (if line.before > 0 { "…" } else { "" }, if line.after > 0 { "…" } else { "" });
    format!("{}{mark}{from}{}{to}", line.number, line.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::files::Looked;

    fn line(number: u64, text: &str, is_match: bool) -> FoundLine {
        FoundLine { number, text: text.into(), column: is_match.then_some(0), ..FoundLine::default() }
    }

    fn found(files: &[(&str, &[FoundLine])], more: bool) -> FoundLines {
        let file = |(path, lines): &(&str, &[FoundLine])| FoundFile { path: (*path).into(), lines: lines.to_vec() };
        let looked = Looked { files: 7, ..Looked::default() };
        FoundLines { files: files.iter().map(file).collect(), more, looked, ..FoundLines::default() }
    }

    #[test]
    fn lines_come_below_their_file() {
        let lines = [line(3, "a", true), line(4, "b", false), line(9, "a a", true)];
        let said = text("src", &found(&[("x.rs", &lines), ("y/z.rs", &[line(1, "a", true)])], false), 0);
        assert_eq!(said, "src/x.rs\n3:a\n4-b\n--\n9:a a\n\nsrc/y/z.rs\n1:a\n\n3 matches in 2 files.");
        let cut = FoundLine { before: 5, after: 1, ..line(2, "part", true) };
        assert_eq!(
            text("a.rs", &found(&[("", &[cut])], true), 4),
            "a.rs\n2:…part…\n\n1 match shown. More follow: set `offset` to 5."
        );
    }

    #[test]
    fn nothing_is_said_in_words() {
        assert_eq!(text(".", &found(&[], false), 0), "No match in 7 files.");
        let binary = FoundLines { binary: vec!["a.png".into()], ..found(&[], false) };
        assert_eq!(text(".", &binary, 0), "No match in 7 files.\nBinary files match: a.png.");
    }

    #[test]
    fn what_does_not_fit_is_continued() {
        let long = "x".repeat(30_000);
        let lines = [line(1, &long, true), line(2, &long, true), line(3, &long, true)];
        let said = text(".", &found(&[("a", &lines), ("b", &lines)], false), 10);
        assert!(said.ends_with("1 match shown. More follow: set `offset` to 11."), "{}", &said[said.len() - 80..]);
    }
}
