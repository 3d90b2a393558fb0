//! `toolcrib doctor`: what this installation has, what it lacks, and what that costs.

use super::Global;
use super::clients::command::is_cursor_in_config;
use super::clients::{Places, Remaining, codex, remaining};
use super::report::{Report, Verdict};
use super::screen::print_json;
use super::sections::strays;
use super::setup::{Setup, working_directory};
use super::upstream::problem;
use backend::cell::can_bound_memory;
use backend::{finish, toolchain_names};
use base::disk::{OwnDir, told};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use tmux::Version;
use toolcrib::backend::{Finished, ProcessSpec};
use toolcrib::envelope::Failure;
use toolcrib::tmux::Panes;
use toolcrib::tools::provider::program_faults;

/// What is written to the state directory to see whether that works, and its length.
const PROBE: &str = "doctor.probe";
const PROBE_BYTES: usize = 8 << 10;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    report.line(Verdict::Good, "version", super::version());
    report.line(Verdict::Good, "system", format!("{}: Toolcrib runs on Linux only", std::env::consts::OS));
    match Setup::quiet(global).await {
        Ok(setup) => check(&mut report, &setup, global).await,
        Err(fault) => report.fault("settings", &fault),
    }
    if arguments.json {
        print_json(&report.to_json())?
    } else {
        report.page().print()?
    };
    Ok(ExitCode::from(u8::from(report.is_bad())))
}

async fn check(report: &mut Report, setup: &Setup, global: &Global) {
    settings(report, setup);
    directories(report, setup);
    plugins(report, setup).await;
    shell(report, setup).await;
    panes(report, setup, global).await;
    browser(report, setup).await;
    mail(report, setup).await;
    servers(report, setup);
    clients(report, setup);
    let approver = if global.yes {
        "--yes answers"
    } else if terminal() {
        "a terminal to ask on"
    } else {
        "no terminal: actions that need one are denied"
    };
    report.line(if terminal() || global.yes { Verdict::Good } else { Verdict::Note }, "approvals", approver);
    reach(report, setup).await;
}

/// What commands can do, and whether they can be confined here: that is tried, as what a system says of itself does not tell.
async fn reach(report: &mut Report, setup: &Setup) {
    let what = "reach of run_shell";
    let (policy, backend) = (setup.host.policy(), &*setup.context.backend);
    for unusable in policy.unusable(backend).await {
        report.line(Verdict::Note, "confining", format!("no {}: {}", unusable.step(), unusable.words()));
    }
    match policy.reach(backend).await {
        Ok(reach) => {
            report.line(if reach.is_bounded { Verdict::Good } else { Verdict::Note }, what, reach.words);
            if reach.is_bounded && backend.is_this_machine() {
                memory(report, setup);
            }
            environment(report, setup).await;
        }
        Err(failure) => report.fault(what, &failure),
    }
}

/// Names of the variables that commands get. Values could be secret.
async fn environment(report: &mut Report, setup: &Setup) {
    let backend = &*setup.context.backend;
    let passed = match setup.host.policy().environment(backend).await {
        Ok(passed) => passed,
        Err(failure) => return report.fault("environment", &failure),
    };
    let own = &setup.dirs.environment;
    let is_left_out = |name: &&str| own.get(name).is_some() && !passed.iter().any(|passed| passed == name);
    let left_out: Vec<_> = toolchain_names().filter(is_left_out).filter(|_| backend.is_this_machine()).collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("; not passed, as commands cannot use what they name: {}", left_out.join(" ")),
    };
    let found = format!("commands get {}{left_out}; `shell_env` under [tools] passes others", passed.join(" "));
    report.line(Verdict::Good, "environment", found);
}

/// Whether what the commands of a cell take together is bounded, or could be as this program was started.
fn memory(report: &mut Report, setup: &Setup) {
    let bound = setup.settings.config.confine.memory;
    let (verdict, found) = match (bound.bytes(), can_bound_memory()) {
        (Some(_), _) => (Verdict::Good, format!("{bound} for the commands of a cell")),
        (None, Ok(())) => (Verdict::Good, "not bounded: `memory` under [confine] can do that here".into()),
        (None, Err(why)) => (Verdict::Note, format!("not bounded: {why}")),
    };
    report.line(verdict, "memory of commands", found);
}

fn settings(report: &mut Report, setup: &Setup) {
    let found = |path: &Path| {
        if path.exists() { path.display().to_string() } else { format!("{} (missing: defaults apply)", path.display()) }
    };
    if let Some(user) = &setup.sources.user {
        report.line(Verdict::Good, "settings", found(user));
    }
    if let Some(project) = setup.sources.project.as_ref().filter(|project| project.exists()) {
        let trust =
            if super::trust::is_trusted(project, &setup.dirs) { "trusted" } else { "not trusted: it may only narrow" };
        report.line(Verdict::Note, "project", format!("{} ({trust})", project.display()));
    }
    for policy in setup.sources.policies.iter().filter(|policy| policy.path.exists()) {
        report.line(Verdict::Good, "policy", policy.path.display().to_string());
    }
    let level = setup.host.policy().level();
    report.line(Verdict::Good, "lock", format!("level {}: {}", level.number(), level.words()));
    for idle in setup.host.policy().idle_revocations() {
        report.line(Verdict::Note, "lock", idle);
    }
}

fn directories(report: &mut Report, setup: &Setup) {
    match OwnDir::open(&setup.dirs.state).and_then(|state| can_keep(&state).map(|()| state)) {
        Ok(state) => report.line(Verdict::Good, "state", state.path().display().to_string()),
        Err(error) => report.line(Verdict::Bad, "state", told(&error)),
    }
    for text in &setup.notices {
        report.line(Verdict::Note, "notice", text);
    }
}

/// Whether something can be kept in a directory: tried, as neither a full disk nor a read-only one shows in its mode.
fn can_keep(state: &OwnDir) -> io::Result<()> {
    state.replace(PROBE, &[0; PROBE_BYTES])?;
    state.remove(OsStr::new(PROBE))
}

async fn plugins(report: &mut Report, setup: &Setup) {
    let mut loaded = 0;
    for plugin in setup.context.tools.plugins() {
        match setup.host.ready(plugin, &setup.context).await {
            Ok(_) => loaded += 1,
            Err(failure) => report.fault("plugin", &failure),
        }
    }
    // A server has a line of its own.
    let is_server = |origin: &str| setup.settings.config.upstream.contains_key(origin);
    for refused in setup.context.tools.refused().iter().filter(|refused| !is_server(&refused.origin)) {
        report.line(Verdict::Bad, "plugin", format!("`{}` was refused: {}", refused.origin, refused.reason));
    }
    // What looks mistyped is among the notices already.
    for stray in strays(&setup.settings, &setup.context.tools).iter().filter(|stray| !stray.is_mistyped()) {
        report.line(Verdict::Note, "plugin", stray.to_string());
    }
    for (name, section) in &setup.settings.config.program {
        let (faults, notes) = program_faults(name, section, &setup.host.policy());
        faults.iter().for_each(|fault| report.line(Verdict::Bad, "program", fault));
        notes.iter().for_each(|note| report.line(Verdict::Note, "program", note));
    }
    let config = setup.host.policy();
    for name in config.config().toolset.keys() {
        match setup.host.toolset(name) {
            Err(failure) => report.fault("toolset", &failure),
            Ok(toolset) => {
                let odd = toolset.odd(config.config(), &|tool| setup.context.tools.find_plugin(tool));
                odd.iter().for_each(|text| report.line(Verdict::Note, "toolset", text));
            }
        }
    }
    report.line(
        Verdict::Good,
        "plugins",
        format!("{loaded} loaded; your own go to {}", setup.dirs.plugins().display()),
    );
}

/// Runs a real command: what `run_shell` would do.
async fn shell(report: &mut Report, setup: &Setup) {
    let backend = &setup.context.backend;
    match backend.inspect().await {
        Ok(found) => report.line(Verdict::Good, "target", found),
        Err(fault) => return report.fault("target", &fault),
    }
    let found = match backend.start(ProcessSpec::shell("command -v sh", Vec::new(), "doctor")).await {
        Err(failure) => Err(failure.message),
        Ok(process) => finish(process).await.map_err(|error| error.to_string()),
    };
    let outcome = found.and_then(|Finished { status, stdout, .. }| match status {
        0 => Ok(String::from_utf8_lossy(&stdout).trim().to_owned()),
        status => Err(format!("`sh` exits with {status}")),
    });
    match outcome {
        Ok(path) => report.line(Verdict::Good, "backend", format!("{}: {path}", backend.name())),
        Err(fault) => report.line(Verdict::Bad, "backend", format!("{}: {fault}", backend.name())),
    }
}

async fn panes(report: &mut Report, setup: &Setup, global: &Global) {
    let tmux = match (&setup.context.panes, setup.context.panes.managed().await) {
        (_, Ok(Some(tmux))) => tmux,
        (_, Err(fault)) => return report.fault("panes", &fault),
        (Panes::None, _) => {
            return report.line(Verdict::Note, "panes", "none: commands run as plain processes, nobody can watch them");
        }
        (Panes::Own(_), _) => {
            let found = "the one that this program was started in, as you chose; commands that are waited for run as plain processes";
            return report.line(Verdict::Note, "panes", found);
        }
        (Panes::Managed(_), _) => {
            let name = setup.context.backend.name();
            let found = format!(
                "none: {name} has no tmux, so commands run as plain processes; install the package `tmux` there"
            );
            return report.line(Verdict::Note, "panes", found);
        }
    };
    let version = match tmux.version().await {
        Ok(version) => version,
        Err(fault) => return report.fault("panes", &fault),
    };
    if !version.is_enough() {
        let oldest = Version::OLDEST;
        let found = format!("tmux {version} is too old, {oldest} or later is needed: update it, or pass `--no-tmux`");
        return report.line(Verdict::Bad, "panes", found);
    }
    let here = tmux.found().await.map_or(0, |found| found.iter().filter(|found| found.here).count());
    let plural = if here == 1 { "" } else { "s" };
    let join = super::panes::line(global, "attach");
    report.line(
        Verdict::Good,
        "panes",
        format!("tmux {version}, {here} session{plural} of this workspace; join with `{join}`"),
    );
}

/// What tools have for pages of the web. Nothing else needs it.
async fn browser(report: &mut Report, setup: &Setup) {
    match setup.host.browser().await {
        Ok(program) => report.line(Verdict::Good, "browser", format!("{}, in a cell of its own", program.display())),
        Err(failure) => {
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            report.line(Verdict::Note, "browser", format!("none: {}{hint}", failure.message));
        }
    }
}

/// The mail accounts, and whether what they say could get out. Nothing is said where there are none.
async fn mail(report: &mut Report, setup: &Setup) {
    for (name, found) in setup.host.mail() {
        match found {
            Ok(()) => report.line(Verdict::Good, "mail", format!("`{name}`, not asked now")),
            Err(why) => report.line(Verdict::Bad, "mail", format!("`{name}` cannot be used: {why}")),
        }
    }
    // Toolsets have their own lines.
    let offered = setup.host.offered(&setup.context).await;
    let tools: Vec<_> = offered.tools.iter().map(|tool| tool.definition().name.as_str()).collect();
    let policy = setup.host.policy();
    if let Some(why) = ::policy::toolset::leak(policy.config(), &|tool| setup.context.tools.find_plugin(tool), &tools) {
        report.line(Verdict::Note, "mail", format!("what is offered without a toolset {why}"));
    }
}

/// The servers of others, none of which is started. Nothing is said where there are none.
fn servers(report: &mut Report, setup: &Setup) {
    let servers = &setup.settings.config.upstream;
    let mut usable = 0;
    for (name, section) in servers {
        match problem(setup, name, section) {
            None => usable += 1,
            Some(why) => report.line(Verdict::Bad, "server", format!("`{name}` cannot be used: {why}")),
        }
    }
    if !servers.is_empty() {
        report.line(Verdict::Good, "servers", format!("{usable} of {} that others wrote can be used", servers.len()));
    }
}

/// The clients that have an entry of this program, and which of their own tools go past it. Nothing is said if there are none.
fn clients(report: &mut Report, setup: &Setup) {
    let Ok(here) = working_directory() else { return };
    let config = setup.dirs.config.parent().unwrap_or(&setup.dirs.config);
    let codex = codex(&setup.sources.environment, &setup.dirs.home);
    let places = Places { home: &setup.dirs.home, config, codex: &codex, here: &here };
    for Remaining { client, own, stays, line } in remaining(&places, is_cursor_in_config(setup)) {
        let name = client.name();
        let stays = stays.map(|stays| format!("stays on: {stays}"));
        let (verdict, found) = match (own.is_empty(), stays) {
            (true, None) => (Verdict::Good, format!("{name}: its own tools are off")),
            (true, Some(stays)) => (Verdict::Note, format!("{name}: {stays}")),
            (false, stays) => {
                let own =
                    format!("{name}: its own tools go past Toolcrib ({}): `{line}` switches them off", own.join(", "));
                (Verdict::Note, [Some(own), stays].into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
        };
        report.line(verdict, "client", found);
    }
}

fn terminal() -> bool {
    std::fs::File::options().read(true).write(true).open("/dev/tty").is_ok()
}
