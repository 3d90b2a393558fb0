//! Which programs a plugin may start without a shell between, and which variables it may set for them.
//!
//! All else is decided as for a command: the denylist, a person's approval, cells (`shell.rs`).

use super::shell::ShellGrant;
use crate::explain::words::{distinct, listed};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use base::text::sanitize;
pub use config::EVERY;
use config::{Needed, Remedies};
use contract::manifest::Manifest;

/// What one plugin may start.
#[derive(Clone)]
pub struct ExecGrant {
    pub(super) plugin: String,
    pub(super) commands: ShellGrant,
    /// Within every one of these lists.
    pub(super) programs: Vec<Vec<String>>,
    pub(super) environment: Vec<Vec<String>>,
    pub(super) remedies: Remedies,
}

impl Grant for ExecGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let rights = &bound.rights;
        if rights.programs.iter().any(Vec::is_empty) {
            let line = "exec.programs = [\"git\"]";
            return Err(policy.not_granted(plugin, bound, Capability::Exec, line, "--exec PROGRAM"));
        }
        Ok(Self {
            plugin: plugin.name().into(),
            commands: policy.commands(plugin, bound),
            programs: rights.programs.clone(),
            environment: rights.variables.clone(),
            remedies: bound.config.remedies(),
        })
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let programs = distinct(self.programs().iter().map(|list| listed(list, "none")).collect());
        let detail = format!("programs: {}", programs.join(", of these only "));
        let own = Clause { subject: "exec", verdict: "allowed", detail, decided_by: explained.own("exec.programs") };
        [own].into_iter().chain(explained.commands("exec", self.commands())).collect()
    }
}

impl ExecGrant {
    /// What decides on it as on a command.
    pub fn commands(&self) -> &ShellGrant {
        &self.commands
    }

    /// The programs that it may start: in every one of these lists, by name or path, or `*`.
    #[must_use]
    pub fn programs(&self) -> &[Vec<String>] {
        &self.programs
    }

    /// Decides on a program, by the name or path by which it is asked for.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn admit(&self, program: &str) -> Result<(), Failure> {
        if self.programs.iter().all(|list| has(list, program)) {
            return Ok(());
        }
        let (name, shown) = (&self.plugin, sanitize::line(program));
        let line = format!("add {shown:?} to `exec.programs` under [plugin.{name}]");
        let key = format!("plugin.{name}.exec.programs");
        Err(Failure::denied(format!("`{name}` may not start `{shown}`")).hint(self.remedies.hint(
            &key,
            &Needed::Entry(program),
            line,
        )))
    }

    /// Decides on a variable that a call sets: one may lead a program that is allowed to another one.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn admit_variable(&self, variable: &str) -> Result<(), Failure> {
        if self.environment.iter().all(|list| has(list, variable)) {
            return Ok(());
        }
        let (name, shown) = (&self.plugin, sanitize::line(variable));
        let line = format!("add {shown:?} to `exec.environment` under [plugin.{name}]");
        let key = format!("plugin.{name}.exec.environment");
        Err(Failure::denied(format!("`{name}` may not set `{shown}` for a program")).hint(self.remedies.hint(
            &key,
            &Needed::Entry(variable),
            line,
        )))
    }
}

/// Whether a list has a name, or stands for every one.
pub(super) fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| entry == EVERY || entry == name)
}
