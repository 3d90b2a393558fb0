//! How lists that bind a plugin are put into words.

use config::{Allowlist, HostList};
use std::path::PathBuf;

pub(crate) fn places(lists: &[Allowlist]) -> String {
    if lists.contains(&Allowlist::NOTHING) {
        return "nowhere".into();
    }
    let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let named: Vec<String> = lists
        .iter()
        .filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) => Some(shown(paths)),
        })
        .collect();
    let named = distinct(named);
    if named.is_empty() {
        "everything that is not protected".into()
    } else {
        format!("below {}", named.join(", and also below "))
    }
}

pub(crate) fn reached(lists: &[HostList]) -> String {
    let named = lists.iter().filter_map(|list| match list {
        HostList::Any => None,
        HostList::Only(entries) => Some(listed(entries, "no host")),
    });
    let named = distinct(named.collect());
    if named.is_empty() { "every host".into() } else { named.join(", of these only ") }
}

pub(crate) fn below(lists: &[Vec<String>]) -> String {
    let named = distinct(lists.iter().map(|prefixes| listed(prefixes, "none")).collect());
    if named.is_empty() { "every path".into() } else { format!("paths below {}", named.join(", and also below ")) }
}

/// Several locks may say the same.
pub(crate) fn distinct(lists: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for list in lists {
        if !all.contains(&list) {
            all.push(list);
        }
    }
    all
}

pub(crate) fn listed(entries: &[impl ToString], none: &str) -> String {
    let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
    if entries.is_empty() { none.into() } else { entries.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::HostPattern;

    #[test]
    fn hosts_are_named_by_every_list_that_binds() {
        let only =
            |names: &[&str]| HostList::Only(names.iter().map(|name| HostPattern::exact(name).unwrap()).collect());
        assert_eq!(reached(&[HostList::Any]), "every host");
        assert_eq!(reached(&[HostList::Any, only(&["a.com", "*.b.com"])]), "a.com, *.b.com");
        assert_eq!(reached(&[only(&["a.com", "b.com"]), only(&["b.com"])]), "a.com, b.com, of these only b.com");
        assert_eq!(reached(&[HostList::NOTHING]), "no host");
    }

    #[test]
    fn paths_are_named_by_every_list_that_binds() {
        let (v1, x) = (vec!["/v1".to_owned(), "/v2".to_owned()], vec!["/v1/x".to_owned()]);
        assert_eq!(below(&[]), "every path");
        assert_eq!(below(&[v1, x]), "paths below /v1, /v2, and also below /v1/x");
    }
}
