//! What an import shows: what was found, what would be written, and what became of it. Values of variables and headers are never shown.

use super::super::super::screen::{BOLD, Page};
use super::super::super::settings_file::table;
use super::super::add;
use super::sections::{Found, Outcome, Planned, shell_word};
use super::{Rewritten, State};
use base::text::sanitize::visible_line;
use serde_json::{Value, json};
use std::path::Path;
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::Failure;

/// What was found, file by file.
pub(super) fn overview(all: &[Found]) -> Page {
    let mut page = Page::default();
    let mut file = None::<&Path>;
    for found in all {
        if file != Some(&found.entry.file) {
            file = Some(&found.entry.file);
            let heading =
                format!("{}, {}", found.entry.client.name(), visible_line(&found.entry.file.display().to_string()));
            page.add_in(BOLD, &heading).end(2);
        }
        one(&mut page, found);
    }
    if all.is_empty() {
        page.add("no servers were found in the settings of other clients").end(0);
    }
    page
}

fn one(page: &mut Page, found: &Found) {
    page.add(&format!("  {}: {}", visible_line(&found.entry.name), visible_line(&found.shown))).end(4);
    let mut row = |text: String| {
        page.add(&format!("    {}", visible_line(&text))).end(6);
    };
    for (what, names) in
        [("variables", &found.variables), ("headers", &found.headers), ("unknown keys", &found.unknown)]
    {
        if !names.is_empty() {
            row(format!("{what}: {}", names.join(", ")));
        }
    }
    found.notes.iter().cloned().for_each(&mut row);
    match &found.outcome {
        Outcome::New(_) if found.name != found.entry.name => row(format!("its section is named `{}`", found.name)),
        Outcome::New(_) => {}
        Outcome::There => row("there already".into()),
        Outcome::Same(file) => row(format!("the same as in `{}`", file.display())),
        Outcome::LeftOut(failure) => {
            row(format!("left out: {}", failure.message));
            failure.hint.iter().for_each(|hint| row(format!("hint: {hint}")));
        }
    }
}

/// The section of a server, and what would be kept for it.
pub(super) fn section(name: &str, planned: &Planned) -> Result<String, Failure> {
    let mut text = format!("\n[upstream.{name}]\n{}", lines(&planned.section)?);
    for secret in &planned.secrets {
        let hosts: Vec<String> = planned.bound.iter().map(ToString::to_string).collect();
        let hosts = if hosts.is_empty() { "a host that `--host` names".into() } else { hosts.join(", ") };
        let origin = if secret.is_of_environment { "your environment" } else { "that file" };
        text += &format!("`{}` would be kept as a secret, with its value of {origin}, for {hosts}.\n", secret.name);
    }
    if !planned.denied.is_empty() {
        text += &format!("`tools` would name all tools but {}.\n", planned.denied.join(", "));
    }
    Ok(text)
}

fn lines(section: &UpstreamSection) -> Result<String, Failure> {
    Ok(table(&add::lines(section)?).to_string())
}

/// The command that adds a server by hand.
pub(super) fn add_line(name: &str, planned: &Planned) -> String {
    let section = &planned.section;
    let hosts = planned.bound.iter().map(|host| format!(" --host {host}")).collect::<String>();
    let set = planned.secrets.iter().map(|secret| format!("toolcrib secret set {}{hosts}", secret.name));
    let mut words = vec!["toolcrib upstream add".to_owned(), name.to_owned()];
    let mut option = |option: &str, value: String| words.extend([option.to_owned(), shell_word(&value)]);
    section.read.iter().for_each(|path| option("--read", path.display().to_string()));
    section.write.iter().for_each(|path| option("--write", path.display().to_string()));
    section.hosts.iter().for_each(|host| option("--host", host.to_string()));
    let default = UpstreamSection::of_command(Vec::new()).ports;
    section.ports.iter().filter(|_| section.ports != default).for_each(|port| option("--port", port.to_string()));
    section.variables.iter().for_each(|(name, template)| option("--variable", format!("{name}={template}")));
    section.headers.iter().for_each(|(name, template)| option("--header", format!("{name}={template}")));
    section.tools.iter().filter(|tool| *tool != "*").for_each(|tool| option("--tool", tool.clone()));
    if section.command.is_empty() {
        words.push(shell_word(&section.url));
    } else {
        words.push("--".to_owned());
        words.extend(section.command.iter().map(|word| shell_word(word)));
    }
    set.chain([words.join(" ")]).collect::<Vec<_>>().join(" && ")
}

/// Names of servers, for a question.
pub(super) fn names(found: &[&&Found]) -> String {
    let names: Vec<String> = found.iter().map(|found| format!("`{}`", visible_line(&found.entry.name))).collect();
    names.join(", ")
}

/// All of it, for programs.
pub(super) fn json(all: &[Found], states: &[(State, Value)], unread: &[Failure], rewritten: &[Rewritten]) -> Value {
    let servers = all.iter().zip(states).map(|(found, (state, offers))| server(found, state, offers));
    let rewritten = rewritten.iter().map(|rewritten| {
        let kept = rewritten.kept.as_ref();
        json!({ "file": rewritten.file, "kept_as": kept.ok(), "problem": kept.err().map(|failure| &failure.message) })
    });
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "unread": unread.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>(),
        "rewritten": rewritten.collect::<Vec<_>>(),
    })
}

fn server(found: &Found, state: &State, offers: &Value) -> Value {
    let mut shown = json!({
        "name": found.entry.name,
        "section_name": found.name,
        "client": found.entry.client.name(),
        "file": found.entry.file,
        "runs": found.shown,
        "variables": found.variables,
        "headers": found.headers,
        "unknown": found.unknown,
        "notes": found.notes,
        "state": said(found, state),
        "written": matches!(state, State::Written | State::Bare),
        "offers": offers,
    });
    let failure = match (&found.outcome, state) {
        (Outcome::LeftOut(failure), _) | (_, State::Failed(failure)) => Some(failure),
        (
            Outcome::New(_) | Outcome::There | Outcome::Same(_),
            State::Decided | State::Written | State::Bare | State::NotAsked | State::Refused,
        ) => None,
    };
    if let Some(failure) = failure {
        shown["problem"] = failure.message.as_str().into();
        shown["hint"] = json!(failure.hint);
    }
    if let Outcome::New(planned) = &found.outcome {
        shown["section"] = add::lines(&planned.section).map(|lines| json!(lines)).unwrap_or_default();
        shown["secrets"] =
            planned.secrets.iter().map(|secret| json!({ "name": secret.name, "hosts": planned.bound })).collect();
        shown["denied"] = json!(planned.denied);
    }
    shown
}

fn said(found: &Found, state: &State) -> &'static str {
    match (&found.outcome, state) {
        (Outcome::There, _) => "there already",
        (Outcome::Same(_), _) => "the same as another",
        (Outcome::LeftOut(_), _) => "left out",
        (Outcome::New(_), State::Written) => "written",
        (Outcome::New(_), State::Bare) => "written, with nothing accepted",
        (Outcome::New(_), State::Refused) => "not accepted",
        (Outcome::New(_), State::Failed(_)) => "failed",
        (Outcome::New(_), State::NotAsked | State::Decided) => "not asked",
    }
}
