//! Names to addresses: one question for each family, asked of name servers alone, every answer handed on.
//!
//! Neither `/etc/hosts` nor search domains take part: what is asked is the whole name. Which answers may be used is decided in `connect.rs`.

use base::envelope::{Failure, Kind, duration};
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Resolver, TokioResolver};
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime};

/// How long a name may take, with all its aliases.
const PATIENCE: Duration = Duration::from_secs(5);
/// Addresses of one name, both families. Whoever has more hides among them what is not to be found.
const MAX_ANSWERS: usize = 32;
/// Aliases on the way to an address.
const MAX_ALIASES: usize = 8;
/// Where the system names its servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Asks name servers: those that were set, or those of the system, read anew when its file has changed.
pub(super) struct Names {
    servers: Vec<SocketAddr>,
    asked: Mutex<Option<(Option<SystemTime>, TokioResolver)>>,
}

impl Names {
    /// With an empty list the system's servers are asked.
    pub(super) fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers, asked: Mutex::default() }
    }

    /// Returns every address of a name; at least one.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Failure> {
        // Never asked of anybody (RFC 6761, 6.3).
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let resolver = self.resolver()?;
        let whole = Name::from_ascii(format!("{name}.")).map_err(|error| unknown(name, &error))?;
        let both = async {
            tokio::join!(
                resolver.lookup(whole.clone(), RecordType::A),
                resolver.lookup(whole.clone(), RecordType::AAAA)
            )
        };
        let (v4, v6) = tokio::time::timeout(PATIENCE, both).await.map_err(|_| {
            Failure::new(
                Kind::TimedOut,
                format!("no name server returned an address for `{name}` within {}", duration(PATIENCE)),
            )
        })?;
        let mut found = Vec::new();
        let mut trouble = None;
        for family in [v4, v6] {
            match family {
                Ok(lookup) => found.extend(checked(name, lookup.answers())?),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        match trouble {
            _ if found.len() > MAX_ANSWERS => Err(too_many(name)),
            _ if !found.is_empty() => Ok(found),
            Some(error) => Err(unanswered(name, &error)),
            None => Err(unknown(name, &"it has no address record")),
        }
    }

    fn resolver(&self) -> Result<TokioResolver, Failure> {
        let changed = std::fs::metadata(RESOLV_CONF).and_then(|metadata| metadata.modified()).ok();
        let mut asked = self.asked.lock();
        if let Some((then, resolver)) = &*asked
            && (!self.servers.is_empty() || *then == changed)
        {
            return Ok(resolver.clone());
        }
        let resolver = build(self.servers()?)?;
        *asked = Some((changed, resolver.clone()));
        Ok(resolver)
    }

    fn servers(&self) -> Result<Vec<NameServerConfig>, Failure> {
        if !self.servers.is_empty() {
            return Ok(self.servers.iter().copied().map(server).collect());
        }
        let system = std::fs::read(RESOLV_CONF).map_err(|error| error.to_string());
        let system = system.and_then(|text| parse_resolv_conf(text).map_err(|error| error.to_string()));
        let system = system.map_err(|error| no_server(&format!("`{RESOLV_CONF}`: {error}")))?;
        Ok(system.0.name_servers().to_vec())
    }
}

fn build(servers: Vec<NameServerConfig>) -> Result<TokioResolver, Failure> {
    if servers.is_empty() {
        return Err(no_server(&format!("`{RESOLV_CONF}` names none")));
    }
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    let mut options = ResolverOpts::default();
    // A kept answer would be judged by yesterday's policy of whoever owns the name.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    // Aliases are counted.
    options.preserve_intermediates = true;
    options.attempts = 1;
    options.timeout = PATIENCE / 2;
    let builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default()).with_options(options);
    builder.build().map_err(|error| no_server(&error.to_string()))
}

fn server(address: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

/// Takes the addresses of an answer that has neither too many of them nor too many aliases.
fn checked(name: &str, records: &[Record]) -> Result<Vec<IpAddr>, Failure> {
    let aliases = records.iter().filter(|record| record.record_type() == RecordType::CNAME).count();
    if aliases > MAX_ALIASES {
        return Err(Failure::denied(format!("`{name}` is an alias of an alias, more than {MAX_ALIASES} deep")));
    }
    let addresses = records.iter().filter_map(|record| match &record.data {
        RData::A(address) => Some(IpAddr::from(address.0)),
        RData::AAAA(address) => Some(IpAddr::from(address.0)),
        _ => None,
    });
    let addresses: Vec<_> = addresses.take(MAX_ANSWERS + 1).collect();
    if addresses.len() > MAX_ANSWERS { Err(too_many(name)) } else { Ok(addresses) }
}

fn too_many(name: &str) -> Failure {
    Failure::denied(format!("`{name}` has more than {MAX_ANSWERS} addresses"))
}

fn unknown(name: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Unavailable, format!("`{name}` does not resolve: {why}"))
        .hint("check the spelling; names of `/etc/hosts` and short names of a search domain are not used")
}

fn unanswered(name: &str, error: &NetError) -> Failure {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) if none.response_code == ResponseCode::NXDomain => {
            unknown(name, &"there is no such name")
        }
        NetError::Dns(DnsError::NoRecordsFound(_)) => unknown(name, &"it has no address record"),
        NetError::Timeout => Failure::new(Kind::TimedOut, format!("no name server returned an address for `{name}`")),
        error => Failure::new(Kind::Unavailable, format!("no name server returned an address for `{name}`: {error}")),
    }
}

fn no_server(why: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("there is no name server to ask: {why}"))
        .hint("set `dns_servers` under [network]")
}
