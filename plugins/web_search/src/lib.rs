//! `web_search`: returns what a search engine finds, by the page that it makes for browsers without scripts.

mod address;
mod page;
mod tree;

use page::Page;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

const QUERY_CHARS: usize = 500;
/// Leaves room for the endpoint in the 2,048 bytes that a URL may have.
const ENCODED_BYTES: usize = 1_800;
const PAGE_BYTES: u32 = 1 << 20;
const USER_AGENT: &str = "Mozilla/5.0 (compatible; toolcrib/0.1)";
const OTHER_ENDPOINT: &str = "set `search_endpoint` under [tools] to another page of this form";

struct WebSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to search for, at most 500 characters; quotes and `site:` work as in a browser.
    query: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Found {
    /// The best first, at most 8.
    results: Vec<Hit>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Hit {
    title: String,
    url: String,
    /// The words of the page around what was searched for; may be empty.
    snippet: String,
}

impl Tool for WebSearch {
    const NAME: &str = "web_search";
    const TITLE: Option<&str> = Some("Search the web");
    const SUMMARY: &str = "Search the web and return up to 8 results with title, URL and snippet.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need pages whose URLs you do not know: documentation, an error message, a release, news.",
        when_not_to_use: "To read a page whose URL you know, or to search files of this project.",
        disambiguation: "Snippets are fragments: read the pages that matter with `fetch_url`. `run_shell` with `rg` \
            searches files.",
        examples: &[
            r#"{"query":"rust 2024 edition migration guide"}"#,
            r#"{"query":"\"error[E0499]\" site:doc.rust-lang.org"}"#,
        ],
    };
    type Input = Input;
    type Output = Found;

    fn call(Input { query }: Input) -> Result<Found> {
        let query = encoded(query.trim())?;
        let request =
            Request::get(&format!("?q={query}")).header("user-agent", USER_AGENT).header("accept", "text/html");
        found(&request.limit(PAGE_BYTES).send()?)
    }
}

/// Writes a query as a form does: white space as `+`, what has a meaning in URLs by its bytes.
fn encoded(query: &str) -> Result<String> {
    if query.is_empty() {
        return Err(Failure::invalid("`query` is blank"));
    }
    let chars = query.chars().count();
    if chars > QUERY_CHARS {
        return Err(Failure::invalid(format!("`query` has {chars} characters, more than {QUERY_CHARS}")));
    }
    let mut encoded = String::with_capacity(query.len());
    for byte in query.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            b' ' => encoded.push('+'),
            _ => write!(encoded, "%{byte:02X}")?,
        }
    }
    if encoded.len() > ENCODED_BYTES {
        let bytes = encoded.len();
        let message = format!("`query` has {bytes} bytes in a URL, more than {ENCODED_BYTES}");
        return Err(Failure::invalid(message).hint("use fewer words"));
    }
    Ok(encoded)
}

/// Returns the results in an answer. Nothing found, a refusal and an unknown page have different outcomes.
fn found(response: &Response) -> Result<Found> {
    match response.status {
        status @ (202 | 403 | 418 | 429) => return Err(refused(&format!("status {status}"))),
        status @ 400.. => {
            return Err(Failure::failed(format!("the search engine answers with status {status}")).hint(OTHER_ENDPOINT));
        }
        _ => {}
    }
    let html = String::from_utf8_lossy(&response.body);
    let page = match tree::parse(&html) {
        Ok(tree) => Page::new(tree, &response.url),
        Err(reason) => return Err(unknown(response, reason, None)),
    };
    let results = page.hits();
    if !results.is_empty() {
        Ok(Found { results, message: None })
    } else if page.says_that_nothing_was_found() {
        Ok(Found { results, message: Some("No results found.") })
    } else if page.asks_for_proof() {
        Err(refused("a challenge"))
    } else {
        Err(unknown(response, "its layout may have changed", page.title()))
    }
}

fn refused(how: &str) -> Failure {
    let message = format!("the search engine asks for proof that a person is searching ({how})");
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
    Failure::failed(format!("could not parse the page of the search engine: {reason}")).hint(OTHER_ENDPOINT).data(&seen)
}

toolcrib_sdk::export!(WebSearch);

#[cfg(test)]
mod tests;
