//! A command in a pane: wait for the pane's turn, stage the text, type one line, follow the output to the mark of its end.
//!
//! One command at a time a pane, across processes: the holder stands in an option of the pane, set by test-and-set.

use super::Session;
use super::client::{Output, Said};
use super::control::quoted;
use super::pane::Pane;
use super::server::FIELD;
use super::wrapper::{self, Files, Shell};
use crate::backend::Backend;
use crate::envelope::{Failure, Kind, duration};
use crate::marks::{Breaks, Scanner, State};
use crate::policy::shell::AdmittedCommand;
use crate::quote::word;
use crate::scope::random_id;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How long a call waits for its turn in a pane, at most.
const TURN: Duration = Duration::from_secs(30);
/// How often a pane that another host holds is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// What a pane runs until its shell is there, and how long that may take to change.
const STARTING: &str = "tmux";
const A_MOMENT: Duration = Duration::from_millis(5);
/// A person who typed so many seconds ago may go on typing.
const PERSON_SECONDS: u64 = 2;
/// How long a shell may take to begin with what was typed, whatever the wait is; a new one first reads its start-up files.
const BEGIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(10);
/// How long a shell that has opened the file of a command may take to tell so.
const LAST_MOMENT: Duration = Duration::from_millis(20);
/// How often a pane is looked at while its command runs: nothing tells of one that was given another process.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The file of a command that is not to run any more.
const NOTHING: &str = "return 0\n";
/// What is said of a pane that was known and is not there any more.
pub(super) const GONE: &str = "the pane is gone";
/// Characters of a command by which others learn what holds a pane.
const TOLD_CHARS: usize = 80;

/// A command that runs in a pane.
pub(crate) struct Run {
    session: Arc<Session>,
    number: u32,
    /// The pane, for people.
    shown: String,
    /// None once the command has ended.
    following: Option<Following>,
}

/// The sign of this call on a pane, taken off when it is dropped.
struct Hold {
    session: Arc<Session>,
    number: u32,
    nonce: String,
}

struct Following {
    output: Output,
    /// The process of the pane, as it was when the command was typed.
    pid: String,
    look_after: Interval,
    scanner: Scanner,
    /// What came with the first mark.
    early: Vec<u8>,
    /// The pane is this call's as long as these live: among hosts, and within this one.
    _hold: Hold,
    turn: OwnedMutexGuard<u32>,
}

/// What is written for a shell to read.
struct Staged<'s> {
    command: &'s AdmittedCommand,
    nonce: &'s str,
    attempt: u32,
}

/// What a command in a pane does.
pub(crate) enum Ended {
    /// It printed these bytes.
    Output(Vec<u8>),
    /// Its exit status.
    Exited(i32),
}

/// What a pane is doing, as one answer of tmux tells.
struct Condition {
    /// Client and nonce of who holds it, and the command's beginning.
    holder: String,
    in_mode: bool,
    alternate: bool,
    program: String,
    /// The shell that the pane was made with.
    made_with: Shell,
    /// The process that the pane runs: another one after it was respawned.
    pid: String,
    directory: String,
    /// Seconds since a person last typed at the session.
    typed_ago: u64,
}

impl Pane {
    /// Starts a command; returns it when the pane's shell has begun with it. Waits for the pane's turn within `wait`.
    pub(crate) async fn run(&self, command: &AdmittedCommand, wait: Duration) -> Result<(Run, String), Failure> {
        let patience = wait.min(TURN);
        let deadline = Instant::now() + patience;
        let turn = tokio::time::timeout_at(deadline, self.session.turn(self.number).lock_owned()).await;
        let Ok(turn) = turn else {
            let condition = self.session.condition(self.number).await?;
            return Err(held(self, condition.command(), patience));
        };
        let hold = Hold { session: self.session.clone(), number: self.number, nonce: random_id() };
        let begun = Instant::now();
        let Condition { pid, directory, .. } = self.hold(&hold.nonce, command, *turn, deadline, patience).await?;
        let patience = wait.saturating_sub(begun.elapsed()).clamp(*BEGIN.start(), *BEGIN.end());
        Ok((self.begin(hold, turn, pid, patience).await?, directory))
    }

    /// The directory in which the pane's program is just now. None where that cannot be known: in a pane that leads elsewhere, or whose
    /// program belongs to another user.
    pub(crate) async fn directory(&self) -> Result<Option<String>, Failure> {
        if self.session.inside.is_some() {
            return Ok(None);
        }
        let deadline = Instant::now() + *BEGIN.start();
        loop {
            let Condition { directory, program, .. } = self.session.condition(self.number).await?;
            // A pane that was made just now is nowhere until its shell is there.
            let is_starting = program == STARTING || directory.is_empty();
            if !is_starting || Instant::now() > deadline {
                return Ok(Some(directory).filter(|directory| !directory.is_empty()));
            }
            tokio::time::sleep(A_MOMENT).await;
        }
    }

    /// Becomes the pane's holder, stages the command, and finds the pane ready for it.
    async fn hold(
        &self,
        nonce: &str,
        command: &AdmittedCommand,
        attempt: u32,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Condition, Failure> {
        let (session, number) = (&self.session, self.number);
        let me = session.holder(nonce);
        // Sets nothing where something is set: test and set in one.
        let sign = quoted(format!("{me} {}", told(command.text())));
        let hold = format!("set-option -q -o -p -t %{number} @toolcrib_holder {sign}");
        let staged = Staged { command, nonce, attempt };
        let mut shell = self.shell;
        let mut condition = session.stage(number, hold.clone(), &staged, shell).await?;
        loop {
            if condition.is_held_by(&me) && condition.program == STARTING && Instant::now() < deadline {
                tokio::time::sleep(A_MOMENT).await;
            } else if condition.is_held_by(&me) {
                ready(self, &condition)?;
                unmoved(self, &condition, command)?;
                // A shell that was left open in the pane may be of another kind.
                let wanted = condition.shell();
                if condition.in_mode {
                    // There, keys are the mode's commands.
                    session.client.run(&format!("send-keys -X -t %{number} cancel")).await?;
                }
                if wanted == shell {
                    return Ok(condition);
                }
                shell = wanted;
            } else if Instant::now() + LOOK_AGAIN > deadline {
                return Err(held(self, condition.command(), patience));
            } else if session.is_stale(number, &condition).await? {
                session.client.run_nested(&free(number, condition.sign())).await?;
            } else {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            condition = session.stage(number, hold.clone(), &staged, shell).await?;
        }
    }

    /// Types the line that sources what was staged, and waits until the shell has begun with it.
    async fn begin(
        &self,
        hold: Hold,
        turn: OwnedMutexGuard<u32>,
        pid: String,
        patience: Duration,
    ) -> Result<Run, Failure> {
        let (session, number) = (self.session.clone(), self.number);
        let output = session.client.watch(number);
        let scanner = Scanner::new(&hold.nonce, Breaks::Doubled);
        let keys = |keys: &str| format!("send-keys -t %{number} {keys}");
        let line = format!("-l -- {}", quoted(wrapper::line(&session.files(number, &session.client_pid, *turn))));
        let typed = [keys("C-u"), keys(&line), keys("Enter")];
        let mut look_after = tokio::time::interval_at(Instant::now() + LOOK_AFTER, LOOK_AFTER);
        look_after.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // From here on the command may run, whoever still waits for it.
        let following = Following { output, pid, look_after, scanner, early: Vec::new(), _hold: hold, turn };
        let mut run = Run { session, number, shown: self.shown(), following: Some(following) };
        run.session.client.run_all(typed).await?;
        if let Ok(begun) = tokio::time::timeout(patience, run.begun()).await {
            return begun.map(|()| run);
        }
        if !run.give_up().await {
            return Ok(run);
        }
        let message = format!("pane {} did not take the command within {}", run.shown, duration(patience));
        Err(Failure::new(Kind::Busy, message)
            .hint("look with capture-pane what it shows; end that with send-keys `C-c`, or use another pane"))
    }
}

/// Refuses a pane in which something else reads what is typed.
fn ready(pane: &Pane, condition: &Condition) -> Result<(), Failure> {
    let busy = |message: String| Failure::new(Kind::Busy, message);
    if condition.typed_ago < PERSON_SECONDS {
        return Err(busy(format!("somebody is typing at session `{}`", pane.session.name))
            .hint("try again when they have stopped, or use another session"));
    }
    let program = &condition.program;
    if condition.alternate {
        return Err(busy(format!("`{program}` fills the screen of pane {}", pane.shown()))
            .hint("leave it with send-keys (`q`, `C-c`), or use another pane"));
    }
    // What a pane runs that leads elsewhere is the way there.
    if pane.session.inside.is_none() && Shell::named(program).is_none() {
        return Err(busy(format!("`{program}` runs in pane {} and would read the command", pane.shown()))
            .hint("end it with send-keys `C-c` or `C-d`, or use another pane"));
    }
    Ok(())
}

/// Refuses a pane whose directory is not the one that a person was shown: what ran before may have changed it.
fn unmoved(pane: &Pane, condition: &Condition, command: &AdmittedCommand) -> Result<(), Failure> {
    let present = &condition.directory;
    match command.directory() {
        Some(seen) if seen != present => {
            let message =
                format!("pane {} went from `{seen}` to `{present}` after the approval; nothing ran", pane.shown());
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

impl Condition {
    /// From what the server said.
    fn read(number: u32, [condition, program, directory, people]: [Said; 4]) -> Result<Self, Failure> {
        // What stands last may hold anything; other such text has an answer of its own.
        let mut fields = condition.text.splitn(7, FIELD).map(str::to_owned);
        let mut field = || fields.next().unwrap_or_default();
        // Asked for a pane that is gone, the server says nothing, or speaks of another one; a dead one may stay on the screen.
        let is_there = field() == format!("%{number}") && field() == "0";
        if !is_there {
            return Err(Failure::failed(GONE));
        }
        let (in_mode, alternate, made_with) = (field() == "1", field() == "1", Shell::of(&field()));
        let (pid, holder) = (field(), field());
        let typed = people.text.lines().filter_map(|line| line.strip_prefix("0 ")?.parse::<u64>().ok()).max();
        let typed_ago = typed.map_or(u64::MAX, |typed| people.time.saturating_sub(typed));
        let (program, directory) = (program.text, directory.text);
        Ok(Self { holder, in_mode, alternate, program, made_with, pid, directory, typed_ago })
    }

    fn is_held_by(&self, sign: &str) -> bool {
        self.sign() == sign
    }

    /// Client and nonce of the holder.
    fn sign(&self) -> &str {
        self.holder.match_indices(' ').nth(1).map_or(&self.holder, |(end, _)| &self.holder[..end])
    }

    /// What the holder runs.
    fn command(&self) -> &str {
        self.holder.get(self.sign().len()..).unwrap_or_default().trim()
    }

    /// The shell that reads what is typed: the pane's own, or one that was left open in it.
    fn shell(&self) -> Shell {
        match self.program.as_str() {
            "sh" => self.made_with,
            program => Shell::named(program).unwrap_or(self.made_with),
        }
    }
}

impl Run {
    /// Waits until the shell has begun with the command.
    async fn begun(&mut self) -> Result<(), Failure> {
        loop {
            let Some(following) = self.following.as_mut() else { return Err(self.lost()) };
            if following.scanner.state() != State::Before {
                return Ok(());
            }
            let piece = following.next().await;
            let output = self.take(piece).await?;
            if let Some(following) = self.following.as_mut() {
                following.early = output;
            }
        }
    }

    async fn take(&mut self, piece: Option<Vec<u8>>) -> Result<Vec<u8>, Failure> {
        match piece {
            Some(piece) if piece.is_empty() => {
                self.check_present().await?;
                Ok(Vec::new())
            }
            Some(piece) => {
                Ok(self.following.as_mut().map(|following| following.scanner.push(&piece)).unwrap_or_default())
            }
            None => Err(self.lost()),
        }
    }

    /// The next thing that the command does.
    pub(crate) async fn next(&mut self) -> Result<Ended, Failure> {
        loop {
            let Some(following) = self.following.as_mut() else { return Err(self.lost()) };
            let early = std::mem::take(&mut following.early);
            if !early.is_empty() {
                return Ok(Ended::Output(early));
            }
            if let State::Ended(status) = following.scanner.state() {
                self.following = None;
                return Ok(Ended::Exited(status));
            }
            let piece = following.next().await;
            let output = self.take(piece).await?;
            if !output.is_empty() {
                return Ok(Ended::Output(output));
            }
        }
    }

    /// Sees to it that the command never runs; false when the shell has begun with it all the same.
    async fn give_up(&mut self) -> bool {
        let Some(following) = self.following.as_mut() else { return true };
        let is_given_up = following.give_up(&self.session, self.number).await;
        if is_given_up {
            self.following = None;
        }
        is_given_up
    }

    /// Presses C-c.
    pub(crate) async fn interrupt(&self) {
        self.session.interrupt(self.number).await;
    }

    /// The pane, as other tools name it.
    pub(crate) fn pane(&self) -> String {
        self.session.pane_id(self.number)
    }

    async fn check_present(&self) -> Result<(), Failure> {
        let Some(following) = &self.following else { return Err(self.lost()) };
        if self.session.has(self.number, &following.pid).await {
            return Ok(());
        }
        if following.scanner.state() == State::Before {
            let message = format!("the shell of pane {} ended before it took up the command", self.shown);
            return Err(Failure::new(Kind::Unavailable, message)
                .hint("call again; its start-up files may end it: mend them, or set `default_shell` under [tmux]"));
        }
        Err(self.lost())
    }

    fn lost(&self) -> Failure {
        Failure::new(Kind::OutcomeUnknown, format!("pane {} ended while the command ran", self.shown))
            .hint("look whether it had its effect before you run it again; the next command gets a new pane")
    }
}

impl Drop for Run {
    /// The command runs on: the pane stays held until it has ended.
    fn drop(&mut self) {
        let Some(following) = self.following.take() else { return };
        let (session, number) = (self.session.clone(), self.number);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(watch_over(following, session, number));
        }
    }
}

impl Following {
    /// The next piece of output; an empty one when it is time to look whether the pane is still there, none when the server is gone.
    async fn next(&mut self) -> Option<Vec<u8>> {
        tokio::select! {
            biased;
            piece = self.output.next() => piece,
            _ = self.look_after.tick() => Some(Vec::new()),
        }
    }

    /// Takes the text from a line that the shell may read at any time; false when it has begun with it by then.
    async fn give_up(&mut self, session: &Session, number: u32) -> bool {
        session.unstage(number, *self.turn).await;
        // The line may still be read: the next command gets another file.
        *self.turn += 1;
        let last_moment = Instant::now() + LAST_MOMENT;
        while self.scanner.state() == State::Before
            && let Ok(Some(piece)) = tokio::time::timeout_at(last_moment, self.output.next()).await
        {
            let output = self.scanner.push(&piece);
            self.early.extend(output);
        }
        self.scanner.state() == State::Before
    }
}

/// Waits for the end of a command that nobody waits for any more, or of its pane. One that the shell has not begun with is given up.
async fn watch_over(mut following: Following, session: Arc<Session>, number: u32) {
    if following.scanner.state() == State::Before {
        if following.give_up(&session, number).await {
            return;
        }
        session.interrupt(number).await;
    }
    while !matches!(following.scanner.state(), State::Ended(_)) {
        match following.next().await {
            Some(piece) if piece.is_empty() && !session.has(number, &following.pid).await => return,
            Some(piece) => _ = following.scanner.push(&piece),
            None => return,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.session.release(self.number, &self.nonce);
    }
}

impl Session {
    /// The pane is still there, alive, and runs the process that it ran.
    async fn has(&self, number: u32, pid: &str) -> bool {
        let asked = format!("display-message -p -t %{number} '#{{pane_dead}}{FIELD}#{{pane_pid}}'");
        matches!(self.client.command(&asked).await, Ok(Ok(said)) if said == format!("0{FIELD}{pid}"))
    }

    async fn interrupt(&self, number: u32) {
        let _ = self.client.run(&format!("send-keys -t %{number} C-c")).await;
    }

    /// How this host's client signs a pane that it holds.
    fn holder(&self, nonce: &str) -> String {
        format!("{} {nonce}", self.client_pid)
    }

    /// What a pane is doing.
    async fn condition(&self, number: u32) -> Result<Condition, Failure> {
        Condition::read(number, self.client.run_all(self.asked(number)).await?)
    }

    /// Tries to hold the pane and writes the file of a command, in one go: the server writes it, so that no process has to be started.
    /// It is this client's own; a pane that somebody else holds is not touched by it.
    async fn stage(&self, number: u32, hold: String, staged: &Staged<'_>, shell: Shell) -> Result<Condition, Failure> {
        let files = self.files(number, &self.client_pid, staged.attempt);
        let script = wrapper::script(shell, staged.command.text(), staged.nonce, &files);
        let [condition, program, directory, people] = self.asked(number);
        if let Some(inside) = &self.inside {
            write_inside(&**inside, &files, &script).await?;
            let [_, condition, program, people] = self.client.run_all([hold, condition, program, people]).await?;
            return Condition::read(number, [condition, program, Said::default(), people]);
        }
        let [set, save, delete] = self.written(number, &script, &files);
        let lines = [hold, condition, program, directory, people, set, save, delete];
        let [_, condition, program, directory, people, ..] = self.client.run_all(lines).await?;
        Condition::read(number, [condition, program, directory, people])
    }

    /// Takes the command from the file that was staged last.
    async fn unstage(&self, number: u32, attempt: u32) {
        let files = self.files(number, &self.client_pid, attempt);
        match &self.inside {
            Some(inside) => _ = write_inside(&**inside, &files, NOTHING).await,
            None => _ = self.client.run_all(self.written(number, NOTHING, &files)).await,
        }
    }

    /// What has the server write a script.
    fn written(&self, number: u32, script: &str, files: &Files) -> [String; 3] {
        let buffer = format!("toolcrib-{}-{number}", self.client_pid);
        [
            format!("set-buffer -b {buffer} {}", quoted(script)),
            format!("save-buffer -b {buffer} {}", quoted(&files.script)),
            format!("delete-buffer -b {buffer}"),
        ]
    }

    fn asked(&self, number: u32) -> [String; 4] {
        let fields = [
            "#{pane_id}",
            "#{pane_dead}",
            "#{pane_in_mode}",
            "#{alternate_on}",
            "#{@toolcrib_shell}",
            "#{pane_pid}",
            "#{@toolcrib_holder}",
        ];
        let fields = fields.join(&FIELD.to_string());
        let ask = |format: &str| format!("display-message -p -t %{number} '{format}'");
        let people = format!("list-clients -t {} -F '#{{client_control_mode}} #{{client_activity}}'", quoted(&self.id));
        [ask(&fields), ask("#{pane_current_command}"), ask("#{pane_current_path}"), people]
    }

    /// The holder's client is gone, and so is its command.
    async fn is_stale(&self, number: u32, condition: &Condition) -> Result<bool, Failure> {
        // What is no sign of ours goes into no script.
        let Some((client, nonce)) = parse_sign(condition.sign()) else { return Ok(true) };
        let clients = self.client.run("list-clients -F '#{client_pid}'").await?;
        if clients.lines().any(|pid| pid == client) {
            return Ok(false);
        }
        // What the wrapper wrote last; asked through the server, so that it is the pane's machine that is asked.
        let files = self.files(number, client, 0);
        if let Some(inside) = &self.inside {
            let arguments = [nonce, &files.state].map(OsString::from);
            return Ok(inside.run_script(r#"grep -q -e "^$1 running" -- "$2""#, &arguments).await?.0 != 0);
        }
        let check = format!("grep -q -e '^{nonce} running' -- {}", word(&files.state));
        let asked = format!(
            "if-shell {} 'set-option -p -t %{number} @toolcrib_runs 1' 'set-option -p -t %{number} @toolcrib_runs 0'",
            quoted(check)
        );
        self.client.run_nested(&asked).await?;
        let runs = self.client.run(&format!("display-message -p -t %{number} '#{{@toolcrib_runs}}'")).await?;
        Ok(runs == "0")
    }

    /// Gives the pane free for the next command.
    fn release(&self, number: u32, nonce: &str) {
        self.client.post_nested(&free(number, &self.holder(nonce)));
    }

    /// The files of a client's commands in a pane, after so many that its shell has not taken up.
    fn files(&self, number: u32, client: &str, attempt: u32) -> Files {
        let file = |what| format!("{}/{what}-{number}-{client}", self.directory);
        Files { script: format!("{}-{attempt}", file("t")), state: file("s") }
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

/// Client and nonce of a sign. Any program in the pane can write something else in its place.
fn parse_sign(sign: &str) -> Option<(&str, &str)> {
    let (client, nonce) = sign.split_once(' ')?;
    let is_sign =
        client.bytes().all(|byte| byte.is_ascii_digit()) && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_sign.then_some((client, nonce))
}

/// Takes a holder's sign off a pane, if it is still there; what is no sign goes whatever it is.
fn free(number: u32, sign: &str) -> String {
    if parse_sign(sign).is_none() {
        return format!("set-option -pu -t %{number} @toolcrib_holder");
    }
    format!(
        "if-shell -F -t %{number} {} 'set-option -pu -t %{number} @toolcrib_holder'",
        quoted(format!("#{{m:{sign}*,#{{@toolcrib_holder}}}}"))
    )
}

/// The beginning of a command, by which others learn what holds a pane.
fn told(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TOLD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_sign_reaches_no_script_and_no_format() {
        assert_eq!(parse_sign("42 0af9"), Some(("42", "0af9")));
        assert!(free(3, "42 0af9").starts_with("if-shell -F -t %3 "));
        for odd in ["", "42", "42 x", "4x 0a", "42 0a'; touch owned; '", "42 #(touch owned)", "#(x) 0a"] {
            assert_eq!(parse_sign(odd), None, "{odd}");
            assert_eq!(free(3, odd), "set-option -pu -t %3 @toolcrib_holder", "{odd}");
        }
    }
}
