//! The program as a child process, with directories of its own.
#![expect(clippy::disallowed_methods, reason = "tests start the program they test")]

use crate::canary::{self, Sandbox};
use crate::{Client, Running, compiled, reuse_code, without_terminal};
use backend::sealed::program_sha256;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use toolcrib::workspace::Workspace;

/// Numbers of system calls, for [`Program::failing`].
pub const MOUNT: i64 = if cfg!(target_arch = "aarch64") { 40 } else { 165 };
/// Of those that this program makes cells by, and no other.
pub const MOUNT_SETATTR: i64 = 442;
/// Of Landlock's first.
pub const LANDLOCK: i64 = 444;

/// The user's settings.
const SETTINGS: &str = "config/toolcrib/toolcrib.toml";

/// `toolcrib` in a home of its own.
pub struct Program {
    directory: Sandbox,
    pub(crate) panes: bool,
    unconfined: bool,
    asks_rarely: bool,
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.panes {
            let _ = self.tmux(&["kill-server"]);
        }
    }
}

/// The file of a program of this system.
///
/// # Panics
///
/// Where it is not on PATH.
#[must_use]
pub fn on_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
    files.find(|file| file.is_file()).unwrap_or_else(|| panic!("there is no `{name}` on PATH"))
}

impl Program {
    /// A home with nothing in it but the compiled code of the built-in tools.
    #[must_use]
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same, in a directory of this one.
    #[must_use]
    pub fn below(parent: &Path) -> Self {
        let program = Self::cold_below(parent);
        reuse_code(compiled(), &program.path("state/toolcrib"));
        program
    }

    /// A home with nothing in it.
    #[must_use]
    pub fn cold() -> Self {
        Self::cold_below(&std::env::temp_dir())
    }

    /// The same, in a directory of this one.
    #[must_use]
    pub fn cold_below(parent: &Path) -> Self {
        let directory = Sandbox::below(parent, &["work", "config/toolcrib", "state", "data"]);
        let program = Self { directory, panes: false, unconfined: false, asks_rarely: false };
        if let Some(file) = program.directory.secret() {
            program.write(SETTINGS, format!("[secret.CANARY]\nfile = {file:?}\n"));
        }
        program
    }

    /// The same without settings, for a test that says or counts all that is in them. The canary is in environment and files.
    #[must_use]
    pub fn without_settings(self) -> Self {
        if self.directory.secret().is_some() {
            std::fs::remove_file(self.path(SETTINGS)).expect("settings of the canary");
        }
        self
    }

    /// The same without a canary: no settings, and neither variables nor files that are not the test's own.
    #[must_use]
    pub fn without_canary(self) -> Self {
        let mut program = self.without_settings();
        program.directory.clear();
        program
    }

    /// The variable of its environment that holds the canary.
    pub(crate) fn variable(&self) -> Option<(&'static str, &'static str)> {
        self.directory.variable()
    }

    /// The same, with commands in panes of a managed tmux, which ends with it. Others run plain processes.
    #[must_use]
    pub fn with_panes() -> Self {
        Self::new().in_panes(true)
    }

    /// Whether commands run in panes of a managed tmux, which ends with it.
    #[must_use]
    pub fn in_panes(mut self, panes: bool) -> Self {
        self.panes = panes;
        self
    }

    /// The same, whose commands have all rights of the user, as they have where nothing can confine them.
    #[must_use]
    pub fn unconfined(mut self) -> Self {
        self.unconfined = true;
        self
    }

    /// The same, which asks as users have it who set nothing. Others ask about each command, as many tests are about questions.
    #[must_use]
    pub fn asking_rarely(mut self) -> Self {
        self.asks_rarely = true;
        self
    }

    /// What its environment says of that.
    pub(crate) fn confinement(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let mode = self.unconfined.then_some(("TOOLCRIB_CONFINE_MODE", "off"));
        let ask = (!self.asks_rarely).then_some(("TOOLCRIB_CONFINE_ASK", "always"));
        mode.into_iter().chain(ask)
    }

    /// Commands run in panes of a managed tmux.
    #[must_use]
    pub fn has_panes(&self) -> bool {
        self.panes
    }

    /// tmux on the managed server, with these arguments; returns what it printed. The target `=toolcrib-agent` stands for the default
    /// session, whose full name depends on where the test runs.
    #[must_use]
    pub fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        let full = |argument: &&str| match argument.strip_prefix("=toolcrib-agent") {
            Some(rest) if rest.is_empty() || rest.starts_with(':') => format!("={}{rest}", self.session()),
            _ => (*argument).to_owned(),
        };
        tmux.arg("-S").arg(self.path("state/toolcrib/tmux/socket")).args(arguments.iter().map(full));
        let output = tmux.output().expect("tmux is installed");
        canary::check("what tmux shows", &output.stdout);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The files of the commands that panes of the default session were last given.
    #[must_use]
    pub fn staged(&self) -> Vec<PathBuf> {
        let session = self.session();
        let (_, workspace) = session.rsplit_once('-').expect("it ends with its workspace's");
        let directory = self.path("state/toolcrib/tmux").join(workspace).join(&session);
        let files = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("a name").path());
        files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("t-"))).collect()
    }

    /// The name of the default session: of the agent that has no name of its own, in its working directory.
    #[must_use]
    pub fn session(&self) -> String {
        self.session_in("work")
    }

    /// The name of the default session of a workspace, a path below its directory.
    #[must_use]
    pub fn session_in(&self, workspace: &str) -> String {
        tmux::default_session("agent", &Workspace::find(&self.path(workspace), &self.path("home")))
    }

    /// A path below its directory: `home`, `work`, `config`, `state`, `data`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file below its directory.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    /// Writes a program below its directory ([`write_program`]).
    pub fn write_program(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory");
        write_program(&path, text);
    }

    /// Declares a file as a program in the user's settings, with these lines besides.
    pub fn declares(&self, name: &str, file: &Path, more: &str) {
        let settings = self.path(SETTINGS);
        let before = std::fs::read_to_string(&settings).unwrap_or_default();
        let sha256 = program_sha256(file).expect("a program");
        let section =
            format!("[program.{name}]\npath = {file:?}\nsha256 = {sha256:?}\nabout = \"What {name} does.\"\n{more}\n");
        self.write(SETTINGS, before + &section);
    }

    /// The program's own file, built beside the tests.
    #[must_use]
    pub fn file() -> PathBuf {
        let test = std::env::current_exe().expect("a running test has a file");
        let file = test.ancestors().nth(2).expect("tests lie in PROFILE/deps").join("toolcrib");
        assert!(file.exists(), "{} is missing: build it first, as tests/run does", file.display());
        file
    }

    /// The command with its environment, ready for arguments.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(Self::file());
        command.args(arguments).current_dir(self.path("work")).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TERM", "xterm")
            .env("TOOLCRIB_TMUX_ENABLED", self.panes.to_string());
        // How commands are confined can be said for a whole suite.
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLCRIB_CONFINE_")));
        command.envs(self.confinement()).envs(self.variable());
        for (name, directory) in [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data")]
        {
            command.env(name, self.path(directory));
        }
        command
    }

    /// The command where these system calls fail with `EPERM`, for it and for all that it starts.
    #[must_use]
    pub fn failing(&self, calls: &[i64], arguments: &[&str]) -> Command {
        if calls.is_empty() {
            return self.command(arguments);
        }
        let calls: Vec<_> = calls.iter().map(i64::to_string).collect();
        self.started_by(&["python3", "-c", include_str!("failing.py"), &calls.join(",")], arguments)
    }

    /// The command, started by another one, whose last arguments are the program and its arguments.
    #[must_use]
    pub fn started_by(&self, line: &[&str], arguments: &[&str]) -> Command {
        let given = self.command(arguments);
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).arg(given.get_program()).args(given.get_args());
        command.current_dir(self.path("work")).env_clear();
        command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    /// How a script of `sh` begins that calls it as `$toolcrib`: in the working directory, with its environment.
    #[must_use]
    pub fn shell_environment(&self) -> String {
        let path = |name: &str| self.path(name).display().to_string();
        let confinement: String = self.confinement().map(|(name, value)| format!("export {name}={value}\n")).collect();
        format!(
            "cd '{}'\nexport HOME='{}' XDG_CONFIG_HOME='{}' XDG_STATE_HOME='{}' XDG_DATA_HOME='{}' TOOLCRIB_TMUX_ENABLED={}\n\
             {confinement}unset TMUX TMUX_PANE TOOLCRIB_SESSION\ntoolcrib='{}'",
            path("work"),
            path("home"),
            path("config"),
            path("state"),
            path("data"),
            self.panes,
            Self::file().display(),
        )
    }

    /// Runs it to its end, without stdin and without a terminal.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = without_terminal(&mut self.command(arguments)).stdin(Stdio::null()).output();
        let output = output.expect("the program starts");
        canary::check_output(&output);
        output
    }

    /// Runs it with this text on stdin.
    #[must_use]
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut running = self.start(arguments);
        running.write(input);
        running.finish()
    }

    /// Starts it.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Starts a host with these arguments, of which `run` is one; returns its client.
    #[must_use]
    pub fn client(&self, arguments: &[&str]) -> Client {
        Client::of(self.start(arguments))
    }

    /// Calls a tool; returns exit code and envelope.
    #[must_use]
    pub fn call(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["call"], arguments].concat());
        let stdout = String::from_utf8(output.stdout).expect("text");
        let envelope = serde_json::from_str(&stdout).unwrap_or_else(|error| {
            panic!("{error}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code().expect("an exit code"), envelope)
    }

    /// The directory that it was given.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.directory.path()
    }
}

/// Writes a program, in place, which everybody may execute.
///
/// Another process does: what this one has open for writing, the children have, too, that other threads start at that moment, until they are
/// other programs; and what is open for writing cannot be executed ("Text file busy").
pub fn write_program(path: &Path, text: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = shell.spawn().expect("a shell");
    writer.stdin.take().expect("piped").write_all(text.as_ref()).expect("it reads all");
    assert!(writer.wait().expect("it ends").success(), "{} cannot be written", path.display());
}
