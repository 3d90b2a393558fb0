//! Panes elsewhere: found again by the next host, ended by a person, in whatever shell the user has there.

use crate::rig::{Rig, all, call, command, declared, notices, run, waiting};
use crate::targets::{Container, Engine, Sshd, need_targets};
use serde_json::json;
use toolcrib_tests::Program;

fn the_next_host_finds_pane_and_state(flags: &[String]) {
    let mut rig = Rig::new(flags, true);
    rig.output("kept=here");
    let first = rig.pane();
    let mut other = rig.another();
    assert_eq!(other.pane(), first);
    assert_eq!(other.output("echo $kept"), "here\n");
    // One command at a time, whichever host it comes from.
    let id = rig.send("run_shell", command("echo begun; sleep 1.5; echo one"));
    rig.until_printed(id, "begun");
    let answer = other.within("echo two", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert_eq!(rig.answer()["result"]["stdout"], "begun\none\n");
    assert_eq!(other.output("echo three"), "three\n");
    let listed = run(&rig.program, flags, &["sessions"]);
    assert!(listed.status.success() && all(&listed).contains("toolcrib-agent"), "{}", all(&listed));
    let ended = run(&rig.program, flags, &["sessions", "--prune"]);
    assert!(ended.status.success() && all(&ended).contains("ended"), "{}", all(&ended));
}

#[test]
fn the_next_host_finds_pane_and_state_again_in_a_container() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    the_next_host_finds_pane_and_state(&container.flags());
}

#[test]
fn the_next_host_finds_pane_and_state_again_behind_ssh() {
    need_targets!();
    let sshd = Sshd::new();
    the_next_host_finds_pane_and_state(&sshd.flags("crib"));
}

#[test]
fn a_session_of_its_own_can_be_named() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    let mut rig = Rig::new(&[container.flags(), vec!["--tmux=review".to_owned()]].concat(), true);
    let session = rig.output("echo $TOOLCRIB_SESSION");
    assert!(session.contains("review"), "{session}");
}

#[test]
fn a_shell_that_is_killed_comes_anew() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    let mut rig = Rig::new(&container.flags(), true);
    rig.output("kept=here");
    let said = rig.refusal("p=$$; kill -9 $p; sleep 1");
    assert!(said.starts_with("outcome_unknown: "), "{said}");
    let mut answer = rig.call("run_shell", command("echo \"[$kept]\""));
    if answer["error"]["kind"] == "unavailable" {
        answer = rig.call("run_shell", command("echo \"[$kept]\""));
    }
    assert_eq!(answer["result"]["stdout"], "[]\n", "{answer}");
    assert!(notices(&answer).contains("made anew"), "{answer}");
}

/// A flood in one pane holds up no other, and is counted to the byte.
#[test]
fn a_flood_is_complete_and_holds_up_no_other_pane() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    let mut rig = Rig::new(&container.flags(), true);
    rig.result("tmux-create-pane", declared(json!({ "pane": "beside" })));
    let mut flood = waiting("echo begun; seq 1 500000; until [ -e /tmp/stop ]; do sleep 0.1; done", "30s");
    flood["pane"] = json!("beside");
    let id = rig.send("run_shell", flood);
    rig.until_printed(id, "begun");
    for number in 0..5 {
        assert_eq!(rig.run(&format!("echo {number}; (exit {number})")), (number, format!("{number}\n")));
    }
    container.exec("touch /tmp/stop");
    let answer = rig.answer();
    assert_eq!((&answer["id"], &answer["result"]["exit_code"]), (&json!(id), &json!(0)), "{answer}");
    assert!(notices(&answer).contains("stdout has 3388901 bytes"), "{}", notices(&answer));
}

/// What a user's shell can be, and what it prints at its start.
#[test]
fn shells_and_noise_of_the_user_change_no_result() {
    need_targets!();
    let sshd = Sshd::new();
    for user in ["cribzsh", "cribfish", "cribnoisy"] {
        let mut rig = Rig::new(&sshd.flags(user), true);
        for (text, status, stdout) in [
            ("true", 0, ""),
            ("printf foo", 0, "foo"),
            ("for i in 1 2; do\n  echo $i\ndone", 0, "1\n2\n"),
            ("cat <<'END'\nexit 0\nEND", 0, "exit 0\n"),
            ("(exit 42)", 42, ""),
            ("kept=here; f() { echo of f; }", 0, ""),
            ("echo $kept; f", 0, "here\nof f\n"),
        ] {
            assert_eq!(rig.run(text), (status, stdout.to_owned()), "{user}: `{text}`");
        }
        rig.write_file("file", "content");
        assert_eq!(rig.read_file("file")["result"], "content", "{user}");
    }
}

/// A place without tmux is not made to have some of this machine's.
#[test]
fn a_host_without_tmux_says_so_once() {
    need_targets!();
    let sshd = Sshd::new();
    let flags = sshd.flags("cribplain");
    let mut rig = Rig::new(&flags, true);
    let answer = rig.call("run_shell", command("echo out; echo err >&2"));
    assert_eq!(
        (&answer["result"]["stdout"], &answer["result"]["stderr"]),
        (&json!("out\n"), &json!("err\n")),
        "{answer}"
    );
    assert!(notices(&answer).contains("tmux"), "{answer}");
    let answer = rig.call("run_shell", command("echo again"));
    assert!(!notices(&answer).contains("tmux"), "{answer}");
    let demanded = [flags, vec!["--tmux".to_owned()]].concat();
    let (code, text) = call(&Program::with_panes(), &demanded, "touch ran");
    assert!(code == 10 && text.contains("tmux"), "{code}: {text}");
    assert!(!sshd.home("cribplain").join("ran").exists());
}

#[test]
fn panes_of_this_machine_lead_there_and_say_what_is_lost_with_the_connection() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let flags = [container.flags(), vec!["--panes".to_owned(), "host".to_owned()]].concat();
    let mut rig = Rig::new(&flags, true);
    let answer = rig.call("run_shell", command("kept=here; hostname"));
    assert!(notices(&answer).contains("ends with the connection"), "{answer}");
    let name = container.exec("hostname");
    assert_eq!(rig.output("echo $kept; hostname"), format!("here\n{name}\n"));
    container.act(crate::targets::Act::Restart);
    let mut answer = rig.call("run_shell", command("echo \"[$kept]\""));
    if !answer["error"].is_null() {
        answer = rig.call("run_shell", command("echo \"[$kept]\""));
    }
    assert_eq!(answer["result"]["stdout"], "[]\n", "{answer}");
}

#[test]
fn panes_of_this_machine_need_somewhere_to_lead() {
    let said = run(&Program::with_panes(), &[], &["--panes", "host", "tools"]);
    assert_eq!(said.status.code(), Some(2), "{}", all(&said));
    assert!(all(&said).contains("--container"), "{}", all(&said));
}
