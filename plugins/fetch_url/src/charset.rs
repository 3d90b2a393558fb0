//! Which encoding a body is in, by the order of the HTML and Encoding standards.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use html5gum::{StartTag, Token, Tokenizer};

/// Where documents declare their encoding. HTML Standard, "prescan a byte stream to determine its encoding".
const PRESCAN_BYTES: usize = 1024;

/// Returns the encoding: the byte order mark's, the one that the header names, the one that an HTML document declares,
/// UTF-8 where it is valid, or else windows-1252.
pub(crate) fn encoding(body: &[u8], named: Option<&str>, is_html: bool) -> &'static Encoding {
    let of_label = |label: &str| Encoding::for_label(label.as_bytes());
    Encoding::for_bom(body)
        .map(|(encoding, _)| encoding)
        .or_else(|| named.and_then(of_label))
        .or_else(|| if is_html { declared(body) } else { None })
        .unwrap_or_else(|| if is_utf8(body) { UTF_8 } else { WINDOWS_1252 })
}

/// Tells whether it is UTF-8, if need be with the last character cut.
fn is_utf8(body: &[u8]) -> bool {
    std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Returns the encoding that a `meta` element near the start declares.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let start = &body[..body.len().min(PRESCAN_BYTES)];
    let encoding = Tokenizer::new(start).flatten().find_map(|token| match token {
        Token::StartTag(tag) if tag.name.as_slice() == b"meta" => Encoding::for_label(&label(&tag)?),
        _ => None,
    })?;
    // Whoever could read the declaration up to here did not read UTF-16.
    Some(if encoding == UTF_16BE || encoding == UTF_16LE { UTF_8 } else { encoding })
}

fn label(meta: &StartTag<()>) -> Option<Vec<u8>> {
    let attribute = |name: &str| meta.attributes.get(name.as_bytes()).map(|value| value.as_slice());
    if let Some(charset) = attribute("charset") {
        return Some(charset.to_vec());
    }
    attribute("http-equiv").filter(|name| name.eq_ignore_ascii_case(b"content-type"))?;
    let content = attribute("content")?.to_ascii_lowercase();
    let at = content.windows(7).position(|word| word == b"charset")? + 7;
    let value = content[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b";\"'".contains(byte);
    value.split(ends).next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_tells_decides() {
        let cases: [(&[u8], Option<&str>, bool, &str); 19] = [
            (b"\xef\xbb\xbfa", Some("koi8-r"), false, "UTF-8"),
            (b"\xff\xfea\0", Some("utf-8"), true, "UTF-16LE"),
            (b"\xfe\xff\0a", None, false, "UTF-16BE"),
            (b"<meta charset=utf-8>", Some("Shift_JIS"), true, "Shift_JIS"),
            (b"<meta charset=koi8-r>", Some("no-such"), true, "KOI8-R"),
            (b"<META CHARSET='GBK'>", None, true, "GBK"),
            (b"<meta charset=latin1>", None, true, "windows-1252"),
            (b"<meta charset=utf-16>", None, true, "UTF-8"),
            (b"<meta charset=no-such><meta charset=euc-kr>", None, true, "EUC-KR"),
            (b"<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>", None, true, "windows-1251"),
            (b"<meta content=\"text/html;charset = 'big5' ; x\" http-equiv=\"content-type\">", None, true, "Big5"),
            (b"<meta http-equiv=refresh content='0; charset=koi8-r'>", None, true, "UTF-8"),
            (b"<!-- <meta charset=koi8-r> --><p>", None, true, "UTF-8"),
            (b"\x80\xff<meta charset=koi8-r>", None, true, "KOI8-R"),
            (b"<meta charset=koi8-r>", None, false, "UTF-8"),
            (b"caf\xc3\xa9", None, false, "UTF-8"),
            (b"caf\xc3", None, false, "UTF-8"),
            (b"caf\xe9!", None, false, "windows-1252"),
            (b"", None, false, "UTF-8"),
        ];
        for (body, named, is_html, expected) in cases {
            let body_text = String::from_utf8_lossy(body);
            assert_eq!(encoding(body, named, is_html).name(), expected, "{body_text} {named:?}");
        }
    }

    #[test]
    fn a_declaration_far_down_is_not_looked_for() {
        let near = [&[b' '; 900][..], b"<meta charset=koi8-r>"].concat();
        let far = [&[b' '; 1024][..], b"<meta charset=koi8-r>"].concat();
        assert_eq!(encoding(&near, None, true).name(), "KOI8-R");
        assert_eq!(encoding(&far, None, true).name(), "UTF-8");
    }
}
