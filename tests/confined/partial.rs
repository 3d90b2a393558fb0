//! Commands that are partially confined, by Landlock: what is promised of them, and what people are told.

use crate::rig::{BOTH, Rig, Step, Via, program, word};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{QUESTION, Terminal, eventually};

/// Writes, signals and sockets are bounded; what can be read stays so.
#[test]
fn what_a_domain_promises_holds() {
    for via in BOTH {
        let program = program(via);
        let socket = program.path("home").canonicalize().expect("a directory").join("socket");
        let _file = UnixListener::bind(&socket).expect("a socket");
        let name = format!("toolcrib-partial-{}-{via:?}", std::process::id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name"));
        let loopback = TcpListener::bind("127.0.0.1:0").expect("a port");
        // Somebody's terminal.
        let _terminal = std::fs::File::options().read(true).write(true).open("/dev/ptmx").expect("a terminal");
        let mut rig = Rig::by(Step::Landlock, program, &[]);
        let home = rig.program.path("home/.bashrc").canonicalize().expect("a file");
        std::fs::write(rig.work("bounded.py"), include_str!("bounded.py")).expect("a file");
        let arguments = [
            std::process::id().to_string(),
            name,
            loopback.local_addr().expect("an address").port().to_string(),
            socket.display().to_string(),
            home.display().to_string(),
            rig.work("").display().to_string(),
        ];
        let (status, printed) = rig.run(&format!("python3 bounded.py {}", arguments.map(word).join(" ")));
        assert_eq!(status, 0, "{via:?} {printed}");
        let found: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
        assert_eq!(found.len(), 26, "{via:?} {printed}");
        for (name, said) in found {
            let expected: &[&str] = match name {
                "signal outside" => &["EPERM"],
                "a hard link" | "moving outside" => &["EXDEV", "EACCES", "EPERM"],
                name if name.contains("socket") && name != "a pair of sockets" => &["EAFNOSUPPORT"],
                "the loopback outside" | "a public address" | "a name server" | "a port of its own" => {
                    &["EAFNOSUPPORT"]
                }
                "a pair of sockets" | "reading outside" | "own file" | "own temporary file" | "own cache"
                | "nothing" => &["ok"],
                _ => &["EACCES"],
            };
            assert!(expected.contains(&said), "{via:?}: {name} {said}\n{printed}");
        }
        assert_eq!(std::fs::read_to_string(home).expect("a file"), "# private\n");
        assert!(rig.work("mine").exists());
        let (_, printed) = rig.run("cat /proc/self/status; unshare -U true");
        assert!(printed.contains("NoNewPrivs:\t1") && printed.contains("Seccomp:\t2"), "{via:?} {printed}");
        assert!(
            printed.contains("CapEff:\t0000000000000000") && printed.contains("Operation not permitted"),
            "{printed}"
        );
    }
}

/// What ends a command ends all of it, as without a cell.
#[test]
fn a_command_in_a_domain_is_ended() {
    let mut rig = Rig::by(Step::Landlock, program(Via::Process), &[]);
    assert_eq!(rig.run("exit 3").0, 3);
    let call = rig.client.send("run_shell", command("touch began; sleep 74100 & sleep 74101"));
    eventually("it runs", || rig.program.path("work/began").exists());
    rig.client.cancel(call);
    let answer = rig.client.answer_to(call);
    assert!(answer["error"]["kind"] == "cancelled" && answer["error"]["data"]["survivors"].is_null(), "{answer}");
}

/// A pane whose shell is in a domain reaches its server no more than others; it is a shell of its own.
#[test]
fn a_shell_in_a_domain_is_a_shell() {
    let mut rig = Rig::by(Step::Landlock, program(Via::Pane), &[]);
    assert_eq!(rig.run("kept=here; echo \"[$TMUX$TMUX_PANE]\""), (0, "[]\n".into()));
    let socket = rig.program.path("state/toolcrib/tmux/socket").canonicalize().expect("a socket");
    let (status, printed) = rig.run(&format!("echo $kept; command tmux -S {} ls", word(&socket)));
    assert!(status != 0 && printed.starts_with("here\n") && !printed.contains("windows"), "{printed}");
    let (status, printed) = rig.run("set -m; sleep 30 & jobs; kill %1; wait; (exit 4)");
    assert!(status == 4 && printed.contains("Running"), "{printed}");
    rig.client.result("tmux-create-pane", declared(json!({ "pane": "side" })));
}

/// Whoever is asked is told; `ask = false` passes no such command, and nobody else may answer for it.
#[test]
fn people_are_told_and_asked() {
    let terminal = Terminal::idle(program(Via::Process));
    let given = terminal.program.failing(Step::Landlock.failing(), &[]);
    let before: Vec<String> = [given.get_program()].into_iter().chain(given.get_args()).map(word).collect();
    let set = "--set confine.floor=partial --set confine.ask=leaving";
    terminal.run(&format!("{} {set} call run_shell '{}' >out", before.join(" "), command("touch ran")));
    let screen = terminal.shows(QUESTION).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("wants to run on local, partially confined by Landlock without a network"), "{screen}");
    assert!(screen.contains("can read credentials"), "{screen}");
    let calls = terminal.program.path("state/toolcrib/calls");
    eventually("it can be asked for", || std::fs::read_dir(&calls).is_ok_and(|sockets| sockets.count() > 0));
    let listed = terminal.program.run(&["approve"]);
    let said = toolcrib_tests::outcome::stdout(&listed) + &toolcrib_tests::outcome::stderr(&listed);
    assert!(!said.contains("touch ran") && said.contains("its commands are only partially confined"), "{said}");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
    // Nobody is there.
    let arguments = command("touch ran").to_string();
    for setting in ["confine.ask=leaving", "tools.shell_confirm=false"] {
        let mut unasked = terminal.program.failing(
            Step::Landlock.failing(),
            &["--set", "confine.floor=partial", "--set", setting, "call", "run_shell", &arguments],
        );
        let output = unasked.stdin(Stdio::null()).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("\"denied\"") && !terminal.has("ran"), "{setting}: {output:?}");
    }
}
