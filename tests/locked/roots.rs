//! Who can have written `/etc/toolcrib/policy.toml`: root, on a way that is root's alone, or nothing starts.
//!
//! Each story happens below an `/etc` of its own, in a mount namespace.
#![expect(clippy::disallowed_methods, reason = "the program runs where an /etc of its own is mounted")]

use serde_json::{Value, json};
use std::process::{Command, Output};
use toolcrib_tests::outcome::{code, stderr, stdout};
use toolcrib_tests::{Program, is_long, skip, write_program};

/// Mounts an empty `/etc`, runs `$PREPARE` in it, then the rest of the arguments.
const STORY: &str = r#"
    mount -t tmpfs -o mode=755 tmpfs /etc || { echo cannot mount; exit 99; }
    mkdir /etc/toolcrib
    cd /etc/toolcrib && eval "$PREPARE" || { echo cannot prepare; exit 98; }
    cd "$WORK"; exec "$@""#;

/// What `toolcrib tools` says where `prepare` made the machine's policy; none where nothing can be mounted.
fn tools(prepare: &str) -> Option<Output> {
    let program = Program::new();
    below_an_etc(&program, prepare, &[&Program::file().display().to_string(), "tools"])
}

fn below_an_etc(program: &Program, prepare: &str, line: &[&str]) -> Option<Output> {
    let output = command_below_an_etc(program, prepare, line).output().expect("`timeout` is installed");
    is_mounted(&output).then_some(output)
}

/// Whether a line came to run below its `/etc`.
pub(crate) fn is_mounted(output: &Output) -> bool {
    ![Some(98), Some(99)].contains(&output.status.code()) && !stderr(output).contains("unshare")
}

/// A line that runs where `prepare` made the machine's policy.
pub(crate) fn command_below_an_etc(program: &Program, prepare: &str, line: &[&str]) -> Command {
    let namespaces = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    let base = program.command(&[]);
    let mut command = Command::new("timeout");
    command.args(["60", "unshare", namespaces, "sh", "-c", STORY, "sh"]).args(line).env_clear();
    command
        .envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PREPARE", prepare)
        .env("WORK", program.path("work"));
    command
}

const LOCK: &str = "printf '[lock]\\nplugins = \"pins\"\\nbuiltin = [\"time\"]\\n' > policy.toml";

#[test]
fn a_policy_of_root_alone_is_in_force() {
    for prepare in [LOCK, &format!("{LOCK} && chmod 400 policy.toml")] {
        let Some(output) = tools(prepare) else { skip!("no /etc of its own can be mounted") };
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(stdout(&output).contains("time") && !stdout(&output).contains("run_shell"), "{}", stdout(&output));
    }
}

/// Without a policy, also below directories that nobody has made, everything is as it was.
#[test]
fn where_there_is_no_policy_nothing_is_locked() {
    for prepare in ["true", "rmdir /etc/toolcrib; cd /etc"] {
        let Some(output) = tools(prepare) else { skip!("no /etc of its own can be mounted") };
        assert!(stdout(&output).contains("run_shell"), "{}", stderr(&output));
    }
}

/// L-30: a program that was built to want a policy (`tests/run --long` does, and names it) does nothing without one, and is any other with one.
#[test]
fn a_program_that_wants_a_policy_does_not_start_without() {
    let Some(file) = std::env::var_os("TOOLCRIB_WANTS_POLICY") else {
        assert!(!is_long(), "`tests/run --long` builds the program");
        return;
    };
    let file = file.into_string().expect("a path");
    for (prepare, expected) in [("true", 2), ("rmdir /etc/toolcrib; cd /etc", 2), (LOCK, 0)] {
        let Some(output) = below_an_etc(&Program::new(), prepare, &[&file, "tools"]) else {
            skip!("no /etc of its own can be mounted")
        };
        assert_eq!(code(&output), expected, "{prepare}: {}", stderr(&output));
        let named = stderr(&output).contains("/etc/toolcrib/policy.toml");
        assert_eq!((named, stdout(&output).contains("time")), (expected == 2, expected == 0), "{}", stderr(&output));
    }
}

/// L-28 to L-30: what others could have written, or what leads elsewhere, is not obeyed and not passed over: nothing starts.
#[test]
fn a_policy_that_others_could_have_written_stops_the_start() {
    let with = |more: &str| format!("{LOCK} && {more}");
    for (prepare, expected) in [
        (with("chmod 666 policy.toml"), "`/etc/toolcrib/policy.toml` can be written by others (mode 0666)"),
        (with("chmod 664 policy.toml"), "`/etc/toolcrib/policy.toml` can be written by others (mode 0664)"),
        (with("chmod 777 /etc/toolcrib"), "`/etc/toolcrib` can be written by others (mode 0777)"),
        (with("chmod 1777 /etc/toolcrib"), "`/etc/toolcrib` can be written by others (mode 1777)"),
        (
            with("mv policy.toml p && ln -s p policy.toml"),
            "`/etc/toolcrib/policy.toml` is a link, which is not followed",
        ),
        (with("cd /etc && mv toolcrib t && ln -s t toolcrib"), "`/etc/toolcrib` is a link, which is not followed"),
        ("ln -s /nowhere policy.toml".into(), "`/etc/toolcrib/policy.toml` is a link, which is not followed"),
        ("cd /etc && rmdir toolcrib && ln -s /nowhere toolcrib".into(), "`/etc/toolcrib` is a link"),
        ("mkfifo policy.toml".into(), "not a regular file"),
        ("mkdir policy.toml".into(), "not a regular file"),
        ("head -c 300000 /dev/zero > policy.toml".into(), "longer than 256 KiB"),
        ("echo '[lock' > policy.toml".into(), "policy.toml:1:"),
    ] {
        let Some(output) = tools(&prepare) else { skip!("no /etc of its own can be mounted") };
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{prepare}");
        assert!(stderr(&output).contains(expected), "{prepare}: {}", stderr(&output));
    }
}

/// L-29: what belongs to another user than root, as far as a test that is not root's can make such a thing.
#[test]
fn a_policy_of_another_user_than_root_stops_the_start() {
    if !rustix::process::getuid().is_root() {
        skip!("only root can give a file to somebody else");
    }
    for (change, named) in [("chown 1000 policy.toml", "/etc/toolcrib/policy.toml"), ("chown 1000 .", "/etc/toolcrib")]
    {
        let Some(output) = tools(&format!("{LOCK} && {change}")) else { skip!("no /etc of its own can be mounted") };
        assert_eq!(code(&output), 2);
        let expected = format!("`{named}` belongs to uid 1000, not to root (chown root '{named}')");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}

/// The level is that of who runs the program: root can change the policy, a user cannot.
#[test]
fn a_user_is_locked_and_root_is_not() {
    if !rustix::process::getuid().is_root() {
        skip!("only root can run a program as somebody else");
    }
    let program = Program::new();
    let own = program.path("toolcrib");
    // A copy that any user can reach.
    write_program(&own, std::fs::read(Program::file()).expect("the program"));
    let (own, home) = (own.display().to_string(), program.path("").display().to_string());
    let check = [&own, "policy", "check", "--json"];
    let user = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"];
    let level = |line: &[&str]| {
        let output = below_an_etc(&program, LOCK, line)?;
        let seen: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert!(seen["locks"][0]["place"] == "/etc/toolcrib/policy.toml:2", "{seen}");
        Some((seen["level"].clone(), seen["why"].as_str().unwrap().to_owned()))
    };
    let Some((as_root, why)) = level(&check) else { skip!("no /etc of its own can be mounted") };
    assert_eq!((as_root, why.contains("runs as root")), (json!(0), true), "{why}");
    let given = Command::new("chown").args(["-R", "1000:1000", &home]).status().expect("`chown` is there");
    assert!(given.success());
    let (as_user, why) = level(&[&user[..], &check].concat()).expect("it was mounted before");
    assert_eq!((as_user, why.contains("gets a plugin past the policy")), (json!(1), true), "{why}");
}
