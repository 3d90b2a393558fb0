//! Spellings of addresses and names that ought not to be reached, or ought to: each is fetched, and what was asked and connected to is looked at.
//!
//! `ssrf-urls.tsv` came with the requirements; `more-urls.tsv` has further spellings, and both ends of every range with their neighbours.

use crate::host::Host;
use crate::names::{Names, Reply};
use crate::web::{Web, page};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use toolcrib_tests::envelope::{kind, said};

/// The address of names that are looked up, unless a line says another.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// One line.
pub(crate) struct Vector {
    pub(crate) id: &'static str,
    pub(crate) input: String,
    pub(crate) verdict: &'static str,
    why: &'static str,
}

/// The lines of both files.
pub(crate) fn vectors() -> Vec<Vector> {
    let lines = [include_str!("ssrf-urls.tsv"), include_str!("more-urls.tsv")].into_iter().flat_map(str::lines);
    let parse = |line: &'static str| {
        let fields: Vec<_> = line.split('\t').collect();
        let [id, input, verdict, why] = fields[..] else { panic!("`{line}` has {} fields", fields.len()) };
        Vector { id, input: unescaped(input), verdict, why }
    };
    lines.filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// Undoes `\xNN` and `\uNNNN`; other backslashes mean themselves.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain += before;
        let digits = match after.bytes().next() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            _ => 0,
        };
        let code = after.get(1..=digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        if let Some(meant) = code.and_then(char::from_u32) {
            plain.push(meant);
            rest = &after[1 + digits..];
        } else {
            plain.push('\\');
            rest = after;
        }
    }
    plain + rest
}

impl Vector {
    /// The address that the line is about: the last one of its reason, or else the host of the URL.
    fn address(&self) -> IpAddr {
        let mut words = self.why.rsplit([' ', '(', ')']);
        let told = words.find_map(|word| word.parse().ok());
        told.unwrap_or_else(|| {
            let host = self.input.split('/').nth(2).unwrap_or_default();
            host.trim_matches(['[', ']']).parse().unwrap_or_else(|_| panic!("{}: which address?", self.id))
        })
    }
}

/// A world with a server everywhere and a name server that says what the line at hand needs.
struct Field<'w> {
    world: &'w World,
    web: Web,
    names: Names,
    answer: Arc<Mutex<IpAddr>>,
    ask: fn(&mut Host, &str) -> Value,
}

/// What came of one fetch.
struct Outcome {
    answer: Value,
    /// Whom the program turned to, but for the name server.
    contacts: Vec<String>,
    asked: Vec<String>,
    /// Where requests arrived, and for which host.
    arrived: Vec<(SocketAddr, String)>,
}

impl<'w> Field<'w> {
    fn new(world: &'w World, ask: fn(&mut Host, &str) -> Value) -> Self {
        let answer = Arc::new(Mutex::new(PUBLIC));
        let said = answer.clone();
        let names = Names::serve(move |query| {
            let address: IpAddr = *said.lock().expect("the address");
            Reply::addresses(query, &[&address.to_string()])
        });
        let web = Web::open(&[80, 443, 22, 6379, 8080, 8443], |_, wire| wire.write_all(&page("here")));
        Self { world, web, names, answer, ask }
    }

    fn fetch(&self, host: &mut Host, vector: &Vector) -> Outcome {
        let address = if vector.verdict == "resolve-deny" { vector.address() } else { PUBLIC };
        *self.answer.lock().expect("the address") = address;
        let before = (self.world.record().len(), self.names.asked().len(), self.web.requests().len());
        let answer = (self.ask)(host, &vector.input);
        let contacts = self.world.record().split_off(before.0);
        let contacts = contacts.iter().map(ToString::to_string).filter(|contact| !contact.ends_with(" 127.0.0.1:53"));
        let arrived = self.web.requests().split_off(before.2);
        let arrived = arrived.iter().map(|request| (request.to, request.values("host").join(" ")));
        Outcome {
            answer,
            contacts: contacts.collect(),
            asked: self.names.asked().split_off(before.1),
            arrived: arrived.collect(),
        }
    }
}

impl Outcome {
    /// Why this is not what the line says; nothing if it is.
    fn fault(&self, vector: &Vector) -> Option<String> {
        // A component of another world has no kinds of failures: its own say what WASI told it.
        let is_refused = ["denied", "invalid_arguments", "execution_failed"].contains(&kind(&self.answer));
        let is_quiet = self.contacts.is_empty() && self.arrived.is_empty();
        let is_as_said = match vector.verdict {
            "deny" | "deny-locked" => is_refused && is_quiet && self.asked.is_empty(),
            "allow" => self.asked.is_empty() && self.went_to(vector.address()),
            "resolve" => {
                let name = self.arrived.first().map(|(_, host)| host.clone()).unwrap_or_default();
                let is_asked = !self.asked.is_empty() && self.asked.iter().all(|asked| *asked == name);
                is_asked && self.went_to(PUBLIC)
            }
            "resolve-deny" => is_refused && is_quiet && !self.asked.is_empty(),
            other => panic!("{}: there is no verdict `{other}`", vector.id),
        };
        let (contacts, asked, arrived) = (&self.contacts, &self.asked, &self.arrived);
        let line = format!("{} `{}` {}", vector.id, vector.input.escape_debug(), vector.verdict);
        let done = format!("{}; asked {asked:?}, turned to {contacts:?}, arrived {arrived:?}", self.answer);
        (!is_as_said).then(|| format!("{line}: {done}"))
    }

    /// One request went to port 80 of that address, and nothing to anywhere else.
    fn went_to(&self, address: IpAddr) -> bool {
        let place = SocketAddr::new(address, 80);
        let is_there = matches!(&self.arrived[..], [(to, _)] if *to == place);
        let is_only_there = self.contacts.iter().all(|contact| *contact == format!("tcp {place}"));
        kind(&self.answer) == "ok" && is_there && is_only_there
    }

    fn print(&self, vector: &Vector) {
        let what =
            if kind(&self.answer) == "ok" { format!("arrived at {:?}", self.arrived) } else { said(&self.answer) };
        println!("{} {} `{:.80}`: {what:.200}", vector.id, vector.verdict, vector.input.escape_debug().to_string());
    }
}

/// Fetches all lines that are picked.
fn check(field: &Field, mut host: Host, picked: impl Fn(&Vector) -> bool) {
    let (mut count, mut faults) = (0, Vec::new());
    for vector in vectors().iter().filter(|vector| picked(vector)) {
        let outcome = field.fetch(&mut host, vector);
        outcome.print(vector);
        faults.extend(outcome.fault(vector));
        count += 1;
    }
    println!("{count} lines");
    assert!(count > 0 && faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_spelling_leads_where_it_should_or_nowhere() {
    in_a_world(|world| {
        let field = Field::new(world, Host::fetch);
        check(&field, world.program().run(), |vector| vector.verdict != "deny-locked");
        let mut allowed: Vec<String> = vectors()
            .iter()
            .filter(|vector| vector.verdict == "allow")
            .map(|vector| format!("tcp {}", SocketAddr::new(vector.address(), 80)))
            .collect();
        allowed.push(format!("tcp {PUBLIC}:80"));
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        world.assert_record(&allowed);
    });
}

#[test]
fn where_plain_http_is_off_none_of_them_leads_anywhere() {
    in_a_world(|world| {
        let field = Field::new(world, Host::fetch);
        let host = world.program().set("tools.fetch_plain_http=false").run();
        check(&field, host, |vector| vector.verdict.starts_with("deny"));
        world.assert_record(&[]);
        assert_eq!(field.names.asked(), [""; 0], "a name was asked for");
    });
}

/// Asks for a URL through `wasi:http`: its parts as they are written, by a guest that leaves them so.
fn ask_by_wasi(host: &mut Host, url: &str) -> Value {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let rest = rest.trim_start_matches(['/', '\\']);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    host.call("attack", json!({ "name": "raw-url", "argument": format!("{scheme}\n{authority}\n{path}") }))
}

/// The same spellings through `wasi:http`. Letters beyond ASCII, escapes and what browsers mend have no place in its parts of a URL, so lines with
/// these are looked at only where they are to lead nowhere.
#[test]
fn every_spelling_through_wasi_leads_where_it_should_or_nowhere() {
    in_a_world(|world| {
        let field = Field::new(world, ask_by_wasi);
        let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        let names = vectors().into_iter().filter(|vector| vector.verdict.starts_with("resolve"));
        let names = names.filter_map(|vector| Some(vector.input.split('/').nth(2)?.to_ascii_lowercase()));
        let mut hosts: Vec<String> = names.filter(|name| is_name(name.trim_end_matches('.'))).collect();
        hosts.extend(["0.0.0.0/0".into(), "::/0".into()]);
        let hosts = format!("http.hosts={}", json!(hosts));
        let host = world.program().guest("raider", &[&hosts]).run();
        let is_plain = |vector: &Vector| {
            let is_written_so = vector.input.is_ascii() && !vector.input.contains(['#', '%', '\\']);
            vector.verdict.starts_with("deny") || is_written_so
        };
        check(&field, host, |vector| vector.verdict != "deny-locked" && is_plain(vector));
    });
}

#[test]
fn escapes_of_the_files_are_undone() {
    assert_eq!(unescaped(r"\x20http:\\127\uff0e1\@a\x0a"), " http:\\\\127\u{ff0e}1\\@a\n");
    assert!(vectors().len() > 400);
}
