//! How far a machine is locked (host/docs/policy.md).

use super::{ConfineMode, Lock};

/// Numbers of users that a system hands out for services, not people: up to this (`SYS_UID_MAX` of login.defs).
const LAST_SERVICE: u32 = 999;

/// How far a machine is locked, and why no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is not: why.
    Open(&'static str),
    /// No flag, variable or file of the user, and no call of a tool, gets a plugin past the policy.
    Locked {
        /// No command runs unconfined.
        is_confined: bool,
    },
    /// The same, and the program and what it keeps are an account's that no person uses.
    Service,
}

impl Level {
    /// The level that these locks reach in a process of this user, whose commands are confined so.
    pub fn of(locks: &[Lock], uid: u32, mode: ConfineMode) -> Self {
        if locks.is_empty() {
            Self::Open("no policy has a lock: every plugin of a user is there")
        } else if !locks.iter().any(|lock| lock.of_root) {
            Self::Open("the lock is in a file of `--policy`, which whoever starts this program can leave out")
        } else {
            match uid {
                0 => Self::Open("this program runs as root, who can change the policy"),
                1..=LAST_SERVICE => Self::Service,
                _ => Self::Locked { is_confined: mode == ConfineMode::Required },
            }
        }
    }

    /// As people compare it.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Open(_) => 0,
            Self::Locked { .. } => 1,
            Self::Service => 2,
        }
    }

    /// What it means, and what is missing for the next.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Open(why) => why,
            Self::Locked { is_confined: true } => {
                "no flag, variable or file of yours gets a plugin past the policy, and no command of `run_shell` writes this program's state"
            }
            Self::Locked { is_confined: false } => {
                "no flag, variable or file of yours gets a plugin past the policy; commands of `run_shell` can still write this program's state"
            }
            Self::Service => {
                "no flag, variable or file gets a plugin past the policy, and this program runs as an account of its own"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicySource, Settings, Sources};

    #[test]
    fn a_level_is_reached_by_whose_the_lock_is_and_who_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy.toml");
        std::fs::write(&path, "[lock]\nplugins = \"pins\"\n").expect("a policy");
        let sources =
            Sources { home: "/home/u".into(), policies: vec![PolicySource::named(path)], ..Sources::default() };
        let mut locks = Settings::load(&sources).expect("settings").locks;
        let level = |locks: &[Lock], uid| Level::of(locks, uid, ConfineMode::Auto).number();
        assert_eq!([level(&[], 1000), level(&locks, 1000)], [0, 0]);
        locks[0].of_root = true;
        assert_eq!([0, 1, 999, 1000].map(|uid| level(&locks, uid)), [0, 2, 2, 1]);
        for (mode, expected) in [(ConfineMode::Off, true), (ConfineMode::Auto, true), (ConfineMode::Required, false)] {
            let words = Level::of(&locks, 1000, mode).words();
            assert_eq!(words.contains("can still write this program's state"), expected, "{mode:?}: {words}");
        }
    }
}
