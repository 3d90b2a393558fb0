//! E-07: the host holds credentials in its environment, some under names that begin like harmless ones; a project asks for them.
//! Outcome: no command gets one that the user has not named, and an untrusted project names none.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::{HOSTILE, find, find_in, find_with};
use toolcrib_tests::Program;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "GITHUB_TOKEN", "GH_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DATABASE_PASSWORD", "PGPASSWORD", "PASSWD", "MY_CREDENTIALS",
    "GOOGLE_APPLICATION_CREDENTIALS", "BASIC_AUTH", "SESSION_ID", "COOKIE", "SENTRY_DSN", "DB_CONN",
    "CONNECTION_STRING", "api_key", "Secret", "npm_config__authToken", "LC_API_KEY", "LC_TOKEN", "LANG_SECRET",
    "PATH_KEY", "HOME_TOKEN", "TERM_SECRET", "TZ_TOKEN", "USER_PASSWORD",
];

#[test]
fn no_credential_reaches_a_command() {
    find(NAMES, "true").assert_none_of(NAMES);
}

#[test]
fn a_credential_that_the_user_names_passes_alone() {
    let set = [
        ("GITHUB_TOKEN", "named"),
        ("GITHUB_TOKEN_2", HOSTILE),
        ("MY_GITHUB_TOKEN", HOSTILE),
        ("github_token", HOSTILE),
    ];
    let found = find_with(&set, &["--set", "tools.shell_env=[\"GITHUB_TOKEN\"]"], "true");
    assert_eq!(found.environment.get("GITHUB_TOKEN").map(String::as_str), Some("named"));
    found.assert_none_of(&["GITHUB_TOKEN_2", "MY_GITHUB_TOKEN", "github_token"]);
}

#[test]
fn an_untrusted_project_cannot_ask_for_a_credential() {
    let program = Program::new();
    program.write("work/toolcrib.toml", "[tools]\nshell_env = [\"GITHUB_TOKEN\", \"AWS_SECRET_ACCESS_KEY\"]\n");
    let names = ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"];
    find_in(&program, &names.map(|name| (name, HOSTILE)), &[], "true").assert_none_of(&names);
}
