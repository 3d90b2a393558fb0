//! A regular expression as `grep -E` knows them, of which every line has a match that has one of the expression itself, and some lines more.
//!
//! Expressions of POSIX have no classes of Unicode, no `\d` and no word boundaries. What chooses files first may choose too many.

use crate::search::Pattern;
use base::envelope::Failure;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// What repeats count at most (`RE_DUP_MAX` of the smallest system).
const MOST_REPEATS: u32 = 255;
/// Any text.
const ANYTHING: &[u8] = b".*";
/// A character that is not ASCII, in the C locale, where each byte counts.
const WIDE: &[u8] = b"[^ -~]{1,4}";

pub(super) fn expression(pattern: &Pattern) -> Result<OsString, Failure> {
    let text = if pattern.literal { regex_syntax::escape(&pattern.text) } else { pattern.text.clone() };
    let parsed =
        ParserBuilder::new().utf8(false).multi_line(true).case_insensitive(pattern.ignore_case).build().parse(&text);
    let parsed =
        parsed.map_err(|error| Failure::invalid(format!("`{}` is not a valid pattern: {error}", pattern.text)))?;
    let mut made = Vec::new();
    add(&parsed, &mut made);
    Ok(OsString::from_vec(if made.is_empty() { ANYTHING.to_vec() } else { made }))
}

fn add(part: &Hir, made: &mut Vec<u8>) {
    match part.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => literal.0.iter().for_each(|byte| made.extend(escaped(*byte))),
        HirKind::Class(class) => add_class(class, made),
        HirKind::Look(Look::Start | Look::StartLF | Look::StartCRLF) => made.push(b'^'),
        // A line break of two characters ends with what is a character here.
        HirKind::Look(Look::End | Look::EndLF) => made.push(b'$'),
        HirKind::Look(_) => {}
        HirKind::Repetition(repetition) => add_repetition(repetition, made),
        HirKind::Capture(capture) => group([&*capture.sub].into_iter(), made),
        HirKind::Concat(parts) => parts.iter().for_each(|part| add(part, made)),
        HirKind::Alternation(parts) => group(parts.iter(), made),
    }
}

fn group<'h>(parts: impl Iterator<Item = &'h Hir>, made: &mut Vec<u8>) {
    let parts = parts.map(|part| {
        let mut made = Vec::new();
        add(part, &mut made);
        if made.is_empty() { ANYTHING.to_vec() } else { made }
    });
    let parts: Vec<Vec<u8>> = parts.collect();
    made.push(b'(');
    made.extend(parts.join(&b'|'));
    made.push(b')');
}

fn add_repetition(repetition: &Repetition, made: &mut Vec<u8>) {
    // None is as good as any number of nothing, and of a place in the line.
    if repetition.sub.properties().maximum_len() == Some(0) {
        return;
    }
    group([&*repetition.sub].into_iter(), made);
    let max = repetition.max.filter(|max| *max <= MOST_REPEATS);
    let count = match (repetition.min.min(MOST_REPEATS), max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    };
    made.extend(count.into_bytes());
}

fn add_class(class: &Class, made: &mut Vec<u8>) {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let ascii = |test: fn(&u8) -> bool| {
        let ranges = ranges.clone();
        (0..=127_u8)
            .filter(test)
            .filter(move |byte| ranges.iter().any(|(from, to)| (*from..=*to).contains(&u32::from(*byte))))
    };
    // Letters and digits stand for themselves in a bracket; all others as they do outside of one.
    let plain: Vec<u8> = ascii(u8::is_ascii_alphanumeric).collect();
    let mut parts: Vec<Vec<u8>> = ascii(|byte| !byte.is_ascii_alphanumeric()).map(escaped).collect();
    if !plain.is_empty() {
        parts.push([b"[", plain.as_slice(), b"]"].concat());
    }
    if ranges.iter().any(|(_, to)| *to > 127) {
        parts.push(WIDE.to_vec());
    }
    made.push(b'(');
    made.extend(parts.join(&b'|'));
    made.push(b')');
}

fn escaped(byte: u8) -> Vec<u8> {
    match byte {
        // No argument holds the first, and no line the second.
        0 | b'\n' => b".".to_vec(),
        b'^' => br"\^".to_vec(),
        b'.' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'*' | b'+' | b'?' | b'|' | b'$' | b'\\' => {
            vec![b'[', byte, b']']
        }
        byte => vec![byte],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(text: &str, literal: bool) -> String {
        let pattern = Pattern { text: text.into(), literal, ignore_case: false };
        expression(&pattern).expect("a pattern").to_string_lossy().into_owned()
    }

    #[test]
    fn an_expression_is_as_wide_as_it_has_to_be() {
        for (text, expected) in [
            ("abc", "abc"),
            (r"fn main\(", "fn main[(]"),
            ("^a|b$", "(^a|b$)"),
            (r"(?-u:\d)+x", "(([0123456789]))+x"),
            (r"\bword\b", "word"),
            ("a{2,300}?", "(a){2,}"),
            ("(?-u:[a-c_])", "(_|[abc])"),
            (r"\b", ".*"),
            ("(a|)", "((a|.*))"),
        ] {
            assert_eq!(simple(text, false), expected, "{text}");
        }
        assert_eq!(simple("a.b^", true), r"a[.]b\^");
        assert!(simple(r"\d", false).contains("[^ -~]{1,4}"));
    }
}
