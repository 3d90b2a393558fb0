//! F-22: commands prepare a workspace so that a checkpoint of it reads or runs what it should not, or that putting it back writes elsewhere.
//! Outcome: a checkpoint has the workspace's own regular files and links, and nothing else; nothing outside changes; commands run all the same.
//! Switched off: links not followed (`base/disk.rs`): files came outside; `is_closed` (`tree.rs`): `.git` was kept; the digest: forged bytes were put back.
#![expect(clippy::disallowed_methods, reason = "git reads what was kept")]

use crate::files::{SECRET, tree};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, skip};

/// A workspace in which commands have all rights of the user, with a secret beside it.
fn program() -> Program {
    let program = Program::new().unconfined();
    program.write("outside/secret", SECRET);
    program
}

/// Runs a command in a session of its own.
fn shell(program: &Program, text: &str) -> String {
    succeeded(&program.run(&["--yes", "call", "run_shell", &command(text).to_string()]))
}

fn undo(program: &Program, arguments: &[&str]) -> Output {
    program.run(&[&["--yes", "files", "undo"], arguments].concat())
}

/// The id of the newest checkpoint before a command.
fn newest(program: &Program) -> String {
    let listed = json_of(&undo(program, &["--list", "--json"]));
    let all = listed.as_array().expect("a list");
    let of = all.iter().find(|one| one["kind"] == "checkpoint" && one["why"] == "command");
    of.unwrap_or_else(|| panic!("none: {listed}"))["id"].as_str().expect("an id").to_owned()
}

/// All bytes that are kept.
fn kept(program: &Program) -> Vec<u8> {
    fn all(path: &Path, to: &mut Vec<u8>) {
        for entry in std::fs::read_dir(path).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { all(&path, to) } else { to.extend(std::fs::read(path).expect("a file")) }
        }
    }
    let mut bytes = Vec::new();
    all(&program.path("state/toolcrib/undo"), &mut bytes);
    bytes
}

fn has(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// The stores of all workspaces.
fn stores(program: &Program) -> Vec<PathBuf> {
    let stores = std::fs::read_dir(program.path("state/toolcrib/undo/trees")).expect("stores");
    stores.map(|store| store.expect("an entry").path()).collect()
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").current_dir(directory).args(arguments).output().expect("git is installed");
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn links_are_kept_as_links_and_lead_nowhere() {
    let program = program();
    let work = program.path("work");
    program.write("work/d/file", "one");
    symlink(program.path("outside"), work.join("out")).expect("a link");
    symlink(program.path("outside/secret"), work.join("leaf")).expect("a link");
    symlink(program.path("outside/secret"), work.join(".gitignore")).expect("a link");
    shell(&program, "true");
    assert!(!has(&kept(&program), SECRET), "what a link leads to was kept");
    // A directory that is a link by now.
    let (id, outside) = (newest(&program), tree(&program.path("outside")));
    std::fs::remove_dir_all(work.join("d")).expect("removed");
    symlink(program.path("outside"), work.join("d")).expect("a link");
    std::fs::remove_file(work.join("leaf")).expect("removed");
    succeeded(&undo(&program, &[&id]));
    assert_eq!(std::fs::read_to_string(work.join("d/file")).expect("a file"), "one");
    assert!(!work.join("d").is_symlink() && work.join("leaf").is_symlink());
    assert_eq!(tree(&program.path("outside")), outside);
}

#[test]
fn a_directory_that_becomes_a_link_while_it_is_put_back_leads_nowhere() {
    let program = program();
    let (work, outside) = (program.path("work"), tree(&program.path("outside")));
    for at in 0..40 {
        program.write(&format!("work/d/e/{at}"), "one");
    }
    shell(&program, "true");
    let id = newest(&program);
    symlink(program.path("outside"), work.join("link")).expect("a link");
    let stop = Arc::new(AtomicBool::new(false));
    let racer = {
        let (work, stop) = (work.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, work.join("d/e"), CWD, work.join("link"), RenameFlags::EXCHANGE);
            }
        })
    };
    for _ in 0..20 {
        // Putting the directory back takes the link away.
        if !work.join("link").is_symlink() && !work.join("d/e").is_symlink() {
            let _ = std::fs::remove_dir_all(work.join("link"));
            let _ = symlink(program.path("outside"), work.join("link"));
        }
        for at in 0..40 {
            let _ = std::fs::remove_file(work.join(format!("d/e/{at}")));
            let _ = std::fs::remove_file(work.join(format!("link/{at}")));
        }
        // Whether it comes through does not matter.
        undo(&program, &[&id, "--file", "d"]);
    }
    stop.store(true, Ordering::Relaxed);
    racer.join().expect("the racer ends");
    assert_eq!(tree(&program.path("outside")), outside);
}

#[test]
fn a_second_name_of_a_file_outside_is_not_written_through() {
    let program = program();
    program.write("work/a", "one");
    shell(&program, "true");
    let id = newest(&program);
    let inside = program.path("work").join("a");
    std::fs::remove_file(&inside).expect("removed");
    std::fs::hard_link(program.path("outside/secret"), &inside).expect("a second name");
    succeeded(&undo(&program, &[&id]));
    assert_eq!(std::fs::read_to_string(&inside).expect("a file"), "one");
    assert_eq!(std::fs::read_to_string(program.path("outside/secret")).expect("a file"), SECRET);
}

#[test]
fn no_git_directory_is_kept_or_changed_and_no_program_of_its_settings_runs() {
    let program = program();
    let work = program.path("work");
    git(&work, &["init", "-q"]);
    for directory in [".", "nested"] {
        std::fs::create_dir_all(work.join(directory)).expect("a directory");
        let at = work.join(directory);
        git(&at, &["init", "-q"]);
        for setting in
            ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "diff.external"]
        {
            git(&at, &["config", setting, &format!("touch {}", program.path("ran").display())]);
        }
        std::fs::write(at.join(".gitattributes"), "* filter=evil text eol=crlf ident\n").expect("a file");
        std::fs::write(at.join("a"), "$Id$\n").expect("a file");
    }
    program.write("work/.GIT/config", "IN-A-GIT-DIRECTORY");
    program.write("work/file/.git", "gitdir: ../.git\nIN-A-GIT-DIRECTORY");
    program.write("work/file/b", "one\n");
    shell(&program, "true");
    let before = ["work/.git", "work/nested/.git", "work/.GIT"].map(|path| tree(&program.path(path)));
    let id = newest(&program);
    for path in ["a", "nested/a", "file/b"] {
        program.write(&format!("work/{path}"), "changed");
    }
    succeeded(&undo(&program, &[&id]));
    assert_eq!(["work/.git", "work/nested/.git", "work/.GIT"].map(|path| tree(&program.path(path))), before);
    assert!(!has(&kept(&program), "IN-A-GIT-DIRECTORY"));
    for (path, text) in [("a", "$Id$\n"), ("nested/a", "$Id$\n"), ("file/b", "one\n")] {
        assert_eq!(std::fs::read_to_string(work.join(path)).expect("a file"), text, "{path}");
    }
    assert!(!program.path("ran").exists(), "a program of the workspace's settings ran");
    assert!(work.join("file/.git").exists());
}

#[test]
fn git_finds_no_fault_with_what_is_kept() {
    let program = program();
    program.write("work/a", "one");
    program.write("work/a.b", "one");
    program.write("work/a-c", "");
    program.write("work/d/large", "x".repeat(200_000));
    symlink("a", program.path("work/l")).expect("a link");
    shell(&program, "true");
    shell(&program, "echo two > a");
    for store in stores(&program) {
        git(&store, &["--git-dir=.", "fsck", "--full", "--strict"]);
        let objects = git(&store, &["--git-dir=.", "cat-file", "--batch-all-objects", "--batch-check"]);
        assert!(objects.contains(" tree ") && objects.contains(" blob 200000"), "{objects}");
    }
}

#[test]
fn pipes_sockets_and_huge_files_hold_nothing_up() {
    let program = program();
    let work = program.path("work");
    program.write("work/a", "one");
    mknodat(CWD, work.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    mknodat(CWD, work.join(".ignore"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).expect("a socket");
    std::fs::File::create(work.join("huge")).expect("a file").set_len(1 << 40).expect("a size");
    let told = shell(&program, "true");
    assert!(told.contains("too large for a checkpoint") && told.contains("`huge`"), "{told}");
    let id = newest(&program);
    program.write("work/a", "two");
    succeeded(&undo(&program, &[&id]));
    assert_eq!(std::fs::read_to_string(work.join("a")).expect("a file"), "one");
    assert!(work.join("pipe").exists() && work.join("socket").exists());
    assert_eq!(std::fs::metadata(work.join("huge")).expect("a file").len(), 1 << 40);
}

#[test]
fn two_hundred_megabytes_are_kept_and_the_largest_left_out() {
    let program = program();
    for at in 0..8 {
        let mut bytes = vec![at; 30 << 20];
        bytes.truncate((30 << 20) - usize::from(at));
        program.write(&format!("work/{at}"), bytes);
    }
    program.write("work/small", "one");
    let told = shell(&program, "true");
    assert!(told.contains("`0`, `1`") && !told.contains("`small`"), "{told}");
    let bytes: u64 = stores(&program)
        .iter()
        .map(|store| {
            let packs = std::fs::read_dir(store.join("objects/pack")).expect("packs");
            packs.map(|pack| pack.expect("an entry").metadata().expect("a file").len()).sum::<u64>()
        })
        .sum();
    assert!(bytes <= 201 << 20, "{bytes}");
}

#[test]
fn odd_names_come_back_and_reach_no_terminal() {
    let program = program();
    let work = program.path("work");
    let names: [&[u8]; 5] = [b"not\xff\xfeutf8", b"new\nline", b"bell\x07\x1b[31mred", b" -rf", b"a\\b\"c'd"];
    for name in names {
        std::fs::create_dir(work.join(OsStr::from_bytes(name))).expect("a directory");
        std::fs::write(work.join(OsStr::from_bytes(name)).join(OsStr::from_bytes(name)), "one").expect("a file");
    }
    shell(&program, "true");
    let id = newest(&program);
    for name in names {
        std::fs::remove_dir_all(work.join(OsStr::from_bytes(name))).expect("removed");
    }
    for arguments in [&[&*id, "--diff"][..], &[&id]] {
        let told = succeeded(&undo(&program, arguments));
        assert!(told.contains("bell"), "{told}");
        assert!(!told.contains('\x1b') && !told.contains('\x07') && !told.contains("new\nline"), "{told:?}");
    }
    for name in names {
        let path = work.join(OsStr::from_bytes(name)).join(OsStr::from_bytes(name));
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "one");
    }
}

/// A workspace of such a name has no checkpoint that is asked for by it; its commands run.
#[test]
fn a_workspace_whose_name_is_not_text_is_told() {
    let program = program();
    let work = program.path("work").join(OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&work).expect("a directory");
    let mut call = program.command(&["--yes", "call", "run_shell", &command("true").to_string()]);
    let told = succeeded(&call.current_dir(work).output().expect("it runs"));
    assert!(told.contains("no checkpoint of the workspace was taken"), "{told}");
}

#[test]
fn nothing_in_a_cell_reaches_the_store() {
    let program = Program::new();
    program.write("work/a", "one");
    shell(&program, "true");
    let (store, before) = (program.path("state/toolcrib/undo"), kept(&program));
    let told = shell(
        &program,
        &format!("echo x > {0}/x; ls {0}; find {0} -type f -exec rm {{}} +; echo end", store.display()),
    );
    assert!(told.contains("end") && !store.join("x").exists(), "{told}");
    assert_eq!(kept(&program).len(), before.len());
}

#[test]
fn a_closed_directory_and_a_deep_one_are_left_as_they_are() {
    let program = program();
    let work = program.path("work");
    program.write("work/a", "one");
    program.write("work/closed/file", "kept");
    shell(&program, "p=.; for i in $(seq 300); do mkdir d && cd d; done; echo deep > file");
    std::fs::set_permissions(work.join("closed"), std::fs::Permissions::from_mode(0o0)).expect("a mode");
    shell(&program, "true");
    std::fs::set_permissions(work.join("closed"), std::fs::Permissions::from_mode(0o700)).expect("a mode");
    let id = newest(&program);
    program.write("work/a", "two");
    undo(&program, &[&id]);
    assert_eq!(std::fs::read_to_string(work.join("a")).expect("a file"), "one");
    assert_eq!(std::fs::read_to_string(work.join("closed/file")).expect("a file"), "kept");
    assert_eq!(shell(&program, "for i in $(seq 300); do cd d; done; cat file").matches("deep").count(), 1);
}

#[test]
fn too_many_files_are_told_and_commands_run() {
    let program = program();
    let work = program.path("work");
    for directory in 0..101 {
        std::fs::create_dir(work.join(format!("{directory}"))).expect("a directory");
        for file in 0..if directory == 100 { 1 } else { 1000 } {
            std::fs::File::create(work.join(format!("{directory}/{file}"))).expect("a file");
        }
    }
    let told = shell(&program, "echo ran");
    assert!(told.contains("more than 100000 files") && told.contains("ran"), "{told}");
    assert_eq!(code(&undo(&program, &[])), 2);
    // Not counted again for each command.
    let begin = std::time::Instant::now();
    shell(&program, "true");
    println!("{:?} for a command after that", begin.elapsed());
    program.write("work/.ignore", "/1??/\n/9?/\n");
}

#[test]
fn many_sessions_of_one_workspace_agree() {
    let program = program();
    for at in 0..200 {
        program.write(&format!("work/{at}/file"), at.to_string());
    }
    std::thread::scope(|scope| {
        for at in 0..8 {
            let program = &program;
            scope.spawn(move || {
                for turn in 0..4 {
                    shell(program, &format!("echo {turn} > {at}/file; echo {turn} > {at}/new{turn}"));
                }
            });
        }
    });
    for store in stores(&program) {
        git(&store, &["--git-dir=.", "fsck", "--full", "--strict"]);
    }
    let listed = json_of(&undo(&program, &["--list", "--json"]));
    let first = listed.as_array().expect("a list").last().expect("one")["id"].as_str().expect("an id").to_owned();
    succeeded(&undo(&program, &[&first]));
    for at in 0..200 {
        let text = std::fs::read_to_string(program.path("work").join(format!("{at}/file"))).expect("a file");
        assert_eq!(text, at.to_string());
    }
}

/// What is put back is what was kept, or nothing.
#[test]
fn other_bytes_in_the_store_are_put_nowhere() {
    let program = program();
    program.write("work/a", "an-ordinary-text");
    program.write("work/b", "a-forged-text...");
    shell(&program, "true");
    let id = newest(&program);
    program.write("work/a", "two");
    for store in stores(&program) {
        for pack in std::fs::read_dir(store.join("objects/pack")).expect("packs") {
            let path = pack.expect("an entry").path();
            let mut bytes = std::fs::read(&path).expect("a pack");
            let find = |text: &[u8]| memchr::memmem::find(&bytes, text);
            // The other content with its own check sum: a whole object of another name.
            if let (Some(one), Some(other)) = (find(b"an-ordinary-text"), find(b"a-forged-text...")) {
                bytes.copy_within(other..other + 20, one);
                std::fs::write(&path, bytes).expect("a pack");
            }
        }
    }
    let refused = undo(&program, &[&id]);
    assert_ne!(code(&refused), 0, "{}", stdout(&refused));
    assert_eq!(std::fs::read_to_string(program.path("work/a")).expect("a file"), "two");
}

/// Runs commands where the state lies on a small disk that is full.
const STORY: &str = r#"
    state=$1; shift
    mount -t tmpfs -o size=12m,mode=700 tmpfs "$state" || { echo cannot mount; exit 99; }
    "$@" call run_shell "$CALL" || exit 98
    head -c 12500000 /dev/urandom > large
    echo changed > a
    "$@" call run_shell "$CALL" || exit 97
    rm large
    "$@" call run_shell "$CALL" || exit 96
    find "$state/undo" -name '*.tmp'"#;

#[test]
fn a_full_disk_is_told_and_commands_run() {
    let program = program();
    std::fs::create_dir_all(program.path("state/toolcrib")).expect("a state directory");
    let namespaces = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    let base = program.command(&[]);
    let mut story = Command::new("timeout");
    story.args(["120", "unshare", namespaces, "sh", "-c", STORY, "sh"]).arg(program.path("state/toolcrib"));
    story.arg(Program::file()).arg("--yes").current_dir(program.path("work")).env_clear();
    story
        .envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("CALL", command("cat a").to_string());
    program.write("work/a", "one");
    let output = story.output().expect("`timeout` is installed");
    let text = stdout(&output);
    if text.contains("cannot mount") || output.status.code() == Some(1) && text.is_empty() {
        skip!("no disk can be mounted here");
    }
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        !lines[0].contains("checkpoint") && lines[1].contains("no checkpoint of the workspace was taken"),
        "{text}"
    );
    assert!(lines[1].contains("changed") && !lines[2].contains("checkpoint"), "{text}");
}
