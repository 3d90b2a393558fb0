//! `toolcrib files undo`: what file tools and commands changed on this machine, put back as it was.
//!
//! One timeline has both: a change of a file by a tool, with the file as it was before, and a checkpoint of a whole workspace before commands that
//! may write (`checkpoint.rs`).

mod checkpoint;

use super::super::global::Global;
use super::super::screen::{Table, print_json};
use super::super::setup::{cannot, usage};
use super::super::{audit, calls, print};
use ::policy::writes::changes_of;
use ::undo::checkpoints::{Checkpoint, Why};
use ::undo::{Entry, NotUndone};
use base::dirs::Dirs;
use base::text::sanitize;
use base::workspace::Workspace;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use toolcrib::envelope::Failure;

/// Bytes of a file that is compared.
const MOST_COMPARED: u64 = 4 << 20;
/// What a list says of its checkpoints.
const NOT_KEPT: &str = "Files that are ignored (.gitignore, .ignore) are not in a checkpoint.\n";

#[derive(clap::Args)]
pub(in super::super) struct Undo {
    /// The call whose changes are undone, or the checkpoint, by its id or the beginning of it; default: the newest that changed something
    #[arg(value_name = "ID", value_parser = calls::id)]
    id: Option<String>,
    /// Undo all changes of the session of that call
    #[arg(long)]
    session: bool,
    /// Put back only this file or directory; may be given several times
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Show what would change, and undo nothing
    #[arg(long)]
    diff: bool,
    /// List what can be undone, the newest first, and undo nothing
    #[arg(long, conflicts_with_all = ["id", "session", "file", "diff"])]
    list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

/// What can be undone, the newest first.
struct Timeline {
    undo: ::undo::Undo,
    changes: Vec<Entry>,
    checkpoints: Vec<Checkpoint>,
}

/// The files and directories that are to be put back; all where there are none.
struct Chosen(Vec<PathBuf>);

impl Chosen {
    fn has(&self, path: &Path) -> bool {
        self.0.is_empty() || self.0.iter().any(|chosen| path.starts_with(chosen))
    }
}

/// What is to be undone.
enum Meant {
    Changes(Vec<Entry>),
    Checkpoint(Checkpoint),
}

pub(super) async fn run(global: &Global, arguments: &Undo, dirs: &Dirs) -> Result<ExitCode, Failure> {
    let undo = ::undo::Undo::new(&dirs.state);
    let fail = |error| cannot(&dirs.state, &error);
    let (changes, checkpoints) = (undo.list().map_err(fail)?, undo.checkpoints().list().map_err(fail)?);
    let timeline = Timeline { undo, changes, checkpoints };
    if arguments.list {
        return timeline.list(arguments.json);
    }
    let here = std::env::current_dir().map_err(|error| usage(format!("the current directory is gone: {error}")))?;
    let files: Vec<PathBuf> = arguments.file.iter().map(|path| base::paths::normal(&here.join(path))).collect();
    let chosen = Chosen(files);
    let workspace = Workspace::find(&here, &dirs.home);
    match timeline.meant(global, arguments, &workspace, dirs, &chosen)? {
        Meant::Changes(entries) => timeline.undo_changes(&entries, arguments.diff),
        Meant::Checkpoint(of) => {
            let files = checkpoint::Files { chosen, is_diff: arguments.diff, is_yes: global.yes };
            checkpoint::restore(&timeline.undo, &of, &dirs.home, &files).await
        }
    }
}

impl Timeline {
    /// The changes of one call, or of its session, the newest first; else the checkpoint that is nearest before the call.
    fn meant(
        &self,
        global: &Global,
        arguments: &Undo,
        workspace: &Workspace,
        dirs: &Dirs,
        chosen: &Chosen,
    ) -> Result<Meant, Failure> {
        let Some(id) = &arguments.id else { return self.newest(arguments, workspace, &dirs.home, chosen) };
        let calls = self.changes.iter().map(|entry| &*entry.change.call);
        let of_checkpoints = self.checkpoints.iter().flat_map(|of| [&*of.id, &*of.call]);
        let mut found: Vec<&str> = calls.chain(of_checkpoints).filter(|one| one.starts_with(id.as_str())).collect();
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [] => {}
            [one] => {
                if let Some(of) = self.changes.iter().find(|entry| entry.change.call == one) {
                    return Ok(Meant::Changes(self.changes_of(of, arguments.session, chosen)));
                }
                let of = self.checkpoints.iter().find(|of| of.id == one || of.call == one && of.why == Why::Command);
                if let Some(of) = of {
                    return Ok(Meant::Checkpoint(of.clone()));
                }
            }
            _ => return Err(usage(format!("several ids begin with `{id}`")).hint("type more of the id")),
        }
        // A command that ran soon after another has no checkpoint of its own.
        let at_ms = audit::accepted(global, dirs, id)?;
        let before = |of: &&Checkpoint| of.root == workspace.root && at_ms.is_some_and(|at_ms| of.at_ms() <= at_ms);
        match self.checkpoints.iter().find(before) {
            Some(of) => Ok(Meant::Checkpoint(of.clone())),
            None => Err(usage(format!("the call `{id}` has changed no file that can be put back"))
                .hint("`toolcrib files undo --list` lists what can be undone")),
        }
    }

    /// The last call that changed a file by a tool, or the last checkpoint of this workspace that differs from what is there, whichever is newer.
    fn newest(&self, arguments: &Undo, workspace: &Workspace, home: &Path, chosen: &Chosen) -> Result<Meant, Failure> {
        let change = self.changes.iter().find(|entry| chosen.has(&entry.change.path));
        let before = self.checkpoints.iter().filter(|of| of.why == Why::Command && of.root == workspace.root);
        let since = change.map_or(0, |entry| entry.change.at_ms);
        for of in before.take_while(|of| of.at_ms() > since || change.is_none()) {
            let differs = checkpoint::differs(&self.undo, of, home, chosen);
            if differs {
                return Ok(Meant::Checkpoint(of.clone()));
            }
        }
        match change {
            Some(change) => Ok(Meant::Changes(self.changes_of(change, arguments.session, chosen))),
            None => Err(usage(
                "no file tool has changed a file in the last seven days, and no command one of this workspace",
            )
            .hint("`toolcrib files undo --list` lists what can be undone")),
        }
    }

    fn changes_of(&self, of: &Entry, is_session: bool, chosen: &Chosen) -> Vec<Entry> {
        let is_meant = |entry: &&Entry| {
            let is_call = is_session || entry.change.call == of.change.call;
            entry.change.session == of.change.session && is_call && chosen.has(&entry.change.path)
        };
        self.changes.iter().filter(is_meant).cloned().collect()
    }

    fn undo_changes(&self, entries: &[Entry], is_diff: bool) -> Result<ExitCode, Failure> {
        if is_diff {
            return print(&differences(&self.undo, entries));
        }
        let mut stayed = 0;
        let mut told = String::new();
        for entry in entries {
            let file = shown(&entry.change.path);
            told += &match self.undo.undo(entry) {
                Ok(()) => format!("{file} is as it was before\n"),
                Err(not) => {
                    stayed += 1;
                    refusal(&file, not)
                }
            };
        }
        print(&told)?;
        ended(stayed, entries.len())
    }

    fn list(&self, as_json: bool) -> Result<ExitCode, Failure> {
        let changes = self.changes.iter().map(|Entry { change, .. }| {
            let row = [short(&change.call).to_owned(), "file".into(), change.tool.clone(), shown(&change.path), time(change.at_ms)];
            let value = json!({
                "kind": "file", "call": change.call, "session": change.session, "tool": change.tool, "file": change.path,
                "at_unix_millis": change.at_ms
            });
            (change.at_ms, row, value)
        });
        let checkpoints = self.checkpoints.iter().map(|of| {
            let before = match of.why {
                Why::Command => of.tool.clone(),
                Why::Undo => "files undo".into(),
            };
            let row = [short(&of.id).to_owned(), "checkpoint".into(), before, shown(&of.root), time(of.at_ms())];
            let value = json!({
                "kind": "checkpoint", "id": of.id, "call": of.call, "session": of.session, "tool": of.tool, "why": of.why,
                "workspace": of.root, "at_unix_millis": of.at_ms()
            });
            (of.at_ms(), row, value)
        });
        let mut all: Vec<(u64, [String; 5], Value)> = changes.chain(checkpoints).collect();
        all.sort_by_key(|(at_ms, ..)| Reverse(*at_ms));
        if as_json {
            return print_json(&all.into_iter().map(|(.., value)| value).collect());
        }
        let mut table = Table::new(&["id", "what is kept", "before", "of", "when"]);
        for (_, row, _) in &all {
            table.row(row.each_ref().map(String::as_str));
        }
        table.print()?;
        if self.checkpoints.is_empty() { Ok(ExitCode::SUCCESS) } else { print(NOT_KEPT) }
    }
}

/// How an undo ends of which some files were left as they are.
fn ended(stayed: usize, of: usize) -> Result<ExitCode, Failure> {
    match stayed {
        0 => Ok(ExitCode::SUCCESS),
        some => Err(Failure::failed(format!("{some} of {of} files were left as they are"))
            .hint("make these changes yourself; `toolcrib files undo --list` lists them")),
    }
}

/// Returns a diff for each change, as if they were undone one after the other.
fn differences(undo: &::undo::Undo, entries: &[Entry]) -> String {
    // What an earlier one of them would leave.
    let mut left: HashMap<&Path, Vec<u8>> = HashMap::new();
    let mut told = String::new();
    for entry in entries {
        let (path, file) = (entry.change.path.as_path(), shown(&entry.change.path));
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

/// A path as people read it.
fn shown(path: &Path) -> String {
    sanitize::visible_line(&path.to_string_lossy())
}

fn time(at_ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(at_ms)).to_string()
}

/// As much of an id as people need.
fn short(id: &str) -> &str {
    id.get(..calls::SHOWN_ID).unwrap_or(id)
}
