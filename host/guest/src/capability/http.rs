//! `wit/http.wit`: requests to web servers, by the egress, where the grant admits them.

use super::Refusal;
use super::bindings::toolcrib::plugin::http;
use crate::reach::Reach;
use crate::sandbox::State;
use ::http::HeaderMap;
use base::envelope::Failure;
use base::target::Target;
use base::text::sanitize;
use egress::add_header;
use policy::event::Event;
use policy::http::{BODY_BYTES, Request as Prepared};
use policy::{self, http::HttpGrant};
use wasmtime::component::Resource;

/// Bytes of the body that a guest gets when it does not say.
const DEFAULT_LIMIT: u32 = 1 << 20;
/// Headers of a request.
const MAX_HEADERS: usize = 100;

/// A request that a guest prepares: the host's side of the resource. Judged when it is sent.
#[derive(Clone)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    limit: u32,
}

impl http::Host for State {}

impl http::HostRequest for State {
    async fn new(&mut self, method: String, url: String) -> wasmtime::Result<Resource<Request>> {
        self.meter.charge_bytes(method.len() + url.len())?;
        let request = Request { method, url, headers: Vec::new(), body: Vec::new(), limit: DEFAULT_LIMIT };
        Ok(self.table.push(request)?)
    }

    async fn header(&mut self, request: Resource<Request>, name: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len() + value.len())?;
        self.table.get_mut(&request)?.headers.push((name, value));
        Ok(())
    }

    async fn body(&mut self, request: Resource<Request>, bytes: Vec<u8>) -> wasmtime::Result<()> {
        self.meter.charge_bytes(bytes.len())?;
        self.table.get_mut(&request)?.body = bytes;
        Ok(())
    }

    async fn limit(&mut self, request: Resource<Request>, bytes: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&request)?.limit = bytes;
        Ok(())
    }

    async fn send(&mut self, request: Resource<Request>) -> Result<http::Response, Refusal> {
        let grant = self.grants()?.http()?.clone();
        let request = self.table.get(&request)?.clone();
        let Request { method, url, headers, body, limit } = request;
        let target = Target::parse(&url, grant.base())?;
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let limit = usize::try_from(limit).unwrap_or(BODY_BYTES).min(BODY_BYTES);
        let request = prepared(&method, &headers, body, limit, &grant)?;
        announce(&request, &target, &self.scope);
        let response = tokio::select! {
            biased;
            () = self.scope.cancel.cancelled() => return Err(Failure::cancelled().into()),
            response = self.scope.services.egress.fetch(request, target, &grant, &self.scope) => {
                response.map_err(|failure| self.scope.guard.redact_failure(failure))?
            }
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Ok(http::Response {
            status: response.status.as_u16(),
            headers: response.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            url: response.url,
            body: response.body,
            truncated: response.truncated,
        })
    }

    async fn drop(&mut self, request: Resource<Request>) -> wasmtime::Result<()> {
        self.table.delete(request)?;
        Ok(())
    }
}

/// A request that a guest has written, as far as it may write one.
pub(super) fn prepared(
    method: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
    limit: usize,
    grant: &HttpGrant,
) -> Result<Prepared, Failure> {
    if headers.len() > MAX_HEADERS {
        return Err(Failure::invalid(format!("a request has at most {MAX_HEADERS} headers")));
    }
    let method = policy::http::method(method)?;
    let mut prepared = Prepared { method, headers: HeaderMap::new(), body, limit };
    for &(name, value) in headers {
        if grant.writes_header(name) {
            let name = sanitize::line(name);
            return Err(Failure::invalid(format!("the header `{name}` is written by settings"))
                .hint("omit it: the host adds it"));
        }
        add_header(&mut prepared, name, value)?;
    }
    Ok(prepared)
}

/// Tells whoever watches the call which request is about to be judged and sent.
pub(super) fn announce(request: &Prepared, target: &Target, scope: &Reach) {
    let detail = sanitize::line(&format!("{} {target}", request.method)).into_owned();
    scope.emit(Event::Started { detail });
    if !request.method.is_safe() {
        // Whatever comes of it, the world may have changed.
        scope.touch_state();
    }
}
