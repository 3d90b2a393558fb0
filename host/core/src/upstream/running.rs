//! A server that runs: its tools held against what was accepted of it, and calls of them.

use super::accepted::{Accepted, differences};
use super::lines::{Answer, Asked, LINE_BYTES, Lines, Progress, Refusal};
use super::listing::{self, MODERN, Offered, Trouble, client};
use crate::egress::Attached;
use parking_lot::Mutex;
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
    lines: Lines,
    protocol: String,
    pub(super) network: Arc<Attached>,
    standing: Mutex<Arc<Standing>>,
    listed: tokio::sync::Mutex<Instant>,
}

/// What of a server's tools is as it was accepted.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// What is not, by the names under which tools are offered: why, a line each.
    withheld: BTreeMap<String, Vec<String>>,
}

/// Why a call has no result.
pub(super) enum Unanswered {
    /// The server says so.
    Refused(Refusal),
    TooLong,
    /// It is there no more, since before the call or since.
    Ended {
        why: String,
        was_sent: bool,
    },
    Busy,
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
    pub(super) fn new(lines: Lines, network: Arc<Attached>, said: &Offered, accepted: &Accepted) -> Self {
        let standing = Mutex::new(Arc::new(Standing::of(accepted, &said.tools)));
        Self {
            lines,
            protocol: said.protocol.clone(),
            network,
            standing,
            listed: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lines.has_ended()
    }

    pub(super) fn why_ended(&self) -> String {
        self.lines.why_ended()
    }

    /// How its tools stood when they were listed last.
    pub(super) fn stood(&self) -> Arc<Standing> {
        self.standing.lock().clone()
    }

    /// How its tools stand. They are listed again where they may be others by now, and that was not done a moment ago.
    pub(super) async fn standing(&self, accepted: &Accepted) -> Result<Arc<Standing>, Trouble> {
        // Who comes meanwhile waits for what comes of it.
        let mut listed = self.listed.lock().await;
        let is_due = match self.protocol == MODERN {
            true => listed.elapsed() >= UNSAID,
            false => listed.elapsed() >= AGAIN && self.lines.has_changed(),
        };
        if is_due {
            // What it says from now on, it says of another list.
            let change = self.lines.take_change();
            let again = tokio::time::timeout(LISTING, listing::list(&self.lines, &self.protocol)).await;
            let again = again.unwrap_or_else(|_| Err(format!("did not list its tools within {} s", LISTING.as_secs())));
            let (tools, _) = again?;
            change.done();
            *self.standing.lock() = Arc::new(Standing::of(accepted, &tools));
            *listed = Instant::now();
        }
        Ok(self.stood())
    }

    /// Calls a tool; `arguments` are a JSON object. Reports of progress are handed on until there is a result.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        mut reported: impl FnMut(Progress),
    ) -> Result<Box<RawValue>, Unanswered> {
        if self.lines.has_ended() {
            return Err(Unanswered::Ended { why: self.lines.why_ended(), was_sent: false });
        }
        if self.lines.in_flight() >= MOST_CALLS || self.lines.is_full() {
            return Err(Unanswered::Busy);
        }
        let name = Value::from(tool);
        let asked = self.lines.ask("tools/call", |id| {
            let mut meta = client(&self.protocol);
            meta.insert("progressToken".into(), id.into());
            format!("{{\"name\":{name},\"arguments\":{arguments},\"_meta\":{}}}", Value::from(meta))
        });
        let Asked { id, mut answer, mut progress } = asked;
        let _waits = self.lines.waits(id);
        let answered = loop {
            tokio::select! {
                answered = &mut answer => break answered,
                Some(report) = progress.recv() => reported(report),
            }
        };
        match answered {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Error(refusal)) => Err(Unanswered::Refused(refusal)),
            Ok(Answer::TooLong) => Err(Unanswered::TooLong),
            Err(_) => Err(Unanswered::Ended { why: self.lines.why_ended(), was_sent: true }),
        }
    }
}

/// What a message says of an answer that is too long.
pub(super) fn too_long() -> String {
    format!("limit: an answer of a server {} MiB", LINE_BYTES >> 20)
}
