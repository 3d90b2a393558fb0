//! Debian's Dovecot, with settings, directories and a port of its own. As root it serves from an account without rights, else from ours.
#![expect(clippy::disallowed_methods, reason = "a test starts the server that it reads from")]

use super::{PASSWORD, SERVER, USER};
use crate::certificate::Authority;
use crate::{ended, on_path};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Debian's account without rights.
const NOBODY: u32 = 65534;

/// A message in a mailbox.
#[derive(Clone)]
pub struct Letter {
    /// Its folder.
    pub folder: &'static str,
    /// Its bytes.
    pub raw: Vec<u8>,
    /// Nobody has read it.
    pub unread: bool,
}

impl Letter {
    /// One that nobody has read, with this subject, header lines and body.
    #[must_use]
    pub fn new(subject: &str, lines: &str, body: &str) -> Self {
        Self::of_bytes(
            format!("From: Bob <bob@example.org>\r\nTo: ann@example.com\r\nSubject: {subject}\r\n{lines}\r\n{body}")
                .as_bytes(),
        )
    }

    /// The same of bytes.
    #[must_use]
    pub fn of_bytes(raw: &[u8]) -> Self {
        Self { folder: "INBOX", raw: raw.to_vec(), unread: true }
    }

    /// The same in another folder.
    #[must_use]
    pub fn within(mut self, folder: &'static str) -> Self {
        self.folder = folder;
        self
    }

    /// The same, which was read.
    #[must_use]
    pub fn read(mut self) -> Self {
        self.unread = false;
        self
    }
}

/// A Dovecot with the mail of one user.
pub struct Dovecot {
    directory: TempDir,
    master: Child,
    /// Where it listens.
    pub port: u16,
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.master), Signal::TERM);
        if ended(&mut self.master, Duration::from_secs(10)).is_none() {
            let _ = self.master.kill();
            let _ = self.master.wait();
        }
    }
}

impl Dovecot {
    /// Whether it is installed.
    #[must_use]
    pub fn is_there() -> bool {
        program().is_file()
    }

    /// Serves these messages, the last one being the newest.
    #[must_use]
    pub fn with(authority: &Authority, letters: &[Letter]) -> Self {
        Self::start(authority, "maildir:~/mail", |home| {
            let now = SystemTime::now() - Duration::from_secs(3600);
            directories(&home.join("mail"));
            for (number, letter) in letters.iter().enumerate() {
                let folder = match letter.folder {
                    "INBOX" => home.join("mail"),
                    other => home.join(format!("mail/.{other}")),
                };
                directories(&folder);
                let time = now + Duration::from_secs(number as u64);
                let seconds = time.duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
                let flags = if letter.unread { "" } else { "S" };
                let path = folder.join(format!("cur/{seconds}.M{number}P1.test:2,{flags}"));
                std::fs::write(&path, &letter.raw).expect("a message");
                File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("a time");
            }
        })
    }

    /// Serves a mailbox of one file, and has indexed it.
    #[must_use]
    pub fn with_file(authority: &Authority, mailbox: &Path) -> Self {
        let dovecot = Self::start(authority, "mbox:~/folders:INBOX=~/inbox", |home| {
            std::fs::create_dir(home.join("folders")).expect("a directory");
            std::fs::copy(mailbox, home.join("inbox")).expect("a mailbox");
        });
        dovecot.doveadm(&["index", "-u", USER, "INBOX"]);
        dovecot
    }

    fn start(authority: &Authority, location: &str, fill: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path();
        // Its processes of other accounts have to get to its sockets.
        std::fs::set_permissions(path, Permissions::from_mode(0o711)).expect("a directory of ours");
        for name in ["home", "raw"] {
            std::fs::create_dir(path.join(name)).expect("a directory");
        }
        fill(&path.join("home"));
        let (certificate, key) = authority.files(SERVER);
        std::fs::write(path.join("certificate.pem"), certificate).expect("a file");
        std::fs::write(path.join("key.pem"), key).expect("a file");
        let is_root = rustix::process::getuid().is_root();
        let (uid, gid) = match is_root {
            true => (NOBODY, NOBODY),
            false => (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
        };
        if is_root {
            owned(&path.join("home"));
            owned(&path.join("raw"));
        }
        let line = format!("{USER}:{{PLAIN}}{PASSWORD}:{uid}:{gid}::{}/home::\n", path.display());
        std::fs::write(path.join("users"), line).expect("a file");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        std::fs::write(path.join("dovecot.conf"), settings(path, location, port, is_root)).expect("a file");
        let mut command = Command::new(program());
        command.arg("-F").arg("-c").arg(path.join("dovecot.conf")).stdin(Stdio::null()).stdout(Stdio::null());
        let mut master = command.stderr(Stdio::null()).spawn().expect("dovecot starts");
        let log = || std::fs::read_to_string(path.join("log")).unwrap_or_default();
        crate::eventually("dovecot listens", || {
            assert!(master.try_wait().expect("a child").is_none(), "dovecot ended: {}", log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { directory, master, port }
    }

    /// Has its own program do something to it.
    pub fn doveadm(&self, arguments: &[&str]) {
        let conf = self.directory.path().join("dovecot.conf");
        let done =
            Command::new(on_path("doveadm")).arg("-c").arg(conf).args(arguments).output().expect("doveadm starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// The names of the files of all messages, which hold their flags, with their sizes.
    #[must_use]
    pub fn messages(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.home().join("mail")];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("a name")) {
                let is_index = entry.file_name().to_string_lossy().starts_with("dovecot");
                let about = entry.metadata().expect("a file");
                match about.is_dir() {
                    true => open.push(entry.path()),
                    false if is_index => {}
                    false => _ = found.insert(entry.path(), about.len()),
                }
            }
        }
        found
    }

    /// The directory of its user.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// What it was sent after logins, line by line.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        // Each line has a time before it.
        let lines = self.raw(".in");
        lines.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
    }

    /// The bytes that it has answered.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.raw(".out").len()
    }

    fn raw(&self, end: &str) -> String {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.directory.path().join("raw"))
            .expect("a directory")
            .map(|entry| entry.expect("a name").path())
            .filter(|path| path.to_string_lossy().ends_with(end))
            .collect();
        files.sort();
        files.iter().map(|path| String::from_utf8_lossy(&std::fs::read(path).expect("a record")).into_owned()).collect()
    }
}

/// Ordinary users do not have it on PATH.
fn program() -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&paths).chain([PathBuf::from("/usr/sbin")]);
    places.map(|place| place.join("dovecot")).find(|file| file.is_file()).unwrap_or_else(|| "/usr/sbin/dovecot".into())
}

fn directories(folder: &Path) {
    for name in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(folder.join(name)).expect("a directory");
    }
}

fn owned(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a directory") {
            owned(&entry.expect("a name").path());
        }
    }
}

fn settings(path: &Path, location: &str, port: u16, is_root: bool) -> String {
    let path = path.display();
    let accounts = match is_root {
        true => String::new(),
        false => {
            let name = |flag: &str| {
                let output = Command::new("id").arg(flag).output().expect("`id` is there");
                String::from_utf8(output.stdout).expect("a name").trim().to_owned()
            };
            let (user, group) = (name("-un"), name("-gn"));
            format!("default_login_user = {user}\ndefault_internal_user = {user}\ndefault_internal_group = {group}")
        }
    };
    format!(
        "protocols = imap
listen = 127.0.0.1
base_dir = {path}/run
state_dir = {path}/state
log_path = {path}/log
ssl = required
ssl_cert = <{path}/certificate.pem
ssl_key = <{path}/key.pem
{accounts}
auth_mechanisms = plain login
first_valid_uid = 0
first_valid_gid = 0
mail_location = {location}
passdb {{
  driver = passwd-file
  args = {path}/users
}}
userdb {{
  driver = passwd-file
  args = {path}/users
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
protocol imap {{
  rawlog_dir = {path}/raw
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
"
    )
}
