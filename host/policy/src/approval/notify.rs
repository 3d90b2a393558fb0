//! Telling the user of an open question, by a program that settings name (`[approval] notify`): nobody looks into a second terminal all day.
//!
//! It is a program of the user's own and not confined, as it has to reach the desktop. It gets no text that a guest or a model wrote but the tool's name.

use super::ApprovalRequest;
use backend::finish;
use backend::own::OwnPrograms;
use base::dirs::Dirs;
use base::text::sanitize;
use std::time::Duration;

/// How long a question is open before the user is told of it.
const LATER: Duration = Duration::from_secs(3);
/// How long the program may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters of a call's id that tell it from others.
const SHOWN_ID: usize = 8;

/// What tells the user of questions.
pub struct Notifier {
    argv: Vec<String>,
    programs: OwnPrograms,
}

impl Notifier {
    /// None where settings name no program.
    #[must_use]
    pub fn of(argv: &[String], dirs: &Dirs) -> Option<Self> {
        (!argv.is_empty()).then(|| Self { argv: argv.to_vec(), programs: OwnPrograms::new(dirs) })
    }

    /// Tells of a question that nobody has answered at once.
    pub(super) async fn tell_later(&self, call: &str, request: &ApprovalRequest) {
        tokio::time::sleep(LATER).await;
        self.tell(call, request).await;
    }

    /// Tells of a question. Where that fails it is as if nobody had heard: the question waits all the same.
    pub(super) async fn tell(&self, call: &str, request: &ApprovalRequest) {
        let argv: Vec<String> = self.argv.iter().cloned().chain(told(call, request)).collect();
        let run = async {
            if let Ok(process) = self.programs.start(&argv).await {
                let _ = finish(process).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, run).await;
    }
}

/// The two arguments that the program gets besides its own: a title, and what to do.
fn told(call: &str, request: &ApprovalRequest) -> [String; 2] {
    let id: String = call.chars().take(SHOWN_ID).collect();
    let title = format!("Toolcrib: {} needs an answer", sanitize::visible_line(&request.tool));
    [title, format!("It would act on {}. In a terminal: toolcrib approve {id}", request.landing.backend)]
}
