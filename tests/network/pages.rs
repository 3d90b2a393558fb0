//! What `fetch_url` makes of pages: charsets, binary content, markup, depth, length.

use crate::host::Host;
use crate::names::Names;
use crate::web::{Web, answer};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
use toolcrib_tests::envelope::kind;
use toolcrib_tests::resident_kib;

/// A host, and a server that answers `/0`, `/1` … with these types and bodies.
fn serving(world: &World, pages: Vec<(&'static str, Vec<u8>)>) -> Host {
    Names::everywhere(&["93.184.216.34"]);
    Web::open(&[80], move |request, wire| {
        let number: usize = request.target.trim_matches('/').parse().expect("the number of a page");
        let (media, body) = &pages[number];
        wire.write_all(&answer("200 OK", &[("content-type", *media)], body))
    });
    world.program().run()
}

fn read(host: &mut Host, page: usize, more: Value) -> Value {
    let mut arguments = json!({ "url": format!("http://pages.org/{page}") });
    arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = host.call("fetch_url", arguments);
    assert_eq!(kind(&answer), "ok", "{page}: {answer}");
    answer
}

fn text(answer: &Value) -> &str {
    answer["result"]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

#[test]
fn text_is_read_in_the_charset_that_it_has() {
    in_a_world(|world| {
        let pages: [(&str, &[u8]); 11] = [
            ("text/plain; charset=utf-8", "Käse für 3 €".as_bytes()),
            ("text/plain", "Käse für 3 €".as_bytes()),
            ("text/plain; charset=utf-8", b"\xef\xbb\xbfK\xc3\xa4se f\xc3\xbcr 3 \xe2\x82\xac"),
            ("text/plain; charset=windows-1252", b"K\xe4se f\xfcr 3 \x80"),
            ("text/plain; charset=iso-8859-1", b"K\xe4se f\xfcr 3 \x80"),
            ("text/plain; charset=iso-8859-15", b"K\xe4se f\xfcr 3 \xa4"),
            ("text/html", b"<meta charset=windows-1252><p>K\xe4se f\xfcr 3 \x80"),
            ("text/html; charset=utf-8", b"<meta charset=windows-1252><p>K\xc3\xa4se f\xc3\xbcr 3 &euro;"),
            ("text/plain; charset=utf-16le", b"K\0\xe4\0s\0e\0 \0f\0\xfc\0r\0 \x003\0 \0\xac\x20"),
            ("TEXT/PLAIN; Charset=\"UTF-8\"", "Käse für 3 €".as_bytes()),
            ("text/plain; charset=no-such", "Käse für 3 €".as_bytes()),
        ];
        let mut host = serving(world, pages.map(|(media, body)| (media, body.to_vec())).into());
        for page in 0..pages.len() {
            let answer = read(&mut host, page, json!({ "as": "text" }));
            assert!(text(&answer).contains("Käse für 3 €"), "{page}: {answer}");
        }
    });
}

#[test]
fn binary_content_is_told_and_not_shown() {
    in_a_world(|world| {
        let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[0; 1000], b"\xff\xfe\x1b[31m"].concat();
        let pages =
            vec![("image/png", png.clone()), ("text/plain", png.clone()), ("application/octet-stream", png.clone())];
        let mut host = serving(world, pages);
        for page in 0..3 {
            let answer = read(&mut host, page, json!({}));
            let result = &answer["result"];
            assert!(result["text"].is_null() && result["bytes"] == png.len(), "{page}: {answer}");
            assert!(!answer.to_string().contains("IHDR"), "{page}: {answer}");
        }
    });
}

#[test]
fn html_is_read_as_text_if_that_is_asked_for() {
    in_a_world(|world| {
        let html = r#"<!doctype html><html><head><title>The title</title><style>p { color: red }</style><script>alert("no")</script></head>
            <body><h1>A heading</h1><p>Words &amp; <a href="/next">a link</a>.<p hidden>more<ul><li>an item</ul><!-- a comment --></body></html>"#;
        let mut host = serving(world, vec![("text/html; charset=utf-8", html.into())]);
        let raw = read(&mut host, 0, json!({}));
        assert!(text(&raw).contains("<h1>A heading</h1>"), "{raw}");
        let read = read(&mut host, 0, json!({ "as": "text" }));
        for there in ["A heading", "Words & ", "a link", "http://pages.org/next", "an item"] {
            assert!(text(&read).contains(there), "{there}: {read}");
        }
        for absent in ["<p>", "&amp;", "alert", "color: red", "a comment"] {
            assert!(!text(&read).contains(absent), "{absent}: {read}");
        }
    });
}

#[test]
fn a_long_text_is_read_part_by_part() {
    in_a_world(|world| {
        let lines: String = (0..5_000).map(|number| format!("line {number:05}\n")).collect();
        let mut host = serving(world, vec![("text/plain; charset=utf-8", lines.clone().into())]);
        let (mut offset, mut parts) = (0, 0);
        while offset < lines.len() {
            let answer = read(&mut host, 0, json!({ "offset": offset }));
            let part = text(&answer);
            let here = &lines[offset..lines.len().min(offset + 100)];
            assert!(part.contains(here), "at {offset}: {answer}");
            assert!(offset == 0 || !part.contains("line 00000"), "at {offset}: {answer}");
            let notices = answer["notices"].to_string();
            let next = notices
                .split("set `offset` to ")
                .nth(1)
                .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
            let next = next.and_then(|digits| digits.parse().ok()).unwrap_or(lines.len());
            assert!(next > offset, "at {offset}: {notices}");
            (offset, parts) = (next, parts + 1);
        }
        println!("{parts} parts");
        assert!((2..20).contains(&parts), "{parts}");
        let beyond = read(&mut host, 0, json!({ "offset": lines.len() + 1 }));
        assert!(!text(&beyond).contains("line "), "{beyond}");
    });
}

#[test]
fn a_million_nested_elements_are_a_page_like_others() {
    in_a_world(|world| {
        let nest =
            |element: &str| format!("<p>the beginning</p>{}", format!("<{element}>").repeat(1_000_000)).into_bytes();
        let elements = ["div", "b", "ul", "a", "table", "svg", "template", "select", "x"];
        let mut host = serving(world, elements.iter().map(|element| ("text/html", nest(element))).collect());
        for (page, element) in elements.iter().enumerate() {
            let answer = read(&mut host, page, json!({ "as": "text" }));
            assert!(text(&answer).contains("the beginning"), "{element}: {answer}");
        }
    });
}

#[test]
fn fifty_megabytes_are_read_up_to_four() {
    in_a_world(|world| {
        let page = "<p>a line of a very long page\n".repeat(50_000_000 / 30);
        let mut host = serving(world, vec![("text/html", page.into_bytes()), ("text/plain", b"short".to_vec())]);
        read(&mut host, 0, json!({ "as": "text" }));
        let before = resident_kib(host.pid());
        for behind in 10_000_000..10_000_020 {
            let answer = read(&mut host, 0, json!({ "as": "text", "offset": behind }));
            assert!(answer["result"]["bytes"].as_u64().is_some_and(|bytes| bytes <= 4 << 20), "{answer}");
            assert!(answer["notices"].to_string().contains("4 MiB"), "{answer}");
        }
        let grown = resident_kib(host.pid()).saturating_sub(before);
        println!("grown by {grown} KiB");
        // Twenty times 4 MiB are not kept; what an allocator holds back for each thread may be some bodies.
        assert!(grown < 48 << 10, "{grown} KiB");
        read(&mut host, 1, json!({}));
    });
}
