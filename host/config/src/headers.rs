//! Which headers of requests belong to the host.

use http::header::{self, HeaderName};

/// Headers that belong to the connection, or that the host sets by what it does itself.
#[rustfmt::skip]
const OWN_HEADERS: [HeaderName; 13] = [
    header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::TE, header::TRAILER, header::UPGRADE,
    header::EXPECT, header::ACCEPT_ENCODING, header::PROXY_AUTHORIZATION, header::PROXY_AUTHENTICATE, header::FORWARDED,
    HeaderName::from_static("keep-alive"),
];

/// Whether a header is set by the host alone.
pub fn is_own(name: &HeaderName) -> bool {
    OWN_HEADERS.contains(name) || name.as_str().starts_with("proxy-")
}

/// Whether settings can have a header of this name, in lower case.
///
/// # Errors
///
/// Why not, as the rest of a sentence.
pub fn check_header(name: &str) -> Result<(), String> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) if is_own(&name) => Err("is a header that belongs to the connection".into()),
        Ok(_) => Ok(()),
        Err(_) => Err("has characters that no header may have".into()),
    }
}
