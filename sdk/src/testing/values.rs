//! Values of the contract as JSON: records as objects with the names of the contract, bytes as base64, tuples as arrays, enums as strings,
//! variants as `{"case": value}`; an option may be omitted. A host has the same table for components that were not written for Toolcrib.

use crate::bindings::toolcrib::plugin as contract;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use contract::types;
use serde_json::{Map, Value, json};

/// The largest integer that every reader of JSON keeps exact: 2^53-1.
const SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What can be an argument of a capability.
pub(crate) trait Write {
    fn write(&self) -> Value;
}

/// What a capability can return.
pub(crate) trait Read: Sized {
    /// Reads what was played; an error says what was expected.
    fn read(value: Value) -> Result<Self, String>;

    /// Returns the smallest value: it shows an author the form.
    fn blank() -> Value;
}

/// Returns a name as the contract has it.
pub(crate) fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

/// Returns an object of the fields that have a value.
pub(crate) fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (kebab(name), value)).collect::<Map<_, _>>().into()
}

macro_rules! written {
    ($($record:path { $($field:ident),+ })+) => {$(
        impl Write for $record {
            fn write(&self) -> Value {
                object([$((stringify!($field), self.$field.write())),+])
            }
        }
    )+};
}

macro_rules! read {
    ($($record:path { $($field:ident),+ })+) => {$(
        impl Read for $record {
            fn read(value: Value) -> Result<Self, String> {
                let mut fields = fields(value, &[$(stringify!($field)),+])?;
                Ok(Self { $($field: field(&mut fields, stringify!($field))?),+ })
            }

            fn blank() -> Value {
                object([$((stringify!($field), blank_of(|record: &Self| &record.$field))),+])
            }
        }
    )+};
}

macro_rules! enums {
    ($($choice:path { $($case:ident),+ })+) => {$(
        impl Write for $choice {
            fn write(&self) -> Value {
                let case = match self {
                    $(Self::$case => stringify!($case)),+
                };
                case.to_ascii_lowercase().into()
            }
        }

        impl Read for $choice {
            fn read(value: Value) -> Result<Self, String> {
                let cases = [$(Self::$case),+];
                let names = cases.iter().map(|case| case.write().to_string()).collect::<Vec<_>>().join(", ");
                let found = cases.into_iter().find(|case| case.write() == value);
                found.ok_or_else(|| format!("expected one of {names}"))
            }

            fn blank() -> Value {
                [$(Self::$case),+][0].write()
            }
        }
    )+};
}

/// What serde reads and writes as the table says.
macro_rules! plain {
    ($($type:ty),+) => {$(
        impl Write for $type {
            fn write(&self) -> Value {
                json!(self)
            }
        }

        impl Read for $type {
            fn read(value: Value) -> Result<Self, String> {
                serde_json::from_value(value).map_err(|error| error.to_string())
            }

            fn blank() -> Value {
                json!(Self::default())
            }
        }
    )+};
}

pub(crate) use {enums, read, written};

written! {
    types::Declaration { risk, mutation, privesc, why }
    types::Pane { session, pane, target }
}

read! {
    types::Captured { text, bytes, truncated, stored }
    types::Failure { kind, message, hint, data }
    types::Place { session, pane, id, created, notices }
}

enums! {
    types::Risk { Low, Medium, High }
}

plain! { bool, u16, u32, i32, f32, String, (String, String) }

impl Write for u8 {
    fn write(&self) -> Value {
        (*self).into()
    }
}

impl Write for u64 {
    fn write(&self) -> Value {
        if *self > SAFE_INTEGER { self.to_string().into() } else { (*self).into() }
    }
}

impl Read for u64 {
    fn read(value: Value) -> Result<Self, String> {
        let whole = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        whole.ok_or_else(|| format!("expected an integer from 0 to {}", Self::MAX))
    }

    fn blank() -> Value {
        0.into()
    }
}

impl Write for str {
    fn write(&self) -> Value {
        self.into()
    }
}

impl Write for [u8] {
    fn write(&self) -> Value {
        BASE64.encode(self).into()
    }
}

impl Read for Vec<u8> {
    fn read(value: Value) -> Result<Self, String> {
        let bytes = value.as_str().and_then(|text| BASE64.decode(text).ok());
        bytes.ok_or_else(|| "expected base64, as `testing::bytes` returns it".into())
    }

    fn blank() -> Value {
        "".into()
    }
}

impl Write for [String] {
    fn write(&self) -> Value {
        json!(self)
    }
}

impl Write for Vec<String> {
    fn write(&self) -> Value {
        json!(self)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Array(items) = value else { return Err("expected an array".into()) };
        items.into_iter().map(T::read).collect()
    }

    fn blank() -> Value {
        json!([])
    }
}

impl<T: Write + ?Sized> Write for &T {
    fn write(&self) -> Value {
        (**self).write()
    }
}

impl<T: Write> Write for Option<T> {
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Write::write)
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::read(value).map(Some) }
    }

    fn blank() -> Value {
        Value::Null
    }
}

impl Read for () {
    fn read(value: Value) -> Result<Self, String> {
        if value.is_null() { Ok(()) } else { Err("it returns nothing: omit `gives`".into()) }
    }

    fn blank() -> Value {
        Value::Null
    }
}

/// Returns the fields of a record, which has no others than `known`.
pub(crate) fn fields(value: Value, known: &[&str]) -> Result<Map<String, Value>, String> {
    let Value::Object(fields) = value else { return Err("expected an object".into()) };
    match fields.keys().find(|key| !known.iter().any(|known| kebab(known) == **key)) {
        Some(unknown) => {
            let known = known.iter().map(|name| format!("`{}`", kebab(name))).collect::<Vec<_>>().join(", ");
            Err(format!("`{unknown}`: unknown key; expected {known}"))
        }
        None => Ok(fields),
    }
}

pub(crate) fn field<T: Read>(fields: &mut Map<String, Value>, name: &str) -> Result<T, String> {
    let name = kebab(name);
    match fields.remove(&name) {
        Some(value) => T::read(value).map_err(|expected| format!("`{name}`: {expected}")),
        None => T::read(Value::Null).map_err(|_| format!("`{name}` is missing")),
    }
}

/// Finds the type of a field by the way to it.
pub(crate) fn blank_of<R, T: Read>(_: fn(&R) -> &T) -> Value {
    T::blank()
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{browser, exec, files, http, jobs, mail, panes, programs, records, schedules, shell};

    fn fault<T: Read>(value: Value) -> String {
        T::read(value).err().unwrap_or_default()
    }

    /// What an author is shown can be played as it stands.
    fn is_read<T: Read>() {
        assert_eq!(fault::<T>(T::blank()), "", "{}", T::blank());
    }

    #[test]
    fn every_result_can_be_read_from_its_blank() {
        is_read::<files::Listing>();
        is_read::<files::Whole>();
        is_read::<files::Entry>();
        is_read::<Vec<u8>>();
        is_read::<exec::Finished>();
        is_read::<shell::Outcome>();
        is_read::<programs::Finished>();
        is_read::<Vec<programs::Program>>();
        is_read::<http::Response>();
        is_read::<Vec<browser::Tab>>();
        is_read::<browser::Effect>();
        is_read::<Vec<mail::Folder>>();
        is_read::<mail::Found>();
        is_read::<mail::Message>();
        is_read::<mail::Content>();
        is_read::<jobs::Job>();
        is_read::<jobs::Page>();
        is_read::<Option<records::Item>>();
        is_read::<records::Page>();
        is_read::<schedules::Schedule>();
        is_read::<panes::Screen>();
        is_read::<types::Place>();
        is_read::<()>();
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place() {
        let stat = json!({ "name": "a", "kind": "file", "size": 5 });
        assert_eq!(fault::<files::Entry>(stat.clone()), "");
        let with = |name: &str, value: Value| {
            let mut stat = stat.clone();
            stat[name] = value;
            fault::<files::Listing>(json!({ "entries": [stat], "total": 1 }))
        };
        assert_eq!(with("size", json!("18446744073709551615")), "");
        assert_eq!(with("size", json!(-1)), "`entries`: `size`: expected an integer from 0 to 18446744073709551615");
        assert_eq!(
            with("kind", json!("fil")),
            "`entries`: `kind`: expected one of \"file\", \"directory\", \"link\", \"other\""
        );
        assert_eq!(
            with("modified", json!(5)),
            "`entries`: `modified`: unknown key; expected `name`, `kind`, `size`, `modified-ms`"
        );
        assert_eq!(fault::<files::Listing>(json!({ "entries": [] })), "`total` is missing");
        assert_eq!(fault::<files::Listing>(json!([])), "expected an object");
    }

    #[test]
    fn a_variant_is_an_object_of_its_case() {
        assert_eq!(fault::<shell::Outcome>(shell::Outcome::blank()), "");
        for wrong in [json!("finished"), json!({}), json!({ "finished": {}, "dispatched": "%3" })] {
            assert_eq!(fault::<shell::Outcome>(wrong), "expected {\"finished\": …} or {\"dispatched\": …}");
        }
    }

    #[test]
    fn bytes_are_base64_with_or_without_padding() {
        assert_eq!((Vec::read(json!("aGk=")), Vec::read(json!("aGk"))), (Ok(b"hi".to_vec()), Ok(b"hi".to_vec())));
        assert_eq!(fault::<Vec<u8>>(json!("a b")), "expected base64, as `testing::bytes` returns it");
        assert_eq!(fault::<Vec<u8>>(json!([104, 105])), "expected base64, as `testing::bytes` returns it");
    }
}
