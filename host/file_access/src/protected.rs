//! What is closed to every plugin, or open only by a setting: Toolcrib's own files, credentials, what the system is made of.

use super::credentials::{self, Secret};
use super::{HOME_THERE, There, homes, names, root_of};
use base::dirs::Dirs;
use base::paths::canonical;
use base::unchanged::{Directories, is_missing};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kernel's own trees: not files, and doors to everything else.
pub const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// What the system runs and is configured by.
#[rustfmt::skip]
pub(crate) const SYSTEM: [&str; 17] = [
    "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/boot", "/dev", "/proc", "/sys", "/run",
    "/var/spool/cron", "/System", "/Library", "/private/etc",
];
/// Files of the home that run at the next login.
const LOGIN: [&str; 7] = [".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile"];
/// Files that another name is compared with; more take too long.
const MAX_COMPARED: usize = 200_000;
/// How long nobody looks again which credentials are there, where that was of no use.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

pub struct Protected {
    /// Toolcrib's settings, plugins and state: never written.
    pub own: Vec<PathBuf>,
    always: Vec<PathBuf>,
    /// Keys and state: never read.
    pub state: PathBuf,
    /// Kept output, which a model may read on: the open part of `state`.
    pub output: PathBuf,
    /// Credentials: never read, written only where a setting names them.
    pub secrets: Vec<Secret>,
    /// Directories of snapshots in which copies of them may lie.
    snapshots: Vec<PathBuf>,
    /// Written only where a setting names them.
    pub system: Vec<PathBuf>,
    /// The paths are this machine's.
    is_here: bool,
    /// What was found when somebody looked last.
    present: Mutex<Option<Arc<Present>>>,
}

/// Which of the credentials are there. Of the hundreds of places nearly none is, and each file that a tool opens is compared with those.
struct Present {
    secrets: Vec<usize>,
    directories: Directories,
    looked: Instant,
}

impl Present {
    fn look(secrets: &[Secret]) -> Self {
        let (mut directories, looked) = (Directories::default(), Instant::now());
        let is_there = |(number, secret): (usize, &Secret)| {
            // Also a link, wherever it leads, and what cannot be looked at: both are looked at each time.
            let is_there = !directories.look(&secret.root).is_err_and(|error| is_missing(&error));
            is_there.then_some(number)
        };
        let secrets = secrets.iter().enumerate().filter_map(is_there).collect();
        Self { secrets, directories, looked }
    }
}

/// A device and a file of it.
pub(crate) type Identity = (u64, u64);

impl Protected {
    /// `policies` are the files that hold policy; they count as Toolcrib's own.
    pub fn new(dirs: &Dirs, policies: &[PathBuf]) -> Self {
        let mut system: Vec<PathBuf> = SYSTEM.iter().map(|path| canonical(Path::new(path))).collect();
        system.extend(LOGIN.iter().map(|name| canonical(&dirs.home.join(name))));
        let own = [dirs.config.clone(), dirs.state.clone(), dirs.plugins()].map(|path| canonical(&path));
        let home = canonical(&dirs.home);
        let mut secrets = credentials::secrets(&home, |name| dirs.environment.get(name).map(OsStr::to_owned));
        secrets.extend(homes::secrets(&home, &own));
        Self {
            own: own.iter().cloned().chain(policies.iter().map(|path| canonical(path))).collect(),
            always: own.into(),
            state: canonical(&dirs.state),
            output: canonical(&dirs.output()),
            secrets,
            snapshots: names::snapshots(&home).collect(),
            system,
            is_here: true,
            present: Mutex::default(),
        }
    }

    /// The same with other files that settings name, and what they are.
    pub fn with(mut self, files: &[PathBuf], what: &'static str) -> Self {
        let secret = |path: PathBuf| Secret { root: path, what };
        // By the name, and where it leads now.
        self.secrets.extend(files.iter().flat_map(|file| [file.clone(), canonical(file)]).map(secret));
        // Numbers are of that list.
        self.present = Mutex::default();
        self
    }

    /// The same for a place beyond this machine, by names; what is Toolcrib's own there is not known yet.
    pub fn elsewhere() -> Self {
        let home = Path::new(HOME_THERE);
        let login = LOGIN.iter().map(|name| home.join(name));
        Self {
            own: Vec::new(),
            always: Vec::new(),
            state: PathBuf::new(),
            output: PathBuf::new(),
            secrets: credentials::secrets(home, |_| None),
            snapshots: Vec::new(),
            system: SYSTEM.iter().map(PathBuf::from).chain(login).collect(),
            is_here: false,
            present: Mutex::default(),
        }
    }

    /// Toolcrib's settings, plugins and state, and files that hold policy.
    pub fn own(&self) -> impl Iterator<Item = &Path> {
        self.own.iter().map(PathBuf::as_path)
    }

    /// The same but for what this run alone was told of, such as `--plugins DIR`: commands of another may have written there.
    pub fn always_own(&self) -> impl Iterator<Item = &Path> {
        self.always.iter().map(PathBuf::as_path)
    }

    /// What the system runs and is configured by.
    pub fn system(&self) -> impl Iterator<Item = &Path> {
        self.system.iter().map(PathBuf::as_path)
    }

    /// Credentials, and these directories of Toolcrib's.
    pub fn hidden(&self, own: &[&Path]) -> impl Iterator<Item = PathBuf> {
        self.secrets
            .iter()
            .map(|secret| secret.root.clone())
            .chain(self.snapshots.iter().cloned())
            .chain(own.iter().map(|own| canonical(own)).collect::<Vec<_>>())
    }

    /// All places by which it is decided beyond this machine.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.secrets.iter().map(|secret| &secret.root).chain(&self.system)
    }

    /// The same where each of these roots is known there by its name and by where it leads. A root of which nothing is known becomes the empty path.
    pub fn at(&self, there: &There, roots: &[&PathBuf]) -> Self {
        let found = |places: &'_ [PathBuf]| -> HashMap<PathBuf, PathBuf> {
            roots.iter().map(|root| (*root).clone()).zip(places.iter().cloned()).collect()
        };
        let (named, resolved) = (found(&there.named), found(&there.canonical));
        let place = |places: &HashMap<PathBuf, PathBuf>, root: &PathBuf| places[root].clone();
        let secrets = self.secrets.iter().flat_map(|secret| {
            let at = |places| Secret { root: place(places, &secret.root), what: secret.what };
            [at(&named), at(&resolved)]
        });
        Self {
            own: vec![there.own.clone()],
            always: vec![there.own.clone()],
            state: there.own.clone(),
            output: there.own.join("output"),
            secrets: secrets.filter(|secret| !secret.root.as_os_str().is_empty()).collect(),
            snapshots: Vec::new(),
            system: self.system.iter().map(|root| place(&resolved, root)).collect(),
            is_here: false,
            present: Mutex::default(),
        }
    }

    /// The credentials that a path without links belongs to: by one of its names, in another's home, or because it is by now where one of the
    /// names leads: a directory may become a link while the host runs.
    pub fn secret(&self, path: &Path) -> Option<Secret> {
        if !self.is_here {
            return self.named(path);
        }
        names::find_copy(path, |name| self.named(name)).or_else(|| self.led_to(path))
    }

    fn named(&self, path: &Path) -> Option<Secret> {
        let named = self.secrets.iter().find(|secret| path.starts_with(&secret.root)).cloned();
        named.or_else(|| credentials::in_another_home(path, root_of(path, &self.own).is_some()))
    }

    /// Whether a path without links is one of Toolcrib's keys and state, by one of its names.
    pub fn is_state(&self, path: &Path) -> bool {
        let is_state = |name: &Path| name.starts_with(&self.state) && !name.starts_with(&self.output);
        let is_state = |name: &Path| is_state(name).then_some(());
        if self.is_here { names::find_copy(path, is_state).is_some() } else { is_state(path).is_some() }
    }

    /// What of Toolcrib's own a path without links belongs to, by one of its names.
    pub fn owned(&self, path: &Path) -> Option<&Path> {
        let owned = |name: &Path| root_of(name, &self.own);
        if self.is_here { names::find(path, owned) } else { owned(path) }
    }

    fn led_to(&self, path: &Path) -> Option<Secret> {
        let above: Vec<Identity> = path.ancestors().filter_map(identity).collect();
        let leads_here = |secret: &&Secret| identity(&secret.root).is_some_and(|root| above.contains(&root));
        match self.present() {
            Some(present) => present.secrets.iter().map(|number| &self.secrets[*number]).find(leads_here).cloned(),
            None => self.secrets.iter().find(leads_here).cloned(),
        }
    }

    /// The paths are this machine's.
    pub(crate) fn is_here(&self) -> bool {
        self.is_here
    }

    /// Where credentials are, or what they lead to, by identity.
    pub(crate) fn led(&self) -> HashSet<Identity> {
        let present = self.present();
        let (some, all) = match &present {
            Some(present) => (present.secrets.as_slice(), [].as_slice()),
            None => ([].as_slice(), self.secrets.as_slice()),
        };
        let secrets = some.iter().map(|number| &self.secrets[*number]).chain(all);
        secrets.filter_map(|secret| identity(&secret.root)).collect()
    }

    /// Which of them are there; none where directories change so often that to look for that would take longer than to compare with all.
    fn present(&self) -> Option<Arc<Present>> {
        let known = self.present.lock().clone();
        if let Some(known) = known {
            if known.directories.hold() {
                return Some(known);
            }
            if known.looked.elapsed() < LOOK_PAUSE {
                return None;
            }
        }
        let present = Arc::new(Present::look(&self.secrets));
        *self.present.lock() = Some(present.clone());
        Some(present)
    }

    /// Everything that is never read.
    pub fn closed(&self) -> impl Iterator<Item = &Path> {
        self.secrets.iter().map(|secret| &secret.root).chain([&self.state]).map(PathBuf::as_path)
    }

    /// What holds a closed file that is known by another name, of which it has several; `Err` when that could not be found out.
    pub fn holding(&self, file: Identity) -> Result<Option<PathBuf>, TooMany> {
        self.each_closed(|closed, _| closed == file)
    }

    /// Shows all closed files and how many names each has, until one is what was looked for. Returns where that lies.
    pub(crate) fn each_closed(&self, mut is_it: impl FnMut(Identity, u64) -> bool) -> Result<Option<PathBuf>, TooMany> {
        let mut left = MAX_COMPARED;
        for root in self.closed() {
            if contains(root, &mut is_it, &self.output, &mut left)? {
                return Ok(Some(root.to_owned()));
            }
        }
        Ok(None)
    }
}

/// More files are closed than another name can be compared with.
pub struct TooMany;

fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Whether such a file lies in a tree, but not in the part of it that is open. Links within the tree are not followed.
fn contains(
    root: &Path,
    is_it: &mut impl FnMut(Identity, u64) -> bool,
    open: &Path,
    left: &mut usize,
) -> Result<bool, TooMany> {
    // The root itself may be a link.
    let Ok(found) = std::fs::metadata(root) else { return Ok(false) };
    if !found.is_dir() {
        return Ok(is_it((found.dev(), found.ino()), found.nlink()));
    }
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            *left = left.checked_sub(1).ok_or(TooMany)?;
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() && entry.path() != open {
                directories.push(entry.path());
            } else if found.is_file() && is_it((found.dev(), found.ino()), found.nlink()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, create_dir_all, remove_file};
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_credential_leads_to_is_closed_from_when_it_does() {
        let root = tempfile::tempdir().expect("a directory");
        let dirs = Dirs::below(root.path());
        let home = canonical(&dirs.home);
        create_dir_all(home.join("work")).expect("a directory");
        create_dir(home.join("other")).expect("a directory");
        let protected = Protected::new(&dirs, &[]);
        // As if all was looked at long after it had changed last.
        let look = || {
            let found = Present::look(&protected.secrets);
            let settled = Present { directories: found.directories.settled(), ..found };
            assert!(settled.directories.hold());
            *protected.present.lock() = Some(Arc::new(settled));
        };
        let is_closed = |name: &str| protected.secret(&home.join(name).join("id_ed25519")).is_some();
        look();
        assert!(!is_closed("work") && !is_closed("other"));
        symlink("work", home.join(".ssh")).expect("a link");
        assert!(is_closed("work") && !is_closed("other"));
        look();
        remove_file(home.join(".ssh")).and_then(|()| symlink("other", home.join(".ssh"))).expect("another link");
        assert!(!is_closed("work") && is_closed("other"));
        // Deep below what was not there.
        look();
        create_dir(home.join(".config")).and_then(|()| symlink("../work", home.join(".config/gh"))).expect("a link");
        assert!(is_closed("work"));
    }
}
