//! A host in this process, with directories, settings and an approver of its own.

use crate::canary::{self, Sandbox};
use crate::shell::harmless;
use async_trait::async_trait;
use backend::sealed::program_sha256;
use policy::in_force::InForce;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{PolicySource, Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::embedder::{Embedder, NoEmbedder};
use toolcrib::envelope::{Envelope, Failure};
use toolcrib::event::{Event, EventSink};
use toolcrib::jobs::JobsRunning;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib::sandbox::Compiler;
use toolcrib::tools::provider::Component;
use toolcrib::tools::source::{Builtin, PluginSource};
use toolcrib_builtins::BUILTINS;

/// The file of a guest below `tests/guests/`.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    Path::new(env!("GUESTS")).join(format!("{name}.wasm"))
}

/// The digest of a guest, by which settings name it.
#[must_use]
pub fn digest(name: &str) -> String {
    let component = Component::open(&guest(name), &toolcrib::config::Config::default().limits);
    let component = component.map_err(|refused| refused.reason).expect("a guest that can be a plugin");
    component.manifest().sha256().to_owned()
}

/// Plugins of `builtins` and of directories, as default settings with these changes admit them.
///
/// # Panics
///
/// When the settings are wrong.
#[must_use]
pub fn plugin_source(builtins: &'static [Builtin], directories: &[&Path], set: &[&str]) -> PluginSource {
    let set = set.iter().map(ToString::to_string).collect();
    let settings = Settings::load(&Sources { home: "/".into(), set, ..Sources::default() }).expect("settings");
    let policy = InForce::new(&settings, &Dirs::below(Path::new("/")), &[]);
    let policy = policy.map_err(|failure| failure.message).expect("settings that can be enforced");
    PluginSource::new(builtins, directories.iter().map(|path| path.to_path_buf()).collect(), Arc::new(policy))
}

/// The setting of the canary's file.
const SECRET: &str = "secret.CANARY.file";

/// A host that is being prepared, then called. Nothing is asked unless [`TestHost::answering`] is used.
pub struct TestHost {
    directory: Sandbox,
    sources: Sources,
    asked: Arc<Asked>,
    plugins: Vec<PathBuf>,
    compiler: PathBuf,
    ready: std::sync::OnceLock<(Arc<Host>, CallContext)>,
    events: Arc<Events>,
    embedder: Arc<dyn Embedder>,
    /// Ends the calls of this host.
    pub cancel: CancellationToken,
}

/// An approver with a fixed answer, which remembers what it was asked.
pub struct Asked {
    answer: Answer,
    requests: Mutex<Vec<ApprovalRequest>>,
}

#[derive(Default)]
struct Events(Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        self.0.lock().expect("no test panics while it holds the events").push(event);
    }
}

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        self.requests.lock().expect("no test panics while it holds the requests").push(request.clone());
        self.answer.clone()
    }

    fn name(&self) -> &'static str {
        "the test"
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if self.directory.secret().is_some() {
            self.told().into_iter().for_each(|(what, text)| canary::check(what, text));
        }
    }
}

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHost {
    /// A host with default settings, but that nothing is asked.
    #[must_use]
    pub fn new() -> Self {
        let host = Self::cold();
        crate::reuse_code(crate::compiled(), &host.dirs().state);
        host
    }

    /// The same, and nothing is compiled yet.
    #[must_use]
    pub fn cold() -> Self {
        let directory = Sandbox::below(&std::env::temp_dir(), &["work", "config"]);
        // How commands are confined can be said for a whole suite.
        let environment = std::env::vars().filter(|(name, _)| name.starts_with("TOOLCRIB_CONFINE_")).collect();
        let sources = Sources { home: directory.path().join("home"), environment, ..Sources::default() };
        let asked = Arc::new(Asked { answer: Answer::No, requests: Mutex::default() });
        let (plugins, ready, events) = (Vec::new(), std::sync::OnceLock::new(), Arc::default());
        let embedder = Arc::new(NoEmbedder);
        let compiler = crate::Program::file();
        let (cancel, secret) = (CancellationToken::new(), directory.secret());
        let host = Self { directory, sources, asked, plugins, compiler, ready, events, embedder, cancel };
        secret
            .iter()
            .fold(host, |host, file| host.set(&format!("{SECRET}={file:?}")))
            .set("tools.shell_confirm=false")
            .set("tools.files_confirm=never")
    }

    /// The same without a canary: neither its secrets nor its environment and files are others than the test's own.
    #[must_use]
    pub fn without_canary(mut self) -> Self {
        self.directory.clear();
        self.sources.set.retain(|setting| !setting.starts_with(SECRET));
        self
    }

    /// Searches files, events and questions for the canary now, and not at the end. Returns a line for each find.
    pub fn search(&mut self) -> Vec<String> {
        let told = self.told();
        let finds =
            told.iter().filter_map(|(what, text)| Some(format!("the canary is in {what}, {}", canary::find(text)?)));
        finds.chain(self.directory.search()).collect()
    }

    /// What it has told others so far, and what that was.
    fn told(&self) -> Vec<(&'static str, String)> {
        // A test that panics while it holds one of them fails by that.
        let events = self.events.0.lock().map(|events| events.iter().map(|event| format!("{event:?}")).collect());
        let asked =
            self.asked.requests.lock().map(|asked| asked.iter().map(|request| format!("{request:?}")).collect());
        let (events, asked): (Vec<_>, Vec<_>) = (events.unwrap_or_default(), asked.unwrap_or_default());
        let events = events.into_iter().map(|text| ("an event", text));
        events.chain(asked.into_iter().map(|text| ("a question", text))).collect()
    }

    /// The working directory of its tools.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The home of its user.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// This machine, as its calls find it.
    #[must_use]
    pub fn local(&self) -> Local {
        Local::new(self.work(), self.home(), self.home(), self.environment().collect())
    }

    /// The environment of the tests, with the canary's variable.
    fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let variable = self.directory.variable().map(|(name, value)| (name.into(), value.into()));
        std::env::vars_os().chain(variable)
    }

    /// Its directories, and its environment.
    #[must_use]
    pub fn dirs(&self) -> Dirs {
        Dirs { environment: self.environment().collect(), ..Dirs::below(self.directory.path()) }
    }

    /// Adds a setting, as `--set` does; a host that was made before is made anew.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.sources.set.push(setting.into());
        self.ready = std::sync::OnceLock::new();
        self
    }

    /// Writes the user's settings; a host that was made before is made anew.
    #[must_use]
    pub fn user(mut self, text: &str) -> Self {
        let path = self.directory.path().join("user.toml");
        std::fs::write(&path, text).expect("the user's settings");
        self.sources.user = Some(path);
        self.ready = std::sync::OnceLock::new();
        self
    }

    /// Adds an operator's policy; a host that was made before is made anew.
    #[must_use]
    pub fn policy(mut self, text: &str) -> Self {
        let path = self.directory.path().join(format!("policy{}.toml", self.sources.policies.len()));
        std::fs::write(&path, text).expect("a policy");
        self.sources.policies.push(PolicySource::named(path));
        self.ready = std::sync::OnceLock::new();
        self
    }

    /// Asks before commands and writes as settings do that nobody changed, and answers so.
    #[must_use]
    pub fn answering(mut self, answer: Answer) -> Self {
        self.asked = Arc::new(Asked { answer, requests: Mutex::default() });
        self.set("tools.shell_confirm=true").set("tools.files_confirm=outside")
    }

    /// Puts a guest of the tests into its plugin directory, without any grant.
    #[must_use]
    pub fn plugin(self, name: &str) -> Self {
        self.plugin_as(name, &std::fs::read(guest(name)).expect("a guest that was built"))
    }

    /// Puts these bytes into its plugin directory, under a name.
    #[must_use]
    pub fn plugin_as(mut self, name: &str, bytes: &[u8]) -> Self {
        let directory = self.directory.path().join("plugins");
        std::fs::create_dir_all(&directory).expect("a directory of plugins");
        std::fs::write(directory.join(format!("{name}.wasm")), bytes).expect("a plugin");
        self.plugins = vec![directory];
        self
    }

    /// Has components compiled by another program.
    #[must_use]
    pub fn compiler(mut self, program: &Path) -> Self {
        self.compiler = program.to_owned();
        self
    }

    /// Grants a guest of the tests something, bound to its digest: `shell=true`, `files.read=["/a"]`.
    #[must_use]
    pub fn grant(self, name: &str, line: &str) -> Self {
        let host = self.set(&format!("plugin.{name}.sha256={:?}", digest(name)));
        host.set(&format!("plugin.{name}.{line}"))
    }

    /// Hands events to this embedder; a host that was made before is made anew.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = embedder;
        self.ready = std::sync::OnceLock::new();
        self
    }

    /// Declares a file as a program, with these lines besides.
    ///
    /// # Panics
    ///
    /// Where it is no program.
    #[must_use]
    pub fn declares(self, name: &str, path: &Path, lines: &[&str]) -> Self {
        let sha256 = program_sha256(path).expect("a program");
        let own = [format!("path={path:?}"), format!("sha256={sha256:?}"), format!("about=\"What {name} does.\"")];
        let all = own.iter().map(String::as_str).chain(lines.iter().copied());
        all.fold(self, |host, line| host.set(&format!("program.{name}.{line}")))
    }

    /// Makes the host, the first time.
    ///
    /// # Errors
    ///
    /// When its settings cannot be used.
    pub fn build(&self) -> Result<&(Arc<Host>, CallContext), Failure> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready);
        }
        let settings = Settings::load(&self.sources).expect("settings that can be read");
        let policies: Vec<PathBuf> = self.sources.policies.iter().map(|policy| policy.path.clone()).collect();
        let (host, _notices) = Host::new(&settings, &self.dirs(), &policies, Compiler::Child(self.compiler.clone()))?;
        let tools = host.plugin_source(BUILTINS, self.plugins.clone()).load();
        let backend = self.local();
        let context = CallContext::new("test", Arc::new(tools), Arc::new(backend))
            .events(self.events.clone())
            .approver(self.asked.clone())
            .embedder(self.embedder.clone())
            .cancel(self.cancel.clone());
        Ok(self.ready.get_or_init(|| (Arc::new(host), context)))
    }

    /// The host and its context.
    #[must_use]
    pub fn parts(&self) -> &(Arc<Host>, CallContext) {
        self.build().map_err(|failure| failure.message).expect("settings that can be used")
    }

    /// Runs jobs from now on, in this process.
    ///
    /// # Panics
    ///
    /// Where settings switch them off.
    pub async fn run_jobs(&self) -> JobsRunning {
        let (host, context) = self.parts();
        let tools = context.tools.clone();
        let running = host.run_jobs(context.clone(), Box::new(move || tools.clone())).await;
        running.map_err(|failure| failure.message).expect("a place that is known").expect("jobs that are on")
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Envelope {
        self.send(tool, Arguments::Json(arguments)).await
    }

    /// Calls a tool in a session on a toolset, for an agent.
    ///
    /// # Errors
    ///
    /// The call's failure.
    pub async fn call_as(&self, toolset: &str, agent: &str, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let (host, context) = self.parts();
        let given = Map::from_iter([("agent".to_owned(), agent.into())]);
        let session = Session::on(host.toolset(toolset)?, given)?;
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        let envelope = host.call(request, &context.clone().session(Arc::new(session))).await;
        canary::check("an envelope", envelope.to_json().to_string());
        envelope.outcome.map(|output| output.result)
    }

    /// Calls a tool with arguments as they came.
    pub async fn send(&self, tool: &str, arguments: Arguments) -> Envelope {
        let (host, context) = self.parts();
        let envelope = host.call(Request { tool: tool.into(), arguments }, context).await;
        canary::check("an envelope", envelope.to_json().to_string());
        envelope
    }

    /// Calls a tool and returns its result.
    pub async fn result(&self, tool: &str, arguments: Value) -> Value {
        let envelope = self.call(tool, arguments).await;
        envelope.outcome.map(|output| output.result).map_err(|failure| failure.to_json().to_string()).expect("a result")
    }

    /// Calls a tool and returns its failure.
    pub async fn failure(&self, tool: &str, arguments: Value) -> Failure {
        self.call(tool, arguments).await.outcome.map(|output| output.result.to_string()).expect_err("a failure")
    }

    /// Runs a command with a harmless declaration and returns its result.
    pub async fn shell(&self, command: &str) -> Value {
        self.result("run_shell", harmless(command)).await
    }

    /// Runs a command with a harmless declaration and returns its failure.
    pub async fn shell_failure(&self, command: &str) -> Failure {
        self.failure("run_shell", harmless(command)).await
    }

    /// What the approver was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.requests.lock().expect("no test panics while it holds the requests").clone()
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.0.lock().expect("no test panics while it holds the events").clone()
    }

    /// The lines of the audit trail so far that are about calls.
    #[must_use]
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dirs().audit()).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("an audit line"));
        lines.filter(|line: &Value| line.get("call").is_some()).collect()
    }
}
