//! Who searches the web: of the plugins that offer `web_search` the one that settings name, and what those of this binary may reach.
//!
//! Requests themselves are `http.rs`; how each provider asks and what it reads is in its plugin.

use super::Policy;
use super::admission::{Barred, Decider};
use super::http::{HttpGrant, exactly};
use base::builtin::{SearchBase, SearchServer};
use base::envelope::Failure;
use base::target::Target;
use config::{Config, HostList, HttpRights, Needed};
use contract::manifest::Manifest;
use url::Url;

/// The tool that has several providers.
const TOOL: &str = "web_search";
/// The setting that chooses one.
const KEY: &str = "tools.search_provider";

/// Whether a plugin is a provider, of this binary or not.
pub(super) fn searches(plugin: &Manifest) -> bool {
    plugin.tools.iter().any(|tool| tool == TOOL)
}

/// Leaves a provider of this program the server that it asks: `http.base` of its section, else its own.
///
/// # Errors
///
/// `denied` where no server is named.
pub(super) fn confine(
    server: SearchServer,
    plugin: &str,
    rights: &mut HttpRights,
    config: &Config,
) -> Result<(), Failure> {
    let own = || match server.base {
        SearchBase::Endpoint => Ok(config.tools.search_endpoint.clone()),
        SearchBase::Fixed(base) => Ok(base.to_owned()),
        SearchBase::Named { example } => {
            Err(Failure::denied(format!("`{plugin}` needs the URL of a {} server", server.name))
                .hint(format!("write `http.base = \"{example}\"` under [plugin.{plugin}]")))
        }
    };
    let base = rights.base.take().map_or_else(own, Ok)?;
    let url = Url::parse(&base).expect("a base was checked when it was read");
    rights.hosts.push(HostList::Only(exactly(&url).into_iter().collect()));
    rights.paths.push(vec![url.path().trim_end_matches('/').to_owned()]);
    rights.base = Some(base);
    Ok(())
}

/// Checks that a provider that needs a key has one, for the server that it asks.
///
/// # Errors
///
/// `denied`, with the lines to write.
pub(super) fn check_key(server: SearchServer, plugin: &str, grant: &HttpGrant) -> Result<(), Failure> {
    let SearchServer { name, key_header: Some(header), .. } = server else { return Ok(()) };
    let base = grant.base().expect("it was left one server");
    let target = Target::parse(base.as_str(), None)?;
    let host = target.host();
    let Some(key) = grant.own_header(header) else {
        let secret = name.to_ascii_uppercase();
        return Err(Failure::denied(format!("`{plugin}` needs a key of {name}")).hint(format!(
            "`toolcrib secret set {secret} --host {host}` keeps it; then write \
             `http.headers = {{ {header} = \"${{secret:{secret}}}\" }}` under [plugin.{plugin}]"
        )));
    };
    key.check_secrets(host).map_err(|refusal| {
        let message = format!("`{plugin}` needs a key of {name}, and {}", refusal.message);
        Failure { message, ..refusal }
    })
}

/// Which setting names the only server that a provider reaches.
pub(super) fn server_hint(server: SearchServer, plugin: &str) -> String {
    let setting = match server.base {
        SearchBase::Endpoint => "`search_endpoint` under [tools]".into(),
        SearchBase::Fixed(_) | SearchBase::Named { .. } => format!("`http.base` under [plugin.{plugin}]"),
    };
    format!("{setting} names the only server that it reaches")
}

impl Policy {
    /// Lets one provider be there, so that there is one `web_search`.
    pub(super) fn check_provider(&self, plugin: &Manifest) -> Result<(), Barred> {
        let chosen = &self.config.tools.search_provider;
        if !searches(plugin) || plugin.name() == chosen {
            return Ok(());
        }
        let name = plugin.name();
        let line = format!(
            "set `search_provider = \"{name}\"` under [tools] to search with it; `toolcrib plugin list` says whether `{chosen}` is there"
        );
        let failure = Failure::denied(format!("plugin `{name}` does not search: `{KEY}` is `{chosen}`"))
            .hint(self.config.remedies().hint(KEY, &Needed::Any, line));
        Err(Barred { code: None, decider: Box::new(Decider { key: KEY.into(), place: None }), failure })
    }
}
