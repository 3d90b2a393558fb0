//! `toolcrib policy`: what a call may do and which line decides, and whether the locks hold for what is installed.

use super::screen::{BOLD, Page, Table};
use super::setup::{SYSTEM_POLICY, Setup};
use super::{Global, completions, print_json};
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::config::Lock;
use toolcrib::envelope::Failure;
use toolcrib::policy::explain::Clause;
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Say what a call of a tool may do, and which line decides
    Explain {
        /// Name of the tool
        #[arg(add = ArgValueCompleter::new(completions::tools))]
        tool: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say how far this machine is locked, and which plugins that refuses; exits with 1 where it refuses one
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How far a machine is locked (host/docs/policy.md), and why no further.
#[derive(Clone, Copy)]
enum Level {
    /// It is not: why.
    Open(&'static str),
    /// No flag, variable or file of the user, and no call of a tool, gets a plugin past the policy.
    Locked,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    match arguments {
        Arguments::Explain { tool, json } => explain(&setup, tool, *json),
        Arguments::Check { json } => check(&setup, *json).await,
    }
}

impl Level {
    fn of(setup: &Setup) -> Self {
        let locks = setup.host.policy().locks();
        let is_the_machines = |lock: &Lock| lock.file() == Path::new(SYSTEM_POLICY);
        if locks.is_empty() {
            Self::Open("no policy has a lock: every plugin of a user is there")
        } else if !locks.iter().any(is_the_machines) {
            Self::Open("the lock is in a file of `--policy`, which whoever starts this program can leave out")
        } else if rustix::process::geteuid().is_root() {
            Self::Open("this program runs as root, who can change the policy")
        } else {
            Self::Locked
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Open(_) => 0,
            Self::Locked => 1,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Open(why) => why,
            Self::Locked => {
                "no flag, variable or file of yours gets a plugin past the policy; commands of `run_shell` can still write this program's state"
            }
        }
    }
}

async fn check(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let (level, policy, tools) = (Level::of(setup), setup.host.policy(), &setup.context.tools);
    let mut refused: Vec<(&Arc<Manifest>, Failure)> = Vec::new();
    // Those that came with the program are named by the lock itself.
    for plugin in tools.plugins().chain(tools.barred()).filter(|plugin| !plugin.id.is_builtin()) {
        let failure = setup.host.ready(plugin, &setup.context).await.err();
        // What is switched off, or broken, is no lock's doing.
        refused.extend(failure.filter(|failure| code(failure).is_some()).map(|failure| (plugin, failure)));
    }
    let is_there = |name: &&str| tools.plugins().chain(tools.barred()).any(|plugin| plugin.name() == *name);
    let missing: BTreeSet<&str> = policy.locks().iter().flat_map(Lock::vetted).filter(|name| !is_there(name)).collect();
    let exit = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if as_json {
        let locks = policy.locks().iter().map(Lock::described);
        let row = |(plugin, failure): &(&Arc<Manifest>, Failure)| json!({ "name": plugin.name(), "origin": plugin.id.origin(), "sha256": plugin.sha256(), "code": code(failure), "reason": failure.message });
        print_json(&json!({
            "level": level.number(),
            "why": level.words(),
            "locks": locks.map(|(place, what)| json!({ "place": place, "what": what })).collect::<Vec<_>>(),
            "refused": refused.iter().map(row).collect::<Vec<_>>(),
            "missing": missing,
        }))?;
        return Ok(exit);
    }
    let mut page = Page::default();
    page.add_in(BOLD, &format!("level {}", level.number())).add(&format!(": {}", level.words())).end(2);
    for (place, what) in policy.locks().iter().map(Lock::described) {
        page.add(&format!("{place}: {what}")).end(2);
    }
    for (plugin, failure) in &refused {
        let code = code(failure).unwrap_or_default();
        page.add(&format!("{}: {code}: {}", plugin.id.origin(), failure.message)).end(2);
    }
    for name in missing {
        page.add(&format!("{name}: vetted, and in no directory of plugins")).end(2);
    }
    page.print()?;
    Ok(exit)
}

/// The code of a lock's refusal.
fn code(failure: &Failure) -> Option<&str> {
    failure.data.as_ref()?.get("code")?.as_str()
}

fn explain(setup: &Setup, tool: &str, json: bool) -> Result<ExitCode, Failure> {
    let plugin = setup.context.tools.plugin_of(tool)?;
    let clauses = setup.host.policy().explain(plugin, &setup.settings);
    if json {
        let clauses = clauses.iter().map(Clause::to_json).collect::<Vec<_>>();
        return print_json(&json!({ "tool": tool, "plugin": plugin.id.label(), "clauses": clauses }));
    }
    let mut page = Page::default();
    page.add_in(BOLD, tool).add(&format!(", of plugin {}", plugin.id.label())).end(0);
    page.print()?;
    table(&clauses).print()
}

/// One row a clause.
pub(super) fn table(clauses: &[Clause]) -> Table {
    let mut table = Table::new(&["capability", "verdict", "what", "decided by"]);
    for clause in clauses {
        table.row([clause.subject, clause.verdict, &clause.detail, &clause.decided_by]);
    }
    table
}
