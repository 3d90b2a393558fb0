//! From the process's environment and flags to a host: the only place that reads either.

use super::outside::Outside;
use super::policy::rules::Keeper;
use super::progress::{Progress, StillTerminal};
use super::sections::{Stray, strays};
use super::terminal::Terminal;
use super::{Global, PanesAt, choice, notice};
use base::disk::{OwnDir, told};
use base::paths::canonical;
use etcetera::BaseStrategy;
use file_access::HOME_THERE;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toolcrib::Host;
use toolcrib::backend::Backend;
use toolcrib::backend::container::{self, ContainerName};
use toolcrib::backend::local::Local;
use toolcrib::backend::ssh::{self, SshTarget};
use toolcrib::call::CallContext;
use toolcrib::call::session::Session;
use toolcrib::config::{Config, PolicySource, Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Approver;
use toolcrib::sandbox::Compiler;
use toolcrib::tmux::{OwnPane, Panes, Tmux};
use toolcrib::tools::source::PluginSource;
use toolcrib::workspace::Workspace;
use toolcrib_builtins::BUILTINS;

/// The operator's policy of this machine.
pub(super) const SYSTEM_POLICY: &str = "/etc/toolcrib/policy.toml";
/// Whether this program does nothing without the operator's policy: for builds of locked deployments, which set `TOOLCRIB_POLICY=required`.
/// Who can hide a file from a program, in a mount namespace of their own, cannot hide it from this one.
const POLICY_REQUIRED: bool = match option_env!("TOOLCRIB_POLICY") {
    None => false,
    Some(text) if matches!(text.as_bytes(), b"required") => true,
    Some(_) => panic!("TOOLCRIB_POLICY has to be `required`, or not set"),
};
/// A project's settings, in the directory where Toolcrib is started or above it.
pub(super) const PROJECT_SETTINGS: &str = "toolcrib.toml";

/// Everything a subcommand needs.
pub(super) struct Setup {
    pub(super) dirs: Dirs,
    pub(super) settings: Settings,
    pub(super) sources: Sources,
    /// Where plugins come from: with the program, then the user's own directory, then those of `--plugins`.
    pub(super) plugins: PluginSource,
    pub(super) host: Arc<Host>,
    pub(super) context: CallContext,
    pub(super) notices: Vec<String>,
}

/// How long vectors are waited for before this program ends.
const SETTLE: Duration = Duration::from_secs(10);

/// A constant of a toolset, as it is typed: what is no JSON is text.
pub(super) fn constant(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

impl Setup {
    /// Returns when vectors were made of what calls have kept, or the model that makes them does not answer, or a person interrupts: nothing is
    /// lost, as the next program that keeps something makes what is missing.
    pub(super) async fn settled(&self) {
        tokio::select! {
            () = self.host.settled(SETTLE) => {}
            () = self.context.cancel.cancelled() => {}
        }
    }

    /// Opens the session on a toolset, if one is named. Its turn is open as long as the program runs.
    pub(super) fn open(&mut self, toolset: Option<&str>, given: &[(String, Value)]) -> Result<(), Failure> {
        let Some(toolset) = toolset else { return Ok(()) };
        let session = Session::on(self.host.toolset(toolset)?, given.iter().cloned().collect())?;
        session.turn(true)?;
        self.context.session = Arc::new(session);
        Ok(())
    }

    /// Makes a host for one call after the other, as flags, files and environment say. Notices go to stderr.
    pub(super) async fn new(global: &Global) -> Result<Self, Failure> {
        Self::quiet(global).await.map(Self::noticed)
    }

    /// As [`Self::new`], for a caller that shows the notices itself.
    pub(super) async fn quiet(global: &Global) -> Result<Self, Failure> {
        Self::with(global, one_call).await
    }

    /// As [`Self::quiet`], by a policy in the place of the machine's.
    pub(super) async fn judged_by(global: &Global, policy: &Path) -> Result<Self, Failure> {
        let instead = |sources: &mut Sources| {
            one_call(sources);
            sources.policies[0] = PolicySource::named(policy.to_owned());
        };
        Self::with(global, instead).await
    }

    /// As [`Self::new`], for as many calls at a time as the settings say.
    ///
    /// # Errors
    ///
    /// Also where a plugin is missing or refused that a lock requires.
    pub(super) async fn serving(global: &Global) -> Result<Self, Failure> {
        let setup = Self::with(global, |_| {}).await.map(Self::noticed)?;
        setup.check_required()?;
        Ok(setup)
    }

    fn check_required(&self) -> Result<(), Failure> {
        let (policy, tools) = (self.host.policy(), &self.context.tools);
        for name in policy.vetted().into_iter().filter(|(_, required)| *required).map(|(name, _)| name) {
            if tools.plugins().any(|plugin| plugin.name() == name) {
                continue;
            }
            let refused = tools.barred().find(|plugin| plugin.name() == name);
            let refused = refused.and_then(|plugin| policy.check_locks(plugin).err());
            return Err(refused.map(|barred| barred.failure).unwrap_or_else(|| {
                let message = format!("plugin `{name}` is required by the operator's list, and is in no directory");
                Failure::new(Kind::Unavailable, message)
                    .hint("`toolcrib policy check` says where plugins are looked for")
            }));
        }
        Ok(())
    }

    fn noticed(self) -> Self {
        let ending = self.host.policy().ending(self.context.tools.plugins());
        self.notices.iter().chain(&ending).for_each(|text| notice(text));
        self
    }

    async fn with(global: &Global, adapt: impl FnOnce(&mut Sources)) -> Result<Self, Failure> {
        let dirs = dirs()?;
        let sources = sources(global, &dirs)?;
        let mut of_this = sources.clone();
        adapt(&mut of_this);
        let mut settings = load(&of_this)?;
        let elsewhere = elsewhere(global, &settings, &dirs)?;
        if elsewhere.is_some() {
            // `~` in paths of settings is the home there, which is known when somebody has to know.
            of_this.home = HOME_THERE.into();
            settings = load(&of_this)?;
        }
        let policies: Vec<PathBuf> = sources.policies.iter().map(|policy| policy.path.clone()).collect();
        let here = working_directory()?;
        let own = policies.iter().chain(&sources.user).chain(&global.plugins).map(|path| here.join(path));
        let protected = own.chain(Path::new(SYSTEM_POLICY).parent().map(Path::to_owned));
        // Not by the path of its file: another program may be at that path by then, and the output of this one is trusted.
        let program = PathBuf::from("/proc/self/exe");
        let (host, mut notices) =
            Host::new(&settings, &dirs, &protected.collect::<Vec<_>>(), Compiler::Child(program))?;
        let plugins = plugin_directories(global, &dirs, &mut notices);
        if let Some(missing) = global.plugins.iter().find(|directory| !directory.is_dir()) {
            return Err(usage(format!("`{}` is not a directory", missing.display()))
                .hint("give `--plugins` a directory of .wasm files"));
        }
        notices.extend(unread_directories(&host, &plugins));
        let plugins = host.plugin_source(BUILTINS, plugins);
        let tools = plugins.load();
        let mistyped = strays(&settings, &tools).into_iter().filter(Stray::is_mistyped);
        notices.extend(mistyped.map(|stray| stray.to_string()));
        let is_here = elsewhere.is_none();
        let local: Arc<dyn Backend> =
            Arc::new(Local::new(here.clone(), dirs.home.clone(), dirs.state.clone(), dirs.environment.clone()));
        let backend = elsewhere.unwrap_or_else(|| local.clone());
        let workspace = Workspace::find(&here, &dirs.home);
        let panes = match global.panes {
            Some(PanesAt::Host) if is_here => {
                return Err(usage(
                    "`--panes host` needs `--container` or `--ssh`: without them panes are on this machine anyway",
                ));
            }
            Some(PanesAt::Host) => panes_of_this_machine(global, &settings, workspace, local.clone(), &backend).await?,
            Some(PanesAt::There) | None => {
                panes(global, &settings, &backend, is_here.then_some(workspace), &mut notices).await?
            }
        };
        let progress = Arc::new(Progress::default());
        let approver = approver(global, &host, &sources, progress.clone(), local);
        let context = CallContext::new(format!("cli:{}", settings.config.agent.name), Arc::new(tools), backend)
            .panes(panes)
            .approver(approver)
            .events(progress);
        Ok(Self { dirs, settings, sources, plugins, host: Arc::new(host), context, notices })
    }
}

/// Room for a thousand calls is a thousand guarded stacks, which costs a process some milliseconds at its start.
fn one_call(sources: &mut Sources) {
    sources.set.push("limits.concurrent_calls=1".into());
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.context.backend.close();
    }
}

/// The container or host where tools act, if flags or settings name one. Nothing is started yet.
fn elsewhere(global: &Global, settings: &Settings, dirs: &Dirs) -> Result<Option<Arc<dyn Backend>>, Failure> {
    let config = &settings.config.backend;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    // A flag overrides both settings.
    let is_flagged = global.container.is_some() || global.ssh.is_some();
    let setting = |text: &str| given(text).filter(|_| !is_flagged);
    let container = global.container.clone().or_else(|| setting(&config.container));
    let host = global.ssh.clone().or_else(|| setting(&config.ssh));
    match (container, host) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(usage("both a container and a host are set under [backend]").hint("leave one of them empty"))
        }
        (Some(name), None) => {
            let engine = global.engine.or_else(|| choice::named(&config.engine));
            Ok(Some(container::container(ContainerName::parse(&name)?, engine, given(&config.socket), dirs)))
        }
        (None, Some(target)) => {
            let config_file = given(&settings.config.ssh.config_file);
            let config_file = config_file.map(|file| working_directory().map(|here| here.join(dirs.expand(&file))));
            let config_file = config_file.transpose()?;
            if let Some(missing) = config_file.as_ref().filter(|file| !file.is_file()) {
                return Err(usage(format!("`{}` is missing", missing.display()))
                    .hint("set `config_file` under [ssh] to a file, or leave it empty"));
            }
            let directory =
                std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_dir());
            let directory = directory.unwrap_or_else(std::env::temp_dir);
            Ok(Some(ssh::ssh(SshTarget::parse(&target)?, config_file, &directory, dirs)))
        }
    }
}

/// The panes of the backend, unless flags or settings say otherwise. Nothing is started yet. There is no workspace where the backend is not
/// this machine.
async fn panes(
    global: &Global,
    settings: &Settings,
    backend: &Arc<dyn Backend>,
    workspace: Option<Workspace>,
    notices: &mut Vec<String>,
) -> Result<Panes, Failure> {
    let (config, is_here) = (&settings.config, workspace.is_some());
    let flag = if global.own_pane { Some("--own-pane") } else { global.tmux.as_ref().map(|_| "--tmux") };
    let is_allowed = are_allowed(config, flag)?;
    if global.own_pane {
        return own_pane(backend, is_here);
    }
    if !is_allowed || global.no_tmux {
        return Ok(Panes::None);
    }
    let session = global.tmux.as_deref().filter(|session| !session.is_empty());
    let tmux = Tmux::new(backend.clone(), workspace, config, session, global.tmux.is_some())?;
    // Another machine is asked only when the answer is needed.
    if is_here && !tmux.is_there().await? {
        let missing = "tmux is not installed";
        return match &global.tmux {
            Some(_) => Err(Failure::new(Kind::Unavailable, missing).hint("install tmux, or omit `--tmux`")),
            None => {
                notices.push(format!("{missing}: commands run as plain processes (`--no-tmux` says the same)"));
                Ok(Panes::None)
            }
        };
    }
    let pane = std::env::var("TMUX").ok().zip(std::env::var("TOOLCRIB_SESSION").ok());
    if let Some((socket, session)) = pane.filter(|_| is_here)
        && tmux.owns(&socket).await
    {
        let message = format!(
            "this is a pane of the managed session `{session}`, which commands of this program would type into"
        );
        return Err(usage(message).hint("start it in another terminal, or with `--no-tmux`"));
    }
    Ok(Panes::Managed(Arc::new(tmux)))
}

/// Whether settings let commands use panes; an error if a flag asks for panes and they do not.
fn are_allowed(config: &Config, flag: Option<&str>) -> Result<bool, Failure> {
    let are_allowed = config.tmux.enabled && config.tools.shell_enabled;
    match flag {
        Some(flag) if !are_allowed => {
            Err(usage(format!("`{flag}` was given, but settings switch tmux or the shell off"))
                .hint("set `enabled = true` under [tmux] and `shell_enabled = true` under [tools]"))
        }
        Some(_) | None => Ok(are_allowed),
    }
}

/// Panes on this machine whose shells run in the container or host. Nothing is started yet.
async fn panes_of_this_machine(
    global: &Global,
    settings: &Settings,
    workspace: Workspace,
    local: Arc<dyn Backend>,
    there: &Arc<dyn Backend>,
) -> Result<Panes, Failure> {
    are_allowed(&settings.config, Some("--panes host"))?;
    let session = global.tmux.as_deref().filter(|session| !session.is_empty());
    let tmux = Tmux::leading_to(local, there.clone(), workspace, &settings.config, session)?;
    if !tmux.is_there().await? {
        return Err(Failure::new(Kind::Unavailable, "tmux is not installed on this machine")
            .hint("install tmux, or omit `--panes host`"));
    }
    Ok(Panes::Managed(Arc::new(tmux)))
}

/// The pane that this program was started in. Only the flag chooses it: what is on its screen is the user's own, and no file of a
/// project or variable that a project can set may hand it out.
fn own_pane(backend: &Arc<dyn Backend>, is_here: bool) -> Result<Panes, Failure> {
    if !is_here {
        return Err(usage(
            "`--own-pane` is a pane of this machine, and settings under [backend] let tools act elsewhere",
        )
        .hint("omit `--own-pane`, or pass `--set backend.container= --set backend.ssh=`"));
    }
    let named = std::env::var("TMUX").ok().zip(std::env::var("TMUX_PANE").ok());
    let own = named.and_then(|(tmux, pane)| OwnPane::named(backend.clone(), &tmux, &pane));
    let own = own.ok_or_else(|| {
        usage("`--own-pane` was given, but this program was not started in a tmux pane")
            .hint("start it in a pane of tmux, or omit `--own-pane`: panes are then made when they are needed")
    })?;
    Ok(Panes::Own(Arc::new(own)))
}

fn approver(
    global: &Global,
    host: &Host,
    sources: &Sources,
    progress: Arc<Progress>,
    local: Arc<dyn Backend>,
) -> Arc<dyn Approver> {
    if global.yes {
        return Arc::new(host.always_yes());
    }
    let keeper = Keeper { sources: sources.clone(), rules: Some(host.policy().rules().clone()) };
    Arc::new(Outside { approver: Arc::new(StillTerminal::new(Terminal::keeping(keeper), progress)), local })
}

/// The directory of the user's own plugins; it may be missing. An error where another user could put plugins into it.
fn own_plugins(dirs: &Dirs) -> std::io::Result<PathBuf> {
    let path = dirs.plugins();
    if path.symlink_metadata().is_ok() {
        OwnDir::open(&dirs.data)?;
        OwnDir::open(&path)?;
    }
    Ok(path)
}

/// Where plugins are: the user's own directory, and those of `--plugins`.
pub(super) fn plugin_directories(global: &Global, dirs: &Dirs, notices: &mut Vec<String>) -> Vec<PathBuf> {
    let own = own_plugins(dirs);
    if let Err(error) = &own {
        notices.push(format!("your own plugins are ignored: {}", told(error)));
    }
    own.into_iter().chain(global.plugins.iter().cloned()).collect()
}

/// Says which directories that hold something are not read, as the policy names others.
fn unread_directories(host: &Host, users: &[PathBuf]) -> Vec<String> {
    let policy = host.policy();
    let (read, Some(place)) = policy.plugin_directories(users.to_vec()) else { return Vec::new() };
    let holds_something = |directory: &&PathBuf| std::fs::read_dir(directory).is_ok_and(|mut all| all.next().is_some());
    let unread = users.iter().filter(|directory| !read.contains(directory)).filter(holds_something);
    unread
        .map(|directory| {
            format!("`{}` is not read: the policy names the directories of plugins ({place})", directory.display())
        })
        .collect()
}

/// This user's directories.
pub(super) fn dirs() -> Result<Dirs, Failure> {
    let no_home = |_| Failure::new(Kind::Unavailable, "this user has no home directory").hint("set HOME");
    let xdg = etcetera::base_strategy::Xdg::new().map_err(no_home)?;
    Ok(Dirs {
        home: xdg.home_dir().to_owned(),
        config: xdg.config_dir().join("toolcrib"),
        data: xdg.data_dir().join("toolcrib"),
        state: xdg.state_dir().expect("XDG has a state directory").join("toolcrib"),
        environment: std::env::vars_os().collect(),
    })
}

/// The nearest project's settings: in this directory or above it, up to the root of its repository, or to the home. Beyond these, a directory
/// may be anybody's, such as `/tmp`.
pub(super) fn project_settings(here: &Path, home: &Path, user: &Path) -> Option<PathBuf> {
    let (repository, home) = (Workspace::find(here, home).root, canonical(home));
    let is_in_repository = repository != here || here.join(".git").symlink_metadata().is_ok();
    let last = if is_in_repository { &repository } else { &home };
    let above = here.ancestors().skip(1).take_while(|directory| directory.starts_with(last));
    let mut files = [here].into_iter().chain(above).map(|directory| directory.join(PROJECT_SETTINGS));
    // A dangling link is meant to be read, too.
    files.find(|file| file != user && file.symlink_metadata().is_ok())
}

pub(super) fn sources(global: &Global, dirs: &Dirs) -> Result<Sources, Failure> {
    let user = global.config.clone().unwrap_or_else(|| dirs.settings());
    // In the directory of the user's own settings, this file is not a project's as well.
    let here = working_directory()?;
    let project = project_settings(&here, &dirs.home, &here.join(&user));
    let project_sha256 = project.as_ref().and_then(|project| super::trust::accepted(project, dirs));
    let system = PolicySource { path: SYSTEM_POLICY.into(), required: POLICY_REQUIRED, of_root: true };
    let added = global.policy.iter().cloned().map(PolicySource::named);
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Ok(Sources {
        home: dirs.home.clone(),
        user: Some(user),
        user_required: global.config.is_some(),
        project,
        project_sha256,
        policies: [system].into_iter().chain(added).collect(),
        environment: std::env::vars_os().filter_map(text).collect(),
        set: settings(global),
        flags: flags(global),
    })
}

/// What options set: each `--set` as it is, and `--offer` as the setting it stands for.
fn settings(global: &Global) -> Vec<String> {
    let offer = (!global.offer.is_empty()).then(|| format!("tools.offer={:?}", global.offer));
    global.set.iter().cloned().chain(offer).collect()
}

/// The options that every command has, as they were given.
fn flags(global: &Global) -> Vec<String> {
    let Global { config, policy, plugins, set, offer, tmux, no_tmux, own_pane, container, engine, ssh, panes, yes } =
        global;
    let files = |name: &str, files: &[PathBuf]| {
        files.iter().map(|file| format!("--{name} {}", file.display())).collect::<Vec<_>>()
    };
    let text = |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("--{name}={text}"));
    let switch = |name: &str, is_on: bool| is_on.then(|| format!("--{name}"));
    let panes = panes.map(|at| match at {
        PanesAt::There => "--panes there".to_owned(),
        PanesAt::Host => "--panes host".to_owned(),
    });
    let many = [files("policy", policy), files("plugins", plugins)].concat();
    let sets = set.iter().map(|set| format!("--set {set}"));
    let many = many.into_iter().chain(sets).chain(offer.iter().map(|family| format!("--offer {family}")));
    let one = [
        config.as_ref().map(|file| format!("--config {}", file.display())),
        text("tmux", tmux),
        switch("no-tmux", *no_tmux),
        switch("own-pane", *own_pane),
        text("container", container),
        engine.map(|engine| format!("--engine {}", engine.program())),
        text("ssh", ssh),
        panes,
        switch("yes", *yes),
    ];
    one.into_iter().flatten().chain(many).collect()
}

/// Reads all layers of settings.
pub(super) fn load(sources: &Sources) -> Result<Settings, Failure> {
    Settings::load(sources).map_err(|error| usage(error.to_string()))
}

pub(super) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::new(Kind::Unavailable, format!("the working directory is gone: {error}")))
}

/// Why a directory is not a workspace, if it is not.
pub(super) fn no_workspace(directory: &Path, home: &Path) -> Option<String> {
    let directory = canonical(directory);
    if directory.parent().is_none() {
        return Some("`/` is not a workspace".to_owned());
    }
    (directory == canonical(home)).then(|| format!("`{}` is your home, which is not a workspace", directory.display()))
}

/// What could not be done with a file, and why.
pub(super) fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Unavailable, format!("`{}`: {error}", path.display()))
}

/// An error in the command line or in the settings that it names.
pub(super) fn usage(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Usage, message)
}
