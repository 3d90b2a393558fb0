//! What kind of content a body is: what its type says, and what its bytes show. `charset` tells which characters they are.

use encoding_rs::{Encoding, WINDOWS_1252};

/// How much of a body is looked at.
const SAMPLE_BYTES: usize = 64 << 10;

/// A `Content-Type`. RFC 9110, section 8.3.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Media {
    essence: String,
    charset: Option<String>,
}

impl Media {
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        let mut parts = content_type.unwrap_or_default().split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { essence, charset }
    }

    /// Returns the type for a message, unless it is none or something else in its place.
    pub(crate) fn name(&self) -> Option<&str> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte);
        let fits = (1..=100).contains(&self.essence.len()) && self.essence.bytes().all(plain);
        fits.then_some(&self.essence)
    }

    pub(crate) fn charset(&self) -> Option<&str> {
        self.charset.as_deref()
    }

    pub(crate) fn is_html(&self) -> bool {
        ["text/html", "application/xhtml+xml"].contains(&self.essence.as_str())
    }

    /// Tells whether a body is for programs alone. A type that says so is believed unless the bytes are plainly text; of
    /// other types it is the bytes that count.
    pub(crate) fn is_binary(&self, body: &[u8], encoding: &'static Encoding) -> bool {
        let sample = encoding.decode(&body[..body.len().min(SAMPLE_BYTES)]).0;
        let controls = sample.chars().filter(is_odd).count();
        if self.says_binary() {
            let is_cut = body.len() > SAMPLE_BYTES;
            let broken = sample.trim_end_matches(|last| is_cut && last == '\u{fffd}').contains('\u{fffd}');
            return controls > 0 || broken || encoding == WINDOWS_1252 || sample.starts_with("%PDF-");
        }
        sample.contains('\0') || controls * 32 > sample.chars().count()
    }

    fn says_binary(&self) -> bool {
        let (kind, name) = self.essence.split_once('/').unwrap_or_default();
        match kind {
            "audio" | "font" | "model" | "video" => true,
            "image" => !name.ends_with("+xml"),
            "application" => {
                BINARY.contains(&name)
                    || BINARY_FAMILIES.iter().any(|family| name.starts_with(family))
                    || name.ends_with("+zip")
            }
            _ => false,
        }
    }
}

const BINARY: [&str; 20] = [
    "gzip",
    "java-archive",
    "msword",
    "octet-stream",
    "pdf",
    "vnd.android.package-archive",
    "vnd.debian.binary-package",
    "vnd.rar",
    "wasm",
    "x-7z-compressed",
    "x-bzip2",
    "x-executable",
    "x-gzip",
    "x-msdownload",
    "x-protobuf",
    "x-rar-compressed",
    "x-tar",
    "x-xz",
    "zip",
    "zstd",
];
const BINARY_FAMILIES: [&str; 4] = ["font-", "vnd.ms-", "vnd.oasis.opendocument.", "vnd.openxmlformats-"];

/// Tells whether a character has no place in text: controls but for white space, backspace and escape.
fn is_odd(character: &char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\u{8}' | '\u{c}' | '\u{1b}' | '\u{85}')
}

/// Tells whether a text begins as an HTML document does, whatever its type says.
pub(crate) fn starts_as_html(body: &[u8]) -> bool {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
    ["<!doctype html", "<html"].iter().any(|start| {
        let (head, rest) = body.split_at_checked(start.len()).unwrap_or((body, b""));
        head.eq_ignore_ascii_case(start.as_bytes()) && !rest.first().is_some_and(u8::is_ascii_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charset;

    fn is_binary(content_type: Option<&str>, body: &[u8]) -> bool {
        let media = Media::of(content_type);
        media.is_binary(body, charset::encoding(body, media.charset(), false))
    }

    #[test]
    fn a_content_type_is_read_without_regard_to_case_and_quotes() {
        for (text, essence, charset) in [
            ("text/html", "text/html", None),
            ("Text/HTML; Charset=\"UTF-8\"", "text/html", Some("UTF-8")),
            (" text/plain ;format=flowed; charset = koi8-r ", "text/plain", Some("koi8-r")),
            ("text/plain; charset", "text/plain", None),
            ("", "", None),
        ] {
            let expected = Media { essence: essence.into(), charset: charset.map(str::to_owned) };
            assert_eq!(Media::of(Some(text)), expected, "{text}");
        }
        assert_eq!(Media::of(None), Media::default());
    }

    #[test]
    fn only_a_type_is_named_in_messages() {
        assert_eq!(Media::of(Some("image/svg+xml; a=b")).name(), Some("image/svg+xml"));
        for odd in ["", "please run `rm`", "a/\"b\"", &"a".repeat(101)] {
            assert_eq!(Media::of(Some(odd)).name(), None, "{odd}");
        }
    }

    #[test]
    fn binary_content_is_known_by_its_type_or_by_its_bytes() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let cases: [(Option<&str>, &[u8]); 13] = [
            (Some("image/png"), png),
            (Some("application/octet-stream"), png),
            (Some("text/plain"), png),
            (Some("text/html; charset=utf-8"), png),
            (None, png),
            (Some("application/x-unheard-of"), b"\x01\x02\x03\x04"),
            (Some("application/pdf"), b"%PDF-1.7\nall of it in ASCII\n"),
            (Some("application/zip"), b"\xff\xfe\xfd"),
            (Some("application/octet-stream"), b"caf\xe9"),
            (Some("audio/mpeg"), b"\xff\xfe\x00\xd8\x00\xd8"),
            (Some("text/plain"), b"one NUL\0 is enough"),
            (Some("font/woff2"), b"wOF2\0\x01\0\0"),
            (Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document"), b"PK\x03\x04"),
        ];
        for (content_type, body) in cases {
            assert!(is_binary(content_type, body), "{content_type:?} {body:?}");
        }
    }

    #[test]
    fn text_is_text_whatever_its_type() {
        let cases: [(Option<&str>, &[u8]); 13] = [
            (None, b""),
            (None, b"plain"),
            (Some("image/png"), b""),
            (Some("text/plain"), b"caf\xe9"),
            (Some("application/json"), b"{}"),
            (Some("application/octet-stream"), b"#!/bin/sh\n"),
            (Some("application/octet-stream"), "à la carte".as_bytes()),
            (Some("image/svg+xml"), b"<svg/>"),
            (Some("audio/x-mpegurl"), b"#EXTM3U\n"),
            (Some("text/plain"), b"\xff\xfea\0b\0"),
            (Some("text/plain; charset=utf-16le"), b"a\0b\0"),
            (Some("text/plain"), b"\x1b[31mred\x1b[0m"),
            (Some("text/plain; charset=iso-2022-jp"), b"\x1b$B$3\x1b(B"),
        ];
        for (content_type, body) in cases {
            assert!(!is_binary(content_type, body), "{content_type:?} {body:?}");
        }
    }

    #[test]
    fn a_character_at_the_end_of_the_sample_is_not_broken() {
        let text = "é".repeat(SAMPLE_BYTES);
        assert!(!is_binary(Some("application/octet-stream"), text.as_bytes()));
        assert!(!is_binary(Some("application/octet-stream"), &[b"a", text.as_bytes()].concat()));
    }

    #[test]
    fn a_document_is_known_by_its_start() {
        for html in [
            "<!DOCTYPE html>",
            " \n<HTML>",
            "\u{feff}<html lang=\"en\">",
            "<!doctype html SYSTEM 'about:legacy-compat'>",
        ] {
            assert!(starts_as_html(html.as_bytes()), "{html}");
        }
        for other in ["", "<", "<html5>", "<!doctype htm", "<p>", "html", "<?xml version='1.0'?>"] {
            assert!(!starts_as_html(other.as_bytes()), "{other}");
        }
    }
}
