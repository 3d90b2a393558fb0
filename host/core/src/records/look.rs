//! What an operator sees of what plugins keep: documents as they are, without a call, so that looking changes nothing.

use crate::Host;
use base::envelope::{Failure, Kind};
use futures_util::future::BoxFuture;
use policy::guard::each_leaf;
use serde::Serialize;
use serde_json::Value;
use store::{Item, Name, Namespace, Query};

/// A document that a plugin keeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// Within its collection.
    pub key: String,
    /// What it says, without secrets.
    pub body: Value,
    /// How often it was written.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// When it was changed last, likewise.
    pub changed_ms: u64,
}

/// Which documents are looked at.
#[derive(Clone, Debug)]
pub struct Look {
    /// Whose; of whatever agent, as who may start this program may read the store.
    pub agent: String,
    /// Which plugin's.
    pub plugin: String,
    /// In which collection.
    pub collection: String,
    /// Those that have one of these words, the best first; without it, the newest first.
    pub words: Option<String>,
    /// Those that have this JSON at this JSON pointer.
    pub equals: Option<(String, Value)>,
    /// How many at most, up to 1,000.
    pub limit: u32,
}

impl Host {
    /// Documents that a plugin keeps, and how many there are in all.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where they cannot be looked for so, `unavailable` where the store cannot be used.
    pub fn documents(&self, look: Look) -> BoxFuture<'_, Result<(Vec<Document>, u64), Failure>> {
        Box::pin(async move {
            let Look { agent, plugin, collection, words, equals, limit } = look;
            if !self.services.store.is_there() {
                return Ok((Vec::new(), 0));
            }
            let mut query = Query::new(collection);
            query.limit(limit);
            if let Some((pointer, value)) = equals {
                query.equals(&pointer, &value.to_string())?;
            }
            match words {
                Some(words) => query.any_word(&words)?,
                None => query.order("@made", true)?,
            }
            let page = self.services.store.find(Namespace { agent, plugin }, query).await?;
            let documents = page.items.into_iter().map(|item| self.document_of(item)).collect::<Result<_, _>>()?;
            Ok((documents, page.total))
        })
    }

    /// One document that a plugin keeps.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn document<'a>(
        &'a self,
        agent: &'a str,
        plugin: &'a str,
        collection: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, Failure>> {
        Box::pin(async move {
            if !self.services.store.is_there() {
                return Ok(None);
            }
            let of = Namespace { agent: agent.to_owned(), plugin: plugin.to_owned() };
            let name = Name { collection: collection.to_owned(), key: key.to_owned() };
            self.services.store.get(of, name).await?.map(|item| self.document_of(item)).transpose()
        })
    }

    fn document_of(&self, Item { key, body, revision, made_ms, changed_ms, .. }: Item) -> Result<Document, Failure> {
        let mut body: Value = serde_json::from_str(&body)
            .map_err(|error| Failure::new(Kind::Internal, format!("the body of `{key}` cannot be read: {error}")))?;
        each_leaf(&mut body, &mut |text| Some(self.redacted(text)).filter(|clean| clean != text));
        Ok(Document { key: self.redacted(&key), body, revision, made_ms, changed_ms })
    }
}
