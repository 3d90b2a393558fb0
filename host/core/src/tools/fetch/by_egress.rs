//! Pages by the one egress, for a person's own command.

use crate::Host;
use crate::call::CallContext;
use base::envelope::{Failure, Kind};
use base::target::Target;
use config::{Config, HostPattern, ShapeAction};
use egress::Egress;
use futures_util::future::BoxFuture;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use oci::{Answer, Web};
use policy::Policy;
use policy::http::{HttpGrant, Request};
use policy::scope::Scope;
use secrets::Secrets;
use std::sync::Arc;
use url::Url;

/// Pages as far as a person's command may fetch them.
pub(super) struct ByEgress {
    grant: HttpGrant,
    scope: Scope,
    egress: Arc<Egress>,
}

impl ByEgress {
    /// For who has typed a URL, and admits `hosts` besides. `most` is the longest body that anybody asks for.
    pub(super) fn new(
        typed: &Url,
        hosts: &[HostPattern],
        most: u64,
        policy: &Policy,
        context: &CallContext,
        host: &Host,
    ) -> Result<Self, Failure> {
        let most = usize::try_from(most.max(oci::MOST_MANIFEST)).unwrap_or(usize::MAX);
        let grant = HttpGrant::of_download(typed, hosts, most, policy.config())?;
        // A registry's token looks like somebody's secret, and is what anybody gets. Of secrets that are kept nothing is known here: a body
        // without one would have another digest.
        let mut config: Config = policy.config().clone();
        config.leaks.shapes = ShapeAction::Off;
        let scope = Scope::of_host("plugin add", &config, context.backend.clone(), Arc::new(Secrets::none()));
        Ok(Self { grant, scope, egress: host.services.egress.clone() })
    }
}

impl Web for ByEgress {
    fn get<'a>(
        &'a self,
        url: &'a Url,
        headers: &'a [(&'static str, &'a str)],
        most: u64,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let target = Target::parse(url.as_str(), None)?;
            let mut sent = HeaderMap::new();
            for (name, value) in headers {
                let mut value = HeaderValue::from_str(value)
                    .map_err(|_| Failure::new(Kind::Internal, format!("the header `{name}` cannot be sent")))?;
                value.set_sensitive(*name == "authorization");
                sent.insert(HeaderName::from_static(name), value);
            }
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            let request = Request { method: Method::GET, headers: sent, body: Vec::new(), limit };
            let response = self.egress.fetch(request, target, &self.grant, &self.scope).await?;
            let text =
                |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
            Ok(Answer {
                status: response.status.as_u16(),
                headers: response.headers.iter().filter_map(text).collect(),
                body: response.body,
                is_cut: response.truncated,
            })
        })
    }
}
