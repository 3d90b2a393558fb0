//! Compiled components on disk, by content, each authenticated before it is believed.
//!
//! Deserialising forged code would run it. So a file counts only with a MAC under this user's key, over its name and all of its bytes;
//! anything else is compiled anew. What is in an entry beside the code: the plugin's definitions (`registry.rs`).

use crate::dirs::{private_dir, write_private};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::path::{Path, PathBuf};

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
    dir: PathBuf,
    key: [u8; KEY_BYTES],
}

impl CodeCache {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Opens the directory with its key, or makes both.
    pub(crate) fn open(dir: &Path, key: &Path) -> std::io::Result<Self> {
        private_dir(dir)?;
        Ok(Self(Some(Store { dir: dir.to_owned(), key: read_or_make_key(key)? })))
    }

    pub(crate) fn read(&self, name: &str) -> Option<Entry> {
        let store = self.0.as_ref()?;
        let bytes = std::fs::read(store.dir.join(name)).ok()?;
        let (mac, body) = bytes.split_at_checked(MAC_BYTES)?;
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
        let _ = write_private(&store.dir.join(name), &bytes);
    }
}

impl Store {
    fn mac(&self, name: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a MAC key may have any length");
        mac.update(name.as_bytes());
        mac.update(&[0]);
        mac.update(body);
        mac
    }
}

fn read_or_make_key(path: &Path) -> std::io::Result<[u8; KEY_BYTES]> {
    if let Ok(key) = std::fs::read(path)
        && let Ok(key) = key.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(std::io::Error::other)?;
    write_private(path, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, CodeCache) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let cache = CodeCache::open(&dir.path().join("code"), &dir.path().join("key")).expect("a cache");
        (dir, cache)
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
        std::fs::remove_file(dir.path().join("key")).expect("the key's file");
        let cache = CodeCache::open(&dir.path().join("code"), &dir.path().join("key")).expect("a cache");
        assert!(cache.read("digest").is_none());
    }

    #[cfg(unix)]
    #[test]
    fn key_and_directory_are_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, _cache) = cache();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("made").permissions().mode() & 0o777;
        assert_eq!((mode("code"), mode("key")), (0o700, 0o600));
    }
}
