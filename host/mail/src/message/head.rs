//! What the MIME head of a part says of its body, and the body as it was before it was encoded for its way.

use super::HEADER_BYTES;
use mail_parser::{ContentType, MessageParser, MimeHeaders};

/// What the MIME head of a part says about its body.
pub(super) struct Head {
    major: String,
    minor: String,
    pub(super) charset: Option<String>,
    pub(super) encoding: Transfer,
}

#[derive(Clone, Copy)]
pub(super) enum Transfer {
    Plain,
    Base64,
    QuotedPrintable,
}

impl Head {
    pub(super) fn of(raw: &[u8]) -> Self {
        let raw = [raw[..raw.len().min(HEADER_BYTES)].trim_ascii_end(), b"\r\n\r\n"].concat();
        let parsed = MessageParser::default().parse_headers(&raw);
        let part = parsed.as_ref().and_then(|message| message.parts.first());
        let kind: Option<&ContentType> = part.and_then(|part| part.content_type());
        let lower = |text: &str| text.trim().to_ascii_lowercase();
        let encoding = match part.and_then(|part| part.content_transfer_encoding()).map(lower).as_deref() {
            Some("base64") => Transfer::Base64,
            Some("quoted-printable") => Transfer::QuotedPrintable,
            _ => Transfer::Plain,
        };
        let charset = kind.and_then(|kind| kind.attribute("charset")).map(lower).filter(|charset| !charset.is_empty());
        Self {
            major: kind.map_or_else(|| "text".into(), |kind| lower(kind.ctype())),
            minor: kind.and_then(|kind| kind.subtype()).map_or_else(|| "plain".into(), lower),
            charset,
            encoding,
        }
    }

    pub(super) fn is_html(&self) -> bool {
        matches!((self.major.as_str(), self.minor.as_str()), ("text", "html") | ("application", "xhtml+xml"))
    }
}

impl Transfer {
    pub(super) fn undo(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => body.to_vec(),
            Self::Base64 => base64(body),
            Self::QuotedPrintable => quoted_printable(body),
        }
    }
}

/// Decodes what there is: line breaks and foreign bytes are skipped, and an end that was cut off is as far as it goes.
pub(super) fn base64(body: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in body {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            // What follows begins anew: some programs join texts that were encoded one by one.
            b'=' => {
                count = 0;
                continue;
            }
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 1;
        match count {
            2 => output.push((bits >> 4) as u8),
            3 => output.push((bits >> 2) as u8),
            4 => {
                output.push(bits as u8);
                count = 0;
            }
            _ => {}
        }
    }
    output
}

fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = match line {
            [line @ .., b'\r', b'\n'] => (line, &b"\r\n"[..]),
            [line @ .., b'\n'] => (line, &b"\n"[..]),
            line => (line, &b""[..]),
        };
        // White space before a line break was added on the way (RFC 2045, 6.7).
        let line = if end.is_empty() { line } else { line.trim_ascii_end() };
        match line.strip_suffix(b"=") {
            Some(line) => escaped(line, b'=', &mut output),
            None => {
                escaped(line, b'=', &mut output);
                output.extend_from_slice(end);
            }
        }
    }
    output
}

/// Appends the bytes with `=E9` or `%E9` undone; what is not an escape stays.
pub(super) fn escaped(bytes: &[u8], mark: u8, output: &mut Vec<u8>) {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        output.push(*byte);
        if *byte == mark
            && let [high, low, after @ ..] = rest
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            output.pop();
            output.push((high << 4 | low) as u8);
            rest = after;
        }
    }
}
