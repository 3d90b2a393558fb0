//! `toolcrib calls`: what runs in this user's other Toolcrib programs, and an end to it.
//!
//! Each program that makes calls listens on a socket in a directory of this user's alone. There it can be asked for its calls, and to end
//! one; and for its open questions, which `approve.rs` answers, as long as each of its commands runs in a cell, where that socket is not: an
//! approved command could answer the next question otherwise.

use super::screen::{Table, print_json};
use super::setup::{Setup, dirs, usage};
use base::disk::{OwnDir, told};
use base::envelope::duration;
use base::text::id::random_id;
use base::text::sanitize;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolcrib::Host;
use toolcrib::call::CallContext;
use toolcrib::call::running::RunningCall;
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval;
use toolcrib::policy::approval::OpenQuestion;

/// Most single calls are over by then.
const SOON: Duration = Duration::from_millis(200);
/// How long a program may take to ask, and to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Programs that are answered at one time.
const ASKING: usize = 8;
/// How long a question may be, and an answer, in bytes: a line for each of ten thousand calls.
const ASKED_BYTES: u64 = 1 << 10;
const ANSWER_BYTES: u64 = 8 << 20;
/// How much of an id is shown; more is typed where that is not enough.
pub(super) const SHOWN_ID: usize = 8;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// End this call, by its id or the beginning of it
    #[arg(long, value_name = "ID", value_parser = id)]
    cancel: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a program can be asked.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Asked {
    List,
    Cancel(String),
    Questions,
    Answer { number: u64, answer: approval::Answer },
}

/// What it answers.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Calls(Vec<RunningCall>),
    Cancelled(bool),
    Questions(Vec<OpenQuestion>),
    /// Whether the question was still open.
    Answered(bool),
    /// Questions are not answered by others, and why.
    Closed(String),
}

/// A program that makes calls, as others reach it.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) process: u32,
    pub(super) socket: String,
}

/// Lets other programs of this user ask for the calls of this one, while it lives.
pub(super) struct Announced {
    task: JoinHandle<()>,
    place: Arc<Mutex<Option<Place>>>,
}

/// The socket where a program listens; gone with it. What is announced holds it, not the task: whoever ends may not wait until that is gone.
struct Place {
    directory: OwnDir,
    name: String,
}

/// Has the calls of this program listed by `toolcrib calls`. Where that cannot be, they run all the same.
pub(super) fn announce(setup: &Setup) -> Option<Announced> {
    let (listener, place) = Place::open(&setup.dirs).ok()?;
    let task = tokio::spawn(serve(listener, setup.host.clone(), setup.context.clone()));
    Some(Announced { task, place: Arc::new(Mutex::new(Some(place))) })
}

/// The same for a program that may end at once: one that ends sooner never opens a socket.
pub(super) fn announce_later(setup: &Setup) -> Announced {
    let (dirs, host, context) = (setup.dirs.clone(), setup.host.clone(), setup.context.clone());
    let place = Arc::new(Mutex::new(None));
    let opened = place.clone();
    let task = tokio::spawn(async move {
        tokio::time::sleep(SOON).await;
        if let Ok((listener, place)) = Place::open(&dirs) {
            *opened.lock().expect("nobody panics while holding it") = Some(place);
            serve(listener, host, context).await;
        }
    });
    Announced { task, place }
}

impl Place {
    fn open(dirs: &Dirs) -> io::Result<(UnixListener, Self)> {
        let directory = OwnDir::open(&dirs.state)?.below("calls")?;
        let name = format!("{}-{}", std::process::id(), random_id());
        let listener = UnixListener::bind(directory.reach(&name))?;
        Ok((listener, Self { directory, name }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.directory.remove(OsStr::new(&self.name));
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.task.abort();
        drop(self.place.lock().map(|mut place| place.take()));
    }
}

async fn serve(listener: UnixListener, host: Arc<Host>, context: CallContext) {
    let room = Arc::new(Semaphore::new(ASKING));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (host, context) = (host.clone(), context.clone());
                tokio::spawn(async move {
                    let _ = timeout(PATIENCE, answer(stream, &host, &context)).await;
                    drop(place);
                });
            }
            // Descriptors ran out: somebody else has to give one back first.
            Err(_) => tokio::time::sleep(SOON).await,
        }
    }
}

/// Answers one line, if it is a question.
async fn answer(stream: UnixStream, host: &Host, context: &CallContext) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader.take(ASKED_BYTES)).read_line(&mut line).await?;
    let closed = async || host.lets_others_answer(context).await.map_err(Answer::Closed);
    let answer = match serde_json::from_str(&line)? {
        Asked::List => Ok(Answer::Calls(host.calls())),
        Asked::Cancel(id) => Ok(Answer::Cancelled(host.cancel(&id))),
        Asked::Questions => closed().await.map(|()| Answer::Questions(host.approvals().open())),
        Asked::Answer { number, answer } => {
            closed().await.map(|()| Answer::Answered(host.approvals().answer(number, answer)))
        }
    };
    let answer = answer.unwrap_or_else(|closed| closed);
    writer.write_all(format!("{}\n", json!(answer)).as_bytes()).await
}

pub(super) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = directory()?;
    let mut found = Vec::new();
    for (program, answer) in ask_all(&directory, &Asked::List).await? {
        if let Answer::Calls(calls) = answer {
            found.extend(calls.into_iter().map(|call| (program.process, program.socket.clone(), call)));
        }
    }
    found.sort_by_key(|(_, _, call)| call.since_unix_millis);
    match &arguments.cancel {
        Some(id) => cancel(&directory, id, &found).await,
        None => list(&found, arguments.json),
    }
}

/// Where programs listen.
pub(super) fn directory() -> Result<OwnDir, Failure> {
    OwnDir::open(&dirs()?.state).and_then(|state| state.below("calls")).map_err(unusable)
}

fn unusable(error: io::Error) -> Failure {
    Failure::new(Kind::Unavailable, told(&error))
}

/// Asks all programs at once; those that do not answer are left out.
pub(super) async fn ask_all(directory: &OwnDir, asked: &Asked) -> Result<Vec<(Program, Answer)>, Failure> {
    let programs = programs(directory).map_err(unusable)?;
    let answers = join_all(programs.iter().map(|program| ask(directory, program, asked))).await;
    Ok(programs.into_iter().zip(answers).filter_map(|(program, answer)| Some((program, answer?))).collect())
}

fn list(found: &[(u32, String, RunningCall)], as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let calls = found.iter().map(|(process, _, call)| {
            let mut call = json!(call);
            call["process"] = (*process).into();
            call
        });
        return print_json(&calls.collect());
    }
    let mut table = Table::new(&["call", "tool", "for", "on", "began", "process", "state"]);
    for (process, _, RunningCall { id, principal, tool, backend, since_unix_millis, asks }) in found {
        let since = Duration::from_millis(*since_unix_millis);
        let age = age(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since).unwrap_or_default());
        let age = format!("{age} ago");
        let (id, process) = (id.get(..SHOWN_ID).unwrap_or(id), process.to_string());
        let state = if *asks { "asks a person" } else { "runs" };
        table.row([id, tool, principal.as_str(), backend, &age, &process, state]);
    }
    table.print()
}

/// How long ago, to the second, the minute or the hour.
fn age(passed: Duration) -> String {
    let seconds = passed.as_secs().max(1);
    let unit = [3600, 60, 1].into_iter().find(|unit| seconds >= *unit).unwrap_or(1);
    duration(Duration::from_secs(seconds / unit * unit))
}

async fn cancel(directory: &OwnDir, id: &str, found: &[(u32, String, RunningCall)]) -> Result<ExitCode, Failure> {
    let mut meant = found.iter().filter(|(_, _, call)| call.id.starts_with(id));
    let (one, other) = (meant.next(), meant.next());
    let Some((process, socket, call)) = one else {
        return Err(usage(format!("no call `{id}` runs")).hint("`toolcrib calls` lists the calls that run"));
    };
    if other.is_some() {
        return Err(usage(format!("several calls begin with `{id}`")).hint("type more of the id"));
    }
    let program = Program { process: *process, socket: socket.clone() };
    match ask(directory, &program, &Asked::Cancel(call.id.clone())).await {
        Some(Answer::Cancelled(true)) => {
            // Any program of this user could have answered.
            super::print(&format!("`{}` is being cancelled\n", sanitize::line(&call.tool)))
        }
        Some(_) | None => Err(Failure::new(Kind::Unavailable, format!("the call `{id}` has ended already"))),
    }
}

/// The programs that listen. Only their names are looked at.
fn programs(directory: &OwnDir) -> io::Result<Vec<Program>> {
    let entries = std::fs::read_dir(directory.reach("."))?;
    let names: Vec<OsString> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    let program = |name: OsString| {
        let socket = name.into_string().ok()?;
        let process = socket.split('-').next()?.parse().ok()?;
        Some(Program { process, socket })
    };
    Ok(names.into_iter().filter_map(program).collect())
}

/// Asks one program. What a program left behind that is gone is removed.
pub(super) async fn ask(directory: &OwnDir, program: &Program, asked: &Asked) -> Option<Answer> {
    let exchange = async {
        let mut stream = UnixStream::connect(directory.reach(&program.socket)).await?;
        stream.write_all(format!("{}\n", json!(asked)).as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(stream.take(ANSWER_BYTES)).read_line(&mut line).await?;
        io::Result::Ok(serde_json::from_str(&line)?)
    };
    match timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(answer) => Some(answer),
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = directory.remove(OsStr::new(&program.socket));
            }
            None
        }
    }
}

/// The beginning of an id.
pub(super) fn id(text: &str) -> Result<String, String> {
    let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(text.to_ascii_lowercase()) } else { Err("an id is hexadecimal; `toolcrib calls` shows them".into()) }
}
