//! A host whose own environment is hostile, and what its commands find of that.

use serde_json::json;
use std::collections::BTreeMap;
use toolcrib_tests::{Client, Program, Running};

/// Every hostile value begins so, whatever name it hides behind.
pub(crate) const HOSTILE: &str = "hostile-";

/// What a command found.
pub(crate) struct Found {
    /// What it was started with, by name.
    pub(crate) environment: BTreeMap<String, String>,
    /// All that it printed.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Starts a host with these names set to hostile values, and has it run a command that prints its environment, as the kernel
/// and as other programs see it, then `and`.
pub(crate) fn find(names: &[&str], and: &str) -> Found {
    let values: Vec<_> = names.iter().map(|name| (*name, format!("{HOSTILE}{name}"))).collect();
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    find_with(&values, &[], and)
}

/// The same with values, and flags of the host.
pub(crate) fn find_with(variables: &[(&str, &str)], flags: &[&str], and: &str) -> Found {
    find_in(&Program::new(), variables, flags, and)
}

/// The same in directories that were prepared.
pub(crate) fn find_in(program: &Program, variables: &[(&str, &str)], flags: &[&str], and: &str) -> Found {
    let look =
        format!("cat /proc/$$/environ; echo '=END='; env; bash -c 'env; declare -F; cat /proc/$$/environ'; {and}");
    // A cell adds variables of its own, and has another process for a parent.
    let mut host = program.command(&[&["--yes", "--set", "confine.mode=off"], flags, &["run"]].concat());
    let mut host = Client::of(Running::start(host.envs(variables.iter().copied())));
    let answer = host.shell(&look);
    // The host still answers the next call.
    assert_eq!(host.call("time", json!({}))["result"]["source"], "harness");
    let text = |stream: &str| answer["result"][stream].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    assert!(!stdout.contains("[truncated]"), "too long to be seen whole: {stdout}");
    let (own, _) = stdout.split_once("=END=").expect("the end of the environment");
    // A NUL is made visible on the way.
    let own = own.split(['\0', '\u{2400}']).flat_map(|text| text.split("\\0")).flat_map(|text| text.split("\\u{0}"));
    let environment =
        own.filter_map(|variable| variable.split_once('=')).map(|(name, value)| (name.into(), value.into()));
    Found { environment: environment.collect(), stdout, stderr }
}

impl Found {
    /// None of the names is there, nor any of their values under another name.
    pub(crate) fn assert_none_of(&self, names: &[&str]) {
        assert!(
            self.environment.contains_key("PATH") && self.environment.contains_key("TOOLCRIB_CALL"),
            "{}",
            self.stdout
        );
        for name in names {
            assert!(!self.environment.contains_key(*name), "`{name}` was passed: {:?}", self.environment);
        }
        assert!(!self.stdout.contains(HOSTILE), "a hostile value was passed: {}", self.stdout);
        assert!(!self.stderr.contains(HOSTILE), "a hostile value was heeded: {}", self.stderr);
        assert_eq!(self.stderr, "", "something was heeded");
    }
}
