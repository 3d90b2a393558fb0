//! Pages by the one egress, for a person's own command.

use super::web::{Answer, Web};
use crate::Host;
use crate::call::CallContext;
use crate::call::scope::Scope;
use crate::config::{Config, HostPattern, ShapeAction};
use crate::egress::{Request, Target};
use crate::envelope::{Failure, Kind};
use crate::policy::Policy;
use crate::policy::http::HttpGrant;
use crate::secrets::Secrets;
use futures_util::future::BoxFuture;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use url::Url;

/// Pages as far as a person's command may fetch them.
pub(super) struct ByEgress {
    grant: HttpGrant,
    scope: Scope,
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
        let most = usize::try_from(most.max(super::registry::MOST_MANIFEST)).unwrap_or(usize::MAX);
        let grant = HttpGrant::of_download(typed, hosts, most, policy.config())?;
        // A registry's token looks like somebody's secret, and is what anybody gets. Of secrets that are kept nothing is known here: a body
        // without one would have another digest.
        let mut config: Config = policy.config().clone();
        config.leaks.shapes = ShapeAction::Off;
        let (backend, egress) = (context.backend.clone(), host.egress.clone());
        let scope = Scope::of_host("plugin add", &config, backend, egress, Arc::new(Secrets::none()));
        Ok(Self { grant, scope })
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
            let response = self.scope.egress.fetch(request, target, &self.grant, &self.scope).await?;
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
