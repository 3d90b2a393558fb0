//! Other repositories: cloned, fetched from, pulled from and pushed to by commands in cells, by each way that git has to them.

use crate::git::{git, repository};
use crate::rig::{BOTH, Rig, Via, word};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use toolcrib_tests::{Program, eventually, skip};

/// A name that leads to this machine.
pub(crate) const HOST: &str = "git.test";
/// Who commits in a repository without settings of its own, and how ssh finds the test's key.
const ENVIRONMENT: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@example.org GIT_CONFIG_GLOBAL=/dev/null GIT_SSH_COMMAND=\"ssh -F none -i $PWD/ssh/key \
    -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR\"";

/// A bare repository with the commits of the workspace.
pub(crate) fn bare(program: &Program, name: &str) -> PathBuf {
    let (work, bare) = (program.path("work").canonicalize().expect("a path"), program.path(name));
    git(&work, &["clone", "-q", "--bare", ".", bare.to_str().expect("text")]);
    bare.canonicalize().expect("a path")
}

/// Commits on `main` of a bare repository, as another person does.
fn commit_elsewhere(rig: &Rig, bare: &Path, subject: &str) {
    let clone =
        rig.program.path(&format!("{subject}-{}", bare.file_stem().and_then(|name| name.to_str()).expect("text")));
    git(bare, &["clone", "-q", ".", clone.to_str().expect("text")]);
    git(&clone, &["commit", "-q", "--allow-empty", "-m", subject]);
    git(&clone, &["push", "-q", "origin", "HEAD:main"]);
}

fn done(rig: &mut Rig, text: &str) -> String {
    let result = rig.result(&format!("({ENVIRONMENT}; set -e; {text})"));
    assert_eq!(result["exit_code"], 0, "{text}: {result}");
    let notices = result["notices"].to_string();
    assert!(!notices.contains("was not taken over") && !notices.contains("obeys"), "{text}: {result}");
    result["stdout"].as_str().expect("text").to_owned()
}

fn subjects(directory: &Path, revision: &str) -> String {
    git(directory, &["log", "--format=%s", revision]).replace('\n', " ")
}

/// What commands see of a repository is what is there; which of two settings comes first means nothing.
fn assert_same(rig: &mut Rig, directory: &Path) {
    let shown = "git for-each-ref; git ls-files -s; git status --porcelain=v2 --branch; git config -l --local";
    let inside = done(rig, &format!("cd {}; {shown}", word(directory)));
    let outside = [
        &["for-each-ref"][..],
        &["ls-files", "-s"],
        &["status", "--porcelain=v2", "--branch"],
        &["config", "-l", "--local"],
    ];
    let outside = outside.map(|words| git(directory, words)).concat();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&inside), sorted(&outside));
    git(directory, &["fsck", "--strict", "--no-dangling"]);
}

/// All that is done with a remote.
fn exchange(rig: &mut Rig, url: &str, bare: &Path) {
    let (work, cloned) = (rig.work(""), rig.work("cloned"));
    let url = word(url);
    done(
        rig,
        &format!(
            "git clone -q {url} cloned; cd cloned; echo c >c; git add c; git commit -q -m agent; git push -q -u origin HEAD:topic; git tag v1; git push -q origin v1"
        ),
    );
    assert_eq!(git(&cloned, &["rev-parse", "--abbrev-ref", "@{upstream}"]), "origin/topic\n");
    assert_eq!(subjects(bare, "topic"), "agent first ");
    assert_eq!(git(bare, &["rev-parse", "v1", "topic"]), git(&cloned, &["rev-parse", "v1", "HEAD"]));
    assert_same(rig, &cloned);
    // In the repository of the workspace, whose settings are the person's.
    done(rig, &format!("git remote add far {url}; git fetch -q far; git push -q -u far main:mine"));
    assert_eq!(git(&work, &["rev-parse", "--abbrev-ref", "main@{upstream}"]), "far/mine\n");
    assert_eq!(git(&work, &["rev-parse", "far/topic"]), git(bare, &["rev-parse", "topic"]));
    commit_elsewhere(rig, bare, "theirs");
    done(
        rig,
        "cd cloned; git pull -q --no-rebase --no-edit origin main; git push -q origin HEAD:topic; git switch -q -c main-again origin/main",
    );
    assert!(subjects(&cloned, "origin/topic").contains("theirs") && subjects(bare, "topic").contains("theirs"));
    assert_eq!(subjects(&cloned, "main-again"), "theirs first ");
    assert_eq!(git(&cloned, &["rev-parse", "--abbrev-ref", "main-again@{upstream}"]), "origin/main\n");
    commit_elsewhere(rig, bare, "again");
    done(
        rig,
        "git pull -q --rebase far main; git push -q --delete far mine; git fetch -q --prune --tags far; git branch -q --set-upstream-to=far/main",
    );
    assert_eq!(subjects(&work, "HEAD"), "again theirs first ");
    assert_eq!(git(bare, &["branch", "--format=%(refname:short)"]), "main\ntopic\n");
    assert_eq!(git(&work, &["rev-parse", "--abbrev-ref", "main@{upstream}"]), "far/main\n");
    done(rig, &format!("git clone -q --depth 1 --no-local {url} shallow"));
    done(rig, "cd shallow; git fetch -q --unshallow; git remote rename origin up; git remote prune up");
    assert_eq!(subjects(&rig.work("shallow"), "up/main"), "again theirs first ");
    for directory in [work, cloned, rig.work("shallow")] {
        assert_same(rig, &directory);
    }
    git(bare, &["fsck", "--strict", "--no-dangling"]);
    done(rig, "rm -rf cloned shallow; git remote remove far; git reset -q --hard HEAD~2; git tag -d v1");
    git(bare, &["branch", "-D", "topic"]);
    git(bare, &["tag", "-d", "v1"]);
}

/// A bare repository in the workspace, and one in another directory that commands write.
#[test]
fn a_local_repository_is_worked_with() {
    for via in BOTH {
        let program = repository(via);
        let (inner, outer) = (bare(&program, "work/bare.git"), bare(&program, "outer.git"));
        program.write("work/.git/info/exclude", "/bare.git\n/cloned\n/shallow\n");
        let mut rig = Rig::of(program, &[&format!("confine.write=[\".\", {outer:?}]")]);
        exchange(&mut rig, &inner.display().to_string(), &inner);
        exchange(&mut rig, &format!("file://{}", outer.display()), &outer);
    }
}

/// A name server that has one address for every name: this machine's. Returns its port.
#[expect(clippy::disallowed_methods, reason = "the test is the name server")]
fn name_server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let Some(answer) = address(&query[..length]) else { continue };
            let _ = socket.send_to(&answer, from);
        }
    });
    port
}

/// The answer to a question for a name; see RFC 1035, section 4.
fn address(query: &[u8]) -> Option<Vec<u8>> {
    let end = 12 + query.get(12..)?.iter().position(|byte| *byte == 0)? + 5;
    let (header, question) = (query.get(..2)?, query.get(12..end)?);
    let is_for_ipv4 = question[question.len() - 4..] == [0, 1, 0, 1];
    let record: &[u8] = if is_for_ipv4 { &[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1] } else { &[] };
    let counts = [0x81, 0x80, 0, 1, 0, u8::from(is_for_ipv4), 0, 0, 0, 0];
    Some([header, &counts, question, record].concat())
}

/// The settings by which commands reach a port of this machine under a name.
pub(crate) fn reaching(port: u16) -> [String; 3] {
    [
        format!("network.dns_servers=[\"127.0.0.1:{}\"]", name_server()),
        format!("confine.hosts=[{HOST:?}, \"127.0.0.1\"]"),
        format!("confine.ports=[{port}]"),
    ]
}

/// A web server of the repositories below a directory. Returns its port.
pub(crate) fn web_server(root: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let root = root.clone();
            std::thread::spawn(move || _ = serve(&connection, &root));
        }
    });
    port
}

/// Answers one request by `git http-backend`, which speaks CGI (RFC 3875).
#[expect(clippy::disallowed_methods, reason = "git's own server")]
fn serve(mut connection: &TcpStream, root: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
        found.next().unwrap_or_default()
    };
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    // Who is known by a name may push.
    backend.env("REMOTE_USER", "p").env("REMOTE_ADDR", "127.0.0.1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    backend.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    backend.env("CONTENT_TYPE", header("content-type")).env("CONTENT_LENGTH", body.len().to_string());
    backend.env("HTTP_CONTENT_ENCODING", header("content-encoding")).env("GIT_PROTOCOL", header("git-protocol"));
    let mut backend = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    backend.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&body)?;
    let output = backend.wait_with_output()?.stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let (fields, body) = (String::from_utf8_lossy(&output[..end]), &output[end + 4..]);
    let status = fields.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let length = body.len();
    write!(connection, "HTTP/1.1 {status}\r\n{fields}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")?;
    connection.write_all(body)
}

#[test]
fn a_repository_is_worked_with_over_http() {
    for via in BOTH {
        let program = repository(via);
        let bare = bare(&program, "served/bare.git");
        program.write("work/.git/info/exclude", "/cloned\n/shallow\n");
        let port = web_server(program.path("served"));
        let settings = reaching(port);
        let mut rig = Rig::of(program, &settings.each_ref().map(String::as_str));
        exchange(&mut rig, &format!("http://{HOST}:{port}/bare.git"), &bare);
    }
}

/// An sshd that lets in whoever runs the tests, by a key.
pub(crate) struct Sshd {
    child: Child,
    pub(crate) port: u16,
    pub(crate) user: String,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the programs of the test's server")]
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Sshd {
    /// Starts one whose files, the key among them, are in a directory. None where there is no sshd, or no account to enter by.
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    pub(crate) fn new(directory: &Path) -> Option<Self> {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].into_iter().find(|path| Path::new(path).exists())?;
        let account = said("getent", &["passwd", &rustix::process::getuid().as_raw().to_string()])?;
        let user = account.split(':').next()?.to_owned();
        let path = |name: &str| directory.join(name).display().to_string();
        for key in ["key", "host_key"] {
            said("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])?;
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let lines = [
            "ListenAddress 127.0.0.1".into(),
            format!("HostKey {}", path("host_key")),
            format!("AuthorizedKeysFile {}", path("key.pub")),
            "PidFile none".into(),
            "StrictModes no".into(),
            "UsePAM no".into(),
            "PermitRootLogin yes".into(),
            format!("SetEnv PATH={}", std::env::var("PATH").expect("text")),
        ];
        std::fs::write(path("config"), lines.join("\n") + "\n").expect("a file");
        let mut sshd = match rustix::process::getuid().is_root() {
            true => {
                // It wants a directory of the system's, which a private mount has.
                let mut sshd = Command::new("unshare");
                sshd.args([
                    "-m",
                    "sh",
                    "-c",
                    "mount -t tmpfs none /run && mkdir /run/sshd && exec \"$0\" \"$@\"",
                    program,
                ]);
                sshd
            }
            false => Command::new(program),
        };
        sshd.args(["-D", "-p", &port.to_string(), "-f", &path("config"), "-E", &path("log")]);
        let child = sshd.stdin(Stdio::null()).spawn().ok()?;
        let sshd = Self { child, port, user };
        eventually("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(sshd)
    }
}

#[test]
fn a_repository_is_worked_with_over_ssh() {
    for via in BOTH {
        let program = repository(via);
        let bare = bare(&program, "served/bare.git");
        program.write("work/.git/info/exclude", "/cloned\n/shallow\n/ssh\n");
        program.write("work/ssh/README", "what an agent was given to work with\n");
        let directory = program.path("work/ssh").canonicalize().expect("a path");
        let Some(sshd) = Sshd::new(&directory) else { skip!("there is no sshd, or no account to enter by") };
        let settings = reaching(sshd.port);
        let mut rig = Rig::of(program, &settings.each_ref().map(String::as_str));
        let url = format!("ssh://{}@{HOST}:{}{}", sshd.user, sshd.port, bare.display());
        exchange(&mut rig, &url, &bare);
    }
}

/// Git on a local repository of a submodule, which it refuses otherwise.
const FROM_FILES: &str = "git -c protocol.file.allow=always";

/// A workspace with a submodule `sub`, and the bare repository that it is of.
fn with_a_submodule(via: Via) -> (Rig, PathBuf) {
    let program = repository(via);
    let bare = bare(&program, "served/bare.git");
    let mut rig = Rig::of(program, &[&format!("confine.write=[\".\", {bare:?}]")]);
    done(&mut rig, &format!("{FROM_FILES} submodule add -q -b main {} sub; git commit -q -m added", word(&bare)));
    let work = rig.work("");
    assert!(git(&work, &["submodule", "status"]).starts_with(' '), "{via:?}");
    assert!(git(&work, &["config", "-l", "--local"]).contains("submodule.sub.active=true"), "{via:?}");
    assert_clean(&mut rig, &["", "sub"]);
    (rig, bare)
}

fn assert_clean(rig: &mut Rig, directories: &[&str]) {
    for directory in directories {
        let directory = rig.work(directory);
        assert_eq!(git(&directory, &["status", "--porcelain"]), "", "{}", directory.display());
        assert_same(rig, &directory);
    }
}

#[test]
fn a_submodule_is_added_and_taken_away() {
    for via in BOTH {
        let (mut rig, _) = with_a_submodule(via);
        let work = rig.work("");
        done(&mut rig, "git submodule deinit -q -f sub");
        assert!(!git(&work, &["config", "-l", "--local"]).contains("submodule.sub.url"), "{via:?}");
        assert_clean(&mut rig, &[""]);
        done(&mut rig, "git rm -q -f sub; git commit -q -m removed");
        assert_clean(&mut rig, &[""]);
        assert!(!rig.work("sub").exists(), "{via:?}");
    }
}

#[test]
fn a_submodule_that_was_taken_away_is_made_again() {
    for via in BOTH {
        let (mut rig, _) = with_a_submodule(via);
        done(&mut rig, "git submodule deinit -q -f sub");
        done(&mut rig, &format!("{FROM_FILES} submodule update -q --init"));
        assert_eq!(subjects(&rig.work("sub"), "HEAD"), "first ", "{via:?}");
        assert_clean(&mut rig, &["", "sub"]);
    }
}

#[test]
fn a_submodule_is_committed_in_fetched_and_pushed() {
    for via in BOTH {
        let (mut rig, bare) = with_a_submodule(via);
        commit_elsewhere(&rig, &bare, "theirs");
        done(&mut rig, &format!("{FROM_FILES} submodule update -q --remote; git commit -q -a -m moved"));
        assert_eq!(subjects(&rig.work("sub"), "HEAD"), "theirs first ", "{via:?}");
        assert_clean(&mut rig, &["", "sub"]);
        let inner =
            "cd sub; git checkout -q -B main; echo s >s; git add s; git commit -q -m inner; git push -q origin main";
        done(&mut rig, &format!("({inner}); git commit -q -a -m again"));
        assert_eq!(subjects(&bare, "main"), "inner theirs first ", "{via:?}");
        assert_clean(&mut rig, &["", "sub"]);
    }
}
