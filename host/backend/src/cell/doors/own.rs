//! Which sockets the processes of a cell have bound: the kernel says it of the network namespace of each (sock_diag(7)), by file system and inode.

use super::super::layout::Layout;
use super::super::living::Namespaces;
use super::Profile;
use crate::spawn;
use base::mountinfo;
use config::CellNetwork;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Of linux/netlink.h, linux/sock_diag.h and linux/unix_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const UNIX_DIAG_MESSAGE: usize = 16;
const UDIAG_SHOW_NAME_AND_VFS: u32 = 3;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
/// Sockets that wait for connections, and those that are bound and not connected.
const STATES: u32 = 1 << 10 | 1 << 7;
/// Bytes that are read at once: the kernel sends no more.
const BUFFER: usize = 32 << 10;

/// The way to ask about the cell that was asked about last.
#[derive(Debug, Default)]
pub(super) struct Own(Option<(u64, OwnedFd)>);

impl Own {
    /// Whether a socket in a directory that can be written is one that a process outside of the cell has bound. One that nobody has bound any more
    /// answers nobody, and its name may be wanted.
    pub(super) fn is_of_others(
        &mut self,
        path: &Path,
        profile: &Profile,
        cell: Option<&Namespaces>,
        is_listed: impl Fn() -> bool,
    ) -> bool {
        if !is_bound(path) {
            return false;
        }
        let Some(cell) = cell else { return true };
        match profile.network {
            // It has the list of this machine, in which nothing tells the one from the other.
            CellNetwork::Full => false,
            CellNetwork::None | CellNetwork::Egress => match self.bound_in(cell) {
                Ok(own) => {
                    let file = file(path);
                    !own.iter().any(|own| file.is_some() && own.file == file || own.name == path)
                }
                // Kernels without that list have the other one, which is of this namespace.
                Err(_) => is_listed(),
            },
        }
    }

    fn bound_in(&mut self, cell: &Namespaces) -> io::Result<Vec<Bound>> {
        let number = cell.user()?;
        if self.0.as_ref().is_none_or(|(known, _)| *known != number) {
            let mut layout = Layout::default();
            layout.ask_for_sockets();
            let socket = spawn::enter(cell, &layout)?.pop().ok_or(io::ErrorKind::NotFound)?;
            self.0 = Some((number, socket));
        }
        let (_, socket) = self.0.as_ref().ok_or(io::ErrorKind::NotFound)?;
        bound(socket)
    }
}

/// Whether a process has bound a socket, in whatever network namespace. It notices nothing: nobody connects to a socket of another type, and to
/// one of this type without sending something means nothing.
fn is_bound(path: &Path) -> bool {
    let Ok(file) = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    // A path may be too long for an address, and be another one's by now.
    let address = format!("/proc/self/fd/{}", file.as_raw_fd());
    let connected = UnixDatagram::unbound().and_then(|socket| socket.connect(address));
    !connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A file as the kernel knows it: the file system, and the lower half of the inode's number.
type Known = (u32, u32);

fn file(path: &Path) -> Option<Known> {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO | StatxFlags::MNT_ID).ok()?;
    // The device of a file may be one that its file system made up for it.
    let table = mountinfo::table();
    let (major, minor) = table.mounts().iter().find(|mount| mount.id == found.stx_mnt_id)?.device;
    Some((major << 20 | minor, found.stx_ino as u32))
}

/// A socket that is bound to a file.
#[derive(Debug, PartialEq)]
struct Bound {
    file: Option<Known>,
    /// As who bound it wrote it.
    name: PathBuf,
}

fn bound(socket: &OwnedFd) -> io::Result<Vec<Bound>> {
    let words = [u32::from(libc::AF_UNIX.cast_unsigned() as u8), STATES, 0, UDIAG_SHOW_NAME_AND_VFS, 0, 0];
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    send(socket, &request, SendFlags::empty())?;
    let (mut all, mut buffer) = (Vec::new(), vec![0; BUFFER]);
    loop {
        let (length, _) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let mut messages = &buffer[..length];
        while let Some((kind, message)) = next(&mut messages, |head| (word(head, 0) as usize, half(head, 4)), HEADER) {
            match kind {
                NLMSG_DONE => return Ok(all),
                NLMSG_ERROR => return Err(io::ErrorKind::Unsupported.into()),
                _ => all.extend(message.get(UNIX_DIAG_MESSAGE..).and_then(Bound::parsed)),
            }
        }
    }
}

impl Bound {
    fn parsed(mut attributes: &[u8]) -> Option<Self> {
        let (mut file, mut name) = (None, None);
        while let Some((kind, value)) =
            next(&mut attributes, |head| (usize::from(half(head, 0)), half(head, 2)), size_of::<u32>())
        {
            if kind == UNIX_DIAG_NAME {
                let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
                name = Some(PathBuf::from(OsStr::from_bytes(&value[..end])));
            } else if kind == UNIX_DIAG_VFS && value.len() >= 2 * size_of::<u32>() {
                file = Some((word(value, 4), word(value, 0)));
            }
        }
        // The others are bound to no file.
        file.is_some().then(|| Self { file, name: name.unwrap_or_default() })
    }
}

/// Takes what comes first of pieces that begin with their length, and are filled up to four bytes.
fn next<'b>(pieces: &mut &'b [u8], head: impl Fn(&[u8]) -> (usize, u16), header: usize) -> Option<(u16, &'b [u8])> {
    let (length, kind) = head(pieces.get(..header)?);
    let value = pieces.get(header..length)?;
    *pieces = pieces.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, value))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes[at..at + 2].try_into().map_or(0, u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, netlink, socket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_kernel_says_which_files_sockets_are_bound_to() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path().canonicalize().expect("a path").join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let asked = socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::SOCK_DIAG)).expect("a socket");
        let is_there = || bound(&asked).expect("a list").contains(&Bound { file: file(&path), name: path.clone() });
        assert!(file(&path).is_some() && is_there());
        assert!(is_bound(&path));
        drop(listener);
        assert!(!is_there() && !is_bound(&path));
    }
}
