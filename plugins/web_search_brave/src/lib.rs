//! `web_search` by the API of Brave: <https://api-dashboard.search.brave.com/app/documentation/web-search/get-started>.
//!
//! The key is a header that the host adds: this plugin never sees it.

use serde::Deserialize;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_sdk::{Failure, Result};
use toolcrib_web_search::{Found, Provider, Rows, WebSearch, json, unexpected};

/// More than are shown, as some may be the same page.
const COUNT: usize = 10;
const KEY: &str = "the key is the header `x-subscription-token` of `http.headers` under [plugin.web_search_brave]; \
    `toolcrib secret set BRAVE --host api.search.brave.com` keeps another one";

struct Brave;

#[derive(Deserialize)]
struct Answer {
    /// Missing where nothing was found.
    #[serde(default)]
    web: Option<Web>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Web {
    results: json::First<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    title: json::Text,
    url: json::Text,
    description: json::Text,
    age: json::Text,
}

impl Provider for Brave {
    const NAME: &str = "Brave";
    const QUERY_CHARS: usize = 400;
    const QUERY_WORDS: usize = 50;

    fn request(query: &str) -> Request {
        Request::get(&format!("search?q={query}&count={COUNT}&offset=0")).header("accept", "application/json")
    }

    fn found(response: &Response) -> Result<Found> {
        if response.status != 200 {
            return Err(refused(response));
        }
        let Answer { web } = json::read(Self::NAME, response)?;
        let mut rows = Rows::default();
        for Item { title, url, description, age } in &web.unwrap_or_default().results {
            rows.add_html(title, url, description, age);
        }
        Ok(rows.into_found())
    }

    /// The longest of the quotas that are used up: `x-ratelimit-remaining: 0, 1000` with `x-ratelimit-reset: 1, 1419704`.
    fn wait_secs(response: &Response) -> Option<u64> {
        let numbers = |name: &str| {
            let value = response.header(name).unwrap_or_default();
            value.split(',').map(|number| number.trim().parse::<u64>().ok()).collect::<Vec<_>>()
        };
        let (remaining, reset) = (numbers("x-ratelimit-remaining"), numbers("x-ratelimit-reset"));
        let used_up = remaining.into_iter().zip(reset).filter(|(remaining, _)| *remaining == Some(0));
        used_up.filter_map(|(_, reset)| reset).max()
    }
}

/// Why there is no answer: a key that is not accepted has a status or a code of its own.
fn refused(response: &Response) -> Failure {
    let status = response.status;
    let code = code(&response.body);
    if [401, 403].contains(&status) || code.as_deref() == Some("SUBSCRIPTION_TOKEN_INVALID") {
        return Failure::unavailable(format!("Brave does not accept the key (status {status})")).hint(KEY);
    }
    match code {
        Some(code) => Failure::failed(format!("Brave answers with status {status}, `{code}`")),
        None => unexpected(Brave::NAME, status),
    }
}

/// The code of an error, such as `VALIDATION`; nothing else of the answer is told.
fn code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Fault,
    }

    #[derive(Deserialize)]
    struct Fault {
        code: json::Text,
    }

    const CHARS: usize = 40;
    let Refusal { error: Fault { code } } = serde_json::from_slice(body).ok()?;
    let is_code =
        (1..=CHARS).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_code.then(|| code.to_string())
}

toolcrib_sdk::export!(WebSearch<Brave>);

#[cfg(test)]
mod tests;
