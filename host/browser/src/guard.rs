//! What a mouse and a keyboard send reaches the document that it is meant for, and no other: a script in each document, in a world of its own that no
//! page reaches into, stops all else (`guard.js`).

use super::cdp::{SessionId, Trouble};
use super::running::Browser;
use super::tree::Document;
use serde::Deserialize;
use serde_json::{Value, json};

/// The script, which every document begins with.
pub(super) const SCRIPT: &str = include_str!("guard.js");
/// The world that it is in.
pub(super) const WORLD: &str = "toolcrib";

/// What is let through.
#[derive(Clone, Copy)]
pub(super) enum Let<'o> {
    /// Presses on the element of this object.
    Press(&'o str),
    /// A key, to the element of this object, or to what has the focus.
    Key(Option<&'o str>),
}

/// What came of it.
#[derive(Deserialize)]
pub(super) struct Came {
    /// Something was let through.
    pub(super) came: bool,
    /// What was in its place, for all of it or for a part.
    pub(super) other: Option<String>,
}

/// A document that lets something through, as long as this is there.
pub(super) struct Open<'b> {
    browser: &'b Browser,
    session: SessionId,
    world: u64,
    /// Where the button of the mouse is down.
    pub(super) held: Option<(f64, f64)>,
    is_closed: bool,
}

impl Browser {
    /// Has a document let something through.
    pub(super) async fn open_guard(&self, document: &Document, world: u64, what: Let<'_>) -> Result<Open<'_>, Trouble> {
        let (kind, object) = match what {
            Let::Press(object) => ("press", Some(object)),
            Let::Key(object) => ("key", object),
        };
        let session = document.session.clone();
        let open = Open { browser: self, session: session.clone(), world, held: None, is_closed: false };
        // The document that a tab begins with may be older than the script.
        let function = format!("function(element) {{ {SCRIPT} toolcrib.{kind}(element); }}");
        let element = object.map_or(json!({ "value": null }), |object| json!({ "objectId": object }));
        let params = json!({ "functionDeclaration": function, "executionContextId": world, "arguments": [element] });
        let done: Value = self.ask(&session, "Runtime.callFunctionOn", params).await?;
        match done.get("exceptionDetails") {
            None => Ok(open),
            Some(thrown) => {
                Err(Trouble::Refused { method: "Runtime.callFunctionOn", message: thrown["text"].to_string() })
            }
        }
    }
}

impl Open<'_> {
    /// Lets nothing through any more, and tells what came; none where the document is gone.
    pub(super) async fn close(mut self) -> Option<Came> {
        #[derive(Deserialize)]
        struct Evaluated {
            result: Said,
        }
        #[derive(Deserialize)]
        struct Said {
            value: Option<Came>,
        }
        let closed = self.browser.ask::<Evaluated>(&self.session, "Runtime.evaluate", self.closing()).await;
        self.is_closed = closed.is_ok();
        closed.ok()?.result.value
    }

    fn closing(&self) -> Value {
        json!({ "expression": "toolcrib.close()", "contextId": self.world, "returnByValue": true })
    }
}

impl Drop for Open<'_> {
    /// A call that was given up leaves nothing open and no button down.
    fn drop(&mut self) {
        let cdp = &self.browser.cdp;
        if let Some((x, y)) = self.held {
            let release = json!({ "type": "mouseReleased", "x": x, "y": y, "button": "left", "clickCount": 1 });
            cdp.tell(Some(&self.session), "Input.dispatchMouseEvent", release);
        }
        if !self.is_closed {
            cdp.tell(Some(&self.session), "Runtime.evaluate", self.closing());
        }
    }
}
