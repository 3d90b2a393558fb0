//! `web_search`: returns what a search engine finds, by the page that it makes for browsers without scripts.

mod address;
mod page;
mod tree;

use page::Page;
use serde::Serialize;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Failure, Result};
use toolcrib_web_search::{Found, Provider, WebSearch, unexpected};

const NAME: &str = "the search engine";
const USER_AGENT: &str = "Mozilla/5.0 (compatible; toolcrib/0.1)";
const OTHER_ENDPOINT: &str = "set `search_endpoint` under [tools] to another page of this form";

/// The page that a search engine makes for browsers without scripts.
struct Browsed;

impl Provider for Browsed {
    const NAME: &str = NAME;

    fn request(query: &str) -> Request {
        Request::get(&format!("?q={query}")).header("user-agent", USER_AGENT).header("accept", "text/html")
    }

    fn found(response: &Response) -> Result<Found> {
        found(response)
    }
}

/// Returns the results in an answer. Nothing found, a refusal and an unknown page have different outcomes.
fn found(response: &Response) -> Result<Found> {
    match response.status {
        status @ (202 | 403 | 418) => return Err(refused(&format!("status {status}"))),
        status @ 400.. => return Err(unexpected(NAME, status).hint(OTHER_ENDPOINT)),
        _ => {}
    }
    let html = String::from_utf8_lossy(&response.body);
    let page = match tree::parse(&html) {
        Ok(tree) => Page::new(tree, &response.url),
        Err(reason) => return Err(unknown(response, reason, None)),
    };
    let rows = page.rows();
    if !rows.is_empty() || page.says_that_nothing_was_found() {
        Ok(rows.into_found())
    } else if page.asks_for_proof() {
        Err(refused("a challenge"))
    } else {
        Err(unknown(response, "its layout may have changed", page.title()))
    }
}

fn refused(how: &str) -> Failure {
    let message = format!("{NAME} asks for proof that a person is searching ({how})");
    Failure::unavailable(message).hint(format!("wait some minutes before the next search, or {OTHER_ENDPOINT}"))
}

fn unknown(response: &Response, reason: &str, title: Option<String>) -> Failure {
    #[derive(Serialize)]
    struct Seen {
        status: u16,
        bytes: usize,
        title: Option<String>,
    }

    let seen = Seen { status: response.status, bytes: response.body.len(), title };
    Failure::failed(format!("could not parse the page of {NAME}: {reason}")).hint(OTHER_ENDPOINT).data(&seen)
}

toolcrib_sdk::export!(WebSearch<Browsed>);

#[cfg(test)]
mod tests;
