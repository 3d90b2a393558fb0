//! A host with a browser, and the sites that it visits, on this machine.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolcrib::envelope::{Failure, Output};
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

/// Whom the browser trusts that is given its certificate.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// As `network.ca_file` takes it.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    fn server(&self, name: &str) -> Arc<ServerConfig> {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).expect("a certificate that can be used"))
    }
}

/// A server of names, which has these addresses for them, as `network.dns_servers` names it.
#[expect(clippy::disallowed_methods, reason = "a server of the test's own")]
pub(crate) fn names(all: &'static [(&'static str, [u8; 4])]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let query = &query[..length];
            let end = query[12..].iter().position(|byte| *byte == 0).expect("a name") + 13;
            let (mut name, mut place) = (Vec::new(), 12);
            while query[place] > 0 {
                let label = &query[place + 1..=place + usize::from(query[place])];
                name.push(String::from_utf8_lossy(label).to_lowercase());
                place += label.len() + 1;
            }
            let is_address = query[end..end + 2] == [0, 1];
            let found = all.iter().find(|(known, _)| *known == name.join("."));
            let found = found.filter(|_| is_address).map(|(_, address)| *address);
            // What it was asked, and one answer to that, by a pointer to the name (RFC 1035, 4.1).
            let mut answer = query[..end + 4].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
            if let Some(address) = found {
                answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                answer.extend(address);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    address
}
