//! An errand of an agent that knows only the protocol: it logs in to a shop with a secret that it never sees, reads a table of orders, and finds the
//! mail that confirms one of them.

use crate::rig::Home;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use toolcrib_tests::browser::{Page, Site, html, id_in};
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{Dovecot, Letter, PASSWORD, SERVER, USER};
use toolcrib_tests::mcp::{Client, ERAS, envelope};
use toolcrib_tests::{names, skip};

const SHOP: &str = "shop.example.com";
/// What neither the agent nor any record gets to see, besides the password of the mail.
const SHOP_PASSWORD: &str = "tr0ub4dor-and-three-more";
const COOKIE: &str = "session=b8a3";

#[test]
fn an_agent_logs_in_reads_a_table_and_finds_the_mail_that_confirms_it() {
    if !Dovecot::is_there() {
        skip!("dovecot is not installed");
    }
    if !std::path::Path::new("/usr/bin/chromium-headless-shell").exists() {
        skip!("chromium-headless-shell is not installed");
    }
    for era in ERAS {
        let authority = Authority::new();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let site = Site::encrypted(listener, SHOP, &authority, &shop());
        let mail = Dovecot::with(&authority, &letters());
        let home = home(&authority, port, mail.port);
        let mut errand = Errand { agent: home.serve(era), heard: String::new() };

        let url = format!("https://{SHOP}:{port}/");
        let there = errand.does("browser_navigate", json!({ "url": url }));
        assert_eq!(there["title"], "Sign in", "{there}");
        // Nobody sees the orders without having logged in.
        let before = errand.does("browser_navigate", json!({ "url": format!("{url}orders") }));
        assert_ne!(before["title"], "Orders", "{before}");
        errand.does("browser_navigate", json!({ "url": url }));
        let name = errand.id("textbox \"Name\"");
        errand.does("browser_type", json!({ "element": name, "text": "zoe" }));
        let password = errand.id("textbox \"Password\"");
        let inside = errand.does("browser_type", json!({ "element": password, "secret": "SHOP", "submit": true }));
        assert_eq!(inside["title"], "Welcome", "{inside}");

        let orders = errand.id("link \"Orders\"");
        errand.does("browser_click", json!({ "element": orders }));
        let page = errand.does("browser_snapshot", json!({}));
        let page = page["page"].as_str().expect("a page");
        // A line for each cell: the number is the one before the article.
        let lines: Vec<&str> = page.lines().collect();
        let place = lines.iter().position(|line| line.contains("standing desk"));
        let place = place.unwrap_or_else(|| panic!("no such order in:\n{page}"));
        let number =
            lines[place - 1].split(|c: char| !c.is_ascii_digit()).find(|word| word.len() == 5).expect("its number");

        let found = errand.does("email_search", json!({ "query": format!("order {number}"), "from": SHOP }));
        let hits = found["hits"].as_array().expect("hits");
        assert_eq!(hits.len(), 1, "{found}");
        let read = errand.does("email_read", json!({ "id": hits[0]["id"] }));
        assert!(read["text"].as_str().is_some_and(|text| text.contains("419.00")), "{read}");

        // The shop got what it had to, and nobody else did.
        let sent = site.asked().into_iter().find(|asked| asked.starts_with("/in")).expect("a form");
        assert!(sent.contains(SHOP_PASSWORD), "{sent}");
        let status = errand.agent.end(Duration::from_secs(20)).expect("it ends with its input");
        assert!(status.success(), "{status}: {}", errand.agent.said());
        let audit = std::fs::read_to_string(home.program.path("state/toolcrib/audit.jsonl")).expect("a record");
        assert!(audit.contains("fill textbox") && audit.contains("with the secret SHOP"), "{audit}");
        let said = errand.agent.said();
        for (what, text) in [("the agent", &errand.heard), ("the record", &audit), ("standard error", &said)] {
            for secret in [SHOP_PASSWORD, PASSWORD] {
                assert!(!text.contains(secret), "{what} has {secret}: {text}");
            }
        }
    }
}

struct Errand {
    agent: Client,
    /// All that the agent got to see.
    heard: String,
}

impl Errand {
    fn does(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.agent.call(tool, arguments);
        self.heard += &answer.to_string();
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        envelope(&answer)["result"].clone()
    }

    /// The id on the line of the page that has this.
    fn id(&mut self, what: &str) -> String {
        let page = self.does("browser_snapshot", json!({ "find": what }));
        let page = page["page"].as_str().expect("a page");
        let line = page.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("no {what} in:\n{page}"));
        id_in(line).expect("an id")
    }
}

fn home(authority: &Authority, shop: u16, imap: u16) -> Home {
    let dns = names(&[(SHOP, [127, 0, 0, 1]), (SERVER, [127, 0, 0, 1])]);
    let home = Home::new();
    let file = |name: &str, content: &str| {
        home.program.write(name, content);
        let path = home.program.path(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        path.display().to_string()
    };
    let (ca, own, mail) = (file("ca.pem", &authority.pem()), file("shop", SHOP_PASSWORD), file("mail", PASSWORD));
    [
        "tools.offer=[\"browser\", \"mail\"]".to_owned(),
        "tools.fetch_private_ranges=[\"127.0.0.1\"]".to_owned(),
        format!("tools.fetch_ports=[443, {shop}]"),
        format!("network.ca_file={ca:?}"),
        format!("network.dns_servers=[\"{dns}\"]"),
        format!("secret.SHOP.file={own:?}"),
        format!("secret.SHOP.hosts=[{SHOP:?}]"),
        "plugin.browser.browser.secrets=[\"SHOP\"]".to_owned(),
        format!("secret.MAIL.file={mail:?}"),
        format!("secret.MAIL.hosts=[{SERVER:?}]"),
        format!("mail.work.host={SERVER:?}"),
        format!("mail.work.port={imap}"),
        format!("mail.work.user={USER:?}"),
        "mail.work.secret=\"MAIL\"".to_owned(),
    ]
    .iter()
    .fold(home.clone(), |home, setting| home.set(setting))
}

/// A shop that shows orders to whoever has logged in.
fn shop() -> [(&'static str, Page); 3] {
    let form = "<title>Sign in</title><form method=post action=/in><label>Name <input name=name></label>\
        <label>Password <input type=password name=password></label><button>Sign in</button></form>";
    let welcome = Page {
        headers: vec![("set-cookie", format!("{COOKIE}; HttpOnly; Secure"))],
        ..html("<title>Welcome</title><a href=/orders>Orders</a>")
    };
    let orders = "<title>Orders</title><table><tr><th>Number<th>Article<th>Sum</tr><tr><td>10230<td>desk lamp<td>39.00</tr>\
        <tr><td>10231<td>standing desk<td>419.00</tr></table>";
    [("/", html(form)), ("/in", welcome), ("/orders", Page { needs: Some(COOKIE), ..html(orders) })]
}

fn letters() -> Vec<Letter> {
    let confirms = |number: u32, sum: &str| {
        let raw = format!(
            "From: The shop <orders@{SHOP}>\r\nTo: ann@example.com\r\nSubject: Your order {number}\r\n\r\nThank you. Order {number}, {sum}, is on its way."
        );
        Letter::of_bytes(raw.as_bytes())
    };
    vec![
        confirms(10230, "39.00"),
        confirms(10231, "419.00"),
        Letter::new("about order 10231", "", "is it the one with the drawers?"),
    ]
}
