//! Names of folders: on the wire in modified UTF-7 (RFC 3501, 5.1.3), here in Unicode.

use base64::Engine;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &IMAP_MUTF7,
    GeneralPurposeConfig::new().with_encode_padding(false).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// As a command names it.
pub(super) fn encoded(folder: &str) -> String {
    let (mut written, mut wide) = (String::new(), Vec::new());
    let end = |written: &mut String, wide: &mut Vec<u8>| {
        if !wide.is_empty() {
            *written += &format!("&{}-", BASE64.encode(&*wide));
            wide.clear();
        }
    };
    for char in folder.chars() {
        if (' '..='~').contains(&char) {
            end(&mut written, &mut wide);
            written.push(char);
            if char == '&' {
                written.push('-');
            }
        } else {
            let mut units = [0; 2];
            wide.extend(char.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    end(&mut written, &mut wide);
    written
}

/// As people read it. What is not valid is left as it is: such a folder can be shown, and opened by no other name.
pub(super) fn decoded(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut read = String::new();
    let mut rest = &*name;
    while let Some((before, behind)) = rest.split_once('&') {
        read += before;
        let Some((code, after)) = behind.split_once('-') else {
            read.push('&');
            rest = behind;
            continue;
        };
        match wide(code) {
            Some(text) => read += &text,
            None => read += &format!("&{code}-"),
        }
        rest = after;
    }
    read + rest
}

fn wide(code: &str) -> Option<String> {
    if code.is_empty() {
        return Some("&".into());
    }
    let bytes = BASE64.decode(code).ok()?;
    if bytes.len() % 2 != 0 {
        return None;
    }
    let units: Vec<u16> = bytes.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]])).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_rfc_3501_has_them() {
        for (folder, written) in [
            ("INBOX", "INBOX"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("A & B", "A &- B"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("🙂", "&2D3eQg-"),
        ] {
            assert_eq!(encoded(folder), written);
            assert_eq!(decoded(written.as_bytes()), folder);
        }
        for odd in ["&", "a&b", "&!-", "&AA-", "&2D0-"] {
            assert_eq!(decoded(odd.as_bytes()), odd);
        }
    }
}
