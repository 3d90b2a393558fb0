//! Changes in a text of TOML. All else stays as it is written.

use super::edit::Step;
use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

/// Makes the steps in a text; the steps were checked.
pub(super) fn changed(before: &str, steps: &[Step]) -> Result<String, String> {
    let document = before.parse::<DocumentMut>();
    let mut document = document.map_err(|error| error.message().to_owned())?;
    for step in steps {
        make(&mut document, step)?;
    }
    Ok(document.to_string())
}

fn make(document: &mut DocumentMut, step: &Step) -> Result<(), String> {
    let (last, above) = step.keys().split_last().ok_or("no key is named")?;
    let table = table(document, above)?;
    match step {
        Step::Set(_, value) => set(table, last, value)?,
        Step::Add(_, item) => {
            let list = table.entry(last).or_insert(value(Array::new())).as_array_mut();
            list.ok_or_else(|| format!("`{last}` is not a list"))?.push(written(item)?);
        }
        Step::Remove(_) => _ = table.remove(last),
        Step::Take(_, item) => {
            let wanted = written(item)?.to_string();
            if let Some(list) = table.get_mut(last).and_then(Item::as_array_mut) {
                list.retain(|found| found.clone().decorated("", "").to_string() != wanted);
            }
        }
    }
    Ok(())
}

/// The table behind some keys. Tables on the way are made.
fn table<'d>(document: &'d mut DocumentMut, keys: &[String]) -> Result<&'d mut dyn TableLike, String> {
    let mut table = document.as_table_mut() as &mut dyn TableLike;
    for key in keys {
        let below = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        table = below.as_table_like_mut().ok_or_else(|| format!("`{key}` is not a table"))?;
    }
    Ok(table)
}

fn set(table: &mut dyn TableLike, key: &str, value: &Value) -> Result<(), String> {
    let new = match value {
        Value::Object(fields) => {
            let mut below = Table::new();
            for (key, value) in fields {
                below.insert(key, toml_edit::value(written(value)?));
            }
            Item::Table(below)
        }
        other => toml_edit::value(written(other)?),
    };
    match (table.get_mut(key), new) {
        // What is behind the value, such as a comment, stays.
        (Some(Item::Value(old)), Item::Value(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (_, new) => _ = table.insert(key, new),
    }
    Ok(())
}

fn written(value: &Value) -> Result<toml_edit::Value, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return Err(format!("{number} is not a number of TOML")),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => Array::from_iter(items.iter().map(written).collect::<Result<Vec<_>, _>>()?).into(),
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (key, value) in fields {
                table.insert(key, written(value)?);
            }
            table.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn comments_stay() {
        let before = "# Mine.\nsandbox_mode = \"full\" # s\n\n# first\n[mcp_servers.a]\ncommand = \"a\"\n\n# end\n";
        let steps = [
            Step::Set(keys("sandbox_mode"), json!("read-only")),
            Step::Set(keys("mcp_servers.toolcrib"), json!({ "command": "/t", "args": ["serve"] })),
        ];
        assert_eq!(
            changed(before, &steps).unwrap(),
            "# Mine.\nsandbox_mode = \"read-only\" # s\n\n# first\n[mcp_servers.a]\ncommand = \"a\"\n\n\
             [mcp_servers.toolcrib]\ncommand = \"/t\"\nargs = [\"serve\"]\n\n# end\n"
        );
    }
}
