//! Changes in a text of YAML, line by line, as goose writes it: mappings in blocks. All else stays as it is written; what is written in another
//! way is refused, and so is a change that would make the file say anything more.

use super::edit::Step;
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value};
use std::ops::Range;

/// How far a mapping that is made lies below its key.
const INDENT: usize = 2;

/// What a text says. An error has its line.
pub(super) fn parsed(text: &str) -> Result<Value, (usize, String)> {
    let documents = Yaml::load_from_str(text).map_err(|error| (error.marker().line(), error.info().to_owned()))?;
    match &documents[..] {
        [] => Ok(Value::Null),
        [document] => value(document).map_err(|why| (1, why)),
        [_, ..] => Err((1, "it has more than one document".to_owned())),
    }
}

fn value(yaml: &Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(is)) => (*is).into(),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(value).collect::<Result<Vec<_>, _>>()?.into(),
        Yaml::Mapping(fields) => {
            let mut table = Map::new();
            for (key, field) in fields {
                let key = match value(key)? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                table.insert(key, value(field)?);
            }
            table.into()
        }
        Yaml::Tagged(..) | Yaml::Alias(_) | Yaml::Representation(..) | Yaml::BadValue => {
            return Err("it has tags or aliases".to_owned());
        }
    })
}

/// Makes the steps in a text; the steps were checked.
pub(super) fn changed(before: &str, steps: &[Step]) -> Result<String, String> {
    let mut lines = Lines(before.lines().map(str::to_owned).collect());
    for step in steps {
        match step {
            Step::Set(keys, value) => lines.set(keys, value)?,
            Step::Remove(keys) => lines.remove(keys)?,
            Step::Add(..) | Step::Take(..) => return Err("lists of YAML are not changed".to_owned()),
        }
    }
    let mut after = lines.0.join("\n");
    if before.is_empty() || before.ends_with('\n') {
        after.push('\n');
    }
    Ok(after)
}

struct Lines(Vec<String>);

/// An entry of a mapping: its lines, how far it is indented, and what is behind the colon.
struct Entry {
    lines: Range<usize>,
    indent: usize,
    inline: String,
}

impl Lines {
    fn set(&mut self, keys: &[String], value: &Value) -> Result<(), String> {
        let (mut range, mut indent) = (0..self.0.len(), 0);
        for (depth, key) in keys.iter().enumerate() {
            let is_last = depth + 1 == keys.len();
            match self.entry(&range, key) {
                None => {
                    let at = self.end(&range);
                    let indent = self.indent(&range).unwrap_or(indent);
                    let lines = block(indent, &keys[depth..], value)?;
                    self.0.splice(at..at, lines);
                    return Ok(());
                }
                Some(entry) if is_last => {
                    let mut lines = block(entry.indent, &keys[depth..], value)?;
                    if let ([line], Some((_, comment))) = (&mut lines[..], comment(&entry.inline)) {
                        *line = format!("{line} {comment}");
                    }
                    self.0.splice(entry.lines, lines);
                    return Ok(());
                }
                Some(entry) => {
                    self.open(key, &entry)?;
                    range = entry.lines.start + 1..entry.lines.end;
                    indent = entry.indent + INDENT;
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, keys: &[String]) -> Result<(), String> {
        let mut range = 0..self.0.len();
        for (depth, key) in keys.iter().enumerate() {
            let Some(entry) = self.entry(&range, key) else { return Ok(()) };
            if depth + 1 == keys.len() {
                self.0.drain(entry.lines);
                return Ok(());
            }
            range = entry.lines.start + 1..entry.lines.end;
        }
        Ok(())
    }

    /// Makes sure that the value of a key is a block, or nothing.
    fn open(&mut self, key: &str, entry: &Entry) -> Result<(), String> {
        let text = comment(&entry.inline).map_or(entry.inline.as_str(), |(text, _)| text).trim();
        match text {
            "" => Ok(()),
            "{}" | "null" | "~" => {
                let line = &mut self.0[entry.lines.start];
                if let Some((name, behind)) = line.split_once(text) {
                    *line = format!("{}{behind}", name.trim_end());
                }
                Ok(())
            }
            _ => Err(format!("`{key}` is not written as a block")),
        }
    }

    /// How far the entries of a mapping are indented.
    fn indent(&self, range: &Range<usize>) -> Option<usize> {
        self.0[range.clone()].iter().find(|line| has_content(line)).map(|line| indent(line))
    }

    /// The line behind the last entry of a mapping.
    fn end(&self, range: &Range<usize>) -> usize {
        let last = self.0[range.clone()].iter().rposition(|line| has_content(line));
        last.map_or(range.start, |last| range.start + last + 1)
    }

    fn entry(&self, range: &Range<usize>, key: &str) -> Option<Entry> {
        let of_mapping = self.indent(range)?;
        let mut lines = range.clone().filter(|at| indent(&self.0[*at]) == of_mapping);
        let start = lines.find(|at| inline(&self.0[*at], key).is_some())?;
        let inside = |line: &String| {
            !has_content(line) || indent(line) > of_mapping || (indent(line) == of_mapping && is_item(line))
        };
        let behind = start + 1..range.end;
        let more = self.0[behind.clone()].iter().take_while(|line| inside(line)).count();
        let end = self.end(&(behind.start..behind.start + more));
        Some(Entry { lines: start..end, indent: of_mapping, inline: inline(&self.0[start], key)?.to_owned() })
    }
}

fn has_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#') && text != "---" && !text.starts_with('%')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_item(line: &str) -> bool {
    let text = line.trim();
    text == "-" || text.starts_with("- ")
}

/// What a line has behind a key and its colon.
fn inline<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let text = line.trim_start();
    let bare = text.strip_prefix(key);
    let quoted =
        ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_prefix(key)?.strip_prefix(*quote));
    let behind = bare.or(quoted)?.trim_start().strip_prefix(':')?;
    (behind.is_empty() || behind.starts_with([' ', '\t'])).then_some(behind)
}

/// A value and the comment behind it. A quoted text may have a `#` in it, so it counts as having none.
fn comment(inline: &str) -> Option<(&str, &str)> {
    let at = inline.find(" #").filter(|_| !inline.contains(['"', '\'']))?;
    Some((&inline[..at], &inline[at + 1..]))
}

/// The lines of a value behind its keys.
fn block(indent: usize, keys: &[String], value: &Value) -> Result<Vec<String>, String> {
    let Some((key, below)) = keys.split_first() else { return Ok(Vec::new()) };
    let begin = format!("{}{}:", " ".repeat(indent), scalar(key));
    match (below, value) {
        ([], Value::Object(fields)) if !fields.is_empty() => {
            let mut lines = vec![begin];
            for (key, value) in fields {
                lines.extend(block(indent + INDENT, std::slice::from_ref(key), value)?);
            }
            Ok(lines)
        }
        ([], value) => Ok(vec![format!("{begin} {}", flow(value))]),
        (below, value) => {
            let mut lines = vec![begin];
            lines.extend(block(indent + INDENT, below, value)?);
            Ok(lines)
        }
    }
}

/// A value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// A text as it is written: bare if it can be nothing else, or quoted as in JSON, which YAML reads.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(is_plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && text != "n";
    if is_bare { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    const BEFORE: &str = "# Mine.\nGOOSE_MODEL: x # the model\nextensions:\n  developer:\n    enabled: true # on\n    type: builtin\n    list:\n    - a\n\n  # another\n  memory:\n    enabled: true\n\n# the end\nGOOSE_MODE: auto\n";

    #[test]
    fn only_what_is_changed_is_written_anew() {
        let steps = [
            Step::Set(keys("extensions.toolcrib"), json!({ "enabled": true, "cmd": "/a b", "args": ["serve"] })),
            Step::Set(keys("extensions.developer.enabled"), json!(false)),
        ];
        let after = changed(BEFORE, &steps).unwrap();
        assert_eq!(
            after,
            BEFORE.replace("enabled: true # on", "enabled: false # on").replace(
                "    enabled: true\n\n# the end",
                "    enabled: true\n  toolcrib:\n    enabled: true\n    cmd: \"/a b\"\n    args: [serve]\n\n# the end"
            )
        );
        let back =
            [Step::Remove(keys("extensions.toolcrib")), Step::Set(keys("extensions.developer.enabled"), json!(true))];
        assert_eq!(changed(&after, &back).unwrap(), BEFORE);
    }

    #[test]
    fn an_empty_file_and_an_empty_mapping_get_a_block() {
        let step = [Step::Set(keys("extensions.toolcrib.enabled"), json!(true))];
        let whole = "extensions:\n  toolcrib:\n    enabled: true\n";
        assert_eq!(changed("", &step).unwrap(), whole);
        assert_eq!(changed("extensions: {}\n", &step).unwrap(), whole);
        assert_eq!(changed("extensions:\n", &step).unwrap(), whole);
        assert_eq!(changed("extensions: { a: 1 }\n", &step).unwrap_err(), "`extensions` is not written as a block");
    }

    #[test]
    fn what_is_not_yaml_has_its_line() {
        assert_eq!(parsed("a: 1\nb: [\n").unwrap_err().0, 3);
        assert_eq!(parsed("a: 1\nb: yes\n").unwrap(), json!({ "a": 1, "b": "yes" }));
    }
}
