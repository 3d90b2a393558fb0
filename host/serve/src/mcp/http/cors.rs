//! The headers by which a browser lets a page of an allowed origin call, and read the answer (Fetch standard, "CORS protocol").
//! Requests carry a token and no cookie, so credentials are never allowed.

use super::{Answer, text};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, StatusCode};

/// Headers of an answer that a page may see.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// How long a browser need not ask again, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The answer to a browser that asks on behalf of a page whether it may send a request. The headers that the page wants to send are
/// allowed whatever they are: parameters of tools may have headers of their own, and the request itself is checked when it comes.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Answer> {
    let asks = method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let mut answer = text(StatusCode::NO_CONTENT, "");
        let told = answer.headers_mut();
        told.clear();
        told.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        told.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            told.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        answer
    })
}

/// Lets pages of this origin, and no others, read the answer.
pub(super) fn open_to(origin: HeaderValue, answer: &mut Answer) {
    let told = answer.headers_mut();
    told.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    told.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    told.insert(VARY, HeaderValue::from_static("origin"));
}
