//! `[embeddings]`: what makes vectors of texts. It is asked by `embeddings/`.

use super::requests;
use super::secrets::{self, Template};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use url::Url;

/// `[embeddings]`; with neither a URL nor a command there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embeddings {
    /// Whether the rest of the section counts.
    pub enabled: bool,
    /// An endpoint in OpenAI's form, or nothing.
    #[serde(deserialize_with = "page")]
    pub url: String,
    /// Headers of the requests to it.
    #[serde(deserialize_with = "headers")]
    pub headers: BTreeMap<String, Template>,
    /// A program that does the same, with its arguments, or nothing.
    pub command: Vec<String>,
    /// The model to ask for.
    pub model: String,
}

impl Embeddings {
    /// Returns the endpoint, where there is one.
    #[must_use]
    pub fn endpoint(&self) -> Option<Url> {
        (!self.url.is_empty()).then(|| requests::page(&self.url).expect("a URL was checked when it was read"))
    }
}

fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.is_empty() {
        true => Ok(text),
        false => requests::page(&text).map(|_| text).map_err(D::Error::custom),
    }
}

fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Template>, D::Error> {
    secrets::headers(deserializer).map(Option::unwrap_or_default)
}
