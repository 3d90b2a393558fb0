//! `tmux-kill-pane`: ends a pane that was made before, with what runs in it.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::panes::Place;
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Result, Tool, notice, pane_sessions, schemars};

struct KillPane;

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
    /// The pane that was ended.
    pane: String,
    /// Its id until then.
    id: String,
}

impl Tool for KillPane {
    const NAME: &str = "tmux-kill-pane";
    const TITLE: Option<&str> = Some("End a pane");
    const SUMMARY: &str = "End a terminal pane and what runs in it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You no longer need a pane that you made.",
        when_not_to_use: "To stop a program: use `send-keys` with `C-c`.",
        disambiguation: "You cannot end a pane of somebody else, or the shared one.",
        examples: &[r#"{"pane":"server","risk":"low","mutation":true,"privesc":false,"why":"the server is done"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { session, pane, declaration }: Input) -> Result<Output> {
        if pane.trim().is_empty() {
            return Err(Failure::invalid("`pane` is blank"));
        }
        let session = session.as_deref().filter(|name| !name.trim().is_empty());
        let Place { session, pane, id, notices, .. } = pane_sessions::kill_pane(session, &pane, &declaration)?;
        notices.into_iter().for_each(notice);
        Ok(Output { session, pane, id })
    }
}

toolcrib_sdk::export!(KillPane);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_name_is_refused() {
        let arguments = r#"{"pane": " ", "risk": "low", "mutation": true, "privesc": false, "why": "test"}"#;
        let failure = KillPane::call(serde_json::from_str(arguments).unwrap()).unwrap_err();
        assert_eq!(failure, Failure::invalid("`pane` is blank"));
    }

    #[test]
    fn a_declaration_is_needed() {
        assert!(serde_json::from_str::<Input>(r#"{"pane": "server"}"#).is_err());
    }
}
