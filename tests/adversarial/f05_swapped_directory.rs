//! F-05: somebody swaps a directory and a file for links that lead outside, all the time, while a guest reads and writes there.
//! Outcome: each call reads or writes within the grant or is refused; not a byte crosses.
//! Switched off: opening step by step without following links (`backend/files.rs`, `open_parent`): the secret was read within 2 s, the test failed.

use crate::files::{SECRET, confined, read, tree, write};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::is_long;

/// Exchanges two names until it is told to stop.
fn race(one: PathBuf, other: PathBuf, stop: Arc<AtomicBool>, swaps: Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("the names are exchanged");
            swaps.fetch_add(1, Ordering::Relaxed);
        }
    })
}

#[test]
fn a_directory_that_becomes_a_link_between_check_and_use_leads_nowhere() {
    let duration = Duration::from_secs(if is_long() { 60 } else { 5 });
    let mut siege = confined();
    let (work, outside) = (siege.program.path("work"), siege.program.path("outside"));
    for directory in ["reading", "writing"] {
        siege.program.write(&format!("work/{directory}/secret"), "inside");
        symlink(&outside, work.join(format!("{directory}-link"))).expect("a link");
        // The leaf as well: a file, and a link to one outside.
        siege.program.write(&format!("work/{directory}-leaf"), "inside");
        symlink(outside.join("secret"), work.join(format!("{directory}-leaf-link"))).expect("a link");
    }
    let before = tree(&outside);
    let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let racers: Vec<_> = ["reading", "reading-leaf", "writing", "writing-leaf"]
        .map(|name| race(work.join(name), work.join(format!("{name}-link")), stop.clone(), swaps.clone()))
        .into();
    let (begin, mut passed, mut refused) = (Instant::now(), [0; 4], [0; 4]);
    while begin.elapsed() < duration {
        for (index, path) in
            ["reading/secret", "reading-leaf", "writing/secret", "writing-leaf"].into_iter().enumerate()
        {
            let saw = if index < 2 { read(&mut siege, path) } else { write(&mut siege, path) };
            assert!(!saw.contains(SECRET), "{path} was read through the link");
            assert!(index > 1 || saw == "Ok(\"inside\")" || saw.starts_with("Err("), "{path}: {saw}");
            if saw.starts_with("Ok(") { passed[index] += 1 } else { refused[index] += 1 }
        }
    }
    stop.store(true, Ordering::Relaxed);
    racers.into_iter().for_each(|racer| racer.join().expect("the racer ends"));
    println!("{} swaps; calls that passed {passed:?}, that were refused {refused:?}", swaps.load(Ordering::Relaxed));
    assert_eq!(tree(&outside), before, "a byte was written outside");
    // Both sides of the race were met, or nothing was tested. (Writing replaces the very leaf that is swapped, so there refusals are rare.)
    assert!(passed.iter().chain(&refused[..3]).all(|calls| *calls > 0), "{passed:?} {refused:?}");
    siege.lift();
}
