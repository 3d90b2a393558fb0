//! F-18: a tool writes what some program runs or obeys later, unasked: start files, hooks, tasks of editors, settings of agents.
//! Outcome: each such place asks, whatever the workspace; with nobody to ask it is `denied`, and nothing appears.
//! Switched off: the table of what runs later (`access/lib.rs`, `reason`): everything in the workspace was written and the tests failed.

use crate::files::{DENIED, root, tree};
use file_access::LATER;
use serde_json::{Value, json};
use std::path::PathBuf;
use toolcrib_tests::{Preparation, Program, Siege};

/// Every place of the table in this home or working directory, as a file and as a directory with a file.
fn places(prepared: &Preparation) -> Vec<String> {
    let base = root(prepared);
    let mut paths = Vec::new();
    for (number, place) in LATER.iter().flat_map(|later| later.places).enumerate() {
        let (place, is_own_name) = place.strip_suffix('$').map_or((*place, false), |own| (own, true));
        let (directory, path) = match place.strip_prefix("~/") {
            Some(below) => (base.join("home"), format!("~/{}", below.replace('*', &format!("planted{number}")))),
            None if place.starts_with(['/', '$']) => continue,
            None => (base.join("work"), format!("{number}/{}", place.replace('*', "planted"))),
        };
        let made: PathBuf = directory.join(path.trim_start_matches("~/"));
        std::fs::create_dir_all(made.parent().expect("a directory")).expect("a directory");
        paths.push(path.clone());
        // Beside it, the same as a directory: one name cannot be both.
        let below = if is_own_name || path.starts_with('~') { continue } else { format!("d{path}") };
        std::fs::create_dir_all(directory.join(&below)).expect("a directory");
        paths.push(format!("{below}/planted"));
    }
    paths
}

fn write(siege: &mut Siege, path: &str) -> Value {
    siege.call("write_file", json!({ "path": path, "content": "planted" }))
}

#[test]
fn no_place_of_the_table_is_written_without_a_person() {
    let prepared = Preparation::new().guest("hostile").allowing("hostile");
    let paths = places(&prepared);
    assert!(paths.len() > 200, "{} places", paths.len());
    let mut siege = prepared.begin();
    let before = [tree(&siege.program.path("home")), tree(&siege.program.path("work"))];
    for path in &paths {
        let answer = write(&mut siege, path);
        assert_eq!(answer["error"]["kind"], "denied", "{path}: {answer}");
        let hint = answer["error"]["hint"].as_str().unwrap_or_default();
        // Start files and credentials are closed besides.
        let is_closed = hint.contains("files_allowed_paths");
        assert!(is_closed || hint.contains("files_confirm = \"never\""), "{path}: {answer}");
        assert_eq!(crate::files::write(&mut siege, path), DENIED, "{path}");
    }
    assert_eq!([tree(&siege.program.path("home")), tree(&siege.program.path("work"))], before);
    siege.lift();
}

/// A row that is missing from the table is missing from the test above, too.
#[test]
fn what_is_known_to_run_later_is_in_the_table() {
    let preparation = Preparation::new();
    // What is a repository from the beginning has a gate from then on.
    std::fs::create_dir_all(preparation.work(".git")).expect("a directory");
    let mut siege = preparation.begin();
    for path in [
        "~/.bashrc",
        "~/.config/autostart/x.desktop",
        "~/.ssh/rc",
        "~/bin/ls",
        ".git/hooks/pre-commit",
        ".git/config",
        ".husky/pre-commit",
        ".envrc",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".claude/settings.json",
        "AGENTS.md",
        "CLAUDE.md",
        ".mcp.json",
        "toolcrib.toml",
        "x.pth",
        ".cargo/config.toml",
    ] {
        let place = match path.strip_prefix("~/") {
            Some(below) => siege.program.path("home").join(below),
            None => siege.program.path("work").join(path),
        };
        std::fs::create_dir_all(place.parent().expect("a directory")).expect("a directory");
        let answer = write(&mut siege, path);
        assert_eq!(answer["error"]["kind"], "denied", "{path}: {answer}");
    }
    siege.lift();
}

#[test]
fn only_the_question_stands_before_them() {
    let prepared = Preparation::new().set("tools.files_confirm=never");
    let mut siege = prepared.begin();
    for path in [".envrc", "~/.planted", "AGENTS.md", "../outside-of-it"] {
        assert_eq!(write(&mut siege, path)["result"], format!("Wrote 7 bytes to {path}"));
    }
    siege.lift();
}

#[test]
fn ordinary_files_of_the_workspace_are_written_and_others_are_asked() {
    let mut siege = Preparation::new().begin();
    siege.program.write("work/src/lib.rs", "");
    siege.program.write("work/.github/workflows/ci.yml", "");
    for path in ["new", "src/lib.rs", "Makefile", ".gitignore", ".github/workflows/ci.yml"] {
        assert!(write(&mut siege, path)["result"].is_string(), "{path}");
    }
    for path in ["~/new", "../new"] {
        let answer = write(&mut siege, path);
        assert_eq!(answer["error"]["kind"], "denied", "{path}");
        assert_eq!(answer["error"]["hint"], "pass `--yes`, or set `files_confirm = \"runs-later\"` under [tools]");
    }
    assert!(!siege.program.path("home/new").exists() && !siege.program.path("new").exists());
    siege.lift();
}

/// The link is obeyed under its own name.
#[test]
fn a_link_from_such_a_place_makes_no_harmless_file_of_it() {
    let mut siege = Preparation::new().begin();
    siege.program.write("work/settings", "{}");
    assert_eq!(
        crate::exec::run(&mut siege, "mkdir .vscode && ln -s ../settings .vscode/settings.json")["exit_code"],
        0
    );
    let answer = write(&mut siege, ".vscode/settings.json");
    assert_eq!(answer["error"]["kind"], "denied", "{answer}");
    siege.lift();
}

#[test]
fn a_repository_around_the_working_directory_is_the_workspace() {
    let program = Program::new();
    program.write("repository/.git/HEAD", "ref: refs/heads/main\n");
    program.write("repository/sub/deep/file", "");
    let call = |path: &str| {
        let arguments = json!({ "path": path, "content": "x" }).to_string();
        let mut command = program.command(&["call", "write_file", &arguments]);
        let output = command.current_dir(program.path("repository/sub/deep")).output().expect("it runs");
        output.status.code().expect("an exit code")
    };
    assert_eq!(["../../new", "new", "../../../new", "../../.git/config"].map(call), [0, 0, 5, 5]);
    assert!(program.path("repository/new").exists() && !program.path("new").exists());
}

#[test]
fn programs_on_path_are_asked_about() {
    let program = Program::new();
    program.write("work/tools/ls", "#!/bin/sh\n");
    program.write("work/other/ls", "#!/bin/sh\n");
    let path = std::env::var("PATH").expect("a PATH");
    let call = |file: &str| {
        let arguments = json!({ "path": file, "content": "x" }).to_string();
        let mut command = program.command(&["call", "write_file", &arguments]);
        // Also where it is relative to where a command starts.
        let output = command.env("PATH", format!("tools:{path}")).output().expect("it runs");
        output.status.code().expect("an exit code")
    };
    assert_eq!(["tools/ls", "tools/new", "other/ls"].map(call), [5, 5, 0]);
}
