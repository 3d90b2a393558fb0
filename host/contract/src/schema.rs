//! JSON Schemas of plugins: which are admitted, and what work it may be to hold a value against one.
//!
//! A few KiB of references that lead to references can name more subschemas than there is time for. So it is counted beforehand how many
//! subschemas look at one value at most, wherever in a document it is; times the size of the value, that bounds the work.

mod plain;

pub(crate) use plain::is_of;

use base::envelope::{Failure, Kind};
use base::text::names::is_name;
use base::text::sanitize;
use config::Limits;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Keywords whose value is a schema.
pub const SCHEMA: [&str; 12] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
pub const SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value names schemas.
pub const NAMED_SCHEMAS: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords whose schemas look at the same value as the schema they are in.
const SAME_VALUE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];
/// Keywords whose schemas look at every property of an object.
const EVERY_PROPERTY: [&str; 4] =
    ["additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"];
/// Keywords whose schemas look at every item of a list.
const EVERY_ITEM: [&str; 3] = ["contains", "items", "unevaluatedItems"];
/// Keywords that give `#…` another meaning than a place in the document.
const OTHER_REFERENCES: [&str; 4] = ["$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"];

/// Different patterns of one schema.
const MOST_PATTERNS: usize = 100;
/// Memory of one compiled pattern, and of its cache while it is matched, in bytes.
const PATTERN_BYTES: usize = 256 << 10;
/// Subschemas, with the lists in them, that may look at one value.
const MOST_LOOKS: u64 = 10_000;
/// Steps of counting them.
const MOST_STEPS: u64 = 1_000_000;
/// Looks at values of one validation: seconds.
const MOST_WORK: u64 = 100_000_000;
/// Up to here all faults of a value are collected; beyond, only the first is reported.
const WORK_FOR_ALL_FAULTS: u64 = 100_000;

/// That a schema was admitted, and what is made of it when it is needed.
#[derive(Default)]
pub struct Admitted {
    looks: OnceLock<Looks>,
    validator: OnceLock<Validator>,
}

/// What may look at one value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Looks {
    schemas: u64,
    patterns: u64,
}

impl Admitted {
    /// Takes the word of who has checked the schema before: this program, with the same limits.
    pub fn before() -> Self {
        Self::default()
    }

    /// Checks a schema; an error ends a sentence that begins with "the schema".
    pub fn admit(schema: &Value, limits: &Limits) -> Result<Self, String> {
        let bytes = schema.to_string().len() as u64;
        if bytes > limits.schema_kib << 10 {
            return Err(format!("is {bytes} bytes, more than {} KiB", limits.schema_kib));
        }
        if depth(schema) > limits.schema_depth {
            return Err(format!("nests deeper than {} levels", limits.schema_depth));
        }
        check_references(schema)?;
        if let Some(property) = odd_property(schema) {
            return Err(format!(
                "has a property named `{property}`; use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"
            ));
        }
        if sanitize::json(&mut schema.clone()) {
            return Err("has control or invisible characters in it; write what a reader can see".into());
        }
        let patterns = patterns(schema);
        if patterns > MOST_PATTERNS {
            return Err(format!("has {patterns} patterns, more than {MOST_PATTERNS}"));
        }
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            return Err(format!("is not JSON Schema 2020-12: {}", shortened(&error)));
        }
        let looks = Counter::count(schema)?;
        let validator = validator(schema)?;
        Ok(Self { looks: looks.into(), validator: validator.into() })
    }

    /// What is wrong with a value: all of it, or of a large value the first.
    ///
    /// # Errors
    ///
    /// `limit`, when the value is too large for a schema of this kind.
    pub fn faults<'v>(&'v self, schema: &'v Value, value: &'v Value) -> Result<Vec<ValidationError<'v>>, Failure> {
        let looks = made(&self.looks, || Counter::count(schema))?;
        let (values, bytes) = size(value);
        let work = values.saturating_mul(looks.schemas).saturating_add(bytes.saturating_mul(looks.patterns));
        if work > MOST_WORK {
            return Err(Failure::limit(format!(
                "limit: {values} values of {bytes} bytes are more than can be checked against this schema"
            ))
            .hint("give less in one call"));
        }
        if plain::fits(value, schema, schema) {
            return Ok(Vec::new());
        }
        let validator = made(&self.validator, || validator(schema))?;
        // Cheaper than looking for faults one by one, and there rarely are any.
        if validator.is_valid(value) {
            return Ok(Vec::new());
        }
        if work > WORK_FOR_ALL_FAULTS {
            return Ok(validator.validate(value).err().into_iter().collect());
        }
        Ok(validator.iter_errors(value).collect())
    }
}

/// What a cell holds, or is to hold from now on.
fn made<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, String>) -> Result<&T, Failure> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make().map_err(|fault| Failure::new(Kind::Internal, format!("a schema that was admitted {fault}")))?;
    Ok(cell.get_or_init(|| made))
}

fn validator(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let options = jsonschema::draft202012::options().with_pattern_options(patterns);
    options.build(schema).map_err(|error| format!("cannot be used: {}", shortened(&error)))
}

fn shortened(error: &ValidationError<'_>) -> String {
    sanitize::beginning(&error.to_string(), 400)
}

/// How deep arrays and objects are nested; a plain value is 0 deep.
pub fn depth(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Counts values, and the bytes of texts among them.
fn size(value: &Value) -> (u64, u64) {
    let add = |sum: (u64, u64), part: (u64, u64)| (sum.0 + part.0, sum.1 + part.1);
    match value {
        Value::String(text) => (1, text.len() as u64),
        Value::Array(items) => items.iter().map(size).fold((1, 0), add),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| add((0, key.len() as u64), size(field))).fold((1, 0), add)
        }
        _ => (1, 0),
    }
}

/// The schema that `#` or `#/a/b` names.
pub fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let target = root.pointer(reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?)?;
    (target.is_object() || target.is_boolean()).then_some(target)
}

/// Looks at every object of the schema, wherever it is.
fn find<'v, T>(value: &'v Value, look: &impl Fn(&'v Map<String, Value>) -> Option<T>) -> Option<T> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, look)),
        Value::Object(fields) => look(fields).or_else(|| fields.values().find_map(|field| find(field, look))),
        _ => None,
    }
}

/// A reference names a place within the document, and says so itself.
fn check_references(schema: &Value) -> Result<(), String> {
    let is_root = |fields: &Map<String, Value>| schema.as_object().is_some_and(|root| std::ptr::eq(root, fields));
    let fault = find(schema, &|fields| {
        if let Some(keyword) = OTHER_REFERENCES.iter().find(|keyword| fields.contains_key(**keyword)) {
            return Some(format!("uses `{keyword}`; refer to a place in it by `\"$ref\": \"#/…\"`"));
        }
        if fields.get("$id").is_some_and(Value::is_string) && !is_root(fields) {
            return Some("has an `$id` within it; refer to a place in it by `\"$ref\": \"#/…\"`".into());
        }
        let dialect = fields.get("$schema").and_then(Value::as_str);
        if let Some(dialect) = dialect.filter(|name| !name.starts_with("https://json-schema.org/draft/2020-12/")) {
            return Some(format!("names the dialect `{}`; only 2020-12 is known", cut(dialect)));
        }
        match fields.get("$ref")?.as_str()? {
            elsewhere if !elsewhere.starts_with('#') => {
                Some(format!("refers to `{}`; only references within it (`#…`) are followed", cut(elsewhere)))
            }
            within if resolve(schema, within).is_none() => {
                Some(format!("refers to `{}`, which names no schema in it", cut(within)))
            }
            _ => None,
        }
    });
    fault.map_or(Ok(()), Err)
}

fn cut(text: &str) -> String {
    sanitize::beginning(text, 80)
}

fn odd_property(schema: &Value) -> Option<String> {
    find(schema, &|fields| {
        fields.get("properties")?.as_object()?.keys().find(|name| !is_name(name)).map(|name| cut(name))
    })
}

fn patterns(schema: &Value) -> usize {
    let mut found = BTreeSet::new();
    collect_patterns(schema, &mut found);
    found.len()
}

fn collect_patterns<'s>(schema: &'s Value, found: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("pattern").and_then(Value::as_str));
            found.extend(patterns_of_names(fields).map(String::as_str));
            fields.values().for_each(|field| collect_patterns(field, found));
        }
        _ => {}
    }
}

fn patterns_of_names(fields: &Map<String, Value>) -> impl Iterator<Item = &String> {
    fields.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

/// The schemas that look at one value, by address, each with how often.
type Lookers<'s> = BTreeMap<usize, (u64, &'s Map<String, Value>)>;

/// Follows a schema into its values, one set of lookers after the other, until there is no new one.
struct Counter<'s> {
    root: &'s Value,
    seen: BTreeSet<Vec<(usize, u64)>>,
    waiting: Vec<Lookers<'s>>,
    most: Looks,
    steps: u64,
}

impl<'s> Counter<'s> {
    fn count(root: &'s Value) -> Result<Looks, String> {
        let mut counter =
            Counter { root, seen: BTreeSet::new(), waiting: Vec::new(), most: Looks::default(), steps: 0 };
        counter.look(&[(1, root)])?;
        while let Some(lookers) = counter.waiting.pop() {
            counter.go_into_object(&lookers)?;
            counter.go_into_list(&lookers)?;
        }
        Ok(counter.most)
    }

    /// Takes the schemas that look at a value, with all that look at it through them.
    fn look(&mut self, schemas: &[(u64, &'s Value)]) -> Result<(), String> {
        let (mut lookers, mut looks) = (Lookers::new(), Looks::default());
        for (times, schema) in schemas {
            self.add(schema, *times, &mut Vec::new(), &mut lookers, &mut looks)?;
        }
        self.most.schemas = self.most.schemas.max(looks.schemas);
        self.most.patterns = self.most.patterns.max(looks.patterns);
        let key = lookers.iter().map(|(address, (times, _))| (*address, *times)).collect();
        if self.seen.insert(key) {
            self.waiting.push(lookers);
        }
        Ok(())
    }

    fn add(
        &mut self,
        schema: &'s Value,
        times: u64,
        above: &mut Vec<usize>,
        lookers: &mut Lookers<'s>,
        looks: &mut Looks,
    ) -> Result<(), String> {
        self.step()?;
        let Some(fields) = schema.as_object() else { return Ok(()) };
        let address = std::ptr::from_ref(fields).addr();
        if above.contains(&address) {
            return Err("refers to itself without going into the value".into());
        }
        lookers.entry(address).or_insert((0, fields)).0 += times;
        looks.schemas = looks.schemas.saturating_add(times.saturating_mul(weight(fields)));
        let patterns = u64::from(fields.contains_key("pattern")) + patterns_of_names(fields).count() as u64;
        looks.patterns = looks.patterns.saturating_add(times.saturating_mul(patterns));
        if looks.schemas > MOST_LOOKS {
            return Err(format!("has more than {MOST_LOOKS} schemas that look at one value"));
        }
        // What is unevaluated is found out by evaluating once more.
        let is_twice = fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems");
        let times = if is_twice { times * 2 } else { times };
        above.push(address);
        let target = fields.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(self.root, reference));
        let further = target.into_iter().chain(SAME_VALUE.iter().flat_map(|keyword| schemas_of(fields, keyword)));
        for schema in further {
            self.add(schema, times, above, lookers, looks)?;
        }
        above.pop();
        Ok(())
    }

    fn go_into_object(&mut self, lookers: &Lookers<'s>) -> Result<(), String> {
        let every = all(lookers, &EVERY_PROPERTY);
        let mut by_name: BTreeMap<&str, Vec<(u64, &'s Value)>> = BTreeMap::new();
        for (times, fields) in lookers.values() {
            for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
                by_name.entry(name).or_default().push((*times, schema));
            }
        }
        for named in by_name.values() {
            self.look(&[&every[..], named].concat())?;
        }
        self.look(&every)
    }

    fn go_into_list(&mut self, lookers: &Lookers<'s>) -> Result<(), String> {
        let every = all(lookers, &EVERY_ITEM);
        let mut by_place: BTreeMap<usize, Vec<(u64, &'s Value)>> = BTreeMap::new();
        for (times, fields) in lookers.values() {
            for (place, schema) in schemas_of(fields, "prefixItems").enumerate() {
                by_place.entry(place).or_default().push((*times, schema));
            }
        }
        for placed in by_place.values() {
            self.look(&[&every[..], placed].concat())?;
        }
        self.look(&every)
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Err("has too many references that lead to references".into()) } else { Ok(()) }
    }
}

/// A schema costs a look for itself, and for each entry of its lists and maps.
fn weight(fields: &Map<String, Value>) -> u64 {
    let entries = fields.values().map(|value| match value {
        Value::Array(items) => items.len(),
        Value::Object(entries) => entries.len(),
        _ => 0,
    });
    1 + entries.sum::<usize>() as u64
}

fn all<'s>(lookers: &Lookers<'s>, keywords: &[&str]) -> Vec<(u64, &'s Value)> {
    let looker = lookers.values();
    looker
        .flat_map(|(times, fields)| {
            keywords.iter().flat_map(|keyword| schemas_of(fields, keyword)).map(|schema| (*times, schema))
        })
        .collect()
}

/// The schemas under a keyword, whichever of the three forms it has.
fn schemas_of<'s>(fields: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    let value = fields.get(keyword);
    let one = value.filter(|_| SCHEMA.contains(&keyword));
    let listed = value.filter(|_| SCHEMAS.contains(&keyword)).and_then(Value::as_array);
    let named = value.filter(|_| NAMED_SCHEMAS.contains(&keyword)).and_then(Value::as_object);
    one.into_iter().chain(listed.into_iter().flatten()).chain(named.into_iter().flat_map(Map::values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn looks(schema: &Value) -> Looks {
        Counter::count(schema).expect("a schema that can be counted")
    }

    fn refusal(schema: &Value) -> String {
        match Admitted::admit(schema, &config::Config::default().limits) {
            Ok(_) => panic!("it was admitted"),
            Err(reason) => reason,
        }
    }

    fn doubling(levels: usize, next: impl Fn(Value) -> Value) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            definitions.insert(format!("l{level}"), next(json!({ "$ref": format!("#/$defs/l{}", level + 1) })));
        }
        definitions.insert(format!("l{levels}"), json!({ "type": "string" }));
        json!({ "type": "object", "$ref": "#/$defs/l0", "$defs": definitions })
    }

    #[test]
    fn a_plain_schema_is_looked_at_as_often_as_it_says() {
        let schema =
            json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }, { "pattern": "x" }] } } });
        // The property, its list of two, and both of them.
        assert_eq!(looks(&schema), Looks { schemas: 5, patterns: 1 });
    }

    #[test]
    fn properties_do_not_add_up_but_alternatives_do() {
        let deep = doubling(30, |next| json!({ "properties": { "a": next.clone(), "b": next } }));
        assert!(looks(&deep).schemas < 100);
        let same = doubling(30, |next| json!({ "allOf": [next.clone(), { "not": next }] }));
        assert!(refusal(&same).starts_with("has more than 10000 schemas that look at one value"));
        let twice = doubling(
            30,
            |next| json!({ "allOf": [{ "properties": { "a": next.clone() } }, { "additionalProperties": next }] }),
        );
        assert!(refusal(&twice).starts_with("has more than 10000 schemas"));
    }

    #[test]
    fn a_schema_that_holds_itself_is_admitted_where_it_does_not_multiply() {
        let tree = json!({ "$defs": { "node": { "type": "object", "properties": {
            "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
        } } }, "type": "object", "$ref": "#/$defs/node" });
        assert!(looks(&tree).schemas < 100);
        let twofold = json!({ "type": "object", "anyOf": [
            { "properties": { "x": { "$ref": "#" } } }, { "properties": { "x": { "$ref": "#" } } },
        ] });
        assert!(refusal(&twofold).starts_with("has more than 10000 schemas"));
        let circle = json!({ "type": "object", "allOf": [{ "$ref": "#" }] });
        assert_eq!(refusal(&circle), "refers to itself without going into the value");
    }

    #[test]
    fn references_are_places_of_the_document() {
        let refusals = [json!({ "$anchor": "a" }), json!({ "$id": "x" }), json!({ "$ref": "#a" })]
            .map(|part| refusal(&json!({ "type": "object", "properties": { "a": part } })));
        assert!(refusals[0].starts_with("uses `$anchor`"), "{}", refusals[0]);
        assert!(refusals[1].starts_with("has an `$id` within it"), "{}", refusals[1]);
        assert_eq!(refusals[2], "refers to `#a`, which names no schema in it");
    }

    #[test]
    fn a_value_that_would_take_too_long_is_a_limit() {
        let values: Vec<u32> = (0..5000).collect();
        let schema = json!({ "type": "object", "properties": { "a": { "items": { "enum": values } } } });
        let Ok(admitted) = Admitted::admit(&schema, &config::Config::default().limits) else {
            panic!("it is refused");
        };
        assert_eq!(admitted.faults(&schema, &json!({ "a": [1, 2, 7000] })).expect("within the bounds").len(), 1);
        let many = json!({ "a": vec![1; 100_000] });
        assert_eq!(admitted.faults(&schema, &many).expect_err("too much").kind, base::envelope::Kind::Limit);
    }
}
