//! What a caller is offered: the tools of all plugins that load, and of them those that policy and place let be called.
//!
//! Every door lists by this; what a tool may do in a call is decided again when it is called.

use crate::call::CallContext;
use crate::capability::Capability;
use crate::policy::typing;
use crate::tmux::Panes;
use crate::tools::definition::Tool;
use std::sync::Arc;

/// Tools that load, and what is to be said of those that do not.
pub struct Offered {
    pub tools: Vec<Arc<Tool>>,
    pub notices: Vec<String>,
}

/// Typing could succeed: the only pane is not one where questions are answered.
pub(crate) fn can_type(context: &CallContext) -> bool {
    !matches!(context.panes, Panes::Own(_)) || typing::check_own(context.approver.is_read()).is_ok()
}

/// Capabilities that could only fail: without panes those of panes.
pub(crate) async fn missing(context: &CallContext, notices: &mut Vec<String>) -> &'static [Capability] {
    match (&context.panes, context.panes.managed().await) {
        (_, Ok(Some(_))) => &[],
        (Panes::Own(_), _) => &[Capability::PaneSessions],
        (_, Ok(None)) => &[Capability::Panes, Capability::PaneSessions],
        (_, Err(unreachable)) => {
            notices.push(format!("{}; what it offers is not known", unreachable.message));
            &[]
        }
    }
}
