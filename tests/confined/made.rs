//! What a command makes that runs or is obeyed later could not be protected: the result says so. C-15, C-25, C-26.

use crate::rig::{BOTH, Rig, Via};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::eventually;
use toolcrib_tests::shell::{command, declared, waiting, with};

const SHELL: &str = "a shell runs it when somebody enters the directory";
const GIT: &str = "git runs hooks, and programs that its settings name";

#[test]
fn what_runs_later_is_told_when_it_is_made() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        for (text, told) in [
            ("echo x >.envrc", format!("`.envrc` was created: {SHELL}")),
            ("mkdir -p a/b && echo x >a/b/.envrc", format!("`a/b/.envrc` was created: {SHELL}")),
            ("echo y >>a/b/.envrc", "`a/b/.envrc` was ".into()),
            ("mkdir .vscode && echo {} >.vscode/tasks.json", "`.vscode` was created: editors run".into()),
            ("echo {} >.mcp.json", "`.mcp.json` was created: agents start".into()),
            ("ln -s nowhere toolcrib.toml", "`toolcrib.toml` was created: agents".into()),
            ("git init -q nested", format!("`nested/.git` was created: {GIT}")),
            ("echo x >nested/.git/hooks/post-commit", "`nested/.git/hooks".into()),
            ("git -C nested config core.pager x", "`nested/.git".into()),
            ("mv nested/.git nested/git && cp -r nested/git nested/.git", format!("`nested/.git` was created: {GIT}")),
            ("mkdir linked && echo gitdir: ../nested/git >linked/.git", format!("`linked/.git` was created: {GIT}")),
            // It is as old as ever.
            ("mkdir -p deep/1/2 && git init -q deep/1/2/3", String::new()),
            ("rm -r nested/.git && mv deep/1/2/3/.git nested/.git && touch nested/.git/x", "`nested/.git` was ".into()),
        ] {
            let result = rig.result(text);
            let notices = result["notices"].to_string();
            assert_eq!(result["exit_code"], 0, "{via:?} {text}: {result}");
            assert!(notices.contains(&told), "{via:?} {text}: {notices}");
            let signs = [" was created: ", " moved there: "];
            let count: usize = signs.iter().map(|sign| notices.matches(sign).count()).sum();
            assert_eq!(count, usize::from(!told.is_empty()), "{via:?} {text}: {notices}");
        }
    }
}

/// A command cannot make a setuid file in its cell (`setuid.rs`); one that was let out, or another program, can.
#[test]
fn a_setuid_file_of_another_program_is_told() {
    let mut rig = Rig::new(Via::Pane);
    rig.run("mkdir a");
    for name in ["own", "a/own"] {
        rig.program.write(&format!("work/{name}"), "#!/bin/sh\n");
        fs::set_permissions(rig.work(name), Permissions::from_mode(0o4755)).expect("a mode");
        let told = format!("`{name}` is setuid or setgid now: whoever runs it gets the rights");
        let notices = rig.notices("true");
        assert!(notices.contains(&told), "{notices}");
    }
}

#[test]
fn nothing_is_told_where_nothing_was_made() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m x";
        rig.run("echo x >.envrc; git init -q nested; mkdir -p a/b/c/d node_modules/x");
        for text in [
            "true",
            "cat .envrc; ls -laR >list; touch plain; mkdir -p x/y; mv x z; chmod 755 plain",
            &format!("cd nested && touch f && git add f && {commit} && git checkout -q -b other && {commit} && cd .."),
            // Nobody works there, or enters it.
            "echo x >node_modules/x/.envrc; echo x >a/b/c/d/.envrc",
            "mv nested moved",
        ] {
            // Files are stamped in ticks of some milliseconds: what changed in the one in which a look begins is taken for newer.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let notices = rig.notices(text);
            assert!(!notices.contains("created") && !notices.contains("moved there"), "{via:?} {text}: {notices}");
        }
        let notices = rig.notices("for i in 1 2 3 4 5; do mkdir d$i; echo x >d$i/.envrc; done");
        assert!(notices.matches(SHELL).count() == 3 && notices.contains("2 more were made"), "{via:?} {notices}");
    }
}

/// What nobody waits for is told by the next command.
#[test]
fn what_is_made_meanwhile_is_told_by_the_next() {
    let mut rig = Rig::new(Via::Pane);
    rig.run("true");
    let left = "(while [ ! -e go ]; do sleep 0.02; done; echo x >.envrc; touch gone) & true";
    let notices = rig.notices(left);
    assert!(!notices.contains(".envrc"), "{notices}");
    rig.program.write("work/go", "");
    eventually("it was made", || rig.work("gone").exists());
    assert!(rig.notices("true").contains("`.envrc` was created"));
    assert!(!rig.notices("true").contains(".envrc"));
    let dispatched = with(command("echo x >.mcp.json; touch made"), "wait", false);
    rig.client.result("run_shell", dispatched);
    eventually("it was made", || rig.work("made").exists());
    assert!(rig.notices("true").contains("`.mcp.json` was created"));
    let keys = json!({ "literal_text": "echo x >toolcrib.toml; touch typed", "enter": true });
    rig.client.result("send-keys", declared(keys));
    eventually("it was made", || rig.work("typed").exists());
    assert!(rig.notices("true").contains("`toolcrib.toml` was created"));
}

/// Also where the command does not come to its end.
#[test]
fn what_a_command_made_that_took_too_long_is_told() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        // The first call of a host makes its cell.
        rig.run("true");
        let answer = rig.client.call("run_shell", waiting("echo x >.envrc; sleep 75", "3s"));
        assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
        assert!(answer["error"]["data"]["notices"].to_string().contains("`.envrc` was created"), "{via:?} {answer}");
    }
}
