//! Calls as clients and models really write them: values as text, names that a client adds, nothing in the place of arguments. What is taken is
//! what there is no doubt about, and everything on the way decides about the same value.

use crate::rig::Home;
use crate::traces::trail;
use serde_json::{Value, json};
use toolcrib_tests::http::{LEGACY, Server};
use toolcrib_tests::mcp::{Client, ERAS, Era, decides, envelope, failure, text};
use toolcrib_tests::shell::{command, with};

/// What an n8n agent that began with a chat puts beside the arguments of each call.
fn of_n8n(mut arguments: Value) -> Value {
    for (name, value) in
        [("sessionId", "1bd19f08a047"), ("action", "sendMessage"), ("chatInput", "read it"), ("toolCallId", "call_00")]
    {
        arguments[name] = value.into();
    }
    arguments
}

fn home() -> Home {
    let home = Home::new();
    home.program.write("work/a.txt", "one\ntwo\nthree\n");
    home
}

/// The result of a call with `arguments` of any kind.
fn given(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let id = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
    client.result(id)
}

#[test]
fn a_value_that_came_as_text_is_taken_where_no_text_could_be_meant() {
    for era in ERAS {
        let mut client = home().unasked().serve(era);
        let read = client.call("file_read", json!({ "path": "a.txt", "offset": "2", "limit": "1" }));
        assert_eq!(envelope(&read)["result"], "2\ttwo\n", "{era:?}: {read}");
        let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": "true" });
        envelope(&client.call("file_edit", edit));
        let listed =
            client.call("exec", json!({ "program": "printf", "args": "[\"%s-\",\"2\",\"[]\"]", "why": "a test" }));
        assert_eq!(envelope(&listed)["result"]["stdout"], "2-[]-", "{era:?}: {listed}");
        let refused = client.call("file_read", json!({ "path": "a.txt", "offset": "two" }));
        assert!(failure(&refused).contains("`offset`: \"two\" is not of type"), "{era:?}: {refused}");
        // A text that is a text.
        envelope(&client.call("write_file", json!({ "path": "b.txt", "content": "[1]" })));
        assert!(text(&client.call("read_file", json!({ "path": "b.txt" }))).contains("[1]"));
    }
}

/// Who asks, repeats and records sees what is done, however it was written.
#[test]
fn a_person_is_asked_about_what_was_meant_and_the_same_call_is_the_same() {
    let home = home();
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &with(command("echo ran >>marks"), "mutation", "true"));
    envelope(&client.outcome(&question, decides("allow once")));
    let ended = trail(&home.program).pop().expect("an outcome");
    assert_eq!(ended["actions"][0]["declaration"]["mutation"], true, "{ended}");
    // Two failures of one call, each written in another way, and the third is not run.
    for offset in [json!("1"), json!(1), json!("1.0")] {
        let result = client.call("file_read", json!({ "path": "missing.txt", "offset": offset }));
        let is_third = offset == "1.0";
        assert_eq!(failure(&result).contains("was not run again"), is_third, "{result}");
    }
}

#[test]
fn what_clients_add_is_dropped_with_a_notice_and_all_else_is_refused_by_name() {
    for era in ERAS {
        let mut client = home().serve(era);
        let read = envelope(&client.call("read_file", of_n8n(json!({ "path": "a.txt" }))));
        assert_eq!(
            read["notices"],
            json!([
                "dropped `toolCallId`, `sessionId`, `action`, `chatInput`: n8n adds them to calls, and `read_file` does not take them"
            ]),
            "{era:?}: {read}"
        );
        let time = envelope(&client.call("time", json!({ "task_progress": "- [ ] look at the time" })));
        assert_eq!(
            time["notices"],
            json!(["dropped `task_progress`: Cline adds it to calls, and `time` does not take it"]),
            "{era:?}: {time}"
        );
        // `action` is an argument of this tool, so it is none that a client added.
        let wrong = client.call("browser", of_n8n(json!({})));
        assert!(failure(&wrong).contains("`action`: \"sendMessage\" is not one of"), "{era:?}: {wrong}");
        for (given, told) in [
            (json!({ "path": "a.txt", "action": "delete" }), "unknown argument `action`"),
            (json!({ "path": "a.txt", "sessionId": "work" }), "unknown argument `sessionId`"),
            (json!({ "path": "a.txt", "offest": 2 }), "unknown argument `offest` (did you mean `offset`?)"),
        ] {
            let refused = client.call("file_read", given);
            assert!(failure(&refused).contains(told), "{era:?}: {refused}");
        }
    }
}

#[test]
fn what_stands_for_no_arguments_is_none_and_an_object_may_be_text() {
    for era in ERAS {
        let mut client = home().serve(era);
        for none in [json!(null), json!(""), json!([]), json!("{}")] {
            envelope(&given(&mut client, "time", &none));
        }
        let read = given(&mut client, "read_file", &json!("{\"path\":\"a.txt\"}"));
        assert!(text(&read).contains("three"), "{era:?}: {read}");
    }
    let server = Server::start(&toolcrib_tests::http::home(), &["--http", "127.0.0.1:0"], &[]);
    let session = server.session();
    for none in [json!(null), json!(""), json!([]), json!("{\"format\":\"iso\"}")] {
        let params = json!({ "name": "time", "arguments": none });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        for request in [server.of_session(&session, &call), server.call("time", none.clone())] {
            let reply = server.answer(&request);
            assert_eq!(reply.message()["result"]["isError"], false, "{none}: {reply:?}");
        }
    }
}

#[test]
fn an_envelope_around_a_call_is_read_as_the_call_is() {
    let mut client = home().options(&["--lazy"]).serve(Era::Legacy);
    for arguments in [json!({ "path": "a.txt", "offset": "2" }), json!("{\"path\":\"a.txt\",\"offset\":2}")] {
        let envelope = of_n8n(json!({ "name": "file_read", "arguments": arguments }));
        let read = client.call("tool_call", envelope);
        assert!(text(&read).contains("two") && !text(&read).contains("one"), "{read}");
    }
    for none in [json!(""), json!([]), json!(null)] {
        envelope(&client.call("tool_call", json!({ "name": "time", "arguments": none })));
    }
    let found =
        envelope(&client.call("tool_search", json!({ "query": "the time", "limit": "1", "toolCallId": "call_00" })));
    assert_eq!(found["result"]["tools"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(
        found["notices"],
        json!(["dropped `toolCallId`: n8n adds it to calls, and `tool_search` does not take it"])
    );
}

/// After a restart a client names the session that it had.
#[test]
fn a_session_of_before_is_unknown_and_whoever_names_it_can_begin_again() {
    let before = Server::new().session();
    let server = Server::new();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.answer(&server.of_session(&before, &list)).status, 404);
    let params =
        json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" } });
    let greeting = json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params });
    let reply = server.answer(&server.of_session(&before, &greeting));
    assert_eq!(reply.status, 200, "{reply:?}");
    let session = reply.header("mcp-session-id").expect("a session").to_owned();
    assert_ne!(session, before);
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.answer(&server.of_session(&session, &ready)).status, 202);
    assert_eq!(server.answer(&server.of_session(&session, &list)).status, 200);
}
