//! What is looked for in a collection, and in which order. Parsed once; `sqlite.rs` makes a statement of it.

use base::envelope::Failure;
use serde_json::Value;

/// Items of a page where nothing is said, and at most.
const ITEMS: u32 = 100;
const MOST_ITEMS: u32 = 1000;
/// Bytes of the bodies of a page: what would come after them is on the next one.
pub(super) const PAGE_BYTES: usize = 4 << 20;
/// Conditions of a query, and words.
const MOST_CONDITIONS: usize = 16;
const MOST_WORDS: usize = 32;
/// Bytes of a pointer, and of a cursor.
const POINTER_BYTES: usize = 512;

/// A look at a collection.
#[derive(Clone, Debug)]
pub struct Query {
    pub(super) collection: String,
    pub(super) conditions: Vec<Condition>,
    pub(super) words: Vec<String>,
    /// One of them is enough.
    pub(super) any: bool,
    pub(super) order: Option<Order>,
    pub(super) limit: u32,
    pub(super) after: Option<After>,
}

/// What an item has to have.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) path: String,
    pub(super) is: Is,
}

#[derive(Clone, Debug)]
pub(super) enum Is {
    Equal(Scalar),
    Between(Scalar, Scalar),
}

/// A JSON value without parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Truth(bool),
    Number(f64),
    Text(String),
}

/// What items are sorted by.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) by: By,
    pub(super) descending: bool,
}

#[derive(Clone, Debug)]
pub(super) enum By {
    Made,
    Changed,
    Key,
    Path(String),
}

/// Where a page ended: what its last item was sorted by, and which it was.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct After {
    pub(super) sorted: Sorted,
    pub(super) id: i64,
}

/// What an item was sorted by, to the last bit: a number that is read back a little less would bring its item again.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sorted {
    Whole(i64),
    /// The bits of a floating point number.
    Bits(u64),
    Text(String),
}

/// Items of a query.
pub struct Page {
    pub items: Vec<super::Item>,
    pub total: u64,
    pub next: Option<String>,
}

impl Query {
    pub fn new(collection: String) -> Self {
        let (conditions, words) = (Vec::new(), Vec::new());
        Self { collection, conditions, words, any: false, order: None, limit: ITEMS, after: None }
    }

    pub fn equals(&mut self, pointer: &str, value: &str) -> Result<(), Failure> {
        let is = Is::Equal(scalar(value)?);
        self.add(pointer, is)
    }

    pub fn between(&mut self, pointer: &str, low: &str, high: &str) -> Result<(), Failure> {
        let is = match (scalar(low)?, scalar(high)?) {
            (low @ Scalar::Text(_), high @ Scalar::Text(_)) => Is::Between(low, high),
            (low @ Scalar::Number(_), high @ Scalar::Number(_)) => Is::Between(low, high),
            _ => return Err(Failure::invalid("both ends are strings, or both are numbers")),
        };
        self.add(pointer, is)
    }

    fn add(&mut self, pointer: &str, is: Is) -> Result<(), Failure> {
        if self.conditions.len() >= MOST_CONDITIONS {
            return Err(Failure::limit(format!("limit: {MOST_CONDITIONS} conditions a query")));
        }
        self.conditions.push(Condition { path: path(pointer)?, is });
        Ok(())
    }

    pub fn words(&mut self, text: &str) -> Result<(), Failure> {
        self.any = false;
        self.look_for(text)
    }

    pub fn any_word(&mut self, text: &str) -> Result<(), Failure> {
        self.any = true;
        self.look_for(text)
    }

    /// Refuses what cannot be looked for with nearness, which is an order of its own, of which there is one page.
    pub(super) fn check_near(&self) -> Result<(), Failure> {
        let has_others = !self.words.is_empty() || self.order.is_some() || self.after.is_some();
        match has_others {
            true => Err(Failure::invalid("`near` goes without words, order and cursor")),
            false => Ok(()),
        }
    }

    fn look_for(&mut self, text: &str) -> Result<(), Failure> {
        let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
        self.words = words.map(str::to_lowercase).collect();
        if self.words.is_empty() {
            return Err(Failure::invalid("there is no word to look for"));
        }
        if self.words.len() > MOST_WORDS {
            return Err(Failure::limit(format!("{} words are too many (limit: {MOST_WORDS})", self.words.len())));
        }
        Ok(())
    }

    pub fn order(&mut self, pointer: &str, descending: bool) -> Result<(), Failure> {
        let by = match pointer {
            "@made" => By::Made,
            "@changed" => By::Changed,
            "@key" => By::Key,
            pointer => By::Path(path(pointer)?),
        };
        self.order = Some(Order { by, descending });
        Ok(())
    }

    pub fn limit(&mut self, items: u32) {
        self.limit = items.clamp(1, MOST_ITEMS);
    }

    pub fn after(&mut self, cursor: &str) -> Result<(), Failure> {
        let refused = |_| Failure::invalid("that is no cursor: give the `next` of the page before");
        self.after = Some(serde_json::from_str(cursor).map_err(refused)?);
        Ok(())
    }
}

fn scalar(json: &str) -> Result<Scalar, Failure> {
    match serde_json::from_str(json) {
        Ok(Value::Null) => Ok(Scalar::Null),
        Ok(Value::Bool(truth)) => Ok(Scalar::Truth(truth)),
        Ok(Value::Number(number)) => Ok(Scalar::Number(number.as_f64().unwrap_or_default())),
        Ok(Value::String(text)) => Ok(Scalar::Text(text)),
        Ok(Value::Array(_) | Value::Object(_)) | Err(_) => {
            Err(Failure::invalid("a value is a string, a number, a truth value or null, as JSON"))
        }
    }
}

/// A JSON pointer to a member of objects, as SQLite writes it.
pub(super) fn path(pointer: &str) -> Result<String, Failure> {
    let refused = || Failure::invalid("a pointer is written as `/a/b`, without quotes and backslashes in its names");
    if pointer.len() > POINTER_BYTES || !(pointer.is_empty() || pointer.starts_with('/')) {
        return Err(refused());
    }
    let mut path = "$".to_owned();
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if name.contains(['"', '\\']) || name.contains(char::is_control) {
            return Err(refused());
        }
        path += &format!(".\"{name}\"");
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_members_of_objects() {
        assert_eq!(path("").unwrap(), "$");
        assert_eq!(path("/a/b c/~1~0").unwrap(), r#"$."a"."b c"."/~""#);
        for odd in ["a", "/a\"", "/a\\", "/a\n", &format!("/{}", "a".repeat(600))] {
            assert!(path(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn words_are_letters_and_digits() {
        let words = |text: &str| {
            let mut query = Query::new("x".into());
            query.words(text).map(|()| query.words)
        };
        assert_eq!(words("Red, \"green\" AND (blue*)").unwrap(), ["red", "green", "and", "blue"]);
        assert!(words("-- *").is_err() && words(&"a ".repeat(33)).is_err());
    }

    #[test]
    fn values_have_no_parts() {
        assert_eq!(scalar("\"a\"").unwrap(), Scalar::Text("a".into()));
        assert!(scalar("[1]").is_err() && scalar("a").is_err());
        let mut query = Query::new("x".into());
        assert!(query.between("/a", "1", "\"b\"").is_err() && query.between("/a", "1", "2").is_ok());
        assert!(query.after("{\"sorted\":[1],\"id\":1}").is_err() && query.after("x").is_err());
        query.after(r#"{"sorted":{"whole":1},"id":1}"#).unwrap();
        assert_eq!(query.after.unwrap().sorted, Sorted::Whole(1));
    }
}
