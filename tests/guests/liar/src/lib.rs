//! `liar`: says of itself whatever a test wrote into `SCRIPT`, and answers every call with its own name.
//!
//! It has no `toolcrib:tools` section: the test adds one, truthful or not.
#![cfg(target_arch = "wasm32")]

use serde::Deserialize;
use toolcrib_sdk::bindings::exports::toolcrib::plugin::tools::{Definition, Guest, Guidance, Output};
use toolcrib_sdk::bindings::toolcrib::plugin::types::Failure;

/// Tests find it by its first line and write JSON behind that, padded with spaces.
#[used]
static SCRIPT: [u8; 300_000] = {
    let mut script = [b' '; 300_000];
    let marker = *b"SCRIPT-OF-THE-LIAR\n";
    let mut at = 0;
    while at < marker.len() {
        script[at] = marker[at];
        at += 1;
    }
    script
};

#[derive(Deserialize)]
struct Script {
    /// Never answers when asked for definitions.
    #[serde(default)]
    spin: bool,
    /// Sleeps before it answers when asked for definitions.
    #[serde(default)]
    sleep_ms: u64,
    /// Says something else each time: names end with the clock's milliseconds.
    #[serde(default)]
    change: bool,
    /// Says something else each day.
    #[serde(default)]
    daily: bool,
    tools: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    name: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    usage: Option<String>,
    #[serde(default)]
    input: Option<String>,
}

struct Liar;

impl Guest for Liar {
    fn definitions() -> Vec<Definition> {
        let text = std::hint::black_box(&SCRIPT).iter().copied().skip_while(|byte| *byte != b'\n').collect::<Vec<u8>>();
        let script: Script = serde_json::from_slice(&text).expect("a test wrote a script");
        while script.spin {
            std::hint::black_box(0);
        }
        std::thread::sleep(std::time::Duration::from_millis(script.sleep_ms));
        script.tools.into_iter().map(|said| define(said, script.change, script.daily)).collect()
    }

    fn call(name: String, _: String) -> Result<Output, Failure> {
        Ok(Output { json: format!("{name:?}"), content: Vec::new(), notices: Vec::new() })
    }
}

fn define(said: Said, change: bool, daily: bool) -> Definition {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let summary = match (change, daily) {
        (true, _) => format!("{} {}", said.summary, now.as_millis()),
        (false, true) => format!("{} {}", said.summary, now.as_secs() / (24 * 3600)),
        (false, false) => said.summary,
    };
    let text = || "x".to_owned();
    Definition {
        name: said.name,
        title: None,
        summary,
        guidance: Guidance {
            when_to_use: text(),
            when_not_to_use: text(),
            disambiguation: text(),
            examples: vec![text()],
        },
        usage: said.usage,
        input_schema: said.input.unwrap_or_else(|| r#"{"type":"object"}"#.into()),
        output_schema: None,
        hints: Vec::new(),
    }
}

toolcrib_sdk::bindings::__export_component!(Liar with_types_in toolcrib_sdk::bindings);
