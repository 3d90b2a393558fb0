//! `toolcrib files undo`: what file tools changed on this machine, put back as it was.

use super::super::screen::{Table, print_json};
use super::super::setup::{cannot, usage};
use super::super::{calls, print};
use ::policy::writes::changes_of;
use ::undo::{Entry, NotUndone};
use base::dirs::Dirs;
use base::text::sanitize;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use toolcrib::envelope::Failure;

#[derive(clap::Args)]
pub(in super::super) struct Undo {
    /// The call whose changes are undone, by its id or the beginning of it; default: the last call that changed a file
    #[arg(value_name = "CALL", value_parser = calls::id)]
    call: Option<String>,
    /// Undo all changes of the session of that call
    #[arg(long)]
    session: bool,
    /// List what can be undone, the newest first, and undo nothing
    #[arg(long, conflicts_with_all = ["call", "session"])]
    list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

pub(super) fn run(arguments: &Undo, dirs: &Dirs) -> Result<ExitCode, Failure> {
    let undo = ::undo::Undo::new(&dirs.state);
    let all = undo.list().map_err(|error| cannot(&dirs.state, &error))?;
    if arguments.list {
        return list(&all, arguments.json);
    }
    let entries = meant(all, arguments)?;
    let mut stayed = 0;
    let mut told = String::new();
    for entry in &entries {
        let file = sanitize::visible_line(&entry.change.path.to_string_lossy());
        told += &match undo.undo(entry) {
            Ok(()) => format!("{file} is as it was before\n"),
            Err(not) => {
                stayed += 1;
                refusal(&file, not)
            }
        };
    }
    print(&told)?;
    match stayed {
        0 => Ok(ExitCode::SUCCESS),
        some => Err(Failure::failed(format!("{some} of {} files were left as they are", entries.len()))
            .hint("make these changes yourself; `toolcrib files undo --list` lists them")),
    }
}

/// Why a file was left as it is, for a person.
fn refusal(file: &str, not: NotUndone) -> String {
    match not {
        NotUndone::Changed { now: None, .. } => {
            format!("{file} is gone, or another file by now: it was left as it is\n")
        }
        NotUndone::Changed { before, now: Some(now) } => {
            let differs = changes_of(&now, before.as_deref().unwrap_or_default());
            format!(
                "{file} has changed since: it was left as it is. To undo the change would be:\n{}\n",
                sanitize::visible(differs.trim_end())
            )
        }
        NotUndone::Gone => format!("{file}, as it was before, is no longer kept\n"),
        NotUndone::Failed(why) => format!("{file} was left as it is: {}\n", sanitize::visible_line(&why)),
    }
}

/// The changes of one call, or of its session, the newest first.
fn meant(all: Vec<Entry>, arguments: &Undo) -> Result<Vec<Entry>, Failure> {
    let of = match &arguments.call {
        None => all.first(),
        Some(call) => {
            let mut found = all.iter().filter(|entry| entry.change.call.starts_with(call.as_str()));
            let first = found.next();
            if first.is_some_and(|first| found.any(|other| other.change.call != first.change.call)) {
                return Err(usage(format!("several calls begin with `{call}`")).hint("type more of the id"));
            }
            first
        }
    };
    let Some(of) = of else {
        let what = match &arguments.call {
            None => "no file tool has changed a file in the last seven days".to_owned(),
            Some(call) => format!("the call `{call}` has changed no file that can be put back"),
        };
        return Err(usage(what).hint("`toolcrib files undo --list` lists what can be undone"));
    };
    let (call, session) = (of.change.call.clone(), of.change.session.clone());
    let is_meant = |entry: &Entry| entry.change.session == session && (arguments.session || entry.change.call == call);
    Ok(all.into_iter().filter(is_meant).collect())
}

fn list(all: &[Entry], as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let shown = all.iter().map(|Entry { change, .. }| {
            json!({
                "call": change.call, "session": change.session, "tool": change.tool, "file": change.path, "at_unix_millis": change.at_ms
            })
        });
        return print_json(&shown.collect());
    }
    let mut table = Table::new(&["call", "tool", "file", "changed"]);
    for Entry { change, .. } in all {
        let at = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(change.at_ms)).to_string();
        let file = sanitize::visible_line(&change.path.to_string_lossy());
        table.row([short(&change.call), &change.tool, &file, &at]);
    }
    table.print()
}

/// As much of an id as people need.
fn short(call: &str) -> &str {
    call.get(..calls::SHOWN_ID).unwrap_or(call)
}
