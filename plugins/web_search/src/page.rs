//! What the page of the search engine says: results, that there are none, or that a person should prove to be one.

use crate::address;
use scraper::{CaseSensitivity, ElementRef, Html, Selector};
use std::collections::BTreeSet;
use toolcrib_web_search::{Rows, line};
use url::Url;

const TITLE_CHARS: usize = 300;

pub(crate) struct Page {
    tree: Html,
    endpoint: Option<Url>,
}

impl Page {
    pub(crate) fn new(tree: Html, url: &str) -> Self {
        Self { tree, endpoint: Url::parse(url).ok() }
    }

    /// Returns the results: the first link of each `.result`; or, of a page without such containers, all links to results.
    pub(crate) fn rows(&self) -> Rows {
        let (links, snippets) = (selector("a.result__a"), selector(".result__snippet"));
        let (mut opened, mut rows) = (BTreeSet::new(), Rows::default());
        for link in self.tree.select(&links) {
            if rows.are_enough() {
                break;
            }
            if let Some(result) = enclosing(link, "result").filter(|result| opened.insert(result.id()))
                && let Some(url) = self.target(link)
            {
                let snippet = result.select(&snippets).next();
                rows.add(link.text(), url, snippet.iter().flat_map(ElementRef::text), "");
            }
        }
        if rows.is_empty() {
            for link in self.tree.select(&links) {
                if rows.are_enough() {
                    break;
                }
                if let Some(url) = self.target(link) {
                    rows.add(link.text(), url, [], "");
                }
            }
        }
        rows
    }

    /// Returns where a link to a result leads, except for advertisements and what is not shown.
    fn target(&self, link: ElementRef) -> Option<Url> {
        let is_shown = link
            .ancestors()
            .filter_map(ElementRef::wrap)
            .all(|around| !has_class(around, "result--ad") && around.value().name() != "template");
        if !is_shown {
            return None;
        }
        address::target(link.attr("href")?, self.endpoint.as_ref())
    }

    /// Tells whether the page says, in its own words, that nothing was found.
    pub(crate) fn says_that_nothing_was_found(&self) -> bool {
        let marked = self.tree.select(&selector(".no-results, .result--no-result")).next().is_some();
        marked || self.says(&["no results found", "no more results", "did not match any"])
    }

    /// Tells whether the page asks its reader to prove to be a person.
    pub(crate) fn asks_for_proof(&self) -> bool {
        const MARKS: [&str; 3] = ["anomaly", "captcha", "challenge-form"];
        let elements = self.tree.tree.nodes().filter_map(ElementRef::wrap);
        let marked = elements.flat_map(|element| element.value().attrs()).any(|(name, value)| {
            let tells = ["action", "class", "id", "src"].contains(&name);
            tells && MARKS.iter().any(|mark| value.to_ascii_lowercase().contains(mark))
        });
        marked || self.says(&["bots use duckduckgo too"])
    }

    pub(crate) fn title(&self) -> Option<String> {
        let title = self.tree.select(&selector("title")).next()?;
        Some(line(title.text(), TITLE_CHARS)).filter(|title| !title.is_empty())
    }

    /// Tells whether one of the phrases is in the text of the page itself: neither its results nor the query belong to it.
    fn says(&self, phrases: &[&str]) -> bool {
        const FOREIGN: [&str; 6] = ["head", "script", "style", "noscript", "template", "textarea"];
        self.tree.tree.nodes().any(|node| {
            let Some(text) = node.value().as_text() else { return false };
            let text = line([&**text], usize::MAX).to_lowercase();
            phrases.iter().any(|phrase| text.contains(phrase))
                && node.ancestors().filter_map(ElementRef::wrap).all(|element| {
                    let is_result = ["result__a", "result__snippet"].iter().any(|class| has_class(element, class));
                    !is_result && !FOREIGN.contains(&element.value().name())
                })
        })
    }
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("the selectors of this file are valid")
}

fn has_class(element: ElementRef, name: &str) -> bool {
    element.value().has_class(name, CaseSensitivity::CaseSensitive)
}

fn enclosing<'a>(element: ElementRef<'a>, class: &str) -> Option<ElementRef<'a>> {
    element.ancestors().filter_map(ElementRef::wrap).find(|around| has_class(*around, class))
}
