//! Clients that others have written: the TypeScript and the Python SDK, as agents use them (`sdk/client.mjs`, `sdk/client.py`).
//!
//! `tests/run` installs them; without them these tests are skipped.
#![expect(clippy::disallowed_methods, reason = "tests start the clients by which they are one")]

use crate::traces::{open_calls, outcomes};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use toolcrib_tests::http::Server;
use toolcrib_tests::mcp::{envelope, failure, text};
use toolcrib_tests::processes::{assert_gone, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually, guest, skip};

const DENIED: &str = "Tool error: Command execution denied by user.";
/// How a client says that its own patience is at an end.
const TIMED_OUT: [i64; 2] = [-32001, 408];

/// A client, and the era of the protocol that it speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sdk {
    pub(crate) program: &'static str,
    pub(crate) script: &'static str,
    pub(crate) era: &'static str,
}

pub(crate) const TYPESCRIPT: Sdk = Sdk { program: "node", script: "client.mjs", era: "legacy" };
pub(crate) const PYTHON: Sdk = Sdk { program: "python/bin/python", script: "client.py", era: "legacy" };
const PYTHON_MODERN: Sdk = Sdk { era: "auto", ..PYTHON };
/// Those that keep a session, whose streams can be lost and asked for again.
const WITH_SESSIONS: [Sdk; 2] = [TYPESCRIPT, PYTHON];
const ALL: [Sdk; 3] = [TYPESCRIPT, PYTHON, PYTHON_MODERN];

/// Where the SDKs are installed.
pub(crate) fn installed() -> Option<PathBuf> {
    std::env::var_os("TOOLCRIB_SDKS").map(PathBuf::from)
}

impl Sdk {
    /// Runs the client by its script; returns what it printed.
    pub(crate) fn run(self, sdks: &Path, mut scenario: Value) -> Value {
        scenario["era"] = self.era.into();
        let program = if self.program.contains('/') { sdks.join(self.program) } else { self.program.into() };
        // A client that is never answered is a failure, not a test without an end.
        let client = Command::new("timeout")
            .arg("120")
            .arg(program)
            .arg(sdks.join(self.script))
            .arg(scenario.to_string())
            .output();
        let client = client.expect("the client starts");
        let said = String::from_utf8_lossy(&client.stderr);
        assert!(client.status.success(), "{self:?}: {said}");
        serde_json::from_slice(&client.stdout).unwrap_or_else(|error| panic!("{self:?}: {error}: {said}"))
    }
}

/// The server behind a scenario, and a home to look at afterwards.
struct Place {
    program: Arc<Program>,
    /// As the scenario names it.
    server: Value,
    /// It runs as long as this lives.
    http: Option<Server>,
}

/// One over HTTP, and one over standard input and output. Commands are asked for.
fn places() -> [Place; 2] {
    let http = Server::asking();
    let server = listening(&http);
    let program = http.program.clone();
    [Place { program, server, http: Some(http) }, over_pipes(&[])]
}

/// A server that listens, as a scenario names it.
pub(crate) fn listening(http: &Server) -> Value {
    json!({ "url": format!("http://localhost:{}/mcp", http.address.port()), "token": http.token })
}

/// A server that the client starts, with these flags.
fn over_pipes(flags: &[&str]) -> Place {
    let program = Program::new();
    let server = started(&program, flags);
    Place { program: Arc::new(program), server, http: None }
}

/// The server that a client starts in a home, with these flags, as a scenario names it.
pub(crate) fn started(program: &Program, flags: &[&str]) -> Value {
    let started = program.command(&[flags, &["serve"]].concat());
    let text = |text: &std::ffi::OsStr| text.to_str().expect("it is text").to_owned();
    let environment: Value =
        started.get_envs().filter_map(|(name, value)| Some((text(name), Value::from(text(value?))))).collect();
    json!({
        "command": text(started.get_program()),
        "arguments": started.get_args().map(text).collect::<Vec<_>>(),
        "directory": started.get_current_dir(),
        "environment": environment,
    })
}

/// Whether these are numbers from the first to the last, each higher than the one before. Some may be missing: of several within a tenth of a
/// second, a client gets the last one alone.
pub(crate) fn counts(told: &[f64], first: u32, last: u32) -> bool {
    let all: Vec<f64> = (first..=last).map(f64::from).collect();
    told.len() >= 2 && told.iter().all(|number| all.contains(number)) && told.is_sorted_by(|one, next| one < next)
}

fn has_run(place: &Place) -> bool {
    place.program.path("work/mark").exists()
}

/// The call of a command that leaves a mark, and what the person says.
fn marking(place: &Place, answer: &str) -> Value {
    json!({ "server": place.server, "tool": "run_shell", "arguments": command("echo ran >mark"), "answer": answer })
}

#[test]
fn a_question_that_is_answered_with_yes_lets_the_call_run() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in ALL {
        for place in places() {
            let told = sdk.run(&sdks, marking(&place, "allow once"));
            let questions = told["questions"].as_array().expect("a list");
            assert_eq!(questions.len(), 1, "{sdk:?}: {told}");
            assert!(questions[0].as_str().is_some_and(|question| question.contains("echo ran >mark")), "{told}");
            assert_eq!(envelope(&told["result"])["result"]["exit_code"], 0, "{sdk:?}: {told}");
            assert!(has_run(&place));
        }
    }
}

#[test]
fn a_question_that_is_declined_lets_nothing_run() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in ALL {
        for (place, answer) in places().into_iter().zip(["decline", "deny"]) {
            let mut scenario = marking(&place, answer);
            scenario["delay_ms"] = 350.into();
            let told = sdk.run(&sdks, scenario);
            assert_eq!(failure(&told["result"]), DENIED, "{sdk:?}: {told}");
            assert!(!has_run(&place));
        }
    }
}

/// What a client answers by itself is no person's no.
#[test]
fn a_question_that_the_client_answers_by_itself_lets_nothing_run_and_says_so() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in ALL {
        for (answer, how) in [("decline", "declined"), ("cancel", "cancelled"), ("nothing", "accepted")] {
            let [place, _] = places();
            let told = sdk.run(&sdks, marking(&place, answer));
            let said = failure(&told["result"]).to_owned();
            assert!(said.starts_with(&format!("Tool error: the client {how} the question")), "{sdk:?}: {told}");
            assert!(said.contains("its user may not have seen it"), "{sdk:?}: {told}");
            assert!(!has_run(&place));
        }
    }
}

#[test]
fn a_call_that_the_client_gives_up_while_its_question_is_open_ends_without_effect() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in WITH_SESSIONS {
        for place in places() {
            let mut scenario = marking(&place, "");
            scenario.as_object_mut().expect("an object").remove("answer");
            // Long enough for the question to come first.
            scenario["timeout_ms"] = 5000.into();
            // A client that ends at once may not have sent its cancellation yet.
            scenario["linger"] = place.http.is_some().into();
            let told = sdk.run(&sdks, scenario);
            assert!(told["error"]["code"].as_i64().is_some_and(|code| TIMED_OUT.contains(&code)), "{sdk:?}: {told}");
            assert_eq!(told["questions"].as_array().map(Vec::len), Some(1), "{sdk:?}: {told}");
            let kind = if place.http.is_some() { "HTTP" } else { "pipes" };
            eventually(&format!("the call of {sdk:?} over {kind} has its outcome"), || open_calls(&place.program) == 0);
            assert_eq!(outcomes(&place.program, "run_shell"), ["cancelled"], "{sdk:?} over {kind}");
            assert!(!has_run(&place));
        }
    }
}

/// A client whose stream ends without the answer asks for it again, and again: what it had must not come a second time.
#[test]
fn an_answered_question_is_never_asked_again_after_the_client_has_given_up() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in WITH_SESSIONS {
        let [place, _] = places();
        let seconds = unique_seconds();
        let told = sdk.run(
            &sdks,
            json!({
                "server": place.server, "tool": "run_shell", "arguments": command(&format!("sleep {seconds}")),
                "answer": "allow once", "timeout_ms": 6000, "linger": true,
            }),
        );
        assert!(told["error"]["code"].as_i64().is_some_and(|code| TIMED_OUT.contains(&code)), "{sdk:?}: {told}");
        assert_eq!(told["questions"].as_array().map(Vec::len), Some(1), "{sdk:?}: {told}");
        assert_eq!(told["resumed"], json!([405]), "{sdk:?}: it is told that nothing more comes: {told}");
        assert_gone(&seconds);
    }
}

#[test]
fn a_plugins_progress_arrives_with_the_numbers_it_said() {
    let Some(sdks) = installed() else { skip!("the SDKs of MCP are not installed") };
    for sdk in ALL {
        let place = over_pipes(&[]);
        let bytes = std::fs::read(guest("hostile")).expect("a guest that was built");
        place.program.write("data/toolcrib/plugins/hostile.wasm", bytes);
        let arguments = json!({ "how": "count_slowly", "number": 5 });
        let told = sdk.run(&sdks, json!({ "server": place.server, "tool": "hostile", "arguments": arguments }));
        assert!(text(&told["result"]).contains("counted"), "{sdk:?}: {told}");
        let numbers: Vec<f64> = told["progress"]
            .as_array()
            .expect("a list")
            .iter()
            .inspect(|news| assert_eq!(news["total"], 5.0, "{sdk:?}: {told}"))
            .filter_map(|news| news["progress"].as_f64())
            .collect();
        assert!(counts(&numbers, 0, 5), "{sdk:?}: {told}");
    }
}
