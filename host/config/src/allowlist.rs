//! Directories that settings name: how they are written, and what two lists of them have in common.
//!
//! All of it goes by spelling. Links are resolved where files are opened.

use super::narrow::common;
use serde::de::{Error, SeqAccess, Unexpected, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Directories that are allowed with all below them; absolute and free of `.` and `..`, links not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowlist {
    /// No restriction: the empty list of `toolcrib.toml`.
    Any,
    /// These and no others; with none of them it reads and prints as `"none"`.
    Only(Vec<PathBuf>),
}

impl Allowlist {
    /// The list that allows no path.
    pub const NOTHING: Self = Self::Only(Vec::new());

    /// Returns whether `path`, absolute and without `..`, is one of the directories or below one.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        match self {
            Self::Any => true,
            Self::Only(directories) => directories.iter().any(|directory| path.starts_with(directory)),
        }
    }

    /// Returns what both allow: each path of either that lies within a path of the other.
    pub(super) fn intersect(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, list) | (list, Self::Any) => list.clone(),
            (Self::Only(ours), Self::Only(theirs)) => {
                Self::Only(common(ours, theirs, |path, directory| path.starts_with(directory)))
            }
        }
    }
}

/// Returns the directory that `text` means: `~/` is `home`, and what is relative starts at `start`, if given.
///
/// # Errors
/// A fragment that says what to write instead.
pub(super) fn locate(text: &str, home: &Path, start: Option<&Path>) -> Result<PathBuf, String> {
    let shown = text.escape_debug();
    let path = match text.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        Some(_) => return Err(format!("`{shown}` names another user's home: write the whole path from `/`")),
        None if text.is_empty() => return Err("an empty path is not a directory".to_owned()),
        None => start.unwrap_or(Path::new("")).join(text),
    };
    if path.is_absolute() {
        Ok(normalised(&path))
    } else {
        Err(format!("`{shown}` is relative: write `~/{shown}` or the whole path from `/`"))
    }
}

fn normalised(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut done, component| {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(done.pop()),
            part => done.push(part),
        }
        done
    })
}

impl Serialize for Allowlist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => Vec::<PathBuf>::new().serialize(serializer),
            Self::Only(directories) if directories.is_empty() => serializer.serialize_str("none"),
            Self::Only(directories) => directories.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Allowlist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AllowlistVisitor)
    }
}

struct AllowlistVisitor;

impl<'de> Visitor<'de> for AllowlistVisitor {
    type Value = Allowlist;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list of directories or \"none\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Allowlist, E> {
        if text == "none" { Ok(Allowlist::NOTHING) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Allowlist, A::Error> {
        let directories = Vec::deserialize(SeqAccessDeserializer::new(entries))?;
        Ok(if directories.is_empty() { Allowlist::Any } else { Allowlist::Only(directories) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(text: &str, start: Option<&str>) -> Result<PathBuf, String> {
        locate(text, Path::new("/home/u"), start.map(Path::new))
    }

    #[test]
    fn home_and_dots_are_resolved_by_spelling() {
        for (text, path) in [
            ("~", "/home/u"),
            ("~/", "/home/u"),
            ("~/a//b/", "/home/u/a/b"),
            ("~//etc", "/home/u/etc"),
            ("~/../v", "/home/v"),
            ("/a/./b/../c", "/a/c"),
            ("/../../etc", "/etc"),
        ] {
            assert_eq!(located(text, None), Ok(path.into()), "{text}");
        }
    }

    #[test]
    fn relative_paths_start_at_the_project_only() {
        assert_eq!(located("a/../b", Some("/p")), Ok("/p/b".into()));
        assert_eq!(located(".", Some("/p")), Ok("/p".into()));
        assert_eq!(located("work", None).unwrap_err(), "`work` is relative: write `~/work` or the whole path from `/`");
        assert!(located("~bob/a", Some("/p")).is_err());
        assert!(located("", Some("/p")).is_err());
    }

    #[test]
    fn a_directory_contains_itself_and_what_is_below() {
        let list = Allowlist::Only(vec!["/a/b".into()]);
        assert!(list.contains(Path::new("/a/b")) && list.contains(Path::new("/a/b/c")));
        assert!(!list.contains(Path::new("/a")) && !list.contains(Path::new("/a/bc")));
        assert!(Allowlist::Any.contains(Path::new("/")) && !Allowlist::NOTHING.contains(Path::new("/")));
    }

    #[test]
    fn lists_read_as_they_print() {
        for list in [Allowlist::Any, Allowlist::NOTHING, Allowlist::Only(vec!["/a".into(), "/b".into()])] {
            assert_eq!(toml::Value::try_from(&list).unwrap().try_into::<Allowlist>().unwrap(), list);
        }
        assert!(toml::Value::from("all").try_into::<Allowlist>().is_err());
    }
}
