//! Asking a person: the request, the answer, and the trait that every door implements its own way.
//!
//! Whether to ask is decided by the grants (`shell.rs`, `http.rs`); nothing that a guest or a model writes can answer.

mod hub;
mod notify;
mod question;
mod words;

pub use hub::{Approvals, OpenQuestion};
pub use notify::Notifier;
pub use words::Foreign;

pub use question::By;
pub use question::Site;
pub(super) use question::{Also, Consent, Lending, Question};

use super::in_force::InForce;
use crate::scope::Scope;
use async_trait::async_trait;
pub use base::declaration::{Declaration, Risk};
use config::{Needed, RuleSection};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What kind of action a person is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A command, or what is done to a pane.
    Command,
    /// A request to a web server.
    Request,
    /// A connection of a confined command to a host that is not named.
    Connection,
    /// A signature by a key of the user's.
    Signature,
    /// A password of the user's, which the command gets.
    Password,
    /// A file that is written.
    Write,
    /// The same where a program runs or obeys the file later.
    WriteLater,
    /// What a command made that acts by itself, and is held back until somebody says yes.
    Held,
    /// A look at what a person's own terminal shows.
    Look,
    /// An event for the program around the host.
    Event,
    /// A change of what a plugin keeps, where the plugin wants a person to know.
    Change,
    /// A call of a tool of somebody else's server.
    ToolCall,
    /// An answer to what such a server wants to know.
    Answer,
}

impl ActionKind {
    /// The line that stops the question, and its section.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Command | Self::Look => "`shell_confirm = false` under [tools]",
            Self::Request => "`fetch_confirm = false` under [tools]",
            Self::Connection => "`hosts` under [confine]",
            Self::Signature | Self::Password => "nothing: a person answers in a terminal or in the client",
            Self::Write => "`files_confirm = \"runs-later\"` under [tools]",
            Self::WriteLater => "`files_confirm = \"never\"` under [tools]",
            Self::Held => "nothing: a person answers in a terminal or in the client, or by `toolcrib files held`",
            Self::Event => "`confirm` under [embedder]",
            Self::Change => "`records_confirm = false` under [tools]",
            Self::ToolCall => "`confirm` or `reads` under [upstream.NAME]",
            Self::Answer => "`elicitation = \"refuse\"` under [upstream.NAME]",
        }
    }

    /// The hint where nobody can be asked: whose setting prevents stopping the question, if any does, and whose prevents `--yes`.
    fn remedy(self, scope: &Scope, hint: String) -> String {
        let (key, needed) = match self {
            Self::Command | Self::Look => ("tools.shell_confirm", Needed::Off),
            Self::Request => ("tools.fetch_confirm", Needed::Off),
            Self::Connection => ("confine.hosts", Needed::Any),
            Self::Signature | Self::Password => ("confine.keys", Needed::Any),
            Self::Write => ("tools.files_confirm", Needed::AtMost("runs-later")),
            Self::WriteLater => ("tools.files_confirm", Needed::AtMost("never")),
            Self::Event => ("embedder.confirm", Needed::Any),
            Self::Held => ("confine.mode", Needed::Any),
            Self::Change => ("tools.records_confirm", Needed::Off),
            Self::ToolCall | Self::Answer => ("upstream", Needed::Any),
        };
        // As long as one of the two helps, the hint does.
        let decides = scope.remedies.hint(key, &needed, "");
        let forbids_yes = !scope.remedies.hint("approval.allow_yes", &Needed::On, "").is_empty();
        if decides.is_empty() || !forbids_yes { hint } else { decides }
    }

    fn refused(self) -> &'static str {
        match self {
            Self::Command => "Command execution denied by user.",
            Self::Request => "Fetch request denied by user.",
            Self::Connection => "Connection denied by user.",
            Self::Signature => "Signature denied by user.",
            Self::Password => "Password denied by user.",
            Self::Write | Self::WriteLater => "File write denied by user.",
            Self::Held => "Denied by user.",
            Self::Look => "Look at the terminal denied by user.",
            Self::Event => "Event for the embedder denied by user.",
            Self::Change => "Change denied by user.",
            Self::ToolCall => "Call denied by user.",
            Self::Answer => "Answer denied by user.",
        }
    }
}

/// Where an action lands. The host fills it in, but a guest may have chosen the directory's name. Texts are sanitised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    /// The backend's name.
    pub backend: String,
    /// The pane as people name it, such as `shared of toolcrib-agent`; none for a plain process.
    pub pane: Option<String>,
    /// The present directory there, where the action depends on it and it can be known.
    pub directory: Option<String>,
    /// How long the action waits before it begins.
    pub delay: Option<Duration>,
}

/// What a person is asked to allow. Texts are sanitised.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// What kind of action it is.
    pub kind: ActionKind,
    /// The tool that the model called.
    pub tool: String,
    /// The plugin that asks, and whether it came with Toolcrib.
    pub plugin: String,
    /// Where the effect will land.
    pub landing: Landing,
    /// How the command runs; none where no command does.
    pub confinement: Option<Confined>,
    /// The secrets that the command gets, and where it can send them; none where it gets none.
    pub secrets: Option<String>,
    /// The whole action: the command, the request's line, the path that is written.
    pub action: String,
    /// What belongs to the action, such as the changes of a write or the body of a request.
    pub details: Option<String>,
    /// What the model said of it, where it has to say something.
    pub declaration: Option<Declaration>,
    /// What its cell refused the very same command when it ran last. Only where there is something, [`Answer::Unconfined`] is an answer.
    pub refused: Option<String>,
    /// The place, confinement or rights that the last answered question of this kind did not have, a line each; none where nothing changed.
    #[serde(default)]
    pub new: Option<String>,
    /// The rules that would answer it always; empty where only a person may, or settings let rules allow nothing.
    #[serde(default)]
    pub rules: Vec<RuleSection>,
}

/// How far a command is confined that a person is asked about. Texts are sanitised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    /// It has all rights of the user.
    No {
        /// Why it cannot be confined; empty where settings do not want it to be.
        why: String,
    },
    /// It runs in a cell, or bounded as far as this system can do it.
    Yes {
        /// By what, and what network it has, in words.
        how: String,
        /// Where it can write, and what else is open, in words.
        bounds: String,
    },
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Yes,
    /// This, and what the same plugin does with the same capability and backend until the session ends.
    YesForSession,
    /// This once, out of its cell, with all rights of the user.
    Unconfined,
    /// No.
    No,
    /// Whoever was to show the question answered by itself: nobody may have seen it. It may be answered elsewhere while it is open.
    Unseen {
        /// What it did, such as `the client declined the question`.
        how: String,
    },
    /// Nobody can be asked: why, and what to set.
    Nobody {
        /// A lowercase fragment.
        reason: String,
        /// What makes an answer possible.
        hint: String,
    },
}

/// The person who can be asked.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits. The caller bounds the wait; a dropped question is withdrawn.
    async fn ask(&self, request: &ApprovalRequest) -> Answer;

    /// How the decision reads in the audit trail.
    fn name(&self) -> &'static str;

    /// Whether somebody reads the questions; the host collects nothing for a question that nobody reads.
    fn is_read(&self) -> bool {
        true
    }

    /// Whether it answers without asking anybody.
    fn answers_in_advance(&self) -> bool {
        false
    }

    /// Whether a question waits until the one before is answered, which may cover it.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }
}

/// Says that nobody can be asked.
pub struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        Answer::Nobody {
            reason: "the action needs an approval, and there is no terminal to ask on".into(),
            hint: format!("pass `--yes`, or set {}", request.kind.setting()),
        }
    }

    fn name(&self) -> &'static str {
        "nobody"
    }

    fn is_read(&self) -> bool {
        false
    }
}

/// A caller who is away: the question stays open in the hub until somebody answers it there, or the time for it is up.
pub struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        std::future::pending().await
    }

    fn name(&self) -> &'static str {
        "nobody, as the caller is away"
    }
}

/// Answers before anybody asks: `--yes`. It says yes to everything, or no where the policy in force forbids that.
pub struct InAdvance(Arc<InForce>);

impl InForce {
    /// The approver of `--yes`.
    #[must_use]
    pub fn always_yes(self: &Arc<Self>) -> InAdvance {
        InAdvance(self.clone())
    }
}

#[async_trait]
impl Approver for InAdvance {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        if self.0.policy().config().approval.allow_yes {
            return Answer::Yes;
        }
        Answer::Nobody {
            reason: "`--yes` is switched off by `approval.allow_yes = false`".into(),
            hint: "omit `--yes`, so that a person is asked; `toolcrib config show --origin` says where it was switched off".into(),
        }
    }

    fn name(&self) -> &'static str {
        "--yes"
    }

    fn answers_in_advance(&self) -> bool {
        true
    }

    fn is_read(&self) -> bool {
        false
    }
}
