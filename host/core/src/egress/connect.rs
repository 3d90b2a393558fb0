//! The lower half of the egress: from a target that policy admitted to the addresses that may be connected to.
//!
//! Whatever opens a socket to somewhere takes a [`Route`], and this is the only place that makes one.

use super::addresses::{Special, special};
use super::resolver::Names;
use super::target::{Host, Target};
use crate::envelope::{Failure, Kind};
use crate::policy::hosts::AdmittedTarget;
use std::net::{IpAddr, SocketAddr};

/// A target with its addresses, each of them judged. Connections go to these and no others.
pub(crate) struct Route {
    target: Target,
    addresses: Vec<SocketAddr>,
}

impl Route {
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// At least one, all with the target's port.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Another route goes to the same server, by addresses that this one has as well.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let server = |route: &Self| (route.target.host().clone(), route.target.port(), route.target.is_encrypted());
        server(self) == server(other) && other.addresses.iter().all(|address| self.addresses.contains(address))
    }
}

/// Finds where the target is, once, and has a grant judge every address, with why it is not a public one and whether it is this machine's: one
/// that is refused refuses the target.
pub(super) async fn connect(
    names: &Names,
    target: AdmittedTarget,
    judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
) -> Result<Route, Failure> {
    let target = target.into_target();
    let found = match target.host() {
        Host::Name(name) => names.addresses(name).await?,
        Host::Address(address) => vec![*address],
    };
    // Listed for each route: interfaces come and go while the host runs.
    let own = own_addresses()?;
    // Refused as a whole, not filtered: a name with public and private addresses lets its owner choose which one is used (rebinding).
    for address in &found {
        // An IPv4 address mapped into IPv6 reaches the same interface.
        let is_own = own.contains(&address.to_canonical());
        judge(&target, *address, special(*address), is_own)?;
    }
    let addresses = found.into_iter().map(|address| SocketAddr::new(address, target.port())).collect();
    Ok(Route { target, addresses })
}

/// The addresses of this machine: public ones among them lead past whatever guards it from outside.
fn own_addresses() -> Result<Vec<IpAddr>, Failure> {
    let interfaces = if_addrs::get_if_addrs().map_err(|error| {
        Failure::new(Kind::Unavailable, format!("the addresses of this machine cannot be listed: {error}"))
    })?;
    Ok(interfaces.into_iter().map(|interface| interface.ip()).collect())
}
