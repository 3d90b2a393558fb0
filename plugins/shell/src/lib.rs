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
    /// Script for `sh`; several lines run as one command.
    command: String,
    /// Directory to run it in: absolute, `~/…`, or relative to the working directory. Without it, that directory.
    working_dir: Option<String>,
    /// Environment variables to set for it.
    #[serde(default)]
    env: Vec<Variable>,
    /// How long to wait: 1 to 300 seconds or such as `2m`, 60 without it. Then it is ended with all that it started.
    timeout_seconds: Option<Span>,
    /// What it is for, in a sentence: a person who is asked about it reads this.
    why: Option<String>,
}

impl Tool for Shell {
    const NAME: &str = "shell";
    const TITLE: Option<&str> = Some("Run a shell command");
    const SUMMARY: &str =
        "Run a shell command with its own variables and directory, and return exit code, stdout and stderr.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Builds, tests, searches, git: whatever a shell does that ends by itself within five minutes.",
        when_not_to_use: "For one program with arguments that hold quotes or `$`: use `exec`. To edit a file: use `file_edit`.",
        disambiguation: "Each command is a process of its own: nothing stays for the next one, and it reads nothing. An exit code other than 0 \
            is a result, not an error. Of long output the beginning and the end are returned.",
        examples: &[
            r#"{"command":"cargo test 2>&1 | tail -20","timeout_seconds":300}"#,
            r#"{"command":"make check","working_dir":"lib","env":[{"key":"CI","value":"1"}]}"#,
        ],
    };
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
