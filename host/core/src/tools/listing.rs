//! What a caller is offered: the tools of all plugins that load, and of them those that policy and place let be called.
//!
//! Every door lists by this; what a tool may do in a call is decided again when it is called.

use crate::call::CallContext;
use crate::capability::Capability;
use crate::capability::embedder::not_taken;
use crate::embedder::any_covers;
use crate::envelope::{Failure, Kind};
use crate::policy::typing;
use crate::tmux::Panes;
use crate::tools::definition::Tool;
use crate::tools::manifest::Manifest;
use std::sync::Arc;

/// Tools that load, and what is to be said of those that do not.
pub struct Offered {
    /// As the caller's session has them, in the order of their plugins.
    pub tools: Vec<Arc<Tool>>,
    /// Likewise what people ask for by name, and models are not offered.
    pub prompts: Vec<Arc<Tool>>,
    /// A line each, for people.
    pub notices: Vec<String>,
}

/// Every tool, and why those that are not offered are not.
pub struct AllTools {
    /// As the caller's session has them, in the order of their plugins; a reason where it is not offered.
    pub tools: Vec<(Arc<Tool>, Option<Failure>)>,
    /// A line each, for people: of plugins that do not load, and of a place that cannot be asked.
    pub notices: Vec<String>,
}

/// Tools of this program that are listed on request, by families, so that nobody's list is flooded.
const FAMILIES: [(&str, &[&str]); 15] = [
    ("files", &["file", "file_edit", "file_list", "file_read", "file_write"]),
    ("exec", &["exec", "shell"]),
    (
        "browser",
        &[
            "browser",
            "browser_click",
            "browser_close",
            "browser_evaluate",
            "browser_hover",
            "browser_navigate",
            "browser_press_key",
            "browser_screenshot",
            "browser_select",
            "browser_snapshot",
            "browser_tab_close",
            "browser_tab_list",
            "browser_tab_open",
            "browser_tab_select",
            "browser_type",
            "browser_upload",
            "browser_wait",
        ],
    ),
    ("mail", &["email_read", "email_search"]),
    (
        "introspect",
        &["bin_list", "config_inspect", "context_list", "context_show", "env_list", "mount_list", "spacebot_docs"],
    ),
    ("jobs", &["job_cancel", "job_list", "job_status", "job_submit", "job_wait", "job_watch"]),
    ("schedules", &["cron"]),
    ("memory", &["memory_consolidate", "memory_delete", "memory_recall", "memory_save"]),
    ("notes", &["note_delete", "note_list", "note_pin", "note_save", "note_show", "note_unpin"]),
    (
        "agent",
        &[
            "ask",
            "autonomy_complete",
            "branch",
            "cancel",
            "memory_persistence_complete",
            "project_manage",
            "react",
            "reply",
            "restart",
            "route",
            "secret_set",
            "send_agent_message",
            "send_file",
            "send_message_to_another_channel",
            "set_home_channel",
            "set_outcome",
            "set_status",
            "skip",
            "spawn_worker",
        ],
    ),
    (
        "fleet",
        &[
            "agent_create",
            "agent_create_from_source",
            "agent_delete",
            "agent_delete_any",
            "agent_exec",
            "agent_exec_any",
            "agent_info",
            "agent_info_any",
            "agent_list",
            "agent_list_all",
            "image_list",
            "model_list",
            "self_reload",
        ],
    ),
    (
        "factory",
        &[
            "factory_create_agent",
            "factory_list_presets",
            "factory_load_preset",
            "factory_search_context",
            "factory_update_config",
            "factory_update_identity",
        ],
    ),
    ("goals", &["goal_create", "goal_list", "goal_update"]),
    ("tasks", &["add_task_comment", "task_create", "task_history", "task_list", "task_show", "task_update"]),
    ("transcripts", &["attachment_recall", "channel_recall", "worker_inspect"]),
];

/// Whether there is a family of this name.
pub(crate) fn is_family(name: &str) -> bool {
    FAMILIES.iter().any(|(family, _)| *family == name)
}

/// The names of all families of tools that are listed on request: by `tools.offer` or a toolset.
pub fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(family, _)| *family)
}

/// The family of a tool that is listed on request.
pub(crate) fn family(plugin: &Manifest, tool: &str) -> Option<&'static str> {
    let is_of = |(_, tools): &&(&'static str, &[&str])| tools.contains(&tool);
    FAMILIES.iter().find(is_of).filter(|_| plugin.id.is_builtin()).map(|(family, _)| *family)
}

/// What a tool is summed up under with others: its family, or its plugin.
pub(super) fn group(tool: &Tool) -> &str {
    family(tool.plugin(), tool.name()).unwrap_or_else(|| tool.plugin().name())
}

/// Typing could succeed: the only pane is not one where questions are answered.
fn can_type(context: &CallContext) -> bool {
    !matches!(context.panes, Panes::Own(_)) || typing::check_own(context.approver.is_read()).is_ok()
}

/// Why the place has no use for a plugin; none where it has one.
pub(crate) fn useless_here(plugin: &Manifest, missing: &[Capability], context: &CallContext) -> Option<Failure> {
    let unavailable = |why: String, hint: &str| Some(Failure::new(Kind::Unavailable, why).hint(hint));
    if let Some(lacking) = plugin.capabilities.iter().find(|needed| missing.contains(needed)) {
        let why = format!("it needs `{}`, and there are no managed panes here", lacking.name());
        return unavailable(why, "`toolcrib doctor` says what tmux lacks");
    }
    if plugin.capabilities.contains(&Capability::Embedder) && context.embedder.kinds().is_empty() {
        let why = "it needs an embedder, a program around this one that takes its events, and there is none";
        return unavailable(
            why.into(),
            "see docs/embedding.md: `toolcrib run --embedder KIND`, `toolcrib serve --embedder WHERE` and the library have one",
        );
    }
    if plugin.id.is_program() && !context.backend.is_this_machine() {
        let why = format!("declared programs run on this machine alone, and calls land on {}", context.backend.name());
        return unavailable(why, "`exec` starts programs there");
    }
    if plugin.calls(Capability::Panes, "send") && !can_type(context) {
        return unavailable("the only pane is one where questions are answered".into(), "use managed panes");
    }
    None
}

/// Why a tool that hands over events is of no use here; none where the embedder takes all of their kinds.
pub(crate) fn not_taken_here(tool: &Tool, context: &CallContext) -> Option<Failure> {
    let kinds = context.embedder.kinds();
    let untaken = tool.definition().events.iter().find(|kind| !any_covers(&kinds, kind))?;
    Some(not_taken(untaken))
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
