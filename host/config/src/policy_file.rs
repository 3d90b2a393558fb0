//! A policy file, which is not a settings file: it narrows settings, key by key, and may hold a lock, which is a whole of its own.
//!
//! What it narrows is laid over the settings (`layers.rs`). Locks are never mixed: each stands beside those of other files, and
//! `policy/lock.rs` asks every one. What a lock holds is read by serde, so it may have tables and lists of tables.

use super::layers::PolicySource;
use super::narrow::is_plugin_name;
use super::plugins::PinTable;
use super::read::{Author, ConfigError, Document, Leaf, Origin, Place, Reader, invalid_at, read_text};
use super::rules::{self, RuleLine};
use super::sha256_hex;
use super::vetting::{Ceiling, ClockTable, GrantBy, KeyTable, Revoked, RevokedTable, Signed, SignedKeys, Threshold};
use crate::trail::{Keeping, SyncAt, TrailSettings};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use toml::de::ValueDeserializer;
use toml::{Spanned, Table, Value};

/// The section of a policy file that settings do not have.
const LOCK: &str = "lock";

/// What one policy file says.
#[derive(Default)]
pub(super) struct PolicyFile {
    /// What it narrows.
    pub(super) narrows: Vec<Leaf>,
    /// Which plugins may be there at all.
    pub(super) lock: Option<Lock>,
    /// What it denies.
    pub(super) rules: Vec<RuleLine>,
    /// The digest of its bytes; none where there is no such file.
    pub(super) sha256: Option<String>,
}

/// `[lock]`: which plugins may be there at all.
#[derive(Clone, Debug)]
pub struct Lock {
    /// The line of `plugins`.
    pub place: Place,
    /// Whether it is in the machine's policy, which root alone can have written.
    pub of_root: bool,
    /// Whether plugins that did not come with the program have to be named.
    pub plugins: LockMode,
    /// The plugins that came with the program and may be used; all of them where there is no list.
    pub builtin: Option<Vec<String>>,
    /// The directories that plugins are read from, in place of the user's.
    pub directories: Option<Vec<PathBuf>>,
    /// What to do about a refusal, in the operator's words.
    pub message: Option<String>,
    /// The plugins that may be there, by name.
    pub pins: BTreeMap<String, Pin>,
    /// The declared programs that may be there, by name.
    pub programs: BTreeMap<String, Pin>,
    /// The servers of others that may be there, by name.
    pub upstreams: BTreeMap<String, Pin>,
    /// The list of what was vetted, and whose signatures count.
    pub signed: Option<Signed>,
    /// What was taken back.
    pub revoked: Revoked,
    /// Where the rights of a vetted plugin come from.
    pub grant: GrantBy,
    /// The most that any plugin gets that did not come with the program.
    pub ceiling: Option<Ceiling>,
    /// Where the audit trail is and how it is kept, with the line that begins to say so.
    pub audit: Option<(Place, TrailSettings)>,
}

/// What a plugin that did not come with the program has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// Anything: this lock speaks of others only.
    Off,
    /// One of those that the lock names, in the very bytes.
    Pins,
    /// One of those that reviewers have vetted, in the very bytes.
    Signed,
}

/// A plugin that may be there.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The line of its digest.
    pub place: Place,
    /// Digest of its bytes, in lower-case hex.
    pub sha256: String,
    /// Digest of what it says of its tools, in lower-case hex; anything where there is none.
    pub definitions: Option<String>,
    /// The most that it gets.
    pub ceiling: Option<Ceiling>,
}

/// `[lock]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockTable {
    plugins: Spanned<LockMode>,
    builtin: Option<Vec<Spanned<String>>>,
    directories: Option<Vec<Spanned<PathBuf>>>,
    message: Option<String>,
    #[serde(default)]
    plugin: BTreeMap<Spanned<String>, PinTable>,
    #[serde(default)]
    program: BTreeMap<Spanned<String>, BytesTable>,
    #[serde(default)]
    upstream: BTreeMap<Spanned<String>, BytesTable>,
    list: Option<Spanned<PathBuf>>,
    list_name: Option<Spanned<String>>,
    min_sequence: Option<Spanned<u64>>,
    criteria: Option<Spanned<Vec<String>>>,
    threshold: Option<Spanned<Threshold>>,
    #[serde(default)]
    keys: BTreeMap<Spanned<String>, KeyTable>,
    clock: Option<ClockTable>,
    revoked: Option<RevokedTable>,
    #[serde(default)]
    grant: GrantBy,
    ceiling: Option<Spanned<Table>>,
    require_confinement: Option<Spanned<bool>>,
    audit: Option<Spanned<AuditTable>>,
    sequence: Option<Spanned<u64>>,
}

/// `[lock.audit]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditTable {
    file: Option<Spanned<PathBuf>>,
    required: Option<Spanned<bool>>,
    seal: Option<SealBy>,
    anchor: Option<Anchor>,
    sync: Option<SyncAt>,
    rotate_mib: Option<Spanned<u64>>,
    keep: Option<Spanned<usize>>,
}

/// How the trail is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SealBy {
    /// Where there is a key, it is used; none is needed.
    None,
    /// By keys that are forgotten as soon as they were used.
    Ratchet,
}

/// Where the heads of seals also go.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Anchor {
    /// The system's log.
    Syslog,
}

/// `[lock.program.NAME]` and `[lock.upstream.NAME]` as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BytesTable {
    sha256: Spanned<String>,
    definitions_sha256: Option<Spanned<String>>,
}

/// What a lock says besides which plugins may be there: the lines by which a record is required, and confinement.
#[derive(Default)]
struct Demands {
    audit: Option<Place>,
    confinement: Option<Place>,
}

impl PolicyFile {
    /// Reads a policy file. One that is missing and not required is an empty policy.
    pub(super) fn read(source: &PolicySource, reader: &Reader<'_>) -> Result<Self, ConfigError> {
        let author = if source.of_root { Author::Root } else { Author::OursAlone };
        let text = read_text(&source.path, source.required, author)?;
        text.map_or_else(|| Ok(Self::default()), |text| Self::of_text(&source.path, &text, source.of_root, reader))
    }

    fn of_text(path: &Path, text: &str, of_root: bool, reader: &Reader<'_>) -> Result<Self, ConfigError> {
        let mut document = Document::parse(path, text)?;
        let sha256 = Some(hex::encode(Sha256::digest(text)));
        let lock = document.take(LOCK).map(|(offset, value)| {
            let table = LockTable::deserialize(ValueDeserializer::from(value));
            let table = table.map_err(|error| {
                let offset = error.span().map_or(offset, |span| span.start);
                invalid_at(document.place(offset), format!("`{LOCK}`: {}", error.message()))
            })?;
            table.checked(&document, reader, of_root)
        });
        let rules = rules::take(&mut document, true, reader.home)?;
        let (lock, demands) = lock.transpose()?.unzip();
        let demands = demands.unwrap_or_default();
        let mut narrows = reader.leaves(&document)?;
        // The same settings under other names: whoever reads about locks finds all that belongs to one in one place.
        let demand = |key: &str, value: Value, place| reader.leaf(key.into(), value, Origin::File(place));
        let audit = demands.audit.map(|place| demand("audit.required", true.into(), place));
        let confinement = demands.confinement.map(|place| demand("confine.mode", "required".into(), place));
        for demanded in [audit, confinement].into_iter().flatten() {
            narrows.push(demanded?);
        }
        Ok(Self { lock, narrows, rules, sha256 })
    }
}

impl Lock {
    /// The lock of a policy's text, which is whole; none where it has none.
    pub fn of_text(path: &Path, text: &str) -> Result<Option<Self>, ConfigError> {
        let reader = Reader { home: Path::new("/"), start: None, is_policy: true };
        PolicyFile::of_text(path, text, false, &reader).map(|file| file.lock)
    }

    /// The lock of the machine's policy; none where there is no such file.
    pub fn of_root(path: &Path) -> Result<Option<Self>, ConfigError> {
        let text = read_text(path, false, Author::Root)?;
        text.map_or(Ok(None), |text| Self::of_text(path, &text))
    }
}

impl LockTable {
    /// Returns the lock, and what else it demands.
    fn checked(
        self,
        document: &Document<'_>,
        reader: &Reader<'_>,
        of_root: bool,
    ) -> Result<(Lock, Demands), ConfigError> {
        self.check_names(document)?;
        self.check_directories(document)?;
        self.check_mode(document)?;
        let demands = self.demands(document);
        let keys = SignedKeys {
            list: self.list,
            list_name: self.list_name,
            min_sequence: self.min_sequence,
            criteria: self.criteria,
            threshold: self.threshold,
            keys: self.keys,
            clock: self.clock,
            sequence: self.sequence,
        };
        let signed = Signed::checked(keys, &self.plugins, document)?;
        let revoked = self.revoked.map(|table| Revoked::checked(table, signed.as_ref(), document)).transpose()?;
        let ceiling =
            |table: Spanned<Table>| Ceiling::read(table.get_ref(), &document.place(table.span().start), reader);
        let lock = Lock {
            of_root,
            signed,
            revoked: revoked.unwrap_or_default(),
            grant: self.grant,
            ceiling: self.ceiling.map(ceiling).transpose()?,
            audit: self.audit.map(|table| trail(table, document)).transpose()?,
            place: document.place(self.plugins.span().start),
            plugins: self.plugins.into_inner(),
            builtin: self.builtin.map(inner),
            directories: self.directories.map(inner),
            message: self.message,
            pins: by_name(self.plugin, |table| table.checked(document, reader))?,
            programs: by_name(self.program, |table| table.checked(document))?,
            upstreams: by_name(self.upstream, |table| table.checked(document))?,
        };
        Ok((lock, demands))
    }

    fn check_names(&self, document: &Document<'_>) -> Result<(), ConfigError> {
        let pinned = self.plugin.keys().chain(self.program.keys()).chain(self.upstream.keys());
        let mut names = self.builtin.iter().flatten().chain(pinned);
        let Some(name) = names.find(|name| !is_plugin_name(name.get_ref())) else { return Ok(()) };
        let shown = name.get_ref().escape_debug();
        let message =
            format!("`{shown}` is not a valid plugin name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`");
        Err(invalid_at(document.place(name.span().start), message))
    }

    fn check_directories(&self, document: &Document<'_>) -> Result<(), ConfigError> {
        let mut directories = self.directories.iter().flatten();
        let Some(directory) = directories.find(|directory| !directory.get_ref().is_absolute()) else { return Ok(()) };
        let shown = directory.get_ref().display().to_string();
        let message =
            format!("`{}` is not absolute: write the whole path, without `~` or variables", shown.escape_debug());
        Err(invalid_at(document.place(directory.span().start), message))
    }

    /// Refuses names in a lock that does not look at them.
    fn check_mode(&self, document: &Document<'_>) -> Result<(), ConfigError> {
        let plugins = self.plugin.keys().next().map(|name| ("plugins", name));
        let programs = self.program.keys().next().map(|name| ("programs", name));
        let servers = self.upstream.keys().next().map(|name| ("servers", name));
        let (name, message) = match (self.plugins.get_ref(), plugins, plugins.or(programs).or(servers)) {
            (LockMode::Off, _, Some((what, name))) => {
                let message =
                    format!("{what} are named here, and `plugins = \"off\"` looks at none: write `plugins = \"pins\"`");
                (name, message)
            }
            (LockMode::Signed, Some((_, name)), _) => {
                (name, "with `plugins = \"signed\"` the list names the plugins, not the policy".into())
            }
            (LockMode::Off | LockMode::Pins | LockMode::Signed, _, _) => return Ok(()),
        };
        Err(invalid_at(document.place(name.span().start), message))
    }

    fn demands(&self, document: &Document<'_>) -> Demands {
        let place = |demand: Option<&Spanned<bool>>| {
            demand.filter(|is_demanded| *is_demanded.get_ref()).map(|line| document.place(line.span().start))
        };
        let audit = self.audit.as_ref().and_then(|audit| audit.get_ref().required.as_ref());
        Demands { audit: place(audit), confinement: place(self.require_confinement.as_ref()) }
    }
}

impl PinTable {
    fn checked(mut self, document: &Document<'_>, reader: &Reader<'_>) -> Result<Pin, ConfigError> {
        let (place, rights) = (document.place(self.sha256.span().start), self.rights());
        let definitions = self.definitions_sha256.map(|text| digest(&text, document)).transpose()?;
        let ceiling = (!rights.is_empty()).then(|| Ceiling::read(&rights, &place, reader)).transpose()?;
        Ok(Pin { place, sha256: digest(&self.sha256, document)?, definitions, ceiling })
    }
}

impl BytesTable {
    fn checked(self, document: &Document<'_>) -> Result<Pin, ConfigError> {
        let place = document.place(self.sha256.span().start);
        let definitions = self.definitions_sha256.map(|text| digest(&text, document)).transpose()?;
        Ok(Pin { place, sha256: digest(&self.sha256, document)?, definitions, ceiling: None })
    }
}

/// Reads the tables of what a lock names.
fn by_name<T>(
    tables: BTreeMap<Spanned<String>, T>,
    read: impl Fn(T) -> Result<Pin, ConfigError>,
) -> Result<BTreeMap<String, Pin>, ConfigError> {
    tables.into_iter().map(|(name, table)| Ok((name.into_inner(), read(table)?))).collect()
}

fn digest(text: &Spanned<String>, document: &Document<'_>) -> Result<String, ConfigError> {
    let refusal = || invalid_at(document.place(text.span().start), "a digest is 64 hex digits".to_owned());
    sha256_hex(text.get_ref()).ok_or_else(refusal)
}

/// The settings of the trail, with the line where they begin.
fn trail(table: Spanned<AuditTable>, document: &Document<'_>) -> Result<(Place, TrailSettings), ConfigError> {
    Ok((document.place(table.span().start), table.into_inner().checked(document)?))
}

impl AuditTable {
    fn checked(self, document: &Document<'_>) -> Result<TrailSettings, ConfigError> {
        let fault = |at: usize, message: String| Err(invalid_at(document.place(at), message));
        if let Some(file) = self.file.as_ref().filter(|file| !is_plain(file.get_ref())) {
            let shown = file.get_ref().display().to_string();
            let message = format!("`{}` is not a whole path: write it from `/` on, without `..`", shown.escape_debug());
            return fault(file.span().start, message);
        }
        if let Some(mib) = self.rotate_mib.as_ref().filter(|mib| !(1..=1 << 20).contains(mib.get_ref())) {
            return fault(mib.span().start, "`rotate_mib` is a number from 1 to 1048576".into());
        }
        if let Some(keep) = self.keep.as_ref().filter(|keep| !(1..=100_000).contains(keep.get_ref())) {
            return fault(keep.span().start, "`keep` is a number from 1 to 100000".into());
        }
        let usual = Keeping::default();
        let keeping = Keeping {
            rotate_bytes: self.rotate_mib.map_or(usual.rotate_bytes, |mib| mib.into_inner() << 20),
            keep: self.keep.map_or(usual.keep, Spanned::into_inner),
            sync: self.sync.unwrap_or(usual.sync),
            syslog: self.anchor == Some(Anchor::Syslog),
        };
        let sealed = self.seal == Some(SealBy::Ratchet);
        Ok(TrailSettings { file: self.file.map(Spanned::into_inner), keeping, sealed })
    }
}

/// A path from the root on that is written as it leads.
pub(super) fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.file_name().is_some() && !path.components().any(|part| part == Component::ParentDir)
}

fn inner<T>(list: Vec<Spanned<T>>) -> Vec<T> {
    list.into_iter().map(Spanned::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ConfineMode, Settings, Sources};
    use super::*;
    use base::capability::Capability;
    use proptest::prelude::*;

    const DIGEST: &str = "9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C9F2C";

    fn locks(files: &[&str]) -> Result<Vec<Lock>, String> {
        let directory = tempfile::tempdir().unwrap();
        let source = |(number, text): (usize, &&str)| {
            let path = directory.path().join(format!("{number}.toml"));
            std::fs::write(&path, text.replace("DIGEST", DIGEST)).unwrap();
            PolicySource::named(path)
        };
        let policies = files.iter().enumerate().map(source).collect();
        let settings = Settings::load(&Sources { home: "/home/u".into(), policies, ..Sources::default() });
        let shorten = |error: ConfigError| error.to_string().replace(&format!("{}/", directory.path().display()), "");
        settings.map(|settings| settings.locks).map_err(shorten)
    }

    #[test]
    fn a_lock_is_read_beside_what_narrows() {
        let text = "[tools]\nshell_enabled = false\n[lock]\nplugins = \"pins\"\nbuiltin = [\"time\"]\n\
                    directories = [\"/opt/plugins\"]\nmessage = \"ask\"\n[lock.plugin.word_count]\nsha256 = \"DIGEST\"\n";
        let locks = locks(&[text, "[tools]\nshell_confirm = true\n", "lock.plugins = 'off'"]).unwrap();
        assert_eq!(locks.len(), 2);
        let Lock { place, plugins, builtin, directories, message, pins, .. } = &locks[0];
        assert_eq!((place.line, *plugins, message.as_deref()), (4, LockMode::Pins, Some("ask")));
        assert_eq!(builtin.as_deref(), Some(&["time".to_owned()][..]));
        assert_eq!(directories.as_deref(), Some(&[PathBuf::from("/opt/plugins")][..]));
        let pin = &pins["word_count"];
        assert_eq!((pin.sha256.as_str(), pin.place.line), (DIGEST.to_lowercase().as_str(), 9));
        assert_eq!((locks[1].plugins, locks[1].builtin.as_ref()), (LockMode::Off, None));
    }

    /// L-32 among them: paths mean themselves, and no file names another.
    #[test]
    fn what_a_lock_cannot_mean_is_named_with_its_place() {
        for (text, expected) in [
            ("[lock]\n", "0.toml:1:1: `lock`: missing field `plugins`"),
            ("lock = 1", "0.toml:1:8: `lock`: "),
            ("[[lock]]\n", "0.toml:1:1: `lock`: "),
            ("[lock]\nplugins = 'signd'", "0.toml:2:11: `lock`: unknown variant `signd`"),
            ("[lock]\nplugins = 'pins'\nkey = 1", "0.toml:3:1: `lock`: unknown field `key`"),
            ("[lock]\nplugins = 'pins'\nlist = '/l'", "0.toml:3:8: this is for lists that were signed"),
            ("[lock]\nplugins = 'signed'", "0.toml:2:11: `plugins = \"signed\"` needs `list`"),
            (
                "[lock]\nplugins = 'signed'\nlist = 'l'\nlist_name = 'n'\nthreshold = { vet = 1, list = 1 }",
                "0.toml:3:8: `l` is not a whole path",
            ),
            (
                "[lock]\nplugins = 'signed'\nlist = '/l'\nlist_name = 'n'\nthreshold = { vet = 1, list = 1 }",
                "0.toml:5:21: 0 keys have this role",
            ),
            (
                "[lock]\nplugins = 'signed'\nlist = '/l'\nlist_name = 'n'\nthreshold = { vet = 1, list = 1 }\n\
                 keys.a = { minisign = 'RW', roles = ['vet'] }",
                "0.toml:6:23: this is no public key of minisign",
            ),
            ("[lock]\nplugins = 'off'\nceiling = { exec = true }", "0.toml:3:11: `exec` is no right"),
            ("[lock]\nplugins = 'off'\nrevoked = { keys = ['k'] }", "0.toml:3:21: a key is named by its number"),
            ("[lock]\nplugins = 'off'\naudit = { file = 'a' }", "0.toml:3:18: `a` is not a whole path"),
            ("[lock]\nplugins = 'off'\naudit = { keep = 0 }", "0.toml:3:18: `keep` is a number from 1"),
            ("[confine]\nmode = 'sometimes'", "0.toml:2:1: `confine.mode`: unknown variant `sometimes`"),
            ("[lock]\nplugins = 'pins'\nbuiltin = ['a b']", "0.toml:3:12: `a b` is not a valid plugin name"),
            ("[lock]\nplugins = 'pins'\ndirectories = ['~/p']", "0.toml:3:16: `~/p` is not absolute"),
            ("[lock]\nplugins = 'pins'\ndirectories = ['$HOME/p']", "0.toml:3:16: `$HOME/p` is not absolute"),
            ("[lock]\nplugins = 'pins'\ndirectories = ['*']", "0.toml:3:16: `*` is not absolute"),
            ("[lock]\nplugins = 'off'\naudit = { file = '/a/../b' }", "0.toml:3:18: `/a/../b` is not a whole path"),
            ("[lock]\nplugins = 'off'\ninclude = '/etc/more.toml'", "0.toml:3:1: `lock`: unknown field `include`"),
            ("include = '/etc/more.toml'", "0.toml:1:1: `include` is not a setting"),
            ("[lock]\nplugins = 'pins'\n[lock.plugin.x]\n", "0.toml:3:1: `lock`: missing field `sha256`"),
            ("[lock]\nplugins = 'pins'\n[lock.plugin.x]\nsha256 = '9f'", "0.toml:4:10: a digest is 64 hex digits"),
            ("[lock]\nplugins = 'pins'\n[lock.plugin.'a b']\nsha256 = 'DIGEST'", "0.toml:3:14: `a b` is not a valid"),
            ("[lock]\nplugins = 'off'\n[lock.plugin.x]\nsha256 = 'DIGEST'", "0.toml:3:14: plugins are named here"),
            ("[lock]\nplugins = 'off'\n[lock.program.x]\nsha256 = 'DIGEST'", "0.toml:3:15: programs are named here"),
            ("[lock]\nplugins = 'off'\n[lock.upstream.x]\nsha256 = 'DIGEST'", "0.toml:3:16: servers are named here"),
            ("[lock]\nplugins = 'pins'\n[lock.upstream.'a b']\nsha256 = 'DIGEST'", "0.toml:3:16: `a b` is not a valid"),
            (
                "[lock]\nplugins = 'pins'\n[lock.program.x]\nsha256 = 'DIGEST'\nshell = true",
                "0.toml:5:1: `lock`: unknown field `shell`",
            ),
            ("[lock]\nplugins = 'pins'\n[lock.program.'a b']\nsha256 = 'DIGEST'", "0.toml:3:15: `a b` is not a valid"),
            (
                "[lock]\nplugins = 'pins'\n[lock.plugin.x]\nsha256 = 'DIGEST'\npanes = true",
                "0.toml:5:1: `lock`: unknown",
            ),
        ] {
            let error = locks(&[text]).err().unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_pin_can_bound_every_capability_that_a_section_grants() {
        for key in Capability::ALL.into_iter().flat_map(|capability| capability.section().grants) {
            let (right, _) = key.split_once('.').unwrap_or((key, ""));
            let mut pin: PinTable = toml::from_str(&format!("sha256 = 'DIGEST'\n{right} = true")).unwrap();
            assert_eq!(pin.rights().keys().collect::<Vec<_>>(), [right]);
        }
    }

    /// A trail that is required is required, and so is a cell.
    #[test]
    fn what_a_policy_demands_narrows_the_settings() {
        let directory = tempfile::tempdir().unwrap();
        let (off, auto, must) = (ConfineMode::Off, ConfineMode::Auto, ConfineMode::Required);
        for (text, confined, required) in [
            ("[confine]\nmode = 'required'", must, false),
            ("[confine]\nmode = 'auto'", auto, false),
            ("[lock]\nplugins = 'off'\nrequire_confinement = true", must, false),
            ("[lock]\nplugins = 'off'\nrequire_confinement = true\n[confine]\nmode = 'off'", must, false),
            ("[lock]\nplugins = 'off'\nrequire_confinement = false", off, false),
            ("[lock]\nplugins = 'off'\naudit = { required = true }", off, true),
        ] {
            let path = directory.path().join("policy.toml");
            std::fs::write(&path, text).unwrap();
            let policies = vec![PolicySource::named(path)];
            let set = vec!["confine.mode=off".to_owned(), "audit.required=false".to_owned()];
            let sources = Sources { home: "/home/u".into(), policies, set, ..Sources::default() };
            let config = Settings::load(&sources).unwrap().config;
            assert_eq!((config.confine.mode, config.audit.required), (confined, required), "{text}");
        }
    }

    #[test]
    fn a_key_is_known_with_and_without_its_leading_zeros() {
        let read =
            |number: &str| locks(&[&format!("lock = {{ plugins = 'off', revoked = {{ keys = ['{number}'] }} }}")]);
        for number in ["012345abcdef6789", "12345ABCDEF6789"] {
            assert!(read(number).unwrap()[0].revoked.keys.contains("012345ABCDEF6789"), "{number}");
        }
        assert!(read("00123456789abcdef").is_err());
    }

    #[test]
    fn one_policy_says_where_the_trail_is() {
        let text = "lock = { plugins = 'off', audit = { keep = 3 } }";
        assert!(locks(&[text, "lock.plugins = 'off'"]).is_ok());
        let error = locks(&[text, text]).err().unwrap();
        assert!(error.starts_with("1.toml:1:35: `[lock.audit]` is in 0.toml:1 already"), "{error}");
    }

    const MOST: usize = 256 << 10;

    const GOOD: [&str; 3] = [
        "[lock]\nplugins = 'pins'\nbuiltin = ['time']\ndirectories = ['/opt/p']\nmessage = 'ask'\n[lock.plugin.x]\nsha256 = 'DIGEST'\n\
         [lock.ceiling]\nfiles.read = ['/srv']\nshell = false\n[lock.audit]\nfile = '/var/log/a.jsonl'\nrequired = true\nkeep = 3\n\
         [confine]\nmode = 'required'\n",
        "[lock]\nplugins = 'signed'\nlist = '/l'\nlist_name = 'n'\nthreshold = { vet = 1, list = 1 }\nmin_sequence = 3\n\
         clock = { skew_s = 60, grace_days = 2 }\ncriteria = ['source-read']\n[lock.keys.a]\nminisign = 'RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3'\n\
         roles = ['vet', 'list', 'revoke']\nnot_after = 2027-01-01\n[lock.revoked]\nkeys = ['012345ABCDEF6789']\n",
        "[tools]\nshell_enabled = false\nfiles_read_paths = ['/a']\n[plugin.x]\nshell = false\nfiles.read = ['/srv']\n\
         [limits]\ncalls_per_minute = 5\n",
    ];

    fn read(text: &str) -> Result<PolicyFile, ConfigError> {
        let reader = Reader { home: Path::new("/"), start: None, is_policy: true };
        PolicyFile::of_text(Path::new("/p.toml"), text, true, &reader)
    }

    /// What would take a reader's stack, or its time, is refused or read like any other.
    #[test]
    fn what_is_deep_or_long_is_read_to_an_end() {
        let many = |text: &str| text.repeat(MOST / text.len());
        for text in [
            format!("a = {}", many("[")),
            format!("a = {}", many("{a=")),
            many("[a."),
            many("a."),
            many("[a]\n"),
            format!("[lock]\nplugins = 'off'\nbuiltin = [{}]", "'a',".repeat(60_000)),
            format!("a = \"\"\"{}", many("\n")),
        ] {
            let begin = std::time::Instant::now();
            let _ = read(&text);
            assert!(begin.elapsed().as_secs() < 20, "{}", &text[..20]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if std::env::var_os("TOOLCRIB_LONG").is_some() { 200_000 } else { 2000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Whatever is read, it is read to an end, and the file is named in what is wrong.
        #[test]
        fn any_policy_is_read_to_an_end(
            which in 0usize..3,
            edits in prop::collection::vec((any::<u16>(), any::<char>(), any::<bool>()), 0..8),
        ) {
            let mut text: Vec<char> = GOOD[which].replace("DIGEST", DIGEST).chars().collect();
            let is_changed = !edits.is_empty();
            for (at, letter, inserts) in edits {
                let at = usize::from(at) % text.len();
                if inserts { text.insert(at, letter) } else { text[at] = letter }
            }
            if let Err(error) = read(&text.into_iter().collect::<String>()) {
                prop_assert!(is_changed, "{error}");
                prop_assert!(error.to_string().starts_with("/p.toml:"), "{error}");
            }
        }
    }

    /// Only a policy file has a lock: elsewhere it is an unknown key, and nothing starts.
    #[test]
    fn no_settings_file_has_a_lock() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("toolcrib.toml");
        std::fs::write(&file, "[lock]\nplugins = \"off\"\n").unwrap();
        let load = |sources: Sources| Settings::load(&Sources { home: "/home/u".into(), ..sources });
        let given = |file: &Path| Some(file.to_owned());
        for sources in [
            Sources { user: given(&file), ..Sources::default() },
            Sources { set: vec!["lock.plugins=off".into()], ..Sources::default() },
        ] {
            let error = load(sources).expect_err("a lock is not a setting").to_string();
            assert!(error.contains("is not a setting"), "{error}");
        }
        // A project cannot keep anything from starting.
        let project = load(Sources { project: given(&file), ..Sources::default() }).expect("settings");
        assert!(project.locks.is_empty() && project.notices[0].contains("is not a setting"), "{:?}", project.notices);
    }
}
