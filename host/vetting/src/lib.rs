//! `plugins = "signed"`: whether reviewers have vetted a plugin, by a list and statements that they have signed.
//!
//! Checked in the order of the table in `host/docs/locked.md`. What holds is remembered until the files change, which is looked at once a
//! second; times are compared at every call.
//!
//! It depends on `base`, `config` and `contract`. What a lock makes of it is `policy/lock.rs`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod checked;
mod code;
pub mod documents;
pub mod marks;
mod signatures;
pub mod succession;

use base::disk::open_of_root;
pub use code::Code;
use config::{Lock, Role, Signed};
use contract::manifest::{Manifest, Origin, PluginId};
use documents::{LIST_BYTES, List, ListedPlugin, Presence, Revocation, STATEMENT_BYTES, Statement};
use marks::Marks;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
pub use signatures::read_file;
use signatures::{Names, Signatures, read_opened, signing};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often files are looked at for changes.
const LOOK: Duration = Duration::from_secs(1);
/// Revocations of one lock.
const MOST_REVOCATIONS: usize = 10_000;
/// The ends of the names of files.
const STATEMENT_END: &str = "vet.toml";
const REVOCATION_END: &str = ".revoke.toml";

/// Why a plugin is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: Code,
    /// With the plugin as its subject, unless the code says that it is about something else.
    pub reason: String,
    /// What helps, where somebody can do something about it.
    pub remedy: Option<String>,
}

/// A plugin that was vetted, as it is now.
#[derive(Debug)]
pub struct Vetted {
    /// What it was vetted as.
    pub statement: Statement,
    /// The keys that signed the statement, by their names.
    pub signers: BTreeSet<String>,
}

/// What a lock knows of lists and statements.
pub struct Vetting {
    marks: Arc<Marks>,
    state: Mutex<State>,
}

struct State {
    looked: Option<Instant>,
    prints: Vec<Print>,
    list: Result<Arc<KnownList>, Refused>,
    revocations: Vec<Revocation>,
    /// Revocations that take nothing back, each with the reason.
    idle: Vec<String>,
    vetted: HashMap<PluginId, Arc<Vetted>>,
    names: Names,
}

/// A list that counts, but for its end.
struct KnownList {
    list: List,
    signers: BTreeSet<String>,
}

/// What a file looked like: another that looks the same is the same.
#[derive(Clone, PartialEq, Eq)]
struct Print(PathBuf, Option<(u64, u64, i64, i64, u64)>);

impl Refused {
    pub fn new(code: Code, reason: String) -> Self {
        Self { code, reason, remedy: None }
    }

    fn remedy(self, remedy: String) -> Self {
        Self { remedy: Some(remedy), ..self }
    }
}

impl Vetting {
    pub fn new(marks: Arc<Marks>) -> Self {
        let nothing = Refused::new(Code::ListInvalid, "the list was not read".into());
        let state = State {
            looked: None,
            prints: Vec::new(),
            list: Err(nothing),
            revocations: Vec::new(),
            idle: Vec::new(),
            vetted: HashMap::new(),
            names: Names::default(),
        };
        Self { marks, state: Mutex::new(state) }
    }

    /// Decides on a plugin that did not come with the program.
    pub fn decide(&self, lock: &Lock, signed: &Signed, plugin: &Manifest) -> Result<Arc<Vetted>, Refused> {
        let mut state = self.state.lock();
        self.look(&mut state, lock, signed);
        let now = self.marks.now();
        if let Some(vetted) = state.vetted.get(&plugin.id) {
            // By the list in force still: another one, or a revocation, empties these.
            state.list.as_ref().map_err(Clone::clone)?.counts(signed, now)?;
            return vetted.clone().counts(now);
        }
        if state.has_taken_back(plugin.sha256(), self.marks.admitted.lock().get(&plugin.id)) {
            return Err(Refused::new(Code::Revoked, "was revoked by its reviewers".into()));
        }
        let known = state.list.clone()?;
        let list = &known.list;
        known.counts(signed, now)?;
        let entry = entry_for(list, plugin)?;
        let (statement, signers) = self.statement(lock, signed, plugin, entry, &mut state.names)?;
        let vetted = Arc::new(Vetted { statement, signers });
        vetted.is_about(plugin)?;
        let said = &vetted.statement.said;
        let stated = (said.name.clone(), said.sequence);
        if state.has_taken_back(plugin.sha256(), Some(&stated)) {
            return Err(Refused::new(Code::Revoked, "was revoked by its reviewers".into()));
        }
        let lacking: Vec<&str> =
            signed.criteria.iter().filter(|one| !said.criteria.contains(one)).map(String::as_str).collect();
        let vetted = vetted.counts(now)?;
        if !lacking.is_empty() {
            let reason = format!("was not reviewed for what the policy asks: {}", lacking.join(", "));
            return Err(Refused::new(Code::Criteria, reason));
        }
        self.marks.admitted.lock().insert(plugin.id.clone(), stated);
        state.vetted.insert(plugin.id.clone(), vetted.clone());
        Ok(vetted)
    }

    /// Has the files looked at before the next decision.
    pub fn look_anew(&self) {
        self.state.lock().looked = None;
    }

    /// The list in force, in words, or why there is none.
    pub fn described(&self, lock: &Lock, signed: &Signed) -> Result<String, Refused> {
        let mut state = self.state.lock();
        self.look(&mut state, lock, signed);
        let known = state.list.clone()?;
        let KnownList { list, signers } = &*known;
        let until = date(list.valid_until);
        let signers = signers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let now = self.marks.now();
        known.counts(signed, now)?;
        let days = list.valid_until.saturating_sub(now) / config::DAY;
        Ok(format!(
            "list {} {}: {} plugins, signed by {signers}, valid until {until} ({days} days)",
            list.name,
            list.sequence,
            list.plugins.len()
        ))
    }

    /// When the list ends, in seconds since 1970, and what it is called.
    pub fn list_end(&self, lock: &Lock, signed: &Signed) -> Option<(u64, String)> {
        let mut state = self.state.lock();
        self.look(&mut state, lock, signed);
        let list = &state.list.as_ref().ok()?.list;
        Some((list.valid_until, format!("list {} {}", list.name, list.sequence)))
    }

    /// Revocations beside the list that take nothing back, each with the reason.
    pub fn idle_revocations(&self, lock: &Lock, signed: &Signed) -> Vec<String> {
        let mut state = self.state.lock();
        self.look(&mut state, lock, signed);
        state.idle.clone()
    }

    /// The names that the list has, and whether each has to be there.
    pub fn listed(&self, lock: &Lock, signed: &Signed) -> Vec<(String, bool)> {
        let mut state = self.state.lock();
        self.look(&mut state, lock, signed);
        let Ok(known) = &state.list else { return Vec::new() };
        known.list.plugins.iter().map(|(name, entry)| (name.clone(), entry.mode == Presence::Required)).collect()
    }

    /// Reads list and revocations anew where they have changed.
    fn look(&self, state: &mut State, lock: &Lock, signed: &Signed) {
        if state.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        state.looked = Some(Instant::now());
        self.marks.raise();
        let directory = signed.list.parent().unwrap_or(Path::new("/"));
        state.names.forget();
        let mut revocations = state.names.ending(directory, REVOCATION_END);
        revocations.truncate(MOST_REVOCATIONS);
        // Also what is written over in its place, which no directory shows.
        let signatures: Vec<PathBuf> =
            revocations.iter().chain([&signed.list]).flat_map(|file| state.names.signatures(file)).collect();
        let watched = [signed.list.as_path(), directory].into_iter();
        let watched = watched.chain(revocations.iter().chain(&signatures).map(PathBuf::as_path));
        let prints: Vec<Print> = watched.map(Print::of).collect();
        if prints == state.prints {
            return;
        }
        state.prints = prints;
        state.vetted.clear();
        let names = &mut state.names;
        state.list = self.list(lock, signed, names).map(Arc::new);
        state.revocations.clear();
        state.idle.clear();
        for path in revocations {
            match self.revocation(&path, lock, signed, names) {
                Ok(Ok(revocation)) => state.revocations.push(revocation),
                Ok(Err(idle)) => state.idle.push(idle),
                // What may take something back, and cannot be read, is not passed over.
                Err(error) => {
                    let reason = format!("the revocation {} cannot be read: {error}", path.display());
                    state.list = Err(Refused::new(Code::ListInvalid, reason));
                }
            }
        }
        if state.list.is_err() {
            // A file may be half written yet.
            state.prints.clear();
        }
    }

    fn list(&self, lock: &Lock, signed: &Signed, names: &mut Names) -> Result<KnownList, Refused> {
        let path = &signed.list;
        let invalid = |reason: String| {
            Refused::new(Code::ListInvalid, format!("the list {} cannot be used: {reason}", path.display()))
        };
        let bytes = read_named(path, lock.of_root, LIST_BYTES).map_err(|error| invalid(error.to_string()))?;
        let signatures = Signatures::beside(path, names);
        let signers = |issued| signatures.signers(&bytes, signed, &lock.revoked, Role::List, issued, &self.marks);
        let enough = |issued| {
            let signers = signers(issued);
            if signers.names.len() >= signed.lists {
                return Ok(signers.names);
            }
            let (found, told) = (signers.names.len(), explained(&signers.told));
            let reason = format!("the list {} has {found} of {} signatures{told}", path.display(), signed.lists);
            Err(Refused::new(Code::ListUnsigned, reason).remedy(signing(path)))
        };
        enough(None)?;
        let list = List::read(&bytes, path).map_err(invalid)?;
        let signers = enough(Some(list.issued))?;
        if list.name != signed.name {
            let (found, wanted) = (list.name.escape_debug(), signed.name.escape_debug());
            return Err(Refused::new(Code::ListUnsigned, format!("the list is of `{found}`, not of `{wanted}`")));
        }
        if list.sequence < signed.min_sequence {
            let reason =
                format!("the list is number {}, and the policy wants {} at least", list.sequence, signed.min_sequence);
            return Err(Refused::new(Code::RolledBack, reason));
        }
        self.marks.take(signed, list.sequence, list.issued, &bytes)?;
        Ok(KnownList { list, signers })
    }

    /// A revocation that one key with that role has signed. Others are passed over, as anybody could write them; the inner error says why.
    fn revocation(
        &self,
        path: &Path,
        lock: &Lock,
        signed: &Signed,
        names: &mut Names,
    ) -> io::Result<Result<Revocation, String>> {
        let bytes = read_file(path, STATEMENT_BYTES)?;
        let signatures = Signatures::beside(path, names);
        let enough = |issued| {
            let signers = signatures.signers(&bytes, signed, &lock.revoked, Role::Revoke, issued, &self.marks);
            if !signers.names.is_empty() {
                return Ok(());
            }
            let (shown, told, sign) = (path.display(), explained(&signers.told), signing(path));
            Err(format!(
                "the revocation {shown} does nothing: no key with the role `revoke` has signed it{told}; {sign}"
            ))
        };
        if let Err(idle) = enough(None) {
            return Ok(Err(idle));
        }
        let revocation = Revocation::read(&bytes, path).map_err(io::Error::other)?;
        Ok(enough(Some(revocation.issued)).map(|()| revocation))
    }

    /// The statement that the list has for a plugin: beside the plugin, or beside the list.
    fn statement(
        &self,
        lock: &Lock,
        signed: &Signed,
        plugin: &Manifest,
        entry: &ListedPlugin,
        names: &mut Names,
    ) -> Result<(Statement, BTreeSet<String>), Refused> {
        let name = format!("{}.{STATEMENT_END}", plugin.name());
        let beside = match &plugin.id.origin {
            Origin::File(file) => Path::new(file).parent().map(|directory| directory.join(&name)),
            Origin::BuiltIn | Origin::Program { .. } | Origin::Upstream { .. } => None,
        };
        let places = beside.into_iter().chain(signed.list.parent().map(|directory| directory.join(&name)));
        let (mut found_other, mut refused) = (false, None);
        for path in places {
            let Ok(bytes) = read_file(&path, STATEMENT_BYTES) else { continue };
            if hex::encode(Sha256::digest(&bytes)) != entry.statement {
                found_other = true;
                continue;
            }
            let signatures = Signatures::beside(&path, names);
            let enough = |issued| {
                let signers = signatures.signers(&bytes, signed, &lock.revoked, Role::Vet, issued, &self.marks);
                if signers.names.len() >= signed.vet {
                    return Ok(signers.names);
                }
                let (found, told) = (signers.names.len(), explained(&signers.told));
                let reason = format!("has {found} of {} signatures of reviewers{told}", signed.vet);
                Err(Refused::new(Code::TooFewSignatures, reason).remedy(signing(&path)))
            };
            // The other place may have the signatures that this one lacks.
            if let Err(reason) = enough(None) {
                refused.get_or_insert(reason);
                continue;
            }
            let statement = Statement::read(&bytes, &path).map_err(|reason| {
                Refused::new(Code::StatementInvalid, format!("has a statement that cannot be used: {reason}"))
            })?;
            let signers = enough(Some(statement.issued))?;
            return Ok((statement, signers));
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        let reason = if found_other {
            format!("has another statement than the list names, {}", &entry.statement.get(..12).unwrap_or_default())
        } else {
            format!("has no statement: `{name}` is neither beside it nor beside the list")
        };
        Err(Refused::new(Code::StatementChanged, reason))
    }
}

impl State {
    /// Whether these bytes, or the statement of this name and sequence, were taken back.
    fn has_taken_back(&self, sha256: &str, stated: Option<&(String, u64)>) -> bool {
        self.revocations.iter().any(|Revocation { sha256: bytes, name, .. }| {
            let by_name =
                || name.as_ref().zip(stated).is_some_and(|(taken, stated)| taken.0 == stated.0 && stated.1 <= taken.1);
            bytes.as_deref() == Some(sha256) || by_name()
        })
    }
}

impl KnownList {
    /// Whether it counts at this time: it was signed by then, and has not ended.
    fn counts(&self, signed: &Signed, now: u64) -> Result<(), Refused> {
        let List { name, sequence, issued, valid_until, .. } = &self.list;
        if now + signed.skew < *issued {
            let reason = format!("this machine's clock is {} s behind what was signed", issued - now);
            return Err(Refused::new(Code::Clock, reason));
        }
        if now > valid_until + signed.grace {
            let until = date(*valid_until);
            let reason = format!("was vetted by the list {name} {sequence}, which was valid until {until}");
            return Err(Refused::new(Code::ListExpired, reason));
        }
        Ok(())
    }
}

impl Vetted {
    /// Until when the statement counts.
    #[must_use]
    pub fn expires(&self) -> String {
        date(self.statement.expires)
    }

    /// Whether its statement has not ended.
    fn counts(self: Arc<Self>, now: u64) -> Result<Arc<Self>, Refused> {
        let expires = self.statement.expires;
        if now > expires {
            return Err(Refused::new(Code::Expired, format!("was vetted until {}", date(expires))));
        }
        Ok(self)
    }

    /// Whether the statement is about this plugin: what it shows of itself is what the reviewers saw.
    fn is_about(&self, plugin: &Manifest) -> Result<(), Refused> {
        let said = &self.statement.said;
        let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
        let differs = [
            ("name", said.name != plugin.name()),
            ("sha256", !said.sha256.eq_ignore_ascii_case(plugin.sha256())),
            ("size", said.size != plugin.size),
            ("imports", set(&said.imports) != set(&plugin.imports)),
            ("tools", set(&said.tools) != set(&plugin.tools)),
        ];
        let differing: Vec<&str> = differs.iter().filter(|(_, differs)| *differs).map(|(what, _)| *what).collect();
        if differing.is_empty() {
            return Ok(());
        }
        let reason = format!("is not what its statement says: {} differ", differing.join(", "));
        Err(Refused::new(Code::StatementMismatch, reason))
    }
}

impl Print {
    fn of(path: &Path) -> Self {
        let found = path.metadata().ok();
        let print = found.map(|found| (found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.size()));
        Self(path.to_owned(), print)
    }
}

/// Name and digest of a plugin stand together in the list.
fn entry_for<'l>(list: &'l List, plugin: &Manifest) -> Result<&'l ListedPlugin, Refused> {
    let is_it = |entry: &ListedPlugin| entry.sha256 == plugin.sha256();
    match list.plugins.get(plugin.name()) {
        Some(entry) if is_it(entry) => Ok(entry),
        Some(entry) => {
            let listed = entry.sha256.get(..12).unwrap_or_default();
            Err(Refused::new(Code::OtherBytes, format!("has other bytes than those that were vetted, {listed}")))
        }
        None => Err(match list.plugins.values().find(|entry| is_it(entry)) {
            Some(entry) => Refused::new(Code::Renamed, format!("was vetted under another name, `{}`", entry.name)),
            None => Refused::new(Code::NotVetted, "was not vetted".into()),
        }),
    }
}

/// Reads a file that a policy names: of the machine's policy, one that root alone can have put there.
fn read_named(path: &Path, of_root: bool, most: u64) -> io::Result<Vec<u8>> {
    if of_root { read_opened(open_of_root(path)?, most) } else { read_file(path, most) }
}

fn explained(told: &[String]) -> String {
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
}

/// A second as a date.
pub fn date(second: u64) -> String {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(second);
    humantime::format_rfc3339_seconds(time).to_string()
}
