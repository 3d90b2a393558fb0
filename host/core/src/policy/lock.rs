//! Which plugins a lock lets be there at all: the decision that comes before every other.
//!
//! Each lock decides by itself, on what it was shown (a manifest, or the digest of definitions), and a plugin needs the word of every one.

use crate::config::{Lock, LockMode, Pin, Place};
use crate::tools::manifest::Manifest;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a lock refuses a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It came with the program, and is not among those that may be used.
    BuiltinOff,
    /// Nobody vetted it.
    NotVetted,
    /// Other bytes were vetted under its name.
    OtherBytes,
    /// Its bytes were vetted under another name.
    Renamed,
    /// It says something else of its tools than what was vetted.
    DefinitionsChanged,
}

/// The word of a lock against a plugin.
pub(super) struct LockRefusal<'l> {
    pub(super) code: Code,
    /// What is wrong, with the plugin as its subject.
    pub(super) reason: String,
    /// The setting that decides.
    pub(super) key: String,
    /// Where it is.
    pub(super) place: &'l Place,
    /// What to do about it, in the operator's words.
    pub(super) message: Option<&'l str>,
}

impl Code {
    /// As programs read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltinOff => "builtin_off",
            Self::NotVetted => "not_vetted",
            Self::OtherBytes => "other_bytes",
            Self::Renamed => "renamed",
            Self::DefinitionsChanged => "definitions_changed",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Lock {
    /// The line where it begins, and what it demands, in words.
    #[must_use]
    pub fn described(&self) -> (String, String) {
        let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let plugins = match self.plugins {
            LockMode::Off => "plugins: any".to_owned(),
            LockMode::Pins => format!("plugins: {} by their bytes", self.pins.len()),
        };
        let builtin = self.builtin.as_ref().map_or_else(|| "all".to_owned(), |list| names(list));
        let directories = self.directories.iter().flatten().map(|directory| directory.display().to_string());
        let directories: Vec<String> = directories.collect();
        let directories = self.directories.as_ref().map(|_| format!("; directories: {}", names(&directories)));
        (self.place.to_string(), format!("{plugins}; built in: {builtin}{}", directories.unwrap_or_default()))
    }

    /// The file that it is in.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.place.path
    }

    /// The names of the plugins that it vets.
    pub fn vetted(&self) -> impl Iterator<Item = &str> {
        self.pins.keys().map(String::as_str)
    }

    /// Decides on a plugin before it takes a name: in the order of the table that `host/docs/policy.md` has.
    pub(super) fn decide(&self, plugin: &Manifest) -> Result<(), LockRefusal<'_>> {
        if plugin.id.is_builtin() {
            let is_off = self.builtin.as_ref().is_some_and(|list| !list.iter().any(|name| name == plugin.name()));
            let reason = || "is not among the built-in plugins that the policy lists".to_owned();
            return if is_off { Err(self.refusal(Code::BuiltinOff, reason(), "lock.builtin")) } else { Ok(()) };
        }
        match self.plugins {
            LockMode::Off => Ok(()),
            LockMode::Pins => self.pinned(plugin),
        }
    }

    fn pinned(&self, plugin: &Manifest) -> Result<(), LockRefusal<'_>> {
        let is_it = |pin: &&Pin| pin.sha256.eq_ignore_ascii_case(plugin.sha256());
        match self.pins.get(plugin.name()) {
            Some(pin) if is_it(&pin) => Ok(()),
            Some(pin) => {
                let reason = format!("has other bytes than those that were vetted, {}", shortened(&pin.sha256));
                Err(self.refusal_at(Code::OtherBytes, reason, plugin.name(), pin))
            }
            None => Err(match self.pins.iter().find(|(_, pin)| is_it(pin)) {
                Some((name, pin)) => {
                    self.refusal_at(Code::Renamed, format!("was vetted under another name, `{name}`"), name, pin)
                }
                None => self.refusal(Code::NotVetted, "was not vetted".into(), "lock.plugins"),
            }),
        }
    }

    /// Decides on what an admitted plugin says of its tools.
    pub(super) fn decide_definitions(&self, plugin: &Manifest, definitions: &str) -> Result<(), LockRefusal<'_>> {
        let pin = self.pins.get(plugin.name()).filter(|_| !plugin.id.is_builtin());
        let Some((pin, vetted)) = pin.and_then(|pin| Some((pin, pin.definitions.as_ref()?))) else { return Ok(()) };
        if vetted.eq_ignore_ascii_case(definitions) {
            return Ok(());
        }
        let reason = format!("says something else of its tools than what was vetted, {}", shortened(vetted));
        Err(self.refusal_at(Code::DefinitionsChanged, reason, plugin.name(), pin))
    }

    fn refusal(&self, code: Code, reason: String, key: &str) -> LockRefusal<'_> {
        LockRefusal { code, reason, key: key.into(), place: &self.place, message: self.message.as_deref() }
    }

    fn refusal_at<'l>(&'l self, code: Code, reason: String, name: &str, pin: &'l Pin) -> LockRefusal<'l> {
        let key = format!("lock.plugin.{name}.sha256");
        LockRefusal { code, reason, key, place: &pin.place, message: self.message.as_deref() }
    }
}

/// The directories that plugins are read from: the user's, or those that every lock with a list has, and the lines that decide.
pub(super) fn directories(locks: &[Lock], users: Vec<PathBuf>) -> (Vec<PathBuf>, Option<&Place>) {
    let mut lists = locks.iter().filter_map(|lock| Some((lock.directories.as_ref()?, &lock.place)));
    let Some((first, place)) = lists.next() else { return (users, None) };
    let rest: Vec<_> = lists.collect();
    let is_everywhere = |directory: &&PathBuf| rest.iter().all(|(list, _)| list.contains(directory));
    (first.iter().filter(is_everywhere).cloned().collect(), Some(place))
}

/// The beginning of a digest, as far as people compare.
fn shortened(digest: &str) -> &str {
    &digest[..12]
}
