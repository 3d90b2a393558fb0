//! Names of servers in `Host`, and of web pages in `Origin`: each has one spelling.
//!
//! A text that can be read in two ways could pass one check and fail the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Url;

/// How clients call a server.
#[derive(Debug, PartialEq)]
pub(super) struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    /// Reads `name`, `1.2.3.4` or `[::1]`, with or without a port.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
        let (host, port) = text.split_at(end);
        let port = if port.is_empty() { None } else { Some(decimal(port.strip_prefix(':')?)?) };
        let host = match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => address(inner.parse::<Ipv6Addr>().ok()?.into()),
            None => plain(host)?,
        };
        Some(Self { host, port })
    }

    /// Whether it names what the other names; without a port it does at every port, as behind a tunnel.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

fn decimal(port: &str) -> Option<u16> {
    port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())?
}

fn plain(host: &str) -> Option<String> {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    // 127.1, 0x7f000001 and 2130706433 are addresses to some: what ends like a number has to be one of four parts.
    let is_number = host.rsplit('.').next().is_some_and(|last| last.starts_with(|first: char| first.is_ascii_digit()));
    let is_one = host.split('.').all(is_part) && (!is_number || host.parse::<Ipv4Addr>().is_ok());
    is_one.then(|| host.to_ascii_lowercase())
}

/// An address as it appears in `Host`.
pub(super) fn address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Checks that clients could call a server like this: `name` or `name:port`.
///
/// # Errors
/// When they could not.
pub fn host(text: &str) -> Result<String, String> {
    let fault = || format!("`{text}` is not a host: give a name or an address, with or without a port");
    Name::parse(text).map(|_| text.to_owned()).ok_or_else(fault)
}

/// Brings an origin into the form in which browsers send it.
///
/// # Errors
/// When it is not one. `null`, which any page can send, is not one.
pub fn origin(text: &str) -> Result<String, String> {
    let fault = || format!("`{text}` is not an origin: give scheme, host and port, such as https://app.example");
    let (scheme, authority) = text.split_once("://").ok_or_else(fault)?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    let url = Url::parse(text).map_err(|_| fault())?;
    if authority.is_empty() || !authority.bytes().all(is_plain) {
        return Err(fault());
    }
    let origin = url.origin();
    // The scheme of an application, such as that of a browser's extensions, is not taken apart.
    Ok(if origin.is_tuple() { origin.ascii_serialization() } else { format!("{scheme}://{authority}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(own: &str, other: &str) -> bool {
        let own = Name::parse(own).unwrap_or_else(|| panic!("{own}"));
        Name::parse(other).is_some_and(|other| own.covers(&other))
    }

    #[test]
    fn a_name_is_covered_by_itself_at_every_port() {
        for (own, others) in [
            ("localhost", ["localhost", "LocalHost", "localhost:1", "LOCALHOST:65535"]),
            ("127.0.0.1", ["127.0.0.1", "127.0.0.1:80", "127.0.0.1:0", "127.0.0.1:08722"]),
            ("[::1]", ["[::1]", "[::1]:80", "[0:0::1]", "[0:0:0:0:0:0:0:1]:8722"]),
        ] {
            assert!(others.iter().all(|other| covers(own, other)), "{own}");
        }
    }

    #[test]
    fn a_name_with_a_port_is_covered_at_that_port() {
        assert!(covers("tools.example:8443", "tools.example:8443"));
        assert!(!covers("tools.example:8443", "tools.example") && !covers("tools.example:8443", "tools.example:443"));
    }

    #[test]
    fn other_ways_to_write_loopback_are_not_names() {
        for text in [
            "",
            " localhost",
            "localhost ",
            "localhost.",
            ".localhost",
            "localhost..",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:99999",
            "localhost:80:80",
            "user@localhost",
            "localhost/",
            "localhost,evil",
            "127.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.01",
            "127.0.0.1.",
            "127.0.0.0x1",
            "::1",
            "[::1",
            "::1]",
            "[::1].",
            "[::1%1]",
            "[[::1]]",
            "[]",
            "[127.0.0.1]",
            "löcalhost",
            "local%68ost",
            "localhost\0",
        ] {
            assert_eq!(Name::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_that_only_look_alike_are_not_covered() {
        for other in [
            "localhost.evil.test",
            "evil.localhost",
            "127.0.0.1.evil.test",
            "0.0.0.0",
            "127.0.0.2",
            "[::]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(!["localhost", "127.0.0.1", "[::1]"].iter().any(|own| covers(own, other)), "{other}");
        }
    }

    #[test]
    fn an_origin_is_brought_into_the_form_of_browsers() {
        for (given, sent) in [
            ("https://app.example", "https://app.example"),
            ("HTTPS://App.Example:443/", "https://app.example"),
            ("http://localhost:6274", "http://localhost:6274"),
            ("http://[0:0::1]:80", "http://[::1]"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("vscode-webview://abc/", "vscode-webview://abc"),
        ] {
            assert_eq!(origin(given).as_deref(), Ok(sent));
        }
    }

    #[test]
    fn what_is_not_an_origin_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "https://*",
            "https://*.example",
            "app.example",
            "https://",
            "https:///",
            "https://a.example/path",
            "https://user@a.example",
            "https://a.example?x",
            "https://a.example#x",
            "https://a.example:99999",
            "file://",
            "data:x",
            "https://a.example b",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }
}
