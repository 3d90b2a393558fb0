//! What tests play.

use toolcrib_sdk::testing::{Host, Value, json, text};
use toolcrib_sdk::{Kind, Tool};

/// What became of an act, with a notice.
pub(crate) fn effect(url: &str, changes: &str) -> Value {
    let notices = ["a dialog was dismissed"];
    json!({ "tab": "t1", "url": url, "title": "Shop", "notices": notices, "changes": text(changes) })
}

/// Two tabs, of which the second is the active one.
pub(crate) fn tabs() -> Value {
    json!([
        { "id": "t1", "url": "https://example.com/", "title": "Shop", "active": false },
        { "id": "t2", "url": "https://example.com/cart", "title": "Cart", "active": true, "profile": "work" },
    ])
}

/// Expects that arguments are refused before the host is asked for anything, with this hint.
pub(crate) fn refused<T: Tool>(arguments: Value, hint: &str) {
    let host = Host::new();
    let failure = host.call::<T>(arguments.clone()).expect_err("arguments that do not go together");
    assert_eq!((failure.kind, failure.hint.as_deref()), (Kind::INVALID_ARGUMENTS, Some(hint)), "{arguments}");
    assert!(host.calls().is_empty(), "{arguments}");
}
