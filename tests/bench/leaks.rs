//! What it costs to look for secrets in what comes back: the same calls with twenty secrets and with none, in pairs.

use crate::{pairs, ratio, row};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toolcrib_tests::client::request;
use toolcrib_tests::outcome::NO_QUESTION;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, TestHost, memory_kib};

/// How much a command prints.
const PRINTED_MIB: usize = 8;
const SECRETS: usize = 20;

/// A host that knows so many secrets, with the text of a program to print.
fn host(secrets: usize) -> TestHost {
    let host = TestHost::new().set("confine.mode=off").set("leaks.shapes=off");
    std::fs::write(host.work().join("long"), long()).expect("a text");
    let settings = settings(secrets, &host.home());
    host.user(&settings)
}

/// The sections of so many secrets, whose files are made in this home.
fn settings(secrets: usize, home: &Path) -> String {
    let mut settings = String::new();
    for number in 0..secrets {
        let file = home.join(format!("key{number}"));
        // Of 40 characters, as many tokens are, and no two alike.
        let mut value = [0; 30];
        getrandom::fill(&mut value).expect("random bytes");
        std::fs::write(&file, BASE64_STANDARD.encode(value)).expect("a secret");
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a file of ours");
        settings += &format!("[secret.K{number}]\nfile = \"~/key{number}\"\n");
    }
    settings
}

/// What a command prints: our own source, over and over.
fn long() -> Vec<u8> {
    let mut text = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/policy/src"), &mut text);
    text.iter().copied().cycle().take(PRINTED_MIB << 20).collect()
}

fn sources(directory: &Path, text: &mut Vec<u8>) {
    for entry in std::fs::read_dir(directory).expect("sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.extend(std::fs::read(path).expect("a source"));
        }
    }
}

/// K-06: what a server needs more at its peak that knows so many secrets, for a call that prints 8 MiB. Each has a
/// process of its own, for what one has freed another would use again.
fn memory() {
    let peak = |secrets: usize| {
        let program = Program::new().unconfined();
        program.write("config/toolcrib/toolcrib.toml", settings(secrets, &program.path("home")));
        program.write("work/long", long());
        let mut running = program.start(&[&NO_QUESTION[..], &["run"]].concat());
        running.write(request(1, "run_shell", &harmless("cat long ~/key*")));
        let answer = running.line();
        // It does know all of them, the last one too.
        let last = format!("`K{}`", secrets.saturating_sub(1));
        assert_eq!(answer["notices"].to_string().contains(&last), secrets > 0, "{}", answer["notices"]);
        memory_kib(running.pid(), "VmHWM")
    };
    let none = peak(0);
    for (secrets, most) in [(200, 64), (5000, 256)] {
        let more = peak(secrets).saturating_sub(none) >> 10;
        let what = format!("memory of a program that knows {secrets} secrets, at its peak, over one that knows none");
        row(&what, &format!("<= {most} MiB"), &format!("{more} MiB"), &format!("{} MiB in all", none >> 10), "");
    }
}

/// K-07: ten times as much of what is hard to look through takes about ten times as long.
fn linear(runtime: &tokio::runtime::Runtime) {
    let host = host(SECRETS);
    let nested = |text: &str| (0..10).fold(text.to_owned(), |text, _| BASE64_STANDARD.encode(text));
    let texts = [("`aaaa…`", "a".to_owned()), ("base64 ten times over", nested("KEY=zK4vQ9LwHt7"))];
    for (what, unit) in texts {
        let text = |mib: usize| unit.bytes().cycle().take(mib << 20).collect::<Vec<u8>>();
        for (name, mib) in [("one", 1), ("ten", 10)] {
            std::fs::write(host.work().join(name), text(mib)).expect("a text");
        }
        let print = |name: &str| drop(runtime.block_on(host.result("run_shell", harmless(&format!("cat {name}")))));
        let (ten, one) = pairs(|| print("ten"), || print("one"));
        let what = format!("`run_shell` `cat` of 10 MiB of {what} over 1 MiB of it, with 20 secrets");
        row(&what, "<= 12 times", &format!("{ten:.1?}"), &format!("1 MiB: {one:.1?}"), &ratio(ten, one));
    }
}

/// Both hosts of the comparison.
pub(crate) fn leaks() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    memory();
    linear(&runtime);
    let (guarded, plain) = (host(SECRETS), host(0));
    let print = |host: &TestHost| drop(runtime.block_on(host.result("run_shell", harmless("cat long"))));
    let (ours, bare) = pairs(|| print(&guarded), || print(&plain));
    let over = (ours.as_secs_f64() - bare.as_secs_f64()) * 1e3 / PRINTED_MIB as f64;
    let over = format!("<= 5 ms a MiB over none: {over:.1} ms");
    let what = "`run_shell` `cat` of 8 MiB of source, with 20 secrets, in pairs";
    row(what, &over, &format!("{ours:.1?}"), &format!("without secrets {bare:.1?}"), &ratio(ours, bare));
    // A whole text is also looked through without its layout.
    let text = String::from_utf8_lossy(&long()[..256 << 10]).into_owned();
    let write = |host: &TestHost| {
        drop(runtime.block_on(host.result("write_file", json!({ "path": "written", "content": text }))))
    };
    let (ours, bare) = pairs(|| write(&guarded), || write(&plain));
    let over = (ours.as_secs_f64() - bare.as_secs_f64()) * 1e3;
    let what = "`write_file` of 256 KiB of source, with 20 secrets, in pairs";
    let over = format!("<= 5 ms over none: {over:.1} ms");
    row(what, &over, &format!("{ours:.1?}"), &format!("without secrets {bare:.1?}"), &ratio(ours, bare));
    let call = |host: &TestHost| drop(runtime.block_on(host.result("time", json!({}))));
    let (ours, bare) = pairs(|| call(&guarded), || call(&plain));
    let what = "`time`, in process, with 20 secrets, in pairs";
    row(what, "", &format!("{ours:.1?}"), &format!("without secrets {bare:.1?}"), &ratio(ours, bare));
}
