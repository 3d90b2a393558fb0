//! Wrappers that are followed: the command within them is known to the last word, and nothing else of them decides.
//!
//! Those of `programs.rs` that are not here are covered only by a rule that has all of their words.

use super::super::{MAX_DEPTH, basename};
use super::{Simple, Sure, Word, proof};

/// The commands within one that wraps others; none where it does not, or is not followed.
pub(super) fn inner(words: &[Word], is_fed: bool, depth: usize) -> Vec<Simple> {
    let Some((program, rest)) = words.split_first().filter(|_| depth <= MAX_DEPTH) else { return Vec::new() };
    let inner = match basename(&program.text) {
        "timeout" | "gtimeout" => after_options(rest, &["-k", "-s"], &["--foreground", "--preserve-status", "-v"], 1),
        "nice" | "gnice" => after_options(rest, &["-n"], &[], 0),
        "nohup" | "command" | "env" | "genv" => after_options(rest, &[], &[], 0),
        "time" | "gtime" => after_options(rest, &[], &["-p"], 0),
        "sh" | "bash" | "dash" => return script(rest, is_fed, depth),
        _ => None,
    };
    // What is not followed is not refused: a rule may have all its words.
    let Some((name, _)) = inner.and_then(<[Word]>::split_first) else { return Vec::new() };
    let is_certain = name.sure == Sure::All && !name.text.contains('=') && !name.text.starts_with('-');
    if !is_certain || proof::is_special(&name.text) {
        return Vec::new();
    }
    let words = inner.unwrap_or_default();
    vec![Simple { words: words.to_vec(), is_fed, inner: self::inner(words, is_fed, depth + 1) }]
}

/// The words after the options and so many operands; none where an option is not one of these.
fn after_options<'w>(words: &'w [Word], valued: &[&str], plain: &[&str], operands: usize) -> Option<&'w [Word]> {
    let mut rest = words;
    while let Some(first) = rest.first().filter(|word| word.text.starts_with('-')) {
        let takes = match first.text.as_str() {
            option if first.sure == Sure::All && plain.contains(&option) => 1,
            option if first.sure == Sure::All && valued.contains(&option) => 2,
            _ => return None,
        };
        rest = rest.get(takes..)?;
    }
    rest.get(..operands)?.iter().all(|word| word.sure == Sure::All).then(|| &rest[operands..])
}

/// The commands of `sh -c TEXT`, where the text is known.
fn script(words: &[Word], is_fed: bool, depth: usize) -> Vec<Simple> {
    let [option, text] = words else { return Vec::new() };
    if !["-c", "-ec", "-lc"].contains(&option.text.as_str()) || text.sure != Sure::All {
        return Vec::new();
    }
    proof::read(&text.text, is_fed, depth + 1).unwrap_or_default()
}
