//! `toolcrib doctor`: what this installation has, and what it lacks.

use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, install, stdout, succeeded};

/// The lines of the report, each as verdict, subject and finding.
fn report(text: &str) -> Vec<(&str, &str, &str)> {
    text.lines().map(|line| (line[..4].trim(), line[6..24].trim(), line.get(26..).unwrap_or_default())).collect()
}

#[test]
fn a_sound_installation_has_nothing_bad() {
    let program = Program::new();
    install(&program, "word_count");
    let text = succeeded(&program.run(&["doctor"]));
    let report = report(&text);
    assert!(report.iter().all(|line| line.0 != "bad"), "{text}");
    let found =
        |subject: &str| report.iter().find(|line| line.1 == subject).unwrap_or_else(|| panic!("{subject}: {text}")).2;
    assert!(found("version").contains("wasmtime"));
    assert!(found("plugins").starts_with("38 loaded; "));
    assert!(found("backend").starts_with("local: /"));
    assert_eq!(found("approvals"), "no terminal: actions that need one are denied");
    let reach = found("reach of run_shell");
    let confined = "commands are confined with named hosts only, writes below ";
    assert!(reach.starts_with(confined) || reach.contains("they cannot be confined here"), "{reach}");
}

#[test]
fn a_broken_plugin_is_bad_and_the_rest_is_reported_all_the_same() {
    let program = Program::new();
    program.write("data/toolcrib/plugins/broken.wasm", b"\0asm\x01\0\0\0");
    let output = program.run(&["doctor"]);
    assert_eq!(code(&output), 1);
    let text = stdout(&output);
    let file = program.path("data/toolcrib/plugins/broken.wasm");
    let found =
        format!("`{}` was refused: it is a core module, not a component: build it for wasm32-wasip2", file.display());
    assert!(report(&text).contains(&("bad", "plugin", &found)), "{text}");
    assert!(report(&text).iter().any(|line| line.1 == "plugins" && line.2.starts_with("37 loaded; ")), "{text}");
}

#[test]
fn every_finding_is_one_line() {
    let program = Program::new();
    program.write("data/toolcrib/plugins/text.wasm", "this is text");
    let text = stdout(&program.run(&["doctor"]));
    let odd = text.lines().find(|line| !["ok  ", "note", "bad "].iter().any(|verdict| line.starts_with(verdict)));
    assert_eq!(odd, None, "{text}");
}

#[test]
fn settings_of_a_project_are_reported_with_their_trust() {
    let program = Program::new();
    program.write("work/toolcrib.toml", "");
    let text = succeeded(&program.run(&["doctor"]));
    assert!(text.contains("toolcrib.toml (not trusted: it may only narrow)"), "{text}");
    succeeded(&program.run(&["trust"]));
    let text = succeeded(&program.run(&["doctor"]));
    assert!(text.contains("toolcrib.toml (trusted)"), "{text}");
}

#[test]
fn a_state_directory_that_cannot_be_used_is_not_called_good() {
    let program = Program::cold();
    program.write("state/toolcrib", "in the way");
    let text = stdout(&program.run(&["doctor"]));
    let state = report(&text).into_iter().find(|line| line.1 == "state").unwrap();
    assert_ne!(state.0, "ok", "{text}");
}

#[test]
fn settings_with_a_fault_are_a_finding_among_others() {
    let program = Program::new();
    program.write("config/toolcrib/toolcrib.toml", "[tools]\nshell_confrim = true\n");
    let text = stdout(&program.run(&["doctor"]));
    assert!(report(&text).iter().any(|line| line.0 == "bad" && line.2.contains("shell_confrim")), "{text}");
}

#[test]
fn the_system_is_named_as_the_only_one() {
    let text = succeeded(&Program::new().run(&["doctor"]));
    let system = report(&text).into_iter().find(|line| line.1 == "system").unwrap();
    assert_eq!((system.0, system.2), ("ok", "linux: Toolcrib runs on Linux only"));
}
