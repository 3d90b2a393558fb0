//! The component between a plugin and the host while `plugin test --record` runs: it exports each interface of the contract that it imports, and
//! passes every call on. It is there since only what a component exports can be called by its type.
//!
//! Arguments and results are the same on both sides of it, so its code hands them over as they lie in its memory. A resource of its own stands for
//! each of the host's.

use super::pack::contract;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function as Code, FunctionSection,
    GlobalSection, GlobalType, ImportSection, MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{
    Function, FunctionKind, LiftLowerAbi, LiveTypes, ManglingAndAbi, Resolve, ResourceIntrinsic, SizeAlign,
    TypeDefKind, TypeId, WasmExport, WasmExportKind, WasmImport, WorldItem, WorldKey,
};

/// Interfaces that are not recorded: `types` has no functions, and those of `events` return nothing.
const PASSED: [&str; 2] = ["types", "events"];
const MANGLING: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
/// Where arguments and results begin in its memory.
const BEGIN: i32 = 16;
const PAGE: i32 = 64 << 10;

/// The bytes of the component.
pub(super) fn component() -> anyhow::Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let package = contract(&mut resolve)?;
    let plugin = resolve.select_world(&[package], Some("plugin"))?;
    let name = |key: &WorldKey| resolve.name_world_key(key);
    let is_passed = |name: &str| PASSED.iter().any(|passed| name.contains(&format!("/{passed}@")));
    let names = resolve.worlds[plugin].imports.keys().map(name).filter(|name| !is_passed(name));
    let lines: String = names.map(|name| format!("import {name}; export {name};\n")).collect();
    let package = resolve.push_str("between.wit", &format!("package toolcrib:test;\nworld between {{\n{lines}}}"))?;
    let world = resolve.select_world(&[package], Some("between"))?;
    let mut writer = Writer::new(&resolve);
    let exports = resolve.worlds[world].exports.iter();
    let interfaces: Vec<_> = exports.filter_map(|(key, item)| Some((key, interface(item)?))).collect();
    for (key, interface) in &interfaces {
        let resources = resolve.interfaces[*interface].types.values().copied();
        let resources = resources.filter(|ty| matches!(resolve.types[*ty].kind, TypeDefKind::Resource));
        resources.for_each(|resource| writer.import_resource(key, resource));
        resolve.interfaces[*interface].functions.values().try_for_each(|function| writer.import(key, function))?;
    }
    let mut module = writer.module();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default().module(&module)?.encode()
}

fn interface(item: &WorldItem) -> Option<wit_parser::InterfaceId> {
    match item {
        WorldItem::Interface { id, .. } => Some(*id),
        WorldItem::Function(_) | WorldItem::Type { .. } => None,
    }
}

/// A resource, and the numbers of the functions that make its handle and drop the host's.
struct Resource<'r> {
    key: &'r WorldKey,
    id: TypeId,
    made: u32,
    dropped: u32,
}

/// Writes the code: first all imports, since numbers of functions begin with these.
struct Writer<'r> {
    resolve: &'r Resolve,
    sizes: SizeAlign,
    types: TypeSection,
    imports: ImportSection,
    resources: Vec<Resource<'r>>,
    functions: Vec<Passed<'r>>,
}

/// A function that is passed on to the import of this number.
struct Passed<'r> {
    key: &'r WorldKey,
    function: &'r Function,
    import: u32,
}

impl<'r> Writer<'r> {
    fn new(resolve: &'r Resolve) -> Self {
        let mut sizes = SizeAlign::default();
        sizes.fill(resolve);
        let (types, imports) = (TypeSection::new(), ImportSection::new());
        Self { resolve, sizes, types, imports, resources: Vec::new(), functions: Vec::new() }
    }

    fn import_resource(&mut self, interface: &'r WorldKey, resource: TypeId) {
        let mut one = |intrinsic, results: &[ValType]| {
            let import = WasmImport::ResourceIntrinsic { interface: Some(interface), resource, intrinsic };
            let (module, name) = self.resolve.wasm_import_name(MANGLING, import);
            self.types.ty().function([ValType::I32], results.iter().copied());
            self.imports.import(&module, &name, EntityType::Function(self.types.len() - 1));
            self.imports.len() - 1
        };
        let made = one(ResourceIntrinsic::ExportedNew, &[ValType::I32]);
        let dropped = one(ResourceIntrinsic::ImportedDrop, &[]);
        self.resources.push(Resource { key: interface, id: resource, made, dropped });
    }

    fn import(&mut self, interface: &'r WorldKey, func: &'r Function) -> anyhow::Result<()> {
        // The one that a method begins with, and the one that a constructor returns, are known by their places.
        let rest = func.params.iter().skip(usize::from(matches!(func.kind, FunctionKind::Method(_))));
        let result = func.result.iter().filter(|_| !matches!(func.kind, FunctionKind::Constructor(_)));
        let mut live = LiveTypes::default();
        rest.map(|param| &param.ty).chain(result).for_each(|ty| live.add_type(self.resolve, ty));
        let is_handle = |id: TypeId| matches!(self.resolve.types[id].kind, TypeDefKind::Handle(_));
        anyhow::ensure!(!live.iter().any(is_handle), "`{}` hands over a resource, which cannot be recorded", func.name);
        let import = WasmImport::Func { interface: Some(interface), func };
        let (module, name) = self.resolve.wasm_import_name(MANGLING, import);
        let ty = self.ty(&self.resolve.wasm_signature(AbiVariant::GuestImport, func));
        self.imports.import(&module, &name, EntityType::Function(ty));
        self.functions.push(Passed { key: interface, function: func, import: self.imports.len() - 1 });
        Ok(())
    }

    /// The number of a function's type.
    fn ty(&mut self, WasmSignature { params, results, .. }: &WasmSignature) -> u32 {
        let value = |ty: &WasmType| match ty {
            WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
            WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
            WasmType::F32 => ValType::F32,
            WasmType::F64 => ValType::F64,
        };
        self.types.ty().function(params.iter().map(value), results.iter().map(value));
        self.types.len() - 1
    }

    fn module(mut self) -> Vec<u8> {
        let (mut functions, mut exports, mut code) = (FunctionSection::new(), ExportSection::new(), CodeSection::new());
        let first = self.imports.len();
        let mut add = |name: &str, ty: u32, body: &Code| {
            exports.export(name, ExportKind::Func, first + functions.len());
            functions.function(ty);
            code.function(body);
        };
        self.types.ty().function([ValType::I32; 4], [ValType::I32]);
        add("cabi_realloc", self.types.len() - 1, &room());
        for passed in &std::mem::take(&mut self.functions) {
            let signature = self.resolve.wasm_signature(AbiVariant::GuestExport, passed.function);
            let kind = WasmExportKind::Normal;
            let export = WasmExport::Func { interface: Some(passed.key), func: passed.function, kind };
            let (name, ty) = (self.resolve.wasm_export_name(MANGLING, export), self.ty(&signature));
            add(&name, ty, &self.passed_on(passed, signature.params.len(), first));
        }
        for &Resource { key, id, dropped, .. } in &self.resources {
            let export = WasmExport::ResourceDtor { interface: key, resource: id };
            self.types.ty().function([ValType::I32], []);
            let mut body = Code::new([]);
            body.instructions().local_get(0).call(dropped).end();
            add(&self.resolve.wasm_export_name(MANGLING, export), self.types.len() - 1, &body);
        }
        exports.export("memory", ExportKind::Memory, 0);
        let (mut memories, mut globals) = (MemorySection::new(), GlobalSection::new());
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let at = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(at, &ConstExpr::i32_const(BEGIN));
        let mut module = Module::new();
        module.section(&self.types).section(&self.imports).section(&functions).section(&memories).section(&globals);
        module.section(&exports).section(&code);
        module.finish()
    }

    /// Calls the import with what the export was called with.
    fn passed_on(&self, Passed { function, import, .. }: &Passed<'_>, params: usize, realloc: u32) -> Code {
        let params = u32::try_from(params).expect("a function has few");
        let mut body = Code::new([(1, ValType::I32)]);
        let mut code = body.instructions();
        (0..params).for_each(|param| _ = code.local_get(param));
        let result = function.result.filter(|_| self.resolve.wasm_signature(AbiVariant::GuestImport, function).retptr);
        if let Some(result) = &result {
            let bytes = i32::try_from(self.sizes.size(result).size_wasm32()).expect("a result that fits into memory");
            let align = i32::try_from(self.sizes.align(result).align_wasm32()).expect("a small number");
            code.i32_const(0).i32_const(0).i32_const(align).i32_const(bytes).call(realloc).local_tee(params);
        }
        code.call(*import);
        if let FunctionKind::Constructor(id) = function.kind {
            let resource = self.resources.iter().find(|resource| resource.id == id);
            code.call(resource.expect("it is of the same interface").made);
        }
        if result.is_some() {
            code.local_get(params);
        }
        // The host takes what is returned before it hands over anything else.
        code.i32_const(BEGIN).global_set(0).end();
        body
    }
}

/// `cabi_realloc`: gives room that is not in use. All of it is free again when the call returns.
fn room() -> Code {
    let (old, old_bytes, align, bytes, place) = (0, 1, 2, 3, 4);
    let mut body = Code::new([(1, ValType::I32)]);
    let mut code = body.instructions();
    // The next place that is aligned.
    code.global_get(0).local_get(align).i32_add().i32_const(1).i32_sub();
    code.i32_const(0).local_get(align).i32_sub().i32_and().local_tee(place);
    code.local_get(bytes).i32_add().global_set(0);
    // As many pages more as that needs.
    code.global_get(0).i32_const(PAGE - 1).i32_add().i32_const(PAGE).i32_div_u().memory_size(0).i32_sub();
    code.local_tee(align).i32_const(0).i32_gt_s().if_(BlockType::Empty);
    code.local_get(align).memory_grow(0).i32_const(-1).i32_eq().if_(BlockType::Empty).unreachable().end().end();
    code.local_get(place).local_get(old).local_get(old_bytes).memory_copy(0, 0);
    code.local_get(place).end();
    body
}
