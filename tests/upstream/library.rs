//! Prompts of servers, and what they have to read: each is called as a tool.

use crate::rig::{NAME, accepting, accepting_as, call, command, host, look, offered, section};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::{Content, Failure, Kind};
use toolcrib::upstream::AcceptedKind;
use toolcrib_tests::TestHost;

/// A secret that a list has in it.
const SECRET: &str = "s3cr3t-of-the-shop-0123456789abcdef";
/// Nobody is asked about anything of it.
const OPEN: [&str; 1] = ["confirm=none"];

async fn library(mode: &str) -> TestHost {
    accepting(host(), &section(mode, &[]), &OPEN).await
}

async fn read(host: &TestHost, uri: &str) -> Result<Value, Failure> {
    let output = call(host, "read_resource", json!({ "uri": uri })).await?;
    Ok(output.result["contents"][0]["text"].clone())
}

#[tokio::test]
async fn they_are_accepted_with_their_words() {
    for mode in ["library", "library-modern"] {
        let look = look(&host(), &section(mode, &[])).await.expect("it says what it offers");
        assert!(look.unfit.is_empty() && look.notices.is_empty(), "{:?} {:?}", look.unfit, look.notices);
        let kind = |name: &str| look.accepted.tools[&format!("{NAME}__{name}")].kind;
        assert_eq!(kind("echo"), AcceptedKind::Tool);
        assert_eq!(kind("prompt_greet"), AcceptedKind::Prompt);
        assert_eq!(kind("read_resource"), AcceptedKind::Resources);
        assert_eq!(look.accepted.tools.len(), 3 + 3 + 1, "{mode}");
    }
}

#[tokio::test]
async fn models_are_offered_no_prompts() {
    let host = library("library").await;
    let (made, context) = host.parts();
    let all = made.offered(context).await;
    let prompts: Vec<&str> = all.prompts.iter().map(|prompt| prompt.name()).collect();
    assert_eq!(prompts, ["jotter__prompt_greet", "jotter__prompt_hologram", "jotter__prompt_weather"]);
    let tools = offered(&host).await;
    assert_eq!(tools, ["jotter__add", "jotter__echo", "jotter__read_note", "jotter__read_resource"]);
    let reader = all.tools.iter().find(|tool| tool.is_reader()).expect("a reader");
    assert!(reader.description().contains("note://by-day/{day}`: Notes of a day."), "{}", reader.description());
}

#[tokio::test]
async fn a_prompt_is_called_with_its_arguments() {
    for mode in ["library", "library-modern"] {
        let host = library(mode).await;
        let got = call(&host, "prompt_weather", json!({ "city": "Ulm" })).await.expect("a prompt").result;
        assert_eq!(got["messages"][0]["content"]["text"], r#"{"city": "Ulm"}"#, "{mode}");
        assert_eq!(got["description"], "of weather");
        for wrong in [json!({}), json!({ "city": 7 }), json!({ "city": "Ulm", "land": "x" })] {
            let failure = call(&host, "prompt_weather", wrong).await.expect_err("not its arguments");
            assert_eq!(failure.kind, Kind::InvalidArguments);
        }
    }
}

#[tokio::test]
async fn of_a_prompt_all_kinds_of_messages_are_handed_on_but_those_that_nobody_knows() {
    let host = library("library").await;
    let greeting = call(&host, "prompt_greet", json!({})).await.expect("a prompt");
    let contents: Vec<&Value> =
        greeting.result["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents[0]["text"], "Good morning", "without what a screen obeys");
    assert_eq!(contents[1], &json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" }));
    assert_eq!(contents[2]["resource"], json!({ "uri": "upstream://jotter/note://hidden", "text": "a note" }));
    assert_eq!(contents[3]["uri"], "upstream://jotter/note://linked");
    let odd = call(&host, "prompt_hologram", json!({})).await.expect("a prompt");
    assert_eq!(odd.result["messages"], json!([]), "neither another role nor content of another kind");
    assert_eq!(odd.notices.len(), 1, "{:?}", odd.notices);
}

#[tokio::test]
async fn what_there_is_to_read_is_listed_and_read() {
    for mode in ["library", "library-modern"] {
        let host = library(mode).await;
        let list = call(&host, "read_resource", json!({})).await.expect("a list").result;
        assert_eq!(list["resources"][0]["uri"], "note://1", "{list}");
        assert_eq!(list["resources"][0]["description"], "the first note", "without what a screen obeys");
        assert_eq!(list["resources"].as_array().unwrap().len(), 2);
        assert_eq!(list["templates"][0]["uriTemplate"], "note://by-day/{day}");
        assert!(list["left_out"][0].as_str().unwrap().contains("no `uri`"), "{list}");
        assert_eq!(read(&host, "note://1").await.expect("a note"), "the words of note://1");
        assert_eq!(read(&host, "upstream://jotter/note://1").await.expect("a note"), "the words of note://1");
        let picture = call(&host, "read_resource", json!({ "uri": "picture://1" })).await.expect("a picture");
        assert!(
            matches!(&picture.content[..], [Content::Image(kind, bytes)] if kind == "image/png" && bytes.len() == 8)
        );
        let failure = read(&host, "note://by-day/none").await.expect_err("it refuses");
        assert!(failure.message.contains("there is no such note"), "{}", failure.message);
        let failure = read(&host, "note://by-day/binary").await.expect_err("neither text nor picture");
        assert!(failure.message.contains("4 bytes that are not text, an image or audio"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_server_is_asked_only_for_what_it_has_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("heard");
    let heard = || std::fs::read_to_string(&file).unwrap_or_default();
    let section = UpstreamSection { write: vec![directory.path().to_owned()], ..section("library", &[&text(&file)]) };
    let host = accepting(host(), &section, &["confirm=none", &format!("write=[{:?}]", text(directory.path()))]).await;
    for uri in ["file:///etc/passwd", "note://of-answer", "note://by-day/1/2", "note://hidden", ""] {
        let failure = read(&host, uri).await.expect_err("it has not named it");
        assert_eq!(failure.kind, Kind::Unavailable, "{uri}: {}", failure.message);
        assert!(failure.hint.is_some_and(|hint| hint.contains("without `uri`")));
    }
    assert!(!heard().contains("resources/read"), "{}", heard());
    // By the form that was accepted, by an answer, and by a prompt.
    assert_eq!(read(&host, "note://by-day/monday").await.expect("a note"), "the words of note://by-day/monday");
    call(&host, "read_note", json!({})).await.expect("an answer with a link");
    assert_eq!(read(&host, "note://of-answer").await.expect("a note"), "the words of note://of-answer");
    call(&host, "prompt_greet", json!({})).await.expect("a prompt with links");
    for uri in ["note://hidden", "note://linked"] {
        assert_eq!(read(&host, uri).await.expect("a note"), format!("the words of {uri}"));
    }
    let lists = heard().lines().filter(|line| line.starts_with("resources/list")).count();
    assert_eq!(lists, 1, "a list is asked for once in some seconds, whoever guesses: {}", heard());
}

/// Who is asked is asked about what can be read.
#[tokio::test]
async fn nobody_is_asked_about_an_address_that_was_not_named() {
    let host = accepting(host(), &section("library", &[]), &["confirm=all"]).await;
    let failure = read(&host, "file:///etc/passwd").await.expect_err("it has not named it");
    assert_eq!(failure.kind, Kind::Unavailable, "{}", failure.message);
    assert_eq!(read(&host, "note://1").await.expect_err("nobody is there to be asked").kind, Kind::Denied);
}

#[tokio::test]
async fn a_list_has_neither_hidden_characters_nor_secrets() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("secret");
    std::fs::write(&file, SECRET).expect("a secret");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode");
    let host = host().set(&format!("secret.SHOP.file={:?}", text(&file)));
    let host = host.set("secret.SHOP.hosts=[\"api.example.com\"]");
    let host = accepting(host, &section("library-odd", &[]), &OPEN).await;
    let list = call(&host, "read_resource", json!({})).await.expect("a list").result;
    let named: Vec<&Value> = list["resources"].as_array().unwrap().iter().map(|one| &one["uri"]).collect();
    assert_eq!(named, ["note://1"], "{list}");
    assert!(list["left_out"].to_string().contains("2 of 3 resources"), "{list}");
    // Also where what is told of it is cut.
    let said = list["resources"][0]["description"].as_str().expect("a description");
    assert!(said.len() > 800 && !said.contains(&SECRET[..8]), "{said}");
}

#[tokio::test]
async fn of_several_long_texts_each_is_kept() {
    let host = library("library").await;
    let long = call(&host, "read_resource", json!({ "uri": "note://by-day/two" })).await.expect("two notes");
    let contents = long.result["contents"].as_array().expect("contents");
    let files: Vec<&str> = contents.iter().map(|part| part["whole"].as_str().expect("a file")).collect();
    assert!(files.len() == 2 && files[0] != files[1], "{files:?}");
    for (file, text) in files.iter().zip(["first", "second"]) {
        assert!(std::fs::read_to_string(file).expect("what was kept").starts_with(text), "{file}");
    }
}

#[tokio::test]
async fn of_a_long_list_some_is_told() {
    let list = call(&library("library-many").await, "read_resource", json!({})).await.expect("a list").result;
    assert!(list.to_string().len() < 700 << 10 && list["resources"].as_array().unwrap().len() > 100);
    assert!(list["left_out"].to_string().contains("of 2000 resources"), "{}", list["left_out"]);
}

/// The kind of a thing is part of its name in settings, so that no tool comes to have the rights of a prompt.
#[tokio::test]
async fn no_tool_has_the_name_of_a_prompt() {
    let look = look(&host(), &section("library-twins", &[])).await.expect("it says what it offers");
    let twins: Vec<&str> = look.accepted.tools.values().map(|tool| tool.name.as_str()).collect();
    assert_eq!(twins, ["prompt_greet", "prompt:hologram", "prompt:weather", "read_resource"]);
    for (twin, why) in [
        ("prompt:greet", "is that of `prompt_greet`"),
        ("resource:read", "is that of `read_resource`"),
        ("prompt:weather", "begins as those of prompts"),
    ] {
        let told = |notice: &String| notice.starts_with(&format!("`{twin}`")) && notice.contains(why);
        assert!(look.notices.iter().any(told), "{twin}: {:?}", look.notices);
    }
    // What was a prompt is a tool now.
    let host = behaving_as("library", "library-twins").await;
    let failure = call(&host, "prompt_greet", json!({})).await.expect_err("it is a tool now");
    assert!(failure.message.contains("it was `prompt:greet`, and is `prompt_greet` now"), "{}", failure.message);
}

#[tokio::test]
async fn what_cannot_be_listed_for_now_is_not_taken_for_changed() {
    let host = behaving_as("library", "library-silent").await;
    let failure = call(&host, "prompt_greet", json!({})).await.expect_err("its list is not there");
    assert_eq!(failure.kind, Kind::Unavailable, "{}", failure.message);
    assert!(failure.message.contains("the shelf fell down"), "{}", failure.message);
    assert_eq!(read(&host, "note://1").await.expect("this is as it was"), "the words of note://1");
}

#[tokio::test]
async fn a_change_of_prompts_is_noticed_when_it_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("changed");
    let section = UpstreamSection {
        read: vec![crate::rig::program(), directory.path().into()],
        ..section("library-turns", &[&text(&file)])
    };
    let host = accepting(host(), &section, &OPEN).await;
    call(&host, "prompt_weather", json!({ "city": "Ulm" })).await.expect("it is as it was");
    std::fs::write(&file, "").expect("a file");
    // It says so now, and is asked again after some seconds.
    for _ in 0..40 {
        call(&host, "echo", json!({ "text": "x" })).await.expect("a text");
        if let Err(failure) = call(&host, "prompt_weather", json!({ "city": "Ulm" })).await {
            assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    panic!("nobody noticed");
}

#[tokio::test]
async fn a_list_that_never_comes_takes_no_longer_than_a_call_may() {
    let host = accepting(host(), &section("library-hangs", &[]), &["confirm=none", "timeout_ms=1500"]).await;
    let begin = std::time::Instant::now();
    for arguments in [json!({}), json!({ "uri": "note://1" })] {
        let failure = call(&host, "read_resource", arguments).await.expect_err("the list does not come");
        assert_eq!(failure.kind, Kind::TimedOut, "{}", failure.message);
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    call(&host, "echo", json!({ "text": "x" })).await.expect("its tools are there");
}

#[tokio::test]
async fn a_long_text_is_kept_and_its_beginning_shown() {
    let host = library("library").await;
    let long = call(&host, "read_resource", json!({ "uri": "note://by-day/long" })).await.expect("a note");
    let shown = long.result["contents"][0]["text"].as_str().expect("text").len();
    assert!(
        shown < 100_000 && long.notices.iter().any(|notice| notice.contains("2200000 bytes")),
        "{:?}",
        long.notices
    );
}

#[tokio::test]
async fn what_has_changed_is_not_called() {
    let host = behaving_as("library", "library-changed").await;
    let calls = [("prompt_weather", json!({ "city": "Ulm" })), ("read_resource", json!({ "uri": "note://1" }))];
    for (tool, arguments) in calls {
        let failure = call(&host, tool, arguments).await.expect_err("it is another one now");
        assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
        assert!(failure.message.contains("has changed since it was accepted"), "{}", failure.message);
    }
    call(&host, "prompt_greet", json!({})).await.expect("this one is the same");
}

#[tokio::test]
async fn where_its_prompts_cannot_be_listed_there_are_its_tools_all_the_same() {
    let look = look(&host(), &section("library-silent", &[])).await.expect("it says what it offers");
    assert!(look.notices.iter().any(|notice| notice.contains("the shelf fell down")), "{:?}", look.notices);
    assert_eq!(look.accepted.tools.len(), 3 + 1);
}

/// Its section decides about them as about tools, whatever the protocol says of them.
#[tokio::test]
async fn a_person_is_asked_about_them_unless_the_section_says_otherwise() {
    let asking = accepting(host(), &section("library", &[]), &["confirm=writes"]).await;
    for (tool, arguments) in [("read_resource", json!({ "uri": "note://1" })), ("prompt_greet", json!({}))] {
        let failure = call(&asking, tool, arguments).await.expect_err("nobody is there to be asked");
        assert_eq!(failure.kind, Kind::Denied, "{tool}: {}", failure.message);
    }
    let lines = ["confirm=writes", "reads=[\"resource:read\", \"prompt:*\"]"];
    let reading = accepting(host(), &section("library", &[]), &lines).await;
    assert_eq!(read(&reading, "note://1").await.expect("nobody is asked"), "the words of note://1");
    call(&reading, "prompt_greet", json!({})).await.expect("nobody is asked");
    let closed = accepting(host(), &section("library", &[]), &["confirm=none", "tools=[\"echo\"]"]).await;
    let failure = read(&closed, "note://1").await.expect_err("it is not offered");
    assert_eq!(failure.kind, Kind::UnknownTool, "{}", failure.message);
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

/// A host with a server that was accepted as `first`, and is `now` by now.
async fn behaving_as(first: &str, now: &str) -> TestHost {
    accepting_as(host(), &section(first, &[]), &command(now, &[]), &OPEN).await
}
