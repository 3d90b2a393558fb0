//! What a search of many files takes, beside `rg` on the same tree.

use crate::{asking, quantile, quiet, ratio, row, served, time};
use serde_json::{Value, json};
use std::fs::{create_dir_all, write};
use std::path::Path;
use std::process::Command;
use toolcrib_tests::Program;

const FILES: usize = 80_000;
const EACH: usize = 20;
/// Runs in turn.
const TURNS: usize = 9;

/// A tree as of source: directories of 20 files of 1 to 6 KiB, 5 levels deep, with ignore files.
pub(crate) fn make(root: &Path, files: usize) {
    let line =
        |at: usize| format!("    let value_{at} = compute({}, \"text {}\"); // line {at}\n", at * 7919 % 1000, at % 97);
    let lines: Vec<String> = (0..1000).map(line).collect();
    for directory in 0..files / EACH {
        let path = root.join(format!("{}/{}/{}/d{directory}", directory % 8, directory / 8 % 10, directory / 80 % 10));
        create_dir_all(&path).expect("a directory");
        for file in 0..EACH {
            let number = directory * EACH + file;
            let from = number * 31 % 900;
            let mut text = lines[from..from + 15 + number % 85].concat();
            if number % 4000 == 17 {
                text += "the needle is here\n";
            }
            let end = ["rs", "py", "md", "toml"][file % 4];
            write(path.join(format!("f{file}.{end}")), text).expect("a file");
        }
        if directory % 10 == 0 {
            write(path.join(".gitignore"), "*.tmp\n/out/\n").expect("rules");
        }
    }
    create_dir_all(root.join(".git")).expect("a directory");
    write(root.join(".gitignore"), "target/\n*.log\n").expect("rules");
}

pub(crate) fn search() {
    if !Command::new("rg").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return row("a search of 80,000 files", "<= 1.3 x `rg`", "not measured: no `rg`", "", "");
    }
    let program = Program::below(Path::new("/var/tmp"));
    quiet(&mut program.command(&["tools"]));
    let root = program.path("work");
    make(&root, FILES);
    let mut running = served(&program, &["--offer", "files"]);
    let mut turns = |tool: &str, arguments: Value, flags: &[&str], expected: usize| {
        let line = asking(tool, &arguments);
        let mut ours = || {
            running.write(&line);
            let answer = running.line();
            let text = answer["result"]["structuredContent"].to_string() + &answer["result"]["content"].to_string();
            assert!(answer["result"]["isError"] == false, "{answer}");
            assert!(expected == 0 || text.contains(&format!("{expected} match")) || tool == "file_find", "{text}");
        };
        let bare = || {
            let mut rg = Command::new("rg");
            let output = rg.arg("--no-config").args(flags).current_dir(&root).output().expect("rg starts");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        };
        ours();
        bare();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            one.extend(time(1, &mut ours));
            other.extend(time(1, bare));
        }
        one.sort();
        other.sort();
        (quantile(&one, 50), quantile(&other, 50))
    };
    let expected = (0..FILES).filter(|number| number % 4000 == 17).count();
    for (what, target, tool, arguments, flags) in [
        (
            "a text in 80,000 files, warm",
            "<= 1.3 x `rg`",
            "file_search",
            json!({ "pattern": "the needle", "literal": true }),
            &["-nF", "the needle"][..],
        ),
        (
            "an expression in them",
            "<= 1.3 x `rg`",
            "file_search",
            json!({ "pattern": r"ne+dle\s+is\s\w+$" }),
            &["-n", r"ne+dle\s+is\s\w+$"],
        ),
        (
            "one that is in no file",
            "<= 1.3 x `rg`",
            "file_search",
            json!({ "pattern": "no such text" }),
            &["-n", "no such text"],
        ),
        ("the first 100 of many matches", "", "file_search", json!({ "pattern": "value_5" }), &["-n", "value_5"]),
        (
            "names of files by a glob",
            "<= 1.3 x `rg --files`",
            "file_find",
            json!({ "pattern": "f17.p*" , "limit": 2000 }),
            &["--files", "-g", "f17.p*"],
        ),
        (
            "names, of which the first 200 are shown",
            "",
            "file_find",
            json!({ "pattern": "*.rs" }),
            &["--files", "-g", "*.rs"],
        ),
    ] {
        let matches = if target.is_empty() || what.starts_with("one") { 0 } else { expected };
        let (ours, bare) = turns(tool, arguments, flags, matches);
        row(what, target, &format!("{ours:.1?}"), &format!("`rg` {bare:.1?}"), &ratio(ours, bare));
    }
}

/// Files of the project in which [`cycle`] works, and cycles.
const SMALL: usize = 500;
const CYCLES: usize = 200;

/// An agent finds a line, reads its file, changes it and reads it again, in one connection.
pub(crate) fn cycle() {
    let program = Program::below(Path::new("/var/tmp"));
    quiet(&mut program.command(&["tools"]));
    let root = program.path("work");
    for at in 0..SMALL {
        let path = root.join(format!("src/{}/f{at}.rs", at % 20));
        create_dir_all(path.parent().expect("a directory")).expect("a directory");
        write(path, format!("fn one_{at}() -> u32 {{\n    {at}\n}}\n").repeat(40)).expect("a file");
    }
    let mut running = served(&program, &["--offer", "files"]);
    let mut call = |tool: &str, arguments: Value| {
        running.write(asking(tool, &arguments));
        let answer = running.line();
        assert!(answer["result"]["isError"] == false, "{answer}");
    };
    let (mut round, mut taken) = (0, Vec::new());
    for _ in 0..CYCLES {
        let at = round * 7 % SMALL;
        let path = format!("src/{}/f{at}.rs", at % 20);
        let (old, new) = (format!("fn one_{at}() -> u32 {{"), format!("fn one_{at}() -> u64 {{"));
        let (old, new) = if round < SMALL { (old, new) } else { (new, old) };
        taken.extend(time(1, || {
            call("file_search", json!({ "pattern": format!("one_{at}()"), "literal": true }));
            call("file_read", json!({ "path": path }));
            call("file_edit", json!({ "path": path, "old_string": old, "new_string": new, "replace_all": true }));
            call("file_read", json!({ "path": path }));
        }));
        round += 1;
    }
    taken.sort();
    let what = "find, read, edit and read again in 500 files, over MCP";
    row(what, "<= 3 ms", &format!("{:.2?}", quantile(&taken, 50)), &format!("p99 {:.2?}", quantile(&taken, 99)), "");
}
