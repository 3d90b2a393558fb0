//! An embedder beside a server: at a socket, or a program that this one starts. It speaks the lines of `toolcrib run` that are about events,
//! and feeds what happened.
//!
//! Its first line says which events it takes. A link that breaks is made again, and the tools that need it come and go with it.

use crate::Notices;
use async_trait::async_trait;
use base::text::lines::next_line;
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolcrib::Host;
use toolcrib::backend::{Backend, ProcessEvent, ProcessSpec};
use toolcrib::call::CallContext;
use toolcrib::embedder::{AnswerLine, Embedder, EmbedderEvent, End, KindPattern, Link};
use toolcrib::envelope::Failure;
use toolcrib::records::Feed;

/// How long a line may be, in bytes.
const LINE_BYTES: usize = 4 << 20;
/// How many lines may wait for a slow reader; an event that wants no answer is dropped beyond that.
const LINES_WAITING: usize = 1024;
/// How long the first line may take.
const HELLO: Duration = Duration::from_secs(10);
/// How long to wait before a link is made again: twice as long each time, until it has held for a while.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const HELD: Duration = Duration::from_secs(10);
/// What a program's output waits in.
const BUFFER: usize = 64 << 10;

/// Where an embedder is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// It listens at this socket.
    Socket(PathBuf),
    /// It is a program, which reads and writes lines.
    Program(Vec<OsString>),
}

impl Place {
    /// Reads `unix:PATH`, or a program with its arguments as a JSON list.
    ///
    /// # Errors
    ///
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").map(Path::new) {
            let refused = || "give the whole path of the socket, as in `unix:/run/agent.sock`".to_owned();
            return path.is_absolute().then(|| Self::Socket(path.into())).ok_or_else(refused);
        }
        let argv: Option<Vec<String>> = serde_json::from_str(text).ok();
        match argv.filter(|argv| argv.first().is_some_and(|program| !program.trim().is_empty())) {
            Some(argv) => Ok(Self::Program(argv.into_iter().map(OsString::from).collect())),
            None => {
                Err("write `unix:/a/socket`, or a program as a JSON list, as in `[\"my-agent\", \"--events\"]`".into())
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(formatter, "{}", path.display()),
            Self::Program(argv) => write!(formatter, "`{}`", argv[0].display()),
        }
    }
}

/// What an embedder says first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    embedder: Takes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Takes {
    kinds: Vec<KindPattern>,
}

/// What an embedder says later.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Feed(FeedLine),
    Answer(AnswerLine),
}

/// What happened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeedLine {
    feed: Value,
    /// For which agent, where it is not that of the settings.
    agent: Option<String>,
    /// Comes back in the answer that says that it was kept.
    id: Option<Value>,
}

/// For whom an embedder speaks: what it feeds is kept there.
pub struct Served {
    /// The host.
    pub host: Arc<Host>,
    /// Calls of no session.
    pub context: CallContext,
}

impl Served {
    async fn feed(&self, feed: Value, agent: Option<String>) -> Result<(), Failure> {
        self.host.feed_of(agent, &self.context, Feed::read(feed)?).await
    }
}

/// Both directions of a link.
struct Ends {
    reader: Pin<Box<dyn AsyncRead + Send>>,
    writer: Pin<Box<dyn AsyncWrite + Send>>,
}

/// The embedder of a server: the one that is connected, if one is.
pub struct Connected {
    link: RwLock<Option<Arc<Link<Value>>>>,
    changes: watch::Sender<()>,
    served: Served,
}

impl Connected {
    /// Links up with an embedder, now and whenever the link was lost, until `stop`. `local` starts it where it is a program.
    #[must_use]
    pub fn with(
        place: Place,
        local: Arc<dyn Backend>,
        notices: Notices,
        stop: CancellationToken,
        served: Served,
    ) -> Arc<Self> {
        let connected = Arc::new(Self { link: RwLock::default(), changes: watch::channel(()).0, served });
        let keeping = connected.clone();
        tokio::spawn(async move { stop.run_until_cancelled(keeping.keep(&place, &*local, &notices)).await });
        connected
    }

    /// Told when it takes other events than before, or none.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    async fn keep(&self, place: &Place, local: &dyn Backend, notices: &Notices) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            let why = match connect(place, local).await {
                Ok(ends) => self.attend(ends).await,
                Err(error) => error.to_string(),
            };
            notices.tell([format!("no embedder at {place}: {why}")]);
            if begun.elapsed() > HELD {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Speaks with it until the link breaks; returns why.
    async fn attend(&self, Ends { reader, writer }: Ends) -> String {
        let mut input = BufReader::new(reader);
        let kinds = match tokio::time::timeout(HELLO, next_line(&mut input, LINE_BYTES)).await {
            Ok(Some(Ok(line))) => match serde_json::from_slice::<Hello>(&line) {
                Ok(hello) => hello.embedder.kinds,
                Err(error) => return format!("its first line does not say which events it takes: {error}"),
            },
            Ok(Some(Err(failure))) => return failure.message,
            Ok(None) => return "it hung up before it said which events it takes".into(),
            Err(_) => return "it does not say which events it takes".into(),
        };
        let (lines, waiting) = mpsc::channel(LINES_WAITING);
        let (feeds, mut fed) = mpsc::channel::<FeedLine>(LINES_WAITING);
        let link = Arc::new(Link::new(kinds, lines.clone()));
        self.set(Some(link.clone()));
        let read = async {
            while let Some(line) = next_line(&mut input, LINE_BYTES).await {
                let said = line.and_then(|line| {
                    serde_json::from_slice(&line).map_err(|_| {
                        Failure::invalid("the line is neither an answer nor a feed")
                            .hint("write {\"answer\": \"a1\", \"result\": {}} or {\"feed\": {\"message\": {…}}}")
                    })
                });
                let refused = match said {
                    Ok(Said::Answer(answer)) => link.answer(answer).err(),
                    // More than wait already are waited for here.
                    Ok(Said::Feed(line)) => {
                        feeds.send(line).await.err().map(|error| Failure::failed(error.to_string()))
                    }
                    Err(failure) => Some(failure),
                };
                if let Some(failure) = refused {
                    // Whoever does not read its faults does not get them.
                    let _ = lines.try_send(json!({ "error": failure.to_json() }));
                }
            }
            "it hung up".to_owned()
        };
        // Beside the answers, which events wait for.
        let feed = async {
            while let Some(FeedLine { feed, agent, id }) = fed.recv().await {
                let told = match (id, self.served.feed(feed, agent).await) {
                    (None, Ok(())) => continue,
                    (None, Err(failure)) => json!({ "error": failure.to_json() }),
                    (Some(id), Ok(())) => json!({ "id": id, "result": {} }),
                    (Some(id), Err(failure)) => json!({ "id": id, "error": failure.to_json() }),
                };
                let _ = lines.try_send(told);
            }
            std::future::pending().await
        };
        let why = tokio::select! { why = read => why, why = write(waiting, writer) => why, why = feed => why };
        self.set(None);
        link.close("the link is gone");
        why
    }

    fn set(&self, link: Option<Arc<Link<Value>>>) {
        *self.link.write() = link;
        self.changes.send_replace(());
    }

    fn link(&self) -> Option<Arc<Link<Value>>> {
        self.link.read().clone()
    }
}

#[async_trait]
impl Embedder for Connected {
    fn kinds(&self) -> Vec<KindPattern> {
        self.link().map(|link| link.kinds().to_vec()).unwrap_or_default()
    }

    async fn ask(&self, event: EmbedderEvent, withdrawn: CancellationToken) -> End {
        match self.link() {
            Some(link) => link.ask(&Map::new(), event, withdrawn).await,
            None => End::Unavailable("it is not connected".into()),
        }
    }

    fn tell(&self, event: EmbedderEvent) -> bool {
        self.link().is_some_and(|link| link.tell(&Map::new(), &event))
    }
}

async fn write(mut lines: mpsc::Receiver<Value>, mut writer: Pin<Box<dyn AsyncWrite + Send>>) -> String {
    while let Some(line) = lines.recv().await {
        let text = format!("{line}\n");
        let written = async {
            writer.write_all(text.as_bytes()).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            return format!("it cannot be written to: {error}");
        }
    }
    "nobody writes to it".into()
}

async fn connect(place: &Place, local: &dyn Backend) -> io::Result<Ends> {
    match place {
        Place::Socket(path) => {
            let stream = UnixStream::connect(path).await?;
            let (peer, own) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
            // It hears what the agent says to its people.
            if peer != own && peer != 0 {
                let message = format!("another user (number {peer}) listens there");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            let (reader, writer) = stream.into_split();
            Ok(Ends { reader: Box::pin(reader), writer: Box::pin(writer) })
        }
        Place::Program(argv) => {
            let started = local.open(ProcessSpec::own(argv.clone())).await;
            let (mut process, input) = started.map_err(|failure| io::Error::other(failure.message))?;
            let (reader, mut printed) = tokio::io::simplex(BUFFER);
            tokio::spawn(async move {
                while let Ok(event) = process.next().await {
                    match event {
                        ProcessEvent::Stdout(bytes) => {
                            // Once nobody reads, it is ended with this.
                            if printed.write_all(&bytes).await.is_err() {
                                return;
                            }
                        }
                        ProcessEvent::Stderr(_) => {}
                        ProcessEvent::Exited(_) => return,
                    }
                }
            });
            Ok(Ends { reader: Box::pin(reader), writer: Box::pin(input) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_socket_or_a_program() {
        assert_eq!(Place::parse("unix:/run/a.sock"), Ok(Place::Socket("/run/a.sock".into())));
        assert_eq!(Place::parse(r#"["a", "--b"]"#), Ok(Place::Program(vec!["a".into(), "--b".into()])));
        for text in ["", "unix:", "unix:a.sock", "/run/a.sock", "[]", "[\" \"]", "[1]", "a --b"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }
}
