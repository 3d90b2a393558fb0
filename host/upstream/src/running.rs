//! A server that runs: its tools held against what was accepted of it, and calls of them.

use super::accepted::{Accepted, AcceptedKind, AcceptedTool, differences};
use super::elicit;
use super::lines::Change;
use super::listing::{self, Has, Listed, MODERN, Offered, Trouble, client};
use super::made::Makings;
use super::params;
use super::prompts;
use super::resources::{self, Named};
use super::wire::{Request, Unanswered, Via, Wire};
use egress::Attached;
use http::header::HeaderMap;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that wait for a server at one time.
const MOST_CALLS: usize = 64;
/// How often a list is asked for again, when its server says that it has changed.
const AGAIN: Duration = Duration::from_secs(5);
/// How long that may take.
const LISTING: Duration = Duration::from_secs(45);
/// The same where servers do not say so.
const UNSAID: Duration = Duration::from_secs(60);

/// A server that was started.
pub(super) struct Running {
    pub(super) wire: Wire,
    pub(super) protocol: String,
    has: Has,
    /// The addresses of resources that it has named.
    pub(super) named: Mutex<Named>,
    /// Its list of resources is asked for by one at a time.
    pub(super) listing: tokio::sync::Mutex<()>,
    /// None of one that is elsewhere.
    pub(super) network: Option<Arc<Attached>>,
    /// None of one that writes nowhere.
    pub(super) makings: Option<Makings>,
    standing: Mutex<Arc<Standing>>,
    listed: tokio::sync::Mutex<Instant>,
}

/// What of a server's tools is as it was accepted.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// What is not, by the names under which tools are offered.
    withheld: BTreeMap<String, Withheld>,
}

/// Why something that was accepted is not called.
#[derive(Debug)]
pub(super) enum Withheld {
    /// It is another one now: a line for each difference.
    Changed(Vec<String>),
    /// Its list could not be had, for this reason.
    Unlisted(String),
}

impl Standing {
    fn of(accepted: &Accepted, now: &Listed) -> Self {
        let unlisted = |kind| now.unlisted.iter().find(|(unlisted, _)| *unlisted == kind).map(|(_, why)| why.clone());
        let mut withheld = BTreeMap::new();
        for (offered_as, tool) in &accepted.tools {
            let why = match (now.tools.get(&tool.offered()), unlisted(tool.kind)) {
                (Some(now), _) if now == tool => continue,
                (None, Some(why)) => Withheld::Unlisted(why),
                (None, None) => Withheld::Changed(vec!["the server does not list it any more".to_owned()]),
                (Some(now), _) if now.kind != tool.kind => {
                    Withheld::Changed(vec![format!("it was `{}`, and is `{}` now", tool.name, now.name)])
                }
                (Some(now), _) => {
                    Withheld::Changed(differences(&tool.definition.clone().into(), &now.definition.clone().into()))
                }
            };
            withheld.insert(offered_as.clone(), why);
        }
        Self { withheld }
    }

    /// Why a tool is not called; none where it is.
    pub(super) fn withheld(&self, tool: &str) -> Option<&Withheld> {
        self.withheld.get(tool)
    }

    /// Whether something of it could not be listed.
    fn is_unknown(&self) -> bool {
        self.withheld.values().any(|why| matches!(why, Withheld::Unlisted(_)))
    }
}

impl Running {
    pub(super) fn new(
        wire: Wire,
        network: Option<Arc<Attached>>,
        makings: Option<Makings>,
        said: &Offered,
        accepted: &Accepted,
    ) -> Self {
        let standing = Mutex::new(Arc::new(Standing::of(accepted, &said.listed)));
        Self {
            wire,
            protocol: said.protocol.clone(),
            has: said.has,
            named: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            network,
            makings,
            standing,
            listed: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.wire.has_ended()
    }

    pub(super) fn why_ended(&self) -> String {
        self.wire.why_ended()
    }

    /// How its tools stood when they were listed last.
    pub(super) fn stood(&self) -> Arc<Standing> {
        self.standing.lock().clone()
    }

    /// How its tools stand. They are listed again where they may be others by now, and that was not done a moment ago.
    pub(super) async fn standing(&self, accepted: &Accepted, via: &Via<'_>) -> Result<Arc<Standing>, Trouble> {
        // Who comes meanwhile waits for what comes of it.
        let mut listed = self.listed.lock().await;
        let is_unknown = self.stood().is_unknown() && listed.elapsed() >= UNSAID;
        let is_due = is_unknown
            || match self.wire.has_changed().filter(|_| self.protocol != MODERN) {
                None => listed.elapsed() >= UNSAID,
                Some(has_changed) => listed.elapsed() >= AGAIN && has_changed,
            };
        if is_due {
            // Boxed, like all here that is rare: each call would pay for the room that its future takes.
            Box::pin(self.list_again(accepted, via)).await?;
            *listed = Instant::now();
        }
        Ok(self.stood())
    }

    async fn list_again(&self, accepted: &Accepted, via: &Via<'_>) -> Result<(), Trouble> {
        // What it says from now on, it says of another list.
        let change = self.wire.take_change();
        let again = tokio::time::timeout(LISTING, listing::list(&self.wire, &self.protocol, self.has, via)).await;
        let again = again.unwrap_or_else(|_| {
            Err(listing::trouble(format!("did not list its tools within {} s", LISTING.as_secs())))
        })?;
        change.into_iter().for_each(Change::done);
        *self.standing.lock() = Arc::new(Standing::of(accepted, &again));
        Ok(())
    }

    /// Decides whether a call may be about what it names, before anybody is asked about it.
    pub(super) async fn check(
        &self,
        tool: &AcceptedTool,
        arguments: &str,
        most: Duration,
        via: &Via<'_>,
    ) -> Result<(), Unanswered> {
        let wanted = match tool.kind {
            AcceptedKind::Tool | AcceptedKind::Prompt => None,
            AcceptedKind::Resources => resources::wanted(arguments, via.grant.name(), &self.named),
        };
        let Some(uri) = wanted else { return Ok(()) };
        let checked =
            Box::pin(tokio::time::timeout(most, resources::check_named(self, &uri, &tool.definition, via))).await;
        checked.unwrap_or(Err(Unanswered::Late))
    }

    /// Calls a tool, or what is called as one; `arguments` are a JSON object.
    pub(super) async fn call(
        &self,
        tool: &AcceptedTool,
        arguments: &str,
        may_have_acted: bool,
        most: Duration,
        via: &Via<'_>,
    ) -> Result<Box<RawValue>, Unanswered> {
        if self.wire.in_flight() >= MOST_CALLS {
            return Err(Unanswered::Busy);
        }
        let asked = match tool.kind {
            AcceptedKind::Tool => Asked::by_name("tools/call", &tool.name, arguments),
            AcceptedKind::Prompt => Asked::by_name("prompts/get", prompts::name(&tool.definition), arguments),
            AcceptedKind::Resources => match resources::wanted(arguments, via.grant.name(), &self.named) {
                None => {
                    let listed = tokio::time::timeout(most, resources::list(self, &tool.definition, via));
                    return Box::pin(listed).await.unwrap_or(Err(Unanswered::Late));
                }
                Some(uri) => {
                    let members = format!("\"uri\":{}", Value::from(uri.as_str()));
                    Asked { method: "resources/read", about: uri, members }
                }
            },
        };
        let headers = match tool.kind == AcceptedKind::Tool && self.protocol == MODERN && self.wire.has_headers() {
            true => params::headers(&tool.definition, arguments),
            false => HeaderMap::new(),
        };
        let is_modern = self.protocol == MODERN;
        let (mut more, mut left, mut most) = (String::new(), elicit::MOST, most);
        // In the newer era the answer is a question, in the older ones there are requests meanwhile.
        let questions = if !is_modern && elicit::is_allowed(via) { elicit::MOST } else { 0 };
        loop {
            let begin = Instant::now();
            let (method, about, headers) = (asked.method, Some(asked.about.as_str()), headers.clone());
            let request = Request { method, about, headers, may_have_acted, most, questions };
            let params = |id: u64| {
                let mut meta = client(&self.protocol, via);
                meta.insert("progressToken".into(), id.into());
                format!("{{{}{more},\"_meta\":{}}}", asked.members, Value::from(meta))
            };
            let result = self.wire.ask(request, params, via).await?;
            if !is_modern {
                return Ok(result);
            }
            most = most.saturating_sub(begin.elapsed());
            match Box::pin(elicit::went_on(&result, &mut left, via)).await? {
                Some(answers) => more = answers,
                None => return Ok(result),
            }
        }
    }
}

/// What a server is asked in a call.
struct Asked {
    method: &'static str,
    /// What it is about, as a header says it.
    about: String,
    /// The members of its parameters that say so.
    members: String,
}

impl Asked {
    fn by_name(method: &'static str, name: &str, arguments: &str) -> Self {
        let members = format!("\"name\":{},\"arguments\":{arguments}", Value::from(name));
        Self { method, about: name.to_owned(), members }
    }
}
