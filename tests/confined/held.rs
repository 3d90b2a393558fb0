//! What a command makes that acts by itself is taken out at once, and held until a person says yes. C-15, C-25, C-26.
//!
//! Which names these are is `access/later.rs`. Whether one is there for a moment is `held_watch.rs`.

mod answers;
mod changes;
mod fetched;
mod full;
mod history;
mod links;
mod on_path;
mod ordinary;
mod person;
mod settings;
mod without_host;

use crate::git::{git, repository};
use crate::rig::{BOTH, Rig, Via, program, word};
use file_access::{Acting, LATER};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use toolcrib_tests::client::request;
use toolcrib_tests::shell::{command, declared, waiting, with};
use toolcrib_tests::{PATIENCE, Program, eventually, is_long};

const SHELL: &str = "a shell runs it when somebody enters the directory";
/// Has a command in the background wait until the test writes `go`.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.02; done";

/// The names of the table that are held wherever they lie.
pub(crate) fn names() -> Vec<String> {
    let held = LATER.iter().filter(|later| later.acting != Acting::Builds);
    let is_name = |place: &&&str| !place.starts_with(['~', '/', '$']) && !place.ends_with('$') && **place != "*.git";
    held.flat_map(|later| later.places).filter(is_name).map(|place| place.replace('*', "some")).collect()
}

/// The directory of a path, as a command names it.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(above, _)| above)
}

/// What a file holds, or why it cannot be read.
fn text(rig: &Rig, name: &str) -> String {
    fs::read_to_string(rig.work(name)).unwrap_or_else(|error| format!("({error})"))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// What is held of one file.
fn held_at(rig: &Rig, name: &str) -> Vec<Value> {
    let file = rig.work(name);
    rig.held().into_iter().filter(|held| held["file"] == file.to_str().expect("text")).collect()
}

/// A file that a command made is not there, and the result says how it is kept.
fn assert_held(rig: &Rig, name: &str, notices: &str, about: &str) {
    assert!(!is_there(&rig.work(name)), "{about}: `{name}` is there: {notices}");
    let held = held_at(rig, name);
    let [held] = &held[..] else { panic!("{about}: `{name}` is held {} times: {notices}", held.len()) };
    let id = held["id"].as_str().expect("an id").get(..10).expect("digits");
    let told = format!("toolcrib files held keep {id}` keeps it");
    assert!(notices.contains(&format!("`{name}` was held back")) && notices.contains(&told), "{about}: {notices}");
}

fn assert_nothing_held(rig: &Rig, about: &str) {
    let held = rig.held();
    assert!(held.is_empty(), "{about}: {held:?}");
}

#[test]
fn each_name_of_the_table_is_held() {
    let names = names();
    assert!(names.len() > 60, "{names:?}");
    for via in BOTH {
        let mut rig = Rig::new(via);
        for name in &names {
            let inner = format!("{name}/inner");
            for (made, text) in [
                (name, format!("mkdir -p {}; echo made >{name}", above(name))),
                (&inner, format!("mkdir -p {name}; echo made >{inner}")),
            ] {
                let result = rig.result(&text);
                assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
                assert_held(&rig, made, &result["notices"].to_string(), &format!("{via:?} {text}"));
            }
            rig.run(&format!("rm -rf {}", name.split('/').next().expect("a name")));
        }
        assert_eq!(rig.held().len(), 2 * names.len());
    }
}

/// Gives what it just wrote to a file without a name the name `.envrc`.
const NAMED_LATE: &str = "import os
f = os.open('.', os.O_TMPFILE | os.O_RDWR)
os.write(f, b'made\\n')
os.link(f'/proc/self/fd/{f}', '.envrc', src_dir_fd=f, follow_symlinks=True)";

#[test]
fn each_way_to_a_name_is_held() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        fs::write(rig.work("late.py"), NAMED_LATE).expect("a file");
        for (text, made) in [
            ("ln -s nowhere .envrc", ".envrc"),
            ("ln -s nowhere .vscode", ".vscode"),
            ("mkdir v; echo made >v/tasks.json; ln -s v .vscode", ".vscode"),
            ("echo made >plain; mv plain .envrc", ".envrc"),
            ("echo made >plain; ln plain .envrc", ".envrc"),
            ("echo made >plain; cp -p plain CLAUDE.md", "CLAUDE.md"),
            ("python3 late.py", ".envrc"),
            ("mkdir x; echo made >x/tasks.json; mv x .vscode", ".vscode/tasks.json"),
            ("mkdir -p x/hooks; echo made >x/hooks/a; mv x .github", ".github/hooks/a"),
            ("mkdir -p 1/2/3/4/5/6; echo made >1/2/3/4/5/6/.envrc", "1/2/3/4/5/6/.envrc"),
            ("mkdir -p 1/2/3/4/5/6/.claude/a/b; echo made >1/2/3/4/5/6/.claude/a/b/c", "1/2/3/4/5/6/.claude/a/b/c"),
            ("echo made >.ENVRC", ".ENVRC"),
            ("mkdir .VsCode; echo made >.VsCode/Tasks.json", ".VsCode/Tasks.json"),
            ("mkdir -m 700 sub; cd sub; echo made >agents.md; cd ..", "sub/agents.md"),
            ("mkdir -p vendor/x; echo made >vendor/x/.envrc; mv vendor/x y", "y/.envrc"),
            (
                "mkdir -p node_modules/x/.vscode; echo made >node_modules/x/.vscode/a; mv node_modules y",
                "y/x/.vscode/a",
            ),
            ("(umask 777; echo made >.envrc)", ".envrc"),
            ("mkdir x; echo made >x/tasks.json; chmod 555 x; mv x .zed", ".zed/tasks.json"),
        ] {
            let result = rig.result(text);
            assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
            assert_held(&rig, made, &result["notices"].to_string(), &format!("{via:?} {text}"));
            for held in rig.held() {
                assert!(rig.decide("drop", &held).status.success(), "{held}");
            }
            rig.run("chmod -R u+rwx .; find . -mindepth 1 ! -name late.py -delete");
        }
    }
}

/// A named pipe runs nothing, so it is only told.
#[test]
fn a_named_pipe_is_told() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let notices = rig.notices("mkfifo .envrc");
        assert!(notices.contains(&format!("`.envrc` was created: {SHELL}")), "{via:?} {notices}");
        assert!(is_there(&rig.work(".envrc")));
    }
}

#[test]
fn a_large_file_lies_aside_and_is_put_back() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let large = "head -c 3000000 /dev/zero | tr '\\0' x >a/plain; chmod 750 a/plain; mv a/plain a/.envrc";
        let notices = rig.notices(&format!("mkdir a; {large}"));
        assert_held(&rig, "a/.envrc", &notices, &format!("{via:?}"));
        assert!(rig.decide("keep", &rig.only_held()).status.success());
        let entries = |rig: &Rig| {
            let entries = fs::read_dir(rig.work("a")).expect("a directory").flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        for text in ["true", "true", "cat a/.envrc >/dev/null"] {
            let notices = rig.notices(text);
            assert_eq!(entries(&rig), [".envrc"], "{via:?} {text}: it was kept, and lies beside no more: {notices}");
            assert_nothing_held(&rig, "it was kept");
        }
        let bytes = fs::read(rig.work("a/.envrc")).expect("a file");
        assert!(bytes.len() == 3_000_000 && bytes.iter().all(|byte| *byte == b'x'), "{via:?}");
        assert_eq!(mode(&rig.work("a/.envrc")), 0o750, "{via:?}");
        rig.run("mkdir -p b; head -c 3000000 /dev/zero >b/CLAUDE.md");
        assert!(rig.decide("drop", &rig.only_held()).status.success());
        let left = fs::read_dir(rig.work("b")).expect("a directory").count();
        assert_eq!(left, 0, "{via:?}: what was dropped does not lie beside it any more");
    }
}

/// One that lies aside in a directory that acts as a whole is not taken out again.
#[test]
fn a_large_file_is_held_once_where_all_of_a_directory_acts() {
    let mut rig = Rig::new(Via::Pane);
    rig.run("mkdir .vscode; head -c 3000000 /dev/zero >.vscode/tasks.json");
    rig.run("true");
    assert_eq!(rig.held().len(), 1, "{:?}", rig.held());
    let beside = fs::read_dir(rig.work(".vscode")).expect("a directory").count();
    assert_eq!(beside, 1);
}

/// A command that gets at what lies aside changes nothing of what a person keeps.
#[test]
fn what_lies_aside_is_kept_as_it_was_held() {
    let mut rig = Rig::new(Via::Process);
    rig.run("mkdir a; head -c 3000000 /dev/zero >a/.envrc");
    let held = rig.only_held();
    rig.run("chmod 600 a/.held-*; echo evil >evil; cp evil a/.held-*");
    rig.decide("keep", &held);
    assert_ne!(text(&rig, "a/.envrc"), "evil\n");
}

/// Ordinary commands are not held, and nothing is said of them.
#[test]
fn nothing_is_held_where_nothing_that_acts_was_made() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        rig.run("mkdir -p a/b/c/d");
        for text in [
            "true",
            "ls -laR >list; touch plain; mkdir -p x/y; mv x z; chmod 755 plain; ln plain other; ln -s plain link",
            "echo x >.gitignore; echo x >.env; mkdir -p .github/workflows; echo x >.github/workflows/ci.yml; echo x >Makefile",
            "echo x >envrc; mkdir vscode; echo x >vscode/tasks.json; echo x >claude.txt; echo x >a/b/c/d/code.rs",
        ] {
            let notices = rig.notices(text);
            assert!(!notices.contains("held back") && !notices.contains("created"), "{via:?} {text}: {notices}");
        }
        assert_nothing_held(&rig, "ordinary commands");
    }
}

/// Where programs keep what they install, nothing is held; what there is of it is counted.
#[test]
fn what_lies_among_installed_packages_is_counted() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let text = "for d in node_modules/x lib/site-packages target/debug vendor/y; do mkdir -p $d; echo x >$d/.envrc; echo x >$d/CLAUDE.md; done";
        let notices = rig.notices(text);
        assert!(notices.contains("where programs keep what they install (8)"), "{via:?} {notices}");
        assert_eq!(notices.matches("what they install").count(), 1, "{via:?} {notices}");
        assert_nothing_held(&rig, "installed packages");
        assert!(is_there(&rig.work("node_modules/x/.envrc")));
    }
}

/// It does not wait for the command's end.
#[test]
fn what_acts_is_taken_out_while_the_command_runs() {
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        changes::write_scripts(&rig);
        let until_gone = "while [ -e x/.envrc ]; do sleep 0.01; done";
        let until_back = format!("while ! grep -q 'the person' {DEEP}; do sleep 0.01; done");
        for (text, until) in [
            ("echo made >x/.envrc", until_gone),
            ("echo made >plain; mv plain x/.envrc", until_gone),
            ("touch x/.envrc; python3 open.py x/.envrc made >/dev/null 2>&1 </dev/null & sleep 0.3", until_gone),
            (&format!("echo made >{DEEP}"), &until_back),
            (&format!("echo made >plain; mv plain {DEEP}"), &until_back),
        ] {
            let result = rig.client.within(&format!("mkdir -p x; {text}; {until}"), "20s");
            assert_eq!(result["result"]["exit_code"], 0, "{via:?} {text}: {result}");
        }
    }
}

/// What nobody waits for is taken out all the same; the next command is told.
#[test]
fn what_a_process_in_the_background_makes_is_held() {
    let mut rig = Rig::new(Via::Pane);
    let names = names();
    let lines: String = names.iter().map(|name| format!("mkdir -p {}\necho made >{name}\n", above(name))).collect();
    fs::write(rig.work("later.sh"), lines).expect("a file");
    let notices = rig.notices(&format!("({UNTIL_GO}; sh later.sh; touch gone) & true"));
    assert!(!notices.contains("held back"), "{notices}");
    rig.program.write("work/go", "");
    eventually("it was made", || rig.work("gone").exists());
    eventually("it was taken out", || names.iter().all(|name| !is_there(&rig.work(name))));
    eventually("it is all held", || rig.held().len() == names.len());
    let notices = rig.notices("true");
    // More than twenty are counted.
    let told = names.iter().filter(|name| notices.contains(&format!("`{name}` was held back"))).count();
    let more = names.len() - told;
    assert!(told == 20 && notices.contains(&format!("so it was with {more} more")), "{notices}");
    for name in &names {
        assert_eq!(held_at(&rig, name).len(), 1, "{name}");
    }
    assert!(!rig.notices("true").contains("held back"), "it is told once");
}

/// The same of a call that is not waited for, and of what is typed.
#[test]
fn what_is_dispatched_or_typed_is_held() {
    let mut rig = Rig::new(Via::Pane);
    rig.run("true");
    // By the shell itself: a program that still ends would keep the pane busy.
    rig.client.result("run_shell", with(command("echo made >.mcp.json; : >made"), "wait", false));
    eventually("it was made", || rig.work("made").exists());
    eventually("it was taken out", || !is_there(&rig.work(".mcp.json")));
    let notices = rig.notices("true");
    assert_held(&rig, ".mcp.json", &notices, "dispatched");
    let keys = json!({ "literal_text": "echo made >toolcrib.toml; : >typed", "enter": true });
    rig.client.result("send-keys", declared(keys));
    eventually("it was made", || rig.work("typed").exists());
    eventually("it was taken out", || !is_there(&rig.work("toolcrib.toml")));
    let notices = rig.notices("true");
    assert_held(&rig, "toolcrib.toml", &notices, "typed");
}

/// Also where the command does not come to its end.
#[test]
fn what_a_command_made_that_took_too_long_is_held() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        // The first call of a host makes its cell.
        rig.run("true");
        let answer = rig.client.call("run_shell", waiting("echo made >.envrc; sleep 75", "3s"));
        assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
        assert_held(&rig, ".envrc", &answer["error"]["data"]["notices"].to_string(), &format!("{via:?}"));
    }
}

/// More directories than the kernel is asked about. All of them are looked at all the same.
#[test]
fn what_is_made_beside_very_many_directories_is_held() {
    let mut rig = Rig::new(Via::Process);
    let made = "python3 -c \"import os\nfor i in range(17000): os.mkdir(f'd{i}')\"";
    assert_eq!(rig.run(made).0, 0);
    let notices = rig.notices("for i in 0 1 9000 16000 16500 16900 16999; do echo made >d$i/.envrc; done");
    for number in [0, 1, 9000, 16_000, 16_500, 16_900, 16_999] {
        assert_held(&rig, &format!("d{number}/.envrc"), &notices, "among many");
    }
}

/// As another user than root, the host cannot list a directory of such a mode either.
#[test]
fn what_is_made_in_a_directory_that_cannot_be_listed_is_held() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let text = "mkdir -m 300 closed; echo made >closed/.envrc; touch closed/plain; sleep 0.3; chmod 755 closed";
        let notices = rig.notices(text);
        assert!(is_there(&rig.work("closed/plain")), "{notices}");
        assert_held(&rig, "closed/.envrc", &notices, &format!("{via:?}"));
    }
}

/// A namespace within the cell's makes no difference.
#[test]
fn what_is_made_from_a_namespace_of_its_own_is_held() {
    let mut rig = Rig::new(Via::Pane);
    let inner = format!("{UNTIL_GO}; echo made >.envrc; touch gone");
    rig.run(&format!("(unshare -U -r sh -c {} || sh -c {}) & true", word(&inner), word(&inner)));
    std::thread::sleep(AT_REST);
    rig.program.write("work/go", "");
    eventually("it was made", || rig.work("gone").exists());
    eventually("it was taken out", || !is_there(&rig.work(".envrc")));
    let notices = rig.notices("true");
    assert_held(&rig, ".envrc", &notices, "in a namespace");
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").permissions().mode() & 0o7777
}

/// A file that git has, and one that lies deep: neither is covered in a cell, so that git can check them out.
const TRACKED: &str = ".vscode/settings.json";
const DEEP: &str = "a/b/.envrc";
const BEFORE: &str = "the person's, which is not short\n";

/// A repository with files of the person's that act.
fn persons(via: Via) -> Program {
    let program = repository(via);
    for (name, mode) in [(TRACKED, 0o644), (DEEP, 0o640)] {
        program.write(&format!("work/{name}"), BEFORE);
        fs::set_permissions(program.path(&format!("work/{name}")), Permissions::from_mode(mode)).expect("a mode");
    }
    program.write("work/.gitignore", "/*\n!/.vscode\n!/f\n");
    let work = program.path("work");
    git(&work, &["add", "-f", TRACKED]);
    git(&work, &["commit", "-q", "-m", "settings"]);
    program
}

/// After this time a pane that waits at its prompt has come to rest.
const AT_REST: Duration = Duration::from_secs(2);

/// Settings of git name what it runs and obeys besides: hooks, and settings that are included.
#[test]
fn what_settings_of_git_name_is_held() {
    for via in BOTH {
        let program = repository(via);
        let work = program.path("work");
        program.write("work/scripts/hooks/pre-commit", "#!/bin/sh\n");
        git(&work, &["config", "core.hooksPath", "scripts/hooks"]);
        git(&work, &["config", "include.path", "../team.gitconfig"]);
        let mut rig = Rig::of(program, &[]);
        for name in ["scripts/hooks/pre-push", "team.gitconfig"] {
            let notices = rig.notices(&format!("echo made >{name}"));
            assert_held(&rig, name, &notices, &format!("{via:?}"));
        }
        let notices = rig.notices("echo made >>scripts/hooks/pre-commit");
        assert_eq!(text(&rig, "scripts/hooks/pre-commit"), "#!/bin/sh\n", "{via:?}: {notices}");
        assert_eq!(held_at(&rig, "scripts/hooks/pre-commit").len(), 1, "{via:?}: {notices}");
    }
}

/// A host that is killed while it takes files out loses none: each is where it was, is held, or lies beside its place.
#[test]
fn a_host_that_is_killed_loses_nothing_that_it_takes_out() {
    let rounds = if is_long() { 30 } else { 6 };
    let mut program = program(Via::Process);
    for round in 0..rounds {
        let mut rig = Rig::of(program, &[]);
        rig.run("true");
        let text = format!(
            "mkdir {round}; cd {round}; i=0; while [ $i -lt 400 ]; do mkdir $i; echo made-{round}-$i- >$i/plain; mv $i/plain $i/.envrc; \
             echo $i >>made; i=$((i+1)); done"
        );
        rig.client.write(request(1, "run_shell", &command(&text)));
        let made = rig.work(&format!("{round}/made"));
        eventually("it makes some", || fs::read_to_string(&made).is_ok_and(|made| made.lines().count() > 5));
        let share = RandomState::new().hash_one(round) as f64 / u64::MAX as f64;
        std::thread::sleep(Duration::from_millis(100).mul_f64(share));
        rig.client.kill();
        rig.client.ended(PATIENCE).expect("it has ended");
        let held: String = rig.held().iter().map(|held| held["text"].to_string()).collect();
        let made = fs::read_to_string(&made).expect("what was made");
        for number in made.lines() {
            let mark = format!("made-{round}-{number}-");
            let directory = fs::read_dir(rig.work(&format!("{round}/{number}"))).expect("a directory");
            let mut texts = directory.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
            assert!(held.contains(&mark) || texts.any(|text| text.contains(&mark)), "{mark} of {} is lost", made.len());
        }
        println!("round {round}: {} made, {} held", made.lines().count(), rig.held().len());
        for held in rig.held() {
            rig.decide("drop", &held);
        }
        program = rig.program;
    }
}
