//! Finds the passages of a text that an edit names, and replaces them.
//!
//! Line breaks match whatever they are in the file, and a character that readers are shown as `\u{200b}` matches that notation.

use super::changes::{lines, steps};
use similar::DiffOp;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The text of a file with plain line breaks, and which of these are CR LF in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    pub(crate) flat: String,
    /// One for each line break.
    is_crlf: Vec<bool>,
}

impl Text {
    pub(crate) fn of(raw: &str) -> Self {
        let mut text = Self { flat: String::with_capacity(raw.len()), is_crlf: Vec::new() };
        for line in raw.split_inclusive('\n') {
            let (body, is_crlf) = match line.strip_suffix("\r\n") {
                Some(body) => (body, true),
                None => (line.strip_suffix('\n').unwrap_or(line), false),
            };
            text.flat += body;
            if line.ends_with('\n') {
                text.flat.push('\n');
                text.is_crlf.push(is_crlf);
            }
        }
        text
    }

    /// As the file has it.
    pub(crate) fn raw(&self) -> String {
        let mut raw = String::with_capacity(self.flat.len() + self.is_crlf.len());
        for (line, is_crlf) in self.flat.split_inclusive('\n').zip(self.is_crlf.iter().chain([&false])) {
            match line.strip_suffix('\n') {
                Some(body) if *is_crlf => raw.extend([body, "\r\n"]),
                Some(_) | None => raw += line,
            }
        }
        raw
    }

    /// The line of a place; the first is 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        breaks(&self.flat[..at]) + 1
    }

    /// The text with each of the passages replaced; they are in order and apart.
    pub(crate) fn replaced(&self, passages: &[Range<usize>], new: &str) -> Self {
        let mut text = Self::default();
        let (mut done, mut line) = (0, 0);
        for passage in passages {
            let before = &self.flat[done..passage.start];
            text.flat += before;
            text.is_crlf.extend(&self.is_crlf[line..line + breaks(before)]);
            line += breaks(before);
            let old = &self.flat[passage.clone()];
            text.flat += new;
            text.is_crlf.extend(self.ends(line, old, new));
            line += breaks(old);
            done = passage.end;
        }
        text.flat += &self.flat[done..];
        text.is_crlf.extend(&self.is_crlf[line..]);
        text
    }

    /// How the lines of `new` end that take the place of `old`, which begins in this line, counted from 0: as the line that each replaces, or
    /// as its neighbour.
    fn ends(&self, line: usize, old: &str, new: &str) -> Vec<bool> {
        let there = &self.is_crlf[line..line + breaks(old)];
        // The line that the passage ends in, or the one before it, where the passage has no end of a line itself.
        let beside = self.is_crlf.get(line + there.len()).or_else(|| self.is_crlf[..line].last());
        let neighbour = beside.copied().unwrap_or_default();
        let count = breaks(new);
        if there.iter().all(|is_crlf| *is_crlf == there[0]) {
            return vec![there.first().copied().unwrap_or(neighbour); count];
        }
        let (old, new) = (lines(old), lines(new));
        let mut ends = vec![None; new.len()];
        for op in steps(&old, &new) {
            match op {
                DiffOp::Equal { old_index, new_index, len } => {
                    (0..len).for_each(|i| ends[new_index + i] = there.get(old_index + i).copied());
                }
                DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                    (0..new_len).for_each(|i| ends[new_index + i] = there.get(old_index + i.min(old_len - 1)).copied());
                }
                DiffOp::Insert { old_index, new_index, new_len } => {
                    let beside = there.get(old_index.saturating_sub(1)).copied();
                    ends[new_index..new_index + new_len].fill(beside);
                }
                DiffOp::Delete { .. } => {}
            }
        }
        ends.truncate(count);
        ends.into_iter().map(|end| end.unwrap_or(neighbour)).collect()
    }
}

fn breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// A text with plain line breaks.
pub(crate) fn flat(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The characters that a text writes as `\u{…}`, each with the place of its notation.
pub(crate) fn noted(text: &str) -> Vec<(Range<usize>, char)> {
    let read = |start: usize| {
        let (code, _) = text[start..].strip_prefix("\\u{")?.split_once('}')?;
        let is_hex = (1..=6).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_hexdigit());
        let c = char::from_u32(u32::from_str_radix(code, 16).ok().filter(|_| is_hex)?)?;
        Some((start..start + code.len() + 4, c))
    };
    text.match_indices("\\u{").filter_map(|(start, _)| read(start)).collect()
}

/// A part of what is looked for.
#[derive(Debug)]
enum Part<'t> {
    Plain(&'t str),
    /// A notation: as it is, or the character.
    Noted(&'t str, char),
}

/// A place where the text is, and the characters that stand there for their notation, as well as those that are written out there.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) passage: Range<usize>,
    characters: BTreeSet<char>,
    notations: BTreeSet<char>,
}

impl Found {
    /// The text is there as it was given.
    pub(crate) fn is_plain(&self) -> bool {
        self.characters.is_empty()
    }
}

/// Where a text is, from the beginning on and apart. A notation counts if `is_noted` says that readers are shown it.
pub(crate) fn find(text: &str, old: &str, is_noted: &dyn Fn(char) -> bool) -> Vec<Found> {
    let (mut parts, mut done) = (Vec::new(), 0);
    for (place, c) in noted(old).into_iter().filter(|(_, c)| is_noted(*c)) {
        parts.extend((done < place.start).then(|| Part::Plain(&old[done..place.start])));
        parts.push(Part::Noted(&old[place.clone()], c));
        done = place.end;
    }
    parts.extend((done < old.len()).then(|| Part::Plain(&old[done..])));
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(start) = parts.first().and_then(|first| next(text, from, first)) {
        match at(text, start, &parts) {
            Some(here) => {
                from = here.passage.end;
                found.push(here);
            }
            None => from = text.ceil_char_boundary(start + 1),
        }
    }
    found
}

/// The next place that can begin with a part.
fn next(text: &str, from: usize, part: &Part) -> Option<usize> {
    let rest = &text[from..];
    let at = match part {
        Part::Plain(plain) => rest.find(plain)?,
        Part::Noted(notation, c) => rest.find(notation).into_iter().chain(rest.find(*c)).min()?,
    };
    Some(from + at)
}

fn at(text: &str, start: usize, parts: &[Part]) -> Option<Found> {
    let (mut end, mut characters, mut notations) = (start, BTreeSet::new(), BTreeSet::new());
    for part in parts {
        let rest = &text[end..];
        end += match part {
            Part::Plain(plain) => rest.starts_with(plain).then_some(plain.len())?,
            Part::Noted(notation, c) if rest.starts_with(notation) => {
                notations.insert(*c);
                notation.len()
            }
            Part::Noted(_, c) => {
                characters.insert(*c);
                rest.starts_with(*c).then_some(c.len_utf8())?
            }
        };
    }
    Some(Found { passage: start..end, characters, notations })
}

/// The new text, in which a notation means what it means where the old text was found. An error is the notation that is both there.
pub(crate) fn meant(new: &str, found: &[Found], is_noted: &dyn Fn(char) -> bool) -> Result<String, String> {
    if found.iter().all(Found::is_plain) {
        return Ok(new.to_owned());
    }
    let (mut meant, mut done) = (String::with_capacity(new.len()), 0);
    for (place, c) in noted(new).into_iter().filter(|(_, c)| is_noted(*c)) {
        let is_character = found.iter().any(|found| found.characters.contains(&c));
        let is_notation = found.iter().any(|found| found.notations.contains(&c));
        meant += &new[done..place.start];
        match (is_character, is_notation) {
            (true, true) => return Err(new[place].to_owned()),
            (false, true) => meant += &new[place.clone()],
            (true | false, false) => meant.push(c),
        }
        done = place.end;
    }
    meant += &new[done..];
    Ok(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(raw: &str, old: &str, new: &str) -> String {
        let text = Text::of(raw);
        let found = find(&text.flat, &flat(old), &|c| !c.is_ascii());
        let passages: Vec<_> = found.into_iter().map(|found| found.passage).collect();
        text.replaced(&passages, &flat(new)).raw()
    }

    #[test]
    fn a_text_is_the_same_again() {
        for raw in ["", "a", "a\n", "a\r\n", "\r\n\n\r\n", "a\rb\r\r\nc\n\r", "é\r\n\r\nb"] {
            assert_eq!(Text::of(raw).raw(), raw);
        }
        assert_eq!(Text::of("a\r\nb\n").flat, "a\nb\n");
        assert_eq!(Text::of("a\r\nb\nc").line(4), 3);
    }

    #[test]
    fn lines_end_as_those_that_they_replace() {
        assert_eq!(replaced("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), "x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(replaced("a\nb\r\nc\n", "b", "x\ny"), "a\nx\r\ny\r\nc\n");
        assert_eq!(replaced("a\r\nb", "b", "x\ny"), "a\r\nx\r\ny");
        assert_eq!(replaced("ab", "b", "x\ny"), "ax\ny");
        // Three lines, each with its own end: the one that goes takes its own along.
        assert_eq!(replaced("a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nc\n"), "a\r\nc\r\nd\n");
        assert_eq!(replaced("a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nB\nB2\nc\n"), "a\r\nB\nB2\nc\r\nd\n");
        assert_eq!(replaced("a\nb\r\nc\n", "a\nb\n", "a\nnew\nb\n"), "a\nnew\nb\r\nc\n");
        assert_eq!(replaced("a\r\nb\n", "a\nb\n", "ab"), "ab");
        assert_eq!(replaced("x\r\nx\nx\r\n", "x\n", "y\nz\n"), "y\r\nz\r\ny\nz\ny\r\nz\r\n");
    }

    #[test]
    fn a_notation_is_itself_or_the_character() {
        let all = |c: char| !c.is_ascii();
        let plain = |text: &str| find(text, r"a\u{200b}b", &all).iter().map(Found::is_plain).collect::<Vec<_>>();
        assert_eq!(plain("a\u{200b}b a\\u{200b}b"), [false, true]);
        assert_eq!(plain("ab"), [true; 0]);
        // What no reader is shown so is only itself.
        assert_eq!(find("A", r"\u{41}", &all), []);
        assert_eq!(noted(r"\u{} \u{110000} \u{d800} \u{0000041} \u{ad} \u{ad").len(), 1);
        let found = find("x\u{200b}\\u{200b}", r"\u{200b}\u{200b}", &all);
        assert_eq!(meant(r"\u{200b}", &found, &all), Err(r"\u{200b}".into()));
        let found = find("x\u{200b}\\u{ad}", r"\u{200b}\u{ad}", &all);
        assert_eq!(meant(r"\u{ad}\u{200b}\u{feff}", &found, &all), Ok("\\u{ad}\u{200b}\u{feff}".into()));
        let found = find("x", "x", &all);
        assert_eq!(meant(r"\u{200b}", &found, &all), Ok(r"\u{200b}".into()));
    }

    #[test]
    fn passages_are_apart() {
        let places = |text, old| find(text, old, &|_| true).into_iter().map(|found| found.passage).collect::<Vec<_>>();
        assert_eq!(places("aaaa", "aa"), [0..2, 2..4]);
        assert_eq!(places("éé", "é"), [0..2, 2..4]);
        assert_eq!(places("aab", "ab"), vec![1..3]);
    }
}
