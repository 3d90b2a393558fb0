//! What only a person or the program around the host can give or keep: `secret_set`, `project_manage`, `memory_persistence_complete`.

use crate::{check_most, check_text, hand_over};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// Memories and events of one run.
const MOST_MEMORIES: usize = 200;
const MOST_EVENTS: usize = 50;

pub(crate) struct SecretSet;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretInput {
    /// Name of the secret: A-Z, 0-9 and `_`, starting with a letter.
    name: String,
    /// Why it is needed. The person who is asked reads this.
    why: String,
}

/// That it is there, and never what it is.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SecretStored {
    /// False: the person did not give it.
    #[serde(default)]
    stored: bool,
}

impl Tool for SecretSet {
    const NAME: &str = "secret_set";
    const TITLE: Option<&str> = Some("Ask for a secret");
    const SUMMARY: &str = "Ask the person for a secret, which is stored without showing it to you.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A command or request needs a password, key or token that is not stored yet.",
        when_not_to_use: "",
        disambiguation: "Give the name and the reason, never the value, even if the person wrote it to you.",
        examples: &[r#"{"name":"GITHUB_TOKEN","why":"To open the pull request for the fix."}"#],
    };
    const EVENTS: &[&str] = &["secret.request"];
    type Input = SecretInput;
    type Output = SecretStored;

    fn call(input: SecretInput) -> Result<SecretStored> {
        let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let fits = input.name.starts_with(|first: char| first.is_ascii_uppercase()) && input.name.len() <= 64;
        if !fits || !input.name.bytes().all(is_part) {
            return Err(Failure::invalid("`name` is not the name of a secret")
                .hint("1 to 64 of A-Z, 0-9 and `_`, a letter first, such as GITHUB_TOKEN"));
        }
        check_text("why", &input.why)?;
        hand_over("secret.request", &input)
    }
}

pub(crate) struct ProjectManage;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ProjectAction {
    List,
    Create,
    Scan,
    AddRepo,
    CreateWorktree,
    RemoveWorktree,
    DiskUsage,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectInput {
    /// What to do.
    action: ProjectAction,
    /// Project id, for all actions but `list` and `create`.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    /// For `create`: name of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// For `create`: absolute path of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_path: Option<String>,
    /// For `add_repo`: absolute path, or relative to the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_path: Option<String>,
    /// For `create_worktree`: id of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_id: Option<String>,
    /// For `create_worktree`: branch of the worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// For `create_worktree`: directory name; default: the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree_name: Option<String>,
    /// For `remove_worktree`: id of the worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree_id: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProjectManaged {
    message: String,
    /// What there is, or was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Tool for ProjectManage {
    const NAME: &str = "project_manage";
    const TITLE: Option<&str> = Some("Manage projects");
    const SUMMARY: &str = "List or make projects, their repositories and worktrees.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Work belongs to a project, or needs its own worktree.",
        when_not_to_use: "",
        disambiguation: "A project grants no right to write.",
        examples: &[r#"{"action":"create_worktree","project_id":"p1","repo_id":"r1","branch":"fix-login"}"#],
    };
    const EVENTS: &[&str] = &["project.manage"];
    type Input = ProjectInput;
    type Output = ProjectManaged;

    fn call(input: ProjectInput) -> Result<ProjectManaged> {
        input.check()?;
        hand_over("project.manage", &input)
    }
}

impl ProjectInput {
    fn check(&self) -> Result<()> {
        let project = ("project_id", &self.project_id);
        let needed: &[(&str, &Option<String>)] = match self.action {
            ProjectAction::List => &[],
            ProjectAction::Create => &[("name", &self.name), ("root_path", &self.root_path)],
            ProjectAction::Scan | ProjectAction::DiskUsage => &[project],
            ProjectAction::AddRepo => &[project, ("repo_path", &self.repo_path)],
            ProjectAction::CreateWorktree => &[project, ("repo_id", &self.repo_id), ("branch", &self.branch)],
            ProjectAction::RemoveWorktree => &[project, ("worktree_id", &self.worktree_id)],
        };
        let is_missing = |(_, text): &&(&str, &Option<String>)| text.as_ref().is_none_or(|text| text.trim().is_empty());
        if let Some((name, _)) = needed.iter().find(is_missing) {
            return Err(Failure::invalid(format!("this action needs `{name}`")));
        }
        match &self.root_path {
            Some(path) if !path.starts_with('/') => Err(Failure::invalid("`root_path` is not an absolute path")),
            Some(_) | None => Ok(()),
        }
    }
}

pub(crate) struct MemoryPersistenceComplete;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PersistenceOutcome {
    Saved,
    NoMemories,
}

/// An event.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkingEvent {
    /// One sentence.
    summary: String,
    /// From 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersistenceInput {
    /// Result of the run.
    outcome: PersistenceOutcome,
    /// For `saved`: all ids that `memory_save` returned in this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    saved_memory_ids: Vec<String>,
    /// For `no_memories`: why nothing was worth saving.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Events of the conversation, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<WorkingEvent>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Persisted {
    /// False: the ids are not those that were saved.
    #[serde(default = "yes")]
    accepted: bool,
}

fn yes() -> bool {
    true
}

impl Tool for MemoryPersistenceComplete {
    const NAME: &str = "memory_persistence_complete";
    const TITLE: Option<&str> = Some("Report saved memories");
    const SUMMARY: &str = "End a run that saves memories and report its result.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Once, after you have saved what is worth remembering or found nothing.",
        when_not_to_use: "",
        disambiguation: "It saves nothing; `memory_save` does.",
        examples: &[r#"{"outcome":"saved","saved_memory_ids":["m12","m13"]}"#],
    };
    const EVENTS: &[&str] = &["memory.persisted"];
    type Input = PersistenceInput;
    type Output = Persisted;

    fn call(input: PersistenceInput) -> Result<Persisted> {
        check_most("saved_memory_ids", input.saved_memory_ids.len(), MOST_MEMORIES, "ids")?;
        check_most("events", input.events.len(), MOST_EVENTS, "events")?;
        input.saved_memory_ids.iter().try_for_each(|id| check_text("saved_memory_ids", id))?;
        let has_reason = input.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty());
        match (input.outcome, input.saved_memory_ids.is_empty()) {
            (PersistenceOutcome::Saved, true) => Err(Failure::invalid("`saved` needs `saved_memory_ids`")
                .hint("or the outcome `no_memories`, with a `reason`")),
            (PersistenceOutcome::NoMemories, false) => {
                Err(Failure::invalid("`no_memories` has no `saved_memory_ids`").hint("the outcome is `saved` then"))
            }
            (PersistenceOutcome::NoMemories, true) if !has_reason => {
                Err(Failure::invalid("`no_memories` needs a `reason`"))
            }
            (PersistenceOutcome::Saved, false) | (PersistenceOutcome::NoMemories, true) => {
                hand_over("memory.persisted", &input)
            }
        }
    }
}
