//! Asking a person: the request, the answer, and the trait that every door implements its own way.
//!
//! Whether to ask is decided by the grants (`shell.rs`, `http.rs`); nothing that a guest or a model writes can answer.

use crate::envelope::{Failure, duration};
use crate::sanitize;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use anstyle::Style;
use async_trait::async_trait;
use serde::Serialize;
use std::time::Duration;

/// What kind of action a person is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// A command, or what is done to a pane.
    Command,
    /// A request to a web server.
    Request,
}

impl ActionKind {
    /// The setting under `[tools]` that decides whether to ask.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Command => "shell_confirm",
            Self::Request => "fetch_confirm",
        }
    }

    fn refused(self) -> &'static str {
        match self {
            Self::Command => "Command execution denied by user.",
            Self::Request => "Fetch request denied by user.",
        }
    }
}

/// What a person is asked to allow. Texts are sanitised.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// What kind of action it is.
    pub kind: ActionKind,
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

impl ApprovalRequest {
    /// Who wants to do what and where: the same words at every door, with tool and place in one style and the declared risk in another.
    pub(crate) fn headline(&self, strong: Style, risk: Style) -> String {
        let Self { kind, tool, plugin, backend, declaration, .. } = self;
        let does = match kind {
            ActionKind::Command => "run on",
            ActionKind::Request => "send from",
        };
        let flags = [(declaration.mutation, ", changes something"), (declaration.privesc, ", needs more rights")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
        let plugin = plugin.strip_prefix(tool.as_str()).map_or_else(|| format!(" of {plugin}"), str::to_owned);
        let declared = declaration.risk;
        format!(
            "{strong}{tool}{strong:#}{plugin} wants to {does} {strong}{backend}{strong:#}, declared {risk}{declared} risk{risk:#}{flags}"
        )
    }
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

    /// Whether a question waits until the one before is answered, which may cover it.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }
}

/// What one plugin has to have approved.
pub(super) struct Question<'q> {
    pub(super) kind: ActionKind,
    /// The plugin as people read it, and the digest that an approval for the session is bound to.
    pub(super) plugin: &'q str,
    pub(super) sha256: &'q str,
    pub(super) capability: &'static str,
    /// Where the effect will land.
    pub(super) place: &'q str,
    pub(super) action: &'q str,
    pub(super) declaration: &'q Declaration,
    pub(super) timeout: Duration,
}

/// Who or what decided.
pub(super) type By = &'static str;

impl Question<'_> {
    /// Asks, unless the session has an approval. Returns who allowed it, or the refusal and who refused.
    pub(super) async fn ask(&self, scope: &Scope) -> Result<By, (Failure, By)> {
        let key =
            ApprovalKey { plugin: self.sha256.to_owned(), capability: self.capability, backend: self.place.to_owned() };
        if scope.session.is_approved(&key) {
            return Ok("approval for the session");
        }
        let request = self.request(scope);
        let _waiting = scope.clock.waiting();
        let by = scope.approver.name();
        let asked = async {
            // One question of a session at a time: an answer to the first may cover the next.
            let _asking = match scope.approver.asks_one_at_a_time() {
                true => Some(scope.session.ask().await),
                false => None,
            };
            if scope.session.is_approved(&key) {
                return Answer::Yes;
            }
            scope.approver.ask(&request).await
        };
        let answer = tokio::select! {
            answer = tokio::time::timeout(self.timeout, asked) => answer,
            () = scope.cancel.cancelled() => return Err((Failure::cancelled(), "cancel")),
        };
        match answer {
            Ok(Answer::Yes) => Ok(by),
            Ok(Answer::YesForSession) => {
                scope.session.approve(key);
                Ok(by)
            }
            Ok(Answer::No) => Err((Failure::denied(self.kind.refused()), by)),
            Ok(Answer::Nobody { reason, hint }) => Err((Failure::denied(reason).hint(hint), by)),
            Err(_) => {
                let message = format!("nobody answered within {}", duration(self.timeout));
                Err((Failure::denied(message).hint("ask again when somebody is there"), by))
            }
        }
    }

    fn request(&self, scope: &Scope) -> ApprovalRequest {
        let why = sanitize::line(&self.declaration.why).into_owned();
        ApprovalRequest {
            kind: self.kind,
            tool: scope.tool.clone(),
            plugin: self.plugin.to_owned(),
            backend: self.place.to_owned(),
            action: sanitize::visible(self.action).into_owned(),
            declaration: Declaration { why, ..self.declaration.clone() },
        }
    }
}

/// Says that nobody can be asked.
pub struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        Answer::Nobody {
            reason: "the action needs an approval, and there is no terminal to ask on".into(),
            hint: format!("pass `--yes`, or set `{} = false` under [tools]", request.kind.setting()),
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
            hint: "leave `--yes` away, so that a person is asked; `toolcrib config show --origin` says where it was switched off".into(),
        }
    }

    fn name(&self) -> &'static str {
        "--yes"
    }
}
