//! What a tool is, and how a call of the host becomes a call of its function.

use crate::bindings::exports::toolcrib::plugin::tools;
use crate::{Failure, Result, answer, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A tool: what a model calls by name, with a JSON object.
pub trait Tool {
    /// The name that models call: 1 to 64 of `A-Za-z0-9_-`.
    const NAME: &'static str;
    /// A name for people.
    const TITLE: Option<&'static str> = None;
    /// What the tool does, in one sentence.
    const SUMMARY: &'static str;
    /// When a model should choose it.
    const GUIDANCE: Guidance;
    /// Long-form help. With summary and guidance at most 4 KiB.
    const USAGE: Option<&'static str> = None;
    /// The kinds of events that it hands to the [embedder](crate::embedder): where one of them is not taken, the tool is not offered.
    const EVENTS: &'static [&'static str] = &[];
    /// An object among its results is the outcome of a command, with the fields `exit_code`, `stdout`, `stderr`, and `notices` if there are
    /// any: over MCP a model reads the output as text.
    const IS_OF_COMMAND: bool = false;
    /// The arguments. Doc comments of the fields describe them to the model; `()` takes none.
    type Input: DeserializeOwned + JsonSchema;
    /// The result. Over MCP a model reads a `String` as it is, and anything else as JSON.
    type Output: Serialize + JsonSchema;

    /// Runs the tool once, in an instance of its own: nothing stays for the next call.
    ///
    /// # Errors
    /// Whatever kept the tool from a result.
    fn call(input: Self::Input) -> Result<Self::Output>;
}

/// When a model should choose a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guidance {
    /// The tasks that it is for.
    pub when_to_use: &'static str,
    /// The tasks that it is not for.
    pub when_not_to_use: &'static str,
    /// How it differs from its nearest neighbours.
    pub disambiguation: &'static str,
    /// Arguments as a model would write them: one JSON object each.
    pub examples: &'static [&'static str],
}

/// Returns what the host learns of a tool.
pub(crate) fn definition<T: Tool>() -> tools::Definition {
    tools::Definition {
        name: T::NAME.into(),
        title: T::TITLE.map(Into::into),
        summary: T::SUMMARY.into(),
        guidance: tools::Guidance {
            when_to_use: T::GUIDANCE.when_to_use.into(),
            when_not_to_use: T::GUIDANCE.when_not_to_use.into(),
            disambiguation: T::GUIDANCE.disambiguation.into(),
            examples: T::GUIDANCE.examples.iter().copied().map(Into::into).collect(),
        },
        usage: T::USAGE.map(Into::into),
        input_schema: schema::of_arguments::<T::Input>(),
        output_schema: schema::of_result::<T::Output>(),
        hints: hints::<T>(),
    }
}

fn hints<T: Tool>() -> Vec<(String, String)> {
    let events = T::EVENTS.iter().map(|kind| ("embedder".into(), (*kind).into()));
    events.chain(T::IS_OF_COMMAND.then(|| ("result".into(), "command".into()))).collect()
}

/// Runs a tool on arguments as the host hands them over.
pub(crate) fn call<T: Tool>(arguments: &str) -> Result<tools::Output> {
    answer::begin();
    #[cfg(feature = "log")]
    crate::logs::begin();
    let output = T::call(input(arguments)?)?;
    let json = serde_json::to_string(&output)
        .map_err(|error| Failure::internal(format!("the result of `{}` is not JSON: {error}", T::NAME)))?;
    Ok(answer::finish(json))
}

/// Reads arguments. An object without fields also means `()`, which serde knows as null only.
fn input<T: DeserializeOwned>(arguments: &str) -> Result<T> {
    serde_json::from_str(arguments).or_else(|error| {
        let fields = serde_json::from_str::<Map<String, Value>>(arguments).map_or(1, |fields| fields.len());
        let unit = if fields == 0 { serde_json::from_str("null").ok() } else { None };
        unit.ok_or_else(|| Failure::invalid(error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, notice};
    use serde::Deserialize;

    const GUIDANCE: Guidance = Guidance { when_to_use: "", when_not_to_use: "", disambiguation: "", examples: &[] };

    struct Double;

    #[derive(Deserialize, JsonSchema)]
    struct Number {
        number: u64,
    }

    impl Tool for Double {
        const NAME: &str = "double";
        const SUMMARY: &str = "Double a number.";
        const GUIDANCE: Guidance = GUIDANCE;
        type Input = Number;
        type Output = u64;

        fn call(input: Number) -> Result<u64> {
            notice("half of it was yours");
            input.number.checked_mul(2).ok_or_else(|| Failure::invalid("`number` is too large").hint("half of it"))
        }
    }

    struct Ping;

    impl Tool for Ping {
        const NAME: &str = "ping";
        const SUMMARY: &str = "Answer.";
        const GUIDANCE: Guidance = GUIDANCE;
        type Input = ();
        type Output = String;

        fn call((): ()) -> Result<String> {
            Ok("pong".into())
        }
    }

    #[test]
    fn arguments_become_input_and_output_becomes_json() {
        let output = call::<Double>(r#"{"number": 21}"#).unwrap();
        assert_eq!((output.json.as_str(), output.notices), ("42", vec!["half of it was yours".to_owned()]));
    }

    #[test]
    fn arguments_that_do_not_fit_are_invalid_in_serdes_words() {
        for (arguments, text) in [
            ("not json", "expected ident"),
            ("{}", "missing field `number`"),
            (r#"{"number": -1}"#, "invalid value: integer `-1`, expected u64"),
        ] {
            let failure = call::<Double>(arguments).unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains(text), "{}", failure.message);
        }
    }

    #[test]
    fn a_failed_call_leaves_no_notice_to_the_next() {
        call::<Double>(&format!(r#"{{"number": {}}}"#, u64::MAX)).unwrap_err();
        assert_eq!(call::<Ping>("{}").unwrap().notices, [""; 0]);
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(call::<Ping>("{ }").unwrap().json, r#""pong""#);
        assert_eq!(call::<Ping>(r#"{"loud": true}"#).unwrap_err().kind, Kind::INVALID_ARGUMENTS);
    }

    #[test]
    fn a_definition_says_what_the_types_say() {
        let definition = definition::<Double>();
        assert_eq!(definition.name, "double");
        let input = r#"{"type":"object","properties":{"number":{"type":"integer","minimum":0}},"required":["number"],"additionalProperties":false}"#;
        assert_eq!(definition.input_schema, input);
        assert_eq!(definition.output_schema.as_deref(), Some(r#"{"type":"integer","minimum":0}"#));
    }
}
