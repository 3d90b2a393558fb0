//! What plugins keep before their agent's eyes: the texts in their collection `@pinned`, which every door shows.

use crate::Host;
use crate::call::CallContext;
use base::envelope::Failure;
use base::text::sanitize;
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::sync::Arc;
use store::{Namespace, PINNED, Query};
use tokio::sync::watch;

/// Texts of a plugin, and bytes of all of them.
const MOST: u32 = 64;
const BYTES: usize = 64 << 10;

/// What an agent is to see all the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// By plugin and key.
    pub pinned: Vec<Pinned>,
    /// Why there is less than there should be; a turn goes on all the same.
    pub notices: Vec<String>,
}

/// A text that an agent is to see all the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pinned {
    /// The plugin that keeps it.
    pub plugin: String,
    /// What the plugin calls it.
    pub key: String,
    /// Without secrets, and without what a screen obeys.
    pub text: String,
}

impl Host {
    /// Changes when this program changes what is pinned, for whomever; other programs may change it, too.
    #[must_use]
    pub fn pins(&self) -> watch::Receiver<()> {
        self.services.store.pins.subscribe()
    }

    /// What plugins keep before the eyes of the agent of this session, by plugin and key: of the plugins that have a tool in it, and may keep
    /// anything. At most 64 texts of a plugin, and 64 KiB in all; what comes after that is left out, with a notice.
    pub fn pinned<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Shown> {
        Box::pin(async move {
            let mut shown = Shown::default();
            // Looking makes no store.
            if self.services.store.is_there()
                && let Err(failure) = self.find_pinned(context, &mut shown).await
            {
                shown.notices.push(format!("what is pinned cannot be shown: {}", failure.message));
            }
            shown
        })
    }

    async fn find_pinned(&self, context: &CallContext, shown: &mut Shown) -> Result<(), Failure> {
        let mut left = BYTES;
        for of in self.keepers(context)? {
            let plugin = of.plugin.clone();
            let mut query = Query::new(PINNED.to_owned());
            query.limit(MOST);
            for item in self.services.store.find(of, query).await?.items {
                // What is no text is nothing to show.
                let Ok(text) = serde_json::from_str::<String>(&item.body) else { continue };
                let text = self.redacted(&sanitize::text(&text));
                let key = self.redacted(&item.key);
                match left.checked_sub(text.len() + key.len()) {
                    Some(rest) => left = rest,
                    None => {
                        shown.notices.push(format!("more is pinned than the {} KiB that are shown", BYTES >> 10));
                        return Ok(());
                    }
                }
                shown.pinned.push(Pinned { plugin: plugin.clone(), key, text });
            }
        }
        Ok(())
    }

    /// Whose documents the plugins of a session keep.
    pub(super) fn keepers(&self, context: &CallContext) -> Result<Vec<Namespace>, Failure> {
        let policy = self.within(self.policy(), context)?;
        let has_tool =
            |plugin: &&Arc<Manifest>| plugin.tools.iter().any(|tool| context.session.admit(tool, plugin).is_ok());
        let plugins = context.tools.plugins().filter(has_tool);
        let granted = plugins.filter_map(|plugin| {
            let grants = policy.grants_of(plugin);
            grants.records().ok().map(|grant| Namespace::of(grant, &context.session))
        });
        let mut keepers: Vec<Namespace> = granted.collect();
        keepers.sort_by(|one, other| one.plugin.cmp(&other.plugin));
        Ok(keepers)
    }
}
