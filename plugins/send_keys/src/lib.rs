//! `send-keys`: types keys and text into the program that runs in a pane.
//!
//! Shapes arguments and result; the host judges what is typed, asks for approval and knows the names of keys.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::panes::{self, Place};
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Pane, Result, Tool, notice, schemars};

struct SendKeys;

// serde cannot deny unknown fields beside `flatten`; the host does, the schema that the SDK makes is closed.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Typed first; a line break is Enter.
    literal_text: Option<String>,
    /// Pressed next, by tmux names: `C-c`, `Up`, `M-x`, `F1`, `Escape`.
    #[serde(default)]
    keys: Vec<String>,
    /// Press Enter last.
    #[serde(default)]
    enter: bool,
    /// Instead of `session` and `pane`: `%3`, `SESSION` or `SESSION:PANE`.
    target: Option<String>,
    /// Session name.
    session: Option<String>,
    /// Pane name; default: that of the last command.
    pane: Option<String>,
    /// Time to wait first: seconds, or `500ms`, `2m`; at most 10 minutes.
    delay: Option<Span>,
    /// `delay` in milliseconds.
    delay_ms: Option<u64>,
    #[serde(flatten)]
    declaration: Declaration,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    session: String,
    pane: String,
    /// What `target` takes.
    id: String,
}

impl Tool for SendKeys {
    const NAME: &str = "send-keys";
    const TITLE: Option<&str> = Some("Type into a pane");
    const SUMMARY: &str = "Type text and keys into the program that runs in a terminal pane.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To stop a running program, or to answer its question.",
        when_not_to_use: "To run a command: use `run_shell`.",
        disambiguation: "Look at the effect with `capture-pane`. Give `literal_text`, `keys` or `enter`.",
        examples: &[
            r#"{"pane":"server","keys":["C-c"],"risk":"low","mutation":true,"privesc":false,"why":"stop the server"}"#,
        ],
    };
    type Input = Input;
    type Output = Output;

    fn call(input: Input) -> Result<Output> {
        let Input { literal_text, keys, enter, target, session, pane, delay, delay_ms, declaration } = input;
        let delay = panes::delay(delay.as_ref(), delay_ms)?;
        let typed = typed(literal_text, keys, enter)?;
        let pane = Pane::named(session, pane, target).unwrap_or_default();
        let Place { session, pane, id, notices, .. } = panes::send(&pane, &typed, delay, &declaration)?;
        notices.into_iter().for_each(notice);
        Ok(Output { session, pane, id })
    }
}

/// Returns what to type. Blanks are typed as they are, and do not suffice alone; a line break does, it is an Enter.
fn typed(literal_text: Option<String>, keys: Vec<String>, enter: bool) -> Result<panes::Input> {
    let is_blank = literal_text.as_ref().is_none_or(|text| text.trim_matches([' ', '\t']).is_empty());
    if is_blank && keys.is_empty() && !enter {
        let hint = "give `keys`, a `literal_text` that is not blank, or `enter` as `true`";
        return Err(Failure::invalid("there is nothing to type").hint(hint));
    }
    Ok(panes::Input { literal_text: literal_text.filter(|text| !text.is_empty()), keys, enter })
}

toolcrib_sdk::export!(SendKeys);

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_sdk::Kind;

    fn input(arguments: &str) -> Input {
        let declared = r#""risk": "low", "mutation": true, "privesc": false, "why": "test""#;
        serde_json::from_str(&format!("{{{declared}, {arguments}}}")).unwrap()
    }

    #[test]
    fn nothing_to_type_is_refused() {
        for arguments in [r#""enter": false"#, r#""keys": []"#, r#""literal_text": """#, r#""literal_text": " \t""#] {
            let failure = SendKeys::call(input(arguments)).unwrap_err();
            assert_eq!((failure.kind, failure.message.as_str()), (Kind::INVALID_ARGUMENTS, "there is nothing to type"));
        }
    }

    #[test]
    fn each_part_suffices() {
        let nothing = panes::Input::default;
        assert_eq!(typed(None, vec![], true), Ok(panes::Input { enter: true, ..nothing() }));
        assert_eq!(typed(None, vec!["C-c".into()], false), Ok(panes::Input { keys: vec!["C-c".into()], ..nothing() }));
        let text = Some("y ".to_owned());
        assert_eq!(typed(text.clone(), vec![], false), Ok(panes::Input { literal_text: text, ..nothing() }));
    }

    #[test]
    fn blanks_are_typed_beside_something_else() {
        assert_eq!(typed(Some(" ".into()), vec![], true).unwrap().literal_text.as_deref(), Some(" "));
        assert_eq!(typed(Some(String::new()), vec![], true).unwrap().literal_text, None);
    }

    #[test]
    fn a_delay_past_its_bound_is_refused_before_anything_is_typed() {
        for delay in [r#""delay": 601"#, r#""delay": "1h""#, r#""delay": "1d""#, r#""delay_ms": 600001"#] {
            let failure = SendKeys::call(input(&format!(r#""enter": true, {delay}"#))).unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("10 minutes"), "{}", failure.message);
        }
    }

    #[test]
    fn a_declaration_is_needed() {
        assert!(serde_json::from_str::<Input>(r#"{"keys": ["C-c"]}"#).is_err());
    }
}
