//! What panes run: a shell, in a cell where commands are confined. A pane whose shell is confined otherwise gets another one, and is never used
//! as it is.

use super::commands;
use super::condition::{self, Prompt};
use super::pane;
use super::{GONE, Session};
use backend::cell::{self, Profile};
use backend::{Backend, Toolchains, local};
use base::disk::OwnDir;
use base::envelope::{Failure, Kind};
use base::text::shell_quote;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The option of a pane that says which cell its shell is in; it is not set where that is in none. Nothing in a cell reaches the server.
pub(super) const CELL: &str = "@toolcrib_cell";
/// The directory of profiles, among Toolcrib's own files.
const CELLS: &str = "cells";

/// How long this program may take to make a cell, and how often it is looked for.
const MAKES_WAY: Duration = Duration::from_secs(2);
const A_MOMENT: Duration = Duration::from_millis(2);

/// Which shell of a pane will do.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'c> {
    /// It is in this cell, or in none; one that is made anew is.
    pub(super) cell: Option<&'c Arc<Profile>>,
    /// It is only looked at, so that any will do that is there.
    pub(super) is_for_looks: bool,
}

/// How the shell of a pane is started.
pub(super) struct Start {
    /// What comes before the shell's path in the words that a pane runs; empty where it is in no cell.
    pub(super) before: String,
    /// What [`CELL`] is then.
    pub(super) mark: String,
    /// The variables that it gets.
    pub(super) toolchains: Toolchains,
}

/// How a shell is started in this cell, or in none, to begin in a directory of a place.
pub(super) fn start(
    cell: Option<&Arc<Profile>>,
    place: &dyn Backend,
    own: &Path,
    root: &Path,
) -> Result<Start, Failure> {
    let toolchains = Toolchains::Usable(cell.cloned());
    let Some(cell) = cell else { return Ok(Start { before: String::new(), mark: String::new(), toolchains }) };
    let unavailable = |why: String| Failure::new(Kind::Unavailable, format!("panes cannot be confined: {why}"));
    let (mark, text) = (cell.digest().to_owned(), cell.to_json());
    let name = format!("{mark}.json");
    let written = || {
        let cells = OwnDir::open(own)?.below(CELLS)?;
        if cells.read(&name)?.as_ref() != Some(&text) {
            cells.replace(&name, &text)?;
        }
        Ok::<_, std::io::Error>(cells.path().join(&name))
    };
    let file = written().map_err(|error| unavailable(error.to_string()))?;
    let address = place.cell(cell, None).map_err(unavailable)?;
    let mut argv = local::cell_program().map_err(unavailable)?;
    argv.extend([file.into(), address.into(), root.into(), "--".into()]);
    let before = String::from_utf8(shell_quote::words(&argv));
    Ok(Start { before: before.map_err(|_| unavailable("a path is not UTF-8".into()))?, mark, toolchains })
}

/// Says why a shell that has just ended could not be confined, if that is why: what ends a session leaves no word. `server` is the number of the
/// tmux server, where that is still there.
pub(super) async fn explained(failure: Failure, cell: Option<&Arc<Profile>>, server: Option<&str>) -> Failure {
    let Some(cell) = cell else { return failure };
    let cannot_enter = cell.memory.is_some() && server.is_some_and(cell::cannot_enter);
    match local::try_cell(cell).await {
        Ok(()) if cannot_enter => failure.hint(
            "the tmux server was started elsewhere, where its shells cannot enter the cgroup that `memory` under [confine] needs: it ends with its \
             last session (`toolcrib panes --prune` ends those of this agent that nobody is attached to); or pass `--no-tmux`",
        ),
        Ok(()) => failure,
        Err(why) => Failure::new(Kind::Unavailable, format!("panes cannot be confined: {why}"))
            .hint("mend that, or see `mode` under [confine]"),
    }
}

/// What [`CELL`] is for a shell in this cell.
pub(super) fn mark(cell: Option<&Arc<Profile>>) -> &str {
    cell.map_or("", |cell| cell.digest())
}

impl Session {
    /// The words that a pane runs, and its mark; the shell is the one that the session was made with.
    pub(super) async fn program(
        &self,
        cell: Option<&Arc<Profile>>,
        directory: Option<&str>,
    ) -> Result<(String, String), Failure> {
        let shell = self.client.run(&commands::show_of(&self.id, "@toolcrib_program")).await?;
        let root = directory.map_or(self.root.as_path(), Path::new);
        let Start { before, mark, .. } = start(cell, &*self.place, &self.own, root)?;
        Ok((format!("exec {before} {shell}"), mark))
    }

    /// Makes a pane of this name, in a window of its own, so that every pane is wide; returns its number and the mark of its cell. Its shell begins
    /// in a directory, or where shells begin.
    pub(super) async fn open(
        &self,
        name: &str,
        cell: Option<&Arc<Profile>>,
        directory: Option<&str>,
    ) -> Result<(u32, String), Failure> {
        let (program, mark) = self.program(cell, directory).await?;
        let made = self.client.run(&commands::new_window(&self.id, name, directory, &program)).await?;
        let number = pane::number(&made).ok_or_else(|| Failure::failed(format!("tmux made no pane: {made}")))?;
        let named = [commands::set(number, "@toolcrib_pane", name), commands::set(number, CELL, &mark)];
        self.client.run_all(named).await?;
        self.client.run(&condition::made(number)).await?;
        Ok((number, mark))
    }

    /// Puts a pane with a new shell in the place of one; returns its number. The shell is not exchanged within the pane: a tmux 3.3a that is to
    /// respawn a pane, of whose output some client has not been told all, ends with all its sessions (`not enough data` in its `control.c`).
    pub(super) async fn replace(&self, number: u32, name: &str, cell: Option<&Arc<Profile>>) -> Result<u32, Failure> {
        let (new, _) = self.open(name, cell, None).await?;
        self.learn(name, None);
        let placed = self.client.run_all([commands::swap_panes(new, number), commands::kill_pane(number)]).await;
        // It may have ended meanwhile; where another host has put one in its place, that one stays.
        if placed.is_err() && self.panes().await?.iter().any(|pane| pane.is_other(name, new)) {
            self.client.run(&commands::kill_pane(new)).await?;
            return Err(Failure::failed(GONE));
        }
        self.unfinished.forget(number);
        self.until_confined(new, cell).await?;
        Ok(new)
    }

    /// Waits until this program has made way for the shell: as long as it is in a pane, nothing may be typed there.
    pub(super) async fn until_confined(&self, number: u32, cell: Option<&Arc<Profile>>) -> Result<(), Failure> {
        let begun = Instant::now();
        while let Some(profile) = cell.filter(|_| begun.elapsed() < MAKES_WAY) {
            let condition = match self.condition(number).await {
                Ok(condition) => condition,
                Err(gone) => {
                    let server = self.client.run(&commands::ask_of_client("#{pid}")).await.ok();
                    return Err(explained(gone, cell, server.as_deref()).await);
                }
            };
            if local::has_made_way(profile, &condition.pid) && !condition.is_starting() {
                break;
            }
            tokio::time::sleep(A_MOMENT).await;
        }
        Ok(())
    }

    /// Whether the shell of a pane is in this cell, and bounded as that says; `is` has its mark and its process.
    async fn is_in(
        &self,
        number: u32,
        cell: Option<&Arc<Profile>>,
        (is, process): (&str, &str),
    ) -> Result<bool, Failure> {
        let is_bounded = |process: &str| cell.is_none_or(|profile| self.place.bounds(profile, process));
        if mark(cell) != is || is_bounded(process) {
            return Ok(mark(cell) == is);
        }
        // One that is made just now has yet to enter its cgroup.
        self.until_confined(number, cell).await?;
        Ok(is_bounded(&self.condition(number).await?.pid))
    }

    /// Has another pane take the place of one whose shell is confined otherwise; returns its number, and what is to be said of it. `is` has the
    /// mark and the process of its shell.
    pub(super) async fn confine(
        &self,
        number: u32,
        name: &str,
        wanted: Wanted<'_>,
        is: (&str, &str),
    ) -> Result<(u32, Option<String>), Failure> {
        let cell = wanted.cell;
        if wanted.is_for_looks || self.is_in(number, cell, is).await? {
            return Ok((number, None));
        }
        let condition = self.condition(number).await?;
        if !condition.holder.is_empty() && !self.free_stale(number, &condition).await? {
            let message = format!(
                "pane {name} of {} runs `{}`, and its shell is not confined as settings say now",
                self.name,
                condition.command()
            );
            return Err(
                Failure::new(Kind::Busy, message).hint("wait for it, end it with kill-pane, or use another pane")
            );
        }
        let new = self.replace(number, name, cell).await?;
        let was_used = condition.may_have_line() || condition.prompt != Prompt::Fresh;
        let notice = "the pane has a new shell, as the one before was not confined as settings say now: its state and what ran in it are lost";
        Ok((new, was_used.then(|| notice.into())))
    }
}
