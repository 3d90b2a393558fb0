//! The pane that the program was started in, where the user chose it: it is looked at and typed into, and nothing else. That nothing is
//! typed where questions are answered is in `tests/adversarial`.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::shell::{command, declared, waiting};
use toolcrib_tests::{Seat, without_terminal};

const YES: [&str; 2] = ["--yes", "--own-pane"];

/// A seat, and the program as if it were started there; it has no terminal.
struct Inside(Seat);

impl Inside {
    fn new() -> Self {
        Self(Seat::new())
    }

    fn toolcrib(&self, arguments: &[&str]) -> String {
        let mut toolcrib = self.0.program.command(arguments);
        toolcrib.env("TMUX", self.0.variable()).env("TMUX_PANE", &self.0.pane);
        let output = without_terminal(&mut toolcrib).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.is_empty() { String::from_utf8_lossy(&output.stderr).into() } else { text }
    }

    fn call_with(&self, flags: &[&str], tool: &str, arguments: &Value) -> Value {
        let text = self.toolcrib(&[flags, &["call", tool, &arguments.to_string()]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_with(&YES, tool, arguments)
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

    /// A command that is not waited for.
    fn dispatch(&self, text: &str) -> Value {
        let arguments = waiting(text, false);
        self.call("run_shell", &arguments)
    }
}

#[test]
fn the_pane_of_the_program_is_looked_at_and_typed_into() {
    let inside = Inside::new();
    let typed = declared(
        json!({ "literal_text": "echo $((40 + 2)) '#{pane_id}' \\;;", "keys": ["BSpace", "BSpace", "BSpace"], "enter": true }),
    );
    let answer = inside.call("send-keys", &typed);
    assert_eq!(answer["result"]["pane"], inside.0.pane, "{answer}");
    assert_eq!(answer["result"]["session"], "mine");
    assert!(inside.shows("42 #{pane_id}").contains("42 #{pane_id}\n"), "{}", inside.shows(""));
}

#[test]
fn a_command_that_is_not_waited_for_is_typed_there_and_the_result_names_the_pane() {
    let inside = Inside::new();
    // What the person had begun to type is not run.
    let _ = inside.0.tmux(&["send-keys", "-t", &inside.0.pane, "-l", "--", "echo half"]);
    let answer = inside.dispatch("for x in a b; do\n  echo \"$x$((40 + 2))\"\ndone");
    let said = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(said.contains(&format!("`{}`", inside.0.pane)), "{said}");
    let screen = inside.shows("b42");
    assert!(screen.contains("a42\nb42\n") && !screen.contains("\nhalf\n"), "{screen}");
}

#[test]
fn a_command_there_obeys_denylist_and_guardrails() {
    let inside = Inside::new();
    for (text, kind) in [
        ("rm -rf / --no-preserve-root", "denied"),
        ("exit 3", "denied"),
        ("tmux kill-server", "denied"),
        ("echo a\trm", "invalid_arguments"),
        ("echo !!", "invalid_arguments"),
    ] {
        let error = inside.dispatch(text)["error"].clone();
        assert_eq!(error["kind"], kind, "`{text}`: {error}");
    }
    let mut unasked = command("echo unasked");
    unasked["wait"] = json!(false);
    let error = inside.call_with(&["--own-pane"], "run_shell", &unasked)["error"].clone();
    assert_eq!(error["kind"], "denied", "{error}");
    assert!(!inside.shows("").contains("unasked"));
}

#[test]
fn a_command_is_not_typed_into_another_program() {
    let inside = Inside::new();
    inside.0.types("exec cat");
    toolcrib_tests::eventually("cat runs", || {
        inside.0.tmux(&["display-message", "-p", "-t", &inside.0.pane, "#{pane_current_command}"]) == "cat\n"
    });
    let error = inside.dispatch("echo text")["error"].clone();
    assert_eq!(error["kind"], "busy", "{error}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("`cat`")), "{error}");
}

#[test]
fn a_look_is_asked_for() {
    let inside = Inside::new();
    inside.0.types("echo written by the user; clear");
    inside.0.types("toolcrib --own-pane call capture-pane '{\"start\":\"-\",\"delay\":\"10ms\"}' >../looked");
    inside.0.shows("Allow?");
    let question = inside.0.screen();
    for part in
        ["capture-pane", "after 10ms", "of mine, where this program was started", "from the begin of its history"]
    {
        assert!(question.replace('\n', " ").contains(part), "`{part}`: {question}");
    }
    inside.0.types("n");
    let looked = || std::fs::read_to_string(inside.0.program.path("looked")).unwrap_or_default();
    toolcrib_tests::eventually("the look is refused", || looked().contains("denied by user"));
    inside.0.types("clear");
    toolcrib_tests::eventually("the question is gone", || !inside.0.screen().contains("Allow?"));
    inside.0.types("toolcrib --own-pane call capture-pane >../looked");
    inside.0.shows("Allow?");
    inside.0.types("y");
    toolcrib_tests::eventually("the look is told", || looked().contains("\"result\""));
    // With nobody there to be asked, nothing is seen.
    let error = inside.call_with(&["--own-pane"], "capture-pane", &json!({}))["error"].clone();
    assert_eq!(error["kind"], "denied", "{error}");
}

#[test]
fn no_other_pane_can_be_named() {
    let inside = Inside::new();
    let other = inside.0.tmux(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "mine", "sh"]);
    let other = other.trim();
    for place in [
        json!({ "session": "mine" }),
        json!({ "pane": "shared" }),
        json!({ "target": other }),
        json!({ "target": "mine" }),
    ] {
        let error = &inside.call("capture-pane", &place)["error"];
        assert_eq!(error["kind"], "unavailable", "{error}");
        let mut keys = declared(place);
        keys["literal_text"] = "echo owned".into();
        assert_eq!(inside.call("send-keys", &keys)["error"]["kind"], "unavailable");
    }
    assert_eq!(inside.0.tmux(&["capture-pane", "-p", "-t", other]).matches("owned").count(), 0);
    let own = inside.call("capture-pane", &json!({ "target": inside.0.pane }));
    assert!(own["result"].is_string(), "{own}");
}

#[test]
fn typing_there_obeys_approval_and_denylist() {
    let inside = Inside::new();
    let typed = declared(json!({ "literal_text": "rm -rf / --no-preserve-root", "enter": false }));
    let error = inside.call("send-keys", &typed)["error"].clone();
    assert_eq!(error["kind"], "denied", "{error}");
    let harmless = declared(json!({ "literal_text": "echo unasked" }));
    let error = inside.call_with(&["--own-pane"], "send-keys", &harmless)["error"].clone();
    assert_eq!(error["kind"], "denied", "{error}");
    assert!(!inside.shows("").contains("unasked"));
}

#[test]
fn only_the_flag_chooses_it_and_only_in_a_pane() {
    let inside = Inside::new();
    let managed = inside.call_with(&["--yes"], "send-keys", &declared(json!({ "enter": true })));
    assert_eq!(managed["result"]["pane"], "shared", "{managed}");
    let listed = inside.toolcrib(&["--yes", "--own-pane", "tools"]);
    assert!(listed.contains("capture-pane") && listed.contains("send-keys"), "{listed}");
    assert!(!listed.contains("tmux-create-pane"), "{listed}");
    let outside = inside.0.program.run(&["--own-pane", "tools"]);
    let said = String::from_utf8_lossy(&outside.stderr);
    assert!(outside.status.code() == Some(2) && said.contains("was not started in a tmux pane"), "{said}");
    for refused in [&["--no-tmux"][..], &["--tmux"], &["--container=x"], &["--set", "tmux.enabled=false"]] {
        let said = inside.toolcrib(&[&["--own-pane"], refused, &["tools"]].concat());
        assert!(said.contains("--own-pane"), "{refused:?}: {said}");
    }
}

#[test]
fn commands_that_are_waited_for_run_as_plain_processes() {
    let inside = Inside::new();
    let answer = inside.call("run_shell", &command("echo plain; echo err >&2"));
    assert_eq!(answer["result"]["stderr"], "err\n", "{answer}");
    assert!(!inside.shows("").contains("plain"));
}

#[test]
fn a_pane_that_is_gone_is_a_clear_failure() {
    let inside = Inside::new();
    let _ = inside.0.tmux(&["kill-server"]);
    let error = inside.call("capture-pane", &json!({}))["error"].clone();
    assert_eq!(error["kind"], "unavailable", "{error}");
}

#[test]
fn a_long_text_is_typed_whole() {
    let inside = Inside::new();
    let reader = "stty raw -echo; echo ready; head -c 60000 | wc -c; cat";
    let _ = inside.0.tmux(&["respawn-pane", "-k", "-t", "mine", reader]);
    inside.shows("ready");
    let typed = declared(json!({ "literal_text": "\u{e9}".repeat(30_000) }));
    assert_eq!(inside.call("send-keys", &typed)["result"]["pane"], inside.0.pane);
    assert!(inside.shows("60000").contains("60000"));
}

#[test]
fn delayed_keys_are_not_typed_where_another_toolcrib_has_come_meanwhile() {
    let inside = Inside::new();
    // What is compiled at the first start takes its time.
    inside.call("capture-pane", &json!({}));
    let typed = declared(json!({ "literal_text": "echo typed", "enter": true, "delay": "6s" }));
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| inside.call("send-keys", &typed));
        std::thread::sleep(Duration::from_secs(2));
        inside.0.types("toolcrib --no-tmux run");
        call.join().expect("an answer")
    });
    let said = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(said.starts_with("nothing is typed there: another Toolcrib runs in this pane"), "{said}");
}
