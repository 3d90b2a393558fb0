//! The environment of a process on this machine: built from nothing, never inherited.
//!
//! Names that no setting can pass are refused where settings are read (`config.rs`).

mod toolchains;

pub use toolchains::{Toolchains, toolchain_names};
pub(super) use toolchains::{own_bash, toolchains};

use base::environment::Environment;
use config::CALL_MARK;
use std::ffi::OsString;

/// Always passed when set. The locale's names are spelled out: `LC_*` is also a common way to carry anything else past a filter.
#[rustfmt::skip]
const STANDARD: [&str; 19] = [
    "PATH", "HOME", "USER", "LANG", "TZ", "TERM",
    "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER", "LC_NAME",
    "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION",
];
/// Where nothing is set, a shell finds the system's programs all the same.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Sets variables; one of a name that is there takes its place.
pub(super) fn set(environment: &mut Vec<(OsString, OsString)>, given: impl Iterator<Item = (OsString, OsString)>) {
    for (name, value) in given {
        environment.retain(|(known, _)| *known != name);
        environment.push((name, value));
    }
}

/// Returns the variables for a process, with the mark of its call: the standard ones, and those that `extra` names.
pub(super) fn build(inherited: &Environment, extra: &[String], call: Option<&str>) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> =
        call.map(|call| (CALL_MARK.into(), call.into())).into_iter().collect();
    let is_passed = |name: &OsString| {
        name.to_str().is_some_and(|name| STANDARD.contains(&name) || extra.iter().any(|extra| extra == name))
    };
    environment.extend(inherited.iter().filter(|(name, _)| is_passed(name)).cloned());
    if !environment.iter().any(|(name, _)| name == "PATH") {
        environment.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inherited: &[&str], extra: &[&str]) -> Vec<String> {
        let inherited = inherited.iter().map(|name| (OsString::from(name), OsString::from("value")));
        let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
        let built = build(&inherited.collect(), &extra, Some("call"));
        built.into_iter().map(|(name, _)| name.into_string().expect("text")).collect()
    }

    #[test]
    fn only_the_standard_names_pass() {
        let host = [
            "PATH",
            "LC_ALL",
            "LC_API_KEY",
            "LD_PRELOAD",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "EDITOR",
        ];
        assert_eq!(names(&host, &[]), ["TOOLCRIB_CALL", "PATH", "LC_ALL"]);
    }

    #[test]
    fn a_named_variable_passes() {
        assert_eq!(
            names(&["PATH", "GITHUB_TOKEN", "EDITOR"], &["GITHUB_TOKEN"]),
            ["TOOLCRIB_CALL", "PATH", "GITHUB_TOKEN"]
        );
    }

    #[test]
    fn a_host_without_path_gives_the_systems() {
        assert_eq!(names(&[], &[]), ["TOOLCRIB_CALL", "PATH"]);
    }
}
