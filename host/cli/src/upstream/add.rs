//! `toolcrib upstream add`: a server's section from the options, once a person has accepted what the server says.

use super::super::choice;
use super::super::program::on_path;
use super::super::screen::Page;
use super::super::settings_file::SettingsFile;
use super::super::setup::{Setup, cannot, usage};
use super::{Proposal, words};
use ::config::{HostPattern, Template, upstream_name_fault};
use base::paths::canonical;
use base::text::sanitize;
use serde_json::json;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use toml::Table;
use toolcrib::config::{UpstreamConfirm, UpstreamSection};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::upstream::Look;

/// Where the system's own files are, which every server sees.
pub(super) const SYSTEM: [&str; 3] = ["/usr", "/opt", "/etc"];
/// Tools that a message names.
const SHOWN: usize = 20;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib upstream add files --read /srv/mcp --write ~/notes -- node /srv/mcp/index.js ~/notes
  toolcrib upstream add github --host api.github.com --variable 'GITHUB_TOKEN=${secret:GITHUB}' -- /srv/mcp/github stdio
  toolcrib upstream add github https://api.example.com/mcp --header 'Authorization=Bearer ${secret:GITHUB}'")]
pub(in super::super) struct Add {
    /// The name of the server, with which the names of its tools will begin
    name: String,
    /// The address of a server that is elsewhere, instead of a program
    #[arg(value_name = "URL", required_unless_present = "command")]
    #[arg(conflicts_with_all = ["command", "read", "write", "host", "port", "variable"])]
    url: Option<String>,
    /// Send this header with each request to it; `${secret:NAME}` in the value stands for a secret (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "url", value_parser = header)]
    header: Vec<(String, Template)>,
    /// Let it read this file, or below this directory (repeatable)
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Let it write below this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Let it connect to this host: a name, `*.example.com` for its subdomains, an address or a range (repeatable)
    #[arg(long, value_name = "HOST", value_parser = HostPattern::exact)]
    host: Vec<HostPattern>,
    /// Let these connections go to this port; default: 443 (repeatable)
    #[arg(long, value_name = "PORT", requires = "host", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Set this variable for it; `${secret:NAME}` in the value stands for a secret (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    variable: Vec<(String, Template)>,
    /// Offer this tool, by the server's own name, or with `*` at the end all that begin so; default: all tools (repeatable)
    #[arg(long, value_name = "PATTERN")]
    tool: Vec<String>,
    /// Ask nobody about calls of this tool, as it only reads; named as for `--tool` (repeatable)
    #[arg(long, value_name = "PATTERN")]
    reads: Vec<String>,
    /// The calls that a person is asked about; default: writes
    #[arg(long, value_name = "WHICH", value_parser = choice::one_of::<UpstreamConfirm>())]
    confirm: Option<UpstreamConfirm>,
    /// Print JSON; without `--yes` nobody is asked then
    #[arg(long)]
    json: bool,
    /// The program that is the server, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

fn variable(text: &str) -> Result<(String, Template), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), Template::value(value)?))
}

fn header(text: &str) -> Result<(String, Template), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_ascii_lowercase(), Template::parse(value)?))
}

pub(super) async fn add(setup: &Setup, is_yes: bool, arguments: &Add) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    if let Some(fault) = upstream_name_fault(name) {
        return Err(usage(fault));
    }
    if setup.settings.config.upstream.contains_key(name) {
        return Err(usage(format!("your settings have a server `{name}` already")).hint(format!(
            "`toolcrib upstream review {name}` shows what has changed of it; to replace it, first `toolcrib upstream remove {name}`"
        )));
    }
    let section = arguments.section()?;
    // What cannot be written fails the command here, before anything is started.
    lines(&section)?;
    SettingsFile::of_user(&setup.sources)?;
    let look = look(setup, name, &section).await?;
    proposal(name, &look, &section)?.decide(setup, is_yes, arguments.json).await
}

/// Starts a server in its cell, and returns what it offers.
pub(super) async fn look(setup: &Setup, name: &str, section: &UpstreamSection) -> Result<Look, Failure> {
    let look = setup.host.look_at_upstream(name, section, &setup.context).await;
    look.map_err(|failure| match unseen(section).filter(|_| failure.hint.is_none()) {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

/// What a person decides on who adds this server.
pub(super) fn proposal<'p>(
    name: &'p str,
    look: &'p Look,
    section: &'p UpstreamSection,
) -> Result<Proposal<'p>, Failure> {
    check_offers(name, look, section)?;
    let (page, json) = (page(name, look, section), json(name, look, section));
    Ok(Proposal { name, accepted: &look.accepted, declared: section, section: Some(lines(section)?), page, json })
}

impl Add {
    /// What the options say.
    fn section(&self) -> Result<UpstreamSection, Failure> {
        let default = match (&self.url, self.command.split_first()) {
            (Some(url), _) => UpstreamSection::of_url(url.clone()),
            (None, Some((program, rest))) => {
                let command = [self::program(program)?].into_iter().chain(rest.iter().cloned()).collect();
                UpstreamSection::of_command(command)
            }
            (None, None) => return Err(usage("name a program or a URL")),
        };
        let given = |list: &[String], default| if list.is_empty() { default } else { list.to_vec() };
        Ok(UpstreamSection {
            read: self.read.iter().map(|path| whole(path)).collect::<Result<_, _>>()?,
            write: self.write.iter().map(|path| whole(path)).collect::<Result<_, _>>()?,
            hosts: self.host.clone(),
            ports: if self.port.is_empty() { default.ports } else { self.port.clone() },
            headers: self.header.iter().cloned().collect(),
            variables: self.variable.iter().cloned().collect(),
            tools: given(&self.tool, default.tools),
            reads: self.reads.clone(),
            confirm: self.confirm.unwrap_or_default(),
            ..default
        })
    }
}

/// The keys of a section that say something else than they say by default. They are checked as those of settings are.
pub(super) fn lines(section: &UpstreamSection) -> Result<Table, Failure> {
    let unusable = |why: &str| usage(why.trim()).hint("`toolcrib upstream add --help` says what each option takes");
    let default = Table::try_from(UpstreamSection::of_command(Vec::new())).expect("a default is plain data");
    let mut lines = Table::try_from(section).map_err(|error| unusable(&error.to_string()))?;
    lines.retain(|key, value| default.get(key) != Some(value));
    let read: Result<UpstreamSection, _> = lines.clone().try_into();
    read.map_err(|error: toml::de::Error| unusable(error.message()))?;
    Ok(lines)
}

/// The whole path of a program, which is looked for on PATH if its name has no `/`.
pub(super) fn program(named: &str) -> Result<String, Failure> {
    let file = match named.contains('/') {
        true => Some(whole(Path::new(named))?).filter(|file| file.is_file()),
        false => on_path(named),
    };
    file.and_then(|file| file.into_os_string().into_string().ok()).ok_or_else(|| {
        usage(format!("there is no program `{}`", named.escape_debug()))
            .hint("name a program on PATH, or give the path of its file")
    })
}

/// A link keeps its own name, as arguments name it so; only what leads back through links does not.
fn whole(path: &Path) -> Result<PathBuf, Failure> {
    let whole = std::path::absolute(path).map_err(|error| cannot(path, &error))?;
    let leads_back = whole.components().any(|part| part == Component::ParentDir);
    Ok(if leads_back { canonical(&whole) } else { whole })
}

/// What to change where an argument names a file that the server cannot see: in its cell there is only what its section names.
fn unseen(section: &UpstreamSection) -> Option<String> {
    let seen = || SYSTEM.iter().map(Path::new).chain(section.read.iter().chain(&section.write).map(PathBuf::as_path));
    let files = section.command.iter().skip(1).filter(|argument| Path::new(argument).exists());
    let mut files = files.filter_map(|argument| Some((argument, whole(Path::new(argument)).ok()?)));
    let (argument, file) =
        files.find(|(argument, file)| argument.as_str() != "." && !seen().any(|seen| file.starts_with(seen)))?;
    let in_full = if Path::new(argument).is_absolute() { "" } else { ", and give its path in full" };
    Some(format!("the server does not see `{argument}`: let it, with `--read {}`{in_full}", file.display()))
}

/// Whether there is anything to accept.
fn check_offers(name: &str, look: &Look, section: &UpstreamSection) -> Result<(), Failure> {
    let tools = &look.accepted.tools;
    if tools.values().any(|tool| section.offers(&tool.name)) {
        return Ok(());
    }
    let refused = Failure::new(Kind::Unavailable, format!("`{name}` has no tools that can be offered"));
    let named: Vec<String> = tools.values().map(|tool| sanitize::visible_line(&tool.name)).take(SHOWN).collect();
    let unfit = look.unfit.first().map(|(tool, why)| sanitize::visible_line(&format!("`{tool}` {why}")));
    Err(match (named.as_slice(), unfit) {
        ([], Some(unfit)) => refused.hint(unfit),
        ([], None) => refused,
        (named, _) => refused.hint(format!("`--tool` names none of its tools: {}", named.join(", "))),
    })
}

fn page(name: &str, look: &Look, section: &UpstreamSection) -> Page {
    let mut page = Page::default();
    words::introduction(&mut page, name, &look.accepted);
    for (offered_as, tool) in &look.accepted.tools {
        words::tool(&mut page, offered_as, tool, section);
    }
    words::beside(&mut page, look);
    let proposed = words::proposed_reads(&look.accepted, section);
    if section.confirm == UpstreamConfirm::Writes && !proposed.is_empty() {
        let heading =
            "A person is asked about each call of a tool that says it only reads, unless you believe it and add:";
        words::rows(&mut page, heading, [proposed.join(" ")].into_iter());
    }
    page.end(0);
    page
}

fn json(name: &str, look: &Look, section: &UpstreamSection) -> serde_json::Value {
    let tools = look.accepted.tools.iter().map(|(offered_as, tool)| words::tool_json(offered_as, tool, section));
    json!({
        "name": name,
        "server": look.accepted.server,
        "protocol": look.accepted.protocol,
        "instructions": look.accepted.instructions,
        "tools": tools.collect::<Vec<_>>(),
        "beside": words::beside_json(look),
        "proposed": words::proposed_reads(&look.accepted, section),
    })
}
