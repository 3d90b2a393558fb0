//! The rows of jobs. What was submitted is written once; a change of the rest expects the revision that was read.

use super::{Sqlite, failed};
use crate::engine::{Created, Keeping, Page, Query, Swapped};
use crate::job::{DUE, Held, Progress, Spec};
use base::envelope::Failure;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params, params_from_iter};
use serde::de::DeserializeOwned;

/// The tables.
pub(super) const TABLES: &str = "
    CREATE TABLE job (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        tool TEXT NOT NULL,
        labels TEXT NOT NULL,
        token TEXT,
        state TEXT NOT NULL,
        lane TEXT NOT NULL,
        revision INTEGER NOT NULL,
        stopped INTEGER NOT NULL DEFAULT 1,
        made_ms INTEGER NOT NULL,
        ended_ms INTEGER,
        output_bytes INTEGER NOT NULL DEFAULT 0,
        progress TEXT NOT NULL,
        spec TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX job_token ON job (agent, token) WHERE token IS NOT NULL;
    CREATE INDEX job_waits ON job (lane, seq, session) WHERE state = 'pending';
    CREATE INDEX job_waits_of ON job (agent) WHERE state = 'pending';
    CREATE INDEX job_runs ON job (seq) WHERE stopped = 0;
    CREATE INDEX job_of ON job (agent, seq);
    CREATE INDEX job_ended ON job (ended_ms, agent, output_bytes) WHERE ended_ms IS NOT NULL;
";
/// How long a token stands for its job.
const TOKEN_MS: u64 = 86_400_000;
const DAY_MS: u64 = 86_400_000;
/// Ended firings of one schedule that are kept.
const FIRINGS_KEPT: u64 = 20;

impl Sqlite {
    pub(crate) fn create_job(&self, spec: &Spec, progress: &Progress, most: u64) -> Result<Created, Failure> {
        let mut connection = self.0.lock();
        let run = |connection: &mut Connection| -> rusqlite::Result<Result<Created, u64>> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(token) = &spec.token {
                let used = "SELECT id, made_ms FROM job WHERE agent = ?1 AND token = ?2";
                let mut used = transaction.prepare_cached(used)?;
                let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?));
                if let Some((id, made_ms)) = used.query_row(params![spec.agent, token], row).optional()? {
                    if spec.made_ms.saturating_sub(made_ms) < TOKEN_MS {
                        return Ok(Ok(Created::There(id)));
                    }
                    transaction.execute("UPDATE job SET token = NULL WHERE id = ?1", [id])?;
                }
            }
            let waiting: u64 = transaction
                .prepare_cached("SELECT count(*) FROM job WHERE agent = ?1 AND state = 'pending'")?
                .query_row([&spec.agent], |row| row.get(0))?;
            if waiting >= most {
                return Ok(Err(waiting));
            }
            insert(&transaction, spec, progress)?;
            transaction.commit()?;
            Ok(Ok(Created::New))
        };
        run(&mut connection).map_err(|error| failed(&error))?.map_err(|waiting| {
            Failure::limit(format!("{waiting} jobs of this agent wait already (limit: {most})"))
                .hint("wait until some have begun, or raise `pending` under [jobs]")
        })
    }

    /// The job of this agent that a token stands for now.
    pub(crate) fn job_of_token(&self, agent: &str, token: &str, now_ms: u64) -> Result<Option<Held>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Option<Held>> {
            let read = "SELECT spec, progress, revision FROM job WHERE agent = ?1 AND token = ?2";
            connection.prepare_cached(read)?.query_row(params![agent, token], held).optional()
        };
        let found = run().map_err(|error| failed(&error))?;
        Ok(found.filter(|held| now_ms.saturating_sub(held.spec.made_ms) < TOKEN_MS))
    }

    pub(crate) fn read_job(&self, id: &str) -> Result<Option<Held>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Option<Held>> {
            let mut read = connection.prepare_cached("SELECT spec, progress, revision FROM job WHERE id = ?1")?;
            read.query_row([id], held).optional()
        };
        run().map_err(|error| failed(&error))
    }

    /// The ids that begin so, at most two.
    pub(crate) fn job_ids(&self, beginning: &str) -> Result<Vec<String>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<String>> {
            let mut ids = connection.prepare_cached("SELECT id FROM job WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2")?;
            ids.query_map([beginning], |row| row.get(0))?.collect()
        };
        run().map_err(|error| failed(&error))
    }

    pub(crate) fn swap_job(&self, id: &str, revision: u64, progress: &Progress) -> Result<Swapped, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<usize> {
            let mut swap = connection.prepare_cached(
                "UPDATE job SET state = ?3, lane = ?4, ended_ms = ?5, output_bytes = ?6, stopped = ?7, progress = ?8, \
                 revision = revision + 1 WHERE id = ?1 AND revision = ?2",
            )?;
            let Progress { state, lane, ended_ms, output_bytes, stopped, .. } = progress;
            swap.execute(params![id, revision, state.name(), lane, ended_ms, output_bytes, stopped, json(progress)])
        };
        match run().map_err(|error| failed(&error))? {
            0 => Ok(Swapped::Lost),
            _ => Ok(Swapped::Won(revision + 1)),
        }
    }

    pub(crate) fn list_jobs(&self, query: &Query) -> Result<Page, Failure> {
        let before = query.after.as_ref().map(|cursor| cursor.parse::<i64>());
        let before = before.transpose().map_err(|_| Failure::invalid("the cursor is of no page"))?;
        let (mut conditions, mut given) = (vec!["1".to_owned()], Vec::new());
        let mut is = |condition: &str, value: Sql| {
            conditions.push(condition.to_owned());
            given.push(value);
        };
        let text = |text: &str| Sql::Text(text.to_owned());
        query.agent.iter().for_each(|agent| is("agent = ?", text(agent)));
        query.session.iter().for_each(|session| is("session = ?", text(session)));
        query.state.iter().for_each(|state| is("state = ?", text(state.name())));
        before.iter().for_each(|seq| is("seq < ?", Sql::Integer(*seq)));
        if let Some(tools) = &query.tools {
            is("tool IN (SELECT value FROM json_each(?))", text(&json(tools)));
        }
        for (name, value) in &query.labels {
            let label = json(&[name, value]);
            is(
                "EXISTS (SELECT 1 FROM json_each(labels), (SELECT ? AS label) \
                 WHERE key = label ->> 0 AND value = label ->> 1)",
                Sql::Text(label),
            );
        }
        given.push(Sql::Integer(i64::from(query.limit) + 1));
        let sql = format!(
            "SELECT CASE WHEN json_valid(spec) THEN json_set(spec, '$.arguments', '') ELSE spec END, progress, revision, \
             id, seq FROM job WHERE {} ORDER BY seq DESC LIMIT ?",
            conditions.join(" AND ")
        );
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<(Vec<Held>, Option<i64>)> {
            let mut list = connection.prepare_cached(&sql)?;
            let row = |row: &Row<'_>| Ok((row.get("id")?, held(row), row.get("seq")?));
            let mut rows: Vec<(String, rusqlite::Result<Held>, i64)> =
                list.query_map(params_from_iter(&given), row)?.collect::<Result<_, _>>()?;
            let has_more = rows.len() > query.limit as usize;
            rows.truncate(query.limit as usize);
            let next = rows.last().filter(|_| has_more).map(|(.., seq)| *seq);
            Ok((readable(&connection, rows.into_iter().map(|(id, held, _)| (id, held)))?, next))
        };
        let (jobs, next) = run().map_err(|error| failed(&error))?;
        Ok(Page { jobs, next: next.map(|seq| seq.to_string()) })
    }

    pub(crate) fn running_jobs(&self) -> Result<Vec<Held>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<Held>> {
            let running = "SELECT spec, progress, revision, id FROM job WHERE stopped = 0 ORDER BY seq";
            let mut running = connection.prepare_cached(running)?;
            let rows = running.query_map([], |row| Ok((row.get("id")?, held(row))))?;
            readable(&connection, rows.collect::<rusqlite::Result<Vec<_>>>()?)
        };
        run().map_err(|error| failed(&error))
    }

    /// Of these, the ids of those that have another revision.
    pub(crate) fn changed_jobs(&self, known: &[(String, u64)]) -> Result<Vec<String>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<String>> {
            let mut read = connection.prepare_cached("SELECT 1 FROM job WHERE id = ?1 AND revision = ?2")?;
            let mut changed = Vec::new();
            for (id, revision) in known {
                if !read.exists(params![id, revision])? {
                    changed.push(id.clone());
                }
            }
            Ok(changed)
        };
        run().map_err(|error| failed(&error))
    }

    /// Jobs that wait, the oldest first.
    pub(crate) fn pending_jobs(&self, lane: &str, most: usize, without: &[String]) -> Result<Vec<Held>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<Held>> {
            let mut pending = connection.prepare_cached(
                "SELECT spec, progress, revision, id FROM job INDEXED BY job_waits WHERE lane = ?1 AND state = 'pending' \
                 AND session NOT IN (SELECT value FROM json_each(?2)) ORDER BY seq LIMIT ?3",
            )?;
            let rows = pending.query_map(params![lane, json(&without), most], |row| Ok((row.get("id")?, held(row))))?;
            readable(&connection, rows.collect::<rusqlite::Result<Vec<_>>>()?)
        };
        run().map_err(|error| failed(&error))
    }

    /// How many wait for workers of other lanes than these.
    pub(crate) fn jobs_elsewhere(&self, lanes: &[String]) -> Result<u64, Failure> {
        let connection = self.0.lock();
        let count =
            "SELECT count(*) FROM job WHERE state = 'pending' AND lane NOT IN (SELECT value FROM json_each(?1))";
        connection.query_row(count, [json(&lanes)], |row| row.get(0)).map_err(|error| failed(&error))
    }

    /// Forgets ended jobs that are old, one too many, or whose output has no room. Returns their ids.
    pub(crate) fn expire_jobs(&self, keeping: Keeping, now_ms: u64) -> Result<Vec<String>, Failure> {
        let mut connection = self.0.lock();
        let mut run = || -> rusqlite::Result<Vec<String>> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let old = now_ms.saturating_sub(keeping.days.saturating_mul(DAY_MS));
            let gone = {
                let mut expired = transaction.prepare_cached(
                    "SELECT id FROM (SELECT id, ended_ms, fired, \
                         row_number() OVER (PARTITION BY agent, fired ORDER BY ended_ms DESC, seq DESC) AS place, \
                         row_number() OVER (PARTITION BY session ORDER BY ended_ms DESC, seq DESC) AS of_session, \
                         sum(output_bytes) OVER (ORDER BY ended_ms DESC, seq DESC) AS bytes \
                     FROM (SELECT *, ifnull(token GLOB ?4, 0) AS fired FROM job WHERE ended_ms IS NOT NULL AND stopped = 1)) \
                     WHERE ended_ms < ?1 OR place > ?2 OR bytes > ?3 OR (fired AND of_session > ?5)",
                )?;
                let fired = format!("{DUE}*");
                let given = params![old, keeping.jobs, keeping.output_bytes, fired, FIRINGS_KEPT];
                expired.query_map(given, |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?
            };
            {
                let mut delete = transaction.prepare_cached("DELETE FROM job WHERE id = ?1")?;
                for id in &gone {
                    delete.execute([id])?;
                }
            }
            transaction.commit()?;
            Ok(gone)
        };
        run().map_err(|error| failed(&error))
    }

    /// Changes whenever another connection has changed something.
    pub(crate) fn data_version(&self) -> Result<i64, Failure> {
        let connection = self.0.lock();
        let version = connection.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|error| failed(&error))
    }
}

fn insert(transaction: &Transaction<'_>, spec: &Spec, progress: &Progress) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO job (id, agent, session, tool, labels, token, state, lane, revision, made_ms, progress, spec) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?10, ?11)",
    )?;
    let Spec { id, agent, session, tool, labels, token, made_ms, .. } = spec;
    let state = progress.state.name();
    let given = params![
        id,
        agent,
        session,
        tool,
        json(labels),
        token,
        state,
        progress.lane,
        made_ms,
        json(progress),
        json(spec)
    ];
    insert.execute(given).map(drop)
}

/// The rows that can be read. Others are put aside, so that they keep nothing back; they are forgotten as jobs are that have ended.
fn readable(
    connection: &Connection,
    rows: impl IntoIterator<Item = (String, rusqlite::Result<Held>)>,
) -> rusqlite::Result<Vec<Held>> {
    let mut found = Vec::new();
    for (id, row) in rows {
        match row {
            Ok(held) => found.push(held),
            Err(rusqlite::Error::FromSqlConversionFailure(..)) => {
                let aside = "UPDATE job SET state = 'unreadable', stopped = 1, ended_ms = made_ms WHERE id = ?1";
                connection.execute(aside, [id])?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn held(row: &Row<'_>) -> rusqlite::Result<Held> {
    Ok(Held { spec: of_json(row, 0)?, progress: of_json(row, 1)?, revision: row.get(2)? })
}

fn of_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into()))
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}
