//! Text in headers: encoded words (RFC 2047), and values of parameters with their charset (RFC 2231).

use super::charset::unicode;
use super::head::{base64, escaped};

/// Bytes of one encoded word. RFC 2047 allows 75; many programs write longer ones.
const WORD_BYTES: usize = 4 << 10;

/// Decodes encoded words (RFC 2047) in a line. Adjacent ones are joined first: some programs split a character.
pub(super) fn words(line: &[u8]) -> String {
    let mut output = String::new();
    let mut joined: Option<(String, Vec<u8>)> = None;
    let end = |joined: &mut Option<(String, Vec<u8>)>, output: &mut String| {
        if let Some((charset, bytes)) = joined.take() {
            *output += &unicode(&bytes, Some(&charset), None);
        }
    };
    let (mut rest, mut literal) = (line, 0);
    while literal < rest.len() {
        let Some((charset, bytes, length)) = word(&rest[literal..]) else {
            literal += 1;
            continue;
        };
        let between = &rest[..literal];
        let is_adjacent = between.iter().all(u8::is_ascii_whitespace);
        if joined.is_none() || !is_adjacent {
            end(&mut joined, &mut output);
            output += &unicode(between, None, None);
        }
        match &mut joined {
            Some((same, known)) if *same == charset => known.extend(bytes),
            other => {
                end(other, &mut output);
                *other = Some((charset, bytes));
            }
        }
        rest = &rest[literal + length..];
        literal = 0;
    }
    end(&mut joined, &mut output);
    output + &unicode(rest, None, None)
}

/// Returns charset, bytes and length of the encoded word at the start.
fn word(line: &[u8]) -> Option<(String, Vec<u8>, usize)> {
    let rest = line.strip_prefix(b"=?")?;
    let rest = &rest[..rest.len().min(WORD_BYTES)];
    let name = rest.iter().take(64).position(|byte| *byte == b'?')?;
    let [b'?', encoding, b'?', text @ ..] = &rest[name..] else { return None };
    let length = text.windows(2).position(|end| end == b"?=")?;
    let text = &text[..length];
    let bytes = match encoding.to_ascii_uppercase() {
        b'B' => base64(text),
        b'Q' => {
            let mut bytes = Vec::with_capacity(length);
            let text: Vec<u8> = text.iter().map(|byte| if *byte == b'_' { b' ' } else { *byte }).collect();
            escaped(&text, b'=', &mut bytes);
            bytes
        }
        _ => return None,
    };
    // A language may follow (RFC 2231, 5).
    let charset = rest[..name].split(|byte| *byte == b'*').next().unwrap_or_default();
    Some((String::from_utf8_lossy(charset).to_ascii_lowercase(), bytes, 2 + name + 3 + length + 2))
}

/// Decodes `charset'language'%E6%97…` (RFC 2231), if it is that.
pub(super) fn extended(raw: &[u8]) -> Option<String> {
    let mut fields = raw.splitn(3, |byte| *byte == b'\'');
    let (charset, language, value) = (fields.next()?, fields.next()?, fields.next()?);
    let is_token = |field: &[u8]| field.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte));
    if charset.is_empty() || !is_token(charset) || !is_token(language) || !value.contains(&b'%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(value.len());
    escaped(value, b'%', &mut bytes);
    Some(unicode(&bytes, Some(&String::from_utf8_lossy(charset)), None))
}
