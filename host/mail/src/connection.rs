//! One connection to a mail server: commands go out, and answers come back within a time and a budget.

use super::commands::{Command, Exchange, Items, Keys, Mechanism, Piece, Uids, Window};
use super::reader::{Budget, Reader};
use super::response::{Node, Response, State};
use super::trouble::{Trouble, said};
use base::envelope::duration;
use egress::plainly;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

/// How long a server may take for a command, and for a login.
pub(super) const COMMAND: Duration = Duration::from_secs(15);
pub(super) const LOGIN: Duration = Duration::from_secs(30);
/// Bytes of an answer that says little.
const SHORT: usize = 256 << 10;
/// Bytes of the numbers that a search finds: those of a million messages.
const NUMBERS: usize = 8 << 20;
/// Bytes of what lists show of 50 messages.
const HEADERS: usize = 8 << 20;
/// Bytes up to which a literal is sent unasked where the server has `LITERAL-` (RFC 7888).
const SMALL_LITERAL: usize = 4096;

/// What carries bytes to a server and back.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection.
pub(super) struct Connection {
    reader: Reader<Box<dyn Wire>>,
    tags: u32,
    capabilities: Vec<String>,
    pub(super) opened: Option<Opened>,
    /// Where its answers end is not known.
    pub(super) is_broken: bool,
}

/// A folder that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) folder: String,
    /// As long as this is the same, a UID stands for the same message.
    pub(super) validity: u32,
    pub(super) messages: u32,
    /// The UID that the next message gets, if the server says so.
    pub(super) next: Option<u32>,
}

/// What a server answers to a command that it has done.
struct Answer {
    data: Vec<Vec<Node>>,
    /// What stands in brackets, untagged ones first.
    codes: Vec<Vec<u8>>,
}

/// What became of a login.
pub(super) enum Login {
    Done,
    /// By these words; to try it again with the same may lock the account.
    Refused(String),
}

impl Connection {
    /// A connection whose server has greeted.
    pub(super) async fn greeted(wire: Box<dyn Wire>, patience: Duration) -> Result<Self, Trouble> {
        let mut connection =
            Self { reader: Reader::new(wire), tags: 0, capabilities: Vec::new(), opened: None, is_broken: false };
        let mut budget = Budget::new(SHORT);
        let greeting = connection.reader.response(&mut budget);
        let greeting =
            tokio::time::timeout(patience, greeting).await.map_err(|_| slow("does not greet", patience))??;
        match greeting {
            Response::State { tag: None, state: State::Ok, code, .. } => {
                connection.learn(code.iter().map(Vec::as_slice));
                Ok(connection)
            }
            Response::State { tag: None, state: State::Bye, text, .. } => {
                Err(Trouble::Refused(format!("it says goodbye: {}", said(&text))))
            }
            // Nobody has said yet who this is.
            Response::State { .. } | Response::Continue(_) | Response::Data(_) => {
                Err(Trouble::Nonsense("it does not greet as a mail server does".into()))
            }
        }
    }

    /// Says who this is.
    pub(super) async fn log_in(
        &mut self,
        user: &str,
        secret: &str,
        mechanism: Mechanism,
        exchange: &Exchange,
    ) -> Result<Login, Trouble> {
        if self.capabilities.is_empty() {
            self.ask_capabilities().await?;
        }
        let is_offered = self.has(&format!("AUTH={}", mechanism.name()));
        let tried = match mechanism {
            Mechanism::Plain | Mechanism::XOauth2 | Mechanism::OauthBearer if is_offered => {
                self.authenticate(mechanism, exchange).await
            }
            Mechanism::Plain if !self.has("LOGINDISABLED") => {
                self.run(&Command::Login { user, password: secret }, SHORT, LOGIN).await
            }
            Mechanism::Plain => Err(Trouble::Refused("it takes no passwords".into())),
            Mechanism::XOauth2 | Mechanism::OauthBearer => {
                Err(Trouble::Refused(format!("it does not offer {}", mechanism.name())))
            }
        };
        match tried {
            Ok(answer) => {
                self.capabilities.clear();
                self.learn(answer.codes.iter().map(Vec::as_slice));
                if self.capabilities.is_empty() {
                    self.ask_capabilities().await?;
                }
                Ok(Login::Done)
            }
            Err(Trouble::Refused(why)) => Ok(Login::Refused(why)),
            Err(trouble) => Err(trouble),
        }
    }

    async fn ask_capabilities(&mut self) -> Result<(), Trouble> {
        let answer = self.run(&Command::Capability, SHORT, COMMAND).await?;
        for data in answer.data.iter().filter(|data| data.first().is_some_and(|word| word.is("CAPABILITY"))) {
            let words = data[1..].iter().filter_map(Node::bytes);
            self.capabilities = words.map(|word| String::from_utf8_lossy(word).to_ascii_uppercase()).collect();
        }
        Ok(())
    }

    fn learn<'c>(&mut self, codes: impl Iterator<Item = &'c [u8]>) {
        for code in codes {
            let code = String::from_utf8_lossy(code).to_ascii_uppercase();
            if let Some(words) = code.strip_prefix("CAPABILITY ") {
                self.capabilities = words.split_ascii_whitespace().map(str::to_owned).collect();
            }
        }
    }

    fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|own| own == capability)
    }

    async fn authenticate(&mut self, mechanism: Mechanism, exchange: &Exchange) -> Result<Answer, Trouble> {
        let is_initial = self.has("SASL-IR");
        let done = async {
            let tag = self.tag();
            self.send(&tag, &Command::Authenticate(mechanism, exchange), is_initial).await?;
            let (mut budget, mut has_said, mut answer) = (Budget::new(SHORT), is_initial, Answer::new());
            loop {
                match self.reader.response(&mut budget).await? {
                    Response::Continue(_) if !has_said => {
                        has_said = true;
                        self.write(&exchange.line()).await?;
                        self.flush().await?;
                    }
                    // A refusal, with what for: the server says no once that is acknowledged.
                    Response::Continue(_) => {
                        self.write(mechanism.acknowledgement()).await?;
                        self.flush().await?;
                    }
                    response => {
                        if let Some(ended) = answer.take(&tag, response)? {
                            return ended.map(|()| answer);
                        }
                    }
                }
            }
        };
        let done =
            tokio::time::timeout(LOGIN, done).await.unwrap_or_else(|_| Err(slow("does not answer the login", LOGIN)));
        self.noted(done)
    }

    /// All folders that can be opened.
    pub(super) async fn list(&mut self) -> Result<Vec<String>, Trouble> {
        let answer = self.run(&Command::List, NUMBERS, COMMAND).await?;
        let folder = |data: &Vec<Node>| match &data[..] {
            [word, Node::List(flags), _, name] if word.is("LIST") => {
                let is_closed = flags.iter().any(|flag| flag.is("\\Noselect") || flag.is("\\NonExistent"));
                name.bytes().filter(|_| !is_closed).map(super::folders::decoded)
            }
            _ => None,
        };
        Ok(answer.data.iter().filter_map(folder).collect())
    }

    /// How many messages a folder has, and how many of them are unread.
    pub(super) async fn status(&mut self, folder: &str) -> Result<(u32, u32), Trouble> {
        let answer = self.run(&Command::Status(folder), SHORT, COMMAND).await?;
        let items = answer.data.iter().find_map(|data| match &data[..] {
            [word, _, Node::List(items)] if word.is("STATUS") => Some(items),
            _ => None,
        });
        let count = |name: &str| {
            let pair = items?.chunks_exact(2).find(|pair| pair[0].is(name))?;
            u32::try_from(pair[1].number()?).ok()
        };
        Ok((count("MESSAGES").unwrap_or_default(), count("UNSEEN").unwrap_or_default()))
    }

    /// Opens a folder, read only.
    pub(super) async fn examine(&mut self, folder: &str, patience: Duration) -> Result<Opened, Trouble> {
        self.opened = None;
        let answer = self.run(&Command::Examine(folder), SHORT, patience).await?;
        let code = |name: &str| {
            let mut numbers = answer.codes.iter().rev().filter_map(|code| {
                let mut words = code.split(|byte| *byte == b' ');
                let is_it = words.next()?.eq_ignore_ascii_case(name.as_bytes());
                std::str::from_utf8(words.next()?).ok().filter(|_| is_it)?.parse::<u32>().ok()
            });
            numbers.next()
        };
        let mut messages = answer.data.iter().rev().filter_map(|data| match &data[..] {
            [number, word] if word.is("EXISTS") => u32::try_from(number.number()?).ok(),
            _ => None,
        });
        let validity = code("UIDVALIDITY")
            .ok_or_else(|| Trouble::Refused("it does not say by which numbers it knows its messages".into()))?;
        let messages = messages.next().unwrap_or_default();
        let opened = Opened { folder: folder.to_owned(), validity, messages, next: code("UIDNEXT") };
        self.opened = Some(opened.clone());
        Ok(opened)
    }

    /// The UIDs in a window of messages for which the keys hold, newest first.
    pub(super) async fn search(
        &mut self,
        window: Window,
        keys: &Keys,
        patience: Duration,
    ) -> Result<Vec<u32>, Trouble> {
        let answer = self.run(&Command::Search(window, keys), NUMBERS, patience).await?;
        let mut uids: Vec<u32> = answer
            .data
            .iter()
            .filter(|data| data.first().is_some_and(|word| word.is("SEARCH")))
            .flat_map(|data| data[1..].iter().filter_map(Node::number))
            .filter_map(|number| u32::try_from(number).ok())
            // `*` is the newest message, also where that is before the window.
            .filter(|uid| *uid >= window.first && window.last.is_none_or(|last| *uid <= last))
            .collect();
        uids.sort_unstable_by(|one, other| other.cmp(one));
        uids.dedup();
        Ok(uids)
    }

    /// What was fetched, each a response. Of `bytes` of content, and as much of what is around it as is usual.
    pub(super) async fn fetch(
        &mut self,
        uids: &Uids,
        items: Items<'_>,
        bytes: usize,
    ) -> Result<Vec<Vec<Node>>, Trouble> {
        let around = match items {
            Items::Dates => NUMBERS,
            Items::Headers => HEADERS,
            Items::Results | Items::Part(..) => SHORT,
        };
        Ok(self.run(&Command::Fetch(uids, items), around + bytes, COMMAND).await?.data)
    }

    /// Says goodbye. Nobody waits for the answer.
    pub(super) async fn log_out(mut self) {
        let tag = self.tag();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.send(&tag, &Command::Logout, false)).await;
    }

    fn tag(&mut self) -> String {
        self.tags += 1;
        format!("T{}", self.tags)
    }

    /// Has a command done.
    async fn run(&mut self, command: &Command<'_>, most: usize, patience: Duration) -> Result<Answer, Trouble> {
        let done = tokio::time::timeout(patience, self.run_unbounded(command, most)).await;
        let done = done.unwrap_or_else(|_| Err(slow("does not answer", patience)));
        self.noted(done)
    }

    async fn run_unbounded(&mut self, command: &Command<'_>, most: usize) -> Result<Answer, Trouble> {
        let tag = self.tag();
        // Whoever drops this on its way leaves an answer that nobody has read.
        self.is_broken = true;
        self.send(&tag, command, false).await?;
        let (mut budget, mut answer) = (Budget::new(most), Answer::new());
        loop {
            let response = self.reader.response(&mut budget).await?;
            if let Some(ended) = answer.take(&tag, response)? {
                self.is_broken = false;
                return ended.map(|()| answer);
            }
        }
    }

    fn noted<T>(&mut self, done: Result<T, Trouble>) -> Result<T, Trouble> {
        self.is_broken = done.as_ref().is_err_and(Trouble::ends_connection);
        done
    }

    async fn send(&mut self, tag: &str, command: &Command<'_>, is_initial: bool) -> Result<(), Trouble> {
        let pieces = command.pieces(is_initial)?;
        self.write(format!("{tag} ").as_bytes()).await?;
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.write(&text).await?,
                Piece::Literal(text) => self.literal(tag, &text).await?,
            }
        }
        self.write(b"\r\n").await?;
        self.flush().await
    }

    async fn literal(&mut self, tag: &str, text: &[u8]) -> Result<(), Trouble> {
        let is_unasked = self.has("LITERAL+") || (self.has("LITERAL-") && text.len() <= SMALL_LITERAL);
        if is_unasked {
            self.write(format!("{{{}+}}\r\n", text.len()).as_bytes()).await?;
            return self.write(text).await;
        }
        self.write(format!("{{{}}}\r\n", text.len()).as_bytes()).await?;
        self.flush().await?;
        let (mut budget, mut answer) = (Budget::new(SHORT), Answer::new());
        loop {
            match self.reader.response(&mut budget).await? {
                Response::Continue(_) => return self.write(text).await,
                response => match answer.take(tag, response)? {
                    Some(Ok(())) => return Err(Trouble::Nonsense("it does half a command".into())),
                    Some(Err(trouble)) => return Err(trouble),
                    None => {}
                },
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.reader.stream().write_all(bytes).await.map_err(|error| Trouble::Lost(plainly(&error)))
    }

    async fn flush(&mut self) -> Result<(), Trouble> {
        self.reader.stream().flush().await.map_err(|error| Trouble::Lost(plainly(&error)))
    }
}

impl Answer {
    fn new() -> Self {
        Self { data: Vec::new(), codes: Vec::new() }
    }

    /// Takes in a response; some for the one that ends the command.
    fn take(&mut self, tag: &str, response: Response) -> Result<Option<Result<(), Trouble>>, Trouble> {
        match response {
            Response::Data(data) => self.data.push(data),
            Response::Continue(_) => return Err(Trouble::Nonsense("it asks for more of a whole command".into())),
            Response::State { tag: None, state: State::Bye, text, .. } => {
                return Err(Trouble::Lost(format!("it says goodbye: {}", said(&text))));
            }
            Response::State { tag: None, code, .. } => self.codes.extend(code),
            Response::State { tag: Some(other), state, code, text } if other == tag => {
                let why = code.iter().map(|code| [b"[", &code[..], b"] "].concat()).next().unwrap_or_default();
                self.codes.extend(code);
                return Ok(Some(match state {
                    State::Ok => Ok(()),
                    State::No | State::Bad => Err(Trouble::Refused(said(&[why, text].concat()))),
                    State::Bye | State::Preauth => Err(Trouble::Nonsense("it ends a command as none ends".into())),
                }));
            }
            Response::State { tag: Some(other), .. } => {
                return Err(Trouble::Nonsense(format!("it answers a command `{}`", said(other.as_bytes()))));
            }
        }
        Ok(None)
    }
}

fn slow(what: &str, patience: Duration) -> Trouble {
    Trouble::Slow(format!("{what} within {}", duration(patience)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, DuplexStream};

    /// A server that waits for each text and then says another one.
    async fn serve(mut wire: DuplexStream, script: &'static [(&'static str, &'static str)]) {
        for (heard, said) in script {
            let mut bytes = vec![0; heard.len()];
            wire.read_exact(&mut bytes).await.expect("what is waited for");
            assert_eq!(String::from_utf8_lossy(&bytes), *heard);
            wire.write_all(said.as_bytes()).await.expect("a client that listens");
        }
    }

    async fn greeted(
        script: &'static [(&'static str, &'static str)],
    ) -> (Result<Connection, Trouble>, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(serve(theirs, script));
        (Connection::greeted(Box::new(ours), COMMAND).await, server)
    }

    const READY: (&str, &str) = ("", "* OK [CAPABILITY IMAP4rev1] hello\r\n");

    #[tokio::test]
    async fn what_does_not_greet_as_a_mail_server_gets_no_login() {
        for script in [
            &[("", "HTTP/1.1 400 Bad Request\r\n")][..],
            &[("", "* BYE too many\r\n")],
            &[("", "* PREAUTH who is this\r\n")],
            &[("", "")],
        ] {
            assert!(greeted(script).await.0.is_err(), "{script:?}");
        }
    }

    #[tokio::test]
    async fn a_literal_waits_until_it_is_asked_for() {
        let script = &[
            READY,
            ("T1 UID SEARCH CHARSET UTF-8 UID 1:* TEXT {2}\r\n", "* 5 EXISTS\r\n+ go on\r\n"),
            ("ä\r\n", "* SEARCH 3 9\r\n* SEARCH 4\r\nT1 OK done\r\n"),
        ];
        let (connection, server) = greeted(script).await;
        let keys = Keys { words: vec!["ä".into()], ..Keys::default() };
        let mut connection = connection.unwrap();
        assert_eq!(connection.search(Window { first: 1, last: None }, &keys, COMMAND).await.unwrap(), [9, 4, 3]);
        assert!(!connection.is_broken);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_refusal_of_a_token_is_acknowledged() {
        let script = &[
            ("", "* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2] hello\r\n"),
            ("T1 AUTHENTICATE XOAUTH2\r\n", "+ \r\n"),
            ("dXNlcj1hAWF1dGg9QmVhcmVyIHQBAQ==\r\n", "+ eyJzdGF0dXMiOiI0MDAifQ==\r\n"),
            ("\r\n", "T1 NO [AUTHENTICATIONFAILED] no\r\n"),
        ];
        let (connection, server) = greeted(script).await;
        let exchange = Mechanism::XOauth2.message("a", "t", "h", 993);
        let login = connection.unwrap().log_in("a", "t", Mechanism::XOauth2, &exchange).await.unwrap();
        assert!(matches!(login, Login::Refused(why) if why == "[AUTHENTICATIONFAILED] no"));
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_password_goes_to_no_server_that_takes_none() {
        let (connection, _server) = greeted(&[("", "* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] hello\r\n")]).await;
        let exchange = Mechanism::Plain.message("a", "t", "h", 993);
        let login = connection.unwrap().log_in("a", "t", Mechanism::Plain, &exchange).await.unwrap();
        assert!(matches!(login, Login::Refused(_)));
    }

    #[tokio::test]
    async fn an_answer_that_is_none_ends_the_connection() {
        for (said, is_lost) in [
            ("* SEARCH 1\r\n", true),
            ("* BYE shutting down\r\n", true),
            ("T9 OK done\r\n", false),
            ("+ more\r\n", false),
            ("* SEARCH (1\r\n", false),
            ("T1 BYE\r\n", false),
        ] {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            theirs.write_all(b"* OK [CAPABILITY IMAP4rev1] hello\r\n").await.unwrap();
            theirs.write_all(said.as_bytes()).await.unwrap();
            let server = tokio::spawn(async move {
                let mut heard = [0; 64];
                let _ = theirs.read(&mut heard).await;
            });
            let mut connection = Connection::greeted(Box::new(ours), COMMAND).await.unwrap();
            let found = connection.search(Window { first: 1, last: None }, &Keys::default(), COMMAND).await;
            assert!(connection.is_broken, "{said}");
            assert_eq!(matches!(found, Err(Trouble::Lost(_))), is_lost, "{said}: {found:?}");
            server.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_folder_is_known_by_what_the_server_says_of_it() {
        let script = &[
            READY,
            (
                "T1 EXAMINE \"INBOX\"\r\n",
                "* 12 EXISTS\r\n* OK [UIDVALIDITY 7] UIDs\r\n* OK [UIDNEXT 40] next\r\nT1 OK [READ-ONLY] done\r\n",
            ),
            ("T2 EXAMINE \"x\"\r\n", "T2 NO [NONEXISTENT] no such folder\r\n"),
        ];
        let (connection, server) = greeted(script).await;
        let mut connection = connection.unwrap();
        let opened = connection.examine("INBOX", COMMAND).await.unwrap();
        assert_eq!((opened.validity, opened.messages, opened.next), (7, 12, Some(40)));
        assert!(matches!(connection.examine("x", COMMAND).await, Err(Trouble::Refused(_))));
        // Another command can follow.
        assert!(!connection.is_broken && connection.opened.is_none());
        server.await.unwrap();
    }
}
