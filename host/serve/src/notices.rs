//! Notices for the person who started the server, each given once: lists are made again and again, and would repeat them.

use parking_lot::Mutex;
use std::collections::HashSet;

/// Notices that are remembered; beyond these all may be said again.
const REMEMBERED: usize = 1000;

/// Notices, and which of them were said.
pub struct Notices {
    say: fn(&str),
    said: Mutex<HashSet<String>>,
}

impl Notices {
    /// `say` shows one to whoever started the server.
    #[must_use]
    pub fn new(say: fn(&str)) -> Self {
        Self { say, said: Mutex::default() }
    }

    /// Says what is new among these.
    pub(crate) fn tell(&self, notices: impl IntoIterator<Item = String>) {
        let is_new = |notice: &String| {
            let mut said = self.said.lock();
            if said.len() >= REMEMBERED {
                said.clear();
            }
            said.insert(notice.clone())
        };
        // Not under the lock: whoever reads may be slow.
        notices.into_iter().filter(is_new).for_each(|notice| (self.say)(&notice));
    }
}
