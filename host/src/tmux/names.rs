//! Names of what is ours: `toolcrib-AGENT` is the default session, `toolcrib-AGENT-NAME` another one, `shared` the pane that is always there.

use crate::envelope::Failure;

/// The default pane of every session, and the name of its window.
pub(super) const SHARED: &str = "shared";
/// Characters of an agent's or a person's part of a name.
const MOST_CHARS: usize = 48;
/// Other words for the default session and the shared pane.
const ALIASES: [&str; 4] = ["default", "shared", "default-pane", "shared-pane"];

/// The prefix of everything that an agent owns.
pub(super) fn owner(agent: &str) -> String {
    let agent = canonical(agent);
    format!("toolcrib-{}", if agent.is_empty() { "agent" } else { &agent })
}

/// The name of a session; none, blank and the aliases mean the default one.
pub(super) fn session(owner: &str, default: &str, name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = given(name) else { return Ok(default.to_owned()) };
    let short = name.strip_prefix(owner).map_or(name, |rest| rest.trim_start_matches('-'));
    let short = canonical(short);
    match short.as_str() {
        "" if name.starts_with(owner) => Ok(owner.to_owned()),
        "" => Err(odd(name, "session")),
        short => Ok(format!("{owner}-{short}")),
    }
}

/// The name of a pane within its session; none, blank and the aliases mean the shared one.
pub(super) fn pane(name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = given(name) else { return Ok(SHARED.to_owned()) };
    let canonical = canonical(name);
    if canonical.is_empty() { Err(odd(name, "pane")) } else { Ok(canonical) }
}

fn given(name: Option<&str>) -> Option<&str> {
    let name = name?.trim();
    (!name.is_empty() && !ALIASES.contains(&name)).then_some(name)
}

/// Lowercase letters, digits, `_` and single `-`: nothing that tmux takes for a pattern or a format.
fn canonical(name: &str) -> String {
    let mut canonical = String::new();
    for c in name.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        if c != '-' || !(canonical.is_empty() || canonical.ends_with('-')) {
            canonical.push(c);
        }
    }
    canonical.chars().take(MOST_CHARS).collect::<String>().trim_end_matches('-').to_owned()
}

fn odd(name: &str, what: &str) -> Failure {
    Failure::invalid(format!("`{name}` names no {what}")).hint("use letters, digits, `-` and `_`")
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
    fn sessions_are_the_owners() {
        let name = |name| session("toolcrib-a", "toolcrib-a", name).expect("a name");
        assert_eq!([name(None), name(Some("  ")), name(Some("default")), name(Some("shared"))], ["toolcrib-a"; 4]);
        assert_eq!([name(Some("Build")), name(Some("toolcrib-a-build"))], ["toolcrib-a-build"; 2]);
        assert_eq!(name(Some("toolcrib-a")), "toolcrib-a");
        assert!(session("toolcrib-a", "toolcrib-a", Some("#{;}")).is_err());
    }

    #[test]
    fn panes_have_short_names() {
        assert_eq!(pane(None).expect("a name"), "shared");
        assert_eq!(pane(Some(" Dev Server ")).expect("a name"), "dev-server");
        assert_eq!(pane(Some("{last}")).expect("a name"), "last");
        assert!(pane(Some("=%+")).is_err());
    }
}
