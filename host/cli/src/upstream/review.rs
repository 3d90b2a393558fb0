//! `toolcrib upstream review`: what a server says now, against what a person accepted of it.

use super::super::completions;
use super::super::print_json;
use super::super::screen::{BOLD, Page};
use super::super::settings_file::SettingsFile;
use super::super::setup::{Setup, usage};
use super::{Proposal, section, words};
use ::config::upstream_name_fault;
use ::upstream::differences;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};
use std::process::ExitCode;
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::Failure;
use toolcrib::upstream::{Accepted, AcceptedTool, Look};

#[derive(clap::Args)]
pub(in super::super) struct Review {
    /// The server
    #[arg(add = ArgValueCompleter::new(completions::servers))]
    name: String,
    /// Print JSON; without `--yes` nobody is asked then
    #[arg(long)]
    json: bool,
}

pub(super) async fn review(setup: &Setup, is_yes: bool, arguments: &Review) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    if let Some(fault) = upstream_name_fault(name) {
        return Err(usage(fault));
    }
    let section = section(&SettingsFile::of_user(&setup.sources)?, name)?;
    let before = Accepted::read(&setup.dirs.config, name, &section.accepted);
    let look = setup.host.look_at_upstream(name, &section, &setup.context).await?;
    let changes = match &before {
        Ok(before) => Changes::between(before, &look.accepted, &section),
        Err(why) => Changes::without_before(why, &look.accepted),
    };
    let mut json = changes.json(name, &look, &section);
    if before.is_ok_and(|before| *before == look.accepted) {
        json["written"] = false.into();
        return if arguments.json { print_json(&json) } else { unchanged(&look) };
    }
    let page = changes.page(name, &look, &section);
    let proposal = Proposal { name, accepted: &look.accepted, declared: &section, section: None, page, json };
    proposal.decide(setup, is_yes, arguments.json).await
}

/// What has changed of a server.
struct Changes<'n> {
    /// Of the server as a whole, a line each.
    whole: Vec<String>,
    new: Vec<(&'n str, &'n AcceptedTool)>,
    /// With what differs, a line each.
    changed: Vec<(&'n str, &'n AcceptedTool, Vec<String>)>,
    gone: Vec<String>,
}

impl<'n> Changes<'n> {
    fn between(before: &Accepted, now: &'n Accepted, section: &UpstreamSection) -> Self {
        let of_server = |accepted: &Accepted| json!({ "server": accepted.server, "protocol": accepted.protocol, "instructions": accepted.instructions });
        let mut whole = before.changed_files(section);
        whole.extend(differences(&of_server(before), &of_server(now)));
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (name, tool) in &now.tools {
            match before.tools.get(name) {
                None => new.push((name.as_str(), tool)),
                Some(known) if known != tool => {
                    let mut differences =
                        differences(&known.definition.clone().into(), &tool.definition.clone().into());
                    if known.kind != tool.kind {
                        differences.insert(0, format!("it was `{}`, and is `{}` now", known.name, tool.name));
                    }
                    changed.push((name.as_str(), tool, differences));
                }
                Some(_) => {}
            }
        }
        let gone = before.tools.keys().filter(|name| !now.tools.contains_key(*name)).cloned().collect();
        Self { whole, new, changed, gone }
    }

    /// Everything counts as new where nobody knows what was accepted.
    fn without_before(why: &str, now: &'n Accepted) -> Self {
        let new = now.tools.iter().map(|(name, tool)| (name.as_str(), tool)).collect();
        Self { whole: vec![why.to_owned()], new, changed: Vec::new(), gone: Vec::new() }
    }

    fn page(&self, name: &str, look: &Look, section: &UpstreamSection) -> Page {
        let mut page = Page::default();
        if !self.whole.is_empty() {
            words::introduction(&mut page, name, &look.accepted);
            words::rows(&mut page, "Of the server itself:", self.whole.iter().cloned());
        }
        words::rows(&mut page, "Tools that are gone:", self.gone.iter().cloned());
        for (offered_as, tool, differences) in &self.changed {
            words::rows(&mut page, &format!("`{offered_as}` has changed:"), differences.iter().cloned());
            // Differences are cut, so that all of it follows.
            words::tool(&mut page, offered_as, tool, section);
        }
        if !self.new.is_empty() {
            page.end(0).add_in(BOLD, "New tools").end(0);
        }
        for (offered_as, tool) in &self.new {
            words::tool(&mut page, offered_as, tool, section);
        }
        words::beside(&mut page, look);
        page.end(0);
        page
    }

    fn json(&self, name: &str, look: &Look, section: &UpstreamSection) -> Value {
        let new = self.new.iter().map(|(offered_as, tool)| words::tool_json(offered_as, tool, section));
        let changed = self.changed.iter().map(|(offered_as, tool, differences)| {
            let mut tool = words::tool_json(offered_as, tool, section);
            tool["differences"] = json!(differences);
            tool
        });
        json!({
            "name": name,
            "server": look.accepted.server,
            "protocol": look.accepted.protocol,
            "instructions": look.accepted.instructions,
            "changes": self.whole,
            "new": new.collect::<Vec<_>>(),
            "changed": changed.collect::<Vec<_>>(),
            "gone": self.gone,
            "beside": words::beside_json(look),
        })
    }
}

fn unchanged(look: &Look) -> Result<ExitCode, Failure> {
    let mut page = Page::default();
    page.add("nothing has changed").end(0);
    words::beside(&mut page, look);
    page.print()
}
