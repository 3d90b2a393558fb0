//! What the person's repository had is let through, and what commands added to it is not.

use super::{assert_held, assert_nothing_held, is_there};
use crate::git::{git, repository};
use crate::rig::{BOTH, Rig, Via};
use serde_json::json;
use std::fs;
use toolcrib_tests::Program;

/// A repository of the person's with two branches, on which files differ that act.
fn two_branches(via: Via) -> Program {
    let program = repository(via);
    let work = program.path("work");
    for branch in ["main", "other"] {
        if branch == "other" {
            git(&work, &["switch", "-q", "-c", "other"]);
        }
        for name in SWITCHED {
            program.write(&format!("work/{name}"), format!("of {branch}\n"));
        }
        program.write(&format!("work/only-{branch}/.envrc"), branch);
        program.write("work/docs/sample", "a sample\n");
        git(&work, &["add", "-f", "."]);
        git(&work, &["commit", "-q", "-m", branch]);
    }
    git(&work, &["switch", "-q", "main"]);
    program
}

const SWITCHED: [&str; 5] = [".vscode/settings.json", ".envrc", "CLAUDE.md", ".npmrc", "sub/.claude/settings.json"];

fn assert_on(rig: &Rig, branch: &str, about: &str) {
    for name in SWITCHED {
        let found = fs::read_to_string(rig.work(name)).unwrap_or_else(|error| panic!("{about}: {name}: {error}"));
        assert_eq!(found, format!("of {branch}\n"), "{about}: {name}");
    }
    assert_eq!(git(&rig.work(""), &["status", "--porcelain"]), "", "{about}");
}

#[test]
fn git_switches_between_branches_as_outside() {
    for via in BOTH {
        let mut rig = Rig::of(two_branches(via), &[]);
        for (text, branch) in [
            ("git switch -q other", "other"),
            ("git switch -q main", "main"),
            ("git switch -q other; git switch -q main; git switch -q other", "other"),
            ("git checkout -q main -- .; git checkout -q other -- .", "other"),
            ("git reset -q --hard main; git reset -q --hard ORIG_HEAD", "other"),
            ("rm -rf .vscode .envrc CLAUDE.md .npmrc sub; git checkout -q -- .", "other"),
            ("git checkout -q -b third main", "main"),
            (
                "git switch -q other; git merge -q -s ours main -m m; git checkout -q main; git checkout -q other",
                "other",
            ),
        ] {
            let result = rig.result(&format!("{text}; git status --porcelain"));
            let about = format!("{via:?} {text}: {result}");
            assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(0), &json!("")), "{about}");
            assert!(!result["notices"].to_string().contains("held back"), "{about}");
            assert_on(&rig, branch, &about);
            assert_nothing_held(&rig, &about);
        }
    }
}

/// Whoever writes takes long after a file is made, as git does on a slow machine.
#[test]
fn what_is_written_late_is_let_through_as_what_is_written_at_once() {
    for via in BOTH {
        let mut rig = Rig::of(two_branches(via), &[]);
        let result =
            rig.result("git switch -q --detach; rm .envrc; { sleep 0.6; git show other:.envrc; sleep 0.6; } >.envrc");
        assert_eq!(result["exit_code"], json!(0), "{via:?}: {result}");
        let found = fs::read_to_string(rig.work(".envrc")).unwrap_or_else(|error| panic!("{via:?}: {error}: {result}"));
        assert_eq!(found, "of other\n", "{via:?}: {result}");
        assert_nothing_held(&rig, &result.to_string());
    }
}

/// A file that stays open and empty, and is written under another name of which nothing is told: it is found while the command runs.
#[test]
fn what_is_written_by_another_name_of_an_open_file_is_held_meanwhile() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let text = "{ ln .envrc notes; sleep 0.5; echo made >notes; sleep 1; cat .envrc; true; } 2>missing 9>.envrc";
        let result = rig.result(text);
        assert_eq!(result["stdout"], "", "{via:?}: it was there: {result}");
        assert!(!is_there(&rig.work(".envrc")) && rig.held().len() == 1, "{via:?}: {result}");
    }
}

/// A working tree that a command makes, or a file that leads git to the person's repository, changes nothing of what that repository had.
#[test]
fn other_working_trees_of_a_repository_do_not_change_what_it_had() {
    for text in [
        "git worktree add -q linked -b third",
        "mkdir linked; echo gitdir: ../.git >linked/.git",
        "mkdir linked; echo gitdir: ../.git >plain; mv plain linked/.git",
    ] {
        let program = two_branches(Via::Process);
        program.write("work/.git/info/exclude", "/linked\n");
        let mut rig = Rig::of(program, &[]);
        rig.run(text);
        for held in rig.held() {
            rig.decide("drop", &held);
        }
        let result = rig.result("git switch -q other");
        assert_on(&rig, "other", &format!("{text}: {result}"));
        assert_nothing_held(&rig, text);
    }
}

/// Gives a commit on a branch `evil` a new `.envrc` without writing that file.
const EVIL: &str = "id=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$id,new/.envrc; \
    git -c user.name=a -c user.email=a@b commit -q -m evil";

/// What a command committed is no history of the person's: later commands, and those of later hosts, do not get it out of there.
#[test]
fn what_a_command_committed_is_held_when_it_is_checked_out() {
    let fetched = format!("git init -q -b evil ev; cd ev; {EVIL}; cd ..");
    let ways = [
        format!("git switch -q -c evil; {EVIL}; git switch -q main"),
        format!("git switch -q -c evil; {EVIL}; git repack -q -a -d; git switch -q main"),
        format!("{fetched}; git fetch -q ./ev evil:evil; rm -rf ev"),
        format!("{fetched}; git -c fetch.unpackLimit=1 fetch -q ./ev evil:evil; rm -rf ev"),
        format!("{fetched}; git -C ev bundle create -q ../b evil; git fetch -q ./b evil:evil; rm -rf ev"),
        format!("{fetched}; git -C ev push -q .. evil:evil; rm -rf ev"),
    ];
    for way in &ways {
        for via in BOTH {
            let mut rig = Rig::of(two_branches(via), &[]);
            let made = rig.result(way);
            for held in rig.held() {
                rig.decide("drop", &held);
            }
            let has = git(&rig.work(""), &["ls-tree", "-r", "evil", "--", "new/.envrc"]);
            assert!(has.contains("new/.envrc"), "{via:?} {way}: {made}");
            let notices = rig.notices("git checkout -q evil -- new/.envrc");
            assert_held(&rig, "new/.envrc", &notices, &format!("{via:?} {way}"));
            rig.decide("drop", &rig.only_held());
            let Rig { client, program } = rig;
            drop(client);
            let mut rig = Rig::of(program, &[]);
            let notices = rig.notices("git checkout -q -f evil");
            assert_held(&rig, "new/.envrc", &notices, &format!("{via:?} {way}, by another host"));
        }
    }
}

/// A repository that a command made is not the person's for a later host either.
#[test]
fn what_a_repository_of_a_command_had_is_held_by_another_host() {
    let mut done = 0;
    for way in [
        format!("git init -q own; cd own; {EVIL}"),
        format!("git init -q own; cd own; {EVIL}; cd ..; mv own other; mv other own"),
        format!("git init -q --separate-git-dir=store own; cd own; {EVIL}"),
        format!("git init -q own; cd own; {EVIL}; mv .git ../store; echo gitdir: ../store >.git"),
    ] {
        let mut rig = Rig::new(Via::Process);
        let made = rig.result(&way);
        let Rig { client, program } = rig;
        drop(client);
        let mut rig = Rig::of(program, &[]);
        let result = rig.result("git -C own checkout -q -- new/.envrc");
        let about = format!("{way}: {made}: {result}");
        // One whose git directory lies elsewhere is taken away by then.
        if result["exit_code"] == 0 {
            assert_held(&rig, "own/new/.envrc", &result["notices"].to_string(), &about);
        }
        assert!(!is_there(&rig.work("own/new/.envrc")), "{about}");
        done += usize::from(result["exit_code"] == 0);
    }
    assert!(done >= 2, "git checked out of {done} of them");
}

/// Git has of a link where it leads to: those are the bytes of a file as well.
#[test]
fn a_link_is_not_the_file_that_was_there() {
    for via in BOTH {
        let mut rig = Rig::of(two_branches(via), &[]);
        let result = rig.result("mkdir only-other; ln -s other only-other/.envrc");
        assert_held(&rig, "only-other/.envrc", &result["notices"].to_string(), &format!("{via:?}"));
    }
}

/// What the repository had elsewhere, or what another repository had, is new at this place.
#[test]
fn what_was_at_another_place_is_held() {
    for via in BOTH {
        let mut rig = Rig::of(two_branches(via), &[]);
        for (text, made) in [
            ("mkdir x; cp docs/sample x/.envrc", "x/.envrc"),
            ("mkdir y; cp .envrc y/.envrc", "y/.envrc"),
            ("git clone -q . cloned", "cloned/.envrc"),
            ("mkdir own; cd own; git init -q; cp ../.envrc .envrc; cd ..", "own/.envrc"),
        ] {
            let result = rig.result(text);
            assert_held(&rig, made, &result["notices"].to_string(), &format!("{via:?} {text}"));
        }
    }
}
