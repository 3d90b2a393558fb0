//! Compiled components on disk, by content, each authenticated before it is believed.
//!
//! Deserialising forged code would run it. So a file counts only with a MAC under this user's key, over its name and all of its bytes;
//! anything else is compiled anew. A key that another user could have put there is not used: then nothing is kept (`disk.rs`). An entry begins
//! with what the plugin said of itself (`tools/provider/`), which has a MAC of its own: a list of tools needs no code.

use base::disk::OwnDir;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io::{self, Read};

/// The directory of entries and the key, in the state directory.
const DIRECTORY: &str = "code";
const KEY: &str = "code.key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;

/// What was compiled from one component.
pub struct Entry {
    /// What is known of the plugin.
    pub said: Vec<u8>,
    /// Native code in wasmtime's own format.
    pub code: Vec<u8>,
}

/// Code that was authenticated in this program's own memory: a file could change between its check and its use.
pub struct Code {
    file: Vec<u8>,
    begin: usize,
}

impl AsRef<[u8]> for Code {
    fn as_ref(&self) -> &[u8] {
        &self.file[self.begin..]
    }
}

/// What a file begins with: the MACs of its parts, and the length of the first.
struct Head {
    said_mac: [u8; MAC_BYTES],
    code_mac: [u8; MAC_BYTES],
    said_bytes: usize,
}

const HEAD_BYTES: usize = 2 * MAC_BYTES + size_of::<u32>();

impl Head {
    fn of(file: &[u8]) -> Option<Self> {
        let (said_mac, rest) = file.split_first_chunk()?;
        let (code_mac, rest) = rest.split_first_chunk()?;
        let said_bytes = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        Some(Self { said_mac: *said_mac, code_mac: *code_mac, said_bytes })
    }
}

/// A part of an entry. The one is never taken for the other.
#[derive(Clone, Copy)]
enum Part {
    Said,
    Code,
}

/// A directory of entries, or nothing when the home cannot be written.
pub struct CodeCache(Option<Store>);

struct Store {
    entries: OwnDir,
    key: [u8; KEY_BYTES],
}

impl CodeCache {
    /// Keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Opens the entries with their key in the state directory, or makes both.
    pub fn open(state: &OwnDir) -> io::Result<Self> {
        Ok(Self(Some(Store { entries: state.below(DIRECTORY)?, key: read_or_make_key(state)? })))
    }

    /// Reads what is known of a plugin, and nothing more of its entry.
    pub fn said(&self, name: &str) -> Option<Vec<u8>> {
        let store = self.0.as_ref()?;
        let mut file = store.entries.file(name).ok()?;
        let mut begin = [0; HEAD_BYTES];
        file.read_exact(&mut begin).ok()?;
        let head = Head::of(&begin)?;
        let mut said = Vec::new();
        // As much as there is, should the length be a lie.
        file.take(head.said_bytes as u64).read_to_end(&mut said).ok()?;
        store.mac(name, Part::Said, &said).verify_slice(&head.said_mac).ok()?;
        Some(said)
    }

    /// Reads the code of an entry.
    pub fn code(&self, name: &str) -> Option<Code> {
        let store = self.0.as_ref()?;
        let file = store.entries.read(name).ok()??;
        let head = Head::of(&file)?;
        let code = Code { begin: HEAD_BYTES.checked_add(head.said_bytes).filter(|begin| *begin <= file.len())?, file };
        // Before a byte of it is interpreted.
        store.mac(name, Part::Code, code.as_ref()).verify_slice(&head.code_mac).ok()?;
        Some(code)
    }

    /// Keeps an entry. A cache that cannot be written costs time, not correctness: failing is not an error.
    pub fn write(&self, name: &str, entry: &Entry) {
        let Some(store) = &self.0 else { return };
        let Ok(length) = u32::try_from(entry.said.len()) else { return };
        let mac = |part, bytes| store.mac(name, part, bytes).finalize().into_bytes();
        let (said, code) = (mac(Part::Said, &entry.said), mac(Part::Code, &entry.code));
        let file = [&said[..], &code, &length.to_le_bytes(), &entry.said, &entry.code].concat();
        let _ = store.entries.replace(name, &file);
    }
}

impl Store {
    fn mac(&self, name: &str, part: Part, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a MAC key may have any length");
        // With the name: a valid entry that was renamed would run as the code of another component. No name contains 0.
        mac.update(name.as_bytes());
        mac.update(&[0, part as u8]);
        mac.update(bytes);
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
        Entry { said: b"[]".to_vec(), code: b"native code".to_vec() }
    }

    fn read(cache: &CodeCache, name: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (cache.said(name), cache.code(name).map(|code| code.as_ref().to_vec()))
    }

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let (_dir, cache) = cache();
        cache.write("digest", &entry());
        assert_eq!(read(&cache, "digest"), (Some(b"[]".to_vec()), Some(b"native code".to_vec())));
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
            let (said, code) = read(&cache, "digest");
            // What was changed is one of the two at least, and what is read is what was written.
            assert!(said.is_none() || code.is_none(), "byte {index} was changed");
            assert!(said.is_none_or(|said| said == b"[]") && code.is_none_or(|code| code == b"native code"));
        }
        for length in 0..good.len() {
            std::fs::write(&file, &good[..length]).expect("a shorter entry");
            assert!(cache.code("digest").is_none(), "{length} bytes");
        }
    }

    #[test]
    fn what_a_plugin_said_is_not_taken_for_code() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        let file = dir.path().join("code/digest");
        let good = std::fs::read(&file).expect("the entry's file");
        // The same MACs and bytes, each as the other part.
        let swapped =
            [&good[MAC_BYTES..2 * MAC_BYTES], &good[..MAC_BYTES], &11_u32.to_le_bytes(), b"native code", b"[]"];
        std::fs::write(&file, swapped.concat()).expect("a forged entry");
        assert_eq!(read(&cache, "digest"), (None, None));
    }

    #[test]
    fn an_entry_under_another_name_is_not_believed() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        std::fs::rename(dir.path().join("code/digest"), dir.path().join("code/other")).expect("a renamed entry");
        assert_eq!(read(&cache, "other"), (None, None));
    }

    #[test]
    fn an_entry_of_another_key_is_not_believed() {
        let (dir, cache) = cache();
        cache.write("digest", &entry());
        std::fs::remove_file(dir.path().join(KEY)).expect("the key's file");
        assert_eq!(read(&again(&dir), "digest"), (None, None));
    }

    #[test]
    fn key_and_directory_are_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, _cache) = cache();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("made").permissions().mode() & 0o777;
        assert_eq!((mode(DIRECTORY), mode(KEY)), (0o700, 0o600));
    }
}
