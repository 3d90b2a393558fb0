//! Which declared programs a plugin may run: those that its section names, as far as they may be there at all. The tool of a program may run
//! that one.
//!
//! All else is decided as for a command: the denylist, a person's approval, cells (`shell.rs`).

use super::exec::has;
use super::shell::ShellGrant;
use crate::backend::sealed::Sealed;
use crate::config::{Needed, ProgramSection, Remedies};
use crate::envelope::Failure;
use crate::text::sanitize;
use serde_json::json;
use std::collections::BTreeMap;

/// The declared programs that one plugin may run.
#[derive(Clone)]
pub struct ProgramsGrant {
    pub(super) plugin: String,
    pub(super) commands: ShellGrant,
    /// Within every one of these lists.
    pub(super) names: Vec<Vec<String>>,
    /// All that are declared, by name; why not, for those that may not be there.
    pub(super) declared: BTreeMap<String, Result<ProgramSection, Failure>>,
    pub(super) remedies: Remedies,
}

impl ProgramsGrant {
    /// What decides on one as on a command.
    pub(crate) fn commands(&self) -> &ShellGrant {
        &self.commands
    }

    /// The declared programs that it may run, in the order of their names.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &ProgramSection)> {
        let named = self.declared.iter().filter(|(name, _)| self.names.iter().all(|list| has(list, name)));
        named.filter_map(|(name, section)| Some((name.as_str(), section.as_ref().ok()?)))
    }

    /// Decides on a program by its name.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add; `invalid_arguments` where nobody has declared it.
    pub fn admit(&self, program: &str) -> Result<&ProgramSection, Failure> {
        let (name, shown) = (&self.plugin, sanitize::line(program));
        if !self.names.iter().all(|list| has(list, program)) {
            let key = format!("plugin.{name}.programs");
            let line = format!("add {shown:?} to `programs` under [plugin.{name}]");
            let hint = self.remedies.hint(&key, &Needed::Entry(program), line);
            return Err(Failure::denied(format!("`{name}` may not run the program `{shown}`")).hint(hint));
        }
        match self.declared.get(program) {
            Some(section) => section.as_ref().map_err(Failure::clone),
            None => {
                let known: Vec<_> = self.declared().map(|(name, _)| format!("`{name}`")).collect();
                let hint = match known.is_empty() {
                    true => "there is none that it may run".to_owned(),
                    false => format!("there is {}", known.join(", ")),
                };
                Err(Failure::invalid(format!("there is no declared program `{shown}`")).hint(hint))
            }
        }
    }
}

/// Decides on what is in the file of a declared program now.
///
/// # Errors
///
/// `denied`, with both digests.
pub(crate) fn admit_file(name: &str, section: &ProgramSection, sealed: &Sealed) -> Result<(), Failure> {
    let (declared, found) = (&section.sha256, sealed.sha256());
    if declared.eq_ignore_ascii_case(found) {
        return Ok(());
    }
    let path = section.path.display();
    Err(Failure::denied(format!(
        "`{path}` is not the file that was declared as `{name}`: its sha256 is {found}, not {declared}"
    ))
    .hint(format!("if it was replaced for a good reason, write `sha256 = \"{found}\"` under [program.{name}]"))
    .data(json!({ "declared": declared, "found": found })))
}
