//! Signatures that were found to hold: each is checked once, and not at every start.
//!
//! An entry says that a key has signed these bytes, and nothing of what follows: which keys count, how many must agree and until when is
//! decided by the policy each time. So entries outlive a policy, and admit nothing by themselves. They are kept as compiled code is: a file
//! counts only with a MAC under this user's key (`engine/cache.rs` says for whom that is a wall).

use super::marks::mac;
use base::disk::OwnDir;
use hmac::Mac;
use std::collections::HashSet;

/// Their file in the state directory: the MAC, then the name of each.
const FILE: &str = "signatures";
/// Begins what the MAC is over: under the same key is what was seen of lists, which is text and begins otherwise.
const ABOUT: &[u8] = b"\0signatures\0";
const MAC_BYTES: usize = 32;
/// So many are remembered; beyond that all are checked anew.
const MOST: usize = 20_000;

/// What a signature is known by: made of the key, the bytes and the signature.
pub(super) type Name = [u8; 32];

/// The signatures that hold.
#[derive(Default)]
pub(super) struct Checked {
    holding: HashSet<Name>,
    has_more: bool,
}

impl Checked {
    /// What is kept; nothing of it, if anything else has written there.
    pub(super) fn read(state: &OwnDir, key: &[u8; 32]) -> Self {
        let read = || {
            let bytes = state.read(FILE).ok()??;
            let (sealed, names) = bytes.split_at_checked(MAC_BYTES)?;
            mac(key, &[ABOUT, names]).verify_slice(sealed).ok()?;
            let names = names.chunks_exact(size_of::<Name>());
            Some(names.map(|name| name.try_into().expect("chunks of this size")).collect())
        };
        Self { holding: read().unwrap_or_default(), has_more: false }
    }

    /// Whether a signature holds.
    pub(super) fn know(&mut self, name: Name, check: impl FnOnce() -> bool) -> bool {
        if self.holding.contains(&name) {
            return true;
        }
        let holds = check();
        if holds {
            if self.holding.len() >= MOST {
                self.holding.clear();
            }
            self.has_more = self.holding.insert(name);
        }
        holds
    }

    /// Keeps what was not known before. Two programs at once keep what the later one knows; where nothing can be written, all are checked anew.
    pub(super) fn keep(&mut self, state: &OwnDir, key: &[u8; 32]) {
        if !std::mem::take(&mut self.has_more) {
            return;
        }
        let names: Vec<u8> = self.holding.iter().flatten().copied().collect();
        let mut bytes = mac(key, &[ABOUT, &names]).finalize().into_bytes().to_vec();
        bytes.extend_from_slice(&names);
        let _ = state.replace(FILE, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    /// A directory where one signature is kept.
    fn kept() -> (tempfile::TempDir, OwnDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let state = OwnDir::open(directory.path()).expect("a state directory");
        let mut checked = Checked::default();
        assert!(checked.know([1; 32], || true) && !checked.know([2; 32], || false));
        checked.keep(&state, &KEY);
        (directory, state)
    }

    fn knows(state: &OwnDir, key: &[u8; 32], name: u8) -> bool {
        Checked::read(state, key).know([name; 32], || false)
    }

    #[test]
    fn what_holds_is_checked_once_and_what_does_not_each_time() {
        let (_directory, state) = kept();
        assert!(knows(&state, &KEY, 1) && !knows(&state, &KEY, 2));
        let mut checked = Checked::read(&state, &KEY);
        assert!(checked.know([2; 32], || true), "it was made good");
        checked.keep(&state, &KEY);
        assert!(knows(&state, &KEY, 1) && knows(&state, &KEY, 2));
    }

    #[test]
    fn what_anybody_else_wrote_is_not_believed() {
        let (directory, state) = kept();
        let file = directory.path().join(FILE);
        let good = std::fs::read(&file).expect("what is kept");
        for at in 0..good.len() {
            let mut forged = good.clone();
            forged[at] ^= 1;
            std::fs::write(&file, &forged).expect("written");
            let forged = Checked::read(&state, &KEY);
            assert!(forged.holding.is_empty(), "byte {at} was changed");
        }
        for forged in [[good.clone(), vec![2; 32]].concat(), good[..MAC_BYTES].to_vec(), good[..9].to_vec(), Vec::new()]
        {
            std::fs::write(&file, &forged).expect("written");
            assert!(!knows(&state, &KEY, 1) && !knows(&state, &KEY, 2), "{} bytes", forged.len());
        }
        std::fs::write(&file, &good).expect("written");
        assert!(knows(&state, &KEY, 1) && !knows(&state, &[8; 32], 1));
    }

    /// What was seen of lists has a MAC under the same key.
    #[test]
    fn what_is_sealed_for_another_purpose_is_not_believed() {
        let (directory, state) = kept();
        let names = [1; 32];
        let mut sealed = mac(&KEY, &[&names]).finalize().into_bytes().to_vec();
        sealed.extend_from_slice(&names);
        std::fs::write(directory.path().join(FILE), sealed).expect("written");
        assert!(!knows(&state, &KEY, 1));
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let mut checked = Checked::default();
        for number in 0..MOST + 2 {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_le_bytes());
            assert!(checked.know(name, || true));
        }
        assert_eq!(checked.holding.len(), 2);
    }
}
