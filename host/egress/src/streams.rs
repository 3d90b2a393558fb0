//! Connections that are not requests: TLS to a server, by the same addresses, authorities and judgement.

use super::Egress;
use super::cells::stream;
use super::connect::connect;
use base::addresses::Special;
use base::envelope::{Failure, Kind};
use base::target::{Host, Target};
use futures_util::future::BoxFuture;
use policy::hosts::AdmittedTarget;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

impl Egress {
    /// Connects to a server that policy admitted, each address judged, and has it show who it is. Nothing is sent before.
    pub fn open_tls<'a>(
        &'a self,
        admitted: AdmittedTarget,
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<TlsStream<TcpStream>, Failure>> {
        Box::pin(async move {
            let route = connect(&self.names, admitted, judge).await?;
            let name = match route.target().host() {
                Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| {
                    Failure::new(Kind::Internal, format!("`{name}` is not a name for TLS: {error}"))
                })?,
                Host::Address(address) => ServerName::IpAddress((*address).into()),
            };
            let tls = self.clients.tls().await?;
            let stream = stream(&route).await?;
            let opened = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
            opened.map_err(|error| super::client::not_opened(&error, route.target()))
        })
    }
}

/// Why a connection is of no use, in few words. Those of libraries name their own functions and documents.
pub fn plainly(cause: &(dyn Error + 'static)) -> String {
    match cause.downcast_ref().map(io::Error::kind) {
        Some(ErrorKind::UnexpectedEof) => "it ended the connection".into(),
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            "it reset the connection".into()
        }
        Some(_) | None => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_connection_is_told_without_the_words_of_a_library() {
        let library = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/";
        for (kind, told) in [
            (ErrorKind::UnexpectedEof, "it ended the connection"),
            (ErrorKind::ConnectionReset, "it reset the connection"),
            (ErrorKind::BrokenPipe, "it reset the connection"),
            (ErrorKind::InvalidData, library),
        ] {
            assert_eq!(plainly(&io::Error::new(kind, library)), told);
        }
    }
}
