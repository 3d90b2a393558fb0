//! A person at a terminal of their own: a pane of a tmux server that the program under test does not manage.
#![expect(clippy::disallowed_methods, reason = "tmux is the terminal")]

use crate::{Program, canary, eventually};
use std::process::Command;

/// A pane with `sh` in it, in the directory `work` of a home of its own. There, `toolcrib` is the program. What it types there cannot be
/// confined, so its commands are not either.
pub struct Seat {
    /// The home.
    pub program: Program,
    /// The pane, as tmux knows it: `%0`.
    pub pane: String,
}

impl Default for Seat {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Seat {
    /// A seat in a session named `mine`.
    #[must_use]
    pub fn new() -> Self {
        let mut seat = Self { program: Program::with_panes().unconfined(), pane: String::new() };
        let path = |name: &str| seat.program.path(name).display().to_string();
        let variables = [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
            ("ENV", "nothing"),
        ]
        .map(|(name, directory)| format!("{name}={}", path(directory)));
        let (size, work) = (["-x", "150", "-y", "50"], path("work"));
        let mut arguments = vec!["-f", "/dev/null", "new-session", "-d", "-s", "mine", "-c", &work];
        arguments.extend(size);
        arguments.extend(variables.iter().flat_map(|variable| ["-e", variable]));
        arguments.extend(["-e", "TOOLCRIB_CONFINE_MODE=off"]);
        arguments.push("sh");
        let _ = seat.tmux(&arguments);
        seat.pane = seat.tmux(&["display-message", "-p", "-t", "mine", "#{pane_id}"]).trim().to_owned();
        assert!(seat.pane.starts_with('%'), "no tmux: `{}`", seat.pane);
        seat.types(&format!("toolcrib() {{ '{}' \"$@\"; }}; PS1='$ '", Program::file().display()));
        // What is typed to a shell that is not there yet is not echoed where it belongs.
        eventually("its prompt is there", || seat.screen().trim_end().ends_with('$'));
        seat
    }

    /// tmux on the server of this seat; returns what it printed.
    #[must_use]
    pub fn tmux(&self, arguments: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.program.path("seat")).args(arguments).env_remove("TMUX").env_remove("TMUX_PANE");
        let output = tmux.envs(self.program.variable()).output().expect("tmux is installed");
        canary::check("what a terminal shows", &output.stdout);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What tmux says in `$TMUX` there.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{},1,0", self.program.path("seat").display())
    }

    /// Types a line, as the person does.
    pub fn types(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", &self.pane, "-l", "--", line]);
        let _ = self.tmux(&["send-keys", "-t", &self.pane, "Enter"]);
    }

    /// What stands on the screen, wrapped lines joined.
    #[must_use]
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-t", &self.pane])
    }

    /// Waits until the screen shows a text.
    pub fn shows(&self, text: &str) {
        eventually(&format!("the screen shows `{text}`"), || self.screen().contains(text));
    }
}
