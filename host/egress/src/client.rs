//! Connections: one client for each plugin, bound to the addresses that its routes were judged by.
//!
//! A name whose addresses change gets a new client, so that no connection outlives the answer that it was opened by.

use super::streams::plainly;
use base::disk::open_anywhere;
use base::envelope::{Failure, Kind};
use base::target::{Host, Target};
use parking_lot::Mutex;
use policy::hosts::Route;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long a connection may take, TLS included.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// Unused connections to one host.
const IDLE_CONNECTIONS: usize = 4;
/// Hosts of one client; beyond, a new one begins.
const MAX_HOSTS: usize = 64;
/// Headers of an answer.
const MAX_HEADERS: usize = 200;

/// Bytes of the file that `ca_file` names.
pub const CA_BYTES: u64 = 4 << 20;

/// The clients of all plugins.
pub(super) struct Clients {
    ca_file: Option<PathBuf>,
    tls: OnceCell<ClientConfig>,
    by_plugin: Mutex<HashMap<String, Pinned>>,
}

/// A client and where each host's connections go.
#[derive(Clone)]
struct Pinned {
    client: reqwest::Client,
    pins: Arc<Pins>,
}

/// The addresses of each name, as they were judged. Set once: the client's connections all go by them.
#[derive(Default)]
struct Pins(Mutex<HashMap<String, Vec<IpAddr>>>);

impl Clients {
    /// `ca_file` holds certificates that are trusted besides the system's.
    pub(super) fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, tls: OnceCell::new(), by_plugin: Mutex::default() }
    }

    /// Returns the plugin's client, whose connections to the route's host go to the route's addresses and no others.
    pub(super) async fn client(&self, plugin: &str, route: &Route) -> Result<reqwest::Client, Failure> {
        let tls = self.tls().await?;
        let mut by_plugin = self.by_plugin.lock();
        if let Some(pinned) = by_plugin.get(plugin)
            && pinned.pins.pin(route)
        {
            return Ok(pinned.client.clone());
        }
        let pins = Arc::new(Pins::default());
        pins.pin(route);
        let client = build(tls, pins.clone())?;
        by_plugin.insert(plugin.to_owned(), Pinned { client: client.clone(), pins });
        Ok(client)
    }
}

impl Clients {
    /// What TLS trusts.
    pub(super) async fn tls(&self) -> Result<ClientConfig, Failure> {
        self.tls.get_or_try_init(|| trusted(self.ca_file.clone())).await.cloned()
    }
}

impl Pins {
    /// Pins the route's name; says no if connections may be open to other addresses of it, or to too many names.
    fn pin(&self, route: &Route) -> bool {
        let Host::Name(name) = route.target().host() else { return true };
        let mut addresses: Vec<IpAddr> = route.addresses().iter().map(SocketAddr::ip).collect();
        addresses.sort_unstable();
        let mut pins = self.0.lock();
        match pins.get(name) {
            Some(pinned) => *pinned == addresses,
            None if pins.len() >= MAX_HOSTS => false,
            None => {
                pins.insert(name.clone(), addresses);
                true
            }
        }
    }
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let pins = self.0.lock();
        let pinned = pins.get(name.as_str()).cloned();
        Box::pin(async move {
            let pinned = pinned.ok_or("this name was not judged")?;
            // The port is the URL's.
            Ok(Box::new(pinned.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

fn build(tls: ClientConfig, pins: Arc<Pins>) -> Result<reqwest::Client, Failure> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(pins)
        // A proxy named in the environment would connect to addresses that nobody has judged.
        .no_proxy()
        // Each redirect is judged as a new target (`mod.rs`).
        .redirect(reqwest::redirect::Policy::none())
        // A request that is sent again could have its effect twice.
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .http1_max_headers(MAX_HEADERS)
        .build();
    client.map_err(|error| Failure::new(Kind::Internal, format!("there is no HTTP client: {error}")))
}

/// Whom connections trust: the system's authorities and those of the file.
async fn trusted(ca_file: Option<PathBuf>) -> Result<ClientConfig, Failure> {
    let read = tokio::task::spawn_blocking(move || {
        let mut roots = RootCertStore::empty();
        // What cannot be read is left out: then less is trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = ca_file {
            add(&mut roots, &file)?;
        }
        Ok::<_, Failure>(roots)
    });
    let roots = read.await.map_err(|error| Failure::new(Kind::Internal, error.to_string()))??;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), Failure> {
    let unusable = |why: String| {
        Failure::new(Kind::Unavailable, format!("`{}` gives no certificates: {why}", file.display()))
            .hint("set `ca_file` under [network] to a PEM file, or leave it empty")
    };
    let text = open_anywhere(file).and_then(|file| file.read(CA_BYTES)).map_err(|error| unusable(error.to_string()))?;
    let mut some = false;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots
            .add(certificate.map_err(|error| unusable(error.to_string()))?)
            .map_err(|error| unusable(error.to_string()))?;
        some = true;
    }
    if some { Ok(()) } else { Err(unusable("it holds none".into())) }
}

/// How the library that checks certificates names one of an authority in the place of a server's, as `openssl req -x509` makes it.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The certificate is not trusted. On its way here that was wrapped into errors of input and output.
fn is_unproven(mut cause: &(dyn std::error::Error + 'static)) -> bool {
    while let Some(inner) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        cause = inner;
    }
    matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
}

/// Says why there is no connection.
pub(super) fn not_opened(cause: &(dyn std::error::Error + 'static), target: &Target) -> Failure {
    let failure =
        Failure::new(Kind::Unavailable, format!("no connection to `{}`: {}", target.server(), plainly(cause)));
    match is_unproven(cause) {
        true if failure.message.contains(AUTHORITY_AS_SERVER) => failure.hint(
            "the server shows the certificate of an authority as its own, which nothing makes trusted: sign one for the server with that authority, \
             and name the authority's in `ca_file` under [network] (the page on secrets has the commands)",
        ),
        true => failure.hint(
            "the server's certificate is not trusted; `ca_file` under [network] names further authorities to trust",
        ),
        false => failure,
    }
}

/// Says why there was no answer. `may_have_acted`: the request can have had its effect all the same.
pub(super) fn explain(error: &reqwest::Error, target: &Target, may_have_acted: bool) -> Failure {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let host = format!("{}:{}", target.host(), target.port());
    if error.is_connect() && error.is_timeout() {
        return Failure::new(Kind::TimedOut, format!("`{host}` did not accept the connection within {CONNECT:?}"));
    }
    if error.is_connect() {
        return not_opened(cause, target);
    }
    if may_have_acted {
        return Failure::new(
            Kind::OutcomeUnknown,
            format!("`{host}` gave no answer after the request was sent: {}", plainly(cause)),
        )
        .hint("check whether it had its effect before you send it again");
    }
    Failure::new(Kind::Unavailable, format!("`{host}` gave no answer: {}", plainly(cause)))
}
