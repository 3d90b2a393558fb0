//! `web_search` against a search engine of the test's own.

use crate::host::Host;
use crate::names::{Names, Reply};
use crate::web::{Web, answer, redirect};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::envelope::{kind, said};

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/web_search/pages");

/// An engine that answers every query with the page of its name.
fn engine() -> Web {
    Web::open(&[8080], |request, wire| {
        let query = request.target.split_once("?q=").map(|(_, query)| query).unwrap_or_default();
        if query == "elsewhere" {
            return wire.write_all(&redirect(302, "http://open.org/html/?q=results"));
        }
        let html = std::fs::read(format!("{PAGES}/{query}.html")).unwrap_or_else(|error| panic!("{query}: {error}"));
        wire.write_all(&answer("200 OK", &[("content-type", "text/html; charset=utf-8")], html))
    })
}

/// A host that asks it.
fn searcher(world: &World) -> Host {
    let program = world.program().set(r#"tools.fetch_private_ranges=["127.0.0.1/32"]"#);
    program.set(r#"tools.search_endpoint="http://127.0.0.1:8080/html/""#).run()
}

fn search(host: &mut Host, query: &str) -> Value {
    host.call("web_search", json!({ "query": query }))
}

#[test]
fn results_come_with_the_addresses_that_they_lead_to() {
    in_a_world(|world| {
        let web = engine();
        let mut host = searcher(world);
        let answer = search(&mut host, "results");
        let results = answer["result"]["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(results.len(), 8, "{answer}");
        for hit in results {
            let (title, url) = (hit["title"].as_str().unwrap_or_default(), hit["url"].as_str().unwrap_or_default());
            println!("{title}: {url}");
            assert!(!title.is_empty() && (url.starts_with("https://") || url.starts_with("http://")), "{hit}");
            assert!(!url.contains("uddg=") && !url.contains("duckduckgo.com/l/"), "{hit}");
        }
        assert_eq!(web.places(), ["127.0.0.1:8080/html/?q=results"]);
        world.assert_record(&["tcp 127.0.0.1:8080"]);
    });
}

#[test]
fn pages_without_results_are_told_apart() {
    in_a_world(|world| {
        engine();
        let mut host = searcher(world);
        let none = search(&mut host, "none");
        assert_eq!(none["result"], json!({ "results": [], "message": "No results found." }), "{none}");
        let challenge = search(&mut host, "challenge");
        assert_eq!(kind(&challenge), "unavailable", "{challenge}");
        let changed = search(&mut host, "changed");
        assert!(changed.to_string().contains("could not parse"), "{changed}");
        for page in ["attributes", "bare_links", "large", "hostile"] {
            let answer = search(&mut host, page);
            println!("{page}: {answer}");
            assert!(
                answer["result"]["results"].as_array().is_some_and(|results| results.len() <= 8),
                "{page}: {answer}"
            );
        }
        world.assert_record(&["tcp 127.0.0.1:8080"]);
    });
}

#[test]
fn a_query_is_words_and_nothing_else() {
    in_a_world(|world| {
        let web = Web::open(&[8080], |_, wire| wire.write_all(&answer("200 OK", &[("content-type", "text/html")], "")));
        let mut host = searcher(world);
        for query in ["a&b=c", "a#b", "../../x", "a\r\nx-evil: 1", "a/?q=b", "//evil.org/", "ä b%00"] {
            search(&mut host, query);
        }
        for request in web.requests() {
            println!("{}", request.target);
            let query = request.target.strip_prefix("/html/?q=").unwrap_or_else(|| panic!("{}", request.target));
            let is_encoded = query.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%+-._~*".contains(&byte));
            assert!(is_encoded && request.values("x-evil").is_empty(), "{}", request.head);
        }
        world.assert_record(&["tcp 127.0.0.1:8080"]);
    });
}

#[test]
fn a_search_goes_to_its_endpoint_alone() {
    in_a_world(|world| {
        let names = Names::everywhere(&["93.184.216.34"]);
        let web = engine();
        let answer = search(&mut searcher(world), "elsewhere");
        assert_eq!(kind(&answer), "denied", "{answer}");
        println!("{}", said(&answer));
        assert_eq!(web.requests().len(), 1);
        world.assert_record(&["tcp 127.0.0.1:8080"]);
        let before = names.asked().len();
        // Without a setting there is one endpoint too; here it has no certificate to show.
        let answer = search(&mut world.program().run(), "words");
        assert_eq!(kind(&answer), "unavailable", "{answer}");
        let asked = names.asked().split_off(before);
        assert!(!asked.is_empty() && asked.iter().all(|name| name.ends_with("duckduckgo.com")), "{asked:?}");
        world.assert_record(&["tcp 127.0.0.1:8080", "tcp 93.184.216.34:443"]);
    });
}

const KEY: &str = "zK4vQ9.Lw2x-Ht7Rm+8";
const BRAVE: &str = "93.184.216.34";
const OTHER: &str = "93.184.216.35";

/// A host that searches with Brave, whose key is a secret for its API.
fn with_a_key(world: &World, authority: &Authority) -> Host {
    let prepared = world.program();
    prepared.program.write("ca.pem", authority.pem());
    prepared.program.write("config/toolcrib/key", KEY);
    let (ca, key) = (prepared.program.path("ca.pem"), prepared.program.path("config/toolcrib/key"));
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a file of ours");
    prepared
        .set(&format!("network.ca_file={:?}", ca.display().to_string()))
        .set("tools.search_provider=web_search_brave")
        .set(&format!("secret.BRAVE.file={:?}", key.display().to_string()))
        .set(r#"secret.BRAVE.hosts=["api.search.brave.com"]"#)
        .set(r#"plugin.web_search_brave.http.headers={ x-subscription-token = "${secret:BRAVE}" }"#)
        .run()
}

/// Brave, which does what the query says; every other name is at another address, where nobody has a certificate of theirs.
fn brave(authority: &Authority) -> (Names, Web) {
    let (api, other) = (authority.server("api.search.brave.com"), authority.server("other.org"));
    let web = Web::open_encrypted(
        move |to| if to.to_string() == BRAVE { api.clone() } else { other.clone() },
        |request, wire| {
            let token = request.values("x-subscription-token").concat();
            let json = [("content-type", "application/json"), ("x-echo", token.as_str())];
            let query = request.target.split_once("?q=").map_or("", |(_, query)| query);
            wire.write_all(&match query.split('&').next().unwrap_or_default() {
                "elsewhere" => redirect(302, "https://other.org/res/v1/web/search"),
                "refused" => {
                    answer("401 No", &json, json!({ "error": { "code": token, "detail": token } }).to_string())
                }
                "busy" => answer("429 Wait", &[("retry-after", "30"), ("x-echo", &token)], &token),
                "garbage" => answer("200 OK", &json, format!("<html>{token}")),
                _ => {
                    let item =
                        json!({ "title": token, "url": format!("https://example.org/?{token}"), "description": token });
                    answer("200 OK", &json, json!({ "web": { "results": [item] } }).to_string())
                }
            })
        },
    );
    let at = |name: &str| if name == "api.search.brave.com" { BRAVE } else { OTHER };
    (Names::serve(move |query| Reply::addresses(query, &[at(&query.name)])), web)
}

/// The key is in the header that settings name; neither result, errors, events nor the audit trail have it, whatever the server sends back of it.
#[test]
fn the_key_goes_to_brave_and_nowhere_else() {
    in_a_world(|world| {
        let authority = Authority::new();
        let (names, web) = brave(&authority);
        let mut host = with_a_key(world, &authority);
        let mut said = String::new();
        for (query, expected) in [
            ("words", ""),
            ("refused", "Brave does not accept the key (status 401)"),
            ("busy", "Brave takes no more searches for 30 s (status 429)"),
            ("garbage", "is not the JSON of a search"),
            ("elsewhere", "`web_search_brave` may not reach `other.org`"),
        ] {
            let answer = search(&mut host, query).to_string();
            println!("{answer}");
            assert!(answer.contains(expected), "{query}: {answer}");
            said += &answer;
        }
        assert!(said.contains("[secret:BRAVE]"), "{said}");
        let requests = web.requests();
        assert_eq!(requests.len(), 5);
        for request in &requests {
            assert_eq!(request.to.ip().to_string(), BRAVE);
            assert_eq!(request.values("x-subscription-token"), [KEY]);
            assert!(request.target.starts_with("/res/v1/web/search?q=") && !request.target.contains(KEY));
        }
        let trail = host.trail();
        assert!(trail.contains("https://api.search.brave.com/res/v1/web/search"), "{trail}");
        for text in [&said, &trail] {
            assert!(!text.contains(KEY) && !text.contains("zK4vQ9"), "{text}");
        }
        assert!(names.asked().iter().all(|name| name == "api.search.brave.com"), "{:?}", names.asked());
        world.assert_record(&[&format!("tcp {BRAVE}:443")]);
    });
}

/// A key is not sent without encryption: to a server of another URL that the secret names as well.
#[test]
fn a_key_is_not_sent_without_encryption() {
    in_a_world(|world| {
        let web = Web::open(&[80], |_, wire| wire.write_all(&answer("200 OK", &[], "{}")));
        let _names = Names::everywhere(&[BRAVE]);
        let prepared = world.program();
        prepared.program.write("config/toolcrib/key", KEY);
        let key = prepared.program.path("config/toolcrib/key");
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("a file of ours");
        let mut host = prepared
            .set("tools.search_provider=web_search_searxng")
            .set(r#"plugin.web_search_searxng.http.base="http://searx.org/""#)
            .set(&format!("secret.SEARX.file={:?}", key.display().to_string()))
            .set(r#"secret.SEARX.hosts=["searx.org"]"#)
            .set(r#"plugin.web_search_searxng.http.headers={ authorization = "Bearer ${secret:SEARX}" }"#)
            .run();
        let answer = search(&mut host, "words");
        assert_eq!(kind(&answer), "denied", "{answer}");
        assert!(said(&answer).contains("goes over HTTPS alone"), "{answer}");
        assert!(web.connections().is_empty());
    });
}
