//! The authority of the tests, and the servers that it speaks for, or not.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::sync::Arc;

/// Whom programs trust that are given its certificate.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = key();
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// The certificate as `network.ca_file` takes it.
    #[must_use]
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A server of that name or address.
    #[must_use]
    pub fn server(&self, name: &str) -> Arc<ServerConfig> {
        self.sign(&params(name))
    }

    /// The same, from the first day of one year to that of another.
    #[must_use]
    pub fn server_between(&self, name: &str, years: (i32, i32)) -> Arc<ServerConfig> {
        let mut params = params(name);
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        self.sign(&params)
    }

    /// Certificate and key of a server, as programs read them from files.
    #[must_use]
    pub fn files(&self, name: &str) -> (String, String) {
        let key = key();
        let certificate = params(name).signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    fn sign(&self, params: &CertificateParams) -> Arc<ServerConfig> {
        let key = key();
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        config(&certificate, &key)
    }
}

/// A server that speaks for itself.
#[must_use]
pub fn self_signed(name: &str) -> Arc<ServerConfig> {
    let key = key();
    let certificate = params(name).self_signed(&key).expect("a certificate");
    config(&certificate, &key)
}

/// A server that shows the certificate of an authority as its own, as `openssl req -x509` makes it; with that certificate.
#[must_use]
pub fn authority_as_server(name: &str) -> (Arc<ServerConfig>, String) {
    let (key, mut params) = (key(), params(name));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
    (config(&certificate, &key), certificate.pem())
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, "a server of a test");
    params
}

fn config(certificate: &Certificate, key: &KeyPair) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions that the provider has").with_no_client_auth();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Arc::new(config.with_single_cert(vec![certificate.der().clone()], key.into()).expect("a key of that certificate"))
}
