//! A schema of arguments without `anyOf`, `oneOf`, `allOf` and the like at its top. Clients leave such a tool out of their lists, some with all
//! others of its server, and model APIs refuse the whole request (anthropics/claude-code#95504, #88049; opentokenz/mcpx#28).
//!
//! What is listed says which arguments there are. Calls are held against the schema itself.

use crate::schema::resolve;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What a schema consists of several by.
const COMPOSING: [&str; 7] = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not"];
/// How deep schemas are followed that look at one value.
const DEPTH: usize = 16;

/// The keywords at the top of a schema that put it together from others.
#[must_use]
pub fn composition(schema: &Value) -> Vec<&'static str> {
    COMPOSING.into_iter().filter(|keyword| schema.get(keyword).is_some()).collect()
}

/// The same arguments as plain properties, with those required that are in any case. A schema that is plain stays as it is.
#[must_use]
pub fn folded(schema: &Value) -> Cow<'_, Value> {
    let Some(fields) =
        schema.as_object().filter(|fields| fields.contains_key("$ref") || !composition(schema).is_empty())
    else {
        return Cow::Borrowed(schema);
    };
    let parts = Parts::of(schema, schema, 0);
    let properties: Map<String, Value> =
        parts.named().map(|(name, property)| (name.to_owned(), property.clone())).collect();
    let required: Vec<&str> = parts.required.iter().copied().collect();
    let mut fields = fields.clone();
    let gone = |keyword: &str| COMPOSING.contains(&keyword) || ["$ref", "unevaluatedProperties"].contains(&keyword);
    fields.retain(|keyword, _| !gone(keyword));
    fields.insert("type".into(), "object".into());
    fields.insert("properties".into(), properties.into());
    match required.is_empty() {
        true => _ = fields.shift_remove("required"),
        false => _ = fields.insert("required".into(), required.into()),
    }
    if parts.is_closed {
        fields.insert("additionalProperties".into(), false.into());
    }
    Cow::Owned(fields.into())
}

/// The sets of arguments of which one has to be given whole, where a schema says so at its top and no more than that.
pub(crate) fn choices(schema: &Value) -> Vec<Vec<&str>> {
    let choices = ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array());
    let sets: Vec<Vec<&str>> = choices.into_iter().flatten().map(needed).collect();
    if sets.iter().any(Vec::is_empty) { Vec::new() } else { sets }
}

fn needed(choice: &Value) -> Vec<&str> {
    choice["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a schema says of the arguments of an object.
#[derive(Default)]
struct Parts<'s> {
    /// By name, each with its place among them.
    properties: BTreeMap<&'s str, (usize, Cow<'s, Value>)>,
    required: BTreeSet<&'s str>,
    is_closed: bool,
}

impl<'s> Parts<'s> {
    fn of(schema: &'s Value, root: &'s Value, depth: usize) -> Self {
        let Some(fields) = schema.as_object().filter(|_| depth < DEPTH) else { return Self::default() };
        let is_false = |keyword| fields.get(keyword).is_some_and(|others| *others == false);
        // What lies beside it is all that it knows, so others add nothing.
        let is_shut = is_false("additionalProperties");
        let mut all = Self { is_closed: is_shut || is_false("unevaluatedProperties"), ..Self::default() };
        for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            all.add(name, Cow::Borrowed(property));
        }
        let list = |keyword| fields.get(keyword).and_then(Value::as_array).into_iter().flatten();
        all.required = list("required").filter_map(Value::as_str).collect();
        let of = |schema: &'s Value| Self::of(schema, root, depth + 1);
        let target = fields.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
        for part in target.into_iter().chain(list("allOf")) {
            all.and(of(part), is_shut, true);
        }
        for keyword in ["anyOf", "oneOf"].into_iter().filter(|keyword| fields.contains_key(*keyword)) {
            let choices = list(keyword).filter(|choice| is_of_objects(choice)).map(of);
            all.and(Self::one_of(&choices.collect::<Vec<_>>()), is_shut, false);
        }
        let cases: Vec<_> = ["then", "else"].into_iter().filter_map(|keyword| fields.get(keyword)).map(of).collect();
        all.and(Self { required: BTreeSet::new(), is_closed: false, ..Self::one_of(&cases) }, is_shut, false);
        all
    }

    fn add(&mut self, name: &'s str, schema: Cow<'s, Value>) {
        let place = self.properties.len();
        self.properties.insert(name, (place, schema));
    }

    /// What holds where both do. Of two schemas of one argument both hold if the other `always` does; else the own one says enough.
    fn and(&mut self, other: Self, is_shut: bool, always: bool) {
        let mut others: Vec<_> = other.properties.into_iter().collect();
        others.sort_by_key(|(_, (place, _))| *place);
        for (name, (_, schema)) in others {
            match self.properties.get_mut(name) {
                Some((_, own)) if always && *own != schema => *own = Cow::Owned(json!({ "allOf": [own, schema] })),
                Some(_) => {}
                None if is_shut => {}
                None => self.add(name, schema),
            }
        }
        self.required.extend(other.required);
        self.is_closed |= other.is_closed;
    }

    /// What holds where one of them does.
    fn one_of(choices: &[Self]) -> Self {
        let required = choices.iter().map(|choice| choice.required.clone()).reduce(|all, more| &all & &more);
        let is_closed = !choices.is_empty() && choices.iter().all(|choice| choice.is_closed);
        let mut all = Self { required: required.unwrap_or_default(), is_closed, ..Self::default() };
        let mut schemas: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut names = Vec::new();
        for (name, schema) in choices.iter().flat_map(Self::named) {
            let known = schemas.entry(name).or_insert_with(|| {
                names.push(name);
                Vec::new()
            });
            if !known.contains(&schema) {
                known.push(schema);
            }
        }
        for name in names {
            all.add(name, Cow::Owned(any_of(&schemas[name])));
        }
        all
    }

    /// Its properties in their order.
    fn named(&self) -> impl Iterator<Item = (&'s str, &Value)> {
        let mut all: Vec<_> = self.properties.iter().collect();
        all.sort_by_key(|(_, (place, _))| *place);
        all.into_iter().map(|(name, (_, schema))| (*name, &**schema))
    }
}

/// Whether a schema takes objects at all.
fn is_of_objects(schema: &Value) -> bool {
    *schema != false && schema.get("type").is_none_or(|kind| kind == "object" || kind.is_array())
}

/// A schema that takes what any of these does; of words one list.
fn any_of(schemas: &[&Value]) -> Value {
    if let [only] = schemas {
        return (*only).clone();
    }
    let Some(lists) = schemas.iter().map(|schema| words(schema)).collect::<Option<Vec<_>>>() else {
        return json!({ "anyOf": schemas });
    };
    let mut all: Vec<&Value> = Vec::new();
    for word in lists.into_iter().flatten() {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    let kind = schemas[0].get("type").filter(|kind| schemas.iter().all(|schema| schema.get("type") == Some(*kind)));
    match kind {
        Some(kind) => json!({ "type": kind, "enum": all }),
        None => json!({ "enum": all }),
    }
}

/// The words that a schema takes, where it says no more than these.
fn words(schema: &Value) -> Option<&[Value]> {
    let plain = ["type", "const", "enum", "title", "description", "default"];
    let fields = schema.as_object().filter(|fields| fields.keys().all(|keyword| plain.contains(&keyword.as_str())))?;
    let word = fields.get("const").filter(|_| !fields.contains_key("enum")).map(std::slice::from_ref);
    word.or_else(|| fields.get("enum")?.as_array().map(Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_of_several_takes_is_listed_and_what_all_need_is_required() {
        let schema = json!({
            "type": "object",
            "description": "kept",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" }, "c": { "type": "integer" } },
            "required": ["c"],
            "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
        });
        assert_eq!(
            *folded(&schema),
            json!({
                "type": "object",
                "description": "kept",
                "properties": { "a": { "type": "string" }, "b": { "type": "string" }, "c": { "type": "integer" } },
                "required": ["c"],
            })
        );
        let schema = json!({ "type": "object", "oneOf": [
            {
                "type": "object",
                "properties": { "kind": { "type": "string", "const": "file" }, "path": { "type": "string" }, "size": { "type": "integer" } },
                "required": ["kind", "path"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": { "kind": { "type": "string", "const": "page" }, "url": { "type": "string" }, "size": { "type": "string" } },
                "required": ["url", "kind"],
                "additionalProperties": false,
            },
        ] });
        assert_eq!(
            *folded(&schema),
            json!({
                "type": "object",
                "properties": {
                    "kind": { "type": "string", "enum": ["file", "page"] },
                    "path": { "type": "string" },
                    "size": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                    "url": { "type": "string" },
                },
                "required": ["kind"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn of_all_of_several_all_is_listed_and_required() {
        let schema = json!({
            "type": "object",
            "allOf": [
                { "$ref": "#/$defs/paged" },
                { "properties": { "q": { "type": "string" } }, "required": ["q"] },
                { "if": { "required": ["q"] }, "then": { "properties": { "exact": { "type": "boolean" } }, "required": ["exact"] } },
            ],
            "$defs": { "paged": { "properties": { "page": { "type": "integer" } }, "required": ["page"] } },
            "unevaluatedProperties": false,
        });
        assert_eq!(
            *folded(&schema),
            json!({
                "type": "object",
                "properties": { "page": { "type": "integer" }, "q": { "type": "string" }, "exact": { "type": "boolean" } },
                "required": ["page", "q"],
                "$defs": { "paged": { "properties": { "page": { "type": "integer" } }, "required": ["page"] } },
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn calls_of_each_kind_fit_what_is_listed() {
        let schemas = [
            json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "properties": { "b": { "type": "integer" } }, "required": ["b"] }] }),
            json!({ "type": "object", "properties": { "a": { "enum": [1, 2] } }, "oneOf": [{ "properties": { "a": { "const": 1 } } }, { "properties": { "a": { "const": 2 } }, "required": ["b"] }] }),
            json!({ "type": "object", "allOf": [{ "properties": { "a": { "minimum": 1 } } }, { "properties": { "a": { "type": "integer" } } }], "not": { "required": ["b"] } }),
            json!({ "type": "object", "properties": { "a": true }, "additionalProperties": false, "anyOf": [{ "properties": { "b": true } }, true] }),
        ];
        let values =
            [json!({}), json!({ "a": 1 }), json!({ "a": 2, "b": 1 }), json!({ "b": 1 }), json!({ "b": "x", "c": 1 })];
        for schema in schemas {
            let listed = folded(&schema);
            assert!(composition(&listed).is_empty(), "{listed}");
            for value in &values {
                assert!(
                    !jsonschema::is_valid(&schema, value) || jsonschema::is_valid(&listed, value),
                    "{value} by {schema} and {listed}"
                );
            }
        }
    }

    #[test]
    fn a_plain_schema_stays_as_it_is() {
        let schema =
            json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } });
        assert!(matches!(folded(&schema), Cow::Borrowed(_)));
    }
}
