//! Characters of bytes, whatever charset they are said to be in.

use super::cut;
use base::text::sanitize;
use encoding_rs::{Encoding, ISO_2022_JP, REPLACEMENT, UTF_8, WINDOWS_1252};
use mail_parser::decoders::charsets::map::charset_decoder;

/// Decodes bytes that are said to be in a charset. Where they cannot be, they are UTF-8, or else windows-1252, which
/// gives every byte a character; a notice says so.
pub(super) fn unicode(bytes: &[u8], charset: Option<&str>, notices: Option<&mut Vec<String>>) -> String {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return decode(encoding, &bytes[length..]);
    }
    let named = charset.map(|name| by_name(name, bytes));
    let lied = match named {
        None => None,
        Some(Some((text, is_single))) if !is_wrong(&text, bytes, is_single) => return text,
        Some(Some(_)) => Some("not in the charset that it names"),
        Some(None) => Some("in a charset that is not known"),
    };
    let encoding = guess(bytes);
    if let (Some(lied), Some(notices), Some(name)) = (lied, notices, charset)
        && !bytes.is_ascii()
    {
        let name = cut(sanitize::visible_line(name), 40);
        notices.push(format!("the text is {lied} (`{name}`); it was read as {}", encoding.name()));
    }
    decode(encoding, bytes)
}

/// Decodes by the name of a charset, and tells whether every byte is a character there. `None` for unknown names.
fn by_name(name: &str, bytes: &[u8]) -> Option<(String, bool)> {
    let name = name.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
    let name = match name.to_ascii_lowercase().as_str() {
        "cp932" | "windows-932" => "shift_jis",
        "cp936" | "ms936" => "gbk",
        "cp949" | "ms949" => "euc-kr",
        "cp950" => "big5",
        "utf8mb4" | "utf-8-sig" | "cp65001" => "utf-8",
        _ => name,
    };
    match Encoding::for_label(name.as_bytes()) {
        Some(encoding) if encoding == REPLACEMENT => None,
        Some(encoding) => Some((decode(encoding, bytes), encoding.is_single_byte())),
        None => {
            let decoder = charset_decoder(name.as_bytes())?;
            let is_shifted = name.to_ascii_lowercase().contains("utf");
            let text = match bytes.iter().rposition(|byte| *byte == b'+') {
                // That decoder of UTF-7 drops a last run that nothing ends.
                Some(_) if is_shifted => decoder(&[bytes, b"-"].concat()).trim_end_matches('-').to_owned(),
                _ => decoder(bytes),
            };
            Some((text, !is_shifted))
        }
    }
}

/// As WHATWG decodes it, but a character that is cut off at the end is left out.
fn decode(encoding: &'static Encoding, bytes: &[u8]) -> String {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut output = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
    // There is room for all, so one call reads all.
    let _ = decoder.decode_to_string(bytes, &mut output, false);
    output
}

/// Tells whether bytes were decoded as what they are not: more than a tenth of what is not ASCII is no character, or a
/// charset of single bytes holds what is UTF-8 from end to end.
fn is_wrong(text: &str, bytes: &[u8], is_single: bool) -> bool {
    if is_single && !bytes.is_ascii() && is_utf8(bytes) {
        return true;
    }
    let bad = text.chars().filter(|c| *c == '\u{fffd}').count();
    bad > 0 && bad * 10 > text.chars().filter(|c| !c.is_ascii()).count()
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let shifts: [&[u8]; 3] = [b"\x1b$B", b"\x1b$@", b"\x1b(J"];
    if bytes.is_ascii() && shifts.iter().any(|shift| bytes.windows(3).any(|found| found == *shift)) {
        ISO_2022_JP
    } else if is_utf8(bytes) {
        UTF_8
    } else {
        WINDOWS_1252
    }
}

/// Tells whether it is UTF-8, if need be with the last character cut.
fn is_utf8(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none() && error.valid_up_to() > 0, |_| true)
}

/// Returns the charset that an HTML document declares near its start.
pub(super) fn declared(body: &[u8]) -> Option<String> {
    let start = body[..body.len().min(1024)].to_ascii_lowercase();
    let at = start.windows(7).position(|word| word == b"charset")? + 7;
    let value = start[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let name = value.split(|byte| byte.is_ascii_whitespace() || b";\"'/>".contains(byte)).next()?;
    // Whoever could read the declaration up to here did not read UTF-16.
    let is_wide = name.starts_with(b"utf-16");
    Some(if is_wide { "utf-8".into() } else { String::from_utf8_lossy(name).into_owned() })
}
