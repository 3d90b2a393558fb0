//! The interfaces of WASI, for components that were made for other hosts: what reaches the world goes by a capability of ours, with its grant, its
//! refusals and its records.
//!
//! - `http.rs`: `wasi:http`, by the egress and the grant for `http`.
//! - `filesystem.rs`: `wasi:filesystem`, by `files`; what is written waits in `draft.rs` until it is whole.
//! - `environment.rs`: `wasi:cli/environment` and `wasi:config`, from the plugin's section.
//!
//! Clocks, random numbers and streams are wasmtime's own, as are its sockets, which refuse everything. Its file system is not linked.

mod draft;
mod environment;
mod filesystem;
mod http;

pub(crate) use draft::Drafts;
pub use http::Web;

use crate::sandbox::State;
use base::capability::Capability;
use base::envelope::Failure;
use parking_lot::Mutex;
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::bindings::{cli, random, sockets};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};

/// Failures of one call that are kept.
const MOST_KEPT: usize = 3;

/// Links all of WASI that there is.
pub fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // Streams, clocks, good random numbers, and the three streams of a program.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<_, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    let options = wasmtime_wasi::p2::bindings::LinkOptions::default();
    sockets::tcp::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    sockets::udp::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    sockets::network::add_to_linker::<_, WasiSockets>(linker, &(&options).into(), State::sockets)?;
    sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(linker, State::sockets)?;
    environment::link(linker)?;
    filesystem::link(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

/// The function of ours that a function of WASI is granted by, if it reaches the world.
pub fn granted_by(interface: &str, function: &str) -> Option<(Capability, &'static str)> {
    let interface = interface.split_once('@').map_or(interface, |(name, _)| name);
    match interface {
        "wasi:http/outgoing-handler" => Some((Capability::Http, "[method]request.send")),
        "wasi:filesystem/types" => {
            let method = function.strip_prefix("[method]descriptor.")?;
            let (reads, writes) = (["read", "stat", "metadata"], ["write", "append", "set-size", "create"]);
            let begins = |words: &[&str]| words.iter().any(|word| method.starts_with(word));
            match (begins(&reads), begins(&writes)) {
                (true, _) => Some((Capability::Files, "read")),
                (_, true) => Some((Capability::Files, "write")),
                (false, false) => None,
            }
        }
        _ => None,
    }
}

/// The capability that a whole interface of WASI is granted by, if it reaches the world.
pub fn capability(interface: &str) -> Option<Capability> {
    let interface = interface.split_once('@').map_or(interface, |(name, _)| name);
    match interface {
        "wasi:http/outgoing-handler" => Some(Capability::Http),
        "wasi:filesystem/types" | "wasi:filesystem/preopens" => Some(Capability::Files),
        _ => None,
    }
}

/// Why something failed where WASI has a word for it and no place for the reason. The call's result says it.
#[derive(Clone, Default)]
pub struct Reasons(Arc<Mutex<Vec<Failure>>>);

impl Reasons {
    pub fn keep(&self, failure: &Failure) {
        let mut kept = self.0.lock();
        if !failure.kind.is_plain_to_guests()
            && kept.len() < MOST_KEPT
            && kept.iter().all(|other| other.message != failure.message)
        {
            kept.push(failure.clone());
        }
    }

    pub fn take(&self) -> Vec<Failure> {
        std::mem::take(&mut self.0.lock())
    }
}
