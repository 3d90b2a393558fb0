//! F-11: the host is killed with SIGKILL at any moment while it replaces a file.
//! Outcome: the file holds one version whole, never older than the last one that was acknowledged.
//! Switched off: replacing by rename (`backend/files.rs`, `write`, in place instead): a torn file was found and the test failed.

use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::thread::JoinHandle;
use std::time::Duration;
use toolcrib_tests::client::request;
use toolcrib_tests::{PATIENCE, Program, Running, is_long, signal};

const LINES: usize = 2_000;

fn content(version: u64) -> String {
    format!("version {version:012}\n").repeat(LINES)
}

/// The version that a file holds; it is whole or the test fails.
fn version(text: &str) -> u64 {
    let first = text.lines().next().unwrap_or_default();
    let version = first.strip_prefix("version ").and_then(|number| number.parse().ok());
    let version = version.unwrap_or_else(|| panic!("the file begins with `{first}` and has {} bytes", text.len()));
    assert!(text == content(version), "version {version} is torn: {} bytes", text.len());
    version
}

/// Has a host write a version; returns whether the write was acknowledged, which it is not when the host was killed before.
fn write(host: &mut Running, version: u64) -> bool {
    let arguments = json!({ "path": "file", "content": content(version) });
    host.write(request(version, "write_file", &arguments));
    let Some(line) = host.try_line("answer") else { return false };
    let answer: Value = serde_json::from_str(&line).expect("a whole line is an answer");
    assert!(answer["result"].is_string() && answer["id"] == version, "{answer}");
    true
}

fn kill_within(pid: u32, most: Duration) -> JoinHandle<()> {
    let micros = u64::try_from(most.as_micros()).expect("not that long");
    let wait = Duration::from_micros(RandomState::new().hash_one(pid) % micros);
    std::thread::spawn(move || {
        std::thread::sleep(wait);
        signal(&pid.to_string(), "KILL");
    })
}

#[test]
fn a_host_that_is_killed_leaves_the_old_or_the_new_content_and_what_it_acknowledged() {
    let kills = if is_long() { 1_000 } else { 50 };
    let program = Program::new();
    let file = program.path("work/file");
    let (mut acknowledged, mut unacknowledged) = (0, 0);
    std::fs::write(&file, content(0)).expect("a file");
    for _ in 0..kills {
        let mut host = program.start(&["run"]);
        let mut sent = acknowledged + 1;
        assert!(write(&mut host, sent), "the host comes up");
        acknowledged = sent;
        let killer = kill_within(host.pid(), Duration::from_millis(30));
        loop {
            sent += 1;
            if !write(&mut host, sent) {
                break;
            }
            acknowledged = sent;
        }
        killer.join().expect("it was killed");
        host.ended(PATIENCE).expect("it has ended");
        let held = version(&std::fs::read_to_string(&file).expect("the file is there"));
        assert!(held >= acknowledged, "version {acknowledged} was acknowledged, the file holds {held}");
        assert!(held <= sent, "the file holds version {held}, which nobody sent");
        unacknowledged += u64::from(held > acknowledged);
        acknowledged = held;
    }
    let names = std::fs::read_dir(program.path("work")).expect("a directory");
    let left: Vec<_> = names.filter_map(|name| Some(name.ok()?.file_name())).filter(|name| name != "file").collect();
    println!(
        "{kills} kills, {acknowledged} versions: {unacknowledged} times between effect and answer; left over: {left:?}"
    );
    assert!(left.len() <= kills, "a host leaves at most the file that it was about to give its name");
    let (code, envelope) = program.call(&["write_file", &json!({ "path": "file", "content": "next" }).to_string()]);
    assert_eq!(code, 0, "{envelope}");
}
