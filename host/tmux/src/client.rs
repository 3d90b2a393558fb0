//! One persistent control-mode client: command lines in, answers and the output of its session's panes out.
//!
//! It is opened once and costs nothing while nothing happens. What the panes print is always read, whether somebody watches or not: a
//! client that falls behind holds up the programs and is thrown out in the end.

use super::commands::{self, Command};
use super::control::{Answer, Notice, Parser};
use super::screen::{self, Door, gone};
use async_trait::async_trait;
use backend::{Input, Process, ProcessEvent};
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// How long a client may take to attach, and a server to answer: one that has been stopped, or lies behind a link that fell silent, does
/// not tell so.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client may take to leave.
const LEAVE: Duration = Duration::from_millis(300);

/// An open client.
pub(super) struct Client {
    shared: Arc<Shared>,
    /// Its two directions.
    tasks: TaskTracker,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// None once the client is gone.
    lines: Option<UnboundedSender<String>>,
    attached: Option<oneshot::Sender<()>>,
    waiting: VecDeque<Waiting>,
    watchers: HashMap<u32, UnboundedSender<Vec<u8>>>,
}

/// Who waits for an answer.
struct Waiting {
    sender: oneshot::Sender<Answer>,
    /// A line that runs others is answered once for each of them; then this word comes.
    last: Option<String>,
    first: Option<Answer>,
}

/// The output of one pane, from when it was asked for. Ends with the client or the pane's session.
pub(super) struct Output {
    pane: u32,
    receiver: UnboundedReceiver<Vec<u8>>,
    shared: Arc<Shared>,
}

/// What a command printed, and when by the server's clock, in seconds since 1970.
#[derive(Default)]
pub(super) struct Said {
    pub(super) time: u64,
    pub(super) text: String,
}

impl Client {
    /// Takes over a process that speaks control mode, and waits until it is attached: before, the server does not know it.
    pub(super) async fn open(process: Box<dyn Process>, input: Input) -> Result<Self, Failure> {
        let (lines, queue) = unbounded_channel();
        let (attached, is_attached) = oneshot::channel();
        let shared = Arc::new(Shared::default());
        *shared.lock() = State { lines: Some(lines), attached: Some(attached), ..State::default() };
        let tasks = TaskTracker::new();
        tasks.spawn(write(input, queue));
        tasks.spawn(follow(process, shared.clone()));
        let client = Self { shared, tasks };
        match tokio::time::timeout(PATIENCE, is_attached).await {
            Ok(Ok(())) => Ok(client),
            _ => Err(gone()),
        }
    }

    /// Runs one command that must succeed.
    pub(super) async fn run(&self, command: &Command) -> Result<String, Failure> {
        self.command(command).await?.map_err(|reason| screen::said(&reason))
    }

    /// Runs commands in one go, for the price of one. All are run, even after one that fails; the first failure is returned.
    pub(super) async fn run_all<const N: usize>(&self, commands: [Command; N]) -> Result<[Said; N], Failure> {
        let asked = commands.map(|command| self.ask(&command, false));
        let mut said: [Said; N] = std::array::from_fn(|_| Said::default());
        let mut failed = None;
        for (said, asked) in said.iter_mut().zip(asked) {
            let Answer { time, text } = answer(asked?).await?;
            match text {
                Ok(text) => *said = Said { time, text },
                Err(reason) => failed = failed.or(Some(reason)),
            }
        }
        failed.map_or(Ok(said), |reason| Err(screen::said(&reason)))
    }

    /// Runs a command that runs others, such as `if-shell`. Returns what the first of them said.
    pub(super) async fn run_nested(&self, command: &Command) -> Result<String, Failure> {
        let Answer { text, .. } = answer(self.ask(command, true)?).await?;
        text.map_err(|reason| screen::said(&reason))
    }

    /// As [`Self::run_nested`], whatever comes of it.
    pub(super) fn post_nested(&self, command: &Command) {
        let _ = self.ask(command, true);
    }

    fn ask(&self, command: &Command, is_nested: bool) -> Result<oneshot::Receiver<Answer>, Failure> {
        let last = is_nested.then(random_id);
        let mut lines = command.line() + "\n";
        if let Some(word) = &last {
            lines += &(commands::ask_of_client(word).line() + "\n");
        }
        let (sender, receiver) = oneshot::channel();
        let mut state = self.shared.lock();
        // Under one lock, so that answers come in the order of the lines.
        let sent = state.lines.as_ref().is_some_and(|queue| queue.send(lines).is_ok());
        if !sent {
            return Err(gone());
        }
        state.waiting.push_back(Waiting { sender, last, first: None });
        Ok(receiver)
    }

    /// The client still has its server.
    pub(super) fn is_open(&self) -> bool {
        self.shared.lock().lines.is_some()
    }

    /// Lets the client leave its server, and waits until it has. What its panes print is read until then: a server that cannot get rid of
    /// it keeps the client.
    pub(super) async fn leave(&self) {
        self.shared.lock().lines = None;
        self.tasks.close();
        let _ = tokio::time::timeout(LEAVE, self.tasks.wait()).await;
    }

    /// Hands out what a pane prints from now on; one watcher a pane.
    pub(super) fn watch(&self, pane: u32) -> Output {
        let (sender, receiver) = unbounded_channel();
        let mut state = self.shared.lock();
        if state.lines.is_some() {
            state.watchers.insert(pane, sender);
        }
        Output { pane, receiver, shared: self.shared.clone() }
    }
}

#[async_trait]
impl Door for Client {
    async fn command(&self, command: &Command) -> Result<Result<String, String>, Failure> {
        Ok(answer(self.ask(command, false)?).await?.text)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Its input ends, and with that the client.
        self.shared.lock().lines = None;
    }
}

impl Output {
    /// The next piece; an empty one when panes have come or gone, none when the server let the client go.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.receiver.recv().await
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.receiver.close();
        let mut state = self.shared.lock();
        if state.watchers.get(&self.pane).is_some_and(UnboundedSender::is_closed) {
            state.watchers.remove(&self.pane);
        }
    }
}

impl Shared {
    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    fn take(&self, notice: Notice) {
        let mut state = self.lock();
        match notice {
            Notice::Output { pane, bytes } => {
                if let Some(watcher) = state.watchers.get(&pane) {
                    let _ = watcher.send(bytes);
                }
            }
            Notice::Answer(answer) => {
                let Some(waiting) = state.waiting.front_mut() else { return };
                let is_last = waiting.last.as_ref().is_none_or(|word| answer.text.as_ref() == Ok(word));
                if !is_last {
                    waiting.first.get_or_insert(answer);
                    return;
                }
                if let Some(Waiting { sender, first, .. }) = state.waiting.pop_front() {
                    let _ = sender.send(first.unwrap_or(answer));
                }
            }
            Notice::Attached => {
                if let Some(attached) = state.attached.take() {
                    let _ = attached.send(());
                }
            }
            // Whoever waits for a pane looks whether it is still there.
            Notice::Changed => state.watchers.values().for_each(|watcher| _ = watcher.send(Vec::new())),
            Notice::Exit => *state = State::default(),
        }
    }
}

async fn write(mut input: Input, mut queue: UnboundedReceiver<String>) {
    while let Some(line) = queue.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

async fn follow(mut process: Box<dyn Process>, shared: Arc<Shared>) {
    let (mut parser, mut notices) = (Parser::default(), Vec::new());
    loop {
        match process.next().await {
            Ok(ProcessEvent::Stdout(bytes)) => parser.push(&bytes, &mut notices),
            Ok(ProcessEvent::Stderr(_)) => {}
            Ok(ProcessEvent::Exited(_)) | Err(_) => notices.push(Notice::Exit),
        }
        for notice in notices.drain(..) {
            let is_over = notice == Notice::Exit;
            shared.take(notice);
            if is_over {
                return;
            }
        }
    }
}

async fn answer(asked: oneshot::Receiver<Answer>) -> Result<Answer, Failure> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|_| gone()),
        Err(_) => Err(Failure::new(
            Kind::Unavailable,
            format!("the tmux server did not answer within {} s", PATIENCE.as_secs()),
        )
        .hint("it may have been stopped; try again when it answers")),
    }
}
