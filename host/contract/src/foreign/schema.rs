//! WIT types as JSON Schema 2020-12. `values.rs` reads and writes values by the same table:
//!
//! | WIT | JSON | Notes |
//! |---|---|---|
//! | `bool`, `string` | boolean, string | |
//! | `char` | string of one code point | JSON Schema counts code points, not UTF-16 units |
//! | `u8` … `u32`, `s8` … `s32` | integer with bounds | `5.0` is an integer, as in JSON Schema |
//! | `u64`, `s64` | integer, or a string of digits | results use digits beyond ±(2^53-1): JavaScript would round them |
//! | `f32`, `f64` | number | or `"NaN"`, `"Infinity"`, `"-Infinity"`; `f32` as short as it can be |
//! | `list<u8>` | base64 in the standard alphabet | padding may be omitted in arguments |
//! | `list<T>`, `list<T, N>` | array | `list<u8, N>` too |
//! | `tuple` | array, `prefixItems` | |
//! | `record` | object | an `option` is not required; results omit it when it is `none` |
//! | `enum` | one of the names | docs of the cases are lines of the description |
//! | `flags` | array of unique names | results have them in the order of the type |
//! | `option<T>` | the type, or null | |
//! | `option<option<T>>` | null, `{"some": null}` or `{"some": …}` | `null` is the outer `none` only |
//! | `variant` | `{"case": payload}`, or `"case"` without a payload | |
//! | `result` inside | `{"ok": …}`, `{"err": …}`, or `"ok"`, `"err"` without a payload | |
//! | `result` as the result of a function | the payload of `ok` | `err` is a failure of the call |
//! | `map<string, T>` | object | results: of two equal keys the last one counts |
//! | other `map<K, V>` | array of pairs `[key, value]` | |
//! | `own`, `borrow`, `stream`, `future`, `error-context` | refused | they do not outlive the call |
//!
//! Objects take no other keys. Aliases and `use` lead to the type that they name.

use super::docs;
use base::text::names::is_name;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use wasmparser::PrimitiveValType as Primitive;
use wasmparser::component_types::{
    ComponentDefinedType as Defined, ComponentDefinedTypeId as TypeId, ComponentFuncType, ComponentValType as Type,
};
use wasmparser::types::Types;

/// Aliases of a type whose docs are searched.
const MOST_ALIASES: usize = 8;

/// The largest integer that every reader of JSON keeps exact: 2^53-1.
pub(super) const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// How large the schema of one function may become.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Schemas and names in it.
    pub nodes: usize,
    /// How deep arrays and objects are nested.
    pub depth: usize,
    /// Length as JSON.
    pub bytes: usize,
}

/// The types of a component, and those of them that have names.
pub(super) struct Typed<'t> {
    pub(super) types: &'t Types,
    pub(super) named: HashMap<TypeId, Named<'t>>,
}

/// A type to which an interface or the world gives a name.
pub(super) struct Named<'t> {
    /// What is written about it.
    pub(super) said: Option<&'t Value>,
    /// The type that gets the name. It may have another name elsewhere.
    pub(super) names: TypeId,
}

/// The schemas of one function.
pub(super) struct Schemas {
    /// Of its arguments.
    pub(super) input: Value,
    /// Of its result, if it has one.
    pub(super) output: Option<Value>,
}

/// Which way values go.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Input,
    Output,
}

type Node = Map<String, Value>;

impl Default for Bounds {
    /// What a tool may have by default. With so few nodes, a schema also passes the check of how many of them look at
    /// one value.
    fn default() -> Self {
        Self { nodes: 2000, depth: 32, bytes: 64 << 10 }
    }
}

/// Makes both schemas of a function; an error is the reason why it cannot become a tool.
pub(super) fn of_function(typed: &Typed<'_>, function: &ComponentFuncType, bounds: Bounds) -> Result<Schemas, String> {
    let output = match function.result {
        Some(result) => match typed.defined(result) {
            Some(Defined::Result { ok, .. }) => *ok,
            _ => Some(result),
        },
        None => None,
    };
    let make = |with_docs| {
        let maker = |direction| Maker { typed, direction, with_docs, bounds, nodes: bounds.nodes, bytes: bounds.bytes };
        let input = fitting(maker(Direction::Input).parameters(function)?, bounds)?;
        let output = output.map(|ty| fitting(maker(Direction::Output).of(ty, 0)?, bounds)).transpose()?;
        Ok(Schemas { input, output })
    };
    // A tool with fewer words is better than none.
    make(true).or_else(|reason: String| if reason == too_long(bounds) { make(false) } else { Err(reason) })
}

impl<'t> Typed<'t> {
    /// How a type is defined; nothing for a primitive type. An alias is defined as the type that it names.
    fn defined(&self, ty: Type) -> Option<&'t Defined> {
        match ty {
            Type::Primitive(_) => None,
            Type::Type(id) => Some(&self.types[id]),
        }
    }

    fn is(&self, ty: Type, primitive: Primitive) -> bool {
        match ty {
            Type::Primitive(ty) => ty == primitive,
            Type::Type(id) => matches!(&self.types[id], Defined::Primitive(ty) if *ty == primitive),
        }
    }

    /// What is written about a type, and then about the types that it is an alias of.
    fn said(&self, ty: Type) -> Vec<&'t Value> {
        let Type::Type(id) = ty else { return Vec::new() };
        let next = |id: &TypeId| self.named.get(id).map(|named| named.names).or_else(|| self.types.peel_alias(*id));
        let ids = std::iter::successors(Some(id), next).take(MOST_ALIASES);
        ids.filter_map(|id| self.named.get(&id)?.said).collect()
    }
}

fn with_length(mut array: Node, length: Value) -> Node {
    array.insert("minItems".into(), length.clone());
    array.insert("maxItems".into(), length);
    array
}

fn fitting(node: Node, bounds: Bounds) -> Result<Value, String> {
    let schema = Value::Object(node);
    if schema.to_string().len() > bounds.bytes { Err(too_long(bounds)) } else { Ok(schema) }
}

fn too_long(bounds: Bounds) -> String {
    format!("its types are too large: their JSON Schema has more than {} KiB", bounds.bytes >> 10)
}

struct Maker<'t> {
    typed: &'t Typed<'t>,
    direction: Direction,
    with_docs: bool,
    bounds: Bounds,
    /// How many more nodes the schema may have. A type that uses another type twice, which uses another twice, and so
    /// on, is small in the component, but a schema writes it out: it doubles with each level.
    nodes: usize,
    /// How many more bytes of names and docs it may have.
    bytes: usize,
}

impl<'t> Maker<'t> {
    fn parameters(&mut self, function: &ComponentFuncType) -> Result<Node, String> {
        let parameters = function.params.iter().map(|(name, ty)| (name.as_str(), *ty));
        self.object(parameters, &[], 0)
    }

    /// The schema of a type, for a place `at` levels deep. The bound of the depth also bounds the recursion.
    fn of(&mut self, ty: Type, at: usize) -> Result<Node, String> {
        self.check_depth(at + 1)?;
        let said = self.typed.said(ty);
        let mut node = match ty {
            Type::Primitive(ty) => self.primitive(ty, at)?,
            Type::Type(id) => self.composed(&self.typed.types[id], &said, at)?,
        };
        self.describe(&mut node, said.iter().find_map(|said| docs::text(said)))?;
        Ok(node)
    }

    fn primitive(&mut self, ty: Primitive, at: usize) -> Result<Node, String> {
        match ty {
            Primitive::Bool => self.node(at, 1, [("type", "boolean".into())]),
            Primitive::U8 => self.integer(at, 0, u8::MAX.into()),
            Primitive::U16 => self.integer(at, 0, u16::MAX.into()),
            Primitive::U32 => self.integer(at, 0, u32::MAX.into()),
            Primitive::S8 => self.integer(at, i8::MIN.into(), i8::MAX.into()),
            Primitive::S16 => self.integer(at, i16::MIN.into(), i16::MAX.into()),
            Primitive::S32 => self.integer(at, i32::MIN.into(), i32::MAX.into()),
            Primitive::U64 => self.long(at, "^[0-9]{1,20}$", 0, u64::MAX),
            Primitive::S64 => self.long(at, "^-?[0-9]{1,19}$", i64::MIN, i64::MAX.unsigned_abs()),
            Primitive::F32 | Primitive::F64 => {
                let types = json!(["number", "string"]);
                self.node(at, 2, [("type", types), ("pattern", "^(NaN|-?Infinity)$".into())])
            }
            Primitive::Char => {
                let one = [("type", "string".into()), ("minLength", 1.into()), ("maxLength", 1.into())];
                self.node(at, 1, one)
            }
            Primitive::String => self.node(at, 1, [("type", "string".into())]),
            Primitive::ErrorContext => Err("it uses `error-context`, which JSON cannot express".into()),
        }
    }

    fn composed(&mut self, ty: &'t Defined, said: &[&Value], at: usize) -> Result<Node, String> {
        match ty {
            Defined::Primitive(ty) => self.primitive(*ty, at),
            Defined::Record(record) => {
                self.object(record.fields.iter().map(|(name, ty)| (name.as_str(), *ty)), said, at)
            }
            Defined::Flags(flags) => {
                let (names, docs) = self.names(flags.iter().map(|name| name.as_str()), said)?;
                let items = json!({ "type": "string", "enum": names });
                let array = [("type", "array".into()), ("uniqueItems", true.into()), ("items", items)];
                let mut node = self.node(at, 3, array)?;
                self.describe(&mut node, docs)?;
                Ok(node)
            }
            Defined::Enum(cases) => {
                let (names, docs) = self.names(cases.iter().map(|name| name.as_str()), said)?;
                let mut node = self.node(at, 2, [("type", "string".into()), ("enum", names.into())])?;
                self.describe(&mut node, docs)?;
                Ok(node)
            }
            Defined::Variant(variant) => {
                self.cases(variant.cases.iter().map(|(name, case)| (name.as_str(), case.ty)), said, at)
            }
            Defined::Result { ok, err, .. } => self.cases([("ok", *ok), ("err", *err)], &[], at),
            Defined::Option { ty, .. } => self.option(*ty, at),
            Defined::List { element, .. } if self.typed.is(*element, Primitive::U8) => {
                self.node(at, 1, [("type", "string".into()), ("contentEncoding", "base64".into())])
            }
            Defined::List { element, .. } => {
                let items = self.of(*element, at + 1)?;
                self.node(at, 2, [("type", "array".into()), ("items", items.into())])
            }
            Defined::FixedLengthList { element, length, .. } => {
                let items = self.of(*element, at + 1)?;
                let array = [("type", "array".into()), ("items", items.into())];
                self.node(at, 2, array).map(|node| with_length(node, (*length).into()))
            }
            Defined::Tuple(tuple) => self.tuple(&tuple.types, at),
            Defined::Map { key, value, .. } if self.typed.is(*key, Primitive::String) => {
                let values = self.of(*value, at + 1)?;
                self.node(at, 2, [("type", "object".into()), ("additionalProperties", values.into())])
            }
            Defined::Map { key, value, .. } => {
                let pair = self.tuple(&[*key, *value], at + 1)?;
                self.node(at, 2, [("type", "array".into()), ("items", pair.into())])
            }
            Defined::Own(_) | Defined::Borrow(_) => Err("it uses a resource, which lives only in the component".into()),
            Defined::Future { .. } => Err("it uses a `future`, which JSON cannot express".into()),
            Defined::Stream { .. } => Err("it uses a `stream`, which JSON cannot express".into()),
        }
    }

    fn integer(&mut self, at: usize, least: i64, most: i64) -> Result<Node, String> {
        self.node(at, 1, [("type", "integer".into()), ("minimum", least.into()), ("maximum", most.into())])
    }

    /// An integer of 64 bits, or its digits.
    fn long(&mut self, at: usize, digits: &str, least: i64, most: u64) -> Result<Node, String> {
        let (least, most) = match self.direction {
            Direction::Input => (least, most),
            Direction::Output => (least.max(-SAFE_INTEGER), most.min(SAFE_INTEGER.unsigned_abs())),
        };
        let types = json!(["integer", "string"]);
        let bounds = [("type", types), ("minimum", least.into()), ("maximum", most.into()), ("pattern", digits.into())];
        self.node(at, 2, bounds)
    }

    fn object<'n>(
        &mut self,
        fields: impl IntoIterator<Item = (&'n str, Type)>,
        said: &[&Value],
        at: usize,
    ) -> Result<Node, String> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (name, ty) in fields {
            self.property_name(name)?;
            let mut property = self.of(ty, at + 2)?;
            self.describe(&mut property, part(said, name))?;
            properties.insert(name.into(), property.into());
            if !matches!(self.typed.defined(ty), Some(Defined::Option { .. })) {
                required.push(name);
            }
        }
        let mut node = self.node(at, 2, [("type", "object".into()), ("properties", properties.into())])?;
        if !required.is_empty() {
            node.insert("required".into(), required.into());
        }
        node.insert("additionalProperties".into(), false.into());
        Ok(node)
    }

    /// `{"case": payload}` or `"case"`.
    fn cases<'n>(
        &mut self,
        cases: impl IntoIterator<Item = (&'n str, Option<Type>)>,
        said: &[&Value],
        at: usize,
    ) -> Result<Node, String> {
        let mut alternatives = Vec::new();
        for (name, payload) in cases {
            let mut alternative = match payload {
                Some(ty) => self.object_of_one(name, ty, at + 2)?,
                None => {
                    self.name(name)?;
                    self.node(at + 2, 1, [("const", name.into())])?
                }
            };
            self.describe(&mut alternative, part(said, name))?;
            alternatives.push(Value::Object(alternative));
        }
        self.node(at, 2, [("oneOf", alternatives.into())])
    }

    /// An object with this key alone, whose value may be null.
    fn object_of_one(&mut self, name: &str, ty: Type, at: usize) -> Result<Node, String> {
        self.property_name(name)?;
        let value = self.of(ty, at + 2)?;
        let mut properties = Map::new();
        properties.insert(name.into(), value.into());
        let object = [
            ("type", "object".into()),
            ("properties", properties.into()),
            ("required", json!([name])),
            ("additionalProperties", false.into()),
        ];
        self.node(at, 2, object)
    }

    fn option(&mut self, inner: Type, at: usize) -> Result<Node, String> {
        let mut node = match self.typed.defined(inner) {
            Some(Defined::Option { .. }) => self.object_of_one("some", inner, at)?,
            // Their schemas are lists of alternatives, without a `type` to add null to.
            Some(Defined::Variant(_) | Defined::Result { .. }) => {
                let either = vec![self.of(inner, at + 2)?.into(), json!({ "type": "null" })];
                return self.node(at, 2, [("anyOf", either.into())]);
            }
            _ => self.of(inner, at)?,
        };
        self.check_depth(at + 2)?;
        match node.get_mut("type") {
            Some(Value::Array(types)) => types.push("null".into()),
            Some(one) => *one = json!([one.take(), "null"]),
            None => return Err("one of its types cannot be optional in JSON".into()),
        }
        if let Some(Value::Array(values)) = node.get_mut("enum") {
            values.push(Value::Null);
        }
        Ok(node)
    }

    fn tuple(&mut self, types: &[Type], at: usize) -> Result<Node, String> {
        let mut items = Vec::new();
        for ty in types {
            items.push(Value::Object(self.of(*ty, at + 2)?));
        }
        let length = Value::from(items.len());
        let array = [("type", "array".into()), ("prefixItems", items.into()), ("items", false.into())];
        self.node(at, 2, array).map(|node| with_length(node, length))
    }

    /// Makes a schema that is `own` levels deep without those of its parts. The parts are moved: `json!` would copy
    /// them on every level.
    fn node<const N: usize>(&mut self, at: usize, own: usize, entries: [(&str, Value); N]) -> Result<Node, String> {
        self.check_depth(at + own)?;
        self.spend(1, 0)?;
        Ok(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    fn check_depth(&self, depth: usize) -> Result<(), String> {
        if depth <= self.bounds.depth {
            return Ok(());
        }
        Err(format!("its types nest too deep: their JSON Schema has more than {} levels", self.bounds.depth))
    }

    /// The name of a property. The checks of schemas refuse longer ones, and with them the whole plugin.
    fn property_name(&mut self, name: &str) -> Result<(), String> {
        if !is_name(name) {
            let shown: String = name.chars().take(40).collect();
            return Err(format!("it has a parameter, field or case with a name longer than 64 characters: `{shown}…`"));
        }
        self.name(name)
    }

    fn name(&mut self, name: &str) -> Result<(), String> {
        self.spend(1, name.len())
    }

    /// Names of cases or flags, and a line for each that something is written about.
    fn names<'n>(
        &mut self,
        all: impl Iterator<Item = &'n str>,
        said: &[&Value],
    ) -> Result<(Vec<&'n str>, Option<String>), String> {
        let (mut names, mut lines) = (Vec::new(), Vec::new());
        for name in all {
            self.name(name)?;
            names.push(name);
            lines.extend(part(said, name).map(|text| format!("- `{name}`: {}", text.replace('\n', " "))));
        }
        Ok((names, (!lines.is_empty()).then(|| lines.join("\n"))))
    }

    /// Puts docs in front of the description that the schema has.
    fn describe(&mut self, node: &mut Node, docs: Option<String>) -> Result<(), String> {
        let Some(docs) = docs.filter(|_| self.with_docs) else { return Ok(()) };
        self.spend(0, docs.len())?;
        let text = match node.get("description").and_then(Value::as_str) {
            Some(before) => format!("{docs}\n{before}"),
            None => docs,
        };
        node.insert("description".into(), text.into());
        Ok(())
    }

    fn spend(&mut self, nodes: usize, bytes: usize) -> Result<(), String> {
        let nodes = self.nodes.checked_sub(nodes).ok_or_else(|| {
            format!("its types are too large: their JSON Schema has more than {} parts", self.bounds.nodes)
        })?;
        let bytes = self.bytes.checked_sub(bytes).ok_or_else(|| too_long(self.bounds))?;
        (self.nodes, self.bytes) = (nodes, bytes);
        Ok(())
    }
}

/// What is written about a field, a case or a flag.
fn part(said: &[&Value], name: &str) -> Option<String> {
    said.iter().find_map(|said| docs::part(said, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{Function, exports, sample};

    /// The schemas of a type as a parameter and as a result.
    fn schemas(declarations: &str, ty: &str) -> (Value, Value) {
        let wit = format!(
            "package a:b; interface i {{ {declarations} f: func(x: {ty}) -> tuple<{ty}>; }} world w {{ export i; }}"
        );
        let found = exports(&sample::documented(&wit), Bounds::default()).expect("a component");
        let function = found.functions.first().unwrap_or_else(|| panic!("{:?}", found.left_out));
        let output = function.output_schema.as_ref().expect("a result");
        (function.input_schema["properties"]["x"].clone(), output["prefixItems"][0].clone())
    }

    fn schema(declarations: &str, ty: &str) -> Value {
        let (input, output) = schemas(declarations, ty);
        assert_eq!(input, output);
        input
    }

    fn function(wit: &str) -> Function {
        let wit = format!("package a:b; world w {{ {wit} }}");
        let found = exports(&sample::component(&wit), Bounds::default()).expect("a component");
        found.functions.into_iter().next().unwrap_or_else(|| panic!("{:?}", found.left_out))
    }

    fn integer(least: i64, most: u64) -> Value {
        json!({ "type": "integer", "minimum": least, "maximum": most })
    }

    #[test]
    fn primitive_types() {
        assert_eq!(schema("", "bool"), json!({ "type": "boolean" }));
        assert_eq!(schema("", "string"), json!({ "type": "string" }));
        assert_eq!(schema("", "char"), json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
        assert_eq!(schema("", "u8"), integer(0, 255));
        assert_eq!(schema("", "u16"), integer(0, 65535));
        assert_eq!(schema("", "u32"), integer(0, 4_294_967_295));
        assert_eq!(schema("", "s8"), integer(-128, 127));
        assert_eq!(schema("", "s16"), integer(-32768, 32767));
        assert_eq!(schema("", "s32"), integer(-2_147_483_648, 2_147_483_647));
        let float = json!({ "type": ["number", "string"], "pattern": "^(NaN|-?Infinity)$" });
        assert_eq!((schema("", "f32"), schema("", "f64")), (float.clone(), float));
    }

    #[test]
    fn integers_of_64_bits_have_other_bounds_in_results() {
        let long = |least: i64, most: u64, digits: &str| {
            let types = ["integer", "string"];
            json!({ "type": types, "minimum": least, "maximum": most, "pattern": digits })
        };
        let (most, digits) = (9_007_199_254_740_991, "^[0-9]{1,20}$");
        assert_eq!(schemas("", "u64"), (long(0, u64::MAX, digits), long(0, most, digits)));
        let digits = "^-?[0-9]{1,19}$";
        let output = long(-9_007_199_254_740_991, most, digits);
        assert_eq!(schemas("", "s64"), (long(i64::MIN, i64::MAX.unsigned_abs(), digits), output));
    }

    #[test]
    fn lists_tuples_and_maps() {
        let byte = integer(0, 255);
        let base64 = json!({ "type": "string", "contentEncoding": "base64" });
        assert_eq!(schema("", "list<u8>"), base64);
        assert_eq!(schema("type byte = u8; type octet = byte;", "list<octet>"), base64);
        assert_eq!(schema("", "list<bool>"), json!({ "type": "array", "items": { "type": "boolean" } }));
        assert_eq!(schema("", "list<u8, 4>"), json!({ "type": "array", "items": byte, "minItems": 4, "maxItems": 4 }));
        let tuple = |types: [Value; 2]| {
            let mut array = json!({ "type": "array", "prefixItems": types, "items": false });
            (array["minItems"], array["maxItems"]) = (2.into(), 2.into());
            array
        };
        assert_eq!(schema("", "tuple<u8, string>"), tuple([byte.clone(), json!({ "type": "string" })]));
        assert_eq!(schema("", "map<string, u8>"), json!({ "type": "object", "additionalProperties": byte }));
        let pairs = json!({ "type": "array", "items": tuple([byte, json!({ "type": "boolean" })]) });
        assert_eq!(schema("", "map<u8, bool>"), pairs);
    }

    #[test]
    fn records_enums_flags_and_variants() {
        assert_eq!(
            schema("/// Whole.\n record r { /// One.\n a: bool, /// Two.\n b: option<bool> }", "r"),
            json!({
                "type": "object",
                "properties": {
                    "a": { "type": "boolean", "description": "One." },
                    "b": { "type": ["boolean", "null"], "description": "Two." },
                },
                "required": ["a"],
                "additionalProperties": false,
                "description": "Whole.",
            })
        );
        assert_eq!(
            schema("enum e { /// First.\n a, b }", "e"),
            json!({ "type": "string", "enum": ["a", "b"], "description": "- `a`: First." })
        );
        assert_eq!(
            schema("/// Some.\n flags g { a, /// Last.\n b }", "g"),
            json!({
                "type": "array",
                "uniqueItems": true,
                "items": { "type": "string", "enum": ["a", "b"] },
                "description": "Some.\n- `b`: Last.",
            })
        );
        assert_eq!(
            schema("variant v { /// With.\n a(bool), /// Without.\n b }", "v"),
            json!({ "oneOf": [
                {
                    "type": "object",
                    "properties": { "a": { "type": "boolean" } },
                    "required": ["a"],
                    "additionalProperties": false,
                    "description": "With.",
                },
                { "const": "b", "description": "Without." },
            ] })
        );
    }

    #[test]
    fn a_field_says_more_than_its_type_and_an_alias_more_than_what_it_names() {
        let types = "/// State.\n enum e { a } /// Alias.\n type alias = e; record r { /// Field.\n x: alias, y: e }";
        let properties = &schema(types, "r")["properties"];
        assert_eq!(properties["x"]["description"], "Field.\nAlias.");
        assert_eq!(properties["y"]["description"], "State.");
    }

    #[test]
    fn options_and_results() {
        assert_eq!(schema("", "option<u8>"), json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 255 }));
        assert_eq!(schema("enum e { a }", "option<e>"), json!({ "type": ["string", "null"], "enum": ["a", null] }));
        assert_eq!(
            schema("", "option<option<bool>>"),
            json!({
                "type": ["object", "null"],
                "properties": { "some": { "type": ["boolean", "null"] } },
                "required": ["some"],
                "additionalProperties": false,
            })
        );
        let result = json!({ "oneOf": [
            {
                "type": "object",
                "properties": { "ok": { "type": "string" } },
                "required": ["ok"],
                "additionalProperties": false,
            },
            { "const": "err" },
        ] });
        assert_eq!(schema("", "result<string>"), result);
        assert_eq!(schema("", "option<result<string>>"), json!({ "anyOf": [result, { "type": "null" }] }));
    }

    #[test]
    fn a_function_takes_an_object_and_gives_what_it_gives_on_success() {
        let none = function("export f: func();");
        assert_eq!(none.input_schema, json!({ "type": "object", "properties": {}, "additionalProperties": false }));
        assert_eq!(none.output_schema, None);
        let some = function("type maybe = option<u8>; export f: func(b: maybe, a: bool) -> result<string, u8>;");
        assert_eq!(some.input_schema["required"], json!(["a"]));
        assert_eq!(some.output_schema, Some(json!({ "type": "string" })));
        let aliased = function("type answer = result<_, string>; export f: func() -> answer;");
        assert_eq!(aliased.output_schema, None);
    }

    #[test]
    fn what_cannot_be_written_as_json_is_refused() {
        let cases = [
            ("resource r;", "own<r>", "resource"),
            ("resource r;", "list<borrow<r>>", "resource"),
            ("", "stream<u8>", "`stream`"),
            ("", "option<future<u8>>", "`future`"),
            ("", "error-context", "`error-context`"),
            (&format!("record r {{ {}: u8 }}", "a".repeat(65)), "r", "longer than 64 characters"),
        ];
        for (declarations, ty, word) in cases {
            let wit =
                format!("package a:b; interface i {{ {declarations} f: func(x: {ty}); }} world w {{ export i; }}");
            let found = exports(&sample::component(&wit), Bounds::default()).expect("a component");
            assert!(found.functions.is_empty() && found.left_out[0].1.contains(word), "{ty}: {:?}", found.left_out);
        }
    }

    #[test]
    fn bounds_are_exact() {
        fn depth(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
                Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
                _ => 0,
            }
        }
        let types =
            "enum e { a } flags g { a } record r { x: option<e>, y: list<g> } variant v { a(r), b(map<u8, r>) }";
        for ty in [
            "bool",
            "e",
            "g",
            "r",
            "v",
            "option<v>",
            "list<option<option<r>>>",
            "tuple<u64, f32>",
            "map<string, list<u8, 3>>",
        ] {
            let wit = format!(
                "package a:b; interface i {{ {types} f: func(x: {ty}) -> result<{ty}, u8>; }} world w {{ export i; }}"
            );
            let bytes = sample::component(&wit);
            let found = exports(&bytes, Bounds::default()).expect("a component");
            let Function { input_schema, output_schema, .. } = &found.functions[0];
            assert!(depth(output_schema.as_ref().expect("a result")) < depth(input_schema));
            let (depth, length) = (depth(input_schema), input_schema.to_string().len());
            let length = length.max(output_schema.as_ref().map_or(0, |schema| schema.to_string().len()));
            for (depth, bytes_allowed, is_tool) in
                [(depth, length, true), (depth - 1, length, false), (depth, length - 1, false)]
            {
                let bounds = Bounds { depth, bytes: bytes_allowed, ..Bounds::default() };
                let found = exports(&bytes, bounds).expect("a component");
                assert_eq!(found.functions.len() == 1, is_tool, "{ty} {bounds:?} {:?}", found.left_out);
            }
        }
    }

    #[test]
    fn words_that_do_not_fit_are_dropped_before_the_function_is() {
        let fields: String = (0..100).map(|index| format!("/// {}\n f-{index}: bool, ", "x".repeat(900))).collect();
        let schema = schema(&format!("record r {{ {fields} }}"), "r");
        assert_eq!(schema["properties"]["f-7"], json!({ "type": "boolean" }));
    }
}
