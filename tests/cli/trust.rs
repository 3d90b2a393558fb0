//! A project's own settings: they narrow, and widen only once the user has accepted their bytes.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::{PermissionsExt, symlink};
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Running};

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

/// Any command in a workspace can leave such a file.
#[test]
fn a_project_whose_file_is_broken_is_ignored_with_what_it_does_not_narrow() {
    for (text, fault, what) in [
        (
            "[tools]\nfiles_enabled = false\nshell_confrim = true\n[limits]\ncall_ms = 5\n",
            ":3:1: `tools.shell_confrim` is not a setting",
            "`limits.call_ms`, `tools.files_enabled`",
        ),
        ("[limits]\ncall_ms = 'long'\n", ":2:1: `limits.call_ms`: must be a whole number", "`limits.call_ms`"),
        ("[tools]\nshell_env = [\n", ":2:14: ", "anything"),
        ("\u{fffd}\u{1b}[2J", ":1:", "anything"),
    ] {
        let program = project(text);
        program.write("work/a.txt", "hello");
        let output = program.run(&["call", "read_file", "path=a.txt"]);
        let told = stderr(&output);
        assert!(code(&output) == 0 && stdout(&output).contains("hello"), "{text:?}: {told}");
        assert!(told.contains(&format!("notice: {}{fault}", program.path(PROJECT).display())), "{text:?}: {told}");
        let ignored =
            format!("this project's settings are ignored and do not narrow {what}; mend or remove the file\n");
        assert!(told.contains(&ignored) && !told.contains('\u{1b}'), "{text:?}: {told}");
    }
}

#[test]
fn a_project_that_was_trusted_stops_the_start_when_it_breaks() {
    let program = project("[tools]\nshell_confirm = false\n");
    succeeded(&program.run(&["trust"]));
    program.write(PROJECT, "[tools]\nshell_confrim = true\n");
    let output = program.run(&["call", "time"]);
    assert!(code(&output) == 2 && stderr(&output).contains("`tools.shell_confrim` is not a setting"), "{output:?}");
}

#[test]
fn whatever_has_the_name_of_a_projects_file_stops_nothing() {
    let program = Program::new();
    let file = program.path(PROJECT);
    let is_told = |why: &str| {
        let output = program.run(&["call", "time"]);
        let told = stderr(&output);
        assert!(code(&output) == 0 && told.contains(why) && told.contains("do not narrow anything"), "{why}: {told}");
    };
    std::fs::create_dir(&file).unwrap();
    is_told("not a regular file");
    std::fs::remove_dir(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    is_told("not a regular file");
    std::fs::remove_file(&file).unwrap();
    // What the target says is not shown.
    program.write("home/.aws/credentials", "[default]\naws_secret_access_key = 'AKEY'\n");
    symlink(program.path("home/.aws/credentials"), &file).unwrap();
    is_told("is a link that commands could have made");
    assert!(!stderr(&program.run(&["call", "time"])).contains("default"));
    std::fs::remove_file(&file).unwrap();
    program.write(PROJECT, "x".repeat(300 << 10));
    is_told("longer than 256 KiB");
}

#[test]
fn a_projects_file_that_cannot_be_read_stops_nothing() {
    let program = project("[tools]\nfiles_enabled = false\n");
    std::fs::set_permissions(program.path(PROJECT), std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        // Root reads every file by two capabilities.
        program.started_by(&["setpriv", "--bounding-set=-dac_override,-dac_read_search"], &["call", "time"])
    } else {
        program.command(&["call", "time"])
    };
    let output = Running::start(&mut command).finish();
    let told = stderr(&output);
    assert!(code(&output) == 0 && told.contains("Permission denied") && told.contains("are ignored"), "{told}");
}
