//! A server of the Model Context Protocol that others wrote: what was accepted of it is what it shows and what it says, so nothing of it runs before
//! one of its tools is called.

use super::{Code, LoadError, Provider, Ready, Refused, Said};
use base::envelope::{Failure, Output};
use config::{Limits, UpstreamSection, upstream_name_fault};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use guest::reach::Reach;
use guest::sandbox::Sandbox;
use policy::Grants;
use policy::event::EventSink;
use std::path::Path;
use std::sync::Arc;
use upstream::{Accepted, Upstream, Upstreams};

/// One server.
pub(in crate::tools) struct Server {
    manifest: Arc<Manifest>,
    upstream: Arc<Upstream>,
    /// None where nothing is started.
    upstreams: Option<Arc<Upstreams>>,
}

/// The tools of a server, ready to be called.
pub(crate) struct Remote {
    upstream: Arc<Upstream>,
    upstreams: Arc<Upstreams>,
}

impl Server {
    /// Takes what settings say of a server, and what was accepted of it, which lies below `config`.
    pub(in crate::tools) fn new(
        name: &str,
        section: &UpstreamSection,
        config: &Path,
        upstreams: Option<Arc<Upstreams>>,
    ) -> Result<Self, Refused> {
        let refused = |reason| Refused { origin: name.to_owned(), reason };
        if let Some(fault) = upstream_name_fault(name) {
            return Err(refused(fault));
        }
        if let Some(fault) = section.fault() {
            return Err(refused(format!("[upstream.{name}] {fault}; `toolcrib upstream add` writes a whole section")));
        }
        let accepted = Accepted::read(config, name, &section.accepted).map_err(refused)?;
        let manifest = Arc::new(accepted.manifest(name, section).map_err(refused)?);
        let declared = manifest.id.approved_as().to_owned();
        let upstream = Arc::new(Upstream { name: name.to_owned(), section: section.clone(), accepted, declared });
        Ok(Self { manifest, upstream, upstreams })
    }
}

impl Provider for Server {
    fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    fn load<'a>(
        &'a self,
        _: &'a Arc<Sandbox>,
        _: Reach,
        _: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Ready, LoadError>> {
        Box::pin(async move {
            let tools = &self.upstream.accepted.tools;
            let offered = self.manifest.tools.iter().filter_map(|name| Some((name, tools.get(name)?)));
            let definitions = offered.map(|(name, tool)| tool.definition(name)).collect::<Result<Vec<_>, _>>()?;
            let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
            // They were checked when they were accepted, and are the same bytes.
            Ok(Ready::checked_before(&self.manifest, Said { definitions, json }))
        })
    }

    fn code<'a>(
        &'a self,
        _: &'a Arc<Sandbox>,
        _: &'a Limits,
        _: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Code, LoadError>> {
        Box::pin(async move {
            let upstreams =
                self.upstreams.clone().ok_or_else(|| LoadError::Passing("no server is started here".into()))?;
            Ok(Code::Upstream(Remote { upstream: self.upstream.clone(), upstreams }))
        })
    }
}

impl Remote {
    /// Calls a tool, as [`Code::call`] does.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        grants: &Grants,
        scope: &Arc<Reach>,
    ) -> Result<Output, Failure> {
        // The request may be on its way before anything is waited for.
        scope.accept()?;
        let grant = grants.upstream()?;
        let _waiting = scope.clock.waiting();
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => Err(match self.upstream.only_reads(tool) {
                true => Failure::cancelled(),
                false => Failure::cancelled().hint("the server was told, and may go on all the same"),
            }),
            called = Box::pin(self.upstreams.call(&self.upstream, tool, arguments, grant, &scope.scope)) => {
                called.map_err(|failure| scope.guard.redact_failure(failure))
            }
        }
    }
}
