//! The same commands in every shell that a pane can have.

use crate::crib::{Crib, ONE_PANE, until_it_sleeps};
use serde_json::json;
use std::path::{Path, PathBuf};
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{Program, note_skip, skip};

/// The shells that panes can have.
pub(crate) const SHELLS: [&str; 4] = ["bash", "zsh", "dash", "ash"];

/// Where a shell is. The ash is busybox's.
pub(crate) fn path(shell: &str) -> Option<PathBuf> {
    let name = if shell == "ash" { "busybox" } else { shell };
    ["/bin", "/usr/bin"].iter().map(|directory| Path::new(directory).join(name)).find(|path| path.exists())
}

/// A program whose panes run this shell; none, and a line of the skip, where it is not installed.
pub(crate) fn crib_with(shell: &str) -> Option<Crib> {
    crib_started(shell, "")
}

/// The same, with a start-up file. Shells that read none have none.
pub(crate) fn crib_started(shell: &str, startup: &str) -> Option<Crib> {
    let Some(path) = path(shell) else {
        note_skip(module_path!(), &format!("{shell} is not installed"));
        return None;
    };
    let program = Program::with_panes();
    program.write("home/.bashrc", startup);
    program.write("home/.zshrc", startup);
    let link = program.path("home").join(shell);
    std::os::unix::fs::symlink(path, &link).expect("a link");
    Some(Crib::on(program, &[&format!("tmux.default_shell=\"{}\"", link.display()), ONE_PANE]))
}

/// A program whose panes run this shell. zsh asks new users about a configuration, so there is one.
fn crib(program: Program, shell: &str) -> Crib {
    program.write("home/.zshrc", "");
    Crib::on(program, &[&format!("tmux.default_shell=\"{shell}\""), ONE_PANE])
}

/// What must hold in each of them.
fn assert_works(mut crib: Crib) {
    for (text, status, stdout) in [
        ("true", 0, ""),
        ("false", 1, ""),
        ("printf foo", 0, "foo"),
        ("printf 'a\\tb\\n'", 0, "a\tb\n"),
        ("echo a\nsleep 0.1\necho b", 0, "a\nb\n"),
        ("for i in 1 2; do\n  echo $i\ndone", 0, "1\n2\n"),
        ("cat <<'END'\nexit 0\nEND", 0, "exit 0\n"),
        ("# a comment\necho 'a!b'", 0, "a!b\n"),
        ("(exit 42)", 42, ""),
        ("kept=here; f() { echo of f; }", 0, ""),
        ("echo $kept; f", 0, "here\nof f\n"),
        ("echo out; echo err >&2", 0, "out\nerr\n"),
    ] {
        assert_eq!(crib.run(text), (status, stdout.to_owned()), "`{text}`");
    }
    assert_heeds_cancellation(&mut crib);
    assert_is_freed(&mut crib);
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()), "the shell is another one");
}

fn assert_heeds_cancellation(crib: &mut Crib) {
    let id = crib.send("run_shell", command("sleep 5"));
    until_it_sleeps(&crib.program);
    crib.cancel(id);
    let answer = crib.answer();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("cancelled")), "{answer}");
    let answer = crib.within("echo after", "3s");
    assert_eq!(answer["result"]["stdout"], "after\n", "{answer}");
}

fn assert_is_freed(crib: &mut Crib) {
    let answer = crib.within("cat", "2s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let answer = crib.within("echo never", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    crib.type_keys(&["C-c"]);
    let answer = crib.within("echo free", "3s");
    assert_eq!(answer["result"]["stdout"], "free\n", "{answer}");
}

#[test]
fn commands_run_in_bash() {
    if !Path::new("/bin/bash").exists() {
        skip!("bash is not installed");
    }
    assert_works(crib(Program::with_panes(), "/bin/bash"));
}

#[test]
fn commands_run_in_zsh() {
    if !Path::new("/usr/bin/zsh").exists() {
        skip!("zsh is not installed");
    }
    assert_works(crib(Program::with_panes(), "/usr/bin/zsh"));
}

#[test]
fn commands_run_in_dash() {
    if !Path::new("/bin/dash").exists() {
        skip!("dash is not installed");
    }
    assert_works(crib(Program::with_panes(), "/bin/dash"));
}

#[test]
fn commands_run_in_the_ash_of_busybox() {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let Some(busybox) = busybox else { skip!("busybox is not installed") };
    let program = Program::with_panes();
    let ash = program.path("home/ash");
    std::os::unix::fs::symlink(busybox, &ash).expect("a link");
    assert_works(crib(program, &ash.display().to_string()));
}

#[test]
fn panes_of_a_person_with_fish_run_sh_and_a_notice_says_so() {
    if !Path::new("/usr/bin/fish").exists() {
        skip!("fish is not installed");
    }
    let mut crib = crib(Program::with_panes(), "/usr/bin/fish");
    let result = crib.result("run_shell", command("x=1; echo $((x + 1))"));
    assert_eq!(result["stdout"], "2\n");
    let notices = result["notices"].to_string();
    assert!(notices.contains("`/usr/bin/fish` does not run POSIX scripts, so panes run /bin/sh"), "{notices}");
    let result = crib.result("run_shell", command("echo again"));
    assert!(!result["notices"].to_string().contains("fish"), "{result}");
}

#[test]
fn panes_run_sh_where_the_shell_is_missing() {
    let mut crib = crib(Program::with_panes(), "/no/such/bash");
    let result = crib.result("run_shell", command("echo here"));
    assert_eq!(result["stdout"], "here\n");
    assert!(result["notices"].to_string().contains("`/no/such/bash` is not there, so panes run /bin/sh"), "{result}");
}

#[test]
fn a_shell_that_was_left_open_holds_its_pane_until_it_ends() {
    if !Path::new("/bin/dash").exists() {
        skip!("dash is not installed");
    }
    let mut crib = crib(Program::with_panes(), "/bin/bash");
    let arguments = waiting("dash -i", false);
    crib.result("run_shell", arguments);
    let answer = crib.within("echo waits", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    crib.type_keys(&["C-d"]);
    assert_eq!(crib.run("echo ${BASH_VERSION:+bash}"), (0, "bash\n".into()));
}
