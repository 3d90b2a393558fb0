//! What a call costs inside the process. Whole processes are timed by `tests/bench/run`.

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources};
use toolcrib::dirs::Dirs;
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

fn calls(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(root.path().join("small.txt"), "hello\n").expect("a file");
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let (host, context) = host(root.path());
    let shell = json!({ "command": "true", "risk": "low", "mutation": false, "privesc": false, "why": "bench" });
    let cases = [
        ("time", "time", json!({})),
        ("read_file of 6 bytes", "read_file", json!({ "path": "small.txt" })),
        ("run_shell true", "run_shell", shell),
    ];
    for (name, tool, arguments) in cases {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments.clone()) };
                let envelope = runtime.block_on(host.call(request, &context));
                assert!(envelope.outcome.is_ok(), "{:?}", envelope.outcome);
            });
        });
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
