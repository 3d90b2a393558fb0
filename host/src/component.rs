//! A component's bytes, and what they show without being compiled: tools by name, imports.

use crate::config::Limits;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wasmparser::{Encoding, Parser, Payload};

/// The custom section in which the SDK writes the tools' names, one a line.
const TOOLS_SECTION: &str = "toolcrib:tools";
/// Our package of capabilities, up to the interface's name.
const OURS: &str = "toolcrib:plugin/";
/// Packages of which at least something is linked. The linker checks each function; this gives the clear word before compiling.
const KNOWN_PACKAGES: [&str; 7] =
    [OURS, "wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];
/// Interfaces of ours that are no capability.
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
}

impl Component {
    /// Reads a file, no more of it than a component may have.
    pub(crate) fn read(path: &Path, limits: &Limits) -> Result<Self, String> {
        let most = limits.component_mib << 20;
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
        let mut component =
            Self { bytes: Cow::Borrowed(&[]), sha256, tools: Vec::new(), imports: Vec::new(), functions: Vec::new() };
        component.look_into(&bytes)?;
        if component.tools.is_empty() {
            return Err(format!(
                "it names no tools (no `{TOOLS_SECTION}` section): build it with toolcrib-sdk's `export!`"
            ));
        }
        if let Some(import) = component.imports.iter().find(|import| !is_known(import)) {
            return Err(format!("it imports `{import}`, which this host does not know"));
        }
        component.bytes = bytes;
        Ok(component)
    }

    fn look_into(&mut self, bytes: &[u8]) -> Result<(), String> {
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
                    self.tools.extend(names.lines().map(str::to_owned));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Capabilities that it imports: the names of our interfaces.
    pub(crate) fn capabilities(&self) -> Vec<&str> {
        self.imports
            .iter()
            .filter_map(|import| interface(import))
            .filter(|interface| !NO_CAPABILITY.contains(interface))
            .collect()
    }

    /// Its code calls this function of a capability.
    pub(crate) fn calls(&self, capability: &str, function: &str) -> bool {
        self.functions.iter().any(|(interface, name)| interface == capability && name == function)
    }
}

/// The name of an interface of ours: `files` of `toolcrib:plugin/files@0.1.0`.
fn interface(import: &str) -> Option<&str> {
    import.strip_prefix(OURS)?.split('@').next()
}

fn is_known(import: &str) -> bool {
    KNOWN_PACKAGES.iter().any(|package| import.starts_with(package))
}
