//! Translates the system's messages, which programs print in the language of the person, into English.
//!
//! The translations are those of `strerror_l`, which programs in a cell use too. No library offers it. It also obeys `LANGUAGE`, which commands do
//! not get: where that names another language than `LANG`, refusals are not recognised.

use libc::{c_char, c_int, locale_t};
use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::LazyLock;

/// Errors whose messages are signs of a refusal, with their text in English.
const ERRORS: [(c_int, &str); 10] = [
    (libc::EROFS, super::signs::READ_ONLY),
    (libc::ENOENT, super::signs::MISSING),
    (libc::EBUSY, super::signs::BUSY),
    (libc::EPERM, super::signs::NOT_PERMITTED),
    (libc::ENOSPC, super::signs::NO_SPACE),
    (libc::ENETUNREACH, super::signs::NO_WAY),
    (libc::EAFNOSUPPORT, super::signs::NO_FAMILY),
    (libc::EAGAIN, "Resource temporarily unavailable"),
    (libc::ECONNREFUSED, "Connection refused"),
    (libc::EACCES, "Permission denied"),
];

/// The messages that are not in English.
static MESSAGES: LazyLock<Vec<(String, &'static str)>> = LazyLock::new(read);

#[expect(unsafe_code, reason = "libc has no declaration of it")]
unsafe extern "C" {
    fn strerror_l(error: c_int, locale: locale_t) -> *const c_char;
}

/// A line with the system's messages in English.
pub(super) fn in_english(line: &str) -> Cow<'_, str> {
    with(&MESSAGES, line)
}

fn with<'l>(messages: &[(String, &str)], line: &'l str) -> Cow<'l, str> {
    messages
        .iter()
        .filter(|(message, _)| line.contains(message))
        .fold(line.into(), |line: Cow<'l, str>, (message, english)| line.replace(message, english).into())
}

#[expect(unsafe_code, reason = "no library has messages of another locale than that of the process, which is English")]
fn read() -> Vec<(String, &'static str)> {
    // SAFETY: the name ends with a nul. A null base makes a new locale.
    let locale =
        unsafe { libc::newlocale(libc::LC_MESSAGES_MASK | libc::LC_CTYPE_MASK, c"".as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return Vec::new();
    }
    let message = |(error, english): (c_int, &'static str)| {
        // SAFETY: the locale is one; the text ends with a nul, and is copied before the next call of this thread.
        let text = unsafe { CStr::from_ptr(strerror_l(error, locale)) };
        text.to_str().ok().filter(|text| !text.is_empty() && *text != english).map(|text| (text.to_owned(), english))
    };
    let messages = ERRORS.into_iter().filter_map(message).collect();
    // SAFETY: it was made here, and nothing has it any more.
    unsafe { libc::freelocale(locale) };
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_another_language_are_told_in_english() {
        let messages = [("Das Dateisystem ist nur lesbar".to_owned(), super::super::signs::READ_ONLY)];
        let line = "touch: '/usr/x' kann nicht berührt werden: Das Dateisystem ist nur lesbar";
        assert_eq!(with(&messages, line), "touch: '/usr/x' kann nicht berührt werden: Read-only file system");
        assert_eq!(with(&messages, "all is well"), "all is well");
        assert_eq!(with(&[], line), line);
    }
}
