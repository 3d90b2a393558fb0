//! `toolcrib plugin`: lists plugins, shows what one asks for, adds and removes them.
//!
//! What a plugin may do is written by `plugin/rights.rs`.

mod add;
mod authors;
mod between;
mod cases;
mod changes;
mod check;
mod dev;
mod new;
mod options;
mod pack;
mod project;
mod rewrite;
mod rights;
mod toolchain;
mod update;
mod vet;
mod wit;

use super::completions;
use super::screen::{BOLD, Page, Table};
use super::setup::{Setup, usage};
use super::{Global, print, print_json};
use ::policy::lock::Code;
use base::disk::{OwnDir, told};
use base::text::names::is_name;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::capability::{AllowOption, Capability};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tools::manifest::Manifest;
use toolcrib::tools::provider::{Component, Refused};
use toolcrib::tools::words_file;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List the plugins, with those that were refused and why
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Compile the plugins now, so that none is compiled by its first call
    ///
    /// For images of containers and machines: what is compiled is kept in the state directory, for this version of the program.
    Compile,
    /// Say what a component offers and asks for, without running it
    Inspect {
        /// A component, or the name of an installed plugin
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put a component into your directory of plugins, without any rights
    ///
    /// It comes from a file, from the web (https://…, with `--digest`), or from a registry of OCI artifacts (oci://HOST/REPOSITORY:TAG, as
    /// `wkg oci push` puts it there). A tag is looked up once: your settings then have the digest, and `plugin update` looks again.
    Add(add::Add),
    /// Fetch the newest version of a plugin from where it came from, and say what has changed
    ///
    /// Other bytes start without rights, as after `plugin add --replace`. Nothing is replaced where the new version imports, offers or asks
    /// for more, unless you pass `--widen`.
    Update(update::Update),
    /// Remove a plugin from your directory of plugins, and with it its rights
    Remove {
        /// The plugin
        #[arg(add = ArgValueCompleter::new(completions::plugins))]
        name: String,
    },
    /// Allow a component, by its bytes, to do what the options name
    ///
    /// Writes its [plugin.NAME] section to your settings. It may do what the options name and nothing else. If you run this again for the
    /// same bytes, each right that you name replaces its old value, and the others stay. Other bytes start without rights, unless you pass
    /// `--keep`, or answer yes when you are shown what the old bytes were allowed.
    Allow(rights::Allow),
    /// Take back all that a plugin was allowed
    Deny {
        /// The plugin
        #[arg(add = ArgValueCompleter::new(completions::plugins))]
        name: String,
    },
    /// Make a project for a new plugin, in Rust, JavaScript, Python, Go or C
    New(new::New),
    /// Say whether this machine has what a language needs to build plugins
    Doctor(toolchain::Doctor),
    /// Build the plugin of a project, as its toolcrib-plugin.toml says
    Build(project::Build),
    /// Build the plugin of a project, and call it as its cases.toml says
    ///
    /// The plugin gets the rights that [grants] names there, for this run alone.
    Test(cases::Test),
    /// Build the plugin of a project after each change, run its cases, and call it by hand
    ///
    /// A line of JSON calls the tool; `:help` says what else can be typed. The plugin gets the rights that [grants] in cases.toml names, for
    /// this run alone. A build that fails leaves the plugin of before in its place.
    ///
    /// With `--serve`, an agent that speaks MCP calls it instead, and hears of each build that changed it; all that is for you goes to stderr.
    Dev(dev::Dev),
    /// Make a plugin of what a toolchain built: write the names of its tools into it
    ///
    /// Asks the component what it offers, without any rights, and writes the names into the section by which hosts find them. A core module
    /// becomes a component first. The SDK for Rust writes the section itself.
    Pack(pack::Pack),
    /// Check a component as a host, a model and a reviewer would
    Check(check::Check),
    /// Print or write the contract, for binding generators
    Wit(wit::Wit),
    /// Write what you found in reviewing a component, for you and others to sign
    Vet(vet::Vet),
    /// Sign a statement, list or revocation, as `minisign -S` does
    Sign(vet::Sign),
    /// Write the list of a deployment: all components of a directory with their statements
    Lock(vet::Lock),
    /// Say whether the policies in force admit a component, and by whose word
    Verify {
        /// The component
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Arguments {
    /// Whether it serves a client, which may make several calls at a time.
    pub(super) fn serves(&self) -> bool {
        matches!(self, Self::Dev(dev) if dev.serve)
    }
}

pub(super) async fn run(global: &Global, arguments: Arguments) -> Result<ExitCode, Failure> {
    let setup = || Setup::new(global);
    match arguments {
        Arguments::New(arguments) => new::new(&arguments).await,
        Arguments::Doctor(arguments) => toolchain::doctor(&arguments).await,
        Arguments::Build(arguments) => project::build(&setup().await?, &arguments).await,
        Arguments::Test(arguments) => cases::test(global, &arguments).await,
        Arguments::Dev(arguments) => dev::dev(global, &arguments).await,
        Arguments::Pack(arguments) => pack::pack(&setup().await?, &arguments).await,
        Arguments::Check(arguments) => check::check(&setup().await?, &arguments).await,
        Arguments::Wit(arguments) => wit::wit(&arguments),
        Arguments::Vet(arguments) => vet::vet(&setup().await?, &arguments).await,
        Arguments::Sign(arguments) => vet::sign(&arguments),
        Arguments::Lock(arguments) => vet::lock(&setup().await?, &arguments),
        Arguments::Verify { file, json } => vet::verify(&setup().await?, &file, json).await,
        Arguments::List { json } => {
            let setup = setup().await?;
            // Loads them all at once; the result of each is looked up below.
            setup.host.offered(&setup.context).await;
            list(&setup, json).await
        }
        Arguments::Compile => compile(&setup().await?).await,
        Arguments::Inspect { file, json } => inspect(&setup().await?, &file, json),
        Arguments::Add(arguments) => add::add(&setup().await?, &arguments).await,
        Arguments::Update(arguments) => update::update(&setup().await?, &arguments).await,
        Arguments::Remove { name } => remove(&setup().await?, &name),
        Arguments::Allow(arguments) => rights::allow(&setup().await?, &arguments).await,
        Arguments::Deny { name } => rights::deny(&setup().await?, &name),
    }
}

async fn compile(setup: &Setup) -> Result<ExitCode, Failure> {
    let mut table = Table::new(&["plugin", "state"]);
    let mut is_good = true;
    for (plugin, compiled) in setup.host.compile(&setup.context).await {
        is_good &= compiled.is_ok();
        let state = compiled.map_or_else(|failure| failure.message, |()| "compiled".to_owned());
        table.row([plugin.name(), &state]);
    }
    table.print()?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn list(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let mut table = Table::new(&["plugin", "tools", "asks for", "origin", "sha256", "state"]);
    let mut plugins = Vec::new();
    let tools = &setup.context.tools;
    for plugin in tools.plugins().chain(tools.barred()) {
        let barred = setup.host.policy().admit(plugin).err();
        let fault = match &barred {
            None => setup.host.ready(plugin, &setup.context).await.err().map(|failure| failure.message),
            Some(_) => None,
        };
        let Manifest { id, tools, capabilities, .. } = &**plugin;
        let origin = if id.is_builtin() { "built in" } else { id.origin() };
        let refused = barred.as_ref().and_then(|barred| barred.code);
        let state = match (&fault, refused) {
            (Some(fault), _) => fault.clone(),
            (None, Some(code)) => format!("refused: {code}"),
            (None, None) => match &barred {
                None => "loaded".to_owned(),
                Some(barred) if barred.decider.key == "tools.search_provider" => "not the search provider".to_owned(),
                Some(_) => "switched off".to_owned(),
            },
        };
        table.row([plugin.name(), &tools.join(", "), &names(capabilities), origin, &plugin.sha256()[..12], &state]);
        plugins.push(json!({
            "name": plugin.name(),
            "builtin": id.is_builtin(),
            "origin": id.origin(),
            "sha256": plugin.sha256(),
            "tools": tools,
            "capabilities": capabilities,
            "enabled": barred.is_none(),
            "refused": refused.map(Code::name),
            "fault": fault,
        }));
    }
    let mut refusals = Vec::new();
    for Refused { origin, reason } in setup.context.tools.refused() {
        table.row(["-", "-", "-", origin, "-", &format!("refused: {reason}")]);
        refusals.push(json!({ "origin": origin, "reason": reason }));
    }
    if as_json { print_json(&json!({ "plugins": plugins, "refused": refusals })) } else { table.print() }
}

fn open(setup: &Setup, file: &Path) -> Result<Component, Failure> {
    Component::open(file, &setup.settings.config.limits).map_err(|refused| no_plugin(&refused))
}

fn no_plugin(refused: &Refused) -> Failure {
    let hint = if refused.reason.contains("core module") {
        "`toolcrib plugin pack FILE` makes a component of a core module for WASI"
    } else {
        "give the path of a component, a `.wasm` file that was built for wasm32-wasip2"
    };
    let message = format!("`{}` cannot be a plugin: {}", refused.origin, refused.reason);
    Failure::new(Kind::Unavailable, message).hint(hint)
}

fn inspect(setup: &Setup, file: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let component = rights::find(setup, file)?;
    let Manifest { id, tools, capabilities, left_out, .. } = &**component.manifest();
    let explained = setup.host.policy().explain(component.manifest(), &setup.settings);
    if !as_json {
        let mut page = Page::default();
        page.add_in(BOLD, &id.name).end(0);
        page.add(&format!("file: {}", id.origin())).end(2);
        page.add(&format!("sha256: {}", id.sha256)).end(2);
        page.add(&format!("tools: {}", tools.join(", "))).end(2);
        let asked = if capabilities.is_empty() { "nothing".into() } else { names(capabilities) };
        page.add(&format!("asks for: {asked}")).end(2);
        page.add(&format!("imports: {}", component.manifest().imports.join(", "))).end(2);
        for (name, reason) in left_out {
            page.add(&format!("not a tool: {name}: {reason}")).end(2);
        }
        page.end(0);
        page.print()?;
        return super::policy::table(&explained).print();
    }
    print_json(&json!({
        "name": id.name,
        "sha256": id.sha256,
        "tools": tools,
        "capabilities": capabilities,
        "imports": component.manifest().imports,
        "left_out": left_out,
        "may": explained.iter().map(::policy::explain::Clause::to_json).collect::<Vec<_>>(),
    }))
}

/// The rights that a component can use, in words, with the options of `allow` that give them.
fn asked_rights(plugin: &Manifest) -> Vec<(&'static str, &'static str)> {
    let mut asked = Vec::new();
    for capability in Capability::ALL.into_iter().filter(|capability| plugin.capabilities.contains(capability)) {
        let is_needed = |option: &&AllowOption| {
            option.functions.is_empty() || option.functions.iter().any(|name| plugin.calls(capability, name))
        };
        asked.extend(capability.options().filter(is_needed).map(|option| (option.what, option.option)));
    }
    // Panes and their sessions are allowed by one option.
    asked.dedup();
    asked
}

/// Capabilities by name, in a list.
pub(super) fn names(capabilities: &[Capability]) -> String {
    capabilities.iter().map(|capability| capability.name()).collect::<Vec<_>>().join(", ")
}

fn listed<'a>(texts: impl Iterator<Item = &'a str>, between: &str) -> String {
    texts.collect::<Vec<_>>().join(between)
}

/// How a plugin that has the names of others comes to names of its own.
fn other_names(setup: &Setup, component: &Component, file: &Path) -> String {
    let is_its_own = |other: &Arc<Manifest>| other.id.has_name_of(&component.manifest().id);
    match component.is_foreign() && !setup.context.tools.plugins().any(is_its_own) {
        false => "rename your file".into(),
        true => format!(
            "give its tools other names: write `prefix = \"{}_\"` into `{}`",
            component.manifest().name(),
            words_file(file).display()
        ),
    }
}

/// Where a plugin of this name is, if it is installed.
fn place(setup: &Setup, plugin: &Manifest) -> PathBuf {
    setup.dirs.plugins().join(format!("{}.wasm", plugin.name()))
}

fn remove(setup: &Setup, name: &str) -> Result<ExitCode, Failure> {
    refuse_builtin(setup, name)?;
    let missing = || {
        let message = format!("there is no plugin `{}` in {}", name.escape_debug(), setup.dirs.plugins().display());
        usage(message).hint("`toolcrib plugin list` says where each plugin is")
    };
    if !is_name(name) {
        return Err(missing());
    }
    let file = setup.dirs.plugins().join(format!("{name}.wasm"));
    let removed = own_directory(setup)?.remove(OsStr::new(&format!("{name}.wasm")));
    removed.map_err(|error| if error.kind() == io::ErrorKind::NotFound { missing() } else { unavailable(error) })?;
    // There need not be words for it.
    let _ = own_directory(setup)?.remove(OsStr::new(&format!("{name}.tool.toml")));
    record(setup, &format!("removed {}", file.display()));
    let rights = rights::forget(setup, name)?;
    print(&format!("removed {}{}\n", file.display(), if rights { ", and its rights" } else { "" }))
}

/// Puts on record what a person has changed.
pub(super) fn record(setup: &Setup, what: &str) {
    if let Some(missing) = setup.host.audit().changed(what) {
        super::notice(&missing);
    }
}

/// The user's own directory of plugins.
fn own_directory(setup: &Setup) -> Result<OwnDir, Failure> {
    OwnDir::open(&setup.dirs.data).and_then(|data| data.below("plugins")).map_err(unavailable)
}

pub(super) fn unavailable(error: io::Error) -> Failure {
    Failure::new(Kind::Unavailable, told(&error))
}

/// Refuses a plugin that came with Toolcrib: it can be neither removed nor allowed.
fn refuse_builtin(setup: &Setup, name: &str) -> Result<(), Failure> {
    let tools = &setup.context.tools;
    if !tools.plugins().chain(tools.barred()).any(|plugin| plugin.id.is_builtin() && plugin.name() == name) {
        return Ok(());
    }
    Err(usage(format!("the plugin `{name}` came with Toolcrib"))
        .hint(format!("`enabled = false` under [plugin.{name}] switches it off")))
}
