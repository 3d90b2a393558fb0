use super::*;
use serde_json::{Value, json};
use toolcrib_sdk::Kind;
use toolcrib_web_search::Hit;

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../../../tests/tools/web_search/pages/", $name, ".html"))
    };
}

fn response(status: u16, body: &str) -> Response {
    let url = "https://html.duckduckgo.com/html/?q=tide+tables".into();
    Response { status, headers: vec![], url, body: body.into(), truncated: false }
}

fn hits(html: &str) -> Vec<Hit> {
    let Found { results, message } = found(&response(200, html)).unwrap();
    assert_eq!(message, None);
    results
}

fn failure(status: u16, html: &str) -> Failure {
    found(&response(status, html)).unwrap_err()
}

fn result(href: &str, title: &str, snippet: &str) -> String {
    format!(
        "<div class=result><h2><a class=result__a href='{href}'>{title}</a></h2>\
         <p class=result__snippet>{snippet}</p></div>"
    )
}

#[test]
fn a_page_of_results_gives_the_first_eight_without_advertisements() {
    let results = hits(page!("results"));
    let first: Value = serde_json::to_value(&results[0]).unwrap();
    assert_eq!(
        first,
        json!({
            "title": "Tide tables & currents for 3,000 harbours",
            "url": "https://tides.example.org/tables?region=north&units=m",
            "snippet": "Free tide tables for harbours from Bergen to Brest: high and low water, heights in metres, and \
                the moon's phase for every day."
        })
    );
    let hosts: Vec<_> = results.iter().map(|hit| hit.url.split('/').nth(2).unwrap()).collect();
    assert_eq!(
        hosts,
        [
            "tides.example.org",
            "hydro.example.gov",
            "en.encyclopedia.example",
            "harbour.example.com",
            "sailing.example.net",
            "maths.example.edu",
            "forum.example.net",
            "code.example.io"
        ]
    );
    assert!(results.iter().all(|hit| !hit.title.is_empty() && !hit.snippet.is_empty()));
}

#[test]
fn entities_are_decoded_once() {
    let titles: Vec<_> = hits(page!("results")).into_iter().map(|hit| hit.title).collect();
    assert_eq!(titles[5], "Why tides: sums of cosines, h(t) < H & \"harmonics\"");
    assert_eq!(titles[6], "How do I write &amp; in a tide table's title?");
}

#[test]
fn the_order_and_the_quotes_of_attributes_do_not_matter() {
    let results = hits(page!("attributes"));
    assert_eq!(results.len(), 4);
    for (at, hit) in results.iter().enumerate() {
        let number = at + 1;
        assert_eq!(hit.title, format!("Bread number {number}"));
        assert_eq!(hit.url, format!("https://bakery.example.com/bread/{number}?crust=dark"));
        assert_eq!(hit.snippet, format!("What loaf {number} needs: flour, water, salt and time."));
    }
}

#[test]
fn links_without_containers_are_results_without_snippets() {
    let results = hits(page!("bare_links"));
    assert_eq!(results.len(), 3);
    assert_eq!(results[0].url, "https://lighthouses.example.org/list");
    assert!(results.iter().all(|hit| hit.snippet.is_empty()));
}

#[test]
fn a_page_that_says_so_has_no_results() {
    for html in [
        page!("none"),
        "No results found",
        "<p>Your search for <b>captcha</b> did not  match\nany documents.",
        "<div class=no-results>Nothing.</div>",
        "<div class='result result--no-result'>Nothing.</div>",
        "<i>No more results.</i>",
    ] {
        let found = found(&response(200, html)).unwrap();
        assert_eq!(
            serde_json::to_value(found).unwrap(),
            json!({"results": [], "message": "No results found."}),
            "{html}"
        );
    }
}

#[test]
fn a_result_that_speaks_of_no_results_or_of_captchas_is_a_result() {
    let page = result(
        "https://example.org/a",
        "No results found",
        "It did not match any captcha, no-results, bots use DuckDuckGo too",
    );
    assert_eq!(hits(&page)[0].title, "No results found");
    let echo = "<title>no results found</title><script>'no results found'</script><input value='no results found'>\
        <textarea>no results found</textarea><a class=result__a href='/'></a>\
        <p class=result__snippet>no results found</p>";
    assert!(failure(200, echo).message.contains("could not parse"));
}

#[test]
fn a_refusal_is_told_from_an_unknown_page() {
    for (status, html) in [
        (200, page!("challenge")),
        (202, page!("challenge")),
        (202, ""),
        (403, "no"),
        (418, ""),
        (200, "<p>Unfortunately, bots use DuckDuckGo too.</p>"),
        (200, "<form id=challenge-form>"),
        (200, "<iframe src='https://example.com/reCaptcha/api'>"),
    ] {
        let failure = failure(status, html);
        assert_eq!(failure.kind, Kind::UNAVAILABLE, "{status} {html}");
        assert!(
            failure.message.starts_with("the search engine asks for proof that a person is searching"),
            "{}",
            failure.message
        );
        assert!(failure.hint.is_some_and(|hint| hint.contains("wait") && hint.contains("`search_endpoint`")));
    }
}

#[test]
fn another_status_is_named() {
    for status in [400, 404, 500, 503] {
        let failure = failure(status, page!("results"));
        assert_eq!(failure.message, format!("the search engine answers with status {status}"));
        assert_eq!(failure.kind, Kind::EXECUTION_FAILED);
    }
}

#[test]
fn an_unknown_page_is_described() {
    let changed = failure(200, page!("changed"));
    assert_eq!(changed.message, "could not parse the page of the search engine: its layout may have changed");
    let seen: Value = serde_json::from_str(changed.data.as_deref().unwrap()).unwrap();
    assert_eq!(seen, json!({"status": 200, "bytes": page!("changed").len(), "title": "kites at Search"}));
    for html in ["", "{}", "<div class=result><a class=result__a href='/l/?uddg=x'>a</a></div>"] {
        assert!(failure(200, html).message.contains("could not parse"), "{html}");
    }
    let deep = failure(200, &"<div>".repeat(5_000));
    assert_eq!(deep.message, "could not parse the page of the search engine: it nests more than 2,000 elements");
    let data = deep.data.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), json!({"status": 200, "bytes": 25_000, "title": null}));
}

#[test]
fn a_hostile_page_gives_only_what_a_reader_could_follow() {
    let results = hits(page!("hostile"));
    let seen: Vec<_> = results.iter().map(|hit| (hit.title.as_str(), hit.url.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("Unclosed but real", "https://real.example.org/one"),
            ("Inside a table", "https://real.example.org/two"),
            ("<script>alert('title')</script>", "https://real.example.org/three"),
        ]
    );
    assert_eq!(results[2].snippet, "A snippet with an image and a <b>tag</b> in words.");
}

#[test]
fn duplicates_and_empty_titles_are_left_out() {
    let page = [
        result("https://example.org/a", "A", "first"),
        result("https://example.org/a", "A again", "second"),
        result("https://example.org/b", " <b></b> ", "no title"),
        result("https://example.org/c", "C", ""),
    ];
    let seen: Vec<_> = hits(&page.concat()).into_iter().map(|hit| (hit.title, hit.snippet)).collect();
    assert_eq!(seen, [("A".into(), "first".into()), ("C".into(), String::new())]);
}

#[test]
fn long_titles_and_snippets_are_cut() {
    let page = result("https://example.org/", &"t ".repeat(1_000), &"s".repeat(1_000));
    let hit = hits(&page).remove(0);
    assert_eq!((hit.title.chars().count(), hit.snippet.chars().count()), (298, 500));
    assert!(hit.title.ends_with('…') && hit.snippet.ends_with('…'));
}

#[test]
fn a_page_that_was_cut_is_read_as_far_as_it_goes() {
    let large = page!("large");
    assert_eq!(hits(large).len(), 8);
    for end in [large.len() / 3, large.len() / 2, large.len() - 100] {
        assert_eq!(hits(&large[..large.floor_char_boundary(end)]), hits(large), "{end}");
    }
    assert_eq!(hits(&large.repeat(16)).len(), 8);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let mut answer = response(200, "");
    answer.body = [b"<a class=result__a href=https://example.org/>a\xff", &b"b</a>"[..]].concat();
    assert_eq!(found(&answer).unwrap().results[0].title, "a\u{fffd}b");
}
