//! `run_shell`: runs one command on the call's backend.
//!
//! Shapes arguments and result; the host judges the command, asks for approval, runs it and keeps its output.

mod wait;

use serde::{Deserialize, Serialize};
use toolcrib_sdk::shell::{self, Outcome};
use toolcrib_sdk::{Captured, Declaration, Failure, Guidance, JsonSchema, Pane, Result, Tool, schemars};

/// Characters of the beginning and of the end of each stream: errors are mostly at the end.
const HEAD_AND_TAIL: (u32, u32) = (1_500, 2_500);

struct RunShell;

// serde cannot deny unknown fields beside `flatten`; the host does, the schema that the SDK makes is closed.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Script for `bash` if that is the user's shell, else for `sh`.
    command: String,
    #[serde(flatten)]
    declaration: Declaration,
    /// `true`: until it exits, the default. `false`: leave it running. Seconds, or `500ms`, `10m`: at most that long.
    #[serde(default)]
    wait: wait::Argument,
    /// Session to run in.
    session: Option<String>,
    /// Default: the shared pane.
    pane: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Output {
    /// The command has exited.
    Finished(Finished),
    /// The command is still running; the text says where.
    Dispatched(String),
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Finished {
    /// -1 when a signal ended the command.
    exit_code: i32,
    stdout: String,
    stderr: String,
    /// What happened besides.
    notices: Vec<String>,
}

impl Tool for RunShell {
    const NAME: &str = "run_shell";
    const TITLE: Option<&str> = Some("Run a command");
    const SUMMARY: &str = "Run a shell command and return its exit code and output.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "For commands without keyboard input: builds, tests, git.",
        when_not_to_use: "To press keys in a running program: use `send-keys`.",
        disambiguation: "In a pane, stdout and stderr are one stream. Of long \
            output you get the first 1,500 and the last 2,500 characters.",
        examples: &[
            r#"{"command":"npm run dev","risk":"low","mutation":true,"privesc":false,"why":"try it","wait":false}"#,
        ],
    };
    const IS_OF_COMMAND: bool = true;
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        let Input { command, declaration, wait, session, pane } = input;
        for (name, text) in [("command", &command), ("why", &declaration.why)] {
            if text.trim().is_empty() {
                return Err(Failure::invalid(format!("`{name}` is blank")));
            }
        }
        let wait = wait.parse()?;
        let (head, tail) = HEAD_AND_TAIL;
        let mut command = shell::Command::new(&command, &declaration).wait(wait).head(head).tail(tail);
        if let Some(pane) = Pane::named(session, pane, None) {
            command = command.in_pane(&pane);
        }
        Ok(match command.run()? {
            Outcome::Finished(finished) => Output::Finished(report(finished)),
            Outcome::Dispatched(pane) => Output::Dispatched(format!(
                "the command is still running in pane `{pane}`; `capture-pane` shows its progress"
            )),
        })
    }
}

/// Returns what the model gets of a finished command, with a notice for each stream that was cut.
fn report(finished: shell::Finished) -> Finished {
    let shell::Finished { exit_code, stdout, stderr, mut notices } = finished;
    notices.extend(cut("stdout", &stdout));
    notices.extend(cut("stderr", &stderr));
    Finished { exit_code, stdout: stdout.text, stderr: stderr.text, notices }
}

fn cut(stream: &str, captured: &Captured) -> Option<String> {
    let rest = match &captured.stored {
        Some(place) => format!("more of it is kept as `{place}`"),
        None => "the rest was not kept".into(),
    };
    captured
        .truncated
        .then(|| format!("{stream} has {} bytes, of which the middle is left out; {rest}", captured.bytes))
}

toolcrib_sdk::export!(RunShell);

#[cfg(test)]
mod tests {
    use super::*;

    fn input(command: &str, why: &str, wait: wait::Argument) -> Input {
        let risk = toolcrib_sdk::Risk::Low;
        let declaration = Declaration { risk, mutation: false, privesc: false, why: why.into() };
        Input { command: command.into(), declaration, wait, session: None, pane: None }
    }

    fn refused(input: Input) -> Failure {
        RunShell::call(input).err().unwrap()
    }

    #[test]
    fn blank_text_and_bad_durations_are_refused_before_anything_runs() {
        assert_eq!(refused(input(" ", "test", wait::Argument::default())), Failure::invalid("`command` is blank"));
        assert_eq!(refused(input("true", "\t", wait::Argument::default())), Failure::invalid("`why` is blank"));
        let wait = wait::Argument::Duration("bad".into());
        assert!(refused(input("true", "test", wait)).message.contains("invalid wait duration"));
    }

    #[test]
    fn a_cut_stream_is_remarked() {
        let whole = Captured { text: "ok".into(), bytes: 2, truncated: false, stored: None };
        let head = Captured {
            text: "he\n[8996 bytes left out, kept in call-7/stderr]\nad".into(),
            bytes: 9_000,
            truncated: true,
            stored: Some("call-7/stderr".into()),
        };
        let finished =
            shell::Finished { exit_code: 3, stdout: whole, stderr: head, notices: vec!["left running".into()] };
        let notice = "stderr has 9000 bytes, of which the middle is left out; more of it is kept as `call-7/stderr`";
        let expected = Finished {
            exit_code: 3,
            stdout: "ok".into(),
            stderr: "he\n[8996 bytes left out, kept in call-7/stderr]\nad".into(),
            notices: vec!["left running".into(), notice.into()],
        };
        assert_eq!(report(finished), expected);
    }
}
