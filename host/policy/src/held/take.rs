//! Takes a file out of a directory that commands write, and puts one there: by descriptors, whatever its path leads to by then.
//!
//! What is taken has another name first, so that what is read is what is removed, and nothing is lost where something fails in between.

use base::disk::{self, Stamp};
use base::text::id::random_id;
use base::text::sanitize;
use git::Blob;
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, openat, readlinkat, renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a file that is kept elsewhere; a larger one stays beside its place.
pub(super) const MOST_BYTES: u64 = 1 << 20;
/// Bytes of one that lies beside its place and is known by its digest.
const MOST_DIGESTED: u64 = 256 << 20;
/// How often it is looked whether a file is closed that is to be taken out, and how long is waited in between.
const TIMES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);
/// As `asm-generic/fcntl.h` has it.
const F_SETSIG: libc::c_int = 10;
/// What names begin and end with that are given here. A program that knows none of them obeys no such file, also where it takes all of a directory
/// for its user's word (Roo does so with `.roo/rules`).
const PASSING: (&str, &str) = (".held-", ".tmp");
/// Bits of a mode that are put back. None of them gives rights of others.
const MODE: u32 = 0o777;

/// What is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Content {
    Text {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// It is large: it lies in its directory under this name. The digest is that of its bytes; none where there are too many.
    Aside {
        name: OsString,
        sha256: Option<[u8; 32]>,
    },
}

impl Content {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text { bytes, .. } => bytes.len(),
            Self::Link(_) | Self::Aside { .. } => 0,
        }
    }

    /// What git has of it.
    pub(super) fn blob(&self) -> Option<Blob> {
        match self {
            Self::Text { bytes, .. } => Some(Blob { is_link: false, bytes: bytes.clone() }),
            Self::Link(to) => Some(Blob { is_link: true, bytes: to.as_os_str().as_bytes().to_vec() }),
            Self::Aside { .. } => None,
        }
    }

    /// What tells it from all others.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        match self {
            Self::Text { bytes, .. } => Some(Sha256::digest(bytes).into()),
            Self::Link(to) => {
                Some(Sha256::new().chain_update("link ").chain_update(to.as_os_str().as_bytes()).finalize().into())
            }
            Self::Aside { sha256, .. } => *sha256,
        }
    }

    /// As a person reads it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
            Self::Link(to) => format!("(a link to `{}`)", sanitize::visible_line(&to.to_string_lossy())),
            Self::Aside { name, .. } => {
                format!("(too large to be shown: it lies beside its place as `{}`)", name.to_string_lossy())
            }
        }
    }
}

/// What has a name now.
pub(super) fn look(directory: impl AsFd, name: &OsStr) -> Option<(Metadata, Stamp)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = File::from(openat(directory, name, flags, Mode::empty()).ok()?).metadata().ok()?;
    let stamp = Stamp::of(&found);
    Some((found, stamp))
}

/// Opens a file only to name it.
pub(super) fn open(directory: impl AsFd, name: &OsStr) -> Option<OwnedFd> {
    openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Lets a directory be read by its user, where it is one of this name.
pub(super) fn unclose(above: impl AsFd, name: &OsStr) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(directory) = openat(above, name, flags, Mode::empty())
        && let Ok(found) = rustix::fs::fstat(&directory)
    {
        // By its descriptor: another directory may have its name by now.
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let _ = rustix::fs::chmod(path, Mode::from_raw_mode((found.st_mode & 0o777) | 0o700));
    }
}

/// How many names a file has.
pub(super) fn links(found: &Metadata) -> u64 {
    found.nlink()
}

/// Reads a file of at most so many bytes, or a link.
pub(super) fn read(directory: impl AsFd, name: &OsStr, most: u64) -> io::Result<Content> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => {
            let to = readlinkat(&directory, name, Vec::new())?;
            return Ok(Content::Link(OsString::from_vec(to.into_bytes()).into()));
        }
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Content::Text { bytes, mode: found.mode() & MODE })
}

/// The digest of a file, unless it is too large or no file.
fn digest(directory: impl AsFd, name: &OsStr) -> Option<[u8; 32]> {
    let file = File::from(open_to_read(directory, name)?);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > MOST_DIGESTED {
        return None;
    }
    disk::sha256(file.take(MOST_DIGESTED)).ok()
}

/// What a file is that may be large.
pub(super) fn read_any(directory: impl AsFd, name: &OsStr) -> Content {
    let aside = || Content::Aside { name: name.to_owned(), sha256: digest(&directory, name) };
    read(&directory, name, MOST_BYTES).unwrap_or_else(|_| aside())
}

/// Whether a name is one that is given here to what has none of its own.
pub(super) fn is_passing(name: &OsStr) -> bool {
    let id = name.as_bytes().strip_prefix(PASSING.0.as_bytes());
    // Once they had no end.
    let id = id.map(|id| id.strip_suffix(PASSING.1.as_bytes()).unwrap_or(id));
    id.is_some_and(|id| id.len() == random_id().len() && id.iter().all(u8::is_ascii_hexdigit))
}

fn passing() -> OsString {
    format!("{}{}{}", PASSING.0, random_id(), PASSING.1).into()
}

/// Takes a file out, once `hold` has it; none where it is gone.
pub(super) fn out<T>(
    directory: impl AsFd,
    name: &OsStr,
    hold: impl FnOnce(&Content) -> io::Result<T>,
) -> io::Result<Option<T>> {
    let aside = passing();
    let moved = match renameat(&directory, name, &directory, &aside) {
        // A command closed its directory.
        Err(Errno::ACCESS) => {
            let mode = rustix::fs::fstat(&directory)?.st_mode;
            rustix::fs::fchmod(&directory, Mode::from_raw_mode((mode & 0o7777) | 0o700))?;
            renameat(&directory, name, &directory, &aside)
        }
        moved => moved,
    };
    match moved {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let lies = |error: io::Error| {
        io::Error::new(error.kind(), format!("{error}; it lies beside its place as `{}`", aside.to_string_lossy()))
    };
    // What somebody is about to write would be lost.
    wait_until_closed(&directory, &aside);
    let content = read_any(&directory, &aside);
    let held = hold(&content).map_err(lies)?;
    match content {
        Content::Text { .. } | Content::Link(_) => unlinkat(&directory, &aside, AtFlags::empty())?,
        Content::Aside { .. } => {}
    }
    Ok(Some(held))
}

/// Whether a file is empty, and somebody has it open to write it.
pub(super) fn is_begun(directory: impl AsFd, name: &OsStr) -> bool {
    look(&directory, name).is_some_and(|(found, _)| found.is_file() && found.len() == 0)
        && open_to_read(directory, name).is_some_and(|file| is_being_written(&file))
}

fn open_to_read(directory: impl AsFd, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty()).ok()
}

/// Waits until nobody has a file open to write it, but not for long.
fn wait_until_closed(directory: impl AsFd, name: &OsStr) {
    let Some(file) = open_to_read(directory, name) else { return };
    for _ in 0..TIMES {
        if !is_being_written(&file) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether somebody has a file open to write it: then the kernel grants no lease. Where it knows none it cannot be told.
#[expect(unsafe_code, reason = "no library has leases")]
fn is_being_written(file: &OwnedFd) -> bool {
    let file = file.as_raw_fd();
    // SAFETY: system calls on a descriptor that lives as long as they last. Whoever opens the file meanwhile has the kernel send a signal that
    // is ignored, and not the one that ends a process.
    unsafe {
        if libc::fcntl(file, F_SETSIG, libc::SIGURG) != 0 {
            return false;
        }
        if libc::fcntl(file, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            libc::fcntl(file, libc::F_SETLEASE, libc::F_UNLCK);
            return false;
        }
    }
    io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}

/// Puts back what was there.
pub(super) fn put(directory: impl AsFd, name: &OsStr, content: &Content) -> io::Result<()> {
    place(&directory, content, |from| renameat(&directory, from, &directory, name))
}

/// Puts something where nothing is.
pub(super) fn add(directory: impl AsFd, name: &OsStr, content: &Content) -> io::Result<()> {
    place(&directory, content, |from| renameat_with(&directory, from, &directory, name, RenameFlags::NOREPLACE))
}

/// Removes what lies beside its place.
pub(super) fn remove(directory: impl AsFd, content: &Content) -> io::Result<()> {
    match content {
        Content::Text { .. } | Content::Link(_) => Ok(()),
        Content::Aside { name, .. } => match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        },
    }
}

fn place(directory: impl AsFd, content: &Content, rename: impl Fn(&OsStr) -> rustix::io::Result<()>) -> io::Result<()> {
    let passing = passing();
    let from = match content {
        Content::Text { bytes, mode } => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&directory, &passing, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(bytes)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & MODE))?;
            &passing
        }
        Content::Link(to) => {
            symlinkat(to, &directory, &passing)?;
            &passing
        }
        Content::Aside { name, sha256 } => {
            if sha256.is_none() || digest(&directory, name) != *sha256 {
                let lies = name.to_string_lossy();
                return Err(io::Error::other(format!(
                    "`{lies}` is not what was held: look at it, and move it yourself"
                )));
            }
            return Ok(rename(name)?);
        }
    };
    rename(from).map_err(|error| {
        let _ = unlinkat(&directory, from, AtFlags::empty());
        error.into()
    })
}
