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
    /// Name on PATH, or absolute path.
    program: String,
    /// Arguments, passed as they are.
    #[serde(default)]
    args: Vec<String>,
    /// Absolute, `~/…`, or relative to the working directory.
    working_dir: Option<String>,
    /// Environment variables to set.
    #[serde(default)]
    env: Vec<Variable>,
    /// Text for standard input; without it there is none.
    stdin: Option<String>,
    /// Time to wait: 1 to 300 seconds or `2m`, default 60. Then it and all that it started are ended.
    timeout_seconds: Option<Span>,
    /// Reason in one sentence, for the person who is asked.
    why: Option<String>,
}

impl Tool for Exec {
    const NAME: &str = "exec";
    const TITLE: Option<&str> = Some("Start a program");
    const SUMMARY: &str = "Start one program without a shell and return exit code, stdout and stderr.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To run one program, especially if arguments contain blanks, quotes or `$`.",
        when_not_to_use: "For pipes, redirections or several commands: use `shell`.",
        disambiguation: "Nothing is expanded: `*`, `~` and `$HOME` are passed as they are. An exit code other than 0 \
            is not an error. The middle of long output is omitted.",
        examples: &[r#"{"program":"git","args":["commit","-m","Fix the \"quote\" bug"]}"#],
    };
    const IS_OF_COMMAND: bool = true;
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
