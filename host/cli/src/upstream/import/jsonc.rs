//! JSON with comments and commas before closing brackets, as editors take it, made plain.

/// JSON, with every line where it was.
pub(super) struct Plain {
    pub(super) text: String,
    pub(super) has_comments: bool,
}

/// Puts blanks in place of comments and of commas before closing brackets.
pub(super) fn plain(text: &str) -> Plain {
    let mut plain = String::with_capacity(text.len());
    let mut has_comments = false;
    // A comma that a bracket may follow, by its place in the result.
    let mut comma = None;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if next == '/' && length > 1 {
            has_comments = true;
            plain.extend(token.chars().map(|c| if c == '\n' { c } else { ' ' }));
            continue;
        }
        if let (']' | '}', Some(at)) = (next, comma) {
            plain.replace_range(at..=at, " ");
        }
        comma = match next {
            ',' => Some(plain.len()),
            blank if blank.is_whitespace() => comma,
            _ => None,
        };
        plain += token;
    }
    Plain { text: plain, has_comments }
}

/// The bytes of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_go_and_lines_stay() {
        let text = "{ // one\n \"a\": \"// no, /* no */ \\\" ,}\", /* two\n lines */ \"b\": [1, 2, ],\n}\n";
        let made = plain(text);
        assert!(made.has_comments);
        assert_eq!(made.text.lines().count(), text.lines().count());
        let value: serde_json::Value = serde_json::from_str(&made.text).unwrap();
        assert_eq!(value, serde_json::json!({ "a": "// no, /* no */ \" ,}", "b": [1, 2] }));
    }

    #[test]
    fn what_is_plain_stays_as_it_is() {
        for text in ["", "{}", "{\"a\":\"ä/\", \"b\": 1 / 2}", "\"open", "[1,,]x", "/"] {
            let made = plain(text);
            let is_last_comma = text == "[1,,]x";
            assert!(made.text == text || is_last_comma, "{text:?}: {:?}", made.text);
            assert!(!made.has_comments, "{text:?}");
        }
    }

    #[test]
    fn what_has_no_end_ends_with_the_text() {
        for text in ["/* open", "// open", "{ /*/ }"] {
            assert!(plain(text).text.trim_matches(['{', ' ']).is_empty(), "{text:?}");
        }
    }
}
