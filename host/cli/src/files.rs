//! `toolcrib files`: what commands made that acts by itself, and that is held back until a person says what becomes of it; and what file tools
//! and commands changed, as it was (`undo.rs`).

mod undo;

use super::global::Global;
use super::print;
use super::screen::{Table, print_json};
use super::setup::{cannot, dirs, usage};
use ::policy::held::{Held, Shelf};
use base::text::sanitize;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use toolcrib::envelope::{Failure, Kind};

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List, show, keep or drop what commands made and is held back
    #[command(subcommand)]
    Held(What),
    /// Put files back as they were before a tool or a command changed them
    #[command(
        after_help = "A file that a tool changed and that has changed since is left as it is. For commands there are checkpoints of the workspace: \
            what would change is shown, and you are asked. Ignored files are not in a checkpoint."
    )]
    Undo(undo::Undo),
}

#[derive(clap::Subcommand)]
pub(super) enum What {
    /// List what is held back, the oldest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what would be written, and what acts on it
    Show(Which),
    /// Put it where the command wanted it
    #[command(
        after_help = "Read it first, with `toolcrib files held show`: a program outside of any sandbox acts on it by itself."
    )]
    Keep(Which),
    /// Forget it
    Drop(Which),
}

#[derive(clap::Args)]
pub(super) struct Which {
    /// Its id, or the beginning of it
    id: String,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dirs = dirs()?;
    let what = match arguments {
        Arguments::Held(what) => what,
        Arguments::Undo(undo) => return undo::run(global, undo, &dirs).await,
    };
    let shelf = Shelf::open(&dirs.state).map_err(|error| cannot(&dirs.state, &error))?;
    let all = shelf.list().map_err(|error| cannot(&dirs.state, &error))?;
    match what {
        What::List { json } => list(&all, *json),
        What::Show(which) => {
            let held = find(&all, which)?;
            print(&format!("{}: {}\n\n{}\n", file(held), held.what, sanitize::visible(&held.text())))
        }
        What::Keep(which) => {
            let held = find(&all, which)?;
            shelf.keep(held).map_err(|error| {
                Failure::new(Kind::Unavailable, format!("`{}` was not changed: {error}", file(held)))
                    .hint(format!("see `toolcrib files held show {}`, and make the change yourself", held.id))
            })?;
            print(&format!("kept: {}\n", file(held)))
        }
        What::Drop(which) => {
            let held = find(&all, which)?;
            shelf.drop(held).map_err(|error| cannot(&dirs.state, &error))?;
            print(&format!("dropped: {}\n", file(held)))
        }
    }
}

fn file(held: &Held) -> String {
    sanitize::visible_line(&held.file().to_string_lossy())
}

fn find<'h>(all: &'h [Held], which: &Which) -> Result<&'h Held, Failure> {
    let mut found = all.iter().filter(|held| held.id.starts_with(&which.id));
    match (found.next(), found.next()) {
        (Some(held), None) => Ok(held),
        (Some(_), Some(_)) => Err(usage(format!("`{}` begins several ids", which.id)).hint("give more of the id")),
        (None, _) => {
            Err(usage(format!("nothing is held with the id `{}`", which.id))
                .hint("`toolcrib files held list` lists them"))
        }
    }
}

fn list(all: &[Held], as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let shown = all.iter().map(|held| {
            json!({ "id": held.id, "file": held.file(), "what": held.what, "text": held.text(), "since": held.since, "call": held.call })
        });
        return print_json(&shown.collect());
    }
    let mut table = Table::new(&["id", "file", "why it is held", "since"]);
    for held in all {
        let since = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(held.since)).to_string();
        table.row([held.short(), &file(held), &held.what, &since]);
    }
    table.print()
}
