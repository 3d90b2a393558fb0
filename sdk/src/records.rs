//! JSON documents that stay from one call to the next, in collections of the plugin's own.
//!
//! Each agent has its own, and each plugin of it: whose they are is not an argument.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use toolcrib_sdk::{Result, records};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Counter {
//!     times: u64,
//! }
//!
//! fn count() -> Result<u64> {
//!     let after = records::update("counters", "calls", |before: Option<Counter>| {
//!         Ok(Counter { times: before.unwrap_or_default().times + 1 })
//!     })?;
//!     Ok(after.times)
//! }
//! ```
//!
//! A [`Batch`] makes several changes together, [`again`] begins them anew, and a [`Query`] looks for documents.

use crate::host::records;
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

/// Changes one document, and returns what it says now: `change` makes it of what it said before, `None` where it was not there.
///
/// Where another call changes it meanwhile, `change` is called again with what that call has left.
///
/// # Errors
/// Those of `change`, [`get`] and [`Batch::commit`].
pub fn update<T: Serialize + DeserializeOwned>(
    collection: &str,
    key: &str,
    mut change: impl FnMut(Option<T>) -> Result<T>,
) -> Result<T> {
    again(|| {
        let before = get::<T>(collection, key)?;
        let revision = before.as_ref().map_or(0, |item| item.revision);
        let after = change(before.map(|item| item.body))?;
        Batch::new().expect(collection, key, revision).put(collection, key, &after).commit()?;
        Ok(after)
    })
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

    /// Makes the changes, and returns the documents that were put, in their order, as they are now.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_items<T: DeserializeOwned>(self) -> Result<Vec<Item<T>>> {
        self.0.commit().map_err(Failure::from_host)?.into_iter().map(Item::of).collect()
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

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub(crate) use contract::records::{Item, Page};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES, Batch::SIGNATURES, Query::SIGNATURES];

    functions! { "records":
        get(collection: &str, key: &str) -> Option<Item>;
    }

    resource! { "records": Batch() {
        set confirm(action: &str, details: &str);
        step changes by put(collection: &str, key: &str, body: &str);
        step changes by expect(collection: &str, key: &str, revision: u64);
        step changes by delete(collection: &str, key: &str);
        step changes by embed(collection: &str, key: &str, pointer: &str);
        end commit -> Vec<Item>;
    } }

    resource! { "records": Query(collection: &str) {
        set words(text: &str);
        set any_word(text: &str);
        set near(text: &str);
        set order(pointer: &str, descending: bool);
        set limit(items: u32);
        set after(cursor: &str);
        add equals by equals(pointer: &str, value: &str);
        add between by between(pointer: &str, low: &str, high: &str);
        end run -> Page;
    } }

    read! {
        Item { key, body, revision, made_ms, changed_ms, rank }
        Page { items, total, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Host, json};

    fn add(host: &Host) -> Result<u64> {
        host.run(|| update("counters", "calls", |before: Option<u64>| Ok(before.unwrap_or(0) + 1)))
    }

    #[test]
    fn an_update_makes_a_document_that_was_not_there() {
        let host = Host::new().plays("records.get", json!(null)).plays("records.commit", json!([]));
        assert_eq!(add(&host), Ok(1));
        let changes = json!([{ "expect": ["counters", "calls", 0] }, { "put": ["counters", "calls", "1"] }]);
        assert_eq!(host.calls()[1].arguments, json!({ "changes": changes }));
    }

    #[test]
    fn an_update_begins_anew_with_what_another_call_has_left() {
        let item = |body: &str, revision: u64| json!({ "key": "calls", "body": body, "revision": revision, "made-ms": 5, "changed-ms": 6, "rank": 0 });
        let host = Host::new()
            .plays("records.get", item("5", 1))
            .fails("records.commit", Failure::new(Kind::BUSY, "another revision"))
            .plays("records.get", item("6", 2))
            .plays("records.commit", json!([item("7", 3)]))
            .with(
                json!({ "changes": [{ "expect": ["counters", "calls", 2] }, { "put": ["counters", "calls", "7"] }] }),
            );
        assert_eq!(add(&host), Ok(7));
    }

    #[test]
    fn a_commit_can_return_what_was_put() {
        let put = json!([{ "key": "a", "body": "7", "revision": 3, "made-ms": 5, "changed-ms": 6, "rank": 0 }]);
        let host = Host::new().plays("records.commit", put);
        let items = host.run(|| Batch::new().put("c", "a", &7).commit_items::<u64>()).unwrap();
        assert_eq!((items[0].body, items[0].revision), (7, 3));
    }
}
