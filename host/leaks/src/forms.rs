//! The forms of a value: as it is, and as encoders, serialisers and shells write it.
//!
//! Finding them in a text is left to `known`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use data_encoding::BASE32_NOPAD;
use std::fmt::Write;

/// Shorter forms are omitted: they would be found where no secret is.
pub(crate) const FORM_MIN: usize = 8;

/// What percent-encoders leave as it is beside letters and digits: by RFC 3986; `encodeURIComponent` and `encodeURI` of
/// JavaScript; `quote` of Python; the strictest, such as `NON_ALPHANUMERIC` of Rust; HTML forms.
const LEFT_BY_PERCENT: [&str; 6] = ["-_.~", "-_.~!'()*", "-_.~!'()*;/?:@&=+$,#", "-_.~/", "", LEFT_BY_HTML_FORMS];

/// They also write a space as `+`.
const LEFT_BY_HTML_FORMS: &str = "-_.*";

/// How a serialiser writes JSON strings, beyond what RFC 8259 asks for.
struct Json {
    /// Characters written by their code, such as `\u0026`.
    by_code: &'static str,
    slash: bool,
    /// Characters outside ASCII are written by their codes.
    ascii: bool,
    upper: bool,
}

const JSON: [Json; 9] = [
    // serde, JavaScript
    Json { by_code: "", slash: false, ascii: false, upper: false },
    // PHP
    Json { by_code: "", slash: true, ascii: true, upper: false },
    // PHP with JSON_HEX_*
    Json { by_code: "&<>'\"", slash: true, ascii: true, upper: true },
    // Go
    Json { by_code: "&<>", slash: false, ascii: false, upper: false },
    // Gson
    Json { by_code: "&<>'=", slash: false, ascii: false, upper: false },
    // Python
    Json { by_code: "", slash: false, ascii: true, upper: false },
    // .NET
    Json { by_code: "&<>'\"+`", slash: false, ascii: true, upper: true },
    // templates that put JSON into HTML
    Json { by_code: "&<>'", slash: false, ascii: false, upper: false },
    Json { by_code: "&<>'", slash: false, ascii: false, upper: true },
];

/// What stands for `&`, `<`, `>`, `"` and `'` in HTML and XML.
const ENTITIES: [[&str; 5]; 6] = [
    ["&amp;", "&lt;", "&gt;", "\"", "'"],
    ["&amp;", "&lt;", "&gt;", "&quot;", "'"],
    ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"],
    ["&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"],
    ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"],
    ["&amp;", "&lt;", "&gt;", "&#34;", "&#39;"],
];

/// What stands for `'` within single quotes of a shell.
const QUOTES: [&str; 2] = [r"'\''", r#"'"'"'"#];

/// Returns the forms of a value, of which some are equal.
pub(crate) fn of(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![
        value.to_owned(),
        value.chars().rev().collect(),
        // As the name of a host.
        value.to_ascii_lowercase(),
        hex::encode(value),
        hex::encode_upper(value),
        percent_all(value, false),
        percent_all(value, true),
    ];
    for left in LEFT_BY_PERCENT {
        forms.extend([false, true].map(|upper| percent(value, left, upper)));
    }
    forms.extend(JSON.iter().map(|style| json(value, style)));
    forms.extend(ENTITIES.iter().map(|entities| html(value, entities)));
    forms.extend(QUOTES.iter().map(|quote| value.replace('\'', quote)));
    forms.extend(base64(value.as_bytes(), &STANDARD_NO_PAD));
    forms.extend(base64(value.as_bytes(), &URL_SAFE_NO_PAD));
    forms.extend(base32(value.as_bytes()));
    let mut forms: Vec<_> = forms.into_iter().map(String::into_bytes).collect();
    forms.push(value.encode_utf16().flat_map(u16::to_le_bytes).collect());
    forms.push(value.encode_utf16().flat_map(u16::to_be_bytes).collect());
    forms.retain(|form| form.len() >= FORM_MIN);
    forms
}

/// The characters that a value's own bytes decide, after any number of other bytes in front.
fn base64(value: &[u8], engine: &impl Engine) -> [String; 3] {
    // A character carries six bits. Those of the first two or three are partly of what is in front, those of the last
    // partly of what follows.
    [(0, 0), (1, 2), (2, 3)].map(|(in_front, shared)| {
        let bytes = [&[0; 2][..in_front], value].concat();
        engine.encode(&bytes)[shared..bytes.len() * 8 / 6].to_owned()
    })
}

/// The same in base32, whose characters carry five bits.
fn base32(value: &[u8]) -> [String; 5] {
    [0, 1, 2, 3, 4].map(|in_front| {
        let bytes = [&[0; 4][..in_front], value].concat();
        BASE32_NOPAD.encode(&bytes)[(in_front * 8).div_ceil(5)..bytes.len() * 8 / 5].to_owned()
    })
}

fn percent_all(value: &str, upper: bool) -> String {
    value.bytes().fold(String::new(), |mut form, byte| {
        push_percent(&mut form, byte, upper);
        form
    })
}

fn percent(value: &str, left: &str, upper: bool) -> String {
    let mut form = String::new();
    for byte in value.bytes() {
        match char::from(byte) {
            c if c.is_ascii_alphanumeric() || left.contains(c) => form.push(c),
            ' ' if left == LEFT_BY_HTML_FORMS => form.push('+'),
            _ => push_percent(&mut form, byte, upper),
        }
    }
    form
}

fn push_percent(form: &mut String, byte: u8, upper: bool) {
    let written = if upper { write!(form, "%{byte:02X}") } else { write!(form, "%{byte:02x}") };
    written.expect("a string takes all that is written");
}

fn json(value: &str, style: &Json) -> String {
    let mut form = String::new();
    for c in value.chars() {
        match c {
            c if style.by_code.contains(c) || (style.ascii && !c.is_ascii()) => push_codes(&mut form, c, style.upper),
            '"' | '\\' => form.extend(['\\', c]),
            '/' if style.slash => form += r"\/",
            '\n' => form += r"\n",
            '\r' => form += r"\r",
            '\t' => form += r"\t",
            '\u{8}' => form += r"\b",
            '\u{c}' => form += r"\f",
            '\0'..='\u{1f}' => push_codes(&mut form, c, style.upper),
            c => form.push(c),
        }
    }
    form
}

fn push_codes(form: &mut String, c: char, upper: bool) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let written = if upper { write!(form, "\\u{unit:04X}") } else { write!(form, "\\u{unit:04x}") };
        written.expect("a string takes all that is written");
    }
}

fn html(value: &str, [and, less, greater, double, single]: &[&str; 5]) -> String {
    let mut form = String::new();
    for c in value.chars() {
        match c {
            '&' => form += and,
            '<' => form += less,
            '>' => form += greater,
            '"' => form += double,
            '\'' => form += single,
            c => form.push(c),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

    const VALUE: &str = "a&b<c>d\"e'f/g\\h i+j=k\nl~é€😀m";

    fn has(value: &str, form: impl AsRef<[u8]>) {
        let form = form.as_ref();
        assert!(of(value).iter().any(|own| own == form), "{}", String::from_utf8_lossy(form));
    }

    #[test]
    fn every_notation_is_a_form() {
        const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
        has(VALUE, VALUE);
        has(VALUE, "m😀€é~l\nk=j+i h\\g/f'e\"d>c<b&a");
        has(VALUE, hex::encode(VALUE));
        has(VALUE, hex::encode(VALUE).to_uppercase());
        has(VALUE, utf8_percent_encode(VALUE, &RESERVED).to_string());
        has(VALUE, utf8_percent_encode(VALUE, NON_ALPHANUMERIC).to_string());
        has(VALUE, VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>());
        has(VALUE, VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>());
        has("p/q r:sé", "p%2fq%20r%3as%c3%a9");
        has("p/q r:sé", "p/q%20r%3As%C3%A9");
        has("p/q r:sé", "p%2Fq+r%3As%C3%A9");
        has(VALUE, serde_json::to_string(VALUE).expect("a string").trim_matches('"'));
        has(VALUE, r#"a\u0026b\u003cc\u003ed\"e'f/g\\h i+j=k\nl~é€😀m"#);
        has(VALUE, r#"a\u0026b\u003cc\u003ed\"e\u0027f/g\\h i+j\u003dk\nl~é€😀m"#);
        has(VALUE, r#"a&b<c>d\"e'f/g\\h i+j=k\nl~\u00e9\u20ac\ud83d\ude00m"#);
        has(VALUE, r#"a&b<c>d\"e'f\/g\\h i+j=k\nl~\u00e9\u20ac\ud83d\ude00m"#);
        has(VALUE, r"a\u0026b\u003Cc\u003Ed\u0022e\u0027f/g\\h i\u002Bj=k\nl~\u00E9\u20AC\uD83D\uDE00m");
        has(VALUE, "a&amp;b&lt;c&gt;d&quot;e&#39;f/g\\h i+j=k\nl~é€😀m");
        has(VALUE, "a&amp;b&lt;c&gt;d&#34;e&#39;f/g\\h i+j=k\nl~é€😀m");
        has("it's a secret", r"it'\''s a secret");
        has("it's a secret", r#"it'"'"'s a secret"#);
        has("paßwort", b"p\0a\0\xdf\0w\0o\0r\0t\0");
        has("paßwort", b"\0p\0a\0\xdf\0w\0o\0r\0t");
    }

    #[test]
    fn base64_holds_a_form_whatever_is_around() {
        for (front, back) in (0..7).flat_map(|front| (0..7).map(move |back| (front, back))) {
            for byte in [0, 0x5a, 0xff] {
                let text = [&[byte; 7][..front], VALUE.as_bytes(), &[byte; 7][..back]].concat();
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    // What no form takes in is at most three characters in front and one and the padding behind.
                    let found = of(VALUE).iter().any(|form| {
                        form.len() * 6 + 30 > VALUE.len() * 8
                            && form.is_ascii()
                            && encoded.contains(str::from_utf8(form).expect("ASCII"))
                    });
                    assert!(found, "{front} bytes in front, {back} behind");
                }
            }
        }
    }

    #[test]
    fn base32_holds_a_form_whatever_is_around() {
        for (front, back) in (0..11).flat_map(|front| (0..11).map(move |back| (front, back))) {
            for byte in [0, 0x5a, 0xff] {
                let text = [&[byte; 11][..front], VALUE.as_bytes(), &[byte; 11][..back]].concat();
                let encoded = data_encoding::BASE32.encode(&text);
                // What no form takes in is at most a character in front and one behind.
                let found = base32(VALUE.as_bytes())
                    .iter()
                    .any(|form| form.len() * 5 + 10 > VALUE.len() * 8 && encoded.contains(form.as_str()));
                assert!(found, "{front} bytes in front, {back} behind");
            }
        }
    }

    #[test]
    fn short_forms_are_omitted() {
        assert!(of("a").iter().all(|form| form.len() >= FORM_MIN));
    }
}
