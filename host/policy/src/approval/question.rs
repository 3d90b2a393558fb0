//! One question: where the action lands is read when it is asked and again when the answer comes.

use super::{Answer, ApprovalRequest, Confined, Declaration, Landing};
use crate::confine::Confinement;
use crate::purpose::Purpose;
use crate::rules::Subject;
use crate::scope::Scope;
use crate::session::{ApprovalKey, RefusalKey};
use base::envelope::{Failure, duration};
use base::text::sanitize;
use config::{CellNetwork, Needed, RuleSection};
use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

/// How the decision reads where a person had said no to the same before.
const REFUSED_BEFORE: &str = "the user, who refused the same before";
/// How the decision reads where an answer covered what was to come.
const FOR_THE_SESSION: &str = "approval for the session";
/// How often a question is asked again because its place changed while it was open.
const TIMES: usize = 3;

/// Where an action lands, read anew whenever somebody needs to know.
pub trait Site: Send + Sync {
    /// Reads where the action would land just now.
    fn landing<'a>(&'a self) -> BoxFuture<'a, Result<Landing, Failure>>;
}

/// A place that cannot change.
impl Site for Landing {
    fn landing<'a>(&'a self) -> BoxFuture<'a, Result<Landing, Failure>> {
        Box::pin(async move { Ok(self.clone()) })
    }
}

/// What one plugin has to have approved.
pub(crate) struct Question<'q> {
    /// What an approval for the session would cover.
    pub key: ApprovalKey,
    /// The plugin as people read it.
    pub plugin: &'q str,
    pub site: &'q dyn Site,
    /// How the command runs, where one does.
    pub confinement: Option<&'q Confinement>,
    /// The secrets that the command gets, where it gets any.
    pub lent: Option<&'q Lending>,
    pub action: &'q str,
    pub details: Option<&'q str>,
    pub declaration: Option<&'q Declaration>,
    /// What rules of the user's may answer it by; none where only a person may.
    pub subject: Option<&'q Subject>,
    /// What else a person is shown, whose answer is about all of it. Without a question nothing is decided about these.
    pub also: &'q [Also],
    /// What its cell refused the command when it ran last, where a person may let it out; somebody reads the question then.
    pub refused: Option<&'q str>,
    pub timeout: Duration,
}

/// Another thing of the same kind that is asked about in the same question.
pub(crate) struct Also {
    /// What an approval for the session would cover of it.
    pub key: ApprovalKey,
    pub subject: Subject,
}

/// Secrets that a command is to get.
pub(crate) struct Lending {
    /// Their names.
    pub names: String,
    /// The hosts that it can send them to.
    pub hosts: String,
    /// It can send them to no others.
    pub is_bounded: bool,
}

/// Who or what decided.
pub type By = Cow<'static, str>;

/// What was allowed.
pub(crate) struct Consent {
    pub by: By,
    /// The place that a person was shown as the action's target; none when nobody was asked.
    pub seen: Option<Landing>,
    /// The command runs out of its cell.
    pub is_out: bool,
}

/// What came of asking.
struct Answered {
    answer: Answer,
    by: By,
    /// Where whoever answered was told that the action lands.
    seen: Option<Landing>,
}

impl Consent {
    /// Allowed without a question.
    pub(crate) fn unasked(by: impl Into<By>) -> Self {
        let by = by.into();
        Self { by, seen: None, is_out: false }
    }
}

impl Question<'_> {
    /// Asks, unless the session has an approval. Returns who allowed what, or the refusal and who refused.
    pub(crate) async fn ask(&self, scope: &Scope) -> Result<Consent, (Failure, By)> {
        let consent = self.consent(scope).await?;
        if let Purpose::Rehearse(rehearsal) = &scope.purpose {
            // What will be asked when it runs, there and then.
            let place = async {
                match &consent.seen {
                    Some(seen) => Ok(seen.clone()),
                    None if scope.approver.is_read() => self.site.landing().await,
                    None => Ok(self.unread_landing()),
                }
            };
            let landing = place.await.map_err(|failure| (failure, "the place where it would land".into()))?;
            rehearsal.admit(&self.request(scope, landing, Vec::new()), &consent.by);
        }
        Ok(consent)
    }

    /// Where an action lands, for whoever does not read questions.
    fn unread_landing(&self) -> Landing {
        Landing { backend: self.key.backend.clone(), ..Landing::default() }
    }

    async fn consent(&self, scope: &Scope) -> Result<Consent, (Failure, By)> {
        if self.is_answered_before(scope) {
            return Ok(Consent::unasked(FOR_THE_SESSION));
        }
        let refusals = self.refusals(scope);
        if refusals.iter().any(|refusal| scope.session.is_refused(refusal)) {
            let message = "your user has refused this twice, and is not asked again in this session";
            let failure = Failure::denied(message).hint("do without it, or tell your user what you need it for");
            return Err((failure, REFUSED_BEFORE.into()));
        }
        if let Some(by) = self.answered_by_rule(scope).await {
            return Ok(Consent::unasked(by));
        }
        let needs_a_person = self.is_out();
        if needs_a_person && !scope.approver.is_read() {
            return Err(self.needs_a_person(scope));
        }
        let _waiting = scope.clock.waiting();
        let unseen = OnceLock::new();
        let asked = async {
            // One question of a session at a time: an answer to the first may cover the next. The time to answer starts only after this wait.
            let _asking = match scope.approver.asks_one_at_a_time() {
                true => Some(scope.session.ask().await),
                false => None,
            };
            if self.is_answered_before(scope) {
                return None;
            }
            Some(tokio::time::timeout(self.timeout, self.answer(scope, &unseen)).await)
        };
        let answer = tokio::select! {
            answer = asked => answer,
            () = scope.cancel.cancelled() => return Err((Failure::cancelled(), "cancel".into())),
        };
        let kind = self.key.kind;
        let Some(answer) = answer else { return Ok(Consent::unasked(FOR_THE_SESSION)) };
        let Answered { answer, by, seen } = match answer {
            Ok(Ok(answered)) => answered,
            Ok(Err(failure)) => return Err((failure, "the place where it would land".into())),
            Err(_) => {
                let within = format!("nobody answered within {}", duration(self.timeout));
                let failure = match unseen.get() {
                    None => Failure::denied(within).hint("call again when somebody can answer"),
                    Some(how) => Failure::denied(format!("{how}; its user may not have seen it, and {within}"))
                        .hint("call again when somebody can answer by `toolcrib approve` in a terminal"),
                };
                return Err((failure, scope.approver.name().into()));
            }
        };
        match answer {
            Answer::Yes => Ok(Consent { by, seen, is_out: false }),
            // It covers what is confined, later.
            Answer::YesForSession if needs_a_person => Ok(Consent { by, seen, is_out: false }),
            Answer::YesForSession => {
                self.keys().for_each(|key| scope.session.approve(key.clone()));
                Ok(Consent { by, seen, is_out: false })
            }
            Answer::Unconfined if self.refused.is_some() => {
                // Before it runs.
                scope.approvals.note_let_out();
                Ok(Consent { by, seen, is_out: true })
            }
            // Or an answer that nobody was offered.
            Answer::No | Answer::Unconfined => {
                scope.note_refused();
                refusals.into_iter().for_each(|refusal| scope.session.refuse(refusal));
                Err((Failure::denied(kind.refused()), by))
            }
            Answer::Unseen { how } => {
                let hint = format!(
                    "set `notify` under [approval]: then the question stays open for `toolcrib approve`; or set {}",
                    kind.setting()
                );
                let message = format!("{how}; its user may not have seen it");
                Err((Failure::denied(message).hint(kind.remedy(scope, hint)), by))
            }
            Answer::Nobody { reason, hint } => {
                let hint = kind.remedy(scope, hint);
                Err((Failure::denied(reason).hint(hint), by))
            }
        }
    }

    /// The command has all rights of the user, though it should be confined, or it gets a secret and can send it anywhere: no answer in
    /// advance counts.
    fn is_out(&self) -> bool {
        matches!(self.confinement, Some(Confinement::Unconfined(_))) || self.lent.is_some_and(|lent| !lent.is_bounded)
    }

    /// The refusal where nobody is there to answer what no answer in advance counts for.
    fn needs_a_person(&self, scope: &Scope) -> (Failure, By) {
        if let Some(lent) = self.lent.filter(|lent| !lent.is_bounded) {
            let message = format!(
                "the command gets a secret (`{}`) and reaches every host, so that a person has to allow it",
                lent.names
            );
            let hint =
                "call it where a person can answer, or confine commands with `network = \"egress\"` under [confine]";
            return (Failure::denied(message).hint(hint), "tools.shell_secrets".into());
        }
        let why = "the command cannot be confined here, so that a person has to allow it each time";
        let line = "mend what hinders, which `toolcrib doctor` names; or, to run all commands unconfined, set `mode = \"off\"` under [confine]";
        let hint = scope.remedies.hint("confine.mode", &Needed::AtMost("off"), line);
        (Failure::denied(why).hint(hint), "confine.mode".into())
    }

    /// The rule that says yes.
    async fn answered_by_rule(&self, scope: &Scope) -> Option<By> {
        scope.allowed_by_rule(self.of_rules()?).await
    }

    /// The rules that would answer it always, for a person to keep.
    async fn offered(&self, scope: &Scope) -> Vec<RuleSection> {
        let (Some(subject), Some(rules)) = (self.of_rules(), &scope.rules) else { return Vec::new() };
        let mut offered = rules.offered(subject, scope).await;
        for also in self.also {
            offered.extend(rules.offered(&also.subject, scope).await);
        }
        // What holds a secret is written nowhere.
        let is_clean = |rule: &RuleSection| rule.parts().all(|(_, value)| scope.guard.redact(value) == value);
        if offered.iter().all(is_clean) { offered } else { Vec::new() }
    }

    /// What rules may answer it by. None may where it leaves its cell, is only partially confined, gets a secret, needs more rights, or has this
    /// machine's network.
    fn of_rules(&self) -> Option<&Subject> {
        let subject = self.subject.filter(|_| !self.is_out() && self.refused.is_none() && self.lent.is_none())?;
        let needs_more = self.declaration.is_some_and(|declaration| declaration.privesc);
        let cell = self.confinement.and_then(Confinement::cell);
        let is_open = cell.is_some_and(|cell| cell.network == CellNetwork::Full || !cell.by.is_full());
        if needs_more || is_open { None } else { Some(subject) }
    }

    /// What a no of a person's is about: this very action, or each of several things.
    fn refusals(&self, scope: &Scope) -> Vec<RefusalKey> {
        if self.also.is_empty() {
            return vec![RefusalKey::new(&self.key, &scope.principal, self.action, self.details)];
        }
        self.keys().map(|key| RefusalKey::of_covered(key, &scope.principal)).collect()
    }

    /// What an approval for the session would cover of each thing.
    fn keys(&self) -> impl Iterator<Item = &ApprovalKey> {
        [&self.key].into_iter().chain(self.also.iter().map(|also| &also.key))
    }

    fn is_answered_before(&self, scope: &Scope) -> bool {
        !self.is_out() && self.refused.is_none() && scope.session.is_approved(&self.key)
    }

    /// Asks until the action would land in the place that the person was shown; returns that place.
    async fn answer(&self, scope: &Scope, unseen: &OnceLock<String>) -> Result<Answered, Failure> {
        if !scope.approver.is_read() {
            let answer = scope.approver.ask(&self.request(scope, self.unread_landing(), Vec::new())).await;
            return Ok(Answered { answer, by: scope.approver.name().into(), seen: None });
        }
        let rules = self.offered(scope).await;
        let mut landing = self.site.landing().await?;
        for _ in 0..TIMES {
            let mut request = self.request(scope, landing.clone(), rules.clone());
            let conditions = request.conditions();
            let new = scope.session.changed(&self.key, conditions.clone());
            request.new = (!new.is_empty()).then(|| new.join("\n"));
            let (answer, by) = scope.approvals.ask(scope, request, unseen).await;
            match answer {
                Answer::Yes | Answer::YesForSession | Answer::Unconfined => {
                    scope.session.answered_under(&self.key, conditions);
                }
                Answer::No => {
                    scope.session.answered_under(&self.key, conditions);
                    return Ok(Answered { answer, by, seen: None });
                }
                Answer::Unseen { .. } | Answer::Nobody { .. } => return Ok(Answered { answer, by, seen: None }),
            }
            let present = self.site.landing().await?;
            if present == landing {
                return Ok(Answered { answer, by, seen: Some(landing) });
            }
            landing = present;
        }
        Err(Failure::denied(format!(
            "the place where the action would land changed {TIMES} times while a person was asked"
        ))
        .hint("wait until nothing else runs in the pane, then call again"))
    }

    fn request(&self, scope: &Scope, landing: Landing, rules: Vec<RuleSection>) -> ApprovalRequest {
        let shown = |text: &str| sanitize::visible(&scope.guard.redact(text)).into_owned();
        ApprovalRequest {
            kind: self.key.kind,
            tool: scope.purpose.asked_as(&scope.tool),
            plugin: self.plugin.to_owned(),
            landing: landing.shown(|text| scope.guard.redact(&text).into_owned()),
            confinement: self.confinement.and_then(Confined::of),
            secrets: self.lent.map(|lent| format!("{}, and can send it to: {}", lent.names, lent.hosts)),
            action: shown(self.action),
            details: self.details.map(shown),
            declaration: self.declaration.map(|said| {
                let why = scope.guard.redact(&sanitize::line(&said.why)).into_owned();
                Declaration { why, ..said.clone() }
            }),
            refused: self.refused.map(shown),
            new: None,
            rules,
        }
    }
}

impl Confined {
    fn of(confinement: &Confinement) -> Option<Self> {
        match confinement {
            Confinement::Off => Some(Self::No { why: String::new() }),
            Confinement::Unconfined(why) => Some(Self::No { why: format!("none: {}", sanitize::visible_line(why)) }),
            Confinement::Elsewhere => None,
            Confinement::Cell(profile) => {
                Some(Self::Yes { how: profile.words(), bounds: sanitize::visible_line(&profile.bounds()) })
            }
        }
    }
}

impl Landing {
    /// As people read it: the name of a directory may hold anything.
    fn shown(self, redacted: impl Fn(String) -> String) -> Self {
        let line = |text: String| redacted(sanitize::visible_line(&text));
        Self {
            backend: line(self.backend),
            pane: self.pane.map(line),
            directory: self.directory.map(line),
            delay: self.delay,
        }
    }
}
