//! Without managed tmux, but started inside a pane: that pane can be looked at and typed into, and nothing else.

use crate::crib::{command, declared};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use toolcrib_tests::Program;

/// A tmux of the user's own, with the program in one of its panes.
struct Inside {
    program: Program,
    pane: String,
}

impl Inside {
    fn new() -> Self {
        let program = Program::new();
        let mut inside = Self { program, pane: String::new() };
        inside.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "mine", "-x", "100", "-y", "30", "sh"]);
        inside.pane = inside.tmux(&["display-message", "-p", "-t", "mine", "#{pane_id}"]).trim().to_owned();
        inside
    }

    #[expect(clippy::disallowed_methods, reason = "a test stands in for the user")]
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        let output = tmux.arg("-S").arg(self.program.path("mine")).args(arguments).output().expect("tmux");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn toolcrib(&self, arguments: &[&str]) -> (bool, String) {
        let mut toolcrib = self.program.command(arguments);
        let socket = self.program.path("mine");
        toolcrib.env("TMUX", format!("{},1,0", socket.display())).env("TMUX_PANE", &self.pane);
        let output = toolcrib.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), if text.is_empty() { String::from_utf8_lossy(&output.stderr).into() } else { text })
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let (_, text) = self.toolcrib(&["--yes", "call", tool, &arguments.to_string()]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What the pane shows, once it shows that.
    fn shows(&self, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let answer = self.call("capture-pane", &json!({}));
            let screen = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
            if screen.contains(text) || begin.elapsed() > Duration::from_secs(10) {
                return screen;
            }
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn the_pane_of_the_program_is_looked_at_and_typed_into() {
    let inside = Inside::new();
    let typed = declared(
        json!({ "literal_text": "echo $((40 + 2)) '#{pane_id}' \\;;", "keys": ["BSpace", "BSpace", "BSpace"], "enter": true }),
    );
    let answer = inside.call("send-keys", &typed);
    assert_eq!(answer["result"]["pane"], inside.pane, "{answer}");
    assert_eq!(answer["result"]["session"], "mine");
    assert!(inside.shows("42 #{pane_id}").contains("42 #{pane_id}\n"), "{}", inside.shows(""));
}

#[test]
fn no_other_pane_can_be_named() {
    let inside = Inside::new();
    inside.tmux(&["split-window", "-d", "-t", "mine", "sh"]);
    for place in [json!({ "session": "mine" }), json!({ "pane": "shared" }), json!({ "target": "%1" })] {
        let error = &inside.call("capture-pane", &place)["error"];
        assert_eq!(error["kind"], "unavailable", "{error}");
        let mut keys = declared(place);
        keys["literal_text"] = "echo owned".into();
        assert_eq!(inside.call("send-keys", &keys)["error"]["kind"], "unavailable");
    }
    assert_eq!(inside.tmux(&["capture-pane", "-p", "-t", "%1"]).matches("owned").count(), 0);
}

#[test]
fn typing_there_obeys_approval_and_denylist() {
    let inside = Inside::new();
    let typed = declared(json!({ "literal_text": "rm -rf / --no-preserve-root", "enter": false }));
    let error = inside.call("send-keys", &typed)["error"].clone();
    assert_eq!(error["kind"], "denied", "{error}");
    let harmless = declared(json!({ "literal_text": "echo unasked" })).to_string();
    let (_, text) = inside.toolcrib(&["call", "send-keys", &harmless]);
    assert!(text.contains("\"denied\""), "{text}");
    assert!(!inside.shows("").contains("unasked"));
}

#[test]
fn only_the_tools_that_can_work_are_listed() {
    let inside = Inside::new();
    let (_, listed) = inside.toolcrib(&["tools"]);
    assert!(listed.contains("capture-pane") && listed.contains("send-keys"), "{listed}");
    assert!(!listed.contains("tmux-create-pane"), "{listed}");
    let outside = String::from_utf8(inside.program.run(&["tools"]).stdout).expect("text");
    assert!(!outside.contains("capture-pane"), "{outside}");
}

#[test]
fn commands_run_as_plain_processes_there() {
    let inside = Inside::new();
    let answer = inside.call("run_shell", &command("echo plain; echo err >&2"));
    assert_eq!(answer["result"]["stderr"], "err\n", "{answer}");
    assert!(!inside.shows("").contains("plain"));
}

#[test]
fn a_pane_that_is_gone_is_a_clear_failure() {
    let inside = Inside::new();
    inside.tmux(&["kill-server"]);
    let error = inside.call("capture-pane", &json!({}))["error"].clone();
    assert_eq!(error["kind"], "unavailable", "{error}");
}

#[test]
fn a_long_text_is_typed_whole() {
    let inside = Inside::new();
    inside.tmux(&["respawn-pane", "-k", "-t", "mine", "stty raw -echo; echo ready; head -c 60000 | wc -c; cat"]);
    inside.shows("ready");
    let typed = declared(json!({ "literal_text": "\u{e9}".repeat(30_000) }));
    assert_eq!(inside.call("send-keys", &typed)["result"]["pane"], inside.pane);
    assert!(inside.shows("60000").contains("60000"));
}
