//! Lines from pieces of bytes, each bounded.

use super::message::MESSAGE_BYTES;

/// Of a line that is too long, what is kept of its beginning and its end: servers write the number at one of both.
const EDGE_BYTES: usize = 512;

/// What was read and is no whole line yet.
#[derive(Default)]
pub(super) struct Reading {
    bytes: Vec<u8>,
    /// It is of a line that is too long: its beginning, and its end so far.
    passed: Option<(Vec<u8>, Vec<u8>)>,
}

/// A line of a server.
pub(super) enum Line<'l> {
    Whole(&'l [u8]),
    TooLong { begin: &'l [u8], end: &'l [u8] },
}

impl Reading {
    /// Hands on the lines that end in these bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (piece, rest) = (&bytes[..end], &bytes[end + 1..]);
            self.add(piece);
            match self.passed.take() {
                Some((begin, end)) => each(Line::TooLong { begin: &begin, end: &end }),
                None => each(Line::Whole(&self.bytes)),
            }
            self.bytes.clear();
            // A large answer must not leave its size behind.
            self.bytes.shrink_to(64 << 10);
            bytes = rest;
        }
        self.add(bytes);
    }

    fn add(&mut self, piece: &[u8]) {
        if let Some((_, end)) = &mut self.passed {
            end.extend_from_slice(&piece[piece.len().saturating_sub(EDGE_BYTES)..]);
            let over = end.len().saturating_sub(EDGE_BYTES);
            end.drain(..over);
            return;
        }
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > MESSAGE_BYTES {
            let edge = |bytes: &[u8]| bytes.to_vec();
            let whole = std::mem::take(&mut self.bytes);
            self.passed = Some((edge(&whole[..EDGE_BYTES]), edge(&whole[whole.len() - EDGE_BYTES..])));
        }
    }
}

/// The number of an answer of which the edges are known: it stands before what is answered, or behind.
pub(super) fn id_in(begin: &[u8], end: &[u8]) -> Option<u64> {
    let number = |text: &str| {
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let (begin, end) = (String::from_utf8_lossy(begin), String::from_utf8_lossy(end));
    // Before the result alone: within it, the server's own texts could hold anything.
    let head = begin.split("\"result\"").next().unwrap_or_default();
    let after = |text: &str| text.rsplit_once("\"id\":").and_then(|(_, rest)| number(rest));
    after(head).or_else(|| after(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut reading, mut all) = (Reading::default(), Vec::new());
        for piece in pieces {
            reading.take(piece, |line| {
                all.push(match line {
                    Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                    Line::TooLong { begin, end } => format!("{:?}", id_in(begin, end)),
                });
            });
        }
        all
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(lines(&[b"a", b"b\nc\n", b"\n", b"d"]), ["ab", "c", ""]);
    }

    #[test]
    fn of_a_line_that_is_too_long_the_number_is_known() {
        let long = vec![b'x'; MESSAGE_BYTES];
        let before = [b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"".as_slice(), &long, b"\"}\n", b"next\n"].concat();
        assert_eq!(lines(&[&before]), ["Some(7)", "next"]);
        let (one, other) = before.split_at(MESSAGE_BYTES / 2);
        assert_eq!(lines(&[one, other]), ["Some(7)", "next"]);
        let behind = [b"{\"result\":\"\\\"id\\\":1 ".as_slice(), &long, b"\",\"jsonrpc\":\"2.0\",\"id\":8}\n"].concat();
        assert_eq!(lines(&[&behind]), ["Some(8)"]);
        assert_eq!(lines(&[&long, &long, b"\n"]), ["None"]);
    }
}
