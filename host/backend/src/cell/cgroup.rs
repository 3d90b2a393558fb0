//! The cgroup of a cell: what bounds the memory and the processes of all its commands together, also those of root.
//!
//! This program divides the cgroup (of version 2) that it was started in: it moves into one part, and each cell gets another. By the kernel's rule
//! only a cgroup without processes hands its controllers to its parts, so no other program may be there. `../spawn.rs` has the child that enters.

use super::Profile;
use crate::{tree, watcher};
use base::mountinfo::unescaped;
use base::text::sanitize;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Component, Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a cell needs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// What the names of parts begin with; the number of the program that made it follows.
const OF_HOST: &str = "toolcrib-host-";
const OF_CELL: &str = "toolcrib-cell-";
const PROCESSES: &str = "cgroup.procs";
const HANDED_DOWN: &str = "cgroup.subtree_control";
/// What stands for the process that writes it.
const MYSELF: &str = "0";
/// The number of the file system of cgroups, as the kernel has it.
const MAGIC: u64 = 0x6367_7270;
/// How often it is tried to leave a cgroup: what is in it starts others meanwhile.
const TIMES: u32 = 5;
/// How long and how often this program waits as it ends: the kernel takes processes out a moment after their end.
const A_MOMENT: Duration = Duration::from_millis(2);
const MOMENTS: u32 = 10;

/// The cgroup that this program has divided.
static DIVIDED: Mutex<Option<Arc<Divided>>> = Mutex::new(None);
/// Cells that were given a cgroup.
static CELLS: AtomicU32 = AtomicU32::new(0);

/// Whether the commands of cells could be given a bound of memory as this program was started. Nothing is changed for that.
///
/// # Errors
///
/// Why not, and what helps.
pub fn can_bound_memory() -> Result<(), String> {
    Found::look().map(drop).map_err(|why| format!("{} ({})", needs(&why), how_to_get_a_cgroup()))
}

/// Whether the bound of memory that a profile has can be enforced.
///
/// # Errors
///
/// Why not; [`how_to_get_a_cgroup`] says what helps.
pub fn bounds_memory(profile: &Profile) -> BoxFuture<'_, Result<(), String>> {
    Box::pin(async move {
        if profile.memory.is_none() {
            return Ok(());
        }
        // To divide it takes up to some 10 ms for each process that is moved.
        let divided = tokio::task::spawn_blocking(divided).await;
        divided.map_err(|error| error.to_string())?.map(drop)
    })
}

/// The cgroup that this program has divided, as long as it still hands its controllers down.
fn divided() -> Result<Arc<Divided>, String> {
    let mut kept = DIVIDED.lock();
    if let Some(divided) = &*kept {
        let taken_back = |error| needs(&format!("its controllers were taken back: {error}"));
        divided.directory.hand_down().map_err(taken_back)?;
        return Ok(divided.clone());
    }
    let made = Divided::make().map_err(|why| needs(&why))?;
    Ok(kept.insert(Arc::new(made)).clone())
}

fn needs(why: &str) -> String {
    format!("`memory` under [confine] needs a cgroup for Toolcrib alone: {why}")
}

/// What helps where there is none to divide.
pub fn how_to_get_a_cgroup() -> String {
    let listed = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    if let Some(how) = how_to_boot(&listed) {
        return how.to_owned();
    }
    let root = if rustix::process::geteuid().is_root() { " (as root without `--user`)" } else { "" };
    format!("start it as `systemd-run --user --scope -p Delegate=yes toolcrib …`{root}")
}

/// What helps where no cgroup of version 2 can have the controllers: by what `/proc/cgroups` lists, which is their names, the number of their
/// hierarchy of version 1, how many cgroups there are, and whether they are switched on.
fn how_to_boot(listed: &str) -> Option<&'static str> {
    listed.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, ..] if !CONTROLLERS.contains(&name) => None,
        [_, _, _, "0"] => Some("boot without `cgroup_disable` on the kernel's command line"),
        [_, "0", _, _] => None,
        [_, _, _, _] => Some(
            "cgroups of version 1 have the controllers here: boot with `systemd.unified_cgroup_hierarchy=1` on the kernel's command line",
        ),
        _ => None,
    })
}

/// A directory of the file system of cgroups.
struct Directory {
    file: OwnedFd,
    path: PathBuf,
}

impl Directory {
    fn open(path: &Path) -> io::Result<Self> {
        let file = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let is_one = u64::try_from(rustix::fs::fstatfs(&file)?.f_type).is_ok_and(|kind| kind == MAGIC);
        let odd = || io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is not a cgroup", path.display()));
        if is_one { Ok(Self { file, path: path.to_owned() }) } else { Err(odd()) }
    }

    /// What lies below it, by no link and in no other file system.
    fn below(&self, way: &Path) -> io::Result<Self> {
        let (at, path) = match way.as_os_str().is_empty() {
            true => (Path::new("."), self.path.clone()),
            false => (way, self.path.join(way)),
        };
        let (flags, within) = (
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
        );
        let file = rustix::fs::openat2(&self.file, at, flags, Mode::empty(), within)?;
        Ok(Self { file, path })
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.file, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.open_file(name, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The kernel takes each write for itself, so it is one.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        self.open_file(name, OFlags::WRONLY)?.write(text.as_bytes()).map(drop)
    }

    /// Makes a part of it.
    fn make(&self, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(0o755)) {
            // Of a program before that had the same number, with a pane of that one in it.
            Ok(()) | Err(Errno::EXIST) => self.below(Path::new(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a part that this program holds: no other one removes it as long as it is open here.
    fn make_held(&self, name: &str) -> io::Result<Self> {
        let part = self.make(name)?;
        rustix::fs::flock(&part.file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(part)
    }

    /// Whether nobody holds a part.
    fn is_free(&self, name: &str) -> bool {
        let part = self.below(Path::new(name));
        part.is_ok_and(|part| rustix::fs::flock(&part.file, FlockOperation::NonBlockingLockExclusive).is_ok())
    }

    /// Removes a part, where no process is in it.
    fn remove(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)
    }

    fn processes(&self) -> io::Result<Vec<u32>> {
        Ok(self.read(PROCESSES)?.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Whether all that a cell needs is among what a file lists.
    fn lists_controllers(&self, file: &str) -> io::Result<bool> {
        let text = self.read(file)?;
        Ok(CONTROLLERS.iter().all(|wanted| text.split_whitespace().any(|listed| listed == *wanted)))
    }

    /// Whether it is the root of all, where processes may be beside parts: the kernel has no such file there.
    fn is_root(&self) -> bool {
        matches!(self.open_file("cgroup.events", OFlags::RDONLY), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    fn hand_down(&self) -> io::Result<()> {
        match self.lists_controllers(HANDED_DOWN)? {
            true => Ok(()),
            false => self.write(HANDED_DOWN, &CONTROLLERS.map(|name| format!("+{name}")).join(" ")),
        }
    }

    /// Whether what is in it has the bounds of a profile.
    fn has_bounds(&self, profile: &Profile) -> bool {
        let is = |file: &str, bound: u64| self.read(file).is_ok_and(|text| text.trim().parse() == Ok(bound));
        profile.memory.is_some_and(|memory| is("memory.max", memory)) && is("pids.max", profile.processes)
    }

    fn forbid_swap(&self) -> io::Result<()> {
        match self.write("memory.swap.max", "0") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match has_swap() {
                false => Ok(()),
                true => Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel does not count swap")),
            },
            written => written,
        }
    }

    /// What can be changed by this user: parts can be made, controllers handed down, and processes moved between parts.
    fn check_writable(&self) -> Result<(), String> {
        for name in [".", PROCESSES, HANDED_DOWN] {
            let access = rustix::fs::accessat(&self.file, name, Access::WRITE_OK, AtFlags::EACCESS);
            access
                .map_err(|error| format!("`{}` cannot be changed: {}", self.path.display(), io::Error::from(error)))?;
        }
        Ok(())
    }

    fn parts(&self) -> io::Result<Vec<String>> {
        let entries = rustix::fs::Dir::read_from(&self.file)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned));
        Ok(names.filter(|name| name.starts_with(OF_HOST) || name.starts_with(OF_CELL)).collect())
    }

    /// Removes what programs left that are gone, and what this one could not remove before. Where a process is in it, the kernel refuses it.
    /// Programs that are not seen here, as in another container, hold what is theirs.
    fn tidy(&self) {
        let lives = |pid: &str| pid != process::id().to_string() && Path::new("/proc").join(pid).exists();
        let is_left = |name: &String| maker(name).is_some_and(|pid| !lives(pid)) && self.is_free(name);
        for name in self.parts().unwrap_or_default().iter().filter(|name| is_left(name)) {
            let _ = self.remove(name);
        }
    }
}

/// Whether this system has any swap: the first line of the list is its head.
fn has_swap() -> bool {
    match std::fs::read_to_string("/proc/swaps") {
        Ok(swaps) => swaps.lines().count() > 1,
        // A kernel without swap has no such file.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// The number of the program that made a part of this name.
fn maker(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(OF_HOST).or_else(|| name.strip_prefix(OF_CELL))?;
    let pid = rest.split('-').next().unwrap_or(rest);
    (!pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())).then_some(pid)
}

/// A cgroup that can be divided.
struct Found {
    directory: Directory,
    /// This program has to leave it first, with what it started.
    has_to_leave: bool,
}

impl Found {
    fn look() -> Result<Self, String> {
        let read = |file: &str| std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
        let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let own = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this system has none of version 2")?;
        let (mount, way) = place(Path::new(own), &mounts).ok_or("the one that it is in is not mounted here")?;
        let named = |error: io::Error| format!("`{}`: {error}", mount.join(&way).display());
        let mounted = Directory::open(&mount).map_err(named)?;
        let directory = mounted.below(&way).map_err(named)?;
        if !directory.processes().map_err(named)?.contains(&process::id()) {
            return Err(format!("it is not in `{}`, where it should be", directory.path.display()));
        }
        // Another Toolcrib has divided it, and started this one.
        if let Some(above) = above(&mounted, &way) {
            return above.check_writable().map(|()| Self { directory: above, has_to_leave: false });
        }
        if !directory.lists_controllers("cgroup.controllers").map_err(named)? {
            return Err(format!("`{}` lacks the controllers `memory` and `pids`", directory.path.display()));
        }
        directory.check_writable()?;
        let has_to_leave = !directory.is_root();
        if has_to_leave {
            let strangers = Processes::of(&directory).map_err(named)?.strangers;
            if let Some(stranger) = strangers.first() {
                return Err(format!("{stranger} is in `{}` as well", directory.path.display()));
            }
        }
        Ok(Self { directory, has_to_leave })
    }
}

/// The cgroup that another Toolcrib has divided, where this program is in the part of that one.
fn above(mounted: &Directory, way: &Path) -> Option<Directory> {
    way.file_name()?.to_str().filter(|name| name.starts_with(OF_HOST))?;
    let above = mounted.below(way.parent()?).ok()?;
    above.lists_controllers(HANDED_DOWN).unwrap_or(false).then_some(above)
}

/// Where a cgroup is seen: a mount, and the way below it.
fn place(own: &Path, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    // Out of what this process sees of the hierarchy.
    if own.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (mount, what) = line.split_once(" - ")?;
        what.split(' ').next().filter(|kind| *kind == "cgroup2")?;
        let mut fields = mount.split(' ').skip(3);
        let (shown, at) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some((at, own.strip_prefix(shown).ok()?.to_owned()))
    })
}

/// The processes of a cgroup.
struct Processes {
    /// This program, and what it started.
    ours: Vec<u32>,
    /// All others, as people know them.
    strangers: Vec<String>,
}

impl Processes {
    fn of(directory: &Directory) -> io::Result<Self> {
        let (all, own) = (tree::all(), process::id());
        let known: HashMap<u32, &tree::Stat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        let is_ours = |mut pid: u32| {
            while let Some(stat) = known.get(&pid).filter(|_| pid != own) {
                pid = stat.parent;
            }
            pid == own
        };
        let (ours, others): (Vec<u32>, Vec<u32>) = directory.processes()?.into_iter().partition(|pid| is_ours(*pid));
        // What is not seen has ended, or is hidden from this user.
        let still =
            if others.iter().all(|pid| known.contains_key(pid)) { Vec::new() } else { directory.processes()? };
        let shown = |pid: u32| match known.get(&pid) {
            Some(stat) => Some(format!("`{}` ({pid})", sanitize::line(&stat.name))),
            // The kernel has no other number here for it.
            None if pid == 0 => Some("a process of another container".to_owned()),
            None => still.contains(&pid).then(|| format!("a process that cannot be seen ({pid})")),
        };
        Ok(Self { ours, strangers: others.into_iter().filter_map(shown).collect() })
    }
}

/// The cgroup that this program has divided.
struct Divided {
    directory: Directory,
    /// The part that this program moved to; none where it stayed.
    part: Option<(String, Directory)>,
    /// What takes back the controllers that it handed down, and no others: in the root of all somebody else may have done that before.
    added: String,
    /// Parts are made and removed by one thread at a time.
    changes: Mutex<()>,
}

impl Divided {
    fn make() -> Result<Self, String> {
        let Found { directory, has_to_leave } = Found::look()?;
        directory.tidy();
        let odd = |error: io::Error| format!("`{}` cannot be divided: {error}", directory.path.display());
        let name = format!("{OF_HOST}{}", process::id());
        let part = has_to_leave.then(|| directory.make_held(&name)).transpose().map_err(odd)?;
        let part = part.map(|part| (name, part));
        let listed = directory.read(HANDED_DOWN).map_err(odd)?;
        let is_added = |name: &&str| !listed.split_whitespace().any(|listed| listed == *name);
        let added = CONTROLLERS.iter().copied().filter(is_added).map(|name| format!("-{name}"));
        let divided = Self { added: added.collect::<Vec<_>>().join(" "), directory, part, changes: Mutex::default() };
        divided.divide().and_then(|()| divided.try_cell()).map_err(|error| {
            divided.undo();
            format!("`{}` cannot be divided: {error}", divided.directory.path.display())
        })?;
        Ok(divided)
    }

    fn divide(&self) -> io::Result<()> {
        let Some((_, part)) = &self.part else { return self.directory.hand_down() };
        let mut time = 1;
        loop {
            part.write(PROCESSES, MYSELF)?;
            for pid in Processes::of(&self.directory)?.ours {
                // It may have ended.
                let _ = part.write(PROCESSES, &pid.to_string());
            }
            match self.directory.hand_down() {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && time < TIMES => time += 1,
                done => return done,
            }
        }
    }

    /// Makes a part for a cell, with bounds.
    fn cell(&self, name: &str, memory: u64, processes: u64) -> io::Result<Directory> {
        let _alone = self.changes.lock();
        self.directory.tidy();
        let made = self.directory.make_held(name)?;
        let bound = || {
            // Not `memory.oom.group`: what takes too much dies alone, and not the shell of a pane beside it.
            made.write("memory.max", &memory.to_string())?;
            made.forbid_swap()?;
            made.write("pids.max", &processes.to_string())
        };
        match bound() {
            Ok(()) => Ok(made),
            Err(error) => {
                let _ = self.directory.remove(name);
                Err(error)
            }
        }
    }

    /// Tries what each cell needs.
    fn try_cell(&self) -> io::Result<()> {
        let name = cell_name();
        self.cell(&name, 1 << 30, 64)?;
        self.directory.remove(&name).map_err(io::Error::from)
    }

    /// Whether nothing is left that needs what this program has made: no cell, no other Toolcrib, and nothing that this one has started.
    fn can_be_undone(&self) -> bool {
        let _alone = self.changes.lock();
        self.directory.tidy();
        let own = self.part.as_ref().map(|(name, _)| name);
        let is_alone = self.directory.parts().is_ok_and(|parts| parts.iter().all(|name| Some(name) == own));
        let is_ours = |pid: &u32| *pid == process::id() || Some(*pid) == watcher::pid();
        let processes = self.part.as_ref().map_or_else(|| Ok(Vec::new()), |(_, part)| part.processes());
        is_alone && processes.is_ok_and(|all| all.iter().all(is_ours))
    }

    /// Puts it back as it was: nothing can be started in it as long as it is divided.
    fn undo(&self) {
        let _ = self.directory.write(HANDED_DOWN, &self.added);
        let Some((name, part)) = &self.part else { return };
        for _ in 0..TIMES {
            for pid in part.processes().unwrap_or_default() {
                // It may have ended.
                let _ = self.directory.write(PROCESSES, &pid.to_string());
            }
            if self.directory.remove(name).is_ok() {
                return;
            }
        }
    }
}

/// A name for the part of a cell.
fn cell_name() -> String {
    format!("{OF_CELL}{}-{}", process::id(), CELLS.fetch_add(1, Ordering::Relaxed))
}

/// Gives back the cgroup that this program has divided, as it ends. Not where something lives on that is bounded there, or was started here.
pub(crate) fn leave() {
    let mut divided = DIVIDED.lock();
    for _ in 0..MOMENTS {
        if let Some(found) = divided.take_if(|found| found.can_be_undone()) {
            found.undo();
        }
        if divided.is_none() {
            return;
        }
        std::thread::sleep(A_MOMENT);
    }
}

/// How often the bounds of a cell were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Processes that were ended as they would have taken more memory.
    pub ended: u64,
    /// Processes that could not be started.
    pub refused: u64,
}

impl Met {
    /// What came since.
    pub fn since(self, before: Self) -> Self {
        let (ended, refused) = (self.ended.saturating_sub(before.ended), self.refused.saturating_sub(before.refused));
        Self { ended, refused }
    }
}

/// The cgroup of a cell. It is removed with this, unless a process is still in it: then that is tried again when the next one is made, when this
/// program ends, and when the next program comes.
pub(crate) struct Group {
    above: Arc<Divided>,
    name: String,
    directory: Directory,
    entrance: File,
}

impl Group {
    /// Makes one for a profile; none where that bounds no memory.
    pub(crate) fn of(profile: &Profile) -> io::Result<Option<Arc<Self>>> {
        let Some(memory) = profile.memory else { return Ok(None) };
        let (above, name) = (divided().map_err(io::Error::other)?, cell_name());
        let named = |error: io::Error| io::Error::new(error.kind(), format!("making the cgroup of a cell: {error}"));
        let directory = above.cell(&name, memory, profile.processes).map_err(named)?;
        let entrance = directory.open_file(PROCESSES, OFlags::WRONLY).map_err(named)?;
        Ok(Some(Arc::new(Self { above, name, directory, entrance })))
    }

    /// Whether it still does what it was made for: a manager of the system's may have taken the controllers back.
    pub(crate) fn bounds(&self, profile: &Profile) -> bool {
        self.directory.has_bounds(profile)
    }

    /// Whether a process is in it.
    pub(crate) fn has(&self, pid: &str) -> bool {
        let processes = self.directory.processes().unwrap_or_default();
        pid.parse().is_ok_and(|pid| processes.contains(&pid))
    }

    /// Whether any process is in it; one that cannot be read counts as used.
    pub(crate) fn is_used(&self) -> bool {
        self.directory.processes().map_or(true, |processes| !processes.is_empty())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory.path
    }

    /// What a child writes [`MYSELF`] to. Whether it may is decided by who opened it, also in namespaces of the child's own.
    pub(crate) fn entrance(&self) -> RawFd {
        self.entrance.as_raw_fd()
    }

    pub(crate) fn met(&self) -> Met {
        let count = |file: &str, key: &str| {
            let text = self.directory.read(file).unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or_default()
        };
        Met { ended: count("memory.events", "oom_kill "), refused: count("pids.events", "max ") }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What was in it may not be taken out by the kernel yet.
        let _ = self.above.directory.remove(&self.name);
    }
}

/// Whether what a process starts cannot enter a cgroup of a cell: its user would have to be allowed to write in all that lie between that one and
/// the process's own.
pub fn cannot_enter(pid: &str) -> bool {
    let (divided, pid) = (DIVIDED.lock().clone(), pid.parse().unwrap_or_default());
    let has = |directory: &Directory| directory.processes().is_ok_and(|all| all.contains(&pid));
    let is_below = |above: &Directory| {
        let parts = above.parts().unwrap_or_default();
        has(above) || parts.iter().any(|name| above.below(Path::new(name)).is_ok_and(|part| has(&part)))
    };
    !rustix::process::geteuid().is_root() && divided.is_some_and(|divided| !is_below(&divided.directory))
}

/// What may help where a cgroup cannot be entered: older kernels decide by who writes, in namespaces of its own, not by who opened the file.
pub(crate) fn how_to_enter(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => " (this needs Linux 5.16 or later)",
        _ => "",
    }
}

/// Has this process enter the cgroup at a path, which another program made for a cell of this profile.
pub(crate) fn enter(profile: &Profile, path: Option<&Path>) -> io::Result<()> {
    if profile.memory.is_none() {
        return Ok(());
    }
    let odd = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("the cgroup of its cell {why}"));
    let directory = Directory::open(path.ok_or_else(|| odd("is not named"))?)?;
    if !directory.has_bounds(profile) {
        return Err(odd("does not bound memory and processes as its profile says"));
    }
    directory.write(PROCESSES, MYSELF).map_err(|error| odd(&format!("cannot be entered: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(own: &str, mounts: &str) -> Option<(String, String)> {
        let (mount, way) = place(Path::new(own), mounts)?;
        Some((mount.display().to_string(), way.display().to_string()))
    }

    #[test]
    fn a_cgroup_is_found_below_the_mount_that_shows_it() {
        let unified = "22 1 0:20 / / rw - ext4 /dev/sda rw\n\
                       30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let hybrid = "31 22 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      32 22 0:28 / /sys/fs/cgroup/unified rw shared:10 master:2 - cgroup2 cgroup2 rw\n";
        let part = "33 22 0:26 /a\\040b /mnt/c\\134d rw - cgroup2 none rw\n";
        for (own, mounts, expected) in [
            ("/user.slice/a.scope", unified, Some(("/sys/fs/cgroup", "user.slice/a.scope"))),
            ("/", unified, Some(("/sys/fs/cgroup", ""))),
            ("/x", hybrid, Some(("/sys/fs/cgroup/unified", "x"))),
            ("/a b/x", part, Some(("/mnt/c\\d", "x"))),
            ("/a bc/x", part, None),
            ("/x", part, None),
            ("/../x", unified, None),
            ("/x", "", None),
            ("/x", "30 22 0:26 / /sys/fs/cgroup rw", None),
        ] {
            let expected = expected.map(|(mount, way)| (mount.to_owned(), way.to_owned()));
            assert_eq!(placed(own, mounts), expected, "{own}");
        }
        assert_eq!(placed("/a b/x", &[part, unified].concat()), Some(("/mnt/c\\d".into(), "x".into())));
        assert_eq!(placed("/x", &[part, unified].concat()), Some(("/sys/fs/cgroup".into(), "x".into())));
    }

    #[test]
    fn what_helps_is_told_by_where_the_controllers_are() {
        let said =
            |lines: &str| how_to_boot(&format!("#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t4\t1\n{lines}"));
        assert_eq!(said("memory\t0\t112\t1\npids\t0\t112\t1\n"), None);
        assert_eq!(said(""), None, "newer kernels leave out those of version 2");
        for lines in ["memory\t4\t112\t1\npids\t0\t4\t1\n", "pids\t8\t4\t1\n"] {
            assert!(said(lines).is_some_and(|how| how.contains("unified_cgroup_hierarchy=1")), "{lines}");
        }
        assert!(said("memory\t0\t1\t0\n").is_some_and(|how| how.contains("cgroup_disable")));
    }

    #[test]
    fn a_part_names_its_maker() {
        assert_eq!(maker("toolcrib-host-12"), Some("12"));
        assert_eq!(maker("toolcrib-cell-12-3"), Some("12"));
        for name in ["toolcrib-host-", "toolcrib-cell-x-1", "toolcrib-other-1", "system.slice"] {
            assert_eq!(maker(name), None, "{name}");
        }
    }

    #[test]
    fn what_came_since_is_counted() {
        let (before, after) = (Met { ended: 1, refused: 7 }, Met { ended: 3, refused: 7 });
        assert_eq!(after.since(before), Met { ended: 2, refused: 0 });
        assert_eq!(before.since(after), Met::default());
    }
}
