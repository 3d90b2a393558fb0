//! `wit/schedules.wit`: jobs and events at set times, of the session's agent, which no guest names.

use super::Refusal;
use super::bindings::toolcrib::plugin::schedules;
use crate::later::{Change, Does, Planned};
use crate::sandbox::State;
use store::schedule::{Came, ScheduleState};
use store::schedule::{Fires, Kept, Last};
use store::timing::Rule;
use wasmtime::component::Resource;

/// Due times that are shown.
const SHOWN: usize = 3;

/// A schedule that a guest prepares: the host's side of the resource.
#[derive(Clone)]
pub struct Plan(Planned);

impl From<ScheduleState> for schedules::State {
    fn from(state: ScheduleState) -> Self {
        match state {
            ScheduleState::Active => Self::Active,
            ScheduleState::Paused => Self::Paused,
            ScheduleState::Disabled => Self::Disabled,
            ScheduleState::Over => Self::Over,
        }
    }
}

impl From<Came> for schedules::Came {
    fn from(came: Came) -> Self {
        match came {
            Came::Done => Self::Done,
            Came::Failed => Self::Failed,
            Came::Missed => Self::Missed,
            Came::Cancelled => Self::Cancelled,
        }
    }
}

impl State {
    /// A schedule as a guest sees it: what it says may hold a secret that has come to be known since.
    fn schedule(&self, Kept { schedule, course, .. }: Kept) -> schedules::Schedule {
        let clean = |text: &str| self.scope.guard.redact_result(text).into_owned();
        let waits = self.scope.services.jobs.waits(&schedule, &course);
        let next = schedule.due_times(&course, SHOWN);
        let last = course.last.map(|Last { due_ms, job, came, why }| schedules::Last {
            due: schedule.timing.shown(due_ms),
            came: came.into(),
            why: why.as_deref().map(clean),
            job,
        });
        let (tool, content) = match &schedule.fires {
            Fires::Event { data, .. } => (None, data.to_string()),
            Fires::Call { tool, arguments, .. } => (Some(tool.clone()), arguments.clone()),
        };
        schedules::Schedule {
            when: schedule.words(),
            id: schedule.name,
            state: course.state.into(),
            zone: schedule.timing.zone,
            tool,
            content: clean(&content),
            next,
            failures: course.failures,
            last,
            running: course.open.map(|firing| firing.job),
            waits,
        }
    }

    async fn changed(&mut self, id: String, change: Change) -> Result<schedules::Schedule, Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.schedules()?.clone();
        let kept = self.scope.services.jobs.change(&id, change, &grant, &self.scope).await?;
        Ok(self.schedule(kept))
    }
}

impl schedules::Host for State {
    async fn list_all(&mut self) -> Result<Vec<schedules::Schedule>, Refusal> {
        let grant = self.grants()?.schedules()?.clone();
        let (all, faults) = self.scope.services.jobs.schedules_of(&grant, &self.scope).await?;
        faults.into_iter().for_each(|fault| self.scope.guard.notice(fault.message));
        Ok(all.into_iter().map(|kept| self.schedule(kept)).collect())
    }

    async fn remove(&mut self, id: String) -> Result<(), Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.schedules()?.clone();
        Ok(self.scope.services.jobs.remove(&id, &grant, &self.scope).await?)
    }

    async fn pause(&mut self, id: String) -> Result<schedules::Schedule, Refusal> {
        self.changed(id, Change::Pause).await
    }

    async fn resume(&mut self, id: String) -> Result<schedules::Schedule, Refusal> {
        self.changed(id, Change::Resume).await
    }
}

impl schedules::HostPlan for State {
    async fn new(&mut self, id: String) -> wasmtime::Result<Resource<Plan>> {
        self.meter.charge_bytes(id.len())?;
        Ok(self.table.push(Plan(Planned::new(id)))?)
    }

    async fn event(&mut self, plan: Resource<Plan>, data: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(data.len())?;
        self.table.get_mut(&plan)?.0.does(Does::Event(data));
        Ok(())
    }

    async fn job(&mut self, plan: Resource<Plan>, tool: String, arguments: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(tool.len() + arguments.len())?;
        self.table.get_mut(&plan)?.0.does(Does::Job(tool, arguments));
        Ok(())
    }

    async fn cron(&mut self, plan: Resource<Plan>, expression: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(expression.len())?;
        self.table.get_mut(&plan)?.0.fires(Rule::Cron(expression));
        Ok(())
    }

    async fn every_ms(&mut self, plan: Resource<Plan>, ms: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&plan)?.0.fires(Rule::Every(ms));
        Ok(())
    }

    async fn zone(&mut self, plan: Resource<Plan>, name: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len())?;
        self.table.get_mut(&plan)?.0.zone = Some(name);
        Ok(())
    }

    async fn once(&mut self, plan: Resource<Plan>) -> wasmtime::Result<()> {
        self.table.get_mut(&plan)?.0.once = true;
        Ok(())
    }

    async fn hours(&mut self, plan: Resource<Plan>, start: u8, end: u8) -> wasmtime::Result<()> {
        self.table.get_mut(&plan)?.0.hours = Some((start, end));
        Ok(())
    }

    async fn timeout_ms(&mut self, plan: Resource<Plan>, ms: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&plan)?.0.at_most_ms = Some(ms);
        Ok(())
    }

    async fn replace(&mut self, plan: Resource<Plan>) -> wasmtime::Result<()> {
        self.table.get_mut(&plan)?.0.replace = true;
        Ok(())
    }

    async fn save(&mut self, plan: Resource<Plan>) -> Result<schedules::Schedule, Refusal> {
        let grant = self.grants()?.schedules()?.clone();
        let planned = self.table.get(&plan)?.0.clone();
        let (jobs, scope) = (self.scope.services.jobs.clone(), self.scope.clone());
        let kept = jobs.save(planned, &grant, &scope).await?;
        Ok(self.schedule(kept))
    }

    async fn drop(&mut self, plan: Resource<Plan>) -> wasmtime::Result<()> {
        self.table.delete(plan)?;
        Ok(())
    }
}
