//! JSON documents that stay from one call to the next, in collections of the plugin's own.
//!
//! Each agent has its own, and each plugin of it: whose they are is not an argument.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use toolcrib_sdk::{Result, records::{Batch, again, get}};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Counter {
//!     times: u64,
//! }
//!
//! fn count() -> Result<u64> {
//!     // Another call may do the same: it is `busy` then, and begun anew.
//!     again(|| {
//!         let before = get::<Counter>("counters", "calls")?;
//!         let times = before.as_ref().map_or(0, |item| item.body.times) + 1;
//!         Batch::new().expect("counters", "calls", before.map_or(0, |item| item.revision))
//!             .put("counters", "calls", &Counter { times }).commit()?;
//!         Ok(times)
//!     })
//! }
//! ```

use crate::bindings::toolcrib::plugin::records;
use crate::{Failure, Kind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How often a change that another one came before is begun anew.
const AGAIN: u32 = 200;

/// A document, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<T> {
    /// Within its collection.
    pub key: String,
    /// What it says.
    pub body: T,
    /// Counts from 1, by one with each change.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// When it was changed last, likewise.
    pub changed_ms: u64,
    /// How well it fits what was looked for; from -1 to 1 where it is near a text in its meaning, 0 where nothing was.
    pub rank: f32,
}

/// Items of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// In their order.
    pub items: Vec<Item<T>>,
    /// How many there are in all.
    pub total: u64,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl<T: DeserializeOwned> Item<T> {
    fn of(item: records::Item) -> Result<Self> {
        let records::Item { key, body, revision, made_ms, changed_ms, rank } = item;
        let body = serde_json::from_str(&body)
            .map_err(|error| Failure::internal(format!("`{key}` was written by another version: {error}")))?;
        Ok(Self { key, body, revision, made_ms, changed_ms, rank })
    }
}

/// One document, if it is there.
///
/// # Errors
/// `denied` without a grant, `unavailable` where the store cannot be used.
pub fn get<T: DeserializeOwned>(collection: &str, key: &str) -> Result<Option<Item<T>>> {
    records::get(collection, key).map_err(Failure::from_host)?.map(Item::of).transpose()
}

/// Begins a change anew as long as it is `busy`: another one came before it. It reads what it changes each time.
///
/// # Errors
/// Those of the change; `busy` where others came before it 200 times.
pub fn again<T>(mut change: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..AGAIN {
        match change() {
            Err(failure) if failure.kind == Kind::BUSY => {}
            outcome => return outcome,
        }
    }
    change()
}

/// Changes that are made together or not at all, at most 100.
#[derive(Debug)]
pub struct Batch(records::Batch);

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// Returns a batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self(records::Batch::new())
    }

    /// Makes a document, or gives it another body.
    ///
    /// # Panics
    /// Where the body is no JSON, such as a map whose keys are no texts.
    #[must_use]
    pub fn put(self, collection: &str, key: &str, body: &impl Serialize) -> Self {
        self.0.put(collection, key, &serde_json::to_string(body).expect("a body is JSON"));
        self
    }

    /// Has it fail as `busy` unless the document has this revision; 0: unless there is none.
    #[must_use]
    pub fn expect(self, collection: &str, key: &str, revision: u64) -> Self {
        self.0.expect(collection, key, revision);
        self
    }

    /// Asks a person before the changes are made: `action` says in a line what would be done, `details` what belongs to it.
    #[must_use]
    pub fn confirm(self, action: &str, details: &str) -> Self {
        self.0.confirm(action, details);
        self
    }

    /// Has a document that is put in this batch found by the meaning of the text at this JSON pointer, where a model for that is set: some time
    /// later, as no change waits for a model. A further put without this ends that.
    #[must_use]
    pub fn embed(self, collection: &str, key: &str, pointer: &str) -> Self {
        self.0.embed(collection, key, pointer);
        self
    }

    /// Removes a document, if it is there.
    #[must_use]
    pub fn delete(self, collection: &str, key: &str) -> Self {
        self.0.delete(collection, key);
        self
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// `busy` where another revision was expected, `limit`, `denied` (also by a person), `unavailable`; nothing is changed then.
    pub fn commit(self) -> Result<()> {
        self.0.commit().map(drop).map_err(Failure::from_host)
    }
}

/// A look at a collection.
#[derive(Debug)]
pub struct Query(records::Query);

impl Query {
    /// Returns a look at all documents of a collection, by key.
    #[must_use]
    pub fn new(collection: &str) -> Self {
        Self(records::Query::new(collection))
    }

    /// Only those whose body has this value at this JSON pointer.
    ///
    /// # Panics
    /// Where the value is no JSON.
    #[must_use]
    pub fn equals(self, pointer: &str, value: &impl Serialize) -> Self {
        self.0.equals(pointer, &serde_json::to_string(value).expect("a value is JSON"));
        self
    }

    /// Only those whose body has a string, or a number, from `low` to `high` at this JSON pointer.
    ///
    /// # Panics
    /// Where one of them is no JSON.
    #[must_use]
    pub fn between(self, pointer: &str, low: &impl Serialize, high: &impl Serialize) -> Self {
        let (low, high) = (serde_json::to_string(low), serde_json::to_string(high));
        self.0.between(pointer, &low.expect("a value is JSON"), &high.expect("a value is JSON"));
        self
    }

    /// Only those whose texts have all of these words; the best first.
    #[must_use]
    pub fn words(self, text: &str) -> Self {
        self.0.words(text);
        self
    }

    /// Only those whose texts have one of these words at least; the best first. The last of this and [`Query::words`] counts.
    #[must_use]
    pub fn any_word(self, text: &str) -> Self {
        self.0.any_word(text);
        self
    }

    /// Only those of which an embedded text is near this one in its meaning, the nearest first: one page, with as many as [`Query::limit`] says,
    /// and without words, order and cursor. `unavailable` where no model is set, `execution_failed` where the one that is set gives no answer.
    #[must_use]
    pub fn near(self, text: &str) -> Self {
        self.0.near(text);
        self
    }

    /// Sorts by what is at a JSON pointer, or by `@made`, `@changed` or `@key`.
    #[must_use]
    pub fn order(self, pointer: &str, descending: bool) -> Self {
        self.0.order(pointer, descending);
        self
    }

    /// How many to return at most: 100 without it, at most 1,000. A page has at most 4 MiB of bodies, or one document.
    #[must_use]
    pub fn limit(self, items: u32) -> Self {
        self.0.limit(items);
        self
    }

    /// Goes on where a page ended.
    #[must_use]
    pub fn after(self, cursor: &str) -> Self {
        self.0.after(cursor);
        self
    }

    /// Looks.
    ///
    /// # Errors
    /// `invalid_arguments`, `denied` or `unavailable`.
    pub fn run<T: DeserializeOwned>(self) -> Result<Page<T>> {
        let records::Page { items, total, next } = self.0.run().map_err(Failure::from_host)?;
        Ok(Page { items: items.into_iter().map(Item::of).collect::<Result<_>>()?, total, next })
    }
}
