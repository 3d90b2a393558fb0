//! `toolcrib plugin pack`: makes a plugin of what a toolchain built, a component or a core module.

use super::super::print;
use super::super::setup::{Setup, usage};
use super::wit;
use base::dirs::replace;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER_BYTES,
};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, SourceMap};

/// A core module begins so, a component does not: its version is another.
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
/// The world of the contract, where a module does not say its own.
const WORLD: &str = "plugin";
/// How the sections are named in which binding generators write the world of a module.
const WORLD_SECTION: &str = "component-type";
/// The longest file that the parser takes.
const MOST_BYTES: u64 = 1 << 30;
/// What may help where a program cannot be a plugin. Of C one can; that of Go has no runtime before it is started.
const NOT_A_LIBRARY: &str = "it was built as a program, which a host does not start: build a library, in Go with `-buildmode=c-shared`, in C with \
    `-mexec-model=reactor`";
const STACK_BYTES: usize = 64 << 20;

#[derive(clap::Args)]
pub(in super::super) struct Pack {
    /// A component, or a core module that was built for WASI
    file: PathBuf,
    /// Where to write the plugin; default: over the file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The directory of the world `plugin` that a core module was written to; default: the contract
    #[arg(long, value_name = "DIR")]
    wit: Option<PathBuf>,
}

pub(super) async fn pack(setup: &Setup, arguments: &Pack) -> Result<ExitCode, Failure> {
    let output = arguments.output.as_ref().unwrap_or(&arguments.file);
    let tools = pack_as(setup, &arguments.file, output, arguments.wit.as_deref()).await?;
    print(&format!("wrote {} with {}\n", output.display(), tools.join(", ")))
}

/// Packs what was built to the contract, or to a world that it says itself. Returns the names of its tools.
pub(super) async fn pack_file(setup: &Setup, file: &Path, output: &Path) -> Result<Vec<String>, Failure> {
    pack_as(setup, file, output, None).await
}

async fn pack_as(setup: &Setup, file: &Path, output: &Path, wit: Option<&Path>) -> Result<Vec<String>, Failure> {
    let bytes = read(file).map_err(|error| usage(format!("`{}` cannot be read: {error}", file.display())))?;
    let is_program = bytes.starts_with(CORE_MODULE) && is_program(&bytes);
    let named = |failure: Failure| {
        let message = format!("`{}` cannot be a plugin: {}", file.display(), failure.message);
        let hint = failure.hint.or_else(|| is_program.then(|| NOT_A_LIBRARY.into()));
        Failure { message, hint, ..failure }
    };
    let bytes = if bytes.starts_with(CORE_MODULE) {
        encoded(bytes, wit).map_err(|reason| named(Failure::new(Kind::Unavailable, reason)))?
    } else {
        bytes
    };
    let packed = setup.host.packed(output, &bytes, &setup.context).await.map_err(named)?;
    let tools = packed.manifest().tools.clone();
    let bytes = packed.bytes(&setup.settings.config.limits).expect("it was made of these bytes");
    // A build that found nothing to do leaves the packed file of before, whose time is then not touched.
    let is_there = std::fs::metadata(output).is_ok_and(|found: Metadata| found.len() == bytes.len() as u64)
        && std::fs::read(output).is_ok_and(|there| there == *bytes);
    if !is_there {
        // Who may read what the toolchain wrote may read the plugin.
        let written = std::fs::metadata(file).and_then(|built| {
            replace(output, &bytes).and_then(|()| std::fs::set_permissions(output, built.permissions()))
        });
        written.map_err(|error| usage(format!("`{}` cannot be written: {error}", output.display())))?;
    }
    Ok(tools)
}

/// Adds our own package.
pub(super) fn contract(resolve: &mut Resolve) -> anyhow::Result<PackageId> {
    let mut sources = SourceMap::new();
    wit::files().for_each(|(name, text)| sources.push_str(name, text));
    let group = sources.parse().map_err(|(_, error)| error)?;
    Ok(resolve.push_group(group)?)
}

/// The bytes of a regular file of bearable length.
fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let found = std::fs::metadata(file)?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(std::io::Error::other("it is not a regular file, or larger than 1 GiB"));
    }
    std::fs::read(file)
}

/// Makes the component on a thread with much stack: whoever wrote the module decides how deep the types of its world nest.
fn encoded(module: Vec<u8>, wit: Option<&Path>) -> Result<Vec<u8>, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, || component_of(module, wit)).map_err(|error| error.to_string())?;
        thread.join().unwrap_or_else(|_| Err("its world cannot be read".into()))
    })
}

/// Whether a binding generator has written the world of a module into it.
fn says_its_world(module: &[u8]) -> bool {
    let mut sections = Parser::new(0).parse_all(module).filter_map(Result::ok);
    sections.any(|found| matches!(found, Payload::CustomSection(section) if section.name().starts_with(WORLD_SECTION)))
}

/// Whether a core module was built to be started, and not to be called.
fn is_program(module: &[u8]) -> bool {
    let mut names = Vec::new();
    for found in Parser::new(0).parse_all(module).filter_map(Result::ok) {
        if let Payload::ExportSection(exports) = found {
            names.extend(exports.into_iter().filter_map(Result::ok).map(|export| export.name));
        }
    }
    names.contains(&"_start") && !names.contains(&"_initialize")
}

/// The component that a core module becomes: its imports of WASI's first preview go through the usual adapter.
fn component_of(mut module: Vec<u8>, wit: Option<&Path>) -> Result<Vec<u8>, String> {
    if wit.is_some() || !says_its_world(&module) {
        let mut resolve = Resolve::default();
        let package = match wit {
            Some(directory) => resolve.push_path(directory).map(|(package, _)| package),
            None => contract(&mut resolve),
        };
        let package = package.map_err(|error| format!("its world cannot be read: {error:#}"))?;
        let world = resolve.select_world(&[package], Some(WORLD));
        let world = world.map_err(|error| format!("its world cannot be found: {error:#}"))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .map_err(|error| format!("its world cannot be written into it: {error:#}"))?;
    }
    let encoded = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.adapter(ADAPTER, ADAPTER_BYTES))
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| format!("it does not fit the world `{WORLD}`: {error:#}"))
}
