//! What a confined command was refused, by the signs of it in what the command printed, and the line of the settings that would open it.
//!
//! Anybody can print such signs: what is said here decides nothing. How often the bounds of a cell were met, the system counts.

use super::Confine;
use super::translated::in_english;
use backend::Facts;
use backend::cell::{Met, OwnPlace, Profile};
use base::text::sanitize;
use config::{CellNetwork, Needed, size};
use std::fs::symlink_metadata;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Notices of one command, at most.
const MOST: usize = 3;
pub(super) const READ_ONLY: &str = "Read-only file system";
pub(super) const MISSING: &str = "No such file or directory";
pub(super) const BUSY: &str = "Device or resource busy";
pub(super) const NO_SPACE: &str = "No space left on device";
pub(super) const NOT_PERMITTED: &str = "Operation not permitted";
/// What is in a line of a program that could make no namespace: `unshare`, `bwrap`, `podman`.
const NAMESPACE: [&str; 4] = ["unshare", "namespace", "newuidmap", "clone"];
/// What is in a line of a program that could not listen, beside the port.
const LISTENS: [&str; 2] = ["listen", "bind"];
/// The first port that anybody may listen at.
const FIRST_FREE_PORT: u16 = 1024;
/// What programs say that find no network.
const NO_NETWORK: [&str; 6] = [
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Name or service not known",
    "EAI_AGAIN",
    "ENETUNREACH",
];
/// What they say that get no socket.
pub(super) const NO_FAMILY: &str = "Address family not supported";
/// What they say whose address leads nowhere.
pub(super) const NO_WAY: &str = "Network is unreachable";
/// What they say that can start no process.
const NO_PROCESS: [&str; 2] = ["Resource temporarily unavailable", "Cannot fork"];

/// What is to be said of a command that ran in a cell.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// Bounds of the cell that were met, maybe by another command: no reason to let this one out.
    pub bounds: Vec<String>,
    /// What the cell refused the command, by what it printed.
    pub refusals: Vec<String>,
}

impl Confine {
    /// What is to be said of a command in a cell, whose bounds were met so often meanwhile. Of one that ended well only what names a place that it
    /// has not: its last part went well, and what failed before may be what it is about.
    pub fn notices(&self, profile: &Profile, facts: &Facts, met: Met, printed: &str, ended_well: bool) -> Notices {
        let too_many = (met.refused > 0).then(|| self.too_many(profile));
        let mut bounds: Vec<String> = self.out_of_memory(profile, met).into_iter().chain(too_many).collect();
        let mut refusals = Vec::new();
        for line in printed.lines().map(in_english) {
            let line = &*line;
            bounds.extend(self.full(profile, facts, line).filter(|notice| !bounds.contains(notice)));
            let placed = self.placed(profile, facts, line);
            let notice = placed.or_else(|| if ended_well { None } else { self.notice(profile, facts, line) });
            refusals.extend(notice.filter(|notice| !bounds.contains(notice) && !refusals.contains(notice)));
            if bounds.len() + refusals.len() >= MOST {
                break;
            }
        }
        Notices { bounds, refusals }
    }

    /// Others share the cell, so it may have been one of theirs.
    fn out_of_memory(&self, profile: &Profile, met: Met) -> Option<String> {
        let bytes = profile.memory.filter(|_| met.ended > 0)?;
        let hint = self.remedies.raise("confine.memory", bytes, "use less memory");
        let what = if met.ended == 1 { "one of their processes" } else { "some of their processes" };
        let reached = format!("the commands of this cell reached `memory` under [confine] ({})", size(bytes));
        Some(format!("{reached}, so the system ended {what}: {hint}"))
    }

    /// What a line says of a place that only the cell has, and that is full.
    fn full(&self, profile: &Profile, facts: &Facts, line: &str) -> Option<String> {
        if !line.contains(NO_SPACE) {
            return None;
        }
        let OwnPlace { place, bytes, is_bounded } =
            paths(line, NO_SPACE, facts).find_map(|path| profile.own_place(&path))?;
        let (room, use_other) = (size(bytes), "use the workspace, by TMPDIR too");
        let memory = profile.memory.filter(|_| is_bounded);
        let hint = memory.map(|memory| self.remedies.raise("confine.memory", memory, use_other));
        let hint = hint.unwrap_or_else(|| format!("no setting raises that; {use_other}"));
        Some(format!("`{place}` of a cell holds {room}, in memory: {hint}"))
    }

    fn too_many(&self, profile: &Profile) -> String {
        let hint = self.remedies.raise("confine.processes", profile.processes, "start fewer");
        let most = profile.processes;
        match profile.memory {
            // The cgroup counts.
            Some(_) => format!("the commands of this cell may have {most} processes at once, threads included: {hint}"),
            None => format!("a command may have {most} processes at once: {hint}"),
        }
    }

    /// What a line says of a place that the command has not so.
    fn placed(&self, profile: &Profile, facts: &Facts, line: &str) -> Option<String> {
        if line.contains(READ_ONLY) {
            let path = paths(line, READ_ONLY, facts).next()?;
            return Some(self.not_written(profile, facts, Some(path)));
        }
        if line.contains(BUSY) {
            let git = profile.git();
            let mut mounted = profile.protect.iter().chain(git.directories.iter().map(|found| &found.path));
            let path = paths(line, BUSY, facts).find(|path| mounted.any(|place| place == path))?;
            return Some(format!("commands can neither remove nor rename `{}`", shown(&path)));
        }
        if line.contains(MISSING) {
            let hidden = paths(line, MISSING, facts)
                .find_map(|path| profile.hide.iter().find(|hidden| path.starts_with(hidden)));
            if let Some(hidden) = hidden {
                return Some(format!("`{}` is hidden from commands", shown(hidden)));
            }
            let is_emptied = |path: &Path| profile.emptied.iter().any(|place| path.starts_with(place));
            let is_left_out = |path: &PathBuf| is_emptied(path) && symlink_metadata(path).is_ok();
            let path = paths(line, MISSING, facts).find(|path| is_left_out(path) && !profile.has_in_sight(path))?;
            let entry = path.display().to_string();
            let line = "add it, or a directory above it, to `read` under [confine]";
            let hint = self.remedies.hint("confine.read", &Needed::Entry(&entry), line);
            return Some(format!("`{}` is not there for commands: {hint}", shown(&path)));
        }
        None
    }

    fn notice(&self, profile: &Profile, facts: &Facts, line: &str) -> Option<String> {
        if line.contains(READ_ONLY) {
            return Some(self.not_written(profile, facts, None));
        }
        if let Some(notice) = self.not_permitted(profile, line) {
            return Some(notice);
        }
        match profile.network {
            CellNetwork::None if !profile.by.is_full() => {
                let is_missing = NO_NETWORK.iter().chain([&NO_FAMILY]).any(|sign| line.contains(sign));
                if is_missing {
                    return Some("commands that are partially confined have no network".into());
                }
            }
            CellNetwork::None if NO_NETWORK.iter().any(|sign| line.contains(sign)) => {
                let line = "set `network = \"egress\"` there for hosts that are named";
                let hint = self.remedies.hint("confine.network", &Needed::AtMost("egress"), line);
                return Some(format!("commands have no network, as `network = \"none\"` under [confine] says: {hint}"));
            }
            CellNetwork::Egress => {
                if let Some(notice) = self.not_connected(profile, line) {
                    return Some(notice);
                }
            }
            CellNetwork::None | CellNetwork::Full => {}
        }
        if NO_PROCESS.iter().any(|sign| line.contains(sign)) {
            return Some(self.too_many(profile));
        }
        None
    }

    /// What a program says that was not let do something, wherever it was.
    fn not_permitted(&self, profile: &Profile, line: &str) -> Option<String> {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        if !profile.nests && line.contains(NOT_PERMITTED) && has(&NAMESPACE) {
            return Some("commands in a cell cannot make namespaces, as containers and `unshare` do".into());
        }
        let is_tracer = line.starts_with("strace: ") || line.contains("ptrace") || line.contains("PTRACE");
        if !profile.debug && is_tracer {
            let line = "set `debug = true` under [confine]";
            let hint = self.remedies.hint("confine.debug", &Needed::On, line);
            return Some(format!("commands cannot trace processes: {hint}"));
        }
        let port = listened_port(line).filter(|port| *port < FIRST_FREE_PORT)?;
        Some(format!("commands in a cell cannot listen at port {port}: use one from {FIRST_FREE_PORT} on"))
    }

    /// What a program says that could not connect, where it went past names and the proxy.
    fn not_connected(&self, profile: &Profile, line: &str) -> Option<String> {
        let port = refused_port(line);
        if let Some(port) = port.filter(|port| !profile.ports.contains(port)) {
            return Some(format!("commands reach no host at port {port}: {}", self.reachable.list_port(port)));
        }
        let is_address = |word: &str| word.parse::<IpAddr>().is_ok_and(|address| !address.is_loopback());
        let mut words = line.split(|c: char| !c.is_ascii_hexdigit() && c != '.' && c != ':');
        let is_lost = line.contains(NO_WAY) || port.is_some() && words.any(is_address);
        let how =
            "no address leads out of a cell: give the name of the host, or use the proxy that `HTTPS_PROXY` names";
        is_lost.then(|| how.into())
    }

    fn not_written(&self, profile: &Profile, facts: &Facts, path: Option<PathBuf>) -> String {
        let Some(path) = path else {
            return format!("the command {}: see `write` under [confine]", profile.writes());
        };
        if profile.protect.iter().any(|protected| path.starts_with(protected)) {
            return format!(
                "`{}` is protected, as it runs or is obeyed later: see `protect` under [confine]",
                shown(&path)
            );
        }
        let git = profile.git();
        if let Some(directory) = git.directories.iter().find(|found| path.starts_with(&found.path)) {
            let why = directory.closed.as_deref().unwrap_or("nothing could be put between them and it here");
            return format!("commands only read `{}`: {why}", shown(&directory.path));
        }
        if path.starts_with(&facts.workspace.root)
            && let Some(why) = self.unwritable(facts)
        {
            return format!(
                "the workspace is not writable: {why}; start in a directory of its own, or name one in `write` under [confine]"
            );
        }
        if let Some(why) = self.never_opened(&path) {
            return format!(
                "the command may not write `{}`, and no setting allows it ({why}): use another path",
                shown(&path)
            );
        }
        let line = "add a directory above it to `write` under [confine]";
        let entry = path.display().to_string();
        let hint = self.remedies.hint("confine.write", &Needed::Entry(&entry), line);
        format!("the command may not write `{}`: {hint}", shown(&path))
    }
}

impl Confine {
    /// Why no directory above a path can be one that commands write in, if none can.
    fn never_opened(&self, path: &Path) -> Option<String> {
        let never = |root: &Path| self.never_written(root, &self.programs);
        let nearest = path.parent().and_then(never)?;
        path.ancestors().skip(2).all(|root| never(root).is_some()).then_some(nearest)
    }
}

/// What in a line with this sign looks like a path: what a shell redirects to first, then what is in quotes, then words with a `/`. Relative
/// ones begin where commands do.
fn paths<'l>(line: &'l str, sign: &str, facts: &'l Facts) -> impl Iterator<Item = PathBuf> + 'l {
    let redirected = redirected(line, sign);
    let quoted = line.split(['\'', '"', '`', '\u{2018}', '\u{2019}']).skip(1).step_by(2);
    let program = program(line, sign).map_or(0, str::len);
    let words = line[program..].split_whitespace().map(|word| word.trim_end_matches([':', ',', ';']));
    let words = words.filter(|word| word.starts_with('/') || word.starts_with("./") || word.starts_with("../"));
    let named = redirected.into_iter().chain(quoted).chain(words).filter(|text| !text.is_empty());
    named.map(|text| base::paths::normal(&facts.directory.join(text)))
}

/// What a line begins with if that is who says it: something else comes before the sign.
fn program<'l>(line: &'l str, sign: &str) -> Option<&'l str> {
    let (before, _) = line.split_once(sign)?;
    let (program, said) = before.split_once(": ")?;
    let is_word = !program.contains(|c: char| c.is_whitespace());
    (is_word && !said.trim().is_empty()).then_some(program)
}

/// The file that a shell could not open for a command, as dash, busybox and bash say it: `sh: 1: cannot create FILE: `, `sh: can't create FILE: `
/// and `bash: line 1: FILE: `.
fn redirected<'l>(line: &'l str, sign: &str) -> Option<&'l str> {
    let said = line[program(line, sign)?.len()..].strip_prefix(": ")?.split_once(sign)?.0.strip_suffix(": ")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, rest) = said.split_once(": ").unwrap_or(("", said));
    let is_numbered = is_number(number.strip_prefix("line ").unwrap_or(number));
    let said = if is_numbered { rest } else { said };
    // Without a number the first two would be those of `mkdir` as well.
    let opens = ["cannot create ", "cannot open ", "can't create ", "can't open "];
    let opens = if is_numbered { &opens[..] } else { &opens[2..] };
    let opened = opens.iter().find_map(|begin| said.strip_prefix(begin));
    let file = opened.or(is_numbered.then_some(said));
    file.filter(|file| !file.contains(['\'', '"', '`', '\u{2018}']) && !file.contains(": "))
}

fn shown(path: &Path) -> String {
    sanitize::line(&path.to_string_lossy()).into_owned()
}

/// The port of another host that a program says it could not connect to.
fn refused_port(line: &str) -> Option<u16> {
    let is_refused = line.contains("onnection refused") || line.contains("connect to");
    let is_other = !line.contains("localhost") && !line.contains("127.0.0.1");
    let (_, behind) = line.split_once("port ").filter(|_| is_refused && is_other)?;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The port that a program says it was not let listen at: `bind() to 0.0.0.0:80 failed (13: Permission denied)`, `listen EACCES: permission denied ::1:80`.
fn listened_port(line: &str) -> Option<u16> {
    let is_refused = line.contains("ermission denied") && LISTENS.iter().any(|word| line.contains(word));
    let mut ports = line.split_whitespace().filter_map(|word| word.rsplit_once(':')?.1.parse().ok());
    ports.next().filter(|_| is_refused)
}

#[cfg(test)]
mod tests {
    use super::Notices;
    use crate::Policy;
    use backend::Backend;
    use backend::cell::{Means, Met, Profile};
    use backend::local::Local;
    use base::dirs::Dirs;
    use config::{CellNetwork, Settings, Sources};

    #[tokio::test]
    async fn what_programs_say_of_refusals_names_the_line() {
        let root = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let dirs = Dirs::below(&root.path().canonicalize().expect("a path"));
        for directory in [dirs.home.join(".ssh"), root.path().join("work/.vscode")] {
            std::fs::create_dir_all(directory).expect("a directory");
        }
        let set = vec!["confine.mode=auto".into()];
        let settings =
            Settings::load(&Sources { home: dirs.home.clone(), set, ..Sources::default() }).expect("settings");
        let policy = Policy::new(&settings, &dirs, &[]).expect("a policy");
        let work = root.path().canonicalize().expect("a path").join("work");
        let local = Local::new(work.clone(), dirs.home.clone(), dirs.state.clone(), Default::default());
        let facts = local.facts().await.expect("facts");
        let profile = policy.confine.ladder(&facts).expect("a ladder").first().clone();
        let told = |printed: &str| {
            let Notices { bounds, refusals } = policy.confine.notices(&profile, &facts, Met::default(), printed, false);
            [bounds, refusals].concat()
        };
        let (home, write) = (dirs.home.display(), "add a directory above it to `write` under [confine]");
        let never = |path: &str, why: &str| {
            format!("the command may not write `{path}`, and no setting allows it ({why}): use another path")
        };
        for (printed, expected) in [
            ("touch: cannot touch '/usr/x': Read-only file system", never("/usr/x", "`/usr/bin` is the system's")),
            (
                "mkdir: cannot create directory \u{2018}/opt/a b\u{2019}: Read-only file system",
                format!("the command may not write `/opt/a b`: {write}"),
            ),
            ("sh: 1: cannot create /etc/y: Read-only file system", never("/etc/y", "`/etc` is the system's")),
            (
                "OSError: [Errno 30] Read-only file system: '../z'",
                never(&format!("{}/z", root.path().display()), "the home is in it"),
            ),
            (
                "Error: Read-only file system (os error 30)",
                format!("the command writes below {}: see `write` under [confine]", work.display()),
            ),
            (
                "/bin/sh: 1: cannot create bin/git: Read-only file system",
                format!("the command may not write `{}/bin/git`: {write}", work.display()),
            ),
            ("/bin/sh: can't create /etc/y: Read-only file system", never("/etc/y", "`/etc` is the system's")),
            (
                "/usr/bin/bash: line 12: out: Read-only file system",
                format!("the command may not write `{}/out`: {write}", work.display()),
            ),
            (
                "/usr/bin/touch: cannot touch '/usr/x': Read-only file system",
                never("/usr/x", "`/usr/bin` is the system's"),
            ),
            ("/opt/one: Read-only file system", format!("the command may not write `/opt/one`: {write}")),
            (
                "/usr/bin/tool: Read-only file system (os error 30)",
                never("/usr/bin/tool", "`/usr/bin` is the system's"),
            ),
            (
                "/usr/bin/tool: failed: Read-only file system",
                format!("the command writes below {}: see `write` under [confine]", work.display()),
            ),
            (
                "sh: 1: cannot create .vscode/x: Read-only file system",
                format!(
                    "`{}/.vscode/x` is protected, as it runs or is obeyed later: see `protect` under [confine]",
                    work.display()
                ),
            ),
            (
                "rm: cannot remove './.vscode/x': Read-only file system",
                format!(
                    "`{}/.vscode/x` is protected, as it runs or is obeyed later: see `protect` under [confine]",
                    work.display()
                ),
            ),
            (
                &format!("cat: {home}/.ssh/id: No such file or directory"),
                format!("`{home}/.ssh` is hidden from commands"),
            ),
            ("cat: /nowhere: No such file or directory", String::new()),
            (
                "ssh: connect to host example.com port 22: Connection refused",
                "commands reach no host at port 22: add 22 to `ports` under [confine]".into(),
            ),
            ("curl: (7) Failed to connect to localhost port 3000 after 0 ms", String::new()),
            (
                "curl: (7) Failed to connect to 93.184.216.34 port 80 after 0 ms: Couldn't connect",
                "no address leads out of a cell: give the name of the host, or use the proxy that `HTTPS_PROXY` names"
                    .into(),
            ),
            (
                "sh: 0: Cannot fork",
                "a command may have 512 processes at once: start fewer, or raise `processes` under [confine]".into(),
            ),
            (
                "rmdir: failed to remove '.vscode': Device or resource busy",
                format!("commands can neither remove nor rename `{}/.vscode`", work.display()),
            ),
            ("mv: cannot move 'a' to 'b': Device or resource busy", String::new()),
            (
                "bwrap: Creating new namespace failed: Operation not permitted",
                "commands in a cell cannot make namespaces, as containers and `unshare` do".into(),
            ),
            ("chown: changing ownership of 'a': Operation not permitted", String::new()),
            (
                "ptrace: Operation not permitted.",
                "commands cannot trace processes: set `debug = true` under [confine]".into(),
            ),
            (
                "Error: listen EACCES: permission denied 0.0.0.0:80",
                "commands in a cell cannot listen at port 80: use one from 1024 on".into(),
            ),
            ("Error: listen EACCES: permission denied 0.0.0.0:8080", String::new()),
            ("dd: error writing 'x': No space left on device", String::new()),
            (
                "cp: error writing '/dev/shm/a': No space left on device",
                "`/dev/shm` of a cell holds 1 GiB, in memory: no setting raises that; use the workspace, by TMPDIR too"
                    .into(),
            ),
            ("all is well", String::new()),
        ] {
            assert_eq!(told(printed).join(""), expected, "{printed}");
        }
        // Of what ended well only what names a place that it has not so.
        let well = |printed: &str| policy.confine.notices(&profile, &facts, Met::default(), printed, true).refusals;
        assert_eq!(well("sh: 1: cannot create /opt/y: Read-only file system").len(), 1);
        assert_eq!(well("Read-only file system\nptrace: Operation not permitted."), [""; 0]);
        let closed = Profile { network: CellNetwork::None, ..(*profile).clone() };
        let unresolved = "curl: (6) Could not resolve host: example.com";
        let partial = Profile { by: Means::Landlock, ..closed.clone() };
        let said = policy.confine.notices(&partial, &facts, Met::default(), unresolved, false).refusals;
        assert_eq!(said, ["commands that are partially confined have no network"]);
        let said = policy.confine.notices(&closed, &facts, Met::default(), unresolved, false).refusals;
        let line = "set `network = \"egress\"` there for hosts that are named";
        assert_eq!(said, [format!("commands have no network, as `network = \"none\"` under [confine] says: {line}")]);
        assert_eq!(told("/a: Read-only file system\n/b: Read-only file system\n".repeat(9).as_str()).len(), 2);
        let bounded = Profile { memory: Some(64 << 20), processes: 100, ..(*profile).clone() };
        let met =
            |ended, refused, printed| policy.confine.notices(&bounded, &facts, Met { ended, refused }, printed, false);
        let memory = "the commands of this cell reached `memory` under [confine] (64 MiB), so the system ended one of their processes: \
                      use less memory, or raise `memory` under [confine]";
        let processes = "the commands of this cell may have 100 processes at once, threads included: start fewer, or raise `processes` under [confine]";
        assert_eq!(met(1, 0, "Killed").bounds, [memory]);
        assert_eq!(met(2, 0, "").bounds, [memory.replace("one of", "some of")]);
        let told = met(0, 0, "cp: error writing '/tmp/a/b': No space left on device").bounds;
        let room = "`/tmp` of a cell holds 16 MiB, in memory: use the workspace, by TMPDIR too, or raise `memory` under [confine]";
        assert_eq!(told, [room]);
        // It is said once, and no reason to let the command out.
        let told = met(0, 3, "sh: 0: Cannot fork");
        assert_eq!((told.bounds, told.refusals), (vec![processes.to_owned()], Vec::new()));
        let told = met(1, 0, "touch: /x: Read-only file system");
        assert_eq!((told.bounds.len(), told.refusals.len()), (1, 1));
        assert_eq!(met(0, 0, ""), Notices::default());
    }
}
