//! Files that go into pages: copies of what the plugin may read, in the browser's own directory, as it sees no other.

use super::act::{Found, KIND, busy, gone};
use super::cdp::SessionId;
use super::running::Browser;
use base::envelope::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an upload, and its files.
pub const UPLOAD_BYTES: usize = 25 << 20;
pub const UPLOADS: usize = 8;
/// Bytes of the copies that a browser has. A page may read one long after it got it, so that none goes before the browser does.
const KEPT_BYTES: u64 = 200 << 20;
/// How long a page may take to ask for files after a click.
const ASKS: Duration = Duration::from_secs(2);
const TAKES_MANY: &str = "function() { return this.multiple; }";

/// A file as it was read.
pub struct Upload {
    pub name: String,
    pub content: Vec<u8>,
}

/// A page asks for files.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asks {
    frame_id: String,
    mode: String,
    backend_node_id: Option<u64>,
}

impl Asks {
    pub(super) fn of(self, session: Option<&str>) -> Option<Asked> {
        let (session, takes_many) = (SessionId::from(session?), self.mode == "selectMultiple");
        Some(Asked { session, frame: self.frame_id, node: self.backend_node_id?, takes_many })
    }
}

/// The field for which it does.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    session: SessionId,
    frame: String,
    node: u64,
    takes_many: bool,
}

impl Browser {
    /// Gives files to a field, or to the one for which a page asks for files when an element is clicked.
    pub(super) async fn upload(&self, found: &Found<'_>, files: &Arc<[Upload]>) -> Result<(), Failure> {
        let element = found.element;
        if let Some(why) = self.is_disabled(found).await? {
            return Err(busy(why));
        }
        let is_field = self.of::<Value>(found, KIND, json!([])).await? == json!("file");
        let (node, takes_many) = match is_field {
            true => (element.node, self.of::<Value>(found, TAKES_MANY, json!([])).await? == json!(true)),
            false => self.asked(found).await?,
        };
        if files.len() > 1 && !takes_many {
            return Err(Failure::invalid(format!("{} takes one file", element.shown())).hint("upload one at a time"));
        }
        let paths = self.place_copies(files).await?;
        let params = json!({ "files": paths, "backendNodeId": node });
        let given = self.order(&element.document.session, "DOM.setFileInputFiles", params).await;
        given.map_err(|trouble| gone(element, trouble))
    }

    /// Clicks an element, and returns the field for which its document asks for files, and whether for several.
    async fn asked(&self, found: &Found<'_>) -> Result<(u64, bool), Failure> {
        let (element, document) = (found.element, &found.element.document);
        self.state.known.lock().asked = None;
        self.click(found, 1).await?;
        let asked = self.until(ASKS, |known| known.asked.clone()).await;
        self.state.known.lock().asked = None;
        match asked {
            Some(asked) if (&asked.session, &asked.frame) == (&document.session, &document.frame) => {
                Ok((asked.node, asked.takes_many))
            }
            Some(_) => Err(busy(format!("{} was clicked, and another frame asked for files", element.shown()))),
            None => Err(Failure::failed(format!("{} was clicked, and the page asked for no file", element.shown()))
                .hint("name the field for files, or what opens the choice of files")),
        }
    }

    /// Puts copies of files where the browser sees them.
    async fn place_copies(&self, files: &Arc<[Upload]>) -> Result<Vec<String>, Failure> {
        let bytes: u64 = files.iter().map(|file| file.content.len() as u64).sum();
        {
            let mut known = self.state.known.lock();
            if known.uploaded + bytes > KEPT_BYTES {
                return Err(Failure::limit(format!("limit: bytes of uploads {KEPT_BYTES}"))
                    .hint("close the browser, which lets go of those before"));
            }
            known.uploaded += bytes;
        }
        let (kept, files) = (self.kept.clone(), files.clone());
        let placed = tokio::task::spawn_blocking(move || {
            let place = |file: &Upload| Ok(kept.place_upload(&file.name, &file.content)?.display().to_string());
            files.iter().map(place).collect::<std::io::Result<Vec<_>>>()
        });
        let placed = placed.await.map_err(std::io::Error::other).and_then(|placed| placed);
        placed.map_err(|error| Failure::failed(format!("a file cannot be given to the page: {error}")))
    }
}
