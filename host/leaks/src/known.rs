//! Exact search for the values that this host knows, in one pass for all of them.
//!
//! How a value may be written is left to `forms` and `layout`, pieces of a stream to `stream`, the storing of values to the callers.

use super::forms;
use super::layout::{Apart, Forms, Layout, over_lines};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// Weak values: shorter, or made of fewer different characters.
const VALUE_MIN_CHARS: usize = 8;
const VALUE_MIN_DIFFERENT: usize = 5;

/// Letters alone, or digits alone, may be a word or a date up to this length.
const VALUE_MIN_CHARS_ALIKE: usize = 12;

/// Lines of a value that are searched for on their own.
const LINE_MIN_CHARS: usize = 20;

/// Forms of up to this many bytes in all become a DFA, which takes less than 1 KiB a byte. They are those of about 32
/// secrets of 40 characters. More become an NFA, which takes about 12 bytes a byte and twice the time.
const DFA_BYTES: usize = 48 << 10;

/// The values that must not get out, each under a name.
///
/// Where matches overlap, the one that begins first counts; of those that begin together, the longest.
#[derive(Default)]
pub struct Known(Option<Search>);

/// The forms are kept readable as long as this lives, and the automaton's tables spell them too. Erasing the one would
/// not erase the other, so both are freed as they are: what protects them is that the process leaves no core dump.
struct Search {
    names: Vec<Box<str>>,
    /// In order, so that the forms with the same beginning are neighbours; a form's index is the automaton's pattern.
    forms: Vec<Form>,
    longest: usize,
    /// How forms begin, and all that is side by side in one.
    starts: Pairs,
    neighbours: Pairs,
    automaton: AhoCorasick,
    layout: Layout,
}

struct Form {
    bytes: Box<[u8]>,
    /// Index of its name.
    secret: usize,
}

/// Pairs of bytes: one bit a pair, 8 KiB.
struct Pairs(Box<[u64]>);

/// One secret, found.
pub struct Hit<'k> {
    pub start: usize,
    pub end: usize,
    pub name: &'k str,
}

impl Hit<'_> {
    /// What takes its place.
    pub fn mark(&self) -> String {
        format!("[secret:{}]", self.name)
    }
}

/// Returns why a value cannot be searched for: it would be found where it is not meant.
///
/// The reason follows the name of the secret, and holds nothing of the value.
pub fn why_weak(value: &str) -> Option<String> {
    let value = value.trim();
    let chars = value.chars().count();
    let mut different: Vec<char> = value.chars().collect();
    different.sort_unstable();
    different.dedup();
    let is_alike = value.chars().all(char::is_alphabetic) || value.chars().all(char::is_numeric);
    if chars < VALUE_MIN_CHARS {
        Some(format!("has fewer than {VALUE_MIN_CHARS} characters"))
    } else if different.len() < VALUE_MIN_DIFFERENT {
        Some(format!("has fewer than {VALUE_MIN_DIFFERENT} different characters"))
    } else if is_alike && chars < VALUE_MIN_CHARS_ALIKE {
        Some(format!("has fewer than {VALUE_MIN_CHARS_ALIKE} characters, and only letters or only digits"))
    } else {
        None
    }
}

impl Known {
    /// Takes the secrets by name and value. Weak values are omitted; [`why_weak`] tells the user.
    ///
    /// White space around a value does not count. Takes time and memory in proportion to the values, about 30 times
    /// their length, so the caller bounds what it reads as a value.
    pub fn new<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s str)>) -> Self {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, value) in secrets.into_iter().filter(|(_, value)| why_weak(value).is_none()) {
            values.extend(std::iter::once(value.trim()).chain(telling_lines(value)).map(|value| (names.len(), value)));
            names.push(name.into());
        }
        let mut owners = BTreeMap::new();
        for (secret, value) in &values {
            for form in forms::of(value) {
                owners.entry(form).or_insert(*secret);
            }
        }
        let forms: Vec<_> = owners.into_iter().map(|(bytes, secret)| Form { bytes: bytes.into(), secret }).collect();
        Self((!forms.is_empty()).then(|| Search::new(names, forms, Layout::new(values))))
    }

    /// Returns the name of a secret in `bytes`.
    pub fn find(&self, bytes: &[u8]) -> Option<&str> {
        let hit = self.hit(bytes, 0).or_else(|| self.0.as_ref()?.apart(bytes).into_iter().next());
        hit.map(|hit| hit.name)
    }

    /// The names of the secrets in `bytes`.
    pub fn names(&self, bytes: &[u8]) -> impl Iterator<Item = &str> {
        self.hits(bytes).into_iter().map(|hit| hit.name)
    }

    /// Returns the text with `[secret:NAME]` in place of every secret; borrowed when there is none.
    ///
    /// A match of a binary form may begin or end within a character, which then goes too.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut output = String::new();
        let mut done = 0;
        for hit in self.hits(text.as_bytes()) {
            // The character that ended one match may begin the next.
            output += &text[done..text.floor_char_boundary(hit.start).max(done)];
            output += &hit.mark();
            done = text.ceil_char_boundary(hit.end);
        }
        if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(output + &text[done..]) }
    }

    /// As [`Known::redact`], for bytes of any kind.
    pub fn redact_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut output = Vec::new();
        let mut done = 0;
        for hit in self.hits(bytes) {
            output.extend_from_slice(&bytes[done..hit.start]);
            output.extend_from_slice(hit.mark().as_bytes());
            done = hit.end;
        }
        if done == 0 {
            return Cow::Borrowed(bytes);
        }
        output.extend_from_slice(&bytes[done..]);
        Cow::Owned(output)
    }

    /// Returns how many bytes at the beginning of `text` complete a secret that began in `before`, and its name.
    ///
    /// `before` is what came earlier, unredacted: its last [`Known::longest`] bytes are enough, over as many results as
    /// they span. The count ends between characters; where several secrets are completed, it is the largest.
    pub fn completed(&self, before: &[u8], text: &str) -> Option<(usize, &str)> {
        let before = &before[before.len().saturating_sub(self.longest())..];
        let begun: Vec<_> = self.unfinished(before).collect();
        let first = *begun.first()?;
        let mut joined = before[first..].to_vec();
        joined.extend_from_slice(&text.as_bytes()[..text.len().min(self.longest())]);
        let border = before.len() - first;
        let hits = begun.iter().filter_map(|start| self.hit(&joined, start - first));
        let longest = hits.filter(|hit| hit.start < border && hit.end > border).max_by_key(|hit| hit.end)?;
        Some((text.ceil_char_boundary(longest.end - border), longest.name))
    }

    /// Returns the length in bytes of the longest form; 0 when nothing is searched for.
    pub fn longest(&self) -> usize {
        self.0.as_ref().map_or(0, |search| search.longest)
    }

    /// The first match that begins at `from` or later.
    pub fn hit(&self, bytes: &[u8], from: usize) -> Option<Hit<'_>> {
        let search = self.0.as_ref()?;
        let found = search.automaton.find(Input::new(bytes).range(from..))?;
        Some(search.hit(&found))
    }

    /// All matches in order, also of what the layout takes apart. None overlaps another: two that do are one, which has the name of the first.
    fn hits(&self, bytes: &[u8]) -> Vec<Hit<'_>> {
        let Some(search) = &self.0 else { return Vec::new() };
        let mut hits: Vec<_> = search.automaton.find_iter(bytes).map(|found| search.hit(&found)).collect();
        let apart = search.apart(bytes);
        if !apart.is_empty() {
            hits.extend(apart);
            hits.sort_by_key(|hit| (hit.start, Reverse(hit.end)));
            hits.dedup_by(|next, first| {
                let overlaps = next.start < first.end;
                if overlaps {
                    first.end = first.end.max(next.end);
                }
                overlaps
            });
        }
        hits
    }

    /// Whether a value is there that the layout takes apart: a stream does not search for those.
    #[cfg(test)]
    pub fn is_apart(&self, bytes: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|search| !search.apart(bytes).is_empty())
    }

    /// The positions, in order, from which `bytes` to their end are the beginning of a longer form: what follows may
    /// make a match there, or lengthen one.
    pub fn unfinished<'k>(&'k self, bytes: &'k [u8]) -> impl Iterator<Item = usize> + 'k {
        let from = bytes.len().saturating_sub(self.longest().saturating_sub(1));
        self.0.iter().flat_map(move |search| (from..bytes.len()).filter(|at| search.is_beginning(&bytes[*at..])))
    }
}

impl Search {
    fn new(names: Vec<Box<str>>, forms: Vec<Form>, layout: Layout) -> Self {
        let bytes: usize = forms.iter().map(|form| form.bytes.len()).sum();
        let kind = if bytes <= DFA_BYTES { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(kind))
            .build(forms.iter().map(|form| &form.bytes))
            .expect("all secrets have less than 2 GiB of forms");
        let longest = forms.iter().map(|form| form.bytes.len()).max().unwrap_or(0);
        let starts = Pairs::new(forms.iter().filter_map(|form| form.bytes.first_chunk().copied()));
        let sides = forms.iter().flat_map(|form| form.bytes.windows(2).map(|pair| [pair[0], pair[1]]));
        Self { names, longest, starts, neighbours: Pairs::new(sides), forms, automaton, layout }
    }

    /// What the layout of a text takes apart.
    fn apart(&self, text: &[u8]) -> Vec<Hit<'_>> {
        let hit = |Apart { range, secret }| Hit { start: range.start, end: range.end, name: &self.names[secret] };
        over_lines(self, text).into_iter().chain(self.layout.find(text)).map(hit).collect()
    }

    fn hit(&self, found: &aho_corasick::Match) -> Hit<'_> {
        let form = &self.forms[found.pattern().as_usize()];
        Hit { start: found.start(), end: found.end(), name: &self.names[form.secret] }
    }

    /// Whether a form begins with these bytes and is longer.
    fn is_beginning(&self, bytes: &[u8]) -> bool {
        if let &[first, second, ..] = bytes
            && !self.starts.has(first, second)
        {
            return false;
        }
        // What begins with the bytes and is longer comes right after them.
        let next = self.forms.partition_point(|form| *form.bytes <= *bytes);
        self.forms.get(next).is_some_and(|form| form.bytes.starts_with(bytes))
    }
}

impl Forms for Search {
    fn longest(&self) -> usize {
        self.longest
    }

    fn may_begin(&self, first: u8, second: u8) -> bool {
        self.starts.has(first, second)
    }

    fn may_hold(&self, first: u8, second: u8) -> bool {
        self.neighbours.has(first, second)
    }

    fn is_beginning(&self, bytes: &[u8]) -> bool {
        self.is_beginning(bytes)
    }

    fn at_the_beginning(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let found = self.automaton.find(bytes).filter(|found| found.start() == 0)?;
        Some((found.end(), self.forms[found.pattern().as_usize()].secret))
    }
}

impl Pairs {
    fn new(pairs: impl Iterator<Item = [u8; 2]>) -> Self {
        let mut bits = vec![0; (1 << 16) / 64];
        for pair in pairs {
            let pair = usize::from(u16::from_be_bytes(pair));
            bits[pair / 64] |= 1 << (pair % 64);
        }
        Self(bits.into())
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let pair = usize::from(u16::from_be_bytes([first, second]));
        self.0[pair / 64] & 1 << (pair % 64) != 0
    }
}

/// The lines of a value of several lines that give it away alone, as those of a private key do. Lines with a space may
/// be prose or settings, and those of dashes are in every key.
fn telling_lines(value: &str) -> impl Iterator<Item = &str> {
    value.trim().lines().map(str::trim).filter(move |line| {
        line.len() < value.trim().len()
            && line.chars().count() >= LINE_MIN_CHARS
            && !line.starts_with("-----")
            && !line.contains(char::is_whitespace)
            && why_weak(line).is_none()
    })
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secrets, forms) = self.0.as_ref().map_or((0, 0), |search| (search.names.len(), search.forms.len()));
        f.debug_struct("Known").field("secrets", &secrets).field("forms", &forms).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{PRINTED, Random};
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    const VALUE: &str = "it's <a&b> \"s3cret\"/+=";

    fn secrets(count: usize) -> Vec<(String, String)> {
        let mut random = Random::new();
        let value = |index| (format!("S{index}"), random.text(PRINTED, 8 + index % 60));
        let mut secrets: Vec<_> = (0..count).map(value).collect();
        secrets.retain(|(_, value)| why_weak(value).is_none());
        secrets
    }

    fn known(secrets: &[(String, String)]) -> Known {
        Known::new(secrets.iter().map(|(name, value)| (&**name, &**value)))
    }

    fn key() -> String {
        let mut random = Random::new();
        let lines: String = (0..25).map(|_| random.text(&PRINTED[..64], 64) + "\n").collect();
        format!("-----BEGIN PRIVATE KEY-----\n{lines}ab==\n-----END PRIVATE KEY-----\n")
    }

    /// K-01: every form of every secret, in any text around it.
    #[test]
    fn every_form_of_every_secret_is_found_and_replaced() {
        let secrets = secrets(200);
        let all = known(&secrets);
        let mut random = Random::new();
        for (name, value) in &secrets {
            let one = Known::new([(&**name, &**value)]);
            for form in forms::of(value.trim()) {
                let length = random.below(100);
                let (front, back) = (random.bytes(length), random.bytes(100 - length));
                let text = [&front, &form, &back].map(|part| &part[..]).concat();
                let expected = [&front, format!("[secret:{name}]").as_bytes(), &back].concat();
                for known in [&all, &one] {
                    assert_eq!(known.find(&text), Some(&**name));
                    assert_eq!(known.redact_bytes(&text), expected);
                }
            }
        }
    }

    #[test]
    fn secrets_are_found_in_what_encoders_make_of_the_text_around_them() {
        let secrets = secrets(200);
        let known = known(&secrets);
        let mut random = Random::new();
        for (name, value) in &secrets {
            let (front, back) = (random.below(9), random.below(9));
            let text = random.text(PRINTED, front) + value.trim() + &random.text(PRINTED, back);
            for encoded in [
                STANDARD.encode(&text),
                URL_SAFE_NO_PAD.encode(&text),
                serde_json::to_string(&text).expect("a string"),
                utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string(),
                hex::encode(&text),
                text,
            ] {
                assert_eq!(known.find(encoded.as_bytes()), Some(&**name));
                assert_eq!(known.redact(&encoded).matches("[secret:").count(), 1);
            }
        }
    }

    #[test]
    fn text_without_a_secret_is_borrowed() {
        let known = known(&secrets(20));
        for known in [&known, &Known::default()] {
            assert!(matches!(known.redact("nothing"), Cow::Borrowed("nothing")));
            assert!(matches!(known.redact_bytes(b"nothing"), Cow::Borrowed(b"nothing")));
            assert_eq!(known.find(b"nothing"), None);
            assert_eq!(known.completed(b"no", "thing"), None);
        }
        assert_eq!(Known::default().longest(), 0);
    }

    #[test]
    fn a_value_that_would_be_found_everywhere_is_weak() {
        for (value, reason) in [
            ("", "has fewer than 8 characters"),
            (" 7ab+x/4 ", "has fewer than 8 characters"),
            ("aaaaaaaaaaaaaaaaa", "has fewer than 5 different characters"),
            ("1212-1212-1212", "has fewer than 5 different characters"),
            ("12345678", "has fewer than 12 characters, and only letters or only digits"),
            ("Password", "has fewer than 12 characters, and only letters or only digits"),
            ("größenwahn", "has fewer than 12 characters, and only letters or only digits"),
        ] {
            assert_eq!(why_weak(value).as_deref(), Some(reason), "{value}");
            let known = Known::new([("W", value), ("S", VALUE)]);
            assert_eq!(known.redact(&format!("{value}, {VALUE}")), format!("{value}, [secret:S]"));
        }
        for value in ["p4ssw0rd", "correcthorsebattery", "202611240654", VALUE] {
            assert_eq!(why_weak(value), None, "{value}");
        }
    }

    #[test]
    fn white_space_around_a_value_does_not_count() {
        let known = Known::new([("S", "\n p4ss word!\r\n")]);
        assert_eq!(known.redact("<p4ss word!>"), "<[secret:S]>");
    }

    #[test]
    fn of_overlapping_matches_the_first_then_the_longest_counts() {
        let known = Known::new([("SHORT", "abcdef-12"), ("LONG", "abcdef-1234"), ("LATER", "ef-1234567")]);
        assert_eq!(known.redact("abcdef-123"), "[secret:SHORT]3");
        assert_eq!(known.redact("abcdef-1234567"), "[secret:LONG]567");
        assert_eq!(known.redact("bcdef-1234567"), "bcd[secret:LATER]");
        let twice = Known::new([("ONE", VALUE), ("TWO", VALUE)]);
        assert_eq!(twice.redact(VALUE), "[secret:ONE]");
    }

    #[test]
    fn the_lines_of_a_key_are_found_alone() {
        let key = key();
        let known = Known::new([("KEY", &*key)]);
        assert_eq!(known.redact(&format!("<{key}>")), "<[secret:KEY]\n>");
        assert_eq!(known.redact(&serde_json::to_string(&key).expect("a string")), r#""[secret:KEY]\n""#);
        for line in key.lines().filter(|line| line.len() == 64) {
            assert_eq!(known.redact(&format!("12\t{line}\r\n")), "12\t[secret:KEY]\r\n");
            assert_eq!(known.find(STANDARD.encode(format!("x{line}")).as_bytes()), Some("KEY"));
        }
        assert_eq!(known.find(b"-----BEGIN PRIVATE KEY-----\nab==\n-----END PRIVATE KEY-----"), None);
    }

    #[test]
    fn lines_that_others_also_write_are_not_searched_for() {
        let file = "{\n  \"type\": \"service_account\",\n  \"key\": \"q8Jr-20fmX7w_Lz31bV\"\n}\nq8Jr-20fmX7w_Lz31bVu\n";
        let known = Known::new([("FILE", file)]);
        assert_eq!(known.find(b"  \"type\": \"service_account\","), None);
        assert_eq!(known.find(b"q8Jr-20fmX7w_Lz31bVu"), Some("FILE"));
        assert_eq!(known.find(file.as_bytes()), Some("FILE"));
    }

    #[test]
    fn a_redacted_text_keeps_whole_characters() {
        // In UTF-16: 80 01 …, … 61 C3.
        let known = Known::new([("S", "\u{180}1b2c3d4\u{c361}")]);
        let form = "\u{1}1\x00b\x002\x00c\x003\x00d\x004\x00a";
        for (text, redacted) in [
            (format!("x\u{c0}{form}\u{c0}y"), "x[secret:S]y"),
            (format!("\u{c0}{form}\u{c0}{form}\u{c0}"), "[secret:S][secret:S]"),
        ] {
            assert_eq!(known.redact(&text), redacted);
            assert!(known.find(text.as_bytes()).is_some());
        }
    }

    #[test]
    fn a_secret_split_over_two_results_is_completed() {
        let known = Known::new([("S", VALUE), ("T", "another-2nd")]);
        for form in forms::of(VALUE).into_iter().chain(forms::of("another-2nd")) {
            let Ok(form) = String::from_utf8(form) else { continue };
            let name = known.find(form.as_bytes()).expect("a form is found");
            for (at, _) in form.char_indices().skip(1) {
                let (before, text) =
                    (format!("{}first: {}", "x".repeat(300), &form[..at]), format!("{} – rest", &form[at..]));
                assert_eq!(known.completed(before.as_bytes(), &text), Some((form.len() - at, name)));
                let tail = &before.as_bytes()[before.len() - known.longest()..];
                assert_eq!(known.completed(tail, &text), Some((form.len() - at, name)));
            }
            assert_eq!(known.completed(format!("{form} ").as_bytes(), "text"), None);
            assert_eq!(known.completed(b"before", &form), None);
        }
    }

    #[test]
    fn of_several_completed_secrets_the_one_that_ends_last_counts() {
        let known = Known::new([("SHORT", "ab-abcde"), ("LONG", "abcdefgh-12345"), ("IN", "x1ab-abcd")]);
        assert_eq!(known.completed(b"x1ab-abcd", "efgh-12345 "), Some((10, "LONG")));
        assert_eq!(known.completed(b"x1ab-abc", "de"), Some((2, "SHORT")));
    }

    #[test]
    fn debug_shows_no_value() {
        assert_eq!(format!("{:?}", Known::default()), "Known { secrets: 0, forms: 0, .. }");
        let shown = format!("{:?}", Known::new([("NAME", VALUE)]));
        assert!(shown.starts_with("Known { secrets: 1, forms: ") && shown.len() < 40, "{shown}");
    }
}
