//! The client of `toolcrib serve` over pipes: it knows JSON-RPC, and nothing of any SDK, in both eras of the protocol.
//!
//! Every line that the server prints has to be one message. What a test has not asked for is kept until it does.

use crate::canary;
use crate::processes::{kill, tmux_clients};
use crate::{PATIENCE, Program, Running};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::ops::{Deref, DerefMut};
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use toolcrib::formats::ENVELOPE;

/// What the keys of the newer era's metadata begin with.
pub const META: &str = "io.modelcontextprotocol/";

/// The two kinds of revisions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// They begin with `initialize`.
    Legacy,
    /// Every request speaks for itself.
    Modern,
}

/// Both.
pub const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

impl Era {
    /// The version of the protocol that stands for the era.
    pub fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// What a client that can show forms declares.
pub fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// A form that somebody has filled in.
pub fn decides(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// The first block of a result, which is text.
pub fn text(result: &Value) -> &str {
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The envelope of a result that has to be a success: it lies beside what models read.
pub fn envelope(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    text(result);
    let envelope = result["_meta"][ENVELOPE].clone();
    assert_eq!(envelope["harness_timestamp"]["source"], "harness", "{envelope}");
    envelope
}

/// What a result says that has to be a failure.
pub fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "it succeeded: {result}");
    text(result)
}

/// What the reader of a server's output does.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Reads,
    Pauses,
    Goes,
}

/// Its mood, and word of a new one.
type Moods = (Mutex<Mood>, Condvar);

fn set_mood((mood, changed): &Moods, now: Mood) {
    *mood.lock().expect("no thread panics while it holds the mood") = now;
    changed.notify_all();
}

fn read(output: impl BufRead, (mood, changed): &Moods, lines: &Sender<String>) {
    for line in output.lines() {
        let is_text = line.is_ok();
        let line = line.unwrap_or_else(|error| format!("it is no text: {error}"));
        if lines.send(line).is_err() || !is_text {
            return;
        }
        let mood = mood.lock().expect("no thread panics while it holds the mood");
        let mood = changed.wait_while(mood, |mood| *mood == Mood::Pauses);
        if *mood.expect("no thread panics while it holds the mood") == Mood::Goes {
            return;
        }
    }
}

/// One message of the server.
fn message(line: &str) -> Value {
    canary::check("a message", line);
    let message: Value = serde_json::from_str(line)
        .unwrap_or_else(|error| panic!("stdout has what is no message: {error}: `{line:.300}`"));
    let [method, result, error] = ["method", "result", "error"].map(|key| message.get(key).is_some());
    let is_one = message["jsonrpc"] == "2.0" && [method, result, error].iter().filter(|has| **has).count() == 1;
    assert!(is_one, "this is no message: {line:.300}");
    message
}

/// A question to the person, and the call that waits for the answer.
#[derive(Clone)]
pub struct Question {
    /// The id of the call.
    pub call: u64,
    tool: String,
    arguments: Value,
    /// What the person is shown.
    pub form: Value,
    /// Where the answer belongs: the id of the server's request, or the `requestState`.
    pub place: Value,
}

impl Question {
    /// The question that is the result of a call, in the newer era.
    pub fn of(mut result: Value, call: u64, tool: &str, arguments: &Value) -> Self {
        assert_eq!(result["resultType"], "input_required", "{result}");
        let (request, place) = (result["inputRequests"]["approval"].take(), result["requestState"].take());
        Self::new(call, tool, arguments, request, place)
    }

    fn new(call: u64, tool: &str, arguments: &Value, mut request: Value, place: Value) -> Self {
        assert_eq!(request["method"], "elicitation/create", "{request}");
        Self { call, tool: tool.to_owned(), arguments: arguments.clone(), form: request["params"].take(), place }
    }

    /// The words above the form.
    pub fn words(&self) -> &str {
        self.form["message"].as_str().expect("a form has a message")
    }

    /// The `requestState` that comes back with the answer.
    pub fn state(&self) -> &str {
        self.place.as_str().expect("the newer era has a state")
    }

    /// The same state for another call.
    pub fn with(&self, tool: &str, arguments: Value) -> Self {
        Self { tool: tool.to_owned(), arguments, ..self.clone() }
    }

    /// The call as it is sent again, with an answer and a state.
    pub fn again(&self, state: &str, says: Value) -> Value {
        json!({
            "name": self.tool,
            "arguments": self.arguments,
            "requestState": state,
            "inputResponses": { "approval": says },
        })
    }
}

/// A client, and the server that it started.
pub struct Client {
    running: Running,
    lines: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    moods: Arc<Moods>,
    /// The era that it speaks.
    pub era: Era,
    /// Its capabilities.
    can: Value,
    ids: u64,
    /// Messages that came before anybody asked for them.
    kept: VecDeque<Value>,
    home: Arc<Program>,
}

impl Deref for Client {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

impl Client {
    /// Starts a server in this home for a client with these capabilities, which says nothing yet.
    #[must_use]
    pub fn start(command: &mut Command, home: Arc<Program>, era: Era, can: Value) -> Self {
        let mut running = Running::start(command);
        let (sender, lines) = channel();
        let moods = Arc::new((Mutex::new(Mood::Reads), Condvar::new()));
        // It reads at all times, as clients do: a server has things to say that nobody asked for.
        let reader = std::thread::spawn({
            let (output, moods) = (running.take_output(), moods.clone());
            move || read(output, &moods, &sender)
        });
        Self { running, lines, reader: Some(reader), moods, era, can, ids: 0, kept: VecDeque::new(), home }
    }

    /// Begins as the era has it; returns what the server says of itself.
    pub fn shake_hands(&mut self) -> Value {
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

    /// Sends bytes from a thread of its own, for a server that reads no more while nobody reads what it answers.
    pub fn raw_aside(&mut self, bytes: Vec<u8>) -> JoinHandle<ChildStdin> {
        let mut input = self.running.take_input();
        std::thread::spawn(move || {
            let _ = input.write_all(&bytes);
            input
        })
    }

    /// Waits until all bytes of that thread are sent.
    pub fn join(&mut self, writer: JoinHandle<ChildStdin>) {
        self.running.give_input(writer.join().expect("writing does not panic"));
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n"));
    }

    /// A request as a line, and its id.
    pub fn written(&mut self, method: &str, mut params: Value) -> (u64, String) {
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
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        let (id, line) = self.written(method, params);
        self.write(line);
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Says that the answer to a request is not wanted any more.
    pub fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "a test" }));
    }

    /// Sends a call; returns its id.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The next message, also of those that were kept.
    pub fn next_message(&mut self) -> Value {
        self.take("message", |_| true)
    }

    /// The first message of a kind, which is waited for.
    pub fn take(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
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
    pub fn rest(&mut self) -> Vec<Value> {
        let kept = std::mem::take(&mut self.kept);
        kept.into_iter().chain(self.lines.iter().map(|line| message(&line))).collect()
    }

    /// How many of the messages that have come so far, and that nobody took, are of a kind.
    pub fn count(&self, is_it: impl Fn(&Value) -> bool) -> usize {
        self.kept.iter().filter(|message| is_it(message)).count()
    }

    /// Forgets messages of a kind.
    pub fn forget(&mut self, is_it: impl Fn(&Value) -> bool) {
        self.kept.retain(|message| !is_it(message));
    }

    /// Waits until everything that was sent before has been read, and what came of it at once is here.
    pub fn settle(&mut self) {
        self.ask("tools/list", json!({}));
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        self.take(&format!("answer to {id}"), |message| is_answer_to(message, id))
    }

    /// The result of a request that has to have one.
    pub fn result(&mut self, id: u64) -> Value {
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
    pub fn error(&mut self, id: u64) -> (i64, String) {
        let answer = self.answer(id);
        let code = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("it has a result: {answer}"));
        (code, answer["error"]["message"].as_str().expect("an error has a message").to_owned())
    }

    /// Sends a request and waits for its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.result(id)
    }

    /// Calls a tool and waits for its result, which may be a failure.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// The next notification of a method.
    pub fn notification(&mut self, method: &str) -> Value {
        self.take(method, |message| message["method"] == method)
    }

    /// The tools by their names.
    pub fn tools(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let name = |tool: &Value| tool["name"].as_str().expect("a tool has a name").to_owned();
        list["tools"].as_array().expect("a list").iter().map(name).collect()
    }

    /// Sends a call that a person has to approve, and waits for the question.
    pub fn asked(&mut self, tool: &str, arguments: &Value) -> Question {
        let call = self.begin(tool, arguments.clone());
        self.question(call, tool, arguments)
    }

    /// Waits for the question of a call.
    pub fn question(&mut self, call: u64, tool: &str, arguments: &Value) -> Question {
        match self.era {
            Era::Legacy => {
                let mut request = self.notification("elicitation/create");
                let place = request["id"].take();
                Question::new(call, tool, arguments, request, place)
            }
            Era::Modern => Question::of(self.result(call), call, tool, arguments),
        }
    }

    /// Sends the answer to a question; returns the id under which the outcome comes.
    pub fn reply(&mut self, question: &Question, says: Value) -> u64 {
        match self.era {
            Era::Legacy => {
                self.send(&json!({ "jsonrpc": "2.0", "id": question.place, "result": says }));
                question.call
            }
            Era::Modern => self.request("tools/call", question.again(question.state(), says)),
        }
    }

    /// Answers a question of the older era with an error.
    pub fn refuse(&mut self, question: &Question) {
        let error = json!({ "code": -32603, "message": "the window is gone" });
        self.send(&json!({ "jsonrpc": "2.0", "id": question.place, "error": error }));
    }

    /// Answers a question and waits for what comes of the call.
    pub fn outcome(&mut self, question: &Question, says: Value) -> Value {
        let id = self.reply(question, says);
        self.result(id)
    }

    /// Reads no more of what the server prints, but for one line, until it resumes.
    pub fn pause(&self) {
        set_mood(&self.moods, Mood::Pauses);
    }

    /// Reads on.
    pub fn resume(&self) {
        set_mood(&self.moods, Mood::Reads);
    }

    /// Dies, as the server sees it: both pipes break.
    pub fn hang_up(&mut self) {
        set_mood(&self.moods, Mood::Goes);
        // The reader looks up at the next line.
        self.request("tools/list", json!({}));
        if let Some(reader) = self.reader.take() {
            reader.join().expect("reading does not panic");
        }
        self.close();
    }

    /// Closes the server's input and waits for its end, which has to come by itself, while it is read.
    pub fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.resume();
        self.running.end(limit)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.end(Duration::from_secs(8)).is_none() {
            self.running.kill();
        }
        // A tmux that is to end waits for all of its clients.
        kill(&tmux_clients(&self.home));
        self.lines.try_iter().for_each(|line| canary::check("a message that nobody took", line));
    }
}

/// Whether a message answers the request with this id. Requests of the server have ids of their own.
pub fn is_answer_to(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

/// Whether a message tells the progress of a call.
pub fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

/// Takes the progress that has come: of this token, and each time more. Returns how much there was.
pub fn progress_of(client: &mut Client, token: &Value) -> usize {
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
