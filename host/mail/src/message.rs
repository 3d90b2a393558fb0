//! What a message says, made from its bytes: headers and texts.
//!
//! Every byte here is a stranger's. `head` knows how a part is written, `words` and `charset` make characters of bytes, `names` and `results`
//! read names of files and what servers found. How HTML becomes text, `html` knows; what the server is asked, its caller.

mod charset;
mod head;
mod names;
mod results;
#[cfg(test)]
mod tests;
mod words;

pub(super) use names::file_name;
pub(super) use results::verified;

use super::html;
use base::text::sanitize;
use head::Head;
use std::borrow::Cow;
use words::words;

/// Bytes of a header that are looked at; more than any program writes.
const HEADER_BYTES: usize = 64 << 10;
/// Characters of a header that are shown.
const HEADER_CHARS: usize = 1000;

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
    let charset = head.charset.clone().or_else(|| if is_html { charset::declared(&bytes) } else { None });
    let unicode = charset::unicode(&bytes, charset.as_deref(), Some(&mut notices)).replace("\r\n", "\n");
    let plain = if is_html { html::text(&unicode, &mut notices) } else { unicode };
    clean(&plain, notices)
}

/// Returns the content of a part that has this MIME head, with its transfer encoding undone.
pub(super) fn decoded(head: &[u8], body: &[u8]) -> Vec<u8> {
    Head::of(head).encoding.undo(body)
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

fn cut(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => text[..at].to_owned() + "…",
        None => text,
    }
}
