//! What may become of a task: its bounds, its states, and what a person has to approve.

use crate::keep::{Status, Subtask, Task, find};
use std::collections::HashSet;
use toolcrib_sdk::records::Batch;
use toolcrib_sdk::{Failure, Result};

/// Bytes of a title, a description and the metadata; subtasks and tasks that come before.
const TITLE_BYTES: usize = 200;
const DESCRIPTION_BYTES: usize = 20_000;
const METADATA_BYTES: usize = 8 << 10;
const SUBTASKS: usize = 50;
const BEFORE: usize = 50;
/// Tasks that are looked at for a circle.
const LOOKED_AT: usize = 1000;

/// Holds a task against its bounds.
pub(crate) fn check(task: &Task) -> Result<()> {
    check_title("title", &task.title)?;
    task.subtasks.iter().try_for_each(|subtask| check_title("subtasks", &subtask.title))?;
    let metadata = serde_json::to_string(&task.metadata).map_or(0, |text| text.len());
    for (what, there, most) in [
        ("bytes of `description`", task.description.len(), DESCRIPTION_BYTES),
        ("bytes of `metadata`", metadata, METADATA_BYTES),
        ("subtasks", task.subtasks.len(), SUBTASKS),
        ("tasks in `depends_on`", task.depends_on.len(), BEFORE),
    ] {
        if there > most {
            return Err(Failure::limit(format!("{there} {what} are too many (limit: {most})")));
        }
    }
    Ok(())
}

fn check_title(name: &str, title: &str) -> Result<()> {
    match !title.trim().is_empty() && title.len() <= TITLE_BYTES && !title.contains(char::is_control) {
        true => Ok(()),
        false => Err(Failure::invalid(format!("`{name}`: a title has 1 to {TITLE_BYTES} bytes, in one line"))),
    }
}

/// The states that a task can go to from this one.
fn ways(from: Status) -> &'static [Status] {
    match from {
        Status::PendingApproval | Status::Backlog | Status::Done | Status::Failed => &[Status::Backlog, Status::Ready],
        Status::Ready => &[Status::Backlog, Status::InProgress],
        Status::InProgress => &[Status::Backlog, Status::Ready, Status::Done, Status::Failed],
    }
}

pub(crate) fn check_move(from: Status, to: Status) -> Result<()> {
    if from == to || ways(from).contains(&to) {
        return Ok(());
    }
    let ways: Vec<String> = ways(from).iter().map(|to| format!("`{}`", to.name())).collect();
    let message = format!("a task that is `{}` cannot become `{}`", from.name(), to.name());
    Err(Failure::invalid(message).hint(format!("from there it can become {}", ways.join(" or "))))
}

/// Whether a task can be worked on in this state.
fn is_open(status: Status) -> bool {
    match status {
        Status::Ready | Status::InProgress => true,
        Status::PendingApproval | Status::Backlog | Status::Done | Status::Failed => false,
    }
}

/// Has a person approve what has to be: a task that can be worked on from now on, or other words for one that was approved. Marks it.
pub(crate) fn approve(batch: Batch, number: Option<u64>, before: Option<&Task>, task: &mut Task) -> Batch {
    let was_approved = before.is_some_and(|before| before.approved);
    let says_the_same = before.is_some_and(|before| words(before) == words(task));
    if was_approved && says_the_same {
        return batch;
    }
    if !was_approved && !is_open(task.status) {
        return batch;
    }
    task.approved = true;
    let number = number.map_or_else(|| "a new task".to_owned(), |number| format!("task {number}"));
    let action = match was_approved {
        true => format!("change what {number} says, which was approved: {}", task.title),
        false => format!("approve {number}: {}", task.title),
    };
    let subtasks: Vec<String> = task.subtasks.iter().map(|subtask| format!("- {}", subtask.title)).collect();
    batch.confirm(&action, [task.description.clone(), subtasks.join("\n")].join("\n").trim())
}

/// What somebody approves.
fn words(task: &Task) -> (&str, &str, Vec<&str>) {
    (&task.title, &task.description, task.subtasks.iter().map(|subtask| subtask.title.as_str()).collect())
}

pub(crate) fn subtasks(titles: &[String]) -> impl Iterator<Item = Subtask> {
    titles.iter().map(|title| Subtask { title: title.clone(), done: false })
}

/// What a task waits for has to be there, and may not wait for it. `number` is none for a task that is not there yet.
pub(crate) fn check_before(number: Option<u64>, before: &[u64]) -> Result<()> {
    let mut seen = HashSet::new();
    for first in before {
        if find(*first)?.is_none() {
            return Err(Failure::invalid(format!("`depends_on`: there is no task {first}")));
        }
        let Some(number) = number else { continue };
        let mut open = vec![vec![number, *first]];
        while let Some(way) = open.pop() {
            let last = way[way.len() - 1];
            if last == number {
                let way: Vec<String> = way.iter().map(u64::to_string).collect();
                return Err(Failure::invalid(format!("`depends_on` would go in a circle: {}", way.join(" -> "))));
            }
            if !seen.insert(last) || seen.len() > LOOKED_AT {
                continue;
            }
            let next = find(last)?.map(|item| item.body.depends_on).unwrap_or_default();
            open.extend(next.into_iter().map(|next| way.iter().copied().chain([next]).collect()));
        }
    }
    Ok(())
}

/// What a task waits for that is not done.
pub(crate) fn waits_for(task: &Task) -> Result<Vec<u64>> {
    let mut waits = Vec::new();
    for number in &task.depends_on {
        if find(*number)?.is_some_and(|item| item.body.status != Status::Done) {
            waits.push(*number);
        }
    }
    Ok(waits)
}

/// A task begins only when all that comes before it is done.
pub(crate) fn check_begin(from: Status, task: &Task) -> Result<()> {
    if task.status != Status::InProgress || from == Status::InProgress {
        return Ok(());
    }
    let waits = waits_for(task)?;
    match waits.is_empty() {
        true => Ok(()),
        false => {
            let waits: Vec<String> = waits.iter().map(u64::to_string).collect();
            Err(Failure::failed(format!("it waits for what is not done: task {}", waits.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_goes_from_approval_to_the_end_and_back() {
        let all =
            [Status::PendingApproval, Status::Backlog, Status::Ready, Status::InProgress, Status::Done, Status::Failed];
        let table: Vec<String> = all
            .iter()
            .map(|from| all.iter().map(|to| if check_move(*from, *to).is_ok() { 'x' } else { '.' }).collect())
            .collect();
        //                    pending backlog ready in_progress done failed
        assert_eq!(table, ["xxx...", ".xx...", ".xxx..", ".xxxxx", ".xx.x.", ".xx..x"]);
    }
}
