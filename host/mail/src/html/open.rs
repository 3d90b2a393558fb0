//! The open elements of a document: which of them a tag ends, as the HTML Standard has it.

use super::elements::{around, heading, is_scope};
use super::look::Look;
use super::writer::Gap;
use std::collections::HashMap;

/// Open elements; what is deeper belongs to the last of them.
const DEPTH: usize = 50_000;
/// How far up an end tag looks for its element.
const REACH: usize = 128;

/// The open elements, with how they look.
pub(super) struct Open {
    elements: Vec<(usize, Look)>,
    /// How many of a name are open.
    counts: Vec<usize>,
    /// Names beyond those of `BOUNDS`.
    names: HashMap<String, usize>,
    scope: u64,
    blocks: u64,
    tables: u64,
}

impl Default for Open {
    fn default() -> Self {
        let blocks = mask(|tag| is_scope(tag) || around(tag) != Gap::None);
        let (scope, tables) = (mask(is_scope), mask(|tag| tag == "table"));
        Self { elements: Vec::new(), counts: vec![0; BOUNDS.len()], names: HashMap::new(), scope, blocks, tables }
    }
}

impl Open {
    pub(super) fn look(&self) -> Look {
        self.elements.last().map_or_else(Look::default, |(_, look)| *look)
    }

    pub(super) fn push(&mut self, tag: &str, look: Look) {
        let is_full = self.elements.len() == DEPTH || self.names.len() == DEPTH;
        if let Some((_, last)) = self.elements.last_mut().filter(|_| is_full) {
            // What is hidden stays hidden; so does what follows it.
            last.gone |= look.is_hidden();
            return;
        }
        let name = self.name(tag).unwrap_or_else(|| {
            self.counts.push(0);
            self.names.insert(tag.to_owned(), self.counts.len() - 1);
            self.counts.len() - 1
        });
        self.counts[name] += 1;
        self.elements.push((name, look));
    }

    fn name(&self, tag: &str) -> Option<usize> {
        BOUNDS.binary_search(&tag).ok().or_else(|| self.names.get(tag).copied())
    }

    /// Ends what a start tag ends without an end tag, as the HTML Standard has it.
    pub(super) fn close_before(&mut self, tag: &str) {
        match tag {
            "li" => self.close_within("li", self.scope | mask(|open| matches!(open, "ul" | "ol" | "menu"))),
            "dd" | "dt" => {
                self.close_within("dd", self.scope | mask(|open| open == "dl"));
                self.close_within("dt", self.scope | mask(|open| open == "dl"));
            }
            "td" | "th" => {
                self.close_within("td", self.tables | mask(|open| open == "tr"));
                self.close_within("th", self.tables | mask(|open| open == "tr"));
            }
            "tr" => self.close_within("tr", self.tables),
            "option" => self.close_within("option", mask(|open| open == "select")),
            _ if matches!(around(tag), Gap::Blank | Gap::Line) || heading(tag).is_some() => {
                self.close_within("p", self.scope | mask(|open| open == "button"));
            }
            _ => {}
        }
    }

    pub(super) fn close(&mut self, tag: &str) {
        const FORMATTING: [&str; 14] =
            ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
        let beyond = match tag {
            "table" => 0,
            "tr" | "td" | "th" | "tbody" | "thead" | "tfoot" | "caption" => self.tables,
            _ if FORMATTING.contains(&tag) || around(tag) != Gap::None || heading(tag).is_some() => self.scope,
            // Any other end tag does not end a block that is open.
            _ => self.blocks,
        };
        self.close_within(tag, beyond);
    }

    /// Ends the innermost element of that name, with all in it, unless it is beyond one of the others.
    fn close_within(&mut self, tag: &str, beyond: u64) {
        let Some(name) = self.name(tag).filter(|name| self.counts[*name] > 0) else { return };
        let is_beyond = |open: usize| open != name && open < BOUNDS.len() && beyond >> open & 1 == 1;
        let near = self.elements.iter().rev().take(REACH).map(|(open, _)| *open);
        let mut near = near.take_while(|open| !is_beyond(*open)).enumerate();
        let Some((depth, _)) = near.find(|(_, open)| *open == name) else { return };
        for (name, _) in self.elements.drain(self.elements.len() - depth - 1..) {
            self.counts[name] -= 1;
        }
    }
}

/// The elements at which the search for an open one may end.
const BOUNDS: [&str; 45] = [
    "address",
    "applet",
    "article",
    "aside",
    "blockquote",
    "body",
    "button",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "html",
    "legend",
    "li",
    "main",
    "marquee",
    "menu",
    "nav",
    "ol",
    "option",
    "p",
    "search",
    "section",
    "select",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
];

fn mask(is_one: impl Fn(&str) -> bool) -> u64 {
    BOUNDS.iter().enumerate().filter(|(_, tag)| is_one(tag)).fold(0, |mask, (at, _)| mask | 1 << at)
}
