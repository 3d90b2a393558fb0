//! `web_search` by a SearXNG server: <https://docs.searxng.org/dev/search_api.html>. Which one, settings say.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Failure, Result};
use toolcrib_web_search::{Found, Provider, Rows, WebSearch, json, unexpected};

struct Searxng;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    results: json::First<Item>,
    /// Engines that did not answer the server, with why.
    unresponsive_engines: json::First<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[expect(non_snake_case, reason = "the names are those of the API")]
struct Item {
    title: json::Text,
    url: json::Text,
    content: json::Text,
    publishedDate: json::Text,
}

impl Provider for Searxng {
    const NAME: &str = "SearXNG";

    fn request(query: &str) -> Request {
        Request::get(&format!("search?q={query}&format=json&pageno=1")).header("accept", "application/json")
    }

    fn found(response: &Response) -> Result<Found> {
        match response.status {
            200 => {}
            401 => return Err(key_refused()),
            403 => return Err(refused()),
            404 => return Err(no_server()),
            status => return Err(unexpected(Self::NAME, status)),
        }
        let Answer { results, unresponsive_engines } = json::read(Self::NAME, response)?;
        let mut rows = Rows::default();
        for Item { title, url, content, publishedDate } in &results {
            // A date has a time of day, which tells nothing.
            rows.add_html(title, url, content, publishedDate.split('T').next().unwrap_or_default());
        }
        let found = rows.into_found();
        Ok(match found.results.is_empty() && !unresponsive_engines.is_empty() {
            true => Found { message: Some("No results found, but not all engines of the server answered."), ..found },
            false => found,
        })
    }
}

fn key_refused() -> Failure {
    Failure::unavailable("SearXNG does not accept the key (status 401)").hint(
        "the key is a header of `http.headers` under [plugin.web_search_searxng]; without one there, the server wants one",
    )
}

/// The answer of a server whose JSON is switched off, which is the default; or of one that wants another key.
fn refused() -> Failure {
    Failure::unavailable("SearXNG does not answer in JSON (status 403)").hint(
        "`search.formats` in the server's settings.yml needs `json`; if it has that, the server or a proxy before it refuses this client or its key",
    )
}

fn no_server() -> Failure {
    Failure::unavailable("SearXNG is not at this URL (status 404)")
        .hint("`http.base` under [plugin.web_search_searxng] is the URL of its start page, which ends in `/`")
}

toolcrib_sdk::export!(WebSearch<Searxng>);

#[cfg(test)]
mod tests;
