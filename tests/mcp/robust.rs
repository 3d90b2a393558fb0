//! What comes when a client, a plugin or a command does not behave: the server goes on, or ends with a word, and nothing is left.

use crate::rig::{Home, LIST_CHANGED, bytes_of, has_tmux};
use crate::traces::{SOON, open_calls, outcomes, trail};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::mcp::{Client, ERAS, Era, envelope, failure, is_answer_to};
use toolcrib_tests::processes::{assert_gone, sleeping, tmux_clients, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{eventually, is_long, resident_kib, skip};

const MIB: usize = 1 << 20;

/// Lines that are no message of the protocol, and what looks like one and is none.
fn malformed() -> Vec<Vec<u8>> {
    let texts = [
        "",
        " ",
        "\r",
        "x",
        "{",
        "null",
        "3",
        "\"ping\"",
        "[]",
        "{}",
        // A batch, which protocols of today have no more.
        r#"[{"jsonrpc":"2.0","id":900,"method":"tools/list"}]"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":900}"#,
        r#"{"jsonrpc":"1.0","id":900,"method":"tools/list"}"#,
        r#"{"jsonrpc":2,"id":900,"method":"tools/list"}"#,
        r#"{"id":900,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":[900],"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/list","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/list","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":null}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":["time"]}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":5}}"#,
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"time","_meta":5}}"#,
        // Answers that nobody waits for.
        r#"{"jsonrpc":"2.0","id":900,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"allow once"}}}"#,
        r#"{"jsonrpc":"2.0","id":900,"error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":900,"result":{},"error":{"code":-1,"message":"x"}}"#,
        // Notifications of nothing.
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":900}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"again":true}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write_file","arguments":{"path":"a","content":""}}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such/notification"}"#,
    ];
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let call = r#"{"jsonrpc":"2.0","id":900,"method":"tools/list","params":"#;
    let nested = [deep(100_000), "[".repeat(1_000_000), format!("{call}{}}}", deep(5_000)), "{\"a\":".repeat(100_000)];
    let bytes = [&b"\xff\xfe"[..], b"\0", b"\xef\xbb\xbf", b"{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"\xff\"}"];
    let texts = texts.into_iter().map(str::to_owned).chain(nested).map(String::into_bytes);
    texts.chain(bytes.into_iter().map(<[u8]>::to_vec)).collect()
}

#[test]
fn what_is_no_message_is_refused_or_passed_over_and_the_next_is_answered() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let lines = malformed();
        for (number, line) in lines.iter().enumerate() {
            client.write(with_number(line, number));
            client.write(b"\n");
            client.settle();
        }
        for (number, line) in lines.iter().enumerate() {
            let shown: String = String::from_utf8_lossy(line).chars().take(100).collect();
            let answers = client.count(|message| is_answer_to(message, 900 + number as u64));
            assert!(answers <= 1, "{era:?}: `{shown}` has {answers} answers");
        }
        assert_eq!(client.count(|message| message.get("error").is_none()), 0, "{era:?}: something was done");
        assert!(client.count(|_| true) <= lines.len(), "{era:?}: more answers than lines");
        assert!(!home.program.path("work/a").exists(), "{era:?}: a call without an id is none");
        envelope(&client.call("time", json!({})));
    }
}

/// The line with an id of its own, where it has the one that they share.
fn with_number(line: &[u8], number: usize) -> Vec<u8> {
    match std::str::from_utf8(line) {
        Ok(text) => text.replace("900", &(900 + number).to_string()).into_bytes(),
        Err(_) => line.to_vec(),
    }
}

#[test]
fn what_is_no_message_does_not_hinder_the_first_one() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.start(era);
        for line in ["x", "{}", "[]", "", r#"{"jsonrpc":"1.0","id":900,"method":"initialize"}"#] {
            client.write(format!("{line}\n"));
        }
        client.shake_hands();
        client.settle();
    }
}

/// Such as the second thoughts of a client that found the first answer late.
#[test]
fn a_notification_before_everything_else_is_passed_over_or_ends_the_server_with_a_word() {
    let home = Home::new();
    let mut client = home.start(Era::Legacy);
    client.cancel(1);
    match client.ended(SOON) {
        None => _ = client.shake_hands(),
        Some(status) => assert!(!client.said().trim().is_empty(), "it ends ({status}) and does not say why"),
    }
}

#[test]
fn an_unknown_method_is_said_to_be_one() {
    for (era, methods) in [
        (Era::Legacy, &["no/such", "tools", "", "skills/list", "tasks/get"][..]),
        (Era::Modern, &["no/such", "tools", "", "ping", "logging/setLevel", "resources/subscribe"][..]),
    ] {
        let mut client = Home::new().serve(era);
        for method in methods {
            let params = json!({ "level": "info", "uri": "toolcrib://output/x", "taskId": "x" });
            let id = client.request(method, params);
            assert_eq!(client.error(id).0, -32601, "{era:?}: {method}");
        }
        client.settle();
    }
    assert_eq!(Home::new().serve(Era::Legacy).ask("ping", json!({})), json!({}));
}

#[test]
fn params_of_another_shape_are_said_to_be_wrong() {
    for era in ERAS {
        let mut client = Home::new().serve(era);
        for (method, params, named) in [
            ("tools/call", json!({ "name": "time", "arguments": "now" }), "`arguments`"),
            ("tools/call", json!({ "name": "time", "arguments": [1] }), "`arguments`"),
            ("tools/call", json!({ "arguments": {} }), "`name`"),
            ("resources/read", json!({}), "`uri`"),
        ] {
            let id = client.request(method, params);
            let (code, message) = client.error(id);
            assert!(code == -32602 && message.contains(named), "{era:?}: {method}: {code}: {message}");
        }
        client.settle();
    }
}

#[test]
fn ids_come_back_as_they_were() {
    let mut client = Home::new().serve(Era::Legacy);
    let ids =
        [json!("1"), json!(-7), json!(0), json!(9_007_199_254_740_993_i64), json!(""), json!("ü\n\"'"), json!("null")];
    for id in &ids {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "time" } });
        client.write(format!("{request}\n"));
    }
    for id in &ids {
        let answer = client.take("answer", |message| message["id"] == *id);
        assert!(answer["result"]["structuredContent"].is_object(), "{answer}");
    }
}

#[test]
fn arguments_that_nest_deeply_are_refused() {
    for era in ERAS {
        let mut client = Home::new().serve(era);
        for depth in [65, 100] {
            let nested = (0..depth).fold(json!(0), |inner, _| json!([inner]));
            let result = client.call("time", json!({ "why": nested }));
            assert!(failure(&result).contains("nest deeper than 64 levels"), "{era:?}, {depth}: {result}");
        }
        client.settle();
    }
}

/// Each of these could be taken for somebody else who wants to be told of changes.
#[test]
fn a_client_that_begins_many_times_is_told_of_a_change_once() {
    let home = Home::new();
    let mut client = home.serve(Era::Legacy);
    (0..100).for_each(|_| client.notify("notifications/initialized", json!({})));
    client.settle();
    let bytes = bytes_of("word_count");
    home.install("word_count", &bytes);
    client.notification(LIST_CHANGED);
    client.settle();
    assert_eq!(client.count(|message| message["method"] == LIST_CHANGED), 0, "it is told again and again");
}

/// The most memory that a process has had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process in memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_line_of_many_mebibytes_is_refused_or_passed_over_in_bounded_memory() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        client.settle();
        let before = resident_kib(client.pid());
        let large = |size: usize| json!({ "name": "write_file", "arguments": { "path": "large", "content": "x".repeat(size) } });
        for _ in 0..4 {
            // More than a line may have: there is no telling whose it is.
            let id = client.request("tools/call", large(17 * MIB));
            client.settle();
            assert_eq!(
                client.count(|message| is_answer_to(message, id) && message.get("result").is_some()),
                0,
                "{era:?}"
            );
            // A line, but too much for a call.
            let result = client.call("write_file", large(15 * MIB)["arguments"].take());
            assert!(failure(&result).contains("4194304 bytes"), "{era:?}: {result:.300}");
        }
        // Without an end, until the client thinks better of it.
        let piece = "x".repeat(MIB);
        (0..64).for_each(|_| client.write(&piece));
        client.write(b"\n");
        client.settle();
        assert!(!home.program.path("work/large").exists(), "{era:?}");
        let peak = peak_kib(client.pid());
        println!("{era:?}: {before} KiB before, {peak} KiB at most");
        assert!(peak < before + 384 * 1024, "{era:?}: from {before} to {peak} KiB");
    }
}

/// Sends requests all at once, and waits for the answer to each.
fn at_once(client: &mut Client, calls: impl Iterator<Item = (&'static str, Value)>) -> Vec<Value> {
    let (mut ids, mut lines) = (Vec::new(), String::new());
    for (tool, arguments) in calls {
        let (id, line) = client.written("tools/call", json!({ "name": tool, "arguments": arguments }));
        ids.push(id);
        lines += &line;
    }
    let writer = client.raw_aside(lines.into_bytes());
    let results = ids.into_iter().map(|id| client.result(id)).collect();
    client.join(writer);
    results
}

#[test]
fn a_thousand_calls_at_once_have_one_answer_each() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        for result in at_once(&mut client, (0..1000).map(|_| ("time", json!({})))) {
            assert_eq!(envelope(&result)["result"]["source"], "harness", "{era:?}");
        }
        client.settle();
        assert_eq!(client.count(|_| true), 0, "{era:?}: more answers than requests");
        let outcomes = outcomes(&home.program, "time");
        assert!(outcomes.len() == 1000 && outcomes.iter().all(|outcome| outcome == "ok"), "{era:?}: {outcomes:?}");
    }
}

/// Calls that are read together are recorded together, before any of them is answered.
#[test]
fn calls_at_once_whose_record_cannot_be_made_each_say_so() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        client.call("time", json!({}));
        let trail = home.program.path("state/toolcrib/audit.jsonl");
        std::fs::remove_file(&trail).expect("a trail");
        std::fs::create_dir(&trail).expect("a directory");
        for result in at_once(&mut client, (0..100).map(|_| ("time", json!({})))) {
            let told = envelope(&result)["notices"][0].to_string();
            assert!(told.contains("this call is not in the audit trail"), "{era:?}: {result}");
        }
    }
}

/// M-15 in small: what one call brings is in its own answer and in no other.
#[test]
fn answers_never_cross() {
    const FILES: usize = 100;
    const BATCH: usize = 500;
    let batches = if is_long() { 200 } else { 2 };
    let home = Home::new().guest("hostile").guest("word_count").reading("word_count");
    let home = home.set("limits.calls_per_minute=1000000000");
    for words in 0..FILES {
        home.program.write(&format!("work/{words}.txt"), "word ".repeat(words));
    }
    for era in ERAS {
        let mut client = home.serve(era);
        for batch in 0..batches {
            let canary = |number: usize| format!("canary {batch} {number} of {era:?}");
            let calls = (0..BATCH).map(|number| match number % 2 {
                0 => ("hostile", json!({ "how": "say", "text": canary(number) })),
                _ => ("word_count", json!({ "path": format!("{}.txt", number % FILES) })),
            });
            for (number, result) in at_once(&mut client, calls).into_iter().enumerate() {
                let (found, expected) = match number % 2 {
                    0 => (envelope(&result)["result"].clone(), json!(canary(number))),
                    _ => (result["structuredContent"]["words"].clone(), json!(number % FILES)),
                };
                assert_eq!(found, expected, "{era:?}: {result}");
                // As text, and in the envelope.
                let own = if number % 2 == 0 { 2 } else { 0 };
                assert_eq!(result.to_string().matches("canary").count(), own, "{era:?}: {result}");
            }
        }
    }
}

/// A call takes its time to wind down: by then its id may be another's.
#[test]
fn an_id_that_is_used_again_after_a_cancel_has_the_answer_of_its_own_call() {
    for era in ERAS {
        let home = Home::new().unasked();
        let mut client = home.serve(era);
        let params = |text: &str| json!({ "name": "run_shell", "arguments": command(text) });
        let stubborn = "trap '' TERM INT HUP; touch begun; while :; do sleep 0.05; done";
        let (id, first) = client.written("tools/call", params(stubborn));
        client.write(first);
        eventually("it has begun", || home.program.path("work/begun").exists());
        client.cancel(id);
        let (_, second) = client.written("tools/call", params("sleep 3; echo second"));
        let mut second: Value = serde_json::from_str(&second).expect("a request");
        second["id"] = id.into();
        client.write(format!("{second}\n"));
        let result = client.result(id);
        assert_eq!(envelope(&result)["result"]["stdout"], "second\n", "{era:?}: {result}");
        client.settle();
        assert_eq!(client.count(|message| is_answer_to(message, id)), 0, "{era:?}: two answers to one request");
    }
}

/// Their answers cannot be told apart, so one of them may be missing; no other call has to suffer from it.
#[test]
fn an_id_that_is_used_twice_at_the_same_time_confuses_nobody_else() {
    for era in ERAS {
        let home = Home::new().unasked();
        let mut client = home.serve(era);
        let params = |text: &str| json!({ "name": "run_shell", "arguments": command(text) });
        let (id, first) = client.written("tools/call", params("sleep 0.3; echo first"));
        let (_, second) = client.written("tools/call", params("echo second"));
        let mut second: Value = serde_json::from_str(&second).expect("a request");
        second["id"] = id.into();
        client.write(first);
        client.write(format!("{second}\n"));
        for number in 0..10 {
            let result = client.call("run_shell", command(&format!("sleep 0.1; echo {number}")));
            assert_eq!(envelope(&result)["result"]["stdout"], format!("{number}\n"), "{era:?}");
        }
        eventually("all calls have ended", || open_calls(&home.program) == 0);
        client.settle();
        let answers = client.count(|message| is_answer_to(message, id));
        assert!((1..=2).contains(&answers), "{era:?}: {answers} answers");
        assert_eq!(outcomes(&home.program, "run_shell").len(), 12, "{era:?}");
    }
}

#[test]
fn answers_that_nobody_reads_take_bounded_memory() {
    const LISTS: usize = 8000;
    let mut client = Home::with_panes().serve(Era::Legacy);
    client.settle();
    assert_unread_in_bounded_memory(&mut client, LISTS, "tools/list", &json!({}), "tools");
    client.settle();
    assert_eq!(client.count(|_| true), 0, "more answers than requests");
}

#[test]
fn pages_that_nobody_reads_take_bounded_memory() {
    const PAGES: usize = 4000;
    let mut client = Home::new().unasked().serve(Era::Legacy);
    let result = client.call("run_shell", command("head -c 400000 /dev/zero | tr '\\0' x"));
    let link = result["content"].as_array().and_then(|blocks| blocks.last());
    let uri = link.and_then(|link| link["uri"].as_str()).expect("a link").to_owned();
    assert_unread_in_bounded_memory(&mut client, PAGES, "resources/read", &json!({ "uri": uri }), "contents");
}

/// Asks so many times and reads nothing for two seconds, then all; `part` of each result is a list.
fn assert_unread_in_bounded_memory(client: &mut Client, count: usize, method: &str, params: &Value, part: &str) {
    let before = resident_kib(client.pid());
    let requests: Vec<(u64, String)> = (0..count).map(|_| client.written(method, params.clone())).collect();
    let lines: String = requests.iter().map(|(_, line)| line.as_str()).collect();
    client.pause();
    let writer = client.raw_aside(lines.into_bytes());
    let (begin, mut peak) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(2) {
        peak = peak.max(resident_kib(client.pid()));
        std::thread::sleep(Duration::from_millis(20));
    }
    client.resume();
    for (id, _) in requests {
        assert!(client.answer(id)["result"][part].is_array());
        peak = peak.max(resident_kib(client.pid()));
    }
    client.join(writer);
    println!("{count} times {method} unread: {before} KiB before, {peak} KiB at most");
    assert!(peak < before + 320 * 1024, "from {before} to {peak} KiB");
}

/// A command that leaves processes which are hard to end.
fn stubborn(seconds: &str) -> Value {
    command(&format!("(trap '' TERM; exec sleep {seconds}) & setsid sleep {seconds} & sleep {seconds}"))
}

/// How a client goes.
enum Farewell {
    BothPipesBreak,
    InputEnds,
    Terminates,
}

/// M-06, M-14.
fn assert_ends_with_all(era: Era, farewell: &Farewell) {
    let home = Home::new().unasked();
    let mut client = home.serve(era);
    let seconds = unique_seconds();
    client.begin("run_shell", stubborn(&seconds));
    eventually("the command runs", || sleeping(&seconds).len() == 3);
    match farewell {
        Farewell::BothPipesBreak => client.hang_up(),
        Farewell::InputEnds => {}
        Farewell::Terminates => client.signal("TERM"),
    }
    let status = if matches!(farewell, Farewell::Terminates) { client.ended(SOON) } else { client.end(SOON) };
    assert_gone(&seconds);
    let status = status.unwrap_or_else(|| panic!("{era:?}: the server is still there: {}", client.said()));
    match farewell {
        Farewell::BothPipesBreak => {}
        Farewell::InputEnds => assert_eq!(status.code(), Some(0), "{era:?}: {}", client.said()),
        Farewell::Terminates => assert_eq!(status.code(), Some(130), "{era:?}: {}", client.said()),
    }
    assert_eq!(outcomes(&home.program, "run_shell"), ["cancelled"], "{era:?}");
}

#[test]
fn a_client_that_dies_takes_the_server_and_its_commands_with_it() {
    ERAS.into_iter().for_each(|era| assert_ends_with_all(era, &Farewell::BothPipesBreak));
}

#[test]
fn the_end_of_the_input_ends_the_server_and_its_commands() {
    ERAS.into_iter().for_each(|era| assert_ends_with_all(era, &Farewell::InputEnds));
}

#[test]
fn a_signal_ends_the_server_and_its_commands() {
    ERAS.into_iter().for_each(|era| assert_ends_with_all(era, &Farewell::Terminates));
}

/// As a client does that waits for the server's end and reads no more.
#[test]
fn the_end_of_the_input_ends_a_server_whose_answers_nobody_reads() {
    assert_ends_unread(&Farewell::InputEnds);
}

#[test]
fn a_signal_ends_a_server_whose_answers_nobody_reads() {
    assert_ends_unread(&Farewell::Terminates);
}

fn assert_ends_unread(farewell: &Farewell) {
    let home = Home::new().unasked();
    let mut client = home.serve(Era::Legacy);
    let seconds = unique_seconds();
    client.begin("run_shell", stubborn(&seconds));
    eventually("the command runs", || sleeping(&seconds).len() == 3);
    client.pause();
    (0..200).for_each(|_| _ = client.request("tools/list", json!({})));
    // It is no message, and the answer that says so waits before all others.
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":[1]}\n");
    match farewell {
        Farewell::Terminates => client.signal("TERM"),
        Farewell::BothPipesBreak | Farewell::InputEnds => client.close(),
    }
    let status = client.ended(SOON);
    assert_gone(&seconds);
    assert!(status.is_some(), "the server is still there: {}", client.said());
}

/// The client of tmux has more to tell than anybody reads when the server goes.
#[test]
fn the_end_of_the_input_leaves_no_client_of_tmux_while_a_pane_floods() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    let home = Home::with_panes().unasked();
    let mut client = home.serve(Era::Legacy);
    let mut flood = command("yes flood");
    flood["wait"] = false.into();
    envelope(&client.call("run_shell", flood));
    assert_eq!(tmux_clients(&home.program).len(), 1);
    assert!(client.end(SOON).is_some(), "the server is still there: {}", client.said());
    eventually("the client of tmux has gone", || tmux_clients(&home.program).is_empty());
}

#[test]
fn an_input_that_ends_at_once_ends_the_server_without_a_word() {
    for input in ["", "\n", "x", "{\"jsonrpc\":\"2.0\",\"id\":1"] {
        let home = Home::new();
        let mut client = home.start(Era::Legacy);
        client.write(input);
        let status = client.end(SOON).expect("it ends with its input");
        assert!(status.success(), "`{input}`: {status}: {}", client.said());
        let printed = client.rest();
        assert!(printed.is_empty(), "`{input}`: {printed:?}");
    }
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered() {
    let home = Home::new().unasked();
    let mut client = home.start(Era::Legacy);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    // One has more to tell of itself when nothing is told any more.
    let (slow, meta) = (command("echo one; sleep 0.2; echo two"), json!({ "progressToken": 1 }));
    let asked = [
        client.request("initialize", hello),
        client.request("tools/list", json!({})),
        client.request("tools/call", json!({ "name": "run_shell", "arguments": slow, "_meta": meta })),
    ];
    assert!(client.end(SOON).is_some_and(|status| status.success()), "{}", client.said());
    let answers = client.rest();
    for id in asked {
        assert_eq!(answers.iter().filter(|message| is_answer_to(message, id)).count(), 1, "{id}: {answers:?}");
    }
}

#[test]
fn a_call_whose_question_is_open_when_the_input_ends_is_answered() {
    let home = Home::new();
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &command("touch ran"));
    assert!(client.end(SOON).is_some(), "the server is still there: {}", client.said());
    let answers = client.rest();
    assert_eq!(answers.iter().filter(|message| is_answer_to(message, question.call)).count(), 1, "{answers:?}");
    assert_eq!(outcomes(&home.program, "run_shell"), ["cancelled"]);
    assert!(!home.program.path("work/ran").exists());
}

/// M-14: what plugins and commands print looks like messages, and is none.
#[test]
fn floods_never_reach_the_clients_pipe() {
    let forged = r#"{"jsonrpc":"2.0","id":"forged","method":"forged","params":{}}"#;
    for era in ERAS {
        let home = Home::new().unasked().guest("hostile");
        let mut client = home.serve(era);
        let shell = format!("yes '{forged}' | head -c 3000000; yes '{forged}' | head -c 3000000 >&2");
        let mut ids = Vec::new();
        for token in 0..5 {
            for (tool, arguments) in [
                ("hostile", json!({ "how": "print_much", "text": forged, "number": 5000 })),
                ("hostile", json!({ "how": "say_much", "text": forged, "number": 5000 })),
                ("run_shell", command(&shell)),
            ] {
                let meta = json!({ "progressToken": token });
                let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
                ids.push(client.request("tools/call", params));
            }
        }
        for id in ids {
            client.result(id);
        }
        client.settle();
        let is_forged = |message: &Value| message["id"] == "forged" || message["method"] == "forged";
        assert_eq!(client.count(is_forged), 0, "{era:?}");
        let others = client.count(|message| message["method"] != "notifications/progress");
        assert_eq!(others, 0, "{era:?}: messages that nobody asked for");
    }
}

#[test]
fn a_server_answers_before_it_has_compiled_anything() {
    for era in ERAS {
        let home = Home::fresh();
        let mut client = home.start(era);
        client.shake_hands();
        let kept = std::fs::read_dir(home.program.path("state/toolcrib/code")).expect("a directory");
        // What components show of themselves; code is named by digests.
        let compiled = kept.filter(|file| file.as_ref().is_ok_and(|file| file.file_name() != "components")).count();
        assert_eq!(compiled, 0, "{era:?}");
        envelope(&client.call("time", json!({})));
    }
}

/// Numbers without a pattern, the same each time.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// M-06.
#[test]
fn a_call_that_is_cancelled_at_any_point_leaves_nothing_but_one_outcome() {
    let points = if is_long() { 200 } else { 50 };
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    for era in ERAS {
        let home = Home::new().unasked();
        let mut client = home.serve(era);
        client.settle();
        let mut all = Vec::new();
        for _ in 0..points / 2 {
            let seconds = unique_seconds();
            let text = format!("setsid sleep {seconds} & sleep {seconds}");
            let id = client.begin("run_shell", command(&text));
            std::thread::sleep(Duration::from_micros(noise.below(60_000)));
            client.cancel(id);
            all.push((id, seconds));
        }
        let ended = || trail(&home.program).iter().filter(|line| line["event"] == "outcome").count();
        eventually("every call has its outcome", || ended() == all.len());
        for (id, seconds) in &all {
            assert_gone(seconds);
            assert_eq!(client.count(|message| is_answer_to(message, *id)), 0, "{era:?}");
        }
        client.settle();
        assert_eq!(client.count(|_| true), 0, "{era:?}: an answer to what was cancelled");
        let outcomes = outcomes(&home.program, "run_shell");
        assert!(outcomes.iter().all(|outcome| outcome == "cancelled"), "{era:?}: {outcomes:?}");
    }
}

/// Bytes that a process has read by now, of whatever.
fn bytes_read(pid: u32) -> Option<u64> {
    let counts = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// Looking at the plugins is no reason to look at them again.
#[test]
fn a_server_at_rest_reads_nothing() {
    let home = Home::new().guest("word_count").guest("hostile");
    let mut client = home.serve(Era::Legacy);
    client.settle();
    if bytes_read(client.pid()).is_none() {
        skip!("what a process reads is not counted here");
    }
    home.install("shell_echo", &bytes_of("shell_echo"));
    client.notification(LIST_CHANGED);
    client.settle();
    eventually("it comes to rest", || {
        let before = bytes_read(client.pid());
        std::thread::sleep(Duration::from_secs(1));
        bytes_read(client.pid()).zip(before).is_some_and(|(after, before)| after - before < 4096)
    });
}
