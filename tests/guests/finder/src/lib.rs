//! `finder`: a provider of `web_search` as others write it, for a server that answers a line a page: its title, a tab, its URL.

use toolcrib_sdk::Result;
use toolcrib_sdk::http::{Request, Response};
use toolcrib_web_search::{Found, Provider, Rows, WebSearch, unexpected};

struct Finder;

impl Provider for Finder {
    const NAME: &str = "Finder";

    fn request(query: &str) -> Request {
        Request::get(&format!("find?words={query}"))
    }

    fn found(response: &Response) -> Result<Found> {
        if response.status != 200 {
            return Err(unexpected(Self::NAME, response.status));
        }
        let mut rows = Rows::default();
        for line in String::from_utf8_lossy(&response.body).lines() {
            if let Some((title, url)) = line.split_once('\t') {
                rows.add_html(title, url, "", "");
            }
        }
        Ok(rows.into_found())
    }
}

toolcrib_sdk::export!(WebSearch<Finder>);
