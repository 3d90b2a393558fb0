//! The program under test in a world: prepared, then spoken to by `toolcrib run` or called once.
#![expect(clippy::disallowed_methods, reason = "a tracer starts the program")]

use crate::record::TRACER;
use crate::world::World;
use serde_json::{Value, json};
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};
use toolcrib_tests::envelope::{kind, said};
use toolcrib_tests::{Client, Program, Running, canary, digest, guest, reuse_code};

/// A program of a world before it runs.
pub(crate) struct Preparation<'w> {
    world: &'w World,
    /// Its directories.
    pub(crate) program: Program,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

/// `toolcrib run` in a world.
pub(crate) struct Host {
    client: Client,
    // Its directories, which end after it.
    program: Program,
}

impl Deref for Host {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl<'w> Preparation<'w> {
    /// With the tools that were compiled in that home.
    pub(crate) fn new(world: &'w World, compiled: &Path) -> Self {
        let program = Program::cold();
        reuse_code(compiled, &program.path("state/toolcrib"));
        program.write("plugins/readme.txt", "");
        let arguments = vec!["--plugins".into(), program.path("plugins").display().to_string()];
        Self { world, program, arguments, environment: Vec::new() }
    }

    /// Adds a setting.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.arguments.extend(["--set".into(), setting.into()]);
        self
    }

    /// Adds a guest of the tests, and lines of its section such as `http.hosts=["open.org"]`.
    pub(crate) fn guest(self, name: &str, lines: &[&str]) -> Self {
        self.program
            .write(&format!("plugins/{name}.wasm"), std::fs::read(guest(name)).expect("a guest that was built"));
        let prepared = self.set(&format!("plugin.{name}.sha256={:?}", digest(name)));
        lines.iter().fold(prepared, |prepared, line| prepared.set(&format!("plugin.{name}.{line}")))
    }

    /// Adds a variable to what it finds around it.
    pub(crate) fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts `toolcrib run`.
    pub(crate) fn run(self) -> Host {
        let client = Client::of(Running::start(&mut self.traced(&["run"])));
        Host { client, program: self.program }
    }

    /// Calls a tool as a user does; returns exit code and envelope.
    pub(crate) fn call(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.traced(&[&["call"], arguments].concat()).stdin(Stdio::null()).output();
        let output = output.expect("`strace` is installed");
        canary::check_output(&output);
        let envelope = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code().expect("an exit code"), envelope)
    }

    /// Runs a command as a user does, which has to succeed.
    pub(crate) fn succeeds(&self, arguments: &[&str]) {
        let output = self.traced(arguments).stdin(Stdio::null()).output().expect("`strace` is installed");
        canary::check_output(&output);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Who decided on the requests so far, as the audit trail has it.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let trail = std::fs::read_to_string(self.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
        let lines = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let actions = lines.flat_map(|line| line["actions"].as_array().cloned().unwrap_or_default());
        actions.map(|action| action["decision"].as_str().expect("a decision").to_owned()).collect()
    }

    /// The program behind a tracer, which is its grandchild: the process that is started is the program's own.
    fn traced(&self, arguments: &[&str]) -> Command {
        let own: Vec<&str> = self.arguments.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        let program = self.program.command(&own);
        let record = self.world.new_record();
        File::create(&record).expect("a record");
        let mut command = Command::new("strace");
        command.arg("-D").args(TRACER).arg(record).arg(program.get_program()).args(program.get_args());
        command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(program.get_current_dir().expect("the program has a working directory"));
        command
    }
}

impl Host {
    /// The audit trail so far.
    pub(crate) fn trail(&self) -> String {
        std::fs::read_to_string(self.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail")
    }

    /// Fetches a URL; returns the envelope.
    pub(crate) fn fetch(&mut self, url: &str) -> Value {
        self.call("fetch_url", json!({ "url": url }))
    }

    /// Fetches a URL that must answer with 200; returns the result.
    pub(crate) fn page(&mut self, url: &str) -> Value {
        let answer = self.fetch(url);
        assert_eq!(answer["result"]["status"], 200, "{url}: {answer}");
        answer["result"].clone()
    }

    /// Fetches a URL that must be refused by policy; returns what is said.
    pub(crate) fn denied(&mut self, url: &str) -> String {
        let answer = self.fetch(url);
        assert_eq!(kind(&answer), "denied", "{url}: {answer}");
        said(&answer)
    }

    /// Has the guest `requester` send a request; returns the envelope.
    pub(crate) fn request(&mut self, method: &str, url: &str, headers: &[(&str, &str)]) -> Value {
        self.call("request", json!({ "method": method, "url": url, "headers": headers }))
    }
}
