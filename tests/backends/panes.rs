//! Panes elsewhere: found again by the next host, ended by a person, in whatever shell the user has there.

use crate::link::Link;
use crate::rig::{Rig, all, call, run, shared_pane};
use crate::ssh::config_through;
use crate::targets::{Act, Container, Engine, Sshd, need_podman, need_targets, ssh_flags};
use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib_tests::Program;
use toolcrib_tests::envelope::notices;
use toolcrib_tests::shell::{command, declared, waiting};

fn the_next_host_finds_pane_and_state(flags: &[String]) {
    let mut rig = Rig::new(flags, true);
    rig.output("kept=here");
    let first = shared_pane(&mut rig);
    let mut other = rig.another();
    assert_eq!(shared_pane(&mut other), first);
    assert_eq!(other.output("echo $kept"), "here\n");
    // One command at a time, whichever host it comes from.
    let id = rig.send("run_shell", command("echo begun; until [ -e go ]; do sleep 0.05; done; echo one"));
    rig.until_printed(id, "begun");
    let answer = other.within("echo two", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    let answer = other.write_file("go", "");
    assert!(answer["error"].is_null(), "{answer}");
    assert_eq!(rig.answer()["result"]["stdout"], "begun\none\n");
    assert_eq!(other.output("echo three"), "three\n");
    let listed = run(&rig.program, flags, &["panes"]);
    assert!(listed.status.success() && all(&listed).contains("toolcrib-agent"), "{}", all(&listed));
    let ended = run(&rig.program, flags, &["panes", "--prune"]);
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
    let said = rig.refused("run_shell", command("p=$$; kill -9 $p; sleep 1"));
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
    let mut flood = waiting("echo begun; seq 1 500000; until [ -e /tmp/stop ]; do sleep 0.1; done", "80s");
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

fn a_pause_holds_no_call_up(engine: Engine) {
    let container = Container::new(engine, "debian");
    let mut rig = Rig::new(&container.flags(), true);
    rig.output("true");
    container.act(Act::Pause);
    let begin = Instant::now();
    let answer = rig.within("touch /tmp/F", "4s");
    let took = begin.elapsed();
    container.act(Act::Unpause);
    assert_eq!(answer["error"]["kind"], "unavailable", "{answer}");
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    let answer = rig.within("ls /tmp/F; echo back", "10s");
    assert!(answer["result"]["stdout"].as_str().is_some_and(|text| text.ends_with("back\n")), "{answer}");
    assert!(container.exec("ls /tmp").is_empty(), "what was refused has run");
}

#[test]
fn a_container_that_is_paused_between_commands_holds_no_call_up() {
    need_targets!();
    a_pause_holds_no_call_up(Engine::Docker);
}

#[test]
fn a_container_that_is_paused_between_commands_holds_no_call_up_in_podman() {
    need_podman!();
    a_pause_holds_no_call_up(Engine::Podman);
}

#[test]
fn where_nothing_can_be_written_commands_run_as_plain_processes_and_a_notice_says_so() {
    need_targets!();
    let container = Container::with(Engine::Docker, "debian", &["--read-only"]);
    let mut rig = Rig::new(&container.flags(), true);
    let answer = rig.call("run_shell", command("echo out; echo err >&2"));
    assert_eq!(
        (&answer["result"]["stdout"], &answer["result"]["stderr"]),
        (&json!("out\n"), &json!("err\n")),
        "{answer}"
    );
    assert!(notices(&answer).contains("no writable directory for tmux"), "{answer}");
    let demanded = [container.flags(), vec!["--tmux".to_owned()]].concat();
    let (code, text) = call(&Program::with_panes(), &demanded, "true");
    assert!(code == 10 && text.contains("no writable directory"), "{code}: {text}");
}

/// docker tells on standard output that it found nothing to execute.
#[test]
fn a_container_without_a_shell_is_unavailable() {
    need_targets!();
    for panes in [false, true] {
        let container = Container::new(Engine::Docker, "busybox");
        container.exec("rm /bin/sh");
        let mut rig = Rig::new(&container.flags(), panes);
        let said = rig.refused("run_shell", command("echo never"));
        assert!(said.starts_with("unavailable: ") && said.contains("/bin/sh"), "{said}");
    }
}

/// In panes that lead there as in panes that are there: what became of the command is not known, and that is told in time.
#[test]
fn a_link_that_falls_silent_under_a_pane_is_told_in_time() {
    need_targets!();
    let sshd = Sshd::new();
    for place in ["host", "there"] {
        let link = Link::to(sshd.port());
        let flags =
            [ssh_flags("crib", &config_through(&sshd, &link)), vec!["--panes".to_owned(), place.to_owned()]].concat();
        let mut rig = Rig::new(&flags, true);
        rig.output("true");
        let id = rig.send("run_shell", waiting("echo begun; sleep 60", "40s"));
        rig.until_printed(id, "begun");
        link.fall_silent();
        let begin = Instant::now();
        let answer = rig.answer();
        assert_eq!(answer["error"]["kind"], "outcome_unknown", "{place}: {answer}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{place}: it took {:?}", begin.elapsed());
    }
}

/// Whoever ends what runs, and whenever: the next command runs.
fn a_pane_comes_back(flags: &[String]) {
    let mut rig = Rig::new(flags, true);
    rig.output("true");
    for round in 0..6 {
        let text = if round % 2 == 0 { "sleep 5" } else { "sleep 0.05" };
        let id = rig.send("run_shell", command(text));
        std::thread::sleep(Duration::from_millis(10 + 9 * round));
        rig.cancel(id);
        let answer = rig.answer_to(id);
        assert!(
            answer["error"]["kind"] == "cancelled" || answer["result"]["exit_code"] == 0,
            "{flags:?}, {round}: {answer}"
        );
        let id = rig.send("run_shell", waiting("echo free", "6s"));
        let answer = rig.answer_to(id);
        assert_eq!(answer["result"]["stdout"], "free\n", "{flags:?}, {round}: {answer}");
    }
    // What was typed and not finished is told, and not run.
    rig.result("send-keys", declared(json!({ "literal_text": "true; touch /tmp/F" })));
    let answer = rig.within("echo mine; ls /tmp/F 2>/dev/null; true", "6s");
    assert_eq!(answer["result"]["stdout"], "mine\n", "{flags:?}: {answer}");
    assert!(notices(&answer).contains("touch /tmp/F"), "{flags:?}: {answer}");
}

#[test]
fn a_pane_comes_back_in_containers() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    a_pane_comes_back(&container.flags());
    let container = Container::new(Engine::Docker, "busybox");
    a_pane_comes_back(&[container.flags(), vec!["--panes".to_owned(), "host".to_owned()]].concat());
}

#[test]
fn a_pane_comes_back_in_podman() {
    need_podman!();
    let container = Container::new(Engine::Podman, "debian");
    a_pane_comes_back(&container.flags());
}

#[test]
fn a_pane_comes_back_behind_ssh() {
    need_targets!();
    let sshd = Sshd::new();
    for user in ["crib", "cribzsh"] {
        a_pane_comes_back(&sshd.flags(user));
    }
}
