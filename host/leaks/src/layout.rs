//! Values that the layout of a text takes apart: hex whose digits are spaced, dumps as `od -tx1`, `xxd` and `hexdump` print them, and values with
//! line ends in them.
//!
//! The text is read again without its layout, and what is found there is mapped back. Only whole texts are read so: a stream would have to hold
//! back each line that may go on in the next.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::{memchr, memchr_iter};
use std::iter;
use std::ops::Range;

/// Fewer hex digits are not searched for: they would be found where no secret is.
const DIGITS_MIN: usize = 12;
/// Digits of the offset that a line of a dump begins with.
const OFFSET: Range<usize> = 4..17;
/// Without a colon behind it, an offset is longer than a group of digits mostly is.
const OFFSET_BARE: usize = 6;
/// The most digits of a group.
const GROUP_MAX: usize = 32;

/// What hex digits say, however they are set apart.
pub(crate) struct Layout {
    /// Values as hex, in the order of `owners`; digits in either case.
    hex: AhoCorasick,
    owners: Vec<usize>,
}

/// Where a value was found, and whose it is.
pub(crate) struct Apart {
    pub range: Range<usize>,
    pub secret: usize,
}

/// A text without its layout.
#[derive(Default)]
struct View {
    bytes: Vec<u8>,
    /// Where each piece begins, here and in the text.
    pieces: Vec<(usize, usize)>,
}

impl Layout {
    /// For these values, each with the index of its secret.
    pub(crate) fn new<'v>(values: impl IntoIterator<Item = (usize, &'v str)>) -> Self {
        let (mut forms, mut owners) = (Vec::new(), Vec::new());
        for (secret, value) in values {
            let spelled = [hex::encode(value), swapped(value.as_bytes()), swapped(&value.as_bytes()[1..])];
            for form in spelled.into_iter().filter(|form| form.len() >= DIGITS_MIN) {
                forms.push(form);
                owners.push(secret);
            }
        }
        let hex = AhoCorasick::builder()
            // Little is read with it, so it need not be fast.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .ascii_case_insensitive(true)
            .build(&forms)
            .expect("all secrets have less than 2 GiB of forms");
        Self { hex, owners }
    }

    /// Hex whose digits are apart, in no order.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Apart> {
        let mut found = Vec::new();
        self.spaced(text, &mut found);
        self.dumped(text, &mut found);
        found
    }

    /// Hex whose digits are apart, over any number of lines.
    fn spaced(&self, text: &[u8], found: &mut Vec<Apart>) {
        // A run that is long enough lies over one of every so many bytes.
        let (stride, mut at) = (DIGITS_MIN + 1, 0);
        while let Some(byte) = text.get(at + stride - 1) {
            if kind(*byte) == Kind::Other {
                at += stride;
                continue;
            }
            let middle = at + stride - 1;
            let before = text[at..middle].iter().rev().take_while(|byte| kind(**byte) != Kind::Other).count();
            let behind = text[middle..].iter().take_while(|byte| kind(**byte) != Kind::Other).count();
            let run = &text[middle - before..middle + behind];
            let is_digit = |byte: &&u8| kind(**byte) == Kind::Digit;
            if run.len() >= stride && run.iter().filter(is_digit).take(DIGITS_MIN).count() == DIGITS_MIN {
                self.search(&digits(run, middle - before), |range| range, found);
            }
            at = middle + behind;
        }
    }

    /// Lines of a dump, each with its offset in front and perhaps its characters behind.
    fn dumped(&self, text: &[u8], found: &mut Vec<Apart>) {
        let mut view = View::default();
        let ends = memchr_iter(b'\n', text).chain(iter::once(text.len()));
        // The characters behind the digits are part of what was found.
        let to_the_end = |range: Range<usize>| {
            range.start..memchr(b'\n', &text[range.end..]).map_or(text.len(), |length| range.end + length)
        };
        let mut from = 0;
        for end in ends {
            if !dump_line(&text[from..end], from, &mut view) && !view.bytes.is_empty() {
                self.search(&view, to_the_end, found);
                view = View::default();
            }
            from = end + 1;
        }
        self.search(&view, to_the_end, found);
    }

    fn search(&self, view: &View, shown: impl Fn(Range<usize>) -> Range<usize>, found: &mut Vec<Apart>) {
        for hit in self.hex.find_iter(&view.bytes) {
            let secret = self.owners[hit.pattern().as_usize()];
            found.extend(view.apart(hit.range()).map(|range| Apart { range: shown(range), secret }));
        }
    }
}

impl View {
    fn push(&mut self, bytes: &[u8], at: usize) {
        let goes_on = self.pieces.last().is_some_and(|(view, text)| text + self.bytes.len() - view == at);
        if !goes_on {
            self.pieces.push((self.bytes.len(), at));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Where a byte stands in the text.
    fn place(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|(view, _)| *view <= at) - 1;
        let (view, text) = self.pieces[piece];
        text + at - view
    }

    /// The place of a range in the text, unless it is in one piece there.
    fn apart(&self, range: Range<usize>) -> Option<Range<usize>> {
        let there = self.place(range.start)..self.place(range.end - 1) + 1;
        (there.len() > range.len()).then_some(there)
    }
}

/// Finds forms with line ends in them, and blanks around these, in no order.
pub(crate) fn over_lines(forms: &impl Forms, text: &[u8]) -> Vec<Apart> {
    let (mut found, mut from) = (Vec::new(), 0);
    for end in memchr_iter(b'\n', text) {
        // An empty line is part of the end of the one before.
        if end < from {
            continue;
        }
        let line_end = from + text[from..end].trim_ascii_end().len();
        let next = text.len() - text[end..].trim_ascii_start().len();
        let Some(first) = text.get(next) else { break };
        // A quick look: what stands on both sides of the end, and beside one of them, is in a form. Of a line of one byte that says nothing.
        let holds = |two: &[u8]| two.len() < 2 || two[1].is_ascii_whitespace() || forms.may_hold(two[0], two[1]);
        let line = &text[from..line_end];
        let is_likely = line.last().is_some_and(|last| forms.may_hold(*last, *first))
            && (line.len() < 2 || holds(&line[line.len() - 2..]) || holds(&text[next..text.len().min(next + 2)]));
        let begin = line_end.saturating_sub(forms.longest() - 1).max(from);
        let begin = if is_likely { begin } else { line_end };
        for at in begin..line_end {
            let second = if at + 1 < line_end { &text[at + 1] } else { first };
            if !forms.may_begin(text[at], *second) || !forms.is_beginning(&text[at..line_end]) {
                continue;
            }
            let view = joined(text, at..line_end, next, forms.longest());
            if let Some((length, secret)) = forms.at_the_beginning(&view.bytes) {
                found.extend(view.apart(0..length).map(|range| Apart { range, secret }));
            }
        }
        from = next;
    }
    found
}

/// What is searched for in lines.
pub(crate) trait Forms {
    /// The length of the longest.
    fn longest(&self) -> usize;
    /// Whether one may begin with these two bytes: a quick look.
    fn may_begin(&self, first: u8, second: u8) -> bool;
    /// Whether these two bytes are side by side in one: a quick look.
    fn may_hold(&self, first: u8, second: u8) -> bool;
    /// Whether one begins with these bytes and is longer.
    fn is_beginning(&self, bytes: &[u8]) -> bool;
    /// The longest that these bytes begin with, as its length and the index of its secret.
    fn at_the_beginning(&self, bytes: &[u8]) -> Option<(usize, usize)>;
}

/// The end of a line with as much of the lines from `next` on as a form of this length may need.
fn joined(text: &[u8], end: Range<usize>, next: usize, longest: usize) -> View {
    let (mut view, mut from) = (View::default(), next);
    view.push(&text[end.clone()], end.start);
    while view.bytes.len() < longest && from < text.len() {
        let end = memchr(b'\n', &text[from..]).map_or(text.len(), |length| from + length);
        let line = text[from..end].trim_ascii_end();
        view.push(&line[..line.len().min(longest)], from);
        from = text.len() - text[end..].trim_ascii_start().len();
    }
    view
}

/// What a byte is among hex digits.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Digit,
    /// It can stand between two: `7a 4b`, `7a:4b`, `0x7a, 0x4b`, `\x7a\x4b`.
    Between,
    Other,
}

/// By the byte.
const KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Other; 256];
    let mut at = 0;
    while at < kinds.len() {
        kinds[at] = match at as u8 {
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => Kind::Digit,
            b' ' | b'\t' | b'\r' | b'\n' | b':' | b'-' | b',' | b'\\' | b'x' | b'X' => Kind::Between,
            _ => Kind::Other,
        };
        at += 1;
    }
    kinds
};

fn kind(byte: u8) -> Kind {
    KINDS[usize::from(byte)]
}

/// The digits of a run; of `0x7a` the last two.
fn digits(run: &[u8], begin: usize) -> View {
    let (mut view, mut at) = (View::default(), 0);
    for word in run.split(|byte| kind(*byte) != Kind::Digit) {
        let is_prefix = word == b"0" && matches!(run.get(at + 1), Some(b'x' | b'X'));
        if !word.is_empty() && !is_prefix {
            view.push(word, begin + at);
        }
        at += word.len() + 1;
    }
    view
}

/// Adds the digits of a line of a dump, which begins at `at` of the text; false if it is no such line.
fn dump_line(line: &[u8], at: usize, view: &mut View) -> bool {
    let is_hex = |word: &[u8]| word.iter().all(u8::is_ascii_hexdigit);
    let mut words = words(line);
    let Some((_, first)) = words.next() else { return false };
    let (offset, has_colon) = match first.strip_suffix(b":") {
        Some(offset) => (offset, true),
        None => (first, false),
    };
    if !OFFSET.contains(&offset.len()) || !is_hex(offset) || !(has_colon || offset.len() >= OFFSET_BARE) {
        return false;
    }
    let before = view.bytes.len();
    let mut end = None;
    for (start, word) in words {
        // Behind two blanks, `xxd` shows the characters.
        let is_behind = has_colon && end.is_some_and(|end| start > end + 1);
        if is_behind || word.len() % 2 == 1 || word.len() > GROUP_MAX || !is_hex(word) {
            break;
        }
        view.push(word, at + start);
        end = Some(start + word.len());
    }
    view.bytes.len() > before
}

/// The words of a line, each with its place.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    iter::from_fn(move || {
        let start = at + line[at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        let length = line[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(line.len() - start);
        at = start + length;
        Some((start, &line[start..at]))
    })
}

/// The bytes as hex of 16-bit words whose lower byte stands last, as `od -x` prints them: whole words alone.
fn swapped(bytes: &[u8]) -> String {
    hex::encode(bytes.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::Known;
    use super::super::sample::{PRINTED, Random};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use std::borrow::Cow;
    use std::fmt::Write;

    const VALUE: &str = "zK4/vQ9+Lw\"2x&Ht7-mN8pR3sT6uV1yZ5aB0cD4eF";

    /// Lines of 16 bytes, each with its offset, as this prints one.
    fn dump(bytes: &[u8], line: impl Fn(usize, &[u8]) -> String) -> String {
        bytes.chunks(16).enumerate().map(|(number, bytes)| line(number * 16, bytes) + "\n").collect()
    }

    fn grouped(bytes: &[u8], group: usize, between: &str) -> String {
        bytes.chunks(group).map(hex::encode).collect::<Vec<_>>().join(between)
    }

    fn shown(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect()
    }

    fn wrapped(text: &str, width: usize, end: &str) -> String {
        text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line) + end).collect()
    }

    /// A text that holds the value somewhere, as programs print its bytes.
    fn printed(bytes: &[u8]) -> Vec<(&'static str, String)> {
        let words = |bytes: &[u8]| {
            bytes.chunks(2).map(|pair| hex::encode(pair.iter().rev().copied().collect::<Vec<_>>())).collect::<Vec<_>>()
        };
        let in_c = bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "0x{byte:02X}, ").expect("a string");
            text
        });
        let in_python = bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "\\x{byte:02x}").expect("a string");
            text
        });
        vec![
            ("spaced", format!("key = {} end", grouped(bytes, 1, " "))),
            ("upper", grouped(bytes, 1, " ").to_uppercase()),
            ("colons", format!("    {}", wrapped(&grouped(bytes, 1, ":"), 45, "\n    "))),
            ("C", format!("{{ {in_c} }}")),
            ("Python", format!("b'{in_python}'")),
            ("od -An -tx1", dump(bytes, |_, bytes| format!(" {}", grouped(bytes, 1, " ")))),
            ("od -tx1", dump(bytes, |at, bytes| format!("{at:07o} {}", grouped(bytes, 1, " ")))),
            ("od -tx1z", dump(bytes, |at, bytes| format!("{at:07o} {}  >{}<", grouped(bytes, 1, " "), shown(bytes)))),
            ("od -x", dump(bytes, |at, bytes| format!("{at:07o} {}", words(bytes).join(" ")))),
            ("xxd", dump(bytes, |at, bytes| format!("{at:08x}: {:<39}  {}", grouped(bytes, 2, " "), shown(bytes)))),
            ("xxd -g1", dump(bytes, |at, bytes| format!("{at:08x}: {:<47}  {}", grouped(bytes, 1, " "), shown(bytes)))),
            ("xxd -p", wrapped(&hex::encode(bytes), 60, "\n")),
            (
                "hexdump -C",
                dump(bytes, |at, bytes| {
                    let (front, back) = bytes.split_at(bytes.len().min(8));
                    format!("{at:08x}  {}  {:<23}  |{}|", grouped(front, 1, " "), grouped(back, 1, " "), shown(bytes))
                }),
            ),
            ("base64", wrapped(&STANDARD.encode(bytes), 76, "\n")),
            ("base64, narrow", wrapped(&STANDARD.encode(bytes), 20, "\r\n  ")),
            ("base32", wrapped(&data_encoding::BASE32.encode(bytes), 16, "\n")),
        ]
    }

    /// What is left of a text tells nothing: no five characters of the value, plain or as hex.
    fn tells_nothing(text: &str) {
        let squeezed = text.replace([' ', ':', '\n'], "").to_lowercase();
        for part in VALUE.as_bytes().windows(5) {
            let part = std::str::from_utf8(part).expect("ASCII");
            assert!(!text.contains(part) && !squeezed.contains(&hex::encode(part)), "{part}: {text}");
        }
    }

    #[test]
    fn a_value_is_found_however_its_bytes_are_laid_out() {
        let (known, mut random) = (Known::new([("KEY", VALUE)]), Random::new());
        for (front, back) in (0..20).flat_map(|front| [0, 5, 33].map(|back| (front, back))) {
            let around = |length, random: &mut Random| random.text(PRINTED, length).into_bytes();
            let bytes = [around(front, &mut random), VALUE.as_bytes().to_vec(), around(back, &mut random)].concat();
            for (how, text) in printed(&bytes) {
                assert_eq!(known.find(text.as_bytes()), Some("KEY"), "{how}, {front} in front:\n{text}");
                let clean = known.redact(&text);
                assert!(clean.contains("[secret:KEY]"), "{how}: {clean}");
                tells_nothing(&clean);
                let clean = known.redact_bytes(text.as_bytes());
                tells_nothing(&String::from_utf8_lossy(&clean));
            }
        }
    }

    #[test]
    fn a_value_with_line_ends_in_it_is_found() {
        let known = Known::new([("KEY", VALUE)]);
        for at in 1..VALUE.len() {
            for end in ["\n", "\r\n", "\n    ", "  \n\n"] {
                let text = format!("first {}{end}{} last", &VALUE[..at], &VALUE[at..]);
                assert_eq!(known.redact(&text), "first [secret:KEY] last", "{at}");
            }
        }
        let text = VALUE.chars().map(|c| format!("{c}\n")).collect::<String>();
        assert_eq!(known.redact(&text), "[secret:KEY]\n");
    }

    #[test]
    fn around_what_is_found_the_text_stays() {
        let known = Known::new([("KEY", VALUE), ("OTHER", "other-Value-1")]);
        let (front, back) = VALUE.split_at(9);
        let text =
            format!("a\nother-Value-1 b {front}\n{back}\nc {} d\nother-\nValue-1", grouped(VALUE.as_bytes(), 1, ":"));
        assert_eq!(known.redact(&text), "a\n[secret:OTHER] b [secret:KEY]\nc [secret:KEY] d\n[secret:OTHER]");
        assert_eq!(known.names(text.as_bytes()).collect::<Vec<_>>(), ["OTHER", "KEY", "KEY", "OTHER"]);
    }

    /// A match that overlaps another takes it along: nothing of either is left.
    #[test]
    fn what_overlaps_is_one() {
        let known = Known::new([("ONE", "abcdef-1234"), ("TWO", "1234-ghijkl")]);
        assert_eq!(known.redact("<abcdef-\n1234-ghijkl>"), "<[secret:ONE]>");
    }

    #[test]
    fn other_bytes_hold_no_secret() {
        let (known, mut random) = (Known::new([("KEY", VALUE)]), Random::new());
        let bytes = random.bytes(4000);
        for (how, text) in printed(&bytes) {
            assert!(matches!(known.redact(&text), Cow::Borrowed(_)), "{how}");
        }
        for text in [
            "a bad cafe: deadbeef 00 11 22",
            "0000000",
            "00000000:\n00000010: 7\n",
            ": : :",
            "x",
            "\n\n",
            "0x",
            "12345678 90",
        ] {
            assert!(matches!(known.redact(text), Cow::Borrowed(_)), "{text:?}");
        }
    }
}
