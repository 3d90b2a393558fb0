//! Which files a plugin may read and write: decided on the path that was resolved, and only what was admitted can be opened.
//!
//! Finding and opening is `backend/files.rs`.

use crate::config::{Allowlist, Config, PluginRights};
use crate::dirs::Dirs;
use crate::envelope::Failure;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A path as it was given and what it names, on the backend that resolved it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Absolute, links not followed.
    pub given: PathBuf,
    /// Absolute, without any link.
    pub path: PathBuf,
    /// Why there can be no file of this name. Told only to a plugin that may know: who may not read a place does not learn what is there.
    pub absent: Option<Failure>,
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
pub(crate) const HOME_THERE: &str = "/~";

impl Resolved {
    fn check_present(&self) -> Result<(), Failure> {
        self.absent.clone().map_or(Ok(()), Err)
    }
}

/// A path that policy admitted for reading. Made only here.
#[derive(Clone)]
pub struct ReadPath(Admitted);

/// A path that policy admitted for writing. Made only here.
#[derive(Clone)]
pub struct WritePath(Admitted);

#[derive(Clone)]
struct Admitted {
    path: PathBuf,
    /// Only below some directories: then a second name of a file from elsewhere does not count as being there.
    confined: bool,
}

/// What one plugin may do with files.
#[derive(Clone)]
pub struct FilesGrant {
    /// The rules as they are written, for a place beyond this machine.
    named: Rules,
    /// The rules on this machine.
    here: Rules,
}

/// What binds one plugin at one place.
#[derive(Clone)]
struct Rules {
    plugin: String,
    /// A path lies within every one of these lists.
    read: Vec<Allowlist>,
    write: Vec<Allowlist>,
    /// The same for `tools.files_allowed_paths`, which binds writing.
    allowed: Vec<Allowlist>,
    /// Sensitive directories that the user has named, and so opened for writing.
    opened: Vec<PathBuf>,
    protected: Arc<Protected>,
}

/// What is closed to every plugin, or open only by a setting.
pub(crate) struct Protected {
    /// Toolcrib's settings, plugins and state: never written.
    own: Vec<PathBuf>,
    /// Keys and state: never read.
    state: PathBuf,
    /// Kept output, which a model may read on: the open part of `state`.
    output: PathBuf,
    /// Keys of other services: never read, written only where a setting names them.
    secret: Vec<PathBuf>,
    /// Written only where a setting names them.
    system: Vec<PathBuf>,
    /// The paths are this machine's.
    is_here: bool,
}

/// The kernel's own trees: not files, and doors to everything else.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Below the home: keys of other services.
const SECRET: [&str; 5] = [".ssh", ".gnupg", ".aws", ".kube", ".docker"];
/// What the system runs and is configured by.
#[rustfmt::skip]
const SYSTEM: [&str; 17] = [
    "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/boot", "/dev", "/proc", "/sys", "/run",
    "/var/spool/cron", "/System", "/Library", "/private/etc",
];
/// Files of the home that run at the next login.
const LOGIN: [&str; 7] = [".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile"];

impl Protected {
    /// `policies` are the files that hold policy; they count as Toolcrib's own.
    pub(crate) fn new(dirs: &Dirs, policies: &[PathBuf]) -> Self {
        let home = |names: &[&str]| names.iter().map(|name| canonical(&dirs.home.join(name))).collect::<Vec<_>>();
        let mut system: Vec<PathBuf> = SYSTEM.iter().map(|path| canonical(Path::new(path))).collect();
        system.extend(home(&LOGIN));
        let own = [dirs.config.clone(), dirs.state.clone(), dirs.plugins()];
        Self {
            own: own.iter().chain(policies).map(|path| canonical(path)).collect(),
            state: canonical(&dirs.state),
            output: canonical(&dirs.output()),
            secret: SECRET.map(|name| canonical(&dirs.home).join(name)).into(),
            system,
            is_here: true,
        }
    }

    /// The same for a place beyond this machine, by names; what is Toolcrib's own there is not known yet.
    fn elsewhere() -> Self {
        let home = |names: &[&str]| names.iter().map(|name| Path::new(HOME_THERE).join(name)).collect::<Vec<_>>();
        let mut system: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        system.extend(home(&LOGIN));
        Self {
            own: Vec::new(),
            state: PathBuf::new(),
            output: PathBuf::new(),
            secret: home(&SECRET),
            system,
            is_here: false,
        }
    }

    /// Keys are protected under their name and where it leads now: a directory may become a link while the host runs.
    fn secret_root(&self, path: &Path) -> Option<&Path> {
        let covers = |root: &&PathBuf| path.starts_with(root) || self.is_here && path.starts_with(canonical(root));
        self.secret.iter().find(covers).map(PathBuf::as_path)
    }
}

impl FilesGrant {
    /// Links in the directories of settings are resolved here, once.
    pub(super) fn new(plugin: &str, rights: &PluginRights, config: &Config, protected: Arc<Protected>) -> Self {
        let named = Rules {
            plugin: plugin.into(),
            read: rights.read.clone(),
            write: rights.write.clone(),
            allowed: config.allowed_paths(),
            opened: config.opened_paths().to_vec(),
            protected: Arc::new(Protected::elsewhere()),
        };
        let here = Rules { protected, ..named.map(canonical) };
        Self { named, here }
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
        self.rules(resolved).admit_read(resolved)
    }

    /// Decides on writing.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that would allow it where one would.
    pub fn admit_write(&self, resolved: &Resolved) -> Result<WritePath, Failure> {
        self.rules(resolved).admit_write(resolved)
    }

    fn rules(&self, resolved: &Resolved) -> Cow<'_, Rules> {
        resolved.there.as_ref().map_or(Cow::Borrowed(&self.here), |there| Cow::Owned(self.named.at(there)))
    }
}

impl Rules {
    /// All directories by which it is decided.
    fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        let lists = [&self.read, &self.write, &self.allowed].into_iter().flatten();
        let listed = lists.filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) => Some(paths),
        });
        let protected = [&self.protected.secret, &self.protected.system];
        listed.flatten().chain(&self.opened).chain(protected.into_iter().flatten())
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
            read: lists(&self.read),
            write: lists(&self.write),
            allowed: lists(&self.allowed),
            opened: self.opened.iter().map(|path| change(path)).collect(),
            protected: self.protected.clone(),
        }
    }

    /// The rules at a place beyond this machine. A root of which that place says nothing stays closed.
    fn at(&self, there: &There) -> Self {
        let canonical: HashMap<&PathBuf, &PathBuf> = self.roots().zip(&there.canonical).collect();
        let resolved = |path: &Path| canonical.get(&path.to_owned()).map_or_else(PathBuf::new, |path| (*path).clone());
        let named: HashMap<&PathBuf, &PathBuf> = self.roots().zip(&there.named).collect();
        let secret = &self.protected.secret;
        // Keys are protected under their name and where it leads.
        let by_name = secret.iter().filter_map(|path| named.get(path).map(|path| (*path).clone()));
        let protected = Protected {
            own: vec![there.own.clone()],
            state: there.own.clone(),
            output: there.own.join("output"),
            secret: by_name.chain(secret.iter().map(|path| resolved(path))).collect(),
            system: self.protected.system.iter().map(|path| resolved(path)).collect(),
            is_here: false,
        };
        Self { protected: Arc::new(protected), ..self.map(resolved) }
    }

    fn admit_read(&self, resolved: &Resolved) -> Result<ReadPath, Failure> {
        self.refuse_kernel(resolved)?;
        self.refuse_protected(&resolved.path)?;
        self.check_confined(&resolved.path, &self.read, "read")?;
        resolved.check_present()?;
        Ok(ReadPath(Admitted { path: resolved.path.clone(), confined: is_confined(&self.read) }))
    }

    fn admit_write(&self, resolved: &Resolved) -> Result<WritePath, Failure> {
        let path = &resolved.path;
        self.refuse_kernel(resolved)?;
        if let Some(root) = root_of(path, &self.protected.own) {
            return Err(own(path, root));
        }
        self.check_allowed_paths(path)?;
        self.check_confined(path, &self.write, "write")?;
        resolved.check_present()?;
        Ok(WritePath(Admitted { path: path.clone(), confined: is_confined(&self.write) }))
    }

    /// The path as given counts too: a link in `/proc` that leads elsewhere is a door nobody should go through.
    fn refuse_kernel(&self, resolved: &Resolved) -> Result<(), Failure> {
        let kernel = KERNEL.map(PathBuf::from);
        let root = root_of(&normal(&resolved.given), &kernel).or_else(|| root_of(&resolved.path, &kernel));
        root.map_or(Ok(()), |root| {
            let message =
                format!("`{}` is below `{}`, which files never reach", resolved.given.display(), root.display());
            Err(Failure::denied(message)
                .hint("only regular files outside /proc, /sys and /dev can be read and written"))
        })
    }

    fn refuse_protected(&self, path: &Path) -> Result<(), Failure> {
        let Protected { state, output, .. } = &*self.protected;
        if path.starts_with(state) && !path.starts_with(output) {
            return Err(own(path, state));
        }
        self.protected.secret_root(path).map_or(Ok(()), |root| {
            let message = format!("`{}` is below `{}`, where keys are kept", path.display(), root.display());
            Err(Failure::denied(message).hint("no setting opens it to tools; read it yourself if it is needed"))
        })
    }

    fn check_allowed_paths(&self, path: &Path) -> Result<(), Failure> {
        if !self.allowed.iter().all(|list| list.contains(path)) {
            return Err(Failure::denied(format!("`{}` is outside `tools.files_allowed_paths`", path.display()))
                .hint(format!("add {:?} to `files_allowed_paths` under [tools]", parent(path))));
        }
        let sensitive = root_of(path, &self.protected.system).or_else(|| self.protected.secret_root(path));
        // Only an entry at or below the sensitive path opens it: whoever lists their home does not mean its keys.
        let is_opened = |root: &&Path| self.opened.iter().any(|open| path.starts_with(open) && open.starts_with(root));
        match sensitive.filter(|root| !is_opened(root)) {
            None => Ok(()),
            Some(root) => {
                let place = if path == root { path } else { parent(path) };
                Err(Failure::denied(format!("`{}` is below the sensitive path `{}`", path.display(), root.display()))
                    .hint(format!(
                        "to allow it, add {:?} to `files_allowed_paths` under [tools]; tools then write only below the directories listed there",
                        place
                    )))
            }
        }
    }

    fn check_confined(&self, path: &Path, lists: &[Allowlist], verb: &str) -> Result<(), Failure> {
        if lists.iter().all(|list| list.contains(path)) {
            return Ok(());
        }
        let plugin = &self.plugin;
        Err(Failure::denied(format!("`{plugin}` may not {verb} `{}`", path.display()))
            .hint(format!("add {:?} to `files.{verb}` under [plugin.{plugin}]", parent(path))))
    }
}

fn is_confined(lists: &[Allowlist]) -> bool {
    lists.iter().any(|list| *list != Allowlist::Any)
}

impl Admitted {
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
            pub(crate) fn as_path(&self) -> &Path {
                &self.0.path
            }

            /// The path for messages.
            pub(crate) fn shown(&self) -> String {
                self.0.path.display().to_string()
            }

            /// Refuses a file that has further names, where the plugin is confined to some directories.
            pub(crate) fn check_links(&self, links: u64) -> Result<(), Failure> {
                self.0.check_links(links)
            }
        }
    )*};
}

admitted!(ReadPath, WritePath);

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

/// Follows links as far as the path exists; the rest stays as it is.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Removes `.` and `..` by text alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
        normal
    })
}
