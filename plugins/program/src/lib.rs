//! The tool that each declared program is, under the program's name: arguments and input in, status and streams out. The host shows what the
//! program is about, and its usage page.

#[path = "../../shell/src/streams.rs"]
mod streams;

use serde::Deserialize;
use streams::{HEAD_AND_TAIL, Output};
use toolcrib_sdk::programs::{Finished, Run, declared};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

struct Program;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Arguments, passed as they are.
    #[serde(default)]
    args: Vec<String>,
    /// Text for standard input; without it there is none.
    stdin: Option<String>,
}

impl Tool for Program {
    const NAME: &str = "program";
    const SUMMARY: &str = "Run a program that the user has declared.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need what this program does.",
        when_not_to_use: "For pipes, redirections or several programs: they need a shell.",
        disambiguation: "It runs in the working directory without a shell: `*`, `~` and `$HOME` are passed as they \
            are. Give `args`, `stdin` or both. The middle of long output is omitted.",
        examples: &[r#"{"args":["--help"]}"#],
    };
    const IS_OF_COMMAND: bool = true;
    type Input = Input;
    type Output = Output;

    fn call(Input { args, stdin }: Input) -> Result<Output> {
        if args.is_empty() && stdin.as_ref().is_none_or(String::is_empty) {
            // Most would print their help, or wait for input.
            return Err(Failure::invalid("neither `args` nor `stdin` is given").hint("give one of them, or both"));
        }
        // What was granted is the one program of this tool.
        let program = declared()?.into_iter().next().ok_or_else(|| Failure::internal("no program was granted"))?;
        let (head, tail) = HEAD_AND_TAIL;
        let run = Run::new(&program.name).args(args).stdin(stdin.unwrap_or_default()).head_and_tail(head, tail);
        let Finished { exit_code, stdout, stderr, notices } = run.start()?;
        Ok(Output::of(exit_code, stdout, stderr, notices))
    }
}

toolcrib_sdk::export!(Program);
