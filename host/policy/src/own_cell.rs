//! Requests to the session's own cell: which URLs mean a port there, and whether a grant covers it.
//!
//! `cell` always means it. A loopback name means it if something listens there, unless settings open that name on this machine. Connecting is
//! `egress/own_cell.rs`.

use super::confine::{Confine, Confinement};
use super::hosts::{HostRules, covers};
use backend::Backend;
use backend::cell::Profile;
use base::envelope::Failure;
use base::target::{Host, Target};
use config::{CellNetwork, HostList, PROXY_PORT};
use futures_util::future::BoxFuture;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The host of URLs that always mean the session's own cell.
pub const CELL: &str = "cell";
/// The name by which programs know their own machine.
pub const LOCALHOST: &str = "localhost";

/// A port of the session's own cell.
#[derive(Clone)]
pub struct CellPort {
    /// The cell.
    pub profile: Arc<Profile>,
    /// The URL with `cell` as its host, as rules, questions and the audit trail have it.
    pub target: Target,
    /// The URL names the cell, so it can mean nothing else.
    pub is_named: bool,
}

/// Whether a host is the loopback of the machine that it is used on, as servers print it: also by the address that means all interfaces.
pub fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == LOCALHOST,
        Host::Address(IpAddr::V4(address)) => [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED].contains(address),
        Host::Address(IpAddr::V6(address)) => [Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED].contains(address),
    }
}

/// Whether this host itself listens at a port of the cell, for what commands connect to (`backend/cell/listeners.rs`).
fn is_own_port(profile: &Profile, port: u16) -> bool {
    match profile.network {
        CellNetwork::Egress => port == PROXY_PORT || profile.ports.contains(&port),
        CellNetwork::None | CellNetwork::Full => false,
    }
}

/// What a grant says of its plugin's requests to the cell.
pub(super) struct Covered<'a> {
    pub(super) confine: &'a Confine,
    pub(super) rules: &'a HostRules,
    /// The plugin's own lists of hosts. It reaches the cell if all cover `cell`.
    pub(super) hosts: &'a [HostList],
}

impl Covered<'_> {
    /// The port of the session's own cell that a target means; none if it means a host.
    ///
    /// # Errors
    ///
    /// `denied` if the target names the cell and the plugin may not reach it, or commands have none with a network of its own.
    pub(super) fn port<'a>(
        &'a self,
        target: &'a Target,
        backend: &'a dyn Backend,
        refused: impl FnOnce(&Host) -> Failure + Send + 'a,
    ) -> BoxFuture<'a, Result<Option<CellPort>, Failure>> {
        Box::pin(async move {
            let host = target.host();
            let is_named = matches!(host, Host::Name(name) if name == CELL);
            let is_meant = is_named || is_loopback(host) && !self.rules.opens(host);
            if !is_meant {
                return Ok(None);
            }
            let cell = Host::Name(CELL.into());
            let is_own = self.hosts.iter().all(|list| list.covers_name(CELL));
            let own = || if is_own { Ok(()) } else { Err(refused(&cell)) };
            let admitted =
                self.rules.check_blocked(host).and_then(|()| own()).and_then(|()| self.rules.check_cell(&cell));
            let confinement = match admitted {
                Ok(()) => self.confine.at(backend).await,
                Err(refusal) => Err(refusal),
            };
            match confinement {
                Ok(Confinement::Cell(profile)) if profile.has_own_network() => {
                    if !is_own_port(&profile, target.port()) {
                        return Ok(Some(CellPort { profile, target: target.at_host(CELL)?, is_named }));
                    }
                    let message = format!(
                        "port {} of the cell is this host's own: commands connect to hosts by it",
                        target.port()
                    );
                    let refusal = Failure::denied(message).hint("have the server listen on another port, such as 8080");
                    if is_named { Err(refusal) } else { Ok(None) }
                }
                Ok(_) if is_named => {
                    Err(Failure::denied("commands here have no network of their own to reach by `cell`")
                        .hint("`toolcrib doctor` says how commands are confined"))
                }
                Err(refusal) if is_named => Err(refusal),
                Ok(_) | Err(_) => Ok(None),
            }
        })
    }
}

impl HostRules {
    /// Whether settings open a host of this machine by its name or address.
    fn opens(&self, host: &Host) -> bool {
        match host {
            Host::Name(_) => self.opened().iter().any(|entry| covers(entry, host)),
            Host::Address(address) => self.is_open(*address),
        }
    }
}
