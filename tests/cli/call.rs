//! `toolcrib call`: one call, its envelope on stdout, its kind as exit code.

use serde_json::{Value, json};
use std::process::Stdio;
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{NO_QUESTION, code, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;

/// Calls `run_shell` without a question.
fn shell(program: &Program, more: &[&str], arguments: &Value) -> (i32, Value) {
    program.call(&[&NO_QUESTION, more, &["run_shell", &arguments.to_string()]].concat())
}

#[test]
fn a_success_exits_with_0_and_nothing_on_stderr() {
    let program = Program::new();
    let output = program.run(&["call", "time"]);
    let envelope: Value = serde_json::from_str(&succeeded(&output)).unwrap();
    assert_eq!(envelope["result"]["source"], "harness");
    assert_eq!((stdout(&output).lines().count(), stderr(&output)), (1, String::new()));
}

#[test]
fn every_kind_has_its_exit_code() {
    let program = Program::new();
    let mut late = harmless("sleep 1000");
    late["wait"] = json!("10ms");
    let mut pane = harmless("true");
    pane["wait"] = json!(false);
    let long = harmless("yes | head -c 3000");
    for (answer, expected) in [
        (program.call(&["tmie"]), (3, "unknown_tool")),
        (program.call(&["time", "{\"a\":1}"]), (4, "invalid_arguments")),
        (program.call(&["run_shell", &harmless("true").to_string()]), (5, "denied")),
        (shell(&program, &["--set", "limits.result_kib=1"], &long), (6, "limit")),
        (shell(&program, &[], &late), (7, "timed_out")),
        (shell(&program, &[], &pane), (10, "unavailable")),
        (program.call(&["read_file", "path=missing"]), (12, "execution_failed")),
    ] {
        let (code, envelope) = answer;
        assert_eq!((code, envelope["error"]["kind"].as_str().unwrap()), expected, "{envelope}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_internal_failure() {
    let program = Program::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = program.command(&["call", "time"]).stdin(Stdio::null()).stdout(full).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).starts_with("internal: the result could not be printed: "), "{}", stderr(&output));
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    let program = Program::new();
    for arguments in [&["call"][..], &["cal", "time"], &["call", "--no-such-flag", "time"], &[]] {
        let output = program.run(arguments);
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}");
        assert!(stderr(&output).contains("Usage: toolcrib"), "{}", stderr(&output));
    }
}

#[test]
fn a_failure_is_an_envelope_on_stdout_and_words_on_stderr() {
    let output = Program::new().run(&["call", "tmie"]);
    let envelope: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(envelope["harness_timestamp"]["source"], "harness");
    assert_eq!(envelope["error"]["hint"], "did you mean `time`?");
    assert_eq!(stderr(&output), "unknown_tool: there is no tool `tmie`\nhint: did you mean `time`?\n");
}

#[test]
fn arguments_come_as_json_on_stdin_or_as_pairs() {
    let program = Program::new();
    program.write("work/a.txt", "hello");
    let result = |output: std::process::Output| -> Value {
        serde_json::from_str::<Value>(&succeeded(&output)).unwrap()["result"].clone()
    };
    assert_eq!(result(program.run(&["call", "read_file", "{\"path\": \"a.txt\"}"])), "hello");
    assert_eq!(result(program.run(&["call", "read_file", " {\"path\": \"a.txt\"}"])), "hello");
    assert_eq!(result(program.run(&["call", "read_file", "path=a.txt", "offset=1"])), "ello");
    assert_eq!(result(program.run_with(&["call", "read_file", "-"], "{\"path\": \"a.txt\"}\n")), "hello");
}

#[test]
fn a_pair_is_text_where_the_tool_takes_text() {
    let program = Program::new();
    for name in ["7", "true", "a=b", "null", "{}"] {
        program.write(&format!("work/{name}"), name);
        let (_, envelope) = program.call(&["read_file", &format!("path={name}")]);
        assert_eq!(envelope["result"], name, "{envelope}");
    }
}

#[test]
fn a_pair_is_json_where_the_tool_takes_something_else() {
    let program = Program::new();
    let pairs = ["risk=low", "mutation=false", "privesc=false", "why=a test", "command=echo a=b", "wait=10s"];
    let (code, envelope) = program.call(&[&NO_QUESTION[..], &["run_shell"], &pairs].concat());
    assert_eq!((code, envelope["result"]["stdout"].as_str()), (0, Some("a=b\n")), "{envelope}");
}

#[test]
fn bad_json_is_refused_with_line_and_column() {
    let program = Program::new();
    for text in ["{\"path\": }", "{path", "nonsense"] {
        let (code, envelope) = program.call(&["read_file", text]);
        assert_eq!(code, 4);
        let message = envelope["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the arguments are not JSON: ") && message.contains(" at line 1 column "),
            "{message}"
        );
    }
}

#[test]
fn a_pair_without_a_value_is_a_fault_of_the_command_line() {
    let output = Program::new().run(&["call", "read_file", "path=a", "offset"]);
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("`offset` is not key=value"), "{}", stderr(&output));
    assert!(stderr(&output).contains("hint: give one JSON object, `-`, or key=value pairs"));
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn an_unknown_tool_with_pairs_is_answered_like_any_other() {
    let (code, envelope) = Program::new().call(&["tmie", "a=b"]);
    assert_eq!((code, envelope["error"]["kind"].as_str()), (3, Some("unknown_tool")));
}

#[test]
fn more_than_4_mib_on_stdin_is_refused_in_words_that_are_true() {
    let output = Program::new().run_with(&["call", "time", "-"], &" ".repeat(5 << 20));
    let message = serde_json::from_str::<Value>(&stdout(&output)).unwrap()["error"]["message"].clone();
    let message = message.as_str().unwrap().to_owned();
    assert_eq!(code(&output), 4);
    assert!(message.contains("4194304"), "{message}");
    assert!(!message.contains("4194305"), "it had {} bytes: {message}", 5 << 20);
}

#[test]
fn yes_answers_in_advance() {
    let program = Program::new();
    for yes in ["--yes", "-y"] {
        let (code, envelope) = program.call(&[yes, "run_shell", &harmless("echo ran").to_string()]);
        assert_eq!((code, envelope["result"]["stdout"].as_str()), (0, Some("ran\n")));
    }
    let audit = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap();
    assert!(audit.contains("\"decision\":\"allowed by --yes\""), "{audit}");
}

#[test]
fn a_policy_can_forbid_yes_in_advance() {
    let program = Program::new();
    program.write("policy.toml", "[approval]\nallow_yes = false\n");
    let policy = program.path("policy.toml").display().to_string();
    let output = program.run(&["--policy", &policy, "--yes", "call", "run_shell", &harmless("touch ran").to_string()]);
    assert_eq!(code(&output), 5);
    assert!(stderr(&output).contains("denied: `--yes` is switched off by `approval.allow_yes = false`"));
    assert!(stderr(&output).contains("hint: omit `--yes`"));
    assert!(!program.path("work/ran").exists());
}

#[test]
fn without_a_terminal_nobody_can_be_asked_and_the_answer_says_what_to_set() {
    let program = Program::new();
    let output = program.run(&["call", "run_shell", &harmless("touch ran").to_string()]);
    assert_eq!(code(&output), 5);
    let hint = "hint: pass `--yes`, or set `shell_confirm = false` under [tools]";
    assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    assert!(!program.path("work/ran").exists());
}

#[test]
fn stdin_that_is_not_text_is_refused() {
    let program = Program::new();
    program.write("noise", b"\xff\xfe");
    let noise = std::fs::File::open(program.path("noise")).unwrap();
    let output = program.command(&["call", "time", "-"]).stdin(noise).output().unwrap();
    assert!(code(&output) != 0 && stderr(&output).contains("utf-8"), "{}", stderr(&output));
}
