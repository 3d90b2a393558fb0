//! A tool that reads files, one that makes requests and one that fails, in each language: rights, results and failures are the same.

use super::{C, GO, JS, Lang, PYTHON, Project, RUST, installed};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::{Client, Running, serve, skip};

/// What a way of failing comes out as: a kind, a part of the message and, where it must have one, of the hint.
type Ways = &'static [(&'static str, &'static str, &'static str, &'static str)];

const RUST_WAYS: Ways = &[
    ("kind", "busy", "somebody else has it", "try again later"),
    ("throw", "execution_failed", "the plugin stopped", ""),
    ("capability", "execution_failed", "no such file", ""),
    ("spin", "limit", "CPU", "guest_cpu_ms"),
    ("big", "limit", "result", "result_kib"),
    ("memory", "limit", "memory 64 MiB", "memory_mib"),
    ("exit", "execution_failed", "", ""),
];
const JS_WAYS: Ways = &[
    ("kind", "busy", "somebody else has it", "try again later"),
    ("throw", "execution_failed", "(tool.js:", ""),
    ("text", "execution_failed", "a text and not an error", ""),
    ("capability", "execution_failed", "no such file", ""),
    ("spin", "limit", "CPU", "guest_cpu_ms"),
    ("big", "limit", "result", "result_kib"),
    ("memory", "limit", "memory", ""),
    ("recursion", "execution_failed", "stack overflow", ""),
    ("exit", "execution_failed", "process", ""),
    ("type", "execution_failed", "must be a string", ""),
    ("number", "execution_failed", "is not a whole number", ""),
    ("promise", "internal", "is a promise", ""),
    ("bigint", "internal", "is not JSON", ""),
];
const PYTHON_WAYS: Ways = &[
    ("kind", "busy", "somebody else has it", "try again later"),
    ("throw", "execution_failed", "ZeroDivisionError", ""),
    ("key", "execution_failed", "KeyError: 'missing'", ""),
    ("capability", "execution_failed", "no such file", ""),
    ("spin", "limit", "CPU", "guest_cpu_ms"),
    ("big", "limit", "result", "result_kib"),
    ("memory", "limit", "memory", ""),
    ("recursion", "execution_failed", "", ""),
    ("exit", "execution_failed", "SystemExit", ""),
    ("exit at once", "execution_failed", "", ""),
    ("number", "execution_failed", "is not a whole number", ""),
    ("nan", "internal", "is not JSON", ""),
];
const GO_WAYS: Ways = &[
    ("kind", "busy", "somebody else has it", "try again later"),
    ("throw", "execution_failed", "(tool.go:", ""),
    ("error", "execution_failed", "an error that is not a failure", ""),
    ("capability", "execution_failed", "no such file", ""),
    ("spin", "limit", "CPU", "guest_cpu_ms"),
    ("big", "limit", "result", "result_kib"),
    ("memory", "limit", "memory 64 MiB", "memory_mib"),
    ("recursion", "execution_failed", "stack overflow", ""),
    ("deadlock", "execution_failed", "the plugin stopped", ""),
    ("goroutine", "execution_failed", "the plugin stopped", ""),
    ("exit", "execution_failed", "the plugin stopped", ""),
    ("nan", "internal", "is not JSON", ""),
    ("half", "execution_failed", "half of \u{fffd}", ""),
];
const C_WAYS: Ways = &[
    ("kind", "busy", "somebody else has it", "try again later"),
    ("throw", "execution_failed", "the plugin stopped", ""),
    ("zero", "execution_failed", "divide by zero", ""),
    ("capability", "execution_failed", "no such file", ""),
    ("spin", "limit", "CPU", "guest_cpu_ms"),
    ("big", "limit", "result", "result_kib"),
    ("memory", "limit", "memory 64 MiB", "memory_mib"),
    ("recursion", "execution_failed", "stack overflow", ""),
    ("stack", "execution_failed", "out of bounds", ""),
    ("outside", "execution_failed", "out of bounds", ""),
    ("exit", "execution_failed", "the plugin stopped", ""),
    ("silent", "internal", "did not say why", ""),
    ("not json", "execution_failed", "is not JSON", "a fault of the plugin"),
    ("half", "execution_failed", "half of \u{fffd}", ""),
];

fn in_every_way(lang: Lang, ways: Ways) {
    let project = Project::new(lang, "three", &["config", "files", "http"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("languages").join(lang.name);
    let file = Path::new(lang.source).file_name().unwrap();
    fs::copy(source.join(file), project.path(lang.source)).unwrap();
    succeeded(&project.build());
    let component = project.component();
    succeeded(&project.run(&["plugin", "add", &component]));
    let tool = |name: &str| format!("{}_{name}", lang.prefix);
    let call = |name: &str, argument: &str| project.program.call(&[&tool(name), argument]).1;
    let address = serve(|_| "a page of 22 characters".into());
    let (reads, asks) = ("path=three.txt".to_owned(), format!("url=http://{address}/"));
    project.program.write("work/three.txt", "1\n2\n3\n");

    // Without rights, each is refused, and says which line would allow it.
    for (name, argument, option) in [("lines", &reads, "--read DIR"), ("get", &asks, "--host HOST")] {
        let refused = call(name, argument);
        assert_eq!(refused["error"]["kind"], "denied", "{refused}");
        assert!(refused["error"]["hint"].as_str().unwrap().contains(option), "{refused}");
    }

    succeeded(&project.run(&["plugin", "allow", "three", "--read", ".", "--host", "127.0.0.1"]));
    let here = "tools.fetch_private_ranges=[\"127.0.0.1\"]";
    let call = |name: &str, argument: &str| project.program.call(&["--set", here, &tool(name), argument]).1;
    let counted = call("lines", &reads);
    assert_eq!((&counted["result"], &counted["notices"]), (&json!({ "lines": 3 }), &json!(["6 characters"])));
    assert_eq!(
        call("get", &asks)["result"],
        json!({ "status": 200, "bytes": 23, "type": "text/html", "start": "a page o" })
    );
    // A right for a directory and for an address is for no other.
    assert_eq!(call("lines", "path=../config/toolcrib/toolcrib.toml")["error"]["kind"], "denied");
    assert_eq!(call("get", "url=http://localhost/")["error"]["kind"], "denied");

    for (how, kind, message, hint) in ways {
        let answer = call("fail", &format!("how={how}"));
        let error = &answer["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("kind"), *kind, "{how}: {answer}");
        assert!(text("message").contains(message), "{how}: {answer}");
        assert!(text("hint").contains(hint), "{how}: {answer}");
    }
    // What it says while it runs, and a value of its section.
    let config = "plugin.three.config={ GREETING = \"hello\" }";
    let mut client = Client::of(Running::start(&mut project.program.command(&["--set", config, "run", "--events"])));
    assert_eq!(client.result(&tool("fail"), json!({ "how": "config" })), "hello");
    let id = client.send(&tool("fail"), json!({ "how": "log" }));
    assert!(client.answer_to(id)["error"].is_null());
    let said = client.events(id).filter(|event| event["type"] == "log");
    let mut said: Vec<_> = said.map(|event| (event["level"].clone(), event["text"].as_str().unwrap())).collect();
    said.sort_by_key(|(level, _)| level.to_string());
    assert!(
        matches!(&said[..], [(info, said), (warn, "warned by a tool")] if info == "info" && warn == "warn" && said.starts_with("said")),
        "{said:?}"
    );
    assert_eq!(call("fail", "how=kind")["error"]["data"], data_of(lang), "failures carry what is known nevertheless");
    // After all of this it answers as before.
    assert_eq!(call("lines", &reads)["result"], json!({ "lines": 3 }));
}

fn data_of(lang: Lang) -> Value {
    if lang.builders.is_some() { json!({ "left": [1, "two"] }) } else { Value::Null }
}

#[test]
fn rust() {
    in_every_way(RUST, RUST_WAYS);
}

#[test]
fn javascript() {
    match installed() {
        Some(_) => in_every_way(JS, JS_WAYS),
        None => skip!("what builds JavaScript is not installed"),
    }
}

#[test]
fn python() {
    match installed() {
        Some(_) => in_every_way(PYTHON, PYTHON_WAYS),
        None => skip!("what builds Python is not installed"),
    }
}

#[test]
fn go() {
    match installed() {
        Some(_) => in_every_way(GO, GO_WAYS),
        None => skip!("what builds Go is not installed"),
    }
}

#[test]
fn c() {
    match installed() {
        Some(_) => in_every_way(C, C_WAYS),
        None => skip!("what builds C is not installed"),
    }
}
