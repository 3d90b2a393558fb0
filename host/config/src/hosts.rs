//! Hosts that settings name: how they are written, and what two lists of them have in common.
//!
//! Nothing is looked up here. Where a name leads is found out, and judged, where requests are made.

use super::narrow::common;
use ipnet::IpNet;
use serde::de::{Error, SeqAccess, Unexpected, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use url::Host;

/// What to write instead of more than a host.
const ALONE: &str = "write the host alone, ports are `fetch_ports`";
/// The longest name of the DNS, and the longest label in it, in bytes (RFC 1035, 2.3.4).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// What one entry of a list covers. Names are lower-case ASCII (punycode) without the last dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This name and no other.
    Exact(String),
    /// Every name below this one: `*.example.com`.
    Below(String),
    /// This name and every name below it.
    Domain(String),
    /// These addresses, however many.
    Range(IpNet),
}

impl HostPattern {
    /// Reads an entry of a list of domains: a plain name means itself and all names below it.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn domain(text: &str) -> Result<Self, String> {
        read(text, Self::Domain)
    }

    /// Reads an entry of a plugin's hosts: a plain name means itself alone.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn exact(text: &str) -> Result<Self, String> {
        read(text, Self::Exact)
    }

    /// Reads an entry of a list of addresses.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn range(text: &str) -> Result<Self, String> {
        match Self::domain(text)? {
            Self::Range(range) => Ok(Self::Range(range)),
            _ => Err(format!("`{}` is a name: write an address, or a range as `10.1.0.0/16`", text.escape_debug())),
        }
    }

    /// Returns whether this is about the host `name`, in any case and with or without its last dot.
    #[must_use]
    pub fn covers_name(&self, name: &str) -> bool {
        self.has(&name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
    }

    /// Returns whether this is about `address`, also where that is an IPv4 address mapped into IPv6.
    #[must_use]
    pub fn covers_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(&address.to_canonical()))
    }

    /// Returns whether `other` covers all that this covers.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Range(inner), Self::Range(outer)) => outer.contains(inner),
            (Self::Below(name), Self::Below(above) | Self::Domain(above)) => name == above || is_below(name, above),
            (Self::Range(_), _) | (Self::Below(_) | Self::Domain(_), Self::Exact(_)) => false,
            (Self::Exact(name) | Self::Below(name) | Self::Domain(name), _) => other.has(name),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::Exact(own) => name == own,
            Self::Below(above) => is_below(name, above),
            Self::Domain(above) => name == above || is_below(name, above),
            Self::Range(_) => false,
        }
    }
}

/// As it is written in a list.
impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exact(name) | Self::Domain(name) => formatter.write_str(name),
            Self::Below(name) => write!(formatter, "*.{name}"),
            Self::Range(range) if range.prefix_len() == range.max_prefix_len() => write!(formatter, "{}", range.addr()),
            Self::Range(range) => write!(formatter, "{range}"),
        }
    }
}

/// Hosts that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostList {
    /// No restriction: the empty list of `toolcrib.toml`.
    Any,
    /// These and no others; with none of them it reads and prints as `"none"`.
    Only(Vec<HostPattern>),
}

impl HostList {
    /// The list that allows no host.
    pub const NOTHING: Self = Self::Only(Vec::new());

    /// Returns whether the host `name` is allowed.
    #[must_use]
    pub fn covers_name(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| pattern.covers_name(name)),
        }
    }

    /// Returns whether `address` is allowed.
    #[must_use]
    pub fn covers_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| pattern.covers_address(address)),
        }
    }

    /// Returns what both allow: each entry of either that lies within an entry of the other.
    pub(super) fn intersect(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, list) | (list, Self::Any) => list.clone(),
            (Self::Only(ours), Self::Only(theirs)) => Self::Only(common(ours, theirs, HostPattern::is_within)),
        }
    }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
}

/// Reads an entry; `plain` makes the pattern of a plain name.
fn read(text: &str, plain: fn(String) -> HostPattern) -> Result<HostPattern, String> {
    if let Some(range) = range(text)? {
        return Ok(HostPattern::Range(range));
    }
    check_alone(text)?;
    match text.strip_prefix("*.") {
        Some(above) => name(above).map(HostPattern::Below),
        None => name(text).map(plain),
    }
}

/// Returns the addresses that an entry is, if it begins with one.
fn range(text: &str) -> Result<Option<IpNet>, String> {
    let shown = text.escape_debug();
    let (start, length) = text.split_once('/').map_or((text, None), |(start, length)| (start, Some(length)));
    // This parser takes whole addresses in decimal, which all programs read alike.
    let Ok(address) = start.parse::<IpAddr>() else { return Ok(None) };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(most), |digits| digits.parse::<u8>().ok());
    let range = length.and_then(|length| IpNet::new(address, length).ok());
    let range = range
        .ok_or_else(|| format!("`{shown}` is not a valid range: write a number from 0 to {most} after the `/`"))?;
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("`{shown}` is IPv4 within IPv6: write the IPv4 address itself"));
    }
    if range.trunc() != range {
        return Err(format!("`{shown}` is not a valid range: write `{}`, or the address alone", range.trunc()));
    }
    Ok(Some(range))
}

/// Refuses what is more than the name of a host, and what was to be an address.
fn check_alone(text: &str) -> Result<(), String> {
    let shown = text.escape_debug();
    let start = text.split('/').next().unwrap_or_default();
    if text.is_empty() {
        Err("an empty entry is not a host".to_owned())
    } else if text.contains("://") {
        Err(format!("`{shown}` is a URL: {ALONE}"))
    } else if is_decimal(start.strip_prefix("*.").unwrap_or(start)) {
        Err(no_address(text))
    } else if text.starts_with('[') || text.matches(':').count() > 1 {
        Err(format!("`{shown}` is not a valid IPv6 address: write it without brackets, zone and port"))
    } else if text.contains('/') {
        Err(format!("`{shown}` has a path: {ALONE}"))
    } else if text.contains(':') {
        Err(format!("`{shown}` has a scheme or a port: {ALONE}"))
    } else if text.strip_prefix("*.").unwrap_or(text).contains('*') {
        Err(format!("`{shown}` has a `*` that is not at its beginning: write it as `*.example.com`"))
    } else {
        Ok(())
    }
}

fn is_decimal(text: &str) -> bool {
    text.contains(|char: char| char.is_ascii_digit()) && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Says why numbers are not an address.
fn no_address(text: &str) -> String {
    let shown = text.escape_debug();
    let is_padded = |octet: &str| octet.len() > 1 && octet.starts_with('0') && is_decimal(octet);
    if text.split(['.', '/']).any(is_padded) {
        format!("`{shown}` has a number with a leading zero, which some read as octal: write it without")
    } else {
        format!("`{shown}` is not a valid address: write four numbers up to 255, as in `10.1.0.0/16`")
    }
}

/// Returns a name as the DNS has it (letters, digits and hyphens: RFC 1123, 2.1).
fn name(text: &str) -> Result<String, String> {
    let no_name = || format!("`{}` is not the name of a host", text.escape_debug());
    let ascii = match Host::parse(text) {
        Ok(Host::Domain(ascii)) => ascii,
        // Such as `0x7f.1`.
        Ok(Host::Ipv4(_)) => return Err(no_address(text)),
        Ok(Host::Ipv6(_)) | Err(_) => return Err(no_name()),
    };
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.len() <= NAME_BYTES && name.split('.').all(is_label);
    if is_name { Ok(name.to_owned()) } else { Err(no_name()) }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An entry of a list of domains.
impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::domain(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for HostList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => Vec::<HostPattern>::new().serialize(serializer),
            Self::Only(patterns) if patterns.is_empty() => serializer.serialize_str("none"),
            Self::Only(patterns) => patterns.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HostListVisitor)
    }
}

struct HostListVisitor;

impl<'de> Visitor<'de> for HostListVisitor {
    type Value = HostList;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list of hosts or \"none\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HostList, E> {
        if text == "none" { Ok(HostList::NOTHING) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<HostList, A::Error> {
        let patterns = Vec::deserialize(SeqAccessDeserializer::new(entries))?;
        Ok(if patterns.is_empty() { HostList::Any } else { HostList::Only(patterns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> HostPattern {
        HostPattern::domain(text).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    fn exact(text: &str) -> HostPattern {
        HostPattern::exact(text).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_are_spelled_in_one_way() {
        for (text, spelled) in [
            ("example.com", "example.com"),
            ("Example.COM.", "example.com"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("*.Bücher.example", "*.xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("*.com", "*.com"),
            ("3com.example", "3com.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1/32", "127.0.0.1"),
            ("10.1.0.0/16", "10.1.0.0/16"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::1", "::1"),
            ("2001:DB8:0::/48", "2001:db8::/48"),
        ] {
            for pattern in [domain(text), exact(text)] {
                assert_eq!(pattern.to_string(), spelled, "{text}");
            }
            assert_eq!(domain(spelled), domain(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_to_write() {
        for (text, refusal) in [
            ("", "an empty entry is not a host"),
            ("https://example.com", "`https://example.com` is a URL: write the host alone, ports are `fetch_ports`"),
            ("example.com/a", "`example.com/a` has a path: write the host alone"),
            ("/a", "`/a` has a path"),
            ("example.com:80", "`example.com:80` has a scheme or a port: write the host alone"),
            ("10.0.0.1:80", "`10.0.0.1:80` has a scheme or a port"),
            ("[::1]", "`[::1]` is not a valid IPv6 address: write it without brackets"),
            ("[::1]:80", "`[::1]:80` is not a valid IPv6 address"),
            ("fe80::1%eth0", "`fe80::1%eth0` is not a valid IPv6 address"),
            ("*", "`*` has a `*` that is not at its beginning: write it as `*.example.com`"),
            ("a.*.example.com", "`a.*.example.com` has a `*` that is not at its beginning"),
            ("*.*.example.com", "`*.*.example.com` has a `*` that is not at its beginning"),
            ("exa*.com", "`exa*.com` has a `*` that is not at its beginning"),
            ("%2a.example.com", "`%2a.example.com` is not the name of a host"),
            ("127.0.0.1/8", "`127.0.0.1/8` is not a valid range: write `127.0.0.0/8`, or the address alone"),
            ("2001:db8::1/48", "`2001:db8::1/48` is not a valid range: write `2001:db8::/48`"),
            ("10.0.0.0/33", "`10.0.0.0/33` is not a valid range: write a number from 0 to 32 after the `/`"),
            ("10.0.0.0/", "`10.0.0.0/` is not a valid range"),
            ("::/129", "`::/129` is not a valid range: write a number from 0 to 128 after the `/`"),
            ("010.0.0.0/8", "`010.0.0.0/8` has a number with a leading zero"),
            ("127.0.0.01", "`127.0.0.01` has a number with a leading zero"),
            ("127.1", "`127.1` is not a valid address: write four numbers up to 255, as in `10.1.0.0/16`"),
            ("2130706433", "`2130706433` is not a valid address"),
            ("10.0.0.256", "`10.0.0.256` is not a valid address"),
            ("0x7f.0.0.1", "`0x7f.0.0.1` is not a valid address"),
            ("*.10.0.0.1", "`*.10.0.0.1` is not a valid address"),
            ("::ffff:10.0.0.1", "`::ffff:10.0.0.1` is IPv4 within IPv6: write the IPv4 address itself"),
            ("::ffff:10.0.0.0/104", "`::ffff:10.0.0.0/104` is IPv4 within IPv6"),
            (".", "`.` is not the name of a host"),
            (".example.com", "`.example.com` is not the name of a host"),
            ("a..example.com", "`a..example.com` is not the name of a host"),
            ("a_b.example.com", "`a_b.example.com` is not the name of a host"),
            ("-a.example.com", "`-a.example.com` is not the name of a host"),
            (" example.com", "` example.com` is not the name of a host"),
            ("user@example.com", "`user@example.com` is not the name of a host"),
            ("a\n", "`a\\n` is not the name of a host"),
        ] {
            for read in [HostPattern::domain, HostPattern::exact] {
                let refused = read(text).unwrap_err();
                assert!(refused.starts_with(refusal), "{text}: {refused}");
            }
        }
        assert!(HostPattern::domain(&"a".repeat(64)).is_err());
        assert!(HostPattern::domain(&["a"; 128].join(".")).is_err());
    }

    #[test]
    fn a_list_of_addresses_has_no_names() {
        assert_eq!(HostPattern::range("10.1.0.0/16"), HostPattern::domain("10.1.0.0/16"));
        assert_eq!(
            HostPattern::range("localhost").unwrap_err(),
            "`localhost` is a name: write an address, or a range as `10.1.0.0/16`"
        );
    }

    #[test]
    fn a_domain_covers_itself_and_what_is_below() {
        for (pattern, itself, below) in [
            (domain("example.com"), true, true),
            (exact("example.com"), true, false),
            (domain("*.example.com"), false, true),
            (exact("*.example.com"), false, true),
        ] {
            for name in ["example.com", "EXAMPLE.com", "example.com."] {
                assert_eq!(pattern.covers_name(name), itself, "{pattern:?} {name}");
            }
            for name in ["a.example.com", "A.b.Example.com."] {
                assert_eq!(pattern.covers_name(name), below, "{pattern:?} {name}");
            }
            for name in ["badexample.com", ".example.com", "com", "example.com.evil", "", "."] {
                assert!(!pattern.covers_name(name), "{pattern:?} {name}");
            }
            assert!(!pattern.covers_address(address("127.0.0.1")));
        }
    }

    #[test]
    fn a_range_covers_its_addresses_however_they_are_written() {
        let range = domain("127.0.0.0/8");
        for inside in ["127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1"] {
            assert!(range.covers_address(address(inside)), "{inside}");
        }
        for outside in ["126.255.255.255", "128.0.0.0", "::1", "::127.0.0.1"] {
            assert!(!range.covers_address(address(outside)), "{outside}");
        }
        assert!(!range.covers_name("127.0.0.1"));
        assert!(domain("::/0").covers_address(address("::1")));
        assert!(!domain("::/0").covers_address(address("::ffff:127.0.0.1")));
    }

    #[test]
    fn within_is_what_is_covered_by_another() {
        for (inner, outer, is_within) in [
            (domain("a.com"), domain("a.com"), true),
            (domain("b.a.com"), domain("a.com"), true),
            (domain("a.com"), domain("*.a.com"), false),
            (domain("b.a.com"), domain("*.a.com"), true),
            (domain("*.a.com"), domain("a.com"), true),
            (domain("*.a.com"), domain("*.a.com"), true),
            (domain("*.b.a.com"), domain("*.a.com"), true),
            (domain("*.a.com"), domain("*.b.a.com"), false),
            (domain("ba.com"), domain("a.com"), false),
            (exact("a.com"), domain("a.com"), true),
            (exact("a.com"), exact("*.a.com"), false),
            (exact("b.a.com"), exact("*.a.com"), true),
            (exact("a.com"), exact("a.com"), true),
            (domain("a.com"), exact("a.com"), false),
            (exact("*.a.com"), exact("a.com"), false),
            (domain("10.1.0.0/16"), domain("10.0.0.0/8"), true),
            (domain("10.0.0.0/8"), domain("10.1.0.0/16"), false),
            (domain("10.0.0.1"), domain("::/0"), false),
            (domain("10.0.0.1"), domain("a.com"), false),
            (domain("a.com"), domain("0.0.0.0/0"), false),
        ] {
            assert_eq!(inner.is_within(&outer), is_within, "{inner:?} in {outer:?}");
        }
    }

    #[test]
    fn two_lists_have_in_common_what_lies_within_both() {
        let list = |texts: &[&str]| HostList::Only(texts.iter().map(|text| domain(text)).collect());
        let ours = list(&["a.com", "b.b.com", "10.0.0.0/8"]);
        let theirs = list(&["*.a.com", "b.com", "c.com", "10.1.0.0/16", "::1"]);
        assert_eq!(ours.intersect(&theirs), list(&["b.b.com", "*.a.com", "10.1.0.0/16"]));
        assert_eq!((ours.intersect(&HostList::Any), HostList::Any.intersect(&ours)), (ours.clone(), ours.clone()));
        assert_eq!(ours.intersect(&HostList::NOTHING), HostList::NOTHING);
    }

    #[test]
    fn lists_read_as_they_print() {
        for list in [HostList::Any, HostList::NOTHING, HostList::Only(vec![domain("*.a.com"), domain("10.0.0.0/8")])] {
            assert_eq!(toml::Value::try_from(&list).unwrap().try_into::<HostList>().unwrap(), list);
        }
        assert!(toml::Value::from("example.com").try_into::<HostList>().is_err());
        assert!(HostList::Any.covers_name("a") && HostList::Any.covers_address(address("::1")));
        assert!(!HostList::NOTHING.covers_name("a") && !HostList::NOTHING.covers_address(address("::1")));
    }
}
