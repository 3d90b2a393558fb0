//! `run_shell`: one command as its user would run it, its exit code and both streams.

mod approval;
mod denylist;
mod ending;
mod environment;
mod events;
mod output;
mod processes;
mod wait;

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

fn text<'v>(result: &'v Value, stream: &str) -> &'v str {
    result[stream].as_str().unwrap_or_else(|| panic!("no {stream} in {result}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_returns_exit_code_streams_and_notices() {
    insta::assert_json_snapshot!(TestHost::new().shell("echo hello").await, @r#"
    {
      "exit_code": 0,
      "stdout": "hello\n",
      "stderr": "",
      "notices": []
    }
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_the_commands_own() {
    let host = TestHost::new();
    for code in [0, 1, 2, 42, 126, 127, 128, 137, 255] {
        assert_eq!(host.shell(&format!("exit {code}")).await["exit_code"], code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_command_is_a_result_and_not_a_failure() {
    let envelope = TestHost::new().call("run_shell", harmless("false")).await;
    assert_eq!((envelope.exit_code(), envelope.to_json().get("error")), (0, None));
    assert_eq!(envelope.to_json()["result"]["exit_code"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn death_by_a_signal_is_minus_one() {
    let host = TestHost::new();
    for signal in ["KILL", "TERM", "SEGV", "HUP"] {
        let result = host.shell(&format!("echo before; kill -{signal} $$; echo after")).await;
        assert_eq!((&result["exit_code"], text(&result, "stdout")), (&json!(-1), "before\n"), "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_a_child_is_for_the_shell_to_report() {
    assert_eq!(TestHost::new().shell("sh -c 'kill -9 $$'; exit $?").await["exit_code"], 137);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_streams_are_returned_apart() {
    let result = TestHost::new().shell("echo out; echo err >&2; echo more; echo worse >&2; exit 3").await;
    assert_eq!(result, json!({ "exit_code": 3, "stdout": "out\nmore\n", "stderr": "err\nworse\n", "notices": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_lines_are_one_command() {
    let host = TestHost::new();
    let result = host.shell("x=1\nfor i in a b; do\n  x=$((x + 1))\ndone\n\n# a remark\necho $x\n").await;
    assert_eq!((&result["exit_code"], text(&result, "stdout")), (&json!(0), "3\n"));
    let result = host.shell("set -e\necho one\nfalse\necho two").await;
    assert_eq!((&result["exit_code"], text(&result, "stdout")), (&json!(1), "one\n"));
    let result = host.shell("echo one\nexit 7\necho two").await;
    assert_eq!((&result["exit_code"], text(&result, "stdout")), (&json!(7), "one\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn here_documents_stay_text() {
    let host = TestHost::new();
    let result = host.shell("cat > s.sh <<'EOF'\nexit 0\nexec sh\nset -e $HOME `id`\nEOF\ncat s.sh\necho after").await;
    assert_eq!(text(&result, "stdout"), "exit 0\nexec sh\nset -e $HOME `id`\nafter\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_and_special_characters_reach_the_shell_unchanged() {
    let host = TestHost::new();
    for (command, stdout) in [
        (r"printf '%s' 'it'\''s'", "it's"),
        (r#"printf '%s|' "a b" c"#, "a b|c|"),
        (r"printf '%s' '\n$x`y`%d'", r"\n$x`y`%d"),
        ("printf '%s' 'Grüße 世界 🙂'", "Grüße 世界 🙂"),
        ("printf '%s' 'tab\there'", "tab\there"),
        ("  echo  spaced  ", "spaced\n"),
    ] {
        assert_eq!(text(&host.shell(command).await, "stdout"), stdout, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_returned_to_the_byte() {
    let host = TestHost::new();
    for (command, stdout) in [
        ("printf abc", "abc"),
        ("printf 'abc\\n\\n\\n'", "abc\n\n\n"),
        ("printf '\\n\\n  abc  '", "\n\n  abc  "),
        ("printf ''", ""),
        ("printf '\\t|\\n'", "\t|\n"),
    ] {
        let result = host.shell(command).await;
        assert_eq!((text(&result, "stdout"), &result["notices"]), (stdout, &json!([])), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_found_exits_with_127() {
    let result = TestHost::new().shell("toolcrib-no-such-program").await;
    assert_eq!(result["exit_code"], 127);
    assert!(text(&result, "stderr").contains("not found"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_not_valid_is_the_shells_affair() {
    let host = TestHost::new().set("tools.shell_denylist=[]");
    let result = host.shell("if true; then").await;
    assert_eq!(result["exit_code"], 2);
    assert!(!text(&result, "stderr").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_carries_over_to_the_next_command() {
    let host = TestHost::new();
    host.shell("cd /; x=1; export y=2; alias ls=false; set -e; umask 077").await;
    let result = host.shell("pwd; echo \"$x$y\"; false; echo on").await;
    assert_eq!(text(&result, "stdout"), format!("{}\n\non\n", host.work().display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn blank_arguments_are_refused_before_anything_runs() {
    let host = TestHost::new();
    for (name, blank) in [("why", ""), ("why", " \n\t"), ("command", ""), ("command", " \n\t")] {
        let mut arguments = harmless("touch ran");
        arguments[name] = blank.into();
        let failure = host.failure("run_shell", arguments).await;
        assert_eq!((failure.kind, failure.message), (Kind::InvalidArguments, format!("`{name}` is blank")));
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_declaration_is_asked_for() {
    let failure = TestHost::new().failure("run_shell", json!({ "command": "touch ran" })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
    insta::assert_snapshot!(failure.message, @"arguments of `run_shell`: `risk` is missing; `mutation` is missing; `privesc` is missing; `why` is missing");
    insta::assert_snapshot!(failure.hint.unwrap_or_default(), @r#"`run_shell` takes {"command": string, "risk": "low" | "medium" | "high", "mutation": boolean, "privesc": boolean, "why": string, "wait"?: boolean | integer from 0 | string, "session"?: string, "pane"?: string}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_and_values_are_named_before_anything_runs() {
    let host = TestHost::new();
    for (name, value) in [
        ("command", json!(["touch", "ran"])),
        ("command", json!(null)),
        ("risk", json!("none")),
        ("risk", json!("LOW")),
        ("risk", json!(0)),
        ("mutation", json!("no")),
        ("mutation", json!(0)),
        ("privesc", json!(null)),
        ("why", json!(true)),
        ("session", json!(1)),
        ("pane", json!(["a"])),
    ] {
        let mut arguments = harmless("touch ran");
        arguments[name] = value.clone();
        let failure = host.failure("run_shell", arguments).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{name}: {value}");
        assert!(failure.message.contains(&format!("`{name}`")), "{value}: {}", failure.message);
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nul_in_the_command_is_invalid() {
    let host = TestHost::new();
    let failure = host.shell_failure("touch ran\0; touch hidden").await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::InvalidArguments, "the command contains a NUL byte"));
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_script_runs_and_one_that_no_system_takes_is_a_limit() {
    let host = TestHost::new();
    let comment = |bytes: usize| format!("touch ran\n# {}\necho done", "x".repeat(bytes));
    assert_eq!(text(&host.shell(&comment(100_000)).await, "stdout"), "done\n");
    std::fs::remove_file(host.work().join("ran")).expect("it ran");
    let unlisted = TestHost::new().set("tools.shell_denylist=[]");
    for (host, bytes) in [(&host, 200_000), (&unlisted, 200_000), (&unlisted, 3 << 20)] {
        let failure = host.shell_failure(&comment(bytes)).await;
        assert_eq!(failure.kind, Kind::Limit, "{}", failure.message);
        assert_eq!(failure.message, "the command is longer than the system accepts (128 KiB an argument)");
        assert_eq!(failure.hint.as_deref(), Some("write the script to a file and run that"));
    }
    let failure = host.shell_failure(&comment(3 << 20)).await;
    assert!(failure.message.contains("longer than 256 KiB"), "{}", failure.message);
    assert!(!host.work().join("ran").exists() && !unlisted.work().join("ran").exists());
    assert_eq!(text(&host.shell("echo next").await, "stdout"), "next\n");
}
