//! Writes into `cases.toml` what came of its cases, and leaves all else there as it is.

use super::super::setup::{cannot, usage};
use base::dirs::replace;
use serde_json::{Map, Value, json};
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table};
use toolcrib::envelope::Failure;
use toolcrib::sandbox::trial::Line;

/// What is written into a case.
pub(super) struct Anew<T> {
    pub(super) index: usize,
    /// Its name, as it was read.
    pub(super) name: String,
    pub(super) what: T,
}

/// Writes results.
pub(super) fn results(path: &Path, results: &[Anew<Value>]) -> Result<(), Failure> {
    rewrite(path, results, |case, number, result| {
        // TOML has no null.
        let result = toml::Value::try_from(result).map_err(|error| {
            usage(format!("the result of case {number} cannot be written: {error}"))
                .hint("compare parts of it: `result_has`")
        })?;
        set(case, "result", &result.to_string(), path)
    })
}

/// Writes what capabilities have answered: an answer a line, as far as `shown` leaves its texts.
pub(super) fn answers(
    path: &Path,
    recorded: &[Anew<Vec<Line>>],
    shown: impl Fn(&str) -> String,
) -> Result<(), Failure> {
    rewrite(path, recorded, |case, number, lines| {
        let answers = lines.iter().map(|line| {
            let answer = toml::Value::try_from(texts(answer(line, &shown), &shown)).map_err(|error| {
                usage(format!("an answer of `{}` in case {number} cannot be written: {error}", line.call))
            })?;
            Ok(format!("\n    {answer},"))
        });
        let answers = answers.collect::<Result<String, Failure>>()?;
        let end = if answers.is_empty() { "" } else { "\n" };
        set(case, "host", &format!("[{answers}{end}]"), path)
    })
}

/// An answer as the file has it. An argument of which `shown` leaves less is left out: no call would have it so.
fn answer(Line { call, with, answer }: &Line, shown: &impl Fn(&str) -> String) -> Value {
    let with = with.iter().filter(|(_, value)| texts((*value).clone(), shown) == **value);
    let with = with.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>();
    let mut written = Map::from_iter([("call".to_owned(), json!(call)), ("with".to_owned(), json!(with))]);
    match answer {
        // What has no result is answered without one.
        Ok(Value::Null) => {}
        Ok(gives) => _ = written.insert("gives".into(), gives.clone()),
        Err(fails) => _ = written.insert("fails".into(), json!(fails)),
    }
    written.into()
}

/// The same with other texts.
fn texts(value: Value, shown: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => shown(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| texts(item, shown)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, texts(value, shown))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Changes cases.
fn rewrite<T>(
    path: &Path,
    changes: &[Anew<T>],
    change: impl Fn(&mut Table, usize, &T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot(path, &error))?;
    let mut document: DocumentMut = text.parse().map_err(|error| cannot(path, &error))?;
    let cases = document["case"].as_array_of_tables_mut();
    let cases = cases.ok_or_else(|| usage(format!("`{}`: write each case as [[case]]", path.display())))?;
    for Anew { index, name, what } in changes {
        let case = cases.get_mut(*index).filter(|case| case.get("name").and_then(Item::as_str) == Some(name));
        let case =
            case.ok_or_else(|| usage(format!("`{}` was changed meanwhile, and is left as it is", path.display())))?;
        change(case, index + 1, what)?;
    }
    replace(path, document.to_string().as_bytes()).map_err(|error| cannot(path, &error))
}

/// Sets the value of a key that is there, with the comment behind it.
fn set(case: &mut Table, key: &str, value: &str, path: &Path) -> Result<(), Failure> {
    let line: DocumentMut = format!("{key} = {value}").parse().map_err(|error| cannot(path, &error))?;
    match case.get_mut(key) {
        Some(Item::Value(there)) => {
            let decor = there.decor().clone();
            *there = line[key].as_value().expect("a line with a value").clone();
            *there.decor_mut() = decor;
        }
        // Written as tables of its own.
        Some(_) => _ = case.insert(key, line[key].clone()),
        None => {}
    }
    Ok(())
}
