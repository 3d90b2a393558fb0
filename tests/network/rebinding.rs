//! Names that lie: which answers of a name server are believed, how often it is asked, and what a connection of yesterday is worth.

use crate::names::{Data, Kind, Names, Query, Record, Reply, records};
use crate::web::{Web, answer, page};
use crate::world::in_a_world;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::envelope::{kind, said};
use toolcrib_tests::is_long;

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_CONTACT: &str = "tcp 93.184.216.34:80";

fn open_web() -> Web {
    Web::open(&[80], |_, wire| wire.write_all(&page("here")))
}

/// S-dyn-01: public when it is asked first, this machine from then on.
#[test]
fn a_name_that_turns_private_leads_to_the_one_answer_that_was_judged() {
    in_a_world(|world| {
        let tries = if is_long() { 10_000 } else { 2_000 };
        let names =
            Names::serve(|query| Reply::addresses(query, if query.before == 0 { &[PUBLIC] } else { &["127.0.0.1"] }));
        let web = Web::open(&[80], |_, wire| wire.write_all(&answer("200 OK", &[("connection", "close")], "here")));
        let mut host = world.program().run();
        for number in 0..tries {
            let name = format!("try{number}.rebind.org");
            host.page(&format!("http://{name}/"));
            assert_eq!((names.count(&name, Kind::A), names.count(&name, Kind::Aaaa)), (1, 1), "{name}");
        }
        for number in 0..50 {
            let name = format!("try{number}.rebind.org");
            let refused = host.denied(&format!("http://{name}/again"));
            assert!(refused.contains("127.0.0.1"), "{refused}");
            assert_eq!((names.count(&name, Kind::A), names.count(&name, Kind::Aaaa)), (2, 2), "{name}");
        }
        assert_eq!((web.connections().len(), web.requests().len()), (tries, tries));
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-02, and the control: as many addresses, all of them public.
#[test]
fn one_private_address_among_many_refuses_the_whole_name() {
    const MIXED: [&[&str]; 7] = [
        &[PUBLIC, "::1"],
        &["10.0.0.5", "2606:4700:4700::1111"],
        &["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7", "192.168.1.1"],
        &["192.168.1.1", "1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7"],
        &["1.0.0.1", "1.0.0.2", "1.0.0.3", "169.254.169.254", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7"],
        &[PUBLIC, "2606:4700:4700::1111", "fd00::1"],
        &[PUBLIC, "::ffff:93.184.216.34"],
    ];
    const CLEAN: &[&str] = &[PUBLIC; 8];
    in_a_world(|world| {
        Names::serve(|query| {
            let number = query.name.strip_suffix(".mixed.org").and_then(|number| number.parse::<usize>().ok());
            Reply::addresses(query, number.map_or(CLEAN, |number| MIXED[number]))
        });
        let web = open_web();
        let mut host = world.program().run();
        for (number, addresses) in MIXED.iter().enumerate() {
            println!("{addresses:?}: {}", host.denied(&format!("http://{number}.mixed.org/")));
        }
        assert_eq!(web.places(), [""; 0]);
        host.page("http://clean.org/");
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// What is left of a maze of aliases: `6.whole.org` and `6.steps.org` are six aliases away from an address.
fn maze(query: &Query) -> Reply {
    let alias = |from: &str, to: &str| (from.to_owned(), Data::Alias(to.to_owned()));
    let to = |address: &str| (query.name.clone(), Data::Address(address.parse().expect("an address")));
    let (first, rest) = query.name.split_once('.').unwrap_or((query.name.as_str(), ""));
    let depth: usize = first.parse().unwrap_or(0);
    let end = |name: &str| {
        let query = Query { name: name.into(), ..query.clone() };
        records(&query, &[PUBLIC])
    };
    Reply::Records(match (rest, first) {
        ("whole.org", _) => {
            let steps =
                (1..=depth).rev().map(|step| alias(&format!("{step}.whole.org"), &format!("{}.whole.org", step - 1)));
            steps.chain(end("0.whole.org")).collect()
        }
        ("steps.org", _) if depth > 0 => vec![alias(&query.name, &format!("{}.steps.org", depth - 1))],
        ("loop.org", "whole") => vec![alias("whole.loop.org", "b.loop.org"), alias("b.loop.org", "whole.loop.org")],
        ("loop.org", "itself") => vec![alias("itself.loop.org", "itself.loop.org")],
        ("loop.org", "a") => vec![alias("a.loop.org", "b.loop.org")],
        ("loop.org", "b") => vec![alias("b.loop.org", "a.loop.org")],
        ("chain.org", "whole") => {
            let private = ("internal.corp".to_owned(), Data::Address("10.0.0.5".parse().expect("an address")));
            let aliases = [alias("whole.chain.org", "cdn.org"), alias("cdn.org", "internal.corp")];
            if query.kind == Kind::A { aliases.into_iter().chain([private]).collect() } else { aliases.into() }
        }
        ("chain.org", "steps") => vec![alias("steps.chain.org", "cdn.org")],
        ("org", "cdn") => vec![alias("cdn.org", "internal.corp")],
        ("corp", "internal") if query.kind == Kind::A => vec![to("10.0.0.5")],
        _ => records(query, &[PUBLIC]),
    })
}

/// S-dyn-03.
#[test]
fn aliases_lead_to_judged_addresses_and_not_without_end() {
    in_a_world(|world| {
        Names::serve(maze);
        let web = open_web();
        let mut host = world.program().run();
        for name in ["whole.chain.org", "steps.chain.org", "9.whole.org", "40.whole.org"] {
            println!("{}", host.denied(&format!("http://{name}/")));
        }
        // Who asks step by step gives up and has no address; how he came there is not known any more.
        for name in ["whole.loop.org", "itself.loop.org", "a.loop.org", "9.steps.org"] {
            let answer = host.fetch(&format!("http://{name}/"));
            assert!(["denied", "unavailable"].contains(&kind(&answer)), "{name}: {answer}");
            println!("{}", said(&answer));
        }
        assert_eq!(web.places(), [""; 0]);
        for name in ["1.whole.org", "1.steps.org", "8.whole.org", "7.steps.org"] {
            host.page(&format!("http://{name}/"));
        }
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-09: `world.rs` has the hosts file and the search domain.
#[test]
fn the_hosts_file_and_search_domains_take_no_part() {
    in_a_world(|world| {
        let names = Names::serve(|query| match query.name.as_str() {
            "listed.org" => Reply::addresses(query, &[PUBLIC]),
            name if name.ends_with(".corp.org") => Reply::addresses(query, &["93.184.216.99"]),
            _ => Reply::NoSuchName,
        });
        let web = open_web();
        let mut host = world.bare_program().run();
        host.page("http://listed.org/");
        for name in ["only-listed.org", "nowhere.org"] {
            let answer = host.fetch(&format!("http://{name}/"));
            assert_eq!(kind(&answer), "unavailable", "{answer}");
            println!("{}", said(&answer));
        }
        println!("{}", host.denied("http://intranet/"));
        let asked = names.asked();
        assert!(!asked.is_empty() && asked.iter().all(|name| !name.contains("corp")), "{asked:?}");
        assert_eq!(web.places(), ["93.184.216.34:80/"]);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-11.
#[test]
fn a_warm_connection_serves_neither_another_plugin_nor_a_name_that_has_turned() {
    in_a_world(|world| {
        let turned = Arc::new(AtomicBool::new(false));
        let has_turned = turned.clone();
        let names = Names::serve(move |query| {
            Reply::addresses(query, if has_turned.load(Ordering::SeqCst) { &["10.0.0.5"] } else { &[PUBLIC] })
        });
        let web = open_web();
        let mut host =
            world.program().guest("requester", &[r#"http.hosts=["shared.org"]"#, r#"http.methods=["GET"]"#]).run();
        // Not how often: a question whose answer is slow is asked again.
        let mut before = 0;
        let mut was_asked = || {
            let now = names.count("shared.org", Kind::A);
            std::mem::replace(&mut before, now) < now
        };
        host.page("http://shared.org/1");
        assert!(was_asked());
        let answer = host.request("GET", "http://shared.org/2", &[]);
        assert_eq!(answer["result"]["status"], 200, "{answer}");
        assert!(was_asked());
        let by: Vec<usize> = web.requests().iter().map(|request| request.connection).collect();
        assert!(by.len() == 2 && by[0] != by[1], "the plugins share a connection: {by:?}");
        turned.store(true, Ordering::SeqCst);
        host.denied("http://shared.org/3");
        assert!(was_asked());
        let answer = host.request("GET", "http://shared.org/4", &[]);
        assert_eq!(kind(&answer), "denied", "{answer}");
        assert!(was_asked());
        assert_eq!(web.requests().len(), 2);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// A connection stands for the answer that it was opened by.
#[test]
fn a_name_that_has_moved_is_followed_and_its_warm_connection_is_not_used() {
    in_a_world(|world| {
        let moved = Arc::new(AtomicBool::new(false));
        let has_moved = moved.clone();
        let _names = Names::serve(move |query| {
            Reply::addresses(query, if has_moved.load(Ordering::SeqCst) { &["93.184.216.35"] } else { &[PUBLIC] })
        });
        let web = open_web();
        let mut host = world.program().run();
        host.page("http://moving.org/1");
        moved.store(true, Ordering::SeqCst);
        host.page("http://moving.org/2");
        assert_eq!(web.places(), ["93.184.216.34:80/1", "93.184.216.35:80/2"]);
        world.assert_record(&[PUBLIC_CONTACT, "tcp 93.184.216.35:80"]);
    });
}

/// As many addresses as the name says, of one family or half of each.
fn crowd(query: &Query) -> Reply {
    let count: usize = query.name.split_once('.').and_then(|(count, _)| count.parse().ok()).unwrap_or(1);
    let address = |number: usize| match query.kind {
        Kind::Aaaa => format!("2606:4700::{number:x}"),
        _ => format!("93.184.{}.{}", number / 250, number % 250 + 1),
    };
    let wanted = match (query.kind, query.name.ends_with("both.org")) {
        (Kind::A, false) => count,
        (Kind::A | Kind::Aaaa, true) => count / 2,
        _ => 0,
    };
    let addresses: Vec<String> = (0..wanted).map(address).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    Reply::addresses(query, &addresses)
}

/// S-dyn-16, the first part.
#[test]
fn more_than_32_addresses_refuse_the_name() {
    in_a_world(|world| {
        Names::serve(crowd);
        let web = open_web();
        let mut host = world.program().run();
        for name in ["33.crowd.org", "1000.crowd.org", "34.both.org"] {
            println!("{}", host.denied(&format!("http://{name}/")));
        }
        assert!(web.connections().is_empty(), "{:?}", web.connections());
        for name in ["32.crowd.org", "32.both.org"] {
            host.page(&format!("http://{name}/"));
        }
    });
}

/// S-dyn-16, the second part. What a name server adds to an answer is nothing that could be connected to.
#[test]
fn an_answer_of_64_kib_does_no_harm() {
    in_a_world(|world| {
        Names::serve(|query| {
            let mut all: Vec<Record> = records(query, &[PUBLIC]);
            if query.name == "long.org" {
                all.push((query.name.clone(), Data::Text(60_000)));
            }
            Reply::Records(all)
        });
        open_web();
        let mut host = world.program().run();
        let answer = host.fetch("http://long.org/");
        assert!(["ok", "denied", "unavailable"].contains(&kind(&answer)), "{answer}");
        host.page("http://short.org/");
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-16, the third part.
#[test]
fn replies_that_nobody_asked_for_are_not_believed() {
    in_a_world(|world| {
        Names::serve(|query| {
            let (lies, truth) = (records(query, &["93.184.216.66"]), records(query, &[PUBLIC]));
            Reply::Forged { lies, truth: (query.name == "honest.org").then_some(truth) }
        });
        let web = open_web();
        let mut host = world.program().run();
        host.page("http://honest.org/");
        let answer = host.fetch("http://lies-alone.org/");
        assert!(["unavailable", "timed_out"].contains(&kind(&answer)), "{answer}");
        assert_eq!(web.places(), ["93.184.216.34:80/"]);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

#[test]
fn a_silent_name_server_is_waited_for_five_seconds() {
    in_a_world(|world| {
        let names = Names::serve(|query| match query.name.as_str() {
            "silent.org" => Reply::Silence,
            _ => Reply::addresses(query, &[PUBLIC]),
        });
        let web = open_web();
        let mut host = world.program().run();
        let begin = Instant::now();
        let answer = host.fetch("http://silent.org/");
        let waited = begin.elapsed();
        println!("after {waited:?}: {}", said(&answer));
        assert!(["unavailable", "timed_out"].contains(&kind(&answer)), "{answer}");
        assert!(waited < Duration::from_secs(12), "{waited:?}");
        assert!(names.count("silent.org", Kind::A) > 0);
        assert!(web.connections().is_empty(), "{:?}", web.connections());
        host.page("http://talkative.org/");
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

#[test]
fn an_answer_that_was_cut_short_is_asked_for_again_by_tcp() {
    in_a_world(|world| {
        let names = Names::serve(|query| Reply::CutShort(records(query, &[PUBLIC])));
        open_web();
        let mut host = world.program().run();
        host.page("http://long.org/");
        let over_tcp = names.queries().iter().filter(|query| query.over_tcp).count();
        assert!(over_tcp > 0, "{:?}", names.queries());
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// A public address of this machine leads past whatever guards it from outside.
#[test]
fn addresses_of_this_machine_are_refused_even_if_they_are_public() {
    in_a_world(|world| {
        Names::everywhere(&["93.184.216.99"]);
        let web = open_web();
        let mut host = world.program().run();
        host.page("http://93.184.216.99/before");
        world.ip(&["addr", "add", "93.184.216.99/32", "dev", "lo"]);
        for url in ["http://93.184.216.99/after", "http://own.org/after"] {
            println!("{}", host.denied(url));
        }
        assert_eq!(web.places(), ["93.184.216.99:80/before"]);
        world.assert_record(&["tcp 93.184.216.99:80"]);
    });
}
