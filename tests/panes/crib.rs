//! A host whose commands run in panes of a managed tmux of its own.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, Program, eventually};

/// The program while it serves.
pub(crate) struct Crib {
    // Ends before its home goes.
    client: Client,
    pub(crate) program: Program,
    settings: Vec<String>,
}

/// The shared pane of the first session, whatever that is called.
pub(crate) const SHARED: &str = "%0";

/// Starts one of several hosts that share a home.
pub(crate) fn serve(program: &Program, settings: &[&str]) -> Client {
    let set = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["--yes"].into_iter().chain(set).chain(["run"]).collect();
    program.client(&arguments)
}

/// Waits until `sleep` has the terminal of the shared pane.
pub(crate) fn until_it_sleeps(program: &Program) {
    let front = || program.tmux(&["display-message", "-p", "-t", SHARED, "#{pane_current_command}"]);
    eventually("it sleeps", || front() == "sleep\n");
}

impl Deref for Crib {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Crib {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// All commands go to the shared pane.
pub(crate) const ONE_PANE: &str = "tmux.extra_panes=false";

impl Crib {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn of_one_pane() -> Self {
        Self::with(&[ONE_PANE])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        Self::on(Program::with_panes(), settings)
    }

    pub(crate) fn on(program: Program, settings: &[&str]) -> Self {
        let client = serve(&program, settings);
        Self { client, program, settings: settings.iter().map(ToString::to_string).collect() }
    }

    /// The next host in the same home.
    pub(crate) fn again(self) -> Self {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        Self::on(self.program, &settings)
    }

    /// What a command that must fail says.
    pub(crate) fn refusal(&mut self, text: &str) -> String {
        self.failure("run_shell", command(text))
    }

    /// Waits until the shared pane shows a text; false when it does not within some seconds.
    pub(crate) fn shows(&mut self, text: &str) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if self.screen().contains(text) {
                return true;
            }
        }
        false
    }
}
