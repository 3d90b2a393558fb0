//! `tmux-create-pane`: makes one more pane to work in.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::panes::Place;
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Result, Tool, notice, pane_sessions, schemars};

struct CreatePane;

// serde cannot deny unknown fields beside `flatten`; the host does, the schema that the SDK makes is closed.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Session name.
    session: Option<String>,
    /// Pane name.
    pane: String,
    #[serde(flatten)]
    declaration: Declaration,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    session: String,
    /// The pane's name within the session.
    pane: String,
    /// What `target` takes.
    id: String,
    /// `false`: it existed already.
    created: bool,
}

impl Tool for CreatePane {
    const NAME: &str = "tmux-create-pane";
    const TITLE: Option<&str> = Some("Make a pane");
    const SUMMARY: &str = "Make a terminal pane in a session, or return the existing one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A server must keep running while you run other commands.",
        when_not_to_use: "To run a command that ends.",
        disambiguation: "`run_shell` with `pane` runs commands in it. End your panes with `tmux-kill-pane`.",
        examples: &[r#"{"pane":"server","risk":"low","mutation":true,"privesc":false,"why":"run the server"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { session, pane, declaration }: Input) -> Result<Output> {
        if pane.trim().is_empty() {
            return Err(Failure::invalid("`pane` is blank"));
        }
        let session = session.as_deref().filter(|name| !name.trim().is_empty());
        let Place { session, pane, id, created, notices } = pane_sessions::create_pane(session, &pane, &declaration)?;
        notices.into_iter().for_each(notice);
        Ok(Output { session, pane, id, created })
    }
}

toolcrib_sdk::export!(CreatePane);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_name_is_refused() {
        let arguments = r#"{"pane": "\n", "risk": "low", "mutation": true, "privesc": false, "why": "test"}"#;
        let failure = CreatePane::call(serde_json::from_str(arguments).unwrap()).unwrap_err();
        assert_eq!(failure, Failure::invalid("`pane` is blank"));
    }

    #[test]
    fn a_declaration_is_needed() {
        assert!(serde_json::from_str::<Input>(r#"{"pane": "server"}"#).is_err());
    }
}
