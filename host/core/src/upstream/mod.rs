//! Servers of the Model Context Protocol (MCP) that others wrote, and whose tools this host offers as if they were its own.
//!
//! What a server offers was accepted by a person and is kept word for word (`accepted.rs`): models read that, and a tool of which the server says
//! something else by now is not called. It is started in a cell (`program.rs`) with the first call that needs it, one for each caller, greeted and
//! asked for its list (`listing.rs`), spoken to in lines (`lines.rs`, `running.rs`), and started again when it has ended. What may be called is
//! decided by `policy/upstream.rs`; `tools/provider/upstream.rs` makes tools of what was accepted.

mod accepted;
mod lines;
mod listing;
mod program;
mod result;
mod running;

pub use accepted::{Accepted, AcceptedTool, differences, offered_as};

use crate::call::scope::Scope;
use crate::config::UpstreamSection;
use crate::dirs::Dirs;
use crate::egress::{Attached, Calling, Egress};
use crate::envelope::{Failure, Kind, Output};
use crate::event::Event;
use crate::leaks::Exit;
use crate::policy::upstream::UpstreamGrant;
use crate::secrets::Secrets;
use crate::text::sanitize;
use lines::{Lines, Progress};
use listing::{Offered, shown};
use parking_lot::Mutex;
use program::Start;
use running::{Running, Unanswered, too_long};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore};

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
pub(crate) struct Upstreams {
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
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) section: UpstreamSection,
    pub(crate) accepted: Arc<Accepted>,
    /// The digest of both.
    pub(crate) declared: String,
}

impl Upstream {
    /// Whether a tool only reads, by the name under which it is offered.
    pub(crate) fn only_reads(&self, tool: &str) -> bool {
        self.accepted.tools.get(tool).is_some_and(|known| self.section.only_reads(&known.name))
    }
}

/// A server that was started, and has said what it offers.
struct Greeted {
    lines: Lines,
    network: Arc<Attached>,
    calling: Calling,
    said: Offered,
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
    pub(crate) fn new(dirs: &Dirs, egress: &Arc<Egress>, secrets: &Arc<Secrets>) -> Self {
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
    pub(crate) async fn check_confined(&self) -> Result<(), Failure> {
        self.confines.get_or_init(program::check_confined).await.clone().map_err(|why| {
            Failure::new(Kind::Unavailable, format!("a server cannot be confined here: {why}")).hint(
                "`toolcrib doctor` says what this system does not let programs do; without a cell no server is started",
            )
        })
    }

    /// Starts a server alone to see what it offers, and ends it.
    pub(crate) async fn look(
        &self,
        name: &str,
        section: &UpstreamSection,
        grant: &UpstreamGrant,
        scope: &Arc<Scope>,
    ) -> Result<Look, Failure> {
        let start = Start { name, principal: "toolcrib", section, hidden: grant.hidden() };
        let Greeted { lines: _lines, calling, said, .. } = self.greeted(&start, false, grant, scope).await?;
        let unavailable = |error: &dyn std::fmt::Display| Failure::new(Kind::Unavailable, format!("`{name}`: {error}"));
        let mut accepted = Accepted::of(name, section, &said).map_err(|error| unavailable(&error))?;
        let unfit = accepted.take_unfit(name, section, &scope.limits);
        Ok(Look { accepted, unfit, notices: said.notices, refused: calling.refusals() })
    }

    /// Starts a server and asks what it offers, in the era that it is likely to speak. One that ends over a word of that era is started in the other.
    async fn greeted(
        &self,
        start: &Start<'_>,
        is_legacy: bool,
        grant: &UpstreamGrant,
        scope: &Arc<Scope>,
    ) -> Result<Greeted, Failure> {
        self.check_confined().await?;
        let _turn = self.starting.acquire().await;
        let mut trouble = String::new();
        for is_legacy in [is_legacy, !is_legacy] {
            let (lines, network) = program::start(start, self.dirs()?, &self.egress, &self.secrets).await?;
            let calling = network.called(Arc::new(grant.clone()), scope);
            let said = tokio::time::timeout(START, listing::offered(&lines, is_legacy)).await;
            let said = said.unwrap_or_else(|_| Err(format!("did not say within {} s what it offers", START.as_secs())));
            trouble = match said {
                Ok(said) => return Ok(Greeted { lines, network, calling, said }),
                Err(trouble) => trouble,
            };
            if !lines.has_ended() {
                break;
            }
        }
        Err(Failure::new(Kind::Unavailable, format!("`{}` {trouble}", start.name)))
    }

    /// The server for this caller, started if it does not run.
    async fn running(
        &self,
        upstream: &Upstream,
        grant: &UpstreamGrant,
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

    async fn start(&self, upstream: &Upstream, grant: &UpstreamGrant, scope: &Arc<Scope>) -> Result<Running, Failure> {
        let Upstream { name, section, accepted, .. } = upstream;
        let changed = accepted.changed_files(section);
        if let Some(changed) = changed.first() {
            return Err(Failure::denied(format!("the server `{name}` is not started: {changed}")).hint(review(name)));
        }
        let start = Start { name, principal: scope.principal.as_str(), section, hidden: grant.hidden() };
        let is_legacy = listing::is_legacy(&accepted.protocol);
        let Greeted { lines, network, said, .. } = self.greeted(&start, is_legacy, grant, scope).await?;
        Ok(Running::new(lines, network, &said, accepted))
    }

    /// Calls a tool of a server, once it is decided that it may be; one that only reads is tried twice where its server ends meanwhile.
    pub(crate) async fn call(
        &self,
        upstream: &Upstream,
        tool: &str,
        arguments: &str,
        grant: &UpstreamGrant,
        scope: &Arc<Scope>,
    ) -> Result<Output, Failure> {
        let Upstream { name, section, accepted, .. } = upstream;
        let Some(known) = accepted.tools.get(tool) else {
            return Err(Failure::new(Kind::Internal, format!("nothing was accepted of `{tool}`")));
        };
        let (offered_as, tool) = (tool, known.name.as_str());
        scope.guard.check(Exit::Request, [arguments.as_bytes()])?;
        // Before a person is asked about it.
        let running = self.standing(upstream, offered_as, grant, scope).await?;
        grant.admit(tool, arguments, scope).await?;
        let only_reads = section.only_reads(tool);
        if !only_reads {
            scope.touch_state();
        }
        let most = Duration::from_millis(section.timeout_ms);
        let mut running = running;
        for is_last in [!only_reads, true] {
            let calling = running.network.called(Arc::new(grant.clone()), scope);
            for (server, decided) in calling.before() {
                grant.record_connection(&format!("{server}, before this call"), decided.as_ref().copied(), scope);
            }
            let answered =
                tokio::time::timeout(most, running.call(tool, arguments, |report| told(&report, scope))).await;
            calling.refusals().into_iter().for_each(|refused| scope.guard.notice(refused));
            let answer = match answered {
                Err(_) => {
                    let message = format!("`{name}` gave no answer within {} ms", section.timeout_ms);
                    let line = format!("`timeout_ms` under [upstream.{name}] decides; it may go on all the same");
                    return Err(Failure::new(Kind::TimedOut, message).hint(line));
                }
                Ok(answered) => answered,
            };
            return match answer {
                Ok(answer) => result::output(name, &answer, scope).await,
                Err(Unanswered::Refused(refusal)) => Err(result::refused(name, refusal.code, &refusal.message)),
                Err(Unanswered::TooLong) => Err(Failure::limit(too_long()).hint("ask for less in one call")),
                Err(Unanswered::Busy) => Err(Failure::new(Kind::Busy, format!("too many calls wait for `{name}`"))
                    .hint("try again when some have ended")),
                Err(Unanswered::Ended { was_sent, .. }) if !is_last || !was_sent => {
                    running = self.standing(upstream, offered_as, grant, scope).await?;
                    continue;
                }
                Err(Unanswered::Ended { why, .. }) if only_reads => {
                    Err(Failure::new(Kind::Unavailable, format!("`{name}` ended meanwhile: {}", shown(&why))))
                }
                Err(Unanswered::Ended { why, .. }) => {
                    let message = format!("`{name}` ended in the middle of the call: {}", shown(&why));
                    Err(Failure::new(Kind::OutcomeUnknown, message)
                        .hint("look at what was done before you call it again"))
                }
            };
        }
        Err(Failure::new(Kind::Unavailable, format!("`{name}` ended twice before it was asked")))
    }

    /// The server, where it still says of a tool what was accepted.
    async fn standing(
        &self,
        upstream: &Upstream,
        tool: &str,
        grant: &UpstreamGrant,
        scope: &Arc<Scope>,
    ) -> Result<Arc<Running>, Failure> {
        let Upstream { name, accepted, .. } = upstream;
        let running = self.running(upstream, grant, scope).await?;
        let standing = running.standing(accepted).await;
        let standing = standing.map_err(|trouble| Failure::new(Kind::Unavailable, format!("`{name}` {trouble}")))?;
        match standing.withheld(tool) {
            None => Ok(running),
            Some(why) => Err(withheld(name, tool, why)),
        }
    }

    /// Why a tool of a server that runs for this caller is not called; none where it is, or the server does not run.
    pub(crate) fn withheld(&self, principal: &str, server: &str, tool: &str) -> Option<Failure> {
        let slot = self.all.lock().get(&(principal.to_owned(), server.to_owned())).cloned()?;
        // One that is being started says so itself when it is called.
        let running = slot.state.try_lock().ok()?.running.clone()?;
        running.stood().withheld(tool).map(|why| withheld(server, tool, why))
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

fn withheld(server: &str, tool: &str, why: &[String]) -> Failure {
    let message = format!("`{tool}` is another tool now than was accepted: {}", why.join("; "));
    Failure::denied(message).hint(review(server))
}

fn review(name: &str) -> String {
    format!("`toolcrib upstream review {name}` shows what has changed, and accepts it if you do")
}

/// Hands on how far a call is.
fn told(report: &Progress, scope: &Scope) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded, and only shown")]
    let whole = |number: f64| number.clamp(0.0, 1e15) as u64;
    let message = report.message.as_deref().map(|text| sanitize::line(text).chars().take(200).collect::<String>());
    let bytes = message.as_ref().map_or(0, String::len);
    scope.emit_for_guest(bytes, || Event::Progress {
        done: whole(report.progress),
        total: report.total.map(whole),
        message,
    });
}
