//! What kinds of tools there are, in a phrase each: what is said of tools that a list does not have.

use super::{Searched, words};
use base::text::sanitize;
use std::collections::{BTreeMap, HashMap};

/// Words of names that say what is done, but not with what.
const VERBS: [&str; 20] = [
    "add", "and", "by", "create", "delete", "find", "for", "from", "get", "in", "list", "of", "or", "read", "remove",
    "run", "search", "set", "to", "update",
];
/// What is kept for how many more there are.
const MORE_CHARS: usize = 16;

/// Each family with what its tools are about, by name; all together in at most so many characters, joined by two of them.
#[must_use]
pub fn families(tools: &[Searched<'_>], most_chars: usize) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Searched<'_>>> = BTreeMap::new();
    for tool in tools {
        by_name.entry(tool.group).or_default().push(tool);
    }
    let (count, mut left) = (by_name.len(), most_chars.saturating_sub(MORE_CHARS));
    let mut lines = Vec::new();
    for (done, (name, tools)) in by_name.iter().enumerate() {
        // What one does not need is shared by those that follow.
        let line = line(name, tools, (left / (count - done)).saturating_sub(2));
        let chars = line.chars().count() + 2;
        if chars > left {
            lines.push(format!("and {} more", count - done));
            break;
        }
        left -= chars;
        lines.push(line);
    }
    lines
}

/// The name, and as much of the phrase as there is room for.
fn line(name: &str, tools: &[&Searched<'_>], room: usize) -> String {
    let (about, between): (Vec<String>, &str) = match tools {
        [only] => (sanitize::line(only.summary).split_whitespace().map(str::to_owned).collect(), " "),
        several => (topics(name, several), ", "),
    };
    let mut line = name.to_owned();
    for (number, word) in about.iter().enumerate() {
        let between = if number == 0 { ": " } else { between };
        if line.chars().count() + between.len() + word.chars().count() > room {
            break;
        }
        line = line + between + word;
    }
    line
}

/// What the names of tools speak of, the most frequent first.
fn topics(family: &str, tools: &[&Searched<'_>]) -> Vec<String> {
    let own = words(family);
    // By its root, how often a word is there, and which came first.
    let mut counted: HashMap<String, (usize, usize, String)> = HashMap::new();
    for (place, word) in tools.iter().flat_map(|tool| words(tool.name)).enumerate() {
        if !own.contains(&word) && !VERBS.contains(&word.as_str()) {
            let root = word.trim_end_matches('s').to_owned();
            counted.entry(root).or_insert((0, place, word)).0 += 1;
        }
    }
    let mut topics: Vec<(usize, usize, String)> = counted.into_values().collect();
    topics.sort_by_key(|(times, place, _)| (std::cmp::Reverse(*times), *place));
    topics.into_iter().map(|(.., word)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn tool<'t>(group: &'t str, name: &'t str, summary: &'t str) -> Searched<'t> {
        Searched { group, name, title: None, summary, when_to_use: "", input_schema: &Value::Null }
    }

    #[test]
    fn a_family_is_named_with_what_its_tools_are_about() {
        let tools = [
            tool("mail", "mail__send_email", ""),
            tool("mail", "mail__search_emails", ""),
            tool("mail", "mail__create_filter", ""),
            tool("clock", "clock", "Tell the time.\nOf any place."),
        ];
        assert_eq!(families(&tools, 500), ["clock: Tell the time. Of any place.", "mail: email, send, filter"]);
    }

    #[test]
    fn all_families_together_stay_within_the_room() {
        let names: Vec<String> = (0..100).map(|number| format!("family{number:02}")).collect();
        let tools: Vec<Searched<'_>> = names.iter().map(|name| tool(name, name, "Do one thing.")).collect();
        for most in [20, 200, 1000, 5000] {
            let said = families(&tools, most).join("; ");
            assert!(said.chars().count() <= most, "{most}: {said}");
        }
        assert!(families(&tools, 200).last().is_some_and(|last| last.ends_with(" more")));
        assert_eq!(families(&tools, 5000).len(), 100);
    }
}
