//! The proof: the simple commands of a script, if every word that decides what runs is known before it runs.
//!
//! `reader.rs` finds as many commands as it can, for those who refuse. Here what is not certain ends the reading, for those who allow.

use super::super::reader::Reader;
use super::super::{MAX_DEPTH, brace, word};
use super::{Simple, Sure, Word, wrapped};
use brush_parser::ast::{
    self, AndOr, AndOrList, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SimpleCommand,
};

/// Commands of the shell that change what later words mean, or run a text.
const CHANGES: &[&str] = &[
    ".",
    "source",
    "eval",
    "exec",
    "trap",
    "alias",
    "unalias",
    "enable",
    "disable",
    "hash",
    "rehash",
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "read",
    "mapfile",
    "readarray",
    "unset",
    "set",
    "shopt",
    "setopt",
    "unsetopt",
    "getopts",
    "let",
    "builtin",
    "autoload",
    "zmodload",
    "emulate",
    "bind",
    "bindkey",
    "complete",
    "compgen",
    "fc",
    "history",
    "zle",
    "unfunction",
    "functions",
    "integer",
    "float",
    "vared",
    "print",
    "sched",
    "zstyle",
    "coproc",
];
/// Those that change the directory, and with it what a relative path of a program means.
const MOVES: &[&str] = &["cd", "pushd", "popd", "chdir"];
/// Files that a redirection may write.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];
/// The longest name of a loop's variable.
const VARIABLE_BYTES: usize = 12;

type Done = Result<(), String>;

/// Reads a script, whose standard input is written by somebody where `is_fed`; or says why what it runs is not certain.
pub(super) fn read(text: &str, is_fed: bool, depth: usize) -> Result<Vec<Simple>, String> {
    if depth > MAX_DEPTH {
        return Err("it nests too deeply".into());
    }
    let mut proof = Proof { reader: Reader::new(), commands: Vec::new(), is_fed, depth, moves: false };
    proof.script(text)?;
    match proof.commands.iter().find_map(relative).filter(|_| proof.moves) {
        Some(program) => Err(format!("`{program}` is a relative path, and the directory changes")),
        None => Ok(proof.commands),
    }
}

/// The program of a command, or within it, that depends on the directory.
fn relative(simple: &Simple) -> Option<&str> {
    let program = simple.program();
    let is_relative = program.contains('/') && !program.starts_with('/');
    if is_relative { Some(program) } else { simple.inner.iter().find_map(relative) }
}

/// Whether a command of the shell matters to what comes after it.
pub(super) fn is_special(name: &str) -> bool {
    CHANGES.contains(&name) || MOVES.contains(&name)
}

fn feed(simple: &mut Simple) {
    simple.is_fed = true;
    simple.inner.iter_mut().for_each(feed);
}

struct Proof {
    reader: Reader,
    commands: Vec<Simple>,
    is_fed: bool,
    depth: usize,
    moves: bool,
}

impl Proof {
    fn script(&mut self, text: &str) -> Done {
        let program = self.reader.parse_as(text, self.depth, false).map_err(|error| error.to_string())?;
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Done {
        list.0.iter().try_for_each(|item| self.and_or(&item.0))
    }

    fn and_or(&mut self, list: &AndOrList) -> Done {
        self.pipeline(&list.first)?;
        list.additional.iter().try_for_each(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
        })
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Done {
        pipeline.seq.iter().enumerate().try_for_each(|(index, command)| self.command(command, self.is_fed || index > 0))
    }

    /// `is_fed`: something else of the script writes its standard input.
    fn command(&mut self, command: &ast::Command, is_fed: bool) -> Done {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, is_fed),
            ast::Command::Compound(compound, redirects) => {
                let is_fed = self.redirects(redirects.as_ref())? || is_fed;
                let first = self.commands.len();
                self.compound(compound)?;
                self.commands[first..].iter_mut().filter(|_| is_fed).for_each(feed);
                Ok(())
            }
            ast::Command::Function(_) => Err("it defines a function".into()),
            ast::Command::ExtendedTest(..) => Err("`[[ … ]]` may evaluate what a variable holds".into()),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Done {
        match compound {
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                Err("arithmetic may evaluate what a variable holds".into())
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                check_variable(&clause.variable_name)?;
                clause.values.iter().flatten().try_for_each(|value| self.words(&value.value).map(drop))?;
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                self.words(&clause.value.value)?;
                clause.cases.iter().try_for_each(|case| {
                    case.patterns.iter().try_for_each(|pattern| self.words(&pattern.value).map(drop))?;
                    case.cmd.iter().try_for_each(|list| self.list(list))
                })
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                clause.elses.iter().flatten().try_for_each(|part| {
                    part.condition.iter().try_for_each(|condition| self.list(condition))?;
                    self.list(&part.body)
                })
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::Coprocess(_) => Err("it starts a coprocess".into()),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, mut is_fed: bool) -> Done {
        let mut words = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(_, word) => {
                    let name = word.value.split(['=', '+', '[']).next().unwrap_or_default();
                    return Err(format!("`{name}=…` changes what commands do"));
                }
                Item::IoRedirect(redirect) => is_fed |= self.redirect(redirect)?,
                Item::Word(_) | Item::ProcessSubstitution(..) => return Err("its first word is not certain".into()),
            }
        }
        let Some(name) = &simple.word_or_name else { return Ok(()) };
        words.extend(self.words(&name.value)?);
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::Word(word) | Item::AssignmentWord(_, word) => words.extend(self.words(&word.value)?),
                Item::IoRedirect(redirect) => is_fed |= self.redirect(redirect)?,
                Item::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list)?;
                    words.push(Word { text: "<()".into(), sure: Sure::Begin(0) });
                }
            }
        }
        self.push(words, is_fed)
    }

    fn push(&mut self, words: Vec<Word>, is_fed: bool) -> Done {
        let Some(first) = words.first() else { return Ok(()) };
        let name = first.text.as_str();
        if first.sure != Sure::All || name.is_empty() || name.starts_with(['~', '=', '-']) {
            return Err(format!("the program `{name}` is known only when it runs"));
        }
        if CHANGES.contains(&name) {
            return Err(format!("`{name}` may change what later commands mean"));
        }
        self.moves |= MOVES.contains(&name);
        let inner = wrapped::inner(&words, is_fed, self.depth);
        self.commands.push(Simple { words, is_fed, inner });
        Ok(())
    }

    /// The words that a word becomes, after the scripts in it.
    fn words(&mut self, raw: &str) -> Result<Vec<Word>, String> {
        let expansion = word::word(raw, self.depth).map_err(|error| error.to_string())?;
        let is_literal = is_quoted_by('\'', raw);
        if !is_literal && expansion.shown.contains("$_") {
            return Err("an expansion may evaluate what a variable holds".into());
        }
        for script in &expansion.runs {
            let mut within = read(script, self.is_fed, self.depth + 1)?;
            self.commands.append(&mut within);
        }
        let braces = brace::expand(raw, self.depth).map_err(|error| error.to_string())?;
        let sure = if braces.len() > 1 {
            Sure::Begin(raw.find('{').unwrap_or_default())
        } else {
            certainty(raw, &expansion.shown)
        };
        Ok(vec![Word { text: expansion.shown, sure }])
    }

    /// Whether one of them gives the command an input.
    fn redirects(&mut self, redirects: Option<&RedirectList>) -> Result<bool, String> {
        let mut is_fed = false;
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            is_fed |= self.redirect(redirect)?;
        }
        Ok(is_fed)
    }

    /// The same of one; refuses one that writes a file.
    fn redirect(&mut self, redirect: &IoRedirect) -> Result<bool, String> {
        match redirect {
            IoRedirect::File(_, kind, target) => self.file(kind, target),
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.body(&document.doc.value)?;
                }
                Ok(true)
            }
            IoRedirect::HereString(_, text) => self.words(&text.value).map(|_| true),
            IoRedirect::OutputAndError(target, _) => self.sink(&target.value).map(|()| false),
        }
    }

    fn body(&mut self, text: &str) -> Done {
        let expansion = word::body(text, self.depth).map_err(|error| error.to_string())?;
        if expansion.shown.contains("$_") {
            return Err("an expansion may evaluate what a variable holds".into());
        }
        for script in &expansion.runs {
            let mut within = read(script, self.is_fed, self.depth + 1)?;
            self.commands.append(&mut within);
        }
        Ok(())
    }

    fn file(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget) -> Result<bool, String> {
        let reads = match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => true,
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::DuplicateOutput => false,
        };
        match target {
            IoFileRedirectTarget::Fd(_) => Ok(false),
            IoFileRedirectTarget::Duplicate(word) if is_descriptor(&word.value) => Ok(false),
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list)?;
                Ok(true)
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) if reads => {
                self.words(&word.value).map(|_| true)
            }
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                self.sink(&word.value).map(|()| false)
            }
        }
    }

    fn sink(&mut self, raw: &str) -> Done {
        let words = self.words(raw)?;
        match words.as_slice() {
            [Word { text, sure: Sure::All }] if SINKS.contains(&text.as_str()) => Ok(()),
            _ => Err(format!("a redirection writes `{raw}`")),
        }
    }
}

/// The name of a loop's variable may be one that programs or the shell obey.
fn check_variable(name: &str) -> Done {
    let is_plain = name.len() <= VARIABLE_BYTES && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_obeyed =
        ["path", "proxy", "argv", "home", "shell", "prompt", "status"].iter().any(|word| name.contains(word));
    if is_plain && !is_obeyed { Ok(()) } else { Err(format!("the loop sets `{name}`")) }
}

fn is_descriptor(word: &str) -> bool {
    let digits = word.strip_suffix('-').unwrap_or(word);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_quoted_by(quote: char, raw: &str) -> bool {
    let inner = raw.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner.is_some_and(|inner| !inner.contains([quote, '\\']))
}

/// How much of a word is known before it is expanded.
fn certainty(raw: &str, shown: &str) -> Sure {
    if is_quoted_by('\'', raw) {
        return Sure::All;
    }
    let is_quoted = is_quoted_by('"', raw);
    let begin = match (shown.find('$'), shown.find(['*', '?', '[', '{'])) {
        (Some(at), _) if is_quoted => at,
        // Without quotes its value may become several words.
        (Some(_), _) => 0,
        (None, Some(at)) if !is_quoted && shown != "{}" && !matches!(shown, "[" | "{" | "}") => at,
        (None, _) => return if shown.starts_with("<()") { Sure::Begin(0) } else { Sure::All },
    };
    Sure::Begin(begin)
}
