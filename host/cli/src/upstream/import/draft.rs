//! A section that is made of an entry: the program, what it sees of this machine, and where it connects to. Texts with variables and secrets in them
//! are left to `values.rs`.

use super::super::super::setup::usage;
use super::super::add;
use super::fields::Fields;
use super::looks;
use super::packages::{Package, Unfit, package};
use super::read::Entry;
use super::sections::{Planned, Secret, World};
use ::config::{HostPattern, SecretSection, Template, is_never_passed};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toolcrib::config::UpstreamSection;
use toolcrib::envelope::Failure;
use url::Url;

/// Parts of paths and names of servers that write what their arguments name.
const WRITERS: [&str; 2] = ["server-filesystem", "mcp-server-git"];
/// Programs that are given a file to run.
const INTERPRETERS: [&str; 6] = ["node", "bun", "deno", "python", "python3", "ruby"];
/// What makes a directory that of a package.
const PACKAGE: [&str; 2] = ["package.json", "pyproject.toml"];
/// How far above a file its package may begin.
const LEVELS: usize = 6;

/// Bytes of a text of an entry.
const MOST_TEXT: usize = 64 << 10;

/// A section that is being made of an entry.
pub(super) struct Draft<'d> {
    pub(super) world: &'d World<'d>,
    pub(super) entry: &'d Entry,
    pub(super) name: &'d str,
    /// The values of the secrets that sections so far would keep, by their names.
    pub(super) values: &'d mut BTreeMap<String, String>,
    pub(super) notes: Vec<String>,
    pub(super) secrets: Vec<Secret>,
    /// The names of all secrets that it would get.
    pub(super) lent: BTreeSet<String>,
    pub(super) bound: Vec<HostPattern>,
    /// The server is where its secrets go, so that its section needs no `hosts`.
    pub(super) is_bound_by_url: bool,
}

impl<'d> Draft<'d> {
    pub(super) fn new(
        world: &'d World<'d>,
        entry: &'d Entry,
        name: &'d str,
        values: &'d mut BTreeMap<String, String>,
    ) -> Self {
        Self {
            world,
            entry,
            name,
            values,
            notes: Vec::new(),
            secrets: Vec::new(),
            lent: BTreeSet::new(),
            bound: world.hosts.to_vec(),
            is_bound_by_url: false,
        }
    }

    /// What the entry comes to.
    ///
    /// # Errors
    ///
    /// Why the server is left out, and what to do.
    pub(super) fn planned(&mut self, mut fields: Fields) -> Result<Planned, Failure> {
        if (fields.is_disabled || self.entry.is_refused) && !self.world.are_named {
            return Err(usage(format!("it is disabled in {}", self.entry.client.name()))
                .hint("give its name to `toolcrib upstream import`, and it is taken over all the same"));
        }
        let whole = self.entry.fields.as_ref().map(|fields| serde_json::Value::from(fields.clone()).to_string());
        // Such words are ours: a file of somebody else's could name any of this user's secrets by them.
        if whole.is_some_and(|whole| whole.contains("${secret:")) {
            return Err(usage("its entry has `${secret:` in it, which would stand for a secret of your settings"));
        }
        let texts = fields.variables.iter().chain(&fields.headers).map(|(_, text)| text).chain(&fields.command);
        if texts.into_iter().any(|text| text.len() > MOST_TEXT) {
            return Err(too_long());
        }
        self.take_remote(&mut fields)?;
        let section = match (fields.command.is_empty(), fields.url.is_empty()) {
            (true, true) => return Err(usage("its entry has neither a `command` nor a `url`")),
            (false, _) => self.of_command(&fields)?,
            (true, false) => self.of_url(&fields)?,
        };
        let default = section.tools.clone();
        let section = UpstreamSection {
            hosts: if self.is_bound_by_url { Vec::new() } else { self.bound.clone() },
            tools: fields.allowed.take().map_or(default, |allowed| self.patterns(allowed, &fields.denied)),
            timeout_ms: fields.timeout_ms.unwrap_or(section.timeout_ms),
            ..section
        };
        if section.tools.is_empty() {
            return Err(usage("none of its tools is offered there"));
        }
        // Pieces of a text can make such words together.
        if let Some(other) = section.secrets().find(|secret| !self.lent.contains(*secret)) {
            return Err(usage(format!("its entry would get your secret `{other}` by its name")));
        }
        // What its section cannot say is known before anybody is asked.
        let written = add::lines(&section).map_err(|failure| usage(failure.message))?.to_string();
        if let Some(secret) = self.secrets.iter().find(|secret| written.contains(&secret.value)) {
            return Err(usage(format!("the value of `{}` stands in another place of its entry, too", secret.name))
                .hint("only variables and headers whose names or values look like secrets are kept as such"));
        }
        let (secrets, bound) = (std::mem::take(&mut self.secrets), self.bound.clone());
        self.values.extend(secrets.iter().map(|secret| (secret.name.clone(), secret.value.clone())));
        Ok(Planned { section, secrets, bound, denied: fields.denied })
    }

    /// The tools that are offered; names that cannot be patterns are said.
    fn patterns(&mut self, allowed: Vec<String>, denied: &[String]) -> Vec<String> {
        // Some write what a tool may be called with behind its name.
        let bare = |tool: String| tool.split('(').next().unwrap_or_default().trim().to_owned();
        let allowed = allowed.into_iter().map(bare).filter(|tool| !denied.contains(tool));
        let is_pattern = |tool: &String| {
            !tool.is_empty() && !tool.strip_suffix('*').unwrap_or(tool).contains(|c: char| c == '*' || c.is_control())
        };
        let (fit, odd): (Vec<_>, Vec<_>) = allowed.partition(is_pattern);
        self.notes
            .extend(odd.iter().map(|tool| format!("the tool `{}` cannot be named in `tools`", tool.escape_debug())));
        fit
    }

    /// Makes an entry that reaches a URL by a program of its own one with a `url`.
    fn take_remote(&mut self, fields: &mut Fields) -> Result<(), Failure> {
        let Ok(Some(package)) = package(&fields.command) else { return Ok(()) };
        let mut words = package.arguments.iter();
        let url = words.next().filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        let (true, Some(url)) = (package.name == "mcp-remote", url) else { return Ok(()) };
        fields.url.clone_from(url);
        while let Some(word) = words.next() {
            let header = (word == "--header").then(|| words.next().and_then(|header| header.split_once(':'))).flatten();
            match header {
                // The program puts its own variables into headers.
                Some((name, value)) => {
                    let mut put = value.trim().to_owned();
                    for (variable, text) in &fields.variables {
                        put = put.replace(&format!("${{{variable}}}"), text);
                        if put.len() > MOST_TEXT {
                            return Err(too_long());
                        }
                    }
                    fields.headers.push((name.to_owned(), put));
                }
                None => self.notes.push("options of `mcp-remote` are not taken over".into()),
            }
        }
        fields.command.clear();
        if !fields.variables.is_empty() {
            self.notes.push("variables of `mcp-remote` itself are not taken over".into());
        }
        fields.variables.clear();
        Ok(())
    }

    fn of_url(&mut self, fields: &Fields) -> Result<UpstreamSection, Failure> {
        self.check_plain("`url`", &fields.url)?;
        let url = Url::parse(&fields.url).map_err(|error| usage(format!("its `url` cannot be read: {error}")))?;
        if looks::is_secret_in_url(&url) || looks::is_secret_text(&fields.url) {
            return Err(usage("its `url` has what looks like a secret in it, and a section's cannot")
                .hint("use the address without it, and a header, if the server takes one"));
        }
        let host = url.host_str().and_then(|host| SecretSection::host(host).ok());
        self.is_bound_by_url = true;
        self.bound = host.into_iter().collect();
        let mut section = UpstreamSection::of_url(fields.url.clone());
        for (name, text) in &fields.headers {
            if let Some(text) = self.template(name, text, false)? {
                let template = Template::parse(&text);
                let template = template.map_err(|why| usage(format!("its header `{}`: {why}", name.escape_debug())))?;
                section.headers.insert(name.to_ascii_lowercase(), template);
            }
        }
        let bearer = fields.bearer.iter().map(|variable| ("Authorization", "Bearer ", variable));
        let passed = fields.passed_headers.iter().map(|(name, variable)| (name.as_str(), "", variable));
        for (name, begin, variable) in bearer.chain(passed) {
            if let Some(text) = self.reference(name, variable, None)? {
                let template = Template::parse(&format!("{begin}{text}")).map_err(usage)?;
                section.headers.insert(name.to_ascii_lowercase(), template);
            }
        }
        if self.bound.is_empty() && !self.secrets.is_empty() {
            return Err(usage("it needs secrets, and its `url` names no host that they could be bound to"));
        }
        Ok(section)
    }

    fn of_command(&mut self, fields: &Fields) -> Result<UpstreamSection, Failure> {
        let is_own = |program: &String| Path::new(program).file_name().is_some_and(|name| name == "toolcrib");
        if fields.command.first().is_some_and(is_own) {
            return Err(usage("it is Toolcrib itself"));
        }
        // Whatever its arguments are.
        let package = package(&fields.command).map_err(|unfit| self.unfit(&unfit))?;
        for (at, word) in fields.command.iter().enumerate() {
            let what = if at == 0 { "`command`".to_owned() } else { format!("argument {at}") };
            self.check_plain(&what, word)?;
        }
        if let Some(at) = looks::in_arguments(&fields.command).first() {
            return Err(usage(format!("its argument {at} looks like a secret, and only variables can have one")).hint(
                format!(
                    "if the server takes it as a variable: `toolcrib secret set SECRET --host HOST`, then \
                     `toolcrib upstream add {} --host HOST --variable 'NAME=${{secret:SECRET}}' -- PROGRAM …`",
                    self.name
                ),
            ));
        }
        let (command, own) = self.command(&fields.command, package)?;
        let mut section = UpstreamSection::of_command(command);
        self.propose_paths(&mut section, own);
        self.bind_to_servers(&mut section, fields);
        for (name, text) in &fields.variables {
            if is_never_passed(name) {
                self.notes.push(format!("the variable `{}` is never passed to a server", name.escape_debug()));
            } else if let Some(text) = self.template(name, text, true)? {
                let template = Template::value(&text).map_err(usage)?;
                section.variables.insert(name.clone(), template);
            }
        }
        for name in fields.passed.iter().filter(|name| !is_never_passed(name)) {
            if let Some(text) = self.reference(name, name, None)? {
                section.variables.insert(name.clone(), Template::value(&text).map_err(usage)?);
            }
        }
        Ok(section)
    }

    fn unfit(&self, unfit: &Unfit) -> Failure {
        let (why, first) = match unfit {
            Unfit::Container => {
                ("it runs in a container, and servers are started in cells of this machine", "its program")
            }
            Unfit::Unclear => {
                ("it is started by a program that fetches it, and its package is not named clearly", "it")
            }
        };
        let line = format!("install {first}, then `toolcrib upstream add {} --read DIR -- PROGRAM …`", self.name);
        usage(why).hint(line)
    }

    /// The command line that starts the server itself, and what it has to read of its own where that is known.
    fn command(&self, command: &[String], package: Option<Package>) -> Result<(Vec<String>, Option<PathBuf>), Failure> {
        let Some(package) = package else { return Ok((direct(command)?, None)) };
        let installed = package.installed_in(self.world.installed)?;
        let installed = installed.ok_or_else(|| package.not_installed(self.name))?;
        Ok((installed.command, Some(installed.read)))
    }

    /// Proposes what the server sees: its own program's directory, and the paths in its arguments.
    fn propose_paths(&self, section: &mut UpstreamSection, own: Option<PathBuf>) {
        let program = section.command.first().map(PathBuf::from).unwrap_or_default();
        let is_interpreter =
            program.file_name().and_then(|name| name.to_str()).is_some_and(|name| INTERPRETERS.contains(&name));
        let writes = section.command.iter().any(|word| word.split('/').any(|part| WRITERS.contains(&part)));
        section.read.extend(own.into_iter().chain(environment_of(&program)));
        let is_system = |path: &Path| add::SYSTEM.iter().any(|system| path.starts_with(system));
        let paths = section.command.iter().skip(1).map(PathBuf::from).filter(|path| path.is_absolute());
        for (number, path) in paths.collect::<Vec<_>>().into_iter().enumerate() {
            let is_known = section.read.iter().any(|known| path.starts_with(known));
            if is_known || is_system(&path) || path.parent().is_none() || !path.exists() {
                continue;
            }
            match is_interpreter && number == 0 && path.is_file() {
                true => section.read.push(self.package_of(&path)),
                false if writes && path.is_dir() => section.write.push(path),
                false => section.read.push(path),
            }
        }
    }

    /// What a script needs to be read with: its package with those beside it, or its directory. Never a whole home.
    fn package_of(&self, script: &Path) -> PathBuf {
        let above = || script.ancestors().skip(1).take(LEVELS).take_while(|above| !self.world.home.starts_with(above));
        let is_below = |directory: &&Path| !self.world.home.starts_with(directory);
        let modules =
            script.ancestors().filter(|directory| directory.file_name().is_some_and(|name| name == "node_modules"));
        let modules = modules.last();
        let beside = modules.and_then(Path::parent).filter(is_below).or(modules);
        let package = above().find(|directory| PACKAGE.iter().any(|file| directory.join(file).is_file()));
        beside.or(package).or_else(|| above().next()).unwrap_or(script).to_owned()
    }

    /// Lets the server connect to where the URLs with passwords in its variables are, if nobody named hosts.
    fn bind_to_servers(&mut self, section: &mut UpstreamSection, fields: &Fields) {
        if !self.bound.is_empty() {
            return;
        }
        let mut ports = Vec::new();
        for (host, port) in fields.variables.iter().filter_map(|(_, text)| looks::server_of(text)) {
            if let Ok(host) = SecretSection::host(&host)
                && !self.bound.contains(&host)
            {
                self.bound.push(host);
                ports.extend(port.filter(|port| !ports.contains(port)));
            }
        }
        if !ports.is_empty() {
            section.ports = ports;
        }
    }
}

fn too_long() -> Failure {
    usage(format!("one of its texts is longer than {} KiB", MOST_TEXT >> 10))
}

/// The command line with the whole path of its program.
fn direct(command: &[String]) -> Result<Vec<String>, Failure> {
    let (program, rest) = command.split_first().expect("a server without a program was refused");
    let is_relative = program.contains('/') && !Path::new(program).is_absolute();
    if is_relative {
        return Err(usage("its `command` is a relative path").hint("write its whole path, and import the server again"));
    }
    Ok([add::program(program)?].into_iter().chain(rest.iter().cloned()).collect())
}

/// The virtual environment that a program of Python belongs to.
fn environment_of(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?.parent()?;
    directory.join("pyvenv.cfg").is_file().then(|| directory.to_owned())
}
