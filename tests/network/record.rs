//! Whom a program turned to: every `connect` and every datagram of it and of its children, as `strace` saw them.
//!
//! A capture of packets would not do: the servers of a test use the same device, and what a capture loses under load is the proof.

use std::fmt;
use std::net::IpAddr;

/// What follows `strace`, up to the file that is written.
pub(crate) const TRACER: [&str; 11] = [
    "-f",
    "--seccomp-bpf",
    "-q",
    "-yy",
    "-s",
    "0",
    "-e",
    "signal=none",
    "-e",
    "trace=connect,sendto,sendmsg,sendmmsg",
    "-o",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// One connection, or one datagram, on its way there. It need not have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contact {
    pub(crate) protocol: Protocol,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

impl fmt::Display for Contact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.protocol == Protocol::Tcp { "tcp" } else { "udp" };
        match self.address {
            IpAddr::V4(address) => write!(formatter, "{protocol} {address}:{}", self.port),
            IpAddr::V6(address) => write!(formatter, "{protocol} [{address}]:{}", self.port),
        }
    }
}

/// Reads a record, up to the last line that is whole.
pub(crate) fn contacts(record: &str) -> Vec<Contact> {
    let whole = record.rfind('\n').map_or("", |end| &record[..end]);
    whole.lines().flat_map(in_line).collect()
}

/// One call can have many destinations; the rest of an interrupted one no longer tells its socket.
fn in_line(line: &str) -> Vec<Contact> {
    let is_datagram = line.contains("<UDP") || !line.contains("<TCP") && !line.contains("connect");
    let protocol = if is_datagram { Protocol::Udp } else { Protocol::Tcp };
    let parse = |text: &str| {
        let port = text.split_once("htons(")?.1.split_once(')')?.0.parse().ok()?;
        let address = text.split_once("inet_")?.1.split('"').nth(1)?.parse().ok()?;
        Some(Contact { protocol, address, port })
    };
    let addresses = line.split("sa_family=AF_INET").skip(1);
    addresses.map(|text| parse(text).unwrap_or_else(|| panic!("not understood: {line}"))).collect()
}

#[test]
fn the_lines_of_strace_are_understood() {
    let record = r#"18 connect(3<UNIX-STREAM:[6183841]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
18 connect(3<TCP:[6067729]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("93.184.216.34")}, 16 <unfinished ...>
19 sendto(3<TCP:[93.184.216.34:53966->93.184.216.34:80]>, ""..., 1, 0, NULL, 0) = 1
18 <... connect resumed>) = -1 EINPROGRESS (Operation now in progress)
18 connect(4<TCPv6:[6066964]>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "2606:4700::1111", &sin6_addr), sin6_scope_id=0}, 28) = 0
18 sendto(5<UDPv6:[6066966]>, ""..., 5, 0, {sa_family=AF_INET6, sin6_port=htons(5353), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::ffff:8.8.8.8", &sin6_addr), sin6_scope_id=0}, 28) = 5
18 sendmsg(3<UDP:[0.0.0.0:58805]>, {msg_name={sa_family=AF_INET, sin_port=htons(99), sin_addr=inet_addr("1.2.3.4")}, msg_namelen=16, msg_iovlen=1, msg_flags=0}, 0) = 1
18 connect(3<UDP:[0.0.0.0:58805]>, {sa_family=AF_UNSPEC, sa_data="\0"}, 16) = 0
18 +++ exited with 0 +++
18 connect(3<TCP:[1]>, {sa_family=AF_IN"#;
    let found: Vec<String> = contacts(record).iter().map(ToString::to_string).collect();
    let expected = ["tcp 93.184.216.34:80", "tcp [2606:4700::1111]:443", "udp [::ffff:8.8.8.8]:5353", "udp 1.2.3.4:99"];
    assert_eq!(found, expected);
}
