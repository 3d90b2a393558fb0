//! `toolcrib policy`: what a call may do and which line decides, whether the locks hold for what is installed, and another policy.

mod checked;
mod install;
pub(super) mod rules;

use super::screen::{BOLD, Page, Table};
use super::setup::Setup;
use super::{Global, completions, print_json};
use ::policy::explain::Clause;
use ::policy::lock::{Code, Step};
use checked::Checked;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::process::ExitCode;
use toolcrib::envelope::Failure;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Say what a call of a tool may do, and which line decides
    Explain {
        /// Name of the tool
        #[arg(add = ArgValueCompleter::new(completions::tools))]
        tool: String,
        /// Say what each lock looks at in its plugin, and where one refuses it
        #[arg(long)]
        why_not: bool,
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
    /// The rules that answer questions: list, add, remove and test them
    #[command(subcommand)]
    Rules(rules::Arguments),
    /// Say what a policy would refuse here, and with --yes make it the machine's, as root
    Lock(install::Arguments),
    /// Replace the machine's policy by one that its `policy` keys have signed, and those of the new one too, as root
    Install(install::Arguments),
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = || Setup::new(global);
    match arguments {
        Arguments::Explain { tool, why_not: true, json } => why_not(&setup().await?, tool, *json).await,
        Arguments::Explain { tool, why_not: false, json } => explain(&setup().await?, tool, *json),
        Arguments::Check { json } => check(&setup().await?, *json).await,
        Arguments::Rules(arguments) => rules::run(global, arguments).await,
        Arguments::Lock(arguments) => install::lock(global, arguments).await,
        Arguments::Install(arguments) => install::install(arguments),
    }
}

async fn check(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let (policy, checked) = (setup.host.policy(), Checked::of(setup).await);
    let level = policy.level();
    let exit = if checked.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if as_json {
        let mut all = checked.to_json();
        all["level"] = level.number().into();
        all["why"] = level.words().into();
        all["locks"] = policy.locks().map(|(place, what)| json!({ "place": place, "what": what })).collect();
        print_json(&all)?;
        return Ok(exit);
    }
    let mut page = Page::default();
    page.add_in(BOLD, &format!("level {}", level.number())).add(&format!(": {}", level.words())).end(2);
    for (place, what) in policy.locks() {
        page.add(&format!("{place}: {what}")).end(2);
    }
    checked.show(&mut page);
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

/// What each lock looks at in turn. Names of plugins count as well as those of tools: one that is refused has no tool.
async fn why_not(setup: &Setup, name: &str, json: bool) -> Result<ExitCode, Failure> {
    let tools = &setup.context.tools;
    let plugin = match tools.plugins().chain(tools.barred()).find(|plugin| plugin.name() == name) {
        Some(plugin) => plugin,
        None => tools.plugin_of(name)?,
    };
    let policy = setup.host.policy();
    let refusal = setup.host.ready(plugin, &setup.context).await.err().filter(|failure| code(failure).is_some());
    let is_about_definitions = refusal.as_ref().and_then(code) == Some(Code::DefinitionsChanged.name());
    let mut locks = policy.steps(plugin);
    for (_, steps) in &mut locks {
        // Known only once the plugin was asked.
        if let Some((step, _)) = steps.last_mut().filter(|(step, _)| is_about_definitions && *step == Step::Good) {
            *step = Step::Refuses;
        }
    }
    let idle = policy.idle_revocations();
    let exit = if refusal.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        let step = |(step, what): &(Step, &str)| json!({ "step": what, "verdict": word(*step) });
        let lock = |(place, steps): &(String, Vec<(Step, &str)>)| json!({ "lock": place, "steps": steps.iter().map(step).collect::<Vec<_>>() });
        print_json(&json!({
            "name": plugin.name(),
            "sha256": plugin.sha256(),
            "origin": plugin.id.origin(),
            "locks": locks.iter().map(lock).collect::<Vec<_>>(),
            "idle_revocations": idle,
            "code": refusal.as_ref().and_then(code),
            "reason": refusal.as_ref().map(|failure| &failure.message),
        }))?;
        return Ok(exit);
    }
    let mut page = Page::default();
    page.add_in(BOLD, plugin.name()).add(&format!(" {}, {}", &plugin.sha256()[..12], plugin.id.origin())).end(2);
    for (place, steps) in &locks {
        page.add(place).end(2);
        for (step, what) in steps {
            page.add(&format!("  {}  {what}", word(*step))).end(6);
        }
    }
    for idle in &idle {
        page.add(idle).end(2);
    }
    match &refusal {
        None => page.add("no lock refuses it").end(2),
        Some(failure) => {
            page.add(&failure.message).end(2);
            page.add(failure.hint.as_deref().unwrap_or_default()).end(2)
        }
    };
    page.print()?;
    Ok(exit)
}

/// How a step went, as wide as the others.
fn word(step: Step) -> &'static str {
    match step {
        Step::Good => "ok",
        Step::Refuses => "!!",
        Step::NotReached => "--",
    }
}

/// One row a clause.
pub(super) fn table(clauses: &[Clause]) -> Table {
    let mut table = Table::new(&["capability", "verdict", "what", "decided by"]);
    for clause in clauses {
        table.row([clause.subject, clause.verdict, &clause.detail, &clause.decided_by]);
    }
    table
}
