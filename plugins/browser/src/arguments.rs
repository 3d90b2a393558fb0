//! How elements, texts for fields and answers to dialogs are given.

use toolcrib_sdk::browser::{Answer, Entry};
use toolcrib_sdk::{Failure, Result};

/// Returns the id of an element: `e17`, also where a model wrote `[e17]` or `17`. Whether there is such an element is the host's to say.
pub(crate) fn element(argument: &str, given: &str) -> Result<String> {
    let id = given.trim().trim_start_matches('[').trim_end_matches(']').trim();
    if id.is_empty() {
        return Err(
            Failure::invalid(format!("`{argument}` is blank")).hint("give an id that a snapshot shows, such as `e17`")
        );
    }
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    Ok(if is_number { format!("e{id}") } else { id.into() })
}

/// Returns what goes into a field: a text, which may be empty, or a secret.
pub(crate) fn entry(text: Option<String>, secret: Option<String>) -> Result<Entry> {
    match (text, secret) {
        (Some(text), None) => Ok(Entry::Text(text)),
        (None, Some(name)) => Ok(Entry::Secret(name)),
        (Some(_), Some(_)) => Err(Failure::invalid("both `text` and `secret` are given").hint("omit one of them")),
        (None, None) => Err(Failure::invalid("neither `text` nor `secret` is given")
            .hint("give what to enter as `text`, or the name of a secret as `secret`")),
    }
}

/// Returns how dialogs are answered; none where nothing is said of them. A text for a `prompt` accepts it.
pub(crate) fn dialogs(accept: Option<bool>, text: Option<String>) -> Result<Option<Answer>> {
    match (accept, text) {
        (None, None) => Ok(None),
        (Some(false), Some(_)) => Err(Failure::invalid("`prompt_text` is for dialogs that are accepted")
            .hint("omit it, or set `accept_dialogs` to true")),
        (Some(accept), None) => Ok(Some(Answer { accept, text: None })),
        (None | Some(true), text) => Ok(Some(Answer { accept: true, text })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_named_as_pages_show_it_or_by_its_number() {
        for given in ["e17", " e17 ", "[e17]", "17", "[17]"] {
            assert_eq!(element("element", given), Ok("e17".into()), "{given}");
        }
        assert_eq!(element("element", "f2e17"), Ok("f2e17".into()));
        for blank in ["", " ", "[]"] {
            let failure = element("within", blank).unwrap_err();
            assert_eq!(failure.message, "`within` is blank");
            assert!(failure.hint.unwrap().contains("`e17`"));
        }
    }

    #[test]
    fn a_text_for_a_prompt_accepts_it() {
        let answer = |accept, text: Option<&str>| dialogs(accept, text.map(Into::into)).unwrap();
        assert!(answer(None, None).is_none());
        for (accept, text, wanted) in [
            (None, Some("5"), (true, Some("5"))),
            (Some(true), Some("5"), (true, Some("5"))),
            (Some(true), None, (true, None)),
            (Some(false), None, (false, None)),
        ] {
            let answer = answer(accept, text).unwrap();
            assert_eq!((answer.accept, answer.text.as_deref()), wanted);
        }
    }
}
