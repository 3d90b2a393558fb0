//! `pane_user`: uses the shared pane, which is other people's.
#![cfg(target_arch = "wasm32")]

use serde::Deserialize;
use toolcrib_sdk::bindings::toolcrib::plugin::{panes, shell, types};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct PaneUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    how: How,
    /// The command, or the text to type.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    Run,
    Look,
    Type,
}

impl Tool for PaneUser {
    const NAME: &str = "pane_user";
    const SUMMARY: &str = "Run a command in the shared pane, look at it, or type into it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Never.",
        when_not_to_use: "Always.",
        disambiguation: "There is no other.",
        examples: &[r#"{"how":"look"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(Input { how, text }: Input) -> Result<String> {
        let shared = types::Pane { session: None, pane: Some("shared".into()), target: None };
        let refused = |failure: types::Failure| {
            format!("{}: {}; {}", failure.kind, failure.message, failure.hint.unwrap_or_default())
        };
        Ok(match how {
            How::Run => {
                let command = shell::Command::new(&text, &declaration());
                command.in_pane(&shared);
                command.run().map_or_else(refused, |_| "it ran".into())
            }
            How::Look => {
                let view = panes::View {
                    start: None,
                    end: None,
                    join_wrapped_lines: false,
                    preserve_trailing_spaces: false,
                    include_escape_sequences: false,
                    escape_non_printable: false,
                    include_alternate_screen: false,
                };
                panes::capture(&shared, &view, 0).map_or_else(refused, |screen| screen.text)
            }
            How::Type => {
                let input = panes::Input { literal_text: Some(text), keys: Vec::new(), enter: true };
                panes::send(&shared, &input, 0, &declaration()).map_or_else(refused, |place| place.pane)
            }
        })
    }
}

fn declaration() -> types::Declaration {
    types::Declaration { risk: types::Risk::Low, mutation: false, privesc: false, why: "a test".into() }
}

toolcrib_sdk::export!(PaneUser);
