//! Which declared programs a plugin may run: those that its section names, as far as they may be there at all. The tool of a program may run
//! that one.
//!
//! All else is decided as for a command: the denylist, a person's approval, cells (`shell.rs`).

use super::exec::has;
use super::shell::ShellGrant;
use crate::explain::words::listed;
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::host_reads::HostReads;
use crate::{Bound, Policy};
use backend::sealed::Sealed;
use base::capability::Capability;
use base::disk::Unreadable;
use base::envelope::Failure;
use base::text::sanitize;
use config::{Needed, ProgramSection, Remedies};
use contract::manifest::Manifest;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;

/// Bytes of a usage page.
pub const USAGE_BYTES: usize = 16 << 10;

/// What models read of how a program is used.
pub struct UsagePage {
    pub text: String,
    /// The file has more.
    pub is_cut: bool,
}

/// The usage page of a program, if it has one.
///
/// # Errors
///
/// Why its file cannot be read.
pub fn usage_page(section: &ProgramSection, reads: &HostReads) -> Result<Option<UsagePage>, Unreadable> {
    let Some(path) = &section.usage else { return Ok(None) };
    let mut bytes = Vec::new();
    reads.shown(path)?.file.take(USAGE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > USAGE_BYTES;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(USAGE_BYTES)]);
    // A character may have been cut in two.
    let text = if is_cut { text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &text };
    let text = text.trim().to_owned();
    Ok((!text.is_empty()).then_some(UsagePage { text, is_cut }))
}

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

impl Grant for ProgramsGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let names = match plugin.id.is_program() {
            true => vec![vec![plugin.name().to_owned()]],
            false => bound.rights.declared.clone(),
        };
        if names.iter().any(Vec::is_empty) {
            let line = "programs = [\"jq\"]";
            return Err(policy.not_granted(plugin, bound, Capability::Programs, line, "--program NAME"));
        }
        let admitted = |(name, section): (&String, &ProgramSection)| {
            let program = Manifest::of_program(name, section, None);
            let admitted =
                program.map_err(Failure::invalid).and_then(|program| Ok(policy.admit(&program).map(drop)?));
            (name.clone(), admitted.map(|()| section.clone()))
        };
        Ok(Self {
            plugin: plugin.name().into(),
            commands: policy.commands(plugin, bound),
            names,
            declared: policy.config.program.iter().map(admitted).collect(),
            remedies: bound.config.remedies(),
        })
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let program = |(name, section): (&str, &ProgramSection)| {
            format!("{name} ({}, sha256 {})", section.path.display(), &section.sha256[..12])
        };
        let decided_by = match explained.plugin.id.is_program() {
            true => explained.decided_or_built_in(&format!("program.{}.path", explained.plugin.name())),
            false => explained.own("programs"),
        };
        let detail =
            format!("declared programs: {}", listed(&self.declared().map(program).collect::<Vec<_>>(), "none"));
        let own = Clause { subject: "programs", verdict: "allowed", detail, decided_by };
        [own].into_iter().chain(explained.commands("programs", self.commands())).collect()
    }
}

impl ProgramsGrant {
    /// What decides on one as on a command.
    pub fn commands(&self) -> &ShellGrant {
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
pub fn admit_file(name: &str, section: &ProgramSection, sealed: &Sealed) -> Result<(), Failure> {
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
