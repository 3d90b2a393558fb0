//! Answers in JSON. What a server sends is of any shape and size: only what is asked for is kept of it.

use crate::unexpected;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use std::fmt;
use std::ops::Deref;
use toolcrib_sdk::http::Response;
use toolcrib_sdk::{Failure, Result};

/// Entries of a list that are looked at.
const ENTRIES: usize = 100;

/// Reads an answer with status 200.
///
/// # Errors
/// `execution_failed` for another status, for an answer that is not this JSON, and for one that is too long.
pub fn read<T: DeserializeOwned>(name: &str, response: &Response) -> Result<T> {
    if response.status != 200 {
        return Err(unexpected(name, response.status));
    }
    if response.truncated {
        let kib = response.body.len() >> 10;
        return Err(Failure::failed(format!("the answer of {name} is too long: only {kib} KiB of it were read")));
    }
    // A list would be taken for an object without keys.
    let is_object = response.body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let body = if is_object { response.body.as_slice() } else { b"" };
    serde_json::from_slice(body).map_err(|error| {
        // Not the words of the error: they may quote the answer.
        let (line, column) = (error.line(), error.column());
        Failure::failed(format!("the answer of {name} is not the JSON of a search (line {line}, column {column})"))
    })
}

/// A text, empty where there is something else.
#[derive(Debug, Default, PartialEq)]
pub struct Text(String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(AnyText)
    }
}

struct AnyText;

impl<'de> Visitor<'de> for AnyText {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Text, E> {
        Ok(Text(text.into()))
    }

    fn visit_unit<E: de::Error>(self) -> std::result::Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> std::result::Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> std::result::Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> std::result::Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> std::result::Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Text, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

/// The first entries of a list.
#[derive(Debug)]
pub struct First<T>(Vec<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for First<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'l, T> IntoIterator for &'l First<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_seq(List(std::marker::PhantomData))
    }
}

struct List<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = First<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<First<T>, A::Error> {
        let mut entries = Vec::new();
        while entries.len() < ENTRIES
            && let Some(entry) = list.next_element()?
        {
            entries.push(entry);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str, truncated: bool) -> Response {
        Response { status, headers: Vec::new(), url: String::new(), body: body.into(), truncated }
    }

    #[derive(Debug, Deserialize)]
    struct Texts {
        texts: First<Text>,
    }

    fn texts(body: &str) -> Result<Vec<String>> {
        let answer: Texts = read("Engine", &answer(200, body, false))?;
        Ok(answer.texts.iter().map(|text| text.to_string()).collect())
    }

    #[test]
    fn what_is_not_a_text_is_an_empty_one() {
        let texts = texts(r#"{"texts":["a", null, 1, -1, 1.5, true, ["b", {}], {"c": ["d"]}, "\u00e9\n"]}"#).unwrap();
        assert_eq!(texts, ["a", "", "", "", "", "", "", "", "é\n"]);
    }

    #[test]
    fn the_first_of_many_entries_are_kept() {
        let many = format!(r#"{{"texts":[{}1]}}"#, r#"{"a":[1]},"#.repeat(50_000));
        assert_eq!(texts(&many).unwrap().len(), ENTRIES);
    }

    #[test]
    fn what_is_not_json_is_told_without_being_quoted() {
        let deep = r#"{"SECRET":"#.repeat(100_000);
        for body in [
            "",
            "<html>SECRET",
            "{}",
            "[[]]",
            "\"SECRET\"",
            r#"{"SECRET"#,
            r#"{"texts":"SECRET"}"#,
            "{SECRET}",
            "\0",
            &deep,
        ] {
            let failure = texts(body).unwrap_err();
            assert!(failure.message.starts_with("the answer of Engine is not the JSON of a search"), "{failure}");
            assert!(!failure.message.contains("SECRET"), "{failure}");
        }
    }

    #[test]
    fn a_part_of_an_answer_and_another_status_are_told() {
        let read = |answer: Response| read::<Texts>("Engine", &answer).unwrap_err().message;
        assert_eq!(read(answer(500, "[]", false)), "Engine answers with status 500");
        let long = "[]".repeat(1 << 10);
        assert_eq!(read(answer(200, &long, true)), "the answer of Engine is too long: only 2 KiB of it were read");
    }
}
