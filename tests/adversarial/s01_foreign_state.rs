//! S-01: a state directory, compile cache, key or token of another user, or one that others may write or have linked.
//! Outcome: nothing of it is believed or written: calls run without it and a notice says what to change, `serve` refuses the token.
//! Switched off: with `check_owner` and `check_mode` in `disk.rs` always `Ok`, the foreign code was run and the foreign token served.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Output, Stdio};
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::{Program, skip};

/// A user who is not us.
const OTHER: u32 = 65534;

/// A call of a plugin that has to be asked what it offers: the built-in one of these bytes, whose words are known, is switched off.
const CALL: [&str; 5] = ["call", "--set", "plugin.time.enabled=false", "time", "format=epoch"];
/// What that says of itself is more than 1 KiB, what it answers is less: under this bound only code and definitions from the cache can answer.
const FEW_BYTES: [&str; 2] = ["--set", "limits.host_call_kib=1"];

fn believes_the_cache(program: &Program) -> bool {
    let output = program.run(&[&CALL[..], &FEW_BYTES].concat());
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(10), "{}", said(&output));
    code == Some(0)
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A program with that plugin in its cache.
fn warm() -> Program {
    let program = Program::new();
    let bytes = BUILTINS.iter().find(|builtin| builtin.name == "time").expect("it is built in").bytes;
    program.write("data/toolcrib/plugins/clock.wasm", bytes);
    let output = program.run(&CALL);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(believes_the_cache(&program), "the cache of this user is used");
    program
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The program's state is changed so that it is not this user's own any more.
fn is_not_believed(program: &Program, path: &Path, reason: &str) {
    assert!(!believes_the_cache(program), "`{}`: {reason}: believed", path.display());
    let output = program.run(&CALL);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "a call works without: {said}");
    let notice = format!("notice: compiled code is not kept: `{}` {reason}", path.display());
    assert!(said.contains(&notice), "`{notice}` is not in: {said}");
}

#[test]
fn a_state_directory_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give files to another user");
    }
    let program = warm();
    let state = program.path("state/toolcrib");
    let trail = std::fs::read(state.join("audit.jsonl")).expect("a trail");
    for name in ["", "code", "code.key", "audit.jsonl", "output"] {
        chown(state.join(name), Some(OTHER), Some(OTHER)).expect("another owner");
    }
    is_not_believed(&program, &state, "belongs to uid 65534, and this program runs as uid 0");
    assert!(trail == std::fs::read(state.join("audit.jsonl")).expect("a trail"), "something was written");
    assert!(!state.join("serve.token").exists());
}

#[test]
fn a_key_of_another_user_in_a_directory_of_ours_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give files to another user");
    }
    let program = warm();
    let key = program.path("state/toolcrib/code.key");
    chown(&key, Some(OTHER), None).expect("another owner");
    is_not_believed(&program, &key, "belongs to uid 65534, and this program runs as uid 0");
    let program = warm();
    let code = program.path("state/toolcrib/code");
    chown(&code, Some(OTHER), None).expect("another owner");
    is_not_believed(&program, &code, "belongs to uid 65534, and this program runs as uid 0");
}

#[test]
fn a_key_that_others_may_read_or_write_is_not_used() {
    for (name, mode, reason) in [
        ("code.key", 0o644, "is open to others (mode 0644)"),
        ("code.key", 0o660, "can be written by others (mode 0660)"),
        ("code", 0o777, "can be written by others (mode 0777)"),
        ("", 0o770, "can be written by others (mode 0770)"),
    ] {
        let program = warm();
        let path = program.path("state/toolcrib").join(name);
        let path: std::path::PathBuf = path.components().collect();
        chmod(&path, mode);
        is_not_believed(&program, &path, reason);
    }
}

#[test]
fn a_key_or_directory_that_is_linked_is_not_used() {
    for name in ["code.key", "code", ""] {
        let program = warm();
        let path: std::path::PathBuf = program.path("state/toolcrib").join(name).components().collect();
        let elsewhere = program.path("elsewhere");
        std::fs::rename(&path, &elsewhere).expect("a new name");
        symlink(&elsewhere, &path).expect("a link");
        is_not_believed(&program, &path, "is a link, which is not followed here");
    }
    let program = warm();
    let key = program.path("state/toolcrib/code.key");
    std::fs::hard_link(&key, program.path("elsewhere")).expect("a hard link");
    is_not_believed(&program, &key, "has another name (a hard link)");
}

/// How a server of HTTP ends that should not begin, and what it says; one that listens is ended.
fn serve(program: &Program, options: &[&str]) -> (Option<i32>, String) {
    let mut server = program.command(&[&["serve", "--http", "0"], options].concat());
    let mut server = server.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut text = String::new();
    for line in BufReader::new(server.stderr.take().expect("piped")).lines() {
        text += &format!("{}\n", line.expect("text"));
        if text.contains("listening on") {
            server.kill().expect("our own child");
        }
    }
    (server.wait().expect("it ends").code(), text)
}

#[test]
fn a_token_that_another_user_may_know_is_not_served() {
    let token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";
    let planted = || {
        let program = Program::new();
        program.write("state/toolcrib/serve.token", token);
        let (state, file) = (program.path("state/toolcrib"), program.path("state/toolcrib/serve.token"));
        chmod(&state, 0o700);
        chmod(&file, 0o600);
        (program, state, file)
    };
    let (program, _, file) = planted();
    chmod(&file, 0o644);
    let (code, text) = serve(&program, &[]);
    assert_eq!(code, Some(10), "{text}");
    assert!(text.contains("is open to others (mode 0644)") && text.contains("chmod go-rwx"), "{text}");
    let (program, _, file) = planted();
    std::fs::rename(&file, program.path("elsewhere")).expect("a new name");
    symlink(program.path("elsewhere"), &file).expect("a link");
    let (code, text) = serve(&program, &[]);
    assert!(code == Some(10) && text.contains("is a link"), "{text}");
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give files to another user");
    }
    for which in 0..2 {
        let (program, state, file) = planted();
        chown([state, file][which].as_path(), Some(OTHER), None).expect("another owner");
        let (code, text) = serve(&program, &[]);
        assert!(code == Some(10) && text.contains("belongs to uid 65534"), "{text}");
    }
    let (program, _, file) = planted();
    std::fs::rename(&file, program.path("given")).expect("a new name");
    chown(program.path("given"), Some(OTHER), None).expect("another owner");
    let (code, text) = serve(&program, &["--token-file", "../given"]);
    assert!(code == Some(2) && text.contains("belongs to uid 65534"), "{text}");
}

#[test]
fn doctor_says_what_to_change() {
    let program = Program::cold();
    let state = program.path("state/toolcrib");
    std::fs::create_dir(&state).expect("a state directory");
    chmod(&state, 0o777);
    let output = program.run(&["doctor"]);
    let change = format!("can be written by others (mode 0777) (chmod go-w '{}')", state.display());
    assert!(output.status.code() == Some(1) && said(&output).contains(&change), "{}", said(&output));
}

#[test]
fn a_directory_of_plugins_is_made_for_this_user_alone_whatever_the_umask() {
    let program = Program::new();
    let mut server = program.command(&["serve"]);
    #[expect(unsafe_code, reason = "code between fork and exec has no safe form")]
    // SAFETY: this is one system call; it neither allocates nor locks.
    unsafe {
        server.pre_exec(|| {
            rustix::process::umask(rustix::fs::Mode::empty());
            Ok(())
        });
    }
    let output = server.stdin(Stdio::null()).output().expect("the program starts");
    let mode = |name: &str| program.path(name).metadata().expect("it was made").permissions().mode() & 0o777;
    let made = ["data/toolcrib", "data/toolcrib/plugins", "state/toolcrib", "state/toolcrib/output"].map(mode);
    assert_eq!(made, [0o700; 4], "{}", said(&output));
}

#[test]
fn a_plugin_directory_that_others_may_write_is_left_out() {
    let program = Program::new();
    let plugins = program.path("data/toolcrib/plugins");
    let guest = std::fs::read(toolcrib_tests::guest("word_count")).expect("a guest that was built");
    program.write("data/toolcrib/plugins/word_count.wasm", guest);
    for mode in [0o777, 0o755] {
        chmod(&plugins, mode);
        let output = program.run(&["tools"]);
        let is_listed = String::from_utf8_lossy(&output.stdout).contains("word_count");
        let is_noticed = String::from_utf8_lossy(&output.stderr).contains("your own plugins are ignored: `");
        assert_eq!((is_listed, is_noticed), (mode == 0o755, mode == 0o777), "{}", said(&output));
    }
}
