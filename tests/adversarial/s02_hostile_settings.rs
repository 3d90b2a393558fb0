//! S-02: settings or a policy that another user wrote or could write, in the place where this program looks for its own; root too.
//! Outcome: they are not obeyed, and neither is anything else: an error names the file and what to change; `doctor` says the same.
//! Switched off: with `check_obeyed` in `disk.rs` always `Ok`, commands ran unasked by the settings of the other user.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Output;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, skip};

/// A user who is neither us nor root.
const OTHER: u32 = 65534;
const SETTINGS: &str = "config/toolcrib/toolcrib.toml";
const WIDENING: &str = "[tools]\nshell_confirm = false\n";

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that leaves a file.
fn run(program: &Program, options: &[&str]) -> Output {
    let command = command("touch ran");
    program.run(&[options, &["call", "run_shell", &command.to_string()]].concat())
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

fn is_refused(program: &Program, options: &[&str], reason: &str, change: &str) {
    let output = run(program, options);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!program.path("work/ran").exists(), "the command ran: {text}");
    for part in ["settings that other users could have written are refused: `", reason, change] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let output = program.run(&[options, &["doctor"]].concat());
    let text = said(&output);
    assert!(output.status.code() == Some(1) && text.contains(reason) && text.contains(change), "doctor: {text}");
}

#[test]
fn settings_that_others_may_write_are_not_obeyed() {
    let program = Program::new();
    program.write(SETTINGS, WIDENING);
    let file = program.path(SETTINGS);
    for mode in [0o660, 0o606, 0o666, 0o622] {
        chmod(&file, mode);
        let reason = format!("can be written by others (mode {mode:04o})");
        is_refused(&program, &[], &reason, &format!("chmod go-w '{}'", file.display()));
    }
    for mode in [0o644, 0o600, 0o444] {
        chmod(&file, mode);
        assert_eq!(run(&program, &[]).status.code(), Some(0), "mode {mode:o}: {}", said(&run(&program, &[])));
    }
}

#[test]
fn settings_and_policies_of_another_user_are_not_obeyed() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give files to another user");
    }
    let reason = "belongs to uid 65534, and this program runs as uid 0";
    let program = Program::new();
    program.write(SETTINGS, WIDENING);
    let file = program.path(SETTINGS);
    chown(&file, Some(OTHER), Some(OTHER)).expect("another owner");
    let change = format!("chown 0 '{}'", file.display());
    is_refused(&program, &[], reason, &change);
    // A link of ours to a file of theirs is theirs.
    let target = program.path("theirs.toml");
    std::fs::rename(&file, &target).expect("a new name");
    symlink(&target, &file).expect("a link");
    is_refused(&program, &[], reason, &change);
    std::fs::remove_file(&file).expect("no settings");
    for option in ["--config", "--policy"] {
        let target = target.display().to_string();
        is_refused(&program, &[option, &target], reason, &format!("chown 0 '{target}'"));
    }
}

#[test]
fn a_policy_that_others_may_write_is_not_obeyed() {
    let program = Program::new();
    program.write("policy.toml", "[approval]\nallow_yes = false\n");
    let policy = program.path("policy.toml");
    chmod(&policy, 0o664);
    let change = format!("chmod go-w '{}'", policy.display());
    let named = policy.display().to_string();
    is_refused(&program, &["--yes", "--policy", &named], "can be written by others (mode 0664)", &change);
}

/// A checkout under a lenient umask: what the file asks for is bound by trust, not by its mode.
#[test]
fn a_projects_settings_may_be_anybodys_as_they_only_narrow() {
    let program = Program::new();
    program.write("work/toolcrib.toml", WIDENING);
    chmod(&program.path("work/toolcrib.toml"), 0o666);
    let output = run(&program, &[]);
    assert!(output.status.code() == Some(5) && said(&output).contains("can only narrow"), "{}", said(&output));
    program.write("work/toolcrib.toml", "[tools]\nshell_enabled = false\n");
    assert!(said(&run(&program, &["--yes"])).contains("tools.shell_enabled"), "{}", said(&run(&program, &["--yes"])));
}
