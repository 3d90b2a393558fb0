//! Lines that a command rewrites to show its progress: of each its last state.
//!
//! A carriage return begins a line anew, unless the line ends there. Text that is not of a command is left to others: it may have lines of
//! another machine.

use memchr::{memchr, memchr2, memrchr};

/// Bytes of a line that wait for what becomes of it. More than that is no progress, and is shown as it came.
const LINE_BYTES: usize = 64 << 10;

/// Output without the earlier states of its lines, however it is cut into chunks.
#[derive(Default)]
pub(super) struct LastStates {
    /// What the line shows so far.
    line: Vec<u8>,
    /// Its beginning did not wait.
    is_long: bool,
    /// A carriage return behind it, of which it is not known yet whether it rewrites the line or ends it.
    has_returned: bool,
}

impl LastStates {
    /// Takes a chunk and returns what is certain so far.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        if !self.has_returned && memchr(b'\r', chunk).is_none() {
            return self.pass(chunk);
        }
        let (mut certain, mut rest) = (Vec::with_capacity(chunk.len()), chunk);
        while let Some(next) = rest.first() {
            match (self.has_returned, next) {
                (true, b'\r') => rest = &rest[1..],
                (true, b'\n') => {
                    self.line.extend_from_slice(b"\r\n");
                    self.end_line(&mut certain);
                    rest = &rest[1..];
                }
                (true, _) => {
                    if self.is_long {
                        certain.append(&mut self.line);
                        certain.push(b'\r');
                    }
                    self.line.clear();
                    self.has_returned = false;
                }
                (false, _) => rest = self.go_on(rest, &mut certain),
            }
        }
        certain
    }

    /// Takes a chunk in which nothing returns: all whole lines of it are certain.
    fn pass(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut certain = Vec::with_capacity(self.line.len() + chunk.len());
        let whole = memrchr(b'\n', chunk).map_or(0, |end| end + 1);
        if whole > 0 {
            certain.append(&mut self.line);
            certain.extend_from_slice(&chunk[..whole]);
            self.is_long = false;
        }
        self.line.extend_from_slice(&chunk[whole..]);
        if self.line.len() > LINE_BYTES {
            certain.append(&mut self.line);
            self.is_long = true;
        }
        certain
    }

    /// Takes what comes up to the end of the line or a return; what is left of the chunk begins behind that.
    fn go_on<'c>(&mut self, chunk: &'c [u8], certain: &mut Vec<u8>) -> &'c [u8] {
        let end = memchr2(b'\r', b'\n', chunk);
        let (text, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
        self.line.extend_from_slice(text);
        if self.line.len() > LINE_BYTES {
            certain.append(&mut self.line);
            self.is_long = true;
        }
        match rest.split_first() {
            Some((b'\n', rest)) => {
                self.line.push(b'\n');
                self.end_line(certain);
                rest
            }
            Some((_, rest)) => {
                self.has_returned = true;
                rest
            }
            None => rest,
        }
    }

    fn end_line(&mut self, certain: &mut Vec<u8>) {
        certain.append(&mut self.line);
        (self.is_long, self.has_returned) = (false, false);
    }

    /// Ends the output and returns its last line. A return at its end has rewritten nothing.
    pub(super) fn finish(self) -> Vec<u8> {
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(printed: &[u8], piece: usize) -> Vec<u8> {
        let mut states = LastStates::default();
        let mut shown: Vec<u8> = printed.chunks(piece).flat_map(|chunk| states.push(chunk)).collect();
        shown.extend(states.finish());
        shown
    }

    #[test]
    fn a_line_that_was_rewritten_shows_its_last_state() {
        for (printed, expected) in [
            ("plain\nlines\n", "plain\nlines\n"),
            ("windows\r\nlines\r\n", "windows\r\nlines\r\n"),
            ("doubled\r\r\nreturns", "doubled\r\nreturns"),
            ("1%\r2%\r3%\n", "3%\n"),
            ("\r1%\r2%", "2%"),
            ("1%\r2%\r", "2%"),
            ("1%\r2%\r\nafter\n", "2%\r\nafter\n"),
            ("before\n1%\r2%\rdone\nafter\n", "before\ndone\nafter\n"),
            ("100%\r\u{1b}[Kdone\n", "\u{1b}[Kdone\n"),
            ("\r\r\r", ""),
            ("", ""),
        ] {
            for piece in 1..=printed.len().max(1) {
                assert_eq!(shown(printed.as_bytes(), piece), expected.as_bytes(), "{printed:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_to_wait_is_shown_as_it_came() {
        let long = "x".repeat(LINE_BYTES + 1);
        let printed = format!("{long}\rshort\n1%\r2%\n");
        assert_eq!(shown(printed.as_bytes(), 4096), format!("{long}\rshort\n2%\n").as_bytes());
        let mut states = LastStates::default();
        let held = |states: &LastStates| states.line.len();
        for _ in 0..1000 {
            states.push(&[b'x'; 4096]);
            assert!(held(&states) <= LINE_BYTES, "{} bytes wait", held(&states));
        }
    }

    proptest! {
        #[test]
        fn it_is_the_same_however_it_is_cut(printed in "[ab\r\n]{0,40}", piece in 1_usize..8) {
            let whole = shown(printed.as_bytes(), printed.len().max(1));
            prop_assert_eq!(&whole, &shown(printed.as_bytes(), piece));
            // Line by line, said in another way.
            let line = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
            let expected: Vec<String> = printed.split('\n').map(line).collect();
            let lines = String::from_utf8(whole).expect("text").replace("\r\n", "\n");
            prop_assert_eq!(lines, expected.join("\n"));
        }
    }
}
