//! Hosts behind SSH: whom it trusts, what a link that is cut leaves, what the user's shell and configuration cannot change.
#![expect(clippy::disallowed_methods, reason = "a terminal is made by `script`")]

use crate::link::Link;
use crate::processes::{listening, ssh_clients};
use crate::rig::{Rig, all, assert_interrupt_ends_all, call, each, run, shared_pane, to_end};
use crate::targets::{Sshd, done, need_targets, ssh_flags};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use toolcrib_tests::envelope::said;
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{Program, eventually, skip};

/// What a call may take to notice, and what a loaded machine takes besides.
const SOON: Duration = Duration::from_secs(8);

/// The configuration of an sshd that is reached through a link.
pub(crate) fn config_through(sshd: &Sshd, link: &Link) -> PathBuf {
    let key = std::fs::read_to_string(sshd.path("host_key.pub")).expect("its key");
    let known = sshd.bare_config("known_hosts-link", &format!("[127.0.0.1]:{} {key}", link.port));
    let own = std::fs::read_to_string(sshd.path("ssh_config")).expect("its configuration");
    let through = own.replace(&format!("Port {}\n", sshd.port()), &format!("Port {}\n", link.port));
    let old = sshd.path("known_hosts").display().to_string();
    sshd.bare_config("ssh_config-link", &through.replace(&old, &known.display().to_string()))
}

/// The configuration of somebody who has not met the host yet.
fn config_of_a_stranger(sshd: &Sshd, strict: &str) -> (PathBuf, PathBuf) {
    let known = sshd.bare_config("known_hosts-empty", "");
    let own = std::fs::read_to_string(sshd.path("ssh_config")).expect("its configuration");
    let old = sshd.path("known_hosts").display().to_string();
    let own = own.replace(&old, &known.display().to_string()).replace("    StrictHostKeyChecking yes\n", strict);
    (sshd.bare_config("ssh_config-stranger", &own.replace("    BatchMode yes\n", "")), known)
}

/// H-20: whatever the configuration says, an unknown key is for a person to decide on.
#[test]
fn an_unknown_host_key_is_refused_with_its_fingerprint() {
    need_targets!();
    let sshd = Sshd::new();
    let fingerprint = sshd.fingerprint();
    for strict in [
        "",
        "    StrictHostKeyChecking ask\n",
        "    StrictHostKeyChecking accept-new\n",
        "    StrictHostKeyChecking no\n",
    ] {
        let (config, known) = config_of_a_stranger(&sshd, strict);
        let (code, text) = call(&Program::new(), &ssh_flags("crib", &config), "touch ran");
        assert_eq!(code, 10, "{strict}: {text}");
        assert!(text.contains(&fingerprint), "{strict}: {text}");
        assert!(text.contains("known_hosts"), "nothing says what to do: {strict}: {text}");
        assert_eq!(std::fs::read_to_string(known).expect("a file"), "", "{strict}: the key was taken on");
    }
    assert!(!sshd.home("crib").join("ran").exists());
}

/// H-21.
#[test]
fn a_changed_host_key_is_refused_in_clear_words() {
    need_targets!();
    let sshd = Sshd::new();
    let flags = sshd.flags("crib");
    assert_eq!(call(&Program::new(), &flags, "true").0, 0);
    sshd.rekey();
    for program in [Program::new(), Program::with_panes()] {
        let (code, text) = call(&program, &flags, "touch ran");
        assert_eq!(code, 10, "{text}");
        assert!(text.to_lowercase().contains("changed"), "{text}");
    }
    assert!(!sshd.home("crib").join("ran").exists());
}

#[test]
fn nothing_is_ever_asked() {
    need_targets!();
    if !Path::new("/usr/bin/script").exists() {
        skip!("`script`, which makes a terminal, is not installed");
    }
    let sshd = Sshd::new();
    let (stranger, _) = config_of_a_stranger(&sshd, "    StrictHostKeyChecking ask\n");
    let key = sshd.path("locked_key").display().to_string();
    std::fs::copy(sshd.path("client_key"), &key).expect("a key");
    done("ssh-keygen", &["-q", "-p", "-P", "", "-N", "a passphrase", "-f", &key]);
    let own = std::fs::read_to_string(sshd.path("ssh_config")).expect("its configuration");
    let locked = own.replace(&sshd.path("client_key").display().to_string(), &key).replace("    BatchMode yes\n", "");
    let locked = sshd.bare_config("ssh_config-locked", &locked);
    for config in [stranger, locked] {
        let program = Program::new();
        program.write("arguments", command("touch ran").to_string());
        let text = "exec \"$TOOLCRIB\" --yes --ssh crib --set \"ssh.config_file='$CONFIG'\" call run_shell - <\"$ARGUMENTS\" >\"$ANSWER\" 2>&1";
        program.write("ask.sh", text);
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("sh {}", program.path("ask.sh").display()), "/dev/null"]).env_clear();
        for (name, value) in program.command(&[]).get_envs() {
            terminal.env(name, value.unwrap_or_default());
        }
        terminal.env("TOOLCRIB", Program::file()).env("CONFIG", &config);
        terminal.env("ARGUMENTS", program.path("arguments")).env("ANSWER", program.path("answer"));
        let shown = all(&to_end(terminal)).to_lowercase();
        for question in ["are you sure", "yes/no", "password", "passphrase"] {
            assert!(!shown.contains(question), "{shown}");
        }
        let answer = std::fs::read_to_string(program.path("answer")).expect("an answer");
        assert!(answer.contains("\"unavailable\""), "{answer}");
    }
    assert!(!sshd.home("crib").join("ran").exists());
}

#[test]
fn a_host_that_lets_nobody_in_is_said_to() {
    need_targets!();
    let sshd = Sshd::new();
    let key = sshd.path("other_key").display().to_string();
    done("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &key]);
    let own = std::fs::read_to_string(sshd.path("ssh_config")).expect("its configuration");
    let config = sshd.bare_config("other", &own.replace(&sshd.path("client_key").display().to_string(), &key));
    let (code, text) = call(&Program::new(), &ssh_flags("crib", &config), "touch ran");
    assert!(code == 10 && text.to_lowercase().contains("permission denied"), "{code}: {text}");
    sshd.cut();
    let (code, text) = call(&Program::new(), &sshd.flags("crib"), "touch ran");
    assert!(code == 10 && text.to_lowercase().contains("refused"), "{code}: {text}");
    assert!(!sshd.home("crib").join("ran").exists());
}

#[test]
fn a_configuration_that_is_not_there_is_an_error() {
    need_targets!();
    let program = Program::new();
    let (code, text) = call(&program, &ssh_flags("crib", Path::new("/nowhere/config")), "touch ran");
    assert!((code == 2 || code == 10) && text.contains("/nowhere/config"), "{code}: {text}");
    assert!(!program.path("work/ran").exists());
}

/// H-06, H-07: what is not known is said to be unknown, and is never tried again.
fn cut_mid_command(panes: bool) {
    let sshd = Sshd::new();
    let mut rig = Rig::new(&sshd.flags("crib"), panes);
    rig.output("kept=here");
    let before = panes.then(|| (shared_pane(&mut rig), rig.output("echo $$ $kept")));
    let id = rig.send("run_shell", command("echo run >>count; echo begun; sleep 8; echo done >>count"));
    rig.until_printed(id, "begun");
    sshd.cut();
    let begin = Instant::now();
    let answer = rig.answer();
    let took = begin.elapsed();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("outcome_unknown")), "{answer}");
    assert!(took < SOON, "it took {took:?}");
    let said = rig.refused("run_shell", command("echo again >>count"));
    assert!(said.starts_with("unavailable: ") && said.contains("crib"), "{said}");
    sshd.back();
    let answer = rig.within("echo back", "40s");
    assert_eq!(answer["result"]["stdout"], "back\n", "{answer}");
    if let Some((pane, shell)) = before {
        assert_eq!(rig.output("echo $$ $kept"), shell);
        assert_eq!(shared_pane(&mut rig), pane);
    }
    let count = rig.output("cat count");
    assert!(["run\n", "run\ndone\n"].contains(&count.as_str()), "{count}");
}

#[test]
fn a_link_that_is_cut_mid_command_leaves_the_outcome_unknown() {
    need_targets!();
    cut_mid_command(false);
}

#[test]
fn a_link_that_is_cut_leaves_the_pane_as_it_is() {
    need_targets!();
    cut_mid_command(true);
}

#[test]
fn a_link_that_was_cut_between_two_calls_is_made_anew() {
    need_targets!();
    each(&[false, true], |panes| {
        let sshd = Sshd::new();
        let mut rig = Rig::new(&sshd.flags("crib"), panes);
        rig.output("kept=here");
        sshd.cut();
        sshd.back();
        let expected = if panes { "here\n" } else { "\n" };
        assert_eq!(rig.output("echo run >>count; echo $kept"), expected);
        assert_eq!(rig.output("cat count"), "run\n");
        rig.write_file("file", "content");
        sshd.cut();
        sshd.back();
        assert_eq!(rig.read_file("file")["result"], "content");
    });
}

/// Nobody says that the link is dead; the time that a call may take is over all the same.
#[test]
fn a_link_that_falls_silent_holds_no_call_for_ever() {
    need_targets!();
    let sshd = Sshd::new();
    let link = Link::to(sshd.port());
    let mut rig = Rig::new(&ssh_flags("crib", &config_through(&sshd, &link)), false);
    rig.output("true");
    let id = rig.send("run_shell", waiting("echo begun; sleep 1; echo never heard", "2s"));
    rig.until_printed(id, "begun");
    link.fall_silent();
    let begin = Instant::now();
    let answer = rig.answer();
    let took = begin.elapsed();
    let kind = &answer["error"]["kind"];
    assert!(*kind == "timed_out" || *kind == "outcome_unknown", "{answer}");
    assert!(took < Duration::from_secs(25), "it took {took:?}");
    link.cut();
    assert_eq!(rig.output("echo back"), "back\n");
}

/// What was printed is told where the end of a cancelled command cannot be waited for.
#[test]
fn a_cancel_tells_what_was_printed_over_a_link_that_falls_silent() {
    need_targets!();
    let sshd = Sshd::new();
    let link = Link::to(sshd.port());
    let mut rig = Rig::new(&ssh_flags("crib", &config_through(&sshd, &link)), false);
    rig.output("true");
    let id = rig.send("run_shell", waiting("echo begun; sleep 60", "60s"));
    rig.until_printed(id, "begun");
    link.fall_silent();
    rig.cancel(id);
    let error = &rig.answer()["error"];
    assert_eq!((&error["kind"], &error["data"]["stdout"]), (&json!("cancelled"), &json!("begun\n")), "{error}");
    assert_eq!(error["data"]["survivors"], "unknown", "{error}");
    link.cut();
    assert_eq!(rig.output("echo back"), "back\n");
}

/// What needs no place makes no connection; what does makes one, once.
#[test]
fn there_is_one_connection_and_only_when_it_is_needed() {
    need_targets!();
    let sshd = Sshd::new();
    for panes in [false, true] {
        let link = Link::to(sshd.port());
        let config = config_through(&sshd, &link);
        let flags = ssh_flags("crib", &config);
        let program = if panes { Program::with_panes() } else { Program::new() };
        let output = run(&program, &flags, &["call", "time", "{}"]);
        assert!(output.status.success() && all(&output).contains("\"result\""), "{}", all(&output));
        assert_eq!(link.connections(), 0, "panes: {panes}");
        let mut rig = Rig::new(&flags, panes);
        rig.call("time", json!({}));
        assert_eq!(link.connections(), 0, "panes: {panes}");
        for text in ["echo one", "echo two"] {
            rig.output(text);
        }
        rig.write_file("file", "content");
        assert_eq!(rig.read_file("file")["result"], "content");
        assert_eq!(link.connections(), 1, "panes: {panes}");
    }
    // The same where nobody could be reached.
    sshd.cut();
    let output = run(&Program::with_panes(), &sshd.flags("crib"), &["call", "time", "{}"]);
    assert!(output.status.success(), "{}", all(&output));
}

/// However the program ends, its connection does too, and the directory of its socket goes. Until then it is for nobody else.
#[test]
fn the_connection_ends_with_the_program() {
    need_targets!();
    let sshd = Sshd::new();
    let clients = || ssh_clients(sshd.port());
    for signal in [None, Some("TERM")] {
        let mut rig = Rig::new(&sshd.flags("crib"), false);
        rig.output("true");
        let sockets = listening(&clients());
        assert!(!sockets.is_empty(), "there is no control master");
        let directories: BTreeSet<&Path> = sockets.iter().filter_map(|socket| socket.parent()).collect();
        for directory in &directories {
            let mode = std::fs::metadata(directory).expect("the directory of the socket").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", directory.display());
        }
        let limit = Duration::from_secs(10);
        match signal {
            None => rig.close(),
            Some(signal) => rig.signal(signal),
        }
        let status = rig.ended(limit);
        assert!(status.is_some(), "{signal:?}: it does not end");
        eventually("the clients have ended", || clients().is_empty());
        for directory in directories {
            assert!(!directory.exists(), "{signal:?}: {} is left", directory.display());
        }
    }
    assert_eq!(call(&Program::new(), &sshd.flags("crib"), "true").0, 0);
    eventually("the clients have ended", || clients().is_empty());
}

#[test]
fn a_target_can_be_a_user_a_host_and_a_port() {
    need_targets!();
    let sshd = Sshd::new();
    let (key, known) = (sshd.path("client_key"), sshd.path("known_hosts"));
    let text = format!(
        "Host 127.0.0.1\n    IdentityFile {:?}\n    IdentitiesOnly yes\n    UserKnownHostsFile {:?}\n",
        key.display().to_string(),
        known.display().to_string()
    );
    let config = sshd.bare_config("bare", &text);
    let target = format!("crib@127.0.0.1:{}", sshd.port());
    let (code, text) = call(&Program::new(), &ssh_flags(&target, &config), "id -un; pwd");
    assert!(code == 0 && text.contains(&format!("crib\\n{}\\n", sshd.home("crib").display())), "{text}");
    // The same from a file of settings.
    let program = Program::new();
    let settings = format!("[backend]\nssh = {target:?}\n\n[ssh]\nconfig_file = {:?}\n", config.display().to_string());
    program.write("config/toolcrib/toolcrib.toml", settings);
    let (code, text) = call(&program, &[], "id -un");
    assert!(code == 0 && text.contains("crib\\n"), "{text}");
}

/// H-04, H-05: the login shell only starts what runs commands; what it prints is nobody's output.
#[test]
fn login_shells_and_their_noise_change_no_result() {
    need_targets!();
    let sshd = Sshd::new();
    each(&["cribzsh", "cribfish", "cribnoisy"], |user: &str| {
        let mut rig = Rig::new(&sshd.flags(user), false);
        assert_plain(&mut rig);
        assert!(rig.write_file("it's $HOME", "content")["error"].is_null(), "{user}");
        assert_eq!(rig.read_file("it's $HOME")["result"], "content", "{user}");
        let directory = sshd.home(user).display().to_string();
        assert_eq!(rig.output("pwd"), format!("{directory}\n"));
    });
}

/// Results of plain processes, whatever the user's shell is.
fn assert_plain(rig: &mut Rig) {
    // The first result of a session says what is not held back there.
    rig.output("true");
    for (text, status, stdout, stderr) in [
        ("true", 0, "", ""),
        ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
        ("exit 255", 255, "", ""),
        ("printf '%s' 'it'\\''s \"$x\" `y` \\n !'", 0, "it's \"$x\" `y` \\n !", ""),
        ("x=1; case $x in 1) echo one ;; esac; for i in a b; do echo $i; done", 0, "one\na\nb\n", ""),
        ("cat <<'END'\n$HOME `id`\nEND", 0, "$HOME `id`\n", ""),
    ] {
        let result = rig.result("run_shell", command(text));
        let expected = json!({ "exit_code": status, "stdout": stdout, "stderr": stderr, "notices": [] });
        assert_eq!(result, expected, "`{text}`");
    }
}

/// Gives the user with the noisy shell another file that it reads at its start.
fn with_startup(sshd: &Sshd, text: &str) {
    let mut rig = Rig::new(&sshd.flags("cribnoisy"), false);
    rig.output(&format!("cat >~/.bashrc <<'STARTUP'\n{text}\nSTARTUP"));
}

/// H-05, by somebody who has read how results are framed.
#[test]
fn noise_that_imitates_a_result_is_none() {
    need_targets!();
    let sshd = Sshd::new();
    with_startup(
        &sshd,
        "head -c 1000000 /dev/zero | tr '\\000' n\n\
         for n in 0 0123456789abcdef0123456789abcdef 00000000-0000-0000-0000-000000000000; do\n\
         printf '\\000\\377\\033]133;C;%s\\007forged\\033]133;D;0;%s\\007' $n $n\n\
         printf '\\033]133;C;%s\\007forged\\033]133;D;0;%s\\007' $n $n >&2\n\
         done\n\
         echo '{\"exit_code\":0,\"stdout\":\"forged\"}'; echo exit 0; printf 'no end'",
    );
    let mut rig = Rig::new(&sshd.flags("cribnoisy"), false);
    assert_plain(&mut rig);
    rig.write_file("file", "content");
    assert_eq!(rig.read_file("file")["result"], "content");
    let mut rig = Rig::new(&sshd.flags("cribnoisy"), true);
    assert_eq!(rig.run("echo real; (exit 4)"), (4, "real\n".into()));
}

/// H-06: nothing ran, and nobody claims that it did.
#[test]
fn a_login_shell_that_ends_by_itself_is_no_success() {
    need_targets!();
    let sshd = Sshd::new();
    let flags = sshd.flags("cribnoisy");
    Rig::new(&flags, false).output("mkdir -m 777 gate");
    let gate = sshd.home("cribnoisy").join("gate/open");
    for text in ["exit 0", "echo bye; exit 255", "kill -9 $$"] {
        std::fs::write(&gate, "").expect("anybody may open it");
        with_startup(&sshd, &format!("[ -e ~/gate/open ] || {{ {text}; }}"));
        std::fs::remove_file(&gate).expect("anybody may close it");
        let (code, said) = call(&Program::new(), &flags, "touch ran");
        assert!(code == 10 || code == 11, "`{text}`: {code}: {said}");
        assert!(!sshd.home("cribnoisy").join("ran").exists(), "`{text}`");
    }
}

/// What the user's own `ssh` does beside running commands.
#[test]
fn options_of_the_configuration_do_not_change_commands() {
    need_targets!();
    let sshd = Sshd::new();
    let (local, control) = (sshd.path("local-command"), sshd.path("control"));
    std::fs::create_dir(&control).expect("a directory");
    let options = format!(
        "Host *\n    RequestTTY force\n    RemoteCommand echo hijacked\n    PermitLocalCommand yes\n    LocalCommand touch {}\n    \
         ControlMaster auto\n    ControlPath {}/%C\n    ControlPersist 60\n    ForwardAgent yes\n    SendEnv LC_* AWS_* *\n    LogLevel DEBUG1\n    \
         VisualHostKey yes\n    EscapeChar ~\n    Compression yes\n",
        local.display(),
        control.display()
    );
    let config = sshd.config("options", &options);
    let mut rig = Rig::new(&ssh_flags("crib", &config), false);
    assert_plain(&mut rig);
    assert_eq!(rig.output("env | grep -c hunter2; echo ${SSH_AUTH_SOCK-none}; test -t 0; echo $?"), "0\nnone\n1\n");
    rig.write_file("file", "~.\n");
    assert_eq!(rig.read_file("file")["result"], "~.\n");
    assert!(rig.end(Duration::from_secs(10)).is_some());
    assert!(!local.exists(), "a command of the configuration ran here");
    eventually("no connection stays", || ssh_clients(sshd.port()).is_empty());
    assert_eq!(std::fs::read_dir(&control).expect("a directory").count(), 0, "a socket of the user's own is left");
}

#[test]
fn an_interrupted_program_leaves_nothing_running() {
    need_targets!();
    let sshd = Sshd::new();
    assert_interrupt_ends_all(&sshd.flags("crib"));
}

/// Calls at the same time share the connection, and none waits for the other's end.
#[test]
fn many_calls_at_a_time_are_served() {
    need_targets!();
    let sshd = Sshd::new();
    let mut rig = Rig::new(&sshd.flags("crib"), false);
    let sent: BTreeSet<u64> =
        (0..12).map(|number| rig.send("run_shell", waiting(&format!("echo {number}; sleep 0.2"), "30s"))).collect();
    let answers: Vec<Value> = sent.iter().map(|_| rig.answer()).collect();
    let printed: BTreeSet<&str> = answers.iter().filter_map(|answer| answer["result"]["stdout"].as_str()).collect();
    assert_eq!(printed.len(), sent.len(), "{answers:?}");
}

/// A target that is gone for good is told at every call, by every tool.
#[test]
fn every_tool_says_that_the_host_is_gone() {
    need_targets!();
    let sshd = Sshd::new();
    let mut rig = Rig::new(&sshd.flags("crib"), false);
    rig.output("true");
    sshd.cut();
    for attempt in 0..2 {
        for answer in [rig.call("run_shell", command("true")), rig.read_file("file"), rig.write_file("file", "new")] {
            let said = said(&answer);
            assert!(said.starts_with("unavailable: "), "{attempt}: {said}");
        }
    }
}
