//! The query, as it stands in a URL.

use crate::Provider;
use std::fmt::Write;
use toolcrib_sdk::{Failure, Result};

/// Characters that a query may have.
pub(crate) const CHARS: usize = 500;
/// Leaves room for the rest of the 2,048 bytes that a URL may have.
const ENCODED_BYTES: usize = 1_800;

/// Writes a query as a form does: blanks as `+`, what has a meaning in URLs by its bytes.
pub(crate) fn encoded<P: Provider>(query: &str) -> Result<String> {
    if query.is_empty() {
        return Err(Failure::invalid("`query` is blank"));
    }
    let (chars, words) = (query.chars().count(), query.split_whitespace().count());
    for (count, what, most) in [(chars, "characters", P::QUERY_CHARS.min(CHARS)), (words, "words", P::QUERY_WORDS)] {
        if count > most {
            return Err(
                Failure::invalid(format!("`query` has {count} {what}, more than {most}")).hint("use fewer words")
            );
        }
    }
    let mut encoded = String::with_capacity(query.len());
    for byte in query.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            b' ' => encoded.push('+'),
            _ => write!(encoded, "%{byte:02X}")?,
        }
    }
    if encoded.len() > ENCODED_BYTES {
        let bytes = encoded.len();
        let message = format!("`query` has {bytes} bytes in a URL, more than {ENCODED_BYTES}");
        return Err(Failure::invalid(message).hint("use fewer words"));
    }
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Found, Rows};
    use toolcrib_sdk::http::{Request, Response};

    struct Wide;
    struct Narrow;

    impl Provider for Wide {
        const NAME: &str = "Wide";

        fn request(query: &str) -> Request {
            Request::get(query)
        }

        fn found(_: &Response) -> Result<Found> {
            Ok(Rows::default().into_found())
        }
    }

    impl Provider for Narrow {
        const NAME: &str = "Narrow";
        const QUERY_CHARS: usize = 10;
        const QUERY_WORDS: usize = 2;

        fn request(query: &str) -> Request {
            Wide::request(query)
        }

        fn found(response: &Response) -> Result<Found> {
            Wide::found(response)
        }
    }

    #[test]
    fn a_query_is_written_as_a_form_writes_it() {
        for (query, expected) in [
            ("hello world", "hello+world"),
            ("a&b", "a%26b"),
            ("a=b", "a%3Db"),
            ("a+b", "a%2Bb"),
            ("a/b", "a%2Fb"),
            ("-_.~", "-_.~"),
            ("é\n\"#?%", "%C3%A9%0A%22%23%3F%25"),
        ] {
            assert_eq!(encoded::<Wide>(query).as_deref(), Ok(expected), "{query}");
        }
    }

    #[test]
    fn a_query_is_not_blank_and_not_too_long() {
        let refused = |query: &str| encoded::<Wide>(query).unwrap_err().message;
        assert_eq!(refused(""), "`query` is blank");
        assert_eq!(refused(&"é".repeat(501)), "`query` has 501 characters, more than 500");
        assert_eq!(refused(&"é".repeat(500)), "`query` has 3000 bytes in a URL, more than 1800");
        assert_eq!(encoded::<Wide>(&"e".repeat(500)), Ok("e".repeat(500)));
    }

    #[test]
    fn a_provider_may_take_less() {
        let refused = |query: &str| encoded::<Narrow>(query).unwrap_err().message;
        assert_eq!(refused("abcdefghijk"), "`query` has 11 characters, more than 10");
        assert_eq!(refused("a b c"), "`query` has 3 words, more than 2");
        assert_eq!(encoded::<Narrow>("a b").as_deref(), Ok("a+b"));
    }
}
