//! What fetched values mean: envelopes, the parts of a message, and which of them are its text.

use super::commands::PartNumber;
use super::message;
use super::response::Node;
use super::{Address, Part};

/// Parts of one message that are looked at.
const PARTS: usize = 200;
/// Recipients that a list shows.
const RECIPIENTS: usize = 50;
/// Text parts of one message that are read.
const TEXTS: usize = 10;

/// What is fetched of a message first.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetched {
    pub(super) uid: u32,
    pub(super) unread: bool,
    pub(super) bytes: u64,
    pub(super) date_ms: Option<u64>,
    pub(super) subject: String,
    pub(super) sender: Option<Address>,
    pub(super) recipients: Vec<Address>,
    /// By which doubles are known.
    pub(super) message_id: Option<Vec<u8>>,
    pub(super) body: Body,
}

/// A message's parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    /// Those that are its text, in order.
    pub(super) texts: Vec<Leaf>,
    /// All others.
    pub(super) others: Vec<Leaf>,
    /// There are more than are looked at.
    pub(super) is_cut: bool,
}

/// A part that has no parts.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) number: PartNumber,
    pub(super) media_type: String,
    pub(super) name: Option<String>,
    pub(super) encoding: String,
    /// As the server announces it.
    pub(super) bytes: u64,
    is_attachment: bool,
}

impl Leaf {
    pub(super) fn shown(&self) -> Part {
        let Self { number, media_type, name, bytes, .. } = self;
        Part { id: number.to_string(), name: name.clone(), media_type: media_type.clone(), bytes: *bytes }
    }

    /// About how much it is without its encoding.
    pub(super) fn decoded_bytes(&self) -> u64 {
        match self.encoding.eq_ignore_ascii_case("base64") {
            // Four characters for three bytes, and a line break of two after each 76.
            true => self.bytes / 78 * 57,
            false => self.bytes,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        self.media_type.starts_with("text/")
    }
}

impl Body {
    pub(super) fn leaf(&self, numbers: &[u32]) -> Option<&Leaf> {
        self.texts.iter().chain(&self.others).find(|leaf| leaf.number.numbers() == numbers)
    }
}

/// The items of a FETCH response, by their names.
pub(super) struct Items<'n>(&'n [Node]);

impl<'n> Items<'n> {
    /// Those of a response, if it is one.
    pub(super) fn of(response: &'n [Node]) -> Option<Self> {
        match response {
            [_, word, Node::List(items)] if word.is("FETCH") => Some(Self(items)),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        self.0.chunks_exact(2).find(|pair| pair[0].is(name)).map(|pair| &pair[1])
    }

    pub(super) fn uid(&self) -> Option<u32> {
        u32::try_from(self.get("UID")?.number()?).ok().filter(|uid| *uid > 0)
    }

    /// The content of a section, such as `1.2`, wherever it begins.
    pub(super) fn section(&self, section: &str) -> Option<&'n [u8]> {
        let is_it = |node: &Node| {
            let Node::Atom(atom) = node else { return false };
            let Some(inner) = atom.get(5..).filter(|_| atom[..5].eq_ignore_ascii_case(b"BODY[")) else { return false };
            let inner = inner.split(|byte| *byte == b']').next().unwrap_or_default();
            // Servers write the names of fields as they like: `HEADER.FIELDS ("FROM")`.
            let bare =
                |text: &[u8]| text.iter().filter(|byte| **byte != b'"').map(u8::to_ascii_uppercase).collect::<Vec<_>>();
            bare(inner) == bare(section.as_bytes())
        };
        let found = self.0.chunks_exact(2).find(|pair| is_it(&pair[0])).map(|pair| &pair[1])?;
        match found {
            Node::Nil => Some(b""),
            node => node.bytes(),
        }
    }

    pub(super) fn date_ms(&self) -> Option<u64> {
        date_ms(self.get("INTERNALDATE")?.bytes()?)
    }

    pub(super) fn fetched(&self) -> Option<Fetched> {
        let uid = self.uid()?;
        let flags = self.get("FLAGS").and_then(Node::list).unwrap_or_default();
        let envelope = self.get("ENVELOPE").and_then(Node::list).unwrap_or_default();
        let text = |at: usize| envelope.get(at).and_then(Node::bytes);
        let addresses = |at: usize| envelope.get(at).and_then(Node::list).map(addresses).unwrap_or_default();
        let body = self.get("BODYSTRUCTURE").and_then(Node::list).map(body).unwrap_or_default();
        Some(Fetched {
            uid,
            unread: !flags.iter().any(|flag| flag.is("\\Seen")),
            bytes: self.get("RFC822.SIZE").and_then(Node::number).unwrap_or_default(),
            date_ms: self.date_ms().or_else(|| message_date_ms(text(0)?)),
            subject: message::header(text(1).unwrap_or_default()),
            sender: addresses(2).into_iter().next(),
            recipients: addresses(5).into_iter().chain(addresses(6)).take(RECIPIENTS).collect(),
            message_id: text(9).map(<[u8]>::to_vec).filter(|id| !id.is_empty()),
            body,
        })
    }
}

/// `(name route mailbox host)`; groups have no host, and are left out.
fn addresses(list: &[Node]) -> Vec<Address> {
    let address = |node: &Node| {
        let [name, _, mailbox, host] = node.list()? else { return None };
        let text = |node: &Node| node.bytes().map(message::header).unwrap_or_default();
        host.bytes()?;
        Some(Address { name: text(name), address: format!("{}@{}", text(mailbox), text(host)) })
    };
    list.iter().take(RECIPIENTS).filter_map(address).collect()
}

/// ` 5-Feb-2024 09:30:00 +0100` in ms since 1970 (RFC 3501, 9).
fn date_ms(written: &[u8]) -> Option<u64> {
    let written = std::str::from_utf8(written).ok()?.trim();
    let date = jiff::Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", written).ok()?;
    u64::try_from(date.as_millisecond()).ok()
}

/// `Mon, 5 Feb 2024 09:30:00 +0100` likewise, and what else messages have there (RFC 5322, 3.3 and 4.3).
fn message_date_ms(written: &[u8]) -> Option<u64> {
    let date = mail_parser::DateTime::parse_rfc822(std::str::from_utf8(written).ok()?);
    let seconds = date.filter(mail_parser::DateTime::is_valid)?.to_timestamp();
    u64::try_from(seconds).ok()?.checked_mul(1000)
}

/// A `BODYSTRUCTURE`.
fn body(structure: &[Node]) -> Body {
    let mut body = Body::default();
    if is_multipart(structure) {
        walk(structure, &mut Vec::new(), true, &mut body);
    } else if let Some(leaf) = leaf(structure, PartNumber::new(vec![1], true)) {
        put(leaf, true, &mut body);
    }
    body
}

fn is_multipart(structure: &[Node]) -> bool {
    matches!(structure.first(), Some(Node::List(_)))
}

/// Goes through the parts of a part. As deep as lists are read at most (`response.rs`). `is_text` says that its texts are the message's.
fn walk(multipart: &[Node], numbers: &mut Vec<u32>, is_text: bool, body: &mut Body) {
    let parts: Vec<&[Node]> = multipart.iter().map_while(Node::list).collect();
    let subtype = multipart.get(parts.len()).and_then(Node::bytes).unwrap_or_default();
    let chosen = subtype.eq_ignore_ascii_case(b"alternative").then(|| best(&parts));
    for (at, part) in parts.into_iter().enumerate() {
        if body.texts.len() + body.others.len() >= PARTS {
            body.is_cut = true;
            return;
        }
        numbers.push(u32::try_from(at).unwrap_or(u32::MAX - 1) + 1);
        let is_text = is_text && chosen.is_none_or(|chosen| chosen == Some(at));
        if is_multipart(part) {
            walk(part, numbers, is_text, body);
        } else if let Some(leaf) = leaf(part, PartNumber::new(numbers.clone(), false)) {
            // What says the same in another way is no attachment.
            let is_other_way = chosen.is_some() && !is_text && leaf.is_text() && !leaf.is_attachment;
            if !is_other_way {
                put(leaf, is_text, body);
            }
        }
        numbers.pop();
    }
}

/// Which of several ways to say the same is read: plain text, else HTML, else whatever holds one of them.
fn best(parts: &[&[Node]]) -> Option<usize> {
    let is = |part: &[Node], wanted: &[u8]| {
        let word = |at: usize| part.get(at).and_then(Node::bytes).unwrap_or_default();
        word(0).eq_ignore_ascii_case(b"text") && word(1).eq_ignore_ascii_case(wanted)
    };
    let plain = parts.iter().position(|part| is(part, b"plain"));
    let html = || parts.iter().position(|part| is(part, b"html"));
    plain.or_else(html).or_else(|| parts.iter().position(|part| is_multipart(part)))
}

fn put(leaf: Leaf, is_text: bool, body: &mut Body) {
    let is_shown = leaf.media_type == "text/plain" || leaf.media_type == "text/html";
    if is_text && is_shown && !leaf.is_attachment && body.texts.len() < TEXTS {
        body.texts.push(leaf);
    } else {
        body.others.push(leaf);
    }
}

fn leaf(part: &[Node], number: PartNumber) -> Option<Leaf> {
    let word = |at: usize| part.get(at).and_then(Node::bytes).unwrap_or_default();
    let lower = |at: usize| message::header(word(at)).to_ascii_lowercase();
    if part.len() < 2 {
        return None;
    }
    let media_type = format!("{}/{}", lower(0), lower(1));
    let extension = match media_type.as_str() {
        "message/rfc822" | "message/global" => 10,
        text if text.starts_with("text/") => 8,
        _ => 7,
    };
    // Its MD5 comes first.
    let disposition = part.get(extension + 1).and_then(Node::list).unwrap_or_default();
    let is_attachment = disposition
        .first()
        .is_some_and(|kind| kind.bytes().is_some_and(|kind| kind.eq_ignore_ascii_case(b"attachment")));
    let named = disposition.get(1).and_then(Node::list).and_then(|all| parameter(all, "filename"));
    let named = named.or_else(|| part.get(2).and_then(Node::list).and_then(|all| parameter(all, "name")));
    Some(Leaf {
        number,
        media_type,
        name: named.and_then(|raw| message::file_name(&raw)),
        encoding: String::from_utf8_lossy(word(5)).into_owned(),
        bytes: part.get(6).and_then(Node::number).unwrap_or_default(),
        is_attachment,
    })
}

/// The value of a parameter, whether it is whole or in pieces: `filename*0*=…`, `filename*1=…` (RFC 2231, 3 and 4.1).
fn parameter(all: &[Node], name: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[Node]| {
        Some((String::from_utf8_lossy(pair[0].bytes()?).to_ascii_lowercase(), pair[1].bytes()?.to_vec()))
    };
    let pairs: Vec<(String, Vec<u8>)> = all.chunks_exact(2).filter_map(pair).collect();
    let mut pieces: Vec<(u32, bool, &[u8])> = Vec::new();
    for (key, value) in &pairs {
        let Some(rest) = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('*')) else { continue };
        let (number, is_escaped) = rest.strip_suffix('*').map_or((rest, rest.is_empty()), |number| (number, true));
        let number = if number.is_empty() { Some(0) } else { number.parse().ok() };
        pieces.extend(number.map(|number| (number, is_escaped, value.as_slice())));
    }
    if pieces.is_empty() {
        return pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value);
    }
    pieces.sort_by_key(|(number, ..)| *number);
    let has_escapes = pieces[0].1;
    let mut whole = Vec::new();
    for (_, is_escaped, value) in pieces {
        for byte in value {
            match byte {
                b'%' if has_escapes && !is_escaped => whole.extend_from_slice(b"%25"),
                byte => whole.push(*byte),
            }
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::super::response::{self, Response};
    use super::*;

    fn items(response: &str) -> Fetched {
        let Some(Response::Data(nodes)) = response::parse(response.as_bytes()) else { panic!("{response}") };
        Items::of(&nodes).and_then(|items| items.fetched()).expect("a fetch")
    }

    fn parts(structure: &str) -> (Vec<String>, Vec<String>) {
        let body = items(&format!("* 1 FETCH (UID 7 BODYSTRUCTURE {structure})")).body;
        let shown = |leaf: Leaf| {
            let name = leaf.name.map(|name| format!(" {name}")).unwrap_or_default();
            format!("{} {}{name}", leaf.number, leaf.media_type)
        };
        (body.texts.into_iter().map(shown).collect(), body.others.into_iter().map(shown).collect())
    }

    #[test]
    fn an_envelope_says_who_wrote_what_when() {
        let fetched = items(
            r#"* 12 FETCH (UID 7 FLAGS (\Flagged) INTERNALDATE " 5-Feb-2024 09:30:00 +0100" RFC822.SIZE 900 ENVELOPE ("Mon, 5 Feb 2024 08:00:00 +0000" "Hello" (("Ann" NIL "ann" "example.com")) NIL NIL ((NIL NIL "bob" "example.org")(NIL NIL "friends" NIL)) (("Cy" NIL "cy" "example.org")) NIL NIL "<1@example.com>"))"#,
        );
        assert_eq!(
            (fetched.uid, fetched.unread, fetched.bytes, fetched.date_ms),
            (7, true, 900, Some(1_707_121_800_000))
        );
        assert_eq!(fetched.subject, "Hello");
        assert_eq!(fetched.sender.unwrap().address, "ann@example.com");
        let recipients: Vec<_> = fetched.recipients.into_iter().map(|address| address.address).collect();
        assert_eq!(recipients, ["bob@example.org", "cy@example.org"]);
        assert_eq!(fetched.message_id.as_deref(), Some(&b"<1@example.com>"[..]));
    }

    #[test]
    fn a_message_without_anything_is_one_all_the_same() {
        let fetched = items("* 1 FETCH (UID 7 INTERNALDATE NIL ENVELOPE NIL FLAGS (\\Seen) BODYSTRUCTURE NIL)");
        assert_eq!((fetched.unread, fetched.date_ms, fetched.subject.as_str()), (false, None, ""));
        let fetched = items(r#"* 1 FETCH (UID 7 ENVELOPE ("Mon, 5 Feb 2024 08:00:00 -0130" NIL NIL))"#);
        assert_eq!(fetched.date_ms, Some(1_707_125_400_000));
        for odd in [
            "",
            "x",
            "99-Foo-2024 1:1:1 +0000",
            "1-Jan-99999 1:1:1 +0000",
            "1-Jan-2024 99:1:1 +0000",
            "1-Jan-1800 1:1:1 +0",
        ] {
            assert_eq!(date_ms(odd.as_bytes()), None, "{odd}");
            assert_eq!(message_date_ms(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn a_message_is_dated_as_old_programs_write_it() {
        let utc = 1_707_121_800_000;
        for (written, hours) in [
            ("Mon, 5 Feb 2024 09:30:00 +0100", 0),
            ("mon,  5 feb 2024  9:30 +01:00", 0),
            ("5 Feb 24 08:30:00 GMT", 0),
            ("Mon (day), 5 (fifth) Feb 2024 09:30:00 +0100 (CET)", 0),
            ("Mon, 5 Feb 2024 08:30:00 EST", 5),
            ("Mon, 5 Feb 2024 08:30:00 XYZ", 0),
        ] {
            assert_eq!(message_date_ms(written.as_bytes()), Some(utc + hours * 3_600_000), "{written}");
        }
        for written in ["Mon, 5 Feb 2024", "Mon, 5 Feb 2024 99:30:00 +0100", "Fri, 1 Jan 1960 00:00:00 +0000", "\u{e4}"]
        {
            assert_eq!(message_date_ms(written.as_bytes()), None, "{written}");
        }
    }

    #[test]
    fn the_text_of_a_message_is_told_from_what_is_attached() {
        let plain = r#"("TEXT" "PLAIN" ("charset" "utf-8") NIL NIL "7BIT" 12 1 NIL NIL NIL NIL)"#;
        let html = r#"("TEXT" "HTML" NIL NIL NIL "7BIT" 12 1 NIL NIL NIL NIL)"#;
        let pdf = r#"("APPLICATION" "PDF" ("name" "a.pdf") NIL NIL "BASE64" 7800 NIL ("ATTACHMENT" ("filename" "b.pdf")) NIL NIL)"#;
        let note = r#"("TEXT" "PLAIN" NIL NIL NIL "7BIT" 12 1 NIL ("attachment" ("FILENAME*0*" "utf-8''n%C3%B6" "filename*1" "t.txt")) NIL NIL)"#;
        assert_eq!(parts(plain), (vec!["1 text/plain".into()], vec![]));
        let both = format!(r#"({plain}{html} "ALTERNATIVE" NIL NIL NIL NIL)"#);
        assert_eq!(parts(&both), (vec!["1 text/plain".into()], vec![]));
        let mixed = format!(r#"({both}{pdf}{note} "MIXED" ("boundary" "x") NIL NIL NIL)"#);
        assert_eq!(
            parts(&mixed),
            (vec!["1.1 text/plain".into()], vec!["2 application/pdf b.pdf".into(), "3 text/plain nöt.txt".into()])
        );
        let related = format!(r#"(({html}{pdf} "RELATED") "ALTERNATIVE")"#);
        assert_eq!(parts(&related), (vec!["1.1 text/html".into()], vec!["1.2 application/pdf b.pdf".into()]));
        let forwarded = format!(
            r#"({plain}("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 900 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) {mixed} 9 NIL ("attachment" ("filename" "f.eml")) NIL NIL) "MIXED")"#
        );
        assert_eq!(parts(&forwarded), (vec!["1 text/plain".into()], vec!["2 message/rfc822 f.eml".into()]));
        assert_eq!(parts(pdf), (vec![], vec!["1 application/pdf b.pdf".into()]));
    }

    #[test]
    fn parts_without_end_are_cut() {
        let many = r#"("IMAGE" "PNG" NIL NIL NIL "BASE64" 12)"#.repeat(100_000);
        let body = items(&format!(r#"* 1 FETCH (UID 7 BODYSTRUCTURE ({many} "MIXED"))"#)).body;
        assert!(body.is_cut && body.others.len() == PARTS);
        let deep = format!("{}{}", "(".repeat(20_000), ")".repeat(20_000));
        assert!(items(&format!("* 1 FETCH (UID 7 BODYSTRUCTURE {deep})")).body.texts.is_empty());
    }

    #[test]
    fn a_section_is_found_however_the_server_writes_it() {
        for written in
            ["BODY[HEADER.FIELDS (AUTHENTICATION-RESULTS)]", "body[header.fields (\"Authentication-Results\")]"]
        {
            let response = format!("* 1 FETCH (UID 7 {written} {{3}}\r\nabc BODY[1.2]<0> NIL)");
            let Some(Response::Data(nodes)) = response::parse(response.as_bytes()) else { panic!("{response}") };
            let items = Items::of(&nodes).unwrap();
            assert_eq!(items.section("HEADER.FIELDS (AUTHENTICATION-RESULTS)"), Some(&b"abc"[..]));
            assert_eq!(items.section("1.2"), Some(&b""[..]));
            assert_eq!(items.section("1"), None);
        }
    }
}
