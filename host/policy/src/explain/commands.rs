//! What binds all commands of a plugin, whichever capability runs them.

use super::words::listed;
use super::{Clause, Explained};
use crate::connections::open_to_all;
use crate::shell::ShellGrant;
use config::{Allowlist, Ask, CellNetwork, Confine, ConfineFloor, ConfineMode, HeldFiles, Unconfined, WORKSPACE};
use std::path::PathBuf;

impl Explained<'_> {
    /// What binds all its commands.
    pub(crate) fn commands(&self, subject: &'static str, grant: &ShellGrant) -> Vec<Clause> {
        let (verdict, detail) = match (grant.confirms(), self.policy.config.confine.ask) {
            (false, _) => ("allowed", "commands run without a question"),
            (true, Ask::Always) => ("asks", "a person is shown every command first"),
            (true, Ask::Leaving) => ("asks", "a person is shown every command first that does not run in a full cell"),
        };
        let patterns = self.policy.config.tools.shell_denylist.join("`, `");
        let denied =
            if patterns.is_empty() { "no command".into() } else { format!("commands that match `{patterns}`") };
        let clause =
            |verdict, detail: String, key: &str| Clause { subject, verdict, detail, decided_by: self.decided(key) };
        let mut clauses = vec![clause(verdict, detail.into(), "tools.shell_confirm")];
        clauses.extend(
            cells(&self.policy.config.confine).into_iter().map(|(verdict, detail, key)| clause(verdict, detail, key)),
        );
        clauses.push(clause("denied", denied, "tools.shell_denylist"));
        if !grant.secrets.is_empty() {
            let detail = format!("commands that name them get the secrets: {}", grant.secrets.join(", "));
            clauses.push(clause("allowed", detail, "tools.shell_secrets"));
        }
        clauses
    }
}

/// A verdict, its detail, and the setting that decides.
type Verdict = (&'static str, String, &'static str);

/// How commands are confined on this machine.
fn cells(confine: &Confine) -> Vec<Verdict> {
    let mode = match confine.mode {
        ConfineMode::Off => return vec![("allowed", "commands have all rights of the user".into(), "confine.mode")],
        ConfineMode::Auto => "commands run confined; where they cannot be, a person is asked about each",
        ConfineMode::Required => "commands run confined, or not at all",
    };
    let floor = match confine.floor {
        ConfineFloor::Full => "confined is what runs in namespaces of its own",
        ConfineFloor::Partial => {
            "where there can be no namespaces, partially confined counts, too: what can be read stays so, and a person is asked about each"
        }
    };
    let mut verdicts =
        vec![("allowed", mode.to_owned(), "confine.mode"), ("allowed", floor.to_owned(), "confine.floor")];
    verdicts.extend(files(confine));
    verdicts.extend(network(confine));
    if confine.memory.bytes().is_some() {
        let detail = format!(
            "the commands of a cell take no more memory together than {}; where that cannot be enforced, none runs",
            confine.memory
        );
        verdicts.push(("denied", detail, "confine.memory"));
    }
    if confine.debug {
        verdicts.push(("allowed", "they look into processes of their own, as debuggers do".into(), "confine.debug"));
    }
    if confine.network != CellNetwork::Full && confine.ask == Ask::Leaving {
        verdicts.push(("allowed", "those that need no more than that run without a question".into(), "confine.ask"));
    }
    verdicts.push(let_out(confine));
    verdicts
}

/// Which files confined commands read and write.
fn files(confine: &Confine) -> [Verdict; 6] {
    let name = |path: &PathBuf| match path.to_str() {
        Some(WORKSPACE) => "the workspace".to_owned(),
        Some(_) | None => path.display().to_string(),
    };
    let shown = |paths: &[PathBuf]| paths.iter().map(name).collect::<Vec<_>>();
    let written = listed(&shown(&confine.write), "nowhere");
    let hidden =
        listed(&[vec!["credentials, histories, Toolcrib's own state".into()], shown(&confine.hide)].concat(), "");
    let read = match &confine.read {
        Allowlist::Any => "they read all of the home but what is hidden".to_owned(),
        Allowlist::Only(list) => {
            let list = listed(&shown(list), "nothing");
            format!("of the home they read, besides what they write and programs: {list}")
        }
    };
    let caches: Vec<_> = confine.caches.iter().map(|name| format!("~/{name}")).collect();
    [
        ("allowed", format!("confined commands write below: {written}"), "confine.write"),
        ("denied", format!("they cannot write there: {}", listed(&confine.protect, "nothing")), "confine.protect"),
        held(confine),
        ("allowed", format!("they write into copies of: {}", listed(&caches, "nothing")), "confine.caches"),
        ("allowed", read, "confine.read"),
        ("denied", format!("they cannot read: {hidden}"), "confine.hide"),
    ]
}

/// What is held of what commands make.
fn held(confine: &Confine) -> Verdict {
    let opens = "what acts when somebody enters the directory, opens it or types a git command";
    let kept = listed(&confine.keep, "nothing");
    let held = match confine.held {
        HeldFiles::None => {
            return ("allowed", "what they make that acts by itself is told, and not held".into(), "confine.held");
        }
        HeldFiles::Opens => opens.to_owned(),
        HeldFiles::Words => format!("{opens}, and what agents take for their user's word"),
        HeldFiles::All => format!("{opens}, what agents take for their user's word, and what builds obey"),
    };
    ("asks", format!("what they make is held until a person says yes: {held}; but for: {kept}"), "confine.held")
}

/// Which hosts confined commands reach.
fn network(confine: &Confine) -> Vec<Verdict> {
    let mut verdicts = vec![("allowed", format!("they are {}", confine.network.words()), "confine.network")];
    match confine.network {
        CellNetwork::None | CellNetwork::Full => {}
        CellNetwork::Egress => {
            let (hosts, ports) = (listed(&confine.hosts, "none"), listed(&confine.ports, "none"));
            let others = "; whether they reach another public one a person is asked";
            verdicts.push(("allowed", format!("hosts that they reach: {hosts}{others}"), "confine.hosts"));
            let open = open_to_all(&confine.hosts);
            if !open.is_empty() {
                let detail = format!("of these serve everybody, so that data can leave by them: {}", open.join(", "));
                verdicts.push(("allowed", detail, "confine.hosts"));
            }
            verdicts.push(("allowed", format!("ports of hosts: {ports}"), "confine.ports"));
        }
    }
    verdicts
}

/// Whether a person may let a command out of its cell.
fn let_out(confine: &Confine) -> Verdict {
    let never = "none is ever let out of its cell";
    match (confine.mode, confine.unconfined) {
        (ConfineMode::Off | ConfineMode::Auto, Unconfined::Ask) => {
            let again =
                "one that its cell refused something a person may let run unconfined, once, when it is called again";
            ("asks", again.into(), "confine.unconfined")
        }
        (ConfineMode::Required, Unconfined::Ask | Unconfined::Never) => ("denied", never.into(), "confine.mode"),
        (ConfineMode::Off | ConfineMode::Auto, Unconfined::Never) => ("denied", never.into(), "confine.unconfined"),
    }
}
