//! Our MCP server beside those of others, by one client, in rounds that alternate: calls one after the other and many at once, and starts.
//!
//! Others are those that `tests/bench/run` installs (`peers/`), and those of the file that `TOOLCRIB_PEERS` names, a line each: name, tool,
//! arguments as JSON, command, and `NAME=VALUE;…` for its environment, with tabs between. The first one is what the others are compared with.

use crate::floors::{ANSWERS, FLOOR, READS, RELAYS};
use crate::locked::renamed;
use crate::quantile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use toolcrib_tests::{Program, guest};

/// Servers of others that nobody calls.
const IDLE: usize = 50;
const ROUNDS: usize = 60;
/// Calls of a round, one after the other.
const CALLS: usize = 40;
/// Calls in flight, and calls of a round: few of them begin and end most of their time, many show what is sustained.
const WINDOWS: [(usize, usize); 4] = [(1, CALLS), (8, CALLS), (64, 256), (64, 2048)];
/// Calls before the first that is measured: as many as Node takes until it has compiled what they run.
const WARM: usize = 4000;
const STARTS: usize = 12;
/// Further plugins of a start with many.
const PLUGINS: usize = 300;

struct Peer {
    name: String,
    tool: String,
    arguments: Value,
    command: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// Where `tests/bench/run` has installed the servers of others.
fn installed() -> Option<PathBuf> {
    std::env::var_os("TOOLCRIB_BENCH_PEERS").map(PathBuf::from)
}

fn others() -> Vec<Peer> {
    let mut peers = Vec::new();
    if let Some(place) = installed() {
        let node = |name: &str, arguments: &str| {
            format!("node {}/node_modules/@modelcontextprotocol/{name}/dist/index.js {arguments}", place.display())
        };
        let time = format!("{}/python/bin/mcp-server-time", place.display());
        for (name, tool, arguments, command) in [
            ("server-everything (Node)", "echo", json!({ "message": "hello" }), node("server-everything", "stdio")),
            ("server-filesystem (Node)", "list_allowed_directories", json!({}), node("server-filesystem", "/tmp")),
            ("mcp-server-time (Python)", "get_current_time", json!({ "timezone": "UTC" }), time),
        ] {
            let command = command.split_whitespace().map(str::to_owned).collect();
            peers.push(Peer { name: name.into(), tool: tool.into(), arguments, command, environment: BTreeMap::new() });
        }
    } else {
        println!("TOOLCRIB_BENCH_PEERS is not set: `tests/bench/run peers` installs the servers of others");
    }
    let named = std::env::var_os("TOOLCRIB_PEERS").map(|file| std::fs::read_to_string(file).expect("a file of peers"));
    let lines = named.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    peers.extend(lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, tool, arguments, command, rest @ ..] = &fields[..] else { panic!("too few fields: {line}") };
        let pairs = rest.iter().flat_map(|pairs| pairs.split(';')).filter_map(|pair| pair.split_once('='));
        Peer {
            name: (*name).into(),
            tool: (*tool).into(),
            arguments: serde_json::from_str(arguments).expect("arguments in JSON"),
            command: command.split_whitespace().map(str::to_owned).collect(),
            environment: pairs.map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }));
    peers
}

fn ours(name: &str, program: &Program, flags: &[&str]) -> Peer {
    let command = program.command(&[]);
    let path = command.get_program().to_string_lossy().into_owned();
    let environment =
        command.get_envs().filter_map(|(name, value)| Some((name.to_str()?.into(), value?.to_str()?.into()))).collect();
    let flags = [&["--no-tmux", "--set", "limits.calls_per_minute=1000000000"], flags, &["serve"]].concat();
    let command = [vec![path], flags.into_iter().map(str::to_owned).collect()].concat();
    Peer { name: name.into(), tool: "time".into(), arguments: json!({}), command, environment }
}

/// A program that does next to nothing.
fn floor(name: &str, how: &str, what: &str, tool: &str, arguments: &Value) -> Peer {
    let command = vec![std::env::current_exe().expect("this program").display().to_string()];
    let environment = BTreeMap::from([(FLOOR.into(), format!("{how} {what}"))]);
    Peer { name: name.into(), tool: tool.into(), arguments: arguments.clone(), command, environment }
}

/// A server, and what is left of its output.
struct Connection {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    read: Vec<u8>,
    begin: usize,
    requests: u64,
}

impl Connection {
    fn start(peer: &Peer) -> Self {
        let mut command = Command::new(&peer.command[0]);
        command.args(&peer.command[1..]).envs(&peer.environment);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{}: {error}", peer.name));
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        Self { child, input, output, read: Vec::new(), begin: 0, requests: 0 }
    }

    fn request(&mut self, method: &str, params: &Value) -> String {
        self.requests += 1;
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }))
    }

    fn call(&mut self, peer: &Peer) -> String {
        self.request("tools/call", &json!({ "name": peer.tool, "arguments": peer.arguments }))
    }

    fn write(&mut self, text: &str) {
        self.input.as_mut().expect("open").write_all(text.as_bytes()).expect("it reads");
    }

    /// Whether a line is there already.
    fn has_line(&self) -> bool {
        memchr::memchr(b'\n', &self.read[self.begin..]).is_some()
    }

    /// The next line.
    fn line(&mut self) -> Vec<u8> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.read[self.begin..]) {
                let line = self.read[self.begin..self.begin + length].to_vec();
                self.begin += length + 1;
                return line;
            }
            self.read.drain(..std::mem::take(&mut self.begin));
            let mut piece = [0; 64 << 10];
            let bytes = self.output.read(&mut piece).expect("it can be read");
            assert!(bytes > 0, "the server has ended");
            self.read.extend_from_slice(&piece[..bytes]);
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Value {
        let request = self.request(method, params);
        self.write(&request);
        loop {
            let message: Value = serde_json::from_slice(&self.line()).expect("a message");
            if message["id"] == self.requests && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn shake_hands(&mut self) {
        let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        assert!(self.answer("initialize", &client)["result"].is_object());
        self.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }

    fn end(mut self) {
        drop(self.input.take());
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(300) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Without reading it as JSON, which would be measured too.
fn assert_succeeded(line: &[u8], peer: &Peer) {
    let has = |text: &[u8]| memchr::memmem::find(line, text).is_some();
    let shown = || String::from_utf8_lossy(line).into_owned();
    assert!(has(b"\"result\"") && !has(b"\"isError\":true"), "{}: {}", peer.name, shown());
}

/// What a process has used, over all its threads.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu: Duration,
    switches: u64,
    faults: u64,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let mut usage = Self::default();
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten() {
            let text = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
            usage.cpu += Duration::from_nanos(number(text("schedstat").split_whitespace().next()));
            let switches = text("status");
            let switches = switches.lines().filter(|line| line.contains("ctxt_switches"));
            usage.switches += switches.map(|line| number(line.split_whitespace().nth(1))).sum::<u64>();
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        // Behind the name, which may hold anything: minflt is the 10th field.
        usage.faults = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(7)?.parse().ok()).unwrap_or(0);
        usage
    }
}

#[derive(Default)]
struct Measured {
    all: Vec<Duration>,
    /// The median of each round.
    rounds: Vec<Duration>,
    cpu: Duration,
    switches: u64,
    faults: u64,
    /// Calls a second, by calls in flight and of a round.
    rates: BTreeMap<(usize, usize), Vec<f64>>,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn mebibytes(pid: u32) -> f64 {
    toolcrib_tests::resident_kib(pid) as f64 / 1024.0
}

/// Calls, beside those of others.
pub(crate) fn calls() {
    let program = Program::new();
    let mut peers = others();
    let trail = tempfile::NamedTempFile::new().expect("a file");
    let answers = |name: &str, file: &str| floor(name, ANSWERS, file, "time", &json!({}));
    peers.push(answers("one that only answers (Rust)", ""));
    peers.push(answers("the same, with two lines of a file", &trail.path().display().to_string()));
    peers.push(ours("toolcrib", &program, &[]));
    let mut connections: Vec<Connection> = peers.iter().map(ready).collect();
    let mut measured: Vec<Measured> = peers.iter().map(|_| Measured::default()).collect();
    for round in 0..ROUNDS {
        for turn in 0..peers.len() {
            let at = (turn + round) % peers.len();
            one_by_one(&peers[at], &mut connections[at], &mut measured[at]);
        }
        for (window, total) in WINDOWS {
            for turn in 0..peers.len() {
                let at = (turn + round) % peers.len();
                let rate = at_once(&peers[at], &mut connections[at], window, total);
                measured[at].rates.entry((window, total)).or_default().push(rate);
            }
        }
    }
    let columns: String = WINDOWS.map(|(window, total)| format!(" calls/s, {window} in flight, of {total} |")).concat();
    println!(
        "| MCP over stdio | p50 µs | p99 µs | p50 / {} | CPU µs/call | switches/call | faults/call |{columns} resident MiB |",
        peers[0].name
    );
    println!("|{}", "---|".repeat(8 + WINDOWS.len()));
    let (base, base_rates) = (measured[0].rounds.clone(), measured[0].rates.clone());
    for ((peer, connection), mut found) in peers.iter().zip(connections).zip(measured) {
        let mut ratios: Vec<f64> =
            found.rounds.iter().zip(&base).map(|(one, base)| one.as_secs_f64() / base.as_secs_f64()).collect();
        found.all.sort();
        let count = found.all.len() as f64;
        let rates = found.rates.values_mut().zip(base_rates.values()).map(|(rates, base)| {
            let mut ratios: Vec<f64> = rates.iter().zip(base).map(|(one, base)| one / base).collect();
            format!(" {:.0} ({:.2}) |", median(rates), median(&mut ratios))
        });
        let rates: String = rates.collect();
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} | {:.2} |{rates} {:.1} |",
            peer.name,
            micros(quantile(&found.all, 50)),
            micros(quantile(&found.all, 99)),
            median(&mut ratios),
            micros(found.cpu) / count,
            found.switches as f64 / count,
            found.faults as f64 / count,
            mebibytes(connection.child.id()),
        );
        connection.end();
    }
}

/// A server that has answered often enough to be warm.
fn ready(peer: &Peer) -> Connection {
    let mut connection = Connection::start(peer);
    connection.shake_hands();
    assert!(connection.answer("tools/list", &json!({}))["result"].is_object());
    for _ in 0..WARM {
        let call = connection.call(peer);
        connection.write(&call);
        assert_succeeded(&connection.line(), peer);
    }
    connection
}

fn one_by_one(peer: &Peer, connection: &mut Connection, measured: &mut Measured) {
    let before = Usage::of(connection.child.id());
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let call = connection.call(peer);
        let begin = Instant::now();
        connection.write(&call);
        let answer = connection.line();
        times.push(begin.elapsed());
        assert_succeeded(&answer, peer);
    }
    let after = Usage::of(connection.child.id());
    measured.cpu += after.cpu.saturating_sub(before.cpu);
    measured.switches += after.switches.saturating_sub(before.switches);
    measured.faults += after.faults.saturating_sub(before.faults);
    times.sort();
    measured.rounds.push(quantile(&times, 50));
    measured.all.extend(times);
}

/// Calls a second with so many in flight.
fn at_once(peer: &Peer, connection: &mut Connection, window: usize, total: usize) -> f64 {
    let (mut sent, mut got, begin) = (window, 0, Instant::now());
    let mut text: String = (0..window).map(|_| connection.call(peer)).collect();
    while got < total {
        connection.write(&text);
        text.clear();
        loop {
            assert_succeeded(&connection.line(), peer);
            got += 1;
            if sent < total {
                text += &connection.call(peer);
                sent += 1;
            }
            if got == total || !connection.has_line() {
                break;
            }
        }
    }
    total as f64 / begin.elapsed().as_secs_f64()
}

/// Calls of a server of others through this program, beside the same calls of that server itself and through programs that do next to nothing.
pub(crate) fn upstreams() {
    let Some(place) = installed() else {
        return println!("TOOLCRIB_BENCH_PEERS is not set: `tests/bench/run upstreams` installs the server");
    };
    let place = place.display().to_string();
    let index = format!("{place}/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let node = std::fs::canonicalize("/usr/bin/node").expect("node, where the system has it").display().to_string();
    let program = Program::new();
    let add =
        ["upstream", "add", "everything", "--yes", "--confirm", "none", "--read", &place, "--", &node, &index, "stdio"];
    let added = program.command(&add).output().expect("it starts");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    println!(
        "| a call of server-everything | target | through this program, p50 µs | itself, p50 µs | ratio | µs over | through a relay, p50 µs | its ratio | through one that reads, p50 µs | its ratio | µs over that |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (bytes, target) in [(10, "<= 2.0, + 120 µs"), (100_000, "<= 1.4")] {
        let arguments = json!({ "message": "x".repeat(bytes) });
        let itself = Peer {
            name: "itself".into(),
            tool: "echo".into(),
            arguments: arguments.clone(),
            command: vec![node.clone(), index.clone(), "stdio".into()],
            environment: BTreeMap::new(),
        };
        let relay = |how: &str| floor("a relay", how, &itself.command.join(" "), &itself.tool, &arguments);
        let (relay, reader) = (relay(RELAYS), relay(READS));
        let through =
            Peer { tool: "everything__echo".into(), arguments: arguments.clone(), ..ours("through", &program, &[]) };
        let mut all = [itself, through, relay, reader].map(|peer| (ready(&peer), peer, Measured::default()));
        for round in 0..ROUNDS {
            for turn in 0..all.len() {
                let place = (turn + round) % all.len();
                let (connection, peer, measured) = &mut all[place];
                one_by_one(peer, connection, measured);
            }
        }
        let [itself, through, relay, reader] = all.map(|(connection, _, mut measured)| {
            connection.end();
            measured.all.sort();
            measured
        });
        let ratio = |measured: &Measured| {
            let rounds = measured.rounds.iter().zip(&itself.rounds);
            let mut ratios: Vec<f64> = rounds.map(|(one, base)| one.as_secs_f64() / base.as_secs_f64()).collect();
            median(&mut ratios)
        };
        let [base, one, least, read] =
            [&itself, &through, &relay, &reader].map(|measured| micros(quantile(&measured.all, 50)));
        println!(
            "| {bytes} bytes | {target} | {one:.0} | {base:.0} | {:.2} | {:.0} | {least:.0} | {:.2} | {read:.0} | {:.2} | {:.0} |",
            ratio(&through),
            one - base,
            ratio(&relay),
            ratio(&reader),
            one - read
        );
    }
    idle_upstreams();
}

/// What servers of others take here as long as nobody calls them, beside their own processes.
fn idle_upstreams() {
    let program = Program::new();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py").display().to_string();
    let name = |number: usize| format!("jotter{number}");
    for number in 0..IDLE {
        let name = name(number);
        let add = [
            "upstream",
            "add",
            &name,
            "--yes",
            "--confirm",
            "none",
            "--read",
            &file,
            "--",
            "/usr/bin/python3",
            &file,
            "plain",
        ];
        let added = program.command(&add).output().expect("it starts");
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
    let peer = |number| Peer {
        tool: format!("{}__echo", name(number)),
        arguments: json!({ "text": "x" }),
        ..ours("through", &program, &[])
    };
    let mut connection = ready(&peer(0));
    let taken = |connection: &Connection| mebibytes(connection.child.id()) + inits();
    let before = taken(&connection);
    for number in 1..IDLE {
        let call = connection.call(&peer(number));
        connection.write(&call);
        assert_succeeded(&connection.line(), &peer(number));
    }
    std::thread::sleep(Duration::from_secs(2));
    let each = (taken(&connection) - before) / (IDLE - 1) as f64;
    connection.end();
    println!("| {IDLE} servers that nobody calls, MiB for each beside its own processes | <= 1 | {each:.2} | | | |");
}

/// MiB that the first processes of cells have for themselves.
fn inits() -> f64 {
    let processes = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok).map(|entry| entry.path());
    let inits = processes.filter(|process| {
        std::fs::read_link(process.join("exe"))
            .is_ok_and(|exe| exe.to_string_lossy().starts_with("/memfd:toolcrib-init"))
    });
    let kib = inits.filter_map(|process| {
        let rollup = std::fs::read_to_string(process.join("smaps_rollup")).ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok()
    });
    kib.sum::<f64>() / 1024.0
}

/// Starts, of ours also with many plugins.
pub(crate) fn starts() {
    let (program, many) = (Program::new(), Program::new());
    let plugins = many.path("plugins");
    clone_plugins(&plugins);
    let plugins = plugins.display().to_string();
    let mut peers = others();
    // A copy, as `cargo install` makes one: the file that the linker wrote lies in the page cache in small pieces, and its pages are mapped one
    // by one, which is 1.5 ms of each start.
    let installed = program.path("toolcrib");
    for (name, home, flags) in [
        ("toolcrib".to_owned(), &program, &[][..]),
        (format!("toolcrib, {PLUGINS} plugins more"), &many, &["--plugins", &plugins]),
    ] {
        let mut peer = ours(&name, home, flags);
        std::fs::copy(&peer.command[0], &installed).expect("a copy of the program");
        peer.command[0] = installed.display().to_string();
        peers.push(peer);
    }
    // What was compiled and seen once is there at each start from then on.
    peers.iter().for_each(|peer| ready(peer).end());
    std::thread::sleep(Duration::from_secs(4));
    peers.iter().for_each(|peer| ready(peer).end());
    let mut measured: Vec<[Vec<f64>; 4]> = peers.iter().map(|_| Default::default()).collect();
    for round in 0..STARTS {
        for turn in 0..peers.len() {
            let at = (turn + round) % peers.len();
            let times = start(&peers[at]);
            measured[at].iter_mut().zip(times).for_each(|(all, time)| all.push(time));
        }
    }
    println!(
        "| start | to `initialize` answered, ms | first `tools/list` after it, ms | first call, ms | resident MiB |"
    );
    println!("|{}", "---|".repeat(5));
    for (peer, mut found) in peers.iter().zip(measured) {
        let [hello, list, call, resident] = found.each_mut().map(|values| median(values));
        println!("| {} | {hello:.1} | {list:.1} | {call:.2} | {resident:.1} |", peer.name);
    }
}

fn start(peer: &Peer) -> [f64; 4] {
    let millis = |begin: Instant| begin.elapsed().as_secs_f64() * 1e3;
    let begin = Instant::now();
    let mut connection = Connection::start(peer);
    connection.shake_hands();
    let hello = millis(begin);
    let begin = Instant::now();
    assert!(connection.answer("tools/list", &json!({}))["result"].is_object());
    let list = millis(begin);
    let resident = mebibytes(connection.child.id());
    let begin = Instant::now();
    let call = connection.call(peer);
    connection.write(&call);
    assert_succeeded(&connection.line(), peer);
    let called = millis(begin);
    connection.end();
    [hello, list, called, resident]
}

/// Plugins that differ in their names.
fn clone_plugins(directory: &Path) {
    let bytes = std::fs::read(guest("word_count")).expect("a guest that was built");
    std::fs::create_dir_all(directory).expect("a directory");
    for number in 0..PLUGINS {
        let name = format!("wc{number:08}");
        std::fs::write(directory.join(format!("{name}.wasm")), renamed(&bytes, &name)).expect("a plugin");
    }
}
