//! How cells are made, and what ends them. What commands try in one is tested from outside. The letters are those of the cases of
//! confinement.

use super::super::local::{start_in, try_cell, walls};
use super::super::{Finished, finish};
use super::{Cell, Means, Profile, Walls};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a person works: a directory that may be written, and beside it what may not.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Not below `/tmp`, which a cell has of its own.
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let place = Self { directory };
        for below in ["work", "home/.ssh"] {
            fs::create_dir_all(place.path(below)).expect("a directory");
        }
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().canonicalize().expect("a path").join(below)
    }

    fn profile(&self) -> Profile {
        Profile {
            write: vec![self.path("work")],
            hide: vec![self.path("home/.ssh"), self.path("home/.missing")],
            ..Profile::closed()
        }
    }
}

fn run_in(profile: &Profile, directory: &Path, argv: &[&OsStr]) -> std::io::Result<Finished> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let environment = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    runtime.block_on(async {
        let walls = walls(profile, None, || Cell::of(profile, None).map(Walls::Cell))?;
        finish(start_in(&walls, &argv, &environment, directory)?).await
    })
}

/// Whether cells can be made here. Where they cannot, that counts as a skipped test for whoever counts those.
fn has_cells() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tried = runtime.block_on(try_cell(&Profile::closed()));
    if let Err(error) = &tried {
        println!("SKIPPED: no cells here: {error}");
        if let Some(list) = std::env::var_os("TOOLCRIB_SKIPS") {
            let mut list = fs::File::options().append(true).create(true).open(list).expect("the list of skips");
            writeln!(list, "{}: no cells here: {error}", module_path!()).expect("a line in the list of skips");
        }
    }
    tried.is_ok()
}

/// C-45: without the host a cell is not there either.
#[test]
fn a_cell_ends_with_its_lifeline() {
    use super::super::spawn;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fd::AsFd;
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let walls = Walls::Cell(Cell::of(&place.profile(), None).expect("a cell"));
    let (null, argv) = (fs::File::open("/dev/null").expect("a device"), ["/bin/sleep".into(), "1002".into()]);
    let directory = place.path("work");
    let program = spawn::Program {
        argv: &argv,
        sealed: None,
        environment: &[],
        directory: &directory,
        standard: [null.as_fd(); 3],
        walls: Some(&walls),
        terminal: spawn::Terminal::None,
    };
    let mut started = spawn::spawn(&program).expect("a process");
    assert!(started.lifeline.take().is_some());
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&started.handle, PollFlags::IN)], Some(&limit));
    assert_eq!(ended, Ok(1), "it lives on without its host");
    let status = waitid(WaitId::PidFd(started.handle.as_fd()), WaitIdOptions::EXITED).expect("it ended");
    assert_eq!(status.and_then(|status| status.exit_status()), Some(125));
}

/// C-24: a directory that is swapped for a link, or another, while cells are made is never the one that is written.
#[test]
fn a_directory_that_is_swapped_is_not_written() {
    if !has_cells() {
        return;
    }
    let rounds = if std::env::var_os("TOOLCRIB_LONG").is_some() { 100_000 } else { 1000 };
    swap_while(Means::Namespaces, rounds);
    // Each takes three times as long.
    swap_while(Means::Bwrap("/usr/bin/bwrap".into()), rounds / 10);
    swap_while(Means::Landlock, rounds);
}

fn swap_while(by: Means, rounds: u32) {
    let place = Place::new();
    let (work, other) = (place.path("work"), place.path("other"));
    fs::create_dir(&other).expect("a directory");
    let profile = Profile { by, ..place.profile() };
    let touch = |name: &str| {
        let file = work.join(name);
        let touched = run_in(&profile.clone(), Path::new("/"), &["/bin/touch".as_ref(), file.as_os_str()]);
        touched.is_ok_and(|finished| finished.status == 0)
    };
    assert!(touch("before"), "while nobody swaps it, it can be written");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (aside, link) = (place.path("aside"), place.path("link"));
            while !done.load(Ordering::Relaxed) {
                let _ = symlink(&other, &link);
                let _ = fs::rename(&work, &aside);
                let _ = fs::rename(&link, &work);
                let _ = fs::remove_file(&work);
                let _ = fs::rename(&aside, &work);
            }
        });
        let made = (0..rounds).filter(|round| touch(&round.to_string())).count();
        done.store(true, Ordering::Relaxed);
        println!("{made} of {rounds} were made by {}", profile.by.name());
    });
    assert_eq!(fs::read_dir(&other).expect("a directory").count(), 0);
}

/// All of this once more as a user without privileges, where root runs the tests.
#[test]
#[expect(clippy::disallowed_methods, reason = "this program itself as another user")]
fn as_another_user_the_same_holds() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let place = Place::new();
    let own = place.path("tests");
    // By another process: a child of ours that has not executed yet would hold the file open for writing.
    let mut copy = std::process::Command::new("cp");
    copy.arg(std::env::current_exe().expect("this program")).arg(&own);
    assert!(copy.status().expect("cp").success(), "a copy that any user can reach");
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).expect("a mode");
    let as_user = ["--reuid=1000", "--regid=1000", "--clear-groups", "--"];
    let output = std::process::Command::new("setpriv")
        .args(as_user)
        .arg(&own)
        .args(["--test-threads=1", "--nocapture", "cell::tests::"])
        .current_dir("/")
        .output()
        .expect("setpriv of util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("test result: ok. 4 passed"), "{said}");
    assert!(!has_cells() || !said.contains("SKIPPED"), "{said}");
}

/// What is missing, or cannot be taken, is named.
#[test]
fn what_cannot_be_made_says_which_step_failed() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let missing = Profile { write: vec![place.path("missing")], ..place.profile() };
    assert!(run_in(&missing, Path::new("/"), &["true".as_ref()]).is_err());
    symlink(place.path("work"), place.path("link")).expect("a link");
    let linked = Profile { write: vec![place.path("link")], ..place.profile() };
    let error = run_in(&linked, Path::new("/"), &["true".as_ref()]).map(|_| ()).expect_err("a link is no directory");
    assert!(error.to_string().contains("taking /"), "{error}");
}
