//! `toolcrib approve`: a question is answered from a second terminal, where no command could do that.

use crate::rig::{Via, program, word};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, QUESTION, Terminal, eventually};

/// Runs a script in a second window of a terminal.
pub(crate) fn in_a_second_window(terminal: &Terminal, script: &str) {
    let script = format!(
        "{}\n{script}\necho $? >../second.part; mv ../second.part ../second\nsleep 60",
        terminal.program.shell_environment()
    );
    terminal.program.write("second-script", script);
    let run = format!("exec sh '{}'", terminal.program.path("second-script").display());
    assert!(terminal.tmux(&["new-window", "-d", "-n", "second", &run]).status.success());
}

pub(crate) fn second_screen(terminal: &Terminal) -> String {
    let output = terminal.tmux(&["capture-pane", "-p", "-J", "-t", "second"]).stdout;
    String::from_utf8_lossy(&output).into_owned()
}

/// Finds the call that asks.
pub(crate) const ASKS: &str =
    "id=$($toolcrib approve --json | sed -n 's/.*\"call\": *\"\\([0-9a-f]*\\)\".*/\\1/p' | head -n 1)\n";

#[test]
fn a_question_is_answered_from_a_second_terminal() {
    for (answer, runs) in [("y", true), ("n", false)] {
        let terminal = Terminal::idle(program(Via::Process));
        terminal.run(&format!("$toolcrib call run_shell '{}' >out", command("touch ran")));
        terminal.shows(QUESTION);
        eventually("it can be asked for", || {
            std::fs::read_dir(terminal.program.path("state/toolcrib/calls")).is_ok_and(|sockets| sockets.count() > 0)
        });
        in_a_second_window(&terminal, &format!("{ASKS}$toolcrib approve >list\n$toolcrib approve $id"));
        eventually("the question is asked there", || second_screen(&terminal).contains(QUESTION));
        let shown = second_screen(&terminal).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            shown.contains("run_shell (built in) wants to run on local, confined") && shown.contains("touch ran"),
            "{shown}"
        );
        let list = std::fs::read_to_string(terminal.program.path("work/list")).expect("a list");
        assert!(list.contains("touch ran") && list.contains("wants to run on local"), "{list}");
        assert!(!terminal.has("ran"));
        let _ = terminal.tmux(&["send-keys", "-t", "second", answer, "Enter"]);
        assert_eq!(terminal.ended(), if runs { 0 } else { 5 });
        assert_eq!(terminal.has("ran"), runs);
        eventually("it ended", || terminal.program.path("second").exists());
        let told = if runs { "allowed" } else { "denied" };
        eventually("the second screen shows it", || second_screen(&terminal).contains(told));
    }
}

/// Where a command could be the one who answers, questions are neither told nor answered.
#[test]
fn where_commands_are_not_confined_nobody_else_answers() {
    let terminal = Terminal::idle(program(Via::Process).unconfined());
    terminal.run(&format!("$toolcrib call run_shell '{}' >out", command("touch ran")));
    terminal.shows(QUESTION);
    let calls = terminal.program.path("state/toolcrib/calls");
    eventually("it can be asked for", || std::fs::read_dir(&calls).is_ok_and(|sockets| sockets.count() > 0));
    let script = "import glob,socket,sys\nfor name in glob.glob(sys.argv[1] + '/*'):\n  s = socket.socket(socket.AF_UNIX); s.connect(name)\n  \
                  s.sendall(b'{\"answer\":{\"number\":1,\"answer\":\"yes\"}}\\n'); print(s.recv(999).decode())";
    terminal.program.write("answer.py", script);
    let answer = terminal.program.path("answer.py").display().to_string();
    in_a_second_window(
        &terminal,
        &format!("$toolcrib approve >list 2>notices\npython3 {} {} >answered 2>&1", word(answer), word(&calls)),
    );
    eventually("it ended", || terminal.program.path("second").exists());
    let read = |name: &str| std::fs::read_to_string(terminal.program.path("work").join(name)).expect("a file");
    assert!(!read("list").contains("touch ran"), "{}", read("list"));
    assert!(
        read("notices").contains("answered at its own terminal: its commands are not confined"),
        "{}",
        read("notices")
    );
    assert!(read("answered").contains("{\"closed\":"), "{}", read("answered"));
    assert!(!terminal.has("ran"));
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
}

/// What runs in a cell does not find the way.
#[test]
fn no_confined_command_answers() {
    for via in crate::rig::BOTH {
        let terminal = Terminal::idle(program(via));
        terminal.run(&format!("$toolcrib call run_shell '{}' >out", command("touch ran")));
        terminal.shows(QUESTION);
        eventually("it can be asked for", || {
            std::fs::read_dir(terminal.program.path("state/toolcrib/calls")).is_ok_and(|sockets| sockets.count() > 0)
        });
        let tries = format!(
            "ls -R {} {} 2>&1",
            word(terminal.program.path("state/toolcrib")),
            word(terminal.program.path("config"))
        );
        let arguments = command(&format!("{tries}; {} approve 2>&1; true", word(Program::file()))).to_string();
        let (_, envelope) = terminal.program.call(&["--yes", "--no-tmux", "run_shell", &arguments]);
        let said = envelope["result"]["stdout"].as_str().unwrap_or_else(|| panic!("{envelope}"));
        assert!(!said.contains("calls") && !said.contains("touch ran"), "{said}");
        terminal.press(&["n", "Enter"]);
        assert_eq!(terminal.ended(), 5);
        assert!(!terminal.has("ran"));
    }
}
