//! The question at the terminal, with tmux as the terminal: what it shows, and what answers it.
#![expect(clippy::disallowed_methods, reason = "tmux is the terminal")]

use crate::process::{command, lives, request};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;
use toolcrib_tests::{Program, eventually, skip};

const QUESTION: &str = "Allow?";

/// A terminal of its own in which a script runs. `$toolcrib` is the program; the script's end is written to `code`.
struct Terminal {
    program: Program,
}

fn is_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()))
}

impl Terminal {
    fn new(script: &str) -> Self {
        let terminal = Self { program: Program::new() };
        terminal.run(script);
        terminal
    }

    fn run(&self, script: &str) {
        let path = |name: &str| self.program.path(name).display().to_string();
        let script = format!(
            "cd '{}'\nexport HOME='{}' XDG_CONFIG_HOME='{}' XDG_STATE_HOME='{}' XDG_DATA_HOME='{}' TOOLCRIB_TMUX_ENABLED=false\ntoolcrib='{}'\n{script}\n\
             echo $? > ../code.part; mv ../code.part ../code\n",
            path("work"),
            path("home"),
            path("config"),
            path("state"),
            path("data"),
            Program::file().display(),
        );
        self.program.write("script", script);
        self.program.write("tmux.conf", "set -g remain-on-exit on\nset -s escape-time 0\n");
        let run = format!("exec sh '{}'", path("script"));
        let made = self.tmux(&["-f", &path("tmux.conf"), "new-session", "-d", "-x", "150", "-y", "50", &run]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Runs tmux on a server of this terminal alone: its socket has a random name in a directory of its own.
    fn tmux(&self, arguments: &[&str]) -> Output {
        let name = self.program.root().file_name().unwrap();
        let mut tmux = Command::new("tmux");
        tmux.arg("-L").arg(name).args(arguments).env_remove("TMUX").env("TMUX_TMPDIR", self.program.root());
        tmux.output().expect("tmux starts")
    }

    /// What stands on the screen; wrapped lines joined, each without the blanks at its end.
    fn screen(&self) -> String {
        let screen = String::from_utf8(self.tmux(&["capture-pane", "-p", "-J"]).stdout).expect("text");
        screen.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Waits for so many questions; returns the screen.
    fn asked(&self, times: usize) -> String {
        eventually("the question is asked", || self.screen().matches(QUESTION).count() >= times);
        let screen = self.screen();
        assert_eq!(screen.matches(QUESTION).count(), times, "{screen}");
        screen
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    /// Waits for the script's end; returns the exit code of its last command.
    fn ended(&self) -> i32 {
        let file = self.program.path("code");
        eventually("the script ends", || file.exists());
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    /// The lines on stdout, which the script wrote to `out`.
    fn out(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.program.path("work/out")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }

    fn has(&self, file: &str) -> bool {
        self.program.path("work").join(file).exists()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A script that calls `run_shell` with these arguments, its envelope in `out`.
fn call(arguments: &Value) -> String {
    let arguments = arguments.to_string().replace('\'', r"'\''");
    format!("$toolcrib call run_shell '{arguments}' > out")
}

#[test]
fn the_question_shows_what_where_who_and_why() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = command("touch ran\necho 'second line'");
    arguments["why"] = json!("to see whether it works");
    arguments["risk"] = json!("medium");
    arguments["mutation"] = json!(true);
    let terminal = Terminal::new(&call(&arguments));
    let screen = terminal.asked(1);
    for text in [
        "run_shell (built in) wants to run on local, declared medium risk, changes something\n",
        "  why to see whether it works\n",
        "  $ touch ran\n    echo 'second line'\n",
        "Allow? [y]es, [N]o, [s]ession: all commands of this plugin until Toolcrib ends >",
    ] {
        assert!(screen.contains(text), "{text:?} is not in:\n{screen}");
    }
    assert!(!terminal.has("ran"));
}

#[test]
fn yes_runs_the_command() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    for answer in ["y", "yes", "Y"] {
        let terminal = Terminal::new(&call(&command("touch ran; echo hello")));
        terminal.asked(1);
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), 0);
        assert!(terminal.has("ran"));
        assert_eq!(terminal.out()[0]["result"]["stdout"], "hello\n");
    }
}

#[test]
fn no_an_empty_line_and_the_end_of_input_refuse() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    for keys in [&["n", "Enter"][..], &["N", "Enter"], &["no", "Enter"], &["Enter"], &["C-d"]] {
        let terminal = Terminal::new(&call(&command("touch ran")));
        terminal.asked(1);
        terminal.press(keys);
        assert_eq!(terminal.ended(), 5, "{keys:?}");
        assert!(!terminal.has("ran"), "{keys:?}");
        assert_eq!(terminal.out()[0]["error"]["message"], "Command execution denied by user.");
    }
}

#[test]
fn what_is_no_answer_is_asked_again() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&call(&command("touch ran")));
    terminal.asked(1);
    terminal.press(&["yess", "Enter"]);
    terminal.asked(2);
    assert!(!terminal.has("ran"));
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("ran"));
}

#[test]
fn stdin_carries_requests_while_the_terminal_answers() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal { program: Program::new() };
    let lines = ["one", "two"].map(|name| request(name, "run_shell", &command(&format!("touch {name}"))));
    terminal.program.write("work/in", lines.concat());
    terminal.run("$toolcrib run < in > out");
    let first = if terminal.asked(1).contains("$ touch one") { "one" } else { "two" };
    terminal.press(&["y", "Enter"]);
    terminal.asked(2);
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let out = terminal.out();
    assert_eq!(out.len(), 2);
    for answer in out {
        let ran = answer["id"] == first;
        assert_eq!(
            (answer["result"].is_object(), terminal.has(answer["id"].as_str().unwrap())),
            (ran, ran),
            "{answer}"
        );
    }
}

#[test]
fn yes_for_the_session_is_asked_once() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal { program: Program::new() };
    assert!(Command::new("mkfifo").arg(terminal.program.path("work/in")).status().unwrap().success());
    terminal.run("$toolcrib run < in > out");
    let mut input = fs::File::options().write(true).open(terminal.program.path("work/in")).unwrap();
    let mut send = |id: u64| {
        use std::io::Write;
        input.write_all(request(id, "run_shell", &command(&format!("touch ran{id}"))).as_bytes()).unwrap();
    };
    send(1);
    terminal.asked(1);
    terminal.press(&["s", "Enter"]);
    eventually("the first command ran", || terminal.has("ran1"));
    (2..5).for_each(&mut send);
    eventually("the others ran", || (2..5).all(|id| terminal.has(&format!("ran{id}"))));
    terminal.asked(1);
    drop(input);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.out().len() == 4 && terminal.out().iter().all(|answer| answer["result"]["exit_code"] == 0));
}

/// Calls that already wait when the person says yes for the session are meant too.
#[test]
fn yes_for_the_session_answers_the_questions_that_wait() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal { program: Program::new() };
    let lines: String = (0..3).map(|id| request(id, "run_shell", &command(&format!("touch ran{id}")))).collect();
    terminal.program.write("work/in", lines);
    terminal.run("$toolcrib run < in > out");
    terminal.asked(1);
    terminal.press(&["s", "Enter"]);
    eventually("all ran, or it asks again", || {
        (0..3).all(|id| terminal.has(&format!("ran{id}"))) || terminal.screen().matches(QUESTION).count() > 1
    });
    terminal.asked(1);
}

#[test]
fn escape_sequences_in_a_command_are_shown_harmless() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = command("echo \u{1b}[2J\u{1b}[1;1H\u{1b}]2;owned\u{7}shown\r\u{8}");
    arguments["why"] = json!("\u{1b}[1;1H\u{1b}[Ka reason\u{1b}[30m");
    let terminal = Terminal::new(&call(&arguments));
    let screen = terminal.asked(1);
    for text in ["run_shell (built in) wants to run on local", "  why a reason", "shown", QUESTION] {
        assert!(screen.contains(text), "{text:?} is not in:\n{screen}");
    }
    let lines: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with("run_shell") && lines.last().unwrap().starts_with(QUESTION), "{screen}");
    let title = terminal.tmux(&["display-message", "-p", "#{pane_title}"]).stdout;
    assert!(!String::from_utf8_lossy(&title).contains("owned"));
}

#[test]
fn a_reason_of_several_lines_cannot_pass_for_the_command() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let mut arguments = command("touch ran");
    arguments["why"] = json!("to look\n  $ ls\nAllow? [y]es");
    let terminal = Terminal::new(&call(&arguments));
    eventually("the question is asked", || terminal.screen().contains("until Toolcrib ends >"));
    let screen = terminal.screen();
    let commands: Vec<&str> = screen.lines().filter(|line| line.starts_with("  $ ")).collect();
    assert_eq!(commands, ["  $ touch ran"], "{screen}");
    assert_eq!(screen.lines().filter(|line| line.starts_with(QUESTION)).count(), 1, "{screen}");
}

#[test]
fn a_command_of_several_lines_cannot_pass_for_the_question() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&call(&command("true\nAllow? [y]es\n  why because\n\u{2028}Allow?\u{85}Allow?")));
    eventually("the question is asked", || terminal.screen().contains("until Toolcrib ends >"));
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|line| line.starts_with(QUESTION)).count(), 1, "{screen}");
    assert_eq!(screen.lines().filter(|line| line.starts_with("  why ")).count(), 1, "{screen}");
}

#[test]
fn ctrl_c_at_the_question_ends_the_call_and_runs_nothing() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    // The shell of the script would end with the call; it has to write its code.
    let terminal = Terminal::new(&format!("trap : INT\n{}", call(&command("touch ran"))));
    terminal.asked(1);
    terminal.press(&["C-c"]);
    assert_eq!(terminal.ended(), 130);
    assert!(!terminal.has("ran"));
    assert_eq!(terminal.out()[0]["error"]["kind"], "cancelled");
}

#[test]
fn ctrl_c_while_a_command_runs_ends_it() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let script = call(&command("echo $$ > pid; touch ran; sleep 1000")).replace("call", "--yes call");
    let terminal = Terminal::new(&format!("trap : INT\n{script}"));
    eventually("the command runs", || terminal.has("ran"));
    terminal.press(&["C-c"]);
    assert_eq!(terminal.ended(), 130);
    let pid = fs::read_to_string(terminal.program.path("work/pid")).unwrap();
    assert!(!lives(&pid));
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal { program: Program::new() };
    assert!(Command::new("mkfifo").arg(terminal.program.path("work/gate")).status().unwrap().success());
    terminal.run(&format!("echo closed; cat gate > /dev/null; {}", call(&command("touch ran"))));
    eventually("the script waits", || terminal.screen().contains("closed"));
    terminal.press(&["y", "Enter", "y", "Enter"]);
    eventually("the terminal has the keys", || terminal.screen().matches("y\n").count() == 2);
    fs::write(terminal.program.path("work/gate"), "open").unwrap();
    terminal.asked(1);
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
}

#[test]
fn the_terminal_is_left_as_it_was() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let script =
        format!("stty -a > before; {}; stty -a > after; read line; test \"$line\" = typed", call(&command("true")));
    let terminal = Terminal::new(&script);
    terminal.asked(1);
    terminal.press(&["y", "Enter"]);
    eventually("the call has ended", || terminal.has("after"));
    terminal.press(&["typed", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let mode = |name: &str| fs::read_to_string(terminal.program.path("work").join(name)).unwrap();
    assert_eq!(mode("before"), mode("after"));
}

#[test]
fn a_question_that_nobody_answers_ends_by_itself() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let script = call(&command("touch ran")).replace("call", "--set approval.timeout_ms=300 call");
    let terminal = Terminal::new(&script);
    assert_eq!(terminal.ended(), 5);
    assert!(terminal.screen().contains(QUESTION) && !terminal.has("ran"));
    assert!(terminal.out()[0]["error"]["message"].as_str().unwrap().starts_with("nobody answered within "));
}

#[test]
fn a_plugin_of_others_is_named_as_such() {
    if !is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal { program: Program::new() };
    crate::process::install(&terminal.program, "shell_echo");
    terminal.run(
        "$toolcrib plugin allow ../data/toolcrib/plugins/shell_echo.wasm > allowed\n$toolcrib call shell_echo text=hello > out",
    );
    let screen = terminal.asked(1);
    assert!(screen.contains("shell_echo (third party) wants to run on local, declared low risk\n"), "{screen}");
    assert!(screen.contains("  $ printf %s 'hello'\n"), "{screen}");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert_eq!(terminal.out()[0]["result"], "hello");
}
