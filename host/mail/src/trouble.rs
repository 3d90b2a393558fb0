//! What goes wrong with a server, and which failure of a call that is.

use base::envelope::{Failure, Kind};
use base::text::sanitize;

/// Characters of what a server says that a message shows.
const SHOWN: usize = 200;

/// Why a command did not come to its end.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The connection ended, or the answer did: it may go well on another one.
    Lost(String),
    /// The server says no to this command.
    Refused(String),
    /// It answers what is no answer.
    Nonsense(String),
    /// It sends more than was asked for.
    Limit(String),
    /// It takes too long.
    Slow(String),
    /// The host's own: settings, policy, secrets, the way there.
    Own(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Own(failure)
    }
}

impl Trouble {
    /// The connection cannot be used any more: where its answers end is not known.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Nonsense(_) | Self::Limit(_) | Self::Slow(_) => true,
            Self::Refused(_) | Self::Own(_) => false,
        }
    }

    /// The failure of the call; `account` is its name.
    pub(super) fn told(self, account: &str) -> Failure {
        let unavailable = |what: String| Failure::new(Kind::Unavailable, what);
        match self {
            Self::Lost(why) => unavailable(format!("the mail server of `{account}` broke off: {why}")),
            Self::Refused(why) => unavailable(format!("the mail server of `{account}` refused: {why}")),
            Self::Nonsense(why) => unavailable(format!("the mail server of `{account}` makes no sense: {why}")),
            Self::Limit(why) => Failure::limit(why),
            Self::Slow(why) => Failure::new(Kind::TimedOut, format!("the mail server of `{account}` {why}")),
            Self::Own(failure) => failure,
        }
    }

    /// In a line, for a notice.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Lost(why) => format!("the connection broke off: {why}"),
            Self::Refused(why) => format!("the server refused: {why}"),
            Self::Nonsense(why) => format!("the server makes no sense: {why}"),
            Self::Limit(why) => why.clone(),
            Self::Slow(why) => format!("the server {why}"),
            Self::Own(failure) => failure.message.clone(),
        }
    }
}

/// What a server says, as a message shows it. What is too long ends between two words: the beginning of a password or token is not known for one.
pub(super) fn said(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let text = sanitize::line(&text);
    let Some((end, _)) = text.char_indices().nth(SHOWN) else { return text.into_owned() };
    let whole = text[..end].rfind(char::is_whitespace).unwrap_or_default();
    format!("{}…", text[..whole].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_between_two_words() {
        assert_eq!(said(b"[AUTHENTICATIONFAILED] no"), "[AUTHENTICATIONFAILED] no");
        let long = format!("{} token-{}", "x ".repeat(90).trim_end(), "y".repeat(200));
        assert_eq!(said(long.as_bytes()), format!("{}…", "x ".repeat(90).trim_end()));
        assert_eq!(said("y".repeat(300).as_bytes()), "…");
    }
}
