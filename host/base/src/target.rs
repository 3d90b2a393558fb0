//! Where a URL leads: parsed once, from then on a value; policy decides on it and the connection is made to it.
//!
//! What is refused here is refused under any policy. What a plugin may reach is `policy/http.rs`.

use crate::envelope::Failure;
use crate::text::sanitize;
use std::fmt;
use std::net::IpAddr;
use url::Url;

/// The longest URL, in bytes. Longer ones are cut by servers on the way, each at another place.
const URL_BYTES: usize = 2048;
/// The longest name of the DNS, and the longest label in it, in bytes (RFC 1035, 2.3.4).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;
/// How much of a URL a message shows, in characters.
const SHOWN_CHARS: usize = 200;

/// Where a request goes: a URL with a web scheme, without credentials, whose host is a name of the DNS or an address.
#[derive(Clone, Debug)]
pub struct Target {
    url: Url,
    host: Host,
}

/// A host as it was written, after parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// In ASCII (punycode), lower case, without the last dot.
    Name(String),
    /// However it was spelled: `http://0x7f.1/` is 127.0.0.1.
    Address(IpAddr),
}

impl Target {
    /// Parses a URL, relative ones from `base`.
    pub fn parse(text: &str, base: Option<&Url>) -> Result<Self, Failure> {
        check_raw(text)?;
        let parsed = match base {
            Some(base) => base.join(text),
            None => Url::parse(text),
        };
        let relative = |error| match error {
            url::ParseError::RelativeUrlWithoutBase => "it has no scheme".to_owned(),
            error => error.to_string(),
        };
        Self::new(parsed.map_err(|error| not_a_url(text, &relative(error)))?)
    }

    /// A host as a program gives it to a proxy, a name or an address, and a port. What a URL would take for more than that is refused first.
    pub fn of_server(host: &str, port: u16) -> Result<Self, Failure> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        if host.is_empty() || host.len() > NAME_BYTES || !host.bytes().all(is_plain) {
            return Err(Failure::invalid(format!("`{}` is not the name of a host", shown(host))));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = if bare.contains(':') { format!("[{bare}]") } else { host.to_owned() };
        Self::parse(&format!("https://{host}:{port}/"), None)
    }

    /// Host and port.
    pub fn server(&self) -> String {
        match &self.host {
            Host::Address(address) => std::net::SocketAddr::new(*address, self.port()).to_string(),
            Host::Name(name) => format!("{name}:{}", self.port()),
        }
    }

    /// Where a redirect from here leads.
    pub fn redirected(&self, location: &str) -> Result<Self, Failure> {
        Self::parse(location, Some(&self.url))
    }

    /// The same with this name as its host.
    pub fn at_host(&self, name: &str) -> Result<Self, Failure> {
        let mut url = self.url.clone();
        url.set_host(Some(name)).map_err(|error| not_a_url(self.url.as_str(), &error.to_string()))?;
        Self::new(url)
    }

    fn new(mut url: Url) -> Result<Self, Failure> {
        // First of all: the host of other schemes is opaque text, in which an address does not look like one.
        if !["https", "http"].contains(&url.scheme()) {
            return Err(Failure::denied(format!("`{}` is not a scheme of the web", shown(url.scheme())))
                .hint("only `https://` and `http://` are fetched; files are read by `read_file`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Failure::denied("the URL carries a user or a password")
                .hint("omit what comes before the `@`: it often serves to make another host look like the target"));
        }
        url.set_fragment(None);
        let host = match url.host() {
            Some(url::Host::Domain(name)) => Host::Name(checked_name(name)?),
            Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Address(address.into()),
            None => return Err(not_a_url(url.as_str(), "it has no host")),
        };
        if let Host::Name(name) = &host {
            // Without the last dot, which servers and certificates do not expect.
            url.set_host(Some(name)).map_err(|error| not_a_url(url.as_str(), &error.to_string()))?;
        }
        if url.as_str().len() > URL_BYTES {
            return Err(not_a_url(url.as_str(), &format!("it is longer than {URL_BYTES} bytes")));
        }
        Ok(Self { url, host })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().expect("web schemes have a default port")
    }

    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", shown(self.url.as_str()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(address) => write!(formatter, "{address}"),
        }
    }
}

/// Refuses what the parser would silently leave out: `ht\ttp://` and a URL after a space read like others to it.
fn check_raw(text: &str) -> Result<(), Failure> {
    if text.len() > URL_BYTES {
        return Err(not_a_url(text, &format!("it is longer than {URL_BYTES} bytes")));
    }
    match text.chars().find(|char| char.is_control() || char.is_whitespace()) {
        Some(odd) => Err(not_a_url(text, &format!("it contains U+{:04X}", u32::from(odd)))),
        None => Ok(()),
    }
}

/// Returns the name without its last dot, if it is one that the DNS can have (letters, digits and hyphens: RFC 1123, 2.1).
fn checked_name(name: &str) -> Result<String, Failure> {
    let plain = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if plain.len() <= NAME_BYTES && plain.split('.').all(is_label) {
        return Ok(plain.to_owned());
    }
    Err(Failure::invalid(format!("`{}` is not the name of a host", shown(name)))
        .hint("a name is labels of letters, digits and hyphens with dots between them"))
}

fn not_a_url(text: &str, why: &str) -> Failure {
    Failure::invalid(format!("`{}` is not a URL that can be fetched: {why}", shown(text)))
        .hint("give an absolute URL, such as https://example.com/page")
}

fn shown(text: &str) -> String {
    let line = sanitize::line(text);
    let mut chars = line.chars();
    let head: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> String {
        match Target::parse(text, None) {
            Ok(target) => target.host().to_string(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn a_host_is_what_the_url_means_however_it_is_spelled() {
        for (text, expected) in [
            ("https://Example.COM/a", "example.com"),
            ("https://example.com./a", "example.com"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://127.0.0.1\\@example.com/", "127.0.0.1"),
            ("http:127.0.0.1", "127.0.0.1"),
            ("http://①②⑦.0.0.1/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
            ("http://bücher.example/", "xn--bcher-kva.example"),
        ] {
            assert_eq!(host(text), expected, "{text}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_the_reason() {
        for (text, reason) in [
            ("example.com/a", "it has no scheme"),
            (" http://example.com/", "U+0020"),
            ("ht\ttp://example.com/", "U+0009"),
            ("http://exa\u{2028}mple.com/", "U+2028"),
            ("file:///etc/passwd", "`file` is not a scheme of the web"),
            ("unix:///run/docker.sock", "`unix` is not a scheme of the web"),
            ("http://a:b@example.com/", "carries a user"),
            ("http://.example.com/", "is not the name of a host"),
            ("http://-example.com/", "is not the name of a host"),
            ("http://a_b.example.com/", "is not the name of a host"),
            ("http://example..com/", "is not the name of a host"),
            ("http://256.256.256.256/", "invalid IPv4 address"),
            ("http://[fe80::1%25eth0]/", "invalid IPv6 address"),
        ] {
            assert!(host(text).contains(reason), "{text}: {}", host(text));
        }
    }

    #[test]
    fn a_url_of_exactly_the_length_passes() {
        let url = |bytes: usize| format!("https://example.com/{}", "a".repeat(bytes - "https://example.com/".len()));
        assert_eq!(host(&url(URL_BYTES)), "example.com");
        assert!(host(&url(URL_BYTES + 1)).contains("longer than 2048 bytes"));
    }

    #[test]
    fn relative_urls_start_at_the_base() {
        let base = Url::parse("https://example.com/html/").unwrap();
        let target = |text| Target::parse(text, Some(&base)).unwrap().url().to_string();
        assert_eq!(target("?q=a+b"), "https://example.com/html/?q=a+b");
        assert_eq!(target("//other.example/x#part"), "https://other.example/x");
        assert_eq!(target("\\\\other.example/x"), "https://other.example/x");
    }
}
