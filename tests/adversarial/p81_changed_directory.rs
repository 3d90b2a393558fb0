//! P-81: the shell of a pane changes its directory while a person reads in which one a command is to run.
//! Outcome: the directory is read again when the answer comes, and the question is asked again with the new one; a command that had to wait for its turn is refused.
//! Switched off: without the second look (`question.rs`) and without `unmoved` (`run.rs`) the commands ran in the other directory.

use serde_json::Value;
use std::io::Write;
use toolcrib_tests::client::request;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, Terminal, eventually, skip};

/// Runs a script in a terminal, with commands in managed panes.
fn terminal(script: &str) -> Terminal {
    let program = Program::with_panes();
    for directory in ["one", "two", "three", "four"] {
        std::fs::create_dir(program.path("work").join(directory)).expect("a directory");
    }
    // The pane is there before the question.
    let (code, answer) = program.call(&["--yes", "run_shell", &command("true").to_string()]);
    assert_eq!(code, 0, "{answer}");
    let terminal = Terminal::idle(program);
    terminal.run(script);
    terminal
}

/// Has the shell of the shared pane change its directory, as something that runs there could.
fn move_pane(terminal: &Terminal, name: &str) {
    let directory = terminal.program.path("work").join(name).canonicalize().expect("a directory").display().to_string();
    let pane = terminal.program.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).trim().to_owned();
    let _ = terminal.program.tmux(&["send-keys", "-t", &pane, &format!(" cd '{directory}'"), "Enter"]);
    eventually("the pane is in the other directory", || {
        terminal.program.tmux(&["display-message", "-p", "-t", &pane, "#{pane_current_path}"]).trim() == directory
    });
}

/// Waits for the question that names this directory below the working one.
fn asked(terminal: &Terminal, times: usize, directory: &str) {
    let screen = terminal.asked(times);
    let last = screen.lines().rfind(|row| row.contains("   in \u{2502} ")).unwrap_or_else(|| panic!("{screen}"));
    assert!(last.ends_with(directory), "{screen}");
    assert!(screen.contains("  pane \u{2502} shared of toolcrib-"), "{screen}");
}

#[test]
fn a_pane_that_goes_elsewhere_is_asked_about_again() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = terminal(&Terminal::call(&command("touch planted")));
    asked(&terminal, 1, "/work");
    move_pane(&terminal, "one");
    terminal.press(&["y", "Enter"]);
    asked(&terminal, 2, "/work/one");
    assert!(!terminal.has("planted") && !terminal.has("one/planted"), "the command ran");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("one/planted") && !terminal.has("planted"));
}

#[test]
fn a_pane_that_goes_elsewhere_each_time_is_refused() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = terminal(&Terminal::call(&command("touch planted")));
    for (times, from, to) in [(1, "/work", "one"), (2, "/work/one", "two"), (3, "/work/two", "three")] {
        asked(&terminal, times, from);
        move_pane(&terminal, to);
        terminal.press(&["y", "Enter"]);
    }
    assert_eq!(terminal.ended(), 5);
    let error = terminal.out().remove(0)["error"].clone();
    assert!(
        error["message"].as_str().is_some_and(|text| text.ends_with("changed 3 times while a person was asked")),
        "{error}"
    );
    assert!(["planted", "one/planted", "two/planted", "three/planted"].iter().all(|file| !terminal.has(file)));
}

/// A yes for the session is given for what stands there, as any other.
#[test]
fn a_yes_for_the_session_does_not_skip_the_second_look() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = terminal(&Terminal::call(&command("touch planted")));
    asked(&terminal, 1, "/work");
    move_pane(&terminal, "one");
    terminal.press(&["s", "Enter"]);
    asked(&terminal, 2, "/work/one");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("planted") && !terminal.has("one/planted"), "the command ran");
}

#[test]
fn a_command_that_waited_behind_one_that_went_elsewhere_does_not_run_there() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let program = Program::with_panes();
    std::fs::create_dir(program.path("work/one")).expect("a directory");
    for pipe in ["in", "gate"] {
        let path = program.path("work").join(pipe);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    }
    let terminal = Terminal::idle(program);
    terminal.run("$toolcrib run --events < in > out");
    let mut input = std::fs::File::options().write(true).open(terminal.program.path("work/in")).expect("a pipe");
    let mut send = |id: u64, text: &str| {
        input.write_all(request(id, "run_shell", &command(text)).as_bytes()).expect("a line");
    };
    send(1, "touch begun; cat gate; cd one");
    terminal.asked(1);
    terminal.press(&["y", "Enter"]);
    eventually("the first command runs", || terminal.has("begun"));
    send(2, "touch planted");
    terminal.asked(2);
    terminal.press(&["y", "Enter"]);
    let said = |id: u64| {
        let out = terminal.out();
        out.into_iter().filter(|line| line["id"] == id).collect::<Vec<Value>>()
    };
    // From here on it waits for the pane, and its answer was taken in the directory that the question named.
    eventually("the second is admitted", || said(2).iter().any(|line| line["event"]["type"] == "started"));
    std::fs::write(terminal.program.path("work/gate"), "open").expect("a pipe");
    let refused = || said(2).into_iter().find(|line| line["event"].is_null());
    eventually("the second has ended", || refused().is_some());
    let error = refused().expect("an answer")["error"].clone();
    assert_eq!(error["kind"], "busy", "{error}");
    assert!(
        error["message"].as_str().is_some_and(|text| text.ends_with("/one` after the approval; nothing ran")),
        "{error}"
    );
    assert!(!terminal.has("planted") && !terminal.has("one/planted"), "the command ran");
}
