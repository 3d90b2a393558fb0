//! `toolcrib policy rules`: the rules that answer questions, and which of them decides on a command.

use super::super::screen::{Page, Table};
use super::super::settings_file::SettingsFile;
use super::super::setup::{Setup, dirs, load, sources, usage, working_directory};
use super::super::{Global, audit, print, print_json};
use ::config::{Place, RuleLine, RuleSection, Verdict};
use ::policy::rules::{Covered, Rule, Rules};
use base::paths::canonical;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::config::{Settings, Sources};
use toolcrib::envelope::Failure;

#[derive(clap::Subcommand)]
pub(in super::super) enum Arguments {
    /// List the rules, with their numbers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a rule into your settings
    Add(Add),
    /// Remove a rule from your settings
    Remove {
        /// Its number in the list
        number: usize,
    },
    /// Say which rule decides on each command of a text, or on a tool, and why none does
    Test {
        /// The text, as a tool would run it
        #[arg(required_unless_present = "tool")]
        command: Option<String>,
        /// Say whether a rule denies this tool
        #[arg(long, value_name = "NAME", conflicts_with = "command")]
        tool: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub(in super::super) struct Add {
    /// What the rule answers
    #[arg(value_enum)]
    answer: Answer,
    /// The tool; `*` stands for any letters
    #[arg(long)]
    tool: Option<String>,
    /// A command; a `*` at the end stands for any further words
    #[arg(long, conflicts_with_all = ["host", "write"])]
    command: Option<String>,
    /// A host, such as `*.example.org:443`
    #[arg(long, conflicts_with = "write")]
    host: Option<String>,
    /// Files, such as `~/notes/**`
    #[arg(long, value_name = "PATTERN")]
    write: Option<String>,
    /// Where it counts; everywhere without it
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "here")]
    workspace: Option<PathBuf>,
    /// It counts in the present workspace
    #[arg(long)]
    here: bool,
    /// The last day on which it counts, or the time when it ends
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Answer {
    Allow,
    Deny,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let settings = || {
        let sources = sources(global, &dirs()?)?;
        Ok::<_, Failure>((load(&sources)?, sources))
    };
    match arguments {
        Arguments::List { json } => list(&settings()?.0, *json),
        Arguments::Add(add) => {
            let (settings, sources) = settings()?;
            let here = if add.here { Some(workspace(&Setup::new(global).await?).await?) } else { None };
            let section = add.section(here)?;
            let written = keep(&settings, &sources, add.answer.verdict(), &section, "policy rules add")?;
            print(&format!("wrote into {}:\n{written}", sources_file(&sources).display()))
        }
        Arguments::Remove { number } => {
            let (settings, sources) = settings()?;
            remove(&settings, &sources, *number)
        }
        Arguments::Test { command, tool, json } => {
            let setup = Setup::new(global).await?;
            match (command, tool) {
                (_, Some(tool)) => test_tool(&setup, tool, *json).await,
                (command, None) => test(&setup, command.as_deref().unwrap_or_default(), *json).await,
            }
        }
    }
}

impl Answer {
    fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Deny => Verdict::Deny,
        }
    }
}

impl Add {
    fn section(&self, here: Option<PathBuf>) -> Result<RuleSection, Failure> {
        let absolute = |path: &PathBuf| Ok::<_, Failure>(canonical(&working_directory()?.join(path)));
        let workspace = match here {
            Some(here) => Some(here),
            None => self.workspace.as_ref().map(absolute).transpose()?,
        };
        Ok(RuleSection {
            tool: self.tool.clone(),
            command: self.command.clone(),
            host: self.host.clone(),
            write: self.write.clone(),
            workspace: workspace.map(|path| path.display().to_string()),
            until: self.until.clone(),
        })
    }
}

/// Writes a rule into the user's settings, once it is sure that it can be kept, and puts that on record with `how` it came; returns its lines.
fn keep(
    settings: &Settings,
    sources: &Sources,
    verdict: Verdict,
    section: &RuleSection,
    how: &str,
) -> Result<String, Failure> {
    if verdict == Verdict::Allow && !settings.config.approval.rules {
        let origin = settings.origins.get("approval.rules").map(|origin| format!(" ({origin})")).unwrap_or_default();
        return Err(Failure::denied(format!("rules may allow nothing here: `approval.rules = false`{origin}")));
    }
    let place = Place { path: sources_file(sources), line: 0, column: 0 };
    let line = section.clone().checked(verdict, place, false, &sources.home);
    let line = line.map_err(|why| usage(format!("this rule {why}")))?;
    let told = format!("rule added by {how}: {line}, in {}", sources_file(sources).display());
    Rules::new(&[line], true).map_err(|failure| {
        let (_, why) = failure.message.split_once("]] ").unwrap_or(("", &failure.message));
        usage(format!("this rule {why}"))
    })?;
    let written = SettingsFile::of_user(sources)?.add_rule(verdict, section)?;
    audit::changed(settings, &dirs()?, &told);
    Ok(written)
}

fn sources_file(sources: &Sources) -> PathBuf {
    sources.user.clone().unwrap_or_default()
}

fn remove(settings: &Settings, sources: &Sources, number: usize) -> Result<ExitCode, Failure> {
    let own: Vec<&RuleLine> = settings.rules.iter().filter(|rule| !rule.is_policy).collect();
    let Some(rule) = number.checked_sub(1).and_then(|index| own.get(index)) else {
        return Err(usage(format!("there is no rule {number} in your settings"))
            .hint("`toolcrib policy rules list` lists them with their numbers"));
    };
    let before = own[..number - 1].iter().filter(|other| other.verdict == rule.verdict).count();
    SettingsFile::of_user(sources)?.remove_rule(rule.verdict, before)?;
    let file = sources_file(sources);
    audit::changed(
        settings,
        &dirs()?,
        &format!("rule removed by policy rules remove: {rule}, from {}", file.display()),
    );
    print(&format!("removed: {rule}\n"))
}

fn list(settings: &Settings, as_json: bool) -> Result<ExitCode, Failure> {
    let mut number = 0;
    let rows = settings.rules.iter().map(|rule| {
        number += usize::from(!rule.is_policy);
        ((!rule.is_policy).then_some(number), rule)
    });
    if as_json {
        let row = |(number, rule): (Option<usize>, &RuleLine)| {
            let (place, over) = (rule.place.to_string(), rule.is_over());
            json!({ "number": number, "answer": rule.verdict.name(), "rule": rule.section, "place": place, "over": over })
        };
        return print_json(&rows.map(row).collect());
    }
    let mut table = Table::new(&["number", "answer", "rule", "place"]);
    for (number, rule) in rows {
        let over = match rule.verdict {
            _ if rule.is_over() => " (over)",
            Verdict::Allow if !settings.config.approval.rules => " (off)",
            Verdict::Allow | Verdict::Deny => "",
        };
        let number = number.map_or_else(|| "policy".to_owned(), |number| number.to_string());
        table.row([
            number.as_str(),
            &format!("{}{over}", rule.verdict.name()),
            &rule.section.to_string(),
            &rule.place.to_string(),
        ]);
    }
    table.print()
}

async fn workspace(setup: &Setup) -> Result<PathBuf, Failure> {
    Ok(setup.context.backend.facts().await?.workspace.root.clone())
}

/// Whether a rule denies a tool by its name alone. None can allow one: what it does is still asked about.
async fn test_tool(setup: &Setup, tool: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let (rules, workspace) = (setup.host.policy().rules().now(), workspace(setup).await?);
    let denied: Vec<&Rule> = rules.denying_tool(tool, &workspace).into_iter().collect();
    let answer = if denied.is_empty() { "not denied" } else { "denied" };
    if as_json {
        let denied: Vec<_> = denied.iter().map(|rule| told_rule(rule)).collect();
        return print_json(&json!({ "answer": answer, "denied_by": denied }));
    }
    let mut page = Page::default();
    page.add(answer).end(0);
    denied.iter().for_each(|rule| _ = page.add(&format!("by {}", shown(rule))).end(2));
    page.print()
}

async fn test(setup: &Setup, command: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let (policy, workspace) = (setup.host.policy(), workspace(setup).await?);
    let (kept, rules) = (policy.rules(), policy.rules().now());
    let denied: Vec<&Rule> =
        rules.denying_text(command).into_iter().filter(|rule| rule.counts_in(&workspace)).collect();
    let counts = |rule: &Rule| rule.counts_in(&workspace);
    let covered = rules.cover(command, false, None, &kept.programs(&workspace), &counts);
    let is_covered = covered.as_ref().is_ok_and(|all| !all.is_empty() && all.iter().all(|one| one.by.is_ok()));
    let answer = match (denied.is_empty(), is_covered) {
        (false, _) => "denied",
        (true, true) => "allowed",
        (true, false) => "asked",
    };
    if as_json {
        return print_json(&told(&rules, answer, &denied, &covered));
    }
    let mut page = Page::default();
    page.add(answer).end(0);
    for rule in &denied {
        page.add(&format!("by {}", shown(rule))).end(2);
    }
    match &covered {
        Err(why) => page.add(&format!("no rule can allow this text: {why}")).end(2),
        Ok(all) => {
            for Covered { command, by } in all {
                let by = match by {
                    Ok(found) => found.iter().map(|at| shown(rules.rule(*at))).collect::<Vec<_>>().join("; "),
                    Err(why) => why.clone(),
                };
                page.add(&format!("{command}: {by}")).end(2);
            }
            &mut page
        }
    };
    page.print()
}

fn told_rule(rule: &Rule) -> serde_json::Value {
    json!({ "rule": rule.line.to_string(), "place": rule.line.place.to_string() })
}

fn told(rules: &Rules, answer: &str, denied: &[&Rule], covered: &Result<Vec<Covered>, String>) -> serde_json::Value {
    let one = |Covered { command, by }: &Covered| {
        let found = by.as_ref().map(|found| found.iter().map(|at| told_rule(rules.rule(*at))).collect::<Vec<_>>());
        json!({ "command": command, "by": found.as_ref().ok(), "why_not": found.as_ref().err() })
    };
    let commands = covered.as_ref().map(|all| all.iter().map(one).collect::<Vec<_>>());
    json!({
        "answer": answer,
        "denied_by": denied.iter().map(|found| told_rule(found)).collect::<Vec<_>>(),
        "commands": commands.as_ref().ok(),
        "why_not": commands.as_ref().err(),
    })
}

fn shown(rule: &Rule) -> String {
    let number = rule.number.map(|number| format!("rule {number}, ")).unwrap_or_default();
    format!("{number}{} ({})", rule.line, rule.line.place)
}

/// The lines of a rule, as they are written.
pub(in super::super) fn lines(verdict: Verdict, section: &RuleSection) -> String {
    let parts = section.parts().map(|(key, value)| format!("{key} = {}\n", toml::Value::from(value)));
    format!("[[{}]]\n{}", verdict.name(), parts.collect::<String>())
}

/// Where rules of a question are kept that a person answers always so.
pub(in super::super) struct Keeper {
    pub(in super::super) sources: Sources,
    /// Those of this program, which reads them again.
    pub(in super::super) rules: Option<std::sync::Arc<::policy::rules::KeptRules>>,
}

impl Keeper {
    pub(in super::super) fn file(&self) -> &Path {
        self.sources.user.as_deref().unwrap_or(Path::new(""))
    }

    /// Writes the rules; all of them, or says which cannot be written.
    pub(in super::super) fn keep(&self, verdict: Verdict, sections: &[RuleSection]) -> Result<(), Failure> {
        let settings = load(&self.sources)?;
        sections
            .iter()
            .try_for_each(|section| keep(&settings, &self.sources, verdict, section, "an answer").map(drop))?;
        if let Some(rules) = &self.rules {
            rules.reload();
        }
        Ok(())
    }
}
