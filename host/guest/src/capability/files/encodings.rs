//! Encodings of text files: labels, reading, writing, and what a file that is not UTF-8 most likely is.
//!
//! Which file that is, and who may read it, is left to the module above.

use base::envelope::Failure;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, DecoderResult, EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use serde_json::json;

/// As a byte order mark is read; it is no part of the text.
const MARK: char = '\u{feff}';
/// How much of a file is guessed by, in bytes.
const GUESSED_BY: usize = 64 << 10;

/// The encoding of a label such as `utf-16le` or `latin1`; UTF-8 without one.
pub(super) fn named(label: Option<&str>) -> Result<&'static Encoding, Failure> {
    let Some(label) = label else { return Ok(UTF_8) };
    Encoding::for_label_no_replacement(label.as_bytes()).ok_or_else(|| {
        Failure::invalid(format!("`encoding` `{label}` is not a known encoding"))
            .hint("use a label of the Encoding Standard, such as `utf-16le`, `windows-1252`, `gbk` or `shift_jis`")
    })
}

/// A label that [`named`] takes.
fn label(encoding: &'static Encoding) -> String {
    encoding.name().to_ascii_lowercase()
}

/// A text as a file has it.
pub(super) struct Text {
    pub(super) content: String,
    pub(super) has_mark: bool,
}

/// Reads all bytes of a file; refuses those that are something else.
pub(super) fn decode(path: &str, bytes: &[u8], encoding: &'static Encoding) -> Result<Text, Failure> {
    let found = Encoding::for_bom(bytes);
    let body = match found {
        Some((marked, length)) if marked == encoding => &bytes[length..],
        Some((marked, _)) if encoding != UTF_8 => {
            let message =
                format!("`{path}` has the byte order mark of {}, so it is not {}", marked.name(), encoding.name());
            return Err(Failure::failed(message).hint(format!("set `encoding` to `{}`", label(marked))));
        }
        Some(_) | None => bytes,
    };
    let has_mark = body.len() < bytes.len();
    if encoding == UTF_8 {
        return match std::str::from_utf8(body) {
            Ok(text) => Ok(Text { content: text.to_owned(), has_mark }),
            Err(fault) => {
                let at = bytes.len() - body.len() + fault.valid_up_to();
                Err(not_text(path, bytes, at as u64, bytes.len() as u64))
            }
        };
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let most = decoder.max_utf8_buffer_length_without_replacement(body.len());
    let mut content = String::with_capacity(most.unwrap_or(body.len()));
    match decoder.decode_to_string_without_replacement(body, &mut content, true) {
        (DecoderResult::InputEmpty, _) => Ok(Text { content, has_mark }),
        (DecoderResult::Malformed(length, past), read) => {
            let at = bytes.len() - body.len() + read - usize::from(length) - usize::from(past);
            let message = format!("`{path}` is not {}: byte {at} of {} is not valid", encoding.name(), bytes.len());
            Err(Failure::failed(message).hint("omit `encoding` to be told the likely one"))
        }
        (DecoderResult::OutputFull, _) => {
            Err(Failure::failed(format!("`{path}` cannot be read as {}", encoding.name())))
        }
    }
}

/// The bytes of a text. A character that the encoding lacks is named with its place.
pub(super) fn encode(text: &str, encoding: &'static Encoding, has_mark: bool) -> Result<Vec<u8>, Failure> {
    let mark = if has_mark { String::from(MARK) } else { String::new() };
    if encoding == UTF_8 {
        return Ok([mark.as_bytes(), text.as_bytes()].concat());
    }
    if encoding == UTF_16LE || encoding == UTF_16BE {
        let bytes = if encoding == UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
        return Ok(mark.encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect());
    }
    let mut encoder = encoding.new_encoder();
    let (mut bytes, mut read) = (Vec::new(), 0);
    loop {
        let most = encoder.max_buffer_length_from_utf8_without_replacement(text.len() - read);
        bytes.reserve(most.unwrap_or(text.len()).max(16));
        let (result, taken) = encoder.encode_from_utf8_to_vec_without_replacement(&text[read..], &mut bytes, true);
        read += taken;
        match result {
            EncoderResult::InputEmpty => return Ok(bytes),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                let before = &text[..read - c.len_utf8()];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                let message = format!(
                    "{} has no character for `{}` (U+{:04X}) in line {line}, column {column} of the new content; nothing was written",
                    encoding.name(),
                    c.escape_debug(),
                    u32::from(c)
                );
                return Err(Failure::invalid(message).hint("use another character there"));
            }
        }
    }
}

/// What bytes that begin a file say they are, if that is not text of this encoding.
pub(super) fn other_mark(bytes: &[u8], encoding: &'static Encoding) -> Option<&'static Encoding> {
    Encoding::for_bom(bytes).map(|(marked, _)| marked).filter(|marked| *marked != encoding)
}

/// As text, whatever is not valid in it; without a byte order mark.
pub(super) fn roughly(bytes: &[u8], encoding: &'static Encoding) -> String {
    encoding.decode_with_bom_removal(bytes).0.into_owned()
}

/// The likely encoding of text that has no byte order mark and is not UTF-8; none for what is no text.
pub(super) fn guessed(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = &bytes[..bytes.len().min(GUESSED_BY)];
    if bytes.iter().any(|byte| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f)) {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, false);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // A guess that does not even read the file is none.
    let mut text =
        String::with_capacity(guess.new_decoder().max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
    let (result, _, has_faults) = guess.new_decoder_without_bom_handling().decode_to_string(bytes, &mut text, false);
    (result == CoderResult::InputEmpty && !has_faults).then_some(guess)
}

/// What a file is by its first bytes, and its media type.
fn known(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let is = |magic: &[u8]| head.starts_with(magic);
    Some(match head {
        _ if is(b"\x89PNG\r\n\x1a\n") => ("a PNG image", "image/png"),
        _ if is(b"\xff\xd8\xff") => ("a JPEG image", "image/jpeg"),
        _ if is(b"GIF87a") || is(b"GIF89a") => ("a GIF image", "image/gif"),
        _ if is(b"RIFF") && head.get(8..12) == Some(b"WEBP") => ("a WebP image", "image/webp"),
        _ if is(b"%PDF-") => ("a PDF", "application/pdf"),
        _ => return None,
    })
}

/// Refuses what is known to be something else, although all its bytes are text.
pub(super) fn no_other(path: &str, head: &[u8], size: u64) -> Result<(), Failure> {
    if known(head).is_some() { Err(not_text(path, head, 0, size)) } else { Ok(()) }
}

/// Says why a file is not text, and what helps. `head` is its beginning, or none of it is known.
pub(super) fn not_text(path: &str, head: &[u8], at: u64, size: u64) -> Failure {
    const LOOK: &str = "look at it with run_shell, for example `file`, `xxd` or `strings`";
    if let Some((what, media_type)) = known(head) {
        let hint = match media_type {
            "application/pdf" => "read its text with run_shell: `pdftotext FILE -`",
            _ => "look at it with `read_file`",
        };
        let data = json!({ "bytes": size, "media_type": media_type });
        return Failure::failed(format!("`{path}` is not text: it is {what}")).hint(hint).data(data);
    }
    if let Some((marked, _)) = Encoding::for_bom(head).filter(|(marked, _)| *marked != UTF_8) {
        let message = format!("`{path}` is not UTF-8: its byte order mark says {}", marked.name());
        let label = label(marked);
        let data = json!({ "bytes": size, "encoding": label });
        return Failure::failed(message).hint(format!("set `encoding` to `{label}`")).data(data);
    }
    let message = format!("`{path}` is not text: byte {at} of {size} is not valid UTF-8");
    match guessed(head) {
        Some(guess) if !head.is_empty() => {
            let label = label(guess);
            let data = json!({ "bytes": size, "encoding": label, "is_guess": true });
            Failure::failed(format!("{message}; it may be {}, which is a guess", guess.name()))
                .hint(format!("set `encoding` to `{label}`; or {LOOK}"))
                .data(data)
        }
        _ => Failure::failed(message).hint(LOOK).data(json!({ "bytes": size })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], label: &str) -> Result<String, String> {
        let encoding = named(Some(label)).map_err(|failure| failure.message)?;
        decode("f", bytes, encoding).map(|text| text.content).map_err(|failure| failure.message)
    }

    #[test]
    fn text_in_each_encoding_is_the_same_bytes_again() {
        for (label, text) in [
            ("utf-16le", "é 🙂\r\n"),
            ("utf-16be", "é 🙂\r\n"),
            ("windows-1252", "café €"),
            ("gbk", "汉字"),
            ("shift_jis", "日本"),
            ("big5", "漢字"),
            ("euc-kr", "한국"),
            ("koi8-r", "привет"),
            ("iso-2022-jp", "日本 a"),
            ("utf-8", "ü"),
        ] {
            let encoding = named(Some(label)).expect("an encoding");
            let bytes = encode(text, encoding, false).expect("it has all of them");
            assert_eq!(read(&bytes, label).as_deref(), Ok(text), "{label}");
        }
        assert_eq!(encode("a", UTF_16LE, true), Ok(b"\xff\xfea\0".to_vec()));
        assert_eq!(encode("🙂", UTF_16BE, false), Ok(vec![0xd8, 0x3d, 0xde, 0x42]));
        assert!(named(Some("latin9000")).is_err() && named(Some("iso-2022-kr")).is_err());
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_named_with_its_place() {
        let long = "é".repeat(5000);
        let failure = encode(&format!("{long}\nab→c"), encoding_rs::WINDOWS_1252, false).expect_err("no arrow");
        assert_eq!(
            failure.message,
            "windows-1252 has no character for `→` (U+2192) in line 2, column 3 of the new content; nothing was written"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_place() {
        assert_eq!(read(b"a\0b", "utf-16le"), Err("`f` is not UTF-16LE: byte 2 of 3 is not valid".into()));
        assert_eq!(read(b"\xff\xfea\0\0\xd8", "utf-16le"), Err("`f` is not UTF-16LE: byte 4 of 6 is not valid".into()));
        assert_eq!(read(b"ab\x81\xff", "gbk"), Err("`f` is not GBK: byte 2 of 4 is not valid".into()));
        let other = "`f` has the byte order mark of UTF-16BE, so it is not UTF-16LE";
        assert_eq!(read(b"\xfe\xff\0a", "utf-16le"), Err(other.into()));
    }

    #[test]
    fn what_is_not_utf_8_is_named() {
        let said = |bytes: &[u8]| {
            let failure = decode("f", bytes, UTF_8).err().expect("not UTF-8");
            (failure.message, failure.hint.unwrap_or_default())
        };
        let (message, hint) = said(b"\xff\xfea\0");
        assert_eq!(message, "`f` is not UTF-8: its byte order mark says UTF-16LE");
        assert_eq!(hint, "set `encoding` to `utf-16le`");
        let (message, hint) = said(b"caf\xe9 cr\xe8me");
        assert_eq!(
            message,
            "`f` is not text: byte 3 of 10 is not valid UTF-8; it may be windows-1252, which is a guess"
        );
        assert!(hint.starts_with("set `encoding` to `windows-1252`"), "{hint}");
        let (message, _) = said(b"\x7fELF\x02\x01\x01\0\0\xff");
        assert_eq!(message, "`f` is not text: byte 9 of 10 is not valid UTF-8");
        let (message, hint) = said(b"\x89PNG\r\n\x1a\n\0");
        assert_eq!((&*message, &*hint), ("`f` is not text: it is a PNG image", "look at it with `read_file`"));
    }
}
