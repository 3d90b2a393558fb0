//! A command in a pane: wait for the pane's turn, stage the text, type one line, follow the output to the mark of its end.
//!
//! What a shell does that gives no mark any more is asked in `look.rs`.

use super::client::{Output, Said};
use super::commands::{self, Command};
use super::condition::{self, Condition, Prompt, Since};
use super::hold::{Hold, told};
use super::left_running::{End, Left};
use super::line::settle;
use super::look::Doing;
use super::pane::Pane;
use super::screen::Door as _;
use super::server::FIELD;
use super::wrapper::{self, Cleaning, Files};
use super::{Session, Turn};
use backend::Backend;
use backend::osc133::{Breaks, Scanner, State};
use base::envelope::{Failure, Kind, duration};
use base::text::id::random_id;
use futures_util::future::BoxFuture;
use policy::shell::AdmittedCommand;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How long a call waits for its turn in a pane, at most.
pub const TURN: Duration = Duration::from_secs(30);
/// How often a pane that another host holds is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a pane may take to change what it runs, while its shell is not there.
const A_MOMENT: Duration = Duration::from_millis(5);
/// How often a prompt is looked for that comes at any moment.
const PROMPT_COMES: Duration = Duration::from_millis(1);
/// How long a new shell may take to show its first prompt before a line is typed all the same: start-up files are slow, and prompts may be empty.
const FIRST_PROMPT: Duration = Duration::from_secs(1);
/// How long a shell may take to begin with what was typed, whatever the wait is; a new one first reads its start-up files.
const BEGIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10);
/// How long a shell that has opened the file of a command may take to tell so.
const LAST_MOMENT: Duration = Duration::from_millis(20);
/// How long a shell may take to start a program.
const STARTS: Duration = Duration::from_millis(50);
/// How long the mark of an end may be on its way when the shell waits already.
const LATE_MARK: Duration = Duration::from_millis(200);
/// How often a pane is looked at while its command runs: nothing tells of one that was given another process, or that lost a mark.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// How many of these looks pass before the kernel is asked where panes lead elsewhere: whether a shell is in the foreground is not seen.
const LOOKS_ELSEWHERE: u32 = 5;
/// The file of a command that is not to run any more.
const NOTHING: &str = "return 0\n";

/// A command that runs in a pane.
pub struct Run {
    session: Arc<Session>,
    number: u32,
    /// The pane's name, and the same for people.
    name: String,
    shown: String,
    /// The beginning of the command.
    told: String,
    /// None once the command has ended.
    following: Option<Following>,
    is_interrupted: AtomicBool,
}

/// A command that a pane's shell has begun with.
pub struct Begun {
    pub run: Run,
    /// Where it runs.
    pub directory: String,
    pub notices: Vec<String>,
}

struct Following {
    output: Output,
    /// The process of the pane, as it was when the command was typed.
    pid: String,
    /// When the command was typed.
    began: Since,
    files: Files,
    look_after: Interval,
    looks: u32,
    scanner: Scanner,
    /// What came with the first mark.
    early: Vec<u8>,
    /// The pane is this call's as long as these live: among hosts, and within this one.
    _hold: Hold,
    turn: OwnedMutexGuard<Turn>,
}

/// What a command in a pane does.
pub enum Ended {
    /// It printed these bytes.
    Output(Vec<u8>),
    /// Its exit status.
    Exited(i32),
}

/// The state of a command whose mark has not come.
enum Standing {
    Runs,
    /// The pane ended, or was given another process.
    Gone,
    /// The shell is done with it.
    Over,
}

impl Pane {
    /// Starts a command; returns it when the pane's shell has begun with it. Waits for the pane's turn within `wait`, at most for `turn`. Says by
    /// `is_typed` from when on it may run.
    pub fn run<'a>(
        &'a self,
        command: &'a AdmittedCommand,
        wait: Duration,
        turn: Duration,
        is_typed: &'a AtomicBool,
    ) -> BoxFuture<'a, Result<Begun, Failure>> {
        Box::pin(async move {
            let patience = wait.min(turn);
            let deadline = Instant::now() + patience;
            let turn = tokio::time::timeout_at(deadline, self.session.turn(self.number).lock_owned()).await;
            let Ok(turn) = turn else {
                let condition = self.session.condition(self.number).await?;
                return Err(held(self, condition.command(), patience));
            };
            let hold = Hold { session: self.session.clone(), number: self.number, nonce: random_id() };
            let begun = Instant::now();
            let files = self.session.files(self.number, turn.attempts);
            let (condition, discarded) = self.hold(&hold, command, &turn, &files, deadline, patience).await?;
            let patience = wait.saturating_sub(begun.elapsed()).clamp(*BEGIN.start(), *BEGIN.end());
            is_typed.store(true, Ordering::Release);
            let run = self.begin((hold, turn), command, files, &condition, patience).await?;
            Ok(Begun { run, directory: condition.directory, notices: discarded.into_iter().collect() })
        })
    }

    /// The directory in which the pane's program is just now. None where that cannot be known: in a pane that leads elsewhere, or whose
    /// program belongs to another user.
    pub fn directory(&self) -> BoxFuture<'_, Result<Option<String>, Failure>> {
        Box::pin(async move {
            if self.session.inside.is_some() {
                return Ok(None);
            }
            let deadline = Instant::now() + *BEGIN.start();
            loop {
                let condition = self.session.condition(self.number).await?;
                // A pane that was made just now is nowhere until its shell is there.
                let is_starting = condition.is_starting() || condition.directory.is_empty();
                let directory = condition.directory;
                if !is_starting || Instant::now() > deadline {
                    return Ok(Some(directory).filter(|directory| !directory.is_empty()));
                }
                tokio::time::sleep(A_MOMENT).await;
            }
        })
    }

    /// Becomes the pane's holder, stages the command, and finds the pane ready for it. Returns what is to be said of a line that stood
    /// there.
    async fn hold(
        &self,
        hold: &Hold,
        command: &AdmittedCommand,
        turn: &Turn,
        files: &Files,
        deadline: Instant,
        patience: Duration,
    ) -> Result<(Condition, Option<String>), Failure> {
        let (session, number) = (&self.session, self.number);
        let script = |cleaning| wrapper::script(command.text(), &hold.nonce, files, cleaning);
        let (sign, set, plain) = (hold.sign(), hold.set(command.text()), script(Cleaning::PLAIN));
        let mut condition = loop {
            let condition = session.stage(number, set.clone(), &plain, files).await?;
            if condition.is_held_by(&sign) {
                break condition;
            }
            if Instant::now() + LOOK_AGAIN > deadline {
                return Err(held(self, condition.command(), patience));
            }
            let is_free = session.free_stale(number, &condition).await?;
            // Also then: a program in the pane can put a sign of its own there again and again.
            tokio::time::sleep(if is_free { A_MOMENT } else { LOOK_AGAIN }).await;
        };
        // A new shell is waited for, but what only looks like one is not: somebody may have tmux open in the pane.
        let (start, starts) = (Instant::now(), *BEGIN.end());
        while (condition.is_starting() && start.elapsed() < starts
            || condition.has_no_prompt() && start.elapsed() < FIRST_PROMPT)
            && Instant::now() < deadline
        {
            tokio::time::sleep(A_MOMENT).await;
            condition = session.condition(number).await?;
        }
        // The prompt after the last command may not have come yet.
        let mut is_settled = turn.is_settled.load(Ordering::Acquire);
        while !is_settled && condition.is_elsewhere() && Instant::now() < deadline {
            tokio::time::sleep(PROMPT_COMES).await;
            is_settled = turn.is_settled.load(Ordering::Acquire);
            condition = session.condition(number).await?;
        }
        condition.check_ready(self)?;
        self.check_cell(&condition.cell, &condition.pid)?;
        unmoved(self, &condition, command)?;
        if condition.looks_back() {
            session.client.run(&commands::leave_mode(number)).await?;
        }
        let emptied = self.empty_line(&condition, deadline).await?;
        if emptied.is_some() {
            // What ran at the prompt meanwhile, or a trap of the user's, may have gone elsewhere.
            condition = session.condition(number).await?;
            self.check_cell(&condition.cell, &condition.pid)?;
            unmoved(self, &condition, command)?;
        }
        let trace = condition.trace(wrapper::line(files).chars().count());
        let cleaning = Cleaning { trace, leaves_alternate: condition.alternate };
        if cleaning != Cleaning::PLAIN {
            session.stage(number, set, &script(cleaning), files).await?;
        }
        Ok((condition, emptied.flatten()))
    }

    /// Types the line that sources what was staged, and waits until the shell has begun with it.
    async fn begin(
        &self,
        (hold, turn): (Hold, OwnedMutexGuard<Turn>),
        command: &AdmittedCommand,
        files: Files,
        condition: &Condition,
        patience: Duration,
    ) -> Result<Run, Failure> {
        let (session, number) = (self.session.clone(), self.number);
        let output = session.client.watch(number);
        let scanner = Scanner::new(&hold.nonce, Breaks::Doubled);
        let line = commands::type_text(number, &wrapper::line(&files));
        // Enter is CR, which does not end a line where the terminal leaves it as it is (`stty raw`).
        let enter = commands::press(number, "C-j");
        session.unfinished.forget(number);
        let mut look_after = tokio::time::interval_at(Instant::now() + LOOK_AFTER, LOOK_AFTER);
        look_after.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (pid, began) = (condition.pid.clone(), condition.since());
        // From here on the command may run, whoever still waits for it.
        let early = Vec::new();
        let following =
            Following { output, pid, began, files, look_after, looks: 0, scanner, early, _hold: hold, turn };
        let (name, shown, told) = (self.name.clone(), self.shown(), told(command.text()));
        let is_interrupted = AtomicBool::new(false);
        let mut run = Run { session, number, name, shown, told, following: Some(following), is_interrupted };
        let client = &run.session.client;
        let typed = if condition.prompt == Prompt::Fresh {
            // This process may be gone before it sees the prompt after the command.
            let begin = Prompt::begin(number, &condition.cursor, &condition.since());
            client.run_all([begin, line, enter]).await.map(drop)
        } else {
            client.run_all([line, enter]).await.map(drop)
        };
        // Both lines may be on their way all the same.
        typed.map_err(|failure| unknown(failure.message))?;
        if let Ok(begun) = tokio::time::timeout(patience, run.begun()).await {
            let process = run.following.as_ref().and_then(|following| following.scanner.process());
            run.session.keep_process(number, process);
            return begun.map(|()| run);
        }
        if !run.give_up().await? {
            return Ok(run);
        }
        let message = format!("pane {} did not take up the command within {}", run.shown, duration(patience));
        Err(Failure::new(Kind::Busy, message)
            .hint("see what it shows with capture-pane; end that with send-keys `C-c`, or use another pane"))
    }
}

/// Refuses a pane whose directory is not the one that a person was shown: what ran before may have changed it.
fn unmoved(pane: &Pane, condition: &Condition, command: &AdmittedCommand) -> Result<(), Failure> {
    let present = &condition.directory;
    match command.directory() {
        Some(seen) if seen != present => {
            let message = format!(
                "the directory of pane {} changed from `{seen}` to `{present}` after the approval; nothing ran",
                pane.shown()
            );
            Err(Failure::new(Kind::Busy, message).hint("call again: the question then shows the new directory"))
        }
        _ => Ok(()),
    }
}

fn held(pane: &Pane, command: &str, patience: Duration) -> Failure {
    let message = format!("pane {} was not free within {}: it runs `{command}`", pane.shown(), duration(patience));
    Failure::new(Kind::Busy, message)
        .hint("wait for it, look with capture-pane, end it with send-keys `C-c`, or use another pane")
}

impl Run {
    /// Waits until the shell has begun with the command.
    async fn begun(&mut self) -> Result<(), Failure> {
        loop {
            let Some(following) = self.following.as_mut() else { return Err(self.lost()) };
            if following.scanner.state() != State::Before {
                return Ok(());
            }
            match following.next().await {
                Some(piece) if piece.is_empty() => match following.standing(&self.session, self.number).await {
                    Standing::Runs | Standing::Over => {}
                    Standing::Gone => return Err(self.never_begun()),
                },
                Some(piece) => following.early = following.scanner.push(&piece),
                None => return Err(self.lost()),
            }
        }
    }

    /// The next thing that the command does.
    pub fn follow(&mut self) -> BoxFuture<'_, Result<Ended, Failure>> {
        Box::pin(async move {
            loop {
                let Some(following) = self.following.as_mut() else { return Err(self.lost()) };
                let early = std::mem::take(&mut following.early);
                if !early.is_empty() {
                    return Ok(Ended::Output(early));
                }
                if let State::Ended(status) = following.scanner.state() {
                    self.end();
                    return Ok(Ended::Exited(status));
                }
                let Some(piece) = following.next().await else { return Err(self.lost()) };
                if !piece.is_empty() {
                    following.early = following.scanner.push(&piece);
                    continue;
                }
                match following.standing(&self.session, self.number).await {
                    Standing::Runs => {}
                    Standing::Gone => return Err(self.lost()),
                    Standing::Over => {
                        let has_mark = following.has_late_mark().await;
                        let early = std::mem::take(&mut following.early);
                        if has_mark {
                            following.early = early;
                        } else if !early.is_empty() {
                            return Ok(Ended::Output(early));
                        } else {
                            return self.over();
                        }
                    }
                }
            }
        })
    }

    /// The shell is done with the command, and no mark told how it ended.
    fn over(&mut self) -> Result<Ended, Failure> {
        self.end();
        let interrupted = self.is_interrupted.load(Ordering::Acquire).then_some(INTERRUPTED);
        interrupted.map(Ended::Exited).ok_or_else(|| {
            let message =
                format!("the shell of pane {} is at its prompt, and did not report how the command ended", self.shown);
            Failure::new(Kind::OutcomeUnknown, message)
                .hint("check with capture-pane whether it had its effect before you run it again; the pane is free")
        })
    }

    /// The pane is free for the next command.
    fn end(&mut self) {
        if let Some(following) = self.following.take() {
            following.end(self.session.clone(), self.number);
        }
    }

    /// Sees to it that the command never runs; false when the shell has begun with it all the same.
    async fn give_up(&mut self) -> Result<bool, Failure> {
        let Some(following) = self.following.as_mut() else { return Ok(true) };
        let is_given_up = following.give_up(&self.session, self.number).await?;
        if is_given_up {
            self.following = None;
        }
        Ok(is_given_up)
    }

    /// Presses C-c.
    pub fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.is_interrupted.store(true, Ordering::Release);
            self.session.interrupt(self.number).await;
        })
    }

    /// The pane, as other tools name it.
    pub fn pane(&self) -> String {
        self.session.pane_id(self.number)
    }

    /// A pane that ends takes along what it printed last: nobody can say whether the command ran.
    fn never_begun(&self) -> Failure {
        let message = format!("the shell of pane {} ended before it confirmed that it took up the command", self.shown);
        Failure::new(Kind::OutcomeUnknown, message).hint(
            "check whether it had its effect before you run it again; fix start-up files that end the shell, or set `default_shell` under [tmux]",
        )
    }

    fn lost(&self) -> Failure {
        Failure::new(Kind::OutcomeUnknown, format!("pane {} ended while the command ran", self.shown))
            .hint("check whether it had its effect before you run it again; the next command gets a new pane")
    }
}

impl Drop for Run {
    /// The command runs on: the pane stays held until it has ended.
    fn drop(&mut self) {
        let Some(following) = self.following.take() else { return };
        let (session, number) = (self.session.clone(), self.number);
        let left = session.left.add(&session, (number, &self.name), &self.told);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let end = watch_over(following, session, number, &left).await;
                left.end(end);
            });
        }
    }
}

impl Following {
    /// The next piece of output; an empty one when it is time to look at the pane's state, none when the server is gone.
    async fn next(&mut self) -> Option<Vec<u8>> {
        tokio::select! {
            biased;
            piece = self.output.next() => piece,
            _ = self.look_after.tick() => {
                self.looks += 1;
                Some(Vec::new())
            }
        }
    }

    /// Its state, as far as the server and the kernel know.
    async fn standing(&mut self, session: &Session, number: u32) -> Standing {
        let asked =
            commands::ask(number, &format!("#{{pane_dead}}{FIELD}#{{pane_pid}}{FIELD}#{{pane_current_command}}"));
        let Ok(Ok(said)) = session.client.command(&asked).await else { return Standing::Gone };
        let Some(program) = said.strip_prefix(&format!("0{FIELD}{}{FIELD}", self.pid)) else { return Standing::Gone };
        let is_worth_asking = match session.inside {
            Some(_) => self.looks.is_multiple_of(LOOKS_ELSEWHERE),
            None => condition::is_shell(program),
        };
        let process = self.scanner.process().filter(|_| self.scanner.state() == State::Running && is_worth_asking);
        let Some(process) = process else { return Standing::Runs };
        match session.look_at_shell(number, process, &self.pid).await {
            Ok(Doing::Waits) => Standing::Over,
            Ok(Doing::Runs | Doing::Unknown) | Err(_) => Standing::Runs,
        }
    }

    /// Takes in what is on its way; true when the mark of the end is among it.
    async fn has_late_mark(&mut self) -> bool {
        let end = Instant::now() + LATE_MARK;
        while let Ok(Some(piece)) = tokio::time::timeout_at(end, self.output.next()).await {
            let output = self.scanner.push(&piece);
            self.early.extend(output);
        }
        matches!(self.scanner.state(), State::Ended(_))
    }

    /// Gives the pane free; when its prompt has come, its place is kept for the next command.
    fn end(self, session: Arc<Session>, number: u32) {
        let Self { output, began, scanner, mut turn, .. } = self;
        turn.is_settled = Arc::default();
        tokio::spawn(settle(session, number, (output, scanner.goes_on()), began, turn.is_settled.clone()));
    }

    /// Takes the text from a line that the shell may read at any time; false when it has begun with it by then.
    async fn give_up(&mut self, session: &Session, number: u32) -> Result<bool, Failure> {
        let taken = session.write(number, NOTHING, &self.files).await;
        // The line may still be read: the next command gets another file.
        self.turn.attempts += 1;
        let last_moment = Instant::now() + LAST_MOMENT;
        while self.scanner.state() == State::Before
            && let Ok(Some(piece)) = tokio::time::timeout_at(last_moment, self.output.next()).await
        {
            let output = self.scanner.push(&piece);
            self.early.extend(output);
        }
        let is_before = self.scanner.state() == State::Before;
        // While its text is there, the line may still run it.
        if is_before { taken.map(|()| true).map_err(|failure| unknown(failure.message)) } else { Ok(false) }
    }
}

/// A command that was typed, of which nobody knows whether it runs.
fn unknown(message: String) -> Failure {
    Failure::new(Kind::OutcomeUnknown, message)
        .hint("the command may still run: check whether it had its effect before you run it again")
}

/// The status of a command that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Waits for the end of a command that nobody waits for any more, or of its pane. One that the shell has not begun with is given up.
async fn watch_over(mut following: Following, session: Arc<Session>, number: u32, left: &Left) -> End {
    if following.scanner.state() == State::Before {
        if let Ok(true) = following.give_up(&session, number).await {
            return End::Unknown;
        }
        session.interrupt(number).await;
    }
    let end = loop {
        left.print(&std::mem::take(&mut following.early));
        if let State::Ended(status) = following.scanner.state() {
            break End::Exited(status);
        }
        match following.next().await {
            Some(piece) if piece.is_empty() => match following.standing(&session, number).await {
                Standing::Runs => {}
                Standing::Gone => return End::Unknown,
                Standing::Over => {
                    let has_mark = following.has_late_mark().await;
                    left.print(&std::mem::take(&mut following.early));
                    match following.scanner.state() {
                        State::Ended(status) if has_mark => break End::Exited(status),
                        State::Before | State::Running | State::Ended(_) => break End::Unknown,
                    }
                }
            },
            Some(piece) => following.early = following.scanner.push(&piece),
            None => return End::Unknown,
        }
    };
    following.end(session, number);
    end
}

impl Session {
    /// Presses C-c. A shell that is about to start a program takes it for itself, and goes on when that has ended; then it is pressed once
    /// more, and never twice for one program: many take a second one for an order to give up at once.
    async fn interrupt(&self, number: u32) {
        let (press, front) = (commands::press(number, "C-c"), commands::ask(number, "#{pane_current_command}"));
        let Ok([before, _]) = self.client.run_all([front.clone(), press.clone()]).await else { return };
        if !condition::is_shell(&before.text) {
            return;
        }
        tokio::time::sleep(STARTS).await;
        if self.client.run(&front).await.is_ok_and(|after| !condition::is_shell(&after)) {
            let _ = self.client.run(&press).await;
        }
    }

    /// What a pane is doing.
    pub(super) async fn condition(&self, number: u32) -> Result<Condition, Failure> {
        Condition::read(number, self.client.run_all(Condition::asked(self, number)).await?)
    }

    /// Tries to hold the pane and writes the file of a command, in one go: the server writes it, so that no process has to be started.
    /// It is this client's own; a pane that somebody else holds is not touched by it.
    async fn stage(&self, number: u32, hold: Command, script: &str, files: &Files) -> Result<Condition, Failure> {
        let [condition, prompt, program, directory, people] = Condition::asked(self, number);
        if let Some(inside) = &self.inside {
            write_inside(&**inside, files, script).await?;
            let commands = [hold, condition, prompt, program, people];
            let [_, condition, prompt, program, people] = self.client.run_all(commands).await?;
            return Condition::read(number, [condition, prompt, program, Said::default(), people]);
        }
        let [set, save, delete] = self.written(number, script, files);
        let commands = [hold, condition, prompt, program, directory, people, set, save, delete];
        let [_, condition, prompt, program, directory, people, ..] = self.client.run_all(commands).await?;
        Condition::read(number, [condition, prompt, program, directory, people])
    }

    /// Writes the file of a command anew.
    async fn write(&self, number: u32, script: &str, files: &Files) -> Result<(), Failure> {
        match &self.inside {
            Some(inside) => write_inside(&**inside, files, script).await,
            None => self.client.run_all(self.written(number, script, files)).await.map(drop),
        }
    }

    /// What has the server write a script.
    fn written(&self, number: u32, script: &str, files: &Files) -> [Command; 3] {
        commands::write(&format!("toolcrib-{}-{number}", self.client_pid), &files.script, script)
    }

    /// The files of this client's commands in a pane, after so many attempts that its shell has not taken up.
    fn files(&self, number: u32, attempts: u32) -> Files {
        let script = format!("{}{}-{attempts}", self.scripts(number), self.client_pid);
        Files { script, library: format!("{}/{}", self.directory, wrapper::library_name()) }
    }

    /// How the files of all clients' commands in a pane begin.
    pub(super) fn scripts(&self, number: u32) -> String {
        format!("{}/t-{number}-", self.directory)
    }
}

/// Writes the file of a command where panes lead to.
async fn write_inside(inside: &dyn Backend, files: &Files, script: &str) -> Result<(), Failure> {
    let arguments = [&files.script, script].map(OsString::from);
    match inside.run_script("umask 077; printf %s \"$2\" >\"$1\"", &arguments).await? {
        (0, _) => Ok(()),
        _ => Err(Failure::new(Kind::Unavailable, format!("`{}` cannot be written on {}", files.script, inside.name()))),
    }
}
