//! A terminal of a size, with a script in it that runs the program: tmux is the terminal, keys are pressed, the screen is read.
#![expect(clippy::disallowed_methods, reason = "tmux is the terminal")]

use crate::canary;
use crate::wait::within;
use crate::{PATIENCE, Program, eventually};
use serde_json::Value;
use std::process::{Command, Output};
use std::sync::OnceLock;

/// What stands before the answers of a question.
pub const QUESTION: &str = "Allow?";
/// How a page ends that is not the last.
pub const MORE: &str = "shows more, [n]o >";

/// What keeps the screen as the script has left it, until the terminal is dropped.
const WAIT: &str = "exec sleep 3600\n";
/// The title of a terminal that has drawn all that its script wrote.
const ENDED: &str = "the script has ended";

/// A terminal in which a script runs, on a server of its own. `$toolcrib` is the program; the script's end is written to `code`.
pub struct Terminal {
    /// The home and the directories of the script.
    pub program: Program,
    size: (u16, u16),
}

impl Terminal {
    /// Whether tmux is installed.
    #[must_use]
    pub fn is_there() -> bool {
        static THERE: OnceLock<bool> = OnceLock::new();
        *THERE.get_or_init(|| Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()))
    }

    /// A wide terminal that runs a script.
    #[must_use]
    pub fn new(script: &str) -> Self {
        let terminal = Self::idle(Program::new());
        terminal.run(script);
        terminal
    }

    /// The same of so many columns and rows.
    #[must_use]
    pub fn sized(size: (u16, u16), script: &str) -> Self {
        let mut terminal = Self::idle(Program::new());
        terminal.size = size;
        terminal.run(script);
        terminal
    }

    /// A terminal that is to run a script with this home.
    #[must_use]
    pub fn idle(program: Program) -> Self {
        Self { program, size: (150, 50) }
    }

    /// The same, of so many columns, and with more rows than anything needs.
    #[must_use]
    pub fn columns(mut self, columns: u16) -> Self {
        self.size = (columns, 600);
        self
    }

    /// Runs a script, once.
    pub fn run(&self, script: &str) {
        // A sequence that was left open ends before that of the title begins.
        let script = format!(
            "{}\n{script}\necho $? > ../code.part; mv ../code.part ../code\n\
             printf '\\033\\\\\\033]2;{ENDED}\\033\\\\'\n{WAIT}",
            self.program.shell_environment()
        );
        let path = |name: &str| self.program.path(name).display().to_string();
        self.program.write("script", script);
        self.program.write("tmux.conf", "set -s escape-time 0\n");
        let run = format!("exec sh '{}'", path("script"));
        let (columns, rows) = (self.size.0.to_string(), self.size.1.to_string());
        let made = self.tmux(&["-f", &path("tmux.conf"), "new-session", "-d", "-x", &columns, "-y", &rows, &run]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Runs tmux on the server of this terminal: its socket has a random name in a directory of its own.
    #[must_use]
    pub fn tmux(&self, arguments: &[&str]) -> Output {
        let name = self.program.root().file_name().expect("a temporary directory has a name");
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-L").arg(name).args(arguments).env_remove("TMUX").env("TMUX_TMPDIR", self.program.root());
        // The first one starts the server, whose environment the script gets.
        tmux.envs(self.program.variable());
        tmux.output().expect("tmux starts")
    }

    /// What stands on the screen; wrapped lines joined, each without the blanks at its end.
    #[must_use]
    pub fn screen(&self) -> String {
        self.captured(&["-J"])
    }

    /// The same with all that was scrolled away.
    #[must_use]
    pub fn history(&self) -> String {
        self.captured(&["-J", "-S", "-"])
    }

    /// The screen, row by row as a person sees it.
    #[must_use]
    pub fn rows(&self) -> String {
        self.captured(&[])
    }

    fn captured(&self, flags: &[&str]) -> String {
        let output = self.tmux(&[&["capture-pane", "-p"], flags].concat()).stdout;
        canary::check("what a terminal shows", &output);
        String::from_utf8_lossy(&output).lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Waits until the screen is so; returns it as it was then, since it may have changed again.
    fn once(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        eventually(what, || {
            screen = self.screen();
            is_so(&screen)
        });
        screen
    }

    /// Waits until the screen shows a text; returns the screen.
    pub fn shows(&self, text: &str) -> String {
        self.once(&format!("the screen shows `{text}`"), |screen| screen.contains(text))
    }

    /// Waits for so many questions, the last of them drawn to its end; returns the screen.
    pub fn asked(&self, times: usize) -> String {
        let is_whole = |screen: &str| screen.rsplit(QUESTION).next().is_some_and(|rest| rest.contains('>'));
        let screen =
            self.once("the question is asked", |screen| screen.matches(QUESTION).count() >= times && is_whole(screen));
        assert_eq!(screen.matches(QUESTION).count(), times, "{screen}");
        screen
    }

    /// Presses keys, as tmux names them.
    pub fn press(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success(), "{keys:?}");
    }

    /// Makes the window so many columns and rows large.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        assert!(self.tmux(&["resize-window", "-x", &columns, "-y", &rows]).status.success());
    }

    /// Waits until the script has ended and all that it wrote is drawn; returns the exit code of its last command.
    #[must_use]
    pub fn ended(&self) -> i32 {
        let file = self.program.path("code");
        within(PATIENCE, "the script ends", || file.exists());
        within(PATIENCE, "the terminal has drawn all", || {
            let titles = self.tmux(&["list-panes", "-a", "-F", "#{pane_title}"]);
            // One that is gone draws nothing more.
            !titles.status.success() || String::from_utf8_lossy(&titles.stdout).lines().any(|title| title == ENDED)
        });
        std::fs::read_to_string(file).expect("a file").trim().parse().expect("a number")
    }

    /// The lines on stdout, which the script wrote to `out`.
    #[must_use]
    pub fn out(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.program.path("work/out")).expect("a file");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }

    /// Whether a file is in the working directory.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.program.path("work").join(file).exists()
    }

    /// A script that calls `run_shell` with these arguments, its envelope in `out`.
    #[must_use]
    pub fn call(arguments: &Value) -> String {
        let arguments = arguments.to_string().replace('\'', r"'\''");
        format!("$toolcrib call run_shell '{arguments}' > out")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
