//! Which files a plugin may read and write: decided on the path that was resolved, and only what was admitted can be opened.
//!
//! - `protected.rs` has the files that no tool opens, with the table of `credentials.rs`;
//! - `later.rs` has the files that a program runs or obeys later;
//! - `tree.rs` decides on all files below a directory, for a walk;
//! - `facts.rs` has the directories of the place where a backend acts.
//!
//! It depends on `base` and `config`. A backend resolves and opens paths; `policy` asks a person about writes.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod credentials;
mod facts;
mod homes;
mod later;
mod names;
mod protected;
mod tree;

pub use credentials::{CREDENTIALS, Class};
pub use facts::{Facts, TmuxThere};
pub use later::{Acting, LATER, Later, Surroundings};
pub use later::{ends_with, obeyed_by_name};
pub use protected::{KERNEL, Protected, TooMany};
pub use tree::{Opened, ReadEntry, ReadTree};

use base::envelope::{Failure, Kind};
use base::paths::{canonical, normal};
use config::{Allowlist, Config, FilesConfirm, Needed, PluginRights, Remedies};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A path as it was given and what it names, on the backend that resolved it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Absolute, links not followed.
    pub given: PathBuf,
    /// Absolute, without any link.
    pub path: PathBuf,
    /// Why there can be no file of this name. Only a plugin that may read there sees it: no other learns what exists there.
    pub absent: Option<Failure>,
    /// What the backend is like that resolved it.
    pub facts: Arc<Facts>,
    /// Where the roots of the policy are, when the path is another machine's.
    pub there: Option<There>,
}

/// What the roots of the policy name on another machine.
#[derive(Clone, Debug)]
pub struct There {
    /// Toolcrib's own directory there.
    pub own: PathBuf,
    /// The roots as they are written, with the home of that place: one for each of [`FilesGrant::roots`].
    pub named: Vec<PathBuf>,
    /// The same without links, as far as they exist.
    pub canonical: Vec<PathBuf>,
}

/// Stands in paths of settings for a home that is not known yet: that of a place beyond this machine.
pub const HOME_THERE: &str = "/~";

impl Resolved {
    fn check_present(&self) -> Result<(), Failure> {
        self.absent.clone().map_or(Ok(()), Err)
    }
}

/// A path that policy admitted for reading. Made only here.
#[derive(Clone)]
pub struct ReadPath(Admitted);

/// A path of which a plugin may know what is there. Made only here.
#[derive(Clone)]
pub struct Place(PathBuf);

/// A path that policy and, where asked, a person admitted for writing. Made only here.
#[derive(Clone)]
pub struct WritePath(Admitted, Expected);

/// A path that the rules admit for writing, and a person may still have to. It may be looked at for the question.
#[derive(Clone)]
pub struct Wanted {
    path: WritePath,
    /// Why a person is asked; none where nobody is.
    reason: Option<Reason>,
    /// The workspace, as people read it.
    workspace: String,
    /// Nobody may be shown its content.
    is_closed: bool,
}

/// What a written path has to hold until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever it likes.
    Anything,
    /// Nothing: the file is new.
    New,
    /// The file that its backend marked so.
    Marked(String),
}

#[derive(Clone)]
struct Admitted {
    path: PathBuf,
    /// Only below some directories: then a second name of a file from elsewhere does not count as being there.
    confined: bool,
    protected: Arc<Protected>,
}

/// Why a write is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A program runs or obeys the file later.
    Later(&'static Later),
    /// The file lies outside the workspace.
    Outside,
    /// Settings ask about every write.
    Always,
}

/// What is to be at a path.
#[derive(Clone, Copy)]
pub enum New<'c> {
    Content(&'c [u8]),
    Directory,
}

/// What one plugin may do with files.
#[derive(Clone)]
pub struct FilesGrant {
    /// The plugin as people read it, and the digest that an approval for the session is bound to.
    pub label: String,
    pub sha256: String,
    pub approval_timeout: Duration,
    /// The rules as they are written, for a place beyond this machine.
    named: Rules,
    /// The rules on this machine.
    here: Rules,
}

/// The plugin that files are granted to.
pub struct Who<'w> {
    pub name: &'w str,
    /// As people read it.
    pub label: String,
    pub sha256: &'w str,
}

/// What binds one plugin at one place.
#[derive(Clone)]
struct Rules {
    plugin: String,
    confirm: FilesConfirm,
    /// A path lies within every one of these lists.
    read: Vec<Allowlist>,
    write: Vec<Allowlist>,
    /// The same for `tools.files_read_paths`.
    bounds: Vec<Allowlist>,
    /// The same for `tools.files_allowed_paths`, which binds writing.
    allowed: Vec<Allowlist>,
    /// Sensitive directories that the user has named, and so opened for writing.
    opened: Vec<PathBuf>,
    protected: Arc<Protected>,
    remedies: Remedies,
}

impl FilesGrant {
    /// Only policy makes grants (`clippy.toml`). Links in the directories of settings are resolved here. `protected` is for this machine, `elsewhere` for another place.
    pub fn new(
        plugin: Who<'_>,
        rights: &PluginRights,
        config: &Config,
        protected: Arc<Protected>,
        elsewhere: Arc<Protected>,
    ) -> Self {
        let named = Rules {
            plugin: plugin.name.into(),
            confirm: config.tools.files_confirm,
            read: rights.read.clone(),
            write: rights.write.clone(),
            bounds: config.read_paths(),
            allowed: config.allowed_paths(),
            opened: config.opened_paths().to_vec(),
            protected: elsewhere,
            remedies: config.remedies(),
        };
        // For each call anew (`call/mod.rs` of core): a directory of the settings may have become a link since the last one.
        let here = Rules { protected, ..named.map(canonical) };
        Self {
            label: plugin.label,
            sha256: plugin.sha256.into(),
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            named,
            here,
        }
    }

    /// Which writes a person is asked about.
    #[must_use]
    pub fn confirms(&self) -> FilesConfirm {
        self.here.confirm
    }

    /// Within which directories any tool may read: all of these.
    #[must_use]
    pub fn bounds_of_reading(&self) -> &[Allowlist] {
        &self.here.bounds
    }

    /// Where the plugin may read: within all of these.
    #[must_use]
    pub fn readable(&self) -> &[Allowlist] {
        &self.here.read
    }

    /// Where the plugin may write: within all of these.
    #[must_use]
    pub fn writable(&self) -> &[Allowlist] {
        &self.here.write
    }

    /// The directories that it was granted, as a path each: those of this machine, or as settings name them, with `~` for the home of another place.
    pub fn granted(&self, is_here: bool) -> Vec<String> {
        let rules = if is_here { &self.here } else { &self.named };
        let listed = rules.read.iter().chain(&rules.write).filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(directories) => Some(directories),
        });
        let path = |directory: &PathBuf| match directory.strip_prefix(HOME_THERE) {
            Ok(below) => Path::new("~").join(below).to_str().map(str::to_owned),
            Err(_) => directory.to_str().map(str::to_owned),
        };
        listed.flatten().filter_map(path).collect()
    }

    /// The directories by which it is decided, for a place beyond this machine that is to say where they are.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        self.named.roots().cloned().collect()
    }

    /// Nothing confines what the plugin reads to some directories.
    #[must_use]
    pub fn reads_everywhere(&self) -> bool {
        !is_confined(&self.here.read)
    }

    /// Decides on reading.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that would allow it where one would.
    pub fn admit_read(&self, resolved: &Resolved) -> Result<ReadPath, Failure> {
        self.rules(resolved)?.admit_read(resolved)
    }

    /// Decides on writing, as far as nobody has to be asked.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that would allow it where one would.
    pub fn admit_write(&self, resolved: &Resolved) -> Result<Wanted, Failure> {
        self.rules(resolved)?.admit_write(resolved)
    }

    /// Decides on making a directory, of which those above it may be missing.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that would allow it where one would; `execution_failed` where it is not plain which directory is meant.
    pub fn admit_directory(&self, resolved: &Resolved) -> Result<Wanted, Failure> {
        self.rules(resolved)?.admit_directory(resolved)
    }

    fn rules(&self, resolved: &Resolved) -> Result<Cow<'_, Rules>, Failure> {
        Ok(match &resolved.there {
            None => Cow::Borrowed(&self.here),
            Some(there) => Cow::Owned(self.named.at(there)?),
        })
    }
}

impl Rules {
    /// All directories by which it is decided.
    fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        let lists = [&self.read, &self.write, &self.bounds, &self.allowed].into_iter().flatten();
        let listed = lists.filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) => Some(paths),
        });
        listed.flatten().chain(&self.opened).chain(self.protected.roots())
    }

    /// The same with other paths; what is protected is left as it is.
    fn map(&self, change: impl Fn(&Path) -> PathBuf) -> Self {
        let lists = |lists: &[Allowlist]| {
            let list = |list: &Allowlist| match list {
                Allowlist::Any => Allowlist::Any,
                Allowlist::Only(paths) => Allowlist::Only(paths.iter().map(|path| change(path)).collect()),
            };
            lists.iter().map(list).collect()
        };
        Self {
            plugin: self.plugin.clone(),
            confirm: self.confirm,
            read: lists(&self.read),
            write: lists(&self.write),
            bounds: lists(&self.bounds),
            allowed: lists(&self.allowed),
            opened: self.opened.iter().map(|path| change(path)).collect(),
            protected: self.protected.clone(),
            remedies: self.remedies.clone(),
        }
    }

    /// The rules at a place beyond this machine; none where it did not say of every directory by which it is decided where that is.
    fn at(&self, there: &There) -> Result<Self, Failure> {
        let roots: Vec<&PathBuf> = self.roots().collect();
        if [&there.named, &there.canonical].iter().any(|said| said.len() != roots.len()) {
            let message = "the place did not say where the directories are that decide on files";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        let canonical: HashMap<&Path, &PathBuf> =
            roots.iter().map(|root| root.as_path()).zip(&there.canonical).collect();
        let resolved = |path: &Path| canonical[path].clone();
        let protected = Arc::new(self.protected.at(there, &roots));
        Ok(Self { protected, ..self.map(resolved) })
    }

    fn admit_read(&self, resolved: &Resolved) -> Result<ReadPath, Failure> {
        // What no setting opens comes first, so that no hint names a line that would not help.
        self.refuse_kernel(resolved)?;
        self.protected.refuse(&resolved.path)?;
        let path = &resolved.path;
        // A model has to be able to read on what its own commands have printed.
        if !path.starts_with(&self.protected.output) && !self.bounds.iter().all(|list| list.contains(path)) {
            return Err(Failure::denied(format!("`{}` is outside `tools.files_read_paths`", path.display())).hint(
                self.remedies.hint(
                    "tools.files_read_paths",
                    &Needed::Entry(&parent(path).to_string_lossy()),
                    format!("add {:?} to `files_read_paths` under [tools]", parent(path)),
                ),
            ));
        }
        self.check_confined(path, &self.read, "read")?;
        // Last: a plugin that may not read here must not learn what exists here.
        resolved.check_present()?;
        let is_confined = is_confined(&self.read) || is_confined(&self.bounds);
        Ok(ReadPath(Admitted { path: path.clone(), confined: is_confined, protected: self.protected.clone() }))
    }

    fn admit_write(&self, resolved: &Resolved) -> Result<Wanted, Failure> {
        let wanted = self.admit_change(resolved)?;
        resolved.check_present()?;
        Ok(wanted)
    }

    fn admit_directory(&self, resolved: &Resolved) -> Result<Wanted, Failure> {
        let wanted = self.admit_change(resolved)?;
        // By the text `missing/..` is where it stands; by the system it is nowhere, and may be elsewhere once `missing` is a link.
        let leads_back = |path: &Path| path.components().any(|part| part == Component::ParentDir);
        if leads_back(&resolved.path) || resolved.absent.is_some() && leads_back(&resolved.given) {
            let message = format!("`{}` leads back by `..` from what is not there", resolved.given.display());
            return Err(Failure::failed(message).hint("give the path without `..`"));
        }
        Ok(wanted)
    }

    /// Decides on what is written or made at a path, whether it can be or not.
    fn admit_change(&self, resolved: &Resolved) -> Result<Wanted, Failure> {
        let path = &resolved.path;
        self.refuse_kernel(resolved)?;
        if let Some(root) = self.protected.owned(path) {
            return Err(own(path, root));
        }
        self.check_allowed_paths(path)?;
        self.check_confined(path, &self.write, "write")?;
        let (confined, protected) = (is_confined(&self.write), self.protected.clone());
        Ok(Wanted {
            path: WritePath(Admitted { path: path.clone(), confined, protected }, Expected::Anything),
            reason: self.reason(resolved),
            workspace: resolved.facts.workspace.root.display().to_string(),
            is_closed: self.protected.refuse(path).is_err(),
        })
    }

    /// Why a person is asked about a write.
    fn reason(&self, resolved: &Resolved) -> Option<Reason> {
        let (Resolved { given, path, facts, .. }, asks) = (resolved, self.confirm);
        // A link is obeyed under its own name as well.
        let later = facts.surroundings.later(path).or_else(|| facts.surroundings.later(&normal(given)));
        let later = later.filter(|_| asks >= FilesConfirm::RunsLater).map(Reason::Later);
        // The whole of another place may be what is worked on: a container often starts at its root.
        let is_inside =
            facts.workspace.contains(path) || resolved.there.is_some() && path.starts_with(&facts.workspace.root);
        let outside = (asks >= FilesConfirm::Outside && !is_inside).then_some(Reason::Outside);
        later.or(outside).or((asks == FilesConfirm::Always).then_some(Reason::Always))
    }

    /// The path as given counts too: a link in `/proc` opens whatever a process has open, wherever that is.
    fn refuse_kernel(&self, resolved: &Resolved) -> Result<(), Failure> {
        let kernel = KERNEL.map(PathBuf::from);
        let root = root_of(&normal(&resolved.given), &kernel).or_else(|| root_of(&resolved.path, &kernel));
        root.map_or(Ok(()), |root| {
            let message =
                format!("`{}` is below `{}`, which file tools never access", resolved.given.display(), root.display());
            Err(Failure::denied(message)
                .hint("only regular files outside /proc, /sys and /dev can be read and written"))
        })
    }

    fn check_allowed_paths(&self, path: &Path) -> Result<(), Failure> {
        if !self.allowed.iter().all(|list| list.contains(path)) {
            return Err(Failure::denied(format!("`{}` is outside `tools.files_allowed_paths`", path.display()))
                .hint(self.open_for_writing(parent(path), "", "")));
        }
        let system = root_of(path, &self.protected.system).map(Path::to_owned);
        let sensitive = self.protected.secret(path).map(|secret| secret.root).or(system);
        // Only an entry at or below the sensitive path opens it: whoever lists their home does not mean its keys.
        let is_opened =
            |root: &PathBuf| self.opened.iter().any(|open| path.starts_with(open) && open.starts_with(root));
        match sensitive.filter(|root| !is_opened(root)) {
            None => Ok(()),
            Some(root) => {
                let place = if path == root { path } else { parent(path) };
                Err(Failure::denied(format!("`{}` is below the sensitive path `{}`", path.display(), root.display()))
                    .hint(self.open_for_writing(
                        place,
                        "to allow it, ",
                        "; tools then write only below the directories listed there",
                    )))
            }
        }
    }

    fn check_confined(&self, path: &Path, lists: &[Allowlist], verb: &str) -> Result<(), Failure> {
        if lists.iter().all(|list| list.contains(path)) {
            return Ok(());
        }
        let plugin = &self.plugin;
        Err(Failure::denied(format!("`{plugin}` may not {verb} `{}`", path.display())).hint(self.remedies.hint(
            &format!("plugin.{plugin}.files.{verb}"),
            &Needed::Entry(&parent(path).to_string_lossy()),
            format!("add {:?} to `files.{verb}` under [plugin.{plugin}]", parent(path)),
        )))
    }

    fn open_for_writing(&self, place: &Path, before: &str, effect: &str) -> String {
        let line = format!("{before}add {place:?} to `files_allowed_paths` under [tools]{effect}");
        self.remedies.hint("tools.files_allowed_paths", &Needed::Entry(&place.to_string_lossy()), line)
    }
}

fn is_confined(lists: &[Allowlist]) -> bool {
    lists.iter().any(|list| *list != Allowlist::Any)
}

impl Admitted {
    /// Refuses a second name of a closed file; the first is known by its path.
    fn check_identity(&self, device: u64, inode: u64, links: u64) -> Result<(), Failure> {
        self.check_links(links)?;
        if links <= 1 {
            return Ok(());
        }
        // By device and inode of what was opened: a hard link has a path that no rule knows.
        match self.protected.holding((device, inode)) {
            Ok(None) => Ok(()),
            Ok(Some(root)) => Err(self.second_name(&root)),
            Err(TooMany) => {
                let shown = self.path.display();
                let message = format!(
                    "`{shown}` has {links} names, and one may be that of a closed file: there are too many to compare"
                );
                Err(Failure::denied(message).hint("copy the file, so that it has one name"))
            }
        }
    }

    fn second_name(&self, root: &Path) -> Failure {
        let (shown, root) = (self.path.display(), root.display());
        closed(format!("`{shown}` is closed to tools: it is also a file of `{root}`"))
    }

    fn check_links(&self, links: u64) -> Result<(), Failure> {
        if links <= 1 || !self.confined {
            return Ok(());
        }
        let message =
            format!("`{}` has {links} names, and one may lie outside the granted directories", self.path.display());
        Err(Failure::denied(message).hint("copy the file, so that it has one name"))
    }
}

macro_rules! admitted {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn as_path(&self) -> &Path {
                &self.0.path
            }

            /// The path for messages.
            pub fn shown(&self) -> String {
                self.0.path.display().to_string()
            }

            /// Refuses a file that has further names, where the plugin is confined to some directories.
            pub fn check_links(&self, links: u64) -> Result<(), Failure> {
                self.0.check_links(links)
            }
        }
    )*};
}

admitted!(ReadPath, WritePath);

impl Place {
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path for messages.
    pub fn shown(&self) -> String {
        self.0.display().to_string()
    }
}

impl ReadPath {
    pub fn place(&self) -> Place {
        Place(self.0.path.clone())
    }

    /// Refuses a second name of a closed file, and any second name where the plugin is confined to some directories.
    pub fn check_identity(&self, device: u64, inode: u64, links: u64) -> Result<(), Failure> {
        self.0.check_identity(device, inode, links)
    }

    /// The closed files and directories whose files no other name opens.
    pub fn closed(&self) -> impl Iterator<Item = &Path> {
        self.0.protected.closed()
    }

    /// The refusal of a file that is one of those too.
    pub fn second_name(&self, root: &Path) -> Failure {
        self.0.second_name(root)
    }
}

impl WritePath {
    fn expecting(self, expected: Expected) -> Self {
        Self(self.0, expected)
    }

    /// What the path has to hold when it is written.
    pub fn expected(&self) -> &Expected {
        &self.1
    }

    /// Refuses to replace something else than what was looked at, by a person or by who wrote the change.
    pub fn check_expected(&self, found: &Expected) -> Result<(), Failure> {
        if self.1 == Expected::Anything || self.1 == *found { Ok(()) } else { Err(self.changed()) }
    }

    /// The refusal for it.
    pub fn changed(&self) -> Failure {
        Failure::denied(format!("`{}` changed after it was looked at; nothing was written", self.shown()))
            .hint("read it again, then write it again")
    }
}

impl Wanted {
    /// Why a person is asked; none where nobody is.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The workspace, as people read it.
    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    #[must_use]
    pub fn expected(&self) -> &Expected {
        self.path.expected()
    }

    /// What may be written, once all who have to admit it have. Only what asks them calls this: `policy/writes.rs`, by a rule of `clippy.toml`.
    #[must_use]
    pub fn admitted(self) -> WritePath {
        self.path
    }

    /// The same path, to be written only while it holds that.
    pub fn expecting(self, expected: Expected) -> Self {
        Self { path: self.path.expecting(expected), ..self }
    }

    pub fn as_path(&self) -> &Path {
        self.path.as_path()
    }

    /// Who may write there finds out anyway.
    pub fn place(&self) -> Place {
        Place(self.as_path().to_owned())
    }

    /// The path for messages.
    pub fn shown(&self) -> String {
        self.path.shown()
    }

    /// The closed files and directories whose files no other name shows.
    pub fn closed(&self) -> impl Iterator<Item = &Path> {
        self.path.0.protected.closed()
    }

    /// Whether a person may be shown what the file holds: credentials travel to no client.
    pub fn may_be_shown(&self, device: u64, inode: u64, links: u64) -> bool {
        !self.is_closed && (links <= 1 || matches!(self.path.0.protected.holding((device, inode)), Ok(None)))
    }
}

impl Protected {
    /// Refuses what no tool reads.
    pub fn refuse(&self, path: &Path) -> Result<(), Failure> {
        if self.is_state(path) {
            return Err(own(path, &self.state));
        }
        self.secret(path).map_or(Ok(()), |secret| {
            let (path, root) = (path.display(), secret.root.display());
            Err(closed(format!("`{path}` is closed to tools: `{root}` holds {}", secret.what)))
        })
    }
}

fn closed(message: String) -> Failure {
    Failure::denied(message).hint("no setting opens it to tools; read it yourself if it is needed")
}

fn own(path: &Path, root: &Path) -> Failure {
    Failure::denied(format!("`{}` is below `{}`, which is Toolcrib's own", path.display(), root.display()))
        .hint("no setting opens it to tools")
}

/// Returns the root that `path` is or lies below, by whole components.
fn root_of<'r>(path: &Path, roots: &'r [PathBuf]) -> Option<&'r Path> {
    roots.iter().find(|root| path.starts_with(root)).map(PathBuf::as_path)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
