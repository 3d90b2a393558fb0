//! Writes into `cases.toml` what came of its cases, and leaves all else there as it is.

use super::super::setup::{cannot, usage};
use serde_json::{Map, Value, json};
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table};
use toolcrib::dirs::replace;
use toolcrib::envelope::Failure;
use toolcrib::sandbox::trial::Line;

/// Writes results, by the numbers of their cases.
pub(super) fn results(path: &Path, results: &[(usize, Value)]) -> Result<(), Failure> {
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
    recorded: &[(usize, Vec<Line>)],
    shown: impl Fn(&str) -> String,
) -> Result<(), Failure> {
    rewrite(path, recorded, |case, number, lines| {
        let answers = lines.iter().map(|line| {
            let answer = toml::Value::try_from(texts(answer(line), &shown)).map_err(|error| {
                usage(format!("an answer of `{}` in case {number} cannot be written: {error}", line.call))
            })?;
            Ok(format!("\n    {answer},"))
        });
        let answers = answers.collect::<Result<String, Failure>>()?;
        let end = if answers.is_empty() { "" } else { "\n" };
        set(case, "host", &format!("[{answers}{end}]"), path)
    })
}

/// An answer as the file has it.
fn answer(Line { call, with, answer }: &Line) -> Value {
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

/// Changes cases by their numbers.
fn rewrite<T>(
    path: &Path,
    changes: &[(usize, T)],
    change: impl Fn(&mut Table, usize, &T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot(path, &error))?;
    let mut document: DocumentMut = text.parse().map_err(|error| cannot(path, &error))?;
    let cases = document["case"].as_array_of_tables_mut();
    let cases = cases.ok_or_else(|| usage(format!("`{}`: write each case as [[case]]", path.display())))?;
    for (index, what) in changes {
        cases.get_mut(*index).map_or(Ok(()), |case| change(case, index + 1, what))?;
    }
    replace(path, document.to_string().as_bytes()).map_err(|error| cannot(path, &error))
}

/// Sets the value of a key that is there, with the comment behind it.
fn set(case: &mut Table, key: &str, value: &str, path: &Path) -> Result<(), Failure> {
    let line: DocumentMut = format!("{key} = {value}").parse().map_err(|error| cannot(path, &error))?;
    if let Some(Item::Value(there)) = case.get_mut(key) {
        let decor = there.decor().clone();
        *there = line[key].as_value().expect("a line with a value").clone();
        *there.decor_mut() = decor;
    }
    Ok(())
}
