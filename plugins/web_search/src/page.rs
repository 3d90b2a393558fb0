//! What the page of the search engine says: results, that there are none, or that a person should prove to be one.

use crate::{Hit, address};
use scraper::{CaseSensitivity, ElementRef, Html, Selector};
use std::collections::BTreeSet;
use url::Url;

const HITS: usize = 8;
const TITLE_CHARS: usize = 300;
const SNIPPET_CHARS: usize = 500;

pub(crate) struct Page {
    tree: Html,
    endpoint: Option<Url>,
}

impl Page {
    pub(crate) fn new(tree: Html, url: &str) -> Self {
        Self { tree, endpoint: Url::parse(url).ok() }
    }

    /// Returns the results: the first link of each `.result`; or, of a page without such containers, all links to results.
    pub(crate) fn hits(&self) -> Vec<Hit> {
        let (links, snippets) = (selector("a.result__a"), selector(".result__snippet"));
        let (mut opened, mut known) = (BTreeSet::new(), BTreeSet::new());
        let contained = self.tree.select(&links).filter_map(|link| {
            let result = enclosing(link, "result").filter(|result| opened.insert(result.id()))?;
            let hit = self.hit(link, &mut known)?;
            let snippet = result.select(&snippets).next().map(|element| collapsed(element.text(), SNIPPET_CHARS));
            Some(Hit { snippet: snippet.unwrap_or_default(), ..hit })
        });
        let hits: Vec<Hit> = contained.take(HITS).collect();
        if !hits.is_empty() {
            return hits;
        }
        self.tree.select(&links).filter_map(|link| self.hit(link, &mut known)).take(HITS).collect()
    }

    /// Returns the result in a link, except for advertisements, what is not shown, and addresses that are known already.
    fn hit(&self, link: ElementRef, known: &mut BTreeSet<String>) -> Option<Hit> {
        let is_shown = link
            .ancestors()
            .filter_map(ElementRef::wrap)
            .all(|around| !has_class(around, "result--ad") && around.value().name() != "template");
        if !is_shown {
            return None;
        }
        let url = String::from(address::target(link.attr("href")?, self.endpoint.as_ref())?);
        let title = collapsed(link.text(), TITLE_CHARS);
        let is_new = !title.is_empty() && known.insert(url.clone());
        is_new.then_some(Hit { title, url, snippet: String::new() })
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
        Some(collapsed(title.text(), TITLE_CHARS)).filter(|title| !title.is_empty())
    }

    /// Tells whether one of the phrases is in the text of the page itself: neither its results nor the query belong to it.
    fn says(&self, phrases: &[&str]) -> bool {
        const FOREIGN: [&str; 6] = ["head", "script", "style", "noscript", "template", "textarea"];
        self.tree.tree.nodes().any(|node| {
            let Some(text) = node.value().as_text() else { return false };
            let text = collapsed([&**text], usize::MAX).to_lowercase();
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

/// Joins pieces of text, with one space for any white space, to at most so many characters; the last is `…` where more
/// followed.
fn collapsed<'t>(pieces: impl IntoIterator<Item = &'t str>, chars: usize) -> String {
    let (mut text, mut len, mut space) = (String::new(), 0, false);
    for character in pieces.into_iter().flat_map(str::chars) {
        if character.is_whitespace() {
            space = len > 0;
            continue;
        }
        if len + usize::from(space) >= chars {
            text.pop();
            text.truncate(text.trim_end().len());
            text.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            text.push(' ');
            len += 1;
        }
        text.push(character);
        len += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_collapsed_and_length_bounded() {
        for (pieces, chars, expected) in [
            (&["\n a", "b \t", "\u{a0}c "][..], 9, "ab c"),
            (&[" ", ""], 9, ""),
            (&["abcd "], 4, "abcd"),
            (&["abcde"], 4, "abc…"),
            (&["abc de"], 4, "ab…"),
            (&["🙂🙂🙂"], 2, "🙂…"),
        ] {
            assert_eq!(collapsed(pieces.iter().copied(), chars), expected, "{pieces:?}");
        }
    }
}
