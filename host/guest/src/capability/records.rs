//! `wit/records.wit`: documents that stay, in the namespace of the agent and the plugin, which no guest names.

use super::Refusal;
use super::bindings::toolcrib::plugin::records;
use crate::sandbox::State;
use audit::Action;
use base::capability::Capability;
use base::envelope::Failure;
use base::text::sanitize;
use policy::guard::Exit;
use store::{Change, Item, Name, Namespace, Page, Query, texts};
use wasmtime::component::Resource;

/// Changes that a guest prepares: the host's side of the resource.
#[derive(Clone, Default)]
pub struct Batch {
    changes: Vec<Change>,
    /// What a person is asked first, and what belongs to it.
    confirm: Option<(String, String)>,
}

/// A look that a guest prepares. What cannot be looked for so is said when it is run.
#[derive(Clone)]
pub struct Look {
    query: Query,
    /// The text to whose meaning it is near.
    near: Option<String>,
    refused: Option<Failure>,
}

impl Look {
    /// Keeps the first thing that is wrong.
    fn note(&mut self, outcome: impl FnOnce(&mut Query) -> Result<(), Failure>) {
        if let Err(refused) = outcome(&mut self.query) {
            self.refused.get_or_insert(refused);
        }
    }
}

impl From<Item> for records::Item {
    fn from(Item { key, body, revision, made_ms, changed_ms, rank }: Item) -> Self {
        Self { key, body, revision, made_ms, changed_ms, rank }
    }
}

impl State {
    /// Whose documents a call is about: the agent of its session and the plugin.
    fn namespace(&mut self) -> Result<Namespace, Failure> {
        Ok(Namespace::of(self.grants()?.records()?, &self.scope.session))
    }

    /// Asks a person what the plugin wants asked. Returns who or what allowed it.
    async fn asked(&mut self, question: Option<(String, String)>) -> Result<String, Failure> {
        let Some((action, details)) = question else { return Ok("allowed".into()) };
        let grant = self.grants()?.records()?.clone();
        grant.approve(&action, &details, &self.scope).await
    }

    /// Writes down what was changed, and who or what allowed it, or why it was not.
    fn record_changes(&self, changes: &[Change], outcome: Result<String, Failure>) {
        let told = |change: &Change| match change {
            Change::Put(name, body) => Some(format!("put {}/{} ({} bytes)", name.collection, name.key, body.len())),
            Change::Delete(name) => Some(format!("delete {}/{}", name.collection, name.key)),
            Change::Expect(..) | Change::Embed(..) => None,
        };
        let what = changes.iter().filter_map(told).collect::<Vec<_>>().join("; ");
        let decision = match outcome {
            Ok(by) => by,
            Err(failure) => format!("{}: {}", failure.kind.name(), failure.message),
        };
        self.scope.record(Action {
            capability: Capability::Records,
            what: sanitize::line(&what).into_owned(),
            confinement: None,
            declaration: None,
            decision,
        });
    }
}

impl records::Host for State {
    async fn get(&mut self, collection: String, key: String) -> Result<Option<records::Item>, Refusal> {
        self.meter.charge_bytes(collection.len() + key.len())?;
        let of = self.namespace()?;
        Ok(self.scope.services.store.get(of, Name { collection, key }).await?.map(records::Item::from))
    }
}

impl records::HostBatch for State {
    async fn new(&mut self) -> wasmtime::Result<Resource<Batch>> {
        Ok(self.table.push(Batch::default())?)
    }

    async fn put(
        &mut self,
        batch: Resource<Batch>,
        collection: String,
        key: String,
        body: String,
    ) -> wasmtime::Result<()> {
        self.meter.charge_bytes(collection.len() + key.len() + body.len())?;
        self.table.get_mut(&batch)?.changes.push(Change::Put(Name { collection, key }, body));
        Ok(())
    }

    async fn expect(
        &mut self,
        batch: Resource<Batch>,
        collection: String,
        key: String,
        revision: u64,
    ) -> wasmtime::Result<()> {
        self.meter.charge_bytes(collection.len() + key.len())?;
        self.table.get_mut(&batch)?.changes.push(Change::Expect(Name { collection, key }, revision));
        Ok(())
    }

    async fn delete(&mut self, batch: Resource<Batch>, collection: String, key: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(collection.len() + key.len())?;
        self.table.get_mut(&batch)?.changes.push(Change::Delete(Name { collection, key }));
        Ok(())
    }

    async fn embed(
        &mut self,
        batch: Resource<Batch>,
        collection: String,
        key: String,
        pointer: String,
    ) -> wasmtime::Result<()> {
        self.meter.charge_bytes(collection.len() + key.len() + pointer.len())?;
        self.table.get_mut(&batch)?.changes.push(Change::Embed(Name { collection, key }, pointer));
        Ok(())
    }

    async fn confirm(&mut self, batch: Resource<Batch>, action: String, details: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(action.len() + details.len())?;
        self.table.get_mut(&batch)?.confirm = Some((action, details));
        Ok(())
    }

    async fn commit(&mut self, batch: Resource<Batch>) -> Result<Vec<records::Item>, Refusal> {
        let of = self.namespace()?;
        let Batch { changes, confirm } = self.table.get(&batch)?.clone();
        // As JSON writes them, and as they are.
        let spelled = changes.iter().flat_map(|change| match change {
            Change::Put(name, body) => vec![name.collection.clone(), name.key.clone(), body.clone(), texts(body)],
            Change::Expect(..) | Change::Delete(_) | Change::Embed(..) => Vec::new(),
        });
        let spelled: Vec<String> = spelled.collect();
        let admitted = match self.scope.guard.check(Exit::Write, spelled.iter().map(String::as_bytes)) {
            Ok(()) => self.asked(confirm).await,
            Err(refusal) => Err(refusal),
        };
        let outcome = match &admitted {
            Ok(_) => self.scope.services.store.commit(of, changes.clone()).await,
            Err(refusal) => Err(refusal.clone()),
        };
        self.record_changes(&changes, admitted.and_then(|by| outcome.as_ref().map(|_| by).map_err(Failure::clone)));
        self.scope.touch_state();
        Ok(outcome?.into_iter().map(records::Item::from).collect())
    }

    async fn drop(&mut self, batch: Resource<Batch>) -> wasmtime::Result<()> {
        self.table.delete(batch)?;
        Ok(())
    }
}

impl records::HostQuery for State {
    async fn new(&mut self, collection: String) -> wasmtime::Result<Resource<Look>> {
        self.meter.charge_bytes(collection.len())?;
        Ok(self.table.push(Look { query: Query::new(collection), near: None, refused: None })?)
    }

    async fn equals(&mut self, look: Resource<Look>, pointer: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(pointer.len() + value.len())?;
        self.table.get_mut(&look)?.note(|query| query.equals(&pointer, &value));
        Ok(())
    }

    async fn between(
        &mut self,
        look: Resource<Look>,
        pointer: String,
        low: String,
        high: String,
    ) -> wasmtime::Result<()> {
        self.meter.charge_bytes(pointer.len() + low.len() + high.len())?;
        self.table.get_mut(&look)?.note(|query| query.between(&pointer, &low, &high));
        Ok(())
    }

    async fn words(&mut self, look: Resource<Look>, text: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(text.len())?;
        self.table.get_mut(&look)?.note(|query| query.words(&text));
        Ok(())
    }

    async fn any_word(&mut self, look: Resource<Look>, text: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(text.len())?;
        self.table.get_mut(&look)?.note(|query| query.any_word(&text));
        Ok(())
    }

    async fn near(&mut self, look: Resource<Look>, text: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(text.len())?;
        self.table.get_mut(&look)?.near = Some(text);
        Ok(())
    }

    async fn order(&mut self, look: Resource<Look>, pointer: String, descending: bool) -> wasmtime::Result<()> {
        self.meter.charge_bytes(pointer.len())?;
        self.table.get_mut(&look)?.note(|query| query.order(&pointer, descending));
        Ok(())
    }

    async fn limit(&mut self, look: Resource<Look>, items: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&look)?.query.limit(items);
        Ok(())
    }

    async fn after(&mut self, look: Resource<Look>, cursor: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(cursor.len())?;
        self.table.get_mut(&look)?.note(|query| query.after(&cursor));
        Ok(())
    }

    async fn run(&mut self, look: Resource<Look>) -> Result<records::Page, Refusal> {
        let of = self.namespace()?;
        let Look { query, near, refused } = self.table.get(&look)?.clone();
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        let store = &self.scope.services.store;
        let Page { items, total, next } = match near {
            None => store.find(of, query).await?,
            Some(text) => tokio::select! {
                biased;
                // A model may think for long.
                () = self.scope.cancel.cancelled() => return Err(Failure::cancelled().into()),
                found = store.nearest(of, query, &text, &self.scope) => found?,
            },
        };
        Ok(records::Page { items: items.into_iter().map(records::Item::from).collect(), total, next })
    }

    async fn drop(&mut self, look: Resource<Look>) -> wasmtime::Result<()> {
        self.table.delete(look)?;
        Ok(())
    }
}
