//! Regular files of this machine: found by path, opened by directory handles with no link followed.
//!
//! A path is resolved first; `access/lib.rs` decides on the resolved path; reading and writing take only what it admitted.
//! A link that somebody plants between those steps is refused, not followed.

use super::temporary::Temporary;
use super::undo::{self, Replaced};
use super::{Before, Entry, EntryKind, Facts, FileText, Listing};
use base::envelope::{Failure, Kind};
use base::paths::{canonical, normal};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use file_access::{Expected, Place, ReadPath, Resolved, Wanted, WritePath};
use rustix::fs::{Gid, Uid};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How often a file that others replace meanwhile is opened anew.
const OPENINGS: u32 = 10;
/// Entries of a directory that is listed.
pub(super) const MOST_ENTRIES: usize = 100_000;
/// Linux's bound for a path, in bytes.
const PATH_BYTES: usize = 4096;

/// Finds the absolute path without links that `path` names; a file that does not exist yet counts by its directory.
pub(super) fn resolve(path: &str, facts: Arc<Facts>) -> Result<Resolved, Failure> {
    let given = absolute(path, &facts.directory, &facts.home)?;
    let (found, absent) = match std::fs::canonicalize(&given) {
        Ok(found) => (found, None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match new_file(&given, path) {
            Ok(new) => (new, None),
            Err(absent) => (canonical(&normal(&given)), Some(absent)),
        },
        Err(error) => (canonical(&normal(&given)), Some(failure(path, &error))),
    };
    Ok(Resolved { given, path: found, absent, facts, there: None })
}

pub fn absolute(path: &str, directory: &Path, home: &Path) -> Result<PathBuf, Failure> {
    if path.trim().is_empty() {
        return Err(Failure::invalid("path is empty").hint("give the path of a file"));
    }
    if path.contains('\0') {
        return Err(Failure::invalid("path contains a NUL byte"));
    }
    if path.len() > PATH_BYTES {
        return Err(Failure::invalid(format!("path is {} bytes long (limit: {PATH_BYTES} bytes)", path.len())));
    }
    Ok(match path.strip_prefix("~/") {
        // A second slash does not leave the home.
        Some(below) => home.join(below.trim_start_matches('/')),
        None if path == "~" => home.to_owned(),
        None => directory.join(path),
    })
}

fn new_file(given: &Path, path: &str) -> Result<PathBuf, Failure> {
    let (Some(parent), Some(Component::Normal(name))) = (given.parent(), given.components().next_back()) else {
        return Err(Failure::failed(format!("`{path}` does not name a file")));
    };
    if path.ends_with('/') || path.ends_with("/.") {
        return Err(Failure::failed(format!(
            "`{path}` ends like a directory and does not exist; only files can be read and written"
        )));
    }
    Ok(std::fs::canonicalize(parent).map_err(|error| failure(path, &error))?.join(name))
}

/// Reads a piece of a regular file.
pub(super) fn read(path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure> {
    let shown = path.shown();
    let fail = |error| failure(&shown, &error);
    let (mut file, size) = opened(path)?;
    let mut bytes = Vec::new();
    if offset < size {
        file.seek(SeekFrom::Start(offset)).map_err(fail)?;
        file.take(max_bytes as u64).read_to_end(&mut bytes).map_err(fail)?;
    }
    Ok(FileText { bytes, size })
}

/// Opens a regular file that may be read, and says how large it is.
pub(super) fn opened(path: &ReadPath) -> Result<(std::fs::File, u64), Failure> {
    let shown = path.shown();
    let fail = |error| failure(&shown, &error);
    let (directory, name) = open_parent(path.as_path()).map_err(fail)?;
    let opened = open_regular(&directory, name, OpenOptions::new().read(true), &shown)?;
    let (file, metadata) = opened.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
    path.check_identity(metadata.dev(), metadata.ino(), metadata.nlink())?;
    Ok((file.into_std(), metadata.len()))
}

/// Looks at a regular file that is to be replaced.
pub(super) fn look(path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
    let shown = path.shown();
    let fail = |error| failure(&shown, &error);
    let (directory, name) = open_parent(path.as_path()).map_err(fail)?;
    let found = match directory.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Before::New),
        found => found.map_err(fail)?,
    };
    regular(&found, &shown)?;
    // It need not be readable to be replaced.
    let Ok(Some((file, found))) = open_regular(&directory, name, OpenOptions::new().read(true), &shown) else {
        return Ok(Before::There { size: found.len(), content: None, stamp: stamp(&found) });
    };
    let may_be_shown = path.may_be_shown(found.dev(), found.ino(), found.nlink()) && found.len() <= max_bytes as u64;
    let mut content = Vec::new();
    if may_be_shown {
        (&file).take(max_bytes as u64).read_to_end(&mut content).map_err(fail)?;
    }
    // Marked after it was read, and only as what it was before: what changed meanwhile has another time.
    let (before, after) = (stamp(&found), stamp(&file.metadata().map_err(fail)?));
    if before != after {
        return Err(Failure::failed(format!("`{shown}` changes while it is read")).hint("try again"));
    }
    Ok(Before::There { size: found.len(), content: may_be_shown.then_some(content), stamp: after })
}

/// Changes with the file and with its content; nobody sets the last part but the system.
pub(super) fn stamp(found: &Metadata) -> String {
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()].map(|part| part.to_string());
    format!("{}:{}:{}:{}", found.dev(), found.ino(), found.len(), times.join(":"))
}

/// Replaces a regular file, or makes it: a file without a name, synced, takes its name. Returns what it took the place of.
pub(super) fn write(path: &WritePath, content: &[u8]) -> Result<Replaced, Failure> {
    let shown = path.shown();
    let fail = |error| failure(&shown, &error);
    let (directory, name) = open_parent(path.as_path()).map_err(fail)?;
    // Renaming asks only the directory; a file that its owner made read-only stays as it is.
    let replaced = || {
        let opened = open_regular(&directory, name, OpenOptions::new().write(true), &shown);
        opened.map(|opened| opened.map(|(_, found)| found))
    };
    let found = |replaced: &Option<Metadata>| {
        replaced.as_ref().map_or(Expected::New, |replaced| Expected::Marked(stamp(replaced)))
    };
    let before = replaced()?;
    path.check_expected(&found(&before))?;
    let mut file = Temporary::new(&directory).map_err(fail)?;
    let mut was = Replaced::Nothing;
    if let Some(before) = before {
        path.check_links(before.nlink())?;
        keep_mode_and_owner(file.file(), &before).map_err(fail)?;
        was = undo::was(&directory, name, &before, &shown);
    }
    file.file().write_all(content).map_err(fail)?;
    // After a power cut the name leads to the old content or the new, never to half of one. Which of both is not worth a second wait for the disk:
    // editors and git do not sync the directory either.
    file.file().sync_data().map_err(fail)?;
    match path.expected() {
        Expected::Anything => file.replace(name).map_err(fail)?,
        Expected::New => file.appear(name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => path.changed(),
            _ => fail(error),
        })?,
        Expected::Marked(_) => {
            path.check_expected(&found(&replaced()?))?;
            file.replace(name).map_err(fail)?;
        }
    }
    Ok(was)
}

/// The first entries of a directory.
pub(super) fn list(path: &ReadPath, max: usize) -> Result<Listing, Failure> {
    let shown = path.shown();
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::NotADirectory => not_a_directory(&shown),
        _ => failure(&shown, &error),
    };
    let directory = open_directory(path.as_path()).map_err(fail)?;
    let mut names = Vec::new();
    for found in directory.entries().map_err(fail)? {
        names.push(found.map_err(fail)?.file_name());
        if names.len() > MOST_ENTRIES {
            return Err(too_many_entries(&shown));
        }
    }
    let total = names.len() as u64;
    names.sort_unstable();
    names.truncate(max);
    // One that is gone by now is left out.
    let entry = |name: OsString| directory.symlink_metadata(&name).ok().map(|found| entry(name, &found));
    Ok(Listing { entries: names.into_iter().filter_map(entry).collect(), total })
}

/// What a path leads to.
pub(super) fn stat(path: &Place) -> Result<Entry, Failure> {
    let fail = |error| failure(&path.shown(), &error);
    let Some(name) = path.as_path().file_name() else {
        let found = open_directory(path.as_path()).and_then(|root| root.dir_metadata()).map_err(fail)?;
        return Ok(entry("/".into(), &found));
    };
    let (directory, _) = open_parent(path.as_path()).map_err(fail)?;
    Ok(entry(name.to_owned(), &directory.symlink_metadata(name).map_err(fail)?))
}

fn entry(name: OsString, found: &Metadata) -> Entry {
    let kind = match found.file_type() {
        kind if kind.is_symlink() => EntryKind::Link,
        kind if kind.is_dir() => EntryKind::Directory,
        kind if kind.is_file() => EntryKind::File,
        _ => EntryKind::Other,
    };
    let size = if kind == EntryKind::File { found.len() } else { 0 };
    let modified_ms = u64::try_from(found.mtime() * 1000 + found.mtime_nsec() / 1_000_000).ok();
    Entry { name, kind, size, modified_ms }
}

/// Makes a directory and those above it.
pub(super) fn make_directory(path: &WritePath) -> Result<bool, Failure> {
    let shown = path.shown();
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::NotADirectory => not_a_directory(&shown),
        _ => failure(&shown, &error),
    };
    let mut directory = root().map_err(fail)?;
    let mut is_made = false;
    for step in path.as_path().components() {
        let Component::Normal(step) = step else { continue };
        let made = match directory.create_dir(step) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            // What is there need not be writable.
            Err(_) if directory.symlink_metadata(step).is_ok() => false,
            Err(error) => return Err(fail(error)),
        };
        is_made |= made;
        directory = directory.open_dir_nofollow(step).map_err(fail)?;
    }
    Ok(is_made)
}

/// Opens an absolute path's directory, a step at a time, following no link.
pub(super) fn open_directory(path: &Path) -> io::Result<Dir> {
    path.components().try_fold(root()?, |directory, step| match step {
        Component::Normal(step) => directory.open_dir_nofollow(step),
        _ => Ok(directory),
    })
}

fn root() -> io::Result<Dir> {
    Dir::open_ambient_dir("/", ambient_authority())
}

/// Opens the directory that a path is in.
pub(super) fn open_parent(path: &Path) -> io::Result<(Dir, &OsStr)> {
    let missing = || io::Error::from(io::ErrorKind::IsADirectory);
    let (parent, name) = (path.parent().ok_or_else(missing)?, path.file_name().ok_or_else(missing)?);
    Ok((open_directory(parent)?, name))
}

/// Opens a regular file, and looks at it by its name; none where nothing has that name.
///
/// How many names a file has counts only together with one of them: of a link to a file elsewhere that is removed as soon as it was opened,
/// the file itself says that it has one name, and that is the other.
pub(super) fn open_regular(
    directory: &Dir,
    name: &OsStr,
    options: &mut OpenOptions,
    shown: &str,
) -> Result<Option<(File, Metadata)>, Failure> {
    let fail = |error| failure(shown, &error);
    let found = || match directory.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map_err(fail).and_then(|found| regular(&found, shown).map(|()| Some(found))),
    };
    // Opening a FIFO must not wait for its other end.
    options.follow(FollowSymlinks::No).custom_flags(libc::O_NONBLOCK);
    for _ in 0..OPENINGS {
        // Opening a FIFO or a device does something to it, so its type is looked at before; that it may have changed since, after.
        if found()?.is_none() {
            return Ok(None);
        }
        let file = match directory.open_with(name, options) {
            // It went meanwhile; another may have come.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(fail)?,
        };
        let opened = file.metadata().map_err(fail)?;
        if let Some(named) = found()?
            && (opened.dev(), opened.ino()) == (named.dev(), named.ino())
        {
            return Ok(Some((file, named)));
        }
    }
    Err(Failure::failed(format!("`{shown}` was replaced each time that it was opened")).hint("try again"))
}

fn regular(metadata: &Metadata, shown: &str) -> Result<(), Failure> {
    let kind = metadata.file_type();
    match kind {
        _ if kind.is_file() => Ok(()),
        _ if kind.is_symlink() => Err(is_link(shown)),
        _ if kind.is_dir() => Err(is_directory(shown)),
        _ => Err(not_regular(shown)),
    }
}

/// Set-user-id and its like are not carried over to content that a tool wrote.
fn keep_mode_and_owner(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mode = replaced.permissions().mode() & 0o777;
    file.set_permissions(Permissions::from_std(std::fs::Permissions::from_mode(mode)))?;
    let (owner, group) = (Uid::from_raw(replaced.uid()), Gid::from_raw(replaced.gid()));
    // Only the superuser can; anyone else owns what they replace.
    let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    Ok(())
}

pub(super) fn is_link(path: &str) -> Failure {
    Failure::failed(format!("`{path}` became a symbolic link meanwhile, or is a loop of links"))
}

pub(super) fn is_directory(path: &str) -> Failure {
    Failure::failed(format!("`{path}` {IS_DIRECTORY}")).hint("list it with run_shell `ls -la`, or name a file in it")
}

pub(super) fn not_a_directory(path: &str) -> Failure {
    Failure::failed(format!("`{path}` {NOT_DIRECTORY}"))
}

pub(super) fn too_many_entries(path: &str) -> Failure {
    Failure::limit(format!("`{path}` has more than {MOST_ENTRIES} entries"))
        .hint("list it with run_shell, for example by `find`")
}

pub(super) fn not_regular(path: &str) -> Failure {
    Failure::failed(format!("`{path}` is not a regular file")).hint("only regular files can be read and written")
}

/// The ends of what is said of a path, for those who have only a code to give.
const MISSING: &str = "no such file or directory";
const CLOSED: &str = "permission denied by the system";
const PART_NOT_DIRECTORY: &str = "a part of the path is not a directory";
const NOT_DIRECTORY: &str = "is not a directory, or a part of it is not";
const IS_DIRECTORY: &str = "is a directory";
const TOO_LONG: &str = "a part of the path is longer than the file system accepts (255 bytes)";

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFault {
    Missing,
    Closed,
    NotDirectory,
    IsDirectory,
    NameTooLong,
}

/// What a failure says of its path, if it says one of these.
pub fn path_fault(failure: &Failure) -> Option<PathFault> {
    if failure.kind != Kind::ExecutionFailed {
        return None;
    }
    let faults = [
        (MISSING, PathFault::Missing),
        (CLOSED, PathFault::Closed),
        (PART_NOT_DIRECTORY, PathFault::NotDirectory),
        (NOT_DIRECTORY, PathFault::NotDirectory),
        (IS_DIRECTORY, PathFault::IsDirectory),
        (TOO_LONG, PathFault::NameTooLong),
    ];
    faults.into_iter().find(|(words, _)| failure.message.ends_with(words)).map(|(_, fault)| fault)
}

pub(super) fn failure(path: &str, error: &io::Error) -> Failure {
    let failed = |what: &str| Failure::failed(format!("`{path}`: {what}"));
    match error.kind() {
        io::ErrorKind::NotFound => failed(MISSING).hint("check the path; its directory must exist"),
        io::ErrorKind::PermissionDenied => failed(CLOSED),
        io::ErrorKind::NotADirectory => failed(PART_NOT_DIRECTORY),
        io::ErrorKind::IsADirectory => is_directory(path),
        io::ErrorKind::InvalidFilename => failed(TOO_LONG),
        // The standard library has no stable name for it yet.
        _ if error.raw_os_error() == Some(libc::ELOOP) => is_link(path),
        // A FIFO or socket that nobody reads, opened for writing.
        _ if error.raw_os_error() == Some(libc::ENXIO) => not_regular(path),
        _ => failed(&error.to_string()),
    }
}
