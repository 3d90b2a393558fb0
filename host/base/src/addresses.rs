//! Which addresses are not of the public Internet: the table, as data with its sources.
//!
//! An address is public if no line covers it and, for IPv6, if it is global unicast. Who may reach one that is not is `policy/http.rs`.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

/// Why an address is not a public one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Special {
    /// What its range is for.
    pub what: &'static str,
    /// The range, or how else it is known.
    pub range: String,
    /// Where that is laid down.
    pub source: &'static str,
    /// Hosts live there: a name that the user lists may resolve to it. Others open only by their range.
    pub has_hosts: bool,
}

/// Ranges, what they are for, where that is laid down, and whether ordinary hosts live there.
///
/// From IANA's registries of special-purpose addresses (RFC 6890) and of multicast and IPv6 address space, as of November 2026.
#[rustfmt::skip]
const SPECIAL: [(&str, &str, &str, bool); 43] = [
    ("0.0.0.0/8",          "this network",               "RFC 791",  false),
    ("10.0.0.0/8",         "private",                    "RFC 1918", true),
    ("100.64.0.0/10",      "shared by carriers",         "RFC 6598", true),
    ("127.0.0.0/8",        "loopback",                   "RFC 1122", true),
    ("168.63.129.16/32",   "Azure's wire server",        "Azure documentation", false),
    ("169.254.0.0/16",     "link-local",                 "RFC 3927", false),
    ("172.16.0.0/12",      "private",                    "RFC 1918", true),
    ("192.0.0.0/24",       "protocol assignments",       "RFC 6890", false),
    ("192.0.2.0/24",       "documentation",              "RFC 5737", false),
    ("192.31.196.0/24",    "AS112",                      "RFC 7535", false),
    ("192.52.193.0/24",    "AMT",                        "RFC 7450", false),
    ("192.88.99.0/24",     "6to4 relays",                "RFC 7526", false),
    ("192.168.0.0/16",     "private",                    "RFC 1918", true),
    ("192.175.48.0/24",    "AS112",                      "RFC 7534", false),
    ("198.18.0.0/15",      "benchmarks",                 "RFC 2544", false),
    ("198.51.100.0/24",    "documentation",              "RFC 5737", false),
    ("203.0.113.0/24",     "documentation",              "RFC 5737", false),
    ("224.0.0.0/4",        "multicast",                  "RFC 5771", false),
    ("240.0.0.0/4",        "reserved",                   "RFC 1112", false),
    ("::/128",             "unspecified",                "RFC 4291", false),
    ("::1/128",            "loopback",                   "RFC 4291", true),
    ("::/96",              "IPv4-compatible",            "RFC 4291", false),
    ("::ffff:0:0/96",      "IPv4-mapped",                "RFC 4291", false),
    ("::ffff:0:0:0/96",    "IPv4-translated",            "RFC 7915", false),
    ("64:ff9b::/96",       "NAT64",                      "RFC 6052", false),
    ("64:ff9b:1::/48",     "NAT64, local",               "RFC 8215", false),
    ("100::/64",           "discard",                    "RFC 6666", false),
    ("100:0:0:1::/64",     "dummy prefix",               "RFC 9780", false),
    ("2001::/32",          "Teredo",                     "RFC 4380", false),
    ("2001::/23",          "protocol assignments",       "RFC 2928", false),
    ("2001:db8::/32",      "documentation",              "RFC 3849", false),
    ("2002::/16",          "6to4",                       "RFC 3056", false),
    ("2620:4f:8000::/48",  "AS112",                      "RFC 7534", false),
    ("3fff::/20",          "documentation",              "RFC 9637", false),
    ("3ffe::/16",          "6bone, returned",            "RFC 3701", false),
    ("5f00::/16",          "segment routing",            "RFC 9602", false),
    ("fc00::/7",           "unique local",               "RFC 4193", true),
    ("fe80::/10",          "link-local",                 "RFC 4291", false),
    ("fec0::/10",          "site-local",                 "RFC 3879", false),
    ("ff00::/8",           "multicast",                  "RFC 4291", false),
    ("fd00:ec2::/32",      "Amazon's metadata",          "AWS documentation", false),
    ("fd20:ce::/32",       "Google's metadata",          "Google Cloud documentation", false),
    ("100.100.100.200/32", "Alibaba's metadata",         "Alibaba Cloud documentation", false),
];

/// The table, the longest prefix first: the narrowest line says what an address is.
static TABLE: LazyLock<Vec<(IpNet, Special)>> = LazyLock::new(|| {
    let row = |(range, what, source, has_hosts): (&str, _, _, _)| {
        let net: IpNet = range.parse().expect("the table holds ranges");
        (net, Special { what, range: range.to_owned(), source, has_hosts })
    };
    let mut table: Vec<_> = SPECIAL.into_iter().map(row).collect();
    table.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
    table
});

/// Returns why the address is not a public one; none if it is.
pub fn special(address: IpAddr) -> Option<Special> {
    let listed = TABLE.iter().find(|(net, _)| net.contains(&address)).map(|(_, special)| special.clone());
    let derived = |what, range: &str, source| Special { what, range: range.to_owned(), source, has_hosts: false };
    listed.or_else(|| match address {
        IpAddr::V6(address) if !is_global_unicast(address) => {
            Some(derived("not global unicast", "outside 2000::/3", "RFC 4291"))
        }
        IpAddr::V6(address) if is_isatap(address) => {
            Some(derived("ISATAP", "interface id 0:5efe or 200:5efe", "RFC 5214"))
        }
        _ => None,
    })
}

fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xe000 == 0x2000
}

/// An IPv4 address is hidden in the interface id. The bit 0x0200 says that it is a global one.
fn is_isatap(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    segments[4] & !0x0300 == 0 && segments[5] == 0x5efe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(text: &str) -> Option<&'static str> {
        special(text.parse().unwrap()).map(|special| special.what)
    }

    #[test]
    fn the_first_and_the_last_address_of_every_range_are_special() {
        for (net, special) in TABLE.iter() {
            for address in [net.network(), net.broadcast()] {
                assert!(super::special(address).is_some(), "{address} of {}", special.range);
            }
        }
    }

    #[test]
    fn public_addresses_are_just_outside() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "3ffd::1",
            "3fff:1000::1",
        ] {
            assert_eq!(what(text), None, "{text}");
        }
    }

    #[test]
    fn the_narrowest_line_says_what_an_address_is() {
        for (text, expected) in [
            ("127.8.9.1", "loopback"),
            ("::1", "loopback"),
            ("::", "unspecified"),
            ("::7f00:1", "IPv4-compatible"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("2001:0:1::", "Teredo"),
            ("2001:10::1", "protocol assignments"),
            ("fd20:ce::254", "Google's metadata"),
            ("fd12::1", "unique local"),
            ("100.100.100.200", "Alibaba's metadata"),
            ("1000::1", "not global unicast"),
            ("4000::1", "not global unicast"),
            ("2a00::5efe:7f00:1", "ISATAP"),
            ("2a00::200:5efe:a00:1", "ISATAP"),
        ] {
            assert_eq!(what(text), Some(expected), "{text}");
        }
    }
}
