//! The network of confined commands: what connects in a cell is accepted here, judged, and carried to where it may go.
//!
//! A cell has no way out of its own; its sockets (`backend/cell/listeners.rs`) are this process's. Programs find hosts by made-up addresses
//! (`names.rs`), so that those work which know of no proxy, or ask the proxy (`proxy.rs`, `socks.rs`). What may be reached is decided by
//! `policy/connections.rs`; `tunnel.rs` holds what is sent against that: the name in a TLS greeting, the host of each plain request
//! (`requests.rs`).

mod keys;
mod names;
mod proxy;
mod requests;
mod socks;
mod tunnel;

use super::connect::{connect, own_addresses};
use super::resolver::Names;
use super::{Egress, own_cell};
use backend::Backend;
use backend::cell::{Listeners, Profile};
use base::addresses::Special;
use base::envelope::{Failure, Kind};
use base::own_listener;
use base::target::Target;
use names::MadeUp;
use parking_lot::Mutex;
use policy::connections::Judge;
use policy::hosts::AdmittedTarget;
use policy::hosts::Route;
use policy::own_cell::CellPort;
use policy::scope::Scope;
use policy::shell::AdmittedCommand;
use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Connections of a cell at one time. More wait until others have ended.
const MOST_CONNECTIONS: usize = 64;
/// How long a connection to one address may take.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// How long a program may take to say where it wants to go, and how long that may be.
const HEAD: Duration = Duration::from_secs(10);
const HEAD_BYTES: usize = 32 << 10;
/// Refusals that one call tells; others are like them.
const MOST_REFUSALS: usize = 8;
/// Servers that are remembered to have been decided on while no call ran.
const MOST_BETWEEN: usize = 64;
/// Servers that one call is decided on. A program that asks for more is not after any one of them.
const MOST_SERVERS: usize = 1024;
/// How long nothing is accepted after that failed.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// The answer to a program in a cell that asks for the address of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// One that was made up.
    MadeUp,
    /// That there is none: some programs refuse addresses that are not public, and go by the proxy where there is none.
    Unknown,
}

/// The networks of cells, by the digests of their profiles.
#[derive(Default)]
pub(super) struct Cells(Mutex<HashMap<String, Served>>);

/// A network, as long as it is served.
struct Served {
    network: Arc<Network>,
    _ends: DropGuard,
}

/// The network of one cell.
struct Network {
    resolver: Arc<Names>,
    naming: Naming,
    made_up: Mutex<MadeUp>,
    calls: Mutex<Calls>,
    room: Arc<Semaphore>,
    /// It is not served any more.
    end: CancellationToken,
}

/// Whose commands are in a cell.
#[derive(Default)]
struct Calls {
    running: Vec<Arc<Caller>>,
    /// The one that ran last, by whose rules what it left goes on.
    last: Option<Arc<Caller>>,
    /// What was decided since then, while no call ran.
    between: Vec<Between>,
}

/// A server, and whether what is left of a call may connect to it.
pub(crate) type Between = (String, Result<(), Failure>);

impl Calls {
    fn note(&mut self, server: String, decided: Result<(), &Failure>) {
        let decided = decided.map_err(Failure::clone);
        let is_known = |(known, other): &Between| *known == server && other.is_ok() == decided.is_ok();
        if self.between.len() < MOST_BETWEEN && !self.between.iter().any(is_known) {
            self.between.push((server, decided));
        }
    }
}

/// What became of a server in a call.
type Decided = Arc<OnceCell<Result<AdmittedTarget, Failure>>>;

/// A call whose command is in a cell.
struct Caller {
    /// Not held: who follows a call waits until all that knows of it is gone.
    scope: Weak<Scope>,
    /// Where the commands of its session run.
    backend: Arc<dyn Backend>,
    judge: Arc<dyn Judge>,
    /// By host and port, as long as the call runs: a person is asked once.
    decided: Mutex<HashMap<String, Decided>>,
    refused: Mutex<Vec<String>>,
    /// The last refusal of each server that could not be connected to since.
    servers: Mutex<HashMap<String, Failure>>,
    /// The servers in the session's own cell that the call itself goes to.
    wanted: Mutex<BTreeSet<String>>,
}

/// A command's use of the network of its cell. Afterwards nobody is asked for it.
pub struct Calling {
    network: Arc<Network>,
    caller: Arc<Caller>,
    before: Vec<Between>,
}

impl Calling {
    /// What was decided between the call before and this one.
    pub fn before(&self) -> &[Between] {
        &self.before
    }

    /// What was refused so far, with the lines that would open it.
    pub fn refusals(&self) -> Vec<String> {
        self.caller.refused.lock().clone()
    }

    /// The call itself has the browser go to a server: what it sends there on nobody's behalf is this.
    pub fn goes_to(&self, target: &Target) {
        self.caller.wanted.lock().insert(target.server());
    }

    /// Why a connection to this server was refused last, if one was and none was made since.
    pub fn refusal(&self, server: &str) -> Option<Failure> {
        self.caller.servers.lock().get(server).cloned()
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.network.calls.lock().running.retain(|caller| !Arc::ptr_eq(caller, &self.caller));
    }
}

impl Egress {
    /// Has the network of a command's cell served as long as what this returns lives; none where there is none to serve.
    ///
    /// # Errors
    ///
    /// When it cannot be.
    pub fn serve_command(&self, command: &AdmittedCommand, scope: &Arc<Scope>) -> Result<Option<Calling>, Failure> {
        self.publish(command, &scope.backend).into_iter().for_each(|notice| scope.guard.notice(notice));
        let network = command.network();
        network.map(|(cell, connections)| self.serve(cell, Arc::new(connections), scope)).transpose()
    }

    /// Serves the network of the cell that a call's command is in.
    ///
    /// # Errors
    ///
    /// When its sockets cannot be made.
    pub fn serve(&self, profile: &Profile, judge: Arc<dyn Judge>, scope: &Arc<Scope>) -> Result<Calling, Failure> {
        let unavailable = |why: String| Failure::new(Kind::Unavailable, format!("commands cannot be confined: {why}"));
        let listeners = scope.backend.listeners(profile).map_err(unavailable)?;
        let mut all = self.cells.0.lock();
        if let Some(listeners) = listeners {
            let served = Served::new(self.names.clone(), Naming::MadeUp);
            served.network.listen(listeners).map_err(|error| unavailable(error.to_string()))?;
            all.insert(profile.digest().to_owned(), served);
        }
        // Another host may have the sockets: then it decides.
        let served =
            all.entry(profile.digest().to_owned()).or_insert_with(|| Served::new(self.names.clone(), Naming::MadeUp));
        let network = served.network.clone();
        drop(all);
        Ok(network.called(judge, scope))
    }

    /// Serves the network of a cell that outlives calls, as long as what this returns is there.
    ///
    /// # Errors
    ///
    /// When its sockets cannot be made.
    pub fn attach(&self, listeners: Listeners, naming: Naming) -> io::Result<Attached> {
        let served = Served::new(self.names.clone(), naming);
        served.network.listen(listeners)?;
        Ok(Attached(served))
    }
}

/// The network of a cell that outlives calls: what is in it connects by the rules of the call that came last.
pub struct Attached(Served);

impl Attached {
    /// A call that has to do with what is in the cell begins.
    pub fn called(&self, judge: Arc<dyn Judge>, scope: &Arc<Scope>) -> Calling {
        self.0.network.called(judge, scope)
    }
}

impl Served {
    fn new(resolver: Arc<Names>, naming: Naming) -> Self {
        let end = CancellationToken::new();
        let network = Network {
            resolver,
            naming,
            made_up: Mutex::default(),
            calls: Mutex::default(),
            room: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            end: end.clone(),
        };
        Self { network: Arc::new(network), _ends: end.drop_guard() }
    }
}

/// One connection of a cell, with its place among them.
#[derive(Clone)]
struct Client {
    network: Arc<Network>,
    _room: Arc<OwnedSemaphorePermit>,
}

/// A connection to where a client may go.
struct Server {
    target: Target,
    stream: TcpStream,
    /// It is in the session's own cell.
    is_in_cell: bool,
}

impl Network {
    fn listen(self: &Arc<Self>, listeners: Listeners) -> io::Result<()> {
        let names = UdpSocket::from_std(listeners.names)?;
        self.spawn(names::answer(self.clone(), names));
        let proxy = TcpListener::from_std(listeners.proxy)?;
        self.spawn(accept(self.clone(), of_hosts(proxy), proxy::serve));
        for (port, listener) in listeners.caught {
            let listener = TcpListener::from_std(listener)?;
            let catch = move |client, stream| tunnel::catch(client, stream, port);
            self.spawn(accept(self.clone(), of_hosts(listener), catch));
        }
        for (by, listener) in listeners.keys {
            let listener = UnixListener::from_std(listener)?;
            let next = move |context: &mut Context<'_>| listener.poll_accept(context).map_ok(|(stream, _)| stream);
            self.spawn(accept(self.clone(), next, move |client, stream| ::keys::serve(Box::new(client), by, stream)));
        }
        Ok(())
    }

    /// A call begins whose command or page is in the cell.
    fn called(self: &Arc<Self>, judge: Arc<dyn Judge>, scope: &Arc<Scope>) -> Calling {
        let (decided, refused, servers) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (scope, backend) = (Arc::downgrade(scope), scope.backend.clone());
        let wanted = Mutex::default();
        let caller = Arc::new(Caller { scope, backend, judge, decided, refused, servers, wanted });
        let mut calls = self.calls.lock();
        calls.running.push(caller.clone());
        calls.last = Some(caller.clone());
        let before = std::mem::take(&mut calls.between);
        drop(calls);
        Calling { network: self.clone(), caller, before }
    }

    /// Refuses what is not encrypted, where it may not pass.
    fn check_plain(&self, target: &Target) -> Result<(), Failure> {
        match self.caller() {
            (Some(caller), _) if !caller.judge.admits_plain() => {
                let refusal = Failure::denied(format!("a connection to `{}` is not encrypted", target.server()))
                    .hint("`fetch_plain_http = true` under [tools] lets pages be loaded without encryption");
                caller.refuse(&refusal);
                Err(refusal)
            }
            _ => Ok(()),
        }
    }

    /// Does something until it is done, or the network is not served any more.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = end.cancelled() => {}
            }
        });
    }

    /// Who may be asked for a connection that is made now, and by whose rules it goes.
    fn caller(&self) -> (Option<Arc<Caller>>, bool) {
        let calls = self.calls.lock();
        // Which of them connects is not known: one that has a secret decides for all.
        let strictest = calls.running.iter().rev().find(|caller| caller.judge.has_secret());
        match strictest.or(calls.running.last()) {
            Some(running) => (Some(running.clone()), true),
            None => (calls.last.clone(), false),
        }
    }

    /// Connects to a target, if it may be reached. The result of the call has a notice of what is refused.
    async fn open(&self, target: Target) -> Result<Server, Failure> {
        let (caller, runs) = self.caller();
        let Some(caller) = caller else {
            return Err(Failure::denied("no call of this host runs in the cell"));
        };
        let server = target.server();
        let opened = self.open_for(&caller, runs, target).await;
        match &opened {
            Ok(_) => drop(caller.servers.lock().remove(&server)),
            Err(refusal) => {
                caller.refuse(refusal);
                caller.refuse_server(server, refusal);
            }
        }
        opened
    }

    async fn open_for(&self, caller: &Caller, runs: bool, target: Target) -> Result<Server, Failure> {
        let port = caller.judge.cell_port(&target, &*caller.backend).await?;
        if let Some(port) = &port
            && let Some(stream) = caller.enter_cell(port).await?
        {
            return Ok(Server { target, stream, is_in_cell: true });
        }
        let opened = self.open_host(caller, runs, target).await;
        opened.map_err(|refusal| match &port {
            Some(port) => own_cell::unheard_here(port, refusal),
            None => refusal,
        })
    }

    async fn open_host(&self, caller: &Caller, runs: bool, target: Target) -> Result<Server, Failure> {
        let server = target.server();
        let admitted = caller.admit(target, runs).await;
        if !runs {
            self.calls.lock().note(server, admitted.as_ref().map(drop));
        }
        let admitted = admitted?;
        let judge = |target: &Target, address: IpAddr, special: Option<Special>, is_own: bool| {
            caller.judge.admit_address(target, address, special, is_own)
        };
        let route = connect(&self.resolver, admitted, judge).await?;
        check_listener(&route)?;
        let stream = stream(&route).await?;
        Ok(Server { target: route.target().clone(), stream, is_in_cell: false })
    }

    /// Notes that a server is not reached as a client asks for it.
    fn refuse_server(&self, target: &Target, refusal: &Failure) {
        if let (Some(caller), _) = self.caller() {
            caller.refuse(refusal);
            caller.refuse_server(target.server(), refusal);
        }
    }

    /// Whether the call that runs, or ran last, goes to a server by itself.
    fn is_wanted(&self, target: &Target) -> bool {
        self.caller().0.is_some_and(|caller| caller.wanted.lock().contains(&target.server()))
    }

    /// Notes that what a client said does not fit where it was let to.
    fn refuse(&self, refusal: &Failure) {
        if let (Some(caller), _) = self.caller() {
            caller.refuse(refusal);
        }
    }
}

impl Caller {
    /// Decides once a call: the first connection to a server waits for a person, others with it. What a person said holds as long as the call.
    async fn admit(&self, target: Target, runs: bool) -> Result<AdmittedTarget, Failure> {
        let call = if runs { self.scope.upgrade() } else { None };
        let Some(call) = call else { return self.judge.admit(target, None).await };
        let decided = {
            let (server, mut all) = (target.server(), self.decided.lock());
            if all.len() >= MOST_SERVERS && !all.contains_key(&server) {
                let message = format!("limit: servers that one call connects to {MOST_SERVERS}");
                return Err(Failure::limit(message).hint("connect to fewer in one command"));
            }
            all.entry(server).or_default().clone()
        };
        decided.get_or_init(|| self.judge.admit(target, Some(&call))).await.clone()
    }

    /// Connects to a port of the session's own cell; none if nothing listens there.
    async fn enter_cell(&self, port: &CellPort) -> Result<Option<TcpStream>, Failure> {
        let Some(stream) = own_cell::connect(port, &self.backend).await? else { return Ok(None) };
        let call = self.scope.upgrade();
        self.judge.admit_to_cell(port, call.as_deref()).await?;
        Ok(Some(stream))
    }

    fn refuse_server(&self, server: String, refusal: &Failure) {
        let mut servers = self.servers.lock();
        if servers.len() < MOST_SERVERS {
            servers.insert(server, refusal.clone());
        }
    }

    fn refuse(&self, refusal: &Failure) {
        let told = told(refusal);
        let mut refused = self.refused.lock();
        if refused.len() < MOST_REFUSALS && !refused.contains(&told) {
            refused.push(told);
        }
    }
}

/// A refusal with the line that opens it.
fn told(refusal: &Failure) -> String {
    let hint = refusal.hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default();
    format!("{}{hint}", refusal.message)
}

/// The connections at a port.
fn of_hosts(listener: TcpListener) -> impl Fn(&mut Context<'_>) -> Poll<io::Result<TcpStream>> {
    move |context| listener.poll_accept(context).map_ok(|(stream, _)| stream)
}

/// Accepts the connections of a cell, as many at one time as there may be.
async fn accept<S, W: Future<Output = ()> + Send + 'static>(
    network: Arc<Network>,
    next: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    work: impl Fn(Client, S) -> W,
) {
    loop {
        let Ok(stream) = poll_fn(&next).await else {
            // It ended before it was accepted, or no descriptor is left: others end meanwhile.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(room) = network.room.clone().acquire_owned().await else { return };
        let client = Client { network: network.clone(), _room: Arc::new(room) };
        network.spawn(work(client, stream));
    }
}

/// Connects to the addresses of a route in turn.
#[expect(clippy::disallowed_methods, reason = "the egress opens sockets, and this one is to judged addresses alone")]
pub(super) async fn stream(route: &Route) -> Result<TcpStream, Failure> {
    let mut trouble = None;
    for address in route.addresses() {
        match tokio::time::timeout(CONNECT, TcpStream::connect(*address)).await {
            Ok(Ok(stream)) => {
                // What a program sends in one piece goes on in one.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => trouble = Some((*address, error.to_string())),
            Err(_) => trouble = Some((*address, format!("it did not accept the connection within {CONNECT:?}"))),
        }
    }
    let (address, why): (SocketAddr, String) = trouble.ok_or_else(|| Failure::denied("there is no address"))?;
    let server = route.target().server();
    Err(Failure::new(Kind::Unavailable, format!("no connection to `{server}` at {}: {why}", address.ip())))
}

/// Ends a connection so that its program sees an error and no end.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Refuses what leads to a listener of a Toolcrib program on this machine.
fn check_listener(route: &Route) -> Result<(), Failure> {
    let port = route.target().port();
    let own = own_addresses()?;
    let leads_here = |address: &SocketAddr| {
        let address = address.ip().to_canonical();
        address.is_loopback() || address.is_unspecified() || own.contains(&address)
    };
    if !route.addresses().iter().any(leads_here) {
        return Ok(());
    }
    if !own_listener::is_marked(port) {
        return Ok(());
    }
    let message = format!("a Toolcrib program listens at `{}`, and no cell reaches those", route.target().server());
    Err(Failure::denied(message).hint("nothing opens it; a port of the cell itself is at `localhost` there"))
}
