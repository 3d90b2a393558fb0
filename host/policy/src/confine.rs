//! How commands are confined: from `[confine]` and a place to what a cell there reaches.
//!
//! `shell.rs` decides whether a person is asked, `backend/cell/` makes the cell.

mod ladder;
mod mounts;
mod signs;
mod translated;

pub use signs::Notices;

use super::Policy;
use super::connections::Reachable;
use super::held::{Rules, Watch};
use ::keys::Keyring;
use backend::cell::{Cache, Means, MountPoint, Profile, RESOLVER};
use backend::{self, Backend, Facts, Finished, ProcessSpec, Toolchains, finish};
use base::dirs::Dirs;
use base::envelope::{Failure, Kind};
use base::paths::canonical;
use config::{
    self, Allowlist, Ask, CALL_MARK, CellNetwork, Config, ConfineFloor, ConfineMode, Keys, Needed, Remedies,
    Unconfined, WORKSPACE,
};
use file_access::Protected;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ladder::Unusable;
use ladder::{Ladder, Step};

/// Directories of the home that programs look for elsewhere where a variable says so.
const VARIABLES: [(&str, &str); 4] =
    [(".cache", "XDG_CACHE_HOME"), (".cargo", "CARGO_HOME"), (".npm", "npm_config_cache"), ("go/pkg", "GOMODCACHE")];
/// Where they find those that are missing.
const EMPTY_CACHES: &str = "/run/caches";
/// The one that nearly every program writes.
const CACHE: &str = ".cache";
/// What names the directory of temporary files, which have to go somewhere where `/tmp` is the machine's.
const TEMPORARY: (&str, &str) = ("tmp", "TMPDIR");
/// What lets the steps be used that are not tried otherwise.
const WITHOUT_NETWORK: &str = "set `network = \"none\"` under [confine]";
const PARTIAL: &str = "set `floor = \"partial\"` under [confine] to let that count";

/// How a command runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Confinement {
    /// With all rights of the user, as settings say.
    Off,
    /// In a place that is a wall of its own: a container, another host.
    Elsewhere,
    /// In a cell, or bounded as far as this system can do it and settings let that count.
    Cell(Arc<Profile>),
    /// With all rights of the user, as it cannot be confined: why.
    Unconfined(String),
}

impl Confinement {
    /// The cell that it has to be in.
    pub fn cell(&self) -> Option<&Arc<Profile>> {
        match self {
            Self::Cell(profile) => Some(profile),
            Self::Off | Self::Elsewhere | Self::Unconfined(_) => None,
        }
    }

    /// For the audit trail.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Off => Some("unconfined".into()),
            Self::Elsewhere => None,
            Self::Unconfined(why) => Some(format!("unconfined: {why}")),
            Self::Cell(profile) => Some(format!("{}, {}", profile.words(), profile.bounds())),
        }
    }
}

/// What commands can do at a place, for people.
pub struct Reach {
    /// They are in a cell, or in a place that is a wall of its own.
    pub is_bounded: bool,
    /// What they reach, and why no less.
    pub words: String,
}

impl Policy {
    /// What commands can do at a place. Whether they can be confined there is tried.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached, or they have to be confined there and cannot be.
    pub fn reach<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Result<Reach, Failure>> {
        Box::pin(async move {
            let is_bounded = |confinement: &Confinement| match confinement {
                Confinement::Off | Confinement::Unconfined(_) => false,
                Confinement::Elsewhere | Confinement::Cell(_) => true,
            };
            let confinement = self.confine.at(backend).await?;
            let words = match &confinement {
                Confinement::Elsewhere => {
                    format!("commands have all rights of their user on {}, which bounds them", backend.name())
                }
                Confinement::Cell(profile) => {
                    let asked = if profile.by.is_full() { "" } else { "; a person is asked about each" };
                    let odd = self.confine.unwritable(&*backend.facts().await?);
                    let odd = odd.map(|why| format!("; the workspace is not among them: {why}")).unwrap_or_default();
                    format!("commands are {}{odd}{asked}", confinement.told().unwrap_or_default())
                }
                Confinement::Unconfined(why) => {
                    format!(
                        "commands have this user's full rights, and a person is asked about each: they cannot be confined here: {why}"
                    )
                }
                Confinement::Off => {
                    let could = match self.confine.ladder(&backend.facts().await?) {
                        Ok(ladder) => match ladder.climb(backend).await {
                            (Some(_), _) => {
                                "this system could confine them: set `mode = \"auto\"` under [confine]".into()
                            }
                            (None, unusable) => format!("this system cannot confine them: {}", ladder::told(&unusable)),
                        },
                        Err(failure) => format!("this system cannot confine them: {}", failure.message),
                    };
                    format!("commands have this user's full rights; {could}")
                }
            };
            Ok(Reach { is_bounded: is_bounded(&confinement), words })
        })
    }
}

impl Policy {
    /// The cell that commands run in at a place; none if they run in none.
    ///
    /// # Errors
    ///
    /// As [`Self::reach`].
    pub fn cell<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Result<Option<Arc<Profile>>, Failure>> {
        Box::pin(async move { Ok(self.confine.at(backend).await?.cell().cloned()) })
    }

    /// The steps of confinement that cannot be used at a place, up to the one that can.
    pub fn unusable<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Vec<Unusable>> {
        Box::pin(async move {
            let ladder = match backend.facts().await {
                Ok(facts) if backend.is_this_machine() => self.confine.ladder(&facts),
                Ok(_) | Err(_) => return Vec::new(),
            };
            match ladder {
                Ok(ladder) => ladder.climb(backend).await.1,
                Err(_) => Vec::new(),
            }
        })
    }

    /// Names of the variables that a command of `run_shell` gets at a place: one is asked there.
    ///
    /// # Errors
    ///
    /// As [`Self::reach`], and when it cannot be asked.
    pub fn environment<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Result<Vec<String>, Failure>> {
        Box::pin(async move {
            let cell = self.confine.at(backend).await?.cell().cloned();
            let toolchains = Toolchains::Usable(cell.clone());
            let given = self.config.tools.shell_env.clone();
            let spec = ProcessSpec::shell("exec cat /proc/self/environ", given, "doctor");
            let process = backend.start(ProcessSpec { cell, toolchains, ..spec }).await?;
            let Finished { status, stdout, .. } =
                finish(process).await.map_err(|error| Failure::failed(error.to_string()))?;
            if status != 0 {
                return Err(Failure::failed(format!("`cat /proc/self/environ` exits with {status}")));
            }
            let stdout = String::from_utf8_lossy(&stdout);
            let names: BTreeSet<_> = stdout.split('\0').filter_map(|variable| variable.split('=').next()).collect();
            // The shell has set the last ones for itself.
            let is_given = |name: &&str| !["", CALL_MARK, "PWD", "OLDPWD", "SHLVL", "_"].contains(name);
            Ok(names.into_iter().filter(is_given).map(str::to_owned).collect())
        })
    }

    /// Whether every command at a place runs in a cell of this machine.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn confines_all<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match self.confine.at(backend).await.map_err(|failure| failure.message)? {
                Confinement::Cell(profile) if profile.by.is_full() => Ok(()),
                Confinement::Cell(_) => Err("its commands are only partially confined".into()),
                Confinement::Off => Err("its commands are not confined, as settings say".into()),
                Confinement::Elsewhere => {
                    Err(format!("its commands run on {}, in no cell of this machine", backend.name()))
                }
                Confinement::Unconfined(why) => Err(format!("its commands cannot be confined: {why}")),
            }
        })
    }
}

/// What `[confine]` says, ready to decide.
pub struct Confine {
    settings: config::Confine,
    /// The directories that are named, without links.
    write: Vec<PathBuf>,
    /// What of the home is there; none where all of it is.
    read: Option<Vec<PathBuf>>,
    /// What is never there.
    hide: Vec<PathBuf>,
    /// The part of it that is.
    output: PathBuf,
    protected: Arc<Protected>,
    /// Without links, and as settings have it.
    home: PathBuf,
    named_home: PathBuf,
    /// Directories of this host's own PATH.
    programs: Vec<PathBuf>,
    remedies: Remedies,
    reachable: Arc<Reachable>,
    keyring: Keyring,
    /// What is protected below each directory that can be written.
    names: Arc<Vec<String>>,
    /// What is not held.
    keep: Arc<Vec<String>>,
    watch: Arc<Watch>,
    /// The toolset whose policy this is, and its mounts.
    toolset: Option<String>,
    mounts: Vec<MountPoint>,
    /// What commands reach at the place where they ran last.
    last: Mutex<Option<(Arc<Facts>, Arc<Ladder>)>>,
}

impl Confine {
    /// Prepares what settings say, for the sessions of a toolset if one is named; `watch` knows what commands left under those before.
    ///
    /// # Errors
    ///
    /// When a directory that is to be written is missing, or what is written there runs or decides later.
    pub(super) fn new(
        config: &Config,
        dirs: &Dirs,
        protected: &Arc<Protected>,
        watch: Arc<Watch>,
        toolset: Option<&str>,
    ) -> Result<Self, Failure> {
        let settings = config.confine.clone();
        let path = dirs.environment.get("PATH").map(OsStr::to_owned).unwrap_or_default();
        let mut confine = Self {
            write: Vec::new(),
            read: None,
            hide: protected.hidden(&[&dirs.config, &dirs.state]).chain(settings.hide.iter().cloned()).collect(),
            output: canonical(&dirs.output()),
            protected: protected.clone(),
            home: canonical(&dirs.home),
            named_home: dirs.home.clone(),
            programs: std::env::split_paths(&path).map(|entry| canonical(&entry)).collect(),
            remedies: config.remedies(),
            reachable: Arc::new(Reachable::new(config)),
            keyring: Keyring::new(dirs),
            names: Arc::new(settings.protect.clone()),
            keep: Arc::new(settings.keep.clone()),
            watch,
            toolset: toolset.map(str::to_owned),
            mounts: mounts::of(config, toolset)?,
            last: Mutex::default(),
            settings,
        };
        if confine.settings.mode == ConfineMode::Off {
            return Ok(confine);
        }
        for root in confine.settings.write.iter().filter(|root| *root != Path::new(WORKSPACE)) {
            let odd = |why: String| {
                Failure::invalid(format!("`{}` in `write` under [confine] {why}", root.display()))
                    .hint("name a directory that holds work, and nothing that runs or decides later")
            };
            let found = root.canonicalize().map_err(|error| odd(format!("cannot be used: {error}")))?;
            if !found.is_dir() {
                return Err(odd("is no directory".into()));
            }
            if let Some(why) = confine.never_written(&found, &confine.programs) {
                return Err(odd(format!("cannot be writable: {why}")));
            }
            confine.write.push(found);
        }
        backend::commands_write(&confine.write);
        confine.read = confine.readable()?;
        Ok(confine)
    }

    /// What of the home is there; none where all of it is.
    ///
    /// # Errors
    ///
    /// When something is named that is not in the home.
    fn readable(&self) -> Result<Option<Vec<PathBuf>>, Failure> {
        let Allowlist::Only(list) = &self.settings.read else { return Ok(None) };
        // By the name: a link is read where it is.
        let within = |entry: &PathBuf| entry.strip_prefix(&self.named_home).ok().map(|rest| self.home.join(rest));
        let mut all = Vec::new();
        for entry in list {
            let path = within(entry).unwrap_or_else(|| entry.clone());
            if self.home.starts_with(&path) {
                return Ok(None);
            }
            if !path.starts_with(&self.home) {
                let why = "is not in the home: outside of it all can be read but what `hide` names";
                return Err(Failure::invalid(format!("`{}` in `read` under [confine] {why}", entry.display()))
                    .hint("leave it out"));
            }
            all.push(path);
        }
        Ok(Some(all))
    }

    /// The directories that commands write in besides the workspace.
    pub(super) fn written(&self) -> impl Iterator<Item = &PathBuf> {
        self.write.iter()
    }

    /// Why a directory is not one that confined commands may write in.
    pub(super) fn never_written(&self, root: &Path, programs: &[PathBuf]) -> Option<String> {
        if let Some(why) = self.never_workspace(root) {
            return Some(why);
        }
        if let Some(own) = self.protected.own().find(|own| meets(root, own)) {
            return Some(format!("Toolcrib's own `{}` is there", own.display()));
        }
        // The last entry of a `PATH` may be empty. What commands make in one that lies in the directory is looked at (`held/`).
        let mut programs = programs.iter().filter(|entry| entry.parent().is_some());
        let within = programs.find(|entry| root.starts_with(entry));
        within.map(|entry| format!("programs in `{}` are on PATH", entry.display()))
    }

    /// Why no run of this user's has it as a directory that commands write in, whatever it was told.
    pub(super) fn never_workspace(&self, root: &Path) -> Option<String> {
        if root.parent().is_none() {
            return Some("it is the whole disk".into());
        }
        if self.home.starts_with(root) {
            return Some(if self.home == root { "it is the home" } else { "the home is in it" }.into());
        }
        if let Some(own) = self.protected.always_own().find(|own| meets(root, own)) {
            return Some(format!("Toolcrib's own `{}` is there", own.display()));
        }
        let system = self.protected.system().find(|system| meets(root, system));
        system.map(|system| format!("`{}` is the system's", system.display()))
    }

    /// How commands run at a place; there it is tried, once.
    ///
    /// # Errors
    ///
    /// `unavailable` where they have to be confined, and cannot be, and where their bound of memory cannot be enforced: nobody lets such a
    /// command run, or a project could have one asked about as unconfined that would be confined without that bound.
    pub fn at<'a>(&'a self, backend: &'a dyn Backend) -> BoxFuture<'a, Result<Confinement, Failure>> {
        Box::pin(async move {
            if !backend.is_this_machine() {
                self.needs_no_mounts("they run elsewhere")?;
                return match self.settings.mode {
                    ConfineMode::Off | ConfineMode::Auto => Ok(Confinement::Elsewhere),
                    ConfineMode::Required => {
                        Err(self.required(&format!("commands on {} are not confined", backend.name())))
                    }
                };
            }
            if self.settings.mode == ConfineMode::Off {
                self.needs_no_mounts("they are not confined")?;
                return Ok(Confinement::Off);
            }
            match self.ladder(&backend.facts().await?)?.climb(backend).await {
                (Some(profile), _) => Ok(Confinement::Cell(profile)),
                (None, unusable) => match ladder::unbounded(&unusable) {
                    Some(failure) => Err(failure),
                    None => self.cannot(ladder::told(&unusable)),
                },
            }
        })
    }

    /// How what is typed into the pane runs that this program was started in.
    ///
    /// # Errors
    ///
    /// As [`Self::at`].
    pub(crate) fn in_own_pane(&self) -> Result<Confinement, Failure> {
        self.needs_no_mounts("the pane is the user's")?;
        match self.settings.mode {
            ConfineMode::Off => Ok(Confinement::Off),
            ConfineMode::Auto | ConfineMode::Required => {
                self.cannot("the pane that this program was started in is the user's".into())
            }
        }
    }

    /// Refuses commands that would not find the mounts of their toolset.
    fn needs_no_mounts(&self, why: &str) -> Result<(), Failure> {
        if self.mounts.is_empty() {
            return Ok(());
        }
        let message = format!("commands would not find the mounts of this toolset: {why}");
        Err(Failure::new(Kind::Unavailable, message)
            .hint("mounts need confined commands on this machine, see [confine]"))
    }

    fn cannot(&self, why: String) -> Result<Confinement, Failure> {
        self.needs_no_mounts(&why)?;
        match self.settings.mode {
            ConfineMode::Off | ConfineMode::Auto => Ok(Confinement::Unconfined(why)),
            ConfineMode::Required => Err(self.required(&format!("commands cannot be confined here: {why}"))),
        }
    }

    fn required(&self, why: &str) -> Failure {
        let line =
            "mend that (`toolcrib doctor` tries it), or set `mode = \"auto\"` under [confine]: then a person is asked";
        let hint = self.remedies.hint("confine.mode", &Needed::AtMost("auto"), line);
        Failure::new(Kind::Unavailable, format!("{why}, which `confine.mode = \"required\"` demands")).hint(hint)
    }

    /// The ports of a cell that are published on this machine.
    pub(super) fn published(&self) -> &[u16] {
        &self.settings.publish
    }

    /// What is never there.
    pub fn hidden(&self) -> &[PathBuf] {
        &self.hide
    }

    /// What is not written in directories that a program of others may write in: what runs or decides later.
    ///
    /// # Errors
    ///
    /// With why one of them, without links, is not one to write in.
    pub fn protected_in(&self, write: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
        let refused = write.iter().find_map(|root| Some((root, self.never_written(root, &self.programs)?)));
        if let Some((root, why)) = refused {
            return Err(format!("`{}` cannot be writable: {why}", root.display()));
        }
        Ok(write.iter().flat_map(|root| self.names.iter().map(|name| root.join(name))).collect())
    }

    /// What of that which commands make is held.
    pub fn rules(&self, facts: &Facts) -> Arc<Rules> {
        Arc::new(Rules::new(self.settings.held, &self.keep, &self.names, facts))
    }

    /// What is known of what commands made.
    pub(super) fn watch(&self) -> Arc<Watch> {
        self.watch.clone()
    }

    /// What has the keys of their user.
    pub(super) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Whether commands may have fetched something.
    pub(super) fn has_network(&self) -> bool {
        self.settings.network != CellNetwork::None
    }

    /// Those keys that commands can have used for them.
    fn keys(&self) -> Vec<Keys> {
        let is_served = self.settings.network == CellNetwork::Egress && self.settings.unix_sockets;
        let is_there = |keys: &Keys| match keys {
            Keys::Ssh => self.keyring.has_ssh(),
            Keys::Gpg | Keys::Passwords => true,
        };
        let mut keys = if is_served { self.settings.keys.clone() } else { Vec::new() };
        keys.retain(is_there);
        keys
    }

    /// What ssh needs beside its agent, and is no secret: what the user calls servers, their keys, and which key is for what.
    fn of_ssh(&self) -> Vec<PathBuf> {
        // Where the home is empty, it is so as somebody said.
        if self.read.is_some() || !self.keys().contains(&Keys::Ssh) {
            return Vec::new();
        }
        let ssh = self.home.join(".ssh");
        let entries = std::fs::read_dir(&ssh).into_iter().flatten().flatten();
        let is_public = |name: &OsStr| {
            name == "config" || name == "known_hosts" || Path::new(name).extension().is_some_and(|end| end == "pub")
        };
        let public =
            entries.filter(|entry| is_public(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut public: Vec<_> = public.map(|entry| entry.path()).collect();
        public.sort();
        public
    }

    /// What they may connect to.
    pub(super) fn reachable(&self) -> Arc<Reachable> {
        self.reachable.clone()
    }

    /// Whether a person is asked before commands that are fully confined by this profile.
    pub fn asks(&self, profile: &Profile) -> bool {
        match self.settings.ask {
            Ask::Always => true,
            Ask::Leaving => profile.network == CellNetwork::Full,
        }
    }

    /// Whether a person may let a command out of its cell that was refused something there.
    pub(crate) fn lets_out(&self) -> bool {
        match (self.settings.mode, self.settings.unconfined) {
            (ConfineMode::Auto, Unconfined::Ask) => true,
            // Confined, or not at all.
            (ConfineMode::Required, Unconfined::Ask | Unconfined::Never)
            | (ConfineMode::Off, Unconfined::Ask | Unconfined::Never)
            | (ConfineMode::Auto, Unconfined::Never) => false,
        }
    }

    fn names_workspace(&self) -> bool {
        self.settings.write.iter().any(|root| root == Path::new(WORKSPACE))
    }

    /// Why the workspace is not writable though it should be.
    pub(crate) fn unwritable(&self, facts: &Facts) -> Option<String> {
        let why = self.never_written(&facts.workspace.root, &facts.surroundings.programs);
        why.filter(|_| self.names_workspace())
    }

    /// By which steps commands could be confined at a place of this machine, and what they reach by each.
    ///
    /// # Errors
    ///
    /// When they would begin where nothing is.
    fn ladder(&self, facts: &Arc<Facts>) -> Result<Arc<Ladder>, Failure> {
        let mut last = self.last.lock();
        if let Some((_, ladder)) = last.as_ref().filter(|(of, _)| Arc::ptr_eq(of, facts)) {
            return Ok(ladder.clone());
        }
        let ladder = Arc::new(self.new_ladder(facts)?);
        *last = Some((facts.clone(), ladder.clone()));
        Ok(ladder)
    }

    fn new_ladder(&self, facts: &Facts) -> Result<Ladder, Failure> {
        let own = self.new_profile(facts)?;
        let bwrap = match own.network {
            CellNetwork::Egress | CellNetwork::Full => {
                Err(Step::Bwrap.unusable("it has no way to a network", WITHOUT_NETWORK))
            }
            CellNetwork::None => ladder::bwrap(&facts.surroundings.programs, &own.write)
                .map(|program| Profile { by: Means::Bwrap(program), ..own.clone() }),
        };
        let landlock = match self.settings.floor {
            ConfineFloor::Full => {
                let remedy = self.remedies.hint("confine.floor", &Needed::AtMost("partial"), PARTIAL);
                Err(Step::Landlock.unusable("it does not count as confined", &remedy))
            }
            ConfineFloor::Partial if !own.emptied.is_empty() => {
                let remedy =
                    self.remedies.hint("confine.read", &Needed::AtMost("[]"), "leave `read` under [confine] empty");
                Err(Step::Landlock.unusable("it cannot close the home, as `read` under [confine] says", &remedy))
            }
            ConfineFloor::Partial if !own.mounts.is_empty() => {
                Err(Step::Landlock.unusable("it has no mounts", "a toolset with mounts needs another"))
            }
            ConfineFloor::Partial => Ok(self.partial(facts, own.clone())),
        };
        Ok(Ladder::new(own, bwrap, landlock, self.remedies.clone()))
    }

    /// What is left of a profile where Landlock enforces it.
    fn partial(&self, facts: &Facts, own: Profile) -> Profile {
        let kept = |(name, variable)| Cache::kept(facts.caches().join(name), variable);
        let cache = self.settings.caches.iter().any(|name| name == CACHE).then_some((CACHE, "XDG_CACHE_HOME"));
        let caches = [TEMPORARY].into_iter().chain(cache).map(kept).collect();
        let network = match own.network {
            CellNetwork::None | CellNetwork::Egress => CellNetwork::None,
            CellNetwork::Full => CellNetwork::Full,
        };
        Profile {
            by: Means::Landlock,
            toolset: own.toolset,
            write: own.write,
            caches,
            network,
            unix_sockets: false,
            processes: own.processes,
            memory: own.memory,
            ..Profile::closed()
        }
    }

    /// The directories of which commands have copies: those that are there, and for programs that have a variable for it those that are not.
    fn caches(&self, facts: &Facts, write: &[PathBuf]) -> Vec<Cache> {
        let cache = |name: &String| {
            let place = canonical(&self.home.join(name));
            let own = facts.caches().join(name.replace('/', "-"));
            // What can be written needs no copy, and what holds that would hide it.
            let meets = |root: &PathBuf| place.starts_with(root) || root.starts_with(&place);
            if write.iter().any(meets) || facts.directory.starts_with(&place) {
                return None;
            }
            if place.is_dir() {
                let is_copy = self.read.as_ref().is_none_or(|list| list.iter().any(|entry| place.starts_with(entry)));
                return Some(Cache { place, own, variable: None, is_copy });
            }
            let (_, variable) = VARIABLES.iter().find(|(of, _)| of == name)?;
            let place = Path::new(EMPTY_CACHES).join(name.replace('/', "-"));
            Some(Cache { place, own, variable: Some((*variable).to_owned()), is_copy: false })
        };
        self.settings.caches.iter().filter_map(cache).collect()
    }

    fn new_profile(&self, facts: &Facts) -> Result<Profile, Failure> {
        let settings = &self.settings;
        let root = &facts.workspace.root;
        let is_writable = self.names_workspace() && self.unwritable(facts).is_none();
        let write: Vec<PathBuf> = self.write.iter().chain(is_writable.then_some(root)).cloned().collect();
        // By the name, and where it leads now.
        let hide: BTreeSet<PathBuf> = self.hide.iter().flat_map(|path| [path.clone(), canonical(path)]).collect();
        let hide: Vec<PathBuf> = hide.into_iter().collect();
        if let Some(hidden) = hide.iter().find(|hidden| facts.directory.starts_with(hidden)) {
            let message =
                format!("commands begin in `{}`, and `{}` is hidden", facts.directory.display(), hidden.display());
            return Err(Failure::denied(message).hint("start in another directory, or see `hide` under [confine]"));
        }
        let below = |name: &String| write.iter().map(|root| root.join(name)).collect::<Vec<_>>();
        let protect = settings.protect.iter().flat_map(below).collect();
        let resolver = (settings.network == CellNetwork::Full).then(|| canonical(Path::new(RESOLVER)));
        let staged = facts.staged();
        let show = [&self.output, &self.home, root, &facts.directory, &staged].into_iter().cloned().chain(resolver);
        let show = show.chain(facts.surroundings.programs.iter().cloned());
        let show = show.chain(self.read.iter().flatten().cloned()).chain(self.of_ssh());
        let emptied: Vec<PathBuf> = self.read.is_some().then(|| self.home.clone()).into_iter().collect();
        // The whole home is not shown because commands begin there.
        let is_emptied = |path: &Path| emptied.iter().any(|home| home.starts_with(path));
        let is_written = |path: &Path| write.iter().any(|root| path.starts_with(root));
        let show = show.filter(|path| !is_written(path) && !is_emptied(path)).collect();
        let (network, processes, memory) = (settings.network, settings.processes, settings.memory.bytes());
        let (unix_sockets, debug) = (settings.unix_sockets, settings.debug);
        let ports = if network == CellNetwork::Egress { settings.ports.clone() } else { Vec::new() };
        let keys = self.keys();
        let caches = self.caches(facts, &write);
        // The home, and what lies beside the workspace; not the whole disk.
        let beside = root.parent().filter(|beside| beside.parent().is_some());
        let around = [Some(self.home.as_path()), beside].into_iter().flatten();
        let around = around.filter(|place| !is_emptied(place) && !is_written(place)).map(Path::to_owned).collect();
        let profile = Profile {
            toolset: self.toolset.clone(),
            around,
            mounts: self.mounts.clone(),
            write,
            emptied,
            hide,
            show,
            protect,
            caches,
            network,
            ports,
            keys,
            unix_sockets,
            debug,
            processes,
            memory,
            ..Profile::closed()
        };
        mounts::check(&profile, &self.home)?;
        // A pane reads its profile from a file of text.
        let paths = [&profile.write, &profile.around, &profile.hide, &profile.show, &profile.protect];
        let mounts = profile.mounts.iter().flat_map(|mount| [&mount.from, &mount.at]);
        let odd = paths.into_iter().flatten().chain(mounts).find(|path| path.to_str().is_none()).cloned();
        if let Some(odd) = odd {
            let message = format!("`{}` is not UTF-8, so commands cannot be confined here", odd.display());
            return Err(Failure::new(Kind::Unavailable, message).hint("rename it, or start in another directory"));
        }
        Ok(profile)
    }
}

/// Whether one is in the other.
fn meets(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
