//! Redirects. Each address that a server names is judged as the first one was.

use super::{Answer, Deadline, Egress, Opened, Response};
use base::envelope::Failure;
use base::target::Target;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderName};
use policy::http::{ApprovedRoute, HttpGrant, Request};
use policy::scope::Scope;
use reqwest::{Method, StatusCode};

/// Redirects that are followed.
const MAX_HOPS: u32 = 5;
/// Headers that another origin may see: they tell nothing of who asks the first one.
#[rustfmt::skip]
const PUBLIC_HEADERS: [HeaderName; 5] = [
    header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT,
];

impl Egress {
    /// Sends a request, follows redirects, and reads the answer, within the time that the grant gives.
    pub fn fetch<'a>(
        &'a self,
        request: Request,
        target: Target,
        grant: &'a HttpGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Response, Failure>> {
        Box::pin(async move {
            let most = request.limit.min(grant.most_bytes());
            self.open(request, target, grant, scope).await?.read(most, &scope.guard).await
        })
    }

    /// The same up to the beginning of the answer's body, which is read with what is left of that time. Nobody minds the request's `limit`.
    pub fn open<'a>(
        &'a self,
        request: Request,
        target: Target,
        grant: &'a HttpGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Opened, Failure>> {
        Box::pin(async move {
            let mut deadline = Deadline::new(grant.timeout());
            let (mut request, mut target) = (request, target);
            let mut from: Option<ApprovedRoute> = None;
            for _ in 0..=MAX_HOPS {
                let hop = self.hop(&request, &target, from.as_ref(), grant, &mut deadline, scope).await;
                let (answer, route) = hop.map_err(|failure| told(from.as_ref().map(ApprovedRoute::target), failure))?;
                let Some(location) = redirect(&answer)? else {
                    return Opened::new(answer, target, deadline, &scope.guard);
                };
                let next = target.redirected(&location).map_err(|failure| told(Some(&target), failure))?;
                if target.is_encrypted() && !next.is_encrypted() {
                    let refusal = Failure::denied(format!("the redirect to `{next}` would leave HTTPS"));
                    grant.record(&request.method, &next, Err(&refusal), scope);
                    return Err(told(Some(&target), refusal));
                }
                request = redirected(request, answer.status(), &target, &next);
                (from, target) = (Some(route), next);
            }
            Err(Failure::denied(format!("the server redirects more than {MAX_HOPS} times")))
        })
    }
}

/// The request that a redirect asks for, by the rules of the Fetch standard (HTTP-redirect fetch).
fn redirected(mut request: Request, status: StatusCode, from: &Target, to: &Target) -> Request {
    let becomes_get = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method == Method::POST,
        StatusCode::SEE_OTHER => ![Method::GET, Method::HEAD].contains(&request.method),
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body.clear();
        request.headers.remove(header::CONTENT_TYPE);
        request.headers.remove(header::CONTENT_LANGUAGE);
    }
    if from.url().origin() != to.url().origin() {
        let kept = PUBLIC_HEADERS
            .iter()
            .flat_map(|name| request.headers.get_all(name).iter().map(move |value| (name.clone(), value.clone())));
        request.headers = kept.collect();
    }
    request
}

/// Says which redirect led there.
fn told(from: Option<&Target>, failure: Failure) -> Failure {
    match from {
        Some(from) => Failure { message: format!("`{from}` redirects: {}", failure.message), ..failure },
        None => failure,
    }
}

/// Where the answer redirects to, if it does.
fn redirect(answer: &Answer) -> Result<Option<String>, Failure> {
    let is_redirect = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = answer.headers().get(header::LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let location =
        location.to_str().map_err(|_| Failure::failed("the server redirects to something that is not a URL"))?;
    Ok(Some(location.to_owned()))
}
