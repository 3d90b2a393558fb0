//! A host with a browser, and the sites that it visits, on this machine.

use crate::certificate::Authority;
use crate::names::names_by;
use crate::processes::pids;
use crate::{Client, Program, TestHost, note_skip};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use toolcrib::envelope::{Failure, Output};

/// The browsers of Debian, the better one first.
const PROGRAMS: [&str; 2] = ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium"];
/// How long what a page has begun may take to be seen.
const SEEN: Duration = Duration::from_secs(20);

/// The browsers that a test runs with. Those that are missing are counted as skipped.
pub fn programs(test: &str) -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().filter(move |program| {
        let is_there = Path::new(program).exists();
        if is_there {
            println!("{program}");
        } else {
            note_skip(&format!("browser::{test}"), &format!("{program} is missing"));
        }
        is_there
    })
}

/// Runs a test with each browser.
pub async fn each(name: &str, test: impl AsyncFn(Rig)) {
    for program in programs(name) {
        test(Rig::of(program)).await;
    }
}

/// A host whose tools have a browser.
pub struct Rig {
    /// The host.
    pub host: TestHost,
}

impl Rig {
    fn of(program: &'static str) -> Self {
        let host = TestHost::new()
            .set(&format!("tools.browser_program={program}"))
            .set("tools.fetch_private_ranges=[\"127.0.0.1\"]");
        Self { host }
    }

    /// Adds a setting.
    #[must_use]
    pub fn set(self, setting: &str) -> Self {
        Self { host: self.host.set(setting) }
    }

    /// What a call comes to, with what it says beside.
    ///
    /// # Errors
    ///
    /// The call's failure.
    pub async fn output(&self, tool: &str, arguments: Value) -> Result<Output, Failure> {
        self.host.call(tool, arguments).await.outcome
    }

    /// Goes to a page.
    pub async fn go(&self, url: &str) -> Output {
        self.output("browser_navigate", json!({ "url": url }))
            .await
            .unwrap_or_else(|failure| panic!("{url}: {failure:?}"))
    }

    /// Tries to go to a page, which must fail.
    pub async fn refused(&self, url: &str) -> Failure {
        match self.output("browser_navigate", json!({ "url": url })).await {
            Ok(output) => panic!("{url}: {output:?}"),
            Err(failure) => failure,
        }
    }

    /// The lines of the active tab.
    pub async fn page(&self) -> String {
        let output = self.output("browser_snapshot", json!({})).await.unwrap_or_else(|failure| panic!("{failure:?}"));
        output.result["page"].as_str().expect("a page").to_owned()
    }

    /// The title of the first tab.
    pub async fn title(&self) -> String {
        let tabs = self.output("browser_tab_list", json!({})).await.expect("tabs");
        tabs.result["tabs"][0]["title"].as_str().unwrap_or_default().to_owned()
    }

    /// The title of the first tab, once it is so.
    pub async fn titled(&self, is_so: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let title = self.title().await;
            if is_so(&title) {
                return title;
            }
            assert!(begin.elapsed() < SEEN, "the title is {title:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The notice that has this text, among these or those of later looks, which are added to these.
    pub async fn told(&self, notices: &mut Vec<String>, text: &str) -> String {
        let begin = Instant::now();
        loop {
            if let Some(told) = notices.iter().find(|notice| notice.contains(text)) {
                return told.clone();
            }
            assert!(begin.elapsed() < SEEN, "nobody tells {text:?}: {notices:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
            notices.extend(self.output("browser_snapshot", json!({})).await.expect("a look").notices);
        }
    }

    /// The id on the line of the page that begins so.
    pub async fn id(&self, line: &str) -> String {
        let page = self.page().await;
        let found = page.lines().find(|found| found.trim().trim_start_matches("- ").starts_with(line));
        let found = found.unwrap_or_else(|| panic!("no {line:?} in:\n{page}"));
        id_in(found).unwrap_or_else(|| panic!("no id in {found:?}"))
    }

    /// Clicks an element.
    ///
    /// # Errors
    ///
    /// The call's failure.
    pub async fn click(&self, element: &str) -> Result<Output, Failure> {
        self.output("browser_click", json!({ "element": element })).await
    }

    /// Puts a text into a field.
    ///
    /// # Errors
    ///
    /// The call's failure.
    pub async fn fill(&self, element: &str, text: &str) -> Result<Output, Failure> {
        self.output("browser_type", json!({ "element": element, "text": text })).await
    }

    /// The sizes of the files that its browsers have loaded and the host has not taken.
    #[must_use]
    pub fn downloads(&self) -> Vec<u64> {
        let profiles =
            std::fs::read_dir(self.host.dirs().state.join("browser/passing")).into_iter().flatten().flatten();
        let files = profiles.filter_map(|profile| std::fs::read_dir(profile.path().join("downloads")).ok());
        files.flatten().flatten().filter_map(|file| Some(file.metadata().ok()?.len())).collect()
    }

    /// Puts a secret into the text field of this name.
    ///
    /// # Errors
    ///
    /// The call's failure.
    pub async fn fill_secret(&self, field: &str, secret: &str) -> Result<Output, Failure> {
        let element = self.id(&format!("textbox \"{field}\"")).await;
        self.output("browser_type", json!({ "element": element, "secret": secret })).await
    }
}

/// The client of the program itself, with this browser.
#[must_use]
pub fn client(program: &Program, browser: &str) -> Client {
    let browser = format!("tools.browser_program={browser}");
    let local = "tools.fetch_private_ranges=[\"127.0.0.1\"]";
    program.client(&["--offer", "browser", "--set", &browser, "--set", local, "run"])
}

/// The processes of browsers whose profiles are below this directory, each with its seccomp mode: those whose command lines name it, and all below
/// them.
///
/// # Panics
///
/// When there is no such directory.
#[must_use]
pub fn processes_of(state: &Path) -> Vec<(u32, String)> {
    let state = state.canonicalize().expect("a directory").display().to_string();
    let mut all: Vec<(u32, u32, String)> = Vec::new();
    for pid in pids() {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let of =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
        if !of("State:").starts_with('Z') {
            all.push((pid, of("PPid:").parse().unwrap_or(0), of("Seccomp:")));
        }
    }
    let mut ours: Vec<u32> =
        all.iter().map(|(pid, ..)| *pid).filter(|pid| command_line(*pid).contains(&state)).collect();
    loop {
        let below =
            all.iter().filter(|(pid, parent, _)| ours.contains(parent) && !ours.contains(pid)).map(|(pid, ..)| *pid);
        let below: Vec<u32> = below.collect();
        if below.is_empty() {
            break;
        }
        ours.extend(below);
    }
    all.into_iter().filter(|(pid, ..)| ours.contains(pid)).map(|(pid, _, mode)| (pid, mode)).collect()
}

/// The command line of a process.
#[must_use]
pub fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The id of a line.
#[must_use]
pub fn id_in(line: &str) -> Option<String> {
    let (_, rest) = line.rsplit_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// An answer of a site.
#[derive(Clone, Default)]
pub struct Page {
    /// Its status; 200 where none is said.
    pub status: u16,
    /// Its headers; its type is HTML where none is said.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: String,
    /// How long it takes to answer.
    pub delay: Duration,
    /// What the head of a request has to hold; whoever comes without gets status 403 and nothing.
    pub needs: Option<&'static str>,
    /// Its body comes again and again, without an end.
    pub is_endless: bool,
}

/// A page of HTML.
#[must_use]
pub fn html(body: &str) -> Page {
    Page { body: format!("<!doctype html><meta charset=utf-8>{body}"), ..Page::default() }
}

/// A redirect.
#[must_use]
pub fn redirect(to: &str) -> Page {
    Page { status: 302, headers: vec![("location", to.into())], ..Page::default() }
}

/// A script.
#[must_use]
pub fn script(body: &str) -> Page {
    Page { headers: vec![("content-type", "text/javascript".into())], body: body.into(), ..Page::default() }
}

/// A file, which browsers do not show.
#[must_use]
pub fn file(name: &str, body: String) -> Page {
    Page {
        headers: vec![
            ("content-disposition", format!("attachment; filename=\"{name}\"")),
            ("content-type", "application/octet-stream".into()),
        ],
        body,
        ..Page::default()
    }
}

/// A page whose buttons write down in its title that they were pressed.
pub const COUNTED: &str =
    "<title>none</title><script>const pressed = name => document.title = name + ' pressed'</script>";

/// A site, and what it got.
pub struct Site {
    /// Where it is.
    pub address: SocketAddr,
    got: Arc<Got>,
}

#[derive(Default)]
struct Got {
    asked: Mutex<Vec<String>>,
    connections: AtomicU64,
    sent: AtomicU64,
}

impl Site {
    /// Answers by path; what is not among these is missing.
    #[must_use]
    pub fn new(pages: &[(&str, Page)]) -> Self {
        Self::at("127.0.0.1:0", pages)
    }

    /// The same at an address.
    ///
    /// # Panics
    ///
    /// When somebody else is there.
    #[must_use]
    pub fn at(address: &str, pages: &[(&str, Page)]) -> Self {
        Self::on(TcpListener::bind(address).expect("a port"), pages)
    }

    /// The same on a port.
    #[must_use]
    pub fn on(listener: TcpListener, pages: &[(&str, Page)]) -> Self {
        Self::over(listener, None, pages)
    }

    /// The same over TLS, for a name.
    #[must_use]
    pub fn encrypted(listener: TcpListener, name: &str, authority: &Authority, pages: &[(&str, Page)]) -> Self {
        Self::over(listener, Some(authority.server(name)), pages)
    }

    fn over(listener: TcpListener, tls: Option<Arc<ServerConfig>>, pages: &[(&str, Page)]) -> Self {
        let pages: HashMap<String, Page> =
            pages.iter().map(|(path, page)| ((*path).to_owned(), page.clone())).collect();
        let address = listener.local_addr().expect("an address");
        let (pages, got) = (Arc::new(pages), Arc::new(Got::default()));
        let site = Self { address, got: got.clone() };
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                got.connections.fetch_add(1, Ordering::Relaxed);
                let (pages, got, tls) = (pages.clone(), got.clone(), tls.clone());
                std::thread::spawn(move || {
                    let _ = connection.set_nodelay(true);
                    match tls {
                        None => answer(connection, &pages, &got),
                        Some(tls) => {
                            let greeted = ServerConnection::new(tls).expect("a configuration that can be used");
                            answer(StreamOwned::new(greeted, connection), &pages, &got)
                        }
                    }
                });
            }
        });
        site
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths that were asked for, with their queries.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.got.asked.lock().expect("no test panics while it holds the requests").clone()
    }

    /// How often somebody connected, whatever was said then.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.got.connections.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.got.sent.load(Ordering::Relaxed)
    }
}

fn answer(connection: impl Read + Write, pages: &HashMap<String, Page>, got: &Got) -> std::io::Result<()> {
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
        got.asked.lock().expect("no test panics while it holds the requests").push(noted);
        let path = whole.split('?').next().unwrap_or_default();
        let missing = Page { status: 404, body: "none".into(), ..Page::default() };
        let closed = Page { status: 403, body: "none".into(), ..Page::default() };
        let page = pages.get(path).unwrap_or(&missing);
        let page = if page.needs.is_none_or(|needs| head.contains(needs)) { page } else { &closed };
        std::thread::sleep(page.delay);
        let status = if page.status == 0 { 200 } else { page.status };
        let mut text = format!("HTTP/1.1 {status} OK\r\n");
        if !page.is_endless {
            text += &format!("content-length: {}\r\n", page.body.len());
        }
        if !page.headers.iter().any(|(name, _)| *name == "content-type") {
            text += "content-type: text/html; charset=utf-8\r\n";
        }
        page.headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        let writer = reader.get_mut();
        writer.write_all((text + "\r\n").as_bytes())?;
        loop {
            writer.write_all(page.body.as_bytes())?;
            writer.flush()?;
            got.sent.fetch_add(page.body.len() as u64, Ordering::Relaxed);
            if !page.is_endless {
                break;
            }
        }
    }
}

/// Sites with names, which a browser finds by a name server of the test and trusts by an authority of the test.
pub struct Town {
    authority: Authority,
    listeners: HashMap<String, TcpListener>,
    addresses: Arc<Mutex<HashMap<String, [u8; 4]>>>,
    asked: Arc<Mutex<Vec<String>>>,
    names: SocketAddr,
}

impl Town {
    /// A port for each of these names, at its address.
    ///
    /// # Panics
    ///
    /// When an address is not this machine's.
    #[must_use]
    pub fn new(places: &[(&str, [u8; 4])]) -> Self {
        let addresses: HashMap<_, _> = places.iter().map(|(name, address)| ((*name).to_owned(), *address)).collect();
        let listener = |address: [u8; 4]| TcpListener::bind(SocketAddr::from((address, 0))).expect("a port");
        let listeners = addresses.iter().map(|(name, address)| (name.clone(), listener(*address))).collect();
        let addresses = Arc::new(Mutex::new(addresses));
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (known, noted) = (addresses.clone(), asked.clone());
        let names = names_by(move |name| {
            noted.lock().expect("no test panics while it holds the names").push(name.to_owned());
            known.lock().expect("no test panics while it holds the addresses").get(name).copied()
        });
        Self { authority: Authority::new(), listeners, addresses, asked, names }
    }

    /// The host and the port of a name.
    #[must_use]
    pub fn server(&self, name: &str) -> String {
        format!("{name}:{}", self.port(name))
    }

    /// The URL of a name's site over TLS.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("https://{}", self.server(name))
    }

    /// The port of a name.
    #[must_use]
    pub fn port(&self, name: &str) -> u16 {
        self.listeners[name].local_addr().expect("an address").port()
    }

    /// Opens the site of a name over TLS.
    #[must_use]
    pub fn open(&self, name: &str, pages: &[(&str, Page)]) -> Site {
        Site::encrypted(self.listener(name), name, &self.authority, pages)
    }

    /// Opens the site of a name without encryption.
    #[must_use]
    pub fn open_plain(&self, name: &str, pages: &[(&str, Page)]) -> Site {
        Site::on(self.listener(name), pages)
    }

    fn listener(&self, name: &str) -> TcpListener {
        self.listeners[name].try_clone().expect("a descriptor")
    }

    /// Gives a name another address.
    pub fn moves(&self, name: &str, address: [u8; 4]) {
        self.addresses.lock().expect("no test panics while it holds the addresses").insert(name.to_owned(), address);
    }

    /// The names that were asked for.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panics while it holds the names").clone()
    }

    /// Has a browser find its sites and trust them.
    #[must_use]
    pub fn around(&self, rig: Rig) -> Rig {
        let file = rig.host.home().join("ca.pem");
        std::fs::write(&file, self.authority.pem()).expect("a file");
        let ports: Vec<u16> = [80, 443].into_iter().chain(self.listeners.keys().map(|name| self.port(name))).collect();
        rig.set(&format!("network.ca_file={:?}", file.display().to_string()))
            .set(&format!("network.dns_servers=[\"{}\"]", self.names))
            .set(&format!("tools.fetch_ports={ports:?}"))
    }
}

/// The value of the secret of [`login`], which no result, event or record may have.
pub const VALUE: &str = "correct-horse-battery-staple";
/// A page with a form to log in.
pub const LOGIN: &str = "<title>Login</title><form action=/in method=post><label>Name <input name=n></label><label>Pass <input id=p name=p type=password></label>\
    <label>Hint <input name=h></label><button>Sign in</button></form><p id=out></p>";
/// The names of the sites of [`login`].
const OWN: &str = "shop.example.com";
const OTHER: &str = "other.example.com";

/// A host with the secret `SHOP`, the site that it may go to, and another one.
pub struct Login {
    /// The host.
    pub rig: Rig,
    /// The site that the secret may go to, with [`LOGIN`] at `/`.
    pub own: Site,
    /// Its URL.
    pub own_url: String,
    /// The other one, with the same page.
    pub other: Site,
    /// Its URL.
    pub other_url: String,
}

/// Makes that. The pages of both sites are made of their URLs.
pub fn login(rig: Rig, pages: impl Fn(&str, &str) -> [Vec<(String, Page)>; 2]) -> Login {
    let town = Town::new(&[(OWN, [127, 0, 0, 1]), (OTHER, [127, 0, 0, 1])]);
    let (own_url, other_url) = (town.url(OWN), town.url(OTHER));
    let [own_pages, other_pages] = pages(&own_url, &other_url);
    let open = |name: &str, pages: &[(String, Page)]| {
        let both = [("/", html(LOGIN)), ("/in", html("<title>In</title><h1>Welcome</h1>"))];
        let more = pages.iter().map(|(path, page)| (path.as_str(), page.clone()));
        town.open(name, &both.into_iter().chain(more).collect::<Vec<_>>())
    };
    let (own, other) = (open(OWN, &own_pages), open(OTHER, &other_pages));
    let value = rig.host.home().join("value");
    std::fs::write(&value, VALUE).expect("a file");
    std::fs::set_permissions(&value, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let rig = town
        .around(rig)
        .set(&format!("secret.SHOP.file={:?}", value.display().to_string()))
        .set(&format!("secret.SHOP.hosts=[{OWN:?}]"))
        .set("plugin.browser.browser.secrets=[\"SHOP\"]");
    Login { rig, own, own_url, other, other_url }
}
