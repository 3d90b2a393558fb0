//! Names of what is ours: `toolcrib-AGENT-DIRECTORY-DIGEST` is the default session of a workspace, with `-NAME` added another one there,
//! `toolcrib-AGENT-NAME` one that people asked for; `shared` is the pane that is always there.

use base::envelope::Failure;
use base::workspace::Workspace;

/// The default pane of every session, and the name of its window.
pub(super) const SHARED: &str = "shared";
/// Characters of an agent's or a person's part of a name.
const MOST_CHARS: usize = 48;
/// Characters of a directory's part.
const DIRECTORY_CHARS: usize = 24;
/// Other words for the default session and the shared pane.
const ALIASES: [&str; 4] = ["default", "shared", "default-pane", "shared-pane"];

/// The prefix of everything that an agent owns.
pub(super) fn owner(agent: &str) -> String {
    let agent = canonical(agent, MOST_CHARS);
    format!("toolcrib-{}", if agent.is_empty() { "agent" } else { &agent })
}

/// The name of a workspace's default session.
pub(super) fn default_session(owner: &str, workspace: &Workspace) -> String {
    let digest = workspace.digest();
    let directory = canonical(&workspace.name, DIRECTORY_CHARS);
    if directory.is_empty() { format!("{owner}-{digest}") } else { format!("{owner}-{directory}-{digest}") }
}

/// The name of a session that a person asks for, in whichever workspace they are: short, or in full as `toolcrib panes` lists it.
/// None, blank and the aliases ask for none.
pub(super) fn asked(owner: &str, name: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(name) = given(name) else { return Ok(None) };
    below(owner, name).map(Some)
}

/// The name of a session of the workspace whose default one is given; none, blank and the aliases mean that one. Whatever is named, it does
/// not lead to another workspace.
pub(super) fn session(default: &str, name: Option<&str>) -> Result<String, Failure> {
    match given(name) {
        Some(name) if name != default => below(default, name),
        _ => Ok(default.to_owned()),
    }
}

/// `PREFIX-NAME`, however much of it was said.
fn below(prefix: &str, name: &str) -> Result<String, Failure> {
    let short = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name);
    match canonical(short, MOST_CHARS).as_str() {
        "" => Err(odd(name, "session")),
        short => Ok(format!("{prefix}-{short}")),
    }
}

/// The name of a pane within its session; none, blank and the aliases mean the shared one.
pub(super) fn pane(name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = given(name) else { return Ok(SHARED.to_owned()) };
    let canonical = canonical(name, MOST_CHARS);
    if canonical.is_empty() { Err(odd(name, "pane")) } else { Ok(canonical) }
}

fn given(name: Option<&str>) -> Option<&str> {
    let name = name?.trim();
    (!name.is_empty() && !ALIASES.contains(&name)).then_some(name)
}

/// Lowercase letters, digits, `_` and single `-`: nothing that tmux takes for a pattern or a format.
fn canonical(name: &str, most_chars: usize) -> String {
    let mut canonical = String::new();
    for c in name.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        if c != '-' || !(canonical.is_empty() || canonical.ends_with('-')) {
            canonical.push(c);
        }
    }
    canonical.chars().take(most_chars).collect::<String>().trim_end_matches('-').to_owned()
}

fn odd(name: &str, what: &str) -> Failure {
    Failure::invalid(format!("`{name}` is not a valid name of a {what}")).hint("use letters, digits, `-` and `_`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_prefix_is_canonical() {
        let owners = ["Ops Agent (Prod)", "", "   ", "a.b:c", "#(touch x)"].map(owner);
        let expected =
            ["toolcrib-ops-agent-prod", "toolcrib-agent", "toolcrib-agent", "toolcrib-a-b-c", "toolcrib-touch-x"];
        assert_eq!(owners, expected);
    }

    #[test]
    fn a_default_session_is_named_after_its_workspace() {
        let name = |root: &str| default_session("toolcrib-a", &Workspace::at(root.into()));
        assert_eq!(name("/srv/My Project"), "toolcrib-a-my-project-b220ac69");
        assert_eq!(name("/"), "toolcrib-a-root-8a5edab2");
        assert_eq!(name("/srv/世界"), "toolcrib-a-39f9d554");
        assert!(name(&format!("/{}", "x".repeat(200))).len() < 50);
    }

    #[test]
    fn directories_of_one_name_have_sessions_of_their_own() {
        let name = |root: &str| default_session("toolcrib-a", &Workspace::at(root.into()));
        assert_ne!(name("/one/api"), name("/two/api"));
        assert_eq!(name("/one/api"), name("/one/api"));
    }

    #[test]
    fn sessions_are_the_workspaces() {
        let name = |name| session("toolcrib-a-api-0123", name).expect("a name");
        let default = "toolcrib-a-api-0123";
        for same in [None, Some("  "), Some("default"), Some("shared"), Some(default)] {
            assert_eq!(name(same), default, "{same:?}");
        }
        assert_eq!([name(Some("Build")), name(Some("toolcrib-a-api-0123-build"))], ["toolcrib-a-api-0123-build"; 2]);
        assert!(session(default, Some("#{;}")).is_err());
    }

    #[test]
    fn no_name_that_a_model_gives_leads_to_another_workspace() {
        for other in ["toolcrib-a", "toolcrib-a-web-4567", "toolcrib-a-api-01234", "toolcrib-b"] {
            let name = session("toolcrib-a-api-0123", Some(other)).expect("a name");
            assert!(name.starts_with("toolcrib-a-api-0123-"), "{other}: {name}");
        }
    }

    #[test]
    fn people_ask_for_a_session_by_its_short_or_its_full_name() {
        let asked = |name| asked("toolcrib-a", name).expect("a name");
        assert_eq!([asked(None), asked(Some(" ")), asked(Some("default"))], [const { None }; 3]);
        for name in ["Api-0123", "toolcrib-a-api-0123"] {
            assert_eq!(asked(Some(name)).as_deref(), Some("toolcrib-a-api-0123"));
        }
    }

    #[test]
    fn panes_have_short_names() {
        assert_eq!(pane(None).expect("a name"), "shared");
        assert_eq!(pane(Some(" Dev Server ")).expect("a name"), "dev-server");
        assert_eq!(pane(Some("{last}")).expect("a name"), "last");
        assert!(pane(Some("=%+")).is_err());
    }
}
