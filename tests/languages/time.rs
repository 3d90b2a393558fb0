//! The clock as a component of another host, in JavaScript and in Go. Its interface is that of Wassette's `time-server-js`: a function without
//! arguments that returns a text.
#![expect(clippy::disallowed_methods, reason = "`plugin build` is for plugins of our contract")]

use super::{GO, JS, Lang, installed, with_caches};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use toolcrib_tests::mcp::{self, ERAS, envelope};
use toolcrib_tests::outcome::{code, json_of, stderr, succeeded};
use toolcrib_tests::{Program, skip};

const TOOL: &str = "time-get-current-time";

/// A program in whose working directory `clock.wasm` is, built from nothing.
fn built(lang: Lang) -> Program {
    let program = Program::new();
    let (work, sources) = (program.path("work"), Path::new(env!("CARGO_MANIFEST_DIR")).join("languages/time"));
    for file in ["clock.wit", &format!("{}/build.sh", lang.name), &format!("{}/{}", lang.name, lang.source)] {
        let file = sources.join(file);
        fs::copy(&file, work.join(file.file_name().unwrap())).unwrap();
    }
    let (wanted, there) = lang.builders.expect("Rust has guests");
    std::os::unix::fs::symlink(installed().expect("the caller has looked").join(there), work.join(wanted)).unwrap();
    let mut build = Command::new("sh");
    with_caches(build.args(["build.sh", "clock.wasm"]).current_dir(work));
    succeeded(&build.output().expect("a shell"));
    program
}

/// What a call of the tool tells, which must be between what the host's own clock tells before and after it.
fn told(program: &Program, call: impl FnOnce() -> Value) -> String {
    let clock = || program.call(&["time"]).1["result"]["iso_8601_millis_utc"].as_str().expect("a time").to_owned();
    let (before, envelope, after) = (clock(), call(), clock());
    let told = envelope["result"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned();
    // Texts of this form and of the same length are in the order of their times.
    assert!(told.len() == before.len() && before <= told && told <= after, "{before} {told} {after}");
    told
}

/// `beside` are tools that the builder has put there.
fn tells_the_time(lang: Lang, beside: &[&str]) {
    let program = Arc::new(built(lang));
    let seen = json_of(&program.run(&["plugin", "inspect", "--json", "clock.wasm"]));
    assert_eq!(seen["tools"], json!([beside, &[TOOL]].concat()));
    // The libraries of both languages import files, whoever uses them.
    assert_eq!((&seen["capabilities"], &seen["may"][0]["verdict"]), (&json!(["files"]), &json!("denied")));
    succeeded(&program.run(&["plugin", "check", "clock.wasm"]));

    // Builders drop the comments of WIT; whoever installs the component has words for it.
    let words = |summary: &str| format!("[tool.{TOOL}]\nsummary = '{summary}'\n");
    program.write("work/clock.tool.toml", words("Tells the time."));
    succeeded(&program.run(&["plugin", "add", "clock.wasm"]));
    let described = json_of(&program.run(&["tools", "--json", TOOL]));
    assert_eq!(described["description"], "Tells the time.");
    assert_eq!(described["inputSchema"], json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    assert_eq!(described["outputSchema"], json!({ "type": "string" }));

    // It needs no rights for that, and no time of its build is in it.
    let call = || program.call(&["--json", TOOL]).1;
    assert_ne!(told(&program, call), told(&program, call));
    let refused = program.call(&[TOOL, "zone=UTC"]).1;
    assert_eq!(refused["error"]["kind"], "invalid_arguments", "{refused}");
    for era in ERAS {
        let mut client = mcp::Client::start(&mut program.command(&["serve"]), program.clone(), era, json!({}));
        client.shake_hands();
        assert!(client.tools().iter().any(|name| name == TOOL), "{era:?}");
        told(&program, || envelope(&client.call(TOOL, json!({}))));
    }
    // What the builder has left is done, and need not be offered.
    let omitted: String = beside.iter().map(|tool| format!("[tool.{tool}]\nomit = true\n")).collect();
    for tool in beside {
        let arguments = json!({ "shim": "", "script": "globalThis.Date = null", "disable-gc": false }).to_string();
        let left = program.call(&[tool, &arguments]).1;
        assert_eq!(left["error"]["message"], "JavaScript already evaluated", "{left}");
    }
    program.write("data/toolcrib/plugins/clock.tool.toml", words("Tells the time.") + &omitted);
    for tool in beside {
        assert_eq!(program.call(&[tool, "{}"]).1["error"]["kind"], "unknown_tool", "{tool}");
    }

    // Allowed, it is what it was when it was allowed, with its words.
    let unsaid = program.run(&["plugin", "allow", "clock"]);
    assert!(code(&unsaid) != 0 && stderr(&unsaid).contains("`--nothing` where it does without"));
    succeeded(&program.run(&["plugin", "allow", "clock", "--nothing"]));
    told(&program, call);
    program.write("data/toolcrib/plugins/clock.tool.toml", words("Tells when to buy."));
    let refused = call();
    assert_eq!(refused["error"]["kind"], "unavailable", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("definitions have changed"), "{refused}");
}

#[test]
fn time_in_javascript() {
    match installed() {
        Some(_) => tells_the_time(JS, &["init"]),
        None => skip!("what builds JavaScript is not installed"),
    }
}

#[test]
fn time_in_go() {
    match installed() {
        Some(_) => tells_the_time(GO, &[]),
        None => skip!("what builds Go is not installed"),
    }
}
