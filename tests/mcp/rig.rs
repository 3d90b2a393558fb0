//! Where servers of these tests are started: homes with settings, grants and plugins.

use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use toolcrib_tests::mcp::{Client, Era, forms};
use toolcrib_tests::{Program, digest, guest, reuse_code};

/// Told when the list of tools is another one.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Whether commands can run in panes here.
pub(crate) fn has_tmux() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("tmux").exists())
}

/// Where servers are started: a home, settings, plugins. The home lasts as long as a server in it.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) program: Arc<Program>,
    flags: Vec<String>,
    /// Options of `serve` itself.
    options: Vec<String>,
    /// The directory where they are started.
    directory: &'static str,
}

/// A home in which all tools and the guests of these tests were compiled, once.
static SEED: LazyLock<Program> = LazyLock::new(|| {
    let seed = Program::with_panes();
    for name in ["hostile", "shell_echo", "word_count"] {
        seed.write(&format!("data/toolcrib/plugins/{name}.wasm"), bytes_of(name));
    }
    assert!(seed.run(&["tools"]).status.success(), "the tools are listed");
    seed
});

/// A guest of the tests.
pub(crate) fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(guest(name)).expect("a guest that was built")
}

impl Home {
    /// Commands run as plain processes.
    pub(crate) fn new() -> Self {
        Self::of(Program::new())
    }

    /// Commands run in panes, unless a flag says otherwise.
    pub(crate) fn with_panes() -> Self {
        Self::of(Program::with_panes())
    }

    /// Nothing was compiled there.
    pub(crate) fn fresh() -> Self {
        Self { program: Arc::new(Program::cold()), flags: Vec::new(), options: Vec::new(), directory: "work" }
    }

    /// As users have it who set nothing.
    pub(crate) fn with_default_settings() -> Self {
        Self::of(Program::with_panes().asking_rarely())
    }

    fn of(program: Program) -> Self {
        reuse_code(SEED.root(), &program.path("state/toolcrib"));
        Self { program: Arc::new(program), flags: Vec::new(), options: Vec::new(), directory: "work" }
    }

    /// The same home, where servers are started in another directory below that of the program.
    pub(crate) fn within(&self, directory: &'static str) -> Self {
        std::fs::create_dir_all(self.program.path(directory)).expect("a directory");
        Self { directory, ..self.clone() }
    }

    /// Adds flags of the command line.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(ToString::to_string));
        self
    }

    /// Adds options of `serve`.
    pub(crate) fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(ToString::to_string));
        self
    }

    /// Adds a setting.
    pub(crate) fn set(self, setting: &str) -> Self {
        self.flags(&["--set", setting])
    }

    /// Lets commands run without a question.
    pub(crate) fn unasked(self) -> Self {
        self.set("tools.shell_confirm=false")
    }

    /// Grants a guest of the tests something, whether or not it is there yet.
    pub(crate) fn grant(self, name: &str, line: &str) -> Self {
        let home = self.set(&format!("plugin.{name}.sha256={:?}", digest(name)));
        home.set(&format!("plugin.{name}.{line}"))
    }

    /// Lets a guest of the tests read in the working directory.
    pub(crate) fn reading(self, name: &str) -> Self {
        let work = self.program.path("work");
        self.grant(name, &format!("files.read=[{work:?}]"))
    }

    /// Puts a guest of the tests into the user's directory of plugins.
    pub(crate) fn guest(self, name: &str) -> Self {
        self.install(name, &bytes_of(name));
        self
    }

    /// Puts a component there, in one step, in place of the one that has its name.
    pub(crate) fn install(&self, name: &str, bytes: &[u8]) {
        let plugin = self.plugin(name);
        std::fs::create_dir_all(plugin.parent().expect("a file has a directory")).expect("a directory");
        self.program.write("data/next", bytes);
        std::fs::rename(self.program.path("data/next"), plugin).expect("a file that can be moved");
    }

    /// The file of a plugin.
    pub(crate) fn plugin(&self, name: &str) -> PathBuf {
        self.program.path(&format!("data/toolcrib/plugins/{name}.wasm"))
    }

    /// Starts a server for a client that says nothing yet.
    pub(crate) fn start(&self, era: Era) -> Client {
        self.start_for(era, forms())
    }

    fn start_for(&self, era: Era, capabilities: Value) -> Client {
        let options = self.options.iter().map(String::as_str);
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).chain(["serve"]).chain(options).collect();
        let mut command = self.program.command(&flags);
        command.current_dir(self.program.path(self.directory));
        Client::start(&mut command, self.program.clone(), era, capabilities)
    }

    /// Starts a server, and tells it who is there.
    pub(crate) fn serve(&self, era: Era) -> Client {
        self.serve_to(era, forms())
    }

    /// The same for a client with these capabilities.
    pub(crate) fn serve_to(&self, era: Era, capabilities: Value) -> Client {
        let mut client = self.start_for(era, capabilities);
        client.shake_hands();
        client
    }
}
