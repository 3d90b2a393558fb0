//! Options whose value is one of the library's own choices. Their help texts are here; the library has no command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use toolcrib::backend::container::Engine;
use toolcrib::config::UpstreamConfirm;
use toolcrib::formats::{Format, Strictness};
use toolcrib::jobs::JobState;
use toolcrib_serve::mcp::Results;

/// A choice of the library.
pub(super) trait Choice: Copy + Send + Sync + 'static {
    /// All that can be chosen.
    const ALL: &'static [Self];

    /// What is typed.
    fn name(self) -> &'static str;

    /// What it means.
    fn help(self) -> &'static str;
}

impl Choice for Format {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Mcp => "The Model Context Protocol: the result of tools/list",
            Self::OpenaiChat => "OpenAI's chat completions",
            Self::OpenaiResponses => "OpenAI's responses",
            Self::Anthropic => "Anthropic's messages",
            Self::Gemini => "Google's Gemini",
        }
    }
}

impl Choice for Strictness {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Auto => "If the provider makes it the default and no part of the schema is lost",
            Self::On => "For every tool; an error if a schema cannot be expressed in strict mode",
            Self::Off => "Never",
        }
    }
}

impl Choice for Results {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Text => "What a person would read; programs find the envelope in `_meta`",
            Self::Envelope => "The envelope, as one line of JSON",
        }
    }
}

impl Choice for JobState {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Pending => "Waiting for a program that runs it",
            Self::Running => "Running",
            Self::Done => "Ran to its end, whatever its exit status",
            Self::Error => "Could not be run, or not to its end",
            Self::Cancelled => "Ended by somebody",
            Self::Orphaned => "The program that ran it was lost",
        }
    }
}

impl Choice for Engine {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.program()
    }

    fn help(self) -> &'static str {
        match self {
            Self::Docker => "`docker`",
            Self::Podman => "`podman`",
        }
    }
}

impl Choice for UpstreamConfirm {
    const ALL: &'static [Self] = &[Self::None, Self::Writes, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Writes => "writes",
            Self::All => "all",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Writes => "Those of tools that `--reads` does not name",
            Self::All => "All",
        }
    }
}

/// As the help of an option lists them.
pub(super) fn values<T: Choice>() -> impl Iterator<Item = PossibleValue> {
    T::ALL.iter().map(|choice| PossibleValue::new(choice.name()).help(choice.help()))
}

/// The choice of that name.
pub(super) fn named<T: Choice>(name: &str) -> Option<T> {
    T::ALL.iter().copied().find(|choice| choice.name() == name)
}

/// Parses the name of a choice.
pub(super) fn one_of<T: Choice>() -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(values::<T>());
    parser.map(|name| named(&name).expect("only possible values come here"))
}
