//! What a caller is offered: the tools of all plugins that load, and of them those that policy and place let be called.
//!
//! Every door lists by this; what a tool may do in a call is decided again when it is called.

use crate::call::{CallContext, Host};
use crate::definition::Tool;
use crate::envelope::Failure;
use crate::formats::Offer;
use crate::policy::{is_shell, typing};
use crate::registry::Plugin;
use crate::tmux::Panes;
use futures_util::future::join_all;
use std::sync::Arc;

/// Tools that load, and what is to be said of those that do not.
pub(crate) struct Offered {
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) notices: Vec<String>,
}

impl Host {
    /// Loads every plugin that the place has a use for.
    pub(crate) async fn offered(&self, context: &CallContext) -> Offered {
        let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
        let missing = missing(context, &mut notices).await;
        let can_type = can_type(context);
        let is_usable = |plugin: &&Arc<Plugin>| {
            let lacks = plugin.capabilities().iter().any(|needed| missing.contains(needed));
            let is_enabled = self.policy.config().is_enabled(plugin.name());
            is_enabled && !lacks && (can_type || !plugin.calls("panes", "send"))
        };
        let plugins: Vec<_> = context.tools.plugins().filter(is_usable).collect();
        let mut tools = Vec::new();
        for ready in join_all(plugins.into_iter().map(|plugin| self.ready(plugin, context))).await {
            match ready {
                Ok(ready) => tools.extend(ready.tools().iter().cloned()),
                Err(failure) => notices.push(failure.message),
            }
        }
        Offered { tools, notices }
    }

    /// The first reason why a call of the tool would be denied.
    pub(crate) fn denial(&self, tool: &Tool) -> Option<Failure> {
        let grants = self.policy.grants_for(tool.plugin());
        tool.plugin().capabilities().into_iter().find_map(|capability| match capability {
            capability if is_shell(capability) => grants.shell().err(),
            "files" => grants.files().err(),
            "http" => grants.http().err(),
            _ => None,
        })
    }

    /// The tool as a list of definitions has it.
    pub(crate) fn offer<'t>(&self, tool: &'t Tool) -> Offer<'t> {
        Offer::new(tool, &self.policy.grants_for(tool.plugin()))
    }
}

/// Typing could succeed: the only pane is not one where questions are answered.
fn can_type(context: &CallContext) -> bool {
    !matches!(context.panes, Panes::Own(_)) || typing::check_own(context.approver.is_read()).is_ok()
}

/// Capabilities that could only fail: without panes those of panes.
async fn missing(context: &CallContext, notices: &mut Vec<String>) -> &'static [&'static str] {
    match (&context.panes, context.panes.managed().await) {
        (_, Ok(Some(_))) => &[],
        (Panes::Own(_), _) => &["sessions"],
        (_, Ok(None)) => &["panes", "sessions"],
        (_, Err(unreachable)) => {
            notices.push(format!("{}; what it offers is not known", unreachable.message));
            &[]
        }
    }
}
