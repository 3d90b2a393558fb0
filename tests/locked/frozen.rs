//! A trail in a directory of root's that a user writes, and root has frozen.
#![expect(clippy::disallowed_methods, reason = "the program runs as another user, and files are given to one")]

use crate::rig::Locked;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolcrib_tests::outcome::{json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, skip, write_program};

/// Thaws the files of a directory in the end, or it could not be removed.
struct Thawed(PathBuf);

impl Drop for Thawed {
    fn drop(&mut self) {
        let _ = Command::new("chattr").args(["-R", "-a"]).arg(&self.0).status();
    }
}

/// Root may freeze a trail that a user writes (`chattr +a`). Nobody but root then ends its file, and no call misses it meanwhile.
#[test]
fn a_frozen_trail_is_written_by_its_user_and_ended_by_root() {
    if !rustix::process::getuid().is_root() {
        skip!("only root can freeze a file");
    }
    let locked = Locked::by(&[]);
    locked.program.write("log/.keep", "");
    let trail = locked.program.path("log/audit.jsonl");
    let locked = locked.and(&format!(
        "[lock]\nplugins = \"pins\"\n[lock.audit]\nfile = {trail:?}\nrequired = true\nseal = \"ratchet\"\n"
    ));
    let (program, own) = (&locked.program, locked.program.path("toolcrib"));
    // A copy that any user can reach.
    write_program(&own, fs::read(Program::file()).expect("the program"));
    let as_root = |line: &[&str]| {
        let done = Command::new(line[0]).args(&line[1..]).status().expect("it is installed");
        done.success()
    };
    assert!(as_root(&["chown", "-R", "1000:1000", &program.path("").display().to_string()]));
    fs::write(&trail, "").expect("made");
    let file = trail.display().to_string();
    assert!(as_root(&["chown", "1000:1000", &file]) && as_root(&["chmod", "600", &file]));
    for roots in ["log", "policy0.toml"] {
        assert!(as_root(&["chown", "root:root", &program.path(roots).display().to_string()]));
    }
    if !as_root(&["chattr", "+a", &file]) {
        skip!("no file can be frozen here");
    }
    let _thawed = Thawed(program.path("log"));
    let user = |arguments: &[&str]| {
        let own = own.display().to_string();
        let mut line = vec!["--reuid=1000", "--regid=1000", "--clear-groups", &own];
        line.extend(locked.under(arguments));
        let envs: Vec<_> =
            program.command(&[]).get_envs().map(|(n, v)| (n.to_owned(), v.map(OsStr::to_owned))).collect();
        let mut command = Command::new("setpriv");
        command.args(line).env_clear().current_dir(program.path("work"));
        command.envs(envs.into_iter().filter_map(|(name, value)| Some((name, value?)))).output().expect("it runs")
    };
    // Root's own settings are not the user's.
    let root = Program::new();
    // Its key is root's to make, where the user may make no file, and the user's to use.
    let key = stdout(&root.run(&locked.under(&["audit", "init"]))).lines().next().expect("a key").to_owned();
    root.write("key", key);
    for _ in 0..3 {
        succeeded(&user(&["call", "time"]));
    }
    let refused = user(&["audit", "rotate"]);
    assert!(stderr(&refused).contains("run this as root"), "{}", stderr(&refused));
    let ended = json_of(&root.run(&locked.under(&["audit", "rotate", "--json"])));
    let frozen = |file: &Path| {
        let listed = Command::new("lsattr").arg(file).output().expect("it is installed");
        stdout(&listed).split_whitespace().next().is_some_and(|flags| flags.contains('a'))
    };
    let old = PathBuf::from(ended["ended"].as_str().expect("a file"));
    assert!(frozen(&trail) && frozen(&old), "{ended}");
    succeeded(&user(&["call", "time"]));
    let report = json_of(&root.run(&locked.under(&[
        "audit",
        "verify",
        "--key",
        &root.path("key").display().to_string(),
        "--json",
    ])));
    assert_eq!((&report["whole"], &report["files"]), (&json!(true), &json!(2)), "{report}");
    assert!(report["seals"].as_u64() >= Some(4), "{report}");
}
