//! The instructions of an Agentfile: text, one instruction a line, as its specification 1.0.0 has them.

use std::collections::BTreeMap;

/// An instruction with its words.
#[derive(Debug)]
pub(super) struct Instruction {
    /// Where it begins.
    pub(super) line: usize,
    pub(super) keyword: String,
    pub(super) words: Vec<Word>,
    /// The lines up to its marker, where it has some.
    pub(super) body: Option<String>,
}

/// A word, without its quotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    /// It began with a quote: a description, if it is the last.
    pub(super) is_quoted: bool,
}

/// What is wrong, and in which line.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// Reads a whole file. Variables of `ARG` are put in from there on, by their defaults.
pub(super) fn read(text: &str) -> Result<Vec<Instruction>, Fault> {
    let (mut instructions, mut variables) = (Vec::new(), BTreeMap::new());
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((line, text)) = lines.next() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut words = words(&expanded(rest, &variables)).map_err(|message| Fault::new(line, message))?;
        let marker = words.last().filter(|word| !word.is_quoted).and_then(|word| word.text.strip_prefix("<<"));
        let body = match marker.map(str::to_owned) {
            None => None,
            Some(marker) => {
                words.pop();
                let mut body = String::new();
                loop {
                    let Some((_, line)) = lines.next() else {
                        return Err(Fault::new(line, format!("its text has no end: no line says `{marker}` alone")));
                    };
                    if line.trim() == marker {
                        break Some(expanded(&body, &variables));
                    }
                    body += line;
                    body.push('\n');
                }
            }
        };
        if let ("ARG", Some(word)) = (keyword, words.first()) {
            let (name, value) =
                word.text.split_once('=').map_or((&*word.text, None), |(name, value)| (name, Some(value)));
            value.iter().for_each(|value| _ = variables.insert(name.to_owned(), (*value).to_owned()));
        }
        instructions.push(Instruction { line, keyword: keyword.to_owned(), words, body });
    }
    Ok(instructions)
}

/// The text with `${NAME}` as its variable says; others stay.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let (mut all, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        all += before;
        match behind.split_once('}').and_then(|(name, after)| Some((variables.get(name)?, after))) {
            Some((value, after)) => {
                all += value;
                rest = after;
            }
            None => {
                all += "${";
                rest = behind;
            }
        }
    }
    all + rest
}

/// Words parted by blanks; in double quotes a blank is part of one, and `\` takes away what the next character means.
fn words(text: &str) -> Result<Vec<Word>, String> {
    let (mut words, mut word) = (Vec::new(), None::<Word>);
    let (mut chars, mut is_quoting) = (text.chars(), false);
    while let Some(next) = chars.next() {
        match next {
            '"' => {
                is_quoting = !is_quoting;
                word.get_or_insert(Word { text: String::new(), is_quoted: true });
            }
            blank if blank.is_whitespace() && !is_quoting => words.extend(word.take()),
            other => {
                let word = word.get_or_insert(Word { text: String::new(), is_quoted: false });
                let is_escape = is_quoting && other == '\\';
                word.text.push(if is_escape { chars.next().unwrap_or('\\') } else { other });
            }
        }
    }
    if is_quoting {
        return Err("a quote has no end".into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[Word]) -> Vec<(&str, bool)> {
        words.iter().map(|word| (word.text.as_str(), word.is_quoted)).collect()
    }

    #[test]
    fn instructions_have_words_descriptions_and_texts() {
        let text = "# syntax=openotters/agentfile:1\n\nFROM scratch\nBIN jq example.com/jq:1 \"Says \\\"x\\\" \" <<EOF\n  a\nb\nEOF\n\
                    ENV GREETING=\"hello world\" \"What it says\"\n";
        let read = read(text).unwrap();
        assert_eq!(
            read.iter().map(|one| (one.line, &*one.keyword)).collect::<Vec<_>>(),
            [(3, "FROM"), (4, "BIN"), (8, "ENV")]
        );
        assert_eq!(texts(&read[1].words), [("jq", false), ("example.com/jq:1", false), ("Says \"x\" ", true)]);
        assert_eq!(read[1].body.as_deref(), Some("  a\nb\n"));
        assert_eq!(texts(&read[2].words), [("GREETING=hello world", false), ("What it says", true)]);
    }

    #[test]
    fn variables_count_from_their_line_on() {
        let text = "NAME ${A}\nARG A=one\nARG B\nNAME ${A}-${B}-${\nCONTEXT X <<E\n${A}\nE\n";
        let read = read(text).unwrap();
        assert_eq!(texts(&read[0].words), [("${A}", false)]);
        assert_eq!(texts(&read[3].words), [("one-${B}-${", false)]);
        assert_eq!(read[4].body.as_deref(), Some("one\n"));
    }

    #[test]
    fn what_has_no_end_is_named_by_its_line() {
        let fault = |text: &str| read(text).unwrap_err();
        assert_eq!(fault("FROM scratch\nNAME \"x\n"), Fault::new(2, "a quote has no end"));
        assert_eq!(fault("CONTEXT X <<EOF\ntext\n").line, 1);
    }
}
