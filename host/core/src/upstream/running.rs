//! A server that runs: its tools held against what was accepted of it, and calls of them.

use super::accepted::{Accepted, AcceptedTool, differences};
use super::elicit;
use super::lines::Change;
use super::listing::{self, MODERN, Offered, Trouble, client};
use super::params;
use super::wire::{Request, Unanswered, Via, Wire};
use crate::egress::Attached;
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that wait for a server at one time.
const MOST_CALLS: usize = 64;
/// How often a list is asked for again, when its server says that it has changed.
const AGAIN: Duration = Duration::from_secs(5);
/// How long that may take.
const LISTING: Duration = Duration::from_secs(30);
/// The same where servers do not say so.
const UNSAID: Duration = Duration::from_secs(60);

/// A server that was started.
pub(super) struct Running {
    wire: Wire,
    protocol: String,
    /// None of one that is elsewhere.
    pub(super) network: Option<Arc<Attached>>,
    standing: Mutex<Arc<Standing>>,
    listed: tokio::sync::Mutex<Instant>,
}

/// What of a server's tools is as it was accepted.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// What is not, by the names under which tools are offered: why, a line each.
    withheld: BTreeMap<String, Vec<String>>,
}

impl Standing {
    fn of(accepted: &Accepted, tools: &BTreeMap<String, Map<String, Value>>) -> Self {
        let mut withheld = BTreeMap::new();
        for (offered_as, tool) in &accepted.tools {
            let why = match tools.get(&tool.name) {
                None => vec!["the server does not list it any more".to_owned()],
                Some(now) if *now == tool.definition => continue,
                Some(now) => differences(&tool.definition.clone().into(), &now.clone().into()),
            };
            withheld.insert(offered_as.clone(), why);
        }
        Self { withheld }
    }

    /// What is another now than was accepted of a tool, a line each; none where nothing is.
    pub(super) fn withheld(&self, tool: &str) -> Option<&[String]> {
        self.withheld.get(tool).map(Vec::as_slice)
    }
}

impl Running {
    pub(super) fn new(wire: Wire, network: Option<Arc<Attached>>, said: &Offered, accepted: &Accepted) -> Self {
        let standing = Mutex::new(Arc::new(Standing::of(accepted, &said.tools)));
        Self {
            wire,
            protocol: said.protocol.clone(),
            network,
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
        let is_due = match self.wire.has_changed().filter(|_| self.protocol != MODERN) {
            None => listed.elapsed() >= UNSAID,
            Some(has_changed) => listed.elapsed() >= AGAIN && has_changed,
        };
        if is_due {
            // What it says from now on, it says of another list.
            let change = self.wire.take_change();
            let again = tokio::time::timeout(LISTING, listing::list(&self.wire, &self.protocol, via)).await;
            let again = again.unwrap_or_else(|_| {
                Err(listing::trouble(format!("did not list its tools within {} s", LISTING.as_secs())))
            });
            let (tools, _) = again?;
            change.into_iter().for_each(Change::done);
            *self.standing.lock() = Arc::new(Standing::of(accepted, &tools));
            *listed = Instant::now();
        }
        Ok(self.stood())
    }

    /// Calls a tool; `arguments` are a JSON object.
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
        let headers = match self.protocol == MODERN && self.wire.has_headers() {
            true => params::headers(&tool.definition, arguments),
            false => HeaderMap::new(),
        };
        let name = Value::from(tool.name.as_str());
        let is_modern = self.protocol == MODERN;
        let (mut more, mut left, mut most) = (String::new(), elicit::MOST, most);
        // In the newer era the answer is a question, in the older ones there are requests meanwhile.
        let questions = if !is_modern && elicit::is_allowed(via) { elicit::MOST } else { 0 };
        loop {
            let begin = Instant::now();
            let headers = headers.clone();
            let request =
                Request { method: "tools/call", tool: Some(&tool.name), headers, may_have_acted, most, questions };
            let params = |id: u64| {
                let mut meta = client(&self.protocol, via);
                meta.insert("progressToken".into(), id.into());
                format!("{{\"name\":{name},\"arguments\":{arguments}{more},\"_meta\":{}}}", Value::from(meta))
            };
            let result = self.wire.ask(request, params, via).await?;
            if !is_modern {
                return Ok(result);
            }
            most = most.saturating_sub(begin.elapsed());
            match elicit::went_on(&result, &mut left, via).await? {
                Some(answers) => more = answers,
                None => return Ok(result),
            }
        }
    }
}
