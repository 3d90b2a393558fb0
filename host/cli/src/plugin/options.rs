//! The options of `toolcrib plugin allow` that give rights, made from the table of all of them: each writes a key of the plugin's section.
//!
//! What an entry may be is for the section to say, which reads it.

use super::super::setup::{usage, working_directory};
use ::config::PluginSection;
use base::capability::{AllowOption, OPTIONS, Takes};
use base::paths::canonical;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::PathBuf;
use toml::{Table, Value};
use toolcrib::envelope::Failure;

/// The rights that options name: keys of a section with their values, none where one is to go back to what it is by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights(Vec<(&'static str, Option<Given>)>);

/// The value of an option.
#[derive(Clone, Debug)]
enum Given {
    On,
    Words(Vec<String>),
    Directories(Vec<PathBuf>),
}

impl Args for Rights {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, option| {
            let name = name(option.option);
            let narrowings = option.narrowed_by.iter().map(|narrowing| {
                argument(narrowing.option, narrowing.help, narrowing.key, Takes::Words).requires(name)
            });
            command.arg(argument(option.option, option.help, option.key, option.takes)).args(narrowings)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Rights {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rights = Self::default();
        rights.update_from_arg_matches(matches)?;
        Ok(rights)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = OPTIONS.iter().flat_map(|option| of_option(option, matches)).collect();
        Ok(())
    }
}

/// What an option gives, if it is there. Those that narrow it belong to it: a host that was allowed before would otherwise get the methods and
/// paths of another.
fn of_option(option: &AllowOption, matches: &ArgMatches) -> Vec<(&'static str, Option<Given>)> {
    let Some(value) = given(option.option, option.takes, matches) else { return Vec::new() };
    let narrowings = option.narrowed_by.iter();
    let narrowed = narrowings.map(|narrowing| (narrowing.key, given(narrowing.option, Takes::Words, matches)));
    [(option.key, Some(value))].into_iter().chain(narrowed).collect()
}

fn given(option: &str, takes: Takes, matches: &ArgMatches) -> Option<Given> {
    let name = name(option);
    match takes {
        Takes::Nothing => matches.get_flag(name).then_some(Given::On),
        Takes::Words => Some(Given::Words(matches.get_many(name)?.cloned().collect())),
        Takes::Directories => Some(Given::Directories(matches.get_many(name)?.cloned().collect())),
    }
}

/// The name of an option: `read` of `--read DIR`.
fn name(option: &str) -> &str {
    let typed = option.split_once(' ').map_or(option, |(typed, _)| typed);
    typed.trim_start_matches('-')
}

fn argument(option: &'static str, help: &'static str, key: &'static str, takes: Takes) -> Arg {
    let argument = Arg::new(name(option)).long(name(option)).help(help);
    let parser: ValueParser = match takes {
        Takes::Nothing => return argument.action(ArgAction::SetTrue),
        Takes::Words => ValueParser::new(move |word: &str| checked(key, word)),
        Takes::Directories => value_parser!(PathBuf),
    };
    let value = option.split_once(' ').map(|(_, value)| value).expect("what takes something names it");
    argument.value_name(value).action(ArgAction::Append).value_parser(parser)
}

/// Reads a word as a section would that had it in the list of a key.
fn checked(key: &str, word: &str) -> Result<String, String> {
    let mut section = Table::new();
    set(&mut section, key, vec![word].into());
    let read: Result<PluginSection, _> = section.try_into();
    read.map(|_| word.to_owned()).map_err(|error: toml::de::Error| error.message().to_owned())
}

impl Rights {
    /// Whether an option names one.
    pub(super) fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// Replaces the old value of each right that is named.
    pub(super) fn added_to(&self, section: PluginSection) -> Result<PluginSection, Failure> {
        let here = working_directory()?;
        let located = |directory: &PathBuf| {
            let directory = canonical(&here.join(directory)).into_os_string();
            directory.into_string().map_err(|name| usage(format!("`{}` is not UTF-8", name.display())))
        };
        let mut section = written(&section);
        for (key, given) in &self.0 {
            match given {
                None => unset(&mut section, key),
                Some(Given::On) => set(&mut section, key, true.into()),
                Some(Given::Words(words)) => set(&mut section, key, words.clone().into()),
                Some(Given::Directories(all)) => {
                    set(&mut section, key, all.iter().map(located).collect::<Result<Vec<_>, _>>()?.into());
                }
            }
        }
        Ok(section.try_into().expect("each entry was checked when it was given"))
    }
}

/// A section as it is written.
pub(super) fn written(section: &PluginSection) -> Table {
    Table::try_from(section).expect("a section came from TOML")
}

/// The entry of a key of a section, such as `files.read`.
pub(super) fn entry<'t>(section: &'t Table, key: &str) -> Option<&'t Value> {
    match key.split_once('.') {
        Some((above, below)) => section.get(above)?.get(below),
        None => section.get(key),
    }
}

/// Sets such an entry. What stood above it and was no table makes room: `shell.pane` of `shell`.
fn set(section: &mut Table, key: &str, value: Value) {
    let Some((above, below)) = key.split_once('.') else {
        section.insert(key.to_owned(), value);
        return;
    };
    match section.get_mut(above).and_then(Value::as_table_mut) {
        Some(table) => _ = table.insert(below.to_owned(), value),
        None => _ = section.insert(above.to_owned(), Table::from_iter([(below.to_owned(), value)]).into()),
    }
}

fn unset(section: &mut Table, key: &str) {
    if let Some((above, below)) = key.split_once('.')
        && let Some(table) = section.get_mut(above).and_then(Value::as_table_mut)
    {
        table.remove(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::config::{HostPattern, PluginShell, requests};

    fn rights(line: &[&str]) -> Rights {
        let command = Rights::augment_args(Command::new("allow").no_binary_name(true));
        Rights::from_arg_matches(&command.try_get_matches_from(line).unwrap_or_else(|error| panic!("{error}"))).unwrap()
    }

    #[test]
    fn a_word_is_refused_as_its_reader_refuses_it() {
        assert_eq!(checked("http.hosts", "a b"), Err(HostPattern::exact("a b").unwrap_err()));
        assert_eq!(checked("http.methods", "a b"), Err(requests::method("a b").unwrap_err()));
        assert_eq!(checked("http.hosts", "*.example.com"), Ok("*.example.com".into()));
    }

    #[test]
    fn a_right_that_is_named_replaces_what_it_was_and_leaves_the_others() {
        let earlier = rights(&["--shell", "--host", "a.example.com", "--method", "POST", "--read", "/a", "--records"]);
        let earlier = earlier.added_to(PluginSection::default()).unwrap();
        assert_eq!(earlier.shell, Some(PluginShell { commands: true, pane: None }));
        let section =
            rights(&["--pane", "--host", "b.example.com", "--path", "/v1"]).added_to(earlier.clone()).unwrap();
        assert_eq!(section.shell, Some(PluginShell { commands: true, pane: Some(true) }));
        assert_eq!(section.http.hosts, Some(vec![HostPattern::exact("b.example.com").unwrap()]));
        assert_eq!((section.http.methods, section.http.paths), (None, Some(vec!["/v1".into()])));
        assert_eq!((section.files, section.records), (earlier.files, Some(true)));
        assert!(!rights(&[]).is_some());
    }
}
