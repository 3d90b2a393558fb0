//! The id of a message: by it the same message is found again, or none.

use base::envelope::Failure;
use base::text::names::is_name;
use base::text::sanitize;
use std::fmt;

/// Bytes of a folder's name.
const FOLDER_BYTES: usize = 1000;

/// Where a message is. The server numbers the messages of a folder anew when its validity changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageId {
    pub account: String,
    pub folder: String,
    pub(crate) validity: u32,
    pub uid: u32,
}

/// The folder comes last: its name may have any characters.
impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}:{}", self.account, self.validity, self.uid, self.folder)
    }
}

impl MessageId {
    /// Reads an id as it was shown.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u32>().ok().filter(|number| is_plain && *number > 0)
        };
        let read = || {
            let mut fields = text.splitn(4, ':');
            let (account, validity, uid) = (fields.next()?, number(fields.next()?)?, number(fields.next()?)?);
            let folder = fields.next().filter(|folder| !folder.is_empty() && folder.len() <= FOLDER_BYTES)?;
            is_name(account).then(|| Self { account: account.into(), folder: folder.into(), validity, uid })
        };
        read().ok_or_else(|| {
            let shown = sanitize::beginning(text, 80);
            Failure::invalid(format!("`{shown}` is not the id of a message"))
                .hint("give an id as a search has shown it, such as `work:1700000000:42:INBOX`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_as_it_was_written_whatever_the_folder_is_called() {
        for folder in ["INBOX", "a:b:c", "Entwürfe", "x\r\ny", ":"] {
            let id = MessageId { account: "work".into(), folder: folder.into(), validity: 7, uid: u32::MAX };
            assert_eq!(MessageId::parse(&id.to_string()).unwrap(), id);
        }
        for odd in [
            "",
            "work",
            "work:1:2",
            "work:1:2:",
            "work:0:2:a",
            "work:1:-2:a",
            "a b:1:2:c",
            "work:1:4294967296:a",
            "work:+1:2:a",
        ] {
            assert!(MessageId::parse(odd).is_err(), "{odd}");
        }
    }
}
