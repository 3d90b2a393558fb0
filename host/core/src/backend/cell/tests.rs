//! What commands try in a cell, and what becomes of it. The letters are those of the cases of confinement.

use super::super::local::{start_confined, try_cell};
use super::super::{Finished, finish};
use super::Profile;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
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
        for file in ["home/.bashrc", "home/.ssh/id", "home/.netrc"] {
            fs::write(place.path(file), "private\n").expect("a file");
        }
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().canonicalize().expect("a path").join(below)
    }

    fn profile(&self) -> Profile {
        Profile {
            write: vec![self.path("work")],
            hide: vec![self.path("home/.ssh"), self.path("home/.netrc"), self.path("home/.missing")],
            processes: 100,
            ..Profile::closed()
        }
    }

    fn run(&self, argv: &[&OsStr]) -> Finished {
        run_in(&self.profile(), &self.path("work"), argv).expect("a cell")
    }

    fn shell(&self, script: &str) -> (i32, String) {
        said(&self.run(&["/bin/sh", "-c", script].map(OsStr::new)))
    }
}

fn run_in(profile: &Profile, directory: &Path, argv: &[&OsStr]) -> std::io::Result<Finished> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let environment = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    runtime.block_on(async { finish(start_confined(profile, &argv, &environment, directory)?).await })
}

/// The status, and all that was printed.
fn said(finished: &Finished) -> (i32, String) {
    let text = [&finished.stdout[..], &finished.stderr].concat();
    (finished.status, String::from_utf8_lossy(&text).into_owned())
}

/// Whether cells can be made here; says why not.
fn has_cells() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tried = runtime.block_on(try_cell(&Profile::closed()));
    if let Err(error) = &tried {
        println!("SKIPPED: no cells here: {error}");
    }
    tried.is_ok()
}

/// C-01 to C-08, C-11, C-12, C-16 to C-23, C-32, C-34, C-35, C-42: what is tried from inside.
#[test]
fn nothing_outside_is_reached() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from_abstract_name(format!("toolcrib-{}", std::process::id())).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("an abstract socket");
    let loopback = TcpListener::bind("127.0.0.1:0").expect("a port");
    let arguments = [
        std::process::id().to_string(),
        format!("toolcrib-{}", std::process::id()),
        loopback.local_addr().expect("an address").port().to_string(),
        place.path("home/.bashrc").display().to_string(),
        place.path("work").display().to_string(),
    ];
    let argv = ["python3", "-c", include_str!("attempts.py")].into_iter().chain(arguments.iter().map(String::as_str));
    let (status, printed) = said(&place.run(&argv.map(OsStr::new).collect::<Vec<_>>()));
    assert_eq!(status, 0, "{printed}");
    let found: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let open = ["AF_UNIX", "own file", "a file in /tmp", "a program in memory"];
    let expected = [
        ("other terminals", "ENOENT"),
        ("mem outside", "ENOENT"),
        ("environ outside", "ENOENT"),
        ("fd outside", "ENOENT"),
        ("mem of init", "EACCES"),
        ("environ of init", "EACCES"),
        ("fd of init", "EACCES"),
        ("signal outside", "ESRCH"),
        ("clone3", "ENOSYS"),
        ("x32", "ENOSYS"),
        ("32 bits", "ENOSYS"),
        ("AF_NETLINK", "EAFNOSUPPORT"),
        ("AF_PACKET", "EAFNOSUPPORT"),
        ("AF_ALG", "EAFNOSUPPORT"),
        ("AF_VSOCK", "EAFNOSUPPORT"),
        ("an abstract socket outside", "ECONNREFUSED"),
        ("the loopback outside", "ECONNREFUSED"),
        ("a cloud's metadata", "ENETUNREACH"),
        ("a public address", "ENETUNREACH"),
        ("core_pattern", "EROFS"),
        ("sysrq-trigger", "EROFS"),
        ("a file outside", "EROFS"),
        ("a new file outside", "EROFS"),
        ("through a link", "EROFS"),
        ("a device", "ENOENT"),
        ("a hard link", "EXDEV"),
    ];
    let expected: BTreeMap<&str, &str> = expected.into_iter().chain(open.map(|name| (name, "ok"))).collect();
    assert!(found.len() > 50, "{printed}");
    for (name, error) in &found {
        // Not every kernel has the one, and nobody but root can write either.
        let is_denied = *error == "EACCES" && !rustix::process::getuid().is_root();
        if *name == "sysrq-trigger" && (is_denied || *error == "ENOENT") || *name == "core_pattern" && is_denied {
            continue;
        }
        // Everything else is a call that is refused.
        assert_eq!(error, expected.get(name).unwrap_or(&"EPERM"), "{name}\n{printed}");
    }
    for name in expected.keys().filter(|name| cfg!(target_arch = "x86_64") || !["x32", "32 bits"].contains(name)) {
        assert!(found.contains_key(name), "{name} was not tried\n{printed}");
    }
    assert_eq!(fs::read_to_string(place.path("home/.bashrc")).expect("a file"), "private\n");
    assert!(place.path("work/mine").exists() && !Path::new("/tmp/mine").exists());
}

/// C-14: nothing gives a command a right that its user does not have outside.
#[test]
fn no_privilege_is_left_or_gained() {
    if !has_cells() {
        return;
    }
    let (status, printed) = Place::new().shell("cat /proc/self/status");
    let line = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(line(set).trim_matches('0'), "", "{set} {printed}");
        assert!(!line(set).is_empty());
    }
    assert_eq!((status, line("NoNewPrivs:"), line("Seccomp:")), (0, "1", "2"), "{printed}");
}

/// What is hidden is empty, and nobody can write in its place.
#[test]
fn what_is_hidden_is_not_there() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let home = place.path("home").display().to_string();
    let (status, printed) = place.shell(&format!(
        "ls -A {home}/.ssh; cat {home}/.netrc; cat {home}/.bashrc; touch {home}/.ssh/x /run/.nothing/x; rmdir {home}/.ssh; mv {home}/.ssh y; ls -A {home}/.ssh"
    ));
    assert!(!printed.contains("id\n") && printed.starts_with("private\n"), "{status} {printed}");
    assert_eq!(printed.matches("private").count(), 1, "{printed}");
    assert_eq!(printed.matches("Read-only file system").count(), 4, "{printed}");
    assert_eq!(fs::read_to_string(place.path("home/.ssh/id")).expect("a file"), "private\n");
}

/// Also where it lies in a directory that may be written; and what is protected there is read.
#[test]
fn what_is_hidden_or_protected_in_a_directory_of_its_own_stays_so() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    for name in ["secret", "hooks"] {
        fs::create_dir(place.path("work").join(name)).expect("a directory");
        fs::write(place.path("work").join(name).join("file"), "kept\n").expect("a file");
    }
    let mut profile = place.profile();
    profile.hide.push(place.path("work/secret"));
    profile.protect.push(place.path("work/hooks"));
    let script = "ls secret; cat hooks/file; echo x >hooks/file; rm -r hooks; mv hooks other; echo x >secret/file; touch new && echo made";
    let finished = run_in(&profile, &place.path("work"), &["/bin/sh", "-c", script].map(OsStr::new)).expect("a cell");
    let (_, printed) = said(&finished);
    assert!(printed.starts_with("kept\nmade\n"), "{printed}");
    for name in ["secret", "hooks"] {
        assert_eq!(fs::read_to_string(place.path("work").join(name).join("file")).expect("a file"), "kept\n");
    }
}

/// C-06, C-29, C-46: the end of a command is the end of all that it started, however it ends; the status is the shell's.
#[test]
fn a_cell_ends_with_its_command() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    for (script, status) in [
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("kill -ABRT $$", 134),
        ("exec nothing-of-that-name", 127),
        ("i=0; while [ $i -lt 100 ]; do (true &) ; i=$((i+1)); done", 0),
        // To all but the first process, which the kernel keeps from it, and the one that asks.
        ("sleep 1003 & kill -9 -1; exit 7", 7),
        ("setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & (setsid sleep 1001 &) ; echo begun", 0),
    ] {
        assert_eq!(place.shell(script).0, status, "{script}");
    }
    let left = |seconds: &str| {
        fs::read_dir("/proc").expect("processes").flatten().any(|process| {
            fs::read(process.path().join("cmdline")).is_ok_and(|line| line == format!("sleep\0{seconds}\0").as_bytes())
        })
    };
    assert!(["1000", "1001", "1003"].iter().all(|seconds| !left(seconds)));
}

/// C-45: without the host a cell is not there either.
#[test]
fn a_cell_ends_with_its_lifeline() {
    use super::super::spawn;
    use super::Cell;
    use rustix::fd::AsFd;
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let cell = Cell::of(&place.profile()).expect("a cell");
    let (null, argv) = (fs::File::open("/dev/null").expect("a device"), ["/bin/sleep".into(), "1002".into()]);
    let directory = place.path("work");
    let program = spawn::Program {
        argv: &argv,
        environment: &[],
        directory: &directory,
        standard: [null.as_fd(); 3],
        cell: Some(&cell),
        terminal: spawn::Terminal::None,
    };
    let mut started = spawn::spawn(&program).expect("a process");
    assert!(started.lifeline.take().is_some());
    let status = waitid(WaitId::PidFd(started.handle.as_fd()), WaitIdOptions::EXITED).expect("it ended");
    assert_eq!(status.and_then(|status| status.exit_status()), Some(125));
}

/// C-24: a directory that is swapped for a link, or another, while cells are made is never the one that is written.
#[test]
fn a_directory_that_is_swapped_is_not_written() {
    if !has_cells() {
        return;
    }
    let place = Place::new();
    let (work, other) = (place.path("work"), place.path("other"));
    fs::create_dir(&other).expect("a directory");
    let touch = |name: &str| {
        let file = work.join(name);
        let touched = run_in(&place.profile(), Path::new("/"), &["/bin/touch".as_ref(), file.as_os_str()]);
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
        let made = (0..1000).filter(|round| touch(&round.to_string())).count();
        done.store(true, Ordering::Relaxed);
        println!("{made} of 1000 were made");
    });
    assert_eq!(fs::read_dir(&other).expect("a directory").count(), 0);
}

/// C-30: a command that starts others without end is stopped by the cell's bound, which counts the cell's own. It does not bind root.
#[test]
fn processes_are_bounded() {
    if !has_cells() || rustix::process::getuid().is_root() {
        return;
    }
    let place = Place::new();
    let script = "i=0; while [ $i -lt 300 ]; do sleep 5 & i=$((i+1)); done; echo all";
    let (status, printed) = place.shell(script);
    assert!(status != 0 && !printed.contains("all"), "{printed}");
    assert_eq!(place.shell("true"), (0, String::new()), "others are not stopped");
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
        .args(["--test-threads=1", "--nocapture", "backend::cell::tests::"])
        .current_dir("/")
        .output()
        .expect("setpriv of util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("test result: ok. 11 passed"), "{said}");
    assert!(!has_cells() || !said.contains("SKIPPED"), "{said}");
}

/// C-31: what a cell has of its own is bounded.
#[test]
fn a_cell_fills_no_memory() {
    if !has_cells() {
        return;
    }
    let (status, printed) = Place::new().shell(
        "dd if=/dev/zero of=/dev/fill bs=4096 count=1000 2>&1; dd if=/dev/zero of=/run/fill bs=1M count=20 2>&1",
    );
    assert!(status == 1 && printed.matches("No space left on device").count() == 2, "{printed}");
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
