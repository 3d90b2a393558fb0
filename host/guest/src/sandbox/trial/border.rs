//! The border between a component and its capabilities: each function that it imports is answered as it is played, or passed on and recorded.
//!
//! What sets a value of a resource is an argument of the call that ends it: `http.send` has `method`, `url`, `headers`, `body` and `limit`. The SDK
//! has the same for `cargo test`.
//!
//! Handles are of types that only the component knows, so these functions get its store, as no capability does.

use super::{Line, Played, Recorder};
use crate::capability::bindings::toolcrib::plugin::events;
use crate::capability::{interface, wasi};
use crate::sandbox::State;
use base::capability::Capability;
use contract::foreign::{json_of, value_of};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wasmtime::component::types::{ComponentFunc, ComponentItem, ResultType};
use wasmtime::component::{Component, Func, HasSelf, Instance, Linker, Resource, ResourceAny, ResourceType, Type, Val};
use wasmtime::{AsContextMut, Store, StoreContextMut};

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

/// Who answers.
#[derive(Clone)]
pub(super) enum By {
    Played(Arc<Played>),
    Recorded(Arc<Recorder>, Between),
}

/// A component that passes calls on to the host, in the store of the one that is tried.
#[derive(Clone, Copy)]
pub(crate) struct Between(Instance);

impl Between {
    pub(super) async fn new(bytes: &[u8], host: &Linker<State>, store: &mut Store<State>) -> wasmtime::Result<Self> {
        let component = Component::new(store.engine(), bytes)?;
        host.instantiate_async(store, &component).await.map(Self)
    }

    /// Calls the function of an interface, by its name there.
    async fn call(
        self,
        mut store: StoreContextMut<'_, State>,
        (interface, name): (&str, &str),
        given: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let function = self.function(&mut store, interface, name);
        let function = function.ok_or_else(|| wasmtime::Error::msg(format!("`{interface}` cannot be recorded")))?;
        function.call_async(&mut store, given, results).await
    }

    fn function(self, store: &mut StoreContextMut<'_, State>, interface: &str, name: &str) -> Option<Func> {
        let within = self.0.get_export_index(&mut *store, None, interface)?;
        let index = self.0.get_export_index(&mut *store, Some(&within), name)?;
        self.0.get_func(&mut *store, index)
    }
}

/// What a resource was told so far.
struct Told {
    arguments: Map<String, Value>,
    /// The host's own resource, if the call is recorded.
    real: Option<ResourceAny>,
}

/// Links a component so that its capabilities answer so. What WASI brings, and events, are as ever.
pub(super) fn linker(component: &Component, by: &By) -> wasmtime::Result<Linker<State>> {
    let engine = component.engine();
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
                    instance.resource_async(name, ResourceType::host::<Told>(), |mut store, handle| {
                        Box::new(async move {
                            let told = store.data_mut().table.delete(Resource::<Told>::new_own(handle))?;
                            match told.real {
                                Some(real) => real.resource_drop_async(&mut store).await,
                                None => Ok(()),
                            }
                        })
                    })?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let call = Arc::new(Call { import: import.to_owned(), name: name.to_owned(), by: by.clone() });
                    instance.func_new_async(name, move |store, ty, given, results| {
                        let call = call.clone();
                        Box::new(async move { call.made(store, &ty, given, results).await })
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
struct Call {
    /// The interface, as the component has it: `toolcrib:plugin/http@0.1.0`.
    import: String,
    /// The same of the function: `read`, `[constructor]request`, `[method]request.send`.
    name: String,
    by: By,
}

impl Call {
    async fn made(
        &self,
        mut store: StoreContextMut<'_, State>,
        ty: &ComponentFunc,
        given: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let mut params: Vec<(String, Type)> = ty.params().map(|(name, ty)| (name.to_owned(), ty)).collect();
        let mut given = given.to_vec();
        if self.name.starts_with("[constructor]") {
            let real = self.constructed(&mut store, &given).await?;
            let told = Told { arguments: named(&params, given), real };
            let handle = store.data_mut().table.push(told)?.try_into_resource_any(&mut store)?;
            results[0] = Val::Resource(handle);
            return Ok(());
        }
        let told = match given.first_mut() {
            Some(Val::Resource(handle)) => {
                let told: Resource<Told> = handle.try_into_resource(&mut store)?;
                let told = Resource::<Told>::new_borrow(told.rep());
                if let Some(real) = store.data().table.get(&told)?.real {
                    *handle = real;
                }
                Some(told)
            }
            _ => None,
        };
        match &self.by {
            By::Played(_) => {}
            By::Recorded(_, between) => {
                between.call(store.as_context_mut(), (&self.import, &self.name), &given, results).await?;
            }
        }
        if told.is_some() {
            params.remove(0);
            given.remove(0);
        }
        let arguments = named(&params, given);
        match (told, ty.results().next()) {
            (Some(told), None) => {
                self.tell(&mut store.data_mut().table.get_mut(&told)?.arguments, arguments);
                Ok(())
            }
            (told, Some(result)) => {
                let mut all = match told {
                    Some(told) => store.data().table.get(&told)?.arguments.clone(),
                    None => Map::new(),
                };
                all.extend(arguments);
                let Type::Result(ty) = result else {
                    return Err(wasmtime::Error::msg(format!("`{}` cannot be played", self.shown())));
                };
                match &self.by {
                    By::Played(played) => results[0] = self.answered(played, &all, &ty)?,
                    By::Recorded(recorder, _) => {
                        // Words that stand for secrets are other ones in each call.
                        let stand_ins = &store.data().scope.stand_ins;
                        all.retain(|_, value| stand_ins.within(value.to_string().as_bytes()).is_empty());
                        recorder.keep(self.recorded(all, &ty, &results[0]));
                    }
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// The resource that the host makes, where it acts.
    async fn constructed(
        &self,
        store: &mut StoreContextMut<'_, State>,
        given: &[Val],
    ) -> wasmtime::Result<Option<ResourceAny>> {
        let By::Recorded(_, between) = &self.by else { return Ok(None) };
        let mut made = [Val::Bool(false)];
        between.call(store.as_context_mut(), (&self.import, &self.name), given, &mut made).await?;
        match made {
            [Val::Resource(real)] => Ok(Some(real)),
            _ => Err(wasmtime::Error::msg(format!("`{}` cannot be recorded", self.shown()))),
        }
    }

    /// The name of the function without that of its resource.
    fn function(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default().rsplit(']').next().unwrap_or_default()
    }

    fn interface(&self) -> &str {
        interface(&self.import).unwrap_or_default()
    }

    /// As an author writes it: `http.send`.
    fn shown(&self) -> String {
        format!("{}.{}", self.interface(), self.function())
    }

    /// Adds to what a resource was told.
    fn tell(&self, told: &mut Map<String, Value>, arguments: Map<String, Value>) {
        let (interface, function) = (self.interface(), self.function());
        let mut values: Vec<Value> = arguments.into_iter().map(|(_, value)| value).collect();
        let value = match values.len() {
            0 => true.into(),
            1 => values.remove(0),
            _ => values.into(),
        };
        let list = LISTS.iter().find(|(of, name, _)| (*of, *name) == (interface, function));
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

    fn answered(&self, played: &Played, given: &Map<String, Value>, ty: &ResultType) -> wasmtime::Result<Val> {
        let call = self.shown();
        let misfit = |why: String| {
            let why = format!("what was played for `{call}` does not fit: {why}");
            played.misfit(why.clone());
            wasmtime::Error::msg(why)
        };
        let Some(answer) = played.answer(&call, given) else {
            let blank = ty.ok().map_or(Value::Null, |ty| blank(&ty));
            played.miss(&call, given, &blank);
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

    /// What the host has answered, as it would be played.
    fn recorded(&self, with: Map<String, Value>, ty: &ResultType, result: &Val) -> Line {
        let json = |ty: Option<Type>, value: &Option<Box<Val>>| {
            let value = ty.zip(value.as_deref()).and_then(|(ty, value)| json_of(&ty, value.clone()));
            without_nulls(value.unwrap_or_default())
        };
        let answer = match result {
            Val::Result(Ok(value)) => Ok(json(ty.ok(), value)),
            Val::Result(Err(failure)) => match json(ty.err(), failure) {
                Value::Object(failure) => Err(failure),
                other => Err(Map::from_iter([("message".to_owned(), other)])),
            },
            _ => Ok(Value::Null),
        };
        Line { call: self.shown(), with, answer }
    }
}

/// The same without fields that are empty: TOML has no null, and a record does without them.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name, without_nulls(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
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
