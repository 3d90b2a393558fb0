//! The real git directory, which commands never write: what is done there is done by a descriptor of it, whatever its path leads to by then.

use super::upper::Upper;
use base::disk::Stamp;
use base::text::id::random_id;
use filetime::FileTime;
use gix_lock::acquire::Fail;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::iter;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a directory is made that somebody removes again.
const MOST_TRIES: u32 = 100;
/// How long a lock that a git of the person's holds is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A git directory, or one within it.
pub struct Real {
    directory: OwnedFd,
    /// Leads to the directory as long as this lives.
    reach: PathBuf,
}

impl Real {
    pub fn new(directory: OwnedFd) -> Self {
        let reach = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Self { directory, reach }
    }

    /// A directory below it.
    pub fn below(&self, path: &Path) -> io::Result<Self> {
        Ok(Self::new(self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?))
    }

    /// The same, made where it is missing.
    pub(crate) fn make(&self, path: &Path) -> io::Result<Self> {
        self.make_directories(path)?;
        self.below(path)
    }

    /// A path that leads to the directory as long as this lives, for libraries that take one.
    pub fn path(&self) -> &Path {
        &self.reach
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        // What is opened by its path alone takes no such flag.
        let waits = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
        let flags = flags | waits | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat2(&self.directory, path, flags, mode, resolve)?)
    }

    fn make_directories(&self, path: &Path) -> io::Result<()> {
        let mut above: Vec<&Path> = path.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
        above.reverse();
        for directory in above {
            match rustix::fs::mkdirat(&self.directory, directory, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn make_way(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |above| self.make_directories(above))
    }

    /// What is there; none where nothing is.
    pub fn look(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match self.open(path, OFlags::PATH) {
            Ok(found) => Ok(Some(File::from(found).metadata()?)),
            Err(error) if base::unchanged::is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn stamp(&self, path: &Path) -> Option<Stamp> {
        // It is compared, and decides on no file: links on the way are followed.
        Stamp::at(&self.directory, path).ok()
    }

    pub fn has(&self, path: &Path) -> bool {
        self.look(path).is_ok_and(|found| found.is_some())
    }

    /// The bytes of a file, of at most so many; none where it is missing.
    pub fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open(path, OFlags::RDONLY) {
            Ok(file) => File::from(file),
            Err(error) if base::unchanged::is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Adds a file that is not there yet, if the copy passes a check; `is_synced` where it has to outlive a loss of power.
    pub(crate) fn add(
        &self,
        path: &Path,
        mut from: impl Read,
        is_synced: bool,
        check: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        // Git clears away what is left of such a name.
        let passing = path.with_file_name(format!("tmp_obj_{}", random_id()));
        let mut made = || -> io::Result<()> {
            let mut file = self.create(&passing)?;
            io::copy(&mut from, &mut file)?;
            check(&mut file)?;
            if is_synced {
                file.sync_data()?;
            }
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444))?;
            match rustix::fs::renameat_with(&self.directory, &passing, &self.directory, path, RenameFlags::NOREPLACE) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => self.unlink(&passing),
                Err(error) => Err(error.into()),
            }
        };
        made().inspect_err(|_| _ = self.unlink(&passing))
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let mut tries = 0;
        loop {
            self.make_way(path)?;
            match self.open(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                // A `gc` of the person's removes directories that are empty.
                Err(error) if base::unchanged::is_missing(&error) && tries < MOST_TRIES => tries += 1,
                opened => return Ok(opened?.into()),
            }
        }
    }

    /// The same by taking the file itself out of what commands wrote: for a repository that is theirs.
    pub(crate) fn move_in(&self, from: &Upper, path: &Path) -> io::Result<()> {
        self.make_way(path)?;
        Ok(rustix::fs::renameat_with(from, path, &self.directory, path, RenameFlags::NOREPLACE)?)
    }

    pub(crate) fn make_executable(&self, path: &Path) -> io::Result<()> {
        let file = self.open(path, OFlags::RDONLY)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(0o755))?)
    }

    /// Replaces a file whole, under the lock that git takes for it.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.replace_if(path, || Ok(Some(bytes.to_vec()))).map(drop)
    }

    /// The same with what is decided on under the lock; `false` where that is nothing.
    pub(crate) fn replace_if(
        &self,
        path: &Path,
        decide: impl FnOnce() -> io::Result<Option<Vec<u8>>>,
    ) -> io::Result<bool> {
        self.replace_with(path, || Ok(decide()?.map(|bytes| (bytes, None))))
    }

    /// The same with the time at which it was modified.
    pub(crate) fn replace_at(
        &self,
        path: &Path,
        decide: impl FnOnce() -> io::Result<Option<(Vec<u8>, FileTime)>>,
    ) -> io::Result<bool> {
        self.replace_with(path, || Ok(decide()?.map(|(bytes, modified)| (bytes, Some(modified)))))
    }

    fn replace_with(
        &self,
        path: &Path,
        decide: impl FnOnce() -> io::Result<Option<(Vec<u8>, Option<FileTime>)>>,
    ) -> io::Result<bool> {
        self.make_way(path)?;
        let mode = self.look(path)?.map(|found| found.permissions());
        let lock = gix_lock::File::acquire_to_update_resource(
            self.reach.join(path),
            Fail::AfterDurationWithBackoff(PATIENCE),
            None,
            0,
        );
        let mut lock = lock.map_err(|error| io::Error::new(io::ErrorKind::WouldBlock, error.to_string()))?;
        let Some((bytes, modified)) = decide()? else { return Ok(false) };
        lock.with_mut(|file| file.write_all(&bytes))?;
        if let Some(mode) = mode {
            std::fs::set_permissions(lock.lock_path(), mode)?;
        }
        if let Some(modified) = modified {
            filetime::set_file_mtime(lock.lock_path(), modified)?;
        }
        lock.commit().map_err(|failed| failed.error)?;
        Ok(true)
    }

    /// Adds to the end of a file.
    pub(crate) fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.make_way(path)?;
        let file = self.open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        File::from(file).write_all(bytes)
    }

    /// Removes a file; fine where it is missing.
    pub(crate) fn unlink(&self, path: &Path) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, path, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes whatever is there, with all that it holds.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        if !self.look(path)?.is_some_and(|found| found.is_dir()) {
            return self.unlink(path);
        }
        std::fs::remove_dir_all(self.reach.join(path))
    }

    /// The git directories within it: of linked working trees and of submodules.
    pub(crate) fn within(&self, most: usize) -> Vec<PathBuf> {
        let trees = self.directories(Path::new("worktrees")).into_iter().map(|name| Path::new("worktrees").join(name));
        let (mut found, mut next) = (vec![PathBuf::from("modules")], 0);
        let mut within: Vec<PathBuf> = trees.collect();
        while next < found.len() && found.len() < most {
            let at = found[next].clone();
            next += 1;
            let is_one = self.has(&at.join("HEAD")) && self.has(&at.join("objects"));
            let below = if is_one { at.join("modules") } else { at.clone() };
            if is_one {
                within.push(at);
            }
            found.extend(self.directories(&below).into_iter().map(|name| below.join(name)));
        }
        within.truncate(most);
        within
    }

    /// Removes locks that were made then, which nobody holds any more.
    pub fn remove_locks(&self, then: Range<i64>) {
        for at in iter::once(PathBuf::new()).chain(self.within(usize::MAX)) {
            let here = std::fs::read_dir(self.reach.join(&at)).into_iter().flatten().flatten();
            let here = here.map(|entry| at.join(entry.file_name()));
            for path in here.chain(self.files(&at.join("refs")).unwrap_or_default()) {
                let is_lock = path.extension() == Some("lock".as_ref());
                if is_lock && self.stamp(&path).is_some_and(|stamp| then.contains(&stamp.changed().0)) {
                    let _ = self.unlink(&path);
                }
            }
        }
    }

    /// The directories below one, at most so many.
    pub(crate) fn directories_below(&self, path: &Path, most: usize) -> Vec<PathBuf> {
        let (mut found, mut next) = (vec![path.to_owned()], 0);
        while next < found.len() && found.len() < most {
            let at = found[next].clone();
            found.extend(self.directories(&at).into_iter().map(|name| at.join(name)));
            next += 1;
        }
        found.truncate(most);
        found.split_off(1)
    }

    /// The names of the directories in one.
    pub(crate) fn directories(&self, path: &Path) -> Vec<OsString> {
        let listed = std::fs::read_dir(self.reach.join(path)).into_iter().flatten().flatten();
        listed
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name())
            .collect()
    }

    /// The files below a directory.
    pub(crate) fn files(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let (mut files, mut waiting) = (Vec::new(), vec![path.to_owned()]);
        while let Some(at) = waiting.pop() {
            let directory = match self.open(&at, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(directory) => directory,
                Err(error) if base::unchanged::is_missing(&error) => continue,
                Err(error) => return Err(error),
            };
            for listed in Dir::read_from(&directory)? {
                let listed = listed?;
                let name = Path::new(OsStr::from_bytes(listed.file_name().to_bytes()));
                match listed.file_type() {
                    FileType::Directory if name != Path::new(".") && name != Path::new("..") => {
                        waiting.push(at.join(name))
                    }
                    FileType::RegularFile => files.push(at.join(name)),
                    FileType::Directory
                    | FileType::Symlink
                    | FileType::Fifo
                    | FileType::Socket
                    | FileType::CharacterDevice
                    | FileType::BlockDevice
                    | FileType::Unknown => {}
                }
            }
        }
        Ok(files)
    }
}
