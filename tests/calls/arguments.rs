//! Arguments as callers hand them over: what counts as the same, what is refused, and in which words.

use crate::world::small_host;
use serde_json::{Value, json};
use toolcrib::call::Arguments;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;

const MIB: usize = 1 << 20;

async fn refused(host: &TestHost, arguments: Arguments) -> Failure {
    let failure = crate::world::failure(host.send("read_file", arguments).await);
    assert_eq!(failure.kind, Kind::InvalidArguments, "{}", failure.message);
    failure
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_and_the_text_of_one_are_the_same_arguments() {
    let host = small_host();
    std::fs::write(host.work().join("a.txt"), "hello").unwrap();
    let text = r#" {"path": "a.txt"} "#;
    for arguments in [
        Arguments::Json(json!({ "path": "a.txt" })),
        Arguments::Json(json!(text)),
        Arguments::Text(text.into()),
        Arguments::Text("{\n\t\"path\" : \"a\\u002etxt\"\n}".into()),
    ] {
        let output = host.send("read_file", arguments.clone()).await.outcome;
        assert_eq!(output.map(|output| output.result), Ok(json!("hello")), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_json_is_refused_with_line_and_column() {
    let host = small_host();
    for (text, place) in [
        ("", "line 1 column 0"),
        ("path=a.txt", "line 1 column 1"),
        (r#"{"path": }"#, "line 1 column 10"),
        ("{\n  \"path\": 'a'\n}", "line 2 column 11"),
        (r#"{"path": "a"} and more"#, "line 1 column 15"),
        (r#"{"path": "a""#, "line 1 column 12"),
    ] {
        for arguments in [Arguments::Text(text.into()), Arguments::Json(json!(text))] {
            let failure = refused(&host, arguments).await;
            assert!(failure.message.starts_with("the arguments are not JSON: "), "{}", failure.message);
            assert!(failure.message.contains(place), "{text:?} at {place}: {}", failure.message);
            assert!(failure.hint.unwrap().contains("one JSON object"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_an_object_is_refused() {
    let host = small_host();
    for value in [json!([]), json!([{ "path": "a" }]), json!(7), json!(true), json!(null)] {
        for arguments in [Arguments::Text(value.to_string()), Arguments::Json(value)] {
            let failure = refused(&host, arguments).await;
            assert_eq!(failure.message, "the arguments are not a JSON object");
            assert!(failure.hint.unwrap().contains("one JSON object"));
        }
    }
    let text_of_text = Arguments::Text(r#""{\"path\": \"a\"}""#.into());
    assert_eq!(refused(&host, text_of_text).await.message, "the arguments are not a JSON object");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_at_most_64_deep() {
    let host = small_host();
    for (depth, words) in
        [(64, "unknown argument `a`"), (65, "nest deeper than 64 levels"), (120, "nest deeper than 64 levels")]
    {
        for arguments in [Arguments::Json(nested(depth)), Arguments::Text(nested(depth).to_string())] {
            let failure = refused(&host, arguments).await;
            assert!(failure.message.contains(words), "{depth}: {}", failure.message);
        }
    }
    let endless = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refused(&host, Arguments::Text(endless)).await.message.contains("recursion limit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_4_mib_is_taken_and_one_byte_more_is_not() {
    let host = small_host();
    let padded = |bytes: usize| Arguments::Text(format!("{{{}}}", " ".repeat(bytes - 2)));
    assert!(host.send("time", padded(4 * MIB)).await.outcome.is_ok());
    let failure = refused(&host, padded(4 * MIB + 1)).await;
    assert_eq!(failure.message, "the arguments are more than 4194304 bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_over_4_mib_is_refused_like_its_text() {
    let host = small_host();
    let large = json!({ "path": "x".repeat(5 * MIB) });
    for arguments in [Arguments::Text(large.to_string()), Arguments::Json(large)] {
        let failure = refused(&host, arguments).await;
        assert!(failure.message.ends_with("more than 4194304 bytes"), "{:.200}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_against_the_schema_says_what_to_change() {
    let host = small_host();
    for (arguments, message) in [
        (json!({}), "arguments of `read_file`: `path` is missing"),
        (json!({ "path": "a", "pth": 1 }), "arguments of `read_file`: unknown argument `pth` (did you mean `path`?)"),
        (json!({ "path": 5 }), "arguments of `read_file`: `path`: 5 is not of type \"string\""),
        (json!({ "path": "a", "offset": 1e20 }), "arguments of `read_file`: `offset`: 1e+20 is too large"),
        (json!({ "path": "a", "offset": -1 }), "arguments of `read_file`: `offset`: -1 is less than the minimum of 0"),
    ] {
        let failure = host.failure("read_file", arguments).await;
        assert_eq!((failure.kind, failure.message.as_str()), (Kind::InvalidArguments, message));
        let signature = r#"`read_file` takes {"path": string, "offset"?: integer, "encoding"?: string}"#;
        assert_eq!(failure.hint.as_deref(), Some(signature));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_not_offered_is_answered_with_those_that_are() {
    let host = small_host();
    let mut arguments = toolcrib_tests::shell::harmless("true");
    arguments["risk"] = json!("none");
    let failure = host.failure("run_shell", arguments).await;
    let told = format!("{} {}", failure.message, failure.hint.unwrap());
    assert!(failure.message.contains("`risk`") && failure.message.contains("none"), "{told}");
    assert!(["low", "medium", "high"].iter().all(|word| told.contains(word)), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_faults_are_told_in_part_and_counted() {
    let names = ["command", "risk", "mutation", "privesc", "why", "session", "pane"];
    let mut arguments = json!({});
    for name in names {
        arguments[name] = if name == "risk" { json!("none") } else { json!(7) };
    }
    let message = small_host().failure("run_shell", arguments).await.message;
    let mut told: Vec<&str> = message.split("; ").collect();
    let rest = told.pop().unwrap().strip_prefix("and ").and_then(|rest| rest.strip_suffix(" more"));
    let rest: usize = rest.unwrap_or_else(|| panic!("it does not say how many more: {message}")).parse().unwrap();
    assert_eq!(told.len() + rest, names.len(), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_found_before_any_guest_runs() {
    let host = small_host();
    host.failure("run_shell", json!({ "command": "touch ran" })).await;
    assert!(!host.work().join("ran").exists());
    assert_eq!(host.audit().last().unwrap()["actions"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_cannot_carry_more_than_a_line() {
    let arguments = json!({ "path": "a", "\u{1b}[2J\nforged": "\n".repeat(10_000) });
    let message = small_host().failure("read_file", arguments).await.message;
    assert!(!message.contains(char::is_control) && message.len() < 2000, "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_for_an_optional_argument_counts_as_left_away() {
    let host = small_host();
    std::fs::write(host.work().join("a.txt"), "hello").unwrap();
    let result = host.result("read_file", json!({ "path": "a.txt", "offset": null })).await;
    assert_eq!(result, "hello");
    let mut arguments = toolcrib_tests::shell::harmless("echo hello");
    for name in ["wait", "session", "pane"] {
        arguments[name] = Value::Null;
    }
    assert_eq!(host.result("run_shell", arguments).await["stdout"], "hello\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_for_a_needed_argument_is_a_fault() {
    let failure = small_host().failure("read_file", json!({ "path": null })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
    assert!(failure.message.contains("`path`: null is not of type"), "{}", failure.message);
}
