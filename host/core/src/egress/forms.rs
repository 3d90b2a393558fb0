//! Forms that the host itself sends, with secrets in them: to a server that policy admitted, by the same addresses, authorities and judgement.
//!
//! No redirect is followed. What comes back may hold secrets as well, and is for the host alone: no guest gets it.

use super::body::{self, Body};
use super::connect::connect;
use super::{Egress, Special, Target, Told, USER_AGENT};
use crate::envelope::Failure;
use crate::policy::hosts::AdmittedTarget;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use std::net::IpAddr;
use zeroize::Zeroizing;

/// What a server answered to a form.
pub(crate) struct FormAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// It has more than was asked for.
    pub(crate) is_cut: bool,
}

impl Egress {
    /// Posts a form, each address of its server judged, and reads `most` bytes of the answer. The connection is used for this owner alone.
    pub(crate) async fn post_form(
        &self,
        form: &str,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
        owner: &str,
        most: usize,
    ) -> Result<FormAnswer, Failure> {
        let route = connect(&self.names, admitted, judge).await?;
        let target = route.target();
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
            (header::ACCEPT, HeaderValue::from_static("application/json")),
            (header::ACCEPT_ENCODING, HeaderValue::from_static(body::ENCODINGS)),
            (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        ]);
        let told = Told { method: Method::POST, url: target.url().clone(), headers, body: form.as_bytes().to_vec() };
        let mut answer = self.exchange(&route, told, owner, false).await?;
        let encoding = answer.headers().get(header::CONTENT_ENCODING);
        let mut packed = Body::new(encoding.map(|encoding| encoding.to_str().unwrap_or("?")))?;
        let (mut whole, mut is_cut) = (Zeroizing::new(Vec::new()), false);
        while !is_cut {
            let chunk = answer.chunk().await.map_err(|error| super::explain(&error, target, false))?;
            let Some(chunk) = chunk else { break };
            whole.extend(packed.push(&chunk)?);
            is_cut = whole.len() > most;
        }
        whole.truncate(most);
        Ok(FormAnswer { status: answer.status(), body: whole, is_cut })
    }
}
