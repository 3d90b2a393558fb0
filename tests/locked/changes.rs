//! The machine's policy is changed while programs run that have read it.

use crate::rig::machine;
use serde_json::json;
use std::cell::RefCell;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use toolcrib_tests::mcp::ERAS;
use toolcrib_tests::outcome::{code, stdout, succeeded};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Client, Running, digest, eventually, guest, mcp};

const OPEN: &str = "[lock]\nplugins = \"off\"\n";
const CLOSED: &str = "[lock]\nplugins = \"off\"\nbuiltin = [\"time\"]\n";

/// The next call is judged by the policy as it is then, and a call that runs ends as it began.
#[test]
fn a_policy_takes_effect_at_the_next_call() {
    let machine = machine!(OPEN);
    let mut client = Client::of(Running::start(&mut machine.command(&["--yes", "run", "--events"])));
    let running = client.send("run_shell", command("echo begun; sleep 4; echo whole"));
    client.until_printed(running, "begun");
    machine.write(CLOSED);
    let client = RefCell::new(client);
    let refused = |client: &RefCell<Client>| {
        let id = client.borrow_mut().send("run_shell", command("true"));
        client.borrow_mut().answer_to(id)["error"].clone()
    };
    eventually("it is refused", || refused(&client)["data"]["code"] == "builtin_off");
    assert_eq!(client.borrow_mut().answer_to(running)["result"]["stdout"], "begun\nwhole\n");
    machine.write(OPEN);
    eventually("it may run again", || refused(&client).is_null());
    assert_eq!(machine.changes(), [None, None]);
}

/// What was refused when a program started is there once a policy lets it be, for `run` as for servers.
#[test]
fn what_another_policy_admits_is_there_without_a_new_start() {
    let machine = machine!(CLOSED);
    let client = RefCell::new(Client::of(Running::start(&mut machine.command(&["--yes", "run"]))));
    let answer = || client.borrow_mut().call("run_shell", command("echo here"));
    assert_eq!(answer()["error"]["data"]["code"], "builtin_off");
    machine.write(OPEN);
    eventually("it may run", || answer()["result"]["stdout"] == "here\n");
}

/// What the policy takes back ends, also while it runs.
#[test]
fn a_policy_that_revokes_a_plugin_ends_its_calls() {
    let machine = machine!(OPEN);
    fs::create_dir_all(machine.program.path("data/toolcrib/plugins")).expect("made");
    fs::copy(guest("hostile"), machine.program.path("data/toolcrib/plugins/hostile.wasm")).expect("copied");
    let mut client = Client::of(Running::start(&mut machine.command(&["run"])));
    assert!(client.call("hostile", json!({ "how": "say", "text": "a" }))["error"].is_null());
    let begin = Instant::now();
    let sleeping = client.send("hostile", json!({ "how": "sleep", "number": 25_000 }));
    let trail = || fs::read_to_string(machine.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    eventually("it runs", || trail().matches("\"event\":\"accepted\"").count() == 2);
    machine.write(&format!("{OPEN}[lock.revoked]\nplugins = [\"{}\"]\n", digest("hostile")));
    let error = client.answer_to(sleeping)["error"].clone();
    assert_eq!((&error["kind"], &error["data"]["code"]), (&json!("denied"), &json!("revoked")), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20), "it ran to its end");
}

/// What cannot be obeyed lets no call begin, and says why, until it is mended.
#[test]
fn a_policy_that_cannot_be_obeyed_lets_nothing_begin() {
    let machine = machine!(OPEN);
    let client = RefCell::new(Client::of(Running::start(&mut machine.command(&["run"]))));
    let error = || client.borrow_mut().call("time", json!({}))["error"].clone();
    assert!(error().is_null());
    for (policy, reason, hint) in [
        ("[lock", "/etc/toolcrib/policy.toml:1:", "policy check"),
        ("[lock]\nplugins = \"signed\"\n", "`list`", "policy check"),
        ("[limits]\ncalls_per_minute = 7\n", "`limits.calls_per_minute` is set up when", "start it again"),
        ("[lock]\nplugins = \"off\"\n[lock.audit]\nkeep = 3\n", "`lock.audit` is set up when", "start it again"),
    ] {
        machine.write(policy);
        eventually("it is not obeyed", || error()["message"].as_str().is_some_and(|text| text.contains(reason)));
        let refused = error();
        assert_eq!(refused["kind"], "unavailable", "{refused}");
        assert!(refused["hint"].as_str().is_some_and(|text| text.contains(hint)), "{refused}");
    }
    machine.write(OPEN);
    eventually("it is obeyed", || error().is_null());
    let changes = machine.changes();
    assert_eq!(changes.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, true, false], "{changes:?}");
}

/// A file that is written in its place is empty for a moment: nothing is open meanwhile. A lock that stays away is gone.
#[test]
fn a_lock_that_is_gone_for_a_moment_opens_nothing() {
    let machine = machine!(OPEN);
    let client = RefCell::new(Client::of(Running::start(&mut machine.command(&["--yes", "run"]))));
    let error = || {
        let error = client.borrow_mut().call("run_shell", command("true"))["error"].clone();
        error["data"]["code"].as_str().or(error["kind"].as_str()).unwrap_or("none").to_owned()
    };
    assert_eq!(error(), "none");
    machine.write(CLOSED);
    eventually("it is closed", || error() == "builtin_off");
    machine.write("");
    let seen = RefCell::new(vec!["builtin_off".to_owned()]);
    eventually("the lock is gone", || {
        let (now, mut seen) = (error(), seen.borrow_mut());
        if seen.last() != Some(&now) {
            seen.push(now.clone());
        }
        now == "none"
    });
    // On a busy machine no call may come within that moment; the trail has it anyway.
    let seen: Vec<String> = seen.into_inner().into_iter().filter(|now| now != "unavailable").collect();
    assert_eq!(seen, ["builtin_off", "none"]);
    assert_eq!(machine.changes(), [None, Some("a lock is gone from it".to_owned()), None]);
}

/// An agent over MCP sees other tools, without asking anew.
#[test]
fn an_agent_is_told_of_the_tools_that_a_policy_leaves() {
    for era in ERAS {
        let machine = machine!(OPEN);
        let mut serve = machine.command(&["serve"]);
        let mut agent = mcp::Client::start(&mut serve, machine.program.clone(), era, json!({}));
        agent.shake_hands();
        assert!(agent.tools().contains(&"run_shell".to_owned()));
        machine.write(CLOSED);
        let agent = RefCell::new(agent);
        eventually("one is left", || agent.borrow_mut().tools() == ["time"]);
        machine.write(OPEN);
        eventually("all are back", || agent.borrow_mut().tools().contains(&"run_shell".to_owned()));
    }
}

/// L-42: the system's log has the head of each seal, by which a trail that was cut shows.
#[test]
fn the_systems_log_knows_how_the_trail_stood() {
    let trail = "[lock.audit]\nseal = \"ratchet\"\nanchor = \"syslog\"\n";
    let machine = machine!(OPEN);
    machine.write(&format!("{OPEN}{trail}"));
    let log = UnixDatagram::bind(machine.program.path("log")).expect("a socket");
    log.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    // A /dev of its own, where the log's socket is the test's.
    let dev = format!(
        "d=$(mktemp -d) && mount -t tmpfs tmpfs $d && for n in null zero random urandom log; do touch $d/$n; done && \
         for n in null zero random urandom; do mount --bind /dev/$n $d/$n; done && \
         mount --bind {:?} $d/log && mount --move $d /dev",
        machine.program.path("log")
    );
    let run = |arguments: &[&str]| machine.command_after(&dev, arguments).output().expect("`timeout` is installed");
    let key = stdout(&run(&["audit", "init"]));
    succeeded(&run(&["call", "time"]));
    let mut told = [0; 256];
    let length = log.recv(&mut told).expect("the log was told");
    let told = String::from_utf8_lossy(&told[..length]).into_owned();
    let (n, head) = told.split_once("audit line ").and_then(|(_, rest)| rest.split_once(" sha256 ")).expect("a head");
    // Whoever cuts the trail back to a line before that is found out.
    let file = machine.program.path("state/toolcrib/audit.jsonl");
    let lines: Vec<String> = fs::read_to_string(&file).expect("a trail").lines().map(str::to_owned).collect();
    let since = format!("{n}:{head}");
    succeeded(&run(&["audit", "verify", "--since", &since]));
    let cut = usize::try_from(n.parse::<u64>().expect("a number")).expect("it fits") - 1;
    fs::write(&file, lines[..cut].iter().map(|line| format!("{line}\n")).collect::<String>()).expect("written");
    assert_eq!(code(&run(&["audit", "verify", "--since", &since])), 1, "{key}");
}

/// `--yes` says yes only as long as the policy lets it.
#[test]
fn a_policy_takes_back_what_was_said_in_advance() {
    let machine = machine!("");
    let client = RefCell::new(Client::of(Running::start(&mut machine.command(&["--yes", "run"]))));
    let error = || client.borrow_mut().call("run_shell", command("true"))["error"].clone();
    assert!(error().is_null());
    machine.write("[approval]\nallow_yes = false\n");
    eventually("nobody can be asked", || error()["message"].as_str().is_some_and(|text| text.contains("--yes")));
}
