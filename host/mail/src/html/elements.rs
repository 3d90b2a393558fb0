//! What is known of elements by their names.

use super::writer::Gap;

pub(super) fn is_skipped(tag: &str) -> bool {
    // The tokenizer reads no markup in `noscript`, as where scripts run.
    const SKIPPED: [&str; 9] =
        ["script", "style", "template", "iframe", "noembed", "noframes", "noscript", "svg", "title"];
    SKIPPED.contains(&tag)
}

pub(super) fn is_void(tag: &str) -> bool {
    const VOID: [&str; 14] =
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
    VOID.contains(&tag)
}

pub(super) fn heading(tag: &str) -> Option<&'static str> {
    const MARKS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
    let level = match tag.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => level - b'1',
        _ => return None,
    };
    MARKS.get(usize::from(level)).copied()
}

/// Returns what is written before and after an element. Unknown elements are within the line.
pub(super) fn around(tag: &str) -> Gap {
    match tag {
        "address" | "article" | "aside" | "blockquote" | "body" | "details" | "dl" | "fieldset" | "figure"
        | "footer" | "form" | "header" | "hgroup" | "main" | "nav" | "ol" | "p" | "section" | "table" | "ul" => {
            Gap::Blank
        }
        "button" | "caption" | "center" | "dd" | "dialog" | "div" | "dt" | "figcaption" | "legend" | "option"
        | "search" | "select" | "summary" | "textarea" | "tr" => Gap::Line,
        "td" | "th" => Gap::Space,
        _ => Gap::None,
    }
}

/// HTML Standard, "have an element in scope".
pub(super) fn is_scope(tag: &str) -> bool {
    matches!(tag, "applet" | "caption" | "html" | "table" | "td" | "th" | "marquee")
}
