//! What it costs to look for secrets in what comes back: the same calls with twenty secrets and with none, in pairs.

use crate::{pairs, ratio, row};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

/// How much a command prints.
const PRINTED_MIB: usize = 8;
const SECRETS: usize = 20;

/// A host that knows so many secrets, with the text of a program to print.
fn host(secrets: usize) -> TestHost {
    let host = TestHost::new().set("confine.mode=off").set("leaks.shapes=off");
    let mut settings = String::new();
    for number in 0..secrets {
        let file = host.dirs().config.join(format!("key{number}"));
        // Of 40 characters, as many tokens are, and no two alike.
        let value: String =
            (0..40).map(|at| char::from(b'0' + ((number * 37 + at * (at + number + 3)) % 75) as u8)).collect();
        std::fs::write(&file, value).expect("a secret");
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a file of ours");
        settings += &format!("[secret.KEY{number}]\nfile = {:?}\n", file.display().to_string());
    }
    let mut text = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/core/src"), &mut text);
    let long: Vec<u8> = text.iter().copied().cycle().take(PRINTED_MIB << 20).collect();
    std::fs::write(host.work().join("long"), long).expect("a text");
    host.user(&settings)
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

/// Both hosts of the comparison.
pub(crate) fn leaks() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let (guarded, plain) = (host(SECRETS), host(0));
    let print = |host: &TestHost| drop(runtime.block_on(host.result("run_shell", harmless("cat long"))));
    let (ours, bare) = pairs(|| print(&guarded), || print(&plain));
    let over = (ours.as_secs_f64() - bare.as_secs_f64()) * 1e3 / PRINTED_MIB as f64;
    let over = format!("<= 5 ms a MiB over none: {over:.1} ms");
    let what = "`run_shell` `cat` of 8 MiB of source, with 20 secrets, in pairs";
    row(what, &over, &format!("{ours:.1?}"), &format!("without secrets {bare:.1?}"), &ratio(ours, bare));
    let call = |host: &TestHost| drop(runtime.block_on(host.result("time", json!({}))));
    let (ours, bare) = pairs(|| call(&guarded), || call(&plain));
    let what = "`time`, in process, with 20 secrets, in pairs";
    row(what, "", &format!("{ours:.1?}"), &format!("without secrets {bare:.1?}"), &ratio(ours, bare));
}
