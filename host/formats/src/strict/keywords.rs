//! One schema object: what its keywords say, and how one is rewritten into what another dialect has.
//!
//! Which dialect has what, and what is lost on the way, is `strict.rs`.

use crate::schema::ANNOTATIONS;
use serde_json::{Map, Value, json};

/// The keywords of one schema object.
pub(super) type Fields = Map<String, Value>;

/// Keywords that say something of values of one type alone.
#[rustfmt::skip]
const OF_TYPE: [(&[&str], &[&str]); 4] = [
    (&["object"], &[
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties",
        "minProperties", "maxProperties", "dependentRequired", "dependentSchemas",
    ]),
    (&["array"], &[
        "items", "prefixItems", "contains", "minContains", "maxContains", "unevaluatedItems", "minItems", "maxItems",
        "uniqueItems",
    ]),
    (&["string"], &["pattern", "format", "minLength", "maxLength"]),
    (&["number", "integer"], &["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
];
/// Keywords of no type in particular that refuse values.
const RULES: [&str; 8] = ["anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$dynamicRef"];
/// Keywords that refuse nothing, and that a model should know.
pub(super) const TOLD: [&str; 3] = ["default", "examples", "deprecated"];

/// Adds what `part` asks to `node`; `false` when both together are not a plain schema.
pub(super) fn merge(node: &mut Fields, part: Value) -> bool {
    let Value::Object(mut part) = part else { return part == Value::Bool(true) };
    let inner = part.shift_remove("allOf");
    let inner = inner.and_then(|parts| parts.as_array().cloned()).unwrap_or_default();
    // `unevaluatedProperties` sees the keys of the parts, and a part does not see what is beside it.
    let is_apart = !inner.into_iter().all(|inner| merge(&mut part, inner))
        || excludes(node, &["additionalProperties"], &part)
        || excludes(&part, &["additionalProperties", "unevaluatedProperties"], node);
    !is_apart && part.into_iter().all(|(keyword, value)| merge_keyword(node, keyword, value))
}

fn merge_keyword(node: &mut Fields, keyword: String, value: Value) -> bool {
    let Some(own) = node.get_mut(&keyword) else {
        node.insert(keyword, value);
        return true;
    };
    match (keyword.as_str(), own, value) {
        (_, own, value) if *own == value => true,
        (keyword, ..) if ANNOTATIONS.contains(&keyword) => true,
        ("required", Value::Array(own), Value::Array(more)) => {
            own.extend(more);
            own.sort_by_key(Value::to_string);
            own.dedup();
            true
        }
        ("properties", Value::Object(own), Value::Object(more)) => {
            more.into_iter().all(|(name, property)| *own.entry(name).or_insert_with(|| property.clone()) == property)
        }
        _ => false,
    }
}

/// One of the keywords of `closed` refuses keys that `other` lists, when it does not see them.
fn excludes(closed: &Fields, keywords: &[&str], other: &Fields) -> bool {
    let listed = |node: &Fields, name: &String| node.get("properties").and_then(|all| all.get(name)).is_some();
    let others = other.get("properties").and_then(Value::as_object);
    keywords.iter().any(|keyword| closed.contains_key(*keyword))
        && others.is_some_and(|others| others.keys().any(|name| !listed(closed, name)))
}

/// Moves the type of `node` into the alternatives; `false` when one is of another type.
pub(super) fn share_type(node: &mut Fields, choice: &mut Value) -> bool {
    let Some(own) = node.get("type").cloned() else { return true };
    let Some(alternatives) = choice.as_array_mut() else { return false };
    let fits = |alternative: &Value| match alternative.get("type") {
        Some(theirs) => type_names(theirs).iter().all(|theirs| type_names(&own).contains(theirs)),
        None => alternative.is_object() && alternative.get("$ref").is_none(),
    };
    if !alternatives.iter().all(fits) {
        return false;
    }
    for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
        alternative.entry("type").or_insert_with(|| own.clone());
    }
    node.shift_remove("type");
    true
}

/// `["object", "null"]` becomes a choice, where a dialect has objects and lists of one type alone.
pub(super) fn split_types(node: &mut Fields) {
    let Some(Value::Array(types)) = node.get("type").cloned() else { return };
    if !types.iter().any(|name| name == "object" || name == "array") {
        return;
    }
    let told = ["title", "description", "default", "examples", "deprecated", "$defs"];
    let (outer, inner): (Fields, Fields) =
        std::mem::take(node).into_iter().partition(|(keyword, _)| told.contains(&keyword.as_str()));
    let alternative = |name: Value| {
        let mut alternative = inner.clone();
        alternative.insert("type".into(), name);
        drop_pointless(&mut alternative);
        Value::from(alternative)
    };
    *node = outer;
    node.insert("anyOf".into(), types.into_iter().map(alternative).collect());
}

/// Drops keywords that say something of values of another type.
pub(super) fn drop_pointless(node: &mut Fields) {
    let types = node.get("type").map(type_names).unwrap_or_default();
    let types: Vec<String> = types.into_iter().map(str::to_owned).collect();
    let of_another = |keyword: &str| {
        OF_TYPE
            .iter()
            .any(|(of, keywords)| keywords.contains(&keyword) && !types.iter().any(|name| of.contains(&name.as_str())))
    };
    node.retain(|keyword, _| types.is_empty() || !of_another(keyword));
}

pub(super) fn is_rule(keyword: &str) -> bool {
    RULES.contains(&keyword) || OF_TYPE.iter().any(|(_, keywords)| keywords.contains(&keyword))
}

/// Adds to the description what no keyword says, in the words of Anthropic's own transformer.
pub(super) fn tell(node: &mut Fields, rules: &[(String, Value)]) {
    if rules.is_empty() {
        return;
    }
    let rules: Vec<String> = rules.iter().map(|(keyword, value)| format!("{keyword}: {value}")).collect();
    let rules = format!("{{{}}}", rules.join(", "));
    let text = match node.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text}\n\n{rules}"),
        None => rules,
    };
    node.insert("description".into(), text.into());
}

/// The values of an `enum` or a `const`.
pub(super) fn literals(node: &Fields) -> Option<Vec<Value>> {
    node.get("enum").and_then(Value::as_array).cloned().or_else(|| Some(vec![node.get("const")?.clone()]))
}

pub(super) fn types_of(values: &[Value]) -> Value {
    let name = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let mut names: Vec<&str> = values.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    if let [name] = names[..] { name.into() } else { names.into() }
}

pub(super) fn type_names(own: &Value) -> Vec<&str> {
    own.as_array()
        .map_or_else(|| own.as_str().into_iter().collect(), |names| names.iter().filter_map(Value::as_str).collect())
}

pub(super) fn has_type(node: &Fields, name: &str) -> bool {
    !node.contains_key("enum")
        && !node.contains_key("const")
        && node.get("type").is_some_and(|own| type_names(own).contains(&name))
}

pub(super) fn names(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn names_in(map: Option<&Value>) -> Vec<String> {
    map.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Whether a schema of a dialect takes `null`.
pub(super) fn takes_null(schema: &Value) -> bool {
    let Some(node) = schema.as_object() else { return false };
    if let Some(values) = literals(node) {
        return values.contains(&Value::Null) && node.get("type").is_none_or(|own| type_names(own).contains(&"null"));
    }
    node.get("type").is_some_and(|own| type_names(own).contains(&"null"))
        || node.get("anyOf").and_then(Value::as_array).is_some_and(|alternatives| alternatives.iter().any(takes_null))
}

pub(super) fn add_null(node: &mut Fields) {
    if node.contains_key("$ref") {
        let reference = node.shift_remove("$ref").expect("it was found");
        node.insert("anyOf".into(), json!([{ "$ref": reference }]));
    }
    if let Some(Value::Array(alternatives)) = node.get_mut("anyOf") {
        alternatives.push(json!({ "type": "null" }));
        return;
    }
    if let Some(mut values) = literals(node) {
        node.shift_remove("const");
        values.extend((!values.contains(&Value::Null)).then_some(Value::Null));
        node.insert("enum".into(), values.into());
    }
    if let Some(own) = node.get_mut("type").filter(|own| !type_names(own).contains(&"null")) {
        let mut names = type_names(own);
        names.push("null");
        *own = names.into();
    }
}
