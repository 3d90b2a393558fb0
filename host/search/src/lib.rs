//! Finds tools by words: by what they are called, what they are for, and what their arguments are.
//!
//! SQLite ranks them (FTS5, BM25), in memory. Which tools a caller may find is decided by whoever makes an index: it holds no others.
//!
//! It depends on base, and on contract for what a tool is.
#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod families;

pub use families::families;

use base::envelope::{Failure, Kind};
use base::text::names::nearest;
use contract::definition::Tool;
use parking_lot::Mutex;
use rusqlite::{Connection, params};
use serde_json::Value;
use std::collections::HashSet;

/// Words that mean nearly the same, a line each. Those of two or three words are written as one: `throwaway`.
const ALIKE: &str = include_str!("alike.txt");
/// Words that say nothing of what a tool does.
const EMPTY: &str = "a am an and any are as at be been by can could did do does for from had has have her his how i if in is it its ive me my \
    of on or our please s so some that thats the their them there they this to up us was we were what whats when which who will with would \
    you your";
const TABLES: &str = "
    CREATE VIRTUAL TABLE tool USING fts5 (name, description, arguments, tokenize = 'porter unicode61');
    CREATE VIRTUAL TABLE alike USING fts5 (words, tokenize = 'porter unicode61');
";
/// By the words that were asked, and by those that mean nearly the same, which count half.
const FIND: &str = "
    SELECT tool FROM (
        SELECT rowid AS tool, bm25(tool, 8.0, 2.0, 0.5) AS score FROM tool WHERE tool MATCH ?1
        UNION ALL
        SELECT rowid AS tool, 0.5 * bm25(tool, 8.0, 2.0, 0.5) AS score FROM tool WHERE tool MATCH ?2
    ) GROUP BY tool ORDER BY sum(score), tool LIMIT ?3
";

/// A tool as it is searched, and as it is summed up with others.
pub struct Searched<'t> {
    /// What it is listed under: its family, or its plugin.
    pub group: &'t str,
    /// What it is called by.
    pub name: &'t str,
    /// For people.
    pub title: Option<&'t str>,
    /// What it does.
    pub summary: &'t str,
    /// When to choose it. When not to is not searched: that names what other tools are for.
    pub when_to_use: &'t str,
    /// JSON Schema of its arguments.
    pub input_schema: &'t Value,
}

impl<'t> From<&'t Tool> for Searched<'t> {
    fn from(tool: &'t Tool) -> Self {
        let definition = tool.definition();
        Self {
            group: tool.plugin().group(),
            name: tool.name(),
            title: definition.title.as_deref(),
            summary: &definition.summary,
            when_to_use: &definition.guidance.when_to_use,
            input_schema: &definition.input_schema,
        }
    }
}

/// An index of tools, in memory.
pub struct Index {
    names: Vec<String>,
    database: Mutex<Connection>,
}

impl Index {
    /// Makes an index of tools.
    ///
    /// # Errors
    ///
    /// `internal` where SQLite cannot.
    pub fn of(tools: &[Searched<'_>]) -> Result<Self, Failure> {
        let database = filled(tools).map_err(|error| failed(&error))?;
        Ok(Self { names: tools.iter().map(|tool| tool.name.to_owned()).collect(), database: Mutex::new(database) })
    }

    /// The place of the tool of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The place of the tool whose name was probably meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<usize> {
        nearest(name, self.names.iter().map(String::as_str)).and_then(|name| self.named(name))
    }

    /// The places of the tools that fit best, the best first: at most so many.
    ///
    /// # Errors
    ///
    /// `internal` where SQLite fails.
    pub fn find(&self, query: &str, most: usize) -> Result<Vec<usize>, Failure> {
        let asked = asked(query);
        let connection = self.database.lock();
        let alike = alike(&connection, &asked).map_err(|error| failed(&error))?;
        let found = connection.prepare_cached(FIND).and_then(|mut find| {
            let places = find.query_map(params![any_of(&asked), any_of(&alike), most], |row| row.get(0))?;
            places.collect()
        });
        found.map_err(|error| failed(&error))
    }
}

fn filled(tools: &[Searched<'_>]) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    let filling = connection.transaction()?;
    {
        let mut group = filling.prepare("INSERT INTO alike (words) VALUES (?1)")?;
        ALIKE.lines().try_for_each(|words| group.execute([words]).map(drop))?;
        let mut row =
            filling.prepare("INSERT INTO tool (rowid, name, description, arguments) VALUES (?1, ?2, ?3, ?4)")?;
        for (place, tool) in tools.iter().enumerate() {
            let name = format!("{} {}", words(tool.name).join(" "), tool.title.unwrap_or_default());
            let description = format!("{} {}", tool.summary, tool.when_to_use);
            row.execute(params![place, name, description, arguments(tool.input_schema)])?;
        }
    }
    filling.commit()?;
    Ok(connection)
}

/// The names of the arguments, and what is said of them.
fn arguments(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let said = properties.map(|(name, property)| {
        format!("{} {}", words(name).join(" "), property["description"].as_str().unwrap_or_default())
    });
    said.collect::<Vec<_>>().join(" ")
}

/// The words of a text in small letters; `camelCase` is two.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut last) = (vec![String::new()], ' ');
    for letter in text.chars().filter(|letter| !matches!(letter, '\'' | '’')) {
        let begins = letter.is_uppercase() && (last.is_lowercase() || last.is_numeric());
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        last = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words of a query that count, and each two that stand together as one: `look up` is `lookup`.
fn asked(query: &str) -> Vec<String> {
    let all = words(query);
    let is_empty = |word: &str| EMPTY.split_whitespace().any(|empty| empty == word);
    let counts = |word: &&String| !is_empty(word) && !word.bytes().all(|byte| byte.is_ascii_digit());
    let mut asked: Vec<String> = all.iter().filter(counts).cloned().collect();
    if asked.is_empty() {
        asked.clone_from(&all);
    }
    asked.extend(all.windows(2).map(<[String]>::concat));
    each_once(asked)
}

/// The words that mean nearly what these do, and are none of them.
fn alike(connection: &Connection, asked: &[String]) -> rusqlite::Result<Vec<String>> {
    let mut groups = connection.prepare_cached("SELECT words FROM alike WHERE alike MATCH ?1 ORDER BY rowid")?;
    let groups: Vec<String> = groups.query_map([any_of(asked)], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let others = groups.iter().flat_map(|group| group.split_whitespace()).map(str::to_owned);
    Ok(each_once(others.filter(|word| !asked.contains(word))))
}

fn each_once(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(word.clone())).collect()
}

/// What matches any of these words. They are quoted: nothing that a caller writes is taken for the syntax of queries.
fn any_of(words: &[String]) -> String {
    // The empty phrase matches nothing, but a query without a phrase is an error.
    let quoted = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
    if quoted.is_empty() { "\"\"".into() } else { quoted.join(" OR ") }
}

fn failed(error: &rusqlite::Error) -> Failure {
    Failure::new(Kind::Internal, format!("the tools cannot be searched: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOOLS: [(&str, &str, &str); 6] = [
        ("github__createIssue", "Create a new issue in a repository.", "assignee"),
        ("calendar__update_event", "Change an event, or reschedule it.", "start"),
        ("calendar__delete_event", "Delete an event.", "event"),
        ("mail__search_emails", "Search the mailbox.", "query"),
        ("files__list_directory", "List what is in a directory.", "path"),
        ("clock", "Tell the time of a place.", "timezone"),
    ];

    fn find(query: &str, most: usize) -> Vec<&'static str> {
        let schemas = TOOLS.map(|(.., argument)| json!({ "properties": { argument: { "description": "It." } } }));
        let tools: Vec<Searched<'_>> = TOOLS
            .iter()
            .zip(&schemas)
            .map(|((name, summary, _), input_schema)| Searched {
                group: "",
                name,
                title: None,
                summary,
                when_to_use: "",
                input_schema,
            })
            .collect();
        let index = Index::of(&tools).expect("an index");
        index.find(query, most).expect("a search").into_iter().map(|place| TOOLS[place].0).collect()
    }

    #[test]
    fn a_tool_is_found_by_its_name_its_description_and_its_arguments() {
        assert_eq!(find("calendar delete", 1), ["calendar__delete_event"]);
        assert_eq!(find("mailbox", 1), ["mail__search_emails"]);
        assert_eq!(find("timezone", 1), ["clock"]);
        assert_eq!(find("assignee", 1), ["github__createIssue"]);
    }

    #[test]
    fn a_word_has_several_forms() {
        assert_eq!(find("creating issues", 1), ["github__createIssue"]);
        assert_eq!(find("rescheduled events", 1), ["calendar__update_event"]);
    }

    #[test]
    fn other_words_for_the_same_are_found() {
        assert_eq!(find("the folder", 1), ["files__list_directory"]);
        assert_eq!(find("throw away the appointment", 1), ["calendar__delete_event"]);
    }

    #[test]
    fn no_more_are_found_than_asked_for() {
        assert_eq!(find("event", 5).len(), 2);
        assert_eq!(find("event", 1).len(), 1);
        assert!(find("event", 0).is_empty());
    }

    #[test]
    fn a_query_has_no_syntax() {
        for query in
            ["event OR (", "\"event", "event\" NEAR \"x", "name:event", "event*", "-event", "event AND NOT event"]
        {
            assert!(find(query, 9).contains(&"calendar__delete_event"), "{query}");
        }
        for query in ["", " ", "*", "\"", "\"\"", "^", "\0", "🙂", "xyzzy"] {
            assert!(find(query, 9).is_empty(), "{query:?}");
        }
    }

    #[test]
    fn words_are_taken_apart_where_a_reader_would() {
        assert_eq!(words("getPRFiles_v2 don't,stop"), ["get", "prfiles", "v2", "dont", "stop"]);
        assert_eq!(asked("Look up 42 of the Notes"), ["look", "notes", "lookup", "up42", "42of", "ofthe", "thenotes"]);
        assert_eq!(asked("what is it"), ["what", "is", "it", "whatis", "isit"]);
    }

    #[test]
    fn each_line_of_words_has_several_and_each_is_one_word() {
        for line in ALIKE.lines() {
            let all: Vec<&str> = line.split_whitespace().collect();
            assert!(all.len() > 1 && all.iter().all(|word| words(word) == [*word]), "{line}");
        }
    }
}
