//! JSON Schema of draft-07 as 2020-12, which is the only dialect that is checked here: servers of others write either.

use serde_json::{Map, Value};

/// How deep schemas are looked into.
const DEPTH: usize = 64;

/// The same schema in 2020-12. One without a dialect is taken as it is.
///
/// # Errors
///
/// Why it cannot be read, as the rest of a sentence.
pub fn modern(schema: &Value) -> Result<Value, String> {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_draft_07 = ["http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema"]
        .contains(&dialect.trim_end_matches('#'));
    let mut schema = schema.clone();
    if is_draft_07 {
        translate(&mut schema, 0)?;
    }
    if let Some(fields) = schema.as_object_mut() {
        // It names a place, and says nothing of values.
        fields.shift_remove("$id");
    }
    Ok(schema)
}

fn translate(schema: &mut Value, depth: usize) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("has a schema that nests deeper than {DEPTH} levels"));
    }
    match schema {
        Value::Array(items) => items.iter_mut().try_for_each(|item| translate(item, depth + 1)),
        Value::Object(fields) => {
            fields.shift_remove("$schema");
            // There, what stands beside a reference says nothing.
            if let Some(reference) = fields.get("$ref").filter(|reference| reference.is_string()).cloned() {
                let kept = ["definitions", "$defs"].map(|key| (key, fields.get(key).cloned()));
                *fields = Map::new();
                fields.insert("$ref".into(), reference);
                fields.extend(kept.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
            }
            if fields.get("items").is_some_and(Value::is_array) {
                let (items, rest) = (fields.shift_remove("items"), fields.shift_remove("additionalItems"));
                fields.extend(
                    [("prefixItems", items), ("items", rest)]
                        .into_iter()
                        .filter_map(|(key, value)| Some((key.to_owned(), value?))),
                );
            }
            if let Some(Value::Object(dependencies)) = fields.shift_remove("dependencies") {
                let (names, schemas): (Map<_, _>, Map<_, _>) =
                    dependencies.into_iter().partition(|(_, on)| on.is_array());
                fields.extend([
                    ("dependentRequired".to_owned(), names.into()),
                    ("dependentSchemas".to_owned(), schemas.into()),
                ]);
            }
            fields.values_mut().try_for_each(|field| translate(field, depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DRAFT_07: &str = "http://json-schema.org/draft-07/schema#";

    #[test]
    fn what_draft_07_writes_in_another_way_means_the_same() {
        let schema = json!({
            "$schema": DRAFT_07,
            "type": "object",
            "properties": {
                "pair": { "type": "array", "items": [{ "type": "string" }, { "type": "integer" }], "additionalItems": false },
                "one": { "$ref": "#/definitions/one", "minLength": 9 },
            },
            "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
            "definitions": { "one": { "type": "string" } },
        });
        let translated = modern(&schema).expect("it is a schema");
        assert!(jsonschema::draft202012::meta::validate(&translated).is_ok());
        let (old, new) = (
            jsonschema::draft7::new(&schema).expect("draft-07"),
            jsonschema::draft202012::new(&translated).expect("2020-12"),
        );
        for value in [
            json!({ "pair": ["x", 1] }),
            json!({ "pair": ["x", 1, 2] }),
            json!({ "pair": [1, "x"] }),
            json!({ "one": "x" }),
            json!({ "one": 1 }),
            json!({ "a": 1 }),
            json!({ "a": 1, "b": 2 }),
            json!({ "c": 1 }),
            json!({ "c": 1, "d": 2 }),
        ] {
            assert_eq!(old.is_valid(&value), new.is_valid(&value), "{value}");
        }
    }

    #[test]
    fn other_dialects_are_left_to_whoever_refuses_them() {
        let schema = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object" });
        assert_eq!(modern(&schema), Ok(schema));
    }
}
