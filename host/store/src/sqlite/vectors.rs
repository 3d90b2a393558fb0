//! Vectors of texts, beside the items that have them, and what is near.
//!
//! A vector is there twice: whole, and as a byte a number in a table of its own for each collection. Looking goes through all of those, which
//! are a quarter of the size, and holds the best of them against the whole ones. A store has vectors of one model.

use super::{Making, Sqlite, condition, failed, item, known};
use crate::query::{Condition, PAGE_BYTES};
use crate::{Embedded, Item, Name, Namespace, Page, Query};
use base::envelope::Failure;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params, params_from_iter};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The tables of the second version.
pub(super) const TABLES: &str = "
    CREATE TABLE model (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        name TEXT NOT NULL,
        numbers INTEGER
    ) STRICT;
    CREATE TABLE embedding (
        id INTEGER PRIMARY KEY REFERENCES item (id),
        pointer TEXT NOT NULL,
        numbers BLOB,
        tries INTEGER NOT NULL DEFAULT 0,
        refused TEXT
    ) STRICT;
    CREATE INDEX embedding_missing ON embedding (tries, id) WHERE numbers IS NULL AND refused IS NULL;
";
/// So many times as many as are wanted are held against the whole vectors, and some more: a byte a number may change the order of those that
/// are nearly as near.
const WIDER: usize = 2;
const MORE: usize = 32;
/// How often a model is asked about a text over which it fails.
const TRIES: i64 = 3;
/// The largest number of a code.
const LARGEST: f32 = 127.0;

/// A text whose vector is missing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    id: i64,
    /// None where the document has none at its pointer.
    pub text: Option<String>,
}

/// What came of asking for a vector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Made {
    /// Of length 1.
    Vector(Vec<f32>),
    /// The model failed over this text, and why: it is asked again after all others, so many times.
    Failed(String),
    /// The model does not take the text, and why.
    Refused(String),
}

impl Sqlite {
    /// Takes a model for that of this store. Vectors of another one are gone then, and what that did not take.
    pub(crate) fn use_model(&self, name: &str) -> Result<(), Failure> {
        let mut connection = self.0.lock();
        let mut run = || -> rusqlite::Result<()> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if used_model(&transaction)?.is_none_or(|(used, _)| used != name) {
                let mut tables = transaction
                    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'codes_*'")?;
                let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
                tables
                    .iter()
                    .try_for_each(|table| transaction.execute(&format!("DELETE FROM {table}"), []).map(drop))?;
                transaction.execute("UPDATE embedding SET numbers = NULL, tries = 0, refused = NULL", [])?;
                transaction.execute("INSERT OR REPLACE INTO model (one, name) VALUES (1, ?1)", [name])?;
            }
            transaction.commit()
        };
        run().map_err(|error| failed(&error))
    }

    /// Has the model asked again about the texts that it did not take.
    pub(crate) fn retry_refused(&self) -> Result<(), Failure> {
        let retried = self
            .0
            .lock()
            .execute("UPDATE embedding SET tries = 0, refused = NULL WHERE tries > 0 OR refused IS NOT NULL", []);
        retried.map(drop).map_err(|error| failed(&error))
    }

    /// The first texts whose vectors are missing, those before others over which the model has failed.
    pub(crate) fn waiting(&self, model: &str, most: usize) -> Result<Vec<Waiting>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Option<Vec<Waiting>>> {
            if used_model(&connection)?.is_none_or(|(used, _)| used != model) {
                return Ok(None);
            }
            let mut select = connection.prepare_cached(
                "SELECT item.id, body, pointer FROM embedding CROSS JOIN item ON item.id = embedding.id \
                 WHERE numbers IS NULL AND refused IS NULL ORDER BY tries, embedding.id LIMIT ?1",
            )?;
            let waiting = select.query_map([most], |row| Ok(Waiting { id: row.get("id")?, text: text(row)? }))?;
            waiting.collect::<Result<_, _>>().map(Some)
        };
        run().map_err(|error| failed(&error))?.ok_or_else(other_model)
    }

    /// Keeps what came of asking, of texts that are still there as they were: another item may have the number by now.
    pub(crate) fn keep_vectors(&self, model: &str, made: &[(Waiting, Made)]) -> Result<(), Failure> {
        let mut connection = self.0.lock();
        let mut run = || -> rusqlite::Result<Result<(), Failure>> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let Some((used, numbers)) = used_model(&transaction)?.filter(|(used, _)| used == model) else {
                return Ok(Err(other_model()));
            };
            let mut numbers = numbers;
            for (Waiting { id, text: asked }, made) in made {
                let mut there = transaction.prepare_cached(
                    "SELECT collection.id, body, pointer FROM item JOIN embedding ON embedding.id = item.id \
                     JOIN collection ON collection.namespace = item.namespace AND collection.name = item.collection \
                     WHERE item.id = ?1 AND numbers IS NULL",
                )?;
                let there = there.query_row([id], |row| Ok((row.get::<_, i64>(0)?, text(row)?))).optional()?;
                let Some((collection, _)) = there.filter(|(_, text)| text == asked) else { continue };
                match made {
                    Made::Failed(why) => {
                        let failed = "UPDATE embedding SET tries = tries + 1, refused = iif(tries + 1 < ?3, NULL, ?2) WHERE id = ?1";
                        transaction.prepare_cached(failed)?.execute(params![id, why, TRIES])?;
                    }
                    Made::Refused(why) => {
                        transaction
                            .prepare_cached("UPDATE embedding SET refused = ?2 WHERE id = ?1")?
                            .execute(params![id, why])?;
                    }
                    Made::Vector(vector) if *numbers.get_or_insert(vector.len()) != vector.len() => {
                        return Ok(Err(other_length(&used, vector.len(), numbers)));
                    }
                    Made::Vector(vector) => {
                        transaction
                            .prepare_cached("UPDATE embedding SET numbers = ?2 WHERE id = ?1")?
                            .execute(params![id, bytes(vector)])?;
                        if !has_codes(&transaction, collection)? {
                            transaction.execute_batch(&format!(
                                "CREATE TABLE codes_{collection} (id INTEGER PRIMARY KEY, codes BLOB NOT NULL) STRICT"
                            ))?;
                        }
                        transaction
                            .prepare_cached(&format!("INSERT OR REPLACE INTO codes_{collection} VALUES (?1, ?2)"))?
                            .execute(params![id, codes(vector)])?;
                    }
                }
            }
            transaction.execute("UPDATE model SET numbers = ?1", [numbers])?;
            transaction.commit().map(Ok)
        };
        run().map_err(|error| failed(&error))?
    }

    /// The items of a collection whose texts are nearest, of those that the query's conditions mean.
    pub(crate) fn nearest(&self, of: &Namespace, query: &Query, model: &str, vector: &[f32]) -> Result<Page, Failure> {
        let mut connection = self.0.lock();
        let connection = connection.transaction().map_err(|error| failed(&error))?;
        let Some(namespace) = known(&connection, of)? else { return Ok(page(Vec::new())) };
        let run = || -> rusqlite::Result<Result<Page, Failure>> {
            let Some((used, numbers)) = used_model(&connection)?.filter(|(used, _)| used == model) else {
                return Ok(Err(other_model()));
            };
            let collection = match collection(&connection, namespace, &query.collection)? {
                Some(collection) if has_codes(&connection, collection)? => collection,
                Some(_) | None => return Ok(Ok(page(Vec::new()))),
            };
            if numbers != Some(vector.len()) {
                return Ok(Err(other_length(&used, vector.len(), numbers)));
            }
            let mut best = candidates(&connection, collection, vector)?;
            let wanted = query.limit as usize;
            let mut held = Vec::new();
            let (sql, given) = looking(namespace, query);
            let mut look = connection.prepare_cached(&sql)?;
            while held.len() < wanted * WIDER + MORE
                && let Some(Candidate { id, .. }) = best.pop()
            {
                let given = [Sql::Integer(id)].into_iter().chain(given.iter().cloned());
                let nearness =
                    look.query_row(params_from_iter(given), |row| Ok(dot(row.get_ref(0)?.as_blob()?, vector)));
                held.extend(nearness.optional()?.map(|nearness| Candidate { nearness, id }));
            }
            held.sort_by(|one, other| other.cmp(one));
            // Their bodies only now: of all that were held against each other they could be a lot.
            let (mut items, mut bytes) = (Vec::new(), 0);
            let mut read = connection.prepare_cached("SELECT * FROM item WHERE id = ?1")?;
            for Candidate { nearness, id } in held.into_iter().take(wanted) {
                let item = read.query_row([id], |row| item(row, nearness))?;
                bytes += item.body.len();
                if bytes > PAGE_BYTES && !items.is_empty() {
                    break;
                }
                items.push(item);
            }
            Ok(Ok(page(items)))
        };
        run().map_err(|error| failed(&error))?
    }

    /// How many texts have vectors, and how many do not.
    pub(crate) fn embedded(&self) -> Result<Embedded, Failure> {
        let connection = self.0.lock();
        let run = || {
            let counts = "SELECT count(numbers), count(*) FILTER (WHERE numbers IS NULL AND refused IS NULL), \
                          count(refused), max(refused) FROM embedding";
            connection.query_row(counts, [], |row| {
                Ok(Embedded { made: row.get(0)?, missing: row.get(1)?, refused: row.get(2)?, why: row.get(3)? })
            })
        };
        run().map_err(|error| failed(&error))
    }
}

impl Making<'_> {
    /// Has the text at this pointer found by its meaning, once there is a vector of it.
    pub(super) fn embed(&self, name: &Name, pointer: &str) -> Result<(), Failure> {
        let Some(there) = self.there(name)? else {
            return Err(Failure::invalid(format!("`{}` cannot be embedded: it is not there", name.key)));
        };
        let run = || {
            self.forget_vector(there.id, name)?;
            let mut insert = self.transaction.prepare_cached("INSERT INTO embedding (id, pointer) VALUES (?1, ?2)")?;
            insert.execute(params![there.id, pointer]).map(drop)
        };
        run().map_err(|error| failed(&error))
    }

    pub(super) fn forget_vector(&self, id: i64, name: &Name) -> rusqlite::Result<()> {
        let mut forget =
            self.transaction.prepare_cached("DELETE FROM embedding WHERE id = ?1 RETURNING numbers IS NOT NULL")?;
        if forget.query_row([id], |row| row.get(0)).optional()? == Some(true)
            && let Some(collection) = collection(&self.transaction, self.namespace, &name.collection)?
        {
            let forget = format!("DELETE FROM codes_{collection} WHERE id = ?1");
            self.transaction.prepare_cached(&forget)?.execute([id])?;
        }
        Ok(())
    }
}

/// An item that may be among the nearest.
#[derive(PartialEq)]
struct Candidate {
    nearness: f32,
    id: i64,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    /// Of those that are equally near, the one that was made first is greater.
    fn cmp(&self, other: &Self) -> Ordering {
        self.nearness.total_cmp(&other.nearness).then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All items of a collection that have a vector, by how near they are as far as a byte a number tells.
fn candidates(connection: &Connection, collection: i64, vector: &[f32]) -> rusqlite::Result<BinaryHeap<Candidate>> {
    let mut select = connection.prepare_cached(&format!("SELECT id, codes FROM codes_{collection}"))?;
    let wanted = Codes::of(vector);
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let nearness = wanted.nearness(row.get_ref(1)?.as_blob()?);
        found.push(Candidate { nearness, id: row.get(0)? });
    }
    Ok(BinaryHeap::from(found))
}

/// How one candidate is looked at: its SQL, and what is given after its number.
fn looking(namespace: i64, query: &Query) -> (String, Vec<Sql>) {
    let from = "SELECT numbers FROM item JOIN embedding ON embedding.id = item.id";
    let mut sql = format!("{from} WHERE item.id = ? AND namespace = ? AND collection = ?");
    let mut given = vec![Sql::Integer(namespace), Sql::Text(query.collection.clone())];
    for Condition { path, is } in &query.conditions {
        let (more, values) = condition(path, is);
        sql += &format!(" AND {more}");
        given.extend(values);
    }
    (sql, given)
}

/// A vector as whole numbers from -127 to 127, and how much one of them is.
struct Codes {
    numbers: Vec<i8>,
    scale: f32,
}

impl Codes {
    fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, number| largest.max(number.abs()));
        let numbers = vector.iter().map(|number| (number / largest * LARGEST).round() as i8).collect();
        Self { numbers, scale: largest / LARGEST }
    }

    /// How near this one is to one as it is kept.
    fn nearness(&self, kept: &[u8]) -> f32 {
        let Some((codes, scale)) = kept.split_last_chunk::<4>() else { return f32::MIN };
        // In pieces of a length that the compiler knows, for which it has instructions.
        let ((pieces, rest), (others, other)) = (codes.as_chunks::<16>(), self.numbers.as_chunks::<16>());
        let whole: i32 = pieces.iter().zip(others).map(|(piece, other)| products(piece, other)).sum();
        (whole + products(rest, other)) as f32 * self.scale * f32::from_le_bytes(*scale)
    }
}

#[inline]
fn products(codes: &[u8], numbers: &[i8]) -> i32 {
    codes.iter().zip(numbers).map(|(code, number)| i32::from(code.cast_signed()) * i32::from(*number)).sum()
}

/// As it is kept for looking: a byte a number, then how much one of them is.
fn codes(vector: &[f32]) -> Vec<u8> {
    let Codes { numbers, scale } = Codes::of(vector);
    numbers.into_iter().map(i8::cast_unsigned).chain(scale.to_le_bytes()).collect()
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The cosine of two vectors of length 1, of which one is as it is kept.
fn dot(kept: &[u8], vector: &[f32]) -> f32 {
    let (numbers, _) = kept.as_chunks::<4>();
    numbers.iter().zip(vector).map(|(number, other)| f32::from_le_bytes(*number) * other).sum()
}

/// All that is near is one page.
fn page(items: Vec<Item>) -> Page {
    Page { total: items.len() as u64, items, next: None }
}

/// The model whose vectors the store has, and how many numbers these have.
fn used_model(connection: &Connection) -> rusqlite::Result<Option<(String, Option<usize>)>> {
    let mut model = connection.prepare_cached("SELECT name, numbers FROM model")?;
    model.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// The text at the pointer of a row with that and a body, if there is any.
fn text(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<String>> {
    let (body, pointer) = (row.get::<_, String>("body")?, row.get::<_, String>("pointer")?);
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let text = body.pointer(&pointer).and_then(Value::as_str);
    Ok(text.filter(|text| !text.trim().is_empty()).map(str::to_owned))
}

/// The number of a collection that was ever written to.
fn collection(connection: &Connection, namespace: i64, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut collection = connection.prepare_cached("SELECT id FROM collection WHERE namespace = ?1 AND name = ?2")?;
    collection.query_row(params![namespace, name], |row| row.get(0)).optional()
}

fn has_codes(connection: &Connection, collection: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?
        .exists([format!("codes_{collection}")])
}

fn other_model() -> Failure {
    Failure::failed("another program that uses this store has set another model for embeddings")
        .hint("give both the same [embeddings], then start this one again")
}

fn other_length(model: &str, numbers: usize, before: Option<usize>) -> Failure {
    let before = before.unwrap_or_default();
    let message = format!("the model `{model}` makes vectors of {numbers} numbers, and made some of {before} before");
    Failure::failed(message).hint("write another `model` under [embeddings], and all are made anew")
}

#[cfg(test)]
mod tests {
    use super::super::tests::Place;
    use super::*;
    use crate::Change;

    const MODEL: &str = "m";

    fn name(key: &str) -> Name {
        Name { collection: "c".into(), key: key.into() }
    }

    /// Puts an item that is found by its meaning.
    fn put(place: &Place, store: &Sqlite, key: &str, body: &serde_json::Value) {
        let changes = [Change::Put(name(key), body.to_string()), Change::Embed(name(key), "/text".into())];
        store.commit(&place.of, &changes, &place.limits).unwrap();
    }

    fn embed(store: &Sqlite, make: impl Fn(&str) -> Made) {
        loop {
            let waiting = store.waiting(MODEL, 10).unwrap();
            if waiting.is_empty() {
                return;
            }
            let made: Vec<_> = waiting.into_iter().map(|waits| (waits.clone(), make(&waits.text.unwrap()))).collect();
            store.keep_vectors(MODEL, &made).unwrap();
        }
    }

    fn unit(vector: &[f32]) -> Vec<f32> {
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    }

    fn nearest(place: &Place, store: &Sqlite, vector: &[f32], change: impl FnOnce(&mut Query)) -> Vec<String> {
        let mut query = Query::new("c".into());
        change(&mut query);
        let page = store.nearest(&place.of, &query, MODEL, vector).unwrap();
        page.items.into_iter().map(|item| item.key).collect()
    }

    /// What a byte a number finds, and whole numbers order, is what all whole vectors give.
    #[test]
    fn the_nearest_are_those_of_the_whole_vectors() {
        let (place, mut random) = (Place::new(), 0x2545_f491_4f6c_dd1d_u64);
        let store = place.open().unwrap();
        store.use_model(MODEL).unwrap();
        // Xorshift (Marsaglia 2003).
        let mut number = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % 2001) as f32 / 1000.0 - 1.0
        };
        let mut vector = || unit(&(0..48).map(|_| number()).collect::<Vec<f32>>());
        let vectors: Vec<Vec<f32>> = (0..600).map(|_| vector()).collect();
        for place_in_list in 0..vectors.len() {
            let body = serde_json::json!({ "text": place_in_list.to_string(), "even": place_in_list % 2 == 0 });
            put(&place, &store, &format!("k{place_in_list}"), &body);
        }
        embed(&store, |text| Made::Vector(vectors[text.parse::<usize>().unwrap()].clone()));
        for _ in 0..20 {
            let wanted = vector();
            let cosine = |key: usize| vectors[key].iter().zip(&wanted).map(|(one, other)| one * other).sum::<f32>();
            let mut all: Vec<usize> = (0..vectors.len()).collect();
            all.sort_by(|one, other| cosine(*other).total_cmp(&cosine(*one)));
            let keys =
                |keys: &mut dyn Iterator<Item = &usize>| keys.take(10).map(|key| format!("k{key}")).collect::<Vec<_>>();
            assert_eq!(nearest(&place, &store, &wanted, |query| query.limit(10)), keys(&mut all.iter()));
            let even = nearest(&place, &store, &wanted, |query| {
                query.limit(10);
                query.equals("/even", "true").unwrap();
            });
            assert_eq!(even, keys(&mut all.iter().filter(|key| *key % 2 == 0)));
        }
    }

    #[test]
    fn a_vector_goes_with_its_text_and_with_its_model() {
        let place = Place::new();
        let store = place.open().unwrap();
        let counts = |store: &Sqlite| {
            let Embedded { made, missing, refused, .. } = store.embedded().unwrap();
            (made, missing, refused)
        };
        let text = |text: &str| serde_json::json!({ "text": text });
        let axis = |text: &str| match text {
            "x" => Made::Vector(vec![1.0, 0.0]),
            "y" => Made::Vector(vec![0.0, 1.0]),
            _ => Made::Refused("too long".into()),
        };
        ["x", "y", "z"].iter().for_each(|key| put(&place, &store, key, &text(key)));
        assert_eq!(counts(&store), (0, 3, 0));
        assert!(store.nearest(&place.of, &Query::new("c".into()), MODEL, &[1.0, 0.0]).is_err(), "no model was set");
        store.use_model(MODEL).unwrap();
        embed(&store, axis);
        assert_eq!(counts(&store), (2, 0, 1));
        assert_eq!(store.embedded().unwrap().why.as_deref(), Some("too long"));
        assert_eq!(nearest(&place, &store, &[0.6, 0.8], |_| ()), ["y", "x"]);
        // A change that came meanwhile has a text of its own.
        put(&place, &store, "x", &text("y"));
        let stale = store.waiting(MODEL, 9).unwrap();
        put(&place, &store, "x", &text("x"));
        store.keep_vectors(MODEL, &[(stale[0].clone(), Made::Vector(vec![0.0, 1.0]))]).unwrap();
        assert_eq!(counts(&store), (1, 1, 1));
        embed(&store, axis);
        assert_eq!(nearest(&place, &store, &[1.0, 0.0], |_| ()), ["x", "y"]);
        // Nor is it that of another item, which has its number by now.
        put(&place, &store, "last", &text("y"));
        let stale = store.waiting(MODEL, 9).unwrap();
        store.commit(&place.of, &[Change::Delete(name("last"))], &place.limits).unwrap();
        put(&place, &store, "next", &text("x"));
        assert_eq!(store.waiting(MODEL, 9).unwrap()[0].id, stale[0].id);
        store.keep_vectors(MODEL, &[(stale[0].clone(), Made::Vector(vec![0.0, 1.0]))]).unwrap();
        assert_eq!(counts(&store), (2, 1, 1));
        store.commit(&place.of, &[Change::Delete(name("next"))], &place.limits).unwrap();
        // Put without it, or deleted, it is not near any more.
        let changes = [Change::Put(name("x"), text("x").to_string()), Change::Delete(name("z"))];
        store.commit(&place.of, &changes, &place.limits).unwrap();
        assert_eq!((counts(&store), nearest(&place, &store, &[1.0, 0.0], |_| ())), ((1, 0, 0), vec!["y".to_owned()]));
        // Of one model, all have as many numbers; another model's are made anew.
        put(&place, &store, "long", &text("long"));
        let waiting = store.waiting(MODEL, 1).unwrap().remove(0);
        let longer = [(waiting, Made::Vector(vec![1.0, 0.0, 0.0]))];
        assert!(store.keep_vectors(MODEL, &longer).unwrap_err().message.contains("3 numbers, and made some of 2"));
        assert!(store.nearest(&place.of, &Query::new("c".into()), MODEL, &[1.0]).is_err());
        store.use_model("other").unwrap();
        assert_eq!(counts(&store), (0, 2, 0));
        assert!(store.keep_vectors(MODEL, &longer).unwrap_err().message.contains("another model"));
        store.keep_vectors("other", &longer).unwrap();
        assert_eq!(counts(&store), (1, 1, 0));
        assert_eq!(store.check().unwrap().faults, Vec::<String>::new());
    }

    /// A collection that is empty leaves nothing behind, and its number to another one.
    #[test]
    fn an_empty_collection_leaves_nothing() {
        let place = Place::new();
        let store = place.open().unwrap();
        store.use_model(MODEL).unwrap();
        let tables = |store: &Sqlite| -> u32 {
            let count = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'codes_*'";
            store.0.lock().query_row(count, [], |row| row.get(0)).unwrap()
        };
        for _ in 0..3 {
            put(&place, &store, "a", &serde_json::json!({ "text": "a" }));
            embed(&store, |_| Made::Vector(vec![1.0]));
            assert_eq!((tables(&store), nearest(&place, &store, &[1.0], |_| ())), (1, vec!["a".to_owned()]));
            store.commit(&place.of, &[Change::Delete(name("a"))], &place.limits).unwrap();
            assert_eq!((tables(&store), nearest(&place, &store, &[1.0], |_| ())), (0, Vec::<String>::new()));
        }
        assert_eq!(store.check().unwrap().faults, Vec::<String>::new());
    }

    #[test]
    fn other_namespaces_and_collections_are_not_looked_at() {
        let place = Place::new();
        let store = place.open().unwrap();
        store.use_model(MODEL).unwrap();
        let body = serde_json::json!({ "text": "same" });
        put(&place, &store, "mine", &body);
        let elsewhere = Name { collection: "d".into(), key: "elsewhere".into() };
        let theirs = Namespace { agent: "b".into(), plugin: "p".into() };
        for (of, name) in [(&place.of, elsewhere), (&theirs, name("theirs"))] {
            let changes = [Change::Put(name.clone(), body.to_string()), Change::Embed(name, "/text".into())];
            store.commit(of, &changes, &place.limits).unwrap();
        }
        embed(&store, |_| Made::Vector(vec![1.0]));
        assert_eq!(store.embedded().unwrap().made, 3);
        assert_eq!(nearest(&place, &store, &[1.0], |_| ()), ["mine"]);
    }
}
