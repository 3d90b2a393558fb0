//! The person and the agent work in one repository at the same time: no commit is lost on either side.

use crate::git::{git, repository};
use crate::rig::{BOTH, Rig, Via};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use toolcrib_tests::{eventually, is_long};

/// Runs git outside, where a lock of the host may be in its way.
#[expect(clippy::disallowed_methods, reason = "the person's own git")]
fn is_done(directory: &Path, words: &[&str]) -> bool {
    let output = std::process::Command::new("git").args(words).current_dir(directory).output();
    output.expect("git").status.success()
}

/// Says that one thread has come to its end, also by a panic: another one waits for that.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Commits, switches and packs until `is_over`. Returns what was committed.
fn work(directory: &Path, is_over: &AtomicBool) -> BTreeSet<String> {
    let mut done = BTreeSet::new();
    for round in (0_usize..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
        let subject = format!("person-{round}");
        if is_done(directory, &["commit", "-q", "--allow-empty", "-m", &subject]) {
            done.insert(subject);
        }
        if round % 4 == 0 {
            is_done(directory, &["switch", "-q", if round % 8 == 0 { "side" } else { "main" }]);
        }
        if round % 7 == 0 {
            is_done(directory, &["gc", "-q"]);
        }
        if round % 5 == 0 {
            is_done(directory, &["pack-refs", "--all"]);
        }
        // So that commits of the agent's get in between.
        std::thread::sleep(Duration::from_millis(5 * (round as u64 % 9)));
    }
    done
}

/// The commits that notices tell of, by their ids.
fn told(notices: &str) -> Vec<&str> {
    let after = notices.split("the command set it to ").skip(1);
    after.filter_map(|rest| rest.get(..40)).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())).collect()
}

#[test]
fn neither_side_loses_a_commit_while_both_work() {
    let commits = if is_long() { 1_000 } else { 40 };
    let mut rig = Rig::of(repository(Via::Process), &[]);
    let directory = rig.work("");
    git(&directory, &["branch", "side"]);
    let is_over = AtomicBool::new(false);
    let (mut by_agent, mut notices) = (BTreeSet::new(), String::new());
    let by_person = std::thread::scope(|scope| {
        let person = scope.spawn(|| work(&directory, &is_over));
        let over = Over(&is_over);
        for number in 0..commits {
            let result = rig.result(&format!("git commit -q --allow-empty -m agent-{number}"));
            // Git itself refuses where the person has moved the branch at that moment.
            if result["exit_code"] == 0 {
                by_agent.insert(format!("agent-{number}"));
            }
            notices += &result["notices"].to_string();
        }
        drop(over);
        person.join().expect("the person's part")
    });
    drop(rig.client);
    git(&directory, &["fsck", "--strict", "--no-dangling"]);
    let subjects = |words: &[&str]| -> BTreeSet<String> { git(&directory, words).lines().map(str::to_owned).collect() };
    let kept = subjects(&["log", "--all", "--format=%s"]);
    let lost: Vec<_> = by_person.difference(&kept).collect();
    assert!(lost.is_empty(), "of the person's {} commits: {lost:?}\n{notices}", by_person.len());
    let refused = told(&notices);
    let refused = match refused.is_empty() {
        true => BTreeSet::new(),
        false => subjects(&[&["show", "-s", "--format=%s"], &refused[..]].concat()),
    };
    let lost: Vec<_> =
        by_agent.iter().filter(|subject| !kept.contains(*subject) && !refused.contains(*subject)).collect();
    assert!(lost.is_empty(), "of the agent's {} commits: {lost:?}\n{notices}", by_agent.len());
    let both = by_agent.intersection(&kept).count();
    println!(
        "{} commits by the person; of {commits} by the agent {} were made, {both} went over, {} were told of",
        by_person.len(),
        by_agent.len(),
        refused.len()
    );
    assert!(both > 0 && !by_person.is_empty(), "{notices}");
}

/// Commands that only look see what is there by then: a cell lives on, and what the kernel knows of a file with it.
#[test]
fn what_the_person_does_between_two_commands_is_seen() {
    for via in BOTH {
        let mut rig = Rig::of(repository(via), &[]);
        let work = rig.work("");
        let look = "git log --format=%s; git rev-parse -q --verify topic >/dev/null || echo no topic; git config user.name; git ls-files";
        assert_eq!(rig.run(look).1, "first\nno topic\np\nf\n", "{via:?}");
        std::fs::write(work.join("g"), "").expect("a file");
        for words in
            [&["add", "g"][..], &["commit", "-q", "-m", "person"], &["branch", "topic"], &["config", "user.name", "q"]]
        {
            git(&work, words);
        }
        assert_eq!(rig.run(look).1, "person\nfirst\nq\nf\ng\n", "{via:?}");
        for words in [&["gc", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "again"], &["branch", "-D", "topic"]]
        {
            git(&work, words);
        }
        assert_eq!(rig.run(look).1, "again\nperson\nfirst\nno topic\nq\nf\ng\n", "{via:?}");
    }
}

/// Has a command commit and wait, and the person do this meanwhile. Returns the notices.
fn meanwhile(rig: &mut Rig, command: &str, person: &[&[&str]]) -> String {
    let directory = rig.work("");
    let waiting = format!("{command}; touch begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go");
    std::thread::scope(|scope| {
        let person = scope.spawn(|| {
            eventually("the command has committed", || directory.join("begun").exists());
            for words in person {
                git(&directory, words);
            }
            std::fs::write(directory.join("go"), "").expect("a file");
        });
        let result = rig.result(&waiting);
        person.join().expect("the person's part");
        assert_eq!(result["exit_code"], 0, "{result}");
        result["notices"].to_string()
    })
}

/// A repository with a second commit, which the agent adds to.
fn of_two_commits() -> Rig {
    let rig = Rig::of(repository(Via::Process), &[]);
    git(&rig.work(""), &["commit", "-q", "--allow-empty", "-m", "second"]);
    rig
}

const COMMIT: &str = "git commit -q --allow-empty -m agent";

#[test]
fn a_branch_that_the_person_moved_and_packed_meanwhile_stays() {
    let mut rig = of_two_commits();
    let person: [&[&str]; 2] = [&["commit", "-q", "--allow-empty", "-m", "person"], &["pack-refs", "--all"]];
    let notices = meanwhile(&mut rig, COMMIT, &person);
    let log = git(&rig.work(""), &["log", "--format=%s"]);
    assert!(log.starts_with("person\n"), "{log}{notices}");
    assert!(notices.contains("was changed meanwhile"), "{notices}");
}

#[test]
fn a_branch_that_the_person_moved_back_meanwhile_stays() {
    let mut rig = of_two_commits();
    let notices = meanwhile(&mut rig, COMMIT, &[&["reset", "-q", "--hard", "HEAD~1"]]);
    let log = git(&rig.work(""), &["log", "--format=%s"]);
    assert_eq!(log, "first\n", "{notices}");
    assert!(notices.contains("was changed meanwhile"), "{notices}");
}

#[test]
fn a_branch_that_the_person_deleted_meanwhile_stays_away() {
    let mut rig = of_two_commits();
    git(&rig.work(""), &["branch", "topic"]);
    let command = "git switch -q topic; git commit -q --allow-empty -m agent; git switch -q main";
    let notices = meanwhile(&mut rig, command, &[&["branch", "-q", "-D", "topic"]]);
    let branches = git(&rig.work(""), &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "main\n", "{notices}");
    assert!(notices.contains("was changed meanwhile"), "{notices}");
}

/// What packs the person's references does not undo what a command moved, and neither what the person moved.
#[test]
fn references_that_both_sides_pack_keep_what_each_moved() {
    let mut rig = of_two_commits();
    let person: [&[&str]; 2] = [&["branch", "theirs"], &["gc", "-q"]];
    let notices =
        meanwhile(&mut rig, "git branch own; git pack-refs --all; git commit -q --allow-empty -m agent", &person);
    let branches = git(&rig.work(""), &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "main\nown\ntheirs\n", "{notices}");
    assert!(git(&rig.work(""), &["log", "--format=%s"]).starts_with("agent\n"), "{notices}");
}
