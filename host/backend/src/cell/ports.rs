//! The ports of a cell that a pane is in, for a person who asks by another program than the cell's host.

use super::Profile;
use super::living::Namespaces;
use config::PROXY_PORT;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

/// The state of a socket that waits for connections (`TCP_LISTEN` of net/tcp_states.h), as the kernel's lists have it.
const LISTEN: &str = "0A";

/// A cell that the shell of a pane is in.
pub struct PaneCell {
    namespaces: Namespaces,
    shell: String,
    /// The ports at which the cell's host listens.
    hosts: Vec<u16>,
}

impl PaneCell {
    /// The cell of a shell that has this profile.
    pub(crate) fn of(profile: &Profile, shell: String) -> io::Result<Self> {
        let hosts = profile.ports.iter().copied().chain([PROXY_PORT]).collect();
        Ok(Self { namespaces: Namespaces::of(profile, &shell)?, shell, hosts })
    }

    /// Tells it from other cells.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn number(&self) -> io::Result<u64> {
        self.namespaces.user()
    }

    /// Unconnected sockets in its network, as [`crate::Backend::cell_sockets`] has them.
    ///
    /// # Errors
    ///
    /// When the cell is gone.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.namespaces.sockets()
    }

    /// The ports at which its commands listen.
    ///
    /// # Errors
    ///
    /// When the cell is gone.
    pub fn listening(&self) -> io::Result<BTreeSet<u16>> {
        let list = |name: &str| std::fs::read_to_string(format!("/proc/{}/net/{name}", self.shell));
        let (v4, v6) = (list("tcp")?, list("tcp6").unwrap_or_default());
        let ports = v4.lines().chain(v6.lines()).filter_map(listens);
        Ok(ports.filter(|port| !self.hosts.contains(port)).collect())
    }

    /// Its shell, by a descriptor that can be read once it has ended.
    ///
    /// # Errors
    ///
    /// When it has ended already.
    pub fn shell(&self) -> io::Result<OwnedFd> {
        let pid = self.shell.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(pidfd_open(pid, PidfdFlags::NONBLOCK)?)
    }
}

/// The port of a line of `/proc/net/tcp` whose socket waits for connections.
fn listens(line: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, port) = local.rsplit_once(':')?;
    (state == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_sockets_that_wait_are_read() {
        for (line, port) in [
            (
                "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1",
                Some(3000),
            ),
            ("   1: 00000000000000000000000001000000:1435 00000000000000000000000000000000:0000 0A 0:0", Some(5173)),
            ("   2: 0100007F:0BB8 0100007F:C000 01 00000000:00000000", None),
            ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", None),
            ("", None),
        ] {
            assert_eq!(listens(line), port, "{line}");
        }
    }
}
