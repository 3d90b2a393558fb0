//! All cases once more as a user without privileges, where root runs the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::Program;

#[test]
#[expect(clippy::disallowed_methods, reason = "these tests themselves, as another user")]
fn as_another_user_the_same_holds() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("a mode");
    fs::create_dir(place.path().join("deps")).expect("a directory");
    let tests = std::env::current_exe().expect("these tests");
    // By another process: a child of ours that has not executed yet would hold the file open for writing.
    for (file, to) in [(tests, "deps/confined"), (Program::file(), "toolcrib")] {
        let mut copy = std::process::Command::new("cp");
        assert!(copy.arg(file).arg(place.path().join(to)).status().expect("cp").success());
    }
    let output = std::process::Command::new("setpriv")
        .env_remove("TOOLCRIB_TESTS_COMPILED")
        .args(["--reuid=1000", "--regid=1000", "--clear-groups", "--"])
        .arg(place.path().join("deps/confined"))
        // Those of memory see to that themselves; no other user can trace a host.
        .args(["--test-threads=2", "--nocapture", "--skip=memory::", "--skip=at_any_step"])
        .current_dir("/")
        .output()
        .expect("setpriv of util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("SKIPPED"), "{said}");
    let count = |text: &str| said.lines().filter(|line| line.starts_with("test ") && line.ends_with(text)).count();
    assert!(count(" ... ok") >= 20, "{said}");
}
