//! Random values for the tests of this folder.

/// Characters of keys and of passwords.
pub(crate) const PRINTED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\"'&<>%\\$-_";

/// Repeats itself on every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    pub(crate) fn text(&mut self, alphabet: &str, chars: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..chars).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }

    /// Without zeros, which beside UTF-16 are a part of it.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| u8::try_from(1 + self.below(255)).expect("at most 255")).collect()
    }
}
