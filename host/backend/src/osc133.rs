//! The marks around a command's output in a stream that others write to as well: a pane, or a shell with start-up files.
//!
//! They are those of OSC 133, which terminals swallow, and carry a random nonce: what a log or a remote prints cannot end a command.

/// Finds what a command printed in a stream: the bytes between the marks, and the status.
#[derive(Clone)]
pub struct Scanner {
    begin: Vec<u8>,
    end: Vec<u8>,
    held: Vec<u8>,
    process: Option<u32>,
    goes_on: bool,
    state: State,
    breaks: Breaks,
}

/// What became of line breaks on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Breaks {
    /// Nothing.
    Kept,
    /// A terminal made `\r\n` of `\n`.
    Doubled,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// The command has not begun.
    Before,
    Running,
    Ended(i32),
}

/// What comes before the status in the second mark.
const END: &[u8] = b"\x1b]133;D;";
/// Bytes of a process's number in the first mark, with what surrounds it.
const PROCESS_BYTES: usize = 12;
/// Digits of a status.
const STATUS_DIGITS: usize = 3;

impl Scanner {
    pub fn new(nonce: &str, breaks: Breaks) -> Self {
        let (begin, end) = (format!("\x1b]133;C;{nonce}").into_bytes(), format!(";{nonce}\x07").into_bytes());
        Self { begin, end, held: Vec::new(), process: None, goes_on: false, state: State::Before, breaks }
    }

    /// The process that printed the first mark, if the mark names it.
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Something came after the mark of the end, together with it.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Takes a piece of the pane's output and returns what is certain to be the command's.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        if self.state == State::Before && self.begins() {
            self.state = State::Running;
        }
        match self.state {
            State::Running => self.running(),
            _ => Vec::new(),
        }
    }

    /// Drops what comes before the first mark, and the mark; false when that has not come whole.
    fn begins(&mut self) -> bool {
        let Some(place) = find(&self.held, &self.begin) else {
            let kept = self.held.len().min(self.begin.len() - 1);
            self.held.drain(..self.held.len() - kept);
            return false;
        };
        self.held.drain(..place);
        let rest = &self.held[self.begin.len()..];
        let end = rest.iter().take(PROCESS_BYTES).position(|byte| *byte == b'\x07');
        if end.is_none() && rest.len() < PROCESS_BYTES {
            return false;
        }
        let process = end.and_then(|end| std::str::from_utf8(&rest[..end]).ok()?.strip_prefix(';')?.parse().ok());
        let is_mark = end == Some(0) || process.is_some();
        self.held.drain(..self.begin.len() + if is_mark { end.map_or(0, |end| end + 1) } else { 0 });
        self.process = process;
        is_mark
    }

    fn running(&mut self) -> Vec<u8> {
        let mut certain = 0;
        while let Some(place) = find(&self.held[certain..], b"\x1b").map(|place| certain + place) {
            match self.end_at(place) {
                Mark::Is(status) => {
                    let output = self.plain(&self.held[..place]);
                    self.goes_on = !self.held.ends_with(&self.end);
                    self.held.clear();
                    self.state = State::Ended(status);
                    return output;
                }
                Mark::MayBe => return self.release(place),
                Mark::No => certain = place + 1,
            }
        }
        self.release(self.held.len())
    }

    /// Hands out what is held up to here, but for a CR that may belong to a line break.
    fn release(&mut self, end: usize) -> Vec<u8> {
        let may_break = self.breaks == Breaks::Doubled && self.held[..end].last() == Some(&b'\r');
        let end = if may_break { end - 1 } else { end };
        let output = self.plain(&self.held[..end]);
        self.held.drain(..end);
        output
    }

    fn plain(&self, bytes: &[u8]) -> Vec<u8> {
        if self.breaks == Breaks::Doubled { undoubled(bytes) } else { bytes.to_owned() }
    }

    fn end_at(&self, place: usize) -> Mark {
        let rest = &self.held[place..];
        if rest.len() < END.len() {
            return if END.starts_with(rest) { Mark::MayBe } else { Mark::No };
        }
        let Some(rest) = rest.strip_prefix(END) else { return Mark::No };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > STATUS_DIGITS {
            return Mark::No;
        }
        let tail = &rest[digits..];
        if tail.len() < self.end.len() {
            return if self.end.starts_with(tail) { Mark::MayBe } else { Mark::No };
        }
        match std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok()) {
            Some(status) if tail.starts_with(&self.end) => Mark::Is(status),
            _ => Mark::No,
        }
    }
}

enum Mark {
    Is(i32),
    /// More has to come to tell.
    MayBe,
    No,
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, pattern)
}

/// Undoes what the terminal makes of line breaks.
fn undoubled(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(index + 1) != Some(&b'\n') {
            plain.push(*byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(pieces: &[&[u8]]) -> (Vec<u8>, State) {
        let mut scanner = Scanner::new("n1", Breaks::Doubled);
        let output = pieces.iter().flat_map(|piece| scanner.push(piece)).collect();
        (output, scanner.state())
    }

    #[test]
    fn what_stands_between_the_marks_is_the_output() {
        let stream =
            b"$ . w\r\n\x1b]133;C;n0\x07\x1b]133;C;n1\x07a\r\nb\x1b[1m\r\r\n\x1b]133;D;0;n2\x07\x1b]133;D;42;n1\x07$ ";
        assert_eq!(scan(&[stream]), (b"a\nb\x1b[1m\r\n\x1b]133;D;0;n2\x07".to_vec(), State::Ended(42)));
        for (behind, expected) in [("", false), ("$ ", true)] {
            let mut scanner = Scanner::new("n1", Breaks::Doubled);
            scanner.push(format!("\x1b]133;C;n1\x07a\x1b]133;D;0;n1\x07{behind}").as_bytes());
            assert_eq!(scanner.goes_on(), expected, "`{behind}`");
        }
    }

    #[test]
    fn a_mark_that_is_not_whole_waits() {
        assert_eq!(scan(&[b"\x1b]133;C;n1\x07a\x1b]133;D;1"]), (b"a".to_vec(), State::Running));
        assert_eq!(scan(&[b"\x1b]133;C;n"]), (Vec::new(), State::Before));
    }

    #[test]
    fn the_first_mark_may_name_its_process() {
        for (mark, process) in [("\x1b]133;C;n1\x07", None), ("\x1b]133;C;n1;4711\x07", Some(4711))] {
            let stream = format!("$ . w\r\n{mark}a");
            for cut in 0..stream.len() {
                let mut scanner = Scanner::new("n1", Breaks::Doubled);
                let output =
                    [&stream.as_bytes()[..cut], &stream.as_bytes()[cut..]].map(|piece| scanner.push(piece)).concat();
                assert_eq!(
                    (output, scanner.state(), scanner.process()),
                    (b"a".to_vec(), State::Running, process),
                    "{cut}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "\r\n", "\r", "\n", "\x1b", "\x1b]133;D;", "\x1b]133;D;7;n", "\x1b]133;D;7;n2\x07", "\x1b]133;D;1234;n1\x07", "\x1b]133;D;;n1\x07", "\x1b[0m",
            ]), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let output = parts.concat();
            let stream = format!("\x1b]133;C;n1\x07{output}\x1b]133;D;3;n1\x07");
            let (left, right) = stream.as_bytes().split_at(cut.index(stream.len()));
            prop_assert_eq!(scan(&[left, right]), (undoubled(output.as_bytes()), State::Ended(3)));
        }
    }

    #[test]
    fn without_a_terminal_between_every_byte_is_kept() {
        let mut scanner = Scanner::new("n1", Breaks::Kept);
        let output: Vec<u8> = [&b"noise\x1b]133;C;n1\x07a\r"[..], b"\nb\r", b"\x1b]133;D;0;n1\x07late"]
            .iter()
            .flat_map(|piece| scanner.push(piece))
            .collect();
        assert_eq!((output, scanner.state()), (b"a\r\nb\r".to_vec(), State::Ended(0)));
    }
}
