//! The terminals of the managed panes: what is asked on one of them could be answered by whatever types into panes.

use super::commands;
use super::server::{SOCKET, run_to_end};
use backend::Backend;
use backend::terminals::{Sitting, Terminal};
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use std::path::Path;

/// Whether this program, or whatever started it, has the terminal of a managed pane. `local` is this machine.
pub fn we_are_in_a_pane(local: &dyn Backend) -> BoxFuture<'_, Result<bool, Failure>> {
    Box::pin(async move {
        let socket = local.facts().await?.tmux().join(SOCKET);
        // Where its path is no text there is no server of ours.
        let Some(socket) = socket.to_str().filter(|_| socket.exists()) else { return Ok(false) };
        // An error says that the server has ended, with all panes.
        let (_, terminals, _) = run_to_end(local, commands::run(socket, [commands::list_panes("#{pane_tty}")])).await?;
        let sitting = Sitting::now();
        Ok(terminals
            .lines()
            .filter_map(|path| Terminal::at(Path::new(path)))
            .any(|terminal| sitting.we_are_at(terminal)))
    })
}
