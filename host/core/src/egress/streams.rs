//! Connections that are not requests: TLS to a server, by the same addresses, authorities and judgement.

use super::cells::stream;
use super::connect::connect;
use super::{Egress, Host, Special, Target};
use crate::envelope::{Failure, Kind};
use crate::policy::hosts::AdmittedTarget;
use rustls::pki_types::ServerName;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

impl Egress {
    /// Connects to a server that policy admitted, each address judged, and has it show who it is. Nothing is sent before.
    pub(crate) async fn open_tls(
        &self,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let route = connect(&self.names, admitted, judge).await?;
        let name = match route.target().host() {
            Host::Name(name) => ServerName::try_from(name.clone())
                .map_err(|error| Failure::new(Kind::Internal, format!("`{name}` is not a name for TLS: {error}")))?,
            Host::Address(address) => ServerName::IpAddress((*address).into()),
        };
        let tls = self.clients.tls().await?;
        let stream = stream(&route).await?;
        let opened = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
        opened.map_err(|error| super::client::not_opened(&error, route.target()))
    }
}
