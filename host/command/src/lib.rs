//! Commands: parses a shell script once and answers what it would run.
//!
//! The denylist guards against accidents, it is not a boundary: a word known only at run time (`$X -rf /`, `rm -rf "$DIR/"`), an alias, a
//! script in a file or on standard input, a program that starts others, all pass. What a command may reach is up to the sandbox.
//!
//! It depends on `base` and `config`. `policy/shell.rs` decides who is asked.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod brace;
mod cost;
mod denylist;
mod large_stack;
mod lexer;
mod reader;
pub mod rules;
mod word;
mod wrapper;

use base::envelope::Failure;
use std::panic::catch_unwind;

pub use denylist::Denylist;

const MAX_BYTES: usize = 256 << 10;
/// Levels of nesting: groups, compound commands, substitutions, scripts in arguments.
const MAX_DEPTH: usize = 64;
/// Bytes of an answer to a program that need not be a script; a longer one must be a script.
const ANSWER_BYTES: usize = 1024;

/// Commands of the shell itself.
const OF_THE_SHELL: [&str; 16] = [
    ":", ".", "cd", "echo", "eval", "exec", "exit", "export", "printf", "set", "source", "test", "trap", "true",
    "umask", "wait",
];

/// Why a script's commands are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unparsable {
    /// It is longer than the cap.
    #[error("it is longer than 256 KiB")]
    TooLong,
    /// It nests deeper than the cap.
    #[error("it nests deeper than 64 levels")]
    TooNested,
    /// Parsing it could take too much memory or time.
    #[error("it has too many nested parts to be parsed")]
    TooComplex,
    /// Parsing it took too long.
    #[error("parsing it takes longer than 2 s")]
    TooSlow,
    /// Its syntax is not valid, or the parser does not know it.
    #[error("{0}")]
    Syntax(String),
    /// The parser failed.
    #[error("the parser failed on it")]
    Failed,
}

/// A shell script, parsed: every simple command it would run, wherever it appears.
#[derive(Clone, Debug)]
pub struct Script {
    text: String,
    commands: Vec<Command>,
}

#[derive(Clone, Debug)]
struct Command {
    /// Never empty, and without quotes.
    words: Vec<String>,
    line: usize,
    /// It runs in the shell that runs the script, not in a child of it.
    in_shell: bool,
    /// It is known to have these words and no others: `xargs` adds some to what it starts.
    is_whole: bool,
}

/// A command that would end or poison the shell that sources the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The command, as in `set -e`.
    pub what: &'static str,
    /// Its line in the script, from 1.
    pub line: usize,
    /// What to write instead.
    pub remedy: &'static str,
}

impl Script {
    /// Parses a script, and those within it: in substitutions, after `sh -c`, `eval` and the like.
    ///
    /// # Errors
    ///
    /// [`Unparsable`] when any of them is over a cap or no valid syntax.
    pub fn parse(text: &str) -> Result<Self, Unparsable> {
        if text.len() > MAX_BYTES {
            return Err(Unparsable::TooLong);
        }
        let text = text.to_owned();
        large_stack::run(move || Self::read(text, reader::Place::TOP))
    }

    /// The same here and now: to wake another thread takes longer than to parse most scripts. None where it could take long, or a deep stack.
    fn parse_here(text: &str) -> Option<Result<Self, Unparsable>> {
        let parse = || Self::read(text.to_owned(), reader::Place::SHALLOW);
        // What a panic leaves half done is gone with it.
        let parsed = cost::is_flat(text).then(|| catch_unwind(parse).ok()).flatten()?;
        Some(parsed).filter(|parsed| !matches!(parsed, Err(Unparsable::TooNested)))
    }

    fn read(text: String, place: reader::Place) -> Result<Self, Unparsable> {
        let mut reader = reader::Reader::new();
        reader.script(&text, place)?;
        Ok(Self { text, commands: reader.commands })
    }

    /// Treats text with invalid syntax as commands nevertheless, since a shell may read the rest of it later: from each of its words on,
    /// because a word that starts another command may come before it.
    #[must_use]
    pub fn by_words(text: &str) -> Self {
        let parts = text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`', '$']);
        let parts = parts.map(|part| part.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()));
        let from_each_word = |words: Vec<String>| {
            let commands = (0..words.len()).map(|first| words[first..].to_vec());
            commands.collect::<Vec<Vec<String>>>()
        };
        let commands = parts.flat_map(|words| from_each_word(words.collect()));
        let commands = commands.map(|words| Command { words, line: 1, in_shell: false, is_whole: false }).collect();
        Self { text: text.to_owned(), commands }
    }

    /// The first pattern of the denylist that matches.
    #[must_use]
    pub fn denied_by<'d>(&self, denylist: &'d Denylist) -> Option<&'d str> {
        denylist.find(&self.commands, &self.text)
    }

    /// The name of the first tmux command that makes, ends or moves sessions, windows or panes.
    #[must_use]
    pub fn tmux_lifecycle(&self) -> Option<&'static str> {
        self.commands.iter().find_map(|command| {
            let (name, arguments) = command.words.split_first()?;
            if basename(name) == "tmux" { tmux_lifecycle(arguments) } else { None }
        })
    }

    /// The program of a script's last command, by its name; commands of the shell itself do not count.
    #[must_use]
    pub fn program(&self) -> Option<String> {
        let names = self.commands.iter().rev().map(|command| basename(&command.words[0]));
        names.filter(|name| !OF_THE_SHELL.contains(name)).map(str::to_owned).next()
    }

    /// What would end or poison an interactive shell that sources this script.
    #[must_use]
    pub fn shared_shell_hazard(&self) -> Option<Hazard> {
        self.commands.iter().filter(|command| command.in_shell).find_map(|command| {
            let (what, remedy) = hazard(&command.words)?;
            Some(Hazard { what, line: command.line, remedy })
        })
    }
}

/// Runs what checks a command where that harms nobody: it takes milliseconds, and a deep stack. None: it did not end, or it panicked.
pub async fn aside<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    large_stack::aside(check).await.ok()
}

/// Who reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A shell of its own.
    Process,
    /// The shell of a pane, which has to survive it.
    Pane,
    /// Whatever runs in a pane, a shell perhaps: it is typed.
    Program,
}

/// Refuses a command that the denylist matches, or that cannot be compared with it; in a pane also one that would end or poison the shell
/// there, or manage tmux without our knowledge.
///
/// # Errors
///
/// A [`Failure`] of kind `denied`. Outside of panes an empty denylist refuses nothing, and nothing is parsed.
pub fn check(text: &str, denylist: &Denylist, goes_to: Destination) -> Result<(), Failure> {
    if is_unbound(denylist, goes_to) {
        return Ok(());
    }
    check_parsed(Script::parse(text), text, denylist, goes_to)
}

/// The same here and now; none where that could take long.
fn check_here(text: &str, denylist: &Denylist, goes_to: Destination) -> Option<Result<(), Failure>> {
    if is_unbound(denylist, goes_to) {
        return Some(Ok(()));
    }
    Script::parse_here(text).map(|parsed| check_parsed(parsed, text, denylist, goes_to))
}

/// Nothing that such a text says is refused.
fn is_unbound(denylist: &Denylist, goes_to: Destination) -> bool {
    denylist.is_empty() && goes_to != Destination::Pane
}

fn check_parsed(
    parsed: Result<Script, Unparsable>,
    text: &str,
    denylist: &Denylist,
    goes_to: Destination,
) -> Result<(), Failure> {
    let parsed = match parsed {
        // An answer to a program need not be a script.
        Err(Unparsable::Syntax(_)) if goes_to == Destination::Program && text.len() <= ANSWER_BYTES => {
            Ok(Script::by_words(text))
        }
        parsed => parsed,
    };
    let script = parsed.map_err(|reason| {
        let against = if denylist.is_empty() { "what harms the shell of a pane" } else { "`tools.shell_denylist`" };
        Failure::denied(format!("command cannot be checked against {against}: {reason}"))
            .hint("write it in plain POSIX shell, or as several shorter commands")
    })?;
    if let Some(pattern) = script.denied_by(denylist) {
        return Err(blocked(pattern, denylist));
    }
    if goes_to == Destination::Pane { check_for_pane(&script) } else { Ok(()) }
}

fn blocked(pattern: &str, denylist: &Denylist) -> Failure {
    Failure::denied(format!("command is blocked by `tools.shell_denylist` pattern `{pattern}`"))
        .hint(denylist.hint(pattern))
}

/// What is checked against the denylist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A script, for whoever reads it.
    Script(String, Destination),
    /// What keys amount to, read in each way that they can be.
    Typed {
        /// What is typed.
        texts: Vec<String>,
        /// The same after the unfinished line that was typed before; empty where there is none.
        continued: Vec<String>,
    },
}

impl Held {
    /// As [`Self::check`], here and now; none where that could take long.
    pub fn check_here(&self, denylist: &Denylist) -> Option<Result<(), Failure>> {
        match self {
            Self::Script(text, goes_to) => check_here(text, denylist, *goes_to),
            Self::Typed { .. } => None,
        }
    }

    /// What it amounts to, in each way that it can be read.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let (one, others) = match self {
            Self::Script(text, _) => (Some(text), [&[][..], &[]]),
            Self::Typed { texts, continued } => (None, [texts.as_slice(), continued]),
        };
        one.into_iter().chain(others.into_iter().flatten()).map(String::as_bytes)
    }

    /// Refuses what the denylist matches, or what cannot be compared with it.
    ///
    /// # Errors
    ///
    /// A [`Failure`] of kind `denied`.
    pub fn check(&self, denylist: &Denylist) -> Result<(), Failure> {
        let (texts, continued) = match self {
            Self::Script(text, goes_to) => return check(text, denylist, *goes_to),
            Self::Typed { .. } if denylist.is_empty() => return Ok(()),
            Self::Typed { texts, continued } => (texts, continued),
        };
        // Each line may be for a program of its own; several may be one command.
        for line in texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()) {
            check(line, denylist, Destination::Program)?;
        }
        for text in texts.iter().filter(|text| text.trim_end().contains('\n')) {
            // Lines that are not one script together were each checked above.
            let script = Script::parse(text).ok();
            let denied = script.and_then(|script| script.denied_by(denylist).map(str::to_owned));
            denied.map_or(Ok(()), |pattern| Err(blocked(&pattern, denylist)))?;
        }
        let begun = continued.iter().filter_map(|text| text.lines().next());
        begun
            .map(|line| &line[..line.floor_char_boundary(ANSWER_BYTES)])
            .try_for_each(|line| check(line, denylist, Destination::Program))
    }
}

fn check_for_pane(script: &Script) -> Result<(), Failure> {
    if let Some(verb) = script.tmux_lifecycle() {
        return Err(Failure::denied(format!("`tmux {verb}` bypasses the tools for sessions and panes"))
            .hint("use tmux-create-session, tmux-kill-session, tmux-create-pane and tmux-kill-pane"));
    }
    script.shared_shell_hazard().map_or(Ok(()), |hazard| {
        let message = format!("`{}` on line {} would end or poison the shell of the pane", hazard.what, hazard.line);
        Err(Failure::denied(message).hint(hazard.remedy))
    })
}

fn basename(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Commands of tmux by name and alias. tmux also accepts any unambiguous prefix of a name.
const TMUX_LIFECYCLE: [(&str, &str); 18] = [
    ("new-session", "new"),
    ("new-window", "neww"),
    ("split-window", "splitw"),
    ("create-pane", "create-pane"),
    ("kill-session", "kill-session"),
    ("kill-window", "killw"),
    ("kill-pane", "killp"),
    ("kill-server", "kill-server"),
    ("respawn-window", "respawnw"),
    ("respawn-pane", "respawnp"),
    ("source-file", "source"),
    ("break-pane", "breakp"),
    ("join-pane", "joinp"),
    ("move-pane", "movep"),
    ("move-window", "movew"),
    ("link-window", "linkw"),
    ("unlink-window", "unlinkw"),
    ("rename-session", "rename"),
];

fn tmux_lifecycle(arguments: &[String]) -> Option<&'static str> {
    let mut rest = arguments;
    while let Some((option, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        if option == "-V" {
            return None;
        }
        let valued = option.find(['c', 'f', 'L', 'S', 'T']);
        rest = if valued == Some(option.len() - 1) { after.get(1..).unwrap_or_default() } else { after };
    }
    if rest.is_empty() {
        return Some("new-session");
    }
    let commands = rest.split_inclusive(|word| word.ends_with(';')).filter_map(|command| command.first());
    commands.map(|name| name.trim_end_matches(';')).find_map(|name| {
        let named = |(full, alias): &&(&'static str, &str)| name == *alias || name.len() > 2 && full.starts_with(name);
        TMUX_LIFECYCLE.iter().find(named).map(|(full, _)| *full)
    })
}

fn hazard(words: &[String]) -> Option<(&'static str, &'static str)> {
    const STRICT: &str = "set it in a shell of its own: `bash -c 'set -e; …'` or `( set -e; … )`";
    const LEAVE: &str = "keep the shell running: omit it, or put what may exit into `( … )`";
    let (name, arguments) = words.split_first()?;
    match name.as_str() {
        "set" | "setopt" if sets_errexit(arguments) => Some(("set -e", STRICT)),
        "setopt" if arguments.iter().any(|option| is_errexit(option)) => Some(("setopt errexit", STRICT)),
        "exit" | "bye" => Some(("exit", LEAVE)),
        "logout" => Some(("logout", LEAVE)),
        // Without a program it redirects the shell's own output.
        "exec" => Some(("exec", "omit `exec`, or put it and what follows into `( … )`")),
        "kill" if arguments.iter().any(|word| word == "$$") => Some(("kill $$", LEAVE)),
        _ => None,
    }
}

fn sets_errexit(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(flags) = arguments.next().and_then(|word| word.strip_prefix(['-', '+']).map(|_| word)) {
        let sets = flags.starts_with('-');
        if flags == "-" || flags.starts_with("--") {
            return false;
        }
        let named = flags.ends_with('o') && arguments.next().is_some_and(|option| is_errexit(option));
        if sets && (named || flags.contains('e')) {
            return true;
        }
    }
    false
}

/// zsh ignores case and underscores in the names of options.
fn is_errexit(option: &str) -> bool {
    option.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).eq("errexit".chars())
}

#[cfg(test)]
mod tests;
