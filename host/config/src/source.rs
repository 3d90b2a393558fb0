//! Where the bytes of a plugin come from, as people write it: a file, a URL, or an artifact of a registry.

pub mod digest;
pub mod reference;

use base::text::names::is_name;
pub use digest::Digest;
pub use reference::Reference;
use reference::SCHEME;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// Where the bytes of a plugin come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of this machine.
    File(PathBuf),
    /// A page of the web.
    Url(Url),
    /// An artifact of a registry.
    Oci(Reference),
}

impl Source {
    /// Reads what somebody typed. What does not begin as a URL does is a file.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn parse(given: &OsStr) -> Result<Self, String> {
        match given.to_str().filter(|text| has_scheme(text)) {
            Some(text) => Self::elsewhere(text),
            None => Ok(Self::File(given.into())),
        }
    }

    /// Reads a source that is not a file of this machine.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn elsewhere(text: &str) -> Result<Self, String> {
        if text.starts_with(SCHEME) { Reference::parse(text).map(Self::Oci) } else { page(text).map(Self::Url) }
    }

    /// The name that a plugin from there has, if the source ends in one: the file's, the artifact's.
    #[must_use]
    pub fn plugin_name(&self) -> Option<&str> {
        let last = match self {
            Self::File(path) => path.file_stem().and_then(OsStr::to_str)?,
            Self::Url(url) => {
                let last = url.path().rsplit('/').next().unwrap_or_default();
                last.strip_suffix(".wasm").unwrap_or(last)
            }
            Self::Oci(reference) => reference.repository().rsplit('/').next().unwrap_or_default(),
        };
        Some(last).filter(|name| is_name(name))
    }

    /// The source as settings remember it. A file may be another one tomorrow, and the query of a URL may be somebody's secret.
    #[must_use]
    pub fn remembered(&self) -> Option<String> {
        match self {
            Self::File(_) => None,
            Self::Url(url) => url.query().is_none().then(|| url.to_string()),
            Self::Oci(reference) => Some(reference.to_string()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Url(url) => formatter.write_str(url.as_str()),
            Self::Oci(reference) => write!(formatter, "{reference}"),
        }
    }
}

/// Whether a text begins as a URL does.
fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        let is_of_schemes = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|char: char| char.is_ascii_alphabetic()) && scheme.bytes().all(is_of_schemes)
    })
}

/// A page whose way here nobody can read along: encrypted, or of this machine.
fn page(text: &str) -> Result<Url, String> {
    let shown = text.escape_debug();
    // The parser would leave them out without a word.
    if text.contains(|char: char| char.is_control() || char.is_whitespace()) {
        return Err(format!("`{shown}` has a blank or a control character in it"));
    }
    let url = Url::parse(text).map_err(|error| format!("`{shown}` is not a URL: {error}"))?;
    if !["https", "http"].contains(&url.scheme()) {
        return Err(format!(
            "`{}` is not a scheme that plugins come by: write a path, `https://…`, or `oci://HOST/REPOSITORY:TAG`",
            url.scheme().escape_debug()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a user or a password: omit what comes before the `@`".to_owned());
    }
    if url.fragment().is_some() {
        return Err(format!("`{shown}` has a fragment: omit it"));
    }
    if url.scheme() == "http" && !url.host().is_some_and(|host| is_loopback(&host)) {
        return Err(format!("`{shown}` is not encrypted: write `https://`; `http://` is for this machine alone"));
    }
    Ok(url)
}

/// Whether a host is this machine, by its name or address.
pub fn is_loopback(host: &url::Host<impl AsRef<str>>) -> bool {
    match host {
        url::Host::Domain(name) => name.as_ref() == "localhost" || name.as_ref().ends_with(".localhost"),
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Source, String> {
        Source::parse(OsStr::new(text))
    }

    #[test]
    fn what_does_not_begin_as_a_url_is_a_file() {
        for path in ["word_count.wasm", "./https://x", "/a/b.wasm", "ghcr.io/org/a:1", "a:b", "://x", "1a://x"] {
            assert_eq!(parse(path), Ok(Source::File(path.into())), "{path}");
        }
    }

    #[test]
    fn a_url_is_encrypted_or_of_this_machine() {
        for url in ["https://example.com/a.wasm?x=y", "http://localhost:8080/a", "http://127.0.0.9/a", "http://[::1]/a"]
        {
            assert_eq!(parse(url).map(|source| source.to_string()).as_deref(), Ok(url));
        }
        for (url, refusal) in [
            ("http://example.com/a.wasm", "is not encrypted: write `https://`"),
            ("http://10.0.0.1/a.wasm", "is not encrypted"),
            ("http://localhost.example.com/a", "is not encrypted"),
            ("https://u@example.com/a", "has a user or a password"),
            ("https://example.com/a#b", "has a fragment"),
            ("https://exa\tmple.com/a", "has a blank or a control character"),
            ("https://", "is not a URL: empty host"),
            ("file:///etc/passwd", "`file` is not a scheme that plugins come by"),
            ("docker://ghcr.io/a:1", "write a path, `https://…`, or `oci://HOST/REPOSITORY:TAG`"),
            ("OCI://ghcr.io/a:1", "`oci` is not a scheme"),
            ("oci://ghcr.io/A:1", "is not the name of a repository"),
        ] {
            let refused = parse(url).unwrap_err();
            assert!(refused.contains(refusal), "{url}: {refused}");
        }
    }

    #[test]
    fn what_may_be_a_secret_or_another_file_tomorrow_is_not_remembered() {
        for (text, is_remembered) in [
            ("a.wasm", false),
            ("https://example.com/a.wasm", true),
            ("https://example.com/a.wasm?key=1", false),
            ("oci://ghcr.io/a:1", true),
        ] {
            let remembered = parse(text).unwrap().remembered();
            assert_eq!(remembered, is_remembered.then(|| text.to_owned()));
        }
    }

    #[test]
    fn a_plugin_is_named_after_its_file_or_its_repository() {
        for (text, name) in [
            ("/a/word_count.wasm", Some("word_count")),
            ("https://example.com/releases/1.4/word-count.wasm?raw=1", Some("word-count")),
            ("https://example.com/", None),
            ("https://example.com/word.count.wasm", None),
            ("oci://ghcr.io/org/word_count:1.4", Some("word_count")),
            ("oci://ghcr.io/org/word.count:1.4", None),
        ] {
            assert_eq!(parse(text).unwrap().plugin_name(), name, "{text}");
        }
    }
}
