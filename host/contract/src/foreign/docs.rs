//! What the authors of a component wrote about its types and functions: the custom section `package-docs`.
//!
//! Tools take the section from WIT files, which have names for the package and the world that a component does not
//! keep. So everything is looked up by the names that are left, and texts about unknown names are ignored.

use super::names::parts;
use base::text::sanitize;
use serde_json::Value;

/// The name of the section.
pub(super) const SECTION: &str = "package-docs";

/// Bytes of a section that is read. Parsed JSON takes many times its length in memory.
const LARGEST: usize = 1 << 20;
/// Worlds of a section that are searched for each name. Usually there is one.
const MOST_WORLDS: usize = 16;
/// Characters of one text.
const LONGEST: usize = 1000;

/// The texts of a component. A section that is not valid has none.
#[derive(Default)]
pub(super) struct Docs(Value);

impl Docs {
    /// Reads the content of the section.
    pub(super) fn read(section: &[u8]) -> Self {
        // The first byte is the version of the format. They differ in what a function has: a text, or an object with
        // it.
        match section.split_first() {
            Some((0 | 1, json)) if json.len() <= LARGEST => Self(serde_json::from_slice(json).unwrap_or_default()),
            _ => Self::default(),
        }
    }

    /// The text about a function of an interface, or of the world.
    pub(super) fn function(&self, interface: Option<&str>, name: &str) -> Option<String> {
        text(match interface {
            Some(interface) => self.interface(interface)?["funcs"].get(name)?,
            None => self.in_a_world(&["func_exports", "funcs"], name)?,
        })
    }

    /// What is written about a type of an interface, or of the world, and about its parts.
    pub(super) fn ty(&self, interface: Option<&str>, name: &str) -> Option<&Value> {
        match interface {
            Some(interface) => self.interface(interface)?["types"].get(name),
            None => self.in_a_world(&["types"], name),
        }
    }

    fn interface(&self, full: &str) -> Option<&Value> {
        match parts(full) {
            (Some(_), name) => self.0["interfaces"].get(name),
            // It is declared within the world, and named only there.
            (None, name) => self.in_a_world(&["interface_exports", "interfaces"], name),
        }
    }

    /// What the first world that has the name says. A component has one world, and does not know which one of the
    /// section it is.
    fn in_a_world(&self, kinds: &[&str], name: &str) -> Option<&Value> {
        let worlds = self.0["worlds"].as_object()?;
        worlds.values().take(MOST_WORLDS).find_map(|world| kinds.iter().find_map(|kind| world[*kind].get(name)))
    }
}

/// The text about something, as it may be shown, if anything is left of it.
pub(super) fn text(said: &Value) -> Option<String> {
    let text = said.as_str().or_else(|| said["docs"].as_str())?;
    let start: String = text.chars().take(LONGEST).collect();
    let is_cut = start.len() < text.len();
    let clean = sanitize::text(start.trim()).into_owned();
    (!clean.is_empty()).then(|| if is_cut { clean + "…" } else { clean })
}

/// The text about a field, a case or a flag of a type.
pub(super) fn part(said: &Value, name: &str) -> Option<String> {
    text(said["items"].get(name)?)
}
