//! A client of our own: it knows JSON-RPC over the pipes of `toolcrib serve`, and nothing of any SDK, in both eras of the protocol.
//!
//! Every line that the server prints has to be one message. What a test has not asked for is kept until it does.

use crate::traces::{kill, tmux_clients};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use toolcrib_tests::{Program, digest, guest, reuse_code};

/// How long a server may take to answer anything at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// Told when the list of tools is another one.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// What the keys of the newer era's metadata begin with.
pub(crate) const META: &str = "io.modelcontextprotocol/";

/// The revisions that begin with `initialize`, and those whose every request speaks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

impl Era {
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// What a client that can show forms declares.
pub(crate) fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// A form that somebody has filled in.
pub(crate) fn decides(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// Arguments of `run_shell` with a harmless declaration.
pub(crate) fn command(text: &str) -> Value {
    json!({ "command": text, "risk": "low", "mutation": true, "privesc": false, "why": "a test" })
}

/// The first block of a result, which is text.
pub(crate) fn text(result: &Value) -> &str {
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The envelope of a result that has to be a success.
pub(crate) fn envelope(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    let envelope: Value = serde_json::from_str(text(result)).unwrap_or_else(|error| panic!("{error}: {result}"));
    assert_eq!(envelope["harness_timestamp"]["source"], "harness", "{envelope}");
    envelope
}

/// What a result says that has to be a failure.
pub(crate) fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "it succeeded: {result}");
    text(result)
}

/// Whether commands can run in panes here.
pub(crate) fn has_tmux() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("tmux").exists())
}

/// Where servers are started: a home, settings, plugins. The home lasts as long as a server in it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) program: Arc<Program>,
    flags: Vec<String>,
    /// The directory where they are started.
    directory: &'static str,
}

/// A home in which all tools and the guests of these tests were compiled, once.
static SEED: LazyLock<Program> = LazyLock::new(|| {
    let seed = Program::with_panes();
    for name in ["hostile", "shell_echo", "word_count"] {
        seed.write(&format!("data/toolcrib/plugins/{name}.wasm"), bytes_of(name));
    }
    assert!(seed.run(&["tools"]).status.success(), "the tools are listed");
    seed
});

/// A guest of the tests.
pub(crate) fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(guest(name)).expect("a guest that was built")
}

impl Home {
    /// Commands run as plain processes.
    pub(crate) fn new() -> Self {
        Self::of(Program::new())
    }

    /// Commands run in panes, unless a flag says otherwise.
    pub(crate) fn with_panes() -> Self {
        Self::of(Program::with_panes())
    }

    /// Nothing was compiled there.
    pub(crate) fn fresh() -> Self {
        Self { program: Arc::new(Program::cold()), flags: Vec::new(), directory: "work" }
    }

    fn of(program: Program) -> Self {
        reuse_code(SEED.root(), &program.path("state/toolcrib"));
        Self { program: Arc::new(program), flags: Vec::new(), directory: "work" }
    }

    /// The same home, where servers are started in another directory below that of the program.
    pub(crate) fn within(&self, directory: &'static str) -> Self {
        std::fs::create_dir_all(self.program.path(directory)).expect("a directory");
        Self { directory, ..self.clone() }
    }

    /// Adds flags of the command line.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(ToString::to_string));
        self
    }

    /// Adds a setting.
    pub(crate) fn set(self, setting: &str) -> Self {
        self.flags(&["--set", setting])
    }

    /// Lets commands run without a question.
    pub(crate) fn unasked(self) -> Self {
        self.set("tools.shell_confirm=false")
    }

    /// Grants a guest of the tests something, whether or not it is there yet.
    pub(crate) fn grant(self, name: &str, line: &str) -> Self {
        let home = self.set(&format!("plugin.{name}.sha256={:?}", digest(name)));
        home.set(&format!("plugin.{name}.{line}"))
    }

    /// Lets a guest of the tests read in the working directory.
    pub(crate) fn reading(self, name: &str) -> Self {
        let work = self.program.path("work");
        self.grant(name, &format!("files.read=[{work:?}]"))
    }

    /// Puts a guest of the tests into the user's directory of plugins.
    pub(crate) fn guest(self, name: &str) -> Self {
        self.install(name, &bytes_of(name));
        self
    }

    /// Puts a component there, in one step, in place of the one that has its name.
    pub(crate) fn install(&self, name: &str, bytes: &[u8]) {
        let plugin = self.plugin(name);
        std::fs::create_dir_all(plugin.parent().expect("a file has a directory")).expect("a directory");
        self.program.write("data/next", bytes);
        std::fs::rename(self.program.path("data/next"), plugin).expect("a file that can be moved");
    }

    /// The file of a plugin.
    pub(crate) fn plugin(&self, name: &str) -> PathBuf {
        self.program.path(&format!("data/toolcrib/plugins/{name}.wasm"))
    }

    /// Starts a server for a client that says nothing yet.
    pub(crate) fn start(&self, era: Era) -> Client {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let errors = self.program.path(&format!("stderr-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).chain(["serve"]).collect();
        let mut command = self.program.command(&flags);
        command.current_dir(self.program.path(self.directory));
        let stderr = File::create(&errors).expect("a file");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        let mood = Arc::new(AtomicU8::new(READS));
        let reader = std::thread::spawn({
            let mood = mood.clone();
            move || read(output, &mood, &sender)
        });
        Client {
            child,
            input,
            lines,
            reader: Some(reader),
            mood,
            era,
            can: forms(),
            ids: 0,
            kept: VecDeque::new(),
            errors,
            home: self.program.clone(),
        }
    }

    /// Starts a server, and tells it who is there.
    pub(crate) fn serve(&self, era: Era) -> Client {
        self.serve_to(era, forms())
    }

    /// The same for a client with these capabilities.
    pub(crate) fn serve_to(&self, era: Era, capabilities: Value) -> Client {
        let mut client = self.start(era);
        client.can = capabilities;
        client.shake_hands();
        client
    }
}

/// What the reader of a server's output does.
const READS: u8 = 0;
const PAUSES: u8 = 1;
const GOES: u8 = 2;

fn read(output: ChildStdout, mood: &AtomicU8, lines: &Sender<String>) {
    for line in BufReader::new(output).lines() {
        let is_text = line.is_ok();
        let line = line.unwrap_or_else(|error| format!("it is no text: {error}"));
        if lines.send(line).is_err() || !is_text || mood.load(Ordering::Relaxed) == GOES {
            return;
        }
        while mood.load(Ordering::Relaxed) == PAUSES {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// One message of the server.
fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line)
        .unwrap_or_else(|error| panic!("stdout has what is no message: {error}: `{line:.300}`"));
    let [method, result, error] = ["method", "result", "error"].map(|key| message.get(key).is_some());
    let is_one = message["jsonrpc"] == "2.0" && [method, result, error].iter().filter(|has| **has).count() == 1;
    assert!(is_one, "this is no message: {line:.300}");
    message
}

/// A question to the person, and the call that waits for the answer.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) call: u64,
    tool: String,
    arguments: Value,
    /// What the person is shown.
    pub(crate) form: Value,
    /// Where the answer belongs: the id of the server's request, or the `requestState`.
    pub(crate) place: Value,
}

impl Question {
    /// The words above the form.
    pub(crate) fn words(&self) -> &str {
        self.form["message"].as_str().expect("a form has a message")
    }

    /// The `requestState` that comes back with the answer.
    pub(crate) fn state(&self) -> &str {
        self.place.as_str().expect("the newer era has a state")
    }

    /// The same state for another call.
    pub(crate) fn with(&self, tool: &str, arguments: Value) -> Self {
        Self { tool: tool.to_owned(), arguments, ..self.clone() }
    }

    /// The call as it is sent again, with an answer and a state.
    pub(crate) fn again(&self, state: &str, says: Value) -> Value {
        json!({
            "name": self.tool,
            "arguments": self.arguments,
            "requestState": state,
            "inputResponses": { "approval": says },
        })
    }
}

/// A client, and the server that it started.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    mood: Arc<AtomicU8>,
    pub(crate) era: Era,
    /// Its capabilities.
    can: Value,
    ids: u64,
    /// Messages that came before anybody asked for them.
    kept: VecDeque<Value>,
    errors: PathBuf,
    home: Arc<Program>,
}

impl Client {
    /// Begins as the era has it; returns what the server says of itself.
    pub(crate) fn shake_hands(&mut self) -> Value {
        match self.era {
            Era::Legacy => {
                let hello = json!({
                    "protocolVersion": self.era.version(),
                    "capabilities": self.can,
                    "clientInfo": { "name": "rig", "version": "1" },
                });
                let said = self.ask("initialize", hello);
                self.notify("notifications/initialized", json!({}));
                said
            }
            Era::Modern => self.ask("server/discover", json!({})),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the server has said to people.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Sends bytes as they are. A server that ended early is seen by what it answers.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("its input is open");
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    /// Sends bytes from a thread of its own, for a server that reads no more while nobody reads what it answers.
    pub(crate) fn raw_aside(&mut self, bytes: Vec<u8>) -> JoinHandle<ChildStdin> {
        let mut input = self.input.take().expect("its input is open");
        std::thread::spawn(move || {
            let _ = input.write_all(&bytes);
            input
        })
    }

    /// Waits until all bytes of that thread are sent.
    pub(crate) fn join(&mut self, writer: JoinHandle<ChildStdin>) {
        self.input = Some(writer.join().expect("writing does not panic"));
    }

    fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// A request as a line, and its id.
    pub(crate) fn written(&mut self, method: &str, mut params: Value) -> (u64, String) {
        self.ids += 1;
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta[format!("{META}protocolVersion")] = self.era.version().into();
            meta[format!("{META}clientCapabilities")] = self.can.clone();
            meta[format!("{META}clientInfo")] = json!({ "name": "rig", "version": "1" });
        }
        let request = json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params });
        (self.ids, format!("{request}\n"))
    }

    /// Sends a request; returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let (id, line) = self.written(method, params);
        self.raw(line.as_bytes());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Says that the answer to a request is not wanted any more.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "a test" }));
    }

    /// Sends a call; returns its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The next message, also of those that were kept.
    pub(crate) fn next_message(&mut self) -> Value {
        self.take("message", |_| true)
    }

    /// The first message of a kind, which is waited for.
    pub(crate) fn take(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.kept.iter().position(&is_it).and_then(|at| self.kept.remove(at)) {
            return message;
        }
        let begin = Instant::now();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) else {
                panic!("no {what} came, but {:?} and on stderr: {}", self.kept, self.said());
            };
            let message = message(&line);
            if is_it(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// All that came and will come from a server that has ended.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let kept = std::mem::take(&mut self.kept);
        kept.into_iter().chain(self.lines.iter().map(|line| message(&line))).collect()
    }

    /// How many of the messages that have come so far, and that nobody took, are of a kind.
    pub(crate) fn count(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.kept.iter().filter(|message| is_it(message)).count()
    }

    /// Forgets messages of a kind.
    pub(crate) fn forget(&mut self, is_it: impl Fn(&Value) -> bool) {
        self.kept.retain(|message| !is_it(message));
    }

    /// Waits until everything that was sent before has been read, and what came of it at once is here.
    pub(crate) fn settle(&mut self) {
        self.ask("tools/list", json!({}));
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.take(&format!("answer to {id}"), |message| is_answer_to(message, id))
    }

    /// The result of a request that has to have one.
    pub(crate) fn result(&mut self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        let result = answer["result"].take();
        let has_type = result.get("resultType").is_some();
        assert_eq!(
            has_type,
            self.era == Era::Modern,
            "every result of the newer era has a type, and no other: {result}"
        );
        result
    }

    /// Code and message of a request that has to fail.
    pub(crate) fn error(&mut self, id: u64) -> (i64, String) {
        let answer = self.answer(id);
        let code = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("it has a result: {answer}"));
        (code, answer["error"]["message"].as_str().expect("an error has a message").to_owned())
    }

    /// Sends a request and waits for its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.result(id)
    }

    /// Calls a tool and waits for its result, which may be a failure.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// The next notification of a method.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.take(method, |message| message["method"] == method)
    }

    /// The tools by their names.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let name = |tool: &Value| tool["name"].as_str().expect("a tool has a name").to_owned();
        list["tools"].as_array().expect("a list").iter().map(name).collect()
    }

    /// Sends a call that a person has to approve, and waits for the question.
    pub(crate) fn asked(&mut self, tool: &str, arguments: &Value) -> Question {
        let call = self.begin(tool, arguments.clone());
        self.question(call, tool, arguments)
    }

    /// Waits for the question of a call.
    pub(crate) fn question(&mut self, call: u64, tool: &str, arguments: &Value) -> Question {
        let (mut request, place) = match self.era {
            Era::Legacy => {
                let mut request = self.notification("elicitation/create");
                let id = request["id"].take();
                (request, id)
            }
            Era::Modern => {
                let mut result = self.result(call);
                assert_eq!(result["resultType"], "input_required", "{result}");
                (result["inputRequests"]["approval"].take(), result["requestState"].take())
            }
        };
        assert_eq!(request["method"], "elicitation/create", "{request}");
        Question { call, tool: tool.to_owned(), arguments: arguments.clone(), form: request["params"].take(), place }
    }

    /// Sends the answer to a question; returns the id under which the outcome comes.
    pub(crate) fn reply(&mut self, question: &Question, says: Value) -> u64 {
        match self.era {
            Era::Legacy => {
                self.send(&json!({ "jsonrpc": "2.0", "id": question.place, "result": says }));
                question.call
            }
            Era::Modern => self.request("tools/call", question.again(question.state(), says)),
        }
    }

    /// Answers a question of the older era with an error.
    pub(crate) fn refuse(&mut self, question: &Question) {
        let error = json!({ "code": -32603, "message": "the window is gone" });
        self.send(&json!({ "jsonrpc": "2.0", "id": question.place, "error": error }));
    }

    /// Answers a question and waits for what comes of the call.
    pub(crate) fn outcome(&mut self, question: &Question, says: Value) -> Value {
        let id = self.reply(question, says);
        self.result(id)
    }

    /// Reads no more of what the server prints, but for one line, until it resumes.
    pub(crate) fn pause(&self) {
        self.mood.store(PAUSES, Ordering::Relaxed);
    }

    pub(crate) fn resume(&self) {
        self.mood.store(READS, Ordering::Relaxed);
    }

    /// Dies, as the server sees it: both pipes break.
    pub(crate) fn hang_up(&mut self) {
        self.mood.store(GOES, Ordering::Relaxed);
        // The reader looks up at the next line.
        self.request("tools/list", json!({}));
        if let Some(reader) = self.reader.take() {
            reader.join().expect("reading does not panic");
        }
        self.close();
    }

    /// Closes the server's input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Closes the server's input and waits for its end, which has to come by itself.
    pub(crate) fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.close();
        self.resume();
        self.ended(limit)
    }

    /// Waits for the server's end.
    pub(crate) fn ended(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            let status = self.child.try_wait().expect("a child");
            if status.is_some() || begin.elapsed() > limit {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.end(Duration::from_secs(8)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // A tmux that is to end waits for all of its clients.
        kill(&tmux_clients(&self.home));
    }
}

/// Whether a message answers the request with this id. Requests of the server have ids of their own.
pub(crate) fn is_answer_to(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

pub(crate) fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

/// Takes the progress that has come: of this token, and each time more. Returns how much there was.
pub(crate) fn progress_of(client: &mut Client, token: &Value) -> usize {
    let told = client.count(is_progress);
    let mut last = -1.0;
    for _ in 0..told {
        let news = client.notification("notifications/progress")["params"].take();
        assert_eq!(&news["progressToken"], token, "{news}");
        let progress = news["progress"].as_f64().expect("a number");
        assert!(progress > last, "{progress} after {last}");
        last = progress;
    }
    told
}
