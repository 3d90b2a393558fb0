//! The lower half of the egress: from a target that policy admitted to the addresses that may be connected to.
//!
//! Whatever opens a socket to somewhere takes a [`Route`], and this is the only place that makes one.

use super::resolver::Names;
use base::addresses::Special;
use base::envelope::{Failure, Kind};
use base::target::{Host, Target};
use policy::hosts::{AdmittedTarget, Route};
use std::net::IpAddr;

/// Finds where the target is, once, and has a grant judge every address.
pub(super) async fn connect(
    names: &Names,
    target: AdmittedTarget,
    judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
) -> Result<Route, Failure> {
    let found = match target.as_target().host() {
        Host::Name(name) => names.addresses(name).await?,
        Host::Address(address) => vec![*address],
    };
    // Listed for each route: interfaces come and go while the host runs.
    let own = own_addresses()?;
    Route::judged(target, &found, &own, judge)
}

/// The addresses of this machine: public ones among them lead past whatever guards it from outside.
pub(super) fn own_addresses() -> Result<Vec<IpAddr>, Failure> {
    let interfaces = if_addrs::get_if_addrs().map_err(|error| {
        Failure::new(Kind::Unavailable, format!("the addresses of this machine cannot be listed: {error}"))
    })?;
    Ok(interfaces.into_iter().map(|interface| interface.ip()).collect())
}
