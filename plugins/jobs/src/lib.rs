//! `jobs`: calls that outlive their caller. A model submits one, goes on with other things, and comes back for what came of it.

mod shown;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shown::{Row, Status, row, status};
use std::collections::BTreeMap;
use std::time::Duration;
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::jobs::{self, Query, State, Submission};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

toolcrib_sdk::export!(JobSubmit, JobStatus, JobWait, JobWatch, JobList, JobCancel);

/// How long `job_wait` and `job_watch` wait where they are not told.
const WAIT: Duration = Duration::from_secs(30);
/// Bytes of each stream that `job_watch` returns at once.
const WATCHED: u32 = 16 << 10;

/// How long to wait.
fn time(timeout: Option<&Span>) -> Result<Duration> {
    timeout.map_or(Ok(WAIT), |timeout| timeout.of("timeout"))
}

struct JobSubmit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubmitInput {
    /// A declared program, or a tool such as `run_shell`.
    bin: String,
    /// Arguments of the program, passed as they are.
    #[serde(default)]
    args: Vec<String>,
    /// Standard input of the program.
    stdin: Option<String>,
    /// For a tool, instead of `args` and `stdin`: its arguments.
    arguments: Option<Map<String, Value>>,
    /// At most 16 names with values, to find the job by.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Time that it may run: seconds, or `1h`; default: 10 minutes.
    timeout: Option<Span>,
    /// Any text. The same token within a day returns the first job.
    token: Option<String>,
    /// Continue when this session closes.
    #[serde(default)]
    outlive_session: bool,
    /// Run it again if its runner is lost. Only if a second run does no harm.
    #[serde(default)]
    may_repeat: bool,
}

#[derive(Serialize, JsonSchema)]
struct Submitted {
    job_id: String,
}

impl Tool for JobSubmit {
    const NAME: &str = "job_submit";
    const TITLE: Option<&str> = Some("Submit a job");
    const SUMMARY: &str = "Start a program or command in the background and return its job id at once.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The work takes long, or must continue after this conversation.",
        when_not_to_use: "You need the result now: call the tool itself.",
        disambiguation: "`job_wait` waits for its end, `job_watch` returns its output, `job_cancel` ends it. Nobody \
            is asked while it runs.",
        examples: &[
            r#"{"bin":"run_shell","arguments":{"command":"make all","risk":"low","mutation":true,"privesc":false,"why":"build it"}}"#,
        ],
    };
    type Input = SubmitInput;
    type Output = Submitted;

    fn call(input: SubmitInput) -> Result<Submitted> {
        let SubmitInput { bin, args, stdin, arguments, labels, timeout, token, outlive_session, may_repeat } = input;
        let arguments = match arguments {
            Some(_) if !args.is_empty() || stdin.is_some() => {
                return Err(Failure::invalid("both `arguments` and `args` or `stdin` are given")
                    .hint("give `args` and `stdin` for a program, `arguments` for another tool"));
            }
            Some(arguments) => Value::Object(arguments),
            None => {
                let mut arguments = json!({});
                if !args.is_empty() {
                    arguments["args"] = json!(args);
                }
                if let Some(stdin) = stdin {
                    arguments["stdin"] = stdin.into();
                }
                arguments
            }
        };
        let mut submission = Submission::new(&bin, &arguments.to_string());
        for (name, value) in &labels {
            submission = submission.label(name, value);
        }
        if let Some(timeout) = timeout {
            submission = submission.at_most(timeout.of("timeout")?);
        }
        if let Some(token) = &token {
            submission = submission.token(token);
        }
        if outlive_session {
            submission = submission.outlive_session();
        }
        if may_repeat {
            submission = submission.may_repeat();
        }
        Ok(Submitted { job_id: submission.submit()? })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IdInput {
    /// Id from `job_submit`.
    job_id: String,
}

struct JobStatus;

impl Tool for JobStatus {
    const NAME: &str = "job_status";
    const TITLE: Option<&str> = Some("Look at a job");
    const SUMMARY: &str = "Return the state of a job, and the start and end of its output so far.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know how a job is doing or how it ended.",
        when_not_to_use: "To wait for its end: use `job_wait`.",
        disambiguation: "`done`: it ended, with any exit code. `error`: it could not run. `orphaned`: its runner was \
            lost, and its effect is unknown.",
        examples: &[r#"{"job_id":"0123abcd"}"#],
    };
    type Input = IdInput;
    type Output = Status;

    fn call(IdInput { job_id }: IdInput) -> Result<Status> {
        status(jobs::get(&job_id, shown::HEAD)?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitInput {
    /// Id from `job_submit`.
    job_id: String,
    /// Longest wait: seconds, or `10m`; default: 30 seconds.
    timeout: Option<Span>,
}

struct JobWait;

impl Tool for JobWait {
    const NAME: &str = "job_wait";
    const TITLE: Option<&str> = Some("Wait for a job");
    const SUMMARY: &str = "Wait until a job has ended and return its result.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have nothing else to do before it ends.",
        when_not_to_use: "To see its output meanwhile: use `job_watch`.",
        disambiguation: "If the time is over, the job continues. If this call is interrupted, a job of this session \
            is cancelled.",
        examples: &[r#"{"job_id":"0123abcd","timeout":"10m"}"#],
    };
    type Input = WaitInput;
    type Output = Status;

    fn call(WaitInput { job_id, timeout }: WaitInput) -> Result<Status> {
        let time = time(timeout.as_ref())?;
        let job = jobs::wait(&job_id, time, true, shown::HEAD)?;
        match job.state {
            State::Pending => notice(format!("the job still waits after {time:?}")),
            State::Running => notice(format!("the job is still running after {time:?}")),
            State::Done | State::Error | State::Cancelled | State::Orphaned => {}
        }
        status(job)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WatchInput {
    /// Id from `job_submit`.
    job_id: String,
    /// `next` of the previous answer; default: the beginning.
    since: Option<String>,
    /// Longest wait for new output: seconds, or `10m`; default: 30 seconds.
    timeout: Option<Span>,
}

#[derive(Serialize, JsonSchema)]
struct Watched {
    job_id: String,
    state: shown::StateName,
    /// Of the program or command, once it has ended; -1 when a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    /// Give this as `since` to read on. Absent where the job has ended and all was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

struct JobWatch;

impl Tool for JobWatch {
    const NAME: &str = "job_watch";
    const TITLE: Option<&str> = Some("Watch a job");
    const SUMMARY: &str = "Return the new output of a job as soon as there is some, or when it ends.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want output while a job runs, or long output in pieces.",
        when_not_to_use: "Only the result matters: use `job_wait`.",
        disambiguation: "Interrupting this call does not cancel the job.",
        examples: &[r#"{"job_id":"0123abcd","since":"4096:0"}"#],
    };
    type Input = WatchInput;
    type Output = Watched;

    fn call(WatchInput { job_id, since, timeout }: WatchInput) -> Result<Watched> {
        let (stdout, stderr) = match &since {
            None => (0, 0),
            Some(since) => starts(since).ok_or_else(|| {
                Failure::invalid(format!("`{since}` is not a `next` of this tool"))
                    .hint("give it as it was returned, such as `4096:0`, or omit `since`")
            })?,
        };
        let job = jobs::follow(&job_id, stdout, stderr, WATCHED, time(timeout.as_ref())?)?;
        let (out, err) = (job.stdout.end, job.stderr.end);
        let has_all = shown::is_end(job.state) && out >= job.stdout.total && err >= job.stderr.total;
        Ok(Watched {
            job_id: job.id,
            state: job.state.into(),
            exit_code: job.exit_code,
            stdout: job.stdout.text,
            stderr: job.stderr.text,
            next: (!has_all).then(|| format!("{out}:{err}")),
        })
    }
}

/// Where both streams are read from.
fn starts(since: &str) -> Option<(u64, u64)> {
    let (stdout, stderr) = since.split_once(':')?;
    Some((stdout.parse().ok()?, stderr.parse().ok()?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// List jobs of all your sessions.
    #[serde(default)]
    all_sessions: bool,
    /// Only jobs in this state.
    status: Option<shown::StateName>,
    /// Only jobs with these labels.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Number of jobs.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "limit")]
    limit: u32,
    /// `next` of the previous page.
    after: Option<String>,
}

fn limit() -> u32 {
    20
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// The newest first.
    jobs: Vec<Row>,
    /// Give this as `after` for the next page. Absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

struct JobList;

impl Tool for JobList {
    const NAME: &str = "job_list";
    const TITLE: Option<&str> = Some("List jobs");
    const SUMMARY: &str = "List your jobs, newest first, with the start of their output.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need a job id, or want to know what is running.",
        when_not_to_use: "",
        disambiguation: "It lists only jobs of this session unless `all_sessions` is true.",
        examples: &[r#"{"all_sessions":true,"status":"running"}"#],
    };
    type Input = ListInput;
    type Output = Listed;

    fn call(ListInput { all_sessions, status, labels, limit, after }: ListInput) -> Result<Listed> {
        let mut query = Query::new().limit(limit);
        if all_sessions {
            query = query.all_sessions();
        }
        if let Some(state) = status {
            query = query.in_state(state.into());
        }
        for (name, value) in &labels {
            query = query.label(name, value);
        }
        if let Some(cursor) = &after {
            query = query.after(cursor);
        }
        let page = query.run()?;
        if page.jobs.is_empty() {
            notice(if all_sessions { "there are no such jobs" } else { "there are no such jobs of this session" });
        }
        Ok(Listed { jobs: page.jobs.into_iter().map(row).collect(), next: page.next })
    }
}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    job_id: String,
    cancelled: bool,
    /// Whether all that it had started has ended by now.
    stopped: bool,
}

struct JobCancel;

impl Tool for JobCancel {
    const NAME: &str = "job_cancel";
    const TITLE: Option<&str> = Some("Cancel a job");
    const SUMMARY: &str = "Cancel a job, and end everything that it started.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Nobody needs the job any more.",
        when_not_to_use: "",
        disambiguation: "",
        examples: &[r#"{"job_id":"0123abcd"}"#],
    };
    type Input = IdInput;
    type Output = Cancelled;

    fn call(IdInput { job_id }: IdInput) -> Result<Cancelled> {
        let job = jobs::cancel(&job_id)?;
        Ok(Cancelled { job_id: job.id, cancelled: true, stopped: job.stopped })
    }
}
