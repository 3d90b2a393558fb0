//! `tmux-kill-session`: ends a tmux session that was made before, with all that runs in it.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Result, Tool, pane_sessions, schemars};

struct KillSession;

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
    /// The session that was ended.
    session: String,
}

impl Tool for KillSession {
    const NAME: &str = "tmux-kill-session";
    const TITLE: Option<&str> = Some("End a session");
    const SUMMARY: &str = "End a tmux session with its panes and everything that runs in them.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You no longer need a session that you made.",
        when_not_to_use: "To end one pane: use `tmux-kill-pane`.",
        disambiguation: "You cannot end the default session, or one of somebody else.",
        examples: &[r#"{"session":"build","risk":"low","mutation":true,"privesc":false,"why":"the build is done"}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { session, declaration }: Input) -> Result<Output> {
        if session.trim().is_empty() {
            return Err(Failure::invalid("`session` is blank"));
        }
        Ok(Output { session: pane_sessions::kill_session(&session, &declaration)? })
    }
}

toolcrib_sdk::export!(KillSession);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_name_is_refused() {
        let arguments = r#"{"session": "\t", "risk": "low", "mutation": true, "privesc": false, "why": "test"}"#;
        let failure = KillSession::call(serde_json::from_str(arguments).unwrap()).unwrap_err();
        assert_eq!(failure, Failure::invalid("`session` is blank"));
    }

    #[test]
    fn a_declaration_is_needed() {
        assert!(serde_json::from_str::<Input>(r#"{"session": "build"}"#).is_err());
    }
}
