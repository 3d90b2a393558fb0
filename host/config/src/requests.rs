//! What settings say of requests: how URLs, methods, path prefixes and name servers are written.
//!
//! Hosts are in `hosts.rs`; how a request is held against all this is in `policy/`.

use std::net::{IpAddr, SocketAddr};
use url::Url;

/// The methods that a request can have.
pub(super) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Those that a plugin has where nothing is said: they are there to change nothing.
pub const READING_METHODS: [&str; 2] = ["GET", "HEAD"];
/// Where name servers listen.
const DNS_PORT: u16 = 53;

/// Reads a URL below which others lie: absolute, of the web, and with a path that ends in `/`.
///
/// # Errors
/// A fragment that says what to write instead.
pub(super) fn base(text: &str) -> Result<Url, String> {
    let (url, shown) = (page(text)?, text.escape_debug());
    if url.query().is_some() {
        return Err(format!("`{shown}` has a query: omit it"));
    }
    if !url.path().ends_with('/') {
        return Err(format!("`{shown}` does not end in `/`: write `{shown}/`"));
    }
    Ok(url)
}

/// Reads the URL of one page of the web.
///
/// # Errors
/// A fragment that says what to write instead.
pub(super) fn page(text: &str) -> Result<Url, String> {
    let shown = text.escape_debug();
    // The parser would leave them out without a word.
    if text.contains(|char: char| char.is_control() || char.is_whitespace()) {
        return Err(format!("`{shown}` has a blank or a control character in it"));
    }
    let url = Url::parse(text).map_err(|error| format!("`{shown}` is not an absolute URL: {error}"))?;
    if !["https", "http"].contains(&url.scheme()) {
        return Err(format!("`{shown}` is not a web address: begin it with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a user or a password: omit what comes before the `@`".to_owned());
    }
    if url.fragment().is_some() {
        return Err(format!("`{shown}` has a fragment: omit it"));
    }
    Ok(url)
}

/// Reads the name of a method.
///
/// # Errors
/// A fragment that says what to write instead.
pub fn method(text: &str) -> Result<String, String> {
    let shown = text.escape_debug();
    let upper = text.to_ascii_uppercase();
    match METHODS.contains(&upper.as_str()) {
        true if upper == text => Ok(upper),
        true => Err(format!("`{shown}` is a method in upper case: write `{upper}`")),
        false => Err(format!("`{shown}` is not a method: use one of {}", METHODS.join(", "))),
    }
}

/// Reads the beginning of a path, and returns it without a last `/`.
///
/// # Errors
/// A fragment that says what to write instead.
pub fn prefix(text: &str) -> Result<String, String> {
    let shown = text.escape_debug();
    if !text.starts_with('/') {
        return Err(format!("`{shown}` does not begin with `/`"));
    }
    if text.contains(['?', '#']) {
        return Err(format!("`{shown}` has a query or a fragment: omit it"));
    }
    if text.contains("//") {
        return Err(format!("`{shown}` has a segment without a name"));
    }
    let normal = as_in_a_url(text);
    if normal != text {
        return Err(format!("`{shown}` is not in the form of a URL: write `{normal}`"));
    }
    Ok(text.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(text).to_owned())
}

/// Returns a path with `.` and `..` resolved and odd characters encoded: requests come with such ones.
fn as_in_a_url(path: &str) -> String {
    let mut url = Url::parse("http://localhost/").expect("this is a URL");
    url.set_path(path);
    url.path().to_owned()
}

/// Returns whether `path` is `prefix` or below it: `/v1` has `/v1/x`, and not `/v10`.
pub fn lies_below(path: &str, prefix: &str) -> bool {
    let above = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reads an address of a name server, with port 53 unless it has one.
///
/// # Errors
/// A fragment that says what to write instead.
pub(super) fn name_server(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
    let server = text.parse::<SocketAddr>().or_else(|_| alone()).ok().filter(|server| server.port() != 0);
    server.ok_or_else(|| {
        let shown = text.escape_debug();
        format!("`{shown}` is not a valid name server: write `192.0.2.1`, `192.0.2.1:53` or `[2001:db8::1]:53`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_url_of_the_web_that_ends_in_a_slash() {
        for text in
            ["https://html.duckduckgo.com/html/", "http://127.0.0.1:8080/", "https://example.com", "http://[::1]/a/"]
        {
            assert!(base(text).is_ok(), "{text}");
        }
        for (text, refusal) in [
            ("", "`` is not an absolute URL: relative URL without a base"),
            ("/html/", "`/html/` is not an absolute URL"),
            ("example.com/", "`example.com/` is not an absolute URL"),
            ("file:///etc/", "`file:///etc/` is not a web address: begin it with `https://` or `http://`"),
            ("https://u@example.com/", "the URL has a user or a password"),
            ("https://:secret@example.com/", "the URL has a user or a password"),
            ("https://example.com/?", "`https://example.com/?` has a query: omit it"),
            ("https://example.com/#a", "`https://example.com/#a` has a fragment: omit it"),
            ("https://example.com/a", "`https://example.com/a` does not end in `/`: write `https://example.com/a/`"),
            (" https://example.com/", "` https://example.com/` has a blank or a control character in it"),
            ("https://exa\tmple.com/", "`https://exa\\tmple.com/` has a blank"),
        ] {
            let refused = base(text).unwrap_err();
            assert!(refused.starts_with(refusal), "{text}: {refused}");
        }
    }

    #[test]
    fn methods_are_written_in_upper_case() {
        for name in METHODS {
            assert_eq!(method(name).as_deref(), Ok(name));
        }
        assert_eq!(method("Get").unwrap_err(), "`Get` is a method in upper case: write `GET`");
        for text in ["", "TRACE", "CONNECT", "GET "] {
            assert!(method(text).unwrap_err().contains("is not a method: use one of GET, HEAD, POST"), "{text}");
        }
    }

    #[test]
    fn a_prefix_is_the_beginning_of_a_path_as_urls_have_it() {
        for (text, expected) in [("/", "/"), ("/v1", "/v1"), ("/v1/", "/v1"), ("/a%20b/c.d", "/a%20b/c.d")] {
            assert_eq!(prefix(text).as_deref(), Ok(expected));
        }
        for (text, refusal) in [
            ("", "`` does not begin with `/`"),
            ("v1", "`v1` does not begin with `/`"),
            ("/v1?a=b", "`/v1?a=b` has a query or a fragment: omit it"),
            ("/v1#a", "`/v1#a` has a query or a fragment"),
            ("/v1//a", "`/v1//a` has a segment without a name"),
            ("/v1/../v2", "`/v1/../v2` is not in the form of a URL: write `/v2`"),
            ("/v1/%2e%2E/v2", "`/v1/%2e%2E/v2` is not in the form of a URL: write `/v2`"),
            ("/v1/.", "`/v1/.` is not in the form of a URL: write `/v1/`"),
            ("/a b", "`/a b` is not in the form of a URL: write `/a%20b`"),
            ("/a\\b", "`/a\\\\b` is not in the form of a URL: write `/a/b`"),
            ("/ä", "`/ä` is not in the form of a URL: write `/%C3%A4`"),
        ] {
            let refused = prefix(text).unwrap_err();
            assert!(refused.starts_with(refusal), "{text}: {refused}");
        }
    }

    #[test]
    fn a_path_lies_below_a_prefix_by_whole_segments() {
        for (path, above, expected) in [
            ("/v1", "/v1", true),
            ("/v1/", "/v1", true),
            ("/v1/x", "/v1", true),
            ("/v10", "/v1", false),
            ("/v", "/v1", false),
            ("/", "/v1", false),
            ("/", "/", true),
            ("/x", "/", true),
        ] {
            assert_eq!(lies_below(path, above), expected, "{path} below {above}");
        }
    }

    #[test]
    fn a_name_server_is_an_address_with_or_without_a_port() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ] {
            assert_eq!(name_server(text), Ok(expected.parse().unwrap()));
        }
        for text in ["", "dns.example.com", "192.0.2.1:0", "192.0.2.1:65536", "[::1]", "192.0.2.1/32", "127.1"] {
            assert!(name_server(text).unwrap_err().contains("is not a valid name server: write `192.0.2.1`"), "{text}");
        }
    }
}
