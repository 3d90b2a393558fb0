//! `toolcrib call`: one call, its envelope on stdout, its kind as exit code.

use super::setup::{Setup, usage};
use super::{Global, print_json, report};
use crate::call::{ARGUMENTS_BYTES, Arguments as CallArguments, Request};
use crate::definition::Definition;
use crate::envelope::{Failure, Kind};
use serde_json::{Map, Value};
use std::io::Read;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What a shell reports of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib call time
  toolcrib call read_file path=README.md
  toolcrib call run_shell '{\"command\":\"uname -a\",\"risk\":\"low\",\"mutation\":false,\"privesc\":false,\"why\":\"look\"}'
  echo '{\"path\":\"README.md\"}' | toolcrib call read_file -")]
pub(super) struct Arguments {
    /// Name of the tool
    tool: String,
    /// Arguments: one JSON object, `-` for one on stdin, or key=value pairs
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    arguments: Vec<String>,
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global)?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let parsed = parse(&setup, &arguments).await?;
    let envelope = setup.host.call(Request { tool: arguments.tool, arguments: parsed }, &setup.context).await;
    print_json(&envelope.to_json())?;
    match &envelope.outcome {
        Err(failure) if failure.kind == Kind::Cancelled && setup.context.cancel.is_cancelled() => {
            report(failure);
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(failure) => Ok(report(failure)),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
}

/// The first Ctrl-C or SIGTERM cancels; a second ends the process at once.
pub(super) fn cancel_on_signal(cancel: CancellationToken) -> Result<(), Failure> {
    let cannot = |error| Failure::new(Kind::Internal, format!("signals cannot be received: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    tokio::spawn(async move {
        loop {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            if cancel.is_cancelled() {
                std::process::exit(i32::from(INTERRUPTED));
            }
            cancel.cancel();
        }
    });
    Ok(())
}

async fn parse(setup: &Setup, arguments: &Arguments) -> Result<CallArguments, Failure> {
    match arguments.arguments.as_slice() {
        [] => Ok(CallArguments::Json(Value::Object(Map::new()))),
        [dash] if dash == "-" => read_stdin().map(CallArguments::Text),
        [text] if text.trim_start().starts_with(['{', '[', '"']) || !text.contains('=') => {
            Ok(CallArguments::Text(text.clone()))
        }
        pairs => {
            let plugin = setup.context.tools.plugin_of(&arguments.tool)?;
            let ready = setup.host.ready(plugin, &setup.context).await?;
            let tool = ready.tool(&arguments.tool).expect("a ready plugin has the tools that it showed");
            pairs
                .iter()
                .map(|pair| key_value(pair, tool.definition()))
                .collect::<Result<Map<_, _>, _>>()
                .map(|map| CallArguments::Json(map.into()))
        }
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let most = ARGUMENTS_BYTES as u64 + 1;
    std::io::stdin().take(most).read_to_string(&mut text).map_err(|error| usage(format!("stdin: {error}")))?;
    Ok(text)
}

/// A value is text where the tool takes text there, else JSON where it is JSON, else text.
fn key_value(pair: &str, definition: &Definition) -> Result<(String, Value), Failure> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(usage(format!("`{pair}` is not key=value")).hint("give one JSON object, `-`, or key=value pairs"));
    };
    let text = Value::String(value.into());
    let takes_text = definition.input_schema["properties"][key]["type"] == "string";
    let value = if takes_text { text } else { serde_json::from_str(value).unwrap_or(text) };
    Ok((key.into(), value))
}
