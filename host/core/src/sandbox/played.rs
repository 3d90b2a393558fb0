//! Capabilities that answer as a plugin's author has played them, for tests: nothing is decided, and nothing is done.
//!
//! The plugin's own imports say what there is to be played. What sets a value of a resource is an argument of the call that ends it: `http.send` has `method`,
//! `url`, `headers`, `body` and `limit`. The SDK has the same for `cargo test`.
//!
//! Handles are of types that only the component knows, so these functions get its store, as no capability does; they call nothing in it.

use super::State;
use crate::capability::bindings::toolcrib::plugin::events;
use crate::capability::{Capability, interface, wasi};
use crate::tools::foreign::{json_of, value_of};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceType, Type, Val};
use wasmtime::{Engine, StoreContextMut};

/// Functions of resources that can be called several times, by interface and name, and the list that each call adds to.
const LISTS: [(&str, &str, &str); 12] = [
    ("shell", "environment", "environment"),
    ("exec", "environment", "environment"),
    ("http", "header", "headers"),
    ("embedder", "visible", "visible"),
    ("embedder", "attach", "attachments"),
    ("records", "equals", "equals"),
    ("records", "between", "between"),
    ("jobs", "label", "labels"),
    ("records", "put", CHANGES),
    ("records", "expect", CHANGES),
    ("records", "delete", CHANGES),
    ("records", "embed", CHANGES),
];
/// The list of what a batch of records changes; each entry has the name of its function.
const CHANGES: &str = "changes";

/// The answers for one call of a tool.
#[derive(Default)]
pub struct Played {
    lines: Mutex<Vec<Line>>,
    /// Calls that no line answers.
    missing: Mutex<Vec<String>>,
}

/// One answer.
pub struct Line {
    /// Interface and function: `http.send`.
    pub call: String,
    /// Arguments that the call must have; it may have others.
    pub with: Map<String, Value>,
    /// Its result, or a failure as the contract has it.
    pub answer: Result<Value, Map<String, Value>>,
    /// It has answered a call.
    used: bool,
}

impl Line {
    /// An answer that has not been given yet.
    #[must_use]
    pub fn new(call: String, with: Map<String, Value>, answer: Result<Value, Map<String, Value>>) -> Self {
        Self { call, with, answer, used: false }
    }
}

impl Played {
    /// Plays these answers: each for one call, the first that fits.
    #[must_use]
    pub fn new(lines: Vec<Line>) -> Self {
        Self { lines: Mutex::new(lines), missing: Mutex::default() }
    }

    /// What was called and not played, and what was played and not called, a sentence each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let missing = self.missing.lock().clone().into_iter();
        let lines = self.lines.lock();
        let unused = lines.iter().filter(|line| !line.used);
        missing.chain(unused.map(|line| format!("`{}` was played, and not called so", line.call))).collect()
    }

    fn answer(&self, call: &str, given: &Map<String, Value>) -> Option<Result<Value, Map<String, Value>>> {
        let mut lines = self.lines.lock();
        let fits = |line: &&mut Line| {
            !line.used && line.call == call && line.with.iter().all(|(name, wanted)| given.get(name) == Some(wanted))
        };
        let line = lines.iter_mut().find(fits)?;
        line.used = true;
        Some(line.answer.clone())
    }

    fn miss(&self, call: &str, given: &Map<String, Value>, gives: &Value) {
        let line = json!({ "call": call, "with": given, "gives": gives });
        // TOML has no null.
        let line = toml::Value::try_from(&line).map_or_else(|_| line.to_string(), |line| line.to_string());
        self.missing.lock().push(format!("`{call}` was called, and not played; in `host`: {line}"));
    }
}

/// What a resource was told so far.
struct Told(Map<String, Value>);

/// Links a component so that its capabilities answer as they are played. What WASI brings, and events, are as ever.
pub(crate) fn linker(engine: &Engine, component: &Component, played: &Arc<Played>) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasi::link(&mut linker)?;
    events::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    for (import, item) in component.component_type().imports(engine) {
        let Some(interface) = interface(import) else { continue };
        let ComponentItem::ComponentInstance(items) = item.ty else { continue };
        if Capability::of_interface(interface) == Some(Capability::Events) {
            continue;
        }
        let mut instance = linker.instance(import)?;
        for (name, item) in items.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    let forget = |mut store: StoreContextMut<'_, State>, handle| {
                        store.data_mut().table.delete(Resource::<Told>::new_own(handle))?;
                        Ok(())
                    };
                    instance.resource(name, ResourceType::host::<Told>(), forget)?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let (interface, name, played) = (interface.to_owned(), name.to_owned(), played.clone());
                    let function = name.clone();
                    instance.func_new(&function, move |store, ty, given, results| {
                        Call { interface: &interface, name: &name, played: &played }.made(store, &ty, given, results)
                    })?;
                }
                ComponentItem::Type(_)
                | ComponentItem::CoreFunc(_)
                | ComponentItem::Module(_)
                | ComponentItem::Component(_)
                | ComponentItem::ComponentInstance(_) => {}
            }
        }
    }
    Ok(linker)
}

/// A function that is called.
struct Call<'c> {
    interface: &'c str,
    /// As the component has it: `read`, `[constructor]request`, `[method]request.send`.
    name: &'c str,
    played: &'c Played,
}

impl Call<'_> {
    fn made(
        &self,
        mut store: StoreContextMut<'_, State>,
        ty: &ComponentFunc,
        given: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let mut params: Vec<(String, Type)> = ty.params().map(|(name, ty)| (name.to_owned(), ty)).collect();
        let mut given = given.to_vec();
        if self.name.starts_with("[constructor]") {
            let told = Told(named(&params, given));
            let handle = store.data_mut().table.push(told)?.try_into_resource_any(&mut store)?;
            results[0] = Val::Resource(handle);
            return Ok(());
        }
        let function = self.name.rsplit('.').next().unwrap_or_default().rsplit(']').next().unwrap_or_default();
        let told = match given.first() {
            Some(Val::Resource(handle)) => {
                let told: Resource<Told> = handle.try_into_resource(&mut store)?;
                params.remove(0);
                given.remove(0);
                Some(Resource::<Told>::new_borrow(told.rep()))
            }
            _ => None,
        };
        let arguments = named(&params, given);
        match (told, ty.results().next()) {
            (Some(told), None) => {
                self.tell(&mut store.data_mut().table.get_mut(&told)?.0, function, arguments);
                Ok(())
            }
            (told, Some(result)) => {
                let mut all = match told {
                    Some(told) => store.data().table.get(&told)?.0.clone(),
                    None => Map::new(),
                };
                all.extend(arguments);
                results[0] = self.answered(function, &all, &result)?;
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Adds to what a resource was told.
    fn tell(&self, told: &mut Map<String, Value>, function: &str, arguments: Map<String, Value>) {
        let mut values: Vec<Value> = arguments.into_iter().map(|(_, value)| value).collect();
        let value = match values.len() {
            0 => true.into(),
            1 => values.remove(0),
            _ => values.into(),
        };
        let list = LISTS.iter().find(|(interface, name, _)| (*interface, *name) == (self.interface, function));
        match list {
            None => drop(told.insert(function.to_owned(), value)),
            Some((.., list)) => {
                let value = if *list == CHANGES { json!({ function: value }) } else { value };
                match told.entry(*list).or_insert_with(|| json!([])) {
                    Value::Array(items) => items.push(value),
                    other => *other = json!([value]),
                }
            }
        }
    }

    fn answered(&self, function: &str, given: &Map<String, Value>, result: &Type) -> wasmtime::Result<Val> {
        let call = format!("{}.{function}", self.interface);
        let Type::Result(ty) = result else {
            return Err(wasmtime::Error::msg(format!("`{call}` cannot be played")));
        };
        let misfit = |why: String| {
            let why = format!("what was played for `{call}` does not fit: {why}");
            self.played.missing.lock().push(why.clone());
            wasmtime::Error::msg(why)
        };
        let Some(answer) = self.played.answer(&call, given) else {
            let blank = ty.ok().map_or(Value::Null, |ty| blank(&ty));
            self.played.miss(&call, given, &blank);
            return Err(wasmtime::Error::msg(format!("`{call}` was not played")));
        };
        let value = |ty: Option<Type>, json: &Value| match ty {
            None => Ok(None),
            Some(ty) => value_of(&ty, json).map(|value| Some(Box::new(value))).map_err(misfit),
        };
        Ok(Val::Result(match answer {
            Ok(json) => Ok(value(ty.ok(), &json)?),
            Err(failure) => Err(value(ty.err(), &Value::Object(failure))?),
        }))
    }
}

/// Arguments by their names; what is a handle, or empty, is left out.
fn named(params: &[(String, Type)], given: Vec<Val>) -> Map<String, Value> {
    let pairs = params.iter().zip(given).filter_map(|((name, ty), value)| Some((name.clone(), json_of(ty, value)?)));
    pairs.filter(|(_, value)| !value.is_null()).collect()
}

/// A value of a type, to be filled in.
fn blank(ty: &Type) -> Value {
    match ty {
        Type::Bool => false.into(),
        Type::S8 | Type::U8 | Type::S16 | Type::U16 | Type::S32 | Type::U32 | Type::S64 | Type::U64 => 0.into(),
        Type::Float32 | Type::Float64 => json!(0.0),
        Type::Char | Type::String => "".into(),
        Type::List(list) if matches!(list.ty(), Type::U8) => "".into(),
        Type::List(_) | Type::FixedLengthList(_) | Type::Flags(_) | Type::Map(_) => json!([]),
        Type::Record(record) => {
            let fields = record.fields().filter(|field| !matches!(field.ty, Type::Option(_)));
            fields.map(|field| (field.name.to_owned(), blank(&field.ty))).collect::<Map<_, _>>().into()
        }
        Type::Tuple(tuple) => tuple.types().map(|ty| blank(&ty)).collect(),
        Type::Enum(words) => words.names().next().unwrap_or_default().into(),
        Type::Variant(variant) => match variant.cases().next() {
            Some(case) => case.ty.map_or_else(|| case.name.into(), |ty| json!({ case.name: blank(&ty) })),
            None => Value::Null,
        },
        Type::Option(_)
        | Type::Result(_)
        | Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext => Value::Null,
    }
}
