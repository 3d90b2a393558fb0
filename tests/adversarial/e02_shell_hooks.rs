//! E-02: the host was started with hooks of shells: start files, exported functions, options, separators.
//! Outcome: no command gets one; the shells that it starts run the real `ls`.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::{HOSTILE, find, find_with};

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "BASH_ENV", "ENV", "BASH_FUNC_ls%%", "BASH_FUNC_cat%%", "BASH_FUNC_x()", "SHELLOPTS", "BASHOPTS", "PS4",
    "PROMPT_COMMAND", "IFS", "CDPATH", "GLOBIGNORE", "ZDOTDIR", "FPATH", "KSH_ENV", "fish_function_path",
    "fish_user_paths", "INPUTRC", "HISTFILE", "SHELL", "BASH_XTRACEFD", "BASH_COMPAT", "POSIXLY_CORRECT",
];

#[test]
fn no_hook_of_a_shell_reaches_a_command() {
    find(NAMES, "bash -c true; sh -c true; bash -lc true").assert_none_of(NAMES);
}

#[test]
fn functions_start_files_and_options_of_the_host_run_in_no_shell() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = directory.path().join("start");
    std::fs::write(&start, format!("echo {HOSTILE}start\n")).expect("a file");
    let (start, function) = (start.to_str().expect("text"), format!("() {{ echo {HOSTILE}function; }}"));
    let prompt = format!("$(echo {HOSTILE}prompt >&2)");
    let hostile = [
        ("BASH_ENV", start),
        ("ENV", start),
        ("BASH_FUNC_ls%%", &function),
        ("BASH_FUNC_echo%%", &function),
        ("BASH_FUNC_true()", &function),
        ("SHELLOPTS", "xtrace:nounset"),
        ("BASHOPTS", "nullglob"),
        ("PS4", &prompt),
        ("PROMPT_COMMAND", &prompt),
        ("IFS", "/"),
        ("CDPATH", "/"),
    ];
    let shells = "ls -d /etc; bash -c 'ls -d /etc; echo x; true; cd etc 2>/dev/null; echo $-'; sh -ic true 2>/dev/null; x=a/b; echo $x";
    let found = find_with(&hostile, &[], shells);
    found.assert_none_of(&hostile.map(|(name, _)| name));
    assert!(found.stdout.ends_with("/etc\n/etc\nx\nhBc\na/b\n"), "{}", found.stdout);
}
