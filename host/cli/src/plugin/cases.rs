//! `toolcrib plugin test`: calls what `cases.toml` names, and compares what each call returns with what it should.
//!
//! A case is a call as any other, in a host of the author's own settings. What the plugin may do is what `[grants]` says there and no more; it is
//! bound to this process and to these bytes, and no settings are written.

use super::super::call::cancel_on_signal;
use super::super::screen::Say;
use super::super::setup::{Setup, cannot, usage};
use super::super::{Global, print};
use super::project::Project;
use super::{between, open, rewrite};
use base::text::sanitize;
use serde::Deserialize;
use serde_json::{Map, Value};
use similar::TextDiff;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use toolcrib::call::{Arguments, Request};
use toolcrib::capability::Capability;
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::sandbox::trial::{Capabilities, Line, Played, Recorder, Trial};
use toolcrib::tools::provider::Component;
use toolcrib::tools::registry::Registry;

/// The file's name.
const FILE: &str = "cases.toml";
/// Grants whose paths begin where the file is.
const PATHS: [&str; 2] = ["files.read", "files.write"];

#[derive(clap::Args)]
pub(in super::super) struct Test {
    /// The project's directory
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Write what the calls return into the cases whose `result` differs
    #[arg(long)]
    bless: bool,
    /// Let capabilities act in the cases that have `host`, and write there what they answer
    #[arg(long)]
    record: bool,
}

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cases {
    /// What the plugin may do, as its section of the settings would say it.
    #[serde(default)]
    grants: toml::Table,
    /// Values for it, by their names.
    #[serde(default)]
    config: toml::Table,
    clock: Option<Clock>,
    #[serde(default)]
    case: Vec<Case>,
}

/// When the cases are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clock {
    at: toml::value::Datetime,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// All of the result.
    result: Option<Value>,
    /// Parts of it; what is not named may be anything.
    result_has: Option<Value>,
    error: Option<Fault>,
    /// Where it is there, capabilities answer so, and do nothing.
    host: Option<Vec<Answer>>,
}

/// What a capability answers.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    call: String,
    #[serde(default)]
    with: Map<String, Value>,
    gives: Option<Value>,
    fails: Option<Fails>,
}

/// A failure of a capability.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fails {
    kind: String,
    message: String,
    hint: Option<String>,
    /// JSON, as a text.
    data: Option<String>,
}

/// The failure that a call must have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    kind: String,
    message_has: Option<String>,
    hint_has: Option<String>,
}

/// What a case wants.
enum Wanted<'c> {
    Result(&'c Value),
    Parts(&'c Value),
    Error(&'c Fault),
}

pub(super) async fn test(global: &Global, arguments: &Test) -> Result<ExitCode, Failure> {
    let global = global.with_whole_paths()?;
    let project = Project::enter(&arguments.directory)?;
    let cases = Cases::read()?;
    let loaded = Loaded::new(&global, &project, &cases).await?;
    let ran = cases.run(&loaded, Anew { results: arguments.bless, answers: arguments.record }, print).await?;
    rewrite::results(Path::new(FILE), &ran.blessed)?;
    rewrite::answers(Path::new(FILE), &ran.recorded, |text| loaded.setup.host.without_secrets(text))?;
    ran.tell(&cases, print)?;
    Ok(ExitCode::from(u8::from(ran.failed > 0)))
}

/// A plugin that was just built, alone in a host in which it may do what the cases grant it.
pub(super) struct Loaded {
    pub(super) setup: Setup,
    pub(super) tools: Vec<String>,
    /// What the host was given for it: which bytes it is, and what these may do.
    pub(super) settings: Vec<String>,
    /// For another host.
    pub(super) component: Component,
}

impl Loaded {
    /// Builds the project that this process is in, and loads these very bytes: an installed plugin of that name is left out.
    pub(super) async fn new(global: &Global, project: &Project, cases: &Cases) -> Result<Self, Failure> {
        let component = {
            let setup = Setup::quiet(global).await?;
            cancel_on_signal(setup.context.cancel.clone())?;
            let file = project.build(&setup, Path::new(".")).await?;
            open(&setup, &file)?
        };
        let plugin = component.manifest().clone();
        cases.case.iter().try_for_each(|case| case.check(&plugin.tools))?;
        let mut settings = vec![format!("plugin.{}.sha256={:?}", plugin.name(), plugin.sha256())];
        settings.extend(cases.grants(plugin.name())?);
        let mut global = global.clone();
        global.set.extend(settings.iter().cloned());
        let mut setup = Setup::quiet(&global).await?;
        let place = super::place(&setup, &plugin);
        if let Some(reason) = setup.context.tools.conflict(&plugin, Some(&place.display().to_string())) {
            return Err(usage(format!("`{}` cannot be loaded: {reason}", plugin.name())));
        }
        setup.host.policy().check_locks(&plugin)?;
        setup.context = setup.context.clone().tools(Arc::new(Registry::of(component.clone())));
        cancel_on_signal(setup.context.cancel.clone())?;
        Ok(Self { setup, tools: plugin.tools.clone(), settings, component })
    }
}

/// What of the cases is written anew.
#[derive(Clone, Copy, Default)]
pub(super) struct Anew {
    results: bool,
    /// What capabilities answer.
    answers: bool,
}

/// What came of the cases.
#[derive(Default)]
pub(super) struct Ran {
    failed: usize,
    /// Results that are to be written.
    blessed: Vec<rewrite::Anew<Value>>,
    /// The same of answers of capabilities, in cases that passed: others may have met what is not there today.
    recorded: Vec<rewrite::Anew<Vec<Line>>>,
}

impl Ran {
    /// Says how many went well.
    pub(super) fn tell(&self, cases: &Cases, say: Say) -> Result<(), Failure> {
        let all = cases.case.len();
        say(&format!("{} of {all} cases passed\n", all - self.failed)).map(drop)
    }
}

impl Cases {
    /// Reads the file of the project that this process is in.
    pub(super) fn read() -> Result<Self, Failure> {
        let path = Path::new(FILE);
        let text = std::fs::read_to_string(path).map_err(|error| {
            usage(format!("`{FILE}` cannot be read: {error}")).hint(
                "it says what the tools are to return: [[case]], then name = \"…\", tool = \"…\", arguments = {…}, result = {…}",
            )
        })?;
        let wrong = |what: &str| usage(format!("`{FILE}`: {what}"));
        let cases: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))?;
        if cases.case.is_empty() {
            return Err(wrong("there is no [[case]] in it"));
        }
        cases.case.iter().try_for_each(|case| case.wanted().map(drop))?;
        cases.at()?;
        // Only rights: what else a section says, such as the digest that binds it, is not for the author to say here.
        cases.grants("x")?;
        Ok(cases)
    }

    /// Makes each call, and says what came of it.
    pub(super) async fn run(&self, Loaded { setup, .. }: &Loaded, anew: Anew, say: Say) -> Result<Ran, Failure> {
        let (mut ran, at) = (Ran::default(), self.at()?);
        let between = anew.answers.then(between::component).transpose();
        let between = between.map_err(|error| Failure::new(Kind::Internal, format!("{error:#}")))?;
        for (index, case) in self.case.iter().enumerate() {
            let begin = Instant::now();
            let request =
                Request { tool: case.tool.clone(), arguments: Arguments::Json(case.arguments.clone().into()) };
            let capabilities = case.capabilities(between.as_deref());
            let context = setup.context.clone().trial(Trial { capabilities: capabilities.clone(), at });
            let envelope = setup.host.call(request, &context).await;
            if setup.context.cancel.is_cancelled() {
                return Err(Failure::cancelled());
            }
            let took = begin.elapsed().as_secs_f64();
            let (unplayed, recorded) = match capabilities {
                Capabilities::Act => (Vec::new(), None),
                Capabilities::Play(played) => (played.faults(), None),
                Capabilities::Record(recorder) => (Vec::new(), Some(recorder.lines())),
            };
            let unplayed = unplayed.iter().map(|fault| format!("  {}\n", sanitize::line(fault)));
            let fault = match unplayed.collect::<String>() {
                none if none.is_empty() => case.wanted()?.fault(&envelope),
                faults => Some(faults),
            };
            // One line, or it could look like the verdict of another case.
            let name = sanitize::line(&case.name);
            let judge = |verdict| say(&format!("{verdict:5} [{took:.3}s] {name}\n")).map(drop);
            match (envelope.outcome, fault) {
                (_, None) => judge("PASS")?,
                (Ok(output), Some(_)) if anew.results && case.result.is_some() => {
                    judge("BLESS")?;
                    ran.blessed.push(rewrite::Anew { index, name: case.name.clone(), what: output.result });
                }
                (_, Some(fault)) => {
                    judge("FAIL")?;
                    say(&fault)?;
                    ran.failed += 1;
                    continue;
                }
            }
            ran.recorded.extend(recorded.map(|what| rewrite::Anew { index, name: case.name.clone(), what }));
        }
        Ok(ran)
    }

    /// When the cases are, if the file says that.
    fn at(&self) -> Result<Option<SystemTime>, Failure> {
        let Some(Clock { at }) = &self.clock else { return Ok(None) };
        let time = Trial::time(&at.to_string());
        time.map(Some).ok_or_else(|| {
            usage(format!("`{FILE}`: [clock]: `at = {at}` is not a point in time"))
                .hint("such as at = 2026-01-31T12:00:00Z")
        })
    }

    /// The grants as settings of this plugin, a `KEY=VALUE` each.
    fn grants(&self, name: &str) -> Result<Vec<String>, Failure> {
        let mut settings = Vec::new();
        flatten(&format!("plugin.{name}"), &self.grants, &mut settings)?;
        if !self.config.is_empty() {
            settings.push(format!("plugin.{name}.config={}", toml::Value::Table(self.config.clone())));
        }
        Ok(settings)
    }
}

/// A hint that names a right to add, as it is for a case: `[grants]` stands in place of the plugin's section in the settings.
pub(super) fn in_grants(hint: &str) -> String {
    let parts = hint.strip_prefix("add ").and_then(|_| hint.split_once(" under [plugin."));
    match parts.and_then(|(added, rest)| Some((added, rest.split_once(']')?.1))) {
        Some((added, rest)) => format!("{added} under [grants] in `{FILE}`{rest}"),
        None => hint.to_owned(),
    }
}

/// Writes each right of a table by its whole name.
fn flatten(above: &str, table: &toml::Table, settings: &mut Vec<String>) -> Result<(), Failure> {
    let keys =
        || Capability::ALL.map(Capability::section).into_iter().flat_map(|keys| keys.grants.iter().chain(keys.narrows));
    for (key, value) in table {
        let name = format!("{above}.{key}");
        // `plugin.NAME.` is in front.
        let right = name.splitn(3, '.').last().unwrap_or_default();
        let is_right = keys().any(|known| *known == right);
        match value {
            toml::Value::Table(table) if !is_right => flatten(&name, table, settings)?,
            _ if !is_right => {
                let known = keys().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
                return Err(usage(format!("`{FILE}`: [grants]: `{}` is not a right", sanitize::line(right)))
                    .hint(format!("rights are {known}")));
            }
            toml::Value::Array(paths) if PATHS.contains(&right) => {
                let paths = paths.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
                settings.push(format!("{name}={}", toml::Value::Array(paths)));
            }
            value => settings.push(format!("{name}={value}")),
        }
    }
    Ok(())
}

/// The same path from the root; anything else as it is, for the settings to refuse.
fn whole(path: &toml::Value) -> Result<toml::Value, Failure> {
    let Some(text) = path.as_str() else { return Ok(path.clone()) };
    let absolute = std::path::absolute(text).map_err(|error| cannot(Path::new(text), &error))?;
    Ok(absolute.display().to_string().into())
}

impl Case {
    /// Refuses a tool that the plugin does not have: the case would call another one.
    fn check(&self, tools: &[String]) -> Result<(), Failure> {
        if tools.contains(&self.tool) {
            return Ok(());
        }
        let (name, tool) = (sanitize::line(&self.name), sanitize::line(&self.tool));
        Err(usage(format!("the case `{name}` calls `{tool}`, which is not a tool of this plugin"))
            .hint(format!("its tools are {}", tools.join(", "))))
    }

    /// What capabilities do in it: where `host` is there, they answer so, or what they answer is recorded.
    fn capabilities(&self, between: Option<&[u8]>) -> Capabilities {
        let Some(answers) = &self.host else { return Capabilities::Act };
        if let Some(component) = between {
            return Capabilities::Record(Arc::new(Recorder::new(component.to_vec())));
        }
        let line = |Answer { call, with, gives, fails }: Answer| {
            let answer = match fails {
                Some(Fails { kind, message, hint, data }) => {
                    let mut failure =
                        Map::from_iter([("kind".into(), kind.into()), ("message".into(), message.into())]);
                    failure.extend(hint.map(|hint| ("hint".into(), hint.into())));
                    failure.extend(data.map(|data| ("data".into(), data.into())));
                    Err(failure)
                }
                None => Ok(gives.unwrap_or_default()),
            };
            Line { call, with, answer }
        };
        Capabilities::Play(Arc::new(Played::new(answers.iter().cloned().map(line).collect())))
    }

    fn wanted(&self) -> Result<Wanted<'_>, Failure> {
        let both = |answer: &&Answer| answer.gives.is_some() && answer.fails.is_some();
        if let Some(answer) = self.host.iter().flatten().find(both) {
            let (name, call) = (sanitize::line(&self.name), sanitize::line(&answer.call));
            return Err(usage(format!("in the case `{name}`, `{call}` says both `gives` and `fails`")));
        }
        if let Some(Fault { kind, .. }) = &self.error
            && Kind::named(kind).is_none()
        {
            let (name, kind) = (sanitize::line(&self.name), sanitize::line(kind));
            let known = Kind::names().join(", ");
            return Err(usage(format!("the case `{name}` wants a failure `{kind}`, which is no kind of failure"))
                .hint(format!("kinds are {known}")));
        }
        match (&self.result, &self.result_has, &self.error) {
            (Some(result), None, None) => Ok(Wanted::Result(result)),
            (None, Some(parts), None) => Ok(Wanted::Parts(parts)),
            (None, None, Some(fault)) => Ok(Wanted::Error(fault)),
            _ => Err(usage(format!("the case `{}` must say one of `result`, `result_has` and `error`", self.name))),
        }
    }
}

impl Wanted<'_> {
    /// What is wrong with an answer, in lines for a person; nothing if it is as it should be.
    fn fault(&self, envelope: &Envelope) -> Option<String> {
        let failed = |failure: &Failure| {
            let hint = failure.hint.as_deref().map(in_grants);
            let hint = hint.map(|hint| format!("\n  hint: {}", sanitize::line(&hint))).unwrap_or_default();
            format!("  it failed: {}: {}{hint}\n", failure.kind.name(), sanitize::line(&failure.message))
        };
        match (self, &envelope.outcome) {
            (Self::Result(wanted), Ok(output)) if **wanted == output.result => None,
            (Self::Parts(wanted), Ok(output)) if has(&output.result, wanted) => None,
            (Self::Result(wanted) | Self::Parts(wanted), Ok(output)) => Some(difference(wanted, &output.result)),
            (Self::Result(_) | Self::Parts(_), Err(failure)) => Some(failed(failure)),
            (Self::Error(wanted), Ok(_)) => Some(format!("  it succeeded; wanted: failure {wanted}\n")),
            (Self::Error(wanted), Err(failure)) => {
                (!wanted.is(failure)).then(|| format!("{}  wanted: {wanted}\n", failed(failure)))
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", sanitize::line(&self.kind))?;
        for (what, wanted) in [("message", &self.message_has), ("hint", &self.hint_has)] {
            if let Some(wanted) = wanted {
                write!(formatter, ", {what} with `{}`", sanitize::line(wanted))?;
            }
        }
        Ok(())
    }
}

impl Fault {
    fn is(&self, failure: &Failure) -> bool {
        let says = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| text.contains(wanted));
        self.kind == failure.kind.name()
            && says(&self.message_has, &failure.message)
            && says(&self.hint_has, failure.hint.as_deref().unwrap_or_default())
    }
}

/// The value has all that is wanted, and perhaps more.
fn has(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| fields.get(name).is_some_and(|value| has(value, wanted)))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| has(item, wanted))
        }
        (value, wanted) => value == wanted,
    }
}

fn difference(wanted: &Value, got: &Value) -> String {
    let (wanted, got) = (format!("{wanted:#}\n"), format!("{got:#}\n"));
    let mut lines = String::from("  - wanted  + returned\n");
    for change in TextDiff::from_lines(&wanted, &got).iter_all_changes() {
        let _ = write!(lines, "  {} {change}", change.tag());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_place_of_grants() {
        let hint = "add `files.read = [\"DIR\"]` under [plugin.lines]";
        assert_eq!(in_grants(hint), "add `files.read = [\"DIR\"]` under [grants] in `cases.toml`");
        for other in ["add \"x\" to `folders` under [mail.work]", "give `path`"] {
            assert_eq!(in_grants(other), other);
        }
    }
}
