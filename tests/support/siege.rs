//! A host under attack: the program serves calls, and afterwards everything must be as before.

use crate::shell::harmless;
use crate::{Client, PATIENCE, Program, eventually, guest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::Permissions;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What is prepared before the host is started.
pub struct Preparation {
    program: Program,
    arguments: Vec<String>,
}

/// `toolcrib run` with hostile plugins.
pub struct Siege {
    // Ends before its directories go.
    client: Client,
    /// Its directories; plugins are in `plugins`.
    pub program: Program,
    before: Holdings,
}

impl Deref for Siege {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Siege {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// What a process holds.
#[derive(Debug, Default, PartialEq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    children: Vec<u32>,
    /// Whether there is a cell, and what the next commands of such are started by.
    cells: bool,
    spares: usize,
}

impl Holdings {
    /// What comes beside a cell is there.
    fn is_whole(&self) -> bool {
        !self.cells || self.spares > 0
    }
}

impl Default for Preparation {
    fn default() -> Self {
        Self::new()
    }
}

impl Preparation {
    /// A host whose commands run without a question.
    #[must_use]
    pub fn new() -> Self {
        let program = Program::new();
        let plugins = program.path("plugins").display().to_string();
        program.write("plugins/readme.txt", "");
        let arguments = vec!["--plugins".into(), plugins, "--set".into(), "tools.shell_confirm=false".into()];
        Self { program, arguments }
    }

    /// There are no settings, for a test that says or counts all that is in them.
    #[must_use]
    pub fn without_settings(self) -> Self {
        Self { program: self.program.without_settings(), ..self }
    }

    /// Commands run in panes of a managed tmux, which ends with the siege.
    #[must_use]
    pub fn in_panes(mut self) -> Self {
        self.program.panes = true;
        self
    }

    /// Adds a setting.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.arguments.extend(["--set".into(), setting.into()]);
        self
    }

    /// Adds a guest of the tests.
    #[must_use]
    pub fn guest(self, name: &str) -> Self {
        let bytes = std::fs::read(guest(name)).expect("a guest that was built");
        self.component(name, &bytes)
    }

    /// Adds a component under a name.
    #[must_use]
    pub fn component(self, name: &str, bytes: &[u8]) -> Self {
        self.program.write(&format!("plugins/{name}.wasm"), bytes);
        self
    }

    /// Grants a guest of the tests everything that it asks for, files below the working directory.
    #[must_use]
    pub fn allowing(self, name: &str) -> Self {
        self.granting(name, &["--shell", "--read", ".", "--write", "."])
    }

    /// Grants a plugin what these options of `plugin allow` say.
    #[must_use]
    pub fn granting(self, name: &str, options: &[&str]) -> Self {
        let file = self.plugin(name).display().to_string();
        let allowed = self.program.run(&[&["plugin", "allow", &file], options].concat());
        assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
        self
    }

    /// A path of its working directory.
    #[must_use]
    pub fn work(&self, path: &str) -> PathBuf {
        self.program.path("work").join(path)
    }

    /// The file of a plugin that was added.
    #[must_use]
    pub fn plugin(&self, name: &str) -> PathBuf {
        self.program.path("plugins").join(format!("{name}.wasm"))
    }

    /// Starts the host, and has it do one call of each kind, so that what it holds is settled.
    #[must_use]
    pub fn begin(self) -> Siege {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).chain(["run"]).collect();
        let client = self.program.client(&arguments);
        let before = Holdings::default();
        let mut siege = Siege { client, program: self.program, before };
        // The second command of a cell has what the next one is started by made.
        (0..2).for_each(|_| siege.healthy());
        eventually("a spare", || siege.holdings().is_whole());
        siege.before = siege.settled();
        siege
    }
}

/// A home in which the built-in tools were compiled, once for all tests of this process; or the one that it was given, where that takes long.
#[must_use]
pub fn compiled() -> &'static Path {
    static GIVEN: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("TOOLCRIB_TESTS_COMPILED").map(PathBuf::from));
    static SEED: LazyLock<Program> = LazyLock::new(|| {
        let seed = Program::cold();
        assert!(seed.run(&["plugin", "compile"]).status.success(), "they are compiled");
        seed
    });
    GIVEN.as_deref().unwrap_or_else(|| SEED.root())
}

/// Gives a program the compiled tools of a home: most tests are not on compiling them, two hundred times over.
pub fn reuse_code(home: &Path, to: &Path) {
    let from = home.join("state/toolcrib");
    std::fs::create_dir_all(to.join("code")).expect("a directory");
    for file in entries(&from.join("code")).into_iter().chain([from.join("code.key")]) {
        let name = file.strip_prefix(&from).expect("below it");
        std::fs::copy(&file, to.join(name)).expect("a file");
    }
    for directory in [to, &to.join("code")] {
        std::fs::set_permissions(directory, Permissions::from_mode(0o700)).expect("a directory of its own");
    }
}

impl Siege {
    /// A host with one guest of the tests, which has no grant.
    #[must_use]
    pub fn with(guest: &str) -> Preparation {
        Preparation::new().guest(guest)
    }

    /// Why a plugin was refused, as `plugin list` says.
    #[must_use]
    pub fn refusal(&self, name: &str) -> String {
        let plugins = self.program.path("plugins").display().to_string();
        let output = self.program.run(&["--plugins", &plugins, "tools", "--format", "json"]);
        assert!(output.status.success(), "the listing fails");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = said
            .lines()
            .find(|line| line.contains(&format!("{name}.wasm`")) || line.contains(&format!("plugin `{name}`")));
        line.unwrap_or_else(|| panic!("nothing is said of `{name}`: {said}")).to_owned()
    }

    /// Ends the siege: a healthy call works, descriptors, threads and children are as before, and every call has one outcome.
    pub fn lift(mut self) {
        self.healthy();
        let begin = Instant::now();
        while self.holdings() != self.before && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let open: Vec<_> = entries(&PathBuf::from(format!("/proc/{}/fd", self.pid())))
            .iter()
            .filter_map(|descriptor| std::fs::read_link(descriptor).ok())
            .collect();
        assert_eq!(self.holdings(), self.before, "the host does not hold what it held before; open are {open:?}");
        assert!(self.end(PATIENCE).is_some_and(|status| status.success()), "the host ends badly");
        let trail = std::fs::read_to_string(self.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
        let mut outcomes: HashMap<String, (u32, u32)> = HashMap::new();
        for line in trail.lines() {
            let line: Value = serde_json::from_str(line).expect("an audit line");
            let Some(call) = line.get("call") else { continue };
            let counts = outcomes.entry(call.to_string()).or_default();
            if line["event"] == "accepted" { counts.0 += 1 } else { counts.1 += 1 }
        }
        assert!(outcomes.values().all(|counts| *counts == (1, 1)), "a call without exactly one outcome: {trail}");
    }

    fn healthy(&mut self) {
        assert_eq!(self.call("time", json!({}))["result"]["source"], "harness");
        assert_eq!(self.call("run_shell", harmless("true"))["result"]["exit_code"], 0);
        assert!(self.write_file("health.txt", "well")["result"].is_string());
        assert_eq!(self.read_file("health.txt")["result"], "well");
    }

    /// What it holds when that has not changed for a tenth of a second: a thread that has done its work takes a moment to go, and so does a
    /// descriptor with which the next command was prepared.
    fn settled(&self) -> Holdings {
        let mut held = self.holdings();
        let mut alike = 0;
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(10));
            let now = self.holdings();
            // What is left of a command that has ended goes as well.
            let is_alike = now == held && now.children.iter().all(|pid| stays(*pid));
            alike = if is_alike { alike + 1 } else { 0 };
            if alike == 10 {
                break;
            }
            held = now;
        }
        held
    }

    fn holdings(&self) -> Holdings {
        let process = PathBuf::from(format!("/proc/{}", self.pid()));
        let tasks = process.join("task");
        let threads = entries(&tasks).into_iter().filter(|task| !is_spare(task));
        let (kept, others): (Vec<_>, Vec<_>) = threads.partition(|task| is_named(task, "command-parser"));
        let all: Vec<u32> = entries(&tasks).iter().flat_map(|task| children(task)).collect();
        let of_cells = |what: &'static str| all.iter().filter(move |pid| is_of_cell(**pid, what));
        Holdings {
            descriptors: entries(&process.join("fd")).iter().filter(|descriptor| !is_code(descriptor)).count(),
            threads: others.len() + kept.len().saturating_sub(KEPT_PARSERS),
            cells: of_cells("keep").count() > 0,
            spares: of_cells("spare").count(),
            children: all.iter().copied().filter(|pid| !is_of_cell(*pid, "spare")).collect(),
        }
    }
}

/// A first process of a cell that has no command: one keeps the cell, one waits for the next command and is another one each time.
fn is_of_cell(pid: u32, what: &str) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.ends_with(format!("\0{what}\0-\0").as_bytes())
}

/// A process that a host has as long as it lives: what keeps a cell, and what ends commands when the host is gone.
fn stays(pid: u32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    is_of_cell(pid, "keep") || words.ends_with(b"\0watch\0")
}

/// A thread for blocking work comes when there is some and goes when there has been none for ten seconds.
fn is_spare(task: &Path) -> bool {
    is_named(task, "tokio-rt-worker")
}

/// Threads that the parser of commands keeps for the next one; more of them have not come to an end.
const KEPT_PARSERS: usize = 2;

fn is_named(task: &Path, name: &str) -> bool {
    std::fs::read_to_string(task.join("comm")).is_ok_and(|found| found.trim() == name)
}

/// Each loaded component keeps the image of its memory, once.
fn is_code(descriptor: &Path) -> bool {
    std::fs::read_link(descriptor).is_ok_and(|target| target.to_string_lossy().contains("wasm-memory-image"))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

fn children(task: &Path) -> Vec<u32> {
    let list = std::fs::read_to_string(task.join("children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
