//! What is looked for in one call, and what becomes of it where it is found: in what the call does, says, and gives back.
//!
//! `leaks` finds; which exits there are is said here, once: whatever leaves a call passes one of these functions.

use crate::event::Event;
use crate::session::Session;
use audit::Action;
use base::declaration::Declaration;
use base::envelope::{Content, Failure, Output};
use base::text::sanitize;
use config::{LeakAction, LeakGate, Leaks, Needed, Remedies, ShapeAction};
use leaks::{Known, Stream, shapes};
use parking_lot::Mutex;
use secrets::Secrets;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Texts of a result that the next one may go on with: its last ones, which it is held against with its first ones.
const TAILS: usize = 4;
const HEADS: usize = 8;

/// What a call does that leaves its plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// A request to a web server.
    Request,
    /// A text that is typed into a page.
    Typed,
    /// A command, or keys for a pane.
    Command,
    /// A file that a tool writes.
    Write,
    /// A file that goes to the embedder with an event.
    Event,
}

impl Exit {
    /// The setting that decides, with how messages name the exit, and what to do instead.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Request => (
                "requests",
                "request",
                "remove it; a secret goes into the headers that `http.headers` of a plugin names",
            ),
            Self::Typed => {
                ("requests", "text", "give the name of the secret in place of the text, as `secret` of `browser_type`")
            }
            Self::Command => (
                "commands",
                "command",
                "write its name instead, as in `$NAME`, where `shell_secrets` under [tools] has it",
            ),
            Self::Write => ("writes", "content", "remove it; programs read a secret from where it is kept"),
            Self::Event => ("embedder", "file", "send one without it"),
        }
    }
}

/// Looks after the exits of one call.
pub struct Guard {
    secrets: Arc<Secrets>,
    rules: Leaks,
    remedies: Remedies,
    /// The secrets that came up in what the call says and gives back.
    found: Mutex<BTreeSet<String>>,
    /// What the result has to say.
    notices: Mutex<Vec<String>>,
    /// The end of what the guest said last.
    said: Mutex<Vec<u8>>,
}

impl Guard {
    pub fn new(secrets: Arc<Secrets>, rules: Leaks, remedies: Remedies) -> Self {
        let (found, notices, said) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { secrets, rules, remedies, found, notices, said }
    }

    /// Decides whether something may leave that consists of these parts.
    ///
    /// # Errors
    ///
    /// `denied` where it holds a secret, or looks as if it did, and settings refuse that.
    pub fn check<'p>(&self, exit: Exit, parts: impl IntoIterator<Item = &'p [u8]> + Clone) -> Result<(), Failure> {
        let (key, what, instead) = exit.words();
        let gate = match exit {
            Exit::Request | Exit::Typed => self.rules.requests,
            Exit::Command => self.rules.commands,
            Exit::Write => self.rules.writes,
            Exit::Event => match self.rules.embedder {
                LeakAction::Warn => LeakGate::Warn,
                // A file is not rewritten.
                LeakAction::Redact | LeakAction::Block => LeakGate::Block,
            },
        };
        let known = self.secrets.known();
        let secret = parts.clone().into_iter().find_map(|part| known.find(part));
        if let Some(name) = secret {
            let message = format!("the {what} holds the value of the secret `{name}`");
            match gate {
                LeakGate::Warn => self.notice(message),
                LeakGate::Block => {
                    let line = format!("{instead}; `{key} = \"warn\"` under [leaks] lets it pass");
                    let hint = self.remedies.hint(&format!("leaks.{key}"), &Needed::AtMost("warn"), line);
                    return Err(Failure::denied(message).hint(hint));
                }
            }
        }
        let shape = || parts.into_iter().filter_map(|part| std::str::from_utf8(part).ok()).find_map(first_shape);
        let found = |shape: &str| format!("the {what} holds what looks like {shape}");
        match self.rules.shapes {
            ShapeAction::Off => {}
            ShapeAction::Warn => shape().into_iter().for_each(|shape| self.notice(found(shape))),
            ShapeAction::Block => {
                if let Some(shape) = shape() {
                    let line = "remove it; `shapes = \"warn\"` under [leaks] lets it pass";
                    let hint = self.remedies.hint("leaks.shapes", &Needed::AtMost("warn"), line);
                    return Err(Failure::denied(found(shape)).hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Decides whether an event may go to the embedder; what settings have taken out of it is gone from the payload, and said.
    ///
    /// # Errors
    ///
    /// `denied` where it holds a secret, or looks as if it did, and settings refuse that; with the place, as a JSON pointer.
    pub fn check_event(&self, kind: &str, payload: &mut Value) -> Result<(), Failure> {
        let known = self.secrets.known();
        let mut found = Vec::new();
        if known.longest() > 0 {
            each_place(payload, &mut String::new(), &mut |place, text| {
                found.extend(known.names(text.as_bytes()).map(|name| (name.to_owned(), place.to_owned())));
            });
        }
        found.dedup();
        let said = |(name, place): &(String, String)| {
            format!("the event `{kind}` holds the value of the secret `{name}` at `{place}`")
        };
        match (self.rules.embedder, found.first()) {
            (_, None) => {}
            (LeakAction::Warn, Some(_)) => found.iter().for_each(|one| self.notice(said(one))),
            (LeakAction::Redact, Some(_)) => {
                each_leaf(payload, &mut |text| match known.redact(text) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(redacted) => Some(redacted),
                });
                for (name, place) in &found {
                    self.notice(format!("the value of the secret `{name}` was taken out of the event at `{place}`"));
                }
            }
            (LeakAction::Block, Some(first)) => {
                let line = "remove it; `embedder = \"redact\"` under [leaks] puts its name in its place";
                let hint = self.remedies.hint("leaks.embedder", &Needed::AtMost("redact"), line);
                return Err(Failure::denied(said(first)).hint(hint));
            }
        }
        let mut shape = None;
        let looks = self.rules.shapes != ShapeAction::Off;
        each_place(payload, &mut String::new(), &mut |place, text| {
            if looks && shape.is_none() {
                shape = first_shape(text).map(|shape| (shape, place.to_owned()));
            }
        });
        let Some((shape, place)) = shape else { return Ok(()) };
        let message = format!("the event `{kind}` holds what looks like {shape} at `{place}`");
        match self.rules.shapes {
            ShapeAction::Off | ShapeAction::Warn => self.notice(message),
            ShapeAction::Block => {
                let line = "remove it; `shapes = \"warn\"` under [leaks] lets it pass";
                let hint = self.remedies.hint("leaks.shapes", &Needed::AtMost("warn"), line);
                return Err(Failure::denied(message).hint(hint));
            }
        }
        Ok(())
    }

    /// The text without any secret, for people and for the record.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.known().redact(text)
    }

    /// The text as a result may have it.
    pub fn redact_result<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.rules.results {
            LeakAction::Warn => Cow::Borrowed(text),
            LeakAction::Redact | LeakAction::Block => self.redact(text),
        }
    }

    /// There are values that it looks for.
    pub fn knows_secrets(&self) -> bool {
        self.secrets.known().longest() > 0
    }

    /// Takes every secret out of what a server answers, as it comes.
    pub fn answer_stream(&self) -> Stream {
        Stream::new(self.secrets.known())
    }

    /// A failure without any secret: it may say what a server has.
    pub fn redact_failure(&self, failure: Failure) -> Failure {
        let text = |text: String| self.redact(&text).into_owned();
        Failure { message: text(failure.message), hint: failure.hint.map(text), ..failure }
    }

    /// A header of an answer, without any secret.
    pub fn redact_bytes(&self, bytes: &mut Vec<u8>) {
        if let Cow::Owned(redacted) = self.secrets.known().redact_bytes(bytes) {
            *bytes = redacted;
        }
    }

    /// The beginning of a text for the record. It is cleaned first, as what is left out may have parted a secret, and cut last: half of one would not
    /// be known any more.
    pub fn beginning(&self, text: &str, chars: usize) -> String {
        let longest = self.secrets.known().longest();
        let (clean, is_whole) = sanitize::opening(text, chars + longest);
        let redacted = self.redact(&clean);
        // Where it was cut may be half of a secret.
        let unsure = if is_whole { 0 } else { longest };
        let sure = redacted.chars().count().saturating_sub(unsure);
        sanitize::line(&redacted.chars().take(sure.min(chars)).collect::<String>()).into_owned()
    }

    /// An action as it goes on record.
    pub fn recorded(&self, action: Action) -> Action {
        let text = |text: String| self.redact(&text).into_owned();
        // What is left out of a line may have parted a secret.
        let line = |text: String| self.redact(&sanitize::line(&text)).into_owned();
        Action {
            capability: action.capability,
            what: text(action.what),
            confinement: action.confinement.map(line),
            declaration: action.declaration.map(|said| Declaration { why: line(said.why), ..said }),
            decision: line(action.decision),
        }
    }

    /// The output of a command, on its way to who asked for it.
    pub fn stream(&self) -> Redactor<'_> {
        let known = match self.rules.results {
            LeakAction::Warn => Arc::default(),
            LeakAction::Redact | LeakAction::Block => self.secrets.known(),
        };
        Redactor { guard: self, stream: Some(Stream::new(known)) }
    }

    /// An event that is no piece of a stream; a guest may spread a text over several.
    pub fn event(&self, event: Event) -> Event {
        match event {
            Event::Started { detail } => Event::Started { detail: self.redact(&detail).into_owned() },
            Event::Log { level, text } => Event::Log { level, text: self.said(text) },
            Event::Progress { done, total, message } => {
                Event::Progress { done, total, message: message.map(|message| self.said(message)) }
            }
            Event::Stdout { .. } | Event::Stderr { .. } | Event::Completed { .. } => event,
        }
    }

    fn said(&self, mut text: String) -> String {
        let known = self.secrets.known();
        if known.longest() > 0 && self.rules.results != LeakAction::Warn {
            let before = text.clone();
            let mut said = self.said.lock();
            text = self.clean(&known, &[&said], &text).unwrap_or(text);
            *said = tail(&known, &before);
        }
        text
    }

    /// Puts the name of each secret in its place, also of one that began at the end of an earlier text.
    fn clean(&self, known: &Known, before: &[&Vec<u8>], text: &str) -> Option<String> {
        let ended = before.iter().find_map(|tail| known.completed(tail, text)).map(|(length, name)| {
            self.found.lock().insert(name.to_owned());
            format!("[secret:{name}]{}", &text[length..])
        });
        let text = ended.as_deref().unwrap_or(text);
        match known.redact(text) {
            Cow::Borrowed(_) => ended,
            Cow::Owned(redacted) => {
                self.found.lock().extend(known.names(text.as_bytes()).map(str::to_owned));
                Some(redacted)
            }
        }
    }

    /// Has the result say something.
    pub fn notice(&self, notice: String) {
        // What others wrote may be in it.
        let notice = self.redact(&notice).into_owned();
        let mut notices = self.notices.lock();
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// What goes back to the caller: the outcome without secrets, or a refusal in its place, with what is to be said of it.
    pub fn outcome(&self, outcome: Result<Output, Failure>, session: &Session) -> Result<Output, Failure> {
        let mut outcome = self.without_secrets(outcome, session);
        let looks_like = match self.rules.shapes {
            ShapeAction::Off => BTreeSet::new(),
            ShapeAction::Warn | ShapeAction::Block => without_keys(&mut outcome),
        };
        if self.rules.shapes == ShapeAction::Block && !looks_like.is_empty() {
            outcome = Err(self.held_back(&looks_like));
        } else {
            looks_like.iter().for_each(|kind| self.notice(format!("the result holds what looks like {kind}")));
        }
        if let Ok(output) = &mut outcome {
            output.notices.append(&mut self.notices.lock());
        }
        outcome
    }

    fn without_secrets(&self, mut outcome: Result<Output, Failure>, session: &Session) -> Result<Output, Failure> {
        let known = self.secrets.known();
        if known.longest() == 0 {
            return outcome;
        }
        let redacts = match self.rules.results {
            LeakAction::Warn => false,
            LeakAction::Redact | LeakAction::Block => true,
        };
        let earlier = session.tails();
        let (mut seen, mut last) = (0, Vec::new());
        each_text(&mut outcome, &mut |text| {
            if !redacts {
                self.found.lock().extend(known.names(text.as_bytes()).map(str::to_owned));
                return None;
            }
            let earlier = if seen < HEADS { earlier.as_slice() } else { &[] };
            let before: Vec<&Vec<u8>> = earlier.iter().chain(last.last()).collect();
            let cleaned = self.clean(&known, &before, text);
            seen += 1;
            if last.len() == TAILS {
                last.remove(0);
            }
            last.push(tail(&known, text));
            cleaned
        });
        session.remember_tails(last);
        // An image is not rewritten.
        let in_bytes = |content: &Content| match content {
            Content::Image(_, bytes) | Content::Audio(_, bytes) => known.find(bytes).map(str::to_owned),
            Content::Text(_) | Content::Link(_) => None,
        };
        let pictured = outcome.as_ref().ok().and_then(|output| output.content.iter().find_map(in_bytes));
        let found = self.found.lock();
        let names: Vec<String> = found.iter().chain(&pictured).map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            return outcome;
        }
        let names = names.join(", ");
        match (self.rules.results, pictured) {
            (LeakAction::Warn, _) => self.notice(format!("the result holds the value of a secret: {names}")),
            (LeakAction::Redact, None) => {
                self.notice(format!("the value of a secret was taken out of the result: {names}"))
            }
            (LeakAction::Redact, Some(_)) | (LeakAction::Block, _) => {
                let message = format!("the result holds the value of a secret, so it is held back: {names}");
                let line = "what the call did is done; `results = \"redact\"` under [leaks] lets the rest pass";
                let hint = self.remedies.hint("leaks.results", &Needed::AtMost("redact"), line);
                return Err(Failure::denied(message).hint(hint));
            }
        }
        outcome
    }

    /// Instead of a result in which something looks like a secret.
    fn held_back(&self, looks_like: &BTreeSet<&str>) -> Failure {
        let kinds = looks_like.iter().copied().collect::<Vec<_>>().join(", ");
        let line = "what the call did is done; `shapes = \"warn\"` under [leaks] lets the result pass";
        let hint = self.remedies.hint("leaks.shapes", &Needed::AtMost("warn"), line);
        Failure::denied(format!("the result holds what looks like {kinds}, so it is held back")).hint(hint)
    }
}

/// Takes private keys out of an outcome, and returns what in it looks like a secret.
fn without_keys(outcome: &mut Result<Output, Failure>) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    each_text(outcome, &mut |text| {
        if text.len() < shapes::SHORTEST {
            return None;
        }
        kinds.extend(shapes::find(text).iter().map(|shape| shape.name));
        match shapes::redact_keys(text) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        }
    });
    kinds
}

/// Takes the secrets out of one stream.
pub struct Redactor<'g> {
    guard: &'g Guard,
    stream: Option<Stream>,
}

impl Redactor<'_> {
    pub fn push<'p>(&mut self, piece: &'p [u8]) -> Cow<'p, [u8]> {
        let stream = self.stream.as_mut().expect("a stream that has ended is dropped");
        stream.push(piece)
    }

    /// Ends it, and returns what was held back.
    pub fn finish(mut self) -> Vec<u8> {
        let stream = self.stream.take().expect("a stream ends once");
        let (rest, found) = stream.finish();
        self.guard.found.lock().extend(found);
        rest
    }
}

/// What of a text may begin a secret that the next one ends.
fn tail(known: &Known, text: &str) -> Vec<u8> {
    text.as_bytes()[text.len() - known.longest().min(text.len())..].to_vec()
}

/// The first thing in a text that looks like a secret.
#[must_use]
pub fn first_shape(text: &str) -> Option<&'static str> {
    shapes::find(text).first().map(|shape| shape.name)
}

/// Visits each text of an outcome, in order; what the visit returns takes its place.
fn each_text(outcome: &mut Result<Output, Failure>, visit: &mut impl FnMut(&str) -> Option<String>) {
    match outcome {
        Ok(output) => {
            each_leaf(&mut output.result, visit);
            for content in &mut output.content {
                match content {
                    Content::Text(text) | Content::Link(text) | Content::Image(text, _) | Content::Audio(text, _) => {
                        replace(text, visit);
                    }
                }
            }
            output.notices.iter_mut().for_each(|notice| replace(notice, visit));
        }
        Err(failure) => {
            replace(&mut failure.message, visit);
            failure.hint.iter_mut().for_each(|hint| replace(hint, visit));
            failure.data.iter_mut().for_each(|data| each_leaf(data, visit));
        }
    }
}

fn replace(text: &mut String, visit: &mut impl FnMut(&str) -> Option<String>) {
    if let Some(other) = visit(text) {
        *text = other;
    }
}

/// Shows each text of a JSON value, names of members and numbers too, with the JSON pointer to it.
fn each_place(value: &Value, place: &mut String, show: &mut impl FnMut(&str, &str)) {
    let length = place.len();
    match value {
        Value::String(text) => show(place, text),
        Value::Number(number) => show(place, &number.to_string()),
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                let _ = write!(place, "/{index}");
                each_place(entry, place, show);
                place.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                // The name itself may be the secret: its place is that of the object.
                show(place, name);
                let _ = write!(place, "/{}", name.replace('~', "~0").replace('/', "~1"));
                each_place(member, place, show);
                place.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Visits each text of a JSON value, names of members too.
pub fn each_leaf(value: &mut Value, visit: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => replace(text, visit),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| each_leaf(entry, visit)),
        Value::Object(members) => {
            let renamed = |name: &String| visit(name).map(|other| (name.clone(), other));
            let renamed: Vec<_> = members.keys().filter_map(renamed).collect();
            for (name, other) in renamed {
                let value = members.remove(&name).expect("the name is of a member");
                members.insert(other, value);
            }
            members.values_mut().for_each(|member| each_leaf(member, visit));
        }
        Value::Number(number) => {
            if let Some(other) = visit(&number.to_string()) {
                *value = Value::String(other);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
