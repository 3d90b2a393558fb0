//! Sections of settings for plugins that do not exist here: the name was mistyped, or the plugin was removed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use toolcrib::config::Settings;
use toolcrib::tools::registry::Registry;

/// A section without its plugin.
pub(super) struct Stray {
    name: String,
    /// Where one of its settings is.
    origin: String,
    /// The plugin that was meant, perhaps.
    meant: Option<String>,
}

impl Stray {
    /// Looks like a mistake rather than like a plugin that is elsewhere.
    pub(super) fn is_mistyped(&self) -> bool {
        self.meant.is_some()
    }
}

impl fmt::Display for Stray {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, origin, meant } = self;
        write!(formatter, "{origin}: `[plugin.{name}]` has no effect: there is no plugin of that name")?;
        meant.iter().try_for_each(|meant| write!(formatter, ", did you mean `[plugin.{meant}]`?"))
    }
}

/// Returns the sections whose plugin is not here, by name.
pub(super) fn strays(settings: &Settings, tools: &Registry) -> Vec<Stray> {
    // A plugin that was refused is here, and its own line says what is wrong with it.
    let refused = tools.refused().iter().filter_map(|refused| Path::new(&refused.origin).file_stem()?.to_str());
    let here: BTreeSet<&str> =
        tools.plugins().chain(tools.barred()).map(|plugin| plugin.name()).chain(refused).collect();
    let keys = settings.origins.keys().filter_map(|key| Some((key, key.strip_prefix("plugin.")?.split('.').next()?)));
    let mut named: Vec<(&str, &str)> =
        keys.map(|(key, name)| (name, key)).filter(|(name, _)| !here.contains(name)).collect();
    named.dedup_by_key(|(name, _)| *name);
    named
        .into_iter()
        .map(|(name, key)| Stray {
            name: name.to_owned(),
            origin: settings.origins.get(key).map(ToString::to_string).unwrap_or_default(),
            meant: meant(name, tools),
        })
        .collect()
}

/// The plugin that has almost this name, or a tool of almost this name.
fn meant(name: &str, tools: &Registry) -> Option<String> {
    let names = tools.plugins().chain(tools.barred()).flat_map(|plugin| {
        let tools = plugin.tools.iter().map(String::as_str);
        tools.chain([plugin.name()]).map(move |like| (like, plugin.name()))
    });
    let folded = name.to_lowercase().replace('_', "-");
    let rated =
        names.map(|(like, plugin)| (strsim::jaro_winkler(&folded, &like.to_lowercase().replace('_', "-")), plugin));
    let nearest = rated.filter(|(likeness, _)| *likeness > 0.9).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map(|(_, plugin)| plugin.to_owned())
}
