//! A component: what its bytes show without being compiled (tools by name, imports), and how one of our own world is loaded.

use super::foreign::Functions;
use super::{Code, LoadError, Provider, Ready, Refused, Said, digest, foreign, read_definitions};
use crate::tools::files::Files;
use crate::tools::seen::Seen;
use crate::tools::source::Builtin;
use base::capability::Capability;
use base::disk::{Stamp, Unreadable};
use base::envelope::Kind;
use base::text::names::folded;
use base::text::sanitize;
use config::Limits;
use contract::definition::{CHECKS, Definition};
use contract::foreign::{Bounds, Exports, Signature, Unread, check_depth, check_type_scopes, exports};
use contract::manifest::{MOST_TOOLS, Manifest, Origin, PluginId};
use contract::words::Words;
use engine::compile::CompileError;
use engine::room::Owner;
use futures_util::future::BoxFuture;
use guest::capability::{interface, wasi};
use guest::reach::Reach;
use guest::sandbox::{Entrance, Guest, Sandbox, Source};
use policy::event::{Compiling, EventSink};
use policy::host_reads::HostReads;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmparser::{ComponentTypeRef, Encoding, Instance, Parser, Payload, TypeBounds};

/// The custom section in which the SDK writes the tools' names, one a line.
pub(in crate::tools) const TOOLS_SECTION: &str = "toolcrib:tools";
/// The first bytes of every WebAssembly file.
const WASM_MAGIC: &[u8] = b"\0asm";
/// Packages of others of which at least something is linked. The linker checks each function; this gives the clear word before compiling.
const KNOWN_PACKAGES: [&str; 8] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:config/",
    "wasi:filesystem/",
    "wasi:http/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];
/// The interface that a component of our world exports.
const TOOLS: &str = "tools";
/// Interfaces of ours that are not capabilities.
const NO_CAPABILITY: [&str; 2] = ["types", TOOLS];

/// One component.
#[derive(Clone)]
pub struct Component {
    manifest: Arc<Manifest>,
    bytes: Bytes,
    /// Core instances that it makes, if its bytes show that: where components within it do the same, their number is not known.
    core_instances: Option<u64>,
    /// The functions that are its tools, if it is of another world than ours.
    typed: Option<Arc<Functions>>,
    /// What it says of its tools, where that was known when this program was built.
    written: &'static str,
}

/// Where the bytes of a component are.
#[derive(Clone)]
enum Bytes {
    Here(Cow<'static, [u8]>),
    /// In its file, which is read again when it is compiled: of many plugins few are called.
    There(PathBuf),
}

/// What the bytes of a component show.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::tools) struct Shown {
    pub(in crate::tools) tools: Vec<String>,
    imports: Vec<String>,
    /// Functions of our interfaces, and of those of WASI that need a grant, that its code calls, as `interface` and `function`.
    functions: Vec<(String, String)>,
    core_instances: Option<u64>,
    /// It exports our own interface of tools.
    pub(in crate::tools) is_ours: bool,
    /// Of a component of any other world: the functions that are tools, and those that are not, each with the reason.
    typed: Vec<Signature>,
    left_out: Vec<(String, String)>,
    /// The full name of the `wasi:cli/run` that it exports: it is a program, and a tool of its own name.
    program: Option<String>,
}

impl Component {
    /// Reads a component's file without taking it into a registry.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, Refused> {
        Self::read(path, limits, None, Files::Given)
    }

    /// The same for a registry, which needs its bytes only when it is called for the first time. With `trusting`, a file that has not changed
    /// since it was read is what it was then, and is read again for that call; else what was judged is what is compiled.
    pub(in crate::tools) fn found(
        path: &Path,
        limits: &Limits,
        seen: &Seen,
        trusting: bool,
        reads: &HostReads,
    ) -> Result<Self, Refused> {
        let files = Files::Found(reads);
        if !trusting {
            return Self::read(path, limits, Some(seen), files);
        }
        if let Some(known) = Self::known(path, seen, files) {
            return known.map_err(|reason| Refused { origin: path.display().to_string(), reason });
        }
        let component = Self::read(path, limits, Some(seen), files)?;
        Ok(Self { bytes: Bytes::There(path.into()), ..component })
    }

    /// Takes a component of this program, whose digest was made when it was built.
    pub(in crate::tools) fn builtin(builtin: Builtin, seen: &Seen) -> Result<Self, Refused> {
        let Builtin { name, sha256, bytes, definitions, family, search } = builtin;
        let id = PluginId { name: name.into(), sha256: sha256.into(), origin: Origin::BuiltIn };
        let shown = Shown::seen(bytes, sha256, Some(seen));
        let component =
            shown.and_then(|shown| Self::new(id, Bytes::Here(bytes.into()), bytes.len() as u64, shown, None));
        component
            .map(|component| {
                let mut manifest = Arc::unwrap_or_clone(component.manifest);
                (manifest.family, manifest.search) = (family, search);
                Self { manifest: Arc::new(manifest), written: definitions, ..component }
            })
            .map_err(|reason| Refused { origin: name.into(), reason })
    }

    /// What it was when it was read, if that is known and it has not changed.
    fn known(path: &Path, seen: &Seen, files: Files<'_>) -> Option<Result<Self, String>> {
        let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        let sha256 = seen.digest(path, &Stamp::of(&found))?;
        let id = id(path, sha256.to_owned());
        let new = |shown| {
            Self::new(
                id,
                Bytes::There(path.into()),
                found.len(),
                shown,
                Words::beside(path, |words| files.words(words))?,
            )
        };
        Some(seen.shown(sha256)?.and_then(new))
    }

    fn read(path: &Path, limits: &Limits, seen: Option<&Seen>, files: Files<'_>) -> Result<Self, Refused> {
        let refuse = |reason| Refused { origin: path.display().to_string(), reason };
        let (bytes, found) = read(path, limits, files).map_err(refuse)?;
        let sha256 = digest(&bytes);
        let shown = Shown::seen(&bytes, &sha256, seen);
        if let Some(seen) = seen {
            seen.remember_file(path, Stamp::of(&found), &sha256);
        }
        let shown = shown.map_err(refuse)?;
        Self::of(path, sha256, bytes, shown, files).map_err(refuse)
    }

    /// What a file of this path would be with these bytes.
    pub(in crate::tools) fn at(path: &Path, bytes: Vec<u8>) -> Result<Self, String> {
        let shown = Shown::seen(&bytes, "", None)?;
        Self::of(path, digest(&bytes), bytes, shown, Files::Given)
    }

    fn of(path: &Path, sha256: String, bytes: Vec<u8>, shown: Shown, files: Files<'_>) -> Result<Self, String> {
        let size = bytes.len() as u64;
        Self::new(
            id(path, sha256),
            Bytes::Here(Cow::Owned(bytes)),
            size,
            shown,
            Words::beside(path, |words| files.words(words))?,
        )
    }

    fn new(id: PluginId, bytes: Bytes, size: u64, shown: Shown, words: Option<Words>) -> Result<Self, String> {
        let Shown { mut tools, imports, functions, core_instances, mut typed, left_out, program, is_ours } = shown;
        if let Some(interface) = program.filter(|_| !is_ours && tools.iter().all(|tool| folded(tool) != id.folded())) {
            tools.push(id.name.clone());
            typed.push(Signature { tool: id.name.clone(), interface: Some(interface), name: "run".into() });
        }
        let (capabilities, functions) = asked(&imports, functions, is_ours, core_instances.is_none());
        let typed = match (typed.is_empty(), words) {
            (true, Some(_)) => return Err("its tools say themselves what they are for: remove its `.tool.toml`".into()),
            (true, None) => None,
            (false, words) => Some(Arc::new(Functions::new(typed, words)?)),
        };
        // The file system of a standard library comes with a program that never opens a file.
        let is_unsure = |capability: &Capability| !is_ours && *capability == Capability::Files;
        let unsure = capabilities.iter().copied().filter(is_unsure).collect();
        let has_words = typed.as_ref().is_some_and(|functions| functions.words().is_some());
        if let Some(functions) = &typed {
            tools = functions.names().to_vec();
        }
        let mut manifest = Manifest::new(id, tools, capabilities, functions)?;
        (manifest.imports, manifest.size, manifest.left_out) = (imports, size, left_out);
        (manifest.unsure, manifest.has_words) = (unsure, has_words);
        let manifest = Arc::new(manifest);
        Ok(Self { manifest, bytes, core_instances, typed, written: "" })
    }

    /// Who it is, its tools, and what it asks for.
    #[must_use]
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// It was not written for Toolcrib: its tools are functions by their types.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.typed.is_some()
    }

    /// The file of words beside it, as it was read.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        self.typed.as_ref()?.words()
    }

    /// Its bytes, as it was opened.
    ///
    /// # Errors
    ///
    /// Where they are in its file alone, and that has others by now.
    pub fn bytes(&self, limits: &Limits) -> Result<Cow<'static, [u8]>, String> {
        let file = match &self.bytes {
            Bytes::Here(bytes) => return Ok(bytes.clone()),
            Bytes::There(file) => file,
        };
        let (bytes, _) = read(file, limits, Files::Given)?;
        if digest(&bytes) != self.manifest.sha256() {
            return Err("its file has changed since plugins were last looked for".into());
        }
        Ok(Cow::Owned(bytes))
    }

    pub(super) fn source(&self) -> Source {
        let PluginId { sha256, .. } = &self.manifest.id;
        let owner = Owner { sha256: sha256.as_str().into(), is_builtin: self.manifest.id.is_builtin() };
        Source { owner, core_instances: self.core_instances }
    }
}

impl Provider for Component {
    fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Compiles it and asks for its definitions, unless they are cached.
    fn load<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        scope: Reach,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Ready, LoadError>> {
        Box::pin(async move {
            if let Some(functions) = &self.typed {
                return foreign::load(self, functions, sandbox, scope, events).await;
            }
            let (limits, source) = (scope.limits.clone(), self.source());
            let rules = rules(&limits);
            if let Some((said, checked)) = Said::written(self.written) {
                return Ok(match checked == Checked::of(&limits) {
                    true => Ready::checked_before(&self.manifest, said),
                    false => Ready::new(&self.manifest, None, &said, &limits)?,
                });
            }
            if let Some(said) = sandbox.said(&source).and_then(|kept| Said::kept(&kept, &rules)) {
                return Ok(Ready::checked_before(&self.manifest, said));
            }
            let guest: Guest = self.compiled(sandbox, &limits, events).await?;
            let said = sandbox.definitions(&guest, scope).await.map_err(|failure| match failure.kind {
                Kind::Busy => LoadError::Busy(failure),
                Kind::TimedOut => LoadError::Passing(failure.message),
                Kind::Internal
                | Kind::Usage
                | Kind::UnknownTool
                | Kind::InvalidArguments
                | Kind::Denied
                | Kind::Limit
                | Kind::Cancelled
                | Kind::Unavailable
                | Kind::OutcomeUnknown
                | Kind::ExecutionFailed => LoadError::Broken(failure.message),
            })?;
            let definitions = read_definitions(said)?;
            let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
            let said = Said { definitions, json };
            let ready = Ready::new(&self.manifest, Some(Code::Component(guest)), &said, &limits)?;
            // Only now: what cannot be used is not worth its place on disk.
            if let Some(Code::Component(guest)) = ready.code().get() {
                sandbox.keep(&source, guest, said.to_keep(&rules));
            }
            Ok(ready)
        })
    }

    fn code<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        limits: &'a Limits,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Code, LoadError>> {
        Box::pin(async move {
            if let Some(functions) = &self.typed {
                return foreign::code(self, functions, sandbox, limits, events).await;
            }
            self.guest(sandbox, limits, events).await.map(Code::Component)
        })
    }
}

impl Component {
    /// Its code, from the cache or compiled.
    pub(super) async fn guest<E: Entrance>(
        &self,
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        events: &dyn EventSink,
    ) -> Result<Guest<E>, LoadError> {
        let source = self.source();
        // Whose file has another component by now is not that plugin any more.
        if let Bytes::There(_) = &self.bytes {
            self.bytes(limits).map_err(LoadError::Passing)?;
        }
        if let Some(guest) = sandbox.cached(&source) {
            return Ok(guest);
        }
        let guest = self.compiled(sandbox, limits, events).await?;
        // What it said is as it was, or it would have been asked again.
        let written = || Said::written(self.written).map(|(said, _)| said.to_keep(&rules(limits)));
        if let Some(said) = sandbox.said(&source).or_else(written) {
            sandbox.keep(&source, &guest, said);
        }
        Ok(guest)
    }

    pub(super) async fn compiled<E: Entrance>(
        &self,
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        events: &dyn EventSink,
    ) -> Result<Guest<E>, LoadError> {
        let _shown = CompilingShown::new(events);
        let bytes = self.bytes(limits).map_err(LoadError::Passing)?;
        sandbox.compile(&self.source(), bytes).await.map_err(|error| match error {
            CompileError::Component(reason) => LoadError::Broken(reason),
            CompileError::Passing(reason) => LoadError::Passing(reason),
        })
    }
}

/// What a component asks for: the capabilities of what it imports, and the functions of them that its code calls.
///
/// One of our own world has our interfaces; what its language brings of WASI it need not use. What code within components within it calls may go
/// by other names: where there are such, all of what it imports counts.
fn asked(
    imports: &[String],
    functions: Vec<(String, String)>,
    is_ours: bool,
    is_composed: bool,
) -> (Vec<Capability>, Vec<(Capability, String)>) {
    let of_wasi = |import: &str| if is_ours { None } else { wasi::capability(import) };
    let mut capabilities = Vec::new();
    for import in imports {
        let capability = interface(import).map_or_else(|| of_wasi(import), Capability::of_interface);
        capabilities.extend(capability.filter(|capability| !capabilities.contains(capability)));
    }
    let called = |(interface, function): (String, String)| match Capability::of_interface(&interface) {
        Some(capability) => Some((capability, function)),
        None if is_ours => None,
        None => wasi::granted_by(&interface, &function).map(|(capability, ours)| (capability, ours.to_owned())),
    };
    let mut functions: Vec<_> = functions.into_iter().filter_map(called).collect();
    functions.sort_unstable();
    functions.dedup();
    let calls_files = functions.iter().any(|(capability, _)| *capability == Capability::Files);
    if !is_ours && !calls_files && capabilities.contains(&Capability::Files) {
        match is_composed {
            true => functions.extend(["read", "write"].map(|function| (Capability::Files, function.to_owned()))),
            false => capabilities.retain(|capability| *capability != Capability::Files),
        }
    }
    (capabilities, functions)
}

/// By which rules definitions are checked. What was kept under others is checked anew.
pub(super) fn rules(limits: &Limits) -> String {
    let Limits { schema_kib, schema_depth, description_bytes, .. } = limits;
    format!("{CHECKS} {schema_kib} {schema_depth} {description_bytes}")
}

/// The file of a built-in plugin's definitions.
#[derive(Deserialize)]
struct Written {
    checked: Checked,
    tools: Vec<Definition>,
}

/// The limits under which they were checked, as under `[limits]`.
#[derive(Deserialize, PartialEq)]
struct Checked {
    schema_kib: u64,
    schema_depth: u64,
    description_bytes: u64,
}

impl Checked {
    fn of(limits: &Limits) -> Self {
        let Limits { schema_kib, schema_depth, description_bytes, .. } = *limits;
        Self { schema_kib, schema_depth, description_bytes }
    }
}

impl Said {
    /// What was written down when this program was built. None where nothing was.
    fn written(text: &str) -> Option<(Self, Checked)> {
        let Written { tools: definitions, checked } = serde_json::from_str(text).ok()?;
        let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
        Some((Self { definitions, json }, checked))
    }

    /// As it is kept: the rules by which it was checked, and a line below them what was said.
    pub(super) fn to_keep(&self, rules: &str) -> Vec<u8> {
        [rules.as_bytes(), b"\n", &self.json].concat()
    }

    pub(super) fn kept(kept: &[u8], rules: &str) -> Option<Self> {
        let json = kept.strip_prefix(rules.as_bytes())?.strip_prefix(b"\n")?.to_vec();
        Some(Self { definitions: serde_json::from_slice(&json).ok()?, json })
    }
}

/// Tells that a plugin is compiled, while it lives.
struct CompilingShown<'e>(&'e dyn EventSink);

impl<'e> CompilingShown<'e> {
    fn new(events: &'e dyn EventSink) -> Self {
        events.compiles(Compiling::Begins);
        Self(events)
    }
}

impl Drop for CompilingShown<'_> {
    fn drop(&mut self) {
        self.0.compiles(Compiling::Ended);
    }
}

fn id(path: &Path, sha256: String) -> PluginId {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    PluginId { name, sha256, origin: Origin::File(path.display().to_string()) }
}

/// Reads a file, no more of it than a component may have. Also returns what it was before.
fn read(path: &Path, limits: &Limits, files: Files<'_>) -> Result<(Vec<u8>, Metadata), String> {
    let most = limits.component_mib << 20;
    let component = files.component(path).map_err(|unread| unread.to_string())?;
    let found = component.found.clone();
    match component.read(most) {
        Ok(bytes) => Ok((bytes, found)),
        Err(Unreadable::Large(_)) => {
            Err(format!("it is larger than {} MiB (limit: `limits.component_mib`)", limits.component_mib))
        }
        Err(unread) => Err(unread.to_string()),
    }
}

impl Shown {
    /// What was found of these bytes before, good or bad, or what is found now: to read the types of a component may take a moment.
    fn seen(bytes: &[u8], sha256: &str, seen: Option<&Seen>) -> Result<Self, String> {
        if let Some(known) = seen.and_then(|seen| seen.shown(sha256)) {
            return known;
        }
        let shown = match Self::by(bytes) {
            Ok(shown) => Ok(shown),
            Err(Unread::Broken(reason)) => Err(reason),
            Err(Unread::Passing(reason)) => return Err(reason),
        };
        if let Some(seen) = seen {
            seen.remember(sha256, &shown);
        }
        shown
    }

    fn by(bytes: &[u8]) -> Result<Self, Unread> {
        let shown = Self::checked(bytes)?;
        match (shown.is_ours, shown.tools.is_empty()) {
            (true, false) => Ok(shown),
            (true, true) => {
                let why =
                    format!("it names no tools (no `{TOOLS_SECTION}` section): run `toolcrib plugin pack` on its file");
                Err(Unread::Broken(why))
            }
            // A core module in it may have the section all the same.
            (false, _) => shown.typed(bytes),
        }
    }

    /// The same with its functions as tools.
    fn typed(self, bytes: &[u8]) -> Result<Self, Unread> {
        let Exports { functions, left_out, program } = exports(bytes, Bounds::default())?;
        let (first, more) = (left_out.first(), left_out.len().saturating_sub(1));
        match (functions.is_empty() && program.is_none(), first) {
            (false, _) => {}
            (true, None) => return Err(Unread::Broken("it exports no function that could be a tool".into())),
            (true, Some((name, reason))) => {
                let why = format!("it exports no function that could be a tool: `{name}`: {reason} ({more} more)");
                return Err(Unread::Broken(why));
            }
        }
        let tools = functions.iter().map(|function| function.tool.clone()).collect();
        let typed = functions.into_iter().map(|function| Signature {
            tool: function.tool,
            interface: function.interface,
            name: function.name,
        });
        Ok(Self { tools, typed: typed.collect(), left_out, program, ..self })
    }

    /// The same of a component that need not name its tools.
    pub(in crate::tools) fn checked(bytes: &[u8]) -> Result<Self, String> {
        let mut shown = Self { core_instances: Some(0), ..Self::default() };
        shown.look_into(bytes)?;
        if let Some(import) = shown.imports.iter().find(|import| !is_known(import)) {
            let import = sanitize::beginning(import, 200);
            return Err(format!("it imports `{import}`, which this host does not know"));
        }
        Ok(shown)
    }

    fn look_into(&mut self, bytes: &[u8]) -> Result<(), String> {
        // The parser would say so with the first bytes as a list of numbers.
        if !bytes.starts_with(WASM_MAGIC) {
            return Err("it is not a component: the file is not WebAssembly".into());
        }
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(|error| format!("it is not a component: {}", error.message()))? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err("it is a core module, not a component: build it for wasm32-wasip2".into());
                }
                Payload::Version { .. } => {
                    depth += 1;
                    check_depth(depth)?;
                }
                Payload::ComponentTypeSection(types) => {
                    check_type_scopes(bytes.get(types.range()).unwrap_or_default())?;
                }
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        let import = import.map_err(|error| error.to_string())?;
                        // A type that is named is not asked for: it is what it says it equals.
                        if !matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_))) {
                            self.imports.push(import.name.name.to_owned());
                        }
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 1 => {
                    for export in exports {
                        let export = export.map_err(|error| error.to_string())?;
                        self.is_ours |= interface(export.name.name) == Some(TOOLS);
                    }
                }
                Payload::InstanceSection(instances) => {
                    for instance in instances {
                        let instance = instance.map_err(|error| error.to_string())?;
                        if matches!(instance, Instance::Instantiate { .. }) {
                            self.core_instances = self.core_instances.filter(|_| depth == 1).map(|count| count + 1);
                        }
                    }
                }
                // Calls from one component to another go through core instances that the compiler adds.
                Payload::ComponentCanonicalSection(_) if depth > 1 => self.core_instances = None,
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import.map_err(|error| error.to_string())?;
                        let ours = interface(import.module);
                        let counts = ours.is_some() || wasi::granted_by(import.module, import.name).is_some();
                        if counts {
                            self.functions.push((ours.unwrap_or(import.module).to_owned(), import.name.to_owned()));
                        }
                    }
                }
                Payload::CustomSection(section) if section.name() == TOOLS_SECTION => {
                    let names = std::str::from_utf8(section.data()).map_err(|error| error.to_string())?;
                    self.tools.extend(names.lines().take(MOST_TOOLS + 1).map(str::to_owned));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_known(import: &str) -> bool {
    // The characters of a name with its version; nothing else is shown to anybody.
    import.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/@.-+".contains(&byte))
        && match interface(import) {
            Some(ours) => NO_CAPABILITY.contains(&ours) || Capability::of_interface(ours).is_some(),
            None => KNOWN_PACKAGES.iter().any(|package| import.starts_with(package)),
        }
}
