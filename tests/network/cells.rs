//! The network of confined commands: what they reach by name and by proxy, what they are asked about and told, and what they never reach. The
//! letters are those of the cases of confinement.

use crate::names::{Names, Reply};
use crate::vectors::vectors;
use crate::web::{Web, page};
use crate::world::{World, in_a_world};
use serde_json::Value;
use std::sync::Arc;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{Client, Program, QUESTION, Terminal};

const PUBLIC: &str = "93.184.216.34";
/// Names, and the addresses that the test's name server has for them.
const ZONE: [(&str, &str); 6] = [
    ("named.org", PUBLIC),
    ("other.org", PUBLIC),
    ("sub.wild.org", PUBLIC),
    ("unnamed.org", "93.184.216.35"),
    ("private.org", "10.0.0.7"),
    ("packages.test", "127.0.0.1"),
];
const NAMED: &str = r#"confine.hosts=["named.org", "*.wild.org", "private.org"]"#;
/// How a program is called that knows no proxy.
const BARE: &str = "env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy";

fn zone() -> Names {
    Names::serve(|query| match ZONE.iter().find(|(name, _)| *name == query.name) {
        Some((_, address)) => Reply::addresses(query, &[address]),
        None => Reply::NoSuchName,
    })
}

/// Servers of the ports at every address: the plain ones say which host they were asked for, at 443 there is `named.org`.
fn servers(ports: &[u16]) -> (Authority, Web, Web) {
    let authority = Authority::new();
    let named = authority.server("named.org");
    let plain = Web::open(ports, |request, wire| wire.write_all(&page(&request.values("host").join(" "))));
    let encrypted = Web::open_encrypted(move |_| named.clone(), |_, wire| wire.write_all(&page("encrypted")));
    (authority, plain, encrypted)
}

/// A host whose commands are confined.
struct Rig {
    client: Client,
    program: Program,
}

impl Rig {
    fn new(world: &World, has_panes: bool, settings: &[&str]) -> Self {
        let (program, set) = world.confined(has_panes);
        Self::of(program, &set, settings)
    }

    fn of(program: Program, set: &[String], settings: &[&str]) -> Self {
        let mut arguments = vec!["--yes"];
        arguments.extend(set.iter().map(String::as_str));
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        arguments.push("run");
        Self { client: program.client(&arguments), program }
    }

    fn result(&mut self, text: &str) -> Value {
        self.client.result("run_shell", command(text))
    }

    /// What a command printed, which has to come to an end.
    fn said(&mut self, text: &str) -> String {
        let result = self.result(text);
        let part = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        part("stdout") + &part("stderr")
    }

    fn notices(&mut self, text: &str) -> String {
        self.result(text)["notices"].to_string()
    }
}

/// Runs the body with plain commands and in panes.
fn both(world: &World, settings: &[&str], body: impl Fn(Rig)) {
    for has_panes in [false, true] {
        body(Rig::new(world, has_panes, settings));
    }
}

#[test]
fn hosts_that_are_named_are_reached_by_programs_of_all_kinds() {
    in_a_world(|world| {
        let (names, (authority, plain, encrypted)) = (zone(), servers(&[80]));
        both(world, &[NAMED], |mut rig| {
            rig.program.write("work/ca.pem", authority.pem());
            rig.program.write("work/fetch.mjs", "console.log(await (await fetch('http://named.org/')).text())");
            let raw = "import socket; s = socket.create_connection(('named.org', 80), 5); \
                       s.sendall(b'GET / HTTP/1.1\\r\\nHost: named.org\\r\\nConnection: close\\r\\n\\r\\n'); \
                       print(b''.join(iter(lambda: s.recv(999), b'')).decode().split()[-1])";
            let urllib = "import urllib.request as u; print(u.urlopen('http://named.org/', timeout=5).read().decode())";
            for (program, expected) in [
                ("curl -sS http://named.org/", "named.org"),
                ("curl -sS http://sub.wild.org/", "sub.wild.org"),
                ("curl -sS --cacert ca.pem https://named.org/", "encrypted"),
                ("curl -sS --socks5-hostname 127.0.0.1:3128 http://named.org/", "named.org"),
                ("curl -sS --socks5-hostname 127.0.0.1:3128 --cacert ca.pem https://named.org/", "encrypted"),
                ("wget -qO- http://named.org/", "named.org"),
                ("wget -qO- --ca-certificate=ca.pem https://named.org/", "encrypted"),
                (&format!("python3 -c \"{raw}\""), "named.org"),
                (&format!("python3 -c \"{urllib}\""), "named.org"),
                ("node fetch.mjs", "named.org"),
            ] {
                for program in [program.to_owned(), format!("{BARE} {program}")] {
                    let said = rig.said(&program);
                    assert_eq!(said.trim(), expected, "{program}");
                }
            }
        });
        // One question for each connection, of the families that there are, and none for what a cell made up.
        let asked = names.asked();
        assert!(asked.iter().all(|name| ["named.org", "sub.wild.org"].contains(&name.as_str())), "{asked:?}");
        let places = [plain.connections(), encrypted.connections()].concat();
        assert!(places.iter().all(|place| place.ip().to_string() == PUBLIC), "{places:?}");
    });
}

/// C-35, C-36, C-38: what is not named is not asked for and not connected to, and the result has the line that names it.
#[test]
fn what_is_not_named_is_refused_with_the_line_that_names_it() {
    in_a_world(|world| {
        let (names, (_, plain, encrypted)) = (zone(), servers(&[80, 8080]));
        both(world, &[NAMED], |mut rig| {
            for program in ["curl -sS http://unnamed.org/", "curl -sS https://unnamed.org/"] {
                let said = rig.said(program);
                assert!(said.contains("403") || said.contains("is not in `hosts`"), "{program}: {said}");
                let notices = rig.notices(&format!("{BARE} {program}"));
                assert!(
                    notices.contains("unnamed.org:")
                        && notices.contains("add \\\"unnamed.org\\\" to `hosts` under [confine]"),
                    "{notices}"
                );
            }
            let said = rig.said("curl -sS http://named.org:8080/");
            assert!(said.contains("add 8080 to `ports` under [confine]"), "{said}");
            let notices = rig.notices(&format!("{BARE} curl -sS http://named.org:8080/"));
            assert!(notices.contains("add 8080 to `ports` under [confine]"), "{notices}");
            let notices = rig.notices(&format!("{BARE} curl -sS http://{PUBLIC}/"));
            assert!(notices.contains("no address leads out of a cell"), "{notices}");
            let said = rig.said("getent ahostsv4 secrets-in-labels.unnamed.org | head -n 1");
            assert!(said.starts_with("127.1."), "{said}");
            // It leads where it is no public address, and that is not named.
            let said = rig.said("curl -sS http://private.org/");
            assert!(
                said.contains("10.0.0.7") && said.contains("add \\\"10.0.0.7\\\" to `hosts`")
                    || said.contains("add \"10.0.0.7\""),
                "{said}"
            );
            let said = rig.said("curl -sS http://localhost:80/ 2>&1; curl -sS http://packages.test/");
            assert!(said.contains("is a name of the local network"), "{said}");
        });
        assert_eq!(names.asked().iter().filter(|name| *name != "private.org").count(), 0, "{:?}", names.asked());
        assert_eq!((plain.connections().len(), encrypted.connections().len()), (0, 0));
    });
}

/// C-36: addresses in all spellings, C-37: names that are none.
#[test]
fn no_spelling_leads_past_the_rules() {
    in_a_world(|world| {
        let (names, (_, plain, encrypted)) = (zone(), servers(&[80]));
        let hosts = vectors().into_iter().filter(|vector| vector.verdict.starts_with("deny")).filter_map(|vector| {
            let rest = vector.input.split_once("://")?.1.to_owned();
            Some(rest.split(['/', '?', '#']).next()?.to_owned())
        });
        let odd = [
            "a\0b.org",
            "a\rb.org",
            "a%2eb.org",
            "x@named.org",
            "named.org\0.unnamed.org",
            "named.org%00",
            "a b.org",
            "-a.org",
            "",
        ];
        let hosts: Vec<String> = hosts.chain(odd.map(str::to_owned)).collect();
        let mut rig = Rig::new(world, false, &[NAMED]);
        rig.program.write("work/hosts.json", serde_json::to_string(&hosts).expect("JSON"));
        rig.program.write("work/try.py", include_str!("cells.py"));
        let result = rig.client.result("run_shell", waiting("python3 try.py hosts.json", "120s"));
        assert_eq!(result["stdout"], format!("{}\n", hosts.len()), "{result}");
        assert!(names.asked().is_empty(), "{:?}", names.asked());
        assert_eq!((plain.connections().len(), encrypted.connections().len()), (0, 0));
    });
}

/// C-39: who was let to one name does not ask for another there.
#[test]
fn what_is_sent_fits_the_name_that_was_let_through() {
    in_a_world(|world| {
        let (_names, (_, plain, encrypted)) = (zone(), servers(&[80]));
        both(world, &[NAMED], |mut rig| {
            rig.program.write("work/twice.py", include_str!("twice.py"));
            let greet = |name: &str| {
                format!("echo | {BARE} openssl s_client -connect named.org:443 {name} 2>&1 | grep -c '^subject'; false")
            };
            assert_eq!(rig.said(&greet("-servername named.org")).trim(), "1");
            for (name, why) in
                [("-servername other.org", "greets `other.org`"), ("-noservername", "greets nobody by name")]
            {
                let result = rig.result(&greet(name));
                assert_eq!(result["stdout"].as_str().map(str::trim), Some("0"), "{name}");
                assert!(result["notices"].to_string().contains(why), "{result}");
            }
            for prefix in ["", BARE] {
                let said =
                    rig.said(&format!("{prefix} curl -sS -H 'Host: other.org' -w ' %{{http_code}}' http://named.org/"));
                assert!(said.ends_with(" 400"), "{said}");
            }
            assert_eq!(rig.said(&format!("{BARE} python3 twice.py")), "200 named.org\n400\n");
            // What speaks no TLS is not carried to where that is spoken, nor anything else to where requests are.
            let result = rig.result(&format!("{BARE} sh -c 'curl -sS http://named.org:443/; printf \"\\000\\001\\n\" | timeout 5 python3 -c \"import socket,sys; s = socket.create_connection((\\\"named.org\\\", 80), 5); s.sendall(b\\\"\\\\0\\\\1\\\"); print(s.recv(9))\"'"));
            let notices = result["notices"].to_string();
            assert!(notices.contains("is not TLS") && notices.contains("is no request of the web"), "{result}");
        });
        let hosts: Vec<_> = plain.requests().iter().map(|request| request.values("host").join(" ")).collect();
        assert!(hosts.iter().all(|host| host == "named.org"), "{hosts:?}");
        assert!(encrypted.requests().is_empty());
    });
}

/// Other ways to name a host than by `Host`, and what is meant for proxies, do not reach a server; a websocket does.
#[test]
fn only_a_websocket_is_upgraded_to() {
    in_a_world(|world| {
        let (_names, (_, plain, _)) = (zone(), servers(&[80]));
        let mut rig = Rig::new(world, false, &[NAMED]);
        for prefix in ["", BARE] {
            for upgrade in ["h2c", "websocket", "TLS/1.2"] {
                let headers = format!("-H 'Connection: Upgrade, HTTP2-Settings' -H 'Upgrade: {upgrade}'");
                let more = "-H 'HTTP2-Settings: AAMAAABk' -H 'Proxy-Authorization: Basic eDp5'";
                assert_eq!(rig.said(&format!("{prefix} curl -sS {headers} {more} http://named.org/")), "named.org");
            }
        }
        let upgrades: Vec<_> = plain.requests().iter().map(|request| request.values("upgrade").join(" ")).collect();
        assert_eq!(upgrades, ["", "websocket", "", "", "websocket", ""]);
        for name in ["http2-settings", "proxy-authorization", "proxy-connection"] {
            assert!(plain.requests().iter().all(|request| request.values(name).is_empty()), "{name}");
        }
    });
}

/// C-40: a name that is let through does not lead to what is not.
#[test]
fn a_name_that_turns_private_is_refused() {
    in_a_world(|world| {
        let names =
            Names::serve(|query| Reply::addresses(query, &[if query.before == 0 { PUBLIC } else { "127.0.0.1" }]));
        let (_, plain, _) = servers(&[80]);
        let mut rig = Rig::new(world, false, &[NAMED]);
        assert_eq!(rig.said("curl -sS http://named.org/"), "named.org");
        let said = rig.said("curl -sS http://named.org/");
        assert!(said.contains("`named.org` resolves to 127.0.0.1, which is not public"), "{said}");
        assert_eq!(plain.connections().len(), 1);
        drop(rig);
        // Where the address is named, that is where it may lead.
        let mut rig = Rig::new(world, false, &[r#"confine.hosts=["packages.test", "127.0.0.1"]"#]);
        assert_eq!(rig.said("curl -sS http://packages.test/"), "packages.test");
        drop(names);
    });
}

/// A person is asked about a public host that is not named, once a call; `--yes` is no answer to that.
#[test]
fn a_person_is_asked_about_a_host_that_is_not_named() {
    in_a_world(|world| {
        let (names, (_, plain, _)) = (zone(), servers(&[80]));
        for (answer, reached) in [("n", false), ("y", true)] {
            let (program, set) = world.confined(false);
            let terminal = Terminal::idle(program);
            let twice = "for i in 1 2; do curl -sS http://unnamed.org/; done";
            let unasked = "--set confine.ask=leaving";
            terminal.run(&format!("$toolcrib {} {unasked} call run_shell '{}' >out", quoted(&set), command(twice)));
            let question = terminal.shows(QUESTION);
            let question = question.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                question.contains("wants to connect from this machine") && question.contains("unnamed.org:80"),
                "{question}"
            );
            assert!(names.asked().is_empty() && plain.connections().is_empty(), "not before somebody said yes");
            terminal.press(&[answer, "Enter"]);
            let _ = terminal.ended();
            let said = terminal.out()[0].to_string();
            assert_eq!(said.matches("unnamed.orgunnamed.org").count() == 1, reached, "{said}");
            assert_eq!(said.contains("Connection denied by user."), !reached, "{said}");
            assert!(!said.contains("call it again"), "a no leads to no offer of more: {said}");
        }
        assert_eq!(plain.connections().len(), 2);
    });
}

/// The hosts that the text of a command names are part of its first question.
#[test]
fn a_person_is_asked_once_about_all_hosts_that_a_command_names() {
    in_a_world(|world| {
        let (names, (_, plain, _)) = (zone(), servers(&[80]));
        for (text, answer, connections) in [
            ("curl -sS http://unnamed.org/; curl -sS http://other.org/", "n", 0),
            ("curl -sS http://unnamed.org/; curl -sS http://other.org/", "y", 2),
        ] {
            let (program, set) = world.confined(false);
            let terminal = Terminal::idle(program);
            let unasked = "--set confine.ask=leaving";
            terminal.run(&format!("$toolcrib {} {unasked} call run_shell '{}' >out", quoted(&set), command(text)));
            let question = terminal.shows(QUESTION);
            assert!(question.contains("unnamed.org:80") && question.contains("other.org:80"), "{question}");
            assert!(names.asked().is_empty() && plain.connections().is_empty(), "not before somebody said yes");
            terminal.press(&[answer, "Enter"]);
            let _ = terminal.ended();
            let said = terminal.out()[0].to_string();
            assert_eq!(plain.connections().len(), connections, "{said}");
            assert_eq!(said.matches("toolcrib: Connection denied by user.").count() == 2, answer == "n", "{said}");
        }
    });
}

/// A command that has a secret reaches the hosts that its question named, and nobody is asked for another one meanwhile.
#[test]
fn a_command_with_a_secret_reaches_no_host_that_is_not_named() {
    use std::os::unix::fs::PermissionsExt;
    in_a_world(|world| {
        let (names, (_, plain, _)) = (zone(), servers(&[80]));
        let (program, set) = world.confined(false);
        program.write("home/key", "zK4vQ9-Lw2x_Ht7Rm");
        let key = program.path("home/key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
        let secret = [
            "--set".to_owned(),
            format!("secret.GITHUB.file={:?}", key.display().to_string()),
            "--set".to_owned(),
            "secret.GITHUB.env=true".into(),
            "--set".to_owned(),
            "tools.shell_secrets=[\"GITHUB\"]".into(),
            "--set".to_owned(),
            NAMED.into(),
        ];
        let terminal = Terminal::idle(program);
        let text = "curl -sS http://named.org/?$GITHUB; curl -sS http://unnamed.org/";
        let settings = quoted(&[set, secret.to_vec()].concat());
        terminal
            .run(&format!("$toolcrib {settings} --set confine.ask=leaving call run_shell '{}' >out", command(text)));
        let _ = terminal.ended();
        let said = terminal.out()[0].to_string();
        assert!(said.contains("named.org") && said.contains("`unnamed.org:80` is not in `hosts`"), "{said}");
        assert!(!terminal.screen().contains(QUESTION) && !names.asked().contains(&"unnamed.org".to_owned()));
        assert_eq!(plain.connections().len(), 1);
    });
}

/// A yes holds as long as the call that asked: what that left in a pane reaches the hosts that are named, and no others.
#[test]
fn an_answer_ends_with_its_call() {
    in_a_world(|world| {
        let (_names, (_, plain, _)) = (zone(), servers(&[80]));
        let (program, set) = world.confined(true);
        let terminal = Terminal::idle(program);
        let left = "while [ ! -e go ]; do sleep 0.1; done; curl -sS http://named.org/ http://unnamed.org/ >later.part; mv later.part later";
        let text = format!("curl -sS http://unnamed.org/; ({left}) & true");
        let request = serde_json::json!({ "id": 1, "tool": "run_shell", "arguments": command(&text) });
        terminal.program.write("work/requests", format!("{request}\n"));
        terminal.run(&format!(
            "(cat requests; while [ ! -e later ]; do sleep 0.1; done) | $toolcrib {} --set {} --set confine.ask=leaving run >out",
            quoted(&set),
            quoted(&[NAMED.to_owned()])
        ));
        terminal.asked(1);
        terminal.press(&["y", "Enter"]);
        let out = terminal.program.path("work/out");
        toolcrib_tests::eventually("the call ends", || std::fs::metadata(&out).is_ok_and(|found| found.len() > 0));
        assert_eq!(terminal.out()[0]["result"]["exit_code"], 0, "{:?}", terminal.out());
        assert_eq!(plain.connections().len(), 1);
        terminal.program.write("work/go", "");
        assert_eq!(terminal.ended(), 0);
        let later = std::fs::read_to_string(terminal.program.path("work/later")).expect("what it got");
        assert!(later.starts_with("named.org") && later.contains("is not in `hosts`"), "{later}");
        assert_eq!(plain.connections().len(), 2);
    });
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

/// A policy that names hosts closes all others: nobody is asked about them.
#[test]
fn nobody_is_asked_where_a_policy_names_the_hosts() {
    in_a_world(|world| {
        let (_names, (_, plain, _)) = (zone(), servers(&[80]));
        let (program, set) = world.confined(false);
        program.write("policy.toml", "[confine]\nhosts = [\"named.org\"]\n");
        let policy = program.path("policy.toml").display().to_string();
        let terminal = Terminal::idle(program);
        let text = "curl -sS http://unnamed.org/";
        terminal.run(&format!(
            "$toolcrib --policy {policy} {} --set confine.ask=leaving call run_shell '{}' >out",
            quoted(&set),
            command(text)
        ));
        let _ = terminal.ended();
        let said = terminal.out()[0].to_string();
        assert!(said.contains("the operator's policy decides this: `confine.hosts`"), "{said}");
        assert!(plain.connections().is_empty());
    });
}

/// C-45: a pane outlives its host, and has no network until the next one comes.
#[test]
fn a_pane_has_a_network_as_long_as_a_host_serves_it() {
    in_a_world(|world| {
        let (_names, (_, plain, _)) = (zone(), servers(&[80]));
        let (program, set) = world.confined(true);
        let mut first = Rig::of(program, &set, &[NAMED]);
        let asks = "(while sleep 0.1; do curl -sS -m 2 http://named.org/ >>said 2>>failed; done) & echo begun";
        assert_eq!(first.said(asks).trim().lines().last(), Some("begun"));
        let work = first.program.path("work");
        let has = |file: &str| std::fs::metadata(work.join(file)).is_ok_and(|found| found.len() > 0);
        toolcrib_tests::eventually("it reaches the host", || has("said"));
        let Rig { client, program } = first;
        drop(client);
        toolcrib_tests::eventually("it does not any more", || has("failed"));
        let reached = plain.connections().len();
        std::fs::remove_file(work.join("said")).expect("a file");
        let mut next = Rig::of(program, &set, &[NAMED]);
        assert_eq!(next.said("echo here").trim(), "here");
        toolcrib_tests::eventually("it does again", || has("said"));
        assert!(plain.connections().len() > reached);
        let _ = next.said("kill %1; kill $!; true");
    });
}

/// What a command left in a pane meets the rules of the user as its call did, whoever runs then.
#[test]
fn a_rule_denies_a_host_also_to_what_goes_on_after_its_call() {
    in_a_world(|world| {
        let (_names, (_, plain, _)) = (zone(), servers(&[80]));
        let (program, set) = world.confined(true);
        for rule in ["named.org", "other.org"] {
            succeeded(&program.run(&["policy", "rules", "add", "deny", "--host", rule]));
        }
        succeeded(&program.run(&["policy", "rules", "remove", "2"]));
        let mut rig = Rig::of(program, &set, &["confine.hosts=[\"named.org\", \"other.org\"]"]);
        let left = "while [ ! -e go ]; do sleep 0.1; done; curl -sS http://other.org/ http://named.org/ >later.part; mv later.part later";
        assert_eq!(rig.said(&format!("({left}) & echo begun")).trim().lines().last(), Some("begun"));
        rig.program.write("work/go", "");
        let later = rig.program.path("work/later");
        toolcrib_tests::eventually("it has tried", || later.exists());
        let later = std::fs::read_to_string(later).expect("what it got");
        assert!(later.starts_with("other.org") && later.contains("denied by a rule of yours"), "{later}");
        assert_eq!(plain.connections().len(), 1);
    });
}

/// The record has each server that a call's commands were let to or not, with who decided.
#[test]
fn connections_are_on_record() {
    in_a_world(|world| {
        let (_names, _servers) = (zone(), servers(&[80]));
        let mut rig = Rig::new(world, false, &[NAMED]);
        rig.said("curl -sS http://named.org/ http://named.org/ http://unnamed.org/");
        let trail = std::fs::read_to_string(rig.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
        let has = |what: &str, decision: &str| {
            trail.matches(&format!("\"what\":\"connect to {what}\",\"decision\":\"{decision}")).count()
        };
        assert_eq!(has("named.org:80", "allowed by confine.hosts"), 1, "{trail}");
        assert_eq!(has("unnamed.org:80", "denied by confine.hosts: "), 1, "{trail}");
    });
}

/// Servers of a world, for whatever a person works with: a repository, and the packages of three languages.
#[test]
fn packages_and_repositories_are_fetched_from_named_hosts() {
    in_a_world(|world| {
        let _names = zone();
        let (program, set) = world.confined(false);
        let served = Arc::new(crate::packages::make(&program.path("served")));
        let _web = Web::open(&[80], move |request, wire| wire.write_all(&served.answer(&request.target)));
        for has_panes in [false, true] {
            let (program, _) = world.confined(has_panes);
            let mut rig = Rig::of(program, &set, &[r#"confine.hosts=["packages.test", "127.0.0.1"]"#]);
            for (name, text) in crate::packages::PROJECT {
                rig.program.write(&format!("work/{name}"), text);
            }
            for (what, script, expected) in crate::packages::FETCHES {
                let result = rig.client.result("run_shell", waiting(&crate::packages::toolchain(script), "120s"));
                assert_eq!(result["exit_code"], 0, "{what}: {result}");
                assert!(result["stdout"].to_string().contains(expected), "{what}: {result}");
            }
        }
    });
}
