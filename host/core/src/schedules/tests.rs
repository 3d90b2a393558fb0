//! What every engine of schedules has to do, with several programs that look after them: run on SQLite as it is, and on one whose answers get
//! lost. Time is what a test says.

use super::ScheduleState;
use super::firing::{Scheduler, Times};
use crate::jobs::JobState;
use crate::jobs::tests::Forgetful;
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use config::Config;
use embeddings::Embeddings;
use serde_json::{Map, json};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use store::Store;
use store::calendar::{Listed, Saved};
use store::engine::{Engine, Query, Settled, settle};
use store::job::{Held, Progress};
use store::queue::LocalJobs;
use store::schedule::{Approved, Came, Course, Fires, Kept, Schedule};
use store::timing::{Rule, Timing};

const LANE: &str = "lane";
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
/// 1 January 2026, 00:00 UTC.
const NEW_YEAR: u64 = 1_767_225_600_000;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(NEW_YEAR) };
}

fn set(ms: u64) {
    NOW.set(NEW_YEAR + ms);
}

fn sqlite(directory: &Path) -> Arc<dyn Engine> {
    let store = Store::new(directory.to_owned(), Config::default().store, Embeddings::none());
    Arc::new(LocalJobs::by(Arc::new(store), || NOW.get()))
}

/// A store, and programs that look after it.
struct Place {
    directory: tempfile::TempDir,
    engine: Arc<dyn Engine>,
    loses_answers: bool,
}

impl Place {
    /// One on SQLite as it is, where it is the beginning of the year.
    fn new(loses_answers: bool) -> Self {
        set(0);
        let directory = tempfile::tempdir().expect("a directory");
        let engine = sqlite(directory.path());
        Self { directory, engine, loses_answers }
    }

    /// That, and then one whose answers get lost.
    fn each() -> impl Iterator<Item = Self> {
        [false, true].into_iter().map(Self::new)
    }

    /// Another program.
    fn program(&self) -> Arc<Scheduler> {
        let engine = sqlite(self.directory.path());
        let engine = if self.loses_answers { Forgetful::over(engine) } else { engine };
        Scheduler::new(engine, Arc::new(|| vec![LANE.to_owned()]), Times { failures: 3, pending: 100 })
    }

    async fn save(&self, name: &str, rule: Rule) -> Schedule {
        let schedule = schedule(name, rule);
        self.put(&schedule).await;
        schedule
    }

    async fn put(&self, schedule: &Schedule) {
        let course = saved(schedule);
        let saved = self.engine.save(schedule, &course, None, 100).await;
        saved.map_err(|failure| failure.message).expect("a schedule");
    }

    async fn kept(&self, name: &str) -> Option<Kept> {
        self.engine.schedule("a", name).await.map_err(|failure| failure.message).expect("a row")
    }

    async fn course(&self, name: &str) -> Course {
        self.kept(name).await.expect("a schedule").course
    }

    /// All firings so far, the first first.
    async fn firings(&self) -> Vec<Held> {
        let (mut all, mut query) = (Vec::new(), Query { limit: 1000, ..Query::default() });
        loop {
            let page = self.engine.list(&query).await.map_err(|failure| failure.message).expect("a page");
            all.extend(page.jobs);
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        all.reverse();
        all
    }

    /// When they were due, in minutes.
    async fn minutes(&self) -> Vec<u64> {
        let due = |held: &Held| (held.spec.fired.as_ref().expect("a firing").due_ms - NEW_YEAR) / MINUTE;
        self.firings().await.iter().map(due).collect()
    }

    /// Ends what runs.
    async fn end(&self, state: JobState, exit_code: Option<i32>) {
        for held in self.firings().await {
            if !held.progress.state.is_end() {
                let ended = held.progress.ended(state, Some("why".into()), NOW.get());
                let ended = Progress { exit_code, stopped: true, ..ended };
                let settled = settle(&*self.engine, &held, ended).await.map_err(|failure| failure.message);
                assert!(matches!(settled.expect("an end"), Settled::Won(_)));
            }
        }
    }
}

fn schedule(name: &str, rule: Rule) -> Schedule {
    let timing = Timing::new(rule, Some("UTC"), "UTC", None, NOW.get());
    Schedule {
        agent: "a".into(),
        name: name.into(),
        key: random_id(),
        timing: timing.map_err(|failure| failure.message).expect("a rule"),
        once: false,
        fires: Fires::Event { data: json!({ "number": 1 }), approved: Approved::NotAsked },
        at_most_ms: MINUTE,
        principal: "p".into(),
        tool: "cron".into(),
        plugin: "built in: cron".into(),
        by: "cron".into(),
        toolset: None,
        given: Map::new(),
    }
}

fn saved(schedule: &Schedule) -> Course {
    Course::saved(LANE.into(), "place".into(), schedule.timing.next_after(NOW.get()), NOW.get())
}

fn minutely() -> Rule {
    Rule::Cron("* * * * *".into())
}

/// As a program that was there all the time would: until there is nothing more to do.
async fn look(programs: &[Arc<Scheduler>]) {
    for _ in 0..6 {
        let lanes = [LANE.to_owned()];
        let looks = programs.iter().map(|program| program.look(&lanes));
        for looked in futures_util::future::join_all(looks).await {
            looked.map_err(|failure| failure.message).expect("a look");
        }
    }
}

/// Case 55.
#[tokio::test]
async fn any_number_of_programs_fires_each_due_time_once() {
    for place in Place::each() {
        place.save("x", minutely()).await;
        let programs = [place.program(), place.program(), place.program()];
        for minute in 1..=30 {
            set(minute * MINUTE + minute * 100);
            look(&programs).await;
            place.end(JobState::Done, None).await;
            look(&programs).await;
        }
        assert_eq!(place.minutes().await, (1..=30).collect::<Vec<_>>());
        let course = place.course("x").await;
        assert_eq!((course.failures, course.last.map(|last| last.came)), (0, Some(Came::Done)));
        let id = place.firings().await.remove(0).spec.id;
        let first = place.engine.read(&id).await.map_err(|failure| failure.message).expect("a row");
        let spec = first.expect("a job").spec;
        assert_eq!((spec.labels["schedule"].as_str(), spec.labels["due"].as_str()), ("x", "2026-01-01T00:01:00+00:00"));
        assert_eq!((spec.tool.as_str(), spec.arguments.as_str(), spec.outlives), ("cron", r#"{"number":1}"#, true));
    }
}

#[tokio::test]
async fn a_clock_that_is_set_fires_nothing_twice() {
    for place in Place::each() {
        place.save("x", Rule::Cron("*/10 * * * *".into())).await;
        let programs = [place.program(), place.program()];
        for minute in [10, 20, 80, 90, 21, 30, 89, 90, 91, 100] {
            set(minute * MINUTE + 50);
            look(&programs).await;
            place.end(JobState::Done, None).await;
            look(&programs).await;
        }
        // What was skipped may come, as which program asks first decides; what has fired does not.
        let mut fired = place.minutes().await;
        let skipped = fired.extract_if(.., |minute| *minute == 30).count();
        assert_eq!((fired, skipped.min(1)), (vec![10, 20, 80, 90, 100], skipped));
    }
}

/// Of several missed due times the last fires, if it is not too late.
#[tokio::test]
async fn missed_due_times_are_made_up_for_once_or_not_at_all() {
    for place in Place::each() {
        place.save("x", Rule::Cron("*/15 * * * *".into())).await;
        place.save("late", Rule::Cron("0 3 * * *".into())).await;
        set(6 * HOUR + MINUTE);
        look(&[place.program()]).await;
        assert_eq!(place.minutes().await, [360]);
        let late = place.course("late").await;
        assert_eq!(late.next_ms, Some(NEW_YEAR + 27 * HOUR));
        let last = late.last.expect("what came of it");
        assert_eq!((last.due_ms, last.came, last.job), (NEW_YEAR + 3 * HOUR, Came::Missed, None));
        assert_eq!(last.why.as_deref(), Some("nobody was there to fire it in time"));
        // Half of the time to the next one, and no longer.
        place.end(JobState::Done, None).await;
        set(6 * HOUR + 23 * MINUTE);
        look(&[place.program()]).await;
        assert_eq!(
            (place.minutes().await, place.course("x").await.next_ms),
            (vec![360], Some(NEW_YEAR + 390 * MINUTE))
        );
    }
}

#[tokio::test]
async fn what_is_due_while_the_firing_before_runs_is_missed() {
    for place in Place::each() {
        place.save("x", minutely()).await;
        let program = [place.program()];
        for minute in 1..=3 {
            set(minute * MINUTE);
            look(&program).await;
        }
        assert_eq!(place.minutes().await, [1]);
        let last = place.course("x").await.last.expect("what came of it");
        assert_eq!((last.due_ms, last.came), (NEW_YEAR + 3 * MINUTE, Came::Missed));
        assert_eq!(last.why.as_deref(), Some("the firing before has not ended"));
        place.end(JobState::Done, None).await;
        set(4 * MINUTE);
        look(&program).await;
        assert_eq!(place.minutes().await, [1, 4]);
    }
}

/// Whoever dies between the job and the schedule leaves the rest to the next one, also a long time later.
#[tokio::test]
async fn a_firing_whose_program_died_is_counted_and_not_fired_again() {
    for place in Place::each() {
        place.save("x", minutely()).await;
        let before = place.kept("x").await.expect("a schedule");
        for (died, later) in [(1, 1), (10, 11), (20, 90)] {
            set(died * MINUTE);
            look(&[place.program()]).await;
            let fired = place.minutes().await;
            // As it was when that program had made the job.
            let now = place.kept("x").await.expect("a schedule");
            let undone = Course { next_ms: Some(NEW_YEAR + died * MINUTE), open: None, ..now.course.clone() };
            place.engine.move_on(&now, &undone).await.map_err(|failure| failure.message).expect("an answer");
            place.end(JobState::Error, None).await;
            set(later * MINUTE);
            look(&[place.program()]).await;
            assert_eq!(place.minutes().await[..fired.len()], fired, "{died}");
            let again = place.minutes().await.iter().filter(|minute| **minute == died).count();
            assert_eq!((again, place.course("x").await.failures), (1, 1), "{died}");
            place.end(JobState::Done, None).await;
            look(&[place.program()]).await;
            let course = Course { failures: 0, ..place.course("x").await };
            let now = place.kept("x").await.expect("a schedule");
            place.engine.move_on(&now, &course).await.map_err(|failure| failure.message).expect("an answer");
        }
        assert_eq!(before.schedule, place.kept("x").await.expect("a schedule").schedule);
    }
}

/// Case 54: what counts is in the store, whoever saw it.
#[tokio::test]
async fn three_failures_in_a_row_disable_a_schedule_across_restarts() {
    for place in Place::each() {
        let schedule = place.save("x", minutely()).await;
        let ends = [
            (JobState::Error, None),
            (JobState::Done, Some(7)),
            (JobState::Done, Some(0)),
            // Somebody ended it: that says nothing.
            (JobState::Error, None),
            (JobState::Cancelled, None),
            (JobState::Orphaned, None),
            (JobState::Done, Some(1)),
        ];
        let counts = [1, 2, 0, 1, 1, 2, 3];
        for (minute, ((state, code), count)) in (1..).zip(ends.into_iter().zip(counts)) {
            set(minute * MINUTE);
            look(&[place.program()]).await;
            place.end(state, code).await;
            look(&[place.program(), place.program()]).await;
            assert_eq!(place.course("x").await.failures, count, "{minute}");
        }
        let course = place.course("x").await;
        assert_eq!((course.state, course.next_ms), (ScheduleState::Disabled, None));
        assert_eq!(course.last.and_then(|last| last.why).as_deref(), Some("exit status 1"));
        set(HOUR);
        look(&[place.program()]).await;
        assert_eq!(place.minutes().await.len(), 7);
        // It is resumed by the clock of now, without what it missed.
        let kept = place.kept("x").await.expect("a schedule");
        let mut course = kept.course.clone();
        course.resume(&schedule.timing, NOW.get());
        place.engine.move_on(&kept, &course).await.map_err(|failure| failure.message).expect("an answer");
        look(&[place.program()]).await;
        set(61 * MINUTE);
        look(&[place.program()]).await;
        assert_eq!(place.minutes().await.last(), Some(&61));
        assert_eq!(place.course("x").await.failures, 0);
    }
}

#[tokio::test]
async fn what_is_paused_does_not_fire_and_what_fires_once_is_gone() {
    for place in Place::each() {
        place.save("paused", minutely()).await;
        place.put(&Schedule { once: true, ..schedule("once", Rule::Cron("5 * * * *".into())) }).await;
        let kept = place.kept("paused").await.expect("a schedule");
        let mut course = kept.course.clone();
        course.pause();
        place.engine.move_on(&kept, &course).await.map_err(|failure| failure.message).expect("an answer");
        let program = [place.program()];
        // Nobody was there the first time: it is still to come.
        for minute in [59, 65, 66] {
            set(minute * MINUTE);
            look(&program).await;
        }
        assert_eq!(place.minutes().await, [65]);
        assert_eq!(place.course("once").await.state, ScheduleState::Over);
        place.end(JobState::Error, None).await;
        look(&program).await;
        assert_eq!(place.kept("once").await, None);
        set(2 * HOUR + 5 * MINUTE);
        look(&program).await;
        assert_eq!(place.minutes().await, [65]);
    }
}

/// A program that stood still changes nothing of what was saved meanwhile under the same name.
#[tokio::test]
async fn what_was_read_before_it_was_saved_anew_changes_nothing() {
    let place = Place::new(false);
    let first = place.save("x", minutely()).await;
    let read = place.kept("x").await.expect("a schedule");
    place.engine.forget("a", "x", None).await.map_err(|failure| failure.message).expect("an answer");
    let second = place.save("x", Rule::Cron("30 * * * *".into())).await;
    assert_ne!(first.key, second.key);
    let mut course = read.course.clone();
    course.pause();
    place.engine.move_on(&read, &course).await.map_err(|failure| failure.message).expect("an answer");
    assert!(!place.engine.forget("a", "x", Some(&read)).await.map_err(|failure| failure.message).expect("an answer"));
    let kept = place.kept("x").await.expect("a schedule");
    assert_eq!((kept.schedule, kept.course.state), (second, ScheduleState::Active));
}

#[tokio::test]
async fn programs_of_other_lanes_fire_nothing_of_it() {
    let place = Place::new(false);
    place.save("x", minutely()).await;
    set(MINUTE);
    let (engine, lanes) = (sqlite(place.directory.path()), ["another".to_owned()]);
    let other = Scheduler::new(engine, Arc::new(Vec::new), Times { failures: 3, pending: 100 });
    assert_eq!(other.look(&lanes).await.map_err(|failure| failure.message), Ok(None));
    assert!(place.firings().await.is_empty());
}

#[tokio::test]
async fn an_agent_has_as_many_as_it_may_and_each_name_once() {
    let place = Place::new(false);
    let save = async |name: &str, agent: &str, replaced: Option<&str>| {
        let schedule = Schedule { agent: agent.into(), ..schedule(name, minutely()) };
        place.engine.save(&schedule, &saved(&schedule), replaced, 2).await
    };
    let came = |outcome: Result<Saved, Failure>| outcome.map_err(|failure| failure.kind);
    assert_eq!(came(save("x", "a", None).await), Ok(Saved::New));
    assert_eq!(came(save("x", "a", None).await), Ok(Saved::There));
    // Only in the place of the very one that was seen.
    assert_eq!(came(save("x", "a", Some("another")).await), Ok(Saved::There));
    let key = place.kept("x").await.expect("a schedule").schedule.key;
    assert_eq!(came(save("x", "a", Some(&key)).await), Ok(Saved::Replaced));
    assert_eq!(came(save("x", "a", Some(&key)).await), Ok(Saved::There));
    assert_eq!(came(save("y", "a", Some(&key)).await), Ok(Saved::New));
    assert_eq!(came(save("z", "a", None).await), Err(Kind::Limit));
    assert_eq!(came(save("x", "b", None).await), Ok(Saved::New));
    let names = |(all, _): Listed| all.into_iter().map(|kept| kept.schedule.name).collect::<Vec<_>>();
    let of = async |agent| place.engine.schedules(agent).await.map_err(|failure| failure.message).map(names);
    assert_eq!(of(Some("a")).await, Ok(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(of(None).await.map(|all| all.len()), Ok(3));
}

/// One row that cannot be read keeps no other back, and is not taken for one that is not there.
#[tokio::test]
async fn a_row_that_cannot_be_read_is_told_and_keeps_nothing_back() {
    let place = Place::new(false);
    place.save("bad", minutely()).await;
    place.save("good", minutely()).await;
    let connection = rusqlite::Connection::open(place.directory.path().join("store.sqlite")).expect("a store");
    connection.execute("UPDATE schedule SET schedule = '{}' WHERE name = 'bad'", []).expect("a row");
    for minute in 1..=2 {
        set(minute * MINUTE);
        look(&[place.program()]).await;
        place.end(JobState::Done, None).await;
        look(&[place.program()]).await;
    }
    assert_eq!(place.minutes().await, [1, 2]);
    let (all, faults) = place.engine.schedules(None).await.map_err(|failure| failure.message).expect("a list");
    assert_eq!((all.len(), faults.len()), (1, 1));
    let failure = place.engine.schedule("a", "bad").await.expect_err("a fault");
    assert_eq!(failure.kind, Kind::Internal);
    assert!(failure.message.starts_with("the schedule `bad` of `a` cannot be read: "), "{}", failure.message);
    assert!(place.engine.forget("a", "bad", None).await.is_ok_and(|gone| gone));
}

/// Nobody may ever come who begins it: it ends all the same, and what was to fire once is to fire still.
#[tokio::test]
async fn a_firing_that_nobody_begins_is_missed_when_it_is_too_late() {
    for place in Place::each() {
        place.put(&Schedule { once: true, ..schedule("x", Rule::Cron("*/10 * * * *".into())) }).await;
        let program = [place.program()];
        set(10 * MINUTE);
        look(&program).await;
        assert_eq!((place.minutes().await, place.course("x").await.state), (vec![10], ScheduleState::Over));
        set(15 * MINUTE);
        look(&program).await;
        assert_eq!(place.firings().await[0].progress.state, JobState::Pending);
        set(15 * MINUTE + 1);
        look(&program).await;
        let dropped = place.firings().await.remove(0).progress;
        assert_eq!(
            (dropped.state, dropped.cause.as_deref()),
            (JobState::Cancelled, Some("missed: it was not begun in time"))
        );
        let course = place.course("x").await;
        assert_eq!((course.state, course.next_ms), (ScheduleState::Active, Some(NEW_YEAR + 20 * MINUTE)));
        let last = course.last.expect("what came of it");
        assert_eq!((last.came, last.why.as_deref()), (Came::Missed, Some("it was not begun in time")));
        // What somebody ended is over.
        set(20 * MINUTE);
        look(&program).await;
        place.end(JobState::Cancelled, None).await;
        look(&program).await;
        assert_eq!(place.kept("x").await, None);
    }
}

/// A make-up is written down before it is fired, so that whoever comes next finds it.
#[tokio::test]
async fn a_make_up_whose_program_died_is_not_made_up_for_again() {
    for place in Place::each() {
        place.put(&Schedule { once: true, ..schedule("x", Rule::Cron("*/15 * * * *".into())) }).await;
        set(6 * HOUR + MINUTE);
        // The first look says what it is about to fire, and fires nothing.
        let program = place.program();
        let lanes = [LANE.to_owned()];
        while place.course("x").await.next_ms != Some(NEW_YEAR + 6 * HOUR) {
            assert!(place.firings().await.is_empty());
            program.look(&lanes).await.map_err(|failure| failure.message).expect("a look");
        }
        let before = place.kept("x").await.expect("a schedule");
        look(&[place.program()]).await;
        assert_eq!(place.minutes().await, [360]);
        // As it was when that program had made the job.
        let now = place.kept("x").await.expect("a schedule");
        place.engine.move_on(&now, &before.course).await.map_err(|failure| failure.message).expect("an answer");
        place.end(JobState::Done, None).await;
        set(6 * HOUR + 16 * MINUTE);
        look(&[place.program()]).await;
        assert_eq!((place.minutes().await, place.kept("x").await), (vec![360], None));
    }
}

/// A clock that was far ahead once keeps nothing back, and what it fired is not fired again.
#[tokio::test]
async fn a_clock_that_was_far_ahead_keeps_nothing_back() {
    for place in Place::each() {
        place.save("x", Rule::Cron("0 * * * *".into())).await;
        let program = [place.program()];
        for hours in [1, 2, 24 * 365 * 50, 1, 2, 3] {
            set(hours * HOUR + 5);
            look(&program).await;
            place.end(JobState::Done, None).await;
            look(&program).await;
        }
        let hours: Vec<u64> = place.minutes().await.iter().map(|minute| minute / 60).collect();
        assert_eq!(hours, [1, 2, 24 * 365 * 50, 3]);
    }
}
