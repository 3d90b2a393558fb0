//! `plugin dev --serve`: a client calls a plugin while its author changes it.

use crate::rig::{Home, LIST_CHANGED, bytes_of};
use serde_json::{Value, json};
use std::time::Duration;
use toolcrib_tests::mcp::{Client, Era, decides, envelope, failure, forms};
use toolcrib_tests::outcome::{ended, with_a_section_more};
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::{Program, eventually};

const PROJECT: &str = "name = \"tool\"\nlang = \"rust\"\nbuild = [\"sh\", \"src/build.sh\"]\nout = \"tool.wasm\"\n";
const COUNTS: &str = r#"
[grants]
files.read = ["fixtures"]
[[case]]
name = "counts"
tool = "word_count"
arguments = { path = "fixtures/two.txt" }
result = { lines = 1, words = 2, bytes = 9 }
"#;
/// Nobody is asked in a case, though a client is there.
const ECHOES: &str = r#"
[grants]
shell = true
[[case]]
name = "echoes"
tool = "shell_echo"
arguments = { text = "hello" }
error = { kind = "denied", message_has = "approval" }
"#;

/// What the author's next build makes.
fn builds(program: &Program, cases: &str, component: &[u8]) {
    program.write("component", component);
    program.write("work/tool/cases.toml", cases);
    // Last, as this is what makes it one change of the sources: what is before it may be built with it, and is as good.
    program
        .write("work/tool/src/build.sh", format!("echo building; cp ../../component tool.wasm # {}", component.len()));
}

/// A home with a project whose builder is a script.
fn project() -> Home {
    let home = Home::new();
    home.program.write("work/tool/toolcrib-plugin.toml", PROJECT);
    home.program.write("work/tool/fixtures/two.txt", "two words");
    home
}

fn start(home: &Home) -> Client {
    let mut command = home.program.command(&["plugin", "dev", "--serve", "tool"]);
    let mut client = Client::start(&mut command, home.program.clone(), Era::Legacy, forms());
    client.shake_hands();
    client
}

/// Waits until the client has exactly this tool. It is not always told: the first build may be done before it asks.
fn has_tool(client: &mut Client, name: &str) {
    eventually(name, || client.tools() == [name]);
    client.forget(|message| message["method"] == LIST_CHANGED);
}

/// The same after a change, of which it has to be told.
fn is_told_of(client: &mut Client, name: &str) {
    while {
        client.notification(LIST_CHANGED);
        client.tools() != [name]
    } {}
    client.forget(|message| message["method"] == LIST_CHANGED);
}

fn count(client: &mut Client, path: &str) -> Value {
    client.call("word_count", json!({ "path": path }))
}

fn words(client: &mut Client) -> Value {
    envelope(&count(client, "fixtures/two.txt"))["result"]["words"].take()
}

#[test]
fn a_client_calls_each_build_in_one_connection() {
    let home = project();
    let first = bytes_of("word_count");
    builds(&home.program, COUNTS, &first);
    let mut client = start(&home);
    has_tool(&mut client, "word_count");
    assert_eq!(words(&mut client), 2);
    // It has the rights that are named, and no others.
    assert!(failure(&count(&mut client, "cases.toml")).contains("`tool` may not read `"));
    // Nothing else of the host is offered, or can be called.
    let id = client.begin("time", json!({}));
    assert!(client.answer(id)["result"]["structuredContent"].is_null());

    // Other bytes have the rights that are named, too.
    builds(&home.program, COUNTS, &with_a_section_more(first.clone()));
    is_told_of(&mut client, "word_count");
    assert_eq!(words(&mut client), 2);

    // Other rights of the same bytes are news.
    home.program.write("work/tool/cases.toml", COUNTS.replace("[\"fixtures\"]", "[\"fixtures\", \"src\"]"));
    is_told_of(&mut client, "word_count");
    envelope(&count(&mut client, "src/build.sh"));

    // Another tool; the person at the client is asked.
    builds(&home.program, ECHOES, &bytes_of("shell_echo"));
    is_told_of(&mut client, "shell_echo");
    let arguments = json!({ "text": "hello" });
    let question = client.asked("shell_echo", &arguments);

    // A call that waits for its answer goes on with what it began with.
    builds(&home.program, COUNTS, &first);
    is_told_of(&mut client, "word_count");
    assert_eq!(words(&mut client), 2);
    let outcome = client.outcome(&question, decides("allow once"));
    assert_eq!(envelope(&outcome)["result"], "hello");

    // A build that fails leaves the plugin as it was.
    home.program.write("work/tool/src/build.sh", "echo this is wrong; echo broken > tool.wasm; exit 3\n");
    eventually("the failed build", || client.said().contains("the client still has the build of before"));
    assert_eq!(words(&mut client), 2);
    assert_eq!(client.tools(), ["word_count"]);

    // A build that gave the same is none to tell of.
    let before = client.said().matches("1 of 1 cases passed").count();
    builds(&home.program, COUNTS, &first);
    eventually("the same build", || client.said().matches("1 of 1 cases passed").count() > before);
    client.settle();
    assert_eq!(client.count(|message| message["method"] == LIST_CHANGED), 0);

    // What is for the author is on stderr; `rest` reads each line of stdout as a message.
    assert_eq!(client.end(Duration::from_secs(10)).and_then(|status| status.code()), Some(0));
    client.rest();
    let said = client.said();
    for text in ["building\n", "this is wrong\n", "exits with 3", "PASS  [", "changed: src/build.sh"] {
        assert!(said.contains(text), "`{text}`: {said}");
    }
    assert!(!said.contains("FAIL"), "{said}");
    // Who may do what is on record, and in no settings.
    let trail = std::fs::read_to_string(home.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    assert!(trail.contains("set in this program: plugin.tool.sha256="), "{trail}");
    let settings = std::fs::read_to_string(home.program.path("config/toolcrib/toolcrib.toml")).unwrap_or_default();
    assert!(!settings.contains("[plugin"), "{settings}");
}

#[test]
fn a_client_is_not_turned_away_when_the_first_build_fails() {
    let home = project();
    home.program.write("work/tool/cases.toml", COUNTS);
    home.program.write("work/tool/src/build.sh", "exit 3\n");
    let mut client = start(&home);
    eventually("the failed build", || client.said().contains("the client has no tools yet"));
    assert_eq!(client.tools(), [""; 0]);
    builds(&home.program, COUNTS, &bytes_of("word_count"));
    is_told_of(&mut client, "word_count");
    assert_eq!(words(&mut client), 2);
}

/// An author would look for the fault elsewhere.
#[test]
fn the_author_hears_of_a_tool_that_is_not_offered() {
    let home = project();
    let none = COUNTS
        .replace("files.read = [\"fixtures\"]", "")
        .replace("result = { lines = 1, words = 2, bytes = 9 }", "error = { kind = \"denied\" }");
    builds(&home.program, &none, &bytes_of("word_count"));
    let mut client = start(&home);
    eventually("the notice", || client.said().contains("the client is not offered `word_count`: "));
    assert_eq!(client.tools(), [""; 0]);
    let said = failure(&count(&mut client, "fixtures/two.txt")).to_owned();
    assert!(said.contains("`tool` needs `files`, which the policy does not grant"), "{said}");
}

#[test]
fn a_client_that_leaves_ends_it_and_its_builder() {
    let home = project();
    let seconds = unique_seconds();
    builds(&home.program, COUNTS, &bytes_of("word_count"));
    home.program.write("work/tool/src/build.sh", format!("sleep {seconds}\n"));
    for by_signal in [false, true] {
        let mut client = start(&home);
        eventually("the builder", || !sleeping(&seconds).is_empty());
        // During a build, too.
        assert_eq!(client.tools(), [""; 0]);
        if by_signal {
            client.signal("INT");
            assert_eq!(ended(&mut client), Some(130));
        } else {
            assert_eq!(client.end(Duration::from_secs(10)).and_then(|status| status.code()), Some(0));
        }
        assert_gone(&seconds);
    }
}
