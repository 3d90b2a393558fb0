//! The network of a cell that reaches hosts: sockets that are made in its namespace and are this process's. What connects to them is accepted
//! here, so a cell has no way out but what `egress/` does for it.

use super::layout::Layout;
use super::{Namespaces, Profile};
use crate::backend::spawn;
use crate::config::{CellNetwork, PROXY_PORT};
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

/// Where names are asked for.
const NAMES_PORT: u16 = 53;

/// What a program sets that looks for a proxy in its environment, and what it does not ask that for.
const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// The sockets of a cell. None of them blocks.
pub struct Listeners {
    /// For programs that know a proxy.
    pub proxy: TcpListener,
    /// For questions for names.
    pub names: UdpSocket,
    /// For connections to a port, whatever the address, and which that is.
    pub caught: Vec<(u16, TcpListener)>,
}

impl Listeners {
    /// Makes them; none where another host has.
    pub(super) fn bind(namespaces: &Namespaces, profile: &Profile) -> io::Result<Option<Self>> {
        let mut layout = Layout::default();
        layout.listen(Ipv4Addr::LOCALHOST, PROXY_PORT, libc::SOCK_STREAM);
        layout.listen(Ipv4Addr::LOCALHOST, NAMES_PORT, libc::SOCK_DGRAM);
        profile.ports.iter().for_each(|port| layout.listen(Ipv4Addr::UNSPECIFIED, *port, libc::SOCK_STREAM));
        let bound = match spawn::enter(namespaces, &layout) {
            Ok(bound) => bound,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bound = bound.into_iter();
        let mut next = || bound.next().ok_or(io::ErrorKind::NotFound);
        let (proxy, names) = (next()?.into(), next()?.into());
        let caught = profile.ports.iter().copied().zip(bound.map(OwnedFd::into).collect::<Vec<TcpListener>>());
        Ok(Some(Self { proxy, names, caught: caught.collect() }))
    }
}

/// Settings of git in a cell. Only the person's git cleans up: in a cell each commit would leave a process behind for that.
const GIT: [(&str, &str); 2] = [("maintenance.auto", "false"), ("gc.auto", "0")];

impl Profile {
    /// Adds the variables by which programs in such a cell find what it has for them.
    pub(in crate::backend) fn add_variables(&self, environment: &mut Vec<(OsString, OsString)>) {
        let mut add = |name: &str, value: &OsStr| {
            environment.retain(|(other, _)| *other != *name);
            environment.push((name.into(), value.into()));
        };
        for cache in &self.caches {
            if let Some(name) = &cache.variable {
                add(name, cache.place.as_os_str());
            }
        }
        add("GIT_CONFIG_COUNT", GIT.len().to_string().as_ref());
        for (number, (key, value)) in GIT.into_iter().enumerate() {
            add(&format!("GIT_CONFIG_KEY_{number}"), key.as_ref());
            add(&format!("GIT_CONFIG_VALUE_{number}"), value.as_ref());
        }
        match self.network {
            CellNetwork::None | CellNetwork::Full => return,
            CellNetwork::Egress => {}
        }
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let variables = VARIABLES.map(|name| (name, proxy.as_str())).into_iter().chain([("NO_PROXY", DIRECT)]);
        // Some programs look for one spelling, some for the other.
        for (name, value) in variables {
            add(&name.to_lowercase(), value.as_ref());
            add(name, value.as_ref());
        }
    }
}
