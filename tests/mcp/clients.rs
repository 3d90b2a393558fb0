//! Clients over HTTP that are asked, that leave, that use the ids of others, or that are web pages.

use crate::traces::{open_calls, outcomes, trail};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use std::iter::successors;
use std::time::Duration;
use toolcrib_tests::http::{Connection, LEGACY, Reply, Request, Server, home};
use toolcrib_tests::mcp::{decides, envelope, failure};
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{eventually, is_long, skip};

const DENIED: &str = "Tool error: Command execution denied by user.";

/// How many clients M-15 has, and how many threads drive them.
const CLIENTS: usize = 1000;
const THREADS: usize = 50;

/// Pages that may call.
const PAGES: [&str; 2] = ["https://app.example", "https://other.example:8443"];
/// Headers that a page wants to send.
const WANTED: &str = "authorization,content-type,mcp-param-x";

/// A message of the older era.
fn message(id: usize, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Begins a session of the older era and has its client asked; returns the session, the stream of the call, which is the only one
/// that the client reads, and the question.
fn asked(server: &Server) -> (String, Connection, Value) {
    let session = server.session_of(&json!({ "elicitation": {} }));
    let call = json!({ "name": "run_shell", "arguments": command("echo ran >mark") });
    let mut stream = server.connect();
    stream.send(&server.of_session(&session, &message(1, "tools/call", call)).bytes());
    let begun = stream.begun().expect("a stream");
    assert_eq!((begun.status, begun.header("content-type")), (200, Some("text/event-stream")), "{begun:?}");
    let question = stream.event().expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let words = question["params"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("echo ran >mark"), "{question}");
    assert!(!has_run(server));
    (session, stream, question)
}

/// Whether the command of [`asked`] ran.
fn has_run(server: &Server) -> bool {
    server.program.path("work/mark").exists()
}

/// Answers a question of the server, in a request of its own.
fn decide(server: &Server, session: &str, question: &Value, decision: &str) {
    tell(server, session, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": decides(decision) }));
}

/// Sends what has no answer.
fn tell(server: &Server, session: &str, message: &Value) {
    let reply = server.answer(&server.of_session(session, message));
    assert_eq!((reply.status, &*reply.body), (202, ""), "{reply:?}");
}

#[test]
fn a_client_of_the_older_era_is_asked_on_the_stream_of_its_call() {
    for decision in ["deny", "allow once"] {
        let server = Server::asking();
        let (session, mut stream, question) = asked(&server);
        decide(&server, &session, &question, decision);
        let answer = stream.event().expect("an answer");
        assert_eq!(answer["id"], 1, "{answer}");
        assert_eq!(stream.event(), None, "the answer is the last of its stream");
        if decision == "deny" {
            assert_eq!(failure(&answer["result"]), DENIED);
        } else {
            envelope(&answer["result"]);
        }
        assert_eq!(has_run(&server), decision != "deny");
    }
}

/// In the older era a connection that is lost is no cancellation: the client may come back for the answer.
#[test]
fn a_call_whose_client_has_lost_its_stream_can_still_be_cancelled() {
    let server = Server::asking();
    let (session, stream, question) = asked(&server);
    drop(stream);
    server.assert_healthy();
    let params = json!({ "requestId": 1, "reason": "a test" });
    tell(&server, &session, &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    eventually("the call has its outcome", || open_calls(&server.program) == 0);
    // Too late.
    decide(&server, &session, &question, "allow once");
    let list = server.answer(&server.of_session(&session, &message(2, "tools/list", json!({}))));
    assert_eq!((list.status, &list.message()["id"]), (200, &json!(2)), "{list:?}");
    assert_eq!(outcomes(&server.program, "run_shell"), ["cancelled"]);
    assert!(!has_run(&server));
}

/// Times of up to 60 ms without a pattern, the same each time.
fn moments() -> impl Iterator<Item = Duration> {
    let next = |seed: &u64| Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    successors(next(&1), next).map(|seed| Duration::from_micros((seed >> 33) % 60_000))
}

/// Sends a call that would run for long; returns how many seconds its two processes sleep.
fn begin(server: &Server, connection: &mut Connection) -> String {
    let seconds = unique_seconds();
    let text = format!("setsid sleep {seconds} & sleep {seconds}");
    connection.send(&server.call("run_shell", command(&text)).bytes());
    seconds
}

/// M-06
#[test]
fn a_client_that_leaves_at_any_point_leaves_nothing_but_one_outcome() {
    let server = Server::new();
    let points = if is_long() { 200 } else { 40 };
    let leave = |moment| {
        let mut connection = server.connect();
        let seconds = begin(&server, &mut connection);
        std::thread::sleep(moment);
        seconds
    };
    let mut all: Vec<String> = moments().take(points).map(leave).collect();
    // However slow this machine is, one of them has come to run.
    let mut connection = server.connect();
    let last = begin(&server, &mut connection);
    eventually("both processes of the last one run", || sleeping(&last).len() == 2);
    drop(connection);
    all.push(last);
    all.iter().for_each(|seconds| assert_gone(seconds));
    eventually("every call has its outcome", || open_calls(&server.program) == 0);
    server.assert_healthy();
    let outcomes = outcomes(&server.program, "run_shell");
    println!("{} of {} calls were accepted before their clients left", outcomes.len(), all.len());
    assert!((1..=all.len()).contains(&outcomes.len()), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome == "cancelled"), "{outcomes:?}");
}

/// M-06: what follows the request is not yet read.
#[test]
fn a_client_that_has_said_more_and_leaves_is_noticed_as_well() {
    let server = Server::new();
    for more in ["\r\n", "GET /healthz HTTP/1.1\r\n"] {
        let mut connection = server.connect();
        let seconds = begin(&server, &mut connection);
        eventually("both processes run", || sleeping(&seconds).len() == 2);
        connection.send(more.as_bytes());
        drop(connection);
        assert_gone(&seconds);
    }
    eventually("every call has its outcome", || open_calls(&server.program) == 0);
    assert_eq!(outcomes(&server.program, "run_shell"), ["cancelled"; 2]);
}

/// Without sessions nobody knows whether the one who asks is the one who failed before.
#[test]
fn clients_without_sessions_do_not_share_what_failed() {
    let server = Server::new();
    let read = || server.answer(&server.call("read_file", json!({ "path": "later.txt" }))).message()["result"].clone();
    for _ in 0..4 {
        let result = read();
        let said = failure(&result);
        assert!(said.contains("later.txt") && !said.contains("was not run again"), "{said}");
    }
}

/// One of many clients that use the same ids, on a connection of its own.
struct Caller<'s> {
    server: &'s Server,
    number: usize,
    /// In the older era.
    session: Option<&'s str>,
    connection: Connection,
    /// How many ids it uses, from 0.
    ids: usize,
}

impl Caller<'_> {
    /// What is said under an id by this client alone.
    fn canary(&self, id: usize) -> String {
        format!("CANARY-{:04}-{id:03}", self.number)
    }

    /// Asks for a file that is not there, which the answer names.
    fn ask(&mut self, id: usize) {
        let arguments = json!({ "path": self.canary(id) });
        let request = match self.session {
            Some(session) => {
                let params = json!({ "name": "read_file", "arguments": arguments });
                self.server.of_session(session, &message(id, "tools/call", params))
            }
            None => self.server.call("read_file", arguments).numbered(id),
        };
        let is_last = id + 1 == self.ids;
        let request = if is_last { request.with("Connection", "close") } else { request };
        self.connection.send(&request.bytes());
    }

    /// Fails unless what comes next is one answer, to this id, with nothing of others.
    fn check(&mut self, id: usize) {
        let canary = self.canary(id);
        let reply = self.connection.reply().unwrap_or_else(|| panic!("no answer to {canary}: {}", self.server.said()));
        let shown = format!("{reply:?}");
        assert_eq!(shown.matches("CANARY").count(), shown.matches(&canary).count(), "{canary}: {shown}");
        let messages = reply.messages();
        assert!(messages.len() == 1 && messages[0]["id"] == id, "{canary}: {shown}");
        assert!(failure(&messages[0]["result"]).contains(&canary), "{canary}: {shown}");
    }
}

/// Has all of them ask at once, and each again as soon as it has its answer.
fn converse(callers: &mut [Caller]) {
    callers.iter_mut().for_each(|caller| caller.ask(0));
    for id in 0..callers[0].ids {
        for caller in &mut *callers {
            caller.check(id);
            if id + 1 < caller.ids {
                caller.ask(id + 1);
            }
        }
    }
    for caller in callers {
        assert_eq!(caller.connection.rest(), "", "{}: more than was asked for", caller.number);
    }
}

/// M-15
#[test]
fn a_thousand_clients_with_the_same_ids_have_their_own_answers() {
    if getrlimit(Resource::Nofile).current.is_some_and(|most| most < 8192) {
        skip!("a process may open fewer than 8,192 files here");
    }
    let server = Server::new();
    let ids = if is_long() { 100 } else { 5 };
    let sessions: Vec<String> = (0..CLIENTS / 2).map(|_| server.session()).collect();
    let caller = |number: usize| Caller {
        server: &server,
        number,
        session: number.is_multiple_of(2).then(|| sessions[number / 2].as_str()),
        connection: server.connect(),
        ids,
    };
    let mut callers: Vec<Caller> = (0..CLIENTS).map(caller).collect();
    std::thread::scope(|scope| {
        for some in callers.chunks_mut(CLIENTS / THREADS) {
            scope.spawn(move || converse(some));
        }
    });
    drop(callers);
    server.assert_healthy();
    assert_eq!(outcomes(&server.program, "read_file").len(), CLIENTS * ids);
}

/// A server that some pages may call.
fn open() -> Server {
    let pages = PAGES.into_iter().flat_map(|page| ["--allow-origin", page]);
    let arguments: Vec<&str> = ["--http", "127.0.0.1:0"].into_iter().chain(pages).collect();
    Server::start(&home(), &arguments, &[])
}

/// What a browser asks before it sends a request for a page, of which it says the origin.
fn preflight(server: &Server) -> Request {
    let request = server.request("OPTIONS", "/mcp").without("Authorization");
    let request = request.with("Access-Control-Request-Method", "POST");
    request.with("Access-Control-Request-Headers", WANTED)
}

/// What a browser obeys.
fn told(reply: &Reply) -> Vec<(&str, &str)> {
    reply.headers("access-control-")
}

#[test]
fn a_browser_is_told_without_a_token_that_a_page_may_call_and_nothing_runs() {
    let server = open();
    let write = server.call("write_file", json!({ "path": "page", "content": "written" }));
    for page in PAGES {
        let request = preflight(&server).with("Origin", page);
        for request in [request.clone(), request.saying(&write.body)] {
            let reply = server.answer(&request);
            assert_eq!(reply.status, 204, "{reply:?}");
            for (name, value) in [
                ("access-control-allow-origin", page),
                ("access-control-allow-methods", "GET, POST, DELETE"),
                ("access-control-allow-headers", WANTED),
                ("access-control-max-age", "600"),
                ("vary", "origin"),
            ] {
                assert_eq!(reply.headers(name), [(name, value)], "{reply:?}");
            }
            assert_eq!(reply.header("access-control-allow-credentials"), None, "{reply:?}");
        }
    }
    let is_written = || server.program.path("work/page").exists();
    assert!(trail(&server.program).is_empty() && !is_written());
    assert_eq!(server.answer(&write.with("Origin", PAGES[0])).status, 200);
    assert!(!trail(&server.program).is_empty() && is_written());
}

#[test]
fn a_page_that_may_call_can_read_every_answer_and_others_see_none_of_that() {
    let server = open();
    let session = server.session();
    let list = message(1, "tools/list", json!({}));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let good = server.call("time", json!({}));
    for (request, status) in [
        (good.clone(), 200),
        (server.of_session(&session, &list), 200),
        (server.request("GET", "/healthz").without("Authorization"), 200),
        (server.of_session(&session, &ready), 202),
        (good.clone().saying("{"), 400),
        (good.clone().without("Authorization"), 401),
        (server.request("GET", "/nowhere"), 404),
        (server.of_session("no-such-session", &list), 404),
        (server.request("PUT", "/mcp"), 405),
        (good.clone().without("Accept"), 406),
        (good.set("Content-Type", "text/plain"), 415),
    ] {
        for page in PAGES {
            let reply = server.answer(&request.clone().with("Origin", page));
            assert_eq!((reply.status, reply.headers("vary")), (status, vec![("vary", "origin")]), "{reply:?}");
            let exposed = "mcp-session-id, www-authenticate";
            let expected = [("access-control-allow-origin", page), ("access-control-expose-headers", exposed)];
            assert_eq!(told(&reply), expected, "{reply:?}");
        }
        let reply = server.answer(&request);
        assert_eq!((reply.status, told(&reply)), (status, vec![]), "{reply:?}");
    }
}

#[test]
fn a_page_that_may_not_call_is_refused_and_told_nothing() {
    for (server, page) in [(open(), "https://evil.test"), (open(), "null"), (Server::new(), PAGES[0])] {
        let call = server.call("time", json!({}));
        for request in [preflight(&server), call.clone().without("Authorization"), call] {
            let reply = server.answer(&request.with("Origin", page));
            assert_eq!((reply.status, told(&reply)), (403, vec![]), "{page}: {reply:?}");
        }
        assert!(trail(&server.program).is_empty());
        server.assert_healthy();
    }
}

#[test]
fn what_has_no_origin_is_no_question_of_a_browser() {
    let server = open();
    let options = server.request("OPTIONS", "/mcp");
    for request in [options.clone(), options.with("Access-Control-Request-Method", "POST")] {
        let reply = server.answer(&request);
        assert_eq!((reply.status, told(&reply)), (405, vec![]), "{reply:?}");
        assert_eq!(reply.header("allow"), Some("GET, POST, DELETE"), "{reply:?}");
        let reply = server.answer(&request.without("Authorization"));
        assert_eq!((reply.status, told(&reply)), (401, vec![]), "{reply:?}");
    }
    assert_eq!(server.answer(&preflight(&server).with("Origin", PAGES[0])).status, 204);
}

#[test]
fn a_stream_that_is_taken_up_again_goes_on_behind_what_its_client_has_had() {
    let server = Server::asking();
    let session = server.session_of(&json!({ "elicitation": {} }));
    let call = json!({ "name": "run_shell", "arguments": command("echo ran >mark") });
    let mut stream = server.connect();
    stream.send(&server.of_session(&session, &message(1, "tools/call", call)).bytes());
    assert_eq!(stream.begun().expect("a stream").status, 200);
    let (mut last, mut question) = (String::new(), None);
    while question.is_none() {
        let event = String::from_utf8(stream.chunk().expect("a question")).expect("text");
        last = event.lines().find_map(|line| line.strip_prefix("id:")).map_or(last, |id| id.trim().to_owned());
        let data = event.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_default();
        question = serde_json::from_str::<Value>(data).ok().filter(|told| told["method"] == "elicitation/create");
    }
    drop(stream);
    let again = server.request("GET", "/mcp").with("Accept", "text/event-stream").with("Mcp-Session-Id", &session);
    let mut stream = server.connect();
    stream.send(&again.with("MCP-Protocol-Version", LEGACY).with("Last-Event-ID", &last).bytes());
    assert_eq!(stream.begun().expect("a stream").status, 200, "behind {last}");
    decide(&server, &session, &question.expect("it was asked"), "allow once");
    let next = stream.event().expect("the answer");
    assert_eq!(next["id"], 1, "behind {last}: {next}");
    envelope(&next["result"]);
    assert!(has_run(&server));
}
