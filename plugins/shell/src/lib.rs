//! `shell`: runs a script for `sh` with its own variables and directory, in a process of its own.

mod common;
mod streams;

use common::{Variable, declaration, time};
use serde::Deserialize;
use streams::{HEAD_AND_TAIL, Output};
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::shell::{Command, Outcome, Wait};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

struct Shell;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Script for `sh`; it may have several lines.
    command: String,
    /// Absolute, `~/…`, or relative to the working directory.
    working_dir: Option<String>,
    /// Environment variables to set.
    #[serde(default)]
    env: Vec<Variable>,
    /// Time to wait: 1 to 300 seconds or `2m`, default 60. Then it and all that it started are ended.
    timeout_seconds: Option<Span>,
    /// Reason in one sentence, for the person who is asked.
    why: Option<String>,
}

impl Tool for Shell {
    const NAME: &str = "shell";
    const TITLE: Option<&str> = Some("Run a shell command");
    const SUMMARY: &str = "Run a shell command without a terminal pane, and return exit code, stdout and stderr.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "For builds, tests, searches and git that end within five minutes.",
        when_not_to_use: "For one program with quotes or `$` in its arguments: use `exec`. To edit a file: use \
            `file_edit`.",
        disambiguation: "Nothing stays for the next command; `run_shell` can leave a program running. An exit code \
            other than 0 is not an error. The middle of long output is omitted.",
        examples: &[r#"{"command":"cargo test","timeout_seconds":300}"#],
    };
    const IS_OF_COMMAND: bool = true;
    type Input = Input;
    type Output = Output;

    fn call(Input { command, working_dir, env, timeout_seconds, why }: Input) -> Result<Output> {
        if command.trim().is_empty() {
            return Err(Failure::invalid("`command` is blank"));
        }
        let (head, tail) = HEAD_AND_TAIL;
        let wait = Wait::AtMost(time(timeout_seconds.as_ref())?);
        let mut command = Command::new(&command, &declaration(why)).own_process().wait(wait).head(head).tail(tail);
        if let Some(directory) = &working_dir {
            command = command.directory(directory);
        }
        for Variable { key, value } in &env {
            command = command.env(key, value);
        }
        match command.run()? {
            Outcome::Finished(done) => Ok(Output::of(done.exit_code, done.stdout, done.stderr, done.notices)),
            Outcome::Dispatched(_) => Err(Failure::internal("a command that is waited for was left running")),
        }
    }
}

toolcrib_sdk::export!(Shell);
