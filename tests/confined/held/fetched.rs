//! What git fetched from a remote of the person's is let through, and what a command only says was fetched is not.

use super::{assert_held, assert_nothing_held, is_there, text};
use crate::git::{git, repository};
use crate::git_remotes::{HOST, bare, reaching, web_server};
use crate::rig::{BOTH, Rig, Via};
use std::path::{Path, PathBuf};
use toolcrib_tests::{Client, Program};

const FILES: [(&str, &str); 4] = [
    (".vscode/settings.json", "{\"theirs\": 1}\n"),
    (".envrc", "export THEIRS=1\n"),
    ("CLAUDE.md", "# theirs\n"),
    ("sub/.mcp.json", "{}\n"),
];
/// How git reaches the test's server from the cell: outside it has another name, which the person's settings say.
const INSIDE: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org";

/// A repository whose remote is a server's, to which somebody else has pushed files that act; another repository is served beside it.
struct Served {
    rig: Rig,
    settings: Vec<String>,
    port: u16,
    theirs: PathBuf,
}

impl Served {
    fn new(via: Via) -> Self {
        let program = repository(via);
        let work = program.path("work");
        program.write("work/CLAUDE.md", "# before\n");
        git(&work, &["add", "-f", "CLAUDE.md"]);
        git(&work, &["commit", "-q", "-m", "words"]);
        let (theirs, other) = (bare(&program, "served/theirs.git"), bare(&program, "served/other.git"));
        let port = web_server(program.path("served"));
        git(&work, &["remote", "add", "origin", &format!("http://{HOST}:{port}/theirs.git")]);
        for key in ["branch.main.remote=origin", "branch.main.merge=refs/heads/main"] {
            let (key, value) = key.split_once('=').expect("a value");
            git(&work, &["config", key, value]);
        }
        program.write(
            "home/.gitconfig",
            format!("[url \"http://127.0.0.1:{port}/\"]\n\tinsteadOf = http://{HOST}:{port}/\n"),
        );
        commit_files(&program, &theirs, "theirs");
        commit_files(&program, &other, "others");
        let settings = reaching(port).to_vec();
        let rig = Rig::of(program, &settings.iter().map(String::as_str).collect::<Vec<_>>());
        Self { rig, settings, port, theirs }
    }

    fn notices(&mut self, command: &str) -> String {
        let result = self.rig.result(&format!("({INSIDE}; set -e; {command})"));
        assert_eq!(result["exit_code"], 0, "{command}: {result}");
        result["notices"].to_string()
    }

    fn next_host(self) -> Self {
        let Self { rig: Rig { client, program }, settings, port, theirs } = self;
        drop::<Client>(client);
        let rig = Rig::of(program, &settings.iter().map(String::as_str).collect::<Vec<_>>());
        Self { rig, settings, port, theirs }
    }
}

/// What one of two repositories has in a file.
fn of(name: &str, text: &str) -> String {
    format!("# of {name}\n{text}")
}

/// Commits files that act to `main` of a bare repository.
fn commit_files(program: &Program, bare: &Path, name: &str) {
    let clone = program.path(name);
    git(bare, &["clone", "-q", ".", clone.to_str().expect("text")]);
    for (file, text) in FILES {
        program.write(&format!("{name}/{file}"), of(name, text));
    }
    git(&clone, &["add", "-f", "."]);
    git(&clone, &["commit", "-q", "-m", "files"]);
    git(&clone, &["push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn what_git_fetches_from_the_persons_remote_is_let_through() {
    for via in BOTH {
        for way in [
            "git pull -q --no-rebase",
            "git fetch -q; git merge -q FETCH_HEAD",
            "git fetch -q; git reset -q --hard origin/main",
        ] {
            let mut served = Served::new(via);
            let notices = served.notices(way);
            assert_nothing_held(&served.rig, &format!("{via:?} {way}: {notices}"));
            for (file, content) in FILES {
                assert_eq!(text(&served.rig, file), of("theirs", content), "{via:?} {way}: {file}: {notices}");
                let told = format!("`{file}` was fetched: the remote `origin` has it");
                // Changed words are only told anyway.
                assert!(notices.contains(&told) || file == "CLAUDE.md", "{via:?} {way}: {file}: {notices}");
            }
            assert_eq!(git(&served.rig.work(""), &["status", "--porcelain"]), "", "{via:?} {way}: {notices}");
            // Nobody is asked by what comes later either.
            let notices = served.notices("git switch -q -c b HEAD~1; git switch -q main");
            assert_nothing_held(&served.rig, &notices);
        }
    }
}

/// It was not there when the person's remote was asked, or the remote is not the person's.
#[test]
fn what_the_persons_remote_has_not_is_held() {
    let commit = "mkdir -p made; echo made >made/.envrc; git add -f made/.envrc 2>/dev/null || \
        git update-index --add --cacheinfo 100644,$(echo made | git hash-object -w --stdin),made/.envrc; \
        git commit -q -m made";
    for via in BOTH {
        let mut served = Served::new(via);
        let (host, port) = (format!("http://{HOST}:{}", served.port), served.port);
        let inner = "git clone -q --bare . inner.git; echo /inner.git >>.git/info/exclude";
        for (way, file) in [
            // As if it had been fetched.
            (
                format!(
                    "{commit}; git update-ref refs/remotes/origin/main HEAD; git reset -q --hard HEAD~1; git merge -q origin/main"
                ),
                "made/.envrc",
            ),
            // Its bytes, at another place.
            ("git fetch -q; mkdir -p moved; git show origin/main:.envrc >moved/.envrc".to_owned(), "moved/.envrc"),
            // From another remote of the same server, which a command names, and from one that it makes.
            (format!("git fetch -q {host}/other.git main:other; git checkout -q other -- .envrc"), ".envrc"),
            (
                format!("git remote add other {host}/other.git; git fetch -q other; git checkout -q other/main -- sub"),
                "sub/.mcp.json",
            ),
            (
                format!(
                    "{inner}; git remote add inner $PWD/inner.git; git -C inner.git fetch -q {host}/other.git +main:main; git fetch -q inner; git checkout -q inner/main -- .vscode"
                ),
                ".vscode/settings.json",
            ),
        ] {
            let notices = served.notices(&way);
            assert_held(&served.rig, file, &notices, &format!("{via:?} {port} {way}"));
            served.rig.decide("drop", &served.rig.only_held());
        }
        // That a command has named it is known to the next host.
        let mut served = served.next_host();
        let notices = served.notices("git fetch -q other; git checkout -q other/main -- sub");
        assert_held(&served.rig, "sub/.mcp.json", &notices, &format!("{via:?}"));
    }
}

/// A remote that does not answer has nothing, and the person keeps it as everything else.
#[test]
fn where_the_remote_does_not_answer_it_is_held() {
    let mut served = Served::new(Via::Process);
    served.notices("git fetch -q");
    std::fs::rename(&served.theirs, served.theirs.with_extension("away")).expect("a directory");
    let notices = served.notices("git checkout -q origin/main -- .envrc");
    assert_held(&served.rig, ".envrc", &notices, "");
    served.rig.decide("keep", &served.rig.only_held());
    assert!(is_there(&served.rig.work(".envrc")));
}
