//! The messages that answer calls.

use super::golden::{assert_golden, golden};
use serde_json::{Value, json};
use toolcrib::envelope::{Content, Envelope, Failure, Kind, Output};
use toolcrib::formats::Format;

const FORMATS: [Format; 5] =
    [Format::Mcp, Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini];

fn at_a_fixed_time(outcome: Result<Output, Failure>) -> Envelope {
    Envelope { unix_millis: 1_790_000_000_000, kept: Vec::new(), outcome }
}

/// A result, a failure with all that one can have, a result with parts of every kind, and the outcome of a command.
fn envelopes() -> [Envelope; 4] {
    let text = Output { result: json!({ "exit_code": 0 }), notices: vec!["cut".into()], ..Output::default() };
    let failure = Failure::new(Kind::TimedOut, "the command took more than 10 ms")
        .hint("wait longer")
        .data(json!({ "stdout": "so far\n" }));
    let content = vec![
        Content::Text("a picture".into()),
        Content::Image("image/png".into(), b"png".to_vec()),
        Content::Image("image/x-odd".into(), b"odd".to_vec()),
        Content::Audio("audio/wav".into(), b"wave".to_vec()),
        Content::Link("file:///a.txt".into()),
    ];
    let parts = Output { result: "done".into(), content, ..Output::default() };
    let ended = json!({ "exit_code": 1, "stdout": "so far\n", "stderr": "no more\n", "notices": ["cut"] });
    let command = Output { result: ended, is_of_command: true, ..Output::default() };
    [Ok(text), Err(failure), Ok(parts), Ok(command)].map(at_a_fixed_time)
}

fn answers(format: Format) -> Vec<Value> {
    let calls = golden(&format!("calls-{}", format.name()));
    let read = format.read(&calls[0].to_string()).expect("a call");
    envelopes().into_iter().map(|envelope| format.answer(&read.calls[0], envelope)).collect()
}

#[test]
fn results_are_the_goldens() {
    for format in FORMATS {
        assert_golden(&format!("results-{}", format.name()), &answers(format).into());
    }
}

#[test]
fn the_calls_that_vendors_document_are_read() {
    for format in FORMATS {
        for call in golden(&format!("calls-{}", format.name())).as_array().expect("calls") {
            let read = format.read(&call.to_string()).unwrap_or_else(|failure| panic!("{}: {call}", failure.message));
            assert_eq!(read.calls[0].request.tool, "time");
        }
    }
}

#[test]
fn an_image_goes_once_and_never_into_the_text() {
    for format in FORMATS {
        let answer = answers(format)[2].to_string();
        let is_carried = format != Format::OpenaiChat;
        assert_eq!(answer.matches("cG5n").count(), usize::from(is_carried), "{answer}");
        assert_eq!(answer.matches("image/png").count(), 1 + usize::from(is_carried), "{answer}");
    }
}
