//! `toolcrib run`: calls as JSON lines, for programs. A line in is a request, a line out an answer, in order of completion.

mod line;

use super::call::cancel_on_signal;
use super::setup::Setup;
use super::{Global, INTERRUPTED, calls, choice, jobs, notice};
use async_trait::async_trait;
use base::text::lines::next_line;
use line::{Asked, Asking, Faulty, LINE_BYTES, Open, Turn, parse};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::Host;
use toolcrib::call::session::Session;
use toolcrib::call::{CallContext, Request};
use toolcrib::embedder::{Embedder, EmbedderEvent, End, KindPattern, Link};
use toolcrib::envelope::{Envelope, Failure, Kind, Output};
use toolcrib::event::{Event, EventSink, NoEvents};
use toolcrib::formats::{Format, Strictness};
use toolcrib::records::Feed;
use toolcrib::records::Shown;
use toolcrib_serve::{Catalog, Notices};

/// Lines that wait for a slow reader. Answers wait for room; events beyond it are dropped.
const LINES_WAITING: usize = 1024;
/// Lines that are written together, if they wait.
const LINES_AT_ONCE: usize = 64;

#[derive(clap::Args)]
#[command(after_help = "In:   {\"id\": 1, \"tool\": \"time\", \"arguments\": {}}     or  {\"id\": 2, \"cancel\": 1}
Out:  {\"id\": 1, \"harness_timestamp\": {…}, \"result\": …}  or  {\"id\": 1, …, \"error\": {\"kind\": …, \"message\": …}}
Toolsets: {\"id\": 3, \"open\": {\"toolset\": \"worker\"}} answers {\"session\": \"s1\", …}; calls then carry \"session\": \"s1\".
      {\"id\": 4, \"session\": \"s1\", \"turn\": \"begin\"}, … \"end\", {\"id\": 5, \"session\": \"s1\", \"list\": \"mcp\"} (a list also without a session), … \"close\": true
Of an agent (with \"session\", of the session's): {\"id\": 6, \"pinned\": true}, {\"id\": 7, \"feed\": {\"message\": {\"channel\": …, \"author\": …, \"content\": …}}}
Embedder: with --embedder KIND, or a first line {\"embedder\": {\"kinds\": [KIND]}}, tools hand over events:
      {\"id\": 7, \"ask\": {\"ask\": \"a1\", \"kind\": …, \"payload\": …}} wants {\"answer\": \"a1\", \"result\": …} or \"error\": {…}.
With --events also {\"id\": 1, \"event\": {\"type\": \"stdout\", \"text\": …}} while a call runs.
A line is at most 4 MiB and nests at most 64 levels. At the end of the input running calls still finish.")]
pub(super) struct Arguments {
    /// Also print events while calls run
    #[arg(long)]
    events: bool,
    /// Take events of this kind: `message.send`, `message.*` for all that begin so, or `*` (repeatable, or parted by commas)
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = KindPattern::parse)]
    embedder: Vec<KindPattern>,
}

/// A line that waits to be written.
enum Written {
    Answer(String),
    /// As text, what a command prints would take up to six times the room.
    Event(Value),
}

impl From<Value> for Written {
    fn from(line: Value) -> Self {
        Self::Event(line)
    }
}

/// What the lines share.
struct Door {
    host: Arc<Host>,
    context: CallContext,
    /// Calls have the tools as they are when they begin.
    catalog: Catalog,
    events: bool,
    lines: Sender<Written>,
    /// Calls in flight, by the text of their id.
    running: Mutex<HashMap<String, CancellationToken>>,
    sessions: Mutex<Sessions>,
    /// Whoever writes the lines, once it has said which events it takes.
    link: Arc<OnceLock<Arc<Link<Written>>>>,
    /// A line was about something else than who takes events.
    begun: AtomicBool,
}

/// Sessions on toolsets, by name.
#[derive(Default)]
struct Sessions {
    open: HashMap<String, Arc<Session>>,
    /// How many there ever were.
    opened: u64,
}

/// Sessions that may be open at one time.
const SESSIONS: usize = 10_000;

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::serving(global).await?;
    let (host, context) = (setup.host.clone(), setup.context.clone());
    cancel_on_signal(context.cancel.clone())?;
    let _announced = calls::announce(&setup);
    let cancel = context.cancel.clone();
    let (lines, waiting) = channel(LINES_WAITING);
    let writer = tokio::spawn(write_lines(waiting, cancel.clone()));
    let catalog = Catalog::watching(setup.context.tools.clone(), setup.plugins.clone(), Notices::new(notice), None);
    let link = Arc::<OnceLock<Arc<Link<Written>>>>::default();
    let jobs_running = {
        // It goes before the lines do, which end when nobody can write any.
        let firing = context.clone().embedder(Arc::new(AtDoor(link.clone())));
        jobs::begin(&setup, &firing, &catalog).await?
    };
    let door = Arc::new(Door {
        host,
        context,
        catalog,
        events: arguments.events,
        lines,
        running: Mutex::default(),
        sessions: Mutex::default(),
        link,
        begun: AtomicBool::new(false),
    });
    if !arguments.embedder.is_empty() {
        door.embed(arguments.embedder.clone())?;
    }
    let calls = TaskTracker::new();
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(line) =
        tokio::select! { line = next_line(&mut input, LINE_BYTES) => line, () = cancel.cancelled() => None }
    {
        door.clone().take(line, &calls).await;
    }
    // Nobody is there to answer any more.
    door.link.get().inspect(|link| link.close("its input has ended"));
    calls.close();
    calls.wait().await;
    drop(door);
    jobs::end(jobs_running).await;
    setup.context.panes.leave().await;
    let lost =
        |error: &dyn std::fmt::Display| Failure::new(Kind::Internal, format!("answers could not be written: {error}"));
    let written = writer.await.map_err(|error| lost(&error))?;
    setup.settled().await;
    match written {
        Ok(()) if cancel.is_cancelled() => Ok(ExitCode::from(INTERRUPTED)),
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(lost(&error)),
        // The reader has gone, so there is nobody to report it to.
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes lines until all senders are gone, those that wait together. A reader that has gone cancels what runs.
async fn write_lines(mut lines: Receiver<Written>, cancel: CancellationToken) -> io::Result<()> {
    let mut stdout = tokio::io::stdout();
    let mut waiting = Vec::new();
    while lines.recv_many(&mut waiting, LINES_AT_ONCE).await > 0 {
        let mut text = String::new();
        for line in waiting.drain(..) {
            match line {
                Written::Answer(line) => text += &line,
                Written::Event(event) => text += &event.to_string(),
            }
            text.push('\n');
        }
        let mut written = stdout.write_all(text.as_bytes()).await;
        if written.is_ok() {
            written = stdout.flush().await;
        }
        if written.is_err() {
            cancel.cancel();
            return written;
        }
    }
    Ok(())
}

impl Door {
    async fn take(self: Arc<Self>, line: Result<Vec<u8>, Failure>, calls: &TaskTracker) {
        let line = match line.map_err(Faulty::from).and_then(|line| parse(&line)) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(Faulty { id, failure }) => return self.answer(*id, failure).await,
        };
        let Asking { id, asked } = line;
        if !matches!(asked, Asked::Embed(_)) {
            self.begun.store(true, Ordering::Relaxed);
        }
        let asked = match asked {
            Asked::Call(session, request) => match session.map(|name| self.session(&name)).transpose() {
                Ok(session) => return self.begin(id, session, request, calls).await,
                Err(failure) => Err(failure),
            },
            Asked::Cancel(target) => return self.cancel(id, &target).await,
            Asked::Open(open) => self.open(open),
            Asked::Turn(session, turn) => self.turn(&session, turn),
            Asked::List(session, format) => self.list(session, &format).await,
            Asked::Close(session) => self.close(&session).await,
            Asked::Pinned(session) => match self.pinned(session).await {
                Ok(answer) => return self.send(&id, &Envelope::new(Ok(answer))).await,
                Err(failure) => Err(failure),
            },
            Asked::Feed(session, feed) => self.feed(session, feed).await,
            Asked::Embed(kinds) => self.embed(kinds),
            Asked::Answer(answer) => match self.link.get() {
                None => Err(Failure::invalid("no event waits: nobody said that events are taken here")),
                // It is not answered itself.
                Some(link) => match link.answer(answer) {
                    Ok(()) => return,
                    Err(failure) => Err(failure),
                },
            },
        };
        let answer = asked.map(|result| Output { result, ..Output::default() });
        self.send(&id, &Envelope::new(answer)).await;
    }

    /// Whoever writes the lines takes events of these kinds.
    fn embed(&self, kinds: Vec<KindPattern>) -> Result<Value, Failure> {
        if self.begun.load(Ordering::Relaxed) {
            return Err(Failure::invalid("which events are taken is said by the first line, or by `--embedder`"));
        }
        let link = Arc::new(Link::new(kinds.clone(), self.lines.clone()));
        self.link.set(link).map_err(|_| Failure::invalid("which events are taken was said before"))?;
        Ok(json!({ "kinds": kinds }))
    }

    /// The context of what a line asks for. Events of its calls begin with its id.
    fn context(&self, id: &Value) -> CallContext {
        let context = self.context.clone().tools(self.catalog.current());
        match self.link.get() {
            None => context,
            Some(link) => {
                let head = Map::from_iter([("id".to_owned(), id.clone())]);
                context.embedder(Arc::new(AtLine { link: link.clone(), head }))
            }
        }
    }

    fn open(&self, Open { toolset, bind }: Open) -> Result<Value, Failure> {
        let session = Session::on(self.host.toolset(&toolset)?, bind)?;
        let mut sessions = self.sessions.lock();
        if sessions.open.len() >= SESSIONS {
            return Err(Failure::limit(format!("{SESSIONS} sessions are open")).hint("close some"));
        }
        sessions.opened += 1;
        let name = format!("s{}", sessions.opened);
        sessions.open.insert(name.clone(), Arc::new(session));
        Ok(json!({ "session": name, "toolset": toolset, "generation": 0 }))
    }

    fn turn(&self, session: &str, turn: Turn) -> Result<Value, Failure> {
        let session = self.session(session)?;
        session.turn(matches!(turn, Turn::Begin))?;
        let mut answer = json!({ "generation": session.generation() });
        if let Turn::End = turn {
            answer["told"] = session.told().into();
        }
        Ok(answer)
    }

    /// The definitions of the tools that a session has now, or those of calls without one.
    async fn list(&self, session: Option<String>, format: &str) -> Result<Value, Failure> {
        let session = session.map_or_else(|| Ok(self.context.session.clone()), |name| self.session(&name))?;
        let format: Format = choice::named(format).ok_or_else(|| {
            let known: Vec<_> = choice::values::<Format>().map(|value| value.get_name().to_owned()).collect();
            Failure::invalid(format!("there is no format `{format}`")).hint(format!("there is {}", known.join(", ")))
        })?;
        let context = self.context(&Value::Null).session(session.clone());
        let offered = self.host.offered(&context).await;
        let callable = offered.tools.iter().filter(|tool| self.host.denial(tool, &context).is_none());
        let offers = callable.map(|tool| self.host.offer(tool, &context)).collect();
        let definitions = format.definitions(offers, Strictness::default())?;
        Ok(json!({ "definitions": definitions.json, "generation": session.generation() }))
    }

    /// What plugins keep before the eyes of a session's agent.
    async fn pinned(&self, session: Option<String>) -> Result<Output, Failure> {
        let session = session.map_or_else(|| Ok(self.context.session.clone()), |name| self.session(&name))?;
        let Shown { pinned, notices } = self.host.pinned(&self.context(&Value::Null).session(session)).await;
        Ok(Output { result: json!({ "pinned": pinned }), notices, ..Output::default() })
    }

    /// Keeps what happened around a session's agent.
    async fn feed(&self, session: Option<String>, feed: Value) -> Result<Value, Failure> {
        let feed = Feed::read(feed)?;
        let session = session.map_or_else(|| Ok(self.context.session.clone()), |name| self.session(&name))?;
        self.host.feed(&self.context(&Value::Null).session(session), feed).await?;
        Ok(json!({ "kept": true }))
    }

    /// Calls of the session that run go on; its jobs end, but for those that were to outlive it.
    async fn close(&self, session: &str) -> Result<Value, Failure> {
        let closed = self.sessions.lock().open.remove(session).ok_or_else(|| no_session(session))?;
        self.host.close_session(&closed).await;
        Ok(json!({ "closed": session }))
    }

    fn session(&self, name: &str) -> Result<Arc<Session>, Failure> {
        self.sessions.lock().open.get(name).cloned().ok_or_else(|| no_session(name))
    }

    async fn begin(self: Arc<Self>, id: Value, session: Option<Arc<Session>>, request: Request, calls: &TaskTracker) {
        let (key, cancel) = (id.to_string(), self.context.cancel.child_token());
        let taken = {
            let mut running = self.running();
            let taken = running.contains_key(&key);
            if !taken {
                running.insert(key.clone(), cancel.clone());
            }
            taken
        };
        if taken {
            let failure =
                Failure::invalid(format!("a call with the id `{key}` is in flight")).hint("give every call its own id");
            // Under that id it would pass for the answer of the running call.
            return self.answer(Value::Null, failure).await;
        }
        calls.spawn(async move {
            let events: Arc<dyn EventSink> = if self.events {
                Arc::new(Lines { id: id.clone(), lines: self.lines.clone() })
            } else {
                Arc::new(NoEvents)
            };
            let session = session.unwrap_or_else(|| self.context.session.clone());
            let context = self.context(&id).session(session).cancel(cancel).events(events);
            let envelope = self.host.call(request, &context).await;
            self.running().remove(&key);
            self.send(&id, &envelope).await;
        });
    }

    /// A cancelled call still gives its own answer; the request fails if there is no such call.
    async fn cancel(&self, id: Value, target: &Value) {
        let found = self.running().get(&target.to_string()).map(CancellationToken::cancel).is_some();
        if !found {
            let failure = Failure::invalid(format!("no call with the id `{target}` is in flight"))
                .hint("it may have ended already");
            self.answer(id, failure).await;
        }
    }

    fn running(&self) -> parking_lot::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock()
    }

    async fn answer(&self, id: Value, failure: Failure) {
        self.send(&id, &Envelope::new(Err(failure))).await;
    }

    async fn send(&self, id: &Value, envelope: &Envelope) {
        let line = serde_json::to_string(&Answer { id, envelope }).expect("an envelope is plain data");
        // The writer ends only when the reader has gone.
        let _ = self.lines.send(Written::Answer(line)).await;
    }
}

/// The line that answers a request.
#[derive(Serialize)]
struct Answer<'l> {
    id: &'l Value,
    #[serde(flatten)]
    envelope: &'l Envelope,
}

/// The embedder of one call, on lines with its id.
struct AtLine {
    link: Arc<Link<Written>>,
    head: Map<String, Value>,
}

#[async_trait]
impl Embedder for AtLine {
    fn kinds(&self) -> Vec<KindPattern> {
        self.link.kinds().to_vec()
    }

    async fn ask(&self, event: EmbedderEvent, withdrawn: CancellationToken) -> End {
        self.link.ask(&self.head, event, withdrawn).await
    }

    fn tell(&self, event: EmbedderEvent) -> bool {
        self.link.tell(&self.head, &event)
    }
}

/// The embedder of what no line asked for: of schedules.
struct AtDoor(Arc<OnceLock<Arc<Link<Written>>>>);

#[async_trait]
impl Embedder for AtDoor {
    fn kinds(&self) -> Vec<KindPattern> {
        let open = self.0.get().filter(|link| link.is_open());
        open.map(|link| link.kinds().to_vec()).unwrap_or_default()
    }

    async fn ask(&self, event: EmbedderEvent, withdrawn: CancellationToken) -> End {
        match self.0.get() {
            Some(link) => link.ask(&Map::new(), event, withdrawn).await,
            None => End::Unavailable("nobody said that events are taken here".into()),
        }
    }

    fn tell(&self, event: EmbedderEvent) -> bool {
        self.0.get().is_some_and(|link| link.tell(&Map::new(), &event))
    }
}

/// Events of one call as lines.
struct Lines {
    id: Value,
    lines: Sender<Written>,
}

impl EventSink for Lines {
    fn emit(&self, event: Event) {
        let _ = self.lines.try_send(Written::Event(json!({ "id": self.id, "event": event })));
    }
}

fn no_session(name: &str) -> Failure {
    let shown: String = name.chars().take(64).collect();
    Failure::invalid(format!("no session `{shown}` is open"))
        .hint("open one: {\"id\": 1, \"open\": {\"toolset\": \"NAME\"}}")
}
