//! E-04: the host was started with variables that make git run programs or look elsewhere.
//! Outcome: no command gets one under any name.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::find;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_PARAMETERS", "GIT_DIR",
    "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALLOW_PROTOCOL", "GIT_TRACE", "GIT_TRACE2",
    "GIT_TRACE_PACKET",
];

#[test]
fn no_variable_of_git_reaches_a_command() {
    find(NAMES, "git config --list --show-origin").assert_none_of(NAMES);
}
