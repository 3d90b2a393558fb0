//! What a command leaves in git directories: ordinary work gets there, and nothing that acts by itself.

use crate::rig::{BOTH, Rig, Via, program, word};
use serde_json::json;
use std::fs;
use std::path::Path;
use toolcrib_tests::processes::kill;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{PATIENCE, Program, eventually};

/// Runs git outside, as the person does.
#[expect(clippy::disallowed_methods, reason = "the person's own git")]
pub(crate) fn git(directory: &Path, words: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=p", "-c", "user.email=p@example.org"])
        .args(words)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// A workspace that is a repository with a commit.
pub(crate) fn repository(via: Via) -> Program {
    let program = program(via);
    let work = program.path("work");
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["config", "user.name", "p"]);
    git(&work, &["config", "user.email", "p@example.org"]);
    program.write("work/f", "1\n");
    git(&work, &["add", "f"]);
    git(&work, &["commit", "-q", "-m", "first"]);
    program
}

/// What git shows of a repository, as it is compared.
fn shown(work: &Path) -> [String; 4] {
    git(work, &["fsck", "--strict", "--no-dangling"]);
    [
        &["for-each-ref"][..],
        &["ls-files", "-s"],
        &["config", "-l", "--local"],
        &["status", "--porcelain=v2", "--branch"],
    ]
    .map(|words| git(work, words))
}

#[test]
fn ordinary_work_is_there_afterwards() {
    for via in BOTH {
        let mut rig = Rig::of(repository(via), &[]);
        let work = rig.work("");
        for text in [
            "echo 2 >>f; git add f; git commit -q -m second; git commit -q --amend -m 'the second'",
            "git switch -q -c topic; echo g >g; git add g; git commit -q -m g; git tag -a -m t v1; git notes add -m n",
            "git switch -q main; echo h >h; git add h; git commit -q -m h; git merge -q -m m topic; git branch -d topic",
            "git switch -q -c left HEAD~1; echo l >f; git commit -q -a -m l; git switch -q main; echo r >f; git commit -q -a -m r",
            "git merge left || { echo both >f; git add f; git commit -q -m merged; }",
            "git switch -q -c side HEAD~1; echo s >f; git commit -q -a -m s; git rebase main || { echo s >f; git add f; GIT_EDITOR=true git rebase --continue; }",
            "git switch -q main; git cherry-pick side; git revert --no-edit HEAD; echo st >>f; git stash -q; git stash pop -q; git stash -q",
            "git remote add origin https://example.org/x.git; git config branch.main.remote origin; git config user.name agent",
            "git remote set-url --push origin git@example.org:x.git; git config --unset branch.main.remote",
            "echo w >w; git add w; git commit -q --fixup HEAD~1; GIT_SEQUENCE_EDITOR=true git rebase -q --autosquash HEAD~3 || git rebase --abort",
            "git worktree add -q wt -b wtb; cd wt; echo w >w2; git add w2; git commit -q -m w; cd ..; git worktree remove wt; git branch -D wtb",
            "git gc -q; git pack-refs --all; git fsck; git reflog expire --expire=now --all",
            "git sparse-checkout set --cone; git sparse-checkout disable; git bisect start; git bisect reset",
            "git init -q --bare ../bare.git 2>/dev/null || git init -q --bare bare.git; git push -q bare.git main 2>&1; rm -rf bare.git",
        ] {
            let result = rig.result(text);
            assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
            // What commands see is what is there.
            let inside = rig.run("git for-each-ref; git ls-files -s; git status --porcelain=v2 --branch").1;
            let outside = [&["for-each-ref"][..], &["ls-files", "-s"], &["status", "--porcelain=v2", "--branch"]];
            let outside: String = outside.map(|words| git(&work, words)).concat();
            assert_eq!(inside, outside, "{via:?} {text}: {result}");
        }
        let [references, .., config, _] = shown(&work);
        assert!(references.contains("refs/tags/v1") && references.contains("refs/stash"), "{references}");
        assert!(
            config.contains("remote.origin.url=https://example.org/x.git") && config.contains("user.name=agent"),
            "{config}"
        );
    }
}

/// Each way by which a command had git run its code outside.
#[test]
fn nothing_that_acts_reaches_the_repository() {
    for via in BOTH {
        let program = repository(via);
        let work = program.path("work").canonicalize().expect("a directory");
        git(&work, &["config", "extensions.worktreeConfig", "true"]);
        git(&work, &["worktree", "add", "-q", "../beside", "-b", "beside"]);
        let mut rig = Rig::of(program, &[]);
        let proof = rig.program.path("proof");
        let runs = format!("touch {}; false", word(&proof));
        let runs = word(runs);
        let attacks = [
            format!("git config core.fsmonitor {runs}"),
            format!("printf '[core]\\n\\tfsmonitor = %s\\n' {runs} >>.git/config"),
            format!("git config --worktree core.fsmonitor {runs}"),
            format!("cp -r .git evil; git config -f evil/config core.fsmonitor {runs}; echo ../evil >.git/commondir"),
            format!("git config -f evil/config core.fsmonitor {runs}; echo $PWD/evil >.git/worktrees/beside/commondir"),
            format!("echo {runs} >.git/hooks/post-index-change; chmod +x .git/hooks/*; cp .git/hooks/post-index-change .git/hooks/pre-commit"),
            format!("mkdir -p hooks; echo {runs} >hooks/pre-commit; chmod +x hooks/*; git config core.hooksPath hooks"),
            format!("git config -f evil.cfg core.fsmonitor {runs}; git config include.path ../evil.cfg"),
            format!("mkdir -p a/b/c/d; cd a/b/c/d; git init -q; git commit -q --allow-empty -m x; git config core.fsmonitor {runs}; cd - >/dev/null; git add a"),
            format!("mkdir -p node_modules/y; cd node_modules/y; git init -q; git commit -q --allow-empty -m x; git config core.fsmonitor {runs}; cd - >/dev/null; git add -f node_modules/y"),
            "echo '* filter=x' >.git/info/attributes; git config filter.x.clean 'touch proof'; echo /tmp >.git/objects/info/alternates".into(),
            format!("mv .git/hooks .git/h; mkdir .git/hooks; echo {runs} >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
            "rm -rf .git; mv evil .git".into(),
            "mkfifo .git/refs/heads/pipe .git/FETCH_HEAD; ln -s /etc/passwd .git/refs/heads/link; ln -sf /etc/passwd .git/ORIG_HEAD".into(),
        ];
        for attack in &attacks {
            rig.result(attack);
            for words in [
                &["status"][..],
                &["-C", "../beside", "status"],
                &["commit", "-q", "--allow-empty", "-m", "x"],
                &["log"],
            ] {
                git(&work, words);
            }
            assert!(!proof.exists(), "{via:?} {attack}");
        }
        git(&work, &["fsck", "--no-dangling"]);
        let config = git(&work, &["config", "-l", "--local"]);
        assert!(!["fsmonitor", "include", "filter", "hookspath"].iter().any(|key| config.contains(key)), "{config}");
        assert!(!work.join(".git/commondir").exists() && !work.join(".git/hooks/pre-commit").exists());
        // Nothing of that is lost to the person.
        let listed = rig.program.run(&["files", "held", "list", "--json"]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains("core.fsmonitor") && listed.contains("pre-commit"), "{listed}");
    }
}

/// What is held back is kept when a person says so, and not before.
#[test]
fn what_is_held_back_is_kept_by_a_person() {
    let mut rig = Rig::of(repository(Via::Process), &[]);
    let notices = rig.notices("git config alias.st status; printf '#!/bin/sh\\n' >.git/hooks/pre-push");
    assert!(notices.contains("git obeys `alias.st` by itself") && notices.contains("pre-push"), "{notices}");
    let work = rig.work("");
    assert!(!git(&work, &["config", "-l", "--local"]).contains("alias"));
    let listed = rig.program.run(&["files", "held", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2, "{listed:?}");
    for held in listed {
        let id = held["id"].as_str().expect("an id");
        let shown = rig.program.run(&["files", "held", "show", id]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains(held["text"].as_str().expect("a text")));
        assert!(rig.program.run(&["files", "held", "keep", id]).status.success());
    }
    assert_eq!(git(&work, &["config", "alias.st"]), "status\n");
    assert!(work.join(".git/hooks/pre-push").exists());
    let none = rig.program.run(&["files", "held", "drop", "0"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("toolcrib files held list"));
}

/// A linked working tree, a submodule, and a git directory elsewhere are worked in like any other.
#[test]
fn working_trees_whose_repository_lies_elsewhere_are_worked_in() {
    for via in BOTH {
        let program = program(via);
        let top = program.path("main");
        fs::create_dir_all(&top).expect("a directory");
        git(&top, &["init", "-q", "-b", "main"]);
        git(&top, &["commit", "-q", "--allow-empty", "-m", "first"]);
        git(&top, &["config", "user.name", "p"]);
        git(&top, &["config", "user.email", "p@example.org"]);
        fs::remove_dir_all(program.path("work")).expect("it is empty");
        git(&top, &["worktree", "add", "-q", "../work", "-b", "work"]);
        let mut rig = Rig::of(program, &[]);
        let result = rig.result("echo 1 >f; git add f; git commit -q -m f; git status --porcelain");
        assert_eq!((&result["exit_code"], &result["stdout"]), (&0.into(), &"".into()), "{via:?} {result}");
        assert!(git(&top, &["log", "--oneline", "work"]).contains(" f\n"));
        let proof = rig.program.path("proof");
        rig.result(&format!(
            "rm .git; git init -q ev; git -C ev config core.fsmonitor 'touch {0}; false'; echo gitdir: ev/.git >.git",
            proof.display()
        ));
        git(&rig.work(""), &["status"]);
        assert!(!proof.exists(), "{via:?}");
    }
}

/// What a process in a pane writes when no call is there to end gets there as well.
#[test]
fn what_is_written_between_calls_is_taken_over() {
    let mut rig = Rig::of(repository(Via::Pane), &[]);
    rig.run("true");
    rig.run("(while [ ! -e go ]; do sleep 0.02; done; git commit -q --allow-empty -m later) & true");
    rig.program.write("work/go", "");
    let work = rig.work("");
    eventually("it was taken over", || git(&work, &["log", "--oneline"]).contains("later"));
}

/// The person works in the same repository meanwhile: neither side loses a commit.
#[test]
fn the_person_and_the_agent_commit_in_one_repository() {
    let mut rig = Rig::of(repository(Via::Process), &[]);
    let work = rig.work("");
    for number in 0..5 {
        git(&work, &["commit", "-q", "--allow-empty", "-m", &format!("person-{number}")]);
        let result = rig.result(&format!("git commit -q --allow-empty -m agent-{number}"));
        assert_eq!(result["exit_code"], 0, "{result}");
    }
    // While a command runs.
    let waiting =
        "git commit -q --allow-empty -m first-agent; touch begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go";
    let path = work.clone();
    let person = std::thread::spawn(move || {
        eventually("the command runs", || path.join("begun").exists());
        git(&path, &["commit", "-q", "--allow-empty", "-m", "person-meanwhile"]);
        fs::write(path.join("go"), "").expect("a file");
    });
    let result = rig.result(waiting);
    person.join().expect("the person's part");
    assert!(result["notices"].to_string().contains("was changed meanwhile"), "{result}");
    let log = git(&work, &["log", "--oneline"]);
    for number in 0..5 {
        assert!(log.contains(&format!("person-{number}")) && log.contains(&format!("agent-{number}")), "{log}");
    }
    assert!(log.contains("person-meanwhile") && !log.contains("first-agent"), "{log}");
    let lost = git(&work, &["fsck", "--lost-found"]);
    assert!(lost.contains("dangling commit"), "the agent's commit is there: {lost}");
}

/// A pane outlives its host. What commands do in a pane that the next host makes beside it is taken over as well.
#[test]
fn a_pane_that_is_made_beside_one_of_a_host_before_has_the_gates() {
    let mut program = repository(Via::Pane);
    for round in 0..3 {
        let mut rig = Rig::of(program, &[]);
        assert_eq!(rig.run("true").0, 0);
        let other = format!("other-{round}");
        rig.client.result("tmux-create-pane", declared(json!({ "pane": other })));
        let mut arguments = command(&format!("echo {round} >f; git commit -q -a -m commit-{round}"));
        arguments["pane"] = other.into();
        let result = rig.client.result("run_shell", arguments);
        assert_eq!(result["exit_code"], 0, "{round}: {result}");
        let work = rig.work("");
        drop(rig.client);
        assert_eq!(git(&work, &["log", "-1", "--format=%s"]), format!("commit-{round}\n"), "{result}");
        assert_eq!(git(&work, &["status", "--porcelain"]), "", "{round}: {result}");
        program = rig.program;
    }
}

/// Panes of one host are apart when that is gone: the next one has its gates and covers in each.
#[test]
fn all_panes_of_a_host_before_have_what_the_next_one_lays() {
    let program = repository(Via::Pane);
    let hide = ["hidden-0", "hidden-1", "hidden-2"].map(|name| program.path("work").join(name));
    let hide = format!("confine.hide={hide:?}");
    let mut rig = Rig::of(program, &[&hide]);
    rig.client.result("tmux-create-pane", declared(json!({ "pane": "second" })));
    let second = |rig: &mut Rig, text: &str| {
        let mut arguments = command(text);
        arguments["pane"] = "second".into();
        rig.client.result("run_shell", arguments)
    };
    for round in 0..3 {
        assert_eq!(rig.run("true").0, 0);
        assert_eq!(second(&mut rig, "true")["exit_code"], 0);
        let Rig { client, program } = rig;
        drop(client);
        rig = Rig::of(program, &[&hide]);
        assert_eq!(rig.run("true").0, 0);
        let result = second(&mut rig, &format!("echo {round} >f; git commit -q -a -m commit-{round}"));
        assert_eq!(result["exit_code"], 0, "{round}: {result}");
        let work = rig.work("");
        assert_eq!(git(&work, &["log", "-1", "--format=%s"]), format!("commit-{round}\n"), "{result}");
        assert_eq!(git(&work, &["status", "--porcelain", "-uno"]), "", "{round}: {result}");
        let theirs = format!("theirs-{round}");
        git(&work, &["branch", &theirs]);
        let result = second(&mut rig, "git for-each-ref");
        assert!(result["stdout"].as_str().is_some_and(|all| all.contains(&theirs)), "{round}: {result}");
        // What is to be hidden and comes into being outside is covered there as well, once something joins the cell.
        let hidden = format!("hidden-{round}");
        rig.program.write(&format!("work/{hidden}"), "secret\n");
        rig.client.result("tmux-create-pane", declared(json!({ "pane": format!("new-{round}") })));
        let result = second(&mut rig, &format!("cat {hidden}"));
        assert!(!result.to_string().contains("secret"), "{round}: {result}");
    }
}

/// What its host wrote before it was killed is not taken for somebody else's work.
#[test]
fn what_a_pane_commits_when_its_host_was_killed_comes_with_its_index() {
    let mut rig = Rig::of(repository(Via::Pane), &[]);
    let later = "(while [ -e wait ]; do sleep .1; done; echo 3 >f; git commit -q -a -m later) >/dev/null 2>&1 &";
    let result = rig.result(&format!("touch wait; echo 2 >f; git commit -q -a -m now; {later}"));
    let work = rig.work("");
    assert_eq!(git(&work, &["log", "-1", "--format=%s"]), "now\n", "{result}");
    kill(&[rig.client.pid()]);
    rig.client.ended(PATIENCE).expect("it has ended");
    fs::remove_file(work.join("wait")).expect("a file");
    let mut rig = Rig::of(rig.program, &[]);
    eventually("the commit", || {
        rig.run("true");
        git(&work, &["log", "-1", "--format=%s"]) == "later\n"
    });
    assert_eq!(git(&work, &["status", "--porcelain"]), "", "{result}");
}

/// Git believes the name of an object that it has: one with other bytes would be what the person's next `git pull` checks out.
#[test]
fn objects_that_are_not_what_their_names_say_are_left_behind() {
    let loose = "good=$(echo good | git hash-object --stdin); evil=$(echo evil | git hash-object -w --stdin); \
        at() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; \
        mkdir -p $(dirname $(at $good)); cp $(at $evil) $(at $good); git cat-file -p $good";
    // The index of a pack of one object has its name once.
    let packed = "good=$(echo good | git hash-object --stdin); evil=$(echo evil | git hash-object -w --stdin); \
        pack=$(echo $evil | git pack-objects -q .git/objects/pack/pack); rm -f .git/objects/??/*; \
        chmod u+w .git/objects/pack/*; python3 -c \"import hashlib,sys
path,good,evil=sys.argv[1],bytes.fromhex(sys.argv[2]),bytes.fromhex(sys.argv[3])
index=open(path,'rb').read()
fan=b''.join((1 if byte >= good[0] else 0).to_bytes(4,'big') for byte in range(256))
index=index[:8]+fan+index[1032:-20].replace(evil,good)
open(path,'wb').write(index+hashlib.sha1(index).digest())
\" .git/objects/pack/pack-$pack.idx $good $evil; git cat-file -p $good";
    for via in BOTH {
        for text in [loose, packed] {
            let mut rig = Rig::of(repository(via), &[]);
            let result = rig.result(text);
            assert_eq!(result["stdout"], "evil\n", "{via:?} {text}: {result}");
            assert!(result["notices"].to_string().contains("was not taken over"), "{via:?} {text}: {result}");
            let work = rig.work("");
            let [good, evil] = ["good\n", "evil\n"].map(|bytes| {
                rig.program.write("work/bytes", bytes);
                git(&work, &["hash-object", "bytes"]).trim().to_owned()
            });
            let there = git(&work, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
            assert!(!there.contains(&good), "{via:?} {text}: {there}: {result}");
            // What is what it says is there all the same with the next command.
            rig.run("echo evil | git hash-object -w --stdin");
            assert!(git(&work, &["cat-file", "-p", &evil]) == "evil\n", "{via:?} {text}");
            let packs = fs::read_dir(work.join(".git/objects/pack")).expect("a directory").count();
            assert_eq!(packs, 0, "{via:?} {text}");
            git(&work, &["fsck", "--strict", "--no-dangling"]);
        }
    }
}
