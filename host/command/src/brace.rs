//! Braces: `{rm,-rf,/}` is three words to bash and zsh.
//!
//! Only lists: no command is made of a sequence (`{1..9}`). `word.rs` knows a word's quotes and expansions.

use super::Unparsable;
use super::word::Scanner;

/// Words that one word may become.
const MOST_WORDS: usize = 4096;
/// Bytes of all of them.
const MOST_BYTES: usize = 1 << 20;

/// A part of a word.
enum Part<'t> {
    Text(&'t str),
    /// Any of these.
    Choice(Vec<Vec<Part<'t>>>),
}

/// A `{` that may begin a list: the alternatives before the last comma, and the present one.
struct Open<'t> {
    before: Vec<Vec<Part<'t>>>,
    present: Vec<Part<'t>>,
}

/// Returns the words that a shell with braces makes of a word, each with its quotes.
pub(super) fn expand(word: &str, depth: usize) -> Result<Vec<String>, Unparsable> {
    if !(word.contains('{') && word.contains(',')) {
        return Ok(vec![word.to_owned()]);
    }
    let mut words = vec![String::new()];
    append(&mut words, &parts(word, depth)?)?;
    // To the shell an empty word without quotes is not a word.
    words.retain(|word| !word.is_empty());
    Ok(words)
}

/// Cuts a word at its braces, in one pass: an alternative can hold lists of its own.
fn parts(word: &str, depth: usize) -> Result<Vec<Part<'_>>, Unparsable> {
    let mut scanner = Scanner::new(word, depth);
    let mut open = vec![Open { before: Vec::new(), present: Vec::new() }];
    while let Some(byte) = scanner.peek() {
        let start = scanner.at;
        scanner.element()?;
        let text = &word[start..scanner.at];
        match byte {
            b'{' if depth + open.len() > super::MAX_DEPTH => return Err(Unparsable::TooNested),
            b'{' => open.push(Open { before: Vec::new(), present: Vec::new() }),
            b',' if open.len() > 1 => {
                let innermost = open.last_mut().expect("a list is open");
                innermost.before.push(std::mem::take(&mut innermost.present));
            }
            b'}' if open.len() > 1 => {
                let list = open.pop().expect("a list is open");
                let outer = open.last_mut().expect("the word itself is open");
                close(list, outer);
            }
            _ => open.last_mut().expect("the word itself is open").present.push(Part::Text(text)),
        }
    }
    while let Some(unclosed) = open.pop() {
        let Some(outer) = open.last_mut() else { return Ok(unclosed.present) };
        outer.present.push(Part::Text("{"));
        for alternative in unclosed.before {
            outer.present.extend(alternative);
            outer.present.push(Part::Text(","));
        }
        outer.present.extend(unclosed.present);
    }
    Ok(Vec::new())
}

/// Braces without a comma are not a list: they are text.
fn close<'t>(list: Open<'t>, outer: &mut Open<'t>) {
    let Open { mut before, present } = list;
    if before.is_empty() {
        outer.present.push(Part::Text("{"));
        outer.present.extend(present);
        outer.present.push(Part::Text("}"));
    } else {
        before.push(present);
        outer.present.push(Part::Choice(before));
    }
}

/// Lets each word go on with the parts, in every way.
fn append(words: &mut Vec<String>, parts: &[Part<'_>]) -> Result<(), Unparsable> {
    for part in parts {
        match part {
            Part::Text(text) => words.iter_mut().for_each(|word| word.push_str(text)),
            Part::Choice(alternatives) => {
                let mut all = Vec::new();
                for alternative in alternatives {
                    let mut ends = vec![String::new()];
                    append(&mut ends, alternative)?;
                    all.extend(ends);
                    bounded(&all)?;
                }
                // Counted before they are made: a long word with many alternatives would be each of them.
                let bytes = |words: &[String]| words.iter().map(String::len).sum::<usize>();
                let (count, ends) = (words.len().saturating_mul(all.len()), bytes(&all).saturating_mul(words.len()));
                if count > MOST_WORDS || bytes(words).saturating_mul(all.len()).saturating_add(ends) > MOST_BYTES {
                    return Err(Unparsable::TooComplex);
                }
                *words = words.iter().flat_map(|word| all.iter().map(move |end| format!("{word}{end}"))).collect();
            }
        }
        bounded(words)?;
    }
    Ok(())
}

fn bounded(words: &[String]) -> Result<(), Unparsable> {
    let bytes: usize = words.iter().map(String::len).sum();
    if words.len() > MOST_WORDS || bytes > MOST_BYTES { Err(Unparsable::TooComplex) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(word: &str) -> Vec<String> {
        expand(word, 0).unwrap_or_else(|reason| panic!("{word}: {reason}"))
    }

    /// Each as bash has it.
    #[test]
    fn lists_become_words() {
        for (word, expected) in [
            ("{rm,-rf,/}", vec!["rm", "-rf", "/"]),
            ("a{b,c}d{e,f}", vec!["abde", "abdf", "acde", "acdf"]),
            ("{a,b{c,d}}", vec!["a", "bc", "bd"]),
            ("{,x}", vec!["x"]),
            ("{{a,b}}", vec!["{a}", "{b}"]),
            ("{x,{a,b}", vec!["{x,a", "{x,b"]),
            ("a}{b,c}", vec!["a}b", "a}c"]),
            ("{'a,b',c}", vec!["'a,b'", "c"]),
            ("{\"$(x y)\",c}", vec!["\"$(x y)\"", "c"]),
            ("{$(echo ,),c}", vec!["$(echo ,)", "c"]),
        ] {
            assert_eq!(words(word), expected, "{word}");
        }
    }

    #[test]
    fn other_braces_are_text() {
        for word in [
            "{}",
            "{a}",
            "a,b",
            "'{a,b}'",
            "\"{a,b}\"",
            "\\{a,b}",
            "${a,b}",
            "{a\\,b}",
            "{a,b",
            "a,b}",
            "{1..3}",
            "$({a,b})",
        ] {
            assert_eq!(words(word), [word], "{word}");
        }
    }

    #[test]
    fn what_would_become_too_much_is_refused() {
        for word in
            ["{a,b}".repeat(13), "{a,b}".repeat(50_000), "{a,".repeat(100), format!("{{{}}}", "x,".repeat(5000))]
        {
            assert!(matches!(expand(&word, 0), Err(Unparsable::TooComplex | Unparsable::TooNested)), "{word:.40}");
        }
        let long = format!("{{{},b}}{{1,2}}", "a".repeat(1 << 20));
        assert_eq!(expand(&long, 0), Err(Unparsable::TooComplex));
        let many = format!("{}{{{}}}", "a".repeat(200 << 10), "b,".repeat(4000));
        assert_eq!(expand(&many, 0), Err(Unparsable::TooComplex));
        assert_eq!(words(&"{a,b}".repeat(12)).len(), 4096);
    }
}
