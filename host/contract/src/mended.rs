//! Arguments as clients and models write them, made what they mean before anything else looks at them: whoever checks, asks, runs and records
//! has the same value.
//!
//! Nothing is guessed. A text becomes another value only where no text could be meant, and an argument is dropped only where its tool refuses
//! it and a client is known to add it. The definition of the tool says what is valid after that.

use crate::schema::{is_of, resolve};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::mem::discriminant;

/// How deep schemas are followed that look at one value.
const DEPTH: usize = 16;

/// What clients add to the arguments of a model: who does, and names that come together. They are dropped where the tool refuses them.
///
/// `action` and `sessionId` alone could be a model's words for something that matters, so they are n8n's only beside `chatInput`.
const ADDED: [(&str, &[&str]); 4] = [
    // n8n-io/n8n#21500, #21716 and #22787, makenotion/notion-mcp-server#146.
    ("n8n", &["toolCallId"]),
    // sansan0/TrendRadar#768: what the chat of a workflow begins with.
    ("n8n", &["sessionId", "action", "chatInput"]),
    // cline/cline#8256, #9919 and #10426.
    ("Cline", &["task_progress"]),
    // siyuan-note/siyuan#17927.
    ("SiYuan", &["_sessionID"]),
];

/// Writes what can be written in several ways as the types of plugins read it: a `null` for an optional argument is left out, `5.0` is `5`.
pub(crate) fn settle(arguments: &mut Value, schema: &Value) {
    drop_nulls(arguments, schema, schema);
    write_integers_plainly(arguments);
}

/// Drops the `null` of an optional property: model APIs write it for "not given".
fn drop_nulls(arguments: &mut Value, schema: &Value, root: &Value) {
    let target = schema["$ref"].as_str().and_then(|reference| resolve(root, reference));
    if let Some(target) = target {
        return drop_nulls(arguments, target, root);
    }
    if let Value::Array(items) = arguments {
        return items.iter_mut().for_each(|item| drop_nulls(item, &schema["items"], root));
    }
    let (Some(fields), Some(properties)) = (arguments.as_object_mut(), schema["properties"].as_object()) else {
        return;
    };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    fields.retain(|name, value| {
        let Some(property) = properties.get(name) else { return true };
        drop_nulls(value, property, root);
        !value.is_null() || required.contains(&name.as_str())
    });
}

/// Writes `5.0` as `5`: to JSON Schema both are integers, to the Rust type only one may be.
fn write_integers_plainly(value: &mut Value) {
    /// Up to here every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_integers_plainly),
        Value::Object(fields) => fields.values_mut().for_each(write_integers_plainly),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            if let Some(whole) = whole {
                #[expect(clippy::cast_possible_truncation, reason = "whole and within the range of exact floats")]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

/// Reads texts that are a whole value of another type, `"5"` or `"[\"-l\"]"`, where the schema takes no text and could take that value. Each is
/// read once: a text within it stays one.
pub(crate) fn read_texts(arguments: &mut Value, schema: &Value) {
    let texts = Texts { root: schema };
    texts.read(arguments, &texts.looking(&[schema]));
}

/// A walk through a value and the schema that it is held against.
struct Texts<'s> {
    root: &'s Value,
}

impl<'s> Texts<'s> {
    fn read(&self, value: &mut Value, schemas: &[&'s Map<String, Value>]) {
        match value {
            Value::String(text) => {
                let excludes = |sample: &Value| schemas.iter().any(|fields| self.excludes(fields, sample, 0));
                let is_no_text = excludes(&Value::String(String::new()));
                if let Some(meant) = is_no_text.then(|| whole(text)).flatten().filter(|meant| !excludes(meant)) {
                    *value = meant;
                }
            }
            Value::Array(items) => {
                for (place, item) in items.iter_mut().enumerate() {
                    let further: Vec<_> = schemas.iter().filter_map(|fields| of_item(fields, place)).collect();
                    self.read(item, &self.looking(&further));
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let further: Vec<_> = schemas.iter().filter_map(|fields| of_property(fields, name)).collect();
                    self.read(field, &self.looking(&further));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// All schemas that must hold for a value: these, what they refer to, and what there is no choice about.
    fn looking(&self, schemas: &[&'s Value]) -> Vec<&'s Map<String, Value>> {
        let mut all = Vec::new();
        schemas.iter().for_each(|schema| self.gather(schema, 0, &mut all));
        all
    }

    fn gather(&self, schema: &'s Value, depth: usize, all: &mut Vec<&'s Map<String, Value>>) {
        let Some(fields) = schema.as_object().filter(|_| depth < DEPTH) else { return };
        all.push(fields);
        let every = fields.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let only = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| only_choice(fields.get(keyword)?));
        for further in self.target(fields).into_iter().chain(every).chain(only) {
            self.gather(further, depth + 1, all);
        }
    }

    fn target(&self, fields: &'s Map<String, Value>) -> Option<&'s Value> {
        fields.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(self.root, reference))
    }

    /// Whether a schema takes no value of the kind of this one, by what it plainly says beside those that are gathered with it.
    fn excludes(&self, fields: &'s Map<String, Value>, sample: &Value, depth: usize) -> bool {
        let is_other = |value: &Value| discriminant(value) != discriminant(sample);
        let by_type = match fields.get("type") {
            Some(Value::String(kind)) => !is_of(sample, kind),
            Some(Value::Array(kinds)) => !kinds.iter().filter_map(Value::as_str).any(|kind| is_of(sample, kind)),
            _ => false,
        };
        let values = fields.get("enum").and_then(Value::as_array);
        let choices = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| fields.get(keyword)?.as_array());
        by_type
            || fields.get("const").is_some_and(is_other)
            || values.is_some_and(|values| values.iter().all(is_other))
            || choices.into_iter().any(|choices| choices.iter().all(|choice| self.rules_out(choice, sample, depth + 1)))
    }

    /// The same of one of several, with all that must hold where it does.
    fn rules_out(&self, choice: &'s Value, sample: &Value, depth: usize) -> bool {
        let mut all = Vec::new();
        self.gather(choice, depth, &mut all);
        *choice == false || all.iter().any(|fields| self.excludes(fields, sample, depth))
    }
}

/// The one schema of a list that a value has to fit unless it is null.
fn only_choice(list: &Value) -> Option<&Value> {
    let mut choices = list.as_array()?.iter().filter(|schema| schema["type"] != "null");
    choices.next().filter(|_| choices.next().is_none())
}

fn of_item(fields: &Map<String, Value>, place: usize) -> Option<&Value> {
    let first = fields.get("prefixItems").and_then(Value::as_array);
    first.and_then(|first| first.get(place)).or_else(|| fields.get("items"))
}

fn of_property<'s>(fields: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    let named = fields.get("properties").and_then(|properties| properties.get(name));
    let other = || fields.get("additionalProperties").filter(|_| !fields.contains_key("patternProperties"));
    named.or_else(other)
}

/// The value that a text is, but for one that could not be read without loss.
fn whole(text: &str) -> Option<Value> {
    let mut value = serde_json::from_str::<Value>(text).ok()?;
    let is_cut = value.is_f64() && !text.contains(['.', 'e', 'E']);
    write_integers_plainly(&mut value);
    (!is_cut).then_some(value)
}

/// Drops what clients are known to add where a tool refuses all that it does not name. Returns a notice for each client.
pub(crate) fn drop_added(arguments: &mut Value, tool: &str, schema: &Value) -> Vec<String> {
    let is_closed = schema["additionalProperties"] == false && schema.get("patternProperties").is_none();
    let Some(given) = arguments.as_object_mut().filter(|_| is_closed) else { return Vec::new() };
    dropped(given, tool, |name| schema["properties"].get(name).is_some())
}

/// Drops what clients are known to add, unless `knows` has it. Returns a notice for each client.
pub fn dropped(given: &mut Map<String, Value>, tool: &str, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (client, together) in ADDED {
        if together.iter().all(|name| given.contains_key(*name)) {
            all.extend(together.iter().filter(|name| !knows(name)).map(|name| (client, *name)));
        }
    }
    for (_, name) in &all {
        given.shift_remove(*name);
    }
    let said = |client: &str| {
        let names: Vec<String> =
            all.iter().filter(|(by, _)| *by == client).map(|(_, name)| format!("`{name}`")).collect();
        let (them, names) = (if names.len() == 1 { "it" } else { "them" }, names.join(", "));
        format!("dropped {names}: {client} adds {them} to calls, and `{tool}` does not take {them}")
    };
    all.iter().map(|(client, _)| *client).collect::<BTreeSet<_>>().into_iter().map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(schema: &Value, mut value: Value) -> Value {
        read_texts(&mut value, schema);
        value
    }

    /// The same schema around one argument.
    fn of(argument: &Value) -> Value {
        json!({ "type": "object", "properties": { "a": argument }, "$defs": { "level": { "type": "integer" }, "word": { "type": "string" } } })
    }

    #[test]
    fn nulls_are_left_away_wherever_an_object_stands() {
        let schema = json!({
            "type": "object",
            "properties": { "list": { "items": { "$ref": "#/$defs/one" } } },
            "$defs": { "one": { "properties": { "must": {}, "may": {} }, "required": ["must"] } },
        });
        let mut arguments = json!({ "list": [{ "must": null, "may": null, "other": null }] });
        drop_nulls(&mut arguments, &schema, &schema);
        assert_eq!(arguments, json!({ "list": [{ "must": null, "other": null }] }));
    }

    #[test]
    fn a_text_is_read_where_no_text_can_be_meant() {
        let list = json!({ "type": "array", "items": { "type": "string" } });
        let object = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        for (schema, text, meant) in [
            (json!({ "type": "integer" }), "5", json!(5)),
            (json!({ "type": "integer" }), "5.0", json!(5)),
            (json!({ "type": "integer" }), "-1", json!(-1)),
            (json!({ "type": "number" }), "2.5", json!(2.5)),
            (json!({ "type": "number" }), "1e3", json!(1000)),
            (json!({ "type": "boolean" }), "true", json!(true)),
            (json!({ "type": ["integer", "null"] }), "null", json!(null)),
            (json!({ "anyOf": [{ "type": "boolean" }, { "type": "integer" }] }), "10", json!(10)),
            (json!({ "anyOf": [{ "$ref": "#/$defs/level" }, { "type": "null" }] }), "10", json!(10)),
            (json!({ "allOf": [{ "description": "x" }, { "$ref": "#/$defs/level" }] }), "10", json!(10)),
            (json!({ "enum": [1, 2] }), "2", json!(2)),
            (json!({ "const": true }), "true", json!(true)),
            (list, r#"["-l"]"#, json!(["-l"])),
            (object.clone(), r#" {"n": 5} "#, json!({ "n": 5 })),
            // Once: what is within a text was written as it is.
            (object, r#"{"n":"5"}"#, json!({ "n": "5" })),
        ] {
            assert_eq!(read(&of(&schema), json!({ "a": text })), json!({ "a": meant }), "{schema}");
        }
    }

    #[test]
    fn a_text_stays_one_where_it_could_be_meant_or_is_not_such_a_value() {
        for (schema, text) in [
            (json!({ "type": "string" }), "5"),
            (json!({}), "5"),
            (json!(true), "5"),
            (json!({ "type": ["string", "integer"] }), "5"),
            (json!({ "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/word" }] }), "5"),
            (json!({ "enum": ["5", 5] }), "5"),
            (json!({ "enum": ["a", 5] }), "5"),
            (json!({ "type": "integer" }), "five"),
            (json!({ "type": "integer" }), ""),
            (json!({ "type": "integer" }), "5,"),
            (json!({ "type": "integer" }), "0x5"),
            (json!({ "type": "integer" }), "\"5\""),
            (json!({ "type": "integer" }), "5.5"),
            // Two more digits than a number has.
            (json!({ "type": "integer" }), "12345678901234567890123"),
            (json!({ "type": "boolean" }), "1"),
            (json!({ "type": "boolean" }), "True"),
            (json!({ "type": "boolean" }), "yes"),
            (json!({ "type": "integer" }), "null"),
            (json!({ "type": "array" }), "-l"),
            (json!({ "type": "array" }), "{}"),
            (json!({ "type": "object" }), "[]"),
        ] {
            assert_eq!(read(&of(&schema), json!({ "a": text })), json!({ "a": text }), "{schema}");
        }
    }
    #[test]
    fn what_clients_add_is_dropped_where_the_tool_refuses_it() {
        let closed = json!({ "type": "object", "properties": { "path": {} }, "additionalProperties": false });
        let of_chat =
            json!({ "path": "x", "sessionId": "s", "action": "sendMessage", "chatInput": "hi", "toolCallId": "c" });
        for (given, notices) in [
            (
                json!({ "path": "x", "toolCallId": "c" }),
                vec!["dropped `toolCallId`: n8n adds it to calls, and `t` does not take it"],
            ),
            (
                of_chat.clone(),
                vec![
                    "dropped `toolCallId`, `sessionId`, `action`, `chatInput`: n8n adds them to calls, and `t` does not take them",
                ],
            ),
            (
                json!({ "path": "x", "task_progress": "", "_sessionID": "s" }),
                vec![
                    "dropped `task_progress`: Cline adds it to calls, and `t` does not take it",
                    "dropped `_sessionID`: SiYuan adds it to calls, and `t` does not take it",
                ],
            ),
        ] {
            let mut arguments = given;
            assert_eq!(drop_added(&mut arguments, "t", &closed), notices);
            assert_eq!(arguments, json!({ "path": "x" }));
        }
        let mut arguments = of_chat.clone();
        let known =
            json!({ "properties": { "path": {}, "action": {}, "toolCallId": {} }, "additionalProperties": false });
        assert_eq!(
            drop_added(&mut arguments, "t", &known),
            ["dropped `sessionId`, `chatInput`: n8n adds them to calls, and `t` does not take them"]
        );
        assert_eq!(arguments, json!({ "path": "x", "action": "sendMessage", "toolCallId": "c" }));
        for open in [json!({}), json!({ "additionalProperties": true }), json!({ "additionalProperties": {} })]
            .into_iter()
            .chain([json!({ "additionalProperties": false, "patternProperties": { "^a": {} } })])
        {
            let mut arguments = of_chat.clone();
            assert!(drop_added(&mut arguments, "t", &open).is_empty(), "{open}");
            assert_eq!(arguments, of_chat);
        }
        for other in
            [json!({ "action": "delete" }), json!({ "sessionId": "work" }), json!({ "path": "x", "tool": "t" })]
        {
            let mut arguments = other.clone();
            assert!(drop_added(&mut arguments, "t", &closed).is_empty());
            assert_eq!(arguments, other, "a model's own word is refused, not dropped");
        }
    }
}
