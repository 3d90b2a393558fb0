//! Words of a POSIX shell's script that stand for just the bytes they are made of.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// One word.
pub fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// One word for a person to copy: in quotes only where a shell would not read it unchanged.
pub fn readable(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:@,%+".contains(c));
    if is_plain { text.to_owned() } else { word(text) }
}

/// Words with a space between, whatever bytes they hold.
pub fn words(words: &[OsString]) -> Vec<u8> {
    let mut quoted = Vec::new();
    for word in words {
        quoted.extend_from_slice(if quoted.is_empty() { b"'" } else { b" '" });
        for byte in word.as_bytes() {
            match byte {
                b'\'' => quoted.extend_from_slice(br"'\''"),
                byte => quoted.push(*byte),
            }
        }
        quoted.push(b'\'');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_alike() {
        for text in ["", "a b", "it's", "'", "$(x) `y` \\ \n \"z\""] {
            assert_eq!(words(&[text.into()]), word(text).into_bytes());
        }
        assert_eq!(words(&["a".into(), "b'c".into()]), br"'a' 'b'\''c'");
    }
}
