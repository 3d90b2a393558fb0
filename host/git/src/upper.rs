//! What commands wrote over a git directory: the upper directory of its overlay, read by descriptors.
//!
//! Commands decide what lies there, so nothing is followed, waited for or taken for what its name says.

use base::disk::{DIRECTORY, open_below};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, StatxFlags, fgetxattr, fstat, statx};
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
pub enum Change {
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
pub type Stamp = (u64, i64, u32);

/// One path that commands changed.
#[derive(Debug)]
pub struct Entry {
    pub path: PathBuf,
    pub change: Change,
    pub stamp: Stamp,
    /// It was taken over already, and is here for what the others mean beside it.
    pub is_done: bool,
}

/// An upper directory, or one below it.
pub struct Upper(OwnedFd);

impl AsFd for Upper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Upper {
    pub fn new(directory: OwnedFd) -> Self {
        Self(directory)
    }

    /// A directory below it.
    pub fn below(&self, path: &Path) -> io::Result<Self> {
        Ok(Self(open_below(&self.0, path, DIRECTORY)?))
    }

    /// Whether nothing was written.
    pub fn is_untouched(&self) -> bool {
        let Ok(listed) = Dir::read_from(&self.0) else { return false };
        listed.flatten().all(|entry| [&b"."[..], b".."].contains(&entry.file_name().to_bytes()))
    }

    /// All that commands changed, each directory before what it holds.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let (mut entries, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(at) = waiting.pop() {
            let directory = open_below(&self.0, &at, DIRECTORY);
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
                entries.push(Entry { path, change, stamp, is_done: false });
                if entries.len() > MOST_ENTRIES {
                    return Err(io::Error::other(format!("more than {MOST_ENTRIES} files were changed at once")));
                }
            }
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// Opens a regular file.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let file = open_below(&self.0, path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file.into())
    }

    /// The bytes of a regular file, of at most so many.
    pub fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        read_most(&mut self.open(path)?, most)
    }
}

/// The bytes of a file, of at most so many.
pub(crate) fn read_most(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes")));
    }
    Ok(bytes)
}

fn change(directory: &OwnedFd, name: &OsStr) -> io::Result<(Change, Stamp)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let change = match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::RegularFile => Change::File,
        FileType::Directory => {
            let inner = open_below(directory, Path::new(name), DIRECTORY);
            Change::Directory { is_new: inner.map_or(true, |inner| is_opaque(&inner)) }
        }
        FileType::CharacterDevice if (found.stx_rdev_major, found.stx_rdev_minor) == (0, 0) => Change::Removed,
        FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Fifo
        | FileType::Socket
        | FileType::Symlink
        | FileType::Unknown => Change::Odd,
    };
    let stamp = match change {
        // The kernel has one file for all that are removed, and changes it with each.
        Change::Removed => Stamp::default(),
        // What is made in one is said by itself.
        Change::Directory { .. } => (found.stx_ino, found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        Change::File | Change::Odd => (found.stx_ino, found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
    };
    Ok((change, stamp))
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
