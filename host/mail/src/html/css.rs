//! What styles are made of: text as it is compared, and numbers with units.

/// Returns CSS in lower case, without comments, and with escapes undone.
pub(super) fn lowered(css: &str) -> String {
    let mut output = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(at) = rest.find(['/', '\\']) {
        output += &rest[..at];
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else if let Some(escape) = rest.strip_prefix('\\') {
            let digits = escape.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
            let code = u32::from_str_radix(&escape[..digits], 16).ok();
            output.extend(code.map(|code| char::from_u32(code).unwrap_or('\u{fffd}')));
            rest = &escape[digits..];
            if digits > 0 {
                rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
            }
        } else {
            output.push('/');
            rest = &rest[1..];
        }
    }
    output += rest;
    output.make_ascii_lowercase();
    output
}

/// Splits a number from its unit.
pub(super) fn length(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(value.len());
    Some((value[..end].parse().ok()?, value[end..].trim()))
}

pub(super) fn fraction(value: &str) -> Option<f64> {
    let (number, unit) = length(value.trim())?;
    Some(if unit == "%" { number / 100.0 } else { number })
}

/// Tells whether something that is so far off cannot be on a screen.
pub(super) fn is_far(value: &str) -> bool {
    let Some((number, unit)) = length(value.trim()) else { return false };
    let pixels = match unit {
        "px" | "" => number,
        "pt" => number * 1.3,
        "em" | "rem" | "ch" | "ex" => number * 16.0,
        "%" | "vw" | "vh" => number * 10.0,
        "in" | "cm" | "mm" | "pc" => number * 38.0,
        _ => return false,
    };
    !(-500.0..=9000.0).contains(&pixels)
}
