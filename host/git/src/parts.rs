//! What a path in a git directory is, and so by which rule its changes are taken over.
//!
//! An allow list: what is not named here stays behind. Paths are those of gitrepository-layout(5).

use std::path::{Component, Path};

/// The kinds of files in a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A loose object.
    Object,
    /// A pack, or a file that goes with one.
    Pack,
    /// A loose reference; its path is its name.
    Ref,
    PackedRefs,
    Head,
    /// A log of a reference.
    Log,
    Index,
    Config,
    /// A program that git runs by itself.
    Hook,
    /// The list of what a rebase still does, which may name commands.
    Todo,
    /// Names a merge strategy, which is a program.
    Strategy,
    /// Options of a sequencer, in the form of settings.
    Options,
    /// Words that old versions hand to a shell.
    Words,
    /// Text and numbers that operations leave for the next one.
    State,
    /// Git makes it anew from the rest, or it says that a process is at work.
    Derived,
    /// Acts by itself, or leads git elsewhere: why it stays behind.
    Refused(&'static str),
    /// Nothing that is known.
    Unknown,
}

const LEADS_ELSEWHERE: &str = "it would have git read another directory";
const OTHER_OBJECTS: &str = "it would have git read objects elsewhere";

/// Files of the top level that hold text for the next operation.
const STATE: [&str; 25] = [
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_HEAD",
    "BISECT_LOG",
    "BISECT_RUN",
    "BISECT_START",
    "BISECT_TERMS",
    "CHERRY_PICK_HEAD",
    "FETCH_HEAD",
    "MERGE_AUTOSTASH",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "description",
    "locked",
    "shallow",
];
/// Files that git writes for an editor and reads again at once: those of a command would be taken for the person's, who may be at it.
const EDITED: [&str; 5] = ["ADD_EDIT.patch", "COMMIT_EDITMSG", "EDIT_DESCRIPTION", "NOTES_EDITMSG", "TAG_EDITMSG"];
/// Directories that hold files of `STATE` and nothing else.
const STATES: [&str; 5] = ["NOTES_MERGE_WORKTREE", "lfs", "rebase-apply", "rebase-merge", "rr-cache"];

/// What a path is, relative to its git directory.
pub(crate) fn part(path: &Path) -> Part {
    let Some(names) = path.components().map(name).collect::<Option<Vec<_>>>() else { return Part::Unknown };
    let last = names.last().copied().unwrap_or_default();
    if is_passing(last) {
        return Part::Derived;
    }
    match names[..] {
        ["HEAD"] => Part::Head,
        ["index"] => Part::Index,
        ["packed-refs"] => Part::PackedRefs,
        ["config" | "config.worktree"] => Part::Config,
        ["commondir" | "gitdir"] => Part::Refused(LEADS_ELSEWHERE),
        ["objects", "info", "alternates" | "http-alternates"] => Part::Refused(OTHER_OBJECTS),
        ["info", "attributes"] => Part::Refused("it names filters and drivers, which are programs"),
        ["info", "grafts"] => Part::Refused("it would show another history"),
        ["info", "exclude" | "sparse-checkout"] => Part::State,
        ["objects"]
        | ["objects", _]
        | ["info", ..]
        | ["objects", "info", ..]
        | ["objects", "pack", "multi-pack-index"] => Part::Derived,
        ["objects", "pack", file] if is_pack(file) => Part::Pack,
        ["objects", "pack", file] if is_made_of_a_pack(file) => Part::Derived,
        ["objects", directory, file] if is_object(directory, file) => Part::Object,
        ["refs", _, ..] => Part::Ref,
        ["logs", _, ..] => Part::Log,
        ["hooks", file] if file.ends_with(".sample") => Part::Derived,
        ["hooks", ..] => Part::Hook,
        ["rebase-merge", "git-rebase-todo"] => Part::Todo,
        ["rebase-merge", "strategy"] => Part::Strategy,
        ["sequencer", "todo"] => Part::Todo,
        ["sequencer", "opts"] => Part::Options,
        ["sequencer", "head" | "abort-safety"] => Part::State,
        ["BISECT_NAMES"] => Part::Words,
        [file] if EDITED.contains(&file) => Part::Derived,
        [file] if STATE.contains(&file) => Part::State,
        [directory, _, ..] if STATES.contains(&directory) => Part::State,
        _ => Part::Unknown,
    }
}

/// Whether a directory of this path may be removed as a whole with all that it holds.
pub(crate) fn is_state(path: &Path) -> bool {
    let mut names = path.components().filter_map(name);
    names.next().is_some_and(|first| STATES.contains(&first) || first == "sequencer")
}

fn name(component: Component<'_>) -> Option<&str> {
    match component {
        Component::Normal(name) => name.to_str(),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    }
}

/// Locks, files that are being written, and marks of processes.
fn is_passing(file: &str) -> bool {
    file.ends_with(".lock") || file.starts_with("tmp_") || ["gc.pid", "gc.log"].contains(&file)
}

/// Says that a process is in the middle of something.
pub fn is_at_work(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|file| {
        file.ends_with(".lock") || file.starts_with("tmp_obj") || file.starts_with("tmp_pack") || file == "gc.pid"
    })
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_object(directory: &str, file: &str) -> bool {
    directory.len() == 2 && file.len() == 38 && is_hex(directory) && is_hex(file)
}

fn is_pack(file: &str) -> bool {
    is_of_a_pack(file, &["pack", "idx", "mtimes", "promisor", "keep"])
}

/// Lists by which git finds faster what a pack has.
fn is_made_of_a_pack(file: &str) -> bool {
    is_of_a_pack(file, &["rev", "bitmap"])
}

fn is_of_a_pack(file: &str, kinds: &[&str]) -> bool {
    let Some((stem, kind)) = file.strip_prefix("pack-").and_then(|rest| rest.split_once('.')) else { return false };
    stem.len() == 40 && is_hex(stem) && kinds.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_its_rule() {
        let object = format!("objects/ab/{}", "0".repeat(38));
        let [pack, bitmap] = ["pack", "bitmap"].map(|kind| format!("objects/pack/pack-{}.{kind}", "0".repeat(40)));
        for (path, expected) in [
            ("HEAD", Part::Head),
            (&object, Part::Object),
            (&pack, Part::Pack),
            ("objects/pack/evil.pack", Part::Unknown),
            ("objects/ab/x", Part::Unknown),
            ("objects/ab", Part::Derived),
            ("objects/pack/tmp_pack_x", Part::Derived),
            ("objects/info/commit-graph", Part::Derived),
            (&bitmap, Part::Derived),
            ("refs/heads/a/b", Part::Ref),
            ("logs/HEAD", Part::Log),
            ("config", Part::Config),
            ("hooks/pre-commit", Part::Hook),
            ("hooks/pre-commit.sample", Part::Derived),
            ("rebase-merge/git-rebase-todo", Part::Todo),
            ("rebase-merge/strategy", Part::Strategy),
            ("rebase-merge/onto", Part::State),
            ("index.lock", Part::Derived),
            ("evil/config", Part::Unknown),
            ("config/x", Part::Unknown),
            ("refs", Part::Unknown),
            ("../x", Part::Unknown),
        ] {
            assert_eq!(part(Path::new(path)), expected, "{path}");
        }
        for path in ["commondir", "gitdir", "objects/info/alternates", "info/attributes", "info/grafts"] {
            assert!(matches!(part(Path::new(path)), Part::Refused(_)), "{path}");
        }
    }
}
