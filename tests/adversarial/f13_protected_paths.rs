//! F-13: a tool replaces what nobody may replace: settings, policy, plugins, keys, files that run at login, by any of their names.
//! Outcome: `denied`; replacing is renaming over, and that asks only the directory, so the path decides.
//! Switched off: the refusal of Toolcrib's own paths (`access/lib.rs`, `admit_write`): the first and the last test failed.

use crate::exec::run;
use crate::files::{root, tree};
use serde_json::json;
use std::os::unix::fs::symlink;
use toolcrib_tests::{Preparation, Program, Siege};

fn write(siege: &mut Siege, path: &str) -> String {
    let answer = siege.call("write_file", json!({ "path": path, "content": "planted" }));
    answer["error"]["kind"].as_str().unwrap_or("written").to_owned()
}

#[test]
fn a_protected_path_is_not_replaced_under_any_of_its_names() {
    // Nobody is asked: what refuses is the path alone.
    let prepared = Preparation::new().without_settings().set("tools.files_confirm=never");
    let base = root(&prepared);
    // What a person keeps elsewhere and links to is protected there too.
    std::fs::create_dir(base.join("home/dotfiles")).expect("a directory");
    std::fs::write(base.join("home/dotfiles/bashrc"), "").expect("a file");
    symlink("dotfiles/bashrc", base.join("home/.bashrc")).expect("a link");
    std::fs::create_dir_all(base.join("home/vault/ssh")).expect("a directory");
    symlink("vault/ssh", base.join("home/.ssh")).expect("a link");
    for name in [".aws", ".gnupg", ".kube", ".docker"] {
        std::fs::create_dir(base.join("home").join(name)).expect("a directory");
    }
    std::fs::create_dir_all(base.join("data/toolcrib/plugins")).expect("a directory");
    let mut siege = prepared.begin();
    let (before, base) = (tree(&base.join("home")), base.display().to_string());
    for path in [
        "~/.bashrc",
        "~/dotfiles/bashrc",
        "~/dotfiles/../.bashrc",
        "~/.profile",
        "~/.zshenv",
        "~/.ssh",
        "~/.ssh/config",
        "~/vault/ssh/authorized_keys",
        "~/.ssh/../../vault/ssh/new",
        "~/.aws/credentials",
        "~/.gnupg/gpg.conf",
        "~/.kube/config",
        "~/.docker/config.json",
        "../home/.bash_login",
        "../config/toolcrib",
        "../config/toolcrib/toolcrib.toml",
        "../config/../config/./toolcrib//toolcrib.toml",
        "../state/toolcrib/audit.jsonl",
        "../state/toolcrib/code.key",
        "../state/toolcrib/trusted.toml",
        "../data/toolcrib/plugins/new.wasm",
        // None of these directories is there: should one be let through, the test does this machine no harm.
        "/etc/no-such-directory/policy.toml",
        "/usr/local/no-such-directory/ls",
        "/bin/no-such-directory/sh",
        "/var/spool/cron/no-such-directory/root",
        &format!("{base}/config/toolcrib/toolcrib.toml"),
    ] {
        assert_eq!(write(&mut siege, path), "denied", "{path}");
    }
    assert_eq!(tree(&siege.program.path("home")), before);
    assert!(!siege.program.path("config/toolcrib/toolcrib.toml").exists());
    assert_eq!(write(&mut siege, "~/ordinary"), "written");
    siege.lift();
}

#[test]
fn a_protected_directory_that_was_moved_away_does_not_open_the_place_where_it_stood() {
    let mut siege = Preparation::new().set("confine.mode=off").set("tools.files_confirm=never").begin();
    siege.program.write("home/.ssh/id", "a key");
    assert_eq!(run(&mut siege, "mv ~/.ssh ~/moved && touch ~/.bashrc && mv ~/.bashrc ~/rc")["exit_code"], 0);
    for path in ["~/.ssh", "~/.ssh/id", "~/.bashrc"] {
        let outcome = write(&mut siege, path);
        assert_ne!(outcome, "written", "{path}");
    }
    siege.lift();
}

/// The user's settings, wherever they lie: who replaces them grants themselves everything at the next start.
#[test]
fn settings_that_were_named_on_the_command_line_are_no_tools_to_replace() {
    let program = Program::new();
    program.write("work/mine.toml", "[agent]\nname = \"mine\"\n");
    program.write("work/policy.toml", "[tools]\nshell_denylist = [\"reboot\"]\n");
    let flags = ["--config", "mine.toml", "--policy", "policy.toml"];
    for file in ["mine.toml", "policy.toml", "./mine.toml", "../work/policy.toml"] {
        let arguments = json!({ "path": file, "content": "planted" }).to_string();
        let output = program.run(&[&flags[..], &["call", "write_file", &arguments]].concat());
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(stdout.contains("\"denied\""), "{file}: {stdout}");
    }
}
