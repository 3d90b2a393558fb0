//! The short way to a yes: plain values against plain schemas, without a validator, which takes a millisecond to make.
//!
//! It knows the keywords that tools use most. Where it does not say yes, the validator decides, and says what is wrong.

use super::resolve;
use serde_json::{Map, Value};

/// Whole numbers beyond this are not all exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns true only if the value is valid; false says nothing.
pub(super) fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    match schema {
        Value::Bool(all) => *all,
        Value::Object(keywords) => {
            keywords.iter().all(|(keyword, wanted)| obeys(value, keyword, wanted, keywords, root))
        }
        _ => false,
    }
}

fn obeys(value: &Value, keyword: &str, wanted: &Value, keywords: &Map<String, Value>, root: &Value) -> bool {
    match keyword {
        // These are about the schema, not about the value. In 2020-12 a format is such a one.
        "$comment" | "$defs" | "$schema" | "default" | "deprecated" | "description" | "examples" | "format"
        | "title" => true,
        "$ref" => {
            let target = wanted.as_str().and_then(|reference| resolve(root, reference));
            target.is_some_and(|target| fits(value, target, root))
        }
        "anyOf" => wanted.as_array().is_some_and(|schemas| schemas.iter().any(|schema| fits(value, schema, root))),
        "const" => value == wanted,
        "enum" => wanted.as_array().is_some_and(|values| values.contains(value)),
        "type" => match wanted {
            Value::String(kind) => is_of(value, kind),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind)),
            _ => false,
        },
        "minimum" => !value.is_number() || ordered(wanted, value),
        "maximum" => !value.is_number() || ordered(value, wanted),
        "minLength" => value.as_str().is_none_or(|text| at_least(text.chars().count(), wanted)),
        "maxLength" => value.as_str().is_none_or(|text| at_most(text.chars().count(), wanted)),
        "minItems" => value.as_array().is_none_or(|items| at_least(items.len(), wanted)),
        "maxItems" => value.as_array().is_none_or(|items| at_most(items.len(), wanted)),
        "items" => {
            let is_all = !keywords.contains_key("prefixItems");
            is_all && value.as_array().is_none_or(|items| items.iter().all(|item| fits(item, wanted, root)))
        }
        "required" => value.as_object().is_none_or(|fields| {
            wanted.as_array().is_some_and(|names| {
                names.iter().all(|name| name.as_str().is_some_and(|name| fields.contains_key(name)))
            })
        }),
        "properties" => value.as_object().is_none_or(|fields| {
            wanted.as_object().is_some_and(|properties| {
                // Whichever of the two has fewer.
                fields.iter().all(|(name, field)| properties.get(name).is_none_or(|schema| fits(field, schema, root)))
            })
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            let properties = keywords.get("properties").and_then(Value::as_object);
            let is_named = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
            !keywords.contains_key("patternProperties")
                && fields.iter().all(|(name, field)| is_named(name) || fits(field, wanted, root))
        }),
        _ => false,
    }
}

/// Whether a value is of a type, which for a whole float it may be all the same.
pub(crate) fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        // A float may be whole as well; the validator knows.
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        _ => false,
    }
}

/// Whether two numbers that can be compared without loss are in this order.
fn ordered(least: &Value, most: &Value) -> bool {
    let whole = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    let float = |value: &Value| value.as_f64().filter(|float| float.abs() <= EXACT);
    match (whole(least), whole(most)) {
        (Some(least), Some(most)) => least <= most,
        _ => float(least).zip(float(most)).is_some_and(|(least, most)| least <= most),
    }
}

fn at_least(count: usize, wanted: &Value) -> bool {
    wanted.as_u64().is_some_and(|least| count as u64 >= least)
}

fn at_most(count: usize, wanted: &Value) -> bool {
    wanted.as_u64().is_some_and(|most| count as u64 <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Values that schemas could be about, near each other.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            prop_oneof![Just(0), -2_i64..6, any::<i64>()].prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            prop_oneof![Just(1.0), Just(-0.0), Just(2.5), Just(9.1e15), any::<f64>()].prop_map(Value::from),
            "[abäß]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[abc]", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let kind = prop::sample::select(vec!["array", "boolean", "integer", "null", "number", "object", "string"]);
        let count = 0_u64..4;
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            kind.clone().prop_map(|kind| json!({ "type": kind, "description": "x" })),
            prop::collection::btree_set(kind, 1..4).prop_map(|kinds| json!({ "type": kinds })),
            values().prop_map(|value| json!({ "const": value })),
            prop::collection::vec(values(), 1..4).prop_map(|values| json!({ "enum": values })),
            prop_oneof![(-2_i64..6).prop_map(Value::from), Just(json!(2.5)), any::<i64>().prop_map(Value::from)]
                .prop_map(|bound| json!({ "minimum": bound, "format": "uint32" })),
            (-2_i64..6).prop_map(|bound| json!({ "maximum": bound })),
            (count.clone(), count.clone())
                .prop_map(|(least, more)| json!({ "minLength": least, "maxLength": least + more })),
            (count.clone(), count).prop_map(|(least, more)| json!({ "minItems": least, "maxItems": least + more })),
            Just(json!({ "$ref": "#/$defs/one" })),
            Just(json!({ "pattern": "^a" })),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let named = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..3).prop_map(|schemas| json!({ "anyOf": schemas })),
                inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
                (inner.clone(), inner.clone())
                    .prop_map(|(first, items)| json!({ "prefixItems": [first], "items": items })),
                (named.clone(), prop::option::of(inner.clone()), prop::collection::btree_set("[abc]", 0..3)).prop_map(
                    |(properties, others, required)| {
                        let mut schema = json!({ "type": "object", "properties": properties, "required": required });
                        others.into_iter().for_each(|others| schema["additionalProperties"] = others);
                        schema
                    }
                ),
                (named, inner).prop_map(|(patterns, others)| {
                    json!({ "patternProperties": patterns, "additionalProperties": others })
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if std::env::var_os("TOOLCRIB_LONG").is_some() { 200_000 } else { 2000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn what_fits_is_valid(schema in schemas(), one in schemas(), value in values()) {
            // A reference to itself is refused before any value is looked at.
            prop_assume!(!one.to_string().contains("$ref"));
            let schema = json!({ "allOf": [true], "$defs": { "one": one }, "anyOf": [schema] });
            let plain = { let mut plain = schema.clone(); plain.as_object_mut().unwrap().remove("allOf"); plain };
            if fits(&value, &plain, &plain) {
                prop_assert!(jsonschema::draft202012::is_valid(&schema, &value), "{value} by {schema}");
            }
        }
    }

    #[test]
    fn arguments_of_a_tool_fit_without_a_validator() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "what to run" },
                "risk": { "$ref": "#/$defs/risk" },
                "wait": { "anyOf": [{ "type": ["boolean", "null"] }, { "type": "integer", "minimum": 0, "format": "uint32" }] },
            },
            "required": ["command", "risk"],
            "additionalProperties": false,
            "$defs": { "risk": { "type": "string", "enum": ["low", "high"] } },
        });
        let fits = |value: Value| super::fits(&value, &schema, &schema);
        assert!(fits(json!({ "command": "true", "risk": "low", "wait": 5 })));
        for wrong in [
            json!({ "command": "true" }),
            json!({ "command": 1, "risk": "low" }),
            json!({ "command": "true", "risk": "none" }),
            json!({ "command": "true", "risk": "low", "wait": -1 }),
            json!({ "command": "true", "risk": "low", "other": 1 }),
            json!([]),
        ] {
            assert!(!fits(wrong.clone()), "{wrong}");
        }
    }
}
