//! The roots of a client of stdio, which is asked for them before a host is made: the workspace of a host never changes.
//!
//! Leaves to the command line whether a root can be the workspace. A call is never read here, so that no model decides it.

use super::server_config;
use bytes::BytesMut;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{InitializeRequestParams, JsonRpcVersion2_0, RequestId, ServerConfig, ServerResult};
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use toolcrib::envelope::Envelope;

/// How long a client may take to name its roots.
const PATIENCE: Duration = Duration::from_secs(2);
/// The id of the request. Those of the host's requests are numbers.
const ID: &str = "roots";
/// Bytes that a client may send before it names them.
const KEPT_BYTES: usize = 1 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 8 << 10;

/// What a client answered: the URIs of its roots, or why it named none.
pub type Roots = Result<Vec<String>, &'static str>;

/// The pipes of a client, and what it said before there was a host.
pub struct Opened {
    pub(super) reader: StdioReader,
    pub(super) writer: StdioWriter,
    /// What the host reads first.
    pub(super) input: BytesMut,
    /// What the client said of itself and of its roots, if it has the answer to its `initialize`.
    pub(super) greeted: Option<Greeted>,
}

pub(super) struct Greeted {
    pub(super) client: InitializeRequestParams,
    roots: Roots,
}

impl Opened {
    /// The pipes of a client that is asked nothing.
    #[must_use]
    pub fn unasked() -> Self {
        let (reader, writer) = stdio_pipes();
        Self { reader, writer, input: BytesMut::new(), greeted: None }
    }

    /// Waits for the first message. A client that has roots is greeted and asked for them; `is_lazy` is as for [`super::Door`].
    pub fn asked(is_lazy: bool) -> BoxFuture<'static, Self> {
        async move {
            let (reader, writer) = stdio_pipes();
            let mut opening = Opening { reader, writer, input: BytesMut::new(), kept: BytesMut::new() };
            let greeted = opening.greeted(is_lazy).await;
            let Opening { reader, writer, input, mut kept } = opening;
            kept.extend_from_slice(&input);
            Self { reader, writer, input: kept, greeted }
        }
        .boxed()
    }

    /// What the client answered, if it was asked.
    #[must_use]
    pub fn roots(&self) -> Option<&Roots> {
        self.greeted.as_ref().map(|greeted| &greeted.roots)
    }
}

/// A client that may be about to name its roots.
struct Opening<R, W> {
    reader: R,
    writer: W,
    /// What was read and not looked at.
    input: BytesMut,
    /// Lines for the host, in their order.
    kept: BytesMut,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Opening<R, W> {
    /// Greets and asks a client that begins with `initialize` and has roots. Any other first line is kept for the host.
    async fn greeted(&mut self, is_lazy: bool) -> Option<Greeted> {
        let line = self.line().await?;
        let Some((greeting, client)) = greeting(&line, is_lazy) else {
            self.kept.extend_from_slice(&line);
            return None;
        };
        let answer = async {
            self.send(&greeting).await?;
            self.ask().await
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let roots = answer.ok().flatten().unwrap_or(Err("it named none within 2 seconds"));
        Some(Greeted { client, roots })
    }

    /// Asks when the client is ready; none if it has gone, or said too much before.
    async fn ask(&mut self) -> Option<Roots> {
        let (_, line) = self.until(|said| said.method.as_deref() == Some("notifications/initialized")).await?;
        self.kept.extend_from_slice(&line);
        self.send(&json!({ "jsonrpc": "2.0", "id": ID, "method": "roots/list" })).await?;
        let id = RequestId::String(ID.into());
        let (answer, _) = self.until(|said| said.method.is_none() && said.id.as_ref() == Some(&id)).await?;
        let listed = serde_json::from_value::<Listed>(answer.result);
        Some(listed.map(Listed::uris).map_err(|_| "it answered with an error"))
    }

    /// The next message of a kind, with its line. What comes before is kept for the host.
    async fn until(&mut self, is_it: impl Fn(&Said) -> bool) -> Option<(Said, BytesMut)> {
        loop {
            let line = self.line().await?;
            match serde_json::from_slice::<Said>(&line) {
                Ok(said) if is_it(&said) => return Some((said, line)),
                Ok(_) | Err(_) => self.kept.extend_from_slice(&line),
            }
        }
    }

    /// The next line; none at the end, or if too much was said. Loses nothing when it is dropped.
    async fn line(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.input) {
                return Some(self.input.split_to(end + 1));
            }
            if self.input.len() + self.kept.len() > KEPT_BYTES {
                return None;
            }
            self.input.reserve(READ_BYTES);
            self.reader.read_buf(&mut self.input).await.ok().filter(|bytes| *bytes > 0)?;
        }
    }

    async fn send(&mut self, message: &impl Serialize) -> Option<()> {
        let mut line = serde_json::to_vec(message).ok()?;
        line.push(b'\n');
        self.writer.write_all(&line).await.ok()?;
        self.writer.flush().await.ok()
    }
}

/// The answer to the first message of a client that has roots, and what the client said of itself with the version that both speak.
fn greeting(line: &[u8], is_lazy: bool) -> Option<(TxJsonRpcMessage<RoleServer>, InitializeRequestParams)> {
    let Said { id, method, params, .. } = serde_json::from_slice(line).ok()?;
    let (id, "initialize") = (id?, method.as_deref()?) else { return None };
    let mut client: InitializeRequestParams = serde_json::from_value(params).ok()?;
    client.capabilities.roots.as_ref()?;
    let answer = Greeter { is_lazy }.negotiate_initialize(&client).ok()?;
    client.protocol_version = answer.protocol_version.clone();
    Some((TxJsonRpcMessage::<RoleServer>::response(ServerResult::InitializeResult(answer), id), client))
}

/// A server before its host is made.
struct Greeter {
    is_lazy: bool,
}

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        // Whether there are prompts is known later: a list of them may be empty.
        server_config(true, self.is_lazy)
    }
}

/// A message, as far as it matters here.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
}

/// The result of `roots/list`.
#[derive(Deserialize)]
struct Listed {
    roots: Vec<Root>,
}

#[derive(Deserialize)]
struct Root {
    uri: String,
}

impl Listed {
    fn uris(self) -> Vec<String> {
        self.roots.into_iter().map(|root| root.uri).collect()
    }
}

/// Notices about the roots of a client, for the next result.
#[derive(Default)]
pub(super) struct ToTell(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Vec<String>,
    /// A change of the roots is still news: they were asked for, and have not changed.
    is_news: bool,
}

impl ToTell {
    /// Keeps notices about roots that were asked for.
    pub(super) fn asked(&self, notices: Vec<String>) {
        *self.0.lock() = State { waiting: notices, is_news: true };
    }

    /// Returns the notice of a change, once, and keeps it for the next result.
    pub(super) fn changed(&self) -> Option<String> {
        let mut state = self.0.lock();
        std::mem::take(&mut state.is_news).then(|| {
            let notice = "the client's roots have changed; the workspace stays: restart this server to change it";
            state.waiting.push(notice.to_owned());
            notice.to_owned()
        })
    }

    /// The outcome of a call, with what waits.
    pub(super) fn told(&self, mut envelope: Envelope) -> Envelope {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        match &mut envelope.outcome {
            Ok(output) => output.notices.extend(waiting),
            Err(failure) => waiting.iter().for_each(|notice| failure.message += &format!("; {notice}")),
        }
        envelope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"a","version":"1"}}}"#;
    const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

    /// What comes of a client that says these lines; and what is left for the host, and what was written to the client.
    async fn opened(lines: &[&str]) -> (Option<Greeted>, String, Vec<Value>) {
        let ((mut client, reader), (writer, heard)) = (tokio::io::duplex(4096), tokio::io::duplex(4096));
        let mut opening = Opening { reader, writer, input: BytesMut::new(), kept: BytesMut::new() };
        for line in lines {
            client.write_all(format!("{line}\n").as_bytes()).await.expect("it is read");
        }
        drop(client);
        let greeted = opening.greeted(false).await;
        let left = [&opening.kept[..], &opening.input[..]].concat();
        drop(opening);
        (greeted, String::from_utf8(left).expect("text"), messages(heard).await)
    }

    async fn messages(heard: DuplexStream) -> Vec<Value> {
        let (mut lines, mut messages) = (BufReader::new(heard).lines(), Vec::new());
        while let Some(line) = lines.next_line().await.expect("text") {
            messages.push(serde_json::from_str(&line).expect("a message"));
        }
        messages
    }

    #[tokio::test]
    async fn a_client_is_greeted_then_asked_and_its_requests_are_kept() {
        let named =
            r#"{"jsonrpc":"2.0","id":"roots","result":{"roots":[{"uri":"file:///a","name":"a"},{"uri":"file:///b"}]}}"#;
        let (greeted, left, heard) = opened(&[HELLO, READY, LIST, named, LIST]).await;
        let greeted = greeted.expect("it was asked");
        assert_eq!(greeted.roots, Ok(vec!["file:///a".to_owned(), "file:///b".to_owned()]));
        assert_eq!(greeted.client.protocol_version.as_str(), "2025-06-18");
        assert_eq!(left, format!("{READY}\n{LIST}\n{LIST}\n"));
        assert_eq!(heard[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!((heard.len(), &heard[1]["method"]), (2, &json!("roots/list")));
    }

    #[tokio::test]
    async fn an_answer_may_be_an_error_or_fail_to_come() {
        let error = r#"{"jsonrpc":"2.0","id":"roots","error":{"code":-32603,"message":"none"}}"#;
        let (greeted, left, _) = opened(&[HELLO, READY, error]).await;
        assert_eq!(greeted.expect("it was asked").roots, Err("it answered with an error"));
        assert_eq!(left, format!("{READY}\n"));
        let (greeted, left, heard) = opened(&[HELLO, LIST]).await;
        assert!(greeted.expect("it was greeted").roots.is_err());
        assert_eq!((left, heard.len()), (format!("{LIST}\n"), 1));
    }

    #[tokio::test]
    async fn other_clients_are_left_to_the_host() {
        let plain = HELLO.replace(r#""roots":{}"#, "");
        for first in [plain.as_str(), LIST, "x", ""] {
            let (greeted, left, heard) = opened(&[first, READY]).await;
            assert!(greeted.is_none() && heard.is_empty(), "{first}");
            assert_eq!(left, format!("{first}\n{READY}\n"));
        }
    }

    #[test]
    fn a_change_is_news_once_and_only_where_roots_were_asked_for() {
        let roots = ToTell::default();
        assert_eq!(roots.changed(), None);
        roots.asked(vec!["one".to_owned()]);
        assert!(roots.changed().is_some() && roots.changed().is_none());
        assert_eq!(roots.0.lock().waiting.len(), 2);
    }
}
