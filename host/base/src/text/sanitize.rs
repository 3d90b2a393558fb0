//! The only sanitiser: what foreign text may carry to a model, a terminal, a log or an approval prompt.
//!
//! Decoding bytes (invalid UTF-8 becomes U+FFFD), cutting to a length and finding secrets are left to the callers.
//!
//! What happens to a text, in one pass:
//! - A complete control sequence of ECMA-48 goes whole, in its 7-bit and its 8-bit form; so does the title of screen
//!   and tmux (`ESC k … ST`). One that breaks off or never ends loses its introducer, and the rest shows as text.
//!   What breaks a sequence: a character that cannot continue it, a line break in an OSC or DCS, `SEQUENCE_MAX`.
//! - CR LF is a line break. Any other C0 control shows as its picture (`␍`, `␈`, `␀`); other C1 controls go.
//! - Characters that show nothing and change how others show go: bidi controls, zero-width characters, tags, fillers,
//!   noncharacters. A few stay where a reader would miss them, one after a base character, since more could spell out
//!   hidden text: ZWNJ and ZWJ between two characters of a script that shapes by them (Persian, Hindi), ZWJ between two
//!   emoji (families), U+FE0E and U+FE0F after an emoji or a digit (keycaps). All other variation selectors go.
//! - Of the combining marks on one base character, `MARKS_MAX` stay.
//!
//! Whether a character stays depends only on the text that was kept, so a second pass changes nothing.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;

/// Bytes of an unfinished sequence that wait for its end: more than titles, links and picture chunks of kitty take.
const SEQUENCE_MAX: usize = 8 * 1024;

/// Bytes that [`beginning`] cleans at a time.
const PIECE_BYTES: usize = 1024;

/// Combining marks on one base character: more than the scripts in use need.
const MARKS_MAX: u8 = 8;

const ESC: char = '\u{1b}';
const BEL: char = '\u{7}';
const ST: char = '\u{9c}';
const ZWJ: char = '\u{200d}';

/// Returns the text without anything that a terminal or a model could take for more than text.
///
/// Borrowed when nothing had to change.
#[must_use]
pub fn text(input: &str) -> Cow<'_, str> {
    if plain_prefix(input) == input.len() {
        return Cow::Borrowed(input);
    }
    let mut stream = Stream::new();
    let mut output = stream.push(input);
    output += &stream.finish();
    if output == input { Cow::Borrowed(input) } else { Cow::Owned(output) }
}

/// For places of one line (tables, labels): as [`text`], with line breaks and tabs shown as a space.
#[must_use]
pub fn line(input: &str) -> Cow<'_, str> {
    match text(input) {
        text if text.contains(['\n', '\t']) => Cow::Owned(text.replace(['\n', '\t'], " ")),
        text => text,
    }
}

/// For a record or a message: the first characters of [`line()`]. It is cut after it was cleaned: otherwise characters that show nothing could stand
/// before what matters and fill the room for it. No more of the input is cleaned than that takes.
#[must_use]
pub fn beginning(input: &str, chars: usize) -> String {
    let (clean, _) = opening(input, chars);
    clean.chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect()
}

/// The first characters of [`text`], and whether these are all.
pub fn opening(input: &str, chars: usize) -> (String, bool) {
    let (mut stream, mut clean, mut rest) = (Stream::new(), String::new(), input);
    while !rest.is_empty() && clean.chars().count() < chars {
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        clean += &stream.push(piece);
        rest = behind;
    }
    clean += &stream.finish();
    match clean.char_indices().nth(chars) {
        Some((end, _)) => {
            clean.truncate(end);
            (clean, false)
        }
        None => (clean, rest.is_empty()),
    }
}

/// For the name of a file, which may hold anything: as [`visible`], with line breaks and tabs shown as their code points as well.
#[must_use]
pub fn visible_line(input: &str) -> String {
    visible(input).replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// For text that somebody will act on, such as a command: as [`text`], but nothing is omitted. What would go shows as its code
/// point, so that what is read is what will run.
#[must_use]
pub fn visible(input: &str) -> Cow<'_, str> {
    if let Cow::Borrowed(unchanged) = text(input) {
        return Cow::Borrowed(unchanged);
    }
    Cow::Owned(input.chars().fold(String::with_capacity(input.len()), |mut shown, c| {
        match Fate::of(c) {
            Fate::Kept | Fate::Mark => shown.push(c),
            Fate::Shown(picture) if picture != '\n' => shown.push(picture),
            Fate::Shown(_) | Fate::Gone | Fate::Selector | Fate::Joiner => shown.extend(c.escape_unicode()),
        }
        shown
    }))
}

/// For text that a model reads to change it: as [`text`], but what would go or show as a picture is written as `\u{200b}`, its code point. No
/// sequence is left out: its ESC is written so, and the rest of it is text. Only a CR LF becomes a line break.
///
/// [`text`] leaves what this returns as it is.
#[must_use]
pub fn notation(input: &str) -> Cow<'_, str> {
    if let Cow::Borrowed(unchanged) = text(input) {
        return Cow::Borrowed(unchanged);
    }
    let mut written = Written::default();
    let mut characters = input.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '\r' || characters.peek() != Some(&'\n') {
            written.put(c);
        }
    }
    written.give_up_joiner();
    Cow::Owned(written.text)
}

/// What [`notation`] has written so far.
#[derive(Default)]
struct Written {
    text: String,
    last: Last,
    /// A ZWJ or ZWNJ that the next character decides on.
    joiner: Option<char>,
}

impl Written {
    fn put(&mut self, c: char) {
        let fate = Fate::of(c);
        if let Fate::Joiner = fate
            && self.joiner.is_none()
            && !self.last.joined
        {
            self.joiner = Some(c);
            return;
        }
        match self.joiner {
            Some(joiner) if self.last.shows(fate) && self.last.joins(joiner, c) => {
                self.joiner = None;
                self.text.push(joiner);
                self.last.joined = true;
            }
            _ => self.give_up_joiner(),
        }
        // A joiner that was given up stands between this and what came before.
        let is_shown = self.last.shows(fate);
        match fate {
            _ if !is_shown => self.escape(c),
            Fate::Mark => {
                self.text.push(c);
                self.last.marks += 1;
            }
            Fate::Selector => {
                self.text.push(c);
                self.last.selected = true;
            }
            Fate::Kept | Fate::Joiner | Fate::Shown(_) | Fate::Gone => {
                self.text.push(c);
                self.last = Last::after(c);
            }
        }
    }

    fn give_up_joiner(&mut self) {
        if let Some(joiner) = self.joiner.take() {
            self.escape(joiner);
        }
    }

    fn escape(&mut self, c: char) {
        self.text.extend(c.escape_unicode());
        self.last = Last::after('}');
    }
}

/// Cleans every string and object key in place; returns whether anything changed.
///
/// A key that comes to equal another gets `�` and a number: no value is lost, and a key that was clean keeps its name.
pub fn json(value: &mut Value) -> bool {
    match value {
        Value::String(string) => match text(string) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *string = clean;
                true
            }
        },
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| json(item) | changed),
        Value::Object(map) => map.values_mut().fold(false, |changed, item| json(item) | changed) | clean_keys(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn clean_keys(map: &mut Map<String, Value>) -> bool {
    if map.keys().all(|key| matches!(text(key), Cow::Borrowed(_))) {
        return false;
    }
    let mut taken: HashSet<String> = map.keys().filter(|key| text(key) == **key).cloned().collect();
    // One counter for the whole object: a guest that makes all keys equal costs one try a key.
    let mut tries = 1_usize;
    for (key, value) in mem::take(map) {
        let clean = text(&key).into_owned();
        let mut name = clean.clone();
        while clean != key && !taken.insert(name.clone()) {
            tries += 1;
            name = format!("{clean}\u{fffd}{tries}");
        }
        map.insert(name, value);
    }
    true
}

/// The incremental form of [`text`]: decoded chunks in, clean text out, the same as from the whole however it is cut.
///
/// Holds back at most `SEQUENCE_MAX` bytes and one character.
#[derive(Debug, Default)]
pub struct Stream {
    state: State,
    /// The unfinished sequence without its introducer.
    body: String,
    last: Last,
    /// A ZWJ or ZWNJ that the next kept character decides on.
    joiner: Option<char>,
}

/// Where in a sequence the input is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Text,
    /// After a CR that may belong to a CR LF.
    Return,
    Escape,
    /// In an nF escape: ESC, bytes 20–2F, a final byte.
    Intermediate,
    /// In a CSI: bytes 20–3F, a final byte.
    Control,
    /// In an OSC, up to ST or BEL.
    Osc,
    /// In a DCS, SOS, PM, APC or title, up to ST.
    Dcs,
    /// After an ESC in one of the last two, which is half of an ST or breaks it.
    HalfEnd,
}

/// The base character that was kept last, and what was kept after it.
#[derive(Debug, Default)]
struct Last {
    group: Group,
    marks: u8,
    selected: bool,
    joined: bool,
}

impl Stream {
    /// Returns a stream at the beginning of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a chunk and returns what is certain so far.
    #[must_use]
    pub fn push(&mut self, chunk: &str) -> String {
        let mut output = String::with_capacity(chunk.len());
        let mut rest = chunk;
        while let Some(c) = rest.chars().next() {
            let plain = if self.state == State::Text && self.joiner.is_none() { plain_prefix(rest) } else { 0 };
            let (done, left) = rest.split_at(plain.max(c.len_utf8()));
            if plain == 0 {
                self.step(c, &mut output);
            } else {
                output += done;
                self.last = Last::after(char::from(done.as_bytes()[plain - 1]));
            }
            rest = left;
        }
        output
    }

    /// Ends the text and returns what was held back.
    #[must_use]
    pub fn finish(mut self) -> String {
        let mut output = String::new();
        self.break_off(&mut output);
        output
    }

    fn step(&mut self, c: char, output: &mut String) {
        use State::{Control, Dcs, Escape, HalfEnd, Intermediate, Osc, Return, Text};
        match (self.state, c) {
            (Text, ESC) => self.state = Escape,
            (Text, '\r') => self.state = Return,
            (Text, '\u{80}'..='\u{9f}') => self.state = introduced_by(c),
            (Text, _) => self.put(c, output),
            (Return, '\n') => {
                self.state = Text;
                self.put(c, output);
            }
            // An Fe escape is the 7-bit form of the C1 control 40 above its second byte.
            (Escape, '@'..='_') => self.state = introduced_by(char::from(c as u8 + 0x40)),
            (Escape, 'k') => self.state = Dcs,
            (Escape | Intermediate, ' '..='/') => self.hold(c, Intermediate, output),
            (Control, ' '..='?') => self.hold(c, Control, output),
            (Escape | Intermediate, '0'..='~')
            | (Control, '@'..='~')
            | (Osc, BEL)
            | (Osc | Dcs, ST)
            | (HalfEnd, '\\') => {
                self.body.clear();
                self.state = Text;
            }
            (Osc | Dcs, ESC) => self.state = HalfEnd,
            (Osc | Dcs, _) if c == '\t' || !c.is_control() => self.hold(c, self.state, output),
            (Return | Escape | Intermediate | Control | Osc | Dcs | HalfEnd, _) => {
                self.break_off(output);
                self.step(c, output);
            }
        }
    }

    fn hold(&mut self, c: char, state: State, output: &mut String) {
        if self.body.len() + c.len_utf8() > SEQUENCE_MAX {
            self.break_off(output);
            self.step(c, output);
        } else {
            self.body.push(c);
            self.state = state;
        }
    }

    /// Shows the sequence that did not come to its end. Its body holds no introducer, so none can arise from it.
    fn break_off(&mut self, output: &mut String) {
        match mem::take(&mut self.state) {
            State::Return => self.put('\r', output),
            // The ESC that broke the sequence may begin another one.
            State::HalfEnd => self.state = State::Escape,
            _ => {}
        }
        for c in mem::take(&mut self.body).chars() {
            self.put(c, output);
        }
    }

    /// Writes what a character outside of sequences becomes. Only what is written may change `last` and `joiner`.
    fn put(&mut self, c: char, output: &mut String) {
        let fate = Fate::of(c);
        let shown = match fate {
            Fate::Gone => return,
            Fate::Joiner if self.last.joined => return,
            Fate::Joiner => {
                self.joiner.get_or_insert(c);
                return;
            }
            Fate::Mark if self.last.marks == MARKS_MAX => return,
            Fate::Selector if !self.last.takes_selector() => return,
            Fate::Mark | Fate::Selector | Fate::Kept => c,
            Fate::Shown(shown) => shown,
        };
        if let Some(joiner) = self.joiner.take()
            && self.last.joins(joiner, shown)
        {
            output.push(joiner);
            self.last.joined = true;
        }
        output.push(shown);
        match fate {
            Fate::Mark => self.last.marks += 1,
            Fate::Selector => self.last.selected = true,
            _ => self.last = Last::after(shown),
        }
    }
}

impl Last {
    fn after(base: char) -> Self {
        Self { group: Group::of(base), ..Self::default() }
    }

    /// Whether a character of this fate stays as it is after it.
    fn shows(&self, fate: Fate) -> bool {
        match fate {
            Fate::Kept => true,
            Fate::Mark => self.marks < MARKS_MAX,
            Fate::Selector => self.takes_selector(),
            Fate::Joiner | Fate::Shown(_) | Fate::Gone => false,
        }
    }

    fn takes_selector(&self) -> bool {
        matches!(self.group, Group::Emoji | Group::Keycap) && !self.selected
    }

    fn joins(&self, joiner: char, next: char) -> bool {
        match (self.group, Group::of(next)) {
            (Group::Shaping, Group::Shaping) => true,
            (Group::Emoji, Group::Emoji) => joiner == ZWJ,
            _ => false,
        }
    }
}

/// The state that a C1 control leads to; those that introduce nothing are gone with it.
fn introduced_by(c1: char) -> State {
    match c1 {
        '\u{9b}' => State::Control,
        '\u{9d}' => State::Osc,
        '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => State::Dcs,
        _ => State::Text,
    }
}

/// What becomes of a character outside of sequences.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Gone,
    Shown(char),
    /// Kept while its base character has fewer than `MARKS_MAX`.
    Mark,
    /// Kept after the base characters that [`Last::takes_selector`] names.
    Selector,
    /// Kept between the characters that [`Last::joins`] names.
    Joiner,
}

impl Fate {
    fn of(c: char) -> Self {
        use Fate::{Gone, Joiner, Kept, Mark, Selector, Shown};
        match c {
            '\n' | '\t' | ' '..='~' => Kept,
            '\0'..='\u{1f}' => Shown(char::from_u32(0x2400 + u32::from(c)).expect("every C0 control has a picture")),
            '\u{7f}' => Shown('␡'),
            '\u{2028}' | '\u{2029}' => Shown('\n'),
            '\u{200c}' | ZWJ => Joiner,
            '\u{fe0e}' | '\u{fe0f}' => Selector,
            // C1 controls, bidi controls, zero-width characters, invisible operators
            '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Gone,
            '\u{2060}'..='\u{206f}' | '\u{feff}' => Gone,
            // soft hyphen, grapheme joiner, fillers of Hangul and vowels of Khmer without a glyph
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' => Gone,
            // the other variation selectors, with the tags
            '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0d}' | '\u{e0000}'..='\u{e0fff}' => Gone,
            // controls of annotations, hieroglyphs, shorthand and music
            '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' => Gone,
            '\u{1d173}'..='\u{1d17a}' => Gone,
            // noncharacters
            '\u{fdd0}'..='\u{fdef}' => Gone,
            _ if u32::from(c) & 0xfffe == 0xfffe => Gone,
            // the halfwidth voicing marks extend a grapheme in Unicode, but take a column
            '\u{ff9e}' | '\u{ff9f}' => Kept,
            // symbols, kana, ideographs, Hangul, private use, emoji: without marks, and `is_mark` is slow
            '\u{2100}'..='\u{2bff}' | '\u{3000}'..='\u{3029}' | '\u{3030}'..='\u{3098}' => Kept,
            '\u{309b}'..='\u{a4cf}' | '\u{ac00}'..='\u{f8ff}' | '\u{1f000}'..='\u{1faff}' => Kept,
            '\u{300}'.. if is_mark(c) => Mark,
            _ => Kept,
        }
    }
}

/// Asks std in the one way it answers: `escape_debug` escapes a combining mark at the start of a text and nowhere else,
/// and a character without a glyph everywhere.
fn is_mark(c: char) -> bool {
    c.escape_debug().len() > 1 && str::escape_debug(&String::from_iter(['a', c])).count() == 2
}

/// What a base character may be followed by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Group {
    #[default]
    Other,
    /// Of a script whose letters take other shapes by ZWNJ and ZWJ: Arabic to Sinhala, Burmese, Khmer, Mongolian.
    Shaping,
    Emoji,
    Keycap,
}

impl Group {
    fn of(c: char) -> Self {
        match c {
            '#' | '*' | '0'..='9' => Self::Keycap,
            '\u{620}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18aa}' => Self::Shaping,
            '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | 'Ⓜ' | '〰' | '〽' | '㊗' | '㊙' => Self::Emoji,
            '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' => Self::Emoji,
            '⤴' | '⤵' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' => Self::Emoji,
            _ => Self::Other,
        }
    }
}

/// The length of the beginning that is ASCII and stays as it is.
fn plain_prefix(input: &str) -> usize {
    const BLOCK: usize = 64;
    let is_plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    // A block is judged as a whole, without leaving it early, which lets the compiler compare many bytes at once.
    let is_plain_block = |block: &&[u8; BLOCK]| block.iter().fold(true, |plain, byte| plain & is_plain(byte));
    let (blocks, _) = input.as_bytes().as_chunks::<BLOCK>();
    let plain = blocks.iter().take_while(is_plain_block).count() * BLOCK;
    plain + input.as_bytes()[plain..].iter().take_while(|byte| is_plain(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn nothing_can_hide_where_everything_is_shown() {
        assert_eq!(visible("true \u{1b}]0;touch hidden #\u{7}"), "true ␛]0;touch hidden #␇");
        assert_eq!(visible("a\u{9b}b\u{202e}c\u{200d}d\u{2028}e"), r"a\u{9b}b\u{202e}c\u{200d}d\u{2028}e");
        assert!(matches!(visible("touch a\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_would_go_is_written_as_its_code_point() {
        let written = [
            ("a\u{200b}b\u{ad}\u{202e}c", r"a\u{200b}b\u{ad}\u{202e}c"),
            ("\u{1b}[31mred\u{1b}[0m\0\u{9b}1m", r"\u{1b}[31mred\u{1b}[0m\u{0}\u{9b}1m"),
            ("one\r\ntwo\rthree\r\r\nfour\r", "one\ntwo\\u{d}three\\u{d}\nfour\\u{d}"),
            ("\u{feff}a\u{2028}b", r"\u{feff}a\u{2028}b"),
            ("👩\u{200d}💻\u{200b}", "👩\u{200d}💻\\u{200b}"),
            ("pay\u{200d}pal\u{200c}", r"pay\u{200d}pal\u{200c}"),
            ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
        ];
        for (raw, expected) in written {
            assert_eq!(notation(raw), expected, "{raw:?}");
        }
        assert!(matches!(notation("Grüße 👩\u{200d}💻\n"), Cow::Borrowed(_)));
    }

    /// Reads the notation back.
    fn read(text: &str) -> String {
        let mut parts = text.split("\\u{");
        let mut raw = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (code, rest) = part.split_once('}').expect("a code point");
            raw.push(u32::from_str_radix(code, 16).ok().and_then(char::from_u32).expect("a character"));
            raw += rest;
        }
        raw
    }

    #[test]
    fn a_beginning_is_that_of_the_clean_line() {
        for hidden in ["\u{200b}", "\u{1b}]0;title\u{7}", "\u{1b}[31m", "\u{e0041}"] {
            let text = format!("{}a\tb\nc{hidden}de{}", hidden.repeat(3000), "f".repeat(10_000));
            assert_eq!(beginning(&text, 6), "a b cd", "{hidden:?}");
        }
        assert_eq!(
            (beginning("", 3), beginning("äöü", 2), beginning("ab\u{1b}[3", 9)),
            ("".into(), "äö".into(), "ab3".into())
        );
        assert_eq!(beginning("abc", 0), "");
    }

    #[test]
    fn clipboard_write_is_removed() {
        assert_eq!(text("a\x1b]52;c;cm0gLXJmIC8=\x07b"), "ab");
        assert_eq!(text("a\u{9d}52;c;cm0gLXJmIC8=\u{9c}b"), "ab");
    }

    #[test]
    fn link_keeps_its_label_and_loses_its_target() {
        assert_eq!(text("\x1b]8;;http://evil.example\x1b\\label\x1b]8;;\x1b\\."), "label.");
    }

    #[test]
    fn title_is_removed_in_the_forms_of_xterm_and_of_tmux() {
        assert_eq!(text("\x1b]0;root@prod\x07$ \x1b]2;x\ty\x1b\\"), "$ ");
        assert_eq!(text("\x1bkroot@prod\x1b\\$ "), "$ ");
    }

    #[test]
    fn device_and_other_command_strings_are_removed() {
        for introducer in ["\x1bP", "\x1bX", "\x1b^", "\x1b_", "\u{90}", "\u{98}", "\u{9e}", "\u{9f}"] {
            for end in ["\x1b\\", "\u{9c}"] {
                assert_eq!(text(&format!("a{introducer}$qm é{end}b")), "ab");
            }
        }
    }

    #[test]
    fn bell_ends_an_osc_and_breaks_a_dcs() {
        assert_eq!(text("\x1b]0;t\x07a"), "a");
        assert_eq!(text("\x1bP0;t\x07a"), "0;t␇a");
    }

    #[test]
    fn eight_bit_csi_is_removed() {
        assert_eq!(text("a\u{9b}31;1mb\u{9b}0mc"), "abc");
    }

    #[test]
    fn clear_screen_and_other_csi_are_removed() {
        assert_eq!(text("a\x1b[2J\x1b[Hb\x1b[?1049hc\x1b[>4;2md\x1b[0 qe\x1b[38:2::1:2:3mf"), "abcdef");
    }

    #[test]
    fn two_byte_and_nf_escapes_are_removed() {
        assert_eq!(text("a\x1b7\x1b8\x1bc\x1b=\x1bM\x1b(B\x1b%G\x1b#8\x1b\\b"), "ab");
    }

    #[test]
    fn single_shift_keeps_the_letter_it_shifts() {
        assert_eq!(text("\x1bOA\u{8f}B"), "AB");
    }

    #[test]
    fn carriage_return_cannot_overwrite() {
        assert_eq!(text("rm -rf /\rls      \r\n"), "rm -rf /␍ls      \n");
        assert_eq!(text("a\r\r\nb\r"), "a␍\nb␍");
    }

    #[test]
    fn backspace_cannot_overstrike() {
        assert_eq!(text("rm\x08\x08ls"), "rm␈␈ls");
    }

    #[test]
    fn other_controls_show_as_pictures() {
        assert_eq!(text("\0\x07\x0b\x0c\x18\x1a\x1f\x7f"), "␀␇␋␌␘␚␟␡");
        assert_eq!(text("a\tb\n"), "a\tb\n");
    }

    #[test]
    fn lone_c1_controls_are_removed() {
        assert_eq!(text("a\u{80}\u{85}\u{9c}\u{99}b"), "ab");
    }

    #[test]
    fn unterminated_osc_does_not_swallow_the_text_after_it() {
        let line = "x".repeat(10 * 1024);
        assert_eq!(text(&format!("\x1b]0;{line}")), format!("0;{line}"));
        let lines = "some words\n".repeat(1024);
        assert_eq!(text(&format!("\x1b]0;{lines}\x07")), format!("0;{lines}␇"));
    }

    #[test]
    fn sequence_is_removed_up_to_its_bound_and_shown_past_it() {
        for introducer in ["\x1b]", "\x1bP"] {
            let body = "é".repeat(SEQUENCE_MAX / 2);
            assert_eq!(text(&format!("{introducer}{body}\u{9c}.")), ".");
            assert_eq!(text(&format!("{introducer}{body}é\u{9c}.")), format!("{body}é."));
        }
        let body = "1".repeat(SEQUENCE_MAX + 1);
        assert_eq!(text(&format!("\x1b[{body}m")), format!("{body}m"));
    }

    #[test]
    fn broken_sequence_shows_its_body() {
        assert_eq!(text("\x1b[31\nm"), "31\nm");
        assert_eq!(text("\x1b[3é"), "3é");
        assert_eq!(text("\x1b(é"), "(é");
        assert_eq!(text("\x1b]0;title\x18after"), "0;title␘after");
        assert_eq!(text("\x1b]0;a\x1b]0;b\x07c"), "0;ac");
        assert_eq!(text("\x1b]0;a\u{202e}b\n"), "0;ab\n");
    }

    #[test]
    fn control_character_breaks_a_string_though_its_end_follows() {
        assert_eq!(text("\x1b]0;a\nb\x07"), "0;a\nb␇");
        assert_eq!(text("\x1bP0;a\r\nb\x1b\\"), "0;a\nb");
        assert_eq!(text("\x1b]0;a\u{9b}31mb\x07"), "0;ab␇");
    }

    #[test]
    fn escape_at_the_end_is_dropped() {
        for end in ["\x1b", "\x1b[", "\x1b]", "\x1b\x1b", "\u{9b}", "\x1b]\x1b"] {
            assert_eq!(text(&format!("a{end}")), "a");
        }
    }

    #[test]
    fn removal_forms_no_new_sequence() {
        assert_eq!(text("\x1b\x1b[31m[31m"), "[31m");
        assert_eq!(text("\x1b[\x1b[0m31m"), "31m");
        assert_eq!(text("\x1b\u{200b}[31m"), "[31m");
        assert_eq!(text("\x1b]\x1b]0;a\x070;b\x07"), "0;b␇");
        assert_eq!(text("\u{9b}\u{9b}1m1m"), "1m");
        assert_eq!(text("a\r\x1b[m\nb"), "a␍\nb");
    }

    #[test]
    fn tag_characters_cannot_smuggle_text() {
        let hidden: String = "ignore".chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
        assert_eq!(text(&format!("hello\u{e0001}{hidden}\u{e007f}!")), "hello!");
    }

    #[test]
    fn bidi_controls_cannot_reorder() {
        assert_eq!(text("if (user\u{202e} \u{2066}// admin\u{2069} \u{2066})\u{61c}\u{200f}"), "if (user // admin )");
    }

    #[test]
    fn invisible_characters_are_removed() {
        assert_eq!(text("\u{feff}pass\u{200b}wo\u{ad}rd\u{2060}\u{180e}\u{34f}\u{3164}\u{2063}"), "password");
        assert_eq!(text("a\u{fff9}b\u{fffa}c\u{fffb}\u{200c}\u{200d}"), "abc");
    }

    #[test]
    fn noncharacters_are_removed_and_the_replacement_character_stays() {
        assert_eq!(text("a\u{fffe}\u{ffff}\u{fdd0}\u{fdef}\u{1fffe}\u{10ffff}b\u{fffd}"), "ab\u{fffd}");
    }

    #[test]
    fn unicode_line_ends_are_line_breaks() {
        assert_eq!(text("a\u{2028}b\u{2029}c"), "a\nb\nc");
    }

    #[test]
    fn joiners_stay_where_a_script_or_an_emoji_needs_them() {
        for kept in ["می\u{200c}خواهم", "क्\u{200d}ष", "র\u{200d}্যাব"] {
            assert!(matches!(text(kept), Cow::Borrowed(_)), "{kept}");
        }
        for kept in ["👨\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "👩🏽\u{200d}💻"] {
            assert!(matches!(text(kept), Cow::Borrowed(_)), "{kept}");
        }
    }

    #[test]
    fn joiners_go_where_nothing_needs_them() {
        assert_eq!(text("pay\u{200d}pal\u{200c}"), "paypal");
        assert_eq!(text("ی\u{200c}\u{200d}ه"), "ی\u{200c}ه");
        assert_eq!(text("ی\u{200c} ی\u{200d}a 👨\u{200c}👩"), "ی یa 👨👩");
    }

    #[test]
    fn variation_selectors_stay_once_and_only_where_they_show() {
        for kept in ["❤\u{fe0f}", "☎\u{fe0e}", "1\u{fe0f}\u{20e3}", "©\u{fe0f}"] {
            assert!(matches!(text(kept), Cow::Borrowed(_)), "{kept}");
        }
        let flood: String = ('\u{fe00}'..='\u{fe0f}').chain('\u{e0100}'..='\u{e01ef}').collect();
        assert_eq!(text(&format!("😀{flood}a{flood}\n{flood}漢\u{e0100}")), "😀\u{fe0e}a\n漢");
    }

    #[test]
    fn combining_marks_stay_up_to_the_bound() {
        let flood = "\u{301}".repeat(100);
        let kept = "\u{301}".repeat(usize::from(MARKS_MAX));
        assert_eq!(text(&format!("e{flood}\x1b[m{flood}\u{200b}{flood}x{flood}")), format!("e{kept}x{kept}"));
        assert!(matches!(text("שָׁלוֹם เที่ยง हिन्दी Việt e\u{301}"), Cow::Borrowed(_)));
        assert_eq!(text(&"ﾞ".repeat(20)), "ﾞ".repeat(20));
    }

    #[test]
    fn mark_on_a_joined_letter_cannot_renew_its_bounds() {
        let flood = "\u{200d}\u{94d}".repeat(100);
        assert_eq!(text(&format!("क{flood}")), format!("क\u{200d}{}", "\u{94d}".repeat(usize::from(MARKS_MAX))));
    }

    #[test]
    fn ranges_that_are_kept_unasked_have_no_marks() {
        let kept = ('\u{300}'..=char::MAX).filter(|c| matches!(Fate::of(*c), Fate::Kept));
        assert_eq!(kept.filter(|c| is_mark(*c)).collect::<String>(), "ﾞﾟ");
    }

    #[test]
    fn printable_text_of_any_script_is_borrowed() {
        for kept in ["Grüße, 漢字 한국어 ру́сский", "├── █ ⣿ \u{e0b0} \u{f0001}", "\u{a0}\u{3000}\u{fffc}", ""]
        {
            assert!(matches!(text(kept), Cow::Borrowed(_)), "{kept}");
        }
    }

    #[test]
    fn line_has_neither_breaks_nor_tabs() {
        assert_eq!(line("a\r\nb\tc\u{2028}\x1b[md"), "a b c d");
        assert!(matches!(line("a b"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_cleaned_in_strings_and_keys_at_any_depth() {
        let mut value = json!({"z\u{200b}": [{"k\x1b[m": "v\0"}], "n": 1, "a": null});
        assert!(json(&mut value));
        assert_eq!(value.to_string(), r#"{"z":[{"k":"v␀"}],"n":1,"a":null}"#);
        assert!(!json(&mut value));
    }

    #[test]
    fn json_keys_that_become_equal_lose_no_value_and_displace_no_clean_key() {
        let mut value = json!({"a\u{200b}": 1, "a": 2, "\u{feff}a": 3, "a\u{fffd}3": 4});
        assert!(json(&mut value));
        assert_eq!(value.to_string(), "{\"a\u{fffd}2\":1,\"a\":2,\"a\u{fffd}4\":3,\"a\u{fffd}3\":4}");
        assert!(!json(&mut value));
    }

    #[test]
    fn every_character_becomes_allowed_text() {
        for c in '\0'..=char::MAX {
            let input = format!("x{c}x");
            let output = text(&input);
            assert!(output.chars().all(is_allowed) && text(&output) == output, "{input:?} becomes {output:?}");
        }
    }

    const CONTROLS: &str = "\x1b\x1b\x07\r\n\t\x08\0\u{85}\u{90}\u{9b}\u{9c}\u{9d}[]P\\kOm;?1( a";
    const INVISIBLE: &str = "\u{200b}\u{200c}\u{200d}\u{fe0e}\u{fe0f}\u{e0100}\u{2028}\u{94d}\u{301}";
    const BASES: &str = "یखक👩❤漢1é";

    /// Text in which the parts of sequences, invisible characters and their bases meet often.
    fn hostile() -> impl Strategy<Value = String> {
        let one_of = |characters: &str| prop::sample::select(characters.chars().collect::<Vec<_>>());
        let c = prop_oneof![4 => one_of(CONTROLS), 3 => one_of(INVISIBLE), 2 => one_of(BASES), 1 => any::<char>()];
        let times = prop_oneof![9 => Just(1_usize), 1 => 2_usize..12];
        let run = (c, times).prop_map(|(c, times)| String::from(c).repeat(times));
        prop::collection::vec(run, 0..60).prop_map(|runs| runs.concat())
    }

    fn is_joiner_or_selector(c: char) -> bool {
        matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
    }

    /// Says the rule a second time, from the list of what the project forbids.
    fn is_allowed(c: char) -> bool {
        let is_forbidden = match u32::from(c) {
            0xad | 0x61c | 0x180e | 0xfeff => true,
            0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f => true,
            0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfff9..=0xfffb | 0xe0000..=0xe0fff => true,
            code => c.is_control() || code % 0x1_0000 >= 0xfffe,
        };
        matches!(c, '\n' | '\t') || is_joiner_or_selector(c) || !is_forbidden
    }

    fn longest_run(text: &str, is_counted: impl Fn(char) -> bool) -> usize {
        text.split(|c| !is_counted(c)).map(|run| run.chars().count()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn output_is_in_the_allowed_set(input in hostile()) {
            let output = text(&input);
            let joiners_and_selectors = longest_run(&output, is_joiner_or_selector);
            let marks = longest_run(&output, |c| is_mark(c) && !is_joiner_or_selector(c));
            prop_assert!(output.chars().all(is_allowed), "{:?}", output);
            prop_assert!(joiners_and_selectors <= 2, "{:?}", output);
            prop_assert!(marks <= usize::from(MARKS_MAX), "{:?}", output);
        }

        #[test]
        fn notation_is_clean_and_can_be_read_back(input in hostile()) {
            let plain = input.replace('\\', "/").replace('\r', "");
            let written = notation(&plain);
            prop_assert!(matches!(text(&written), Cow::Borrowed(_)), "{:?}", written);
            prop_assert_eq!(read(&written), plain.clone());
        }

        #[test]
        fn second_pass_changes_nothing(input in hostile()) {
            let once = text(&input);
            prop_assert_eq!(text(&once), &*once);
            let once = line(&input);
            prop_assert_eq!(line(&once), &*once);
        }

        #[test]
        fn output_is_at_most_four_times_as_long(input in hostile()) {
            prop_assert!(text(&input).len() <= 4 * input.len());
        }

        #[test]
        fn borrowed_says_that_nothing_changed(input in hostile()) {
            let output = text(&input);
            prop_assert_eq!(matches!(output, Cow::Borrowed(_)), output == input);
        }

        #[test]
        fn stream_gives_the_same_however_it_is_cut(chunks in prop::collection::vec(hostile(), 0..8)) {
            let mut stream = Stream::new();
            let mut output: String = chunks.iter().map(|chunk| stream.push(chunk)).collect();
            output += &stream.finish();
            let whole = chunks.concat();
            prop_assert_eq!(output, text(&whole));
        }

        #[test]
        fn stream_gives_the_same_character_by_character(input in hostile()) {
            let mut stream = Stream::new();
            let mut output: String = input.chars().map(|c| stream.push(c.encode_utf8(&mut [0; 4]))).collect();
            output += &stream.finish();
            prop_assert_eq!(output, text(&input));
        }

        #[test]
        fn plain_ascii_is_borrowed(input in "[ -~\n\t]{0,300}") {
            prop_assert!(matches!(text(&input), Cow::Borrowed(_)));
        }

        #[test]
        fn letters_are_never_lost_outside_of_sequences(input in "[a-zé漢\0-\x1a\u{200b}\u{202e}]{0,80}") {
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
            prop_assert_eq!(letters(&text(&input)), letters(&input));
        }
    }
}
