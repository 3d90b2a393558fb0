//! Whether a value fits a schema, as far as this crate's own schemas go: a host knows all of JSON Schema.

use serde_json::{Map, Value};

/// Returns the first fault of a value.
pub(super) fn fault(schema: &Value, value: &Value) -> Option<String> {
    let Value::Object(schema) = schema else {
        return (*schema == false).then(|| format!("{value} is not allowed"));
    };
    of_type(schema, value)
        .or_else(|| of_choice(schema, value))
        .or_else(|| of_size(schema, value))
        .or_else(|| of_items(schema, value))
        .or_else(|| of_fields(schema, value))
}

fn of_type(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let is = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    match schema.get("type")? {
        Value::Array(kinds) if !kinds.iter().any(is) => Some(format!("{value} is not of types {kinds:?}")),
        kind @ Value::String(_) if !is(kind) => Some(format!("{value} is not of type {kind}")),
        _ => None,
    }
}

fn of_choice(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    if list("enum").is_some_and(|values| !values.contains(value)) {
        return Some(format!("{value} is not one of {}", schema["enum"]));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{value} is not {}", schema["const"]));
    }
    for keyword in ["anyOf", "oneOf"] {
        if list(keyword).is_some_and(|parts| parts.iter().all(|part| fault(part, value).is_some())) {
            return Some(format!("{value} fits none of the alternatives"));
        }
    }
    list("allOf")?.iter().find_map(|part| fault(part, value))
}

fn of_size(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let (least, most, size) = match value {
        Value::Number(number) => ("minimum", "maximum", number.as_f64()?),
        Value::String(text) => ("minLength", "maxLength", text.chars().count() as f64),
        Value::Array(items) => ("minItems", "maxItems", items.len() as f64),
        Value::Null | Value::Bool(_) | Value::Object(_) => return None,
    };
    let broken = |keyword: &&str| {
        let bound = schema.get(*keyword).and_then(Value::as_f64);
        bound.is_some_and(|bound| if *keyword == least { size < bound } else { size > bound })
    };
    let keyword = [least, most].into_iter().find(broken)?;
    Some(format!("{value} does not fit `{keyword}`: {}", schema[keyword]))
}

fn of_items(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let first = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
    let schemas = first.chain(std::iter::repeat(schema.get("items").unwrap_or(&Value::Bool(true))));
    let mut items = value.as_array()?.iter().zip(schemas).enumerate();
    items.find_map(|(index, (item, schema))| at(&index.to_string(), fault(schema, item)))
}

fn of_fields(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    let mut required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !fields.contains_key(*name)) {
        return Some(format!("`{missing}` is missing"));
    }
    let is_closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
    fields.iter().find_map(|(name, field)| match (property(schema, name), schema.get("additionalProperties")) {
        (None, Some(Value::Bool(false))) => Some(format!("unknown argument `{name}`")),
        (Some(schema), _) | (None, Some(schema)) => at(name, fault(schema, field)),
        (None, None) => (is_closed && !knows(schema, name, value)).then(|| format!("unknown argument `{name}`")),
    })
}

fn property<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// The schema, or one of its parts that the value fits, has a property of that name.
fn knows(schema: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let parts = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
    let mut fitting = parts.filter(|part| fault(part, value).is_none()).filter_map(Value::as_object);
    property(schema, name).is_some() || fitting.any(|part| knows(part, name, value))
}

fn at(place: &str, fault: Option<String>) -> Option<String> {
    fault.map(|fault| format!("`{place}`: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JsonSchema, schema};
    use serde_json::json;

    fn fault_of<T: JsonSchema>(arguments: Value) -> String {
        fault(&serde_json::from_str(&schema::of_arguments::<T>()).unwrap(), &arguments).unwrap_or_default()
    }

    #[test]
    fn arguments_are_checked_by_the_types_of_their_fields() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema counts")]
        struct Input {
            path: String,
            lines: Option<Vec<u32>>,
        }

        assert_eq!(fault_of::<Input>(json!({ "path": "a", "lines": [1, 2] })), "");
        assert_eq!(fault_of::<Input>(json!({ "path": "a", "lines": null })), "");
        assert_eq!(fault_of::<Input>(json!({})), "`path` is missing");
        assert_eq!(fault_of::<Input>(json!({ "path": 5 })), "`path`: 5 is not of type \"string\"");
        assert_eq!(fault_of::<Input>(json!({ "path": "a", "more": 1 })), "unknown argument `more`");
        let negative = fault_of::<Input>(json!({ "path": "a", "lines": [1, -1] }));
        assert_eq!(negative, "`lines`: `1`: -1 does not fit `minimum`: 0");
    }

    #[test]
    fn alternatives_know_their_own_fields_alone() {
        #[derive(JsonSchema)]
        #[serde(tag = "action", rename_all = "lowercase")]
        #[expect(dead_code, reason = "only its schema counts")]
        enum Input {
            Get { key: String },
            Put { key: String, value: String },
        }

        assert_eq!(fault_of::<Input>(json!({ "action": "get", "key": "a" })), "");
        assert_eq!(fault_of::<Input>(json!({ "action": "get", "key": "a", "value": "b" })), "unknown argument `value`");
        assert!(fault_of::<Input>(json!({ "action": "put", "key": "a" })).ends_with("fits none of the alternatives"));
    }
}
