//! An agent's afternoon in a cell: it clones, fetches, builds, tests and commits. Nothing is changed but its workspace and what is kept for
//! that, and nobody has read a key.

use crate::names::{Names, Reply};
use crate::packages::{PROJECT, make, toolchain};
use crate::web::Web;
use crate::world::{World, in_a_world};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolcrib_tests::Client;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::shell::waiting;

const HOSTS: &str = r#"confine.hosts=["packages.test", "127.0.0.1"]"#;
/// What of the machine no command changes.
const SYSTEM: [&str; 5] = ["/etc", "/usr/bin", "/usr/local", "/opt", "/var/spool"];
/// A file that is larger is told apart by its time.
const DIGESTED_BYTES: u64 = 1 << 20;

/// What is typed on such a day, and a part of what that prints.
const STEPS: [(&str, &str); 9] = [
    (
        "git -c http.sslCAInfo=$PWD/ca.pem clone -q https://packages.test/repository.git project && ls project",
        "file.txt",
    ),
    (
        "mv rust node python project/ && cd project && printf 'target\\nnode_modules\\nlib\\n' >.gitignore && git status --short",
        "rust/",
    ),
    ("cd $WORK/project/rust && PATH=TOOLCHAIN:$PATH cargo test -q 2>&1", "1 passed"),
    ("cd $WORK/project/rust && PATH=TOOLCHAIN:$PATH cargo run -q --offline", "from cargo"),
    (
        "cd $WORK/project/node && npm install --registry http://packages.test/npm/ --no-audit --no-fund small >../log 2>&1 && node test.js",
        "from npm",
    ),
    (
        "cd $WORK/project/python && python=$(python3 -c 'import sys; print(sys.executable)') && $python -m pip install -q \
         --disable-pip-version-check --trusted-host packages.test --index-url http://packages.test/pip/ --target lib small && \
         PYTHONPATH=lib $python -m unittest 2>&1",
        "OK",
    ),
    (
        "cd $WORK/project && rm -f log && git add -A && git -c user.name=a -c user.email=a@a commit -qm 'what was built' && git log --oneline",
        "what was built",
    ),
    (
        "cat ~/.ssh/id_ed25519; ls -A ~/.ssh; cp -r ~/.ssh /tmp/keys; grep -r PRIVATE ~/ /tmp 2>/dev/null; echo tried",
        "tried",
    ),
    ("touch ~/.profile ~/.ssh/config /etc/x /usr/local/x; echo tried", "tried"),
];

/// Files of the project that [`PROJECT`] does not have.
const MORE: [(&str, &str); 3] = [
    (
        "rust/src/main.rs",
        "fn main() {\n    println!(\"{}\", small::SAID);\n}\n#[test]\nfn it_says_so() {\n    assert_eq!(small::SAID, \"from cargo\");\n}\n",
    ),
    ("node/test.js", "require('assert').equal(require('small'), 'from npm');\nconsole.log(require('small'));\n"),
    (
        "python/test_small.py",
        "import unittest\nimport small\n\nclass Says(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(small.said, 'from pip')\n",
    ),
];

#[test]
fn an_afternoon_changes_its_workspace_alone_and_reads_no_key() {
    in_a_world(|world| {
        let _names = Names::serve(|query| match query.name.as_str() {
            "packages.test" => Reply::addresses(query, &["127.0.0.1"]),
            _ => Reply::NoSuchName,
        });
        let authority = Authority::new();
        let (program, _) = world.confined(false);
        let served = Arc::new(make(&program.path("served")));
        let (server, encrypted) = (authority.server("packages.test"), served.clone());
        let _plain = Web::open(&[80], move |request, wire| wire.write_all(&served.answer(&request.target)));
        let _tls = Web::open_encrypted(
            move |_| server.clone(),
            move |request, wire| wire.write_all(&encrypted.answer(&request.target)),
        );
        for has_panes in [false, true] {
            afternoon(world, has_panes, &authority);
        }
    });
}

fn afternoon(world: &World, has_panes: bool, authority: &Authority) {
    let (program, set) = world.confined(has_panes);
    program.write("home/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    for name in ["home/.bashrc", "home/.gitconfig", "home/.cargo/config.toml", "home/documents/letter"] {
        program.write(name, "# mine\n");
    }
    program.write("work/ca.pem", authority.pem());
    // What the program makes for itself.
    fs::create_dir_all(program.path("data/toolcrib/plugins")).expect("a directory");
    let keys = program.path("home/.ssh");
    let places: Vec<PathBuf> =
        ["home", "config", "data"].iter().map(|name| program.path(name)).chain(SYSTEM.map(PathBuf::from)).collect();
    let before: BTreeMap<_, _> = places.iter().flat_map(|place| listing(place)).collect();
    let watch = Watch::over(&keys);
    let mut arguments = vec!["--yes", "--set", HOSTS];
    arguments.extend(set.iter().map(String::as_str));
    arguments.push("run");
    let mut client = program.client(&arguments);
    for (name, text) in PROJECT.iter().chain(&MORE) {
        program.write(&format!("work/{name}"), text);
    }
    let work = program.path("work").canonicalize().expect("a directory");
    for (step, expected) in STEPS {
        let text = toolchain(&step.replace("$WORK", &work.display().to_string()));
        let said = printed(&mut client, &text);
        assert!(said.contains(expected) && !said.contains("PRIVATE"), "{step}: {said}");
    }
    drop(client);
    assert_eq!(watch.seen(), 0, "somebody looked for keys");
    let after: BTreeMap<_, _> = places.iter().flat_map(|place| listing(place)).collect();
    let changed: Vec<_> = before.iter().filter(|(path, what)| after.get(*path) != Some(what)).collect();
    let made: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(changed.is_empty() && made.is_empty(), "changed: {changed:?}, made: {made:?}");
    assert!(before.len() > 500, "{} files were compared", before.len());
    // Who reads one is seen, and who changes something.
    let _ = fs::read(keys.join("id_ed25519")).expect("a file");
    assert!(watch.seen() > 0);
    program.write("home/.bashrc", "# other\n");
    assert_ne!(listing(&program.path("home")), before_of(&before, &program.path("home")));
}

/// What a command printed, which has to come to an end.
fn printed(client: &mut Client, text: &str) -> String {
    let result = client.result("run_shell", waiting(text, "120s"));
    let part = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    let status = if result["exit_code"] == 0 { String::new() } else { format!("failed: {result}") };
    part("stdout") + &part("stderr") + &status
}

fn before_of(all: &BTreeMap<PathBuf, String>, place: &Path) -> BTreeMap<PathBuf, String> {
    all.iter().filter(|(path, _)| path.starts_with(place)).map(|(path, what)| (path.clone(), what.clone())).collect()
}

/// Every file below a place with its size, its times and, unless it is large, what is in it.
fn listing(place: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![place.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let text = match about.is_file() && about.len() <= DIGESTED_BYTES {
            true => fs::read(&path).map(|bytes| digest(&bytes)).unwrap_or_default(),
            false => String::new(),
        };
        let times = format!("{}.{} {}.{}", about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
        found.insert(path.clone(), format!("{:o} {} {} {times} {text}", about.mode(), about.uid(), about.len()));
        if about.is_dir() {
            waiting.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    found
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish().to_string()
}

/// Whoever opens or reads something in a directory, by whatever name and from whatever namespace.
struct Watch(OwnedFd);

impl Watch {
    fn over(directory: &Path) -> Self {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("a watch");
        let events = WatchFlags::OPEN | WatchFlags::ACCESS;
        inotify::add_watch(&watch, directory, events).expect("a directory");
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            inotify::add_watch(&watch, entry.path(), events).expect("a file");
        }
        let watch = Self(watch);
        watch.seen();
        watch
    }

    /// How often that happened since it was asked last.
    fn seen(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut seen = 0;
        while let Ok(event) = reader.next() {
            seen += usize::from(event.events().intersects(ReadFlags::OPEN | ReadFlags::ACCESS));
        }
        seen
    }
}
