//! `tmux-create-session`: makes a tmux session that is apart from the default one.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::panes::Place;
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Result, Tool, notice, pane_sessions, schemars};

struct CreateSession;

// serde cannot deny unknown fields beside `flatten`; the host does, the schema that the SDK makes is closed.
#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Session name.
    session: String,
    #[serde(flatten)]
    declaration: Declaration,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    /// The whole name.
    session: String,
    /// The session's shared pane.
    pane: String,
    /// What `target` takes.
    id: String,
    /// `false`: it existed already.
    created: bool,
}

impl Tool for CreateSession {
    const NAME: &str = "tmux-create-session";
    const TITLE: Option<&str> = Some("Make a session");
    const SUMMARY: &str = "Make a tmux session with one shared pane, or return the existing one.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The user asks for a session.",
        when_not_to_use: "To run a command: the default session always exists.",
        disambiguation: "`tmux-create-pane` adds a pane. End your sessions with `tmux-kill-session`.",
        examples: &[r#"{"session":"build","risk":"low","mutation":true,"privesc":false,"why":"build apart"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { session, declaration }: Input) -> Result<Output> {
        if session.trim().is_empty() {
            return Err(Failure::invalid("`session` is blank"));
        }
        let Place { session, pane, id, created, notices } = pane_sessions::create_session(&session, &declaration)?;
        notices.into_iter().for_each(notice);
        Ok(Output { session, pane, id, created })
    }
}

toolcrib_sdk::export!(CreateSession);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_name_is_refused() {
        let arguments = r#"{"session": " ", "risk": "low", "mutation": true, "privesc": false, "why": "test"}"#;
        let failure = CreateSession::call(serde_json::from_str(arguments).unwrap()).unwrap_err();
        assert_eq!(failure, Failure::invalid("`session` is blank"));
    }

    #[test]
    fn a_declaration_is_needed() {
        assert!(serde_json::from_str::<Input>(r#"{"session": "build"}"#).is_err());
    }
}
