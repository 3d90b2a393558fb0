//! Doors to other programs: sockets and pipes that are files in sight. To connect to one, or to write into one, needs no right to write the file
//! system, so that a mount which cannot be written does not close it. Something that answers nothing lies over it.
//!
//! Where commands cannot write, every door is closed. Where they can, sockets are that a process outside has bound: those of the cell's own
//! programs stay open to it (`doors/own.rs`). What is found is what the kernel lists, what is mounted by itself, and what a bounded look at
//! directories finds (`doors/look.rs`): each network namespace has a list of its own, and names in it may be relative.

mod look;
mod own;

use super::Profile;
use super::layout::Cover;
use super::living::Namespaces;
use super::steps::{NOSUID, RDONLY};
use base::mountinfo;
use look::Look;
use memchr::memmem;
use own::Own;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType, canonicalize, symlink_metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Bytes of the kernel's list of sockets on a usual machine.
const USUAL_SOCKETS: usize = 64 << 10;

/// What is known of them between commands.
#[derive(Debug, Default)]
pub(super) struct Doors {
    look: Look,
    listed: Listed,
    mounted: Mounted,
    own: Own,
}

/// What lies over the doors that are there. `cell` is the one that a command joins; none where nothing has run in it yet.
pub(super) fn covers(profile: &Profile, cell: Option<&Namespaces>) -> Vec<Cover> {
    let mut doors = profile.known.doors.lock();
    let Doors { look, listed, mounted, own } = &mut *doors;
    let (listed, mounted) = (listed.paths(), mounted.paths());
    let found: BTreeSet<&Path> =
        look.found(profile).iter().chain(listed).chain(mounted).map(PathBuf::as_path).collect();
    let mut is_closed = |path: &Path| {
        let Ok(there) = symlink_metadata(path) else { return false };
        let is_reached = profile.has_in_sight(path) || profile.can_write(path);
        if !is_door(there.file_type()) || !is_reached || path.starts_with("/proc") {
            false
        } else if !profile.can_write(path) || mounted.iter().any(|mounted| mounted == path) {
            true
        } else {
            let is_listed = || listed.iter().any(|listed| listed == path);
            there.file_type().is_socket() && own.is_of_others(path, profile, cell, is_listed)
        }
    };
    let closed = found.into_iter().filter(|path| is_closed(path));
    closed.map(|path| Cover::new(Path::new("/dev/null"), path, RDONLY | NOSUID, profile.passes(path))).collect()
}

fn is_door(kind: FileType) -> bool {
    kind.is_socket() || kind.is_fifo()
}

/// The sockets of this network namespace that the kernel lists by an absolute name.
#[derive(Debug, Default)]
struct Listed {
    names: BTreeSet<OsString>,
    paths: Vec<PathBuf>,
}

impl Listed {
    /// Their paths without links.
    fn paths(&mut self) -> &[PathBuf] {
        // The kernel does not say how long it is, and would be asked for a few bytes first.
        let mut list = Vec::with_capacity(USUAL_SOCKETS);
        let read = File::open("/proc/net/unix").and_then(|mut file| file.read_to_end(&mut list));
        let lines = list.split(|byte| *byte == b'\n').filter(|_| read.is_ok());
        // The path is the last of eight fields, and may hold anything. Each connection is there under the path of what it is connected to.
        let names =
            lines.filter_map(|line| memmem::find(line, b" /").map(|blank| OsStr::from_bytes(&line[blank + 1..])));
        let names: BTreeSet<&OsStr> = names.collect();
        if !names.iter().copied().eq(self.names.iter().map(OsString::as_os_str)) {
            // As who bound it wrote it: by a link, or by a descriptor of its own.
            let is_socket = |path: &PathBuf| symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            self.paths = names.iter().filter_map(|name| canonicalize(name).ok()).filter(is_socket).collect();
            self.names = names.into_iter().map(OsStr::to_owned).collect();
        }
        &self.paths
    }
}

/// Sockets and pipes that are mounted by themselves, as those of docker are in containers.
#[derive(Debug, Default)]
struct Mounted {
    /// Of the table in which they were.
    number: u64,
    paths: Vec<PathBuf>,
}

impl Mounted {
    fn paths(&mut self) -> &[PathBuf] {
        let table = mountinfo::table();
        if table.number != self.number {
            let is_one = |path: &&Path| symlink_metadata(path).is_ok_and(|found| is_door(found.file_type()));
            self.paths = table.single().filter(is_one).map(Path::to_owned).collect();
            self.number = table.number;
        }
        &self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, create_dir_all, remove_file, rename};
    use std::os::unix::net::UnixListener;
    use std::time::Instant;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir_in("/var/tmp").expect("a directory"));
            create_dir_all(place.path("home/work")).expect("a directory");
            place
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().canonicalize().expect("a path").join(below)
        }

        fn profile(&self) -> Profile {
            Profile { write: vec![self.path("home/work")], around: vec![self.path("home")], ..Profile::closed() }
        }

        fn pipe(&self, below: &str) {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, self.path(below), mode).expect("a pipe");
        }

        /// What is covered here, by its path in this place.
        fn covered(&self, profile: &Profile) -> Vec<String> {
            let root = self.path("");
            let covers = covers(profile, None);
            let below = covers.iter().filter_map(|cover| cover.over.place.strip_prefix(&root).ok());
            below.map(|path| path.display().to_string()).collect()
        }
    }

    #[test]
    fn doors_are_found_wherever_they_come_into_being() {
        let place = Place::new();
        let profile = place.profile();
        place.pipe("home/before");
        let _relative = UnixListener::bind(place.path("home/socket")).expect("a socket");
        assert_eq!(place.covered(&profile), ["home/before", "home/socket"]);
        create_dir(place.path("home/a")).expect("a directory");
        place.pipe("home/a/later");
        assert_eq!(place.covered(&profile), ["home/a/later", "home/before", "home/socket"]);
        rename(place.path("home/a"), place.path("home/b")).expect("it is moved");
        remove_file(place.path("home/before")).expect("it is removed");
        assert_eq!(place.covered(&profile), ["home/b/later", "home/socket"]);
        place.pipe("home/b/last");
        assert_eq!(place.covered(&profile), ["home/b/last", "home/b/later", "home/socket"]);
    }

    #[test]
    fn in_directories_that_can_be_written_sockets_are_covered_that_somebody_has_bound() {
        let place = Place::new();
        let profile = place.profile();
        place.pipe("home/work/pipe");
        let bound = UnixListener::bind(place.path("home/work/bound")).expect("a socket");
        drop(UnixListener::bind(place.path("home/work/left")).expect("a socket"));
        assert_eq!(place.covered(&profile), ["home/work/bound"]);
        drop(bound);
        assert_eq!(place.covered(&profile), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_looked_for_where_nothing_happened() {
        let place = Place::new();
        for directory in 0..100 {
            create_dir(place.path(&format!("home/{directory}"))).expect("a directory");
        }
        let profile = place.profile();
        covers(&profile, None);
        let begun = Instant::now();
        for _ in 0..100 {
            covers(&profile, None);
        }
        println!("{:?} a look", begun.elapsed() / 100);
        assert!(profile.known.doors.lock().look.is_quiet());
    }
}
