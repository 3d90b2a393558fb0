//! Whole processes and whole hosts, timed beside the bare equivalent: pairs A, B, A, B in one run, medians, three repetitions.
//!
//! `cargo bench -p toolcrib-tests` prints a table; `tests/bench/run` builds what it needs first; `tests/bench/run panes` times a part. What happens inside a call is `cargo bench`.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts what it compares with")]

mod browser;
mod checkpoints;
mod floors;
mod jobs;
mod languages;
mod leaks;
mod locked;
mod mail;
mod peers;
mod records;
mod search;

use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolcrib::formats::ENVELOPE;
use toolcrib_tests::http::Server;
use toolcrib_tests::{Client, MOUNT, MOUNT_SETATTR, Preparation, Program, Running, TestHost, guest, serve, shell};

const REPETITIONS: usize = 3;
const PAIRS: usize = 60;

fn main() {
    if std::env::var_os(BARE).is_some() {
        return bare_responder();
    }
    if let Some(floor) = std::env::var_os(floors::FLOOR) {
        return floors::run(&floor.to_string_lossy());
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let mut parts: Vec<(&str, fn())> = vec![
        ("in-process", in_process),
        ("whole-process", whole_process),
        ("first-run", first_run),
        ("command", command),
        ("panes", panes),
        ("cells", cells),
        ("places", places),
        ("web", web),
        ("mcp", mcp),
        ("waiting-calls", waiting_calls),
        ("idle", idle),
        ("leaks", leaks::leaks),
        ("records", records::records),
        ("memories", records::memories),
        ("jobs", jobs::jobs),
        ("checkpoints", checkpoints::checkpoints),
        ("search", search::search),
        ("cycle", search::cycle),
        ("rules", rules),
        ("browser", browser::browser),
        ("mail", mail::mail),
        ("languages", languages::languages),
        ("trail", locked::trail),
        ("lock", locked::lock),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    parts.retain(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    // They repeat by themselves, and have tables of their own.
    let mut beside: Vec<(&str, fn())> =
        vec![("peers", peers::calls), ("starts", peers::starts), ("upstreams", peers::upstreams)];
    beside.retain(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    println!("load before: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    beside.iter().for_each(|(_, part)| part());
    if !parts.is_empty() {
        println!("| what | target | ours | bare equivalent | ours / bare |\n|---|---|---|---|---|");
    }
    for _ in 0..REPETITIONS {
        parts.iter().for_each(|(_, part)| part());
    }
    println!("load after: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
}

/// Quantiles of the times of `count` runs, after a tenth of warm-up.
fn time(count: usize, mut run: impl FnMut()) -> Vec<Duration> {
    (0..count / 10).for_each(|_| run());
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn quantile(times: &[Duration], percent: usize) -> Duration {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// Medians of two runs in turn.
fn pairs(mut ours: impl FnMut(), mut bare: impl FnMut()) -> (Duration, Duration) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        one.extend(time(1, &mut ours));
        other.extend(time(1, &mut bare));
    }
    one.sort();
    other.sort();
    (quantile(&one, 50), quantile(&other, 50))
}

fn row(what: &str, target: &str, ours: &str, bare: &str, ratio: &str) {
    println!("| {what} | {target} | {ours} | {bare} | {ratio} |");
}

fn ratio(ours: Duration, bare: Duration) -> String {
    format!("{:.2}", ours.as_secs_f64() / bare.as_secs_f64())
}

fn quiet(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} fails");
}

fn in_process() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let host = TestHost::new();
    let times = time(20_000, || drop(runtime.block_on(host.result("time", json!({})))));
    let ours = format!("p50 {:.0?}, p99 {:.0?}", quantile(&times, 50), quantile(&times, 99));
    row(
        "`time`, in process, fresh instance",
        "p50 <= 60 µs, p99 <= 250 µs",
        &ours,
        "27 to 43 µs: instantiate, call, drop",
        "",
    );
}

fn whole_process() {
    let program = Program::new();
    quiet(&mut program.command(&["call", "time"]));
    let (ours, bare) =
        pairs(|| quiet(&mut program.command(&["call", "time", "{}"])), || quiet(&mut Command::new("/bin/true")));
    row(
        "`toolcrib call time '{}'`, warm cache",
        "<= 4.5 x `/bin/true`",
        &format!("{ours:.1?}"),
        &format!("`/bin/true` {bare:.1?}"),
        &ratio(ours, bare),
    );
    let (ours, bare) = pairs(|| quiet(&mut program.command(&["--version"])), || quiet(&mut Command::new("/bin/true")));
    row(
        "`toolcrib --version`: the program itself",
        "",
        &format!("{ours:.1?}"),
        &format!("`/bin/true` {bare:.1?}"),
        &ratio(ours, bare),
    );
}

fn first_run() {
    for (arguments, what, target) in [
        (&["call", "time", "{}"][..], "the same, first ever run", "<= 500 ms"),
        (&["tools"], "`toolcrib tools`, first ever run", ""),
        (&["plugin", "list"], "`toolcrib plugin list`, first ever run", ""),
    ] {
        let times = time(10, || quiet(&mut Program::cold().command(arguments)));
        row(what, target, &format!("{:.1?}", quantile(&times, 50)), "", "");
    }
}

/// A command of a server that an agent talks to, beside the same command alone.
fn command() {
    let arguments = json!({ "command": "true", "risk": "low", "mutation": false, "privesc": false, "why": "bench" });
    let line = asking("run_shell", &arguments);
    for (mode, what, target) in
        [("off", "unconfined", "<= 0.25 ms"), ("required", "confined, in a cell that is there", "<= 0.8 ms")]
    {
        let program = Program::below(Path::new("/var/tmp"));
        let mode = format!("confine.mode={mode}");
        let mut server = served(&program, &["--no-tmux", "--set", "tools.shell_confirm=false", "--set", &mode]);
        server.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        let mut call = || {
            server.write(&line);
            assert_eq!(server.line()["result"]["_meta"][ENVELOPE]["result"]["exit_code"], 0);
        };
        call();
        // A home that was made just now is looked at again with each command.
        std::thread::sleep(Duration::from_secs(4));
        let (ours, bare) = pairs(call, || quiet(Command::new("/bin/sh").args(["-c", "true"])));
        let over = (ours.as_secs_f64() - bare.as_secs_f64()) * 1e3;
        row(
            &format!("`run_shell` `true` over MCP, stdio, {what}"),
            &format!("{target} over bare"),
            &format!("{ours:.2?}, {over:.2} ms over"),
            &format!("`sh -c true` {bare:.2?}"),
            &ratio(ours, bare),
        );
    }
    command_of_a_floor();
}

/// The same of a server that does nothing else.
fn command_of_a_floor() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    let mut server =
        Running::start(program.env(floors::FLOOR, format!("{} {}", floors::STARTS, file.path().display())));
    let line = asking("run_shell", &json!({}));
    let call = || {
        server.write(&line);
        assert_eq!(server.line()["result"]["isError"], false);
    };
    let (floor, bare) = pairs(call, || quiet(Command::new("/bin/sh").args(["-c", "true"])));
    let over = (floor.as_secs_f64() - bare.as_secs_f64()) * 1e3;
    let floor_told = format!("{floor:.2?}, {over:.2} ms over");
    row(
        "the same of a server that only starts it",
        "",
        &floor_told,
        &format!("`sh -c true` {bare:.2?}"),
        &ratio(floor, bare),
    );
}

/// Commands in a pane of the managed tmux, over the pipe of `toolcrib run`.
fn panes() {
    let program = Program::with_panes();
    quiet(&mut program.command(&["tools"]));
    let mut host = program.client(&["--set", "tools.shell_confirm=false", "run"]);
    let pid = host.pid();
    let mut call = |tool: &str, arguments: serde_json::Value| _ = host.result(tool, arguments);
    let begin = Instant::now();
    call("run_shell", shell::command("true"));
    let first = begin.elapsed();
    let times = time(400, || call("run_shell", shell::command("true")));
    let ours = format!("p50 {:.2?}, p99 {:.2?}", quantile(&times, 50), quantile(&times, 99));
    let (pane, bare) =
        pairs(|| call("run_shell", shell::command("true")), || quiet(Command::new("/bin/sh").args(["-c", "true"])));
    let target = "p50 <= 2 ms, p99 <= 20 ms";
    row("`run_shell` `true`, warm pane", target, &ours, &format!("`sh -c true` {bare:.2?}"), &ratio(pane, bare));
    row("first command, with server, session and pane", "<= 300 ms", &format!("{first:.0?}"), "", "");
    let times = time(200, || call("capture-pane", json!({})));
    row("`capture-pane`", "p50 <= 2 ms", &format!("p50 {:.2?}", quantile(&times, 50)), "", "");
    let times = time(5, || call("run_shell", shell::command("seq 1 200000")));
    row("200,000 lines in a pane", "<= 2 s", &format!("{:.2?}", quantile(&times, 50)), "", "");
    let server = program.tmux(&["list-clients", "-F", "#{client_pid} #{pid}"]);
    let processes: Vec<u32> = server.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    assert_eq!(processes.len(), 2, "one client and its server: {server}");
    let processes = [&processes[..], &[pid]].concat();
    let spent = || processes.iter().map(|pid| cpu_ticks(*pid)).sum::<u64>();
    std::thread::sleep(Duration::from_secs(1));
    let before = spent();
    std::thread::sleep(IDLE);
    let what = format!("CPU of an idle host, its client and the server in {IDLE:.0?}, ticks of 10 ms");
    row(&what, "0", &(spent() - before).to_string(), "", "");
}

/// How long idle processes are looked at.
const IDLE: Duration = Duration::from_secs(10);

/// CPU time that a process has used, in ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // Behind the name, which may hold anything: utime and stime are the 14th and 15th field.
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// What a command costs in containers and on a host, beside the engine's own program and a channel of ssh's own master.
fn places() {
    let Some(directory) = std::env::var_os("TOOLCRIB_TARGETS").map(std::path::PathBuf::from) else {
        row("containers and hosts", "", "TOOLCRIB_TARGETS is not set: `tests/targets up DIR`", "", "");
        return;
    };
    for engine in ["docker", "podman"] {
        let name = format!("toolcrib-bench-{engine}");
        let run = [
            "run",
            "-d",
            "--network",
            "none",
            "--label",
            "toolcrib-test",
            "--name",
            &name,
            "toolcrib-test:debian",
            "sleep",
            "100000",
        ];
        let mut command = Command::new(engine);
        quiet(command.args(run).env("CONTAINERS_CONF", directory.join("containers.conf")));
        let bare = || quiet(Command::new(engine).args(["exec", &name, "/bin/sh", "-c", "true"]));
        place(engine, "<= 1.1 x bare", &["--container", &name, "--engine", engine], &format!("`{engine} exec`"), bare);
        quiet(Command::new(engine).args(["rm", "-f", &name]).env("CONTAINERS_CONF", directory.join("containers.conf")));
    }
    let (sshd, script) = (directory.join("bench-sshd"), concat!(env!("CARGO_MANIFEST_DIR"), "/targets"));
    quiet(Command::new(script).arg("sshd").arg(&sshd));
    let (config, master) = (sshd.join("ssh_config"), sshd.join("master"));
    let ssh = |options: &[&str]| {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(&config).arg("-S").arg(&master).args(options).arg("crib");
        ssh
    };
    quiet(&mut ssh(&["-MNf"]));
    let setting = format!("ssh.config_file={:?}", config.display().to_string());
    let bare = || quiet(ssh(&[]).arg("true"));
    place("ssh", "<= 1.2 x bare", &["--ssh", "crib", "--set", &setting], "`ssh -S`, one master", bare);
    quiet(&mut ssh(&["-O", "exit"]));
    quiet(Command::new(script).arg("sshd-down").arg(&sshd));
}

/// Confined commands beside those that are not, in turn, each over the pipe of a `toolcrib run`; and bubblewrap, where it is installed.
fn cells() {
    const MODES: [&str; 2] = ["confine.mode=required", "confine.mode=off"];
    for (what, target, has_panes, is_new) in [
        ("in a new cell", "<= 1.5 ms over", false, true),
        ("in the cell of the workspace", "<= 0.6 ms over", false, false),
        ("in a warm pane, confined", "<= 0.1 ms over", true, false),
    ] {
        let programs = MODES.map(|_| Program::below(Path::new("/var/tmp")).in_panes(has_panes));
        let hosts = [0, 1].map(|at| {
            let mut host = programs[at].client(&["--yes", "--set", MODES[at], "run"]);
            let begin = Instant::now();
            assert_eq!(host.shell("true")["result"]["exit_code"], 0);
            (host, begin.elapsed())
        });
        let [(mut confined, first), (mut bare, bare_first)] = hosts;
        // A home that was made just now is looked at again with each command.
        std::thread::sleep(Duration::from_secs(4));
        // A cell is made of the very directory: another one in its place needs another cell.
        let renew = |at: usize| {
            if is_new {
                let work = programs[at].path("work");
                std::fs::remove_dir(&work).and_then(|()| std::fs::create_dir(&work)).expect("a directory");
            }
        };
        let call = |at: usize, host: &mut Client| {
            renew(at);
            assert_eq!(host.shell("true")["result"]["exit_code"], 0);
        };
        let (ours, theirs) = pairs(|| call(0, &mut confined), || call(1, &mut bare));
        let over = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1e3;
        row(
            &format!("`run_shell` `true`, {what}"),
            target,
            &format!("{ours:.2?}, {over:.2} ms over; the first {first:.0?}"),
            &format!("unconfined {theirs:.2?}; the first {bare_first:.0?}"),
            &ratio(ours, theirs),
        );
    }
    connections();
    other_steps();
    let profile =
        "--unshare-all --ro-bind / / --tmpfs /tmp --tmpfs /run --dev /dev --proc /proc --die-with-parent --new-session";
    let wrapped = || {
        let mut wrapped = Command::new("bwrap");
        wrapped.args(profile.split(' ')).args(["/bin/sh", "-c", "true"]);
        wrapped
    };
    if wrapped().output().is_ok_and(|output| output.status.success()) {
        let (theirs, bare) = pairs(|| quiet(&mut wrapped()), || quiet(Command::new("/bin/sh").args(["-c", "true"])));
        let over = (theirs.as_secs_f64() - bare.as_secs_f64()) * 1e3;
        let theirs = format!("{theirs:.2?}, {over:.2} ms over");
        row(
            "for comparison: bubblewrap, the same places, nothing hidden",
            "",
            &theirs,
            &format!("`sh -c true` {bare:.2?}"),
            "",
        );
    }
}

/// The same where this program can make no namespaces, and another step takes over.
fn other_steps() {
    let required = ["--yes", "--set", "confine.mode=required"];
    for (what, fails, setting) in [
        ("confined by bwrap", MOUNT_SETATTR, "confine.network=none"),
        ("partially confined, by Landlock", MOUNT, "confine.floor=partial"),
    ] {
        let programs = [(), ()].map(|()| Program::below(Path::new("/var/tmp")));
        let arguments = [&required[..], &["--set", setting, "run"]].concat();
        let mut confined = Client::of(Running::start(&mut programs[0].failing(&[fails], &arguments)));
        let mut bare = programs[1].client(&["--yes", "--set", "confine.mode=off", "run"]);
        let call = |host: &mut Client| assert_eq!(host.shell("true")["result"]["exit_code"], 0);
        call(&mut confined);
        call(&mut bare);
        // A home that was made just now is looked at again with each command.
        std::thread::sleep(Duration::from_secs(4));
        let (ours, theirs) = pairs(|| call(&mut confined), || call(&mut bare));
        let over = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1e3;
        let ours_told = format!("{ours:.2?}, {over:.2} ms over");
        row(
            &format!("`run_shell` `true`, {what}"),
            "",
            &ours_told,
            &format!("unconfined {theirs:.2?}"),
            &ratio(ours, theirs),
        );
    }
}

/// What a connection through the host takes more than a direct one: as many of each in turn as one program makes, 1 KiB by each.
fn connections() {
    const SCRIPT: &str = r#"
import socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), 300
def fetch():
    wire = socket.create_connection(("127.0.0.1", 3128) if host else ("127.0.0.1", port))
    if host:
        wire.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert b" 200 " in wire.recv(4096)
    name = host or "127.0.0.1"
    wire.sendall(f"GET / HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
    read = 0
    while read < 1024:
        read += len(wire.recv(65536))
    wire.close()
times = []
for _ in range(count):
    begin = time.perf_counter()
    fetch()
    times.append(time.perf_counter() - begin)
print(sorted(times)[count // 2] * 1e6)
"#;
    let port = serve(|_| "x".repeat(1024)).port();
    let program = Program::below(Path::new("/var/tmp"));
    program.write("work/connect.py", SCRIPT);
    let hosts = r#"confine.hosts=["bench.localhost", "127.0.0.1", "::1"]"#;
    let ports = format!("confine.ports=[{port}]");
    let mut confined =
        program.client(&["--yes", "--set", "confine.mode=required", "--set", hosts, "--set", &ports, "run"]);
    let mut bare = program.client(&["--yes", "--set", "confine.mode=off", "run"]);
    let median = |host: &mut Client, name: &str| {
        let answer = host.shell(&format!("python3 connect.py '{name}' {port}"));
        let said = answer["result"]["stdout"].as_str().unwrap_or_default().trim().parse::<f64>();
        Duration::from_secs_f64(said.unwrap_or_else(|_| panic!("{answer}")) / 1e6)
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(median(&mut confined, "bench.localhost"));
        theirs.push(median(&mut bare, ""));
    }
    ours.sort();
    theirs.sort();
    let (ours, theirs) = (quantile(&ours, 50), quantile(&theirs, 50));
    let over = (ours.as_secs_f64() - theirs.as_secs_f64()) * 1e3;
    row(
        "a new connection from a cell, 1 KiB",
        "<= 0.4 ms over",
        &format!("{ours:.2?}, {over:.2} ms over"),
        &format!("direct {theirs:.2?}"),
        &ratio(ours, theirs),
    );
}

/// A plain command and one in a pane, over the pipe of `toolcrib run`.
fn place(name: &str, target: &str, flags: &[&str], bare_name: &str, mut bare: impl FnMut()) {
    for (what, target, more) in [("plain", target, ["--no-tmux"].as_slice()), ("in a pane", "p50 <= 2 ms", &[])] {
        let program = Program::with_panes();
        let settings = ["--set", "tools.shell_confirm=false"];
        let mut host = program.client(&[flags, more, &settings, &["run"]].concat());
        let mut call = || {
            let answer = host.shell("true");
            assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
        };
        let begin = Instant::now();
        call();
        let first = begin.elapsed();
        let (ours, bare) = pairs(&mut call, &mut bare);
        let warm = time(200, &mut call);
        let shown = format!(
            "{ours:.2?}; without pauses p50 {:.2?}, p99 {:.2?}; the first {first:.0?}",
            quantile(&warm, 50),
            quantile(&warm, 99)
        );
        row(
            &format!("`run_shell` `true`, {name}, {what}"),
            target,
            &shown,
            &format!("{bare_name} {bare:.2?}"),
            &ratio(ours, bare),
        );
    }
}

/// A page of 1 KiB over a warm connection, and a page of results that is taken apart in the sandbox.
fn web() {
    const RESULTS: &str = include_str!("../tools/web_search/pages/large.html");
    let small = "x".repeat(1024);
    let address = serve(move |path| if path.starts_with("/html/") { RESULTS.to_owned() } else { small.clone() });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let host = TestHost::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set(&format!("tools.search_endpoint=\"http://{address}/html/\""));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let bare = |path: &str| {
        let url = format!("http://{address}{path}");
        let body = runtime.block_on(async { client.get(url).send().await?.bytes().await });
        assert!(body.is_ok_and(|body| body.len() >= 1024), "the server answers");
    };
    let fetch = || {
        let page = runtime.block_on(host.result("fetch_url", json!({ "url": format!("http://{address}/page") })));
        assert_eq!(page["status"], 200, "{page}");
    };
    let (ours, plain) = pairs(fetch, || bare("/page"));
    let over = format!("<= 1 ms over bare: {:.2} ms", (ours.as_secs_f64() - plain.as_secs_f64()) * 1e3);
    row(
        "`fetch_url`, 1 KiB, warm",
        &over,
        &format!("{ours:.2?}"),
        &format!("`reqwest` {plain:.2?}"),
        &ratio(ours, plain),
    );
    let search = || {
        let found = runtime.block_on(host.result("web_search", json!({ "query": "rust" })));
        assert_eq!(found["results"].as_array().map(Vec::len), Some(8), "{found}");
    };
    let (ours, plain) = pairs(search, || bare("/html/?q=rust"));
    let what = format!("`web_search`, a page of {} KiB parsed", RESULTS.len() >> 10);
    row(&what, "<= 20 ms", &format!("{ours:.2?} in all"), &format!("`reqwest` {plain:.2?}"), &ratio(ours, plain));
}

/// Set for the process that a server of MCP is compared with: it reads a line, parses it, and answers with a fixed one.
const BARE: &str = "TOOLCRIB_BENCH_BARE";

fn bare_responder() {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let request: serde_json::Value = serde_json::from_str(&line).expect("a request");
        let text = json!({ "type": "text", "text": "2026-11-20T00:00:00Z" });
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [text] } });
        writeln!(stdout, "{answer}").and_then(|()| stdout.flush()).expect("somebody reads");
    }
}

/// A server over stdio that has answered `initialize`.
fn served(program: &Program, flags: &[&str]) -> Running {
    let mut running = program.start(&[&["serve"], flags].concat());
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
    running.write(format!("{hello}\n"));
    assert_eq!(running.line()["result"]["serverInfo"]["name"], "toolcrib");
    running
}

/// A call over stdio, as a line.
fn asking(tool: &str, arguments: &serde_json::Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
}

/// What 500 rules of the user's cost: a call that asks nothing, and a command that the last of them allows.
fn rules() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let others: String = (0..499).map(|at| format!("[[allow]]\ncommand = \"program{at} sub *\"\n")).collect();
    let rules = format!("{others}[[allow]]\ncommand = \"true *\"\n");
    let (plain, ruled) = (TestHost::new(), TestHost::new().user(&rules).set("tools.shell_confirm=true"));
    let calls = |host: &TestHost| (0..100).for_each(|_| drop(runtime.block_on(host.result("time", json!({})))));
    let (ours, bare) = pairs(|| calls(&ruled), || calls(&plain));
    let (ours, bare) = (ours / 100, bare / 100);
    let more = ours.saturating_sub(bare);
    row(
        "a call with 500 rules",
        "+ 5 us",
        &format!("{ours:.1?}"),
        &format!("without {bare:.1?}"),
        &format!("+ {more:.1?}"),
    );
    let run = |host: &TestHost| drop(runtime.block_on(host.result("run_shell", shell::command("true"))));
    let (ours, bare) = pairs(|| run(&ruled), || run(&plain));
    let more = ours.saturating_sub(bare);
    let without = format!("unasked {bare:.1?}");
    row(
        "`true`, allowed by the last of 500 rules",
        "+ 1 ms",
        &format!("{ours:.1?}"),
        &without,
        &format!("+ {more:.1?}"),
    );
}

/// What an agent waits for: a call over each transport, and what connections cost that do nothing.
fn mcp() {
    let program = Arc::new(Program::new());
    quiet(&mut program.command(&["tools"]));
    let mut running = served(&program, &[]);
    running.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    let line = asking("time", &json!({}));
    let ours = || {
        running.write(&line);
        assert_eq!(running.line()["result"]["isError"], false);
    };
    let mut command = Command::new(std::env::current_exe().expect("a file"));
    let mut bare = command.env(BARE, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut to, mut from) = (bare.stdin.take().expect("piped"), BufReader::new(bare.stdout.take().expect("piped")));
    let respond = || {
        let mut answer = String::new();
        to.write_all(line.as_bytes()).and_then(|()| from.read_line(&mut answer)).expect("it answers");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("an answer");
        assert!(answer["result"].is_object());
    };
    // Without pauses, in turn by the thousand: a pair at a time would mostly measure who sleeps how deeply.
    let (ours, respond) = (time(5_000, ours), time(5_000, respond));
    let (p50, bare_p50) = (quantile(&ours, 50), quantile(&respond, 50));
    let shown = format!("p50 {p50:.1?}, p99 {:.1?}", quantile(&ours, 99));
    row(
        "`time` over stdio",
        "p50 <= 2.2 x bare",
        &shown,
        &format!("bare responder {bare_p50:.1?}"),
        &ratio(p50, bare_p50),
    );
    let _ = bare.kill().and_then(|()| bare.wait());
    mcp_over_http(&program);
}

fn mcp_over_http(program: &Arc<Program>) {
    let server = Server::start(program, &["--http", "0", "--no-auth"], &[]);
    let url = format!("http://{}/mcp", server.address);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "time", "arguments": {}, "_meta": meta } });
    // One thread: what is measured is the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let post = || {
        let request = client.post(&url).body(call.to_string()).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "time");
        let text = runtime.block_on(async { request.send().await?.text().await }).expect("it answers");
        assert!(text.contains("\"isError\":false"), "{text}");
    };
    let page = serve(|_| "x".repeat(512));
    let bare = || {
        let text = runtime.block_on(async { client.get(format!("http://{page}/")).send().await?.text().await });
        assert!(text.is_ok_and(|text| text.len() == 512));
    };
    let (ours, bare) = (time(2_000, post), time(2_000, bare));
    let (p50, bare_p50) = (quantile(&ours, 50), quantile(&bare, 50));
    let shown = format!("p50 {p50:.0?}, p99 {:.0?}", quantile(&ours, 99));
    row(
        "`time` over HTTP, one connection",
        "p50 <= 300 µs",
        &shown,
        &format!("a GET by the same client {bare_p50:.0?}"),
        &ratio(p50, bare_p50),
    );
    let connect = || {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it is read");
        let mut answer = [0; 256];
        assert!(std::io::Read::read(&mut stream, &mut answer).is_ok_and(|bytes| bytes > 0), "it answers");
        stream
    };
    let connections: Vec<TcpStream> = (0..1000).map(|_| connect()).collect();
    let resident = toolcrib_tests::resident_kib(server.pid()) as f64 / 1024.0;
    row("1,000 connections that do nothing", "<= 100 MiB resident", &format!("{resident:.1} MiB"), "", "");
    drop(connections);
}

fn waiting_calls() {
    // One plugin has half of the places, and of the memory.
    let room = Preparation::new().set("limits.concurrent_calls=2200").set("limits.total_memory_mib=8192");
    let mut siege = room.guest("hostile").begin();
    let wait = json!({ "how": "sleep", "number": 100 });
    siege.call("hostile", wait.clone());
    let begin = Instant::now();
    (0..1000).for_each(|_| _ = siege.send("hostile", wait.clone()));
    (0..1000).for_each(|_| assert_eq!(siege.answer()["result"], "slept"));
    let took = begin.elapsed();
    let threads = std::fs::read_dir(format!("/proc/{}/task", siege.pid())).map_or(0, Iterator::count);
    row(
        "1,000 calls at once that each wait 100 ms in a host call",
        "<= 1 s, no thread a call",
        &format!("{took:.2?}, {threads} threads"),
        "",
        "",
    );
    siege.lift();
}

fn idle() {
    let program = Program::new();
    assert!(guest("hostile").exists());
    quiet(&mut program.command(&["tools"]));
    let mut host = program.client(&["run"]);
    for tool in ["time", "read_file", "write_file", "run_shell"] {
        host.call(tool, json!({}));
    }
    let resident = toolcrib_tests::resident_kib(host.pid());
    row(
        "host with the built-ins loaded, idle",
        "<= 40 MiB resident",
        &format!("{:.1} MiB", resident as f64 / 1024.0),
        "",
        "",
    );
}
