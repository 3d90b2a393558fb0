//! `browser`: web pages in a browser that the host starts and confines. One tool with an `action`, and a family with a tool for each.
//!
//! `arguments.rs` says how elements and texts are named, `shown.rs` what is returned; the tools are in `go.rs`, `look.rs`, `act.rs` and `tabs.rs`,
//! and all of them by one name in `one.rs`.

mod act;
mod arguments;
mod go;
mod look;
mod one;
#[cfg(test)]
mod played;
mod shown;
mod tabs;

use act::{BrowserClick, BrowserHover, BrowserPressKey, BrowserSelect, BrowserType, BrowserUpload};
use go::{BrowserNavigate, BrowserWait};
use look::{BrowserEvaluate, BrowserScreenshot, BrowserSnapshot};
use one::Browser;
use tabs::{BrowserClose, BrowserTabClose, BrowserTabList, BrowserTabOpen, BrowserTabSelect};

toolcrib_sdk::export!(
    Browser,
    BrowserNavigate,
    BrowserSnapshot,
    BrowserClick,
    BrowserType,
    BrowserPressKey,
    BrowserSelect,
    BrowserUpload,
    BrowserHover,
    BrowserWait,
    BrowserScreenshot,
    BrowserEvaluate,
    BrowserTabList,
    BrowserTabOpen,
    BrowserTabSelect,
    BrowserTabClose,
    BrowserClose
);
