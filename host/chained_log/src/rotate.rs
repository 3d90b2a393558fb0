//! Files that are full, or that somebody ends: each gets a number, and the chain goes on in the next.

use super::chain::{Chain, Head, Held, NOTHING, Tail, link, now, write_whole};
use base::disk::OwnDir;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::io;

impl Chain {
    /// Where the newest file that was rotated away ends; of one that a crash has left empty, the one before.
    pub fn last_rotated(&self) -> io::Result<Head> {
        for name in rotated(&self.directory, &self.name)?.iter().rev() {
            if let Some(head) = Tail::of(&self.directory.file(name)?)?.head {
                return Ok(head);
            }
        }
        Ok(NOTHING)
    }

    /// Ends a full file and renames it; returns its last line, or nothing where this user may not rename it. Such a file grows on.
    pub fn rotate(&self, held: Held, head: Head) -> io::Result<Result<Head, Held>> {
        if !self.directory.is_of_this_user() || !self.directory.is_writable() || is_frozen(&held.file) {
            return Ok(Err(held));
        }
        let (to, mut text) = (self.next_name()?, Vec::new());
        // Its last line first: whoever makes the next file goes on from what the renamed one ends with.
        let head = last_line(head, &to, &mut text);
        write_whole(&held.file, &text)?;
        self.directory.rename(&self.name, &to)?;
        self.remove_old()?;
        Ok(Ok(head))
    }

    /// Ends the file, full or not, and begins the next; returns the name that the old one got. At no moment is there no file: a writer who
    /// may make none here would take that for a trail that cannot be kept.
    pub fn rotate_now(&self) -> io::Result<String> {
        self.write(|writer| {
            let held = self.locked(writer)?;
            let mut text = Vec::new();
            let (head, length) = writer.end(self, &held, &mut text)?;
            if length == 0 {
                return Err(io::Error::other("it has no line yet"));
            }
            let to = self.next_name()?;
            let next = self.directory.create(&to)?;
            let head = last_line(head, &to, &mut text);
            let mut frozen = Ok(());
            let done = thaw(&held.file).and_then(|was_frozen| {
                let done = write_whole(&held.file, &text).and_then(|()| self.directory.exchange(&self.name, &to));
                if was_frozen {
                    // Both, and the old one also where nothing came of it.
                    let (old, new) = (freeze(&held.file), if done.is_ok() { freeze(&next) } else { Ok(()) });
                    frozen = old.and(new);
                }
                done
            });
            if done.is_err() {
                let _ = self.directory.remove(OsStr::new(&to));
            }
            done?;
            writer.goes_on_from(head);
            frozen?;
            self.remove_old()?;
            Ok(to)
        })
    }

    /// The name of the next file that is rotated away.
    fn next_name(&self) -> io::Result<String> {
        let stem = stem(&self.name);
        let last = rotated(&self.directory, &self.name)?.pop().and_then(|name| number(stem, &name)).unwrap_or(0);
        Ok(format!("{stem}-{:06}.jsonl", last + 1))
    }

    /// Removes the oldest files beyond those that are kept.
    fn remove_old(&self) -> io::Result<()> {
        let names = rotated(&self.directory, &self.name)?;
        for name in names.iter().take(names.len().saturating_sub(self.keeping.keep)) {
            if self.directory.file(name).is_ok_and(|file| thaw(&file).is_err()) {
                // Root has frozen it, so it is root's to remove.
                continue;
            }
            match self.directory.remove(OsStr::new(name)) {
                // Whoever filled the next file meanwhile removes old ones, too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        Ok(())
    }
}

/// Adds the last line of a file that gets this name.
fn last_line(head: Head, to: &str, text: &mut Vec<u8>) -> Head {
    let entry = json!({ "event": "rotated", "time": now(), "to": to });
    link(head, entry.to_string().as_bytes(), text)
}

/// Whether root has forbidden to change what stands in a file, and to rename it (`chattr +a`).
fn is_frozen(file: &File) -> bool {
    ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::APPEND))
}

/// Lets a file be renamed; returns whether it could not be before.
pub fn thaw(file: &File) -> io::Result<bool> {
    let is_frozen = is_frozen(file);
    if is_frozen {
        ioctl_setflags(file, ioctl_getflags(file)? - IFlags::APPEND)?;
    }
    Ok(is_frozen)
}

/// Forbids to change what stands in a file, and to rename it; for root.
pub fn freeze(file: &File) -> io::Result<()> {
    Ok(ioctl_setflags(file, ioctl_getflags(file)? | IFlags::APPEND)?)
}

/// The files that were rotated away from a trail of this name, the oldest first.
pub fn rotated(directory: &OwnDir, name: &str) -> io::Result<Vec<String>> {
    let stem = stem(name);
    let files = directory.files()?.into_iter().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<(u64, String)> = files.filter_map(|name| Some((number(stem, &name)?, name))).collect();
    names.sort();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}

/// `audit` of `audit.jsonl`.
fn stem(name: &str) -> &str {
    name.strip_suffix(".jsonl").unwrap_or(name)
}

/// 42 of `audit-000042.jsonl`.
fn number(stem: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(stem)?.strip_prefix('-')?.strip_suffix(".jsonl")?;
    (digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}
