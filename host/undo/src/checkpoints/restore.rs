//! Puts a workspace, or some of its files, back as a checkpoint has it.
//!
//! What is there is kept before, so that this can be undone as well; a file that has changed since the comparison stays. All is done below the
//! workspace's own descriptor, by which no link is followed and no other file system entered.

use super::objects::{Id, Kind, Objects, shown};
use super::tree::{Compared, MODE, each};
use super::walk::Looked;
use super::{Checkpoint, Checkpoints, Difference, Place, Side, Why, everything, user_rules};
use crate::By;
use backend::search::rules::Rules;
use backend::undo::put;
use base::disk::{DIRECTORY, open_below};
use base::text::id::random_id;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More than is kept of any file.
const MOST_BYTES: u64 = 64 << 20;

/// What became of one path: it is as it was, or why it was left as it is.
pub type Done = (PathBuf, Result<(), String>);

/// What it would take to put a workspace back.
pub struct Plan {
    pub checkpoint: Checkpoint,
    /// In the order of their paths.
    pub differences: Vec<Difference>,
    objects: Objects,
    now: Id,
}

impl Plan {
    /// Returns what a file holds, or where a link leads; none of what is not there or not kept.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, for a person.
    pub fn content(&self, side: &Side) -> Result<Option<Vec<u8>>, String> {
        match side {
            Side::File(_, id) | Side::Link(id) => self.blob(id).map(Some),
            Side::Nothing | Side::Directory(_) | Side::Absent => Ok(None),
        }
    }

    fn blob(&self, id: &Id) -> Result<Vec<u8>, String> {
        self.objects.read(id, Kind::Blob).map_err(|error| shown(&error))
    }
}

impl Checkpoints {
    /// Compares a checkpoint with what is there now. What is ignored now counts as well, if the checkpoint has it.
    ///
    /// # Errors
    ///
    /// Why not, for a person.
    pub fn compare(&self, checkpoint: &Checkpoint, home: &Path) -> Result<Plan, String> {
        let _taking = self.taking.lock();
        let place = Place { root: &checkpoint.root, home };
        let fail = |error: io::Error| shown(&error);
        let then = checkpoint.tree().ok_or("its record is damaged")?;
        let store = self.store(place.root).map_err(fail)?;
        let mut also = HashSet::new();
        each(&store.objects, &then, &mut |path, _| {
            also.insert(path);
        })
        .map_err(fail)?;
        let bytes = store.own.read(super::STATS).map_err(fail)?.unwrap_or_default();
        let (looked, _) = store.look(&bytes, place, Some(&also), &self.state).map_err(|not| not.to_string())?;
        let now = match looked {
            Looked::Same(tree) | Looked::Changed { tree, .. } => tree,
        };
        let super::Store { objects, .. } = store.reopened().map_err(fail)?;
        let user = user_rules(home);
        let user = user.as_deref().map(|text| (place.root, text));
        let rules = Rules::new(&everything(), place.root, user).map_err(|failure| failure.message)?;
        let mut compared = Compared { objects: &objects, rules: &rules, root: place.root, found: Vec::new() };
        compared.trees(&then, &now).map_err(fail)?;
        let mut differences = compared.found;
        differences.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(Plan { checkpoint: checkpoint.clone(), differences, objects, now })
    }

    /// Keeps what is there now, and puts back what is `chosen` of a plan; returns what became of each.
    ///
    /// # Errors
    ///
    /// Why nothing was changed.
    pub fn restore(&self, plan: &Plan, by: By<'_>, chosen: &dyn Fn(&Path) -> bool) -> Result<Vec<Done>, String> {
        let _taking = self.taking.lock();
        let root = &plan.checkpoint.root;
        let store = self.store(root).map_err(|error| shown(&error))?;
        if !store.objects.has(&plan.now) {
            return Err("what is there now is not kept any more; try again".into());
        }
        self.record(by, Why::Undo, root, &plan.now).map_err(|error| shown(&error))?;
        drop(store);
        let opened: OwnedFd = rustix::fs::open(root, DIRECTORY, Mode::empty()).map_err(|error| error.to_string())?;
        let wanted: Vec<&Difference> = plan.differences.iter().filter(|one| chosen(&one.path)).collect();
        let mut done: Vec<Done> = Vec::new();
        // What lies in a directory goes before it, and comes after it.
        let (gone, there): (Vec<&Difference>, Vec<&Difference>) =
            wanted.into_iter().partition(|one| one.then == Side::Nothing);
        let turned = |one: &&Difference| matches!(one.now, Side::Directory(_));
        let (first, there): (Vec<&Difference>, Vec<&Difference>) = there.into_iter().partition(turned);
        let mut gone: Vec<&Difference> = gone.into_iter().chain(first).collect();
        gone.sort_unstable_by(|one, other| other.path.cmp(&one.path));
        for one in gone.into_iter().chain(there) {
            done.push((one.path.clone(), plan.put(&opened, one)));
        }
        done.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(done)
    }
}

impl Plan {
    /// Puts one thing back.
    fn put(&self, root: &OwnedFd, one: &Difference) -> Result<(), String> {
        let above = one.path.parent().unwrap_or(Path::new(""));
        let name = one.path.file_name().ok_or("it has no name")?;
        let fail = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP) => "a link is in its way".to_owned(),
            Some(Errno::XDEV) => "another file system is in its way".to_owned(),
            _ => shown(&error),
        };
        let above = if one.then == Side::Nothing { open_below(root, above, DIRECTORY) } else { made(root, above) };
        let above = above.map_err(|error| fail(error.into()))?;
        if !is(&above, name, &one.now).map_err(fail)? {
            return Err("it has changed meanwhile".into());
        }
        self.placed(&above, name, one).map_err(fail)
    }

    fn placed(&self, above: &OwnedFd, name: &OsStr, one: &Difference) -> io::Result<()> {
        let read = |id: &Id| self.objects.read(id, Kind::Blob);
        // What is to be there is read before anything goes.
        let content = match &one.then {
            Side::File(_, id) | Side::Link(id) => read(id)?,
            Side::Nothing | Side::Directory(_) | Side::Absent => Vec::new(),
        };
        let is_over = match (&one.now, &one.then) {
            (Side::Nothing, _) => false,
            (Side::Directory(_), _) => {
                match unlinkat(above, name, AtFlags::REMOVEDIR) {
                    // What is ignored, or too large, stays where it is.
                    Err(Errno::NOTEMPTY) if one.then == Side::Nothing => return Ok(()),
                    removed => removed?,
                }
                false
            }
            (Side::File(..) | Side::Link(_), Side::Nothing | Side::Directory(_)) => {
                unlinkat(above, name, AtFlags::empty())?;
                false
            }
            (Side::File(..) | Side::Link(_), _) => true,
            (Side::Absent, _) => return Err(io::ErrorKind::AlreadyExists.into()),
        };
        match &one.then {
            Side::Nothing | Side::Absent => Ok(()),
            Side::Directory(_) => Ok(mkdirat(above, name, Mode::from_raw_mode(0o777))?),
            Side::File(mode, _) => put(above.as_fd(), name, &content, u32::from(mode & MODE), is_over),
            Side::Link(_) => {
                let to = OsStr::from_bytes(&content);
                if !is_over {
                    return Ok(symlinkat(to, above, name)?);
                }
                let passing = format!(".toolcrib-{}.tmp", random_id());
                symlinkat(to, above, &passing)?;
                Ok(renameat(above, &passing, above, name).inspect_err(|_| {
                    let _ = unlinkat(above, &passing, AtFlags::empty());
                })?)
            }
        }
    }
}

/// Opens a directory of the workspace, and makes those of the way that are missing.
fn made(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    match open_below(root, path, DIRECTORY) {
        Err(Errno::NOENT) => {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::NOENT) };
            match mkdirat(made(root, above)?, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => open_below(root, path, DIRECTORY),
                Err(error) => Err(error),
            }
        }
        opened => opened,
    }
}

/// Whether a name has what the comparison found there.
fn is(above: &OwnedFd, name: &OsStr, side: &Side) -> io::Result<bool> {
    let found = match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        // A directory in the way of a file may have been made for another that was put back.
        Err(Errno::NOENT) => return Ok(*side == Side::Nothing),
        found => FileType::from_raw_mode(found?.st_mode),
    };
    Ok(match side {
        Side::Nothing | Side::Absent => false,
        Side::Directory(_) => found.is_dir(),
        Side::Link(id) => found.is_symlink() && Kind::Blob.id(readlinkat(above, name, Vec::new())?.as_bytes()) == *id,
        Side::File(_, id) => {
            found.is_file() && holds(above, name)?.is_some_and(|content| Kind::Blob.id(&content) == *id)
        }
    })
}

/// The content of a regular file.
fn holds(above: &OwnedFd, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(above, name, flags, Mode::empty())?;
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    File::from(file).take(MOST_BYTES).read_to_end(&mut content)?;
    Ok(Some(content))
}
