//! What is ours on disk: directories and files that only this user can have put there, opened by descriptor.
//!
//! Native code, its key, tokens and trust are read from here. A state directory can be somebody else's: of the user whose HOME root
//! kept (`sudo -E`), or in a place where anybody makes directories. So what another user owns, may write or has linked is refused, never
//! used. Where things lie is `dirs.rs`.

mod reading;
mod stamp;

pub use reading::Unreadable;
pub use reading::{Named, open_anywhere, open_itself, open_named, open_named_directory};
pub use stamp::{Stamp, Which};

use crate::text::id::random_id;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, StatxFlags, Uid, makedev};
use rustix::io::Errno;
use rustix::path::Arg;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Opens a directory, and nothing that a link leads to.
pub const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Nobody but the owner may do anything.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// Who may do everything anyway.
const ROOT: u32 = 0;
/// The bits with which others may write, and all bits of others.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS: u32 = 0o077;

/// A directory of ours: no link, this user's, not writable by others. What lies in it is reached by its descriptor, wherever its path
/// leads by then.
pub struct OwnDir {
    directory: OwnedFd,
    path: PathBuf,
    /// Whose the files in it are: this user's, except where root looks after another user's.
    owner: u32,
}

/// Which file something is, as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    pub fn of(file: &File) -> io::Result<Self> {
        let found = rustix::fs::fstat(file)?;
        Ok(Self(found.st_dev, found.st_ino))
    }
}

/// Why something is not accepted as ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// It is a link.
    #[error("`{}` is a link, which is not followed here", .0.display())]
    Link(PathBuf),
    /// It is of another user.
    #[error("`{}` belongs to uid {owner}, and this program runs as uid {}", .path.display(), own_uid())]
    Owner {
        /// What it is.
        path: PathBuf,
        /// The user id.
        owner: u32,
    },
    /// It is not root's, and has to be.
    #[error("`{}` belongs to uid {owner}, not to root", .path.display())]
    NotRoots {
        /// What it is.
        path: PathBuf,
        /// The user id.
        owner: u32,
    },
    /// It is a link, on the way to what only some may have put there.
    #[error("`{}` is a link, which is not followed here", .0.display())]
    LinkOnTheWay(PathBuf),
    /// Others can write it.
    #[error("`{}` can be written by others (mode {mode:04o})", .path.display())]
    Writable {
        /// What it is.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others can read it, and may not.
    #[error("`{}` is open to others (mode {mode:04o})", .path.display())]
    Open {
        /// What it is.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It has a second name.
    #[error("`{}` has another name (a hard link)", .0.display())]
    Linked(PathBuf),
    /// It is of another kind.
    #[error("`{}` is not a {wanted}", .path.display())]
    Kind {
        /// What it is.
        path: PathBuf,
        /// The kind that was looked for.
        wanted: &'static str,
    },
}

impl Foreign {
    /// Returns why an operation failed, if it was for this.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What fixes it.
    pub fn hint(&self) -> String {
        match self {
            // What belongs to the user whose HOME root kept should stay theirs.
            Self::Owner { path, .. } => {
                format!(
                    "run as that user, or with a HOME of your own (`sudo -H`), or: chown {} {}",
                    own_uid(),
                    shown(path)
                )
            }
            Self::NotRoots { path, .. } => format!("chown root {}", shown(path)),
            Self::LinkOnTheWay(path) => format!("put what {} leads to in its place", shown(path)),
            Self::Writable { path, .. } => format!("chmod go-w {}", shown(path)),
            Self::Open { path, .. } => format!("chmod go-rwx {}", shown(path)),
            Self::Link(path) | Self::Linked(path) | Self::Kind { path, .. } => {
                format!("remove {}: it is created again", shown(path))
            }
        }
    }
}

/// Returns an error of this module as a sentence, with what fixes it.
pub fn told(error: &io::Error) -> String {
    Foreign::of(error).map_or_else(|| error.to_string(), |reason| format!("{reason} ({})", reason.hint()))
}

impl From<Foreign> for io::Error {
    fn from(reason: Foreign) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, reason)
    }
}

impl From<OwnDir> for OwnedFd {
    fn from(directory: OwnDir) -> Self {
        directory.directory
    }
}

impl OwnDir {
    /// Opens a directory of ours, or makes it. The way to it is the user's business; the directory itself must be ours.
    ///
    /// # Errors
    ///
    /// [`Foreign`] in what the error holds, or what the system says; either names the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let above = path.parent().ok_or_else(|| named(path, io::ErrorKind::InvalidInput))?;
        let name = path.file_name().ok_or_else(|| named(path, io::ErrorKind::InvalidInput))?;
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, DIRECTORY_MODE);
        builder.recursive(true).create(above).map_err(|error| named(above, error))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = rustix::fs::open(above, flags, Mode::empty()).map_err(|error| named(above, error))?;
        Self::within(above.as_fd(), name, path.to_owned())
    }

    /// Opens a directory of ours in this one, or makes it.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn below(&self, name: &str) -> io::Result<Self> {
        Self::within(self.directory.as_fd(), name.as_ref(), self.path.join(name))
    }

    fn within(above: BorrowedFd<'_>, name: &OsStr, path: PathBuf) -> io::Result<Self> {
        match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(DIRECTORY_MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(named(&path, error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(above, name, flags, Mode::empty()).map_err(|error| {
            match (error, is_link(above, name)) {
                (_, true) => Foreign::Link(path.clone()).into(),
                (Errno::NOTDIR, _) => Foreign::Kind { path: path.clone(), wanted: "directory" }.into(),
                (error, _) => named(&path, error),
            }
        })?;
        // On what was opened: the path may lead elsewhere by now.
        let found = rustix::fs::fstat(&directory).map_err(|error| named(&path, error))?;
        check_owner(&found, &path)?;
        check_mode(found.st_mode, &path, OTHERS_WRITE)?;
        Ok(Self { directory, path, owner: own_uid() })
    }

    /// The directory of a file that a policy names, which is this user's or root's and has to exist, and the file's name in it.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn of_file(file: &Path) -> io::Result<(Self, String)> {
        let name = file.file_name().and_then(OsStr::to_str);
        let (Some(above), Some(name)) = (crate::dirs::directory_of(file), name) else {
            return Err(named(file, io::ErrorKind::InvalidInput));
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(above, flags, Mode::empty()).map_err(|error| named(above, error))?;
        let found = rustix::fs::fstat(&directory).map_err(|error| named(above, error))?;
        if found.st_uid != ROOT {
            check_owner(&found, above)?;
        }
        check_mode(found.st_mode, above, OTHERS_WRITE)?;
        Ok((Self { directory, path: above.to_owned(), owner: own_uid() }, name.to_owned()))
    }

    /// The same for root, where this file in a directory of root's belongs to another user: what is made in it is that user's, too.
    ///
    /// # Errors
    ///
    /// What the system says of the file.
    pub fn for_owner_of(self, name: &str) -> io::Result<Self> {
        if own_uid() != ROOT {
            return Ok(self);
        }
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Self { owner: found.st_uid, ..self }),
            Err(Errno::NOENT) => Ok(self),
            Err(error) => Err(named(&self.path.join(name), error)),
        }
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to what has this name in it, good while this lives, whatever becomes of the directory's own path; and short, as the path of
    /// a socket has to be.
    pub fn reach(&self, name: &str) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(name)
    }

    /// Opens a file of ours for reading.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; a file that is missing is `NotFound`.
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_file(name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a file of ours for appending, and for reading what it ends with; makes it if it is missing, unless it were another user's.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn append(&self, name: &str) -> io::Result<File> {
        let make = if self.is_of_this_user() { OFlags::CREATE } else { OFlags::empty() };
        self.open_file(name.as_ref(), OFlags::RDWR | OFlags::APPEND | make)
    }

    /// Opens a file of ours for reading and for writing over; it has to be there.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; a file that is missing is `NotFound`.
    pub fn update(&self, name: &str) -> io::Result<File> {
        self.open_file(name.as_ref(), OFlags::RDWR)
    }

    /// The length of a file that was opened by this name, if the name still leads to it; it has to be as it had to be then.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn still_has(&self, name: &str, file: FileId) -> io::Result<Option<u64>> {
        let path = || self.path.join(name);
        // Not its times: since Linux 6.13 each write to a file whose times were asked for has to note a new one, which takes as long again.
        let asked = StatxFlags::TYPE
            | StatxFlags::MODE
            | StatxFlags::NLINK
            | StatxFlags::UID
            | StatxFlags::INO
            | StatxFlags::SIZE;
        let found = match rustix::fs::statx(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW, asked) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(|error| named(&path(), error))?,
        };
        if FileId(makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino) != file {
            return Ok(None);
        }
        let marks = Marks { mode: found.stx_mode.into(), owner: found.stx_uid, is_linked: found.stx_nlink > 1 };
        check_own_file(&marks, self.owner, path).map(|()| Some(found.stx_size))
    }

    /// Whether the files in it are this user's: not where root looks after another user's.
    pub fn is_of_this_user(&self) -> bool {
        self.owner == own_uid()
    }

    /// Whether this user may make and rename files in it: of a directory of root's that holds a file of this user's, not.
    pub fn is_writable(&self) -> bool {
        rustix::fs::accessat(&self.directory, ".", Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    }

    /// Gives a file another name, which must be free.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn rename(&self, name: &str, to: &str) -> io::Result<()> {
        let renamed = rustix::fs::renameat_with(&self.directory, name, &self.directory, to, RenameFlags::NOREPLACE);
        renamed.map_err(|error| named(&self.path.join(name), error))
    }

    /// Lets two files change names, at one blow.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn exchange(&self, name: &str, other: &str) -> io::Result<()> {
        let exchanged = rustix::fs::renameat_with(&self.directory, name, &self.directory, other, RenameFlags::EXCHANGE);
        exchanged.map_err(|error| named(&self.path.join(name), error))
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_file(name.as_ref(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Reads a file of ours; none where it is missing.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file = match self.file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| named(&self.path.join(name), error))?;
        Ok(Some(bytes))
    }

    /// Replaces a file, or makes it: whole or not at all.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes, |passing| rustix::fs::renameat(&self.directory, passing, &self.directory, name))
    }

    /// Makes a file whole, unless there is one of that name by now.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn make(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unless_there = |passing: &str| match rustix::fs::renameat_with(
            &self.directory,
            passing,
            &self.directory,
            name,
            RenameFlags::NOREPLACE,
        ) {
            // Network file systems do not know the flag.
            Err(Errno::INVAL) => {
                // A link fails where the name is taken, which is the same promise.
                rustix::fs::linkat(&self.directory, passing, &self.directory, name, AtFlags::empty())?;
                rustix::fs::unlinkat(&self.directory, passing, AtFlags::empty())
            }
            done => done,
        };
        match self.put(name, bytes, unless_there) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// The regular files in it, oldest first, with their sizes. Directories, links and whatever else lies there are passed over.
    ///
    /// # Errors
    ///
    /// What the system says of the directory itself.
    pub fn files(&self) -> io::Result<Vec<(OsString, u64)>> {
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.directory).map_err(|error| named(&self.path, error))? {
            let entry = entry.map_err(|error| named(&self.path, error))?;
            // It may be gone by now.
            let Ok(file) = rustix::fs::statat(&self.directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(file.st_mode).is_file() {
                let changed = (file.st_mtime, file.st_mtime_nsec);
                found.push((changed, OsString::from_vec(entry.file_name().to_bytes().to_vec()), file.st_size));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, name, bytes)| (name, u64::try_from(bytes).unwrap_or(0))).collect())
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let removed = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        removed.map_err(|error| named(&self.path.join(name), error))
    }

    /// Writes a file under a passing name, and has `place` give it its own.
    fn put(&self, name: &str, bytes: &[u8], place: impl Fn(&str) -> rustix::io::Result<()>) -> io::Result<()> {
        let passing = format!(".{}.tmp", random_id());
        let mut file = self.create(&passing)?;
        // Synced before it gets its name: after a crash the name must not lead to an empty file.
        let written = file.write_all(bytes).and_then(|()| file.sync_data()).and_then(|()| Ok(place(&passing)?));
        written.map_err(|error| {
            let _ = rustix::fs::unlinkat(&self.directory, &passing, AtFlags::empty());
            named(&self.path.join(name), error)
        })
    }

    fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let path = self.path.join(name);
        // A FIFO that somebody put here must not keep us waiting, and a terminal must not become ours.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&self.directory, name, flags, Mode::from_raw_mode(FILE_MODE)).map_err(|error| {
                match error {
                    _ if is_link(self.directory.as_fd(), name) => Foreign::Link(path.clone()).into(),
                    // A FIFO or socket that nobody reads, or a directory.
                    Errno::NXIO | Errno::ISDIR => Foreign::Kind { path: path.clone(), wanted: "regular file" }.into(),
                    error => named(&path, error),
                }
            })?;
        if flags.contains(OFlags::EXCL) && !self.is_of_this_user() {
            rustix::fs::fchown(&file, Some(Uid::from_raw(self.owner)), None)?;
        }
        let found = rustix::fs::fstat(&file).map_err(|error| named(&path, error))?;
        check_own_file(&(&found).into(), self.owner, || path).map(|()| file.into())
    }
}

/// What makes a file somebody's own.
struct Marks {
    mode: u32,
    owner: u32,
    /// It has further names.
    is_linked: bool,
}

impl From<&Stat> for Marks {
    fn from(found: &Stat) -> Self {
        Self { mode: found.st_mode, owner: found.st_uid, is_linked: found.st_nlink > 1 }
    }
}

/// Checks that a file is regular, its owner's alone, and has no second name.
fn check_own_file(found: &Marks, owner: u32, path: impl FnOnce() -> PathBuf) -> io::Result<()> {
    let is_file = FileType::from_raw_mode(found.mode).is_file();
    // No name at all: somebody removed or replaced it since it was opened.
    if is_file && found.owner == owner && found.mode & OTHERS == 0 && !found.is_linked {
        return Ok(());
    }
    let path = path();
    if !is_file {
        return Err(Foreign::Kind { path, wanted: "regular file" }.into());
    }
    if found.owner != owner {
        return Err(Foreign::Owner { path, owner: found.owner }.into());
    }
    check_mode(found.mode, &path, OTHERS)?;
    Err(Foreign::Linked(path).into())
}

/// Checks a file that decides what this program does, such as settings or a policy: this user's or root's, and written by nobody else. On
/// what was opened: a path may lead elsewhere by then.
///
/// # Errors
///
/// Who else could have written it.
pub fn check_obeyed(file: &File, path: &Path) -> io::Result<()> {
    let found = rustix::fs::fstat(file)?;
    if found.st_uid != ROOT {
        check_owner(&found, path)?;
    }
    Ok(check_mode(found.st_mode, path, OTHERS_WRITE)?)
}

/// Opens a file that nobody but root can have put where it is: each directory on the way and the file belong to root, nobody else may write
/// them, and none is a link. What is returned is what was checked. (An ACL that lets somebody write shows in the bits of the group.)
///
/// # Errors
///
/// [`Foreign`] in what the error holds, or what the system says; either names the path.
pub fn open_of_root(path: &Path) -> io::Result<File> {
    open_stepwise(path, check_root)
}

/// The digest of all that is read.
pub fn sha256(mut from: impl Read) -> io::Result<[u8; 32]> {
    let (mut digest, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(digest.finalize().into()),
            read => digest.update(&piece[..read]),
        }
    }
}

/// Opens what lies below a directory, by a way that follows no link and leads out of neither the directory nor its file system.
pub fn open_below(top: impl AsFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    // The kernel takes no empty path.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(top, path, flags, Mode::empty(), resolve)
}

/// Opens a file a step at a time, following no link; `check` sees each directory on the way, and the file.
fn open_stepwise(path: &Path, check: impl Fn(&OwnedFd, &Path) -> io::Result<()>) -> io::Result<File> {
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A FIFO in the file's place must not keep us waiting.
    let last = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut parts = path.components().peekable();
    let mut so_far = PathBuf::from(
        parts
            .next()
            .filter(|part| part.as_os_str() == "/")
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is not absolute", path.display()))
            })?
            .as_os_str(),
    );
    let mut opened = rustix::fs::open(&so_far, way, Mode::empty())?;
    check(&opened, &so_far)?;
    while let Some(part) = parts.next() {
        so_far.push(part);
        let flags = if parts.peek().is_some() { way } else { last };
        opened = rustix::fs::openat(&opened, part.as_os_str(), flags, Mode::empty()).map_err(|error| {
            if is_link(opened.as_fd(), part.as_os_str()) {
                Foreign::LinkOnTheWay(so_far.clone()).into()
            } else {
                named(&so_far, error)
            }
        })?;
        check(&opened, &so_far)?;
    }
    Ok(File::from(opened))
}

fn check_root(opened: &OwnedFd, path: &Path) -> io::Result<()> {
    let found = rustix::fs::fstat(opened)?;
    match found.st_uid {
        ROOT => Ok(check_mode(found.st_mode, path, OTHERS_WRITE)?),
        owner => Err(Foreign::NotRoots { path: path.to_owned(), owner }.into()),
    }
}

fn check_owner(found: &Stat, path: &Path) -> Result<(), Foreign> {
    let owner = found.st_uid;
    if owner == own_uid() { Ok(()) } else { Err(Foreign::Owner { path: path.to_owned(), owner }) }
}

fn check_mode(mode: u32, path: &Path, forbidden: u32) -> Result<(), Foreign> {
    let (path, mode) = (path.to_owned(), mode & 0o7777);
    match mode & forbidden {
        0 => Ok(()),
        bits if bits & OTHERS_WRITE != 0 => Err(Foreign::Writable { path, mode }),
        _ => Err(Foreign::Open { path, mode }),
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_link(directory: BorrowedFd<'_>, name: impl Arg) -> bool {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
}

/// What the system says, with the path it says it of.
fn named(path: &Path, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// A path as a shell takes it.
fn shown(path: &Path) -> String {
    crate::text::shell_quote::word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    fn state() -> (tempfile::TempDir, OwnDir) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let own = OwnDir::open(&root.path().join("a/b/state")).expect("a directory");
        (root, own)
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("it is there").permissions().mode() & 0o7777
    }

    fn refusal<T>(outcome: io::Result<T>) -> Option<Foreign> {
        Foreign::of(&outcome.err()?).cloned()
    }

    #[test]
    fn a_directory_is_made_with_all_above_it_for_this_user_alone() {
        let (root, own) = state();
        for made in ["a", "a/b", "a/b/state"] {
            assert_eq!(mode(&root.path().join(made)), 0o700, "{made}");
        }
        assert_eq!(own.path(), root.path().join("a/b/state"));
        assert!(OwnDir::open(own.path()).is_ok(), "it is opened again");
        assert_eq!(mode(own.below("code").expect("a directory").path()), 0o700);
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let (_root, own) = state();
        for writable in [0o770, 0o707, 0o777, 0o1777, 0o720] {
            chmod(own.path(), writable);
            let expected = Foreign::Writable { path: own.path().into(), mode: writable };
            assert_eq!(refusal(OwnDir::open(own.path())), Some(expected));
        }
        chmod(own.path(), 0o755);
        assert!(OwnDir::open(own.path()).is_ok(), "others may look at names");
    }

    #[test]
    fn a_link_in_our_part_of_the_path_is_refused_and_one_above_it_is_the_users() {
        let (root, own) = state();
        let link = root.path().join("link");
        symlink(own.path(), &link).expect("a link");
        assert_eq!(refusal(OwnDir::open(&link)), Some(Foreign::Link(link.clone())));
        std::fs::create_dir(root.path().join("elsewhere")).expect("a directory");
        symlink(root.path().join("elsewhere"), own.path().join("code")).expect("a link");
        assert_eq!(refusal(own.below("code")), Some(Foreign::Link(own.path().join("code"))));
        assert!(OwnDir::open(&link.join("output")).is_ok());
    }

    #[test]
    fn what_stands_in_a_directorys_place_is_refused() {
        let (_root, own) = state();
        own.replace("code", b"a file").expect("a file");
        let expected = Foreign::Kind { path: own.path().join("code"), wanted: "directory" };
        assert_eq!(refusal(own.below("code")), Some(expected));
    }

    #[test]
    fn files_are_for_this_user_alone_and_written_whole() {
        let (_root, own) = state();
        own.replace("a", b"one").expect("a file");
        own.replace("a", b"two").expect("a file");
        assert_eq!(own.read("a").expect("readable"), Some(b"two".to_vec()));
        own.make("b", b"first").expect("a file");
        own.make("b", b"second").expect("it is there already");
        assert_eq!(own.read("b").expect("readable"), Some(b"first".to_vec()));
        own.append("c").and_then(|mut file| file.write_all(b"x")).expect("a line");
        own.append("c").and_then(|mut file| file.write_all(b"y")).expect("a line");
        assert_eq!(own.read("c").expect("readable"), Some(b"xy".to_vec()));
        assert_eq!(own.read("d").expect("nothing"), None);
        assert!(own.create("a").is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists));
        let names = std::fs::read_dir(own.path()).expect("the directory").count();
        assert_eq!((names, ["a", "b", "c"].map(|name| mode(&own.path().join(name)))), (3, [0o600; 3]));
    }

    #[test]
    fn a_file_that_is_open_to_others_linked_or_no_file_is_refused() {
        let (_root, own) = state();
        let at = |name: &str| own.path().join(name);
        for (name, open) in [("readable", 0o640), ("world", 0o604)] {
            own.replace(name, b"x").expect("a file");
            chmod(&at(name), open);
            assert_eq!(refusal(own.read(name)), Some(Foreign::Open { path: at(name), mode: open }));
        }
        own.replace("writable", b"x").expect("a file");
        chmod(&at("writable"), 0o620);
        assert_eq!(refusal(own.append("writable")), Some(Foreign::Writable { path: at("writable"), mode: 0o620 }));
        own.replace("first", b"x").expect("a file");
        std::fs::hard_link(at("first"), at("second")).expect("a link");
        assert_eq!(refusal(own.read("second")), Some(Foreign::Linked(at("second"))));
        symlink("nowhere", at("link")).expect("a link");
        assert_eq!(refusal(own.append("link")), Some(Foreign::Link(at("link"))));
        std::fs::create_dir(at("directory")).expect("a directory");
        let kind = |name| Some(Foreign::Kind { path: at(name), wanted: "regular file" });
        assert_eq!(refusal(own.read("directory")), kind("directory"));
        assert_eq!(refusal(own.append("directory")), kind("directory"));
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn a_fifo_is_refused_without_waiting() {
        let (_root, own) = state();
        rustix::fs::mknodat(&own.directory, "fifo", FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
        let (sender, done) = std::sync::mpsc::channel();
        let path = own.path().join("fifo");
        std::thread::spawn(move || sender.send((refusal(own.read("fifo")), refusal(own.append("fifo")))));
        let kind = Some(Foreign::Kind { path, wanted: "regular file" });
        assert_eq!(done.recv_timeout(Duration::from_secs(10)), Ok((kind.clone(), kind)));
    }

    #[test]
    fn an_open_directory_stays_the_one_it_was() {
        let (root, own) = state();
        std::fs::rename(own.path(), root.path().join("moved")).expect("a new name");
        symlink("/nonexistent", own.path()).expect("a link in its place");
        own.replace("a", b"x").expect("a file");
        assert!(root.path().join("moved/a").exists());
    }

    #[test]
    fn a_refusal_says_what_to_change() {
        let reason = Foreign::Open { path: "/s/it's".into(), mode: 0o644 };
        assert_eq!(told(&reason.into()), r"`/s/it's` is open to others (mode 0644) (chmod go-rwx '/s/it'\''s')");
        let reason = Foreign::Owner { path: "/s".into(), owner: 77 };
        let own = own_uid();
        let expected = format!(
            "`/s` belongs to uid 77, and this program runs as uid {own} (run as that user, or with a HOME of your own (`sudo -H`), or: chown {own} '/s')"
        );
        assert_eq!(told(&reason.into()), expected);
    }
}
