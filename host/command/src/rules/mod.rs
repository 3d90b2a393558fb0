//! Rules: a pattern of a command, and whether it covers what a script runs.
//!
//! `proof.rs` reads the script, `wrapped.rs` follows wrappers, `programs.rs` says which words run another program. What a covered command
//! means is up to `policy/rules/`.

mod programs;
mod proof;
#[cfg(test)]
mod tests;
mod wrapped;

use super::{Command, Script, basename, cost, large_stack, reader};
use programs::{Kind, Program};
use std::panic::catch_unwind;

/// Stands for words, or for a part of one.
const ANY: char = '*';
/// Commands of the shell itself that change nothing for later ones.
const OF_THE_SHELL: [&str; 14] =
    ["echo", "printf", "cd", "pwd", "true", "false", ":", "test", "[", "kill", "wait", "type", "umask", "times"];
/// Options of an interpreter that run nothing.
const INFORMS: [&str; 4] = ["--version", "--help", "-V", "-h"];

/// The pattern of a command: its program, then words in which `*` stands for anything that runs no other program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    program: String,
    words: Vec<Part>,
    /// It ends in a `*` of its own: further words may follow.
    is_open: bool,
}

/// A word of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// This very word.
    Literal(String),
    /// A word with these texts in it, in this order: at its beginning, at its end, and between.
    Like(Vec<String>),
}

/// A command that a script runs, whose words are known as far as they decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Simple {
    words: Vec<Word>,
    /// Something may write its standard input.
    is_fed: bool,
    /// What it runs, where it only wraps that.
    inner: Vec<Self>,
}

#[derive(Clone, Debug, PartialEq)]
struct Word {
    text: String,
    sure: Sure,
}

/// How much of a word is known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sure {
    All,
    /// It begins with so many bytes that are known.
    Begin(usize),
}

/// The commands of a script, all of them; `is_fed` where its standard input has something.
///
/// # Errors
///
/// Why it is not certain what the script runs, as a fragment.
pub fn prove(text: &str, is_fed: bool) -> Result<Vec<Simple>, String> {
    if cost::is_flat(text) {
        return catch_unwind(|| proof::read(text, is_fed, 0)).unwrap_or_else(|_| Err("the parser failed on it".into()));
    }
    let text = text.to_owned();
    large_stack::run(move || Ok(proof::read(&text, is_fed, 0))).unwrap_or_else(|error| Err(error.to_string()))
}

impl Simple {
    /// The program, as it is written.
    #[must_use]
    pub fn program(&self) -> &str {
        self.words.first().map_or("", |word| &word.text)
    }

    /// What it runs, where it is a wrapper that is followed.
    #[must_use]
    pub fn inner(&self) -> &[Self] {
        &self.inner
    }

    /// Whether the shell itself does it.
    #[must_use]
    pub fn is_of_the_shell(&self) -> bool {
        OF_THE_SHELL.contains(&self.program())
    }

    /// Its words with blanks between, as people read them.
    #[must_use]
    pub fn shown(&self) -> String {
        self.words.iter().map(|word| base::text::shell_quote::readable(&word.text)).collect::<Vec<_>>().join(" ")
    }
}

impl CommandPattern {
    /// Reads the pattern of a rule.
    ///
    /// # Errors
    ///
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let owned = text.to_owned();
        let words = large_stack::run(move || Ok(reader::sole_words(&owned))).ok().flatten();
        let not_one =
            || "is not one plain command: write one command, without `;`, `|`, `>`, `$` and variables".to_owned();
        let mut words = words.filter(|words| !words.is_empty()).ok_or_else(not_one)?;
        let (raw, program) = words.remove(0);
        if program.is_empty() || raw.contains(ANY) || program.starts_with(['-', '~']) {
            return Err("does not begin with a program: write its name or its whole path first".into());
        }
        let is_open = words.pop_if(|(raw, _)| raw == "*").is_some();
        if words.iter().any(|(raw, _)| raw.contains(['$', '`']) && !raw.starts_with('\'')) {
            return Err(not_one());
        }
        let words = words.into_iter().map(|(raw, shown)| Part::of(&raw, shown)).collect();
        let pattern = Self { program, words, is_open };
        let is_exact = programs::of(&pattern.program).is_some_and(|row| row.kind == Kind::Exact);
        if is_exact && (pattern.is_open || pattern.words.iter().any(|part| matches!(part, Part::Like(_)))) {
            let name = &pattern.program;
            return Err(format!(
                "has a `*` after `{name}`, which runs another command: write all its words, or the rule for that command"
            ));
        }
        Ok(pattern)
    }

    /// The program, as it has to be written in a command.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Whether it covers a command as it is, without what that wraps.
    ///
    /// # Errors
    ///
    /// Why not, as a fragment.
    pub fn covers(&self, command: &Simple) -> Result<(), String> {
        let Some((program, words)) = command.words.split_first() else { return Err("has no words".into()) };
        if program.sure != Sure::All || program.text != self.program {
            return Err("is about another program".into());
        }
        let fits = if self.is_open { words.len() >= self.words.len() } else { words.len() == self.words.len() };
        if !fits {
            return Err("has other words".into());
        }
        let row = programs::of(&self.program);
        let mut seen = vec![self.program.as_str()];
        for (index, word) in words.iter().enumerate() {
            self.check_word(index, word, &seen, row)?;
            seen.push(&word.text);
        }
        row.map_or(Ok(()), |row| self.check_kind(row, command))
    }

    fn check_word(&self, index: usize, word: &Word, seen: &[&str], row: Option<&Program>) -> Result<(), String> {
        let begin = match self.words.get(index) {
            Some(Part::Literal(text)) if word.sure == Sure::All && word.text == *text => return Ok(()),
            Some(Part::Like(texts)) if like(texts, &word.text) => texts.first().map_or("", String::as_str),
            Some(Part::Literal(_) | Part::Like(_)) => return Err("has other words".into()),
            None => "",
        };
        let Some(row) = row else { return Ok(()) };
        if row.kind == Kind::Code && !self.names_code(index) {
            return Err(format!("`*` does not stand for what `{}` runs", self.program));
        }
        // The rule has written it out.
        let is_written = !begin.is_empty() && row.runs_by(seen, begin.trim_end_matches('='));
        if row.is_free() || is_written && word.sure == Sure::All {
            return Ok(());
        }
        let runs = match word.sure {
            Sure::All => row.runs_by(seen, &word.text),
            Sure::Begin(known) => {
                let begin = word.text.get(..known).unwrap_or_default();
                begin.is_empty() || row.may_run_by(begin) || row.wants_subcommand(seen)
            }
        };
        match runs {
            true => Err(format!(
                "`*` does not stand for `{}`, by which `{}` may run another program or write a file",
                word.text, self.program
            )),
            false => Ok(()),
        }
    }

    /// Whether the words before this one name the file or text that an interpreter runs.
    fn names_code(&self, index: usize) -> bool {
        self.words.iter().take(index).any(|part| matches!(part, Part::Literal(text) if !text.starts_with('-')))
    }

    /// Refuses what would be run from a standard input.
    fn check_kind(&self, row: &Program, command: &Simple) -> Result<(), String> {
        if row.kind == Kind::Plain {
            return Ok(());
        }
        let informs = |part: &Part| matches!(part, Part::Literal(text) if INFORMS.contains(&text.as_str()));
        if !self.words.is_empty() && !self.is_open && self.words.iter().all(informs) {
            return Ok(());
        }
        let takes_words = ["xargs", "gxargs"].contains(&basename(&self.program));
        if command.is_fed && !takes_words {
            return Err(format!("`{}` may run what it reads", self.program));
        }
        if self.names_code(self.words.len()) {
            Ok(())
        } else {
            Err(format!("it does not say what `{}` runs", self.program))
        }
    }

    /// Whether it is about one of the commands of a script, with more words or in another split too: for rules that deny.
    #[must_use]
    pub fn catches(&self, script: &Script) -> bool {
        script.commands.iter().any(|command| self.catches_one(command))
    }

    fn catches_one(&self, command: &Command) -> bool {
        let Some((name, rest)) = command.words.split_first() else { return false };
        if !basename(name).eq_ignore_ascii_case(basename(&self.program)) {
            return false;
        }
        let mut unread = rest.iter();
        self.words.iter().all(|part| match part {
            Part::Literal(text) => super::denylist::has_flags(text, rest) || unread.any(|word| word == text),
            Part::Like(texts) => unread.any(|word| like(texts, word)),
        })
    }
}

impl Part {
    fn of(raw: &str, shown: String) -> Self {
        let is_plain = !raw.contains(['\'', '"', '\\']);
        if is_plain && raw.contains(ANY) {
            Self::Like(raw.split(ANY).map(str::to_owned).collect())
        } else {
            Self::Literal(shown)
        }
    }
}

/// Whether a text is made of these, with anything between.
fn like(texts: &[String], text: &str) -> bool {
    let [first, between @ .., last] = texts else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for part in between {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

/// What covers a command: a rule for it as it is, or one for each command within it.
///
/// # Errors
///
/// The command that nothing covers, and why.
pub fn covered<T>(command: &Simple, by: &impl Fn(&Simple) -> Result<T, String>) -> Result<Vec<T>, (String, String)> {
    let why = match by(command) {
        Ok(rule) => return Ok(vec![rule]),
        Err(why) => why,
    };
    if command.inner.is_empty() {
        return Err((command.shown(), why));
    }
    let mut all = Vec::new();
    for inner in &command.inner {
        all.append(&mut covered(inner, by)?);
    }
    Ok(all)
}

/// Whether a script may run one of these programs, which its bytes tell for most: false where it cannot. `is_one` gets every word.
pub fn may_run(text: &str, is_one: impl Fn(&str) -> bool) -> bool {
    if text.contains("$'") || text.contains('{') {
        return true;
    }
    let plain: String =
        text.replace("\\\n", "").chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\')).collect();
    plain
        .split(|letter: char| letter.is_whitespace() || ";|&()<>`$=/!".contains(letter))
        .any(|word| !word.is_empty() && is_one(&word.to_ascii_lowercase()))
}
