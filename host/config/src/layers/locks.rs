//! What locks leave of a plugin's settings: what was vetted sets, all else narrows.

use super::super::narrow::Rule;
use super::super::read::{Leaf, Origin, get, put};
use super::super::vetting::Ceiling;
use super::super::{Config, PluginSection};
use super::{Draft, Origins};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Table;

impl Config {
    /// The settings as locks leave them to one plugin, and where what they changed comes from. With `vetted`, that is what it gets, and its
    /// section only narrows; `ceilings` narrow further.
    pub fn under_locks(
        &self,
        name: &str,
        sha256: &str,
        vetted: Option<&Ceiling>,
        ceilings: &[&Ceiling],
    ) -> (Self, Origins) {
        let section = self.plugin.get(name).cloned().unwrap_or_default();
        let own = Table::try_from(&section).expect("a section came from TOML");
        let values = Table::from_iter([("plugin".into(), Table::from_iter([(name.into(), own.into())]).into())]);
        let is_about_it = section.sha256.as_ref().is_none_or(|digest| digest.eq_ignore_ascii_case(sha256));
        let (origins, notices) = (Origins::default(), Vec::new());
        let mut draft = Draft { values, origins, bounds: self.bounds.clone(), rules: Vec::new(), notices };
        if let Some(vetted) = vetted {
            let before = std::mem::take(&mut draft.values);
            put(&mut draft.values, &format!("plugin.{name}.sha256"), sha256.into());
            if let Some(enabled) = section.enabled {
                put(&mut draft.values, &format!("plugin.{name}.enabled"), enabled.into());
            }
            // What a section says of commands may be a policy's word, and that counts for any bytes; to narrow is never too much.
            let counts = |rule| is_about_it || rule == Rule::Shell;
            let own = Ceiling::keys(name).filter(|(_, rule)| counts(*rule)).filter_map(|(key, rule)| {
                let value = get(&before, &key)?.clone();
                Some(Leaf { key, rule, value, origin: Origin::Set })
            });
            let narrowing: Vec<Leaf> = own.collect();
            let leaves: Vec<Leaf> = vetted.leaves(name).collect();
            draft.replace(leaves);
            draft.bounds.lists.extend(self.bounds.lists.clone());
            narrowing.into_iter().for_each(|leaf| draft.narrow_to(leaf));
            // Where a section narrowed is known to the settings themselves.
            draft.origins.0.retain(|_, origin| *origin != Origin::Set);
        }
        for ceiling in ceilings {
            ceiling.leaves(name).for_each(|leaf| {
                draft.note(&leaf, true);
                draft.narrow_to(leaf);
            });
        }
        // Which headers and values hold secrets is the user's to say, whoever says where requests go.
        let headers = section.http.headers.filter(|_| is_about_it);
        let config = section.config.filter(|_| is_about_it);
        let section = get(&draft.values, &format!("plugin.{name}")).cloned();
        let section = section.map(|section| PluginSection::deserialize(section).expect("every value was checked"));
        let mut section = section.unwrap_or_default();
        section.http.headers = headers;
        section.config = config;
        let plugin = BTreeMap::from_iter([(name.to_owned(), section)]);
        (Self { plugin, bounds: draft.bounds, ..self.clone() }, draft.origins)
    }
}
