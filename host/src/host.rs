//! Making a host: sandbox, policy, audit and kept output, from settings and directories.
//!
//! What a host does is `call.rs`. A home that cannot be written costs the caches and the trail, and says so.

use crate::audit::Audit;
use crate::call::Host;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::disk::{OwnDir, told};
use crate::envelope::{Failure, Kind};
use crate::http::Egress;
use crate::output::{KeptFile, OutputStore};
use crate::policy::Policy;
use crate::rate::Rates;
use crate::sandbox::{CodeCache, Compiler, Sandbox};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

impl Host {
    /// Prepares a host. `policies` are the files and directories that decide what plugins may do; no plugin may write them. Returns it with its notices.
    ///
    /// # Errors
    ///
    /// When a setting cannot be enforced or the engine cannot start.
    pub fn new(
        settings: &Settings,
        dirs: &Dirs,
        policies: &[PathBuf],
        compiler: Compiler,
    ) -> Result<(Self, Vec<String>), Failure> {
        let limits = &settings.config.limits;
        let mut notices = settings.notices.clone();
        let policy = Policy::new(settings, dirs, policies)?;
        let mut or_without = |what: &str, error: std::io::Error| notices.push(format!("{what}: {}", told(&error)));
        let state = || OwnDir::open(&dirs.state);
        let cache = state().and_then(|state| CodeCache::open(&state)).unwrap_or_else(|error| {
            or_without("compiled code is not kept", error);
            CodeCache::none()
        });
        let (audit, unaudited) = Audit::open(state(), settings.config.audit.required);
        unaudited.into_iter().for_each(|error| or_without("nothing is audited", error));
        let (stream, total) = (limits.kept_stream_mib << 20, limits.kept_total_mib << 20);
        let output = state().and_then(|_| OutputStore::open(dirs.output(), stream, total)).unwrap_or_else(|error| {
            or_without("cut output is not kept", error);
            OutputStore::none()
        });
        let sandbox = Sandbox::new(limits, cache, compiler)
            .map_err(|error| Failure::new(Kind::Internal, format!("the sandbox could not start: {error:#}")))?;
        let permits = usize::try_from(limits.concurrent_calls).unwrap_or(Semaphore::MAX_PERMITS);
        let permits = Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        let rates = Rates::new(limits.calls_per_minute, settings.config.remedies());
        let network = &settings.config.network;
        let ca_file = Some(&network.ca_file).filter(|file| !file.is_empty()).map(|file| dirs.expand(file));
        let egress = Arc::new(Egress::new(network.dns_servers(), ca_file));
        let host = Self { sandbox: Arc::new(sandbox), policy, audit, output: Arc::new(output), egress, permits, rates };
        Ok((host, notices))
    }

    /// A file of kept output, by its name.
    pub(crate) fn kept(&self, name: &str) -> Option<KeptFile> {
        self.output.kept_by_name(name)
    }

    /// What decides in this host.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}
