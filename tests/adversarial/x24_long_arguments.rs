//! a command, or an environment, beyond what the system hands to a program.
//! Outcome: `limit` before anything runs; the next command is not affected.
//! Switched off: the limit for what the system refuses as too long (`backend/local.rs`, `start_failure`): both tests failed.

use crate::exec::run;
use serde_json::{Value, json};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, Preparation, Program, Running, skip};

#[test]
fn a_command_longer_than_the_system_takes_is_a_limit_and_nothing_of_it_runs() {
    let mut siege = Preparation::new().set("tools.shell_denylist=[]").begin();
    for bytes in [128 << 10, 256 << 10, 2 << 20, 3 << 20] {
        let refused = siege.failure("run_shell", command(&format!("touch early; : {}", "x".repeat(bytes))));
        assert!(refused.starts_with("limit: "), "{bytes}: {refused}");
    }
    assert!(!siege.program.path("work/early").exists());
    let many =
        run(&mut siege, "set -- $(seq 100000); echo $#; /bin/true \"$@\" && echo taken; /bin/true $(seq 1000000)");
    assert_eq!((&many["stdout"], &many["exit_code"]), (&json!("100000\ntaken\n"), &json!(126)), "{many}");
    siege.lift();
}

#[test]
fn an_environment_that_leaves_no_room_for_a_command_is_a_limit() {
    const VARIABLES: usize = 16;
    let program = Program::new();
    let names: Vec<String> = (0..VARIABLES).map(|number| format!("LARGE_{number}")).collect();
    let setting = format!("tools.shell_env={names:?}");
    let calls =
        [command("echo fits"), command(&format!("touch early; : {}", "x".repeat(120_000))), command("echo next")];
    let answer = |arguments: &Value| -> Value {
        let mut host = program.command(&["--yes", "--set", &setting, "--set", "tools.shell_denylist=[]", "run"]);
        host.envs(names.iter().map(|name| (name, "x".repeat(124_000))));
        Client::of(Running::start(&mut host)).call("run_shell", arguments.clone())
    };
    assert_eq!(answer(&calls[0])["result"]["stdout"], "fits\n");
    let refused = answer(&calls[1]);
    if refused["result"]["exit_code"] == 0 {
        skip!("this system takes more than 2 MiB of arguments");
    }
    assert_eq!(refused["error"]["kind"], "limit", "{refused}");
    assert!(!program.path("work/early").exists());
    assert_eq!(answer(&calls[2])["result"]["stdout"], "next\n");
}
