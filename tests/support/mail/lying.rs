//! A mail server that is honest about three short messages, but for what a test has it say.

use base64::Engine;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CAPABILITIES: &str = "IMAP4rev1 SASL-IR LITERAL+ AUTH=PLAIN AUTH=XOAUTH2 AUTH=OAUTHBEARER";
const DATE: &str = "17-Jul-2025 02:44:25 +0000";

/// A command that it was sent, or the greeting that it is to give: an empty one.
pub struct Asked<'a> {
    /// The number of the connection, from 1.
    pub connection: usize,
    /// Its tag; before it, that of the command before.
    pub tag: &'a str,
    /// The command, with literals where they stood.
    pub command: &'a str,
}

/// What it says.
pub enum Say {
    /// The truth.
    Truth,
    /// These bytes, and then it goes on.
    This(Vec<u8>),
    /// These bytes, then it ends the connection.
    Last(Vec<u8>),
    /// These bytes, then nothing more, for as long as the client waits.
    Hang(Vec<u8>),
    /// These bytes, again and again, until the client is gone.
    Flood(Vec<u8>),
    /// These bytes before the truth.
    Before(Vec<u8>),
}

/// The server.
pub struct Lying {
    /// Where it listens.
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Lying {
    /// Serves by a certificate.
    #[must_use]
    pub fn new(certificate: Arc<ServerConfig>, lie: impl Fn(&Asked<'_>) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (asked, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let server = Self { port, asked: asked.clone(), connections: connections.clone() };
        let lie = Arc::new(lie);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let connection = connections.fetch_add(1, Ordering::SeqCst) + 1;
                let (asked, lie, certificate) = (asked.clone(), lie.clone(), certificate.clone());
                std::thread::spawn(move || {
                    let _ = socket.set_nodelay(true);
                    let greeted = ServerConnection::new(certificate).expect("a configuration that can be used");
                    let wire = BufReader::new(StreamOwned::new(greeted, socket));
                    Talk { wire, asked, connection, tag: String::new() }.run(&*lie)
                });
            }
        });
        server
    }

    /// The commands that it was sent, without their tags.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics while it holds the commands").clone()
    }

    /// How many of them begin so.
    #[must_use]
    pub fn count(&self, begin: &str) -> usize {
        self.asked().iter().filter(|command| command.starts_with(begin)).count()
    }

    /// How many connections there were.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

struct Talk<W> {
    wire: BufReader<W>,
    asked: Arc<Mutex<Vec<String>>>,
    connection: usize,
    tag: String,
}

impl<W: Read + Write> Talk<W> {
    /// Ends with the connection, or with what it is to say last.
    fn run(&mut self, lie: &dyn Fn(&Asked<'_>) -> Say) -> std::io::Result<()> {
        let mut command = String::new();
        loop {
            let asked = Asked { connection: self.connection, tag: &self.tag, command: &command };
            let said = lie(&asked);
            let truth = truth(&asked);
            match said {
                Say::Truth => self.write(&truth)?,
                Say::This(bytes) => self.write(&bytes)?,
                Say::Before(bytes) => self.write(&[bytes, truth].concat())?,
                Say::Last(bytes) => return self.write(&bytes),
                Say::Hang(bytes) => {
                    self.write(&bytes)?;
                    // Ends when the client does.
                    return std::io::copy(&mut self.wire, &mut std::io::sink()).map(drop);
                }
                Say::Flood(bytes) => {
                    let many = bytes.repeat((64 << 10) / bytes.len().max(1) + 1);
                    loop {
                        self.write(&many)?;
                    }
                }
            }
            if command == "LOGOUT" {
                return Ok(());
            }
            command = self.command()?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let wire = self.wire.get_mut();
        wire.write_all(bytes)?;
        wire.flush()
    }

    fn command(&mut self) -> std::io::Result<String> {
        let mut whole = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.wire.read_until(b'\n', &mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            line.truncate(line.trim_ascii_end().len());
            whole.extend_from_slice(&line);
            let text = String::from_utf8_lossy(&line).into_owned();
            let Some(size) = text.strip_suffix('}').and_then(|text| text.rsplit_once('{')).map(|(_, size)| size) else {
                break;
            };
            if !size.ends_with('+') {
                self.write(b"+ go on\r\n")?;
            }
            let mut literal = vec![0; size.trim_end_matches('+').parse().expect("a length")];
            self.wire.read_exact(&mut literal)?;
            whole.extend(literal);
        }
        let whole = String::from_utf8_lossy(&whole).into_owned();
        // What answers a challenge has no tag.
        let (tag, command) = whole.split_once(' ').unwrap_or(("", &whole));
        if !tag.is_empty() {
            self.tag = tag.to_owned();
        }
        self.asked.lock().expect("no test panics while it holds the commands").push(command.to_owned());
        Ok(command.to_owned())
    }
}

fn truth(asked: &Asked<'_>) -> Vec<u8> {
    let Asked { tag, command, .. } = asked;
    let uids = |command: &str| -> Vec<u32> {
        let set = command.split(' ').nth(2).unwrap_or_default();
        let within = |range: &str, uid: u32| match range.split_once(':') {
            Some((first, "*")) => uid >= first.parse().unwrap_or(1),
            Some((first, last)) => (first.parse().unwrap_or(1)..=last.parse().unwrap_or(1)).contains(&uid),
            None => range.parse() == Ok(uid),
        };
        (1..=3).filter(|uid| set.split(',').any(|range| within(range, *uid))).collect()
    };
    let data = match command.split(' ').next().unwrap_or_default() {
        "" if tag.is_empty() => return format!("* OK [CAPABILITY {CAPABILITIES}] here\r\n").into_bytes(),
        "CAPABILITY" => format!("* CAPABILITY {CAPABILITIES}\r\n"),
        "LIST" => ["INBOX", "Archive", "Slow"].map(|name| format!("* LIST () \"/\" \"{name}\"\r\n")).concat(),
        "STATUS" => format!("* STATUS {} (MESSAGES 3 UNSEEN 3)\r\n", command.split(' ').nth(1).unwrap_or_default()),
        "EXAMINE" => "* 3 EXISTS\r\n* OK [UIDVALIDITY 7] valid\r\n* OK [UIDNEXT 4] next\r\n".into(),
        "UID" if command.starts_with("UID SEARCH") => "* SEARCH 1 2 3\r\n".into(),
        "UID" if command.contains("ENVELOPE") => {
            uids(command).into_iter().map(|uid| listed(uid, &envelope(uid), PLAIN)).collect()
        }
        "UID" if command.contains("BODY.PEEK") => uids(command).into_iter().map(|uid| sections(uid, command)).collect(),
        "UID" => {
            uids(command).iter().map(|uid| format!("* {uid} FETCH (UID {uid} INTERNALDATE \"{DATE}\")\r\n")).collect()
        }
        "LOGOUT" => "* BYE\r\n".into(),
        _ => String::new(),
    };
    format!("{data}{tag} OK done\r\n").into_bytes()
}

const PLAIN: &str = r#"("TEXT" "PLAIN" ("charset" "utf-8") NIL NIL "7BIT" 12 1 NIL NIL NIL NIL)"#;

/// The token that a login comes with, in the form of either mechanism.
#[must_use]
pub fn bearer(command: &str) -> String {
    let encoded = command.rsplit(' ').next().unwrap_or_default();
    let message = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    let message = String::from_utf8_lossy(&message).into_owned();
    message.split("Bearer ").nth(1).unwrap_or_default().trim_end_matches('\x01').to_owned()
}

/// Who wrote a message, to whom, and what about.
#[must_use]
pub fn envelope(uid: u32) -> String {
    format!(
        r#"("Thu, 17 Jul 2025 02:44:25 +0000" "Message {uid}" (("Bob" NIL "bob" "example.org")) NIL NIL (("Ann" NIL "ann" "example.com")) NIL NIL NIL "<{uid}@example.org>")"#
    )
}

/// What is fetched for a list of one message.
#[must_use]
pub fn listed(uid: u32, envelope: &str, structure: &str) -> String {
    format!(
        "* {uid} FETCH (UID {uid} FLAGS () INTERNALDATE \"{DATE}\" RFC822.SIZE 200 ENVELOPE {envelope} BODYSTRUCTURE {structure})\r\n"
    )
}

/// The sections that a command asks for.
fn sections(uid: u32, command: &str) -> String {
    let mut items = format!("UID {uid}");
    for rest in command.split("BODY.PEEK[").skip(1) {
        let (name, rest) = rest.split_once(']').unwrap_or((rest, ""));
        let text = match name.starts_with("HEADER") || name.ends_with("MIME") {
            true => "Content-Type: text/plain; charset=utf-8\r\n\r\n".to_owned(),
            false => format!("text of {uid}"),
        };
        let origin = if rest.starts_with('<') { "<0>" } else { "" };
        items += &format!(" BODY[{name}]{origin} {{{}}}\r\n{text}", text.len());
    }
    format!("* {uid} FETCH ({items})\r\n")
}
