//! What is typed into a pane: text and keys, parsed once; how people read it, and what it spells.
//!
//! Sending it is `screen.rs`; whether it may be sent is decided in `policy/`.

use crate::envelope::Failure;
use crate::text::sanitize;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Keys and line breaks of one input.
const MOST_KEYS: usize = 100;
/// Bytes of text of one input.
const TEXT_BYTES: usize = 64 << 10;
/// How much is remembered of a line that no Enter has ended yet.
const UNFINISHED_BYTES: usize = 512;

/// Keys with their own names, as tmux has them. tmux types any other word as text, so nothing else is a key.
#[rustfmt::skip]
const NAMED: [&str; 34] = [
    "Enter", "Escape", "Space", "Tab", "BTab", "BSpace", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PgUp", "PPage",
    "PageDown", "PgDn", "NPage", "Insert", "IC", "Delete", "DC", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12",
];
/// Those that tmux takes no `S-` before.
const UNSHIFTED: [&str; 6] = ["Enter", "Escape", "Space", "Tab", "BTab", "BSpace"];
/// How keys of the number pad begin; what follows is `Enter` or the character that they type.
const PAD: &str = "KP";
const PAD_SIGNS: &str = "0123456789/*-+.";

/// What to type, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input(Vec<Step>);

/// A part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Characters as they are; none of them is a control character but tab.
    Text(String),
    /// A key.
    Key(Key),
}

/// A key, with its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    control: bool,
    meta: bool,
    shift: bool,
    base: Base,
}

#[derive(Clone, Debug, PartialEq)]
enum Base {
    Char(char),
    Named(&'static str),
    /// Of the number pad.
    Pad(char),
    PadEnter,
}

/// What a step does to the line that a shell reads.
enum Stroke<'s> {
    Text(&'s str),
    Char(char),
    /// Ends the line.
    Enter,
    /// Takes the last character away.
    Erase,
    /// Moves about, edits, interrupts: what it does is the program's to say.
    Other,
}

/// Stands for a key in a spelled text whose effect is not known; no text that is typed has it.
const OTHER: char = '\0';

impl Input {
    /// Reads what a caller gave: first the text, whose line breaks are Enter, then keys, then Enter. All is checked before anything is
    /// typed.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`, with what is wrong.
    pub fn parse(text: &str, keys: &[String], enter: bool) -> Result<Self, Failure> {
        let mut steps = lines(text)?;
        for name in keys {
            steps.push(Step::Key(Key::parse(name).ok_or_else(|| no_key(name))?));
        }
        steps.extend(enter.then(Step::enter));
        let keys = steps.iter().filter(|step| matches!(step, Step::Key(_))).count();
        if text.len() > TEXT_BYTES || keys > MOST_KEYS {
            let message =
                format!("at most {TEXT_BYTES} bytes, and {MOST_KEYS} keys and line breaks, can be typed at a time");
            return Err(Failure::invalid(message).hint("type the rest in another call"));
        }
        if steps.is_empty() {
            return Err(Failure::invalid("there is nothing to type").hint("give `literal_text`, `keys` or `enter`"));
        }
        Ok(Self(steps))
    }

    /// A command as it is typed at a prompt: what a person may have left there goes first, Enter comes last.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` for what cannot be typed.
    pub fn command(text: &str) -> Result<Self, Failure> {
        let refused = |what: &str| {
            Failure::invalid(format!("the command has {what}, which a shell at a prompt reads as something else"))
        };
        if text.contains('\t') {
            return Err(refused("a tab").hint("write spaces, or `$(printf '\\t')`"));
        }
        if text.replace("\r\n", "\n").contains('\r') {
            return Err(refused("a carriage return").hint("end lines with `\\n`"));
        }
        if recalls(text) {
            return Err(refused("a `!` or `^` that may recall an earlier command")
                .hint("put the command into a file and run that, or omit `wait: false`"));
        }
        let Self(typed) = Self::parse(text.trim_end_matches(['\n', '\r']), &[], true)?;
        // C-u takes what is left of the cursor, so the cursor goes to the end first.
        let clear =
            ['e', 'u'].map(|key| Step::Key(Key { control: true, meta: false, shift: false, base: Base::Char(key) }));
        Ok(Self(clear.into_iter().chain(typed).collect()))
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// `"yes" <Enter>`, for people.
    pub fn shown(&self) -> String {
        let shown: Vec<String> = self.0.iter().map(Step::shown).collect();
        shown.join(" ")
    }

    /// The text that it amounts to, `before` in front of it: single characters, Space and Enter spell as well as text does. Keys whose effect
    /// is not known are marks in it.
    fn spelled(&self, before: &str) -> String {
        let mut spelled = before.to_owned();
        for step in &self.0 {
            match step.stroke() {
                Stroke::Text(text) => spelled += text,
                Stroke::Char(char) => spelled.push(char),
                Stroke::Enter => spelled.push('\n'),
                Stroke::Erase if spelled.ends_with('\n') => {}
                Stroke::Erase => _ = spelled.pop(),
                Stroke::Other => spelled.push(OTHER),
            }
        }
        spelled
    }

    /// The scripts that it may amount to after an unfinished line: once as if keys of unknown effect did nothing, once as if each began a
    /// new line, as `C-c` does.
    pub fn scripts(&self, unfinished: &str) -> Vec<String> {
        let spelled = self.spelled(unfinished);
        let mut scripts = vec![spelled.replace(OTHER, "")];
        if spelled.contains(OTHER) {
            scripts.push(spelled.replace(OTHER, "\n"));
        }
        scripts
    }
}

impl Step {
    fn enter() -> Self {
        Self::Key(Key { control: false, meta: false, shift: false, base: Base::Named("Enter") })
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Key(key) => format!("<{}>", key.name()),
        }
    }

    fn stroke(&self) -> Stroke<'_> {
        match self {
            Self::Text(text) => Stroke::Text(text),
            Self::Key(key) => key.stroke(),
        }
    }
}

impl Key {
    /// Reads a name as tmux has it, in any case: `C-c` or `^C`, `M-x`, `S-Up`, `Enter`, `F1`, `KPEnter`, or a character.
    fn parse(name: &str) -> Option<Self> {
        let mut key = Self { control: false, meta: false, shift: false, base: Base::Char(' ') };
        let mut rest = name;
        if let Some(behind) = rest.strip_prefix('^').filter(|behind| !behind.is_empty()) {
            (key.control, rest) = (true, behind);
        }
        while let Some((modifier, behind)) = rest.split_once('-').filter(|(_, behind)| !behind.is_empty()) {
            match modifier {
                "C" | "c" => key.control = true,
                "M" | "m" => key.meta = true,
                "S" | "s" => key.shift = true,
                _ => return None,
            }
            rest = behind;
        }
        key.base = Base::parse(rest)?;
        let takes_shift = matches!(key.base, Base::Named(name) if !UNSHIFTED.contains(&name));
        let is_modified = key.control || key.meta || key.shift;
        let is_known = match key.base {
            Base::Char(char) => char.is_ascii() || !is_modified,
            Base::Pad(_) | Base::PadEnter => !is_modified,
            Base::Named(_) => true,
        };
        (is_known && (takes_shift || !key.shift)).then_some(key)
    }

    /// Its name for tmux and for people.
    pub fn name(&self) -> String {
        let modifiers = [(self.control, "C-"), (self.meta, "M-"), (self.shift, "S-")];
        let modifiers: String = modifiers.iter().filter(|(is_set, _)| *is_set).map(|(_, text)| *text).collect();
        match &self.base {
            Base::Char(char) => format!("{modifiers}{char}"),
            Base::Named(name) => format!("{modifiers}{name}"),
            Base::Pad(sign) => format!("{PAD}{sign}"),
            Base::PadEnter => format!("{PAD}Enter"),
        }
    }

    fn stroke(&self) -> Stroke<'_> {
        if self.meta || self.shift {
            return Stroke::Other;
        }
        match (&self.base, self.control) {
            (Base::Char(char) | Base::Pad(char), false) => Stroke::Char(*char),
            (Base::Named("Space"), false) => Stroke::Char(' '),
            (Base::Named("Tab"), false) | (Base::Char('i' | 'I'), true) => Stroke::Char('\t'),
            (Base::Named("Enter") | Base::PadEnter, _) | (Base::Char('j' | 'J' | 'm' | 'M'), true) => Stroke::Enter,
            (Base::Named("BSpace"), _) | (Base::Char('h' | 'H' | '?'), true) => Stroke::Erase,
            (Base::Char(_) | Base::Pad(_) | Base::Named(_), _) => Stroke::Other,
        }
    }
}

impl Base {
    fn parse(name: &str) -> Option<Self> {
        let mut chars = name.chars();
        if let (Some(char), None) = (chars.next(), chars.next()) {
            return (!char.is_control()).then_some(Self::Char(char));
        }
        if let Some(named) = NAMED.iter().find(|named| named.eq_ignore_ascii_case(name)) {
            return Some(Self::Named(named));
        }
        let behind =
            name.get(..PAD.len()).filter(|begin| begin.eq_ignore_ascii_case(PAD)).map(|_| &name[PAD.len()..])?;
        if behind.eq_ignore_ascii_case("Enter") {
            return Some(Self::PadEnter);
        }
        let mut signs = behind.chars();
        let sign = signs.next().filter(|sign| PAD_SIGNS.contains(*sign))?;
        signs.next().is_none().then_some(Self::Pad(sign))
    }
}

/// Text by its lines, with Enter between them.
fn lines(text: &str) -> Result<Vec<Step>, Failure> {
    let text = text.replace("\r\n", "\n");
    if let Some(control) = text.chars().find(|c| c.is_control() && !['\t', '\n', '\r'].contains(c)) {
        return Err(Failure::invalid(format!("`literal_text` has the control character {control:?}"))
            .hint("give keys by name in `keys`, such as `Escape` or `C-c`"));
    }
    let mut steps = Vec::new();
    for (number, line) in text.split(['\n', '\r']).enumerate() {
        steps.extend((number > 0).then(Step::enter));
        steps.extend((!line.is_empty()).then(|| Step::Text(line.to_owned())));
    }
    Ok(steps)
}

/// A shell at a prompt may put an earlier command here: `!!`, `!rm`, `^old^new`. What is approved is what is read, so this is not typed.
fn recalls(text: &str) -> bool {
    let is_recall = |(place, _): (usize, &str)| {
        let next = text[place + 1..].chars().next();
        next.is_some_and(|next| !next.is_whitespace() && !['=', '('].contains(&next))
    };
    text.match_indices('!').any(is_recall) || text.lines().any(|line| line.starts_with('^'))
}

fn no_key(name: &str) -> Failure {
    let shown = sanitize::beginning(name, 40);
    Failure::invalid(format!("`{shown}` is not the name of a key"))
        .hint("name keys as tmux does: `C-c`, `Enter`, `Up`, `M-x`, `F1`, `KPEnter`; text goes into `literal_text`")
}

/// What was typed into panes after their last Enter, by the panes' numbers. Only this process's typing is known: what people and other
/// processes type is not, nor what a program made of it.
#[derive(Default)]
pub struct Unfinished(Mutex<HashMap<u32, String>>);

impl Unfinished {
    pub fn line(&self, pane: u32) -> String {
        self.0.lock().get(&pane).cloned().unwrap_or_default()
    }

    pub fn typed(&self, pane: u32, input: &Input) {
        let mut lines = self.0.lock();
        let spelled = input.spelled(lines.get(&pane).map_or("", String::as_str));
        let line = spelled.rsplit('\n').next().unwrap_or_default();
        let begin = line.ceil_char_boundary(line.len().saturating_sub(UNFINISHED_BYTES));
        lines.insert(pane, line[begin..].to_owned());
    }

    /// The line was cleared.
    pub fn forget(&self, pane: u32) {
        self.0.lock().remove(&pane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Kind;

    fn input(text: &str, keys: &[&str], enter: bool) -> Result<Input, Failure> {
        Input::parse(text, &keys.iter().map(ToString::to_string).collect::<Vec<_>>(), enter)
    }

    fn keys(names: &[&str]) -> Input {
        input("", names, false).expect("keys")
    }

    #[test]
    fn keys_are_those_of_tmux_in_any_case() {
        for (name, canonical) in [
            ("Enter", "Enter"),
            ("enter", "Enter"),
            ("C-c", "C-c"),
            ("c-c", "C-c"),
            ("^C", "C-C"),
            ("^Left", "C-Left"),
            ("^", "^"),
            ("-", "-"),
            ("C--", "C--"),
            ("M-x", "M-x"),
            ("m-C-Left", "C-M-Left"),
            ("S-Up", "S-Up"),
            ("F12", "F12"),
            ("q", "q"),
            ("C-Space", "C-Space"),
            ("ß", "ß"),
            ("KPEnter", "KPEnter"),
            ("kp5", "KP5"),
            ("KP*", "KP*"),
        ] {
            assert_eq!(Key::parse(name).map(|key| key.name()).as_deref(), Some(canonical), "{name}");
        }
        let no_names = ["NoSuchKey", "", "C-", "C-C-", "enter now", "-R", "0x0d", "KP", "KP55", "F13", "C-\u{1}", "\t"];
        // tmux types these as text.
        let typed = ["S-r", "S-Enter", "S-KP5", "C-ß", "X-a"];
        for name in no_names.iter().chain(&typed) {
            assert_eq!(Key::parse(name), None, "{name}");
        }
    }

    #[test]
    fn nothing_is_typed_before_all_is_known() {
        assert!(input("a\tb", &["C-c"], false).is_ok());
        for (text, keys) in [("a\u{1b}[201~", &[][..]), ("a\u{7f}", &[]), ("a", &["Nope"]), ("", &[])] {
            assert_eq!(input(text, keys, false).expect_err("refused").kind, Kind::InvalidArguments);
        }
        assert!(input(&"a\n".repeat(MOST_KEYS), &[], false).is_ok());
        assert!(input(&"a\n".repeat(MOST_KEYS), &[], true).is_err());
        assert!(input(&"a".repeat(TEXT_BYTES + 1), &[], false).is_err());
    }

    #[test]
    fn line_breaks_are_enter_and_shown_as_such() {
        let typed = input("yes\nno\r\n\rx", &["Up"], true).expect("input");
        assert_eq!(typed.shown(), r#""yes" <Enter> "no" <Enter> <Enter> "x" <Up> <Enter>"#);
        assert_eq!(input("\n", &[], false).expect("input").shown(), "<Enter>");
        assert_eq!(Input::command("ls\npwd\n").expect("input").shown(), r#"<C-e> <C-u> "ls" <Enter> "pwd" <Enter>"#);
        for odd in ["a\tb", "a\rb", "echo !!", "!rm", "sudo !$", "^old^new", "echo \"!x\""] {
            assert_eq!(Input::command(odd).expect_err("refused").kind, Kind::InvalidArguments, "{odd}");
        }
        assert!(Input::command("! test -e x; [ a != b ]; echo hey!").is_ok());
    }

    #[test]
    fn single_keys_spell_as_text_does() {
        let scripts = |names: &[&str]| keys(names).scripts("");
        assert_eq!(scripts(&["r", "m", "Space", "-", "r", "KP1", "C-m"]), ["rm -r1\n"]);
        assert_eq!(scripts(&["r", "x", "BSpace", "m", "C-h"]), ["r"]);
        assert_eq!(scripts(&["a", "C-c", "b", "KPEnter"]), ["ab\n", "a\nb\n"]);
        let mixed = input("sudo ", &["l", "s"], true).expect("input");
        assert_eq!(mixed.scripts("x "), ["x sudo ls\n"]);
    }

    #[test]
    fn an_unfinished_line_is_remembered_until_enter() {
        let lines = Unfinished::default();
        lines.typed(3, &keys(&["r", "m"]));
        lines.typed(4, &keys(&["x"]));
        lines.typed(3, &input(" -r", &["BSpace"], false).expect("input"));
        assert_eq!((lines.line(3), lines.line(4), lines.line(5)), ("rm -".into(), "x".into(), String::new()));
        lines.typed(3, &input("f\nls", &[], false).expect("input"));
        assert_eq!(lines.line(3), "ls");
        lines.typed(3, &input(&"é".repeat(1000), &[], false).expect("input"));
        assert_eq!(lines.line(3).len(), UNFINISHED_BYTES);
        lines.forget(3);
        assert_eq!(lines.line(3), "");
    }
}
