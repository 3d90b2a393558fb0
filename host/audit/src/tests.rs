//! What becomes of a chain that is written by many, cut, changed, torn, rotated and sealed.

use super::{Audit, Opening, Subject, TRAIL, TrailSettings};
use base::disk::OwnDir;
use chained_log::chain::{Chain, Head};
use chained_log::verify::{Fault, Known, Whole, files, verify};
use config::trail::Keeping;
use proptest::prelude::*;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Trail {
    directory: tempfile::TempDir,
    keeping: Keeping,
}

impl Trail {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), keeping: Keeping::default() }
    }

    /// One of `lines` lines.
    fn of(lines: usize) -> Self {
        let trail = Self::new();
        trail.add(lines);
        trail
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state/audit.jsonl")
    }

    /// As another process opens it.
    fn chain(&self) -> Chain {
        let directory = OwnDir::open(&self.directory.path().join("state")).expect("a directory of ours");
        Chain::open(directory, "audit.jsonl", self.keeping, false).expect("a trail")
    }

    fn add(&self, lines: usize) {
        let chain = self.chain();
        (0..lines).for_each(|_| chain.append(&[line()], None).expect("written"));
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(self.path()).expect("a trail").lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.path(), text).expect("written");
    }

    fn append(&self, bytes: &[u8]) {
        File::options().append(true).open(self.path()).and_then(|mut file| file.write_all(bytes)).expect("written");
    }

    fn check(&self, known: Known) -> Result<Whole, Fault> {
        verify(&files(&self.path()).expect("files"), known)
    }

    fn whole(&self) -> Whole {
        self.check(Known::default()).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// The line that does not hold, and why.
    fn broken(&self, known: Known) -> (u64, String) {
        match self.check(known) {
            Err(Fault::Broken { line, reason, .. }) => (line, reason),
            other => panic!("not broken: {other:?}"),
        }
    }
}

/// A line that no other is like.
fn line() -> Vec<u8> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!(r#"{{"event":"accepted","tool":"time{}"}}"#, NUMBER.fetch_add(1, Ordering::Relaxed)).into_bytes()
}

fn head(trail: &Trail) -> Head {
    Head::of(&trail.path()).expect("readable").expect("a line")
}

#[test]
fn lines_of_many_writers_are_one_chain() {
    let trail = Trail::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| trail.add(200));
        }
    });
    assert_eq!((trail.whole().head.n, trail.lines().len()), (1600, 1600));
}

/// L-41: each kind of tampering is found, at its first line.
#[test]
fn the_first_line_that_was_changed_is_named() {
    let whole = Trail::of(10).lines();
    let foreign = Trail::new();
    foreign.chain().append(&[br#"{"event":"accepted","tool":"other"}"#.to_vec()], None).expect("written");
    type Tamper<'t> = (&'t str, Box<dyn Fn(&mut Vec<String>) + 't>, u64);
    let tampers: [Tamper<'_>; 7] = [
        ("edited", Box::new(|lines| lines[4] = lines[4].replace("time", "none")), 6),
        ("removed", Box::new(|lines| _ = lines.remove(4)), 5),
        ("swapped", Box::new(|lines| lines.swap(4, 5)), 5),
        ("inserted", Box::new(|lines| lines.insert(4, lines[3].clone())), 5),
        ("another host's", Box::new(|lines| lines[0] = foreign.lines().remove(0)), 2),
        ("no line of ours", Box::new(|lines| lines.insert(4, "{}".into())), 5),
        ("renumbered", Box::new(|lines| lines[4] = lines[4].replace("\"n\":5", "\"n\":50")), 5),
    ];
    for (what, tamper, expected) in tampers {
        let (trail, mut lines) = (Trail::of(1), whole.clone());
        tamper(&mut lines);
        trail.write(&lines);
        assert_eq!(trail.broken(Known::default()).0, expected, "{what}");
    }
}

/// L-42: a trail without its end is a good trail, unless somebody knows more of it.
#[test]
fn a_cut_end_shows_against_what_was_noted() {
    let trail = Trail::of(10);
    let (noted, lines) = (head(&trail), trail.lines());
    assert!(trail.check(Known { since: Some(noted), ..Known::default() }).is_ok());
    trail.write(&lines[..7]);
    assert_eq!(trail.whole().head.n, 7);
    assert!(matches!(trail.check(Known { since: Some(noted), ..Known::default() }), Err(Fault::Cut(_))));
    // What is written after the cut cannot fill the hole.
    trail.add(3);
    assert!(trail.broken(Known { since: Some(noted), ..Known::default() }).1.contains("another than the one"));
}

#[test]
fn who_writes_while_the_trail_is_cut_does_not_forget_what_stood_there() {
    let trail = Trail::new();
    let chain = trail.chain();
    (0..10).for_each(|_| chain.append(&[line()], None).expect("written"));
    trail.write(&trail.lines()[..7]);
    chain.append(&[line()], None).expect("written");
    let (line, reason) = trail.broken(Known::default());
    assert_eq!((line, reason.as_str()), (8, "line 11 stands where line 8 should: 3 lines are missing"));
}

#[test]
fn who_writes_while_the_last_line_is_changed_goes_on_from_what_stood_there() {
    let trail = Trail::new();
    let chain = trail.chain();
    (0..3).for_each(|_| chain.append(&[line()], None).expect("written"));
    let mut lines = trail.lines();
    lines[2] = lines[2].replace("accepted", "changed!!!");
    trail.write(&lines);
    chain.append(&[line()], None).expect("written");
    assert_eq!(trail.broken(Known::default()).0, 4);
}

/// L-45: half a line, as a killed process leaves it, is recorded by a line `torn`, and the chain goes on.
#[test]
fn half_a_line_is_told_of() {
    for piece in [&b"{\"n\":3,\"prev"[..], b"x", b"not ours\n", b"two\nlines\n", b"\n", "\u{2028}\"\\".as_bytes()] {
        let trail = Trail::of(2);
        trail.append(piece);
        trail.add(2);
        let whole = trail.whole();
        assert_eq!((whole.head.n, whole.torn), (5, 1), "{piece:?}");
    }
    let trail = Trail::of(2);
    trail.append(b"{\"n\":3");
    assert_eq!((trail.whole().head.n, trail.whole().unfinished), (2, 6));
}

#[test]
fn a_line_that_tells_of_other_bytes_holds_nothing_together() {
    let trail = Trail::of(2);
    trail.append(b"half");
    trail.add(1);
    let text = std::fs::read_to_string(trail.path()).expect("a trail");
    std::fs::write(trail.path(), text.replacen("half", "calf", 1)).expect("written");
    assert_eq!(trail.broken(Known::default()).0, 3);
}

#[test]
fn more_than_this_program_writes_is_not_searched() {
    let trail = Trail::of(2);
    let file = File::options().write(true).open(trail.path()).expect("a trail");
    file.set_len(65 << 20).expect("a long file");
    let error = trail.chain().append(&[line()], None).expect_err("64 MiB without a line");
    assert!(error.to_string().contains("move it away"), "{error}");
}

/// Each file goes on from the one before; L-43: a hole between two is named, and only the oldest may be gone.
#[test]
fn full_files_are_renamed_and_the_chain_goes_on() {
    let mut trail = Trail::new();
    // So small that others fill and rename a new file before the one that made it has its lock.
    trail.keeping = Keeping { rotate_bytes: 400, keep: 3, ..Keeping::default() };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| trail.add(60));
        }
    });
    let whole = trail.whole();
    assert!(whole.files == 4 && whole.first > 1, "{whole:?}");
    let found = files(&trail.path()).expect("files");
    assert!(found[0].file_name().is_some_and(|name| name.to_str().is_some_and(|name| name.starts_with("audit-000"))));
    std::fs::remove_file(&found[1]).expect("removed");
    assert!(trail.broken(Known::default()).1.contains("lines are missing"));
    std::fs::remove_file(&found[0]).expect("removed");
    trail.whole();
}

#[test]
fn a_new_file_goes_on_where_the_last_one_ended() {
    let mut trail = Trail::new();
    trail.keeping = Keeping { rotate_bytes: 1000, ..Keeping::default() };
    trail.add(20);
    let before = trail.whole();
    std::fs::remove_file(trail.path()).expect("removed");
    trail.add(1);
    assert!(trail.whole().head.n <= before.head.n, "it goes on from the newest file that is left");
}

const KEY: [u8; 32] = [7; 32];

/// A trail with seals at lines 1001 and so on, and the lines as they were.
fn sealed() -> (Trail, Known) {
    let trail = Trail::new();
    let chain = trail.chain();
    chain.begin_seals(&KEY).expect("a key");
    chain.append(&[br#"{"event":"sealing"}"#.to_vec()], None).expect("written");
    trail.add(2500);
    (trail, Known { key: Some(KEY), ..Known::default() })
}

#[test]
fn seals_hold_with_the_first_key_alone() {
    let (trail, known) = sealed();
    let whole = trail.check(known).expect("whole");
    assert_eq!((whole.seals, whole.last_seal.expect("a seal").0), (2, 2002));
    // All seals taken out, and the chain made anew without them.
    let stripped = Trail::new();
    let chain = stripped.chain();
    chain.append(&[br#"{"event":"sealing"}"#.to_vec()], None).expect("written");
    stripped.add(100);
    assert!(matches!(stripped.check(known), Err(Fault::Cut(_))));
    stripped.add(1200);
    assert!(stripped.broken(known).1.contains("a seal is missing"));
    let (_, reason) = trail.broken(Known { key: Some([8; 32]), ..Known::default() });
    assert!(reason.contains("another key"), "{reason}");
}

/// Who can write everything, the key in use too, forges what comes after the last seal and nothing before it.
#[test]
fn what_was_sealed_cannot_be_written_anew() {
    let (trail, known) = sealed();
    let lines = trail.lines();
    let forged = Trail::new();
    let chain = forged.chain();
    for line in &lines {
        let (_, rest) = line.split_once(",\"event\"").expect("a line");
        let rest = format!("{{\"event\"{}", rest.replace("tool\":\"time", "tool\":\"none"));
        chain.append(&[rest.into_bytes()], None).expect("written");
    }
    assert_eq!(forged.whole().head.n, 2503, "without the key it is a good chain");
    assert_eq!(forged.broken(known).0, 1001);
    let used = std::fs::read_to_string(trail.path().with_file_name("audit.jsonl.key")).expect("a key");
    assert!(!used.contains(&hex::encode(KEY)), "the first key is gone");
}

#[test]
fn a_seal_that_is_missing_shows() {
    let (trail, known) = sealed();
    let lines = trail.lines();
    // Cut before the first seal, then written on: the next seal is of the second epoch.
    trail.write(&lines[..900]);
    trail.add(2000);
    assert!(trail.broken(known).1.contains("should"));
}

#[test]
fn a_seal_that_stands_twice_is_told() {
    let trail = Trail::new();
    let chain = trail.chain();
    chain.begin_seals(&KEY).expect("a key");
    let key = trail.path().with_file_name("audit.jsonl.key");
    let before = std::fs::read(&key).expect("a key");
    chain.append(&[line()], None).expect("written");
    chain.seal().expect("sealed");
    // Killed before the key was written.
    std::fs::write(&key, before).expect("written");
    trail.add(1);
    trail.chain().seal().expect("sealed");
    let whole = trail.check(Known { key: Some(KEY), ..Known::default() }).expect("whole");
    assert_eq!((whole.seals, whole.doubled), (2, 1));
}

/// A program that is called by nobody seals what it wrote when a quarter of an hour has passed, and seals no seal.
#[tokio::test]
async fn what_was_written_is_sealed_in_time_also_while_nothing_is_called() {
    const LOOK: Duration = Duration::from_millis(5);
    let trail = Trail::new();
    trail.chain().begin_seals(&KEY).expect("a key");
    let place = OwnDir::open(&trail.directory.path().join("state")).map(|state| (state, TRAIL.to_owned()));
    let audit = Arc::new(Audit::open(place, &TrailSettings::default(), true, &Opening::default()).0);
    audit.keep_sealed(LOOK);
    // The last field of the key's file: when the last seal was made.
    let file = trail.path().with_file_name("audit.jsonl.key");
    let a_quarter_passes = || {
        let key = std::fs::read_to_string(&file).expect("a key");
        let (before, _) = key.trim_end().rsplit_once(' ').expect("fields");
        // In its place, as the host does it: a file that is emptied first may be read empty.
        let opened = File::options().write(true).open(&file).expect("a key");
        opened.write_all_at(format!("{before} {:020}\n", 1).as_bytes(), 0).expect("written");
    };
    audit.changed("something");
    tokio::time::sleep(LOOK * 6).await;
    assert_eq!(trail.whole().seals, 0, "it is not due yet");
    a_quarter_passes();
    let end = Instant::now() + Duration::from_secs(10);
    while trail.whole().seals == 0 && Instant::now() < end {
        tokio::time::sleep(LOOK).await;
    }
    assert_eq!(trail.check(Known { key: Some(KEY), ..Known::default() }).expect("whole").seals, 1);
    // The next key is written after the seal.
    let epoch = || std::fs::read_to_string(&file).expect("a key").split(' ').nth(1).map(str::to_owned);
    while epoch().is_none_or(|epoch| epoch.ends_with('0')) && Instant::now() < end {
        tokio::time::sleep(LOOK).await;
    }
    let lines = trail.lines().len();
    a_quarter_passes();
    tokio::time::sleep(LOOK * 6).await;
    assert_eq!(trail.lines().len(), lines);
}

/// A look learns how others have gone on, and does not forget it: also with half a line of theirs, and where a full file keeps its name.
#[test]
fn a_look_between_two_lines_does_not_fork_the_chain() {
    for (is_torn, is_keyed) in [(false, false), (true, false), (false, true), (true, true)] {
        let trail = Trail::new();
        let (one, other) = (trail.chain(), trail.chain());
        if is_keyed {
            one.begin_seals(&KEY).expect("a key");
        }
        let write = |chain: &Chain| chain.append(&[line()], None).expect("written");
        for _ in 0..2 {
            write(&one);
            write(&other);
            write(&other);
            if is_torn {
                trail.append(b"half a li");
            }
            one.seal_if_due().expect("nothing is due");
            one.seal_if_due().expect("nothing is due");
            write(&one);
        }
        let whole = trail.whole();
        assert_eq!((whole.torn, whole.unfinished), (if is_torn { 2 } else { 0 }, 0));
    }
}

/// Somebody else's lock is not waited for by a look, and keeps no call waiting.
#[test]
fn a_look_waits_for_nobody() {
    let trail = Trail::of(1);
    let chain = trail.chain();
    chain.append(&[line()], None).expect("written");
    let file = File::open(trail.path()).expect("a trail");
    file.lock().expect("nobody has it");
    let begin = Instant::now();
    chain.seal_if_due().expect("there is time");
    assert!(begin.elapsed() < Duration::from_millis(500));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            file.unlock().expect("it is ours");
        });
        chain.append(&[line()], None).expect("whoever writes waits");
    });
}

/// By hand, also where writers of other processes have the file open: they find the next one.
#[test]
fn a_file_that_is_ended_by_hand_is_followed_by_all_who_write() {
    let trail = Trail::new();
    assert!(trail.chain().rotate_now().is_err_and(|error| error.to_string().contains("no line yet")));
    let chain = trail.chain();
    chain.append(&[line()], None).expect("written");
    for expected in ["audit-000001.jsonl", "audit-000002.jsonl"] {
        trail.append(b"half a li");
        assert_eq!(trail.chain().rotate_now().expect("renamed"), expected);
        assert_eq!(trail.lines().len(), 0);
        assert!(trail.chain().rotate_now().is_err(), "nothing is in it");
        chain.append(&[line()], None).expect("written");
    }
    let whole = trail.whole();
    assert_eq!((whole.files, whole.torn, whole.head.n), (3, 2, 7));
}

/// Root has said that the file keeps its name: it grows on, and no line is lost over it.
#[test]
fn a_frozen_file_is_not_renamed_when_it_is_full() {
    let mut trail = Trail::of(1);
    trail.keeping = Keeping { rotate_bytes: 400, ..Keeping::default() };
    if chained_log::rotate::freeze(&File::open(trail.path()).expect("a trail")).is_err() {
        return; // Only root can, and not everywhere. `locked frozen::…` says so where it is skipped.
    }
    // Two writers, of which each finds what the other has written.
    let (one, other) = (trail.chain(), trail.chain());
    for chain in [&one, &other].into_iter().cycle().take(20) {
        chain.append(&[line()], None).expect("written");
    }
    chained_log::rotate::thaw(&File::open(trail.path()).expect("a trail")).expect("root can");
    assert_eq!((trail.whole().files, trail.lines().len()), (1, 21));
}

/// A program that never gives the lock back holds nobody up.
#[test]
fn a_lock_that_is_kept_is_not_waited_for() {
    let trail = Trail::of(1);
    let holder = File::open(trail.path()).expect("a trail");
    rustix::fs::flock(&holder, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let (chain, begin) = (trail.chain(), Instant::now());
    for _ in 0..100 {
        let error = chain.append(&[line()], None).expect_err("it is locked");
        assert!(error.to_string().contains("holds the lock"), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "only the first waits");
    drop(holder);
    trail.add(1);
    assert_eq!(trail.whole().head.n, 2);
}

#[test]
fn a_process_that_adds_bytes_without_end_holds_no_call_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let place = OwnDir::open(&path).map(|state| (state, TRAIL.to_owned()));
    let (audit, _) = Audit::open(place, &TrailSettings::default(), true, &Opening::default());
    let mut trail = File::options().append(true).open(path.join(TRAIL)).expect("a trail");
    let (sender, done) = std::sync::mpsc::channel();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                trail.write_all(b"x").expect("a byte");
            }
        });
        scope.spawn(move || {
            let subject = Subject {
                call: "1",
                principal: &"cli".into(),
                tool: "time",
                plugin_sha256: None,
                backend: "local",
                toolset: None,
            };
            let recorded = (0..100).all(|_| audit.accepted(subject).is_ok());
            let _ = sender.send(recorded);
        });
        let recorded = done.recv_timeout(Duration::from_secs(10));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(recorded, Ok(true));
    });
}

fn read_all(directory: &Path) -> Result<Whole, Fault> {
    verify(&[directory.join("a"), directory.join("b")], Known { key: Some(KEY), ..Known::default() })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("TOOLCRIB_LONG").is_some() { 20_000 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever stands in the files, checking ends, and ends well.
    #[test]
    fn any_bytes_can_be_checked(one: Vec<u8>, other: Vec<u8>, cuts in prop::collection::vec(0usize..4000, 0..6)) {
        let trail = Trail::of(12);
        let mut bytes = std::fs::read(trail.path()).expect("a trail");
        for cut in cuts {
            let at = cut % bytes.len();
            bytes.splice(at..at, one.iter().copied().take(8));
            let length = bytes.len();
            bytes[cut.wrapping_mul(7) % length] ^= 0x11;
        }
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("a"), &bytes).expect("written");
        std::fs::write(directory.path().join("b"), &other).expect("written");
        let _ = read_all(directory.path());
        // Whoever writes on has a chain again, from the last line that is one.
        std::fs::write(trail.path(), &bytes).expect("written");
        trail.add(1);
        prop_assert!(head(&trail).n >= 1);
    }
}
