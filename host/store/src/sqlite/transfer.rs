//! Documents of all namespaces at once: listed, read for an export, put by an import. Their format is in `exchange.rs`.

use super::{Making, Sqlite, There, failed, item, namespace, now_ms};
use crate::exchange::{Holding, Imported, Stored, in_one_line};
use crate::{Item, Name, Namespace};
use base::envelope::{Failure, Kind};
use rusqlite::TransactionBehavior;
use std::collections::BTreeSet;

impl Sqlite {
    /// What each namespace has that has anything.
    pub(crate) fn list(&self) -> Result<Vec<Holding>, Failure> {
        let connection = self.0.lock();
        let run = || -> rusqlite::Result<Vec<Holding>> {
            let mut select = connection
                .prepare("SELECT agent, plugin, items, bytes FROM namespace WHERE items > 0 ORDER BY agent, plugin")?;
            let holdings = select.query_map([], |row| {
                Ok(Holding { agent: row.get(0)?, plugin: row.get(1)?, items: row.get(2)?, bytes: row.get(3)? })
            })?;
            holdings.collect()
        };
        run().map_err(|error| failed(&error))
    }

    /// Hands over how many documents all agents have, or one, and the documents: all of the same moment.
    pub(crate) fn export<T>(
        &self,
        agent: Option<&str>,
        take: impl FnOnce(u64, &mut dyn Iterator<Item = Result<Stored, Failure>>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut connection = self.0.lock();
        let transaction = connection.transaction().map_err(|error| failed(&error))?;
        // A cross join keeps the order of the tables: both are read by their index, and nothing is sorted.
        let from = "FROM namespace CROSS JOIN item ON item.namespace = namespace.id WHERE ?1 IS NULL OR agent = ?1";
        let items = transaction.query_row(&format!("SELECT count(*) {from}"), [agent], |row| row.get(0));
        let items = items.map_err(|error| failed(&error))?;
        let pointer = "(SELECT pointer FROM embedding WHERE embedding.id = item.id) AS embed";
        let select = format!("SELECT agent, plugin, item.*, {pointer} {from} ORDER BY agent, plugin, collection, key");
        let mut select = transaction.prepare(&select).map_err(|error| failed(&error))?;
        let documents = select.query_map([agent], |row| {
            let of = Namespace { agent: row.get("agent")?, plugin: row.get("plugin")? };
            Ok(Stored { of, collection: row.get("collection")?, item: item(row, 0.0)?, embed: row.get("embed")? })
        });
        let documents = documents.map_err(|error| failed(&error))?;
        take(items, &mut documents.map(|document| document.map_err(|error| failed(&error))))
    }

    /// Puts documents with the revisions and times that they have: all of them, or none.
    pub(crate) fn import(
        &self,
        documents: impl Iterator<Item = Result<Stored, Failure>>,
        limits: &config::Store,
        replace: bool,
    ) -> Result<Imported, Failure> {
        let mut connection = self.0.lock();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failed(&error))?;
        let mut making = Making { transaction, namespace: 0, now: now_ms() };
        let (mut imported, mut touched) = (Imported::default(), BTreeSet::new());
        let (mut conflicts, mut first) = (0, None);
        for document in documents {
            let Stored { of, collection, mut item, embed } = document?;
            making.namespace = namespace(&making.transaction, &of)?;
            touched.insert(making.namespace);
            let name = Name { collection, key: item.key.clone() };
            match making.there(&name)? {
                None => {
                    making.import(None, &name, &item, embed.as_deref())?;
                    imported.made += 1;
                }
                Some(there) if in_one_line(&making.body(there.id)?) == item.body => imported.skipped += 1,
                Some(there) if replace => {
                    // Whoever has read the one that was there must not take this one for it.
                    item.revision = item.revision.max(there.revision.cast_unsigned() + 1);
                    making.import(Some(&there), &name, &item, embed.as_deref())?;
                    imported.replaced += 1;
                }
                Some(_) => {
                    conflicts += 1;
                    first.get_or_insert((of, name));
                }
            }
        }
        if let Some((of, name)) = first {
            return Err(conflict(&of, &name, conflicts));
        }
        for namespace in touched {
            making.namespace = namespace;
            making.check(limits)?;
        }
        making.transaction.commit().map_err(|error| failed(&error))?;
        Ok(imported)
    }
}

impl Making<'_> {
    fn import(&self, there: Option<&There>, name: &Name, item: &Item, embed: Option<&str>) -> Result<(), Failure> {
        self.write(there, name, item)?;
        embed.map_or(Ok(()), |pointer| self.embed(name, pointer))
    }

    fn body(&self, id: i64) -> Result<String, Failure> {
        let read = || {
            let mut select = self.transaction.prepare_cached("SELECT body FROM item WHERE id = ?1")?;
            select.query_row([id], |row| row.get(0))
        };
        read().map_err(|error| failed(&error))
    }
}

fn conflict(Namespace { agent, plugin }: &Namespace, Name { collection, key }: &Name, conflicts: u64) -> Failure {
    let first = format!("`{key}` in collection `{collection}` of agent `{agent}` and plugin `{plugin}`");
    let message = match conflicts {
        1 => format!("{first} is there already with another body"),
        _ => format!("{conflicts} documents are there already with another body; the first is {first}"),
    };
    Failure::new(Kind::Usage, message).hint("nothing was imported; `--replace` replaces what is there")
}
