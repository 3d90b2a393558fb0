//! `wasi:http`, which components of other worlds use: by the one egress, with the same rules, records and secrets as all else.

use crate::host::Host;
use crate::names::{Names, Reply};
use crate::web::{Web, answer, page, redirect};
use crate::world::{World, in_a_world};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::envelope::{kind, said};

const VALUE: &str = "zK4vQ9.Lw2x-Ht7Rm+8";
const HOSTS: &str = r#"http.hosts=["api.org"]"#;
const METHODS: &str = r#"http.methods=["GET", "POST"]"#;

fn names() -> Names {
    Names::serve(|query| Reply::addresses(query, &["93.184.216.34"]))
}

fn send(host: &mut Host, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Value {
    let body = BASE64.encode(body);
    host.call("send", json!({ "method": method, "url": url, "headers": headers, "body": body }))
}

fn attack(host: &mut Host, name: &str, argument: &str) -> Value {
    host.call("attack", json!({ "name": name, "argument": argument }))
}

/// What the host says beside what the guest made of it.
fn hint(answer: &Value) -> String {
    answer["error"]["hint"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn it_is_refused_without_a_grant_and_works_with_one() {
    in_a_world(|world| {
        let _names = names();
        let web = Web::open(&[80], |request, wire| match request.target.as_str() {
            "/json" => wire.write_all(&answer("200 OK", &[("content-type", "application/json")], r#"{"a":1}"#)),
            "/moved" => wire.write_all(&redirect(302, "http://api.org/here")),
            "/away" => wire.write_all(&redirect(302, "http://other.org/here")),
            _ => wire.write_all(&page("here")),
        });
        let mut refused = world.program().guest("reader", &[]).run();
        let told = refused.call("fetch", json!({ "url": "http://api.org/" }));
        assert_eq!(kind(&told), "execution_failed", "{told}");
        assert!(hint(&told).contains("`reader` needs `http`"), "{told}");
        assert!(web.connections().is_empty(), "nothing left");

        let mut host = world.program().guest("reader", &[HOSTS, METHODS]).run();
        assert!(
            host.call("fetch", json!({ "url": "http://api.org/json" }))["result"]
                .as_str()
                .unwrap()
                .contains("\"a\": 1")
        );
        assert!(
            host.call("fetch", json!({ "url": "http://api.org/moved" }))["result"].as_str().unwrap().contains("here")
        );
        for (url, why) in [
            ("http://other.org/", "may not reach `other.org`"),
            ("http://api.org/away", "redirects: `reader` may not reach `other.org`"),
            ("http://127.0.0.1/", "may not reach"),
        ] {
            let told = host.call("fetch", json!({ "url": url }));
            assert!(kind(&told) == "execution_failed" && hint(&told).contains(why), "{url}: {told}");
        }
        assert!(hint(&send(&mut host, "DELETE", "http://api.org/", &[], b"")).contains("may not send DELETE"));
        world.assert_record(&["tcp 93.184.216.34:80"]);
    });
}

#[test]
fn bodies_go_there_whole_and_come_back_as_they_come() {
    in_a_world(|world| {
        let _names = names();
        let web =
            Web::open(&[80], |request, wire| wire.write_all(&answer("200 OK", &[("x-seen", "yes")], &request.body)));
        let mut host = world.program().guest("reader", &[HOSTS, METHODS]).run();
        let body: Vec<u8> = (0..60_000_u32).map(|number| b'a' + (number * 7 % 26) as u8).collect();
        let sent = send(&mut host, "POST", "http://api.org/x", &[("x-own", "1")], &body);
        let result = &sent["result"];
        assert_eq!(result["status"], 200, "{:.300}", sent.to_string());
        assert!(BASE64.decode(result["body"].as_str().unwrap()).unwrap() == body, "other bytes came back");
        let request = &web.requests()[0];
        assert_eq!(request.values("x-own"), ["1"]);
        assert_eq!((request.values("host"), request.values("content-length")), (vec!["api.org"], vec!["60000"]));
        for (name, value) in
            [("proxy-authorization", "x"), ("x-odd", "a\nb"), ("forwarded", "for=1"), ("expect", "100-continue")]
        {
            let told = send(&mut host, "GET", "http://api.org/x", &[(name, value)], b"");
            assert_eq!(kind(&told), "execution_failed", "{name}: {told}");
        }
        assert_eq!(web.requests().len(), 1);
    });
}

/// What another host gives its components by `wasi:config`: here a word in place of the key, which the egress puts into the query.
#[test]
fn a_key_is_in_the_query_and_the_component_never_has_it() {
    in_a_world(|world| {
        let authority = Authority::new();
        let _names = names();
        let server = authority.server("api.org");
        let web = Web::open_encrypted(
            move |_| server.clone(),
            |request, wire| match request.target.split(['=', '&']).nth(1) {
                Some("Echo") => wire.write_all(&page(&request.target)),
                Some("Twice") => {
                    let packed = [("content-encoding", "identity"), ("content-encoding", "gzip")];
                    wire.write_all(&answer("200 OK", &packed, "rain"))
                }
                _ => wire.write_all(&page("rain")),
            },
        );
        let prepared = |hosts: &str, base: &str| {
            let prepared = world.program();
            prepared.program.write("ca.pem", authority.pem());
            prepared.program.write("config/toolcrib/key", VALUE);
            let (key, ca) = (prepared.program.path("config/toolcrib/key"), prepared.program.path("ca.pem"));
            std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
            let config = format!(r#"config={{ OPENWEATHER_API_KEY = "${{secret:KEY}}", BASE_URL = "{base}" }}"#);
            let prepared = prepared
                .set(&format!("network.ca_file={:?}", ca.display().to_string()))
                .set(&format!("secret.KEY.file={:?}", key.display().to_string()))
                .set(&format!("secret.KEY.hosts={hosts}"))
                .set("leaks.results=warn");
            prepared.guest("forecast", &[r#"http.hosts=["api.org", "other.org"]"#, &config])
        };
        let weather = |host: &mut Host, city: &str| host.call("weather", json!({ "city": city }));
        let mut host = prepared(r#"["api.org"]"#, "https://api.org").run();
        let told = weather(&mut host, "Bonn");
        assert!(told["result"].as_str().unwrap().contains("rain"), "{told}");
        let target = web.requests()[0].target.clone();
        assert_eq!(target, "/data?q=Bonn&appid=zK4vQ9%2ELw2x%2DHt7Rm%2B8");
        // Nor has it what the server sends back of it.
        let told = weather(&mut host, "Echo").to_string();
        assert!(told.contains("[secret:KEY]") && !told.contains("zK4vQ9"), "{told}");

        let told = weather(&mut host, "Twice");
        assert!(hint(&told).is_empty() && kind(&told) == "execution_failed", "packed in a way that hides it: {told}");

        // It goes to its hosts alone, and never in the clear.
        for (hosts, base, why) in [
            (r#"["api.org"]"#, "https://other.org", "the secret `KEY` may not go to `other.org`"),
            (r#"["api.org"]"#, "http://api.org", "goes over HTTPS alone"),
            ("[]", "https://api.org", "the secret `KEY` may not go to `api.org`"),
        ] {
            let told = weather(&mut prepared(hosts, base).run(), "Bonn");
            assert!(kind(&told) == "execution_failed" && hint(&told).contains(why), "{base}: {told}");
        }
        assert_eq!(web.requests().len(), 3);
    });
}

/// P-84 in a network where whatever leaves is seen: odd authorities, headers of the connection, bodies that are not what they say.
#[test]
fn a_component_that_wants_more_gets_nothing_out() {
    in_a_world(|world: &World| {
        let _names = names();
        let web = Web::open(&[80], |request, wire| match request.target.as_str() {
            "/endless" => {
                wire.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                for _ in 0..4096 {
                    wire.write_all(&[b'x'; 65536])?;
                }
                Ok(())
            }
            _ => wire.write_all(&page("here")),
        });
        let host = world.program().guest("raider", &[HOSTS, METHODS]).set("limits.call_ms=5000");
        let mut host = host.set("limits.handles=256").run();
        for authority in [
            "user:pw@api.org",
            "api.org@evil.org",
            "evil.org",
            "api.org:22",
            "0x7f.1",
            "[::ffff:127.0.0.1]",
            "api.org.",
        ] {
            let told = attack(&mut host, "raw-url", &format!("http\n{authority}\n/x"));
            let is_own = authority == "api.org.";
            assert_eq!(kind(&told) == "ok", is_own, "{authority}: {told}");
        }
        for (scheme, path) in [
            ("ftp", "/"),
            ("file", "/etc/passwd"),
            ("http", "http://evil.org/"),
            ("http", "//evil.org/"),
            ("http", " /x"),
        ] {
            let told = attack(&mut host, "raw-url", &format!("{scheme}\napi.org\n{path}"));
            println!("{scheme} {path}: {}", if kind(&told) == "ok" { told.to_string() } else { said(&told) });
        }
        for request in web.requests() {
            assert_eq!(request.values("host"), ["api.org"], "{}", request.target);
        }
        for (name, argument) in [
            ("header", "CONNECT\nhttp://api.org/\n"),
            ("header", "TRACE\nhttp://api.org/\n"),
            ("short-body", "http://api.org/"),
            ("long-body", "http://api.org/"),
            ("endless-body", "http://api.org/"),
            ("fill-fields", "100"),
            ("hoard-fields", "100000"),
            ("guess-outparam", "10"),
        ] {
            let told = attack(&mut host, name, argument);
            assert_ne!(kind(&told), "internal", "{name}: {told}");
            println!("{name}: {:.200}", told.to_string());
        }
        let posts = web.requests().iter().filter(|request| request.method == "POST").count();
        for (name, argument) in [
            ("many", "300\nhttp://api.org/"),
            ("unread", "300\nhttp://api.org/"),
            ("drop", "http://api.org/endless"),
            ("abandon", "http://api.org/endless"),
            ("endless-answer", "http://api.org/endless"),
            ("timeouts", "18446744073709551615\nhttp://api.org/"),
        ] {
            let told = attack(&mut host, name, argument);
            assert_ne!(kind(&told), "internal", "{name}: {told}");
            println!("{name}: {:.200}", told.to_string());
        }
        assert_eq!(posts, 0, "a body that is not what it says was sent");
        // After all of this the host answers as before.
        assert_eq!(kind(&attack(&mut host, "raw-url", "http\napi.org\n/x")), "ok");
        world.assert_record(&["tcp 93.184.216.34:80"]);
    });
}
