//! The door of HTTP, from outside: who gets in, what is believed of a request, how long anything may take, and how it ends.

use crate::traces::{SOON, open_calls, outcomes, trail};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use toolcrib_tests::http::{Connection, LEGACY, MODERN, Request, Server, home, meta};
use toolcrib_tests::mcp::META;
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually, is_long, resident_kib, skip};

/// Codes of JSON-RPC and MCP.
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// A token for the environment, and what is looked for.
const GIVEN: &str = "given-CANARY-9f3a4e6b8d2c1a7f6e5d4c3b";
const CANARY: &str = "-CANARY-";

/// A call that leaves a file.
fn write(server: &Server, path: &str) -> Request {
    server.call("write_file", json!({ "path": path, "content": "written" }))
}

/// Fails when a request does anything but to be refused.
fn assert_refused(server: &Server, request: &Request, status: u16, why: &str) {
    let before = trail(&server.program).len();
    let reply = server.answer(request);
    assert_eq!(reply.status, status, "{why}: {reply:?}");
    assert_eq!(trail(&server.program).len(), before, "{why}: a call was accepted");
}

fn files(server: &Server) -> usize {
    std::fs::read_dir(server.program.path("work")).expect("its working directory").count()
}

fn stop(server: &Server) {
    server.signal("TERM");
}

/// What a program that has to fail says; `kind: message`.
fn refusal(program: &Program, arguments: &[&str]) -> String {
    let output = program.run(&[&["serve"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// M-01
#[test]
fn a_page_of_any_other_origin_is_refused() {
    let program = home();
    let server = Server::start(&program, &["--http", "127.0.0.1:0", "--allow-origin", "https://app.example"], &[]);
    let port = server.address.port();
    for origin in [
        "null",
        "",
        "https://evil.test",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.test",
        "https://evil.test/https://app.example",
        "HTTPS://APP.EXAMPLE",
        &format!("http://localhost.evil.test:{port}"),
        &format!("http://localhost:{}", port ^ 1),
        &format!("http://[::1]:{port}"),
        &format!("http://127.0.0.1:{port}"),
        "https://app.example, https://evil.test",
    ] {
        let request = write(&server, "page").with("Origin", origin);
        assert_refused(&server, &request, 403, origin);
        assert_refused(&server, &request.without("Authorization"), 403, origin);
        assert_eq!(server.answer(&server.request("GET", "/healthz").with("Origin", origin)).status, 403, "{origin}");
    }
    let twice = write(&server, "page").with("Origin", "https://app.example");
    assert_eq!(server.answer(&twice).status, 200);
    assert_eq!(files(&server), 1);
    assert_refused(&server, &twice.with("Origin", "https://app.example"), 403, "two origins");
    assert_refused(&server, &write(&server, "none").without("Authorization"), 401, "no origin and no token");
    server.assert_healthy();
}

/// M-02
#[test]
fn a_port_alone_is_one_of_loopback() {
    for port in ["0", "127.0.0.1:0", "[::1]:0"] {
        let server = Server::start(&home(), &["--http", port], &[]);
        assert!(server.address.ip().is_loopback(), "{}", server.address);
        server.assert_healthy();
    }
}

/// M-02
#[test]
fn beyond_loopback_nothing_is_served_without_a_token() {
    let program = home();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let told = refusal(&program, &["--no-auth", "--http", address]);
        assert!(told.starts_with("usage: `--no-auth` "), "{told}");
    }
    let server = Server::start(&program, &["--http", "0.0.0.0:0"], &[]);
    let said = server.said();
    assert!(said.contains("not encrypted") && said.contains("--allow-host"), "{said}");
    assert_refused(&server, &write(&server, "open").without("Authorization"), 401, "no token");
    assert_refused(&server, &write(&server, "open").set("Host", &server.address.to_string()), 403, "0.0.0.0");
    server.assert_healthy();
}

#[test]
fn without_a_token_loopback_is_open_on_demand_alone() {
    let mut server = Server::start(&home(), &["--http", "127.0.0.1:0", "--no-auth"], &[]);
    assert_eq!(server.token.take(), None, "no token was made");
    assert!(server.said().contains("no token is required"), "{}", server.said());
    server.assert_healthy();
    assert_refused(&server, &write(&server, "page").with("Origin", "http://localhost"), 403, "a page");
    assert_refused(&server, &write(&server, "page").set("Host", "evil.test"), 403, "a name that was rebound");
}

/// M-03
#[test]
fn a_host_that_is_not_this_one_is_refused() {
    let program = home();
    let allowed = ["--allow-host", "tools.example", "--allow-host", "tools.test:8443"];
    let server = Server::start(&program, &[&["--http", "127.0.0.1:0"], &allowed[..]].concat(), &[]);
    let port = server.address.port();
    for host in [
        "",
        "evil.test",
        &format!("evil.test:{port}"),
        "localhost.",
        &format!("localhost.:{port}"),
        "localhost.evil.test",
        "127.0.0.1.evil.test",
        "evil.localhost",
        "0.0.0.0",
        &format!("0.0.0.0:{port}"),
        "127.1",
        "127.0.0.2",
        "2130706433",
        "0x7f.0.0.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "user@localhost",
        "localhost:",
        "localhost:99999",
        "localhost, evil.test",
        "tools.test",
        "tools.test:443",
        "x.tools.example",
    ] {
        for request in [write(&server, "host"), server.request("GET", "/healthz")] {
            assert_refused(&server, &request.clone().set("Host", host), 403, host);
            assert_refused(&server, &request.without("Authorization").set("Host", host), 403, host);
        }
    }
    let good = write(&server, "host");
    assert_refused(&server, &good.clone().without("Host"), 403, "none");
    assert_refused(&server, &good.clone().with("Host", "localhost"), 403, "two of them");
    assert_refused(&server, &good.clone().with("Host", "evil.test"), 403, "a second one");
    assert_refused(&server, &server.request("GET", "http://evil.test/healthz"), 403, "another one in the target");
    assert_eq!(files(&server), 0);
    let own =
        ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", "tools.example", "tools.example:1", "tools.test:8443"];
    for host in own {
        let reply = server.answer(&good.clone().set("Host", host));
        assert_eq!(reply.status, 200, "{host}: {reply:?}");
    }
}

#[test]
fn health_is_told_to_everybody_and_nothing_else_is_there() {
    let server = Server::new();
    let reply = server.answer(&server.request("GET", "/healthz").without("Authorization"));
    assert_eq!((reply.status, &*reply.body), (200, "ok"), "{reply:?}");
    let mut connection = server.connect();
    connection.send(&server.request("HEAD", "/healthz").without("Authorization").bytes());
    assert_eq!(connection.begun().map(|reply| reply.status), Some(200));
    assert_eq!(server.answer(&server.request("POST", "/healthz")).status, 405);
    for path in
        ["/", "/mcp/", "/mcp/x", "//mcp", "/MCP", "/healthz/", "/%6dcp", "/.well-known/oauth-protected-resource", "*"]
    {
        assert_eq!(server.answer(&server.request("GET", path)).status, 404, "{path}");
        assert_refused(&server, &write(&server, "elsewhere").to(path), 404, path);
    }
}

#[test]
fn a_token_that_is_not_the_token_is_refused() {
    let server = Server::new();
    let token = server.token.clone().expect("it has made one");
    let good = write(&server, "in");
    let last = if token.ends_with('0') { '1' } else { '0' };
    for borne in [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        token.clone(),
        format!("Bearer {}", &token[1..]),
        format!("Bearer {}", &token[..token.len() - 1]),
        format!("Bearer {}{last}", &token[..token.len() - 1]),
        format!("Bearer {token}0"),
        format!("Bearer {token},"),
        format!("Bearer {token} {token}"),
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {}", token.to_uppercase()),
        format!("Basic {token}"),
        format!("Token {token}"),
        format!("Bearer{token}"),
        format!("Bearer {token}é"),
        "Bearer undefined".into(),
    ] {
        let request = good.clone().set("Authorization", &borne);
        assert_refused(&server, &request, 401, &borne);
        assert_eq!(server.answer(&request).header("www-authenticate"), Some("Bearer"), "{borne}");
    }
    let bearer = format!("Bearer {token}");
    assert_refused(&server, &good.clone().without("Authorization"), 401, "none");
    assert_refused(&server, &good.clone().with("Authorization", &bearer), 401, "twice");
    assert_refused(&server, &good.clone().with("Authorization", "Bearer x"), 401, "and another one");
    let elsewhere = good.clone().without("Authorization").to(&format!("/mcp?access_token={token}"));
    assert_refused(&server, &elsewhere.with("Cookie", &bearer), 401, "elsewhere");
    assert_eq!(files(&server), 0);
    for scheme in ["bearer", "BEARER"] {
        assert_eq!(server.answer(&good.clone().set("Authorization", &format!("{scheme} {token}"))).status, 200);
    }
}

#[test]
fn whoever_bears_no_token_is_not_read() {
    let server = Server::new();
    let stranger = write(&server, "in").without("Authorization");
    for length in ["10", "4194305", "999999999999"] {
        let mut connection = server.connect();
        let head = stranger.clone().with("Content-Length", length).with("Expect", "100-continue");
        connection.send(&head.head());
        assert_eq!(connection.reply().map(|reply| reply.status), Some(401), "{length}");
    }
    let mut connection = server.connect();
    connection.send(&stranger.clone().with("Transfer-Encoding", "chunked").head());
    assert_eq!(connection.reply().map(|reply| reply.status), Some(401));
    for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
        assert_refused(&server, &server.request(method, "/mcp").without("Authorization"), 401, method);
    }
}

/// How a request of M-04 is put together.
#[derive(Clone, Debug)]
struct Pair {
    versions: Vec<String>,
    methods: Vec<String>,
    names: Vec<String>,
    said_version: Option<&'static str>,
    is_complete: bool,
    twice: Option<(&'static str, &'static str)>,
    session: Option<&'static str>,
}

impl Pair {
    fn any() -> impl Strategy<Value = Pair> {
        let version =
            values(&[MODERN], &[LEGACY, "2025-06-18", "2024-11-05", "2026-07-29", "2027-01-01", "1900-01-01", "x"]);
        let method =
            values(&["tools/call", " tools/call "], &["tools/list", "TOOLS/CALL", "tools/call/", "initialize", "ping"]);
        let names: &[&str] = &["write_file", "\twrite_file ", "=?base64?d3JpdGVfZmlsZQ==?="];
        let others: &[&str] = &[
            "time",
            "Write_file",
            "write_file,time",
            "=?base64?dGltZQ==?=",
            "=?base64?d3JpdGVfZmlsZQ?=",
            "=?BASE64?d3JpdGVfZmlsZQ==?=",
        ];
        let said = prop_oneof![5 => Just(Some(MODERN)), 1 => Just(Some(LEGACY)), 1 => Just(Some("2027-01-01")), 1 => Just(None)];
        // A reader that takes the first of two keys sees another call than one that takes the last.
        let first = [("\"method\":", "\"method\":\"tools/list\","), ("\"name\":", "\"name\":\"time\",")];
        let last = [
            ("\"jsonrpc\":", "\"method\":\"tools/list\","),
            ("\"_meta\":", "\"_meta\":{},"),
            ("\"params\":", "\"params\":{},"),
        ];
        let twice = prop_oneof![9 => Just(None), 1 => select([&first[..], &last].concat()).prop_map(Some)];
        let session = prop_oneof![3 => Just(None), 1 => Just(Some("8d1f2c60-0000-4000-8000-000000000000"))];
        let parts = (version, method, values(names, others), said, prop::bool::weighted(0.9), twice, session);
        parts.prop_map(|(versions, methods, names, said_version, is_complete, twice, session)| Self {
            versions,
            methods,
            names,
            said_version,
            is_complete,
            twice,
            session,
        })
    }

    fn request(&self, server: &Server, path: &str) -> Request {
        let mut body = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": { "name": "write_file", "arguments": { "path": path, "content": "x" } },
        });
        if let Some(version) = self.said_version {
            let mut said = meta(version);
            if !self.is_complete {
                said.as_object_mut().expect("an object").remove(&format!("{META}clientCapabilities"));
            }
            body["params"]["_meta"] = said;
        }
        let mut request = server.post(&body);
        if let Some((before, more)) = self.twice {
            request.body = request.body.replacen(before, &format!("{more}{before}"), 1);
        }
        for (name, values) in
            [("MCP-Protocol-Version", &self.versions), ("Mcp-Method", &self.methods), ("Mcp-Name", &self.names)]
        {
            request = values.iter().fold(request, |request, value| request.with(name, value));
        }
        self.session.map_or(request.clone(), |session| request.with("Mcp-Session-Id", session))
    }

    /// Whether the body is one that may run.
    fn is_whole(&self) -> bool {
        let is_doubled = self.twice.is_some_and(|(before, _)| before != "\"_meta\":" || self.said_version.is_some());
        self.said_version == Some(MODERN) && self.is_complete && !is_doubled
    }

    /// Whether the headers say what the body says.
    fn agrees(&self) -> bool {
        let [version, method, name] = [&self.versions, &self.methods, &self.names].map(|values| match &values[..] {
            [value] => value.trim(),
            _ => "",
        });
        let is_name = name == "write_file" || name == "=?base64?d3JpdGVfZmlsZQ==?=";
        version == MODERN && method == "tools/call" && is_name
    }
}

/// The values of one header: mostly a right one, else another, anything, none, or two.
fn values(
    right: &'static [&'static str],
    wrong: &'static [&'static str],
) -> impl Strategy<Value = Vec<String>> + use<> {
    let any = |values: &'static [&'static str]| select(values).prop_map(str::to_owned);
    prop_oneof![
        12 => any(right).prop_map(|value| vec![value]),
        3 => any(wrong).prop_map(|value| vec![value]),
        1 => "[ -~]{0,24}".prop_map(|value| vec![value]),
        1 => Just(Vec::new()),
        1 => (any(right), any(wrong)).prop_map(|(right, wrong)| vec![right, wrong]),
        1 => (any(right), any(wrong)).prop_map(|(right, wrong)| vec![wrong, right]),
        1 => any(right).prop_map(|value| vec![value.clone(), value]),
    ]
}

/// M-04
#[test]
fn nothing_runs_whose_headers_and_body_disagree() {
    let server = Server::new();
    let cases = if is_long() { 100_000 } else { 2000 };
    let (ran, refused) = (Cell::new(0), Cell::new(0));
    let connection = RefCell::new(server.connect());
    let exchange = |request: &Request| {
        let mut connection = connection.borrow_mut();
        connection.send(&request.bytes());
        connection.reply().unwrap_or_else(|| {
            // It hung up behind the answer before this one.
            *connection = server.connect();
            connection.send(&request.bytes());
            connection.reply().expect("an answer")
        })
    };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let outcome = TestRunner::new(config).run(&Pair::any(), |pair| {
        let path = format!("pair-{}", ran.get() + refused.get());
        let reply = exchange(&pair.request(&server, &path));
        let (file, code) = (server.program.path("work").join(&path), reply.code());
        if pair.is_whole() && pair.agrees() {
            prop_assert!(reply.status == 200 && file.exists(), "{reply:?}");
            std::fs::remove_file(file).expect("the file");
            ran.set(ran.get() + 1);
            return Ok(());
        }
        prop_assert!(!file.exists() && (400..500).contains(&reply.status), "{reply:?}");
        if pair.is_whole() {
            // An unknown version is told as such where all headers of that version are right.
            let is_unknown = code == Some(UNSUPPORTED_VERSION);
            prop_assert!(reply.status == 400 && (code == Some(HEADER_MISMATCH) || is_unknown), "{reply:?}");
        }
        refused.set(refused.get() + 1);
        Ok(())
    });
    outcome.unwrap_or_else(|failed| panic!("{failed}"));
    let accepted = trail(&server.program).iter().filter(|line| line["event"] == "accepted").count();
    assert_eq!(accepted, ran.get(), "what ran, and what should have");
    assert!(ran.get() * 20 > cases as usize && refused.get() * 4 > cases as usize, "{ran:?} of {cases} ran");
    server.assert_healthy();
}

/// A request in its plainest form is begun where it is read. What it says in another form is judged by the transport, which has the same to say.
#[test]
fn a_call_that_is_begun_where_it_is_read_is_answered_as_any_other() {
    let server = Server::new();
    server.program.write("work/there", "told\n");
    let read = |path: &str| server.call("read_file", json!({ "path": path }));
    let good = read("there");
    let altered = |from: &str, to: &str| good.clone().saying(&good.body.replacen(from, to, 1));
    let elsewhere = |request: Request| request.set("Accept", "application/json;q=1, text/event-stream");
    let without_times = |text: &str| {
        let digits = |part: &str| part.len() > 9 && part.bytes().all(|byte| byte.is_ascii_digit());
        text.split_inclusive(|c: char| !c.is_ascii_digit())
            .map(|part| if digits(&part[..part.len() - 1]) { "N" } else { part })
            .collect::<String>()
    };
    let mut ran = 0;
    for request in [
        good.clone(),
        read("missing"),
        read("/etc/shadow"),
        read(""),
        server.call("read_file", json!({})),
        server.call("read_file", json!({ "path": "there", "more": 1 })),
        server.call("no_such_tool", json!({})),
        server.call("run_shell", command("echo told")),
        altered("\"arguments\"", "\"argument\""),
        altered("{\"path\":\"there\"}", "null"),
        altered("{\"path\":\"there\"}", "[]"),
        altered("\"id\":1", "\"id\":\"one\""),
        altered("\"id\":1", "\"id\":1.5"),
        altered("\"id\":1", "\"id\":null"),
        altered("\"id\":1,", ""),
        altered("\"2.0\"", "\"1.0\""),
        altered("\"jsonrpc\":\"2.0\",", ""),
        altered("\"id\":1", "\"id\":1,\"result\":{}"),
        altered("\"id\":1", "\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}"),
        altered("\"id\":1", "\"id\":1,\"more\":[{}]"),
        altered("clientCapabilities\":{}", "clientCapabilities\":{\"elicitation\":{}}"),
        altered("clientCapabilities\":{}", "clientCapabilities\":{\"elicitation\":5}"),
        altered("clientCapabilities\":{}", "clientInfo\":{\"name\":\"x\"},\"x\":{}"),
        good.clone().with("Mcp-Param-Path", "there"),
        good.clone().set("Content-Type", "application/json; charset=utf-8"),
        good.clone().set("Content-Type", "text/plain"),
        good.clone().without("Content-Type"),
        good.clone().without("Mcp-Name"),
        good.clone().set("Mcp-Name", "=?base64?cmVhZF9maWxl?="),
    ] {
        let (here, there) = (server.answer(&request), server.answer(&elsewhere(request.clone())));
        assert_eq!(here.status, there.status, "{request:?}: {here:?} {there:?}");
        assert_eq!(here.header("content-type"), there.header("content-type"), "{request:?}");
        assert_eq!(without_times(&here.body), without_times(&there.body), "{request:?}");
        ran += usize::from(here.body.contains("\"isError\":false"));
    }
    assert!(ran >= 5, "{ran}");
}

/// In a session, too; and one that only calls is not taken for silent by what it does not hear of.
#[test]
fn a_call_in_a_session_is_answered_as_any_other() {
    let server = Server::new();
    server.program.write("work/there", "told\n");
    let session = server.session();
    let call = |id: usize, path: &str, meta: serde_json::Value| {
        let params = json!({ "name": "read_file", "arguments": { "path": path }, "_meta": meta });
        server.of_session(&session, &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    };
    for (number, path) in ["there", "missing", "/etc/shadow"].into_iter().enumerate() {
        let here = server.answer(&call(2 * number, path, json!({})));
        // Who wants progress gets it from a task of its own.
        let there = server.answer(&call(2 * number + 1, path, json!({ "progressToken": "p" })));
        assert_eq!((here.status, here.header("content-type")), (there.status, there.header("content-type")));
        let (here, there) = (here.message(), there.message());
        assert_eq!(here["id"], 2 * number, "{here}");
        let result = |message: &serde_json::Value| message["result"]["content"].clone();
        assert_eq!(result(&here), result(&there), "{here} {there}");
        assert_eq!(here["result"]["isError"], there["result"]["isError"], "{here} {there}");
    }
    let gone = server.request("DELETE", "/mcp").with("Mcp-Session-Id", &session).with("MCP-Protocol-Version", LEGACY);
    assert!(server.answer(&gone).status < 300);
    assert_eq!(server.answer(&call(9, "there", json!({}))).status, 404, "its session has ended");
}

#[test]
fn headers_of_the_newer_era_have_to_be_right_in_a_session_as_well() {
    let server = Server::new();
    let session = server.session();
    let params = json!({ "name": "write_file", "arguments": { "path": "session", "content": "x" } });
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
    let good = server.of_session(&session, &call);
    for (name, value) in [("Mcp-Method", "tools/list"), ("Mcp-Name", "time")] {
        let reply = server.answer(&good.clone().with(name, value));
        assert_eq!((reply.status, reply.code()), (400, Some(HEADER_MISMATCH)), "{reply:?}");
        assert_eq!(reply.message()["id"], 5);
    }
    assert_refused(&server, &good.clone().with("Mcp-Session-Id", "another"), 400, "two sessions");
    assert_refused(&server, &good.clone().set("Mcp-Session-Id", "another"), 404, "no session");
    assert_refused(&server, &good.clone().without("Mcp-Session-Id"), 400, "none");
    assert_refused(&server, &good.clone().set("MCP-Protocol-Version", MODERN), 400, "another version");
    assert_eq!(files(&server), 0);
    let reply = server.answer(&good);
    assert_eq!((reply.message()["result"]["isError"].clone(), files(&server)), (json!(false), 1), "{reply:?}");
}

/// M-05
#[test]
fn the_newer_era_has_one_method_and_no_sessions() {
    let server = Server::new();
    let session = server.session();
    for method in ["GET", "DELETE"] {
        let request =
            server.request(method, "/mcp").with("Accept", "text/event-stream").with("Mcp-Session-Id", &session);
        for request in [request.clone(), request.without("Accept").with("Last-Event-ID", "0")] {
            let reply = server.answer(&request.with("MCP-Protocol-Version", MODERN));
            assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}: {reply:?}");
        }
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE"] {
        assert_eq!(server.answer(&server.request(method, "/mcp")).status, 405, "{method}");
    }
    for (name, value) in [("Mcp-Session-Id", &*session), ("Mcp-Session-Id", "no-such-session"), ("Last-Event-ID", "0")]
    {
        let reply = server.answer(&server.call("time", json!({})).with(name, value));
        assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None), "{name} {value}: {reply:?}");
    }
    for (method, params) in [("tools/list", json!({})), ("server/discover", json!({})), ("no/such", json!({}))] {
        assert_eq!(server.answer(&server.modern(method, params)).header("mcp-session-id"), None, "{method}");
    }
    // The session of the older era has outlived all that, and ends when it is told to.
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.answer(&server.of_session(&session, &list)).status, 200);
    let end = server.request("DELETE", "/mcp").with("Mcp-Session-Id", &session).with("MCP-Protocol-Version", LEGACY);
    let reply = server.answer(&end);
    assert_eq!((reply.status, &*reply.body), (200, ""), "clients take any other status for a failure");
    assert_eq!(server.answer(&server.of_session(&session, &list)).status, 404);
}

#[test]
fn what_is_no_message_of_this_version_is_answered_and_runs_nothing() {
    let server = Server::new();
    let good = write(&server, "message");
    for (body, code) in [
        (String::new(), -32700),
        ("{".into(), -32700),
        (format!("[{}]", good.body), INVALID_REQUEST),
        (format!("{} {}", good.body, good.body), -32700),
        ("[]".into(), INVALID_REQUEST),
        ("null".into(), INVALID_REQUEST),
        (good.body.replace("\"tools/call\"", "5"), INVALID_REQUEST),
        (good.body.replace("\"method\"", "\"m\\u0065thod\":\"tools/list\",\"method\""), INVALID_REQUEST),
    ] {
        let reply = server.answer(&good.clone().saying(&body));
        assert_eq!((reply.status, reply.code()), (400, Some(code)), "{reply:?}");
    }
    let old = good.clone().saying(&good.body.replace(MODERN, LEGACY)).set("MCP-Protocol-Version", LEGACY);
    let reply = server.answer(&old);
    assert_eq!((reply.status, reply.code()), (400, Some(UNSUPPORTED_VERSION)), "{reply:?}");
    let unsaid = good.clone().saying(&good.body.replace("clientCapabilities", "other"));
    let reply = server.answer(&unsaid);
    assert_eq!((reply.status, reply.code()), (400, Some(INVALID_PARAMS)), "{reply:?}");
    assert_refused(&server, &good.clone().set("Content-Type", "text/plain"), 415, "the type of a form");
    assert_refused(&server, &good.clone().without("Accept"), 406, "it would not read the answer");
    assert_eq!(files(&server), 0);
    server.assert_healthy();
}

/// M-13
#[test]
fn the_token_is_in_no_output_environment_log_or_trail() {
    const WRONG: &str = "wrong-CANARY-0123456789abcdef0123456789";
    let program = home();
    let server = Server::start(&program, &["--http", "127.0.0.1:0"], &[("TOOLCRIB_TOKEN", GIVEN)]);
    let look = "env; export -p; tr '\\0' '\\n' </proc/self/environ; set";
    let mut answers = vec![
        server.answer(&server.call("run_shell", command(look))),
        server.answer(&server.call("read_file", json!({ "path": "/proc/self/environ" }))),
        server.answer(&server.call("read_file", json!({ "path": program.path("state/toolcrib/serve.token") }))),
        server.answer(&server.call("no_such_tool", json!({}))),
        server.answer(&server.modern("tools/list", json!({}))),
        server.answer(&server.modern("server/discover", json!({}))),
        server.answer(&server.call("time", json!({})).set("Mcp-Name", "x")),
        server.answer(&server.request("GET", "/nowhere")),
    ];
    assert!(answers[0].body.contains("PATH="), "{:?}", answers[0]);
    let wrong = server.call("time", json!({})).set("Authorization", &format!("Bearer {WRONG}"));
    answers.push(server.answer(&wrong));
    assert_eq!(answers.last().map(|answer| answer.status), Some(401));
    let has_canary = |text: &str| text.contains(CANARY);
    assert!(!answers.iter().any(|answer| has_canary(&answer.body)), "{answers:?}");
    assert!(!has_canary(&server.said()), "{}", server.said());
    let mut places = Vec::new();
    holding(program.root(), CANARY, &mut places);
    assert!(places.is_empty(), "{places:?}");
    assert!(!program.path("state/toolcrib/serve.token").exists(), "one that is given is not kept");
}

/// The files below a directory that hold a word.
fn holding(directory: &Path, word: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() && !entry.is_symlink() {
            holding(&entry, word, found);
        } else if std::fs::read(&entry)
            .is_ok_and(|bytes| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
        {
            found.push(entry.display().to_string());
        }
    }
}

/// A session keeps what its client says of itself.
#[test]
fn a_client_that_says_too_much_of_itself_is_refused() {
    let server = Server::new();
    let begin = |text: &str| {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "experimental": { "x": { "x": text } } },
            "clientInfo": { "name": "test", "version": "1" } });
        server.answer(&server.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })))
    };
    assert_eq!(begin(&"x".repeat(60 << 10)).status, 200);
    let refused = begin(&"x".repeat(64 << 10));
    assert!(refused.status == 413 && refused.body.contains("64 KiB"), "{refused:?}");
}

#[test]
fn a_body_larger_than_four_mebibytes_is_refused() {
    let server = Server::new();
    let most = 4 << 20;
    let good = server.call("write_file", json!({ "path": "large", "content": "CONTENT" }));
    let filled = |length: usize| {
        let room = length - good.body.len() + "CONTENT".len();
        good.clone().saying(&good.body.replace("CONTENT", &"x".repeat(room)))
    };
    // Not sent: the length alone is enough.
    let mut connection = server.connect();
    connection.send(&good.clone().with("Content-Length", &(most + 1).to_string()).head());
    assert_eq!(connection.reply().map(|reply| reply.status), Some(413));
    // Of this one the length is not known before.
    let mut connection = server.connect();
    connection.send(&good.clone().with("Transfer-Encoding", "chunked").head());
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let sent = (0..).take_while(|_| connection.try_send(chunk.as_bytes()).is_ok()).take(1000).count();
    assert_eq!(connection.reply().map(|reply| reply.status), Some(413));
    assert!(sent < 1000, "it was read to its end");
    assert_eq!((files(&server), trail(&server.program).len()), (0, 0));
    let reply = server.answer(&filled(most));
    assert_eq!((reply.status, files(&server)), (200, 1), "{}", reply.body);
    server.assert_healthy();
}

#[test]
fn headers_that_come_slowly_or_do_not_end_are_cut_off() {
    let server = Server::new();
    let begin = Instant::now();
    let mut silent = server.connect();
    let mut answered = server.connect();
    answered.send(&server.request("GET", "/healthz").bytes());
    assert_eq!(answered.reply().map(|reply| reply.status), Some(200));
    let mut slow = server.connect();
    slow.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ");
    // A byte now and then is no sign of life.
    while slow.try_send(b"x").is_ok() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!((slow.rest(), silent.rest(), answered.rest()), Default::default());
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    let mut endless = server.connect();
    endless.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ");
    let sent = (0..).take_while(|_| endless.try_send(&[b'x'; 4096]).is_ok()).take(10_000).count();
    assert!(sent < 10_000, "it was read to its end");
    server.assert_healthy();
}

#[test]
fn a_thousand_idle_connections_cost_little() {
    if getrlimit(Resource::Nofile).current.is_some_and(|most| most < 4096) {
        skip!("a process may open fewer than 4,096 files here");
    }
    let server = Server::new();
    server.assert_healthy();
    let before = resident_kib(server.pid());
    let list = server.modern("tools/list", json!({})).bytes();
    let idle: Vec<Connection> = (0..1000)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&list);
            assert_eq!(connection.reply().map(|reply| reply.status), Some(200));
            connection
        })
        .collect();
    let after = resident_kib(server.pid());
    println!("{before} KiB before, {after} KiB with {} idle connections", idle.len());
    assert!(after < 100 << 10, "{before} KiB before, {after} KiB now");
    server.assert_healthy();
}

/// More of them than there is room for, from the same address as the client.
#[test]
fn connections_that_show_no_token_keep_nobody_out() {
    if getrlimit(Resource::Nofile).current.is_some_and(|most| most < 8192) {
        skip!("a process may open fewer than 8,192 files here");
    }
    let server = Server::new();
    let list = server.modern("tools/list", json!({})).bytes();
    let mut known = server.connect();
    known.send(&list);
    assert_eq!(known.reply().map(|reply| reply.status), Some(200));
    let silent: Vec<Connection> = (0..1500).map(|_| server.connect()).collect();
    let begun = Instant::now();
    let mut fresh = server.connect();
    fresh.send(&list);
    assert_eq!(fresh.reply().map(|reply| reply.status), Some(200));
    // Those of before were let wait until silent ones had taken their time, 10 s.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    known.send(&list);
    assert_eq!(known.reply().map(|reply| reply.status), Some(200), "one that is known was closed");
    drop(silent);
    server.assert_healthy();
}

#[test]
fn a_signal_ends_it_soon_and_every_call_has_its_outcome() {
    let mut server = Server::new();
    let (polite, stubborn) = (unique_seconds(), unique_seconds());
    let [mut first, mut second, mut idle, mut half, mut news, mut older] = [(); 6].map(|()| server.connect());
    first.send(&server.call("run_shell", command(&format!("exec sleep {polite}"))).bytes());
    second.send(&server.call("run_shell", command(&format!("(trap '' TERM INT; exec sleep {stubborn})"))).bytes());
    idle.send(&server.request("GET", "/healthz").bytes());
    assert_eq!(idle.reply().map(|reply| reply.status), Some(200));
    half.send(b"POST /mcp HTTP/1.1\r\nHost: ");
    let listen = server.modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    news.send(&listen.bytes());
    let begun = news.begun().expect("a stream");
    assert_eq!((begun.status, begun.header("x-accel-buffering")), (200, Some("no")), "{begun:?}");
    let session = server.session();
    let stream = server.request("GET", "/mcp").with("Accept", "text/event-stream").with("Mcp-Session-Id", &session);
    older.send(&stream.with("MCP-Protocol-Version", LEGACY).bytes());
    let begun = older.begun().expect("a stream");
    assert_eq!((begun.status, begun.header("x-accel-buffering")), (200, Some("no")), "{begun:?}");
    eventually("both commands run", || !sleeping(&polite).is_empty() && !sleeping(&stubborn).is_empty());

    let begin = Instant::now();
    stop(&server);
    let status = server.ended(SOON);
    assert!(status.is_some(), "it runs on: {}", server.said());
    println!("it took {:?}", begin.elapsed());
    assert_eq!(outcomes(&server.program, "run_shell"), ["cancelled", "cancelled"]);
    assert_gone(&polite);
    assert_gone(&stubborn);
    let reply = first.reply().expect("the first call has its answer");
    assert_eq!(reply.message()["result"]["isError"], true, "{reply:?}");
    assert_eq!(open_calls(&server.program), 0);
}

#[test]
fn without_calls_a_signal_ends_it_at_once() {
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let is_at_once = || {
        let mut server = Server::new();
        let mut news = server.connect();
        news.send(&server.modern("subscriptions/listen", listen.clone()).bytes());
        assert!(news.begun().is_some());
        stop(&server);
        let begin = Instant::now();
        assert!(server.ended(SOON).is_some(), "it runs on");
        let took = begin.elapsed();
        println!("it took {took:?}");
        assert!(String::from_utf8_lossy(&news.chunk().unwrap_or_default()).contains("acknowledged"));
        took < Duration::from_millis(1500)
    };
    // A loaded machine may hold up one of them, but not each.
    assert!((0..3).any(|_| is_at_once()), "it takes its time");
}

#[test]
fn a_token_is_made_once_and_kept_for_this_user_alone() {
    let program = home();
    let file = program.path("state/toolcrib/serve.token");
    let first = Server::start(&program, &["--http", "127.0.0.1:0"], &[]);
    let made = std::fs::read_to_string(&file).expect("a token");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o7777, 0o600);
    assert!(made.trim_end().len() == 64 && made.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()), "{made}");
    assert!(first.said().contains(&file.display().to_string()) && !first.said().contains(made.trim_end()));
    let second = Server::start(&program, &["--http", "127.0.0.1:0"], &[]);
    assert_eq!(std::fs::read_to_string(&file).expect("a token"), made);
    first.assert_healthy();
    second.assert_healthy();
    let other = Server::start(&home(), &["--http", "127.0.0.1:0"], &[]);
    assert_ne!(other.token, first.token);
}

#[test]
fn a_token_comes_from_a_file_or_else_from_the_environment() {
    let program = home();
    program.write("token", "0123456789abcdef0123456789abcdef\nits purpose\n");
    let file = program.path("token");
    let shown = file.display().to_string();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("a file");
    let told = refusal(&program, &["--http", "0", "--token-file", &shown]);
    assert!(told.contains("is open to others (mode 0640)") && told.contains("chmod 600"), "{told}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("a file");
    let arguments = ["--http", "127.0.0.1:0", "--token-file", &shown];
    let mut server = Server::start(&program, &arguments, &[("TOOLCRIB_TOKEN", GIVEN)]);
    assert_eq!(server.answer(&server.call("time", json!({}))).status, 401);
    server.token = Some("0123456789abcdef0123456789abcdef".into());
    server.assert_healthy();
    assert!(!program.path("state/toolcrib/serve.token").exists());
    Server::start(&program, &["--http", "127.0.0.1:0"], &[("TOOLCRIB_TOKEN", GIVEN)]).assert_healthy();
    let told = refusal(&program, &["--http", "0", "--token-file", "no-such-file"]);
    assert!(told.contains("cannot be read"), "{told}");
    for unusable in [&GIVEN.as_bytes()[..31], b"", b"CANARY with blanks, which no header could bear", &[0xff; 40]] {
        let mut command = program.command(&["serve", "--http", "0"]);
        let output = command.env("TOOLCRIB_TOKEN", OsStr::from_bytes(unusable)).output().expect("the program starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("TOOLCRIB_TOKEN") && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_told() {
    let program = home();
    for arguments in [
        &["--http", "localhost"][..],
        &["--http", "127.0.0.1"],
        &["--http", "127.0.0.1:99999"],
        &["--http", ":8722"],
        &["--http", "http://127.0.0.1:8722"],
        &["--no-auth"],
        &["--token-file", "x"],
        &["--allow-host", "a"],
        &["--allow-origin", "https://a.example"],
        &["--http", "0", "--no-auth", "--token-file", "x"],
        &["--http", "0", "--allow-host", "https://a.example"],
        &["--http", "0", "--allow-host", "*"],
        &["--http", "0", "--allow-origin", "*"],
        &["--http", "0", "--allow-origin", "null"],
        &["--http", "0", "--allow-origin", "a.example"],
    ] {
        refusal(&program, arguments);
    }
    let server = Server::start(&program, &["--http", "127.0.0.1:0"], &[]);
    let taken = program.run(&["serve", "--http", &server.address.to_string()]);
    assert_eq!(taken.status.code(), Some(10), "{taken:?}");
}
