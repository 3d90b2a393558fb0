//! Keys by their names: the events that a page gets for one, as from a US keyboard.

use base::envelope::Failure;
use base::text::sanitize;
use serde_json::{Value, json};

/// Bits of modifiers, as `Input.dispatchKeyEvent` has them.
const MODIFIERS: [(&str, u32); 4] = [("Alt", 1), ("Control", 2), ("Meta", 4), ("Shift", 8)];

/// Keys that have names: what they are called, their code, the number that old pages look at, and what they type.
#[rustfmt::skip]
const NAMED: [(&str, &str, u32, &str); 16] = [
    ("Enter", "Enter", 13, "\r"), ("Tab", "Tab", 9, ""), ("Escape", "Escape", 27, ""), ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""), ("Insert", "Insert", 45, ""), ("Home", "Home", 36, ""), ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""), ("PageDown", "PageDown", 34, ""), ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""), ("ArrowRight", "ArrowRight", 39, ""), ("ArrowDown", "ArrowDown", 40, ""),
    ("Space", "Space", 32, " "), ("ContextMenu", "ContextMenu", 93, ""),
];

/// Signs that share a key: without and with Shift, its code and number.
#[rustfmt::skip]
const SIGNS: [(char, char, &str, u32); 21] = [
    ('1', '!', "Digit1", 49), ('2', '@', "Digit2", 50), ('3', '#', "Digit3", 51), ('4', '$', "Digit4", 52), ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54), ('7', '&', "Digit7", 55), ('8', '*', "Digit8", 56), ('9', '(', "Digit9", 57), ('0', ')', "Digit0", 48),
    ('-', '_', "Minus", 189), ('=', '+', "Equal", 187), ('[', '{', "BracketLeft", 219), (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220), (';', ':', "Semicolon", 186), ('\'', '"', "Quote", 222), (',', '<', "Comma", 188),
    ('.', '>', "Period", 190), ('/', '?', "Slash", 191), ('`', '~', "Backquote", 192),
];

/// A key with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    key: String,
    code: String,
    number: u32,
    text: String,
    modifiers: u32,
}

impl Key {
    /// `Enter`, `a`, `F5`, `Control+Shift+k`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let unknown = || {
            let message = format!("`{}` is no key", sanitize::line(text));
            Failure::invalid(message)
                .hint("write `Enter`, `Escape`, `ArrowDown`, `F5`, a character, or with modifiers `Control+a`")
        };
        // The plus itself is a key.
        let (before, name) = match text.strip_suffix('+') {
            Some("") => ("", "+"),
            Some(rest) => (rest.strip_suffix('+').ok_or_else(unknown)?, "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let mut modifiers = 0;
        for name in before.split('+').filter(|_| !before.is_empty()) {
            let known = MODIFIERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            modifiers |= known.ok_or_else(unknown)?.1;
        }
        Self::named(name)
            .or_else(|| Self::function(name))
            .or_else(|| Self::char(name))
            .map(|key| key.with(modifiers))
            .ok_or_else(unknown)?
            .check()
    }

    /// Nothing is pasted: what was copied in one site, a secret in it, would come to another.
    fn check(self) -> Result<Self, Failure> {
        let is_v = self.key.eq_ignore_ascii_case("v") && self.modifiers & 6 != 0;
        let is_insert = self.key == "Insert" && self.modifiers & 8 != 0;
        match is_v || is_insert {
            true => Err(Failure::denied("nothing is pasted into pages").hint("fill the field with the text itself")),
            false => Ok(self),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let (name, code, number, text) = NAMED.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
        let key = if *name == "Space" { " " } else { name };
        Some(Self { key: key.into(), code: (*code).into(), number: *number, text: (*text).into(), modifiers: 0 })
    }

    fn function(name: &str) -> Option<Self> {
        let number: u32 = name.strip_prefix(['F', 'f'])?.parse().ok().filter(|number| (1..=12).contains(number))?;
        Some(Self {
            key: format!("F{number}"),
            code: format!("F{number}"),
            number: 111 + number,
            text: String::new(),
            modifiers: 0,
        })
    }

    fn char(name: &str) -> Option<Self> {
        let mut chars = name.chars();
        let char = chars.next().filter(|char| !char.is_control() && chars.next().is_none())?;
        let (code, number, shift) = if char.is_ascii_alphabetic() {
            let upper = char.to_ascii_uppercase();
            (format!("Key{upper}"), u32::from(upper), char.is_ascii_uppercase())
        } else if char == ' ' {
            ("Space".into(), 32, false)
        } else {
            let sign = SIGNS.iter().find(|(plain, shifted, ..)| [*plain, *shifted].contains(&char));
            // One that is on no key of this keyboard is typed all the same.
            sign.map_or((String::new(), 0, false), |(_, shifted, code, number)| {
                ((*code).into(), *number, char == *shifted)
            })
        };
        let modifiers = if shift { 8 } else { 0 };
        Some(Self { key: name.into(), code, number, text: name.into(), modifiers })
    }

    fn with(mut self, modifiers: u32) -> Self {
        self.modifiers |= modifiers;
        // With Control, Alt or Meta a key is a command, and types nothing.
        if self.modifiers & 7 != 0 {
            self.text.clear();
        }
        self
    }

    /// The events of pressing it: down and up.
    pub(super) fn events(&self) -> [Value; 2] {
        let Self { key, code, number, text, modifiers } = self;
        let event = |kind: &str| json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers });
        let mut down = event(if text.is_empty() { "rawKeyDown" } else { "keyDown" });
        if !text.is_empty() {
            down["text"] = json!(text);
        }
        // Editing commands have to be named: without a window there is nothing that maps shortcuts to them.
        if let Some(command) = self.command() {
            down["commands"] = json!([command]);
        }
        [down, event("keyUp")]
    }

    fn command(&self) -> Option<&'static str> {
        match (self.key.to_ascii_lowercase().as_str(), self.modifiers) {
            ("a", 2 | 4) => Some("selectAll"),
            ("z", 2 | 4) => Some("undo"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::envelope::Kind;

    fn parsed(text: &str) -> (String, String, u32, String, u32) {
        let Key { key, code, number, text, modifiers } = Key::parse(text).expect("a key");
        (key, code, number, text, modifiers)
    }

    #[test]
    fn keys_are_told_as_pages_expect_them() {
        let told = |key: &str, code: &str, number, text: &str, modifiers| {
            (key.into(), code.into(), number, text.into(), modifiers)
        };
        for (text, expected) in [
            ("Enter", told("Enter", "Enter", 13, "\r", 0)),
            ("enter", told("Enter", "Enter", 13, "\r", 0)),
            ("Shift+Tab", told("Tab", "Tab", 9, "", 8)),
            ("F5", told("F5", "F5", 116, "", 0)),
            ("a", told("a", "KeyA", 65, "a", 0)),
            ("A", told("A", "KeyA", 65, "A", 8)),
            ("Control+a", told("a", "KeyA", 65, "", 2)),
            ("Control+Shift+K", told("K", "KeyK", 75, "", 10)),
            ("+", told("+", "Equal", 187, "+", 8)),
            ("Control++", told("+", "Equal", 187, "", 10)),
            ("ü", told("ü", "", 0, "ü", 0)),
            ("Space", told(" ", "Space", 32, " ", 0)),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
        for text in ["", "Entr", "Hyper+a", "ab", "Control+", "a+", "F13", "\n"] {
            assert_eq!(Key::parse(text).map_err(|failure| failure.kind), Err(Kind::InvalidArguments), "{text:?}");
        }
        for text in ["Control+v", "Control+V", "Meta+v", "Control+Shift+V", "Shift+Insert", "control+shift+insert"] {
            assert_eq!(Key::parse(text).map_err(|failure| failure.kind), Err(Kind::Denied), "{text:?}");
        }
    }
}
