//! The only module of the command line that writes: it cleans every text, so only our own styles are control sequences.

use anstyle::{AnsiColor, Style};
use base::text::sanitize;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table as Columns, Width, presets};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use textwrap::Options;
use textwrap::core::display_width;
use toolcrib::envelope::{Failure, Kind};

pub(super) const BOLD: Style = Style::new().bold();
/// Columns between two columns of a table.
const GAP: u16 = 2;
/// How far the further rows of an entry begin.
const INDENT: usize = 2;
/// Columns that are left for words after a hanging indent.
const ROOM: usize = 20;

/// Returns whether a person reads the results.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether a person who reads the results also reads what is said beside them.
pub(super) fn is_one_terminal() -> bool {
    is_terminal() && io::stderr().is_terminal()
}

/// Returns the columns of the terminal behind a stream. Without one, lines are as long as they are.
fn width(stream: impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Prints a failure in words, on stderr.
pub(super) fn report(failure: &Failure) -> ExitCode {
    let red = AnsiColor::Red.on_default().bold();
    let kind = failure.kind.name();
    // The message of a limit begins with its kind: it would appear twice.
    let message = failure.message.strip_prefix(&format!("{kind}: ")).unwrap_or(&failure.message);
    say(red, kind, message);
    if let Some(hint) = &failure.hint {
        say(AnsiColor::Cyan.on_default(), "hint", hint);
    }
    ExitCode::from(failure.kind.exit_code())
}

/// Says something beside the result, on stderr.
pub(super) fn notice(text: &str) {
    say(AnsiColor::Yellow.on_default(), "notice", text);
}

/// Ends the process with what is wrong with the command line, which may repeat foreign text, such as a file's name.
pub(super) fn refuse(error: &clap::Error) -> ! {
    let Cow::Owned(cleaned) = sanitize::text(&error.render().to_string()) else { error.exit() };
    let _ = write!(anstream::stderr(), "{cleaned}");
    std::process::exit(error.exit_code())
}

fn say(style: Style, what: &str, text: &str) {
    let columns = width(io::stderr()).map(usize::from);
    let rows: Vec<String> =
        format!("{what}: {}", sanitize::text(text)).lines().map(|line| message_row(line, columns)).collect();
    let text = rows.join("\n");
    let _ = writeln!(anstream::stderr(), "{style}{what}{style:#}{}", text.strip_prefix(what).unwrap_or(&text));
}

/// Breaks a line of a message between words. Text in backticks stays whole: it is a value that people copy.
fn message_row(line: &str, columns: Option<usize>) -> String {
    const UNBROKEN: &str = "\u{a0}";
    if columns.is_none() {
        return line.to_owned();
    }
    let parts = line.split('`').enumerate();
    let whole = parts.map(|(at, part)| if at % 2 == 1 { part.replace(' ', UNBROKEN) } else { part.to_owned() });
    wrapped(&whole.collect::<Vec<_>>().join("`"), 0, columns).replace(UNBROKEN, " ")
}

/// Prints a text to stdout, line by line.
pub(super) fn print(text: &str) -> Result<ExitCode, Failure> {
    write(sanitize::text(text).as_bytes())
}

/// Prints a text for a person: [`print`], or [`print_beside`].
pub(super) type Say = fn(&str) -> Result<ExitCode, Failure>;

/// Prints a text to stderr, where stdout is another's.
pub(super) fn print_beside(text: &str) -> Result<ExitCode, Failure> {
    written(anstream::stderr().lock(), sanitize::text(text).as_bytes())
}

/// Passes on to stderr, line by line, what a program prints that the person has started.
#[derive(Default)]
pub(super) struct PassedOn(Vec<u8>);

impl PassedOn {
    /// Takes what came. A line that is not at its end waits for the rest of it, and so does half of a character.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let lines = self.0.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.0.drain(..lines).collect();
        show(&lines);
    }
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        show(&self.0);
    }
}

fn show(bytes: &[u8]) {
    let _ = anstream::stderr().write_all(sanitize::text(&String::from_utf8_lossy(bytes)).as_bytes());
}

/// Prints bytes unchanged: what is not text, or has its own control characters.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<ExitCode, Failure> {
    written(io::stdout().lock(), bytes)
}

/// Prints JSON: indented for a person, in one line for a program.
pub(super) fn print_json(value: &Value) -> Result<ExitCode, Failure> {
    if is_terminal() {
        write(format!("{}\n", escaped(&format!("{value:#}"))).as_bytes())
    } else {
        write(format!("{value}\n").as_bytes())
    }
}

/// The same JSON, in which a terminal finds nothing but text: what the sanitiser would take away shows as JSON's own escape.
fn escaped(json: &str) -> Cow<'_, str> {
    let Cow::Owned(_) = sanitize::text(json) else { return Cow::Borrowed(json) };
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(sanitize::text(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_)) {
            escaped.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(escaped, "\\u{unit:04x}"));
        }
    }
    Cow::Owned(escaped)
}

/// Writes cleaned text. A reader that has gone is not an error: there is nobody to report it to.
fn write(cleaned: &[u8]) -> Result<ExitCode, Failure> {
    written(anstream::stdout().lock(), cleaned)
}

fn written(mut stdout: impl Write, bytes: &[u8]) -> Result<ExitCode, Failure> {
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Internal, format!("the result could not be printed: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Text in paragraphs, wrapped between words to the terminal that shows it.
#[derive(Default)]
pub(super) struct Page {
    paragraphs: Vec<(String, usize)>,
    open: String,
}

impl Page {
    /// Adds to the paragraph.
    pub(super) fn add(&mut self, text: &str) -> &mut Self {
        self.open += &sanitize::text(text);
        self
    }

    pub(super) fn add_in(&mut self, style: Style, text: &str) -> &mut Self {
        let _ = write!(self.open, "{style}{}{style:#}", sanitize::text(text));
        self
    }

    /// Ends the paragraph; its further rows begin so many columns in.
    pub(super) fn end(&mut self, indent: usize) -> &mut Self {
        self.paragraphs.push((std::mem::take(&mut self.open), indent));
        self
    }

    /// Adds lines as they are, each a paragraph.
    pub(super) fn lines(&mut self, text: &str) -> &mut Self {
        text.lines().for_each(|line| {
            // Further rows of a list item begin after its bullet.
            let begin = line.len() - line.trim_start_matches([' ', '-']).len();
            self.add(line).end(begin.min(8));
        });
        self
    }

    pub(super) fn print(&self) -> Result<ExitCode, Failure> {
        write(self.shown(width(io::stdout()).map(usize::from)).as_bytes())
    }

    fn shown(&self, width: Option<usize>) -> String {
        let mut shown = String::new();
        for (paragraph, indent) in &self.paragraphs {
            for line in paragraph.split('\n') {
                shown += &wrapped(line, *indent, width);
                shown.push('\n');
            }
        }
        shown
    }
}

/// Breaks a line between words. A word that is longer than a row stays whole: paths and commands are copied.
fn wrapped(line: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| display_width(line) > *width) else { return line.to_owned() };
    let indent = " ".repeat(if indent + ROOM <= width { indent } else { INDENT });
    let options = Options::new(width).subsequent_indent(&indent).break_words(false);
    textwrap::fill(line, options.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// Rows under headings: in columns if each has room for its longest word, else one entry below the other.
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<(String, Option<Color>)>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        self.rows.push(cells.into_iter().map(|cell| (sanitize::line(cell).into_owned(), None)).collect());
    }

    /// As [`Self::row`]; the last cell in a colour.
    pub(super) fn row_in<'c>(&mut self, colour: Color, cells: impl IntoIterator<Item = &'c str>) {
        self.row(cells);
        self.rows.last_mut().and_then(|row| row.last_mut()).into_iter().for_each(|cell| cell.1 = Some(colour));
    }

    pub(super) fn print(&self) -> Result<ExitCode, Failure> {
        write(self.shown(width(io::stdout())).as_bytes())
    }

    fn shown(&self, width: Option<u16>) -> String {
        let words: Vec<u16> = (0..self.headings.len()).map(|column| self.longest_word(column)).collect();
        let gaps = GAP * u16::try_from(words.len().saturating_sub(1)).unwrap_or_default();
        let least = words.iter().fold(gaps, |sum, word| sum.saturating_add(*word));
        match width {
            Some(width) if least > width => self.entries(width),
            _ => self.columns(&words, width),
        }
    }

    fn longest_word(&self, column: usize) -> u16 {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(cell, _)| cell.as_str());
        let words = cells.chain(self.headings.get(column).copied()).flat_map(|cell| cell.split(' '));
        u16::try_from(words.map(display_width).max().unwrap_or_default()).unwrap_or(u16::MAX)
    }

    fn columns(&self, words: &[u16], width: Option<u16>) -> String {
        let mut table = Columns::new();
        table.load_style(presets::NOTHING).set_header(self.headings.iter().map(|heading| Cell::new(*heading)));
        for row in &self.rows {
            table.add_row(
                row.iter().map(|(cell, colour)| colour.iter().fold(Cell::new(cell), |cell, colour| cell.fg(*colour))),
            );
        }
        match width {
            // The library counts a gap after the last column, which is cut.
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width + GAP),
            None => table.force_no_tty(),
        };
        for (column, word) in table.column_iter_mut().zip(words) {
            column.set_padding((0, GAP)).set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + GAP)));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn entries(&self, width: u16) -> String {
        let mut page = Page::default();
        for row in &self.rows {
            // A further row of the same entry does not repeat its name.
            if let Some((name, _)) = row.first().filter(|(name, _)| !name.is_empty()) {
                page.add_in(BOLD, name).end(INDENT);
            }
            for (heading, (cell, _)) in self.headings.iter().zip(row).skip(1).filter(|(_, (cell, _))| !cell.is_empty())
            {
                page.add(&format!("{:INDENT$}{heading}: {cell}", "")).end(2 * INDENT);
            }
        }
        page.shown(Some(width.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["tool", "what it does", "state"]);
        table.row(["read_file", "Reads one text file, a page at a time, from where it was told to begin.", "ready"]);
        table.row_in(
            Color::Yellow,
            ["a\u{1b}[2J\nb", "Nothing.", "allow it: `toolcrib plugin allow /a/long/way/to.wasm`"],
        );
        table
    }

    #[test]
    fn a_table_breaks_between_words_and_fits() {
        let all = table();
        let words: Vec<&str> = all.rows.iter().flatten().flat_map(|(cell, _)| cell.split(' ')).collect();
        for width in 30..140 {
            let shown = all.shown(Some(width));
            let widest = shown.lines().map(display_width).max();
            assert!(widest <= Some(width.into()), "{widest:?} of {width}:\n{shown}");
            for word in &words {
                assert!(shown.split_whitespace().any(|shown| shown.contains(word)), "{word} at {width}:\n{shown}");
            }
        }
    }

    #[test]
    fn without_a_terminal_a_row_is_a_line() {
        let shown = table().shown(None);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(lines[1].starts_with("read_file  Reads one text file") && lines[1].ends_with("  ready"), "{shown}");
        assert!(
            lines[2].starts_with("a b        Nothing.") && shown.is_ascii() && !shown.contains('\u{1b}'),
            "{shown}"
        );
    }

    #[test]
    fn a_page_has_no_control_sequence_but_its_own() {
        let mut page = Page::default();
        page.add("\u{1b}]2;owned\u{7}title").add_in(BOLD, "\u{1b}[2Jbold").end(0);
        assert_eq!(page.shown(None), format!("title{BOLD}bold{BOLD:#}\n"));
    }

    #[test]
    fn a_message_breaks_between_words_and_never_within_a_value() {
        let line = "hint: allow it: `toolcrib plugin allow /a/b.wasm`, and then try again";
        let rows = message_row(line, Some(40));
        assert_eq!(rows, "hint: allow it:\n`toolcrib plugin allow /a/b.wasm`, and\nthen try again");
        assert_eq!(message_row(line, None), line);
    }

    #[test]
    fn json_shows_what_a_terminal_would_obey_as_an_escape() {
        let json = serde_json::json!({ "a\u{9b}2J": "b\u{202e}c\u{e0041} d\u{e9}" });
        let shown = escaped(&json.to_string()).into_owned();
        assert_eq!(shown, r#"{"a\u009b2J":"b\u202ec\udb40\udc41 dé"}"#);
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json);
    }
}
