//! X-31: somebody begins a line at the prompt of a shared pane and leaves it there, the cursor anywhere, or an editor waiting for a key.
//! Outcome: the next command runs alone; the line never runs, and what stood there is told.
//! Switched off: the emptying of the line (`tmux/line.rs`): the command was appended, and the file that the line makes was there.

use serde_json::json;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Preparation, Program, eventually};

/// The only pane of a new server.
const PANE: &str = "%0";
/// What somebody began to type.
const LINE: &str = "true; touch ran #";

#[test]
fn a_begun_line_never_runs_with_the_next_command() {
    let mut siege = Preparation::new().set("confine.mode=off").in_panes().begin();
    let endings = [&[][..], &["C-a"], &["Escape"], &["M-1"], &["C-x"], &["C-q"], &["C-r"]];
    for (keys, column) in endings.into_iter().zip(11..) {
        // A prompt of a width of its own: the record is of this very one, and none is still to come that would take what is typed for it.
        let prompt = command(&format!("PS1='{}> '; clear", "-".repeat(column - 2)));
        let answer = siege.call("run_shell", prompt);
        assert_eq!(answer["result"]["exit_code"], json!(0), "{answer}");
        let record = || siege.program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_prompt"]);
        let shown = || siege.program.tmux(&["capture-pane", "-p", "-t", PANE]);
        // On a machine without a moment to spare, what is kept is where the cursor was before the prompt.
        let is_settled = || [column, 0].iter().any(|column| record().starts_with(&format!("{column}: ")));
        eventually("the prompt is settled", || is_settled() && shown().trim_end().ends_with("->"));
        let before = bytes_read(&siege.program);
        for key in [LINE].iter().chain(keys) {
            let _ = siege.program.tmux(&["send-keys", "-t", PANE, key]);
        }
        // Alt is one byte more, and C-q is for the terminal itself: no shell reads it.
        let bytes = |key: &&str| if *key == "C-q" { 0 } else { 1 + usize::from(key.starts_with("M-")) };
        let typed = LINE.len() + keys.iter().map(bytes).sum::<usize>();
        // A search shows that it has begun, and until then C-c would take its key away, not end it.
        let sign = if keys.contains(&"C-r") { "-i-search)" } else { "" };
        eventually("the line is shown", || shown().contains("touch ran") && shown().contains(sign));
        // A signal would throw away what it has not read.
        eventually("the shell has read every key", || bytes_read(&siege.program) >= before + typed as u64);
        let answer = siege.call("run_shell", command("echo alone"));
        assert_eq!(answer["result"]["stdout"], "alone\n", "{keys:?}: {answer}");
        assert!(!siege.program.path("work/ran").exists(), "{keys:?}: the line ran");
        // A search shows something else in its place.
        let said = format!("{}{}", answer["notices"], answer["result"]["notices"]);
        assert!(said.contains("an unfinished line in the pane was discarded"), "{keys:?}: {said}");
    }
    siege.lift();
}

/// Bytes that the pane's shell has read since it started.
fn bytes_read(program: &Program) -> u64 {
    let shell = program.tmux(&["display-message", "-p", "-t", PANE, "#{pane_pid}"]);
    let counts = std::fs::read_to_string(format!("/proc/{}/io", shell.trim())).expect("a shell in the pane");
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a count");
    read.parse().expect("a number")
}

/// A process that makes one call is gone before it could see the prompt behind it.
#[test]
fn a_begun_line_never_runs_with_the_command_of_another_process() {
    let program = Program::with_panes();
    let alone = || program.call(&["--yes", "run_shell", &command("echo alone").to_string()]).1;
    assert_eq!(alone()["result"]["stdout"], "alone\n");
    for keys in [&[][..], &["C-a"], &["Escape"]] {
        let shown = || program.tmux(&["capture-pane", "-p", "-t", PANE]);
        eventually("the prompt is there", || shown().trim_end().ends_with(['#', '$']));
        for key in [LINE].iter().chain(keys) {
            let _ = program.tmux(&["send-keys", "-t", PANE, key]);
        }
        eventually("it stands there", || shown().trim_end().contains("touch ran"));
        let answer = alone();
        assert_eq!(answer["result"]["stdout"], "alone\n", "{keys:?}: {answer}");
        assert!(!program.path("work/ran").exists(), "{keys:?}: the line ran");
        let _ = program.call(&["--yes", "run_shell", &command("clear").to_string()]);
    }
}
