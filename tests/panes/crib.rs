//! A host whose commands run in panes, spoken to by `toolcrib run`.

use serde_json::{Value, json};
use toolcrib_tests::{Program, Running};

/// The program while it serves, with a managed tmux of its own.
pub(crate) struct Crib {
    pub(crate) program: Program,
    running: Running,
    settings: Vec<String>,
    calls: u64,
}

/// The shared pane of the first session, whatever that is called.
pub(crate) const SHARED: &str = "%0";

/// Starts one of several hosts that share a home.
pub(crate) fn serve(program: &Program, settings: &[&str]) -> Running {
    let set = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["--yes"].into_iter().chain(set).chain(["run"]).collect();
    program.start(&arguments)
}

/// Arguments of `run_shell`.
pub(crate) fn command(text: &str) -> Value {
    json!({ "command": text, "risk": "low", "mutation": true, "privesc": false, "why": "a test" })
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

impl Crib {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        Self::on(Program::with_panes(), settings)
    }

    pub(crate) fn on(program: Program, settings: &[&str]) -> Self {
        let running = serve(&program, settings);
        Self { program, running, settings: settings.iter().map(ToString::to_string).collect(), calls: 0 }
    }

    /// Ends the host at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.running.child.kill().and_then(|()| self.running.child.wait()).expect("it ends");
    }

    /// The next host in the same home.
    pub(crate) fn again(self) -> Self {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        Self::on(self.program, &settings)
    }

    /// Calls a tool and returns its envelope.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send(tool, arguments);
        let answer = self.running.line();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a call without waiting for its answer.
    pub(crate) fn send(&mut self, tool: &str, arguments: Value) -> u64 {
        self.calls += 1;
        let line = json!({ "id": self.calls, "tool": tool, "arguments": arguments });
        self.running.send(&format!("{line}\n"));
        self.calls
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        self.running.send(&format!("{}\n", json!({ "id": "cancel", "cancel": id })));
    }

    /// The next answer, whichever call it belongs to.
    pub(crate) fn answer(&mut self) -> Value {
        self.running.line()
    }

    /// Runs a command in the shared pane; returns its exit code and output.
    pub(crate) fn run(&mut self, text: &str) -> (i64, String) {
        let result = self.result("run_shell", command(text));
        (result["exit_code"].as_i64().expect("a status"), result["stdout"].as_str().expect("text").to_owned())
    }

    /// Calls a tool that must succeed.
    pub(crate) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must fail; returns `kind: message`.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        let error = &answer["error"];
        assert!(error.is_object(), "it succeeded: {answer}");
        format!("{}: {}", error["kind"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
    }

    /// What a command that must fail says.
    pub(crate) fn refusal(&mut self, text: &str) -> String {
        self.failure("run_shell", command(text))
    }

    /// Runs a command with a time to wait.
    pub(crate) fn within(&mut self, text: &str, wait: &str) -> Value {
        let mut arguments = command(text);
        arguments["wait"] = wait.into();
        self.call("run_shell", arguments)
    }

    /// What the shared pane shows, without blank lines.
    pub(crate) fn screen(&mut self) -> String {
        let text = self.result("capture-pane", json!({}));
        let lines = text.as_str().expect("text").lines().filter(|line| !line.trim().is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits until the shared pane shows a text; false when it does not within some seconds.
    pub(crate) fn shows(&mut self, text: &str) -> bool {
        let begin = std::time::Instant::now();
        while begin.elapsed() < std::time::Duration::from_secs(10) {
            if self.screen().contains(text) {
                return true;
            }
        }
        false
    }

    /// Types into the shared pane.
    pub(crate) fn type_keys(&mut self, keys: &[&str]) {
        self.result("send-keys", declared(json!({ "keys": keys })));
    }
}
