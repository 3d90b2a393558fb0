//! Compiled components on disk, by content, each authenticated before it is believed.
//!
//! Deserialising forged code would run it. So a file counts only with a MAC under this user's key, over its name and all of its bytes;
//! anything else is compiled anew. A key that another user could have put there is not used: then nothing is kept (`disk.rs`). What is in an
//! entry beside the code: the plugin's definitions (`tools/registry.rs`).

use crate::disk::OwnDir;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io;

/// The directory of entries and the key, in the state directory.
const DIRECTORY: &str = "code";
const KEY: &str = "code.key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;

/// What was compiled from one component.
pub(crate) struct Entry {
    /// The plugin's definitions, as JSON.
    pub(crate) definitions: Vec<u8>,
    /// Native code in wasmtime's own format.
    pub(crate) code: Vec<u8>,
}

/// A directory of entries, or nothing when the home cannot be written.
pub(crate) struct CodeCache(Option<Store>);

struct Store {
    entries: OwnDir,
    key: [u8; KEY_BYTES],
}

impl CodeCache {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Opens the entries with their key in the state directory, or makes both.
    pub(crate) fn open(state: &OwnDir) -> io::Result<Self> {
        Ok(Self(Some(Store { entries: state.below(DIRECTORY)?, key: read_or_make_key(state)? })))
    }

    pub(crate) fn read(&self, name: &str) -> Option<Entry> {
        let store = self.0.as_ref()?;
        let bytes = store.entries.read(name).ok()??;
        let (mac, body) = bytes.split_at_checked(MAC_BYTES)?;
        // Before a byte of it is interpreted.
        store.mac(name, body).verify_slice(mac).ok()?;
        let (length, body) = body.split_at_checked(size_of::<u32>())?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let (definitions, code) = body.split_at_checked(length)?;
        Some(Entry { definitions: definitions.to_vec(), code: code.to_vec() })
    }

    /// Keeps an entry. A cache that cannot be written costs time, not correctness: failing is not an error.
    pub(crate) fn write(&self, name: &str, entry: &Entry) {
        let Some(store) = &self.0 else { return };
        let Ok(length) = u32::try_from(entry.definitions.len()) else { return };
        let mut body = length.to_le_bytes().to_vec();
        body.extend_from_slice(&entry.definitions);
        body.extend_from_slice(&entry.code);
        let mut bytes = store.mac(name, &body).finalize().into_bytes().to_vec();
        bytes.append(&mut body);
        let _ = store.entries.replace(name, &bytes);
    }
}

impl Store {
    fn mac(&self, name: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a MAC key may have any length");
        // With the name: a valid entry that was renamed would run as the code of another component. No name contains 0.
        mac.update(name.as_bytes());
        mac.update(&[0]);
        mac.update(body);
        mac
    }
}

fn read_or_make_key(state: &OwnDir) -> io::Result<[u8; KEY_BYTES]> {
    if let Some(key) = state.read(KEY)?
        && let Ok(key) = key.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    // Of two programs that make a key at the same time one loses: its entries are compiled again, never believed.
    state.replace(KEY, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, CodeCache) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let cache = again(&dir);
        (dir, cache)
    }

    fn again(dir: &tempfile::TempDir) -> CodeCache {
        CodeCache::open(&OwnDir::open(dir.path()).expect("a state directory")).expect("a cache")
    }

    fn entry() -> Entry {
        Entry { definitions: b"[]".to_vec(), code: b"native code".to_vec() }
    }

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let (_dir, cache) = cache();
        cache.write("digest", &entry());
        let read = cache.read("digest").expect("the entry");
        assert_eq!((read.definitions, read.code), (b"[]".to_vec(), b"native code".to_vec()));
    }

    #[test]
    fn an_entry_with_any_byte_changed_is_not_believed() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        let file = dir.path().join("code/digest");
        let good = std::fs::read(&file).expect("the entry's file");
        for index in 0..good.len() {
            let mut forged = good.clone();
            forged[index] ^= 1;
            std::fs::write(&file, forged).expect("a forged entry");
            assert!(cache.read("digest").is_none(), "byte {index} was changed");
        }
    }

    #[test]
    fn an_entry_under_another_name_is_not_believed() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        std::fs::rename(dir.path().join("code/digest"), dir.path().join("code/other")).expect("a renamed entry");
        assert!(cache.read("other").is_none());
    }

    #[test]
    fn an_entry_of_another_key_is_not_believed() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        std::fs::remove_file(dir.path().join(KEY)).expect("the key's file");
        assert!(again(&dir).read("digest").is_none());
    }

    #[test]
    fn key_and_directory_are_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, _cache) = cache();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("made").permissions().mode() & 0o777;
        assert_eq!((mode(DIRECTORY), mode(KEY)), (0o700, 0o600));
    }
}
