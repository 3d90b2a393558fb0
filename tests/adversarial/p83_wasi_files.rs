//! P-83: a component of another world that wants more files than it was granted, by every function of `wasi:filesystem`, and more of them than there is room for.
//! Outcome: nothing outside of the grant is read, named or changed; what `files` cannot do is not supported; what is held is bounded.
//! Switched off: without the bound on what is held (`take` in `capability/wasi/draft.rs`) the second test failed: the host was gone.

use crate::process::peak_mib;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use toolcrib_tests::{Preparation, Siege};

const SECRET: &str = "nothing for plugins";

/// `open` may be read and written, `shown` only read; beside them is what neither reaches.
fn siege() -> Siege {
    let siege = Preparation::new().set("tools.files_confirm=never").guest("raider");
    let work = |path: &str| siege.work(path);
    for directory in ["open", "shown", "closed"] {
        fs::create_dir(work(directory)).expect("a directory");
        fs::write(work(directory).join("a.txt"), if directory == "closed" { SECRET } else { "text" }).expect("a file");
    }
    symlink("../closed", work("open/link")).expect("a link");
    symlink(work("closed/a.txt"), work("open/whole")).expect("a link");
    fs::hard_link(work("closed/a.txt"), work("open/second")).expect("a second name");
    rustix::fs::mknodat(rustix::fs::CWD, work("open/pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    siege.granting("raider", &["--read", "open", "--read", "shown", "--write", "open"]).begin()
}

fn attack(siege: &mut Siege, name: &str, argument: &str) -> Value {
    let answer = siege.call("attack", json!({ "name": name, "argument": argument }));
    println!("{name} {argument:?}: {:.300}", answer.to_string());
    answer
}

#[test]
fn what_was_not_granted_is_neither_seen_nor_changed() {
    let mut siege = siege();
    let closed = siege.program.path("work/closed/a.txt").display().to_string();
    let paths = [
        "../closed/a.txt",
        "a/../../closed/a.txt",
        "link/a.txt",
        "whole",
        "second",
        "closed/a.txt",
        &closed,
        "/etc/hostname",
        "/proc/self/environ",
        "link/../a.txt",
        "..",
        "../../../../etc/passwd",
        ".//../closed/a.txt",
        "a.txt/../../closed/a.txt",
        "~/a.txt",
        "pipe",
        "pipe/x",
    ];
    let before = fs::metadata(&closed).expect("the file").modified().expect("a time");
    for path in paths {
        for name in [
            "open",
            "read",
            "stat",
            "readlink",
            "metadata-hash",
            "write",
            "create",
            "truncate",
            "unlink",
            "set-times",
            "write-through-reader",
            "sync",
        ] {
            let answer = attack(&mut siege, name, path).to_string();
            assert!(!answer.contains(SECRET), "{name} {path}: {answer}");
            assert!(!answer.contains("\"kind\":\"internal\""), "{name} {path}: {answer}");
        }
    }
    for (name, argument) in [
        ("symlink-at", "../closed/a.txt\nnew"),
        ("symlink-at", "/etc/passwd\nnew"),
        ("link-at", "a.txt\nnew"),
        ("link-at", "second\nnew"),
        ("rename-at", "a.txt\nnew"),
        ("rename-at", "a.txt\n../closed/new"),
    ] {
        assert_eq!(attack(&mut siege, name, argument)["error"]["kind"], "execution_failed", "{name} {argument}");
    }
    assert_eq!(fs::read_to_string(&closed).unwrap(), SECRET);
    assert_eq!(fs::metadata(&closed).unwrap().modified().unwrap(), before);
    // By these paths there is one file that it may write: the one in the working directory's own name is none.
    for directory in ["closed", "shown"] {
        let names: Vec<_> = fs::read_dir(siege.program.path(&format!("work/{directory}"))).unwrap().collect();
        assert_eq!(names.len(), 1, "{directory}");
    }
    assert_eq!(fs::read_to_string(siege.program.path("work/shown/a.txt")).unwrap(), "text");
    assert!(!siege.program.path("work/open/new").exists() && !siege.program.path("work/new").exists());
    siege.lift();
}

#[test]
fn what_it_may_do_without_end_has_one() {
    let mut siege = siege();
    for index in 0..12_000 {
        fs::write(siege.program.path(&format!("work/shown/{index}")), "").expect("a file");
    }
    let before = peak_mib(siege.pid());
    for (name, argument) in [
        ("preopens", ""),
        ("streams", "900\nbig"),
        ("set-size", "1099511627776\nbig"),
        ("sparse", "1099511627776\nbig"),
        ("fill", "1073741824\nbig"),
        ("descriptors", "100000\na.txt"),
        ("listing", "."),
        ("listings", "10000\n."),
        ("read", "a.txt"),
    ] {
        let answer = attack(&mut siege, name, argument);
        assert_ne!(answer["error"]["kind"], "internal", "{name}: {answer}");
    }
    let grown = peak_mib(siege.pid()) - before;
    assert!(grown < 160, "{grown} MiB");
    let big = siege.program.path("work/open/big");
    assert!(fs::metadata(big).map_or(0, |found| found.len()) <= 8 << 20, "a file is larger than what is held");
    siege.lift();
}
