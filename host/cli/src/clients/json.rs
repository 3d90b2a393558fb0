//! Changes in a text of JSON with comments. All else stays as it is written.

use super::edit::Step;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

/// JSON with comments and commas before closing brackets, as editors take it.
pub(in super::super) const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Why a text is not JSON, without anything of it.
pub(in super::super) fn said(error: &ParseError) -> String {
    match error.kind() {
        ParseErrorKind::String(_) => "invalid string".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// Makes the steps in a text; the steps were checked.
pub(super) fn changed(before: &str, steps: &[Step]) -> Result<String, String> {
    let root = CstRootNode::parse(before, &JSONC).map_err(|error| said(&error))?;
    if root.value().is_none_or(|value| value.as_null_keyword().is_some()) {
        root.set_value(CstInputValue::Object(Vec::new()));
    }
    let top = root.object_value().ok_or("it is not a table")?;
    let mut made = Vec::new();
    for step in steps {
        make(&top, step, &mut made)?;
    }
    // A line for each item: a list of ten is not read in one.
    made.iter().for_each(CstArray::ensure_multiline);
    let after = root.to_string();
    Ok(if after.ends_with('\n') || !before.is_empty() { after } else { after + "\n" })
}

fn make(top: &CstObject, step: &Step, made: &mut Vec<CstArray>) -> Result<(), String> {
    let (last, above) = step.keys().split_last().ok_or("no key is named")?;
    match step {
        Step::Set(_, value) => {
            let table = table(top, above)?;
            match property(&table, last) {
                Some(property) => property.set_value(written(value)),
                None => _ = table.append(last, written(value)),
            }
        }
        Step::Add(_, item) => {
            let table = table(top, above)?;
            let list = match property(&table, last) {
                Some(property) => property.array_value_or_set(),
                None => {
                    let list = table.append(last, CstInputValue::Array(Vec::new())).array_value_or_set();
                    made.push(list.clone());
                    list
                }
            };
            list.append(written(item));
        }
        Step::Remove(_) => {
            let table = table(top, above)?;
            while let Some(property) = property(&table, last) {
                property.remove();
            }
        }
        Step::Take(_, item) => {
            let list = property(&table(top, above)?, last).and_then(|property| property.array_value());
            let elements = list.map(|list| list.elements()).unwrap_or_default();
            let is_it = |found: &CstNode| {
                parse_to_serde_value::<Value>(&found.to_string(), &JSONC).is_ok_and(|found| found == *item)
            };
            elements.into_iter().filter(is_it).for_each(CstNode::remove);
        }
    }
    Ok(())
}

/// The table behind some keys. Tables on the way are made.
fn table(top: &CstObject, keys: &[String]) -> Result<CstObject, String> {
    keys.iter().try_fold(top.clone(), |table, key| match property(&table, key) {
        Some(property) if property.value().is_some_and(|value| value.as_null_keyword().is_some()) => {
            Ok(property.object_value_or_set())
        }
        Some(property) => property.object_value().ok_or_else(|| format!("`{key}` is not a table")),
        None => Ok(table.append(key, CstInputValue::Object(Vec::new())).object_value_or_set()),
    })
}

/// Of a key that is there twice, programs take the last.
fn property(table: &CstObject, key: &str) -> Option<CstObjectProp> {
    table.properties().into_iter().rev().find(|property| property.decoded_name().as_deref() == Some(key))
}

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is) => CstInputValue::Bool(*is),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(written).collect()),
        Value::Object(table) => {
            CstInputValue::Object(table.iter().map(|(key, value)| (key.clone(), written(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn comments_tabs_and_commas_stay() {
        let before = "{\n\t// Mine\n\t\"permissions\": {\n\t\t\"deny\": [\"X\"], // c\n\t},\n}\n";
        let add = |item: &str| Step::Add(keys("permissions.deny"), json!(item));
        let steps = [add("Bash"), Step::Set(keys("mcpServers.toolcrib"), json!({ "command": "/t" }))];
        let after = changed(before, &steps).unwrap();
        assert_eq!(
            after,
            "{\n\t// Mine\n\t\"permissions\": {\n\t\t\"deny\": [\"X\", \"Bash\"], // c\n\t},\n\
             \t\"mcpServers\": {\n\t\t\"toolcrib\": {\n\t\t\t\"command\": \"/t\"\n\t\t}\n\t},\n}\n"
        );
        let back = [Step::Remove(keys("mcpServers")), Step::Take(keys("permissions.deny"), json!("Bash"))];
        assert_eq!(changed(&after, &back).unwrap(), before);
    }

    #[test]
    fn an_empty_file_gets_a_table() {
        let step = [Step::Add(keys("a"), json!("x")), Step::Add(keys("a"), json!("y"))];
        assert_eq!(changed("", &step).unwrap(), "{\n  \"a\": [\n    \"x\",\n    \"y\"\n  ]\n}\n");
    }
}
