//! What a call hands back beside its result.

use crate::bindings::exports::toolcrib::plugin::tools;
use std::cell::RefCell;

thread_local! {
    static NOTICES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static CONTENT: RefCell<Vec<Content>> = const { RefCell::new(Vec::new()) };
}

/// A part of a result that JSON carries badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text to be read as it is.
    Text(String),
    /// An image.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// The file, not encoded.
        bytes: Vec<u8>,
    },
    /// A sound.
    Audio {
        /// For example `audio/wav`.
        media_type: String,
        /// The file, not encoded.
        bytes: Vec<u8>,
    },
    /// An address.
    Link(String),
}

/// Tells the caller something beside the result, in a sentence. A call that fails drops its notices.
pub fn notice(text: impl Into<String>) {
    NOTICES.with_borrow_mut(|notices| notices.push(text.into()));
}

/// Adds a part to the result. A call that fails drops its parts.
pub fn attach(content: Content) {
    CONTENT.with_borrow_mut(|parts| parts.push(content));
}

/// Forgets what an earlier call has left, for native tests that share a thread.
pub(crate) fn begin() {
    NOTICES.take();
    CONTENT.take();
}

pub(crate) fn finish(json: String) -> tools::Output {
    let content = CONTENT.take().into_iter().map(Content::into_wit).collect();
    tools::Output { json, content, notices: NOTICES.take() }
}

impl Content {
    fn into_wit(self) -> tools::Content {
        match self {
            Self::Text(text) => tools::Content::Text(text),
            Self::Image { media_type, bytes } => tools::Content::Image((media_type, bytes)),
            Self::Audio { media_type, bytes } => tools::Content::Audio((media_type, bytes)),
            Self::Link(address) => tools::Content::Link(address),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn from_wit(content: tools::Content) -> Self {
        match content {
            tools::Content::Text(text) => Self::Text(text),
            tools::Content::Image((media_type, bytes)) => Self::Image { media_type, bytes },
            tools::Content::Audio((media_type, bytes)) => Self::Audio { media_type, bytes },
            tools::Content::Link(address) => Self::Link(address),
        }
    }
}
