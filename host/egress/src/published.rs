//! Ports of a cell on this machine's loopback, for the person beside the agent: `publish` under [confine], and `toolcrib panes ports publish`.
//!
//! A connection is carried byte by byte to the same port of the cell, by a socket that is made there for it.

use super::own_cell::connected;
use super::{Egress, own_cell};
use backend::Backend;
use backend::cell::{PaneCell, Profile};
use base::own_listener::{self, Mark};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use policy::shell::AdmittedCommand;
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Connections to a port at one time. More wait until others have ended.
const MOST_CONNECTIONS: usize = 64;

/// The ports that are published, each with the cell that a command entered last.
#[derive(Default)]
pub(super) struct Published(Mutex<HashMap<u16, Port>>);

/// A port of this machine's loopback.
enum Port {
    /// Leads to this cell until the guard is dropped.
    Open { leads_to: Arc<Mutex<Arc<Profile>>>, _ends: DropGuard },
    /// Another program has it, which was told.
    Taken,
}

impl Egress {
    /// Has the ports that settings publish lead to the cell of a command. Returns what the person should know.
    pub(super) fn publish(&self, command: &AdmittedCommand, backend: &Arc<dyn Backend>) -> Vec<String> {
        let Some(profile) = command.cell().filter(|profile| profile.has_own_network()) else { return Vec::new() };
        let mut all = self.published.0.lock();
        let mut told = Vec::new();
        for &port in command.published() {
            match all.get(&port) {
                Some(Port::Open { leads_to, .. }) => *leads_to.lock() = profile.clone(),
                Some(Port::Taken) => {}
                None => match open(port, profile, backend) {
                    Ok(opened) => _ = all.insert(port, opened),
                    Err(error) => {
                        told.push(format!(
                            "port {port} of `publish` under [confine] is not published, as this machine cannot listen there: {error}"
                        ));
                        all.insert(port, Port::Taken);
                    }
                },
            }
        }
        told
    }
}

fn open(port: u16, profile: &Arc<Profile>, backend: &Arc<dyn Backend>) -> io::Result<Port> {
    let listener = listener(port)?;
    let (leads_to, end) = (Arc::new(Mutex::new(profile.clone())), CancellationToken::new());
    let (backend, cell) = (backend.clone(), leads_to.clone());
    let sockets = move || {
        let profile = cell.lock().clone();
        backend.cell_sockets(&profile).map_err(io::Error::other).map(Option::unwrap_or_default)
    };
    let ended = end.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = carry_all(listener, port, sockets) => {}
            () = ended.cancelled() => {}
        }
    });
    Ok(Port::Open { leads_to, _ends: end.drop_guard() })
}

/// A listener on this machine's loopback, with the mark that keeps cells from it.
struct Listener {
    socket: TcpListener,
    _mark: Mark,
}

fn listener(port: u16) -> io::Result<Listener> {
    let socket = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.set_nonblocking(true)?;
    Ok(Listener { _mark: own_listener::mark(port)?, socket: TcpListener::from_std(socket)? })
}

async fn carry_all(
    listener: Listener,
    port: u16,
    sockets: impl Fn() -> io::Result<Vec<OwnedFd>> + Clone + Send + 'static,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(room) = room.clone().acquire_owned().await else { return };
        let Ok((client, _)) = listener.socket.accept().await else {
            // No descriptor is left: others end meanwhile.
            tokio::time::sleep(own_cell::PAUSE).await;
            continue;
        };
        let sockets = sockets.clone();
        tokio::spawn(async move {
            let _room = room;
            carry(client, port, sockets).await;
        });
    }
}

async fn carry(mut client: TcpStream, port: u16, sockets: impl Fn() -> io::Result<Vec<OwnedFd>> + Send + 'static) {
    let Ok(Ok(sockets)) = tokio::task::spawn_blocking(sockets).await else { return };
    if let Some(mut server) = connected(sockets, port).await {
        let _ = client.set_nodelay(true);
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// Has a port of this machine's loopback lead to one of a cell, until the shell of its pane has ended; `begun` is called once it does.
///
/// # Errors
///
/// When this machine cannot listen there, or the cell has ended.
pub fn publish_port(
    cell: PaneCell,
    port: u16,
    at: u16,
    begun: impl FnOnce(SocketAddr) + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let ended = has_ended(cell.shell()?);
        let listener = listener(at)?;
        begun(listener.socket.local_addr()?);
        let cell = Arc::new(cell);
        tokio::select! {
            () = carry_all(listener, port, move || cell.sockets()) => Ok(()),
            _ = ended => Ok(()),
        }
    })
}

/// Says when a process has ended. The thread that waits for it is nothing that the end of this program waits for.
fn has_ended(process: OwnedFd) -> oneshot::Receiver<()> {
    let (says, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], None);
        let _ = says.send(());
    });
    ended
}
