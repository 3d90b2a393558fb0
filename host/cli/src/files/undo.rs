//! `toolcrib files undo`: what file tools changed on this machine, put back as it was.

use super::super::screen::{Table, print_json};
use super::super::setup::{cannot, usage};
use super::super::{calls, print};
use ::policy::writes::changes_of;
use ::undo::{Entry, NotUndone};
use base::dirs::Dirs;
use base::text::sanitize;
use serde_json::json;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use toolcrib::envelope::Failure;

/// Bytes of a file that is compared.
const MOST_COMPARED: u64 = 4 << 20;

#[derive(clap::Args)]
pub(in super::super) struct Undo {
    /// The call whose changes are undone, by its id or the beginning of it; default: the last call that changed a file
    #[arg(value_name = "CALL", value_parser = calls::id)]
    call: Option<String>,
    /// Undo all changes of the session of that call
    #[arg(long)]
    session: bool,
    /// Show what would change, and undo nothing
    #[arg(long)]
    diff: bool,
    /// List what can be undone, the newest first, and undo nothing
    #[arg(long, conflicts_with_all = ["call", "session", "diff"])]
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
    if arguments.diff {
        return print(&differences(&undo, &entries));
    }
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

/// Returns a diff for each change, as if they were undone one after the other.
fn differences(undo: &::undo::Undo, entries: &[Entry]) -> String {
    // What an earlier one of them would leave.
    let mut left: HashMap<&Path, Vec<u8>> = HashMap::new();
    let mut told = String::new();
    for entry in entries {
        let (path, file) = (entry.change.path.as_path(), sanitize::visible_line(&entry.change.path.to_string_lossy()));
        let before = match undo.before(entry) {
            Ok(before) => before.unwrap_or_default(),
            Err(not) => {
                told += &refusal(&file, not);
                continue;
            }
        };
        let now = left.remove(path).or_else(|| now(path));
        told += &match now {
            Some(now) => format!("{file}:\n{}\n", sanitize::visible(changes_of(&now, &before).trim_end())),
            None => format!("{file} is gone, cannot be read, or is too large to be compared\n"),
        };
        left.insert(path, before);
    }
    told
}

/// What a file holds, if that can be shown.
fn now(path: &Path) -> Option<Vec<u8>> {
    // To open a pipe would wait for its other end.
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let (file, mut content) = (std::fs::File::open(path).ok()?, Vec::new());
    file.take(MOST_COMPARED + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= MOST_COMPARED).then_some(content)
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
