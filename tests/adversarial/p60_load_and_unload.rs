//! P-60: plugins that are loaded, called and unloaded, over and over.
//! Outcome: the host keeps nothing of them: neither code nor descriptors, and at most 1 KiB of memory a cycle.
//! Switched off: with the compiled component kept for ever (`link` in `sandbox/mod.rs`) memory grew and the test failed.

use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use toolcrib::call::{Arguments, Request};
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{TestHost, is_long};

/// Set in the process that does the work: memory is measured where nothing else runs.
const ALONE: &str = "TOOLCRIB_TESTS_ALONE";

fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel counts memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("this process").count()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts itself, alone")]
fn a_plugin_that_is_unloaded_leaves_nothing() {
    if std::env::var_os(ALONE).is_some() {
        return cycles();
    }
    let test = std::env::current_exe().expect("a running test has a file");
    let name = "p60_load_and_unload::a_plugin_that_is_unloaded_leaves_nothing";
    let output = Command::new(test).args(["--exact", name, "--nocapture"]).env(ALONE, "1").output();
    let output = output.expect("this test starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("cycles leave"), "nothing was measured");
}

fn cycles() {
    let count = if is_long() { 10_000 } else { 1_000 };
    let host = TestHost::new().set("limits.concurrent_calls=16").plugin_as("forged", &Forged::new("forged").bytes());
    let plugins =
        host.dirs().audit().ancestors().find_map(|path| Some(path.join("plugins")).filter(|path| path.is_dir()));
    let plugins = plugins.expect("the host's plugins");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let cycle = || {
        let (host, context) = host.parts();
        let tools = host.plugin_source(&[], vec![plugins.clone()]).load();
        let context = context.clone().tools(Arc::new(tools)).session(Arc::default());
        let request = Request { tool: "forged".into(), arguments: Arguments::Json(json!({})) };
        let envelope = runtime.block_on(host.call(request, &context));
        assert!(envelope.outcome.is_ok_and(|output| output.result == "ok"), "a call fails");
    };
    (0..300).for_each(|_| cycle());
    let (kib, open) = (resident_kib(), descriptors());
    (0..count).for_each(|_| cycle());
    let grown = resident_kib() - kib;
    println!("{count} cycles leave {grown} KiB");
    assert!(grown <= count, "{count} cycles leave {grown} KiB");
    assert_eq!(descriptors(), open, "descriptors stay open");
}
