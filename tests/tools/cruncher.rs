//! `cruncher`, somebody's command-line program as a component: arguments and input in, status and streams out, in the sandbox.

use serde_json::{Value, json};
use std::fs;
use toolcrib::envelope::Kind;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::{Program, TestHost, guest};

async fn ran(host: &TestHost, arguments: &[&str], stdin: &str) -> Value {
    host.result("cruncher", json!({ "args": arguments, "stdin": stdin })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn its_arguments_and_input_go_in_and_its_streams_come_out() {
    let host = TestHost::new().plugin("cruncher");
    assert_eq!(
        ran(&host, &["echo", "a  b", "*", ""], "").await,
        json!({ "exit_code": 0, "stdout": "a  b\n*\n\n", "stderr": "" })
    );
    assert_eq!(ran(&host, &["count"], "one two\nthree\n").await["stdout"], "2 3 14\n");
    let both = ran(&host, &["both"], "").await;
    assert_eq!((&both["stdout"], &both["stderr"]), (&json!("out 1\nout 2\nout 3\n"), &json!("err 1\nerr 2\nerr 3\n")));
    // Nothing of this machine, nothing of the call before.
    assert_eq!(ran(&host, &["env"], "").await["stdout"], "");
    let neither = host.failure("cruncher", json!({})).await;
    assert_eq!(neither.kind, Kind::InvalidArguments);
    assert_eq!(host.failure("cruncher", json!({ "args": "echo" })).await.kind, Kind::InvalidArguments);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_it_ends_is_told_with_what_it_has_printed() {
    let host = TestHost::new().plugin("cruncher").set("limits.guest_cpu_ms=300");
    let failed = host.failure("cruncher", json!({ "args": ["fail", "no such thing"] })).await;
    assert_eq!((failed.kind, failed.message.as_str()), (Kind::ExecutionFailed, "`cruncher` ended with exit status 1"));
    assert_eq!(*failed.data.unwrap(), json!({ "exit_code": 1, "stdout": "", "stderr": "no such thing\n" }));
    let panicked = host.failure("cruncher", json!({ "args": ["panic"] })).await;
    assert_eq!(panicked.kind, Kind::ExecutionFailed);
    assert!(panicked.data.unwrap()["stderr"].as_str().unwrap().contains("this is the reason"));
    let spun = host.failure("cruncher", json!({ "args": ["spin"] })).await;
    assert_eq!(spun.kind, Kind::Limit, "{}", spun.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_cut_and_kept() {
    let host = TestHost::new().plugin("cruncher");
    let large = host.call("cruncher", json!({ "args": ["large", "200000"] })).await;
    let output = large.outcome.expect("it ran");
    let text = output.result["stdout"].as_str().unwrap();
    assert!(text.len() < 51_000 && text.contains("[150000 bytes left out, kept in /"), "{}", text.len());
    let notice = output.notices.first().expect("a notice");
    let place = notice.split('`').nth(1).expect("a place");
    assert_eq!(fs::read_to_string(place).unwrap().len(), 200_000, "{notice}");
    let endless = host.failure("cruncher", json!({ "args": ["large", "20000000"] })).await;
    assert_eq!(endless.kind, Kind::ExecutionFailed, "a bound on what is kept in memory: {}", endless.message);
}

/// The same results as a program of this machine, and no file beyond its grant.
#[tokio::test(flavor = "multi_thread")]
async fn it_sees_no_file_beyond_its_grant() {
    let host = TestHost::new().plugin("cruncher");
    let inside = host.work().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("a.txt"), "inside").unwrap();
    fs::write(host.work().join("b.txt"), "outside").unwrap();
    let refused = host.failure("cruncher", json!({ "args": ["cat", "inside/a.txt"] })).await;
    assert!(refused.hint.unwrap().contains("`cruncher` needs `files`"));
    let host = TestHost::new().plugin("cruncher");
    let inside = host.work().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("a.txt"), "inside").unwrap();
    fs::write(host.work().join("b.txt"), "outside").unwrap();
    let host = host.grant("cruncher", &format!("files.read=[{inside:?}]"));
    assert_eq!(ran(&host, &["cat", "inside/a.txt"], "").await["stdout"], "inside");
    for path in ["b.txt", "inside/../b.txt", "/etc/hostname"] {
        let refused = host.failure("cruncher", json!({ "args": ["cat", path] })).await;
        assert_eq!(refused.kind, Kind::ExecutionFailed, "{path}");
        assert!(!refused.data.unwrap()["stdout"].as_str().unwrap().contains("outside"), "{path}");
    }
}

/// What is kept of a program with its bytes does not hold the name that its file had.
#[test]
fn under_another_name_it_is_a_tool_of_that_name() {
    let program = Program::new();
    for name in ["one", "two"] {
        fs::copy(guest("cruncher"), program.path(&format!("work/{name}.wasm"))).unwrap();
        succeeded(&program.run(&["plugin", "add", &format!("{name}.wasm")]));
        let (code, answer) = program.call(&[name, r#"{"args":["echo","a"]}"#]);
        assert_eq!((code, &answer["result"]["stdout"]), (0, &json!("a\n")), "{answer}");
        succeeded(&program.run(&["tools", name]));
        succeeded(&program.run(&["plugin", "remove", name]));
    }
}
