//! Searching below a directory: what is asked, what comes of it, and the walk over this machine's files.
//!
//! The walk opens each directory by the handle of the one above it and follows no link; it opens only what `file_access` admitted. `rules.rs` has
//! the rules by which names are left out, `lines.rs` looks into one file, `first.rs` keeps the first finds in the order of their paths. Places
//! beyond this machine search by the programs that they have: `remote/search.rs`.

mod first;
mod lines;
pub mod rules;
mod walk;

pub(super) use first::First;
pub(super) use lines::Looker;
pub(super) use walk::{find, search};

use base::envelope::Failure;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long one search may take.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// What a compiled pattern may take, in bytes, and what is kept of its states while it runs.
const PATTERN_BYTES: usize = 4 << 20;
const STATES_BYTES: usize = 16 << 20;
/// The longest pattern, in bytes.
const PATTERN_LENGTH: usize = 64 << 10;
/// Binary files that are named.
pub(super) const MOST_BINARY: usize = 20;
/// Globs and types of one query.
const MOST_GLOBS: usize = 100;

/// Which files below a directory.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// Lines as of a `.gitignore` file, where those without `!` say which files count.
    pub globs: Vec<String>,
    /// Types of files as ripgrep names them; with `!` those that do not count.
    pub types: Vec<String>,
    /// Names that begin with a dot count.
    pub hidden: bool,
    /// What ignore files leave out counts.
    pub ignored: bool,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// A regular expression, or the text itself.
    pub text: String,
    /// It is the text itself.
    pub literal: bool,
    /// Small and large letters are the same.
    pub ignore_case: bool,
}

/// A search for lines.
#[derive(Clone, Debug)]
pub struct Search {
    /// In these files.
    pub which: Which,
    /// Lines with this.
    pub pattern: Pattern,
    /// Lines of context before each.
    pub before: u32,
    /// The same after each.
    pub after: u32,
    /// Lines that are passed over, in the order of paths.
    pub skip: u32,
    /// Lines that are returned at most, without those of context.
    pub max: u32,
    /// Bytes of a line that are shown at most.
    pub line_bytes: u32,
}

/// A search for names.
#[derive(Clone, Debug)]
pub struct Find {
    /// Of these files.
    pub which: Which,
    /// Whose path below the directory has this.
    pub path: Option<Pattern>,
    /// Directories count as well.
    pub directories: bool,
    /// Paths that are passed over, in order.
    pub skip: u32,
    /// Paths that are returned at most.
    pub max: u32,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// Counted from 1.
    pub number: u64,
    /// Bytes of the file before it.
    pub offset: u64,
    /// Bytes of the line before its first match; none for a line of context.
    pub column: Option<u64>,
    /// A part of it, or all: what is not UTF-8 is replaced.
    pub text: String,
    /// Bytes of the line before that part.
    pub before: u64,
    /// Bytes of the line after it.
    pub after: u64,
}

/// What was found in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFile {
    /// Below the directory; empty for the searched file itself. What is not UTF-8 is replaced.
    pub path: String,
    /// Of a search for lines: those with the pattern, and their context.
    pub lines: Vec<FoundLine>,
}

/// What came of a search.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In the order of their paths.
    pub files: Vec<FoundFile>,
    /// There is more than was asked for.
    pub more: bool,
    /// Binary files that have the pattern: the first of them.
    pub binary: Vec<String>,
    /// What was looked at, and what was not.
    pub looked: Looked,
    /// What this place does otherwise.
    pub notices: Vec<String>,
}

/// What was looked at, and what was not, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Files that were looked into; of a search for names, names.
    pub files: u64,
    /// What policy closes. It was not opened.
    pub refused: u64,
    /// What the system did not let be opened or read.
    pub unreadable: u64,
    /// Binary files.
    pub binary: u64,
    /// Files with a line that is too long to be searched.
    pub long: u64,
    /// Devices, pipes, sockets.
    pub irregular: u64,
    /// Links, none of which was followed.
    pub links: u64,
    /// Names that are not UTF-8.
    pub not_utf8: u64,
    /// Directories that lie too deep.
    pub deep: u64,
    /// The time was over before the end.
    pub timed_out: bool,
}

impl Looked {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.binary += other.binary;
        self.long += other.long;
        self.irregular += other.irregular;
        self.links += other.links;
        self.not_utf8 += other.not_utf8;
        self.deep += other.deep;
        self.timed_out |= other.timed_out;
    }
}

/// Ends a search from outside, and says how far it is.
#[derive(Debug)]
pub struct Watch {
    is_stopped: AtomicBool,
    files: AtomicU64,
    until: Instant,
}

/// Stops the search when it goes.
pub struct Leash(Arc<Watch>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self { is_stopped: AtomicBool::default(), files: AtomicU64::default(), until: Instant::now() + PATIENCE }
    }
}

impl Watch {
    /// Files so far.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Stops the search at the latest when what is returned goes.
    #[must_use]
    pub fn leash(self: &Arc<Self>) -> Leash {
        Leash(self.clone())
    }

    fn count(&self, files: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.is_late()
    }
}

impl Which {
    /// Refuses what would take too long to make.
    fn check(&self) -> Result<(), Failure> {
        let is_long = |text: &String| text.len() > PATTERN_LENGTH;
        if self.globs.len() + self.types.len() > MOST_GLOBS || self.globs.iter().chain(&self.types).any(is_long) {
            let message = format!("there are too many globs and types, or one is too long (limit: {MOST_GLOBS})");
            return Err(Failure::invalid(message).hint("give fewer globs"));
        }
        Ok(())
    }
}

impl Pattern {
    /// What finds it in lines.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`, with what is wrong with it.
    pub(super) fn matcher(&self) -> Result<RegexMatcher, Failure> {
        if self.text.len() > PATTERN_LENGTH {
            let message = format!("the pattern has {} bytes (limit: {} KiB)", self.text.len(), PATTERN_LENGTH >> 10);
            return Err(Failure::invalid(message).hint("search for a part of it"));
        }
        if self.text.contains('\n') {
            return Err(Failure::invalid("the pattern has a line break, and each line is searched by itself")
                .hint("search for one of its lines"));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .fixed_strings(self.literal)
            .case_insensitive(self.ignore_case)
            .multi_line(true)
            .unicode(true)
            .octal(false)
            .line_terminator(Some(b'\n'))
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(STATES_BYTES);
        builder.build(&self.text).map_err(|error| {
            let said = error.to_string();
            // The lines before it draw the pattern.
            let why = said.lines().rev().find_map(|line| line.trim().strip_prefix("error: ")).unwrap_or(said.trim());
            Failure::invalid(format!("`{}` is not a valid regular expression: {why}", self.text))
                .hint("escape it with `\\`, or search for the text itself: set `literal`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, literal: bool) -> Option<String> {
        let pattern = Pattern { text: text.into(), literal, ignore_case: false };
        pattern.matcher().err().map(|failure| failure.message)
    }

    #[test]
    fn a_pattern_that_is_wrong_says_what_is() {
        assert_eq!(refused("a(b", true), None);
        let said = refused("a(b", false).expect("it is wrong");
        assert_eq!(said, "`a(b` is not a valid regular expression: unclosed group");
        assert!(refused(r"a\nb", false).is_some() && refused("a\nb", true).is_some());
        assert!(refused(r"\w{10000}", false).expect("it is too large").contains("size limit"));
    }
}
