//! Components for tests, made from WIT.

use std::path::Path;
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, PackageMetadata, Resolve};

/// A component with the last world of this WIT, whose functions trap.
pub(super) fn component(wit: &str) -> Vec<u8> {
    encoded(wit, None)
}

/// The same around a core module in text form.
pub(super) fn around(wit: &str, module: &str) -> Vec<u8> {
    encoded(wit, Some(wat::parse_str(module).expect("the module is valid")))
}

/// The same with what the WIT says in its comments.
pub(super) fn documented(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(Path::new("test.wit"), wit).unwrap_or_else(|error| panic!("{error:#}\n{wit}"));
    let docs = PackageMetadata::extract(&resolve, package).encode().expect("docs are JSON");
    with_section(component(wit), "package-docs", &docs)
}

/// A component of text.
pub(super) fn text(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn with_section(mut component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let content = [&leb(name.len())[..], name.as_bytes(), data].concat();
    component.push(0);
    component.extend(leb(content.len()));
    component.extend(content);
    component
}

pub(super) fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn encoded(wit: &str, module: Option<Vec<u8>>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(Path::new("test.wit"), wit).unwrap_or_else(|error| panic!("{error:#}\n{wit}"));
    let world = *resolve.packages[package].worlds.values().last().expect("a world");
    let abi = ManglingAndAbi::Legacy(wit_parser::LiftLowerAbi::Sync);
    let mut module = module.unwrap_or_else(|| dummy_module(&resolve, world, abi));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).expect("the module fits");
    encoder.encode().unwrap_or_else(|error| panic!("{error:#}\n{wit}"))
}
