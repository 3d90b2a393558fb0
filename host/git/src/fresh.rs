//! Repositories that commands made in a working tree: made anew from what of them may be taken over, before git is led into one.
//!
//! Git enters each path of the index that is a repository (a submodule, or any other "gitlink"), at any depth. So an index goes over only
//! when all that its new gitlinks lead into is a repository of ours to vouch for, or nothing yet.

use super::apply::{Begun, Report, Side};
use super::config::{self, Rules};
use super::parts::{Part, part};
use super::real::Real;
use super::refs::Refs;
use super::upper::{Change, Entry, Upper};
use base::disk::DIRECTORY;
use base::text::id::random_id;
use filetime::FileTime;
use gix_hash::Kind;
use gix_index::State;
use gix_index::entry::Mode;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, RenameFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A mode of a gitlink as an index holds it, between bytes that may be any: an index without this has none.
const GITLINK: [u8; 4] = [0, 0, 0xE0, 0];
/// Bytes that parsing an index may take at once.
const MOST_ALLOCATED: usize = 1 << 30;

/// The paths of an index that git takes for repositories.
pub(crate) fn gitlinks(index: &[u8]) -> io::Result<BTreeSet<PathBuf>> {
    if index.is_empty() || memchr::memmem::find(index, &GITLINK).is_none() {
        return Ok(BTreeSet::new());
    }
    paths(index, |entry| entry.mode == Mode::COMMIT)
}

/// The paths of an index, of such entries.
pub(crate) fn paths(index: &[u8], is_one: impl Fn(&gix_index::Entry) -> bool) -> io::Result<BTreeSet<PathBuf>> {
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let options = gix_index::decode::Options {
        thread_limit: Some(1),
        alloc_limit_bytes: Some(MOST_ALLOCATED),
        ..gix_index::decode::Options::default()
    };
    let (state, _) = State::from_bytes(index, FileTime::zero(), Kind::Sha1, options).map_err(odd)?;
    let path = |entry: &gix_index::Entry| PathBuf::from(OsStr::from_bytes(entry.path(&state)));
    Ok(state.entries().iter().filter(|entry| is_one(entry)).map(path).collect())
}

/// Nothing was there when a command began that has made all of it.
struct Never;

impl Begun for Never {
    fn was_changed(&self, _: &Real, _: &Path, _: &Path) -> bool {
        false
    }

    fn refs(&self, _: &Path) -> Option<&Refs> {
        None
    }

    fn config(&self, _: &Path) -> Option<&[u8]> {
        None
    }
}

/// What a gitlink of a working tree leads into.
pub(crate) enum Leads {
    /// Nothing that git would enter.
    Nowhere,
    /// A repository that commands made, which is made anew.
    New,
    /// A file that leads to a git directory.
    File(PathBuf),
}

/// Looks at what a gitlink at `path` of the working tree `tree` leads into.
pub(crate) fn leads(tree: &Path, path: &Path) -> io::Result<Leads> {
    let Ok(directory) = open_below(tree, path) else { return Ok(Leads::Nowhere) };
    let found = match rustix::fs::statat(&directory, ".git", AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT) => return Ok(Leads::Nowhere),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Ok(Leads::New),
        FileType::RegularFile => {
            let mut text = String::new();
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&directory, ".git", flags, rustix::fs::Mode::empty())?;
            io::Read::read_to_string(&mut io::Read::take(std::fs::File::from(file), 4096), &mut text)?;
            let to = text.trim_end().strip_prefix("gitdir:").map(str::trim);
            let to = to.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its `.git` leads nowhere"))?;
            Ok(Leads::File(tree.join(path).join(to).canonicalize()?))
        }
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its `.git` is neither a directory nor a file"))
        }
    }
}

/// Leaves at `path` of `tree` what may be there of a repository that commands made: one that is made anew, or a file that leads to what has
/// a gate. Any other file is taken away.
pub fn vouch(tree: &Path, path: &Path, write: &[PathBuf], gated: &[PathBuf], report: &mut Report) -> io::Result<()> {
    let place = tree.join(path).join(".git");
    match leads(tree, path) {
        Ok(Leads::Nowhere) => Ok(()),
        // What an ordinary `git init` or `git clone` makes stays as it is.
        Ok(Leads::New) if is_harmless(tree, path, write).unwrap_or(false) => Ok(()),
        Ok(Leads::New) => make_anew(tree, path, write, report),
        Ok(Leads::File(to)) if gated.iter().any(|gated| to.starts_with(gated)) => Ok(()),
        Ok(Leads::File(to)) => {
            report.told.push(format!(
                "`{}` was taken away: it led to `{}`, which has no gate",
                place.display(),
                to.display()
            ));
            rustix::fs::unlinkat(open_below(tree, path)?, ".git", AtFlags::empty())?;
            Ok(())
        }
        Err(error) => {
            report.told.push(format!("`{}` was taken away: {error}", place.display()));
            rustix::fs::unlinkat(open_below(tree, path)?, ".git", AtFlags::empty())?;
            Ok(())
        }
    }
}

/// Whether nothing in a repository acts by itself or leads git elsewhere.
fn is_harmless(tree: &Path, path: &Path, write: &[PathBuf]) -> io::Result<bool> {
    let upper = Upper::new(open_in(&open_below(tree, path)?, ".git")?);
    let place = tree.join(path).join(".git");
    let rules = Rules { directory: &place, write, is_new: true, is_bare: false };
    let is_so = |entry: &Entry| match (entry.change, part(&entry.path)) {
        (Change::Directory { .. }, _) | (Change::File, Part::Derived) => true,
        (Change::File, Part::Config) => {
            let bytes = upper.read(&entry.path, config::MOST_BYTES).ok();
            let file = bytes.and_then(|bytes| config::parse(&bytes).ok());
            file.is_some_and(|file| {
                config::changes(&config::Values::new(), &config::values(&file))
                    .iter()
                    .all(|change| rules.admits(change))
            })
        }
        (Change::File, kind) => match kind {
            Part::Object | Part::Pack | Part::Ref | Part::PackedRefs | Part::Head | Part::Log | Part::Index => true,
            Part::State => true,
            Part::Config | Part::Derived | Part::Hook | Part::Todo | Part::Strategy | Part::Options => false,
            Part::Words | Part::Refused(_) | Part::Unknown => false,
        },
        (Change::Removed | Change::Odd, _) => false,
    };
    Ok(upper.entries()?.iter().all(is_so))
}

/// Makes the repository anew that commands made at `path` of `tree`: in its place is then what of it may be taken over.
pub(crate) fn make_anew(tree: &Path, path: &Path, write: &[PathBuf], report: &mut Report) -> io::Result<()> {
    let above = open_below(tree, path)?;
    let (old, new) = (format!(".git-{}", random_id()), format!(".git-{}", random_id()));
    rustix::fs::renameat(&above, ".git", &above, &old)?;
    let mut done = || -> io::Result<()> {
        rustix::fs::mkdirat(&above, &new, rustix::fs::Mode::RWXU)?;
        let (real, upper) = (Real::new(open_in(&above, &new)?), Upper::new(open_in(&above, &old)?));
        for part in ["objects", "refs"] {
            real.make(Path::new(part))?;
        }
        let place = tree.join(path).join(".git");
        let side = Side {
            real: &real,
            upper: &upper,
            path: &place,
            at: Path::new(""),
            common: None,
            write,
            is_new: true,
            tree: None,
            gated: &[],
            begun: &Never,
            additions: None,
        };
        side.apply(&upper.entries()?, report);
        rustix::fs::renameat_with(&above, &new, &above, ".git", RenameFlags::NOREPLACE)?;
        Ok(())
    };
    let done = done();
    // What was not taken over is nobody's.
    let rest = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&above)));
    let _ = std::fs::remove_dir_all(rest.join(&old));
    let _ = std::fs::remove_dir_all(rest.join(&new));
    done
}

fn open_below(tree: &Path, path: &Path) -> io::Result<OwnedFd> {
    let top = rustix::fs::openat(CWD, tree, DIRECTORY, rustix::fs::Mode::empty())?;
    Ok(base::disk::open_below(&top, path, DIRECTORY)?)
}

fn open_in(above: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(above, name, DIRECTORY, rustix::fs::Mode::empty())?)
}
