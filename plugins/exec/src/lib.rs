//! `exec`: starts a program with its arguments, without a shell between.

#[path = "../../shell/src/common.rs"]
mod common;
#[path = "../../shell/src/streams.rs"]
mod streams;

use common::{Variable, declaration, time};
use serde::Deserialize;
use streams::{HEAD_AND_TAIL, Output};
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::exec::{Finished, Program};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

struct Exec;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Program to start: a name that is found on PATH, or an absolute path.
    program: String,
    /// Its arguments, each as it is: no quotes, nothing is expanded.
    #[serde(default)]
    args: Vec<String>,
    /// Directory to start it in: absolute, `~/…`, or relative to the working directory. Without it, that directory.
    working_dir: Option<String>,
    /// Environment variables to set for it.
    #[serde(default)]
    env: Vec<Variable>,
    /// Text for its standard input, which then ends. Without it there is none.
    stdin: Option<String>,
    /// How long to wait: 1 to 300 seconds or such as `2m`, 60 without it. Then it is ended with all that it started.
    timeout_seconds: Option<Span>,
    /// What it is for, in a sentence: a person who is asked about it reads this.
    why: Option<String>,
}

impl Tool for Exec {
    const NAME: &str = "exec";
    const TITLE: Option<&str> = Some("Start a program");
    const SUMMARY: &str =
        "Start a program with its arguments, without a shell, and return exit code, stdout and stderr.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "One program, above all where arguments hold blanks, quotes, `$` or text of others.",
        when_not_to_use: "Pipes, redirections, several commands: use `shell`.",
        disambiguation: "Nothing is expanded: `*`, `~` and `$HOME` are given to the program as they are. An exit code other than 0 is a result, \
            not an error. Of long output the beginning and the end are returned.",
        examples: &[
            r#"{"program":"git","args":["commit","-m","Fix the \"quote\" bug"]}"#,
            r#"{"program":"jq","args":[".name"],"stdin":"{\"name\":\"x\"}"}"#,
        ],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { program, args, working_dir, env, stdin, timeout_seconds, why }: Input) -> Result<Output> {
        if program.trim().is_empty() {
            return Err(Failure::invalid("`program` is blank"));
        }
        let (head, tail) = HEAD_AND_TAIL;
        let mut started = Program::new(&program, &declaration(why)).args(args);
        started = started.at_most(time(timeout_seconds.as_ref())?).head_and_tail(head, tail);
        if let Some(directory) = &working_dir {
            started = started.directory(directory);
        }
        for Variable { key, value } in &env {
            started = started.env(key, value);
        }
        if let Some(text) = stdin {
            started = started.stdin(text);
        }
        let Finished { exit_code, stdout, stderr, notices } = started.run()?;
        Ok(Output::of(exit_code, stdout, stderr, notices))
    }
}

toolcrib_sdk::export!(Exec);
