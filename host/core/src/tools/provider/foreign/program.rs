//! A component that is a program: arguments and input in, exit status and streams out, as declared programs have them.

use super::{failure, hint, told, with_reasons};
use base::envelope::Failure;
use contract::definition::{Definition, Guidance};
use contract::foreign::Signature;
use guest::capability::bindings::exports::toolcrib::plugin::tools;
use guest::capability::bindings::toolcrib::plugin::types;
use guest::reach::Reach;
use guest::sandbox::{Collected, Sandbox, Streams, TypedGuest};
use kept_output::Captured;
use policy::Grants;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Characters of the beginning and of the end of each stream, and the bytes that they may have.
const HEAD_AND_TAIL: (usize, usize) = (25_000, 25_000);
const HEAD_BYTES: usize = 100_000;

/// What models read of it.
pub(super) fn definition(name: &str) -> Definition {
    Definition {
        name: name.to_owned(),
        title: None,
        summary: format!("Run the program `{name}`."),
        guidance: Guidance {
            when_to_use: "You need what this program does.".into(),
            when_not_to_use: "For pipes, redirections or several programs: they need a shell.".into(),
            disambiguation: "It runs in a sandbox and sees only the files of its grant. Give `args`, `stdin` or both. The middle of long \
                output is omitted."
                .into(),
            examples: vec![r#"{"args":["--help"]}"#.into()],
        },
        usage: None,
        input_schema: json!({
            "type": "object",
            "properties": {
                "args": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Arguments, passed as they are.",
                },
                "stdin": {
                    "type": "string",
                    "description": "Text for standard input; without it there is none.",
                },
            },
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "exit_code": { "type": "integer" },
                "stdout": { "type": "string" },
                "stderr": { "type": "string" },
            },
            "required": ["exit_code", "stdout", "stderr"],
            "additionalProperties": false,
        })),
        events: Vec::new(),
        is_of_command: true,
    }
}

/// Runs it, once.
pub(super) async fn run(
    guest: &TypedGuest,
    function: &Signature,
    given: Map<String, Value>,
    sandbox: &Sandbox,
    grants: Arc<Grants>,
    scope: Arc<Reach>,
) -> Result<Result<tools::Output, types::Failure>, Failure> {
    // By its schema, these are what they are to be.
    let texts = given.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let stdin = given.get("stdin").and_then(Value::as_str).unwrap_or_default();
    let arguments: Vec<String> = std::iter::once(function.tool.as_str()).chain(texts).map(str::to_owned).collect();
    if arguments.len() == 1 && stdin.is_empty() {
        // Most would print their help, or wait for input.
        let neither = failure("invalid_arguments", "neither `args` nor `stdin` is given".into(), None);
        return Ok(Err(types::Failure { hint: Some("give one of them, or both".into()), ..neither }));
    }
    let (stdout, stderr) = (Collected::default(), Collected::default());
    let streams = Streams { arguments, stdin: stdin.to_owned().into(), stdout: stdout.clone(), stderr: stderr.clone() };
    let instance = sandbox.instantiate_program(guest, grants, scope.clone(), streams).await?;
    let reasons = instance.reasons();
    let ran = instance.run(function.interface.as_deref().unwrap_or_default()).await;
    let (stdout, stderr) = (captured("stdout", &stdout, &scope).await, captured("stderr", &stderr, &scope).await);
    let mut notices = Vec::new();
    for (name, stream) in [("stdout", &stdout), ("stderr", &stderr)] {
        if let (true, Some(place)) = (stream.truncated, &stream.stored) {
            notices.push(format!("{name} has {} bytes; what is kept of it is in `{place}`", stream.bytes));
        }
    }
    let printed = json!({ "stdout": stdout.text, "stderr": stderr.text });
    let status = match ran {
        Ok(status) => status,
        Err(failure) => return Err(with_reasons(failure, &reasons).also(Some(Box::new(printed)))),
    };
    let result = json!({ "exit_code": status, "stdout": stdout.text, "stderr": stderr.text });
    if status != 0 {
        let message = format!("`{}` ended with exit status {status}", function.tool);
        let failed = failure("execution_failed", message, Some(result));
        return Ok(Err(types::Failure { hint: hint(&reasons), ..failed }));
    }
    notices.extend(told(&reasons));
    Ok(Ok(tools::Output { json: result.to_string(), content: Vec::new(), notices }))
}

/// What it has printed, cut for its reader and kept whole, without secrets.
async fn captured(name: &str, printed: &Collected, scope: &Reach) -> Captured {
    let mut redactor = scope.guard.stream();
    let printed = printed.take();
    let mut bytes = redactor.push(&printed).into_owned();
    bytes.extend(redactor.finish());
    let capture = scope.output.capture(format!("{}-{name}", scope.id), HEAD_AND_TAIL.0, HEAD_BYTES);
    let mut capture = capture.with_tail(HEAD_AND_TAIL.1).of_command();
    capture.push(&bytes).await;
    let captured = capture.finish().await;
    captured.stored.iter().for_each(|path| scope.remember_kept(path));
    captured
}
