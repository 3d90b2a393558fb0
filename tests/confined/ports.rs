//! Ports of the session's own cell: `fetch_url` reaches them, and nothing else by their names.

use crate::rig::{Rig, Via};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;
use toolcrib_tests::eventually;
use toolcrib_tests::shell::command;

/// A server that says which host it was asked for, or redirects to what its query names.
const SERVER: &str = r#"
import http.server, socket, sys, urllib.parse
class Server(http.server.HTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        to = urllib.parse.urlparse(self.path).query
        self.send_response(302 if to else 200)
        if to: self.send_header('Location', urllib.parse.unquote(to))
        self.end_headers()
        self.wfile.write(('host ' + self.headers['Host']).encode())
    do_POST = do_GET
    def log_message(self, *_): pass
Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"#;

/// Starts a server in the cell, and returns when it listens.
fn serve(rig: &mut Rig, address: &str, port: u16) {
    rig.program.write("work/server.py", SERVER);
    let text = format!(
        "python3 server.py {address} {port} >/dev/null 2>&1 & until curl -s -o /dev/null --noproxy '*' 'http://localhost:{port}/'; do :; done"
    );
    assert_eq!(rig.run(&text).0, 0);
}

fn fetched(rig: &mut Rig, url: &str) -> Value {
    rig.client.call("fetch_url", json!({ "url": url }))
}

/// What the server at a URL said.
fn said(rig: &mut Rig, url: &str) -> String {
    let answer = fetched(rig, url);
    answer["result"]["text"].as_str().unwrap_or_else(|| panic!("{url}: {answer}")).to_owned()
}

/// The message and the hint of a refusal.
fn refusal(rig: &mut Rig, url: &str) -> (String, String) {
    let answer = fetched(rig, url);
    let part = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    assert_ne!(part("message"), "", "{url}: {answer}");
    (part("message"), part("hint"))
}

/// A server of the person's, outside of any cell, which redirects to where it is told to.
fn outside(location: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (status, location) = match location {
        "" => ("200 OK", String::new()),
        to => ("302 Found", format!("location: {to}\r\n")),
    };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                write!(stream, "HTTP/1.1 {status}\r\n{location}content-length: 7\r\nconnection: close\r\n\r\noutside");
        }
    });
    port
}

#[test]
fn a_server_in_the_cell_is_reached_by_each_of_its_names() {
    let mut rig = Rig::new(Via::Pane);
    for (address, port) in [("127.0.0.1", 3000), ("0.0.0.0", 5173), ("::1", 8080)] {
        serve(&mut rig, address, port);
        for name in
            ["cell", "CELL", "cell.", "localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]", "0x7f.1", "2130706433"]
        {
            assert_eq!(
                said(&mut rig, &format!("http://{name}:{port}/")),
                format!("host localhost:{port}"),
                "{address} {name}"
            );
        }
        // Also from within.
        let text = format!("curl -s http://cell:{port}/");
        assert_eq!(rig.run(&text), (0, format!("host cell:{port}")));
    }
    // A redirect within it, and the URL that it ends at.
    let answer = fetched(&mut rig, "http://localhost:3000/?http://localhost:5173/there");
    assert_eq!(
        (&answer["result"]["text"], &answer["result"]["url"]),
        (&json!("host localhost:5173"), &json!("http://localhost:5173/there"))
    );
    let trail = std::fs::read_to_string(rig.program.path("state/toolcrib/audit.jsonl")).expect("the trail");
    assert!(trail.contains("GET http://cell:3000/") && !trail.contains("GET http://localhost"), "{trail}");
}

#[test]
fn nothing_else_is_reached_by_the_names_of_the_cell() {
    let mut rig = Rig::new(Via::Pane);
    // No command has run, and then one has that serves nothing.
    let port = outside("");
    for text in ["", "true"] {
        if !text.is_empty() {
            assert_eq!(rig.run(text).0, 0);
        }
        let (message, hint) = refusal(&mut rig, &format!("http://cell:{port}/"));
        assert_eq!(message, format!("nothing listens at `cell:{port}`, a port of this session's own cell"));
        assert!(hint.contains("`run_shell`") && hint.contains(&port.to_string()), "{hint}");
        for name in ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"] {
            let (message, hint) = refusal(&mut rig, &format!("http://{name}:{port}/"));
            assert!(message.contains("local network") || message.contains("not public"), "{name}: {message}");
            assert!(
                hint.contains(&format!("`cell:{port}`")) && hint.contains("fetch_private_ranges"),
                "{name}: {hint}"
            );
        }
    }
    serve(&mut rig, "127.0.0.1", 3000);
    for url in [
        "http://cell/",
        "http://a.cell:3000/",
        "http://cell.local:3000/",
        "http://localhost.localdomain:3000/",
        "http://x.localhost:3000/",
        "http://127.0.0.2:3000/",
        "http://127.1.0.1:3000/",
        "http://[::ffff:127.0.0.1]:3000/",
        "http://user@cell:3000/",
        "http://cell:0/",
        "https://cell:3000/",
        "ftp://cell:3000/",
        "http://cell:53/",
        "http://ce\u{200b}ll:3001/",
        "http://cell%00:3000/",
        "http://cell:99999/",
    ] {
        refusal(&mut rig, url);
    }
    // The way out of the cell is this host's own, and no page.
    let (message, _) = refusal(&mut rig, "http://cell:3128/");
    assert!(message.contains("this host's own"), "{message}");
}

/// The hint for a server outside, obeyed.
#[test]
fn an_address_that_settings_open_is_this_machines() {
    let mut rig = Rig::with(Via::Pane, &["tools.fetch_private_ranges=[\"127.0.0.1\"]"]);
    let port = outside("");
    serve(&mut rig, "127.0.0.1", port);
    assert_eq!(said(&mut rig, &format!("http://127.0.0.1:{port}/")), "outside");
    assert_eq!(said(&mut rig, &format!("http://cell:{port}/")), format!("host localhost:{port}"));
    // The name was not opened, and means the cell.
    assert_eq!(said(&mut rig, &format!("http://localhost:{port}/")), format!("host localhost:{port}"));
    let ports = format!("tools.fetch_ports=[{port}]");
    let mut rig = Rig::with(Via::Pane, &["tools.fetch_allowed_domains=[\"localhost\"]", &ports]);
    serve(&mut rig, "127.0.0.1", port);
    assert_eq!(said(&mut rig, &format!("http://localhost:{port}/")), "outside");
    let (message, hint) = refusal(&mut rig, &format!("http://cell:{port}/"));
    assert!(
        message.contains("`cell` is not in `tools.fetch_allowed_domains`") && hint.contains("\"cell\""),
        "{message} {hint}"
    );
    let mut rig = Rig::with(Via::Pane, &["tools.fetch_allowed_domains=[\"localhost\", \"cell\"]"]);
    serve(&mut rig, "127.0.0.1", port);
    assert_eq!(said(&mut rig, &format!("http://cell:{port}/")), format!("host localhost:{port}"));
}

#[test]
fn a_server_elsewhere_does_not_lead_into_the_cell() {
    let mut rig = Rig::with(Via::Pane, &["tools.fetch_private_ranges=[\"127.0.0.1\"]"]);
    serve(&mut rig, "127.0.0.1", 3000);
    for (location, expected) in
        [("http://cell:3000/", "leads to `cell:3000`"), ("http://localhost:3000/", "local network")]
    {
        let port = outside(location);
        let (message, _) = refusal(&mut rig, &format!("http://127.0.0.1:{port}/"));
        assert!(message.contains(expected), "{location}: {message}");
    }
    // The other way round it is a redirect like others.
    let port = outside("");
    assert_eq!(said(&mut rig, &format!("http://cell:3000/?http://127.0.0.1:{port}/")), "outside");
    let (message, _) = refusal(&mut rig, "http://cell:3000/?http://127.0.0.2:3000/");
    assert!(message.contains("redirects"), "{message}");
}

#[test]
fn lists_and_rules_of_hosts_hold_for_the_cell() {
    for (setting, hint) in [
        ("tools.fetch_blocked_domains=[\"cell\"]", ""),
        ("plugin.fetch_url.http.hosts=[\"example.com\"]", "\"cell\""),
        ("plugin.fetch_url.http.methods=[\"POST\"]", "http.methods"),
        ("tools.fetch_plain_http=false", "fetch_plain_http"),
        ("tools.fetch_enabled=false", ""),
    ] {
        let mut rig = Rig::with(Via::Pane, &[setting]);
        serve(&mut rig, "127.0.0.1", 3000);
        for name in ["cell", "localhost"] {
            let (_, said) = refusal(&mut rig, &format!("http://{name}:3000/"));
            assert!(said.contains(hint) || name == "localhost", "{setting} {name}: {said}");
        }
    }
    let rig = Rig::new(Via::Pane);
    rig.program.write("config/toolcrib/toolcrib.toml", "[[deny]]\nhost = \"cell:3000\"\n");
    let mut rig = Rig::of(rig.program, &[]);
    serve(&mut rig, "127.0.0.1", 3000);
    serve(&mut rig, "127.0.0.1", 3001);
    assert!(refusal(&mut rig, "http://localhost:3000/").0.contains("rule"), "a rule denies it");
    assert_eq!(said(&mut rig, "http://localhost:3001/"), "host localhost:3001");
}

/// Another workspace has a cell of its own; and with the machine's network there is none.
#[test]
fn a_cell_is_that_of_the_session() {
    let (mut one, mut other) = (Rig::new(Via::Pane), Rig::new(Via::Pane));
    serve(&mut one, "127.0.0.1", 3000);
    assert_eq!(other.run("true").0, 0);
    for name in ["cell", "localhost"] {
        refusal(&mut other, &format!("http://{name}:3000/"));
    }
    let mut none = Rig::with(Via::Pane, &["confine.network=none"]);
    serve(&mut none, "127.0.0.1", 3000);
    assert_eq!(said(&mut none, "http://cell:3000/"), "host localhost:3000");
    let mut full = Rig::with(Via::Pane, &["confine.network=full"]);
    assert_eq!(full.run("true").0, 0);
    let port = outside("");
    let (message, hint) = refusal(&mut full, &format!("http://cell:{port}/"));
    assert!(message.contains("no network of their own") && hint.contains("toolcrib doctor"), "{message} {hint}");
    refusal(&mut full, &format!("http://localhost:{port}/"));
}

/// The port goes with what listened there.
#[test]
fn a_port_goes_with_its_server() {
    let mut rig = Rig::new(Via::Pane);
    serve(&mut rig, "127.0.0.1", 3000);
    assert_eq!(said(&mut rig, "http://cell:3000/"), "host localhost:3000");
    assert_eq!(rig.run("kill %1; wait %1 2>/dev/null; true").0, 0);
    let (message, _) = refusal(&mut rig, "http://cell:3000/");
    assert!(message.contains("nothing listens"), "{message}");
}

/// A port of this machine that nobody has.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port()
}

/// What a person's own program gets at a port of this machine.
fn got(port: u16) -> std::io::Result<String> {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = stream(address)?;
    write!(stream, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

#[expect(clippy::disallowed_methods, reason = "a test plays the person's own browser")]
fn stream(address: std::net::SocketAddr) -> std::io::Result<std::net::TcpStream> {
    std::net::TcpStream::connect(address)
}

/// `publish` under [confine]: what the person's own programs reach, as long as the host lives.
#[test]
fn a_port_that_settings_publish_is_there_for_the_person() {
    let (port, taken) = (free(), outside(""));
    let mut rig = Rig::with(Via::Pane, &[&format!("confine.publish=[{port}, {taken}]")]);
    assert!(got(port).is_err(), "no command has run");
    let told = |rig: &mut Rig| rig.client.call("run_shell", command("true"))["notices"].to_string();
    let notices = told(&mut rig);
    assert!(notices.contains(&format!("port {taken} of `publish` under [confine] is not published")), "{notices}");
    // Nothing listens there yet.
    assert_eq!(got(port).unwrap_or_default(), "");
    serve(&mut rig, "127.0.0.1", port);
    assert!(got(port).is_ok_and(|said| said.ends_with("host localhost")), "{:?}", got(port));
    // Told once.
    assert!(!told(&mut rig).contains("not published"));
    assert!(got(taken).is_ok_and(|said| said.ends_with("outside")));
    drop(rig);
    assert!(got(port).is_err(), "the host has ended");
    // A project cannot publish.
    let rig = Rig::new(Via::Pane);
    rig.program.write("work/toolcrib.toml", format!("[confine]\npublish = [{port}]\n"));
    let mut rig = Rig::of(rig.program, &[]);
    serve(&mut rig, "127.0.0.1", port);
    assert!(got(port).is_err(), "a project publishes nothing");
}

/// `toolcrib panes ports`.
#[test]
fn a_person_lists_ports_and_publishes_one() {
    let mut rig = Rig::new(Via::Pane);
    let (port, at) = (free(), free());
    let ports = |rig: &Rig, arguments: &[&str]| rig.program.run(&[&["panes", "ports"], arguments].concat());
    let said =
        |output: std::process::Output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(rig.run("true").0, 0);
    assert_eq!(said(ports(&rig, &["--json"])).trim(), "[]");
    let nothing = said(ports(&rig, &["publish", "3000"]));
    assert!(nothing.contains("nothing listens on port 3000 in a pane of this workspace"), "{nothing}");
    serve(&mut rig, "127.0.0.1", port);
    let listed: Value = serde_json::from_slice(&ports(&rig, &["--json"]).stdout).expect("a list");
    assert_eq!(listed, json!([{ "port": port, "panes": ["shared"], "url": null }]));
    let table = said(ports(&rig, &[]));
    assert!(table.contains(&format!("`toolcrib panes ports publish {port}`")), "{table}");
    let other = said(ports(&rig, &["publish", "1"]));
    assert!(other.contains(&format!("servers in panes listen on {port}")), "{other}");
    let taken = said(ports(&rig, &["publish", &port.to_string(), "--at", &outside("").to_string()]));
    assert!(taken.contains("cannot be used") && taken.contains("--at OTHER"), "{taken}");

    let publish = ["panes", "ports", "publish", &port.to_string(), "--at", &at.to_string()];
    let mut published = rig.program.start(&publish);
    eventually("it says so", || published.said().contains(&format!("http://127.0.0.1:{at} leads to port {port}")));
    assert!(got(at).is_ok_and(|said| said.ends_with("host localhost")), "{:?}", got(at));
    // It ends with the pane.
    let _ = rig.program.tmux(&["kill-server"]);
    assert!(published.ended(Duration::from_secs(20)).is_some_and(|status| status.success()), "{}", published.said());
    assert!(published.said().contains("the pane of the cell has ended"), "{}", published.said());
    assert!(got(at).is_err());
}

/// Not even where settings open this machine's loopback to commands.
#[test]
fn no_cell_reaches_a_listener_of_a_toolcrib_program() {
    let (published, others) = (free(), outside(""));
    let ports = format!("confine.ports=[80, {published}, {others}]");
    let publish = format!("confine.publish=[{published}]");
    let mut host = Rig::with(Via::Pane, &[&publish]);
    serve(&mut host, "127.0.0.1", published);
    assert!(got(published).is_ok_and(|said| said.ends_with("host localhost")));
    let mut rig = Rig::with(Via::Process, &[&ports, "confine.hosts=[\"127.0.0.1\"]"]);
    let mut fetch = |port: u16| rig.result(&format!("curl -s --noproxy '' --max-time 9 http://127.0.0.1:{port}/"));
    assert_eq!(fetch(others)["stdout"], "outside");
    let refused = fetch(published);
    assert!(!refused["stdout"].as_str().is_some_and(|said| said.contains("host ")), "{refused}");
    assert!(refused["notices"].to_string().contains("a Toolcrib program listens"), "{refused}");
}
