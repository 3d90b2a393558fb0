//! Text for one line, of text and of HTML.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};

/// How much of a text is looked at: far more than a row shows.
const HTML_BYTES: usize = 16 << 10;
/// Elements of snippets. What else stands in angle brackets, such as the type in `Vec<T>`, is text that was not escaped.
const ELEMENTS: [&str; 34] = [
    "a", "abbr", "article", "b", "body", "br", "code", "div", "em", "font", "h1", "h2", "h3", "head", "html", "i",
    "iframe", "img", "kbd", "li", "mark", "ol", "p", "pre", "small", "span", "strong", "sub", "sup", "table", "td",
    "tr", "u", "ul",
];
/// Elements whose content is not for readers.
const HIDDEN: [&str; 4] = ["script", "style", "template", "title"];
/// Inline elements, which do not end a word.
const INLINE: [&str; 15] =
    ["a", "abbr", "b", "code", "em", "font", "i", "kbd", "mark", "small", "span", "strong", "sub", "sup", "u"];

/// Joins pieces of text, with one space for any white space, to at most so many characters; the last is `…` where more
/// followed.
#[must_use]
pub fn line<'t>(pieces: impl IntoIterator<Item = &'t str>, chars: usize) -> String {
    let (mut text, mut len, mut space) = (String::new(), 0, false);
    for character in pieces.into_iter().flat_map(str::chars) {
        if character.is_whitespace() {
            space = len > 0;
            continue;
        }
        if len + usize::from(space) >= chars {
            text.pop();
            text.truncate(text.trim_end().len());
            text.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            text.push(' ');
            len += 1;
        }
        text.push(character);
        len += 1;
    }
    text
}

/// Returns the text of HTML: without tags and comments, entities decoded once.
pub(crate) fn plain(html: &str) -> String {
    let html = &html[..html.floor_char_boundary(HTML_BYTES)];
    let (mut text, mut hidden) = (String::new(), None::<Vec<u8>>);
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::EndTag(tag) if hidden.as_deref() == Some(tag.name.as_slice()) => hidden = None,
            Token::StartTag(_) | Token::EndTag(_) | Token::String(_) if hidden.is_some() => {}
            Token::StartTag(tag) if is_of(&HIDDEN, &tag.name) => hidden = Some(tag.name.to_vec()),
            Token::StartTag(tag) => text += &replaced(&tag.name, html.get(tag.span.start..tag.span.end)),
            Token::EndTag(tag) => text += &replaced(&tag.name, html.get(tag.span.start..tag.span.end)),
            Token::String(piece) => text += &String::from_utf8_lossy(&piece),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    text
}

/// What takes the place of a tag that stands in the text as `written`.
fn replaced(name: &[u8], written: Option<&str>) -> String {
    if is_of(&INLINE, name) {
        String::new()
    } else if is_of(&ELEMENTS, name) || is_of(&HIDDEN, name) {
        " ".into()
    } else {
        written.unwrap_or_default().into()
    }
}

fn is_of(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|other| other.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_collapsed_and_length_bounded() {
        for (pieces, chars, expected) in [
            (&["\n a", "b \t", "\u{a0}c "][..], 9, "ab c"),
            (&[" ", ""], 9, ""),
            (&["abcd "], 4, "abcd"),
            (&["abcde"], 4, "abc…"),
            (&["abc de"], 4, "ab…"),
            (&["🙂🙂🙂"], 2, "🙂…"),
        ] {
            assert_eq!(line(pieces.iter().copied(), chars), expected, "{pieces:?}");
        }
    }

    #[test]
    fn html_becomes_text() {
        for (html, expected) in [
            ("plain", "plain"),
            ("High and <strong>low</strong> <b class='x'>water</b>", "High and low water"),
            ("un<b>believ</b>able", "unbelievable"),
            ("one<br>two</p><p>three", "one two three"),
            ("Tom &amp; Jerry&#39;s &quot;day&quot; &lt;b&gt; caf&eacute;&nbsp;!", "Tom & Jerry's \"day\" <b> café !"),
            ("&amp;lt;", "&lt;"),
            ("a<script>alert('<b>x</b>')</script>b<style>p{}</style>c", "abc"),
            ("a <!-- hidden --> b", "a b"),
            ("Vec<T> and HashMap<K, V>", "Vec<T> and HashMap<K, V>"),
            ("1 < 2 > 0", "1 < 2 > 0"),
            ("an open <b", "an open"),
            ("<script>never closed", ""),
            ("&#0;&#x110000;&unknown;", "\u{fffd}\u{fffd}&unknown;"),
        ] {
            assert_eq!(line([&*plain(html)], 100), expected, "{html}");
        }
    }

    #[test]
    fn html_of_any_length_is_bounded() {
        for html in ["<b>".repeat(1 << 20), "é".repeat(1 << 20), "&amp;".repeat(1 << 20), "<T>".repeat(1 << 20)] {
            assert!(plain(&html).len() <= HTML_BYTES);
        }
    }
}
