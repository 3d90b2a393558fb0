//! What rules cover and what they deny; `tries.rs` has the ways around them that are known.

use super::super::Script;
use super::*;
use tries::{Expect, TRIES};

mod tries;

fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
    let parse = |text: &&str| CommandPattern::parse(text).unwrap_or_else(|why| panic!("`{text}` {why}"));
    texts.iter().map(parse).collect()
}

/// Why these rules do not cover a command; none where they do.
fn uncovered(rules: &[CommandPattern], command: &str) -> Option<String> {
    let by = |simple: &Simple| {
        let mut why = "no rule is about it".to_owned();
        for rule in rules {
            match rule.covers(simple) {
                Ok(()) => return Ok(()),
                Err(other) => why = other,
            }
        }
        Err(why)
    };
    match prove(command, false) {
        Ok(commands) if commands.is_empty() => Some("it runs nothing".into()),
        Ok(commands) => {
            commands.iter().find_map(|simple| covered(simple, &by).err()).map(|(what, why)| format!("{what}: {why}"))
        }
        Err(why) => Some(why),
    }
}

#[test]
fn every_try_ends_as_it_should() {
    let mut wrong = Vec::new();
    for (rules, command, expected, source) in TRIES {
        let (allow, deny): (Vec<&str>, Vec<&str>) = rules.split(" | ").partition(|rule| !rule.starts_with("deny "));
        let deny: Vec<&str> = deny.iter().map(|rule| rule.trim_start_matches("deny ")).collect();
        let script = Script::parse(command).unwrap_or_else(|_| Script::by_words(command));
        let is_denied = patterns(&deny).iter().any(|rule| rule.catches(&script));
        let why = uncovered(&patterns(&allow), command);
        let found = match (is_denied, &why) {
            (true, _) => Expect::Denied,
            (false, None) => Expect::Allowed,
            (false, Some(_)) => Expect::Asked,
        };
        if found != *expected {
            wrong.push(format!("{rules} | {command} ({source}): {found:?}, not {expected:?}: {why:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_tries_of_each_kind() {
    let count = |expect| TRIES.iter().filter(|(_, _, expected, _)| *expected == expect).count();
    assert!(TRIES.len() >= 120 && count(Expect::Allowed) >= 40 && count(Expect::Denied) >= 15);
}

#[test]
fn a_rule_that_cannot_be_kept_is_refused_with_what_to_write() {
    for (text, refusal) in [
        ("", "is not one plain command"),
        ("cargo test; rm -rf x", "is not one plain command"),
        ("a | b", "is not one plain command"),
        ("a > b", "is not one plain command"),
        ("X=1 a", "is not one plain command"),
        ("echo $HOME", "is not one plain command"),
        ("echo $(id)", "is not one plain command"),
        ("* test", "does not begin with a program"),
        ("~/bin/x", "does not begin with a program"),
        ("sudo *", "has a `*` after `sudo`, which runs another command"),
        ("timeout 5 *", "has a `*` after `timeout`"),
        ("xargs *", "has a `*` after `xargs`"),
        ("ssh host *", "has a `*` after `ssh`"),
    ] {
        let refused = CommandPattern::parse(text).expect_err(text);
        assert!(refused.starts_with(refusal), "{text}: {refused}");
    }
}

#[test]
fn a_program_that_a_rule_denies_is_seen_before_the_script_is_read() {
    let is_rm = |word: &str| word == "rm";
    for text in [
        "rm x",
        "a;rm x",
        "a&&rm x",
        "/bin/rm x",
        "r''m x",
        "r\"\"m x",
        "r\\m x",
        "r\\\nm x",
        "$(rm x)",
        "`rm x`",
        "$'\\x72m' x",
        "{rm,x}",
        "RM x",
    ] {
        assert!(may_run(text, is_rm), "{text}");
    }
    assert!(!may_run("cargo test --workspace && echo done | grep form", is_rm));
}
