//! Redirects: each hop is judged as if it had been asked for, and what was meant for the first server stays there.

use crate::names::{Names, Reply};
use crate::vectors::{Vector, vectors};
use crate::web::{Request, Web, page, redirect};
use crate::world::in_a_world;
use std::collections::BTreeSet;
use toolcrib_tests::envelope::{kind, said};

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_CONTACT: &str = "tcp 93.184.216.34:80";
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// What a redirect takes for a path of the same server.
fn is_relative(location: &str) -> bool {
    let path = location.strip_prefix("http:").or((!location.contains(':')).then_some(location));
    path.is_some_and(|path| path.chars().take(2).filter(|char| ['/', '\\'].contains(char)).count() < 2)
}

/// The lines that are refused, but for what would have been a URL with the scheme of the first one.
fn refused() -> impl Iterator<Item = Vector> {
    vectors().into_iter().filter(|vector| vector.verdict == "deny" && !vector.input.starts_with("\\\\"))
}

/// S-dyn-04. `/302/7` redirects to the seventh line.
#[test]
fn no_redirect_leads_where_a_url_may_not() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let locations: Vec<String> = refused().map(|vector| vector.input).collect();
        let web = Web::open(&[80, 443, 22, 6379, 8080], move |request, wire| {
            let mut parts = request.target.split('/').skip(1).map(str::parse::<usize>);
            match (parts.next(), parts.next(), parts.next()) {
                (Some(Ok(status)), Some(Ok(index)), None) => {
                    let status = u16::try_from(status).expect("a status");
                    wire.write_all(&redirect(status, &locations[index]))
                }
                _ => wire.write_all(&page("a path of the same server")),
            }
        });
        let mut host = world.program().run();
        let mut faults = Vec::new();
        for status in STATUSES {
            for (index, vector) in refused().enumerate() {
                let answer = host.fetch(&format!("http://redirector.org/{status}/{index}"));
                let is_refused =
                    ["denied", "invalid_arguments", "execution_failed", "unavailable"].contains(&kind(&answer));
                let is_elsewhere =
                    !answer["result"]["url"].as_str().is_some_and(|url| url.starts_with("http://redirector.org/"));
                let is_right = if is_relative(&vector.input) { !is_elsewhere || is_refused } else { is_refused };
                if !is_right {
                    faults.push(format!("{status} {} `{}`: {answer}", vector.id, vector.input.escape_debug()));
                } else if status == 302 {
                    println!("{} `{:.80}`: {:?}", vector.id, vector.input.escape_debug().to_string(), kind(&answer));
                }
            }
        }
        let asked: BTreeSet<String> = names.asked().into_iter().collect();
        println!("asked: {asked:?}; {} requests", web.requests().len());
        assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
        assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["redirector.org"]);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-04 with a header that nobody else may see, sent by a plugin that may name the host that turns out to be this machine.
#[test]
fn a_hop_to_a_name_that_leads_inside_is_refused_and_gets_no_credentials() {
    in_a_world(|world| {
        let names = Names::serve(|query| {
            Reply::addresses(query, if query.name == "inside.org" { &["127.0.0.1"] } else { &[PUBLIC] })
        });
        let web = Web::open(&[80], |request, wire| {
            let status = request.target.trim_matches('/').parse().unwrap_or(302);
            wire.write_all(&redirect(status, "http://inside.org/"))
        });
        let grant = [r#"http.hosts=["outside.org","inside.org"]"#, r#"http.methods=["GET"]"#];
        let mut host = world.program().guest("requester", &grant).run();
        for status in STATUSES {
            let answer = host.request("GET", &format!("http://outside.org/{status}"), &[("x-canary", "tweet")]);
            assert_eq!(kind(&answer), "denied", "{answer}");
            println!("{status}: {}", said(&answer));
        }
        assert!(names.asked().contains(&"inside.org".to_owned()), "it was judged without being asked for");
        assert!(web.requests().iter().all(|request| request.values("host") == ["outside.org"]), "{:?}", web.places());
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// S-dyn-05 without what needs encryption, which is in `tls.rs`.
#[test]
fn redirects_end_after_five_hops_and_never_leave_the_web() {
    const ODD: [(&str, &str); 9] = [
        ("file", "file:///etc/passwd"),
        ("gopher", "gopher://93.184.216.34:70/x"),
        ("data", "data:text/plain,hi"),
        ("slashes", "//127.0.0.1/"),
        ("backslashes", "\\\\127.0.0.1\\"),
        ("port", "http://other.org:8080/"),
        ("user", "http://a:b@other.org/"),
        ("decimal", "http://2130706433/"),
        ("itself", "/itself"),
    ];
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80, 70, 8080], |request, wire| {
            let path = request.target.trim_start_matches('/');
            let odd = ODD.iter().find(|(name, _)| *name == path).map(|(_, location)| (*location).to_owned());
            let left: Option<u32> = path.strip_prefix("left").and_then(|left| left.parse().ok());
            let location = odd.or_else(|| match path {
                "there" => Some("/back".to_owned()),
                "back" => Some("there".to_owned()),
                _ => left.filter(|left| *left > 0).map(|left| format!("/left{}", left - 1)),
            });
            wire.write_all(&location.map_or_else(|| page("the end"), |location| redirect(302, &location)))
        });
        let mut host = world.program().run();
        for (name, location) in ODD {
            let answer = host.fetch(&format!("http://start.org/{name}"));
            assert_eq!(kind(&answer), "denied", "{location}: {answer}");
            println!("{location}: {}", said(&answer));
        }
        let before = web.requests().len();
        println!("{}", host.denied("http://start.org/there"));
        assert!(web.requests().len() - before <= 6, "{:?}", web.places());
        println!("{}", host.denied("http://start.org/left6"));
        assert_eq!(host.page("http://start.org/left5")["url"], "http://start.org/left0");
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

/// Says where to go from `first.org`, and what came.
fn to_second(request: &Request) -> Vec<u8> {
    match (request.values("host").first(), request.target.as_str()) {
        (Some(&"first.org"), "/away") => redirect(307, "http://second.org/landed"),
        (Some(&"first.org"), "/stay") => redirect(307, "/landed"),
        _ => page("landed"),
    }
}

/// S-dyn-06.
#[test]
fn another_origin_gets_harmless_headers_alone() {
    const HARMLESS: [(&str, &str); 5] = [
        ("accept", "text/plain"),
        ("accept-language", "de"),
        ("content-language", "fr"),
        ("content-type", "text/x-test"),
        ("user-agent", "tester/1"),
    ];
    const SECRET: [(&str, &str); 7] = [
        ("x-api-key", "hunter2"),
        ("authorization", "Bearer hunter2"),
        ("cookie", "session=hunter2"),
        ("x-custom", "hunter2"),
        ("referer", "http://first.org/hunter2"),
        ("origin", "http://hunter2.org"),
        ("if-none-match", "hunter2"),
    ];
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80], |request, wire| wire.write_all(&to_second(request)));
        let grant = [r#"http.hosts=["first.org","second.org"]"#, r#"http.methods=["GET"]"#];
        let mut host = world.program().guest("requester", &grant).run();
        let headers = [&HARMLESS[..], &SECRET[..]].concat();
        for (path, origin) in [("away", "http://second.org"), ("stay", "http://first.org")] {
            let answer = host.request("GET", &format!("http://first.org/{path}"), &headers);
            assert_eq!(answer["result"]["url"], format!("{origin}/landed"), "{answer}");
        }
        let requests = web.requests();
        let [first, away, _, stayed] = &requests[..] else { panic!("{requests:?}") };
        for (name, value) in headers {
            assert_eq!((first.values(name), stayed.values(name)), (vec![value], vec![value]), "{name}");
        }
        for (name, value) in HARMLESS {
            assert_eq!(away.values(name), [value], "{name}");
        }
        assert!(!away.head.contains("hunter2") && !away.head.to_lowercase().contains("referer"), "{}", away.head);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

#[test]
fn nothing_is_kept_for_a_server_that_sets_cookies() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80], |_, wire| {
            wire.write_all(&crate::web::answer("200 OK", &[("set-cookie", "id=hunter2; path=/")], "here"))
        });
        let mut host = world.program().run();
        host.page("http://first.org/1");
        host.page("http://first.org/2");
        assert!(web.requests().iter().all(|request| request.values("cookie").is_empty()), "{:?}", web.requests());
    });
}

/// The rules of the Fetch standard.
#[test]
fn method_and_body_after_a_redirect_are_those_of_the_standard() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80], |request, wire| {
            let status = request.target.trim_matches('/').parse().ok();
            wire.write_all(&status.map_or_else(|| page("landed"), |status| redirect(status, "/landed")))
        });
        let grant = [r#"http.hosts=["first.org"]"#, r#"http.methods=["GET","POST","PUT"]"#];
        let mut host = world.program().guest("requester", &grant).run();
        for (method, status, then, body) in [
            ("POST", 301, "GET", ""),
            ("POST", 302, "GET", ""),
            ("POST", 303, "GET", ""),
            ("PUT", 303, "GET", ""),
            ("PUT", 302, "PUT", "text"),
            ("POST", 307, "POST", "text"),
            ("POST", 308, "POST", "text"),
        ] {
            let url = format!("http://first.org/{status}");
            let arguments = serde_json::json!({ "method": method, "url": url, "body": "text" });
            let answer = host.call("request", arguments);
            assert_eq!(answer["result"]["status"], 200, "{answer}");
            let last = web.requests().pop().expect("a request");
            assert_eq!((last.method.as_str(), last.body.as_str()), (then, body), "{method} {status}");
        }
    });
}

#[test]
fn a_hop_out_of_what_was_granted_or_into_what_is_blocked_is_refused() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80], |request, wire| wire.write_all(&to_second(request)));
        let program = world.program().set(r#"tools.fetch_blocked_domains=["second.org"]"#);
        let refused = program.run().denied("http://first.org/away");
        assert!(refused.contains("fetch_blocked_domains"), "{refused}");
        let grant = [r#"http.hosts=["first.org"]"#, r#"http.methods=["GET"]"#];
        let mut host = world.program().guest("requester", &grant).run();
        let answer = host.request("GET", "http://first.org/away", &[]);
        assert!(kind(&answer) == "denied" && said(&answer).contains("http.hosts"), "{answer}");
        assert_eq!(web.places(), ["93.184.216.34:80/away"; 2]);
        assert!(!names.asked().contains(&"second.org".to_owned()), "{:?}", names.asked());
    });
}
