//! The exports of a component as tools, from its bytes alone: nothing is compiled, and nothing of it runs.
//!
//! The bytes may come from anyone. `Look` refuses what would take the validator too much stack or memory. `wit-parser`,
//! which could read the types too, is not for such bytes: packages that use types of each other, in a valid component,
//! send its decoder into endless recursion, and that ends the process.

use super::docs::{self, Docs};
use super::names;
use super::schema::{self, Bounds, Named, Typed};
use crate::manifest::MOST_TOOLS;
use base::text::sanitize;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use wasmparser::component_types::{
    ComponentAnyTypeId as AnyType, ComponentDefinedTypeId as TypeId, ComponentEntityType as Entity, ComponentFuncType,
    ComponentItem,
};
use wasmparser::names::{ComponentName, ComponentNameKind};
use wasmparser::types::Types;
use wasmparser::{Encoding, Parser, Payload, ValidPayload, Validator, WasmFeatures};

/// Functions whose types are looked at. Each may cost as much as its bounds allow.
const MOST_LOOKED_AT: usize = 500;
/// Functions that are named with the reason why they are left out.
const MOST_LEFT_OUT: usize = 50;
/// Bytes of the schemas of all functions together, as JSON.
const MOST_SCHEMA_BYTES: usize = 1 << 20;
/// Bytes of types, imports and exports that making its instances may copy. The validator copies them for each instance, so a file of some
/// 100 KB could make it take gigabytes; so many take it about a tenth of a second. A component that was composed of forty has fewer.
const MOST_COPIED: usize = 4 << 20;
/// How deep components and modules are nested. The validator holds the state of all levels at once.
const DEEPEST: usize = 64;
/// Types of components and instances that are declared within others, in one section. The validator, and later the
/// compiler, recurse into them without a bound of their own, and three bytes of the file add a level: 1000 levels
/// overflow a stack of 2 MiB, which ends the process. Real components have fewer than ten, and WIT packages some
/// dozens.
const MOST_TYPE_SCOPES: usize = 200;
/// Stack of the thread that validates.
const STACK_BYTES: usize = 16 << 20;
/// Characters of a name that are shown. Names may be as long as 100 KB.
const NAME_SHOWN: usize = 200;

/// What a component exports.
#[derive(Debug, Default)]
pub struct Exports {
    /// The functions that become tools, in the order of the component.
    pub functions: Vec<Function>,
    /// Functions and interfaces that do not become tools, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The full name of the `wasi:cli/run` that it exports, if it is a program.
    pub program: Option<String>,
}

/// Why the exports of a component cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The fault is in its bytes.
    #[error("{0}")]
    Broken(String),
    /// The next attempt may go well.
    #[error("{0}")]
    Passing(String),
}

impl From<String> for Unread {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

/// Which function of a component a tool is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// The name of the tool: 1 to 64 of `A-Za-z0-9_-`.
    pub tool: String,
    /// The full name of the export that it is in, if it is not an export itself.
    pub interface: Option<String>,
    /// Its own name.
    pub name: String,
}

/// A function that becomes a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name of the tool: 1 to 64 of `A-Za-z0-9_-`.
    pub tool: String,
    /// The full name of the export that it is in, if it is not an export itself.
    pub interface: Option<String>,
    /// Its own name.
    pub name: String,
    /// What its authors wrote about it.
    pub docs: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its result, if it has one: of any type, not only `object`.
    pub output_schema: Option<Value>,
}

/// Reads the exports of a component. Takes a millisecond for most, and may take a second for hostile ones: not for an
/// async task.
///
/// # Errors
///
/// Why the bytes are not a component whose exports can be read.
pub fn exports(bytes: &[u8], bounds: Bounds) -> Result<Exports, Unread> {
    let look = Look::at(bytes)?;
    let types = types(bytes)?;
    let docs = Docs::read(look.docs);
    let typed = Typed { types: &types, named: look.named(&types, &docs) };
    let mut found = Exports::default();
    let mut collector = Collector {
        typed: &typed,
        docs: &docs,
        bounds,
        looked_at: 0,
        schema_bytes: MOST_SCHEMA_BYTES,
        unnamed: 0,
        found: &mut found,
    };
    for export in look.exports {
        if let Some(item) = types.component_item_for_export(export) {
            collector.add(export, item);
        }
    }
    collector.finish();
    Ok(found)
}

/// What a first pass over the bytes finds.
struct Look<'b> {
    /// Full names of imports.
    imports: Vec<&'b str>,
    /// Full names of exports.
    exports: Vec<&'b str>,
    /// Content of the section with the docs.
    docs: &'b [u8],
}

impl<'b> Look<'b> {
    fn at(bytes: &'b [u8]) -> Result<Self, String> {
        // The parser would say so with the first bytes as a list of numbers.
        if !bytes.starts_with(b"\0asm") {
            return Err("it is not a component: the file is not WebAssembly".into());
        }
        let (mut depth, mut look) = (0_usize, Self { imports: Vec::new(), exports: Vec::new(), docs: &[] });
        let mut copied = Copied::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(not_valid)?;
            copied.count(&payload)?;
            match payload {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err("it is a core module, not a component".into());
                }
                Payload::Version { .. } => {
                    depth += 1;
                    check_depth(depth)?;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentTypeSection(types) => {
                    check_type_scopes(bytes.get(types.range()).unwrap_or_default())?;
                }
                Payload::ComponentImportSection(imports) if depth == 1 => {
                    for import in imports {
                        look.imports.push(import.map_err(not_valid)?.name.name);
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 1 => {
                    for export in exports {
                        look.exports.push(export.map_err(not_valid)?.name.name);
                    }
                }
                Payload::CustomSection(section)
                    if depth == 1 && section.name() == docs::SECTION && look.docs.is_empty() =>
                {
                    look.docs = section.data();
                }
                // Everything else is the validator's.
                _ => {}
            }
        }
        Ok(look)
    }

    /// Finds the types that have names, and what is written about them.
    fn named<'d>(&self, types: &Types, docs: &'d Docs) -> HashMap<TypeId, Named<'d>> {
        let mut named = HashMap::new();
        let mut add = |interface: Option<&str>, name: &str, item: &ComponentItem| {
            if let Entity::Type { created: AnyType::Defined(created), referenced: AnyType::Defined(names) } = item.ty {
                named.insert(created, Named { said: docs.ty(interface, name), names });
            }
        };
        let imports = self.imports.iter().map(|name| (*name, types.component_item_for_import(name)));
        let exports = self.exports.iter().map(|name| (*name, types.component_item_for_export(name)));
        for (name, item) in imports.chain(exports) {
            match item {
                Some(ComponentItem { ty: Entity::Instance(id), .. }) => {
                    types[*id].exports.iter().for_each(|(ty, item)| add(Some(name), ty, item));
                }
                Some(item) => add(None, name, item),
                None => {}
            }
        }
        named
    }
}

/// Refuses a component within so many that validating or compiling it would take too much memory.
pub fn check_depth(depth: usize) -> Result<(), String> {
    if depth <= DEEPEST { Ok(()) } else { Err(format!("its components are nested too deep (limit: {DEEPEST})")) }
}

/// Refuses a section of types that would overflow the stack of whoever reads it. Counts what may be a declaration (1) of a type of components
/// (0x41) or instances (0x42): other bytes may look the same, so this is at least the number of levels.
pub fn check_type_scopes(section: &[u8]) -> Result<(), String> {
    let scopes = section.windows(2).filter(|pair| matches!(pair, [0x01, 0x41 | 0x42])).count();
    if scopes <= MOST_TYPE_SCOPES {
        return Ok(());
    }
    Err(format!("it declares too many types within types (limit: {MOST_TYPE_SCOPES})"))
}

/// What making all instances of a component's components would copy, at most.
#[derive(Default)]
struct Copied {
    /// Bytes of types, imports and exports of the components that are open, from the outermost to the innermost, each with what is in it.
    open: Vec<usize>,
    /// The most that one component has.
    largest: usize,
    instances: usize,
}

impl Copied {
    fn count(&mut self, payload: &Payload<'_>) -> Result<(), String> {
        match payload {
            Payload::Version { .. } => self.open.push(0),
            Payload::End(_) => {
                let size = self.open.pop().unwrap_or_default();
                self.largest = self.largest.max(size);
                if let Some(outer) = self.open.last_mut() {
                    *outer += size;
                }
            }
            Payload::ComponentTypeSection(types) => self.add(types.range().len()),
            Payload::ComponentImportSection(imports) => self.add(imports.range().len()),
            Payload::ComponentExportSection(exports) => self.add(exports.range().len()),
            Payload::ComponentInstanceSection(instances) => self.instances += instances.count() as usize,
            // Code, data, and what only names what is there already.
            _ => {}
        }
        let largest = self.open.iter().copied().max().unwrap_or_default().max(self.largest);
        match largest.saturating_mul(self.instances) <= MOST_COPIED {
            true => Ok(()),
            false => Err("it makes too many instances of components with too many types or exports".into()),
        }
    }

    fn add(&mut self, bytes: usize) {
        if let Some(innermost) = self.open.last_mut() {
            *innermost += bytes;
        }
    }
}

/// Validates a component on a thread of its own, so that the stack is known and a panic ends that thread alone.
fn types(bytes: &[u8]) -> Result<Types, Unread> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("types".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, || validated(bytes));
        let thread = thread.map_err(|error| Unread::Passing(format!("there is no thread for its types: {error}")))?;
        let types = thread.join().unwrap_or_else(|_| Err("its types cannot be read".into()));
        Ok(types?)
    })
}

/// The types of a component. The code of its functions is not looked at: the compiler validates it.
fn validated(bytes: &[u8]) -> Result<Types, String> {
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let (mut depth, mut types) = (1_usize, None);
    for payload in Parser::new(0).parse_all(bytes) {
        match validator.payload(&payload.map_err(not_valid)?).map_err(not_valid)? {
            ValidPayload::Parser(_) => depth += 1,
            ValidPayload::End(ended) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    types = Some(ended);
                }
            }
            ValidPayload::Ok | ValidPayload::Func(..) => {}
        }
    }
    types.ok_or_else(|| "it is not a component: it has no end".into())
}

fn not_valid(error: wasmparser::BinaryReaderError) -> String {
    format!("it is not a valid component: {}", shown(error.message()))
}

struct Collector<'c> {
    typed: &'c Typed<'c>,
    docs: &'c Docs,
    bounds: Bounds,
    looked_at: usize,
    /// What schemas may still take.
    schema_bytes: usize,
    /// How many are left out beyond those that are named.
    unnamed: usize,
    found: &'c mut Exports,
}

impl Collector<'_> {
    fn add(&mut self, export: &str, item: &ComponentItem) {
        if export == "wasi:cli/run" || export.starts_with("wasi:cli/run@") {
            self.found.program = Some(export.to_owned());
            return;
        }
        if export.starts_with("wasi:") {
            return self.leave_out(export, "interfaces of WASI are for hosts, not for models".into());
        }
        match item.ty {
            Entity::Func(id) => self.add_function(None, export, &self.typed.types[id]),
            Entity::Instance(id) => {
                for (name, item) in &self.typed.types[id].exports {
                    match item.ty {
                        Entity::Func(id) => self.add_function(Some(export), name, &self.typed.types[id]),
                        // The types that its functions name.
                        Entity::Type { .. } => {}
                        Entity::Instance(_) | Entity::Component(_) | Entity::Module(_) | Entity::Value(_) => {
                            self.leave_out(&full(Some(export), name), "it is not a function".into());
                        }
                    }
                }
            }
            Entity::Type { .. } => {}
            Entity::Component(_) | Entity::Module(_) | Entity::Value(_) => {
                self.leave_out(export, "it is neither a function nor an interface".into());
            }
        }
    }

    fn add_function(&mut self, interface: Option<&str>, name: &str, ty: &ComponentFuncType) {
        match self.function(interface, name, ty) {
            Ok(function) => self.found.functions.push(function),
            Err(reason) => self.leave_out(&full(interface, name), reason),
        }
    }

    fn function(&mut self, interface: Option<&str>, name: &str, ty: &ComponentFuncType) -> Result<Function, String> {
        let parsed = ComponentName::new(name, 0).map_err(not_valid)?;
        match parsed.kind() {
            ComponentNameKind::Label(_) => {}
            ComponentNameKind::Constructor(_) => return Err("it is the constructor of a resource".into()),
            ComponentNameKind::Method(_) => return Err("it is a method of a resource".into()),
            ComponentNameKind::Static(_) => return Err("it is a static function of a resource".into()),
            ComponentNameKind::Interface(_)
            | ComponentNameKind::Dependency(_)
            | ComponentNameKind::Url(_)
            | ComponentNameKind::Hash(_) => return Err("its name is not one of a function".into()),
        }
        if ty.async_ {
            return Err("it is an async function".into());
        }
        if self.found.functions.len() == MOST_TOOLS {
            return Err(format!("{MOST_TOOLS} functions before it are tools already (limit: {MOST_TOOLS})"));
        }
        self.looked_at += 1;
        if self.looked_at > MOST_LOOKED_AT {
            return Err(format!("the component exports too many functions (limit: {MOST_LOOKED_AT})"));
        }
        if name.len().max(interface.map_or(0, str::len)) > NAME_SHOWN {
            return Err(format!("its name is longer than {NAME_SHOWN} characters"));
        }
        let schemas = schema::of_function(self.typed, ty, self.bounds)?;
        let bytes = schemas.output.iter().chain([&schemas.input]).map(|schema| schema.to_string().len()).sum::<usize>();
        if bytes > self.schema_bytes {
            return Err(format!(
                "with those before it, its types are too large (limit: {} KiB)",
                MOST_SCHEMA_BYTES >> 10
            ));
        }
        self.schema_bytes -= bytes;
        Ok(Function {
            // Known when all of them are.
            tool: String::new(),
            interface: interface.map(str::to_owned),
            name: name.to_owned(),
            docs: self.docs.function(interface, name),
            input_schema: schemas.input,
            output_schema: schemas.output,
        })
    }

    fn leave_out(&mut self, name: &str, reason: String) {
        if self.found.left_out.len() < MOST_LEFT_OUT {
            self.found.left_out.push((shown(name), reason));
        } else {
            self.unnamed += 1;
        }
    }

    /// Gives the tools their names.
    fn finish(mut self) {
        let functions = std::mem::take(&mut self.found.functions);
        let named: Vec<_> =
            functions.iter().map(|function| (function.interface.as_deref(), function.name.as_str())).collect();
        for (tool, function) in names::tools(&named).into_iter().zip(functions) {
            match tool {
                Some(tool) => self.found.functions.push(Function { tool, ..function }),
                None => self.leave_out(&function.name, "it has a name that no tool can have".into()),
            }
        }
        if self.unnamed > 0 {
            let more = format!("{} more", self.unnamed);
            self.found.left_out.push((more, format!("only {MOST_LEFT_OUT} are named")));
        }
    }
}

fn full(interface: Option<&str>, name: &str) -> String {
    interface.map_or_else(|| name.to_owned(), |interface| format!("{interface}#{name}"))
}

fn shown(text: &str) -> String {
    sanitize::beginning(text, NAME_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::sample;
    use serde_json::json;
    use std::fmt::Write;
    use std::time::{Duration, Instant};

    const STORE: &str = r"
        package shop:store@1.2.0;

        interface types {
            /// A thing for sale.
            record item {
                /// What it costs.
                price: u32,
                note: option<string>,
            }
            type again = item;
        }

        /// Orders.
        interface orders {
            use types.{again};
            /// How it went.
            enum state { /// Not yet.
                open, done }
            resource basket { constructor(); add: func(); merge: static func(); }
            /// Buys a thing.
            buy: func(item: again, count: u8) -> result<state, string>;
            fill: func(basket: borrow<basket>);
            wait: async func();
        }

        world shop {
            import orders;
            export orders;
            export plain: interface { /// Says it.
                say: func(text: string); }
            /// Adds two numbers.
            export add: func(a: u8, b: u8) -> u8;
            export tail: func() -> stream<u8>;
        }
    ";

    fn read(bytes: &[u8]) -> Exports {
        exports(bytes, Bounds::default()).expect("a component")
    }

    fn reason(bytes: &[u8]) -> String {
        exports(bytes, Bounds::default()).expect_err("no component that can be read").to_string()
    }

    fn tools(found: &Exports) -> Vec<&str> {
        found.functions.iter().map(|function| function.tool.as_str()).collect()
    }

    #[test]
    fn functions_become_tools_and_the_rest_is_left_out_with_a_reason() {
        let found = read(&sample::documented(STORE));
        assert_eq!(tools(&found), ["add", "orders-buy", "plain-say"]);
        let reasons: Vec<(&str, &str)> =
            found.left_out.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
        assert_eq!(
            reasons,
            [
                ("tail", "it uses a `stream`, which JSON cannot express"),
                ("shop:store/orders@1.2.0#[constructor]basket", "it is the constructor of a resource"),
                ("shop:store/orders@1.2.0#[method]basket.add", "it is a method of a resource"),
                ("shop:store/orders@1.2.0#[static]basket.merge", "it is a static function of a resource"),
                ("shop:store/orders@1.2.0#fill", "it uses a resource, which lives only in the component"),
                ("shop:store/orders@1.2.0#wait", "it is an async function"),
            ]
        );
        assert!(found.program.is_none());
        let buy = &found.functions[1];
        assert_eq!(buy.interface.as_deref(), Some("shop:store/orders@1.2.0"));
        assert_eq!(buy.name, "buy");
    }

    #[test]
    fn docs_become_descriptions() {
        let found = read(&sample::documented(STORE));
        let docs: Vec<Option<&str>> = found.functions.iter().map(|function| function.docs.as_deref()).collect();
        assert_eq!(docs, [Some("Adds two numbers."), Some("Buys a thing."), Some("Says it.")]);
        let buy = &found.functions[1];
        assert_eq!(
            buy.input_schema["properties"]["item"],
            json!({
                "type": "object",
                "properties": {
                    "price": { "type": "integer", "minimum": 0, "maximum": u32::MAX, "description": "What it costs." },
                    "note": { "type": ["string", "null"] },
                },
                "required": ["price"],
                "additionalProperties": false,
                "description": "A thing for sale.",
            })
        );
        let state =
            json!({ "type": "string", "enum": ["open", "done"], "description": "How it went.\n- `open`: Not yet." });
        assert_eq!(buy.output_schema, Some(state));
    }

    #[test]
    fn docs_that_fit_nothing_are_ignored() {
        let bare = sample::component(STORE);
        let without = read(&bare);
        for docs in [
            "",
            "\x01",
            "\x01{",
            "\x02{}",
            "\x01[]",
            r#"\x01{"interfaces":{"orders":7,"x":{}},"worlds":{"w":{"func_exports":[]}}}"#,
        ] {
            let found = read(&sample::with_section(bare.clone(), docs::SECTION, docs.as_bytes()));
            assert_eq!(found.functions, without.functions, "{docs:?}");
        }
        let twice = sample::with_section(sample::documented(STORE), docs::SECTION, b"\x01{}");
        assert_eq!(read(&twice).functions[0].docs.as_deref(), Some("Adds two numbers."));
        let hidden = b"\x01{\"worlds\":{\"any\":{\"func_exports\":{\"add\":\" a\\u001b[31mb\\u200bc \"}}}}";
        assert_eq!(read(&sample::with_section(bare, docs::SECTION, hidden)).functions[0].docs.as_deref(), Some("abc"));
    }

    #[test]
    fn a_command_is_recognised_and_other_interfaces_of_wasi_are_left_out() {
        let found = read(&sample::text(
            r#"(component
                (component $c
                    (core module $m (func (export "run") (result i32) i32.const 0))
                    (core instance $i (instantiate $m))
                    (func (export "run") (result (result)) (canon lift (core func $i "run"))))
                (instance $run (instantiate $c))
                (export "wasi:cli/run@0.2.0" (instance $run))
                (export "wasi:cli/runner@0.2.0" (instance $run)))"#,
        ));
        assert!(found.program.is_some() && found.functions.is_empty());
        assert_eq!(found.left_out[0].0, "wasi:cli/runner@0.2.0");
    }

    #[test]
    fn what_is_not_a_component_is_refused() {
        assert_eq!(reason(b"#!/bin/sh"), "it is not a component: the file is not WebAssembly");
        assert_eq!(reason(b"\0asm\x01\0\0\0"), "it is a core module, not a component");
        assert!(reason(b"\0asm").starts_with("it is not a valid component: "));
        assert!(reason(b"\0asm\x0d\0\x01\0\x0b\x01\x01").starts_with("it is not a valid component: "));
    }

    #[test]
    fn other_exports_are_no_functions() {
        let found = read(&sample::text(
            r#"(component (type $t u8) (export "t" (type $t)) (core module $m) (export "m" (core module $m)))"#,
        ));
        assert_eq!(found.left_out, [("m".into(), "it is neither a function nor an interface".into())]);
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str("a.wit", "package a:b; interface c { f: func(); }").expect("WIT");
        let package = wit_component::encode(&resolve, package).expect("a package");
        assert_eq!(read(&package).functions, []);
    }

    #[test]
    fn more_functions_than_tools_may_be_are_left_out() {
        let wit = |count: usize| {
            let functions: String = (0..count).fold(String::new(), |mut text, index| {
                let _ = write!(text, "export tool-{index}: func(); ");
                text
            });
            sample::component(&format!("package a:b; world w {{ {functions} }}"))
        };
        let found = read(&wit(70));
        assert_eq!((found.functions.len(), found.left_out.len()), (64, 6));
        assert!(found.left_out[0].1.contains("(limit: 64)"), "{}", found.left_out[0].1);
        let found = read(&wit(900));
        assert_eq!((found.functions.len(), found.left_out.len()), (64, MOST_LEFT_OUT + 1));
        assert_eq!(found.left_out[MOST_LEFT_OUT].0, "786 more");
    }

    /// A function of a type that names another twice, and so on.
    fn doubling(levels: usize) -> Vec<u8> {
        let mut types = String::from("(type $t0 (tuple u8 u8))");
        for level in 1..levels {
            let _ = write!(types, "(type $t{level} (tuple $t{} $t{}))", level - 1, level - 1);
        }
        sample::text(&format!(
            r#"(component
                (core module $m (memory (export "m") 1) (func (export "f") (param i32))
                    (func (export "r") (param i32 i32 i32 i32) (result i32) i32.const 0))
                (core instance $i (instantiate $m))
                {types}
                (func (export "f") (param "x" $t{})
                    (canon lift (core func $i "f") (memory (core memory $i "m")) (realloc (core func $i "r"))))
                (func (export "g") (param "x" u8) (canon lift (core func $i "f"))))"#,
            levels - 1
        ))
    }

    #[test]
    fn instances_of_many_exports_are_refused_before_they_are_made() {
        let exports: String = (0..10_000).fold(String::new(), |mut text, index| {
            let _ = write!(text, "(export \"e-{index}\" (func $f))");
            text
        });
        let instances = "(instance (instantiate $c (with \"f\" (func $f))))".repeat(500);
        let bytes = sample::text(&format!(
            "(component (import \"f\" (func $f)) (component $c (import \"f\" (func $f)) {exports}) {instances})"
        ));
        let started = Instant::now();
        let refused = reason(&bytes);
        assert_eq!(refused, "it makes too many instances of components with too many types or exports");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn schemas_have_a_bound_together() {
        let fields: String = (0..400).fold(String::new(), |mut text, index| {
            let _ = write!(text, "x{index}: u64, ");
            text
        });
        let functions: String = (0..60).fold(String::new(), |mut text, index| {
            let _ = write!(text, "g{index}: func(x: r) -> r; ");
            text
        });
        let wit = format!("package a:b; interface i {{ record r {{ {fields} }} {functions} }} world w {{ export i; }}");
        let found = read(&sample::component(&wit));
        assert!(found.functions.len() > 5 && found.functions.len() < 30, "{}", found.functions.len());
        assert!(found.left_out[0].1.contains("(limit: 1024 KiB)"), "{:?}", found.left_out[0]);
    }

    #[test]
    fn exponential_types_are_refused_quickly() {
        for (levels, depth, reason) in [
            (17, 32, "its types nest too deep: their JSON Schema has more than 32 levels"),
            (17, 1000, "its types are too large: their JSON Schema has more than 2000 parts"),
            (12, 32, "its types are too large: their JSON Schema has more than 2000 parts"),
        ] {
            let bytes = doubling(levels);
            let started = Instant::now();
            let found = exports(&bytes, Bounds { depth, ..Bounds::default() }).expect("a component");
            assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
            assert_eq!((tools(&found), found.left_out[0].1.as_str()), (vec!["g"], reason));
        }
        // Validation has a bound too, for the component as a whole.
        let bytes = doubling(60);
        let started = Instant::now();
        assert!(reason(&bytes).contains("effective type size exceeds the limit"));
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn types_within_types_cannot_overflow_the_stack() {
        let nested = |levels: usize, scope: u8| {
            let mut section = vec![1];
            (0..levels).for_each(|_| section.extend([scope, 1, 1]));
            section.push(0x7f);
            let mut bytes = b"\0asm\x0d\0\x01\0\x07".to_vec();
            bytes.extend(sample::leb(section.len()));
            bytes.extend(section);
            bytes
        };
        for scope in [0x41, 0x42] {
            assert_eq!(read(&nested(200, scope)).functions, []);
            assert_eq!(reason(&nested(202, scope)), "it declares too many types within types (limit: 200)");
            assert_eq!(reason(&nested(1_000_000, scope)), "it declares too many types within types (limit: 200)");
        }
        let deep = (0..100).fold(String::new(), |inner, _| format!("(component {inner})"));
        assert_eq!(reason(&sample::text(&deep)), "its components are nested too deep (limit: 64)");
    }

    #[test]
    fn an_exported_interface_has_its_own_types_and_not_those_of_the_imported_one() {
        let found = read(&sample::text(
            r#"(component
                (import "a:b/c" (instance
                    (type $r (list string)) (export "r" (type $s (eq $r)))
                    (type $l (list $s)) (export "l" (type (eq $l)))
                    (export "f" (func (param "x" string)))))
                (core module $m (func (export "f") (param i32)))
                (core instance $i (instantiate $m))
                (component $c
                    (import "f" (func $f (param "x" u8)))
                    (type $l (list u8)) (export "l" (type $l))
                    (export "f" (func $f)))
                (func $f (param "x" u8) (canon lift (core func $i "f")))
                (instance $i (instantiate $c (with "f" (func $f))))
                (export "a:b/c" (instance $i)))"#,
        ));
        assert_eq!(found.functions[0].input_schema["properties"]["x"]["type"], "integer");
    }

    /// Interfaces cannot use types of each other, but packages can: here `a:a` and `b:b`.
    #[test]
    fn packages_may_use_types_of_each_other() {
        let found = read(&sample::text(
            r#"(component
                (import "a:a/first" (instance $first (type $r (record (field "x" u8))) (export "r" (type (eq $r)))))
                (alias export $first "r" (type $r))
                (import "b:b/second" (instance $second (alias outer 1 $r (type $r)) (export "r" (type (eq $r)))))
                (alias export $second "r" (type $s))
                (import "a:a/third" (instance (alias outer 1 $s (type $r)) (export "r" (type (eq $r)))))
                (core module $m (func (export "f") (param i32)))
                (core instance $i (instantiate $m))
                (func (export "f") (param "x" $s) (canon lift (core func $i "f"))))"#,
        ));
        assert_eq!(tools(&found), ["f"]);
    }

    #[test]
    fn a_chain_of_packages_is_read() {
        let mut wit = String::from("package a:a; ");
        let mut packages = String::from("package a:p0 { interface i { type t = u8; } } ");
        for level in 1..300 {
            let _ = write!(packages, "package a:p{level} {{ interface i {{ use a:p{}/i.{{t}}; }} }} ", level - 1);
        }
        wit += "world w { import a:p299/i; use a:p299/i.{t}; export f: func(x: t) -> t; } ";
        let found = read(&sample::component(&(wit + &packages)));
        assert_eq!(tools(&found), ["f"]);
        assert_eq!(found.functions[0].input_schema["properties"]["x"]["maximum"], 255);
    }

    #[test]
    fn a_section_that_claims_to_be_long_takes_no_memory() {
        for id in [0, 1, 7, 10] {
            let bytes = [&b"\0asm\x0d\0\x01\0"[..], &[id, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
            assert!(reason(&bytes).starts_with("it is not a valid component: "));
        }
    }

    #[test]
    fn broken_bytes_never_panic_out_of_here() {
        let samples = [sample::documented(STORE), doubling(5)];
        let mut state = 0x5eed_u64;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let turns = if std::env::var_os("TOOLCRIB_LONG").is_some() { 100_000 } else { 2000 };
        let (mut read, mut refused) = (0, 0);
        for turn in 0..turns {
            let mut bytes = samples[turn % 2].clone();
            if below(4) == 0 {
                bytes.truncate(below(bytes.len()));
            }
            for _ in 0..=below(3) {
                if !bytes.is_empty() {
                    let at = below(bytes.len());
                    bytes[at] = if below(2) == 0 { bytes[at] ^ (1 << below(8)) } else { below(256) as u8 };
                }
            }
            match exports(&bytes, Bounds::default()) {
                Ok(_) => read += 1,
                Err(reason) => {
                    assert!(reason.to_string().len() < 1000, "{reason}");
                    refused += 1;
                }
            }
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }
}
