//! The places where tools act: containers and hosts behind an sshd of their own. Each ends with the test that made it.
#![expect(clippy::disallowed_methods, reason = "tests make and end the places that tools act in")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/targets");

/// Ends the test as skipped where nobody prepared the places.
macro_rules! need_targets {
    () => {
        if $crate::targets::prepared().is_none() {
            toolcrib_tests::skip!("TOOLCRIB_TARGETS is not set: tests/targets up DIR")
        }
    };
}
pub(crate) use need_targets;

/// The same for podman, whose containers are below the home of whoever is not root; the program under test has a home of its own.
macro_rules! need_podman {
    () => {
        $crate::targets::need_targets!();
        if !rustix::process::getuid().is_root() {
            toolcrib_tests::skip!(
                "podman containers of an ordinary user are below a home that the program does not have"
            )
        }
    };
}
pub(crate) use need_podman;

/// The directory of `tests/targets up`.
pub(crate) fn prepared() -> Option<PathBuf> {
    std::env::var_os("TOOLCRIB_TARGETS").map(PathBuf::from)
}

/// Runs a command that must not hang, and returns what it said.
fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(arguments).stdin(Stdio::null());
    if let Some(directory) = prepared() {
        command.env("CONTAINERS_CONF", directory.join("containers.conf"));
    }
    command.output().expect("timeout is installed")
}

/// The same for one that must succeed; returns what it printed.
pub(crate) fn done(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {}: {stdout}{stderr}", output.status);
    stdout.trim().to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Docker,
    Podman,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    pub(crate) fn done(self, arguments: &[&str]) -> String {
        done(self.name(), arguments)
    }

    /// Removes a container that runs.
    fn remove(self) -> &'static [&'static str] {
        match self {
            Self::Docker => &["rm", "-f"],
            Self::Podman => &["rm", "-f", "--time", "5"],
        }
    }

    /// The version of what runs the containers.
    pub(crate) fn version(self) -> String {
        let field = match self {
            Self::Docker => "{{.Server.Version}}",
            Self::Podman => "{{.Client.Version}}",
        };
        self.done(&["version", "--format", field])
    }
}

/// A container that sleeps, in the working directory `/tmp`.
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) name: String,
}

impl Container {
    /// Of the image `toolcrib-test:debian` (bash, tmux) or `toolcrib-test:busybox` (neither).
    pub(crate) fn new(engine: Engine, image: &str) -> Self {
        Self::with(engine, image, &[])
    }

    /// The same, with options of `run`.
    pub(crate) fn with(engine: Engine, image: &str, options: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("toolcrib-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let container = Self { engine, name };
        container.make(image, options);
        container
    }

    /// Makes it, or another one of its name.
    pub(crate) fn make(&self, image: &str, options: &[&str]) {
        let image = format!("toolcrib-test:{image}");
        let head = ["run", "-d", "--network", "none", "--label", "toolcrib-test", "--workdir", "/tmp", "--name"];
        let tail = [image.as_str(), "sleep", "100000"];
        let arguments: Vec<&str> =
            head.into_iter().chain([self.name.as_str()]).chain(options.iter().copied()).chain(tail).collect();
        self.engine.done(&arguments);
    }

    /// What names it on the command line.
    pub(crate) fn flags(&self) -> Vec<String> {
        ["--container", &self.name, "--engine", self.engine.name()].map(str::to_owned).into()
    }

    /// Runs a script in it, past the program under test.
    pub(crate) fn exec(&self, script: &str) -> String {
        self.engine.done(&["exec", &self.name, "sh", "-c", script])
    }

    pub(crate) fn act(&self, act: Act) {
        match act {
            Act::Start => self.insist("start"),
            Act::Pause => self.insist("pause"),
            Act::Unpause => self.insist("unpause"),
            Act::Stop => {
                // `stop` gives up when the machine is busy; `kill` may complain there, and has killed all the same.
                run(self.engine.name(), &["kill", &self.name]);
                let format = ["container", "inspect", "--format", "{{.State.Running}}", &self.name];
                toolcrib_tests::eventually("it has stopped", || self.engine.done(&format) == "false");
            }
            Act::Restart => {
                self.act(Act::Stop);
                self.act(Act::Start);
            }
            Act::Remove => {
                // The same holds for removing what runs.
                run(self.engine.name(), &["kill", &self.name]);
                self.engine.done(&[self.engine.remove(), &[self.name.as_str()]].concat());
            }
        }
    }

    /// Has it done, whatever podman 4.3 first complains about on a busy machine.
    fn insist(&self, verb: &str) {
        toolcrib_tests::eventually(verb, || {
            let said = run(self.engine.name(), &[verb, &self.name]);
            if !said.status.success() {
                eprintln!("{verb} {}: {}", self.name, String::from_utf8_lossy(&said.stderr));
            }
            said.status.success()
        });
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let (program, name) = (self.engine.name(), self.name.as_str());
        let remove = [self.engine.remove(), &[name]].concat();
        if !run(program, &remove).status.success() {
            // It is paused, or gone already.
            run(program, &["unpause", name]);
            run(program, &remove);
        }
    }
}

/// What can become of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Stop,
    Start,
    Restart,
    Pause,
    Unpause,
    Remove,
}

/// A host behind an sshd of its own, on this machine: its processes and files can be looked at from here.
pub(crate) struct Sshd {
    directory: TempDir,
}

impl Sshd {
    pub(crate) fn new() -> Self {
        let sshd = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        sshd.back();
        sshd
    }

    fn script(&self, command: &str) {
        done(SCRIPT, &[command, &self.path("").display().to_string()]);
    }

    /// Cuts all connections; nobody is there any more.
    pub(crate) fn cut(&self) {
        self.script("sshd-kill");
    }

    /// Comes (back) on its port.
    pub(crate) fn back(&self) {
        self.script("sshd");
    }

    /// Has another host key from now on.
    pub(crate) fn rekey(&self) {
        self.script("sshd-rekey");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn home(&self, user: &str) -> PathBuf {
        self.path("home").join(user)
    }

    pub(crate) fn port(&self) -> u16 {
        std::fs::read_to_string(self.path("port")).ok().and_then(|port| port.trim().parse().ok()).expect("its port")
    }

    pub(crate) fn fingerprint(&self) -> String {
        let key = self.path("host_key.pub").display().to_string();
        let line = done("ssh-keygen", &["-l", "-E", "sha256", "-f", &key]);
        line.split(' ').nth(1).expect("a fingerprint").to_owned()
    }

    /// Writes a further configuration: these lines, which count first, then its own.
    pub(crate) fn config(&self, name: &str, first: &str) -> PathBuf {
        let own = std::fs::read_to_string(self.path("ssh_config")).expect("its configuration");
        self.bare_config(name, &format!("{first}\n{own}"))
    }

    /// Writes a configuration of these lines alone.
    pub(crate) fn bare_config(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a configuration");
        path
    }

    /// What names it on the command line, as a user of it.
    pub(crate) fn flags(&self, user: &str) -> Vec<String> {
        ssh_flags(user, &self.path("ssh_config"))
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        run(SCRIPT, &["sshd-down", &self.path("").display().to_string()]);
    }
}

pub(crate) fn ssh_flags(target: &str, config: &Path) -> Vec<String> {
    vec!["--ssh".into(), target.into(), "--set".into(), format!("ssh.config_file={:?}", config.display().to_string())]
}
