//! From settings to grants: what each plugin may do, and the words of every refusal.
//!
//! Settings are read in `config/`. A grant is made only here, and a capability acts only through its grant.

pub mod approval;
pub mod command;
pub mod explain;
pub mod files;
pub mod http;
pub mod shell;
pub(crate) mod typing;

use crate::config::{Allowlist, Config, HttpRights, PluginRights, Settings};
use crate::dirs::Dirs;
use crate::envelope::Failure;
use crate::registry::Plugin;
use approval::InAdvance;
use command::Denylist;
use files::{FilesGrant, Protected};
use http::HttpGrant;
use shell::ShellGrant;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of this host, ready to decide.
pub struct Policy {
    config: Config,
    denylist: Arc<Denylist>,
    protected: Arc<Protected>,
}

/// What one plugin may do. A capability that is refused knows why.
pub struct Grants {
    shell: Result<ShellGrant, Failure>,
    files: Result<FilesGrant, Failure>,
    http: Result<HttpGrant, Failure>,
}

/// Whether the grant for `shell` covers a capability: typing into a pane is running a command.
pub(crate) fn is_shell(capability: &str) -> bool {
    matches!(capability, "shell" | "panes" | "sessions")
}

impl Grants {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> Self {
        let refused = || Failure::denied("no capability can be used here");
        Self { shell: Err(refused()), files: Err(refused()), http: Err(refused()) }
    }

    /// The grant for `shell`.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn shell(&self) -> Result<&ShellGrant, Failure> {
        self.shell.as_ref().map_err(Failure::clone)
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

    /// The grant for `files`.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn files(&self) -> Result<&FilesGrant, Failure> {
        self.files.as_ref().map_err(Failure::clone)
    }

    /// The grant for `http`.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn http(&self) -> Result<&HttpGrant, Failure> {
        self.http.as_ref().map_err(Failure::clone)
    }
}

impl Policy {
    /// Prepares what the settings say; `policies` are the files that hold policy, which no plugin may write.
    ///
    /// # Errors
    ///
    /// When a pattern of the denylist cannot be enforced.
    pub fn new(settings: &Settings, dirs: &Dirs, policies: &[PathBuf]) -> Result<Self, Failure> {
        let config = settings.config.clone();
        let denylist = Arc::new(Denylist::parse(&config.tools.shell_denylist)?);
        Ok(Self { config, denylist, protected: Arc::new(Protected::new(dirs, policies)) })
    }

    /// The settings that decide.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the approver of `--yes`: it says yes to everything, or no where the settings forbid that.
    #[must_use]
    pub fn always_yes(&self) -> InAdvance {
        InAdvance { is_allowed: self.config.approval.allow_yes }
    }

    /// Returns what `plugin` may do. For what it does not import it has no grant: it cannot ask for it.
    #[must_use]
    pub fn grants_for(&self, plugin: &Plugin) -> Grants {
        let rights = self.config.plugin_rights(plugin.name(), plugin.sha256(), plugin.is_builtin());
        let mut grants = Grants::none();
        for capability in plugin.capabilities() {
            match capability {
                capability if is_shell(capability) => grants.shell = self.shell_grant(plugin, &rights),
                "files" => grants.files = self.files_grant(plugin, &rights),
                "http" => grants.http = self.http_grant(plugin, rights.http.clone()),
                _ => {}
            }
        }
        grants
    }

    fn shell_grant(&self, plugin: &Plugin, rights: &PluginRights) -> Result<ShellGrant, Failure> {
        if !self.config.tools.shell_enabled {
            return Err(switched_off("shell", "shell_enabled"));
        }
        if !rights.shell {
            return Err(self.not_granted(plugin, "shell", "shell = true"));
        }
        Ok(ShellGrant {
            plugin: plugin.label(),
            sha256: plugin.sha256().into(),
            confirm: self.config.tools.shell_confirm,
            approval_timeout: Duration::from_millis(self.config.approval.timeout_ms),
            denylist: self.denylist.clone(),
            environment: self.config.tools.shell_env.clone(),
            pane: if rights.pane { Ok(()) } else { Err(no_panes(plugin.name())) },
        })
    }

    fn files_grant(&self, plugin: &Plugin, rights: &PluginRights) -> Result<FilesGrant, Failure> {
        if !self.config.tools.files_enabled {
            return Err(switched_off("files", "files_enabled"));
        }
        let is_nothing = |lists: &[Allowlist]| lists.contains(&Allowlist::NOTHING);
        if is_nothing(&rights.read) && is_nothing(&rights.write) {
            return Err(self.not_granted(plugin, "files", "files.read = [\"/a/directory\"]"));
        }
        Ok(FilesGrant::new(plugin, rights, &self.config, self.protected.clone()))
    }

    fn http_grant(&self, plugin: &Plugin, rights: Option<HttpRights>) -> Result<HttpGrant, Failure> {
        let tools = &self.config.tools;
        let key = http::switch(plugin);
        let is_on = if key == "search_enabled" { tools.search_enabled } else { tools.fetch_enabled };
        if !is_on {
            return Err(switched_off("http", key));
        }
        match rights {
            Some(rights) => Ok(HttpGrant::new(plugin, rights, &self.config)),
            None => Err(self.not_granted(plugin, "http", "http.hosts = [\"api.example.com\"]")),
        }
    }

    /// Says why a plugin has no right to a capability, and what would give it.
    fn not_granted(&self, plugin: &Plugin, capability: &str, line: &str) -> Failure {
        let name = plugin.name();
        let allow = format!("allow it: `toolcrib plugin allow {}`", plugin.origin());
        let digest = self.config.plugin.get(name).and_then(|section| section.sha256.as_deref());
        match digest {
            _ if plugin.is_builtin() => {
                Failure::denied(format!("`{name}` needs `{capability}`, which its section takes away"))
                    .hint(format!("remove the key from [plugin.{name}], or write `{line}`"))
            }
            Some(digest) if !digest.eq_ignore_ascii_case(plugin.sha256()) => {
                Failure::denied(format!("`{name}` needs `{capability}`, but these are not the bytes that were allowed"))
                    .hint(format!("look at it with `toolcrib plugin inspect`, then {allow}"))
            }
            Some(_) => Failure::denied(format!("`{name}` needs `{capability}`, which the policy does not grant"))
                .hint(format!("add `{line}` under [plugin.{name}]")),
            None => {
                Failure::denied(format!("`{name}` needs `{capability}`, which the policy does not grant")).hint(allow)
            }
        }
    }
}

/// What a plugin is told that may run commands but not use panes.
fn no_panes(name: &str) -> Failure {
    let message = format!("`{name}` may run commands in processes of their own, but not use panes");
    Failure::denied(message).hint(format!("write `shell.pane = true` in place of `shell` under [plugin.{name}]"))
}

fn switched_off(capability: &str, key: &str) -> Failure {
    Failure::denied(format!("`{capability}` is switched off by `tools.{key} = false`")).hint(format!(
        "set `{key} = true` under [tools]; `toolcrib config show --origin` says where it was switched off"
    ))
}
