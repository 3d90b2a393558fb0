//! Hosts under test, spoken to by `toolcrib run`, and what tests ask of their answers.

use crate::processes::{assert_gone, sleeping, unique_seconds};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::any::Any;
use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use toolcrib_tests::{Program, eventually};

/// How long a host may take to answer anything at all.
const PATIENCE: Duration = Duration::from_secs(40);

/// What the host knows and no place may learn. An ssh may be told to send the last one.
const SECRETS: [(&str, &str); 4] =
    [("AWS_SECRET", "hunter2"), ("SECRET_TOKEN", "hunter2"), ("GITHUB_TOKEN", "hunter2"), ("LC_API_KEY", "hunter2")];

/// Arguments of `run_shell`.
pub(crate) fn command(text: &str) -> Value {
    declared(json!({ "command": text }))
}

/// The same, with a time to wait.
pub(crate) fn waiting(text: &str, wait: impl Into<Value>) -> Value {
    let mut arguments = command(text);
    arguments["wait"] = wait.into();
    arguments
}

/// Adds what the tools that change something want to know.
pub(crate) fn declared(mut arguments: Value) -> Value {
    for (name, value) in
        [("risk", json!("low")), ("mutation", json!(true)), ("privesc", json!(false)), ("why", json!("a test"))]
    {
        arguments[name] = value;
    }
    arguments
}

/// What an answer says besides its result, by the tool and by the host.
pub(crate) fn notices(answer: &Value) -> String {
    format!("{}{}", answer["notices"], answer["result"]["notices"])
}

/// Kind, message and hint of an answer that has to be a failure.
pub(crate) fn said(answer: &Value) -> String {
    let error = &answer["error"];
    assert!(error.is_object(), "it succeeded: {answer}");
    let part = |name: &str| error[name].as_str().unwrap_or_default();
    format!("{}: {} ({})", part("kind"), part("message"), part("hint"))
}

/// What was kept of an output that was cut.
pub(crate) fn kept(answer: &Value) -> Vec<u8> {
    let said = notices(answer);
    let file = said.split("more of it is kept as").nth(1).and_then(|rest| rest.split('`').nth(1));
    std::fs::read(file.unwrap_or_else(|| panic!("nothing was kept: {answer}"))).expect("a kept file")
}

/// `toolcrib run` on one place.
pub(crate) struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: PathBuf,
    calls: u64,
    /// Call, time and event.
    events: Vec<(u64, Instant, Value)>,
}

impl Host {
    /// Starts one of several hosts that share a home.
    pub(crate) fn start(program: &Program, flags: &[String], settings: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let flags = flags.iter().map(String::as_str);
        let arguments: Vec<&str> = ["--yes"].into_iter().chain(flags).chain(set).chain(["run", "--events"]).collect();
        let errors = program.path(&format!("stderr-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let stderr = File::create(&errors).expect("a file");
        let mut command = program.command(&arguments);
        command.envs(SECRETS).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, input, lines, errors, calls: 0, events: Vec::new() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.input = None;
        ended(&mut self.child, limit)
    }

    /// Sends it a signal and waits for its end.
    pub(crate) fn end_by(&mut self, signal: Signal, limit: Duration) -> Option<ExitStatus> {
        send_signal(&self.child, signal);
        ended(&mut self.child, limit)
    }

    fn line(&mut self, patience: Duration) -> Value {
        match self.lines.recv_timeout(patience) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`")),
            Err(error) => {
                let errors = std::fs::read_to_string(&self.errors).unwrap_or_default();
                panic!("no answer: {error}: {errors}")
            }
        }
    }

    /// Keeps the line if it is an event.
    fn is_kept(&mut self, line: &Value) -> bool {
        let is_event = line["event"].is_object();
        if is_event {
            self.events.push((line["id"].as_u64().unwrap_or_default(), Instant::now(), line["event"].clone()));
        }
        is_event
    }

    /// The next answer, whichever call it belongs to.
    pub(crate) fn answer(&mut self) -> Value {
        let begin = Instant::now();
        loop {
            let line = self.line(PATIENCE.saturating_sub(begin.elapsed()));
            if !self.is_kept(&line) {
                return line;
            }
        }
    }

    /// Waits until a call has printed this on standard output.
    pub(crate) fn until_printed(&mut self, id: u64, text: &str) {
        while self.when_printed(id, text).is_none() {
            let line = self.line(PATIENCE);
            assert!(self.is_kept(&line), "it ended before it printed `{text}`: {line}");
        }
    }

    /// When a call had printed this on standard output.
    pub(crate) fn when_printed(&self, id: u64, text: &str) -> Option<Instant> {
        let mut printed = String::new();
        let mut pieces = self.events.iter().filter(|(of, _, event)| *of == id && event["type"] == "stdout");
        pieces.find_map(|(_, when, event)| {
            printed += event["text"].as_str().unwrap_or_default();
            printed.contains(text).then_some(*when)
        })
    }

    /// Sends a call without waiting for its answer.
    pub(crate) fn send(&mut self, tool: &str, arguments: Value) -> u64 {
        self.calls += 1;
        let line = json!({ "id": self.calls, "tool": tool, "arguments": arguments });
        self.send_line(&line);
        self.calls
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        self.send_line(&json!({ "id": "cancel", "cancel": id }));
    }

    fn send_line(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("its input is open");
        // A host that ended early is seen by what it answered.
        let _ = input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush());
    }

    /// Calls a tool and returns its envelope.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send(tool, arguments);
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool that must succeed.
    pub(crate) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must fail; returns what it says.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        said(&self.call(tool, arguments))
    }

    /// Runs a command; returns its exit code and standard output.
    pub(crate) fn run(&mut self, text: &str) -> (i64, String) {
        let result = self.result("run_shell", command(text));
        (result["exit_code"].as_i64().expect("a status"), result["stdout"].as_str().expect("text").to_owned())
    }

    /// Runs a command that must succeed; returns its standard output.
    pub(crate) fn output(&mut self, text: &str) -> String {
        let (status, stdout) = self.run(text);
        assert_eq!(status, 0, "`{text:.200}`: {stdout}");
        stdout
    }

    /// What a command that must fail says.
    pub(crate) fn refusal(&mut self, text: &str) -> String {
        self.failure("run_shell", command(text))
    }

    /// Runs a command with a time to wait.
    pub(crate) fn within(&mut self, text: &str, wait: &str) -> Value {
        self.call("run_shell", waiting(text, wait))
    }

    pub(crate) fn write_file(&mut self, path: &str, content: &str) -> Value {
        self.call("write_file", json!({ "path": path, "content": content }))
    }

    pub(crate) fn read_file(&mut self, path: &str) -> Value {
        self.call("read_file", json!({ "path": path }))
    }

    /// What the shared pane shows.
    pub(crate) fn screen(&mut self) -> String {
        self.result("capture-pane", json!({})).as_str().expect("text").to_owned()
    }

    /// Types into the shared pane.
    pub(crate) fn type_keys(&mut self, keys: &[&str]) {
        self.result("send-keys", declared(json!({ "keys": keys })));
    }

    /// The id of the shared pane.
    pub(crate) fn pane(&mut self) -> Value {
        self.result("send-keys", declared(json!({ "enter": true })))["id"].clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.end(Duration::from_secs(5)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A host with a home of its own.
pub(crate) struct Rig {
    // Ends before its home goes.
    host: Host,
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
        let host = Host::start(&program, flags, settings);
        Self { host, program, panes, flags: flags.to_vec() }
    }

    /// A further host of the same home on the same place.
    pub(crate) fn another(&self) -> Host {
        Host::start(&self.program, &self.flags, &[])
    }
}

impl Deref for Rig {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

/// Waits for the end of a process, which has to come by itself.
fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        let status = child.try_wait().expect("a child");
        if status.is_some() || begin.elapsed() > limit {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send_signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, signal).expect("the signal is sent");
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
    let (program, seconds) = (Program::new(), unique_seconds());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut started = program.command(&[&["--yes"], &flags[..], &["call", "run_shell", "-"]].concat());
    let child = started.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the program starts");
    let text = format!("(setsid sleep {seconds} &); env sleep {seconds} & env sleep {seconds}");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(command(&text).to_string().as_bytes()).expect("the program reads its input");
    drop(input);
    eventually("the command runs", || sleeping(&seconds).len() >= 3);
    send_signal(&child, Signal::TERM);
    let status = ended(&mut child, Duration::from_secs(10));
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
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
