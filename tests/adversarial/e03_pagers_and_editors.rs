//! E-03: the host was started with programs that others start: pagers, editors, browsers, askers for passwords.
//! Outcome: no command gets one under any name.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::find;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "PAGER", "MANPAGER", "GIT_PAGER", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY", "LESSKEYIN", "LESSKEY_SYSTEM",
    "LESSHISTFILE", "VISUAL", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "TERMINFO", "TERMINFO_DIRS",
    "TERMCAP",
];

#[test]
fn no_pager_or_editor_of_the_host_reaches_a_command() {
    let hostile = [NAMES, &["EDITOR"]].concat();
    let found = find(&hostile, "true");
    found.assert_none_of(NAMES);
    assert_eq!(found.environment["EDITOR"], "true", "a program of ours, whatever the host has");
}
