//! What looks like a secret: by its shape, by the name that it has, or as no word and no number is written.
//!
//! It is better to keep too much as a secret than to write one down: what is taken for one by mistake works all the same.

use secrets::shape_in;
use std::path::Path;
use url::Url;

/// In names of secrets, in capital letters.
const PARTS: [&str; 7] = ["TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "KEY", "AUTHORIZATION"];
const WORDS: [&str; 8] = ["PAT", "PWD", "DSN", "AUTH", "BEARER", "COOKIE", "PIN", "PASS"];
/// In other names, which would have one of these.
const HARMLESS: [&str; 3] = ["KEYBOARD", "KEYWORD", "MONKEY"];
/// In names of limits: their values are numbers.
const LIMITS: [&str; 5] = ["TOKENS", "TIMEOUT", "TTL", "LIMIT", "MAX"];
/// Letters and digits in a row that nobody writes by hand, and how many of each.
const RUN: usize = 20;
const RUN_EACH: usize = 3;

/// Whether a name is one that secrets have.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = HARMLESS.iter().fold(name.to_ascii_uppercase(), |name, harmless| name.replace(harmless, ""));
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    PARTS.iter().any(|part| name.contains(part)) || words.any(|word| WORDS.contains(&word))
}

/// Whether the value of a variable or of a header looks like a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    (is_secret_name(name) && !is_plain(name, value)) || is_secret_text(value)
}

/// Whether a text looks like a secret, whatever its name is.
pub(super) fn is_secret_text(text: &str) -> bool {
    shape_in(text).is_some() || urls(text).any(|url| is_secret_in_url(&url)) || (is_random(text) && !is_there(text))
}

/// Whether a URL has a password or a token in it.
pub(super) fn is_secret_in_url(url: &Url) -> bool {
    let mut query = url.query_pairs();
    let mut steps = url.path_segments().into_iter().flatten();
    url.password().is_some()
        || query.any(|(name, value)| (is_secret_name(&name) && !is_plain(&name, &value)) || is_random(&value))
        || steps.any(is_random)
}

/// The arguments that look like secrets, by their places.
pub(super) fn in_arguments(arguments: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    // An option that is followed by its value.
    let mut option = None::<&str>;
    for (at, argument) in arguments.iter().enumerate() {
        let is_option = argument.starts_with('-');
        let is_value = option.take().filter(|_| !is_option).is_some_and(|name| !is_plain(name, argument));
        let named = argument.split_once(['=', ':']);
        let is_named = named.is_some_and(|(name, value)| {
            is_secret_name(name) && !value.starts_with("//") && !is_plain(name, value.trim())
        });
        if is_value || is_named || is_secret_text(argument) {
            found.push(at);
        }
        option = Some(argument.as_str()).filter(|name| is_option && named.is_none() && is_secret_name(name));
    }
    found
}

/// The host and the port of a URL with a password that a text has in it.
pub(super) fn server_of(text: &str) -> Option<(String, Option<u16>)> {
    let url = urls(text).find(|url| url.password().is_some())?;
    let usual = match url.scheme() {
        "postgres" | "postgresql" => Some(5432),
        "mysql" | "mariadb" => Some(3306),
        "redis" | "rediss" => Some(6379),
        "mongodb" => Some(27017),
        "amqp" => Some(5672),
        "amqps" => Some(5671),
        _ => url.port_or_known_default(),
    };
    Some((url.host_str()?.to_owned(), url.port().or(usual)))
}

fn urls(text: &str) -> impl Iterator<Item = Url> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    // Also of `--url=https://…`.
    let pieces = words.filter(|word| word.contains("://")).flat_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        [Some(word), Some(value).filter(|_| !name.contains("://"))]
    });
    pieces.flatten().filter_map(|piece| Url::parse(piece).ok())
}

/// Whether a value is none of a secret, though it has the name of one.
fn is_plain(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_limit = LIMITS.iter().any(|limit| name.contains(limit)) && value.parse::<f64>().is_ok();
    ["", "true", "false"].contains(&value) || is_limit || is_there(value)
}

/// Whether it is the path of something.
fn is_there(text: &str) -> bool {
    Path::new(text).is_absolute() && Path::new(text).exists()
}

/// Whether a text has letters and digits in it as only programs write them: a long row, or a UUID.
fn is_random(text: &str) -> bool {
    let mut rows = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_long = |row: &str| {
        let digits = row.bytes().filter(u8::is_ascii_digit).count();
        row.len() >= RUN && digits >= RUN_EACH && row.len() - digits >= RUN_EACH
    };
    rows.any(is_long) || text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').any(is_uuid)
}

fn is_uuid(text: &str) -> bool {
    text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in ["GITHUB_TOKEN", "apiKey", "DB_PASSWORD", "X-Api-Key", "--auth", "SENTRY_DSN", "Authorization"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "KEYBOARD", "LOG_LEVEL", "AUTHOR", "PINNED", "compat"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn values_are_secrets_by_their_names_or_by_what_they_are() {
        for (name, value) in [
            ("API_TOKEN", "short"),
            ("PASSWORD", "12345678"),
            ("DATABASE_URL", "postgres://app:pw@db.example.com/x"),
            ("X", "https://example.com/?apiKey=abc"),
            ("X", "q8Zr1mB4xK7tV2wL9sD3"),
            ("X", "123e4567-e89b-42d3-a456-426614174000"),
        ] {
            assert!(is_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("MAX_TOKENS", "4096"),
            ("USE_TOKEN", "true"),
            ("KEY_FILE", "/etc/passwd"),
            ("MODEL", "some-model-4-5-20250929"),
            ("URL", "https://example.com/a/b?page=2"),
            ("EMPTY_TOKEN", ""),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn arguments_are_secrets_by_their_options_too() {
        let found = |arguments: &[&str]| {
            in_arguments(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(found(&["-y", "--api-key", "abc", "--port", "80"]), [2]);
        assert_eq!(found(&["--token=abc", "--header", "Authorization: Bearer abc"]), [0, 2]);
        assert_eq!(found(&["--url=mysql://u:pw@db.example.com/x", "mysql://u:pw@db.example.com/x"]), [0, 1]);
        let harmless = ["--key", "--verbose", "stdio", "@scope/pkg@1.2.3", "https://mcp.example.com/mcp"];
        assert!(found(&harmless).is_empty());
    }

    #[test]
    fn a_password_tells_where_it_goes() {
        assert_eq!(server_of("postgres://u:pw@db.example.com/x"), Some(("db.example.com".into(), Some(5432))));
        assert_eq!(server_of("https://u:pw@a.example.com:8443/"), Some(("a.example.com".into(), Some(8443))));
        assert_eq!(server_of("https://a.example.com/"), None);
    }
}
