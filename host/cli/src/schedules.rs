//! `toolcrib schedules`: what agents have set times for. Programs that run jobs fire them.

use super::records::{short, time};
use super::screen::{Table, print, print_json};
use super::setup::Setup;
use super::{Global, notice};
use base::envelope::duration;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use toolcrib::envelope::Failure;
use toolcrib::schedules::{Came, ScheduleShown, SchedulesLook};

#[derive(clap::Args)]
pub(super) struct Which {
    /// Its id
    id: String,
    /// Whose it is, where several agents have one of that id
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Which {
    fn look(&self) -> SchedulesLook {
        SchedulesLook { id: self.id.clone(), agent: self.agent.clone() }
    }
}

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List schedules, by agents and ids
    List {
        /// Those of this agent, instead of all
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a schedule: what it does, when it fires next, and what came of the last time
    Show(Which),
    /// Have a schedule fire no more until it is resumed
    Pause(Which),
    /// Have a schedule fire from now on, also one that was disabled because it failed
    Resume(Which),
    /// Have a schedule fire by programs in this directory, with the settings of now
    Adopt {
        /// Its id
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Whose it is, where several agents have one of that id; with `--all` of this agent alone
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// All that there are
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a schedule; what it has begun goes on
    Remove(Which),
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let (host, context) = (&setup.host, &setup.context);
    match arguments {
        Arguments::List { agent, json } => {
            let (schedules, faults) = host.schedules(agent.as_deref(), context).await?;
            faults.iter().for_each(|fault| notice(fault));
            if json { print_json(&json!({ "schedules": schedules })) } else { list(&schedules) }
        }
        Arguments::Show(which) => show(&host.schedule(&which.look(), context).await?, which.json),
        Arguments::Pause(which) => said(&host.pause_schedule(&which.look(), context).await?, which.json, "is paused"),
        Arguments::Resume(which) => {
            let schedule = host.resume_schedule(&which.look(), context).await?;
            let next = schedule.next.first().cloned().unwrap_or_default();
            said(&schedule, which.json, &format!("fires next at {next}"))
        }
        Arguments::Remove(which) => {
            host.remove_schedule(&which.look()).await?;
            if which.json {
                return print_json(&json!({ "removed": which.id }));
            }
            print(&format!("schedule {} is removed\n", which.id))
        }
        Arguments::Adopt { id, agent, all: _, json } => {
            let looks = match id {
                Some(id) => vec![SchedulesLook { id, agent }],
                None => {
                    let of = |schedule: ScheduleShown| SchedulesLook { id: schedule.id, agent: Some(schedule.agent) };
                    let (there, _) = host.schedules(agent.as_deref(), context).await?;
                    there.into_iter().filter(|schedule| !schedule.fires_here).map(of).collect()
                }
            };
            let mut adopted = Vec::new();
            for look in looks {
                adopted.push(host.adopt_schedule(&look, context).await?);
            }
            if json {
                return print_json(&json!({ "schedules": adopted }));
            }
            let line = |schedule: &ScheduleShown| {
                format!("schedule {} of {} is fired by programs in this directory\n", schedule.id, schedule.agent)
            };
            let lines: String = adopted.iter().map(line).collect();
            print(if lines.is_empty() { "nothing to adopt\n" } else { &lines })
        }
    }
}

fn list(schedules: &[ScheduleShown]) -> Result<ExitCode, Failure> {
    if schedules.is_empty() {
        return print("no schedules\n");
    }
    let mut table = Table::new(&["id", "agent", "state", "does", "when", "next", "last"]);
    for schedule in schedules {
        let does = schedule.tool.as_deref().unwrap_or("event");
        let next = match schedule.next.first() {
            Some(_) if !schedule.fires_here => "by programs elsewhere",
            Some(next) => next,
            None => "",
        };
        let last = schedule.last.map(Came::name).unwrap_or_default();
        table.row([&schedule.id, &schedule.agent, schedule.state.name(), does, &schedule.when, next, last]);
    }
    table.print()
}

fn show(schedule: &ScheduleShown, json: bool) -> Result<ExitCode, Failure> {
    if json {
        return print_json(&json!(schedule));
    }
    let line = |name: &str, value: &str| if value.is_empty() { String::new() } else { format!("{name}: {value}\n") };
    let elsewhere = match schedule.fires_here {
        true => "",
        false => "programs in another directory, or with other settings; `toolcrib schedules adopt` has it fired here",
    };
    let failures = if schedule.failures > 0 { schedule.failures.to_string() } else { String::new() };
    let last = schedule.last.map(|came| match &schedule.last_due {
        Some(due) => format!("{}, due {due}", came.name()),
        None => came.name().to_owned(),
    });
    let text = line("schedule", &schedule.id)
        + &line("agent", &schedule.agent)
        + &line("state", schedule.state.name())
        + &line("does", schedule.tool.as_deref().unwrap_or("hands an event `schedule.fired` to the embedder"))
        + &line(if schedule.tool.is_some() { "arguments" } else { "data" }, &schedule.content)
        + &line("when", &schedule.when)
        + &line("time zone", &schedule.zone)
        + &line("next", &schedule.next.join(", "))
        + &line("fired by", elsewhere)
        + &line("runs now", schedule.running.as_deref().unwrap_or_default())
        + &line("last", last.as_deref().unwrap_or_default())
        + &line("why", &short(&json!(schedule.why)))
        + &line("last job", schedule.last_job.as_deref().unwrap_or_default())
        + &line("failures in a row", &failures)
        + &line("may take", &duration(Duration::from_millis(schedule.timeout_ms)))
        + &line("saved by", &schedule.origin)
        + &line("saved", &time(&json!(schedule.made_ms)));
    print(&text)
}

fn said(schedule: &ScheduleShown, json: bool, how: &str) -> Result<ExitCode, Failure> {
    if json { print_json(&json!(schedule)) } else { print(&format!("schedule {} {how}\n", schedule.id)) }
}
