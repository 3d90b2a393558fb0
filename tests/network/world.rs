//! A network of one test: a namespace with a loopback device alone, where every address of IPv4 and IPv6 is this machine.
//!
//! A namespace is of a process. So a test starts its own binary again inside one, for that test alone, and asks how that went.
#![expect(clippy::disallowed_methods, reason = "the test starts itself inside a namespace")]

use crate::host::Preparation;
use crate::record::{Contact, TRACER, contacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;
use toolcrib_tests::{Program, compiled, is_long, note_skip, reuse_code};

/// Where a test that is inside finds the directory of its world.
const INSIDE: &str = "TOOLCRIB_WORLD";
/// The same for a home with compiled tools.
const COMPILED: &str = "TOOLCRIB_WORLD_CODE";

/// Ends with the command that follows: without a terminal, so that nobody is asked on it.
const SETUP: &str = r#"
    PATH="$PATH:/usr/sbin:/sbin"
    ip link set lo up &&
    ip route add local 0.0.0.0/0 dev lo &&
    ip -6 route add local ::/0 dev lo &&
    mount --bind "$TOOLCRIB_WORLD/hosts" /etc/hosts &&
    mount --bind "$TOOLCRIB_WORLD/resolv.conf" /etc/resolv.conf &&
    exec setsid --wait "$@""#;

/// What `/etc/hosts` says inside: another address for a name of the DNS, and a name that the DNS does not have.
const HOSTS: &str = "127.0.0.1 localhost\n10.0.0.7 listed.org\n93.184.216.99 only-listed.org\n";
/// The system's name server inside is the test's own; the search domain is a lure.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\nsearch corp.org\noptions ndots:5\n";

/// Where the test's name server is.
const NAME_SERVER: &str = "127.0.0.1:53";

/// A network of one test, seen from inside.
pub(crate) struct World {
    directory: PathBuf,
}

/// Runs the body in a network of its own.
pub(crate) fn in_a_world(body: impl FnOnce(&World)) {
    if let Some(directory) = std::env::var_os(INSIDE) {
        return body(&World { directory: directory.into() });
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a test runs in a thread of its name");
    if let Err(reason) = &*POSSIBLE {
        return note_skip(test, &format!("no network of its own: {reason}"));
    }
    let directory = outside();
    let mut inside = enter(directory.path());
    inside.env(COMPILED, compiled()).arg(std::env::current_exe().expect("a running test has a file"));
    let output = inside.args([test, "--exact", "--nocapture"]).output().expect("`timeout` is installed");
    let said = all(&output);
    println!("{said}");
    assert!(output.status.success(), "`{test}` failed in its world: {}", output.status);
    assert!(said.contains("test result: ok. 1 passed"), "`{test}` was not run in its world");
}

/// Whether there can be such networks here, with a tracer in them; if not, why.
static POSSIBLE: LazyLock<Result<(), String>> = LazyLock::new(|| {
    let directory = outside();
    let record = directory.path().join("probe");
    let mut probe = enter(directory.path());
    probe.arg("strace").args(TRACER).arg(&record).arg("true");
    let output = probe.output().map_err(|error| error.to_string())?;
    let traced = std::fs::read_to_string(record).unwrap_or_default();
    if output.status.success() && traced.contains("exited with 0") { Ok(()) } else { Err(all(&output)) }
});

/// The directory of a world that is about to be entered.
fn outside() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [("hosts", HOSTS), ("resolv.conf", RESOLV_CONF)] {
        std::fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

/// A command inside, to which its name and arguments are to be added.
fn enter(directory: &Path) -> Command {
    let namespaces = if rustix::process::getuid().is_root() { "-nm" } else { "-rnm" };
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", if is_long() { "3600" } else { "900" }]);
    command.args(["unshare", namespaces, "sh", "-c", SETUP, "sh"]).env(INSIDE, directory);
    command
}

fn all(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

impl World {
    /// A program of this world, which asks the test's name server.
    pub(crate) fn program(&self) -> Preparation<'_> {
        self.bare_program().set(&format!("network.dns_servers=[{NAME_SERVER:?}]"))
    }

    /// A program of this world, which asks the name servers of the system.
    pub(crate) fn bare_program(&self) -> Preparation<'_> {
        let compiled = std::env::var_os(COMPILED).expect("the test outside says where compiled tools are");
        Preparation::new(self, Path::new(&compiled))
    }

    /// A home for a host whose commands are confined, and what its settings say first. Its programs are not on record.
    pub(crate) fn confined(&self, has_panes: bool) -> (Program, Vec<String>) {
        // Not below `/tmp`, which a cell has of its own.
        let program = Program::cold_below(Path::new("/var/tmp")).in_panes(has_panes);
        let compiled = std::env::var_os(COMPILED).expect("the test outside says where compiled tools are");
        reuse_code(Path::new(&compiled), &program.path("state/toolcrib"));
        let set = ["confine.mode=required", &format!("network.dns_servers=[{NAME_SERVER:?}]")]
            .iter()
            .flat_map(|setting| ["--set".to_owned(), (*setting).to_owned()])
            .collect();
        (program, set)
    }

    /// Changes the network: `ip` with these arguments.
    pub(crate) fn ip(&self, arguments: &[&str]) {
        let output = Command::new("ip").args(arguments).output().expect("`ip` is installed");
        assert!(output.status.success(), "ip {arguments:?}: {}", all(&output));
    }

    /// A file for the record of one more program.
    pub(crate) fn new_record(&self) -> PathBuf {
        let number = self.records().len();
        self.directory.join(format!("record-{number:04}"))
    }

    /// Whom programs turned to so far, in order; with several programs one after the other.
    pub(crate) fn record(&self) -> Vec<Contact> {
        let texts = self.records().into_iter().map(|file| std::fs::read_to_string(file).expect("a record"));
        texts.flat_map(|text| contacts(&text)).collect()
    }

    /// Prints whom programs turned to, and expects that there were none but these (such as `tcp 1.2.3.4:80`) and the name server.
    pub(crate) fn assert_record(&self, allowed: &[&str]) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for contact in self.record() {
            *counts.entry(contact.to_string()).or_default() += 1;
        }
        println!("the record: {counts:#?}");
        let is_allowed = |contact: &str| allowed.contains(&contact) || contact.split(' ').nth(1) == Some(NAME_SERVER);
        let others: Vec<_> = counts.keys().filter(|contact| !is_allowed(contact)).collect();
        assert!(others.is_empty(), "turned to {others:?}, which is not among {allowed:?}");
    }

    fn records(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).expect("the directory of the world");
        let files = entries.map(|entry| entry.expect("an entry").path());
        let mut records: Vec<_> = files
            .filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("record-")))
            .collect();
        records.sort();
        records
    }
}
