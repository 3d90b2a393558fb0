//! A day's work of an agent that knows only the protocol: files, commands, approvals, second thoughts, plugins that come and go.

use crate::rig::{Home, LIST_CHANGED, bytes_of, has_tmux};
use crate::traces::{SOON, open_calls, outcomes};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use toolcrib_tests::forge::liar;
use toolcrib_tests::mcp::{
    Client, ERAS, Era, META, decides, envelope, failure, is_answer_to, is_progress, progress_of, text,
};
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{eventually, skip};

#[test]
fn a_day_with_plain_commands_in_the_older_era() {
    work(&Home::with_panes().flags(&["--no-tmux"]), Era::Legacy, false);
}

#[test]
fn a_day_with_plain_commands_in_the_newer_era() {
    work(&Home::with_panes().flags(&["--no-tmux"]), Era::Modern, false);
}

#[test]
fn a_day_in_panes_in_the_older_era() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    work(&Home::with_panes(), Era::Legacy, true);
}

#[test]
fn a_day_in_panes_in_the_newer_era() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    work(&Home::with_panes(), Era::Modern, true);
}

/// One connection from the morning to the evening.
fn work(home: &Home, era: Era, has_panes: bool) {
    let mut agent = home.serve(era);
    finds_its_tools(&mut agent, has_panes);
    writes_and_reads_a_file(&mut agent, home);
    runs_what_was_approved(&mut agent);
    takes_no_for_an_answer(&mut agent, home);
    is_not_asked_again_in_this_session(&mut agent);
    ends_what_it_does_not_want_any_more(&mut agent, home);
    reads_all_of_a_large_output(&mut agent);
    let status = agent.end(SOON).expect("it ends with its input");
    assert!(status.success(), "{status}: {}", agent.said());
    let mut all = outcomes(&home.program, "run_shell");
    all.sort();
    assert_eq!(all, ["cancelled", "denied", "ok", "ok", "ok", "ok", "ok"], "one outcome for each command");
}

fn finds_its_tools(agent: &mut Client, has_panes: bool) {
    let tools = agent.tools();
    for tool in ["read_file", "run_shell", "time", "write_file"] {
        assert!(tools.iter().any(|name| name == tool), "{tool}: {tools:?}");
    }
    assert_eq!(tools.iter().any(|name| name == "capture-pane"), has_panes, "{tools:?}");
}

fn writes_and_reads_a_file(agent: &mut Client, home: &Home) {
    let written = agent.call("write_file", json!({ "path": "notes.md", "content": "call back at ten\n" }));
    envelope(&written);
    assert_eq!(std::fs::read_to_string(home.program.path("work/notes.md")).expect("a file"), "call back at ten\n");
    let read = agent.call("read_file", json!({ "path": "notes.md" }));
    assert_eq!(envelope(&read)["result"], "call back at ten\n");
}

fn runs_what_was_approved(agent: &mut Client) {
    let question = agent.asked("run_shell", &command("cat notes.md; (exit 3)"));
    assert!(question.words().contains("cat notes.md; (exit 3)"), "{}", question.words());
    let decision = &question.form["requestedSchema"]["properties"]["decision"];
    assert_eq!(decision["enum"], json!(["allow once", "allow for this session", "deny"]), "{}", question.form);
    let result = agent.outcome(&question, decides("allow once"));
    let envelope = envelope(&result);
    assert_eq!(envelope["result"]["exit_code"], 3, "{envelope}");
    assert!(
        envelope["result"]["stdout"].as_str().is_some_and(|out| out.starts_with("call back at ten\n")),
        "{envelope}"
    );
    assert_eq!(result.get("structuredContent"), None, "{result}");
}

fn takes_no_for_an_answer(agent: &mut Client, home: &Home) {
    let question = agent.asked("run_shell", &command("touch denied"));
    let result = agent.outcome(&question, decides("deny"));
    assert_eq!(failure(&result), "Tool error: Command execution denied by user.");
    assert!(!home.program.path("work/denied").exists());
}

fn is_not_asked_again_in_this_session(agent: &mut Client) {
    let question = agent.asked("run_shell", &command("echo first"));
    let first = agent.outcome(&question, decides("allow for this session"));
    assert_eq!(envelope(&first)["result"]["stdout"], "first\n");
    for word in ["second", "third"] {
        let result = agent.call("run_shell", command(&format!("echo {word}")));
        assert_eq!(envelope(&result)["result"]["stdout"], format!("{word}\n"));
    }
}

fn ends_what_it_does_not_want_any_more(agent: &mut Client, home: &Home) {
    let seconds = unique_seconds();
    let id = agent.begin("run_shell", command(&format!("sleep {seconds}")));
    eventually("the command runs", || !sleeping(&seconds).is_empty());
    agent.cancel(id);
    assert_gone(&seconds);
    eventually("the call has its outcome", || open_calls(&home.program) == 0);
    assert_eq!(outcomes(&home.program, "run_shell").last().map(String::as_str), Some("cancelled"));
    agent.settle();
    assert_eq!(agent.count(|message| is_answer_to(message, id)), 0, "a request that was cancelled is not answered");
}

fn reads_all_of_a_large_output(agent: &mut Client) {
    let result = agent.call("run_shell", command("seq 1 100000"));
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let envelope = envelope(&result);
    let shown = envelope["result"]["stdout"].as_str().expect("text");
    let is_shown = expected.starts_with(&shown[..1_500]) && expected.ends_with(&shown[shown.len() - 2_500..]);
    assert!(shown.len() < 5000 && is_shown, "{shown:.100}");
    let links: Vec<&Value> =
        result["content"].as_array().expect("blocks").iter().filter(|block| block["type"] != "text").collect();
    assert!(links.len() == 1 && links[0]["type"] == "resource_link", "{links:?}");
    let uri = links[0]["uri"].as_str().expect("a link has an address");
    assert!(uri.starts_with("toolcrib://output/"), "{uri}");

    let listed = agent.ask("resources/list", json!({}));
    assert!(listed["resources"].as_array().expect("a list").iter().any(|resource| resource["uri"] == uri), "{listed}");
    let (whole, pages) = read_to_the_end(agent, uri);
    assert!(whole == expected, "{} bytes came, not {}", whole.len(), expected.len());
    assert!(pages > 1, "there is a page for each 256 KiB");

    // Names of other things, and of what is no output.
    for wrong in ["toolcrib://output/none-stdout", "toolcrib://output/../audit.jsonl", "file:///etc/passwd", "x"] {
        let id = agent.request("resources/read", json!({ "uri": wrong }));
        let code = if agent.era == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(agent.error(id).0, code, "{wrong}");
    }
}

/// Follows the pages of a resource; returns its text and their number.
fn read_to_the_end(agent: &mut Client, uri: &str) -> (String, usize) {
    let (mut whole, mut pages, mut next) = (String::new(), 0, Some(uri.to_owned()));
    while let Some(uri) = next {
        let result = agent.ask("resources/read", json!({ "uri": uri }));
        let page = &result["contents"][0];
        assert_eq!(page["uri"], json!(uri));
        whole += page["text"].as_str().unwrap_or_else(|| panic!("{result:.300}"));
        next = page["_meta"]["next"].as_str().map(str::to_owned);
        pages += 1;
    }
    (whole, pages)
}

#[test]
fn a_long_command_tells_how_it_fares() {
    for (era, token) in [(Era::Legacy, json!("a-word")), (Era::Modern, json!(7))] {
        let home = Home::new().unasked();
        let mut agent = home.serve(era);
        let arguments = command("for i in $(seq 60); do echo step $i; sleep 0.05; done");
        let begin = Instant::now();
        let params = json!({ "name": "run_shell", "arguments": arguments, "_meta": { "progressToken": token } });
        let id = agent.request("tools/call", params);
        let result = agent.result(id);
        let most = begin.elapsed().as_secs_f64() * 10.0 + 2.0;
        assert_eq!(envelope(&result)["result"]["exit_code"], 0);

        let told = progress_of(&mut agent, &token);
        assert!(told >= 5 && (told as f64) <= most, "{era:?}: {told} notifications, not 5 to {most}");
        agent.call("run_shell", command("sleep 0.3"));
        assert_eq!(agent.count(is_progress), 0, "{era:?}: more came after the result, or for a call without a token");
    }
}

/// The last thing that a command says is news at the moment at which it ends.
#[test]
fn no_progress_comes_after_the_result() {
    const BATCH: usize = 8;
    let home = Home::new().unasked();
    let mut agent = home.serve(Era::Legacy);
    let mut answered = Vec::new();
    for _ in 0..10 {
        let first = answered.len();
        answered.resize(first + BATCH, false);
        for call in first..first + BATCH {
            let arguments = command("sleep 0.15; echo done");
            let meta = json!({ "progressToken": format!("of {call}") });
            agent.request("tools/call", json!({ "name": "run_shell", "arguments": arguments, "_meta": meta }));
        }
        while answered[first..].contains(&false) {
            note(&agent.next_message(), &mut answered);
        }
    }
    agent.begin("run_shell", command("sleep 0.3"));
    loop {
        let message = agent.next_message();
        if !is_progress(&message) {
            return;
        }
        note(&message, &mut answered);
    }
}

/// Marks the call that a message answers; the message must not be progress of one that was answered. The first request was `initialize`.
fn note(message: &Value, answered: &mut [bool]) {
    if is_progress(message) {
        let token = message["params"]["progressToken"].as_str().expect("the token is a string");
        let call: usize = token.strip_prefix("of ").and_then(|call| call.parse().ok()).expect("the token of a call");
        assert!(!answered[call], "progress after the result: {message}");
    } else {
        let id = message["id"].as_u64().expect("an answer has an id");
        answered[usize::try_from(id).expect("a small number") - 2] = true;
    }
}

/// Wants to hear of changes: in the newer era by a request that stays open, in the older one by being there.
fn listens(agent: &mut Client) -> Value {
    if agent.era == Era::Legacy {
        return Value::Null;
    }
    let id = agent.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let told = agent.notification("notifications/subscriptions/acknowledged")["params"].take();
    assert_eq!(told["notifications"], json!({ "toolsListChanged": true }), "{told}");
    assert_eq!(told["_meta"][format!("{META}subscriptionId")], id, "{told}");
    json!(id)
}

/// Changes something, and waits until the client is told.
fn is_told_of(agent: &mut Client, subscription: &Value, change: impl FnOnce()) {
    agent.settle();
    agent.forget(|message| message["method"] == LIST_CHANGED);
    change();
    let told = agent.notification(LIST_CHANGED);
    assert_eq!(&told["params"]["_meta"][format!("{META}subscriptionId")], subscription, "{told}");
}

fn is_listed(agent: &mut Client, tool: &str) -> bool {
    agent.tools().iter().any(|name| name == tool)
}

fn remove(plugin: &Path) {
    std::fs::remove_file(plugin).expect("a plugin that is there");
}

#[test]
fn a_plugin_that_comes_changes_and_goes_is_told_each_time() {
    for era in ERAS {
        let home = Home::new().reading("word_count");
        home.program.write("work/a.txt", "two words");
        let mut agent = home.serve(era);
        let subscription = listens(&mut agent);
        let count = json!({ "path": "a.txt" });
        assert!(!is_listed(&mut agent, "word_count"));
        let bytes = bytes_of("word_count");

        is_told_of(&mut agent, &subscription, || home.install("word_count", &bytes));
        assert!(is_listed(&mut agent, "word_count"), "{era:?}");
        let result = agent.call("word_count", count.clone());
        assert_eq!(result["structuredContent"], json!({ "lines": 1, "words": 2, "bytes": 9 }));

        // What was granted was granted to the bytes: with a section that says nothing they are others.
        let changed = [&bytes[..], &[0, 2, 1, b'x']].concat();
        is_told_of(&mut agent, &subscription, || home.install("word_count", &changed));
        assert!(!is_listed(&mut agent, "word_count"), "{era:?}");
        let result = agent.call("word_count", count.clone());
        assert!(failure(&result).contains("these are not the bytes that were allowed"), "{}", text(&result));

        is_told_of(&mut agent, &subscription, || remove(&home.plugin("word_count")));
        let id = agent.begin("word_count", count);
        assert_eq!(agent.error(id).0, -32602, "{era:?}");
    }
}

#[test]
fn a_plugin_that_is_replaced_serves_the_next_call_while_one_in_flight_ends_as_it_began() {
    for era in ERAS {
        let home = Home::new().guest("hostile");
        let mut agent = home.serve(era);
        let subscription = listens(&mut agent);
        let old = agent.begin("hostile", json!({ "how": "sleep", "number": 4000 }));
        eventually("the call is in flight", || open_calls(&home.program) == 1);

        let other = liar(&json!({ "tools": [{ "name": "hostile", "summary": "Behave." }] }), &["hostile"]);
        is_told_of(&mut agent, &subscription, || home.install("hostile", &other));
        let new = agent.call("hostile", json!({}));
        assert_eq!(envelope(&new)["result"], "hostile", "{era:?}: the bytes that came answer with their name");
        let old = agent.result(old);
        assert_eq!(envelope(&old)["result"], "slept", "{era:?}");

        // With nothing to wait for in between.
        home.install("hostile", &bytes_of("hostile"));
        remove(&home.plugin("hostile"));
        eventually_is_gone(&mut agent, "hostile");
    }
}

/// Calls until the tool is not there any more.
fn eventually_is_gone(agent: &mut Client, tool: &str) {
    let begin = Instant::now();
    loop {
        let id = agent.begin(tool, json!({}));
        let answer = agent.answer(id);
        if answer["error"]["code"] == -32602 {
            return;
        }
        assert!(begin.elapsed().as_secs() < 10, "it is still there: {answer}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn who_does_not_listen_in_the_newer_era_is_told_nothing() {
    let home = Home::new().reading("word_count");
    let bytes = bytes_of("word_count");
    let mut agent = home.serve(Era::Modern);
    let subscription = listens(&mut agent);
    is_told_of(&mut agent, &subscription, || home.install("word_count", &bytes));
    agent.cancel(subscription.as_u64().expect("an id"));
    agent.settle();
    agent.forget(|message| message["method"] == LIST_CHANGED);
    remove(&home.plugin("word_count"));
    eventually_is_gone(&mut agent, "word_count");
    agent.settle();
    assert_eq!(agent.count(|message| message["method"] == LIST_CHANGED), 0);
}

/// Somebody copies a plugin by a slow network.
#[test]
fn a_plugin_that_is_written_in_pieces_is_taken_when_it_is_whole() {
    let home = Home::new().reading("word_count");
    home.program.write("work/a.txt", "two words");
    let bytes = bytes_of("word_count");
    let mut agent = home.serve(Era::Legacy);
    agent.settle();
    let mut file = std::fs::File::create(home.plugin("word_count")).expect("a file");
    for piece in bytes.chunks(bytes.len().div_ceil(4)) {
        std::io::Write::write_all(&mut file, piece).expect("a piece");
        std::thread::sleep(std::time::Duration::from_millis(350));
        agent.settle();
    }
    drop(file);
    let begin = Instant::now();
    while !is_listed(&mut agent, "word_count") {
        agent.notification(LIST_CHANGED);
        assert!(begin.elapsed().as_secs() < 10, "it is not taken");
    }
    assert_eq!(agent.call("word_count", json!({ "path": "a.txt" }))["structuredContent"]["words"], 2);
}
