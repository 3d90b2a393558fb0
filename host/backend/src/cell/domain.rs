//! A domain of Landlock: what bounds commands where nobody may make namespaces. Where they write and what they send signals to is bounded, and
//! the filter leaves them no socket but pairs, without the machine's network. What can be read stays so, and what lies in a directory that
//! may be written cannot be protected.

use super::steps::result;
use super::{Group, Profile, filter, give_up};
use config::CellNetwork;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// The oldest that is enough: it bounds connections.
const LEAST: ABI = ABI::V4;
/// Adds rights over devices, signals and abstract sockets.
const BEST: ABI = ABI::V6;
/// What can be written outside of the directories that may be: what every program writes to, and the terminal that it is on.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];

/// All that a child needs to enter a domain, laid out before it exists.
pub(crate) struct Domain {
    rules: OwnedFd,
    filter: Vec<libc::sock_filter>,
    pub(crate) group: Option<Arc<Group>>,
}

impl Domain {
    /// Lays out the domain of a profile.
    pub(crate) fn of(profile: &Profile, group: Option<Arc<Group>>) -> io::Result<Self> {
        let mut rules = rules(profile.network).map_err(io::Error::other)?;
        let mut allow = |path: &Path, access, file: OwnedFd| {
            let added = (&mut rules).add_rule(PathBeneath::new(file, access));
            added.map(drop).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
        };
        for cache in &profile.caches {
            cache.make()?;
        }
        let caches = profile.caches.iter().map(|cache| cache.place.as_path());
        for root in profile.write.iter().map(|root| root.as_path()).chain(caches) {
            allow(root, AccessFs::from_write(BEST), open(root, OFlags::DIRECTORY)?)?;
        }
        for device in DEVICES.map(Path::new) {
            match open(device, OFlags::empty()) {
                Ok(file) => allow(device, AccessFs::WriteFile | AccessFs::IoctlDev, file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let rules: Option<OwnedFd> = rules.into();
        let families: &[_] = match profile.network {
            CellNetwork::Full => &[libc::AF_INET, libc::AF_INET6],
            CellNetwork::None | CellNetwork::Egress => &[],
        };
        // Processes of others are in sight, so that none is looked into.
        let filter = filter::program(families, false, false);
        Ok(Self { rules: rules.ok_or(io::ErrorKind::Unsupported)?, filter, group })
    }

    /// Enters it, for good. The last thing before executing.
    ///
    /// # Safety
    ///
    /// Nothing else runs in the memory of the thread that calls this.
    #[expect(unsafe_code, reason = "system calls of a child that shares memory until it executes")]
    pub(crate) unsafe fn enter(&self) -> Result<(), i32> {
        let (one, zero): (libc::c_ulong, libc::c_ulong) = (1, 0);
        // SAFETY: system calls on values of `self`; the rest is up to the caller.
        unsafe {
            result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero).into())?;
            result(libc::syscall(libc::SYS_landlock_restrict_self, self.rules.as_raw_fd(), 0))?;
            give_up(&self.filter, None)
        }
    }
}

/// What is refused where no rule allows it.
fn rules(network: CellNetwork) -> Result<RulesetCreated, landlock::RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?;
    let rules = match network {
        CellNetwork::Full => rules,
        CellNetwork::None | CellNetwork::Egress => rules.handle_access(AccessNet::from_all(LEAST))?,
    };
    let rules = rules.set_compatibility(CompatLevel::BestEffort);
    rules.handle_access(AccessFs::from_write(BEST))?.scope(Scope::from_all(BEST))?.create()
}

/// What lies at this path, by no link.
fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    opened.map_err(|error| io::Error::new(io::Error::from(error).kind(), format!("{}: {error}", path.display())))
}
