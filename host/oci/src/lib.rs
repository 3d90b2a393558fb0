//! Asking a registry for a component: the manifest, by tag or digest, then the one layer, by the digest that the manifest names.
//!
//! Whatever is used was compared with a digest, or gives one: a tag means what the registry says, once, and is a digest from then on. No header
//! decides anything, `Docker-Content-Digest` neither. Nothing is sent but what anybody may ask: there are no accounts.
//!
//! oci-client 0.18 makes a `reqwest::Client` of its own, and would add 14 crates. Only the crate `egress` opens connections here: it checks each
//! address that a registry, its token server or a redirect leads to.
//!
//! It depends on `base` and `config`. Pages come from whoever calls, as a [`Web`].

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod artifact;
mod challenge;
#[cfg(test)]
mod tests;
mod web;

pub use artifact::Layer;
pub use web::{Answer, Web};

use artifact::{Document, INDEXES, MANIFESTS};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use challenge::{Bearer, authorization};
use config::source::digest::Digest;
use config::source::reference::Reference;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use url::Url;

/// Bytes of a manifest: what registries take (OCI distribution specification 1.1, "Pushing manifests").
pub const MOST_MANIFEST: u64 = 4 << 20;
/// Bytes of what gives a token.
const MOST_ANSWER: u64 = 64 << 10;
/// Characters of what a registry says is wrong.
const SHOWN: usize = 200;

/// A registry while one artifact of it is fetched.
pub struct Registry<'w> {
    web: &'w dyn Web,
    reference: &'w Reference,
    /// The value of `Authorization`, once the registry has asked for one.
    authorization: Option<String>,
}

/// What a reference means now.
#[derive(Debug)]
pub struct Resolved {
    /// The reference with the digest of its manifest.
    pub pinned: Reference,
    pub layer: Layer,
}

impl<'w> Registry<'w> {
    pub fn new(web: &'w dyn Web, reference: &'w Reference) -> Self {
        Self { web, reference, authorization: None }
    }

    /// Finds out what the reference means now.
    pub fn resolve(&mut self) -> BoxFuture<'_, Result<Resolved, Failure>> {
        Box::pin(async move {
            let reference = self.reference;
            let (found, document) = self.document(&reference.manifest_url(), MOST_MANIFEST).await?;
            if let Some(named) = reference.digest().filter(|named| **named != found) {
                return Err(other_bytes(&format!("the manifest of `{reference}`"), named, &found));
            }
            let pinned = reference.pinned(found);
            let layer = match document {
                Document::Component(layer) => layer,
                Document::Index(entry) => {
                    let within = || format!("the manifest `{}` of the index `{pinned}`", entry.digest);
                    if entry.size > MOST_MANIFEST {
                        return Err(too_long(&within(), entry.size, MOST_MANIFEST));
                    }
                    let (found, document) = self.document(&reference.manifest_of(&entry.digest), entry.size).await?;
                    if found != entry.digest {
                        return Err(other_bytes(&within(), &entry.digest, &found));
                    }
                    match document {
                        Document::Component(layer) => layer,
                        Document::Index(_) => {
                            return Err(unusable(&within(), "it is an index itself"));
                        }
                    }
                }
            };
            Ok(Resolved { pinned, layer })
        })
    }

    /// Reads the layer of what was resolved, which has at most `most` bytes.
    pub fn layer<'a>(&'a mut self, resolved: &'a Resolved, most: u64) -> BoxFuture<'a, Result<Vec<u8>, Failure>> {
        Box::pin(async move {
            let Layer { digest, size, .. } = &resolved.layer;
            let what = format!("the component of `{}`", resolved.pinned);
            // Before anything of it is asked for.
            if *size > most {
                return Err(too_long(&what, *size, most)
                    .hint("`component_mib` under [limits] is the most that a component may have"));
            }
            let answer = self.get(&self.reference.blob_of(digest), &[("accept", "*/*")], *size).await?;
            if answer.is_cut || answer.body.len() as u64 != *size {
                let had = if answer.is_cut { "more".into() } else { answer.body.len().to_string() };
                return Err(unusable(&what, &format!("its manifest says {size} bytes, and the registry sends {had}")));
            }
            let found = Digest::of(&answer.body);
            if found != *digest {
                return Err(other_bytes(&what, digest, &found));
            }
            Ok(answer.body)
        })
    }

    /// A manifest or index, and the digest of its bytes.
    async fn document(&mut self, url: &Url, most: u64) -> Result<(Digest, Document), Failure> {
        let accept = [MANIFESTS, INDEXES].concat().join(", ");
        let answer = self.get(url, &[("accept", &accept)], most).await?;
        let what = format!("the manifest of `{}`", self.reference);
        if answer.is_cut {
            return Err(unusable(&what, &format!("it is longer than {most} bytes")));
        }
        let content_type = answer.values("content-type").next();
        let document = Document::read(&answer.body, content_type).map_err(|why| unusable(&what, &why))?;
        Ok((Digest::of(&answer.body), document))
    }

    /// Asks the registry, and once more with a token where it wants one.
    async fn get(&mut self, url: &Url, headers: &[(&'static str, &str)], most: u64) -> Result<Answer, Failure> {
        let mut answer = self.ask(url, headers, most).await?;
        if answer.status == 401 && self.authorization.is_none() {
            self.authorization = Some(self.token(&answer).await?);
            answer = self.ask(url, headers, most).await?;
        }
        match answer.status {
            200 => Ok(answer),
            status => Err(self.refused(status, &answer)),
        }
    }

    async fn ask(&self, url: &Url, headers: &[(&'static str, &str)], most: u64) -> Result<Answer, Failure> {
        let authorization = self.authorization.iter().map(|value| ("authorization", value.as_str()));
        let headers: Vec<_> = headers.iter().copied().chain(authorization).collect();
        // An error has a body of its own, which has to fit.
        self.web.get(url, &headers, most.max(MOST_ANSWER)).await.map(|mut answer| {
            if let Ok(most) = usize::try_from(most)
                && answer.status == 200
                && answer.body.len() > most
            {
                answer.body.truncate(most);
                answer.is_cut = true;
            }
            answer
        })
    }

    /// The token that a registry gives to anybody, by its challenge.
    async fn token(&self, answer: &Answer) -> Result<String, Failure> {
        let registry = self.reference.registry();
        let what = |why: String| unusable(&format!("what `{registry}` asks for"), &why);
        let bearer = Bearer::find(answer.values("www-authenticate")).map_err(what)?.ok_or_else(|| self.closed())?;
        let url = bearer.url(self.reference.repository());
        let shown = without_query(&url);
        let answer = self.web.get(&url, &[("accept", "application/json")], MOST_ANSWER).await;
        let answer = answer.map_err(|failure| Failure {
            message: format!("`{registry}` has its tokens at `{shown}`: {}", failure.message),
            ..failure
        })?;
        match answer.status {
            200 => authorization(&answer.body).map_err(|why| {
                unusable(&format!("the answer of `{shown}`, which gives tokens for `{registry}`"), &why)
            }),
            401 | 403 => Err(self.closed()),
            status => Err(self.refused(status, &answer)),
        }
    }

    /// That only those with an account get it.
    fn closed(&self) -> Failure {
        let message = format!("`{}` is not given to everybody, or is not there", self.reference);
        Failure::new(Kind::Unavailable, message).hint(
            "check the name; where it needs an account, pull it with a program that has one, such as `wkg oci pull`, then `toolcrib plugin add FILE`",
        )
    }

    fn refused(&self, status: u16, answer: &Answer) -> Failure {
        let reference = self.reference;
        let said = said(&answer.body).map(|said| format!(": {said}")).unwrap_or_default();
        match status {
            401 | 403 => self.closed(),
            404 => Failure::new(Kind::Unavailable, format!("there is no `{reference}`{said}"))
                .hint("check the repository and the tag"),
            429 => Failure::new(Kind::Busy, format!("`{}` has had too many requests{said}", reference.registry()))
                .hint("try again later"),
            status => {
                let message = format!("`{}` answers {status} for `{reference}`{said}", reference.registry());
                Failure::new(Kind::Unavailable, message)
            }
        }
    }
}

/// What a registry says is wrong (OCI distribution specification 1.1, "Error codes").
fn said(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        errors: Vec<Fault>,
    }
    #[derive(Deserialize)]
    struct Fault {
        code: String,
        #[serde(default)]
        message: String,
    }
    let Answer { errors } = serde_json::from_slice(body).ok()?;
    let Fault { code, message } = errors.into_iter().next()?;
    let said: String = sanitize::line(&format!("{code} {message}")).trim().chars().take(SHOWN).collect();
    (!said.is_empty()).then_some(said)
}

/// Its query names nothing that a person has to read.
fn without_query(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url
}

/// That something is not what its digest says.
pub fn other_bytes(what: &str, named: &Digest, found: &Digest) -> Failure {
    Failure::denied(format!("{what} has other bytes than its digest says: {found}, not {named}"))
        .hint("the server, or something on the way to it, has changed them: nothing was written")
}

/// That something has more bytes than it may.
pub fn too_long(what: &str, size: u64, most: u64) -> Failure {
    Failure::limit(format!("{what} has {size} bytes (limit: {most} bytes)"))
}

fn unusable(what: &str, why: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{what} cannot be used: {}", sanitize::line(why)))
}
