//! What whoever watches sees of a command, and when.

use super::text;
use std::sync::Arc;
use toolcrib::event::Event;
use toolcrib_tests::shell::{harmless, waiting};
use toolcrib_tests::{TestHost, eventually};

/// Everything that was streamed of one stream so far.
fn streamed(host: &TestHost, stream: &str) -> String {
    let piece = |event: Event| match event {
        Event::Stdout { text } if stream == "stdout" => Some(text),
        Event::Stderr { text } if stream == "stderr" => Some(text),
        _ => None,
    };
    host.events().into_iter().filter_map(piece).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_starts_prints_and_completes() {
    let host = TestHost::new();
    host.shell("echo hello").await;
    let events = host.events();
    insta::assert_json_snapshot!(events.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect::<Vec<_>>(), @r#"
    [
      {
        "type": "started",
        "detail": "echo hello"
      },
      {
        "type": "stdout",
        "text": "hello\n"
      },
      {
        "type": "completed",
        "outcome": "ok"
      }
    ]
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_seen_while_the_command_runs() {
    let host = Arc::new(TestHost::new());
    host.shell("mkfifo gate").await;
    let watcher = host.clone();
    let opening = tokio::task::spawn_blocking(move || {
        eventually("the first line is seen", || streamed(&watcher, "stdout") == "first\n");
        eventually("the first complaint is seen", || streamed(&watcher, "stderr") == "complaint\n");
        let completed = watcher.events().iter().filter(|event| matches!(event, Event::Completed { .. })).count();
        std::fs::write(watcher.work().join("gate"), "open\n").expect("the command reads the gate");
        completed
    });
    let result = host.shell("echo first; echo complaint >&2; read word < gate; echo $word").await;
    assert_eq!(text(&result, "stdout"), "first\nopen\n");
    assert_eq!(opening.await.expect("both lines were seen"), 1, "only the command before has completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_is_streamed_also_behind_the_head() {
    let host = TestHost::new();
    host.shell("seq 20000; seq 20000 >&2").await;
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert!(streamed(&host, "stdout") == expected && streamed(&host, "stderr") == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_character_that_comes_in_pieces_is_streamed_whole() {
    let host = TestHost::new();
    host.shell(r"printf 'a\360\237'; ls > /dev/null; printf '\231\202b'").await;
    assert_eq!(streamed(&host, "stdout"), "a🙂b");
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_text_is_clean() {
    let host = TestHost::new();
    host.shell(r"printf '\033]0;title\007\033[31mred\033'; ls > /dev/null; printf '[0m\n'").await;
    assert_eq!(streamed(&host, "stdout"), "red\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_several_lines_starts_as_one_clean_line() {
    let host = TestHost::new();
    host.shell("echo one\necho two # \u{1b}[2K").await;
    assert_eq!(host.events()[0], Event::Started { detail: "echo one echo two # ".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_completes_with_its_kind() {
    let host = TestHost::new();
    host.call("run_shell", waiting("echo hello; sleep 1000", "200ms")).await;
    assert_eq!(host.events().last(), Some(&Event::Completed { outcome: "timed_out" }));
    host.call("run_shell", harmless(" ")).await;
    assert_eq!(host.events().last(), Some(&Event::Completed { outcome: "invalid_arguments" }));
}
