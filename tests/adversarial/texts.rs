//! Texts as an attacker writes them, and how to see that none of it came through.

/// What a terminal or a model could take for more than text, each with a mark that says that it was there.
pub(crate) const TRICKS: &str = "<clear \u{1b}[2J\u{1b}[H><title \u{1b}]0;owned\u{7}><clipboard \u{1b}]52;c;cm0=\u{1b}\\>\
    <link \u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\><dcs \u{1b}Pq#0\u{1b}\\><c1 \u{9b}31m\u{9d}0;x\u{9c}>\
    <over \rwrite><back \u{8}\u{8}><bidi \u{202e}\u{2066}\u{2069}\u{200f}><zero \u{200b}\u{2060}\u{feff}>\
    <tags \u{e0049}\u{e0067}><fill \u{3164}\u{ad}><marks \u{fff9}\u{fffb}><bell \u{7}><delete \u{7f}>";

/// Every mark of [`TRICKS`] came through.
pub(crate) fn has_marks(text: &str) -> bool {
    ["<clear", "<title", "<link", "<c1", "<bidi", "<tags", "<delete"].iter().all(|mark| text.contains(mark))
}

/// Characters in it that no reader should meet, each once, as escapes.
pub(crate) fn odd_characters(text: &str) -> String {
    let is_odd = |c: &char| {
        matches!(*c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}')
            || matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}')
            || matches!(*c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let mut odd: Vec<char> = text.chars().filter(is_odd).collect();
    odd.sort_unstable();
    odd.dedup();
    odd.into_iter().map(|c| c.escape_unicode().to_string()).collect()
}
