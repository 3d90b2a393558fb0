//! Cost: what brush-parser's grammar may be asked to parse.
//!
//! The grammar recurses and backtracks: nesting costs stack, and a parenthesis or `case` around a command can double
//! its time. Both are known from the tokens, before it starts.

use super::{MAX_DEPTH, Unparsable};
use brush_parser::{SourceSpan, Token};

/// Constructs that can nest. If all of these did, a debug build would need some 50 MiB of stack.
const MAX_OPENERS: usize = 2_000;
/// Reserved words that begin a construct.
const OPENERS: [&str; 9] = ["{", "[[", "if", "while", "until", "for", "case", "coproc", "!"];
/// Bytes of a text that may be flat.
const FLAT_BYTES: usize = 1024;
/// Openers within the subscript of an assignment, where the grammar backtracks too.
const MAX_SUBSCRIPT: usize = 32;

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Paren,
    Brace,
    Test,
    If,
    Loop,
    Case,
}

/// Whether nothing in a text can nest, which its bytes tell: it is parsed in microseconds, whatever it says. Most commands are so.
pub(super) fn is_flat(text: &str) -> bool {
    const NESTING: &[u8] = b"(){}[]!`";
    let words = || text.split(|letter: char| !letter.is_ascii_lowercase());
    text.len() <= FLAT_BYTES
        && !text.bytes().any(|byte| NESTING.contains(&byte))
        && !words().any(|word| OPENERS.contains(&word))
}

/// Steps that the grammar may take at worst: the tokens, doubled for every parenthesis and `case` around them.
pub(super) fn of(tokens: &[Token], depth: usize) -> Result<usize, Unparsable> {
    let mut nesting = Nesting { open: Vec::new(), fresh: true, named: false, openers: 0, doublings: 0 };
    for (index, token) in tokens.iter().enumerate() {
        let before = |distance| index.checked_sub(distance).and_then(|index| tokens.get(index));
        match token {
            Token::Operator(operator, span) => {
                descriptor(before(1), operator, span)?;
                nesting.operator(operator);
            }
            // The body of a here-document, after its delimiter.
            Token::Word(..) if before(2).is_some_and(|token| matches!(token.to_str(), "<<" | "<<-")) => {}
            Token::Word(word, _) => {
                subscript(word)?;
                nesting.word(word);
            }
        }
        if depth + nesting.open.len() > MAX_DEPTH {
            return Err(Unparsable::TooNested);
        }
    }
    // `checked_shl` is none from 64 doublings on, which are too many anyway.
    let doubled = 1_usize.checked_shl(nesting.doublings).and_then(|times| times.checked_mul(tokens.len()));
    doubled.filter(|_| nesting.openers <= MAX_OPENERS).ok_or(Unparsable::TooComplex)
}

struct Nesting {
    open: Vec<Open>,
    /// A reserved word may appear here.
    fresh: bool,
    /// The next word is the name of a function.
    named: bool,
    openers: usize,
    doublings: u32,
}

impl Nesting {
    fn push(&mut self, open: Open) {
        self.open.push(open);
        // Only those around the same command multiply; one after the other they add up, which counting tokens covers.
        let doubling = self.open.iter().filter(|open| matches!(open, Open::Paren | Open::Case)).count();
        self.doublings = self.doublings.max(u32::try_from(doubling).unwrap_or(u32::MAX));
    }

    fn close(&mut self, open: Open) {
        if self.open.last() == Some(&open) {
            self.open.pop();
        }
    }

    fn operator(&mut self, operator: &str) {
        if operator == "(" {
            self.openers += 1;
            self.push(Open::Paren);
        }
        // The one after a pattern of `case` closes nothing.
        if operator == ")" && self.open.last() != Some(&Open::Case) {
            let from = self.open.iter().rposition(|open| *open == Open::Paren);
            self.open.truncate(from.unwrap_or(self.open.len()));
        }
        self.fresh = !operator.starts_with(['<', '>']) && !operator.starts_with("&>");
    }

    fn word(&mut self, word: &str) {
        // Wherever they are: the bound on the stack must not depend on knowing that.
        self.openers += usize::from(OPENERS.contains(&word));
        let fresh = std::mem::replace(&mut self.fresh, std::mem::take(&mut self.named));
        match word {
            "{" => self.push(Open::Brace),
            "]]" => self.close(Open::Test),
            _ if !fresh => return,
            "[[" => self.push(Open::Test),
            "if" => self.push(Open::If),
            "while" | "until" => self.push(Open::Loop),
            "for" => return self.push(Open::Loop),
            "case" => return self.push(Open::Case),
            "}" => self.close(Open::Brace),
            "fi" => self.close(Open::If),
            "done" => self.close(Open::Loop),
            "esac" => self.close(Open::Case),
            "then" | "do" | "else" | "elif" | "!" | "time" | "coproc" => {}
            _ => {
                self.named = word == "function";
                return;
            }
        }
        self.fresh = true;
    }
}

/// Refuses a file descriptor that the grammar would panic on.
fn descriptor(before: Option<&Token>, operator: &str, span: &SourceSpan) -> Result<(), Unparsable> {
    match before {
        Some(Token::Word(number, place))
            if operator.starts_with(['<', '>'])
                && place.end.index == span.start.index
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && number.parse::<i32>().is_err() =>
        {
            Err(Unparsable::Syntax(format!("`{number}` is not a valid file descriptor")))
        }
        Some(Token::Word(..) | Token::Operator(..)) | None => Ok(()),
    }
}

/// Bounds `NAME[…` unless its subscript is plain: the grammar tries every word as an assignment.
fn subscript(word: &str) -> Result<(), Unparsable> {
    const OPENERS: [char; 5] = ['[', '(', '{', '"', '`'];
    let Some((name, rest)) = word.split_once('[') else { return Ok(()) };
    let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let plain =
        rest.find(']').is_some_and(|end| !rest[..end].contains(['\'', '$', '\\']) && !rest[..end].contains(OPENERS));
    if named && !plain && rest.matches(OPENERS).count() > MAX_SUBSCRIPT {
        return Err(Unparsable::TooComplex);
    }
    Ok(())
}
