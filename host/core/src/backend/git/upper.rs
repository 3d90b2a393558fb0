//! What commands wrote over a git directory: the upper directory of its overlay, read by descriptors.
//!
//! Commands decide what lies there, so nothing is followed, waited for or taken for what its name says.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fgetxattr, fstat, openat2, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries that are looked at in one go.
const MOST_ENTRIES: usize = 200_000;
/// Set by the kernel on a directory that hides what was there before; see the kernel's documentation of overlayfs, `userxattr`.
const OPAQUE: &str = "user.overlay.opaque";

/// What happened to one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    File,
    /// `is_new`: what the real one holds is not there any more.
    Directory {
        is_new: bool,
    },
    Removed,
    /// A link, a socket, a pipe or a device.
    Odd,
}

/// Tells one state of a path from the next.
pub(super) type Stamp = (u64, i64, u64);

/// One path that commands changed.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) change: Change,
    pub(super) stamp: Stamp,
}

/// An upper directory, or one below it.
pub(super) struct Upper(OwnedFd);

impl AsFd for Upper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Upper {
    pub(super) fn new(directory: OwnedFd) -> Self {
        Self(directory)
    }

    /// A directory below it.
    pub(super) fn below(&self, path: &Path) -> io::Result<Self> {
        Ok(Self(open(&self.0, path, OFlags::DIRECTORY)?))
    }

    /// Whether nothing was written.
    pub(super) fn is_untouched(&self) -> bool {
        let Ok(listed) = Dir::read_from(&self.0) else { return false };
        listed.flatten().all(|entry| [&b"."[..], b".."].contains(&entry.file_name().to_bytes()))
    }

    /// All that commands changed, each directory before what it holds.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let (mut entries, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(at) = waiting.pop() {
            let directory =
                if at == Path::new("") { self.0.try_clone() } else { open(&self.0, &at, OFlags::DIRECTORY) };
            // One that a command closed holds nothing that is taken over.
            let Ok(directory) = directory else { continue };
            for listed in Dir::read_from(&directory)? {
                let listed = listed?;
                let name = OsStr::from_bytes(listed.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                let path = at.join(name);
                let (change, stamp) = change(&directory, name)?;
                if let Change::Directory { .. } = change {
                    waiting.push(path.clone());
                }
                entries.push(Entry { path, change, stamp });
                if entries.len() > MOST_ENTRIES {
                    return Err(io::Error::other(format!("more than {MOST_ENTRIES} files were changed at once")));
                }
            }
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// Opens a regular file.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let file = open(&self.0, path, OFlags::NONBLOCK)?;
        if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file.into())
    }

    /// The bytes of a regular file, of at most so many.
    pub(super) fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes")));
        }
        Ok(bytes)
    }
}

fn open(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    Ok(openat2(directory, path, flags, Mode::empty(), resolve)?)
}

fn change(directory: &OwnedFd, name: &OsStr) -> io::Result<(Change, Stamp)> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let change = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Change::File,
        FileType::Directory => {
            let inner = open(directory, Path::new(name), OFlags::DIRECTORY);
            Change::Directory { is_new: inner.map_or(true, |inner| is_opaque(&inner)) }
        }
        FileType::CharacterDevice if found.st_rdev == 0 => Change::Removed,
        FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Fifo
        | FileType::Socket
        | FileType::Symlink
        | FileType::Unknown => Change::Odd,
    };
    Ok((change, (found.st_ino, found.st_ctime, found.st_ctime_nsec)))
}

/// What cannot be asked counts as replaced: then nothing of it is taken over.
fn is_opaque(directory: &OwnedFd) -> bool {
    let mut value = [0; 1];
    match fgetxattr(directory, OPAQUE, &mut value[..]) {
        Ok(length) => value[..length] == *b"y",
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}
