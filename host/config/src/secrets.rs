//! What settings say of secrets: `[secret.NAME]`, the headers that hold them, and `[leaks]`.
//!
//! Values are read in `secrets.rs`; where they may go is decided by the grants of `policy/`.

use super::HostPattern;
use super::variables::is_never_passed;
use base::text::names::is_name;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `[secret.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretSection {
    /// The file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The program that prints it, with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "command")]
    pub command: Option<Vec<String>>,
    /// The hosts that it may go to, each named exactly.
    #[serde(default, deserialize_with = "named_hosts")]
    pub hosts: Vec<HostPattern>,
    /// Whether a command may get it as a variable, where `shell_secrets` names it.
    #[serde(default)]
    pub env: bool,
}

/// `[leaks]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaks {
    /// What happens to a result or event that holds a secret.
    pub results: LeakAction,
    /// What happens to a request that holds one where no setting has put it.
    pub requests: LeakGate,
    /// What happens to a command that holds one, or to keys.
    pub commands: LeakGate,
    /// What happens to a write of a tool that holds one.
    pub writes: LeakGate,
    /// What happens to an event for the embedder that holds one.
    pub embedder: LeakAction,
    /// What happens where something looks like a secret.
    pub shapes: ShapeAction,
}

/// What happens to what comes back with a secret in it, laxest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakAction {
    /// It passes, with a notice.
    Warn,
    /// The secret's name takes its place.
    Redact,
    /// Nothing of it passes.
    Block,
}

/// What happens to an action with a secret in it, laxest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakGate {
    /// It is done, with a notice.
    Warn,
    /// It is refused.
    Block,
}

/// What happens where something looks like a secret, laxest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeAction {
    /// Nothing: it is not looked for.
    Off,
    /// The result has a notice; private keys are taken out of it.
    Warn,
    /// Results that hold such a thing are held back; requests, commands, writes and events are refused.
    Block,
}

/// A text with the names of secrets in it, written `${secret:NAME}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Text(String),
    /// The value of the secret of this name.
    Secret(String),
}

/// How the name of a secret begins and ends in a template.
const OPEN: &str = "${secret:";
const CLOSE: char = '}';

impl Template {
    /// Reads the value of a header.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err("a header's value has visible ASCII characters only".into());
        }
        Self::value(text)
    }

    /// Reads any other value.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn value(text: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once(OPEN) {
            let (name, after) = behind.split_once(CLOSE).ok_or_else(|| format!("`{OPEN}` without a `{CLOSE}`"))?;
            if !is_name(name) {
                return Err(format!("`{}` is not the name of a secret", name.escape_debug()));
            }
            parts.extend((!before.is_empty()).then(|| Part::Text(before.to_owned())));
            parts.push(Part::Secret(name.to_owned()));
            rest = after;
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        Ok(Self(parts))
    }

    /// Its pieces, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The names of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Secret(name) => Some(name.as_str()),
        })
    }
}

impl std::fmt::Display for Template {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => formatter.write_str(text),
            Part::Secret(name) => write!(formatter, "{OPEN}{name}{CLOSE}"),
        })
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The headers of a plugin's requests that settings write, by their names in lower case.
pub(super) fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Template>>, D::Error> {
    let written = BTreeMap::<String, Template>::deserialize(deserializer)?;
    let read = |(name, template): (String, Template)| {
        let lower = name.to_ascii_lowercase();
        match crate::headers::check_header(&lower) {
            Ok(()) => Ok((lower, template)),
            Err(why) => Err(D::Error::custom(format!("`{}` {why}", name.escape_debug()))),
        }
    };
    written.into_iter().map(read).collect::<Result<_, _>>().map(Some)
}

pub(super) fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let argv = Vec::<String>::deserialize(deserializer)?;
    match argv.first() {
        Some(program) if !program.is_empty() => Ok(Some(argv)),
        Some(_) | None => Err(D::Error::custom("it begins with a program, such as [\"pass\", \"show\", \"github\"]")),
    }
}

impl SecretSection {
    /// Reads a host by its whole name: a secret goes to no host that nobody has written down.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn host(text: &str) -> Result<HostPattern, String> {
        match HostPattern::exact(text)? {
            HostPattern::Exact(name) => Ok(HostPattern::Exact(name)),
            HostPattern::Range(range) if range.prefix_len() == range.max_prefix_len() => Err(format!(
                "`{}` is an address, and a secret goes to hosts by their names: write the name that is in the server's certificate, such as `localhost`",
                text.escape_debug()
            )),
            HostPattern::Below(_) | HostPattern::Domain(_) | HostPattern::Range(_) => Err(format!(
                "`{}` does not name one host: write it whole, such as `api.example.com`",
                text.escape_debug()
            )),
        }
    }
}

fn named_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPattern>, D::Error> {
    super::each(deserializer, SecretSection::host)
}

/// Names of secrets that commands get as variables.
pub(super) fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| !is_variable(name)) {
        Some(name) => {
            let message = format!("`{}` cannot be the name of a variable that a command gets", name.escape_debug());
            Err(D::Error::custom(message))
        }
        None => Ok(names),
    }
}

/// Whether a secret can be a variable under its name.
fn is_variable(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && is_name(name) && !name.starts_with(|c: char| c.is_ascii_digit()) && !is_never_passed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_its_secrets_and_reads_as_it_was_written() {
        for (text, secrets) in [
            ("Bearer ${secret:GITHUB}", vec!["GITHUB"]),
            ("${secret:a}:${secret:b-c}", vec!["a", "b-c"]),
            ("plain $ {secret}", vec![]),
            ("", vec![]),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.to_string(), text);
            assert_eq!(template.secrets().collect::<Vec<_>>(), secrets);
        }
        for odd in ["${secret:", "${secret:a b}", "${secret:}", "a\nb", "ä"] {
            assert!(Template::parse(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn variables_of_loaders_and_shells_are_not_names_of_secrets() {
        for (name, fits) in
            [("GITHUB", true), ("_x1", true), ("1x", false), ("a-b", false), ("LD_PRELOAD", false), ("", false)]
        {
            assert_eq!(is_variable(name), fits, "{name}");
        }
    }
}
