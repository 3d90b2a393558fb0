//! A page as text: the accessibility trees of its frames, a line for each thing that a reader would notice.
//!
//! What can be acted on, and what holds other things together, has an id. It stands for one node of one document and is never given again, so
//! that an act by an old id finds that very element or none.

use super::cdp::{SessionId, Trouble};
use super::guard::WORLD;
use super::running::{Browser, Ids, Tab, first};
use base::text::sanitize;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Elements and texts of a document whose tree is asked for whole. The browser needs a second for some 15,000, and writes 500 bytes for each.
const WHOLE: u64 = 15_000;
/// Nodes of a larger one whose contents are looked at, in their order: at most, how long, however long that takes, and how much of each.
const SOME: usize = 4_000;
const WHILE: Duration = Duration::from_secs(2);
const LEAST: usize = 300;
const WIDE: usize = 500;
/// How long the browser may take to tell of the nodes of a large page, for each question.
const LARGE: Duration = Duration::from_secs(10);
/// Stands for each character of a password: how many there are is its length.
const HIDDEN: char = '•';
/// Characters of a name and of a value.
const NAME_CHARS: usize = 200;
const VALUE_CHARS: usize = 100;
/// Characters of a piece of text.
const TEXT_CHARS: usize = 2_000;

/// What can be acted on.
#[rustfmt::skip]
const ACTED_ON: [&str; 22] = [
    "button", "checkbox", "combobox", "ComboBoxMenuButton", "DisclosureTriangle", "link", "listbox", "listboxoption", "menuitem", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem", "menulistoption", "PopUpButton",
];
/// What holds other things together, so that it can be looked at by itself.
#[rustfmt::skip]
const HOLDING: [&str; 20] = [
    "alert", "alertdialog", "article", "banner", "complementary", "contentinfo", "dialog", "form", "grid", "list", "main", "menu", "navigation",
    "region", "search", "table", "tablist", "toolbar", "tree", "Iframe",
];
/// What says nothing by itself: its content takes its place.
#[rustfmt::skip]
const PASSED_OVER: [&str; 14] = [
    "generic", "none", "presentation", "RootWebArea", "LayoutTable", "LayoutTableRow", "LayoutTableCell", "paragraph", "div", "Section", "LabelText",
    "strong", "emphasis", "rowgroup",
];
/// What is left out with all that is in it.
const LEFT_OUT: [&str; 4] = ["InlineTextBox", "LineBreak", "ListMarker", "Ruby"];

/// The role of a piece of text.
const TEXT: &str = "StaticText";
/// Bytes of the address of a document that are kept.
const URL_BYTES: usize = 2048;
/// What has the focus.
const FOCUSED: &str = " (focused)";

/// A document in a frame. It is the same one whatever its page says its address is.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// The process that has it, as far as one can speak to it.
    pub(super) session: SessionId,
    pub(super) frame: String,
    pub(super) loader: String,
    pub(super) url: String,
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        (&self.session, &self.frame, &self.loader) == (&other.session, &other.frame, &other.loader)
    }
}

/// What an id stands for.
#[derive(Clone, Debug)]
pub struct Element {
    pub(super) tab: u64,
    pub(super) document: Document,
    pub(super) node: u64,
    pub(super) role: String,
    pub(super) name: String,
}

impl Element {
    /// As people read it.
    pub fn shown(&self) -> String {
        shown(&self.role, &self.name)
    }
}

/// A role with a name.
pub(super) fn shown(role: &str, name: &str) -> String {
    if name.is_empty() { role.to_owned() } else { format!("{role} {name:?}") }
}

/// The ids that were given.
#[derive(Default)]
pub(super) struct Elements {
    by_node: HashMap<(SessionId, String, u64), u64>,
    all: HashMap<u64, Element>,
}

impl Elements {
    pub(super) fn get(&self, number: u64) -> Option<&Element> {
        self.all.get(&number)
    }

    /// Forgets what is of documents that are there no more.
    fn keep(&mut self, tab: u64, documents: &[Document]) {
        self.all.retain(|_, element| element.tab != tab || documents.contains(&element.document));
        let all = &self.all;
        self.by_node.retain(|_, number| all.contains_key(number));
    }

    /// Forgets what is of tabs that are there no more.
    pub(super) fn retain(&mut self, is_there: impl Fn(u64) -> bool) {
        self.all.retain(|_, element| is_there(element.tab));
        let all = &self.all;
        self.by_node.retain(|_, number| all.contains_key(number));
    }

    fn number(&mut self, ids: &Ids, element: Element) -> u64 {
        let key = (element.document.session.clone(), element.document.loader.clone(), element.node);
        let number = *self.by_node.entry(key).or_insert_with(|| Ids::next(&ids.elements));
        self.all.insert(number, element);
        number
    }
}

/// A line of a page.
#[derive(Clone, Debug)]
pub(super) struct Line {
    depth: usize,
    text: String,
    id: Option<u64>,
}

impl Line {
    fn written(&self) -> String {
        let id = self.id.map(|id| format!(" [e{id}]")).unwrap_or_default();
        format!("{}- {}{id}", "  ".repeat(self.depth.min(20)), self.text)
    }
}

/// A page as it was looked at.
#[derive(Default)]
pub(super) struct Page {
    pub(super) lines: Vec<Line>,
    /// What could not be looked at.
    pub(super) notices: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    loader_id: String,
    url: String,
}

/// A node as the browser tells it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    node_id: String,
    #[serde(default)]
    ignored: bool,
    #[serde(default)]
    role: Told,
    #[serde(default)]
    name: Told,
    #[serde(default)]
    value: Told,
    #[serde(default)]
    properties: Vec<Property>,
    #[serde(default)]
    child_ids: Vec<String>,
    #[serde(default, rename = "backendDOMNodeId")]
    node: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Told {
    #[serde(default)]
    value: Value,
}

impl Told {
    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Property {
    name: String,
    value: Told,
}

#[derive(Deserialize)]
struct Nodes {
    nodes: Vec<Node>,
}

impl Browser {
    /// The documents of a tab, those of its own process first.
    pub(super) async fn documents(&self, tab: &Tab) -> Result<Vec<Document>, Trouble> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            frame_tree: FrameTree,
        }
        fn add(tree: FrameTree, session: &SessionId, all: &mut Vec<Document>) {
            let FrameInfo { id, loader_id, mut url } = tree.frame;
            // A page can make it as long as it likes.
            url.truncate(url.floor_char_boundary(URL_BYTES));
            all.push(Document { session: session.clone(), frame: id, loader: loader_id, url });
            tree.child_frames.into_iter().for_each(|child| add(child, session, all));
        }
        let mut all = Vec::new();
        let Answer { frame_tree } = self.ask(&tab.session, "Page.getFrameTree", json!({})).await?;
        add(frame_tree, &tab.session, &mut all);
        for session in &tab.frames {
            // It may be gone by now.
            if let Ok(Answer { frame_tree }) = self.ask(session, "Page.getFrameTree", json!({})).await {
                // The frame above names it, too.
                all.retain(|document: &Document| document.frame != frame_tree.frame.id);
                add(frame_tree, session, &mut all);
            }
        }
        Ok(all)
    }

    /// Looks at a tab.
    pub(super) async fn look(
        &self,
        tab: &Tab,
        within: Option<&Element>,
        elements: &mut Elements,
    ) -> Result<Page, Trouble> {
        let documents = self.documents(tab).await?;
        elements.keep(tab.number, &documents);
        let mut trees: HashMap<String, Vec<Node>> = HashMap::new();
        let mut page = Page::default();
        for document in &documents {
            let within = within.filter(|element| element.document == *document);
            match self.tree(document, within, &mut page.notices).await {
                Ok(nodes) => drop(trees.insert(document.frame.clone(), nodes)),
                // Of a frame that is on its way elsewhere.
                Err(Trouble::Refused { .. }) if document.session != tab.session || document != &documents[0] => {}
                Err(trouble) => return Err(trouble),
            }
        }
        let owners = self.owners(&documents[1..]).await;
        let mut writer = Writer {
            browser: self,
            tab: tab.number,
            documents: &documents,
            trees: &trees,
            owners: &owners,
            elements,
            page: &mut page,
        };
        writer.document(&documents[0], 0, &mut HashSet::new());
        Ok(page)
    }

    /// The nodes of a document; of a large one the first, from its beginning or from that of an element.
    async fn tree(
        &self,
        document: &Document,
        within: Option<&Element>,
        notices: &mut Vec<String>,
    ) -> Result<Vec<Node>, Trouble> {
        let size = self.size(document).await.unwrap_or(0);
        if size > WHOLE {
            let (nodes, is_whole) = self.piece_by_piece(document, within).await?;
            if !is_whole {
                let first = nodes.len();
                notices.push(format!(
                    "the page is large ({size} nodes): only its first {first} were looked at; `within` an element are others"
                ));
            }
            return Ok(nodes);
        }
        let params = json!({ "frameId": document.frame });
        let Nodes { nodes } =
            self.cdp.call(Some(&document.session), "Accessibility.getFullAXTree", params, LARGE).await?;
        Ok(nodes)
    }

    async fn piece_by_piece(
        &self,
        document: &Document,
        within: Option<&Element>,
    ) -> Result<(Vec<Node>, bool), Trouble> {
        // Only what is asked for piece by piece needs that, and costs the page as long as it is on: also when the call is given up.
        struct Enabled<'b>(&'b Browser, &'b SessionId);
        impl Drop for Enabled<'_> {
            fn drop(&mut self) {
                self.0.cdp.tell(Some(self.1), "Accessibility.disable", json!({}));
            }
        }
        let _enabled = Enabled(self, &document.session);
        self.order(&document.session, "Accessibility.enable", json!({})).await?;
        self.first_nodes(document, within).await
    }

    /// As many nodes of a document as may be looked at, one after the other; whether those are all.
    async fn first_nodes(&self, document: &Document, within: Option<&Element>) -> Result<(Vec<Node>, bool), Trouble> {
        #[derive(Deserialize)]
        struct Root {
            node: Node,
        }
        let session = &document.session;
        let root = match within {
            None => {
                let params = json!({ "frameId": document.frame });
                let method = "Accessibility.getRootAXNode";
                self.cdp.call::<Root>(Some(session), method, params, LARGE).await?.node
            }
            Some(element) => {
                let params = json!({ "backendNodeId": element.node, "fetchRelatives": false });
                let Nodes { nodes } = self.ask(session, "Accessibility.getPartialAXTree", params).await?;
                let found = nodes.into_iter().find(|node| node.node == Some(element.node));
                found.ok_or(Trouble::Refused { method: "Accessibility.getPartialAXTree", message: "no node".into() })?
            }
        };
        let (begin, mut nodes, mut is_whole) = (Instant::now(), vec![root], true);
        let mut next: Vec<String> = vec![nodes[0].node_id.clone()];
        let mut known: HashSet<String> = next.iter().cloned().collect();
        let mut looked = 0;
        while let Some(id) = next.pop() {
            if looked >= SOME || looked >= LEAST && begin.elapsed() > WHILE {
                return Ok((nodes, false));
            }
            looked += 1;
            let params = json!({ "id": id, "frameId": document.frame });
            let Nodes { nodes: children } =
                self.cdp.call(Some(session), "Accessibility.getChildAXNodes", params, LARGE).await?;
            let new: Vec<Node> = children.into_iter().filter(|child| known.insert(child.node_id.clone())).collect();
            is_whole &= new.len() <= WIDE;
            let new = &new[..new.len().min(WIDE)];
            // A text has its pieces below it, which say nothing more.
            let inner = new.iter().rev().filter(|child| !child.child_ids.is_empty() && child.role.text() != TEXT);
            next.extend(inner.map(|child| child.node_id.clone()));
            nodes.extend(new.iter().cloned());
        }
        Ok((nodes, is_whole))
    }

    /// How many nodes a document has, those of open shadow trees with it, as far as that tells a large one.
    async fn size(&self, document: &Document) -> Option<u64> {
        // By the method itself: names of elements take the place of others.
        const COUNT: &str = "(() => { let count = 0, roots = [document]; while (roots.length && count < 1e6) { \
            const walker = Document.prototype.createTreeWalker.call(document, roots.pop(), NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT); \
            for (let node; node = walker.nextNode(); count++) if (node instanceof Element && node.shadowRoot) roots.push(node.shadowRoot); \
            } return count; })()";
        let context = self.world(document).await.ok()?;
        let params = json!({ "expression": COUNT, "contextId": context, "returnByValue": true });
        let answer: Value = self.ask(&document.session, "Runtime.evaluate", params).await.ok()?;
        answer["result"]["value"].as_u64()
    }

    /// A world of scripts in a document that no page reaches into.
    pub(super) async fn world(&self, document: &Document) -> Result<u64, Trouble> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: u64,
        }
        let params = json!({ "frameId": document.frame, "worldName": WORLD });
        let World { execution_context_id } = self.ask(&document.session, "Page.createIsolatedWorld", params).await?;
        Ok(execution_context_id)
    }

    /// In which nodes frames lie.
    async fn owners(&self, documents: &[Document]) -> HashMap<u64, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Owner {
            backend_node_id: u64,
        }
        let mut all = HashMap::new();
        for document in documents {
            for session in documents.iter().map(|other| &other.session).collect::<HashSet<_>>() {
                let owner = self.ask::<Owner>(session, "DOM.getFrameOwner", json!({ "frameId": document.frame })).await;
                if let Ok(Owner { backend_node_id }) = owner {
                    all.insert(backend_node_id, document.frame.clone());
                    break;
                }
            }
        }
        all
    }

    /// An element as it is now: its role and name.
    pub(super) async fn now(&self, element: &Element) -> Result<(String, String), Trouble> {
        let params = json!({ "backendNodeId": element.node, "fetchRelatives": false });
        let Nodes { nodes } = self.ask(&element.document.session, "Accessibility.getPartialAXTree", params).await?;
        let found = nodes.iter().find(|node| node.node == Some(element.node));
        Ok(found.map(|node| (node.role.text(), self.line(&node.name.text(), NAME_CHARS))).unwrap_or_default())
    }

    /// A piece of what a page says, in one line. No secret is cut in two: what is left of it would not be known any more.
    pub(super) fn line(&self, text: &str, most: usize) -> String {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = sanitize::line(&words);
        match line.char_indices().nth(most) {
            Some(_) => first(&self.secrets.known().redact(&line), most),
            None => line.into_owned(),
        }
    }
}

/// Whether a text is what browsers say of a password.
fn is_password(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter == HIDDEN)
}

/// Writes the lines of a page.
struct Writer<'w> {
    browser: &'w Browser,
    tab: u64,
    documents: &'w [Document],
    trees: &'w HashMap<String, Vec<Node>>,
    owners: &'w HashMap<u64, String>,
    elements: &'w mut Elements,
    page: &'w mut Page,
}

impl Writer<'_> {
    fn document(&mut self, document: &Document, depth: usize, seen: &mut HashSet<String>) {
        let Some(nodes) = self.trees.get(&document.frame).filter(|_| seen.insert(document.frame.clone())) else {
            return;
        };
        let by_id: HashMap<&str, &Node> = nodes.iter().map(|node| (node.node_id.as_str(), node)).collect();
        let Some(root) = nodes.first() else { return };
        // Not by calls of itself: a page may be as deep as it likes.
        let mut stack = vec![(root, depth, String::new())];
        while let Some((node, depth, above)) = stack.pop() {
            let role = node.role.text();
            if LEFT_OUT.contains(&role.as_str()) {
                continue;
            }
            let name = self.browser.line(&node.name.text(), NAME_CHARS);
            let mut inner = depth;
            let mut called = above.clone();
            if !node.ignored
                && let Some(text) = self.line(node, &role, &name, &above)
            {
                let id = node.node.filter(|_| has_id(node, &role)).map(|backend| {
                    let (role, name) = (role.clone(), name.clone());
                    let element = Element { tab: self.tab, document: document.clone(), node: backend, role, name };
                    self.elements.number(&self.browser.state.ids, element)
                });
                self.page.lines.push(Line { depth, text, id });
                inner = depth + 1;
                called = name;
            }
            if let Some(frame) = node.node.and_then(|backend| self.owners.get(&backend))
                && let Some(document) = self.documents.iter().find(|document| document.frame == *frame).cloned()
            {
                self.document(&document, inner, seen);
            }
            let children = node.child_ids.iter().rev().filter_map(|id| by_id.get(id.as_str()));
            stack.extend(children.map(|child| (*child, inner, called.clone())));
        }
    }

    /// What a node is worth; none where it says nothing that is not said above it.
    fn line(&self, node: &Node, role: &str, name: &str, above: &str) -> Option<String> {
        if role == TEXT {
            let text = self.browser.line(&node.name.text(), TEXT_CHARS);
            let is_said = text.trim().is_empty() || above.contains(text.trim()) || is_password(&text);
            return (!is_said).then(|| format!("text: {text}"));
        }
        let is_focusable = node.is("focusable");
        if PASSED_OVER.contains(&role) && !(is_focusable && role != "RootWebArea") {
            return None;
        }
        if matches!(role, "image" | "img" | "listitem" | "row" | "cell" | "gridcell")
            && name.is_empty()
            && node.child_ids.is_empty()
        {
            return None;
        }
        let mut text =
            if is_focusable && PASSED_OVER.contains(&role) { shown("element", name) } else { shown(role, name) };
        let value = self.browser.line(&node.value.text(), VALUE_CHARS);
        if is_password(&value) {
            text.push_str(" (filled)");
        } else if !value.is_empty() && value != name {
            text.push_str(&format!(" = {value:?}"));
        }
        for property in &node.properties {
            let said = property.value.text();
            match (property.name.as_str(), said.as_str()) {
                ("checked" | "pressed", state) => text.push_str(&format!(" ({}: {state})", property.name)),
                ("disabled" | "expanded" | "selected" | "required" | "readonly" | "modal" | "busy", "true") => {
                    text.push_str(&format!(" ({})", property.name));
                }
                ("focused", "true") => text.push_str(FOCUSED),
                ("expanded", "false") => text.push_str(" (collapsed)"),
                ("level", level) => text.push_str(&format!(" (level {level})")),
                ("invalid", state) if state != "false" => text.push_str(" (invalid)"),
                _ => {}
            }
        }
        Some(text)
    }
}

impl Node {
    fn is(&self, property: &str) -> bool {
        self.properties.iter().any(|found| found.name == property && found.value.value == Value::Bool(true))
    }
}

fn has_id(node: &Node, role: &str) -> bool {
    ACTED_ON.contains(&role) || HOLDING.contains(&role) || node.is("focusable")
}

/// Which lines of a page are wanted.
pub(super) struct Wanted<'w> {
    pub(super) within: Option<u64>,
    pub(super) find: Option<&'w str>,
    /// The lines that were there before, if only others are wanted.
    pub(super) before: Option<&'w [String]>,
}

impl Page {
    /// All lines, as they are written.
    pub(super) fn written(&self) -> Vec<String> {
        self.lines.iter().map(Line::written).collect()
    }

    /// The wanted lines; none where the element to look within is not there.
    pub(super) fn wanted(&self, wanted: &Wanted<'_>) -> Option<Vec<String>> {
        let lines = match wanted.within {
            None => &self.lines[..],
            Some(id) => {
                let begin = self.lines.iter().position(|line| line.id == Some(id))?;
                let depth = self.lines[begin].depth;
                let end = self.lines[begin + 1..].iter().position(|line| line.depth <= depth);
                &self.lines[begin..end.map_or(self.lines.len(), |end| begin + 1 + end)]
            }
        };
        let mut kept = vec![true; lines.len()];
        if let Some(find) = wanted.find {
            let find = find.to_lowercase();
            keep_with_above(lines, &mut kept, |line| line.text.to_lowercase().contains(&find));
        }
        if let Some(before) = wanted.before {
            let mut times: HashMap<String, usize> = HashMap::new();
            before.iter().for_each(|line| *times.entry(without_place(line)).or_default() += 1);
            let is_new = lines.iter().map(|line| match times.get_mut(&without_place(&line.written())) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                _ => true,
            });
            let is_new: Vec<bool> = is_new.collect();
            kept.iter_mut().zip(is_new).for_each(|(kept, is_new)| *kept &= is_new);
        }
        Some(lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| line.written()).collect())
    }
}

/// A line without what is other though the thing is the same: how deep it lies, and where the focus is.
fn without_place(line: &str) -> String {
    line.trim().replace(FOCUSED, "")
}

/// Keeps the lines that fit, and those in which they lie.
fn keep_with_above(lines: &[Line], kept: &mut [bool], fits: impl Fn(&Line) -> bool) {
    let mut above: Vec<usize> = Vec::new();
    kept.fill(false);
    for (place, line) in lines.iter().enumerate() {
        above.retain(|over| lines[*over].depth < line.depth);
        if fits(line) {
            kept[place] = true;
            above.iter().for_each(|over| kept[*over] = true);
        }
        above.push(place);
    }
}
