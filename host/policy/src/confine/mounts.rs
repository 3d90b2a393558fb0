//! The mounts of a toolset: directories of this machine under other names, as its agent knows them. They give nothing: what may be read and
//! written there is what may be under its own name, and a mount for reading takes writing away.

use crate::toolset::Toolset;
use backend::cell::{MountPoint, Profile};
use base::envelope::Failure;
use config::Config;
use std::path::Path;

/// Where a cell has directories made for mounts; elsewhere they have to be there.
const NEW: &str = "/run";
/// Places of the kernel's.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The mounts of a toolset, each with the directory that it is now.
///
/// # Errors
///
/// When one names what is no directory.
pub(super) fn of(config: &Config, toolset: Option<&str>) -> Result<Vec<MountPoint>, Failure> {
    let Some(name) = toolset else { return Ok(Vec::new()) };
    let toolset = Toolset::of(config, name)?;
    let mounts = toolset.mounts().map(|(at, mount)| {
        let odd = |why: String| odd(name, at, &why);
        let from = mount.path.canonicalize().map_err(|error| odd(format!("cannot be used: {error}")))?;
        if !from.is_dir() {
            return Err(odd("is of what is no directory".into()));
        }
        Ok(MountPoint { from, at: at.to_owned(), read_only: mount.read_only })
    });
    mounts.collect()
}

/// Refuses mounts that would open something, or cannot be made.
pub(super) fn check(profile: &Profile, home: &Path) -> Result<(), Failure> {
    let name = profile.toolset.as_deref().unwrap_or_default();
    for mount in &profile.mounts {
        let MountPoint { from, at, read_only } = mount;
        let odd = |why: String| odd(name, at, &why);
        let meets = |other: &Path| from.starts_with(other) || other.starts_with(from);
        // What is hidden or protected is so by its name.
        if let Some(hidden) = profile.hide.iter().find(|hidden| meets(hidden)) {
            return Err(odd(format!("is of what meets `{}`, which is hidden from commands", hidden.display())));
        }
        let protected = profile.protect.iter().find(|protected| protected.starts_with(from));
        if let Some(protected) = protected.filter(|_| !read_only) {
            return Err(odd(format!("is of what holds `{}`, which commands do not write", protected.display())));
        }
        if !read_only && !profile.can_write(from) {
            return Err(
                odd("can be written, and its directory cannot be: name that in `write` under [confine]".into()),
            );
        }
        if !profile.can_write(from) && !profile.has_in_sight(from) {
            return Err(odd("is of what commands do not see: name that in `read` under [confine]".into()));
        }
        let covers = |place: &Path| place.starts_with(at);
        if covers(home) || covers(from) || profile.write.iter().any(|root| covers(root) || at.starts_with(root)) {
            return Err(odd("would cover, or be in, what commands work on".into()));
        }
        if KERNEL.iter().any(|kernel| at.starts_with(kernel)) {
            return Err(odd("is in a place of the kernel's".into()));
        }
        if !at.starts_with(NEW) && !at.is_dir() {
            return Err(odd(format!("needs a directory there: make one, or mount it below {NEW}")));
        }
    }
    Ok(())
}

fn odd(toolset: &str, at: &Path, why: &str) -> Failure {
    let line = format!("mount.{:?} of [toolset.{toolset}]", at.display().to_string());
    Failure::invalid(format!("{line} {why}"))
        .hint("a mount gives nothing that its directory would not give under its own name")
}
