//! What a message says, made from its bytes: headers, texts, names of files, and what its server found out about the sender.
//!
//! Every byte here is a stranger's. How HTML becomes text, `html` knows; what the server is asked, its caller.

use super::html;
use crate::text::sanitize;
use encoding_rs::{Encoding, ISO_2022_JP, REPLACEMENT, UTF_8, WINDOWS_1252};
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::{ContentType, MessageParser, MimeHeaders};
use std::borrow::Cow;

/// Bytes of a header that are looked at; more than any program writes.
const HEADER_BYTES: usize = 64 << 10;
/// Characters of a header that are shown.
const HEADER_CHARS: usize = 1000;
/// Bytes of one encoded word. RFC 2047 allows 75; many programs write longer ones.
const WORD_BYTES: usize = 4 << 10;
/// Characters of a file's name, its extension included.
const NAME_CHARS: usize = 120;
const EXTENSION_CHARS: usize = 16;
/// Names that Windows takes for devices, with any extension.
const DEVICES: [&str; 7] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];

/// The text of a part, and what its reader should know about it.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) notices: Vec<String>,
}

/// Returns what a header says, on one line. What a reader would not see shows as its code point.
pub(super) fn header(raw: &[u8]) -> String {
    let raw = &raw[..raw.len().min(HEADER_BYTES)];
    let is_break = |byte: u8| matches!(byte, b'\r' | b'\n');
    let unfolded: Vec<u8> = raw.iter().map(|byte| if is_break(*byte) { b' ' } else { *byte }).collect();
    let words = words(&unfolded);
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(sanitize::visible_line(&line), HEADER_CHARS)
}

/// Returns the text of a part that has this MIME head.
pub(super) fn text(head: &[u8], body: &[u8]) -> Text {
    let head = Head::of(head);
    let bytes = head.encoding.undo(body);
    let mut notices = Vec::new();
    let is_html = head.is_html();
    let charset = head.charset.clone().or_else(|| if is_html { declared(&bytes) } else { None });
    let unicode = unicode(&bytes, charset.as_deref(), Some(&mut notices)).replace("\r\n", "\n");
    let plain = if is_html { html::text(&unicode, &mut notices) } else { unicode };
    clean(&plain, notices)
}

/// Returns the content of a part that has this MIME head, with its transfer encoding undone.
pub(super) fn decoded(head: &[u8], body: &[u8]) -> Vec<u8> {
    Head::of(head).encoding.undo(body)
}

/// Returns the name of an attached file as it can be shown and written, or nothing where none is left.
pub(super) fn file_name(raw: &[u8]) -> Option<String> {
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

/// Tells whether the account's own server found the sender to be who the message says, by its `Authentication-Results`
/// (RFC 8601): DMARC, or else DKIM or SPF for the domain of `from`. `results` is one value, or header lines of that name.
///
/// Only the first result that names `authority` counts: a server adds its own on top, and what is below, a stranger
/// may have written. `None` where there is none. Without a list of public suffixes, a domain is taken for that of
/// `from` when it is the same or a parent of it.
pub(super) fn verified(results: &[u8], authority: &str, from: &str) -> Option<bool> {
    let domain = domain(from);
    let own = fields(results).into_iter().map(|field| sections(&field));
    let mut own = own.filter(|sections| sections.first().is_some_and(|id| is_server(id, authority)));
    let methods: Vec<Method> = own.next()?.iter().skip(1).filter_map(|section| Method::of(section)).collect();
    let dmarc: Vec<&Method> =
        methods.iter().filter(|method| method.name == "dmarc" && method.result != "none").collect();
    if !dmarc.is_empty() {
        let is_from = |method: &Method| method.value("header.from").is_none_or(|found| self::domain(found) == domain);
        return Some(dmarc.iter().all(|method| method.result == "pass" && is_from(method)));
    }
    let named = |method: &Method, properties: &[&str]| {
        let found = properties.iter().find_map(|property| method.value(property));
        found.is_some_and(|found| is_aligned(&self::domain(found), &domain))
    };
    Some(methods.iter().filter(|method| method.result == "pass").any(|method| match method.name.as_str() {
        "dkim" => named(method, &["header.d", "header.i"]),
        "spf" => named(method, &["smtp.mailfrom", "smtp.mail"]),
        _ => false,
    }))
}

/// Returns a notice where the name of a sender shows another address than the sender's.
pub(super) fn posing(name: &str, address: &str) -> Option<String> {
    let name = name.replace(['＠', '﹫'], "@");
    let is_within = |c: char| c.is_alphanumeric() || "._%+-@".contains(c);
    let shown = name.split(|c| !is_within(c)).map(|word| word.trim_matches(['.', '-', '@'])).find(|word| {
        let is_address = word.split_once('@').is_some_and(|(_, domain)| domain.contains('.'));
        is_address && !word.eq_ignore_ascii_case(address.trim())
    })?;
    let (shown, address) = (cut(sanitize::visible_line(shown), 200), cut(sanitize::visible_line(address), 200));
    Some(format!("the sender's name shows the address `{shown}`, but the message is from `{address}`"))
}

/// What the MIME head of a part says about its body.
struct Head {
    major: String,
    minor: String,
    charset: Option<String>,
    encoding: Transfer,
}

#[derive(Clone, Copy)]
enum Transfer {
    Plain,
    Base64,
    QuotedPrintable,
}

impl Head {
    fn of(raw: &[u8]) -> Self {
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

    fn is_html(&self) -> bool {
        matches!((self.major.as_str(), self.minor.as_str()), ("text", "html") | ("application", "xhtml+xml"))
    }
}

impl Transfer {
    fn undo(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => body.to_vec(),
            Self::Base64 => base64(body),
            Self::QuotedPrintable => quoted_printable(body),
        }
    }
}

/// Decodes what there is: line breaks and foreign bytes are skipped, and an end that was cut off is as far as it goes.
fn base64(body: &[u8]) -> Vec<u8> {
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
fn escaped(bytes: &[u8], mark: u8, output: &mut Vec<u8>) {
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

fn clean(text: &str, mut notices: Vec<String>) -> Text {
    let text = match sanitize::text(text) {
        Cow::Borrowed(same) => same.to_owned(),
        Cow::Owned(clean) => {
            notices.push("invisible or control characters were removed from the text".into());
            clean
        }
    };
    Text { text, notices }
}

/// Decodes encoded words (RFC 2047) in a line. Adjacent ones are joined first: some programs split a character.
fn words(line: &[u8]) -> String {
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
fn extended(raw: &[u8]) -> Option<String> {
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

/// Decodes bytes that are said to be in a charset. Where they cannot be, they are UTF-8, or else windows-1252, which
/// gives every byte a character; a notice says so.
fn unicode(bytes: &[u8], charset: Option<&str>, notices: Option<&mut Vec<String>>) -> String {
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
fn declared(body: &[u8]) -> Option<String> {
    let start = body[..body.len().min(1024)].to_ascii_lowercase();
    let at = start.windows(7).position(|word| word == b"charset")? + 7;
    let value = start[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let name = value.split(|byte| byte.is_ascii_whitespace() || b";\"'/>".contains(byte)).next()?;
    // Whoever could read the declaration up to here did not read UTF-16.
    let is_wide = name.starts_with(b"utf-16");
    Some(if is_wide { "utf-8".into() } else { String::from_utf8_lossy(name).into_owned() })
}

fn cut(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => text[..at].to_owned() + "…",
        None => text,
    }
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

/// One method and its result, of `Authentication-Results`.
struct Method {
    name: String,
    result: String,
    properties: Vec<(String, String)>,
}

/// What a section of that header is made of: words, and `=` between them.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Equals,
}

impl Method {
    fn of(section: &[Token]) -> Option<Self> {
        let mut pairs = Vec::new();
        let mut rest = section;
        while !rest.is_empty() {
            rest = match rest {
                [Token::Word(name), Token::Equals, Token::Word(value), rest @ ..] => {
                    pairs.push((name.to_ascii_lowercase(), value.clone()));
                    rest
                }
                // A section begins with its method; what does not is none.
                _ if pairs.is_empty() => return None,
                [_, rest @ ..] => rest,
                [] => rest,
            };
        }
        let mut pairs = pairs.into_iter();
        let (name, result) = pairs.next()?;
        // A version may follow the name.
        let name = name.split('/').next().unwrap_or_default().trim().to_owned();
        Some(Self { name, result: result.to_ascii_lowercase(), properties: pairs.collect() })
    }

    fn value(&self, property: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == property).map(|(_, value)| value.as_str())
    }
}

/// Splits header lines into the values of `Authentication-Results`; anything else is one value.
fn fields(results: &[u8]) -> Vec<Vec<u8>> {
    const NAME: &[u8] = b"authentication-results:";
    let results = &results[..results.len().min(HEADER_BYTES)];
    let begins = |line: &[u8]| line.len() >= NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME);
    let is_lines = begins(results.trim_ascii_start());
    let mut fields: Vec<Vec<u8>> = Vec::new();
    let mut is_wanted = !is_lines;
    for line in results.trim_ascii_start().split_inclusive(|byte| *byte == b'\n') {
        let is_continued = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        if is_lines && !is_continued {
            is_wanted = begins(line);
            if is_wanted {
                fields.push(line[NAME.len()..].to_vec());
            }
        } else if is_wanted {
            match fields.last_mut() {
                Some(field) => field.extend_from_slice(line),
                None => fields.push(line.to_vec()),
            }
        }
    }
    fields
}

/// Splits a value at its semicolons, without comments; quoted strings are parts of words.
fn sections(field: &[u8]) -> Vec<Vec<Token>> {
    let field = String::from_utf8_lossy(field);
    let mut sections = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = field.chars();
    let (mut comments, mut in_quotes) = (0_usize, false);
    while let Some(c) = chars.next() {
        let section = sections.last_mut().expect("there is always one");
        match c {
            '\\' if comments > 0 => _ = chars.next(),
            '(' if !in_quotes => {
                section.extend(word.take().map(Token::Word));
                comments += 1;
            }
            ')' if comments > 0 => comments -= 1,
            _ if comments > 0 => {}
            '"' => {
                in_quotes = !in_quotes;
                word.get_or_insert_default();
            }
            '\\' if in_quotes => word.get_or_insert_default().extend(chars.next()),
            _ if in_quotes => word.get_or_insert_default().push(c),
            ';' | '=' => {
                section.extend(word.take().map(Token::Word));
                if c == '=' { section.push(Token::Equals) } else { sections.push(Vec::new()) }
            }
            _ if c.is_whitespace() => section.extend(word.take().map(Token::Word)),
            _ => word.get_or_insert_default().push(c),
        }
    }
    // What a comment or a quoted string that never ends holds was not said.
    if comments == 0 && !in_quotes {
        sections.last_mut().expect("there is always one").extend(word.map(Token::Word));
    }
    sections
}

/// Tells whether a section is the name of the server, which a version may follow.
fn is_server(section: &[Token], authority: &str) -> bool {
    let is_named = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(authority.trim().trim_end_matches('.'));
    matches!(section, [Token::Word(name)] | [Token::Word(name), Token::Word(_)] if is_named(name))
}

fn domain(address: &str) -> String {
    let domain = address.rsplit('@').next().unwrap_or_default();
    domain.trim().trim_end_matches(['.', '>']).to_ascii_lowercase()
}

fn is_aligned(found: &str, from: &str) -> bool {
    let is_parent = || found.contains('.') && from.strip_suffix(found).is_some_and(|rest| rest.ends_with('.'));
    !found.is_empty() && (found == from || is_parent())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn plain(head: &str, body: &[u8]) -> String {
        text(head.as_bytes(), body).text
    }

    fn html(body: &str) -> Text {
        text(b"Content-Type: text/html; charset=utf-8\r\n", body.as_bytes())
    }

    #[test]
    fn headers_are_read_in_their_charsets() {
        let cases: [(&[u8], &str); 19] = [
            (b"plain", "plain"),
            (b"=?GB2312?B?1tDOxA==?=", "中文"),
            (b"=?gb18030?B?1tDOxIE57zE=?=", "中文㐂"),
            (b"=?koi8-r?B?8NLJ18XU?=", "Привет"),
            (b"=?ISO-2022-JP?B?GyRCRnxLXBsoQg==?=", "日本"),
            (b"=?Shift_JIS?B?k/qWew==?=", "日本"),
            (b"=?utf-8?B?5pel5g==?= =?utf-8?B?nKw=?=", "日本"),
            (b"=?utf-8?B?5pel5g==?=\r\n =?UTF-8*ja?B?nKw=?= end", "日本 end"),
            (b"=?utf-8?q?a_b=C3=A9?= =?iso-8859-1?q?=E9?= c", "a béé c"),
            (b"K\xf6ln", "Köln"),
            ("Köln".as_bytes(), "Köln"),
            (b"=?x-nope?Q?K=F6ln?=", "Köln"),
            (b"=?x-nope?Q?K=C3=B6ln?=", "Köln"),
            (b"=?us-ascii?Q?K=C3=B6ln?=", "Köln"),
            (b"=?utf-8?Q?K=F6ln?=", "Köln"),
            (b"=?utf-7?Q?+ZeVnLIqe?=", "日本語"),
            (b"=?utf-8?X?abc?= =?utf-8?Q?never", "=?utf-8?X?abc?= =?utf-8?Q?never"),
            (b"a\r\n\tb  c\nd", "a b c d"),
            (b"=?utf-8?Q?a=0D=0AX: b?=", "a X: b"),
        ];
        for (raw, expected) in cases {
            assert_eq!(header(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn a_header_shows_what_hides_in_it() {
        assert_eq!(header("a\u{202e}gpj.exe\u{200b}".as_bytes()), r"a\u{202e}gpj.exe\u{200b}");
        assert_eq!(header(b"\x1b[2Jx =?utf-8?B?G1syMEp5?="), "␛[2Jx ␛[20Jy");
        let long = header(&b"x".repeat(100_000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (HEADER_CHARS + 1, true));
    }

    #[test]
    fn texts_are_read_in_their_charsets() {
        let cases: [(&str, &[u8], &str); 17] = [
            ("", b"Hi \xc3\xa9", "Hi é"),
            ("Content-Type: text/plain; charset=GB18030", b"\xd6\xd0\xce\xc4", "中文"),
            ("Content-Type: text/plain; charset=\"Shift-JIS\"", b"\x93\xfa\x96\x7b", "日本"),
            ("Content-Type: text/plain; charset=cp932", b"\x93\xfa\x96\x7b", "日本"),
            ("Content-Type: text/plain; charset=ISO-2022-JP", b"\x1b$BF|K\\\x1b(B", "日本"),
            ("Content-Type: text/plain; charset=x-nope", b"\x1b$BF|K\\\x1b(B", "日本"),
            ("Content-Type: text/plain; charset=koi8-r", b"\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"),
            ("Content-Type: text/plain; charset=utf-7", b"Hi +ZeVnLIqe-", "Hi 日本語"),
            ("Content-Type: text/plain; charset=utf-7", b"Hi +ZeVnLIqe", "Hi 日本語"),
            ("Content-Type: text/plain; charset=x-nope", b"\x93hi\x94", "“hi”"),
            ("Content-Type: text/plain; charset=us-ascii", b"Gr\xfc\xdfe", "Grüße"),
            ("Content-Type: text/plain; charset=us-ascii", "Grüße".as_bytes(), "Grüße"),
            ("Content-Type: text/plain; charset=utf-8", b"Gr\xfc\xdfe", "Grüße"),
            (
                "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: Base64",
                b"R3LD\r\nvMOfZQ==",
                "Grüße",
            ),
            ("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: Base64", b"R3LDvMOfZ", "Grüß"),
            (
                "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain;\r\n charset=utf-8",
                b"Gr=C3=BC=C3=\r\n=9Fe = =GG  \r\nend=",
                "Grüße = =GG\nend",
            ),
            ("Content-Type: text/html", b"<meta charset=koi8-r><p>\xf0\xd2\xc9", "При"),
        ];
        for (head, body, expected) in cases {
            assert_eq!(plain(head, body), expected, "{head}");
        }
    }

    #[test]
    fn a_charset_that_lies_is_told() {
        let lied = text(b"Content-Type: text/plain; charset=utf-8", b"Gr\xfc\xdfe");
        assert_eq!(
            lied.notices,
            ["the text is not in the charset that it names (`utf-8`); it was read as windows-1252"]
        );
        let unknown = text(b"Content-Type: text/plain; charset=x-nope", b"\x93hi\x94");
        assert_eq!(
            unknown.notices,
            ["the text is in a charset that is not known (`x-nope`); it was read as windows-1252"]
        );
        assert!(text(b"Content-Type: text/plain; charset=x-nope", b"plain").notices.is_empty());
        assert!(text(b"Content-Type: text/plain; charset=utf-8", "cut é".as_bytes().split_at(5).0).notices.is_empty());
    }

    #[test]
    fn control_and_bidi_characters_of_a_text_are_gone_and_told() {
        let found = text(b"", "\u{1b}[2Ja\u{202e}b\u{200b}c\r\nd".as_bytes());
        assert_eq!(found.text, "abc\nd");
        assert_eq!(found.notices, ["invisible or control characters were removed from the text"]);
        assert!(text(b"", b"a\r\nb").notices.is_empty());
    }

    #[test]
    fn html_becomes_text() {
        let found = html(
            "<html><head><title>T</title><style>p{color:red}</style></head><body><!-- c --><h1>Head</h1><p>One \
             <b>two</b>&amp;<a href='https://a.test/x'>three</a></p><ul><li>a<li>b</ul><script>alert(1)</script>\
             <img src='https://track.test/p.gif'><img src='https://track.test/q.png' alt='Logo'><pre>x\n  y</pre>\
             <a href='javascript:x()'>no</a> <a href='mailto:a@b.test'>mail</a> <a href='https://c.test/'>https://c.test</a>",
        );
        assert_eq!(
            found.text,
            "# Head\n\nOne two&three (https://a.test/x)\n\n- a\n- b\n\n[image: Logo]\n\nx\n  y\n\nno mail (a@b.test) https://c.test"
        );
        assert_eq!(found.notices, ["2 remote images not fetched (track.test)"]);
    }

    #[test]
    fn hidden_text_is_marked() {
        let ways = [
            "<div style='display:none'>x</div>",
            "<div style='DISPLAY : NONE !important'>x</div>",
            "<div style='d\\69splay:none'>x</div>",
            "<div style='dis/**/play:block;display:/* a */none'>x</div>",
            "<p style='visibility:hidden'>x",
            "<span style='font-size:0'>x</span>",
            "<span style='font-size: 1px'>x</span>",
            "<span style='font:0/0 a'>x</span>",
            "<span style='color:#fff'>x</span>",
            "<font color=white>x</font>",
            "<font color='#FEFEFE'>x</font>",
            "<span style='color:rgb(255, 255, 255)'>x</span>",
            "<span style='color:hsl(0,0%,100%)'>x</span>",
            "<span style='color:transparent'>x</span>",
            "<table bgcolor=black><td><span style='color:#000'>x</table>",
            "<span style='opacity:0'>x</span>",
            "<span hidden>x</span>",
            "<span aria-hidden=true>x</span>",
            "<div style='position:absolute;left:-9999px'>x</div>",
            "<div style='text-indent:-100em'>x</div>",
            "<div style='max-height:0;overflow:hidden'>x</div>",
            "<div style='transform:scale(0)'>x</div>",
            "<div style='clip:rect(0 0 0 0)'>x</div>",
            "<style>.h{display:none}</style><p class='a h'>x</p>",
            "<p class=h>x</p><style>@media screen{ p.h { visibility : hidden } }</style>",
            "<style>@media (max-width:9px){.y{color:red}} #i, .q{opacity:0}</style><p id=i>x</p>",
            "<div hidden><span>x</div></span></div>",
            "<span hidden><div></span>x</div></span>",
            "<div hidden><table><tr><td></div>x</table></div>",
            "<dialog>x</dialog>",
            "<div style='background:url(a.png)'><span style='color:#fff'>x</span></div>",
            "<div style='background:linear-gradient(#fff, #fff)'><span style='color:#fff'>x</span></div>",
            "<div style='background:rgb(0, 0, 0)'><span style='color:#000'>x</span></div>",
            "<table background='a.png'><td><font color=white>x</font></table>",
        ];
        for way in ways {
            let found = html(&format!("<p>before</p>{way}<p>after"));
            assert_eq!(
                found.text.split_whitespace().collect::<Vec<_>>().join(" "),
                "before [hidden: x] after",
                "{way}"
            );
            assert_eq!(found.notices, ["text that a mail program would not show is marked `[hidden: …]`"], "{way}");
        }
    }

    #[test]
    fn text_that_is_shown_is_not_marked() {
        let ways = [
            "<p hidden></p>x",
            "<div style='font-size:0'><span style='font-size:14px'>x</span></div>",
            "<div style='visibility:hidden'><b style='visibility:visible'>x</b></div>",
            "<div style='display:none;display:block'>x</div>",
            "<td bgcolor='#000000'><font color='#ffffff'>x</font></td>",
            "<div style='background:#333 none'><span style='color:#fff'>x</span></div>",
            "<style>@media only screen and (max-width:600px){.d{display:none}}</style><p class=d>x</p>",
            "<p hidden>",
            "<ul><li hidden><li>x</ul>",
            "<p style='font-weight:1;font-size:1.2em;line-height:1px'>x</p>",
            "<font color=#ccc>x</font>",
            "<div style='background:#333 url(a.png)'><span style='color:#fff'>x</span></div>",
            "<div style='background:linear-gradient(to right, #000, #333)'><span style='color:#fff'>x</span></div>",
            "<div style='background-color:#000;background-image:url(a.png)'><span style='color:#fff'>x</span></div>",
            "<br hidden>x",
        ];
        for way in ways {
            let found = html(way);
            assert!(!found.text.contains("[hidden"), "{way}: {}", found.text);
        }
    }

    #[test]
    fn hidden_text_cannot_end_its_mark_and_is_bounded() {
        assert_eq!(html("<p hidden>a] [b</p>c").text, "[hidden: a) (b]\n\nc");
        let long = html(&format!("<p hidden>{}</p>c", "word ".repeat(100_000))).text;
        assert!(long.len() < 5000 && long.ends_with("…]\n\nc"), "{}", long.len());
        let link = html("<p hidden><a href='https://a.test/]x'>a</a></p>c").text;
        assert_eq!(link, "[hidden: a (https://a.test/%5Dx)]\n\nc");
    }

    #[test]
    fn a_link_that_shows_another_address_is_told() {
        let of = |link: &str| html(link).notices;
        let told = "a link shows `bank.test` but leads to `evil.test`";
        assert_eq!(of("<a href='https://evil.test/x'>https://bank.test/login</a>"), [told]);
        assert_eq!(of("<a href='https://evil.test/x'>bank.test</a>"), [told]);
        assert!(of("<a href='https://click.bank.test/x'>www.bank.test</a>").is_empty());
        assert!(of("<a href='https://evil.test/x'>file.2 read me</a>").is_empty());
    }

    /// The stack of a thread that serves calls.
    fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(1 << 20).spawn(test).expect("a thread").join().expect("no panic");
    }

    #[test]
    fn deep_and_big_mails_take_bounded_time() {
        on_a_small_stack(|| {
            let megabyte = |unit: &str| unit.repeat((1 << 20) / unit.len());
            let deep = |open: &str, close: &str| open.repeat(20_000) + "x" + &close.repeat(20_000);
            let cases = [
                ("nested div", deep("<div>", "</div>")),
                ("nested hidden", deep("<div style='color:#fff'>", "</div>")),
                ("nested table", deep("<table><tr><td>", "</td></tr></table>")),
                ("open p", megabyte("<p>x")),
                ("open b", megabyte("<b>x")),
                ("spans and wrong ends", "<div><span>".repeat(20_000) + &megabyte("</span>")),
                ("far ends", "<b>".to_owned() + &"<i>".repeat(20_000) + &megabyte("</b>")),
                ("attributes", "<p ".to_owned() + &megabyte("a=1 ")),
                ("many attributes", "<p ".to_owned() + &(0..90_000).map(|i| format!("a{i}=1 ")).collect::<String>()),
                ("names", (0..90_000).map(|i| format!("<n{i}>")).collect()),
                ("style", "<style>".to_owned() + &megabyte(".a{color:red}") + "</style><p class=a>x"),
                ("open style", "<style>".to_owned() + &megabyte("@media{{")),
                ("classes", "<style>.a{color:red}</style>".to_owned() + &megabyte("<p class='a b c d e f'>x")),
                ("css comments", "<p style='".to_owned() + &megabyte("/*") + "'>x"),
                ("links", megabyte("<a href=https://a.test>b</a>")),
                ("text", megabyte("word ")),
                ("less than", megabyte("<")),
                ("comments", megabyte("<!--")),
                ("entities", megabyte("&amp")),
                ("hidden", "<p hidden>".to_owned() + &megabyte("word ")),
                ("pre", "<pre>".to_owned() + &megabyte("\n")),
                ("images", megabyte("<img src=https://a.test/b>")),
            ];
            for (name, body) in cases {
                let begin = Instant::now();
                let found = html(&body);
                let took = begin.elapsed();
                assert!(found.text.len() <= 8 << 20, "{name}");
                assert!(took < Duration::from_secs(20), "{name}: {took:?}");
            }
        });
    }

    #[test]
    fn plain_bytes_take_bounded_time() {
        let megabyte = |unit: &[u8]| unit.repeat((1 << 20) / unit.len());
        let begin = Instant::now();
        for encoding in ["base64", "quoted-printable", "7bit"] {
            let head = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}");
            for unit in [&b"="[..], b"=\n", b" \n", b"A", b"\xff", b"\x1b]", b"+", b"\xe2\x80\x8b"] {
                text(head.as_bytes(), &megabyte(unit));
            }
        }
        for unit in [&b"=?a?Q?"[..], b"=?", b"=?a?Q?x?= ", b"=", b"?"] {
            header(&megabyte(unit));
            file_name(&megabyte(unit));
            verified(&megabyte(unit), "a", "b");
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn transfer_encodings_are_undone() {
        assert_eq!(decoded(b"Content-Transfer-Encoding: base64", b"AAEC\r\n/w==\r\n"), [0, 1, 2, 255]);
        assert_eq!(decoded(b"content-transfer-encoding: BASE64 \r\n", b"AAEC/w"), [0, 1, 2, 255]);
        assert_eq!(decoded(b"Content-Transfer-Encoding: quoted-printable", b"=00=ff=\r\n="), [0, 255]);
        assert_eq!(decoded(b"Content-Type: a/b", b"=00"), *b"=00");
    }

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

    #[test]
    fn the_own_server_tells_who_sent_it() {
        let cases: [(&str, Option<bool>); 26] = [
            ("mx.own.test; dmarc=pass header.from=bank.test", Some(true)),
            ("MX.own.test 1; DMARC = Pass (p=none) header.from=Bank.test", Some(true)),
            ("mx.other.test; dmarc=pass header.from=bank.test", None),
            ("mx.own.test.evil.test; dmarc=pass", None),
            ("", None),
            ("mx.own.test; none", Some(false)),
            ("mx.own.test; dmarc=fail header.from=bank.test; dkim=pass header.d=bank.test", Some(false)),
            ("mx.own.test; dmarc=pass header.from=evil.test", Some(false)),
            ("mx.own.test; dkim=pass header.d=bank.test", Some(true)),
            ("mx.own.test; dkim=pass header.i=@bank.test header.s=x header.b=abc==", Some(true)),
            ("mx.own.test; dkim=pass header.b=abc= header.d=bank.test", Some(true)),
            ("mx.own.test; dkim=pass header.d=evil.test", Some(false)),
            ("mx.own.test; dkim=pass header.d=test", Some(false)),
            ("mx.own.test; dkim=pass header.d=notbank.test", Some(false)),
            ("mx.own.test; dkim=fail header.d=bank.test; spf=pass smtp.mailfrom=a@bank.test", Some(true)),
            ("mx.own.test; spf=pass smtp.mailfrom=bounce@evil.test", Some(false)),
            ("mx.own.test; spf=fail smtp.mailfrom=a@bank.test", Some(false)),
            (
                "mx.own.test (dmarc=pass); spf=fail (; dmarc=pass header.from=bank.test (nested \\) )) smtp.mailfrom=a@x",
                Some(false),
            ),
            ("mx.own.test; spf=fail reason=\"; dmarc=pass\" smtp.mailfrom=a@x", Some(false)),
            ("mx.own.test; spf=fail reason=\"a\\\"; dmarc=pass\"", Some(false)),
            ("\"mx.own.test\"; dmarc=pass", Some(true)),
            ("mx.own.test; dmarc/1=pass", Some(true)),
            ("mx.own.test; x-dmarc=pass; reason=dmarc=pass", Some(false)),
            ("Authentication-Results: mx.own.test;\r\n dmarc=pass\r\n\theader.from=bank.test\r\n", Some(true)),
            (
                "Authentication-Results: other.test; dmarc=pass\r\nauthentication-results: mx.own.test; dmarc=fail\r\n\
                 Authentication-Results: mx.own.test; dmarc=pass\r\n",
                Some(false),
            ),
            ("Authentication-Results: other.test; dmarc=pass\r\nX: mx.own.test; dmarc=pass\r\n", None),
        ];
        for (results, expected) in cases {
            assert_eq!(verified(results.as_bytes(), "mx.own.test", "a@bank.test"), expected, "{results}");
        }
        assert_eq!(verified(b"mx; dkim=pass header.d=bank.test", "mx", "a@mail.bank.test"), Some(true));
        assert_eq!(verified(b"mx; dkim=pass header.d=mail.bank.test", "mx", "a@bank.test"), Some(false));
    }

    #[test]
    fn a_name_that_shows_another_address_is_told() {
        let told = Some(
            "the sender's name shows the address `bank@bank.test`, but the message is from `evil@evil.test`".to_owned(),
        );
        for name in ["bank@bank.test", "\"Bank\" <bank@bank.test>", "Bank (bank@bank.test)", "bank＠bank.test"] {
            assert_eq!(posing(name, "evil@evil.test"), told, "{name}");
        }
        for name in ["Bank", "", "Evil@EVIL.test", "evil@evil.test (evil@evil.test)", "Meet @ noon", "user@host"] {
            assert_eq!(posing(name, "evil@evil.test"), None, "{name}");
        }
    }

    #[test]
    fn random_bytes_do_no_harm() {
        const BITS: [&[u8]; 40] = [
            b"=?",
            b"?=",
            b"utf-8",
            b"?Q?",
            b"?B?",
            b"\r\n",
            b" ",
            b"Content-Type: text/html; charset=",
            b"koi8-r",
            b"utf-7",
            b"Content-Transfer-Encoding: base64",
            b"multipart/mixed; boundary=b",
            b"--b",
            b"<div style='",
            b"display:none'>",
            b"<style>",
            b".a{",
            b"}",
            b"</div>",
            b"<!--",
            b"\xff",
            b"\xe2\x80\xae",
            b"\x1b[",
            b"+",
            b"-",
            b"'",
            b"\"",
            b"(",
            b")",
            b";",
            b"=",
            b"@",
            b".",
            b"/*",
            b"\\",
            b"dmarc=pass",
            b"mx",
            b"%e6",
            b"<a href='https://",
            b"message/rfc822",
        ];
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..20_000 {
            let mut bytes = |count: usize| {
                let count = random(count);
                (0..count).fold(Vec::new(), |mut bytes, _| {
                    if random(4) == 0 {
                        bytes.push(random(256) as u8)
                    } else {
                        bytes.extend(BITS[random(40)])
                    }
                    bytes
                })
            };
            let (head, body) = (bytes(12), bytes(60));
            text(&head, &body);
            text(b"Content-Type: text/html", &body);
            decoded(&head, &body);
            let shown = header(&body);
            assert!(!shown.contains(['\n', '\u{1b}', '\u{202e}']), "{body:?}");
            if let Some(name) = file_name(&body) {
                assert!(!name.contains(['/', '\\', '\n']) && name.chars().count() <= NAME_CHARS, "{body:?}: {name}");
            }
            verified(&body, "mx", "a@b.test");
            posing(&shown, "a@b.test");
        }
    }
}
