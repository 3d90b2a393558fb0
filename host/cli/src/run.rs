//! `toolcrib run`: calls as JSON lines, for programs. A line in is a request, a line out an answer, in order of completion.

use super::call::cancel_on_signal;
use super::setup::Setup;
use super::{Global, INTERRUPTED, calls, notice};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::Host;
use toolcrib::call::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, Arguments as CallArguments, CallContext, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::event::{Event, EventSink, NoEvents};
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
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::serving(global).await?;
    let (host, context) = (setup.host.clone(), setup.context.clone());
    cancel_on_signal(context.cancel.clone())?;
    let _announced = calls::announce(&setup);
    let cancel = context.cancel.clone();
    let (lines, waiting) = channel(LINES_WAITING);
    let writer = tokio::spawn(write_lines(waiting, cancel.clone()));
    let catalog = Catalog::watching(setup.context.tools.clone(), setup.plugins.clone(), Notices::new(notice));
    let door = Arc::new(Door { host, context, catalog, events: arguments.events, lines, running: Mutex::default() });
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
        match (line.tool, line.cancel) {
            (Some(tool), None) => {
                let arguments = CallArguments::Json(line.arguments.unwrap_or_else(|| json!({})));
                self.begin(id, Request { tool, arguments }, calls).await;
            }
            (None, Some(target)) => self.cancel(id, &target).await,
            _ => {
                let failure = Failure::invalid("a line has either `tool` or `cancel`");
                self.answer(id, failure.hint("write {\"id\": 1, \"tool\": \"time\", \"arguments\": {}}")).await;
            }
        }
    }

    async fn begin(self: Arc<Self>, id: Value, request: Request, calls: &TaskTracker) {
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
            let context = self.context.clone().tools(self.catalog.current()).cancel(cancel).events(events);
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
    if deepest.unwrap_or(0) >= ARGUMENTS_DEPTH {
        let failure = Failure::invalid(format!("the line nests deeper than {ARGUMENTS_DEPTH} levels"));
        return Err(Faulty { id: Box::new(parsed.id), failure });
    }
    Ok(Some(parsed))
}
