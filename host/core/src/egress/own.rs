//! Requests that the host itself sends, with secrets in them: to a server that policy admitted, by the same addresses, authorities and judgement.
//!
//! No redirect is followed. What comes back may hold secrets as well, and is for the host alone: no guest gets it as it came.

use super::body::{self, Body};
use super::connect::connect;
use super::{Answer, Egress, FIRST_BYTE, Special, Target, Told, USER_AGENT, explain};
use crate::envelope::Failure;
use crate::policy::hosts::AdmittedTarget;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use std::net::IpAddr;
use std::time::Duration;
use zeroize::Zeroizing;

/// A request of the host's own.
pub(crate) struct OwnRequest<'r> {
    pub(crate) method: Method,
    /// Besides those that every request has.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whose connections are used.
    pub(crate) owner: &'r str,
    /// How long the server may think before it answers.
    pub(crate) patience: Duration,
    /// Without an answer nobody knows what has become of it.
    pub(crate) may_have_acted: bool,
}

/// What a server answered to it, its body still on its way.
pub(crate) struct OwnAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    target: Target,
    answer: Answer,
    body: Body,
    may_have_acted: bool,
}

/// What a server answered to a form.
pub(crate) struct FormAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// It has more than was asked for.
    pub(crate) is_cut: bool,
}

impl Egress {
    /// Sends a request, each address of its server judged.
    pub(crate) async fn send_own(
        &self,
        request: OwnRequest<'_>,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
    ) -> Result<OwnAnswer, Failure> {
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
    }

    /// Posts a form, and reads `most` bytes of the answer. The connection is used for this owner alone.
    pub(crate) async fn post_form(
        &self,
        form: &str,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
        owner: &str,
        most: usize,
    ) -> Result<FormAnswer, Failure> {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
            (header::ACCEPT, HeaderValue::from_static("application/json")),
        ]);
        let (method, body) = (Method::POST, form.as_bytes().to_vec());
        let request = OwnRequest { method, headers, body, owner, patience: FIRST_BYTE, may_have_acted: false };
        let mut answer = self.send_own(request, admitted, judge).await?;
        let (mut whole, mut is_cut) = (Zeroizing::new(Vec::new()), false);
        while !is_cut {
            let Some(piece) = answer.next().await? else { break };
            whole.extend(piece);
            is_cut = whole.len() > most;
        }
        whole.truncate(most);
        Ok(FormAnswer { status: answer.status, body: whole, is_cut })
    }
}

impl OwnAnswer {
    /// The next piece of the body, which may be empty; none at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let chunk = self.answer.chunk().await;
        let chunk = chunk.map_err(|error| explain(&error, &self.target, self.may_have_acted))?;
        chunk.map(|piece| self.body.push(&piece)).transpose()
    }
}
