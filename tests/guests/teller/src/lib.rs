//! `teller`: hands over the event that its caller words, and tells what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, files, schemars};

struct Teller;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Kind, such as `message.send`.
    kind: String,
    /// What it says.
    payload: Value,
    /// Where people see it.
    #[serde(default)]
    visible: Vec<String>,
    /// Files that belong to it.
    #[serde(default)]
    attach: Vec<String>,
    /// How long to wait.
    wait_ms: Option<u64>,
    /// Whether to wait at all.
    #[serde(default)]
    post: bool,
    /// How often.
    #[serde(default = "once")]
    times: u32,
}

fn once() -> u32 {
    1
}

#[derive(Serialize, JsonSchema)]
struct Answers {
    /// What came of each: an answer, whether there was room, or a failure.
    answers: Vec<Value>,
}

impl Tool for Teller {
    const NAME: &str = "tell";
    const SUMMARY: &str = "Hand over an event as it is worded.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see what becomes of an event.",
        when_not_to_use: "To talk to people.",
        disambiguation: "`reply` checks what it is given.",
        examples: &[r#"{"kind":"message.send","payload":{"content":"hi"}}"#],
    };
    type Input = Input;
    type Output = Answers;

    fn call(input: Input) -> Result<Answers> {
        // Without this the plugin imports no files, and none can be attached.
        let _ = files::stat(".");
        let once = || {
            let mut event = Event::new(&input.kind, &input.payload);
            for pointer in &input.visible {
                event = event.visible(pointer);
            }
            for path in &input.attach {
                event = event.attach(path, "", "");
            }
            if let Some(ms) = input.wait_ms {
                event = event.wait(Duration::from_millis(ms));
            }
            if input.post { event.post().map(Value::from) } else { event.send() }
        };
        if input.times == 1 {
            return once().map(|answer| Answers { answers: vec![answer] });
        }
        let told = |failure: Failure| Value::from(failure.message);
        Ok(Answers { answers: (0..input.times).map(|_| once().unwrap_or_else(told)).collect() })
    }
}

toolcrib_sdk::export!(Teller);
