//! Which terminals people may be sitting at, from what `/proc` says of this machine's processes.
//!
//! What follows from it is decided in `policy/typing.rs`.

use super::tree::{Stat, all};
use std::collections::HashMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A terminal, by its device number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    pub major: u32,
    pub minor: u32,
}

/// What there is to know of terminals and of who is at them.
pub struct Sitting {
    /// The terminals of this process and of whatever started it.
    pub ours: Vec<Terminal>,
    /// All that started this process could be looked at.
    pub is_whole: bool,
    /// Terminals of other processes with the name of this program: each may ask somebody.
    pub others: Vec<Terminal>,
}

impl Terminal {
    /// The terminal at a path, such as `/dev/pts/3`.
    pub fn at(path: &Path) -> Option<Self> {
        let device = std::fs::metadata(path).ok().filter(|file| file.file_type().is_char_device())?.rdev();
        Some(Self { major: rustix::fs::major(device), minor: rustix::fs::minor(device) })
    }

    /// From the field `tty_nr`, in which the kernel splits the minor number in two; none for a process without a terminal.
    fn numbered(number: u32) -> Option<Self> {
        (number != 0).then_some(Self { major: number >> 8 & 0xfff, minor: number & 0xff | number >> 12 & 0xf_ff00 })
    }
}

impl Sitting {
    /// As it is now.
    pub fn now() -> Self {
        Self::of(&all(), std::process::id())
    }

    fn of(all: &[Stat], us: u32) -> Self {
        let processes: HashMap<u32, &Stat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        let (mut ours, mut pid) = (Vec::new(), us);
        while let Some(stat) = processes.get(&pid).filter(|stat| stat.pid != stat.parent) {
            ours.extend(Terminal::numbered(stat.terminal));
            pid = stat.parent;
        }
        let name = processes.get(&us).map(|stat| stat.name.as_str());
        let others = all.iter().filter(|stat| stat.pid != us && Some(stat.name.as_str()) == name);
        let others = others.filter_map(|stat| Terminal::numbered(stat.terminal)).collect();
        // A process that nobody started has the parent 0.
        Self { ours, is_whole: pid == 0, others }
    }

    /// This process, or what started it, has that terminal.
    pub fn we_are_at(&self, terminal: Terminal) -> bool {
        self.ours.contains(&terminal)
    }

    /// This process, or what started it, has a terminal, or may have one.
    pub fn we_may_be_at_any(&self) -> bool {
        !self.ours.is_empty() || !self.is_whole
    }

    /// Another process of this program has that terminal.
    pub fn others_are_at(&self, terminal: Terminal) -> bool {
        self.others.contains(&terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, name: &str, terminal: u32) -> Stat {
        Stat { pid, parent, group: pid, session: pid, ended: false, name: name.into(), terminal, begun: 0 }
    }

    /// `/dev/pts/3`, as the kernel numbers it.
    const PTS_3: u32 = 136 << 8 | 3;

    #[test]
    fn a_terminal_is_known_by_its_numbers() {
        assert_eq!(Terminal::numbered(PTS_3), Some(Terminal { major: 136, minor: 3 }));
        assert_eq!(Terminal::numbered(136 << 8 | 0x1000 << 12 | 2), Some(Terminal { major: 136, minor: 0x1002 }));
        assert_eq!(Terminal::numbered(0), None);
        assert_eq!(Terminal::at(Path::new("/dev/null")), Some(Terminal { major: 1, minor: 3 }));
        assert_eq!(Terminal::at(Path::new("/")), None);
    }

    #[test]
    fn whatever_started_us_counts_with_us() {
        let pts_3 = Terminal { major: 136, minor: 3 };
        let all = [stat(1, 0, "init", 0), stat(5, 1, "sh", PTS_3), stat(7, 5, "agent", 0), stat(9, 7, "crib", 0)];
        let sitting = Sitting::of(&all, 9);
        assert!(sitting.we_are_at(pts_3) && sitting.we_may_be_at_any() && !sitting.others_are_at(pts_3));
        let daemon = [stat(1, 0, "init", 0), stat(9, 1, "crib", 0), stat(11, 1, "crib", PTS_3)];
        let sitting = Sitting::of(&daemon, 9);
        assert!(!sitting.we_are_at(pts_3) && !sitting.we_may_be_at_any() && sitting.others_are_at(pts_3));
    }

    #[test]
    fn what_cannot_be_looked_at_may_have_a_terminal() {
        assert!(Sitting::of(&[stat(9, 7, "crib", 0)], 9).we_may_be_at_any());
        assert!(Sitting::of(&[], 9).we_may_be_at_any());
    }
}
