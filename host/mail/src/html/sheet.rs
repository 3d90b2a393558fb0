//! Style sheets: rules with simple selectors.

use super::css::lowered;
use super::each;
use super::look::Style;
use html5gum::emitters::callback::CallbackEvent;
use std::collections::HashMap;

/// Rules of style sheets that are kept, and classes of an element that are looked up.
const RULES: usize = 1000;
const CLASSES: usize = 16;

/// The rules of all style elements that hide something or color it, by selector: `p`, `.note`, `p.note`, `#top`, `*`.
#[derive(Default)]
pub(super) struct Sheet {
    rules: HashMap<String, Style>,
}

impl Sheet {
    pub(super) fn of(html: &str) -> Self {
        let mut sheet = Self::default();
        let (mut is_style, mut css) = (false, String::new());
        if !html.as_bytes().windows(6).any(|name| name.eq_ignore_ascii_case(b"<style")) {
            return sheet;
        }
        each(html, |event| {
            match event {
                CallbackEvent::OpenStartTag { name } => is_style = name == b"style",
                CallbackEvent::EndTag { .. } => is_style = false,
                CallbackEvent::String { value } if is_style => css += &String::from_utf8_lossy(value),
                _ => {}
            }
            false
        });
        sheet.read(&lowered(&css.replace("<!--", "").replace("-->", "")));
        sheet
    }

    fn read(&mut self, css: &str) {
        let mut rest = css;
        while let Some(at) = rest.find(['{', '}', ';']) {
            let prelude = rest[..at].trim();
            let is_block = rest.as_bytes()[at] == b'{';
            rest = &rest[at + 1..];
            if !is_block || self.rules.len() >= RULES {
                continue;
            }
            match prelude.strip_prefix('@') {
                // Rules for every screen are read as the others are.
                Some(at_rule) if is_for_screens(at_rule) => {}
                Some(_) => rest = after_block(rest),
                None => {
                    let (body, after) = rest.split_once('}').unwrap_or((rest, ""));
                    let mut style = Style::default();
                    style.declare_all(body);
                    prelude.split(',').filter_map(selector).take(64).for_each(|selector| {
                        self.rules.entry(selector).or_default().add(&style);
                    });
                    rest = after;
                }
            }
        }
    }

    /// Adds what the rules declare for an element, from the most general to the most special.
    pub(super) fn apply(&self, tag: &str, id: Option<&str>, classes: &str, style: &mut Style) {
        if self.rules.is_empty() {
            return;
        }
        let classes = classes.to_ascii_lowercase();
        let classes: Vec<&str> = classes.split_ascii_whitespace().take(CLASSES).collect();
        let id = id.map(|id| format!("#{}", id.trim().to_ascii_lowercase()));
        let all = ["*".to_owned(), tag.to_owned()].into_iter();
        let all = all.chain(classes.iter().map(|class| format!(".{class}")));
        let all = all.chain(classes.iter().map(|class| format!("{tag}.{class}")));
        let all = all.chain(id.iter().cloned()).chain(id.iter().map(|id| format!("{tag}{id}")));
        all.filter_map(|selector| self.rules.get(&selector)).for_each(|rule| style.add(rule));
    }
}

fn is_for_screens(at_rule: &str) -> bool {
    let queries = at_rule.strip_prefix("media").unwrap_or("").trim();
    at_rule.starts_with("media")
        && queries.split(',').any(|query| matches!(query.trim(), "all" | "screen" | "only screen"))
}

/// What follows the block that is open, with all blocks in it.
fn after_block(css: &str) -> &str {
    let mut depth = 1_usize;
    for (at, byte) in css.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return &css[at + 1..],
            b'}' => depth -= 1,
            _ => {}
        }
    }
    ""
}

/// Returns a selector as it is looked up: its last part, where those before it name only elements.
fn selector(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split([' ', '>', '\n', '\t', '\r']).filter(|part| !part.is_empty()).collect();
    let (last, before) = parts.split_last()?;
    let is_name = |part: &str| part == "*" || part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_simple = !last.contains([':', '[', '+', '~', '(']) && last.matches(['.', '#']).count() <= 1;
    let last = last.strip_prefix('*').filter(|rest| !rest.is_empty()).unwrap_or(last);
    (is_simple && before.iter().all(|part| is_name(part))).then(|| last.to_owned())
}
