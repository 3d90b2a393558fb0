//! What the commands and panes of a workspace have in common: one cell, with a `/tmp` and a loopback.

use crate::rig::{BOTH, REQUIRED, Rig, Via, idle, program, word};
use serde_json::{Value, json};
use std::os::unix::net::UnixListener;
use toolcrib_tests::shell::{command, declared, with};
use toolcrib_tests::{Client, eventually};

/// Makes a pane and runs a command there.
fn in_pane(client: &mut Client, pane: &str, text: &str) -> Value {
    client.result("tmux-create-pane", declared(json!({ "pane": pane })));
    client.result("run_shell", with(command(text), "pane", pane))
}

/// What serves one answer on the loopback, and what asks for it.
const SERVES: &str = "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 8123)); open(\"/tmp/serves\", \"w\"); \
                      [s.accept()[0].sendall(b\"served\") for _ in range(9)]'";
const ASKS: &str =
    "python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", 8123), 2).recv(9).decode())'";

fn serve(client: &mut Client) {
    client.result("tmux-create-pane", declared(json!({ "pane": "server" })));
    let dispatched = with(with(command(SERVES), "pane", "server"), "wait", false);
    client.result("run_shell", dispatched);
    let is_there = |client: &mut Client| client.result("run_shell", command("ls /tmp"))["stdout"] == "serves\n";
    assert!((0..200).any(|_| is_there(client)), "it serves");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what connects from outside")]
fn panes_of_a_workspace_share_a_loopback_and_temporary_files() {
    let mut rig = Rig::new(Via::Pane);
    serve(&mut rig.client);
    assert_eq!(rig.run(ASKS), (0, "served\n".into()));
    assert_eq!(in_pane(&mut rig.client, "other", &format!("{ASKS}; ls /tmp"))["stdout"], "served\nserves\n");
    // But no processes: what one pane runs is not there for another.
    let (_, printed) = rig.run("ps ax 2>/dev/null || ls /proc");
    assert!(!printed.contains("8123"), "{printed}");
    let outside = std::net::TcpStream::connect(("127.0.0.1", 8123));
    assert!(outside.is_err(), "the loopback is the cell's");
}

#[test]
fn the_next_host_joins_the_cell_of_a_pane() {
    let program = program(Via::Pane);
    let arguments = ["--yes", "--set", REQUIRED, "run"];
    let mut first = program.client(&arguments);
    serve(&mut first);
    drop(first);
    let mut next = program.client(&arguments);
    let joined = in_pane(&mut next, "new", ASKS);
    assert_eq!(joined["stdout"], "served\n", "{joined}");
}

/// What is to be hidden or protected is so whenever it came into being.
#[test]
fn what_comes_into_being_is_covered_before_the_next_command() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let home = rig.program.path("home").canonicalize().expect("a directory");
        for _ in 0..3 {
            assert_eq!(rig.run("true").0, 0);
        }
        if via == Via::Process {
            // What the next command would be started by, which was there before.
            eventually("a spare", || idle(&rig, "spare").len() == 1);
        }
        if via == Via::Pane {
            // While something runs there, what is made is a command's. The shell of the pane comes to rest first.
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        rig.program.write("home/.aws/credentials", "# private\n");
        rig.program.write("work/.envrc", "true\n");
        let _socket = UnixListener::bind(home.join("socket")).expect("a socket");
        // A pane that is there has the mounts that were there when it began.
        let mut run = |text: &str| match via {
            Via::Process => rig.result(text),
            Via::Pane => in_pane(&mut rig.client, "new", text),
        };
        let said = run(&format!("ls {}; cat .envrc && echo false >.envrc", word(home.join(".aws"))));
        let printed = format!("{}{}", said["stdout"], said["stderr"]);
        assert!(!printed.contains("credentials"), "{via:?} {printed}");
        assert!(printed.contains("true") && printed.contains("Read-only file system"), "{via:?} {printed}");
        let script = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('reached')";
        let said = run(&format!("python3 -c {} {} 2>&1 | tail -n 1", word(script), word(home.join("socket"))));
        let printed = said["stdout"].to_string();
        assert!(!printed.contains("reached") && printed.contains("Error"), "{via:?} {printed}");
        // A file that takes the place of one that is hidden is another one.
        rig.program.write("home/.netrc-new", "# new\n");
        std::fs::rename(home.join(".netrc-new"), home.join(".netrc")).expect("a file");
        if via == Via::Process {
            assert_eq!(rig.run(&format!("cat {}", word(home.join(".netrc")))), (0, String::new()));
        }
    }
}

/// A cell is made of directories; where another one takes the place of one of them, another cell takes its place.
#[test]
fn a_workspace_that_was_made_anew_is_the_one_that_is_written() {
    let mut rig = Rig::new(Via::Process);
    assert_eq!(rig.run("touch before /tmp/before").0, 0);
    let work = rig.work("");
    let aside = rig.program.path("aside");
    std::fs::rename(&work, &aside).expect("a directory");
    std::fs::create_dir(&work).expect("a directory");
    assert_eq!(rig.run("touch after; ls . /tmp"), (0, ".:\nafter\n\n/tmp:\n".into()));
    assert!(work.join("after").exists() && !aside.join("after").exists());
}

/// Who ends the process that keeps a cell ends no more than that.
#[test]
fn a_cell_whose_keeper_was_ended_lives_on() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        assert_eq!(rig.run("touch /tmp/before").0, 0);
        let keepers = idle(&rig, "keep");
        assert_eq!(keepers.len(), 1, "{via:?} {keepers:?}");
        rustix::process::kill_process(keepers[0], rustix::process::Signal::KILL).expect("a signal");
        let words = format!("/proc/{}/cmdline", keepers[0]);
        eventually("it ended", || std::fs::read(&words).is_ok_and(|words| words.is_empty()));
        assert_eq!(rig.run("ls /tmp"), (0, "before\n".into()), "{via:?}");
        if via == Via::Pane {
            assert_eq!(in_pane(&mut rig.client, "new", "ls /tmp")["stdout"], "before\n", "another one keeps it");
        }
    }
}

/// What may be reached is decided by the rules of a session's toolset, so commands of one that narrows them join no cell of others.
#[test]
fn a_toolset_that_narrows_has_cells_of_its_own() {
    let program = program(Via::Process);
    program.write(
        "toolsets.toml",
        "[toolset.alone]\ntools = [\"run_shell\"]\n[toolset.alone.grant]\nconfine.hosts = []\n[toolset.same]\ntools = [\"run_shell\"]\n",
    );
    let config = program.path("toolsets.toml").display().to_string();
    let mut running = program.start(&[
        "--yes",
        "--config",
        &config,
        "--set",
        REQUIRED,
        "--set",
        "confine.hosts=[\"example.com\"]",
        "run",
    ]);
    let mut ask = |line: Value| {
        running.write(format!("{line}\n"));
        running.line()
    };
    for (number, name) in ["alone", "same"].into_iter().enumerate() {
        let opened = ask(json!({ "id": number, "open": { "toolset": name } }));
        assert_eq!(opened["result"]["toolset"], name, "{opened}");
    }
    let mut run = |session: Option<&str>, text: &str| {
        let mut line = json!({ "id": 9, "tool": "run_shell", "arguments": command(text) });
        if let Some(session) = session {
            line["session"] = session.into();
        }
        let answer = ask(line);
        answer["result"]["stdout"].as_str().map_or_else(|| panic!("{answer}"), str::to_owned)
    };
    run(None, "touch /tmp/shared");
    assert_eq!(run(Some("s2"), "ls /tmp"), "shared\n");
    // All that a cell is made of is the same; the hosts are not.
    assert_eq!(run(Some("s1"), "ls /tmp"), "");
    run(Some("s1"), "touch /tmp/alone");
    assert_eq!(run(Some("s1"), "ls /tmp"), "alone\n");
    assert_eq!(run(None, "ls /tmp"), "shared\n");
}
