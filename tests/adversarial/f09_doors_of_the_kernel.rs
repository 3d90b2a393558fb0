//! F-09: `/proc`, `/dev/fd` and their links as doors: to other paths, to open descriptors, to the memory and environment of processes.
//! Outcome: `denied` as a path and behind a link, also where a grant names `/proc` itself.
//! Switched off: `refuse_kernel` (`access/lib.rs`): the test of the grant failed; the confined guest is held by its directories all the same.

use crate::files::{DENIED, SECRET, begun, confined, read, tree, write};
use serde_json::json;
use std::os::unix::fs::symlink;
use toolcrib_tests::{Preparation, Siege};

fn doors(siege: &Siege) -> Vec<String> {
    let (pid, secret) = (siege.pid(), siege.program.path("outside/secret").display().to_string());
    vec![
        format!("/proc/self/root{secret}"),
        format!("/proc/{pid}/root{secret}"),
        format!("/proc/thread-self/root{secret}"),
        format!("/proc/self/task/../root{secret}"),
        "/proc/self/cwd/../outside/secret".into(),
        format!("/proc/{pid}/cwd/../outside/secret"),
        "/proc/self/environ".into(),
        "/proc/self/maps".into(),
        "/proc/self/mem".into(),
        format!("/proc/{pid}/environ"),
        "/proc/1/environ".into(),
        "/proc/self/fd/0".into(),
        "/proc/self/fd/3".into(),
        "/dev/fd/0".into(),
        "/dev/fd/3".into(),
        "/dev/stdin".into(),
        "/dev/stdout".into(),
        "/dev/zero".into(),
        "/dev/mem".into(),
        "/dev/shm/new".into(),
        "/sys/kernel/uevent_helper".into(),
        "/proc/sys/kernel/core_pattern".into(),
        "//proc/self/environ".into(),
        "/tmp/../proc/self/environ".into(),
    ]
}

#[test]
fn no_door_of_the_kernel_opens_to_a_guest() {
    let mut siege = confined();
    let before = tree(&siege.program.path("outside"));
    for (number, door) in doors(&siege).iter().enumerate() {
        symlink(door, siege.program.path(&format!("work/door{number}"))).expect("a link");
        for path in [door.clone(), format!("door{number}")] {
            for saw in [read(&mut siege, &path), write(&mut siege, &path)] {
                assert!(saw.starts_with("Err(") && !saw.contains(SECRET), "{path} ({door}): {saw}");
            }
        }
    }
    for (target, name) in [("/proc/self/root", "root"), ("/proc/self/cwd/..", "above"), ("/proc/self", "self")] {
        symlink(target, siege.program.path(&format!("work/{name}"))).expect("a link");
    }
    let secret = siege.program.path("outside/secret").display().to_string();
    for path in [
        format!("root{secret}"),
        "above/outside/secret".into(),
        "self/environ".into(),
        "self/cwd/../outside/secret".into(),
    ] {
        assert_eq!(read(&mut siege, &path), DENIED, "read {path}");
        assert_eq!(write(&mut siege, &path), DENIED, "write {path}");
    }
    assert_eq!(tree(&siege.program.path("outside")), before);
    siege.lift();
}

#[test]
fn a_grant_that_names_the_kernels_trees_opens_none_of_them() {
    let lists =
        ["read", "write"].map(|key| format!("plugin.hostile.files.{key}=[\"/proc\", \"/dev\", \"/sys\", \"/\"]"));
    let prepared = Siege::with("hostile").allowing("hostile").set(&lists[0]).set(&lists[1]);
    let mut siege = begun(prepared.set("tools.files_allowed_paths=[\"/\", \"/proc\", \"/dev\", \"/sys\"]"));
    for door in doors(&siege) {
        assert_eq!(read(&mut siege, &door), DENIED, "read {door}");
        assert_eq!(write(&mut siege, &door), DENIED, "write {door}");
    }
    siege.lift();
}

#[test]
fn the_tools_that_anybody_has_find_no_open_door_either() {
    let mut siege = begun(Preparation::new());
    for door in doors(&siege) {
        for (tool, arguments) in
            [("read_file", json!({ "path": door })), ("write_file", json!({ "path": door, "content": "planted" }))]
        {
            let refused = siege.failure(tool, arguments);
            assert!(refused.starts_with("denied: "), "{tool} {door}: {refused}");
        }
    }
    siege.lift();
}
