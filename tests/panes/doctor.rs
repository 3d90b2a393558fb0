//! What `toolcrib doctor` says of panes.

use toolcrib_tests::Program;

/// The line of the report about panes.
fn panes(program: &Program, path: Option<&str>) -> String {
    let mut doctor = program.command(&["doctor"]);
    if let Some(path) = path {
        doctor.env("PATH", path);
    }
    let report = String::from_utf8(doctor.output().expect("it runs").stdout).expect("text");
    let line = report.lines().find(|line| line.contains("  panes  ")).unwrap_or_else(|| panic!("{report}"));
    line.to_owned()
}

#[test]
fn the_version_and_the_sessions_are_told() {
    let crib = crate::crib::Crib::new();
    let version = crib.program.tmux(&["-V"]);
    let none = panes(&crib.program, None);
    assert!(none.starts_with("ok") && none.contains(version.trim()) && none.contains("0 sessions"), "{none}");
    let mut crib = crib;
    crib.run("true");
    assert!(panes(&crib.program, None).contains("1 session of this workspace;"), "{}", panes(&crib.program, None));
}

#[test]
fn a_tmux_that_is_too_old_is_bad_and_the_version_that_is_needed_is_told() {
    let program = Program::with_panes();
    program.write_program("bin/tmux", "#!/bin/sh\necho tmux 3.0a\n");
    let path = format!("{}:/usr/bin:/bin", program.path("bin").display());
    let line = panes(&program, Some(&path));
    assert!(line.starts_with("bad") && line.contains("tmux 3.0a is too old, 3.2"), "{line}");
}

#[test]
fn without_tmux_a_note_says_what_is_lost() {
    let program = Program::with_panes();
    let line = panes(&program, Some("/nowhere"));
    assert!(line.starts_with("note") && line.contains("plain processes"), "{line}");
}
