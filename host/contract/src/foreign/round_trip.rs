//! Random types and values, there and back through components.

#![expect(clippy::disallowed_methods, reason = "these stores run nothing but the components made here")]

use super::{Bounds, Function, Outcome, arguments, exports, result, sample};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Component, Func, Linker, Val};
use wasmtime::{Config, Engine, Store};

/// The seed of everything here.
const SEED: u64 = 0x7001_c41b;
/// Values of one type, and types of one component.
const VALUES: usize = 8;
const TYPES: usize = 20;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn is_one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }

    /// Small numbers and bounds more often than others.
    fn bits(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next() % 4,
            1 => u64::MAX - self.next() % 4,
            2 => 1 << self.below(64),
            _ => self.next() >> self.below(64),
        }
    }
}

#[derive(Clone, Debug)]
enum Ty {
    Bool,
    Integer(&'static str, i128, i128),
    F32,
    F64,
    Char,
    String,
    Bytes,
    List(Box<Ty>),
    Fixed(Box<Ty>, usize),
    Map(Box<Ty>, Box<Ty>),
    Record(Vec<Ty>),
    Tuple(Vec<Ty>),
    Variant(Vec<Option<Ty>>),
    Enum(usize),
    Flags(usize),
    Option(Box<Ty>),
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
    Alias(Box<Ty>),
}

const INTEGERS: [(&str, i128, i128); 8] = [
    ("u8", 0, u8::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("u64", 0, u64::MAX as i128),
    ("s8", i8::MIN as i128, i8::MAX as i128),
    ("s16", i16::MIN as i128, i16::MAX as i128),
    ("s32", i32::MIN as i128, i32::MAX as i128),
    ("s64", i64::MIN as i128, i64::MAX as i128),
];

const BYTE: Ty = Ty::Integer("u8", 0, u8::MAX as i128);

fn integer(random: &mut Random) -> Ty {
    let (name, least, most) = *random.of(&INTEGERS);
    Ty::Integer(name, least, most)
}

fn ty(random: &mut Random, depth: usize) -> Ty {
    if depth == 0 || random.is_one_in(8) {
        return match random.below(8) {
            0 => Ty::Bool,
            1 => Ty::F32,
            2 => Ty::F64,
            3 => Ty::Char,
            4 => Ty::String,
            5 => Ty::Bytes,
            _ => integer(random),
        };
    }
    let inner = |random: &mut Random| Box::new(ty(random, depth - 1));
    match random.below(12) {
        0 if random.is_one_in(4) => Ty::List(Box::new(Ty::Alias(Box::new(BYTE)))),
        0 => match inner(random) {
            byte if matches!(*byte, Ty::Integer("u8", ..)) => Ty::Bytes,
            item => Ty::List(item),
        },
        1 => Ty::Fixed(inner(random), 1 + random.below(4)),
        2 => {
            let key = match random.below(4) {
                0 => Ty::Char,
                1 => integer(random),
                _ => Ty::String,
            };
            Ty::Map(Box::new(key), inner(random))
        }
        3 | 4 => Ty::Record((0..=random.below(4)).map(|_| *inner(random)).collect()),
        5 => Ty::Tuple((0..=random.below(3)).map(|_| *inner(random)).collect()),
        6 => Ty::Variant(
            (0..=random.below(4)).map(|_| if random.is_one_in(3) { None } else { Some(*inner(random)) }).collect(),
        ),
        7 => Ty::Enum(1 + random.below(6)),
        8 => Ty::Flags(1 + random.below(32)),
        // Options of options, and lists of aliases of bytes, are written in ways of their own.
        9 if random.is_one_in(2) => Ty::Option(Box::new(Ty::Option(inner(random)))),
        9 => Ty::Option(inner(random)),
        10 => {
            let side = |random: &mut Random| if random.is_one_in(3) { None } else { Some(inner(random)) };
            Ty::Result(side(random), side(random))
        }
        _ => Ty::Alias(inner(random)),
    }
}

fn letters(mut index: usize) -> String {
    let mut name = String::new();
    loop {
        name.push(char::from(b'a' + (index % 26) as u8));
        index /= 26;
        if index == 0 {
            return name;
        }
    }
}

/// How a type is written, with the declarations that it needs.
fn wit(ty: &Ty, declarations: &mut Vec<String>) -> String {
    match ty {
        Ty::Bool => "bool".into(),
        Ty::Integer(name, ..) => (*name).into(),
        Ty::F32 => "f32".into(),
        Ty::F64 => "f64".into(),
        Ty::Char => "char".into(),
        Ty::String => "string".into(),
        Ty::Bytes => "list<u8>".into(),
        Ty::Enum(count) => {
            let cases: Vec<String> = (0..*count).map(|index| format!("case-{}", letters(index))).collect();
            declare(declarations, |name| format!("enum {name} {{ {} }}", cases.join(", ")))
        }
        Ty::Flags(count) => {
            let flags: Vec<String> = (0..*count).map(|index| format!("flag-{}", letters(index))).collect();
            declare(declarations, |name| format!("flags {name} {{ {} }}", flags.join(", ")))
        }
        Ty::List(item) => format!("list<{}>", wit(item, declarations)),
        Ty::Fixed(item, length) => format!("list<{}, {length}>", wit(item, declarations)),
        Ty::Map(key, value) => format!("map<{}, {}>", wit(key, declarations), wit(value, declarations)),
        Ty::Option(inner) => format!("option<{}>", wit(inner, declarations)),
        Ty::Tuple(items) => {
            let items: Vec<String> = items.iter().map(|item| wit(item, declarations)).collect();
            format!("tuple<{}>", items.join(", "))
        }
        Ty::Result(ok, err) => {
            let ok = ok.as_ref().map(|ok| wit(ok, declarations));
            let err = err.as_ref().map(|err| wit(err, declarations));
            match (ok, err) {
                (None, None) => "result".into(),
                (Some(ok), None) => format!("result<{ok}>"),
                (ok, Some(err)) => format!("result<{}, {err}>", ok.unwrap_or("_".into())),
            }
        }
        Ty::Record(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| wit(field, declarations)).collect();
            let mut text = String::new();
            for (index, field) in fields.iter().enumerate() {
                let _ = write!(text, "field-{}: {field}, ", letters(index));
            }
            declare(declarations, |name| format!("record {name} {{ {text} }}"))
        }
        Ty::Variant(cases) => {
            let cases: Vec<Option<String>> =
                cases.iter().map(|case| case.as_ref().map(|case| wit(case, declarations))).collect();
            let mut text = String::new();
            for (index, case) in cases.iter().enumerate() {
                let payload = case.as_ref().map(|case| format!("({case})")).unwrap_or_default();
                let _ = write!(text, "case-{}{payload}, ", letters(index));
            }
            declare(declarations, |name| format!("variant {name} {{ {text} }}"))
        }
        Ty::Alias(inner) => {
            let inner = wit(inner, declarations);
            declare(declarations, |name| format!("type {name} = {inner};"))
        }
    }
}

fn declare(declarations: &mut Vec<String>, declaration: impl Fn(&str) -> String) -> String {
    let name = format!("type-{}", letters(declarations.len()));
    declarations.push(declaration(&name));
    name
}

fn is_optional(ty: &Ty) -> bool {
    match ty {
        Ty::Option(_) => true,
        Ty::Alias(inner) => is_optional(inner),
        _ => false,
    }
}

fn is_byte(ty: &Ty) -> bool {
    match ty {
        Ty::Integer("u8", ..) => true,
        Ty::Alias(inner) => is_byte(inner),
        _ => false,
    }
}

fn text(random: &mut Random) -> String {
    (0..random.below(6)).map(|_| character(random)).collect()
}

fn character(random: &mut Random) -> char {
    match random.below(4) {
        0 => *random.of(&['\0', '"', '\\', '\u{7f}', '\u{d7ff}', '\u{e000}', '\u{10ffff}', '👩', 'é', '\u{301}']),
        1 => char::from_u32((random.next() % 0x11_0000) as u32).unwrap_or('x'),
        _ => char::from(b' ' + random.below(95) as u8),
    }
}

/// A value as a model may give it, and as it must come back.
fn value(random: &mut Random, ty: &Ty) -> (Value, Value) {
    let same = |value: Value| (value.clone(), value);
    match ty {
        Ty::Alias(inner) => value(random, inner),
        Ty::Bool => same(random.is_one_in(2).into()),
        Ty::Integer(name, least, most) => {
            let number = least + (i128::from(random.bits()) % (most - least + 1));
            let edges = [*least, *most, 1 << 53, (1 << 53) - 1, -(1 << 53), 1 - (1 << 53)];
            let edge = Some(*random.of(&edges)).filter(|edge| random.is_one_in(4) && (least..=most).contains(&edge));
            let number = edge.unwrap_or(number);
            let plain = i64::try_from(number).map_or_else(|_| json!(number as u64), |number| json!(number));
            let is_safe = number.abs() < 1 << 53;
            let is_long = name.ends_with("64");
            let given = match random.below(3) {
                0 if is_long => number.to_string().into(),
                1 if is_safe => (number as f64).into(),
                _ => plain.clone(),
            };
            (given, if is_safe { plain } else { number.to_string().into() })
        }
        Ty::F32 => {
            let float = f32::from_bits(random.bits() as u32);
            let short: f64 = float.to_string().parse().unwrap();
            let expected = if float.is_finite() { short.into() } else { odd(float.into()) };
            let given =
                if float.is_finite() && random.is_one_in(2) { f64::from(float).into() } else { expected.clone() };
            (given, expected)
        }
        Ty::F64 => match random.below(3) {
            0 => {
                let whole = random.bits() as u32;
                (whole.into(), f64::from(whole).into())
            }
            1 => same(odd(*random.of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]))),
            _ => {
                let float = f64::from_bits(random.next());
                same(if float.is_finite() { float.into() } else { odd(float) })
            }
        },
        Ty::Char => same(character(random).to_string().into()),
        Ty::String => same(text(random).into()),
        Ty::Bytes => bytes(random),
        Ty::List(item) if is_byte(item) => bytes(random),
        Ty::List(item) => {
            let (given, expected): (Vec<_>, Vec<_>) = (0..random.below(4)).map(|_| value(random, item)).unzip();
            (given.into(), expected.into())
        }
        Ty::Fixed(item, length) => {
            let (given, expected): (Vec<_>, Vec<_>) = (0..*length).map(|_| value(random, item)).unzip();
            (given.into(), expected.into())
        }
        Ty::Tuple(items) => {
            let (given, expected): (Vec<_>, Vec<_>) = items.iter().map(|item| value(random, item)).unzip();
            (given.into(), expected.into())
        }
        Ty::Map(key, inner) if matches!(**key, Ty::String) => {
            let (mut given, mut expected) = (Map::new(), Map::new());
            for _ in 0..random.below(4) {
                let (key, (one, other)) = (text(random), value(random, inner));
                given.insert(key.clone(), one);
                expected.insert(key, other);
            }
            (given.into(), expected.into())
        }
        Ty::Map(key, inner) => {
            let (mut given, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..random.below(4) {
                let (keys, values) = (value(random, key), value(random, inner));
                given.push(json!([keys.0, values.0]));
                expected.push(json!([keys.1, values.1]));
            }
            (given.into(), expected.into())
        }
        Ty::Record(fields) => {
            let (mut given, mut expected) = (Map::new(), Map::new());
            for (index, field) in fields.iter().enumerate() {
                let (name, (one, other)) = (format!("field-{}", letters(index)), value(random, field));
                if is_optional(field) && one.is_null() {
                    if random.is_one_in(2) {
                        given.insert(name, Value::Null);
                    }
                    continue;
                }
                given.insert(name.clone(), one);
                expected.insert(name, other);
            }
            (given.into(), expected.into())
        }
        Ty::Variant(cases) => {
            let index = random.below(cases.len());
            case(random, &format!("case-{}", letters(index)), cases[index].as_ref())
        }
        Ty::Result(ok, err) => {
            let (name, payload) = *random.of(&[("ok", ok), ("err", err)]);
            case(random, name, payload.as_deref())
        }
        Ty::Enum(count) => same(format!("case-{}", letters(random.below(*count))).into()),
        Ty::Flags(count) => {
            let set: Vec<usize> = (0..*count).filter(|_| random.is_one_in(3)).collect();
            let names = |set: &[usize]| -> Value {
                set.iter().map(|index| format!("flag-{}", letters(*index))).collect::<Vec<_>>().into()
            };
            let mut turned = set.clone();
            turned.reverse();
            (names(&turned), names(&set))
        }
        Ty::Option(_) if random.is_one_in(3) => same(Value::Null),
        Ty::Option(inner) => {
            let (given, expected) = value(random, inner);
            if is_optional(inner) { (json!({ "some": given }), json!({ "some": expected })) } else { (given, expected) }
        }
    }
}

fn bytes(random: &mut Random) -> (Value, Value) {
    use base64::Engine;
    let bytes: Vec<u8> = (0..random.below(7)).map(|_| random.next() as u8).collect();
    let padded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let given = if random.is_one_in(2) { padded.trim_end_matches('=').to_owned() } else { padded.clone() };
    (given.into(), padded.into())
}

fn case(random: &mut Random, name: &str, payload: Option<&Ty>) -> (Value, Value) {
    let Some(payload) = payload else { return (name.into(), name.into()) };
    let (given, expected) = value(random, payload);
    (json!({ (name): given }), json!({ (name): expected }))
}

fn odd(float: f64) -> Value {
    if float.is_nan() {
        "NaN".into()
    } else if float > 0.0 {
        "Infinity".into()
    } else {
        "-Infinity".into()
    }
}

/// The same value with one part of it replaced, dropped or added.
fn mutated(random: &mut Random, value: &mut Value) {
    let inner = match value {
        Value::Array(items) if !items.is_empty() && !random.is_one_in(4) => {
            let index = random.below(items.len());
            match random.below(6) {
                0 => {
                    items.remove(index);
                    return;
                }
                1 => {
                    let copy = items[index].clone();
                    items.push(copy);
                    return;
                }
                _ => items.get_mut(index),
            }
        }
        Value::Object(fields) if !fields.is_empty() && !random.is_one_in(4) => {
            let index = random.below(fields.len());
            let key = fields.keys().nth(index).unwrap().clone();
            match random.below(6) {
                0 => {
                    fields.remove(&key);
                    return;
                }
                1 => {
                    fields.insert(text(random), Value::Null);
                    return;
                }
                _ => fields.get_mut(&key),
            }
        }
        _ => None,
    };
    if let Some(inner) = inner {
        return mutated(random, inner);
    }
    *value = match random.below(11) {
        0 => Value::Null,
        1 => json!(random.is_one_in(2)),
        2 => json!(random.bits()),
        3 => json!(random.bits() as i64),
        9 => json!(1e39),
        4 => serde_json::Number::from_f64(f64::from_bits(random.next())).map_or(Value::Null, Value::Number),
        5 => json!(text(random)),
        6 => json!([value.take()]),
        7 => json!({ "some": value.take() }),
        8 => json!({ (format!("case-{}", letters(random.below(3)))): value.take() }),
        _ => (*random.of(&["ok", "case-a", "1e3", "12", "-3", "AA==", "AA=", "NaN", "+5", "", "é"])).into(),
    };
}

/// A component with one function for each type, which gives back what it takes: a tuple this long is passed by its
/// address, and comes back at the same.
fn echoing(types: &[Ty]) -> Vec<u8> {
    let mut declarations = Vec::new();
    let (mut functions, mut cores) = (String::new(), String::new());
    for (index, ty) in types.iter().enumerate() {
        let tuple = format!("tuple<{}{}>", wit(ty, &mut declarations), ", u8".repeat(17));
        let name = format!("echo-{}", letters(index));
        let _ = writeln!(functions, "{name}: func(x: {tuple}) -> {tuple};");
        let _ = writeln!(cores, r#"(func (export "test:echo/api#{name}") (param i32) (result i32) local.get 0)"#);
    }
    let declarations = declarations.join("\n");
    let wit = format!("package test:echo; interface api {{ {declarations}\n{functions} }} world w {{ export api; }}");
    let module = format!(
        r#"(module
            (memory (export "memory") 16)
            (global $end (mut i32) (i32.const 8))
            (func (export "cabi_realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32)
                (result i32) (local $at i32)
                (local.set $at (i32.and
                    (i32.add (global.get $end) (i32.sub (local.get $align) (i32.const 1)))
                    (i32.sub (i32.const 0) (local.get $align))))
                (global.set $end (i32.add (local.get $at) (local.get $size)))
                (local.get $at))
            {cores})"#
    );
    sample::around(&wit, &module)
}

struct Guest {
    engine: Engine,
    linker: Linker<()>,
    component: Component,
}

impl Guest {
    fn new(engine: &Engine, bytes: &[u8]) -> Self {
        let component = Component::new(engine, bytes).unwrap_or_else(|error| panic!("{error:?}"));
        Self { engine: engine.clone(), linker: Linker::new(engine), component }
    }

    fn function(&self, interface: &str, name: &str) -> (Store<()>, Func, ComponentFunc) {
        let mut store = Store::new(&self.engine, ());
        let instance = self.linker.instantiate(&mut store, &self.component).expect("it starts");
        let index = instance.get_export_index(&mut store, None, interface).expect("the interface");
        let index = instance.get_export_index(&mut store, Some(&index), name).expect("the function");
        let function = instance.get_func(&mut store, index).expect("a function");
        let ty = function.ty(&store);
        (store, function, ty)
    }
}

fn engine() -> Engine {
    let mut config = Config::new();
    config.wasm_component_model_map(true).wasm_component_model_fixed_length_lists(true);
    Engine::new(&config).expect("an engine")
}

fn with_tail(value: Value) -> Value {
    let mut items = vec![value];
    items.extend((0..17).map(|number| json!(number)));
    items.into()
}

#[test]
fn random_values_of_random_types_come_back_the_same() {
    let cases = if std::env::var_os("TOOLCRIB_LONG").is_some() { 100_000 } else { 1000 };
    let mut random = Random(SEED);
    let engine = engine();
    let (mut done, mut refused, mut accepted) = (0, 0, 0);
    let mut stray: Option<Val> = None;
    while done < cases {
        let types: Vec<Ty> = (0..TYPES).map(|_| ty(&mut random, 4)).collect();
        let bytes = echoing(&types);
        let bounds = Bounds { nodes: 20_000, depth: 64, bytes: 1 << 20 };
        let found = exports(&bytes, bounds).unwrap_or_else(|error| panic!("seed {SEED:#x}, case {done}: {error}"));
        assert_eq!(found.left_out, [], "seed {SEED:#x}");
        let guest = Guest::new(&engine, &bytes);
        for (ty, function) in types.iter().zip(&found.functions) {
            let context = format!("seed {SEED:#x}, case {done}, {ty:?}");
            let Function { input_schema, output_schema, .. } = function;
            let input = jsonschema::draft202012::new(input_schema).unwrap_or_else(|error| panic!("{context}: {error}"));
            let output = jsonschema::draft202012::new(output_schema.as_ref().expect("a result")).expect("a schema");
            assert!(jsonschema::draft202012::meta::is_valid(input_schema), "{context}: {input_schema}");
            for _ in 0..VALUES {
                let (given, expected) = value(&mut random, ty);
                let given = json!({ "x": with_tail(given) });
                let expected = with_tail(expected);
                assert!(input.is_valid(&given), "{context}: {given} is not in {input_schema}");
                assert!(output.is_valid(&expected), "{context}: {expected} is not in {output_schema:?}");
                let (mut store, func, ty) = guest.function("test:echo/api", &function.name);
                let values = arguments(&ty, given.as_object().unwrap());
                let values = values.unwrap_or_else(|error| panic!("{context}: {given}: {error}"));
                let mut results = [Val::Bool(false)];
                func.call(&mut store, &values, &mut results).unwrap_or_else(|error| panic!("{context}: {error:?}"));
                let [returned] = results;
                if let Some(stray) = stray.replace(returned.clone()) {
                    let _ = result(&ty, Some(stray));
                }
                let Outcome::Ok(Some(returned)) = result(&ty, Some(returned)) else { panic!("{context}") };
                assert_eq!(returned, expected, "{context}: {given}");

                let mut wrong = given;
                mutated(&mut random, &mut wrong["x"][0]);
                let is_valid = input.is_valid(&wrong);
                match arguments(&ty, wrong.as_object().unwrap()) {
                    Ok(values) => {
                        accepted += 1;
                        assert!(is_valid, "{context}: {wrong} is accepted, against {input_schema}");
                        let mut results = [Val::Bool(false)];
                        // A fresh store has its memory for itself.
                        let (mut store, func, _) = guest.function("test:echo/api", &function.name);
                        func.call(&mut store, &values, &mut results)
                            .unwrap_or_else(|error| panic!("{context}: {error:?}"));
                    }
                    Err(error) => {
                        refused += 1;
                        // These are in no schema: base64, the range of digits, and that of `f32`.
                        let is_known =
                            ["base64", "an integer from", "a number from"].iter().any(|words| error.contains(words));
                        assert!(!is_valid || is_known, "{context}: {wrong}: {error}");
                        assert!(error.starts_with("`x/0") && error.len() < 3000, "{context}: {error}");
                    }
                }
                done += 1;
            }
        }
    }
    println!("{done} values came back; of as many mutated ones {refused} were refused, {accepted} accepted");
    assert!(refused > done / 4 && accepted > done / 100, "{refused} refused, {accepted} accepted");
}
