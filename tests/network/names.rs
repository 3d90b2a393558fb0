//! The test's own name server, on port 53 of 127.0.0.1: answers what a zone says, and keeps what it was asked.
#![expect(clippy::disallowed_methods, reason = "the test is the name server")]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

const PLACE: &str = "127.0.0.1:53";
/// The longest datagram that is sent: to whoever says nothing of longer ones, and to others.
const DATAGRAM: (usize, usize) = (512, 1232);

/// Bits of a reply's header: an answer, recursion desired and available; cut short; no such name.
const ANSWER: u16 = 0x8180;
const CUT: u16 = 0x0200;
const NO_SUCH_NAME: u16 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    A,
    Aaaa,
    Other(u16),
}

#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// In lower case, without the last dot.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) over_tcp: bool,
    /// How often the same was asked before.
    pub(crate) before: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Address(IpAddr),
    Alias(String),
    /// As many bytes of text.
    Text(usize),
}

/// Whose it is, and what it says.
pub(crate) type Record = (String, Data);

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Records(Vec<Record>),
    NoSuchName,
    Silence,
    /// Over UDP cut short, whatever its length.
    CutShort(Vec<Record>),
    /// First the lies of somebody who does not know the id, and of somebody who does and writes from elsewhere; then the truth, if there is one.
    Forged {
        lies: Vec<Record>,
        truth: Option<Vec<Record>>,
    },
}

impl Reply {
    /// Those of the addresses that are of the kind that was asked for.
    pub(crate) fn addresses(query: &Query, addresses: &[&str]) -> Self {
        Self::Records(records(query, addresses))
    }
}

/// Records of the name that was asked for: those of the addresses that are of that kind.
pub(crate) fn records(query: &Query, addresses: &[&str]) -> Vec<Record> {
    let addresses = addresses.iter().map(|text| text.parse().expect("an address"));
    let fitting =
        addresses.filter(|address: &IpAddr| query.kind == if address.is_ipv4() { Kind::A } else { Kind::Aaaa });
    fitting.map(|address| (query.name.clone(), Data::Address(address))).collect()
}

type Zone = dyn Fn(&Query) -> Reply + Send + Sync;

/// The server, as the test sees it.
pub(crate) struct Names(Arc<Asked>);

struct Asked {
    zone: Box<Zone>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    queries: Vec<Query>,
    counts: HashMap<(String, Kind), usize>,
}

impl Names {
    /// Serves a zone until the test ends.
    pub(crate) fn serve(zone: impl Fn(&Query) -> Reply + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Asked { zone: Box::new(zone), log: Mutex::default() });
        let (datagrams, connections) =
            (UdpSocket::bind(PLACE).expect("port 53"), TcpListener::bind(PLACE).expect("port 53"));
        let (by_udp, by_tcp) = (asked.clone(), asked.clone());
        std::thread::spawn(move || by_udp.answer_datagrams(&datagrams));
        std::thread::spawn(move || {
            for connection in connections.incoming().flatten() {
                let asked = by_tcp.clone();
                std::thread::spawn(move || asked.answer_connection(connection));
            }
        });
        Self(asked)
    }

    /// A zone where every name has the same addresses.
    pub(crate) fn everywhere(addresses: &'static [&'static str]) -> Self {
        Self::serve(|query| Reply::addresses(query, addresses))
    }

    /// What was asked so far.
    pub(crate) fn queries(&self) -> Vec<Query> {
        self.0.log.lock().expect("the log").queries.clone()
    }

    /// The names that were asked for so far, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.queries().into_iter().map(|query| query.name).collect()
    }

    /// How often this was asked.
    pub(crate) fn count(&self, name: &str, kind: Kind) -> usize {
        let log = self.0.log.lock().expect("the log");
        log.counts.get(&(name.to_owned(), kind)).copied().unwrap_or_default()
    }
}

impl Asked {
    fn answer_datagrams(&self, socket: &UdpSocket) {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let Some(question) = Question::parse(&buffer[..length]) else { continue };
            let reply = (self.zone)(&self.note(&question, false));
            let longest = if question.has_options { DATAGRAM.1 } else { DATAGRAM.0 };
            let fitting = |records: &[Record]| {
                let message = question.answer(ANSWER, records);
                if message.len() > longest { question.answer(ANSWER | CUT, &[]) } else { message }
            };
            let message = match reply {
                Reply::Silence => None,
                Reply::NoSuchName => Some(question.answer(ANSWER | NO_SUCH_NAME, &[])),
                Reply::Records(records) => Some(fitting(&records)),
                Reply::CutShort(_) => Some(question.answer(ANSWER | CUT, &[])),
                Reply::Forged { lies, truth } => {
                    let mut guess = question.answer(ANSWER, &lies);
                    guess[0] ^= 0xff;
                    let _ = socket.send_to(&guess, from);
                    let elsewhere = UdpSocket::bind("127.0.0.1:0").expect("a port");
                    let _ = elsewhere.send_to(&question.answer(ANSWER, &lies), from);
                    truth.map(|truth| fitting(&truth))
                }
            };
            if let Some(message) = message {
                let _ = socket.send_to(&message, from);
            }
        }
    }

    fn answer_connection(&self, mut connection: TcpStream) -> Option<()> {
        loop {
            let mut length = [0; 2];
            connection.read_exact(&mut length).ok()?;
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            connection.read_exact(&mut message).ok()?;
            let question = Question::parse(&message)?;
            let message = match (self.zone)(&self.note(&question, true)) {
                Reply::Silence | Reply::Forged { truth: None, .. } => continue,
                Reply::NoSuchName => question.answer(ANSWER | NO_SUCH_NAME, &[]),
                Reply::Records(records) | Reply::CutShort(records) | Reply::Forged { truth: Some(records), .. } => {
                    question.answer(ANSWER, &records)
                }
            };
            let length = u16::try_from(message.len()).expect("a message of at most 64 KiB");
            connection.write_all(&[&length.to_be_bytes()[..], &message].concat()).ok()?;
        }
    }

    fn note(&self, question: &Question, over_tcp: bool) -> Query {
        let mut log = self.log.lock().expect("the log");
        let count = log.counts.entry((question.name.clone(), question.kind)).or_default();
        let query = Query { name: question.name.clone(), kind: question.kind, over_tcp, before: *count };
        *count += 1;
        log.queries.push(query.clone());
        query
    }
}

/// The one question of a message (RFC 1035, 4.1).
struct Question {
    id: [u8; 2],
    name: String,
    kind: Kind,
    /// Name, type and class as they came.
    bytes: Vec<u8>,
    /// It says how long datagrams may be (RFC 6891).
    has_options: bool,
}

impl Question {
    fn parse(message: &[u8]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut at = 12;
        loop {
            let length = usize::from(*message.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_lowercase());
            at += length;
        }
        let kind = match u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]) {
            1 => Kind::A,
            28 => Kind::Aaaa,
            other => Kind::Other(other),
        };
        let bytes = message.get(12..at + 4)?.to_vec();
        let has_options = message[10..12] != [0, 0];
        Some(Self { id: [message[0], message[1]], name: labels.join("."), kind, bytes, has_options })
    }

    fn answer(&self, flags: u16, records: &[Record]) -> Vec<u8> {
        let mut message = self.id.to_vec();
        message.extend(flags.to_be_bytes());
        message.extend([0, 1]);
        message.extend(u16::try_from(records.len()).expect("a count").to_be_bytes());
        message.extend([0; 4]);
        message.extend(&self.bytes);
        for (owner, data) in records {
            let (kind, bytes): (u16, _) = match data {
                Data::Address(IpAddr::V4(address)) => (1, address.octets().to_vec()),
                Data::Address(IpAddr::V6(address)) => (28, address.octets().to_vec()),
                Data::Alias(name) => (5, wire(name)),
                Data::Text(length) => (16, text(*length)),
            };
            message.extend(wire(owner));
            message.extend(kind.to_be_bytes());
            // Class IN, to be kept for no time.
            message.extend([0, 1, 0, 0, 0, 0]);
            message.extend(u16::try_from(bytes.len()).expect("data of at most 64 KiB").to_be_bytes());
            message.extend(bytes);
        }
        message
    }
}

fn wire(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a label"));
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

/// Pieces of up to 255 bytes, each behind its length.
fn text(length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in vec![b'x'; length].chunks(255) {
        bytes.push(u8::try_from(piece.len()).expect("a piece"));
        bytes.extend(piece);
    }
    bytes
}
