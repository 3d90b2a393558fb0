//! A server of names.

use std::net::{SocketAddr, UdpSocket};

/// A server of names, which has these addresses for them, as `network.dns_servers` names it.
#[must_use]
pub fn names(all: &'static [(&'static str, [u8; 4])]) -> SocketAddr {
    names_by(move |asked| all.iter().find(|(name, _)| *name == asked).map(|(_, address)| *address))
}

/// A server of names, which is asked for the address of a name at each question.
#[expect(clippy::disallowed_methods, reason = "a server of the test's own")]
#[must_use]
pub fn names_by(address_of: impl Fn(&str) -> Option<[u8; 4]> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let query = &query[..length];
            let end = query[12..].iter().position(|byte| *byte == 0).expect("a name") + 13;
            let (mut name, mut place) = (Vec::new(), 12);
            while query[place] > 0 {
                let label = &query[place + 1..=place + usize::from(query[place])];
                name.push(String::from_utf8_lossy(label).to_lowercase());
                place += label.len() + 1;
            }
            let is_address = query[end..end + 2] == [0, 1];
            let found = address_of(&name.join(".")).filter(|_| is_address);
            // What it was asked, and one answer to that, by a pointer to the name (RFC 1035, 4.1).
            let mut answer = query[..end + 4].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
            if let Some(address) = found {
                answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                answer.extend(address);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    address
}
