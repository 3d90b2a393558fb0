//! Fetching a plugin that a person has named: from the web, by its digest, or from a registry of artifacts.
//!
//! `config::source` reads what was typed, `oci` asks a registry. Everything leaves by the one egress (`by_egress.rs`), within what `policy/http/download.rs` admits. Nothing is written here, and nothing gets rights.

mod by_egress;

pub use config::source::{Digest, Reference, Source};

use super::provider::{Component, Refused};
use crate::Host;
use crate::call::CallContext;
use base::envelope::{Failure, Kind};
use by_egress::ByEgress;
use config::HostPattern;
use contract::manifest::{Manifest, Origin, PluginId};
use futures_util::future::BoxFuture;
use oci::{Registry, Web, other_bytes};
use policy::Policy;
use policy::lock::Code;
use std::path::{Path, PathBuf};
use url::Url;

/// What a person has asked for.
pub struct Wanted<'w> {
    /// Where it is; not a file.
    pub source: &'w Source,
    /// The digest of the component. Without it, a URL is not fetched.
    pub digest: Option<&'w Digest>,
    /// Hosts that it may be fetched from besides the one that the source names.
    pub hosts: &'w [HostPattern],
    /// The file that it is to become, which gives it its name.
    pub file: &'w Path,
    /// The digest of the component that is there, in hex: the same is not fetched again.
    pub known: Option<&'w str>,
}

/// What was fetched.
pub struct Fetched {
    /// Where it is from: an artifact with its digest.
    pub source: Source,
    /// Its bytes; none where they are those that are there.
    pub bytes: Option<Vec<u8>>,
    /// What else the artifact has, by type, which is not read.
    pub unread: Vec<String>,
    file: PathBuf,
}

impl Host {
    /// Fetches the component that a person has named. It is not asked for where a lock would refuse it.
    ///
    /// # Errors
    ///
    /// `denied` where policy does not admit a host, with `host` as its data if naming it would help, or the digest is another; `limit` where it
    /// is too large; `unavailable` where it cannot be had.
    pub fn fetch_plugin<'a>(
        &'a self,
        wanted: &'a Wanted<'a>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Fetched, Failure>> {
        Box::pin(async move {
            let policy = self.policy.obeyed()?;
            let most = policy.config().limits.component_mib << 20;
            let fetched = |source, bytes, unread| Fetched { source, bytes, unread, file: wanted.file.to_owned() };
            let fetching = async {
                match wanted.source {
                    Source::File(path) => {
                        Err(Failure::new(Kind::Internal, format!("`{}` is a file of this machine", path.display())))
                    }
                    Source::Url(url) => {
                        let digest = wanted.digest.ok_or_else(|| without_digest(url))?;
                        check_locks(&policy, wanted.file, digest)?;
                        if wanted.known == Some(digest.hex()) {
                            return Ok(fetched(wanted.source.clone(), None, Vec::new()));
                        }
                        let web = ByEgress::new(url, wanted.hosts, most, &policy, context, self)?;
                        let bytes = page(&web, url, digest, most).await?;
                        Ok(fetched(wanted.source.clone(), Some(bytes), Vec::new()))
                    }
                    Source::Oci(reference) => {
                        let web = ByEgress::new(reference.registry(), wanted.hosts, most, &policy, context, self)?;
                        let mut registry = Registry::new(&web, reference);
                        let resolved = registry.resolve().await?;
                        let layer = &resolved.layer;
                        if let Some(named) = wanted.digest.filter(|named| **named != layer.digest) {
                            return Err(other_bytes(
                                &format!("the component of `{}`", resolved.pinned),
                                named,
                                &layer.digest,
                            ));
                        }
                        check_locks(&policy, wanted.file, &layer.digest)?;
                        let (source, unread) = (Source::Oci(resolved.pinned.clone()), layer.unread.clone());
                        if wanted.known == Some(layer.digest.hex()) {
                            return Ok(fetched(source, None, unread));
                        }
                        let bytes = registry.layer(&resolved, most).await?;
                        Ok(fetched(source, Some(bytes), unread))
                    }
                }
            };
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Err(Failure::cancelled()),
                fetched = fetching => fetched,
            }
        })
    }
}

impl Fetched {
    /// What the file would be with these bytes. Nothing of it runs.
    ///
    /// # Errors
    ///
    /// Why it cannot be a plugin.
    pub fn component(&self) -> Result<Component, Refused> {
        let bytes = self.bytes.clone().unwrap_or_default();
        Component::at(&self.file, bytes).map_err(|reason| Refused { origin: self.source.to_string(), reason })
    }
}

/// Reads a page that has this digest.
async fn page(web: &dyn Web, url: &Url, digest: &Digest, most: u64) -> Result<Vec<u8>, Failure> {
    let answer = web.get(url, &[("accept", "application/wasm, application/octet-stream, */*;q=0.5")], most).await?;
    if answer.status != 200 {
        let message = format!("`{url}` answers {}", answer.status);
        return Err(Failure::new(Kind::Unavailable, message).hint("check the URL"));
    }
    if answer.is_cut {
        return Err(Failure::limit(format!("what `{url}` answers has more than {most} bytes (limit: {most} bytes)"))
            .hint("`component_mib` under [limits] is the most that a component may have"));
    }
    match Digest::of(&answer.body) {
        found if found == *digest => Ok(answer.body),
        found => Err(other_bytes(&format!("what `{url}` answers"), digest, &found)),
    }
}

fn without_digest(url: &Url) -> Failure {
    Failure::new(Kind::Usage, format!("`{url}` may answer with other bytes tomorrow: a URL needs `--digest`")).hint(
        "add `--digest sha256:…`, which its author publishes, or which `sha256sum` prints of a file that you trust",
    )
}

/// Says no for a lock that refuses these bytes whatever they are, before they are asked for. What they show is judged once they are there.
fn check_locks(policy: &Policy, file: &Path, digest: &Digest) -> Result<(), Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let origin = Origin::File(file.display().to_string());
    let id = PluginId { name: name.clone(), sha256: digest.hex().to_owned(), origin };
    let unseen = Manifest::new(id, vec![name], Vec::new(), Vec::new());
    let unseen = unseen.map_err(|reason| Failure::new(Kind::Usage, reason).hint("name it with `--name NAME`"))?;
    match policy.check_locks(&unseen) {
        Err(barred) if barred.code.is_some_and(|code| code != Code::StatementMismatch) => Err(barred.failure),
        Ok(_) | Err(_) => Ok(()),
    }
}
