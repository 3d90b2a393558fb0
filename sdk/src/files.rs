//! Regular files on the call's backend.
//!
//! A relative path starts at the backend's working directory, `~/` at the user's home. The host resolves links and
//! then judges.

use crate::host::files;
use crate::{Captured, Failure, Result, notice};

pub use files::{Encoded, Keep, LineEnds, Writing, Written};

/// What one read returns at most, in bytes.
const MAX_BYTES: u32 = 4 << 20;

/// Reads a whole text file.
///
/// # Errors
/// `limit` for a file of more than 4 MiB, else as [`read`].
pub fn read_text(path: &str) -> Result<String> {
    let captured = read(path, 0, MAX_BYTES)?;
    if captured.truncated {
        let message = format!("`{path}` has {} bytes, more than the 4 MiB that fit into one read", captured.bytes);
        return Err(Failure::limit(message));
    }
    Ok(captured.text)
}

/// Reads at most `max` characters of text that start `offset` bytes into the file.
///
/// `captured.bytes` is the size of the whole file. An offset inside a character moves on to the next one.
///
/// # Errors
/// `denied` by policy; `execution_failed` for what is missing, not a regular file or not UTF-8.
pub fn read(path: &str, offset: u64, max: u32) -> Result<Captured> {
    files::read(path, offset, max).map_err(Failure::from_host)
}

/// A whole text file, and what tells its content from any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The text.
    pub content: String,
    /// For [`replace`].
    pub revision: String,
}

/// Reads a whole text file of at most 4 MiB, to change it.
///
/// # Errors
/// `limit` for a larger one, else as [`read`].
pub fn read_whole(path: &str) -> Result<Whole> {
    let files::Whole { content, revision } = files::read_whole(path).map_err(Failure::from_host)?;
    Ok(Whole { content, revision })
}

/// Replaces the whole content of a file if it still has that of `revision`, and returns the number of bytes written. An empty revision is
/// that of a file which does not exist.
///
/// # Errors
/// `busy` where it has another content by now; else as [`write()`].
pub fn replace(path: &str, content: impl AsRef<[u8]>, revision: &str) -> Result<u64> {
    files::replace(path, content.as_ref(), revision).map_err(Failure::from_host)
}

/// Reads a whole text file of at most 4 MiB in an encoding, by a label such as `utf-16le`, `windows-1252` or `gbk`; without one UTF-8.
///
/// # Errors
/// `execution_failed` for a file in another encoding, with the likely one; `invalid_arguments` for an unknown label; `limit` for a larger file;
/// else as [`read`].
pub fn read_encoded(path: &str, encoding: Option<&str>) -> Result<Encoded> {
    files::read_encoded(path, encoding).map_err(Failure::from_host)
}

/// Replaces the whole content of a text file, or creates it, in an encoding.
///
/// # Errors
/// `invalid_arguments` for a character that the encoding lacks; `busy` where the file is not of the revision that is wanted; else as [`write()`].
pub fn write_encoded(path: &str, content: &str, how: &Writing) -> Result<Written> {
    files::write_encoded(path, content, how).map_err(Failure::from_host)
}

/// Returns a text of a file as a model is to be shown it, that is to change the file: a character that results cannot hold is written as its
/// code point, such as `\u{200b}`, and CR LF is a line break, of which a notice tells.
///
/// # Errors
/// `denied` without the capability, `limit` for more than a call may hand over.
pub fn show(path: &str, text: &str) -> Result<String> {
    let crlf = text.matches("\r\n").count();
    if crlf > 0 {
        let which = if crlf == text.matches('\n').count() { "its lines" } else { "some lines" };
        notice(format!("`{path}` ends {which} with CRLF, which edits keep; a line break stands for it here"));
    }
    notation(text)
}

/// As [`show`], without a notice.
///
/// # Errors
/// As [`show`].
pub fn notation(text: &str) -> Result<String> {
    // Most text needs no host.
    if text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return Ok(text.to_owned());
    }
    files::notation(text).map_err(Failure::from_host)
}

/// Whether a written file keeps the ends of lines and the byte order mark of the file that it replaces: the argument `line_endings` of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineEndings {
    /// Those of the file, if it ends all lines alike, and its byte order mark.
    #[default]
    Keep,
    /// Those of the content.
    AsGiven,
}

impl LineEndings {
    /// Returns what is to be kept.
    #[must_use]
    pub const fn kept(self) -> Keep {
        match self {
            Self::Keep => Keep::Style,
            Self::AsGiven => Keep::Nothing,
        }
    }
}

impl Written {
    /// Returns the sentence that tells a model what was written of `content`, and what it does not see of it.
    #[must_use]
    pub fn said(&self, path: &str, content: &str) -> String {
        let mut said = format!("Wrote {} bytes to {path}", self.bytes);
        if self.encoding != "UTF-8" {
            said += &format!(" in {}", self.encoding);
        }
        let mark = self.has_mark.then_some("a byte order mark");
        let line_ends = match self.line_ends {
            Some(LineEnds::Crlf) => Some("CRLF line endings"),
            Some(LineEnds::Lf) if content.contains("\r\n") => Some("LF line endings"),
            Some(LineEnds::Lf | LineEnds::Mixed) | None => None,
        };
        let with: Vec<_> = mark.into_iter().chain(line_ends).collect();
        if !with.is_empty() {
            said += &format!(" with {}", with.join(" and "));
        }
        if self.line_ends == Some(LineEnds::Mixed) {
            said += "; it had both CRLF and LF line endings, and has those of the content now";
        }
        if let Some(was) = &self.was {
            said += &format!("; it was {was} before");
        }
        said
    }
}

/// Reads at most `max` bytes that start `offset` bytes into the file, whatever they are; at most 4 MiB.
///
/// # Errors
/// As [`read`], but for what is not UTF-8.
pub fn read_bytes(path: &str, offset: u64, max: u32) -> Result<Vec<u8>> {
    files::read_bytes(path, offset, max).map_err(Failure::from_host)
}

/// Adds to the end of a file of at most 4 MiB, or creates it, and returns the size that it has now.
///
/// # Errors
/// `limit` for a larger one, `busy` where somebody else writes it meanwhile; else as [`write()`].
pub fn append(path: &str, content: impl AsRef<[u8]>) -> Result<u64> {
    files::append(path, content.as_ref()).map_err(Failure::from_host)
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which was not followed.
    Link,
    /// A device, a socket, a pipe …
    Other,
}

/// What a directory has under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without its directory. What is not UTF-8 in it is replaced by U+FFFD.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file; 0 for all others.
    pub size: u64,
    /// When it was changed last, in milliseconds since 1970; none where the backend does not say.
    pub modified_ms: Option<u64>,
}

impl From<files::Entry> for Entry {
    fn from(entry: files::Entry) -> Self {
        let kind = match entry.kind {
            files::EntryKind::File => EntryKind::File,
            files::EntryKind::Directory => EntryKind::Directory,
            files::EntryKind::Link => EntryKind::Link,
            files::EntryKind::Other => EntryKind::Other,
        };
        Self { name: entry.name, kind, size: entry.size, modified_ms: entry.modified_ms }
    }
}

/// What a directory has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The first of them, in the order of the bytes of their names.
    pub entries: Vec<Entry>,
    /// How many there are.
    pub total: u64,
}

/// The first `max` entries of a directory, at most 10,000.
///
/// # Errors
/// `limit` for a directory of more than 100,000 entries; `execution_failed` for what is none; else as [`read`].
pub fn list_directory(path: &str, max: u32) -> Result<Listing> {
    let files::Listing { entries, total } = files::list_directory(path, max).map_err(Failure::from_host)?;
    Ok(Listing { entries: entries.into_iter().map(Entry::from).collect(), total })
}

/// What a path leads to; never a link.
///
/// # Errors
/// As [`read`], for any kind of file.
pub fn stat(path: &str) -> Result<Entry> {
    files::stat(path).map(Entry::from).map_err(Failure::from_host)
}

/// Makes a directory, and those above it that are missing; false where it was there.
///
/// # Errors
/// `denied` by policy or by whoever was asked; `execution_failed` where something else has the name.
pub fn make_directory(path: &str) -> Result<bool> {
    files::make_directory(path).map_err(Failure::from_host)
}

/// A file that was to be put back as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// Absolute.
    pub path: String,
    /// Why it was left as it is; none: it is as it was before.
    pub refusal: Option<Failure>,
}

/// Puts files back as they were before the last call of this session that changed any by this interface; with a path, only that file, as it
/// was before its last change. A file that was new is removed.
///
/// # Errors
/// `execution_failed` if nothing was changed, `unavailable` for files of another machine.
pub fn undo(path: Option<&str>) -> Result<Vec<Undone>> {
    let undone = files::undo(path).map_err(Failure::from_host)?;
    Ok(undone
        .into_iter()
        .map(|files::Undone { path, refusal }| Undone { path, refusal: refusal.map(Failure::from_host) })
        .collect())
}

/// Replaces the whole content of a file, or creates it, and returns the number of bytes written.
///
/// Whoever reads the path sees the old or the new content. The directory must exist.
///
/// # Errors
/// `denied` by policy; `execution_failed` where the file cannot be written.
pub fn write(path: &str, content: impl AsRef<[u8]>) -> Result<u64> {
    files::write(path, content.as_ref()).map_err(Failure::from_host)
}

/// Which files below a directory are looked at: by default all that are neither hidden nor ignored. Links are never followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Globs as in a `.gitignore` file, from the directory on: if one does not begin with `!`, only files that match count.
    pub globs: Vec<String>,
    /// Types as ripgrep names them: `rust`, `py`; with `!` before it, files of that type do not count.
    pub types: Vec<String>,
    /// Names that begin with a dot count as well.
    pub hidden: bool,
    /// What ignore files leave out counts as well.
    pub ignored: bool,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// A regular expression in the syntax of the crate `regex`.
    pub text: String,
    /// It is the text itself, and not an expression.
    pub literal: bool,
    /// Small and large letters are the same.
    pub ignore_case: bool,
}

/// A search for lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineQuery {
    /// The files that are searched.
    pub files: Which,
    /// What lines have.
    pub pattern: Pattern,
    /// Lines of context before each; at most 50.
    pub before: u32,
    /// The same after each.
    pub after: u32,
    /// Lines with the pattern that are passed over.
    pub skip: u32,
    /// Lines with the pattern that are returned; with `skip` at most 10,000.
    pub max: u32,
    /// Bytes of a line that are returned; at most 4 KiB.
    pub line_bytes: u32,
}

/// A search for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameQuery {
    /// The files that count.
    pub files: Which,
    /// What the path below the directory has; none for all.
    pub path: Option<Pattern>,
    /// Directories count as well.
    pub directories: bool,
    /// Paths that are passed over.
    pub skip: u32,
    /// Paths that are returned; with `skip` at most 10,000.
    pub max: u32,
}

/// A line of a file, with the pattern or beside one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLine {
    /// Counted from 1.
    pub number: u64,
    /// Bytes of the file before the line.
    pub offset: u64,
    /// Bytes of the line before its first match; none for a line of context.
    pub column: Option<u64>,
    /// The line, or a part of it. What is not UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// Bytes of the line before that part.
    pub before: u64,
    /// Bytes of the line after it.
    pub after: u64,
}

/// A file with lines that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFile {
    /// Below the directory; empty if the path of the search is this file.
    pub path: String,
    /// In order.
    pub lines: Vec<FoundLine>,
}

/// What a search looked at and what it did not, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Files that were looked into, or whose names were.
    pub files: u64,
    /// Files and directories that policy closes. They were not opened.
    pub refused: u64,
    /// What the system did not let be read.
    pub unreadable: u64,
    /// Binary files.
    pub binary: u64,
    /// Files with a line of more than 8 MiB.
    pub long: u64,
    /// Devices, pipes and sockets.
    pub irregular: u64,
    /// Links.
    pub links: u64,
    /// Paths that were found and are not UTF-8.
    pub not_utf8: u64,
    /// Directories that lie too deep.
    pub deep: u64,
    /// The time was over before the end.
    pub timed_out: bool,
}

impl From<files::Looked> for Looked {
    fn from(looked: files::Looked) -> Self {
        let files::Looked { files, refused, unreadable, binary, long, irregular, links, not_utf8, deep, timed_out } =
            looked;
        Self { files, refused, unreadable, binary, long, irregular, links, not_utf8, deep, timed_out }
    }
}

/// What a search for lines found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// In the order of their paths.
    pub files: Vec<FoundFile>,
    /// There are more lines.
    pub more: bool,
    /// Binary files that have the pattern, at most 20.
    pub binary: Vec<String>,
    /// What was looked at.
    pub looked: Looked,
    /// What this backend does otherwise than others.
    pub notices: Vec<String>,
}

/// What a search for names found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundNames {
    /// Below the directory, in order.
    pub paths: Vec<String>,
    /// There are more paths.
    pub more: bool,
    /// What was looked at.
    pub looked: Looked,
    /// What this backend does otherwise than others.
    pub notices: Vec<String>,
}

impl From<&Which> for files::WhichFiles {
    fn from(which: &Which) -> Self {
        let Which { globs, types, hidden, ignored } = which.clone();
        Self { globs, types, hidden, ignored }
    }
}

impl From<&Pattern> for files::Pattern {
    fn from(pattern: &Pattern) -> Self {
        let Pattern { text, literal, ignore_case } = pattern.clone();
        Self { text, literal, ignore_case }
    }
}

/// Searches the files below a directory, or a single file, for lines with a pattern. What may not be read is not opened.
///
/// # Errors
/// `denied` by policy for the directory itself; `invalid_arguments` for a pattern, glob or type that is not valid.
pub fn search(path: &str, query: &LineQuery) -> Result<FoundLines> {
    let query = files::LineQuery {
        files: (&query.files).into(),
        pattern: (&query.pattern).into(),
        before: query.before,
        after: query.after,
        skip: query.skip,
        max: query.max,
        line_bytes: query.line_bytes,
    };
    let found = files::search(path, &query).map_err(Failure::from_host)?;
    let line = |files::FoundLine { number, offset, column, text, before, after }| FoundLine {
        number,
        offset,
        column,
        text,
        before,
        after,
    };
    let file = |files::FoundFile { path, lines }| FoundFile { path, lines: lines.into_iter().map(line).collect() };
    let files::FoundLines { files, more, binary, looked, notices } = found;
    Ok(FoundLines { files: files.into_iter().map(file).collect(), more, binary, looked: looked.into(), notices })
}

/// Searches below a directory for files by their names.
///
/// # Errors
/// As [`search`].
pub fn find(path: &str, query: &NameQuery) -> Result<FoundNames> {
    let query = files::NameQuery {
        files: (&query.files).into(),
        path: query.path.as_ref().map(files::Pattern::from),
        directories: query.directories,
        skip: query.skip,
        max: query.max,
    };
    let files::FoundNames { paths, more, looked, notices } = files::find(path, &query).map_err(Failure::from_host)?;
    Ok(FoundNames { paths, more, looked: looked.into(), notices })
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::files::{Encoded, Keep, LineEnds, Writing, Written};
    pub(crate) use contract::files::{
        Entry, EntryKind, FoundFile, FoundLine, FoundLines, FoundNames, LineQuery, Listing, Looked, NameQuery, Pattern,
        Undone, WhichFiles, Whole,
    };
    use contract::types::Captured;

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "files":
        read(path: &str, offset: u64, max: u32) -> Captured;
        write(path: &str, content: &[u8]) -> u64;
        read_whole(path: &str) -> Whole;
        replace(path: &str, content: &[u8], revision: &str) -> u64;
        read_bytes(path: &str, offset: u64, max: u32) -> Vec<u8>;
        append(path: &str, content: &[u8]) -> u64;
        list_directory(path: &str, max: u32) -> Listing;
        stat(path: &str) -> Entry;
        make_directory(path: &str) -> bool;
        undo(path: Option<&str>) -> Vec<Undone>;
        search(path: &str, query: &LineQuery) -> FoundLines;
        find(path: &str, query: &NameQuery) -> FoundNames;
        read_encoded(path: &str, encoding: Option<&str>) -> Encoded;
        write_encoded(path: &str, content: &str, how: &Writing) -> Written;
        notation(text: &str) -> String;
    }

    written! {
        LineQuery { files, pattern, before, after, skip, max, line_bytes }
        NameQuery { files, path, directories, skip, max }
        Pattern { text, literal, ignore_case }
        WhichFiles { globs, types, hidden, ignored }
        Writing { encoding, keep, revision }
    }

    read! {
        Encoded { content, revision, encoding, has_mark }
        Entry { name, kind, size, modified_ms }
        FoundFile { path, lines }
        FoundLine { number, offset, column, text, before, after }
        FoundLines { files, more, binary, looked, notices }
        FoundNames { paths, more, looked, notices }
        Looked { files, refused, unreadable, binary, long, irregular, links, not_utf8, deep, timed_out }
        Listing { entries, total }
        Undone { path, refusal }
        Whole { content, revision }
        Written { bytes, encoding, has_mark, line_ends, was }
    }

    enums! {
        EntryKind { File, Directory, Link, Other }
        Keep { Nothing, Mark, Style }
        LineEnds { Lf, Crlf, Mixed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_said() {
        let written = |has_mark, line_ends, encoding: &str, was: Option<&str>| Written {
            bytes: 9,
            encoding: encoding.into(),
            has_mark,
            line_ends,
            was: was.map(Into::into),
        };
        let said = |written: Written| written.said("a.txt", "a\r\n");
        assert_eq!(said(written(false, None, "UTF-8", None)), "Wrote 9 bytes to a.txt");
        assert_eq!(
            said(written(true, Some(LineEnds::Crlf), "UTF-16LE", None)),
            "Wrote 9 bytes to a.txt in UTF-16LE with a byte order mark and CRLF line endings"
        );
        assert_eq!(
            said(written(false, Some(LineEnds::Lf), "UTF-8", Some("GBK (a guess)"))),
            "Wrote 9 bytes to a.txt with LF line endings; it was GBK (a guess) before"
        );
        assert_eq!(written(false, Some(LineEnds::Lf), "UTF-8", None).said("a", "a\n"), "Wrote 9 bytes to a");
    }
}
