//! The user's settings as a text to edit: one section is written or removed, all else in the file stays as it is, comments too.

use super::policy::rules::lines;
use super::setup::{cannot, usage};
use ::config::{RuleSection, Verdict};
use base::paths::canonical;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};
use toolcrib::config::Sources;
use toolcrib::envelope::Failure;

/// The tables whose entries are sections of a name.
pub(super) const PLUGIN: &str = "plugin";
pub(super) const SECRET: &str = "secret";
pub(super) const UPSTREAM: &str = "upstream";

/// The user's settings as a text to edit.
pub(super) struct SettingsFile {
    /// As the user named it.
    named: PathBuf,
    /// Settings that are a link stay one.
    path: PathBuf,
    document: DocumentMut,
}

impl SettingsFile {
    /// The user's own, whether it is there or not.
    pub(super) fn of_user(sources: &Sources) -> Result<Self, Failure> {
        Self::open(sources.user.as_deref().expect("the command line always names the user's settings"))
    }

    fn open(named: &Path) -> Result<Self, Failure> {
        let path = canonical(named);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(cannot(&path, &error)),
        };
        let document = text.parse().map_err(|error: toml_edit::TomlError| unusable(&path, &error))?;
        Ok(Self { named: named.to_owned(), path, document })
    }

    /// The file as the user named it.
    pub(super) fn named(&self) -> &Path {
        &self.named
    }

    /// What the file says in a section; the default where it has none.
    pub(super) fn section<S: DeserializeOwned + Default>(&self, kind: &str, name: &str) -> Result<S, Failure> {
        self.find(kind, name).map(Option::unwrap_or_default)
    }

    /// What the file says in a section, if it has that.
    pub(super) fn find<S: DeserializeOwned>(&self, kind: &str, name: &str) -> Result<Option<S>, Failure> {
        let all: toml::Table =
            toml::from_str(&self.document.to_string()).map_err(|error| unusable(&self.path, &error))?;
        let section = all.get(kind).and_then(|sections| sections.get(name)).cloned();
        let read = |section: toml::Value| section.try_into();
        section.map(read).transpose().map_err(|error: toml::de::Error| unusable(&self.path, &error.message()))
    }

    /// Writes a section; returns its text. Comments around it and its keys stay.
    pub(super) fn write(&mut self, kind: &str, name: &str, section: &impl Serialize) -> Result<String, Failure> {
        let section = table(section);
        let shown = section.to_string();
        let sections = self.sections(kind)?;
        match sections.get_mut(name).and_then(Item::as_table_like_mut) {
            Some(written) => {
                rewrite(written, section);
                if let Some(written) = sections.get_mut(name).and_then(Item::as_table_mut) {
                    written.sort_values_by(|one, _, other, _| rank(one).cmp(&rank(other)));
                }
            }
            None => _ = sections.insert(name, Item::Table(section)),
        }
        self.save()?;
        Ok(shown)
    }

    /// Removes a section. If a comment is above it, its header stays below the comment.
    pub(super) fn remove(&mut self, kind: &str, name: &str) -> Result<(), Failure> {
        let sections = self.sections(kind)?;
        let is_commented = |table: &Table| {
            table.decor().prefix().and_then(|above| above.as_str()).is_some_and(|above| above.contains('#'))
        };
        match sections.get_mut(name).and_then(Item::as_table_mut) {
            Some(table) if is_commented(table) => rewrite(table, Table::new()),
            _ => _ = sections.remove(name),
        }
        self.save()
    }

    /// Removes a section whose header alone would mean something. If a comment is above it, the comment moves to the end of the file.
    pub(super) fn remove_whole(&mut self, kind: &str, name: &str) -> Result<(), Failure> {
        let removed = self.sections(kind)?.remove(name);
        let table = removed.as_ref().and_then(Item::as_table);
        let above = table.and_then(|table| table.decor().prefix()?.as_str()).filter(|above| above.contains('#'));
        if let Some(above) = above {
            let end = format!("{}{above}", self.document.trailing().as_str().unwrap_or_default());
            self.document.set_trailing(end);
        }
        self.save()
    }

    /// Writes a rule behind those that are there; returns its lines.
    pub(super) fn add_rule(&mut self, verdict: Verdict, section: &RuleSection) -> Result<String, Failure> {
        let mut rule = Table::new();
        for (key, text) in section.parts() {
            rule.insert(key, Item::Value(text.into()));
        }
        let shown = lines(verdict, section);
        let key = verdict.name();
        let rules = self.document.entry(key).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match rules {
            Item::ArrayOfTables(rules) => rules.push(rule),
            Item::Value(Value::Array(rules)) => rules.push(rule.into_inline_table()),
            Item::None | Item::Value(_) | Item::Table(_) => {
                return Err(unusable(&self.path, &format!("`{key}` is not a list of rules")));
            }
        }
        self.save()?;
        Ok(shown)
    }

    /// Removes a rule by its place among those of its verdict.
    pub(super) fn remove_rule(&mut self, verdict: Verdict, index: usize) -> Result<(), Failure> {
        match self.document.get_mut(verdict.name()) {
            Some(Item::ArrayOfTables(rules)) if index < rules.len() => _ = rules.remove(index),
            Some(Item::Value(Value::Array(rules))) if index < rules.len() => _ = rules.remove(index),
            Some(_) | None => return Err(unusable(&self.path, &"the rule is gone from it")),
        }
        self.save()
    }

    fn sections(&mut self, kind: &str) -> Result<&mut dyn TableLike, Failure> {
        let sections = self.document.entry(kind).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        sections.as_table_like_mut().ok_or_else(|| unusable(&self.path, &format!("`{kind}` is not a section")))
    }

    fn save(&self) -> Result<(), Failure> {
        base::dirs::replace(&self.path, self.document.to_string().as_bytes()).map_err(|error| {
            cannot(&self.path, &error).hint("let this user write it, or name another file with `--config`")
        })
    }
}

/// The order of a section's keys: what it is about, then what it gives.
const ORDER: [&str; 23] = [
    "source",
    "sha256",
    "definitions",
    "enabled",
    "shell",
    "files",
    "http",
    "browser",
    "mail",
    "file",
    "command",
    "accepted",
    "read",
    "write",
    "hosts",
    "ports",
    "names",
    "variables",
    "tools",
    "reads",
    "confirm",
    "timeout_ms",
    "env",
];

fn rank(key: &str) -> usize {
    ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len())
}

/// The section as it is written: one line a key, `files.read = …` for what lies deeper.
pub(super) fn table(section: &impl Serialize) -> Table {
    fn edited(table: toml::Table) -> Table {
        let mut lines = Table::new();
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| rank(key));
        for (key, value) in entries {
            match value {
                toml::Value::Table(below) if below.is_empty() => {}
                toml::Value::Table(below) => {
                    let mut below = edited(below);
                    below.set_dotted(true);
                    lines.insert(&key, Item::Table(below));
                }
                value => {
                    let value: Value = value.to_string().parse().expect("a value is written as TOML");
                    lines.insert(&key, Item::Value(value));
                }
            }
        }
        lines
    }
    edited(toml::Table::try_from(section).expect("a section came from TOML"))
}

/// Makes `written` say what `section` says. What it says already stays as it is written, comments stay where they are.
fn rewrite(written: &mut dyn TableLike, section: Table) {
    let gone: Vec<String> =
        written.iter().map(|(key, _)| key.to_owned()).filter(|key| !section.contains_key(key)).collect();
    for key in gone {
        written.remove(&key);
    }
    for (key, item) in section {
        match (written.get_mut(&key), item) {
            (Some(old), Item::Table(new)) if old.is_table_like() => {
                rewrite(old.as_table_like_mut().expect("it is like a table"), new);
            }
            (Some(Item::Value(old)), Item::Value(new)) if is_alike(old, &new) => {}
            (Some(Item::Value(old)), Item::Value(mut new)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (_, item) => _ = written.insert(&key, item),
        }
    }
}

/// Whether two values say the same, however they are written.
fn is_alike(one: &Value, other: &Value) -> bool {
    let read = |value: &Value| toml::from_str::<toml::Table>(&format!("x = {}", value.to_string().trim())).ok();
    read(one).is_some_and(|one| Some(one) == read(other))
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    usage(format!("`{}`: {error}", file.display()))
}
