//! What links lead to: who obeys a link obeys that, and a link into a directory that is passed over makes an ordinary place of what is there.

use super::{AT_REST, BEFORE, UNTIL_GO, assert_held, assert_nothing_held, held_at, is_there, text};
use crate::git::{git, repository};
use crate::rig::{BOTH, Rig, Via, program};
use std::fs;
use std::os::unix::fs::symlink;
use toolcrib_tests::eventually;

/// Each makes something with `made` in it that acts at the second path, and lies at the third.
const WAYS: [(&str, &str, &str); 12] = [
    (
        "mkdir -p node_modules/x; echo made >node_modules/x/.envrc; ln -s node_modules/x sub",
        "sub/.envrc",
        "node_modules/x/.envrc",
    ),
    ("mkdir -p target/x; ln -s target/x sub; echo made >target/x/.envrc", "sub/.envrc", "target/x/.envrc"),
    ("ln -s target/x sub; mkdir -p target/x; echo made >target/x/.envrc", "sub/.envrc", "target/x/.envrc"),
    ("mkdir -p vendor; ln -s vendor sub; echo made >vendor/.envrc", "sub/.envrc", "vendor/.envrc"),
    (
        "mkdir -p target/x/a/b/.vscode; ln -s $PWD/target/x target/l; mv target/l sub; echo made >target/x/a/b/.vscode/a",
        "sub/a/b/.vscode/a",
        "target/x/a/b/.vscode/a",
    ),
    (
        "mkdir -p target vendor/y; ln -s ../vendor target/l; ln -s target/l/y sub; echo made >vendor/y/.envrc",
        "sub/.envrc",
        "vendor/y/.envrc",
    ),
    (
        "mkdir -p target/x target/y; ln -s x target/l; ln -s target/l sub; echo made >target/y/.envrc; ln -sfn y target/l",
        "sub/.envrc",
        "target/y/.envrc",
    ),
    (
        "mkdir -p target/a/x vendor/b/x; ln -s target/a/x sub; echo made >vendor/b/x/.envrc; mv target/a old; ln -s ../vendor/b target/a",
        "sub/.envrc",
        "vendor/b/x/.envrc",
    ),
    (
        "mkdir -p target/a/x vendor/b/x; ln -s target/a/x sub; echo made >vendor/b/x/.envrc; mv target/a old; mv vendor/b target/a",
        "sub/.envrc",
        "target/a/x/.envrc",
    ),
    (
        "mkdir -p target/x node_modules/z; ln -s target/x sub; ln -s ../../node_modules/z target/x/z; echo made >node_modules/z/.envrc",
        "sub/z/.envrc",
        "node_modules/z/.envrc",
    ),
    (
        "mkdir -p target/d node_modules/x; ln -s $PWD/node_modules/x target/d/s; echo made >node_modules/x/.envrc; mv target/d d",
        "d/s/.envrc",
        "node_modules/x/.envrc",
    ),
    (
        "ln -s p/../x sub; mkdir -p target/y/z target/y/x; echo made >target/y/x/.envrc; ln -s target/y/z p",
        "sub/.envrc",
        "target/y/x/.envrc",
    ),
];

/// The same, moved to an ordinary place.
const MOVES: [(&str, &str); 5] = [
    ("mkdir -p target/a; echo made >target/a/.envrc; mv target/a a", "a/.envrc"),
    ("mkdir -p p/target/a/.vscode; echo made >p/target/a/.vscode/b; mv p/target q; mv q r", "r/a/.vscode/b"),
    ("mkdir -p target/a; mv target/a a; echo made >a/.envrc", "a/.envrc"),
    ("mkdir a; mkdir target; mv a target/a; echo made >target/a/.envrc; mv target/a b", "b/.envrc"),
    ("mkdir -p target/a/b; echo made >target/a/b/.envrc; mv target/a/b target/c; mv target d", "d/c/.envrc"),
];

#[test]
fn what_a_link_leads_to_among_installed_packages_is_held() {
    for via in BOTH {
        for (way, at, lies) in WAYS {
            let mut rig = Rig::new(via);
            let result = rig.result(way);
            assert!(!is_there(&rig.work(at)), "{via:?} {way}: {result}");
            assert_held(&rig, lies, &result["notices"].to_string(), &format!("{via:?} {way}"));
            // The link is known from then on.
            let later = rig.result(&format!("echo again >{at}"));
            assert!(!is_there(&rig.work(at)) && held_at(&rig, lies).len() == 2, "{via:?} {way}: {later}");
        }
    }
}

#[test]
fn what_a_link_leads_to_is_held_step_by_step() {
    for via in BOTH {
        for (way, at, lies) in WAYS {
            let mut rig = Rig::new(via);
            for step in way.split("; ") {
                rig.run(step);
            }
            assert!(!is_there(&rig.work(at)) && held_at(&rig, lies).len() == 1, "{via:?} {way}");
        }
    }
}

#[test]
fn what_a_process_in_the_background_links_or_moves_is_held() {
    let links = WAYS.map(|(way, at, _)| (way, at));
    for (way, at) in links.into_iter().chain(MOVES) {
        let mut rig = Rig::new(Via::Pane);
        rig.run(&format!("({UNTIL_GO}; {way}; touch gone) & true"));
        rig.program.write("work/go", "");
        eventually("it was made", || rig.work("gone").exists());
        eventually(way, || !is_there(&rig.work(at)) && rig.held().len() == 1);
    }
}

#[test]
fn what_is_moved_out_from_among_installed_packages_is_held() {
    for via in BOTH {
        for (way, lies) in MOVES {
            let mut rig = Rig::new(via);
            let notices = rig.notices(way);
            assert_held(&rig, lies, &notices, &format!("{via:?} {way}"));
            let mut rig = Rig::new(via);
            for step in way.split("; ") {
                rig.run(step);
            }
            assert!(!is_there(&rig.work(lies)) && rig.held().len() == 1, "{via:?} {way}: {:?}", rig.held());
        }
    }
}

/// A link of the person's that was there before counts as well, and what the person has there is theirs.
#[test]
fn what_a_link_of_the_persons_leads_to_is_put_back() {
    for via in BOTH {
        let program = program(via);
        program.write("work/node_modules/x/.envrc", BEFORE);
        symlink("node_modules/x", program.path("work/sub")).expect("a link");
        let mut rig = Rig::of(program, &[]);
        rig.run("true");
        assert_eq!(text(&rig, "sub/.envrc"), BEFORE);
        let notices = rig.notices("echo made >node_modules/x/.envrc; echo made >sub/.mcp.json");
        assert_eq!(text(&rig, "sub/.envrc"), BEFORE, "{via:?} {notices}");
        assert_held(&rig, "node_modules/x/.mcp.json", &notices, &format!("{via:?}"));
        assert_eq!(held_at(&rig, "node_modules/x/.envrc").len(), 1, "{via:?} {notices}");
    }
}

/// Links of a person's that act, what they lead to in the end, and ways to change that; the last three lead to nothing yet.
const LINKS: [(&str, &str, &str); 7] = [
    (".envrc", "env.sh", "env.sh"),
    ("a/.envrc", "../scripts/env.sh", "scripts/env.sh"),
    (".vscode", "conf/code", "conf/code/tasks.json"),
    (".mcp.json", "now/mcp.json", "conf/one/mcp.json"),
    (".zed", "target/zed", "target/zed/tasks.json"),
    (".gdbinit", "later.gdb", "later.gdb"),
    (".claude", "vendor/claude", "vendor/claude/settings.json"),
];

fn links(via: Via) -> Rig {
    let program = repository(via);
    let work = program.path("work");
    fs::create_dir(work.join("a")).expect("a directory");
    for (link, to, file) in LINKS {
        symlink(to, work.join(link)).expect("a link");
        if !["later.gdb", "vendor/claude/settings.json"].contains(&file) {
            program.write(&format!("work/{file}"), BEFORE);
        }
    }
    symlink("conf/one", work.join("now")).expect("a link");
    git(&work, &["add", "-f", "."]);
    git(&work, &["commit", "-q", "-m", "links"]);
    Rig::of(program, &[])
}

/// Who obeys the link obeys the file.
#[test]
fn what_a_link_that_acts_leads_to_is_put_back() {
    for via in BOTH {
        let mut rig = links(via);
        for (_, _, file) in LINKS {
            let is_new = !is_there(&rig.work(file));
            let notices = rig.notices(&format!("mkdir -p $(dirname {file}); echo made >{file}"));
            if is_new {
                assert_held(&rig, file, &notices, &format!("{via:?}"));
            } else {
                assert_eq!(text(&rig, file), BEFORE, "{via:?} {file}: {notices}");
                assert_eq!(held_at(&rig, file).len(), 1, "{via:?} {file}: {notices}");
            }
        }
        // What lies on the way counts as well.
        let notices = rig.notices("mkdir conf/two; echo made >conf/two/mcp.json; ln -sfn conf/two now");
        assert_eq!(text(&rig, ".mcp.json"), BEFORE, "{via:?} {notices}");
        let notices = rig.notices("mv scripts moved; mkdir evil; echo made >evil/env.sh; ln -s evil scripts");
        assert_ne!(text(&rig, "a/.envrc"), "made\n", "{via:?} {notices}");
    }
}

#[test]
fn what_a_process_in_the_background_writes_behind_a_link_that_acts_is_put_back() {
    for (_, _, file) in LINKS {
        let mut rig = links(Via::Pane);
        let is_new = !is_there(&rig.work(file));
        rig.run(&format!("({UNTIL_GO}; mkdir -p $(dirname {file}); echo made >{file}; touch gone) & true"));
        rig.program.write("work/go", "");
        eventually("it was written", || rig.work("gone").exists());
        eventually(file, || {
            held_at(&rig, file).len() == 1
                && if is_new { !is_there(&rig.work(file)) } else { text(&rig, file) == BEFORE }
        });
    }
}

/// Links that a command may make: nothing is held where nothing acts.
#[test]
fn ordinary_links_are_let_be() {
    for via in BOTH {
        let program = program(via);
        program.write("work/CLAUDE.md", BEFORE);
        program.write("work/docs/AGENTS.md", BEFORE);
        symlink("../docs", program.path("work/.claude")).expect("a link");
        let mut rig = Rig::of(program, &[]);
        for text in [
            "mkdir -p target/doc node_modules/x; echo x >target/doc/index.html; ln -s target/doc doc; ln -s node_modules/x x",
            "ln -s nowhere n; ln -s /etc etc; ln -s . loop; ln -s loop2 loop2; mkdir -p d/e; ln -s ../.. d/e/up; echo x >d/e/up/plain",
            "ln -s ../docs d/docs; echo x >docs/plain; rm n etc loop loop2; mkdir n; echo x >n/plain",
        ] {
            let result = rig.result(text);
            assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
            assert!(!result["notices"].to_string().contains("held back"), "{via:?} {text}: {result}");
        }
        assert_nothing_held(&rig, "ordinary links");
    }
}

/// What the person writes behind a link that acts is the person's.
#[test]
fn what_the_person_writes_behind_a_link_is_not_touched() {
    for via in BOTH {
        let mut rig = links(via);
        rig.run("true");
        std::thread::sleep(AT_REST);
        for (_, _, file) in LINKS {
            rig.program.write(&format!("work/{file}"), "the person's own\n");
        }
        let notices = rig.notices("true");
        for (_, _, file) in LINKS {
            assert_eq!(text(&rig, file), "the person's own\n", "{via:?} {file}: {notices}");
        }
        assert_nothing_held(&rig, &notices);
    }
}

/// Hooks lie where settings of git say, also among installed packages.
#[test]
fn hooks_among_installed_packages_are_held() {
    for via in BOTH {
        let program = repository(via);
        git(&program.path("work"), &["config", "core.hooksPath", "vendor/hooks"]);
        program.write("work/vendor/hooks/pre-commit", "#!/bin/sh\n");
        let mut rig = Rig::of(program, &[]);
        let notices = rig.notices("echo made >vendor/hooks/pre-push; echo made >>vendor/hooks/pre-commit");
        assert_held(&rig, "vendor/hooks/pre-push", &notices, &format!("{via:?}"));
        assert_eq!(text(&rig, "vendor/hooks/pre-commit"), "#!/bin/sh\n", "{via:?} {notices}");
    }
}
