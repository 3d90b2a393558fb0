//! Which browser is started, how it is confined, and where it keeps what it keeps.
//!
//! It runs with its own sandbox on, in a cell of its own: its files and what the system brings for it are all that it sees, and it reaches the
//! network by the host alone. The switches on its command line keep it from trying other ways; the cell is what closes them.

use super::downloads::whole;
use super::managed;
use backend::cell::Profile;
use backend::local::{Local, try_cell};
use backend::{Backend, Input, Process, ProcessSpec, finish};
use base::dirs::Dirs;
use base::disk::{OwnDir, open_anywhere};
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use base64::Engine;
use config::{CellNetwork, Config, PROXY_PORT};
use egress::{Attached, CA_BYTES, Egress, Naming};
use futures_util::future::BoxFuture;
use rustix::fs::FlockOperation;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Where the programs are that can be used, the better ones first: as Debian, Ubuntu, Fedora, Arch and the vendors of others install them.
const PROGRAMS: [&str; 9] = [
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/bin/chromium-headless-shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium-browser/headless_shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/bin/chromium",
    "/opt/google/chrome/chrome",
];
/// What to install where there is none.
const PACKAGE: &str = "install the package `chromium-headless-shell` (Debian) or `chromium`, or name the program by `browser_program` under [tools]";
/// What puts certificates into the store that browsers read.
const CERTUTIL: [&str; 2] = ["/usr/bin/certutil", "/usr/local/bin/certutil"];
/// Processes of a browser and its pages.
const PROCESSES: u64 = 1024;
/// Directories of profiles, below Toolcrib's own.
const KEPT: &str = "profiles";
const PASSING: &str = "passing";
/// What pages download, and what they are given, within a profile. Neither stays when its browser has ended.
const DOWNLOADS: &str = "downloads";
const UPLOADS: &str = "uploads";
/// The size of what is seen of a page.
const WINDOW: &str = "--window-size=1280,900";
/// The browser's pipe is at descriptors 3 and 4. What it writes is this user's alone. Each of its processes has at most 4 GiB of its own (in KiB, as
/// RLIMIT_DATA counts it): a page that wants more crashes.
const ON_PIPE: &str = r#"umask 077; ulimit -d 4194304; exec "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

/// What every browser is started with.
#[rustfmt::skip]
const SWITCHES: [&str; 25] = [
    "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", WINDOW, "--mute-audio", "--disable-gpu",
    // Nothing goes past the proxy, loopback and link-local addresses neither; no name is looked up here.
    "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--disable-quic",
    // One of the two is read, by the program.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // What it does for its vendor and for its user.
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-breakpad", "--disable-crash-reporter", "--no-pings", "--metrics-recording-only",
    "--password-store=basic", "--deny-permission-prompts", "--disable-notifications",
    "--disable-features=BackForwardCache,WebTransport,DnsOverHttps,MediaRouter,Translate,OptimizationHints,WebUIOmniboxPopup,AutofillServerCommunication,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,SpareRendererForSitePerProcess",
];

/// A browser that was started.
pub(super) struct Started {
    pub(super) process: Box<dyn Process>,
    pub(super) input: Input,
    pub(super) kept: Kept,
    /// What whoever uses it should know.
    pub(super) notice: Option<String>,
}

/// What belongs to a browser. Dropped in this order: the network, the cell, the profile's directory.
pub(super) struct Kept {
    pub(super) network: Attached,
    _cell: Local,
    profile: ProfileDir,
}

impl Kept {
    /// Where files go that pages download.
    pub(super) fn downloads(&self) -> PathBuf {
        self.profile.path.join(DOWNLOADS)
    }

    /// Takes such a file, by its name, out of there. What lies there is the browser's: no link is followed.
    pub(super) fn take_download(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let taken = self.downloaded()?.file(name).and_then(|file| whole(file, most));
        self.downloaded()?.remove(name.as_ref())?;
        taken
    }

    /// Removes what is there of such files.
    pub(super) fn clear_downloads(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(self.downloads()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Puts a copy of a file where a page can be given it: by its own name, in a directory of its own.
    pub(super) fn place_upload(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let place = OwnDir::open(&self.profile.path)?.below(UPLOADS)?.below(&random_id())?;
        place.create(name)?.write_all(content)?;
        Ok(place.path().join(name))
    }

    fn downloaded(&self) -> io::Result<OwnDir> {
        OwnDir::open(&self.profile.path)?.below(DOWNLOADS)
    }
}

/// How browsers are started here.
pub struct Programs {
    egress: Arc<Egress>,
    dirs: Dirs,
    /// What settings name.
    named: String,
    /// Certificates that are trusted besides the system's.
    ca_file: Option<PathBuf>,
    /// Whether a browser can be confined: why not.
    confines: OnceCell<Result<(), String>>,
}

impl Programs {
    pub fn new(config: &Config, dirs: &Dirs, egress: Arc<Egress>) -> Self {
        let (named, ca_file) = (config.tools.browser_program.clone(), &config.network.ca_file);
        let ca_file = Some(ca_file).filter(|file| !file.is_empty()).map(|file| dirs.expand(file));
        Self { egress, dirs: dirs.clone(), named, ca_file, confines: OnceCell::new() }
    }

    /// The program that is started.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what to install.
    pub fn find(&self) -> Result<PathBuf, Failure> {
        if !cfg!(target_os = "linux") {
            return Err(Failure::new(Kind::Unavailable, "a browser is confined on Linux alone"));
        }
        if self.named.is_empty() {
            let mut found = PROGRAMS.iter().map(PathBuf::from).filter(|program| program.is_file());
            return found
                .next()
                .ok_or_else(|| Failure::new(Kind::Unavailable, "there is no browser here").hint(PACKAGE));
        }
        let program = self.dirs.expand(&self.named);
        match program.is_absolute() && program.is_file() {
            true => Ok(program),
            false => Err(Failure::new(
                Kind::Unavailable,
                format!("`browser_program` names `{}`, which is not a file", self.named),
            )
            .hint(PACKAGE)),
        }
    }

    /// Whether a browser can be confined here, which is tried once.
    ///
    /// # Errors
    ///
    /// `unavailable`, with why not.
    pub fn check_confined(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let tried = self.confines.get_or_init(async || {
                let profile = cell(Path::new("/tmp"), "tried").map_err(|error| error.to_string())?;
                let profile = Profile { write: Vec::new(), ..profile };
                try_cell(&profile).await.map_err(|error| error.to_string())
            });
            tried.await.clone().map_err(|why| {
            Failure::new(Kind::Unavailable, format!("a browser cannot be confined here: {why}"))
                .hint("`toolcrib doctor` says what this system does not let programs do; without a cell no browser is started")
        })
        })
    }

    /// Starts one with this profile; without a name one that goes with it.
    pub(super) async fn start(&self, profile: Option<&str>) -> Result<Started, Failure> {
        let program = self.find()?;
        self.check_confined().await?;
        let dirs = &self.dirs;
        let begin = Instant::now();
        let kept = loop {
            match ProfileDir::open(dirs, profile) {
                Err(busy) if busy.kind == Kind::Busy && begin.elapsed() < LET_GO => tokio::time::sleep(LOOK).await,
                opened => break opened?,
            }
        };
        let unavailable =
            |error: io::Error| Failure::new(Kind::Unavailable, format!("a browser cannot be confined: {error}"));
        let place = kept.path.clone();
        let mut profile = cell(&place, &kept.id).map_err(unavailable)?;
        if !is_shell(&program) {
            let own = OwnDir::open(&dirs.state).and_then(|state| state.below("browser"));
            if let Some(mount) = own.and_then(|own| managed::lay(&own)).map_err(unavailable)? {
                profile.show.push(mount.from.clone());
                profile.mounts.push(mount);
            }
        }
        let profile = std::sync::Arc::new(profile);
        let (home, environment) = (dirs.home.clone(), dirs.environment.clone());
        let local = Local::new(home.clone(), home, dirs.state.clone(), environment);
        let notice = match &self.ca_file {
            Some(file) => trust(&local, file, &place, &kept.id).await.err(),
            None => None,
        };
        let listeners = local.listeners(&profile).map_err(|why| unavailable(io::Error::other(why)))?;
        let listeners = listeners.ok_or_else(|| unavailable(io::ErrorKind::AddrInUse.into()))?;
        let network = self.egress.attach(listeners, Naming::MadeUp).map_err(unavailable)?;
        let variables = [("HOME", place.as_path()), ("TMPDIR", Path::new("/tmp"))];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.display().to_string()));
        let off = [("DBUS_SESSION_BUS_ADDRESS", "disabled:"), ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")];
        let off = off.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let spec = ProcessSpec {
            variables: variables.into_iter().chain(off).collect(),
            directory: Some("/tmp".into()),
            cell: Some(profile),
            ..ProcessSpec::own(command_line(&program, &place))
        };
        let (process, input) = local.open(spec).await?;
        Ok(Started { process, input, kept: Kept { network, _cell: local, profile: kept }, notice })
    }
}

/// Whether a program is no more than what has no window.
fn is_shell(program: &Path) -> bool {
    program.to_string_lossy().contains("headless")
}

/// How a browser is started.
fn command_line(program: &Path, profile: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> = ["/bin/sh", "-c", ON_PIPE, "sh"].map(OsString::from).into();
    line.push(program.into());
    line.extend(SWITCHES.map(OsString::from));
    line.push(format!("--proxy-server=http://127.0.0.1:{PROXY_PORT}").into());
    if !is_shell(program) {
        line.push("--headless=new".into());
    }
    line.push(format!("--user-data-dir={}", profile.display()).into());
    line.push("about:blank".into());
    line
}

/// What a browser sees: what the system brings, and its profile.
fn cell(profile: &Path, id: &str) -> io::Result<Profile> {
    // Profiles have the same cell only if they are equal: no two browsers share one.
    let toolset = Some(id.to_owned());
    Ok(Profile { toolset, nests: true, processes: PROCESSES, ..Profile::of_system(vec![profile.to_owned()], &[])? })
}

/// Puts the certificates of standard input into the store at `$1` by the program `$0`: the file of each is its number.
const TRUST: &str = r#"set -e
umask 077
[ -d "$1" ] || { mkdir -p "$1"; "$0" -d "sql:$1" -N --empty-password; }
number=0
while read -r certificate; do
    printf '%s' "$certificate" | "$0" -d "sql:$1" -A -a -n "toolcrib $number" -t C,,
    number=$((number + 1))
done"#;

/// Has a browser trust the certificates of a file: they go into the store that it looks for in its home. That is done in a cell like its own, without
/// a network: what lies in a profile that stays is a browser's work, and a link there leads nowhere else.
async fn trust(local: &Local, file: &Path, home: &Path, id: &str) -> Result<(), String> {
    let why = |why: String| format!("the browser does not know the certificates of `ca_file`: {why}");
    let program = CERTUTIL.iter().map(Path::new).find(|program| program.is_file());
    let program = program.ok_or_else(|| why("install the package `libnss3-tools`".into()))?;
    let text = open_anywhere(file).and_then(|file| file.read(CA_BYTES)).map_err(|error| why(error.to_string()))?;
    let mut lines = String::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| why(error.to_string()))?;
        lines += &base64::engine::general_purpose::STANDARD.encode(&certificate);
        lines.push('\n');
    }
    let profile = cell(home, &format!("{id} trust")).map_err(|error| why(error.to_string()))?;
    let profile = Profile { network: CellNetwork::None, nests: false, ..profile };
    let mut argv: Vec<OsString> = ["/bin/sh", "-c", TRUST].map(OsString::from).into();
    argv.extend([program.into(), home.join(".pki/nssdb").into_os_string()]);
    let spec = ProcessSpec {
        variables: vec![("HOME".to_owned(), home.display().to_string())],
        directory: Some("/tmp".into()),
        input: lines.into_bytes(),
        cell: Some(std::sync::Arc::new(profile)),
        ..ProcessSpec::own(argv)
    };
    let finished = async { finish(local.start(spec).await?).await.map_err(|error| Failure::failed(error.to_string())) };
    match finished.await {
        Ok(finished) if finished.status == 0 => Ok(()),
        Ok(finished) => Err(why(String::from_utf8_lossy(&finished.stderr).trim().to_owned())),
        Err(failure) => Err(why(failure.message)),
    }
}

/// How long a profile may still be locked after its browser has ended, as a process that is being started has a lock of this one until it runs.
const LET_GO: Duration = Duration::from_secs(2);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The directory of a profile, which nobody else uses meanwhile.
struct ProfileDir {
    path: PathBuf,
    id: String,
    /// Locked as long as it is open.
    _lock: File,
    /// The directory in which it is, where it goes with its browser.
    passes: Option<OwnDir>,
}

impl ProfileDir {
    fn open(dirs: &Dirs, name: Option<&str>) -> Result<Self, Failure> {
        let odd =
            |error: io::Error| Failure::new(Kind::Unavailable, format!("a browser's profile cannot be kept: {error}"));
        let own = OwnDir::open(&dirs.state).and_then(|state| state.below("browser")).map_err(odd)?;
        // Between a lock that is made and one that is held nobody sweeps.
        let turn = own.append("turn").map_err(odd)?;
        rustix::fs::flock(&turn, FlockOperation::LockExclusive).map_err(|error| odd(error.into()))?;
        let (id, all) = match name {
            Some(name) => (name.to_owned(), own.below(KEPT).map_err(odd)?),
            None => {
                let all = own.below(PASSING).map_err(odd)?;
                sweep(&all);
                (random_id(), all)
            }
        };
        let lock = all.append(&lock_of(&id)).map_err(odd)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::new(Kind::Busy, format!("the profile `{id}` is in use by another browser"))
                .hint("close that one, or use another profile"));
        }
        let directory = all.below(&id).map_err(odd)?;
        let path = directory.path().canonicalize().map_err(odd)?;
        // Ours is the lock above; a browser's own is left by one that was killed, or in a container by another name of its host.
        for name in ["SingletonLock", "SingletonSocket", "SingletonCookie"] {
            match std::fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(odd(error)),
                Ok(()) | Err(_) => {}
            }
        }
        // One whose host was killed has left them.
        clear(&path).map_err(odd)?;
        Ok(Self { path, id, _lock: lock, passes: name.is_none().then_some(all) })
    }
}

impl Drop for ProfileDir {
    fn drop(&mut self) {
        match &self.passes {
            Some(all) => discard(all, &self.id),
            None => clear(&self.path).unwrap_or_default(),
        }
    }
}

/// Removes the files of pages from a profile that stays. No link is followed.
fn clear(profile: &Path) -> io::Result<()> {
    for name in [DOWNLOADS, UPLOADS] {
        match std::fs::remove_dir_all(profile.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Removes what browsers have left that were killed with their hosts.
fn sweep(all: &OwnDir) {
    for (name, _) in all.files().unwrap_or_default() {
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else { continue };
        let Ok(lock) = all.append(&lock_of(id)) else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            discard(all, id);
        }
    }
}

/// Removes a profile, and its lock if nothing is left of it: what stays is swept when another begins.
fn discard(all: &OwnDir, id: &str) {
    match std::fs::remove_dir_all(all.path().join(id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {}
        Ok(()) | Err(_) => drop(all.remove(lock_of(id).as_ref())),
    }
}

fn lock_of(id: &str) -> String {
    format!("{id}.lock")
}
