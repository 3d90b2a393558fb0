//! `toolcrib serve`: tools for any agent that speaks the Model Context Protocol, over standard input and output or over HTTP.

mod roots;

use super::call::cancel_on_signal;
use super::setup::{Setup, cannot, constant, no_workspace, usage, working_directory};
use super::{Global, INTERRUPTED, calls, choice, jobs, notice};
use ::config::TOKEN_VARIABLE;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolcrib::backend::local::Local;
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::jobs::JobsRunning;
use toolcrib_serve::embedder::{Connected, Place, Served};
use toolcrib_serve::mcp::http::{self, Options};
use toolcrib_serve::mcp::lazy::Lazy;
use toolcrib_serve::mcp::roots::Opened;
use toolcrib_serve::mcp::token::Token;
use toolcrib_serve::mcp::{Door, Results, stdio};
use toolcrib_serve::{Catalog, Notices};

/// Where HTTP is served when only `--http` is said.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8722";
/// How long calls in flight may take to end when the client has gone.
const PATIENCE: Duration = Duration::from_millis(1500);

#[derive(clap::Args)]
#[command(
    after_help = "Over HTTP every request must carry a token: `Authorization: Bearer TOKEN`. It is read from --token-file, or from the \
environment as TOOLCRIB_TOKEN, or made once and kept in a file whose path is printed.
Actions that need an approval are asked of the person at the client (elicitation); --yes answers in advance."
)]
pub(super) struct Arguments {
    /// The project to work in; default: the first root of the client, or the directory that this is started in
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Serve HTTP at this address, or at this port of loopback, instead of standard input and output
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS, value_parser = address)]
    http: Option<SocketAddr>,
    /// File with the token that clients send; only you may be able to read it
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "no_auth")]
    token_file: Option<PathBuf>,
    /// Require no token; only on loopback
    #[arg(long, requires = "http")]
    no_auth: bool,
    /// A further name of this server in Host headers, for example behind a proxy (repeatable)
    #[arg(long, value_name = "HOST", requires = "http", value_parser = http::host)]
    allow_host: Vec<String>,
    /// The origin of a web page that may call, such as https://app.example (repeatable)
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = http::origin)]
    allow_origin: Vec<String>,
    /// Serve the tools of this toolset alone: each session is opened on it
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
    /// List two tools in the place of all: one finds tools, and the other calls them; the setting tools.always lists more
    #[arg(long)]
    lazy: bool,
    /// What a model reads of a result
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = choice::one_of::<Results>())]
    results: Results,
    /// Where the program is that takes the events of tools such as `reply`: unix:PATH where it listens at a socket, or a program to start, as a
    /// JSON list
    #[arg(long, value_name = "WHERE", value_parser = Place::parse)]
    embedder: Option<Place>,
    /// A constant that the toolset wants of its sessions; the value is JSON, or text (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "toolset", value_parser = constant)]
    bind: Vec<(String, Value)>,
}

/// An address with its port, or a port of loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|_| text.parse()).map_err(|_| "give a port, or an address with a port, such as 127.0.0.1:8722".into())
}

pub(super) async fn run(
    global: &Global,
    mut arguments: Arguments,
    token: Option<OsString>,
) -> Result<ExitCode, Failure> {
    let global = &global.with_whole_paths()?;
    enter(&mut arguments)?;
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone())?;
    let opened = if arguments.directory.is_none() && arguments.http.is_none() {
        let Some(opened) = roots::enter(global, arguments.lazy, &stop).await? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        Some(opened)
    } else {
        None
    };
    let mut setup = Setup::serving(global).await?;
    setup.context = setup.context.clone().cancel(stop.clone());
    // Elsewhere there is no workspace of this machine.
    let why = no_workspace(&working_directory()?, &setup.dirs.home);
    if let Some(why) = why.filter(|_| setup.context.backend.is_this_machine()) {
        notice(&format!("{why}: start this program in a project, or name one with `--directory DIR`"));
    }
    setup.open(arguments.toolset.as_deref(), &arguments.bind)?;
    let embedder = arguments.embedder.clone().map(|place| embedder(place, &setup)).transpose()?;
    if let Some(embedder) = &embedder {
        setup.context = setup.context.clone().embedder(embedder.clone());
    }
    let (lazy, results) = (arguments.lazy.then(Lazy::default), arguments.results);
    let options = options(&setup, arguments, token)?;
    let _announced = calls::announce(&setup);
    let changes = embedder.map(|embedder| embedder.changes());
    let catalog = Catalog::watching(setup.context.tools.clone(), setup.plugins.clone(), Notices::new(notice), changes);
    let jobs_running = jobs::begin(&setup, &setup.context, &catalog).await?;
    let principal = if options.is_some() { "mcp:http" } else { "mcp:stdio" };
    let door = door(global, &setup, catalog, principal, lazy, results);
    let served = match options {
        Some(options) => over_http(options, door.clone(), stop).await,
        None => over_stdio(opened, door.clone(), stop).await,
    };
    close(&setup, &door, jobs_running, served).await
}

/// Goes to the directory that is named. Other paths mean what they meant before.
fn enter(arguments: &mut Arguments) -> Result<(), Failure> {
    let Some(directory) = &arguments.directory else { return Ok(()) };
    if let Some(file) = &mut arguments.token_file {
        *file = std::path::absolute(&*file).map_err(|error| cannot(file, &error))?;
    }
    std::env::set_current_dir(directory)
        .map_err(|error| cannot(directory, &error).hint("give `--directory` the directory of a project"))
}

/// Ends all that still runs when clients were served. The exit code says whether a signal has ended that.
pub(super) async fn close(
    setup: &Setup,
    door: &Door,
    jobs_running: Option<JobsRunning>,
    served: Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let was_stopped = setup.context.cancel.is_cancelled();
    door.close(PATIENCE).await;
    jobs::end(jobs_running).await;
    setup.context.panes.leave().await;
    if was_stopped { served.map(|_| ExitCode::from(INTERRUPTED)) } else { served }
}

/// The program that takes the events, which is looked for as long as this one runs.
fn embedder(place: Place, setup: &Setup) -> Result<Arc<Connected>, Failure> {
    let Dirs { home, state, environment, .. } = setup.dirs.clone();
    let local = Local::new(working_directory()?, home, state, environment);
    let served = Served { host: setup.host.clone(), context: setup.context.clone() };
    Ok(Connected::with(place, Arc::new(local), Notices::new(notice), setup.context.cancel.clone(), served))
}

/// The side of this program at which clients come in.
pub(super) fn door(
    global: &Global,
    setup: &Setup,
    catalog: Catalog,
    principal: &str,
    lazy: Option<Lazy>,
    results: Results,
) -> Door {
    // Its own token: a client that leaves ends its calls, but sends no signal to this program.
    let cancel = setup.context.cancel.child_token();
    let context = setup.context.clone().principal(principal).cancel(cancel);
    Door::new(setup.host.clone(), context, catalog, global.yes, lazy, results)
}

/// How HTTP is served, if it is, and what the user has to know about it.
fn options(setup: &Setup, arguments: Arguments, given: Option<OsString>) -> Result<Option<Options>, Failure> {
    let Some(listen) = arguments.http else { return Ok(None) };
    if arguments.no_auth && !listen.ip().is_loopback() {
        return Err(usage(format!("`--no-auth` at {listen} would let everybody in"))
            .hint("listen on loopback, or omit `--no-auth`"));
    }
    let token = if arguments.no_auth { None } else { Some(token(setup, arguments.token_file, given)?) };
    if !listen.ip().is_loopback() {
        notice("the connection is not encrypted: put a proxy with TLS or a tunnel before it");
    }
    if listen.ip().is_unspecified() && arguments.allow_host.is_empty() {
        notice("clients that call this server by another name than localhost are refused: `--allow-host` adds a name");
    }
    if arguments.no_auth {
        notice("no token is required: every program on this machine can call");
    }
    Ok(Some(Options { listen, token, hosts: arguments.allow_host, origins: arguments.allow_origin }))
}

fn token(setup: &Setup, file: Option<PathBuf>, given: Option<OsString>) -> Result<Token, Failure> {
    if let Some(file) = file {
        return Token::read(&file);
    }
    if let Some(text) = given {
        // A value that is not text is not a token either, and is refused as one.
        return Token::new(&text.to_string_lossy(), TOKEN_VARIABLE);
    }
    let (token, path) = Token::kept(&setup.dirs)?;
    notice(&format!("the token for clients is in {}", path.display()));
    Ok(token)
}

/// Serves the client of standard input and output, which was asked for its roots if it comes with them.
async fn over_stdio(
    opened: Option<(Opened, Vec<String>)>,
    door: Door,
    stop: CancellationToken,
) -> Result<ExitCode, Failure> {
    let (opened, notices) = opened.unwrap_or_else(|| (Opened::unasked(), Vec::new()));
    if opened.roots().is_some() {
        door.asked_for_roots(notices);
    }
    stdio::serve(door, opened, stop).await.map(|()| ExitCode::SUCCESS)
}

async fn over_http(options: Options, door: Door, stop: CancellationToken) -> Result<ExitCode, Failure> {
    let listen = options.listen;
    let bound = |address| {
        let _ = writeln!(anstream::stderr(), "listening on http://{address}{}", http::PATH);
    };
    http::serve(options, door, stop, bound).await.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrNotAvailable => "give an address that this machine has",
            _ => "try another port: `--http 0` takes a free one",
        };
        Failure::new(Kind::Unavailable, format!("{listen} cannot be served: {error}")).hint(hint)
    })?;
    Ok(ExitCode::SUCCESS)
}
