//! The variables of the user's environment.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The variables of the user's environment, as they were when the host was made.
#[derive(Clone, Default)]
pub struct Environment(Arc<[(OsString, OsString)]>);

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl Environment {
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    pub fn iter(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.0.iter()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(name, _)| name.to_str())
    }
}
