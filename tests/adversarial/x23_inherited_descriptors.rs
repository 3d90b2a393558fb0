//! descriptors that the host holds or was itself given, without close-on-exec, reach for a command.
//! Outcome: a command has its three standard ones and no more, whatever the host does meanwhile.
//! Switched off: `close_range` in the child (`backend/spawn.rs`): the descriptors were listed and the test failed.
#![expect(clippy::disallowed_methods, reason = "the program is started through a shell that leaves descriptors open")]

use std::process::Command;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, Program, Running};

#[test]
fn a_command_gets_no_descriptor_that_the_host_was_given() {
    let program = Program::new();
    program.write("key", "SECRET-KEY");
    let look = command("ls /proc/$$/fd; cat <&7; cat <&9; echo planted >&8; true");
    let host = program.command(&["--yes", "run"]);
    let mut shell = Command::new("sh");
    let open = "exec 7<../key 8>../loot 9</etc/passwd; exec \"$@\"";
    shell.args(["-c", open, "sh"]).arg(Program::file()).args(host.get_args()).env_clear();
    shell.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(program.path("work"));
    let mut host = Client::of(Running::start(&mut shell));
    let calls: Vec<u64> = (0..20).map(|_| host.send("run_shell", look.clone())).collect();
    for id in calls {
        let answer = host.answer_to(id);
        assert_eq!(answer["result"]["stdout"], "0\n1\n2\n", "{answer}");
    }
    assert_eq!(std::fs::read(program.path("loot")).expect("the shell made it"), b"");
}
