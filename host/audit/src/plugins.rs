//! What the trail says of plugins: which were admitted and refused, and how often a refused one was called.

use super::{Audit, Event, Refusals};
use config::Place;
use contract::manifest::{Manifest, PluginId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Calls of a refused tool get at most one line in this time, with their number: a model that repeats them does not fill the disk.
const REFUSAL_PAUSE: Duration = Duration::from_secs(60);
/// Refused tools that are remembered for that.
const REFUSALS: usize = 1024;
/// What is recorded of a plugin that no lock refuses.
const ADMITTED: &str = "admitted";

/// Why a lock refuses a plugin, and where that stands.
pub struct ByLock<'b> {
    pub code: &'static str,
    pub place: &'b Place,
}

impl Audit {
    /// Records that a tool was called whose plugin is refused: at once, then at most once a minute.
    pub fn refused_call(&self, tool: &str, code: &str) {
        let mut refusals = self.refusals.lock();
        let calls = match refusals.get_mut(tool) {
            Some(known) if known.told.elapsed() < REFUSAL_PAUSE => {
                known.untold += 1;
                return;
            }
            Some(known) => {
                known.told = Instant::now();
                std::mem::take(&mut known.untold) + 1
            }
            None => {
                if refusals.len() < REFUSALS {
                    refusals
                        .insert(tool.to_owned(), Refusals { code: code.to_owned(), told: Instant::now(), untold: 0 });
                }
                1
            }
        };
        drop(refusals);
        self.record(Event::RefusedCalls { tool, code, calls });
    }

    /// Records that a plugin was loaded under a lock, unless that was told last.
    pub fn admitted(&self, plugin: &Manifest) {
        if self.is_news(&plugin.id, ADMITTED) {
            let (id, sha256) = (&plugin.id, plugin.sha256());
            self.record(Event::Admitted { plugin: plugin.name(), plugin_sha256: sha256, origin: id.origin() });
        }
    }

    /// Records that a lock refuses a plugin, unless that was told last.
    pub fn refused(&self, plugin: &Manifest, by: &ByLock<'_>) {
        if self.is_news(&plugin.id, by.code) {
            let (plugin, plugin_sha256, origin) = (plugin.name(), plugin.sha256(), plugin.id.origin());
            let (code, place) = (by.code, &*by.place.to_string());
            self.record(Event::Refused { plugin, plugin_sha256, origin, code, place });
        }
    }

    /// Records which plugins locks refuse when they are read, unless that was told last: built-in ones in one line for each lock, others in a
    /// line each.
    pub fn refused_at_start(&self, refused: &[(&Manifest, ByLock<'_>)]) {
        let mut builtins: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
        for (plugin, by) in refused {
            if !plugin.id.is_builtin() {
                self.refused(plugin, by);
            } else if self.is_news(&plugin.id, by.code) {
                builtins.entry((by.place.to_string(), by.code)).or_default().push(plugin.name());
            }
        }
        for ((place, code), plugins) in builtins {
            let what = format!("{} built-in plugins", plugins.len());
            self.record(Event::RefusedBuiltins { what: &what, code, place: &place, plugins: &plugins });
        }
    }

    /// Whether something else was told of a plugin last. Asked at each call of one.
    fn is_news(&self, plugin: &PluginId, verdict: &'static str) -> bool {
        let mut told = self.told.lock();
        told.get(plugin) != Some(&verdict) && told.insert(plugin.clone(), verdict) != Some(verdict)
    }
}
