//! Rules: the answers that a user keeps, `[[allow]]` and `[[deny]]` of their own settings, and `[[deny]]` of policies.
//!
//! Here they are read. What a rule is about, and whether it answers a question, `policy/rules/` decides.

use super::allowlist::locate;
use super::read::{ConfigError, Document, Place, invalid_at};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::ValueDeserializer;
use toml::{Spanned, Value};

/// More rules than anybody writes by hand.
const MOST: usize = 1000;

/// What a rule answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

impl Verdict {
    /// As it is written, and typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// A rule as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSection {
    /// The tool, where `*` stands for any letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The pattern of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A host, with `*.` for those below it, and a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The pattern of a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
    /// The workspace where it counts; none is everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The last day on which it counts, or the time when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time")]
    pub until: Option<String>,
}

/// A rule, and the line where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleLine {
    pub verdict: Verdict,
    pub section: RuleSection,
    pub place: Place,
    /// A policy has it, not the user.
    pub is_policy: bool,
    /// Absolute.
    pub workspace: Option<PathBuf>,
    /// `write` with the home in place of `~`.
    pub write: Option<String>,
    /// When it ends.
    pub ends: Option<Timestamp>,
}

/// As a line of settings.
impl fmt::Display for RuleSection {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let parts = self.parts().map(|(key, value)| format!("{key} = {}", Value::from(value)));
        formatter.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

impl RuleSection {
    /// What it says, in the order in which it is written.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("tool", &self.tool),
            ("command", &self.command),
            ("host", &self.host),
            ("write", &self.write),
            ("workspace", &self.workspace),
            ("until", &self.until),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// Checks it, and finds what it means for a user with this home.
    ///
    /// # Errors
    ///
    /// A fragment that says what to write instead.
    pub fn checked(self, verdict: Verdict, place: Place, is_policy: bool, home: &Path) -> Result<RuleLine, String> {
        let about = [&self.command, &self.host, &self.write].into_iter().flatten().count();
        if about > 1 {
            return Err("has more than one of `command`, `host` and `write`: make a rule of each".into());
        }
        if about == 0 && self.tool.is_none() {
            return Err("is about nothing: add one of `command`, `host`, `write` or `tool`".into());
        }
        if let Some((key, _)) = self.parts().find(|(_, value)| value.trim().is_empty()) {
            return Err(format!("has an empty `{key}`: write a value, or remove the line"));
        }
        let workspace = self.workspace.as_deref().map(|text| locate(text, home, None)).transpose()?;
        let write = self.write.as_deref().map(|text| written(text, home)).transpose()?;
        let ends = self.until.as_deref().map(end).transpose()?;
        Ok(RuleLine { verdict, section: self, place, is_policy, workspace, write, ends })
    }
}

impl RuleLine {
    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= Timestamp::now())
    }
}

impl fmt::Display for RuleLine {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} {}", self.verdict.name(), self.section)
    }
}

/// Takes the rules out of a document.
pub(super) fn take(document: &mut Document<'_>, is_policy: bool, home: &Path) -> Result<Vec<RuleLine>, ConfigError> {
    let mut rules = Vec::new();
    for verdict in [Verdict::Allow, Verdict::Deny] {
        let Some((offset, value)) = document.take(verdict.name()) else { continue };
        let key = verdict.name();
        if is_policy && verdict == Verdict::Allow {
            let message = "`allow` cannot be set by policy: a policy can have [[deny]], and `approval.rules = false`";
            return Err(invalid_at(document.place(offset), message.into()));
        }
        let sections: Result<Vec<Spanned<RuleSection>>, _> = Vec::deserialize(ValueDeserializer::from(value));
        let sections = sections.map_err(|error| {
            let offset = error.span().map_or(offset, |span| span.start);
            invalid_at(document.place(offset), format!("`{key}`: {}", error.message()))
        })?;
        for section in sections {
            let place = document.place(section.span().start);
            let checked = section.into_inner().checked(verdict, place.clone(), is_policy, home);
            rules.push(checked.map_err(|why| invalid_at(place, format!("this [[{key}]] {why}")))?);
        }
    }
    if let Some(rule) = rules.get(MOST) {
        return Err(invalid_at(rule.place.clone(), format!("at most {MOST} rules, not {}", rules.len())));
    }
    rules.sort_by_key(|rule| rule.place.line);
    Ok(rules)
}

/// Takes out the rules of a file that may have none; returns where they are.
pub(super) fn strip(document: &mut Document<'_>) -> Vec<(Place, &'static str)> {
    let taken = [Verdict::Allow, Verdict::Deny].map(Verdict::name);
    let taken = taken.map(|key| document.take(key).map(|(offset, _)| (document.place(offset), key)));
    taken.into_iter().flatten().collect()
}

/// A pattern of paths, with the home in place of `~`.
fn written(text: &str, home: &Path) -> Result<String, String> {
    let shown = text.escape_debug();
    if text.split('/').any(|part| part == "..") {
        return Err(format!("has `..` in `{shown}`: write the path that it means"));
    }
    match text.strip_prefix("~/") {
        Some(rest) => Ok(format!("{}/{rest}", escaped(home))),
        None if text.starts_with('/') => Ok(text.to_owned()),
        None => Err(format!("has a relative `{shown}`: write `~/{shown}` or the whole path from `/`")),
    }
}

/// A directory in which no letter stands for another.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    text.chars()
        .map(|letter| if "*?[]{}!".contains(letter) { format!("[{letter}]") } else { letter.to_string() })
        .collect()
}

/// When a rule ends: after the day, here, or at the time.
fn end(text: &str) -> Result<Timestamp, String> {
    let odd = || {
        format!(
            "has an `until` that is neither a date nor a time: write `2027-01-31` or `2027-01-31T12:00:00Z`, not `{}`",
            text.escape_debug()
        )
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let day = text.parse::<Date>().ok().filter(|_| text.len() == "2027-01-31".len()).ok_or_else(odd)?;
    let next = day.checked_add(1.day()).map_err(|_| odd())?;
    next.to_zoned(TimeZone::system()).map(|time| time.timestamp()).map_err(|_| odd())
}

/// A date of TOML is one without quotes, too.
fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(text)),
        Value::Datetime(time) => Ok(Some(time.to_string())),
        _ => Err(serde::de::Error::custom("`until` is a date or a time, such as 2027-01-31")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicySource, Settings, Sources};

    fn load(user: &str, policy: &str) -> Result<Settings, String> {
        let directory = tempfile::tempdir().unwrap();
        let (path, policies) = (directory.path().join("user.toml"), directory.path().join("policy.toml"));
        std::fs::write(&path, user).unwrap();
        std::fs::write(&policies, policy).unwrap();
        let policies = vec![PolicySource::named(policies)];
        let sources = Sources { home: "/home/u".into(), user: Some(path), policies, ..Sources::default() };
        let shorten = |error: ConfigError| error.to_string().replace(&format!("{}/", directory.path().display()), "");
        Settings::load(&sources).map_err(shorten)
    }

    #[test]
    fn rules_of_a_user_and_of_a_policy_are_read_in_order() {
        let user = "[[deny]]\nhost = \"t.example:443\"\n[[allow]]\ncommand = \"cargo test *\"\nuntil = 2027-01-31\n\
                    [[allow]]\nwrite = \"~/notes/**\"\nworkspace = \"~/work\"\n";
        let rules = load(user, "[[deny]]\ntool = \"git__*\"\n").unwrap().rules;
        let shown: Vec<_> = rules.iter().map(|rule| (rule.to_string(), rule.is_policy)).collect();
        assert_eq!(
            shown,
            [
                ("deny host = \"t.example:443\"".to_owned(), false),
                ("allow command = \"cargo test *\", until = \"2027-01-31\"".to_owned(), false),
                ("allow write = \"~/notes/**\", workspace = \"~/work\"".to_owned(), false),
                ("deny tool = \"git__*\"".to_owned(), true),
            ]
        );
        assert_eq!(rules[2].write.as_deref(), Some("/home/u/notes/**"));
        assert_eq!(rules[2].workspace.as_deref(), Some(Path::new("/home/u/work")));
    }

    #[test]
    fn a_bad_rule_is_named_with_its_place_and_what_to_write() {
        for (user, expected) in [
            ("[[allow]]\n", "user.toml:1:1: this [[allow]] is about nothing: add one of `command`"),
            ("[[allow]]\ncommand = 'a'\nhost = 'b'", "user.toml:1:1: this [[allow]] has more than one of `command`"),
            ("\n[[deny]]\ncommand = ' '", "user.toml:2:1: this [[deny]] has an empty `command`"),
            ("[[allow]]\nwrite = 'notes'", "user.toml:1:1: this [[allow]] has a relative `notes`: write `~/notes`"),
            ("[[allow]]\nwrite = '~/a/../b'", "user.toml:1:1: this [[allow]] has `..` in"),
            ("[[allow]]\ntool = 'x'\nuntil = 'soon'", "user.toml:1:1: this [[allow]] has an `until` that is neither"),
            ("[[allow]]\ntool = 'x'\nworkspace = 'w'", "user.toml:1:1: this [[allow]] `w` is relative"),
        ] {
            let error = load(user, "").err().unwrap_or_else(|| panic!("accepted: {user}"));
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(load("[[allow]]\ncommnd = 'a'", "").unwrap_err().contains("unknown field `commnd`"));
        assert!(load("allow = 1", "").is_err());
        let policy = load("", "[[allow]]\ntool = 'x'").unwrap_err();
        assert!(policy.starts_with("policy.toml:1:3: `allow` cannot be set by policy"), "{policy}");
    }

    #[test]
    fn rules_are_not_an_argument() {
        let sources = Sources { set: vec!["allow=[]".into()], ..Sources::default() };
        let error = Settings::load(&sources).unwrap_err().to_string();
        assert!(error.ends_with("`allow` is not a setting here: rules are in your own settings file alone"), "{error}");
    }

    #[test]
    fn a_rule_ends_after_its_day() {
        let rule = |until: &str| {
            let section = RuleSection { tool: Some("x".into()), until: Some(until.into()), ..RuleSection::default() };
            let place = Place { path: "f".into(), line: 1, column: 1 };
            section.checked(Verdict::Allow, place, false, Path::new("/home/u")).unwrap()
        };
        assert!(rule("2001-01-01").is_over() && rule("2001-01-01T00:00:00Z").is_over());
        assert!(!rule("2999-01-01").is_over() && !rule("2999-01-01T00:00:00+02:00").is_over());
    }
}
