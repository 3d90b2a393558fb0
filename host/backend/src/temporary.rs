//! A file that replaces another: it has no name until it is whole, where the file system can do that.
//!
//! Elsewhere, and for the moment of its renaming, it has a name of ours. Such a file is locked as long as its writer lives; one that is not
//! was left by a writer that was killed, and goes with the next write in its directory.

use base::text::id::random_id;
use cap_std::fs::{Dir, File};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

const PREFIX: &str = ".toolcrib-";
const SUFFIX: &str = ".tmp";
/// Entries of a directory that are looked through for files that were left.
const MAX_ENTRIES: usize = 10_000;

pub(super) struct Temporary<'d> {
    directory: &'d Dir,
    file: File,
    name: Option<String>,
}

impl<'d> Temporary<'d> {
    /// Makes one, with the mode that any new file gets.
    pub(super) fn new(directory: &'d Dir) -> io::Result<Self> {
        sweep(directory);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(directory, ".", flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => {
                // For when it has a name. Where there are no locks no file counts as left behind either.
                let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                Ok(Self { directory, file: File::from_std(file.into()), name: None })
            }
            // What file systems and old kernels say that cannot do it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => Self::named(directory),
            Err(error) => Err(error.into()),
        }
    }

    fn named(directory: &'d Dir) -> io::Result<Self> {
        loop {
            let name = new_name();
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(0o666))?;
            // Somebody who sweeps may have removed it before it was locked.
            let _ = rustix::fs::flock(&file, FlockOperation::LockExclusive);
            if rustix::fs::fstat(&file)?.st_nlink > 0 {
                return Ok(Self { directory, file: File::from_std(file.into()), name: Some(name) });
            }
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name, over what has that name now.
    pub(super) fn replace(mut self, name: &OsStr) -> io::Result<()> {
        let passing = match self.name.take() {
            Some(passing) => passing,
            None => {
                let passing = new_name();
                self.link(OsStr::new(&passing))?;
                passing
            }
        };
        let renamed = rustix::fs::renameat(self.directory, &passing, self.directory, name);
        // Removed when this is dropped.
        self.name = renamed.is_err().then_some(passing);
        Ok(renamed?)
    }

    /// Gives it its name, which nothing has yet.
    pub(super) fn appear(mut self, name: &OsStr) -> io::Result<()> {
        let Some(passing) = self.name.take() else { return Ok(self.link(name)?) };
        let renamed = rustix::fs::renameat_with(self.directory, &passing, self.directory, name, RenameFlags::NOREPLACE);
        let appeared = match renamed {
            // Network file systems do not know the flag.
            Err(Errno::INVAL) => rustix::fs::linkat(self.directory, &passing, self.directory, name, AtFlags::empty()),
            renamed => renamed,
        };
        // A name that it has no more cannot be removed.
        self.name = Some(passing);
        Ok(appeared?)
    }

    fn link(&self, name: &OsStr) -> rustix::io::Result<()> {
        use std::os::fd::AsRawFd;
        let open = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
        rustix::fs::linkat(rustix::fs::CWD, open, self.directory, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

fn new_name() -> String {
    format!("{PREFIX}{}{SUFFIX}", random_id())
}

fn is_ours(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Removes what writers left that were killed.
fn sweep(directory: &Dir) {
    let Ok(entries) = directory.entries() else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| is_ours(name) && is_left(directory, name)) {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// A file of this user that nobody has locked.
fn is_left(directory: &Dir, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return false };
    let is_own = rustix::fs::fstat(&file).is_ok_and(|found| {
        let is_file = FileType::from_raw_mode(found.st_mode).is_file();
        is_file && found.st_nlink == 1 && found.st_uid == rustix::process::geteuid().as_raw()
    });
    is_own && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::io::{Read, Write};

    fn directory() -> (tempfile::TempDir, Dir) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = Dir::open_ambient_dir(root.path(), ambient_authority()).expect("a directory");
        (root, directory)
    }

    fn names(root: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(root.path()).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_takes_its_name_with_and_without_one_before() {
        for is_named in [false, true] {
            let (root, directory) = directory();
            let make = if is_named { Temporary::named } else { Temporary::new };
            std::fs::write(root.path().join("a"), "old").expect("a file");
            let mut new = make(&directory).expect("a file");
            new.file().write_all(b"new").expect("content");
            new.replace(OsStr::new("a")).expect("its name");
            make(&directory).expect("a file").appear(OsStr::new("b")).expect("its name");
            drop(make(&directory).expect("a file"));
            let mut text = String::new();
            directory.open("a").expect("a file").read_to_string(&mut text).expect("text");
            assert_eq!((text.as_str(), names(&root)), ("new", vec!["a".to_owned(), "b".to_owned()]));
        }
    }

    #[test]
    fn a_file_that_should_be_new_replaces_none() {
        for is_named in [false, true] {
            let (root, directory) = directory();
            let make = if is_named { Temporary::named } else { Temporary::new };
            std::fs::write(root.path().join("a"), "old").expect("a file");
            let error = make(&directory).expect("a file").appear(OsStr::new("a")).expect_err("it is there");
            assert_eq!((error.kind(), names(&root)), (io::ErrorKind::AlreadyExists, vec!["a".to_owned()]));
        }
    }

    #[test]
    fn what_a_killed_writer_left_goes_and_nothing_else() {
        let (root, directory) = directory();
        let left = new_name();
        for name in [left.as_str(), ".toolcrib-x.tmp", ".tmpabc", "file"] {
            std::fs::write(root.path().join(name), "").expect("a file");
        }
        let writing = Temporary::named(&directory).expect("a file");
        let locked = writing.name.clone().expect("it has a name");
        sweep(&directory);
        let mut expected = vec![".tmpabc".to_owned(), locked, ".toolcrib-x.tmp".to_owned(), "file".to_owned()];
        expected.sort();
        assert_eq!(names(&root), expected);
    }
}
