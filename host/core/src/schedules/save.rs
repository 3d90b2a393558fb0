//! How plugins make and change the schedules of an agent.

use super::FIRED;
use super::firing::drop_waiting;
use crate::jobs::{Jobs, Rehearsed, Submission, check_given, identity};
use audit::Action;
use base::capability::Capability;
use base::envelope::{Failure, Kind, duration};
use base::event_kind::any_covers;
use base::text::id::random_id;
use base::text::sanitize;
use config::Needed;
use contract::schema::depth;
use guest::capability::embedder::not_taken;
use guest::later::{Change, Does, Planned, Wanted};
use guest::reach::Reach;
use policy::embedder::Shown;
use policy::guard::Exit;
use policy::schedules::SchedulesGrant;
use serde_json::{Value, json};
use std::time::Duration;
use store::calendar::{Listed, Saved};
use store::engine::{Query, Swapped};
use store::schedule::{Approved, Course, Fires, Firing, Kept, Schedule, ScheduleState};
use store::timing::{Timing, zone_here};

/// Characters of an id.
const ID_CHARS: usize = 50;
/// Bytes and levels of the data of an event.
const DATA_BYTES: usize = 64 << 10;
const DATA_DEPTH: u64 = 30;
/// How often a change is tried that others come before.
const TIMES: u32 = 100;

impl Jobs {
    /// Keeps a schedule, once a person has admitted what it does.
    pub(crate) async fn save(&self, planned: Planned, grant: &SchedulesGrant, scope: &Reach) -> Result<Kept, Failure> {
        let door = self.door()?;
        check_id(&planned.id)?;
        let (does, rule) = (one(planned.does.clone(), "what it does")?, one(planned.rules.clone(), "when it fires")?);
        check_given(scope)?;
        scope.guard.check(Exit::Write, [planned.id.as_bytes()])?;
        let here = Some(self.schedules.zone.clone()).filter(|zone| !zone.is_empty()).unwrap_or_else(zone_here);
        let now_ms = self.engine().now_ms();
        let timing = Timing::new(rule, planned.zone.as_deref(), &here, planned.hours, now_ms)?;
        self.check_interval(&timing, scope)?;
        let at_most_ms = self.at_most(planned.at_most_ms, scope)?;
        let agent = grant.agent(&scope.session);
        let over = self.replaced(&agent, &planned, grant).await?;
        let tools = (door.tools)();
        let by = tools.plugin_of(&scope.tool)?;
        let toolset = scope.session.toolset();
        let next_ms = timing.next_after(now_ms);
        let mut schedule = Schedule {
            agent,
            name: planned.id,
            key: random_id(),
            timing,
            once: planned.once,
            fires: Fires::Event { data: Value::Null, approved: Approved::NotAsked },
            at_most_ms,
            principal: scope.principal.as_str().to_owned(),
            tool: scope.tool.clone(),
            plugin: identity(by),
            by: grant.plugin().to_owned(),
            toolset: toolset.map(|toolset| toolset.name().to_owned()),
            given: scope.session.given(),
        };
        let (fires, lane) = match does {
            Does::Event(data) => (event(&data, &schedule.words(), grant, scope).await?, door.lanes.events.clone()),
            Does::Job(tool, arguments) => {
                let wanted = Wanted { tool, arguments, ..Wanted::default() };
                let grant = grant.jobs()?;
                let submission = Submission { wanted: &wanted, door: &door, tools: &tools, grant, scope };
                (call(&submission, schedule.words()).await?, door.lanes.calls.clone())
            }
        };
        schedule.fires = fires;
        let course = Course::saved(lane, door.lanes.place().to_owned(), next_ms, now_ms);
        let key = over.as_ref().map(|kept| kept.schedule.key.as_str());
        match self.engine().save(&schedule, &course, key, self.schedules.most).await? {
            Saved::New | Saved::Replaced => {}
            Saved::There => return Err(there(&schedule.name)),
        }
        if let Some(over) = over {
            self.drop_waiting_of(&over, "its schedule was replaced").await?;
        }
        self.engine().ring(&course.lane, &schedule.name).await;
        let what = format!("schedule {}: {}, {}", schedule.name, schedule.fires, schedule.words());
        record(scope, what, "saved");
        let kept = self.engine().schedule(&schedule.agent, &schedule.name).await?;
        kept.ok_or_else(|| Failure::failed("the schedule was removed as soon as it was saved"))
    }

    fn check_interval(&self, timing: &Timing, scope: &Reach) -> Result<(), Failure> {
        let shortest = self.schedules.shortest_ms;
        if timing.shortest_ms() >= shortest {
            return Ok(());
        }
        let message =
            format!("{timing} is too often (at least {} between two times)", duration(Duration::from_millis(shortest)));
        let line = format!("`shortest_ms` under [schedules] is {shortest}: ask for that, or more");
        Err(Failure::invalid(message).hint(scope.remedies.hint("schedules.shortest_ms", &Needed::Any, line)))
    }

    /// The one that is to be replaced. Refuses an id that stands for another one, before anybody is asked.
    async fn replaced(&self, agent: &str, planned: &Planned, grant: &SchedulesGrant) -> Result<Option<Kept>, Failure> {
        if !self.is_there() {
            return Ok(None);
        }
        match self.engine().schedule(agent, &planned.id).await? {
            Some(kept) if planned.replace && grant.has(&kept.schedule.by) => Ok(Some(kept)),
            Some(_) => Err(there(&planned.id)),
            None => Ok(None),
        }
    }

    /// The schedules of a session's agent; each that cannot be read is a fault.
    pub(crate) async fn schedules_of(&self, grant: &SchedulesGrant, scope: &Reach) -> Result<Listed, Failure> {
        if !self.is_there() {
            return Ok((Vec::new(), Vec::new()));
        }
        let (mut all, faults) = self.engine().schedules(Some(&grant.agent(&scope.session))).await?;
        all.retain(|kept| grant.has(&kept.schedule.by));
        Ok((all, faults))
    }

    /// What an active one waits for that nobody here fires.
    pub(crate) fn waits(&self, schedule: &Schedule, course: &Course) -> Option<String> {
        let (Ok(door), ScheduleState::Active) = (self.door(), course.state) else { return None };
        let is_event = schedule.fires.is_event();
        if *door.lanes.of(is_event) != course.lane {
            let settings = if is_event { "" } else { ", with the settings of then" };
            let adopt = "`toolcrib schedules adopt` has it fired here";
            return Some(format!("a program that acts where it was saved{settings}; {adopt}"));
        }
        let is_taken = !is_event || door.context.embedder.takes(FIRED);
        (!is_taken).then(|| format!("an embedder that takes events of the kind `{FIRED}`"))
    }

    /// Removes one of them.
    pub(crate) async fn remove(&self, id: &str, grant: &SchedulesGrant, scope: &Reach) -> Result<(), Failure> {
        let kept = match self.kept(id, grant, scope).await {
            // One that cannot be read can be removed by what sees all of an agent's.
            Err(fault) if fault.kind == Kind::Internal && grant.has_all() => None,
            kept => Some(kept?),
        };
        if !self.gone(&grant.agent(&scope.session), id, kept).await? {
            return Err(missing(id));
        }
        record(scope, format!("schedule {id}"), "removed");
        Ok(())
    }

    /// Removes one as it was read, with what it has fired that has not begun; without that, whatever there is.
    pub(super) async fn gone(&self, agent: &str, id: &str, mut kept: Option<Kept>) -> Result<bool, Failure> {
        for _ in 0..TIMES {
            if self.engine().forget(agent, id, kept.as_ref()).await? {
                if let Some(kept) = &kept {
                    self.drop_waiting_of(kept, "its schedule was removed").await?;
                }
                return Ok(true);
            }
            let Some(before) = kept else { return Ok(false) };
            kept = self.engine().schedule(agent, id).await?.filter(|now| now.schedule.key == before.schedule.key);
            if kept.is_none() {
                return Ok(false);
            }
        }
        Err(changes())
    }

    async fn drop_waiting_of(&self, kept: &Kept, why: &str) -> Result<(), Failure> {
        if let Some(firing) = &kept.course.open
            && let Some(held) = self.engine().read(&firing.job).await?
        {
            drop_waiting(self.engine(), held, why).await?;
        }
        Ok(())
    }

    /// Pauses or resumes one of them.
    pub(crate) async fn change(
        &self,
        id: &str,
        change: Change,
        grant: &SchedulesGrant,
        scope: &Reach,
    ) -> Result<Kept, Failure> {
        let kept = self.kept(id, grant, scope).await?;
        let kept = self.changed(kept, change).await?;
        record(scope, format!("schedule {id}"), change.done());
        Ok(kept)
    }

    /// Changes whether one fires, whoever wants that.
    pub(super) async fn changed(&self, kept: Kept, change: Change) -> Result<Kept, Failure> {
        let now_ms = self.engine().now_ms();
        // Whoever fires it in this moment may not have said so yet.
        let query = Query { session: Some(kept.schedule.key.clone()), limit: 1, ..Query::default() };
        let newest = self.engine().list(&query).await?.jobs.pop().filter(|job| !job.progress.state.is_end());
        let firing = newest.and_then(|job| Some(Firing { due_ms: job.spec.fired?.due_ms, job: job.spec.id }));
        self.moved(kept, |kept| {
            let mut course = kept.course.clone();
            if let (None, Some(firing)) = (&course.open, &firing) {
                course.fired(&kept.schedule, firing.clone());
            }
            match (change, course.state) {
                (_, ScheduleState::Over) => {
                    return Err(Failure::failed("the schedule was to fire once, and has").hint("remove it"));
                }
                (Change::Pause, ScheduleState::Active | ScheduleState::Paused | ScheduleState::Disabled) => {
                    course.pause()
                }
                // What is active keeps its due time.
                (Change::Resume, ScheduleState::Active) => {}
                (Change::Resume, ScheduleState::Paused | ScheduleState::Disabled) => {
                    course.resume(&kept.schedule.timing, now_ms);
                }
            }
            Ok(course)
        })
        .await
    }

    /// Changes how far one is, whatever it is by then.
    pub(super) async fn moved(
        &self,
        mut kept: Kept,
        to: impl Fn(&Kept) -> Result<Course, Failure>,
    ) -> Result<Kept, Failure> {
        for _ in 0..TIMES {
            let course = to(&kept)?;
            if let Swapped::Won(revision) = self.engine().move_on(&kept, &course).await? {
                self.engine().ring(&course.lane, &kept.schedule.name).await;
                return Ok(Kept { course, revision, ..kept });
            }
            let Schedule { agent, name, key, .. } = &kept.schedule;
            let now = self.engine().schedule(agent, name).await?;
            // Another one under that name is not the one that is meant.
            kept = now.filter(|now| now.schedule.key == *key).ok_or_else(|| missing(name))?;
        }
        Err(changes())
    }

    /// One of a session's agent. Whether others have one of that id is not told.
    async fn kept(&self, id: &str, grant: &SchedulesGrant, scope: &Reach) -> Result<Kept, Failure> {
        if !self.is_there() {
            return Err(missing(id));
        }
        let kept = self.engine().schedule(&grant.agent(&scope.session), id).await?;
        kept.filter(|kept| grant.has(&kept.schedule.by)).ok_or_else(|| missing(id))
    }
}

/// Admits the call that a schedule submits each time it fires.
async fn call(submission: &Submission<'_>, words: String) -> Result<Fires, Failure> {
    submission.check()?;
    let Rehearsed { plugin, admitted } = submission.rehearse(Some(words)).await?;
    let Wanted { tool, arguments, .. } = submission.wanted.clone();
    Ok(Fires::Call { tool, plugin, arguments, admitted })
}

/// Has an event admitted that is handed over each time.
async fn event(data: &str, words: &str, grant: &SchedulesGrant, scope: &Reach) -> Result<Fires, Failure> {
    if data.len() > DATA_BYTES {
        return Err(Failure::limit(format!("the data of an event have at most {} KiB", DATA_BYTES >> 10)));
    }
    let fits = |data: &Value| depth(data) <= DATA_DEPTH;
    let mut data: Value = serde_json::from_str(data)
        .ok()
        .filter(fits)
        .ok_or_else(|| Failure::invalid(format!("the data of an event are not JSON of at most {DATA_DEPTH} levels")))?;
    let grant = grant.events()?;
    grant.admit(FIRED)?;
    if !scope.embedder.takes(FIRED) {
        return Err(not_taken(FIRED));
    }
    sanitize::json(&mut data);
    scope.guard.check_event(FIRED, &mut data)?;
    let approved = match (any_covers(grant.confirms(), FIRED), scope.approver.is_read()) {
        (false, _) => Approved::NotAsked,
        (true, true) => Approved::Read,
        (true, false) => Approved::Unread,
    };
    let shown = json!({ "fires": words, "data": data });
    grant.approve(&Shown { kind: FIRED, payload: &shown, files: &[] }, scope).await?;
    Ok(Fires::Event { data, approved })
}

/// The one that was said.
fn one<T>(mut said: Vec<T>, what: &str) -> Result<T, Failure> {
    match (said.pop(), said.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(Failure::invalid(format!("a schedule says {what}"))),
        (Some(_), false) => Err(Failure::invalid(format!("a schedule says {what} in one way"))),
    }
}

fn check_id(id: &str) -> Result<(), Failure> {
    let fits = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    match (1..=ID_CHARS).contains(&id.len()) && id.chars().all(fits) {
        true => Ok(()),
        false => {
            let message = format!("the id of a schedule is 1 to {ID_CHARS} letters, digits, `_` and `-`");
            Err(Failure::invalid(message).hint("such as `morning-report`"))
        }
    }
}

fn there(id: &str) -> Failure {
    Failure::new(Kind::Busy, format!("there is a schedule `{id}` already"))
        .hint("take another id, or say that it is to be replaced")
}

fn missing(id: &str) -> Failure {
    let shown = sanitize::beginning(id, 64);
    Failure::invalid(format!("there is no schedule `{shown}`")).hint("a list says which there are")
}

fn changes() -> Failure {
    Failure::new(Kind::Busy, "the schedule changes all the time").hint("try again")
}

fn record(scope: &Reach, what: String, decision: &str) {
    let (capability, decision) = (Capability::Schedules, decision.to_owned());
    scope.record(Action { capability, what, confinement: None, declaration: None, decision });
    scope.touch_state();
}
