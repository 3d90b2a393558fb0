//! How goals are kept: each is a document, and one more counts them.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Batch, Item, again, get};
use toolcrib_sdk::{Failure, JsonSchema, Result, schemars};

pub(crate) const GOALS: &str = "goals";
const COUNTS: &str = "counts";
const ALL: &str = "all";
/// Bytes of a title, a description and a note; notes of a goal: the oldest make room.
const TITLE_BYTES: usize = 200;
const DESCRIPTION_BYTES: usize = 20_000;
const NOTE_BYTES: usize = 2000;
const NOTES: usize = 50;

/// Whether a goal is pursued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    #[default]
    Active,
    Done,
    Dropped,
}

/// A goal, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) state: State,
    /// How far it is, in percent.
    pub(crate) progress: u8,
    /// What was noted on the way, in its order.
    pub(crate) notes: Vec<String>,
    /// The goal that it serves.
    pub(crate) parent: Option<u64>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counts {
    /// The number of the goal that was made last.
    last: u64,
}

pub(crate) fn key(number: u64) -> String {
    format!("{number:08}")
}

pub(crate) fn number(key: &str) -> u64 {
    key.parse().unwrap_or_default()
}

/// The goal of this number.
///
/// # Errors
///
/// Where there is none.
pub(crate) fn goal(number: u64) -> Result<Item<Goal>> {
    get(GOALS, &key(number))?
        .ok_or_else(|| Failure::failed(format!("there is no goal {number}")).hint("`goal_list` says which there are"))
}

/// Writes a new goal down. Its number.
pub(crate) fn make(goal: &Goal) -> Result<u64> {
    again(|| {
        let counts = get::<Counts>(COUNTS, ALL)?;
        let last = counts.as_ref().map_or(0, |item| item.body.last) + 1;
        let batch = Batch::new().expect(COUNTS, ALL, counts.map_or(0, |item| item.revision));
        let batch = batch.put(COUNTS, ALL, &Counts { last }).expect(GOALS, &key(last), 0);
        batch.put(GOALS, &key(last), goal).commit()?;
        Ok(last)
    })
}

/// Holds a goal against its bounds.
pub(crate) fn check(goal: &Goal) -> Result<()> {
    let title = &goal.title;
    if title.trim().is_empty() || title.len() > TITLE_BYTES || title.contains(char::is_control) {
        return Err(Failure::invalid(format!("`title` has 1 to {TITLE_BYTES} bytes, in one line")));
    }
    if goal.description.len() > DESCRIPTION_BYTES {
        return Err(Failure::limit(format!(
            "`description` has {} bytes (limit: {DESCRIPTION_BYTES})",
            goal.description.len()
        )));
    }
    match goal.progress > 100 {
        true => Err(Failure::invalid(format!("`progress` is {}", goal.progress)).hint("it is 0 to 100")),
        false => Ok(()),
    }
}

/// Adds what was noted on the way.
pub(crate) fn note(goal: &mut Goal, text: &str) -> Result<()> {
    if text.trim().is_empty() || text.len() > NOTE_BYTES {
        return Err(Failure::invalid(format!("`note` has 1 to {NOTE_BYTES} bytes")));
    }
    goal.notes.push(text.to_owned());
    let above = goal.notes.len().saturating_sub(NOTES);
    goal.notes.drain(..above);
    Ok(())
}
