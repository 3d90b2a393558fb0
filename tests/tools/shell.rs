//! `shell`: a script with its variables, directory and time, in a process of its own. The numbers are those of the cases of agents that are
//! made of several processes.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::TestHost;
use toolcrib_tests::processes::{assert_gone, unique_seconds};

fn text<'v>(result: &'v Value, key: &str) -> &'v str {
    result[key].as_str().unwrap_or_else(|| panic!("no {key}: {result}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_its_directory_and_variables() {
    let host = TestHost::new();
    std::fs::create_dir(host.work().join("a b")).expect("a directory");
    let arguments = json!({
        "command": "pwd; echo \"$CI $TEXT\"; echo told >&2; exit 3",
        "working_dir": "a b",
        "env": [{ "key": "CI", "value": "1" }, { "key": "TEXT", "value": "it's $HOME" }],
    });
    let result = host.result("shell", arguments).await;
    let expected =
        format!("{}\n1 it's $HOME\n", host.work().join("a b").canonicalize().expect("a directory").display());
    assert_eq!(
        (result["exit_code"].as_i64(), text(&result, "stdout"), text(&result, "stderr")),
        (Some(3), &*expected, "told\n")
    );
    // Case 29: its standard input is at its end.
    let read = host.result("shell", json!({ "command": "cat; echo $?" })).await;
    assert_eq!(text(&read, "stdout"), "0\n");
    // Nothing stays for the next one.
    let next = host.result("shell", json!({ "command": "echo \"[$CI]\"" })).await;
    assert_eq!(text(&next, "stdout"), "[]\n");
    // A variable of the usual ones gives way.
    let home = host.result("shell", json!({ "command": "echo $LANG", "env": [{ "key": "LANG", "value": "x" }] })).await;
    assert_eq!(text(&home, "stdout"), "x\n");
}

/// A model sets none beside a command. The text of a command may, as a person sees it there.
#[tokio::test(flavor = "multi_thread")]
async fn variables_that_load_code_are_set_in_the_text_of_a_command() {
    let host = TestHost::new();
    let names =
        ["NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "GIT_SSH_COMMAND", "RUSTC_WRAPPER"];
    for key in names {
        let arguments = json!({ "command": "touch ran", "env": [{ "key": key, "value": "x" }] });
        let failure = host.failure("shell", arguments).await;
        assert!(failure.kind == Kind::Denied && failure.message.contains("beside a command"), "{failure:?}");
        assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("`shell_env`")), "{failure:?}");
        let written = host.result("shell", json!({ "command": format!("{key}=x sh -c 'echo ${key}'") })).await;
        assert_eq!(text(&written, "stdout"), "x\n");
    }
    assert!(!host.work().join("ran").exists());
    // The hint, obeyed.
    let host = host.set("tools.shell_env=[\"PYTHONPATH\"]");
    let arguments = json!({ "command": "echo $PYTHONPATH", "env": [{ "key": "PYTHONPATH", "value": "src" }] });
    assert_eq!(text(&host.result("shell", arguments).await, "stdout"), "src\n");
}

/// Case 25, and the rest of what makes no sense.
#[tokio::test(flavor = "multi_thread")]
async fn variables_that_loaders_and_shells_obey_never_reach_a_command() {
    let host = TestHost::new();
    for (key, kind) in [
        ("LD_PRELOAD", Kind::Denied),
        ("LD_AUDIT", Kind::Denied),
        ("BASH_ENV", Kind::Denied),
        ("ENV", Kind::Denied),
        ("TOOLCRIB_CALL", Kind::Denied),
        ("A=B", Kind::InvalidArguments),
        ("", Kind::InvalidArguments),
    ] {
        let arguments = json!({ "command": "touch ran", "env": [{ "key": key, "value": "1" }] });
        assert_eq!(host.failure("shell", arguments).await.kind, kind, "{key}");
    }
    for (arguments, kind, said) in [
        (json!({ "command": " " }), Kind::InvalidArguments, "is blank"),
        (json!({ "command": "touch ran", "working_dir": "missing" }), Kind::ExecutionFailed, "is not a directory"),
        (json!({ "command": "touch ran", "working_dir": "" }), Kind::InvalidArguments, ""),
        (json!({ "command": "touch ran", "risk": "low" }), Kind::InvalidArguments, "unknown argument"),
        (json!({ "command": "touch ran; rm -rf /" }), Kind::Denied, "rm -rf /"),
    ] {
        let failure = host.failure("shell", arguments.clone()).await;
        assert!(failure.kind == kind && failure.message.contains(said), "{arguments}: {failure:?}");
    }
    assert!(!host.work().join("ran").exists());
}

/// Case 26.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_five_minutes_at_most_and_ends_with_all_it_started() {
    let host = TestHost::new();
    let outcome = host.call("shell", json!({ "command": "true", "timeout_seconds": 1_000_000_000 })).await.outcome;
    assert_eq!(outcome.expect("a result").notices, ["`timeout_seconds` is 1 to 300: 300 was used"]);
    let seconds = unique_seconds();
    let command = format!("echo begun; sleep {seconds} & sleep {seconds}");
    let failure = host.failure("shell", json!({ "command": command, "timeout_seconds": 3 })).await;
    assert_eq!(failure.kind, Kind::TimedOut);
    assert_eq!(failure.data.expect("the output so far")["stdout"], "begun\n");
    assert_gone(&seconds);
}

/// Case 27.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_holds_nothing_up() {
    let host = TestHost::new();
    let begun = Instant::now();
    let seconds = unique_seconds();
    let result = host.result("shell", json!({ "command": format!("sleep {seconds} & echo done") })).await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(text(&result, "stdout"), "done\n");
    assert!(!result["notices"].as_array().expect("notices").is_empty(), "{result}");
}

/// Case 28.
#[tokio::test(flavor = "multi_thread")]
async fn of_much_output_both_ends_come_and_all_of_it_is_kept() {
    let host = TestHost::new();
    let command = "echo first; yes line | head -c 1000000; echo 'error: at the end'";
    let result = host.result("shell", json!({ "command": command })).await;
    let stdout = text(&result, "stdout");
    assert!(stdout.starts_with("first\nline\n") && stdout.ends_with("line\nerror: at the end\n"));
    assert!(stdout.contains("\n[950024 bytes left out, kept in /") && stdout.len() < 50_500, "{}", stdout.len());
    let notice = result["notices"][0].as_str().expect("a notice");
    let place = notice.strip_prefix("stdout has 1000024 bytes; what is kept of it is in `").expect("a place");
    let kept = host.result("read_file", json!({ "path": place.trim_end_matches('`'), "offset": 1_000_006 })).await;
    assert_eq!(kept, "error: at the end\n");
    // What fits is whole.
    let whole = host.result("shell", json!({ "command": "yes line | head -c 50000" })).await;
    assert!(text(&whole, "stdout") == "line\n".repeat(10_000) && whole.get("notices").is_none());
}

/// What a person is shown is all of it, and means what runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_shown_the_directory_and_the_variables() {
    let host = TestHost::new().set("confine.ask=always").answering(Answer::Yes);
    std::fs::create_dir(host.work().join("lib")).expect("a directory");
    let arguments = json!({
        "command": "make check", "working_dir": "lib", "env": [{ "key": "TEXT", "value": "a b" }], "why": "see the tests",
    });
    let _ = host.call("shell", arguments).await;
    let asked = host.asked();
    let question = asked.first().expect("a question");
    let place = host.work().join("lib").display().to_string();
    assert_eq!(question.action, format!("cd -- {place}\nexport TEXT='a b'\nmake check"));
    assert_eq!(question.landing.directory.as_deref(), Some(&*place));
    let declaration = question.declaration.as_ref().expect("a declaration");
    assert_eq!((&*declaration.why, declaration.mutation), ("see the tests", true));
    let actions = host.audit().last().expect("a line")["actions"].clone();
    assert_eq!(actions[0]["what"], question.action);
}

/// Switched off with all commands; confined as all commands.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_command_like_all_others() {
    let off = TestHost::new().set("tools.shell_enabled=false");
    for (tool, arguments) in [("shell", json!({ "command": "true" })), ("exec", json!({ "program": "true" }))] {
        assert_eq!(off.failure(tool, arguments).await.kind, Kind::Denied, "{tool}");
    }
    let denied = TestHost::new().set("plugin.shell.shell=false");
    assert_eq!(denied.failure("shell", json!({ "command": "true" })).await.kind, Kind::Denied);
}
