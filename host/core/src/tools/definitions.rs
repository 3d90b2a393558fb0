//! What plugins say of their tools: asked when they are first needed, and admitted each time.

use super::provider::{Component, Ready};
use super::registry::Registry;
use crate::Host;
use crate::call::CallContext;
use base::envelope::Failure;
use config::DAY;
use contract::definition::Tool;
use contract::manifest::{Manifest, Origin};
use futures_util::future::{BoxFuture, join_all};
use guest::reach::Reach;
use policy::Policy;
use std::sync::Arc;
use std::time::Duration;

/// Days from now at which a plugin has to say the same as today: another day, another year, after 2038.
const OTHER_TIMES: [u64; 3] = [1, 400, 5000];

/// A plugin, and what came of compiling it.
pub type Compiled = (Arc<Manifest>, Result<(), Failure>);

/// The tools of a component that is in no registry, alone.
fn alone(component: Component, context: &CallContext) -> (CallContext, Arc<Manifest>) {
    let context = context.clone().tools(Arc::new(Registry::of(component)));
    let plugin = context.tools.plugins().next().expect("nothing else is there that it could collide with").clone();
    (context, plugin)
}

impl Host {
    /// Loads an admitted plugin and learns its tools, the first time. What was allowed under the same bytes, but said something else of its
    /// tools, is refused.
    pub fn ready<'a>(
        &'a self,
        plugin: &'a Arc<Manifest>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<&'a Ready, Failure>> {
        Box::pin(async move {
            let policy = self.policy();
            policy.admit(plugin)?;
            let ready = self.loaded(plugin, context).await?;
            self.admit_definitions(&policy, plugin, ready)?;
            Ok(ready)
        })
    }

    /// Loads a plugin of the context's registry, whatever it says of its tools.
    pub(crate) async fn loaded<'c>(
        &self,
        plugin: &Arc<Manifest>,
        context: &'c CallContext,
    ) -> Result<&'c Ready, Failure> {
        context.tools.ready(plugin, &self.sandbox, || self.reach_of_definitions(context), &*context.events).await
    }

    /// The reach of a plugin that is asked for its definitions.
    pub(super) fn reach_of_definitions(&self, context: &CallContext) -> Reach {
        Reach::for_definitions(self.policy().config(), context.backend.clone(), self.services.clone())
    }

    /// Admits what a loaded plugin says of its tools. Under a lock that is on record.
    pub(crate) fn admit_definitions(&self, policy: &Policy, plugin: &Manifest, ready: &Ready) -> Result<(), Failure> {
        policy.admit_definitions(plugin, ready.definitions())?;
        if policy.is_locked() {
            self.audit.admitted(plugin);
        }
        Ok(())
    }

    /// Asks a component that nobody has to have admitted for the digest of its definitions. It gets no rights for that.
    ///
    /// # Errors
    ///
    /// As a call of its tools, where it cannot be loaded.
    pub fn definitions_of<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let (alone, plugin) = alone(component, context);
            Ok(self.loaded(&plugin, &alone).await?.definitions().to_owned())
        })
    }

    /// Asks a component that nobody has to have admitted for its tools. It gets no rights for that.
    ///
    /// # Errors
    ///
    /// As [`Self::definitions_of`].
    pub fn tools_of_component<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<Arc<Tool>>, Failure>> {
        Box::pin(async move {
            let (alone, plugin) = alone(component, context);
            Ok(self.loaded(&plugin, &alone).await?.tools().to_vec())
        })
    }

    /// As [`Self::definitions_of`], asked anew at other times and with other random numbers.
    ///
    /// # Errors
    ///
    /// As there; `denied` where it does not always say the same.
    pub fn same_definitions_of<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let (alone, plugin) = alone(component, context);
            let ready = self.loaded(&plugin, &alone).await?;
            let policy = self.policy();
            let code = alone.tools.code(&plugin, ready, &self.sandbox, &policy.config().limits, &*alone.events).await?;
            for days in OTHER_TIMES {
                let reach = self.reach_of_definitions(&alone).ahead(Duration::from_secs(days * DAY));
                if code.definitions(&self.sandbox, reach).await?.is_some_and(|said| said != ready.definitions()) {
                    let message = format!("plugin `{}` does not always say the same of its tools", plugin.name());
                    return Err(Failure::denied(message)
                        .hint("it may ask the clock or random numbers: such a plugin cannot be vetted"));
                }
            }
            Ok(ready.definitions().to_owned())
        })
    }

    /// Compiles the plugins that are there and not compiled yet, so that no first call waits for that. Servers of others, which are not
    /// compiled, are not started. Returns what came of each.
    pub fn compile<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Vec<Compiled>> {
        Box::pin(async move {
            let is_compiled = |plugin: &&Arc<Manifest>| !matches!(plugin.id.origin, Origin::Upstream { .. });
            let compile = async |plugin: &Arc<Manifest>| {
                let ready = self.ready(plugin, context).await?;
                let policy = self.policy();
                context.tools.code(plugin, ready, &self.sandbox, &policy.config().limits, &*context.events).await?;
                Ok(())
            };
            let plugins = context.tools.plugins().filter(is_compiled);
            join_all(plugins.map(async |plugin| (plugin.clone(), compile(plugin).await))).await
        })
    }
}
