//! What a call is made for; and what comes of finding out, before a job is submitted, which command it would run: a person is asked about it
//! then, and nobody when it runs.

use super::approval::{Answer, ApprovalRequest, Approver};
use super::in_force::InForce;
use async_trait::async_trait;
use base::admitted::Admitted;
use base::envelope::{Failure, Kind};
use config::Config;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What a call is made for.
#[derive(Clone, Default)]
pub enum Purpose {
    /// Its effects.
    #[default]
    Act,
    /// To have the command admitted that it would run; it ends there.
    Rehearse(Arc<Rehearsal>),
    /// Its effects, as a job.
    Job(Arc<JobCall>),
}

/// A job, as its call knows it.
pub struct JobCall {
    /// The id that the call has to have.
    pub id: String,
    /// When it comes again, where a schedule submits it.
    pub recurs: Option<String>,
}

impl Purpose {
    /// The id that the call has to have.
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Act | Self::Rehearse(_) => None,
            Self::Job(job) => Some(job.id.clone()),
        }
    }

    /// Whether it counts among the calls of its caller, and among those that run.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Act => true,
            // What is rehearsed is part of a call that counts. A job's submission was counted, and the pool of jobs is a bound of its own.
            Self::Rehearse(_) | Self::Job(_) => false,
        }
    }

    /// Whether it has lines of its own on the audit trail.
    pub fn is_on_record(&self) -> bool {
        match self {
            Self::Act | Self::Job(_) => true,
            // The call that it is part of is on record.
            Self::Rehearse(_) => false,
        }
    }

    /// Whether output that is cut is kept among that of calls.
    pub fn keeps_output(&self) -> bool {
        match self {
            Self::Act | Self::Rehearse(_) => true,
            // What a job says is kept as the job's.
            Self::Job(_) => false,
        }
    }

    /// The tool, as a person is asked about it.
    pub fn asked_as(&self, tool: &str) -> String {
        let recurs = match self {
            Self::Act => return tool.to_owned(),
            // It is asked now, and done later.
            Self::Rehearse(rehearsal) => &rehearsal.recurs,
            Self::Job(job) => &job.recurs,
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
    pub fn begins(&self) -> Result<(), Failure> {
        match self {
            Self::Act | Self::Job(_) => Ok(()),
            Self::Rehearse(rehearsal) => {
                rehearsal.found.lock().has_reached = true;
                Err(Failure::new(Kind::Unavailable, "the command runs when its job does"))
            }
        }
    }
}

/// What is found out.
#[derive(Default)]
pub struct Rehearsal {
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
    pub fn of(recurs: Option<String>) -> Arc<Self> {
        Arc::new(Self { found: Mutex::default(), recurs })
    }

    /// A question was answered with yes.
    pub fn admit(&self, question: &ApprovalRequest, by: &str) {
        let admitted = &mut self.found.lock().admitted;
        admitted.questions.push(digest(question));
        by.clone_into(&mut admitted.by);
    }

    /// It came to its command, which was admitted.
    pub fn has_reached(&self) -> bool {
        self.found.lock().has_reached
    }

    /// What was admitted, by whoever reads questions or not.
    pub fn admitted(&self, were_read: bool) -> Admitted {
        Admitted { were_read, ..self.found.lock().admitted.clone() }
    }
}

/// Tells one question from all others: what is asked, of which tool, where it lands and how it is confined. Which rules would answer it, and what
/// was asked before, is no part of that.
fn digest(question: &ApprovalRequest) -> String {
    let question = ApprovalRequest { rules: Vec::new(), new: None, ..question.clone() };
    hex::encode(Sha256::digest(serde_json::to_vec(&question).expect("a question is JSON")))
}

/// Answers for a job: yes to what was admitted when it was submitted, and to nothing else.
pub struct AtSubmission {
    pub admitted: Admitted,
    pub policy: Arc<InForce>,
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
