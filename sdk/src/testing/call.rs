//! One call of a capability: what it is named, what it is given, and the line of `cases.toml` that plays it.

use super::host;
use super::values::{Read, kebab, object};
use crate::Failure;
use crate::bindings::toolcrib::plugin::types;
use serde_json::{Map, Value};

/// The name of a call and of what it takes, as the bindings have them.
pub(crate) struct Signature {
    pub(crate) interface: &'static str,
    pub(crate) function: &'static str,
    pub(crate) arguments: &'static [&'static str],
}

/// A call of a capability.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The interface and the function of the contract: `files.read`. What a resource was told goes with the call that ends it: `http.send`.
    pub name: String,
    /// What it was given, by the names of the contract.
    pub arguments: Value,
}

impl Signature {
    pub(crate) fn name(&self) -> String {
        kebab(&format!("{}.{}", self.interface, self.function))
    }
}

impl Call {
    pub(crate) fn new<const N: usize>(arguments: [(&str, Value); N]) -> Self {
        Self { name: String::new(), arguments: object(arguments) }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.arguments[kebab(name)] = value;
    }

    pub(crate) fn add(&mut self, list: &str, value: Value) {
        let list = &mut self.arguments[kebab(list)];
        match list {
            Value::Array(items) => items.push(value),
            _ => *list = vec![value].into(),
        }
    }

    /// Makes the call, whose answer was played.
    pub(crate) fn answer<T: Read>(self, interface: &str, function: &str) -> Result<T, types::Failure> {
        let call = self.named(interface, function);
        let name = call.name.clone();
        let gives = host::answer(call, T::blank).map_err(Failure::into_wit)?;
        Ok(T::read(gives).unwrap_or_else(|fault| panic!("what was played for `{name}` does not fit: {fault}")))
    }

    /// Makes a call that has no answer.
    pub(crate) fn note(self, interface: &str, function: &str) {
        host::note(self.named(interface, function));
    }

    fn named(self, interface: &str, function: &str) -> Self {
        Self { name: kebab(&format!("{interface}.{function}")), ..self }
    }
}

/// Returns a line of `host = [...]`; what is empty is omitted.
pub(crate) fn line(call: &str, with: &Value, answer: (&str, &Value)) -> String {
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    let call = call.into();
    let parts = [("call", &call), ("with", with), answer];
    let parts = parts.into_iter().filter(|(_, value)| !is_empty(value)).map(|(name, value)| {
        match toml::Value::try_from(value) {
            Ok(value) => format!("{name} = {value}"),
            // What TOML cannot say, such as a null in a list.
            Err(_) => format!("{name} = {value}"),
        }
    });
    format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
}
