//! Who may say yes to what: M-07, and everything else that could pass for an approval and is none.
//!
//! In the newer era the call waits in the server, and the client brings the answer with a sealed `requestState`.

use crate::rig::Home;
use crate::traces::{SOON, open_calls, outcomes, trail};
use crate::unseen::READ;
use serde_json::{Value, json};
use toolcrib_tests::mcp::{Client, ERAS, Era, decides, envelope, failure, forms, text};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually, is_long};

const DENIED: &str = "Tool error: Command execution denied by user.";

/// A command that leaves a line each time it runs.
fn marking() -> Value {
    command("echo ran >>marks")
}

/// How often [`marking`] ran.
fn marks(program: &Program) -> usize {
    std::fs::read_to_string(program.path("work/marks")).unwrap_or_default().lines().count()
}

/// A state is refused before anything comes of it.
fn assert_refused(client: &mut Client, params: Value) {
    let id = client.request("tools/call", params);
    let (code, message) = client.error(id);
    assert_eq!(code, -32602, "{message}");
    assert!(message.contains("requestState"), "{message}");
}

#[test]
fn a_state_with_any_bit_changed_is_refused() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    let state = question.state().as_bytes();
    let mut sent = Vec::new();
    for at in 0..state.len() {
        let bits = if is_long() { (0..8).collect() } else { vec![at % 8, (at + 3) % 8] };
        for bit in bits {
            let mut bytes = state.to_vec();
            bytes[at] ^= 1 << bit;
            let changed: String = bytes.into_iter().map(char::from).collect();
            sent.push(client.request("tools/call", question.again(&changed, decides("allow once"))));
        }
    }
    for id in sent {
        assert_eq!(client.error(id).0, -32602);
    }
    assert_eq!((marks(&home.program), open_calls(&home.program)), (0, 1), "the call still waits");
    // None of these has used it up.
    envelope(&client.outcome(&question, decides("allow once")));
    assert_eq!(marks(&home.program), 1);
}

#[test]
fn what_only_looks_like_a_state_is_refused() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    let state = question.state().to_owned();
    let cut = state[..state.len() - 1].to_owned();
    let near = [state.to_uppercase(), format!("{state}A"), format!(" {state}"), cut, "A".repeat(1 << 20)];
    let odd = ["", ".", "rs1", "rs1..", "rs2.a.b.c", "null"].map(str::to_owned);
    for other in near.into_iter().chain(odd) {
        assert_refused(&mut client, question.again(&other, decides("allow once")));
    }
    assert_eq!(marks(&home.program), 0);
}

#[test]
fn a_state_opens_once() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    envelope(&client.outcome(&question, decides("allow once")));
    for _ in 0..2 {
        assert_refused(&mut client, question.again(question.state(), decides("allow once")));
    }
    assert_eq!(marks(&home.program), 1);
    assert_eq!(outcomes(&home.program, "run_shell"), ["ok"]);
}

#[test]
fn a_state_that_is_sent_many_times_at_once_opens_once() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    let sent: Vec<u64> = (0..50).map(|_| client.reply(&question, decides("allow once"))).collect();
    let results = sent.into_iter().filter(|id| client.answer(*id)["result"].is_object()).count();
    assert_eq!((results, marks(&home.program)), (1, 1));
}

#[test]
fn a_state_is_good_for_its_own_call_alone() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    let (state, yes) = (question.state(), decides("allow once"));
    let mut reworded = marking();
    reworded["why"] = "a better reason".into();
    let mut longer = marking();
    longer["wait"] = "10s".into();
    for (tool, arguments) in [
        ("run_shell", command("echo ran >>marks; echo again >>marks")),
        ("run_shell", reworded),
        ("run_shell", longer),
        ("run_shell", json!({})),
        ("time", marking()),
        ("time", json!({})),
        ("write_file", json!({ "path": "marks", "content": "ran\n" })),
    ] {
        assert_refused(&mut client, question.with(tool, arguments).again(state, yes.clone()));
    }
    let id = client.request("tools/call", question.with("run_shel", marking()).again(state, yes.clone()));
    assert_eq!(client.error(id).0, -32602, "a tool that is not there");
    assert_eq!(marks(&home.program), 0);

    // The order of the arguments is none of their meaning.
    let turned: serde_json::Map<String, Value> =
        marking().as_object().expect("an object").clone().into_iter().rev().collect();
    let id = client.request("tools/call", question.with("run_shell", turned.into()).again(state, yes));
    envelope(&client.result(id));
    assert_eq!(marks(&home.program), 1);
}

#[test]
fn a_state_is_good_for_its_own_server_alone() {
    let home = Home::new();
    let (mut client, mut other) = (home.serve(Era::Modern), home.serve(Era::Modern));
    let question = client.asked("run_shell", &marking());
    let beside = other.asked("run_shell", &marking());
    assert_refused(&mut other, question.again(question.state(), decides("allow once")));
    assert_refused(&mut client, beside.again(beside.state(), decides("allow once")));
    assert_eq!(marks(&home.program), 0);
    envelope(&client.outcome(&question, decides("allow once")));
    assert_eq!(failure(&other.outcome(&beside, decides("deny"))), DENIED);
    assert_eq!(marks(&home.program), 1);
}

#[test]
fn a_state_is_refused_when_its_time_is_up() {
    let home = Home::new().set("approval.timeout_ms=1000");
    let mut client = home.serve(Era::Modern);
    let question = client.asked("run_shell", &marking());
    eventually("the call has given up", || open_calls(&home.program) == 0);
    assert_refused(&mut client, question.again(question.state(), decides("allow once")));
    assert_eq!(marks(&home.program), 0);
    let last = trail(&home.program).pop().expect("an outcome");
    assert_eq!((&last["outcome"], &last["message"]), (&json!("denied"), &json!("nobody answered within 1s")));
}

#[test]
fn nobody_is_waited_for_longer_than_the_settings_say_in_the_older_era_too() {
    let home = Home::new().set("approval.timeout_ms=1000");
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &marking());
    let result = client.result(question.call);
    assert!(failure(&result).starts_with("Tool error: nobody answered within 1s"), "{result}");
    // Too late.
    client.reply(&question, decides("allow once"));
    client.settle();
    assert_eq!(marks(&home.program), 0);
}

/// In both eras, all that can come back from a form and is no plain yes.
#[test]
fn whatever_is_no_plain_yes_is_a_no() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        for (number, says) in [
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            decides("deny"),
            json!({ "action": "decline", "content": { "decision": "allow once" } }),
            json!({ "action": "cancel", "content": { "decision": "allow once" } }),
            json!({ "action": "accept", "content": { "decision": true } }),
            decides("Allow once"),
            decides("allow once "),
            decides("allow for this session\n"),
            decides(""),
        ]
        .into_iter()
        .enumerate()
        {
            let question = client.asked("run_shell", &command(&format!("touch marks # {number}")));
            if says["action"] != "accept" {
                std::thread::sleep(READ);
            }
            assert_eq!(failure(&client.outcome(&question, says.clone())), DENIED, "{era:?}: {says}");
            assert!(!home.program.path("work/marks").exists(), "{era:?}: {says}");
        }
    }
}

/// What is not even an answer to a form.
#[test]
fn what_is_no_answer_allows_nothing() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    for (number, responses) in [
        Value::Null,
        json!({}),
        json!({ "approve": decides("allow once") }),
        json!({ "approval": null }),
        json!({ "approval": "allow once" }),
        json!({ "approval": [decides("allow once")] }),
        json!({ "approval": { "decision": "allow once" } }),
        json!({ "approval": { "action": "ACCEPT", "content": { "decision": "allow once" } } }),
    ]
    .into_iter()
    .enumerate()
    {
        let question = client.asked("run_shell", &command(&format!("touch marks # {number}")));
        let mut again = question.again(question.state(), Value::Null);
        again["inputResponses"] = responses.clone();
        if responses.is_null() {
            again.as_object_mut().expect("an object").remove("inputResponses");
        }
        let id = client.request("tools/call", again);
        assert_eq!(failure(&client.result(id)), DENIED, "{responses}");
        assert!(!home.program.path("work/marks").exists(), "{responses}");
    }

    let home = Home::new();
    let mut client = home.serve(Era::Legacy);
    for (number, says) in [json!({}), json!({ "action": 1 }), json!({ "action": "accepted" })].into_iter().enumerate() {
        let question = client.asked("run_shell", &command(&format!("touch marks # {number}")));
        failure(&client.outcome(&question, says));
    }
    let question = client.asked("run_shell", &command("touch marks # by an error"));
    client.refuse(&question);
    failure(&client.result(question.call));
    assert!(!home.program.path("work/marks").exists());
}

#[test]
fn a_client_that_cannot_ask_is_told_what_to_do() {
    for era in ERAS {
        for capabilities in [json!({}), json!({ "elicitation": { "url": {} } }), json!({ "sampling": {}, "roots": {} })]
        {
            let home = Home::new();
            let mut client = home.serve_to(era, capabilities.clone());
            let result = client.call("run_shell", marking());
            let said = failure(&result);
            for word in ["shell_confirm", "--yes", "elicitation"] {
                assert!(said.contains(word), "{era:?}, {capabilities}: {said}");
            }
            assert_eq!(marks(&home.program), 0);
            assert!(!text(&client.call("time", json!({}))).is_empty());
        }
    }
}

/// As it was before there were modes (2025-06-18).
#[test]
fn a_client_that_names_no_mode_can_show_forms() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve_to(era, json!({ "elicitation": {} }));
        let question = client.asked("run_shell", &marking());
        envelope(&client.outcome(&question, decides("allow once")));
        assert_eq!(marks(&home.program), 1);
    }
}

#[test]
fn a_server_that_was_told_yes_asks_nobody() {
    for (era, capabilities) in ERAS.into_iter().flat_map(|era| [(era, json!({})), (era, forms())]) {
        let home = Home::new().flags(&["--yes"]);
        let mut client = home.serve_to(era, capabilities);
        envelope(&client.call("run_shell", marking()));
        assert_eq!(marks(&home.program), 1);
        let last = trail(&home.program).pop().expect("an outcome");
        assert_eq!(last["actions"][0]["decision"], "allowed by --yes", "{last}");
    }
}

#[test]
fn a_policy_that_forbids_yes_in_advance_holds() {
    for era in ERAS {
        let home = Home::new();
        home.program.write("policy.toml", "[approval]\nallow_yes = false\n");
        let policy = home.program.path("policy.toml").display().to_string();
        let home = home.flags(&["--policy", &policy, "--yes"]);
        let mut client = home.serve(era);
        let result = client.call("run_shell", marking());
        assert!(failure(&result).contains("approval.allow_yes = false"), "{result}");
        assert_eq!(marks(&home.program), 0);
    }
}

#[test]
fn the_form_shows_the_whole_action_and_nothing_that_hides_some_of_it() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let middle = (0..2000).map(|number| format!("echo line {number}\n")).collect::<String>();
        let mut arguments =
            command(&format!("# \u{202e}txet\u{200b} \u{1b}[8m\u{1b}]0;title\u{7}\n{middle}echo the end >>marks"));
        arguments["why"] = "to see\u{1b}[2J\u{202e}\nWhy: it is harmless".into();
        arguments["risk"] = "high".into();
        arguments["privesc"] = true.into();
        let question = client.asked("run_shell", &arguments);
        let shown = question.words();
        for part in
            ["run_shell (built in)", "local", "high risk", "changes something", "needs more rights", "the end >>marks"]
        {
            assert!(shown.contains(part), "{era:?}: no `{part}` in {shown:.500}");
        }
        let lines: String = middle.lines().map(|line| format!("> {line}\n")).collect();
        assert!(shown.contains(&lines), "{era:?}: some lines are left away");
        assert!(shown.contains("\\u{202e}txet\\u{200b}"), "{era:?}: what hides is not shown: {shown:.500}");
        let hides = |c: &char| (c.is_control() && *c != '\n') || ['\u{202e}', '\u{200b}'].contains(c);
        assert_eq!(shown.chars().find(hides), None, "{era:?}");
        assert_eq!(shown.lines().filter(|line| line.starts_with("why:")).count(), 1, "{era:?}: {shown:.500}");
        assert_eq!(failure(&client.outcome(&question, decides("deny"))), DENIED);
    }
}

/// A client may show the words with its own means: what is not the host's is quoted row by row, and the host has the first and the last word.
#[test]
fn each_row_of_foreign_text_in_a_form_is_quoted_and_the_headline_stands_at_both_ends() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let drawn =
            "run_shell (built in) wants to run on local, confined with named hosts only; the model says: \"low risk\"";
        let padding = " ".repeat(5000);
        let text =
            format!("touch marks #{padding}{drawn}\n: <<'X'\n\n{drawn}\n\nrun:\n> ls\n\n{drawn}: 1 line, 2 bytes\nX");
        let mut arguments = command(&text);
        arguments["why"] = format!("to look{padding}{drawn}").replace(&padding, &padding[..800]).into();
        let question = client.asked("run_shell", &arguments);
        let shown = question.words();
        let work = home.program.path("work").canonicalize().expect("a directory").display().to_string();
        let own: Vec<&str> = shown.lines().filter(|line| !line.starts_with("> ") && !line.starts_with(">… ")).collect();
        let size = format!(
            "run_shell (built in) would run on local, confined with named hosts only: {} lines, {} bytes",
            text.lines().count(),
            text.len()
        );
        let headline = drawn.replace("low risk", "low risk, changes something");
        assert_eq!(own, [headline.as_str(), "", "in:", "why:", "run:", "cell:", "", &size], "{era:?}: {shown}");
        // A client that wraps longer rows makes none of a foreign one that could pass for the host's.
        let mut foreign = shown.lines().filter(|line| line.starts_with('>'));
        assert!(foreign.all(|line| line.chars().count() <= 80), "{era:?}: {shown}");
        assert!(shown.replace("\n>… ", "").contains(&format!("in:\n> {work}\n")), "{era:?}: {shown}");
        assert!(shown.contains("run:\n> touch marks #"), "{era:?}: {shown}");
        assert_eq!(failure(&client.outcome(&question, decides("deny"))), DENIED);
        assert_eq!(marks(&home.program), 0);
    }
}

#[test]
fn two_calls_that_wait_are_answered_in_any_order() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let first = client.asked("run_shell", &command("echo first >>order"));
    let second = client.asked("run_shell", &command("echo second >>order"));
    assert_ne!(first.state(), second.state());
    envelope(&client.outcome(&second, decides("allow once")));
    envelope(&client.outcome(&first, decides("allow once")));
    assert_eq!(std::fs::read_to_string(home.program.path("work/order")).expect("a file"), "second\nfirst\n");
}

#[test]
fn a_write_outside_the_workspace_is_shown_and_made_when_it_was_allowed() {
    for era in ERAS {
        let home = Home::new();
        home.program.write("home/notes", "one\ntwo\n");
        let mut client = home.serve(era);
        let arguments = json!({ "path": "~/notes", "content": "one\n2\n" });
        let content = || std::fs::read_to_string(home.program.path("home/notes")).expect("a file");
        let question = client.asked("write_file", &arguments);
        let shown = question.words();
        for part in ["home/notes", "6 bytes in place of 8", "outside the workspace", "-two", "+2"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(content(), "one\ntwo\n");
        assert_eq!(failure(&client.outcome(&question, decides("deny"))), "Tool error: File write denied by user.");
        let question = client.asked("write_file", &arguments);
        assert_eq!(envelope(&client.outcome(&question, decides("allow once")))["result"], "Wrote 6 bytes to ~/notes");
        assert_eq!(content(), "one\n2\n");
    }
}

/// Somebody closes the window: the client never comes back with an answer.
#[test]
fn a_question_that_is_never_answered_holds_up_no_other() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let _forgotten = client.asked("run_shell", &command("echo forgotten >>marks"));
    for number in 0..3 {
        let question = client.asked("run_shell", &command(&format!("echo {number} >>marks")));
        envelope(&client.outcome(&question, decides("allow once")));
    }
    assert_eq!((marks(&home.program), open_calls(&home.program)), (3, 1));
}

#[test]
fn the_same_call_twice_has_two_questions_and_each_answer_is_for_one() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let (one, other) = (client.asked("run_shell", &marking()), client.asked("run_shell", &marking()));
    assert_eq!(failure(&client.outcome(&one, decides("deny"))), DENIED);
    assert_eq!(marks(&home.program), 0);
    envelope(&client.outcome(&other, decides("allow once")));
    assert_eq!(marks(&home.program), 1);
}

#[test]
fn while_a_call_waits_for_a_person_others_are_answered() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let question = client.asked("run_shell", &marking());
        for _ in 0..20 {
            envelope(&client.call("time", json!({})));
            envelope(&client.call("write_file", json!({ "path": "a.txt", "content": "a" })));
            client.settle();
        }
        assert_eq!(marks(&home.program), 0);
        envelope(&client.outcome(&question, decides("allow once")));
        assert_eq!(marks(&home.program), 1);
    }
}

#[test]
fn a_hundred_calls_wait_and_the_next_is_told_so() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let arguments = |number: usize| command(&format!("echo {number} >>marks"));
    let calls: Vec<u64> = (0..101).map(|number| client.begin("run_shell", arguments(number))).collect();
    let (mut waiting, mut refused) = (Vec::new(), 0);
    for (number, call) in calls.into_iter().enumerate() {
        let answer = client.answer(call);
        if answer["result"]["resultType"] == "input_required" {
            let state = answer["result"]["requestState"].as_str().expect("a state").to_owned();
            waiting.push((number, state));
        } else {
            assert!(failure(&answer["result"]).contains("too many calls wait"), "{answer}");
            refused += 1;
        }
    }
    assert_eq!((waiting.len(), refused), (100, 1));
    envelope(&client.call("time", json!({})));
    // Whichever they are, they are all still good.
    for (number, state) in waiting.into_iter().rev() {
        let responses = json!({ "approval": decides("allow once") });
        let again = json!({
            "name": "run_shell", "arguments": arguments(number), "requestState": state, "inputResponses": responses,
        });
        let id = client.request("tools/call", again);
        envelope(&client.result(id));
    }
    assert_eq!(marks(&home.program), 100);
    let question = client.asked("run_shell", &marking());
    envelope(&client.outcome(&question, decides("allow once")));
}

#[test]
fn a_yes_for_the_session_ends_with_the_server() {
    for era in ERAS {
        let home = Home::new().guest("shell_echo").grant("shell_echo", "shell=true");
        let mut client = home.serve(era);
        let question = client.asked("run_shell", &marking());
        envelope(&client.outcome(&question, decides("allow for this session")));
        envelope(&client.call("run_shell", marking()));
        // Another plugin was not approved with it.
        let other = client.asked("shell_echo", &json!({ "text": "hello" }));
        assert_eq!(failure(&client.outcome(&other, decides("deny"))), DENIED);
        assert!(client.end(SOON).is_some_and(|status| status.success()), "{}", client.said());
        let mut client = home.serve(era);
        let question = client.asked("run_shell", &marking());
        assert_eq!(failure(&client.outcome(&question, decides("deny"))), DENIED);
        assert_eq!(marks(&home.program), 2);
    }
}

#[test]
fn a_call_that_is_cancelled_while_a_person_thinks_does_nothing() {
    let home = Home::new();
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &marking());
    client.cancel(question.call);
    eventually("the call has its outcome", || open_calls(&home.program) == 0);
    client.reply(&question, decides("allow once"));
    client.settle();
    assert_eq!((marks(&home.program), outcomes(&home.program, "run_shell")), (0, vec!["cancelled".to_owned()]));
}

#[test]
fn a_server_that_ends_while_a_call_waits_runs_nothing() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let _question = client.asked("run_shell", &marking());
        assert!(client.end(SOON).is_some(), "{era:?}: it does not end with its input");
        assert_eq!((marks(&home.program), outcomes(&home.program, "run_shell")), (0, vec!["cancelled".to_owned()]));
    }
}
