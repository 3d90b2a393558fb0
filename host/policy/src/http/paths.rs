//! Whether the path of a request lies below a prefix, whatever the server at the other end makes of it.
//!
//! The URL parser has resolved `.` and `..` before. Servers go on: they decode again, drop `;parameters`, take `\` for `/`, read overlong
//! UTF-8. A path that could lead out by any of these is below nothing.

use config::requests;
use percent_encoding::percent_decode_str;

/// How often a path is decoded. Servers behind each other decode twice, seldom three times; what hides deeper is refused.
const DECODINGS: usize = 4;

/// Characters that are dots and slashes once a server has normalised them (NFKC, and the tables of Windows).
const DISGUISED: [char; 11] = [
    '\u{2024}', '\u{2025}', '\u{2026}', '\u{2044}', '\u{2215}', '\u{2216}', '\u{fe52}', '\u{fe68}', '\u{ff0e}',
    '\u{ff0f}', '\u{ff3c}',
];

/// Says whether `path` is `prefix` or lies below it. Below `/` lies everything.
pub(super) fn is_below(path: &str, prefix: &str) -> bool {
    prefix == "/" || requests::lies_below(path, prefix) && !may_lead_out(path)
}

fn may_lead_out(path: &str) -> bool {
    if !is_well_encoded(path) {
        return true;
    }
    let mut text = path.to_owned();
    for _ in 0..DECODINGS {
        if text.split('/').any(is_dots) {
            return true;
        }
        // Overlong forms of `.` and `/` are not UTF-8.
        let Ok(decoded) = percent_decode_str(&text).decode_utf8() else { return true };
        if decoded == text {
            return false;
        }
        let count = |text: &str| text.matches(['/', '\\', '.']).count();
        let is_disguise = |char: char| char.is_control() || DISGUISED.contains(&char);
        if count(&decoded) != count(&text) || decoded.contains(is_disguise) {
            return true;
        }
        text = decoded.into_owned();
    }
    true
}

/// Each `%` has its two digits. Without them it is a sign of other encodings (`%u002e`), which some servers read.
fn is_well_encoded(path: &str) -> bool {
    let digits = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    path.match_indices('%').all(|(at, _)| digits(&path[at + 1..]))
}

/// A segment of dots alone, once its `;parameters` and the blanks around it are taken away.
fn is_dots(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default().trim();
    !name.is_empty() && name.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_whole_segments() {
        for path in
            ["/v1", "/v1/", "/v1/a%20b", "/v1//x", "/v1/a.b", "/v1/.hidden", "/v1/a;b=1/c", "/v1/100%25", "/v1/%C3%A4"]
        {
            assert!(is_below(path, "/v1") && is_below(path, "/v1/") && is_below(path, "/"), "{path}");
        }
        for path in ["/", "/v10", "/V1"] {
            assert!(!is_below(path, "/v1"), "{path}");
        }
    }

    #[test]
    fn what_a_server_may_resolve_to_somewhere_else_is_below_nothing() {
        for path in [
            "/v1%2f..%2fv2",
            "/v1/%2E%2E/v2",
            "/v1/..%5cv2",
            "/v1/..;/admin",
            "/v1/..;x=1/admin",
            "/v1/..%3b/admin",
            "/v1/.;/admin",
            "/v1/..%20/admin",
            "/v1/.../admin",
            "/v1/%252e%252e/admin",
            "/v1/%25252e%25252e/admin",
            "/v1/%2525252525252e/admin",
            "/v1/..%252fadmin",
            "/v1/%c0%ae%c0%ae/admin",
            "/v1/%c0%af..",
            "/v1/%e0%80%ae/admin",
            "/v1/%25c0%25ae/admin",
            "/v1/%ef%bc%8e%ef%bc%8e/admin",
            "/v1/%u002e%u002e/admin",
            "/v1/%/admin",
            "/v1/..%00/admin",
            "/v1/%0a/admin",
        ] {
            assert!(!is_below(path, "/v1"), "{path}");
        }
    }
}
