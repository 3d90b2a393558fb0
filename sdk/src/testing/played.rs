//! What the module `played` of each interface is made of: its functions and resources, answered by what a test has played.
//!
//! They have the shape of the generated bindings, which stand here in a component. A resource gathers what it is told; the function that ends
//! it is the call. What it is told several times is a list.

pub(crate) use super::call::{Call, Signature};
pub(crate) use super::values::{Read, Write, blank_of, enums, field, fields, object, read, written};
pub(crate) use crate::bindings::toolcrib::plugin as contract;
pub(crate) use serde_json::{Value, json};
pub(crate) use std::cell::RefCell;

pub(crate) type Answered<T> = Result<T, contract::types::Failure>;

/// The interfaces that can be played, and all their calls.
macro_rules! interfaces {
    ($($interface:ident)+) => {
        pub(crate) mod host {
            $(pub(crate) use crate::$interface::played as $interface;)+

            /// All calls that there are.
            pub(crate) const CALLS: &[&[&[crate::testing::played::Signature]]] = &[$($interface::CALLS),+];
        }
    };
}

/// Functions of an interface: a call each.
macro_rules! functions {
    ($interface:literal: $($function:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        pub(crate) const SIGNATURES: &[Signature] = &[
            $(Signature { interface: $interface, function: stringify!($function), arguments: &[$(stringify!($argument)),*] }),+
        ];

        $(pub(crate) fn $function($($argument: $type),*) -> Answered<$result> {
            Call::new([$((stringify!($argument), $argument.write())),*]).answer($interface, stringify!($function))
        })+
    };
}

/// A resource: its constructor and what sets one thing (`set`), adds to a list (`add`, with the name of that), or adds itself to a list (`step`)
/// gather the arguments of the calls that end it (`end`).
macro_rules! resource {
    ($interface:literal: $resource:ident($($argument:ident: $type:ty),*) {
        $(set $set:ident($($set_argument:ident: $set_type:ty),*);)*
        $(add $list:ident by $add:ident($($add_argument:ident: $add_type:ty),+);)*
        $(step $steps:ident by $step:ident($($step_argument:ident: $step_type:ty),+);)*
        $(end $end:ident -> $result:ty;)+
    }) => {
        #[derive(Debug)]
        pub(crate) struct $resource(RefCell<Call>);

        impl $resource {
            const ARGUMENTS: &[&str] =
                &[$(stringify!($argument),)* $(stringify!($set),)* $(stringify!($list),)* $(stringify!($steps),)*];
            pub(crate) const SIGNATURES: &[Signature] = &[
                $(Signature { interface: $interface, function: stringify!($end), arguments: Self::ARGUMENTS }),+
            ];

            pub(crate) fn new($($argument: $type),*) -> Self {
                Self(RefCell::new(Call::new([$((stringify!($argument), $argument.write())),*])))
            }

            $(pub(crate) fn $set(&self $(, $set_argument: $set_type)*) {
                self.0.borrow_mut().set(stringify!($set), told([$($set_argument.write()),*]));
            })*

            $(pub(crate) fn $add(&self $(, $add_argument: $add_type)+) {
                self.0.borrow_mut().add(stringify!($list), told([$($add_argument.write()),+]));
            })*

            $(pub(crate) fn $step(&self $(, $step_argument: $step_type)+) {
                let step = told([$($step_argument.write()),+]);
                self.0.borrow_mut().add(stringify!($steps), object([(stringify!($step), step)]));
            })*

            $(pub(crate) fn $end(&self) -> Answered<$result> {
                self.0.borrow().clone().answer($interface, stringify!($end))
            })+
        }
    };
}

/// Returns what a resource is told by one call: that it was called, the argument, or several of them.
pub(crate) fn told<const N: usize>(arguments: [Value; N]) -> Value {
    match N {
        0 => true.into(),
        1 => arguments.into_iter().collect::<Vec<_>>().remove(0),
        _ => arguments.into_iter().collect(),
    }
}

pub(crate) use {functions, interfaces, resource};

#[cfg(test)]
mod tests {
    use crate::host::CALLS;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The calls of an interface, and of each function that belongs to no resource its arguments: what has a result is a call.
    fn calls(interface: &str, wit: &str) -> BTreeSet<(String, Option<String>)> {
        let mut calls = BTreeSet::new();
        let mut is_in_resource = false;
        for line in wit.lines().map(str::trim) {
            is_in_resource = line.starts_with("resource ") || (is_in_resource && line != "}");
            if let Some((name, rest)) = line.split_once(": func(")
                && let Some((arguments, result)) = rest.rsplit_once(')')
                && result.starts_with(" -> ")
            {
                calls.insert((format!("{interface}.{name}"), (!is_in_resource).then(|| names(arguments))));
            }
        }
        calls
    }

    /// The names in `path: string, offset: u64`.
    fn names(arguments: &str) -> String {
        let names = arguments.split(", ").map(|argument| argument.split(':').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_call_of_the_contract_can_be_played() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("wit");
        let world = std::fs::read_to_string(directory.join("world.wit")).unwrap();
        let imports = world.lines().filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'));
        let wanted: BTreeSet<_> = imports
            .flat_map(|interface| {
                calls(interface, &std::fs::read_to_string(directory.join(format!("{interface}.wit"))).unwrap())
            })
            .collect();
        let is_function = |name: &str| wanted.iter().any(|(call, arguments)| call == name && arguments.is_some());
        let played: BTreeSet<_> = CALLS
            .iter()
            .copied()
            .flatten()
            .copied()
            .flatten()
            .map(|signature| {
                let (name, arguments) = (signature.name(), signature.arguments.join(" ").replace('_', "-"));
                let arguments = is_function(&name).then_some(arguments);
                (name, arguments)
            })
            .collect();
        assert_eq!(played, wanted);
    }
}
