//! What reviewers sign: statements about plugins, lists of plugins, and what takes back. Read only once enough signatures hold.

use config::{Ceiling, Lock, seconds};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use toml::value::Datetime;
use toml::{Table, Value};

/// The most that each may have, in bytes.
pub(super) const STATEMENT_BYTES: u64 = 64 << 10;
pub(super) const LIST_BYTES: u64 = 4 << 20;

/// The kinds, which are the first line of what is signed: a signature for one is none for another.
const STATEMENT: &str = "vet/1";
const LIST: &str = "list/1";
const REVOCATION: &str = "revoke/1";

/// What a plugin was vetted as.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What reviewers wrote.
    pub said: StatementTable,
    /// When it was written, and until when it counts, in seconds since 1970.
    pub issued: u64,
    pub expires: u64,
    /// The most that the plugin gets.
    pub ceiling: Ceiling,
}

/// A statement as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementTable {
    toolcrib: String,
    /// The plugin.
    pub name: String,
    /// Its version, in the words of who wrote it.
    pub version: String,
    /// Grows with every statement about this name.
    pub sequence: u64,
    /// Digest of the component.
    pub sha256: String,
    /// Its length.
    pub size: u64,
    /// All that it imports, by the full names.
    pub imports: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// Digest of what it says of them.
    pub definitions_sha256: String,
    /// What the review found.
    pub criteria: Vec<String>,
    issued: Datetime,
    expires: Datetime,
    /// The statement that this was a review of the changes since.
    pub reviewed_from: Option<u64>,
    /// Where the source is.
    pub source: Option<Table>,
    /// What else there is to say.
    pub notes: Option<String>,
    #[serde(default)]
    ceiling: Table,
}

/// The plugins of a deployment.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) name: String,
    pub(super) sequence: u64,
    pub(super) issued: u64,
    pub(super) valid_until: u64,
    pub(super) plugins: BTreeMap<String, ListedPlugin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTable {
    toolcrib: String,
    name: String,
    sequence: u64,
    issued: Datetime,
    valid_until: Datetime,
    #[serde(default)]
    plugin: Vec<ListedPlugin>,
}

/// A plugin of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedPlugin {
    pub(super) name: String,
    pub(super) sha256: String,
    /// Digest of the statement's bytes.
    pub(super) statement: String,
    #[serde(default)]
    pub(super) mode: Presence,
}

/// Whether a plugin has to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Presence {
    /// It may be.
    #[default]
    Allowed,
    /// Without it nothing is served.
    Required,
}

/// What takes back: a component, or all statements about a name up to one.
#[derive(Clone, Debug)]
pub(super) struct Revocation {
    pub(super) sha256: Option<String>,
    pub(super) name: Option<(String, u64)>,
    pub(super) issued: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevocationTable {
    toolcrib: String,
    sha256: Option<String>,
    name: Option<String>,
    up_to: Option<u64>,
    issued: Datetime,
    #[serde(rename = "reason")]
    _reason: Option<String>,
}

/// What can be signed.
pub enum Document {
    /// A statement about a plugin.
    Statement(Box<Statement>),
    /// A list, of this number.
    List(u64),
    /// What takes back.
    Revocation,
    /// A policy, which is to take the place of another.
    Policy,
}

impl Document {
    /// Reads bytes that are to be signed, or were.
    ///
    /// # Errors
    ///
    /// What is wrong with them as what they say they are.
    pub fn read(bytes: &[u8], path: &Path) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct AnyKind {
            toolcrib: Option<String>,
            lock: Option<toml::Table>,
        }
        let kind: AnyKind = read(bytes, path)?;
        if let (None, Some(_)) = (&kind.toolcrib, kind.lock) {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
            return Lock::of_text(path, text).map(|_| Self::Policy).map_err(|error| error.to_string());
        }
        match kind.toolcrib.unwrap_or_default().as_str() {
            STATEMENT => Statement::read(bytes, path).map(|statement| Self::Statement(Box::new(statement))),
            LIST => List::read(bytes, path).map(|list| Self::List(list.sequence)),
            REVOCATION => Revocation::read(bytes, path).map(|_| Self::Revocation),
            other => {
                let known = [STATEMENT, LIST, REVOCATION].join(", ");
                Err(format!("`toolcrib = \"{}\"` is none of {known}", other.escape_debug()))
            }
        }
    }

    /// Its kind, as its first line says it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Statement(_) => STATEMENT,
            Self::List(_) => LIST,
            Self::Revocation => REVOCATION,
            Self::Policy => "policy",
        }
    }

    /// The number of a list.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        if let Self::List(sequence) = self { Some(*sequence) } else { None }
    }

    /// The digest by which a list names a statement.
    #[must_use]
    pub fn sha256(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }
}

impl Statement {
    /// The rights that this one gives and another does not, in words.
    #[must_use]
    pub fn wider_than(&self, other: &Self) -> Vec<String> {
        self.ceiling.beyond(&other.ceiling)
    }

    /// Reads the bytes of a statement.
    ///
    /// # Errors
    ///
    /// What is wrong with them, with the line.
    pub fn read(bytes: &[u8], path: &Path) -> Result<Self, String> {
        let said: StatementTable = read(bytes, path)?;
        is_kind(&said.toolcrib, STATEMENT)?;
        if let Some((key, _)) = said.ceiling.iter().find(|(_, value)| matches!(value, Value::Datetime(_))) {
            return Err(format!("`ceiling.{key}` is no right"));
        }
        let (issued, expires) = (seconds(&said.issued)?, seconds(&said.expires)?);
        let ceiling = Ceiling::alone(&said.ceiling, path)?;
        Ok(Self { issued, expires, ceiling, said })
    }
}

impl List {
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Self, String> {
        let ListTable { toolcrib, name, sequence, issued, valid_until, plugin } = read(bytes, path)?;
        is_kind(&toolcrib, LIST)?;
        let mut plugins = BTreeMap::new();
        for mut entry in plugin {
            entry.sha256.make_ascii_lowercase();
            entry.statement.make_ascii_lowercase();
            let name = entry.name.clone();
            if plugins.insert(name.clone(), entry).is_some() {
                return Err(format!("it names `{}` twice", name.escape_debug()));
            }
        }
        Ok(Self { name, sequence, issued: seconds(&issued)?, valid_until: seconds(&valid_until)?, plugins })
    }
}

impl Revocation {
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Self, String> {
        let RevocationTable { toolcrib, sha256, name, up_to, issued, .. } = read(bytes, path)?;
        is_kind(&toolcrib, REVOCATION)?;
        let name = match (name, up_to) {
            (Some(name), Some(up_to)) => Some((name, up_to)),
            (None, None) => None,
            _ => return Err("`name` and `up_to` belong together".into()),
        };
        if sha256.is_none() && name.is_none() {
            return Err("it takes nothing back: write `sha256`, or `name` with `up_to`".into());
        }
        Ok(Self { sha256: sha256.map(|digest| digest.to_lowercase()), name, issued: seconds(&issued)? })
    }
}

fn is_kind(found: &str, kind: &str) -> Result<(), String> {
    if found == kind {
        Ok(())
    } else {
        Err(format!("its first line is `toolcrib = \"{}\"`, not \"{kind}\"", found.escape_debug()))
    }
}

fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8], path: &Path) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}:{line}: {}", error.message())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: [&str; 3] = [
        "toolcrib = \"vet/1\"\nname = \"a\"\nversion = \"1\"\nsequence = 1\nsha256 = \"00\"\nsize = 1\nimports = []\ntools = [\"a\"]\n\
         definitions_sha256 = \"00\"\ncriteria = []\nissued = 2026-01-01T00:00:00Z\nexpires = 2027-01-01\n[ceiling]\nshell = true\nfiles.read = [\"/a\"]\n",
        "toolcrib = \"list/1\"\nname = \"a\"\nsequence = 1\nissued = 2026-01-01\nvalid_until = 2027-01-01\n[[plugin]]\nname = \"a\"\n\
         sha256 = \"00\"\nstatement = \"00\"\nmode = \"required\"\n",
        "toolcrib = \"revoke/1\"\nname = \"a\"\nup_to = 3\nissued = 2026-01-01\n",
    ];

    #[test]
    fn each_kind_is_read_as_itself() {
        let kinds = GOOD.map(|text| Document::read(text.as_bytes(), Path::new("d.toml")).expect("readable").name());
        assert_eq!(kinds, ["vet/1", "list/1", "revoke/1"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let change = |number: usize, from: &str, to: &str| {
            let text = GOOD[number].replacen(from, to, 1);
            Document::read(text.as_bytes(), Path::new("d.toml")).err().unwrap_or_else(|| panic!("accepted: {text}"))
        };
        assert!(change(0, "size = 1", "size = 1\nother = 2").starts_with("d.toml:7: unknown field `other`"));
        assert!(change(0, "vet/1", "vet/2").contains("none of vet/1"));
        assert!(change(0, "shell = true", "network = true").contains("`network` is no right"));
        assert!(change(0, "\"/a\"", "\"~/a\"").contains("without `~`"));
        assert!(change(0, "00:00:00Z", "00:00:00+02:00").contains("write it with `Z`"));
        assert!(change(0, "2026-01-01T00:00:00Z", "00:00:00").contains("is no moment"));
        assert!(
            change(1, "[[plugin]]", "[[plugin]]\nname = \"a\"\nsha256 = \"1\"\nstatement = \"2\"\n[[plugin]]")
                .contains("twice")
        );
        assert!(change(2, "up_to = 3\n", "").contains("belong together"));
        assert!(change(2, "name = \"a\"\nup_to = 3\n", "").contains("takes nothing back"));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if std::env::var_os("TOOLCRIB_LONG").is_some() { 200_000 } else { 2000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Whatever is read, it is read to an end.
        #[test]
        fn any_bytes_are_read_to_an_end(which in 0usize..3, edits in prop::collection::vec((any::<u16>(), any::<u8>(), any::<bool>()), 0..8)) {
            let mut bytes = GOOD[which].as_bytes().to_vec();
            for (at, byte, inserts) in edits {
                let at = usize::from(at) % bytes.len();
                if inserts { bytes.insert(at, byte) } else { bytes[at] = byte }
            }
            let _ = Document::read(&bytes, Path::new("d.toml"));
        }
    }
}
