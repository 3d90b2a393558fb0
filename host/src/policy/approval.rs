//! Asking a person: the request, the answer, and the trait that every door implements its own way.
//!
//! Whether to ask is decided by the grant (`shell.rs`); nothing that a guest or a model writes can answer.

use async_trait::async_trait;
use serde::Serialize;

/// What a person is asked to allow. Texts are sanitised.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The tool that the model called.
    pub tool: String,
    /// The plugin that asks, and whether it came with Toolcrib.
    pub plugin: String,
    /// Where the effect will land.
    pub backend: String,
    /// The whole action.
    pub action: String,
    /// What the model said of it.
    pub declaration: Declaration,
}

/// What a model states before an action that touches state. Shown and audited, never believed.
#[derive(Clone, Debug, Serialize)]
pub struct Declaration {
    /// `low`, `medium` or `high`.
    pub risk: &'static str,
    /// It changes something.
    pub mutation: bool,
    /// It needs more rights than the user's own.
    pub privesc: bool,
    /// Why it is needed.
    pub why: String,
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This once.
    Yes,
    /// This, and what the same plugin does with the same capability and backend until the session ends.
    YesForSession,
    /// No.
    No,
    /// Nobody can be asked: why, and what to set.
    Nobody {
        /// A lowercase fragment.
        reason: String,
        /// What makes an answer possible.
        hint: String,
    },
}

/// Whoever can be asked.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits. The caller bounds the wait; a dropped question is withdrawn.
    async fn ask(&self, request: &ApprovalRequest) -> Answer;

    /// How the decision reads in the audit trail.
    fn name(&self) -> &'static str;
}

/// Says that nobody can be asked.
pub struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        Answer::Nobody {
            reason: "the action needs an approval, and there is no terminal to ask on".into(),
            hint: "pass `--yes`, or set `shell_confirm = false` under [tools]".into(),
        }
    }

    fn name(&self) -> &'static str {
        "nobody"
    }
}

/// Answers before anybody asks: `--yes`. Made only by the policy, which may forbid it.
pub struct InAdvance {
    pub(super) is_allowed: bool,
}

#[async_trait]
impl Approver for InAdvance {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        if self.is_allowed {
            return Answer::Yes;
        }
        Answer::Nobody {
            reason: "`--yes` is switched off by `approval.allow_yes = false`".into(),
            hint: "leave `--yes` away and answer on the terminal; `toolcrib config show --origin` says where it was switched off".into(),
        }
    }

    fn name(&self) -> &'static str {
        "--yes"
    }
}
