//! `starter`: runs what its caller words, by a shell or without one, with variables, a directory and an input.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::exec::Program;
use toolcrib_sdk::programs::{self, Run};
use toolcrib_sdk::shell::{Command, Outcome};
use toolcrib_sdk::{Captured, Declaration, Failure, Guidance, JsonSchema, Result, Risk, Tool, schemars};

struct Starter;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A script for `sh`, or a program with its arguments.
    run: Vec<String>,
    /// Whether it is a program.
    #[serde(default)]
    program: bool,
    /// Whether it is a declared program.
    #[serde(default)]
    declared: bool,
    /// Only name the declared programs.
    #[serde(default)]
    names: bool,
    /// Names and values of variables.
    #[serde(default)]
    env: Vec<[String; 2]>,
    directory: Option<String>,
    stdin: Option<String>,
    /// How much of the beginning and of the end to return.
    shown: Option<[u32; 2]>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    exit_code: i32,
    /// Of its standard output.
    bytes: u64,
    stdout: String,
    stderr: String,
}

impl Output {
    fn of(exit_code: i32, stdout: Captured, stderr: Captured) -> Self {
        Self { exit_code, bytes: stdout.bytes, stdout: stdout.text, stderr: stderr.text }
    }
}

impl Tool for Starter {
    const NAME: &str = "start";
    const SUMMARY: &str = "Run what is worded, by a shell or without one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see what a program is started with.",
        when_not_to_use: "For work.",
        disambiguation: "`exec` and `shell` are for models.",
        examples: &[r#"{"run":["true"],"program":true}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { run, program, declared, names, env, directory, stdin, shown }: Input) -> Result<Output> {
        if names {
            let programs = programs::declared()?;
            let named: Vec<_> = programs.iter().map(|program| format!("{}: {}", program.name, program.about)).collect();
            return Ok(Output { exit_code: 0, bytes: 0, stdout: named.join("\n"), stderr: String::new() });
        }
        let declaration = Declaration { risk: Risk::Low, mutation: true, privesc: false, why: "a test".into() };
        let first = run.first().ok_or_else(|| Failure::invalid("nothing to run"))?;
        let [head, tail] = shown.unwrap_or([4000, 0]);
        if declared {
            let run = Run::new(first).args(run[1..].to_vec()).stdin(stdin.unwrap_or_default());
            let done = run.head_and_tail(head, tail).start()?;
            return Ok(Output::of(done.exit_code, done.stdout, done.stderr));
        }
        if program {
            let mut program = Program::new(first, &declaration).args(run[1..].to_vec()).head_and_tail(head, tail);
            for [name, value] in &env {
                program = program.env(name, value);
            }
            if let Some(directory) = &directory {
                program = program.directory(directory);
            }
            let done = program.stdin(stdin.unwrap_or_default()).run()?;
            return Ok(Output::of(done.exit_code, done.stdout, done.stderr));
        }
        let mut command = Command::new(first, &declaration).head(head).tail(tail);
        for [name, value] in &env {
            command = command.env(name, value);
        }
        if let Some(directory) = &directory {
            command = command.directory(directory);
        }
        if let Some(text) = stdin {
            command = command.stdin(text);
        }
        match command.run()? {
            Outcome::Finished(done) => Ok(Output::of(done.exit_code, done.stdout, done.stderr)),
            Outcome::Dispatched(pane) => Err(Failure::internal(format!("it was left running in `{pane}`"))),
        }
    }
}

toolcrib_sdk::export!(Starter);
