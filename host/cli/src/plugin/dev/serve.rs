//! `toolcrib plugin dev --serve`: what was built last, for a client that speaks MCP over standard input and output.
//!
//! Cases run in a host of their own, as they do without a client. The client's host goes on from build to build: it gets the rights of each by
//! [`Host::set`](toolcrib::Host::set), as they are bound to its bytes.

use super::super::super::call::cancel_on_signal;
use super::super::super::screen::report;
use super::super::super::setup::Setup;
use super::super::super::{Global, calls, notice, serve};
use super::super::cases::Loaded;
use super::watch::Watched;
use super::{Bench, Front, tell_changed};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;
use toolcrib::Host;
use toolcrib::call::CallContext;
use toolcrib::envelope::Failure;
use toolcrib::tools::registry::Registry;
use toolcrib_serve::mcp::roots::Opened;
use toolcrib_serve::mcp::{Results, stdio};
use toolcrib_serve::{Catalog, Notices};

pub(super) async fn serve(global: &Global, watched: Watched) -> Result<ExitCode, Failure> {
    let setup = Setup::serving(global).await?;
    let stop = setup.context.cancel.clone();
    cancel_on_signal(stop.clone())?;
    let _announced = calls::announce(&setup);
    // Without tools until there are some: a client that comes during the first build, or after one that failed, is not turned away.
    let (registry, current) = watch::channel(Arc::default());
    let catalog = Catalog::following(current, Notices::new(notice));
    let door = serve::door(global, &setup, catalog, "mcp:stdio", None, Results::default());
    let offered = Offered { host: setup.host.clone(), context: setup.context.clone(), registry, settings: Vec::new() };
    let developing = tokio::spawn(develop(global.clone(), watched, offered));
    let served = stdio::serve(door.clone(), Opened::unasked(), stop).await.map(|()| ExitCode::SUCCESS);
    // What builds is dropped with it, and ends.
    developing.abort();
    let _ = developing.await;
    serve::close(&setup, &door, None, served).await
}

/// Builds the project after each change, and has the client call what came of it. An error is that the author has interrupted it.
async fn develop(global: Global, mut watched: Watched, mut offered: Offered) -> Result<(), Failure> {
    loop {
        match Bench::built(&global, Front::Client).await? {
            Some(bench) => {
                // Before its cases, which may take long.
                offered.offer(&bench.loaded).await;
                bench.check().await?;
            }
            None => offered.tell_kept(),
        }
        let Some(path) = watched.changed().await else { return Ok(()) };
        tell_changed(&path);
    }
}

/// What the client can call.
struct Offered {
    host: Arc<Host>,
    context: CallContext,
    registry: watch::Sender<Arc<Registry>>,
    /// Which bytes they are, and what these may do; nothing before the first.
    settings: Vec<String>,
}

impl Offered {
    /// Puts a build in the place of the one before, if it is another plugin or may do something else. Calls in flight keep theirs.
    async fn offer(&mut self, Loaded { settings, component, .. }: &Loaded) {
        if self.settings == *settings {
            return;
        }
        // The rights first: a client that hears of the plugin asks at once for what can be called of it.
        if let Err(failure) = self.host.set(settings) {
            report(&failure);
            return self.tell_kept();
        }
        self.settings.clone_from(settings);
        let registry = Arc::new(Registry::of(component.clone()));
        self.registry.send_replace(registry.clone());
        self.tell_missing(registry).await;
    }

    /// Says which tools the client is not offered: of those that have no right that they need, an author would look for the fault elsewhere.
    async fn tell_missing(&self, registry: Arc<Registry>) {
        let all = self.host.all_tools(&self.context.clone().tools(registry)).await;
        all.notices.iter().for_each(|text| notice(text));
        for (tool, why) in &all.tools {
            if let Some(why) = why {
                notice(&format!("the client is not offered `{}`: {}", tool.name(), why.message));
            }
        }
    }

    fn tell_kept(&self) {
        match self.settings.is_empty() {
            true => notice("the client has no tools yet"),
            false => notice("the client still has the build of before"),
        }
    }
}
