//! What panes run: a shell, in a cell where commands are confined. A pane whose shell is confined otherwise gets another one, and is never used
//! as it is.

use super::Session;
use super::commands;
use super::condition::{self, Prompt};
use super::hold::{HOLDER, PROCESS};
use crate::backend::cell::Profile;
use crate::backend::local;
use crate::disk::OwnDir;
use crate::envelope::{Failure, Kind};
use crate::text::shell_quote;
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

/// Which shells of panes will do.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'c> {
    /// Any, as it is only looked at.
    Any,
    /// One that is in this cell, or in none.
    In(Option<&'c Arc<Profile>>),
}

impl Wanted<'_> {
    /// The cell of a shell that is made anew.
    pub(super) fn cell(&self) -> Option<&Arc<Profile>> {
        match self {
            Self::Any => None,
            Self::In(cell) => *cell,
        }
    }
}

impl Session {
    /// What [`CELL`] is for a shell in this cell.
    pub(super) fn mark(&self, cell: Option<&Arc<Profile>>) -> String {
        cell.map_or_else(String::new, |cell| self.profile(cell).digest())
    }

    /// What the shell of a pane can reach: the files of staged commands, too.
    fn profile(&self, cell: &Profile) -> Profile {
        let mut profile = cell.clone();
        profile.show.push(Path::new(&self.directory).into());
        profile
    }

    /// The words that a pane runs; the shell is the one that the session was made with.
    pub(super) async fn program(&self, cell: Option<&Arc<Profile>>) -> Result<String, Failure> {
        let shell = self.client.run(&commands::show_of(&self.id, "@toolcrib_program")).await?;
        let Some(cell) = cell else { return Ok(format!("exec {shell}")) };
        let unavailable = |why: String| Failure::new(Kind::Unavailable, format!("panes cannot be confined: {why}"));
        let profile = self.profile(cell);
        let name = format!("{}.json", profile.digest());
        let written = || {
            let cells = OwnDir::open(&self.own)?.below(CELLS)?;
            if cells.read(&name)?.is_none() {
                cells.replace(&name, &profile.to_json())?;
            }
            Ok::<_, std::io::Error>(cells.path().join(&name))
        };
        let file = written().map_err(|error| unavailable(error.to_string()))?;
        let mut argv = local::cell_program().map_err(unavailable)?;
        argv.extend([file.into(), "--".into()]);
        let words = shell_quote::words(&argv);
        Ok(format!(
            "exec {} {shell}",
            String::from_utf8(words).map_err(|_| unavailable("its path is not UTF-8".into()))?
        ))
    }

    /// Gives a pane a new shell. All that is known of the pane was known of the shell before.
    pub(super) async fn renew(&self, number: u32, cell: Option<&Arc<Profile>>) -> Result<(), Failure> {
        let program = self.program(cell).await?;
        self.client.run(&commands::respawn_pane(number, &program)).await?;
        let known = [HOLDER, Prompt::OPTION, Prompt::BEGAN, PROCESS];
        self.client.run_all(known.map(|option| commands::unset(number, option))).await?;
        self.client.run_all([commands::set(number, CELL, &self.mark(cell)), condition::made(number)]).await?;
        self.unfinished.forget(number);
        self.until_confined(number, cell).await
    }

    /// Waits until this program has made way for the shell: as long as it is in a pane, nothing may be typed there.
    pub(super) async fn until_confined(&self, number: u32, cell: Option<&Arc<Profile>>) -> Result<(), Failure> {
        let begun = Instant::now();
        while cell.is_some() && self.condition(number).await?.is_starting() && begun.elapsed() < MAKES_WAY {
            tokio::time::sleep(A_MOMENT).await;
        }
        Ok(())
    }

    /// Gives a pane another shell where its own is confined otherwise; returns what is to be said of it.
    pub(super) async fn confine(
        &self,
        number: u32,
        shown: &str,
        wanted: Wanted<'_>,
        is: &str,
    ) -> Result<Option<String>, Failure> {
        let Wanted::In(cell) = wanted else { return Ok(None) };
        if self.mark(cell) == is {
            return Ok(None);
        }
        let condition = self.condition(number).await?;
        if !condition.holder.is_empty() && !self.free_stale(number, &condition).await? {
            let message = format!(
                "pane {shown} runs `{}`, and its shell is not confined as settings say now",
                condition.command()
            );
            return Err(
                Failure::new(Kind::Busy, message).hint("wait for it, end it with kill-pane, or use another pane")
            );
        }
        self.renew(number, cell).await?;
        let was_used = condition.may_have_line() || condition.prompt != Prompt::Fresh;
        Ok(was_used.then(|| {
            "the pane has a new shell, as the one before was not confined as settings say now: its state and what ran in it are lost".into()
        }))
    }
}
