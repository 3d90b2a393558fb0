//! Resources of a server. It is asked only for one that it has named itself: in its list, in an answer, or by a template of addresses that a person
//! has accepted.

use super::listing::{Trouble, shown};
use super::pages::{self, List};
use super::result::{Embedded, WHOLE_CHARS, kept, nonsense};
use super::running::Running;
use super::wire::{Unanswered, Via};
use base::envelope::{Content, Failure, Kind, Output, is_media_type};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use parking_lot::Mutex;
use policy::guard::Guard;
use policy::scope::PART_BYTES;
use policy::scope::Scope;
use regex::RegexBuilder;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What settings call the tool that reads them. No tool of a server is called so.
pub(super) const OWN_NAME: &str = "resource:read";
/// What it is offered as, behind the name of its server.
pub(super) const OFFERED: &str = "read_resource";
/// The member of its definition with the templates.
const TEMPLATES: &str = "resourceTemplates";
/// What addresses begin with that are known by their servers.
const SCHEME: &str = "upstream://";
/// Bytes of an address; of all that are remembered of answers, and how many these are.
const URI_BYTES: usize = 4 << 10;
const LINKS_BYTES: usize = 1 << 20;
const MOST_LINKS: usize = 4096;
/// Bytes of a list of resources, as it is remembered; at most half of what a result may have.
const LIST_BYTES: usize = 512 << 10;
/// Templates, expressions of one, and bytes of what its address is matched by.
pub(super) const MOST_TEMPLATES: usize = 64;
const MOST_EXPRESSIONS: usize = 16;
const MATCHER_BYTES: usize = 1 << 20;
/// The code of the protocol for a resource that is not there.
const MISSING: i64 = -32002;
/// How often a list is asked for that an address may be in.
const AGAIN: Duration = Duration::from_secs(5);
/// The members of a resource or a template that are handed on, and characters of each.
const TOLD: [&str; 6] = ["uri", "uriTemplate", "name", "title", "description", "mimeType"];
const TOLD_CHARS: usize = 1000;
/// Templates that are part of the description of the tool, and characters of what is said of each.
const DESCRIBED: usize = 8;
const DESCRIBED_CHARS: usize = 200;

/// The addresses that a server has named.
#[derive(Default)]
pub(super) struct Named {
    /// In answers, with when they were named last, in turns.
    links: HashMap<String, u64>,
    turn: u64,
    bytes: usize,
    /// In its list, with the members that are handed on.
    listed: Vec<(String, Value)>,
    at: Option<Instant>,
}

impl Named {
    pub(super) fn remember(&mut self, uri: &str) {
        if uri.len() > URI_BYTES {
            return;
        }
        self.turn += 1;
        if self.links.insert(uri.to_owned(), self.turn).is_none() {
            self.bytes += uri.len();
        }
        if self.links.len() > MOST_LINKS || self.bytes > LINKS_BYTES {
            self.forget_half();
        }
    }

    /// Those that were named last stay.
    fn forget_half(&mut self) {
        let mut turns: Vec<u64> = self.links.values().copied().collect();
        let middle = turns.len() / 2;
        let (_, middle, _) = turns.select_nth_unstable(middle);
        self.links.retain(|_, turn| *turn >= *middle);
        self.bytes = self.links.keys().map(String::len).sum();
    }

    fn has(&self, uri: &str) -> bool {
        self.links.contains_key(uri) || self.listed.iter().any(|(listed, _)| listed == uri)
    }

    /// The resources of the list, as it was last.
    pub(super) fn told(&self) -> Vec<Value> {
        self.listed.iter().map(|(_, told)| told.clone()).collect()
    }
}

/// The address under which doors show a resource of a server.
#[must_use]
pub fn address(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The server and its own address, of an address that begins so.
#[must_use]
pub fn parted(address: &str) -> Option<(&str, &str)> {
    address.strip_prefix(SCHEME)?.split_once('/').filter(|(_, uri)| !uri.is_empty())
}

/// What is accepted of them.
pub(super) fn definition(templates: Vec<Map<String, Value>>) -> Map<String, Value> {
    Map::from_iter([("name".into(), OWN_NAME.into()), (TEMPLATES.into(), templates.into())])
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "uri": { "type": "string", "description": "the URI of the resource" } },
        "additionalProperties": false,
    })
}

pub(super) fn summary(definition: &Map<String, Value>) -> String {
    let mut summary = "Read a resource of this server by its URI. Without `uri`, list its resources.".to_owned();
    let text = |template: &Value, key| {
        let text = template.get(key).and_then(Value::as_str).unwrap_or_default();
        text.chars().take(DESCRIBED_CHARS).collect::<String>()
    };
    let templates = templates(definition);
    let is_short = |template: &&Value| {
        template["uriTemplate"].as_str().is_some_and(|form| form.chars().count() <= DESCRIBED_CHARS)
    };
    let described: Vec<&Value> = templates.iter().filter(is_short).take(DESCRIBED).collect();
    for (number, template) in described.iter().enumerate() {
        summary += if number == 0 { "\n\nURIs may also have these forms:" } else { "" };
        let about = Some(text(template, "description")).filter(|about| !about.is_empty());
        let about = about.unwrap_or_else(|| text(template, "name"));
        summary += &format!("\n- `{}`: {about}", text(template, "uriTemplate"));
    }
    let more = templates.len() - described.len();
    if more > 0 {
        summary += &format!("\n{more} more forms are in the list: call without `uri`.");
    }
    summary
}

/// The URI that a call names, as its server knows it.
pub(super) fn wanted(arguments: &str, server: &str, named: &Mutex<Named>) -> Option<String> {
    #[derive(Deserialize)]
    struct Arguments {
        uri: Option<String>,
    }
    let uri = serde_json::from_str::<Arguments>(arguments).ok()?.uri?;
    Some(match parted(&uri) {
        Some((of, own)) if of == server && !named.lock().has(&uri) => own.to_owned(),
        Some(_) | None => uri,
    })
}

/// Lists the resources and the templates.
pub(super) async fn list(
    running: &Running,
    definition: &Map<String, Value>,
    via: &Via<'_>,
) -> Result<Box<RawValue>, Unanswered> {
    let left_out = listed_again(running, via).await?;
    let (templates, mut room) = (templates(definition).iter().filter_map(Value::as_object), list_bytes(via) / 4);
    let templates = templates.map(|template| Value::from(told(template, &via.scope.guard)));
    let templates: Vec<Value> = templates.take_while(|template| fits(template, &mut room)).collect();
    let mut list = json!({ "resources": running.named.lock().told() });
    for (member, told) in [("templates", templates), ("left_out", left_out.into_iter().map(Value::from).collect())] {
        if !told.is_empty() {
            list[member] = told.into();
        }
    }
    Ok(to_raw_value(&list).expect("it is plain data"))
}

/// Asks for the list; returns what of it was left out, a sentence each.
async fn listed_again(running: &Running, via: &Via<'_>) -> Result<Vec<String>, Unanswered> {
    let listed = pages::all(&running.wire, &running.protocol, List::Resources, pages::MOST_TIME, via).await;
    running.named.lock().at = Some(Instant::now());
    let (entries, mut left_out) = listed.map_err(|trouble| unanswered(trouble, running))?;
    let (mut listed, mut room) = (Vec::new(), list_bytes(via));
    let total = entries.len();
    for (uri, entry) in entries {
        let told = told(&entry, &via.scope.guard);
        // Who read another address than the server means would not reach the resource.
        let is_plain = told.get("uri").and_then(Value::as_str) == Some(uri.as_str());
        let told = Value::from(told);
        if is_plain && fits(&told, &mut room) {
            listed.push((uri, told));
        }
    }
    if listed.len() < total {
        left_out.push(format!(
            "{} of {total} resources: their URIs have hidden characters or a secret, or there are too many",
            total - listed.len()
        ));
    }
    running.named.lock().listed = listed;
    Ok(left_out)
}

/// Bytes of a list that are handed on.
fn list_bytes(via: &Via<'_>) -> usize {
    LIST_BYTES.min(usize::try_from(via.scope.limits.result_kib << 10).unwrap_or(usize::MAX) / 2)
}

/// Takes the room that an entry of a list needs, if there is as much.
fn fits(told: &Value, room: &mut usize) -> bool {
    let left = room.checked_sub(told.to_string().len());
    *room = left.unwrap_or(0);
    left.is_some()
}

/// A server that is there no more is started again.
fn unanswered(trouble: Trouble, running: &Running) -> Unanswered {
    match running.has_ended() {
        true => Unanswered::Ended { why: running.why_ended(), was_sent: false },
        false => Unanswered::Lost(trouble),
    }
}

/// Decides whether the server has named an address. Its list is asked for where that may have been there since.
pub(super) async fn check_named(
    running: &Running,
    uri: &str,
    definition: &Map<String, Value>,
    via: &Via<'_>,
) -> Result<(), Unanswered> {
    let forms = templates(definition).iter().filter_map(|template| template.get("uriTemplate")?.as_str());
    let is_named = || running.named.lock().has(uri);
    if is_named() || forms.into_iter().any(|form| has_form(uri, form)) {
        return Ok(());
    }
    // Who comes meanwhile waits for the same list.
    let _turn = running.listing.lock().await;
    let is_old = running.named.lock().at.is_none_or(|at| at.elapsed() >= AGAIN);
    if is_old && !is_named() {
        listed_again(running, via).await?;
    }
    if is_named() {
        return Ok(());
    }
    // It may name it later.
    let refused = Failure::new(Kind::Unavailable, format!("it has not named the address `{}`", shown(uri)));
    let refused = refused.hint("the same call without `uri` lists the addresses that it names");
    Err(Unanswered::Lost(refused.data(json!({ "code": MISSING }))))
}

/// Whether an address of this form can be asked for; why not, as the rest of a sentence.
pub(super) fn check_template(template: &Map<String, Value>) -> Result<(), String> {
    let form = template.get("uriTemplate").and_then(Value::as_str).unwrap_or_default();
    match form.matches('{').count() {
        0..=MOST_EXPRESSIONS => Ok(()),
        _ => Err(format!("has more than {MOST_EXPRESSIONS} expressions")),
    }
}

fn templates(definition: &Map<String, Value>) -> &[Value] {
    definition.get(TEMPLATES).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether an address has the form of a template (RFC 6570) and leads to no directory above.
fn has_form(uri: &str, form: &str) -> bool {
    let (mut pattern, mut rest) = ("^".to_owned(), form);
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else { return false };
        pattern += &regex::escape(literal);
        pattern += match expression.as_bytes().first() {
            Some(b'+') => "([^/].*)",
            Some(b'#') => "(?:#.*)?",
            Some(b'/') => "(?:/[^/?#]+)*",
            Some(b'?') => r"(?:\?[^#]*)?",
            Some(b'&') => "(?:&[^#]*)?",
            Some(_) => "([^/?#]+)",
            None => return false,
        };
        rest = after;
    }
    pattern += &format!("{}$", regex::escape(rest));
    // A template that is nothing but an expression would be none.
    if form.starts_with('{') || uri.len() > URI_BYTES || !stays_below(uri) {
        return false;
    }
    let matcher = RegexBuilder::new(&pattern).size_limit(MATCHER_BYTES).build();
    let Some(found) = matcher.ok().and_then(|matcher| matcher.captures(uri)) else { return false };
    // One that began with a slash would lead to the root.
    found.iter().skip(1).flatten().all(|expanded| !decoded(expanded.as_str()).starts_with('/'))
}

/// Whether no part of an address leads to a directory above, however it is written.
fn stays_below(uri: &str) -> bool {
    let is_odd = |char: char| char.is_control() || char.is_whitespace();
    let ends = ['/', '?', '#', '=', '&', ';', ','];
    !uri.contains(is_odd) && !decoded(uri).split(ends).any(|part| part == "..")
}

/// Dots and slashes as such. Some programs take a backslash for a slash.
fn decoded(text: &str) -> String {
    text.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/")
}

/// The members of a resource or a template that are handed on, cleaned.
fn told(entry: &Map<String, Value>, guard: &Guard) -> Map<String, Value> {
    let told = TOLD.iter().filter_map(|key| Some((*key, entry.get(*key)?.as_str()?)));
    told.map(|(key, text)| {
        let most = if key.starts_with("uri") { URI_BYTES } else { TOLD_CHARS };
        (key.to_owned(), guard.beginning(text, most).into())
    })
    .collect()
}

/// What a server has answered, as the result of a call: its list, or what was read.
pub(super) async fn output(
    server: &str,
    answer: &RawValue,
    scope: &Arc<Scope>,
    named: &Mutex<Named>,
) -> Result<Output, Failure> {
    #[derive(Deserialize)]
    struct Said<'s> {
        #[serde(borrow)]
        contents: Option<Vec<&'s RawValue>>,
    }
    let said: Said<'_> = serde_json::from_str(answer.get()).map_err(|error| nonsense(server, &error))?;
    let Some(said) = said.contents else {
        let list = serde_json::from_str(answer.get()).map_err(|error| nonsense(server, &error))?;
        scope.check_size("result", answer.get().len())?;
        return Ok(Output { result: list, ..Output::default() });
    };
    let (mut contents, mut content, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    let mut room = WHOLE_CHARS;
    for (number, read) in said.into_iter().enumerate() {
        let Ok(Embedded { uri, text, blob, mime_type }) = serde_json::from_str::<Embedded>(read.get()) else {
            notices.push("content of a kind that is not known here was left out".to_owned());
            continue;
        };
        named.lock().remember(&uri);
        let mut part = json!({ "uri": uri });
        if let Some(kind) = &mime_type {
            part["mimeType"] = kind.as_str().into();
        }
        if let Some(text) = text {
            let shown = kept(text, number, room, scope, &mut notices).await;
            room = room.saturating_sub(shown.text.len());
            if shown.is_cut {
                part["whole"] = shown.file.into();
            }
            part["text"] = shown.text.into();
        } else {
            let bytes = blob.and_then(|blob| BASE64.decode(blob).ok());
            match (mime_type, bytes) {
                (Some(kind), Some(bytes)) if is_media_type(&kind, "image") => content.push(Content::Image(kind, bytes)),
                (Some(kind), Some(bytes)) if is_media_type(&kind, "audio") => content.push(Content::Audio(kind, bytes)),
                (_, bytes) => {
                    let bytes = bytes.map_or_else(|| "no".to_owned(), |bytes| bytes.len().to_string());
                    let what = format!("{bytes} bytes that are not text, an image or audio");
                    notices.push(format!("`{}` was left out: it has {what}", shown(&uri)));
                    continue;
                }
            }
        }
        contents.push(part);
    }
    notices.dedup();
    if let ([], [why, ..]) = (&contents[..], &notices[..]) {
        return Err(Failure::failed(format!("`{server}` gives nothing that can be handed on: {why}")));
    }
    let bytes = |part: &Content| match part {
        Content::Image(kind, bytes) | Content::Audio(kind, bytes) => kind.len() + bytes.len() + PART_BYTES,
        Content::Text(_) | Content::Link(_) => 0,
    };
    let result = json!({ "contents": contents });
    scope.check_size("result", result.to_string().len() + content.iter().map(bytes).sum::<usize>())?;
    Ok(Output { result, content, notices, ..Output::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_form_of_a_template_or_has_it_not() {
        for (uri, form) in [
            ("demo://text/7", "demo://text/{id}"),
            ("demo://text/a..b", "demo://text/{id}"),
            ("file:///a/b/c", "file:///{+path}"),
            ("note://x?tag=a", "note://x{?tag}"),
            ("note://x", "note://x{?tag}"),
            ("note://x?a=1&tag=a", "note://x?a=1{&tag}"),
            ("note://x#part", "note://x{#part}"),
            ("note://x/a/b", "note://x{/way*}"),
            ("a://b.c/1-2", "a://b.c/{x}-{y}"),
            ("a://b/ü", "a://b/{x}"),
        ] {
            assert!(has_form(uri, form), "{uri} {form}");
        }
        for (uri, form) in [
            ("demo://text/7/8", "demo://text/{id}"),
            ("demo://text/", "demo://text/{id}"),
            ("demo://other/7", "demo://text/{id}"),
            ("file:///etc/passwd", "{+anything}"),
            ("axb", "a.b"),
            ("xa://1", "a://{id}"),
            ("a://1", "a://{id"),
            ("a://", "a://{}"),
            ("file:///pub/../etc/passwd", "file:///pub{?v}"),
            ("file:///public-keys/x", "file:///pub{?v}"),
            ("file:///public-keys/x", "file:///pub{#v}"),
            ("file:///public-keys/x", "file:///pub{/v}"),
            ("file:///pub/../x", "file:///pub/{+path}"),
            ("file:///pub/..%2F..%2Fetc", "file:///pub/{name}"),
            ("file:///pub/%2e%2E", "file:///pub/{name}"),
            ("file:///pub/..", "file:///pub/{name}"),
            ("file:///pub/..\\x", "file:///pub/{name}"),
            ("file:///pub/../etc/passwd", "file:///pub/.{+path}"),
            ("file:///pub/..", "file:///pub/{a}{b}"),
            ("file:///pub/.\t./etc/passwd", "file:///pub/{+path}"),
            ("file:///pub/a\nb", "file:///pub/{name}"),
            ("x://f?name=../secret", "x://f{?name}"),
            ("file:///pub//etc/passwd", "file:///pub/{+path}"),
            ("file:///pub/%2Fetc%2Fpasswd", "file:///pub/{name}"),
        ] {
            assert!(!has_form(uri, form), "{uri} {form}");
        }
    }

    #[test]
    fn an_address_names_its_server_first() {
        assert_eq!(parted(&address("jotter", "file:///a?b#c")), Some(("jotter", "file:///a?b#c")));
        for other in ["upstream://jotter", "upstream://jotter/", "toolcrib://output/a", "file:///a"] {
            assert_eq!(parted(other), None, "{other}");
        }
        let (named, arguments) = (Mutex::new(Named::default()), r#"{"uri":"upstream://jotter/note://1"}"#);
        assert_eq!(wanted(arguments, "jotter", &named).as_deref(), Some("note://1"));
        assert_eq!(wanted(arguments, "other", &named).as_deref(), Some("upstream://jotter/note://1"));
        assert_eq!(wanted("{}", "jotter", &named), None);
        // A server may name such addresses itself.
        named.lock().remember("upstream://jotter/note://1");
        assert_eq!(wanted(arguments, "jotter", &named).as_deref(), Some("upstream://jotter/note://1"));
    }

    #[test]
    fn of_what_answers_name_the_last_are_remembered() {
        let mut named = Named::default();
        (0..10_000).for_each(|number| named.remember(&format!("a://{number}")));
        named.remember(&"x".repeat(1 << 20));
        assert!(named.links.len() <= MOST_LINKS && named.links.len() > MOST_LINKS / 3);
        assert!(named.has("a://9999") && !named.has("a://1"));
        // One that is named again is as good as new.
        for number in 10_000..20_000 {
            named.remember(&format!("a://{number}"));
            named.remember("a://9999");
        }
        assert!(named.has("a://9999"));
        (0..1000).for_each(|number| named.remember(&format!("{number:04}{}", "x".repeat(4000))));
        assert!(named.bytes <= LINKS_BYTES && named.links.keys().map(String::len).sum::<usize>() == named.bytes);
    }

    #[test]
    fn of_many_templates_the_description_has_some() {
        let template = |number: usize| {
            let said = json!({ "uriTemplate": format!("a://{number}/{{x}}"), "description": "d".repeat(5000) });
            said.as_object().cloned().unwrap()
        };
        let summary = summary(&definition((0..500).map(template).collect()));
        assert!(summary.len() < 4096 && summary.contains("492 more forms are in the list"), "{summary}");
    }
}
