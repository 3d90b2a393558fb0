//! A host that is reached by SSH: one control master, kept for as long as this program runs, and a channel of it for each process.
//!
//! The user's own configuration, keys and known hosts count; what would open doors in the other direction does not. Nothing is ever asked.

use super::local::Local;
use super::remote::{Remote, Script, Way, reason};
use super::{Backend, Input, Process, ProcessEvent, ProcessSpec, finish};
use async_trait::async_trait;
use base::dirs::Dirs;
use base::envelope::{Failure, Kind};
use base::text::{sanitize, shell_quote};
use openssh::{
    Child, ChildStderr, ChildStdin, ChildStdout, ControlPersist, KnownHosts, Session, SessionBuilder, Stdio,
};
use openssh_mux_client::Connection;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::Permissions;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// A master that nobody closed, because this program was killed, ends after so many seconds without use.
const IDLE_SECONDS: NonZeroUsize = NonZeroUsize::new(600).expect("not zero");
/// How much is read from a stream at a time.
const CHUNK: usize = 64 << 10;
/// The longest path of a directory for the control socket: ssh makes names of some 40 bytes below it, and a socket's path has 107.
const DIRECTORY_BYTES: usize = 60;
/// A script by standard input, which is then at its end: no word of it is in the command line, and its length has no bound.
const BY_INPUT: &str = "exec /bin/sh -s";

/// What no configuration of the user's overrides: the first value counts. Nothing of this machine is offered to the other one, and a link
/// that is cut is noticed within some seconds.
const FIRST: &str = "ForwardAgent no
ForwardX11 no
ClearAllForwardings yes
PermitLocalCommand no
RequestTTY no
RemoteCommand none
UpdateHostKeys no
ServerAliveInterval 3
ServerAliveCountMax 2
";

/// A host, as its user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    user: Option<String>,
    /// A name, an address, or a name of the user's configuration.
    host: String,
    port: Option<u16>,
}

impl SshTarget {
    /// Accepts `user@host:port`; user and port may be omitted, and an IPv6 address is in brackets.
    ///
    /// # Errors
    ///
    /// For whatever could be an option, a pattern, or part of a script.
    pub fn parse(target: &str) -> Result<Self, Failure> {
        let odd = || {
            Failure::new(Kind::Usage, format!("`{}` is not a valid ssh target", target.escape_debug()))
                .hint("write `host`, `user@host`, `user@host:port`, or a name of your ssh configuration")
        };
        let (user, rest) = match target.split_once('@') {
            Some((user, rest)) => {
                (Some(user).filter(|user| is_user(user)).map(str::to_owned).ok_or_else(odd).map(Some)?, rest)
            }
            None => (None, target),
        };
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, behind)) => {
                address.parse::<std::net::Ipv6Addr>().map_err(|_| odd())?;
                let port = behind.strip_prefix(':');
                if port.is_none() && !behind.is_empty() {
                    return Err(odd());
                }
                (address, port)
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        if !host.contains(':') && !is_host(host) {
            return Err(odd());
        }
        let port = port.map(|port| port.parse().ok().filter(|port| *port != 0).ok_or_else(odd)).transpose()?;
        Ok(Self { user, host: host.to_owned(), port })
    }

    fn shown(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{user}{host}{port}")
    }

    /// Options and host for the program `ssh`.
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        if let Some(user) = &self.user {
            arguments.extend(["-l".to_owned(), user.clone()]);
        }
        if let Some(port) = self.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.extend(["--".to_owned(), self.host.clone()]);
        arguments.into_iter().map(OsString::from).collect()
    }
}

fn is_user(user: &str) -> bool {
    let mut bytes = user.bytes();
    user.len() <= 32
        && bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_host(host: &str) -> bool {
    let mut bytes = host.bytes();
    host.len() <= 253
        && bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A host as a backend. `config_file` replaces the user's own configuration; the control socket comes below `directory`; `home`
/// is the user's on this machine.
#[must_use]
pub fn ssh(target: SshTarget, config_file: Option<PathBuf>, directory: &Path, dirs: &Dirs) -> Arc<dyn Backend> {
    let home = &dirs.home;
    let local = Local::new("/".into(), home.clone(), home.clone(), dirs.environment.clone());
    let is_short = directory.as_os_str().len() <= DIRECTORY_BYTES;
    let directory = if is_short { directory.to_owned() } else { "/tmp".into() };
    let config_file = config_file.or_else(|| Some(home.join(".ssh/config")).filter(|file| file.exists()));
    let shown = format!("ssh:{}", target.shown());
    Arc::new(Remote::new(Ssh {
        shown,
        target,
        config_file,
        directory,
        local,
        link: Mutex::default(),
        linking: Default::default(),
    }))
}

struct Ssh {
    shown: String,
    target: SshTarget,
    config_file: Option<PathBuf>,
    directory: PathBuf,
    local: Local,
    link: Mutex<Option<Link>>,
    /// One connection is made at a time.
    linking: tokio::sync::Mutex<()>,
}

/// An open connection. Dropped, it ends the master and removes its socket.
struct Link {
    /// Makes channels; it has no part in closing.
    channels: Arc<Session>,
    /// Asked to stop, the master would wait for the ends of its channels; so it is killed.
    process: OwnedFd,
    _master: Session,
    /// The configuration lies here, and the directory of the control socket.
    _directory: TempDir,
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.process, Signal::TERM);
    }
}

impl Ssh {
    /// The connection, made when there is none.
    async fn link(&self) -> Result<Arc<Session>, Failure> {
        let _linking = self.linking.lock().await;
        if let Some(link) = self.lock().as_ref() {
            return Ok(link.channels.clone());
        }
        let directory = tempfile::Builder::new().prefix("toolcrib-").permissions(private()).tempdir_in(&self.directory);
        let directory =
            directory.map_err(|error| self.unavailable(&format!("no directory for its socket: {error}")))?;
        let configuration =
            self.configuration(directory.path()).map_err(|error| self.unavailable(&error.to_string()))?;
        let mut builder = SessionBuilder::default();
        builder
            .known_hosts_check(KnownHosts::Strict)
            .connect_timeout(CONNECT)
            .control_persist(ControlPersist::IdleFor(IDLE_SECONDS))
            .control_directory(directory.path())
            .config_file(&configuration);
        if let Some(user) = &self.target.user {
            builder.user(user.clone());
        }
        if let Some(port) = self.target.port {
            builder.port(port);
        }
        let master = match builder.connect_mux(&self.target.host).await {
            Ok(master) => master,
            Err(error) => return Err(self.no_connection(&error, &configuration).await),
        };
        let socket_directory = master.control_socket().parent().unwrap_or(directory.path());
        // Whoever reaches the socket can open channels, and the crate leaves the mode of its directory to the umask.
        std::fs::set_permissions(socket_directory, private()).map_err(|error| self.unavailable(&error.to_string()))?;
        let process = self.process(master.control_socket()).await.map_err(|why| self.unavailable(&why))?;
        let channels = Arc::new(Session::resume_mux(master.control_socket().into(), None));
        *self.lock() = Some(Link { channels: channels.clone(), process, _master: master, _directory: directory });
        Ok(channels)
    }

    /// The process of the master.
    async fn process(&self, control_socket: &Path) -> Result<OwnedFd, String> {
        let mut master = Connection::connect(control_socket).await.map_err(|error| error.to_string())?;
        let pid = master.send_alive_check().await.map_err(|error| error.to_string())?;
        let pid = i32::try_from(pid.get()).ok().and_then(Pid::from_raw).ok_or("its master has no process")?;
        pidfd_open(pid, PidfdFlags::empty()).map_err(|error| error.to_string())
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Link>> {
        self.link.lock()
    }

    /// Writes the configuration that ssh reads: what must not be overridden, then the user's, then the machine's.
    fn configuration(&self, directory: &Path) -> io::Result<PathBuf> {
        let mut text = FIRST.to_owned();
        let user = self.config_file.as_deref().map(Path::display).map(|path| path.to_string());
        for file in user.iter().map(String::as_str).chain(["/etc/ssh/ssh_config"]) {
            if file.contains(['"', '\n']) {
                return Err(io::Error::other(format!("`{}` cannot be named in a configuration", file.escape_debug())));
            }
            let _ = writeln!(text, "Include \"{file}\"");
        }
        let file = directory.join("config");
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// Starts a channel. One that could not be opened has started nothing, so a connection that has ended is made anew.
    async fn channel(&self, command: &str) -> Result<(Channel, Option<ChildStdin>), Failure> {
        let session = self.link().await?;
        let mut opened = spawn(&session, command).await;
        if opened.is_err() {
            self.forget(&session);
            opened = spawn(&self.link().await?, command).await;
        }
        let mut child = opened.map_err(|error| self.unavailable(&told(&error)))?;
        let stdin = child.stdin().take();
        let (stdout, stderr) = (child.stdout().take(), child.stderr().take());
        Ok((Channel { stdout, stderr, child: Some(child) }, stdin))
    }

    /// Gives up a connection, unless another one has taken its place.
    fn forget(&self, session: &Arc<Session>) {
        let mut link = self.lock();
        if link.as_ref().is_some_and(|link| Arc::ptr_eq(&link.channels, session)) {
            *link = None;
        }
    }

    fn unavailable(&self, why: &str) -> Failure {
        let why = sanitize::beginning(why.trim(), 400);
        Failure::new(Kind::Unavailable, format!("{}: {why}", self.shown))
    }

    /// Says why there is no connection, and what to do about it.
    async fn no_connection(&self, error: &openssh::Error, configuration: &Path) -> Failure {
        let said = told(error);
        if said.contains("IDENTIFICATION HAS CHANGED") || said.contains("REVOKED") {
            return self
                .unavailable("the host's key has changed: somebody may be in between, or the host was reinstalled")
                .hint("ask the host's owner; if the new key is right, remove the old one with `ssh-keygen -R HOST` and connect once by hand");
        }
        if said.contains("ost key verification failed") || said.contains("ost key is known") {
            let key = self.key(configuration).await;
            let shown = key.unwrap_or_else(|| "which it did not show".into());
            return self.unavailable(&format!("the host's key is not known: {shown}")).hint(format!(
                "compare it with what the host's owner says, then add it to known_hosts by connecting once by hand: `ssh {}`",
                self.by_hand()
            ));
        }
        let failure = self.unavailable(&said);
        if said.contains("ermission denied") {
            return failure.hint(
                "use a key without a passphrase, or one that an agent holds: no passphrase can be asked for here",
            );
        }
        failure.hint(format!("try it by hand: `ssh {}`", self.by_hand()))
    }

    fn by_hand(&self) -> String {
        let options = self.config_file.as_ref().map(|file| format!("-F {} ", file.display())).unwrap_or_default();
        let arguments: Vec<String> = self
            .target
            .arguments()
            .iter()
            .filter(|word| *word != "--")
            .map(|word| word.display().to_string())
            .collect();
        options + &arguments.join(" ")
    }

    /// What a program of ssh's on this machine says on standard error.
    async fn said(&self, argv: Vec<OsString>) -> Result<String, Failure> {
        let process = self.local.start(ProcessSpec::own(argv)).await?;
        let finished = finish(process).await.map_err(|error| self.unavailable(&error.to_string()))?;
        Ok(String::from_utf8_lossy(&finished.stderr).into_owned())
    }

    /// Type and fingerprint of the key that the host shows.
    async fn key(&self, configuration: &Path) -> Option<String> {
        let options =
            ["ssh", "-v", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=5", "-F"];
        let argv = options.into_iter().map(OsString::from).chain([configuration.into()]);
        let argv = argv.chain(self.target.arguments()).chain(["true".into()]).collect();
        let said = tokio::time::timeout(CONNECT, self.said(argv)).await.ok()?.ok()?;
        let key = said.lines().rev().find_map(|line| line.split_once("Server host key: "))?.1;
        Some(sanitize::line(key.trim()).into_owned())
    }
}

async fn spawn(session: &Arc<Session>, command: &str) -> Result<Child<Arc<Session>>, openssh::Error> {
    let mut command = session.clone().arc_raw_command(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().await
}

/// This user's alone.
fn private() -> Permissions {
    Permissions::from_mode(0o700)
}

/// An error with its causes: the crate's own words say little.
fn told(error: &openssh::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

/// A script for the command line of whatever login shell there is: only octal digits of it, in quotes that all shells read alike.
fn in_octal(script: &[u8]) -> String {
    let mut octal = String::with_capacity(script.len() * 4);
    for byte in script {
        let _ = write!(octal, "\\{byte:03o}");
    }
    format!(r#"exec /bin/sh -c 'eval "$(printf "$1")"' sh '{octal}'"#)
}

fn script(Script { text, arguments }: &Script) -> Vec<u8> {
    [b"set -- ".as_slice(), &shell_quote::words(arguments), b"\n", text.as_bytes(), b"\n"].concat()
}

#[async_trait]
impl Way for Ssh {
    fn name(&self) -> &str {
        &self.shown
    }

    async fn start(&self, given: Script) -> Result<Box<dyn Process>, Failure> {
        let (channel, input) = self.channel(BY_INPUT).await?;
        if let Some(mut input) = input {
            let text = script(&given);
            // The channel reports a connection that is cut.
            tokio::spawn(async move {
                let _ = input.write_all(&text).await;
                let _ = input.shutdown().await;
            });
        }
        Ok(Box::new(channel))
    }

    async fn open(&self, given: Script) -> Result<(Box<dyn Process>, Input), Failure> {
        let (channel, input) = self.channel(&in_octal(&script(&given))).await?;
        let input = input.ok_or_else(|| self.unavailable("the channel has no input"))?;
        Ok((Box::new(channel), Box::new(input)))
    }

    /// A missing shell is reported as such; whatever else ends before the first mark may have begun.
    fn refusal(&self, said: &str, status: Option<i32>) -> Option<Failure> {
        let is_refused = matches!(status, Some(1 | 126 | 127)) && !said.trim().is_empty();
        is_refused.then(|| self.unavailable(&format!("no shell there: {}", reason(said))))
    }

    /// A link that is cut ends what goes through it.
    async fn lost(&self) -> Failure {
        std::future::pending().await
    }

    async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
        // A link that is cut is noticed as soon as that of the master: see `FIRST`.
        let options = [
            "StrictHostKeyChecking=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "ClearAllForwardings=yes",
            "ServerAliveInterval=3",
            "ServerAliveCountMax=2",
        ];
        let mut ssh: Vec<OsString> = ["ssh", "-t"].map(OsString::from).into();
        ssh.extend(options.into_iter().flat_map(|option| ["-o".into(), option.into()]));
        ssh.extend(self.config_file.iter().flat_map(|file| ["-F".into(), file.into()]));
        ssh.extend(self.target.arguments());
        ssh.push(in_octal(&[b"exec ".as_slice(), &shell_quote::words(&argv)].concat()).into());
        Ok(ssh)
    }

    async fn inspect(&self) -> Result<String, Failure> {
        self.link().await?;
        let version = self.said(["ssh", "-V"].map(OsString::from).into()).await?;
        Ok(version.split(',').next().unwrap_or_default().trim().to_owned())
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

/// A program at the other end of a channel. There is no way to end it from here.
struct Channel {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    child: Option<Child<Arc<Session>>>,
}

/// Waits for bytes; never returns for a stream that has ended.
async fn receive(stream: &mut Option<impl AsyncRead + Unpin>) -> io::Result<Option<Vec<u8>>> {
    let Some(open) = stream else { return std::future::pending().await };
    let mut buffer = Vec::with_capacity(CHUNK);
    if open.read_buf(&mut buffer).await? == 0 {
        *stream = None;
        return Ok(None);
    }
    Ok(Some(buffer))
}

#[async_trait]
impl Process for Channel {
    async fn next(&mut self) -> io::Result<ProcessEvent> {
        while self.stdout.is_some() || self.stderr.is_some() {
            let event = tokio::select! {
                bytes = receive(&mut self.stdout) => bytes?.map(ProcessEvent::Stdout),
                bytes = receive(&mut self.stderr) => bytes?.map(ProcessEvent::Stderr),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
        let child = self.child.take().ok_or_else(|| io::Error::other("the channel has ended"))?;
        match child.wait().await {
            Ok(status) => Ok(ProcessEvent::Exited(status.code().unwrap_or(-1))),
            // This is how it reports a status of 127.
            Err(openssh::Error::Remote(error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(ProcessEvent::Exited(127))
            }
            Err(error) => Err(io::Error::other(told(&error))),
        }
    }

    async fn end(&mut self) -> Option<usize> {
        None
    }

    async fn left_running(&mut self) -> Vec<u32> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_typed_parts() {
        let parse = |target| SshTarget::parse(target).map(|target| (target.user, target.host, target.port));
        let parts = |user: Option<&str>, host: &str, port| Ok((user.map(str::to_owned), host.to_owned(), port));
        assert_eq!(parse("web"), parts(None, "web", None));
        assert_eq!(parse("me@web.example.com:2222"), parts(Some("me"), "web.example.com", Some(2222)));
        assert_eq!(parse("10.0.0.1:22"), parts(None, "10.0.0.1", Some(22)));
        assert_eq!(parse("[::1]:22"), parts(None, "::1", Some(22)));
        assert_eq!(SshTarget::parse("me@[::1]:22").expect("a target").shown(), "me@[::1]:22");
    }

    #[test]
    fn what_could_be_more_than_a_target_is_refused() {
        for target in [
            "",
            "-oProxyCommand=x",
            "-V",
            "-F/x",
            "a b",
            "a;b",
            "`x`",
            "$x",
            "a'b",
            "a\"b",
            "host%h",
            "%%",
            "a,b",
            "a\nb",
            "a\0b",
            "ssh://a",
            "user@host@host",
            "@host",
            "-l@host",
            "a b@host",
            "host:",
            "host:0",
            "host:65536",
            "host:-1",
            "host:22:22",
            "[::1",
            "[::1]22",
            "[x]:1",
            "::1",
            "hést",
        ] {
            let refused = SshTarget::parse(target).expect_err(target);
            assert_eq!(refused.kind, Kind::Usage, "{target}");
        }
    }

    #[test]
    fn a_command_line_holds_nothing_that_a_login_shell_would_read() {
        let line = in_octal(b"echo 'a' \"$b\" \\ ! \n");
        let (_, octal) = line.split_once(" sh '").expect("the last word");
        assert!(octal.trim_end_matches('\'').bytes().all(|byte| byte == b'\\' || byte.is_ascii_digit()), "{line}");
    }
}
