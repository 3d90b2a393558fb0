//! What opens and closes the way out; a refusal names the setting that would change it.

use crate::names::{Names, Reply};
use crate::web::{Web, page};
use crate::world::{World, in_a_world};
use serde_json::Value;
use toolcrib_tests::envelope::{kind, said};

const PUBLIC: &str = "93.184.216.34";

/// A web of every name and address.
fn open_web() -> (Names, Web) {
    let web = Web::open(&[80, 443, 8080], |_, wire| wire.write_all(&page("here")));
    (Names::everywhere(&[PUBLIC]), web)
}

/// Calls `fetch_url` with these settings, as a user does.
fn fetch(world: &World, settings: &[&str], url: &str) -> Value {
    let program = settings.iter().fold(world.program(), |program, setting| program.set(setting));
    let (code, answer) = program.call(&["fetch_url", &format!("url={url}")]);
    assert_eq!(code == 0, kind(&answer) == "ok", "exit code {code}: {answer}");
    answer
}

fn assert_open(world: &World, settings: &[&str], url: &str) {
    let answer = fetch(world, settings, url);
    assert_eq!(answer["result"]["status"], 200, "{settings:?} {url}: {answer}");
}

/// Expects a refusal that names this setting.
fn assert_closed(world: &World, settings: &[&str], url: &str, named: &str) {
    let answer = fetch(world, settings, url);
    assert_eq!(kind(&answer), "denied", "{settings:?} {url}: {answer}");
    let told = said(&answer);
    println!("{settings:?} {url}: {told}");
    assert!(told.contains(named), "{settings:?} {url}: {told}");
}

#[test]
fn a_list_of_domains_lets_nothing_else_through() {
    in_a_world(|world| {
        let (names, web) = open_web();
        let listed = r#"tools.fetch_allowed_domains=["open.org","1.1.1.1"]"#;
        for url in ["http://open.org/", "http://sub.open.org/", "http://OPEN.org./", "http://1.1.1.1/"] {
            assert_open(world, &[listed], url);
        }
        let before = names.asked().len();
        for url in [
            "http://other.org/",
            "http://notopen.org/",
            "http://open.org.evil.org/",
            "http://1.1.1.2/",
            "http://8.8.8.8/",
        ] {
            assert_closed(world, &[listed], url, "fetch_allowed_domains");
        }
        // A list with an address in it cannot be held against a name before that was asked for.
        println!("{:?}", &names.asked()[before..]);
        assert_eq!(web.connections().len(), 4);
        world.assert_record(&["tcp 93.184.216.34:80", "tcp 1.1.1.1:80"]);
    });
}

#[test]
fn a_domain_outside_a_list_of_names_is_not_even_asked_for() {
    in_a_world(|world| {
        let (names, _) = open_web();
        assert_closed(
            world,
            &[r#"tools.fetch_allowed_domains=["open.org"]"#],
            "http://other.org/",
            "fetch_allowed_domains",
        );
        assert_eq!(names.asked(), [""; 0]);
    });
}

#[test]
fn a_blocked_domain_is_closed_with_all_below_it_whatever_else_is_open() {
    in_a_world(|world| {
        let (names, _) = open_web();
        let blocked = r#"tools.fetch_blocked_domains=["bad.org","9.9.9.9"]"#;
        let allowed = r#"tools.fetch_allowed_domains=["bad.org","notbad.org","9.9.9.9"]"#;
        for url in
            ["http://bad.org/", "http://sub.bad.org/", "http://BAD.org./", "http://9.9.9.9/", "http://0x09090909/"]
        {
            assert_closed(world, &[blocked], url, "fetch_blocked_domains");
            assert_closed(world, &[blocked, allowed], url, "fetch_blocked_domains");
        }
        assert_eq!(names.asked(), [""; 0]);
        assert_open(world, &[blocked], "http://notbad.org/");
        world.assert_record(&["tcp 93.184.216.34:80"]);
    });
}

#[test]
fn a_name_that_leads_to_a_blocked_address_is_closed() {
    in_a_world(|world| {
        open_web();
        let blocked = format!(r#"tools.fetch_blocked_domains=["{PUBLIC}"]"#);
        assert_closed(world, &[&blocked], "http://innocent.org/", "fetch_blocked_domains");
        world.assert_record(&[]);
    });
}

#[test]
fn this_machine_is_closed_until_it_is_named() {
    in_a_world(|world| {
        open_web();
        for url in ["http://localhost/", "http://app.localhost/"] {
            assert_closed(world, &[], url, "fetch_allowed_domains");
        }
        // There may be a server in the session's own cell: that is said first.
        for url in ["http://127.0.0.1/", "http://[::1]/", "http://127.0.0.1:8080/", "http://localhost:8080/"] {
            assert_closed(world, &[], url, "fetch_private_ranges");
        }
        world.assert_record(&[]);
        assert_open(world, &[r#"tools.fetch_allowed_domains=["localhost"]"#], "http://localhost/");
        assert_open(world, &[r#"tools.fetch_allowed_domains=["127.0.0.1"]"#], "http://127.0.0.1:8080/");
        assert_open(world, &[r#"tools.fetch_private_ranges=["127.0.0.0/8"]"#], "http://127.0.0.1:8080/");
        assert_open(world, &[r#"tools.fetch_private_ranges=["::1/128"]"#], "http://[::1]:8080/");
        let here = ["tcp 127.0.0.1:80", "tcp [::1]:80", "tcp 127.0.0.1:8080", "tcp [::1]:8080"];
        world.assert_record(&here);
    });
}

#[test]
fn a_private_range_opens_itself_and_nothing_beside_it() {
    in_a_world(|world| {
        Names::serve(|query| {
            Reply::addresses(query, if query.name == "ten.org" { &["10.0.0.1"] } else { &["10.0.0.1", "10.1.0.1"] })
        });
        Web::open(&[80, 8080], |_, wire| wire.write_all(&page("here")));
        assert_closed(world, &[], "http://10.0.0.1/", "fetch_private_ranges");
        assert_closed(world, &[], "http://ten.org/", "fetch_private_ranges");
        let opened = r#"tools.fetch_private_ranges=["10.0.0.0/16"]"#;
        for url in ["http://10.0.0.1/", "http://10.0.255.255:8080/", "http://ten.org/"] {
            assert_open(world, &[opened], url);
        }
        for url in ["http://10.1.0.0/", "http://9.255.255.255:8080/", "http://192.168.0.1/", "http://both.org/"] {
            assert_closed(world, &[opened], url, "fetch_");
        }
        world.assert_record(&["tcp 10.0.0.1:80", "tcp 10.0.255.255:8080"]);
    });
}

#[test]
fn a_listed_name_may_be_private_but_leads_to_no_metadata() {
    in_a_world(|world| {
        Names::serve(|query| {
            Reply::addresses(query, if query.name == "wiki.corp" { &["10.0.0.1"] } else { &["169.254.169.254"] })
        });
        Web::open(&[80], |_, wire| wire.write_all(&page("here")));
        assert_open(world, &[r#"tools.fetch_allowed_domains=["wiki.corp"]"#], "http://wiki.corp/");
        assert_closed(world, &[r#"tools.fetch_allowed_domains=["meta.org"]"#], "http://meta.org/", "169.254.169.254");
        world.assert_record(&["tcp 10.0.0.1:80"]);
    });
}

#[test]
fn other_ports_and_plain_http_are_settings() {
    in_a_world(|world| {
        let (names, _) = open_web();
        assert_closed(world, &[], "http://open.org:8080/", "fetch_ports");
        assert_closed(world, &["tools.fetch_ports=[443]"], "http://open.org/", "fetch_ports");
        assert_closed(world, &["tools.fetch_plain_http=false"], "http://open.org/", "fetch_plain_http");
        assert_eq!(names.asked(), [""; 0]);
        assert_open(world, &["tools.fetch_ports=[80,8080]"], "http://open.org:8080/");
        world.assert_record(&["tcp 93.184.216.34:8080"]);
    });
}

#[test]
fn what_is_switched_off_says_so() {
    in_a_world(|world| {
        open_web();
        let off = world.program().set("tools.fetch_enabled=false").set("tools.search_enabled=false");
        for (arguments, named) in [
            (["fetch_url", "url=http://open.org/"], "fetch_enabled"),
            (["web_search", "query=words"], "search_enabled"),
        ] {
            let (code, answer) = off.call(&arguments);
            assert!(code != 0 && said(&answer).contains(named), "{answer}");
        }
        let guest = off.guest("requester", &[r#"http.hosts=["open.org"]"#, r#"http.methods=["GET"]"#]);
        let (_, answer) = guest.call(&["request", r#"{"method":"GET","url":"http://open.org/"}"#]);
        assert!(kind(&answer) == "denied" && said(&answer).contains("fetch_enabled"), "{answer}");
        world.assert_record(&[]);
    });
}
