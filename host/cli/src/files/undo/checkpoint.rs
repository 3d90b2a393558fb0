//! A workspace, or some of its files, put back as a checkpoint has it: what would change is shown, and a person says yes.

use super::super::super::print;
use super::super::super::terminal::confirm;
use super::{Chosen, MOST_COMPARED, changes_of, ended, shown, time};
use ::undo::By;
use ::undo::checkpoints::{Checkpoint, Difference, Plan, Side};
use base::text::id::random_id;
use base::text::sanitize;
use std::path::Path;
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};

/// Bytes of differences that are shown; of more files only the names.
const MOST_SHOWN: usize = 1 << 20;

/// Which files are put back, and how.
pub(super) struct Files {
    pub(super) chosen: Chosen,
    /// Nothing is put back.
    pub(super) is_diff: bool,
    pub(super) is_yes: bool,
}

/// Returns whether something is not as a checkpoint has it, so that it can be put back.
pub(super) fn differs(undo: &::undo::Undo, of: &Checkpoint, home: &Path, chosen: &Chosen) -> bool {
    let plan = undo.checkpoints().compare(of, home);
    // One that cannot be compared is told when it is taken.
    plan.map_or(true, |plan| plan.differences.iter().any(|one| chosen.has(&of.root.join(&one.path))))
}

pub(super) async fn restore(
    undo: &::undo::Undo,
    of: &Checkpoint,
    home: &Path,
    files: &Files,
) -> Result<ExitCode, Failure> {
    let unavailable = |why: String| {
        Failure::new(Kind::Unavailable, format!("nothing was put back: {why}"))
            .hint("`toolcrib files undo --list` lists what can be undone")
    };
    let plan = undo.checkpoints().compare(of, home).map_err(unavailable)?;
    let is_chosen = |path: &Path| files.chosen.has(&of.root.join(path));
    let chosen: Vec<&Difference> = plan.differences.iter().filter(|one| is_chosen(&one.path)).collect();
    if chosen.is_empty() {
        return print(&format!("{} is as it was at {}\n", shown(&of.root), time(of.at_ms())));
    }
    print(&told(&plan, &chosen))?;
    if files.is_diff {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Put {} back as it was at {}? [y]es, [N]o > ", counted(chosen.len()), time(of.at_ms()));
    let is_yes = if files.is_yes { Some(true) } else { confirm("", &question).await? };
    match is_yes {
        Some(true) => {}
        Some(false) => return Err(Failure::denied("nothing was put back: you did not say yes")),
        None => {
            return Err(Failure::denied("nothing was put back: nobody was asked")
                .hint("read what would change, then repeat the command with `--yes`"));
        }
    }
    let call = random_id();
    let by = By { call: &call, session: "", tool: "files undo" };
    let done = undo.checkpoints().restore(&plan, by, &is_chosen).map_err(unavailable)?;
    let (mut stayed, mut told) = (0, String::new());
    for (path, done) in &done {
        let file = shown(&of.root.join(path));
        told += &match done {
            Ok(()) => format!("{file} is as it was before\n"),
            Err(why) => {
                stayed += 1;
                format!("{file} was left as it is: {}\n", sanitize::visible_line(why))
            }
        };
    }
    print(&told)?;
    ended(stayed, done.len())
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".into() } else { format!("{files} files") }
}

/// What would change, for a person.
fn told(plan: &Plan, chosen: &[&Difference]) -> String {
    let mut told = String::new();
    for one in chosen {
        let file = shown(&plan.checkpoint.root.join(&one.path));
        let what = match (&one.then, &one.now) {
            (Side::Nothing, _) => "would be removed",
            (_, Side::Nothing) => "would be there again",
            (Side::Directory(_), _) => "would be a directory again",
            (Side::Link(_), _) => "would be the link again that it was",
            (Side::File(..) | Side::Absent, _) => "would be as it was",
        };
        told += &format!("{file} {what}\n");
        let is_text = |side: &Side| matches!(side, Side::File(..) | Side::Nothing);
        if told.len() > MOST_SHOWN || !is_text(&one.then) || !is_text(&one.now) {
            continue;
        }
        told += &match (plan.content(&one.now), plan.content(&one.then)) {
            (Ok(now), Ok(then)) => {
                let (now, then) = (now.unwrap_or_default(), then.unwrap_or_default());
                if now.len().max(then.len()) as u64 > MOST_COMPARED {
                    "(too large to be compared)\n".to_owned()
                } else {
                    format!("{}\n", sanitize::visible(changes_of(&now, &then).trim_end()))
                }
            }
            (Err(why), _) | (_, Err(why)) => format!("({})\n", sanitize::visible_line(&why)),
        };
    }
    told
}
