//! A person is asked only outside of the managed panes: tools type into those, and could type the answer.

use async_trait::async_trait;
use std::sync::Arc;
use toolcrib::backend::Backend;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};

/// Passes questions on to `approver`, unless the terminal is a managed pane.
pub(super) struct Outside {
    pub(super) approver: Arc<dyn Approver>,
    /// This machine, whose panes count.
    pub(super) local: Arc<dyn Backend>,
}

#[async_trait]
impl Approver for Outside {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let reason = match tmux::we_are_in_a_pane(&*self.local).await {
            Ok(false) => return self.approver.ask(request).await,
            Ok(true) => "this is a managed pane, which tools can type into".to_owned(),
            Err(failure) => failure.message,
        };
        Answer::Nobody {
            reason: format!("the action needs an approval, which cannot be asked for here: {reason}"),
            hint: "start Toolcrib in a terminal of your own".into(),
        }
    }

    fn name(&self) -> &'static str {
        self.approver.name()
    }

    fn is_read(&self) -> bool {
        self.approver.is_read()
    }

    fn answers_in_advance(&self) -> bool {
        self.approver.answers_in_advance()
    }

    fn asks_one_at_a_time(&self) -> bool {
        self.approver.asks_one_at_a_time()
    }
}
