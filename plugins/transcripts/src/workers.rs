//! `worker_inspect`.

use crate::{meant, shown, sums};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::records::Query;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Steps of an answer at most, and where nothing is said.
const MOST: u32 = 50;
const STEPS: u32 = 10;
/// Bytes of a step that are shown.
const STEP_BYTES: usize = 2000;
/// Workers that are named where one is not found.
const NAMED: usize = 10;

pub(crate) struct WorkerInspect;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InspectInput {
    /// Id of the worker, or its start.
    worker_id: String,
    /// Number of steps: 1 to 50.
    #[serde(default = "steps")]
    limit: u32,
}

fn steps() -> u32 {
    STEPS
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct InspectOutput {
    worker_id: String,
    /// Its last steps, in their order.
    steps: Vec<Step>,
    /// How many steps it made.
    total: u64,
}

#[derive(Serialize, JsonSchema)]
struct Step {
    at: String,
    kind: StepKind,
    content: String,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StepKind {
    /// It called a tool.
    Call,
    /// What came back.
    Result,
    /// It said something.
    Text,
    /// What came of its task.
    Outcome,
}

/// As it was fed.
#[derive(Deserialize)]
struct Made {
    kind: StepKind,
    content: String,
    at_ms: u64,
}

impl Tool for WorkerInspect {
    const NAME: &str = "worker_inspect";
    const TITLE: Option<&str> = Some("Show the steps of a worker");
    const SUMMARY: &str = "Show the last steps of a worker that has ended.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need what a worker called and what came back.",
        when_not_to_use: "The worker still runs: `route` reaches it.",
        disambiguation: "",
        examples: &[r#"{"worker_id":"worker3"}"#],
    };
    type Input = InspectInput;
    type Output = InspectOutput;

    fn call(InspectInput { worker_id, limit }: InspectInput) -> Result<InspectOutput> {
        if !(1..=MOST).contains(&limit) {
            return Err(Failure::invalid(format!("`limit` is {limit}")).hint(format!("it is 1 to {MOST}")));
        }
        let known = sums("workers")?;
        let names: Vec<&str> = known.iter().map(|item| item.key.as_str()).collect();
        let shown_id: String = worker_id.chars().take(64).collect();
        let worker = match meant(&worker_id, names.iter().copied())[..] {
            [worker] => worker,
            [] => return Err(Failure::failed(format!("no worker `{shown_id}` is known")).hint(there_is(&names))),
            ref several => {
                return Err(Failure::invalid(format!("`{shown_id}` means several workers")).hint(there_is(several)));
            }
        };
        if !known.iter().any(|item| item.key == worker && item.body.ended) {
            return Err(Failure::failed(format!("`{worker}` has not ended")).hint("wait for its outcome"));
        }
        let query = Query::new(&format!("worker/{worker}")).order("/at_ms", true).limit(limit);
        let page = query.run::<Made>()?;
        let mut steps: Vec<Step> = page.items.into_iter().map(|item| Step::from(item.body)).collect();
        steps.reverse();
        if (steps.len() as u64) < page.total {
            notice(format!("it made {} steps before these", page.total - steps.len() as u64));
        }
        Ok(InspectOutput { worker_id: worker.to_owned(), steps, total: page.total })
    }
}

fn there_is(names: &[&str]) -> String {
    match names.is_empty() {
        true => "no worker has done anything yet".to_owned(),
        false => {
            let named = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(NAMED);
            if more == 0 { format!("there is {named}") } else { format!("there is {named}, and {more} more") }
        }
    }
}

impl From<Made> for Step {
    fn from(Made { kind, mut content, at_ms }: Made) -> Self {
        if content.len() > STEP_BYTES {
            let bytes = content.len();
            let end = (0..=STEP_BYTES).rev().find(|end| content.is_char_boundary(*end)).unwrap_or_default();
            content.truncate(end);
            content += &format!("… ({bytes} bytes in all)");
        }
        Self { at: shown(at_ms), kind, content }
    }
}
