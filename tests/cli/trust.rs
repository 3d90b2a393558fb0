//! A project's own settings: they narrow, and widen only once the user has accepted their bytes.

use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;

const PROJECT: &str = "work/toolcrib.toml";

/// Whether a command runs without a question, and what is told besides.
fn runs(program: &Program) -> (bool, String) {
    let output = program.run(&["call", "run_shell", &harmless("true").to_string()]);
    (code(&output) == 0, stderr(&output))
}

fn project(text: &str) -> Program {
    let program = Program::new();
    program.write(PROJECT, text);
    program
}

#[test]
fn a_project_that_is_not_trusted_only_narrows() {
    let program = project("[tools]\nshell_confirm = false\nfiles_enabled = false\n");
    let (runs, told) = runs(&program);
    let place = format!("{}:2", program.path(PROJECT).display());
    let notice = "`tools.shell_confirm` is ignored: a project that is not trusted can only narrow; `toolcrib trust` would accept it";
    assert!(!runs && told.contains(&format!("notice: {place}: {notice}\n")), "{told}");
    program.write("work/a.txt", "hello");
    let (code, envelope) = program.call(&["read_file", "path=a.txt"]);
    assert_eq!(
        (code, envelope["error"]["message"].as_str()),
        (5, Some("`files` is switched off by `tools.files_enabled = false`"))
    );
}

#[test]
fn a_project_that_is_trusted_widens() {
    let program = project("[tools]\nshell_confirm = false\n");
    let told = succeeded(&program.run(&["trust"]));
    assert_eq!(
        told,
        format!("{} is trusted as it is now; a change takes the trust away\n", program.path(PROJECT).display())
    );
    assert_eq!(runs(&program), (true, String::new()));
}

#[test]
fn a_project_that_changes_loses_its_trust() {
    let program = project("[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust"]));
    program.write(PROJECT, "[tools]\nshell_confirm = false\n# a change\n");
    assert!(!runs(&program).0);
    program.write(PROJECT, "[tools]\nshell_confirm = false\n");
    assert!(runs(&program).0);
}

#[test]
fn trust_can_be_taken_back() {
    let program = project("[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust"]));
    let told = succeeded(&program.run(&["trust", "--revoke"]));
    assert_eq!(told, format!("{} is no longer trusted\n", program.path(PROJECT).display()));
    assert!(!runs(&program).0);
}

#[test]
fn trust_goes_to_one_file_and_not_to_its_copies() {
    let program = project("[tools]\nshell_confirm = false\n");
    program.write("other/toolcrib.toml", "[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust", "../other/toolcrib.toml"]));
    assert!(!runs(&program).0);
    succeeded(&program.run(&["trust"]));
    succeeded(&program.run(&["trust", "--revoke", "../other/toolcrib.toml"]));
    assert!(runs(&program).0);
}

#[test]
fn a_project_that_is_trusted_does_not_outrank_a_policy() {
    let program = project("[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust"]));
    program.write("policy.toml", "[tools]\nshell_confirm = true\n");
    let policy = program.path("policy.toml").display().to_string();
    assert_eq!(program.call(&["--policy", &policy, "run_shell", &harmless("true").to_string()]).0, 5);
}

#[test]
fn a_file_that_is_missing_cannot_be_trusted() {
    let program = Program::new();
    let output = program.run(&["trust"]);
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains(&format!("`{}`: No such file", program.path(PROJECT).display())),
        "{}",
        stderr(&output)
    );
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn trust_in_a_file_that_has_gone_can_be_taken_back() {
    let program = project("[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust"]));
    std::fs::remove_file(program.path(PROJECT)).unwrap();
    succeeded(&program.run(&["trust", "--revoke"]));
    program.write(PROJECT, "[tools]\nshell_confirm = false\n");
    assert!(!runs(&program).0);
}
