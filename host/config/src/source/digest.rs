//! The digest by which bytes are known, as registries write it: `sha256:` and 64 hex digits.
//! The `Digest` of oci-spec takes every algorithm; the rest is in the head of `reference.rs`.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The algorithm, as references and options write it.
const SHA256: &str = "sha256:";

/// The SHA-256 of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// Reads a digest.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_hex = |hex: &str| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let shown = text.escape_debug();
        match text.strip_prefix(SHA256) {
            Some(hex) if is_hex(hex) => Ok(Self(hex.to_owned())),
            Some(_) => Err(format!("`{shown}` is not a digest: write `sha256:` and 64 digits of 0-9 and a-f")),
            None if is_hex(text) => Err(format!("`{shown}` does not name its algorithm: write `sha256:{text}`")),
            None => Err(format!("`{shown}` is not a digest of SHA-256: write `sha256:` and 64 digits of 0-9 and a-f")),
        }
    }

    /// Computes the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// The 64 digits, as settings and policies write them.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SHA256}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_names_its_algorithm_and_has_64_small_digits() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::parse(empty), Ok(Digest::of(b"")));
        assert_eq!(Digest::of(b"").to_string(), empty);
        let hex = &empty["sha256:".len()..];
        for (text, refusal) in [
            (hex.to_owned(), format!("write `sha256:{hex}`")),
            (empty.to_uppercase(), "is not a digest of SHA-256".into()),
            (format!("sha256:{}", hex.to_uppercase()), "64 digits of 0-9 and a-f".into()),
            (empty[..70].to_owned(), "64 digits".into()),
            (format!("{empty}0"), "64 digits".into()),
            (empty.replace("sha256", "sha512"), "is not a digest of SHA-256".into()),
            (String::new(), "is not a digest of SHA-256".into()),
        ] {
            let refused = Digest::parse(&text).unwrap_err();
            assert!(refused.contains(&refusal), "{text}: {refused}");
        }
    }
}
