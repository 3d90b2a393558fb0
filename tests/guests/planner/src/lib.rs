//! A plugin of somebody else that has jobs and events at set times, as it is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use toolcrib_sdk::schedules::{self, Plan};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Planner;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Saves a schedule of this id.
    save: Option<String>,
    /// Calls of this tool with these arguments.
    #[serde(default)]
    tool: Vec<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Events with these data.
    #[serde(default)]
    data: Vec<String>,
    /// How often, in seconds, and when.
    #[serde(default)]
    every: Vec<u64>,
    #[serde(default)]
    cron: Vec<String>,
    #[serde(default)]
    replace: bool,
    /// Removes the one of this id.
    remove: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The ids that it sees.
    seen: Vec<String>,
}

impl Tool for Planner {
    const NAME: &str = "planner";
    const SUMMARY: &str = "Have something done at set times.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "In tests.",
        when_not_to_use: "Anywhere else.",
        disambiguation: "It does what it is told.",
        examples: &["{}"],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { save, tool, arguments, data, every, cron, replace, remove }: Input) -> Result<Output> {
        if let Some(id) = save {
            let arguments = Value::Object(arguments).to_string();
            let mut plan = Plan::new(&id);
            plan = tool.iter().fold(plan, |plan, tool| plan.job(tool, &arguments));
            plan = data.iter().fold(plan, |plan, data| plan.event(data));
            plan = every.iter().fold(plan, |plan, seconds| plan.every(Duration::from_secs(*seconds)));
            plan = cron.iter().fold(plan, |plan, expression| plan.cron(expression));
            if replace {
                plan = plan.replace();
            }
            plan.save()?;
        }
        if let Some(id) = remove {
            schedules::remove(&id)?;
        }
        Ok(Output { seen: schedules::list_all()?.into_iter().map(|schedule| schedule.id).collect() })
    }
}

toolcrib_sdk::export!(Planner);
