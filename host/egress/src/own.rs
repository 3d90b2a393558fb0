//! Requests that the host itself sends, with secrets in them: to a server that policy admitted, by the same addresses, authorities and judgement.
//!
//! No redirect is followed. What comes back may hold secrets as well, and is for the host alone: no guest gets it as it came.

use super::body::{self, Body};
use super::connect::connect;
use super::{Answer, Egress, FIRST_BYTE, Told, USER_AGENT, explain};
use base::addresses::Special;
use base::envelope::Failure;
use base::target::Target;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderValue};
use policy::hosts::AdmittedTarget;
use reqwest::{Method, StatusCode};
use std::net::IpAddr;
use std::time::Duration;
use zeroize::Zeroizing;

/// A request of the host's own.
pub struct OwnRequest<'r> {
    pub method: Method,
    /// Besides those that every request has.
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whose connections are used.
    pub owner: &'r str,
    /// How long the server may think before it answers.
    pub patience: Duration,
    /// Without an answer nobody knows what has become of it.
    pub may_have_acted: bool,
}

/// What a server answered to it, its body still on its way.
pub struct OwnAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    target: Target,
    answer: Answer,
    body: Body,
    may_have_acted: bool,
}

/// What a server answered to a form.
pub struct FormAnswer {
    pub status: StatusCode,
    pub body: Zeroizing<Vec<u8>>,
    /// It has more than was asked for.
    pub is_cut: bool,
}

impl Egress {
    /// Sends a request, each address of its server judged.
    pub fn send_own<'a>(
        &'a self,
        request: OwnRequest<'a>,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<OwnAnswer, Failure>> {
        Box::pin(async move {
            let OwnRequest { method, mut headers, body, owner, patience, may_have_acted } = request;
            let route = connect(&self.names, admitted, judge).await?;
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(body::ENCODINGS));
            headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
            let target = route.target();
            let told = Told { method, url: target.url().clone(), headers, body };
            let mut answer = self.exchange(&route, told, owner, patience, may_have_acted).await?;
            let headers = std::mem::take(answer.headers_mut());
            let encoding = headers.get(header::CONTENT_ENCODING);
            let body = Body::new(encoding.map(|encoding| encoding.to_str().unwrap_or("?")))?;
            Ok(OwnAnswer { status: answer.status(), headers, target: target.clone(), answer, body, may_have_acted })
        })
    }

    /// Posts a form, and reads `most` bytes of the answer. The connection is used for this owner alone.
    pub fn post_form<'a>(
        &'a self,
        form: &'a str,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure> + Send + Sync + 'a,
        owner: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<FormAnswer, Failure>> {
        Box::pin(async move {
            let headers = HeaderMap::from_iter([
                (header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
                (header::ACCEPT, HeaderValue::from_static("application/json")),
            ]);
            let (method, body) = (Method::POST, form.as_bytes().to_vec());
            let request = OwnRequest { method, headers, body, owner, patience: FIRST_BYTE, may_have_acted: false };
            let mut answer = self.send_own(request, admitted, judge).await?;
            let (mut whole, mut is_cut) = (Zeroizing::new(Vec::new()), false);
            while !is_cut {
                let Some(piece) = answer.piece().await? else { break };
                whole.extend(piece);
                is_cut = whole.len() > most;
            }
            whole.truncate(most);
            Ok(FormAnswer { status: answer.status, body: whole, is_cut })
        })
    }
}

impl OwnAnswer {
    /// What it is, without what is said more of that.
    pub fn media_type(&self) -> String {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The whole of it; none where that is more than `most` bytes.
    pub fn whole(mut self, most: usize) -> BoxFuture<'static, Result<Option<Vec<u8>>, Failure>> {
        Box::pin(async move {
            let mut whole = Vec::new();
            while let Some(piece) = self.piece().await? {
                whole.extend(piece);
                if whole.len() > most {
                    return Ok(None);
                }
            }
            Ok(Some(whole))
        })
    }

    /// The next piece of the body, which may be empty; none at its end.
    pub fn piece(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Failure>> {
        Box::pin(async move {
            let chunk = self.answer.chunk().await;
            let chunk = chunk.map_err(|error| explain(&error, &self.target, self.may_have_acted))?;
            chunk.map(|piece| self.body.push(&piece)).transpose()
        })
    }
}
