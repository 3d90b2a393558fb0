//! Environment variables for programs in a cell: where its caches, its network and its keys are.

use super::{GIT_RELAY, Profile, SSH_AGENT};
use config::{CellNetwork, Keys, PROXY_PORT};
use std::ffi::{OsStr, OsString};

/// The variables in which programs look for a proxy, and the hosts for which they use none.
const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
const DIRECT: &str = "localhost,127.0.0.1,::1,cell";
/// Only the person's git cleans up: in a cell each commit would leave a process behind for that.
const NO_CLEANING: [(&str, &str); 2] = [("maintenance.auto", "false"), ("gc.auto", "0")];

impl Profile {
    /// Adds them.
    pub(crate) fn add_variables(&self, environment: &mut Vec<(OsString, OsString)>) {
        let mut add = |name: &str, value: &OsStr| {
            environment.retain(|(other, _)| *other != *name);
            environment.push((name.into(), value.into()));
        };
        for cache in &self.caches {
            if let Some(name) = &cache.variable {
                add(name, cache.place.as_os_str());
            }
        }
        if self.keys.contains(&Keys::Ssh) {
            add("SSH_AUTH_SOCK", SSH_AGENT.as_ref());
        }
        let git = self.git_settings();
        add("GIT_CONFIG_COUNT", git.len().to_string().as_ref());
        for (number, (key, value)) in git.into_iter().enumerate() {
            add(&format!("GIT_CONFIG_KEY_{number}"), key.as_ref());
            add(&format!("GIT_CONFIG_VALUE_{number}"), value.as_ref());
        }
        match self.network {
            CellNetwork::None | CellNetwork::Full => return,
            CellNetwork::Egress => {}
        }
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let variables = VARIABLES.map(|name| (name, proxy.as_str())).into_iter().chain([("NO_PROXY", DIRECT)]);
        // Some programs look for one spelling, some for the other.
        for (name, value) in variables {
            add(&name.to_lowercase(), value.as_ref());
            add(name, value.as_ref());
        }
    }

    /// Settings of git in the cell, which come after those of files.
    fn git_settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = NO_CLEANING.map(|(key, value)| (key, value.to_owned())).to_vec();
        if self.keys.contains(&Keys::Gpg) {
            settings.push(("gpg.program", GIT_RELAY.into()));
        }
        if self.keys.contains(&Keys::Passwords) {
            // An empty one takes away those before it, which find nothing here.
            settings.push(("credential.helper", String::new()));
            settings.push(("credential.helper", format!("{GIT_RELAY} credential")));
        }
        settings
    }
}
