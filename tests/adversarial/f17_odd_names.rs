//! F-17: names at and beyond what a file system takes, names that are no text, names that hold terminal sequences.
//! Outcome: a file is read and written or its failure is typed; nothing panics, and no sequence comes out.
//! Switched off: the bound on the length of a path (`backend/files.rs`, `absolute`): the test of lengths failed.

use crate::exec::run;
use crate::files::{DENIED, confined, read, write};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[test]
fn names_of_any_length_are_taken_or_refused_by_kind() {
    let mut siege = confined();
    let work = siege.program.path("work").display().to_string();
    let deep = |steps: usize| "d/".repeat(steps);
    for (path, expected) in [
        ("x".repeat(255), "Ok(7)"),
        ("x".repeat(256), "Err(\"execution_failed\")"),
        ("ü".repeat(127), "Ok(7)"),
        ("ü".repeat(128), "Err(\"execution_failed\")"),
        (format!("{}x", "./".repeat(1_000)), "Ok(7)"),
        (format!("{}x", "./".repeat(2_047)), "Ok(7)"),
        (format!("{}x", "./".repeat(2_048)), "Err(\"invalid_arguments\")"),
        ("x".repeat(4_096), "Err(\"execution_failed\")"),
        ("x".repeat(4_097), "Err(\"invalid_arguments\")"),
        ("x/".repeat(100_000), "Err(\"invalid_arguments\")"),
        (format!("{}x", deep(1_000)), "Err(\"execution_failed\")"),
        (format!("{work}/{}", "y".repeat(256)), "Err(\"execution_failed\")"),
    ] {
        let saw = write(&mut siege, &path);
        // Joined to the working directory a path may outgrow the system's bound.
        let fits = path.starts_with('/') || path.len() + work.len() < 4_000;
        let shown: String = path.chars().take(20).collect();
        assert!(saw == expected || !fits && saw.starts_with("Err("), "{shown}… of {} bytes: {saw}", path.len());
    }
    // Deep, but there.
    assert_eq!(run(&mut siege, &format!("mkdir -p {}", deep(900)))["exit_code"], 0);
    let path = format!("{}leaf", deep(900));
    assert_eq!((write(&mut siege, &path), read(&mut siege, &path)), ("Ok(7)".into(), "Ok(\"planted\")".into()));
    siege.lift();
}

#[test]
fn names_that_are_no_text_are_reached_by_links_and_panic_nobody() {
    let mut siege = confined();
    let (odd, work) = (OsStr::from_bytes(b"\xff\xfe\x80.txt"), siege.program.path("work"));
    std::fs::write(work.join(odd), "inside").expect("a file");
    std::fs::write(siege.program.path("outside").join(odd), "SECRET").expect("a file");
    symlink(odd, work.join("in")).expect("a link");
    symlink(siege.program.path("outside").join(odd), work.join("out")).expect("a link");
    std::fs::create_dir(work.join(OsStr::from_bytes(b"dir\xc3"))).expect("a directory");
    symlink(OsStr::from_bytes(b"dir\xc3"), work.join("dir")).expect("a link");
    assert_eq!((read(&mut siege, "in"), write(&mut siege, "in")), ("Ok(\"inside\")".into(), "Ok(7)".into()));
    assert_eq!((read(&mut siege, "out"), write(&mut siege, "out")), (DENIED.into(), DENIED.into()));
    assert_eq!((write(&mut siege, "dir/new"), read(&mut siege, "dir/new")), ("Ok(7)".into(), "Ok(\"planted\")".into()));
    let listed = run(&mut siege, "ls");
    assert_eq!(listed["exit_code"], 0, "{listed}");
    siege.lift();
}

#[test]
fn sequences_in_a_name_do_not_come_out_of_a_refusal() {
    let mut siege = confined();
    for path in [
        "\u{1b}]0;owned\u{7}",
        "\u{1b}[2J../outside/secret",
        "a\nAPPROVED by the host",
        "a\rb",
        "\u{202e}txt.exe",
        "\u{9b}31m",
        "../outside/\u{1b}]52;c;aGk=\u{7}",
        "\u{e0041}\u{e0042}",
        "..\u{2215}outside",
        "\u{ff0e}\u{ff0e}/outside/secret",
    ] {
        let answer = siege.call("read_file", json!({ "path": path }));
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{path:?}: {answer}"));
        assert!(!message.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}', '\u{9b}', '\u{e0041}']), "{message:?}");
        let listed = siege.program.path("work").join(path).exists();
        assert!(!listed, "{path:?}");
    }
    siege.lift();
}
