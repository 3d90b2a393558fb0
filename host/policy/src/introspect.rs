//! Whether a plugin may look at settings, and at what toolsets declare.

use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use contract::manifest::Manifest;

/// It may look.
#[derive(Clone)]
pub struct IntrospectGrant;

impl Grant for IntrospectGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        match bound.rights.introspect {
            true => Ok(Self),
            false => {
                Err(policy.not_granted(plugin, bound, Capability::Introspect, "introspect = true", "--introspect"))
            }
        }
    }

    fn clauses(&self, _: &Explained<'_>) -> Vec<Clause> {
        vec![Clause {
            subject: "introspect",
            verdict: "allowed",
            detail: "looks at settings, documents, and what the session's toolset declares".into(),
            decided_by: "built in, or its section".into(),
        }]
    }
}
