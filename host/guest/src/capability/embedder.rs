//! `wit/embedder.wit`: events for the program around the host, where the grant admits their kind and no secret is in them.
//!
//! An event comes to exactly one end, which is on record: answered, failed, timed out, cancelled, not delivered, or unknown.

use super::Refusal;
use super::bindings::toolcrib::plugin::embedder;
use crate::later::FIRED;
use crate::reach::Reach;
use crate::sandbox::State;
use ::embedder::agents::{Caller, EXEC};
use ::embedder::{AttachedFile, EmbedderEvent, End};
use base::envelope::{Failure, Kind, duration};
use base::event_kind::{any_covers, is_kind};
use base::text::sanitize;
use contract::schema::depth;
use futures_util::future::BoxFuture;
use policy::embedder::{EmbedderGrant, Shown};
use policy::event::Event as Happening;
use policy::guard::Exit;
use policy::schedules::SchedulesGrant;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::schedule::Approved;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;

/// Bytes and levels of a payload, pointers to what people see, and files, as `wit/embedder.wit` promises.
const PAYLOAD_BYTES: usize = 256 << 10;
const PAYLOAD_DEPTH: u64 = 32;
const POINTERS: usize = 32;
const FILES: usize = 10;
const FILE_BYTES: usize = 25 << 20;
/// The embedder's answer.
const ANSWER_BYTES: usize = 1 << 20;
/// Files of all events that wait: each is in memory, and once more on its way.
const FILES_MIB: usize = 64;
/// How long an embedder may take to say that it had answered before it was told that nobody waits.
const GRACE: Duration = Duration::from_millis(100);
/// What a file is where nothing is said.
const ANY_TYPE: &str = "application/octet-stream";

/// An event that a guest prepares: the host's side of the resource. Judged when it is handed over.
#[derive(Clone)]
pub struct Event {
    kind: String,
    payload: String,
    visible: Vec<String>,
    files: Vec<Attached>,
    wait: Option<Duration>,
}

#[derive(Clone)]
struct Attached {
    path: String,
    name: String,
    media_type: String,
}

/// What all events of a host that wait may take up.
pub struct Pending {
    events: Semaphore,
    most: u64,
    /// MiB of files.
    files: Semaphore,
}

impl Pending {
    pub fn new(most: u64) -> Self {
        let permits = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { events: Semaphore::new(permits), most, files: Semaphore::new(FILES_MIB) }
    }

    fn event(&self, scope: &Reach) -> Result<SemaphorePermit<'_>, Failure> {
        self.events.try_acquire().map_err(|_| {
            let message = format!("too many events wait for the embedder (limit: {})", self.most);
            let hint = scope.remedies.raise("embedder.max_pending", self.most, "try again when some have ended");
            Failure::new(Kind::Busy, message).hint(hint)
        })
    }

    fn files(&self, files: &[AttachedFile]) -> Result<Option<SemaphorePermit<'_>>, Failure> {
        let bytes: usize = files.iter().map(|file| file.content.len()).sum();
        let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        if mib as usize > FILES_MIB {
            return Err(Failure::limit(format!("the files of an event have more than {FILES_MIB} MiB together")));
        }
        let permits = (mib > 0).then(|| self.files.try_acquire_many(mib)).transpose();
        permits.map_err(|_| {
            let message = format!("the files of events that wait have {FILES_MIB} MiB together already");
            Failure::new(Kind::Busy, message).hint("try again when some have ended")
        })
    }
}

/// An event that may be handed over, and by whose word.
struct Admitted {
    kind: String,
    payload: Value,
    files: Vec<AttachedFile>,
    allowed_by: String,
    timeout: Duration,
}

impl Admitted {
    fn shown(&self) -> Shown<'_> {
        Shown { kind: &self.kind, payload: &self.payload, files: &self.files }
    }

    fn event(&self, scope: &Reach, deadline: Option<Duration>) -> EmbedderEvent {
        EmbedderEvent {
            call: scope.id.clone(),
            principal: scope.principal.clone(),
            tool: scope.tool.clone(),
            kind: self.kind.clone(),
            payload: self.payload.clone(),
            bindings: scope.session.given(),
            files: self.files.clone(),
            deadline,
        }
    }
}

impl embedder::Host for State {}

impl embedder::HostEvent for State {
    async fn new(&mut self, kind: String, payload: String) -> wasmtime::Result<Resource<Event>> {
        self.meter.charge_bytes(kind.len() + payload.len())?;
        let event = Event { kind, payload, visible: Vec::new(), files: Vec::new(), wait: None };
        Ok(self.table.push(event)?)
    }

    async fn visible(&mut self, event: Resource<Event>, pointer: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(pointer.len())?;
        self.table.get_mut(&event)?.visible.push(pointer);
        Ok(())
    }

    async fn attach(
        &mut self,
        event: Resource<Event>,
        path: String,
        name: String,
        media_type: String,
    ) -> wasmtime::Result<()> {
        self.meter.charge_bytes(path.len() + name.len() + media_type.len())?;
        self.table.get_mut(&event)?.files.push(Attached { path, name, media_type });
        Ok(())
    }

    async fn wait_ms(&mut self, event: Resource<Event>, ms: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&event)?.wait = Some(Duration::from_millis(ms.into()));
        Ok(())
    }

    async fn send(&mut self, event: Resource<Event>) -> Result<String, Refusal> {
        let event = self.table.get(&event)?.clone();
        let admitted = self.admitted_event(event).await?;
        let scope = self.scope.clone();
        let answer = handed_over(&admitted, &scope).await.answer?;
        scope.session.remember_told(&admitted.kind);
        if admitted.kind == EXEC {
            scope.services.agents.remember(&Caller::of(&scope.session.given(), &scope.principal), &answer);
        }
        Ok(answer.to_string())
    }

    async fn post(&mut self, event: Resource<Event>) -> Result<bool, Refusal> {
        let event = self.table.get(&event)?.clone();
        if !event.files.is_empty() {
            return Err(Failure::invalid("an event with files is sent, not posted").into());
        }
        let admitted = self.admitted_event(event).await?;
        let is_delivered = self.scope.embedder.tell(admitted.event(&self.scope, None));
        let end = if is_delivered { "posted" } else { "dropped: there was no room for it" };
        EmbedderGrant::record(&admitted.shown(), format!("allowed by {}; {end}", admitted.allowed_by), &self.scope);
        self.scope.touch_state();
        Ok(is_delivered)
    }

    async fn drop(&mut self, event: Resource<Event>) -> wasmtime::Result<()> {
        self.table.delete(event)?;
        Ok(())
    }
}

impl State {
    /// Decides on an event: its form, its kind, who takes it, what is in it, and a person where settings ask for one. A refusal is recorded.
    async fn admitted_event(&mut self, event: Event) -> Result<Admitted, Refusal> {
        let grant = self.grants()?.embedder()?.clone();
        let mut payload = parsed(&event)?;
        let kind = event.kind;
        let timeout = event.wait.map_or(grant.timeout(), |wait| wait.min(grant.timeout()));
        let judged = grant.admit(&kind).and_then(|()| self.taken(&kind));
        let judged = judged.and_then(|()| if kind == EXEC { self.of_agents(&mut payload) } else { Ok(()) });
        let checked = match judged {
            Ok(()) => match self.scope.guard.check_event(&kind, &mut payload) {
                Ok(()) => self.attached(&event.files).await,
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal),
        };
        let (files, refusal) = match checked {
            Ok(files) => (files, None),
            Err(refusal) => (Vec::new(), Some(refusal)),
        };
        let shown = Shown { kind: &kind, payload: &payload, files: &files };
        let allowed = match refusal {
            None => grant.approve(&shown, &self.scope).await,
            Some(refusal) => Err(refusal),
        };
        match allowed {
            Ok(allowed_by) => Ok(Admitted { kind, payload, files, allowed_by, timeout }),
            Err(refusal) => {
                EmbedderGrant::record(&shown, format!("{}: {}", refusal.kind.name(), refusal.message), &self.scope);
                Err(refusal.into())
            }
        }
    }

    /// Whether the embedder takes events of a kind.
    fn taken(&self, kind: &str) -> Result<(), Failure> {
        match self.scope.embedder.takes(kind) {
            true => Ok(()),
            false => Err(not_taken(kind)),
        }
    }

    /// Decides on a prompt for another agent.
    fn of_agents(&self, payload: &mut Value) -> Result<(), Failure> {
        let caller = Caller::of(&self.scope.session.given(), &self.scope.principal);
        self.scope.services.agents.admit(&caller, payload)
    }

    /// The files of an event, as they are now.
    async fn attached(&mut self, files: &[Attached]) -> Result<Vec<AttachedFile>, Failure> {
        let mut read = Vec::new();
        for Attached { path, name, media_type } in files {
            let content = self.whole_file(path, FILE_BYTES).await?;
            let own = || path.rsplit('/').next().unwrap_or_default().to_owned();
            let name = if name.trim().is_empty() { own() } else { name.clone() };
            let media_type = if media_type.trim().is_empty() { ANY_TYPE } else { media_type };
            // A file is not rewritten.
            self.scope.guard.check(Exit::Event, [content.as_slice(), name.as_bytes()])?;
            let clean = |text: &str| sanitize::line(text).into_owned();
            read.push(AttachedFile { name: clean(&name), media_type: clean(media_type), content: content.into() });
        }
        Ok(read)
    }
}

/// An event whose time has come, which was admitted when its schedule was saved.
pub struct Scheduled {
    /// An object; what people see of it was cleaned then.
    payload: Value,
    timeout: Duration,
    approved: Approved,
    /// Nobody was there to take it.
    never_came: AtomicBool,
}

impl Scheduled {
    pub fn new(payload: Value, timeout: Duration, approved: Approved) -> Self {
        Self { payload, timeout, approved, never_came: AtomicBool::new(false) }
    }

    /// Whether it certainly was not handed over, as nobody was there to take it.
    pub fn never_came(&self) -> bool {
        self.never_came.load(Ordering::SeqCst)
    }

    /// Hands it over, if it may be still.
    pub fn hand_over<'a>(
        &'a self,
        grant: &'a SchedulesGrant,
        scope: &'a Arc<Reach>,
    ) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let mut payload = self.payload.clone();
            let judged = grant.events().and_then(|events| {
                events.admit(FIRED)?;
                self.check_approval(events, scope)
            });
            // A secret may have come to be known since.
            let judged = judged.and_then(|()| scope.guard.check_event(FIRED, &mut payload));
            let judged = judged.and_then(|()| match scope.embedder.takes(FIRED) {
                true => Ok(()),
                false => {
                    self.never_came.store(true, Ordering::SeqCst);
                    Err(not_taken(FIRED))
                }
            });
            if let Err(refusal) = judged {
                let shown = Shown { kind: FIRED, payload: &payload, files: &[] };
                EmbedderGrant::record(&shown, format!("{}: {}", refusal.kind.name(), refusal.message), scope);
                return Err(refusal);
            }
            let allowed_by = "its schedule, when that was saved".to_owned();
            let admitted =
                Admitted { kind: FIRED.into(), payload, files: Vec::new(), allowed_by, timeout: self.timeout };
            let Handed { answer, came } = handed_over(&admitted, scope).await;
            self.never_came.store(!came, Ordering::SeqCst);
            answer
        })
    }

    /// What a person has to be asked about now was asked about when it was saved, and the answer counts still.
    fn check_approval(&self, events: &EmbedderGrant, scope: &Reach) -> Result<(), Failure> {
        let counts = match self.approved {
            _ if !any_covers(events.confirms(), FIRED) => true,
            Approved::Read => true,
            Approved::NotAsked => false,
            Approved::Unread => {
                scope.services.settings.upgrade().is_some_and(|settings| settings.policy().config().approval.allow_yes)
            }
        };
        if counts {
            return Ok(());
        }
        let message =
            "nobody has approved of this event when its schedule was saved, and nobody is asked when it fires";
        Err(Failure::denied(message).hint("save the schedule anew, where a person can answer"))
    }
}

/// What came of handing an event over.
struct Handed {
    answer: Result<Value, Failure>,
    /// It may have come, whatever the answer is.
    came: bool,
}

/// Hands an event over that was admitted; how that ends is written down, whatever happens to the call.
async fn handed_over(admitted: &Admitted, scope: &Arc<Reach>) -> Handed {
    let mut ending = Ending { event: admitted, scope, end: None };
    let room = scope
        .services
        .pending
        .event(scope)
        .and_then(|event| Ok((event, scope.services.pending.files(&admitted.files)?)));
    let _room = match ending.or_ends(room) {
        Ok(room) => room,
        Err(busy) => return Handed { answer: Err(busy), came: false },
    };
    scope.emit(Happening::Started { detail: sanitize::line(&admitted.kind).into_owned() });
    let Handed { answer, came } = delivered(admitted, scope).await;
    // Whatever came of it, the world may have changed.
    scope.touch_state();
    Handed { answer: ending.or_ends(answer), came }
}

/// Why an event of a kind goes nowhere.
pub fn not_taken(kind: &str) -> Failure {
    let message = format!("the program around this one does not take events of the kind `{kind}`");
    Failure::new(Kind::Unavailable, message).hint("see docs/embedding.md: the embedder names the kinds that it takes")
}

/// The payload, with what people see of it cleaned.
fn parsed(event: &Event) -> Result<Value, Failure> {
    if !is_kind(&event.kind) {
        let shown = sanitize::beginning(&event.kind, 64);
        return Err(Failure::invalid(format!("`{shown}` is not a kind of events: write `message.send` or the like")));
    }
    if event.payload.len() > PAYLOAD_BYTES {
        return Err(Failure::limit(format!("limit: payload {} KiB", PAYLOAD_BYTES >> 10)));
    }
    if event.files.len() > FILES || event.visible.len() > POINTERS {
        return Err(Failure::limit(format!("limit: {FILES} files and {POINTERS} pointers an event")));
    }
    let mut payload: Value = serde_json::from_str(&event.payload)
        .ok()
        .filter(|payload: &Value| payload.is_object() && depth(payload) <= PAYLOAD_DEPTH)
        .ok_or_else(|| {
            Failure::invalid(format!("the payload is not a JSON object of at most {PAYLOAD_DEPTH} levels"))
        })?;
    for pointer in &event.visible {
        let Some(seen) = payload.pointer_mut(pointer) else {
            let shown = sanitize::beginning(pointer, 64);
            return Err(Failure::invalid(format!("the payload has nothing at `{shown}`")));
        };
        sanitize::json(seen);
    }
    Ok(payload)
}

/// Hands an event over and waits for its end.
async fn delivered(event: &Admitted, scope: &Arc<Reach>) -> Handed {
    let withdrawn = CancellationToken::new();
    let _waiting = scope.clock.waiting();
    let mut asked = scope.embedder.ask(event.event(scope, Some(event.timeout)), withdrawn.clone());
    let stopped = tokio::select! {
        biased;
        end = &mut asked => return Handed::of(event, end),
        () = scope.cancel.cancelled() => Failure::cancelled(),
        () = tokio::time::sleep(event.timeout) => {
            let message = format!("the embedder did not answer `{}` within {}", event.kind, duration(event.timeout));
            Failure::new(Kind::TimedOut, message).hint("the event was withdrawn; it may have been done all the same")
        }
    };
    withdrawn.cancel();
    // An answer that came before it was withdrawn counts: whoever gave it was not told otherwise.
    match tokio::time::timeout(GRACE, asked).await {
        Ok(End::Withdrawn) | Err(_) => Handed { answer: Err(stopped), came: true },
        Ok(end @ (End::Answered(_) | End::Failed(_) | End::Unavailable(_) | End::Lost(_))) => Handed::of(event, end),
    }
}

impl Handed {
    fn of(event: &Admitted, end: End) -> Self {
        let came = match end {
            End::Unavailable(_) => false,
            End::Answered(_) | End::Failed(_) | End::Lost(_) | End::Withdrawn => true,
        };
        Self { answer: answered(event, end), came }
    }
}

fn answered(event: &Admitted, end: End) -> Result<Value, Failure> {
    let kind = &event.kind;
    match end {
        End::Answered(answer) if answer.to_string().len() > ANSWER_BYTES => {
            let message = format!("the embedder's answer to `{kind}` is larger than {} KiB", ANSWER_BYTES >> 10);
            Err(Failure::failed(message).hint("what it did is done"))
        }
        End::Answered(answer) => Ok(answer),
        End::Failed(failure) => Err(failure),
        End::Unavailable(why) => {
            Err(Failure::new(Kind::Unavailable, format!("`{kind}` did not reach the embedder: {why}")))
        }
        End::Lost(why) => {
            let message = format!("the embedder was gone before it answered `{kind}`: {why}");
            Err(Failure::new(Kind::OutcomeUnknown, message).hint("it may have been done; it is not sent again"))
        }
        End::Withdrawn => {
            Err(Failure::new(Kind::Unavailable, format!("`{kind}` was withdrawn by the embedder itself")))
        }
    }
}

/// Writes down how an event ended, also where its call is dropped.
struct Ending<'e> {
    event: &'e Admitted,
    scope: &'e Reach,
    end: Option<String>,
}

impl Ending<'_> {
    fn or_ends<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.end = Some(match &outcome {
            Ok(_) => "answered".to_owned(),
            Err(failure) => format!("{}: {}", failure.kind.name(), failure.message),
        });
        outcome
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let end = self.end.take().unwrap_or_else(|| "cancelled: the call was dropped".to_owned());
        let decision = format!("allowed by {}; {end}", self.event.allowed_by);
        EmbedderGrant::record(&self.event.shown(), decision, self.scope);
    }
}
