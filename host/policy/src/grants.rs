//! What one plugin may do: a grant for each capability that needs one, or why there is none.
//!
//! The table of `lib.rs` names them. Each is made and explained in the file of its capability; nobody else makes one.

use super::{Bound, Grants, Policy};
use crate::explain::{Clause, Explained};
use crate::shell::ShellGrant;
use base::envelope::Failure;
use config::Template;
use contract::manifest::Manifest;
use std::collections::BTreeMap;

/// What lets a plugin use one capability.
pub(super) trait Grant: Sized {
    /// Returns what the plugin is granted, once no switch is off.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure>;

    /// Returns what `policy explain` says of it.
    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause>;
}

/// A grant is a field, and a function of the same name that gives it or its refusal. It decides on the capabilities before it.
macro_rules! grants {
    ($($($capability:ident)|+ => $name:ident: $grant:ty,)+) => {
        /// What one plugin may do. A capability that is refused knows why.
        pub struct Grants {
            $($name: Result<$grant, Failure>,)+
            config: BTreeMap<String, Template>,
        }

        impl Grants {
            /// Nothing, for one and the same reason.
            fn refused(why: &Failure) -> Self {
                Self { $($name: Err(why.clone()),)+ config: BTreeMap::new() }
            }

            $(
                #[doc = concat!("The grant for `", stringify!($name), "`.")]
                ///
                /// # Errors
                ///
                /// `denied`, with the line to add.
                pub fn $name(&self) -> Result<&$grant, Failure> {
                    self.$name.as_ref().map_err(Failure::clone)
                }
            )+

            /// Adds what a plugin is granted of a capability, unless a switch is off.
            fn add(
                &mut self,
                capability: Capability,
                is_on: Result<(), Failure>,
                policy: &Policy,
                plugin: &Manifest,
                bound: &Bound,
            ) {
                match capability {
                    $($(Capability::$capability)|+ => {
                        self.$name = is_on.and_then(|()| grants::Grant::of(policy, plugin, bound));
                    })+
                    // Caps bind it, no grant.
                    Capability::Events => {}
                }
            }

            /// Why a capability cannot be used at all. Typing into a pane is running a command, so the grant for `shell` decides on panes too.
            #[must_use]
            pub fn refusal(&self, capability: Capability) -> Option<Failure> {
                match capability {
                    $($(Capability::$capability)|+ => self.$name().err(),)+
                    Capability::Events => None,
                }
            }

            /// What is said of a capability, or why it cannot be used.
            fn clauses(
                &self,
                capability: Capability,
                explained: &explain::Explained<'_>,
            ) -> Result<Vec<explain::Clause>, Failure> {
                match capability {
                    $($(Capability::$capability)|+ => self.$name().map(|grant| grants::Grant::clauses(grant, explained)),)+
                    Capability::Events => Ok(explained.progress()),
                }
            }
        }
    };
}

pub(super) use grants;

impl Grants {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> Self {
        Self::refused(&Failure::denied("no capability can be used here"))
    }

    /// What its section says for it, by `config`.
    pub fn config(&self) -> &BTreeMap<String, Template> {
        &self.config
    }

    /// The grant for `shell`, if it reaches panes.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn panes(&self) -> Result<&ShellGrant, Failure> {
        let grant = self.shell()?;
        grant.pane.as_ref().map(|()| grant).map_err(Failure::clone)
    }
}
