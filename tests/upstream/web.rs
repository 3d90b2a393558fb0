//! Servers over HTTP: what goes to them and what does not, answers of all kinds, sessions, streams that break off, and servers that lie.

use crate::rig::{NAME, call, connected, echoed, host, look, of, offered, set, turned, wait_for};
use config::Template;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib::call::{Arguments, Request};
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::event::Event;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::{Jotter, TestHost, names, names_by, resident_kib};
use upstream::offered_as;

/// What a server is told to speak the older era, and the newer one.
const ERAS: [&str; 2] = ["", "newer"];
/// The name of a server with a certificate, to which its secret may go, and of another one.
const SERVER: &str = "jot.example.com";
const OTHER: &str = "other.example.com";
const SECRET: &str = "zK4vQ9.Lw2x-Ht7Rm+8";

/// It is refused, and says so in these words.
fn assert_fails(outcome: Result<String, Failure>, kinds: &[Kind], said: &str) {
    let failure = outcome.expect_err("it fails");
    assert!(kinds.contains(&failure.kind), "{}", failure.to_json());
    assert!(failure.message.contains(said), "{said:?} is not in: {}", failure.to_json());
}

async fn sum(host: &TestHost) -> Value {
    call(host, "add", json!({ "a": 40, "b": 2 })).await.expect("a sum").result["sum"].clone()
}

fn header<'l>(line: &'l Value, name: &str) -> Option<&'l str> {
    line["headers"][name].as_str()
}

// What is said of a request

#[tokio::test]
async fn a_tool_is_called_in_both_eras_and_answers_come_in_both_kinds() {
    for words in ["", "sse", "sessions", "sessions sse", "newer", "newer sse"] {
        let (server, host) = turned(words, "", &[]).await;
        let text = "häßlich \u{1F600}\r\n\u{2028}";
        // As every text is shown.
        assert_eq!(echoed(&host, text).await.expect("its text"), "häßlich \u{1F600}\n\n", "{words}");
        assert_eq!(sum(&host).await, 42, "{words}");
        server.assert_well_asked();
        assert!(server.by("GET").is_empty(), "{words}: nobody waits for what a server says unasked");
    }
}

#[tokio::test]
async fn each_request_says_what_its_era_wants() {
    let (server, host) = turned("newer", "", &[]).await;
    echoed(&host, "x").await.expect("its text");
    for line in server.log() {
        let method = line["body"]["method"].as_str().expect("a method");
        assert!(["server/discover", "tools/list", "tools/call"].contains(&method), "{line}");
        assert_eq!(header(&line, "mcp-protocol-version"), Some("2026-07-28"), "{line}");
        assert_eq!(header(&line, "mcp-method"), Some(method), "{line}");
        assert_eq!(header(&line, "mcp-name"), (method == "tools/call").then_some("echo"), "{line}");
        assert_eq!(line["path"], "/mcp");
    }
    let (server, host) = turned("sessions", "", &[]).await;
    echoed(&host, "x").await.expect("its text");
    assert_eq!(server.messages("notifications/initialized").len(), 2, "once for the look");
    let greeting = &server.messages("initialize")[0];
    assert_eq!(greeting["body"]["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(header(greeting, "mcp-session-id"), None);
    for line in [server.messages("tools/list"), server.messages("tools/call")].concat() {
        assert_eq!(header(&line, "mcp-protocol-version"), Some("2025-11-25"), "{line}");
        assert!(header(&line, "mcp-session-id").is_some_and(|session| session.starts_with("session-")), "{line}");
    }
}

#[tokio::test]
async fn whatever_does_not_speak_the_newer_era_is_greeted_in_the_older_one() {
    for probe in ["400", "404", "405", "406", "500", "-32601", "empty", "html", "older"] {
        let server = Jotter::start(&format!("sessions probe={probe}"));
        let look = look(&host(), &of(&server)).await.map_err(|failure| failure.to_json().to_string());
        assert_eq!(look.expect(probe).accepted.protocol, "2025-11-25", "{probe}");
        assert_eq!(header(&server.messages("initialize")[0], "mcp-session-id"), None, "{probe}");
    }
    let (server, begin) = (Jotter::start("probe=silent"), Instant::now());
    assert_eq!(look(&host(), &of(&server)).await.expect("the older one").accepted.protocol, "2025-11-25");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let server = Jotter::start("ancient");
    let failure = look(&host(), &of(&server)).await.map(drop).expect_err("no version of ours");
    assert!(failure.message.contains("1999-01-01"), "{}", failure.message);
}

/// It names the versions that it speaks, of which one is ours.
#[tokio::test]
async fn a_server_that_refuses_a_version_is_asked_once_more_in_one_that_it_speaks() {
    let server = Jotter::start("newer probe=unsupported");
    assert_eq!(look(&host(), &of(&server)).await.expect("the newer one").accepted.protocol, "2026-07-28");
    assert_eq!(server.messages("server/discover").len(), 2);
    assert!(server.messages("initialize").is_empty());
}

#[tokio::test]
async fn headers_of_the_section_go_with_every_request() {
    let server = Jotter::start("newer");
    let headers = [("X-Team".to_owned(), Template::value("tests of ours").expect("a value"))].into();
    let host = connected(host(), UpstreamSection { headers, ..of(&server) }).await;
    echoed(&host, "x").await.expect("its text");
    assert!(server.log().iter().all(|line| header(line, "x-team") == Some("tests of ours")));
}

// Headers for arguments

#[tokio::test]
async fn arguments_are_in_the_headers_that_the_schema_names() {
    let (server, host) = turned("newer headers", "", &[]).await;
    let plain = json!({ "region": "us west 1", "count": 42, "loud": false, "method": "m", "text": "not in a header" });
    call(&host, "route", plain).await.expect("it is as the server wants it");
    let sent = server.calls("route").remove(0);
    let of = |name: &str| header(&sent, &format!("mcp-param-{name}")).map(str::to_owned);
    let found = ["region", "count", "loud", "method", "text", "city"].map(of);
    let wanted = [Some("us west 1"), Some("42"), Some("false"), Some("m"), None, None];
    assert_eq!(found, wanted.map(|value| value.map(str::to_owned)));
    assert_eq!(header(&sent, "mcp-method"), Some("tools/call"));
    // These do not fit into a header as they are. The server decodes them and holds them against the body.
    for odd in ["Hello, 世界", " padded ", "ends ", "a\nb", "a\r\nX-Other: b", "\tc", "=?base64?eA==?=", ""] {
        let arguments = json!({ "region": odd, "inner": { "city": odd } });
        call(&host, "route", arguments).await.map_err(|failure| failure.to_json().to_string()).expect(odd);
        let sent = server.calls("route").pop().expect("it was sent");
        assert_eq!(header(&sent, "mcp-param-city"), header(&sent, "mcp-param-region"));
        assert!(
            header(&sent, "mcp-param-region").is_some_and(|value| value.is_empty() || value.starts_with("=?base64?"))
        );
        assert_eq!(header(&sent, "x-other"), None);
    }
    let said = host.call(&offered_as(NAME, "grüße an", 48), json!({ "text": "Ann" })).await.outcome.expect("its text");
    assert_eq!(said.result, "Ann");
    let sent = server.calls("grüße an").remove(0);
    assert_eq!(header(&sent, "mcp-name"), Some("=?base64?Z3LDvMOfZSBhbg==?="));
    server.assert_well_asked();
}

#[tokio::test]
async fn the_older_era_has_no_headers_for_arguments() {
    let (server, host) = turned("headers", "", &[]).await;
    call(&host, "route", json!({ "region": "eu" })).await.expect("an answer");
    assert_eq!(header(&server.calls("route")[0], "mcp-param-region"), None);
}

#[tokio::test]
async fn tools_with_headers_that_cannot_be_are_left_out_and_the_others_are_offered() {
    let server = Jotter::start("newer headers bad-headers");
    let look = look(&host(), &of(&server)).await.expect("the others");
    let names: Vec<&str> = look.accepted.tools.keys().map(String::as_str).collect();
    let odd = offered_as(NAME, "grüße an", 48);
    assert_eq!(names, ["jotter__add", "jotter__echo", odd.as_str(), "jotter__read_note", "jotter__route"]);
    let told = format!("{:?} {:?}", look.unfit, look.notices);
    for name in ["empty", "object", "array", "number", "twice", "blank", "colon", "letter", "line", "kind", "place"] {
        assert!(told.contains(&format!("bad_{name}")), "bad_{name} is not in: {told}");
    }
}

// Sessions

#[tokio::test]
async fn a_session_is_ended_with_its_host() {
    let (server, host) = turned("sessions", "", &[]).await;
    echoed(&host, "x").await.expect("its text");
    let session = header(&server.calls("echo")[0], "mcp-session-id").expect("a session").to_owned();
    drop(host);
    let ended =
        || server.by("DELETE").into_iter().find(|line| header(line, "mcp-session-id") == Some(session.as_str()));
    let line = wait_for(ended).await;
    assert_eq!(header(&line, "mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn each_caller_has_a_session_of_its_own() {
    let (server, host) = turned("sessions", "", &[]).await;
    echoed(&host, "mine").await.expect("its text");
    let (made, context) = host.parts();
    let request = Request { tool: format!("{NAME}__echo"), arguments: Arguments::Json(json!({ "text": "yours" })) };
    let other = made.call(request, &context.clone().principal("somebody else")).await;
    assert_eq!(other.outcome.expect("a result").result, "yours");
    let calls = server.calls("echo");
    assert_ne!(header(&calls[0], "mcp-session-id"), header(&calls[1], "mcp-session-id"));
}

/// Case 37. What got no 404 is not sent again.
#[tokio::test]
async fn a_session_that_is_not_known_any_more_is_begun_anew_and_only_that_request_is_sent_again() {
    let (server, host) = turned("sessions", "forgets once", &[]).await;
    assert_eq!(sum(&host).await, 42);
    assert_eq!(echoed(&host, "once more").await.expect("its text"), "once more");
    assert_eq!((server.calls("add").len(), server.calls("echo").len()), (1, 2));
    let calls = server.calls("echo");
    assert_ne!(header(&calls[0], "mcp-session-id"), header(&calls[1], "mcp-session-id"));
    assert_eq!(calls[0]["body"]["params"]["arguments"], calls[1]["body"]["params"]["arguments"]);
    // For the look, for the first session and for the second.
    assert_eq!((server.messages("initialize").len(), server.messages("tools/list").len()), (3, 3));
    assert_eq!(sum(&host).await, 42);
    assert_eq!(server.messages("initialize").len(), 3);
}

#[tokio::test]
async fn a_server_that_forgets_each_session_is_not_asked_for_ever() {
    let (server, host) = turned("sessions", "forgets", &[]).await;
    assert_fails(echoed(&host, "x").await, &[Kind::Unavailable], "");
    assert_eq!(server.calls("echo").len(), 2);
}

// Answers that break off

/// Case 38.
#[tokio::test]
async fn of_an_answer_that_breaks_off_nobody_knows_the_outcome() {
    for era in ERAS {
        for words in ["cut", "ends", "half"] {
            let (server, host) = turned(era, words, &[]).await;
            assert_fails(echoed(&host, "x").await, &[Kind::OutcomeUnknown], "");
            assert_eq!(server.calls("echo").len(), 1, "{era} {words}");
            assert_eq!(sum(&host).await, 42, "{era} {words}");
        }
    }
}

#[tokio::test]
async fn a_reader_is_asked_once_more_where_its_answer_breaks_off() {
    for era in ERAS {
        let (server, host) = turned(era, "cut once", &["reads=[\"read_note\"]"]).await;
        assert_eq!(call(&host, "read_note", json!({})).await.expect("the second time").result, "a note");
        assert_eq!(server.calls("read_note").len(), 2, "{era}");
        let (server, host) = turned(era, "cut", &["reads=[\"read_note\"]"]).await;
        let failure = call(&host, "read_note", json!({})).await.expect_err("it breaks off each time");
        assert_eq!(failure.kind, Kind::Unavailable, "{era}");
        assert_eq!(server.calls("read_note").len(), 2, "{era}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_asked_for_again_when_its_server_says() {
    let (server, host) = turned("sessions", "resume=2 retry=700", &[]).await;
    assert_eq!(echoed(&host, "late").await.expect("its text"), "late");
    assert_eq!(server.calls("echo").len(), 1);
    let (asked, log) = (server.by("GET"), server.log());
    assert_eq!(asked.len(), 2);
    let ended = log.iter().find(|line| line["ended"].is_string()).expect("the first stream ended");
    let at = |line: &Value| line["at"].as_f64().expect("a time");
    assert!(at(&asked[0]) - at(ended) >= 0.65, "{} s", at(&asked[0]) - at(ended));
    assert!(at(&asked[1]) - at(&asked[0]) >= 0.65, "{} s", at(&asked[1]) - at(&asked[0]));
    for line in &asked {
        assert_eq!(header(line, "last-event-id"), ended["ended"].as_str());
        assert_eq!(header(line, "accept"), Some("text/event-stream"));
        assert_eq!(header(line, "mcp-session-id"), header(&server.calls("echo")[0], "mcp-session-id"));
        assert_eq!(header(line, "mcp-protocol-version"), Some("2025-11-25"));
    }
    assert_eq!(sum(&host).await, 42);
}

#[tokio::test]
async fn a_stream_is_asked_for_a_few_times_and_not_in_the_newer_era() {
    let (server, host) = turned("", "resume=0 retry=10", &[]).await;
    assert_fails(echoed(&host, "x").await, &[Kind::OutcomeUnknown], "");
    let asked = server.by("GET").len();
    assert!((1..=10).contains(&asked), "{asked}");
    let (server, host) = turned("newer", "resume=1 retry=10", &[]).await;
    assert_fails(echoed(&host, "x").await, &[Kind::OutcomeUnknown], "");
    assert!(server.by("GET").is_empty());
}

/// No server decides how long it is waited for: the call ends when its time is over.
#[tokio::test]
async fn a_server_cannot_put_a_call_off_for_an_hour() {
    let (_server, host) = turned("", "resume=1 retry=3600000", &["timeout_ms=1500"]).await;
    let begin = Instant::now();
    assert_fails(echoed(&host, "x").await, &[Kind::TimedOut], "1500 ms");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

/// Case 30.
#[tokio::test]
async fn a_server_that_dies_in_a_call_and_comes_back_is_called_again() {
    let (mut server, host) = turned("", "silent", &[]).await;
    let (outcome, ()) = tokio::join!(echoed(&host, "x"), async {
        wait_for(|| server.calls("echo").pop()).await;
        server.stop();
    });
    assert_fails(outcome, &[Kind::OutcomeUnknown], "");
    // Nothing of this one was sent.
    assert_fails(echoed(&host, "y").await, &[Kind::Unavailable], "");
    let server = server.again("");
    let back = async {
        loop {
            match echoed(&host, "back").await {
                Ok(text) => break text,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), back).await.expect("it is called again"), "back");
    assert!(server.calls("echo").iter().all(|line| line["body"]["params"]["arguments"]["text"] != "y"));
}

/// The connection from before is dead, and the server knows nothing of a session.
#[tokio::test]
async fn the_next_call_finds_an_encrypted_server_that_was_started_again() {
    let authority = Authority::new();
    for words in ["", "sessions", "newer"] {
        let server = Jotter::encrypted(&authority, SERVER, words);
        let host = connected(lending(&authority, both()), bearing(&server)).await;
        assert_eq!(echoed(&host, "before").await.expect("its text"), "before", "{words}");
        let server = server.again(words);
        assert_eq!(echoed(&host, "after").await.expect("its text"), "after", "{words}");
        server.assert_well_asked();
    }
}

// Redirects, names and secrets

/// Case 35.
#[tokio::test]
async fn no_redirect_is_followed() {
    let other = Jotter::start("");
    let places = ["http://169.254.169.254/latest/meta-data/".to_owned(), other.url(), "/mcp/".to_owned()];
    for era in ERAS {
        for (place, status) in places.iter().zip([307, 308, 303]).chain([(&places[1], 301), (&places[1], 302)]) {
            let (server, host) = turned(era, &format!("redirect={place} status={status}"), &[]).await;
            assert_fails(echoed(&host, "x").await, &[Kind::Denied], "");
            assert_eq!(server.calls("echo").len(), 1);
            assert!(server.log().iter().all(|line| line["path"] == "/mcp"), "{era} {place}");
        }
        let server = Jotter::start(&format!("{era} everything redirect={}", other.url()));
        assert_eq!(look(&host(), &of(&server)).await.map(drop).expect_err("a redirect").kind, Kind::Denied);
    }
    assert!(other.log().is_empty(), "{:?}", other.log());
}

/// A host that trusts the authority, finds the servers at loopback, and has a secret for one of them.
fn lending(authority: &Authority, dns: std::net::SocketAddr) -> TestHost {
    let host = host();
    let (ca, secret) = (host.home().join("ca.pem"), host.home().join("secret"));
    std::fs::write(&ca, authority.pem()).expect("a file");
    std::fs::write(&secret, SECRET).expect("a file");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    host.set(&format!("network.ca_file={:?}", ca.display().to_string()))
        .set(&format!("network.dns_servers=[\"{dns}\"]"))
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set(&format!("secret.JOT.file={:?}", secret.display().to_string()))
        .set(&format!("secret.JOT.hosts=[{SERVER:?}]"))
}

/// A section whose requests carry the secret.
fn bearing(server: &Jotter) -> UpstreamSection {
    let token = Template::value("Bearer ${secret:JOT}").expect("a value");
    UpstreamSection { headers: [("Authorization".to_owned(), token)].into(), ..of(server) }
}

fn both() -> std::net::SocketAddr {
    names(&[(SERVER, [127, 0, 0, 1]), (OTHER, [127, 0, 0, 1])])
}

/// Nobody but the server has the secret: not who reads results, events and records.
fn assert_unseen(host: &TestHost) {
    let events = format!("{:?}", host.events());
    let audit = host.audit().iter().map(ToString::to_string).collect::<String>();
    assert!(!events.contains(SECRET) && !audit.contains(SECRET), "{events}\n{audit}");
}

/// Case 39.
#[tokio::test]
async fn a_secret_goes_to_its_server_and_what_echoes_it_shows_its_name() {
    let authority = Authority::new();
    for era in ERAS {
        let server = Jotter::encrypted(&authority, SERVER, era);
        let host = connected(lending(&authority, both()), bearing(&server)).await;
        server.behaves(&format!("{era} echo-headers"));
        let said = echoed(&host, "x").await.expect("its headers");
        assert!(said.contains("Bearer [secret:JOT]") && !said.contains(SECRET), "{said}");
        let bearer = format!("Bearer {SECRET}");
        assert!(server.log().iter().all(|line| header(line, "authorization") == Some(bearer.as_str())));
        for words in ["error-headers", "error-headers status=500", "error-headers status=401"] {
            server.behaves(&format!("{era} {words}"));
            let said = echoed(&host, "x").await.expect_err("an error").to_json().to_string();
            assert!(!said.contains(SECRET), "{words}: {said}");
        }
        server.behaves(&format!("{era} progress-headers"));
        echoed(&host, "x").await.expect("its text");
        assert_unseen(&host);
    }
}

#[tokio::test]
async fn a_secret_is_not_sent_on_by_a_redirect() {
    let authority = Authority::new();
    let (other, plain) = (Jotter::encrypted(&authority, OTHER, ""), Jotter::start(""));
    let server = Jotter::encrypted(&authority, SERVER, "");
    for place in [other.url(), plain.url(), server.url().replace("https:", "http:")] {
        server.behaves("");
        let host = connected(lending(&authority, both()), bearing(&server)).await;
        server.behaves(&format!("redirect={place}"));
        let failure = echoed(&host, "x").await.expect_err("a redirect");
        assert_eq!(failure.kind, Kind::Denied, "{place}");
        assert!(!failure.to_json().to_string().contains(SECRET));
        assert_unseen(&host);
    }
    assert!(other.log().is_empty() && plain.log().is_empty());
}

#[tokio::test]
async fn a_secret_goes_neither_to_another_host_nor_over_plain_http() {
    let authority = Authority::new();
    let (other, plain) = (Jotter::encrypted(&authority, OTHER, ""), Jotter::start(""));
    for server in [&other, &plain] {
        let failure = look(&lending(&authority, both()), &bearing(server)).await.map(drop).expect_err("it stays here");
        assert!(!failure.to_json().to_string().contains(SECRET));
        assert!(server.log().is_empty(), "{:?}", server.log());
    }
    // Also where the secret itself may go there.
    let named = UpstreamSection { url: plain.url().replace("127.0.0.1", SERVER), ..bearing(&plain) };
    let failure = look(&lending(&authority, both()), &named).await.map(drop).expect_err("it is not encrypted");
    assert!(failure.message.contains("goes over HTTPS alone") && plain.log().is_empty(), "{}", failure.message);
    // The section of a server that was accepted without it.
    for server in [&other, &plain] {
        let host = connected(lending(&authority, both()), of(server)).await;
        let before = server.log().len();
        let host = host.set("upstream.jotter.headers={Authorization=\"Bearer ${secret:JOT}\"}");
        assert!(echoed(&host, "x").await.is_err());
        assert_eq!(server.log().len(), before);
    }
    // Nor does it get there in arguments that a model wrote.
    let server = Jotter::encrypted(&authority, SERVER, "");
    let host = connected(lending(&authority, both()), bearing(&server)).await;
    let failure = echoed(&host, SECRET).await.expect_err("a known secret");
    assert!(!failure.to_json().to_string().contains(SECRET));
    assert!(server.calls("echo").is_empty());
}

#[tokio::test]
async fn a_server_of_another_certificate_is_not_spoken_to() {
    let authority = Authority::new();
    let server = Jotter::encrypted(&authority, OTHER, "");
    let url = server.url().replace(OTHER, SERVER);
    let section = UpstreamSection { url, ..bearing(&server) };
    let failure = look(&lending(&authority, both()), &section).await.map(drop).expect_err("another one");
    assert_eq!(failure.kind, Kind::Unavailable, "{}", failure.message);
    assert!(server.log().is_empty());
}

/// Case 36. The server listens at both addresses, of which settings open one.
#[tokio::test]
async fn a_name_that_turns_private_is_refused() {
    let authority = Authority::new();
    let turned = Arc::new(AtomicBool::new(false));
    let has_turned = turned.clone();
    let dns = names_by(move |name| {
        let address = if has_turned.load(Ordering::SeqCst) { [127, 0, 0, 2] } else { [127, 0, 0, 1] };
        (name == SERVER).then_some(address)
    });
    for era in ERAS {
        turned.store(false, Ordering::SeqCst);
        let server = Jotter::encrypted(&authority, SERVER, era);
        let host = connected(lending(&authority, dns), bearing(&server)).await;
        assert_eq!(sum(&host).await, 42);
        turned.store(true, Ordering::SeqCst);
        // Neither by a new connection nor by the one from before.
        assert_fails(echoed(&host, "x").await, &[Kind::Denied], "127.0.0.2");
        assert!(server.calls("echo").is_empty());
        assert!(server.log().iter().all(|line| line["to"] == "127.0.0.1"));
        turned.store(false, Ordering::SeqCst);
        assert_eq!(sum(&host).await, 42);
    }
}

#[tokio::test]
async fn addresses_that_nobody_named_are_refused() {
    let server = Jotter::start("");
    let at = |host: &str| UpstreamSection { url: server.url().replace("127.0.0.1", host), ..of(&server) };
    for place in ["169.254.169.254", "10.0.0.1", "[::ffff:169.254.169.254]"] {
        // A URL that names an address opens it, unless a policy keeps it closed.
        let host = host().policy("[tools]\nfetch_private_ranges = []\n");
        let failure = look(&host, &at(place)).await.map(drop).expect_err("it is closed");
        assert_eq!(failure.kind, Kind::Denied, "{place}: {}", failure.message);
    }
    let dns = names(&[("meta.example.com", [169, 254, 169, 254]), ("here.example.com", [127, 0, 0, 1])]);
    for name in ["meta.example.com", "here.example.com"] {
        let host = host().set(&format!("network.dns_servers=[\"{dns}\"]"));
        let failure = look(&host, &at(name)).await.map(drop).expect_err("it is private");
        assert_eq!(failure.kind, Kind::Denied, "{name}: {}", failure.message);
    }
    assert!(server.log().is_empty());
    // That name is asked of nobody, and leads here whoever listens.
    assert!(look(&host(), &at("localhost")).await.is_ok());
}

// Servers that are slow, long, or say more than they were asked

#[tokio::test]
async fn an_answer_of_hundreds_of_mebibytes_fails_its_call_alone() {
    for words in ["", "sse", "newer", "newer sse"] {
        let (_server, host) = turned(words, "long=256", &[]).await;
        assert_eq!(sum(&host).await, 42);
        let before = resident_kib(std::process::id());
        assert_fails(echoed(&host, "x").await, &[Kind::Limit], "4 MiB");
        // Other tests of this process make hosts meanwhile; the answer alone would be 256 MiB.
        let more = resident_kib(std::process::id()).saturating_sub(before);
        assert!(more < 192 << 10, "{words}: {more} KiB more");
        assert_eq!(sum(&host).await, 42, "{words}");
    }
}

#[tokio::test]
async fn who_waits_for_a_silent_server_holds_nobody_up_and_tells_it_when_it_waits_no_more() {
    for (era, words) in [("", "silent"), ("", "silent-sse"), ("newer", "silent"), ("newer", "silent-sse")] {
        let (server, host) = turned(era, words, &["timeout_ms=1500"]).await;
        let (silent, took) = tokio::join!(echoed(&host, "x"), async {
            wait_for(|| server.calls("echo").pop()).await;
            let begin = Instant::now();
            for _ in 0..10 {
                assert_eq!(sum(&host).await, 42);
            }
            begin.elapsed()
        });
        assert_fails(silent, &[Kind::TimedOut], "1500 ms");
        assert!(took < Duration::from_secs(3), "{era} {words}: {took:?}");
        assert_told(&server, era).await;
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_there_too() {
    for era in ERAS {
        let (server, host) = turned(era, "silent-sse", &[]).await;
        let cancel = host.cancel.clone();
        let (outcome, ()) = tokio::join!(echoed(&host, "x"), async {
            wait_for(|| server.calls("echo").pop()).await;
            cancel.cancel();
        });
        assert_fails(outcome, &[Kind::Cancelled], "");
        assert_told(&server, era).await;
    }
}

/// In the older era by a message, in the newer one by the end of the stream.
async fn assert_told(server: &Jotter, era: &str) {
    let call = server.calls("echo").remove(0);
    if era == "newer" {
        wait_for(|| server.log().into_iter().find(|line| line["gone"] == call["by"])).await;
        assert!(server.messages("notifications/cancelled").is_empty());
    } else {
        let told = wait_for(|| server.messages("notifications/cancelled").pop()).await;
        assert_eq!(told["body"]["params"]["requestId"], call["body"]["id"]);
    }
    server.assert_well_asked();
}

#[tokio::test]
async fn progress_in_the_stream_is_handed_on_a_few_times_a_second() {
    for era in ERAS {
        let (server, host) = turned(era, "progress=1000", &[]).await;
        let begin = Instant::now();
        assert_eq!(echoed(&host, "x").await.expect("its text"), "x");
        let seconds = usize::try_from(begin.elapsed().as_secs()).expect("not that long") + 2;
        let reports = host.events().iter().filter(|event| matches!(event, Event::Progress { .. })).count();
        assert!((1..=10 * seconds).contains(&reports), "{era}: {reports} in {seconds} s");
        server.assert_well_asked();
    }
}

#[tokio::test]
async fn what_a_server_asks_in_a_stream_is_answered_by_itself() {
    let (server, host) = turned("sessions", "pings=3 asks=5", &[]).await;
    assert_eq!(echoed(&host, "x").await.expect("its text"), "x");
    let answers = wait_for(|| Some(server.answers()).filter(|answers| answers.len() == 8)).await;
    for answer in answers {
        match answer["id"].as_str().expect("the server's own").split_at(1) {
            ("p", _) => assert_eq!(answer["result"], json!({})),
            _ => assert_eq!(answer["error"]["code"], -32601, "{answer}"),
        }
    }
    server.assert_well_asked();
}

/// Case 27.
#[tokio::test]
async fn a_server_that_asks_without_an_end_is_left() {
    let (_server, host) = turned("", "asks=20000", &[]).await;
    let begin = Instant::now();
    assert_fails(echoed(&host, "x").await, &[Kind::OutcomeUnknown], "makes no sense");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(sum(&host).await, 42);
}

#[tokio::test]
async fn an_answer_under_another_number_reaches_nobody() {
    for era in ERAS {
        let (_server, host) = turned(era, "strays=5", &[]).await;
        for number in 0..5 {
            let text = format!("mine {number}");
            assert_eq!(echoed(&host, &text).await.expect("an answer"), text, "{era}");
        }
    }
}

#[tokio::test]
async fn many_calls_at_once_have_each_its_own_answer() {
    for words in ["sse", "newer sse"] {
        let (server, host) = turned(words, "", &[]).await;
        let calls = (0..50).map(|number| {
            let host = &host;
            async move {
                let sum = call(host, "add", json!({ "a": number, "b": number })).await.expect("a sum").result;
                assert_eq!(sum["sum"], 2 * number);
            }
        });
        futures_util::future::join_all(calls).await;
        assert_eq!(server.calls("add").len(), 50);
        let greetings = [server.messages("server/discover").len(), server.messages("initialize").len()];
        assert!(greetings.iter().all(|count| *count <= 2), "{greetings:?}");
    }
}

// Answers that are none

#[tokio::test]
async fn an_error_of_the_protocol_is_a_failure_in_its_words_whatever_its_status() {
    for era in ERAS {
        for status in [200, 400, 500] {
            let (_server, host) = turned(era, &format!("status={status} rpc"), &[]).await;
            assert_fails(echoed(&host, "x").await, &[Kind::ExecutionFailed], "no such note");
            assert_eq!(sum(&host).await, 42);
        }
    }
}

#[tokio::test]
async fn a_status_that_is_no_answer_is_named() {
    const NOBODY_KNOWS: &[Kind] = &[Kind::OutcomeUnknown, Kind::Unavailable, Kind::ExecutionFailed];
    for era in ERAS {
        for (status, kinds) in [
            (401, &[Kind::Denied, Kind::Unavailable][..]),
            (403, &[Kind::Denied, Kind::Unavailable]),
            (429, &[Kind::Busy, Kind::Unavailable]),
            (500, NOBODY_KNOWS),
            (503, NOBODY_KNOWS),
        ] {
            let (server, host) = turned(era, &format!("status={status}"), &[]).await;
            assert_fails(echoed(&host, "x").await, kinds, &status.to_string());
            assert_eq!(server.calls("echo").len(), 1);
            assert_eq!(sum(&host).await, 42, "{era} {status}");
        }
    }
    let server = Jotter::start("everything status=401");
    let failure = look(&host(), &of(&server)).await.map(drop).expect_err("it wants a token");
    assert!(failure.message.contains("401"), "{}", failure.to_json());
}

#[tokio::test]
async fn an_answer_of_another_type_is_none() {
    for era in ERAS {
        for kind in ["text/html", "application/octet-stream", "application/jsonx"] {
            let (_server, host) = turned(era, &format!("type={kind}"), &[]).await;
            let kinds = [Kind::OutcomeUnknown, Kind::Unavailable, Kind::ExecutionFailed];
            assert_fails(echoed(&host, "x").await, &kinds, kind);
            assert_eq!(sum(&host).await, 42, "{era} {kind}");
        }
    }
}

// What was accepted

#[tokio::test]
async fn one_changed_letter_withholds_that_tool_alone() {
    for era in ERAS {
        let (server, host) = turned(era, "changed new", &[]).await;
        assert_eq!(echoed(&host, "still there").await.expect("a tool as it was accepted"), "still there");
        let failure = call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect_err("another tool");
        assert_eq!(failure.kind, Kind::Denied);
        assert!(failure.message.contains("/inputSchema/properties/b/description"), "{}", failure.message);
        assert!(server.calls("add").is_empty());
        assert_eq!(offered(&host).await, ["jotter__echo", "jotter__read_note"]);
        assert_eq!(call(&host, "erase", json!({})).await.expect_err("nobody accepted it").kind, Kind::UnknownTool);
    }
}

#[tokio::test]
async fn lists_come_from_what_was_accepted_and_ask_nobody() {
    let (mut server, host) = turned("", "", &[]).await;
    let before = server.log().len();
    server.stop();
    assert_eq!(offered(&host).await, ["jotter__add", "jotter__echo", "jotter__read_note"]);
    assert_eq!(server.log().len(), before);
    assert_fails(echoed(&host, "x").await, &[Kind::Unavailable], NAME);
}

/// Case 9.
#[tokio::test]
async fn the_same_words_of_another_origin_are_not_what_was_accepted() {
    let (server, host) = turned("", "", &[]).await;
    let other = Jotter::start("");
    let host = host.set(&format!("upstream.{NAME}.url={:?}", other.url()));
    let failure = echoed(&host, "x").await.expect_err("another one");
    assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
    assert!(failure.hint.is_some_and(|hint| hint.contains("toolcrib upstream review jotter")));
    assert!(other.log().is_empty());
    let host = set(host, NAME, &of(&server));
    assert_eq!(sum(&host).await, 42);
}

// Forms that a server wants filled in

/// What there is to accept is shown, and a yes answers with what the server proposed.
#[tokio::test]
async fn a_person_sees_the_form_of_a_server_and_a_yes_fills_in_its_defaults() {
    let filled = json!({ "name": "Ann", "size": 3, "kind": "round", "sure": true });
    for (first, words) in [("sessions", "form"), ("sessions", "form-aside"), ("newer", "form")] {
        let (server, host) = turned(first, words, &["elicitation=\"ask\""]).await;
        let host = host.answering(Answer::Yes);
        let said: Value = serde_json::from_str(&echoed(&host, "x").await.expect("its answer")).expect("JSON");
        let answer = if first == "newer" { &said["form"] } else { &said };
        assert_eq!((&answer["action"], &answer["content"]), (&json!("accept"), &filled), "{first} {words}");
        let [question] = &host.asked()[..] else { panic!("one question: {:?}", host.asked()) };
        let shown = format!("{} {} {:?}", question.landing.backend, question.action, question.details);
        for text in [NAME, "Which one is it?", "Ann", "round"] {
            assert!(shown.contains(text), "{text:?} is not in: {shown}");
        }
        server.assert_well_asked();
    }
}

#[tokio::test]
async fn without_a_yes_nothing_is_filled_in() {
    for (first, words) in [("sessions", "form"), ("newer", "form")] {
        let (server, host) = turned(first, words, &["elicitation=\"ask\""]).await;
        let host = host.answering(Answer::No);
        let _ = echoed(&host, "x").await;
        assert_eq!(host.asked().len(), 1, "{first}");
        assert!(!heard(&server).contains("accept\""), "{first}: {}", heard(&server));
        // Nobody is asked unless the section says so, and about no password at all.
        for (words, lines) in [(words, &[][..]), ("password", &["elicitation=\"ask\""])] {
            let (server, host) = turned(first, words, lines).await;
            let host = host.answering(Answer::Yes);
            let _ = echoed(&host, "x").await;
            assert!(host.asked().is_empty(), "{first} {words}: {:?}", host.asked());
            assert!(!heard(&server).contains("accept\""), "{first} {words}: {}", heard(&server));
        }
    }
}

/// What was answered so far, in either era.
fn heard(server: &Jotter) -> String {
    let inputs = server.messages("tools/call").into_iter().map(|line| line["body"]["params"]["inputResponses"].clone());
    server.answers().into_iter().chain(inputs).map(|answer| answer.to_string()).collect()
}

/// Case 29.
#[tokio::test]
async fn a_fifth_round_of_questions_is_one_too_many() {
    for (rounds, is_enough) in [(4, true), (5, false)] {
        let (server, host) = turned("newer", &format!("rounds={rounds}"), &["elicitation=\"ask\""]).await;
        let host = host.answering(Answer::Yes);
        match echoed(&host, "x").await {
            Ok(_) => assert!(is_enough),
            failed => {
                assert!(!is_enough, "{failed:?}");
                assert_fails(failed, &[Kind::Limit], "");
            }
        }
        let calls = server.calls("echo");
        assert_eq!(calls.len(), 5);
        let numbers: std::collections::BTreeSet<u64> =
            calls.iter().filter_map(|line| line["body"]["id"].as_u64()).collect();
        assert_eq!(numbers.len(), calls.len(), "each round has a number of its own");
        let states: Vec<&Value> = calls.iter().map(|line| &line["body"]["params"]["requestState"]).collect();
        assert_eq!(states[..2], [&Value::Null, &json!("round-1")]);
    }
}
