//! The toolset that a client has chosen by the address at which it speaks: `/mcp?toolset=worker&channel=ops`.
//!
//! What there is to choose, and whether it may be chosen, is for `mcp/sessions.rs` to say.

use serde_json::{Map, Value};
use url::form_urlencoded;

/// The name of a toolset, and what a session on it is given.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::mcp) struct Chosen {
    pub(in crate::mcp) toolset: String,
    pub(in crate::mcp) given: Map<String, Value>,
}

impl Chosen {
    /// Reads a query; none where it names no toolset.
    ///
    /// # Errors
    ///
    /// What is said twice.
    pub(super) fn read(query: Option<&str>) -> Result<Option<Self>, String> {
        let mut toolset = None;
        let mut given = Map::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let before = match &*name {
                "toolset" => toolset.replace(value.into_owned()).is_some(),
                _ => {
                    let value = serde_json::from_str(&value).unwrap_or_else(|_| Value::String(value.into_owned()));
                    given.insert(name.clone().into_owned(), value).is_some()
                }
            };
            if before {
                return Err(format!("`{}` is twice in the address", name.escape_debug()));
            }
        }
        Ok(toolset.map(|toolset| Self { toolset, given }))
    }

    /// What tells it from all others.
    pub(in crate::mcp) fn key(&self) -> String {
        let mut given = Value::Object(self.given.clone());
        given.sort_all_objects();
        format!("{} {given}", self.toolset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_names_a_toolset_and_its_constants() {
        let read = |query: &str| Chosen::read(Some(query)).unwrap();
        assert_eq!(Chosen::read(None), Ok(None));
        assert_eq!(read("x=1"), None);
        let given = json!({ "channel": "a b", "number": 7 }).as_object().cloned().unwrap();
        let chosen = Chosen { toolset: "worker".into(), given };
        assert_eq!(read("toolset=worker&channel=a+b&number=7"), Some(chosen.clone()));
        assert_eq!(read("number=7&channel=a%20b&toolset=worker").unwrap().key(), chosen.key());
        assert_ne!(read("toolset=worker&number=8").unwrap().key(), chosen.key());
        for twice in ["toolset=a&toolset=b", "toolset=a&x=1&x=2"] {
            assert!(Chosen::read(Some(twice)).unwrap_err().contains("is twice in the address"), "{twice}");
        }
    }
}
