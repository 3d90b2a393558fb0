//! What a hint can promise: whether a line in the user's settings would change a decision, or somebody else's line prevents that.
//!
//! `layers.rs` notes what narrows; whoever refuses asks here before it names a line to add.

use super::narrow::{
    Rule, allowlist, directories, domains, entries, hosts, is_on, kinds, ranges, rank, shell, size, words,
};
use super::read::Place;
use super::requests::lies_below;
use super::{Allowlist, HostList, HostPattern};
use crate::EVERY;
use base::event_kind::any_covers;
use std::path::Path;
use std::sync::Arc;
use toml::Value;

/// What the user's setting would have to say so that a refusal goes away.
pub enum Needed<'w> {
    /// A switch is on.
    On,
    /// A plugin's shell reaches panes.
    Panes,
    /// A switch is off.
    Off,
    /// A word is no stricter than this one.
    AtMost(&'static str),
    /// A limit is higher than this.
    MoreThan(u64),
    /// A list has this entry, or one that covers it.
    Entry(&'w str),
    /// A list does not have this entry.
    Without(&'w str),
    /// A list has an entry, whichever.
    Any,
}

/// The lines that narrow what the user set, in the order in which they were laid over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remedies(Arc<Vec<Over>>);

/// A line that narrows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Over {
    pub(super) key: String,
    pub(super) rule: Rule,
    pub(super) value: Value,
    pub(super) place: Place,
    pub(super) is_policy: bool,
}

impl Remedies {
    pub(super) fn add(&mut self, over: Over) {
        Arc::make_mut(&mut self.0).push(over);
    }

    /// Returns the hint of a refusal that the setting `key` decides: `line`, or whose setting prevents what that line would do.
    pub fn hint(&self, key: &str, wanted: &Needed<'_>, line: impl Into<String>) -> String {
        let Some(over) = self.0.iter().find(|over| over.key == key && over.stands_against(wanted)) else {
            return line.into();
        };
        let Over { place, .. } = over;
        match over.is_policy {
            true => format!("the operator's policy decides this: `{key}` in {place}"),
            false => {
                format!("`{key}` in {place} decides this, and that project is not trusted: `toolcrib trust` accepts it")
            }
        }
    }

    /// Returns whether somebody else's line prevents what one in the user's settings would do.
    pub fn stands_against(&self, key: &str, wanted: &Needed<'_>) -> bool {
        self.0.iter().any(|over| over.key == key && over.stands_against(wanted))
    }

    /// Returns the hint where `limit`, a setting with its section, was met, which is `most`: what to do instead, and the line that raises it or who decides.
    pub fn raise(&self, limit: &str, most: u64, instead: &str) -> String {
        let (section, key) = limit.split_once('.').unwrap_or(("limits", limit));
        self.either(instead, limit, &Needed::MoreThan(most), &format!("raise `{key}` under [{section}]"))
    }

    /// Returns the hint where something else helps as well as `line`: that, and the line or who decides.
    pub fn either(&self, instead: &str, key: &str, wanted: &Needed<'_>, line: &str) -> String {
        let hint = self.hint(key, wanted, line);
        let between = if hint == line { ", or " } else { "; " };
        format!("{instead}{between}{hint}")
    }
}

impl Over {
    fn stands_against(&self, wanted: &Needed<'_>) -> bool {
        let by = &self.value;
        match wanted {
            Needed::On if self.rule == Rule::Shell => !shell(by).commands,
            Needed::On => matches!(self.rule, Rule::And | Rule::AndByPolicy) && !is_on(by),
            Needed::Panes => self.rule == Rule::Shell && (!shell(by).commands || shell(by).pane == Some(false)),
            Needed::Off => self.rule == Rule::Or && is_on(by),
            Needed::AtMost(most) => {
                matches!(self.rule, Rule::Stricter(order) if rank(order, by) > rank(order, &(*most).into()))
            }
            Needed::MoreThan(now) if self.rule == Rule::Size => size(by).bytes().is_some_and(|most| most <= *now),
            Needed::MoreThan(now) => {
                let most = by.as_integer().and_then(|most| u64::try_from(most).ok());
                self.rule == Rule::Min && most.is_some_and(|most| most <= *now)
            }
            Needed::Entry(entry) => !self.lets_in(entry),
            Needed::Without(entry) => {
                self.rule == Rule::Union && entries(by).iter().any(|other| other.as_str() == Some(entry))
            }
            Needed::Any => self.rule.gives_nothing(by),
        }
    }

    fn lets_in(&self, entry: &str) -> bool {
        let by = &self.value;
        let within = |pattern: Result<HostPattern, String>, list: &[HostPattern]| {
            // A text that is not a valid entry is not decided by this list.
            pattern.map_or(true, |pattern| list.iter().any(|other| pattern.is_within(other)))
        };
        let path = Path::new(entry);
        match self.rule {
            Rule::Never
            | Rule::And
            | Rule::AndByPolicy
            | Rule::Or
            | Rule::Stricter(_)
            | Rule::Places
            | Rule::Min
            | Rule::Max
            | Rule::Size
            | Rule::Union
            | Rule::Shell => true,
            Rule::Intersect | Rule::Methods => {
                entries(by).iter().any(|other| other.as_str().map_or_else(|| other.to_string(), str::to_owned) == entry)
            }
            Rule::Digest => by.as_str().is_none_or(|digest| digest.eq_ignore_ascii_case(entry)),
            Rule::Paths => match allowlist(by) {
                Allowlist::Any => true,
                Allowlist::Only(above) => above.iter().any(|above| path.starts_with(above)),
            },
            Rule::Directories | Rule::Roots => directories(by).iter().any(|above| path.starts_with(above)),
            Rule::Domains => match domains(by) {
                HostList::Any => true,
                HostList::Only(list) => within(HostPattern::domain(entry), &list),
            },
            Rule::Ranges => within(HostPattern::range(entry), &ranges(by)),
            Rule::Hosts => within(HostPattern::exact(entry), &hosts(by)),
            Rule::Prefixes => words(by).iter().any(|above| lies_below(entry, above)),
            Rule::Names => words(by).iter().any(|name| name == EVERY || name == entry),
            Rule::Kinds => any_covers(&kinds(by), entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicySource, Settings, Sources};

    const LINE: &str = "add it";

    /// The hint under a policy of this text.
    fn hint(policy: &str, key: &str, wanted: &Needed<'_>) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.toml");
        std::fs::write(&path, policy).unwrap();
        let policies = vec![PolicySource::named(path)];
        let settings = Settings::load(&Sources { home: "/home/u".into(), policies, ..Sources::default() }).unwrap();
        let hint = settings.config.remedies().hint(key, wanted, LINE);
        hint.replace(&format!("{}/", directory.path().display()), "")
    }

    #[test]
    fn a_line_that_a_policy_stands_against_is_not_told() {
        let decides = |key: &str| format!("the operator's policy decides this: `{key}` in policy.toml:2");
        for (policy, key, wanted) in [
            ("[tools]\nshell_enabled = false", "tools.shell_enabled", Needed::On),
            ("[tools]\nshell_confirm = true", "tools.shell_confirm", Needed::Off),
            ("[tools]\nfiles_confirm = \"outside\"", "tools.files_confirm", Needed::AtMost("runs-later")),
            ("[tools]\nshell_denylist = [\"mkfs\"]", "tools.shell_denylist", Needed::Without("mkfs")),
            ("[limits]\nresult_kib = 1024", "limits.result_kib", Needed::MoreThan(1024)),
            ("[confine]\nmemory = \"64 MiB\"", "confine.memory", Needed::MoreThan(64 << 20)),
            ("[confine]\nmemory = \"64 MiB\"", "confine.memory", Needed::MoreThan(u64::MAX)),
            ("[tools]\nfetch_ports = [80, 443]", "tools.fetch_ports", Needed::Entry("8080")),
            ("[tools]\nfiles_allowed_paths = [\"/srv\"]", "tools.files_allowed_paths", Needed::Entry("/home/u")),
            ("[tools]\nfiles_allowed_paths = []", "tools.files_allowed_paths", Needed::Entry("/home/u")),
            ("[tools]\nfetch_allowed_domains = [\"a.com\"]", "tools.fetch_allowed_domains", Needed::Entry("b.com")),
            ("[tools]\nfetch_private_ranges = []", "tools.fetch_private_ranges", Needed::Entry("10.0.0.1")),
            ("[plugin.x]\nhttp.hosts = [\"a.com\"]", "plugin.x.http.hosts", Needed::Entry("b.com")),
            ("[plugin.x]\nhttp.methods = [\"GET\"]", "plugin.x.http.methods", Needed::Entry("POST")),
            ("[plugin.x]\nfiles.read = [\"/srv\"]", "plugin.x.files.read", Needed::Entry("/etc")),
            ("[plugin.x]\nshell = false", "plugin.x.shell", Needed::On),
            ("[plugin.x]\nshell.pane = false", "plugin.x.shell", Needed::Panes),
        ] {
            assert_eq!(hint(policy, key, &wanted), decides(key), "{policy}");
        }
    }

    #[test]
    fn a_limit_that_a_policy_sets_is_not_to_be_raised() {
        let remedies = Remedies::default();
        assert_eq!(
            remedies.raise("limits.call_ms", 5, "ask for less"),
            "ask for less, or raise `call_ms` under [limits]"
        );
        let mut remedies = remedies;
        let place = Place { path: "p.toml".into(), line: 3, column: 1 };
        let (key, value) = ("limits.call_ms".to_owned(), Value::Integer(5));
        remedies.add(Over { key, rule: Rule::Min, value, place, is_policy: true });
        let decides = "ask for less; the operator's policy decides this: `limits.call_ms` in p.toml:3";
        assert_eq!(remedies.raise("limits.call_ms", 5, "ask for less"), decides);
    }

    #[test]
    fn a_line_that_helps_is_told_also_where_a_policy_speaks_of_the_setting() {
        for (policy, key, wanted) in [
            ("", "tools.shell_enabled", Needed::On),
            ("[tools]\nshell_enabled = true", "tools.shell_enabled", Needed::On),
            ("[limits]\nresult_kib = 4096", "limits.result_kib", Needed::MoreThan(1024)),
            ("[confine]\nmemory = \"1 GiB\"", "confine.memory", Needed::MoreThan(64 << 20)),
            ("[tools]\nfetch_ports = [80, 8080]", "tools.fetch_ports", Needed::Entry("8080")),
            ("[tools]\nfiles_allowed_paths = [\"/home\"]", "tools.files_allowed_paths", Needed::Entry("/home/u")),
            ("[tools]\nfetch_allowed_domains = [\"com\"]", "tools.fetch_allowed_domains", Needed::Entry("b.com")),
            (
                "[tools]\nfetch_private_ranges = [\"10.0.0.0/8\"]",
                "tools.fetch_private_ranges",
                Needed::Entry("10.0.0.1"),
            ),
            ("[plugin.x]\nhttp.hosts = [\"*.a.com\"]", "plugin.x.http.hosts", Needed::Entry("b.a.com")),
        ] {
            assert_eq!(hint(policy, key, &wanted), LINE, "{policy}");
        }
    }
}
