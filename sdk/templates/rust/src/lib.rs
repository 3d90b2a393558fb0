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
        Ok(Output { greeting: greeting(input.name.as_deref().unwrap_or("world")) })
    }
}

/// What needs no capability is a function of its own, which `cargo test` can call.
fn greeting(name: &str) -> String {
    format!("Hello, {name}!")
}

// A second tool is a second type: `export!(Hello, Other);`.
toolcrib_sdk::export!(Hello);

#[cfg(test)]
mod tests {
    #[test]
    fn a_greeting_names_whom_it_is_for() {
        assert_eq!(super::greeting("Ada"), "Hello, Ada!");
    }
}
