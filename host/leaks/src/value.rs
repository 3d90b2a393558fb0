use super::why_weak;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a value, at most.
pub const MOST_BYTES: usize = 16 << 10;

/// The value of a secret. It appears in no message.
#[derive(Clone)]
pub struct Value(Arc<Zeroizing<String>>);

impl Value {
    /// A value as it was written, without the end of its last line.
    ///
    /// # Errors
    ///
    /// Why it cannot be one, as the rest of a sentence.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MOST_BYTES {
            return Err(format!("it is longer than {} KiB", MOST_BYTES >> 10));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.contains('\0') {
            return Err("it contains a NUL byte".into());
        }
        match why_weak(text) {
            Some(why) => Err(format!("it {why}, so that it could not be told from other text")),
            None => Ok(Self::own(text)),
        }
    }

    /// A token of this program itself.
    #[must_use]
    pub fn own(text: &str) -> Self {
        Self(Arc::new(Zeroizing::new(text.to_owned())))
    }

    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}
