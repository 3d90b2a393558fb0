//! The denylist: patterns of commands that are refused.
//!
//! `reader.rs` says what a script runs; here it is only compared.

use super::{Command, basename, large_stack, reader};
use base::envelope::Failure;
use config::{Needed, Remedies};

/// The patterns of `tools.shell_denylist`, parsed.
#[derive(Clone, Debug, Default)]
pub struct Denylist {
    patterns: Vec<Pattern>,
    remedies: Remedies,
}

#[derive(Clone, Debug)]
struct Pattern {
    source: String,
    form: Form,
}

/// All in lower case.
#[derive(Clone, Debug)]
enum Form {
    /// One simple command: its name and the words to find after it, in this order.
    Words { name: String, rest: Vec<String> },
    /// Anything else, without its whitespace.
    Text(String),
}

impl Denylist {
    /// Parses the patterns of the setting.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` when one is blank: it would match every command or none.
    pub fn parse(patterns: &[String]) -> Result<Self, Failure> {
        let parse = |(index, source): (usize, &String)| match source.trim() {
            "" => Err(Failure::invalid(format!("entry {} of `tools.shell_denylist` is not a command", index + 1))
                .hint("remove the empty entry from `shell_denylist` under [tools]")),
            source => Ok(Pattern { source: source.to_owned(), form: Form::of(source) }),
        };
        let patterns = patterns.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { patterns, remedies: Remedies::default() })
    }

    /// The same, which knows whose each pattern is.
    pub fn of(self, remedies: Remedies) -> Self {
        Self { remedies, ..self }
    }

    /// What lifts a pattern.
    pub(super) fn hint(&self, pattern: &str) -> String {
        let line = format!("only the user can lift this: remove `{pattern}` from `shell_denylist` under [tools]");
        self.remedies.hint("tools.shell_denylist", &Needed::Without(pattern), line)
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The first pattern that matches one of `commands`, or `text`.
    pub(super) fn find(&self, commands: &[Command], text: &str) -> Option<&str> {
        let matching = self.patterns.iter().find(|pattern| match &pattern.form {
            Form::Words { name, rest } => {
                commands.iter().any(|command| matches(name, rest, &command.words) && !is_harmless_copy(rest, command))
            }
            Form::Text(part) => squeezed(text).contains(part),
        });
        matching.map(|pattern| pattern.source.as_str())
    }
}

impl Form {
    fn of(source: &str) -> Self {
        let text = source.to_owned();
        let words = large_stack::run(move || Ok(reader::sole_command(&text))).ok().flatten();
        match words.as_ref().and_then(|words| words.split_first()) {
            Some((name, rest)) => Self::Words {
                name: basename(name).to_ascii_lowercase(),
                rest: rest.iter().map(|word| word.to_ascii_lowercase()).collect(),
            },
            None => Self::Text(squeezed(source)),
        }
    }
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
}

fn matches(name: &str, rest: &[String], words: &[String]) -> bool {
    let Some((first, later)) = words.split_first() else { return false };
    let first = basename(first).to_ascii_lowercase();
    if rest.is_empty() {
        return first.strip_prefix(name).is_some_and(|more| more.is_empty() || more.starts_with(['.', '-']));
    }
    if first != name {
        return false;
    }
    let later: Vec<String> = later.iter().map(|word| word.to_ascii_lowercase()).collect();
    let mut unread = later.iter();
    rest.iter().all(|want| has_flags(want, &later) || unread.any(|word| is_meant(want, word)))
}

/// Whether a command that the pattern `dd if=` means makes a file in `/tmp`: the pattern is there for the sake of disks.
fn is_harmless_copy(rest: &[String], command: &Command) -> bool {
    let is_plain =
        |word: &String| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte));
    let mut outputs = command.words.iter().filter_map(|word| word.strip_prefix("of=")).peekable();
    let is_there = |path: &str| path.starts_with("/tmp/") && path.split('/').all(|part| part != "..");
    *rest == ["if="]
        && basename(&command.words[0]) == "dd"
        && command.is_whole
        && command.words.iter().all(is_plain)
        && outputs.peek().is_some()
        && outputs.all(is_there)
}

/// Whether a word of a command is the one that a pattern means: the same word, a path by another spelling, or what begins so where the
/// pattern ends in `=`.
fn is_meant(want: &str, word: &str) -> bool {
    word == want
        || want.ends_with('=') && word.starts_with(want)
        || want.starts_with('/') && word.starts_with('/') && normal(want) == normal(word)
}

/// The components of an absolute path. Everything in a directory (`/*`, `/*/*`) counts as the directory.
fn normal(path: &str) -> Vec<&str> {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            component => components.push(component),
        }
    }
    let is_all = |last: &&str| [".*", ".[!.]*", "?*"].contains(last) || last.bytes().all(|byte| byte == b'*');
    while components.last().is_some_and(is_all) {
        components.pop();
    }
    components
}

/// Whether `want` is a cluster of short options, and all of them are among `words`, however split. An option of two
/// dashes counts as its first letter when the cluster has more than one: `--recursive --force` is `-rf`.
pub(super) fn has_flags(want: &str, words: &[String]) -> bool {
    let Some(letters) = cluster(want) else { return false };
    // Longer ones, or with a letter twice, are words with one dash, like the `-delete` of find.
    let distinct = letters.char_indices().all(|(index, letter)| !letters[..index].contains(letter));
    letters.len() <= 4
        && distinct
        && letters.chars().all(|letter| {
            words.iter().any(|word| match word.strip_prefix("--") {
                Some(long) => letters.len() > 1 && long.starts_with(letter),
                None => cluster(word).is_some_and(|letters| letters.contains(letter)),
            })
        })
}

fn cluster(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphabetic()))
}
