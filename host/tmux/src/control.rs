//! tmux's control mode: what the server says becomes notices, what we say becomes command lines.
//!
//! A pane's program can print anything, also lines that look like these; within `%output` the server escapes them, and a block ends
//! only with the very time and number that it began with.

use base::text::octal;
use std::fmt::Write;
use std::mem;

/// Bytes of one answer; the rest of a longer one is dropped.
const ANSWER_BYTES: usize = 4 << 20;
/// Bytes of one line outside of answers. The server sends a pane's output in pieces of some KiB.
const LINE_BYTES: usize = 1 << 20;

/// What the server said.
#[derive(Debug, PartialEq)]
pub(super) enum Notice {
    /// A pane's program wrote these bytes.
    Output {
        /// The number of its id: 3 of `%3`.
        pane: u32,
        bytes: Vec<u8>,
    },
    /// The answer to the next command line of ours.
    Answer(Answer),
    /// This client is attached.
    Attached,
    /// Panes or windows have come or gone.
    Changed,
    /// The server lets this client go.
    Exit,
}

/// The answer to one command.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// Seconds since 1970 by the server's clock.
    pub(super) time: u64,
    /// What was printed, or the reason of the failure, without the last line break.
    pub(super) text: Result<String, String>,
}

/// Takes bytes as they come, in pieces of any size.
#[derive(Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    block: Option<Block>,
}

struct Block {
    /// Time, number and flags, as they follow `%begin` and must follow the end.
    guard: Vec<u8>,
    text: Vec<u8>,
}

impl Parser {
    pub(super) fn push(&mut self, bytes: &[u8], notices: &mut Vec<Notice>) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.take(&rest[..end]);
            let line = mem::take(&mut self.line);
            notices.extend(self.line(&line));
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    fn take(&mut self, part: &[u8]) {
        let most = if self.block.is_some() { ANSWER_BYTES } else { LINE_BYTES };
        let room = most.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn line(&mut self, line: &[u8]) -> Option<Notice> {
        if let Some(block) = &mut self.block {
            let (keyword, guard) = split(line);
            let is_end = matches!(keyword, b"%end" | b"%error") && guard == block.guard;
            if !is_end {
                let room = ANSWER_BYTES.saturating_sub(block.text.len());
                block.text.extend(line.iter().chain(b"\n").take(room));
                return None;
            }
            let block = self.block.take()?;
            return block.answer(keyword == b"%end").map(Notice::Answer);
        }
        let (keyword, rest) = split(line);
        match keyword {
            b"%begin" => {
                self.block = Some(Block { guard: rest.to_owned(), text: Vec::new() });
                None
            }
            b"%output" => output(rest),
            b"%session-changed" => Some(Notice::Attached),
            b"%window-close" | b"%unlinked-window-close" | b"%layout-change" => Some(Notice::Changed),
            b"%exit" => Some(Notice::Exit),
            _ => None,
        }
    }
}

impl Block {
    /// None for an answer to somebody else's command, such as the one that started this client.
    fn answer(mut self, succeeded: bool) -> Option<Answer> {
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        }
        let guard = String::from_utf8_lossy(&self.guard);
        let mut fields = guard.split(' ');
        let time = fields.next()?.parse().ok()?;
        let is_ours = fields.nth(1) == Some("1");
        let text = String::from_utf8_lossy(&self.text).into_owned();
        is_ours.then_some(Answer { time, text: if succeeded { Ok(text) } else { Err(text) } })
    }
}

fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    (&line[..end], line.get(end + 1..).unwrap_or_default())
}

fn output(rest: &[u8]) -> Option<Notice> {
    let (pane, escaped) = split(rest);
    let pane = std::str::from_utf8(pane).ok()?.strip_prefix('%')?.parse().ok()?;
    Some(Notice::Output { pane, bytes: octal::unescape(escaped) })
}

/// Writes any text as one argument of a command line: nothing in it is expanded or ends the command.
pub(super) fn quoted(text: impl AsRef<[u8]>) -> String {
    let mut quoted = String::from("\"");
    for byte in text.as_ref() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' | b'_' | b'-' | b'.' | b'/' | b':' | b',' => {
                quoted.push(char::from(*byte));
            }
            byte => _ = write!(quoted, "\\{byte:03o}"),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Notice> {
        let (mut parser, mut notices) = (Parser::default(), Vec::new());
        pieces.iter().for_each(|piece| parser.push(piece, &mut notices));
        notices
    }

    fn answer(time: u64, text: &str) -> Notice {
        Notice::Answer(Answer { time, text: Ok(text.into()) })
    }

    #[test]
    fn answers_and_output_are_told_apart() {
        let said = b"%begin 7 264 1\na\n%output %1 no\n%end 7 263 1\n%end 7 264 1\n%output %12 a\\015\\012\\134\\0x%end 7 1 1\n%exit\n";
        let bytes = b"a\r\n\\\\0x%end 7 1 1".to_vec();
        let expected = [answer(7, "a\n%output %1 no\n%end 7 263 1"), Notice::Output { pane: 12, bytes }, Notice::Exit];
        assert_eq!(parse(&[said]), expected);
    }

    #[test]
    fn only_our_own_commands_are_answered() {
        let said =
            b"%begin 7 1 0\nhello\n%end 7 1 0\n%begin 8 2 1\nno such session\n%error 8 2 1\n%session-changed $0 t\n";
        let error = Answer { time: 8, text: Err("no such session".into()) };
        assert_eq!(parse(&[said]), [Notice::Answer(error), Notice::Attached]);
    }

    #[test]
    fn an_argument_is_a_string_of_tmux() {
        assert_eq!(quoted("a b;\n\"$X#{y}~\u{e4}"), r#""a b\073\012\042\044X\043\173y\175\176\303\244""#);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_their_pieces_do_not_matter(
            lines in prop::collection::vec(prop_oneof![
                prop::sample::select(vec!["%begin 1 2 1", "%end 1 2 1", "%error 1 2 1", "%begin", "%output %1 x\\01", "%output %4294967296 a", "%exit", ""]).prop_map(|line| line.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
            ], 0..30),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let whole = lines.join(&b'\n');
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
            places.sort_unstable();
            let (mut pieces, mut rest, mut done) = (Vec::new(), &whole[..], 0);
            for place in places {
                let (piece, left) = rest.split_at(place - done);
                (rest, done) = (left, place);
                pieces.push(piece);
            }
            pieces.push(rest);
            prop_assert_eq!(parse(&pieces), parse(&[&whole]));
        }
    }
}
