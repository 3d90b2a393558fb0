//! `{{name}}`: greets.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Hello;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whom to greet; default: the world.
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    greeting: String,
}

impl Tool for Hello {
    const NAME: &str = "{{name}}";
    const SUMMARY: &str = "Greet somebody by name.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want a greeting.",
        when_not_to_use: "You want to send the greeting to somebody: this tool sends nothing.",
        disambiguation: "No other tool greets.",
        examples: &[r#"{"name":"Ada"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        Ok(Output { greeting: format!("Hello, {}!", input.name.as_deref().unwrap_or("world")) })
    }
}

// A second tool is a second type: `export!(Hello, Other);`.
toolcrib_sdk::export!(Hello);

#[cfg(test)]
mod tests {
    use super::Hello;
    use toolcrib_sdk::Kind;
    use toolcrib_sdk::testing::{Host, json};

    #[test]
    fn a_greeting_names_whom_it_is_for() {
        // What a tool asks the host for is played: `Host::new().plays("files.read", text("…"))`.
        let host = Host::new();
        assert_eq!(host.call::<Hello>(json!({ "name": "Ada" })), Ok(json!({ "greeting": "Hello, Ada!" })));
        assert_eq!(host.call::<Hello>(json!({})), Ok(json!({ "greeting": "Hello, world!" })));
    }

    #[test]
    fn a_name_is_text() {
        let failure = Host::new().call::<Hello>(json!({ "name": 5 })).unwrap_err();
        assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
    }
}
