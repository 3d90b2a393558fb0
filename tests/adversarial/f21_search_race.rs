//! F-21: somebody swaps directories and files for links that lead outside, all the time, while a guest searches above them.
//! Outcome: each search finds what lies within the grant or leaves it out; not a byte and not a name crosses.
//! Switched off: opening without following links (`NOFOLLOW` of `search/walk.rs`): the secret and its name were found at once, the test failed.

use crate::files::{SECRET, confined};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::is_long;

#[test]
fn what_becomes_a_link_while_a_search_goes_by_leads_nowhere() {
    let duration = Duration::from_secs(if is_long() { 60 } else { 5 });
    let mut siege = confined();
    let (work, outside) = (siege.program.path("work"), siege.program.path("outside"));
    siege.program.write("outside/named-outside", SECRET);
    for at in 0..20 {
        siege.program.write(&format!("work/{at}/d/secret"), "SECRET of the inside");
        symlink(&outside, work.join(format!("{at}/d-link"))).expect("a link");
        siege.program.write(&format!("work/{at}/leaf"), "SECRET of the inside");
        symlink(outside.join("secret"), work.join(format!("{at}/leaf-link"))).expect("a link");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let racers = ["d", "leaf"].map(|name| {
        let (work, stop) = (work.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for at in 0..20 {
                    let (one, other) = (work.join(format!("{at}/{name}")), work.join(format!("{at}/{name}-link")));
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("the names are exchanged");
                }
            }
        })
    });
    let (begin, mut found, mut least) = (Instant::now(), 0, usize::MAX);
    while begin.elapsed() < duration {
        for text in ["SECRET", "secret|outside"] {
            let answer = siege.call("hostile", json!({ "how": "search", "text": text }));
            let saw = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}"));
            assert!(saw.starts_with("Ok(") && !saw.contains(SECRET) && !saw.contains("named-outside"), "{saw}");
            found += saw.matches("of the inside").count();
            least = least.min(saw.matches("of the inside").count());
        }
    }
    stop.store(true, Ordering::Relaxed);
    racers.into_iter().for_each(|racer| racer.join().expect("the racer ends"));
    println!("{found} lines found, at least {least} by one search");
    assert!(found > 0, "nothing was found, so nothing was tried");
    siege.lift();
}
