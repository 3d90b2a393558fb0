//! A host whose commands run in cells, and a person's things beside what it works on.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, MOUNT, MOUNT_SETATTR, Program, Running};

/// Not below `/tmp`, which a cell has of its own.
const BELOW: &str = "/var/tmp";
/// What a test of cells sets.
pub(crate) const REQUIRED: &str = "confine.mode=required";

/// How a command runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Via {
    Process,
    Pane,
}

pub(crate) const BOTH: [Via; 2] = [Via::Process, Via::Pane];

/// By which step commands are confined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Namespaces,
    Bwrap,
    Landlock,
}

/// Which one the tests are about, where it is not the first.
pub(crate) const STEP: &str = "TOOLCRIB_TESTS_STEP";
impl Step {
    fn wanted() -> Self {
        match std::env::var(STEP).as_deref() {
            Ok("bwrap") => Self::Bwrap,
            Ok("landlock") => Self::Landlock,
            Ok(_) | Err(_) => Self::Namespaces,
        }
    }

    /// The system calls that fail, so that no step before it can be used.
    pub(crate) fn failing(self) -> &'static [i64] {
        match self {
            Self::Namespaces => &[],
            // bwrap makes its mounts by an older call.
            Self::Bwrap => &[MOUNT_SETATTR],
            Self::Landlock => &[MOUNT],
        }
    }

    /// What it needs.
    pub(crate) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Namespaces => &[],
            Self::Bwrap => &["confine.network=none"],
            Self::Landlock => &["confine.floor=partial"],
        }
    }
}

pub(crate) struct Rig {
    // Ends before its directories go.
    pub(crate) client: Client,
    pub(crate) program: Program,
}

/// Directories in which a host can be started, with what a person has in a home.
pub(crate) fn program(via: Via) -> Program {
    let program = Program::below(Path::new(BELOW)).in_panes(via == Via::Pane);
    for name in ["home/.ssh/id", "home/.netrc", "home/.bashrc", "home/notes"] {
        program.write(name, "# private\n");
    }
    program
}

impl Rig {
    pub(crate) fn new(via: Via) -> Self {
        Self::with(via, &[])
    }

    /// One with these settings besides.
    pub(crate) fn with(via: Via, settings: &[&str]) -> Self {
        Self::of(program(via), settings)
    }

    pub(crate) fn of(program: Program, settings: &[&str]) -> Self {
        Self::by(Step::wanted(), program, settings)
    }

    /// One whose commands are confined by this step.
    pub(crate) fn by(step: Step, program: Program, settings: &[&str]) -> Self {
        let set = [REQUIRED].iter().chain(step.settings()).chain(settings).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["--yes"].into_iter().chain(set).chain(["run"]).collect();
        let client = Client::of(Running::start(&mut program.failing(step.failing(), &arguments)));
        Self { client, program }
    }

    /// Where its commands begin, or something there.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.program.path("work").canonicalize().expect("a directory").join(name)
    }

    /// Runs a command that has to come to an end: its status and all that it printed.
    pub(crate) fn run(&mut self, text: &str) -> (i64, String) {
        let result = self.result(text);
        let said = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        (result["exit_code"].as_i64().expect("a status"), said("stdout") + &said("stderr"))
    }

    pub(crate) fn result(&mut self, text: &str) -> Value {
        self.client.result("run_shell", command(text))
    }

    /// The notices beside what a command printed.
    pub(crate) fn notices(&mut self, text: &str) -> String {
        self.result(text)["notices"].to_string()
    }

    /// What is held, as `toolcrib files held list` has it.
    pub(crate) fn held(&self) -> Vec<Value> {
        let listed = self.program.run(&["files", "held", "list", "--json"]);
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"))
    }

    /// The only thing that is held.
    pub(crate) fn only_held(&self) -> Value {
        let mut held = self.held();
        assert_eq!(held.len(), 1, "{held:?}");
        held.remove(0)
    }

    /// Keeps or drops what is held: `toolcrib files held`.
    pub(crate) fn decide(&self, what: &str, held: &Value) -> Output {
        self.program.run(&["files", "held", what, held["id"].as_str().expect("an id")])
    }
}

/// A word for the shell.
pub(crate) fn word(text: impl AsRef<OsStr>) -> String {
    format!("'{}'", text.as_ref().to_str().expect("text").replace('\'', "'\\''"))
}

/// The first processes of a host's cells that have no command: those that `keep` a cell, and a `spare` for the next command.
pub(crate) fn idle(rig: &Rig, what: &str) -> Vec<rustix::process::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", rig.client.pid())).expect("its threads");
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: String = children.collect();
    let ending = format!("\0{what}\0-\0");
    let is_one = |pid: &&str| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.ends_with(ending.as_bytes()))
    };
    let pids = children.split_whitespace().filter(is_one).filter_map(|pid| pid.parse().ok());
    pids.filter_map(rustix::process::Pid::from_raw).collect()
}
