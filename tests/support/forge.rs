//! Components that no compiler would make: written by hand, or a guest of the tests with other words in its mouth.

use crate::guest;
use serde_json::Value;
use std::path::Path;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The first line of the buffer that `guests/liar` reads its script from.
const MARKER: &[u8] = b"SCRIPT-OF-THE-LIAR\n";
/// The section in which a component names its tools.
const TOOLS_SECTION: &str = "toolcrib:tools";
/// Where the constant data of a forged component begins, and where its heap does.
const DATA: usize = 1024;
const HEAP: usize = 1 << 20;

/// `guests/liar` with this script; its `toolcrib:tools` section names these tools.
#[must_use]
pub fn liar(script: &Value, shown: &[&str]) -> Vec<u8> {
    let mut bytes = std::fs::read(guest("liar")).expect("a guest that was built");
    let script = script.to_string().into_bytes();
    let marker = bytes.windows(MARKER.len()).position(|window| window == MARKER).expect("the liar has its marker");
    let buffer = &mut bytes[marker + MARKER.len()..];
    let room = buffer.iter().take_while(|byte| **byte == b' ').count();
    assert!(script.len() <= room, "the script is {} bytes, and there is room for {room}", script.len());
    buffer[..script.len()].copy_from_slice(&script);
    naming(bytes, &shown.join("\n"))
}

/// What makes a component one of our world, as far as its bytes show: an export of the interface's name, without a function in it.
pub const OURS: &str = r#"(instance $ours) (export "toolcrib:plugin/tools@0.1.0" (instance $ours))"#;

/// A component in text form, whose `toolcrib:tools` section says `shown`.
#[must_use]
pub fn component(text: &str, shown: &str) -> Vec<u8> {
    naming(wat::parse_str(text).expect("a component in text form"), shown)
}

/// The component with further core modules and instances.
#[must_use]
pub fn with_items(component: &[u8], items: &str) -> Vec<u8> {
    let text = wasmprinter::print_bytes(component).expect("a component prints");
    let end = text.rfind(')').expect("a component ends");
    wat::parse_str(format!("{}{items}\n)", &text[..end])).expect("a component in text form")
}

/// The component with a `toolcrib:tools` section behind its other sections.
#[must_use]
pub fn naming(component: Vec<u8>, shown: &str) -> Vec<u8> {
    with_section(component, TOOLS_SECTION, shown.as_bytes())
}

/// The component with a custom section behind its other sections.
fn with_section(mut component: Vec<u8>, name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = leb(name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    component.push(0);
    component.extend(leb(body.len()));
    component.extend(body);
    component
}

/// The component with what the comments of its WIT say, in the section that documentation tools write.
#[must_use]
pub fn documented(component: Vec<u8>, wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join(wit)).expect("its WIT");
    let docs = wit_parser::PackageMetadata::extract(&resolve, package).encode().expect("docs are JSON");
    with_section(component, "package-docs", &docs)
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A plugin with one tool, whose code is WebAssembly text. As it stands it answers every call with `"ok"`.
pub struct Forged {
    tool: String,
    schema: String,
    summary: String,
    title: String,
    guidance: String,
    example: Option<String>,
    parts: String,
    definitions: String,
    call: String,
    realloc: String,
    items: String,
}

impl Forged {
    /// A plugin with this tool, which takes no arguments.
    #[must_use]
    pub fn new(tool: &str) -> Self {
        let [parts, definitions, call, realloc, items] = [const { String::new() }; 5];
        let (schema, summary) = (r#"{"type":"object"}"#.into(), "Answer.".into());
        Self {
            tool: tool.into(),
            schema,
            summary,
            title: "Answer".into(),
            guidance: "x".into(),
            example: None,
            parts,
            definitions,
            call,
            realloc,
            items,
        }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn schema(mut self, schema: &str) -> Self {
        self.schema = schema.into();
        self
    }

    /// What it says that the tool does.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        self.summary = summary.into();
        self
    }

    /// What people see as the tool's name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.title = title.into();
        self
    }

    /// What each part of its guidance says.
    #[must_use]
    pub fn guidance(mut self, text: &str) -> Self {
        self.guidance = text.into();
        self
    }

    /// Arguments as a model would write them.
    #[must_use]
    pub fn example(mut self, text: &str) -> Self {
        self.example = Some(text.into());
        self
    }

    /// Imports, globals, functions, a start function: parts of its core module.
    #[must_use]
    pub fn parts(mut self, text: &str) -> Self {
        self.parts += text;
        self
    }

    /// What it does before it says its definitions.
    #[must_use]
    pub fn definitions(mut self, text: &str) -> Self {
        self.definitions += text;
        self
    }

    /// What it does before it answers a call.
    #[must_use]
    pub fn call(mut self, text: &str) -> Self {
        self.call += text;
        self
    }

    /// What it does when the host asks it for room.
    #[must_use]
    pub fn realloc(mut self, text: &str) -> Self {
        self.realloc += text;
        self
    }

    /// Further parts of the component: core modules, core instances.
    #[must_use]
    pub fn items(mut self, text: &str) -> Self {
        self.items += text;
        self
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let encoder = ComponentEncoder::default().module(&self.core_module()).expect("a module that fits the world");
        let component = encoder.validate(false).encode().expect("a component");
        if self.items.is_empty() {
            return naming(component, &self.tool);
        }
        naming(with_items(&component, &self.items), &self.tool)
    }

    /// The core module that it is made of, as a binding generator leaves it: with the world that it was written to.
    #[must_use]
    pub fn core_module(&self) -> Vec<u8> {
        let mut module = self.bare_module();
        let mut resolve = Resolve::default();
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
        let (package, _) = resolve.push_path(wit).expect("the contract");
        let world = resolve.select_world(&[package], Some("plugin")).expect("the world of plugins");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
        module
    }

    /// The same without a word of its world.
    #[must_use]
    pub fn bare_module(&self) -> Vec<u8> {
        wat::parse_str(self.module()).expect("a core module in text form")
    }

    fn module(&self) -> String {
        let mut data = Data::default();
        let definitions = data.definitions(self);
        let answer = data.answer();
        assert!(data.0.len() <= HEAP - DATA, "more words than there is room for");
        let data: String = data.0.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let Self { parts, definitions: before_definitions, call, realloc, .. } = self;
        format!(
            r#"(module
            {parts}
            (memory (export "memory") 17)
            (data (i32.const {DATA}) "{data}")
            (global $heap (mut i32) (i32.const {HEAP}))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
                {realloc}
                (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                (global.set $heap (i32.add (local.get $at) (local.get 3)))
                (block $enough (loop $more
                    (br_if $enough (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
                    (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
                    unreachable))
                (local.get $at))
            (func (export "toolcrib:plugin/tools@0.1.0#definitions") (result i32)
                {before_definitions}
                (i32.const {definitions}))
            (func (export "toolcrib:plugin/tools@0.1.0#call") (param i32 i32 i32 i32) (result i32)
                {call}
                (i32.const {answer})))"#
        )
    }
}

/// The constant data of a component, in the layout of the canonical ABI.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    /// Puts bytes at an address that is a multiple of four.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let address = DATA + self.0.len();
        self.0.extend_from_slice(bytes);
        address as u32
    }

    fn text(&mut self, text: &str) -> [u32; 2] {
        [self.put(text.as_bytes()), text.len() as u32]
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    /// A list of one definition.
    fn definitions(&mut self, Forged { tool, title, summary, schema, guidance, example, .. }: &Forged) -> u32 {
        let [name, title, summary, schema, x] = [tool, title, summary, schema, guidance].map(|text| self.text(text));
        let nothing = [0; 3];
        let examples = example.as_ref().map_or([0, 0], |example| {
            let text = self.text(example);
            [self.words(&text), 1]
        });
        let record: Vec<u32> =
            [&name[..], &[1], &title, &summary, &x, &x, &x, &examples, &nothing, &schema, &nothing, &[0, 0]].concat();
        let record = self.words(&record);
        self.words(&[record, 1])
    }

    /// `ok` of an output without content or notices.
    fn answer(&mut self) -> u32 {
        let json = self.text(r#""ok""#);
        self.words(&[0, json[0], json[1], 0, 0, 0, 0])
    }
}
