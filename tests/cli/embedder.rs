//! Events for whoever writes the lines of `toolcrib run`. The numbers are those of the cases of agents that are made of several processes.

use serde_json::{Value, json};
use toolcrib_tests::outcome::{NO_QUESTION, code, stderr, stdout, succeeded};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, Running};

fn start(program: &Program, arguments: &[&str]) -> Running {
    program.start(&[&NO_QUESTION[..], arguments].concat())
}

fn write(running: &mut Running, line: &Value) {
    running.write(format!("{line}\n"));
}

fn reply(id: u64) -> Value {
    json!({ "id": id, "tool": "reply", "arguments": { "content": "hi" } })
}

/// The next line, which asks for something.
fn asked(running: &mut Running) -> Value {
    let line = running.line();
    assert!(line["ask"]["ask"].is_string(), "{line}");
    line
}

/// Cases 2, 6 and 7.
#[test]
fn an_event_is_a_line_and_so_is_its_answer() {
    let program = Program::new();
    program.write("sets.toml", "[toolset.channel]\nsession = [\"channel\"]\nturn = [\"reply\"]\n");
    let config = program.path("sets.toml").display().to_string();
    let mut running = start(&program, &["--config", &config, "run", "--embedder", "message.send,agent.*"]);
    write(&mut running, &json!({ "id": 1, "open": { "toolset": "channel", "bind": { "channel": "ops" } } }));
    assert_eq!(running.line()["result"]["session"], "s1");
    write(&mut running, &json!({ "id": 0, "session": "s1", "turn": "begin" }));
    assert_eq!(running.line()["result"], json!({ "generation": 1 }));
    let mut call = reply(2);
    call["session"] = "s1".into();
    write(&mut running, &call);
    let line = asked(&mut running);
    let event = &line["ask"];
    assert_eq!((&line["id"], &event["kind"], &event["tool"]), (&json!(2), &json!("message.send"), &json!("reply")));
    assert_eq!(event["payload"], json!({ "content": "hi" }));
    assert_eq!((&event["bindings"], &event["deadline_ms"]), (&json!({ "channel": "ops" }), &json!(60_000)));
    let answer = json!({ "answer": event["ask"], "result": { "conversation_id": "c1" } });
    write(&mut running, &answer);
    let ended = running.line();
    assert_eq!((&ended["id"], &ended["result"]), (&json!(2), &json!({ "sent": true, "conversation_id": "c1" })));
    // The end of a turn says what was told in it: whether there was a reply at all.
    write(&mut running, &json!({ "id": 8, "session": "s1", "turn": "end" }));
    assert_eq!(running.line()["result"], json!({ "generation": 2, "told": ["message.send"] }));
    for turn in ["begin", "end"] {
        write(&mut running, &json!({ "id": 9, "session": "s1", "turn": turn }));
    }
    running.line();
    assert_eq!(running.line()["result"]["told"], json!([]));
    // A second answer changes nothing.
    write(&mut running, &answer);
    let refused = running.line();
    assert_eq!((&refused["id"], &refused["error"]["kind"]), (&Value::Null, &json!("invalid_arguments")));
    assert_eq!(refused["error"]["message"], "no event `a1` waits for an answer");
    // An error is the failure of the call.
    write(&mut running, &reply(3));
    let name = asked(&mut running)["ask"]["ask"].clone();
    write(&mut running, &json!({ "answer": name, "error": { "message": "the channel is closed" } }));
    let failed = running.line();
    assert_eq!(
        (&failed["error"]["kind"], &failed["error"]["message"]),
        (&json!("execution_failed"), &json!("the channel is closed"))
    );
    // An event of the kind `tell` wants no answer.
    write(&mut running, &json!({ "id": 4, "tool": "set_status", "arguments": { "status": "working" } }));
    let told = running.line();
    assert_eq!((&told["id"], &told["tell"]["kind"]), (&json!(4), &json!("agent.status")));
    assert_eq!(told["tell"]["payload"], json!({ "status": "working", "kind": "progress" }));
    assert_eq!(running.line()["result"], json!({ "delivered": true }));
    // A kind that nobody takes.
    write(&mut running, &json!({ "id": 5, "tool": "react", "arguments": { "emoji": "👍" } }));
    let untaken = running.line();
    assert_eq!(untaken["error"]["kind"], "unavailable", "{untaken}");
}

/// Cases 3 and 4.
#[test]
fn what_is_given_up_is_withdrawn_by_a_line() {
    let program = Program::new();
    let mut running = start(&program, &["--set", "embedder.timeout_ms=300", "run", "--embedder", "*"]);
    write(&mut running, &reply(1));
    let name = asked(&mut running)["ask"]["ask"].clone();
    assert_eq!(running.line(), json!({ "id": 1, "withdrawn": name }));
    assert_eq!(running.line()["error"]["kind"], "timed_out");
    // A later answer is refused.
    write(&mut running, &json!({ "answer": name, "result": {} }));
    assert_eq!(running.line()["error"]["message"], "no event `a1` waits for an answer");
    let mut running = start(&program, &["run", "--embedder", "*"]);
    write(&mut running, &reply(1));
    let name = asked(&mut running)["ask"]["ask"].clone();
    write(&mut running, &json!({ "id": 2, "cancel": 1 }));
    assert_eq!(running.line(), json!({ "id": 1, "withdrawn": name }));
    assert_eq!(running.line()["error"]["kind"], "cancelled");
}

/// Case 5: whoever would answer is gone.
#[test]
fn at_the_end_of_the_input_what_waits_has_an_unknown_outcome() {
    let program = Program::new();
    let mut running = start(&program, &["run", "--embedder", "*"]);
    write(&mut running, &reply(1));
    asked(&mut running);
    running.close();
    let lost = running.line();
    assert_eq!(lost["error"]["kind"], "outcome_unknown", "{lost}");
    assert_eq!(
        lost["error"]["message"],
        "the embedder was gone before it answered `message.send`: its input has ended"
    );
    assert_eq!(code(&running.finish()), 0);
}

#[test]
fn the_first_line_may_say_which_events_are_taken() {
    let program = Program::new();
    let mut running = start(&program, &["--offer", "agent", "run"]);
    write(&mut running, &json!({ "embedder": { "kinds": ["message.*"] } }));
    assert_eq!(running.line()["result"], json!({ "kinds": ["message.*"] }));
    write(&mut running, &json!({ "id": 1, "embedder": { "kinds": ["*"] } }));
    assert_eq!(running.line()["error"]["message"], "which events are taken was said before");
    write(&mut running, &reply(2));
    let name = asked(&mut running)["ask"]["ask"].clone();
    write(&mut running, &json!({ "answer": name, "result": null }));
    assert_eq!(running.line()["result"], json!({ "sent": true }));
    write(&mut running, &json!({ "embedder": { "kinds": ["*"] } }));
    let late = running.line();
    assert_eq!(late["error"]["message"], "which events are taken is said by the first line, or by `--embedder`");
}

#[test]
fn lines_about_events_that_make_no_sense_are_told() {
    let program = Program::new();
    let input = [
        json!({ "answer": "a1", "result": {} }),
        json!({ "id": 1, "answer": "a1" }),
        json!({ "answer": "a1", "result": {}, "tool": "time" }),
        json!({ "id": 2, "result": {} }),
        json!({ "id": 3, "tool": "time", "error": { "message": "x" } }),
        json!({ "embedder": { "kinds": ["all"] } }),
        json!({ "embedder": {} }),
        json!({ "answer": "a1", "error": "no" }),
        json!({ "tool": "time" }),
    ];
    let text: String = input.iter().map(|line| format!("{line}\n")).collect();
    let output = program.run_with(&[&NO_QUESTION[..], &["run"]].concat(), &text);
    let said: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let expected = [
        "no event waits: nobody said that events are taken here",
        "no event waits: nobody said that events are taken here",
        "a line has either `tool` or `cancel`, or is about a session",
        "a line has either `tool` or `cancel`, or is about a session",
        "a line has either `tool` or `cancel`, or is about a session",
        "the line is not a request: `all` is not a kind of events",
        "the line is not a request: missing field `kinds`",
        "the line is not a request: invalid type: string \"no\"",
        "the line is not a request: missing field `id`",
    ];
    for (line, expected) in said.iter().zip(expected) {
        let message = line["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(said.len(), input.len());
    let odd = program.run(&["run", "--embedder", "all"]);
    assert!(code(&odd) == 2 && stderr(&odd).contains("`all` is not a kind of events"), "{}", stderr(&odd));
}

/// Case 1: without an embedder these tools are said to lack one; with one they are listed by the kinds that it takes.
#[test]
fn tools_that_need_an_embedder_say_so() {
    let program = Program::new();
    let why = succeeded(&program.run(&["tools", "--why", "reply"]));
    assert!(why.starts_with("`reply` is not offered: it needs an embedder, a program around this one"), "{why}");
    let all = succeeded(&program.run(&["tools", "--all"]));
    assert!(all.lines().any(|line| line.starts_with("branch ") && line.contains("no: it needs an embedder")), "{all}");
    program.write("sets.toml", "[toolset.channel]\ntools = [\"reply\", \"branch\", \"time\"]\n");
    let config = program.path("sets.toml").display().to_string();
    let mut running = start(&program, &["--config", &config, "run", "--embedder", "message.*"]);
    write(&mut running, &json!({ "id": 1, "open": { "toolset": "channel" } }));
    running.line();
    write(&mut running, &json!({ "id": 2, "session": "s1", "list": "mcp" }));
    let listed = running.line()["result"]["definitions"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["reply", "time"]);
    let explained = succeeded(&program.run(&["policy", "explain", "reply"]));
    assert!(explained.contains("events for the embedder: *"), "{explained}");
}

/// Many calls that wait for one embedder, answered in another order than they were asked.
#[test]
fn events_of_many_calls_are_told_apart() {
    let program = Program::new();
    let mut running = start(&program, &["--set", "embedder.max_pending=100", "run", "--embedder", "*"]);
    let text: String = (0..100).map(|id| format!("{}\n", reply(id))).collect();
    running.write(text);
    let mut open: Vec<(Value, Value)> = (0..100)
        .map(|_| {
            let line = asked(&mut running);
            (line["id"].clone(), line["ask"]["ask"].clone())
        })
        .collect();
    open.reverse();
    let answers: String = open
        .iter()
        .map(|(id, name)| format!("{}\n", json!({ "answer": name, "result": { "conversation_id": id.to_string() } })))
        .collect();
    running.write(answers);
    for _ in 0..100 {
        let line = running.line();
        assert_eq!(line["result"]["conversation_id"], json!(line["id"].to_string()));
    }
}

/// The question of a command, which the embedder answers; its digest binds the answer to what was shown.
fn questioned(running: &mut Running, id: u64, text: &str) -> (Value, Value) {
    write(running, &json!({ "id": id, "tool": "run_shell", "arguments": command(text) }));
    let line = asked(running);
    let (ask, payload) = (&line["ask"], &line["ask"]["payload"]);
    assert_eq!((&line["id"], &ask["kind"], &ask["tool"]), (&json!(id), &json!("approval.ask"), &json!("run_shell")));
    assert!(payload["headline"].as_str().is_some_and(|said| said.contains("wants to run on local")), "{line}");
    assert!(payload["rows"].to_string().contains(text) && ask["deadline_ms"].is_u64(), "{line}");
    assert_eq!(payload["decisions"], json!(["once", "session", "no"]), "{line}");
    (ask["ask"].clone(), payload["digest"].clone())
}

#[test]
fn the_embedder_answers_questions_where_the_user_says_so() {
    let program = Program::new();
    let ran = |name: &str| program.path(&format!("work/{name}")).exists();
    let mut running = program.start(&["--set", "approval.embedder=true", "run", "--embedder", "approval.ask"]);
    let (name, digest) = questioned(&mut running, 1, "touch one");
    write(&mut running, &json!({ "answer": name, "result": { "decision": "once", "digest": digest } }));
    assert!(running.line()["result"].is_object() && ran("one"));
    let (name, other) = questioned(&mut running, 2, "touch two");
    assert_ne!(other, digest);
    write(&mut running, &json!({ "answer": name, "result": { "decision": "once", "digest": digest } }));
    let refused = running.line()["error"]["message"].to_string();
    assert!(refused.contains("answered another question") && !ran("two"), "{refused}");
    for (id, answer) in [json!("yes"), json!({ "decision": "once" }), json!({ "decision": "yes", "digest": digest })]
        .into_iter()
        .enumerate()
    {
        let (name, _) = questioned(&mut running, 10 + id as u64, &format!("touch odd{id}"));
        write(&mut running, &json!({ "answer": name, "result": answer }));
        let refused = running.line()["error"]["message"].to_string();
        assert!(refused.contains("answer is not one") && !ran(&format!("odd{id}")), "{refused}");
    }
    let (name, digest) = questioned(&mut running, 20, "touch three");
    write(&mut running, &json!({ "answer": name, "result": { "decision": "no", "digest": digest } }));
    assert_eq!(running.line()["error"]["message"], "Command execution denied by user.");
    // Nobody was offered to let it out.
    let (name, digest) = questioned(&mut running, 21, "touch four");
    write(&mut running, &json!({ "answer": name, "result": { "decision": "unconfined", "digest": digest } }));
    assert_eq!(running.line()["error"]["kind"], "denied");
    assert!(!ran("three") && !ran("four"));
    let (name, digest) = questioned(&mut running, 22, "touch five");
    write(&mut running, &json!({ "answer": name, "result": { "decision": "session", "digest": digest } }));
    assert!(running.line()["result"].is_object() && ran("five"));
    write(&mut running, &json!({ "id": 23, "tool": "run_shell", "arguments": command("touch six") }));
    assert!(running.line()["result"].is_object() && ran("six"), "not asked again");
}

#[test]
fn the_embedder_is_not_asked_where_nobody_says_so() {
    let program = Program::new();
    for (arguments, kind) in [
        (&["run", "--embedder", "*"][..], json!("denied")),
        (&["--set", "approval.embedder=true", "run", "--embedder", "message.*"], json!("denied")),
        (&["--yes", "--set", "approval.embedder=true", "run", "--embedder", "*"], Value::Null),
    ] {
        let mut running = program.start(arguments);
        write(&mut running, &json!({ "id": 1, "tool": "run_shell", "arguments": command("true") }));
        let line = running.line();
        assert_eq!((&line["id"], &line["error"]["kind"]), (&json!(1), &kind), "{arguments:?}: {line}");
    }
}
