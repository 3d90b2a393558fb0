//! Random sequences of git commands, one in a cell and the same outside beside it: both end in the same repository.

use crate::git::git;
use crate::rig::{BOTH, Rig, Via, program, word};
use std::path::Path;
use toolcrib_tests::is_long;

/// Repositories of one host, of which 64 can have a gate at once.
const AT_ONCE: usize = 32;
/// Commands of a sequence, at least and at most.
const COMMANDS: [usize; 2] = [8, 15];
/// Repeats the sequence of one seed, which a failure names.
const SEED: &str = "TOOLCRIB_TESTS_SEED";

/// What git is told by its environment, on both sides. The date lies ahead, so that `gc` expires no log by it.
const ENVIRONMENT: &str = "export GIT_AUTHOR_DATE='1900000000 +0000' GIT_COMMITTER_DATE='1900000000 +0000' \
    GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_EDITOR=true GIT_SEQUENCE_EDITOR=true LC_ALL=C";
/// What each repository begins with.
const BEGIN: &str = "git init -q -b main --template= && git config user.name p && git config user.email p@example.org && mkdir d && \
    for file in a b c d/e; do echo $file >$file; git add $file; git commit -q -m $file || exit; done && \
    git branch one HEAD~1 && git branch two && git switch -q two && echo two >>a && git commit -q -a -m two && \
    git tag -a -m t v1 && git switch -q main";
/// What is compared. Settings are in the order in which they were written, which means nothing but among values of one key. A graph of commits
/// stays behind; outside it may be about commits that `repack` removed, which `fsck` takes for broken.
const SHOWN: &str = "git for-each-ref; echo; git ls-files -s; echo; git symbolic-ref HEAD || git rev-parse HEAD; echo; \
    git status --porcelain=v2 --branch; echo; git stash list; echo; git -c core.commitGraph=false fsck --strict --no-dangling 2>&1 || echo broken; \
    echo; git config -l --local | sort -s -t= -k1,1";

const FILES: [&str; 5] = ["a", "b", "c", "d/e", "new"];
/// Some of them in each other's way.
const BRANCHES: [&str; 6] = ["main", "one", "two", "three", "t", "t/a"];
const REVISIONS: [&str; 7] = ["HEAD", "HEAD~1", "HEAD~2", "main", "one", "two", "v1"];
const SETTINGS: [&str; 12] = [
    "user.name agent",
    "user.name 'A \"q\" # x; \\y'",
    "user.email 'a b@example.org'",
    "branch.one.description 'what it is for'",
    "branch.main.rebase true",
    "merge.conflictStyle diff3",
    "rebase.autoStash true",
    "rerere.enabled true",
    "index.version 4",
    "core.untrackedCache true",
    "log.date iso",
    "pull.ff only",
];
/// How what a conflict stopped goes on, or does not.
const AFTER_A_CONFLICT: [&str; 5] = [
    "true",
    "{ git add -A; git commit -q -m solved; }",
    "{ git add -A; git rebase --continue || git cherry-pick --continue || git revert --continue; }",
    "{ git rebase --abort || git cherry-pick --abort || git revert --abort || git merge --abort; }",
    "{ git rebase --skip || git cherry-pick --skip || git revert --skip || git reset -q --hard; }",
];

/// Numbers that follow from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a number of that kind")
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Which commands a sequence consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Commands {
    Usual,
    /// Also those that take something out of files of git's: packed references and objects, and lists of stashes.
    Packing,
}

/// Git commands that follow from a seed.
fn sequence(seed: u64, commands: Commands) -> Vec<String> {
    let mut random = Random(seed);
    let count = COMMANDS[0] + random.below(COMMANDS[1] - COMMANDS[0] + 1);
    (0..count).map(|step| command(&mut random, step, commands)).collect()
}

/// Edits only add to a file: git does not look into one that has the size and the second of what was added before.
fn command(random: &mut Random, step: usize, commands: Commands) -> String {
    let [file, other] = [(); 2].map(|()| random.pick(&FILES));
    let [branch, upstream] = [(); 2].map(|()| random.pick(&BRANCHES));
    let (revision, setting) = (random.pick(&REVISIONS), random.pick(&SETTINGS));
    let solve = random.pick(&AFTER_A_CONFLICT);
    let commit = format!("echo {step} >>{file}; git add {file}; git commit -q -m 'step {step}'");
    let mut all = vec![
        commit.clone(),
        commit.clone(),
        commit.clone(),
        format!("{commit}; echo {step} >>{other}"),
        format!("echo {step} >>{file}; git add {file}; echo {step} >>{file}"),
        format!("git branch {branch} {revision}"),
        format!("git branch --track {branch} {upstream}"),
        format!("git branch -D {branch}"),
        format!("git branch -m {branch} {upstream}"),
        format!("git switch -q {branch}"),
        format!("git switch -q {branch}"),
        format!("git switch -q -c {branch} {revision}"),
        format!("git checkout -q --detach {revision}; {commit}"),
        format!("git merge -q -m merged {branch} || {solve}"),
        format!("git merge -q --no-ff -m merged {branch} || {solve}"),
        format!("git merge -q --squash {branch} || {solve}"),
        format!("git rebase -q {branch} || {solve}"),
        format!("git rebase -q --onto {upstream} {revision} || {solve}"),
        format!("git cherry-pick {revision} || {solve}"),
        format!("git cherry-pick one two || {solve}"),
        format!("git revert --no-edit {revision} || {solve}"),
        solve.to_owned(),
        format!("echo {step} >>{file}; git stash push -q; git stash pop -q"),
        format!("echo {step} >>{file}; git stash push -q -u -m 'stash {step}'"),
        format!("git tag v{step}; git tag -f -a -m t v2 {revision}"),
        "git tag -d v2".into(),
        format!("echo {step} >>{file}; git add {file}; git commit -q --amend --no-edit"),
        format!("git commit -q --amend --allow-empty -m 'amended {step}'"),
        format!("git reset -q --soft {revision}"),
        format!("git reset -q --mixed {revision}"),
        format!("git reset -q --hard {revision}"),
        format!("git rm -q -f {file}; git commit -q -m 'removed {step}'"),
        format!("git rm -q --cached {file}"),
        format!("git mv -f {file} {other}; git commit -q -m 'moved {step}'"),
        format!("git config {setting}"),
        format!("git config --unset {setting}"),
        format!("git remote add r{step} https://example.org/{step}.git; git config branch.{branch}.remote r{step}"),
        format!("git remote add origin ../{step}.git; git remote rename origin far; git remote remove far"),
        format!("git notes add -f -m 'note {step}' {revision}"),
        format!("git update-ref refs/own/{branch} {revision}; git update-ref -d refs/own/{upstream}"),
    ];
    if commands == Commands::Packing {
        let pack = ["gc -q", "gc -q --prune=now", "repack -q -a -d", "pack-refs --all", "pack-refs --all --no-prune"];
        let stash = ["stash push -q -m more", "stash pop -q", "stash apply -q", "stash drop -q", "stash clear"];
        all.extend(pack.into_iter().chain(stash).map(|words| format!("git {words}")));
        all.push(format!(
            "echo {step} >>{file}; git stash push -q; echo {step} >>{other}; git stash push -q -m {step}"
        ));
    }
    random.pick(&all)
}

/// A script that runs commands in a repository and says of each whether it failed: shells have other numbers for that.
fn script(directory: &Path, commands: &[String]) -> String {
    let run = |command: &String| format!("if {{ {command}; }} >/dev/null 2>&1; then printf '0 '; else printf '1 '; fi");
    let all: Vec<String> = commands.iter().map(run).collect();
    format!("({ENVIRONMENT}; cd {}; {})", word(directory), all.join("; "))
}

/// Runs a script outside, as the person does.
#[expect(clippy::disallowed_methods, reason = "the person's own shell")]
fn outside(script: &str) -> String {
    let output = std::process::Command::new("sh").args(["-c", script]).output().expect("a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn shown(directory: &Path) -> String {
    outside(&format!("{ENVIRONMENT}; cd {}; {SHOWN}", word(directory)))
}

/// Runs sequences, each in a repository of its own.
fn run(via: Via, commands: Commands, seeds: &[u64]) {
    let (program, at_once) = (program(via), if is_long() { 1 } else { 4 });
    let begin = |parent: &str| {
        let parent = program.path(parent);
        std::fs::create_dir_all(&parent).expect("a directory");
        let parent = parent.canonicalize().expect("a path");
        let first = parent.join("0");
        std::fs::create_dir(&first).expect("a directory");
        outside(&format!("{ENVIRONMENT}; cd {}; {BEGIN}", word(&first)));
        for number in 1..seeds.len() {
            outside(&format!("cd {}; cp -a 0 {number}", word(&parent)));
        }
        parent
    };
    let (inner, outer) = (begin("work"), begin("beside"));
    let mut rig = Rig::of(program, &[]);
    for (number, seed) in seeds.iter().enumerate() {
        let [inner, outer] = [&inner, &outer].map(|parent| parent.join(number.to_string()));
        let commands = sequence(*seed, commands);
        let told = |what: &str, notices: &[String]| {
            let commands = commands.join("\n");
            format!("{what}: {via:?}, {SEED}={seed}\n{commands}\nnotices: {notices:?}\n")
        };
        let mut notices = Vec::new();
        for commands in commands.chunks(at_once) {
            let result = rig.result(&script(&inner, commands));
            notices.push(result["notices"].to_string());
            let statuses = outside(&script(&outer, commands));
            let commands = commands.join("\n");
            let what = format!("other statuses of\n{commands}\n{result}\noutside: {statuses}");
            let inside = result["stdout"].as_str().map(str::trim_end);
            assert!(inside == Some(statuses.trim_end()), "{}", told(&what, &notices));
        }
        let [inner, outer] = [inner, outer].map(|directory| shown(&directory));
        assert!(inner == outer, "{}inside:\n{inner}\noutside:\n{outer}", told("another repository", &notices));
        // All of it went over, so there is nothing to tell.
        let is_told = notices.iter().any(|notices| notices.contains("was not taken over") || notices.contains("obeys"));
        assert!(!is_told, "{}", told("something stayed behind", &notices));
    }
}

fn first_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    u64::from_ne_bytes(bytes) >> 32
}

/// Plain commands take one half of the sequences, panes the other.
fn run_random(commands: Commands) {
    if let Ok(seed) = std::env::var(SEED) {
        return BOTH.into_iter().for_each(|via| run(via, commands, &[seed.parse().expect("a seed")]));
    }
    let (first, half) = (first_seed(), if is_long() { 2_500 } else { 13 });
    std::thread::scope(|scope| {
        for (via, begin) in BOTH.into_iter().zip([first, first + half]) {
            scope.spawn(move || {
                let seeds: Vec<u64> = (begin..begin + half).collect();
                seeds.chunks(AT_ONCE).for_each(|seeds| run(via, commands, seeds));
            });
        }
    });
}

#[test]
fn random_sequences_end_in_the_repository_that_git_makes_outside() {
    run_random(Commands::Usual);
}

#[test]
fn random_sequences_that_pack_end_in_the_repository_that_git_makes_outside() {
    run_random(Commands::Packing);
}

/// The kernel leaves no mark where a command removes what the one before it made.
#[test]
fn what_one_command_makes_and_the_next_removes_is_gone() {
    for via in BOTH {
        let mut rig = Rig::of(crate::git::repository(via), &[]);
        let work = rig.work("");
        rig.run("git switch -q -c topic; git commit -q --allow-empty -m topic; git switch -q main");
        let shown = || [&["for-each-ref"][..], &["stash", "list"], &["status"]].map(|words| git(&work, words));
        let before = shown();
        for [make, remove] in [
            ["git branch own", "git branch -q -D own"],
            ["git tag own", "git tag -d own"],
            ["git update-ref refs/own/deep/er HEAD", "git update-ref -d refs/own/deep/er"],
            ["git merge -q --no-commit --no-ff topic", "git merge --abort"],
            ["echo 22 >>f; git stash -q", "git stash drop -q"],
            ["git bisect start", "git bisect reset"],
        ] {
            rig.run(make);
            assert_ne!(shown(), before, "{via:?} {make}");
            rig.run(remove);
            assert_eq!(shown(), before, "{via:?} {remove}");
        }
    }
}

/// What a command packed and removed in a gate counts together also when the next command adds to it.
#[test]
fn references_that_a_command_packed_stay_when_the_next_one_commits() {
    for via in BOTH {
        for pack in ["git pack-refs --all", "git gc -q"] {
            let mut rig = Rig::of(crate::git::repository(via), &[]);
            let work = rig.work("");
            git(&work, &["branch", "one"]);
            git(&work, &["tag", "v1"]);
            rig.run(pack);
            rig.run("git commit -q --allow-empty -m second");
            let names = git(&work, &["for-each-ref", "--format=%(refname)"]);
            assert_eq!(names, "refs/heads/main\nrefs/heads/one\nrefs/tags/v1\n", "{via:?} {pack}");
            assert_eq!(git(&work, &["log", "--format=%s"]), "second\nfirst\n", "{via:?} {pack}");
        }
    }
}

/// What `git stash drop` and `git stash pop` take from the list is gone from it outside, too.
#[test]
fn a_stash_that_was_dropped_is_not_listed_any_more() {
    let mut rig = Rig::of(crate::git::repository(Via::Process), &[]);
    for text in ["echo 22 >>f; git stash -q -m first", "echo 333 >>f; git stash -q -m second", "git stash drop -q"] {
        let result = rig.result(text);
        assert_eq!(result["exit_code"], 0, "{text}: {result}");
    }
    let listed = git(&rig.work(""), &["stash", "list"]);
    assert!(listed.contains("first") && !listed.contains("second"), "{listed}");
}

/// Git looks into a file of the size and the second that the index has only where the index is not younger: so it keeps its time.
#[test]
fn what_is_edited_right_after_git_add_is_seen_as_changed() {
    let mut rig = Rig::of(crate::git::repository(Via::Process), &[]);
    rig.run("printf a >racy; git add racy; printf b >racy; sleep 1.1");
    assert_eq!(git(&rig.work(""), &["status", "--porcelain"]), "AM racy\n");
}
