//! descriptors that the host holds or was itself given, without close-on-exec, reach for a command.
//! Outcome: a command has its three standard ones and no more, whatever the host does meanwhile.
//! Switched off: `close_range` in the child (`backend/spawn.rs`): the descriptors were listed and the test failed.
#![expect(clippy::disallowed_methods, reason = "the program is started through a shell that leaves descriptors open")]

use crate::exec::command;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use toolcrib_tests::Program;

#[test]
fn a_command_gets_no_descriptor_that_the_host_was_given() {
    let program = Program::new();
    program.write("key", "SECRET-KEY");
    let look = command("ls /proc/$$/fd; cat <&7; cat <&9; echo planted >&8; true");
    let lines: Vec<String> =
        (0..20).map(|id| json!({ "id": id, "tool": "run_shell", "arguments": look }).to_string() + "\n").collect();
    program.write("calls", lines.concat());
    let host = program.command(&["--yes", "run"]);
    let mut shell = Command::new("sh");
    let open = "exec 7<../key 8>../loot 9</etc/passwd; exec \"$@\"";
    shell.args(["-c", open, "sh"]).arg(Program::file()).args(host.get_args()).env_clear();
    shell.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(program.path("work"));
    let calls = std::fs::File::open(program.path("calls")).expect("the calls");
    let output = shell.stdin(Stdio::from(calls)).output().expect("the program starts");
    let answers: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(answers.len(), lines.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for answer in answers {
        assert_eq!(answer["result"]["stdout"], "0\n1\n2\n", "{answer}");
    }
    assert_eq!(std::fs::read(program.path("loot")).expect("the shell made it"), b"");
}
