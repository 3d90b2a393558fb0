//! `[plugin.NAME]`: the bytes that a section is about, and their rights. `rights.rs` makes rights of it.

use super::narrow::is_tool_name;
use super::secrets::{self, Template};
use super::shell::PluginShell;
use super::{HostPattern, base, each, is_never_passed, mail_account, requests, sha256_hex};
use crate::EVERY;
use crate::source::Source;
use base::event_kind::KindPattern;
use base::text::names::is_name;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `[plugin.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSection {
    /// Where its file was fetched from: a URL, or an artifact of a registry with its digest. `plugin update` looks there again; it gives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "source")]
    pub source: Option<String>,
    /// The bytes that the section is about, as 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "digest")]
    pub sha256: Option<String>,
    /// The digest of the tool definitions of these bytes when they were allowed; they may not change them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "digest")]
    pub definitions: Option<String>,
    /// Whether its tools are available at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it may run commands, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<PluginShell>,
    /// The directories it may read and write in.
    #[serde(default)]
    pub files: PluginFiles,
    /// The requests it may make.
    #[serde(default)]
    pub http: PluginHttp,
    /// What it may do with a browser.
    #[serde(default)]
    pub browser: PluginBrowser,
    /// The mail accounts it may read; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "accounts")]
    pub mail: Option<Vec<String>>,
    /// The programs it may start.
    #[serde(default)]
    pub exec: PluginExec,
    /// The declared programs it may run; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared_names")]
    pub programs: Option<Vec<String>>,
    /// The events it may hand over.
    #[serde(default)]
    pub embedder: PluginEmbedder,
    /// The tools that it may submit as jobs; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared_names")]
    pub jobs: Option<Vec<String>>,
    /// Whether it may have jobs and events at set times, as far as it may have such jobs and events at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules: Option<bool>,
    /// Whether it may keep documents from one call to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<bool>,
    /// Whether it may look at settings, and at what toolsets declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspect: Option<bool>,
    /// Values for it, by their names. It gets words that stand for the secrets in them, and requests of it to their hosts the secrets.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values")]
    pub config: Option<BTreeMap<String, Template>>,
}

/// `[plugin.NAME.files]`; an empty list means nowhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFiles {
    /// Where it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<PathBuf>>,
    /// Where it may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<PathBuf>>,
}

/// `[plugin.NAME.http]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginHttp {
    /// The hosts it may reach.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "plugin_hosts")]
    pub hosts: Option<Vec<HostPattern>>,
    /// The methods its requests may have; GET and HEAD unless set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "methods")]
    pub methods: Option<Vec<String>>,
    /// The path prefixes it may reach, by whole segments; all unless set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "prefixes")]
    pub paths: Option<Vec<String>>,
    /// What its relative URLs start from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "own_base")]
    pub base: Option<String>,
    /// Headers of its requests that hold secrets, by their names in lower case; it cannot set these itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secrets::headers")]
    pub headers: Option<BTreeMap<String, Template>>,
}

/// `[plugin.NAME.browser]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginBrowser {
    /// The hosts that its pages, and all that these load, may come from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "plugin_hosts")]
    pub hosts: Option<Vec<HostPattern>>,
    /// The profiles that it may use which stay.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "profiles")]
    pub profiles: Option<Vec<String>>,
    /// Whether it may have pages run scripts of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate: Option<bool>,
    /// Whether files that its pages download are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<bool>,
    /// Whether it may give pages files that it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<bool>,
    /// The secrets that it may have put into password fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
}

/// `[plugin.NAME.exec]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginExec {
    /// The programs it may start without a shell, by name or path; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "programs")]
    pub programs: Option<Vec<String>>,
    /// The variables it may set for them; `*` means all that may be set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "set_names")]
    pub environment: Option<Vec<String>>,
}

/// `[plugin.NAME.embedder]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginEmbedder {
    /// The kinds of events it may hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<KindPattern>>,
}

fn own_base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    base(deserializer).map(Some)
}

fn plugin_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<HostPattern>>, D::Error> {
    each(deserializer, HostPattern::exact).map(Some)
}

/// Names of profiles, which are directories.
fn profiles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let profile = |text: &str| match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not a valid name of a profile: use 1 to 64 of A-Za-z0-9_-", text.escape_debug())),
    };
    each(deserializer, profile).map(Some)
}

fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::method).map(Some)
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::prefix).map(Some)
}

fn programs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, program).map(Some)
}

fn accounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, mail_account).map(Some)
}

fn declared_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, declared).map(Some)
}

/// Reads the name of a declared program, or `*`.
///
/// # Errors
/// A fragment that says what it should be.
pub fn declared(text: &str) -> Result<String, String> {
    match text == EVERY || is_tool_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is no name of a declared program, nor `*`", text.escape_debug())),
    }
}

/// Reads the name of a program: one that is found on `PATH`, or an absolute path.
///
/// # Errors
/// A fragment that says what to write instead.
pub fn program(text: &str) -> Result<String, String> {
    let is_name = !text.contains('/') && !["", ".", ".."].contains(&text);
    let is_path = Path::new(text).is_absolute() && !text.ends_with('/');
    let fits = (is_name || is_path) && !text.contains(|char: char| char.is_control());
    let refused = || format!("`{}` is not a program: write `git`, `/usr/bin/git`, or `*`", text.escape_debug());
    fits.then(|| text.to_owned()).ok_or_else(refused)
}

/// The values of a plugin, by their names.
fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, Template>>, D::Error> {
    let written = BTreeMap::<String, String>::deserialize(deserializer)?;
    let read = |(name, text): (String, String)| {
        if name.is_empty() || name.contains(|char: char| char == '=' || char.is_control()) {
            return Err(D::Error::custom(format!("`{}` cannot be the name of a value", name.escape_debug())));
        }
        Template::value(&text).map(|template| (name, template)).map_err(D::Error::custom)
    };
    written.into_iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Names of variables that calls may set.
fn set_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = each(deserializer, |text| match text == EVERY || !is_never_passed(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is never passed", text.escape_debug())),
    });
    names.map(Some)
}

fn source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Source::elsewhere(&text).map(|_| Some(text)).map_err(D::Error::custom)
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    sha256_hex(&text).map(|_| Some(text)).ok_or_else(|| D::Error::custom("must be 64 hex digits"))
}
