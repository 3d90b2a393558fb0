//! Netlink in a cell: programs list interfaces by it, and change nothing and hear of no other network.

use crate::rig::{BOTH, REQUIRED, Rig, Step, Via, program, word};
use std::collections::BTreeMap;
use std::process::Command;
use toolcrib_tests::{Client, Program, Running};

/// How a cell is on a network: with a loopback of its own, and with this machine's.
const NETWORKS: [&str; 3] = ["egress", "none", "full"];

fn rig(via: Via, network: &str) -> Rig {
    Rig::with(via, &[&format!("confine.network={network}")])
}

/// How dev servers find out at which addresses they can be reached.
#[test]
fn programs_list_interfaces() {
    for via in BOTH {
        for network in NETWORKS {
            let mut rig = rig(via, network);
            let script =
                "const all = require('os').networkInterfaces(); console.log(all.lo[0].address, all.lo[0].internal)";
            assert_eq!(
                rig.run(&format!("node -e {}", word(script))),
                (0, "127.0.0.1 true\n".into()),
                "{via:?} {network}"
            );
            let script = "import socket; print([name for _, name in socket.if_nameindex()])";
            let (status, printed) = rig.run(&format!("python3 -c {}", word(script)));
            assert!(status == 0 && printed.starts_with("['lo'"), "{via:?} {network} {printed}");
            assert!(network == "full" || printed == "['lo']\n", "{via:?} {network} {printed}");
            let (status, printed) = rig.run("ip address; ip route show table local; ip rule");
            assert!(status == 0 && printed.contains("inet 127.0.0.1/8"), "{via:?} {network} {printed}");
        }
    }
}

/// `ss` gets no socket for its questions, and reads `/proc/net`.
#[test]
fn a_list_of_sockets_is_read_from_files() {
    for via in BOTH {
        let mut rig = rig(via, "egress");
        let script = "import socket, subprocess; one = socket.create_server(('127.0.0.1', 4321)); subprocess.run(['ss', '-tln'])";
        let (status, printed) = rig.run(&format!("python3 -c {}", word(script)));
        assert!(status == 0 && printed.contains("127.0.0.1:4321"), "{via:?} {printed}");
    }
}

/// The C library looks by netlink which families are configured, and does not count 127.0.0.1. A cell has another address for that.
#[test]
fn names_are_found_for_families_that_are_configured() {
    for network in ["egress", "none"] {
        let mut rig = rig(Via::Process, network);
        for family in ["AF_INET", "AF_UNSPEC"] {
            let script = format!(
                "import socket; print({{one[4][0] for one in socket.getaddrinfo('localhost', 80, socket.{family}, 0, 0, socket.AI_ADDRCONFIG)}})"
            );
            let found = rig.run(&format!("python3 -c {}", word(script)));
            assert_eq!(found, (0, "{'127.0.0.1'}\n".into()), "{network} {family}");
        }
    }
}

/// Nothing of a network is changed, no message reaches another process, and no other protocol of netlink is there.
#[test]
fn nothing_but_lists_is_to_be_had() {
    for via in BOTH {
        for network in NETWORKS {
            let before = machine();
            let mut rig = rig(via, network);
            let inside = "ip -o address; ip -o link; ip -o route show table all";
            let (_, own) = rig.run(inside);
            check(&mut rig, &format!("{via:?} {network}"));
            assert_eq!(without_times(&rig.run(inside).1), without_times(&own), "{via:?} {network}");
            assert_eq!(machine(), before, "{via:?} {network}");
        }
    }
}

/// By Landlock a command is on this machine's network in this machine's user namespace.
#[test]
fn a_domain_changes_nothing_either() {
    for via in BOTH {
        let before = machine();
        let mut rig = Rig::by(Step::Landlock, program(via), &["confine.network=full"]);
        let script = "import socket; print('lo' in [name for _, name in socket.if_nameindex()])";
        assert_eq!(rig.run(&format!("python3 -c {}", word(script))), (0, "True\n".into()), "{via:?}");
        check(&mut rig, &format!("{via:?} Landlock"));
        assert_eq!(machine(), before, "{via:?}");
    }
}

/// Tries all, in a cell that is on a network so.
fn check(rig: &mut Rig, on: &str) {
    std::fs::write(rig.work("netlink.py"), include_str!("netlink.py")).expect("a file");
    let id = std::process::id();
    let (status, said) = rig.run(&format!("python3 netlink.py {id} {id} >tried"));
    assert_eq!(status, 0, "{on} {said}");
    let printed = std::fs::read_to_string(rig.work("tried")).expect("a file");
    let found: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    assert!(found.len() > 150, "{on} {printed}");
    for (name, error) in found {
        let expected: &[&str] = match name {
            "packets in sequence" | "a stream" => &["ESOCKTNOSUPPORT"],
            "a pair" => &["EAFNOSUPPORT"],
            name if name.starts_with("protocol ") => &["EPROTONOSUPPORT"],
            // Older kernels do not have all of them.
            name if name.starts_with("message ") => &["EPERM", "ENOTSUP"],
            // There is no such number and no such process, or this kernel does not ask for others.
            "the network of a process" | "a numbered network" => &["EPERM", "EINVAL", "ENOTSUP", "ESRCH"],
            _ => &["EPERM"],
        };
        assert!(expected.contains(&error), "{on}: {name} {error}\n{printed}");
    }
}

/// The interfaces, addresses and routes of this machine.
#[expect(clippy::disallowed_methods, reason = "a look from outside of the cell")]
fn machine() -> String {
    let said = |what: &[&str]| Command::new("ip").arg("-o").args(what).output().expect("ip of iproute2").stdout;
    let lists = [&["address"][..], &["link"], &["route", "show", "table", "all"]].map(said);
    without_times(&String::from_utf8_lossy(&lists.concat()))
}

/// Without what is less from second to second.
fn without_times(listed: &str) -> String {
    let words = listed.split_whitespace();
    words
        .filter(|word| !word.ends_with("sec") && !word.chars().all(|c| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Who joins every group hears what changes on the cell's own network, which is nothing.
#[test]
fn events_of_other_networks_are_not_heard() {
    for (network, hears) in [("egress", false), ("none", false), ("full", true)] {
        let mut rig = on_a_network_that_changes(program(Via::Process), network);
        let script = "import socket
one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
one.bind((0, 0))
joined = 0
for group in range(1, 65):
    try:
        one.setsockopt(270, 1, group)
        joined += 1
    except OSError:
        pass
one.settimeout(3)
try:
    print(joined > 20, len(one.recv(65536)) > 0)
except TimeoutError:
    print(joined > 20, False)
";
        let heard = if hears { "True True\n" } else { "True False\n" };
        assert_eq!(rig.run(&format!("python3 -c {}", word(script))), (0, heard.into()), "{network}");
        // Who started the host administers this network; its commands do not.
        check(&mut rig, network);
    }
}

/// A host whose network belongs to who started it, and gets and loses an address all the time.
#[expect(clippy::disallowed_methods, reason = "the program in a namespace of its own")]
fn on_a_network_that_changes(program: Program, network: &str) -> Rig {
    let set = format!("confine.network={network}");
    let given = program.command(&["--yes", "--set", REQUIRED, "--set", &set, "run"]);
    let change = "ip address add 127.8.8.8/8 dev lo && ip address delete 127.8.8.8/8 dev lo && sleep 0.2";
    // Not by `exec`: a host ends the processes below it that no call has.
    let script =
        format!("ip link set lo up; while kill -0 $$ && {change}; do :; done </dev/null >&2 & \"$@\"; exit $?");
    let mut command = Command::new("unshare");
    command.args(["--net", "--user", "--map-current-user", "--keep-caps", "sh", "-c", &script, "sh"]);
    command.arg(given.get_program()).args(given.get_args());
    command.current_dir(given.get_current_dir().expect("a directory")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Rig { client: Client::of(Running::start(&mut command)), program }
}
