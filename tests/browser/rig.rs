//! A host with a browser, and the sites that it visits, on this machine.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolcrib::envelope::{Failure, Output};
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::{TestHost, note_skip};

/// The browsers of Debian, the better one first.
const PROGRAMS: [&str; 2] = ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium"];

/// Runs a test with each browser.
pub(crate) async fn each(name: &str, test: impl AsyncFn(Rig)) {
    for program in PROGRAMS {
        if !Path::new(program).exists() {
            note_skip(&format!("browser::{name}"), &format!("{program} is missing"));
            continue;
        }
        println!("{program}");
        test(Rig::of(program)).await;
    }
}

/// A host whose tools have a browser.
pub(crate) struct Rig {
    pub(crate) host: TestHost,
}

impl Rig {
    fn of(program: &'static str) -> Self {
        let host = TestHost::new()
            .set(&format!("tools.browser_program={program}"))
            .set("tools.fetch_private_ranges=[\"127.0.0.1\"]");
        Self { host }
    }

    pub(crate) fn set(self, setting: &str) -> Self {
        Self { host: self.host.set(setting) }
    }

    /// What a call comes to, with what it says beside.
    pub(crate) async fn output(&self, tool: &str, arguments: Value) -> Result<Output, Failure> {
        self.host.call(tool, arguments).await.outcome
    }

    pub(crate) async fn go(&self, url: &str) -> Output {
        self.output("browser_navigate", json!({ "url": url }))
            .await
            .unwrap_or_else(|failure| panic!("{url}: {failure:?}"))
    }

    pub(crate) async fn refused(&self, url: &str) -> Failure {
        match self.output("browser_navigate", json!({ "url": url })).await {
            Ok(output) => panic!("{url}: {output:?}"),
            Err(failure) => failure,
        }
    }

    /// The lines of the active tab.
    pub(crate) async fn page(&self) -> String {
        let output = self.output("browser_snapshot", json!({})).await.unwrap_or_else(|failure| panic!("{failure:?}"));
        output.result["page"].as_str().expect("a page").to_owned()
    }

    /// The id on the line of the page that begins so.
    pub(crate) async fn id(&self, line: &str) -> String {
        let page = self.page().await;
        let found = page.lines().find(|found| found.trim().trim_start_matches("- ").starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line:?} in:\n{page}"));
        id_in(found).unwrap_or_else(|| panic!("no id in {found:?}"))
    }

    pub(crate) async fn click(&self, element: &str) -> Result<Output, Failure> {
        self.output("browser_click", json!({ "element": element })).await
    }

    pub(crate) async fn fill(&self, element: &str, text: &str) -> Result<Output, Failure> {
        self.output("browser_type", json!({ "element": element, "text": text })).await
    }
}

/// The id of a line.
pub(crate) fn id_in(line: &str) -> Option<String> {
    let (_, rest) = line.rsplit_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// An answer of a site.
#[derive(Clone, Default)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// How long it takes to answer.
    pub(crate) delay: Duration,
}

pub(crate) fn html(body: &str) -> Page {
    Page { body: format!("<!doctype html><meta charset=utf-8>{body}"), ..Page::default() }
}

pub(crate) fn redirect(to: &str) -> Page {
    Page { status: 302, headers: vec![("location", to.into())], ..Page::default() }
}

/// A site, and the requests that it got.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Answers by path; what is not among these is missing.
    pub(crate) fn new(pages: &[(&str, Page)]) -> Self {
        Self::at("127.0.0.1:0", pages)
    }

    pub(crate) fn at(address: &str, pages: &[(&str, Page)]) -> Self {
        Self::over(TcpListener::bind(address).expect("a port"), None, pages)
    }

    /// The same over TLS, for a name.
    pub(crate) fn encrypted(listener: TcpListener, name: &str, authority: &Authority, pages: &[(&str, Page)]) -> Self {
        Self::over(listener, Some(authority.server(name)), pages)
    }

    fn over(listener: TcpListener, tls: Option<Arc<ServerConfig>>, pages: &[(&str, Page)]) -> Self {
        let pages: HashMap<String, Page> =
            pages.iter().map(|(path, page)| ((*path).to_owned(), page.clone())).collect();
        let address = listener.local_addr().expect("an address");
        let (pages, asked) = (Arc::new(pages), Arc::new(Mutex::new(Vec::new())));
        let site = Self { address, asked: asked.clone() };
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (pages, asked, tls) = (pages.clone(), asked.clone(), tls.clone());
                std::thread::spawn(move || {
                    let _ = connection.set_nodelay(true);
                    match tls {
                        None => answer(connection, &pages, &asked),
                        Some(tls) => {
                            let greeted = ServerConnection::new(tls).expect("a configuration that can be used");
                            answer(StreamOwned::new(greeted, connection), &pages, &asked)
                        }
                    }
                });
            }
        });
        site
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths that were asked for, with their queries.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics while it holds the requests").clone()
    }
}

fn answer(
    connection: impl Read + Write,
    pages: &HashMap<String, Page>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().unwrap_or(0);
            }
            head += &line;
        }
        let mut body = String::new();
        (&mut reader).take(length).read_to_string(&mut body)?;
        let whole = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let noted = if body.is_empty() { whole.clone() } else { format!("{whole} {body}") };
        asked.lock().expect("no test panics while it holds the requests").push(noted);
        let path = whole.split('?').next().unwrap_or_default();
        let missing = Page { status: 404, body: "none".into(), ..Page::default() };
        let page = pages.get(path).unwrap_or(&missing);
        std::thread::sleep(page.delay);
        let status = if page.status == 0 { 200 } else { page.status };
        let mut text = format!("HTTP/1.1 {status} OK\r\ncontent-length: {}\r\n", page.body.len());
        if !page.headers.iter().any(|(name, _)| *name == "content-type") {
            text += "content-type: text/html; charset=utf-8\r\n";
        }
        page.headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        let writer = reader.get_mut();
        writer.write_all((text + "\r\n" + &page.body).as_bytes())?;
        writer.flush()?;
    }
}
