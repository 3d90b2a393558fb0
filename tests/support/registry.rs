//! A registry of artifacts on a loopback port: the one that Debian packages, and pages of a test's own that answer as one.
#![expect(clippy::disallowed_methods, reason = "a test starts the registry, and is a client of it")]

use crate::wait::eventually;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use toolcrib::tools::fetch::Digest;

/// Types, as `wkg oci push` writes them.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// An index of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The config of a component.
pub const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// A component.
pub const LAYER: &str = "application/wasm";

/// `docker-registry`, which ends with it.
pub struct Registry {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Registry {
    /// Starts one; none where it is not installed. `tests/run` says where it is.
    #[must_use]
    pub fn start() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let named = std::env::var_os("TOOLCRIB_REGISTRY").map(PathBuf::from);
        let mut found = std::env::split_paths(&path).map(|directory| directory.join("docker-registry"));
        let file = named.or_else(|| found.find(|file| file.is_file()))?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Given back at once: the registry does not say which port it got.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let config = json!({
            "version": "0.1",
            "log": { "level": "error" },
            "storage": { "filesystem": { "rootdirectory": directory.path().join("storage") } },
            "http": { "addr": address.to_string() },
        });
        // JSON is YAML.
        let written = directory.path().join("config.yml");
        std::fs::write(&written, config.to_string()).expect("a file");
        let mut command = Command::new(file);
        command.arg("serve").arg(written).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the registry starts");
        let registry = Self { child, address, _directory: directory };
        eventually("the registry listens", || TcpStream::connect(address).is_ok());
        Some(registry)
    }

    /// A reference to what is in it.
    #[must_use]
    pub fn reference(&self, artifact: &str) -> String {
        format!("oci://{}/{artifact}", self.address)
    }

    /// Puts a blob into a repository.
    pub fn blob(&self, repository: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        let begun = send(self.address, "POST", &format!("/v2/{repository}/blobs/uploads/"), "", b"");
        assert_eq!(begun.status, 202, "{begun:?}");
        let place = begun.header("location").expect("where to put it");
        let path = place.split_once("//").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or(place);
        let done = send(self.address, "PUT", &format!("{path}&digest={digest}"), "application/octet-stream", bytes);
        assert_eq!(done.status, 201, "{done:?}");
        digest
    }

    /// Puts a manifest or index into a repository, under a tag.
    pub fn document(&self, repository: &str, tag: &str, document: &Value) -> Digest {
        let media_type = document["mediaType"].as_str().expect("a type").to_owned();
        let bytes = document.to_string();
        let path = format!("/v2/{repository}/manifests/{tag}");
        let done = send(self.address, "PUT", &path, &media_type, bytes.as_bytes());
        assert_eq!(done.status, 201, "{done:?}");
        Digest::of(bytes.as_bytes())
    }

    /// Pushes a component as `wkg oci push` does, with these types; returns the digest of its manifest.
    pub fn push(&self, repository: &str, tag: &str, [config, layer]: [&str; 2], component: &[u8]) -> Digest {
        self.blob(repository, CONFIG_BYTES);
        self.blob(repository, component);
        self.document(repository, tag, &manifest([config, layer], component))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CONFIG_BYTES: &[u8] = br#"{"architecture":"wasm","os":"wasip2"}"#;

/// The manifest of a component, with these types of config and layer.
#[must_use]
pub fn manifest([config, layer]: [&str; 2], component: &[u8]) -> Value {
    let descriptor = |media_type: &str, bytes: &[u8]| json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() });
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(config, CONFIG_BYTES),
        "layers": [descriptor(layer, component)],
    })
}

/// A request that came, or an answer that goes back.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The server that was asked.
    pub to: Option<SocketAddr>,
    /// The path with its query.
    pub path: String,
    /// The status of an answer.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: Vec<u8>,
}

impl Message {
    /// An answer.
    #[must_use]
    pub fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { status, headers: headers.collect(), body: body.to_vec(), ..Self::default() }
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Reads one; its first line goes to `first`.
    fn read(connection: &mut impl BufRead, first: &mut String) -> std::io::Result<Self> {
        connection.read_line(first)?;
        let mut message = Self::default();
        loop {
            let mut line = String::new();
            connection.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            message.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = message.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        message.body.resize(length, 0);
        connection.read_exact(&mut message.body)?;
        Ok(message)
    }
}

/// Sends a request on a connection of its own.
fn send(to: SocketAddr, method: &str, path: &str, content_type: &str, body: &[u8]) -> Message {
    let mut stream = TcpStream::connect(to).expect("it listens");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("it reads");
    let mut first = String::new();
    let answer = Message::read(&mut BufReader::new(stream), &mut first).expect("an answer");
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Message { status, ..answer }
}

/// A web server on 127.0.0.1 and one on 127.0.0.2, two hosts of one port: a test says what they answer, and what they were asked is kept.
pub struct Pages {
    /// Where the first one is.
    pub first: SocketAddr,
    /// Where the other one is.
    pub other: SocketAddr,
    asked: Arc<Mutex<Vec<Message>>>,
}

impl Pages {
    /// Serves until the test ends. `answer` is also told where the two are.
    pub fn serve(answer: impl Fn(&Message, [SocketAddr; 2]) -> Message + Send + Sync + 'static) -> Self {
        let (answer, asked) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let first = TcpListener::bind("127.0.0.1:0").expect("a port");
        let other = TcpListener::bind("127.0.0.2:0").expect("a port of another address");
        let addresses = [&first, &other].map(|listener| listener.local_addr().expect("an address"));
        for listener in [first, other] {
            let (answer, asked) = (answer.clone(), asked.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let _ = serve_one(&stream, &asked, |asked| answer(asked, addresses));
                }
            });
        }
        Self { first: addresses[0], other: addresses[1], asked }
    }

    /// What was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Message> {
        self.asked.lock().expect("no server has failed").clone()
    }
}

/// Answers one request.
fn serve_one(
    stream: &TcpStream,
    asked: &Mutex<Vec<Message>>,
    answer: impl Fn(&Message) -> Message,
) -> std::io::Result<()> {
    let mut first = String::new();
    let request = Message::read(&mut BufReader::new(stream), &mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let request = Message { to: Some(stream.local_addr()?), path, ..request };
    let Message { status, headers, body, .. } = answer(&request);
    asked.lock().expect("no server has failed").push(request);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} x\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut writer = stream;
    writer.write_all(&[head.as_bytes(), &body].concat())
}
