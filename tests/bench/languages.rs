//! What a plugin costs in each language that there is a template for, and a component that was not written for Toolcrib beside one that was.

use crate::{pairs, quantile, ratio, row, time};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toolcrib_tests::{Client, Program, guest};

/// Name, where its component is, and what its builder is linked to.
const LANGS: [(&str, &str, &str, &str); 5] = [
    ("rust", "target/wasm32-wasip2/release", "target", "plugins"),
    ("js", "build", "node_modules", "node_modules"),
    ("python", "build", ".venv", "python"),
    ("go", "build", ".venv", "python"),
    ("c", "build", ".venv", "python"),
];
const CALLS: usize = 500;

pub(crate) fn languages() {
    let Some(builders) = std::env::var_os("TOOLCRIB_BUILDERS").map(PathBuf::from) else {
        return row("plugins in each language", "", "not measured: `tests/bench/run` installs builders", "", "");
    };
    let mut rust = None;
    for (lang, component, wanted, there) in LANGS {
        let program = Program::new();
        run(&program, &["plugin", "new", "greeter", "--lang", lang]);
        std::fs::create_dir_all(builders.join(there)).expect("a directory of builders");
        symlink(builders.join(there), program.path(&format!("work/greeter/{wanted}"))).expect("a link to its builder");
        // Rust's dependencies, bindings and the libraries of Go and C are built by the first; that is the author's first minute.
        run(&program, &["plugin", "build", "greeter"]);
        touch(&program, lang);
        let begun = Instant::now();
        run(&program, &["plugin", "build", "greeter"]);
        let built = begun.elapsed();
        let file = program.path(&format!("work/greeter/{component}/greeter.wasm"));
        let size = std::fs::metadata(&file).expect("its component").len();
        run(&program, &["plugin", "add", &file.display().to_string()]);
        let begun = Instant::now();
        assert_eq!(program.call(&["greeter"]).0, 0);
        let first = begun.elapsed();
        let (cached, bare) = pairs(|| assert_eq!(program.call(&["greeter"]).0, 0), || _ = program.call(&["time"]));
        let (warm, time_warm) = calls(&program, "greeter");
        row(
            &format!("a plugin in {lang}: {:.2} MB, built again in {built:.1?}", size as f64 / 1e6),
            "",
            &format!("first call ever {first:.1?}; of a process {cached:.1?}; in one host p50 {warm:.2?}"),
            &format!("`time` {bare:.1?} of a process; in one host {time_warm:.2?}"),
            &ratio(warm, time_warm),
        );
        if lang == "rust" {
            rust = Some(program);
        }
    }
    let program = rust.expect("the first language");
    run(&program, &["plugin", "add", &guest("shop").display().to_string()]);
    let mut client = program.client(&["run"]);
    let (typed, ours) = (find(&mut client), greet(&mut client));
    row(
        "a typed function of a component of others, in one host",
        "<= 1.3 x one of our world",
        &format!("p50 {typed:.2?}"),
        &format!("`greeter` in Rust {ours:.2?}"),
        &ratio(typed, ours),
    );
}

/// Medians of this tool and of `time` in one host.
fn calls(program: &Program, tool: &str) -> (Duration, Duration) {
    let mut client = program.client(&["run"]);
    let ours = quantile(&time(CALLS, || drop(client.result(tool, json!({ "name": "Ada" })))), 50);
    (ours, quantile(&time(CALLS, || drop(client.result("time", json!({})))), 50))
}

fn find(client: &mut Client) -> Duration {
    quantile(&time(CALLS, || drop(client.result("orders-find", json!({ "name": "lamp" })))), 50)
}

fn greet(client: &mut Client) -> Duration {
    quantile(&time(CALLS, || drop(client.result("greeter", json!({ "name": "Ada" })))), 50)
}

/// A change of the source, so that something is built.
fn touch(program: &Program, lang: &str) {
    let source = match lang {
        "rust" => "src/lib.rs",
        "js" => "tool.js",
        "go" => "tool.go",
        "c" => "tool.c",
        _ => "app.py",
    };
    let file = program.path(&format!("work/greeter/{source}"));
    let text = std::fs::read_to_string(&file).expect("its source");
    std::fs::write(&file, text.replace("Hello", "Hallo")).expect("its source");
}

fn run(program: &Program, arguments: &[&str]) {
    let mut command: Command = program.command(arguments);
    for variable in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = std::env::var_os(variable) {
            command.env(variable, value);
        }
    }
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
