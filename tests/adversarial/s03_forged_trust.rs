//! S-03: a project that borrows another's trust: by a link to its settings, a copy, or a directory whose name reads like a line of trust.
//! Outcome: trust holds for these bytes in that directory and nowhere else; a link is never trusted.
//! Switched off: with the file's real path compared in place of its directory (`accepted` in `cli/trust.rs`) the link was trusted.

use std::os::unix::fs::symlink;
use std::process::Output;
use toolcrib_tests::Program;
use toolcrib_tests::shell::harmless;

const WIDENING: &str = "[tools]\nshell_confirm = false\n";

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether a command runs unasked in this directory.
fn widens(program: &Program, directory: &str) -> bool {
    let command = harmless("true").to_string();
    let mut started = program.command(&["call", "run_shell", &command]);
    let output = started.current_dir(program.path(directory)).output().expect("the program starts");
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(5), "{}", said(&output));
    code == Some(0)
}

fn trust(program: &Program, directory: &str) -> Output {
    program.command(&["trust"]).current_dir(program.path(directory)).output().expect("the program starts")
}

/// A program whose user trusts `work`.
fn trusting() -> Program {
    let program = Program::new();
    program.write("work/toolcrib.toml", WIDENING);
    let output = trust(&program, "work");
    assert!(output.status.success() && widens(&program, "work"), "{}", said(&output));
    program
}

#[test]
fn a_link_to_settings_that_are_trusted_is_not() {
    let program = trusting();
    std::fs::create_dir(program.path("hostile")).expect("a directory");
    for target in ["../work/toolcrib.toml", &program.path("work/toolcrib.toml").display().to_string()] {
        let link = program.path("hostile/toolcrib.toml");
        let _ = std::fs::remove_file(&link);
        symlink(target, &link).expect("a link");
        assert!(!widens(&program, "hostile"), "a link to {target}");
    }
    let output = trust(&program, "hostile");
    assert!(output.status.code() == Some(2) && said(&output).contains("links are never trusted"), "{}", said(&output));
    assert!(!widens(&program, "hostile"));
}

#[test]
fn other_names_of_settings_that_are_trusted_are_not() {
    let program = trusting();
    std::fs::create_dir(program.path("hostile")).expect("a directory");
    std::fs::hard_link(program.path("work/toolcrib.toml"), program.path("hostile/toolcrib.toml")).expect("a hard link");
    assert!(!widens(&program, "hostile"), "a hard link");
    program.write("copy/toolcrib.toml", WIDENING);
    assert!(!widens(&program, "copy"), "a copy");
    // Trusted settings that became a link to the same bytes are a link.
    std::fs::rename(program.path("work/toolcrib.toml"), program.path("work/other.toml")).expect("a new name");
    symlink("other.toml", program.path("work/toolcrib.toml")).expect("a link");
    assert!(!widens(&program, "work"), "a link in their place");
}

#[test]
fn a_directory_named_like_a_line_of_trust_is_a_directory() {
    let program = Program::new();
    program.write("victim/toolcrib.toml", WIDENING);
    let victim = program.path("victim").display().to_string();
    let digest = String::from_utf8(
        program.command(&["trust"]).current_dir(program.path("victim")).output().expect("the program starts").stdout,
    );
    assert!(digest.is_ok());
    let sha256 = std::fs::read_to_string(program.path("state/toolcrib/trusted.toml")).expect("what is trusted");
    let sha256 = sha256.lines().find_map(|line| line.strip_prefix("sha256 = ")).expect("a digest").to_owned();
    let revoked = program.command(&["trust", "--revoke"]).current_dir(program.path("victim")).output();
    assert!(revoked.expect("the program starts").status.success() && !widens(&program, "victim"));
    // A directory's name cannot hold a slash, so the path of the victim is made of directories.
    for line in [
        format!("x\n{}  ", sha256.trim_matches('"')),
        format!("x\"\nsha256 = {sha256}\n[[project]]\ndirectory = \""),
        format!("x\"\"\"\n[[project]]\nsha256 = {sha256}\ndirectory = \"\"\""),
    ] {
        let forged = format!("{line}{victim}");
        program.write(&format!("{forged}/toolcrib.toml"), "");
        let output = trust(&program, &forged);
        assert!(output.status.success(), "{}", said(&output));
        assert!(!output.stdout[..output.stdout.len() - 1].contains(&b'\n'), "one line: {}", said(&output));
        assert!(!widens(&program, "victim"), "{forged:?}");
    }
}
