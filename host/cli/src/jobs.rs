//! `toolcrib jobs`: what an operator sees of jobs, of whatever agent, and an end to one. `toolcrib worker` runs them.

use super::call::cancel_on_signal;
use super::records::{short, time};
use super::screen::{Table, print, print_json};
use super::setup::{Setup, usage};
use super::{Global, INTERRUPTED, calls, choice, notice};
use base::envelope::duration;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::watch;
use toolcrib::call::CallContext;
use toolcrib::envelope::Failure;
use toolcrib::jobs::{JobShown, JobState, JobsLook, JobsRunning};
use toolcrib_serve::{Catalog, Notices};

/// How long jobs may take to end when this program does.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often output is looked for that is followed.
const LOOK: Duration = Duration::from_millis(200);

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List jobs, the newest first
    List {
        /// Those of this agent, instead of all
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Those in this state
        #[arg(long, value_name = "STATE", value_parser = choice::one_of::<JobState>())]
        state: Option<JobState>,
        /// Those with this label (repeatable)
        #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
        label: Vec<(String, String)>,
        /// How many at most: 1 to 1000
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Go on behind this page, by the number that it ended with
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a job: what it calls, its state, and how much it printed
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what a job printed
    Output {
        /// Its id, or the beginning of it
        id: String,
        /// Print its standard error instead
        #[arg(long, conflicts_with = "outcome")]
        stderr: bool,
        /// Print what its call returned instead, as JSON
        #[arg(long, conflicts_with = "follow")]
        outcome: bool,
        /// Go on until it has ended
        #[arg(long, short)]
        follow: bool,
    },
    /// End a job, with all that it started
    Cancel {
        /// Its id, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Have a job that waits run by programs in this directory, with the settings of now
    Adopt {
        /// Its id, or the beginning of it
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let host = &setup.host;
    match arguments {
        Arguments::List { agent, state, label, limit, after, json } => {
            let look = JobsLook { agent, state, labels: label.into_iter().collect(), limit, after };
            let (jobs, next) = host.jobs(look).await?;
            if json {
                return print_json(&json!({ "jobs": jobs, "next": next }));
            }
            if let Some(next) = next {
                notice(&format!("there are more: `--after {next}` shows them, `--limit` more at once"));
            }
            list(&jobs)
        }
        Arguments::Show { id, json } => show(&host.job(&id).await?, json),
        Arguments::Output { id, outcome: true, .. } => match host.job_outcome(&id).await? {
            Some(outcome) => print(&format!("{outcome}\n")),
            None => Err(usage(format!("job `{id}` has no outcome"))
                .hint("it has one when its call has ended: `toolcrib jobs show` says how far it is")),
        },
        Arguments::Output { id, stderr, follow, .. } => {
            cancel_on_signal(setup.context.cancel.clone())?;
            output(&setup, &id, stderr, follow).await
        }
        Arguments::Cancel { id, json } => {
            let job = host.cancel_job(&id).await?;
            if !job.stopped {
                notice("what it runs has not ended yet: the program that runs it ends it within moments");
            }
            said(&job, json, "is cancelled")
        }
        Arguments::Adopt { id, json } => {
            said(&host.adopt_job(&id, &setup.context).await?, json, "waits for a program in this directory")
        }
    }
}

fn list(jobs: &[JobShown]) -> Result<ExitCode, Failure> {
    if jobs.is_empty() {
        return print("no jobs\n");
    }
    let mut table = Table::new(&["id", "state", "exit", "agent", "tool", "submitted", "why"]);
    for job in jobs {
        let code = job.exit_code.map(|code| code.to_string()).unwrap_or_default();
        let (made, cause) = (time(&json!(job.made_ms)), short(&json!(job.cause)));
        let id = job.id.get(..calls::SHOWN_ID).unwrap_or(&job.id);
        table.row([id, job.state.name(), &code, &job.agent, &job.tool, &made, &cause]);
    }
    table.print()
}

fn show(job: &JobShown, json: bool) -> Result<ExitCode, Failure> {
    if json {
        return print_json(&json!(job));
    }
    let line = |name: &str, value: &str| if value.is_empty() { String::new() } else { format!("{name}: {value}\n") };
    let at = |ms: Option<u64>| ms.map(|ms| time(&json!(ms))).unwrap_or_default();
    let labels = job.labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ");
    let code = job.exit_code.map(|code| code.to_string()).unwrap_or_default();
    let ran = job.began_ms.zip(job.ended_ms).map(|(began, ended)| ended.saturating_sub(began));
    let ran = ran.map(|ms| duration(Duration::from_millis(ms))).unwrap_or_default();
    let printed = format!("{} bytes, and {} of standard error", job.stdout_bytes, job.stderr_bytes);
    let text = line("job", &job.id)
        + &line("state", job.state.name())
        + &line("why", job.cause.as_deref().unwrap_or_default())
        + &line("exit status", &code)
        + &line("tool", &job.tool)
        + &line("arguments", job.arguments.as_deref().unwrap_or_default())
        + &line("agent", &job.agent)
        + &line("submitted by", &job.origin)
        + &line("session", &job.session)
        + &line("labels", &labels)
        + &line("submitted", &at(Some(job.made_ms)))
        + &line("began", &at(job.began_ms))
        + &line("ended", &at(job.ended_ms))
        + &line("took", &ran)
        + &line("printed", &printed);
    print(&text)
}

fn said(job: &JobShown, json: bool, how: &str) -> Result<ExitCode, Failure> {
    if json { print_json(&json!(job)) } else { print(&format!("job {} {how}\n", job.id)) }
}

/// Prints what there is, and what comes until the job has ended, if that is wanted.
async fn output(setup: &Setup, id: &str, stderr: bool, follow: bool) -> Result<ExitCode, Failure> {
    let job = setup.host.job(id).await?;
    let (mut read, mut stdout) = (0, std::io::stdout().lock());
    loop {
        // Before its output: what it printed before its end is then read.
        let has_ended = setup.host.job(&job.id).await?.state.is_end();
        loop {
            let (text, end) = setup.host.job_output(&job.id, stderr, read).await?;
            if text.is_empty() {
                break;
            }
            read = end;
            if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                // The reader has gone.
                return Ok(ExitCode::SUCCESS);
            }
        }
        if has_ended || !follow {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = setup.context.cancel.cancelled() => return Ok(ExitCode::from(INTERRUPTED)),
        }
    }
}

/// Runs jobs beside the calls of a program that stays; none where settings switch them off.
pub(super) async fn begin(
    setup: &Setup,
    context: &CallContext,
    catalog: &Catalog,
) -> Result<Option<JobsRunning>, Failure> {
    let running = setup.host.run_jobs(context.clone(), Box::new(catalog.now())).await?;
    if let Some(running) = &running {
        tokio::spawn(tell("no jobs are run", running.trouble()));
        tokio::spawn(tell("no schedules are fired", running.trouble_with_schedules()));
        let unfired = running.unfired();
        tokio::spawn(async move {
            // A store that cannot be used is reported by the worker.
            let unfired = unfired.await.unwrap_or_default();
            if unfired > 0 {
                notice(&format!(
                    "schedules of this place that were saved with other settings, and do not fire: {unfired}; `toolcrib schedules list` shows \
                     them, `toolcrib schedules adopt` has them fired by those of now"
                ));
            }
        });
    }
    Ok(running)
}

async fn tell(what: &'static str, mut trouble: watch::Receiver<Option<String>>) {
    while trouble.changed().await.is_ok() {
        if let Some(why) = trouble.borrow_and_update().clone() {
            notice(&format!("{what}: {why}"));
        }
    }
}

/// Ends what runs.
pub(super) async fn end(running: Option<JobsRunning>) {
    if let Some(running) = running {
        let _ = tokio::time::timeout(PATIENCE, running.close()).await;
    }
}

#[derive(clap::Args)]
#[command(
    after_help = "Jobs are calls that agents submitted with `job_submit`, or have scheduled with `cron`. This program runs those of the same \
directory, settings and options, as `toolcrib serve` and `toolcrib run` do beside their calls; any number of such programs share the work. It \
ends at Ctrl-C: what runs then is ended, too."
)]
pub(super) struct Worker {}

pub(super) async fn work(global: &Global) -> Result<ExitCode, Failure> {
    let setup = Setup::serving(global).await?;
    let stop = setup.context.cancel.clone();
    cancel_on_signal(stop.clone())?;
    let _announced = calls::announce(&setup);
    let catalog = Catalog::watching(setup.context.tools.clone(), setup.plugins.clone(), Notices::new(notice), None);
    let Some(running) = begin(&setup, &setup.context, &catalog).await? else {
        return Err(
            usage("jobs are switched off by `jobs.enabled = false`").hint("`toolcrib config show --origin` says where")
        );
    };
    let elsewhere = running.waiting_elsewhere().await?;
    if elsewhere > 0 {
        notice(&format!(
            "jobs that wait for a program in another directory, or with other settings: {elsewhere}; `toolcrib jobs list` shows them, `toolcrib \
             jobs adopt` has one run here"
        ));
    }
    notice("running jobs until Ctrl-C");
    stop.cancelled().await;
    end(Some(running)).await;
    Ok(ExitCode::from(INTERRUPTED))
}
