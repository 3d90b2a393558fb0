//! a command asks: on its input, on the terminal, with a password prompt; or it reads what was meant for the host.
//! Outcome: input is at its end and there is no terminal, so it ends at once; the host's own input is not touched.
//! Switched off: the session of its own and the empty input (`backend/spawn.rs`, `backend/local.rs`): the test of questions failed.

use crate::exec::run;
use serde_json::json;
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{Preparation, Siege};

#[test]
fn what_asks_is_answered_by_nobody_and_ends() {
    let mut siege = Preparation::new().begin();
    for ask in [
        "read answer",
        "read answer < /dev/tty",
        "echo question > /dev/tty",
        "cat; exit 1",
        "head -c 1 /dev/stdin | grep -q .",
        "bash -c 'read -p name: -s answer'",
        "stty -echo",
        "tty",
        "su nobody -s /bin/false < /dev/tty",
        "ssh-keygen -y -f /dev/stdin",
        "test -t 0 || test -t 1 || test -t 2",
        "grep -qE '^[0-9]+ \\(.*\\) . [0-9]+ [0-9]+ [0-9]+ [1-9]' /proc/$$/stat",
    ] {
        let answer = siege.call("run_shell", waiting(ask, "20s"));
        assert!(answer["result"]["exit_code"].as_i64().is_some_and(|code| code != 0), "`{ask}`: {answer}");
    }
    let session = run(&mut siege, "cut -d' ' -f1,5,6 /proc/$$/stat; true");
    let numbers: Vec<&str> = session["stdout"].as_str().expect("text").split_whitespace().collect();
    assert!(
        numbers.len() == 3 && numbers[0] == numbers[1] && numbers[1] == numbers[2],
        "no session of its own: {session}"
    );
    siege.lift();
}

#[test]
fn calls_that_wait_on_the_hosts_input_are_not_eaten_by_a_command() {
    let mut siege = Preparation::new().begin();
    let readers: Vec<u64> = (0..4).map(|_| siege.send("run_shell", command("cat; cat <&0; sleep 0.3; cat"))).collect();
    let clocks: Vec<u64> = (0..50).map(|_| siege.send("time", json!({}))).collect();
    let mut answered: Vec<u64> = (0..readers.len() + clocks.len()).map(|_| quiet(&mut siege)).collect();
    answered.sort_unstable();
    assert_eq!(answered, [readers, clocks].concat());
    siege.lift();
}

/// The next answer's id; no command printed anything.
fn quiet(siege: &mut Siege) -> u64 {
    let answer = siege.answer();
    assert!(answer["result"]["stdout"].as_str().unwrap_or_default().is_empty(), "{answer}");
    answer["id"].as_u64().expect("an id")
}
