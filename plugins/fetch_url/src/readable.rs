//! The text of an HTML document for reading: lines, lists, headings, tables and links, without markup.
//!
//! It is made from tokens, not from a tree: what it costs grows with the length of the document, however deep that
//! nests.

mod writer;

use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use std::borrow::Cow;
use url::Url;
use writer::{Gap, Writer};

/// Links grow when they become absolute, so a document could become a hundred times as long.
const TEXT_BYTES: usize = 8 << 20;
/// What a request takes; longer ones could not be followed.
const URL_BYTES: usize = 2048;

/// Returns the text of a document that came from `base`.
pub(crate) fn text(html: &str, base: Option<Url>) -> String {
    let mut reader = Reader { base, ..Reader::default() };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: html5gum::Span<()>| {
        reader.read(event);
        (reader.writer.len() > TEXT_BYTES).then_some(())
    });
    emitter.naively_switch_states(true);
    // Runs to the end, or to the first token, which says that there is enough.
    Tokenizer::new_with_emitter(html, emitter).next();
    reader.finish()
}

#[derive(Default)]
struct Reader {
    base: Option<Url>,
    has_own_base: bool,
    title: Option<String>,
    writer: Writer,
    /// The start tag that is being read.
    tag: String,
    is_wanted: bool,
    value: String,
    /// The element whose content is left out, and how many of that name are open.
    skipped: Option<(String, usize)>,
    in_title: bool,
    link: Option<Link>,
    lists: usize,
}

struct Link {
    href: String,
    /// Where its text starts.
    start: usize,
    /// How many words there were before it.
    words: usize,
}

impl Reader {
    fn read(&mut self, event: CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.push_str(&String::from_utf8_lossy(name));
                self.value.clear();
                self.is_wanted = false;
            }
            CallbackEvent::AttributeName { name } => {
                let wanted = [("a", "href"), ("base", "href"), ("img", "alt")];
                let is_one = wanted.iter().any(|(tag, attribute)| self.tag == *tag && name == attribute.as_bytes());
                self.is_wanted = is_one && self.value.is_empty();
            }
            CallbackEvent::AttributeValue { value } if self.is_wanted => {
                self.value.push_str(&String::from_utf8_lossy(value))
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                self.start(&tag, self_closing);
                self.tag = tag;
                self.tag.clear();
            }
            CallbackEvent::EndTag { name } => self.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => self.characters(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    fn start(&mut self, tag: &str, self_closing: bool) {
        if let Some((skipped, open)) = &mut self.skipped {
            *open += usize::from(skipped == tag && !self_closing);
            return;
        }
        match tag {
            "script" | "style" | "noscript" | "template" | "iframe" | "noembed" => self.skipped = Some((tag.into(), 1)),
            "svg" if !self_closing => self.skipped = Some((tag.into(), 1)),
            "title" => self.in_title = true,
            "base" => self.rebase(),
            "a" => {
                self.end_link();
                let href = std::mem::take(&mut self.value);
                self.link = Some(Link { href, start: self.writer.len(), words: self.writer.words() });
            }
            "img" => self.writer.flowing(&self.value),
            "br" => self.writer.end_line(),
            "hr" => self.writer.gap(Gap::Blank),
            "pre" | "listing" | "xmp" => self.writer.start_verbatim(),
            "ul" | "ol" | "menu" => {
                self.writer.gap(if self.lists == 0 { Gap::Blank } else { Gap::Line });
                self.lists += 1;
            }
            "li" => self.writer.item("- "),
            "table" => self.writer.start_row(Gap::Blank),
            "tr" => self.writer.start_row(Gap::Line),
            "td" | "th" => self.writer.start_cell(),
            _ => match heading(tag) {
                Some(mark) => {
                    self.writer.gap(Gap::Blank);
                    self.writer.item(mark);
                }
                None => self.writer.gap(around(tag)),
            },
        }
    }

    fn end(&mut self, tag: &str) {
        if let Some((skipped, open)) = &mut self.skipped {
            *open -= usize::from(skipped == tag);
            if *open == 0 {
                self.skipped = None;
            }
            return;
        }
        match tag {
            "title" => self.in_title = false,
            "a" => self.end_link(),
            "pre" | "listing" | "xmp" => self.writer.end_verbatim(),
            "ul" | "ol" | "menu" => {
                self.lists = self.lists.saturating_sub(1);
                self.writer.gap(if self.lists == 0 { Gap::Blank } else { Gap::Line });
            }
            "li" => self.writer.end_item(Gap::Line),
            "table" => self.writer.start_row(Gap::Blank),
            "tr" | "td" | "th" => {}
            _ if heading(tag).is_some() => self.writer.end_item(Gap::Blank),
            _ => self.writer.gap(around(tag)),
        }
    }

    fn characters(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if !self.in_title {
            self.writer.characters(text);
        } else if self.title.is_none() {
            self.title = Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// The first `base` element gives the URL to which links are relative.
    fn rebase(&mut self) {
        if !self.has_own_base && !self.value.is_empty() {
            self.has_own_base = true;
            self.base = self.absolute(&self.value).or(self.base.take());
        }
    }

    /// Writes the URL of a link after its text, unless it has no text or that is the URL already.
    fn end_link(&mut self) {
        let Some(Link { href, start, words }) = self.link.take() else { return };
        if self.writer.words() == words {
            return;
        }
        if let Some(url) = self.absolute(&href)
            && self.writer.since(start).trim() != url.as_str()
        {
            self.writer.append(&format!(" ({url})"));
        }
    }

    /// Returns the URL of another page that a link leads to.
    fn absolute(&self, href: &str) -> Option<Url> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > URL_BYTES {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        url.ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.as_str().len() <= URL_BYTES)
    }

    fn finish(mut self) -> String {
        self.end_link();
        let body = self.writer.finish();
        let title = self.title.filter(|title| !title.is_empty()).map_or(Cow::Borrowed(""), Cow::Owned);
        let gap = if title.is_empty() || body.is_empty() { "" } else { "\n\n" };
        format!("{title}{gap}{body}")
    }
}

fn heading(tag: &str) -> Option<&'static str> {
    Some(match tag {
        "h1" => "# ",
        "h2" => "## ",
        "h3" => "### ",
        "h4" => "#### ",
        "h5" => "##### ",
        "h6" => "###### ",
        _ => return None,
    })
}

/// Returns what is written before and after an element. Unknown elements are within the line.
fn around(tag: &str) -> Gap {
    match tag {
        "address" | "article" | "aside" | "blockquote" | "body" | "details" | "dl" | "fieldset" | "figure"
        | "footer" | "form" | "header" | "hgroup" | "main" | "nav" | "p" | "section" => Gap::Blank,
        "button" | "caption" | "center" | "dd" | "dialog" | "div" | "dt" | "figcaption" | "legend" | "option"
        | "search" | "select" | "summary" | "textarea" => Gap::Line,
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests;
