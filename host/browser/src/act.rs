//! Acts on elements of a page, as a person would do them: with the mouse and the keyboard of the browser.
//!
//! Before each act the element has to be what was shown: there, with the role and the name that it had, in sight, and with nothing over it. And as
//! a page can change between that look and the press, a press that comes down on anything else is stopped there (`guard.rs`).

use super::cdp::{SessionId, Trouble};
use super::guard::{Came, Let};
use super::keys::Key;
use super::running::{Browser, failed};
use super::tree::{Document, Element, shown};
use super::uploads::Upload;
use base::envelope::{Failure, Kind};
use leaks::Value as Secret;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What is done.
pub enum Action {
    Click { times: u8 },
    Hover,
    Fill(Filling),
    Select(Vec<String>),
    Check(bool),
    Press(String),
    Upload(Arc<[Upload]>),
}

/// What is put into a field.
pub enum Filling {
    Text(String),
    /// Into password fields alone.
    Secret(Secret),
}

/// Characters of the name of what was in the way, and of the reason why nothing can be chosen.
const OTHER_CHARS: usize = 80;
const WHY_CHARS: usize = 600;
/// Puts text into this field, as long as it is of that kind, in place of what it holds: in one go, so that no page and no frame can take the focus
/// between the look and the text. Says what was in the way.
const FIELD: &str = r"function(text, password) {
    const element = this;
    // Also within a shadow root that is closed to the page's own scripts.
    const active = () => element.getRootNode().activeElement;
    const is = () => element.isConnected && (!password || element.localName === 'input' && element.type === 'password');
    element.focus();
    if (typeof element.select === 'function') element.select();
    else if (element.isContentEditable) {
        const range = element.ownerDocument.createRange();
        range.selectNodeContents(element);
        const selection = self.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
    }
    if (active() !== element || !is() || element.readOnly || element.disabled) return 'cannot';
    if (text === '') { element.ownerDocument.execCommand('delete'); return ''; }
    return element.ownerDocument.execCommand('insertText', false, text) ? '' : 'other';
}";
/// Whether one node lies in another, through shadow roots, or names it as a label does.
const HOLDS: &str = r"function(other) {
    const labels = this.labels ? [...this.labels] : [];
    for (let node = other; node; node = node.parentNode || node.host)
        if (node === this || labels.includes(node)) return true;
    return false;
}";
const CHOOSE: &str = r"function(wanted) {
    if (this.localName !== 'select') return 'is no list of options';
    const options = [...this.options], says = option => [option.label.trim(), option.text.trim(), option.value];
    const found = wanted.map(text => options.find(option => says(option).includes(text)));
    const missing = wanted.filter((_, place) => !found[place]);
    if (missing.length) return 'has no option ' + JSON.stringify(missing[0]) + '; it has ' + options.slice(0, 20).map(option => JSON.stringify(option.label.trim())).join(', ');
    if (found.some(option => option.disabled)) return 'has that option disabled';
    if (!this.multiple && found.length > 1) return 'takes one option';
    options.forEach(option => { option.selected = found.includes(option); });
    this.dispatchEvent(new Event('input', { bubbles: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    return '';
}";
const IS_CHECKED: &str =
    "function() { return 'checked' in this ? this.checked : this.getAttribute('aria-checked') === 'true'; }";
/// What kind of field this is.
pub(super) const KIND: &str = "function() { return this.localName === 'input' ? this.type : this.localName; }";

/// An element that was found again.
pub(super) struct Found<'e> {
    pub(super) element: &'e Element,
    object: String,
    /// The host's own world of scripts in its document.
    world: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resolved {
    object: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    object_id: Option<String>,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Called {
    result: Object,
}

impl Browser {
    /// Does something with an element.
    pub(super) async fn act(&self, element: &Element, action: &Action) -> Result<(), Failure> {
        let found = self.find(element).await?;
        match action {
            Action::Click { times } => self.click(&found, *times).await,
            Action::Hover => {
                let (x, y) = self.point(&found).await?;
                self.mouse(&element.document.session, "mouseMoved", x, y, 0).await
            }
            Action::Fill(filling) => self.fill(&found, filling).await,
            Action::Select(options) => self.select(&found, options).await,
            Action::Check(on) => {
                let is_on: Value = self.of(&found, IS_CHECKED, json!([])).await?;
                if is_on != json!(on) {
                    self.click(&found, 1).await?;
                }
                Ok(())
            }
            Action::Press(key) => {
                let focus = json!({ "backendNodeId": element.node });
                let focused = self.order(&element.document.session, "DOM.focus", focus).await;
                focused.map_err(|trouble| gone(element, trouble))?;
                let key = Key::parse(key)?;
                self.press(&element.document, found.world, Some(&found.object), &key).await
            }
            Action::Upload(files) => self.upload(&found, files).await,
        }
    }

    /// Presses a key where the focus is in a document, and, where an element is given, on that alone.
    pub(super) async fn press(
        &self,
        document: &Document,
        world: u64,
        object: Option<&str>,
        key: &Key,
    ) -> Result<(), Failure> {
        let open = self.open_guard(document, world, Let::Key(object)).await.map_err(failed)?;
        for event in key.events() {
            self.order(&document.session, "Input.dispatchKeyEvent", event).await.map_err(failed)?;
        }
        match open.close().await {
            Some(Came { came: false, .. }) => {
                Err(busy("the key was not pressed: the page moved the focus elsewhere".into()))
            }
            // Where its document is gone, the key has led elsewhere.
            Some(Came { came: true, .. }) | None => Ok(()),
        }
    }

    /// Finds an element again that was shown: the same node of the same document, with the same role and name.
    async fn find<'e>(&self, element: &'e Element) -> Result<Found<'e>, Failure> {
        let world = self.world(&element.document).await.map_err(|trouble| gone(element, trouble))?;
        let params = json!({ "backendNodeId": element.node, "executionContextId": world });
        let resolved = self.ask::<Resolved>(&element.document.session, "DOM.resolveNode", params).await;
        let resolved = resolved.map_err(|trouble| gone(element, trouble))?;
        let object = resolved.object.object_id.ok_or_else(|| is_gone(element))?;
        let found = Found { element, object, world };
        if self.of::<Value>(&found, "function() { return this.isConnected; }", json!([])).await? != json!(true) {
            return Err(is_gone(element));
        }
        let (role, name) = self.now(element).await.map_err(|trouble| gone(element, trouble))?;
        if (role.as_str(), name.as_str()) != (element.role.as_str(), element.name.as_str()) {
            let now = if role.is_empty() { "hidden".to_owned() } else { shown(&role, &name) };
            return Err(busy(format!("the element was {}, and is {now} now", element.shown())));
        }
        Ok(found)
    }

    /// A point of an element at which nothing lies over it.
    async fn point(&self, found: &Found<'_>) -> Result<(f64, f64), Failure> {
        #[derive(Deserialize)]
        struct Quads {
            quads: Vec<[f64; 8]>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hit {
            backend_node_id: u64,
        }
        let (element, session) = (found.element, &found.element.document.session);
        let node = json!({ "backendNodeId": element.node });
        let unseen = |_: Trouble| busy(format!("{} is not in sight: it has no place on the page", element.shown()));
        self.order(session, "DOM.scrollIntoViewIfNeeded", node.clone()).await.map_err(unseen)?;
        let Quads { quads } = self.ask(session, "DOM.getContentQuads", node).await.map_err(unseen)?;
        let area = |quad: &[f64; 8]| ((quad[2] - quad[0]) * (quad[5] - quad[1])).abs();
        let quad = quads.iter().find(|quad| area(quad) >= 1.0).or(quads.first());
        let quad =
            quad.ok_or_else(|| busy(format!("{} is not in sight: it has no place on the page", element.shown())))?;
        let middle = |first: usize| (quad[first] + quad[first + 2] + quad[first + 4] + quad[first + 6]) / 4.0;
        let (x, y) = (middle(0), middle(1));
        // It takes places of the document, where all others are those in sight.
        let [right, down] = self.scrolled(session).await.unwrap_or_default();
        let at = json!({ "x": (x + right) as i64, "y": (y + down) as i64, "includeUserAgentShadowDOM": false, "ignorePointerEventsNone": false });
        let Hit { backend_node_id } = self.ask(session, "DOM.getNodeForLocation", at).await.map_err(unseen)?;
        if backend_node_id == element.node {
            return Ok((x, y));
        }
        let params = json!({ "backendNodeId": backend_node_id, "executionContextId": found.world });
        let other = self.ask::<Resolved>(session, "DOM.resolveNode", params).await;
        if let Ok(other) = other
            && let Some(id) = other.object.object_id
            && self.of::<Value>(found, HOLDS, json!([{ "objectId": id }])).await? == json!(true)
        {
            return Ok((x, y));
        }
        let cover = Element { node: backend_node_id, ..element.clone() };
        let (role, name) = self.now(&cover).await.unwrap_or_default();
        let what = if role.is_empty() || role == "generic" { "something".to_owned() } else { shown(&role, &name) };
        Err(busy(format!("{} is covered by {what}", element.shown())))
    }

    pub(super) async fn click(&self, found: &Found<'_>, times: u8) -> Result<(), Failure> {
        let element = found.element;
        if let Some(why) = self.is_disabled(found).await? {
            return Err(busy(why));
        }
        let (x, y) = self.point(found).await?;
        let session = &element.document.session;
        let opened = self.open_guard(&element.document, found.world, Let::Press(&found.object)).await;
        let mut open = opened.map_err(|trouble| gone(element, trouble))?;
        self.mouse(session, "mouseMoved", x, y, 0).await?;
        for time in 1..=times {
            open.held = Some((x, y));
            self.mouse(session, "mousePressed", x, y, time).await?;
            open.held = None;
            self.mouse(session, "mouseReleased", x, y, time).await?;
        }
        match open.close().await {
            Some(Came { came: false, other }) => {
                let why = match other.map(|other| self.line(&other, OTHER_CHARS)) {
                    Some(other) => format!("{other} came under the pointer in its place"),
                    None => "it moved away from under the pointer".to_owned(),
                };
                Err(busy(format!("{} was not clicked: {why}", element.shown())))
            }
            // No failure: a menu that opens at the press is under the pointer at the release, and nothing is wrong with that.
            Some(Came { came: true, other: Some(other) }) => {
                let other = self.line(&other, OTHER_CHARS);
                let shown = element.shown();
                let notice =
                    format!("{shown} may not have been clicked: {other} was under the pointer for a part of it");
                self.state.known.lock().note(notice);
                Ok(())
            }
            // Where its document is gone, the click has led elsewhere.
            Some(Came { came: true, other: None }) | None => Ok(()),
        }
    }

    pub(super) async fn is_disabled(&self, found: &Found<'_>) -> Result<Option<String>, Failure> {
        let disabled: Value = self.of(found, "function() { return this.matches(':disabled'); }", json!([])).await?;
        Ok((disabled == json!(true)).then(|| format!("{} is disabled", found.element.shown())))
    }

    async fn mouse(&self, session: &SessionId, kind: &str, x: f64, y: f64, clicks: u8) -> Result<(), Failure> {
        let button = if clicks > 0 { "left" } else { "none" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": clicks });
        self.order(session, "Input.dispatchMouseEvent", event).await.map_err(failed)
    }

    async fn fill(&self, found: &Found<'_>, filling: &Filling) -> Result<(), Failure> {
        let element = found.element;
        let is_secret = matches!(filling, Filling::Secret(_));
        if is_secret && self.of::<Value>(found, KIND, json!([])).await? != json!("password") {
            return Err(Failure::denied(format!(
                "{} is no password field, and a secret goes into no other",
                element.shown()
            )));
        }
        let text = match filling {
            Filling::Text(text) => text.as_str(),
            Filling::Secret(value) => value.expose(),
        };
        let arguments = json!([{ "value": text }, { "value": is_secret }]);
        let came: Value = self.of(found, FIELD, arguments).await?;
        match came.as_str() {
            Some("") => Ok(()),
            Some("cannot") => Err(busy(format!(
                "{} cannot be filled: it does not take the focus, or cannot be changed",
                element.shown()
            ))),
            _ => Err(busy(format!(
                "{} was not filled: the page moved the focus, or made another field of it",
                element.shown()
            ))),
        }
    }

    async fn select(&self, found: &Found<'_>, options: &[String]) -> Result<(), Failure> {
        if let Some(why) = self.is_disabled(found).await? {
            return Err(busy(why));
        }
        let why: Value = self.of(found, CHOOSE, json!([{ "value": options }])).await?;
        match why.as_str() {
            Some("") => Ok(()),
            why => Err(Failure::invalid(format!(
                "{} {}",
                found.element.shown(),
                self.line(why.unwrap_or("cannot be chosen from"), WHY_CHARS)
            ))),
        }
    }

    /// Calls a function of ours on an element.
    pub(super) async fn of<T: serde::de::DeserializeOwned>(
        &self,
        found: &Found<'_>,
        function: &str,
        arguments: Value,
    ) -> Result<T, Failure> {
        let called = self.on(&found.element.document.session, &found.object, function, arguments).await;
        called.map_err(|trouble| gone(found.element, trouble))
    }

    async fn on<T: serde::de::DeserializeOwned>(
        &self,
        session: &SessionId,
        object: &str,
        function: &str,
        arguments: Value,
    ) -> Result<T, Trouble> {
        let method = "Runtime.callFunctionOn";
        let params = json!({ "objectId": object, "functionDeclaration": function, "arguments": arguments, "returnByValue": true });
        let Called { result } = self.ask(session, method, params).await?;
        serde_json::from_value(result.value).map_err(|error| Trouble::Refused { method, message: error.to_string() })
    }
}

/// What it means for an act on an element that a command has no answer.
pub(super) fn gone(element: &Element, trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Refused { .. } => is_gone(element),
        Trouble::Ended(_) | Trouble::Slow(_) => failed(trouble),
    }
}

pub(super) fn busy(message: String) -> Failure {
    Failure::new(Kind::Busy, message).hint("look at the page again")
}

pub(super) fn is_gone(element: &Element) -> Failure {
    busy(format!("{} is gone from the page", element.shown()))
}
