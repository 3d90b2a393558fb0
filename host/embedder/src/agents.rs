//! Events by which one agent calls another: which sessions each has opened, and how deep such calls go. The host knows both: a model that
//! names somebody else's session, or an agent that it was called by, gets nowhere.
//!
//! An agent is known by what its session was opened with: `agent` is its name, `chain` the names of those that led to it, first the first.

use base::envelope::Failure;
use base::principal::Principal;
use base::text::sanitize;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// The kind of event by which an agent is given a prompt.
pub const EXEC: &str = "agent.exec";
/// How many agents deep calls go.
const MOST_DEPTH: usize = 4;
/// Sessions that are remembered; the oldest is forgotten first.
const SESSIONS_KEPT: usize = 10_000;

/// The sessions that agents have opened with others, each with who opened it.
#[derive(Default)]
pub struct AgentSessions(Mutex<VecDeque<(String, String)>>);

/// An agent that calls another.
pub struct Caller {
    name: String,
    chain: Vec<String>,
}

impl Caller {
    /// Who calls in a session that was opened with these values; without any, whoever calls the host.
    pub fn of(given: &Map<String, Value>, principal: &Principal) -> Self {
        let name = given.get("agent").and_then(Value::as_str).unwrap_or(principal.as_str()).to_owned();
        let chain = given.get("chain").and_then(Value::as_array);
        let chain = chain.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        Self { name, chain }
    }
}

impl AgentSessions {
    /// Decides on a prompt for another agent, and says in its payload how deep it is and by whose calls.
    ///
    /// # Errors
    ///
    /// `denied` where it is too deep, comes back to an agent that led to it, or names a session that this agent did not open;
    /// `invalid_arguments` without an agent.
    pub fn admit(&self, caller: &Caller, payload: &mut Value) -> Result<(), Failure> {
        let agent = payload["agent"].as_str().filter(|agent| !agent.trim().is_empty()).map(str::to_owned);
        let agent = agent.ok_or_else(|| Failure::invalid(format!("an event `{EXEC}` names no `agent`")))?;
        let chain: Vec<String> = caller.chain.iter().chain([&caller.name]).cloned().collect();
        let is_it = |other: &String| other.trim().eq_ignore_ascii_case(agent.trim());
        if chain.iter().any(is_it) {
            let way = sanitize::line(&chain.join(" → ")).into_owned();
            let message = format!("`{}` led to this call itself: {way}", sanitize::line(&agent));
            return Err(Failure::denied(message).hint("answer it instead of calling it"));
        }
        if chain.len() > MOST_DEPTH {
            let message = format!("this call would be {} agents deep (limit: {MOST_DEPTH})", chain.len());
            return Err(Failure::denied(message).hint("do it yourself, or answer that it cannot be done"));
        }
        match payload.get("session") {
            None => {}
            Some(Value::String(session)) if self.has(&caller.name, session) => {}
            Some(other) => {
                let shown = sanitize::beginning(other.as_str().unwrap_or("that"), 64);
                return Err(Failure::denied(format!("`{shown}` is no session that this agent opened"))
                    .hint("leave the session out: the answer names the one that was opened"));
            }
        }
        payload["depth"] = json!(chain.len());
        payload["chain"] = json!(chain);
        Ok(())
    }

    /// Remembers the session that an answer names, for whoever asked.
    pub fn remember(&self, caller: &Caller, answer: &Value) {
        let Some(session) = answer["session"].as_str().filter(|session| !self.has(&caller.name, session)) else {
            return;
        };
        let mut all = self.0.lock();
        if all.len() >= SESSIONS_KEPT {
            all.pop_front();
        }
        all.push_back((caller.name.clone(), session.to_owned()));
    }

    fn has(&self, agent: &str, session: &str) -> bool {
        self.0.lock().iter().any(|(opener, opened)| opener == agent && opened == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::envelope::Kind;

    fn caller(agent: &str, chain: &[&str]) -> Caller {
        let given = json!({ "agent": agent, "chain": chain });
        Caller::of(given.as_object().unwrap(), &"cli:test".into())
    }

    #[test]
    fn calls_go_four_agents_deep_and_never_back() {
        let all = AgentSessions::default();
        let admit = |agent: &str, chain: &[&str], to: &str| {
            let mut payload = json!({ "agent": to, "prompt": "x", "depth": 0, "chain": [] });
            all.admit(&caller(agent, chain), &mut payload).map(|()| payload).map_err(|failure| failure.kind)
        };
        let first = admit("a", &[], "b").unwrap();
        assert_eq!((&first["depth"], &first["chain"]), (&json!(1), &json!(["a"])));
        let last = admit("d", &["a", "b", "c"], "e").unwrap();
        assert_eq!((&last["depth"], &last["chain"]), (&json!(4), &json!(["a", "b", "c", "d"])));
        assert_eq!(admit("e", &["a", "b", "c", "d"], "f"), Err(Kind::Denied));
        for back in ["a", "b", "c", "C ", "A"] {
            assert_eq!(admit("c", &["a", "b"], back), Err(Kind::Denied), "{back}");
        }
        assert_eq!(admit("a", &[], " "), Err(Kind::InvalidArguments));
    }

    #[test]
    fn a_session_is_its_openers() {
        let all = AgentSessions::default();
        let admit = |agent: &str, session: Value| {
            all.admit(&caller(agent, &[]), &mut json!({ "agent": "b", "session": session }))
                .map_err(|failure| failure.kind)
        };
        assert_eq!(admit("a", json!("s1")), Err(Kind::Denied));
        all.remember(&caller("a", &[]), &json!({ "response": "x", "session": "s1" }));
        assert_eq!(admit("a", json!("s1")), Ok(()));
        for (agent, session) in [("c", json!("s1")), ("a", json!("s2")), ("a", json!(["s1"])), ("a", json!(null))] {
            assert_eq!(admit(agent, session), Err(Kind::Denied));
        }
        for number in 0..SESSIONS_KEPT {
            all.remember(&caller("c", &[]), &json!({ "session": format!("n{number}") }));
        }
        assert_eq!(admit("a", json!("s1")), Err(Kind::Denied), "forgotten");
        assert_eq!(all.0.lock().len(), SESSIONS_KEPT);
    }
}
