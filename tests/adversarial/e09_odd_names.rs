//! E-09: names in the host's environment that are none: with line breaks, not text, twins of standard ones, ten thousand of them.
//! Outcome: none passes; the standard ones pass by their exact names alone.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::{HOSTILE, find};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use toolcrib_tests::Program;

#[test]
fn a_name_that_is_only_like_a_standard_one_does_not_pass() {
    let names = [
        "path",
        "Path",
        "PATH ",
        " PATH",
        "PATH\n",
        "A\nPATH",
        "PATH%%",
        "PATH2",
        "PATHX",
        "LC_",
        "LC_ALL2",
        "lc_all",
        "LC_*",
        "LANGUAGE",
        "HOMEDRIVE",
        "USERNAME",
        "TERM_PROGRAM",
        "Ä",
        "PATH\u{200b}",
        "ＰATH",
        "-",
        "1",
        "TOOLCRIB_CALL2",
    ];
    find(&names, "true").assert_none_of(&names);
}

#[test]
fn names_and_values_that_are_no_text_do_not_stop_the_host_or_pass() {
    let program = Program::new();
    let mut host = program.command(&[
        "--yes",
        "call",
        "run_shell",
        &toolcrib_tests::shell::command("cat /proc/$$/environ").to_string(),
    ]);
    for bytes in [&b"\xff\xfe"[..], b"PATH\xff", b"LC_\xc3", b"LD_\x80"] {
        host.env(OsStr::from_bytes(bytes), HOSTILE);
    }
    for number in 0..10_000 {
        host.env(format!("MANY_{number}"), HOSTILE);
    }
    let value = [b"C\xff".as_slice(), HOSTILE.as_bytes()].concat();
    host.env("UNLISTED", OsStr::from_bytes(&value)).env("TZ", OsStr::from_bytes(b"\xff\xfe"));
    let output = host.stdin(Stdio::null()).output().expect("the program starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("TOOLCRIB_CALL="),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!stdout.contains(HOSTILE), "{stdout}");
}
