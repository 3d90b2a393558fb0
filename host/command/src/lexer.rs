//! The lexer: cuts a script into the tokens that brush-parser's grammar takes.
//!
//! `word.rs` reads what is within a word, `cost.rs` bounds what the tokens may cost.

use super::Unparsable;
use super::word::{Document, Scanner};
use brush_parser::{SourcePosition, SourceSpan, Token};
use std::sync::Arc;

/// Longer ones first.
const OPERATORS: [&str; 23] = [
    "&>>", "<<-", "<<<", ";;&", "&&", "||", ";;", ";&", "|&", "&>", "<<", ">>", "<&", ">&", "<>", ">|", "&", "|", ";",
    ")", "(", "<", ">",
];

pub(super) fn tokens(text: &str, depth: usize, extended_globs: bool) -> Result<Vec<Token>, Unparsable> {
    let scanner = Scanner::new(text, depth);
    let mut lexer = Lexer { text, scanner, counted: (0, 1), tokens: Vec::new(), documents: Vec::new(), in_test: false };
    while let Some(byte) = lexer.scanner.peek() {
        let rest = lexer.scanner.rest();
        match byte {
            b' ' | b'\t' => lexer.scanner.at += 1,
            b'\\' if rest.starts_with("\\\n") => lexer.scanner.at += 2,
            b'#' => lexer.scanner.at += rest.find('\n').unwrap_or(rest.len()),
            b'\n' => lexer.newline()?,
            b'(' if !lexer.in_test => lexer.parenthesis()?,
            _ => match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
                Some(operator) if !rest.starts_with("<(") && !rest.starts_with(">(") => lexer.operator(operator)?,
                Some(_) | None => lexer.word(extended_globs)?,
            },
        }
    }
    match lexer.documents.first() {
        Some((_, document)) => Err(Unparsable::Syntax(format!("here-document `{}` does not end", document.last))),
        None => Ok(lexer.tokens),
    }
}

struct Lexer<'t> {
    text: &'t str,
    scanner: Scanner<'t>,
    /// An offset and its line.
    counted: (usize, usize),
    tokens: Vec<Token>,
    /// Here-documents that begin on the next line, and where the tokens of their bodies wait.
    documents: Vec<(usize, Document<'t>)>,
    /// Within `[[`, where parentheses group.
    in_test: bool,
}

impl Lexer<'_> {
    /// Adds what was read since `start`.
    fn push(&mut self, start: usize, token: impl FnOnce(SourceSpan) -> Token) {
        let line = self.counted.1 + self.text[self.counted.0..start].matches('\n').count();
        self.counted = (start, line);
        let position = |index| Arc::new(SourcePosition { index, line, column: 1 });
        self.tokens.push(token(SourceSpan { start: position(start), end: position(self.scanner.at) }));
    }

    fn push_operator(&mut self, start: usize, operator: &str) {
        self.push(start, |span| Token::Operator(operator.to_owned(), span));
    }

    fn push_word(&mut self, start: usize, word: &str) {
        self.push(start, |span| Token::Word(word.to_owned(), span));
    }

    fn word(&mut self, extended_globs: bool) -> Result<(), Unparsable> {
        let start = self.scanner.at;
        let word = self.scanner.raw_word(extended_globs)?;
        self.in_test = (self.in_test || word == "[[") && word != "]]";
        self.push_word(start, word);
        Ok(())
    }

    fn newline(&mut self) -> Result<(), Unparsable> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        self.push_operator(start, "\n");
        for (body, document) in std::mem::take(&mut self.documents) {
            let text = self.scanner.document(&document)?;
            if let Some(Token::Word(body, _)) = self.tokens.get_mut(body) {
                *body = text;
            }
        }
        Ok(())
    }

    fn operator(&mut self, operator: &str) -> Result<(), Unparsable> {
        let start = self.scanner.at;
        self.scanner.at += operator.len();
        self.push_operator(start, operator);
        // None appears in a test. Words that only look like the beginning of one must not change what follows.
        self.in_test &= !matches!(operator, ";" | "&" | "|");
        if matches!(operator, "<<" | "<<-") {
            let start = self.scanner.at;
            let document = self.scanner.delimiter(operator == "<<-")?;
            // The grammar wants the body, and the delimiter again, before the rest of the line.
            self.push_word(start, document.raw);
            self.push_word(start, "");
            self.push_word(start, &document.last);
            self.documents.push((self.tokens.len() - 2, document));
        }
        Ok(())
    }

    /// Reads `((…))` as arithmetic. The grammar takes any two parentheses for that, so two subshells are kept apart.
    fn parenthesis(&mut self) -> Result<(), Unparsable> {
        let start = self.scanner.at;
        let Some(expression) = self.scanner.double_parentheses()? else {
            self.scanner.at += 1;
            if matches!(self.tokens.last(), Some(Token::Operator(last, _)) if last == "(") {
                self.push_operator(start, "\n");
            }
            self.push_operator(start, "(");
            return Ok(());
        };
        let parts = if matches!(self.tokens.last(), Some(Token::Word(last, _)) if last == "for") { 3 } else { 1 };
        self.push_operator(start, "(");
        self.push_operator(start, "(");
        for (index, part) in expression.splitn(parts, ';').enumerate() {
            if index > 0 {
                self.push_operator(start, ";");
            }
            self.push_word(start, part);
        }
        self.push_operator(start, ")");
        self.push_operator(start, ")");
        Ok(())
    }
}
