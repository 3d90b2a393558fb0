//! By what it is known that a file has not changed, without reading it. Whoever can set this machine's clock could forge that.

use rustix::fs::{AtFlags, statat};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What changed so long ago has a stamp of its own: file systems count time in steps of at most two seconds (FAT).
const SETTLED: Duration = Duration::from_secs(3);

/// Which file it is, and when something about it changed last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// That of what a path leads to from a directory, where it is no link. Directories on the way may be.
    pub fn at(directory: impl AsFd, path: &Path) -> rustix::io::Result<Self> {
        let found = statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Self {
            device: found.st_dev,
            inode: found.st_ino,
            bytes: found.st_size.cast_unsigned(),
            modified: (found.st_mtime, found.st_mtime_nsec.cast_signed()),
            changed: (found.st_ctime, found.st_ctime_nsec.cast_signed()),
        })
    }

    /// When something about it changed last, in seconds and nanoseconds.
    pub fn changed(&self) -> (i64, i64) {
        self.changed
    }

    pub fn has_changed_since(&self, time: (i64, i64)) -> bool {
        self.changed >= time
    }

    /// It changed so long ago that a later change would have another stamp.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let times = [self.modified.0, self.changed.0].map(|time| u64::try_from(time).map(Duration::from_secs));
        times.into_iter().all(|time| time.is_ok_and(|time| time + SETTLED < now))
    }
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Which {
    device: u64,
    inode: u64,
}

impl Which {
    pub fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}
