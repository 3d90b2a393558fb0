//! What a plugin may put into a request, and where it may send it.

use crate::host::Host;
use crate::names::Names;
use crate::web::{Web, answer, page, redirect};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
use toolcrib_tests::envelope::{kind, said};

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_CONTACT: &str = "tcp 93.184.216.34:80";

/// A host whose guest may send anything to `open.org`.
fn open_host(world: &World) -> Host {
    let methods = r#"http.methods=["GET","HEAD","POST","PUT","PATCH","DELETE","OPTIONS"]"#;
    world.program().guest("requester", &[r#"http.hosts=["open.org"]"#, methods]).run()
}

/// A host whose guest may send `GET`, and what these lines say.
fn granted(world: &World, lines: &[&str]) -> Host {
    let lines = [&[r#"http.methods=["GET"]"#][..], lines].concat();
    world.program().guest("requester", &lines).run()
}

fn open_web() -> Web {
    Web::open(&[80, 443, 8080], |request, wire| {
        let page = page("here");
        let body = if request.method == "HEAD" { "here".len() } else { 0 };
        wire.write_all(&page[..page.len() - body])
    })
}

fn assert_refused(answer: &Value, what: &str) {
    assert!(["invalid_arguments", "denied"].contains(&kind(answer)), "{what}: {answer}");
    println!("{what}: {}", said(answer));
}

/// S-dyn-07, as it applies to who is no proxy.
#[test]
fn a_url_that_could_be_read_in_two_ways_is_refused() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = open_host(world);
        for url in [
            "http://evil.org\0.open.org/",
            "http://evil.org%00.open.org/",
            "http://open.org\0/",
            "http://open.org/\0",
            "http://open.org/a b",
            "http://open.org/a\r\nx-evil: 1",
            "http://open.org/a\nx-evil: 1",
            "http://open.org\r\nx-evil: 1/",
            "http://open.org HTTP/1.1\r\nhost: evil.org\r\n\r\n",
            "http://open.org@evil.org/",
            "http://evil.org#@open.org/",
            "http://evil.org\\@open.org/",
            "http://open.org:22/",
            "http://93.184.216.34:22/",
            "open.org:443",
            "*",
            "",
        ] {
            assert_refused(&host.request("GET", url, &[]), &format!("{url:?}"));
        }
        assert!(names.asked().is_empty() && web.connections().is_empty(), "{:?}", web.connections());
        world.assert_record(&[]);
    });
}

#[test]
fn methods_of_proxies_and_words_that_are_no_method_are_refused() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = open_host(world);
        for method in [
            "CONNECT",
            "TRACE",
            "TRACK",
            "PROPFIND",
            "GET ",
            " GET",
            "",
            "GET / HTTP/1.1\r\nx-evil: 1\r\n\r\nGET",
            "G\0ET",
        ] {
            assert_refused(&host.request(method, "http://open.org/", &[]), &format!("{method:?}"));
        }
        world.assert_record(&[]);
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            assert_eq!(host.request(method, "http://open.org/", &[])["result"]["status"], 200, "{method}");
        }
        let methods: Vec<String> = web.requests().into_iter().map(|request| request.method).collect();
        assert_eq!(methods, ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
    });
}

#[test]
fn headers_of_the_connection_and_headers_that_are_none_are_refused() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = open_host(world);
        let own = [
            "host",
            "Host",
            "HOST",
            "connection",
            "keep-alive",
            "content-length",
            "transfer-encoding",
            "Transfer-Encoding",
        ];
        let more = ["te", "trailer", "upgrade", "expect", "accept-encoding", "proxy-authorization", "proxy-connection"];
        for name in own.into_iter().chain(more) {
            assert_refused(&host.request("GET", "http://open.org/", &[(name, "evil.org")]), name);
        }
        for name in [
            "",
            " ",
            "a b",
            "a:b",
            ":authority",
            "host ",
            " host",
            "x\r\nhost",
            "x\nhost",
            "x\0",
            "ä",
            "x\r\n\r\nGET / HTTP/1.1",
        ] {
            assert_refused(&host.request("GET", "http://open.org/", &[(name, "1")]), &format!("{name:?}"));
        }
        for value in
            ["a\r\nx-evil: 1", "a\nx-evil: 1", "a\rx-evil: 1", "a\0b", "a\r\n\r\nGET /evil HTTP/1.1\r\nhost: evil.org"]
        {
            assert_refused(&host.request("GET", "http://open.org/", &[("x-fine", value)]), &format!("{value:?}"));
        }
        let flood: Vec<(String, &str)> = (0..101).map(|number| (format!("x-{number}"), "1")).collect();
        let flood: Vec<(&str, &str)> = flood.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let answer = host.request("GET", "http://open.org/", &flood);
        assert!(["invalid_arguments", "denied", "limit"].contains(&kind(&answer)), "{answer}");
        assert_eq!(web.places(), [""; 0]);
        let answer = host.request("GET", "http://open.org/", &flood[..100]);
        assert_eq!(answer["result"]["status"], 200, "{answer}");
    });
}

#[test]
fn a_request_says_of_the_connection_what_is_true() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = open_host(world);
        let url = "http://OPEN.org:80/a%0d%0ax-evil:%201?b=%0d%0a#c";
        let arguments =
            json!({ "method": "POST", "url": url, "headers": [["x-fine", "1"]], "body": "GET /evil HTTP/1.1\r\n\r\n" });
        let answer = host.call("request", arguments);
        assert_eq!(answer["result"]["status"], 200, "{answer}");
        let requests = web.requests();
        let [request] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!(request.target, "/a%0d%0ax-evil:%201?b=%0d%0a");
        assert_eq!(request.values("host"), ["open.org"]);
        assert_eq!((request.values("content-length"), request.values("x-fine")), (vec!["22"], vec!["1"]));
        assert!(
            request.values("transfer-encoding").is_empty() && request.values("x-evil").is_empty(),
            "{}",
            request.head
        );
        let encodings = request.values("accept-encoding").join(", ");
        assert!(encodings.split(", ").all(|one| ["gzip", "deflate"].contains(&one)), "{encodings}");
    });
}

#[test]
fn a_plugin_reaches_the_hosts_of_its_grant_alone() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = granted(world, &[r#"http.hosts=["open.org","*.wide.org"]"#]);
        for url in ["http://open.org/", "http://OPEN.org./", "http://a.wide.org/", "http://a.b.wide.org/"] {
            assert_eq!(host.request("GET", url, &[])["result"]["status"], 200, "{url}");
        }
        let before = web.requests().len();
        for url in [
            "http://other.org/",
            "http://sub.open.org/",
            "http://open.org.evil.org/",
            "http://notopen.org/",
            "http://notwide.org/",
            "http://wide.org.evil.org/",
            "http://93.184.216.34/",
            "http://[2606:4700:4700::1111]/",
        ] {
            let answer = host.request("GET", url, &[]);
            assert_eq!(kind(&answer), "denied", "{url}: {answer}");
            let told = said(&answer);
            assert!(told.contains("http.hosts") && told.contains("plugin.requester"), "{told}");
        }
        assert_eq!(web.requests().len(), before);
        // By name, as a question whose answer is slow is asked again.
        let reached = ["open.org", "a.wide.org", "a.b.wide.org"];
        assert!(names.asked().iter().all(|name| reached.contains(&name.as_str())), "{:?}", names.asked());
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}

#[test]
fn a_plugin_without_a_grant_reaches_nothing() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let web = open_web();
        for lines in [&[] as &[&str], &[r#"http.methods=["GET"]"#], &[r#"http.hosts=[]"#, r#"http.methods=["GET"]"#]] {
            let mut host = world.program().guest("requester", lines).run();
            let answer = host.request("GET", "http://closed.org/", &[]);
            assert_eq!(kind(&answer), "denied", "{lines:?}: {answer}");
            println!("{}", said(&answer));
            host.page("http://open.org/");
        }
        assert_eq!(web.requests().len(), 3, "only the built-in tool got through");
        assert!(names.asked().iter().all(|name| name == "open.org"), "{:?}", names.asked());
    });
}

#[test]
fn a_plugin_uses_the_methods_of_its_grant_alone() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let mut host = granted(world, &[r#"http.hosts=["open.org"]"#]);
        for method in ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let answer = host.request(method, "http://open.org/", &[]);
            assert!(kind(&answer) == "denied" && said(&answer).contains("http.methods"), "{method}: {answer}");
        }
        assert_eq!(web.places(), [""; 0]);
        assert_eq!(host.request("GET", "http://open.org/", &[])["result"]["status"], 200);
    });
}

#[test]
fn a_plugin_stays_below_the_paths_of_its_grant() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80], |request, wire| match request.target.as_str() {
            "/v1/away" => wire.write_all(&redirect(302, "/v2/secret")),
            "/v1/up" => wire.write_all(&redirect(302, "../v2/secret")),
            _ => wire.write_all(&page("here")),
        });
        let mut host = granted(world, &[r#"http.hosts=["open.org"]"#, r#"http.paths=["/v1/"]"#]);
        for path in ["/v1/items", "/v1/a/../items", "/v1/items?next=/../v2", "/v2/../v1/items"] {
            assert_eq!(host.request("GET", &format!("http://open.org{path}"), &[])["result"]["status"], 200, "{path}");
        }
        for path in [
            "/",
            "/v2",
            "/v10/items",
            "/V1/items",
            "//v1/items",
            "/v1/../v2",
            "/v1/./../v2",
            "/v1/a/../../v2",
            "/v1/%2e%2e/v2",
            "/v1/.%2E/v2",
            "/v1/%2e./v2",
            "/v1\\..\\v2",
            "/v1/..\\v2",
            "/v1/..%2fv2",
            "/v1%2f..%2fv2",
            "/v1/%2e%2e%2fv2",
            "/v1/..%5cv2",
            "/v1/away",
            "/v1/up",
        ] {
            let answer = host.request("GET", &format!("http://open.org{path}"), &[]);
            assert!(kind(&answer) == "denied" && said(&answer).contains("http.paths"), "{path}: {answer}");
        }
        let targets: Vec<String> = web.requests().into_iter().map(|request| request.target).collect();
        println!("{targets:?}");
        assert!(targets.iter().all(|target| target.starts_with("/v1/")), "{targets:?}");
    });
}

#[test]
fn a_relative_url_starts_at_the_base_of_the_grant_and_stays_there() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let web = open_web();
        let lines = [r#"http.hosts=["open.org"]"#, r#"http.paths=["/v1/"]"#, r#"http.base="http://open.org/v1/""#];
        let mut host = granted(world, &lines);
        for url in ["items?a=b", "/v1/items", "http://open.org/v1/items"] {
            assert_eq!(host.request("GET", url, &[])["result"]["status"], 200, "{url}");
        }
        for url in ["../v2", "/v2", "//evil.org/v1/", "\\\\evil.org/v1/", "http:/v2"] {
            let answer = host.request("GET", url, &[]);
            assert_eq!(kind(&answer), "denied", "{url}: {answer}");
        }
        let place = |path: &str| format!("{PUBLIC}:80{path}");
        assert_eq!(web.places(), [place("/v1/items?a=b"), place("/v1/items"), place("/v1/items")]);
    });
}

/// S-dyn-08. The traps are at an address and a port that nothing else uses.
#[test]
fn proxies_of_the_environment_are_not_used() {
    in_a_world(|world| {
        Names::everywhere(&[PUBLIC]);
        let trap = Web::open(&[3128, 1080], |_, wire| wire.write_all(&page("the trap")));
        Web::open(&[80], |_, wire| wire.write_all(&page("here")));
        for proxy in ["http://93.184.216.99:3128", "socks5h://93.184.216.99:1080", "93.184.216.99:3128"] {
            let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
            let program = names.iter().fold(world.program(), |program, name| program.environment(name, proxy));
            let mut host = program.environment("NO_PROXY", "").environment("no_proxy", "").run();
            assert_eq!(host.page("http://open.org/")["text"].as_str().map(|text| text.contains("here")), Some(true));
            // Nobody is there, but that is found out at the right place.
            assert_eq!(kind(&host.fetch("https://open.org/")), "unavailable");
        }
        assert!(trap.connections().is_empty(), "{:?}", trap.connections());
        world.assert_record(&[PUBLIC_CONTACT, "tcp 93.184.216.34:443"]);
    });
}

/// S-dyn-13. What a server says of other places is text.
#[test]
fn hints_to_other_places_are_not_followed() {
    in_a_world(|world| {
        let names = Names::everywhere(&[PUBLIC]);
        let web = Web::open(&[80, 443, 8080], |request, wire| {
            let status = if request.target.starts_with("/misdirected") { "421 Misdirected Request" } else { "200 OK" };
            let headers = [
                ("alt-svc", r#"h2="evil.org:8080"; ma=86400; persist=1, h3=":443""#),
                ("refresh", "0; url=http://evil.org/"),
                ("link", "<http://evil.org/style.css>; rel=preload; as=style, <http://evil.org>; rel=preconnect"),
                ("content-location", "http://evil.org/"),
                ("location", "http://evil.org/"),
                ("content-type", "text/html"),
            ];
            let body = r#"<base href="http://evil.org/"><meta http-equiv="refresh" content="0; url=http://evil.org/">
                <img src="http://evil.org/pixel"><script src="http://evil.org/script"></script><p>here</p>"#;
            wire.write_all(&answer(status, &headers, body))
        });
        let mut host = world.program().run();
        for number in 0..2 {
            assert_eq!(host.page(&format!("http://open.org/{number}"))["status"], 200);
            assert_eq!(host.fetch(&format!("http://open.org/misdirected{number}"))["result"]["status"], 421);
        }
        assert!(names.asked().iter().all(|name| name == "open.org"), "{:?}", names.asked());
        assert_eq!(web.requests().len(), 4);
        world.assert_record(&[PUBLIC_CONTACT]);
    });
}
