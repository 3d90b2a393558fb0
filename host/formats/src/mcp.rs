//! The Model Context Protocol: `tools/list` and `tools/call`, with or without a JSON-RPC message around them.

use super::results::ToolResult;
use super::{Declared, Shape, ToolCall};
use base::envelope::Content;
use contract::schema::{NAMED_SCHEMAS, SCHEMA, SCHEMAS};
use serde_json::{Value, json};

/// `ListToolsResult`, `CallToolRequest` and `CallToolResult`.
pub(super) struct Mcp;

/// Drops the `null` that an optional argument may be, also within lists and objects: the host treats it as omitted anyway.
fn without_nulls(mut schema: Value) -> Value {
    if let Some(items) = schema.get_mut("items") {
        *items = without_nulls(items.take());
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        *property = without_nulls(property.take());
        if required.contains(&json!(name)) {
            continue;
        }
        forbid_null(property);
        let branches = property.get_mut("anyOf").and_then(Value::as_array_mut);
        branches.into_iter().flatten().for_each(forbid_null);
    }
    schema
}

fn forbid_null(schema: &mut Value) {
    let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) else { return };
    let is_null_alone = types.iter().all(|one| one == "null");
    if !is_null_alone {
        types.retain(|one| one != "null");
    }
    if let [one] = types.as_slice() {
        schema["type"] = one.clone();
    }
    // An enum of nothing but null would be left without a value.
    let values = schema.get_mut("enum").and_then(Value::as_array_mut).filter(|_| !is_null_alone);
    if let Some(values) = values.filter(|values| values.iter().any(|value| !value.is_null())) {
        values.retain(|value| !value.is_null());
    }
}

/// Drops what a model learns nothing from: that a count is not negative, that what is omitted is nothing, and that there are no other arguments.
/// Calls are checked against the schema that has it.
fn without_noise(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|keyword, value| match keyword.as_str() {
        "minimum" => value.as_f64() != Some(0.0),
        "default" => ![json!(false), json!(0), json!(""), json!([]), json!({}), Value::Null].contains(value),
        "additionalProperties" => *value != json!(false),
        _ => true,
    });
    if let Some(items) = fields.get_mut("items") {
        without_noise(items);
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, property)| without_noise(property));
}

/// Writes each `type` that lists several as an `anyOf` with one each, which means the same: clients stumble over the list.
fn one_type_each(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for (keyword, value) in fields.iter_mut() {
        match keyword.as_str() {
            keyword if SCHEMA.contains(&keyword) => one_type_each(value),
            keyword if SCHEMAS.contains(&keyword) => {
                value.as_array_mut().into_iter().flatten().for_each(one_type_each);
            }
            keyword if NAMED_SCHEMAS.contains(&keyword) => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| one_type_each(schema));
            }
            _ => {}
        }
    }
    let Some(types) = fields.get("type").and_then(Value::as_array) else { return };
    let branches = types.iter().map(|one| json!({ "type": one })).collect();
    fields.shift_remove("type");
    // If there is one already, both have to hold.
    let Some(other) = fields.insert("anyOf".into(), branches) else { return };
    let all = fields.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.push(json!({ "anyOf": other }));
    }
}

impl Shape for Mcp {
    fn tool(&self, Declared { offer, input, output, .. }: Declared<'_>) -> Value {
        let mut tool = json!({ "name": offer.definition.name });
        if let Some(title) = &offer.definition.title {
            tool["title"] = title.clone().into();
        }
        tool["description"] = offer.description.into();
        let mut input = without_nulls(input);
        without_noise(&mut input);
        one_type_each(&mut input);
        tool["inputSchema"] = input;
        if let Some(mut output) = output {
            one_type_each(&mut output);
            tool["outputSchema"] = output;
        }
        let effects = offer.effects;
        tool["annotations"] = json!({ "readOnlyHint": !effects.writes, "openWorldHint": effects.reaches_out });
        tool
    }

    fn list(&self, tools: Vec<Value>) -> Value {
        json!({ "tools": tools })
    }

    fn has_empty_list(&self) -> bool {
        true
    }

    fn has_output_schema(&self) -> bool {
        true
    }

    fn call_example(&self) -> &'static str {
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time","arguments":{}}}"#
    }

    /// A request, or its parameters alone.
    fn read(&self, message: &Value) -> Option<ToolCall> {
        let (id, params) = match message.get("method") {
            Some(method) => (message.get("id"), message.get("params").filter(|_| method == "tools/call")?),
            None => (None, message),
        };
        let known = ["name", "arguments", "_meta", "task"];
        let is_plain = params.as_object()?.keys().all(|field| known.contains(&field.as_str()));
        let arguments = params.get("arguments");
        let is_good = is_plain && arguments.is_none_or(Value::is_object);
        let id = id.filter(|id| id.is_string() || id.is_number());
        ToolCall::new(id, &params["name"], arguments).filter(|_| is_good)
    }

    fn is_read_plainly(&self) -> bool {
        true
    }

    fn part(&self, content: &Content) -> Option<Value> {
        match content {
            Content::Text(_) => None,
            Content::Image(..) | Content::Audio(..) => Some(content.to_json()),
            Content::Link(uri) => Some(json!({ "type": "resource_link", "uri": uri, "name": uri })),
        }
    }

    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value {
        let text = json!({ "type": "text", "text": result.text });
        let content: Value = [text].into_iter().chain(result.parts).collect();
        let mut answer = json!({ "content": content });
        if let Some(structured) = result.structured {
            answer["structuredContent"] = structured;
        }
        answer["isError"] = result.is_error.into();
        if let Some(meta) = result.meta {
            answer["_meta"] = meta.into();
        }
        match &call.id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "result": answer }),
            None => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(schema: &Value) -> Value {
        let mut split = schema.clone();
        one_type_each(&mut split);
        split
    }

    /// Lists of types in a schema; `dependentRequired` has lists of names.
    fn types(schema: &Value) -> usize {
        match schema {
            Value::Array(list) => list.iter().map(types).sum(),
            Value::Object(fields) => {
                let own = usize::from(fields.get("type").is_some_and(Value::is_array));
                own + fields
                    .iter()
                    .filter(|(name, _)| *name != "dependentRequired")
                    .map(|(_, one)| types(one))
                    .sum::<usize>()
            }
            _ => 0,
        }
    }

    #[test]
    fn one_type_each_accepts_the_same_values() {
        let schemas = [
            json!({ "type": ["string", "null"], "minLength": 2, "description": "a text" }),
            json!({ "type": ["integer", "string"], "minimum": 3, "enum": [1, 5, "ab", null] }),
            json!({ "anyOf": [{ "type": ["boolean", "null"] }, { "type": "integer", "minimum": 0 }] }),
            json!({ "type": ["object", "null"], "anyOf": [{ "required": ["a"] }, { "required": ["b"] }], "properties": { "a": { "type": ["number", "null"] }, "type": { "type": "string" } } }),
            json!({ "type": ["array"], "items": { "type": ["string", "integer"] } }),
            json!({ "not": { "type": ["string", "null"] } }),
            json!({ "type": ["object", "null"], "allOf": [{ "minProperties": 1 }], "anyOf": [{ "required": ["a"] }, { "maxProperties": 1 }] }),
            json!({ "type": "object", "dependentRequired": { "type": ["b"] }, "properties": { "default": { "type": ["string", "null"] } } }),
        ];
        let values = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1),
            json!(5),
            json!("a"),
            json!("ab"),
            json!([]),
            json!(["a", 1]),
            json!([1.5]),
            json!({}),
            json!({ "a": null }),
            json!({ "a": "x" }),
            json!({ "b": 1, "type": 1 }),
            json!({ "b": 1, "type": "x" }),
            json!({ "default": 1 }),
            json!({ "type": 1 }),
        ];
        for schema in schemas {
            let split = split(&schema);
            assert_eq!(types(&split), 0, "{split}");
            for value in &values {
                let [before, after] = [&schema, &split].map(|schema| jsonschema::is_valid(schema, value));
                assert_eq!(before, after, "{value} by {schema} and {split}");
            }
        }
    }

    #[test]
    fn what_is_no_schema_is_left_as_it_is() {
        for schema in [
            json!({ "const": { "type": ["a", "b"] }, "examples": [{ "type": ["c", "d"] }] }),
            json!({ "dependentRequired": { "type": ["b", "c"] } }),
        ] {
            assert_eq!(split(&schema), schema);
        }
    }

    #[test]
    fn lists_of_types_within_lists_of_types_do_not_multiply() {
        let all = ["array", "boolean", "integer", "null", "number", "object", "string"];
        let innermost = json!({ "type": all });
        let nested = (0..30).fold(innermost, |items, _| json!({ "type": all, "items": items }));
        let split = split(&nested);
        assert_eq!(types(&split), 0);
        assert!(split.to_string().len() < 4 * nested.to_string().len(), "{} bytes", split.to_string().len());
    }

    #[test]
    fn what_goes_without_saying_is_not_said() {
        let schema = json!({
            "default": false,
            "additionalProperties": false,
            "properties": {
                "additionalProperties": { "type": "object", "additionalProperties": { "type": "string" } },
                "count": { "type": "integer", "minimum": 0, "maximum": 9, "default": 0 },
                "default": { "type": "boolean", "default": false },
                "all": { "type": "boolean", "default": true },
                "minimum": { "type": "array", "default": [], "items": { "type": "number", "minimum": 0.0 } },
                "least": { "type": "integer", "minimum": 1, "default": null },
            },
        });
        let mut told = schema.clone();
        without_noise(&mut told);
        let expected = json!({
            "properties": {
                "additionalProperties": { "type": "object", "additionalProperties": { "type": "string" } },
                "count": { "type": "integer", "maximum": 9 },
                "default": { "type": "boolean" },
                "all": { "type": "boolean", "default": true },
                "minimum": { "type": "array", "items": { "type": "number" } },
                "least": { "type": "integer", "minimum": 1 },
            },
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn an_optional_argument_is_not_said_to_be_null() {
        let wait = json!({ "anyOf": [{ "type": ["boolean", "null"] }, { "type": "string" }] });
        let cards = json!({ "items": { "properties": { "x": { "type": ["string", "null"] }, "y": { "type": ["string", "null"] } }, "required": ["y"] } });
        let schema = json!({ "properties": { "cards": cards, "a": { "type": ["string", "null"] }, "b": wait, "c": { "type": ["string", "null"] }, "d": { "type": ["null"], "enum": [null] }, "e": { "type": ["string", "null"], "enum": ["x", null] } }, "required": ["c"] });
        let told = without_nulls(schema.clone());
        assert_eq!(told["properties"]["a"], json!({ "type": "string" }));
        let card = &told["properties"]["cards"]["items"]["properties"];
        assert_eq!((&card["x"], &card["y"]), (&json!({ "type": "string" }), &json!({ "type": ["string", "null"] })));
        assert_eq!(told["properties"]["b"], json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] }));
        assert_eq!(told["properties"]["c"], schema["properties"]["c"]);
        assert_eq!(told["properties"]["d"], json!({ "type": "null", "enum": [null] }));
        assert_eq!(told["properties"]["e"], json!({ "type": "string", "enum": ["x"] }));
    }
}
