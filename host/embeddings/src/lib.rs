//! Vectors of texts, by which what says the same in other words is found: asked of an endpoint in OpenAI's form, or of a program that reads
//! and writes the same as lines.
//!
//! `wire.rs` is that form. The store keeps the vectors and looks for those that are near (`store/vectors.rs`).
//!
//! It depends on `egress` and `backend`, by which a model is asked, on `policy`, `base`, `config` and `secrets`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod program;
mod wire;

use backend::Backend;
use backend::local::Local;
use base::dirs::Dirs;
use base::envelope::{Failure, Kind};
use base::target::Target;
use base::text::sanitize;
use egress::Egress;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use policy::guard::Exit;
use policy::http::HttpGrant;
use policy::http::{BODY_BYTES, Request};
use policy::in_force::InForce;
use policy::scope::Scope;
use program::Program;
use secrets::Secrets;
use std::sync::Arc;
use url::Url;

/// Texts that a model is asked about at once, and bytes of all of them: a server without other hardware answers that within the time it has.
pub const TEXTS: usize = 32;
pub const QUESTION_BYTES: usize = 32 << 10;
/// Bytes of a text; a longer one is known by its beginning. Models read 256 to 8,192 tokens, mostly of two bytes and more.
pub const TEXT_BYTES: usize = 16 << 10;
/// Characters of what a model says is wrong.
const SHOWN: usize = 200;

/// What makes vectors, if anything does.
pub struct Embeddings(Option<Model>);

struct Model {
    /// Names it in the store: vectors of a model with another name are of no use to it.
    name: String,
    /// What it is called where it is asked, if it has to be said.
    asked_as: String,
    source: Source,
    /// By which each request is judged as it is then.
    policy: Arc<InForce>,
    backend: Arc<dyn Backend>,
    egress: Arc<Egress>,
    secrets: Arc<Secrets>,
}

enum Source {
    Endpoint(Url, Target),
    Program(Program),
}

/// Why there are no vectors.
#[derive(Debug)]
pub enum NoVectors {
    /// The model does not take these texts, whenever it is asked.
    Texts(String),
    /// It does not answer now.
    Model(Failure),
}

impl Embeddings {
    /// No model.
    pub fn none() -> Self {
        Self(None)
    }

    /// What these settings say.
    ///
    /// # Errors
    ///
    /// `usage` where they say two things, or something that cannot be.
    pub fn of(
        section: &config::Embeddings,
        dirs: &Dirs,
        policy: &Arc<InForce>,
        egress: &Arc<Egress>,
        secrets: &Arc<Secrets>,
    ) -> Result<Self, Failure> {
        if !section.enabled {
            return Ok(Self::none());
        }
        let source = match (section.endpoint(), section.command.as_slice()) {
            (None, []) => return Ok(Self::none()),
            (Some(_), [_, ..]) => {
                return Err(Failure::invalid("[embeddings] has both `url` and `command`").hint("remove one of them"));
            }
            (Some(url), []) => {
                let target = Target::parse(url.as_str(), None)?;
                Source::Endpoint(url, target)
            }
            (None, argv) => Source::Program(Program::new(argv, dirs)),
        };
        let called = if section.url.is_empty() { section.command.join(" ") } else { section.url.clone() };
        let (home, environment) = (dirs.home.clone(), dirs.environment.clone());
        Ok(Self(Some(Model {
            name: format!("{called} {}", section.model).trim_end().to_owned(),
            asked_as: section.model.clone(),
            source,
            policy: policy.clone(),
            backend: Arc::new(Local::new(home.clone(), home, dirs.state.clone(), environment)),
            egress: egress.clone(),
            secrets: secrets.clone(),
        })))
    }

    /// The name that the store keeps with the vectors of this model; none where there is no model.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|model| model.name.as_str())
    }

    /// The scope of what is asked for no call.
    pub fn scope(&self) -> Option<Scope> {
        let Model { policy, backend, secrets, .. } = self.0.as_ref()?;
        Some(Scope::of_host("embeddings", policy.policy().config(), backend.clone(), secrets.clone()))
    }

    /// A vector of each of these texts, of length 1 and all with as many numbers.
    pub fn vectors<'a>(
        &'a self,
        texts: &'a [&'a str],
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, NoVectors>> {
        Box::pin(async move {
            let model = self.0.as_ref().ok_or_else(|| NoVectors::Model(no_model()))?;
            let texts: Vec<&str> = texts.iter().map(|text| beginning(text)).collect();
            let asked = wire::request(&model.asked_as, &texts);
            let policy = model.policy.obeyed().map_err(NoVectors::Model)?;
            match &model.source {
                Source::Endpoint(url, target) => {
                    let grant = HttpGrant::of_embeddings(url, policy.config()).map_err(NoVectors::Model)?;
                    wire::vectors(&fetch(target, &grant, asked, &model.egress, scope).await?, texts.len())
                }
                Source::Program(program) => {
                    let parts = texts.iter().map(|text| text.as_bytes());
                    scope.guard.check(Exit::Request, parts).map_err(NoVectors::Model)?;
                    program.ask(asked, texts.len()).await
                }
            }
        })
    }
}

/// That there is no model.
pub fn no_model() -> Failure {
    Failure::new(Kind::Unavailable, "no model for embeddings is set")
        .hint("`url` or `command` under [embeddings] sets one")
}

/// As much of a text as models read.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES)]
}

async fn fetch(
    target: &Target,
    grant: &HttpGrant,
    asked: String,
    egress: &Egress,
    scope: &Scope,
) -> Result<Vec<u8>, NoVectors> {
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
    let request = Request { method: Method::POST, headers, body: asked.into_bytes(), limit: BODY_BYTES };
    let answer = egress.fetch(request, target.clone(), grant, scope).await.map_err(NoVectors::Model)?;
    let said = || sanitize::beginning(&String::from_utf8_lossy(&answer.body), SHOWN);
    match answer.status {
        StatusCode::OK if answer.truncated => {
            let message = format!("`{target}` answers with more than {} MiB", BODY_BYTES >> 20);
            Err(NoVectors::Model(Failure::new(Kind::Unavailable, message)))
        }
        StatusCode::OK => Ok(answer.body),
        // These are about what was sent, and nothing that waits makes them better.
        status @ (StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY) => {
            Err(NoVectors::Texts(format!("`{target}` answers {status}: {}", said())))
        }
        status => {
            let message = format!("`{target}` answers {status}: {}", said());
            Err(NoVectors::Model(Failure::new(Kind::Unavailable, message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_known_by_its_beginning() {
        assert_eq!(beginning("short"), "short");
        let long = "ü".repeat(TEXT_BYTES);
        assert!(beginning(&long).len() <= TEXT_BYTES && beginning(&long).chars().all(|char| char == 'ü'));
    }
}
