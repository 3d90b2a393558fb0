//! Colors, as styles and attributes write them.

use super::css::{fraction, length};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Paint {
    Color([u8; 3]),
    /// Shows what is below.
    Clear,
    /// What is not understood.
    Unknown,
}

/// Returns the color; what is no color at all changes none.
pub(super) fn paint(value: &str) -> Option<Paint> {
    const NAMES: [(&str, u32); 36] = [
        ("white", 0xff_ffff),
        ("snow", 0xff_fafa),
        ("ivory", 0xff_fff0),
        ("ghostwhite", 0xf8_f8ff),
        ("azure", 0xf0_ffff),
        ("floralwhite", 0xff_faf0),
        ("mintcream", 0xf5_fffa),
        ("whitesmoke", 0xf5_f5f5),
        ("seashell", 0xff_f5ee),
        ("aliceblue", 0xf0_f8ff),
        ("honeydew", 0xf0_fff0),
        ("lavenderblush", 0xff_f0f5),
        ("oldlace", 0xfd_f5e6),
        ("linen", 0xfa_f0e6),
        ("lightyellow", 0xff_ffe0),
        ("lightcyan", 0xe0_ffff),
        ("cornsilk", 0xff_f8dc),
        ("gainsboro", 0xdc_dcdc),
        ("lightgray", 0xd3_d3d3),
        ("lightgrey", 0xd3_d3d3),
        ("silver", 0xc0_c0c0),
        ("gray", 0x80_8080),
        ("grey", 0x80_8080),
        ("black", 0),
        ("red", 0xff_0000),
        ("green", 0x00_8000),
        ("blue", 0x00_00ff),
        ("yellow", 0xff_ff00),
        ("lime", 0x00_ff00),
        ("aqua", 0x00_ffff),
        ("cyan", 0x00_ffff),
        ("fuchsia", 0xff_00ff),
        ("magenta", 0xff_00ff),
        ("navy", 0x00_0080),
        ("maroon", 0x80_0000),
        ("orange", 0xff_a500),
    ];
    let of = |number: u32| Paint::Color([(number >> 16) as u8, (number >> 8) as u8, number as u8]);
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == value) {
        return Some(of(*number));
    }
    if let Some((kind, arguments)) = value.strip_suffix(')').and_then(|value| value.split_once('(')) {
        return Some(function(kind.trim(), arguments));
    }
    let bare = value.strip_prefix('#');
    let digits = bare.unwrap_or(value);
    // Without the mark, it is the value of a `color` attribute.
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && (bare.is_some() || digits.len() == 6);
    let number = is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    let wide = |number: u32| [8, 4, 0].iter().fold(0, |all, shift| (all << 8) | ((number >> shift & 15) * 17));
    match (digits.len(), number) {
        (3, Some(number)) => Some(of(wide(number))),
        (4, Some(number)) => Some(if number & 15 == 0 { Paint::Clear } else { of(wide(number >> 4)) }),
        (6, Some(number)) => Some(of(number)),
        (8, Some(number)) => Some(if number & 0xff < 0x10 { Paint::Clear } else { of(number >> 8) }),
        _ if matches!(value, "transparent") => Some(Paint::Clear),
        _ if value.is_empty() || value == "inherit" || !value.bytes().all(|byte| byte.is_ascii_alphabetic()) => None,
        _ => Some(Paint::Unknown),
    }
}

fn function(kind: &str, arguments: &str) -> Paint {
    let parts: Vec<&str> = arguments.split([',', ' ', '/']).filter(|part| !part.is_empty()).collect();
    let alpha = parts.get(3).and_then(|part| fraction(part)).unwrap_or(1.0);
    let channel = |part: &str| {
        let (number, unit) = length(part)?;
        Some((if unit == "%" { number * 2.55 } else { number }).clamp(0.0, 255.0) as u8)
    };
    match (kind, &parts[..]) {
        ("rgb" | "rgba" | "hsl" | "hsla", _) if alpha <= 0.05 => Paint::Clear,
        ("rgb" | "rgba", [red, green, blue, ..]) => match (channel(red), channel(green), channel(blue)) {
            (Some(red), Some(green), Some(blue)) => Paint::Color([red, green, blue]),
            _ => Paint::Unknown,
        },
        // Of these, only white, black and gray are worked out.
        ("hsl" | "hsla", [_, saturation, lightness, ..]) => match (fraction(saturation), channel(lightness)) {
            (Some(0.0), Some(gray)) | (_, Some(gray @ (0..=10 | 245..=255))) => Paint::Color([gray; 3]),
            _ => Paint::Unknown,
        },
        _ => Paint::Unknown,
    }
}
