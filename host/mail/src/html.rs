//! The text of a mail's HTML: lines, lists, links with their addresses, and marks on what a mail program would not show.
//!
//! It is made from tokens, not from a tree: what it costs grows with the length of the mail, however deep that nests.
//! Nothing is fetched. What hides text is judged by inline styles, attributes and simple selectors of `style` elements;
//! rules for other media than a screen, and selectors that look at classes of ancestors, are not.
//!
//! html2text 0.17 builds the tree: 100,000 open `div` took it 116 s. Of five ways to hide text it knows one, `display: none`, and drops that text
//! without a mark. For styles, cssparser would replace the splitting alone, some 60 of the 260 lines in `color.rs`, `css.rs` and `sheet.rs`, and
//! add 9 crates.

mod color;
mod css;
mod elements;
mod look;
mod open;
mod sheet;
#[cfg(test)]
mod tests;
mod writer;

use base::text::sanitize;
use css::lowered;
use elements::{around, heading, is_skipped, is_void};
use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use look::{Gone, Look, Style};
use open::Open;
use sheet::Sheet;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use url::Url;
use writer::{Gap, Writer};

/// Text that is made; a mail with more is cut.
const TEXT_BYTES: usize = 8 << 20;
/// What a request takes; longer ones could not be followed.
const URL_BYTES: usize = 2048;
/// Hosts and links that notices name.
const NAMED: usize = 3;

/// Returns the text of a document, and adds to the notices what its reader should know.
pub(super) fn text(html: &str, notices: &mut Vec<String>) -> String {
    let mut reader = Reader { sheet: Sheet::of(html), ..Reader::default() };
    each(html, |event| reader.read(event));
    reader.finish(notices)
}

/// Hands over the events of a document until one is enough.
fn each(html: &str, mut read: impl FnMut(CallbackEvent<'_>) -> bool) {
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: html5gum::Span<()>| read(event).then_some(()));
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter).next();
}

#[derive(Default)]
struct Reader {
    sheet: Sheet,
    writer: Writer,
    open: Open,
    /// The start tag that is being read, and those of its attributes that matter. Of two of a name, the first counts.
    tag: String,
    attributes: HashMap<&'static str, String>,
    attribute: Option<&'static str>,
    /// The element whose content is left out, and how many of that name are open.
    skipped: Option<(String, usize)>,
    link: Option<Link>,
    remote_images: usize,
    image_hosts: BTreeSet<String>,
    false_links: Vec<String>,
}

struct Link {
    href: String,
    /// Where its text starts.
    start: usize,
    words: usize,
}

const ATTRIBUTES: [&str; 14] = [
    "alt",
    "aria-hidden",
    "background",
    "bgcolor",
    "class",
    "color",
    "hidden",
    "href",
    "id",
    "open",
    "src",
    "srcset",
    "style",
    "text",
];

impl Reader {
    /// Takes an event; returns whether there is enough text.
    fn read(&mut self, event: CallbackEvent<'_>) -> bool {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = String::from_utf8_lossy(name).into_owned();
                self.attributes.clear();
                self.attribute = None;
            }
            CallbackEvent::AttributeName { name } => {
                let known = ATTRIBUTES.into_iter().find(|known| known.as_bytes() == name);
                self.attribute = known.filter(|known| !self.attributes.contains_key(known));
                self.attributes.extend(self.attribute.map(|name| (name, String::new())));
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(kept) = self.attribute.and_then(|name| self.attributes.get_mut(name)) {
                    kept.push_str(&String::from_utf8_lossy(value));
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = mem::take(&mut self.tag);
                self.start(&tag, self_closing);
            }
            CallbackEvent::EndTag { name } => self.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } if self.skipped.is_none() => {
                let text = String::from_utf8_lossy(value);
                self.writer.characters(&sanitize::text(&text), self.open.look().is_hidden());
            }
            _ => {}
        }
        self.writer.text.len() > TEXT_BYTES
    }

    fn start(&mut self, tag: &str, self_closing: bool) {
        if let Some((skipped, open)) = &mut self.skipped {
            *open += usize::from(skipped == tag && !self_closing);
            return;
        }
        if is_skipped(tag) {
            self.skipped = (tag != "svg" || !self_closing).then(|| (tag.to_owned(), 1));
            return;
        }
        self.open.close_before(tag);
        self.count_images(tag);
        let look = self.look(tag);
        let is_hidden = look.is_hidden();
        match tag {
            "a" => {
                self.end_link();
                let href = self.attributes.remove("href").unwrap_or_default();
                self.link = Some(Link { href, start: self.writer.text.len(), words: self.writer.words });
            }
            "img" => {
                if let Some(alt) = self.attributes.get("alt").filter(|alt| !alt.trim().is_empty()) {
                    let alt = sanitize::line(alt).replace('[', "(").replace(']', ")");
                    self.writer.flowing(&format!("[image: {}]", alt.trim()), is_hidden);
                }
            }
            "br" => self.writer.end_line(is_hidden),
            "hr" => self.writer.gap(Gap::Blank),
            "pre" | "listing" | "xmp" => {
                self.writer.gap(Gap::Blank);
                self.writer.verbatim += 1;
            }
            "li" => self.writer.item("- "),
            _ if heading(tag).is_some() => {
                self.writer.gap(Gap::Blank);
                self.writer.item(heading(tag).unwrap_or_default());
            }
            _ => self.writer.gap(around(tag)),
        }
        if !is_void(tag) {
            self.open.push(tag, look);
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
            "a" => self.end_link(),
            "pre" | "listing" | "xmp" => {
                self.writer.verbatim = self.writer.verbatim.saturating_sub(1);
                self.writer.gap(Gap::Blank);
            }
            "li" => self.writer.end_item(Gap::Line),
            _ if heading(tag).is_some() => self.writer.end_item(Gap::Blank),
            "br" => self.writer.end_line(self.open.look().is_hidden()),
            _ => self.writer.gap(around(tag)),
        }
        self.open.close(tag);
    }

    /// How the element that starts looks: as its parent, but for its attributes, the sheets' rules and its own style.
    fn look(&self, tag: &str) -> Look {
        let mut own = Style::default();
        let attribute = |name: &str| self.attributes.get(name).map(String::as_str);
        if attribute("hidden").is_some() || attribute("aria-hidden").is_some_and(|value| value.trim() == "true") {
            own.gone[Gone::Attribute as usize] = Some(true);
        }
        if tag == "dialog" && attribute("open").is_none() {
            own.gone[Gone::Display as usize] = Some(true);
        }
        for (name, property) in [("color", "color"), ("text", "color"), ("bgcolor", "background-color")] {
            let is_here = match name {
                "color" => tag == "font",
                "text" => tag == "body",
                _ => true,
            };
            if let Some(value) = attribute(name).filter(|_| is_here) {
                own.declare(property, &lowered(value));
            }
        }
        self.sheet.apply(tag, attribute("id"), attribute("class").unwrap_or_default(), &mut own);
        own.declare_all(attribute("style").unwrap_or_default());
        self.open.look().with(&own)
    }

    fn count_images(&mut self, tag: &str) {
        let attribute = |name: &str| self.attributes.get(name).map_or("", |value| value.trim());
        let source = if tag == "img" || tag == "input" { attribute("src") } else { "" };
        let sources = [source, attribute("background"), attribute("srcset")];
        let in_style = attribute("style").split("url(").skip(1).map(|rest| rest.trim_start_matches(['\'', '"', ' ']));
        for source in sources.into_iter().chain(in_style.take(4)) {
            let source = if source.starts_with("//") { &format!("https:{source}") } else { source };
            let end = source.find([')', '\'', '"', ' ']).unwrap_or(source.len());
            let is_remote = source.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
            let Some(url) = source.get(..end).filter(|source| is_remote && source.len() <= URL_BYTES) else { continue };
            self.remote_images += 1;
            let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            if self.image_hosts.len() <= NAMED {
                self.image_hosts.extend(host);
            }
        }
    }

    /// Writes the address of a link after its text, unless it has no text or that is the address already.
    fn end_link(&mut self) {
        let Some(Link { href, start, words }) = self.link.take() else { return };
        if self.writer.words == words {
            return;
        }
        let href = href.trim();
        let url = Url::parse(href).ok().filter(|url| ["http", "https", "mailto", "tel"].contains(&url.scheme()));
        let Some(url) = url.filter(|url| url.as_str().len() <= URL_BYTES) else { return };
        let shown = self.writer.text.get(start..).unwrap_or_default().trim();
        let plain = url.as_str().trim_start_matches("mailto:").trim_start_matches("tel:");
        if shown == plain || shown == plain.trim_end_matches('/') {
            return;
        }
        if let (Some(shown), Some(host)) = (shown_host(shown), url.host_str())
            && !is_same_site(&shown, host)
            && self.false_links.len() < NAMED
        {
            self.false_links.push(format!("a link shows `{shown}` but leads to `{host}`"));
        }
        self.writer.append(&format!(" ({plain})"));
    }

    fn finish(mut self, notices: &mut Vec<String>) -> String {
        self.end_link();
        if self.writer.has_hidden {
            notices.push("text that a mail program would not show is marked `[hidden: …]`".into());
        }
        if self.remote_images > 0 {
            let mut hosts: Vec<String> = self.image_hosts.iter().take(NAMED).cloned().collect();
            hosts.extend((self.image_hosts.len() > NAMED).then(|| "…".to_owned()));
            let (count, s) = (self.remote_images, if self.remote_images == 1 { "" } else { "s" });
            notices.push(format!("{count} remote image{s} not fetched ({})", hosts.join(", ")));
        }
        notices.append(&mut self.false_links);
        if self.writer.text.len() > TEXT_BYTES {
            notices.push(format!("the text was cut (limit: {} MiB)", TEXT_BYTES >> 20));
        }
        self.writer.finish()
    }
}

/// Returns the host that the text of a link shows, if it is an address.
fn shown_host(text: &str) -> Option<String> {
    if text.contains(char::is_whitespace) || text.len() > URL_BYTES || !text.contains('.') || text.contains('@') {
        return None;
    }
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let host = Url::parse(&url).ok()?.host_str()?.to_owned();
    let (_, last) = host.rsplit_once('.')?;
    (last.len() >= 2 && last.chars().all(char::is_alphabetic) || last.starts_with("xn--")).then_some(host)
}

fn is_same_site(shown: &str, host: &str) -> bool {
    let (shown, host) = (shown.trim_start_matches("www."), host.trim_start_matches("www."));
    shown == host || host.strip_suffix(shown).is_some_and(|rest| rest.ends_with('.'))
}
