//! How large a schema of a strict mode may be.

use super::keywords::literals;
use serde_json::{Map, Value};

/// How large a schema may be.
pub(super) struct Bounds {
    pub(super) properties: usize,
    pub(super) levels: usize,
    pub(super) name_chars: usize,
    pub(super) enum_values: usize,
    /// Characters of one enum that has more than `long_enum` values.
    pub(super) long_enum_chars: usize,
    pub(super) long_enum: usize,
}

impl Bounds {
    /// The bounds that a schema breaks.
    pub(super) fn broken(&self, schema: &Value) -> impl Iterator<Item = String> {
        let mut size = Size::default();
        size.add(schema, 0);
        let long = size.enums.iter().filter(|(values, _)| *values > self.long_enum).map(|(_, chars)| *chars).max();
        [
            (size.properties, self.properties, "properties"),
            (size.levels, self.levels, "levels of objects"),
            (size.chars, self.name_chars, "characters of names and fixed values"),
            (size.enums.iter().map(|(values, _)| values).sum(), self.enum_values, "values to choose from"),
            (long.unwrap_or(0), self.long_enum_chars, "characters of one long choice"),
        ]
        .into_iter()
        .filter(|(has, most, _)| has > most)
        .map(|(has, most, what)| format!("{has} {what} (limit: {most})"))
    }
}

/// What the bounds bind.
#[derive(Default)]
struct Size {
    properties: usize,
    levels: usize,
    chars: usize,
    /// Values and characters of each.
    enums: Vec<(usize, usize)>,
}

impl Size {
    fn add(&mut self, schema: &Value, above: usize) {
        let Some(node) = schema.as_object() else { return };
        let properties = node.get("properties").and_then(Value::as_object);
        let level = above + usize::from(properties.is_some());
        self.levels = self.levels.max(level);
        self.properties += properties.map_or(0, Map::len);
        if let Some(values) = literals(node) {
            let chars = values.iter().map(|value| value.as_str().map_or(0, |text| text.chars().count())).sum();
            self.chars += chars;
            self.enums.push((if node.contains_key("enum") { values.len() } else { 0 }, chars));
        }
        for (keyword, part) in node {
            match (keyword.as_str(), part) {
                ("properties" | "$defs", Value::Object(named)) => {
                    self.chars += named.keys().map(String::len).sum::<usize>();
                    named.values().for_each(|part| self.add(part, level));
                }
                ("items", part) => self.add(part, level),
                ("anyOf", Value::Array(parts)) => parts.iter().for_each(|part| self.add(part, level)),
                _ => {}
            }
        }
    }
}
