//! What the functions of a component are called as tools. The order of exports does not change a name.

use base::text::names::{folded, is_name};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Characters of a tool's name.
const LONGEST: usize = 64;
/// Hex digits of the digest at the end of a name that is cut, or that others would have too.
const DIGITS: usize = 8;

/// Names tools. Each function is given as the full name of its interface and its own name; nothing stands for one that
/// gets no name.
pub(super) fn tools(functions: &[(Option<&str>, &str)]) -> Vec<Option<String>> {
    let candidates: Vec<Vec<String>> =
        functions.iter().map(|(interface, function)| candidates(*interface, function)).collect();
    let mut chosen = vec![0; functions.len()];
    // Each turn moves at least one function to its next candidate, and no function has more than four.
    loop {
        let mut same: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, candidates) in candidates.iter().enumerate() {
            same.entry(folded(&candidates[chosen[index]])).or_default().push(index);
        }
        let mut is_settled = true;
        for alike in same.into_values().filter(|alike| alike.len() > 1) {
            // The digest is the last resort: functions with another candidate in words move first.
            let more = |index: &usize, spare: usize| chosen[*index] + spare < candidates[*index].len();
            let in_words: Vec<usize> = alike.iter().copied().filter(|index| more(index, 2)).collect();
            let moving =
                if in_words.is_empty() { alike.into_iter().filter(|index| more(index, 1)).collect() } else { in_words };
            is_settled &= moving.is_empty();
            moving.into_iter().for_each(|index| chosen[index] += 1);
        }
        if is_settled {
            break;
        }
    }
    // Names that are still the same have equal digests.
    let mut taken = BTreeSet::new();
    let names = candidates.into_iter().zip(chosen).map(|(mut candidates, index)| candidates.swap_remove(index));
    names.map(|name| (is_name(&name) && taken.insert(folded(&name))).then_some(name)).collect()
}

/// From the shortest name to the one with a digest.
fn candidates(interface: Option<&str>, function: &str) -> Vec<String> {
    let full = format!("{}/{function}", interface.unwrap_or_default());
    let digest = &hex::encode(Sha256::digest(&full))[..DIGITS];
    let names = match interface.map(parts) {
        None => vec![function.to_owned()],
        Some((None, interface)) => vec![format!("{interface}-{function}")],
        Some((Some((namespace, package)), interface)) => vec![
            format!("{interface}-{function}"),
            format!("{package}-{interface}-{function}"),
            format!("{namespace}-{package}-{interface}-{function}"),
        ],
    };
    let with_digest = names.last().map(|name| ending_in(name, digest));
    let cut = names.into_iter().map(|name| if name.len() > LONGEST { ending_in(&name, digest) } else { name });
    cut.chain(with_digest).collect()
}

/// `namespace:package/interface@version`, or a name alone.
pub(super) fn parts(interface: &str) -> (Option<(&str, &str)>, &str) {
    let unversioned = interface.split_once('@').map_or(interface, |(name, _)| name);
    match unversioned.split_once('/') {
        Some((package, interface)) => (package.split_once(':'), interface),
        None => (None, unversioned),
    }
}

fn ending_in(name: &str, digest: &str) -> String {
    let cut: String = name.chars().take(LONGEST - 1 - DIGITS).collect();
    format!("{}-{digest}", cut.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(functions: &[(Option<&str>, &str)]) -> Vec<String> {
        tools(functions).into_iter().map(|name| name.expect("a name")).collect()
    }

    #[test]
    fn the_shortest_name_that_nobody_else_has_is_taken() {
        let functions = [
            (None, "read"),
            (Some("a:files/read@1.0.0"), "all"),
            (Some("a:files/store"), "get"),
            (Some("a:notes/store@0.1.0"), "get"),
            (Some("b:notes/store@0.1.0"), "get"),
            (Some("plain"), "get"),
        ];
        assert_eq!(
            names(&functions),
            ["read", "read-all", "files-store-get", "a-notes-store-get", "b-notes-store-get", "plain-get"]
        );
        let mut reversed = functions;
        reversed.reverse();
        let mut names_of_reversed = names(&reversed);
        names_of_reversed.reverse();
        assert_eq!(names_of_reversed, names(&functions));
    }

    #[test]
    fn an_own_function_keeps_its_name_before_one_of_an_interface() {
        assert_eq!(names(&[(None, "a-b"), (Some("x:y/a"), "b")]), ["a-b", "y-a-b"]);
    }

    #[test]
    fn two_versions_of_an_interface_differ_by_a_digest() {
        let names = names(&[(Some("a:b/c@1.0.0"), "f"), (Some("a:b/c@2.0.0"), "f")]);
        assert!(names.iter().all(|name| name.starts_with("a-b-c-f-") && name.len() == 16), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let names = names(&[(None, "get-l"), (None, "get-I"), (None, "get-i")]);
        let folded: std::collections::BTreeSet<String> = names.iter().map(|name| folded(name)).collect();
        assert_eq!(folded.len(), 3, "{names:?}");
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_apart() {
        let long = "a".repeat(100);
        let longer = "a".repeat(101);
        let names = names(&[(None, &long), (None, &longer), (Some("x:y/z"), &long)]);
        assert!(names.iter().all(|name| name.len() == 64 && is_name(name)), "{names:?}");
        assert_eq!(
            names,
            tools(&[(None, &long), (None, &longer), (Some("x:y/z"), &long)]).into_iter().flatten().collect::<Vec<_>>()
        );
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn what_cannot_be_a_name_gets_none() {
        assert_eq!(tools(&[(None, "Größe"), (None, "")]), [None, None]);
    }
}
