//! Rules at work: which rule of the user's answers a question, or refuses an action before anybody is asked.
//!
//! Rules are read in `config`, commands are compared in `command/rules/`. A rule never answers what only a person may: secrets, keys, files that
//! act or run later, and commands that leave their cell. Those questions ask no rule (`approval/question.rs`).

mod compiled;
mod kept;
mod path;
#[cfg(test)]
mod tests;

pub use compiled::{Covered, Rule, Rules};
pub use kept::KeptRules;
pub use path::Programs;

use base::target::Target;
use command::{Destination, Held};
use std::path::PathBuf;

/// What an action is about, as rules see it.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A command.
    Command(CommandSubject),
    /// A server, and a port of it.
    Host(Target),
    /// A file that is written.
    Write(PathBuf),
    /// A call of a tool, of which rules know no more.
    Call,
}

/// A command, in each way that it can be read.
#[derive(Clone, Debug)]
pub struct CommandSubject {
    pub texts: Vec<String>,
    /// Who reads it.
    pub goes_to: Destination,
    /// It has something on its standard input.
    pub is_fed: bool,
}

impl CommandSubject {
    /// What is checked against the denylist, once more.
    pub(crate) fn of(held: &Held, is_fed: bool) -> Self {
        let texts = held.texts().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let goes_to = match held {
            Held::Script(_, goes_to) => *goes_to,
            Held::Typed { .. } => Destination::Program,
        };
        Self { texts, goes_to, is_fed }
    }
}
