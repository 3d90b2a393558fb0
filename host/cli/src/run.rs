//! `toolcrib run`: calls as JSON lines, for programs. A line in is a request, a line out an answer, in order of completion.

use super::call::cancel_on_signal;
use super::setup::Setup;
use super::{Global, INTERRUPTED, calls, choice, notice};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::Host;
use toolcrib::call::session::Session;
use toolcrib::call::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, Arguments as CallArguments, CallContext, Request};
use toolcrib::envelope::{Envelope, Failure, Kind, Output};
use toolcrib::event::{Event, EventSink, NoEvents};
use toolcrib::formats::{Format, Strictness};
use toolcrib::tools::schema::depth;
use toolcrib_serve::{Catalog, Notices};

/// How long a line may be, in bytes.
const LINE_BYTES: usize = ARGUMENTS_BYTES;
/// Lines that wait for a slow reader. Answers wait for room; events beyond it are dropped.
const LINES_WAITING: usize = 1024;
/// Lines that are written together, if they wait.
const LINES_AT_ONCE: usize = 64;

#[derive(clap::Args)]
#[command(after_help = "In:   {\"id\": 1, \"tool\": \"time\", \"arguments\": {}}     or  {\"id\": 2, \"cancel\": 1}
Out:  {\"id\": 1, \"harness_timestamp\": {…}, \"result\": …}  or  {\"id\": 1, …, \"error\": {\"kind\": …, \"message\": …}}
Toolsets: {\"id\": 3, \"open\": {\"toolset\": \"worker\"}} answers {\"session\": \"s1\", …}; calls then carry \"session\": \"s1\".
      {\"id\": 4, \"session\": \"s1\", \"turn\": \"begin\"}, … \"end\", {\"id\": 5, \"session\": \"s1\", \"list\": \"mcp\"}, … \"close\": true
With --events also {\"id\": 1, \"event\": {\"type\": \"stdout\", \"text\": …}} while a call runs.
A line is at most 4 MiB and nests at most 64 levels. At the end of the input running calls still finish.")]
pub(super) struct Arguments {
    /// Also print events while calls run
    #[arg(long)]
    events: bool,
}

/// One line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `id`, and `tool` or `cancel`")]
struct Line {
    id: Value,
    tool: Option<String>,
    arguments: Option<Value>,
    cancel: Option<Value>,
    open: Option<Open>,
    session: Option<String>,
    turn: Option<Turn>,
    list: Option<String>,
    close: Option<bool>,
}

impl Line {
    /// What it asks for, if that is one thing.
    fn asked(self) -> Option<Asked> {
        let Self { tool, arguments, cancel, open, session, turn, list, close, .. } = self;
        match (tool, cancel, open, session, turn, list, close) {
            (Some(tool), None, None, session, None, None, None) => {
                let arguments = CallArguments::Json(arguments.unwrap_or_else(|| json!({})));
                Some(Asked::Call(session, Request { tool, arguments }))
            }
            _ if arguments.is_some() => None,
            (None, Some(target), None, None, None, None, None) => Some(Asked::Cancel(target)),
            (None, None, Some(open), None, None, None, None) => Some(Asked::Open(open)),
            (None, None, None, Some(session), Some(turn), None, None) => Some(Asked::Turn(session, turn)),
            (None, None, None, Some(session), None, Some(format), None) => Some(Asked::List(session, format)),
            (None, None, None, Some(session), None, None, Some(true)) => Some(Asked::Close(session)),
            _ => None,
        }
    }
}

/// What a line asks for.
enum Asked {
    Call(Option<String>, Request),
    Cancel(Value),
    Open(Open),
    Turn(String, Turn),
    List(String, String),
    Close(String),
}

/// A session that is to be opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    toolset: String,
    #[serde(default)]
    bind: Map<String, Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Turn {
    Begin,
    End,
}

/// A line that is not a request, and the id under which it is answered.
struct Faulty {
    id: Box<Value>,
    failure: Failure,
}

impl From<Failure> for Faulty {
    fn from(failure: Failure) -> Self {
        Self { id: Box::default(), failure }
    }
}

/// A line that waits to be written.
enum Written {
    Answer(String),
    /// As text, what a command prints would take up to six times the room.
    Event(Value),
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
    let catalog = Catalog::watching(setup.context.tools.clone(), setup.plugins.clone(), Notices::new(notice));
    let door = Arc::new(Door {
        host,
        context,
        catalog,
        events: arguments.events,
        lines,
        running: Mutex::default(),
        sessions: Mutex::default(),
    });
    let calls = TaskTracker::new();
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(line) = tokio::select! { line = next_line(&mut input) => line, () = cancel.cancelled() => None } {
        door.clone().take(line, &calls).await;
    }
    calls.close();
    calls.wait().await;
    drop(door);
    setup.context.panes.leave().await;
    let lost =
        |error: &dyn std::fmt::Display| Failure::new(Kind::Internal, format!("answers could not be written: {error}"));
    match writer.await.map_err(|error| lost(&error))? {
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
        let id = line.id.clone();
        let asked = match line.asked() {
            Some(Asked::Call(session, request)) => match session.map(|name| self.session(&name)).transpose() {
                Ok(session) => return self.begin(id, session, request, calls).await,
                Err(failure) => Err(failure),
            },
            Some(Asked::Cancel(target)) => return self.cancel(id, &target).await,
            Some(Asked::Open(open)) => self.open(open),
            Some(Asked::Turn(session, turn)) => self.turn(&session, turn),
            Some(Asked::List(session, format)) => self.list(&session, &format).await,
            Some(Asked::Close(session)) => self.close(&session),
            None => Err(Failure::invalid("a line has either `tool` or `cancel`, or is about a session")
                .hint("write {\"id\": 1, \"tool\": \"time\", \"arguments\": {}}")),
        };
        let answer = asked.map(|result| Output { result, content: Vec::new(), notices: Vec::new() });
        self.send(&id, &Envelope::new(answer)).await;
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
        Ok(json!({ "generation": session.generation() }))
    }

    /// The definitions of the tools that a session has now.
    async fn list(&self, session: &str, format: &str) -> Result<Value, Failure> {
        let session = self.session(session)?;
        let format: Format = choice::named(format).ok_or_else(|| {
            let known: Vec<_> = choice::values::<Format>().map(|value| value.get_name().to_owned()).collect();
            Failure::invalid(format!("there is no format `{format}`")).hint(format!("there is {}", known.join(", ")))
        })?;
        let context = self.context.clone().tools(self.catalog.current()).session(session.clone());
        let offered = self.host.offered(&context).await;
        let callable = offered.tools.iter().filter(|tool| self.host.denial(tool, &context).is_none());
        let offers = callable.map(|tool| self.host.offer(tool, &context)).collect();
        let definitions = format.definitions(offers, Strictness::default())?;
        Ok(json!({ "definitions": definitions.json, "generation": session.generation() }))
    }

    /// Calls of the session that run go on.
    fn close(&self, session: &str) -> Result<Value, Failure> {
        let closed = self.sessions.lock().open.remove(session);
        closed.map(|_| json!({ "closed": session })).ok_or_else(|| no_session(session))
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
            let context = self.context.clone().session(session).tools(self.catalog.current());
            let context = context.cancel(cancel).events(events);
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

/// Reads one line; one that is too long is read to its end and refused. `None` at the end of the input.
async fn next_line(input: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Result<Vec<u8>, Failure>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = input.fill_buf().await.ok()?;
        if buffer.is_empty() {
            return (!line.is_empty() || too_long).then_some(if too_long { Err(over_long()) } else { Ok(line) });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > LINE_BYTES;
        if !too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Some(if too_long { Err(over_long()) } else { Ok(line) });
        }
    }
}

fn no_session(name: &str) -> Failure {
    let shown: String = name.chars().take(64).collect();
    Failure::invalid(format!("no session `{shown}` is open"))
        .hint("open one: {\"id\": 1, \"open\": {\"toolset\": \"NAME\"}}")
}

fn over_long() -> Failure {
    Failure::invalid(format!("a line is longer than {LINE_BYTES} bytes"))
}

/// Reads a line's JSON; a blank line is nothing. A fault comes with the id under which it is answered.
fn parse(line: &[u8]) -> Result<Option<Line>, Faulty> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let parsed: Line = serde_json::from_slice(line).map_err(|error| {
        let failure = Failure::invalid(format!("the line is not a request: {error}"))
            .hint("write {\"id\": 1, \"tool\": \"time\", \"arguments\": {}} or {\"id\": 2, \"cancel\": 1}");
        Faulty::from(failure)
    })?;
    // The line itself is one level.
    let deepest =
        [Some(&parsed.id), parsed.arguments.as_ref(), parsed.cancel.as_ref()].into_iter().flatten().map(depth).max();
    let bound = parsed.open.iter().flat_map(|open| open.bind.values()).map(depth).max();
    let deepest = deepest.max(bound);
    if deepest.unwrap_or(0) >= ARGUMENTS_DEPTH {
        let failure = Failure::invalid(format!("the line nests deeper than {ARGUMENTS_DEPTH} levels"));
        return Err(Faulty { id: Box::new(parsed.id), failure });
    }
    Ok(Some(parsed))
}
