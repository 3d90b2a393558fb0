//! Words that stand for secrets: what a guest gets in place of one, good for its call alone. The egress puts the secret where the word is.

use base::text::id::random_id;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The words of one call.
#[derive(Default)]
pub struct StandIns(Mutex<BTreeMap<String, String>>);

impl StandIns {
    /// The word for a secret of this name: no other call knows it, and it has no character that a URL or JSON would write in another way.
    pub fn of(&self, secret: &str) -> String {
        let mut words = self.0.lock();
        words.entry(secret.to_owned()).or_insert_with(|| format!("secret-{secret}-{}", random_id())).clone()
    }

    /// The secrets whose words are in these bytes, each with its word.
    pub fn within(&self, bytes: &[u8]) -> Vec<(String, String)> {
        let words = self.0.lock();
        let is_there = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
        words.iter().filter(|(_, word)| is_there(word)).map(|(secret, word)| (secret.clone(), word.clone())).collect()
    }
}
