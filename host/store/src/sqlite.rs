//! The store in SQLite: one file and its log, one connection a host, and as many hosts as there are.
//!
//! Each namespace has an index of words of its own: what others have written changes no rank.

mod jobs;
mod schedules;
mod transfer;
mod vectors;

pub(super) use vectors::{Made, Waiting};

use super::query::{After, By, Condition, Is, Order, PAGE_BYTES, Scalar, Sorted};
use super::{Change, Item, Name, Namespace, Page, Query, no_place, texts, unusable};
use base::envelope::{Failure, Kind};
use parking_lot::Mutex;
use rusqlite::types::Value as Sql;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params, params_from_iter,
};
use serde_json::json;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What marks a file as a store: "TCRB".
const APPLICATION: i32 = 0x5443_5242;
/// The version of the tables.
const VERSION: i32 = 6;
/// What makes them.
const TABLES: [&str; 5] = [
    "
    CREATE TABLE namespace (
        id INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        plugin TEXT NOT NULL,
        items INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (agent, plugin)
    ) STRICT;
    CREATE TABLE item (
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL REFERENCES namespace (id),
        collection TEXT NOT NULL,
        key TEXT NOT NULL,
        body TEXT NOT NULL,
        revision INTEGER NOT NULL,
        made_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        UNIQUE (namespace, collection, key)
    ) STRICT;
",
    vectors::TABLES,
    "
    CREATE TABLE collection (
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL REFERENCES namespace (id),
        name TEXT NOT NULL,
        items INTEGER NOT NULL,
        UNIQUE (namespace, name)
    ) STRICT;
",
    jobs::TABLES,
    schedules::TABLES,
];
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// How often a store is looked at that another process makes.
const MAKING: Duration = Duration::from_millis(5);
/// Pages that are kept in memory once they were read: words among 10^5 documents take a quarter less time than with the 2 MiB of the library.
const CACHE_KIB: i64 = 8 << 10;
/// Statements that are kept ready.
const PREPARED: usize = 64;

/// An open store.
pub(super) struct Sqlite(Mutex<Connection>);

/// What was found in looking at a store.
pub struct Checked {
    /// What is wrong; nothing where all is well.
    pub faults: Vec<String>,
    /// Documents.
    pub items: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Sqlite {
    /// Opens a store, or makes it.
    pub(super) fn open(file: &Path, sync: config::StoreSync) -> Result<Self, Failure> {
        let made = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file);
        made.map_err(|error| no_place(&format!("`{}`: {error}", file.display())))?;
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(file, flags).map_err(|error| failed(&error))?;
        let begun = Instant::now();
        loop {
            let prepared = prepare(&mut connection, sync).map_err(|error| failed(&error));
            match prepared.and_then(|()| make_tables(&mut connection)) {
                Ok(()) => return Ok(Self(Mutex::new(connection))),
                // While another program makes the same store SQLite does not wait by itself.
                Err(failure) if failure.kind == Kind::Busy && begun.elapsed() < BUSY => std::thread::sleep(MAKING),
                Err(failure) => return Err(failure),
            }
        }
    }

    pub(super) fn get(&self, of: &Namespace, name: &Name) -> Result<Option<Item>, Failure> {
        let connection = self.0.lock();
        let mut statement = connection
            .prepare_cached(
                "SELECT key, body, revision, made_ms, changed_ms FROM item JOIN namespace ON namespace.id = item.namespace \
                 WHERE agent = ?1 AND plugin = ?2 AND collection = ?3 AND key = ?4",
            )
            .map_err(|error| failed(&error))?;
        let found = statement.query_row(params![of.agent, of.plugin, name.collection, name.key], |row| item(row, 0.0));
        found.optional().map_err(|error| failed(&error))
    }

    pub(super) fn commit(
        &self,
        of: &Namespace,
        changes: &[Change],
        limits: &config::Store,
    ) -> Result<Vec<Item>, Failure> {
        let mut connection = self.0.lock();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
        let mut making = Making { namespace: namespace(&transaction, of)?, transaction, now: now_ms() };
        let mut put = Vec::new();
        for change in changes {
            match change {
                Change::Expect(name, revision) => making.expect(name, *revision)?,
                Change::Put(name, body) => put.push(making.put(name, body)?),
                Change::Delete(name) => making.delete(name)?,
                Change::Embed(name, pointer) => making.embed(name, pointer)?,
            }
        }
        making.check(limits)?;
        making.transaction.commit().map_err(|error| failed(&error))?;
        Ok(put)
    }

    pub(super) fn find(&self, of: &Namespace, query: &Query) -> Result<Page, Failure> {
        let mut connection = self.0.lock();
        let run = |namespace: i64, moment: &Transaction<'_>| -> rusqlite::Result<Page> {
            let Statement { count, counted, select, selected } = Statement::of(namespace, query);
            let known: Option<u64> = match count {
                Some(count) => {
                    let mut count = moment.prepare_cached(&count)?;
                    Some(count.query_row(params_from_iter(&counted), |row| row.get(0))?)
                }
                None => None,
            };
            let most = query.limit as usize;
            let (mut found, mut passed) = (Vec::new(), 0);
            let mut select = moment.prepare_cached(&select)?;
            let mut rows = select.query(params_from_iter(&selected))?;
            while let Some(row) = rows.next()? {
                passed += 1;
                // One more than is wanted says that there is a next page.
                if found.len() <= most {
                    found
                        .push((After { sorted: sorted(row)?, id: row.get("id")? }, -row.get::<_, f64>("fits")? as f32));
                }
            }
            // Bodies only of those: to sort them along with all others takes longer.
            let (mut items, mut bytes, mut last, mut next) = (Vec::<Item>::new(), 0, None, None);
            let mut read = moment.prepare_cached("SELECT * FROM item WHERE id = ?1")?;
            for (after, rank) in found {
                let item = read.query_row([after.id], |row| item(row, rank))?;
                bytes += item.body.len();
                if items.len() == most || (bytes > PAGE_BYTES && !items.is_empty()) {
                    next = last.map(|after: After| json!(after).to_string());
                    break;
                }
                last = Some(after);
                items.push(item);
            }
            Ok(Page { items, total: known.unwrap_or(passed), next })
        };
        let moment = connection.transaction().map_err(|error| failed(&error))?;
        match known(&moment, of)? {
            Some(namespace) => run(namespace, &moment).map_err(|error| failed(&error)),
            None => Ok(Page { items: Vec::new(), total: 0, next: None }),
        }
    }

    /// Looks at all of it.
    pub(super) fn check(&self) -> Result<Checked, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Checked> {
            let mut faults: Vec<String> = Vec::new();
            let mut integrity = connection.prepare("PRAGMA integrity_check")?;
            for line in integrity.query_map([], |row| row.get::<_, String>(0))? {
                faults.extend(Some(line?).filter(|line| line != "ok"));
            }
            let (items, bytes) = connection.query_row(
                "SELECT count(*), ifnull(sum(length(CAST(body AS BLOB))), 0) FROM item",
                [],
                |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)),
            )?;
            let counted = connection.query_row(
                "SELECT ifnull(sum(items), 0), ifnull(sum(bytes), 0) FROM namespace",
                [],
                |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)),
            )?;
            let in_collections: u64 =
                connection.query_row("SELECT ifnull(sum(items), 0) FROM collection", [], |row| row.get(0))?;
            if in_collections != items {
                faults.push(format!("{items} items are there, and {in_collections} are counted in their collections"));
            }
            if counted != (items, bytes) {
                faults.push(format!(
                    "{items} items of {bytes} bytes are there, and {} of {} are counted",
                    counted.0, counted.1
                ));
            }
            Ok(Checked { faults, items, bytes })
        };
        run().map_err(|error| failed(&error))
    }

    /// Writes a copy as it is now to a file that is not there yet.
    pub(super) fn backup(&self, to: &Path) -> Result<(), Failure> {
        let text = to.to_str().ok_or_else(|| Failure::invalid("the path is not UTF-8"))?;
        self.0.lock().execute("VACUUM INTO ?1", [text]).map(drop).map_err(|error| failed(&error))
    }
}

/// Changes that are being made.
struct Making<'c> {
    transaction: Transaction<'c>,
    namespace: i64,
    now: i64,
}

/// An item, as far as changes need it.
struct There {
    id: i64,
    bytes: i64,
    revision: i64,
    made_ms: i64,
}

impl Making<'_> {
    fn there(&self, name: &Name) -> Result<Option<There>, Failure> {
        let run = || -> rusqlite::Result<Option<There>> {
            let mut statement = self.transaction.prepare_cached(
                "SELECT id, length(CAST(body AS BLOB)), revision, made_ms FROM item WHERE namespace = ?1 AND collection = ?2 AND key = ?3",
            )?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok(There { id: row.get(0)?, bytes: row.get(1)?, revision: row.get(2)?, made_ms: row.get(3)? })
            };
            statement.query_row(params![self.namespace, name.collection, name.key], row).optional()
        };
        run().map_err(|error| failed(&error))
    }

    fn expect(&self, name: &Name, expected: u64) -> Result<(), Failure> {
        let found = self.there(name)?.map_or(0, |there| there.revision);
        if u64::try_from(found) == Ok(expected) {
            return Ok(());
        }
        let message = match found {
            0 => format!("`{}` is not there any more", name.key),
            _ if expected == 0 => format!("`{}` is there already", name.key),
            _ => format!("`{}` was changed meanwhile: it has revision {found}, not {expected}", name.key),
        };
        let data = json!({ "key": name.key, "revision": found });
        Err(Failure::new(Kind::Busy, message).hint("read it again, then change that").data(data))
    }

    fn put(&mut self, name: &Name, body: &str) -> Result<Item, Failure> {
        let there = self.there(name)?;
        let (revision, made_ms) = there.as_ref().map_or((1, self.now), |there| (there.revision + 1, there.made_ms));
        let [revision, made_ms, changed_ms] = [revision, made_ms, self.now].map(i64::cast_unsigned);
        let item = Item { key: name.key.clone(), body: body.to_owned(), revision, made_ms, changed_ms, rank: 0.0 };
        self.write(there.as_ref(), name, &item)?;
        Ok(item)
    }

    /// Writes an item as it is, in the place of the one that is there.
    fn write(&self, there: Option<&There>, name: &Name, item: &Item) -> Result<(), Failure> {
        let [revision, made_ms, changed_ms] = [item.revision, item.made_ms, item.changed_ms].map(u64::cast_signed);
        let run = || -> rusqlite::Result<()> {
            let id = match there {
                Some(there) => {
                    self.forget_words(there.id)?;
                    self.forget_vector(there.id, name)?;
                    let mut update = self.transaction.prepare_cached(
                        "UPDATE item SET body = ?2, revision = ?3, made_ms = ?4, changed_ms = ?5 WHERE id = ?1",
                    )?;
                    update.execute(params![there.id, item.body, revision, made_ms, changed_ms])?;
                    there.id
                }
                None => {
                    let mut insert = self.transaction.prepare_cached(
                        "INSERT INTO item (namespace, collection, key, body, revision, made_ms, changed_ms) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?;
                    let Name { collection, key } = name;
                    insert.insert(params![self.namespace, collection, key, item.body, revision, made_ms, changed_ms])?
                }
            };
            let words = format!("INSERT INTO words_{} (rowid, text) VALUES (?1, ?2)", self.namespace);
            self.transaction.prepare_cached(&words)?.execute(params![id, texts(&item.body)])?;
            let more = item.body.len() as i64 - there.map_or(0, |there| there.bytes);
            self.count(name, i64::from(there.is_none()), more)
        };
        run().map_err(|error| failed(&error))
    }

    fn delete(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(there) = self.there(name)? else { return Ok(()) };
        let run = || -> rusqlite::Result<()> {
            self.forget_words(there.id)?;
            self.forget_vector(there.id, name)?;
            self.transaction.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([there.id])?;
            self.count(name, -1, -there.bytes)
        };
        run().map_err(|error| failed(&error))
    }

    fn forget_words(&self, id: i64) -> rusqlite::Result<()> {
        let forget = format!("DELETE FROM words_{} WHERE rowid = ?1", self.namespace);
        self.transaction.prepare_cached(&forget)?.execute([id]).map(drop)
    }

    fn count(&self, name: &Name, items: i64, bytes: i64) -> rusqlite::Result<()> {
        if items != 0 {
            let mut count = self.transaction.prepare_cached(
                "INSERT INTO collection (namespace, name, items) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO UPDATE SET items = items + excluded.items",
            )?;
            count.execute(params![self.namespace, name.collection, items])?;
        }
        if items < 0 {
            let mut empty = self.transaction.prepare_cached(
                "DELETE FROM collection WHERE namespace = ?1 AND name = ?2 AND items = 0 RETURNING id",
            )?;
            let id: Option<i64> =
                empty.query_row(params![self.namespace, name.collection], |row| row.get(0)).optional()?;
            if let Some(id) = id {
                self.transaction.execute_batch(&format!("DROP TABLE IF EXISTS codes_{id}"))?;
            }
        }
        let mut count = self
            .transaction
            .prepare_cached("UPDATE namespace SET items = items + ?2, bytes = bytes + ?3 WHERE id = ?1")?;
        count.execute(params![self.namespace, items, bytes]).map(drop)
    }

    /// Holds what there is now against the limits.
    fn check(&self, limits: &config::Store) -> Result<(), Failure> {
        let row = |sql: &str, given: &[i64]| -> Result<(u64, u64), Failure> {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            self.transaction.query_row(sql, params_from_iter(given), read).map_err(|error| failed(&error))
        };
        let (items, _) = row("SELECT items, bytes FROM namespace WHERE id = ?1", &[self.namespace])?;
        if items > limits.items {
            let message = format!("{items} items are too many for one plugin of an agent (limit: {})", limits.items);
            return Err(Failure::limit(message).hint("delete some, or raise `items` under [store]"));
        }
        let (_, bytes) = row("SELECT 0, ifnull(sum(bytes), 0) FROM namespace", &[])?;
        if bytes > limits.total_mib << 20 {
            let message = format!("the store would have {bytes} bytes (limit: {} MiB)", limits.total_mib);
            return Err(Failure::limit(message).hint("delete some, or raise `total_mib` under [store]"));
        }
        Ok(())
    }
}

/// A query as SQL.
struct Statement {
    /// None where all are passed anyhow, and counted on the way.
    count: Option<String>,
    counted: Vec<Sql>,
    select: String,
    selected: Vec<Sql>,
}

impl Statement {
    fn of(namespace: i64, query: &Query) -> Self {
        let mut counted = vec![Sql::Integer(namespace), Sql::Text(query.collection.clone())];
        let mut matching = "item.namespace = ? AND item.collection = ?".to_owned();
        let has_words = !query.words.is_empty();
        let from = match has_words {
            true => format!("words_{namespace} AS words JOIN item ON item.id = words.rowid"),
            false => "item".to_owned(),
        };
        if has_words {
            matching += " AND words.text MATCH ?";
            // Quoted: no word is an operator.
            let words: Vec<String> = query.words.iter().map(|word| format!("\"{word}\"")).collect();
            counted.push(Sql::Text(words.join(if query.any { " OR " } else { " " })));
        }
        for Condition { path, is } in &query.conditions {
            let (sql, values) = condition(path, is);
            matching += &format!(" AND {sql}");
            counted.extend(values);
        }
        // What stands before the conditions is given before them.
        let mut selected = Vec::new();
        let (sorted, descending) = match &query.order {
            Some(Order { by: By::Made, descending }) => ("item.made_ms", *descending),
            Some(Order { by: By::Changed, descending }) => ("item.changed_ms", *descending),
            Some(Order { by: By::Key, descending }) => ("item.key", *descending),
            Some(Order { by: By::Path(path), descending }) => {
                selected.push(Sql::Text(path.clone()));
                ("ifnull(json_extract(item.body, ?), '')", *descending)
            }
            // A rank is less for what fits better.
            None if has_words => ("words.rank", false),
            None => ("item.key", false),
        };
        selected.extend(counted.clone());
        let rank = if has_words { "words.rank" } else { "0.0" };
        let (compare, direction) = if descending { ("<", "DESC") } else { (">", "ASC") };
        let narrow = format!("SELECT item.id AS id, {sorted} AS sorted, {rank} AS fits FROM {from} WHERE {matching}");
        let mut select = format!("SELECT * FROM ({narrow})");
        if let Some(After { sorted, id }) = &query.after {
            select += &format!(" WHERE (sorted, id) {compare} (?, ?)");
            let sorted = match sorted {
                Sorted::Whole(number) => Sql::Integer(*number),
                Sorted::Bits(bits) => Sql::Real(f64::from_bits(*bits)),
                Sorted::Text(text) => Sql::Text(text.clone()),
            };
            selected.extend([sorted, Sql::Integer(*id)]);
        }
        select += &format!(" ORDER BY sorted {direction}, id {direction}");
        let count = match (has_words || !query.conditions.is_empty(), &query.after) {
            (true, None) => None,
            (true, Some(_)) => Some(format!("SELECT count(*) FROM {from} WHERE {matching}")),
            // All of them are counted already.
            (false, _) => {
                Some("SELECT ifnull(sum(items), 0) FROM collection WHERE namespace = ? AND name = ?".to_owned())
            }
        };
        if count.is_some() {
            select += &format!(" LIMIT {}", u64::from(query.limit) + 1);
        }
        Self { count, counted, select, selected }
    }
}

/// A condition as SQL, and what is given for it.
fn condition(path: &str, is: &Is) -> (String, Vec<Sql>) {
    let path = || Sql::Text(path.to_owned());
    match is {
        Is::Equal(Scalar::Null) => ("json_type(item.body, ?) = 'null'".into(), vec![path()]),
        Is::Equal(Scalar::Truth(truth)) => (format!("json_type(item.body, ?) = '{truth}'"), vec![path()]),
        Is::Equal(value) => {
            let sql = format!("json_type(item.body, ?) IN {} AND json_extract(item.body, ?) = ?", kinds(value));
            (sql, vec![path(), path(), sql_of_scalar(value)])
        }
        Is::Between(low, high) => {
            let sql =
                format!("json_type(item.body, ?) IN {} AND json_extract(item.body, ?) BETWEEN ? AND ?", kinds(low));
            (sql, vec![path(), path(), sql_of_scalar(low), sql_of_scalar(high)])
        }
    }
}

/// What SQLite calls values of this kind.
fn kinds(value: &Scalar) -> &'static str {
    match value {
        Scalar::Text(_) => "('text')",
        Scalar::Number(_) => "('integer', 'real')",
        Scalar::Truth(_) => "('true', 'false')",
        Scalar::Null => "('null')",
    }
}

fn sql_of_scalar(value: &Scalar) -> Sql {
    match value {
        Scalar::Null => Sql::Null,
        Scalar::Truth(truth) => Sql::Integer((*truth).into()),
        Scalar::Number(number) => Sql::Real(*number),
        Scalar::Text(text) => Sql::Text(text.clone()),
    }
}

/// What an item is sorted by. Nothing that is sorted by is a null or a blob.
fn sorted(row: &rusqlite::Row<'_>) -> rusqlite::Result<Sorted> {
    Ok(match row.get::<_, Sql>("sorted")? {
        Sql::Integer(number) => Sorted::Whole(number),
        Sql::Real(number) => Sorted::Bits(number.to_bits()),
        Sql::Text(text) => Sorted::Text(text),
        Sql::Null | Sql::Blob(_) => Sorted::Text(String::new()),
    })
}

fn item(row: &rusqlite::Row<'_>, rank: f32) -> rusqlite::Result<Item> {
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    Ok(Item {
        key: row.get("key")?,
        body: row.get("body")?,
        revision: number("revision")?,
        made_ms: number("made_ms")?,
        changed_ms: number("changed_ms")?,
        rank,
    })
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The number of a namespace that there is.
fn known(connection: &Connection, of: &Namespace) -> Result<Option<i64>, Failure> {
    let run = || -> rusqlite::Result<Option<i64>> {
        let mut statement = connection.prepare_cached("SELECT id FROM namespace WHERE agent = ?1 AND plugin = ?2")?;
        statement.query_row([&of.agent, &of.plugin], |row| row.get(0)).optional()
    };
    run().map_err(|error| failed(&error))
}

/// The number of a namespace, which is made where there is none.
fn namespace(transaction: &Transaction<'_>, of: &Namespace) -> Result<i64, Failure> {
    if let Some(known) = known(transaction, of)? {
        return Ok(known);
    }
    let run = || -> rusqlite::Result<i64> {
        transaction.execute("INSERT INTO namespace (agent, plugin) VALUES (?1, ?2)", [&of.agent, &of.plugin])?;
        let id = transaction.last_insert_rowid();
        // It keeps no text of its own: that is in the documents.
        make_words(transaction, id)?;
        Ok(id)
    };
    run().map_err(|error| failed(&error))
}

/// Makes the table by which the words of a namespace are found: `deploys` by `deploy`, whatever accents they are written with.
fn make_words(transaction: &Transaction<'_>, namespace: i64) -> rusqlite::Result<()> {
    transaction.execute_batch(&format!(
        "CREATE VIRTUAL TABLE words_{namespace} USING fts5(\
         text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2')"
    ))
}

fn prepare(connection: &mut Connection, sync: config::StoreSync) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let sync = match sync {
        config::StoreSync::Normal => "NORMAL",
        config::StoreSync::Full => "FULL",
    };
    connection.pragma_update(None, "synchronous", sync)
}

/// Makes the tables where there are none; refuses those of another version.
fn make_tables(connection: &mut Connection) -> Result<(), Failure> {
    let run = |connection: &mut Connection| -> rusqlite::Result<Option<String>> {
        let number =
            |connection: &Connection, name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        if number(connection, "application_id")? == APPLICATION && number(connection, "user_version")? == VERSION {
            return Ok(None);
        }
        // Another program may do the same.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        let (application, version) = (number(&transaction, "application_id")?, number(&transaction, "user_version")?);
        let is_new = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, u64>(0))? == 0;
        if !is_new && application != APPLICATION {
            return Ok(Some("it is a database of another program".into()));
        }
        if !is_new && version != VERSION {
            let who = if version > VERSION { "a later" } else { "an earlier" };
            let why = format!("{who} Toolcrib made it (version {version}, this one knows {VERSION}): move it away");
            return Ok(Some(why));
        }
        TABLES.iter().filter(|_| is_new).try_for_each(|tables| transaction.execute_batch(tables))?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(None)
    };
    match run(connection) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(unusable(&why)),
        Err(error) => Err(failed(&error)),
    }
}

/// What an error of the engine means for whoever called.
fn failed(error: &rusqlite::Error) -> Failure {
    let code = error.sqlite_error_code();
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Failure::new(Kind::Busy, "another program writes into the store").hint("try again in a moment")
        }
        Some(ErrorCode::DiskFull) => unusable("the disk is full, and nothing was changed"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            unusable(&format!("its file is damaged: {error}"))
                .hint("put a copy (`toolcrib store backup` makes them) in its place, or move it away to begin anew")
        }
        Some(
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure,
        ) => unusable(&error.to_string()),
        Some(_) | None => Failure::new(Kind::Internal, format!("the store: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    pub(super) struct Place {
        directory: tempfile::TempDir,
        pub(super) of: Namespace,
        pub(super) limits: config::Store,
    }

    impl Place {
        pub(super) fn new() -> Self {
            let of = Namespace { agent: "a".into(), plugin: "p".into() };
            Self { directory: tempfile::tempdir().unwrap(), of, limits: config::Config::default().store }
        }

        fn file(&self) -> PathBuf {
            self.directory.path().join("store.sqlite")
        }

        pub(super) fn open(&self) -> Result<Sqlite, Failure> {
            Sqlite::open(&self.file(), config::StoreSync::Normal)
        }

        fn put(&self, store: &Sqlite, keys: impl Iterator<Item = usize>, body: &str) -> Result<Vec<Item>, Failure> {
            let put = |key: usize| Change::Put(name(&format!("k{key}")), json!(body).to_string());
            store.commit(&self.of, &keys.map(put).collect::<Vec<_>>(), &self.limits)
        }
    }

    fn name(key: &str) -> Name {
        Name { collection: "c".into(), key: key.into() }
    }

    /// Wherever in a change the disk is full, nothing of it is made, and what was there stays.
    #[test]
    fn a_full_disk_changes_nothing_wherever_it_is_met() {
        let place = Place::new();
        let store = place.open().unwrap();
        place.put(&store, 0..5, "before").unwrap();
        let pages = |store: &Sqlite, most: i64| {
            store.0.lock().pragma_update_and_check(None, "max_page_count", most, |row| row.get::<_, i64>(0)).unwrap()
        };
        let now = pages(&store, 1);
        let long = "after ".repeat(2000);
        let mut refused = 0;
        for more in 0.. {
            pages(&store, now + more);
            match place.put(&store, 0..10, &long) {
                Ok(put) => {
                    assert_eq!((put.len(), put[0].revision, put[9].revision), (10, 2, 1));
                    break;
                }
                Err(failure) => {
                    assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
                    assert!(failure.message.contains("the disk is full, and nothing was changed"), "{failure:?}");
                    refused += 1;
                }
            }
            let item = store.get(&place.of, &name("k0")).unwrap().unwrap();
            assert_eq!((item.body.as_str(), item.revision), ("\"before\"", 1));
            let checked = store.check().unwrap();
            assert_eq!((checked.faults, checked.items), (Vec::new(), 5), "with {more} pages more");
        }
        assert!(refused > 10, "{refused}");
        assert_eq!(store.check().unwrap().items, 10);
    }

    /// The keys of the documents that have one of these words.
    fn found(place: &Place, store: &Sqlite, words: &str) -> Vec<String> {
        let mut query = Query::new("c".into());
        query.any_word(words).unwrap();
        store.find(&place.of, &query).unwrap().items.into_iter().map(|item| item.key).collect()
    }

    #[test]
    fn words_are_found_by_their_stems() {
        let place = Place::new();
        let store = place.open().unwrap();
        place.put(&store, 0..1, "Deploys go out on Tuesdays.").unwrap();
        place.put(&store, 1..2, "Café au lait").unwrap();
        for (words, keys) in [("deploy", ["k0"]), ("deploying tuesday", ["k0"]), ("cafe", ["k1"])] {
            assert_eq!(found(&place, &store, words), keys, "{words}");
        }
        assert_eq!(found(&place, &store, "employ"), [""; 0]);
    }

    #[test]
    fn what_is_no_store_of_ours_is_left_alone() {
        let place = Place::new();
        std::fs::write(place.file(), "no database, but a text that is long enough to be taken for one".repeat(100))
            .unwrap();
        let refused = place.open().err().unwrap();
        assert!(refused.message.contains("its file is damaged"), "{refused:?}");
        std::fs::remove_file(place.file()).unwrap();
        Connection::open(place.file()).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        assert!(place.open().err().unwrap().message.contains("it is a database of another program"));
        std::fs::remove_file(place.file()).unwrap();
        drop(place.open().unwrap());
        for (version, told) in [(99, "a later"), (5, "an earlier")] {
            Connection::open(place.file()).unwrap().pragma_update(None, "user_version", version).unwrap();
            let expected = format!("{told} Toolcrib made it (version {version}, this one knows 6)");
            assert!(place.open().err().unwrap().message.contains(&expected), "{version}");
        }
    }

    #[test]
    fn a_damaged_page_is_found_and_said() {
        let place = Place::new();
        let store = place.open().unwrap();
        place.put(&store, 0..50, &"text ".repeat(500)).unwrap();
        assert_eq!(store.check().unwrap().faults, Vec::<String>::new());
        drop(store);
        let mut bytes = std::fs::read(place.file()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4096].fill(0xa5);
        std::fs::write(place.file(), bytes).unwrap();
        let found = place.open().and_then(|store| store.check());
        assert!(found.map_or_else(|failure| failure.message.contains("damaged"), |checked| !checked.faults.is_empty()));
    }

    #[test]
    fn a_copy_has_all_of_it() {
        let place = Place::new();
        let store = place.open().unwrap();
        place.put(&store, 0..20, "kept").unwrap();
        let copy = place.directory.path().join("copy");
        store.backup(&copy).unwrap();
        place.put(&store, 20..30, "later").unwrap();
        let copy = Sqlite::open(&copy, config::StoreSync::Full).unwrap();
        assert_eq!((copy.check().unwrap().items, store.check().unwrap().items), (20, 30));
        let mut query = Query::new("c".into());
        query.words("kept").unwrap();
        assert_eq!(copy.find(&place.of, &query).unwrap().total, 20);
    }
}
