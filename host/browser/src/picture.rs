//! Pictures of pages.

use super::act::busy;
use super::cdp::{SessionId, Trouble};
use super::desk::Turn;
use super::running::{Browser, SOON, Tab, failed};
use super::tree::Element;
use base::envelope::Failure;
use base64::Engine;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of a picture, and how well it is drawn until it has no more.
const PICTURE_BYTES: usize = 960 << 10;
const QUALITIES: [(u32, f64); 5] = [(70, 1.0), (50, 1.0), (40, 0.75), (30, 0.5), (20, 0.25)];
/// Pixels of a page's height and width that a picture has.
const PICTURE_SIDE: f64 = 16_384.0;

impl Turn<'_> {
    /// A picture, as JPEG.
    pub fn image<'a>(
        &'a mut self,
        tab: Option<&'a str>,
        element: Option<&'a (u64, Element)>,
        whole: bool,
    ) -> BoxFuture<'a, Result<Vec<u8>, Failure>> {
        Box::pin(async move {
            let (browser, tab) = self.tab(tab)?;
            self.check_alive(&tab)?;
            self.check_untainted(&browser, &tab, "no picture is taken").await?;
            browser.order(&tab.session, "Page.bringToFront", json!({})).await.map_err(failed)?;
            let clip = match element {
                Some((_, element)) => Some(browser.place(element).await?),
                None if whole => Some(browser.size_of_page(&tab).await.map_err(failed)?),
                None => None,
            };
            for (quality, scale) in QUALITIES {
                #[derive(Deserialize)]
                struct Picture {
                    data: String,
                }
                let mut params =
                    json!({ "format": "jpeg", "quality": quality, "captureBeyondViewport": clip.is_some() });
                match &clip {
                    Some([x, y, width, height]) => {
                        params["clip"] = json!({ "x": x, "y": y, "width": width, "height": height, "scale": scale });
                    }
                    None if scale < 1.0 => {
                        params["clip"] = json!({ "x": 0, "y": 0, "width": 1280, "height": 900, "scale": scale })
                    }
                    None => {}
                }
                let taken =
                    browser.cdp.call::<Picture>(Some(&tab.session), "Page.captureScreenshot", params, SOON * 2).await;
                let Picture { data } = self.unless_stuck(&browser, &tab, taken.map_err(failed)).await?;
                let bytes = base64::engine::general_purpose::STANDARD.decode(data);
                let bytes = bytes.map_err(|error| Failure::failed(format!("the browser draws no picture: {error}")))?;
                if bytes.len() <= PICTURE_BYTES {
                    return Ok(bytes);
                }
            }
            Err(Failure::limit(format!("limit: bytes of a picture {PICTURE_BYTES}")).hint("take one of an element"))
        })
    }
}

impl Browser {
    /// Where an element is on its page: x, y, width, height.
    async fn place(&self, element: &Element) -> Result<[f64; 4], Failure> {
        #[derive(Deserialize)]
        struct Model {
            model: Box_,
        }
        #[derive(Deserialize)]
        struct Box_ {
            border: [f64; 8],
        }
        let session = &element.document.session;
        let node = json!({ "backendNodeId": element.node });
        let unseen = |_: Trouble| busy(format!("{} has no place on the page", element.shown()));
        let Model { model } = self.ask(session, "DOM.getBoxModel", node).await.map_err(unseen)?;
        let scrolled = self.scrolled(session).await.map_err(failed)?;
        let [left, top, right, _, _, bottom, ..] = model.border;
        let (width, height) = (right - left, bottom - top);
        if width < 1.0 || height < 1.0 {
            return Err(busy(format!("{} has no place on the page", element.shown())));
        }
        Ok([left + scrolled[0], top + scrolled[1], width.min(PICTURE_SIDE), height.min(PICTURE_SIDE)])
    }

    /// How far a page is scrolled.
    pub(super) async fn scrolled(&self, session: &SessionId) -> Result<[f64; 2], Trouble> {
        let metrics: Value = self.ask(session, "Page.getLayoutMetrics", json!({})).await?;
        let view = &metrics["cssVisualViewport"];
        Ok([view["pageX"].as_f64().unwrap_or(0.0), view["pageY"].as_f64().unwrap_or(0.0)])
    }

    async fn size_of_page(&self, tab: &Tab) -> Result<[f64; 4], Trouble> {
        let metrics: Value = self.ask(&tab.session, "Page.getLayoutMetrics", json!({})).await?;
        let size = &metrics["cssContentSize"];
        let of = |name: &str| size[name].as_f64().unwrap_or(1.0).max(1.0);
        Ok([0.0, 0.0, of("width").min(PICTURE_SIDE), of("height").min(PICTURE_SIDE)])
    }
}
