//! What these tests put round a call: people who answer late or never, backends that hang, processes to look for.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::backend::{Backend, Before, Entry, Facts, FileText, Input, Listing, Process, ProcessEvent, ProcessSpec};
use toolcrib::backend::{Place, ReadPath, Replaced, Resolved, Wanted, WritePath};
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources};
use toolcrib::envelope::{Envelope, Failure};
use toolcrib::event::Event;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib::sandbox::Compiler;
use toolcrib::tools::source::Builtin;
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::{Program, TestHost};

/// A host with room for few calls. Each host reserves address space for all that it may run, and tests make many.
pub(crate) fn small_host() -> TestHost {
    TestHost::new().set("limits.concurrent_calls=16")
}

/// The same, and nothing is compiled yet.
pub(crate) fn cold_host() -> TestHost {
    TestHost::cold().set("limits.concurrent_calls=16")
}

/// Sends a call under a context of its own.
pub(crate) async fn send(host: &TestHost, context: &CallContext, tool: &str, arguments: Value) -> Envelope {
    host.parts().0.call(Request { tool: tool.into(), arguments: Arguments::Json(arguments) }, context).await
}

/// Begins a call that the test goes on beside.
pub(crate) fn begin(host: &Arc<TestHost>, context: &CallContext, tool: &str, arguments: Value) -> JoinHandle<Envelope> {
    let (host, context, tool) = (host.clone(), context.clone(), tool.to_owned());
    tokio::spawn(async move { send(&host, &context, &tool, arguments).await })
}

/// The host's own context, to be changed.
pub(crate) fn context(host: &TestHost) -> CallContext {
    host.parts().1.clone()
}

/// A host in the directories of another, with its notices.
pub(crate) fn made(settings: &Settings, of: &TestHost) -> (Host, Vec<String>) {
    let made = Host::new(settings, &of.dirs(), &[], Compiler::Child(Program::file()));
    made.map_err(|failure| failure.message).expect("settings that can be used")
}

/// A second host in the directories of the first, as a program that is started again.
pub(crate) fn started_again(first: &TestHost, set: &[&str]) -> (Host, CallContext) {
    started_with(BUILTINS, first, set)
}

/// The same with other built-in plugins.
pub(crate) fn started_with(builtins: &'static [Builtin], first: &TestHost, set: &[&str]) -> (Host, CallContext) {
    let set = set.iter().map(ToString::to_string).collect();
    let settings = Settings::load(&Sources { home: first.home(), set, ..Sources::default() }).expect("settings");
    let (host, _) = made(&settings, first);
    let tools = Arc::new(host.plugin_source(builtins, Vec::new()).load());
    (host, context(first).tools(tools).session(Arc::default()))
}

/// The failure of an envelope that has to be one.
pub(crate) fn failure(envelope: Envelope) -> Failure {
    envelope.outcome.map(|output| output.result.to_string()).expect_err("a failure")
}

/// The outcome of every call in the audit trail, in order; each call has one accepted line, then one outcome line.
pub(crate) fn outcomes(audit: &[Value]) -> Vec<&str> {
    let mut accepted: HashMap<&str, usize> = HashMap::new();
    let mut outcomes = Vec::new();
    for line in audit {
        let call = line["call"].as_str().expect("a line names its call");
        match line["event"].as_str().expect("a line says what it is") {
            "accepted" => assert_eq!(accepted.insert(call, 0), None, "`{call}` was accepted twice"),
            "outcome" => {
                *accepted.get_mut(call).expect("accepted before its outcome") += 1;
                outcomes.push(line["outcome"].as_str().expect("a word"));
            }
            other => panic!("`{other}` is no event of the trail"),
        }
    }
    assert!(accepted.values().all(|outcomes| *outcomes == 1), "one outcome a call: {accepted:?}");
    outcomes
}

/// How often the watcher was told that a call has its outcome, and which.
pub(crate) fn completed(events: &[Event]) -> Vec<&str> {
    let outcome = |event: &Event| if let Event::Completed { outcome } = event { Some(*outcome) } else { None };
    events.iter().filter_map(outcome).collect()
}

/// A script that starts what is hard to end, writes every process into `pids`, then `ready`, and never exits.
pub(crate) const HARD_TO_END: &str = "
    sleep 1000 & echo $! >> pids
    setsid sleep 1000 & echo $! >> pids
    (trap '' TERM; exec sleep 1000) & echo $! >> pids
    sh -c 'sleep 1000 & echo $! >> pids'
    echo $$ >> pids
    echo begun
    touch ready
    wait";

/// The processes that [`HARD_TO_END`] started.
pub(crate) fn pids(host: &TestHost) -> Vec<String> {
    let text = std::fs::read_to_string(host.work().join("pids")).expect("the script wrote its processes");
    text.lines().map(str::to_owned).collect()
}

/// A person who never answers.
#[derive(Default)]
pub(crate) struct Silent {
    pub(crate) asked: AtomicUsize,
    pub(crate) withdrawn: Arc<AtomicUsize>,
}

/// Counts a question that is dropped before its answer.
struct Withdrawn(Arc<AtomicUsize>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Approver for Silent {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        let _withdrawn = Withdrawn(self.withdrawn.clone());
        self.asked.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }

    fn name(&self) -> &'static str {
        "a silent person"
    }
}

/// A person who thinks for this long, then says yes.
pub(crate) struct Thoughtful(pub(crate) Duration);

#[async_trait]
impl Approver for Thoughtful {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        tokio::time::sleep(self.0).await;
        Answer::Yes
    }

    fn name(&self) -> &'static str {
        "a thoughtful person"
    }
}

/// This machine under another name; with `hangs` no path is ever found on it, and no process ends.
pub(crate) struct Elsewhere {
    pub(crate) local: Local,
    pub(crate) hangs: bool,
    pub(crate) reached: AtomicUsize,
}

impl Elsewhere {
    pub(crate) fn new(host: &TestHost, hangs: bool) -> Arc<Self> {
        Arc::new(Self { local: host.local(), hangs, reached: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Backend for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    async fn start(&self, process: ProcessSpec) -> Result<Box<dyn Process>, Failure> {
        self.reached.fetch_add(1, Ordering::SeqCst);
        if self.hangs { Ok(Box::new(Hanging)) } else { self.local.start(process).await }
    }

    async fn open(&self, process: ProcessSpec) -> Result<(Box<dyn Process>, Input), Failure> {
        self.local.open(process).await
    }

    async fn facts(&self) -> Result<Arc<Facts>, Failure> {
        self.local.facts().await
    }

    async fn resolve(&self, path: &str, roots: &[PathBuf]) -> Result<Resolved, Failure> {
        self.reached.fetch_add(1, Ordering::SeqCst);
        if self.hangs { std::future::pending().await } else { self.local.resolve(path, roots).await }
    }

    async fn read(&self, path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure> {
        self.local.read(path, offset, max_bytes).await
    }

    async fn list(&self, path: &ReadPath, max: usize) -> Result<Listing, Failure> {
        self.local.list(path, max).await
    }

    async fn stat(&self, path: &Place) -> Result<Entry, Failure> {
        self.local.stat(path).await
    }

    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure> {
        self.local.make_directory(path).await
    }

    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
        self.local.look(path, max_bytes).await
    }

    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<Replaced, Failure> {
        self.local.write(path, content).await
    }
}

/// A process that nothing is heard of, not even when it is ended.
struct Hanging;

#[async_trait]
impl Process for Hanging {
    async fn next(&mut self) -> std::io::Result<ProcessEvent> {
        std::future::pending().await
    }

    async fn end(&mut self) -> Option<usize> {
        std::future::pending().await
    }

    async fn left_running(&mut self) -> Vec<u32> {
        Vec::new()
    }
}
