use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A workspace with its own state beside it.
struct Bench {
    _place: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
    checkpoints: Checkpoints,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let base = place.path().canonicalize().expect("a directory");
        let (root, home) = (base.join("work"), base.join("home"));
        for path in [&root, &home] {
            std::fs::create_dir(path).expect("a directory");
        }
        Self { _place: place, root, home, checkpoints: Checkpoints::new(&base.join("state/undo")) }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    /// Takes one in a session of its own.
    fn take(&self) -> Option<String> {
        let session = random_id();
        let by = By { call: &random_id(), session: &session, tool: "run_shell" };
        self.checkpoints.take(by, Place { root: &self.root, home: &self.home })
    }

    fn newest(&self) -> Checkpoint {
        self.checkpoints.list().expect("a list").remove(0)
    }

    fn plan(&self, checkpoint: &Checkpoint) -> Plan {
        self.checkpoints.compare(checkpoint, &self.home).expect("a plan")
    }

    fn restore(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let plan = self.plan(checkpoint);
        let by = By { call: "c", session: "", tool: "files undo" };
        let done = self.checkpoints.restore(&plan, by, &|_| true).expect("put back");
        done.into_iter().filter_map(|(path, done)| Some(format!("{}: {}", path.display(), done.err()?))).collect()
    }
}

#[test]
fn a_workspace_is_put_back_and_that_is_undone() {
    let bench = Bench::new();
    for (path, text) in
        [("a", "one"), ("d/b", "two"), ("d/e/c", "three"), (".hidden", "h"), ("turned", "file"), ("gone/x", "x")]
    {
        bench.write(path, text);
    }
    std::fs::set_permissions(bench.root.join("d/b"), std::fs::Permissions::from_mode(0o750)).expect("a mode");
    symlink("d/b", bench.root.join("link")).expect("a link");
    std::fs::create_dir(bench.root.join("empty")).expect("a directory");
    assert_eq!(bench.take(), None);
    let before = bench.newest();
    bench.write("a", "changed");
    std::fs::remove_dir_all(bench.root.join("d")).expect("removed");
    std::fs::remove_dir_all(bench.root.join("empty")).expect("removed");
    std::fs::remove_dir_all(bench.root.join("gone")).expect("removed");
    bench.write("gone", "a file");
    std::fs::remove_file(bench.root.join("turned")).expect("removed");
    bench.write("turned/into/directory", "x");
    std::fs::remove_file(bench.root.join("link")).expect("removed");
    symlink("elsewhere", bench.root.join("link")).expect("a link");
    bench.write("new/file", "new");
    assert_eq!(bench.restore(&before), [""; 0]);
    for (path, text) in
        [("a", "one"), ("d/b", "two"), ("d/e/c", "three"), (".hidden", "h"), ("turned", "file"), ("gone/x", "x")]
    {
        assert_eq!(bench.read(path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(std::fs::metadata(bench.root.join("d/b")).expect("a file").permissions().mode() & 0o777, 0o750);
    assert_eq!(std::fs::read_link(bench.root.join("link")).expect("a link"), Path::new("d/b"));
    assert!(bench.root.join("empty").is_dir() && !bench.root.join("new").exists());
    let undone = bench.newest();
    assert_eq!(undone.why, Why::Undo);
    assert_eq!(bench.restore(&undone), [""; 0]);
    assert_eq!(
        (bench.read("a").as_deref(), bench.read("turned/into/directory").as_deref()),
        (Some("changed"), Some("x"))
    );
    assert_eq!((bench.read("gone").as_deref(), bench.read("new/file").as_deref()), (Some("a file"), Some("new")));
    assert!(!bench.root.join("d").exists());
}

#[test]
fn what_has_not_changed_makes_no_checkpoint_and_each_change_one() {
    let bench = Bench::new();
    let count = || bench.checkpoints.list().expect("a list").len();
    for at in 0..50 {
        bench.write(&format!("{}/{at}", at % 7), "x");
    }
    std::thread::sleep(Duration::from_millis(40));
    bench.take();
    bench.take();
    assert_eq!(count(), 1);
    // Each kind of change, also one that leaves size and time as they were.
    let file = bench.root.join("3/3");
    let time = std::fs::metadata(&file).expect("a file").modified().expect("a time");
    std::fs::write(&file, "y").expect("a file");
    std::fs::File::options().write(true).open(&file).expect("a file").set_modified(time).expect("a time");
    bench.take();
    assert_eq!(count(), 2);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    bench.take();
    assert_eq!(count(), 3);
    std::fs::remove_file(&file).expect("removed");
    bench.take();
    assert_eq!(count(), 4);
    bench.write("3/deep/er/file", "new");
    bench.take();
    assert_eq!(count(), 5);
    // At the same moment as a look, so that its times are not those of a later change.
    for text in ["a", "b", "c"] {
        bench.write("racy", text);
        bench.take();
        let newest = bench.newest();
        bench.write("racy", "other");
        bench.restore(&newest);
        assert_eq!(bench.read("racy").as_deref(), Some(text));
    }
}

#[test]
fn a_session_has_one_a_minute() {
    let bench = Bench::new();
    let by = By { call: "c", session: "s", tool: "run_shell" };
    let place = Place { root: &bench.root, home: &bench.home };
    bench.write("a", "one");
    assert!(bench.checkpoints.is_due("s", &bench.root));
    bench.checkpoints.take(by, place);
    assert!(!bench.checkpoints.is_due("s", &bench.root) && bench.checkpoints.is_due("other", &bench.root));
    bench.write("a", "two");
    bench.checkpoints.take(by, place);
    assert_eq!(bench.checkpoints.list().expect("a list").len(), 1);
    assert!(!bench.checkpoints.is_due("new", Path::new("/")));
}

#[test]
fn ignored_files_are_neither_kept_nor_removed() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\n/target/\n");
    bench.write("sub/.gitignore", "!keep.log\n");
    bench.write("sub/.ignore", "secret\n");
    for path in ["a", "a.log", "target/x", "sub/keep.log", "sub/other.log", "sub/secret", "sub/b"] {
        bench.write(path, "one");
    }
    bench.take();
    let before = bench.newest();
    for path in ["a", "a.log", "target/x", "sub/keep.log", "sub/other.log", "sub/secret", "sub/b"] {
        bench.write(path, "two");
    }
    // Rules that a command changed do not make it remove, or lose, what was ignored.
    bench.write(".gitignore", "a\nsub/b\n");
    bench.restore(&before);
    for (path, text) in [("a", "one"), ("sub/b", "one"), ("sub/keep.log", "one"), ("a.log", "two"), ("target/x", "two")]
    {
        assert_eq!(bench.read(path).as_deref(), Some(text), "{path}");
    }
    assert_eq!(
        (bench.read("sub/other.log").as_deref(), bench.read("sub/secret").as_deref()),
        (Some("two"), Some("two"))
    );
    // What was ignored by then is kept before it is replaced.
    let undone = bench.newest();
    bench.restore(&undone);
    assert_eq!((bench.read("a").as_deref(), bench.read("sub/b").as_deref()), (Some("two"), Some("two")));
}

#[test]
fn the_users_own_ignore_file_counts() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.home.join(".config/git")).expect("a directory");
    std::fs::write(bench.home.join(".config/git/ignore"), "*.swp\n").expect("a file");
    bench.write("a.swp", "one");
    bench.write("a", "one");
    bench.take();
    let before = bench.newest();
    bench.write("a.swp", "two");
    assert_eq!(bench.plan(&before).differences, []);
    // Other rules from now on: all is listed again.
    std::fs::write(bench.home.join(".config/git/ignore"), "*.bak\n").expect("a file");
    bench.take();
    let newest = bench.newest();
    assert_ne!(newest, before);
    std::fs::remove_file(bench.root.join("a.swp")).expect("removed");
    bench.restore(&newest);
    assert_eq!(bench.read("a.swp").as_deref(), Some("two"));
}

#[test]
fn what_is_too_large_is_told_and_left_as_it_is() {
    let bench = Bench::new();
    bench.write("a", "one");
    let large = std::fs::File::create(bench.root.join("large")).expect("a file");
    large.set_len((32 << 20) + 1).expect("a size");
    assert!(bench.take().expect("it is told").contains("too large for a checkpoint"), "it is named");
    // Told once, as it has not changed.
    assert_eq!(bench.take(), None);
    let before = bench.newest();
    large.set_len(3).expect("a size");
    bench.write("a", "two");
    bench.restore(&before);
    assert_eq!((bench.read("a").as_deref(), bench.read("large").map(|text| text.len())), (Some("one"), Some(3)));
}

#[test]
fn the_oldest_go_and_what_they_alone_need() {
    let bench = Bench::new();
    bench.write("stays", "always");
    for at in 0..MOST + SLACK + 5 {
        bench.write("a", &at.to_string());
        bench.take();
    }
    let all = bench.checkpoints.list().expect("a list");
    assert!((MOST..=MOST + SLACK).contains(&all.len()), "{}", all.len());
    let store = bench.checkpoints.store(&bench.root).expect("a store");
    assert!(store.objects.packs().count() <= MOST_PACKS);
    assert!(!store.objects.has(&Kind::Blob.id(b"1")), "it is gone");
    drop(store);
    for (of, at) in [(&all[0], MOST + SLACK + 4), (all.last().expect("one"), MOST + SLACK + 5 - all.len())] {
        bench.restore(of);
        assert_eq!((bench.read("a"), bench.read("stays").as_deref()), (Some(at.to_string()), Some("always")));
    }
    // The statistics still fit to what is kept.
    bench.take();
    bench.restore(&all[0]);
}

#[test]
fn damaged_objects_are_put_nowhere() {
    let bench = Bench::new();
    bench.write("a", "a content that is found");
    bench.take();
    let before = bench.newest();
    bench.write("a", "other");
    bench.take();
    let stores = bench.checkpoints.state.join(STORES);
    let store = std::fs::read_dir(stores).expect("stores").next().expect("one").expect("one").path();
    for pack in std::fs::read_dir(store.join("objects/pack")).expect("packs") {
        let path = pack.expect("one").path();
        let mut bytes = std::fs::read(&path).expect("a pack");
        let at = bytes.windows(7).position(|piece| piece == b"content");
        if let Some(at) = at {
            bytes[at] = b'C';
            std::fs::write(&path, bytes).expect("a pack");
        }
    }
    let stayed = bench.restore(&before);
    assert!(stayed.len() == 1 && stayed[0].starts_with("a: "), "{stayed:?}");
    assert_eq!(bench.read("a").as_deref(), Some("other"));
}

#[test]
fn forged_statistics_are_passed_over() {
    let bench = Bench::new();
    bench.write("a", "one");
    bench.take();
    let store = bench.checkpoints.store(&bench.root).expect("a store");
    let stats = store.own.read(STATS).expect("statistics").expect("there");
    for (at, _) in stats.iter().enumerate() {
        assert!(Stats::parse(&stats[..at]).is_none(), "{at}");
    }
    store.put(STATS, &stats[..stats.len() - 1]).expect("written");
    drop(store);
    bench.write("a", "two");
    assert_eq!(bench.take(), None);
    let newest = bench.newest();
    bench.write("a", "three");
    bench.restore(&newest);
    assert_eq!(bench.read("a").as_deref(), Some("two"));
}

#[test]
#[ignore = "it measures"]
fn ten_thousand_files() {
    let bench = Bench::new();
    for at in 0..10_000 {
        bench.write(&format!("{}/{}/{at}.rs", at % 20, at % 400), &format!("// {at}\n").repeat(200));
    }
    bench.write(".gitignore", "target/\n*.log\nnode_modules\n");
    std::thread::sleep(Duration::from_millis(50));
    let mut began = Instant::now();
    let mut lap = |what: &str| {
        println!("{what}: {:?}", began.elapsed());
        began = Instant::now();
    };
    bench.take();
    lap("the first");
    for _ in 0..5 {
        bench.take();
        lap("no change");
    }
    bench.write("3/3/3.rs", "other");
    lap("");
    bench.take();
    lap("one change");
    let newest = bench.newest();
    lap("");
    bench.plan(&newest);
    lap("compared");
}
