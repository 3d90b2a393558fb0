//! The same cell as bubblewrap makes it, where the system lets that program make namespaces and not this one: what a profile says as its
//! arguments, in the order in which it lays one thing over another. There is one for each command and each pane, without a network.
//!
//! What may be read or written of what lies outside is handed over as a descriptor, so that nothing can be put in its place meanwhile.

use super::layout::{covers, holds_shown};
use super::steps::RDONLY;
use super::{Group, MACHINES, NOTHING, Profile, drop_capabilities, filter, init};
use crate::spawn;
use config::CellNetwork;
use rustix::fs::{MemfdFlags, Mode, OFlags, ResolveFlags};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, canonicalize, symlink_metadata};
use std::io::{self, Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Namespaces of its own, no capability in them, and nothing that can be written. No session: that is up to who starts it. Nothing that ends
/// it either: by its own means it would end with the *thread* that started it, so its first process watches a lifeline.
const BASE: [&str; 12] = [
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup",
    "--cap-drop",
    "ALL",
    "--as-pid-1",
    "--ro-bind",
    "/",
    "/",
];

/// How bubblewrap is started for a profile.
pub(crate) struct Bwrap {
    arguments: Vec<OsString>,
    /// What it has open from [`spawn::FIRST_KEPT`] on.
    pub(crate) kept: Vec<OwnedFd>,
    /// The file of the first process, as it is found inside.
    init: String,
    pub(crate) processes: u64,
    pub(crate) group: Option<Arc<Group>>,
}

impl Bwrap {
    /// Lays out a cell of this profile, as the machine is now.
    pub(crate) fn of(profile: &Profile, program: &Path, group: Option<Arc<Group>>) -> io::Result<Self> {
        if profile.network != CellNetwork::None {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "bwrap has no way to a network"));
        }
        let arguments = [program.as_os_str()].into_iter().chain(BASE.map(OsStr::new)).map(OsString::from).collect();
        let (kept, processes) = (Vec::new(), profile.processes);
        let mut bwrap = Self { arguments, kept, init: String::new(), processes, group };
        bwrap.places(profile);
        for home in &profile.emptied {
            bwrap.new_place(home, "mode=755,size=1m");
        }
        bwrap.pieces(profile)?;
        bwrap.covered(profile)?;
        for mount in &profile.mounts {
            let how = if mount.read_only { "--ro-bind-fd" } else { "--bind-fd" };
            bwrap.bind(how, &mount.from, &mount.at)?;
        }
        for home in &profile.emptied {
            bwrap.option(["--remount-ro".as_ref(), home.as_os_str()]);
        }
        let filter = bwrap.keep(in_memory(&bytes_of(&filter::program(
            filter::families(profile.unix_sockets),
            profile.debug,
            profile.nests,
        )))?);
        bwrap.option(["--seccomp", &filter.to_string()]);
        #[expect(unsafe_code, reason = "a descriptor that stays open as long as this program runs")]
        // SAFETY: `init` never closes it.
        let init = unsafe { BorrowedFd::borrow_raw(init()?) };
        bwrap.init = format!("/proc/self/fd/{}", bwrap.keep(rustix::io::fcntl_dupfd_cloexec(init, 0)?));
        Ok(bwrap)
    }

    /// The words that start the first process in a directory; its own come after them.
    pub(crate) fn argv(&self, directory: &Path) -> Vec<OsString> {
        let first = ["--chdir".into(), directory.into(), "--".into(), OsString::from(&self.init)];
        self.arguments.iter().cloned().chain(first).collect()
    }

    /// What a cell has new.
    fn places(&mut self, profile: &Profile) {
        for (place, options) in profile.own() {
            if place == "/dev" {
                self.option(["--dev", place]);
            } else {
                self.new_place(Path::new(place), &options);
            }
        }
        // It cannot be given a size, so nothing can be written there.
        self.option(["--remount-ro", "/dev"]);
        self.option(["--proc", "/proc"]);
        for place in MACHINES.iter().filter(|place| Path::new(place).exists()) {
            self.option(["--ro-bind", place, place]);
        }
    }

    /// What can be written, and what of new places is what it is outside.
    fn pieces(&mut self, profile: &Profile) -> io::Result<()> {
        let mut pieces = Vec::new();
        for cache in &profile.caches {
            // It begins empty: not every version can lay one directory over another.
            cache.make()?;
            pieces.push(("--bind-fd", &cache.place, cache.upper()));
        }
        pieces.extend(profile.write.iter().map(|root| ("--bind-fd", root, root.clone())));
        let is_copied = |path: &Path| profile.caches.iter().any(|cache| path.starts_with(&cache.place));
        let is_hidden = |path: &Path| profile.hide.iter().any(|hidden| path.starts_with(hidden));
        let shown = profile.show.iter().filter(|path| (profile.has_new(path) || is_copied(path)) && !is_hidden(path));
        for path in shown.filter(|path| path.exists()) {
            pieces.push(("--ro-bind-fd", path, canonicalize(path)?));
        }
        // From the top down: one may lie in another.
        pieces.sort_by_key(|(_, place, _)| *place);
        pieces.iter().try_for_each(|(how, place, from)| self.bind(how, from, place))
    }

    /// What lies over places.
    fn covered(&mut self, profile: &Profile) -> io::Result<()> {
        let (hidden, covers) = (profile.hidden()?, covers(profile, None)?);
        let directories: Vec<_> = hidden.places.iter().filter(|place| place.is_directory).collect();
        for cover in covers.iter().filter(|cover| cover.from == cover.over.place) {
            let how = if cover.attributes & RDONLY == 0 { "--bind-fd" } else { "--ro-bind-fd" };
            self.bind(how, &cover.from, &cover.from)?;
        }
        let mut done = BTreeSet::new();
        for place in directories.iter().filter(|place| holds_shown(place, profile)) {
            self.new_place(&place.path, "mode=755,size=64k");
            for shown in profile.show.iter().filter(|shown| shown.starts_with(&place.path) && shown.exists()) {
                self.show(shown)?;
            }
            self.option(["--remount-ro".as_ref(), place.path.as_os_str()]);
            done.insert(place.path.clone());
        }
        // Of what is hidden or a copy nothing is there that lies outside, but for what is shown.
        let is_gone = |path: &Path| {
            let above = directories.iter().map(|place| &place.path).filter(|hidden| *hidden != path);
            let mut above = above.chain(profile.caches.iter().map(|cache| &cache.place));
            let is_shown = |above: &Path| {
                let mut shown = profile.show.iter().filter(|shown| shown.starts_with(above));
                shown.any(|shown| path.starts_with(shown))
            };
            let is_out_of_sight = !profile.has_in_sight(path) && !profile.can_write(path);
            is_out_of_sight || above.any(|above| path.starts_with(above) && !is_shown(above))
        };
        let others = covers.iter().filter(|cover| cover.from != cover.over.place);
        let others: Vec<_> = others.filter_map(|cover| Some((cover, canonicalize(&cover.over.place).ok()?))).collect();
        let out_of_reach = out_of_reach(others.iter().map(|(_, place)| place));
        for (cover, place) in others {
            let needs_none = out_of_reach.contains(&place) && cover.passes.contains(&libc::EACCES);
            if needs_none || is_gone(&place) || !done.insert(place.clone()) {
                continue;
            }
            if cover.from == Path::new(NOTHING) {
                self.new_place(&place, "mode=755,size=64k");
                self.option(["--remount-ro".as_ref(), place.as_os_str()]);
            } else {
                let empty = self.keep(in_memory(&[])?).to_string();
                self.option(["--ro-bind-data".as_ref(), OsStr::new(&empty), place.as_os_str()]);
            }
        }
        Ok(())
    }

    /// An empty place, with the options of its mount.
    fn new_place(&mut self, place: &Path, options: &str) {
        let value = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)).unwrap_or_default();
        self.option(["--perms", value("mode="), "--size", &bytes(value("size=")), "--tmpfs"]);
        self.option([place]);
    }

    /// What stays to be read where all else is gone.
    fn show(&mut self, path: &Path) -> io::Result<()> {
        self.bind("--ro-bind-fd", &canonicalize(path)?, path)
    }

    /// Lays what is at a path now over a place. By no link: what is decided on has none.
    fn bind(&mut self, how: &str, from: &Path, place: &Path) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = rustix::fs::openat2(rustix::fs::CWD, from, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let named = |error: rustix::io::Errno| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("taking {}: {error}", from.display()))
        };
        let file = self.keep(opened.map_err(named)?).to_string();
        self.option([how.as_ref(), OsStr::new(&file), place.as_os_str()]);
        Ok(())
    }

    fn option<const WORDS: usize>(&mut self, words: [impl AsRef<OsStr>; WORDS]) {
        self.arguments.extend(words.iter().map(|word| word.as_ref().to_owned()));
    }

    /// The number that a descriptor will have.
    fn keep(&mut self, file: impl Into<OwnedFd>) -> RawFd {
        self.kept.push(file.into());
        spawn::FIRST_KEPT + self.kept.len() as RawFd - 1
    }
}

/// Which of these places nobody comes to who has no capability, as nobody has inside: root comes to more.
fn out_of_reach<'p>(places: impl Iterator<Item = &'p PathBuf> + Send) -> BTreeSet<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return BTreeSet::new();
    }
    // A thread has capabilities of its own, and takes what it has lost along when it ends.
    let look = || match drop_capabilities() {
        Ok(()) => places.filter(|place| symlink_metadata(place).is_err()).cloned().collect(),
        Err(_) => BTreeSet::new(),
    };
    std::thread::scope(|scope| scope.spawn(look).join().unwrap_or_default())
}

/// A file that is nowhere, from its beginning on.
fn in_memory(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("toolcrib", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

fn bytes_of(filter: &[libc::sock_filter]) -> Vec<u8> {
    let bytes = |line: &libc::sock_filter| {
        let ([a, b], [c, d, e, f]) = (line.code.to_ne_bytes(), line.k.to_ne_bytes());
        [a, b, line.jt, line.jf, c, d, e, f]
    };
    filter.iter().flat_map(bytes).collect()
}

/// A size as options of mounts have it, in bytes.
fn bytes(size: &str) -> String {
    let (number, factor) = match size.split_at_checked(size.len().saturating_sub(1)) {
        Some((number, "g")) => (number, 1 << 30),
        Some((number, "m")) => (number, 1 << 20),
        Some((number, "k")) => (number, 1 << 10),
        Some(_) | None => (size, 1_u64),
    };
    number.parse().map_or_else(|_| size.to_owned(), |number: u64| (number * factor).to_string())
}
