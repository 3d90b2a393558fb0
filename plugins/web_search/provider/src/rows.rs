//! The rows of a result: which are taken, and how long they are.

use crate::text::{line, plain};
use serde::Serialize;
use std::collections::BTreeSet;
use toolcrib_sdk::{JsonSchema, schemars};
use url::Url;

/// Rows of a result.
pub const HITS: usize = 8;
const TITLE_CHARS: usize = 300;
const SNIPPET_CHARS: usize = 500;
const AGE_CHARS: usize = 40;
/// What a request takes; longer ones could not be followed.
const URL_BYTES: usize = 2_048;

/// What was found.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// The best first, at most 8.
    pub results: Vec<Hit>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'static str>,
}

/// One page that was found.
#[expect(missing_docs, reason = "what a title and a URL are needs no words, which the model would read")]
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hit {
    pub title: String,
    pub url: String,
    /// The words of the page around what was searched for; may be empty.
    pub snippet: String,
    /// The date or age of the page, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
}

/// Rows as they are collected: the first that have a title and an address of the web, each address once.
#[derive(Debug, Default)]
pub struct Rows {
    hits: Vec<Hit>,
    known: BTreeSet<String>,
}

impl Rows {
    /// Whether further rows would be left out.
    #[must_use]
    pub fn are_enough(&self) -> bool {
        self.hits.len() >= HITS
    }

    /// Adds a row of plain text in pieces, unless it is one to leave out. Texts are cut, white space in them becomes single blanks.
    pub fn add<'t>(
        &mut self,
        title: impl IntoIterator<Item = &'t str>,
        url: Url,
        snippet: impl IntoIterator<Item = &'t str>,
        age: &str,
    ) {
        let (title, url) = (line(title, TITLE_CHARS), String::from(url));
        let is_wanted = !self.are_enough() && !title.is_empty() && url.len() <= URL_BYTES;
        if is_wanted && self.known.insert(url.clone()) {
            let age = Some(line([age], AGE_CHARS)).filter(|age| !age.is_empty());
            self.hits.push(Hit { title, url, snippet: line(snippet, SNIPPET_CHARS), age });
        }
    }

    /// The same for a row whose texts are HTML, with an address that may be none.
    pub fn add_html(&mut self, title: &str, url: &str, snippet: &str, age: &str) {
        if let Some(url) = web_address(url).filter(|_| !self.are_enough()) {
            self.add([&*plain(title)], url, [&*plain(snippet)], &plain(age));
        }
    }

    /// Whether there are none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// The result; without rows it says that nothing was found.
    #[must_use]
    pub fn into_found(self) -> Found {
        let message = self.is_empty().then_some("No results found.");
        Found { results: self.hits, message }
    }
}

/// An absolute address of the web, if the text is one.
#[must_use]
pub fn web_address(text: &str) -> Option<Url> {
    Url::parse(text.trim()).ok().filter(|url| ["http", "https"].contains(&url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(rows: Rows) -> Vec<String> {
        rows.into_found().results.into_iter().map(|hit| hit.url).collect()
    }

    #[test]
    fn rows_without_a_title_or_an_address_of_the_web_are_left_out() {
        let mut rows = Rows::default();
        let long = format!("https://example.org/{}", "a".repeat(2_048));
        for (title, url) in [
            (" <b></b> ", "https://example.org/untitled"),
            ("A", ""),
            ("A", "javascript:alert(1)"),
            ("A", "file:///etc/passwd"),
            ("A", "/relative"),
            ("A", "https://"),
            ("A", &long),
            ("A", "https://example.org/a"),
            ("A again", " https://EXAMPLE.org/a"),
        ] {
            rows.add_html(title, url, "", "");
        }
        assert_eq!(urls(rows), ["https://example.org/a"]);
    }

    #[test]
    fn there_are_eight_rows_at_most() {
        let mut rows = Rows::default();
        for at in 0..20 {
            assert_eq!(rows.are_enough(), at >= 8);
            rows.add_html("A", &format!("https://example.org/{at}"), "", "");
        }
        assert_eq!(urls(rows).len(), 8);
    }

    #[test]
    fn texts_are_cut() {
        let mut rows = Rows::default();
        let long = "words".repeat(1_000);
        rows.add_html(&long, "https://example.org/", &long, &long);
        let hit = rows.into_found().results.remove(0);
        let chars = [&hit.title, &hit.snippet, hit.age.as_ref().unwrap()].map(|text| text.chars().count());
        assert_eq!(chars, [300, 500, 40]);
    }

    #[test]
    fn without_rows_it_says_so() {
        assert_eq!(Rows::default().into_found().message, Some("No results found."));
    }
}
