//! Marks beside the listeners of Toolcrib programs on this machine, by which each such program knows those of the others.
//!
//! A mark is a name in the abstract namespace of Unix sockets (unix(7)): every program of the network namespace sees it, and it ends with the
//! program. Which program has a port open cannot be asked instead: one that keeps secrets hides its files from others of its user.

use crate::text::id::random_id;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What marks begin with, before the port.
const NAME: &str = "toolcrib-listens-";
/// The Unix sockets of this network namespace; abstract names begin with `@`.
const LIST: &str = "/proc/self/net/unix";

/// The mark of a listener, for as long as it is kept.
pub struct Mark {
    _socket: UnixDatagram,
}

/// Marks a port at which this program listens.
///
/// # Errors
///
/// What the system says.
pub fn mark(port: u16) -> io::Result<Mark> {
    let name = format!("{NAME}{port}-{}", random_id());
    Ok(Mark { _socket: UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)? })
}

/// Whether a Toolcrib program listens at this port. If that is not known, one may.
pub fn is_marked(port: u16) -> bool {
    let mark = format!(" @{NAME}{port}-");
    std::fs::read(LIST).map_or(true, |list| String::from_utf8_lossy(&list).contains(&mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_until_it_goes() {
        assert!(!is_marked(1));
        let (one, other) = (mark(1).expect("a mark"), mark(1).expect("a second one"));
        assert!(is_marked(1) && !is_marked(11));
        drop(one);
        assert!(is_marked(1));
        drop(other);
        assert!(!is_marked(1));
    }
}
