//! Changes of a file as values: what they come to, and what takes them back. The formats make the same changes in the text.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The keys that lead to a value, from the top of a file.
pub(super) type Keys = Vec<String>;

/// One change of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Gives a key a value. Tables on the way are made.
    Set(Keys, Value),
    /// Adds to a list, which is made if it is missing.
    Add(Keys, Value),
    /// Removes a key.
    Remove(Keys),
    /// Removes from a list.
    Take(Keys, Value),
}

/// What takes a change back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Back {
    keys: Keys,
    /// How many of the keys were there before.
    existed: usize,
    /// What is to be there again.
    was: Was,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Was {
    Absent,
    Value(Value),
    /// The list did not have this.
    Without(Value),
}

/// The value behind some keys.
pub(super) fn find<'v>(root: &'v Value, keys: &[String]) -> Option<&'v Value> {
    keys.iter().try_fold(root, |value, key| value.get(key))
}

impl Step {
    /// Whether a file says already what the step would make it say.
    ///
    /// # Errors
    ///
    /// What stands in the way.
    pub(super) fn is_done(&self, root: &Value) -> Result<bool, String> {
        self.check(root)?;
        let found = find(root, self.keys());
        Ok(match self {
            Self::Set(_, value) => found == Some(value),
            Self::Add(_, item) => found.and_then(Value::as_array).is_some_and(|list| list.contains(item)),
            Self::Remove(_) => found.is_none(),
            Self::Take(_, item) => !found.and_then(Value::as_array).is_some_and(|list| list.contains(item)),
        })
    }

    pub(super) fn keys(&self) -> &[String] {
        match self {
            Self::Set(keys, _) | Self::Add(keys, _) | Self::Remove(keys) | Self::Take(keys, _) => keys,
        }
    }

    /// Tables are tables, and lists are lists. An empty file and an empty value are both.
    fn check(&self, root: &Value) -> Result<(), String> {
        let keys = self.keys();
        let is_table = |value: Option<&Value>| matches!(value, None | Some(Value::Null | Value::Object(_)));
        if !is_table(Some(root)) {
            return Err("it is not a table".to_owned());
        }
        if let Some(odd) = (1..keys.len()).find(|depth| !is_table(find(root, &keys[..*depth]))) {
            return Err(format!("`{}` is not a table", keys[..odd].join(".")));
        }
        match (self, find(root, keys)) {
            (Self::Add(..) | Self::Take(..), Some(found)) if !found.is_array() => {
                Err(format!("`{}` is not a list", keys.join(".")))
            }
            (Self::Set(..) | Self::Add(..) | Self::Remove(_) | Self::Take(..), _) => Ok(()),
        }
    }

    /// Makes the change; returns what takes it back. The step was checked.
    pub(super) fn make(&self, root: &mut Value) -> Back {
        let keys = self.keys();
        let existed = (1..=keys.len()).take_while(|depth| find(root, &keys[..*depth]).is_some()).count();
        let before = find(root, keys).cloned();
        let was = match (self, before) {
            (Self::Add(_, item), _) => Was::Without(item.clone()),
            (Self::Set(..) | Self::Remove(_) | Self::Take(..), Some(before)) => Was::Value(before),
            (Self::Set(..) | Self::Remove(_) | Self::Take(..), None) => Was::Absent,
        };
        match self {
            Self::Set(_, value) => put(root, keys, value.clone()),
            Self::Add(_, item) => {
                let mut list = find(root, keys).and_then(Value::as_array).cloned().unwrap_or_default();
                list.push(item.clone());
                put(root, keys, list.into());
            }
            Self::Remove(_) => remove(root, keys),
            Self::Take(_, item) => {
                if let Some(list) = find_mut(root, keys).and_then(Value::as_array_mut) {
                    list.retain(|found| found != item);
                }
            }
        }
        Back { keys: keys.to_vec(), existed, was }
    }
}

impl Back {
    /// The step that takes the change back, if the file still has it. Tables that were made for it go with it once they are empty.
    pub(super) fn step(&self, root: &Value) -> Option<Step> {
        let keys = self.keys.clone();
        let found = find(root, &keys)?;
        let gone = match &self.was {
            Was::Value(value) => return (found != value).then(|| Step::Set(keys, value.clone())),
            Was::Absent => true,
            Was::Without(item) => {
                let list = found.as_array().filter(|list| list.contains(item))?;
                self.existed < keys.len() && list.iter().all(|found| found == item)
            }
        };
        match (&self.was, gone) {
            (Was::Without(item), false) => Some(Step::Take(keys, item.clone())),
            (Was::Without(_) | Was::Absent | Was::Value(_), _) => Some(Step::Remove(self.emptied(root))),
        }
    }

    /// The uppermost key that has nothing but what goes.
    fn emptied(&self, root: &Value) -> Keys {
        let mut depth = self.keys.len();
        let has_one = |depth: usize| {
            let table = find(root, &self.keys[..depth]).and_then(Value::as_object);
            table.is_some_and(|table| table.len() == 1)
        };
        while depth > self.existed + 1 && has_one(depth - 1) {
            depth -= 1;
        }
        self.keys[..depth].to_vec()
    }
}

fn find_mut<'v>(root: &'v mut Value, keys: &[String]) -> Option<&'v mut Value> {
    keys.iter().try_fold(root, |value, key| value.get_mut(key))
}

fn put(root: &mut Value, keys: &[String], value: Value) {
    let mut at = root;
    for key in keys {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(table) = at else { return };
        at = table.entry(key.clone()).or_insert(Value::Null);
    }
    *at = value;
}

fn remove(root: &mut Value, keys: &[String]) {
    let Some((last, above)) = keys.split_last() else { return };
    if let Some(table) = find_mut(root, above).and_then(Value::as_object_mut) {
        table.shift_remove(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(path: &str) -> Keys {
        path.split('.').map(str::to_owned).collect()
    }

    fn back(before: &Value, step: &Step, since: impl FnOnce(&mut Value)) -> Value {
        let mut value = before.clone();
        let back = step.make(&mut value);
        since(&mut value);
        if let Some(step) = back.step(&value) {
            step.make(&mut value);
        }
        value
    }

    #[test]
    fn what_is_taken_back_leaves_no_empty_tables() {
        let step = Step::Set(keys("a.b.c"), json!(1));
        assert_eq!(back(&json!({ "x": 1 }), &step, |_| {}), json!({ "x": 1 }));
        assert_eq!(back(&json!({ "a": {} }), &step, |_| {}), json!({ "a": {} }));
        assert_eq!(back(&json!({}), &step, |value| value["a"]["d"] = json!(2)), json!({ "a": { "d": 2 } }));
        assert_eq!(back(&json!({ "a": { "b": { "c": 7 } } }), &step, |_| {}), json!({ "a": { "b": { "c": 7 } } }));
    }

    #[test]
    fn a_list_keeps_what_others_added() {
        let step = Step::Add(keys("a.deny"), json!("Bash"));
        assert_eq!(back(&json!({}), &step, |_| {}), json!({}));
        let others = |value: &mut Value| value["a"]["deny"].as_array_mut().unwrap().push(json!("X"));
        assert_eq!(back(&json!({}), &step, others), json!({ "a": { "deny": ["X"] } }));
        assert_eq!(back(&json!({ "a": { "deny": [] } }), &step, |_| {}), json!({ "a": { "deny": [] } }));
        assert!(step.is_done(&json!({ "a": { "deny": ["Bash"] } })).unwrap());
        assert_eq!(step.is_done(&json!({ "a": { "deny": "Bash" } })).unwrap_err(), "`a.deny` is not a list");
        assert_eq!(step.is_done(&json!({ "a": [] })).unwrap_err(), "`a` is not a table");
    }
}
