//! `goals`: what an agent pursues over a long time, and how far it is.

mod keep;

use keep::{GOALS, Goal, State, check, goal, key, make, note, number};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::{Batch, Query, again};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Kind, Result, Tool, notice, schemars};

toolcrib_sdk::export!(GoalCreate, GoalList, GoalUpdate);

/// Goals of a list where nothing is said, and at most.
const LISTED: u32 = 50;
const MOST: u32 = 200;

struct GoalCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateInput {
    /// What to reach: at most 200 bytes.
    title: String,
    /// Why, and how to see that it is reached: at most 20,000 bytes.
    #[serde(default)]
    description: String,
    /// Number of the goal that it serves.
    parent: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Changed {
    goal_number: u64,
    state: State,
    revision: u64,
}

impl Tool for GoalCreate {
    const NAME: &str = "goal_create";
    const TITLE: Option<&str> = Some("Set a goal");
    const SUMMARY: &str = "Record a long-term goal.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Somebody wants something that takes many tasks.",
        when_not_to_use: "One piece of work is enough: use `task_create`.",
        disambiguation: "",
        examples: &[r#"{"title":"All services run on ARM by December"}"#],
    };
    type Input = CreateInput;
    type Output = Changed;

    fn call(CreateInput { title, description, parent }: CreateInput) -> Result<Changed> {
        let made = Goal { title, description, state: State::Active, progress: 0, notes: Vec::new(), parent };
        check(&made)?;
        if let Some(parent) = parent {
            goal(parent)?;
        }
        Ok(Changed { goal_number: make(&made)?, state: State::Active, revision: 1 })
    }
}

struct GoalList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// Only goals in this state.
    state: Option<State>,
    /// Number of goals: 1 to 200.
    #[serde(default = "listed")]
    limit: u32,
}

fn listed() -> u32 {
    LISTED
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    goals: Vec<Row>,
    /// How many there are in all.
    total: u64,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    goal_number: u64,
    title: String,
    description: String,
    state: State,
    /// How far it is, in percent.
    progress: u8,
    /// What was noted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    revision: u64,
}

impl Tool for GoalList {
    const NAME: &str = "goal_list";
    const TITLE: Option<&str> = Some("List goals");
    const SUMMARY: &str = "List goals and their progress.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You plan, or decide what matters now.",
        when_not_to_use: "You look for work to do: use `task_list`.",
        disambiguation: "",
        examples: &[r#"{"state":"active"}"#],
    };
    type Input = ListInput;
    type Output = Listed;

    fn call(ListInput { state, limit }: ListInput) -> Result<Listed> {
        if !(1..=MOST).contains(&limit) {
            return Err(Failure::invalid(format!("`limit` is {limit}")).hint(format!("it is 1 to {MOST}")));
        }
        let mut query = Query::new(GOALS).limit(limit);
        if let Some(state) = state {
            query = query.equals("/state", &state);
        }
        let page = query.run::<Goal>()?;
        if page.items.is_empty() {
            notice("there are no such goals");
        }
        let goals = page.items.into_iter().map(|item| {
            let Goal { title, description, state, progress, notes, parent } = item.body;
            let (goal_number, last_note) = (number(&item.key), notes.into_iter().next_back());
            Row { goal_number, title, description, state, progress, last_note, parent, revision: item.revision }
        });
        Ok(Listed { goals: goals.collect(), total: page.total })
    }
}

struct GoalUpdate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateInput {
    /// Number of the goal.
    goal_number: u64,
    /// New title.
    title: Option<String>,
    /// New description.
    description: Option<String>,
    /// New state.
    state: Option<State>,
    /// Percent reached: 0 to 100.
    progress: Option<u8>,
    /// Note to add: at most 2,000 bytes. The last 50 notes stay.
    note: Option<String>,
    /// Revision that you read. If there is a newer one, nothing is changed.
    expected_revision: Option<u64>,
}

impl Tool for GoalUpdate {
    const NAME: &str = "goal_update";
    const TITLE: Option<&str> = Some("Change a goal");
    const SUMMARY: &str = "Change the progress, state or text of a goal, or add a note.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A goal is nearer, reached or given up.",
        when_not_to_use: "A task changes: use `task_update`.",
        disambiguation: "`progress` says how near the goal is, not how much work was done.",
        examples: &[r#"{"goal_number":1,"progress":40,"note":"billing runs on ARM"}"#],
    };
    type Input = UpdateInput;
    type Output = Changed;

    fn call(input: UpdateInput) -> Result<Changed> {
        match input.expected_revision {
            None => again(|| update(&input)),
            Some(_) => update(&input),
        }
    }
}

fn update(input: &UpdateInput) -> Result<Changed> {
    let there = goal(input.goal_number)?;
    if input.expected_revision.is_some_and(|expected| expected != there.revision) {
        let message = format!("goal {} was changed meanwhile: it has revision {}", input.goal_number, there.revision);
        return Err(Failure::new(Kind::BUSY, message).hint("read it again, then change that"));
    }
    let mut after = there.body.clone();
    after.title = input.title.clone().unwrap_or(after.title);
    after.description = input.description.clone().unwrap_or(after.description);
    after.state = input.state.unwrap_or(after.state);
    after.progress = input.progress.unwrap_or(after.progress);
    check(&after)?;
    if let Some(text) = &input.note {
        note(&mut after, text)?;
    }
    let (goal_number, state) = (input.goal_number, after.state);
    if after == there.body {
        notice("nothing is changed by that");
        return Ok(Changed { goal_number, state, revision: there.revision });
    }
    let key = key(goal_number);
    Batch::new().expect(GOALS, &key, there.revision).put(GOALS, &key, &after).commit()?;
    Ok(Changed { goal_number, state, revision: there.revision + 1 })
}
