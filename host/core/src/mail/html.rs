//! The text of a mail's HTML: lines, lists, links with their addresses, and marks on what a mail program would not show.
//!
//! It is made from tokens, not from a tree: what it costs grows with the length of the mail, however deep that nests.
//! Nothing is fetched. What hides text is judged by inline styles, attributes and simple selectors of `style` elements;
//! rules for other media than a screen, and selectors that look at classes of ancestors, are not.

use crate::text::sanitize;
use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use std::collections::{BTreeSet, HashMap};
use std::mem;
use url::Url;

/// Text that is made; a mail with more is cut.
const TEXT_BYTES: usize = 8 << 20;
/// Open elements; what is deeper belongs to the last of them.
const DEPTH: usize = 50_000;
/// How far up an end tag looks for its element.
const REACH: usize = 128;
/// Characters of hidden text that are shown, of a whole mail.
const HIDDEN_CHARS: usize = 4000;
/// What a request takes; longer ones could not be followed.
const URL_BYTES: usize = 2048;
/// Rules of style sheets that are kept, and classes of an element that are looked up.
const RULES: usize = 1000;
const CLASSES: usize = 16;
/// Hosts and links that notices name.
const NAMED: usize = 3;
/// How much two colors must differ in one channel to be told apart.
const CONTRAST: u8 = 24;

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

fn is_skipped(tag: &str) -> bool {
    // The tokenizer reads no markup in `noscript`, as where scripts run.
    const SKIPPED: [&str; 9] =
        ["script", "style", "template", "iframe", "noembed", "noframes", "noscript", "svg", "title"];
    SKIPPED.contains(&tag)
}

fn is_void(tag: &str) -> bool {
    const VOID: [&str; 14] =
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
    VOID.contains(&tag)
}

fn heading(tag: &str) -> Option<&'static str> {
    const MARKS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
    let level = match tag.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => level - b'1',
        _ => return None,
    };
    MARKS.get(usize::from(level)).copied()
}

/// Returns what is written before and after an element. Unknown elements are within the line.
fn around(tag: &str) -> Gap {
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

/// The open elements, with how they look.
struct Open {
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
    fn look(&self) -> Look {
        self.elements.last().map_or_else(Look::default, |(_, look)| *look)
    }

    fn push(&mut self, tag: &str, look: Look) {
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
    fn close_before(&mut self, tag: &str) {
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

    fn close(&mut self, tag: &str) {
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

/// HTML Standard, "have an element in scope".
fn is_scope(tag: &str) -> bool {
    matches!(tag, "applet" | "caption" | "html" | "table" | "td" | "th" | "marquee")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Paint {
    Color([u8; 3]),
    /// Shows what is below.
    Clear,
    /// What is not understood.
    Unknown,
}

/// How an element looks, as far as that hides its text.
#[derive(Clone, Copy, Debug)]
struct Look {
    gone: bool,
    invisible: bool,
    tiny: bool,
    ink: Paint,
    ground: Paint,
}

impl Default for Look {
    fn default() -> Self {
        let (ink, ground) = (Paint::Color([0; 3]), Paint::Color([255; 3]));
        Self { gone: false, invisible: false, tiny: false, ink, ground }
    }
}

impl Look {
    fn is_hidden(&self) -> bool {
        let is_drowned = match (self.ink, self.ground) {
            (Paint::Clear, _) => true,
            (Paint::Color(ink), Paint::Color(ground)) => {
                ink.iter().zip(ground).all(|(ink, ground)| ink.abs_diff(ground) <= CONTRAST)
            }
            _ => false,
        };
        self.gone || self.invisible || self.tiny || is_drowned
    }

    /// As an element within this one, which has that style.
    fn with(self, own: &Style) -> Self {
        let is_flat = own.flat.contains(&Some(true)) && own.clips == Some(true);
        Self {
            gone: self.gone || is_flat || own.gone.contains(&Some(true)),
            invisible: own.invisible.unwrap_or(self.invisible),
            tiny: match own.size {
                Some(Size::Tiny) => true,
                Some(Size::Fixed) => false,
                Some(Size::Relative) | None => self.tiny,
            },
            ink: own.ink.unwrap_or(self.ink),
            ground: own.ground.filter(|ground| *ground != Paint::Clear).unwrap_or(self.ground),
        }
    }
}

/// Properties each of which can hide an element with all in it.
#[derive(Clone, Copy)]
enum Gone {
    Attribute,
    Display,
    Opacity,
    Left,
    Top,
    Right,
    Bottom,
    Margin,
    Indent,
    Transform,
    Clip,
    Filter,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Tiny,
    Fixed,
    /// Of its parent's.
    Relative,
}

/// What a style declares. Of two declarations of a property, the last counts.
#[derive(Clone, Debug, Default)]
struct Style {
    gone: [Option<bool>; 12],
    invisible: Option<bool>,
    size: Option<Size>,
    ink: Option<Paint>,
    ground: Option<Paint>,
    /// `height`, `width` and their limits are next to nothing.
    flat: [Option<bool>; 4],
    clips: Option<bool>,
}

impl Style {
    fn declare_all(&mut self, style: &str) {
        for declaration in lowered(style).split(';') {
            if let Some((property, value)) = declaration.split_once(':') {
                self.declare(property.trim(), value.trim().trim_end_matches("!important").trim());
            }
        }
    }

    fn declare(&mut self, property: &str, value: &str) {
        let gone = |kind: Gone, is: bool| (kind as usize, is);
        let (kind, is_gone) = match property {
            "display" => gone(Gone::Display, value == "none"),
            "content-visibility" => gone(Gone::Filter, value == "hidden"),
            "opacity" => gone(Gone::Opacity, fraction(value).is_some_and(|part| part <= 0.05)),
            "filter" => {
                let part = value.split_once("opacity(").and_then(|(_, rest)| fraction(rest.split(')').next()?));
                gone(Gone::Filter, part.is_some_and(|part| part <= 0.05))
            }
            "left" => gone(Gone::Left, is_far(value)),
            "top" => gone(Gone::Top, is_far(value)),
            "right" => gone(Gone::Right, is_far(value)),
            "bottom" => gone(Gone::Bottom, is_far(value)),
            "margin" | "margin-left" | "margin-top" | "margin-right" => {
                gone(Gone::Margin, value.split_whitespace().any(is_far))
            }
            "text-indent" => gone(Gone::Indent, is_far(value)),
            "transform" => {
                let mut arguments = value.split(['(', ',', ')', ' ']);
                gone(Gone::Transform, value.contains("scale(0") || arguments.any(is_far))
            }
            "clip" => {
                gone(Gone::Clip, value.starts_with("rect(") && !value.contains(|c: char| ('2'..='9').contains(&c)))
            }
            "clip-path" => {
                let whole = ["inset(50%", "inset(100%", "circle(0", "polygon(0 0,0 0", "polygon(0 0, 0 0"];
                gone(Gone::Clip, whole.iter().any(|shape| value.starts_with(shape)))
            }
            _ => return self.declare_more(property, value),
        };
        self.gone[kind] = Some(is_gone);
    }

    fn declare_more(&mut self, property: &str, value: &str) {
        let flat = ["height", "max-height", "width", "max-width"].iter().position(|name| *name == property);
        match property {
            "visibility" => self.invisible = Some(value == "hidden" || value == "collapse"),
            "font-size" => self.size = size(value).or(self.size),
            // The size is what may have a line's height after a slash.
            "font" => {
                let mut sizes = value.split_whitespace().filter_map(|word| size(word.split('/').next()?));
                self.size = sizes.next_back().or(self.size);
            }
            "color" | "-webkit-text-fill-color" => self.ink = paint(value).or(self.ink),
            "background-color" => self.ground = paint(value).or(self.ground),
            // An image is not loaded by most, so what is below it is what a text stands on. A gradient has its first color.
            "background" | "background-image" => {
                let words = value.split_inclusive([')', ' ', ',']).flat_map(|word| word.rsplit("gradient("));
                let colors = words.map(|word| word.trim_matches([' ', ','])).filter_map(paint);
                let whole = paint(value).filter(|paint| *paint != Paint::Unknown);
                let found = whole.or_else(|| colors.into_iter().find(|paint| *paint != Paint::Unknown));
                self.ground = found.or(self.ground);
            }
            "overflow" | "overflow-x" | "overflow-y" => self.clips = Some(value.contains("hidden") || value == "clip"),
            _ => {
                if let Some(side) = flat.and_then(|side| self.flat.get_mut(side)) {
                    *side = Some(length(value).is_some_and(|(number, _)| (0.0..=1.0).contains(&number)));
                }
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.gone.iter_mut().zip(other.gone).for_each(|(own, new)| *own = new.or(*own));
        self.flat.iter_mut().zip(other.flat).for_each(|(own, new)| *own = new.or(*own));
        self.invisible = other.invisible.or(self.invisible);
        self.size = other.size.or(self.size);
        self.ink = other.ink.or(self.ink);
        self.ground = other.ground.or(self.ground);
        self.clips = other.clips.or(self.clips);
    }
}

/// Splits a number from its unit.
fn length(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(value.len());
    Some((value[..end].parse().ok()?, value[end..].trim()))
}

fn fraction(value: &str) -> Option<f64> {
    let (number, unit) = length(value.trim())?;
    Some(if unit == "%" { number / 100.0 } else { number })
}

fn size(value: &str) -> Option<Size> {
    if matches!(value, "smaller" | "larger" | "inherit") {
        return Some(Size::Relative);
    }
    if value.ends_with("-small")
        || value.ends_with("-large")
        || matches!(value, "small" | "medium" | "large" | "initial")
    {
        return Some(Size::Fixed);
    }
    let (number, unit) = length(value)?;
    Some(match unit {
        _ if number == 0.0 => Size::Tiny,
        "px" | "pt" if number <= 1.5 => Size::Tiny,
        "em" | "rem" | "ex" | "ch" | "vw" | "vh" if number <= 0.1 => Size::Tiny,
        "%" if number <= 10.0 => Size::Tiny,
        "em" | "ex" | "ch" | "%" => Size::Relative,
        "px" | "pt" | "rem" | "vw" | "vh" | "mm" | "cm" | "in" | "pc" => Size::Fixed,
        // A weight of a font, or nothing known.
        _ => return None,
    })
}

/// Tells whether something that is so far off cannot be on a screen.
fn is_far(value: &str) -> bool {
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

/// Returns the color; what is no color at all changes none.
fn paint(value: &str) -> Option<Paint> {
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
        // Of these, only white, black and gray are told.
        ("hsl" | "hsla", [_, saturation, lightness, ..]) => match (fraction(saturation), channel(lightness)) {
            (Some(0.0), Some(gray)) | (_, Some(gray @ (0..=10 | 245..=255))) => Paint::Color([gray; 3]),
            _ => Paint::Unknown,
        },
        _ => Paint::Unknown,
    }
}

/// Returns CSS in lower case, without comments, and with escapes undone.
fn lowered(css: &str) -> String {
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

/// The rules of all style elements that hide something or color it, by selector: `p`, `.note`, `p.note`, `#top`, `*`.
#[derive(Default)]
struct Sheet {
    rules: HashMap<String, Style>,
}

impl Sheet {
    fn of(html: &str) -> Self {
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
    fn apply(&self, tag: &str, id: Option<&str>, classes: &str, style: &mut Style) {
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

/// What is between the text so far and the next word. The greater one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    /// An empty line.
    Blank,
}

/// Lines of text in the making.
#[derive(Default)]
struct Writer {
    text: String,
    words: usize,
    gap: Gap,
    /// Written before the next word: `- ` or `# `.
    mark: &'static str,
    verbatim: usize,
    /// A mark of hidden text is open.
    in_hidden: bool,
    has_hidden: bool,
    hidden_chars: usize,
    is_hidden_cut: bool,
}

impl Writer {
    fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Ends the line; a second time in a row, leaves one empty.
    fn end_line(&mut self, is_hidden: bool) {
        if self.verbatim > 0 && !is_hidden {
            return self.characters("\n", false);
        }
        self.gap = if self.gap < Gap::Line { Gap::Line } else { Gap::Blank };
    }

    fn item(&mut self, mark: &'static str) {
        self.gap(Gap::Line);
        self.mark = mark;
    }

    fn end_item(&mut self, gap: Gap) {
        self.mark = "";
        self.gap(gap);
    }

    fn characters(&mut self, text: &str, is_hidden: bool) {
        if self.verbatim == 0 || is_hidden {
            return self.flowing(text, is_hidden);
        }
        if !text.is_empty() {
            self.begin_word();
            self.text.push_str(text);
        }
    }

    /// Adds text whose white space means no more than that words end.
    fn flowing(&mut self, text: &str, is_hidden: bool) {
        if text.starts_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
        for (index, word) in text.split_whitespace().enumerate() {
            self.gap(if index == 0 { Gap::None } else { Gap::Space });
            if is_hidden {
                self.hide(word);
            } else {
                self.begin_word();
                self.text.push_str(word);
            }
        }
        if text.ends_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
    }

    /// Adds a word to the mark that is open. Nothing in it can end the mark.
    fn hide(&mut self, word: &str) {
        self.has_hidden = true;
        let before = self.hidden_chars;
        self.hidden_chars = before.saturating_add(word.chars().count() + 1);
        if before >= HIDDEN_CHARS && self.in_hidden {
            if !mem::replace(&mut self.is_hidden_cut, true) {
                self.text.push_str(" …");
            }
            return;
        }
        if self.in_hidden {
            self.text.push_str(if mem::take(&mut self.gap) == Gap::None { "" } else { " " });
        } else {
            self.mark = "";
            self.begin_word();
            self.in_hidden = true;
            self.text.push_str("[hidden: ");
        }
        self.words += 1;
        if before >= HIDDEN_CHARS {
            self.is_hidden_cut = true;
            return self.text.push('…');
        }
        let room = HIDDEN_CHARS - before;
        let is_long = word.chars().nth(room).is_some();
        self.is_hidden_cut = is_long;
        let bracket = |c: char| match c {
            '[' => '(',
            ']' => ')',
            c => c,
        };
        self.text.extend(word.chars().take(room).map(bracket).chain(is_long.then_some('…')));
    }

    /// Adds text where the last word ends, before the gap.
    fn append(&mut self, text: &str) {
        if self.in_hidden {
            let text = text.replace('[', "%5B").replace(']', "%5D");
            self.hidden_chars = self.hidden_chars.saturating_add(text.len());
            if self.hidden_chars < HIDDEN_CHARS {
                self.text.push_str(&text);
            }
        } else {
            self.text.push_str(text);
        }
    }

    fn begin_word(&mut self) {
        self.words += 1;
        self.end_hidden();
        match mem::take(&mut self.gap) {
            _ if self.text.is_empty() => {}
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            gap => {
                self.text.truncate(self.text.trim_end_matches([' ', '\t', '\n']).len());
                self.text.push_str(if gap == Gap::Line { "\n" } else { "\n\n" });
            }
        }
        self.text.push_str(mem::take(&mut self.mark));
    }

    fn end_hidden(&mut self) {
        if mem::take(&mut self.in_hidden) {
            self.text.push(']');
        }
    }

    fn finish(mut self) -> String {
        self.end_hidden();
        self.text.truncate(self.text.floor_char_boundary(TEXT_BYTES));
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}
