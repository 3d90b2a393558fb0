//! Pages of servers in the session's own cell: an agent looks at what it builds there, and no page of another site reaches it.

use crate::rig::{Page, Site, html, programs, redirect};
use serde_json::json;
use std::path::Path;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::{Client, Program};

/// A host whose commands run in a cell, with a browser and a development server in its own cell.
struct Rig {
    client: Client,
    program: Program,
}

impl Rig {
    fn new(browser: &str) -> Self {
        let program = Program::below(Path::new("/var/tmp")).in_panes(true);
        let browser = format!("tools.browser_program={browser}");
        // Sites that are not the session's are at another address of this machine.
        let sites = "tools.fetch_private_ranges=[\"127.0.0.2\"]";
        let set = ["confine.mode=required", &browser, sites].map(|setting| ["--set", setting]);
        let arguments = [&["--yes", "--offer", "browser"], set.as_flattened(), &["run"]].concat();
        program.write("work/dev.py", include_str!("dev.py"));
        Self { client: program.client(&arguments), program }
    }

    /// Starts the server, and returns when it listens.
    fn serve(&mut self, port: u16) {
        let text = format!(
            "python3 dev.py {port} & until curl -s -o /dev/null 'http://localhost:{port}/'; do :; done; : >log"
        );
        assert_eq!(self.client.run(&text).0, 0);
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.program.path("work/log")).expect("the log")
    }

    fn page(&mut self) -> String {
        self.client.result("browser_snapshot", json!({}))["page"].as_str().expect("a page").to_owned()
    }

    fn go(&mut self, url: &str) -> String {
        self.client.result("browser_navigate", json!({ "url": url }));
        self.page()
    }

    fn refused(&mut self, url: &str) -> String {
        let answer = self.client.call("browser_navigate", json!({ "url": url }));
        format!("{} {}", answer["error"]["message"], answer["error"]["hint"])
    }
}

/// The loop of work on a page: start the server, look at it by both tools, edit, see the change, stop it.
#[test]
fn a_page_that_is_built_in_the_cell_is_looked_at() {
    for browser in programs("cell::loop") {
        let mut rig = Rig::new(browser);
        let script = "<title>One</title><p id=out>nothing</p><script>\
            const out = document.getElementById('out'), other = location.port == 3000 ? 3001 : 3000;\
            const socket = new WebSocket(`ws://${location.host}/socket`);\
            socket.onmessage = async said => out.textContent = said.data\
              + ' ' + await (await fetch('/api')).text()\
              + ' ' + await (await fetch(`http://127.0.0.1:${other}/api`, { headers: { 'x-more': '1' } })).text()\
              + ' ' + window.isSecureContext;</script>";
        rig.program.write("work/index.html", script);
        rig.serve(3000);
        rig.serve(3001);
        let fetched = rig.client.result("fetch_url", json!({ "url": "http://localhost:3000/" }));
        assert!(fetched["text"].as_str().is_some_and(|text| text.contains("<title>One")), "{fetched}");
        for url in ["http://localhost:3000/", "http://cell:3000/", "http://127.0.0.1:3001/index.html"] {
            rig.go(url);
            let wait = json!({ "text": "hello data data true", "timeout": "10s" });
            let page = rig.client.call("browser_wait", wait);
            assert!(page["error"].is_null(), "{url}: {page} {}\n{}", rig.page(), rig.log());
        }
        rig.client.result("browser_navigate", json!({ "to": "back" }));
        // The edit, and a look at what it changes.
        let edit = json!({ "path": "index.html", "old_string": "One", "new_string": "Two" });
        rig.client.result("file_edit", edit);
        let went = rig.client.result("browser_navigate", json!({ "url": "http://localhost:3000/" }));
        assert_eq!(went["title"], "Two", "{went}");
        assert_eq!(rig.client.run("kill %1 %2; wait %1 %2 2>/dev/null; true").0, 0);
        let refused = rig.refused("http://localhost:3000/");
        assert!(refused.contains("nothing listens at `cell:3000`"), "{refused}");
        let trail = std::fs::read_to_string(rig.program.path("state/toolcrib/audit.jsonl")).expect("the trail");
        assert!(trail.contains("connect to cell:3000"), "{trail}");
    }
}

/// A page of another site that asks the cell by all means that pages have: nothing of it comes there.
#[test]
fn a_page_of_another_site_reaches_nothing_in_the_cell() {
    for browser in programs("cell::others") {
        let mut rig = Rig::new(browser);
        rig.program.write("work/index.html", "<title>Mine</title>");
        rig.serve(3000);
        let attack = "<title>begun</title><p id=out>begun</p><a id=a href='@/link'>go</a><iframe src='@/frame'></iframe><img src='@/image'>\
            <link rel=stylesheet href='@/style'><form method=post target=_blank action='@/form'><button>send</button></form>\
            <iframe src='/redirect'></iframe><img src='/redirect'><iframe sandbox=allow-scripts src='@/sandbox'></iframe>\
            <script src='@/script'></script><script>\
            const ends = [fetch('@/api').catch(() => 0), fetch('@/opaque', { mode: 'no-cors', referrerPolicy: 'no-referrer' }).catch(() => 0),\
              fetch('@/post', { method: 'POST', mode: 'no-cors', body: 'x' }).catch(() => 0),\
              fetch('/redirect').catch(() => 0),\
              new Promise(end => { const s = new WebSocket('@/socket'.replace('http', 'ws')); s.onopen = s.onerror = end; }),\
              new Promise(end => { const s = new EventSource('@/events'); s.onerror = () => { s.close(); end() } })];\
            navigator.sendBeacon('@/beacon', 'x');\
            Promise.all(ends).then(() => document.getElementById('out').textContent = 'all ended');</script>";
        for to in [
            "http://localhost:3000",
            "http://127.0.0.1:3000",
            "http://cell:3000",
            "http://[::1]:3000",
            "http://0.0.0.0:3000",
        ] {
            let pages: [(&str, Page); 3] = [
                ("/", html(&attack.replace('@', to))),
                ("/redirect", redirect(&format!("{to}/redirected"))),
                ("/moved", redirect(&format!("{to}/moved"))),
            ];
            let site = Site::at("127.0.0.2:0", &pages);
            rig.go(&site.url("/"));
            let ended = rig.client.call("browser_wait", json!({ "text": "all ended", "timeout": "20s" }));
            assert!(ended["error"].is_null(), "{to}: {ended}");
            for element in ["link \"go\"", "button \"send\""] {
                let page = rig.go(&site.url("/"));
                let line = page.lines().find(|line| line.contains(element)).unwrap_or_else(|| panic!("{page}"));
                let id = line.split(['[', ']']).nth(1).expect("an id").to_owned();
                rig.client.call("browser_click", json!({ "element": id }));
            }
            let refused = rig.refused(&site.url("/moved"));
            assert!(refused.contains("cell") || refused.contains("not public"), "{to}: {refused}");
        }
        // The browser itself looks for an icon of the page that says no.
        let log = rig.log();
        let came: Vec<_> = log.lines().filter(|line| !line.starts_with("GET /favicon.ico ")).collect();
        assert_eq!(came, [""; 0], "requests came");
        // What the person's own agent asks for still comes.
        assert!(
            rig.go("http://localhost:3000/").contains("Mine") || rig.log().contains("GET / localhost:3000 none"),
            "{}",
            rig.log()
        );
    }
}

/// What the user denies by a rule, a page does not reach either.
#[test]
fn a_rule_denies_a_host_to_pages() {
    for browser in programs("cell::rule") {
        let mut rig = Rig::new(browser);
        let site = Site::at("127.0.0.2:0", &[("/", html("<title>Site</title>"))]);
        succeeded(&rig.program.run(&["policy", "rules", "add", "deny", "--host", "127.0.0.2"]));
        let told = rig.refused(&site.url("/"));
        assert!(told.contains("denied by a rule of yours") && site.asked().is_empty(), "{told}");
        succeeded(&rig.program.run(&["policy", "rules", "remove", "1"]));
        rig.go(&site.url("/"));
        assert!(!site.asked().is_empty());
    }
}
