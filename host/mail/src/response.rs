//! What a server answers, as values. Any bytes are read without a panic: what makes no sense is no response.
//!
//! Reading from the connection is `reader.rs`, what the values mean `structure.rs`.

/// How deep lists go; what lies deeper is left out.
const DEPTH: usize = 64;
/// Values of one response.
const VALUES: usize = 2_000_000;

/// A value of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Nil,
    /// A word without quotes: a number, a flag, the name of what was fetched.
    Atom(Vec<u8>),
    /// A quoted string or a literal.
    Text(Vec<u8>),
    List(Vec<Node>),
}

impl Node {
    /// The bytes of a word or a text.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(bytes) | Self::Text(bytes) => Some(bytes),
            Self::Nil | Self::List(_) => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(all) => Some(all),
            Self::Nil | Self::Atom(_) | Self::Text(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        std::str::from_utf8(self.bytes()?).ok()?.parse().ok()
    }

    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Atom(atom) if atom.eq_ignore_ascii_case(word.as_bytes()))
    }
}

/// How a server says of a command, or of itself, how things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    No,
    Bad,
    Bye,
    Preauth,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Response {
    /// The server waits for more of the command: a literal, or an answer to this.
    Continue(Vec<u8>),
    /// The command with this tag, or none, is so.
    State { tag: Option<String>, state: State, code: Option<Vec<u8>>, text: Vec<u8> },
    /// Something that was asked for, or that the server tells by itself.
    Data(Vec<Node>),
}

/// Whether the line may announce a literal at its end. What is only text may end like that by chance.
pub(super) fn is_text(line: &[u8]) -> bool {
    match line.first() {
        Some(b'*') => state(line.get(2..).unwrap_or_default()).is_some(),
        Some(b'+') | None => true,
        Some(_) => true,
    }
}

/// Reads a whole response, literals in place, without its end; none where it is none.
pub(super) fn parse(bytes: &[u8]) -> Option<Response> {
    if let Some(rest) = bytes.strip_prefix(b"+") {
        return Some(Response::Continue(rest.strip_prefix(b" ").unwrap_or(rest).to_vec()));
    }
    if let Some(rest) = bytes.strip_prefix(b"* ") {
        return match state(rest) {
            Some((state, rest)) => Some(with_code(None, state, rest)),
            None => Parser::new(rest).all().map(Response::Data),
        };
    }
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let tag = std::str::from_utf8(&bytes[..space]).ok()?;
    let (state, rest) = state(&bytes[space + 1..])?;
    Some(with_code(Some(tag.to_owned()), state, rest))
}

fn state(line: &[u8]) -> Option<(State, &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let all =
        [("OK", State::Ok), ("NO", State::No), ("BAD", State::Bad), ("BYE", State::Bye), ("PREAUTH", State::Preauth)];
    let found = all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))?;
    Some((found.1, rest.strip_prefix(b" ").unwrap_or(rest)))
}

fn with_code(tag: Option<String>, state: State, rest: &[u8]) -> Response {
    let code = rest.strip_prefix(b"[").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b']')?;
        Some((&rest[..end], rest[end + 1..].strip_prefix(b" ").unwrap_or(&rest[end + 1..])))
    });
    match code {
        Some((code, text)) => Response::State { tag, state, code: Some(code.to_vec()), text: text.to_vec() },
        None => Response::State { tag, state, code: None, text: rest.to_vec() },
    }
}

/// The length of the literal that a line announces at its end; the largest number for one beyond that.
pub(super) fn announced(line: &[u8]) -> Option<u64> {
    let inner = line.strip_suffix(b"}")?;
    let inner = inner.strip_suffix(b"+").unwrap_or(inner);
    let open = inner.iter().rposition(|byte| *byte == b'{')?;
    let digits = &inner[open + 1..];
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Reads values without recursion: how deep they go is the server's to say.
struct Parser<'p> {
    rest: &'p [u8],
    /// Lists that are open.
    open: Vec<Vec<Node>>,
    /// Lists that are open below those, of which nothing is kept.
    deeper: usize,
    values: usize,
}

impl<'p> Parser<'p> {
    fn new(rest: &'p [u8]) -> Self {
        Self { rest, open: vec![Vec::new()], deeper: 0, values: 0 }
    }

    fn all(mut self) -> Option<Vec<Node>> {
        while let Some(byte) = self.rest.first() {
            match byte {
                b' ' => self.rest = &self.rest[1..],
                b'(' => self.begin(),
                b')' => self.end()?,
                b'"' => {
                    let text = self.quoted()?;
                    self.put(Node::Text(text))?;
                }
                b'{' | b'~' if self.is_literal() => {
                    let text = self.literal()?;
                    self.put(Node::Text(text))?;
                }
                _ => {
                    let atom = self.atom()?;
                    let node = if atom.eq_ignore_ascii_case(b"NIL") { Node::Nil } else { Node::Atom(atom) };
                    self.put(node)?;
                }
            }
        }
        let is_whole = self.open.len() == 1 && self.deeper == 0;
        self.open.pop().filter(|_| is_whole)
    }

    fn put(&mut self, node: Node) -> Option<()> {
        self.values += 1;
        if self.deeper == 0 {
            self.open.last_mut()?.push(node);
        }
        (self.values <= VALUES).then_some(())
    }

    fn begin(&mut self) {
        self.rest = &self.rest[1..];
        if self.deeper > 0 || self.open.len() > DEPTH {
            self.deeper += 1;
        } else {
            self.open.push(Vec::new());
        }
    }

    fn end(&mut self) -> Option<()> {
        self.rest = &self.rest[1..];
        if self.deeper > 0 {
            self.deeper -= 1;
            return Some(());
        }
        if self.open.len() < 2 {
            return None;
        }
        let list = self.open.pop()?;
        self.put(Node::List(list))
    }

    fn quoted(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = 1;
        loop {
            match self.rest.get(at)? {
                b'"' => break,
                b'\\' => {
                    text.push(*self.rest.get(at + 1)?);
                    at += 2;
                }
                b'\r' | b'\n' => return None,
                byte => {
                    text.push(*byte);
                    at += 1;
                }
            }
        }
        self.rest = &self.rest[at + 1..];
        Some(text)
    }

    fn is_literal(&self) -> bool {
        self.rest[0] == b'{' || self.rest.get(1) == Some(&b'{')
    }

    fn literal(&mut self) -> Option<Vec<u8>> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = self.rest[..end].strip_suffix(b"\r").unwrap_or(&self.rest[..end]);
        let bytes = usize::try_from(announced(line)?).ok()?;
        // From the brace to its end, and nothing else.
        if line.iter().filter(|byte| **byte == b'{').count() != 1 {
            return None;
        }
        let behind = &self.rest[end + 1..];
        let text = behind.get(..bytes)?.to_vec();
        self.rest = &behind[bytes..];
        Some(text)
    }

    /// A word; brackets belong to it with all that they enclose: `BODY[HEADER.FIELDS (FROM)]<0>`.
    fn atom(&mut self) -> Option<Vec<u8>> {
        let mut brackets = 0_usize;
        let mut end = 0;
        while let Some(byte) = self.rest.get(end) {
            match byte {
                b'[' => brackets += 1,
                b']' => brackets = brackets.saturating_sub(1),
                b' ' | b'(' | b')' | b'"' | b'{' if brackets == 0 => break,
                b'\r' | b'\n' => return None,
                _ => {}
            }
            end += 1;
        }
        // Here begins no word.
        if end == 0 {
            return None;
        }
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(atom.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(bytes: &[u8]) -> Vec<Node> {
        match parse(bytes) {
            Some(Response::Data(nodes)) => nodes,
            other => panic!("{other:?}"),
        }
    }

    fn atom(text: &str) -> Node {
        Node::Atom(text.into())
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        assert_eq!(data(b"* SEARCH"), [atom("SEARCH")]);
        assert_eq!(data(b"* SEARCH 2 84"), [atom("SEARCH"), atom("2"), atom("84")]);
        let fetched = data(b"* 12 FETCH (UID 7 FLAGS (\\Seen) BODY[HEADER.FIELDS (FROM TO)] {4}\r\na\r\n) BODY[1]<0> \"x\\\"y\" INTERNALDATE NIL)");
        let inner = vec![
            atom("UID"),
            atom("7"),
            atom("FLAGS"),
            Node::List(vec![atom("\\Seen")]),
            atom("BODY[HEADER.FIELDS (FROM TO)]"),
            Node::Text(b"a\r\n)".to_vec()),
            atom("BODY[1]<0>"),
            Node::Text(b"x\"y".to_vec()),
            atom("INTERNALDATE"),
            Node::Nil,
        ];
        assert_eq!(fetched, [atom("12"), atom("FETCH"), Node::List(inner)]);
        assert_eq!(
            data(b"* X ((a)(b))"),
            [atom("X"), Node::List(vec![Node::List(vec![atom("a")]), Node::List(vec![atom("b")])])]
        );
    }

    #[test]
    fn states_have_their_code_and_their_text() {
        let state = parse(b"T1 OK [READ-ONLY] Examined {5}");
        let wanted = Response::State {
            tag: Some("T1".into()),
            state: State::Ok,
            code: Some(b"READ-ONLY".to_vec()),
            text: b"Examined {5}".to_vec(),
        };
        assert_eq!(state, Some(wanted));
        assert!(is_text(b"* OK hello {5}") && is_text(b"T1 NO {5}") && !is_text(b"* 1 FETCH (BODY[1] {5}"));
        assert_eq!(parse(b"+ go on"), Some(Response::Continue(b"go on".to_vec())));
        assert_eq!(parse(b"+"), Some(Response::Continue(Vec::new())));
        assert!(matches!(parse(b"* bye"), Some(Response::State { state: State::Bye, .. })));
    }

    #[test]
    fn what_is_not_whole_is_no_response() {
        for odd in [
            &b""[..],
            b"T1",
            b"T1 FINE",
            b"* (",
            b"* )",
            b"* \"a",
            b"* \"a\\",
            b"* {5}\r\nabc",
            b"* {5",
            b"* {99999999999999999999}\r\n",
            b"* {-1}\r\n",
            b"* (a",
            b"* a\rb",
        ] {
            assert_eq!(parse(odd), None, "{}", String::from_utf8_lossy(odd));
        }
    }

    #[test]
    fn lists_that_go_too_deep_are_left_out_and_the_rest_stays() {
        let deep = [b"* 1 FETCH (A ".as_slice(), &b"(".repeat(1_000_000), &b")".repeat(1_000_000), b" UID 7)"].concat();
        let fetched = data(&deep);
        let list = fetched[2].list().unwrap();
        assert_eq!(list[2..], [atom("UID"), atom("7")]);
    }

    #[test]
    fn a_literal_is_announced_by_the_end_of_a_line_alone() {
        assert_eq!(announced(b"* 1 FETCH (BODY[1] {4294967296}"), Some(4_294_967_296));
        assert_eq!(announced(b"a {3+}"), Some(3));
        assert_eq!(announced(b"a {18446744073709551616}"), Some(u64::MAX));
        for odd in [&b"{3"[..], b"{}", b"{a}", b"{3} ", b"3}", b"{ 3}"] {
            assert_eq!(announced(odd), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"* ", &bytes[..]].concat());
            let _ = announced(&bytes);
        }

        #[test]
        fn nothing_that_is_nearly_a_response_makes_it_panic(text in r#"\* ([0-9]{1,3} FETCH )?[()"\\\[\]{}0-9 +~a\r\n]{0,80}"#) {
            let _ = parse(text.as_bytes());
        }
    }
}
