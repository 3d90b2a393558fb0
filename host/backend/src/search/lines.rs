//! The lines of one file that have a pattern.
//!
//! A file of ordinary size is read whole, a larger one in pieces; both in memory that is used for the next one again.

use super::{FoundLine, Watch};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Files up to this size are read whole, in bytes.
const WHOLE: u64 = 256 << 10;
/// The longest line that is searched, in bytes.
const LINE_BYTES: usize = 8 << 20;
/// What lines of one file may take, in bytes.
const KEPT_BYTES: usize = 8 << 20;
/// Beginnings of text in two bytes a character, which is full of NUL.
const WIDE: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// Looks into one file after the other.
pub(crate) struct Looker<'w> {
    searcher: Searcher,
    matcher: RegexMatcher,
    buffer: Vec<u8>,
    line_bytes: usize,
    /// Finds that count of one file.
    wanted: usize,
    watch: &'w Watch,
}

/// What a file has.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Content {
    /// Lines with the pattern and their context.
    pub(crate) lines: Vec<FoundLine>,
    /// How many have the pattern.
    pub(crate) finds: usize,
    /// It is binary, and no line is shown.
    pub(crate) is_binary: bool,
    /// The pattern is in it.
    pub(crate) has_find: bool,
    /// A line was too long, and what follows was not searched.
    pub(crate) is_long: bool,
}

impl<'w> Looker<'w> {
    pub(crate) fn new(matcher: &RegexMatcher, search: &super::Search, wanted: usize, watch: &'w Watch) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(search.before as usize)
            .after_context(search.after as usize)
            .heap_limit(Some(LINE_BYTES))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let line_bytes = search.line_bytes as usize;
        Self { searcher, matcher: matcher.clone(), buffer: Vec::new(), line_bytes, wanted, watch }
    }

    pub(crate) fn look(&mut self, file: &mut File, size: u64) -> io::Result<Content> {
        if size > WHOLE {
            return self.look_in_pieces(file);
        }
        let size = usize::try_from(size).expect("it is small");
        // One more shows that it has grown.
        if self.buffer.len() <= size {
            self.buffer.resize(size + 1, 0);
        }
        let mut length = 0;
        while length <= size {
            match file.read(&mut self.buffer[length..=size])? {
                0 => break,
                read => length += read,
            }
            if length == size {
                break;
            }
        }
        if length > size {
            file.seek(SeekFrom::Start(0))?;
            return self.look_in_pieces(file);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let content = self.look_at(&buffer[..length]);
        self.buffer = buffer;
        content
    }

    /// The same for what is in memory.
    pub(crate) fn look_at(&mut self, content: &[u8]) -> io::Result<Content> {
        if memchr::memchr(0, content).is_some() && !WIDE.iter().any(|mark| content.starts_with(mark)) {
            let has_find = self.matcher.is_match(content).unwrap_or(false);
            return Ok(Content { is_binary: true, has_find, ..Content::default() });
        }
        let mut sink = Lines::new(&self.matcher, self.line_bytes, self.wanted, self.watch);
        self.searcher.search_slice(&self.matcher, content, &mut sink)?;
        Ok(sink.content())
    }

    fn look_in_pieces(&mut self, file: &mut File) -> io::Result<Content> {
        let mut sink = Lines::new(&self.matcher, self.line_bytes, self.wanted, self.watch);
        let file = Ending { file, watch: self.watch };
        match self.searcher.search_reader(&self.matcher, file, &mut sink) {
            Ok(()) => Ok(sink.content()),
            // A line did not fit.
            Err(error) if error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none() => {
                Ok(Content { is_long: true, ..sink.content() })
            }
            Err(error) => Err(error),
        }
    }
}

/// A file that ends when the search is over.
struct Ending<'f> {
    file: &'f mut File,
    watch: &'f Watch,
}

impl Read for Ending<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_over() { Ok(0) } else { self.file.read(buffer) }
    }
}

/// Takes lines of one file.
struct Lines<'m> {
    matcher: &'m RegexMatcher,
    line_bytes: usize,
    wanted: usize,
    watch: &'m Watch,
    bytes: usize,
    content: Content,
}

impl<'m> Lines<'m> {
    fn new(matcher: &'m RegexMatcher, line_bytes: usize, wanted: usize, watch: &'m Watch) -> Self {
        Self { matcher, line_bytes, wanted, watch, bytes: 0, content: Content::default() }
    }

    fn take(&mut self, number: Option<u64>, offset: u64, line: &[u8], is_find: bool) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let column = is_find.then(|| match self.matcher.find(line) {
            Ok(Some(found)) => found.start(),
            Ok(None) | Err(_) => 0,
        });
        let line = shown(number.unwrap_or_default(), offset, column, line, self.line_bytes);
        self.bytes += line.text.len() + size_of_val(&line);
        self.content.lines.push(line);
    }

    fn content(self) -> Content {
        // Binary after all, behind lines that are text.
        if self.content.is_binary {
            return Content { lines: Vec::new(), finds: 0, has_find: self.content.finds > 0, ..self.content };
        }
        Content { has_find: self.content.finds > 0, ..self.content }
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.take(found.line_number(), found.absolute_byte_offset(), found.bytes(), true);
        self.content.finds += 1;
        Ok(self.content.finds < self.wanted && self.bytes < KEPT_BYTES && !self.watch.is_over())
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.take(found.line_number(), found.absolute_byte_offset(), found.bytes(), false);
        Ok(self.bytes < KEPT_BYTES)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.content.is_binary = true;
        Ok(false)
    }
}

/// A line, of which at most so many bytes are shown: those around the find.
fn shown(number: u64, offset: u64, column: Option<usize>, line: &[u8], most: usize) -> FoundLine {
    let is_inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let find = column.unwrap_or(0).min(line.len());
    // A third of what is shown leads to the find.
    let mut from = if line.len() <= most { 0 } else { find.saturating_sub(most / 3).min(line.len() - most) };
    let mut to = (from + most).min(line.len());
    // Whole characters, where they are ones.
    (0..3).for_each(|_| from += usize::from(from < to && is_inside(from)));
    (0..3).for_each(|_| to -= usize::from(from < to && is_inside(to)));
    let text = String::from_utf8_lossy(&line[from..to]).into_owned();
    let column = column.map(|column| column as u64);
    FoundLine { number, offset, column, text, before: from as u64, after: (line.len() - to) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Pattern, Search, Which};
    use std::io::Write;

    fn look(content: &[u8], pattern: &str, wanted: usize) -> Content {
        let pattern = Pattern { text: pattern.into(), literal: false, ignore_case: false };
        let matcher = pattern.matcher().expect("a pattern");
        let (before, after, skip, max, line_bytes) = (0, 0, 0, 10, 30);
        let search = Search { which: Which::default(), pattern, before, after, skip, max, line_bytes };
        let watch = Watch::default();
        let mut looker = Looker::new(&matcher, &search, wanted, &watch);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).and_then(|()| file.rewind()).expect("its content");
        looker.look(&mut file, content.len() as u64).expect("it is read")
    }

    #[test]
    fn a_find_has_its_line_and_its_places() {
        let content = look(b"one\r\n  two\nthree two", "two", 9);
        let places = content.lines.iter().map(|line| (line.number, line.offset, line.column, &*line.text));
        assert_eq!(places.collect::<Vec<_>>(), [(2, 5, Some(2), "  two"), (3, 11, Some(6), "three two")]);
        assert_eq!(look(b"a\na\na\n", "a", 2).finds, 2);
    }

    #[test]
    fn what_is_not_text_is_not_shown() {
        let binary = look(b"two\n\0", "two", 9);
        assert_eq!((binary.is_binary, binary.has_find, binary.lines.len()), (true, true, 0));
        assert!(!look(b"\0", "two", 9).has_find);
        // Behind the part that is looked at first.
        let late = [b"two\n".repeat(100_000), vec![0]].concat();
        let late = look(&late, "two$", 1_000_000);
        assert_eq!((late.is_binary, late.has_find, late.lines.len()), (true, true, 0));
        let wide: Vec<u8> = [0xfeff].into_iter().chain("one two".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(look(&wide, "two", 9).lines[0].text, "one two");
        assert_eq!(look(b"\xff two\n", "two", 9).lines[0].text, "\u{fffd} two");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_find_is_shown() {
        let line = format!("{}two{}", "\u{e9}".repeat(500), "y".repeat(500));
        let found = &look(line.as_bytes(), "two", 9).lines[0];
        assert_eq!((found.column, found.before, found.after), (Some(1000), 990, 483));
        assert_eq!(found.text, format!("{}two{}", "\u{e9}".repeat(5), "y".repeat(17)));
        // One that is longer than is ever held.
        let endless = [b"two\n".to_vec(), b"x".repeat(LINE_BYTES + 1), b"\ntwo\n".to_vec()].concat();
        let endless = look(&endless, "two", 9);
        assert_eq!((endless.is_long, endless.finds), (true, 1));
    }
}
