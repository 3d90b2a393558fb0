//! `NAME.tool.toml` beside a component that was not written for Toolcrib: names and words for its tools, by whoever installs it. Its types have no
//! place for when a model should call a function, and its names may be those of other tools.
//!
//! Tools are named in it as they are without it. What it says counts as the component's own: the definitions that are pinned have it, with the
//! values that no model sees.

use super::definition::Definition;
use base::disk::{Named, Unreadable};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes of such a file.
const MOST_BYTES: u64 = 256 << 10;

/// All of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Put before the names of all tools that get no name of their own.
    prefix: Option<String>,
    /// By the names that tools have without this file.
    #[serde(default)]
    tool: BTreeMap<String, ToolWords>,
    /// As it is written.
    #[serde(skip)]
    text: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ToolWords {
    /// The function is not offered as a tool: a builder has left it, or nobody here needs it.
    #[serde(default)]
    omit: bool,
    name: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    when_to_use: Option<String>,
    when_not_to_use: Option<String>,
    disambiguation: Option<String>,
    #[serde(default)]
    examples: Vec<Map<String, Value>>,
    usage: Option<String>,
    /// What each parameter means, by its name.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// Arguments that no model sees or gives.
    #[serde(default)]
    constants: Map<String, Value>,
}

/// Where the words for a component would be.
#[must_use]
pub fn words_file(component: &Path) -> PathBuf {
    component.with_extension("tool.toml")
}

impl ToolWords {
    /// Whether they say anything but that it is to be omitted.
    fn says_more(&self) -> bool {
        let Self { omit: _, name, title, summary, when_to_use, when_not_to_use, disambiguation, .. } = self;
        let texts = [name, title, summary, when_to_use, when_not_to_use, disambiguation, &self.usage];
        let lists = self.examples.is_empty() && self.parameters.is_empty() && self.constants.is_empty();
        !lists || texts.into_iter().any(Option::is_some)
    }
}

impl Words {
    /// Reads the words for a component; none where there is no such file.
    pub fn beside(
        component: &Path,
        open: impl FnOnce(&Path) -> Result<Named, Unreadable>,
    ) -> Result<Option<Self>, String> {
        let path = words_file(component);
        let told = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
        let read = open(&path).and_then(|words| words.read(MOST_BYTES));
        let text = match read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| Unreadable::Binary)) {
            Ok(text) => text,
            Err(unread) if unread.is_missing() => return Ok(None),
            Err(unread) => return Err(told(&unread)),
        };
        // Where and what, and nothing of the line: it may be that of another file.
        let wrong = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            told(&format!("line {line}: {}", error.message()))
        };
        let words = toml::from_str::<Self>(&text).map_err(wrong)?;
        Ok(Some(Self { text, ..words }))
    }

    /// The whole file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that tools get. One that is said of no tool is an error.
    pub fn names(&self, tools: &[String]) -> Result<Vec<String>, String> {
        if let Some(unknown) = self.tool.keys().find(|named| !tools.contains(named)) {
            let unknown = unknown.escape_debug();
            return Err(format!("its words name the tool `{unknown}`, and it has {}", tools.join(", ")));
        }
        if let Some((tool, _)) = self.tool.iter().find(|(_, words)| words.omit && words.says_more()) {
            return Err(format!("its words omit the tool `{}`, and say something of it", tool.escape_debug()));
        }
        let name = |tool: &String| match self.tool.get(tool).and_then(|words| words.name.as_ref()) {
            Some(name) => name.clone(),
            None => self.prefix.as_ref().map_or_else(|| tool.clone(), |prefix| format!("{prefix}{tool}")),
        };
        Ok(tools.iter().map(name).collect())
    }

    /// Whether a function is to be no tool.
    pub fn omits(&self, tool: &str) -> bool {
        self.tool.get(tool).is_some_and(|words| words.omit)
    }

    /// The arguments of a tool that nobody gives.
    pub fn constants(&self, tool: &str) -> Map<String, Value> {
        self.tool.get(tool).map(|words| words.constants.clone()).unwrap_or_default()
    }

    /// A definition in these words, under its new name. What is said of a parameter that there is not is an error.
    pub fn applied(&self, definition: Definition, name: &str) -> Result<Definition, String> {
        let mut definition = definition;
        let tool = std::mem::replace(&mut definition.name, name.to_owned());
        let Some(words) = self.tool.get(&tool) else { return Ok(definition) };
        let ToolWords { title, summary, when_to_use, when_not_to_use, disambiguation, usage, .. } = words.clone();
        let guidance = &mut definition.guidance;
        for (said, place) in [
            (summary, &mut definition.summary),
            (when_to_use, &mut guidance.when_to_use),
            (when_not_to_use, &mut guidance.when_not_to_use),
            (disambiguation, &mut guidance.disambiguation),
        ] {
            if let Some(said) = said {
                *place = said;
            }
        }
        if !words.examples.is_empty() {
            let texts = words.examples.iter().map(|example| Value::Object(example.clone()).to_string());
            guidance.examples = texts.collect();
        }
        definition.title = title.or(definition.title);
        definition.usage = usage.or(definition.usage);
        let none = |parameter: &str| {
            format!("its words for `{tool}` name the parameter `{}`, which it has not", parameter.escape_debug())
        };
        let schema = &mut definition.input_schema;
        for (parameter, text) in &words.parameters {
            let place = schema.pointer_mut("/properties").and_then(|all| all.get_mut(parameter));
            let place = place.and_then(Value::as_object_mut).ok_or_else(|| none(parameter))?;
            place.insert("description".into(), text.clone().into());
        }
        for parameter in words.constants.keys() {
            let all = schema.pointer_mut("/properties").and_then(Value::as_object_mut);
            all.and_then(|all| all.shift_remove(parameter)).ok_or_else(|| none(parameter))?;
            if let Some(required) = schema.pointer_mut("/required").and_then(Value::as_array_mut) {
                required.retain(|name| name != parameter);
            }
        }
        Ok(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Guidance;
    use serde_json::json;

    fn find() -> Definition {
        let nothing = String::new;
        Definition {
            name: "orders-find".into(),
            title: None,
            summary: "Call `find`.".into(),
            guidance: Guidance {
                when_to_use: nothing(),
                when_not_to_use: nothing(),
                disambiguation: nothing(),
                examples: Vec::new(),
            },
            usage: None,
            input_schema: json!({
                "type": "object",
                "properties": { "name": { "type": "string" }, "shelf": { "type": "integer" } },
                "required": ["name", "shelf"],
            }),
            output_schema: None,
            events: Vec::new(),
            is_of_command: false,
        }
    }

    fn words(text: &str) -> Words {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn words_take_the_place_of_what_types_say() {
        let words = words(
            "prefix = 'shop_'\n[tool.orders-find]\nname = 'find'\nsummary = 'Finds an item.'\nwhen-to-use = 'Prices.'\n\
             examples = [{ name = 'lamp' }]\nparameters.name = 'As in the catalogue.'\nconstants.shelf = 3",
        );
        let tools = ["orders-find".to_owned(), "orders-buy".to_owned()];
        assert_eq!(words.names(&tools).unwrap(), ["find", "shop_orders-buy"]);
        let found = words.applied(find(), "find").unwrap();
        assert_eq!((found.name.as_str(), found.summary.as_str()), ("find", "Finds an item."));
        assert_eq!(found.guidance.examples, [r#"{"name":"lamp"}"#]);
        assert_eq!(
            found.input_schema,
            json!({
                "type": "object",
                "properties": { "name": { "type": "string", "description": "As in the catalogue." } },
                "required": ["name"],
            })
        );
        assert_eq!(Value::Object(words.constants("orders-find")), json!({ "shelf": 3 }));
    }

    #[test]
    fn words_for_what_there_is_not_are_told() {
        assert!(words("[tool.find]\nname = 'x'").names(&["orders-find".into()]).unwrap_err().contains("`find`"));
        for text in ["parameters.nmae = 'x'", "constants.nmae = 1"] {
            let words = words(&format!("[tool.orders-find]\n{text}"));
            assert!(words.applied(find(), "orders-find").unwrap_err().contains("`nmae`"), "{text}");
        }
        assert!(toml::from_str::<Words>("[tool.orders-find]\nsumary = 'x'").is_err());
    }
}
