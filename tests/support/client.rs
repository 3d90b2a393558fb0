//! The client of `toolcrib run`: sends calls by ids of its own, takes answers in any order, keeps events.

use crate::Running;
use crate::envelope::{failure, result, said};
use crate::shell::{command, declared, waiting};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

/// The id of every cancellation.
const CANCEL: &str = "cancel";

/// A client, and the host that answers it.
pub struct Client {
    running: Running,
    calls: u64,
    /// Answers that came before anybody asked for them.
    kept: VecDeque<Value>,
    events: Vec<Told>,
}

/// An event, and when it was read.
struct Told {
    call: Value,
    at: Instant,
    event: Value,
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
    /// The client of a host that was started.
    #[must_use]
    pub fn of(running: Running) -> Self {
        Self { running, calls: 0, kept: VecDeque::new(), events: Vec::new() }
    }

    /// Sends a call without waiting for its answer; returns its id.
    pub fn send(&mut self, tool: &str, arguments: impl Into<Value>) -> u64 {
        self.calls += 1;
        self.running.write(request(self.calls, tool, &arguments.into()));
        self.calls
    }

    /// Cancels a call.
    pub fn cancel(&mut self, id: u64) {
        self.running.write(cancel(CANCEL, id));
    }

    /// The next answer, whichever call it belongs to.
    pub fn answer(&mut self) -> Value {
        self.kept.pop_front().unwrap_or_else(|| self.read("answer"))
    }

    /// The answer to a call; others are kept. A cancellation that came too late has an answer of its own, which is dropped.
    pub fn answer_to(&mut self, id: u64) -> Value {
        if let Some(answer) = self.kept.iter().position(|answer| answer["id"] == id).and_then(|at| self.kept.remove(at))
        {
            return answer;
        }
        loop {
            let answer = self.read(&format!("answer to {id}"));
            if answer["id"] == id {
                return answer;
            }
            if answer["id"] != CANCEL {
                self.kept.push_back(answer);
            }
        }
    }

    fn read(&mut self, what: &str) -> Value {
        loop {
            let line = self.running.next(what);
            if !self.is_event(&line) {
                return line;
            }
        }
    }

    /// Keeps the line if it is an event.
    fn is_event(&mut self, line: &Value) -> bool {
        let is_event = line["event"].is_object();
        if is_event {
            self.events.push(Told { call: line["id"].clone(), at: Instant::now(), event: line["event"].clone() });
        }
        is_event
    }

    /// The events of a call that were read so far.
    pub fn events(&self, id: u64) -> impl Iterator<Item = &Value> {
        self.told(id).map(|told| &told.event)
    }

    fn told(&self, id: u64) -> impl Iterator<Item = &Told> {
        self.events.iter().filter(move |told| told.call == id)
    }

    /// When a call had printed this on standard output.
    #[must_use]
    pub fn when_printed(&self, id: u64, text: &str) -> Option<Instant> {
        let mut printed = String::new();
        self.told(id).filter(|told| told.event["type"] == "stdout").find_map(|told| {
            printed += told.event["text"].as_str().unwrap_or_default();
            printed.contains(text).then_some(told.at)
        })
    }

    /// Waits until a call has printed this on standard output.
    pub fn until_printed(&mut self, id: u64, text: &str) {
        while self.when_printed(id, text).is_none() {
            let line = self.running.next(&format!("`{text}` of call {id}"));
            assert!(self.is_event(&line), "it ended before it printed `{text}`: {line}");
        }
    }

    /// Calls a tool and returns its envelope, before which no other answer may come.
    pub fn call(&mut self, tool: &str, arguments: impl Into<Value>) -> Value {
        let id = self.send(tool, arguments);
        let answer = self.kept.pop_front().unwrap_or_else(|| self.read(&format!("answer of `{tool}`")));
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool that must succeed.
    pub fn result(&mut self, tool: &str, arguments: impl Into<Value>) -> Value {
        result(&self.call(tool, arguments))
    }

    /// Calls a tool that must fail; returns `kind: message`.
    pub fn failure(&mut self, tool: &str, arguments: impl Into<Value>) -> String {
        failure(&self.call(tool, arguments))
    }

    /// The same with its hint: `kind: message (hint)`.
    pub fn refused(&mut self, tool: &str, arguments: impl Into<Value>) -> String {
        said(&self.call(tool, arguments))
    }

    /// Runs a command; returns its envelope.
    pub fn shell(&mut self, text: &str) -> Value {
        self.call("run_shell", command(text))
    }

    /// The same with a time to wait.
    pub fn within(&mut self, text: &str, wait: &str) -> Value {
        self.call("run_shell", waiting(text, wait))
    }

    /// Runs a command; returns its exit code and standard output.
    pub fn run(&mut self, text: &str) -> (i64, String) {
        let result = self.result("run_shell", command(text));
        (result["exit_code"].as_i64().expect("a status"), result["stdout"].as_str().expect("text").to_owned())
    }

    /// Runs a command that must succeed; returns its standard output.
    pub fn output(&mut self, text: &str) -> String {
        let (status, stdout) = self.run(text);
        assert_eq!(status, 0, "`{text:.200}`: {stdout}");
        stdout
    }

    /// Reads a file; returns the envelope.
    pub fn read_file(&mut self, path: &str) -> Value {
        self.call("read_file", json!({ "path": path }))
    }

    /// Writes a file; returns the envelope.
    pub fn write_file(&mut self, path: &str, content: &str) -> Value {
        self.call("write_file", json!({ "path": path, "content": content }))
    }

    /// What the shared pane shows.
    pub fn screen(&mut self) -> String {
        self.result("capture-pane", json!({})).as_str().expect("text").to_owned()
    }

    /// Types into the shared pane.
    pub fn type_keys(&mut self, keys: &[&str]) {
        self.result("send-keys", declared(json!({ "keys": keys })));
    }
}

/// A line that calls a tool.
#[must_use]
pub fn request(id: impl Into<Value>, tool: &str, arguments: &Value) -> String {
    format!("{}\n", json!({ "id": id.into(), "tool": tool, "arguments": arguments }))
}

/// A line that cancels a call.
#[must_use]
pub fn cancel(id: impl Into<Value>, target: impl Into<Value>) -> String {
    format!("{}\n", json!({ "id": id.into(), "cancel": target.into() }))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a script plays the host")]
mod tests {
    use super::Client;
    use crate::processes::lives;
    use crate::{Running, shell};
    use serde_json::json;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;

    /// The client of a host that reads some lines, then runs this script.
    fn client(lines: usize, then: &str) -> Client {
        let script = format!("{}{then}", "read line; ".repeat(lines));
        Client::of(Running::start(Command::new("sh").args(["-c", &script])))
    }

    #[test]
    fn answers_are_taken_in_any_order_and_events_are_kept() {
        let answers = [
            json!({ "id": 1, "event": { "type": "stdout", "text": "be" } }),
            json!({ "id": "cancel", "error": {} }),
            json!({ "id": 2, "result": "b" }),
            json!({ "id": 1, "event": { "type": "stdout", "text": "gun" } }),
            json!({ "id": 1, "result": "a" }),
        ];
        let mut client = client(2, &answers.map(|answer| format!("echo '{answer}'\n")).concat());
        let ids = [client.send("time", json!({})), client.send("run_shell", shell::command("true"))];
        assert_eq!(ids.map(|id| client.answer_to(id)["result"].clone()), ["a", "b"]);
        assert!(client.when_printed(1, "begun").is_some() && client.when_printed(2, "begun").is_none());
        assert_eq!(client.events(1).count(), 2);
    }

    #[test]
    fn whoever_waits_in_vain_is_told_for_what_and_what_was_said() {
        let mut client = client(1, "echo 'out of order' >&2");
        let told = catch_unwind(AssertUnwindSafe(|| client.call("time", json!({})))).expect_err("no answer");
        let told = told.downcast_ref::<String>().expect("words");
        assert_eq!(told, "no answer of `time`, its output is at its end: out of order\n");
    }

    #[test]
    fn a_host_ends_with_its_client() {
        let client = client(0, "exec sleep 1000");
        let pid = client.pid().to_string();
        assert!(lives(&pid));
        drop(client);
        assert!(!lives(&pid));
    }
}
