//! Who searches the web: of the plugins that offer `web_search` the one that settings name, and what those of this binary may reach.
//!
//! Requests themselves are `http.rs`; how each provider asks and what it reads is in its plugin.

use super::Policy;
use super::admission::{Barred, Decider};
use super::http::{HttpGrant, exactly};
use super::rights::HttpRights;
use crate::config::{Config, HostList, Needed};
use crate::egress::Target;
use crate::envelope::Failure;
use crate::tools::manifest::Manifest;
use url::Url;

/// The tool that has several providers.
const TOOL: &str = "web_search";
/// The setting that chooses one.
const KEY: &str = "tools.search_provider";
const BRAVE: &str = "https://api.search.brave.com/res/v1/web/";
/// The header in which Brave is given the key.
const TOKEN: &str = "x-subscription-token";

/// Whether a plugin is a provider, of this binary or not.
pub(super) fn searches(plugin: &Manifest) -> bool {
    plugin.tools.iter().any(|tool| tool == TOOL)
}

/// A provider of this binary. Each reaches the server that its settings name, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The page of `tools.search_endpoint`.
    Page,
    /// The API of Brave, with a key.
    Brave,
    /// The SearXNG server of the section's `http.base`.
    Searxng,
}

impl Search {
    const ALL: [(&str, Self); 3] =
        [("web_search", Self::Page), ("web_search_brave", Self::Brave), ("web_search_searxng", Self::Searxng)];

    pub(super) fn of(plugin: &Manifest) -> Option<Self> {
        let known = Self::ALL.iter().find(|(name, _)| *name == plugin.name());
        known.filter(|_| plugin.id.is_builtin()).map(|(_, search)| *search)
    }

    /// Leaves a provider the server that it asks: `http.base` of its section, else its own.
    ///
    /// # Errors
    ///
    /// `denied` where no server is named.
    pub(super) fn confine(self, name: &str, rights: &mut HttpRights, config: &Config) -> Result<(), Failure> {
        let own = || match self {
            Self::Page => Ok(config.tools.search_endpoint.clone()),
            Self::Brave => Ok(BRAVE.to_owned()),
            Self::Searxng => Err(Failure::denied(format!("`{name}` needs the URL of a SearXNG server"))
                .hint(format!("write `http.base = \"https://searx.example.org/\"` under [plugin.{name}]"))),
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
    pub(super) fn check_key(self, name: &str, grant: &HttpGrant) -> Result<(), Failure> {
        let header = match self {
            Self::Page | Self::Searxng => return Ok(()),
            Self::Brave => TOKEN,
        };
        let base = grant.base().map_or(BRAVE, Url::as_str);
        let target = Target::parse(base, None)?;
        let host = target.host();
        let Some(key) = grant.own_header(header) else {
            return Err(Failure::denied(format!("`{name}` needs a key of Brave")).hint(format!(
                "`toolcrib secret set BRAVE --host {host}` keeps it; then write \
                 `http.headers = {{ {header} = \"${{secret:BRAVE}}\" }}` under [plugin.{name}]"
            )));
        };
        key.check_secrets(host).map_err(|refusal| {
            let message = format!("`{name}` needs a key of Brave, and {}", refusal.message);
            Failure { message, ..refusal }
        })
    }

    /// Which setting names the only server that a provider reaches.
    pub(super) fn server_hint(self, name: &str) -> String {
        let setting = match self {
            Self::Page => "`search_endpoint` under [tools]".into(),
            Self::Brave | Self::Searxng => format!("`http.base` under [plugin.{name}]"),
        };
        format!("{setting} names the only server that it reaches")
    }
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
