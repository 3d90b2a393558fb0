//! E-03: the host was started with programs that others start: pagers, editors, browsers, askers for passwords.
//! Outcome: no command gets one under any name.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::find;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "PAGER", "MANPAGER", "GIT_PAGER", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY", "LESSKEYIN", "LESSKEY_SYSTEM",
    "LESSHISTFILE", "EDITOR", "VISUAL", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "TERMINFO", "TERMINFO_DIRS",
    "TERMCAP",
];

#[test]
fn no_pager_or_editor_of_the_host_reaches_a_command() {
    find(NAMES, "true").assert_none_of(NAMES);
}
