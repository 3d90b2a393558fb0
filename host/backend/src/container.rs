//! A container that runs already: `docker exec` or `podman exec`, by the container's immutable id.
//!
//! The engine is reached by its own program, on its default socket or the one that settings name; contexts, credential helpers and hosts of
//! the user's environment are ignored.

use super::local::Local;
use super::remote::{Remote, Script, Way, reason};
use super::{Backend, Finished, Input, Process, ProcessSpec, finish};
use async_trait::async_trait;
use base::dirs::Dirs;
use base::envelope::{Failure, Kind};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long an engine may take to say something of a container.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a container is looked at while something runs in it: the engine's program does not tell of a pause.
const LOOK: Duration = Duration::from_secs(2);
/// Where docker looks for a configuration that would name other hosts and programs to run: nowhere.
const NO_CONFIGURATION: &str = "/nonexistent";
/// Longest name, in characters.
const NAME_CHARS: usize = 128;

/// A program that runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `docker`
    Docker,
    /// `podman`
    Podman,
}

impl Engine {
    /// Every engine, in the order in which they are looked for.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// What it is called: its program's name.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// The command line up to the engine's own command.
    fn argv(self, socket: Option<&str>) -> Vec<OsString> {
        let url = socket.map(|socket| format!("unix://{socket}"));
        let mut argv = vec![self.program().to_owned()];
        match (self, url) {
            (Self::Docker, url) => {
                argv.extend(["--config".into(), NO_CONFIGURATION.into()]);
                argv.extend(url.into_iter().flat_map(|url| ["--host".into(), url]));
            }
            (Self::Podman, url) => {
                argv.extend(url.into_iter().flat_map(|url| ["--remote".into(), "--url".into(), url]))
            }
        }
        argv.into_iter().map(OsString::from).collect()
    }
}

/// A container's name or id, fit to be an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName(String);

impl ContainerName {
    /// Accepts what engines accept as a name.
    ///
    /// # Errors
    ///
    /// For everything else, such as an option.
    pub fn parse(name: &str) -> Result<Self, Failure> {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let is_name = name.len() <= NAME_CHARS
            && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && name.bytes().all(is_inner);
        if is_name {
            return Ok(Self(name.to_owned()));
        }
        Err(Failure::new(Kind::Usage, format!("`{}` is not a valid container name", name.escape_debug())).hint(
            format!(
                "use 1 to {NAME_CHARS} characters of A-Z, a-z, 0-9, `_`, `.`, `-`, the first of them a letter or digit"
            ),
        ))
    }
}

/// A container as a backend; `dirs` are the user's on this machine.
#[must_use]
pub fn container(name: ContainerName, engine: Option<Engine>, socket: Option<String>, dirs: &Dirs) -> Arc<dyn Backend> {
    let shown = format!("container:{}", name.0);
    // Its program is started on this machine, where nothing else of the call lands.
    let local = Local::new("/".into(), dirs.home.clone(), dirs.home.clone(), dirs.environment.clone());
    Arc::new(Remote::new(Container { shown, name, engine, socket, local, found: OnceCell::new() }))
}

struct Container {
    shown: String,
    name: ContainerName,
    /// The engine that was asked for.
    engine: Option<Engine>,
    socket: Option<String>,
    local: Local,
    found: OnceCell<Found>,
}

/// The container that the name meant when it was first needed.
#[derive(Clone, Debug)]
struct Found {
    engine: Engine,
    id: String,
}

/// What an engine says of a container.
struct State {
    id: String,
    is_running: bool,
    is_paused: bool,
}

impl Container {
    /// The container; the same one for as long as this program runs.
    async fn found(&self) -> Result<&Found, Failure> {
        let find = async || {
            let mut reasons = Vec::new();
            let engines = self.engine.map_or_else(|| Engine::ALL.to_vec(), |engine| vec![engine]);
            for engine in engines {
                match self.look(engine, &self.name.0).await {
                    Ok(state) => {
                        self.check_running(engine, &state)?;
                        return Ok(Found { engine, id: state.id });
                    }
                    Err(reason) => reasons.push(format!("{}: {reason}", engine.program())),
                }
            }
            Err(Failure::new(
                Kind::Unavailable,
                format!("container `{}` was not found ({})", self.name.0, reasons.join("; ")),
            )
            .hint("start it first; `docker ps` and `podman ps` list what runs"))
        };
        self.found.get_or_try_init(find).await
    }

    fn check_running(&self, engine: Engine, state: &State) -> Result<(), Failure> {
        let (name, program) = (&self.name.0, engine.program());
        let refused = |what: &str, verb: &str| {
            Err(Failure::new(Kind::Unavailable, format!("container `{name}` {what}"))
                .hint(format!("`{program} {verb} {name}`, then try again")))
        };
        match state {
            // Engines do not agree on whether what is paused runs.
            State { is_paused: true, .. } => refused("is paused", "unpause"),
            State { is_running: false, .. } => refused("is not running", "start"),
            State { .. } => Ok(()),
        }
    }

    /// What an engine says of a container, or why it says nothing.
    async fn look(&self, engine: Engine, name: &str) -> Result<State, String> {
        let format = "{{.Id}} {{.State.Running}} {{.State.Paused}}";
        let printed = self.ask(engine, &["container", "inspect", "--format", format, name]).await?;
        match printed.split_whitespace().collect::<Vec<_>>()[..] {
            [id, running, paused] if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Ok(State { id: id.to_owned(), is_running: running == "true", is_paused: paused == "true" })
            }
            _ => Err("it does not say which container that is".into()),
        }
    }

    /// What an engine prints, or its last word on why not.
    async fn ask(&self, engine: Engine, command: &[&str]) -> Result<String, String> {
        let argv = engine.argv(self.socket.as_deref()).into_iter().chain(command.iter().map(OsString::from));
        let process = self.local.start(spec(argv.collect())).await.map_err(|failure| failure.message)?;
        match tokio::time::timeout(PATIENCE, finish(process)).await {
            Ok(Ok(Finished { status: 0, stdout, .. })) => Ok(String::from_utf8_lossy(&stdout).trim().to_owned()),
            Ok(Ok(Finished { stderr, .. })) => Err(reason(&String::from_utf8_lossy(&stderr))),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    /// The engine's command line for a script.
    async fn exec(&self, options: &[&str], argv: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Failure> {
        let Found { engine, id } = self.found().await?;
        let mut exec = engine.argv(self.socket.as_deref());
        exec.push("exec".into());
        exec.extend(options.iter().map(OsString::from));
        exec.push(id.into());
        exec.extend(argv);
        Ok(exec)
    }
}

fn shell(script: Script) -> impl Iterator<Item = OsString> {
    ["/bin/sh", "-c", script.text, "sh"].map(OsString::from).into_iter().chain(script.arguments)
}

/// A process of the engine's own on this machine: where rootless engines keep their sockets is passed on, nothing else.
fn spec(argv: Vec<OsString>) -> ProcessSpec {
    ProcessSpec { environment: vec!["XDG_RUNTIME_DIR".into()], ..ProcessSpec::own(argv) }
}

#[async_trait]
impl Way for Container {
    fn name(&self) -> &str {
        &self.shown
    }

    async fn start(&self, script: Script) -> Result<Box<dyn Process>, Failure> {
        self.local.start(spec(self.exec(&[], shell(script)).await?)).await
    }

    async fn open(&self, script: Script) -> Result<(Box<dyn Process>, Input), Failure> {
        self.local.open(spec(self.exec(&["--interactive"], shell(script)).await?)).await
    }

    /// Engines refuse in words of their own, before anything runs; they also report a missing shell.
    fn refusal(&self, said: &str, status: Option<i32>) -> Option<Failure> {
        let is_refused = matches!(status, Some(1 | 125..=127 | 255)) && !said.trim().is_empty();
        is_refused.then(|| {
            Failure::new(Kind::Unavailable, format!("container `{}`: {}", self.name.0, reason(said)))
                .hint("if it was recreated under its name, it is another container: restart this program")
        })
    }

    async fn lost(&self) -> Failure {
        let Ok(Found { engine, id }) = self.found().await else { return std::future::pending().await };
        let mut has_failed = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let looked = self.look(*engine, id).await;
            let failed_before = std::mem::replace(&mut has_failed, looked.is_err());
            let what = match looked {
                Ok(State { is_running: true, is_paused: false, .. }) => continue,
                // An engine that has much to do may fail to answer once.
                Err(_) if !failed_before => continue,
                Ok(State { is_paused: true, .. }) => "was paused".to_owned(),
                Ok(_) => "was stopped".to_owned(),
                Err(reason) => format!("cannot be inspected any more ({reason})"),
            };
            return Failure::new(Kind::OutcomeUnknown, format!("container `{}` {what}", self.name.0))
                .hint("check whether it had its effect before you run it again");
        }
    }

    async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
        self.exec(&["--interactive", "--tty"], argv).await
    }

    async fn inspect(&self) -> Result<String, Failure> {
        let Found { engine, id } = self.found().await?;
        let format = match engine {
            Engine::Docker => "{{.Server.Version}}",
            Engine::Podman => "{{.Client.Version}}",
        };
        let version = self.ask(*engine, &["version", "--format", format]).await.unwrap_or_else(|reason| reason);
        let risky = "{{.HostConfig.Privileged}} {{.HostConfig.PidMode}} {{.HostConfig.NetworkMode}}";
        let risky = self.ask(*engine, &["container", "inspect", "--format", risky, id]).await.unwrap_or_default();
        let words: Vec<&str> = risky.split_whitespace().collect();
        let mut notes = vec![format!("{} {version}, container {}", engine.program(), &id[..12])];
        notes.extend((words.first() == Some(&"true")).then(|| "privileged: it has this machine's full rights".into()));
        notes.extend(
            words.iter().skip(1).any(|word| *word == "host").then(|| "shares namespaces with this machine".into()),
        );
        Ok(notes.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_names() {
        for name in ["web", "a", "0123abcd", "My_web.1-x"] {
            assert!(ContainerName::parse(name).is_ok(), "{name}");
        }
        let long = "a".repeat(129);
        for name in ["", "-web", "--privileged", "a b", "a/b", "a@sha256:0", ".a", "a;b", "a\n", "wéb", "a:1", &long] {
            assert_eq!(ContainerName::parse(name).expect_err("refused").kind, Kind::Usage, "{name}");
        }
    }

    #[test]
    fn engines_get_no_configuration_of_the_users() {
        let line =
            |engine: Engine, socket| engine.argv(socket).join(std::ffi::OsStr::new(" ")).into_string().expect("text");
        assert_eq!(line(Engine::Docker, None), "docker --config /nonexistent");
        assert_eq!(line(Engine::Docker, Some("/s")), "docker --config /nonexistent --host unix:///s");
        assert_eq!(line(Engine::Podman, None), "podman");
        assert_eq!(line(Engine::Podman, Some("/s")), "podman --remote --url unix:///s");
    }
}
