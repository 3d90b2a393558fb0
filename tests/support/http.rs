//! HTTP by hand: bytes over a socket to a server that a test has started. Nothing is sent that the test has not written.
#![expect(clippy::disallowed_methods, reason = "this is the other end of the connection")]

use crate::canary;
use crate::mcp::META;
use crate::{PATIENCE, Program, Running, eventually};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The version whose requests speak for themselves.
pub const MODERN: &str = "2026-07-28";
/// The last version that begins with `initialize`.
pub const LEGACY: &str = "2025-11-25";

/// A home in which the built-in tools are compiled already.
#[must_use]
pub fn home() -> Arc<Program> {
    Arc::new(Program::new())
}

/// `toolcrib serve --http`, and what it needs to be spoken to.
pub struct Server {
    running: Running,
    /// Where it listens.
    pub address: SocketAddr,
    /// The token that it made itself, or that its environment has.
    pub token: Option<String>,
    /// Its directories.
    pub program: Arc<Program>,
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Starts one on a free port of loopback; its commands run without a question.
    pub fn new() -> Self {
        Self::start(&home(), &["--http", "127.0.0.1:0"], &[])
    }

    /// Starts one whose commands wait for a yes.
    pub fn asking() -> Self {
        Self::launch(&home(), &["serve", "--http", "127.0.0.1:0"], &[])
    }

    /// Starts one with these arguments of `serve`, and these variables in its environment.
    pub fn start(program: &Arc<Program>, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_with(program, &[], arguments, environment)
    }

    /// The same with arguments before `serve`.
    pub fn start_with(
        program: &Arc<Program>,
        before: &[&str],
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let arguments = [before, &["--set", "tools.shell_confirm=false", "serve"], arguments].concat();
        Self::launch(program, &arguments, environment)
    }

    fn launch(program: &Arc<Program>, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = program.command(arguments);
        let running = Running::start(command.envs(environment.iter().copied()));
        let listening =
            || Some(running.said().split_once("listening on http://")?.1.split_once("/mcp\n")?.0.parse().ok());
        eventually("it listens", || listening().is_some());
        let address = listening().flatten().unwrap_or_else(|| panic!("where does it listen? {}", running.said()));
        let variable = environment.iter().find(|(name, _)| *name == "TOOLCRIB_TOKEN").map(|(_, token)| (*token).into());
        let kept = || std::fs::read_to_string(program.path("state/toolcrib/serve.token")).ok();
        let token = variable.or_else(kept).map(|token: String| token.trim_end().to_owned());
        Self { running, address, token, program: program.clone() }
    }

    /// Opens a connection.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// Sends a request on a connection of its own, and waits for the answer.
    pub fn answer(&self, request: &Request) -> Reply {
        let mut connection = self.connect();
        connection.send(&request.bytes());
        connection.reply().unwrap_or_else(|| panic!("no answer to {request:?}: {}", self.said()))
    }

    /// A request with what every client sends.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let request = Request { line: format!("{method} {path} HTTP/1.1"), headers: Vec::new(), body: String::new() };
        let request = request.with("Host", &format!("localhost:{}", self.address.port()));
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        bearer.map_or(request.clone(), |bearer| request.with("Authorization", &bearer))
    }

    /// A message, with the headers of every message.
    pub fn post(&self, body: &Value) -> Request {
        let request = self.request("POST", "/mcp").with("Content-Type", "application/json");
        let request = request.with("Accept", "application/json, text/event-stream");
        Request { body: body.to_string(), ..request }
    }

    /// A request of the newer era, with the headers that belong to it.
    pub fn modern(&self, method: &str, mut params: Value) -> Request {
        params["_meta"] = meta(MODERN);
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self.post(&body).with("MCP-Protocol-Version", MODERN).with("Mcp-Method", method);
        name.map_or(request.clone(), |name| request.with("Mcp-Name", &name))
    }

    /// A call of the newer era.
    pub fn call(&self, tool: &str, arguments: Value) -> Request {
        self.modern("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Begins a session of the older era; returns its id.
    pub fn session(&self) -> String {
        self.session_of(&json!({}))
    }

    /// The same for a client with these capabilities.
    pub fn session_of(&self, capabilities: &Value) -> String {
        let client = json!({ "name": "client", "version": "1" });
        let params = json!({ "protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let reply = self.answer(&self.post(&hello));
        assert_eq!(reply.message()["result"]["protocolVersion"], LEGACY, "{reply:?}");
        let session = reply.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {reply:?}")).to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.answer(&self.of_session(&session, &ready)).status, 202);
        session
    }

    /// A message within a session.
    pub fn of_session(&self, session: &str, body: &Value) -> Request {
        self.post(body).with("Mcp-Session-Id", session).with("MCP-Protocol-Version", LEGACY)
    }

    /// Fails when it does not answer a good request.
    pub fn assert_healthy(&self) {
        let reply = self.answer(&self.call("time", json!({})));
        assert_eq!((reply.status, &reply.message()["result"]["isError"]), (200, &json!(false)), "{reply:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.kill();
    }
}

/// What a request of the newer era says of its client.
pub fn meta(version: &str) -> Value {
    json!({ format!("{META}protocolVersion"): version, format!("{META}clientCapabilities"): {} })
}

/// A request, header by header.
#[derive(Clone, Debug)]
pub struct Request {
    line: String,
    headers: Vec<(String, String)>,
    /// What follows the headers.
    pub body: String,
}

impl Request {
    /// The same for another path.
    pub fn to(mut self, path: &str) -> Self {
        let method = self.line.split(' ').next().expect("a method");
        self.line = format!("{method} {path} HTTP/1.1");
        self
    }

    /// The same with another body.
    pub fn saying(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// The same message under another id.
    pub fn numbered(self, id: usize) -> Self {
        let mut message: Value = serde_json::from_str(&self.body).expect("a message");
        message["id"] = id.into();
        self.saying(&message.to_string())
    }

    /// Adds a header, also when there is one of this name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same without the headers of a name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a header in the place of those of its name.
    pub fn set(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The request with its length.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.body.len();
        let mut bytes = self.clone().with("Content-Length", &length.to_string()).head();
        bytes.extend_from_slice(self.body.as_bytes());
        bytes
    }

    /// The request without its body, of whose length nothing is said.
    pub fn head(&self) -> Vec<u8> {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{}\r\n{}\r\n", self.line, headers.collect::<String>()).into_bytes()
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// What follows the headers.
    pub body: String,
}

impl Reply {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The headers whose names begin so, by their names.
    pub fn headers(&self, beginning: &str) -> Vec<(&str, &str)> {
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut headers: Vec<_> = headers.filter(|(name, _)| name.starts_with(beginning)).collect();
        headers.sort_unstable();
        headers
    }

    /// The messages in the body: the body, or those of its events.
    pub fn messages(&self) -> Vec<Value> {
        let is_stream = self.header("content-type") == Some("text/event-stream");
        let texts: Vec<&str> = if is_stream { data(&self.body).collect() } else { vec![self.body.as_str()] };
        let parse = |text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        texts.into_iter().map(parse).collect()
    }

    /// The message in the body, of several the last.
    pub fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message: {self:?}"))
    }

    /// The code of the error in the body, if there is one.
    pub fn code(&self) -> Option<i64> {
        serde_json::from_str::<Value>(&self.body).ok()?["error"]["code"].as_i64()
    }
}

/// What the events of a stream say. Those that say nothing keep it open, or are for clients that resume it.
fn data(stream: &str) -> impl Iterator<Item = &str> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(str::trim).filter(|data| !data.is_empty())
}

/// A connection, on which a server may answer, or hang up.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Opens one.
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Self(BufReader::new(stream))
    }

    /// Sends bytes. A server that has hung up is seen by what it answers.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.try_send(bytes);
    }

    /// The same, and whether they could be sent.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// The next answer; none when the server has hung up.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut reply = self.begun()?;
        let length = reply.header("content-length").map(|length| length.parse().expect("a length"));
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                self.0.read_exact(&mut body).expect("a whole body");
            }
            None if reply.header("transfer-encoding") == Some("chunked") => {
                while let Some(chunk) = self.chunk() {
                    body.extend(chunk);
                }
            }
            None => {}
        }
        canary::check("an answer", &body);
        reply.body = String::from_utf8(body).expect("text");
        Some(reply)
    }

    /// The head of the next answer.
    pub fn begun(&mut self) -> Option<Reply> {
        let status = self.line()?.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line()?.split_once(": ") {
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        Some(Reply { status, headers, body: String::new() })
    }

    /// The next part of a stream; none at its end, or when the server has hung up.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line()?, 16).expect("a length");
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).ok()?;
        chunk.truncate(length);
        canary::check("a part of an answer", &chunk);
        (length > 0).then_some(chunk)
    }

    /// The next message of a stream, of whose events each is a part of its own; none at its end.
    pub fn event(&mut self) -> Option<Value> {
        loop {
            let event = String::from_utf8(self.chunk()?).expect("text");
            if let Some(data) = data(&event).next() {
                return Some(serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {event}")));
            }
        }
    }

    /// Waits until the server hangs up; returns what it has said before.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        canary::check("the rest of an answer", &rest);
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// A line without its end; none when the server has hung up.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => {
                canary::check("the head of an answer", &line);
                Some(line.trim_end_matches("\r\n").to_owned())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("no answer within {PATIENCE:?}"),
            Err(_) => None,
        }
    }
}
