//! A component that was not written for Toolcrib: each function that it exports is a tool, and its types say what the tool takes and returns.
//!
//! What it says of itself follows from its bytes, so nothing of it runs for that; it is compiled at once all the same, as one that does not
//! compile must not be offered. How types and values become JSON is `tools/foreign/`.

use super::component::{Component, rules};
use super::{Code, LoadError, Ready, Said};
use crate::call::scope::Scope;
use crate::capability::bindings::exports::toolcrib::plugin::tools;
use crate::capability::bindings::toolcrib::plugin::types;
use crate::config::Limits;
use crate::envelope::{Failure, Kind};
use crate::event::EventSink;
use crate::policy::Grants;
use crate::sandbox::{Sandbox, TypedGuest};
use crate::tools::definition::{Definition, Guidance};
use crate::tools::foreign::{self, Bounds, Function, Outcome, Signature, exports};
use serde_json::Value;
use std::sync::Arc;

/// The code of such a component, with its functions.
pub(crate) struct Typed {
    guest: TypedGuest,
    functions: Arc<[Signature]>,
}

/// Takes what the types say, and compiles the component, unless both are cached.
pub(super) async fn load(
    component: &Component,
    functions: &Arc<[Signature]>,
    sandbox: &Arc<Sandbox>,
    scope: Scope,
    events: &dyn EventSink,
) -> Result<Ready, LoadError> {
    let (limits, source) = (scope.limits.clone(), component.source());
    let rules = rules(&limits);
    if let Some(said) = sandbox.said(&source).and_then(|kept| Said::kept(&kept, &rules)) {
        return Ok(Ready::checked_before(component.manifest(), said));
    }
    let bytes = component.bytes(&limits).map_err(LoadError::Passing)?;
    let said =
        tokio::task::spawn_blocking(move || exports(&bytes, Bounds::default()).map(|found| said(&found.functions)));
    let said = said.await.map_err(|error| LoadError::Passing(error.to_string()))??;
    let guest: TypedGuest = component.compiled(sandbox, &limits, events).await?;
    let kept = said.to_keep(&rules);
    sandbox.keep(&source, &guest, kept);
    let code = Code::Typed(Typed { guest, functions: functions.clone() });
    Ok(Ready::new(component.manifest(), Some(code), &said, &limits)?)
}

/// Its code, from the cache or compiled.
pub(super) async fn code(
    component: &Component,
    functions: &Arc<[Signature]>,
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
        scope: Arc<Scope>,
    ) -> Result<Result<tools::Output, types::Failure>, Failure> {
        let Some(function) = self.functions.iter().find(|function| function.tool == tool) else {
            return Err(Failure::new(Kind::Internal, format!("the component has no function for `{tool}`")));
        };
        let given = match serde_json::from_str(arguments) {
            Ok(Value::Object(given)) => given,
            Ok(_) | Err(_) => {
                return Ok(Err(failure("invalid_arguments", "the arguments are not an object".into(), None)));
            }
        };
        let instance = sandbox.instantiate(&self.guest, grants, scope).await?;
        let values = |ty: &_| foreign::arguments(ty, &given);
        let returned = instance.call_typed(function.interface.as_deref(), &function.name, values).await?;
        Ok(match returned {
            Err(reason) => Err(failure("invalid_arguments", reason, None)),
            Ok((ty, value)) => match foreign::result(&ty, value) {
                Outcome::Ok(value) => {
                    let json = value.unwrap_or(Value::Null).to_string();
                    Ok(tools::Output { json, content: Vec::new(), notices: Vec::new() })
                }
                Outcome::Err { message, data } => Err(failure("execution_failed", message, data)),
            },
        })
    }
}

fn failure(kind: &str, message: String, data: Option<Value>) -> types::Failure {
    types::Failure { kind: kind.into(), message, hint: None, data: data.map(|data| data.to_string()) }
}

/// What its types and its authors' docs say.
fn said(functions: &[Function]) -> Said {
    let definitions: Vec<Definition> = functions.iter().map(definition).collect();
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
    }
}
