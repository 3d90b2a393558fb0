//! Hosts on the places under test, and the program called there once.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::any::Any;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Client, PATIENCE, Program, Running, eventually};

/// What the host knows and no place may learn. An ssh may be told to send the last one.
const SECRETS: [(&str, &str); 4] =
    [("AWS_SECRET", "hunter2"), ("SECRET_TOKEN", "hunter2"), ("GITHUB_TOKEN", "hunter2"), ("LC_API_KEY", "hunter2")];

/// All commands go to the shared pane, of which these tests are.
const ONE_PANE: &str = "tmux.extra_panes=false";

/// Starts one of several hosts that share a home.
pub(crate) fn start(program: &Program, flags: &[String], settings: &[&str]) -> Client {
    let set = [ONE_PANE].into_iter().chain(settings.iter().copied()).flat_map(|setting| ["--set", setting]);
    let flags = flags.iter().map(String::as_str);
    let arguments: Vec<&str> = ["--yes"].into_iter().chain(flags).chain(set).chain(["run", "--events"]).collect();
    Client::of(Running::start(program.command(&arguments).envs(SECRETS)))
}

/// The id of the shared pane of a host.
pub(crate) fn shared_pane(host: &mut Client) -> Value {
    host.result("send-keys", declared(json!({ "enter": true })))["id"].clone()
}

/// A host with a home of its own.
pub(crate) struct Rig {
    // Ends before its home goes.
    host: Client,
    pub(crate) program: Program,
    /// Commands run in panes: one stream, and what a shell keeps.
    pub(crate) panes: bool,
    flags: Vec<String>,
}

impl Rig {
    /// On the place that these flags name; none name this machine.
    pub(crate) fn new(flags: &[String], panes: bool) -> Self {
        Self::with(flags, panes, &[])
    }

    pub(crate) fn with(flags: &[String], panes: bool, settings: &[&str]) -> Self {
        let program = if panes { Program::with_panes() } else { Program::new() };
        let host = start(&program, flags, settings);
        Self { host, program, panes, flags: flags.to_vec() }
    }

    /// A further host of the same home on the same place.
    pub(crate) fn another(&self) -> Client {
        start(&self.program, &self.flags, &[])
    }
}

impl Deref for Rig {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.host
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.host
    }
}

/// Runs the program to its end, without stdin.
pub(crate) fn run(program: &Program, flags: &[String], arguments: &[&str]) -> Output {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    to_end(program.command(&[&flags[..], arguments].concat()))
}

/// Runs a command that has to end by itself.
pub(crate) fn to_end(mut command: Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(PATIENCE) else {
        let _ = kill_process(pid, Signal::KILL);
        panic!("it does not end, or something holds its output: {command:?}");
    };
    output.expect("its output")
}

/// Everything that a program said.
pub(crate) fn all(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Makes one call of `run_shell`; returns exit code and everything said.
pub(crate) fn call(program: &Program, flags: &[String], text: &str) -> (i32, String) {
    let output = run(program, flags, &["--yes", "call", "run_shell", &command(text).to_string()]);
    (output.status.code().expect("an exit code"), all(&output))
}

/// Makes one call that SIGTERM cancels, and expects that nothing of its command is left.
pub(crate) fn assert_interrupt_ends_all(flags: &[String]) {
    assert_interrupt_ends_all_by(&Program::new(), flags, &[]);
}

/// The same with variables of the program's own.
pub(crate) fn assert_interrupt_ends_all_by(program: &Program, flags: &[String], environment: &[(&str, &str)]) {
    let seconds = unique_seconds();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let arguments = [&["--yes"], &flags[..], &["call", "run_shell", "-"]].concat();
    let mut called = Running::start(program.command(&arguments).envs(environment.iter().copied()));
    let text = format!("(setsid sleep {seconds} &); env sleep {seconds} & env sleep {seconds}");
    called.write(command(&text).to_string());
    called.close();
    eventually("the command runs", || sleeping(&seconds).len() >= 3);
    called.signal("TERM");
    let status = called.ended(Duration::from_secs(30));
    assert_gone(&seconds);
    assert_eq!(status.and_then(|status| status.code()), Some(130));
}

/// Runs the case for each of these at the same time, and says which failed.
pub(crate) fn each<T: Copy + Debug + Send>(items: &[T], case: impl Fn(T) + Sync) {
    let case = &case;
    let failed: Vec<String> = std::thread::scope(|scope| {
        let start = |item: &T| {
            let item = *item;
            (item, scope.spawn(move || failure(|| case(item))))
        };
        let started: Vec<_> = items.iter().map(start).collect();
        let ended = started.into_iter().map(|(item, thread)| (item, thread.join().expect("panics are caught")));
        ended.filter_map(|(item, failure)| Some(format!("{item:?}: {}", failure?))).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Runs a case; returns why it failed, if it did.
pub(crate) fn failure(case: impl FnOnce()) -> Option<String> {
    catch_unwind(AssertUnwindSafe(case)).err().map(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".into())
}
