//! The steps that make a cell of a profile, as the machine is now, and what lies over places in it.

use super::doors;
use super::hidden::Place;
use super::living::Namespaces;
use super::steps::{self, Mounts, NODEV, NONE, NOSUID, RDONLY, Step, VANISHED, path};
use super::{Cache, DEVICES, GIT_RELAY, KEYS, LINKS, MACHINES, MountPoint, NOTHING, OWN, Profile, RELAY, RESOLVER};
use base::disk::Which;
use config::CellNetwork;
use git::{Found, ROOM};
use std::collections::BTreeSet;
use std::fs::{canonicalize, metadata, symlink_metadata};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What takes the place of [`RESOLVER`].
const NAMES: &str = "/run/.names";

/// A copy of something that is laid over a place.
pub(super) struct Cover {
    pub(super) from: PathBuf,
    pub(super) attributes: u64,
    /// The errors with which the place needs none.
    pub(super) passes: &'static [i32],
    pub(super) over: Over,
}

/// What it is laid over. Another file at this path is not covered by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Over {
    pub(super) place: PathBuf,
    which: Option<Which>,
}

impl Cover {
    pub(super) fn new(from: &Path, place: &Path, attributes: u64, passes: &'static [i32]) -> Self {
        let which = symlink_metadata(place).ok().as_ref().map(Which::of);
        Self { from: from.into(), attributes, passes, over: Over { place: place.into(), which } }
    }

    fn hiding(place: &Place, profile: &Profile) -> Self {
        let from = Path::new(if place.is_directory { NOTHING } else { "/dev/null" });
        let (attributes, passes) = (RDONLY | NOSUID, profile.passes(&place.path));
        if place.which.is_none() {
            return Self::new(from, &place.path, attributes, passes);
        }
        let over = Over { place: place.path.clone(), which: place.which };
        Self { from: from.into(), attributes, passes, over }
    }
}

/// What has to lie over places in a cell of this profile, in this order. `cell` is the one that a command joins; none where nothing has run in
/// it yet.
pub(super) fn covers(profile: &Profile, cell: Option<&Namespaces>) -> io::Result<Vec<Cover>> {
    let found = profile.git();
    // Git has to be able to replace files that it tracks. Other changes of them are undone in `policy/held/`.
    let protect: Vec<_> = profile
        .protect
        .iter()
        .filter(|place| symlink_metadata(place).is_ok() && !found.tracks(place))
        .cloned()
        .collect();
    let mut covers = protected(&profile.write, &protect);
    covers.extend(git(&found));
    covers.extend(doors::covers(profile, cell));
    // Last: it may lie in a directory that can be written.
    let hidden = profile.hidden()?;
    let places = hidden.places.iter().filter(|place| !holds_shown(place, profile));
    covers.extend(places.map(|place| Cover::hiding(place, profile)));
    Ok(covers)
}

/// What makes what lies in these directories, and is there, a mount that cannot be written. Directories on the way become mounts too: those
/// cannot be moved, to make others in their place.
fn protected(roots: &[PathBuf], protected: &[PathBuf]) -> Vec<Cover> {
    // Where a link leads out of what can be written, nothing has to be done.
    let is_within = |place: &PathBuf| roots.iter().any(|root| place != root && place.starts_with(root));
    let protected = protected.iter().filter_map(|place| canonicalize(place).ok()).filter(is_within);
    let protected: BTreeSet<PathBuf> = protected.collect();
    let mut on_the_way = BTreeSet::new();
    for place in &protected {
        let is_below = |above: &&Path| roots.iter().any(|root| *above != root && above.starts_with(root));
        on_the_way.extend(place.ancestors().skip(1).filter(is_below));
    }
    // From the top down.
    let on_the_way = on_the_way.into_iter().map(|directory| Cover::new(directory, directory, NOSUID | NODEV, NONE));
    let places = protected.iter().map(|place| Cover::new(place, place, RDONLY | NOSUID | NODEV, NONE));
    on_the_way.chain(places).collect()
}

/// What has git directories and files that lead to them only be read; a gate lies over that.
fn git(found: &Found) -> Vec<Cover> {
    let directories = found.directories.iter().map(|directory| &directory.path);
    let cover = |path: &PathBuf| Cover::new(path, path, RDONLY | NOSUID | NODEV, VANISHED);
    directories.chain(&found.links).map(cover).collect()
}

/// What is there of what lies outside.
struct Piece<'p> {
    path: &'p Path,
    is_directory: bool,
    attributes: u64,
    /// It lies in a place that is hidden.
    is_hidden: bool,
    slot: usize,
}

impl<'p> Piece<'p> {
    /// A directory that can be written.
    fn written(path: &'p Path, slot: usize) -> Self {
        Self { path, is_directory: true, attributes: NOSUID | NODEV, is_hidden: false, slot }
    }
}

/// Whether what stays to be read lies in a place that is hidden.
pub(super) fn holds_shown(hidden: &Place, profile: &Profile) -> bool {
    hidden.is_directory && profile.show.iter().any(|shown| shown.starts_with(&hidden.path) && shown.exists())
}

/// It is not there, for this user.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied)
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Steps as they are put together.
#[derive(Default)]
pub(crate) struct Layout {
    pub(crate) steps: Vec<Step>,
    slots: usize,
    /// Places that a cell has new, where directories have to be made.
    new: Vec<PathBuf>,
    /// The directories and files that were taken from outside.
    pub(super) taken: Vec<(PathBuf, Which)>,
    /// What was covered.
    pub(super) covered: Vec<Over>,
}

impl Layout {
    /// One that changes a cell of this profile from within.
    pub(super) fn within(profile: &Profile) -> Self {
        let new = OWN.iter().map(|(own, ..)| PathBuf::from(own)).chain(profile.emptied.iter().cloned()).collect();
        Self { new, ..Self::default() }
    }

    /// A cell that is made from nothing; `room` is where its gates are kept.
    pub(super) fn of(profile: &Profile, room: Option<&Path>) -> io::Result<Self> {
        let mut layout = Self::within(profile);
        match profile.network {
            CellNetwork::None | CellNetwork::Egress => layout.push(Step::LoopbackUp),
            CellNetwork::Full => {}
        }
        layout.mount("", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")?;
        // All are taken while they can be written, and before what is new lies over them.
        let mut pieces = layout.roots(&profile.write)?;
        let devices = DEVICES.map(|name| format!("/dev/{name}"));
        let taken = devices.iter().map(|device| layout.take(device)).collect::<io::Result<Vec<_>>>()?;
        pieces.extend(layout.caches(&profile.caches)?);
        let room = room.map(|room| layout.take(room)).transpose()?;
        let (hidden, shown) = layout.shown(profile)?.into_iter().partition(|shown| shown.is_hidden);
        pieces.extend::<Vec<_>>(shown);
        layout.push(Step::Attributes { of: Mounts::All, set: RDONLY | NOSUID });
        for (place, options) in profile.own() {
            // Devices are bound into `/dev`, and work there.
            let flags = if place == "/dev" { libc::MS_NOEXEC } else { libc::MS_NODEV };
            layout.directory(Path::new(place))?;
            layout.mount("tmpfs", place, "tmpfs", flags | libc::MS_NOSUID, &options)?;
        }
        for (device, slot) in devices.iter().zip(taken) {
            layout.push(Step::MakeFile { path: path(device)? });
            // A device is written all the same, but its owner cannot change its mode for the whole machine.
            layout.push(Step::Attributes { of: Mounts::Slot(slot), set: RDONLY | NOSUID });
            layout.lay(slot, Path::new(device), NONE)?;
        }
        layout.directory(Path::new("/dev/pts"))?;
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        layout.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")?;
        for (link, to) in LINKS {
            layout.push(Step::Link { path: path(link)?, to: path(to)? });
        }
        layout.processes()?;
        // Whoever could write in it would write into all that is hidden.
        layout.directory(Path::new(NOTHING))?;
        layout.cover(&Cover::new(Path::new(NOTHING), Path::new(NOTHING), RDONLY | NOSUID, NONE))?;
        if profile.network == CellNetwork::Egress {
            layout.names()?;
        }
        if !profile.keys.is_empty() {
            layout.keys()?;
        }
        let emptied = profile.emptied.iter().map(|place| text(place)).collect::<io::Result<Vec<_>>>()?;
        for home in &emptied {
            layout.directories_to(Path::new(home))?;
            layout.mount("tmpfs", home, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=755,size=1m")?;
        }
        // From the top down: one may lie in another.
        pieces.sort_by_key(|piece| piece.path);
        pieces.iter().try_for_each(|piece| layout.lay_piece(piece))?;
        if let Some(slot) = room {
            layout.push(Step::Attributes { of: Mounts::Slot(slot), set: NOSUID | NODEV });
            layout.directory(Path::new(ROOM))?;
            layout.lay(slot, Path::new(ROOM), NONE)?;
        }
        // What lies in hidden places comes with those.
        layout.hide_but_shown(profile, &hidden)?;
        for home in emptied {
            // This mount alone, and not what lies in it.
            let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
            layout.mount("", home, "", flags, "")?;
        }
        Ok(layout)
    }

    /// What a command that joins a cell has of its own: the processes that there are.
    pub(super) fn joining() -> io::Result<Self> {
        let mut layout = Self::default();
        // What is laid in the cell later is laid there as well, and not the other way round.
        layout.push(Step::Propagate { how: libc::MS_SLAVE });
        layout.processes()?;
        Ok(layout)
    }

    /// Has what is laid in a cell from here on laid in all that have joined it.
    pub(super) fn sharing(mut self) -> Self {
        self.push(Step::Propagate { how: libc::MS_SHARED });
        self
    }

    /// Opens the room of the gates for the host, and closes it to all others; `is_closed` where a host before this one did so.
    pub(crate) fn opening_gates(is_closed: bool) -> io::Result<Self> {
        let mut layout = Self::default();
        if is_closed {
            layout.push(Step::Uncover { path: path(ROOM)? });
        }
        let slot = layout.slot();
        layout.push(Step::Open { path: path(ROOM)?, slot });
        layout.cover(&Cover::new(Path::new(NOTHING), Path::new(ROOM), RDONLY | NOSUID, NONE))?;
        Ok(layout)
    }

    /// Lays a gate over a git directory, in place of the one there is if `is_there`.
    pub(crate) fn gate(room: RawFd, upper: &str, work: &str, over: &Path, is_there: bool) -> io::Result<Self> {
        let mut layout = Self::default();
        if is_there {
            layout.push(Step::Uncover { path: path(over)? });
        }
        layout.push(Step::Gate { room, upper: path(upper)?, work: path(work)?, over: path(over)? });
        Ok(layout)
    }

    /// Copies the gate, for mount namespaces that it does not reach.
    pub(crate) fn copied(mut self, over: &Path) -> io::Result<Self> {
        let slot = self.take(over)?;
        self.push(Step::Attributes { of: Mounts::Slot(slot), set: NOSUID | NODEV });
        Ok(self)
    }

    /// Lays such a copy over a git directory, in place of the gate there is if `is_there`.
    pub(crate) fn same_gate(copy: RawFd, over: &Path, is_there: bool) -> io::Result<Self> {
        let mut layout = Self::default();
        if is_there {
            layout.push(Step::Uncover { path: path(over)? });
        }
        layout.push(Step::LayOpened { mount: copy, target: path(over)? });
        Ok(layout)
    }

    /// Adds what lies over places.
    pub(super) fn covering<'c>(mut self, covers: impl IntoIterator<Item = &'c Cover>) -> io::Result<Self> {
        for cover in covers {
            self.cover(cover)?;
            self.covered.push(cover.over.clone());
        }
        Ok(self)
    }

    /// Adds directories under other names, as they are in the cell by then: with all that lies over places in them.
    pub(super) fn mounting(mut self, mounts: &[MountPoint]) -> io::Result<Self> {
        for MountPoint { from, at, read_only } in mounts {
            let slot = self.take(from)?;
            let set = if *read_only { RDONLY | NOSUID | NODEV } else { NOSUID | NODEV };
            self.push(Step::Attributes { of: Mounts::Slot(slot), set });
            self.directories_to(at)?;
            self.lay(slot, at, NONE)?;
            self.taken.push((from.clone(), Which::of(&metadata(from)?)));
        }
        Ok(self)
    }

    /// Descriptors that a child keeps between steps.
    pub(crate) fn slots(&self) -> Vec<RawFd> {
        vec![steps::EMPTY; self.slots]
    }

    /// A socket that waits for others; it is what a slot holds in the end.
    pub(super) fn listen(&mut self, address: Ipv4Addr, port: u16, kind: libc::c_int) {
        let slot = self.slot();
        self.push(Step::Listen { address, port, kind, slot });
    }

    /// The same at a path.
    pub(super) fn listen_at(&mut self, at: &str) -> io::Result<()> {
        let slot = self.slot();
        self.push(Step::ListenAt { path: path(at)?, slot });
        Ok(())
    }

    /// A socket for a connection; it is what a slot holds in the end.
    pub(super) fn socket(&mut self, family: libc::c_int) {
        let slot = self.slot();
        self.push(Step::Socket { family, slot });
    }

    /// A socket by which the kernel says which others are bound; it is what a slot holds in the end.
    pub(super) fn ask_for_sockets(&mut self) {
        let slot = self.slot();
        self.push(Step::AskForSockets { slot });
    }

    /// Has names asked for on the cell's own loopback.
    fn names(&mut self) -> io::Result<()> {
        // Without the file the C library asks there too.
        let Ok(place) = canonicalize(RESOLVER) else { return Ok(()) };
        let is_new = self.is_new(&place);
        let file = if is_new { place.as_path() } else { Path::new(NAMES) };
        self.directories_to(file.parent().unwrap_or(file))?;
        self.push(Step::MakeFile { path: path(file)? });
        self.push(Step::Write { file: path(file)?, text: b"nameserver 127.0.0.1\n".to_vec() });
        match is_new {
            true => Ok(()),
            false => self.cover(&Cover::new(file, &place, RDONLY | NOSUID, NONE)),
        }
    }

    /// Makes where keys outside are asked for, with what git calls for that. No command can put another program in its place.
    fn keys(&mut self) -> io::Result<()> {
        self.directory(Path::new(KEYS))?;
        self.push(Step::MakeProgram { path: path(GIT_RELAY)?, program: RELAY });
        self.cover(&Cover::new(Path::new(GIT_RELAY), Path::new(GIT_RELAY), RDONLY | NOSUID, NONE))
    }

    /// What a step does.
    pub(crate) fn described(&self, step: usize) -> String {
        self.steps.get(step).map_or_else(|| "closing the cell".to_owned(), Step::described)
    }

    fn processes(&mut self) -> io::Result<()> {
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_NODEV;
        self.mount("proc", "/proc", "proc", flags, "")?;
        let covers = MACHINES.map(Path::new).map(|place| Cover::new(place, place, RDONLY | NOSUID, NONE));
        covers.iter().try_for_each(|cover| self.cover(cover))
    }

    /// Takes the directories that may be written, each as it is found now: another one in its place ends the cell.
    fn roots<'p>(&mut self, write: &'p [PathBuf]) -> io::Result<Vec<Piece<'p>>> {
        let mut roots = Vec::new();
        for root in write {
            let missing = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.display()));
            let found = symlink_metadata(root).map_err(missing)?;
            let slot = self.slot();
            self.push(Step::TakeSame { path: path(root)?, slot, device: found.dev(), inode: found.ino() });
            self.taken.push((root.clone(), Which::of(&found)));
            roots.push(Piece::written(root, slot));
        }
        Ok(roots)
    }

    /// Takes the copies of directories.
    fn caches<'p>(&mut self, caches: &'p [Cache]) -> io::Result<Vec<Piece<'p>>> {
        let mut all = Vec::new();
        for cache in caches {
            cache.make().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", cache.own.display())))?;
            let slot = if cache.is_copy {
                let slot = self.slot();
                let (lower, upper, work) = (path(&cache.place)?, path(cache.upper())?, path(cache.work())?);
                self.push(Step::Overlay { lower, upper, work, slot });
                self.taken.push((cache.place.clone(), Which::of(&metadata(&cache.place)?)));
                slot
            } else {
                self.take(cache.upper())?
            };
            all.push(Piece::written(&cache.place, slot));
        }
        Ok(all)
    }

    /// Takes what stays to be read where all else is gone.
    fn shown<'p>(&mut self, profile: &'p Profile) -> io::Result<Vec<Piece<'p>>> {
        let copies: Vec<_> = profile.caches.iter().filter(|cache| cache.is_copy).map(|cache| &cache.place).collect();
        let mut all = Vec::new();
        for path in &profile.show {
            let is_hidden = profile.hide.iter().any(|hidden| path.starts_with(hidden));
            let is_there = !profile.has_new(path) || copies.iter().any(|copy| path.starts_with(copy));
            if !is_hidden && is_there {
                continue;
            }
            match metadata(path) {
                Ok(found) => {
                    let (is_directory, attributes) = (found.is_dir(), RDONLY | NOSUID | NODEV);
                    all.push(Piece { path, is_directory, attributes, is_hidden, slot: self.take(path)? });
                    self.taken.push((path.clone(), Which::of(&found)));
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Lays it where it was.
    fn lay_piece(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        self.push(Step::Attributes { of: Mounts::Slot(piece.slot), set: piece.attributes });
        if piece.is_directory {
            self.directories_to(piece.path)?;
        } else {
            self.directories_to(piece.path.parent().unwrap_or(piece.path))?;
            self.push(Step::MakeFile { path: path(piece.path)? });
        }
        self.lay(piece.slot, piece.path, NONE)
    }

    /// Makes hidden places empty but for what of them stays to be read.
    fn hide_but_shown(&mut self, profile: &Profile, shown: &[Piece<'_>]) -> io::Result<()> {
        for hidden in profile.hidden()?.places.iter().filter(|place| holds_shown(place, profile)) {
            let within = shown.iter().filter(|shown| shown.path.starts_with(&hidden.path));
            self.directories_to(&hidden.path)?;
            let place = text(&hidden.path)?;
            self.mount("tmpfs", place, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=755,size=64k")?;
            for shown in within {
                let between = shown.path.ancestors().take_while(|above| *above != hidden.path);
                let mut between: Vec<_> = between.skip(usize::from(!shown.is_directory)).collect();
                between.reverse();
                between.into_iter().try_for_each(|directory| self.directory(directory))?;
                self.lay_piece(shown)?;
            }
            self.push(Step::Attributes { of: Mounts::At(path(place)?), set: RDONLY | NOSUID | NODEV });
        }
        Ok(())
    }

    /// Lays a copy of what is at a path over a place, with these attributes. What is missing is passed over.
    fn cover(&mut self, cover: &Cover) -> io::Result<()> {
        let slot = self.take(&cover.from)?;
        self.push(Step::Attributes { of: Mounts::Slot(slot), set: cover.attributes });
        self.lay(slot, &cover.over.place, cover.passes)
    }

    /// Makes a directory and those above it where they are in a place that is new.
    fn directories_to(&mut self, root: &Path) -> io::Result<()> {
        let mut directories: Vec<_> = root.ancestors().filter(|above| self.is_new(above)).collect();
        directories.reverse();
        directories.into_iter().try_for_each(|directory| self.directory(directory))
    }

    fn is_new(&self, path: &Path) -> bool {
        self.new.iter().any(|new| path.starts_with(new))
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn mount(&mut self, source: &str, target: &str, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<()> {
        let [source, target, kind, options] = [source, target, kind, options].map(path);
        self.push(Step::Mount { source: source?, target: target?, kind: kind?, flags, data: options? });
        Ok(())
    }

    fn take(&mut self, from: impl AsRef<Path>) -> io::Result<usize> {
        let slot = self.slot();
        self.push(Step::Take { path: path(from)?, slot });
        Ok(slot)
    }

    fn lay(&mut self, slot: usize, target: &Path, passes: &'static [i32]) -> io::Result<()> {
        self.push(Step::Lay { slot, target: path(target)?, passes });
        Ok(())
    }

    fn directory(&mut self, at: &Path) -> io::Result<()> {
        self.push(Step::MakeDirectory { path: path(at)? });
        Ok(())
    }
}
