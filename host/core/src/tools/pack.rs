//! What a toolchain other than the SDK's leaves to do: the section by which a host finds a component's tools without compiling it.
//!
//! What it writes is what the component says of itself, so it is asked: compiled and run as any plugin, without rights.

use super::provider::{Component, Shown, TOOLS_SECTION, read_definitions};
use crate::Host;
use crate::call::CallContext;
use base::envelope::{Failure, Kind};
use engine::compile::CompileError;
use engine::room::Owner;
use futures_util::future::BoxFuture;
use guest::sandbox::Source;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use wasmparser::BinaryReader;

/// The magic number and the version, which every WebAssembly file begins with.
const PREAMBLE: usize = 8;
/// The id of a custom section.
const CUSTOM: u8 = 0;

impl Host {
    /// Asks a component for its tools, and writes their names into it; a section that is there is replaced. Returns what the file of this
    /// path would be with them. Nothing is written.
    ///
    /// # Errors
    ///
    /// `unavailable` where it cannot be a plugin, with what is wrong; a limit that it met when it was asked.
    pub fn packed<'a>(
        &'a self,
        path: &'a Path,
        component: &'a [u8],
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Component, Failure>> {
        Box::pin(async move {
            let wrong = |reason: String| Failure::new(Kind::Unavailable, reason);
            // Before it is compiled: this says in plain words what is not a component, or which import is unknown.
            let shown = Shown::checked(component).map_err(wrong)?;
            if !shown.is_ours {
                let reason = "it does not export `toolcrib:plugin/tools`: the functions that it exports are tools as they are, without being packed";
                return Err(wrong(reason.into()));
            }
            let owner = Owner { sha256: hex::encode(Sha256::digest(component)).into(), is_builtin: false };
            let source = Source { owner, core_instances: None };
            let guest =
                self.sandbox.compile(&source, component.to_vec().into()).await.map_err(|error| match error {
                    CompileError::Component(reason) | CompileError::Passing(reason) => wrong(reason),
                })?;
            let said = self.sandbox.definitions(&guest, self.reach_of_definitions(context)).await?;
            let definitions = read_definitions(said).map_err(wrong)?;
            let tools: Vec<String> = definitions.into_iter().map(|definition| definition.name).collect();
            // The SDK for Rust has written the section into the core module, where it stays.
            let bytes = match is_same(&shown.tools, &tools) {
                true => component.to_vec(),
                false => naming(component, &tools).map_err(|error| wrong(format!("it is not a component: {error}")))?,
            };
            let packed = Component::at(path, bytes).map_err(wrong)?;
            if !is_same(&packed.manifest().tools, &tools) {
                let shown = packed.manifest().tools.join(", ");
                return Err(wrong(format!(
                    "a core module in it says that its tools are {shown}, and it offers {}",
                    tools.join(", ")
                )));
            }
            Ok(packed)
        })
    }
}

/// The same names, in whatever order.
fn is_same(one: &[String], other: &[String]) -> bool {
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    one.len() == other.len() && sorted(one) == sorted(other)
}

/// The component with this section in place of one that it has.
fn naming(component: &[u8], tools: &[String]) -> wasmparser::Result<Vec<u8>> {
    let mut bytes = component[..PREAMBLE.min(component.len())].to_vec();
    let mut reader = BinaryReader::new(component, 0);
    reader.read_bytes(PREAMBLE)?;
    while !reader.eof() {
        let begin = reader.current_position();
        let id = reader.read_u8()?;
        let length = reader.read_var_u32()? as usize;
        let content = reader.read_bytes(length)?;
        let is_ours = id == CUSTOM && BinaryReader::new(content, 0).read_string()? == TOOLS_SECTION;
        if !is_ours {
            bytes.extend_from_slice(&component[begin..reader.current_position()]);
        }
    }
    let name = sized(TOOLS_SECTION.as_bytes());
    bytes.push(CUSTOM);
    bytes.extend(sized(&[&name, tools.join("\n").as_bytes()].concat()));
    Ok(bytes)
}

/// Bytes behind their number, as WebAssembly writes it: seven bits a byte, the lowest first.
fn sized(content: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(content.len() + 5), content.len());
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_is_there_is_replaced_and_all_others_stay() {
        let section =
            |name: &str, rest: &[u8]| [&[CUSTOM][..], &sized(&[&sized(name.as_bytes()), rest].concat())].concat();
        let head = b"\0asm\x0d\0\x01\0";
        let (other, large) = (section("producers", b"x"), section("names", &[7; 300]));
        let component = [&head[..], &other, &section(TOOLS_SECTION, b"old"), &large].concat();
        let packed = naming(&component, &["one".into(), "two".into()]).unwrap();
        assert_eq!(packed, [&head[..], &other, &large, &section(TOOLS_SECTION, b"one\ntwo")].concat());
        assert_eq!(naming(&packed, &["one".into(), "two".into()]).unwrap(), packed);
        for cut in 0..packed.len() {
            let _ = naming(&packed[..cut], &[]);
        }
    }
}
