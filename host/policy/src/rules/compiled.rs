//! The rules of one reading, compiled: found by program, by host or by tool, so that hundreds cost what a few do.

use super::path::Programs;
use super::{CommandSubject, Subject};
use crate::hosts::covers;
use base::capability::Capability;
use base::envelope::Failure;
use base::target::Target;
use command::rules::{CommandPattern, Simple, covered, may_run, prove};
use command::{Destination, Script};
use config::{HostPattern, RuleLine, Verdict};
use globset::{GlobBuilder, GlobMatcher};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The rules of one reading.
#[derive(Default)]
pub struct Rules {
    rules: Vec<Rule>,
    allow: Index,
    deny: Index,
}

/// One rule.
pub struct Rule {
    pub line: RuleLine,
    /// Its number among those of the user, as `toolcrib policy rules list` has it; none for a policy's.
    pub number: Option<usize>,
    about: About,
}

enum About {
    Command(CommandPattern),
    Host(HostPattern, Option<u16>),
    Write(GlobMatcher),
    /// All that its tool asks about.
    Tool,
}

/// Where rules of one verdict are, by what they are about.
#[derive(Default)]
struct Index {
    /// By the program as it is written; for denials by its name in lower case.
    commands: HashMap<String, Vec<usize>>,
    hosts: Vec<usize>,
    writes: Vec<usize>,
    tools: Vec<usize>,
}

/// Which rules cover a command of a script, or why none does.
pub struct Covered {
    /// The command, as people read it.
    pub command: String,
    pub by: Result<Vec<usize>, String>,
}

impl Rules {
    /// Compiles rules; those that allow are left out where settings say so.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`, with the line of the rule and what to write.
    pub fn new(lines: &[RuleLine], allows: bool) -> Result<Self, Failure> {
        let mut rules = Self::default();
        let mut number = 0;
        for line in lines {
            number += usize::from(!line.is_policy);
            let number = (!line.is_policy).then_some(number);
            if line.verdict == Verdict::Allow && !allows {
                continue;
            }
            let about = about(line).map_err(|why| {
                let place = &line.place;
                Failure::invalid(format!("{place}: this [[{}]] {why}", line.verdict.name()))
                    .hint(format!("mend or remove the rule at {place}"))
            })?;
            rules.add(Rule { line: line.clone(), number, about });
        }
        Ok(rules)
    }

    fn add(&mut self, rule: Rule) {
        let at = self.rules.len();
        let index = match rule.line.verdict {
            Verdict::Allow => &mut self.allow,
            Verdict::Deny => &mut self.deny,
        };
        match &rule.about {
            About::Command(pattern) => {
                let program = match rule.line.verdict {
                    Verdict::Allow => pattern.program().to_owned(),
                    Verdict::Deny => name(pattern.program()),
                };
                index.commands.entry(program).or_default().push(at);
            }
            About::Host(..) => index.hosts.push(at),
            About::Write(_) => index.writes.push(at),
            About::Tool => index.tools.push(at),
        }
        self.rules.push(rule);
    }

    /// A rule by its place here.
    #[must_use]
    pub fn rule(&self, at: usize) -> &Rule {
        &self.rules[at]
    }

    /// All of them: the user's in the order of the file, then those of policies.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there is none that allows.
    #[must_use]
    pub fn allows_nothing(&self) -> bool {
        let Index { commands, hosts, writes, tools } = &self.allow;
        commands.is_empty() && hosts.is_empty() && writes.is_empty() && tools.is_empty()
    }

    /// Whether a rule denies a tool by its name alone.
    pub(super) fn denies_tools(&self) -> bool {
        !self.deny.tools.is_empty()
    }

    /// The rule that denies a tool by its name alone in this workspace.
    #[must_use]
    pub fn denying_tool(&self, tool: &str, workspace: &Path) -> Option<&Rule> {
        let mut found = self.deny.tools.iter().map(|at| &self.rules[*at]);
        found.find(|rule| rule.is_about_tool(tool) && rule.counts_in(workspace))
    }

    /// The rules that deny what a call is about, wherever they count. Those that deny its tool have let it begin.
    pub(super) fn denying(&self, subject: &Subject, tool: &str) -> Vec<usize> {
        match subject {
            Subject::Command(command) => self.denying_command(command, tool),
            Subject::Host(target) => self.of_host(&self.deny, target, tool),
            Subject::Write(path) => self.of_write(&self.deny, path, tool),
            Subject::Call => Vec::new(),
        }
    }

    fn denying_command(&self, command: &CommandSubject, tool: &str) -> Vec<usize> {
        let by_program = &self.deny.commands;
        if by_program.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for text in command.texts.iter().filter(|text| may_run(text, |word| by_program.contains_key(word))) {
            // What is no script is compared word for word.
            let script = Script::parse(text).unwrap_or_else(|_| Script::by_words(text));
            let rules = by_program.values().flatten().copied().filter(|at| self.rules[*at].is_about_tool(tool));
            found.extend(rules.filter(|at| match &self.rules[*at].about {
                About::Command(pattern) => pattern.catches(&script),
                About::Host(..) | About::Write(_) | About::Tool => false,
            }));
        }
        found
    }

    /// The rules that allow what is not a command.
    pub(super) fn allowing(&self, subject: &Subject, tool: &str) -> Vec<usize> {
        match subject {
            Subject::Command(_) => Vec::new(),
            Subject::Host(target) => self.of_host(&self.allow, target, tool),
            Subject::Write(path) => self.of_write(&self.allow, path, tool),
            Subject::Call => {
                self.allow.tools.iter().copied().filter(|at| self.rules[*at].is_about_tool(tool)).collect()
            }
        }
    }

    fn of_host(&self, index: &Index, target: &Target, tool: &str) -> Vec<usize> {
        let is_it = |at: &usize| match &self.rules[*at].about {
            About::Host(host, port) => covers(host, target.host()) && port.is_none_or(|port| port == target.port()),
            About::Command(_) | About::Write(_) | About::Tool => false,
        };
        index.hosts.iter().copied().filter(|at| self.rules[*at].is_about_tool(tool) && is_it(at)).collect()
    }

    fn of_write(&self, index: &Index, path: &Path, tool: &str) -> Vec<usize> {
        let is_it = |at: &usize| match &self.rules[*at].about {
            About::Write(glob) => glob.is_match(path),
            About::Command(_) | About::Host(..) | About::Tool => false,
        };
        index.writes.iter().copied().filter(|at| self.rules[*at].is_about_tool(tool) && is_it(at)).collect()
    }

    /// What covers each command of a script, where these programs are found and rules count as `counts` says.
    ///
    /// # Errors
    ///
    /// Why it is not certain what the script runs.
    pub fn cover(
        &self,
        text: &str,
        is_fed: bool,
        tool: Option<&str>,
        programs: &Programs,
        counts: &dyn Fn(&Rule) -> bool,
    ) -> Result<Vec<Covered>, String> {
        let by = |simple: &Simple| self.covering(simple, tool, programs, counts);
        let commands = prove(text, is_fed)?;
        Ok(commands
            .iter()
            .map(|simple| match covered(simple, &by) {
                Ok(rules) => Covered { command: simple.shown(), by: Ok(rules) },
                Err((command, why)) => Covered { command, by: Err(why) },
            })
            .collect())
    }

    fn covering(
        &self,
        simple: &Simple,
        tool: Option<&str>,
        programs: &Programs,
        counts: &dyn Fn(&Rule) -> bool,
    ) -> Result<usize, String> {
        let program = simple.program();
        let rules = self.allow.commands.get(program).into_iter().flatten().copied();
        let rules = rules.filter(|at| tool.is_none_or(|tool| self.rules[*at].is_about_tool(tool)));
        let mut why = format!("no rule is about `{program}`");
        for at in rules {
            let About::Command(pattern) = &self.rules[at].about else { continue };
            match pattern.covers(simple) {
                Ok(()) if counts(&self.rules[at]) => {
                    return match simple.is_of_the_shell() || program.contains('/') {
                        true => Ok(at),
                        false => programs.check(program).map(|()| at),
                    };
                }
                Ok(()) => why = format!("the rule for `{program}` does not count here and now"),
                Err(other) => why = format!("the rule `{}` does not cover it: {other}", self.rules[at].line.section),
            }
        }
        Err(why)
    }

    /// The rules that deny a script, for people who test it.
    #[must_use]
    pub fn denying_text(&self, text: &str) -> Vec<&Rule> {
        let subject = CommandSubject { texts: vec![text.to_owned()], goes_to: Destination::Process, is_fed: false };
        let found: BTreeSet<usize> = self.denying_command(&subject, "").into_iter().collect();
        found.into_iter().map(|at| &self.rules[at]).collect()
    }
}

impl Rule {
    /// Whether calls with this capability may meet it.
    pub(crate) fn is_about(&self, capability: Capability) -> bool {
        let decided = capability.decided_with();
        let runs = matches!(decided, Capability::Shell | Capability::Exec | Capability::Programs);
        match self.about {
            About::Command(_) => runs,
            About::Host(..) if self.line.verdict == Verdict::Deny => {
                runs || matches!(decided, Capability::Http | Capability::Browser | Capability::Upstream)
            }
            About::Host(..) => runs || decided == Capability::Http,
            About::Write(_) => decided == Capability::Files,
            // One that denies a tool is told of that tool.
            About::Tool => decided == Capability::Upstream && self.line.verdict == Verdict::Allow,
        }
    }

    /// Whether it is about calls of this tool; one that names none is about all. Tests of a command name no tool.
    fn is_about_tool(&self, tool: &str) -> bool {
        let Some(pattern) = self.line.section.tool.as_deref() else { return true };
        tool.is_empty() || is_like(pattern, tool)
    }

    /// Whether it counts in this workspace, now.
    #[must_use]
    pub fn counts_in(&self, workspace: &Path) -> bool {
        let named = self.line.workspace.as_deref();
        !self.line.is_over()
            && named.is_none_or(|named| base::paths::canonical(named) == base::paths::canonical(workspace))
    }
}

fn about(line: &RuleLine) -> Result<About, String> {
    let section = &line.section;
    if let Some(command) = &section.command {
        return CommandPattern::parse(command).map(About::Command).map_err(|why| format!("has a `command` that {why}"));
    }
    if let Some(host) = &section.host {
        let (host, port) = host_and_port(host)?;
        return Ok(About::Host(host, port));
    }
    if let Some(write) = &line.write {
        let glob = GlobBuilder::new(write).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| format!("has a `write` that is not a pattern: {}", error.kind()))?;
        return Ok(About::Write(glob.compile_matcher()));
    }
    Ok(About::Tool)
}

/// Reads `example.org`, `*.example.org:443` or `[::1]:443`.
fn host_and_port(text: &str) -> Result<(HostPattern, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let odd = |why: String| format!("has a `host` that cannot be used: {why}");
    let port = port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0));
    if port == Some(None) {
        return Err(odd(format!("the port of `{}` must be 1 to 65535", text.escape_debug())));
    }
    Ok((HostPattern::exact(bare).map_err(odd)?, port.flatten()))
}

fn name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase()
}

/// Whether a name fits a pattern in which `*` stands for any letters.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}
