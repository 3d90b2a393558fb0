//! `tests/upstream/web.py`: a server of the protocol over HTTP that behaves as it is told at any time, and keeps what it receives.
#![expect(clippy::disallowed_methods, reason = "the test starts its own server")]

use crate::Running;
use crate::certificate::Authority;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A server while it runs.
pub struct Jotter {
    running: Running,
    directory: TempDir,
    /// Where it is, as its URL says.
    host: String,
    port: u64,
    options: Vec<String>,
}

impl Jotter {
    /// Starts one on a free port of loopback. What it can be told is in its file.
    #[must_use]
    pub fn start(behaviour: &str) -> Self {
        Self::launch(tempfile::tempdir().expect("a directory"), "127.0.0.1", Vec::new(), behaviour)
    }

    /// Starts one of this name, encrypted, on all addresses of this machine.
    #[must_use]
    pub fn encrypted(authority: &Authority, name: &str, behaviour: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (certificate, key) = authority.files(name);
        let files = [("certificate", certificate), ("key", key)].map(|(name, text)| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        });
        let options = ["--any".to_owned(), "--certificate".to_owned()].into_iter().chain(files).collect();
        Self::launch(directory, name, options, behaviour)
    }

    fn launch(directory: TempDir, host: &str, options: Vec<String>, behaviour: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/web.py");
        tell(directory.path(), behaviour);
        let mut command = Command::new("/usr/bin/python3");
        let mut running = Running::start(command.arg(file).arg(directory.path()).args(&options));
        let port = running.line()["port"].as_u64().expect("its port");
        Self { running, directory, host: host.to_owned(), port, options }
    }

    /// Ends it at once, as a crash does.
    pub fn stop(&mut self) {
        self.running.kill();
    }

    /// Starts it again where it was.
    #[must_use]
    pub fn again(self, behaviour: &str) -> Self {
        let Self { running, directory, host, port, mut options } = self;
        drop(running);
        if !options.contains(&"--port".to_owned()) {
            options.extend(["--port".to_owned(), port.to_string()]);
        }
        Self::launch(directory, &host, options, behaviour)
    }

    /// What it does from the next request on.
    pub fn behaves(&self, words: &str) {
        tell(self.directory.path(), words);
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.options.is_empty() || self.host == "127.0.0.1" { "http" } else { "https" };
        format!("{scheme}://{}:{}/mcp", self.host, self.port)
    }

    /// What it received so far, and who has gone who waited.
    #[must_use]
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        // It may be writing the last line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line of its log")).collect()
    }

    /// The requests so far by this method of HTTP.
    #[must_use]
    pub fn by(&self, method: &str) -> Vec<Value> {
        self.log().into_iter().filter(|line| line["method"] == method).collect()
    }

    /// The messages so far of this method of the protocol.
    #[must_use]
    pub fn messages(&self, method: &str) -> Vec<Value> {
        self.log().into_iter().filter(|line| line["body"]["method"] == method).collect()
    }

    /// The calls so far of a tool.
    #[must_use]
    pub fn calls(&self, tool: &str) -> Vec<Value> {
        self.messages("tools/call").into_iter().filter(|line| line["body"]["params"]["name"] == tool).collect()
    }

    /// The answers so far to what it asked.
    #[must_use]
    pub fn answers(&self) -> Vec<Value> {
        let bodies = self.log().into_iter().map(|line| line["body"].clone());
        bodies.filter(|body| body.get("id").is_some() && body.get("method").is_none()).collect()
    }

    /// Fails where a request was not as its era wants it.
    pub fn assert_well_asked(&self) {
        let faults: Vec<Value> = self.log().into_iter().filter(|line| line["fault"].is_string()).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// In one step, as it may be reading.
fn tell(directory: &Path, words: &str) {
    let file = directory.join("next");
    std::fs::write(&file, words).and_then(|()| std::fs::rename(&file, directory.join("behaviour"))).expect("a file");
}
