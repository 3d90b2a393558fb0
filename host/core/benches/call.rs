//! What a call costs inside the process, as a whole and by its stages. Whole processes are timed by `tests/bench/run`.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::envelope::Kind;
use toolcrib::formats::Format;
use toolcrib::sandbox::Compiler;
use toolcrib_builtins::BUILTINS;

fn host(root: &Path) -> (Host, CallContext) {
    let set = ["tools.shell_confirm=false", "limits.calls_per_minute=1000000000"].map(str::to_owned).into();
    let settings = Settings::load(&Sources { home: root.into(), set, ..Sources::default() }).expect("settings");
    let (host, _) = Host::new(&settings, &Dirs::below(root), &[], Compiler::Here)
        .map_err(|failure| failure.message)
        .expect("a host");
    let tools = host.plugin_source(BUILTINS, Vec::new()).load();
    let backend = Local::new(root.into(), root.into(), root.into(), std::env::vars_os().collect());
    (host, CallContext::new("bench", Arc::new(tools), Arc::new(backend)))
}

/// A call, and what comes of it: none is success.
struct Case {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    fails: Option<Kind>,
}

impl Case {
    fn new(name: &'static str, tool: &'static str, arguments: Value) -> Self {
        Self { name, tool, arguments, fails: None }
    }

    fn failing(self, kind: Kind) -> Self {
        Self { fails: Some(kind), ..self }
    }

    fn measure(&self, group: &mut BenchmarkGroup<'_, WallTime>, runtime: &Runtime, host: &Host, context: &CallContext) {
        group.bench_function(self.name, |bencher| {
            bencher.iter(|| {
                let request = Request { tool: self.tool.into(), arguments: Arguments::Json(self.arguments.clone()) };
                let envelope = runtime.block_on(host.call(request, context));
                let failed = envelope.outcome.as_ref().err().map(|failure| failure.kind);
                assert!(failed == self.fails, "{:?}", envelope.outcome);
            });
        });
    }
}

fn calls(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(root.path().join("small.txt"), "hello\n").expect("a file");
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let (host, context) = host(root.path());
    let shell = json!({ "command": "true", "risk": "low", "mutation": false, "privesc": false, "why": "bench" });
    let mut group = criterion.benchmark_group("call");
    for case in [
        Case::new("time", "time", json!({})),
        Case::new("read_file of 6 bytes", "read_file", json!({ "path": "small.txt" })),
        Case::new("run_shell true", "run_shell", shell),
    ] {
        case.measure(&mut group, &runtime, &host, &context);
    }
}

/// Each goes further than the one before it, so that what it takes more is the stage that it names; the last is measured by itself.
fn stages(criterion: &mut Criterion) {
    let (bare, whole) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    // Where the record's file cannot be one, nothing is recorded.
    std::fs::create_dir_all(Dirs::below(bare.path()).state.join("audit.jsonl")).expect("a directory");
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let mut group = criterion.benchmark_group("stages of time");
    let (host_without, context) = host(bare.path());
    for case in [
        Case::new("1 a call is refused by its arguments", "time", json!({ "zone": 1 })).failing(Kind::InvalidArguments),
        Case::new("2 grants, an instance, its call, its result", "time", json!({})),
    ] {
        case.measure(&mut group, &runtime, &host_without, &context);
    }
    let (host, context) = host(whole.path());
    Case::new("3 two records", "time", json!({})).measure(&mut group, &runtime, &host, &context);
    let result = || {
        runtime.block_on(host.call(Request { tool: "time".into(), arguments: Arguments::Json(json!({})) }, &context))
    };
    group.bench_function("formatting a result for MCP, measured separately", |bencher| {
        bencher.iter_batched(result, |envelope| Format::Mcp.result(envelope), BatchSize::SmallInput);
    });
}

criterion_group!(benches, calls, stages);
criterion_main!(benches);
