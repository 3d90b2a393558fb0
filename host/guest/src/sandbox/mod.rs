//! The sandbox: components become code, and every call gets a fresh store with all limits on it.
//!
//! This is the only place that makes a store. What a guest may do is in the grants it is given; what it used is metered by `engine`.

mod state;
pub mod trial;

pub use engine::compile::{self, Compiler};
pub use state::{Collected, State, Streams};

use crate::capability::bindings::exports::toolcrib::plugin::tools;
use crate::capability::bindings::toolcrib::plugin::types;
use crate::capability::bindings::{Plugin, PluginPre};
use crate::capability::wasi::{self, Reasons};
use crate::reach::Reach;
use base::envelope::{Failure, Kind};
use config::Limits;
use engine::CallSize;
use engine::cache::{CodeCache, Entry};
use engine::compile::CompileError;
use engine::cpu::CpuClock;
use engine::meter::{Met, Meter, to_usize};
use engine::room::{Owner, Room};
use engine::ticker::Ticker;
use futures_util::future::BoxFuture;
use policy::Grants;
use policy::scope::Scope;
use serde_json::json;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{self, Component, Func, HasSelf, InstancePre, Linker, Val};
use wasmtime::{Engine, PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

/// The entry of the cache that is of no component alone; others begin with a digest.
const COMPONENTS: &str = "components";

/// Compiles components and runs them.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<State>,
    ticker: Ticker,
    cache: CodeCache,
    compiler: Compiler,
    /// As many children as there are processors: each may take `compile_mib` of memory.
    compiling: Semaphore,
    /// As many as the engine has room for beside the calls.
    asking: Semaphore,
    room: Arc<Room>,
    limits: Limits,
}

/// What is known of a component before it is compiled.
pub struct Source {
    pub owner: Owner,
    /// Core instances that it makes, where its bytes show that.
    pub core_instances: Option<u64>,
}

/// The code of a component, ready to be instantiated any number of times, by what it exports.
pub struct Guest<E = PluginPre<State>> {
    component: Component,
    entrance: E,
    owner: Owner,
    /// Places of the pool that an instance takes.
    places: u64,
}

/// A component whose functions are called by their types.
pub type TypedGuest = Guest<InstancePre<State>>;

/// One guest at work, for one call. Never used again.
pub struct Instance<X = Plugin> {
    store: Store<State>,
    exports: X,
}

/// How a component is entered: what has to be known of its exports before it runs.
pub trait Entrance: Sized {
    /// What an instance offers.
    type Exports: Send;

    /// Finds the way into a component whose imports are linked.
    fn of(linked: InstancePre<State>) -> wasmtime::Result<Self>;

    /// Makes an instance.
    fn enter(&self, store: &mut Store<State>) -> impl Future<Output = wasmtime::Result<Self::Exports>> + Send;
}

/// A component of our own world.
impl Entrance for PluginPre<State> {
    type Exports = Plugin;

    fn of(linked: InstancePre<State>) -> wasmtime::Result<Self> {
        Self::new(linked)
    }

    async fn enter(&self, store: &mut Store<State>) -> wasmtime::Result<Plugin> {
        self.instantiate_async(store).await
    }
}

/// Any other: its functions are found by their names.
impl Entrance for InstancePre<State> {
    type Exports = component::Instance;

    fn of(linked: Self) -> wasmtime::Result<Self> {
        Ok(linked)
    }

    async fn enter(&self, store: &mut Store<State>) -> wasmtime::Result<component::Instance> {
        self.instantiate_async(store).await
    }
}

impl Sandbox {
    /// Starts the engine. `cache` keeps compiled code, `compiler` makes that of other people's components.
    pub fn new(limits: &Limits, cache: CodeCache, compiler: Compiler) -> wasmtime::Result<Self> {
        let engine = engine::engine(limits)?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker)?;
        Plugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        let ticker = Ticker::start(&engine)?;
        let compiling = Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from));
        let asking = Semaphore::new(to_usize(engine::DEFINITIONS_AT_A_TIME.into()));
        let (room, limits) = (Room::new(limits), limits.clone());
        Ok(Self { engine, linker, ticker, cache, compiler, compiling, asking, room, limits })
    }

    /// Returns what was kept of what a component said, without its code.
    pub fn said(&self, source: &Source) -> Option<Vec<u8>> {
        self.cache.said(&self.cache_name(source))
    }

    /// Returns the cached code of a component.
    pub fn cached<E: Entrance>(&self, source: &Source) -> Option<Guest<E>> {
        let code = self.cache.code(&self.cache_name(source))?;
        // These very bytes were authenticated under this user's key: this program wrote them.
        self.believe(code.as_ref(), source).ok()
    }

    /// Makes native code of bytes that our own compiler process is known to have produced.
    #[expect(unsafe_code, reason = "compiled code can only be believed, not checked")]
    fn believe<E: Entrance>(&self, code: &[u8], source: &Source) -> wasmtime::Result<Guest<E>> {
        // SAFETY: the callers got the bytes from the authenticated cache or straight from our own compiler.
        let component = compile::unpanicked(|| unsafe { Component::deserialize(&self.engine, code) })?;
        self.link(component, source)
    }

    /// Compiles a component. An import that the host does not know is an error.
    pub async fn compile<E: Entrance>(
        self: &Arc<Self>,
        source: &Source,
        bytes: Cow<'static, [u8]>,
    ) -> Result<Guest<E>, CompileError> {
        let wrong = |error: wasmtime::Error| CompileError::Component(format!("{error:#}"));
        if let Compiler::Child(program) = &self.compiler
            && !source.owner.is_builtin
        {
            let _turn = self.compiling.acquire().await.expect("it is never closed");
            let code = compile::in_child(program, &bytes, &self.limits).await?;
            return self.believe(&code, source).map_err(wrong);
        }
        let sandbox = self.clone();
        let compile = move || compile::unpanicked(|| Component::from_binary(&sandbox.engine, &bytes));
        let compiled = tokio::task::spawn_blocking(compile).await;
        let compiled = compiled.map_err(|error| CompileError::Passing(error.to_string()))?;
        compiled.and_then(|component| self.link(component, source)).map_err(wrong)
    }

    fn link<E: Entrance>(&self, component: Component, source: &Source) -> wasmtime::Result<Guest<E>> {
        seal_images(&component);
        let entrance = compile::unpanicked(|| E::of(self.linker.instantiate_pre(&component)?))?;
        let known = component.resources_required().zip(source.core_instances);
        let size = known.map_or_else(
            || CallSize::largest(&self.limits),
            |(resources, core_instances)| CallSize {
                core_instances,
                memories: resources.num_memories.into(),
                tables: resources.num_tables.into(),
            },
        );
        Ok(Guest { component, entrance, owner: source.owner.clone(), places: size.places() })
    }

    /// Keeps compiled code with what the plugin said.
    pub fn keep<E>(&self, source: &Source, code: &Guest<E>, said: Vec<u8>) {
        if let Ok(code) = code.component.serialize() {
            self.cache.write(&self.cache_name(source), &Entry { said, code });
        }
    }

    /// Returns what was remembered of components, whatever it is.
    pub fn remembered(&self) -> Option<Vec<u8>> {
        self.cache.said(COMPONENTS)
    }

    /// Remembers something of components until the next start.
    pub fn remember(&self, said: Vec<u8>) {
        self.cache.write(COMPONENTS, &Entry { said, code: Vec::new() });
    }

    /// Guest is good for one component under one engine configuration.
    fn cache_name(&self, source: &Source) -> String {
        let mut hasher = DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        format!("{}-{:016x}", source.owner.sha256, hasher.finish())
    }

    /// Makes a fresh instance with every limit on it.
    pub async fn instantiate<E: Entrance>(
        &self,
        code: &Guest<E>,
        grants: Arc<Grants>,
        scope: Arc<Reach>,
    ) -> Result<Instance<E::Exports>, Failure> {
        self.instantiate_by(code, grants, scope, CpuClock::default(), None).await
    }

    /// The same of a component that is a program, with what that has instead of arguments and a result.
    pub fn instantiate_program<'a>(
        &'a self,
        code: &'a TypedGuest,
        grants: Arc<Grants>,
        scope: Arc<Reach>,
        streams: Streams,
    ) -> BoxFuture<'a, Result<Instance<component::Instance>, Failure>> {
        Box::pin(async move { self.instantiate_by(code, grants, scope, CpuClock::default(), Some(streams)).await })
    }

    /// The same, whose CPU time this clock counts.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that makes a store")]
    async fn instantiate_by<E: Entrance>(
        &self,
        code: &Guest<E>,
        grants: Arc<Grants>,
        scope: Arc<Reach>,
        cpu: CpuClock,
        program: Option<Streams>,
    ) -> Result<Instance<E::Exports>, Failure> {
        let Some(room) = self.room.take(&code.owner, code.places) else {
            let most = self.limits.concurrent_calls;
            let message = "too many calls of this plugin are running: it has used its share of the sandbox";
            let hint = scope.remedies.raise("limits.concurrent_calls", most, "try again when some of them have ended");
            return Err(Failure::new(Kind::Busy, message).hint(hint));
        };
        let handles = to_usize(self.limits.handles);
        let cancel = scope.cancel.clone();
        let meter = Meter::new(&self.limits, room, cpu.clone(), self.ticker.running());
        let state = State::new(meter, handles, grants, scope, program);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(to_usize(self.limits.host_call_kib << 10));
        store.set_max_component_handles(handles);
        store.call_hook(|mut store, hook| store.data_mut().meter.cross(hook));
        store.set_epoch_deadline(1);
        // A tick at a time: gives way to other calls, and counts only ticks that met the guest running.
        store.epoch_deadline_callback(move |mut store| {
            let meter = &mut store.data_mut().meter;
            if cancel.is_cancelled() && meter.is_past_winding_down() {
                return Ok(UpdateDeadline::Interrupt);
            }
            meter.check_cpu()?;
            Ok(UpdateDeadline::Yield(1))
        });
        let tried = match self.tried(code, &mut store).await {
            Ok(tried) => tried,
            Err(error) if store.data().meter.met().is_some() => return Err(explain(&error, &store)),
            Err(error) => return Err(Failure::failed(format!("it cannot be played or recorded: {error:#}"))),
        };
        let entrance = tried.as_ref().unwrap_or(&code.entrance);
        match cpu.run(entrance.enter(&mut store)).await {
            Ok(exports) => Ok(Instance { store, exports }),
            Err(error) => Err(explain(&error, &store)),
        }
    }

    /// The way into a component whose capabilities are played or recorded in this call.
    async fn tried<E: Entrance>(&self, code: &Guest<E>, store: &mut Store<State>) -> wasmtime::Result<Option<E>> {
        let trial = store.data().scope.trial.clone();
        let Some(linker) = trial.linker(&code.component, &self.linker, store).await? else { return Ok(None) };
        compile::unpanicked(|| E::of(linker.instantiate_pre(&code.component)?)).map(Some)
    }

    /// Asks a plugin what it offers.
    pub fn definitions<'a>(
        &'a self,
        code: &'a Guest,
        scope: Reach,
    ) -> BoxFuture<'a, Result<Vec<tools::Definition>, Failure>> {
        Box::pin(async move {
            let _turn = self.asking.acquire().await.expect("it is never closed");
            // Without grants there is nothing to wait for: twice the CPU time leaves room for a busy machine.
            let patience = Duration::from_millis(self.limits.guest_cpu_ms.saturating_mul(2));
            let cpu = CpuClock::default();
            let asked = async {
                let mut instance =
                    self.instantiate_by(code, Arc::new(Grants::none()), Arc::new(scope), cpu.clone(), None).await?;
                let asked = instance.exports.toolcrib_plugin_tools().call_definitions(&mut instance.store);
                let definitions = cpu.run(asked).await;
                definitions.map_err(|error| explain(&error, &instance.store))
            };
            let mut asked = pin!(asked);
            let mut seen = Duration::ZERO;
            loop {
                if let Ok(said) = tokio::time::timeout(patience, &mut asked).await {
                    return said;
                }
                // One that works, on a very busy machine, comes to the end of its CPU time; one that sleeps never does.
                let spent = cpu.spent_by_then();
                if spent.saturating_sub(seen) < patience / 20 {
                    let message = format!("its definitions were not there after {} ms", patience.as_millis());
                    return Err(Failure::new(Kind::TimedOut, message));
                }
                seen = spent;
            }
        })
    }
}

/// How often, and with which pause, the images of a component's memories are tried.
const IMAGE_ATTEMPTS: usize = 20;
const IMAGE_PAUSE: Duration = Duration::from_millis(1);

/// Makes the images that instances map their memories from. They are sealed files without a name, and the kernel refuses a seal (`EBUSY`) for the
/// moment in which something else, such as its own page scanner, holds a page of the file: seen with the 20 MB of a Python component. A lasting
/// failure is reported by the instance that needs the image.
fn seal_images(component: &Component) {
    for _ in 0..IMAGE_ATTEMPTS {
        if component.initialize_copy_on_write_image().is_ok() {
            return;
        }
        std::thread::sleep(IMAGE_PAUSE);
    }
}

impl Instance {
    /// Runs one tool, once. An error is why the guest was stopped; what it answers itself is its own affair, good or bad.
    pub fn call<'a>(
        self,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Result<Result<tools::Output, types::Failure>, Failure>> {
        Box::pin(async move {
            let Self { mut store, exports } = self;
            let cpu = store.data().meter.cpu();
            let answer = cpu.run(exports.toolcrib_plugin_tools().call_call(&mut store, name, arguments)).await;
            let answer = answer.map_err(|error| explain(&error, &store))?;
            store.data_mut().close_files().await?;
            Ok(answer)
        })
    }
}

impl Instance<component::Instance> {
    /// Where it is kept why something failed for which WASI has no more than a word.
    pub fn reasons(&self) -> Reasons {
        self.store.data().reasons.clone()
    }

    /// Calls a function that the component exports, by itself or in an interface, once. `arguments` makes its values; an error of that is the
    /// inner one. Returns its type with what it returned, if it returns something.
    pub async fn call_typed<R>(
        mut self,
        interface: Option<&str>,
        name: &str,
        arguments: impl FnOnce(&ComponentFunc) -> Result<Vec<Val>, R>,
    ) -> Result<Result<(ComponentFunc, Option<Val>), R>, Failure> {
        let Some(function) = self.function(interface, name) else {
            return Err(Failure::failed(format!("the component exports no function `{name}`")));
        };
        let typed = function.ty(&self.store);
        let values = match arguments(&typed) {
            Ok(values) => values,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut results = vec![Val::Bool(false); typed.results().len()];
        let cpu = self.store.data().meter.cpu();
        match cpu.run(function.call_async(&mut self.store, &values, &mut results)).await {
            Ok(()) => {
                self.store.data_mut().close_files().await?;
                Ok(Ok((typed, results.pop())))
            }
            Err(error) => Err(explain(&error, &self.store)),
        }
    }

    /// Runs a program by the interface that it exports for that, once. Returns its exit status.
    pub fn run(self, interface: &str) -> BoxFuture<'_, Result<i32, Failure>> {
        Box::pin(async move {
            let mut instance = self;
            let Some(function) = instance.function(Some(interface), "run") else {
                return Err(Failure::failed(format!("the component exports no `{interface}`")));
            };
            let mut results = [Val::Bool(false)];
            let cpu = instance.store.data().meter.cpu();
            let status = match cpu.run(function.call_async(&mut instance.store, &[], &mut results)).await {
                Ok(()) => i32::from(matches!(results, [Val::Result(Err(_))])),
                Err(error) => match error.downcast_ref::<I32Exit>() {
                    Some(I32Exit(status)) => *status,
                    None => return Err(explain(&error, &instance.store)),
                },
            };
            instance.store.data_mut().close_files().await?;
            Ok(status)
        })
    }

    fn function(&mut self, interface: Option<&str>, name: &str) -> Option<Func> {
        let (store, exports) = (&mut self.store, self.exports);
        let within = match interface {
            Some(interface) => Some(exports.get_export_index(&mut *store, None, interface)?),
            None => None,
        };
        let index = exports.get_export_index(&mut *store, within.as_ref(), name)?;
        exports.get_func(&mut *store, index)
    }
}

/// A limit's name under `[limits]`, and what it is with its value and unit.
type NamedLimit = (&'static str, fn(&Limits) -> u64, fn(u64) -> String);

/// Limits that wasmtime enforces itself; its errors have no public type, only these words.
const WASMTIME_LIMITS: [(&str, NamedLimit); 6] = [
    (
        "fuel allocated for hostcalls",
        (
            "host_call_kib",
            |limits| limits.host_call_kib,
            |most| format!("bytes from the guest in one host call {most} KiB"),
        ),
    ),
    ("resource table has no free keys", HANDLES),
    ("handle limit exceeded", HANDLES),
    ("instance count too high", ("instances", |limits| limits.instances, |most| format!("core instances {most}"))),
    ("memory count too high", ("memories", |limits| limits.memories, |most| format!("memories {most}"))),
    ("table count too high", ("tables", |limits| limits.tables, |most| format!("tables {most}"))),
];

const HANDLES: NamedLimit = ("handles", |limits| limits.handles, |most| format!("component handles {most}"));

/// Says why a guest was stopped: the limit it met, the cancelled call, or its own fault.
fn explain(error: &wasmtime::Error, store: &Store<State>) -> Failure {
    let state = store.data();
    if state.scope.cancel.is_cancelled() {
        return Failure::cancelled();
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Failure::new(Kind::Busy, "all instances are in use").hint("try again when other calls have ended");
    }
    let text = format!("{error:#}");
    let Scope { limits, remedies, .. } = &**state.scope;
    let by_wasmtime =
        WASMTIME_LIMITS.iter().find(|(words, _)| text.contains(words)).map(|&(_, (key, value, named))| {
            let most = value(limits);
            Met::Limit { key, most, text: named(most) }
        });
    let failure = match state.meter.met().cloned().or(by_wasmtime) {
        Some(Met::Limit { key, most, text }) => Failure::limit(format!("limit: {text}")).hint(remedies.raise(
            &format!("limits.{key}"),
            most,
            "ask for less",
        )),
        Some(Met::NoRoom) => {
            let most = limits.total_memory_mib;
            let message = format!("this plugin has used its share of the memory (limit for all plugins: {most} MiB)");
            let hint = remedies.raise("limits.total_memory_mib", most, "try again when other calls have ended");
            Failure::new(Kind::Busy, message).hint(hint)
        }
        None if error.downcast_ref() == Some(&Trap::StackOverflow) => {
            Failure::failed(format!("the plugin stopped: stack overflow (limit: {} KiB)", engine::GUEST_STACK >> 10))
        }
        None => Failure::failed(format!("the plugin stopped: {}", error.root_cause())),
    };
    match state.printed() {
        Some(printed) => failure.data(json!({ "printed": printed })),
        None => failure,
    }
}
