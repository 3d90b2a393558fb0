//! Which hosts may be reached at all: what `[tools]` says of domains and addresses, for the requests of plugins (`http.rs`) and for the
//! connections of confined commands (`connections.rs`).

use super::own_cell::CellPort;
use base::addresses::{Special, special};
use base::envelope::Failure;
use base::target::{Host, Target};
use config::{Config, HostList, HostPattern, Needed, Remedies};
use std::net::{IpAddr, SocketAddr};

/// Names that mean something else on every network (RFC 6761 and its registry, RFC 6762, RFC 7686, RFC 8375), and those that
/// routers and clusters use as if they were. `.example` is left to name servers, which know no such name.
#[rustfmt::skip]
const LOCAL_NAMES: [&str; 15] = [
    "localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "svc", "onion", "test",
    "invalid", "arpa",
];

/// A target that the rules for names and ports admit. Made only by the grants of this module's users.
#[derive(Clone)]
pub struct AdmittedTarget(Target);

impl AdmittedTarget {
    pub(super) fn new(target: Target) -> Self {
        Self(target)
    }

    pub fn as_target(&self) -> &Target {
        &self.0
    }
}

/// A target with its addresses, each of them judged. Connections go to these and no others.
pub struct Route {
    target: Target,
    addresses: Vec<SocketAddr>,
    /// It leads to the loopback of the session's own cell, and to no address of this machine.
    is_into_cell: bool,
}

impl Route {
    /// Has a grant judge every address that was found of a target, with why it is not a public one and whether it is among this machine's `own`:
    /// one that is refused refuses the target.
    pub fn judged(
        target: AdmittedTarget,
        found: &[IpAddr],
        own: &[IpAddr],
        judge: impl Fn(&Target, IpAddr, Option<Special>, bool) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let AdmittedTarget(target) = target;
        // Refused as a whole, not filtered: a name with public and private addresses lets its owner choose which one is used (rebinding).
        for address in found {
            // An IPv4 address mapped into IPv6 reaches the same interface.
            judge(&target, *address, special(*address), own.contains(&address.to_canonical()))?;
        }
        let addresses = found.iter().map(|address| SocketAddr::new(*address, target.port())).collect();
        Ok(Self { target, addresses, is_into_cell: false })
    }

    /// The way to a port of the session's own cell.
    pub(super) fn into_cell(port: &CellPort) -> Self {
        Self { target: port.target.clone(), addresses: Vec::new(), is_into_cell: true }
    }

    /// Whether it leads into the session's own cell.
    pub fn is_into_cell(&self) -> bool {
        self.is_into_cell
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// At least one, all with the target's port; none of a way into the session's cell.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Another route goes to the same server, by addresses that this one has as well.
    pub fn covers(&self, other: &Self) -> bool {
        let server = |route: &Self| {
            let Self { target, is_into_cell, .. } = route;
            (target.host().clone(), target.port(), target.is_encrypted(), *is_into_cell)
        };
        server(self) == server(other) && other.addresses.iter().all(|address| self.addresses.contains(address))
    }
}

/// The setting by which a host is opened that is not a public one.
#[derive(Clone, Copy)]
pub(super) enum Opens {
    /// `tools.fetch_allowed_domains`, or `tools.fetch_private_ranges` for its address.
    Fetch,
    /// `confine.hosts`.
    Confine,
}

/// The rules for hosts that hold for everybody.
#[derive(Clone)]
pub struct HostRules {
    remedies: Remedies,
    opens: Opens,
    /// A host lies within every one of these.
    allowed: Vec<HostList>,
    /// Hosts that the user has named, and so opened where they are local or private. For confined commands a name opens no private address: they
    /// run programs of others, whose owners would point a name that is let through at what is not.
    opened: Vec<HostPattern>,
    blocked: Vec<HostPattern>,
    /// Private addresses that are open: within each of these.
    private: Vec<Vec<HostPattern>>,
    /// Private addresses that can be open at all, where a policy says so: within each of these.
    private_bounds: Vec<Vec<HostPattern>>,
}

/// What was found of an address that may be reached.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// The user named this very address or its range.
    Open,
    /// It is public, or the user named its host.
    Public,
}

impl HostRules {
    /// `opened` are the hosts that the user names by that setting.
    pub(super) fn new(config: &Config, opens: Opens, opened: &[HostPattern]) -> Self {
        Self {
            remedies: config.remedies(),
            opens,
            allowed: config.allowed_domains(),
            opened: opened.to_vec(),
            blocked: config.tools.fetch_blocked_domains.clone(),
            private: config.private_ranges(),
            private_bounds: config.private_bounds(),
        }
    }

    /// Decides on a host before its addresses are known; `own` is what a grant says itself.
    pub(super) fn check_host(&self, host: &Host, own: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        self.check_blocked(host)?;
        own()?;
        self.check_allowed(host)?;
        self.check_public(host)
    }

    /// The hosts that the user names, and so opens.
    pub(super) fn opened(&self) -> &[HostPattern] {
        &self.opened
    }

    /// Decides on the session's own cell by its name. No address of it is judged, so ranges in the lists do not count.
    pub(super) fn check_cell(&self, cell: &Host) -> Result<(), Failure> {
        self.check_blocked(cell)?;
        let named = |list: &HostList| matches!(cell, Host::Name(name) if list.covers_name(name));
        if self.allowed.iter().all(named) { Ok(()) } else { Err(self.not_allowed(cell)) }
    }

    pub(super) fn check_blocked(&self, host: &Host) -> Result<(), Failure> {
        match self.blocked.iter().find(|entry| covers(entry, host)) {
            Some(entry) => Err(blocked(host, entry)),
            None => Ok(()),
        }
    }

    fn check_allowed(&self, host: &Host) -> Result<(), Failure> {
        match self.allowed.iter().all(|allowed| may_cover(allowed, host)) {
            true => Ok(()),
            false => Err(self.not_allowed(host)),
        }
    }

    /// A name is one of the Internet, or was named. Addresses are judged when they are connected to, like those of names.
    fn check_public(&self, host: &Host) -> Result<(), Failure> {
        let Host::Name(name) = host else { return Ok(()) };
        let is_opened = self.opened.iter().any(|entry| entry.covers_name(name));
        if is_opened || !is_local_name(name) {
            return Ok(());
        }
        let hint = match self.opens {
            Opens::Fetch => {
                let line = format!(
                    "`fetch_allowed_domains = [\"{name}\"]` under [tools] opens it, and closes what the list does not name"
                );
                self.remedies.hint("tools.fetch_allowed_domains", &Needed::Entry(name), line)
            }
            Opens::Confine => self.name_it(name),
        };
        Err(Failure::denied(format!("`{name}` is a name of the local network, not of the Internet")).hint(hint))
    }

    /// Decides on an address that a host has. `special` says why it is not a public one, `is_own` that it is this machine's; `own` is what a
    /// grant says itself.
    pub(super) fn check_address(
        &self,
        host: &Host,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
        own: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Found, Failure> {
        if let Some(entry) = self.blocked.iter().find(|entry| entry.covers_address(address)) {
            return Err(blocked(host, entry));
        }
        own()?;
        if !self.allowed.iter().all(|list| lies_in(list, host, address)) {
            return Err(self.not_allowed(host));
        }
        if self.is_open(address) {
            return Ok(Found::Open);
        }
        let is_named = match (self.opens, host) {
            (Opens::Fetch, Host::Name(name)) => {
                self.may_open(address) && self.opened.iter().any(|entry| entry.covers_name(name))
            }
            (Opens::Fetch | Opens::Confine, _) => false,
        };
        match special {
            Some(special) if !(is_named && special.has_hosts) => {
                let Special { what, range, source, .. } = special;
                let message = format!("{} is not public: {what} ({range}, {source})", leads_to(host, address));
                Err(Failure::denied(message).hint(self.open_range(address)))
            }
            None if is_own => {
                Err(Failure::denied(format!("{} is an address of this machine", leads_to(host, address)))
                    .hint(self.open_range(address)))
            }
            _ => Ok(Found::Public),
        }
    }

    /// The same for a grant that says nothing itself about addresses.
    pub(super) fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        self.check_address(target.host(), address, special, is_own, || Ok(())).map(drop)
    }

    /// The user named this very address or its range.
    pub(super) fn is_open(&self, address: IpAddr) -> bool {
        let by_range = !self.private.is_empty() && self.private.iter().all(|ranges| covered(ranges, address));
        by_range || covered(&self.opened, address) && self.may_open(address)
    }

    /// No policy keeps the address closed, whoever names it.
    fn may_open(&self, address: IpAddr) -> bool {
        self.private_bounds.iter().all(|ranges| covered(ranges, address))
    }

    fn not_allowed(&self, host: &Host) -> Failure {
        let line = format!("add \"{host}\" to `fetch_allowed_domains` under [tools]");
        Failure::denied(format!("`{host}` is not in `tools.fetch_allowed_domains`")).hint(self.remedies.hint(
            "tools.fetch_allowed_domains",
            &Needed::Entry(&host.to_string()),
            line,
        ))
    }

    fn open_range(&self, address: IpAddr) -> String {
        match self.opens {
            Opens::Fetch => {
                let line = format!("`fetch_private_ranges = [\"{address}\"]` under [tools] opens it");
                self.remedies.hint("tools.fetch_private_ranges", &Needed::Entry(&address.to_string()), line)
            }
            Opens::Confine => self.name_it(&address.to_string()),
        }
    }

    /// The line that opens a host to confined commands.
    pub(super) fn name_it(&self, host: &str) -> String {
        let line = format!("add \"{host}\" to `hosts` under [confine]");
        self.remedies.hint("confine.hosts", &Needed::Entry(host), line)
    }
}

/// A name that means something of the network that this machine is in.
pub(super) fn is_local_name(name: &str) -> bool {
    !name.contains('.') || LOCAL_NAMES.iter().any(|local| is_within(name, local))
}

pub(super) fn covers(entry: &HostPattern, host: &Host) -> bool {
    match host {
        Host::Name(name) => entry.covers_name(name),
        Host::Address(address) => entry.covers_address(*address),
    }
}

fn covered(entries: &[HostPattern], address: IpAddr) -> bool {
    entries.iter().any(|entry| entry.covers_address(address))
}

/// Decides on a host that a secret would go to; `named` are the hosts that its section names.
pub(super) fn check_secret(secret: &str, named: &[HostPattern], host: &Host) -> Result<(), Failure> {
    if named.iter().any(|entry| covers(entry, host)) {
        return Ok(());
    }
    // Not with the line that names this host: a page or a model may have chosen it.
    let hint = match host {
        Host::Name(_) => format!(
            "`hosts` under [secret.{secret}] names the hosts that it may go to; \
             without that section, `toolcrib secret set {secret} --host HOST` writes it"
        ),
        Host::Address(_) => format!(
            "a secret goes to hosts by their names and to no address: use the server's name here, and name it in `hosts` under [secret.{secret}]"
        ),
    };
    Err(Failure::denied(format!("the secret `{secret}` may not go to `{host}`")).hint(hint))
}

/// Decides on a request that a secret would be put into.
pub(super) fn check_encrypted(secret: &str, target: &Target) -> Result<(), Failure> {
    if target.is_encrypted() {
        return Ok(());
    }
    let message = format!("`{target}` would get the secret `{secret}`, which goes over HTTPS alone");
    Err(Failure::denied(message).hint(encrypt(target)))
}

/// How a request that a secret is put into comes to be encrypted, also to a server that no public authority certifies.
pub(super) fn encrypt(target: &Target) -> &'static str {
    match target.host() {
        Host::Name(name) if !is_local_name(name) => "use https://",
        Host::Name(_) | Host::Address(_) => {
            "use https://; `ca_file` under [network] names the authority that signed the certificate of a server of your own"
        }
    }
}

/// The list covers the host, or this address of it.
pub(super) fn lies_in(list: &HostList, host: &Host, address: IpAddr) -> bool {
    matches!(host, Host::Name(name) if list.covers_name(name)) || list.covers_address(address)
}

/// The list covers the host, or may cover the addresses that it turns out to have.
pub(super) fn may_cover(list: &HostList, host: &Host) -> bool {
    match (list, host) {
        (HostList::Any, _) => true,
        (list, Host::Address(address)) => list.covers_address(*address),
        (HostList::Only(entries), Host::Name(name)) => {
            list.covers_name(name) || entries.iter().any(|entry| matches!(entry, HostPattern::Range(_)))
        }
    }
}

/// By whole labels.
fn is_within(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn blocked(host: &Host, entry: &HostPattern) -> Failure {
    Failure::denied(format!("`{host}` is blocked by `{entry}` of `tools.fetch_blocked_domains`"))
        .hint("`toolcrib config show --origin` says where the entry comes from")
}

fn leads_to(host: &Host, address: IpAddr) -> String {
    match host {
        Host::Name(name) => format!("`{name}` resolves to {address}, which"),
        Host::Address(address) => format!("`{address}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_whole_labels() {
        assert!(is_within("localhost", "localhost") && is_within("a.b.localhost", "localhost"));
        assert!(!is_within("notlocalhost", "localhost") && !is_within("localhost.example.com", "localhost"));
    }
}
