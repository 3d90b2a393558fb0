//! `command_output`: how a command goes on that was left running.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::panes::{self, Progress};
use toolcrib_sdk::{Guidance, JsonSchema, Pane, Result, Tool, notice, schemars};

/// Characters of the beginning and of the end: as `run_shell` returns.
const HEAD_AND_TAIL: (u32, u32) = (1_500, 2_500);

struct CommandOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Id of the pane, as `run_shell` told it; default: the command that was left last.
    target: Option<String>,
    /// Instead of `target`: session name.
    session: Option<String>,
    /// Instead of `target`: pane name.
    pane: Option<String>,
    /// Time to wait for its end: seconds, or `500ms`, `2m`; at most 10 minutes.
    wait: Option<Span>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Output {
    running: bool,
    /// -1 when a signal ended it; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What it has printed since the last look.
    output: String,
}

impl Tool for CommandOutput {
    const NAME: &str = "command_output";
    const TITLE: Option<&str> = Some("Follow a command");
    const SUMMARY: &str = "Return what a command that was left running has printed since the last look, and its exit code once it has ended.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "After `run_shell` with `wait: false`, or when it timed out.",
        when_not_to_use: "To see a full-screen program: use `capture-pane`.",
        disambiguation: "While it runs, only complete lines are returned.",
        examples: &[r#"{"wait":"2m"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        let wait = panes::span("wait", input.wait.as_ref())?;
        let pane = Pane::named(input.session, input.pane, input.target).unwrap_or_default();
        let (head, tail) = HEAD_AND_TAIL;
        let Progress { command, is_running, exit_code, output, notices } = panes::follow(&pane, wait, head, tail)?;
        notice(format!("the command is `{command}`"));
        notices.into_iter().for_each(notice);
        Ok(Output { running: is_running, exit_code, output: output.text })
    }
}

toolcrib_sdk::export!(CommandOutput);

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::{Failure, Kind};

    fn input(arguments: &str) -> Result<Input> {
        serde_json::from_str(arguments).map_err(Failure::from)
    }

    #[test]
    fn a_wait_has_a_bound() {
        let failure = CommandOutput::call(input(r#"{"wait": "11m"}"#).unwrap()).unwrap_err();
        assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
        assert!(failure.message.contains("10 minutes"), "{}", failure.message);
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(input(r#"{"id": "%3"}"#).is_err());
        assert!(input("{}").is_ok());
    }
}
