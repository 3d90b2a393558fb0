//! `toolcrib call`: one call, its envelope on stdout, its kind as exit code; or a model API's call, and its message.

use super::setup::{Setup, usage};
use super::{Global, INTERRUPTED, print_json, report};
use crate::call::{ARGUMENTS_BYTES, Arguments as CallArguments, Request};
use crate::envelope::{Envelope, Failure, Kind};
use crate::formats::Format;
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::process::ExitCode;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How large a model API's call may be: its arguments are JSON in JSON, where a character can take six.
const MESSAGE_BYTES: usize = 6 * ARGUMENTS_BYTES;

#[derive(clap::Args)]
#[command(override_usage = "toolcrib call [OPTIONS] <TOOL> [JSON|-|KEY=VALUE]...
       toolcrib call [OPTIONS] --from <FORMAT> [JSON|-]")]
#[command(after_help = "Examples:
  toolcrib call time
  toolcrib call read_file path=README.md
  toolcrib call run_shell command=id risk=low mutation=false privesc=false why=look
  toolcrib call read_file '{\"path\":\"README.md\"}'
  echo '{\"path\":\"README.md\"}' | toolcrib call read_file -
  toolcrib call --from anthropic '{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"time\",\"input\":{}}'")]
pub(super) struct Arguments {
    /// Name of the tool
    #[arg(required_unless_present = "from")]
    tool: Option<String>,
    /// Arguments: one JSON object, `-` for one on stdin, or key=value pairs
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    arguments: Vec<String>,
    /// Take a tool call as this model API has it, and answer with its message of the result
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<Format>,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(format) = arguments.from {
        return answer(global, format, &arguments).await;
    }
    let setup = Setup::new(global).await?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let tool = arguments.tool.expect("clap asks for it where there is no `--from`");
    let arguments = parse(&setup, &tool, &arguments.arguments).await?;
    let envelope = setup.host.call(Request { tool, arguments }, &setup.context).await;
    print_json(&envelope.to_json())?;
    exit_code(&setup, &envelope)
}

/// Takes a model API's call, and prints the message that answers it.
async fn answer(global: &Global, format: Format, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let message = message(arguments, &setup.context.cancel).await?;
    let call = format.read(&message)?;
    let envelope = setup.host.call(call.request.clone(), &setup.context).await;
    print_json(&format.answer(&call, &envelope))?;
    exit_code(&setup, &envelope)
}

/// The model API's call: the argument, or stdin.
async fn message(arguments: &Arguments, cancel: &CancellationToken) -> Result<String, Failure> {
    if !arguments.arguments.is_empty() {
        return Err(
            usage("`--from` takes one tool call").hint("the call names the tool: leave TOOL and KEY=VALUE away")
        );
    }
    match arguments.tool.as_deref() {
        None if std::io::stdin().is_terminal() => {
            return Err(usage("`--from` takes a tool call").hint("give it as an argument, or on stdin"));
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

fn exit_code(setup: &Setup, envelope: &Envelope) -> Result<ExitCode, Failure> {
    match &envelope.outcome {
        Err(failure) if failure.kind == Kind::Cancelled && setup.context.cancel.is_cancelled() => {
            report(failure);
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(failure) => Ok(report(failure)),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
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

/// It was started to outlive its terminal, as by `nohup`: a handler would undo that. Only Linux tells.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

async fn parse(setup: &Setup, tool: &str, arguments: &[String]) -> Result<CallArguments, Failure> {
    match arguments {
        [] => Ok(CallArguments::Json(Value::Object(Map::new()))),
        [dash] if dash == "-" => read_stdin(ARGUMENTS_BYTES, &setup.context.cancel).await.map(CallArguments::Text),
        [text] if text.trim_start().starts_with(['{', '[', '"']) || !text.contains('=') => {
            Ok(CallArguments::Text(text.clone()))
        }
        pairs => key_values(setup, tool, pairs).await,
    }
}

/// Arguments as key=value pairs, read by the tool's schema. A tool that is not there is for the call to answer.
async fn key_values(setup: &Setup, tool: &str, pairs: &[String]) -> Result<CallArguments, Failure> {
    let schema = match setup.context.tools.plugin_of(tool) {
        Ok(plugin) => setup.host.ready(plugin, &setup.context).await.ok().and_then(|ready| ready.tool(tool)),
        Err(_) => None,
    };
    let schema = schema.map_or(&Value::Null, |tool| &tool.definition().input_schema);
    let values = pairs.iter().map(|pair| key_value(pair, schema)).collect::<Result<Map<_, _>, _>>()?;
    Ok(CallArguments::Json(values.into()))
}

/// Reads stdin, one byte more than `most` at most.
async fn read_stdin(most: usize, cancel: &CancellationToken) -> Result<String, Failure> {
    let mut text = String::new();
    let mut input = tokio::io::stdin().take(most as u64 + 1);
    tokio::select! {
        read = input.read_to_string(&mut text) => read.map_err(|error| usage(format!("stdin: {error}")))?,
        () = cancel.cancelled() => return Err(Failure::cancelled()),
    };
    Ok(text)
}

/// A value is text where the tool takes text there, else JSON where it is JSON, else text.
fn key_value(pair: &str, schema: &Value) -> Result<(String, Value), Failure> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(usage(format!("`{pair}` is not key=value")).hint("give one JSON object, `-`, or key=value pairs"));
    };
    let text = Value::String(value.into());
    let takes_text = schema["properties"][key]["type"] == "string";
    let value = if takes_text { text } else { serde_json::from_str(value).unwrap_or(text) };
    Ok((key.into(), value))
}
