//! A component's bytes, and what they show without being compiled: tools by name, imports.

use crate::capability::Capability;
use crate::config::Limits;
use crate::text::names::{folded, is_name};
use crate::text::sanitize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wasmparser::{Encoding, Instance, Parser, Payload};

/// The custom section in which the SDK writes the tools' names, one a line.
const TOOLS_SECTION: &str = "toolcrib:tools";
/// The first bytes of every WebAssembly file.
const WASM_MAGIC: &[u8] = b"\0asm";
/// Tools of one component.
const MOST_TOOLS: usize = 64;
/// Our package of capabilities, up to the interface's name.
const OURS: &str = "toolcrib:plugin/";
/// Packages of others of which at least something is linked. The linker checks each function; this gives the clear word before compiling.
const KNOWN_PACKAGES: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];
/// Interfaces of ours that are not capabilities.
const NO_CAPABILITY: [&str; 2] = ["types", "tools"];

/// One component.
pub(crate) struct Component {
    pub(crate) bytes: Cow<'static, [u8]>,
    /// In hex.
    pub(crate) sha256: String,
    pub(crate) tools: Vec<String>,
    pub(crate) imports: Vec<String>,
    /// Functions of our interfaces that its code calls, as `interface` and `function`.
    functions: Vec<(String, String)>,
    /// Core instances that it makes, if its bytes show that: where components within it do the same, their number is not known.
    pub(crate) core_instances: Option<u64>,
}

impl Component {
    /// Reads a file, no more of it than a component may have.
    pub(crate) fn read(path: &Path, limits: &Limits) -> Result<Self, String> {
        let most = limits.component_mib << 20;
        // Opening a FIFO or a device does something to it, so its type is looked at before; that it may have changed since, after.
        if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
            return Err("it is not a regular file".into());
        }
        // Opening a FIFO must not wait for its other end.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|error| error.to_string())?;
        if !file.metadata().map_err(|error| error.to_string())?.is_file() {
            return Err("it is not a regular file".into());
        }
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > most {
            return Err(format!("it is larger than {} MiB", limits.component_mib));
        }
        let sha256 = hex::encode(Sha256::digest(&bytes));
        Self::parse(bytes.into(), sha256)
    }

    /// Takes a component of this binary, whose digest was made when it was built.
    pub(crate) fn embedded(sha256: &str, bytes: &'static [u8]) -> Result<Self, String> {
        Self::parse(bytes.into(), sha256.into())
    }

    fn parse(bytes: Cow<'static, [u8]>, sha256: String) -> Result<Self, String> {
        let mut component = Self {
            bytes: Cow::Borrowed(&[]),
            sha256,
            tools: Vec::new(),
            imports: Vec::new(),
            functions: Vec::new(),
            core_instances: Some(0),
        };
        component.look_into(&bytes)?;
        component.check_names()?;
        if let Some(import) = component.imports.iter().find(|import| !is_known(import)) {
            let shown: String = sanitize::line(import).chars().take(200).collect();
            return Err(format!("it imports `{shown}`, which this host does not know"));
        }
        component.bytes = bytes;
        Ok(component)
    }

    fn check_names(&self) -> Result<(), String> {
        if self.tools.is_empty() {
            return Err(format!(
                "it names no tools (no `{TOOLS_SECTION}` section): build it with toolcrib-sdk's `export!`"
            ));
        }
        if self.tools.len() > MOST_TOOLS {
            return Err(format!("it names more than {MOST_TOOLS} tools"));
        }
        let mut names = BTreeSet::new();
        for name in &self.tools {
            check_name(name)?;
            if !names.insert(folded(name)) {
                return Err(format!("it names the tool `{name}` twice, or two that read the same"));
            }
        }
        Ok(())
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
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        self.imports.push(import.map_err(|error| error.to_string())?.name.name.to_owned());
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
                        if let Some(interface) = interface(import.module) {
                            self.functions.push((interface.to_owned(), import.name.to_owned()));
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

    /// Capabilities that it imports, in the order of its imports.
    pub(crate) fn capabilities(&self) -> Vec<Capability> {
        self.imports.iter().filter_map(|import| Capability::of_interface(interface(import)?)).collect()
    }

    /// Its code calls this function of a capability.
    pub(crate) fn calls(&self, capability: Capability, function: &str) -> bool {
        self.functions.iter().any(|(interface, name)| interface == capability.name() && name == function)
    }
}

/// Whether a tool can have this name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if is_name(name) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(format!(
        "`{}` is not a valid tool name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`",
        sanitize::line(&shown)
    ))
}

/// The name of an interface of ours: `files` of `toolcrib:plugin/files@0.1.0`.
fn interface(import: &str) -> Option<&str> {
    import.strip_prefix(OURS)?.split('@').next()
}

fn is_known(import: &str) -> bool {
    // The characters of a name with its version; nothing else is shown to anybody.
    import.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/@.-+".contains(&byte))
        && match interface(import) {
            Some(ours) => NO_CAPABILITY.contains(&ours) || Capability::of_interface(ours).is_some(),
            None => KNOWN_PACKAGES.iter().any(|package| import.starts_with(package)),
        }
}
