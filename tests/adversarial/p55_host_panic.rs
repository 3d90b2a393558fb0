//! P-55: a call that makes the host itself panic: in a person's answer, in the backend, in whoever watches.
//! Outcome: that call alone fails as `internal`, with its one line in the audit trail; the next works.
//! Switched off: without `catch_unwind` (`bounded` in `call/accepted.rs`) no envelope came and the tests of the backend and of watchers failed; without the one in `close` that of the last event.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use toolcrib::backend::local::Local;
use toolcrib::backend::{Backend, Before, Entry, Facts, FileText, Input, Listing, Process, ProcessEvent, ProcessSpec};
use toolcrib::backend::{Place, ReadPath, Replaced, Resolved, Wanted, WritePath};
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::event::{Event, EventSink};
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

struct Panicking;

#[async_trait]
impl Approver for Panicking {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        panic!("the approver")
    }

    fn name(&self) -> &'static str {
        "a fault"
    }
}

/// Where this backend panics; elsewhere it is this machine.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Next,
    Resolve,
    Read,
    Look,
    Write,
}

struct Faulty(At, Local);

impl Faulty {
    fn reach(&self, at: At) {
        assert!(self.0 != at, "the backend");
    }
}

#[async_trait]
impl Backend for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    async fn start(&self, process: ProcessSpec) -> Result<Box<dyn Process>, Failure> {
        self.reach(At::Start);
        if self.0 == At::Next { Ok(Box::new(Panicking)) } else { self.1.start(process).await }
    }

    async fn open(&self, process: ProcessSpec) -> Result<(Box<dyn Process>, Input), Failure> {
        self.1.open(process).await
    }

    async fn facts(&self) -> Result<Arc<Facts>, Failure> {
        self.1.facts().await
    }

    async fn resolve(&self, path: &str, roots: &[PathBuf]) -> Result<Resolved, Failure> {
        self.reach(At::Resolve);
        self.1.resolve(path, roots).await
    }

    async fn read(&self, path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure> {
        self.reach(At::Read);
        self.1.read(path, offset, max_bytes).await
    }

    async fn list(&self, path: &ReadPath, max: usize) -> Result<Listing, Failure> {
        self.1.list(path, max).await
    }

    async fn stat(&self, path: &Place) -> Result<Entry, Failure> {
        self.1.stat(path).await
    }

    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure> {
        self.1.make_directory(path).await
    }

    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
        self.reach(At::Look);
        self.1.look(path, max_bytes).await
    }

    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<Replaced, Failure> {
        self.reach(At::Write);
        self.1.write(path, content).await
    }
}

#[async_trait]
impl Process for Panicking {
    async fn next(&mut self) -> std::io::Result<ProcessEvent> {
        panic!("the process")
    }

    async fn end(&mut self) -> Option<usize> {
        Some(0)
    }

    async fn left_running(&mut self) -> Vec<u32> {
        Vec::new()
    }
}

/// Panics at events of one sort.
struct Watcher(fn(&Event) -> bool);

impl EventSink for Watcher {
    fn emit(&self, event: Event) {
        assert!(!self.0(&event), "the watcher");
    }
}

fn host() -> TestHost {
    TestHost::new()
        .set("limits.concurrent_calls=16")
        .set("tools.shell_confirm=true")
        .set("tools.files_confirm=outside")
        .plugin("hostile")
}

/// Makes the call in a task of its own, as the doors do: a panic that leaves the call ends the task.
async fn call(host: &Arc<TestHost>, context: CallContext, tool: &str, arguments: Value) -> Option<Envelope> {
    let (host, tool) = (host.clone(), tool.to_owned());
    let task =
        async move { host.parts().0.call(Request { tool, arguments: Arguments::Json(arguments) }, &context).await };
    tokio::spawn(task).await.ok()
}

/// Twice the call that makes the host panic; then all is well.
async fn only_that_call_fails(change: impl Fn(&mut CallContext, &TestHost), tool: &str, arguments: Value) {
    let host = Arc::new(host());
    std::fs::write(host.work().join("a.txt"), "well").expect("a file");
    let mut context = host.parts().1.clone();
    change(&mut context, &host);
    for _ in 0..2 {
        let envelope =
            call(&host, context.clone(), tool, arguments.clone()).await.expect("the panic stays in the call");
        let failure = envelope.outcome.expect_err("the call fails");
        assert_eq!(failure.kind, Kind::Internal, "{}", failure.message);
        assert!(failure.message.starts_with("internal error in the host: the "), "{}", failure.message);
    }
    assert_eq!(host.result("time", json!({})).await["source"], "harness");
    assert_eq!(host.result("read_file", json!({ "path": "a.txt" })).await, "well");
    let (accepted, outcomes): (Vec<Value>, Vec<Value>) =
        host.audit().into_iter().partition(|line| line["event"] == "accepted");
    let ids =
        |lines: &[Value]| lines.iter().map(|line| line["call"].to_string()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((accepted.len(), outcomes.len()), (4, 4), "one outcome each");
    assert_eq!(ids(&accepted), ids(&outcomes));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_approver_fails_that_call_alone() {
    only_that_call_fails(|context, _| context.approver = Arc::new(Panicking), "run_shell", harmless("echo a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_backend_fails_that_call_alone() {
    let write = json!({ "path": "a.txt", "content": "well" });
    let cases = [
        (At::Start, "run_shell", harmless("echo a")),
        (At::Next, "run_shell", harmless("echo a")),
        (At::Resolve, "read_file", json!({ "path": "a.txt" })),
        (At::Read, "read_file", json!({ "path": "a.txt" })),
        (At::Look, "write_file", json!({ "path": "~/a.txt", "content": "well" })),
        (At::Write, "write_file", write),
    ];
    for (at, tool, arguments) in cases {
        let change = |context: &mut CallContext, host: &TestHost| {
            context.backend = Arc::new(Faulty(at, host.local()));
            context.approver = Arc::new(Yes);
        };
        only_that_call_fails(change, tool, arguments).await;
    }
}

struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        Answer::Yes
    }

    fn name(&self) -> &'static str {
        "the test"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_whoever_watches_fails_that_call_alone() {
    type At = fn(&Event) -> bool;
    let cases: [(At, &str, Value); 3] = [
        (|event| matches!(event, Event::Started { .. }), "run_shell", harmless("echo a")),
        (|event| matches!(event, Event::Stdout { .. }), "run_shell", harmless("echo a")),
        (|event| matches!(event, Event::Log { .. }), "hostile", json!({ "how": "print", "text": "a" })),
    ];
    for (at, tool, arguments) in cases {
        let change = |context: &mut CallContext, _: &TestHost| {
            context.events = Arc::new(Watcher(at));
            context.approver = Arc::new(Yes);
        };
        only_that_call_fails(change, tool, arguments).await;
    }
}

/// The call has its outcome by then, and keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_whoever_watches_at_the_end_does_not_lose_the_outcome() {
    let host = Arc::new(host());
    let mut context = host.parts().1.clone();
    context.events = Arc::new(Watcher(|event| matches!(event, Event::Completed { .. })));
    for _ in 0..2 {
        let envelope = call(&host, context.clone(), "time", json!({})).await.expect("the panic stays in the call");
        assert!(envelope.outcome.is_ok(), "the call succeeded before anybody was told");
    }
    assert_eq!(host.result("time", json!({})).await["source"], "harness");
    assert_eq!(host.audit().len(), 6, "one outcome each");
}
