//! S-dyn-12: whose word is taken for who a server is, and what happens to what came encrypted.

use crate::host::Preparation;
use crate::names::{Names, Reply};
use crate::web::{Web, page, redirect};
use crate::world::{World, in_a_world};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::HashMap;
use std::net::IpAddr;
use toolcrib_tests::certificate::{Authority, authority_as_server, self_signed};
use toolcrib_tests::envelope::{kind, said};

const PUBLIC: &str = "93.184.216.1";

/// A program that trusts the authority.
fn trusting<'w>(world: &'w World, authority: &Authority) -> Preparation<'w> {
    let program = world.program();
    program.program.write("ca.pem", authority.pem());
    let file = program.program.path("ca.pem").display().to_string();
    program.set(&format!("network.ca_file={file:?}"))
}

/// Servers whose address is in the fourth part of 93.184.216.x, and whose name is `x.number.org`.
fn numbered(authority: &Authority) -> Web {
    let servers: HashMap<IpAddr, _> = [
        (1, authority.server("1.number.org")),
        (2, authority.server("elsewhere.org")),
        (3, authority.server_between("3.number.org", (2019, 2020))),
        (4, authority.server_between("4.number.org", (2090, 2091))),
        (5, self_signed("5.number.org")),
        (6, Authority::new().server("6.number.org")),
        (7, authority.server("93.184.216.7")),
        (8, authority.server("93.184.216.99")),
        (9, authority.server("*.number.org")),
        (10, authority.server("number.org")),
    ]
    .into_iter()
    .map(|(number, server)| (IpAddr::from([93, 184, 216, number]), server))
    .collect();
    Web::open_encrypted(move |to| servers[&to].clone(), |_, wire| wire.write_all(&page("secret")))
}

fn numbered_names() -> Names {
    Names::serve(|query| {
        let number = query.name.split('.').next().unwrap_or_default();
        Reply::addresses(query, &[&format!("93.184.216.{number}")])
    })
}

#[test]
fn a_server_has_to_prove_the_name_that_was_asked_for() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, web) = (numbered_names(), numbered(&authority));
        let mut host = trusting(world, &authority).run();
        for url in [
            "https://2.number.org/",
            "https://3.number.org/",
            "https://4.number.org/",
            "https://5.number.org/",
            "https://6.number.org/",
            "https://7.number.org/",
            "https://8.number.org/",
            "https://10.number.org/",
            "https://93.184.216.8/",
            "https://93.184.216.1/",
        ] {
            let answer = host.fetch(url);
            assert!(["unavailable", "denied"].contains(&kind(&answer)), "{url}: {answer}");
            println!("{url}: {}", said(&answer));
        }
        assert_eq!(web.places(), [""; 0], "a server that proved nothing was sent a request");
        for (url, host_name) in [
            ("https://1.number.org/", "1.number.org"),
            ("https://9.number.org/", "9.number.org"),
            ("https://93.184.216.7/", "93.184.216.7"),
        ] {
            host.page(url);
            assert_eq!(web.requests().pop().expect("a request").values("host"), [host_name]);
        }
        let places: Vec<String> = (1..=10).map(|number| format!("tcp 93.184.216.{number}:443")).collect();
        world.assert_record(&places.iter().map(String::as_str).collect::<Vec<_>>());
    });
}

#[test]
fn an_authority_that_was_not_named_is_not_trusted() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, web) = (numbered_names(), numbered(&authority));
        let answer = world.program().run().fetch("https://1.number.org/");
        assert!(kind(&answer) == "unavailable" && said(&answer).contains("ca_file"), "{answer}");
        assert_eq!(web.places(), [""; 0]);
        trusting(world, &authority).run().page("https://1.number.org/");
    });
}

/// It was named, so that naming it is no advice.
#[test]
fn an_authority_in_the_place_of_a_server_is_told_apart() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let (server, certificate) = authority_as_server("plain.org");
        let web = Web::open_encrypted(move |_| server.clone(), |_, wire| wire.write_all(&page("secret")));
        let program = world.program();
        program.program.write("ca.pem", certificate);
        let file = program.program.path("ca.pem").display().to_string();
        let answer = program.set(&format!("network.ca_file={file:?}")).run().fetch("https://plain.org/");
        let told = said(&answer);
        assert!(kind(&answer) == "unavailable" && told.contains("sign one for the server"), "{answer}");
        assert!(!told.contains("further authorities"), "{told}");
        assert_eq!(web.places(), [""; 0]);
    });
}

#[test]
fn plain_http_where_encryption_was_asked_for_is_no_answer() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let authority = Authority::new();
        let web = Web::open(&[80, 443], |_, wire| wire.write_all(&page("plain")));
        let answer = trusting(world, &authority).run().fetch("https://plain.org/");
        assert!(["unavailable", "timed_out", "denied"].contains(&kind(&answer)), "{answer}");
        assert_eq!(web.places(), [""; 0]);
        world.assert_record(&["tcp 93.184.216.1:443"]);
    });
}

/// S-dyn-05, the part that needs encryption.
#[test]
fn what_came_encrypted_is_not_redirected_to_plain_http() {
    in_a_world(|world| {
        let _names = Names::everywhere(&[PUBLIC]);
        let authority = Authority::new();
        let server = authority.server("1.number.org");
        Web::open_encrypted(
            move |_| server.clone(),
            |request, wire| match request.target.as_str() {
                "/down" => wire.write_all(&redirect(302, "http://1.number.org/landed")),
                "/inside" => wire.write_all(&redirect(302, "https://127.0.0.1/landed")),
                "/on" => wire.write_all(&redirect(302, "https://1.number.org/landed")),
                _ => wire.write_all(&page("landed")),
            },
        );
        let plain = Web::open(&[80], |_, wire| wire.write_all(&redirect(302, "https://1.number.org/landed")));
        let program = trusting(world, &authority);
        let (code, refused) = program.call(&["fetch_url", "url=https://1.number.org/down"]);
        assert!(code != 0 && said(&refused).contains("would leave HTTPS"), "{refused}");
        let decisions = program.decisions();
        assert!(decisions.len() == 2 && decisions[1].starts_with("denied"), "{decisions:?}");
        let mut host = program.run();
        for path in ["down", "inside"] {
            println!("{}", host.denied(&format!("https://1.number.org/{path}")));
        }
        assert!(plain.connections().is_empty(), "{:?}", plain.connections());
        for url in ["https://1.number.org/on", "http://1.number.org/up"] {
            assert_eq!(host.page(url)["url"], "https://1.number.org/landed");
        }
        world.assert_record(&["tcp 93.184.216.1:443", "tcp 93.184.216.1:80"]);
    });
}

#[test]
fn a_file_of_authorities_that_cannot_be_read_is_told_and_nothing_is_fetched() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let authority = Authority::new();
        let web = numbered(&authority);
        // A FIFO is not waited for.
        for name in ["empty.pem", "fifo.pem"] {
            let program = world.program();
            program.program.write("empty.pem", "no certificate\n");
            let file = program.program.path(name);
            if name == "fifo.pem" {
                mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
            }
            let set = format!("network.ca_file={:?}", file.display().to_string());
            let answer = program.set(&set).run().fetch("https://1.number.org/");
            assert!(kind(&answer) != "ok" && said(&answer).contains(name), "{answer}");
        }
        assert!(web.connections().is_empty(), "{:?}", web.connections());
    });
}
