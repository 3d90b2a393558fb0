//! Every command that is ever sent to a mail server. None of them changes anything there: folders are opened by `EXAMINE`, which is read only by
//! RFC 3501 (6.3.2), and content is fetched by `BODY.PEEK`, which leaves `\Seen` alone.
//!
//! Texts of others go in as quoted strings or literals, never as they are. Sending is `connection.rs`.

use base::envelope::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::{self, Write};
use zeroize::Zeroizing;

/// Bytes of one text in a command.
const TEXT_BYTES: usize = 1024;
/// How deep the number of a part may go.
const PART_DEPTH: usize = 32;

/// A command.
pub(super) enum Command<'c> {
    Capability,
    Login {
        user: &'c str,
        password: &'c str,
    },
    Authenticate(Mechanism, &'c Exchange),
    /// All folders.
    List,
    /// How many messages a folder has.
    Status(&'c str),
    /// Opens a folder, read only.
    Examine(&'c str),
    Search(Window, &'c Keys),
    Fetch(&'c Uids, Items<'c>),
    Logout,
}

/// How a client says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Plain,
    XOauth2,
    OauthBearer,
}

impl Mechanism {
    /// As capabilities and commands name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::XOauth2 => "XOAUTH2",
            Self::OauthBearer => "OAUTHBEARER",
        }
    }

    /// What the first message of the exchange says.
    pub(super) fn message(self, user: &str, secret: &str, host: &str, port: u16) -> Exchange {
        let message = Zeroizing::new(match self {
            Self::Plain => format!("\0{user}\0{secret}"),
            Self::XOauth2 => format!("user={user}\x01auth=Bearer {secret}\x01\x01"),
            // RFC 7628, 3.1; `=` and `,` are written otherwise in the user's name (RFC 5801, 4).
            Self::OauthBearer => {
                let user = user.replace('=', "=3D").replace(',', "=2C");
                format!("n,a={user},\x01host={host}\x01port={port}\x01auth=Bearer {secret}\x01\x01")
            }
        });
        Exchange { first: Zeroizing::new(STANDARD.encode(message.as_bytes())) }
    }

    /// How a refusal is answered that comes as a challenge, after which the server says no.
    pub(super) const fn acknowledgement(self) -> &'static [u8] {
        match self {
            Self::Plain | Self::XOauth2 => b"\r\n",
            // RFC 7628, 3.2.3: one byte 0x01.
            Self::OauthBearer => b"AQ==\r\n",
        }
    }
}

/// The first message of an exchange, in base64.
pub(super) struct Exchange {
    first: Zeroizing<String>,
}

impl Exchange {
    /// As it is sent where the server asks for it.
    pub(super) fn line(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([self.first.as_bytes(), b"\r\n"].concat())
    }
}

/// UIDs from one to another, in order; none for the last is the newest message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) first: u32,
    pub(super) last: Option<u32>,
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(formatter, "{}:{last}", self.first),
            None => write!(formatter, "{}:*", self.first),
        }
    }
}

/// Messages of a folder.
pub(super) enum Uids {
    These(Vec<u32>),
    Within(Window),
}

impl fmt::Display for Uids {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::These(uids) => {
                let numbers: Vec<String> = uids.iter().map(ToString::to_string).collect();
                formatter.write_str(&numbers.join(","))
            }
            Self::Within(window) => window.fmt(formatter),
        }
    }
}

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    pub(super) words: Vec<String>,
    pub(super) sender: Option<String>,
    pub(super) recipient: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) since: Option<Day>,
    pub(super) before: Option<Day>,
    pub(super) unread: bool,
}

/// A day, as servers write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day(jiff::civil::Date);

impl Day {
    /// That of a time in ms since 1970; none beyond what calendars have.
    pub(super) fn of(ms: u64) -> Option<Self> {
        let time = jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
        let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        // Servers read four digits.
        (date.year() <= 9999).then_some(Self(date))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.strftime("%-d-%b-%Y").fmt(formatter)
    }
}

/// What is fetched of messages.
#[derive(Clone, Copy)]
pub(super) enum Items<'c> {
    /// When they were received.
    Dates,
    /// What lists show of them, and of what parts they consist.
    Headers,
    /// What servers on the way found of them.
    Results,
    /// The beginning of a part, with the lines that say how it is written.
    Part(&'c PartNumber, u32),
}

/// The number of a part, such as `1.3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartNumber {
    numbers: Vec<u32>,
    /// It is all that the message has: its lines are in the message's header.
    pub(super) is_only: bool,
}

impl PartNumber {
    pub(super) fn new(numbers: Vec<u32>, is_only: bool) -> Self {
        Self { numbers, is_only }
    }

    /// Reads what somebody wrote.
    pub(super) fn parse(text: &str) -> Option<Vec<u32>> {
        let number = |digits: &str| {
            let is_plain = digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u32>().ok().filter(|number| is_plain && *number > 0)
        };
        let numbers: Option<Vec<u32>> = text.split('.').map(number).collect();
        numbers.filter(|numbers| numbers.len() <= PART_DEPTH)
    }

    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// What names its lines in a fetch.
    pub(super) fn head(&self) -> String {
        match self.is_only {
            true => "HEADER.FIELDS (CONTENT-TYPE CONTENT-TRANSFER-ENCODING CONTENT-DISPOSITION)".into(),
            false => format!("{self}.MIME"),
        }
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(ToString::to_string).collect();
        formatter.write_str(&numbers.join("."))
    }
}

/// A piece of a command as it is sent.
pub(super) enum Piece {
    Text(Zeroizing<Vec<u8>>),
    /// Announced with its length; the server may have to ask for it.
    Literal(Zeroizing<Vec<u8>>),
}

/// A command on its way to bytes.
#[derive(Default)]
struct Line {
    pieces: Vec<Piece>,
    text: Zeroizing<Vec<u8>>,
}

impl Line {
    fn word(&mut self, word: impl fmt::Display) {
        if !self.text.is_empty() || !self.pieces.is_empty() {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(word.to_string().as_bytes());
    }

    /// A text of somebody else: it cannot end the command, nor be taken for a part of it.
    fn string(&mut self, text: &str) -> Result<(), Failure> {
        check_text(text)?;
        self.text.push(b' ');
        if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            self.text.push(b'"');
            for byte in text.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    self.text.push(b'\\');
                }
                self.text.push(byte);
            }
            self.text.push(b'"');
        } else {
            // Quoted strings are ASCII (RFC 3501, 4.3).
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
            self.pieces.push(Piece::Literal(Zeroizing::new(text.as_bytes().to_vec())));
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<Piece> {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(self.text));
        }
        self.pieces
    }
}

/// Refuses what no text of a command may have.
pub(super) fn check_text(text: &str) -> Result<(), Failure> {
    if text.len() > TEXT_BYTES {
        return Err(Failure::invalid(format!("a text of a search is longer than {TEXT_BYTES} bytes")));
    }
    match text.chars().find(|char| matches!(char, '\r' | '\n' | '\0')) {
        Some(odd) => Err(Failure::invalid(format!("a text of a search contains U+{:04X}", u32::from(odd)))
            .hint("write it in one line")),
        None => Ok(()),
    }
}

impl Keys {
    fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [("FROM", &self.sender), ("TO", &self.recipient), ("SUBJECT", &self.subject)];
        let named = named.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?)));
        named.chain(self.words.iter().map(|word| ("TEXT", word.as_str())))
    }

    fn write(&self, line: &mut Line) -> Result<(), Failure> {
        if self.unread {
            line.word("UNSEEN");
        }
        if let Some(day) = self.since {
            line.word(format_args!("SINCE {day}"));
        }
        if let Some(day) = self.before {
            line.word(format_args!("BEFORE {day}"));
        }
        // Texts last: what can be decided by numbers is decided first.
        for (key, text) in self.texts() {
            line.word(key);
            line.string(text)?;
        }
        Ok(())
    }
}

impl Command<'_> {
    /// The command without its tag and its end.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` for texts that no command can carry.
    pub(super) fn pieces(&self, is_initial: bool) -> Result<Vec<Piece>, Failure> {
        let mut line = Line::default();
        match self {
            Self::Capability => line.word("CAPABILITY"),
            Self::Login { user, password } => {
                line.word("LOGIN");
                line.string(user)?;
                line.string(password)?;
            }
            Self::Authenticate(mechanism, exchange) => {
                line.word("AUTHENTICATE");
                line.word(mechanism.name());
                if is_initial {
                    line.word(exchange.first.as_str());
                }
            }
            Self::List => line.word("LIST \"\" \"*\""),
            Self::Status(folder) => {
                line.word("STATUS");
                line.string(&super::folders::encoded(folder))?;
                line.word("(MESSAGES UNSEEN)");
            }
            Self::Examine(folder) => {
                line.word("EXAMINE");
                line.string(&super::folders::encoded(folder))?;
            }
            Self::Search(window, keys) => {
                line.word("UID SEARCH");
                if keys.texts().any(|(_, text)| !text.is_ascii()) {
                    line.word("CHARSET UTF-8");
                }
                line.word(format_args!("UID {window}"));
                keys.write(&mut line)?;
            }
            Self::Fetch(uids, items) => line.word(format_args!("UID FETCH {uids} {items}")),
            Self::Logout => line.word("LOGOUT"),
        }
        Ok(line.finish())
    }
}

impl fmt::Display for Items<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(UID ")?;
        match self {
            Self::Dates => formatter.write_str("INTERNALDATE")?,
            Self::Headers => formatter.write_str("FLAGS INTERNALDATE RFC822.SIZE ENVELOPE BODYSTRUCTURE")?,
            Self::Results => formatter.write_str("BODY.PEEK[HEADER.FIELDS (AUTHENTICATION-RESULTS)]")?,
            Self::Part(part, bytes) => {
                write!(formatter, "BODY.PEEK[{}] BODY.PEEK[{part}]<0.{bytes}>", part.head())?;
            }
        }
        formatter.write_char(')')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a command, literals as they go where the server need not ask for them.
    fn sent(command: &Command<'_>) -> Result<String, Failure> {
        let pieces = command.pieces(true)?.into_iter().map(|piece| match piece {
            Piece::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            Piece::Literal(text) => format!("{{{}+}}\r\n{}", text.len(), String::from_utf8_lossy(&text)),
        });
        Ok(pieces.collect())
    }

    fn search(word: &str) -> Result<String, Failure> {
        let keys = Keys { words: vec![word.into()], ..Keys::default() };
        sent(&Command::Search(Window { first: 1, last: Some(9) }, &keys))
    }

    #[test]
    fn a_text_never_ends_its_command() {
        for odd in ["x\r\nZ9 CREATE injected", "x\nA", "a\rb", "a\0b"] {
            assert_eq!(search(odd).unwrap_err().kind, base::envelope::Kind::InvalidArguments, "{odd:?}");
        }
        for (text, written) in [
            (r#"a" OR ALL "b"#, r#""a\" OR ALL \"b""#),
            (r"a\", r#""a\\""#),
            (") ALL (", r#"") ALL (""#),
            ("{5}", r#""{5}""#),
            ("{5+}", r#""{5+}""#),
            ("%*", r#""%*""#),
            ("", r#""""#),
        ] {
            assert_eq!(search(text).unwrap(), format!("UID SEARCH UID 1:9 TEXT {written}"), "{text}");
        }
    }

    #[test]
    fn a_text_beyond_ascii_is_a_literal_with_its_charset() {
        assert_eq!(search("Rückruf").unwrap(), "UID SEARCH CHARSET UTF-8 UID 1:9 TEXT {8+}\r\nRückruf");
        assert_eq!(search("a\u{7f}").unwrap(), "UID SEARCH UID 1:9 TEXT {2+}\r\na\u{7f}");
        assert!(search(&"ä".repeat(TEXT_BYTES)).is_err());
    }

    #[test]
    fn keys_that_are_decided_by_numbers_come_first() {
        let keys = Keys {
            words: vec!["a".into(), "b c".into()],
            sender: Some("ann".into()),
            recipient: Some("bob".into()),
            subject: Some("x".into()),
            since: Day::of(1_700_000_000_000),
            before: Day::of(1_704_067_200_000),
            unread: true,
        };
        assert_eq!(
            sent(&Command::Search(Window { first: 98_001, last: None }, &keys)).unwrap(),
            "UID SEARCH UID 98001:* UNSEEN SINCE 14-Nov-2023 BEFORE 1-Jan-2024 FROM \"ann\" TO \"bob\" SUBJECT \"x\" TEXT \"a\" TEXT \"b c\""
        );
        assert_eq!(Day::of(u64::MAX), None);
    }

    #[test]
    fn nothing_is_fetched_but_by_peeking() {
        let part = PartNumber::new(vec![1, 2], false);
        let only = PartNumber::new(vec![1], true);
        let uids = Uids::These(vec![7, 3]);
        for (items, written) in [
            (Items::Dates, "(UID INTERNALDATE)".to_owned()),
            (Items::Headers, "(UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE BODYSTRUCTURE)".into()),
            (Items::Results, "(UID BODY.PEEK[HEADER.FIELDS (AUTHENTICATION-RESULTS)])".into()),
            (Items::Part(&part, 1600), "(UID BODY.PEEK[1.2.MIME] BODY.PEEK[1.2]<0.1600>)".into()),
            (
                Items::Part(&only, 5),
                "(UID BODY.PEEK[HEADER.FIELDS (CONTENT-TYPE CONTENT-TRANSFER-ENCODING CONTENT-DISPOSITION)] BODY.PEEK[1]<0.5>)"
                    .into(),
            ),
        ] {
            assert_eq!(sent(&Command::Fetch(&uids, items)).unwrap(), format!("UID FETCH 7,3 {written}"));
        }
    }

    #[test]
    fn folders_are_opened_read_only_whatever_their_names() {
        for (folder, written) in [
            ("INBOX", r#"EXAMINE "INBOX""#),
            ("Entwürfe", r#"EXAMINE "Entw&APw-rfe""#),
            ("a\" (CONDSTORE)", r#"EXAMINE "a\" (CONDSTORE)""#),
        ] {
            assert_eq!(sent(&Command::Examine(folder)).unwrap(), written);
        }
        // In modified UTF-7 they are plain text.
        assert_eq!(sent(&Command::Examine("a\r\nb")).unwrap(), r#"EXAMINE "a&AA0ACg-b""#);
    }

    #[test]
    fn a_login_is_written_in_the_words_of_its_mechanism() {
        let decoded = |mechanism: Mechanism| {
            let exchange = mechanism.message("a,b", "tok", "imap.example.com", 993);
            String::from_utf8(STANDARD.decode(exchange.first.as_bytes()).unwrap()).unwrap()
        };
        assert_eq!(decoded(Mechanism::Plain), "\0a,b\0tok");
        assert_eq!(decoded(Mechanism::XOauth2), "user=a,b\x01auth=Bearer tok\x01\x01");
        let bearer = "n,a=a=2Cb,\x01host=imap.example.com\x01port=993\x01auth=Bearer tok\x01\x01";
        assert_eq!(decoded(Mechanism::OauthBearer), bearer);
        let login = Command::Login { user: "ann", password: "p\"ä" };
        assert_eq!(sent(&login).unwrap(), "LOGIN \"ann\" {4+}\r\np\"ä");
        assert!(sent(&Command::Login { user: "a\r\nb", password: "" }).is_err());
    }

    #[test]
    fn the_number_of_a_part_is_numbers() {
        assert_eq!(PartNumber::parse("1.3"), Some(vec![1, 3]));
        for odd in ["", "0", "1.", ".1", "1..2", "a", "1]", "-1", "+1", "4294967296", "1 2", &"1.".repeat(40)] {
            assert_eq!(PartNumber::parse(odd), None, "{odd}");
        }
    }
}
