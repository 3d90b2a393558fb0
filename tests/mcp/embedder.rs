//! A server with an embedder beside it: at a socket, or a program that the server starts. Tools that need it come and go with it.

use crate::rig::{Home, LIST_CHANGED};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use toolcrib_tests::eventually;
use toolcrib_tests::mcp::{Client, ERAS, Era, envelope, failure, forms};

/// One link, as the embedder has it.
struct Link {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Link {
    fn accept(listener: &UnixListener, kinds: &Value) -> Self {
        let (writer, _) = listener.accept().expect("the server connects");
        let reader = BufReader::new(writer.try_clone().expect("a stream"));
        let mut link = Self { reader, writer };
        link.write(&json!({ "embedder": { "kinds": kinds } }));
        link
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.writer, "{line}").expect("the server reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("the server writes");
        serde_json::from_str(&line).expect("a line of JSON")
    }
}

fn serve(home: &Home, era: Era, place: &str) -> Client {
    let flags = ["--offer", "agent", "--set", "tmux.enabled=false", "serve", "--embedder", place];
    let mut command = home.program.command(&flags);
    command.current_dir(home.program.path("work"));
    let mut client = Client::start(&mut command, home.program.clone(), era, forms());
    client.shake_hands();
    client
}

fn has(client: &mut Client, tool: &str) -> bool {
    client.tools().iter().any(|name| name == tool)
}

#[test]
fn tools_come_and_go_with_the_embedder_at_a_socket() {
    for era in ERAS {
        let home = Home::new();
        let socket = home.program.path("agent.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let mut client = serve(&home, era, &format!("unix:{}", socket.display()));
        let mut link = Link::accept(&listener, &json!(["message.*"]));
        eventually("the tools of its events", || has(&mut client, "reply"));
        assert!(!has(&mut client, "branch"));
        let call = client.begin("reply", json!({ "content": "hi" }));
        let asked = link.read();
        let event = &asked["ask"];
        assert_eq!((&event["kind"], &event["payload"]), (&json!("message.send"), &json!({ "content": "hi" })));
        let answer = json!({ "answer": event["ask"], "result": { "conversation_id": "c1" } });
        link.write(&answer);
        let result = client.result(call);
        assert_eq!(envelope(&result)["result"], json!({ "sent": true, "conversation_id": "c1" }));
        // What makes no sense is told to whoever wrote it.
        link.write(&answer);
        assert_eq!(link.read()["error"]["message"], "no event `a1` waits for an answer");
        link.write(&json!({ "tool": "time" }));
        assert_eq!(link.read()["error"]["kind"], "invalid_arguments");
        // A call that is given up withdraws its event.
        let given_up = client.begin("reply", json!({ "content": "never" }));
        let name = link.read()["ask"]["ask"].clone();
        client.cancel(given_up);
        assert_eq!(link.read(), json!({ "withdrawn": name }));
        // The link breaks after an event was delivered.
        let lost = client.begin("reply", json!({ "content": "who knows" }));
        link.read();
        drop(link);
        let lost = client.result(lost);
        assert!(failure(&lost).contains("was gone before it answered `message.send`"), "{lost}");
        eventually("no tools without it", || !has(&mut client, "reply"));
        client.forget(|message| message["method"] == LIST_CHANGED);
        // It comes back, and takes other events.
        let mut link = Link::accept(&listener, &json!(["agent.*"]));
        if era == Era::Legacy {
            client.notification(LIST_CHANGED);
        }
        eventually("the tools of its other events", || has(&mut client, "branch"));
        assert!(!has(&mut client, "reply"));
        let call = client.begin("branch", json!({ "description": "x" }));
        let name = link.read()["ask"]["ask"].clone();
        link.write(&json!({ "answer": name, "result": { "branch_id": "b1" } }));
        assert_eq!(envelope(&client.result(call))["result"], json!({ "branch_id": "b1" }));
    }
}

#[test]
fn an_embedder_can_be_a_program() {
    let home = Home::new();
    let script = home.program.path("agent.sh");
    home.program.write(
        "agent.sh",
        r#"echo '{"embedder":{"kinds":["message.send"]}}'
while read -r line; do
    name=${line##*'"ask":"'}
    name=${name%%'"'*}
    echo '{"answer":"'$name'","result":{"conversation_id":"'$name'"}}'
done
"#,
    );
    let place = json!(["/bin/sh", script.display().to_string()]).to_string();
    let mut client = serve(&home, Era::Modern, &place);
    eventually("the tools of its events", || has(&mut client, "reply"));
    for name in ["a1", "a2"] {
        let result = client.call("reply", json!({ "content": "hi" }));
        assert_eq!(envelope(&result)["result"]["conversation_id"], name);
    }
    // It ends with the server.
    client.hang_up();
    let pattern = script.display().to_string();
    eventually("it is gone", || {
        !std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok).any(|entry| {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            words.starts_with(b"/bin/sh\0") && String::from_utf8_lossy(&words).contains(&pattern)
        })
    });
}

#[test]
fn what_does_not_say_which_events_it_takes_is_no_embedder() {
    let home = Home::new();
    let socket = home.program.path("agent.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut client = serve(&home, Era::Modern, &format!("unix:{}", socket.display()));
    for line in ["{\"embedder\":{\"kinds\":[\"all\"]}}\n", "hello\n", "\n"] {
        let (mut stream, _) = listener.accept().expect("the server connects");
        stream.write_all(line.as_bytes()).expect("the server reads");
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
        assert!(!has(&mut client, "reply"));
    }
    let said = client.said();
    assert!(said.contains("its first line does not say which events it takes"), "{said}");
    for (place, why) in [("here", "write `unix:/a/socket`"), ("unix:a.sock", "give the whole path of the socket")] {
        let output = home.program.run(&["serve", "--embedder", place]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}

/// What happened is fed over the link, for the agent that the embedder says; what makes no sense is answered by an error, and the link stays.
#[test]
fn what_happened_is_fed_over_the_link() {
    let home = Home::new();
    let socket = home.program.path("agent.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut client = serve(&home, ERAS[0], &format!("unix:{}", socket.display()));
    let mut link = Link::accept(&listener, &json!(["message.*"]));
    let message = |content: &str| json!({ "message": { "channel": "dev", "author": "ada", "content": content } });
    link.write(&json!({ "feed": message("hello") }));
    link.write(&json!({ "id": 7, "feed": message("again") }));
    assert_eq!(link.read(), json!({ "id": 7, "result": {} }));
    link.write(&json!({ "id": "x", "agent": "iris", "feed": message("for iris") }));
    assert_eq!(link.read(), json!({ "id": "x", "result": {} }));
    for (line, said) in [
        (json!({ "feed": { "rumour": {} } }), "is nothing that can be fed"),
        (json!({ "id": 8, "feed": message("x"), "agent": "" }), "`agent` has 1 to 200 bytes"),
        (json!({ "feed": message("x"), "session": "s1" }), "neither an answer nor a feed"),
        (json!({ "hello": 1 }), "neither an answer nor a feed"),
    ] {
        link.write(&line);
        let refused = link.read();
        assert_eq!(refused["id"], line["id"], "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains(said)), "{refused}");
    }
    let recalled = envelope(&client.call("channel_recall", json!({ "channel": "dev", "oldest_first": true })));
    let contents: Vec<&Value> = recalled["result"]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(contents, ["hello", "again"], "{recalled}");
}
