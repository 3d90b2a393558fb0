//! `[mail.NAME]`: the user's mail accounts. They are read by `mail/`, where `policy/mail.rs` allows it.

use super::each;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The port of IMAP over TLS.
const PORT: u16 = 993;

/// `[mail.NAME]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailSection {
    /// The account's server.
    #[serde(default, deserialize_with = "host")]
    pub host: String,
    /// Its port, on which TLS begins at once.
    #[serde(default = "port_of_imap", deserialize_with = "port")]
    pub port: u16,
    /// Who logs in.
    #[serde(default, deserialize_with = "line")]
    pub user: String,
    /// The name of the secret that is the password or the token.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secret")]
    pub secret: Option<String>,
    /// The program that prints that, with its arguments, in place of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::secrets::command")]
    pub token_command: Option<Vec<String>>,
    /// What it logs in with.
    #[serde(default)]
    pub login: MailLogin,
    /// The folders that may be read; `*` for all.
    #[serde(default = "inbox", deserialize_with = "folders")]
    pub folders: Vec<String>,
    /// By which name the account's own server says what it found of senders; empty for none.
    #[serde(default, deserialize_with = "line")]
    pub authority: String,
}

/// What an account logs in with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MailLogin {
    /// A password, most often one for this program alone.
    #[default]
    Password,
    /// A token, as Google and Microsoft take it.
    Xoauth2,
    /// A token, by RFC 7628.
    Oauthbearer,
}

impl MailSection {
    /// A line that it has to have, and has not, or one too many.
    #[must_use]
    pub fn flaw(&self) -> Option<(&'static str, &'static str)> {
        if self.host.is_empty() {
            return Some(("does not name its server", "host = \"imap.example.com\""));
        }
        if self.user.is_empty() {
            return Some(("does not say who logs in", "user = \"ann@example.com\""));
        }
        match (&self.secret, &self.token_command) {
            (Some(_), None) | (None, Some(_)) => None,
            (None, None) => {
                Some(("does not say what it logs in with", "secret = \"NAME\", the name of a [secret.NAME]"))
            }
            (Some(_), Some(_)) => Some(("has both `secret` and `token_command`", "one of them")),
        }
    }
}

fn port_of_imap() -> u16 {
    PORT
}

fn inbox() -> Vec<String> {
    vec!["INBOX".into()]
}

fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match crate::egress::Target::of_server(&text, PORT) {
        Ok(target) => Ok(target.host().to_string()),
        Err(failure) => Err(D::Error::custom(failure.message)),
    }
}

fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    super::between::<1, 65_535, _>(deserializer).map(|port| u16::try_from(port).expect("the number was checked"))
}

fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    plain(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn plain(text: &str) -> Result<String, String> {
    match text.chars().any(char::is_control) || text.len() > 500 {
        true => Err("must be one line of at most 500 bytes".into()),
        false => Ok(text.to_owned()),
    }
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    match crate::text::names::is_name(&name) {
        true => Ok(Some(name)),
        false => Err(D::Error::custom(format!("`{}` is not the name of a secret", name.escape_debug()))),
    }
}

fn folders<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| match text.is_empty() {
        true => Err("the name of a folder is empty".into()),
        false => plain(text),
    })
}

/// Reads the name of an account, or `*`.
///
/// # Errors
/// A fragment that says what it should be.
pub fn account(text: &str) -> Result<String, String> {
    match text == crate::policy::exec::EVERY || crate::text::names::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not the name of a mail account, nor `*`", text.escape_debug())),
    }
}
