//! Names of attached files, as they can be shown and written.

use super::HEADER_BYTES;
use super::words::{extended, words};
use base::text::sanitize;
use std::borrow::Cow;

/// Characters of a file's name, its extension included.
pub(super) const NAME_CHARS: usize = 120;
const EXTENSION_CHARS: usize = 16;
/// Names that Windows takes for devices, with any extension.
const DEVICES: [&str; 7] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];

/// Returns the name of an attached file as it can be shown and written, or nothing where none is left.
pub(crate) fn file_name(raw: &[u8]) -> Option<String> {
    let raw = &raw[..raw.len().min(HEADER_BYTES)];
    let name = extended(raw).unwrap_or_else(|| words(raw));
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = match sanitize::line(last) {
        Cow::Borrowed(same) => same.chars().map(in_a_name).collect(),
        Cow::Owned(_) => last.chars().map(in_a_name).collect(),
    };
    let name = name.trim().trim_start_matches('.').trim_end_matches(['.', ' ']).trim();
    if name.chars().all(|c| c == '_') {
        return None;
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let is_port = |name: &str| matches!(stem.strip_prefix(name).map(|rest| rest.chars().collect()), Some::<Vec<_>>(rest) if matches!(rest[..], ['0'..='9' | '¹' | '²' | '³']));
    let is_device = DEVICES.contains(&stem.as_str()) || is_port("COM") || is_port("LPT");
    Some(shortened(&format!("{}{name}", if is_device { "_" } else { "" })))
}

/// What a character becomes in the name of a file: nothing in it shows otherwise than it is, or means anything to a shell's
/// or a system's paths.
fn in_a_name(c: char) -> char {
    let is_shown = sanitize::line(c.encode_utf8(&mut [0; 4])).chars().eq([c]);
    let is_joined = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    if c.is_control() || "<>:\"|?*".contains(c) || (!is_shown && !is_joined) { '_' } else { c }
}

/// Cuts the stem, so that the extension is still seen.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME_CHARS {
        return name.to_owned();
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| format!(".{extension}"));
    let extension = extension.filter(|extension| extension.chars().count() <= EXTENSION_CHARS).unwrap_or_default();
    let kept = NAME_CHARS - 1 - extension.chars().count();
    name.chars().take(kept).chain(['…']).chain(extension.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_mended() {
        let cases: [(&[u8], Option<&str>); 22] = [
            (b"a.pdf", Some("a.pdf")),
            (b"../../etc/passwd", Some("passwd")),
            (b"..\\..\\x.txt", Some("x.txt")),
            (b"C:\\x\\y.txt", Some("y.txt")),
            (b"../..", None),
            (b"a/", None),
            (b"", None),
            (b"   ", None),
            (b".bashrc", Some("bashrc")),
            (b"CON", Some("_CON")),
            (b"con.txt", Some("_con.txt")),
            (b"LPT1 .txt", Some("_LPT1 .txt")),
            ("COM¹.tar.gz".as_bytes(), Some("_COM¹.tar.gz")),
            (b"COMMON.txt", Some("COMMON.txt")),
            (b"a:b|c?.txt.", Some("a_b_c_.txt")),
            (b"a\x00b\x1b[2J\n.txt", Some("a_b_[2J_.txt")),
            ("invoice\u{202e}fdp.exe".as_bytes(), Some("invoice_fdp.exe")),
            (b"utf-8''%e6%97%a5%e6%9c%ac%2Fx.pdf", Some("x.pdf")),
            (b"utf-8'en'%e6%97%a5%e6%9c%ac.pdf", Some("日本.pdf")),
            (b"=?utf-8?B?5pel5pysLnBkZg==?=", Some("日本.pdf")),
            (b"K\xf6ln.pdf", Some("Köln.pdf")),
            (b"it's 100% o'clock.txt", Some("it's 100% o'clock.txt")),
        ];
        for (raw, expected) in cases {
            assert_eq!(file_name(raw).as_deref(), expected, "{raw:?}");
        }
        let long = file_name(format!("{}.pdf", "x".repeat(300)).as_bytes()).expect("a name");
        assert_eq!((long.chars().count(), long.ends_with("x….pdf")), (NAME_CHARS, true));
        let dots = file_name(format!("a.{}", "x".repeat(300)).as_bytes()).expect("a name");
        assert_eq!(dots.chars().count(), NAME_CHARS);
    }
}
