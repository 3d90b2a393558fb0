//! A plugin of somebody else that submits jobs, looks at them and ends them, as it is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_sdk::jobs::{self, Query, Submission};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Clerk;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Submits a call of this tool.
    submit: Option<String>,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Looks at this job.
    get: Option<String>,
    /// Ends this job.
    cancel: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Of the job that was submitted.
    id: Option<String>,
    /// The tools of the jobs that it sees.
    seen: Vec<String>,
    /// The tools that it could submit.
    tools: Vec<String>,
}

impl Tool for Clerk {
    const NAME: &str = "clerk";
    const SUMMARY: &str = "Submit a job, and say which there are.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "In tests.",
        when_not_to_use: "Anywhere else.",
        disambiguation: "It does what it is told.",
        examples: &["{}"],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { submit, arguments, get, cancel }: Input) -> Result<Output> {
        let submitted = submit.map(|tool| Submission::new(&tool, &Value::Object(arguments).to_string()).submit());
        let id = submitted.transpose()?;
        if let Some(id) = get {
            jobs::get(&id, 100)?;
        }
        if let Some(id) = cancel {
            jobs::cancel(&id)?;
        }
        let seen = Query::new().all_sessions().run()?.jobs.into_iter().map(|job| job.tool).collect();
        Ok(Output { id, seen, tools: jobs::tools()? })
    }
}

toolcrib_sdk::export!(Clerk);
