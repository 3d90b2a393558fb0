//! `web_search` against a search engine of the test's own.

use crate::host::Host;
use crate::names::Names;
use crate::web::{Web, answer, redirect};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
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
