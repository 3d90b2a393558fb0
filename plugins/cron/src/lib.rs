//! `cron`: what is to be done at set times: a prompt that the agent gets then, or a program or command that runs as a job.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::schedules::{self, Came, Last, Plan, Schedule, State};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

toolcrib_sdk::export!(Cron);

/// How often something is done where nothing is said of when.
const INTERVAL: Duration = Duration::from_hours(1);

struct Cron;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    List,
    Delete,
    Pause,
    Resume,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to do.
    action: Action,
    /// Id of the schedule: letters, digits, `_`, `-`.
    #[schemars(length(min = 1, max = 50))]
    id: Option<String>,
    /// For `create`: text that you get each time.
    #[schemars(length(min = 1, max = 10_000))]
    prompt: Option<String>,
    /// Where the result of the prompt goes: `adapter:target`.
    delivery_target: Option<String>,
    /// For `create`, instead of `prompt`: a declared program, or a tool such as `run_shell`.
    bin: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// Standard input of the program.
    stdin: Option<String>,
    /// For a tool, instead of `args` and `stdin`: its arguments.
    arguments: Option<Map<String, Value>>,
    /// Five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday).
    cron_expr: Option<String>,
    /// Instead of `cron_expr`: time between runs, seconds or `10m`; at least a minute; default: an hour.
    interval_secs: Option<Span>,
    /// Time zone, such as `Europe/Berlin`; default: this machine's.
    zone: Option<String>,
    /// First hour of the day; needs `active_end_hour`.
    #[schemars(range(min = 0, max = 23))]
    active_start_hour: Option<u8>,
    /// Hour at which it stops; 22 to 6 goes over midnight, 0 is midnight.
    #[schemars(range(min = 0, max = 23))]
    active_end_hour: Option<u8>,
    /// For `delete`: id of the schedule.
    delete_id: Option<String>,
    /// Time that a run may take, seconds or `10m`; default: 10 minutes.
    timeout_secs: Option<Span>,
    /// End after one run.
    #[serde(default)]
    run_once: bool,
    /// Replace a schedule of the same id.
    #[serde(default)]
    replace: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The one that was created, paused or resumed; or all.
    schedules: Vec<Row>,
    /// The one that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StateName {
    Active,
    Paused,
    Disabled,
    Over,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    id: String,
    /// `disabled` after too many failures; `resume` makes it `active` again.
    state: StateName,
    when: String,
    zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// The next times.
    next: Vec<String>,
    /// How often it has failed in a row.
    failures: u64,
    /// What came of the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastRow>,
    /// The job that runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<String>,
    /// What it waits for, where nobody here would fire it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct LastRow {
    due: String,
    /// `done`, `failed`, `missed` where it did not begin, or `cancelled`.
    came: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// `job_status` says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
}

impl Tool for Cron {
    const NAME: &str = "cron";
    const TITLE: Option<&str> = Some("Do something at set times");
    const SUMMARY: &str = "Run a prompt, program or command at set times, or manage such schedules.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Something must happen later, or again and again.",
        when_not_to_use: "To run something in the background now: use `job_submit`.",
        disambiguation: "`create` needs `id`, and `prompt` or `bin`. Nobody is asked when it runs. Only the latest \
            missed run is made up for, if recent. Three failures in a row disable a schedule.",
        examples: &[r#"{"action":"create","id":"morning","prompt":"Sum up new mail.","cron_expr":"0 9 * * 1-5"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        let one = |schedule| Ok(Output { schedules: vec![row(schedule)], deleted: None });
        match input.action {
            Action::Create => one(create(input)?),
            Action::Pause => one(schedules::pause(&named(input.id, "pause")?)?),
            Action::Resume => one(schedules::resume(&named(input.id, "resume")?)?),
            Action::Delete => {
                let id = named(input.delete_id.or(input.id), "delete")?;
                schedules::remove(&id)?;
                Ok(Output { deleted: Some(id), schedules: Vec::new() })
            }
            Action::List => {
                let all = schedules::list_all()?;
                if all.is_empty() {
                    notice("there are no schedules");
                }
                Ok(Output { schedules: all.into_iter().map(row).collect(), deleted: None })
            }
        }
    }
}

fn named(id: Option<String>, action: &str) -> Result<String> {
    let field = if action == "delete" { "delete_id" } else { "id" };
    id.ok_or_else(|| Failure::invalid(format!("`{action}` wants a `{field}`")).hint("`list` says which there are"))
}

fn create(input: Input) -> Result<Schedule> {
    let id = input.id.ok_or_else(|| {
        Failure::invalid("`create` wants an `id`").hint("any name of letters, digits, `_` and `-`, such as `morning`")
    })?;
    if let Some(delete_id) = input.delete_id {
        return Err(Failure::invalid(format!("`delete_id` {delete_id:?} is for `delete`")).hint("leave it out"));
    }
    let mut plan = Plan::new(&id);
    let is_of_program = !input.args.is_empty() || input.stdin.is_some();
    plan = match (input.prompt, input.bin) {
        (Some(prompt), None) => {
            if is_of_program || input.arguments.is_some() {
                return Err(Failure::invalid("`args`, `stdin` and `arguments` are for `bin`").hint("leave them out"));
            }
            let mut data = json!({ "prompt": prompt });
            if let Some(target) = input.delivery_target {
                check_target(&target)?;
                data["delivery_target"] = target.into();
            }
            plan.event(&data.to_string())
        }
        (None, Some(bin)) => {
            if input.delivery_target.is_some() {
                return Err(Failure::invalid("`delivery_target` is for `prompt`").hint("leave it out"));
            }
            let arguments = match input.arguments {
                Some(_) if is_of_program => {
                    return Err(Failure::invalid("both `arguments` and `args` or `stdin` are given")
                        .hint("give `args` and `stdin` for a program, `arguments` for another tool"));
                }
                Some(arguments) => Value::Object(arguments),
                None => {
                    let mut arguments = json!({});
                    if !input.args.is_empty() {
                        arguments["args"] = json!(input.args);
                    }
                    if let Some(stdin) = input.stdin {
                        arguments["stdin"] = stdin.into();
                    }
                    arguments
                }
            };
            plan.job(&bin, &arguments.to_string())
        }
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("both `prompt` and `bin` are given").hint("give one of them"));
        }
        (None, None) => {
            return Err(Failure::invalid("`create` wants a `prompt`, or a `bin`")
                .hint("`prompt` is the text that you get each time, `bin` a program or tool that runs"));
        }
    };
    plan = match (input.cron_expr, input.interval_secs) {
        (Some(expression), None) => plan.cron(&expression),
        (None, None) => plan.every(INTERVAL),
        (None, Some(interval)) => plan.every(interval.of("interval_secs")?),
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("both `cron_expr` and `interval_secs` are given").hint("give one of them"));
        }
    };
    plan = match (input.active_start_hour, input.active_end_hour) {
        (Some(start), Some(end)) => plan.hours(start, end),
        (None, None) => plan,
        (Some(_), None) | (None, Some(_)) => {
            return Err(Failure::invalid("`active_start_hour` and `active_end_hour` are given together")
                .hint("such as 9 and 17; 22 and 6 are over midnight"));
        }
    };
    if let Some(zone) = &input.zone {
        plan = plan.zone(zone);
    }
    if let Some(timeout) = input.timeout_secs {
        plan = plan.at_most(timeout.of("timeout_secs")?);
    }
    if input.run_once {
        plan = plan.once();
    }
    if input.replace {
        plan = plan.replace();
    }
    plan.save()
}

fn check_target(target: &str) -> Result<()> {
    match target.split_once(':') {
        Some((adapter, name)) if !adapter.trim().is_empty() && !name.trim().is_empty() => Ok(()),
        _ => Err(Failure::invalid(format!("`{target}` is no `delivery_target`"))
            .hint("write `adapter:target`, such as `discord:general`")),
    }
}

fn row(schedule: Schedule) -> Row {
    let content: Value = serde_json::from_str(&schedule.content).unwrap_or_default();
    let text = |key: &str| content[key].as_str().map(str::to_owned);
    let (prompt, delivery_target, arguments) = match schedule.tool {
        None => (text("prompt"), text("delivery_target"), None),
        Some(_) => (None, None, Some(content.clone())),
    };
    Row {
        id: schedule.id,
        state: match schedule.state {
            State::Active => StateName::Active,
            State::Paused => StateName::Paused,
            State::Disabled => StateName::Disabled,
            State::Over => StateName::Over,
        },
        when: schedule.when,
        zone: schedule.zone,
        prompt,
        delivery_target,
        bin: schedule.tool,
        arguments,
        next: schedule.next,
        failures: schedule.failures,
        last: schedule.last.map(|Last { due, came, why, job }| LastRow {
            due,
            came: match came {
                Came::Done => "done",
                Came::Failed => "failed",
                Came::Missed => "missed",
                Came::Cancelled => "cancelled",
            },
            why,
            job_id: job,
        }),
        running: schedule.running,
        waits: schedule.waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_an_adapter_and_a_name() {
        assert!(check_target("discord:general").is_ok());
        for bad in ["", ":", "discord", "discord:", ":general", " : "] {
            assert!(check_target(bad).is_err(), "{bad}");
        }
    }
}
