//! Schemas for models, made from types: JSON Schema 2020-12 without references and without the names of Rust types.

use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Returns the schema of a tool's arguments: an object that takes no other fields than the type names.
pub(crate) fn of_arguments<T: JsonSchema>() -> String {
    let mut schema = generated::<T>(Contract::Deserialize);
    // The tool's summary says it, and a flattened type would put its own words here.
    schema.remove("description");
    let root = schema.ensure_object();
    // `()` says that a tool takes no arguments, and serde that `()` is null; a call carries an object all the same.
    root.insert("type".into(), "object".into());
    if ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| root.contains_key(*keyword)) {
        root.entry("unevaluatedProperties").or_insert(false.into());
    } else {
        root.entry("properties").or_insert(json!({}));
        root.entry("additionalProperties").or_insert(false.into());
    }
    schema.as_value().to_string()
}

/// Returns the schema of a tool's result; a type that can be anything has none.
pub(crate) fn of_result<T: JsonSchema>() -> Option<String> {
    let schema = generated::<T>(Contract::Serialize);
    let says_something = schema.as_object().is_some_and(|root| !root.is_empty());
    says_something.then(|| schema.as_value().to_string())
}

fn generated<T: JsonSchema>(contract: Contract) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let plain = settings.with_transform(RecursiveTransform(drop_machine_formats));
    let mut schema = plain.with_transform(RecursiveTransform(list_values)).into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema
}

/// Model APIs refuse formats that the standard does not know, such as `uint64`; the bounds stay.
fn drop_machine_formats(schema: &mut Schema) {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if ["int", "uint", "float", "double"].iter().any(|prefix| format.starts_with(prefix)) {
        schema.remove("format");
    }
}

/// Writes an enumeration as one `enum`, with what its values mean in the description: a schema for each value takes a model three times the
/// tokens. An optional enumeration also takes `null`.
fn list_values(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    let optional = match fields.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(some), none]) if *none == json!({ "type": "null" }) => Some(some.clone()),
        _ => None,
    };
    let Some(values) = values(optional.as_ref().unwrap_or(fields)) else { return };
    let own = fields.get("description").or_else(|| optional.as_ref()?.get("description")).and_then(Value::as_str);
    let meanings = values.iter().filter_map(|(value, meaning)| Some(format!("`{value}`: {}", meaning.as_ref()?)));
    let description: Vec<String> = own.map(str::to_owned).into_iter().chain(meanings).collect();
    let mut listed: Vec<Value> = values.iter().map(|(value, _)| value.as_str().into()).collect();
    let mut kind = json!("string");
    if optional.is_some() {
        listed.push(Value::Null);
        kind = json!(["string", "null"]);
    }
    fields.retain(|keyword, _| !["anyOf", "oneOf", "description"].contains(&keyword.as_str()));
    fields.insert("type".into(), kind);
    fields.insert("enum".into(), listed.into());
    if !description.is_empty() {
        fields.insert("description".into(), description.join(" ").into());
    }
}

/// The values of an enumeration that has a schema for each, or for those that nothing is said of, and what they mean.
fn values(schema: &Map<String, Value>) -> Option<Vec<(String, Option<String>)>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut values = Vec::new();
    for branch in schema.get("oneOf")?.as_array()? {
        let meaning = text(&branch["description"]);
        match (&branch["const"], &branch["enum"]) {
            (Value::Null, Value::Array(several)) => {
                for value in several {
                    values.push((text(value)?, meaning.clone()));
                }
            }
            (value, _) => values.push((text(value)?, meaning)),
        }
    }
    Some(values)
}

#[cfg(test)]
#[expect(dead_code, reason = "only the schemas of these types count")]
mod tests {
    use super::*;
    use crate::Declaration;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    fn arguments<T: JsonSchema>() -> Value {
        serde_json::from_str(&of_arguments::<T>()).unwrap()
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        #[derive(JsonSchema)]
        struct Nothing {}

        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(arguments::<()>(), empty);
        assert_eq!(arguments::<Nothing>(), empty);
    }

    #[test]
    fn a_flattened_declaration_lies_among_the_other_arguments() {
        #[derive(Deserialize, JsonSchema)]
        struct Input {
            /// What to run.
            command: String,
            #[serde(flatten)]
            declaration: Declaration,
        }

        let schema = arguments::<Input>();
        assert_eq!(schema["required"], json!(["command", "risk", "mutation", "privesc", "why"]));
        assert_eq!(schema["properties"]["command"], json!({"type": "string", "description": "What to run."}));
        assert_eq!(schema["properties"]["risk"]["enum"], json!(["low", "medium", "high"]));
        assert_eq!(schema["properties"]["why"]["type"], "string");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema.get("description"), None);
    }

    #[test]
    fn nested_types_are_written_out() {
        #[derive(Deserialize, JsonSchema)]
        struct Point {
            x: f32,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Line {
            from: Point,
            to: Option<Point>,
        }

        let text = of_arguments::<Line>();
        assert!(!text.contains("$ref") && !text.contains("title") && !text.contains("format"), "{text}");
    }

    #[test]
    fn the_values_of_an_enumeration_are_one_list() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        enum Order {
            Newest,
            /// As they came.
            Oldest,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Input {
            /// The order.
            order: Order,
            plain: Order,
            /// Another order.
            other: Option<Order>,
        }

        let schema = &arguments::<Input>()["properties"];
        let both = json!({"type": "string", "enum": ["newest", "oldest"], "description": "The order. `oldest`: As they came."});
        assert_eq!(schema["order"], both);
        assert_eq!(schema["plain"]["description"], "`oldest`: As they came.");
        let other = json!({
            "type": ["string", "null"], "enum": ["newest", "oldest", null],
            "description": "Another order. `oldest`: As they came.",
        });
        assert_eq!(schema["other"], other);
    }

    #[test]
    fn alternatives_are_closed_too() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "action")]
        enum Input {
            Get { key: String },
            Put { key: String, value: String },
        }

        let schema = arguments::<Input>();
        assert_eq!((&schema["type"], &schema["unevaluatedProperties"]), (&json!("object"), &json!(false)));
    }

    #[test]
    fn a_type_may_ask_for_any_argument() {
        assert_eq!(arguments::<BTreeMap<String, bool>>()["additionalProperties"], json!({"type": "boolean"}));
    }

    #[test]
    fn results_are_described_as_they_are_written() {
        #[derive(Serialize, JsonSchema)]
        #[serde(untagged)]
        enum Output {
            Done {
                #[serde(skip_serializing_if = "Option::is_none")]
                code: Option<i32>,
            },
            Left(String),
        }

        let schema: Value = serde_json::from_str(&of_result::<Output>().unwrap()).unwrap();
        let done = json!({"type": "object", "properties": {"code": {"type": ["integer", "null"]}}});
        assert_eq!(schema, json!({"anyOf": [done, {"type": "string"}]}));
        assert_eq!(of_result::<Value>(), None);
    }
}
