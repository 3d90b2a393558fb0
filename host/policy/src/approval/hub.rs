//! The hub: every question that a person is asked passes through here, however the caller's door asks it.
//!
//! A door asks by its [`Approver`](super::Approver), and another may answer through the hub meanwhile: an embedding program whose caller is
//! away, a page that shows what is open. The first answer counts; the other way of asking is withdrawn.

use super::{Answer, ApprovalRequest, By, Notifier};
use crate::scope::Scope;
use base::principal::Principal;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tokio::sync::{oneshot, watch};

/// How the decision reads in the audit trail when it was given through the hub.
const THROUGH_THE_HUB: &str = "an answer to the open question";

/// The open questions of one host.
pub struct Approvals {
    open: Mutex<BTreeMap<u64, Open>>,
    /// The number of questions that were ever asked.
    asked: watch::Sender<u64>,
    has_let_out: AtomicBool,
    notifier: Option<Notifier>,
}

struct Open {
    question: OpenQuestion,
    answer: oneshot::Sender<Answer>,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its number, which no other question of this host has.
    pub number: u64,
    /// The call that asks.
    pub call: String,
    /// Who made that call.
    pub principal: Principal,
    /// When it was asked.
    pub since: SystemTime,
    /// What is asked.
    pub request: ApprovalRequest,
}

/// Keeps a question open while it lives.
struct Asking<'a> {
    approvals: &'a Approvals,
    number: u64,
}

impl Default for Approvals {
    fn default() -> Self {
        Self::notifying(None)
    }
}

impl Approvals {
    /// Those of a host that tells its user of a question.
    pub fn notifying(notifier: Option<Notifier>) -> Self {
        let (open, asked, has_let_out) = (Mutex::default(), watch::Sender::new(0), AtomicBool::new(false));
        Self { open, asked, has_let_out, notifier }
    }

    /// The questions that are open, the oldest first.
    #[must_use]
    pub fn open(&self) -> Vec<OpenQuestion> {
        self.open.lock().values().map(|open| open.question.clone()).collect()
    }

    /// Changes with every new question.
    #[must_use]
    pub fn asked(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// Answers a question; false where it is not open any more.
    pub fn answer(&self, number: u64, answer: Answer) -> bool {
        let open = self.open.lock().remove(&number);
        open.is_some_and(|open| open.answer.send(answer).is_ok())
    }

    /// A call waits for an answer.
    pub fn has_question_of(&self, call: &str) -> bool {
        self.open.lock().values().any(|open| open.question.call == call)
    }

    /// A command is about to run out of its cell: from now on one could answer in the place of a person, or has left what does.
    pub(super) fn note_let_out(&self) {
        self.has_let_out.store(true, Ordering::Release);
    }

    /// Whether a person has let a command out of its cell.
    pub fn has_let_out(&self) -> bool {
        self.has_let_out.load(Ordering::Acquire)
    }

    /// Asks, and says who answered. The caller bounds the wait; a dropped question is withdrawn everywhere. What nobody may have seen stays open
    /// where the user is told of it, and `unseen` has how that came.
    pub(super) async fn ask(&self, scope: &Scope, request: ApprovalRequest, unseen: &OnceLock<String>) -> (Answer, By) {
        let (sender, mut answered) = oneshot::channel();
        let _asking = self.begin(scope, request.clone(), sender);
        let tells = async {
            if let Some(notifier) = &self.notifier {
                notifier.tell_later(&scope.id, &request).await;
            }
            std::future::pending::<()>().await;
        };
        let how = tokio::select! {
            answer = scope.approver.ask(&request) => match answer {
                Answer::Unseen { how } => how,
                answer => return (answer, scope.approver.name().into()),
            },
            Ok(answer) = &mut answered => return (answer, THROUGH_THE_HUB.into()),
            () = tells => unreachable!("it does not end"),
        };
        let Some(notifier) = &self.notifier else { return (Answer::Unseen { how }, scope.approver.name().into()) };
        let _ = unseen.set(how);
        notifier.tell(&scope.id, &request).await;
        match answered.await {
            Ok(answer) => (answer, THROUGH_THE_HUB.into()),
            Err(_) => std::future::pending().await,
        }
    }

    fn begin(&self, scope: &Scope, request: ApprovalRequest, answer: oneshot::Sender<Answer>) -> Asking<'_> {
        let (call, principal, since) = (scope.id.clone(), scope.principal.clone(), SystemTime::now());
        let mut open = self.open.lock();
        let number = *self.asked.borrow() + 1;
        open.insert(number, Open { question: OpenQuestion { number, call, principal, since, request }, answer });
        // Under the lock, so that no two questions get one number.
        self.asked.send_replace(number);
        Asking { approvals: self, number }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.approvals.open.lock().remove(&self.number);
    }
}
