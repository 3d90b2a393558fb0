//! A schema that stands alone: references inlined, metadata gone.
//!
//! What a strict mode can say of it is `strict.rs`.

use super::Note;
use contract::schema::{NAMED_SCHEMAS, SCHEMA, SCHEMAS, resolve};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an inlined schema. References to references unfold to any size.
const MOST_BYTES: usize = 256 << 10;
/// Subschemas within subschemas: each is two levels of JSON, of which most readers take 128.
const MOST_DEPTH: usize = 48;
/// Different references of one schema.
const MOST_REFERENCES: usize = 256;

/// What no model needs and some APIs refuse.
const METADATA: [&str; 7] = ["$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "x-mcp-header"];
/// Keywords that only describe: they may be beside a reference and win over what it names.
pub(super) const ANNOTATIONS: [&str; 7] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// A schema that a model API can be given.
pub struct Portable {
    /// The schema.
    pub schema: Value,
    /// What could not be done.
    pub notes: Vec<Note>,
    /// No reference is left but of schemas that hold themselves.
    pub is_inlined: bool,
}

/// Inlines references and drops metadata. Where references cannot be inlined all of them stay, and a note says why.
#[must_use]
pub fn portable(schema: &Value) -> Portable {
    match inlined(schema) {
        Ok(portable) => portable,
        Err(why) => {
            let mut schema = schema.clone();
            if let Some(fields) = schema.as_object_mut() {
                fields.retain(|keyword, _| !["$schema", "$id", "$comment"].contains(&keyword.as_str()));
            }
            let note = Note::new("", format!("its references stay as they are: {why}"));
            Portable { schema, notes: vec![note], is_inlined: false }
        }
    }
}

fn inlined(root: &Value) -> Result<Portable, String> {
    let mut inliner = Inliner { root, recursive: recursive(root)?, bytes: 0 };
    let mut schema = inliner.copy(root, 0)?;
    let (mut kept, mut waiting) = (BTreeSet::new(), owned(&references(&schema)?));
    while let Some(reference) = waiting.pop_first() {
        if !kept.insert(reference.clone()) {
            continue;
        }
        let Some((place, name)) = definition(&reference) else { continue };
        let target = resolve(root, &reference).expect("it was resolved before");
        let copy = inliner.copy(target, 0)?;
        waiting.extend(owned(&references(&copy)?));
        schema[place][name] = copy;
    }
    let notes = kept.iter().map(|reference| Note::new(reference, "refers to itself and stays a reference")).collect();
    Ok(Portable { schema, notes, is_inlined: true })
}

fn owned(references: &BTreeSet<&str>) -> BTreeSet<String> {
    references.iter().map(ToString::to_string).collect()
}

/// The references whose targets lead back to themselves.
fn recursive(root: &Value) -> Result<BTreeSet<&str>, String> {
    let mut targets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut waiting = references(root)?;
    while let Some(reference) = waiting.pop_first() {
        if targets.contains_key(reference) {
            continue;
        }
        let target = resolve(root, reference).ok_or_else(|| format!("`{reference}` points to nothing in it"))?;
        let further = references(target)?;
        waiting.extend(&further);
        targets.insert(reference, further);
        if targets.len() > MOST_REFERENCES {
            return Err(format!("there are more than {MOST_REFERENCES}"));
        }
    }
    let recursive: BTreeSet<&str> = targets.keys().copied().filter(|start| leads_back(&targets, start)).collect();
    match recursive.iter().find(|reference| **reference != "#" && definition(reference).is_none()) {
        Some(odd) => Err(format!("`{odd}` refers to itself from outside of `$defs`")),
        None => Ok(recursive),
    }
}

fn leads_back(targets: &BTreeMap<&str, BTreeSet<&str>>, start: &str) -> bool {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![start]);
    while let Some(reference) = waiting.pop() {
        for further in &targets[reference] {
            if *further == start {
                return true;
            }
            if seen.insert(*further) {
                waiting.push(further);
            }
        }
    }
    false
}

/// All references within a schema; an error names what can only be left as it is.
fn references(schema: &Value) -> Result<BTreeSet<&str>, String> {
    let mut found = BTreeSet::new();
    collect(schema, true, &mut found)?;
    Ok(found)
}

fn collect<'s>(schema: &'s Value, is_root: bool, found: &mut BTreeSet<&'s str>) -> Result<(), String> {
    let Some(fields) = schema.as_object() else { return Ok(()) };
    let odd = ["$dynamicRef", "$recursiveRef", "$id"].into_iter().find(|keyword| fields.contains_key(*keyword));
    // The `$id` of a part changes what the references in it are relative to.
    if let Some(odd) = odd.filter(|odd| !(is_root && *odd == "$id")) {
        return Err(format!("`{odd}` changes what they mean"));
    }
    found.extend(fields.get("$ref").and_then(Value::as_str));
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            (keyword, _) if SCHEMA.contains(&keyword) => collect(value, false, found)?,
            (keyword, Value::Array(parts)) if SCHEMAS.contains(&keyword) => {
                parts.iter().try_for_each(|part| collect(part, false, found))?;
            }
            (keyword, Value::Object(parts)) if NAMED_SCHEMAS.contains(&keyword) => {
                parts.values().try_for_each(|part| collect(part, false, found))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Map and name of a definition at the root: `$defs` and `node` of `#/$defs/node`.
fn definition(reference: &str) -> Option<(&str, &str)> {
    let (place, name) = reference.strip_prefix("#/")?.split_once('/')?;
    (matches!(place, "$defs" | "definitions") && !name.contains(['/', '~'])).then_some((place, name))
}

struct Inliner<'s> {
    root: &'s Value,
    recursive: BTreeSet<&'s str>,
    bytes: usize,
}

impl Inliner<'_> {
    fn copy(&mut self, schema: &Value, depth: usize) -> Result<Value, String> {
        self.count(2)?;
        let Some(fields) = schema.as_object() else { return Ok(schema.clone()) };
        if depth > MOST_DEPTH {
            return Err(format!("inlined, it would be more than {MOST_DEPTH} schemas deep"));
        }
        let reference = fields.get("$ref").and_then(Value::as_str).filter(|target| !self.recursive.contains(target));
        let mut copy = Map::new();
        for (keyword, value) in fields {
            let is_left = METADATA.contains(&keyword.as_str()) || (keyword == "$ref" && reference.is_some());
            if !is_left {
                self.count(keyword.len())?;
                copy.insert(keyword.clone(), self.copy_keyword(keyword, value, depth + 1)?);
            }
        }
        match reference {
            None => Ok(copy.into()),
            Some(target) => {
                let target = resolve(self.root, target).expect("it was resolved before");
                Ok(beside(copy, self.copy(target, depth + 1)?))
            }
        }
    }

    fn copy_keyword(&mut self, keyword: &str, value: &Value, depth: usize) -> Result<Value, String> {
        match value {
            _ if SCHEMA.contains(&keyword) => self.copy(value, depth),
            Value::Array(parts) if SCHEMAS.contains(&keyword) => {
                parts.iter().map(|part| self.copy(part, depth)).collect()
            }
            Value::Object(parts) if NAMED_SCHEMAS.contains(&keyword) => {
                let copies = parts.iter().map(|(name, part)| {
                    self.count(name.len())?;
                    Ok((name.clone(), self.copy(part, depth)?))
                });
                copies.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            data => {
                self.count(data.to_string().len())?;
                Ok(data.clone())
            }
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes > MOST_BYTES {
            return Err(format!("inlined, it would be larger than {} KiB", MOST_BYTES >> 10));
        }
        Ok(())
    }
}

/// What stood beside a reference, with what it named. Both hold; of two texts the nearer one counts.
fn beside(mut siblings: Map<String, Value>, target: Value) -> Value {
    match target {
        Value::Object(mut fields) if siblings.keys().all(|keyword| ANNOTATIONS.contains(&keyword.as_str())) => {
            fields.extend(siblings);
            fields.into()
        }
        target if siblings.is_empty() => target,
        target => {
            let both = siblings.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            both.as_array_mut().expect("`allOf` is a list, the meta-schema says").push(target);
            siblings.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(schema: Value) -> Value {
        let portable = portable(&schema);
        assert!(portable.notes.is_empty(), "{}", portable.notes[0]);
        portable.schema
    }

    fn note(schema: &Value) -> String {
        let notes = portable(schema).notes;
        assert_eq!(notes.len(), 1);
        notes[0].to_string()
    }

    #[test]
    fn references_are_inlined_and_metadata_goes() {
        let given = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "type": "object",
            "properties": {
                "a": { "$ref": "#/$defs/outer", "description": "nearer" },
                "b": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
                "c": { "$ref": "#/properties/b" },
            },
            "$defs": {
                "outer": { "type": "object", "description": "far", "properties": { "x": { "$ref": "#/$defs/inner" } } },
                "inner": { "type": "string", "$comment": "c", "x-mcp-header": "X" },
            },
        });
        let list = json!({ "type": "array", "items": { "type": "string" } });
        let expected = json!({ "type": "object", "properties": {
            "a": { "type": "object", "description": "nearer", "properties": { "x": { "type": "string" } } },
            "b": list.clone(), "c": list,
        } });
        assert_eq!(schema(given), expected);
    }

    #[test]
    fn a_rule_beside_a_reference_still_holds() {
        let given = json!({ "$ref": "#/$defs/a", "minLength": 2, "$defs": { "a": { "type": "string" } } });
        assert_eq!(schema(given), json!({ "minLength": 2, "allOf": [{ "type": "string" }] }));
        assert_eq!(
            schema(json!({ "items": { "$ref": "#/$defs/a" }, "$defs": { "a": false } })),
            json!({ "items": false })
        );
    }

    #[test]
    fn what_only_looks_like_a_keyword_stays() {
        let given = json!({
            "properties": { "$id": { "type": "string" }, "definitions": { "const": { "$ref": "#/no", "$id": "x" } } },
            "default": { "$ref": "#/nowhere" }, "enum": [{ "$schema": 1 }],
        });
        assert_eq!(schema(given.clone()), given);
    }

    #[test]
    fn a_schema_that_holds_itself_keeps_that_reference_alone() {
        let given = json!({
            "properties": { "tree": { "$ref": "#/$defs/node" } },
            "$defs": {
                "node": { "properties": { "left": { "$ref": "#/$defs/node" }, "key": { "$ref": "#/$defs/key" } } },
                "key": { "type": "string" },
                "unused": { "type": "null" },
            },
        });
        let portable = portable(&given);
        let expected = json!({
            "properties": { "tree": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "properties": { "left": { "$ref": "#/$defs/node" }, "key": { "type": "string" } } } },
        });
        assert_eq!(portable.schema, expected);
        assert_eq!(portable.notes[0].to_string(), "#/$defs/node: refers to itself and stays a reference");
        let root = json!({ "properties": { "children": { "items": { "$ref": "#" } } } });
        assert_eq!(super::portable(&root).schema, root);
    }

    #[test]
    fn a_schema_that_would_unfold_without_end_stays_as_it_is() {
        let doubled = |number: usize| {
            let next = json!({ "$ref": format!("#/$defs/a{}", number + 1) });
            (format!("a{number}"), json!({ "properties": { "x": next, "y": next } }))
        };
        let mut definitions: Map<String, Value> = (0..20).map(doubled).collect();
        definitions.insert("a20".into(), json!({ "type": "string" }));
        let bomb = json!({ "$id": "x", "$ref": "#/$defs/a0", "$defs": definitions });
        let portable = portable(&bomb);
        assert!(portable.notes[0].to_string().contains("larger than 256 KiB"), "{}", portable.notes[0]);
        assert_eq!(portable.schema["$defs"], bomb["$defs"]);
        assert_eq!(portable.schema.get("$id"), None);
    }

    #[test]
    fn what_cannot_be_inlined_is_said() {
        assert!(note(&json!({ "$ref": "#/$defs/no" })).ends_with("`#/$defs/no` points to nothing in it"));
        assert!(note(&json!({ "$ref": "#anchor" })).ends_with("`#anchor` points to nothing in it"));
        assert!(note(&json!({ "$dynamicRef": "#x" })).ends_with("`$dynamicRef` changes what they mean"));
        assert!(note(&json!({ "properties": { "a": { "$id": "x" } } })).ends_with("`$id` changes what they mean"));
        let odd = json!({ "properties": { "a": { "items": { "$ref": "#/properties/a" } } } });
        assert!(note(&odd).ends_with("`#/properties/a` refers to itself from outside of `$defs`"));
        let chain = (0..200)
            .map(|number| (format!("d{number}"), json!({ "items": { "$ref": format!("#/$defs/d{}", number + 1) } })));
        let mut definitions: Map<String, Value> = chain.collect();
        definitions.insert("d200".into(), json!({}));
        assert!(note(&json!({ "$ref": "#/$defs/d0", "$defs": definitions })).contains("more than 48 schemas deep"));
    }
}
