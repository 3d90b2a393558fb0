//! `web_search` behind one interface: its arguments, rows, limits and errors, whoever searches.
//!
//! A provider is a plugin of its own. It says what its search engine is asked and reads what that answers:
//!
//! ```no_run
//! use toolcrib_sdk::{Result, http::{Request, Response}};
//! use toolcrib_web_search::{Found, Provider, Rows, WebSearch, json, web_address};
//!
//! struct Example;
//!
//! #[derive(serde::Deserialize)]
//! struct Answer { items: json::First<Item> }
//!
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default)]
//! struct Item { name: json::Text, link: json::Text }
//!
//! impl Provider for Example {
//!     const NAME: &str = "Example";
//!
//!     fn request(query: &str) -> Request {
//!         Request::get(&format!("https://api.example.com/search?q={query}"))
//!     }
//!
//!     fn found(response: &Response) -> Result<Found> {
//!         let Answer { items } = json::read(Self::NAME, response)?;
//!         let mut rows = Rows::default();
//!         for Item { name, link } in &items {
//!             rows.add_html(name, link, "", "");
//!         }
//!         Ok(rows.into_found())
//!     }
//! }
//!
//! toolcrib_sdk::export!(WebSearch<Example>);
//! ```

pub mod json;
mod query;
mod rows;
mod text;
mod wait;

pub use rows::{Found, HITS, Hit, Rows, web_address};
pub use text::line;

use serde::Deserialize;
use std::marker::PhantomData;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// How many bytes of an answer are read.
pub const ANSWER_BYTES: u32 = 1 << 20;

/// Who searches.
pub trait Provider {
    /// What errors call it, such as `Brave`.
    const NAME: &'static str;
    /// Characters that a query may have, at most those of the tool.
    const QUERY_CHARS: usize = query::CHARS;
    /// Words that a query may have.
    const QUERY_WORDS: usize = usize::MAX;

    /// Returns the request for a query, which is ready for a URL.
    fn request(query: &str) -> Request;

    /// Reads an answer of any status but those that ask to wait.
    ///
    /// # Errors
    /// Why there are no results: a refusal, or an answer that cannot be read.
    fn found(response: &Response) -> Result<Found>;

    /// The seconds to wait, where an answer that asks to wait says so in a way of the provider's own.
    fn wait_secs(_response: &Response) -> Option<u64> {
        None
    }
}

/// The tool, with one provider.
pub struct WebSearch<P>(PhantomData<P>);

/// What the model says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// At most 500 characters; quotes and `site:` work.
    query: String,
}

impl<P: Provider> Tool for WebSearch<P> {
    const NAME: &'static str = "web_search";
    const TITLE: Option<&'static str> = Some("Search the web");
    const SUMMARY: &'static str = "Search the web and return up to 8 results with title, URL and snippet.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need pages whose URLs you do not know.",
        when_not_to_use: "To read a page whose URL you know: use `fetch_url`.",
        disambiguation: "A snippet is only part of a page: read the page with `fetch_url`.",
        examples: &[r#"{"query":"\"error[E0499]\" site:doc.rust-lang.org"}"#],
    };
    type Input = Input;
    type Output = Found;

    fn call(Input { query }: Input) -> Result<Found> {
        let query = query::encoded::<P>(query.trim())?;
        let response = P::request(&query).limit(ANSWER_BYTES).send()?;
        match wait::busy::<P>(&response) {
            Some(busy) => Err(busy),
            None => P::found(&response),
        }
    }
}

/// The failure for a status that a provider has nothing to say about.
#[must_use]
pub fn unexpected(name: &str, status: u16) -> Failure {
    Failure::failed(format!("{name} answers with status {status}"))
}
