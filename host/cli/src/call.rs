//! `toolcrib call`: one call, its result or envelope on stdout, its kind as exit code; or a model API's call, and its message.

use super::arguments::{self, Given, read_stdin};
use super::result::{self, Form};
use super::setup::{Setup, usage};
use super::{Global, INTERRUPTED, calls, completions, print_json};
use clap_complete::ArgValueCompleter;
use serde_json::Value;
use std::io::IsTerminal;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolcrib::call::{ARGUMENTS_BYTES, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::formats::{Format, ToolCalls};

/// How large a model API's call may be: its arguments are JSON in JSON, where a character can take six.
const MESSAGE_BYTES: usize = 6 * ARGUMENTS_BYTES;

#[derive(clap::Args)]
#[command(override_usage = "toolcrib call [OPTIONS] <TOOL> [JSON|-|KEY=VALUE]...
       toolcrib call [OPTIONS] --from <FORMAT> [JSON|-]")]
#[command(after_help = "Examples:
  toolcrib call time
  toolcrib call read_file path=README.md
  toolcrib call --raw stdout run_shell command=id risk=low mutation=false privesc=false why=look
  toolcrib call run_shell command=id risk=low mutation=false privesc=false why=look
  toolcrib call read_file '{\"path\":\"README.md\"}'
  echo '{\"path\":\"README.md\"}' | toolcrib call read_file -
  toolcrib call --from anthropic '{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"time\",\"input\":{}}'")]
pub(super) struct Arguments {
    /// Name of the tool
    #[arg(required_unless_present = "from", add = ArgValueCompleter::new(completions::tools))]
    tool: Option<String>,
    /// Arguments: one JSON object, `-` for one on stdin, or key=value pairs
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    arguments: Vec<String>,
    /// Read a tool call, or a message with several, in the format of this model API, and print its message for each result
    #[arg(long, value_parser = super::choice::one_of::<Format>(), value_name = "FORMAT")]
    from: Option<Format>,
    /// Print the envelope even at a terminal, where the result is otherwise shown as text
    #[arg(long, conflicts_with = "from")]
    json: bool,
    /// Print one field of the result unchanged: `stdout`, `results.0.url`, `content.0` for a picture, `.` for all
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["json", "from"])]
    raw: Option<String>,
}

impl Arguments {
    fn form(&self) -> Form {
        match &self.raw {
            Some(place) => Form::Raw(place.clone()),
            None if self.json => Form::Json,
            None => Form::Usual,
        }
    }
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(format) = arguments.from {
        return answer(global, format, &arguments).await;
    }
    let setup = Setup::new(global).await?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let _announced = calls::announce_later(&setup);
    let form = arguments.form();
    let tool = arguments.tool.expect("clap asks for it where there is no `--from`");
    let Given { arguments, offer } = arguments::read(&setup, &tool, &arguments.arguments).await?;
    let mut envelope = setup.host.call(Request { tool, arguments }, &setup.context).await;
    if let Err(failure) = &mut envelope.outcome
        && failure.kind == Kind::InvalidArguments
    {
        failure.hint = offer.or(failure.hint.take());
    }
    result::show(&envelope, &form)?;
    setup.settled().await;
    Ok(exit_code(&setup, &envelope))
}

/// Runs a model API's calls one after the other, and prints the message that answers each. The first failure is the exit code.
async fn answer(global: &Global, format: Format, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let _announced = calls::announce_later(&setup);
    let message = message(arguments, &setup.context.cancel).await?;
    let ToolCalls { calls, is_list } = format.read(&message)?;
    let (mut answers, mut first_failure) = (Vec::new(), None);
    for call in calls {
        let envelope = setup.host.call(call.request.clone(), &setup.context).await;
        answers.push(format.answer(&call, envelope.clone()));
        result::tell(envelope.outcome.as_ref().err());
        first_failure = first_failure.or(envelope.outcome.is_err().then_some(envelope));
    }
    let answer = if is_list { Value::Array(answers) } else { answers.remove(0) };
    print_json(&answer)?;
    setup.settled().await;
    Ok(first_failure.map_or(ExitCode::SUCCESS, |envelope| exit_code(&setup, &envelope)))
}

/// The model API's call: the argument, or stdin.
async fn message(arguments: &Arguments, cancel: &CancellationToken) -> Result<String, Failure> {
    if !arguments.arguments.is_empty() {
        return Err(usage("`--from` takes one message").hint("the calls in it name the tools: omit TOOL and KEY=VALUE"));
    }
    match arguments.tool.as_deref() {
        None if std::io::stdin().is_terminal() => {
            return Err(usage("`--from` takes a message").hint("give it as an argument, or on stdin"));
        }
        None | Some("-") => {}
        Some(message) => return Ok(message.to_owned()),
    }
    let text = read_stdin(MESSAGE_BYTES, cancel).await?;
    if text.len() > MESSAGE_BYTES {
        return Err(usage(format!("the message is larger than {} MiB", MESSAGE_BYTES >> 20)));
    }
    Ok(text)
}

fn exit_code(setup: &Setup, envelope: &Envelope) -> ExitCode {
    let is_interrupted = matches!(&envelope.outcome, Err(failure) if failure.kind == Kind::Cancelled);
    let code = if is_interrupted && setup.context.cancel.is_cancelled() { INTERRUPTED } else { envelope.exit_code() };
    ExitCode::from(code)
}

/// The first Ctrl-C, SIGTERM or hang-up cancels; a second ends the process at once.
pub(super) fn cancel_on_signal(cancel: CancellationToken) -> Result<(), Failure> {
    let cannot = |error| Failure::new(Kind::Internal, format!("signals cannot be received: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup()).map_err(cannot)?) };
    tokio::spawn(async move {
        loop {
            let hung_up = async {
                match &mut hang_up {
                    Some(signal) => signal.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hung_up => {} }
            if cancel.is_cancelled() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            cancel.cancel();
        }
    });
    Ok(())
}

/// It was started to outlive its terminal, as `nohup` does: a handler would undo that. Only Linux shows this.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
