//! Words: where they end, what quoting leaves of them, and the scripts their expansions run.
//!
//! brush-parser has a tokenizer and a parser for words too. On hostile text the one loops without end, the other takes
//! exponential time, and neither finds its way through here-documents and `case` within substitutions. `reader.rs`
//! decides which words matter.

use super::{MAX_DEPTH, Unparsable};

/// A word without its quotes, and the scripts that run while the shell expands it.
#[derive(Default)]
pub(super) struct Expansion {
    /// The text; `$NAME` stays, a substitution becomes `$()`, any other expansion `$_`.
    pub(super) shown: String,
    /// The texts of command substitutions, outermost only.
    pub(super) runs: Vec<String>,
}

/// Reads a word of a command.
pub(super) fn word(text: &str, depth: usize) -> Result<Expansion, Unparsable> {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte)) {
        return Ok(Expansion { shown: text.to_owned(), runs: Vec::new() });
    }
    let mut scanner = Scanner::new(text, depth);
    scanner.bare(End::Text, false)?;
    Ok(scanner.found)
}

/// Reads text that is expanded but not split: the body of a here-document, an arithmetic expression.
pub(super) fn body(text: &str, depth: usize) -> Result<Expansion, Unparsable> {
    let mut scanner = Scanner::new(text, depth);
    scanner.quoted(None)?;
    Ok(scanner.found)
}

/// Where unquoted text ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Text,
    /// At the `}` of a parameter.
    Brace,
    /// At a blank or an operator; with `extended_globs`, `@(…)` and the like belong to the word.
    Word {
        extended_globs: bool,
    },
}

pub(super) struct Scanner<'t> {
    text: &'t str,
    pub(super) at: usize,
    depth: usize,
    /// What is left of the work allowed: `$((` is read twice when it is not arithmetic, and that nests.
    steps: usize,
    found: Expansion,
}

/// A here-document that begins on the next line.
pub(super) struct Document<'t> {
    /// Its delimiter as it is written. Quotes in it keep its body from being expanded.
    pub(super) raw: &'t str,
    /// The line that ends it.
    pub(super) last: String,
    /// Tabs before a line are dropped.
    tabs: bool,
}

/// A state of the scanner to return to.
struct Mark {
    at: usize,
    shown: usize,
    runs: usize,
}

type Done = Result<(), Unparsable>;

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str, depth: usize) -> Self {
        Self { text, at: 0, depth, steps: 16 * text.len() + 64, found: Expansion::default() }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads past one unquoted character, or one quoted or expanded part.
    pub(super) fn element(&mut self) -> Done {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                self.keep();
                Ok(())
            }
            Some(b'\'') => self.single(),
            Some(b'"') => self.double(),
            Some(b'<' | b'>') if self.text[self.at + 1..].starts_with('(') => self.deeper(|this| this.run(2)),
            _ => self.step(false),
        }
    }

    /// Reads past one word of a command, and returns it as it is written.
    pub(super) fn raw_word(&mut self, extended_globs: bool) -> Result<&'t str, Unparsable> {
        let start = self.at;
        self.found = Expansion::default();
        self.bare(End::Word { extended_globs }, false)?;
        Ok(&self.text[start..self.at])
    }

    /// Copies one character.
    fn keep(&mut self) {
        if let Some(character) = self.rest().chars().next() {
            self.found.shown.push(character);
            self.at += character.len_utf8();
        }
    }

    fn mark(&self) -> Mark {
        Mark { at: self.at, shown: self.found.shown.len(), runs: self.found.runs.len() }
    }

    /// Shows `text` instead of what was read since `mark`.
    fn show(&mut self, mark: &Mark, text: &str) {
        self.found.shown.truncate(mark.shown);
        self.found.shown.push_str(text);
    }

    /// Reads unquoted text; `within_quotes` when a `${` is between double quotes.
    fn bare(&mut self, end: End, within_quotes: bool) -> Done {
        while let Some(byte) = self.peek() {
            match byte {
                b'}' if end == End::Brace => {
                    self.at += 1;
                    return Ok(());
                }
                b'(' if end == (End::Word { extended_globs: true })
                    && self.found.shown.ends_with(['?', '*', '+', '@', '!']) =>
                {
                    self.at += 1;
                    self.deeper(Self::command)?;
                }
                b'<' | b'>' if !within_quotes && self.text[self.at + 1..].starts_with('(') => {
                    let mark = self.mark();
                    self.deeper(|this| this.run(2))?;
                    self.show(&mark, "<()");
                }
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
                    if matches!(end, End::Word { .. }) =>
                {
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    if self.peek() == Some(b'\n') { self.at += 1 } else { self.keep() }
                }
                b'\'' if !within_quotes => self.single()?,
                b'"' => self.double()?,
                _ => self.step(within_quotes)?,
            }
        }
        if end == End::Brace { Err(missing(b'}')) } else { Ok(()) }
    }

    /// Reads what is between double quotes, or all the rest when there is no `end`.
    fn quoted(&mut self, end: Option<u8>) -> Done {
        while let Some(byte) = self.peek() {
            if Some(byte) == end {
                self.at += 1;
                return Ok(());
            }
            if byte == b'\\' {
                let next = self.text.as_bytes().get(self.at + 1).copied();
                match next {
                    Some(b'\n') => self.at += 2,
                    Some(b'$' | b'`' | b'\\') => self.escaped(),
                    Some(quote) if Some(quote) == end => self.escaped(),
                    Some(_) | None => self.keep(),
                }
            } else {
                self.step(true)?;
            }
        }
        end.map_or(Ok(()), |end| Err(missing(end)))
    }

    fn escaped(&mut self) {
        self.at += 1;
        self.keep();
    }

    fn single(&mut self) -> Done {
        let inner = &self.rest()[1..];
        let end = inner.find('\'').ok_or_else(|| missing(b'\''))?;
        self.found.shown.push_str(&inner[..end]);
        self.at += end + 2;
        Ok(())
    }

    fn double(&mut self) -> Done {
        self.at += 1;
        self.quoted(Some(b'"'))
    }

    /// Reads one expansion, or one character that is none.
    fn step(&mut self, quoted: bool) -> Done {
        self.steps = self.steps.checked_sub(1).ok_or(Unparsable::TooComplex)?;
        let next = self.text.as_bytes().get(self.at + 1).copied();
        match (self.peek(), next) {
            (Some(b'`'), _) => self.backquote(quoted)?,
            (Some(b'$'), Some(b'(')) => self.deeper(Self::substitution)?,
            (Some(b'$'), Some(b'{')) => self.deeper(|this| this.parameter(quoted))?,
            (Some(b'$'), Some(b'[')) => self.deeper(Self::old_arithmetic)?,
            (Some(b'$'), Some(b'\'')) if !quoted => self.ansi_c()?,
            // A translated string: what follows is read as the double quotes it is.
            (Some(b'$'), Some(b'"')) if !quoted => self.at += 1,
            (Some(b'$'), Some(b'$')) => {
                self.keep();
                self.keep();
            }
            _ => self.keep(),
        }
        Ok(())
    }

    fn old_arithmetic(&mut self) -> Done {
        let mark = self.mark();
        self.at += 2;
        if !self.arithmetic(b'[', b']')? {
            return Err(missing(b']'));
        }
        self.show(&mark, "$_");
        Ok(())
    }

    /// Reads past `((…))`, and returns what is in it; reads nothing where the parentheses are two subshells.
    pub(super) fn double_parentheses(&mut self) -> Result<Option<&'t str>, Unparsable> {
        if !self.rest().starts_with("((") {
            return Ok(None);
        }
        let mark = self.mark();
        self.at += 2;
        match self.arithmetic(b'(', b')') {
            Ok(true) if self.peek() == Some(b')') => {
                self.at += 1;
                Ok(Some(&self.text[mark.at + 2..self.at - 2]))
            }
            Ok(_) | Err(Unparsable::Syntax(_)) => {
                self.at = mark.at;
                self.found.runs.truncate(mark.runs);
                Ok(None)
            }
            Err(refused) => Err(refused),
        }
    }

    fn substitution(&mut self) -> Done {
        let mark = self.mark();
        self.at += 1;
        if self.double_parentheses()?.is_some() {
            self.show(&mark, "$_");
            return Ok(());
        }
        self.run(1)?;
        self.show(&mark, "$()");
        Ok(())
    }

    /// Reads past `skip` bytes and a script that ends in `)`. What it expands itself is found when it is read.
    fn run(&mut self, skip: usize) -> Done {
        self.at += skip;
        let mark = self.mark();
        self.command()?;
        self.found.runs.truncate(mark.runs);
        self.found.runs.push(self.text[mark.at..self.at - 1].to_owned());
        Ok(())
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Done) -> Done {
        if self.depth > MAX_DEPTH {
            return Err(Unparsable::TooNested);
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// Reads past the `close` that ends an expression; false when there is none.
    fn arithmetic(&mut self, open: u8, close: u8) -> Result<bool, Unparsable> {
        let mut nested = 0;
        while let Some(byte) = self.peek() {
            match byte {
                _ if byte == close => {
                    self.at += 1;
                    if nested == 0 {
                        return Ok(true);
                    }
                    nested -= 1;
                }
                b'\'' => self.single()?,
                b'"' => self.double()?,
                b'\\' => self.escaped(),
                _ => {
                    nested += usize::from(byte == open);
                    self.step(true)?;
                }
            }
        }
        Ok(false)
    }

    /// Reads past the `)` that ends a command substitution.
    fn command(&mut self) -> Done {
        let start = self.at;
        let (mut open, mut fresh, mut documents) = (0_usize, true, Vec::new());
        // How many parentheses were open at each `case`: one that closes there ends a pattern.
        let mut cases: Vec<usize> = Vec::new();
        while let Some(byte) = self.peek() {
            let starts_word = std::mem::replace(&mut fresh, b" \t\n;&|()".contains(&byte));
            match byte {
                b'(' if self.double_parentheses()?.is_some() => continue,
                b'(' => open += 1,
                b')' if cases.last() == Some(&open) => {}
                b')' if open == 0 => {
                    self.at += 1;
                    return Ok(());
                }
                b')' => open -= 1,
                b'c' if starts_word && self.reserved("case", start) => cases.push(open),
                b'e' if starts_word && self.reserved("esac", start) => drop(cases.pop()),
                _ => {}
            }
            match byte {
                b'\\' => self.escaped(),
                b'\'' => self.single()?,
                b'"' => self.double()?,
                b'#' if starts_word => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                b'<' if self.rest().starts_with("<<<") => self.at += 3,
                b'<' if self.rest().starts_with("<<") => {
                    let tabs = self.rest().starts_with("<<-");
                    self.at += if tabs { 3 } else { 2 };
                    documents.push(self.delimiter(tabs)?);
                }
                b'\n' => {
                    self.at += 1;
                    documents.drain(..).try_for_each(|document| self.document(&document).map(drop))?;
                }
                _ => self.step(false)?,
            }
        }
        Err(missing(b')'))
    }

    /// Whether a reserved word is here, as the first word of a command in the script that began at `start`.
    fn reserved(&self, word: &str, start: usize) -> bool {
        const BEFORE: [&str; 9] = [";", "&", "|", "(", "\n", "do", "then", "else", "{"];
        let before = self.text[start..self.at].trim_end_matches([' ', '\t']);
        let after = self.rest().strip_prefix(word);
        after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '&', '|', ')']))
            && (before.is_empty() || BEFORE.iter().any(|end| before.ends_with(end)))
    }

    /// Reads the word after `<<` or, with `tabs`, after `<<-`.
    pub(super) fn delimiter(&mut self, tabs: bool) -> Result<Document<'t>, Unparsable> {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t']).len();
        let mark = self.mark();
        self.bare(End::Word { extended_globs: false }, false)?;
        self.show(&mark, "");
        let raw = &self.text[mark.at..self.at];
        if raw.is_empty() {
            return Err(Unparsable::Syntax("`<<` has no delimiter".to_owned()));
        }
        Ok(Document { raw, last: raw.replace(['\'', '"', '\\'], ""), tabs })
    }

    /// Reads past a here-document, and returns its body.
    pub(super) fn document(&mut self, document: &Document) -> Result<String, Unparsable> {
        let joins = document.raw == document.last;
        let (mut body, mut line) = (String::new(), String::new());
        while !self.rest().is_empty() {
            let part = self.rest().split_inclusive('\n').next().unwrap_or_default();
            self.at += part.len();
            line.push_str(if document.tabs && line.is_empty() { part.trim_start_matches('\t') } else { part });
            let text = line.strip_suffix('\n').unwrap_or(&line);
            if text == document.last {
                return Ok(body);
            }
            let slashes = text.len() - text.trim_end_matches('\\').len();
            if joins && slashes % 2 == 1 {
                line.truncate(text.len() - 1);
            } else {
                body.push_str(&std::mem::take(&mut line));
            }
        }
        Err(Unparsable::Syntax(format!("here-document `{}` does not end", document.last)))
    }

    fn parameter(&mut self, quoted: bool) -> Done {
        let mark = self.mark();
        self.at += 2;
        self.bare(End::Brace, quoted)?;
        let name = &self.text[mark.at + 2..self.at - 1];
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.show(&mark, if plain { "$" } else { "$_" });
        self.found.shown.push_str(if plain { name } else { "" });
        Ok(())
    }

    fn backquote(&mut self, quoted: bool) -> Done {
        let mut script = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '`' => {
                    self.at += index + 1;
                    self.found.runs.push(script);
                    self.found.shown.push_str("$()");
                    return Ok(());
                }
                '\\' => match characters.next() {
                    Some((_, next)) if matches!(next, '$' | '`' | '\\') || quoted && next == '"' => script.push(next),
                    Some((_, next)) => script.extend(['\\', next]),
                    None => break,
                },
                _ => script.push(character),
            }
        }
        Err(missing(b'`'))
    }

    /// Reads `$'…'` and decodes its escapes.
    fn ansi_c(&mut self) -> Done {
        self.at += 2;
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.escape();
                }
                _ => self.keep(),
            }
        }
        Err(missing(b'\''))
    }

    fn escape(&mut self) {
        let Some(kind) = self.peek() else { return };
        let (skip, radix, most) = match kind {
            b'x' => (1, 16, 2),
            b'u' => (1, 16, 4),
            b'U' => (1, 16, 8),
            b'0'..=b'7' => (0, 8, 3),
            _ => (0, 0, 0),
        };
        if most > 0 {
            let rest = &self.rest()[skip..];
            let digits = rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
            let code = u32::from_str_radix(&rest[..digits], radix).unwrap_or_default();
            self.found.shown.extend(char::from_u32(code));
            self.at += skip + digits;
        } else if let Some((_, meant)) =
            b"abefnrtvE".iter().zip("\x07\x08\x1b\x0c\n\r\t\x0b\x1b".chars()).find(|e| *e.0 == kind)
        {
            self.found.shown.push(meant);
            self.at += 1;
        } else {
            self.keep();
        }
    }
}

fn missing(end: u8) -> Unparsable {
    Unparsable::Syntax(format!("`{}` is missing", char::from(end)))
}
