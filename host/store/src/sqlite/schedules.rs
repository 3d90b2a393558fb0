//! The rows of schedules.

use super::jobs::json;
use super::{Sqlite, failed};
use crate::calendar::{Due, Listed, Saved};
use crate::engine::Lanes;
use crate::engine::Swapped;
use crate::schedule::{Course, Kept, Schedule};
use base::envelope::{Failure, Kind};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

/// The table.
pub(super) const TABLES: &str = "
    CREATE TABLE schedule (
        agent TEXT NOT NULL,
        name TEXT NOT NULL,
        key TEXT NOT NULL,
        lane TEXT NOT NULL,
        next_ms INTEGER,
        as_of_ms INTEGER NOT NULL,
        is_open INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        course TEXT NOT NULL,
        schedule TEXT NOT NULL,
        PRIMARY KEY (agent, name)
    ) STRICT;
    CREATE INDEX schedule_next ON schedule (lane, next_ms) WHERE next_ms IS NOT NULL;
    CREATE INDEX schedule_open ON schedule (lane) WHERE is_open = 1;
";

/// A clock that is behind what was seen by so much was set back.
const SET_BACK_MS: u64 = 3_600_000;

impl Sqlite {
    pub(crate) fn save_schedule(
        &self,
        schedule: &Schedule,
        course: &Course,
        over: Option<&str>,
        most: u64,
    ) -> Result<Saved, Failure> {
        let mut connection = self.0.lock();
        let run = |connection: &mut Connection| -> rusqlite::Result<Result<Saved, u64>> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let Schedule { agent, name, .. } = schedule;
            let there: Option<String> = transaction
                .prepare_cached("SELECT key FROM schedule WHERE agent = ?1 AND name = ?2")?
                .query_row(params![agent, name], |row| row.get(0))
                .optional()?;
            let saved = match there {
                Some(key) if Some(key.as_str()) == over => Saved::Replaced,
                Some(_) => return Ok(Ok(Saved::There)),
                None => Saved::New,
            };
            let all: u64 = transaction
                .prepare_cached("SELECT count(*) FROM schedule WHERE agent = ?1")?
                .query_row([agent], |row| row.get(0))?;
            if saved == Saved::New && all >= most {
                return Ok(Err(all));
            }
            transaction
                .prepare_cached("INSERT OR REPLACE INTO schedule VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
                .execute(params![
                    agent,
                    name,
                    schedule.key,
                    course.lane,
                    course.next_ms,
                    course.as_of_ms,
                    course.open.is_some(),
                    1,
                    json(course),
                    json(schedule)
                ])?;
            transaction.commit()?;
            Ok(Ok(saved))
        };
        run(&mut connection).map_err(|error| failed(&error))?.map_err(|all| {
            Failure::limit(format!("this agent has {all} schedules already (limit: {most})"))
                .hint("remove some, or raise `most` under [schedules]")
        })
    }

    pub(crate) fn read_schedule(&self, agent: &str, name: &str) -> Result<Option<Kept>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Option<_>> {
            let read = "SELECT agent, name, revision, course, schedule FROM schedule WHERE agent = ?1 AND name = ?2";
            connection.prepare_cached(read)?.query_row(params![agent, name], texts).optional()
        };
        run().map_err(|error| failed(&error))?.map(kept).transpose()
    }

    pub(crate) fn list_schedules(&self, agent: Option<&str>) -> Result<Listed, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<_>> {
            let list = "SELECT agent, name, revision, course, schedule FROM schedule WHERE ?1 IS NULL OR agent = ?1 \
                        ORDER BY agent, name";
            connection.prepare_cached(list)?.query_map([agent], texts)?.collect()
        };
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for read in run().map_err(|error| failed(&error))?.into_iter().map(kept) {
            match read {
                Ok(kept) => all.push(kept),
                Err(fault) => faults.push(fault),
            }
        }
        Ok((all, faults))
    }

    pub(crate) fn move_schedule_on(&self, kept: &Kept, course: &Course) -> Result<Swapped, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<usize> {
            let mut swap = connection.prepare_cached(
                "UPDATE schedule SET lane = ?5, next_ms = ?6, as_of_ms = ?7, is_open = ?8, course = ?9, revision = revision + 1 \
                 WHERE agent = ?1 AND name = ?2 AND key = ?3 AND revision = ?4",
            )?;
            let (Schedule { agent, name, key, .. }, revision) = (&kept.schedule, kept.revision);
            let Course { lane, next_ms, as_of_ms, open, .. } = course;
            let (is_open, course) = (open.is_some(), json(course));
            swap.execute(params![agent, name, key, revision, lane, next_ms, as_of_ms, is_open, course])
        };
        match run().map_err(|error| failed(&error))? {
            0 => Ok(Swapped::Lost),
            _ => Ok(Swapped::Won(kept.revision + 1)),
        }
    }

    pub(crate) fn forget_schedule(&self, agent: &str, name: &str, of: Option<&Kept>) -> Result<bool, Failure> {
        let connection = self.0.lock();
        let forget =
            "DELETE FROM schedule WHERE agent = ?1 AND name = ?2 AND (?3 IS NULL OR key = ?3 AND revision = ?4)";
        let (key, revision) = of.map(|kept| (&kept.schedule.key, kept.revision)).unzip();
        let gone = connection.execute(forget, params![agent, name, key, revision]);
        gone.map(|gone| gone > 0).map_err(|error| failed(&error))
    }

    /// What cannot be read is put aside, so that it keeps nothing back; a list still says so.
    pub(crate) fn due_schedules(&self, lanes: &[String], now_ms: u64) -> Result<Due, Failure> {
        let connection = self.0.lock();
        let mut due = Due::default();
        for lane in lanes {
            let mut run = || -> rusqlite::Result<Option<u64>> {
                let mut list = connection.prepare_cached(
                    "SELECT agent, name, revision, course, schedule FROM schedule WHERE lane = ?1 AND next_ms <= ?2 UNION \
                     SELECT agent, name, revision, course, schedule FROM schedule WHERE lane = ?1 AND is_open = 1 UNION \
                     SELECT agent, name, revision, course, schedule FROM schedule \
                     WHERE lane = ?1 AND next_ms IS NOT NULL AND as_of_ms > ?2 + ?3",
                )?;
                for texts in
                    list.query_map(params![lane, now_ms, SET_BACK_MS], texts)?.collect::<rusqlite::Result<Vec<_>>>()?
                {
                    let (agent, name) = (texts.agent.clone(), texts.name.clone());
                    match kept(texts) {
                        Ok(kept) => due.schedules.push(kept),
                        Err(_) => {
                            let aside =
                                "UPDATE schedule SET next_ms = NULL, is_open = 0 WHERE agent = ?1 AND name = ?2";
                            connection.execute(aside, [agent, name])?;
                        }
                    }
                }
                connection
                    .prepare_cached("SELECT min(next_ms) FROM schedule WHERE lane = ?1 AND next_ms > ?2")?
                    .query_row(params![lane, now_ms], |row| row.get(0))
            };
            let next = run().map_err(|error| failed(&error))?;
            due.next_ms = due.next_ms.into_iter().chain(next).min();
        }
        Ok(due)
    }

    /// How many were to fire at this place, by programs of other lanes.
    pub(crate) fn unfired_schedules(&self, lanes: &Lanes) -> Result<u64, Failure> {
        let connection = self.0.lock();
        let count = "SELECT count(*) FROM schedule WHERE next_ms IS NOT NULL AND lane NOT IN (?1, ?2) AND \
                     json_extract(course, '$.place') = ?3";
        let given = params![lanes.calls, lanes.events, lanes.place()];
        connection.query_row(count, given, |row| row.get(0)).map_err(|error| failed(&error))
    }
}

/// A row as it is written.
struct Texts {
    agent: String,
    name: String,
    revision: u64,
    course: String,
    schedule: String,
}

fn texts(row: &Row<'_>) -> rusqlite::Result<Texts> {
    let (agent, name, revision) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(Texts { agent, name, revision, course: row.get(3)?, schedule: row.get(4)? })
}

/// A row that cannot be read is a fault, and not a schedule that is not there.
fn kept(Texts { agent, name, revision, course, schedule }: Texts) -> Result<Kept, Failure> {
    let fault = |error: serde_json::Error| {
        let message = format!("the schedule `{name}` of `{agent}` cannot be read: {error}");
        Failure::new(Kind::Internal, message).hint("remove it, and save it anew")
    };
    let schedule = serde_json::from_str(&schedule).map_err(fault)?;
    Ok(Kept { schedule, course: serde_json::from_str(&course).map_err(fault)?, revision })
}
