//! The ways out of a cell that reaches hosts: sockets that are made in its namespaces and are this process's. What connects to them is accepted
//! here, so a cell has no way out but what `egress/` and `keys/` do for it.

use super::layout::Layout;
use super::{KEYS_HOST, Namespaces, Profile, SSH_AGENT};
use crate::spawn;
use config::{Keys, PROXY_PORT};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

/// Where names are asked for.
const NAMES_PORT: u16 = 53;

/// The sockets of a cell. None of them blocks.
pub struct Listeners {
    /// For programs that know a proxy.
    pub proxy: TcpListener,
    /// For questions for names.
    pub names: UdpSocket,
    /// For connections to a port, whatever the address, and which that is.
    pub caught: Vec<(u16, TcpListener)>,
    /// For what asks for keys of the user's.
    pub keys: Vec<(Asked, UnixListener)>,
}

/// By whom keys are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// By ssh, and what else knows its agent.
    BySsh,
    /// By git, through a program of ours.
    ByGit,
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
        // A command may have put something in their place: then it has none.
        let keys = Self::keys(namespaces, profile).unwrap_or_default();
        Ok(Some(Self { proxy, names, caught: caught.collect(), keys }))
    }

    fn keys(namespaces: &Namespaces, profile: &Profile) -> io::Result<Vec<(Asked, UnixListener)>> {
        let is_asked = |keys: &[Keys]| keys.iter().any(|of| profile.keys.contains(of));
        let places = [
            (Asked::BySsh, SSH_AGENT, is_asked(&[Keys::Ssh])),
            (Asked::ByGit, KEYS_HOST, is_asked(&[Keys::Gpg, Keys::Passwords])),
        ];
        let mut layout = Layout::default();
        let served: Vec<_> = places.into_iter().filter(|(.., is_asked)| *is_asked).collect();
        served.iter().try_for_each(|(_, place, _)| layout.listen_at(place))?;
        if served.is_empty() {
            return Ok(Vec::new());
        }
        let bound = spawn::enter(namespaces, &layout)?;
        Ok(served.into_iter().map(|(by, ..)| by).zip(bound.into_iter().map(OwnedFd::into)).collect())
    }
}
