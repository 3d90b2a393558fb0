//! Requests to web servers that the user's policy lets this plugin reach.
//!
//! They leave from the machine that the host runs on. The host resolves, judges, follows redirects and undoes compression.
//!
//! ```no_run
//! use toolcrib_sdk::{Result, http::Request};
//!
//! fn title(id: u32) -> Result<String> {
//!     let response = Request::get(&format!("https://api.example.com/items/{id}")).header("accept", "text/plain").send()?;
//!     Ok(String::from_utf8_lossy(&response.body).into_owned())
//! }
//! ```

use crate::host::http;
use crate::{Failure, Result};

/// A request in preparation.
#[must_use = "a request is sent by `send`"]
pub struct Request(http::Request);

/// What a server answered; any status is an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// For example 200 or 404.
    pub status: u16,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Where the answer came from, after redirects.
    pub url: String,
    /// At most as many bytes as the request's limit, compression undone.
    pub body: Vec<u8>,
    /// `body` is not the whole.
    pub truncated: bool,
}

impl Request {
    /// Prepares a `GET`. The URL is absolute, or relative to the base that the user has set for this plugin.
    pub fn get(url: &str) -> Self {
        Self::new("GET", url)
    }

    /// Prepares a request with that method.
    pub fn new(method: &str, url: &str) -> Self {
        Self(http::Request::new(method, url))
    }

    /// Adds a header; the host sets those of the connection itself.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.0.header(name, value);
        self
    }

    /// Sets the body.
    pub fn body(self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.body(bytes.as_ref());
        self
    }

    /// Sets how many bytes of the answer's body to return: 1 MiB by default, at most 8 MiB.
    pub fn limit(self, bytes: u32) -> Self {
        self.0.limit(bytes);
        self
    }

    /// Sends the request and waits for the answer.
    ///
    /// # Errors
    /// `denied` by policy; `invalid_arguments` for what is not a URL or is a header of the host's; `timed_out`, `limit` or `unavailable` for
    /// a server that is slow, excessive or not there.
    pub fn send(self) -> Result<Response> {
        let http::Response { status, headers, url, body, truncated } = self.0.send().map_err(Failure::from_host)?;
        Ok(Response { status, headers, url, body, truncated })
    }
}

impl Response {
    /// Returns the first header of that name, given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub(crate) use contract::http::Response;

    pub(crate) const CALLS: &[&[Signature]] = &[Request::SIGNATURES];

    resource! { "http": Request(method: &str, url: &str) {
        set body(bytes: &[u8]);
        set limit(bytes: u32);
        add headers by header(name: &str, value: &str);
        end send -> Response;
    } }

    read! {
        Response { status, headers, url, body, truncated }
    }
}
