//! Strict modes: a schema said in the part of JSON Schema that a provider can force a model to keep to.
//!
//! Any value that fits the original can still be said, with `null` for an argument that is omitted. What the part
//! has no word for goes into the description, and the host checks it when the call comes.

mod bounds;
mod keywords;

use super::Note;
use bounds::Bounds;
use keywords::{
    Fields, TOLD, add_null, drop_pointless, has_type, is_rule, literals, merge, names, names_in, share_type,
    split_types, takes_null, tell, types_of,
};
use serde_json::{Value, json};

/// The part of JSON Schema that a strict mode knows.
pub struct Dialect {
    /// Keywords beside those that every dialect has.
    keywords: &'static [&'static str],
    /// Values of `format`.
    formats: &'static [&'static str],
    /// Every property is required; `null` means that one is omitted.
    all_required: bool,
    /// `enum` and `const` appear without `type`; an object or a list is of no other type as well.
    one_type: bool,
    /// A schema may hold itself.
    recursive: bool,
    bounds: Option<&'static Bounds>,
}

/// OpenAI's: `toStrictJsonSchema` of its package; the guide to structured outputs for keywords, formats and bounds.
#[rustfmt::skip]
pub const OPENAI: Dialect = Dialect {
    keywords: &[
        "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems",
        "maxItems",
    ],
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    all_required: true,
    one_type: false,
    recursive: true,
    bounds: Some(&Bounds {
        properties: 5000,
        levels: 10,
        name_chars: 120_000,
        enum_values: 1000,
        long_enum_chars: 15_000,
        long_enum: 250,
    }),
};

/// Anthropic's: `transformJSONSchema` of its package.
pub const ANTHROPIC: Dialect = Dialect {
    keywords: &["format", "minItems"],
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    all_required: false,
    one_type: true,
    recursive: false,
    bounds: None,
};

/// What every dialect has.
#[rustfmt::skip]
const COMMON: [&str; 11] = [
    "type", "title", "description", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "$defs",
];

/// A schema within a dialect.
pub struct Strict {
    /// The schema.
    pub schema: Value,
    /// What it does not enforce any more; the description says it instead.
    pub lost: Vec<Note>,
    /// Why it cannot be said at all; the schema is of no use then.
    pub impossible: Vec<Note>,
}

impl Dialect {
    /// Says a schema in this dialect: `portable` comes from [`super::schema::portable`] of `original`, against which the
    /// host checks calls.
    #[must_use]
    pub fn say(&self, portable: &Value, original: &Value) -> Strict {
        let mut speaker = Speaker { dialect: self, original, lost: Vec::new(), impossible: Vec::new() };
        let schema = speaker.say(portable.clone(), "");
        if let Some(bounds) = self.bounds {
            speaker.impossible.extend(bounds.broken(&schema).map(|what| Note::new("", what)));
        }
        Strict { schema, lost: speaker.lost, impossible: speaker.impossible }
    }

    fn has(&self, keyword: &str, value: &Value, node: &Fields) -> bool {
        if let Some(alone) = ["$ref", "anyOf"].into_iter().find(|alone| node.contains_key(*alone)) {
            return keyword == alone || ["title", "description", "$defs"].contains(&keyword);
        }
        match keyword {
            _ if COMMON.contains(&keyword) => true,
            _ if !self.keywords.contains(&keyword) => false,
            "format" if self.one_type && node.get("type").is_none_or(|own| own != "string") => false,
            "format" => value.as_str().is_some_and(|format| self.formats.contains(&format)),
            "minItems" if self.one_type => value.as_u64().is_some_and(|least| least <= 1),
            _ => true,
        }
    }
}

struct Speaker<'s> {
    dialect: &'s Dialect,
    original: &'s Value,
    lost: Vec<Note>,
    impossible: Vec<Note>,
}

impl Speaker<'_> {
    fn say(&mut self, schema: Value, at: &str) -> Value {
        let Value::Object(mut node) = schema else {
            self.cannot(at, format!("the schema `{schema}`"));
            return schema;
        };
        self.merge_parts(&mut node, at);
        self.choose(&mut node, at);
        self.settle_type(&mut node, at);
        if self.dialect.one_type {
            split_types(&mut node);
        }
        self.close_object(&mut node, at);
        self.say_items(&mut node, at);
        self.tell_the_rest(&mut node, at);
        for keyword in ["anyOf", "$defs"] {
            if let Some(parts) = node.get_mut(keyword) {
                self.say_parts(parts, &format!("{at}/{keyword}"));
            }
        }
        node.into()
    }

    fn say_parts(&mut self, parts: &mut Value, at: &str) {
        match parts {
            Value::Array(list) => {
                for (index, part) in list.iter_mut().enumerate() {
                    *part = self.say(part.take(), &format!("{at}/{index}"));
                }
            }
            Value::Object(named) => {
                for (name, part) in named {
                    *part = self.say(part.take(), &format!("{at}/{name}"));
                }
            }
            _ => {}
        }
    }

    fn cannot(&mut self, at: &str, what: impl Into<String>) {
        self.impossible.push(Note::new(at, what));
    }

    /// An `allOf` becomes one schema with what is beside it.
    fn merge_parts(&mut self, node: &mut Fields, at: &str) {
        let Some(Value::Array(parts)) = node.shift_remove("allOf") else { return };
        for part in parts {
            if !merge(node, part) {
                self.cannot(at, "an `allOf` whose parts do not come to one schema");
            }
        }
    }

    /// `oneOf` becomes `anyOf`: a model that has to keep to one alternative gives one. A type beside it goes into each.
    fn choose(&mut self, node: &mut Fields, at: &str) {
        let Some(keyword) = ["anyOf", "oneOf"].into_iter().find(|keyword| node.contains_key(*keyword)) else { return };
        let says_more = ["properties", "items", "enum", "const", "$ref"].iter().any(|own| node.contains_key(*own));
        let mut choice = node.shift_remove(keyword).expect("it was found");
        if at.is_empty() && !says_more {
            self.cannot(at, "a choice instead of the arguments");
        }
        if !at.is_empty() && !says_more && share_type(node, &mut choice) {
            node.insert("anyOf".into(), choice);
        } else {
            self.lose(at, keyword);
            tell(node, &[(keyword.into(), choice)]);
        }
    }

    fn settle_type(&mut self, node: &mut Fields, at: &str) {
        if node.contains_key("anyOf") {
            return;
        }
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            if !self.dialect.recursive {
                self.cannot(at, "a schema that holds itself");
            } else if reference != "#" && !reference.starts_with("#/$defs/") {
                self.cannot(at, format!("the reference `{reference}`"));
            }
            return;
        }
        if let Some(values) = literals(node) {
            if values.iter().any(|value| value.is_object() || value.is_array()) {
                self.cannot(at, "a fixed value that is an object or a list");
            }
            if self.dialect.one_type {
                node.shift_remove("type");
            } else if !node.contains_key("type") {
                node.insert("type".into(), types_of(&values));
            }
            return;
        }
        let implied =
            [("properties", "object"), ("items", "array")].into_iter().find(|(own, _)| node.contains_key(*own));
        match (node.get("type"), implied) {
            (Some(Value::Array(types)), _) if types.len() == 1 => node["type"] = types[0].clone(),
            (None, Some((_, implied))) => _ = node.insert("type".into(), implied.into()),
            (None, None) => self.cannot(at, "a value of any type"),
            _ => {}
        }
        drop_pointless(node);
    }

    /// An object has the keys that are described, and no others.
    fn close_object(&mut self, node: &mut Fields, at: &str) {
        if !has_type(node, "object") {
            return;
        }
        self.check_keys(node, at);
        let required = names(node.get("required"));
        let properties = node.get_mut("properties").map_or_else(|| json!({}), Value::take);
        let Value::Object(mut properties) = properties else { return };
        for (name, property) in &mut properties {
            let at = format!("{at}/properties/{name}");
            *property = self.say(property.take(), &at);
            if self.dialect.all_required && !required.contains(name) {
                self.make_nullable(property, &at);
            }
        }
        if self.dialect.all_required {
            node.insert("required".into(), properties.keys().cloned().collect());
        }
        node.insert("properties".into(), properties.into());
        node.insert("additionalProperties".into(), false.into());
    }

    /// Keys that are not listed cannot be said. Arguments of which nothing is said are none; a part can be anything then.
    fn check_keys(&mut self, node: &mut Fields, at: &str) {
        let no_others = |keyword: &str| node.get(keyword).is_some_and(|others| *others == Value::Bool(false));
        let is_closed = no_others("additionalProperties") || no_others("unevaluatedProperties");
        let is_open = node.contains_key("additionalProperties") && !no_others("additionalProperties");
        let listed = names_in(node.get("properties"));
        let is_unsaid = listed.is_empty() && !is_closed && !at.is_empty();
        if node.contains_key("patternProperties") || is_open || is_unsaid {
            self.cannot(at, "an object with keys that are not listed");
        }
        for name in names(node.get("required")).iter().filter(|name| !listed.contains(name)) {
            self.cannot(at, format!("`{name}`, which is required and not described"));
        }
        if is_closed {
            node.shift_remove("unevaluatedProperties");
        }
    }

    fn make_nullable(&mut self, property: &mut Value, at: &str) {
        if takes_null(property) {
            return;
        }
        if !is_null_dropped(self.original, at) {
            self.lost
                .push(Note::new(at, "a strict mode writes `null` where it is omitted, which the tool does not accept"));
        }
        if let Value::Object(node) = property {
            add_null(node);
        }
    }

    fn say_items(&mut self, node: &mut Fields, at: &str) {
        if !has_type(node, "array") {
            return;
        }
        if node.contains_key("prefixItems") {
            self.cannot(at, "a list with items by position");
        }
        match node.get_mut("items") {
            Some(items) if items.is_object() => *items = self.say(items.take(), &format!("{at}/items")),
            _ => self.cannot(at, "a list of anything"),
        }
    }

    /// What the dialect has no word for goes, and a description tells it.
    fn tell_the_rest(&mut self, node: &mut Fields, at: &str) {
        let has = |(keyword, value): &(&String, &Value)| !self.dialect.has(keyword, value, node);
        let others: Vec<String> = node.iter().filter(has).map(|(keyword, _)| keyword.clone()).collect();
        let mut told = Vec::new();
        for keyword in others {
            let value = node.shift_remove(&keyword).expect("it was there");
            if is_rule(&keyword) {
                self.lose(at, &keyword);
            }
            if is_rule(&keyword) || (TOLD.contains(&keyword.as_str()) && !value.is_null()) {
                told.push((keyword, value));
            }
        }
        tell(node, &told);
    }

    fn lose(&mut self, at: &str, keyword: &str) {
        self.lost.push(Note::new(at, format!("a strict mode cannot enforce `{keyword}`")));
    }
}

/// Whether the host treats `null` here as "omitted": it does along plain properties (`definition.rs`).
fn is_null_dropped(original: &Value, at: &str) -> bool {
    let along_properties = at.split('/').skip(1).step_by(2).all(|keyword| keyword == "properties");
    along_properties && original.pointer(at).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn openai(schema: &Value) -> Value {
        clean(OPENAI.say(schema, schema))
    }

    fn anthropic(schema: &Value) -> Value {
        clean(ANTHROPIC.say(schema, schema))
    }

    fn clean(strict: Strict) -> Value {
        assert_eq!((texts(&strict.lost), texts(&strict.impossible)), (vec![], vec![]));
        strict.schema
    }

    fn texts(notes: &[Note]) -> Vec<String> {
        notes.iter().map(ToString::to_string).collect()
    }

    /// What OpenAI's mode makes of one optional argument.
    fn argument(schema: Value) -> Strict {
        let schema = json!({ "type": "object", "properties": { "a": schema } });
        let mut strict = OPENAI.say(&schema, &schema);
        strict.schema = strict.schema["properties"]["a"].take();
        strict
    }

    fn lost(schema: Value) -> Vec<String> {
        texts(&argument(schema).lost)
    }

    fn impossible(schema: Value) -> Vec<String> {
        texts(&argument(schema).impossible)
    }

    #[test]
    fn objects_are_closed_and_every_property_is_required() {
        let inner = json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] });
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": inner }, "required": ["b"] });
        let mut closed = inner;
        closed["additionalProperties"] = false.into();
        let expected = json!({
            "type": "object", "properties": { "a": { "type": ["string", "null"] }, "b": closed },
            "required": ["a", "b"], "additionalProperties": false,
        });
        assert_eq!(openai(&schema), expected);
        let nothing = json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false });
        assert_eq!(openai(&json!({ "type": "object" })), nothing);
    }

    #[test]
    fn what_may_be_left_away_may_be_null() {
        let any_of = json!([{ "type": "string" }, { "type": "integer" }]);
        for (given, expected) in [
            (json!({ "type": "string" }), json!({ "type": ["string", "null"] })),
            (json!({ "type": ["integer", "null"] }), json!({ "type": ["integer", "null"] })),
            (json!({ "type": "string", "enum": ["x"] }), json!({ "type": ["string", "null"], "enum": ["x", null] })),
            (json!({ "const": 7 }), json!({ "type": ["integer", "null"], "enum": [7, null] })),
            (json!({ "enum": ["x", null] }), json!({ "type": ["null", "string"], "enum": ["x", null] })),
            (
                json!({ "oneOf": any_of }),
                json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] }),
            ),
            (
                json!({ "anyOf": [{ "type": ["string", "null"] }] }),
                json!({ "anyOf": [{ "type": ["string", "null"] }] }),
            ),
        ] {
            assert_eq!(clean(argument(given)), expected);
        }
    }

    #[test]
    fn a_rule_without_a_word_is_told_and_reported() {
        let strict = argument(
            json!({ "type": "string", "minLength": 2, "pattern": "^a", "description": "An a.", "default": "ab" }),
        );
        assert_eq!(texts(&strict.lost), ["/properties/a: a strict mode cannot enforce `minLength`"]);
        let told = "An a.\n\n{minLength: 2, default: \"ab\"}";
        assert_eq!(strict.schema, json!({ "type": ["string", "null"], "pattern": "^a", "description": told }));
        for rule in [json!({ "not": { "const": "x" } }), json!({ "format": "uri" }), json!({ "if": {}, "then": {} })] {
            let mut schema = json!({ "type": "string" });
            schema.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
            assert_eq!(lost(schema).len(), rule.as_object().unwrap().len(), "{rule}");
        }
        assert_eq!(lost(json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })).len(), 1);
        assert_eq!(lost(json!({ "type": "integer", "format": "uint64", "minLength": 3, "default": null })), [""; 0]);
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        for (schema, why) in [
            (json!({}), "a value of any type"),
            (json!(true), "the schema `true`"),
            (json!({ "type": "object" }), "keys that are not listed"),
            (json!({ "type": "object", "additionalProperties": { "type": "string" } }), "keys that are not listed"),
            (
                json!({ "type": "object", "properties": {}, "patternProperties": { "^x": {} } }),
                "keys that are not listed",
            ),
            (
                json!({ "type": "object", "properties": {}, "additionalProperties": false, "required": ["x"] }),
                "`x`, which is required",
            ),
            (json!({ "type": "array" }), "a list of anything"),
            (
                json!({ "type": "array", "items": { "type": "string" }, "prefixItems": [{ "type": "null" }] }),
                "by position",
            ),
            (json!({ "enum": [{ "a": 1 }] }), "a fixed value that is an object or a list"),
            (json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }), "an `allOf` whose parts"),
        ] {
            let impossible = impossible(schema.clone());
            assert!(
                impossible.iter().any(|what| what.starts_with("/properties/a") && what.contains(why)),
                "{schema}: {impossible:?}"
            );
        }
        let root = json!({ "type": "object", "oneOf": [{ "properties": { "a": { "type": "string" } } }] });
        assert_eq!(texts(&OPENAI.say(&root, &root).impossible), ["a choice instead of the arguments"]);
    }

    #[test]
    fn an_all_of_that_comes_to_one_schema_is_one() {
        let schema = json!({
            "type": "object", "unevaluatedProperties": false,
            "allOf": [
                { "properties": { "a": { "type": "string" } }, "required": ["a"] },
                { "allOf": [{ "properties": { "b": { "type": "null" } } }], "required": ["b"], "description": "Both." },
            ],
        });
        let expected = json!({
            "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "null" } },
            "required": ["a", "b"], "additionalProperties": false, "description": "Both.",
        });
        assert_eq!(openai(&schema), expected);
        let closed = json!({ "properties": { "b": {} }, "additionalProperties": false });
        assert_eq!(
            impossible(json!({ "type": "object", "properties": { "a": {} }, "allOf": [closed] }))[0].split(": ").nth(1),
            Some("an `allOf` whose parts do not come to one schema")
        );
    }

    #[test]
    fn a_type_beside_a_choice_goes_into_it() {
        let strict = clean(argument(
            json!({ "type": "string", "oneOf": [{ "const": "x", "description": "X." }, { "enum": ["y"] }] }),
        ));
        let expected = json!({ "anyOf": [
            { "type": "string", "const": "x", "description": "X." },
            { "type": "string", "enum": ["y"] },
            { "type": "null" },
        ] });
        assert_eq!(strict, expected);
        let beside =
            json!({ "type": "object", "properties": { "x": { "type": "null" } }, "anyOf": [{ "required": ["x"] }] });
        assert_eq!(lost(beside), ["/properties/a: a strict mode cannot enforce `anyOf`"]);
    }

    #[test]
    fn a_null_that_the_host_would_not_drop_is_a_loss() {
        let object = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
        assert_eq!(lost(object.clone()), [""; 0]);
        let note = "a strict mode writes `null` where it is omitted, which the tool does not accept";
        assert_eq!(
            lost(json!({ "type": "array", "items": object })),
            [format!("/properties/a/items/properties/x: {note}")]
        );
        let referring = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "required": ["a"] });
        let inlined = json!({ "type": "object", "properties": { "a": object }, "required": ["a"] });
        assert_eq!(texts(&OPENAI.say(&inlined, &referring).lost), [format!("/properties/a/properties/x: {note}")]);
    }

    #[test]
    fn a_schema_that_holds_itself_can_be_said_to_openai() {
        let next = json!({ "$ref": "#/$defs/node", "description": "The next." });
        let schema = json!({
            "type": "object", "properties": { "list": { "$ref": "#/$defs/node" } }, "required": ["list"],
            "$defs": { "node": { "type": "object", "properties": { "next": next } } },
        });
        let strict = OPENAI.say(&schema, &schema);
        assert_eq!(texts(&strict.impossible), [""; 0]);
        let next = json!({ "description": "The next.", "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] });
        assert_eq!(strict.schema["$defs"]["node"]["properties"]["next"], next);
        assert!(
            texts(&ANTHROPIC.say(&schema, &schema).impossible)
                .contains(&"/properties/list: a schema that holds itself".into())
        );
    }

    #[test]
    fn a_schema_of_openai_has_bounds() {
        let wide = |count: usize| {
            (0..count).map(|number| (format!("p{number}"), json!({ "type": "null" }))).collect::<Fields>()
        };
        let bounds = |schema: Value| texts(&OPENAI.say(&schema, &schema).impossible);
        assert_eq!(bounds(json!({ "type": "object", "properties": wide(5001) })), ["5001 properties (limit: 5000)"]);
        let deep = (0..10).fold(
            json!({ "type": "null" }),
            |inner, _| json!({ "type": "object", "properties": { "a": inner }, "required": ["a"] }),
        );
        assert_eq!(bounds(deep.clone()), [""; 0]);
        let deeper = json!({ "type": "object", "properties": { "a": deep }, "required": ["a"] });
        assert_eq!(bounds(deeper), ["11 levels of objects (limit: 10)"]);
        let values: Vec<u16> = (0..1001).collect();
        let choice = json!({ "type": "object", "properties": { "a": { "enum": values } }, "required": ["a"] });
        assert_eq!(bounds(choice), ["1001 values to choose from (limit: 1000)"]);
    }

    #[test]
    fn anthropic_keeps_what_may_be_left_away_and_tells_bounds() {
        let schema = json!({
            "type": "object", "required": ["list"],
            "properties": {
                "list": { "type": "array", "items": { "type": "string", "format": "uri" }, "minItems": 1 },
                "when": { "type": "string", "enum": ["now"] },
                "more": {
                    "type": ["object", "null"], "properties": { "x": { "type": "number" } }, "description": "More.",
                },
            },
        });
        let more =
            json!({ "type": "object", "properties": { "x": { "type": "number" } }, "additionalProperties": false });
        let expected = json!({
            "type": "object", "required": ["list"], "additionalProperties": false,
            "properties": {
                "list": { "type": "array", "items": { "type": "string", "format": "uri" }, "minItems": 1 },
                "when": { "enum": ["now"] },
                "more": { "description": "More.", "anyOf": [more, { "type": "null" }] },
            },
        });
        assert_eq!(anthropic(&schema), expected);
        let schema =
            json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 9 } } });
        let strict = ANTHROPIC.say(&schema, &schema);
        assert_eq!(
            strict.schema["properties"]["n"],
            json!({ "type": "integer", "description": "{minimum: 0, maximum: 9}" })
        );
        assert_eq!(strict.lost.len(), 2);
    }

    /// A schema, and a value that fits it.
    type Pair = (Value, Value);

    fn pairs() -> impl Strategy<Value = Pair> {
        let leaf = prop_oneof![
            "[a-z]{0,4}"
                .prop_map(|text| (json!({ "type": "string", "maxLength": 4, "description": "Text." }), text.into())),
            (0..9_i64).prop_map(|number| (json!({ "type": "integer", "minimum": 0, "default": 3 }), number.into())),
            any::<bool>().prop_map(|value| (json!({ "type": ["boolean", "null"] }), value.into())),
            Just((json!({ "type": "string", "enum": ["x", "y"] }), "y".into())),
            Just((json!({ "const": 4 }), 4.into())),
            Just((json!({ "type": "null" }), Value::Null)),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                objects(inner.clone()),
                (inner.clone(), 0..3_usize).prop_map(|((schema, value), count)| {
                    (json!({ "type": "array", "items": schema, "uniqueItems": false }), vec![value; count].into())
                }),
                (inner.clone(), inner.clone())
                    .prop_map(|((one, value), (other, _))| (json!({ "anyOf": [other, one] }), value)),
                inner.clone().prop_map(|(schema, value)| (json!({ "oneOf": [schema], "title": "One" }), value)),
                inner.prop_map(|(schema, value)| (json!({ "allOf": [schema, true] }), value)),
            ]
        })
    }

    fn objects(inner: impl Strategy<Value = Pair>) -> impl Strategy<Value = Pair> {
        proptest::collection::btree_map("[a-d]", (inner, any::<bool>(), any::<bool>()), 1..4).prop_map(|fields| {
            let required: Vec<&String> = fields.iter().filter(|(_, field)| field.1).map(|(name, _)| name).collect();
            let properties: Fields = fields.iter().map(|(name, field)| (name.clone(), field.0.0.clone())).collect();
            let is_given = |field: &(Pair, bool, bool)| field.1 || field.2;
            let given = fields.iter().filter(|(_, field)| is_given(field));
            let value: Fields = given.map(|(name, field)| (name.clone(), field.0.1.clone())).collect();
            (json!({ "type": "object", "properties": properties, "required": required }), value.into())
        })
    }

    /// What a model has to write for `value`: `null` for whatever is omitted.
    fn written(value: &Value, schema: &Value) -> Value {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let parts = schema[keyword].as_array().into_iter().flatten().filter(|part| part.is_object());
            if let Some(part) = parts.into_iter().find(|part| jsonschema::draft202012::is_valid(part, value)) {
                return written(value, part);
            }
        }
        match (value, schema["properties"].as_object()) {
            (Value::Object(fields), Some(properties)) => {
                let field = |(name, property): (&String, &Value)| {
                    (name.clone(), fields.get(name).map_or(Value::Null, |value| written(value, property)))
                };
                properties.iter().map(field).collect::<Fields>().into()
            }
            (Value::Array(items), _) => items.iter().map(|item| written(item, &schema["items"])).collect(),
            _ => value.clone(),
        }
    }

    proptest! {
        #[test]
        fn every_value_of_the_original_can_be_said((schema, value) in objects(pairs())) {
            let strict = OPENAI.say(&schema, &schema);
            prop_assert_eq!(texts(&strict.impossible), vec![""; 0]);
            let written = written(&value, &schema);
            prop_assert!(jsonschema::draft202012::is_valid(&strict.schema, &written), "{} {}", strict.schema, written);
            let described = ANTHROPIC.say(&schema, &schema);
            prop_assert_eq!(texts(&described.impossible), vec![""; 0]);
            prop_assert!(jsonschema::draft202012::is_valid(&described.schema, &value), "{} {}", described.schema, value);
        }

        #[test]
        fn said_twice_is_said_once((schema, _) in objects(pairs())) {
            for dialect in [OPENAI, ANTHROPIC] {
                let once = dialect.say(&schema, &schema).schema;
                let twice = dialect.say(&once, &once);
                prop_assert_eq!(texts(&twice.lost), vec![""; 0]);
                prop_assert_eq!(twice.schema.to_string(), once.to_string());
            }
        }
    }
}
