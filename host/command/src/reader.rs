//! The reader: walks a parsed script and lists the simple commands in it, those within words and wrappers too.
//!
//! Every `match` on the syntax tree names all variants, so that a new one does not compile.

use super::wrapper::{self, Wrapped};
use super::{Command, MAX_DEPTH, Unparsable, brace, cost, lexer, word};
use brush_parser::ast::{
    self, AndOr, AndOrList, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, ExtendedTestExpr,
    IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SeparatorOperator, SimpleCommand,
    UnexpandedArithmeticExpr, Word,
};
use brush_parser::{ParseError, ParserOptions, parse_tokens};

/// Work in all, in bytes read and steps of the grammar: scripts within a script are read again.
const MAX_WORK: usize = 4 << 20;

/// Where a command is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// In the shell that runs the script, not in a child of it.
    in_shell: bool,
    /// The line of the command whose argument is being read.
    line: Option<usize>,
    /// Another command starts it.
    is_wrapped: bool,
    depth: usize,
}

impl Place {
    pub(super) const TOP: Self = Self { in_shell: true, line: None, is_wrapped: false, depth: 0 };
    /// The same where the stack holds no more than one script within another.
    pub(super) const SHALLOW: Self = Self { depth: MAX_DEPTH - 1, ..Self::TOP };

    fn child(self) -> Self {
        Self { in_shell: false, ..self }
    }

    fn deeper(self) -> Result<Self, Unparsable> {
        if self.depth < MAX_DEPTH { Ok(Self { depth: self.depth + 1, ..self }) } else { Err(Unparsable::TooNested) }
    }
}

/// The words of a text that is one simple command and nothing else.
pub(super) fn sole_command(text: &str) -> Option<Vec<String>> {
    let words = sole_words(text)?;
    Some(words.into_iter().map(|(_, shown)| shown).collect())
}

/// The same, each as it is written and without its quotes.
pub(super) fn sole_words(text: &str) -> Option<Vec<(String, String)>> {
    let program = Reader::new().parse(text, 0).ok()?;
    let [CompoundList(items)] = program.complete_commands.as_slice() else { return None };
    let [ast::CompoundListItem(AndOrList { first, additional }, SeparatorOperator::Sequence)] = items.as_slice() else {
        return None;
    };
    let Pipeline { timed: None, bang: false, seq } = first else { return None };
    let [ast::Command::Simple(SimpleCommand { prefix: None, word_or_name: Some(name), suffix })] = seq.as_slice()
    else {
        return None;
    };
    let mut words = vec![name];
    for item in suffix.iter().flat_map(|suffix| &suffix.0) {
        match item {
            Item::Word(word) | Item::AssignmentWord(_, word) => words.push(word),
            Item::IoRedirect(_) | Item::ProcessSubstitution(..) => return None,
        }
    }
    let words = words.into_iter().map(|word| {
        let read = word::word(&word.value, 0).ok().filter(|read| read.runs.is_empty());
        read.map(|read| (word.value.clone(), read.shown))
    });
    words.collect::<Option<_>>().filter(|_| additional.is_empty())
}

pub(super) struct Reader {
    pub(super) commands: Vec<Command>,
    left: usize,
}

type Done = Result<(), Unparsable>;

impl Reader {
    pub(super) fn new() -> Self {
        Self { commands: Vec::new(), left: MAX_WORK }
    }

    pub(super) fn script(&mut self, text: &str, place: Place) -> Done {
        let program = self.parse(text, place.depth)?;
        program.complete_commands.iter().try_for_each(|list| self.list(list, place))
    }

    fn parse(&mut self, text: &str, depth: usize) -> Result<ast::Program, Unparsable> {
        // Plain syntax first: with extended globs, `!(rm x)` is a pattern rather than a negated subshell.
        match self.parse_as(text, depth, false) {
            Err(Unparsable::Syntax(_)) => self.parse_as(text, depth, true),
            decided => decided,
        }
    }

    pub(super) fn parse_as(
        &mut self,
        text: &str,
        depth: usize,
        extended_globs: bool,
    ) -> Result<ast::Program, Unparsable> {
        self.spend(text.len())?;
        let tokens = lexer::tokens(text, depth, extended_globs)?;
        self.spend(cost::of(&tokens, depth)?)?;
        parse_tokens(&tokens, &ParserOptions::default()).map_err(|error| {
            Unparsable::Syntax(match error {
                ParseError::ParsingNear(position) => format!("syntax error on line {}", position.line),
                ParseError::ParsingAtEndOfInput | ParseError::Tokenizing { .. } => "syntax error at its end".to_owned(),
            })
        })
    }

    fn spend(&mut self, work: usize) -> Done {
        self.left = self.left.checked_sub(work).ok_or(Unparsable::TooComplex)?;
        Ok(())
    }

    fn list(&mut self, list: &CompoundList, place: Place) -> Done {
        list.0.iter().try_for_each(|item| {
            let place = match item.1 {
                SeparatorOperator::Async => place.child(),
                SeparatorOperator::Sequence => place,
            };
            self.and_or(&item.0, place)
        })
    }

    fn and_or(&mut self, list: &AndOrList, place: Place) -> Done {
        self.pipeline(&list.first, place)?;
        list.additional.iter().try_for_each(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline, place),
        })
    }

    /// The last command of a pipeline runs in a child of bash, but in zsh's own shell.
    fn pipeline(&mut self, pipeline: &Pipeline, place: Place) -> Done {
        let last = pipeline.seq.len().saturating_sub(1);
        pipeline.seq.iter().enumerate().try_for_each(|(index, command)| {
            let place = if index == last { place } else { place.child() };
            self.command(command, place, index == 0 && pipeline.timed.is_some())
        })
    }

    fn command(&mut self, command: &ast::Command, place: Place, timed: bool) -> Done {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, place, timed),
            ast::Command::Compound(compound, redirects) => {
                self.redirects(redirects.as_ref(), place)?;
                self.compound(compound, place)
            }
            // Whoever calls it, and whether: its body counts.
            ast::Command::Function(function) => {
                self.redirects(function.body.1.as_ref(), place)?;
                self.compound(&function.body.0, place)
            }
            ast::Command::ExtendedTest(test, redirects) => {
                self.redirects(redirects.as_ref(), place)?;
                self.test(&test.expr, place)
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, place: Place) -> Done {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => {
                self.arithmetic(&arithmetic.expr, place)?;
                // dash knows no arithmetic commands: there these are two subshells.
                match self.script(&arithmetic.expr.value, place.child().deeper()?) {
                    Err(Unparsable::Syntax(_)) => Ok(()),
                    decided => decided,
                }
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                parts.into_iter().flatten().try_for_each(|part| self.arithmetic(part, place))?;
                self.list(&clause.body.list, place)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, place),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, place.child()),
            CompoundCommand::ForClause(clause) => {
                self.words(clause.values.iter().flatten(), place)?;
                self.list(&clause.body.list, place)
            }
            CompoundCommand::CaseClause(clause) => {
                self.words([&clause.value], place)?;
                clause.cases.iter().try_for_each(|case| {
                    self.words(&case.patterns, place)?;
                    case.cmd.iter().try_for_each(|list| self.list(list, place))
                })
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, place)?;
                self.list(&clause.then, place)?;
                clause.elses.iter().flatten().try_for_each(|part| {
                    part.condition.iter().try_for_each(|condition| self.list(condition, place))?;
                    self.list(&part.body, place)
                })
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, place)?;
                self.list(&clause.1.list, place)
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body, place.child(), false),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, place: Place, timed: bool) -> Done {
        let line = place.line.or_else(|| Some(simple.word_or_name.as_ref()?.loc.as_ref()?.start.line));
        let place = Place { line, ..place };
        self.items(simple.prefix.iter().flat_map(|prefix| &prefix.0), place)?;
        let Some(name) = &simple.word_or_name else { return Ok(()) };
        let mut words = self.in_braces(name, place)?;
        // A shell without the keyword runs the program `time`, which has options.
        if timed && words.first().is_some_and(|word| word.starts_with('-')) {
            words.insert(0, "time".to_owned());
        }
        words.extend(self.items(simple.suffix.iter().flat_map(|suffix| &suffix.0), place)?);
        // `{,}` alone is nothing.
        if words.is_empty() { Ok(()) } else { self.record(words, place) }
    }

    fn items<'i>(&mut self, items: impl Iterator<Item = &'i Item>, place: Place) -> Result<Vec<String>, Unparsable> {
        let mut words = Vec::new();
        for item in items {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect, place)?,
                // The word of an assignment has its value in it, and all of an array.
                Item::Word(word) | Item::AssignmentWord(_, word) => words.extend(self.in_braces(word, place)?),
                Item::ProcessSubstitution(_, subshell) => {
                    self.list(&subshell.list, place.child())?;
                    words.push("<()".to_owned());
                }
            }
        }
        Ok(words)
    }

    fn record(&mut self, words: Vec<String>, place: Place) -> Done {
        self.spend(words.iter().map(|word| word.len() + 1).sum())?;
        let (wrapped, same_shell) = wrapper::unwrap(&words);
        let (line, is_whole) = (place.line.unwrap_or(1), !place.is_wrapped);
        self.commands.push(Command { words, line, in_shell: place.in_shell, is_whole });
        let inner = Place { in_shell: place.in_shell && same_shell, is_wrapped: true, ..place };
        wrapped.into_iter().try_for_each(|wrapped| match wrapped {
            Wrapped::Words(words) => self.record(words, inner.deeper()?),
            Wrapped::Script(text) => self.script(&text, inner.deeper()?),
        })
    }

    fn words<'w>(&mut self, words: impl IntoIterator<Item = &'w Word>, place: Place) -> Done {
        words.into_iter().try_for_each(|word| self.word(word, place))
    }

    /// Returns the words that a word becomes, without quotes.
    fn in_braces(&mut self, word: &Word, place: Place) -> Result<Vec<String>, Unparsable> {
        let words = brace::expand(&word.value, place.depth)?;
        if words.len() > 1 {
            self.spend(words.iter().map(|word| word.len() + 1).sum())?;
        }
        words.iter().map(|word| self.unquoted(word, place)).collect()
    }

    fn word(&mut self, word: &Word, place: Place) -> Done {
        self.unquoted(&word.value, place).map(drop)
    }

    /// Returns the word without its quotes.
    fn unquoted(&mut self, word: &str, place: Place) -> Result<String, Unparsable> {
        let expansion = word::word(word, place.depth)?;
        self.expansions(expansion.runs, place)?;
        Ok(expansion.shown)
    }

    fn arithmetic(&mut self, expression: &UnexpandedArithmeticExpr, place: Place) -> Done {
        self.expansions(word::body(&expression.value, place.depth)?.runs, place)
    }

    fn expansions(&mut self, scripts: Vec<String>, place: Place) -> Done {
        scripts.into_iter().try_for_each(|script| self.script(&script, place.child().deeper()?))
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, place: Place) -> Done {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect, place))
    }

    fn redirect(&mut self, redirect: &IoRedirect, place: Place) -> Done {
        match redirect {
            IoRedirect::File(_, _, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    self.words([word], place)
                }
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => self.list(&subshell.list, place.child()),
                IoFileRedirectTarget::Fd(_) => Ok(()),
            },
            IoRedirect::HereDocument(_, document) if document.requires_expansion => {
                self.expansions(word::body(&document.doc.value, place.depth)?.runs, place)
            }
            IoRedirect::HereDocument(..) => Ok(()),
            IoRedirect::HereString(_, word) | IoRedirect::OutputAndError(word, _) => self.words([word], place),
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr, place: Place) -> Done {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, place)?;
                self.test(right, place)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner, place),
            ExtendedTestExpr::UnaryTest(_, word) => self.words([word], place),
            ExtendedTestExpr::BinaryTest(_, left, right) => self.words([left, right], place),
        }
    }
}
