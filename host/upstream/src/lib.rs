//! Servers of the Model Context Protocol (MCP) that others wrote, and whose tools this host offers as if they were its own.
//!
//! What a server offers was accepted by a person and is kept word for word (`accepted.rs`): models read that, and a tool of which the server says
//! something else by now is not called. Prompts (`prompts.rs`) and resources (`resources.rs`) are called as tools. A server is started in a cell (`program.rs`) with the first call that needs it, one for each caller, greeted and
//! asked for its list (`listing.rs`), spoken to in lines (`lines.rs`, `running.rs`), and started again when it has ended. What may be called is
//! decided by `policy/upstream.rs`; `tools/provider/upstream.rs` makes tools of what was accepted.
//!
//! `serve` is built on the server of rmcp 3.9, but its client is not used here. With rmcp on both sides a call took 2.2 to 2.9 times as long as
//! without a host between. One tool without `inputSchema` cost the whole list, and a list without an end took 934 MiB in 5 s.
//!
//! It depends on `egress` and `backend`, by which servers are reached, on `policy` and `contract`, and on `audit`, `base`, `config`, `leaks` and `secrets`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod accepted;
mod elicit;
mod events;
mod interpreter;
mod lines;
mod link;
mod listing;
mod made;
mod message;
mod outgoing;
mod package;
mod pages;
mod params;
mod program;
mod prompts;
mod questions;
mod reading;
mod resources;
mod result;
mod running;
mod web;
mod wire;

pub use accepted::{Accepted, AcceptedKind, AcceptedTool, differences, offered_as};
pub use resources::{address, parted};

use base::dirs::Dirs;
use base::envelope::{Failure, Kind, Output};
use base::target::Target;
use config::UpstreamSection;
use egress::{Attached, Egress};
use futures_util::future::BoxFuture;
use link::Link;
use listing::{Offered, Trouble, shown};
use made::Makings;
use parking_lot::Mutex;
use policy::guard::Exit;
use policy::scope::Scope;
use policy::upstream::UpstreamGrant;
use program::Start;
use running::{Running, Withheld};
use secrets::Secrets;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};
use web::Web;
use wire::{Unanswered, Via, Wire, too_long};

/// Servers that are started at one time.
const STARTING: usize = 4;
/// How long a server may take from its start to its list.
const START: Duration = Duration::from_secs(60);
/// How long it is not started again after it failed: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that ran so long has not failed at its start.
const SETTLED: Duration = Duration::from_secs(60);

/// The servers of a host.
pub struct Upstreams {
    /// None where nothing is started.
    dirs: Option<Dirs>,
    egress: Arc<Egress>,
    secrets: Arc<Secrets>,
    /// By caller and name.
    all: Mutex<HashMap<(String, String), Arc<Slot>>>,
    starting: Semaphore,
    /// Whether a server can be confined: why not.
    confines: OnceCell<Result<(), String>>,
}

/// A server for one caller.
#[derive(Default)]
struct Slot {
    /// One call starts it, others wait.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Arc<Running>>,
    /// What it was started by: other settings start another one.
    declared: String,
    since: Option<Instant>,
    /// Starts that failed, one after the other, and when the next is tried.
    failures: u32,
    next: Option<Instant>,
    why: String,
}

/// A server as settings have it, with what was accepted of it.
pub struct Upstream {
    pub name: String,
    pub section: UpstreamSection,
    pub accepted: Arc<Accepted>,
    /// The digest of both.
    pub declared: String,
}

impl Upstream {
    /// Whether a tool only reads, by the name under which it is offered.
    pub fn only_reads(&self, tool: &str) -> bool {
        self.accepted.tools.get(tool).is_some_and(|known| self.section.only_reads(&known.name))
    }
}

/// A server that was started, and has said what it offers.
struct Greeted {
    wire: Wire,
    /// None of one that is elsewhere.
    network: Option<Arc<Attached>>,
    /// None of one that writes nowhere.
    makings: Option<Makings>,
    said: Offered,
    /// What it was refused meanwhile.
    refused: Vec<String>,
}

/// What a server says that nobody has accepted yet.
pub struct Look {
    /// What there is to accept.
    pub accepted: Accepted,
    /// Its tools that cannot be offered, each with the reason as the rest of a sentence.
    pub unfit: Vec<(String, String)>,
    /// What of its list was left out, a sentence each.
    pub notices: Vec<String>,
    /// What it was refused meanwhile, with the lines that would open it.
    pub refused: Vec<String>,
}

impl Upstreams {
    pub fn new(dirs: &Dirs, egress: &Arc<Egress>, secrets: &Arc<Secrets>) -> Self {
        Self {
            dirs: Some(dirs.clone()),
            egress: egress.clone(),
            secrets: secrets.clone(),
            all: Mutex::default(),
            starting: Semaphore::new(STARTING),
            confines: OnceCell::new(),
        }
    }

    fn dirs(&self) -> Result<&Dirs, Failure> {
        self.dirs.as_ref().ok_or_else(|| Failure::new(Kind::Unavailable, "no server is started here"))
    }

    /// Whether a server can be confined here, which is tried once.
    ///
    /// # Errors
    ///
    /// `unavailable`, with why not.
    pub fn check_confined(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.confines.get_or_init(program::check_confined).await.clone().map_err(|why| {
                Failure::new(Kind::Unavailable, format!("a server cannot be confined here: {why}")).hint(
                "`toolcrib doctor` says what this system does not let programs do; without a cell no server is started",
            )
            })
        })
    }

    /// Starts a server alone to see what it offers, and ends it.
    pub fn look<'a>(
        &'a self,
        name: &'a str,
        section: &'a UpstreamSection,
        grant: &'a Arc<UpstreamGrant>,
        scope: &'a Arc<Scope>,
    ) -> BoxFuture<'a, Result<Look, Failure>> {
        Box::pin(async move {
            let start = Start { name, principal: "toolcrib", section, confine: grant.confine() };
            let Greeted { wire: _wire, said, refused, .. } = self.greeted(&start, false, &Via { grant, scope }).await?;
            let unavailable =
                |error: &dyn std::fmt::Display| Failure::new(Kind::Unavailable, format!("`{name}`: {error}"));
            let (whose, what, limits) = (name.to_owned(), section.clone(), scope.limits.clone());
            let accepted = tokio::task::spawn_blocking(move || {
                Accepted::of(&whose, &what, &said, &limits).map(|all| (all, said.listed.notices))
            });
            let accepted = accepted.await.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
            let (mut accepted, notices) = accepted.map_err(|error| unavailable(&error))?;
            let unfit = accepted.take_unfit(name, section, &scope.limits);
            let whole = serde_json::to_string(&accepted).expect("it is plain data");
            if scope.guard.redact(&whole) != whole {
                return Err(Failure::denied(format!("`{name}` has a secret of yours in what it offers to models"))
                    .hint("it was told that secret: give it none, or do not use it"));
            }
            Ok(Look { accepted, unfit, notices, refused })
        })
    }

    /// Begins with a server and asks what it offers, in the era that it is likely to speak. One that ends over a word of that era is begun with in
    /// the other.
    async fn greeted(&self, start: &Start<'_>, is_legacy: bool, via: &Via<'_>) -> Result<Greeted, Failure> {
        let _turn = self.starting.acquire().await;
        let mut trouble = None;
        for is_legacy in [is_legacy, !is_legacy] {
            let (wire, network, makings) = self.reached(start).await?;
            let calling = network.as_ref().map(|network| network.called(via.grant.clone(), via.scope));
            let said = tokio::time::timeout(START, listing::offered(&wire, is_legacy, via)).await;
            let said = said.unwrap_or_else(|_| {
                Err(listing::trouble(format!("did not say within {} s what it offers", START.as_secs())))
            });
            trouble = Some(match said {
                Ok(said) => {
                    let refused = calling.map(|calling| calling.refusals()).unwrap_or_default();
                    return Ok(Greeted { wire, network, makings, said, refused });
                }
                Err(trouble) => trouble,
            });
            if !wire.has_ended() {
                break;
            }
        }
        let trouble = trouble.expect("it was begun with once at least");
        Err(told_of(start.name, trouble))
    }

    /// The way to a server: to its address, or to a program that is started.
    async fn reached(&self, start: &Start<'_>) -> Result<(Wire, Option<Arc<Attached>>, Option<Makings>), Failure> {
        let Start { name, principal, section, .. } = start;
        if section.url.is_empty() {
            self.check_confined().await?;
            let started = program::start(start, self.dirs()?, &self.egress, &self.secrets).await?;
            return Ok((started.wire, Some(started.network), started.makings));
        }
        let (target, owner) = (Target::parse(&section.url, None)?, format!("upstream {name} {principal}"));
        let link = Link::new(target, &section.headers, owner, &self.egress, &self.secrets);
        Ok((Wire::Web(Web::new(link)), None, None))
    }

    /// The server for this caller, started if it does not run.
    async fn running(
        &self,
        upstream: &Upstream,
        grant: &Arc<UpstreamGrant>,
        scope: &Arc<Scope>,
    ) -> Result<Arc<Running>, Failure> {
        let name = &upstream.name;
        let key = (scope.principal.to_string(), name.clone());
        let slot = self.all.lock().entry(key).or_default().clone();
        let mut state = slot.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|_| state.declared == upstream.declared) {
            if !running.has_ended() {
                return Ok(running.clone());
            }
            let why = running.why_ended();
            state.failed(why);
        }
        state.running = None;
        if state.declared != upstream.declared {
            *state = State { declared: upstream.declared.clone(), ..State::default() };
        }
        if let Some(wait) = state.next.and_then(|next| next.checked_duration_since(Instant::now())) {
            let seconds = wait.as_secs() + 1;
            let message = format!("the server `{name}` failed: {}", shown(&state.why));
            return Err(Failure::new(Kind::Unavailable, message)
                .hint(format!("it is started again when it is called after {seconds} s")));
        }
        match Box::pin(self.start(upstream, grant, scope)).await {
            Ok(running) => {
                let running = Arc::new(running);
                state.running = Some(running.clone());
                state.since = Some(Instant::now());
                Ok(running)
            }
            Err(failure) => {
                state.since = None;
                state.failed(failure.message.clone());
                Err(failure)
            }
        }
    }

    async fn start(
        &self,
        upstream: &Upstream,
        grant: &Arc<UpstreamGrant>,
        scope: &Arc<Scope>,
    ) -> Result<Running, Failure> {
        let Upstream { name, section, accepted, .. } = upstream;
        let changed = {
            let (accepted, section) = (accepted.clone(), section.clone());
            tokio::task::spawn_blocking(move || accepted.changed_files(&section)).await
        };
        let changed = changed.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        if let Some(changed) = changed.first() {
            return Err(Failure::denied(format!("the server `{name}` is not started: {changed}")).hint(review(name)));
        }
        let start = Start { name, principal: scope.principal.as_str(), section, confine: grant.confine() };
        let is_legacy = listing::is_legacy(&accepted.protocol);
        let Greeted { wire, network, makings, said, .. } =
            self.greeted(&start, is_legacy, &Via { grant, scope }).await?;
        Ok(Running::new(wire, network, makings, &said, accepted))
    }

    /// Calls a tool of a server, once it is decided that it may be; one that only reads is tried twice where its server ends meanwhile.
    pub fn call<'a>(
        &'a self,
        upstream: &'a Upstream,
        tool: &'a str,
        arguments: &'a str,
        grant: &'a Arc<UpstreamGrant>,
        scope: &'a Arc<Scope>,
    ) -> BoxFuture<'a, Result<Output, Failure>> {
        Box::pin(async move {
            let Upstream { name, section, accepted, .. } = upstream;
            let Some(known) = accepted.tools.get(tool) else {
                return Err(Failure::new(Kind::Internal, format!("nothing was accepted of `{tool}`")));
            };
            let (offered_as, tool) = (tool, known.name.as_str());
            scope.guard.check(Exit::Request, [arguments.as_bytes()])?;
            let only_reads = section.only_reads(tool);
            let (mut most, via) = (Duration::from_millis(section.timeout_ms), Via { grant, scope });
            // Before a person is asked about it.
            let mut running = self.standing(upstream, offered_as, grant, scope).await?;
            let begin = Instant::now();
            let mut checked = running.check(known, arguments, most, &via).await;
            if matches!(checked, Err(Unanswered::Ended { .. })) {
                running = self.standing(upstream, offered_as, grant, scope).await?;
                checked = running.check(known, arguments, most, &via).await;
            }
            // Nothing was done yet.
            checked.map_err(|unanswered| failed(name, section, true, unanswered))?;
            most = most.saturating_sub(begin.elapsed());
            grant.admit(tool, arguments, scope).await?;
            if !only_reads {
                scope.touch_state();
            }
            let mut made = Vec::new();
            for is_last in [!only_reads, true] {
                let calling = running.network.as_ref().map(|network| network.called(grant.clone(), scope));
                for (server, decided) in calling.iter().flat_map(|calling| calling.before()) {
                    grant.record_connection(&format!("{server}, before this call"), decided.as_ref().copied(), scope);
                }
                let answer = running.call(known, arguments, !only_reads, most, &via).await;
                if let Some(makings) = &running.makings {
                    made.extend(Box::pin(makings.told(name, scope)).await);
                }
                let refused = calling.map(|calling| calling.refusals()).unwrap_or_default();
                let outcome = match answer {
                    Ok(answer) => result::output(name, known.kind, &answer, scope, &running.named).await,
                    Err(Unanswered::Lost(failure)) if !is_last && failure.kind == Kind::Unavailable => continue,
                    Err(Unanswered::Ended { was_sent, .. }) if !is_last || !was_sent => {
                        running = self.standing(upstream, offered_as, grant, scope).await?;
                        continue;
                    }
                    Err(unanswered) => Err(failed(name, section, only_reads, unanswered)),
                };
                // Beside a failure nobody would see a notice.
                let told = |failure| {
                    with_meanwhile(
                        with_meanwhile(failure, "it was refused something", &refused),
                        "it made something",
                        &made,
                    )
                };
                return outcome.map_err(told).inspect(|_| {
                    refused.iter().chain(&made).for_each(|notice| scope.guard.notice(notice.clone()));
                });
            }
            Err(Failure::new(Kind::Unavailable, format!("`{name}` ended twice before it was asked")))
        })
    }

    /// The server, where it still says of a tool what was accepted.
    async fn standing(
        &self,
        upstream: &Upstream,
        tool: &str,
        grant: &Arc<UpstreamGrant>,
        scope: &Arc<Scope>,
    ) -> Result<Arc<Running>, Failure> {
        let Upstream { name, accepted, .. } = upstream;
        let mut running = self.running(upstream, grant, scope).await?;
        let mut standing = running.standing(accepted, &Via { grant, scope }).await;
        // A session is forgotten while nobody calls.
        if standing.is_err() && running.has_ended() {
            running = self.running(upstream, grant, scope).await?;
            standing = running.standing(accepted, &Via { grant, scope }).await;
        }
        let standing = standing.map_err(|trouble| told_of(name, trouble))?;
        match standing.withheld(tool) {
            None => Ok(running),
            Some(why) => Err(withheld(name, tool, why)),
        }
    }

    /// The resources that a server that runs for this caller has listed last.
    pub fn resources(&self, principal: &str, server: &str) -> Vec<Value> {
        let slot = self.all.lock().get(&(principal.to_owned(), server.to_owned())).cloned();
        let running = slot.and_then(|slot| slot.state.try_lock().ok()?.running.clone());
        running.map(|running| running.named.lock().told()).unwrap_or_default()
    }

    /// Why a tool of a server that runs for this caller is not called; none where it is, or the server does not run.
    pub fn withheld(&self, principal: &str, server: &str, tool: &str) -> Option<Failure> {
        let slot = self.all.lock().get(&(principal.to_owned(), server.to_owned())).cloned()?;
        // One that is being started says so itself when it is called.
        let running = slot.state.try_lock().ok()?.running.clone()?;
        // What could not be listed for now may be there again with the next call.
        let stood = running.stood();
        let changed = stood.withheld(tool).filter(|why| matches!(why, Withheld::Changed(_)));
        changed.map(|why| withheld(server, tool, why))
    }
}

impl State {
    /// Waits longer from failure to failure.
    fn failed(&mut self, why: String) {
        let is_settled = self.since.take().is_some_and(|since| since.elapsed() >= SETTLED);
        self.failures = if is_settled { 1 } else { self.failures + 1 };
        // The first time it is started again at once.
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.saturating_sub(2)).min(64);
        self.next = (self.failures > 1).then(|| Instant::now() + pause.min(LONGEST_PAUSE));
        self.running = None;
        self.why = why;
    }
}

/// Why a call has no result.
fn failed(name: &str, section: &UpstreamSection, only_reads: bool, unanswered: Unanswered) -> Failure {
    match unanswered {
        Unanswered::Refused(refusal) => result::refused(name, refusal.code, &refusal.message),
        Unanswered::TooLong => Failure::limit(too_long()).hint("ask for less in one call"),
        Unanswered::Late => {
            Failure::new(Kind::TimedOut, format!("`{name}` gave no answer within {} ms", section.timeout_ms))
                .hint(format!("`timeout_ms` under [upstream.{name}] decides; it may go on all the same"))
        }
        Unanswered::Busy => {
            Failure::new(Kind::Busy, format!("too many calls wait for `{name}`")).hint("try again when some have ended")
        }
        Unanswered::Lost(failure) => Failure { message: format!("`{name}`: {}", failure.message), ..failure },
        Unanswered::Ended { why, .. } if only_reads => {
            Failure::new(Kind::Unavailable, format!("`{name}` ended meanwhile: {}", shown(&why)))
        }
        Unanswered::Ended { why, .. } => {
            Failure::new(Kind::OutcomeUnknown, format!("`{name}` ended in the middle of the call: {}", shown(&why)))
                .hint("look at what was done before you call it again")
        }
    }
}

/// A failure with what else came of the call, such as what the server was refused, which may be why.
fn with_meanwhile(failure: Failure, what: &str, all: &[String]) -> Failure {
    let Some(first) = all.first() else { return failure };
    let hint = failure.hint.iter().map(|hint| format!("{hint}; ")).collect::<String>();
    let hint = format!("{hint}meanwhile {what}: {first}");
    failure.hint(hint)
}

/// Trouble with a server, with its name.
fn told_of(server: &str, trouble: Trouble) -> Failure {
    Failure { message: format!("`{server}` {}", trouble.message), ..trouble }
}

fn withheld(server: &str, tool: &str, why: &Withheld) -> Failure {
    match why {
        Withheld::Changed(differences) => {
            let message = format!("`{tool}` has changed since it was accepted: {}", differences.join("; "));
            Failure::denied(message).hint(review(server))
        }
        Withheld::Unlisted(why) => {
            let message = format!("`{tool}` cannot be compared with what was accepted: `{server}` {why}");
            Failure::new(Kind::Unavailable, message).hint("call it again in a minute: it is listed again then")
        }
    }
}

fn review(name: &str) -> String {
    format!("`toolcrib upstream review {name}` shows what has changed, and accepts it if you do")
}
