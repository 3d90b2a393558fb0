//! What a call is made for; and what comes of finding out, before a job is submitted, which command it would run: a person is asked about it
//! then, and nobody when it runs.

use super::job::Admitted;
use crate::capability::embedder::Scheduled;
use crate::config::Config;
use crate::envelope::{Failure, Kind};
use crate::policy::approval::{Answer, ApprovalRequest, Approver};
use crate::policy::in_force::InForce;
use async_trait::async_trait;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What a call is made for.
#[derive(Clone, Default)]
pub(crate) enum Purpose {
    /// Its effects.
    #[default]
    Act,
    /// To have the command admitted that it would run; it ends there.
    Rehearse(Arc<Rehearsal>),
    /// Its effects, as a job.
    Job(Arc<JobCall>),
    /// To hand an event over whose time has come: no guest runs.
    Fire(Arc<JobCall>, Arc<Scheduled>),
}

/// A job, as its call knows it.
pub(crate) struct JobCall {
    /// The id that the call has to have.
    pub(crate) id: String,
    /// When it comes again, where a schedule submits it.
    pub(crate) recurs: Option<String>,
}

impl Purpose {
    /// The id that the call has to have.
    pub(crate) fn id(&self) -> Option<String> {
        match self {
            Self::Act | Self::Rehearse(_) => None,
            Self::Job(job) | Self::Fire(job, _) => Some(job.id.clone()),
        }
    }

    /// The tool, as a person is asked about it.
    pub(crate) fn asked_as(&self, tool: &str) -> String {
        let recurs = match self {
            Self::Act => return tool.to_owned(),
            // It is asked now, and done later.
            Self::Rehearse(rehearsal) => &rehearsal.recurs,
            Self::Job(job) | Self::Fire(job, _) => &job.recurs,
        };
        match recurs {
            None => format!("{tool} as a job"),
            Some(when) => format!("{tool} as a job, {when}"),
        }
    }

    /// A command was admitted, and is about to begin.
    ///
    /// # Errors
    ///
    /// Where it was only to be admitted.
    pub(crate) fn begins(&self) -> Result<(), Failure> {
        match self {
            Self::Act | Self::Job(_) | Self::Fire(..) => Ok(()),
            Self::Rehearse(rehearsal) => {
                rehearsal.found.lock().has_reached = true;
                Err(Failure::new(Kind::Unavailable, "the command runs when its job does"))
            }
        }
    }
}

/// What is found out.
#[derive(Default)]
pub(crate) struct Rehearsal {
    found: Mutex<Found>,
    recurs: Option<String>,
}

#[derive(Default)]
struct Found {
    admitted: Admitted,
    has_reached: bool,
}

impl Rehearsal {
    /// Of what comes at set times, where `recurs` says when.
    pub(super) fn of(recurs: Option<String>) -> Arc<Self> {
        Arc::new(Self { found: Mutex::default(), recurs })
    }

    /// A question was answered with yes.
    pub(crate) fn admit(&self, question: &ApprovalRequest, by: &str) {
        let admitted = &mut self.found.lock().admitted;
        admitted.questions.push(digest(question));
        by.clone_into(&mut admitted.by);
    }

    /// It came to its command, which was admitted.
    pub(crate) fn has_reached(&self) -> bool {
        self.found.lock().has_reached
    }

    /// What was admitted, by whoever reads questions or not.
    pub(crate) fn admitted(&self, were_read: bool) -> Admitted {
        Admitted { were_read, ..self.found.lock().admitted.clone() }
    }
}

/// Tells one question from all others: what is asked, of which tool, where it lands and how it is confined.
fn digest(question: &ApprovalRequest) -> String {
    hex::encode(Sha256::digest(serde_json::to_vec(question).expect("a question is JSON")))
}

/// Answers for a job: yes to what was admitted when it was submitted, and to nothing else.
pub(super) struct AtSubmission {
    pub(super) admitted: Admitted,
    pub(super) policy: Arc<InForce>,
}

impl AtSubmission {
    /// An answer in advance is worth what it is worth now.
    fn counts(&self, config: &Config) -> bool {
        self.admitted.were_read || config.approval.allow_yes
    }
}

#[async_trait]
impl Approver for AtSubmission {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        if !self.admitted.questions.contains(&digest(request)) {
            return Answer::Nobody {
                reason: "it is not what was approved when the job was submitted, and nobody is asked while a job runs"
                    .into(),
                hint: "call the tool where a person can answer, or submit the job anew".into(),
            };
        }
        match self.counts(self.policy.policy().config()) {
            true => Answer::Yes,
            false => Answer::Nobody {
                reason: "it was approved by `--yes`, which is switched off by `approval.allow_yes = false`".into(),
                hint: "submit the job anew, where a person is asked".into(),
            },
        }
    }

    fn name(&self) -> &'static str {
        "the answer when the job was submitted"
    }

    fn is_read(&self) -> bool {
        self.admitted.were_read
    }

    fn asks_one_at_a_time(&self) -> bool {
        false
    }
}
