//! F-19: links, FIFOs and second names of keys are planted among kept output, which every tool may read.
//! Outcome: only files of Toolcrib's own are read there; a link counts as what it leads to, a second name of a key is `denied`, nothing waits.
//! Switched off: opening by the directory's descriptor (`output/lib.rs`, `kept`) and comparing names (`access/lib.rs`, `check_identity`): the key was read.

use crate::exec::run;
use crate::files::SECRET;
use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Preparation, Siege};

const OUTPUT: &str = "state/toolcrib/output";

/// A host that has kept the output of a command; returns also its path.
fn keeping() -> (Siege, String) {
    let prepared = Preparation::new().set("confine.mode=off");
    std::fs::create_dir_all(crate::files::root(&prepared).join("home/.ssh")).expect("a directory");
    let mut siege = prepared.begin();
    siege.program.write("home/.ssh/id", SECRET);
    siege.program.write("home/.netrc", SECRET);
    let answer = siege.call("run_shell", command("seq 5000")).to_string();
    let path =
        answer.split("kept as `").nth(1).and_then(|rest| rest.split('`').next()).expect("kept output").to_owned();
    (siege, path)
}

fn read(siege: &mut Siege, name: &str) -> String {
    let path = siege.program.path(OUTPUT).join(name);
    let answer = siege.call("read_file", json!({ "path": path }));
    assert!(!answer.to_string().contains(SECRET), "{name}: {answer}");
    answer["error"]["kind"].as_str().unwrap_or("read").to_owned()
}

#[test]
fn what_was_planted_among_kept_output_is_not_read() {
    let (mut siege, kept) = keeping();
    let planted = "cd ../state/toolcrib/output && ln -s ~/.ssh/id link && ln -s ../code.key key && ln -s /proc/self/environ environ \
        && ln ~/.ssh/id hard && ln ~/.netrc login && ln ../code.key ours && mkdir directory && mkfifo fifo && ln -s fifo around";
    assert_eq!(run(&mut siege, planted)["exit_code"], 0);
    for name in ["link", "key", "environ", "hard", "login", "ours"] {
        assert_eq!(read(&mut siege, name), "denied", "{name}");
    }
    let begin = Instant::now();
    for _ in 0..100 {
        for name in ["directory", "fifo", "around"] {
            assert_eq!(read(&mut siege, name), "execution_failed", "{name}");
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "it was waited for");
    // What is really ours is read on.
    let answer = siege.call("read_file", json!({ "path": kept }));
    assert!(answer["result"].as_str().is_some_and(|text| text.starts_with("1\n2\n")), "{answer}");
    siege.lift();
}

#[test]
fn a_second_name_of_a_key_anywhere_is_not_read() {
    let (mut siege, _) = keeping();
    assert_eq!(
        run(
            &mut siege,
            "ln ~/.ssh/id id && ln ~/.netrc notes && ln ../state/toolcrib/code.key key && echo x >a && ln a b"
        )["exit_code"],
        0
    );
    for path in ["id", "notes", "key"] {
        let answer = siege.call("read_file", json!({ "path": path }));
        assert_eq!(answer["error"]["kind"], "denied", "{path}: {answer}");
    }
    assert_eq!(siege.call("read_file", json!({ "path": "b" }))["result"], "x\n");
    siege.lift();
}
