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
    /// How access tokens are asked for, in place of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<MailRefresh>,
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

/// `refresh` of `[mail.NAME]`: where access tokens come from, and by what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailRefresh {
    /// The token server, an address of `https://`.
    #[serde(default, deserialize_with = "token_server")]
    pub url: String,
    /// As which program the provider knows this one.
    #[serde(default, deserialize_with = "line")]
    pub client_id: String,
    /// The name of the secret that is the refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secret")]
    pub secret: Option<String>,
    /// The name of the secret that the provider gave with `client_id`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secret")]
    pub client_secret: Option<String>,
    /// What the token is for, where the provider wants to be told.
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "line")]
    pub scope: String,
}

impl MailRefresh {
    /// A line that it has to have, and has not.
    fn flaw(&self) -> Option<(&'static str, &'static str)> {
        if self.url.is_empty() {
            return Some(("does not name its token server", "refresh.url = \"https://oauth2.example.com/token\""));
        }
        if self.client_id.is_empty() {
            return Some(("does not say who asks for tokens", "refresh.client_id = \"…\", as the provider gave it"));
        }
        match self.secret {
            Some(_) => None,
            None => Some(("does not name its refresh token", "refresh.secret = \"NAME\", the name of a [secret.NAME]")),
        }
    }

    /// The secrets that go to the token server.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.secret.iter().chain(&self.client_secret)
    }
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
        let sources = [self.secret.is_some(), self.token_command.is_some(), self.refresh.is_some()];
        match (sources.iter().filter(|is_there| **is_there).count(), &self.refresh, self.login) {
            (0, ..) => Some(("does not say what it logs in with", "secret = \"NAME\", the name of a [secret.NAME]")),
            (1, Some(_), MailLogin::Password) => {
                Some(("has `refresh`, and logs in with a password", "login = \"xoauth2\", or \"oauthbearer\""))
            }
            (1, refresh, _) => refresh.as_ref()?.flaw(),
            _ => Some(("has more than one of `secret`, `token_command` and `refresh`", "one of them")),
        }
    }

    /// The names of the secrets that it is used with.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.secret.iter().chain(self.refresh.iter().flat_map(MailRefresh::secrets))
    }

    /// The same, each with the host that it goes to.
    pub fn lent(&self) -> Vec<(String, String)> {
        let own = self.secret.iter().map(|secret| (secret.clone(), self.host.clone()));
        let refresh = self.refresh.iter().flat_map(|refresh| {
            let host = base::target::Target::parse(&refresh.url, None).map(|target| target.host().to_string());
            refresh.secrets().map(move |secret| (secret.clone(), host.clone().unwrap_or_default()))
        });
        own.chain(refresh).collect()
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
    match base::target::Target::of_server(&text, PORT) {
        Ok(target) => Ok(target.host().to_string()),
        Err(failure) => Err(D::Error::custom(failure.message)),
    }
}

fn token_server<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match base::target::Target::parse(&text, None) {
        Ok(target) if target.is_encrypted() => Ok(target.url().to_string()),
        Ok(target) => Err(D::Error::custom(format!("`{target}` is not encrypted: use https://"))),
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
    match base::text::names::is_name(&name) {
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
    match text == crate::EVERY || base::text::names::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is not the name of a mail account, nor `*`", text.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFRESH: &str =
        r#"refresh = { url = "https://oauth2.example.com/token", client_id = "a-client", secret = "TOKEN" }"#;

    fn read(lines: &str) -> Result<MailSection, String> {
        let text = format!("host = \"imap.example.com\"\nuser = \"ann\"\n{lines}");
        toml::from_str(&text).map_err(|error| error.message().to_owned())
    }

    fn flaw(lines: &str) -> Option<&'static str> {
        read(lines).expect("each line is valid").flaw().map(|(what, _)| what)
    }

    #[test]
    fn an_account_logs_in_with_one_thing() {
        let tokens = "login = \"xoauth2\"";
        for lines in ["secret = \"A\"", "token_command = [\"oama\"]", &format!("{REFRESH}\n{tokens}")] {
            assert_eq!(flaw(lines), None, "{lines}");
        }
        assert_eq!(flaw(""), Some("does not say what it logs in with"));
        for lines in ["secret = \"A\"\ntoken_command = [\"oama\"]", &format!("secret = \"A\"\n{REFRESH}\n{tokens}")] {
            assert_eq!(flaw(lines), Some("has more than one of `secret`, `token_command` and `refresh`"), "{lines}");
        }
        assert_eq!(flaw(REFRESH), Some("has `refresh`, and logs in with a password"));
    }

    #[test]
    fn what_a_token_is_asked_for_with_is_said_whole() {
        for (lines, said) in [
            ("refresh = { client_id = \"a\", secret = \"A\" }", "does not name its token server"),
            ("refresh = { url = \"https://a.example/\", secret = \"A\" }", "does not say who asks for tokens"),
            ("refresh = { url = \"https://a.example/\", client_id = \"a\" }", "does not name its refresh token"),
        ] {
            assert_eq!(flaw(&format!("{lines}\nlogin = \"oauthbearer\"")), Some(said), "{lines}");
        }
    }

    #[test]
    fn a_token_server_is_an_encrypted_address() {
        for (url, said) in [
            ("http://oauth2.example.com/token", "use https://"),
            ("oauth2.example.com/token", "it has no scheme"),
            ("https://ann:password@oauth2.example.com/", "carries a user or a password"),
            ("file:///etc/passwd", "not a scheme of the web"),
        ] {
            let why = read(&REFRESH.replace("https://oauth2.example.com/token", url)).expect_err(url);
            assert!(why.contains(said), "{url}: {why}");
        }
        let odd = REFRESH.replace("\"TOKEN\"", "\"a b\"");
        assert!(read(&odd).is_err_and(|why| why.contains("is not the name of a secret")));
        assert!(read(&REFRESH.replace("client_id", "client")).is_err_and(|why| why.contains("client")));
    }

    #[test]
    fn each_secret_goes_to_one_host() {
        let more = REFRESH.replace(" }", ", client_secret = \"CLIENT\" }");
        let lent = read(&format!("{more}\nlogin = \"xoauth2\"")).expect("a section").lent();
        assert_eq!(lent, ["TOKEN", "CLIENT"].map(|secret| (secret.to_owned(), "oauth2.example.com".to_owned())));
        let lent = read("secret = \"A\"").expect("a section").lent();
        assert_eq!(lent, [("A".to_owned(), "imap.example.com".to_owned())]);
    }
}
