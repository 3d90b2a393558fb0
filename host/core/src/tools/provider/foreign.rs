//! A component that was not written for Toolcrib: each function that it exports is a tool, and its types say what the tool takes and returns. One that
//! is a program (`wasi:cli/run`) is a tool as declared programs are.
//!
//! What it says of itself follows from its bytes, so nothing of it runs for that; it is compiled at once all the same, as one that does not
//! compile must not be offered. How types and values become JSON is `tools/foreign/`.

mod program;

use super::component::{Component, rules};
use super::{Code, LoadError, Ready, Said};
use base::envelope::{Failure, Kind};
use config::Limits;
use contract::definition::{Definition, Guidance};
use contract::foreign::{self, Bounds, Function, Outcome, Signature, Unread, exports};
use contract::words::Words;
use guest::capability::bindings::exports::toolcrib::plugin::tools;
use guest::capability::bindings::toolcrib::plugin::types;
use guest::capability::wasi::Reasons;
use guest::reach::Reach;
use guest::sandbox::{Sandbox, TypedGuest};
use policy::Grants;
use policy::event::EventSink;
use serde_json::Value;
use std::sync::Arc;

/// The code of such a component, with its functions.
pub(crate) struct Typed {
    guest: TypedGuest,
    functions: Arc<Functions>,
}

/// The functions of a component, each a tool.
pub(super) struct Functions {
    /// With the names that tools have by their types.
    signatures: Vec<Signature>,
    /// The names that they have, in the same order.
    names: Vec<String>,
    words: Option<Words>,
}

impl Functions {
    pub(super) fn new(signatures: Vec<Signature>, words: Option<Words>) -> Result<Self, String> {
        let names: Vec<String> = signatures.iter().map(|signature| signature.tool.clone()).collect();
        let Some(words) = words else { return Ok(Self { signatures, names, words }) };
        let names = words.names(&names)?;
        let stays = |(signature, _): &(Signature, String)| !words.omits(&signature.tool);
        let (signatures, names): (Vec<_>, Vec<_>) = signatures.into_iter().zip(names).filter(stays).unzip();
        if names.is_empty() {
            return Err("its words omit each of its tools".into());
        }
        Ok(Self { signatures, names, words: Some(words) })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The words of whoever installed it, as they are written.
    pub(super) fn words(&self) -> Option<&str> {
        self.words.as_ref().map(Words::text)
    }

    /// Finds a function by the name that it has as a tool.
    fn find(&self, tool: &str) -> Option<&Signature> {
        self.names.iter().position(|name| name == tool).map(|index| &self.signatures[index])
    }

    /// What types say, and of a program what this host says: its name is that of the file, which does not follow from its bytes.
    fn with_programs(&self, types: Said) -> Said {
        let programs = self.signatures.iter().filter(|function| is_program(function));
        let programs: Vec<_> = programs.map(|function| program::definition(&function.tool)).collect();
        if programs.is_empty() { types } else { said(types.definitions.into_iter().chain(programs).collect()) }
    }

    /// What types say, in the words of whoever installed it.
    fn worded(&self, said: Said) -> Result<Said, String> {
        let Some(words) = &self.words else { return Ok(said) };
        let name = |tool: &str| {
            let index = self.signatures.iter().position(|signature| signature.tool == tool);
            index.map(|index| self.names[index].as_str()).ok_or_else(|| format!("there is no function for `{tool}`"))
        };
        let stay = said.definitions.into_iter().filter(|definition| !words.omits(&definition.name));
        let worded = stay.map(|definition| {
            let name = name(&definition.name)?;
            words.applied(definition, name)
        });
        let definitions = worded.collect::<Result<Vec<_>, String>>()?;
        let constants: Vec<_> = self.signatures.iter().map(|signature| words.constants(&signature.tool)).collect();
        let json = serde_json::to_vec(&(&definitions, constants)).expect("definitions are plain data");
        Ok(Said { definitions, json })
    }
}

/// Takes what the types say, and compiles the component, unless both are cached.
pub(super) async fn load(
    component: &Component,
    functions: &Arc<Functions>,
    sandbox: &Arc<Sandbox>,
    scope: Reach,
    events: &dyn EventSink,
) -> Result<Ready, LoadError> {
    let (limits, source) = (scope.limits.clone(), component.source());
    let rules = rules(&limits);
    if let Some(said) = sandbox.said(&source).and_then(|kept| Said::kept(&kept, &rules)) {
        let said = functions.with_programs(said);
        return match functions.words {
            None => Ok(Ready::checked_before(component.manifest(), said)),
            Some(_) => Ok(Ready::new(component.manifest(), None, &functions.worded(said)?, &limits)?),
        };
    }
    let bytes = component.bytes(&limits).map_err(LoadError::Passing)?;
    let read = tokio::task::spawn_blocking(move || exports(&bytes, Bounds::default()));
    let read = read.await.map_err(|error| LoadError::Passing(error.to_string()))?;
    let read = read.map_err(|error| match error {
        Unread::Broken(reason) => LoadError::Broken(reason),
        Unread::Passing(reason) => LoadError::Passing(reason),
    })?;
    let types = said(read.functions.iter().map(definition).collect());
    let guest: TypedGuest = component.compiled(sandbox, &limits, events).await?;
    sandbox.keep(&source, &guest, types.to_keep(&rules));
    let said = functions.with_programs(types);
    let code = Code::Typed(Typed { guest, functions: functions.clone() });
    Ok(Ready::new(component.manifest(), Some(code), &functions.worded(said)?, &limits)?)
}

/// Its code, from the cache or compiled.
pub(super) async fn code(
    component: &Component,
    functions: &Arc<Functions>,
    sandbox: &Arc<Sandbox>,
    limits: &Limits,
    events: &dyn EventSink,
) -> Result<Code, LoadError> {
    let guest = component.guest(sandbox, limits, events).await?;
    Ok(Code::Typed(Typed { guest, functions: functions.clone() }))
}

impl Typed {
    /// Calls the function that is this tool, as [`Code::call`] does.
    pub(super) async fn call(
        &self,
        sandbox: &Sandbox,
        tool: &str,
        arguments: &str,
        grants: Arc<Grants>,
        scope: Arc<Reach>,
    ) -> Result<Result<tools::Output, types::Failure>, Failure> {
        let Some(function) = self.functions.find(tool) else {
            return Err(Failure::new(Kind::Internal, format!("the component has no function for `{tool}`")));
        };
        let mut given = match serde_json::from_str(arguments) {
            Ok(Value::Object(given)) => given,
            Ok(_) | Err(_) => {
                return Ok(Err(failure("invalid_arguments", "the arguments are not an object".into(), None)));
            }
        };
        if let Some(words) = &self.functions.words {
            given.extend(words.constants(&function.tool));
        }
        if is_program(function) {
            return program::run(&self.guest, function, given, sandbox, grants, scope).await;
        }
        let instance = sandbox.instantiate(&self.guest, grants, scope).await?;
        let reasons = instance.reasons();
        let values = |ty: &_| foreign::arguments(ty, &given);
        let returned = instance.call_typed(function.interface.as_deref(), &function.name, values).await;
        Ok(match returned.map_err(|failure| with_reasons(failure, &reasons))? {
            Err(reason) => Err(failure("invalid_arguments", reason, None)),
            Ok((ty, value)) => match foreign::result(&ty, value) {
                Outcome::Ok(value) => {
                    let json = value.unwrap_or(Value::Null).to_string();
                    Ok(tools::Output { json, content: Vec::new(), notices: told(&reasons) })
                }
                Outcome::Err { message, data } => {
                    let failed = failure("execution_failed", message, data);
                    Err(types::Failure { hint: hint(&reasons), ..failed })
                }
            },
        })
    }
}

/// It is what a program exports, and takes and returns what programs do.
fn is_program(function: &Signature) -> bool {
    function.interface.as_deref().is_some_and(|interface| interface.split('@').next() == Some("wasi:cli/run"))
}

/// Why something failed for which WASI has no more than a word, a sentence each.
fn told(reasons: &Reasons) -> Vec<String> {
    let line = |Failure { message, hint, .. }: Failure| match hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message,
    };
    reasons.take().into_iter().map(line).collect()
}

fn hint(reasons: &Reasons) -> Option<String> {
    Some(told(reasons)).filter(|told| !told.is_empty()).map(|told| told.join("; "))
}

/// The failure of a guest that was stopped, with what it was refused before.
fn with_reasons(failure: Failure, reasons: &Reasons) -> Failure {
    match (&failure.hint, hint(reasons)) {
        (None, Some(hint)) => failure.hint(hint),
        (Some(_), _) | (None, None) => failure,
    }
}

fn failure(kind: &str, message: String, data: Option<Value>) -> types::Failure {
    types::Failure { kind: kind.into(), message, hint: None, data: data.map(|data| data.to_string()) }
}

/// What its types and its authors' docs say.
fn said(definitions: Vec<Definition>) -> Said {
    let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
    Said { definitions, json }
}

/// The first paragraph of the docs is what the tool does, the rest how it is used. WIT has no words about when to use a function.
fn definition(function: &Function) -> Definition {
    let docs = function.docs.as_deref().unwrap_or_default().trim();
    let (first, rest) = docs.split_once("\n\n").unwrap_or((docs, ""));
    let summary = match (first.is_empty(), &function.interface) {
        (false, _) => first.split_whitespace().collect::<Vec<_>>().join(" "),
        (true, Some(interface)) => format!("Call `{}` of `{interface}`.", function.name),
        (true, None) => format!("Call `{}`.", function.name),
    };
    let nothing = String::new;
    Definition {
        name: function.tool.clone(),
        title: None,
        summary,
        guidance: Guidance {
            when_to_use: nothing(),
            when_not_to_use: nothing(),
            disambiguation: nothing(),
            examples: Vec::new(),
        },
        usage: Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty()),
        input_schema: function.input_schema.clone(),
        output_schema: function.output_schema.clone(),
        events: Vec::new(),
        is_of_command: false,
    }
}
