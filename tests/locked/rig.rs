//! A machine whose operator has a policy, and a user on it.

use crate::roots::{command_below_an_etc, is_mounted};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};
use std::sync::Arc;
use toolcrib_tests::outcome::{json_of, succeeded};
use toolcrib_tests::{Program, digest, guest};

/// What the operator tells whoever is refused.
pub(crate) const MESSAGE: &str = "Ask tools@example.example to have a plugin vetted.";

/// A user's program under the operator's policies.
pub(crate) struct Locked {
    pub(crate) program: Program,
    policies: Vec<String>,
}

impl Locked {
    /// A machine with these policies; `MESSAGE` in a text stands for the operator's words, `WORD_COUNT` for the digest of that guest.
    pub(crate) fn by(texts: &[&str]) -> Self {
        texts.iter().fold(Self { program: Program::new().without_settings(), policies: Vec::new() }, |locked, text| {
            locked.and(text)
        })
    }

    /// The same with one policy more.
    pub(crate) fn and(mut self, text: &str) -> Self {
        let name = format!("policy{}.toml", self.policies.len());
        self.program.write(&name, text.replace("MESSAGE", MESSAGE).replace("WORD_COUNT", &digest("word_count")));
        self.policies.push(self.program.path(&name).display().to_string());
        self
    }

    /// The arguments that put these policies in force, before others.
    pub(crate) fn under<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        self.policies.iter().flat_map(|policy| ["--policy", policy]).chain(arguments.iter().copied()).collect()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.program.run(&self.under(arguments))
    }

    /// Calls a tool; returns exit code and envelope.
    pub(crate) fn call(&self, arguments: &[&str]) -> (i32, Value) {
        self.program.write("work/a.txt", "two words");
        self.program.call(&self.under(arguments))
    }

    /// The names of the tools that the user sees.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = json_of(&self.run(&["tools", "--json"]));
        let name = |tool: &Value| tool["name"].as_str().expect("a tool has a name").to_owned();
        tools.as_array().expect("a list of tools").iter().map(name).collect()
    }

    /// The line `file:line` of the first policy.
    pub(crate) fn line(&self, number: usize) -> String {
        format!("{}:{number}", self.policies[0])
    }

    /// Puts `word_count` into the user's directory under a file's name, and allows it as far as the user can without the policies.
    pub(crate) fn installed(&self, name: &str, bytes: &[u8]) -> String {
        self.installed_with(name, bytes, &["--read", "."])
    }

    /// The same with these rights.
    pub(crate) fn installed_with(&self, name: &str, bytes: &[u8], rights: &[&str]) -> String {
        let file = format!("data/toolcrib/plugins/{name}.wasm");
        self.program.write(&file, bytes);
        let path = self.program.path(&file).display().to_string();
        succeeded(&self.program.run(&[&["plugin", "allow", &path], rights].concat()));
        path
    }
}

/// A machine whose policy a test writes; none where nothing can be mounted.
pub(crate) struct Machine {
    pub(crate) program: Arc<Program>,
}

impl Machine {
    pub(crate) fn new(policy: &str) -> Option<Self> {
        let machine = Self { program: Arc::new(Program::new()) };
        machine.write(policy);
        // Where nothing can be mounted, nothing answers.
        let check = machine.command(&["policy", "check"]).output().expect("`timeout` is installed");
        is_mounted(&check).then_some(machine)
    }

    /// Puts another policy in the place of the one that is there, as root does it.
    pub(crate) fn write(&self, policy: &str) {
        self.program.write("etc/new", policy);
        fs::rename(self.program.path("etc/new"), self.program.path("etc/policy.toml")).expect("renamed");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_after("true", arguments)
    }

    /// A line that runs after `prepare` has changed more of the machine.
    pub(crate) fn command_after(&self, prepare: &str, arguments: &[&str]) -> Command {
        let prepare =
            format!("mount --bind {:?} /etc/toolcrib && cd /etc/toolcrib && {prepare}", self.program.path("etc"));
        let file = Program::file().display().to_string();
        command_below_an_etc(&self.program, &prepare, &[&[&*file], arguments].concat())
    }

    /// What the trail has of changed policies: the reason why one was not obeyed, or nothing.
    pub(crate) fn changes(&self) -> Vec<Option<String>> {
        let trail = fs::read_to_string(self.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
        let lines = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let changed = lines.filter(|line| line["event"] == "policy_changed" && line["sha256"].is_string());
        changed.map(|line| line["not_obeyed"].as_str().map(str::to_owned)).collect()
    }
}

macro_rules! machine {
    ($policy:expr) => {
        match $crate::rig::Machine::new($policy) {
            Some(machine) => machine,
            None => toolcrib_tests::skip!("no /etc of its own can be mounted"),
        }
    };
}
pub(crate) use machine;

/// The guest that most cases are about.
pub(crate) fn word_count() -> Vec<u8> {
    std::fs::read(guest("word_count")).expect("a guest that was built")
}
