//! In which order a folder is searched: from its newest messages back, in windows that grow.

use super::commands::Window;

/// Messages of the first window, and of the largest.
const FIRST: u64 = 2000;
const LARGEST: u64 = 32_000;

/// The windows of a folder, newest first.
pub(super) struct Windows {
    /// The last UID that is not in a window yet; none at the end.
    last: Option<u32>,
    /// The server does not say which UIDs there are.
    is_open: bool,
    width: u64,
    /// UIDs for one message, about: in an old folder most may be gone.
    spread: u64,
    is_small: bool,
}

impl Windows {
    /// Those of a folder with so many messages, whose next one gets this UID.
    pub(super) fn new(messages: u32, next: Option<u32>) -> Self {
        let last = next.map(|next| next.saturating_sub(1)).filter(|last| *last > 0);
        let is_small = u64::from(messages) <= FIRST || last.is_none();
        let spread = u64::from(last.unwrap_or(1)).div_ceil(u64::from(messages.max(1))).max(1);
        let is_open = last.is_none();
        Self { last: Some(last.unwrap_or(u32::MAX)), is_open, width: FIRST, spread, is_small }
    }

    /// How many UIDs hold some messages, most likely.
    pub(super) fn some(&self) -> u32 {
        u32::try_from(self.spread * 20).unwrap_or(u32::MAX)
    }

    /// Whether there are further ones.
    pub(super) fn is_over(&self) -> bool {
        self.last.is_none()
    }
}

impl Iterator for Windows {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let last = self.last?;
        // Not beyond what there was when the folder was opened: what a server tells of besides was not asked for.
        let upper = if self.is_open { None } else { Some(last) };
        let width = u32::try_from(self.width * self.spread).unwrap_or(u32::MAX);
        let first = if self.is_small { 1 } else { last.saturating_sub(width - 1).max(1) };
        self.last = first.checked_sub(1).filter(|last| *last > 0);
        self.width = (self.width * 2).min(LARGEST);
        Some(Window { first, last: upper })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(messages: u32, next: Option<u32>) -> Vec<String> {
        Windows::new(messages, next).map(|window| window.to_string()).collect()
    }

    #[test]
    fn windows_grow_from_the_newest_message_back_and_leave_nothing_out() {
        assert_eq!(shown(100_000, Some(100_001))[..4], ["98001:100000", "94001:98000", "86001:94000", "70001:86000"]);
        let all = Windows::new(100_000, Some(100_001)).collect::<Vec<_>>();
        assert_eq!(all.last().map(|window| window.first), Some(1));
        assert!(all.windows(2).all(|pair| pair[1].last.map(|last| last + 1) == Some(pair[0].first)));
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn a_small_folder_and_one_that_does_not_say_its_next_uid_are_one_window() {
        for (messages, next) in [(0, Some(1)), (5_000_000, None), (1, Some(0))] {
            assert_eq!(shown(messages, next), ["1:*"]);
        }
        assert_eq!(shown(2000, Some(4_000_000_000)), ["1:3999999999"]);
    }

    #[test]
    fn where_most_uids_are_gone_windows_are_wider() {
        let all = shown(10_000, Some(4_000_000_001));
        assert_eq!(all[0], "3200000001:4000000000");
        assert!(all.len() < 6, "{all:?}");
        assert!(shown(u32::MAX, Some(u32::MAX)).len() < 200_000);
    }
}
