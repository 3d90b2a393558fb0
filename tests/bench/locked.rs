//! What a lock and its record cost: a line of the trail beside a plain append, checking a million of them, starting under a lock of 300
//! statements, and a call under it.

use super::{pairs, quantile, quiet, ratio, row, time};
use audit::verify::{Known, files, verify};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use toolcrib::audit::Audit;
use toolcrib::config::{Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib_tests::{Program, TestHost, guest};

const STATEMENTS: usize = 300;
/// As long as the line of an outcome with one action.
const TEXT: usize = 400;

pub(super) fn trail() {
    let directory = tempfile::tempdir().expect("a directory");
    let dirs = Dirs::below(directory.path());
    let settings = Settings::load(&Sources { home: dirs.home.clone(), ..Sources::default() }).expect("settings");
    let (audit, error) = Audit::of(&settings, &dirs);
    assert!(error.is_none(), "{error:?}");
    let (text, count) = ("x".repeat(TEXT), 1_000_000);
    let times = time(count - count / 11, || assert_eq!(audit.changed(&text), None));
    // What a program without a chain would do: the same bytes, in one write to a file that is open.
    let line = format!("{}\n", "x".repeat(TEXT + 130));
    let mut plain = File::options().append(true).create(true).open(directory.path().join("plain")).expect("a file");
    let bare = time(200_000, || plain.write_all(line.as_bytes()).expect("written"));
    let (p50, bare50) = (quantile(&times, 50), quantile(&bare, 50));
    row(
        "a line of the audit trail, chained, under the lock of the file",
        "p50 <= 1.5 x a plain append",
        &format!("p50 {p50:.1?}, p99 {:.1?}", quantile(&times, 99)),
        &format!("append {bare50:.1?}"),
        &ratio(p50, bare50),
    );
    let found = files(&settings.trail_file(&dirs)).expect("a trail");
    let begin = Instant::now();
    let whole = verify(&found, Known::default()).expect("a whole trail");
    row(
        &format!("`toolcrib audit verify` of {} lines", whole.head.n),
        "<= 5 s",
        &format!("{:.1?}", begin.elapsed()),
        "",
        "",
    );
}

pub(super) fn lock() {
    let locked = Deployment::new();
    let bare = Deployment::new();
    let policy = locked.policy.as_str();
    let start = |deployment: &Deployment, options: &[&str]| {
        let plugins = deployment.program.path("plugins").display().to_string();
        let arguments = [options, &["--plugins", &plugins, "call", "time", "{}"]].concat();
        quiet(&mut deployment.program.command(&arguments));
    };
    let under: &[&str] = &["--policy", policy];
    start(&locked, under);
    start(&bare, &[]);
    let checked = locked.program.path("state/toolcrib/signatures");
    let first = || {
        fs::remove_file(&checked).expect("signatures that were checked");
        start(&locked, under);
    };
    let starts: [(&str, &str, &dyn Fn()); 2] = [
        ("first start", "<= 150 ms more", &first),
        ("start, signatures checked before,", "<= 30 ms more", &|| start(&locked, under)),
    ];
    for (what, target, ours) in starts {
        let (ours, none) = pairs(ours, || start(&bare, &[]));
        row(
            &format!("{what} under a lock of {STATEMENTS} statements, two signatures each"),
            target,
            &format!("{ours:.1?}, {:.1?} more", ours.saturating_sub(none)),
            &format!("the same without a lock {none:.1?}"),
            &ratio(ours, none),
        );
    }
    call(&locked);
}

/// A call of a third-party plugin, with and without the lock, in turn.
fn call(locked: &Deployment) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let policy = fs::read_to_string(&locked.policy).expect("a policy");
    let file = guest("word_count").display().to_string();
    let bytes = fs::read(&file).expect("a guest");
    let hosts = [TestHost::new().policy(&policy), TestHost::new()].map(|host| {
        let host = host.plugin_as("word_count", &bytes).grant("word_count", "files.read=[\"/\"]");
        fs::write(host.work().join("a.txt"), "two words").expect("a file");
        host
    });
    let once = |host: &TestHost| drop(runtime.block_on(host.result("word_count", json!({ "path": "a.txt" }))));
    hosts.iter().for_each(once);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..20 {
        for (host, times) in hosts.iter().zip(&mut times) {
            times.extend(time(200, || once(host)));
        }
    }
    times.iter_mut().for_each(|times: &mut Vec<Duration>| times.sort());
    let (ours, none) = (quantile(&times[0], 50), quantile(&times[1], 50));
    row(
        "a call of `word_count` under that lock",
        "<= 2 µs more",
        &format!("p50 {ours:.1?}, {:.1?} more", ours.saturating_sub(none)),
        &format!("the same without a lock {none:.1?}"),
        &ratio(ours, none),
    );
}

/// 300 plugins with statements that two reviewers signed, one of them `word_count`.
struct Deployment {
    program: Program,
    policy: String,
}

impl Deployment {
    fn new() -> Self {
        let program = Program::new();
        let root = program.root().to_owned();
        program.write("plugins/.keep", "");
        let mut keys = String::new();
        for name in ["alice", "bob"] {
            minisign(&root, &["-G", "-W", "-f", "-p", &format!("{name}.pub"), "-s", &format!("{name}.key")]);
            let key = fs::read_to_string(root.join(format!("{name}.pub"))).expect("a key");
            let key = key.lines().nth(1).expect("its second line");
            let _ = write!(keys, "[lock.keys.{name}]\nminisign = \"{key}\"\nroles = [\"vet\", \"list\"]\n");
        }
        let bytes = fs::read(guest("word_count")).expect("a guest");
        for number in 0..STATEMENTS {
            let name = if number == 0 { "word_count".to_owned() } else { format!("count{number}") };
            program.write(&format!("plugins/{name}.wasm"), renamed(&bytes, &name));
            let file = root.join(format!("plugins/{name}.wasm")).display().to_string();
            let vet = ["plugin", "vet", &file, "--version", "1", "--expires", "365d", "--read", "/"];
            quiet(&mut program.command(&vet));
            let statement = format!("plugins/{name}.vet.toml");
            for reviewer in ["alice", "bob"] {
                minisign(
                    &root,
                    &[
                        "-S",
                        "-s",
                        &format!("{reviewer}.key"),
                        "-m",
                        &statement,
                        "-x",
                        &format!("{statement}.{reviewer}.minisig"),
                    ],
                );
            }
        }
        let (plugins, list) = (root.join("plugins"), root.join("plugins/vetted.toml"));
        let (directory, output) = (plugins.display().to_string(), list.display().to_string());
        quiet(
            &mut program.command(&["plugin", "lock", &directory, "-o", &output, "--name", "bench", "--valid", "30d"]),
        );
        minisign(&root, &["-S", "-s", "alice.key", "-m", &output]);
        let text = format!(
            "[lock]\nplugins = \"signed\"\nlist = {list:?}\nlist_name = \"bench\"\n[lock.threshold]\nvet = 2\nlist = 1\n{keys}"
        );
        program.write("policy.toml", text);
        let policy = program.path("policy.toml").display().to_string();
        Self { program, policy }
    }
}

/// The component with another tool's name, which is in its bytes: of the same length, so that all of it stays where it is.
pub(crate) fn renamed(bytes: &[u8], name: &str) -> Vec<u8> {
    let (from, mut to) = (b"word_count", name.as_bytes().to_vec());
    to.resize(from.len(), b'_');
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + from.len()].copy_from_slice(&to);
        }
    }
    bytes
}

fn minisign(root: &Path, arguments: &[&str]) {
    quiet(Command::new("minisign").current_dir(root).args(arguments));
}
