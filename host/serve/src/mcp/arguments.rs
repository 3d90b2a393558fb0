//! The `arguments` of a call as clients write them: an object, or what some write in its place.

use rmcp::model::JsonObject;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;

/// The arguments that a value is: none where it says that there are none (cline/cline#10553, apify/apify-mcp-server#1360), or an object, also one
/// that was written as text.
///
/// # Errors
///
/// `()` if it is anything else.
pub(super) fn read(value: Value) -> Result<Option<JsonObject>, ()> {
    match value {
        Value::Object(arguments) => Ok(Some(arguments)),
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::Array(items) if items.is_empty() => Ok(None),
        Value::String(text) => serde_json::from_str(&text).map(Some).map_err(drop),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => Err(()),
    }
}

/// The same, for a field of a message.
pub(super) fn field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonObject>, D::Error> {
    read(Value::deserialize(deserializer)?).map_err(|()| D::Error::custom("`arguments` are not an object"))
}

/// The body of a call with its arguments as an object; none where they cannot be one.
pub(super) fn plainly(body: &[u8]) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(body).ok()?;
    let arguments = message.get_mut("params")?.get_mut("arguments")?;
    *arguments = read(arguments.take()).ok()?.unwrap_or_default().into();
    serde_json::to_vec(&message).ok()
}

/// Whether arguments are an object, found out without keeping any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Plainly,
    InAnotherWay,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kind;
        impl<'de> Visitor<'de> for Kind {
            type Value = Written;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("arguments")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Written, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Written::Plainly)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Written, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Written::InAnotherWay)
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Written, E> {
                Ok(Written::InAnotherWay)
            }

            fn visit_unit<E: Error>(self) -> Result<Written, E> {
                Ok(Written::Plainly)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Written, E> {
                Ok(Written::InAnotherWay)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Written, E> {
                Ok(Written::InAnotherWay)
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Written, E> {
                Ok(Written::InAnotherWay)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Written, E> {
                Ok(Written::InAnotherWay)
            }
        }
        deserializer.deserialize_any(Kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_in_the_place_of_no_arguments_is_none_and_a_text_is_what_it_says() {
        for none in [json!(null), json!(""), json!([])] {
            assert_eq!(read(none), Ok(None));
        }
        for text in [json!({ "a": 1 }), json!(r#"{"a":1}"#)] {
            assert_eq!(read(text).map(Option::unwrap_or_default).map(Value::from), Ok(json!({ "a": 1 })));
        }
        for odd in [json!("a"), json!("[]"), json!("null"), json!([1]), json!(5), json!(false)] {
            assert_eq!(read(odd.clone()), Err(()), "{odd}");
        }
    }

    #[test]
    fn only_an_object_is_written_plainly() {
        let written = |text: &str| serde_json::from_str::<Option<Written>>(text).expect("it is JSON");
        assert_eq!(written(r#"{"a":[1,{"b":null}]}"#), Some(Written::Plainly));
        assert_eq!(written("null"), None);
        for odd in [r#""""#, "[]", "[1,[2]]", "5", "-5", "0.5", "true"] {
            assert_eq!(written(odd), Some(Written::InAnotherWay), "{odd}");
        }
    }
}
