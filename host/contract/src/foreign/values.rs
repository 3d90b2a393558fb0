//! Values of components from JSON, and JSON from their results, by the table of `schema.rs`.
//!
//! Both directions follow the type and recurse only as deep as it does. A component's types are finite, and validation
//! refuses those that are more than 100 levels deep. The JSON comes from a model and the value from the component: if
//! either does not fit the type, the call fails.
//!
//! wasm-wave, which wasmtime offers for this, reads and writes WAVE; models write JSON. component2json of wassette is on no registry. It has no bound
//! on the values of a call, `number` as the schema of every integer, and bytes only as an array of numbers, 40 bytes of memory each.

use super::schema::SAFE_INTEGER;
use base::text::sanitize;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};
use std::fmt;
use wasmtime::component::types::{self, ComponentFunc};
use wasmtime::component::{Type, Val};

/// Values in the arguments of one call. Each takes 40 bytes of memory, even one byte of base64 or an option that is
/// omitted: a few KiB of empty objects could otherwise become gigabytes.
const MOST_VALUES: usize = 1 << 20;
/// Names that one message lists.
const NAMES_LISTED: usize = 20;
/// Characters of a key that a message repeats.
const KEY_SHOWN: usize = 80;

/// The message of an error that says nothing.
const NO_REASON: &str = "it failed and gave no reason";

/// The standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a call returned.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The result, if the function has one.
    Ok(Option<Value>),
    /// The function returned an error.
    Err {
        /// The error itself if it is a text, else a sentence about it. Parts come from the component: of any length,
        /// not yet sanitized.
        message: String,
        /// The error, if the message is not all of it.
        data: Option<Value>,
    },
}

/// Makes the values of a call, in the order of the parameters.
///
/// # Errors
///
/// The first argument that does not fit, by its place, and what is expected there.
pub fn arguments(function: &ComponentFunc, arguments: &Map<String, Value>) -> Result<Vec<Val>, String> {
    let fields = function.params().collect();
    let named = Reader { values: MOST_VALUES }.fields(fields, arguments, &Place::Root)?;
    Ok(named.into_iter().map(|(_, value)| value).collect())
}

/// Writes what a function returned. A `result` at the top tells whether the call succeeded.
pub fn result(function: &ComponentFunc, value: Option<Val>) -> Outcome {
    let misfit = || Outcome::Err { message: "the component returned a value of another type".into(), data: None };
    match (function.results().next(), value) {
        (None, None) => Outcome::Ok(None),
        (Some(Type::Result(ty)), Some(Val::Result(value))) => match (value, ty.ok(), ty.err()) {
            (Ok(None), None, _) => Outcome::Ok(None),
            (Ok(Some(value)), Some(ty), _) => {
                written(&ty, *value).map_or_else(misfit, |value| Outcome::Ok(Some(value)))
            }
            (Err(None), _, None) => Outcome::Err { message: NO_REASON.into(), data: None },
            (Err(Some(value)), _, Some(ty)) => written(&ty, *value).map_or_else(misfit, |value| failure(&ty, value)),
            (Ok(_) | Err(_), _, _) => misfit(),
        },
        (Some(ty), Some(value)) => written(&ty, value).map_or_else(misfit, |value| Outcome::Ok(Some(value))),
        (None, Some(_)) | (Some(_), None) => misfit(),
    }
}

/// Makes a value of a type.
///
/// # Errors
///
/// What does not fit, by its place, and what is expected there.
pub fn value_of(ty: &Type, json: &Value) -> Result<Val, String> {
    // Who wrote it runs this host, and the file that it is from has a length.
    Reader { values: usize::MAX }.value(ty, json, &Place::Root)
}

/// Writes a value of a type; none where it has no JSON, such as a handle.
pub fn json_of(ty: &Type, value: Val) -> Option<Value> {
    written(ty, value)
}

fn failure(ty: &Type, error: Value) -> Outcome {
    let message = match (ty, &error) {
        (Type::String, Value::String(text)) => {
            let message = if text.trim().is_empty() { NO_REASON } else { text };
            return Outcome::Err { message: message.into(), data: None };
        }
        (Type::Enum(_) | Type::Variant(_), Value::String(case)) => format!("it failed: {case}"),
        (Type::Variant(_), Value::Object(cases)) => match cases.iter().next() {
            Some((case, Value::String(text))) => format!("it failed: {case}: {text}"),
            Some((case, _)) => format!("it failed: {case}"),
            None => "it failed".into(),
        },
        _ => "it failed".into(),
    };
    Outcome::Err { message, data: Some(error) }
}

/// Where in the arguments a value is.
enum Place<'p> {
    Root,
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Key(above, _) | Self::Index(above, _)) = self else { return Ok(()) };
        above.fmt(f)?;
        if !matches!(above, Self::Root) {
            f.write_str("/")?;
        }
        match self {
            Self::Key(_, key) => f.write_str(&short(key)),
            Self::Index(_, index) => index.fmt(f),
            Self::Root => Ok(()),
        }
    }
}

impl Place<'_> {
    fn expected(&self, what: impl fmt::Display) -> String {
        match self {
            Self::Root => format!("expected {what}"),
            Self::Key(..) | Self::Index(..) => format!("`{self}`: expected {what}"),
        }
    }
}

struct Reader {
    /// How many more values may be made.
    values: usize,
}

impl Reader {
    fn value(&mut self, ty: &Type, json: &Value, at: &Place<'_>) -> Result<Val, String> {
        self.spend(1)?;
        match ty {
            Type::Bool => json.as_bool().map(Val::Bool).ok_or_else(|| at.expected("true or false")),
            Type::S8 => integer(json, at).map(Val::S8),
            Type::U8 => integer(json, at).map(Val::U8),
            Type::S16 => integer(json, at).map(Val::S16),
            Type::U16 => integer(json, at).map(Val::U16),
            Type::S32 => integer(json, at).map(Val::S32),
            Type::U32 => integer(json, at).map(Val::U32),
            Type::S64 => match json.as_str().filter(|text| is_digits(text.strip_prefix('-').unwrap_or(text), 19)) {
                Some(digits) => digits.parse().map(Val::S64).map_err(|_| at.expected(range::<i64>())),
                None => integer(json, at).map(Val::S64),
            },
            Type::U64 => match json.as_str().filter(|text| is_digits(text, 20)) {
                Some(digits) => digits.parse().map(Val::U64).map_err(|_| at.expected(range::<u64>())),
                None => integer(json, at).map(Val::U64),
            },
            Type::Float32 => {
                let double = float(json, at)?;
                // A number that is too large becomes infinite.
                let single = double as f32;
                if single.is_infinite() && double.is_finite() {
                    return Err(at.expected(format_args!("a number from {:e} to {:e}", f32::MIN, f32::MAX)));
                }
                Ok(Val::Float32(single))
            }
            Type::Float64 => float(json, at).map(Val::Float64),
            Type::Char => {
                let mut characters = json.as_str().unwrap_or_default().chars();
                match (characters.next(), characters.next()) {
                    (Some(one), None) => Ok(Val::Char(one)),
                    _ => Err(at.expected("a string of one character")),
                }
            }
            Type::String => json.as_str().map(|text| Val::String(text.into())).ok_or_else(|| at.expected("a string")),
            Type::List(list) => match list.ty() {
                Type::U8 => self.bytes(json, at),
                item => self.items(&item, json, None, at).map(Val::List),
            },
            Type::FixedLengthList(list) => {
                let length = usize::try_from(list.len()).unwrap_or(usize::MAX);
                self.items(&list.ty(), json, Some(length), at).map(Val::FixedLengthList)
            }
            Type::Map(map) => self.map(map, json, at),
            Type::Record(record) => {
                let object = json.as_object().ok_or_else(|| at.expected("an object"))?;
                let fields = record.fields().map(|field| (field.name, field.ty)).collect();
                self.fields(fields, object, at).map(Val::Record)
            }
            Type::Tuple(tuple) => {
                let types: Vec<Type> = tuple.types().collect();
                self.tuple(&types, json, at).map(Val::Tuple)
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| (case.name, case.ty)).collect();
                let (case, payload) = self.case(cases, json, at)?;
                Ok(Val::Variant(case.into(), payload))
            }
            Type::Enum(cases) => match json.as_str().filter(|case| cases.names().any(|name| name == *case)) {
                Some(case) => Ok(Val::Enum(case.into())),
                None => Err(at.expected(one_of(cases.names().map(|name| format!("{name:?}"))))),
            },
            Type::Option(option) => self.option(&option.ty(), json, at),
            Type::Result(result) => {
                let (case, payload) = self.case(vec![("ok", result.ok()), ("err", result.err())], json, at)?;
                Ok(Val::Result(if case == "ok" { Ok(payload) } else { Err(payload) }))
            }
            Type::Flags(flags) => self.flags(flags, json, at),
            Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
                Err(at.expected("what JSON cannot express"))
            }
        }
    }

    /// The fields of a record, or the parameters of a function.
    fn fields(
        &mut self,
        fields: Vec<(&str, Type)>,
        object: &Map<String, Value>,
        at: &Place<'_>,
    ) -> Result<Vec<(String, Val)>, String> {
        let is_known = |key: &String| fields.iter().any(|(name, _)| name == key);
        // If all keys are there and no more, none is unknown.
        if (object.len() > fields.len() || !fields.iter().all(|(name, _)| object.contains_key(*name)))
            && let Some(unknown) = object.keys().find(|key| !is_known(key))
        {
            let known = one_of(fields.iter().map(|(name, _)| format!("`{name}`")));
            return Err(format!("`{}`: unknown key; expected {known}", Place::Key(at, unknown)));
        }
        let mut values = Vec::with_capacity(fields.len());
        for (name, ty) in fields {
            let place = Place::Key(at, name);
            let value = match (object.get(name), &ty) {
                (Some(json), ty) => self.value(ty, json, &place)?,
                (None, Type::Option(_)) => {
                    self.spend(1)?;
                    Val::Option(None)
                }
                (None, _) => return Err(format!("`{place}` is missing")),
            };
            values.push((name.to_owned(), value));
        }
        Ok(values)
    }

    fn bytes(&mut self, json: &Value, at: &Place<'_>) -> Result<Val, String> {
        let text = json.as_str().ok_or_else(|| at.expected("a string of base64"))?;
        self.spend(text.len() / 4 * 3)?;
        let bytes = BASE64.decode(text).map_err(|_| at.expected("a string of base64 (A-Z, a-z, 0-9, `+`, `/`)"))?;
        Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
    }

    fn items(&mut self, ty: &Type, json: &Value, length: Option<usize>, at: &Place<'_>) -> Result<Vec<Val>, String> {
        let items = json.as_array().ok_or_else(|| at.expected("an array"))?;
        if let Some(length) = length.filter(|length| *length != items.len()) {
            return Err(at.expected(format_args!("an array of {length} items, not {}", items.len())));
        }
        items.iter().enumerate().map(|(index, item)| self.value(ty, item, &Place::Index(at, index))).collect()
    }

    fn tuple(&mut self, types: &[Type], json: &Value, at: &Place<'_>) -> Result<Vec<Val>, String> {
        let items = json.as_array().filter(|items| items.len() == types.len());
        let items = items.ok_or_else(|| at.expected(format_args!("an array of {} items", types.len())))?;
        let items = types.iter().zip(items).enumerate();
        items.map(|(index, (ty, item))| self.value(ty, item, &Place::Index(at, index))).collect()
    }

    fn map(&mut self, map: &types::Map, json: &Value, at: &Place<'_>) -> Result<Val, String> {
        let (key_type, value_type) = (map.key(), map.value());
        let mut entries = Vec::new();
        if matches!(key_type, Type::String) {
            for (key, value) in json.as_object().ok_or_else(|| at.expected("an object"))? {
                self.spend(1)?;
                let value = self.value(&value_type, value, &Place::Key(at, key))?;
                entries.push((Val::String(key.clone()), value));
            }
            return Ok(Val::Map(entries));
        }
        let types = [key_type, value_type];
        let pairs = json.as_array().ok_or_else(|| at.expected("an array of pairs `[key, value]`"))?;
        for (index, pair) in pairs.iter().enumerate() {
            let mut pair = self.tuple(&types, pair, &Place::Index(at, index))?.into_iter();
            entries.extend(pair.next().zip(pair.next()));
        }
        Ok(Val::Map(entries))
    }

    /// `{"case": payload}`, or `"case"` where it has no payload.
    fn case<'c>(
        &mut self,
        cases: Vec<(&'c str, Option<Type>)>,
        json: &Value,
        at: &Place<'_>,
    ) -> Result<(&'c str, Option<Box<Val>>), String> {
        let given = match json {
            Value::String(case) => Some((case, None)),
            Value::Object(fields) if fields.len() == 1 => fields.iter().next().map(|(case, value)| (case, Some(value))),
            _ => None,
        };
        for (name, ty) in &cases {
            match (given, ty) {
                (Some((case, None)), None) if case == name => return Ok((name, None)),
                (Some((case, Some(payload))), Some(ty)) if case == name => {
                    let payload = self.value(ty, payload, &Place::Key(at, name))?;
                    return Ok((name, Some(Box::new(payload))));
                }
                _ => {}
            }
        }
        let forms = cases.iter().map(|(name, ty)| match ty {
            Some(_) => format!("{{{name:?}: …}}"),
            None => format!("{name:?}"),
        });
        Err(at.expected(one_of(forms)))
    }

    fn option(&mut self, ty: &Type, json: &Value, at: &Place<'_>) -> Result<Val, String> {
        if json.is_null() {
            return Ok(Val::Option(None));
        }
        let inner = match ty {
            Type::Option(_) => {
                let fields = json.as_object().filter(|fields| fields.len() == 1);
                let inner = fields.and_then(|fields| fields.get("some"));
                let inner = inner.ok_or_else(|| at.expected("null or {\"some\": …}"))?;
                self.value(ty, inner, &Place::Key(at, "some"))?
            }
            _ => self.value(ty, json, at)?,
        };
        Ok(Val::Option(Some(Box::new(inner))))
    }

    fn flags(&mut self, flags: &types::Flags, json: &Value, at: &Place<'_>) -> Result<Val, String> {
        let mut set: Vec<String> = Vec::new();
        for (index, flag) in json.as_array().ok_or_else(|| at.expected("an array of names"))?.iter().enumerate() {
            let place = Place::Index(at, index);
            let name = flag.as_str().filter(|name| flags.names().any(|known| known == *name));
            let name = name.ok_or_else(|| place.expected(one_of(flags.names().map(|name| format!("{name:?}")))))?;
            if set.iter().any(|set| set == name) {
                return Err(place.expected("each name once"));
            }
            set.push(name.into());
        }
        Ok(Val::Flags(set))
    }

    fn spend(&mut self, values: usize) -> Result<(), String> {
        let left = self.values.checked_sub(values);
        self.values = left.ok_or_else(|| format!("the arguments have too many values (limit: {MOST_VALUES})"))?;
        Ok(())
    }
}

fn range<I: Bounded>() -> String {
    format!("an integer from {} to {}", I::LEAST, I::MOST)
}

/// An integer of a component, with its bounds for messages.
trait Bounded: TryFrom<i128> {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! bounded {
    ($($integer:ty)*) => {
        $(impl Bounded for $integer {
            const LEAST: i128 = <$integer>::MIN as i128;
            const MOST: i128 = <$integer>::MAX as i128;
        })*
    };
}

bounded!(i8 u8 i16 u16 i32 u32 i64 u64);

fn integer<I: Bounded>(json: &Value, at: &Place<'_>) -> Result<I, String> {
    whole(json).and_then(|whole| I::try_from(whole).ok()).ok_or_else(|| at.expected(range::<I>()))
}

/// A whole number, also one that is written as `5.0`.
fn whole(json: &Value) -> Option<i128> {
    let number = json.as_number()?;
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // A number that is too large becomes the largest `i128`, which no type of a component can hold.
    Some(float as i128)
}

fn is_digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn float(json: &Value, at: &Place<'_>) -> Result<f64, String> {
    let float = match json {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    float.ok_or_else(|| at.expected("a number, or one of \"NaN\", \"Infinity\", \"-Infinity\""))
}

fn one_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMES_LISTED);
    let listed: Vec<String> = names.take(NAMES_LISTED).map(|name| short_form(&name)).collect();
    match (listed.as_slice(), more) {
        ([], _) => "no keys".into(),
        ([only], _) => only.clone(),
        (_, 0) => format!("one of {}", listed.join(", ")),
        (_, more) => format!("one of {} and {more} more", listed.join(", ")),
    }
}

fn short_form(name: &str) -> String {
    if name.len() <= KEY_SHOWN { name.into() } else { short(name) }
}

/// A key as a message may repeat it.
fn short(key: &str) -> String {
    let mark = if key.chars().nth(KEY_SHOWN).is_some() { "…" } else { "" };
    format!("{}{mark}", sanitize::beginning(key, KEY_SHOWN))
}

/// The JSON of a value; nothing if the value is not of the type.
fn written(ty: &Type, value: Val) -> Option<Value> {
    match (ty, value) {
        (Type::Bool, Val::Bool(value)) => Some(value.into()),
        (Type::S8, Val::S8(value)) => Some(value.into()),
        (Type::U8, Val::U8(value)) => Some(value.into()),
        (Type::S16, Val::S16(value)) => Some(value.into()),
        (Type::U16, Val::U16(value)) => Some(value.into()),
        (Type::S32, Val::S32(value)) => Some(value.into()),
        (Type::U32, Val::U32(value)) => Some(value.into()),
        (Type::S64, Val::S64(value)) => {
            let is_safe = value.unsigned_abs() <= SAFE_INTEGER.unsigned_abs();
            Some(if is_safe { value.into() } else { value.to_string().into() })
        }
        (Type::U64, Val::U64(value)) => {
            let is_safe = value <= SAFE_INTEGER.unsigned_abs();
            Some(if is_safe { value.into() } else { value.to_string().into() })
        }
        (Type::Float32, Val::Float32(value)) => Some(written_float(shortest(value))),
        (Type::Float64, Val::Float64(value)) => Some(written_float(value)),
        (Type::Char, Val::Char(value)) => Some(value.to_string().into()),
        (Type::String, Val::String(value)) => Some(value.into()),
        (Type::List(list), Val::List(items)) => written_list(&list.ty(), items),
        (Type::FixedLengthList(list), Val::FixedLengthList(items)) => {
            let ty = list.ty();
            items.into_iter().map(|item| written(&ty, item)).collect()
        }
        (Type::Map(map), Val::Map(entries)) => written_map(map, entries),
        (Type::Record(record), Val::Record(fields)) => written_record(record, fields),
        (Type::Tuple(tuple), Val::Tuple(items)) => {
            tuple.types().zip(items).map(|(ty, item)| written(&ty, item)).collect()
        }
        (Type::Variant(variant), Val::Variant(name, payload)) => {
            let case = variant.cases().find(|case| case.name == name)?;
            written_case(&name, case.ty, payload)
        }
        (Type::Enum(_), Val::Enum(case)) => Some(case.into()),
        (Type::Option(_), Val::Option(None)) => Some(Value::Null),
        (Type::Option(option), Val::Option(Some(value))) => {
            let ty = option.ty();
            let value = written(&ty, *value)?;
            Some(if matches!(ty, Type::Option(_)) { json!({ "some": value }) } else { value })
        }
        (Type::Result(result), Val::Result(Ok(payload))) => written_case("ok", result.ok(), payload),
        (Type::Result(result), Val::Result(Err(payload))) => written_case("err", result.err(), payload),
        (Type::Flags(_), Val::Flags(names)) => Some(names.into()),
        (
            Type::Bool
            | Type::S8
            | Type::U8
            | Type::S16
            | Type::U16
            | Type::S32
            | Type::U32
            | Type::S64
            | Type::U64
            | Type::Float32
            | Type::Float64
            | Type::Char
            | Type::String
            | Type::List(_)
            | Type::Map(_)
            | Type::Record(_)
            | Type::Tuple(_)
            | Type::Variant(_)
            | Type::Enum(_)
            | Type::Option(_)
            | Type::Result(_)
            | Type::Flags(_)
            | Type::Own(_)
            | Type::Borrow(_)
            | Type::Future(_)
            | Type::Stream(_)
            | Type::ErrorContext
            | Type::FixedLengthList(_),
            _,
        ) => None,
    }
}

fn written_list(ty: &Type, items: Vec<Val>) -> Option<Value> {
    if !matches!(ty, Type::U8) {
        return items.into_iter().map(|item| written(ty, item)).collect();
    }
    let byte = |item| if let Val::U8(byte) = item { Some(byte) } else { None };
    let bytes: Vec<u8> = items.into_iter().map(byte).collect::<Option<_>>()?;
    Some(BASE64.encode(bytes).into())
}

fn written_map(map: &types::Map, entries: Vec<(Val, Val)>) -> Option<Value> {
    let (key_type, value_type) = (map.key(), map.value());
    if matches!(key_type, Type::String) {
        let entry = |(key, value)| match key {
            Val::String(key) => Some((key, written(&value_type, value)?)),
            _ => None,
        };
        return entries.into_iter().map(entry).collect::<Option<Map<_, _>>>().map(Value::Object);
    }
    let pair = |(key, value)| Some(json!([written(&key_type, key)?, written(&value_type, value)?]));
    entries.into_iter().map(pair).collect()
}

fn written_record(record: &types::Record, fields: Vec<(String, Val)>) -> Option<Value> {
    let mut object = Map::new();
    for (field, (name, value)) in record.fields().zip(fields) {
        if matches!((&field.ty, &value), (Type::Option(_), Val::Option(None))) {
            continue;
        }
        object.insert(name, written(&field.ty, value)?);
    }
    Some(object.into())
}

fn written_case(name: &str, ty: Option<Type>, payload: Option<Box<Val>>) -> Option<Value> {
    match (ty, payload) {
        (None, None) => Some(name.into()),
        (Some(ty), Some(payload)) => {
            let mut object = Map::new();
            object.insert(name.to_owned(), written(&ty, *payload)?);
            Some(object.into())
        }
        (None, Some(_)) | (Some(_), None) => None,
    }
}

/// The double that is written with the fewest digits that name this float: `0.1`, where the float itself is
/// 0.10000000149011612.
fn shortest(value: f32) -> f64 {
    let exact = f64::from(value);
    let short = value.to_string().parse().unwrap_or(exact);
    let is_same = (short as f32).to_bits() == value.to_bits();
    if is_same { short } else { exact }
}

fn written_float(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(number) => number.into(),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::sample;
    use wasmtime::component::Component;
    use wasmtime::component::types::ComponentItem;
    use wasmtime::{Config, Engine};

    /// The type of the function `f` of an interface.
    fn function(interface: &str) -> ComponentFunc {
        let mut config = Config::new();
        config.wasm_component_model_map(true).wasm_component_model_fixed_length_lists(true);
        let engine = Engine::new(&config).expect("an engine");
        let wit = format!("package a:b; interface i {{ {interface} }} world w {{ export i; }}");
        let component = Component::new(&engine, sample::component(&wit)).expect("it compiles");
        let ty = component.component_type();
        let Some(ComponentItem::ComponentInstance(interface)) = ty.get_export(&engine, "a:b/i").map(|export| export.ty)
        else {
            panic!("no interface");
        };
        let Some(ComponentItem::ComponentFunc(function)) = interface.get_export(&engine, "f").map(|export| export.ty)
        else {
            panic!("no function");
        };
        function
    }

    fn taking(declarations: &str, ty: &str) -> ComponentFunc {
        function(&format!("{declarations} f: func(x: {ty}) -> {ty};"))
    }

    fn given(function: &ComponentFunc, json: Value) -> Result<Val, String> {
        let mut object = Map::new();
        object.insert("x".into(), json);
        let mut values = arguments(function, &object)?;
        assert_eq!(values.len(), 1);
        Ok(values.remove(0))
    }

    fn refusal(declarations: &str, ty: &str, json: Value) -> String {
        given(&taking(declarations, ty), json).expect_err("a value that does not fit")
    }

    fn failed(message: &str, data: Option<Value>) -> Outcome {
        Outcome::Err { message: message.into(), data }
    }

    #[test]
    fn each_type_is_read_and_written() {
        let types = "enum e { a, b } flags g { a, b, c } record r { a: u8, b: option<string> }
            variant v { none, one(u8), maybe(option<u8>) }";
        let text = |text: &str| Val::String(text.into());
        let some = |value| Val::Option(Some(Box::new(value)));
        let none = || Val::Option(None);
        let rows = [
            ("bool", json!(true), Val::Bool(true)),
            ("char", json!("👩"), Val::Char('👩')),
            ("string", json!("a\0"), text("a\0")),
            ("u8", json!(255), Val::U8(255)),
            ("s8", json!(-128), Val::S8(-128)),
            ("u16", json!(65535), Val::U16(65535)),
            ("s16", json!(-1), Val::S16(-1)),
            ("u32", json!(u32::MAX), Val::U32(u32::MAX)),
            ("s32", json!(i32::MIN), Val::S32(i32::MIN)),
            ("u64", json!(9_007_199_254_740_991_u64), Val::U64(9_007_199_254_740_991)),
            ("u64", json!("9007199254740992"), Val::U64(9_007_199_254_740_992)),
            ("u64", json!("18446744073709551615"), Val::U64(u64::MAX)),
            ("s64", json!(-9_007_199_254_740_991_i64), Val::S64(-9_007_199_254_740_991)),
            ("s64", json!("-9223372036854775808"), Val::S64(i64::MIN)),
            ("f32", json!(0.1), Val::Float32(0.1)),
            ("f64", json!(-2.5), Val::Float64(-2.5)),
            ("f64", json!("Infinity"), Val::Float64(f64::INFINITY)),
            ("f32", json!("-Infinity"), Val::Float32(f32::NEG_INFINITY)),
            ("list<u8>", json!("+/8="), Val::List(vec![Val::U8(0xfb), Val::U8(0xff)])),
            ("list<u8>", json!(""), Val::List(vec![])),
            ("list<u16>", json!([1, 2]), Val::List(vec![Val::U16(1), Val::U16(2)])),
            ("list<u8, 2>", json!([1, 2]), Val::FixedLengthList(vec![Val::U8(1), Val::U8(2)])),
            ("tuple<u8, bool>", json!([1, false]), Val::Tuple(vec![Val::U8(1), Val::Bool(false)])),
            ("map<string, u8>", json!({ "k": 1 }), Val::Map(vec![(text("k"), Val::U8(1))])),
            ("map<char, u8>", json!([["k", 1]]), Val::Map(vec![(Val::Char('k'), Val::U8(1))])),
            ("map<u8, option<u8>>", json!([[1, null]]), Val::Map(vec![(Val::U8(1), none())])),
            ("map<string, option<u8>>", json!({ "k": null }), Val::Map(vec![(text("k"), none())])),
            ("e", json!("b"), Val::Enum("b".into())),
            ("g", json!(["a", "c"]), Val::Flags(vec!["a".into(), "c".into()])),
            ("v", json!("none"), Val::Variant("none".into(), None)),
            ("v", json!({ "one": 1 }), Val::Variant("one".into(), Some(Box::new(Val::U8(1))))),
            ("v", json!({ "maybe": null }), Val::Variant("maybe".into(), Some(Box::new(none())))),
            ("r", json!({ "a": 1 }), Val::Record(vec![("a".into(), Val::U8(1)), ("b".into(), none())])),
            ("option<u8>", json!(null), none()),
            ("option<u8>", json!(1), some(Val::U8(1))),
            ("option<option<u8>>", json!(null), none()),
            ("option<option<u8>>", json!({ "some": null }), some(none())),
            ("option<option<u8>>", json!({ "some": 1 }), some(some(Val::U8(1)))),
            ("option<option<option<u8>>>", json!({ "some": { "some": null } }), some(some(none()))),
            ("tuple<result>", json!(["ok"]), Val::Tuple(vec![Val::Result(Ok(None))])),
            (
                "tuple<result<u8, string>>",
                json!([{ "err": "e" }]),
                Val::Tuple(vec![Val::Result(Err(Some(Box::new(text("e")))))]),
            ),
        ];
        for (ty, json, value) in rows {
            let function = taking(types, ty);
            assert_eq!(given(&function, json.clone()).as_ref(), Ok(&value), "{ty}");
            assert_eq!(result(&function, Some(value)), Outcome::Ok(Some(json)), "{ty}");
        }
    }

    #[test]
    fn other_ways_to_write_a_value_are_read() {
        let rows = [
            ("u8", json!(5.0), Val::U8(5)),
            ("u64", json!(u64::MAX), Val::U64(u64::MAX)),
            ("u64", json!(1e19), Val::U64(10_000_000_000_000_000_000)),
            ("u64", json!("007"), Val::U64(7)),
            ("s64", json!(i64::MIN), Val::S64(i64::MIN)),
            ("f64", json!(3), Val::Float64(3.0)),
            ("list<u8>", json!("+/8"), Val::List(vec![Val::U8(0xfb), Val::U8(0xff)])),
        ];
        for (ty, json, value) in rows {
            assert_eq!(given(&taking("", ty), json), Ok(value), "{ty}");
        }
        assert!(matches!(given(&taking("", "f32"), json!("NaN")), Ok(Val::Float32(value)) if value.is_nan()));
        let options = function("f: func(a: option<u8>, b: u8, c: option<option<u8>>);");
        let object = json!({ "a": null, "b": 1 });
        let values = arguments(&options, object.as_object().expect("an object"));
        assert_eq!(values, Ok(vec![Val::Option(None), Val::U8(1), Val::Option(None)]));
    }

    #[test]
    fn a_refusal_names_the_place_and_what_is_expected_there() {
        let types = "enum op { eq, lt } record filter { op: op, limit: option<u8> }
            variant v { all, one(u8) } flags g { a, b }";
        let filter = json!({ "op": "eq" });
        let rows = [
            ("list<filter>", json!([filter, filter, { "op": "ne" }]), r#"`x/2/op`: expected one of "eq", "lt""#),
            ("filter", json!({}), "`x/op` is missing"),
            ("filter", json!({ "op": "eq", "limt": 1 }), "`x/limt`: unknown key; expected one of `op`, `limit`"),
            ("filter", json!({ "op": "eq", "limit": 256 }), "`x/limit`: expected an integer from 0 to 255"),
            ("filter", json!([]), "`x`: expected an object"),
            ("u8", json!(1.5), "`x`: expected an integer from 0 to 255"),
            ("u8", json!(-1), "`x`: expected an integer from 0 to 255"),
            ("u8", json!("1"), "`x`: expected an integer from 0 to 255"),
            ("u64", json!("+1"), "`x`: expected an integer from 0 to 18446744073709551615"),
            ("u64", json!("99999999999999999999"), "`x`: expected an integer from 0 to 18446744073709551615"),
            ("s64", json!(1e300), "`x`: expected an integer from -9223372036854775808 to 9223372036854775807"),
            ("bool", json!("true"), "`x`: expected true or false"),
            ("bool", json!(null), "`x`: expected true or false"),
            ("char", json!("ab"), "`x`: expected a string of one character"),
            ("char", json!(""), "`x`: expected a string of one character"),
            ("string", json!(1), "`x`: expected a string"),
            ("f32", json!(1e39), "`x`: expected a number from -3.4028235e38 to 3.4028235e38"),
            ("f64", json!("nan"), r#"`x`: expected a number, or one of "NaN", "Infinity", "-Infinity""#),
            ("list<u8>", json!("ab_="), "`x`: expected a string of base64 (A-Z, a-z, 0-9, `+`, `/`)"),
            ("list<u8>", json!([1]), "`x`: expected a string of base64"),
            ("list<bool>", json!([true, 1]), "`x/1`: expected true or false"),
            ("list<bool, 2>", json!([true]), "`x`: expected an array of 2 items, not 1"),
            ("tuple<u8, u8>", json!([1]), "`x`: expected an array of 2 items"),
            ("v", json!("one"), r#"`x`: expected one of "all", {"one": …}"#),
            ("v", json!({ "all": null }), r#"`x`: expected one of "all", {"one": …}"#),
            ("v", json!({ "one": 1, "all": 1 }), r#"`x`: expected one of "all", {"one": …}"#),
            ("v", json!({ "one": "1" }), "`x/one`: expected an integer from 0 to 255"),
            ("g", json!(["a", "a"]), "`x/1`: expected each name once"),
            ("g", json!(["c"]), r#"`x/0`: expected one of "a", "b""#),
            ("option<option<u8>>", json!(1), r#"`x`: expected null or {"some": …}"#),
            ("map<u8, u8>", json!({ "1": 2 }), "`x`: expected an array of pairs `[key, value]`"),
            ("map<string, u8>", json!({ "a/b": "" }), "`x/a/b`: expected an integer from 0 to 255"),
        ];
        for (ty, json, message) in rows {
            assert_eq!(refusal(types, ty, json), message, "{ty}");
        }
        let none = function("f: func();");
        let unknown = json!({ "y\u{202e}": 1 });
        assert_eq!(
            arguments(&none, unknown.as_object().expect("an object")).expect_err("unknown"),
            "`y`: unknown key; expected no keys"
        );
        let missing = arguments(&taking("", "u8"), &Map::new());
        assert_eq!(missing.expect_err("missing"), "`x` is missing");
    }

    #[test]
    fn messages_stay_short() {
        let cases: String = (0..500).map(|index| format!("case-{}-{index}, ", "x".repeat(200))).collect();
        let message = refusal(&format!("enum e {{ {cases} }}"), "e", json!("none"));
        assert!(message.len() < 2500 && message.ends_with("and 480 more"), "{message}");
        let message = refusal("", "map<string, u8>", json!({ ("k".repeat(1 << 20)): null }));
        assert!(message.len() < 200, "{message}");
    }

    #[test]
    fn small_json_cannot_become_many_values() {
        let fields: String = (0..1000).map(|index| format!("f-{index}: option<u8>, ")).collect();
        let items = vec![json!({}); 10_000];
        let message = refusal(&format!("record r {{ {fields} }}"), "list<r>", items.into());
        assert_eq!(message, "the arguments have too many values (limit: 1048576)");
        let message = refusal("", "list<u8>", "A".repeat(6 << 20).into());
        assert_eq!(message, "the arguments have too many values (limit: 1048576)");
    }

    #[test]
    fn an_error_of_the_function_is_a_failure() {
        let types = "enum e { gone } variant v { why(string), code(u8), other }";
        let err = |value: Val| Some(Val::Result(Err(Some(Box::new(value)))));
        let returning = |ty: &str| function(&format!("{types} f: func() -> {ty};"));
        let text = |text: &str| Val::String(text.into());
        let rows = [
            ("result<u8, string>", err(text("no such file")), failed("no such file", None)),
            ("result<u8, string>", err(text(" ")), failed("it failed and gave no reason", None)),
            ("result<u8>", Some(Val::Result(Err(None))), failed("it failed and gave no reason", None)),
            ("result<_, e>", err(Val::Enum("gone".into())), failed("it failed: gone", Some(json!("gone")))),
            ("result<_, v>", err(Val::Variant("other".into(), None)), failed("it failed: other", Some(json!("other")))),
            (
                "result<_, v>",
                err(Val::Variant("why".into(), Some(Box::new(text("full"))))),
                failed("it failed: why: full", Some(json!({ "why": "full" }))),
            ),
            (
                "result<_, v>",
                err(Val::Variant("code".into(), Some(Box::new(Val::U8(7))))),
                failed("it failed: code", Some(json!({ "code": 7 }))),
            ),
            ("result<_, u8>", err(Val::U8(7)), failed("it failed", Some(json!(7)))),
            ("result<u8, u8>", Some(Val::Result(Ok(Some(Box::new(Val::U8(7)))))), Outcome::Ok(Some(json!(7)))),
            ("result<_, u8>", Some(Val::Result(Ok(None))), Outcome::Ok(None)),
            ("option<u8>", Some(Val::Option(None)), Outcome::Ok(Some(Value::Null))),
        ];
        for (ty, value, outcome) in rows {
            assert_eq!(result(&returning(ty), value), outcome, "{ty}");
        }
        assert_eq!(result(&function("f: func();"), None), Outcome::Ok(None));
    }

    #[test]
    fn of_two_equal_keys_the_last_one_counts() {
        let entry = |value| (Val::String("k".into()), Val::U8(value));
        let map = Val::Map(vec![entry(1), entry(2)]);
        assert_eq!(result(&taking("", "map<string, u8>"), Some(map)), Outcome::Ok(Some(json!({ "k": 2 }))));
    }

    #[test]
    fn a_value_of_another_type_is_a_failure() {
        let misfit = || failed("the component returned a value of another type", None);
        let types = "enum e { a } record r { a: u8 } variant v { a(u8), b }";
        let values = [
            Val::Bool(true),
            Val::String("a".into()),
            Val::List(vec![Val::Bool(true)]),
            Val::Record(vec![("a".into(), Val::Bool(true))]),
            Val::Tuple(vec![Val::Bool(true)]),
            Val::Variant("z".into(), None),
            Val::Variant("a".into(), None),
            Val::Variant("b".into(), Some(Box::new(Val::U8(1)))),
            Val::Option(Some(Box::new(Val::Bool(true)))),
            Val::Result(Ok(Some(Box::new(Val::Bool(true))))),
            Val::Result(Err(None)),
            Val::Map(vec![(Val::Bool(true), Val::Bool(true))]),
            Val::FixedLengthList(vec![Val::Bool(true)]),
        ];
        for ty in [
            "u8",
            "r",
            "v",
            "list<u8>",
            "list<u16>",
            "tuple<u8>",
            "option<u8>",
            "result<u8, u8>",
            "map<string, u8>",
            "map<u8, u8>",
            "list<u8, 1>",
        ] {
            let function = taking(types, ty);
            for value in &values {
                assert_eq!(result(&function, Some(value.clone())), misfit(), "{ty} {value:?}");
            }
            assert_eq!(result(&function, None), misfit());
        }
        assert_eq!(result(&function("f: func();"), Some(Val::U8(1))), misfit());
    }
}
