//! Where the socket lies: in a directory that is this user's alone, or nowhere. And nobody's settings of tmux but ours.

use crate::crib::Crib;
use serde_json::Value;
use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually, skip};

/// A user who is not the one that runs the tests.
const SOMEBODY: u32 = 65534;

/// A program and the place where its socket will lie.
fn program() -> (Program, PathBuf) {
    let program = Program::with_panes();
    let place = program.path("state/toolcrib/tmux");
    std::fs::create_dir_all(program.path("state/toolcrib")).expect("a directory");
    (program, place)
}

fn directory(path: &Path, mode: u32) {
    std::fs::create_dir(path).expect("a directory");
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).expect("a directory").next().is_none()
}

fn metadata(path: &Path) -> Metadata {
    std::fs::symlink_metadata(path).expect("it is there")
}

/// A command is refused in words that name the place.
fn assert_refused(program: Program, place: &Path) -> Program {
    let mut crib = Crib::on(program, &[]);
    let said = crib.refusal("touch ran");
    assert_eq!(said, format!("unavailable: `{}` cannot be used as a private directory", place.display()));
    assert!(!crib.program.path("work/ran").exists(), "it ran all the same");
    crib.program
}

#[test]
fn a_link_in_place_of_the_directory_is_not_followed() {
    let (program, place) = program();
    let elsewhere = program.path("elsewhere");
    directory(&elsewhere, 0o755);
    symlink(&elsewhere, &place).expect("a link");
    let _program = assert_refused(program, &place);
    assert!(is_empty(&elsewhere), "something was made behind the link");
    assert_eq!(metadata(&elsewhere).mode() & 0o777, 0o755);
    assert!(metadata(&place).is_symlink());
}

#[test]
fn a_link_to_nowhere_makes_nothing_there() {
    let (program, place) = program();
    let elsewhere = program.path("elsewhere");
    symlink(&elsewhere, &place).expect("a link");
    let _program = assert_refused(program, &place);
    assert!(!elsewhere.exists(), "the link was followed");
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    if !rustix::process::getuid().is_root() {
        skip!("only the superuser can give a directory away");
    }
    let (program, place) = program();
    directory(&place, 0o755);
    chown(&place, Some(SOMEBODY), Some(SOMEBODY)).expect("the superuser gives directories away");
    let _program = assert_refused(program, &place);
    let metadata = metadata(&place);
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (SOMEBODY, 0o755));
    assert!(is_empty(&place), "something was made in it");
}

#[test]
fn a_file_in_place_of_the_directory_stays() {
    let (program, place) = program();
    std::fs::write(&place, "mine").expect("a file");
    let _program = assert_refused(program, &place);
    assert_eq!(std::fs::read_to_string(&place).expect("a file"), "mine");
}

#[test]
fn a_path_too_long_for_a_socket_is_refused_by_name() {
    let program = Program::with_panes();
    let state = program.path(&"s".repeat(107));
    let arguments = command("touch ran").to_string();
    let mut call = program.command(&["--yes", "call", "run_shell", &arguments]);
    let output = call.env("XDG_STATE_HOME", &state).stdin(Stdio::null()).output().expect("the program starts");
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    let error = &envelope["error"];
    assert_eq!(error["kind"], "unavailable", "{envelope}");
    let socket = format!("`{}/toolcrib/tmux/socket` is too long for a socket", state.display());
    assert!(error["message"].as_str().is_some_and(|message| message.starts_with(&socket)), "{envelope}");
    assert!(!state.join("toolcrib/tmux").exists(), "the directory was made");
    assert!(!program.path("work/ran").exists(), "it ran all the same");
}

#[test]
fn a_directory_that_others_could_enter_becomes_private() {
    // What others can write is made anew; what they can only enter is kept.
    for mode in [0o777, 0o755] {
        let (program, place) = program();
        directory(&place, mode);
        let mut crib = Crib::on(program, &[]);
        assert_eq!(crib.run("echo here"), (0, "here\n".into()));
        assert_eq!(metadata(&place).mode() & 0o777, 0o700, "{mode:o}");
        let socket = metadata(&place.join("socket"));
        assert_eq!(socket.mode() & 0o077, 0, "{:o}", socket.mode());
    }
}

#[test]
fn settings_that_others_could_plant_are_not_read() {
    let (program, place) = program();
    directory(&place, 0o777);
    let owned = program.path("owned");
    let planted = format!("run-shell 'touch {}'\nset -g status-left planted\n", owned.display());
    std::fs::write(place.join("tmux.conf"), planted).expect("a file");
    let mut crib = Crib::on(program, &[]);
    assert_eq!(crib.run("echo here"), (0, "here\n".into()));
    assert!(!owned.exists(), "planted settings were run");
    assert_eq!(option(&crib.program, "history-limit"), "50000");
    assert_ne!(option(&crib.program, "status-left"), "planted");
}

#[test]
fn links_that_others_could_plant_are_not_written_through() {
    let (program, place) = program();
    directory(&place, 0o777);
    program.write("kept", "kept");
    symlink(program.path("made"), place.join("tmux.conf")).expect("a link");
    symlink(program.path("kept"), place.join("error")).expect("a link");
    let mut crib = Crib::on(program, &[]);
    assert_eq!(crib.run("echo here"), (0, "here\n".into()));
    assert!(!crib.program.path("made").exists(), "settings were written through a link");
    assert_eq!(std::fs::read_to_string(crib.program.path("kept")).expect("a file"), "kept");
}

fn option(program: &Program, name: &str) -> String {
    program.tmux(&["show-options", "-gv", name]).trim_end().to_owned()
}

#[test]
fn the_users_own_settings_of_tmux_are_not_read() {
    let program = Program::with_panes();
    let run = program.path("run");
    let settings = format!(
        "run-shell 'touch {0}'\nset-hook -g session-created \"run-shell 'touch {0}'\"\nset -g default-command 'exec cat'\n\
         set -g allow-rename on\nset -g history-limit 5\n",
        run.display()
    );
    program.write("home/.tmux.conf", &settings);
    program.write("config/tmux/tmux.conf", &settings);
    program.write("home/.config/tmux/tmux.conf", &settings);
    let mut crib = Crib::on(program, &[]);
    assert_eq!(crib.run("echo here"), (0, "here\n".into()));
    for (name, value) in [
        ("default-command", ""),
        ("history-limit", "50000"),
        ("update-environment", ""),
        ("set-clipboard", "off"),
        ("allow-rename", "off"),
        ("destroy-unattached", "off"),
    ] {
        assert_eq!(option(&crib.program, name), value, "{name}");
    }
    // Not every version has it.
    assert!(["off", ""].contains(&option(&crib.program, "allow-passthrough").as_str()));
    // What is read is run: the test's own reading does it.
    assert!(!run.exists(), "they were run");
    let _ = crib.program.tmux(&["source-file", &crib.program.path("home/.tmux.conf").display().to_string()]);
    eventually("the test's own reading runs it", || run.exists());
}

#[test]
fn neither_the_server_nor_a_pane_holds_the_environment_of_the_host() {
    let program = Program::with_panes();
    let arguments = command("true").to_string();
    let mut call = program.command(&["--yes", "call", "run_shell", &arguments]);
    let output = call.env("SECRET_TOKEN", "hunter2").stdin(Stdio::null()).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let pids = program.tmux(&["display-message", "-p", "-t", "=toolcrib-agent:", "#{pid} #{pane_pid}"]);
    for pid in pids.split_whitespace() {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("a running process");
        let environment = String::from_utf8_lossy(&environment);
        assert!(environment.contains("HOME=") && !environment.contains("hunter2"), "{pid}: {environment}");
    }
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
}
