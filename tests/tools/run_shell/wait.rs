//! The argument `wait`: how long a command is waited for, in all its forms.

use super::text;
use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::{harmless, waiting};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_within_its_time_is_a_result() {
    let host = TestHost::new();
    for wait in [
        json!(true),
        json!(null),
        json!(30),
        json!("30"),
        json!("30s"),
        json!("30S"),
        json!("10m"),
        json!("1h"),
        json!("24h"),
        json!("1d"),
        json!(86_400),
        json!("60000ms"),
    ] {
        let result = host.result("run_shell", waiting("echo in time", wait.clone())).await;
        assert_eq!(text(&result, "stdout"), "in time\n", "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_beyond_its_time_is_ended() {
    let host = TestHost::new();
    for (wait, shown) in [
        (json!("1ms"), "1ms"),
        (json!("250ms"), "250ms"),
        (json!(1), "1s"),
        (json!("1"), "1s"),
        (json!("1100ms"), "1.100s"),
        (json!(0), "0ms"),
        (json!("0"), "0ms"),
    ] {
        let failure = host.failure("run_shell", waiting("sleep 1000", wait.clone())).await;
        assert_eq!(failure.kind, Kind::TimedOut, "{wait}");
        assert_eq!(failure.message, format!("timed out waiting for the command after {shown}"));
        assert!(failure.hint.is_some_and(|hint| hint.contains("`wait`")), "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_cannot_be_read_is_named_before_anything_runs() {
    let host = TestHost::new();
    for wait in ["bad", "", " ", "5 s", " 5s", "-5s", "1.5h", "10x", "1w", "18446744073709551616ms", "９s"] {
        let failure = host.failure("run_shell", waiting("touch ran", wait)).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{wait}");
        assert!(failure.message.contains(&format!("invalid wait duration `{wait}`")), "{}", failure.message);
        assert!(failure.message.contains("500ms, 30s, 10m, 1h"), "{}", failure.message);
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_time_at_all_is_refused_before_anything_runs() {
    let host = TestHost::new();
    for wait in [json!(-1), json!(1.5), json!([1]), json!({}), json!(-0.5)] {
        let failure = host.failure("run_shell", waiting("touch ran", wait.clone())).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{wait}");
        assert!(failure.message.starts_with("arguments of `run_shell`: `wait`"), "{}", failure.message);
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_the_schema_takes_is_taken_or_named() {
    let host = TestHost::new();
    assert_eq!(host.result("run_shell", waiting("echo in time", 5.0)).await["stdout"], "in time\n");
    let failure = host.failure("run_shell", waiting("touch ran", 1e30)).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
    assert!(failure.message.contains("wait"), "{}", failure.message);
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_longest_time_is_refused_with_the_setting() {
    let host = TestHost::new();
    for (wait, shown) in [
        (json!("25h"), "25h"),
        (json!(86_401), "86401s"),
        (json!("2d"), "48h"),
        (json!("18446744073709551615ms"), "18446744073709551.615s"),
    ] {
        let failure = host.failure("run_shell", waiting("touch ran", wait)).await;
        assert_eq!(failure.kind, Kind::InvalidArguments);
        assert_eq!(failure.message, format!("a wait of {shown} is too long (limit: 24h)"));
        assert!(failure.hint.is_some_and(|hint| hint.contains("`command_max_ms` under [limits]")));
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_time_of_its_own_has_the_default() {
    let host = TestHost::new().set("limits.command_ms=300");
    for wait in [json!(true), json!(null)] {
        let failure = host.failure("run_shell", waiting("sleep 1000", wait)).await;
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (Kind::TimedOut, "timed out waiting for the command after 300ms")
        );
    }
    assert_eq!(host.result("run_shell", waiting("sleep 0.6; echo slow", "1m")).await["stdout"], "slow\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_command_costs_the_call_none_of_its_own_time() {
    let host = TestHost::new().set("limits.call_ms=3000").set("limits.guest_cpu_ms=3000");
    assert_eq!(host.shell("sleep 4; echo slow").await["stdout"], "slow\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tmux_a_command_cannot_be_left_running() {
    let host = TestHost::new();
    let failure = host.failure("run_shell", waiting("touch ran", false)).await;
    assert_eq!(failure.kind, Kind::Unavailable);
    assert_eq!(failure.message, "`wait: false` needs tmux, which this host does not use here");
    assert!(failure.hint.is_some_and(|hint| hint.contains("omit `wait`")));
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tmux_there_are_no_sessions_and_panes() {
    let host = TestHost::new();
    for (name, value) in [("session", "build"), ("pane", "shared"), ("pane", " build ")] {
        let mut arguments = harmless("touch ran");
        arguments[name] = value.into();
        let failure = host.failure("run_shell", arguments).await;
        assert_eq!(failure.kind, Kind::Unavailable, "{name}");
        assert!(failure.message.contains("needs tmux"), "{}", failure.message);
        assert!(failure.hint.is_some_and(|hint| hint.contains(&format!("`{name}`"))), "{name}");
    }
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn blank_names_of_session_and_pane_count_as_left_away() {
    let host = TestHost::new();
    for blank in ["", "  ", "\n"] {
        let mut arguments = harmless("echo ran");
        arguments["session"] = blank.into();
        arguments["pane"] = blank.into();
        assert_eq!(host.result("run_shell", arguments).await["stdout"], "ran\n", "{blank:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_hands_back_what_was_printed_by_then() {
    let host = TestHost::new();
    let failure = host.failure("run_shell", waiting("echo out; echo err >&2; sleep 1000", "3s")).await;
    assert_eq!(failure.data.map(|data| *data), Some(json!({ "stdout": "out\n", "stderr": "err\n" })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_exit_code_seven_of_the_program() {
    let program = toolcrib_tests::Program::new();
    let arguments = waiting("echo out; sleep 1000", "3s").to_string();
    let (code, envelope) = program.call(&["--yes", "run_shell", &arguments]);
    assert_eq!((code, &envelope["error"]["kind"]), (7, &Value::from("timed_out")));
    assert_eq!(envelope["error"]["data"]["stdout"], "out\n");
}
