//! How the values of a plugin's section are read: each entry of a list is checked for itself.

use crate::narrow::is_tool_name;
use crate::secrets::Template;
use crate::source::Source;
use crate::{EVERY, HostPattern, each, is_never_passed, mail_account, requests, sha256_hex};
use base::text::names::is_name;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) fn own_base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    crate::base(deserializer).map(Some)
}

pub(super) fn plugin_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<HostPattern>>, D::Error> {
    each(deserializer, HostPattern::exact).map(Some)
}

/// Names of profiles, which are directories.
pub(super) fn profiles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let profile = |text: &str| match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not a valid name of a profile: use 1 to 64 of A-Za-z0-9_-", text.escape_debug())),
    };
    each(deserializer, profile).map(Some)
}

pub(super) fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::method).map(Some)
}

pub(super) fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::prefix).map(Some)
}

pub(super) fn programs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, program).map(Some)
}

pub(super) fn accounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, mail_account).map(Some)
}

pub(super) fn declared_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
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
pub(super) fn values<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Template>>, D::Error> {
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
pub(super) fn set_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = each(deserializer, |text| match text == EVERY || !is_never_passed(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is never passed", text.escape_debug())),
    });
    names.map(Some)
}

pub(super) fn source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Source::elsewhere(&text).map(|_| Some(text)).map_err(D::Error::custom)
}

pub(super) fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    sha256_hex(&text).map(|_| Some(text)).ok_or_else(|| D::Error::custom("must be 64 hex digits"))
}
