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
    /// The program, by the name that the user has declared it under; or another tool, such as `run_shell`.
    bin: String,
    /// The program's arguments, each as it is: no quotes, nothing is expanded.
    #[serde(default)]
    args: Vec<String>,
    /// Text for the program's standard input, which then ends.
    stdin: Option<String>,
    /// For a tool that is not a program, instead of `args` and `stdin`: the arguments of its call.
    arguments: Option<Map<String, Value>>,
    /// What to find it by: at most 16 names with values.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// How long it may take once it runs: seconds, or such as `1h`; without it 10 minutes.
    timeout: Option<Span>,
    /// Any text. A second submission with the same one within a day returns the job of the first.
    token: Option<String>,
    /// Whether it goes on when this session is closed.
    #[serde(default)]
    outlive_session: bool,
    /// Whether it may be run again where the program that ran it was lost. Only for what can be done twice without harm.
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
    const SUMMARY: &str = "Start a program or command in the background, and return the id of its job at once.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It takes longer than you want to wait, or has to go on when this conversation ends.",
        when_not_to_use: "You need the result now: call the tool itself.",
        disambiguation: "`job_wait` waits for its end, `job_watch` returns what it prints, `job_status` looks at it, `job_cancel` ends it. \
            A person may be asked now; nobody is asked while it runs. An exit code other than 0 is a result: its state is `done`.",
        examples: &[
            r#"{"bin":"jq","args":[".name"],"stdin":"{\"name\":\"a\"}"}"#,
            r#"{"bin":"run_shell","arguments":{"command":"make all","risk":"low","mutation":true,"privesc":false,"why":"build it","wait":"1h"},"timeout":"1h"}"#,
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
    /// What `job_submit` returned.
    job_id: String,
}

struct JobStatus;

impl Tool for JobStatus {
    const NAME: &str = "job_status";
    const TITLE: Option<&str> = Some("Look at a job");
    const SUMMARY: &str = "Return the state of a job, and the beginning and end of what it printed so far.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know how a job is doing, or what came of it.",
        when_not_to_use: "To wait for its end: use `job_wait`.",
        disambiguation: "States: `pending`, `running`, `done` (any exit code), `error` (could not be run: `cause` says why), `cancelled`, \
            `orphaned` (the program that ran it was lost; it may have done all, some or nothing).",
        examples: &[r#"{"job_id":"0123456789abcdef0123456789abcdef"}"#],
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
    /// What `job_submit` returned.
    job_id: String,
    /// How long to wait at most: seconds, or such as `10m`; without it 30 seconds.
    timeout: Option<Span>,
}

struct JobWait;

impl Tool for JobWait {
    const NAME: &str = "job_wait";
    const TITLE: Option<&str> = Some("Wait for a job");
    const SUMMARY: &str =
        "Wait until a job has ended, for 30 seconds unless you say how long, and return what came of it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have nothing else to do before the job has ended.",
        when_not_to_use: "To see what it prints meanwhile: use `job_watch`.",
        disambiguation: "A job that still runs when the time is over goes on: `state` says so. If this call is interrupted, a job of this \
            session is cancelled; `job_watch` never does that.",
        examples: &[r#"{"job_id":"0123456789abcdef0123456789abcdef","timeout":"10m"}"#],
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
    /// What `job_submit` returned.
    job_id: String,
    /// `next` of the answer before; without it from the beginning on.
    since: Option<String>,
    /// How long to wait at most where there is nothing new: seconds, or such as `10m`; without it 30 seconds.
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
    const SUMMARY: &str =
        "Return what a job has printed since the last look, as soon as there is something new or it has ended.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see what a job prints while it runs, or read all of long output piece by piece.",
        when_not_to_use: "Only its end matters: use `job_wait`.",
        disambiguation: "Give `next` of each answer as `since` of the next call: each piece comes once. The job goes on if this call is \
            interrupted.",
        examples: &[r#"{"job_id":"0123456789abcdef0123456789abcdef","since":"4096:0"}"#],
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
    /// Whether to list jobs of all of your sessions, not of this one alone.
    #[serde(default)]
    all_sessions: bool,
    /// Only jobs in this state.
    status: Option<shown::StateName>,
    /// Only jobs with these labels.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "limit")]
    limit: u32,
    /// `next` of the page before.
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
    const SUMMARY: &str = "List your jobs, the newest first, with the beginning of what each printed.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You do not know the id of a job any more, or want to know what is still running.",
        when_not_to_use: "You have its id: use `job_status`.",
        disambiguation: "Without `all_sessions` it has the jobs of this session alone.",
        examples: &["{}", r#"{"all_sessions":true,"status":"running"}"#],
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
    const SUMMARY: &str = "End a job: one that waits never begins, one that runs is ended with all that it started.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Nobody needs what it does any more.",
        when_not_to_use: "It has ended already.",
        disambiguation: "What it printed until then is kept: `job_status` has it.",
        examples: &[r#"{"job_id":"0123456789abcdef0123456789abcdef"}"#],
    };
    type Input = IdInput;
    type Output = Cancelled;

    fn call(IdInput { job_id }: IdInput) -> Result<Cancelled> {
        let job = jobs::cancel(&job_id)?;
        Ok(Cancelled { job_id: job.id, cancelled: true, stopped: job.stopped })
    }
}
